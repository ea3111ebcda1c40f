//! Random sequences of uploads, removals, other writers, interruptions and faults, against a plain map of what the container must
//! hold.
//!
//! After each step every name is read and compared. What the model allows follows from what the job said of each object: one that
//! is done is there, new and whole; one that is skipped, or failed before its commit could have had an effect, is as it was; of one
//! that was cut off the old or the new version is there, and nothing else. So nothing committed is ever lost to a failure, contents
//! are one whole version always, and counts add up.
//!
//! `cargo test` tries a few sequences; `BLOBJET_MODEL_CASES=5000 cargo test --release --test it -- model::` tries that many. Seeds
//! of sequences that failed are kept in `tests/data/model.seeds` and tried first.

use crate::double::{Given, Memory};
use crate::script::config;
use crate::world::{CONTAINER, World};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::endpoint::blob::{BlobSink, ContentTypes};
use blobjet::error::Kind;
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::{Blob, DeleteSnapshots};
use blobjet::rest::client::{Client, Config};
use blobjet::rest::container::{Container, ListOptions};
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::{Overwrite, Tuning};
use blobjet::transfer::progress::{Event, Observer, Outcome, Progress};
use blobjet::transfer::stop::{self, Phase, Stop};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Bytes of a block, and of the largest object sent in one request.
const BLOCK: u64 = 1000;

/// Names in play; `*` of no rule fits two of them.
const NAMES: [&str; 5] = ["a", "b/c", "d e", "f%g", "h+i"];

/// One object of an upload.
#[derive(Debug, Clone)]
struct Object {
    name: usize,
    /// Bytes: around nothing, a block, several.
    len: usize,
    /// Which content; the same version of the same length is the same file.
    version: u8,
    /// Changed when it is to be committed.
    changes: bool,
    pipe: bool,
}

/// What is wrong while a step runs.
#[derive(Debug, Clone)]
enum Trouble {
    /// Some requests meet a fault that heals: rules, each for one request.
    Passing(Vec<String>),
    /// One name can never be written. Nothing of it takes effect.
    Forbidden { name: usize, code: &'static str },
    /// One name's writes take effect, and nobody is told.
    Mute { name: usize },
    /// Access is refused from the nth request on.
    Refused { from: u64 },
}

/// How an upload is ended before its time.
#[derive(Debug, Clone, Copy)]
enum Ended {
    Not,
    /// Told to stop after so many requests.
    Stopped {
        after: u64,
        phase: Phase,
    },
    /// Dropped, as by a kill.
    Dropped {
        after: u64,
    },
}

#[derive(Debug, Clone)]
struct Upload {
    objects: Vec<Object>,
    overwrite: Overwrite,
    /// Whether the sources are younger than anything in the container.
    young: bool,
    lanes: usize,
    put_md5: bool,
    trouble: Trouble,
    ended: Ended,
}

#[derive(Debug, Clone)]
enum Step {
    Upload(Upload),
    /// Two uploads to one name at the same time.
    Race {
        name: usize,
        lens: [usize; 2],
        versions: [u8; 2],
    },
    /// Another program writes a whole blob.
    Other {
        name: usize,
        len: usize,
        version: u8,
    },
    /// Another program leaves a block behind, whose id is as long as ours or not.
    Leftover {
        name: usize,
        as_long: bool,
    },
    Remove {
        name: usize,
        trouble: Vec<String>,
    },
    List {
        trouble: Vec<String>,
    },
}

fn content(name: usize, len: usize, version: u8) -> Vec<u8> {
    let start = u8::try_from(name).unwrap() ^ version.wrapping_mul(31);
    (0..len).map(|i| u8::try_from((i ^ (i >> 8)) & 0xFF).unwrap() ^ start).collect()
}

fn lens() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), Just(999), Just(1000), Just(1001), Just(2000), 1001..6000usize]
}

