//! What a job has done so far: counters anyone may read while it runs, failures grouped by cause, and a hook for each object.
//!
//! Cheap for a million objects: an object costs a few relaxed additions, and what is remembered of failures is bounded. Counts
//! add up at the end: listed = done + failed + skipped. A block's bytes are counted once, when its acknowledgement is there.

use crate::endpoint::{Facts, Filtered, Receipt};
use crate::error::{Error, Kind};
use std::error::Error as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Causes told apart; failures of any further cause are counted together ([`Failures::other`]).
const CAUSES: usize = 64;

/// Names kept for each cause or reason.
const NAMES: usize = 1000;

/// What became of one object.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// It is at its destination.
    Done {
        /// Its length.
        bytes: u64,
    },
    /// It is not, and should be.
    Failed(&'a Error),
    /// It was left out on purpose.
    Skipped(&'a str),
}

/// How an object came to its end, apart from what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// When the listing that found it was taken.
    pub queued: SystemTime,
    /// When work on it began; `None` if it never did.
    pub started: Option<SystemTime>,
    /// Length and last change of the source; `None` where it was not opened. A stream's length is that of an outcome that
    /// is [`Outcome::Done`].
    pub facts: Option<Facts>,
    /// Blocks it was cut into; 0 for one request. Of a stream: those acknowledged.
    pub blocks: u32,
    /// Requests that were sent again for it.
    pub retries: u32,
}

impl Course {
    /// Of an object found in a listing taken then.
    pub(super) fn queued(queued: SystemTime) -> Course {
        Course { queued, started: None, facts: None, blocks: 0, retries: 0 }
    }

    /// Counts what an acknowledged request took.
    pub(super) fn count(&mut self, receipt: Receipt) {
        self.retries = self.retries.saturating_add(receipt.retries());
    }
}

/// One object's end, as told to an [`Observer`].
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The object at its source, fit for a terminal where it was found in a listing and could not be named otherwise.
    pub source: &'a str,
    /// Its name at the destination, where it got that far.
    pub target: Option<&'a str>,
    /// What became of it.
    pub outcome: Outcome<'a>,
    /// How.
    pub course: Course,
    /// When.
    pub finished: SystemTime,
}

/// Is told of each object as it ends.
pub trait Observer: Send + Sync {
    /// Called once an object, from any task, in no particular order; must not block for long. Objects that a stopped job never
    /// got to, and those that ended it, are counted and not told.
    fn ended(&self, event: Event<'_>);
}

/// Several observers are told one after the other.
impl Observer for Vec<Arc<dyn Observer>> {
    fn ended(&self, event: Event<'_>) {
        self.iter().for_each(|observer| observer.ended(event));
    }
}

/// What one object has at its destination so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct There {
    /// Bytes sent.
    pub(super) sent: u64,
    /// Bytes taken over, and the blocks they are in.
    pub(super) resumed: u64,
    pub(super) blocks_resumed: u64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Objects found so far.
    pub listed: u64,
    /// Objects at their destination.
    pub done: u64,
    /// Objects that failed.
    pub failed: u64,
    /// Objects left out.
    pub skipped: u64,
    /// Objects opened so far.
    pub opened: u64,
    /// Bytes of the objects opened so far (a stream's as far as it was read).
    pub bytes_known: u64,
    /// Bytes this job has sent and the destination acknowledged, each once.
    pub bytes_sent: u64,
    /// Bytes an earlier try had sent, found there and taken over: not among `bytes_sent`.
    pub bytes_resumed: u64,
    /// The blocks they are in.
    pub blocks_resumed: u64,
    /// Objects under whose name blocks of another program had to be discarded first.
    pub cleared: u64,
    /// Bytes of the objects that are done.
    pub bytes_done: u64,
    /// How often an object was started again because its source had changed.
    pub restarts: u64,
    /// What filters left out, which is not among `listed`.
    pub filtered: Filtered,
    /// Whether `listed` is final.
    pub listing_done: bool,
    /// Requests that may be in flight at present.
    pub lanes: usize,
}

