//! What every source and every sink promises, run over each of them. A new endpoint starts here.

use crate::double::{Given, Memory, Store, pattern};
use crate::world::{CONTAINER, World, local};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::endpoint::file::ReadMode;
use blobjet::endpoint::open::Opening;
use blobjet::endpoint::open_blobs::blobs;
use blobjet::endpoint::{BlockId, Facts, Finish, Found, Item, Payload, Reader, Same, Sink, Source};
use blobjet::error::Kind;
use blobjet::rest::blob::Blob;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const LEN: usize = 3_000_001;

async fn the_one_item(source: &Arc<dyn Source>) -> Item {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let lister = Arc::clone(source);
    let listing = tokio::spawn(async move { lister.list(sender).await });
    let mut items = Vec::new();
    while let Some(batch) = receiver.recv().await {
        items.extend(batch);
    }
    listing.await.unwrap().unwrap();
    assert_eq!(items.len(), 1);
    match items.remove(0) {
        Found::Item(item) => item,
        other => panic!("{other:?}"),
    }
}

async fn read(reader: &dyn Reader, offset: usize, len: usize) -> Vec<u8> {
    let data = reader.read(offset as u64, len as u64).await.unwrap();
    let bytes: Vec<u8> = data.iter().flat_map(|b| b.to_vec()).collect();
    assert_eq!(bytes.len() as u64, data.len());
    bytes
}

/// Over a source with the one object `f` of [`LEN`] pattern bytes.
async fn source_keeps_its_promises(source: Arc<dyn Source>) {
    let item = the_one_item(&source).await;
    assert!(!source.describe().is_empty());
    let reader = source.open(&item).await.unwrap();
    let data = pattern(LEN);
    match reader.facts().len {
        Some(len) => {
            assert_eq!(len, LEN as u64);
            for (offset, len) in [(LEN - 1, 1), (0, LEN), (1_000_000, 2_000_001), (7, 0), (0, 1)] {
                assert!(read(&*reader, offset, len).await == data[offset..offset + len], "{offset}+{len} in any order");
            }
            let (one, two) = tokio::join!(read(&*reader, 0, 1 << 20), read(&*reader, 1 << 20, 1 << 20));
            assert!([one, two].concat() == data[..2 << 20], "many at a time");
        }
        None => {
            let mut seen = Vec::new();
            loop {
                let piece = read(&*reader, seen.len(), 1_000_000).await;
                seen.extend_from_slice(&piece);
                if piece.len() < 1_000_000 {
                    break;
                }
            }
            assert!(seen == data, "in order, and fewer bytes than asked for are the end");
        }
    }
    reader.check_unchanged(Same::Whole).unwrap();
    // Nobody listens: no error, no hang.
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    drop(receiver);
    source.list(sender).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sources() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d/f");
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(&path, pattern(LEN)).unwrap();
    for read in [ReadMode::Auto, ReadMode::Mmap, ReadMode::Pread] {
        let opening = Opening { recursive: true, read, ..Opening::default() };
        source_keeps_its_promises(local(&path, &opening)).await;
        source_keeps_its_promises(local(&dir.path().join("d"), &opening)).await;
        source_keeps_its_promises(local(&dir.path().join("d/*"), &opening)).await;
    }
    let world = World::new().await;
    let data = Chunks::from(pattern(LEN));
    let blob = Blob::new(&world.client, CONTAINER, "f");
    blob.put_blob(&data, data.crc64(), &Attributes::default(), Replace::Always).await.unwrap();
    for path in [Some("f"), None] {
        let opening = Opening { recursive: path.is_none(), ..Opening::default() };
        source_keeps_its_promises(Arc::new(blobs(world.client.clone(), CONTAINER, path, &opening).unwrap())).await;
    }
    for pipe in [false, true] {
        let given = Given { data: pattern(LEN).into(), pipe, ..Given::default() };
        source_keeps_its_promises(Arc::new(Memory::one("f", given))).await;
    }
}

