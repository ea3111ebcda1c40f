//! Every fault, met by every operation it can befall: how it ends, how many requests it took, how many bytes were sent again,
//! what is committed afterwards, and what is said.
//!
//! Time is paused, so waits take none. It moves on whenever nobody has anything to do, and the kernel may hold bytes at such a
//! moment: so the client's patience with silence is without end but where silence is the subject.

use crate::double::{Given, Memory, pattern};
use crate::script::{Script, answer, config};
use crate::world::{CONTAINER, World};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::emulator::Armed;
use blobjet::endpoint::blob::{BlobSink, ContentTypes};
use blobjet::error::{Error, Kind};
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::{Blob, DeleteSnapshots};
use blobjet::rest::client::{Client, Config};
use blobjet::rest::container::{Container, ListOptions};
use blobjet::rest::model::BlockListType;
use blobjet::rest::stats::RETRY_CAUSES;
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::Tuning;
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What is done while the fault is there, named by the request the fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// An upload in one request.
    PutBlob,
    /// An upload in blocks; the second block meets the fault.
    PutBlock,
    /// The same; the commit meets it.
    PutBlockList,
    GetBlobProperties,
    GetBlockList,
    ListBlobs,
    DeleteBlob,
    CreateContainer,
}

use Op::{CreateContainer, DeleteBlob, GetBlobProperties, GetBlockList, ListBlobs, PutBlob, PutBlock, PutBlockList};

const ALL: [Op; 8] = [PutBlob, PutBlock, PutBlockList, GetBlobProperties, GetBlockList, ListBlobs, DeleteBlob, CreateContainer];

/// Bytes of an upload in one request.
pub(crate) const WHOLE: usize = 1000;
/// Bytes of a block.
pub(crate) const BLOCK: usize = 10_000;
pub(crate) const BLOCKS: usize = 3;

pub(crate) const OLD: &[u8] = b"what was there before";
pub(crate) const NAME: &str = "d/x.bin";

/// How an action went.
#[derive(Debug)]
pub(crate) struct Went {
    pub(crate) result: Result<(), Arc<Error>>,
    /// Requests that came, whatever became of them.
    pub(crate) requests: usize,
    /// Bytes of data whose requests came, beyond those of the object.
    pub(crate) again: u64,
    /// Retries by cause, none left out.
    pub(crate) retries: Vec<(&'static str, u64)>,
    pub(crate) took: Duration,
}

/// A service with [`OLD`] under [`NAME`] and a client that has sent nothing yet.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) client: Client,
}

impl Stage {
    pub(crate) async fn new(config: Config) -> Stage {
        let world = World::new().await;
        let old = Chunks::from(OLD.to_vec());
        let blob = Blob::new(&world.client, CONTAINER, NAME);
        blob.put_blob(&old, old.crc64(), &Attributes::default(), Replace::Always).await.unwrap();
        let location = world.client.location().clone();
        let inputs = Inputs {
            account: Some(world.emulator.account().to_owned()),
            key: Some(world.emulator.key().clone()),
            ..Inputs::default()
        };
        let client = Client::new(&location, choose(&location, &inputs).unwrap(), config).unwrap();
        Stage { world, client }
    }

    /// With a client that waits for ever for a byte to move.
    pub(crate) async fn patient() -> Stage {
        Stage::new(Config { no_progress: Duration::from_secs(1_000_000), ..config() }).await
    }

    pub(crate) fn arm(&self, rule: &str) -> Armed {
        self.world.emulator.fault(rule.parse().unwrap())
    }

    /// Does it, and counts.
    pub(crate) async fn act(&self, op: Op) -> Went {
        let (before, start) = (self.world.emulator.seen().len(), Instant::now());
        let result = self.request(op).await;
        let took = start.elapsed();
        let seen = &self.world.emulator.seen()[before..];
        let is_data = |query: &str| !query.contains("comp=blocklist") && !query.contains("restype=");
        let sent: u64 = seen.iter().filter(|s| s.method == "PUT" && is_data(&s.query)).map(|s| s.body_len).sum();
        let needed = match op {
            PutBlob => WHOLE,
            PutBlock | PutBlockList => BLOCK * BLOCKS,
            _ => 0,
        };
        let counted = self.client.stats().retries();
        let retries = RETRY_CAUSES.into_iter().zip(counted).filter(|(_, count)| *count > 0).collect();
        Went { result, requests: seen.len(), again: sent.saturating_sub(needed as u64), retries, took }
    }

