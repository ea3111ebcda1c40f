//! Put Blob From URL and Put Block From URL: what is asked of the service, whose trouble an answer is, and two embedded services
//! of which one fetches from the other.

use crate::script::{Reply, Script, answer, answer_text, refusal};
use crate::world::{CONTAINER, ODD_NAMES, World, client};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::error::{Error, Kind};
use blobjet::rest::auth::Inputs;
use blobjet::rest::blob::Blob;
use blobjet::rest::client::Client;
use blobjet::rest::from_url::From;
use bytes::Bytes;

async fn put(world: &World, name: &str, data: &str) -> String {
    let data = Chunks::from(Bytes::from(data.to_owned()));
    let crc64 = data.crc64();
    let attributes =
        Attributes { content_type: Some("a/b".into()), metadata: vec![("m".into(), "1".into())], ..Attributes::default() };
    let made = Blob::new(&world.client, CONTAINER, name).put_blob(&data, crc64, &attributes, Replace::Always).await.unwrap();
    made.etag().unwrap().to_owned()
}

/// A client of the source with a SAS instead of the key.
fn with_sas(world: &World, sp: &str) -> Client {
    use blobjet::rest::auth::sas::{Fields, mint};
    use blobjet::rest::auth::shared_key::decode_key;
    let text = |text: &str| Some(text.to_owned());
    let fields =
        Fields { sv: text("2025-11-05"), sr: text("c"), sp: text(sp), se: text("2099-01-01T00:00:00Z"), ..Fields::default() };
    let key = decode_key(world.emulator.key()).unwrap();
    let token = mint(world.emulator.account(), &key, &fields, Some((CONTAINER, None)));
    client(&format!("{}/{CONTAINER}?{}", world.emulator.url(), token.expose()), &Inputs::default())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_service_fetches_from_another_whatever_the_name_and_the_credential() {
    let (from, to) = (World::new().await, World::new().await);
    // These too, which only a service has.
    for name in ODD_NAMES.iter().chain(&["x/../y", "/lead", "dir/"]) {
        let etag = put(&from, name, &format!("data of {name}")).await;
        let len = name.len() as u64 + 8;
        for (source, kind) in [(&from.client, "key"), (&with_sas(&from, "r"), "sas")] {
            let link = source.link(CONTAINER, name).unwrap();
            let whole = From { link: &link, etag: Some(&etag), len };
            let target = format!("{kind}/{name}");
            let blob = Blob::new(&to.client, CONTAINER, &target);
            blob.put_blob_from_url(whole, &Attributes::default(), Replace::Always).await.unwrap();
            assert_eq!(to.get(&target).await, format!("data of {name}").as_bytes(), "{target}");
            let part = From { len: 4, ..whole };
            blob.put_block_from_url("AAAA", part, 3).await.unwrap();
            blob.put_block_list(["AAAA"], &Attributes::default(), Replace::Always).await.unwrap();
            assert_eq!(to.get(&target).await, b"a of", "{target}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_read_in_one_version_or_not_at_all() {
    let (from, to) = (World::new().await, World::new().await);
    let old = put(&from, "a", "old").await;
    put(&from, "a", "new").await;
    let asked = async |world: &World, source: &Client, name: &str, etag: &str| {
        let link = source.link(CONTAINER, name).unwrap();
        let from = From { link: &link, etag: Some(etag), len: 3 };
        let blob = Blob::new(&world.client, CONTAINER, "t");
        let whole = blob.put_blob_from_url(from, &Attributes::default(), Replace::Always).await.unwrap_err();
        let block = blob.put_block_from_url("AAAA", from, 0).await.unwrap_err();
        (whole.kind(), block.kind())
    };
    let changed = (Kind::SourceChanged, Kind::SourceChanged);
    // Across services, and within one.
    assert_eq!(asked(&to, &from.client, "a", &old).await, changed);
    assert_eq!(asked(&from, &from.client, "a", &old).await, changed);
    assert_eq!(asked(&to, &from.client, "gone", &old).await, changed);
    let refused = (Kind::AccessRefused, Kind::AccessRefused);
    assert_eq!(asked(&to, &with_sas(&from, "w"), "a", &old).await, refused);
    assert_eq!(to.names().await, Vec::<String>::new());
}

/// Asks a script for a block from a URL.
async fn asked(play: impl Fn(usize) -> Reply + Send + Sync + 'static) -> (Script, Result<(), Error>) {
    let script = Script::start(move |n, _| play(n)).await;
    let client = script.client();
    let link = client.link("c", "source").unwrap();
    let from = From { link: &link, etag: Some("0x1"), len: 10 };
    let result = Blob::new(&client, "c", "b").put_block_from_url("AAAA", from, 5).await.map(drop);
    (script, result)
}

#[tokio::test]
async fn the_request_is_as_the_service_wants_it() {
    let (script, result) = asked(|_| answer(201, "", "")).await;
    result.unwrap();
    let seen = &script.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("PUT", "/devstoreaccount1/c/b?comp=block&blockid=AAAA"));
    assert_eq!(seen.header("content-length"), Some("0"));
    assert_eq!(seen.header("x-ms-source-range"), Some("bytes=5-14"));
    assert_eq!(seen.header("x-ms-source-if-match"), Some("\"0x1\""));
    let source = seen.header("x-ms-copy-source").unwrap();
    let (url, sas) = source.split_once('?').unwrap();
    assert_eq!(url, format!("http://{}/devstoreaccount1/c/source", script.address));
    assert!(sas.contains("&sp=r&") && sas.contains("&sr=b&"), "for reading this blob and nothing else");
}

fn trouble(status: u16, code: &str, source: &str) -> String {
    answer_text(status, &format!("x-ms-error-code: {code}\n{source}"), "")
}

#[tokio::test(start_paused = true)]
async fn a_busy_source_is_asked_again() {
    for source in [
        "x-ms-copy-source-status-code: 503\nx-ms-copy-source-error-code: ServerBusy",
        "x-ms-copy-source-status-code: 500\nx-ms-copy-source-error-code: OperationTimedOut",
    ] {
        let busy = trouble(400, "CannotVerifyCopySource", source);
        let (script, result) = asked(move |n| if n < 3 { Reply::Bytes(busy.clone()) } else { answer(201, "", "") }).await;
        result.unwrap();
        assert_eq!(script.count(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_fetched_is_found_out_soon_and_says_what_else_there_is() {
    let (script, result) = asked(|_| Reply::Bytes(trouble(500, "CannotVerifyCopySource", ""))).await;
    let error = result.unwrap_err();
    assert_eq!((error.kind(), script.count()), (Kind::Unreachable, 3));
    assert!(error.ends_job() && error.advice().unwrap().contains("--stream"));
    // Azurite's answer.
    let (script, result) = asked(|_| refusal(501, "APINotImplemented")).await;
    let error = result.unwrap_err();
    assert_eq!((error.kind(), script.count()), (Kind::Unsupported, 1));
    assert!(error.ends_job() && error.advice().unwrap().contains("--stream"));
}

#[tokio::test]
async fn whose_refusal_it_was_is_told() {
    let of_source = "x-ms-copy-source-status-code: 403\nx-ms-copy-source-error-code: AuthenticationFailed";
    let (_, result) = asked(move |_| Reply::Bytes(trouble(403, "CannotVerifyCopySource", of_source))).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::AccessRefused);
    assert!(error.to_string().starts_with("the service was refused when it read the source http://"), "{error}");
    assert!(!format!("{error:?}").contains("sig=") || format!("{error:?}").contains("sig=REDACTED"));
    let (_, result) = asked(|_| refusal(403, "AuthenticationFailed")).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::AccessRefused);
    assert!(error.to_string().starts_with("cannot put a block from URL to "), "{error}");
    let archived = "x-ms-copy-source-status-code: 409\nx-ms-copy-source-error-code: BlobArchived";
    let (_, result) = asked(move |_| Reply::Bytes(trouble(409, "CannotVerifyCopySource", archived))).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(error.advice().unwrap().contains("archive"));
}

#[tokio::test]
async fn an_address_that_is_too_long_is_refused_here_with_the_way_out() {
    let script = Script::start(|_, _| answer(201, "", "")).await;
    // Four bytes, twelve when escaped.
    let error = script.client().link("c", &"😀".repeat(200)).unwrap_err();
    assert_eq!((error.kind(), script.count()), (Kind::Name, 0));
    assert!(error.advice().unwrap().contains("--stream"));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fetches_is_given_time_by_the_length() {
    let script = Script::start(|_, _| Reply::Silence).await;
    let client = script.client();
    let link = client.link("c", "source").unwrap();
    let from = From { link: &link, etag: None, len: 64 << 20 };
    let started = tokio::time::Instant::now();
    let blob = Blob::new(&client, "c", "b");
    tokio::select! {
        result = blob.put_block_from_url("AAAA", from, 0) => panic!("{result:?}"),
        () = async { while script.count() < 2 { tokio::time::sleep(std::time::Duration::from_secs(1)).await } } => {}
    }
    let waited = started.elapsed().as_secs();
    assert!((94..=125).contains(&waited), "30 s and a second for each MiB, looked at now and then: {waited}");
}
