//! The number of requests in flight that a job finds by itself, on a simulated line with paused time: against the best fixed
//! number, under push-back, and while the line changes.

use blobjet::chunks::Chunks;
use blobjet::endpoint::{
    BlockId, Facts, Finish, Flow, Found, Item, Limits, Listing, Payload, Reader, Receipt, Same, Sink, Source, Task,
};
use blobjet::error::Result;
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::Tuning;
use blobjet::transfer::progress::{Progress, Snapshot};
use blobjet::transfer::stop;
use bytes::Bytes;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// Bytes that travel at a time. A connection takes 8 ms for them.
const SLICE: u64 = 64 << 10;
const SLICE_TAKES: Duration = Duration::from_millis(8);

/// A large object's blocks, and a small object.
const BLOCK: u64 = 256 << 10;
const SMALL: u64 = 4 << 10;

const MOST: usize = 256;

/// What is moved: objects of this size without end, or one object without end.
#[derive(Clone, Copy)]
enum Load {
    Large,
    Small,
}

impl Source for Load {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            let item = || Found::Item(Item::new("x", "x"));
            let count = if matches!(self, Load::Large) { 1 } else { 1000 };
            while out.send((0..count).map(|_| item()).collect()).await.is_ok() && count > 1 {}
            Ok(())
        })
    }

    fn open<'a>(&'a self, _: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move { Ok(Box::new(*self) as Box<dyn Reader>) })
    }

    fn describe(&self) -> String {
        "zeros".to_owned()
    }
}

impl Reader for Load {
    fn facts(&self) -> Facts {
        Facts { len: Some(if matches!(self, Load::Large) { 1 << 40 } else { SMALL }), modified: None }
    }

    fn read<'a>(&'a self, _: u64, len: u64) -> Task<'a, Result<Chunks>> {
        static ZEROS: [u8; 256 << 10] = [0; 256 << 10];
        let len = usize::try_from(len).unwrap();
        Box::pin(async move { Ok(Chunks::from(Bytes::from_static(&ZEROS[..len]))) })
    }

    fn check_unchanged(&self, _: Same) -> Result<()> {
        Ok(())
    }
}

/// A line to a service.
struct Line {
    /// Between the last byte of a request and its answer.
    delay: Duration,
    /// One after the other: a slice of bytes, an answer.
    slice_every: Duration,
    answer_every: Duration,
    slices: Mutex<Option<Instant>>,
    answers: Mutex<Option<Instant>>,
    /// Who waits for an answer, where not the first one is served next but any.
    crowd: Option<Mutex<Vec<oneshot::Sender<()>>>>,
    /// More requests than that at a time are pushed back.
    knee: AtomicUsize,
    /// One request in so many is refused alone, and waits so long before it is sent again.
    refuses: Option<u64>,
    refused_wait: Duration,
    taken: AtomicU64,
    waiting: AtomicU64,
    in_flight: AtomicUsize,
    moved: AtomicU64,
    pushed_back: AtomicU64,
}

impl Line {
    /// 100 MB/s or 1000 answers a second at most.
    fn new(delay: Duration) -> Self {
        Line {
            delay,
            slice_every: Duration::from_nanos(SLICE * 1_000_000_000 / 100_000_000),
            answer_every: Duration::from_micros(1000),
            slices: Mutex::default(),
            answers: Mutex::default(),
            crowd: None,
            knee: AtomicUsize::new(usize::MAX),
            refuses: None,
            refused_wait: S,
            taken: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            moved: AtomicU64::new(0),
            pushed_back: AtomicU64::new(0),
        }
    }

