//! The journal of one running job: takes records from the engine without waiting, and writes them on a thread of its own.
//!
//! What is to be written waits in a batch of bounded size. A batch that fills up means that the disk does not keep up: then, as
//! with any error, the journal says so once and turns itself off, and the job goes on without it. Opening the file, with all
//! that may take, happens on that thread while the first objects are under way.

use super::batch::{Batch, now};
use super::book::Book;
use super::lease::Lease;
use super::prune::{self, Keep};
use super::schema;
use super::store::Resumed;
use crate::error::{Error, Kind, Result};
use crate::transfer::progress::{Event, Observer, Snapshot};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Time between two transactions, unless many records wait: what the death of the process may lose.
const EVERY: Duration = Duration::from_millis(100);

/// Records that are written without waiting for more.
const MANY: usize = 4096;

/// Records, and bytes of their names, that wait at most: a second of the smallest files.
const MOST: usize = 65_536;
const MOST_TEXT: usize = 16 << 20;

/// How long the end of a job waits for a disk that does nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Transfers of old jobs removed between two batches, and at the end of a job.
const PRUNED: u32 = 10_000;
const PRUNED_AT_THE_END: u32 = 1000;

/// A job to be entered.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its id, a UUID.
    pub id: String,
    /// Source and destination as they are shown: without secrets.
    pub source: String,
    /// See `source`.
    pub destination: String,
    /// What is needed to run it again, in whatever form the caller will understand. Without secrets.
    pub command: String,
    /// When it started.
    pub started: SystemTime,
}

/// What is written down.
#[derive(Debug)]
pub enum Start {
    /// A new job.
    New(NewJob),
    /// Another run of a job.
    Again(Resumed),
}

/// How a job ended.
#[derive(Debug, Clone)]
pub struct Ending {
    /// In a word.
    pub status: String,
    /// The error that ended it, without secrets.
    pub error: Option<String>,
    /// The counters, which add up.
    pub counts: Snapshot,
}

/// What the journal has to say to the user.
#[derive(Debug)]
pub enum Notice<'a> {
    /// It is off from now on, for this reason.
    Off(&'a Error),
    /// The last job with the same source and destination was not finished; this is its id.
    Unfinished(&'a str),
}

/// Called with each notice, from any thread.
pub type Tell = Box<dyn Fn(Notice<'_>) + Send + Sync>;

/// See the module's text.
pub struct Journal(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Something is there for the writer.
    work: Condvar,
    /// The writer got on.
    progress: Condvar,
    /// Read without the lock on the way of each object. Orders nothing: a record more or less is lost.
    off: AtomicBool,
    tell: Tell,
}

#[derive(Default)]
struct State {
    batch: Batch,
    ending: Option<Ending>,
    /// Transactions so far.
    written: u64,
    ended: bool,
    /// It is off, and that has been said.
    told: bool,
    lease: Option<Lease>,
}

impl Journal {
    /// Begins to write a job down, in the file in `folder`, which is made if need be. Returns at once.
    pub fn start(folder: PathBuf, keep: Keep, start: Start, tell: Tell) -> Arc<Journal> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            off: AtomicBool::new(false),
            tell,
        });
        let writer = Arc::clone(&shared);
        let spawned = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            if let Err(error) = write(&writer, &folder, keep, start) {
                writer.turn_off(&error);
            }
        });
        if let Err(error) = spawned {
            shared.turn_off(&Error::new(Kind::Local, "cannot start the journal's thread").with_source(error));
        }
        Arc::new(Journal(shared))
    }

    /// Writes the end down and waits for that, but not for a disk that does not get on. Returns whether the job is in the
    /// journal, whole; if not, that has been said. Blocks.
    pub fn end(&self, ending: Ending) -> bool {
        let mut state = self.0.lock();
        state.ending = Some(ending);
        self.0.work.notify_one();
        let mut seen = state.written;
        let mut since = Instant::now();
        while !state.ended && !state.told {
            let Some(left) = PATIENCE.checked_sub(since.elapsed()) else {
                drop(state);
                self.0.turn_off(&slow());
                return false;
            };
            state = self.0.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            if state.written != seen {
                (seen, since) = (state.written, Instant::now());
            }
        }
        state.lease = None;
        state.ended
    }

    /// Whether it has not turned itself off.
    pub fn is_on(&self) -> bool {
        !self.0.off.load(Ordering::Relaxed)
    }
}