    async fn request(&self, op: Op) -> Result<(), Arc<Error>> {
        let blob = Blob::new(&self.client, CONTAINER, NAME);
        let result = match op {
            PutBlob => {
                let data = Chunks::from(pattern(WHOLE));
                blob.put_blob(&data, data.crc64(), &Attributes::default(), Replace::Always).await.map(drop)
            }
            PutBlock | PutBlockList => return self.upload(Memory::one(NAME, given(BLOCKS * BLOCK)), 1).await.map(drop),
            GetBlobProperties => blob.get_properties().await.map(drop),
            GetBlockList => blob.get_block_list(BlockListType::All).await.map(drop),
            ListBlobs => {
                let page = Container::new(&self.client, CONTAINER).list(&ListOptions::default()).await;
                page.map(|page| assert_eq!(page.blobs().count(), 1))
            }
            DeleteBlob => blob.delete(DeleteSnapshots::Refuse).await.map(drop),
            CreateContainer => Container::new(&self.client, "another").create().await.map(drop),
        };
        result.map_err(Arc::new)
    }

    /// An upload by the engine. A failure of one object alone is given as the error.
    pub(crate) async fn upload(&self, source: Memory, lanes: usize) -> Result<Arc<Progress>, Arc<Error>> {
        self.upload_with(source, Tuning { lanes: NonZeroUsize::new(lanes).unwrap(), ..tuning() }).await
    }

    pub(crate) async fn upload_with(&self, source: Memory, tuning: Tuning) -> Result<Arc<Progress>, Arc<Error>> {
        let total: u64 = source.objects.values().map(|given| given.data.len() as u64).sum();
        let sink = BlobSink::new(self.client.clone(), CONTAINER, Attributes::default(), ContentTypes::Service);
        let progress = Progress::new(None);
        let job = Job { source: Arc::new(source), sink: Arc::new(sink), tuning, prompt: None, earlier: None };
        let ended = run(job, Arc::clone(&progress), Stop::never()).await;
        let counts = progress.snapshot();
        assert_eq!(counts.listed, counts.done + counts.failed + counts.skipped, "counts add up");
        assert!(counts.bytes_sent <= total, "acknowledged bytes are counted once");
        assert!(counts.done < counts.listed || counts.bytes_sent == total, "{counts:?}");
        ended.map_err(Arc::new)?;
        match progress.failures().into_iter().next() {
            Some(group) if counts.listed == 1 => Err(group.first),
            _ => Ok(progress),
        }
    }

    /// What is committed under the name.
    pub(crate) async fn committed(&self) -> Option<Vec<u8>> {
        match self.world.properties(NAME).await {
            Some(_) => Some(self.world.get(NAME).await),
            None => None,
        }
    }
}

pub(crate) fn tuning() -> Tuning {
    let size = u64::try_from(BLOCK).unwrap();
    Tuning { block_size: size, whole_limit: size, lanes: NonZeroUsize::MIN, ..Tuning::default() }
}

pub(crate) fn given(len: usize) -> Given {
    Given { data: pattern(len).into(), ..Given::default() }
}

/// What is to be committed after the operation went well.
fn after(op: Op) -> Option<Vec<u8>> {
    match op {
        PutBlob => Some(pattern(WHOLE)),
        PutBlock | PutBlockList => Some(pattern(BLOCKS * BLOCK)),
        DeleteBlob => None,
        _ => Some(OLD.to_vec()),
    }
}

/// The rule for the request of an operation that is to meet the fault: of several blocks the second.
fn rule(op: Op, fault: &str) -> String {
    format!("op={op:?},nth={},{fault}", if op == PutBlock { 2 } else { 1 })
}

/// Bytes of data that the request brings which meets the fault.
fn data_of(op: Op) -> u64 {
    match op {
        PutBlob => WHOLE as u64,
        PutBlock => BLOCK as u64,
        _ => 0,
    }
}

/// Requests where nothing goes wrong: of blocks one more that asks what an earlier try has left.
fn least(op: Op) -> usize {
    if matches!(op, PutBlock | PutBlockList) { BLOCKS + 2 } else { 1 }
}