impl Snapshot {
    /// Bytes that are at the destination, sent or taken over: at the end of a job without failures as many as are known.
    pub fn bytes_there(&self) -> u64 {
        self.bytes_sent + self.bytes_resumed
    }

    /// Objects found and not ended.
    pub fn pending(&self) -> u64 {
        self.listed.saturating_sub(self.done + self.failed + self.skipped)
    }
}

/// Failures of one cause.
#[derive(Debug, Clone)]
pub struct Failures {
    /// The kind they share.
    pub kind: Kind,
    /// The service's code they share, if it gave one.
    pub code: Option<String>,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Arc<Error>,
    /// Their names (at the source), the first thousand.
    pub names: Vec<String>,
    /// Whether this one holds all that came after the most causes that are told apart.
    pub other: bool,
    cause: Option<String>,
}

/// Objects left out for one reason.
#[derive(Debug, Clone)]
pub struct Skips {
    /// Why.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
    /// Their names (at the source), the first thousand.
    pub names: Vec<String>,
}

#[derive(Debug, Default)]
struct Detail {
    failures: Vec<Failures>,
    skips: Vec<Skips>,
}

/// The state of one job, shared between the engine and whoever shows it.
#[derive(Default)]
pub struct Progress {
    listed: AtomicU64,
    lanes: AtomicUsize,
    done: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
    opened: AtomicU64,
    bytes_known: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_resumed: AtomicU64,
    blocks_resumed: AtomicU64,
    cleared: AtomicU64,
    bytes_done: AtomicU64,
    restarts: AtomicU64,
    filtered_objects: AtomicU64,
    filtered_folders: AtomicU64,
    listing_done: AtomicBool,
    memory_wait: Arc<AtomicU64>,
    detail: Mutex<Detail>,
    observer: Option<Arc<dyn Observer>>,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.snapshot()).finish()
    }
}

impl Progress {
    /// All zero; `observer` hears of every object.
    pub fn new(observer: Option<Arc<dyn Observer>>) -> Arc<Self> {
        Arc::new(Progress { observer, ..Progress::default() })
    }

    /// The counters now. `listed` is read last, so `pending` never comes out too small by what ends meanwhile.
    pub fn snapshot(&self) -> Snapshot {
        // Acquire on the ends pairs with their Release: an object counted as ended was counted as listed before.
        let listing_done = self.listing_done.load(Ordering::Acquire);
        let [done, failed, skipped] = [&self.done, &self.failed, &self.skipped].map(|c| c.load(Ordering::Acquire));
        Snapshot {
            listed: self.listed.load(Ordering::Relaxed),
            done,
            failed,
            skipped,
            opened: self.opened.load(Ordering::Relaxed),
            bytes_known: self.bytes_known.load(Ordering::Relaxed),
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
            bytes_resumed: self.bytes_resumed.load(Ordering::Relaxed),
            blocks_resumed: self.blocks_resumed.load(Ordering::Relaxed),
            cleared: self.cleared.load(Ordering::Relaxed),
            bytes_done: self.bytes_done.load(Ordering::Relaxed),
            restarts: self.restarts.load(Ordering::Relaxed),
            filtered: Filtered {
                objects: self.filtered_objects.load(Ordering::Relaxed),
                folders: self.filtered_folders.load(Ordering::Relaxed),
            },
            listing_done,
            lanes: self.lanes.load(Ordering::Relaxed),
        }
    }

    /// Failures so far by cause, most first.
    pub fn failures(&self) -> Vec<Failures> {
        let mut all: Vec<Failures> = self.detail().failures.clone();
        all.sort_by_key(|group| std::cmp::Reverse(group.count));
        all
    }

    /// What was left out so far by reason, most first.
    pub fn skips(&self) -> Vec<Skips> {
        let mut all = self.detail().skips.clone();
        all.sort_by_key(|group| std::cmp::Reverse(group.count));
        all
    }

    /// Nanoseconds that work has waited for memory, of all lanes together.
    pub fn memory_wait_ns(&self) -> u64 {
        self.memory_wait.load(Ordering::Relaxed)
    }

