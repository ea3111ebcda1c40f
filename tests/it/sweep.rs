//! The engine of changes, with a change in memory: what is done when, what ends it, and that the counts add up.

use blobjet::endpoint::change::{Change, Changed, Met, Subject};
use blobjet::endpoint::explain::Explanation;
use blobjet::endpoint::{Facts, Task};
use blobjet::error::{Error, Kind, Result};
use blobjet::transfer::progress::{NOT_STARTED, Progress, Snapshot};
use blobjet::transfer::stop::{self, Phase, Stop, Stopper};
use blobjet::transfer::sweep::{Sweep, run};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// What becomes of an object, by its name.
type Fate = Box<dyn Fn(&str) -> Result<Changed> + Send + Sync>;

struct Memory {
    batches: Vec<Vec<&'static str>>,
    /// The error that the listing ends in.
    broken: bool,
    at_a_time: usize,
    fate: Fate,
    done: Mutex<Vec<Vec<String>>>,
    stopper: Option<(Stopper, Phase)>,
}

impl Memory {
    fn of(batches: &[&[&'static str]], fate: impl Fn(&str) -> Result<Changed> + Send + Sync + 'static) -> Memory {
        let batches = batches.iter().map(|batch| batch.to_vec()).collect();
        Memory { batches, broken: false, at_a_time: 2, fate: Box::new(fate), done: Mutex::default(), stopper: None }
    }
}

fn met(name: &'static str) -> Met {
    let facts = Facts { len: Some(1), modified: None };
    match name.as_bytes()[0] {
        b'!' => Met::Failed { name: name.to_owned(), error: Error::new(Kind::Name, "no") },
        b'-' => Met::Skipped { name: name.to_owned(), reason: "a folder" },
        _ => Met::Subject(Subject { name: name.to_owned(), facts, last: name.ends_with('/') }),
    }
}

impl Change for Memory {
    fn list<'a>(&'a self, out: mpsc::Sender<Vec<Met>>) -> Task<'a, Result<()>> {
        Box::pin(async move {
            for batch in &self.batches {
                if out.send(batch.iter().copied().map(met).collect()).await.is_err() {
                    return Ok(());
                }
            }
            if self.broken { Err(Error::new(Kind::GaveUp, "cannot list")) } else { Ok(()) }
        })
    }

    fn explain<'a>(&'a self, _: &'a str) -> Task<'a, Result<Explanation>> {
        unreachable!("not asked")
    }

    fn at_a_time(&self) -> usize {
        self.at_a_time
    }

    fn apply<'a>(&'a self, subjects: &'a [Subject]) -> Task<'a, Vec<Result<Changed>>> {
        Box::pin(async move {
            self.done.lock().unwrap().push(subjects.iter().map(|subject| subject.name.clone()).collect());
            if let Some((stopper, phase)) = &self.stopper {
                stopper.advance(*phase);
                tokio::task::yield_now().await;
            }
            subjects.iter().map(|subject| (self.fate)(&subject.name)).collect()
        })
    }
}

async fn sweep(memory: Memory, lanes: usize, stop: Stop) -> (Result<()>, Snapshot, Arc<Progress>, Vec<Vec<String>>) {
    let memory = Arc::new(memory);
    let progress = Progress::new(None);
    let sweep =
        Sweep { change: Arc::clone(&memory) as _, lanes: NonZeroUsize::new(lanes).unwrap(), earlier: None, vanish: false };
    let result = run(sweep, Arc::clone(&progress), stop).await;
    let done = std::mem::take(&mut *memory.done.lock().unwrap());
    let counts = progress.snapshot();
    assert_eq!(counts.pending(), 0, "{counts:?}");
    (result, counts, progress, done)
}

fn fine(_: &str) -> Result<Changed> {
    Ok(Changed::Done(None))
}

#[tokio::test]
async fn each_object_comes_to_one_end() {
    let fate = |name: &str| match name {
        "c" => Err(Error::new(Kind::Conflict, "leased")),
        "d" => Ok(Changed::Skipped("as it is")),
        _ => Ok(Changed::Done(None)),
    };
    for lanes in [1, 4] {
        let memory = Memory::of(&[&["a", "b", "c"], &["!n"], &["-f", "d", "e"]], fate);
        let (result, counts, progress, done) = sweep(memory, lanes, Stop::never()).await;
        result.unwrap();
        assert_eq!((counts.listed, counts.done, counts.failed, counts.skipped), (7, 3, 2, 2));
        assert!(counts.listing_done && done.iter().all(|some| some.len() <= 2), "{done:?}");
        assert_eq!(progress.failures().len(), 2);
    }
}

/// Folders that must be empty wait for all others, and the deeper ones come first.
#[tokio::test]
async fn what_must_be_last_is_last_from_the_end() {
    let memory = Memory::of(&[&["a/", "a/b/", "a/b/c"], &["a/d", "e"]], fine);
    let (result, counts, _, done) = sweep(memory, 3, Stop::never()).await;
    result.unwrap();
    assert_eq!(counts.done, 5);
    assert_eq!(done[done.len() - 2..], [vec!["a/b/".to_owned()], vec!["a/".to_owned()]]);
}

/// The first error that would meet all ends the job; objects that met it count as failed, those not begun as skipped.
#[tokio::test]
async fn what_meets_all_ends_the_job() {
    for kind in [Kind::AccessRefused, Kind::SourceNotFound] {
        let fate = move |name: &str| if name == "b" { Err(Error::new(kind, "no")) } else { Ok(Changed::Done(None)) };
        let memory = Memory::of(&[&["a", "b", "c", "d", "e/"]], fate);
        let (result, counts, progress, done) = sweep(memory, 1, Stop::never()).await;
        assert_eq!((result.unwrap_err().kind(), done.len()), (kind, 1));
        assert_eq!((counts.listed, counts.done), (5, 1));
        assert_eq!(progress.skips()[0].reason, NOT_STARTED);
    }
}

/// A listing that breaks off is told once what it found is done.
#[tokio::test]
async fn what_was_found_is_done_though_the_listing_breaks_off() {
    let memory = Memory { broken: true, ..Memory::of(&[&["a", "b", "c/"]], fine) };
    let (result, counts, ..) = sweep(memory, 2, Stop::never()).await;
    assert_eq!((result.unwrap_err().kind(), counts.listed, counts.done), (Kind::GaveUp, 3, 3));
}

/// Told to stop, what is under way ends and nothing is begun; told again, it is dropped.
#[tokio::test]
async fn a_stop_ends_it_with_counts_that_add_up() {
    for (phase, done, failed) in [(Phase::Drain, 2, 0), (Phase::Now, 0, 2)] {
        let (stopper, stop) = stop::channel();
        let memory = Memory { stopper: Some((stopper, phase)), ..Memory::of(&[&["a", "b", "c", "d"], &["e", "f/"]], fine) };
        let (result, counts, ..) = sweep(memory, 1, stop).await;
        result.unwrap();
        assert_eq!((counts.done, counts.failed, counts.skipped), (done, failed, counts.listed - 2), "{phase:?} {counts:?}");
    }
}