// semantics 5, 21, 24
#[tokio::test(start_paused = true)]
async fn one_fault_of_each_kind_costs_each_operation_one_request_and_nothing_else() {
    let never = Duration::from_secs(1_000_000);
    let normal = Config::default().no_progress;
    let faults = [
        ("status=408", "server error", never),
        ("status=429,retry-after=7", "throttled", never),
        ("status=500,retry-after=7", "server error", never),
        ("status=503/ServerBusy,retry-after=7", "throttled", never),
        ("status=429", "throttled", never),
        ("status=500/InternalError", "server error", never),
        ("status=500/OperationTimedOut", "server error", never),
        ("status=500/OperationTimedOut,late", "server error", never),
        ("status=502", "server error", never),
        ("status=503/ServerBusy", "throttled", never),
        ("status=503/ServerBusy,late", "throttled", never),
        ("status=504", "server error", never),
        ("reset", "connection", never),
        ("reset=500", "connection", never),
        ("reset=end", "connection", never),
        ("drop", "connection", never),
        ("cut=head", "connection", never),
        ("hang", "no progress", normal),
        ("hang,late", "no progress", normal),
    ];
    for (fault, cause, no_progress) in faults {
        for op in ALL {
            let stage = Stage::new(Config { no_progress, ..config() }).await;
            let armed = stage.arm(&rule(op, fault));
            let went = stage.act(op).await;
            let what = format!("{fault} at {op:?}: {went:?}");
            assert!(went.result.is_ok(), "{what}");
            assert_eq!((armed.hits(), went.requests, went.again), (1, least(op) + 1, data_of(op)), "{what}");
            // A connection used before may have been closed as the request set out: that is not counted as a failure.
            let reused = matches!(op, PutBlock | PutBlockList) && cause == "connection" && fault != "cut=head";
            let retries = if reused { vec![] } else { vec![(cause, 1)] };
            assert_eq!(went.retries, retries, "{what}");
            // The first pause of our own is at most 0.2 s; the brake lets those that waited go over a tenth of the wait.
            let (least, most) = match fault {
                // A kernel that is late to acknowledge what it has is progress to the watchdog, once.
                _ if cause == "no progress" => (normal, normal * 5 / 2),
                _ if fault.contains("retry-after") => (Duration::from_secs(7), Duration::from_millis(7700)),
                _ => (Duration::ZERO, Duration::ZERO),
            };
            assert!(went.took >= least && went.took <= most + Duration::from_millis(500), "{what}");
            assert!(stage.committed().await == after(op), "{what}");
        }
    }
}

// semantics 5, 20, 21
#[tokio::test(start_paused = true)]
async fn what_cannot_heal_fails_at_once_and_changes_nothing() {
    let faults = [
        ("status=400/InvalidInput", Kind::Refused),
        ("status=401/NoAuthenticationInformation", Kind::AccessRefused),
        ("status=403/AuthorizationFailure", Kind::AccessRefused),
        ("status=403/AuthenticationFailed", Kind::AccessRefused),
        ("status=404/ContainerNotFound", Kind::ContainerNotFound),
        ("status=409/BlobImmutableDueToPolicy", Kind::Conflict),
        ("status=409/BlobArchived", Kind::Conflict),
        ("status=412/LeaseIdMissing", Kind::Conflict),
        ("status=501/NotImplemented", Kind::Unsupported),
        ("date=+1h", Kind::AccessRefused),
        ("date=-1h", Kind::AccessRefused),
    ];
    for (fault, kind) in faults {
        for op in ALL {
            let stage = Stage::patient().await;
            stage.arm(&rule(op, fault));
            let went = stage.act(op).await;
            let what = format!("{fault} at {op:?}: {went:?}");
            let error = went.result.as_ref().unwrap_err();
            assert_eq!(error.kind(), kind, "{what}");
            // The fault's own request is the last one.
            let requests = match op {
                PutBlock => 3,
                op => least(op),
            };
            assert_eq!((went.requests, went.again, went.retries.len()), (requests, 0, 0), "{what}");
            assert_eq!(went.took, Duration::ZERO, "{what}");
            assert!(stage.committed().await.as_deref() == Some(OLD), "{what}");
            assert!(error.answer().unwrap().from_service, "{what}");
            if fault.starts_with("date") {
                let ahead = error.answer().unwrap().clock_ahead_s.unwrap().unsigned_abs();
                assert!((3595..=3605).contains(&ahead), "the difference of the clocks is known: {what}");
            }
        }
    }
}

