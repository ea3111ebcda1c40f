//! Faults that concern more than one request: jobs of many objects, states that stand in the way, mixtures, narrow lines. Time
//! is paused, as in [`faults`](crate::faults).

use crate::double::{Memory, pattern};
use crate::faults::{BLOCK, BLOCKS, NAME, OLD, Stage, given, tuning};
use crate::script::config;
use crate::world::{CONTAINER, local};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::endpoint::blob::{BlobSink, ContentTypes};
use blobjet::endpoint::open::Opening;
use blobjet::error::Kind;
use blobjet::rest::auth::Need;
use blobjet::rest::blob::Blob;
use blobjet::rest::client::{Config, Op};
use blobjet::rest::request::Request;
use blobjet::rest::stats::RETRY_CAUSES;
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::{Overwrite, Tuning};
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use http::{HeaderValue, Method};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

fn retries(stage: &Stage, cause: &str) -> u64 {
    stage.client.stats().retries()[RETRY_CAUSES.iter().position(|c| *c == cause).unwrap()]
}

/// Objects of this length, `o/0000` and so on.
fn many(count: usize, len: usize) -> Memory {
    Memory::of((0..count).map(|i| (format!("o/{i:04}"), pattern(len))))
}

/// Case 1. semantics 5
#[tokio::test(start_paused = true)]
async fn an_overwrite_refused_at_the_fifth_block_leaves_the_old_blob() {
    let stage = Stage::patient().await;
    let armed = stage.arm("op=PutBlock,nth=5,status=403/AuthorizationFailure");
    let error = stage.upload(Memory::one(NAME, given(8 * BLOCK)), 1).await.unwrap_err();
    assert_eq!((error.kind(), armed.hits()), (Kind::AccessRefused, 1));
    assert_eq!(stage.committed().await.as_deref(), Some(OLD));
}

/// Case 1. semantics 2, 5
#[tokio::test(start_paused = true)]
async fn a_file_touched_half_way_is_not_committed() {
    let stage = Stage::patient().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.bin");
    std::fs::write(&path, pattern(8 * BLOCK)).unwrap();
    // Nothing moves until the clock does, and it stands still while somebody is busy.
    let armed = stage.arm("op=PutBlock,nth=5,delay=1h");
    let source = local(&path, &Opening { dest: Some(NAME.to_owned()), ..Opening::default() });
    let sink = BlobSink::new(stage.client.clone(), CONTAINER, Attributes::default(), ContentTypes::Service);
    let progress = Progress::new(None);
    let job = Job { source, sink: Arc::new(sink), tuning: tuning(), prompt: None, earlier: None };
    let touch = async {
        while armed.hits() == 0 {
            tokio::task::yield_now().await;
        }
        let later = SystemTime::now() + Duration::from_millis(200);
        File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    };
    let (ended, ()) = tokio::join!(run(job, Arc::clone(&progress), Stop::never()), touch);
    assert_eq!((ended.unwrap().counts.failed, progress.failures()[0].kind), (1, Kind::SourceChanged));
    assert_eq!(stage.committed().await.as_deref(), Some(OLD));
}

/// Case 6. semantics 20
#[tokio::test(start_paused = true)]
async fn refused_access_ends_the_job_at_the_first_answer() {
    let stage = Stage::patient().await;
    let armed = stage.arm("method=PUT,status=403/AuthorizationFailure");
    let error = stage.upload(many(500, 10), 8).await.unwrap_err();
    assert_eq!(error.kind(), Kind::AccessRefused);
    assert!(armed.hits() <= 8, "no more than were on their way: {}", armed.hits());
}

/// Case 7. semantics 12
#[tokio::test(start_paused = true)]
async fn one_in_a_hundred_that_never_heals_fails_alone_and_is_named() {
    let stage = Stage::patient().await;
    stage.arm("op=PutBlob,path=*00,status=500/InternalError");
    let progress = stage.upload(many(1000, 10), 8).await.unwrap();
    let counts = progress.snapshot();
    assert_eq!((counts.listed, counts.done, counts.failed, counts.skipped), (1000, 990, 10, 0));
    let [group] = &progress.failures()[..] else { panic!("one cause") };
    assert_eq!((group.kind, group.code.as_deref(), group.count), (Kind::GaveUp, Some("InternalError"), 10));
    let mut names = group.names.clone();
    names.sort();
    assert_eq!(names, (0..10).map(|i| format!("o/0{i}00")).collect::<Vec<_>>());
    assert!(group.first.attempts().unwrap().count >= 4);
}