/// Faults that heal: each hits one request. One flipped byte at most: two in the same request are a broken line.
fn passing() -> impl Strategy<Value = Vec<String>> {
    let fault = prop::sample::select(vec![
        "status=500/InternalError",
        "status=500/OperationTimedOut,late",
        "status=503/ServerBusy",
        "status=503/ServerBusy,retry-after=2,late",
        "status=408",
        "status=429",
        "status=502",
        "status=504",
        "reset",
        "reset=500",
        "reset=end",
        "drop",
        "cut=head",
        "hang",
        "hang,late",
        "delay=3s",
    ]);
    let rule = (1..15u64, fault).prop_map(|(nth, fault)| format!("nth={nth},{fault}"));
    (prop::collection::vec(rule, 0..4), prop::option::of((1..10u64, 0..1000u64))).prop_map(|(mut rules, flip)| {
        rules.extend(flip.map(|(nth, byte)| format!("nth={nth},flip-request={byte}")));
        rules
    })
}

fn trouble() -> impl Strategy<Value = Trouble> {
    const CODES: &[&str] = &["BlobImmutableDueToPolicy", "LeaseIdMissing", "BlobArchived"];
    prop_oneof![
        6 => passing().prop_map(Trouble::Passing),
        1 => (0..NAMES.len(), prop::sample::select(CODES)).prop_map(|(name, code)| Trouble::Forbidden { name, code }),
        1 => (0..NAMES.len()).prop_map(|name| Trouble::Mute { name }),
        1 => (1..10u64).prop_map(|from| Trouble::Refused { from }),
    ]
}

