//! The lanes of a job: starts them, changes their number while it runs, and knows how they fare.
//!
//! The number wished for is kept in [`Load`]: a lane that finds more than that ends before it takes its next piece of work, and
//! [`Lanes::next`], which whoever runs the job has to keep polling, starts those that lack. All belong to one [`JoinSet`]: who
//! drops it stops them.

use crate::endpoint::Flow;
use crate::error::{Error, Kind, Result};
use crate::transfer::engine::{Shared, lane};
use crate::transfer::trial::Sample;
use crate::transfer::tuner::{Count, Tuner};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// How often it is looked how they fare.
const TICK: Duration = Duration::from_millis(20);

/// How the lanes fare: counted by them, read by the tuner. All relaxed: these figures order nothing.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Lanes there are, and there should be.
    live: AtomicUsize,
    wish: AtomicUsize,
    busy: AtomicUsize,
    done: AtomicU64,
    /// Changes when counting begins anew; odd while pieces that begin are counted.
    round: AtomicU64,
    begun: AtomicU64,
    counted: AtomicU64,
    counted_nanos: AtomicU64,
}

impl Load {
    /// Whether the lane that asks is one too many. It then has to end.
    pub(super) fn is_one_too_many(&self) -> bool {
        let wish = self.wish.load(Relaxed);
        self.live.fetch_update(Relaxed, Relaxed, |live| (live > wish).then(|| live - 1)).is_ok()
    }

    /// Whoever tunes is the only one to call this.
    fn count(&self, count: Count) {
        let round = self.round.load(Relaxed);
        let next = match count {
            Count::Anew => open(round) + 2,
            Count::Closed => open(round) - 1,
        };
        self.round.store(next, Relaxed);
    }

    /// Does a piece of work, and counts it once it is done.
    pub(super) async fn work<T>(&self, piece: impl Future<Output = T>) -> T {
        let round = self.round.load(Relaxed);
        let counts = is_open(round);
        if counts {
            self.begun.fetch_add(1, Relaxed);
        }
        let busy = Busy::new(&self.busy);
        let started = Instant::now();
        let result = piece.await;
        drop(busy);
        self.done.fetch_add(1, Relaxed);
        if counts && round == open(self.round.load(Relaxed)) {
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.counted.fetch_add(1, Relaxed);
            self.counted_nanos.fetch_add(nanos, Relaxed);
        }
        result
    }
}

fn open(round: u64) -> u64 {
    round | 1
}

fn is_open(round: u64) -> bool {
    round == open(round)
}

/// The end of a job whose lane came to no end of its own.
pub(super) fn broken(join: JoinError) -> Error {
    match join.try_into_panic() {
        // What it says is on stderr; the job ends like any other, with its counts.
        Ok(_) => Error::new(Kind::Local, "blobjet has a bug: a part of the job broke"),
        Err(join) => Error::new(Kind::Cancelled, "the job was stopped").with_source(join),
    }
}

/// Counts a lane as busy as long as it lives: a piece of work may be dropped half done.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Busy(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The tasks of a job.
pub(super) struct Lanes {
    shared: Arc<Shared>,
    tasks: JoinSet<Result<()>>,
    tuner: Option<Tuner>,
    started: Instant,
    ticks: Interval,
}

impl Lanes {
    /// Starts as many lanes as the job's tuning says, beside `listing`.
    pub(super) fn start(shared: Arc<Shared>, listing: impl Future<Output = Result<()>> + Send + 'static) -> Lanes {
        let tuning = &shared.job.tuning;
        let most = tuning.lanes.get();
        let tuner = tuning.lanes_first.map(|first| Tuner::new(first.get(), most));
        let started = Instant::now();
        let mut ticks = interval_at(started + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        shared.load.count(Count::Anew);
        let mut tasks = JoinSet::new();
        tasks.spawn(listing);
        let mut lanes = Lanes { shared, tasks, tuner, started, ticks };
        let first = lanes.tuner.as_ref().map_or(most, Tuner::lanes);
        lanes.shared.progress.lanes(first);
        lanes.set(first);
        lanes
    }

    /// The next task to end; `None` after the last. Meanwhile their number is tuned. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Result<()>, JoinError>> {
        loop {
            tokio::select! {
                biased;
                ended = self.tasks.join_next() => return ended,
                _ = self.ticks.tick(), if self.tuner.is_some() => self.tune(),
            }
        }
    }

    /// Stops all of them and waits for their ends.
    pub(super) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    fn tune(&mut self) {
        let sample = self.sample();
        let Some(tuner) = &mut self.tuner else { return };
        let before = tuner.lanes();
        let wish = tuner.take(sample);
        if let Some(count) = wish.count {
            self.shared.load.count(count);
        }
        if wish.lanes != before {
            tracing::info!(lanes = wish.lanes, "the number of requests in flight changes");
            self.shared.progress.lanes(wish.lanes);
        }
        // What waits to be sent again is not in flight, but has its lane wait with it.
        self.set(wish.lanes.saturating_add(sample.waiting).min(self.shared.job.tuning.lanes.get()));
    }

    /// Has so many lanes run.
    fn set(&mut self, wish: usize) {
        let load = &self.shared.load;
        load.wish.store(wish, Relaxed);
        while load.live.load(Relaxed) < wish {
            load.live.fetch_add(1, Relaxed);
            self.tasks.spawn(lane(Arc::clone(&self.shared)));
        }
    }

    fn sample(&self) -> Sample {
        let Shared { load, job, progress, budget, .. } = &*self.shared;
        let bytes = progress.snapshot().bytes_sent;
        let flow = job.sink.flow().or_else(|| job.source.flow());
        let Flow { moved, pushed_back, waiting } = flow.unwrap_or(Flow { moved: bytes, ..Flow::default() });
        Sample {
            at: self.started.elapsed(),
            moved,
            bytes,
            done: load.done.load(Relaxed),
            pushed_back,
            begun: load.begun.load(Relaxed),
            counted: load.counted.load(Relaxed),
            counted_time: Duration::from_nanos(load.counted_nanos.load(Relaxed)),
            busy: load.busy.load(Relaxed),
            waiting: usize::try_from(waiting).unwrap_or(usize::MAX),
            memory: budget.total(),
            memory_easy: budget.total().min(job.tuning.memory_easy),
            memory_used: budget.total() - budget.free(),
        }
    }
}
