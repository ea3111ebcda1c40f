//! `blobjet copy` from blob to blob: between embedded services and within one, by the service and through this machine.

use crate::cli_support::{Ran, World, emulator};
use crate::script::{Script, refusal};
use crate::world::{ODD_NAMES, client};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::emulator::Emulator;
use blobjet::endpoint::blob::{BlobSink, ContentTypes};
use blobjet::endpoint::blob_source::BlobSource;
use blobjet::endpoint::copy_sink::CopySink;
use blobjet::endpoint::{Item, Listing, Reader, Source, Task};
use blobjet::error::{Kind, Result};
use blobjet::rest::auth::Inputs;
use blobjet::rest::blob::{Blob, BlobProperties};
use blobjet::rest::client::Client;
use blobjet::rest::container::{Container, ListOptions};
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::{OnChange, Tuning};
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An embedded service, and what tests do to it directly.
struct Store {
    emulator: Emulator,
    client: Client,
}

impl Store {
    async fn with(containers: &[&str]) -> Store {
        let emulator = emulator().await;
        let client = client(&emulator.url(), &Inputs::default());
        for name in containers {
            assert!(Container::new(&client, name).create().await.unwrap());
        }
        Store { emulator, client }
    }

    async fn put(&self, container: &str, name: &str, data: impl AsRef<[u8]>, attributes: &Attributes) {
        let data = Chunks::from(data.as_ref().to_vec());
        let crc64 = data.crc64();
        Blob::new(&self.client, container, name).put_blob(&data, crc64, attributes, Replace::Always).await.unwrap();
    }

    async fn properties(&self, container: &str, name: &str) -> BlobProperties {
        Blob::new(&self.client, container, name).get_properties().await.unwrap().unwrap_or_else(|| panic!("no {name}"))
    }

    async fn names(&self, container: &str) -> Vec<String> {
        let page = Container::new(&self.client, container).list(&ListOptions::default()).await.unwrap();
        page.blobs().map(|blob| blob.name.clone()).collect()
    }

    async fn get(&self, container: &str, name: &str) -> Vec<u8> {
        use blobjet::rest::auth::Need;
        use blobjet::rest::client::Op;
        use blobjet::rest::request::Request;
        let path = self.client.location().blob_path(container, name);
        self.client.send(Request::new(http::Method::GET, path), Op::new("get", Need::READ)).await.unwrap().body.to_vec()
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/{rest}", self.emulator.url())
    }

    fn sas_url(&self, container: &str, sp: &str) -> String {
        use blobjet::rest::auth::sas::{Fields, mint};
        use blobjet::rest::auth::shared_key::decode_key;
        let text = |text: &str| Some(text.to_owned());
        let fields =
            Fields { sv: text("2025-11-05"), sr: text("c"), sp: text(sp), se: text("2099-01-01T00:00:00Z"), ..Fields::default() };
        let key = decode_key(self.emulator.key()).unwrap();
        let token = mint(self.emulator.account(), &key, &fields, Some((container, None)));
        self.url(&format!("{container}?{}", token.expose()))
    }

    /// How often each operation was asked for.
    fn served(&self) -> BTreeMap<String, u64> {
        self.emulator.served().into_iter().map(|served| (served.operation, served.requests)).collect()
    }
}

fn carried() -> Attributes {
    let text = |text: &str| Some(text.to_owned());
    Attributes {
        content_type: text("text/x-own"),
        content_encoding: text("gzip"),
        content_language: text("de"),
        content_disposition: text("inline; filename=\"a b\""),
        cache_control: text("no-cache"),
        content_md5: None,
        metadata: vec![("color".into(), "blue".into()), ("b_2".into(), "x=y;z".into())],
        tags: vec![("t 1".into(), "a/b".into())],
        tier: text("Cool"),
    }
}

