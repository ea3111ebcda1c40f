//! Uploads of real files to the embedded service: bytes, requests, properties, conditions, access.

use crate::double::pattern;
use crate::sources::tree;
use crate::world::{CONTAINER, World, client, local};
use blobjet::attributes::Attributes;
use blobjet::emulator::Emulator;
use blobjet::endpoint::blob::{BlobSink, ContentTypes};
use blobjet::endpoint::file::ReadMode;
use blobjet::endpoint::open::Opening;
use blobjet::endpoint::{BlockId, Item, Payload, Sink, mime};
use blobjet::error::Kind;
use blobjet::rest::auth::Inputs;
use blobjet::rest::auth::sas::{Fields, mint};
use blobjet::rest::auth::shared_key::decode_key;
use blobjet::rest::blob::Blob;
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::{Overwrite, Tuning};
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use blobjet::units::MIB;
use std::collections::HashMap;
use std::fs::{self, File};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Larger than what is mapped from.
const B: u64 = 2 * MIB;

fn tuning() -> Tuning {
    Tuning { block_size: B, whole_limit: B, ..Tuning::default() }
}

fn recursive() -> Opening {
    Opening { recursive: true, ..Opening::default() }
}

// semantics 1, 7, 8
#[tokio::test(flavor = "multi_thread")]
async fn sizes_round_trip_with_the_fewest_requests() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    for read in [ReadMode::Auto, ReadMode::Pread] {
        for (len, blocks) in [(0, 0), (1, 0), (B - 1, 0), (B, 0), (B + 1, 2), (2 * B, 2), (2 * B + 1, 3)] {
            let data = pattern(usize::try_from(len).unwrap());
            let path = dir.path().join("f");
            fs::write(&path, &data).unwrap();
            let before = world.emulator.seen().len();
            let source = local(&path, &Opening { read, ..Opening::default() });
            let (summary, _) = world.upload(source, world.sink(), tuning()).await;
            assert_eq!((summary.counts.done, summary.counts.bytes_sent), (1, len));
            let mut requests = world.requests(before);
            requests.sort();
            let mut expected = vec!["PUT block"; blocks];
            match blocks {
                0 => expected.push("PUT"),
                _ => expected.splice(0..0, ["GET blocklist"]).for_each(drop),
            }
            if blocks > 0 {
                expected.push("PUT blocklist");
            }
            assert_eq!(requests, expected, "{len} bytes");
            assert!(world.get("f").await == data, "{len} bytes, {read:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_lands_whole_one_request_a_file() {
    let world = World::new().await;
    let files: Vec<String> = (0..300).map(|i| format!("d/{}/{i}.txt", i % 7)).collect();
    let dir = tree(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let before = world.emulator.seen().len();
    let (summary, _) = world.upload(local(&dir.path().join("d"), &recursive()), world.sink(), tuning()).await;
    assert_eq!((summary.counts.listed, summary.counts.done), (300, 300));
    let requests = world.requests(before);
    assert_eq!((requests.len(), requests.iter().filter(|r| *r == "PUT").count()), (300, 300));
    let mut expected = files.clone();
    expected.sort();
    assert_eq!(world.names().await, expected);
    for name in [&files[0], &files[299]] {
        assert_eq!(world.get(name).await, name.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_the_same_in_one_request_and_in_blocks() {
    let world = World::new().await;
    let attributes = Attributes {
        content_encoding: Some("gzip".into()),
        content_language: Some("de".into()),
        content_disposition: Some("attachment".into()),
        cache_control: Some("max-age=60".into()),
        metadata: vec![("one".into(), "1".into()), ("Two".into(), "a=b;c".into())],
        tags: vec![("project".into(), "x y".into())],
        tier: Some("Cool".into()),
        ..Attributes::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let mut seen: Vec<HashMap<&str, String>> = Vec::new();
    for (name, len) in [("small.json", 10), ("large.json", 3 * B)] {
        let path = dir.path().join(name);
        fs::write(&path, pattern(usize::try_from(len).unwrap())).unwrap();
        let types = ContentTypes::ByName { otherwise: mime::DEFAULT };
        let sink = BlobSink::new(world.client.clone(), CONTAINER, attributes.clone(), types);
        world.upload(local(&path, &Opening::default()), sink, tuning()).await;
        let there = world.properties(name).await.unwrap();
        let headers = [
            "content-type",
            "content-encoding",
            "content-language",
            "content-disposition",
            "cache-control",
            "x-ms-meta-one",
            "x-ms-meta-two",
            "x-ms-tag-count",
            "x-ms-access-tier",
        ];
        seen.push(headers.into_iter().filter_map(|h| there.get(h).map(|v| (h, v.to_owned()))).collect());
    }
    let expected = HashMap::from(
        [
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
            ("content-language", "de"),
            ("content-disposition", "attachment"),
            ("cache-control", "max-age=60"),
            ("x-ms-meta-one", "1"),
            ("x-ms-meta-two", "a=b;c"),
            ("x-ms-tag-count", "1"),
            ("x-ms-access-tier", "Cool"),
        ]
        .map(|(name, value)| (name, value.to_owned())),
    );
    assert_eq!(seen, [expected.clone(), expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_types_come_from_the_name_unless_given() {
    let world = World::new().await;
    let dir = tree(&["a.svg", "b.zzz", "c"]);
    let by_name = |otherwise| ContentTypes::ByName { otherwise };
    let given = Attributes { content_type: Some("x/y".into()), ..Attributes::default() };
    for (file, attributes, types, expected) in [
        ("a.svg", Attributes::default(), by_name(mime::DEFAULT), "image/svg+xml"),
        ("b.zzz", Attributes::default(), by_name(mime::DEFAULT), "application/octet-stream"),
        ("c", Attributes::default(), by_name("text/plain"), "text/plain"),
        ("a.svg", Attributes::default(), ContentTypes::Service, "application/octet-stream"),
        ("a.svg", given.clone(), by_name(mime::DEFAULT), "x/y"),
        ("a.svg", given, ContentTypes::Service, "x/y"),
    ] {
        let sink = BlobSink::new(world.client.clone(), CONTAINER, attributes, types);
        world.upload(local(&dir.path().join(file), &Opening::default()), sink, tuning()).await;
        assert_eq!(world.properties(file).await.unwrap().get("content-type"), Some(expected), "{file} {types:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_md5_is_stored_when_asked_for() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    // md5sum | xxd -r -p | base64 of as many zeros.
    for (name, len, md5) in [("small", 10, "pjyQzDaErYsKIXamqP6QBQ=="), ("large", 3 * B, "2moNCX4wesUu2bStVRgB/A==")] {
        let path = dir.path().join(name);
        fs::write(&path, vec![0; usize::try_from(len).unwrap()]).unwrap();
        let source = local(&path, &Opening::default());
        world.upload(source, world.sink(), Tuning { put_md5: true, ..tuning() }).await;
        assert_eq!(world.properties(name).await.unwrap().get("content-md5"), Some(md5), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_travel_with_the_write() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3600);
    for (name, len, requests) in [("small", 10, 1), ("large", 3 * B, 1)] {
        let path = dir.path().join(name);
        fs::write(&path, pattern(usize::try_from(len).unwrap())).unwrap();
        let upload = |overwrite| world.upload(local(&path, &Opening::default()), world.sink(), Tuning { overwrite, ..tuning() });
        let touch = |time| File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        let (summary, _) = upload(Overwrite::False).await;
        assert_eq!(summary.counts.done, 1, "{name}: nothing is there");
        let before = world.emulator.seen().len();
        let (summary, _) = upload(Overwrite::False).await;
        assert_eq!((summary.counts.done, summary.counts.skipped), (0, 1), "{name}: it is there");
        assert_eq!(world.emulator.seen().len() - before, requests, "{name}");
        touch(SystemTime::now() - hour);
        let (summary, _) = upload(Overwrite::IfSourceNewer).await;
        assert_eq!((summary.counts.done, summary.counts.skipped), (0, 1), "{name}: ours is older");
        touch(SystemTime::now() + hour);
        let (summary, _) = upload(Overwrite::IfSourceNewer).await;
        assert_eq!((summary.counts.done, summary.counts.skipped), (1, 0), "{name}: ours is newer");
        for (ahead_ms, done) in [(0, 0), (500, 1), (1000, 1)] {
            let theirs = world.sink().look(name).await.unwrap().unwrap().modified.unwrap();
            touch(theirs + Duration::from_millis(ahead_ms));
            let (summary, _) = upload(Overwrite::IfSourceNewer).await;
            assert_eq!((summary.counts.done, summary.counts.skipped), (done, 1 - done), "{name}: {ahead_ms} ms ahead");
        }
    }
}

pub(crate) fn sas(emulator: &Emulator, permissions: &str) -> String {
    let text = |t: &str| Some(t.to_owned());
    let fields = Fields {
        sv: text("2025-11-05"),
        sr: text("c"),
        sp: text(permissions),
        se: text("2099-01-01T00:00:00Z"),
        ..Fields::default()
    };
    let key = decode_key(emulator.key()).unwrap();
    let token = mint(emulator.account(), &key, &fields, Some((CONTAINER, None)));
    format!("{}/{CONTAINER}?{}", emulator.url(), token.expose())
}

// semantics 7
#[tokio::test(flavor = "multi_thread")]
async fn a_sas_that_may_only_write_or_create_will_do() {
    let world = World::new().await;
    let dir = tree(&["d/small"]);
    fs::write(dir.path().join("d/large"), pattern(usize::try_from(3 * B).unwrap())).unwrap();
    for permissions in ["w", "c"] {
        let client = client(&sas(&world.emulator, permissions), &Inputs::default());
        for overwrite in [Overwrite::False, Overwrite::True] {
            let sink = BlobSink::new(client.clone(), CONTAINER, Attributes::default(), ContentTypes::Service);
            let dest = Some(format!("{permissions}/{overwrite:?}"));
            let source = local(&dir.path().join("d"), &Opening { dest, ..recursive() });
            let (summary, progress) = world.upload(source, sink, Tuning { overwrite, ..tuning() }).await;
            assert_eq!(summary.counts.done, 2, "{permissions} {overwrite:?}: {:?}", progress.failures());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_bars_every_file_is_said_once() {
    let world = World::new().await;
    let files: Vec<String> = (0..200).map(|i| format!("d/{i}")).collect();
    let dir = tree(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let readonly = client(&sas(&world.emulator, "r"), &Inputs::default());
    for (client, container, kind) in
        [(readonly, CONTAINER, Kind::AccessRefused), (world.client.clone(), "none", Kind::ContainerNotFound)]
    {
        let before = world.emulator.seen().len();
        let sink = Arc::new(BlobSink::new(client, container, Attributes::default(), ContentTypes::Service));
        let source = local(&dir.path().join("d"), &recursive());
        let progress = Progress::new(None);
        let job = Job { source, sink, tuning: tuning(), prompt: None, earlier: None };
        let error = run(job, Arc::clone(&progress), Stop::never()).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(world.emulator.seen().len() - before <= 32, "not once a file");
        let counts = progress.snapshot();
        assert_eq!((counts.done, counts.pending()), (0, 0));
    }
}

// semantics 2, 5
#[tokio::test(flavor = "multi_thread")]
async fn a_file_cut_short_under_way_is_not_committed_and_the_old_blob_stays() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    world.upload(local(&path, &Opening::default()), world.sink(), tuning()).await;
    fs::write(&path, pattern(usize::try_from(8 * B).unwrap())).unwrap();

    /// Cuts the file when the first block has arrived.
    struct Cutting(BlobSink, std::path::PathBuf);
    impl Sink for Cutting {
        fn limits(&self) -> blobjet::endpoint::Limits {
            self.0.limits()
        }
        fn check_name(&self, target: &str) -> blobjet::Result<()> {
            self.0.check_name(target)
        }
        fn put<'a>(
            &'a self,
            target: &'a str,
            payload: blobjet::endpoint::Payload,
            finish: blobjet::endpoint::Finish<'a>,
        ) -> blobjet::endpoint::Task<'a, blobjet::Result<blobjet::endpoint::Receipt>> {
            self.0.put(target, payload, finish)
        }
        fn put_block<'a>(
            &'a self,
            target: &'a str,
            id: blobjet::endpoint::BlockId,
            payload: blobjet::endpoint::Payload,
        ) -> blobjet::endpoint::Task<'a, blobjet::Result<blobjet::endpoint::Receipt>> {
            Box::pin(async move {
                let receipt = self.0.put_block(target, id, payload).await?;
                File::options().write(true).open(&self.1).unwrap().set_len(1000).unwrap();
                Ok(receipt)
            })
        }
        fn commit<'a>(
            &'a self,
            target: &'a str,
            ids: &'a [blobjet::endpoint::BlockId],
            finish: blobjet::endpoint::Finish<'a>,
        ) -> blobjet::endpoint::Task<'a, blobjet::Result<blobjet::endpoint::Receipt>> {
            self.0.commit(target, ids, finish)
        }
        fn look<'a>(&'a self, target: &'a str) -> blobjet::endpoint::Task<'a, blobjet::Result<Option<blobjet::endpoint::Facts>>> {
            self.0.look(target)
        }
        fn describe(&self, target: &str) -> String {
            self.0.describe(target)
        }
    }
    for read in [ReadMode::Mmap, ReadMode::Pread] {
        fs::write(&path, pattern(usize::try_from(8 * B).unwrap())).unwrap();
        let source = local(&path, &Opening { read, ..Opening::default() });
        let progress = Progress::new(None);
        let sink = Arc::new(Cutting(world.sink(), path.clone()));
        let job = Job { source, sink, tuning: tuning(), prompt: None, earlier: None };
        let summary = run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
        assert_eq!((summary.counts.done, summary.counts.failed), (0, 1));
        assert_eq!(progress.failures()[0].kind, Kind::SourceChanged, "{read:?}");
        assert_eq!(world.get("f").await, b"old");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_vanish_before_they_are_sent_fail_at_once() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, pattern(usize::try_from(4 * B).unwrap())).unwrap();
    let item = Item::new(path.to_str().unwrap(), "f");
    let source = local(&path, &Opening { read: ReadMode::Mmap, ..Opening::default() });
    let reader = source.open(&item).await.unwrap();
    let data = reader.read(0, 4 * B).await.unwrap();
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    // Nobody has looked at the bytes since: the kernel is the first to find them gone.
    let id = BlockId([1; 32]);
    let error = world.sink().put_block("f", id, Payload { data, crc64: 0 }).await.unwrap_err();
    assert_eq!(error.kind(), Kind::SourceChanged, "{error:?}");
    assert!(error.attempts().is_none_or(|tries| tries.count <= 3), "{:?}", error.attempts());
}

// semantics 6
#[tokio::test(flavor = "multi_thread")]
async fn two_writers_leave_one_of_the_two() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let contents: Vec<Vec<u8>> = (1..=2).map(|n| vec![n; usize::try_from(20 * B).unwrap()]).collect();
    let uploads = contents.iter().enumerate().map(|(i, data)| {
        let path = dir.path().join(format!("f{i}"));
        fs::write(&path, data).unwrap();
        let source = local(&path, &Opening { dest: Some("x".into()), ..Opening::default() });
        world.upload(source, world.sink(), tuning())
    });
    let ended = futures_join(uploads).await;
    let counts: Vec<_> = ended.iter().map(|(summary, _)| (summary.counts.done, summary.counts.bytes_there())).collect();
    assert_eq!(counts, [(1, 20 * B); 2], "the later commit finds its blocks gone and sends them again");
    let there = world.get("x").await;
    assert!(contents.contains(&there), "one whole file");
    let list = Blob::new(&world.client, CONTAINER, "x").get_block_list(blobjet::rest::model::BlockListType::Committed).await;
    assert_eq!(list.unwrap().unwrap().committed.len(), 20);
}

/// Both at the same time, on this task.
async fn futures_join<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(move |cx| {
        for (future, output) in &mut futures {
            if output.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(cx)
            {
                *output = Some(value);
            }
        }
        match futures.iter().all(|(_, output)| output.is_some()) {
            true => std::task::Poll::Ready(futures.iter_mut().filter_map(|(_, output)| output.take()).collect()),
            false => std::task::Poll::Pending,
        }
    })
    .await
}