    /// Where the budget counts them.
    pub(super) fn memory_wait(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.memory_wait)
    }

    pub(super) fn listed(&self, count: u64) {
        self.listed.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn listing_done(&self) {
        self.listing_done.store(true, Ordering::Release);
    }

    pub(super) fn lanes(&self, count: usize) {
        self.lanes.store(count, Ordering::Relaxed);
    }

    pub(super) fn opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn known(&self, bytes: u64) {
        self.bytes_known.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: u64) {
        self.bytes_sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// An object is started again: what its try had counted is taken back.
    pub(super) fn take_back(&self, opened: bool, known: u64, there: There) {
        self.opened.fetch_sub(u64::from(opened), Ordering::Relaxed);
        self.bytes_known.fetch_sub(known, Ordering::Relaxed);
        self.gone(there);
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// A block of an earlier try was taken over.
    pub(super) fn resumed(&self, bytes: u64) {
        self.bytes_resumed.fetch_add(bytes, Ordering::Relaxed);
        self.blocks_resumed.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted as sent or taken over is to be sent again.
    pub(super) fn gone(&self, there: There) {
        self.bytes_sent.fetch_sub(there.sent, Ordering::Relaxed);
        self.bytes_resumed.fetch_sub(there.resumed, Ordering::Relaxed);
        self.blocks_resumed.fetch_sub(there.blocks_resumed, Ordering::Relaxed);
    }

    pub(super) fn cleared(&self) {
        self.cleared.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn done(&self, source: &str, target: &str, course: Course, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Release);
        self.tell(source, Some(target), course, Outcome::Done { bytes });
    }

    /// An object is as it should be where it is.
    pub(super) fn changed(&self, name: &str, course: Course, bytes: u64) {
        self.done.fetch_add(1, Ordering::Release);
        self.tell(name, None, course, Outcome::Done { bytes });
    }

    pub(super) fn failed(&self, source: &str, target: Option<&str>, course: Course, error: Error) {
        self.tell(source, target, course, Outcome::Failed(&error));
        self.detail().fail(source, error);
        self.failed.fetch_add(1, Ordering::Release);
    }

    pub(super) fn skipped(&self, source: &str, target: Option<&str>, course: Course, reason: &'static str) {
        self.tell(source, target, course, Outcome::Skipped(reason));
        self.detail().skip(Some(source), reason, 1);
        self.skipped.fetch_add(1, Ordering::Release);
    }

    pub(super) fn filtered(&self, more: Filtered) {
        self.filtered_objects.fetch_add(more.objects, Ordering::Relaxed);
        self.filtered_folders.fetch_add(more.folders, Ordering::Relaxed);
    }

    /// Makes the counts of a job that ended early add up: `not_started` objects were never taken, every other one that has not
    /// ended was given up half way.
    pub(super) fn settle(&self, not_started: u64) {
        let not_started = not_started.min(self.snapshot().pending());
        if not_started > 0 {
            self.detail().skip(None, NOT_STARTED, not_started);
            self.skipped.fetch_add(not_started, Ordering::Release);
        }
        self.failed.fetch_add(self.snapshot().pending(), Ordering::Release);
    }

    fn tell(&self, source: &str, target: Option<&str>, course: Course, outcome: Outcome<'_>) {
        if let Some(observer) = &self.observer {
            observer.ended(Event { source, target, outcome, course, finished: SystemTime::now() });
        }
    }

    fn detail(&self) -> MutexGuard<'_, Detail> {
        self.detail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason under which objects are counted that a stopped job never got to.
pub const NOT_STARTED: &str = "not started: the job had ended";

impl Detail {
    fn fail(&mut self, name: &str, error: Error) {
        let cause = if error.code().is_some() { None } else { root_cause(&error) };
        let same = |group: &&mut Failures| {
            group.other || (group.kind == error.kind() && group.code.as_deref() == error.code() && group.cause == cause)
        };
        if let Some(group) = self.failures.iter_mut().find(same) {
            group.count += 1;
            keep(&mut group.names, name);
            return;
        }
        let group = Failures {
            kind: error.kind(),
            code: error.code().map(str::to_owned),
            count: 1,
            names: vec![name.to_owned()],
            other: self.failures.len() >= CAUSES,
            cause,
            first: Arc::new(error),
        };
        self.failures.push(group);
    }

    fn skip(&mut self, name: Option<&str>, reason: &'static str, count: u64) {
        let at = self.skips.iter().position(|group| group.reason == reason).unwrap_or_else(|| {
            self.skips.push(Skips { reason, count: 0, names: Vec::new() });
            self.skips.len() - 1
        });
        self.skips[at].count += count;
        if let Some(name) = name {
            keep(&mut self.skips[at].names, name);
        }
    }
}

fn keep(names: &mut Vec<String>, name: &str) {
    if names.len() < NAMES {
        names.push(name.to_owned());
    }
}

/// The innermost cause's text: what failures of a local kind have in common (`Permission denied (os error 13)`). Our own errors
/// name the object they concern, so they tell nothing apart.
fn root_cause(error: &Error) -> Option<String> {
    let mut cause = error.source()?;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    (!cause.is::<Error>()).then(|| cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Answer;

    fn course() -> Course {
        Course::queued(SystemTime::UNIX_EPOCH)
    }

    fn refused(code: &str) -> Error {
        Error::new(Kind::Refused, "cannot put x").with_answer(Answer { code: Some(code.to_owned()), ..Answer::default() })
    }

    #[test]
    fn failures_group_by_kind_code_and_root_cause() {
        let progress = Progress::new(None);
        progress.listed(5);
        progress.failed("a", None, course(), refused("InvalidInput"));
        progress.failed("b", None, course(), refused("InvalidInput"));
        progress.failed("c", None, course(), refused("OutOfRangeInput"));
        for (name, cause) in [("d", "denied"), ("e", "i/o error")] {
            let error = Error::new(Kind::SourceUnreadable, format!("cannot read {name}"))
                .with_source(std::io::Error::other(cause))
                .context("cannot send");
            progress.failed(name, None, course(), error);
        }
        let groups = progress.failures();
        let seen: Vec<_> = groups.iter().map(|g| (g.count, g.names.join(","))).collect();
        assert_eq!(seen, [(2, "a,b".to_owned()), (1, "c".into()), (1, "d".into()), (1, "e".into())]);
        assert_eq!(groups[0].first.code(), Some("InvalidInput"));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_counted_is_not() {
        let progress = Progress::new(None);
        progress.listed(2000);
        (0..2000).for_each(|i| progress.failed("x", None, course(), refused(&format!("Code{i}"))));
        let groups = progress.failures();
        assert_eq!(groups.len(), CAUSES + 1);
        assert_eq!((groups[0].other, groups[0].count, groups[0].names.len()), (true, 2000 - 64, NAMES));
        assert_eq!(progress.snapshot().failed, 2000);
    }

    #[test]
    fn an_early_end_still_adds_up() {
        let progress = Progress::new(None);
        progress.listed(10);
        progress.done("a", "a", course(), 5);
        progress.skipped("b", None, course(), "because");
        progress.settle(6);
        let snapshot = progress.snapshot();
        assert_eq!((snapshot.done, snapshot.failed, snapshot.skipped, snapshot.pending()), (1, 2, 7, 0));
        assert_eq!(progress.skips()[0].reason, NOT_STARTED);
    }

    #[test]
    fn every_observer_hears_each_object_once() {
        #[derive(Default)]
        struct Ear(Mutex<Vec<String>>);
        impl Observer for Ear {
            fn ended(&self, event: Event<'_>) {
                self.0.lock().unwrap().push(format!("{} {:?} {:?}", event.source, event.target, event.outcome));
            }
        }
        let ear = Arc::new(Ear::default());
        let both: Vec<Arc<dyn Observer>> = vec![ear.clone(), ear.clone()];
        let progress = Progress::new(Some(Arc::new(both)));
        progress.listed(2);
        progress.done("./a", "a", course(), 5);
        progress.skipped("./b", None, course(), "link");
        let heard = ear.0.lock().unwrap();
        let (a, b) = ("./a Some(\"a\") Done { bytes: 5 }", "./b None Skipped(\"link\")");
        assert_eq!(*heard, [a, a, b, b], "two observers, each once");
    }
}
