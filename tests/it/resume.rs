//! Taking over what an earlier try has staged, and what protects it: blocks that got lost, and what others left in the way. The
//! engine against doubles, then the wire against the embedded service.

use crate::double::{Call, Given, Memory, Store, pattern};
use crate::world::{CONTAINER, World, client};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::error::{Error, Kind};
use blobjet::rest::auth::Inputs;
use blobjet::rest::blob::Blob;
use blobjet::rest::model::BlockListType;
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::Tuning;
use blobjet::transfer::progress::{Progress, Snapshot};
use blobjet::transfer::stop::Stop;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const B: usize = 64;
const COUNT: usize = 50;

fn tuning() -> Tuning {
    Tuning { block_size: B as u64, whole_limit: B as u64, lanes: NonZeroUsize::new(8).unwrap(), ..Tuning::default() }
}

fn modified() -> Option<SystemTime> {
    Some(UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789))
}

/// An object of [`COUNT`] blocks, always of the same time.
fn object(data: Vec<u8>) -> Given {
    Given { data: data.into(), modified: modified(), ..Given::default() }
}

fn source(data: Vec<u8>) -> Memory {
    Memory::one("x", object(data))
}

async fn upload(source: Memory, store: &Arc<Store>, tuning: Tuning) -> (Snapshot, Arc<Progress>) {
    let progress = Progress::new(None);
    let job = Job { source: Arc::new(source), sink: Arc::clone(store) as _, tuning, prompt: None, earlier: None };
    let summary = run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
    assert_eq!(summary.counts.pending(), 0);
    assert!(!store.wrong_crc.load(Ordering::SeqCst));
    (summary.counts, progress)
}

fn blocks_sent(store: &Store) -> usize {
    store.count(|call| matches!(call, Call::Block(_)))
}

/// A store whose first commit fails, so that everything stays staged.
fn interrupted() -> Store {
    let first = AtomicBool::new(true);
    Store::failing(move |call, _| {
        let fails = matches!(call, Call::Commit(_)) && first.swap(false, Ordering::SeqCst);
        fails.then(|| Error::new(Kind::GaveUp, "the line is dead"))
    })
}

// semantics 41
#[tokio::test(flavor = "multi_thread")]
async fn what_is_staged_is_not_sent_again() {
    let store = Arc::new(interrupted());
    let (counts, _) = upload(source(pattern(COUNT * B)), &store, tuning()).await;
    assert_eq!((counts.failed, blocks_sent(&store)), (1, COUNT));
    // Three blocks never arrived, and in another the file has changed since, though neither its length nor its time.
    let missing = [0, 17, 49];
    store.staged.lock().unwrap().retain(|(_, id), _| {
        let index = blobjet::transfer::block_id::BlockName::parse(&id.0).unwrap().index;
        !missing.contains(&index)
    });
    let mut data = pattern(COUNT * B);
    data[20 * B] ^= 1;
    let (counts, _) = upload(source(data.clone()), &store, Tuning { put_md5: true, ..tuning() }).await;
    assert_eq!(store.data("x"), Some(data.clone()));
    assert_eq!(blocks_sent(&store), COUNT + 4);
    let (sent, resumed) = (4 * B as u64, ((COUNT - 4) * B) as u64);
    assert_eq!((counts.bytes_sent, counts.bytes_resumed, counts.blocks_resumed), (sent, resumed, COUNT as u64 - 4));
    assert_eq!((counts.done, counts.bytes_there(), counts.bytes_done), (1, counts.bytes_known, counts.bytes_known));
    let md5 = <md5::Md5 as md5::Digest>::digest(&data);
    assert_eq!(store.objects.lock().unwrap()["x"].md5, Some(md5.into()), "of the whole, and not of what was sent");
}