/// What stands in the way of a blob (case 17).
async fn put_in_the_way(stage: &Stage, what: &str) {
    let path = stage.world.client.location().blob_path(CONTAINER, NAME);
    let request = Request::new(Method::PUT, path);
    let value = HeaderValue::from_static;
    let blob = Blob::new(&stage.world.client, CONTAINER, NAME);
    let request = match what {
        "lease" => request
            .query("comp", "lease")
            .header("x-ms-lease-action", value("acquire"))
            .header("x-ms-lease-duration", value("-1")),
        "archive" => request.query("comp", "tier").header("x-ms-access-tier", value("Archive")),
        "append" => request.header("x-ms-blob-type", value("AppendBlob")),
        "page" => request.header("x-ms-blob-type", value("PageBlob")).header("x-ms-blob-content-length", value("512")),
        other => panic!("{other}"),
    };
    if matches!(what, "append" | "page") {
        blob.delete(blobjet::rest::blob::DeleteSnapshots::Refuse).await.unwrap();
    }
    stage.world.client.send(request, Op::new("prepare", Need::WRITE)).await.unwrap();
}

/// Case 17. semantics 5, 21
#[tokio::test(start_paused = true)]
async fn what_stands_at_the_target_fails_that_object_at_once_and_the_others_go_on() {
    let small = 10;
    let large = BLOCKS * BLOCK;
    for (what, len, code) in [
        ("lease", small, "LeaseIdMissing"),
        ("lease", large, "LeaseIdMissing"),
        ("archive", large, "BlobArchived"),
        ("append", small, "InvalidBlobType"),
        ("append", large, "InvalidBlobType"),
        ("page", small, "InvalidBlobType"),
        ("page", large, "InvalidBlobType"),
        ("policy", small, "BlobImmutableDueToPolicy"),
        ("policy", large, "BlobImmutableDueToPolicy"),
        ("hold", small, "BlobImmutableDueToLegalHold"),
    ] {
        let stage = Stage::patient().await;
        match what {
            // The emulator keeps no such policies: as the service answers where there is one.
            "policy" | "hold" => drop(stage.arm(&format!("path=*{NAME},op=PutBlob|PutBlock,status=409/{code}"))),
            what => put_in_the_way(&stage, what).await,
        }
        let etag = stage.world.properties(NAME).await.unwrap().etag().map(str::to_owned);
        let objects = ["a", NAME, "z"].map(|name| (name.to_owned(), pattern(len)));
        let (before, start) = (stage.world.emulator.seen().len(), Instant::now());
        let progress = stage.upload(Memory::of(objects), 1).await.unwrap();
        let seen = &stage.world.emulator.seen()[before..];
        let asked = seen.iter().filter(|s| s.method == "PUT" && s.path.ends_with(NAME)).count();
        let counts = progress.snapshot();
        assert_eq!((counts.done, counts.failed, asked), (2, 1, 1), "{what} {len}: {:?}", progress.failures());
        let failure = &progress.failures()[0];
        assert_eq!((failure.kind, failure.code.as_deref()), (Kind::Conflict, Some(code)), "{what} {len}");
        assert_eq!(start.elapsed(), Duration::ZERO, "{what} {len}");
        let now = stage.world.properties(NAME).await.unwrap();
        assert_eq!(now.etag().map(str::to_owned), etag, "{what} {len}: it is as it was");
    }
}

/// Case 18: the tier goes out as it was given, and the service's answer is reported.
#[tokio::test(start_paused = true)]
async fn a_tier_the_account_does_not_have_is_the_services_to_refuse() {
    let stage = Stage::patient().await;
    let blob = Blob::new(&stage.client, CONTAINER, NAME);
    let data = Chunks::from(pattern(10));
    for (tier, rule, refused) in [
        ("Cold", None, None),
        ("Glacial", None, Some("InvalidHeaderValue")),
        ("Hot", Some("op=PutBlob,status=400/BlobTierInadequateForContentLength"), Some("BlobTierInadequateForContentLength")),
        ("Hot", Some("op=PutBlob,status=400/FeatureVersionMismatch"), Some("FeatureVersionMismatch")),
    ] {
        let armed = rule.map(|rule| stage.arm(rule));
        let before = stage.world.emulator.seen().len();
        let attributes = Attributes { tier: Some(tier.to_owned()), ..Attributes::default() };
        let result = blob.put_blob(&data, data.crc64(), &attributes, Replace::Always).await;
        assert_eq!(stage.world.emulator.seen().len() - before, 1, "{tier}");
        assert_eq!(result.as_ref().err().and_then(|error| error.code()), refused, "{tier}");
        if let Err(error) = result {
            assert_eq!(error.kind(), Kind::Refused, "{tier}");
            assert!(error.code() != Some("InvalidHeaderValue") || error.answer().unwrap().detail("HeaderValue") == Some(tier));
        }
        armed.inspect(blobjet::emulator::Armed::remove);
    }
    assert_eq!(stage.world.properties(NAME).await.unwrap().get("x-ms-access-tier"), Some("Cold"));
}