impl Observer for Journal {
    fn ended(&self, event: Event<'_>) {
        if !self.is_on() {
            return;
        }
        let full = {
            let mut state = self.0.lock();
            let first = state.batch.is_empty();
            state.batch.push(&event);
            let len = state.batch.len();
            if first || len == MANY {
                self.0.work.notify_one();
            }
            len >= MOST || state.batch.text_len() >= MOST_TEXT
        };
        if full {
            self.0.turn_off(&slow());
        }
    }
}

fn slow() -> Error {
    Error::new(Kind::Local, "the disk with the journal does not keep up")
}

/// The writer's thread.
fn write(shared: &Shared, folder: &Path, keep: Keep, start: Start) -> Result<()> {
    let connection = schema::open_or_make(folder, keep.bytes)?;
    let mut book = match start {
        Start::New(new) => {
            let lease = Lease::take(folder, &new.id);
            let lease = lease.map_err(|e| Error::new(Kind::Local, format!("cannot lock job {}", new.id)).with_source(e))?;
            shared.lock().lease = lease;
            let (book, unfinished) = Book::of_new(connection, folder, &new)?;
            if let Some(id) = unfinished {
                (shared.tell)(Notice::Unfinished(&id));
            }
            book
        }
        Start::Again(Resumed { job, lease, .. }) => {
            shared.lock().lease = Some(lease);
            Book::of_old(connection, folder, job)?
        }
    };
    let mut batch = Batch::default();
    let mut last = Instant::now();
    let mut to_prune = true;
    loop {
        let ending = shared.take(&mut batch, last);
        if !shared.is_on() {
            return Ok(());
        }
        book.write(&batch, ending.as_ref())?;
        last = Instant::now();
        let calm = batch.len() < MANY;
        batch.clear();
        let ended = ending.is_some();
        if to_prune && (calm || ended) {
            let rows = if ended { PRUNED_AT_THE_END } else { PRUNED };
            // What cannot be removed now is tried again by the next job.
            to_prune = prune::step(&mut book.connection, folder, &keep, book.job, now(), rows).unwrap_or(false);
        }
        let mut state = shared.lock();
        state.written += 1;
        state.ended = ended;
        shared.progress.notify_all();
        if ended {
            return Ok(());
        }
    }
}

impl Shared {
    /// Waits for records and takes them, and the ending once it is there.
    fn take(&self, batch: &mut Batch, last: Instant) -> Option<Ending> {
        let mut state = self.lock();
        loop {
            if state.ending.is_some() || state.batch.len() >= MANY || !self.is_on() {
                break;
            }
            if state.batch.is_empty() {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(left) = EVERY.checked_sub(last.elapsed()) else { break };
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut state.batch, batch);
        state.ending.take()
    }

    fn turn_off(&self, error: &Error) {
        if self.off.swap(true, Ordering::Relaxed) {
            return;
        }
        (self.tell)(Notice::Off(error));
        let mut state = self.lock();
        state.batch = Batch::default();
        state.told = true;
        drop(state);
        self.work.notify_all();
        self.progress.notify_all();
    }

    fn is_on(&self) -> bool {
        !self.off.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A holder only moves values, so what is in there is whole even if its thread died.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{State, Store, Transfer};
    use super::super::{Ended, FINISHED_EARLIER, Finished};
    use super::*;
    use crate::endpoint::{Facts, Item};
    use crate::transfer::progress::{Course, Outcome};
    use std::ops::ControlFlow;

    const ID: &str = "0b9d6c1e-8f7a-4d0e-9b7e-2f6a1c3d5e7f";

    fn new(id: &str) -> Start {
        Start::New(NewJob {
            id: id.to_owned(),
            source: "./d".to_owned(),
            destination: "dev://box".to_owned(),
            command: "{}".to_owned(),
            started: SystemTime::now(),
        })
    }

    /// A journal, and what it said.
    fn start(folder: &Path, keep: Keep, start: Start) -> (Arc<Journal>, Arc<Mutex<Vec<String>>>) {
        let said = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&said);
        let tell = move |notice: Notice<'_>| {
            let text = match notice {
                Notice::Off(error) => format!("off: {error}"),
                Notice::Unfinished(id) => format!("unfinished: {id}"),
            };
            hears.lock().unwrap().push(text);
        };
        (Journal::start(folder.to_owned(), keep, start, Box::new(tell)), said)
    }

