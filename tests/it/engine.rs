//! The engine against doubles in memory: sizes and requests, counts, faults, stopping, overwriting, memory.

use crate::double::{Call, Given, Memory, Store, pattern};
use blobjet::endpoint::{Found, Limits};
use blobjet::error::{Error, Kind};
use blobjet::transfer::block_id::BlockName;
use blobjet::transfer::engine::{Job, Summary, run};
use blobjet::transfer::overwrite::{Answer, DECLINED, EXISTS, NOT_NEWER};
use blobjet::transfer::plan::{Overwrite, Tuning};
use blobjet::transfer::progress::{Course, Event, NOT_STARTED, Observer, Outcome, Progress};
use blobjet::transfer::stop::{self, Phase, Stop};
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const B: usize = 64;

fn tuning() -> Tuning {
    Tuning { block_size: B as u64, whole_limit: B as u64, lanes: NonZeroUsize::new(8).unwrap(), ..Tuning::default() }
}

struct Ran {
    source: Arc<Memory>,
    store: Arc<Store>,
    progress: Arc<Progress>,
    result: blobjet::Result<Summary>,
}

fn job(source: &Arc<Memory>, store: &Arc<Store>, tuning: Tuning) -> Job {
    Job { source: Arc::clone(source) as _, sink: Arc::clone(store) as _, tuning, prompt: None, earlier: None }
}

async fn go_with(source: Memory, store: Store, tuning: Tuning, prompt: Option<blobjet::transfer::overwrite::Prompt>) -> Ran {
    let (source, store, progress) = (Arc::new(source), Arc::new(store), Progress::new(None));
    let job = Job { prompt, ..job(&source, &store, tuning) };
    let result = run(job, Arc::clone(&progress), Stop::never()).await;
    assert!(!store.wrong_crc.load(Ordering::SeqCst));
    assert_eq!(progress.snapshot().pending(), 0, "counts add up however it ends");
    Ran { source, store, progress, result }
}

async fn go(source: Memory, store: Store, tuning: Tuning) -> Ran {
    go_with(source, store, tuning, None).await
}