    /// Takes a request, as the client does: one pushed back is sent again after a while.
    async fn take(&self, len: u64) -> Receipt {
        for attempts in 1.. {
            if self.refuses.is_some_and(|every| self.taken.fetch_add(1, Relaxed).is_multiple_of(every)) {
                self.pushed_back.fetch_add(1, Relaxed);
                self.waiting.fetch_add(1, Relaxed);
                sleep(self.refused_wait).await;
                self.waiting.fetch_sub(1, Relaxed);
                continue;
            }
            let over = self.in_flight.fetch_add(1, Relaxed) >= self.knee.load(Relaxed);
            for _ in 0..len.div_ceil(SLICE) {
                let free = Instant::now() + SLICE_TAKES.mul_f64(f(len.min(SLICE)) / f(SLICE));
                sleep_until(next(&self.slices, self.slice_every.mul_f64(f(len.min(SLICE)) / f(SLICE))).max(free)).await;
                self.moved.fetch_add(len.min(SLICE), Relaxed);
            }
            sleep(self.delay).await;
            match &self.crowd {
                _ if over => {}
                None => sleep_until(next(&self.answers, self.answer_every)).await,
                Some(crowd) => {
                    let (sender, answer) = oneshot::channel();
                    crowd.lock().unwrap().push(sender);
                    answer.await.unwrap();
                }
            }
            self.in_flight.fetch_sub(1, Relaxed);
            if !over {
                return Receipt { attempts };
            }
            self.pushed_back.fetch_add(1, Relaxed);
            sleep(200 * MS).await;
        }
        unreachable!("there is no last attempt")
    }
}

/// Answers one of the crowd after the other, any of them, with so much time between two answers as `every` says for the moment.
async fn serve_crowd(line: Arc<Line>, every: impl Fn(Duration) -> Duration) {
    let (start, mut random) = (Instant::now(), 1u32);
    loop {
        sleep(every(start.elapsed())).await;
        let mut crowd = line.crowd.as_ref().unwrap().lock().unwrap();
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if !crowd.is_empty() {
            let at = (random >> 8) as usize % crowd.len();
            // Nobody may be there any more: the job was told to stop.
            let _ = crowd.swap_remove(at).send(());
        }
    }
}

/// When it is this one's turn, in a queue served at a fixed rate.
fn next(queue: &Mutex<Option<Instant>>, takes: Duration) -> Instant {
    let mut booked = queue.lock().unwrap();
    let at = booked.map_or_else(Instant::now, |booked| booked.max(Instant::now())) + takes;
    *booked = Some(at);
    at
}

fn f(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

impl Sink for Line {
    fn limits(&self) -> Limits {
        Limits { whole: BLOCK, block: BLOCK, blocks: u32::MAX }
    }

    fn check_name(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn put<'a>(&'a self, _: &'a str, payload: Payload, _: Finish) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { Ok(self.take(payload.data.len()).await) })
    }

    fn put_block<'a>(&'a self, _: &'a str, _: BlockId, payload: Payload) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { Ok(self.take(payload.data.len()).await) })
    }

    fn commit<'a>(&'a self, _: &'a str, _: &'a [BlockId], _: Finish) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { Ok(Receipt { attempts: 1 }) })
    }

    fn look<'a>(&'a self, _: &'a str) -> Task<'a, Result<Option<Facts>>> {
        Box::pin(async move { Ok(None) })
    }

    fn flow(&self) -> Option<Flow> {
        Some(Flow {
            moved: self.moved.load(Relaxed),
            pushed_back: self.pushed_back.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
        })
    }

    fn describe(&self, target: &str) -> String {
        target.to_owned()
    }
}

/// Runs a load over a line for as long as `script` takes; it is told the counters.
async fn over<T>(line: &Arc<Line>, load: Load, tuning: Tuning, script: impl AsyncFnOnce(&Progress) -> T) -> T {
    let (stopper, stop) = stop::channel();
    let progress = Progress::new(None);
    let job = Job { source: Arc::new(load), sink: Arc::clone(line) as _, tuning, prompt: None, earlier: None };
    let running = tokio::spawn(run(job, Arc::clone(&progress), stop));
    let result = script(&progress).await;
    stopper.advance(stop::Phase::Now);
    running.await.unwrap().unwrap();
    assert_eq!(progress.snapshot().pending(), 0);
    result
}

fn fixed(lanes: usize) -> Tuning {
    let lanes = NonZeroUsize::new(lanes).unwrap();
    Tuning { block_size: BLOCK, whole_limit: BLOCK, lanes, memory: 1 << 30, ..Tuning::default() }
}

fn tuned() -> Tuning {
    Tuning { lanes_first: NonZeroUsize::new(12), ..fixed(MOST) }
}

