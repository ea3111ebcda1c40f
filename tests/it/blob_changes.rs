//! Operations that change a blob where it is, against the embedded service.

use crate::script::{Script, answer, refusal};
use crate::world::{CONTAINER, World};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::error::Kind;
use blobjet::rest::blob::{Blob, DeleteSnapshots};
use blobjet::rest::change::{RehydratePriority, Tiering};
use blobjet::rest::model::Tags;

const NAME: &str = "a b//c+";

fn full() -> Attributes {
    let text = |text: &str| Some(text.to_owned());
    Attributes {
        content_type: text("text/plain"),
        content_encoding: text("gzip"),
        content_language: text("de"),
        content_disposition: text("inline"),
        cache_control: text("no-store"),
        content_md5: Some([7; 16]),
        metadata: vec![("k".into(), "v".into())],
        tags: vec![("t".into(), "1".into())],
        tier: text("Hot"),
    }
}

async fn put(world: &World, attributes: &Attributes) {
    // Put Blob would check the MD5; a commit stores it as it is.
    let blob = Blob::new(&world.client, CONTAINER, NAME);
    blob.put_block_list(std::iter::empty::<&str>(), attributes, Replace::Always).await.unwrap();
}

fn headers(there: &blobjet::rest::blob::BlobProperties) -> [Option<&str>; 6] {
    ["content-type", "content-encoding", "content-language", "content-disposition", "cache-control", "content-md5"]
        .map(|name| there.get(name))
}

/// Headers that are not named stay, though the operation clears what it is not sent; metadata, tags and tier too.
#[tokio::test]
async fn one_header_is_changed_and_the_others_stay() {
    let world = World::new().await;
    put(&world, &full()).await;
    let blob = Blob::new(&world.client, CONTAINER, NAME);
    let changes =
        Attributes { content_type: Some("text/html".into()), content_language: Some(String::new()), ..Attributes::default() };
    let written = blob.change_properties(&changes).await.unwrap();
    let there = world.properties(NAME).await.unwrap();
    let md5 = "BwcHBwcHBwcHBwcHBwcHBw==";
    let expected = [Some("text/html"), Some("gzip"), None, Some("inline"), Some("no-store"), Some(md5)];
    assert_eq!(headers(&there), expected);
    assert_eq!(written.etag(), there.etag());
    assert_eq!(there.metadata().collect::<Vec<_>>(), [("k", "v")]);
    assert_eq!(there.get("x-ms-access-tier"), Some("Hot"));
    assert_eq!(blob.get_tags().await.unwrap(), Tags(full().tags));
    let missing = Blob::new(&world.client, CONTAINER, "missing").change_properties(&changes).await.unwrap_err();
    assert!(missing.kind() == Kind::NotFound && missing.to_string().contains("set the properties of"), "{missing}");
}

/// Somebody else changes the blob between the look and the write: what they wrote is kept.
#[tokio::test]
async fn a_change_in_between_is_not_written_over() {
    let script = Script::start(|number, seen| match (number, seen.method.as_str()) {
        (0, "HEAD") => answer(200, "ETag: \"1\"\nContent-Type: text/plain\nx-ms-blob-type: BlockBlob", ""),
        (1, "PUT") => refusal(412, "ConditionNotMet"),
        (2, "HEAD") => answer(200, "ETag: \"2\"\nContent-Type: text/plain\nCache-Control: theirs\nx-ms-blob-type: BlockBlob", ""),
        (3, "PUT") => answer(200, "ETag: \"3\"", ""),
        _ => refusal(400, "Unexpected"),
    })
    .await;
    let client = script.client();
    let changes = Attributes { content_type: Some("text/html".into()), ..Attributes::default() };
    Blob::new(&client, "c", "b").change_properties(&changes).await.unwrap();
    let seen = script.seen();
    assert_eq!(seen[1].header("if-match"), Some("\"1\""));
    let last = &seen[3];
    assert_eq!(
        ["if-match", "x-ms-blob-content-type", "x-ms-blob-cache-control"].map(|name| last.header(name)),
        [Some("\"2\""), Some("text/html"), Some("theirs")]
    );
    // One that never stands still is left alone after a few tries.
    let script = Script::start(|_, seen| match seen.method.as_str() {
        "HEAD" => answer(200, "ETag: \"1\"\nx-ms-blob-type: BlockBlob", ""),
        _ => refusal(412, "ConditionNotMet"),
    })
    .await;
    let client = script.client();
    let error = Blob::new(&client, "c", "b").change_properties(&changes).await.unwrap_err();
    assert_eq!((error.kind(), script.count()), (Kind::Conflict, 8));
}

#[tokio::test]
async fn metadata_tags_and_tier_are_replaced() {
    let world = World::new().await;
    put(&world, &full()).await;
    let blob = Blob::new(&world.client, CONTAINER, NAME);
    blob.set_metadata(&[("x".into(), "1".into()), ("y".into(), String::new())]).await.unwrap();
    let there = world.properties(NAME).await.unwrap();
    let mut metadata: Vec<_> = there.metadata().collect();
    metadata.sort_unstable();
    assert_eq!(metadata, [("x", "1"), ("y", "")]);
    assert_eq!(headers(&there)[0], Some("text/plain"));
    blob.set_metadata(&[]).await.unwrap();
    assert_eq!(world.properties(NAME).await.unwrap().metadata().count(), 0);

    let tags = Tags(vec![("k 1".into(), "a+b=c/d".into()), ("z".into(), String::new())]);
    blob.set_tags(&tags).await.unwrap();
    assert_eq!(blob.get_tags().await.unwrap(), tags);
    blob.set_tags(&Tags::default()).await.unwrap();
    assert_eq!(blob.get_tags().await.unwrap(), Tags::default());

    assert_eq!(blob.set_tier("Archive", None).await.unwrap(), Tiering::Done);
    assert_eq!(blob.set_tier("Cool", Some(RehydratePriority::Standard)).await.unwrap(), Tiering::Rehydrating);
    let other = blob.set_tier("Hot", None).await.unwrap_err();
    assert_eq!((other.kind(), other.code()), (Kind::Conflict, Some("BlobBeingRehydrated")));
}

#[tokio::test]
async fn a_deleted_blob_comes_back_where_deleted_ones_are_kept() {
    let world = World::new().await;
    world.keep_deleted().await;
    let blob = Blob::new(&world.client, CONTAINER, NAME);
    let gone = blob.undelete().await.unwrap_err();
    assert_eq!((gone.kind(), gone.code()), (Kind::NotFound, Some("BlobNotFound")));
    let data = Chunks::from(b"kept".to_vec());
    blob.put_blob(&data, data.crc64(), &Attributes::default(), Replace::Always).await.unwrap();
    blob.undelete().await.unwrap();
    assert!(blob.delete(DeleteSnapshots::Refuse).await.unwrap());
    assert!(blob.get_properties().await.unwrap().is_none());
    blob.undelete().await.unwrap();
    assert_eq!(blob.get_properties().await.unwrap().unwrap().content_length(), Some(4));
}