/// All that a copy keeps, as text to compare.
async fn kept(store: &Store, container: &str, name: &str) -> Vec<String> {
    let there = store.properties(container, name).await;
    let plain = [
        "content-type",
        "content-encoding",
        "content-language",
        "content-disposition",
        "cache-control",
        "content-md5",
        "x-ms-access-tier",
    ];
    let mut all: Vec<String> = plain.iter().map(|header| format!("{header}: {}", there.get(header).unwrap_or("-"))).collect();
    let mut metadata: Vec<String> = there.metadata().map(|(name, value)| format!("{name}={value}")).collect();
    metadata.sort();
    all.extend(metadata);
    let tags = Blob::new(&store.client, container, name).get_tags().await.unwrap();
    all.extend(tags.0.iter().map(|(name, value)| format!("tag {name}={value}")));
    all
}

fn ok(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}", ran.all());
}

// semantics 80
#[tokio::test(flavor = "multi_thread")]
async fn the_service_copies_by_itself_in_the_fewest_requests() {
    let (world, from, to) = (World::new(), Store::with(&["src"]).await, Store::with(&["dst"]).await);
    let large: Vec<u8> = (0..700_000u32).flat_map(u32::to_le_bytes).collect();
    from.put("src", "d/small", "small", &Attributes::default()).await;
    from.put("src", "d/empty", "", &Attributes::default()).await;
    from.put("src", "d/large", &large, &Attributes::default()).await;
    let (before, source, target) = (to.served(), from.url("src/d/"), to.url("dst"));
    let sizes = ["--block-size-mb", "1", "--put-blob-size-mb", "1"];
    let args = [&["copy", &source, &target, "--recursive"], &sizes[..]].concat();
    ok(&world.run(&args));
    assert_eq!(to.names("dst").await, ["d/empty", "d/large", "d/small"]);
    assert_eq!(to.get("dst", "d/large").await, large);
    assert_eq!(to.get("dst", "d/empty").await, b"");
    let mut asked = to.served();
    for (operation, count) in before {
        *asked.get_mut(&operation).unwrap() -= count;
    }
    let counts = |name: &str| asked.get(name).copied().unwrap_or(0);
    assert_eq!((counts("PutBlobFromUrl"), counts("PutBlockFromUrl"), counts("PutBlockList")), (2, 3, 1), "{asked:?}");
    assert_eq!((counts("PutBlob"), counts("PutBlock")), (0, 0), "nothing goes through this machine");
}

// semantics 80
#[tokio::test(flavor = "multi_thread")]
async fn names_are_kept_byte_for_byte_with_a_key_and_with_a_sas() {
    let (world, from, to) = (World::new(), Store::with(&["src"]).await, Store::with(&["key", "sas", "stream"]).await);
    for name in ODD_NAMES {
        from.put("src", &format!("d/{name}"), name, &Attributes::default()).await;
    }
    let with_sas = from.sas_url("src", "rl");
    let sas_to = to.sas_url("sas", "cw");
    let (key, stream) = (from.url("src"), to.url("stream"));
    ok(&world.run(&["copy", &key, &to.url("key"), "--recursive"]));
    ok(&world.run(&["copy", &with_sas, &sas_to, "--recursive"]));
    ok(&world.run(&["copy", &with_sas, &stream, "--recursive", "--stream"]));
    let there = from.names("src").await;
    assert_eq!(there.len(), ODD_NAMES.len());
    for container in ["key", "sas", "stream"] {
        assert_eq!(to.names(container).await, there, "{container}");
        for name in &there {
            assert_eq!(to.get(container, name).await, name.strip_prefix("d/").unwrap().as_bytes(), "{container} {name}");
        }
    }
}