// semantics 5, 21
#[tokio::test(start_paused = true)]
async fn what_stays_broken_is_given_up_after_ever_longer_pauses() {
    let limit = Config::default().give_up_after;
    for (fault, code) in [
        ("status=500/OperationTimedOut", Some("OperationTimedOut")),
        ("status=503/ServerBusy", Some("ServerBusy")),
        ("reset=end", None),
        ("cut=head", None),
    ] {
        for op in ALL {
            let stage = Stage::patient().await;
            let armed = stage.arm(&format!("op={op:?},{fault}"));
            let went = stage.act(op).await;
            let what = format!("{fault} at {op:?}: {went:?}");
            // Where the answer alone was lost every try had its effect: that of a commit is seen by looking.
            if fault == "cut=head" && op == PutBlockList {
                armed.remove();
                assert!(went.result.is_ok() && stage.committed().await == after(op), "{what}");
                continue;
            }
            let error = went.result.as_ref().unwrap_err();
            assert_eq!((error.kind(), error.code()), (Kind::GaveUp, code), "{what}");
            let attempts = error.attempts().unwrap();
            assert_eq!(u64::from(attempts.count), armed.hits(), "{what}");
            // The longest pauses there can be, 0.2 s doubled up to 60 s, leave room for 12 tries.
            assert!((12..200).contains(&attempts.count), "{what}");
            // Those that the brake held go over a tenth of its longest hold.
            assert!(attempts.elapsed <= limit + Duration::from_secs(6), "{what}");
            armed.remove();
            let there = if fault == "cut=head" && op != PutBlock { after(op) } else { Some(OLD.to_vec()) };
            assert!(stage.committed().await == there, "{what}");
        }
    }
    // Told to come back after the end of our patience: at once.
    for op in ALL {
        let stage = Stage::patient().await;
        let armed = stage.arm(&format!("op={op:?},status=503/ServerBusy,retry-after=3600"));
        let went = stage.act(op).await;
        assert_eq!(went.result.as_ref().unwrap_err().kind(), Kind::GaveUp, "{op:?}: {went:?}");
        assert_eq!((armed.hits(), went.took), (1, Duration::ZERO), "{op:?}: {went:?}");
    }
}

// semantics 11
#[tokio::test(start_paused = true)]
async fn a_redirect_is_reported_and_nobody_is_asked_there() {
    let elsewhere = Script::start(|_, _| answer(201, "", "")).await;
    for op in ALL {
        let stage = Stage::patient().await;
        let armed = stage.arm(&format!("op={op:?},redirect=http://{}/stolen", elsewhere.address));
        let went = stage.act(op).await;
        let error = went.result.as_ref().unwrap_err();
        assert_eq!((error.kind(), went.took), (Kind::BadAnswer, Duration::ZERO), "{op:?}: {went:?}");
        assert!(error.advice().unwrap().contains(&elsewhere.address.to_string()), "{op:?}: {went:?}");
        armed.remove();
        assert_eq!(stage.committed().await.as_deref(), Some(OLD), "{op:?}");
    }
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn lower_limits_are_met_by_other_means_or_named() {
    // What is met, and with how many requests; or the kind and the code of the refusal.
    type Expected = Result<usize, (Kind, &'static str)>;
    let rows: [(&str, usize, Expected); 4] = [
        // Refused in one piece, then in two blocks.
        ("max-blob=5000", BLOCK, Ok(4)),
        ("max-block=5000", BLOCK * BLOCKS, Err((Kind::TooLarge, "RequestBodyTooLarge"))),
        ("max-blocks=2", BLOCK * BLOCKS, Err((Kind::Refused, "BlockListTooLong"))),
        ("max-uncommitted=2", BLOCK * BLOCKS, Err((Kind::Leftovers, "RequestEntityTooLargeBlockCountExceedsLimit"))),
    ];
    for (rule, len, expected) in rows {
        let stage = Stage::patient().await;
        stage.arm(rule);
        let before = stage.world.emulator.seen().len();
        let result = stage.upload(Memory::one(NAME, given(len)), 1).await;
        match expected {
            Ok(requests) => {
                result.unwrap();
                assert_eq!(stage.world.emulator.seen().len() - before, requests, "{rule}");
                assert!(stage.committed().await == Some(pattern(len)), "{rule}");
            }
            Err((kind, code)) => {
                let error = result.unwrap_err();
                assert_eq!((error.kind(), error.code()), (kind, Some(code)), "{rule}");
                assert_eq!(stage.committed().await.as_deref(), Some(OLD), "{rule}");
            }
        }
    }
}

// semantics 3
#[tokio::test(start_paused = true)]
async fn a_byte_flipped_on_the_way_is_found_and_that_request_alone_sent_again() {
    for (op, again) in [(PutBlob, WHOLE), (PutBlock, BLOCK), (PutBlockList, 0)] {
        let stage = Stage::patient().await;
        stage.arm(&rule(op, "flip-request=77"));
        let went = stage.act(op).await;
        assert!(went.result.is_ok(), "{op:?}: {went:?}");
        assert_eq!((went.requests, went.again), (least(op) + 1, again as u64), "{op:?}: {went:?}");
        assert_eq!(went.retries, [("checksum", 1)]);
        assert!(stage.committed().await == after(op), "{op:?}");
        // Every time: something between us and the service is broken, and what was there stays.
        let stage = Stage::patient().await;
        stage.arm(&format!("op={op:?},flip-request=77"));
        let went = stage.act(op).await;
        assert_eq!(went.result.unwrap_err().kind(), Kind::Corrupt, "{op:?}");
        assert_eq!(stage.committed().await.as_deref(), Some(OLD), "{op:?}");
    }
}
