//! `blobjet set-properties`: what changes, what stays, what is said before anything is sent.

use crate::cli_support::{Ran, World};
use crate::world::{CONTAINER, World as Service};
use blobjet::attributes::Attributes;
use blobjet::rest::blob::Blob;
use blobjet::rest::model::Tags;

fn attributes() -> Attributes {
    Attributes {
        content_type: Some("text/plain".into()),
        cache_control: Some("no-store".into()),
        metadata: vec![("k".into(), "v".into())],
        tags: vec![("t".into(), "1".into())],
        tier: Some("Hot".into()),
        ..Attributes::default()
    }
}

async fn with(names: &[&str]) -> (Service, World) {
    let service = Service::new().await;
    for name in names {
        service.put(name, &attributes()).await;
    }
    let mut world = World::new();
    world.know(&service.emulator);
    (service, world)
}

fn counts(ran: &Ran) -> [u64; 4] {
    let line = ran.json().pop().unwrap();
    ["total", "done", "failed", "skipped"].map(|name| line[name].as_u64().unwrap())
}

async fn get(service: &Service, name: &str, header: &str) -> Option<String> {
    service.properties(name).await.unwrap().get(header).map(str::to_owned)
}

/// semantics 63: what marks a folder stays marked.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_do_not_unmark_folders() {
    let (service, world) = with(&["d/a", "d/sub/b"]).await;
    let stub = Attributes { metadata: vec![("Hdi_IsFolder".into(), "true".into())], ..Attributes::default() };
    service.put("d/sub", &stub).await;
    let set = |option: &str| {
        let ran = world.run(&["set-properties", &service.at("d"), "--recursive", option, "--output-type=json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        counts(&ran)
    };
    assert_eq!(set("--metadata=x=1"), [3, 2, 0, 1]);
    for (name, header, value) in
        [("d/sub", "x-ms-meta-hdi_isfolder", Some("true")), ("d/sub", "x-ms-meta-x", None), ("d/sub/b", "x-ms-meta-x", Some("1"))]
    {
        assert_eq!(get(&service, name, header).await.as_deref(), value, "{name} {header}");
    }
    // Named by itself it is meant, and its metadata are replaced but for the mark.
    let ran = world.run(&["set-properties", &service.at("d/sub"), "--metadata=x=2"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for (header, value) in [("x-ms-meta-hdi_isfolder", "true"), ("x-ms-meta-x", "2")] {
        assert_eq!(get(&service, "d/sub", header).await.as_deref(), Some(value), "{header}");
    }
    assert_eq!(world.run(&["set-properties", &service.at("d/sub"), "--metadata=hdi_isfolder=false"]).code, 0);
    assert_eq!(get(&service, "d/sub", "x-ms-meta-hdi_isfolder").await.as_deref(), Some("false"), "that is for who says so");
    assert_eq!(world.run(&["set-properties", &service.at("d/sub"), "--metadata=hdi_isfolder=true"]).code, 0);
    // Everything else is set on them too, and leaves the mark.
    assert_eq!(set("--cache-control=no-store"), [3, 3, 0, 0]);
    assert_eq!(get(&service, "d/sub", "x-ms-meta-hdi_isfolder").await.as_deref(), Some("true"));
}

/// semantics 63: what is named is set, on one blob or many; everything else stays as it was.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_is_set_and_the_rest_stays() {
    let names = ["d/a", "d/b b", "d/e/f", "d-/x"];
    let (service, world) = with(&names).await;
    let before = service.emulator.seen().len();
    let ran = world.run(&["set-properties", &service.at("d"), "--recursive", "--block-blob-tier", "cool", "--output-type=json"]);
    assert_eq!((ran.code, counts(&ran)), (0, [3, 3, 0, 0]), "{ran:?}");
    let requests = service.requests(before);
    assert_eq!(requests.iter().filter(|request| request.starts_with("P")).collect::<Vec<_>>(), ["POST batch"]);
    for (name, tier) in names.iter().zip(["Cool", "Cool", "Cool", "Hot"]) {
        assert_eq!(get(&service, name, "x-ms-access-tier").await.as_deref(), Some(tier), "{name}");
    }
    let ran = world.run(&["set-properties", &service.at("d/a"), "--content-type=text/html", "--content-language", "de"]);
    assert!(ran.code == 0 && ran.stdout.contains("1 blobs changed in"), "{ran:?}");
    let expected = [
        ("content-type", Some("text/html")),
        ("content-language", Some("de")),
        ("cache-control", Some("no-store")),
        ("x-ms-meta-k", Some("v")),
        ("x-ms-tag-count", Some("1")),
    ];
    for (header, value) in expected {
        assert_eq!(get(&service, "d/a", header).await.as_deref(), value, "{header}");
    }
    let ran = world.run(&[
        "set-properties",
        &service.at("d/*"),
        "--metadata",
        "x=1;y=a=b",
        "--blob-tags",
        "p=q%20r",
        "--cache-control",
        "",
        "--output-type=json",
    ]);
    assert_eq!((ran.code, counts(&ran)), (0, [2, 2, 0, 0]), "{ran:?}");
    for name in ["d/a", "d/b b"] {
        let there = service.properties(name).await.unwrap();
        let mut metadata: Vec<_> = there.metadata().collect();
        metadata.sort_unstable();
        assert_eq!((metadata, there.get("cache-control")), (vec![("x", "1"), ("y", "a=b")], None));
        let tags = Blob::new(&service.client, CONTAINER, name).get_tags().await.unwrap();
        assert_eq!(tags, Tags(vec![("p".into(), "q r".into())]));
    }
    assert_eq!(get(&service, "d/e/f", "cache-control").await.as_deref(), Some("no-store"));
    assert_eq!(world.run(&["set-properties", &service.at("d/a"), "--metadata=", "--blob-tags=clear"]).code, 0);
    let there = service.properties("d/a").await.unwrap();
    assert_eq!((there.metadata().count(), there.get("x-ms-tag-count")), (0, None));
    let ran = world.run(&["set-properties", &service.at("d"), "--recursive", "--block-blob-tier=Hot", "--dry-run"]);
    assert_eq!((ran.code, ran.stdout.matches("DRYRUN: set-properties http://").count()), (0, 3), "{ran:?}");
    assert_eq!(get(&service, "d/a", "x-ms-access-tier").await.as_deref(), Some("Cool"));
}

/// Cases 18, 41: a right that is missing is said before anything is sent; a tier is the service's to judge, once.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said_at_once() {
    let (service, mut world) = with(&["d/a"]).await;
    let before = service.emulator.seen().len();
    world.set("AZURE_STORAGE_KEY", "");
    for (rights, flag, missing) in [
        ("rwl", "--blob-tags=a=b", "change blobs' tags: sp=rwl has no t"),
        ("rtl", "--metadata=a=b", "change blobs: sp=rtl has no w"),
        ("wtl", "--content-type=a/b", "read blobs: sp=wtl has no r"),
        ("wt", "--block-blob-tier=Cool", "list blobs: sp=wt has no l"),
    ] {
        let url = format!("{}?{}", service.at("d"), service.sas(rights));
        let ran = world.run(&["set-properties", &url, "--recursive", flag]);
        assert!(ran.code == 4 && ran.stderr.contains(missing), "{ran:?}");
    }
    let ran = world.run(&["set-properties", &service.at("d/a")]);
    assert!(ran.code == 2 && ran.stderr.contains("nothing to set"), "{ran:?}");
    assert_eq!(service.emulator.seen().len(), before);
    let url = format!("{}?{}", service.at("d/a"), service.sas("w"));
    let ran = world.run(&["set-properties", &url, "--block-blob-tier=Lukewarm", "--output-type=json"]);
    assert!(ran.code == 1 && ran.stdout.contains("InvalidHeaderValue"), "{ran:?}");
    assert_eq!(service.requests(before), ["PUT tier"]);
    let ran = world.run(&["set-properties", &format!("{}?{}", service.at("no"), service.sas("w")), "--metadata=a=b"]);
    assert!(ran.code == 3 && ran.stderr.contains("there is no blob"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_the_archive_takes_hours_and_that_is_said() {
    let (service, world) = with(&["d/a", "d/b"]).await;
    assert_eq!(world.run(&["set-properties", &service.at("d/*"), "--block-blob-tier=Archive"]).code, 0);
    let args = ["set-properties", &service.at("d/*"), "--block-blob-tier=Hot", "--rehydrate-priority=HIGH"];
    let ran = world.run(&args);
    assert!(ran.code == 0 && ran.stderr.contains("note: 2 of the blobs are on their way out of the archive"), "{ran:?}");
    assert_eq!(get(&service, "d/b", "x-ms-rehydrate-priority").await.as_deref(), Some("High"));
    let ran = world.run(&["set-properties", &service.at("d/a"), "--block-blob-tier=Cool"]);
    assert!(ran.code == 1 && ran.all().contains("BlobBeingRehydrated"), "{ran:?}");
}

/// semantics 61: what an earlier run has changed is not changed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_job_leaves_alone_what_is_done() {
    let (service, world) = with(&["d/a", "d/b", "d/leased"]).await;
    service.lease("d/leased", true).await;
    let ran = world.run(&["set-properties", &service.at("d"), "--recursive", "--metadata=run=1", "--output-type=json"]);
    assert_eq!((ran.code, counts(&ran)), (1, [3, 2, 1, 0]), "{ran:?}");
    let id = ran.json().pop().unwrap()["job_id"].as_str().unwrap().to_owned();
    service.lease("d/leased", false).await;
    let before = service.emulator.seen().len();
    let ran = world.run(&["jobs", "resume", &id, "--output-type=json"]);
    assert_eq!((ran.code, counts(&ran)), (0, [3, 1, 0, 2]), "{ran:?}");
    assert_eq!(service.requests(before), ["GET list", "PUT metadata"]);
    let job = world.run(&["jobs", "show", &id, "--output-type=json"]).json().remove(0);
    assert_eq!((&job["done"], &job["skipped"], &job["command"]), (&3.into(), &0.into(), &"set-properties".into()));
}
