//! Runs a job that does something to many objects where they are ([`Change`]): one task lists, the lanes do it, some objects at a
//! time. Listing and doing overlap: the first objects are done while the rest is not known yet.
//!
//! Counts, errors and stops are those of the engine: a failing object is recorded and does not end the job, what would befall
//! every other one does, and in the end listed = done + failed + skipped. Memory holds a few batches of the listing.

use crate::endpoint::Item;
use crate::endpoint::change::{Change, Changed, Met, Subject};
use crate::error::{Kind, Result};
use crate::transfer::audit::audit;
use crate::transfer::journal::{Absence, FINISHED_EARLIER, Finished};
use crate::transfer::lanes::broken;
use crate::transfer::progress::{Course, Progress};
use crate::transfer::stop::{Phase, Stop};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

/// Batches of the listing that wait at most.
const BATCHES: usize = 4;

/// What to do, and how.
#[derive(Clone)]
pub struct Sweep {
    /// What is done.
    pub change: Arc<dyn Change>,
    /// How many calls at a time.
    pub lanes: NonZeroUsize,
    /// What an earlier run of this job finished: skipped where it has not changed since.
    pub earlier: Option<Arc<Finished>>,
    /// Whether what it is done with is not there any more, so that a later run may look for it in vain.
    pub vanish: bool,
}

/// The reason under which is skipped what an earlier run may be done with. One that dies can have done a little more than it has
/// written down.
pub const GONE: &str = "not there: an earlier run of this job may be done with it";

/// What all lanes share.
struct Shared {
    sweep: Sweep,
    progress: Arc<Progress>,
    stop: Stop,
    /// Whoever holds it takes the next objects, or waits for the listing: one lane at a time, the others behind it.
    intake: Mutex<Intake>,
}

struct Intake {
    listing: mpsc::Receiver<Vec<Met>>,
    /// With the time of the listing they are from.
    waiting: VecDeque<(Subject, SystemTime)>,
    last: Vec<(Subject, SystemTime)>,
}

/// Runs a job to its end, and counts into `progress`; told to stop, it behaves as [`engine::run`](crate::transfer::engine::run)
/// does.
///
/// # Errors
/// The first error that would befall every other object as well, what bars the listing once what was found is done, and counts
/// that do not add up.
pub async fn run(sweep: Sweep, progress: Arc<Progress>, stop: Stop) -> Result<()> {
    let (sender, listing) = mpsc::channel(BATCHES);
    let intake = Mutex::new(Intake { listing, waiting: VecDeque::new(), last: Vec::new() });
    let shared = Arc::new(Shared { sweep, progress, stop: stop.clone(), intake });
    shared.progress.lanes(shared.sweep.lanes.get());
    let mut lanes = JoinSet::new();
    for _ in 0..shared.sweep.lanes.get() {
        lanes.spawn(lane(Arc::clone(&shared)));
    }
    let change = Arc::clone(&shared.sweep.change);
    let mut listing = Some(change.list(sender));
    let (mut drain, mut now) = (stop.clone(), stop);
    let (mut stopped, mut listed) = (false, Ok(()));
    let result = loop {
        tokio::select! {
            biased;
            () = now.reached(Phase::Now) => {
                stopped = true;
                break Ok(());
            }
            () = drain.reached(Phase::Drain), if !stopped => {
                stopped = true;
                listing = None;
            }
            end = async { listing.as_mut().expect("guarded").await }, if listing.is_some() => {
                if end.is_ok() {
                    shared.progress.listing_done();
                }
                listed = end;
                listing = None;
            }
            ended = lanes.join_next() => match ended {
                None => break Ok(()),
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => break Err(error),
                Some(Err(join)) => break Err(broken(join)),
            },
        }
    };
    lanes.shutdown().await;
    let mut intake = shared.intake.lock().await;
    let result = match result {
        Ok(()) if !stopped => do_last(&shared, &mut intake).await.and(listed),
        other => other,
    };
    let whole = !stopped && shared.stop.phase() == Phase::Run;
    let result = if whole { result.and_then(|()| audit(&shared.progress.snapshot())) } else { result };
    let not_started = intake.waiting.len() + intake.last.len();
    shared.progress.settle(u64::try_from(not_started).unwrap_or(u64::MAX));
    result
}

/// Those that had to wait, from the last name to the first, one by one. What is not begun stays among those that wait.
async fn do_last(shared: &Shared, intake: &mut Intake) -> Result<()> {
    let mut last = std::mem::take(&mut intake.last);
    last.sort_by(|a, b| b.0.name.cmp(&a.0.name));
    intake.waiting = last.into();
    let mut now = shared.stop.clone();
    while shared.stop.phase() == Phase::Run
        && let Some(subject) = intake.waiting.pop_front()
    {
        tokio::select! {
            biased;
            () = now.reached(Phase::Now) => break,
            done = shared.apply(vec![subject]) => done?,
        }
    }
    Ok(())
}