fn objects() -> impl Strategy<Value = Vec<Object>> {
    let object = (0..NAMES.len(), lens(), 0..3u8, prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    let object = object.prop_map(|(name, len, version, changes, pipe)| Object {
        name,
        len,
        version,
        // A pipe is what comes out of it: there is nothing to compare it with.
        changes: changes && !pipe,
        pipe,
    });
    prop::collection::vec(object, 1..5).prop_map(|mut objects: Vec<Object>| {
        objects.sort_by_key(|object| object.name);
        objects.dedup_by_key(|object| object.name);
        objects
    })
}

fn ended() -> impl Strategy<Value = Ended> {
    prop_oneof![
        4 => Just(Ended::Not),
        1 => (0..12u64).prop_map(|after| Ended::Stopped { after, phase: Phase::Drain }),
        1 => (0..12u64).prop_map(|after| Ended::Stopped { after, phase: Phase::Now }),
        1 => (0..12u64).prop_map(|after| Ended::Dropped { after }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let overwrite = prop_oneof![3 => Just(Overwrite::True), 1 => Just(Overwrite::False), 1 => Just(Overwrite::IfSourceNewer)];
    let upload = (objects(), overwrite, any::<bool>(), 1..5usize, any::<bool>(), trouble(), ended());
    let upload = upload.prop_map(|(objects, overwrite, young, lanes, put_md5, trouble, ended)| {
        Step::Upload(Upload { objects, overwrite, young, lanes, put_md5, trouble, ended })
    });
    let name = || 0..NAMES.len();
    prop_oneof![
        8 => upload,
        1 => (name(), [lens(), lens()], [0..3u8, 3..6u8]).prop_map(|(name, lens, versions)| Step::Race { name, lens, versions }),
        1 => (name(), lens(), 0..3u8).prop_map(|(name, len, version)| Step::Other { name, len, version }),
        1 => (name(), any::<bool>()).prop_map(|(name, as_long)| Step::Leftover { name, as_long }),
        1 => (name(), passing()).prop_map(|(name, trouble)| Step::Remove { name, trouble }),
        1 => passing().prop_map(|trouble| Step::List { trouble }),
    ]
}

/// What a job said of an object's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Done,
    Skipped,
    Failed(Kind),
}

#[derive(Default)]
struct Ear(Mutex<BTreeMap<String, Said>>);

impl Observer for Ear {
    fn ended(&self, event: Event<'_>) {
        let said = match event.outcome {
            Outcome::Done { .. } => Said::Done,
            Outcome::Skipped(_) => Said::Skipped,
            Outcome::Failed(error) => Said::Failed(error.kind()),
        };
        assert!(self.0.lock().unwrap().insert(event.source.to_owned(), said).is_none(), "told once");
    }
}

/// The container as it must be, and the one there is.
struct Model {
    world: World,
    /// What is committed, by name.
    holds: BTreeMap<usize, Vec<u8>>,
    /// Whether blocks of another program lie there, with ids of another length: those may bar a name.
    barred: [bool; NAMES.len()],
}

impl Model {
    /// A client that has no connection yet.
    fn client(&self, rules: &[String]) -> Client {
        let hangs = rules.iter().any(|rule| rule.contains("hang"));
        // Time runs while the kernel holds bytes: patience has an end only where silence is part of the plan.
        let no_progress = if hangs { Config::default().no_progress } else { Duration::from_secs(1_000_000) };
        let inputs = Inputs {
            account: Some(self.world.emulator.account().to_owned()),
            key: Some(self.world.emulator.key().clone()),
            ..Inputs::default()
        };
        let location = self.world.client.location();
        Client::new(location, choose(location, &inputs).unwrap(), Config { no_progress, ..config() }).unwrap()
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Upload(upload) => self.upload(upload).await,
            Step::Race { name, lens, versions } => self.race(*name, *lens, *versions).await,
            Step::Other { name, len, version } => {
                let data = content(*name, *len, *version);
                let chunks = Chunks::from(data.clone());
                let blob = Blob::new(&self.world.client, CONTAINER, NAMES[*name]);
                blob.put_blob(&chunks, chunks.crc64(), &Attributes::default(), Replace::Always).await.unwrap();
                self.holds.insert(*name, data);
                self.barred[*name] = false;
            }
            Step::Leftover { name, as_long } => {
                let id = if *as_long { format!("{}=", "A".repeat(43)) } else { "QUFB".to_owned() };
                let data = Chunks::from(b"left over".to_vec());
                let blob = Blob::new(&self.world.client, CONTAINER, NAMES[*name]);
                // Refused where blocks of the other length lie there already.
                if blob.put_block(&id, &data, data.crc64()).await.is_ok() {
                    self.barred[*name] |= !as_long;
                }
            }
            Step::Remove { name, trouble } => {
                let rules: Vec<_> = trouble.iter().map(|rule| self.world.emulator.fault(rule.parse().unwrap())).collect();
                let client = self.client(trouble);
                Blob::new(&client, CONTAINER, NAMES[*name]).delete(DeleteSnapshots::Refuse).await.unwrap();
                rules.iter().for_each(blobjet::emulator::Armed::remove);
                self.holds.remove(name);
            }
            Step::List { trouble } => {
                let rules: Vec<_> = trouble.iter().map(|rule| self.world.emulator.fault(rule.parse().unwrap())).collect();
                let client = self.client(trouble);
                let container = Container::new(&client, CONTAINER);
                let (mut names, mut marker) = (Vec::new(), None);
                loop {
                    let options = ListOptions { max_results: Some(2), marker, ..ListOptions::default() };
                    let page = container.list(&options).await.unwrap();
                    names.extend(page.blobs().map(|blob| blob.name.clone()));
                    match page.next_marker {
                        Some(next) => marker = Some(next),
                        None => break,
                    }
                }
                rules.iter().for_each(blobjet::emulator::Armed::remove);
                let mut expected: Vec<&str> = self.holds.keys().map(|name| NAMES[*name]).collect();
                expected.sort_unstable();
                assert_eq!(names, expected);
            }
        }
        for (name, shown) in NAMES.iter().enumerate() {
            assert!(self.actual(name).await == self.holds.get(&name).cloned(), "{shown} is not what it was");
        }
    }

    async fn actual(&self, name: usize) -> Option<Vec<u8>> {
        match self.world.properties(NAMES[name]).await {
            Some(_) => Some(self.world.get(NAMES[name]).await),
            None => None,
        }
    }

    async fn upload(&mut self, upload: &Upload) {
        let rules = match &upload.trouble {
            Trouble::Passing(rules) => rules.clone(),
            Trouble::Forbidden { name, code } => vec![format!("method=PUT,path=*/{},status=409/{code}", NAMES[*name])],
            Trouble::Mute { name } => vec![format!("method=PUT,path=*/{},status=500/OperationTimedOut,late", NAMES[*name])],
            Trouble::Refused { from } => vec![format!("after={from},status=403/AuthorizationFailure")],
        };
        let armed: Vec<_> = rules.iter().map(|rule| self.world.emulator.fault(rule.parse().unwrap())).collect();
        let day = Duration::from_secs(86_400);
        let now = SystemTime::now();
        let modified = Some(if upload.young { now + day } else { now - day });
        let mut source = Memory::default();
        for object in &upload.objects {
            let data = content(object.name, object.len, object.version).into();
            let given = Given { data, modified, pipe: object.pipe, changes: object.changes };
            source.objects.insert(NAMES[object.name].to_owned(), given);
        }
        let tuning = Tuning {
            block_size: BLOCK,
            whole_limit: BLOCK,
            lanes: NonZeroUsize::new(upload.lanes).unwrap(),
            put_md5: upload.put_md5,
            overwrite: upload.overwrite,
            ..Tuning::default()
        };
        let sink = BlobSink::new(self.client(&rules), CONTAINER, Attributes::default(), ContentTypes::Service);
        let ear = Arc::new(Ear::default());
        let progress = Progress::new(Some(ear.clone()));
        let job = Job { source: Arc::new(source), sink: Arc::new(sink), tuning, prompt: None, earlier: None };
        let (stopper, stop) = stop::channel();
        let from = self.world.emulator.requests();
        let reached = async |after: u64| {
            while self.world.emulator.requests() < from + after {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let running = run(job, Arc::clone(&progress), stop);
        let result = match upload.ended {
            Ended::Not => Some(running.await),
            Ended::Dropped { after } => tokio::select! {
                biased;
                () = reached(after) => None,
                result = running => Some(result),
            },
            Ended::Stopped { after, phase } => {
                let stopping = async {
                    reached(after).await;
                    stopper.advance(phase);
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = stopping => None,
                    result = running => Some(result),
                }
            }
        };
        armed.iter().for_each(blobjet::emulator::Armed::remove);
        let said = ear.0.lock().unwrap().clone();
        self.check_counts(upload, result.as_ref(), &progress);
        for object in &upload.objects {
            self.settle(upload, object, said.get(NAMES[object.name]).copied(), matches!(result, Some(Ok(_)))).await;
        }
    }

    /// What the numbers must be, whatever happened.
    fn check_counts(
        &self,
        upload: &Upload,
        result: Option<&blobjet::Result<blobjet::transfer::engine::Summary>>,
        progress: &Progress,
    ) {
        let counts = progress.snapshot();
        let total: u64 = upload.objects.iter().map(|object| object.len as u64).sum();
        assert!(counts.bytes_sent <= total, "acknowledged bytes are counted once: {counts:?}");
        if result.is_some() {
            assert_eq!(counts.listed, counts.done + counts.failed + counts.skipped, "{counts:?}");
        }
        if counts.done == upload.objects.len() as u64 {
            assert_eq!((counts.bytes_sent, counts.bytes_done), (total, total), "all is done: {counts:?}");
        }
    }

    /// Holds the outcome of one object against what is there now, which the model then takes over.
    async fn settle(&mut self, upload: &Upload, object: &Object, said: Option<Said>, whole: bool) {
        let name = object.name;
        let (before, new) = (self.holds.get(&name).cloned(), Some(content(name, object.len, object.version)));
        let actual = self.actual(name).await;
        let what = format!("{} was {said:?}", NAMES[name]);
        let there = before.is_some();
        let may_replace = match upload.overwrite {
            Overwrite::True => true,
            Overwrite::IfSourceNewer => !there || upload.young,
            _ => !there,
        };
        match said {
            Some(Said::Done) => {
                assert!(actual == new, "{what}: the new version is there");
                // The very same bytes cannot be told from those of a try whose answer was lost.
                assert!(may_replace || before == new, "{what}: against the condition");
                assert!(!object.changes, "{what}: a source that changed");
            }
            Some(Said::Skipped) => {
                assert!(actual == before, "{what}: what was there stays");
                assert!(!may_replace, "{what}: nothing was in the way");
            }
            Some(Said::Failed(Kind::SourceChanged)) => {
                assert!(actual == before, "{what}: never a mixture");
                assert!(object.changes, "{what}: it did not");
            }
            Some(Said::Failed(_)) if matches!(upload.trouble, Trouble::Mute { name: mute } if mute == name) => {
                assert!(actual == before || actual == new, "{what}: one whole version");
            }
            Some(Said::Failed(kind)) => {
                assert!(actual == before, "{what}: what was there stays");
                let forbidden = matches!(upload.trouble, Trouble::Forbidden { name: barred, .. } if barred == name);
                assert!(forbidden && kind == Kind::Conflict || self.barred[name], "{what}: it could have been done");
            }
            None => {
                // Cut off, never begun, or the job ended: but then not in a job that came to its end by itself.
                assert!(!whole || !matches!(upload.ended, Ended::Not), "{what}: and the job went to its end");
                assert!(actual == before || actual == new, "{what}: one whole version");
            }
        }
        self.barred[name] &= said != Some(Said::Done);
        match actual {
            Some(data) => self.holds.insert(name, data),
            None => self.holds.remove(&name),
        };
    }

    async fn race(&mut self, name: usize, lens: [usize; 2], versions: [u8; 2]) {
        let before = self.holds.get(&name).cloned();
        let contents = [0, 1].map(|i| content(name, lens[i], versions[i]));
        let upload = |data: &Vec<u8>| {
            let given = Given { data: data.clone().into(), ..Given::default() };
            let sink = BlobSink::new(self.client(&[]), CONTAINER, Attributes::default(), ContentTypes::Service);
            let tuning = Tuning { block_size: BLOCK, whole_limit: BLOCK, ..Tuning::default() };
            let source = Arc::new(Memory::one(NAMES[name], given));
            let job = Job { source, sink: Arc::new(sink), tuning, prompt: None, earlier: None };
            run(job, Progress::new(None), Stop::never())
        };
        let (one, two) = tokio::join!(upload(&contents[0]), upload(&contents[1]));
        let done = [one, two].map(|result| result.unwrap().counts.done == 1);
        let actual = self.actual(name).await;
        // The commit of one drops the blocks of the other, which may then have nothing to commit.
        let mut allowed: Vec<Option<Vec<u8>>> = (0..2).filter(|i| done[*i]).map(|i| Some(contents[i].clone())).collect();
        if allowed.is_empty() {
            assert!(self.barred[name], "one of the two could have been done");
            allowed.push(before);
        }
        assert!(allowed.contains(&actual), "one of the two files, whole");
        self.barred[name] &= !done.contains(&true);
        match actual {
            Some(data) => self.holds.insert(name, data),
            None => self.holds.remove(&name),
        };
    }
}

fn play(steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new().await;
        let mut model = Model { world, holds: BTreeMap::new(), barred: [false; NAMES.len()] };
        for step in steps {
            model.take(step).await;
        }
    });
}

// semantics 1, 2, 5, 6, 12, 18, 21, 24
#[test]
fn whatever_happens_the_container_holds_whole_versions_and_loses_none() {
    let cases = std::env::var("BLOBJET_MODEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    let config = ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/data/model.seeds"))),
        source_file: Some(file!()),
        max_shrink_iters: 500,
        ..ProptestConfig::default()
    };
    let sequences = prop::collection::vec(step(), 1..8);
    let outcome = TestRunner::new(config).run(&sequences, |steps| {
        play(&steps);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