/// Case 21: all of it at once. semantics 21, 24
#[tokio::test(start_paused = true)]
async fn everything_arrives_through_a_mixture_of_faults() {
    let stage = Stage::patient().await;
    let rules = [
        "share=30%,status=503/ServerBusy,retry-after=1,first=300",
        "delay=20ms",
        "above=8,status=503/ServerBusy",
        "share=10%,seed=2,status=500/OperationTimedOut",
        "share=5%,seed=3,reset=500",
        "share=3%,seed=4,drop",
        "share=2%,seed=5,cut=head",
        "share=2%,seed=6,flip-request=5,first=1000000",
        "share=5%,seed=7,status=500/OperationTimedOut,late",
    ];
    let armed: Vec<_> = rules.iter().map(|rule| stage.arm(rule)).collect();
    let mut source = many(300, 1000);
    source.objects.insert("large".to_owned(), given(40 * BLOCK));
    let total: u64 = source.objects.values().map(|given| given.data.len() as u64).sum();
    let progress = stage.upload(source, 16).await.unwrap();
    let counts = progress.snapshot();
    assert_eq!((counts.done, counts.failed), (301, 0), "{:?}", progress.failures());
    assert!(armed.iter().all(|rule| rule.hits() > 0), "{armed:?}");
    armed.iter().for_each(blobjet::emulator::Armed::remove);
    for name in ["o/0000", "o/0150", "o/0299"] {
        assert!(stage.world.get(name).await == pattern(1000), "{name}");
    }
    assert!(stage.world.get("large").await == pattern(40 * BLOCK));
    assert!(retries(&stage, "throttled") > 0, "throttling is shown");
    // Half of the requests fail: twice the bytes are what that costs, and not many times as much.
    let sent = stage.client.stats().bytes_sent.load(Relaxed);
    assert!(sent < 4 * total, "{sent} bytes for {total}");
}

// semantics 21
#[tokio::test(start_paused = true)]
async fn told_to_slow_down_once_everybody_waits() {
    let stage = Stage::patient().await;
    let armed = stage.arm("op=PutBlob,nth=40,status=503/ServerBusy,retry-after=30");
    let emulator = &stage.world.emulator;
    let watch = async {
        while armed.hits() == 0 {
            tokio::task::yield_now().await;
        }
        // Those on their way come to their end.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = emulator.requests();
        tokio::time::sleep(Duration::from_secs(28)).await;
        (before, emulator.requests())
    };
    let start = Instant::now();
    let (progress, (before, after)) = tokio::join!(stage.upload(many(200, 10), 16), watch);
    assert_eq!(progress.unwrap().snapshot().done, 200);
    assert_eq!(before, after, "nothing was sent for as long as the service asked");
    let took = start.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(34)).contains(&took), "{took:?}");
    assert_eq!(retries(&stage, "throttled"), 1);
}

/// Case 23, under a condition that the effect of the first try fails. semantics 18
#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_what_was_done_is_a_success() {
    for (op, len) in [("PutBlob", 10), ("PutBlockList", BLOCKS * BLOCK)] {
        for fault in ["drop", "status=500/OperationTimedOut,late", "cut=head", "hang,late"] {
            let stage = Stage::new(config()).await;
            let armed = stage.arm(&format!("op={op},nth=1,{fault}"));
            let tuning = Tuning { overwrite: Overwrite::False, ..tuning() };
            let progress = stage.upload_with(Memory::one("new", given(len)), tuning).await.unwrap();
            let counts = progress.snapshot();
            assert_eq!((counts.done, counts.skipped, armed.hits()), (1, 0, 1), "{op} {fault}");
            assert!(stage.world.get("new").await == pattern(len), "{op} {fault}");
        }
    }
}

/// Case 24: a line on which the kernel holds for three seconds what it took at once, and a client that allows two seconds of
/// standstill. In real time: the kernel's part of this cannot be paused. semantics 32
#[tokio::test]
async fn a_narrow_line_is_slow_and_not_still() {
    let stage = Stage::new(Config { no_progress: Duration::from_secs(2), ..config() }).await;
    stage.arm("op=PutBlob,rate=1000000");
    let data = Chunks::from(pattern(3_000_000));
    let blob = Blob::new(&stage.client, CONTAINER, NAME);
    let stats = stage.client.stats();
    let under_way = || stats.bytes_under_way.load(Relaxed);
    let progress_is_seen = async {
        while under_way() == 0 {
            tokio::task::yield_now().await;
        }
    };
    let attributes = Attributes::default();
    let put = blob.put_blob(&data, data.crc64(), &attributes, Replace::Always);
    let (written, ()) = tokio::join!(put, progress_is_seen);
    written.unwrap();
    assert_eq!(under_way(), 0, "all of it is answered");
    assert_eq!(stats.retries().iter().sum::<u64>(), 0, "nothing was sent twice");
    assert!(stage.committed().await == Some(pattern(3_000_000)));
    let seen = stage.world.emulator.seen();
    assert!(seen.iter().all(|s| !s.query.contains("timeout=")), "the service is given no limit either");
}