    fn facts(len: u64) -> Facts {
        Facts { len: Some(len), modified: Some(SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789)) }
    }

    fn tell(journal: &Journal, source: &str, target: Option<&str>, outcome: Outcome<'_>) {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_046) + Duration::from_millis(millis);
        let course = Course { queued: at(0), started: Some(at(5)), facts: Some(facts(7)), blocks: 2, retries: 1 };
        journal.ended(Event { source, target, outcome, course, finished: at(9) });
    }

    fn ending(status: &str, listed: u64, done: u64, failed: u64, skipped: u64) -> Ending {
        let counts = Snapshot { listed, done, failed, skipped, ..Snapshot::default() };
        Ending { status: status.to_owned(), error: None, counts }
    }

    fn transfers(store: &Store, ended: Option<Ended>) -> Vec<Transfer> {
        let (job, mut all) = (store.jobs().unwrap().remove(0), Vec::new());
        let mut see = |transfer| {
            all.push(transfer);
            ControlFlow::Continue(())
        };
        store.transfers(&job, ended, &mut see).unwrap();
        all
    }

    #[test]
    fn a_job_is_read_back_as_it_was_told() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, said) = start(dir.path(), Keep::default(), new(ID));
        let error = Error::new(Kind::Name, "cannot store it");
        for (source, target, outcome) in [
            ("./d/x/a", Some("d/x/a"), Outcome::Done { bytes: 7 }),
            ("./d/b", Some("d/b"), Outcome::Failed(&error)),
            ("./d/l", None, Outcome::Skipped("link")),
            ("elsewhere", Some("d/c"), Outcome::Done { bytes: 7 }),
            ("./d/e", Some("other"), Outcome::Done { bytes: 7 }),
        ] {
            tell(&journal, source, target, outcome);
        }
        assert!(journal.end(ending("CompletedWithErrorsAndSkipped", 5, 3, 1, 1)));
        assert!(said.lock().unwrap().is_empty());

        let store = Store::open(dir.path()).unwrap().unwrap();
        let job = store.find("0B9D").unwrap();
        assert_eq!(job.state, State::Ended("CompletedWithErrorsAndSkipped".to_owned()));
        assert_eq!((job.listed, job.done, job.failed, job.skipped, job.bytes, job.runs), (Some(5), 3, 1, 1, 21, 1));
        let all = transfers(&store, None);
        let names: Vec<_> = all.iter().map(|t| (t.source.as_str(), t.target.as_deref(), t.reason.as_deref())).collect();
        assert_eq!(
            names,
            [
                ("./d/x/a", Some("d/x/a"), None),
                ("./d/b", Some("d/b"), Some("Name")),
                ("./d/l", None, Some("link")),
                ("elsewhere", Some("d/c"), None),
                ("./d/e", Some("other"), None),
            ]
        );
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_046) + Duration::from_millis(millis);
        assert_eq!((all[0].queued, all[0].started, all[0].finished), (at(0), Some(at(5)), at(9)));
        assert_eq!((all[0].modified, all[0].bytes, all[0].blocks, all[0].retries), (facts(7).modified, Some(7), 2, 1));
        assert_eq!(transfers(&store, Some(Ended::Failed)), all[1..2]);
        assert_eq!(transfers(&store, Some(Ended::Skipped)), all[2..3]);
        assert_eq!(transfers(&store, Some(Ended::Done)).len(), 3);
        assert_eq!(store.find("0b9e").unwrap_err().kind(), Kind::SourceNotFound);
        assert_eq!(store.find("").unwrap_err().kind(), Kind::SourceNotFound);
    }

    #[test]
    fn each_of_many_records_keeps_its_own_figures() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, said) = start(dir.path(), Keep::default(), new(ID));
        let error = Error::new(Kind::Name, "cannot store it");
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_046 + seconds);
        let expected: Vec<Transfer> = (0..199)
            .map(|i| Transfer {
                source: format!("./d/{i}"),
                target: (i % 3 > 0).then(|| format!("{}d/{i}", if i % 5 == 0 { "other/" } else { "" })),
                ended: if i % 7 == 0 { Ended::Failed } else { Ended::Done },
                reason: (i % 7 == 0).then(|| "Name".to_owned()),
                queued: at(i),
                started: (i % 2 == 0).then(|| at(2 * i)),
                finished: at(3 * i),
                modified: (i % 4 > 0).then(|| at(5 * i)),
                bytes: (i % 6 > 0 || i % 7 > 0).then_some(i),
                blocks: u32::try_from(i).unwrap(),
                retries: u32::try_from(i / 2).unwrap(),
            })
            .collect();
        for t in &expected {
            let (bytes, facts) = (t.bytes.unwrap_or_default(), Some(Facts { len: t.bytes, modified: t.modified }));
            let outcome = if t.ended == Ended::Done { Outcome::Done { bytes } } else { Outcome::Failed(&error) };
            let course = Course { queued: t.queued, started: t.started, facts, blocks: t.blocks, retries: t.retries };
            journal.ended(Event { source: &t.source, target: t.target.as_deref(), outcome, course, finished: t.finished });
        }
        assert!(journal.end(ending("CompletedWithErrors", 199, 170, 29, 0)), "{said:?}");
        assert_eq!(transfers(&Store::open(dir.path()).unwrap().unwrap(), None), expected);
    }

    #[test]
    fn a_running_job_is_left_alone_and_a_dead_one_is_taken_up_under_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = start(dir.path(), Keep::default(), new(ID));
        tell(&journal, "./d/a", Some("d/a"), Outcome::Done { bytes: 7 });
        tell(&journal, "./d/b", Some("d/b"), Outcome::Failed(&Error::new(Kind::Name, "no")));
        let job = when_written(&journal, dir.path(), ID, 2);
        let mut store = Store::open(dir.path()).unwrap().unwrap();
        assert_eq!((&job.state, job.listed, job.done, job.failed), (&State::InProgress, None, 1, 1));
        assert_eq!(store.lease(&job, "resume").unwrap_err().kind(), Kind::Conflict);
        assert_eq!(store.remove(&job).unwrap_err().kind(), Kind::Conflict);

        // Its process dies: all that is left of it is the file.
        journal.0.lock().lease = None;
        assert_eq!(store.find(ID).unwrap().state, State::Interrupted);
        let lease = store.lease(&job, "resume").unwrap();
        let resumed = store.resume(&job, lease).unwrap();
        let item = |name: &str| Item::new(format!("./d/{name}"), format!("d/{name}"));
        assert!(resumed.finished.has(&item("a"), &facts(7)) && !resumed.finished.has(&item("b"), &facts(7)));
        let (again, _) = start(dir.path(), Keep::default(), Start::Again(resumed));
        tell(&again, "./d/a", Some("d/a"), Outcome::Skipped(FINISHED_EARLIER));
        tell(&again, "./d/b", Some("d/b"), Outcome::Done { bytes: 7 });
        assert!(again.end(ending("Completed", 2, 1, 0, 1)));
        let job = store.find(ID).unwrap();
        assert_eq!((job.listed, job.done, job.failed, job.skipped, job.bytes, job.runs), (Some(2), 2, 0, 0, 14, 2));
        let names: Vec<_> = transfers(&store, None).into_iter().map(|t| (t.source, t.ended)).collect();
        assert_eq!(names, [("./d/a".to_owned(), Ended::Done), ("./d/b".to_owned(), Ended::Done)]);
        store.remove(&job).unwrap();
        assert!(store.jobs().unwrap().is_empty());
    }

    /// Waits until so many objects of a job are in the file.
    fn when_written(journal: &Journal, folder: &Path, id: &str, count: u64) -> super::super::Job {
        loop {
            let job = Store::open(folder).unwrap().and_then(|store| store.find(id).ok());
            if let Some(job) = job.filter(|job| job.done + job.failed + job.skipped == count) {
                return job;
            }
            drop(journal.0.progress.wait_timeout(journal.0.lock(), EVERY));
        }
    }

    #[test]
    fn two_processes_write_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let ids = ["a", "b"];
        let journals: Vec<_> = ids.iter().map(|id| start(dir.path(), Keep::default(), new(id))).collect();
        for i in 0..20_000 {
            for (journal, _) in &journals {
                let name = format!("d/{i}");
                tell(journal, &name, Some(&name), Outcome::Done { bytes: 1 });
            }
        }
        for (journal, said) in &journals {
            assert!(journal.end(ending("Completed", 20_000, 20_000, 0, 0)), "{said:?}");
        }
        let store = Store::open(dir.path()).unwrap().unwrap();
        for job in store.jobs().unwrap() {
            let mut names = std::collections::HashSet::new();
            let mut see = |transfer: Transfer| {
                names.insert(transfer.source);
                ControlFlow::Continue(())
            };
            store.transfers(&job, None, &mut see).unwrap();
            assert_eq!((names.len(), job.done, job.bytes), (20_000, 20_000, 20_000));
        }
    }

    #[test]
    fn a_full_disk_turns_it_off_with_one_word() {
        let dir = tempfile::tempdir().unwrap();
        let keep = Keep { bytes: 128 << 10, ..Keep::default() };
        let (journal, said) = start(dir.path(), keep, new(ID));
        let mut written = 0;
        while journal.is_on() {
            for _ in 0..1000 {
                let name = format!("d/{written}");
                tell(&journal, &name, Some(&name), Outcome::Done { bytes: 1 });
                written += 1;
            }
            // Not faster than it is written, or that would turn it off.
            let mut state = journal.0.lock();
            while !state.batch.is_empty() {
                state = journal.0.progress.wait(state).unwrap();
            }
        }
        tell(&journal, "d/z", Some("d/z"), Outcome::Done { bytes: 1 });
        assert!(!journal.end(ending("Completed", written, written, 0, 0)));
        let said = said.lock().unwrap().clone();
        assert!(said.len() == 1 && said[0].starts_with("off: cannot use "), "{said:?}");
        // What it has is right as far as it goes.
        let store = Store::open(dir.path()).unwrap().unwrap();
        let job = store.find(ID).unwrap();
        assert_eq!((job.state.clone(), job.listed), (State::Interrupted, None));
        assert_eq!(transfers(&store, None).len() as u64, job.done);
    }

    #[test]
    fn a_folder_that_cannot_be_had_turns_it_off_with_one_word() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let (journal, said) = start(&dir.path().join("file/state"), Keep::default(), new(ID));
        assert!(!journal.end(ending("Completed", 0, 0, 0, 0)));
        assert_eq!(said.lock().unwrap().len(), 1, "{said:?}");
    }

    #[test]
    fn the_job_does_not_end_before_it_is_said_that_the_journal_is_off() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let (hears, said) = std::sync::mpsc::channel();
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        let is_over = Mutex::new(is_over);
        let tell = move |_: Notice<'_>| {
            let _ = hears.send(());
            // An end that does not wait gets by here.
            let _ = is_over.lock().unwrap().recv_timeout(Duration::from_millis(100));
            let _ = hears.send(());
        };
        let journal = Journal::start(dir.path().join("file/state"), Keep::default(), new(ID), Box::new(tell));
        said.recv().unwrap();
        assert!(!journal.end(ending("Completed", 0, 0, 0, 0)));
        assert!(said.try_recv().is_ok());
        drop(over);
    }

    #[test]
    fn the_oldest_jobs_go_when_there_are_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let keep = Keep { jobs: 3, ..Keep::default() };
        for i in 0..6 {
            let (journal, _) = start(dir.path(), keep, new(&format!("job{i}")));
            tell(&journal, "d/a", Some("d/a"), Outcome::Done { bytes: 1 });
            assert!(journal.end(ending("Completed", 1, 1, 0, 0)));
        }
        let store = Store::open(dir.path()).unwrap().unwrap();
        let ids: Vec<_> = store.jobs().unwrap().into_iter().map(|job| job.id).collect();
        assert_eq!(ids, ["job5", "job4", "job3"]);
        // Those of another age go whatever their number.
        let keep = Keep { age: Duration::ZERO, ..Keep::default() };
        for _ in 0..4 {
            let (journal, _) = start(dir.path(), keep, new("now"));
            assert!(journal.end(ending("Completed", 0, 0, 0, 0)));
            let job = store.find("now").unwrap();
            Store::open(dir.path()).unwrap().unwrap().remove(&job).unwrap();
        }
        assert!(store.jobs().unwrap().len() <= 1, "{:?}", store.jobs());
    }

    #[test]
    fn the_last_job_between_the_same_places_is_named_if_it_did_not_finish() {
        let dir = tempfile::tempdir().unwrap();
        for (id, status, expected) in [
            ("first", "Completed", None),
            ("second", "Cancelled", None),
            ("third", "Completed", Some("unfinished: second")),
            ("fourth", "Completed", None),
        ] {
            let (journal, said) = start(dir.path(), Keep::default(), new(id));
            assert!(journal.end(ending(status, 0, 0, 0, 0)));
            assert_eq!(said.lock().unwrap().first().map(String::as_str), expected, "{id}");
        }
    }

    #[test]
    fn nothing_is_finished_in_an_empty_journal() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Store::open(dir.path()).unwrap().is_none());
        assert!(Finished::default().is_empty());
    }
}