/// Work of a span of time, in bytes or objects.
async fn work(progress: &Progress, load: Load, time: Duration) -> u64 {
    let count = |s: Snapshot| if matches!(load, Load::Large) { s.bytes_sent } else { s.done };
    let before = count(progress.snapshot());
    sleep(time).await;
    count(progress.snapshot()) - before
}

/// The most any number of requests does in a second: what the line gives, as many of them as there may be fill it at each delay.
fn best(load: Load) -> u64 {
    if matches!(load, Load::Large) { 100_000_000 } else { 1000 }
}

// semantics 47
#[tokio::test(start_paused = true)]
async fn within_three_seconds_it_does_what_the_best_fixed_number_does() {
    for load in [Load::Large, Load::Small] {
        for delay in [MS, 20 * MS, 100 * MS] {
            let best = best(load);
            let line = Arc::new(Line::new(delay));
            let (found, lanes) = over(&line, load, tuned(), async |progress| {
                sleep(3 * S).await;
                (work(progress, load, S).await, progress.snapshot().lanes)
            })
            .await;
            assert!(found * 10 >= best * 9, "{delay:?}: {found} of {best} with {lanes} requests in flight");
        }
    }
}

/// Requests at a time, looked at ten times a second.
async fn lanes_over(progress: &Progress, time: Duration) -> Vec<usize> {
    let mut seen = Vec::new();
    let until = Instant::now() + time;
    while Instant::now() < until {
        sleep(100 * MS).await;
        seen.push(progress.snapshot().lanes);
    }
    seen
}