fn payload(data: &[u8]) -> Payload {
    let data = Chunks::from(data.to_vec());
    Payload { crc64: data.crc64(), data }
}

/// `contents` gives what a reader of the sink would see.
async fn sink_keeps_its_promises<C: Future<Output = Option<Vec<u8>>>>(sink: &dyn Sink, contents: impl Fn(&'static str) -> C) {
    let limits = sink.limits();
    assert!(limits.whole > 0 && limits.block > 0 && limits.blocks > 0);
    assert!(sink.describe("a").ends_with('a'));
    let always = Finish::default();
    let never = Finish { replace: Replace::Never, ..always };

    assert_eq!(sink.look("a").await.unwrap(), None);
    sink.put("a", payload(b"one"), never).await.unwrap();
    assert_eq!(contents("a").await.unwrap(), b"one");
    assert_eq!(sink.look("a").await.unwrap().and_then(|facts: Facts| facts.len), Some(3));
    assert_eq!(sink.put("a", payload(b"two"), never).await.unwrap_err().kind(), Kind::AlreadyExists);
    assert_eq!(contents("a").await.unwrap(), b"one");
    sink.put("a", payload(b""), always).await.unwrap();
    assert_eq!(contents("a").await.unwrap(), b"");

    let id = |n: u8| BlockId([n; 32]);
    for (n, data) in [(2, b"two".as_slice()), (1, b"wrong"), (3, b"!"), (1, b"one")] {
        sink.put_block("b", id(n), payload(data)).await.unwrap();
    }
    assert_eq!(contents("b").await, None, "staged blocks are invisible");
    assert_eq!(sink.look("b").await.unwrap(), None);
    assert!(sink.commit("b", &[id(1), id(9)], never).await.is_err(), "a block that was never staged");
    sink.commit("b", &[id(1), id(2), id(3)], never).await.unwrap();
    assert_eq!(contents("b").await.unwrap(), b"onetwo!", "in the order of the list; the later of two with one id");
    sink.put_block("b", id(4), payload(b"four")).await.unwrap();
    assert_eq!(sink.commit("b", &[id(4)], never).await.unwrap_err().kind(), Kind::AlreadyExists);
    assert_eq!(contents("b").await.unwrap(), b"onetwo!");
    sink.commit("b", &[id(4)], always).await.unwrap();
    assert_eq!(contents("b").await.unwrap(), b"four");
}

/// Over a sink where `a` was written just now.
async fn conditions_on_time_hold(sink: &dyn Sink) {
    let hour = Duration::from_secs(3600);
    let finish = |time| Finish { replace: Replace::IfOlderThan(time), ..Finish::default() };
    let older = sink.put("a", payload(b"x"), finish(SystemTime::now() - hour)).await;
    assert_eq!(older.unwrap_err().kind(), Kind::AlreadyExists);
    sink.put("a", payload(b"x"), finish(SystemTime::now() + hour)).await.unwrap();
    sink.put("new", payload(b"x"), finish(SystemTime::now() - hour)).await.unwrap();
    let there = sink.look("a").await.unwrap().unwrap();
    let age = SystemTime::now().duration_since(there.modified.unwrap()).unwrap_or_default();
    assert!(age < hour);
}

#[tokio::test(flavor = "multi_thread")]
async fn sinks() {
    let store = Store::new();
    sink_keeps_its_promises(&store, |name| std::future::ready(store.data(name))).await;

    let world = World::new().await;
    let contents = |name| {
        let world = &world;
        async move {
            match Blob::new(&world.client, CONTAINER, name).get_properties().await.unwrap() {
                Some(_) => Some(world.get(name).await),
                None => None,
            }
        }
    };
    let sink = world.sink();
    sink_keeps_its_promises(&sink, contents).await;
    conditions_on_time_hold(&sink).await;
    for (name, ok) in [("a", true), ("a//b", true), ("", false), ("a\u{0}", false), ("a/../b", false)] {
        assert_eq!(sink.check_name(name).is_ok(), ok, "{name:?}");
    }
}