// semantics 41
#[tokio::test(flavor = "multi_thread")]
async fn what_another_source_or_another_cut_staged_is_not_taken_over() {
    for (change, same) in [
        (Given { modified: modified().map(|time| time + Duration::from_nanos(1)), ..object(pattern(COUNT * B)) }, B),
        (object(pattern(COUNT * B - 1)), B),
        (object(pattern(COUNT * B)), 2 * B),
    ] {
        let store = Arc::new(interrupted());
        upload(source(pattern(COUNT * B)), &store, tuning()).await;
        let data = change.data.to_vec();
        let block_size = same as u64;
        let (counts, _) = upload(Memory::one("x", change), &store, Tuning { block_size, ..tuning() }).await;
        assert_eq!((counts.done, counts.bytes_resumed), (1, 0));
        assert_eq!(store.data("x"), Some(data));
    }
    // Nor what nobody compared with its checksum, even by one that does not either.
    let store = Arc::new(Store { checks: false, ..interrupted() });
    upload(source(pattern(COUNT * B)), &store, tuning()).await;
    let (counts, _) = upload(source(pattern(COUNT * B)), &store, tuning()).await;
    assert_eq!((counts.done, counts.bytes_resumed), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_look_is_not_repeated_and_no_error() {
    let store = Store::failing(|call, _| matches!(call, Call::Blocks(_)).then(|| Error::new(Kind::AccessRefused, "403")));
    let store = Arc::new(store);
    let objects = (0..20).map(|i| (format!("{i:02}"), pattern(3 * B)));
    let (counts, _) = upload(Memory::of(objects), &store, Tuning { lanes: NonZeroUsize::MIN, ..tuning() }).await;
    assert_eq!((counts.done, blocks_sent(&store)), (20, 60));
    assert_eq!(store.count(|call| matches!(call, Call::Blocks(_))), 1);

    // One that fails for this object alone is no reason not to ask for the next.
    let store = Store::failing(|call, _| (*call == Call::Blocks("00".into())).then(|| Error::new(Kind::Conflict, "409")));
    let store = Arc::new(store);
    let objects = (0..3).map(|i| (format!("{i:02}"), pattern(3 * B)));
    let (counts, _) = upload(Memory::of(objects), &store, tuning()).await;
    assert_eq!((counts.done, store.count(|call| matches!(call, Call::Blocks(_)))), (3, 3));
}

/// A store that loses some staged blocks of `x` at each of its first `times` commits.
fn losing(times: usize, lost: fn(u32) -> bool, look: fn(usize) -> bool) -> Arc<Store> {
    let slot: Arc<OnceLock<Arc<Store>>> = Arc::default();
    let (inner, commits, looks) = (Arc::clone(&slot), AtomicUsize::new(0), AtomicUsize::new(0));
    let store = Arc::new(Store::failing(move |call, _| match call {
        Call::Commit(_) if commits.fetch_add(1, Ordering::SeqCst) < times => {
            inner
                .get()
                .unwrap()
                .staged
                .lock()
                .unwrap()
                .retain(|(_, id), _| !lost(blobjet::transfer::block_id::BlockName::parse(&id.0).unwrap().index));
            None
        }
        Call::Blocks(_) if !look(looks.fetch_add(1, Ordering::SeqCst)) => Some(Error::new(Kind::AccessRefused, "403")),
        _ => None,
    }));
    slot.set(Arc::clone(&store)).ok().unwrap();
    store
}

// semantics 42
#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_got_lost_are_sent_again() {
    let some = |index| index % 10 == 3;
    for (times, lost, look, sent) in [
        (1, some as fn(u32) -> bool, (|_| true) as fn(usize) -> bool, COUNT + 5),
        (2, some, |_| true, COUNT + 10),
        (1, |_| true, |_| true, 2 * COUNT),
        // Who may not look sends everything again.
        (1, some, |_| false, 2 * COUNT),
    ] {
        let store = losing(times, lost, look);
        let (counts, _) = upload(source(pattern(COUNT * B)), &store, tuning()).await;
        assert_eq!(store.data("x"), Some(pattern(COUNT * B)));
        assert_eq!(blocks_sent(&store), sent);
        assert_eq!((counts.done, counts.bytes_sent), (1, (COUNT * B) as u64), "each byte is counted once");
    }
    // Also those that were taken over.
    let store = losing(2, some, |_| true);
    let first = Arc::new(interrupted());
    upload(source(pattern(COUNT * B)), &first, tuning()).await;
    store.staged.lock().unwrap().extend(first.staged.lock().unwrap().clone());
    let (counts, _) = upload(source(pattern(COUNT * B)), &store, tuning()).await;
    assert_eq!(store.data("x"), Some(pattern(COUNT * B)));
    let (sent, resumed) = (5 * B as u64, ((COUNT - 5) * B) as u64);
    assert_eq!((counts.done, counts.bytes_sent, counts.bytes_resumed), (1, sent, resumed));
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_get_lost_every_time_end_in_an_error() {
    for (look, commits) in [((|_| true) as fn(usize) -> bool, 4), (|_| false, 2)] {
        let store = losing(usize::MAX, |index| index == 7, look);
        store.objects.lock().unwrap().insert("x".into(), crate::double::Stored { data: b"old".to_vec(), ..Default::default() });
        let (counts, progress) = upload(source(pattern(COUNT * B)), &store, tuning()).await;
        assert_eq!((counts.failed, progress.failures()[0].kind), (1, Kind::BlocksMissing));
        assert_eq!(store.count(|call| matches!(call, Call::Commit(_))), commits);
        assert_eq!(store.data("x"), Some(b"old".to_vec()));
    }
}

/// A store that takes no block of `x` until it is cleared.
fn barred(may_clear: bool) -> Arc<Store> {
    let clear = AtomicBool::new(false);
    Arc::new(Store::failing(move |call, _| match call {
        Call::Block(name) if name == "x" && !clear.load(Ordering::SeqCst) => Some(Error::new(Kind::Leftovers, "400")),
        Call::Clear(_) if may_clear => {
            clear.store(true, Ordering::SeqCst);
            None
        }
        Call::Clear(_) => Some(Error::new(Kind::AccessRefused, "403").with_advice("do it otherwise")),
        _ => None,
    }))
}

// semantics 43
#[tokio::test(flavor = "multi_thread")]
async fn leftovers_are_cleared_once_though_no_lane_and_no_memory_is_left() {
    for pipe in [false, true] {
        let store = barred(true);
        // The budget holds as many blocks as there are lanes, and each of them meets the leftovers.
        let tuning = Tuning { block_size: 4096, memory: 8 * 4096, ..tuning() };
        let given = Given { data: pattern(40 * 4096).into(), pipe, ..Given::default() };
        let (counts, _) = upload(Memory::one("x", given), &store, tuning).await;
        assert_eq!(store.data("x"), Some(pattern(40 * 4096)));
        assert_eq!((counts.done, counts.cleared, counts.bytes_sent), (1, 1, 40 * 4096));
        assert_eq!(store.count(|call| matches!(call, Call::Clear(_))), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_that_cannot_be_cleared_fail_that_object_only() {
    let store = barred(false);
    let mut source = source(pattern(COUNT * B));
    source.objects.insert("y".into(), object(pattern(COUNT * B)));
    let (counts, progress) = upload(source, &store, tuning()).await;
    assert_eq!((counts.done, counts.failed, counts.cleared), (1, 1, 0));
    let failure = &progress.failures()[0];
    assert_eq!((failure.kind, failure.first.advice()), (Kind::Leftovers, Some("do it otherwise")));
    assert_eq!(store.count(|call| matches!(call, Call::Clear(_))), 1);
}

/// What can be seen of a blob but its ETag and the time of its change.
async fn visible(world: &World, name: &str) -> Option<(Vec<u8>, Vec<(String, String)>)> {
    let there = world.properties(name).await?;
    let seen = [
        "content-type",
        "content-encoding",
        "content-language",
        "content-disposition",
        "cache-control",
        "content-md5",
        "x-ms-meta-one",
        "x-ms-meta-two",
        "x-ms-tag-count",
        "x-ms-access-tier",
        "x-ms-creation-time",
        "x-ms-blob-type",
    ];
    let seen = seen.into_iter().filter_map(|name| Some((name.to_owned(), there.get(name)?.to_owned()))).collect();
    Some((world.get(name).await, seen))
}

fn chunks(data: &[u8]) -> Chunks {
    Chunks::from(data.to_vec())
}

async fn stage(blob: &Blob<'_>, id: &str, data: &[u8]) {
    let data = chunks(data);
    blob.put_block(id, &data, data.crc64()).await.unwrap();
}

async fn uncommitted(blob: &Blob<'_>) -> Vec<String> {
    let list = blob.get_block_list(BlockListType::Uncommitted).await.unwrap().unwrap_or_default();
    list.uncommitted.into_iter().map(|block| block.id).collect()
}

// semantics 43, 5
#[tokio::test(flavor = "multi_thread")]
async fn discarding_leaves_what_is_committed_as_it_is() {
    let world = World::new().await;
    let attributes = Attributes {
        content_type: Some("text/x-test".into()),
        content_encoding: Some("gzip".into()),
        content_language: Some("de".into()),
        content_disposition: Some("attachment".into()),
        cache_control: Some("max-age=60".into()),
        content_md5: Some([7; 16]),
        metadata: vec![("one".into(), "1".into()), ("two".into(), "a=b;c".into())],
        tags: vec![("project".into(), "x y".into()), ("k".into(), String::new())],
        tier: Some("Cool".into()),
    };
    // In blocks, also uneven ones, one twice.
    let blob = Blob::new(&world.client, CONTAINER, "blocks");
    stage(&blob, "AAAA", b"first").await;
    stage(&blob, "AAAB", b"2nd").await;
    let ids = ["AAAB", "AAAA", "AAAB"].map(str::to_owned);
    blob.put_block_list(&ids, &attributes, Replace::Always).await.unwrap();
    stage(&blob, "bG9uZ2Vy", b"left").await;
    stage(&blob, "bG9uZ2Vz", b"left").await;
    let before = visible(&world, "blocks").await.unwrap();
    assert_eq!((before.0.as_slice(), before.1.len()), (&b"2ndfirst2nd"[..], 12));
    blob.discard_uncommitted(Replace::Always).await.unwrap();
    assert_eq!(visible(&world, "blocks").await.unwrap(), before);
    assert_eq!(uncommitted(&blob).await, Vec::<String>::new());
    let list = blob.get_block_list(BlockListType::Committed).await.unwrap().unwrap();
    assert_eq!(list.committed.into_iter().map(|block| block.id).collect::<Vec<_>>(), ids);

    // A condition that goes by what is there would not hold any more.
    stage(&blob, "bG9uZ2Vy", b"left").await;
    let etag = world.properties("blocks").await.unwrap().etag().map(str::to_owned);
    for replace in [Replace::Never, Replace::IfOlderThan(SystemTime::now())] {
        let error = blob.discard_uncommitted(replace).await.unwrap_err();
        assert!(error.advice().unwrap().contains("--put-blob-size-mb"), "{error:?}");
    }
    assert_eq!(world.properties("blocks").await.unwrap().etag().map(str::to_owned), etag);

    // Written in one request: it has no list to commit again, unless it is empty.
    for (name, data, good) in [("whole", &b"content"[..], false), ("empty", b"", true)] {
        let blob = Blob::new(&world.client, CONTAINER, name);
        let data = chunks(data);
        let written = Attributes { content_md5: None, ..attributes.clone() };
        blob.put_blob(&data, data.crc64(), &written, Replace::Always).await.unwrap();
        stage(&blob, "bG9uZ2Vy", b"left").await;
        let before = visible(&world, name).await;
        let result = blob.discard_uncommitted(Replace::Always).await;
        assert_eq!(result.is_ok(), good, "{name}: {result:?}");
        assert_eq!(visible(&world, name).await, before, "{name}");
        assert_eq!(uncommitted(&blob).await.is_empty(), good, "{name}");
    }

    // Nothing committed: there still is nothing.
    for replace in [Replace::Always, Replace::Never, Replace::IfOlderThan(SystemTime::now())] {
        let blob = Blob::new(&world.client, CONTAINER, "nothing");
        stage(&blob, "bG9uZ2Vy", b"left").await;
        blob.discard_uncommitted(replace).await.unwrap();
        assert_eq!(blob.get_block_list(BlockListType::All).await.unwrap(), None);
        blob.discard_uncommitted(replace).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discarding_needs_rights_and_names_them() {
    let world = World::new().await;
    let blob = Blob::new(&world.client, CONTAINER, "blocks");
    stage(&blob, "AAAA", b"first").await;
    blob.put_block_list(&["AAAA".to_owned()], &Attributes::default(), Replace::Always).await.unwrap();
    let before = visible(&world, "blocks").await;
    for name in ["blocks", "nothing"] {
        stage(&Blob::new(&world.client, CONTAINER, name), "bG9uZ2Vy", b"left").await;
    }
    for (name, rights, wanted) in [
        ("blocks", "cw", "read (r)"),
        ("blocks", "rcwd", "tags (t)"),
        ("nothing", "w", "read (r)"),
        ("nothing", "rcw", "delete (d)"),
    ] {
        let sas = client(&crate::upload::sas(&world.emulator, rights), &Inputs::default());
        let error = Blob::new(&sas, CONTAINER, name).discard_uncommitted(Replace::Always).await.unwrap_err();
        assert_eq!(error.kind(), Kind::AccessRefused, "{name} {rights}");
        assert!(error.advice().unwrap().contains(wanted), "{name} {rights}: {error:?}");
    }
    assert_eq!(visible(&world, "blocks").await, before);
    for (name, rights) in [("blocks", "rwt"), ("nothing", "rd")] {
        let sas = client(&crate::upload::sas(&world.emulator, rights), &Inputs::default());
        Blob::new(&sas, CONTAINER, name).discard_uncommitted(Replace::Always).await.unwrap();
    }
    assert_eq!(visible(&world, "blocks").await, before);
}