// semantics 47
#[tokio::test(start_paused = true)]
async fn it_keeps_below_what_the_service_pushes_back() {
    let line = |knee| {
        let mut line = Line::new(20 * MS);
        line.answer_every = MS / 2;
        line.knee.store(knee, Relaxed);
        Arc::new(line)
    };
    let best = over(&line(40), Load::Small, fixed(40), async |progress| {
        sleep(S).await;
        work(progress, Load::Small, 5 * S).await * 2
    })
    .await;
    let line = line(40);
    over(&line, Load::Small, tuned(), async |progress| {
        sleep(5 * S).await;
        let before = line.pushed_back.load(Relaxed);
        let found = work(progress, Load::Small, 10 * S).await;
        let refused = line.pushed_back.load(Relaxed) - before;
        assert!(found * 100 >= best * 85, "{found} of {best}");
        assert!(refused * 50 <= found, "{refused} pushed back, {found} done");
        assert!(progress.snapshot().lanes <= 50);

        // The service has less to give for a while, and then more than ever.
        line.knee.store(8, Relaxed);
        sleep(5 * S).await;
        assert!(progress.snapshot().lanes <= 10, "{}", progress.snapshot().lanes);
        line.knee.store(usize::MAX, Relaxed);
        sleep(5 * S).await;
        let found = work(progress, Load::Small, S).await;
        assert!(found >= 1800, "{found} of 2000 after the service has recovered");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn others_go_in_place_of_what_waits_to_be_sent_again() {
    for (most, wanted) in [(MOST, 0.95), (16, 0.0)] {
        let mut line = Line::new(20 * MS);
        line.refuses = Some(40);
        let line = Arc::new(line);
        let tuning = Tuning { lanes: NonZeroUsize::new(most).unwrap(), ..tuned() };
        over(&line, Load::Small, tuning, async |progress| {
            let (mut looks, mut in_flight, mut waited) = (0, 0.0, 0);
            for _ in 0..150 {
                sleep(20 * MS).await;
                let waiting = usize::try_from(line.waiting.load(Relaxed)).unwrap();
                let on_line = line.in_flight.load(Relaxed);
                assert!(on_line + waiting <= most, "{on_line} + {waiting}");
                looks += 1;
                in_flight += f(on_line as u64) / f(progress.snapshot().lanes as u64);
                waited = waited.max(waiting);
            }
            assert!(waited >= 10, "{waited}");
            assert!(in_flight / f64::from(looks) >= wanted, "{in_flight} of {looks}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_kept_while_nothing_changes() {
    let line = Arc::new(Line::new(20 * MS));
    over(&line, Load::Small, tuned(), async |progress| {
        sleep(6 * S).await;
        let seen = lanes_over(progress, 10 * S).await;
        let mut sorted = seen.clone();
        sorted.sort_unstable();
        let middle = sorted[sorted.len() / 2];
        let off = seen.iter().filter(|lanes| **lanes != middle).count();
        // Two seconds of probes in ten, by half of the number or less.
        assert!(off <= 20, "{seen:?}");
        assert!(seen.iter().all(|lanes| lanes * 2 >= middle && *lanes <= middle * 2), "{seen:?}");
    })
    .await;
}

/// Requests at a time over six seconds, where a service answers as often as `every` says whatever their number.
async fn lanes_of_no_use(every: impl Fn(Duration) -> Duration + Send + Sync + 'static) -> Vec<usize> {
    let line = Arc::new(Line { crowd: Some(Mutex::default()), ..Line::new(Duration::ZERO) });
    let serving = tokio::spawn(serve_crowd(Arc::clone(&line), every));
    let seen = over(&line, Load::Small, tuned(), async |progress| lanes_over(progress, 6 * S).await).await;
    serving.abort();
    seen
}

#[tokio::test(start_paused = true)]
async fn some_that_take_long_do_not_look_like_fewer() {
    let seen = lanes_of_no_use(|_| MS).await;
    assert!(seen.iter().all(|lanes| *lanes <= 24), "{seen:?}");
    assert!(seen.last().is_some_and(|lanes| *lanes <= 12), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_service_does_by_itself_is_not_taken_for_the_lanes_doing() {
    // Up by a quarter of what it does at first, each half second, and in waves.
    let faster = |since: Duration| MS.div_f64(1.0 + since.min(4 * S).as_secs_f64() / 2.0);
    let waves = |since: Duration| if (since.as_millis() / 700).is_multiple_of(2) { MS } else { MS * 13 / 10 };
    for seen in [lanes_of_no_use(faster).await, lanes_of_no_use(waves).await] {
        assert!(seen.iter().all(|lanes| *lanes <= 24), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_line_is_filled_within_a_second() {
    for load in [Load::Large, Load::Small] {
        let line = Arc::new(Line::new(100 * MS));
        let (found, seen) = over(&line, load, tuned(), async |progress| {
            let seen = lanes_over(progress, S).await;
            (work(progress, load, S / 2).await * 2, seen)
        })
        .await;
        assert!(found * 10 >= best(load) * 9, "{found} of {} with {seen:?}", best(load));
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_than_memory_has_room_for() {
    let line = Arc::new(Line::new(100 * MS));
    let tuning = Tuning { memory: 30 * BLOCK, ..tuned() };
    over(&line, Load::Large, tuning, async |progress| {
        let seen = lanes_over(progress, 5 * S).await;
        assert!(seen.iter().all(|lanes| *lanes <= 31), "{seen:?}");
        assert!(seen.iter().any(|lanes| *lanes >= 28), "{seen:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn more_memory_is_taken_where_that_clearly_pays_and_nowhere_else() {
    let tuning = Tuning { memory_easy: 30 * BLOCK, ..tuned() };
    // 12 do a quarter of what the line gives, and 24 twice that.
    let line = Arc::new(Line::new(100 * MS));
    over(&line, Load::Large, tuning.clone(), async |progress| {
        let seen = lanes_over(progress, 3 * S).await;
        assert!(seen.last().is_some_and(|lanes| *lanes >= 44), "{seen:?}");
    })
    .await;
    // 12 do three quarters, and 16 all of it.
    let line = Arc::new(Line::new(10 * MS));
    over(&line, Load::Large, tuning, async |progress| {
        let seen = lanes_over(progress, 10 * S).await;
        assert!(seen.iter().all(|lanes| *lanes <= 31), "{seen:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_number_that_was_given_stays() {
    let line = Arc::new(Line::new(20 * MS));
    line.knee.store(2, Relaxed);
    over(&line, Load::Small, fixed(7), async |progress| {
        assert_eq!(lanes_over(progress, 3 * S).await, [7; 30]);
    })
    .await;
}