// semantics 82
#[tokio::test(flavor = "multi_thread")]
async fn a_blob_keeps_what_it_carries_whichever_way_its_bytes_take() {
    let (world, store) = (World::new(), Store::with(&["src", "dst"]).await);
    let data = vec![7; 600_000];
    store.put("src", "a", &data, &carried()).await;
    let expected = kept(&store, "src", "a").await;
    assert!(
        expected.contains(&"x-ms-access-tier: Cool".to_owned()) && expected.contains(&"tag t 1=a/b".to_owned()),
        "{expected:?}"
    );
    let blocks = ["--block-size-mb", "0.25"];
    // A report has the source timed, which must not be in the way.
    let timed = ["--report", "run.json"];
    let copied = async |target: &str, flags: &[&str]| {
        let (from, to) = (store.url("src/a"), store.url(&format!("dst/{target}")));
        ok(&world.run(&[&["copy", &from, &to], flags].concat()));
        assert_eq!(store.get("dst", target).await, data);
        kept(&store, "dst", target).await
    };
    let tags = "--s2s-preserve-blob-tags";
    assert_eq!(copied("whole", &[&timed[..], &[tags]].concat()).await, expected);
    assert_eq!(copied("blocks", &[&blocks[..], &[tags]].concat()).await, expected);
    assert_eq!(copied("stream", &["--stream", tags]).await, expected);
    assert_eq!(copied("streamed-blocks", &[&blocks[..], &["--stream", tags]].concat()).await, expected);
    // By default without tags.
    let untagged: Vec<String> = expected.iter().filter(|line| !line.starts_with("tag ")).cloned().collect();
    assert_eq!(copied("untagged", &[]).await, untagged);
    // What is asked for wins, the rest stays.
    let flags = ["--content-type", "a/b", "--metadata", "Color=red", "--block-blob-tier", "Hot"];
    for (target, more) in [("asked", &[][..]), ("asked-blocks", &blocks)] {
        let asked = copied(target, &[&flags[..], more].concat()).await;
        for line in ["content-type: a/b", "x-ms-access-tier: Hot", "color=red", "b_2=x=y;z", "content-language: de"] {
            assert!(asked.contains(&line.to_owned()), "{target}: {line} in {asked:?}");
        }
    }
    // And nothing where nothing is to be kept: the service would take metadata that a request does not name.
    let bare = ["--s2s-preserve-properties=false", "--s2s-preserve-access-tier=false"];
    for (target, more) in [("bare", &[][..]), ("bare-blocks", &blocks), ("bare-stream", &["--stream"])] {
        let asked = copied(target, &[&bare[..], more].concat()).await;
        assert_eq!(asked[0], "content-type: application/octet-stream", "{target}");
        assert!(asked[1..5].iter().all(|line| line.ends_with(": -")) && asked.len() == 7, "{target}: {asked:?}");
        assert_eq!(asked[6], "x-ms-access-tier: Hot", "the account's default");
    }
}

/// A source that lets something happen between its listing and the opening of what it lists.
struct Meanwhile<F>(BlobSource, F);

impl<F: Fn() -> Task<'static, ()> + Send + Sync> Source for Meanwhile<F> {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            let (sender, mut listed) = tokio::sync::mpsc::channel(1);
            let (result, all) = tokio::join!(self.0.list(sender), async {
                let mut all = Vec::new();
                while let Some(batch) = listed.recv().await {
                    all.extend(batch);
                }
                all
            });
            (self.1)().await;
            let _ = out.send(all).await;
            result
        })
    }

    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        self.0.open(item)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

// semantics 81
#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_is_replaced_meanwhile_is_copied_in_one_version_or_not_at_all() {
    for (on_change, len) in [(OnChange::Fail, 5), (OnChange::Retry, 5), (OnChange::Fail, 50), (OnChange::Retry, 50)] {
        let store = Arc::new(Store::with(&["src", "dst"]).await);
        store.put("src", "p/a", vec![b'o'; len], &Attributes::default()).await;
        let replaced = Arc::clone(&store);
        let replace = move || -> Task<'static, ()> {
            let store = Arc::clone(&replaced);
            Box::pin(async move { store.put("src", "p/a", vec![b'n'; len], &Attributes::default()).await })
        };
        let opening = blobjet::endpoint::open::Opening { recursive: true, ..Default::default() };
        let blobs = blobjet::endpoint::open_blobs::blobs(store.client.clone(), "src", Some("p/"), &opening).unwrap();
        let sink = BlobSink::new(store.client.clone(), "dst", Attributes::default(), ContentTypes::Service);
        let progress = Progress::new(None);
        let tuning = Tuning { block_size: 10, whole_limit: 10, on_change, ..Tuning::default() };
        let job = Job {
            source: Arc::new(Meanwhile(blobs, replace)),
            sink: Arc::new(CopySink::new(sink)),
            tuning,
            prompt: None,
            earlier: None,
        };
        let summary = run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
        if on_change == OnChange::Retry {
            assert_eq!((summary.counts.done, store.get("dst", "p/a").await), (1, vec![b'n'; len]));
        } else {
            let kinds: Vec<Kind> = progress.failures().iter().map(|group| group.kind).collect();
            assert_eq!((kinds, store.names("dst").await), (vec![Kind::SourceChanged], vec![]));
        }
    }
}

