//! `blobjet stat`: what is told of blobs, containers and accounts, and what of it is not for every credential to see.

use crate::cli_support::World;
use crate::world::{CONTAINER, World as Service};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::rest::blob::Blob;

#[tokio::test(flavor = "multi_thread")]
async fn everything_about_a_blob_its_container_and_the_account() {
    let service = Service::new().await;
    let attributes = Attributes {
        content_type: Some("text/plain".into()),
        metadata: vec![("owner".into(), "ops".into())],
        tags: vec![("t".into(), "1".into())],
        tier: Some("Cool".into()),
        ..Attributes::default()
    };
    service.put("d/a b", &attributes).await;
    service.put("d/a b2", &Attributes::default()).await;
    service.ask("d/a b", "snapshot", &[]).await;
    service.lease("d/a b", true).await;
    let mut world = World::new();
    world.know(&service.emulator);
    let url = format!("{}/{CONTAINER}", service.emulator.url());
    let blob = format!("{url}/d/a%20b");
    let ran = world.run(&["stat", &blob]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in [
        "access-tier: Cool",
        "lease-status: locked",
        "content-type: text/plain",
        "metadata: owner = ops",
        "tags: t = 1",
        "snapshots: 1",
    ] {
        assert!(ran.stdout.lines().any(|l| l == line), "{line}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("request-id"), "{}", ran.stdout);
    let line = world.run(&["stat", &blob, "--output-type=json"]).json().remove(0);
    assert_eq!((&line["type"], &line["what"]), (&"stat".into(), &"blob".into()));
    assert_eq!((&line["properties"]["x-ms-access-tier"], &line["metadata"]["owner"]), (&"Cool".into(), &"ops".into()));
    assert_eq!((&line["tags"]["t"], &line["snapshots"], &line["not_seen"]), (&"1".into(), &1.into(), &serde_json::json!([])));

    let seen = format!("{blob}?{}", service.sas("r"));
    let line = world.run(&["stat", &seen, "--output-type=json"]).json().remove(0);
    assert_eq!(line["not_seen"], serde_json::json!(["tags", "snapshots and versions"]));
    assert_eq!((&line["tags"], &line["properties"]["content-length"]), (&serde_json::Value::Null, &"0".into()));

    let ran = world.run(&["stat", &url]);
    assert!(
        ran.code == 0 && ran.stdout.starts_with("container: http://") && ran.stdout.contains("lease-state: available"),
        "{ran:?}"
    );
    let ran = world.run(&["stat", &service.emulator.url()]);
    assert!(ran.code == 0 && ran.stdout.contains("kind: StorageV2"), "{ran:?}");
    for (place, what) in [(format!("{url}/nothing"), "there is no blob"), (format!("{url}x"), "there is no container")] {
        let ran = world.run(&["stat", &place]);
        assert!(ran.code == 3 && ran.stderr.contains(what), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_blocks_of_a_blob_and_those_that_are_staged() {
    let service = Service::new().await;
    let blob = Blob::new(&service.client, CONTAINER, "x");
    let data = Chunks::from(b"abc".to_vec());
    blob.put_block("QUFB", &data, data.crc64()).await.unwrap();
    let mut world = World::new();
    world.know(&service.emulator);
    let url = format!("{}/{CONTAINER}/x", service.emulator.url());
    assert_eq!(world.run(&["stat", &url]).code, 3);
    let ran = world.run(&["stat", &url, "--blocks"]);
    assert!(
        ran.code == 0 && ran.stdout.contains("uncommitted blob: ") && ran.stdout.contains("  uncommitted QUFB 3\n"),
        "{ran:?}"
    );
    blob.put_block_list(["QUFB"], &Attributes::default(), Replace::Always).await.unwrap();
    blob.put_block("QkJC", &data, data.crc64()).await.unwrap();
    let ran = world.run(&["stat", &url, "--blocks"]);
    assert!(
        ran.stdout.ends_with("  committed QUFB 3\n  uncommitted QkJC 3\nblocks: 1 (3 B) committed, 1 (3 B) uncommitted\n"),
        "{ran:?}"
    );
    let lines = world.run(&["stat", &url, "--blocks", "--output-type=json"]).json();
    let blocks: Vec<_> = lines[1..].iter().map(|line| (line["id"].as_str().unwrap(), line["state"].as_str().unwrap())).collect();
    assert_eq!(blocks, [("QUFB", "committed"), ("QkJC", "uncommitted")]);
    assert_eq!(world.run(&["stat", &format!("{url}y"), "--blocks"]).code, 3);
    assert_eq!(world.run(&["stat", &service.emulator.url(), "--blocks"]).code, 2);
}