/// One lane, until there is nothing left to take.
async fn lane(shared: Arc<Shared>) -> Result<()> {
    while shared.stop.phase() == Phase::Run {
        let some = shared.next().await;
        if some.is_empty() {
            break;
        }
        shared.apply(some).await?;
    }
    Ok(())
}

impl Shared {
    /// The next objects; none at the end, or when the job is to stop.
    async fn next(&self) -> Vec<(Subject, SystemTime)> {
        let mut stop = self.stop.clone();
        let mut intake = self.intake.lock().await;
        while intake.waiting.is_empty() {
            let batch = tokio::select! {
                biased;
                () = stop.reached(Phase::Drain) => return Vec::new(),
                batch = intake.listing.recv() => batch,
            };
            let Some(batch) = batch else { return Vec::new() };
            self.sort(batch, &mut intake);
        }
        let most = self.sweep.change.at_a_time().max(1).min(intake.waiting.len());
        intake.waiting.drain(..most).collect()
    }

    /// Counts a batch, and keeps what is to be changed.
    fn sort(&self, batch: Vec<Met>, intake: &mut Intake) {
        let queued = SystemTime::now();
        let batch: Vec<(Met, Absence)> = batch.into_iter().map(|met| self.with_absence(met)).collect();
        // What an earlier run is done with is no more listed than where a folder is listed, in which it is not any more.
        let is_listed = |(met, absence): &&(Met, Absence)| *absence != Absence::Finished && !matches!(met, Met::Filtered(_));
        let meant = batch.iter().filter(is_listed).count();
        self.progress.listed(u64::try_from(meant).unwrap_or(u64::MAX));
        for (met, absence) in batch {
            match met {
                Met::Subject(subject) if self.is_finished(&subject) => {
                    let course = Course { facts: Some(subject.facts), ..Course::queued(queued) };
                    self.progress.skipped(&subject.name, None, course, FINISHED_EARLIER);
                }
                Met::Subject(subject) if subject.last => intake.last.push((subject, queued)),
                Met::Subject(subject) => intake.waiting.push_back((subject, queued)),
                Met::Skipped { name, reason } => self.progress.skipped(&name, None, Course::queued(queued), reason),
                Met::Filtered(filtered) => self.progress.filtered(filtered),
                Met::Failed { .. } if absence == Absence::Finished => {}
                Met::Failed { name, .. } if absence == Absence::Unknown => {
                    self.progress.skipped(&name, None, Course::queued(queued), GONE);
                }
                Met::Failed { name, error } => self.progress.failed(&name, None, Course::queued(queued), error),
            }
        }
    }

    /// What an earlier run of the job has to do with it that something is not there; of anything else, nothing.
    fn with_absence(&self, met: Met) -> (Met, Absence) {
        let earlier = self.sweep.earlier.as_ref().filter(|_| self.sweep.vanish);
        let absence = match (&met, earlier) {
            (Met::Failed { name, error }, Some(earlier)) if error.kind() == Kind::SourceNotFound => earlier.absence(name),
            _ => Absence::Missed,
        };
        (met, absence)
    }

    fn is_finished(&self, subject: &Subject) -> bool {
        self.sweep.earlier.as_ref().filter(|earlier| !earlier.is_empty()).is_some_and(|earlier| {
            let item = Item { source: subject.name.clone(), target: subject.name.clone(), known: None };
            earlier.has(&item, &subject.facts)
        })
    }

    async fn apply(&self, some: Vec<(Subject, SystemTime)>) -> Result<()> {
        let started = SystemTime::now();
        let (subjects, queued): (Vec<Subject>, Vec<SystemTime>) = some.into_iter().unzip();
        let results = self.sweep.change.apply(&subjects).await;
        let mut ends_job = None;
        for ((subject, queued), result) in subjects.iter().zip(queued).zip(results) {
            let Subject { name, facts, .. } = subject;
            let course = Course { started: Some(started), facts: Some(*facts), ..Course::queued(queued) };
            match result {
                Ok(Changed::Done(modified)) => {
                    let facts = crate::endpoint::Facts { modified: modified.or(facts.modified), ..*facts };
                    self.progress.changed(name, Course { facts: Some(facts), ..course }, facts.len.unwrap_or(0));
                }
                Ok(Changed::Skipped(reason)) => self.progress.skipped(name, None, course, reason),
                // Counted in the end, with what it left undone.
                Err(error) if error.ends_job() || error.kind() == Kind::SourceNotFound => drop(ends_job.get_or_insert(error)),
                Err(error) => self.progress.failed(name, None, course, error),
            }
        }
        ends_job.map_or(Ok(()), Err)
    }
}