// semantics 81
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_blob_fails_alone_and_is_not_asked_for() {
    let (world, from, to) = (World::new(), Store::with(&["src"]).await, Store::with(&["dst"]).await);
    let archived = Attributes { tier: Some("Archive".into()), ..Attributes::default() };
    from.put("src", "cold", "1", &archived).await;
    from.put("src", "warm", "2", &Attributes::default()).await;
    let ran = world.run(&["copy", &from.url("src"), &to.url("dst"), "--recursive"]);
    assert_eq!((ran.code, to.names("dst").await), (1, vec!["warm".to_owned()]), "{}", ran.all());
    assert!(ran.all().contains("archive tier") && ran.all().contains("set-properties"), "{}", ran.all());
    assert_eq!(to.served()["PutBlobFromUrl"], 1);
}

// semantics 83
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_fetch_says_so_once_and_the_bytes_can_go_through_here() {
    let (world, from) = (World::new(), Store::with(&["src"]).await);
    for i in 0..40 {
        from.put("src", &format!("{i:02}"), "x", &Attributes::default()).await;
    }
    // As Azurite answers.
    let script = Script::start(|_, _| refusal(501, "APINotImplemented")).await;
    let target = format!("http://{}/devstoreaccount1/dst", script.address);
    let ran = world.run(&["copy", &from.url("src"), &target, "--recursive", "--concurrency", "2"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert_eq!(ran.stderr.matches("cannot fetch").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("--stream"), "{}", ran.stderr);
    assert!(script.count() <= 4, "{} requests", script.count());

    let to = Store::with(&["dst"]).await;
    ok(&world.run(&["copy", &from.url("src"), &to.url("dst"), "--recursive", "--stream"]));
    assert_eq!(to.names("dst").await.len(), 40);
    assert_eq!((to.served()["PutBlob"], to.served().get("PutBlobFromUrl")), (40, None));
    // What only this machine can reach is not even tried.
    let ran = world.run(&["copy", &from.url("src/00"), "https://acct1.blob.core.windows.net/cont"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.stderr.contains("--stream"), "{}", ran.stderr);
}

// semantics 84
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_goes_on_where_it_was_interrupted_without_state_here() {
    let (from, to) = (Store::with(&["src"]).await, Store::with(&["dst"]).await);
    let data: Vec<u8> = (0..500_000u32).flat_map(u32::to_le_bytes).collect();
    from.put("src", "a", &data, &Attributes::default()).await;
    let copy = |world: &World| world.run(&["copy", &from.url("src/a"), &to.url("dst/a"), "--block-size-mb", "0.25"]);
    to.emulator.fault("op=PutBlockList,nth=1,status=403/AuthorizationFailure".parse().unwrap());
    assert_eq!(copy(&World::new()).code, 4);
    let staged = to.served()["PutBlockFromUrl"];
    assert_eq!(staged, 8);
    ok(&copy(&World::new()));
    assert_eq!((to.served()["PutBlockFromUrl"], to.get("dst", "a").await), (staged, data.clone()));
    // Of another version nothing is taken over.
    to.emulator.fault("op=PutBlockList,nth=1,status=403/AuthorizationFailure".parse().unwrap());
    assert_eq!(copy(&World::new()).code, 4);
    let other: Vec<u8> = data.iter().map(|byte| !byte).collect();
    from.put("src", "a", &other, &Attributes::default()).await;
    let staged = to.served()["PutBlockFromUrl"];
    ok(&copy(&World::new()));
    assert_eq!((to.served()["PutBlockFromUrl"], to.get("dst", "a").await), (staged + 8, other));
}

/// Rows of the table of docs/landing.md: source, destination, flags, names it lands as.
fn landing_rows() -> Vec<[String; 4]> {
    let text = include_str!("../../docs/landing.md");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    text.lines()
        .filter(|line| line.starts_with("| S ") || line.starts_with("| S/"))
        .map(|line| cells(line).try_into().unwrap_or_else(|_| panic!("four cells: {line}")))
        .collect()
}

// semantics 17
#[tokio::test(flavor = "multi_thread")]
async fn blobs_land_where_the_table_says() {
    let (world, from) = (World::new(), Store::with(&["src"]).await);
    for name in ["d/a.txt", "d/s/b.txt", "f.txt"] {
        from.put("src", name, "x", &Attributes::default()).await;
    }
    let rows = landing_rows();
    assert!(rows.len() >= 10, "{} rows", rows.len());
    for [source, target, flags, expected] in rows {
        let to = Store::with(&["dst"]).await;
        let (source_url, target_url) = (from.url(&source.replacen('S', "src", 1)), to.url(&target.replacen('C', "dst", 1)));
        let args = ["copy", &source_url, &target_url, "--recursive"].into_iter().chain(flags.split_whitespace());
        ok(&world.run(&args.collect::<Vec<_>>()));
        assert_eq!(to.names("dst").await.join(", "), expected.replace("S/", "src/"), "{source} to {target} {flags}");
    }
    let same = world.run(&["copy", &from.url("src/d"), &from.url("src"), "--recursive"]);
    assert_eq!(same.code, 2, "{}", same.all());
    assert!(same.stderr.contains("the same"), "{}", same.stderr);
}

// semantics 85
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_account_is_copied_container_by_container() {
    let (world, from) = (World::new(), Store::with(&["one", "two", "three", "empty"]).await);
    for (container, name) in [("one", "d/a"), ("two", "d/a"), ("three", "b")] {
        from.put(container, name, format!("{container} {name}"), &carried()).await;
    }
    let flags = ["--recursive", "--exclude-container", "three"];
    for stream in [&[][..], &["--stream"]] {
        let to = Store::with(&["two"]).await;
        let (source, target) = (from.emulator.url(), to.emulator.url());
        let args = [&["copy", &source, &target], &flags[..], stream].concat();
        let planned = world.run(&[&args[..], &["--dry-run"]].concat());
        assert!(planned.stdout.contains("/one/d/a") && !to.served().contains_key("PutBlobFromUrl"), "{}", planned.all());
        ok(&world.run(&args));
        for container in ["one", "two"] {
            assert_eq!(to.get(container, "d/a").await, format!("{container} d/a").as_bytes());
        }
        assert_eq!(to.names("empty").await, Vec::<String>::new());
        assert_eq!(Container::new(&to.client, "three").get_properties().await.unwrap().map(drop), None);
    }
    let (account, container) = (from.emulator.url(), from.url("one"));
    for (source, target) in [(&account, &container), (&container, &account)] {
        assert_eq!(world.run(&["copy", source, target, "--recursive"]).code, 2);
    }
    let same = world.run(&["copy", &account, &account, "--recursive"]);
    assert!(same.code == 2 && same.stderr.contains("the same"), "{}", same.all());
}

#[tokio::test(flavor = "multi_thread")]
async fn places_of_the_embedded_service_on_both_sides() {
    let world = World::new();
    world.write("d/a.txt", "hello");
    ok(&world.run(&["copy", "d", "dev://box", "--recursive"]));
    ok(&world.run(&["copy", "dev://box", "dev://other", "--recursive"]));
    let listed = world.run(&["list", "dev://other"]);
    assert!(listed.stdout.contains("d/a.txt"), "{}", listed.all());
}

// semantics 80
#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_ignored_is_refused() {
    let (world, store) = (World::new(), Store::with(&["src", "dst"]).await);
    store.put("src", "a", "1", &Attributes::default()).await;
    let (from, to) = (store.url("src/a"), store.url("dst/a"));
    for flag in ["--put-md5", "--cap-mbps=8", "--follow-symlinks", "--decompress"] {
        let ran = world.run(&["copy", &from, &to, flag]);
        assert_eq!(ran.code, 2, "{flag}: {}", ran.all());
    }
    ok(&world.run(&["copy", &from, &to, "--put-md5", "--cap-mbps=800", "--stream"]));
}