fn counts(ran: &Ran) -> (u64, u64, u64, u64) {
    let s = ran.progress.snapshot();
    (s.listed, s.done, s.failed, s.skipped)
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_round_trip_with_the_fewest_requests() {
    for pipe in [false, true] {
        for (len, puts, blocks) in [
            (0, 1, 0),
            (1, 1, 0),
            (B - 1, 1, 0),
            (B, 1, 0),
            (B + 1, 0, 2),
            (2 * B, 0, 2),
            (2 * B + 1, 0, 3),
            (100 * B + 7, 0, 101),
        ] {
            let given = Given { data: pattern(len).into(), pipe, ..Given::default() };
            let ran = go(Memory::one("x", given), Store::new(), tuning()).await;
            let summary = ran.result.unwrap();
            assert_eq!(ran.store.data("x"), Some(pattern(len)), "{len} bytes, pipe: {pipe}");
            let seen = (ran.store.count(|c| matches!(c, Call::Put(_))), ran.store.count(|c| matches!(c, Call::Block(_))));
            assert_eq!(seen, (puts, blocks), "{len} bytes, pipe: {pipe}");
            assert_eq!(ran.store.count(|c| matches!(c, Call::Commit(_))), usize::from(blocks > 0));
            assert_eq!(ran.store.count(|c| matches!(c, Call::Look(_))), 0);
            // What an earlier try has staged is asked for where there can be anything to take over.
            let asked = usize::from(blocks > 0 && !pipe);
            assert_eq!(ran.store.count(|c| matches!(c, Call::Blocks(_))), asked, "{len} bytes, pipe: {pipe}");
            let counts = summary.counts;
            assert_eq!((counts.listed, counts.opened, counts.done, counts.listing_done), (1, 1, 1, true));
            let len = len as u64;
            assert_eq!((counts.bytes_known, counts.bytes_sent, counts.bytes_done), (len, len, len));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn block_ids_are_ours_ordered_and_distinct() {
    let ran = go(Memory::of([("x".into(), pattern(10 * B))]), Store::new(), tuning()).await;
    let blocks = ran.store.objects.lock().unwrap()["x"].blocks.clone();
    let names: Vec<BlockName> = blocks.iter().map(|id| BlockName::parse(&id.0).unwrap()).collect();
    assert_eq!(names.iter().map(|n| n.index).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert!(names.iter().all(|n| n.nonce == names[0].nonce && n.fingerprint == names[0].fingerprint));
    let again = go(Memory::of([("x".into(), pattern(10 * B))]), Store::new(), tuning()).await;
    let other = BlockName::parse(&again.store.objects.lock().unwrap()["x"].blocks[0].0).unwrap();
    assert_eq!((other.fingerprint, other.crc64), (names[0].fingerprint, names[0].crc64));
    assert_ne!(other.nonce, names[0].nonce, "two writers never share an id");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_large_object_uses_every_lane_within_the_budget() {
    let memory = 16 * 4096;
    let tuning = Tuning { block_size: 8192, memory, ..tuning() };
    let (source, store) = (Arc::new(Memory::of([("x".into(), pattern(100 * 8192))])), Arc::new(Store::new()));
    store.gate.send_replace(false);
    let running = tokio::spawn(run(job(&source, &store, tuning), Progress::new(None), Stop::never()));
    while store.in_flight.load(Ordering::SeqCst) < 8 {
        tokio::task::yield_now().await;
    }
    store.gate.send_replace(true);
    running.await.unwrap().unwrap();
    assert_eq!(store.data("x"), Some(pattern(100 * 8192)));
    assert_eq!(store.most_in_flight.load(Ordering::SeqCst), 8);
    assert!(source.held.most.load(Ordering::SeqCst) <= memory);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_below_one_block_still_moves() {
    let tuning = Tuning { block_size: 50_000, memory: 4096, ..tuning() };
    let ran = go(Memory::of([("x".into(), pattern(200_001))]), Store::new(), tuning).await;
    ran.result.unwrap();
    assert_eq!(ran.store.data("x"), Some(pattern(200_001)));
    assert!(ran.source.held.most.load(Ordering::SeqCst) <= 50_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_of_all_sizes_and_few_open_at_once() {
    let objects: Vec<(String, Vec<u8>)> = (0..500).map(|i| (format!("d/{i}"), pattern((i * 37) % (5 * B)))).collect();
    let ran = go(Memory::of(objects.clone()), Store::new(), tuning()).await;
    assert_eq!(counts(&ran), (500, 500, 0, 0));
    for (name, data) in objects {
        assert_eq!(ran.store.data(&name), Some(data), "{name}");
    }
    assert!(ran.source.held.most_open.load(Ordering::SeqCst) <= 2 * 8, "{:?}", ran.source.held.most_open);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_counted_once_and_named_and_the_rest_goes_on() {
    let objects: Vec<(String, Vec<u8>)> = (0..1000).map(|i| (format!("{i}"), pattern(i % (3 * B)))).collect();
    let store = Store::failing(|call, _| {
        let (Call::Put(name)
        | Call::Block(name)
        | Call::Commit(name)
        | Call::Look(name)
        | Call::Blocks(name)
        | Call::Clear(name)) = call;
        name.ends_with("77").then(|| Error::new(Kind::GaveUp, format!("cannot put {name}")))
    });
    let ran = go(Memory::of(objects), store, tuning()).await;
    ran.result.as_ref().unwrap();
    assert_eq!(counts(&ran), (1000, 990, 10, 0));
    let failures = ran.progress.failures();
    assert_eq!((failures.len(), failures[0].kind, failures[0].count), (1, Kind::GaveUp, 10));
    assert_eq!(failures[0].names.len(), 10);
    assert!(failures[0].names.contains(&"177".to_owned()));
    assert_eq!(ran.store.data("77"), None);
}

// semantics 4, 5
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_fails_stops_its_object_and_keeps_what_was_there() {
    let store = Store::failing(|_, number| (number == 5).then(|| Error::new(Kind::Refused, "no"))).with("x", b"old", None);
    let ran = go(Memory::of([("x".into(), pattern(1000 * B))]), store, tuning()).await;
    assert_eq!(counts(&ran), (1, 0, 1, 0));
    assert_eq!(ran.store.data("x"), Some(b"old".to_vec()));
    assert_eq!(ran.store.count(|c| matches!(c, Call::Commit(_))), 0);
    assert!(ran.store.calls.lock().unwrap().len() < 50, "its other blocks are not sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_every_object_would_meet_ends_the_job_at_once() {
    for (len, kind) in [(1, Kind::AccessRefused), (5 * B, Kind::AccessRefused), (1, Kind::ContainerNotFound)] {
        let objects = (0..1000).map(|i| (format!("{i}"), pattern(len)));
        let store = Store::failing(move |_, _| Some(Error::new(kind, "refused")));
        let ran = go(Memory::of(objects), store, tuning()).await;
        assert_eq!(ran.result.as_ref().unwrap_err().kind(), kind);
        assert!(ran.store.calls.lock().unwrap().len() <= 2 * 8, "no request for each of the others");
        let snapshot = ran.progress.snapshot();
        assert_eq!(snapshot.done, 0);
        assert!(snapshot.failed >= 1);
        assert!(ran.progress.failures().is_empty(), "the error of the job is the record");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_listing_met_is_counted() {
    let source = Memory::of([("a".into(), pattern(1)), ("b!".into(), pattern(1))]);
    *source.others.lock().unwrap() = vec![
        Found::Skipped { name: "link".into(), reason: "symbolic link" },
        Found::Failed { name: "dir".into(), error: Error::new(Kind::SourceUnreadable, "cannot read dir") },
    ];
    let ran = go(source, Store::new(), tuning()).await;
    assert_eq!(counts(&ran), (4, 1, 2, 1));
    let names: Vec<String> = ran.progress.failures().into_iter().flat_map(|f| f.names).collect();
    assert_eq!(names, ["dir", "b!"]);
    assert_eq!(ran.store.calls.lock().unwrap().len(), 1, "a bad name is found before any request");
}

// semantics 2
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_source_is_never_committed() {
    for len in [10, 10 * B] {
        let given = Given { data: pattern(len).into(), changes: true, ..Given::default() };
        let ran = go(Memory::one("x", given), Store::new(), tuning()).await;
        assert_eq!(counts(&ran), (1, 0, 1, 0));
        assert_eq!(ran.progress.failures()[0].kind, Kind::SourceChanged);
        assert_eq!(ran.store.count(|c| matches!(c, Call::Put(_) | Call::Commit(_))), 0);
    }
    let given = Given { data: pattern(10 * B).into(), changes: true, ..Given::default() };
    let store = Store::failing(|_, _| Some(Error::new(Kind::Corrupt, "bytes differ from their checksum")));
    let ran = go(Memory::one("x", given), store, tuning()).await;
    assert_eq!(ran.progress.failures()[0].kind, Kind::SourceChanged, "the cause, not what came of it");
}

// semantics 8
#[tokio::test(flavor = "multi_thread")]
async fn more_blocks_than_allowed_are_refused_before_the_first_byte() {
    let fixed = Tuning { block_size_fixed: true, ..tuning() };
    let store = || Store { limits: Limits { whole: 1000, block: 1 << 20, blocks: 10 }, ..Store::new() };
    let ran = go(Memory::of([("x".into(), pattern(10 * B + 1))]), store(), fixed.clone()).await;
    assert_eq!(ran.progress.failures()[0].kind, Kind::TooLarge);
    assert!(ran.progress.failures()[0].first.advice().unwrap().contains("--block-size-mb"));
    assert!(ran.store.calls.lock().unwrap().is_empty());

    let ran = go(Memory::of([("x".into(), pattern(10 * B + 1))]), store(), tuning()).await;
    ran.result.unwrap();
    assert_eq!(ran.store.data("x"), Some(pattern(10 * B + 1)), "left to us, the block size grows");

    let pipe = |len| Memory::one("x", Given { data: pattern(len).into(), pipe: true, ..Given::default() });
    let ran = go(pipe(10 * B), store(), fixed.clone()).await;
    assert_eq!(ran.store.data("x"), Some(pattern(10 * B)));
    let ran = go(pipe(10 * B + 1), store(), fixed).await;
    assert_eq!(ran.progress.failures()[0].kind, Kind::TooLarge);
    let ran = go(pipe(1000 * B), store(), tuning()).await;
    assert_eq!(ran.store.data("x"), Some(pattern(1000 * B)), "a pipe's blocks grow as they are used");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_in_one_piece_it_goes_in_blocks_and_later_ones_do_so_at_once() {
    for pipe in [false, true] {
        let given = Given { data: pattern(60).into(), pipe, ..Given::default() };
        let mut source = Memory::one("a", given.clone());
        source.objects.insert("b".into(), given);
        let store = Store::failing(|call, _| match call {
            Call::Put(_) => Some(Error::new(Kind::TooLarge, "413")),
            _ => None,
        });
        let ran = go(source, store, Tuning { lanes: NonZeroUsize::MIN, ..tuning() }).await;
        ran.result.unwrap();
        for name in ["a", "b"] {
            assert_eq!(ran.store.data(name), Some(pattern(60)));
        }
        assert_eq!(ran.store.count(|c| matches!(c, Call::Put(_))), 1);
        assert_eq!(ran.progress.snapshot().bytes_sent, 120, "acknowledged bytes are counted once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_md5_of_the_whole_is_stored_when_asked_for() {
    // md5sum of the digits, 10 and 130 of them.
    let small = [0x78, 0x1e, 0x5e, 0x24, 0x5d, 0x69, 0xb5, 0x66, 0x97, 0x9b, 0x86, 0xe2, 0x8d, 0x23, 0xf2, 0xc7];
    let large = [0xa3, 0x28, 0xd4, 0xed, 0x33, 0xe0, 0x94, 0xac, 0xb4, 0xf9, 0x83, 0x5d, 0x47, 0x19, 0xc3, 0x4c];
    for (len, md5) in [(10, small), (130, large)] {
        for pipe in [false, true] {
            let data: Vec<u8> = b"0123456789".iter().copied().cycle().take(len).collect();
            let source = Memory::one("x", Given { data: data.into(), pipe, ..Given::default() });
            let ran = go(source, Store::new(), Tuning { put_md5: true, ..tuning() }).await;
            ran.result.unwrap();
            assert_eq!(ran.store.objects.lock().unwrap()["x"].md5, Some(md5), "{len} bytes, pipe: {pipe}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overwrite_false_skips_what_is_there() {
    let tuning = Tuning { overwrite: Overwrite::False, ..tuning() };
    for len in [10, 10 * B] {
        let source = || Memory::of([("x".into(), pattern(len)), ("y".into(), pattern(len))]);
        let ran = go(source(), Store::new().with("x", b"old", None), tuning.clone()).await;
        assert_eq!(counts(&ran), (2, 1, 0, 1));
        assert_eq!((ran.store.data("x"), ran.store.data("y")), (Some(b"old".to_vec()), Some(pattern(len))));
        assert_eq!(ran.progress.skips()[0].reason, EXISTS);
        assert_eq!(ran.progress.snapshot().bytes_sent, len as u64, "of y only");
        assert_eq!(ran.store.count(|c| *c == Call::Block("x".into())), 0, "not sent in vain");
    }
    // A credential that may only write: the condition at the commit decides.
    let store = Store::failing(|call, _| matches!(call, Call::Look(_)).then(|| Error::new(Kind::AccessRefused, "403")));
    let ran = go(Memory::of([("x".into(), pattern(10 * B))]), store.with("x", b"old", None), tuning).await;
    assert_eq!(counts(&ran), (1, 0, 0, 1));
    assert_eq!(ran.store.data("x"), Some(b"old".to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_newer_sources_replace() {
    let at = |ms| Some(UNIX_EPOCH + Duration::from_millis(ms));
    let tuning = Tuning { overwrite: Overwrite::IfSourceNewer, ..tuning() };
    for len in [10, 10 * B] {
        for (theirs, ours, replaced) in
            [(5_000, 4_999, false), (5_000, 5_000, false), (5_000, 5_001, true), (5_000, 6_000, true), (5_000, 1_000, false)]
        {
            let given = Given { data: pattern(len).into(), modified: at(ours), ..Given::default() };
            let store = Store::new().with("x", b"old", at(theirs));
            let ran = go(Memory::one("x", given), store, tuning.clone()).await;
            let expected = if replaced { pattern(len) } else { b"old".to_vec() };
            assert_eq!(ran.store.data("x"), Some(expected), "{len} bytes: {theirs} there, {ours} here");
            assert_eq!(ran.progress.skips().first().map(|s| s.reason), (!replaced).then_some(NOT_NEWER));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_asks_once_an_object_until_told_for_all() {
    let tuning = Tuning { overwrite: Overwrite::Prompt, lanes: NonZeroUsize::MIN, ..tuning() };
    for len in [10, 10 * B] {
        for (answers, asked, replaced) in [
            (vec![Answer::Yes, Answer::No, Answer::Yes], "a b c", "a c"),
            (vec![Answer::No, Answer::All], "a b", "b c"),
            (vec![Answer::Yes, Answer::None], "a b", "a"),
        ] {
            let names = ["a", "b", "c"];
            let mut objects: Vec<(String, Vec<u8>)> = names.iter().map(|n| ((*n).to_owned(), pattern(len))).collect();
            objects.push(("new".into(), pattern(len)));
            let store = names.iter().fold(Store::new(), |store, name| store.with(name, b"old", None));
            let (asked_names, answers) = (Arc::new(Mutex::new(Vec::new())), Mutex::new(answers.into_iter()));
            let log = Arc::clone(&asked_names);
            let prompt = Arc::new(move |name: &str| {
                log.lock().unwrap().push(name.to_owned());
                answers.lock().unwrap().next().unwrap()
            });
            let ran = go_with(Memory::of(objects), store, tuning.clone(), Some(prompt)).await;
            ran.result.as_ref().unwrap();
            assert_eq!(asked_names.lock().unwrap().join(" "), asked);
            let now: Vec<&str> = names.into_iter().filter(|n| ran.store.data(n) == Some(pattern(len))).collect();
            assert_eq!(now.join(" "), replaced);
            assert_eq!(ran.store.data("new"), Some(pattern(len)));
            assert_eq!(ran.progress.skips()[0].reason, DECLINED);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_takes_no_more_work_and_lets_requests_end() {
    let objects = (0..100).map(|i| (format!("{i:03}"), pattern(10)));
    let (source, store, progress) = (Arc::new(Memory::of(objects)), Arc::new(Store::new()), Progress::new(None));
    store.gate.send_replace(false);
    let (stopper, stop) = stop::channel();
    let running = tokio::spawn(run(job(&source, &store, tuning()), Arc::clone(&progress), stop));
    while store.in_flight.load(Ordering::SeqCst) < 8 || progress.snapshot().listed < 100 {
        tokio::task::yield_now().await;
    }
    stopper.advance(Phase::Drain);
    tokio::task::yield_now().await;
    assert!(!running.is_finished());
    store.gate.send_replace(true);
    let summary = running.await.unwrap().unwrap();
    assert!(summary.stopped);
    let done = summary.counts.done;
    assert_eq!(done, 8, "each lane ends what it had in flight");
    assert_eq!((summary.counts.listed, summary.counts.skipped, summary.counts.failed), (100, 92, 0));
    assert_eq!(progress.skips()[0].reason, NOT_STARTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_now_drops_what_is_in_flight() {
    for len in [10, 100 * B] {
        let source = Arc::new(Memory::of((0..100).map(|i| (format!("{i:03}"), pattern(len)))));
        let (store, progress) = (Arc::new(Store::new()), Progress::new(None));
        store.gate.send_replace(false);
        let (stopper, stop) = stop::channel();
        let running = tokio::spawn(run(job(&source, &store, tuning()), Arc::clone(&progress), stop));
        while store.in_flight.load(Ordering::SeqCst) < 8 || progress.snapshot().listed < 100 {
            tokio::task::yield_now().await;
        }
        stopper.advance(Phase::Now);
        let summary = running.await.unwrap().unwrap();
        assert!(summary.stopped);
        let counts = summary.counts;
        assert_eq!((counts.listed, counts.done, counts.pending()), (100, 0, 0));
        assert!((1..=8).contains(&counts.failed), "those in flight: {}", counts.failed);
        assert!(store.objects.lock().unwrap().is_empty());
        assert_eq!(source.held.open.load(Ordering::SeqCst), 0, "nothing is left running");
    }
}

#[tokio::test]
async fn a_silent_pipe_does_not_hold_up_a_stop() {
    struct Silent;
    impl blobjet::endpoint::Source for Silent {
        fn list<'a>(&'a self, out: blobjet::endpoint::Listing) -> blobjet::endpoint::Task<'a, blobjet::Result<()>> {
            Box::pin(async move {
                let item = blobjet::endpoint::Item::new("-", "x");
                let _ = out.send(vec![Found::Item(item)]).await;
                Ok(())
            })
        }
        fn open<'a>(
            &'a self,
            _: &'a blobjet::endpoint::Item,
        ) -> blobjet::endpoint::Task<'a, blobjet::Result<Box<dyn blobjet::endpoint::Reader>>> {
            Box::pin(async { Ok(Box::new(Silent) as Box<dyn blobjet::endpoint::Reader>) })
        }
        fn describe(&self) -> String {
            "-".into()
        }
    }
    impl blobjet::endpoint::Reader for Silent {
        fn facts(&self) -> blobjet::endpoint::Facts {
            blobjet::endpoint::Facts { len: None, modified: None::<SystemTime> }
        }
        fn read<'a>(&'a self, _: u64, _: u64) -> blobjet::endpoint::Task<'a, blobjet::Result<blobjet::chunks::Chunks>> {
            Box::pin(std::future::pending())
        }
        fn check_unchanged(&self, _: blobjet::endpoint::Same) -> blobjet::Result<()> {
            Ok(())
        }
    }
    let (store, progress, (stopper, stop)) = (Arc::new(Store::new()), Progress::new(None), stop::channel());
    let job = Job { source: Arc::new(Silent), sink: store, tuning: tuning(), prompt: None, earlier: None };
    let running = tokio::spawn(run(job, Arc::clone(&progress), stop));
    while progress.snapshot().listed == 0 {
        tokio::task::yield_now().await;
    }
    stopper.advance(Phase::Drain);
    let counts = running.await.unwrap().unwrap().counts;
    assert_eq!((counts.listed, counts.done, counts.pending()), (1, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_tells_how_it_went() {
    #[derive(Default)]
    struct Ear(Mutex<Vec<(String, Course, SystemTime)>>);
    impl Observer for Ear {
        fn ended(&self, event: Event<'_>) {
            let outcome = match event.outcome {
                Outcome::Done { bytes } => format!("{} done {bytes}", event.source),
                Outcome::Failed(error) => format!("{} failed {:?}", event.source, error.kind()),
                Outcome::Skipped(reason) => format!("{} skipped {reason}", event.source),
            };
            self.0.lock().unwrap().push((outcome, event.course, event.finished));
        }
    }
    let modified = Some(UNIX_EPOCH + Duration::from_secs(5));
    let mut memory = Memory::of([("blocks".into(), pattern(2 * B + 1)), ("bad!".into(), vec![1]), ("refused".into(), vec![1])]);
    memory.objects.insert("small".into(), Given { data: pattern(B).into(), modified, ..Given::default() });
    memory.objects.insert("pipe".into(), Given { data: pattern(B + 1).into(), pipe: true, ..Given::default() });
    memory.others = Mutex::new(vec![Found::Skipped { name: "link".into(), reason: "link" }]);
    let refuse = |call: &Call, _| {
        let tries = blobjet::error::Attempts { count: 5, elapsed: Duration::ZERO };
        (*call == Call::Put("refused".into())).then(|| Error::new(Kind::GaveUp, "no").with_attempts(tries))
    };
    let (source, store) = (Arc::new(memory), Arc::new(Store { attempts: 2, ..Store::failing(refuse) }));
    let ear = Arc::new(Ear::default());
    let before = SystemTime::now();
    run(job(&source, &store, tuning()), Progress::new(Some(ear.clone())), Stop::never()).await.unwrap();
    let after = SystemTime::now();
    let mut heard = ear.0.lock().unwrap().clone();
    heard.sort_by(|a, b| a.0.cmp(&b.0));
    let seen: Vec<_> = heard
        .iter()
        .map(|(outcome, course, _)| {
            let facts = course.facts.map(|facts| (facts.len, facts.modified));
            (outcome.as_str(), course.started.is_some(), facts, course.blocks, course.retries)
        })
        .collect();
    let len = |len: usize| Some(len as u64);
    assert_eq!(
        seen,
        [
            ("bad! failed Name", true, None, 0, 0),
            ("blocks done 129", true, Some((len(129), None)), 3, 4),
            ("link skipped link", false, None, 0, 0),
            ("pipe done 65", true, Some((None, None)), 2, 3),
            ("refused failed GaveUp", true, Some((len(1), None)), 0, 4),
            ("small done 64", true, Some((len(64), modified)), 0, 1),
        ]
    );
    for (_, course, finished) in heard {
        let started = course.started.unwrap_or(finished);
        assert!(before <= course.queued && course.queued <= started && started <= finished && finished <= after);
    }
}
