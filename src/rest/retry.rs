//! When to send again: how long to wait, and the brake that slows every request of a client when the service asks for it.

use crate::rest::stats::RetryCause;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// First wait, at most.
const BASE: Duration = Duration::from_millis(200);

/// First wait of a request that was refused alone, at most: nothing says that the service has too much to do, and the last
/// requests of a job would have it wait for them.
const ALONE: Duration = Duration::from_millis(50);

/// No wait of our own choosing is longer.
const CAP: Duration = Duration::from_secs(60);

/// A random fraction from 0 to 1, for spreading waits.
fn random_fraction() -> f64 {
    let bits = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(bits) / f64::from(u32::MAX)
}

/// Longest wait before try `failures` + 1: doubles from 0.2 s to 60 s.
fn ceiling(failures: u32) -> Duration {
    BASE.saturating_mul(1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX)).min(CAP)
}

/// How long a request waits before it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) time: Duration,
    /// The service refused this request and has the others go on.
    pub(crate) alone: bool,
}

/// One refusal in so many answers concerns the request that it met and no other, and so do [`LUCK`] that come oftener. A service
/// that is moved behind its address, or balances its load, refuses one now and then; holding everything up for each of these would cost
/// most of the time. One that has too much to do refuses many.
const TOLERATED: u32 = 32;
const LUCK: u32 = 4;

/// Slows all requests of a client once when the service throttles them: when it says for how long, or refuses many.
#[derive(Debug, Default)]
pub(crate) struct Brake {
    /// [`TOLERATED`] for each refusal, less one for each other answer, between nothing and what `LUCK` and one more make.
    refused: AtomicU32,
    /// Whether there may be something to wait for: spares the lock where there never was. Written under the lock.
    on: AtomicBool,
    state: Mutex<BrakeState>,
}

#[derive(Debug, Default)]
struct BrakeState {
    /// Until when nothing is sent.
    until: Option<Instant>,
    /// When the brake was last pulled.
    pulled: Option<Instant>,
    /// How many times in a row.
    level: u32,
}

impl BrakeState {
    /// A request sent at `sent` was throttled. Requests under way when the brake was pulled tell nothing new: they all found the
    /// same overload, and count once.
    fn throttled(&mut self, sent: Instant, now: Instant, hint: Option<Duration>) {
        let news = self.pulled.is_none_or(|pulled| sent >= pulled);
        if news {
            self.level += 1;
            self.pulled = Some(now);
        }
        let wait = match (hint, news) {
            (Some(hint), _) => hint,
            (None, true) => ceiling(self.level),
            (None, false) => return,
        };
        let until = now + wait;
        self.until = Some(self.until.map_or(until, |u| u.max(until)));
    }

    /// A request sent at `sent` got through: later ones need not be slower.
    fn passed(&mut self, sent: Instant) -> bool {
        if self.pulled.is_some_and(|pulled| sent >= pulled) {
            self.level = 0;
        }
        self.level == 0 && self.until.is_none_or(|until| sent >= until)
    }

    /// When a request that wants to go now may go. Those that waited set out one by one over a tenth of the wait and not all in
    /// the same moment.
    fn may_go(&self, now: Instant, spread: f64) -> Instant {
        match self.until {
            Some(until) if until > now => until + (until - now).mul_f64(spread / 10.0),
            _ => now,
        }
    }
}

impl Brake {
    pub(crate) fn throttled(&self, sent: Instant, hint: Option<Duration>) {
        let more = |refused: u32| (refused + TOLERATED).min((LUCK + 1) * TOLERATED);
        let before = self.refused.fetch_update(Relaxed, Relaxed, |refused| Some(more(refused))).unwrap_or_default();
        if hint.is_none() && more(before) <= LUCK * TOLERATED {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.throttled(sent, Instant::now(), hint);
        self.on.store(true, Relaxed);
    }

    pub(crate) fn passed(&self, sent: Instant) {
        let _ = self.refused.fetch_update(Relaxed, Relaxed, |refused| refused.checked_sub(1));
        if self.on.load(Relaxed) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.on.store(!state.passed(sent), Relaxed);
        }
    }

    /// How long it will hold at least.
    pub(crate) fn left(&self) -> Duration {
        if !self.on.load(Relaxed) {
            return Duration::ZERO;
        }
        let until = self.state.lock().unwrap_or_else(PoisonError::into_inner).until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// How long a request waits that has failed so often, the last time for this cause. Exponential with full jitter: anything
    /// from nothing to the ceiling, but what the service asked for, and what the brake holds for, at least.
    pub(crate) fn delay(&self, failures: u32, cause: RetryCause, hint: Option<Duration>) -> Wait {
        let left = self.left();
        let alone = cause == RetryCause::Throttled && left.is_zero() && hint.is_none();
        let longest = if alone && failures <= 1 { ALONE } else { ceiling(failures) };
        let time = longest.mul_f64(random_fraction()).max(hint.unwrap_or_default()).max(left);
        Wait { time, alone }
    }

    /// Waits until the brake is off.
    pub(crate) async fn wait(&self) {
        while self.on.load(Relaxed) {
            let now = Instant::now();
            let at = self.state.lock().unwrap_or_else(PoisonError::into_inner).may_go(now, random_fraction());
            if at <= now {
                return;
            }
            tokio::time::sleep_until(at).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_from_a_fifth_of_a_second_to_a_minute() {
        let ceilings: Vec<f64> = (1..=11).map(|n| ceiling(n).as_secs_f64()).collect();
        assert_eq!(ceilings, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0, 60.0]);
        assert_eq!(ceiling(u32::MAX), CAP);
        let brake = Brake::default();
        for failures in [1, 5, 20] {
            let delay = |hint| brake.delay(failures, RetryCause::Connection, hint).time;
            assert!((0..100).all(|_| delay(None) <= ceiling(failures)));
            assert!((0..100).any(|_| delay(None) > ceiling(failures) / 2));
            assert!((S * 7..=S * 60).contains(&delay(Some(S * 7))));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_overload_seen_by_many_requests_slows_once() {
        let mut brake = BrakeState::default();
        let start = Instant::now();
        for i in 1..=50 {
            brake.throttled(start, start + Duration::from_millis(i), None);
        }
        assert_eq!(brake.level, 1);
        assert_eq!(brake.may_go(start + Duration::from_millis(1), 0.0), start + Duration::from_millis(201));
        // Sent after the first pull and throttled again: the next step.
        brake.throttled(start + S, start + S, None);
        assert_eq!(brake.may_go(start + S, 0.0), start + S + Duration::from_millis(400));
        assert!(!brake.passed(start), "sent before: says nothing");
        assert!(!brake.passed(start + S + Duration::from_millis(1)), "the wait is not over");
        assert!(brake.passed(start + S * 2));
        assert_eq!(brake.level, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_now_and_then_holds_nobody_else_up() {
        let (brake, now) = (Brake::default(), Instant::now());
        // 1 % for a long time, and a few on end among them.
        for round in 0..1000 {
            for _ in 0..if round % 100 == 0 { LUCK } else { 1 } {
                brake.throttled(now, None);
                assert_eq!(brake.left(), Duration::ZERO);
            }
            (0..LUCK * TOLERATED).for_each(|_| brake.passed(now));
        }
        // As many as that, and one more.
        (0..LUCK).for_each(|_| brake.throttled(now, None));
        brake.throttled(now, None);
        assert_eq!(brake.left(), BASE);
    }

    // semantics 21
    #[tokio::test(start_paused = true)]
    async fn what_is_refused_alone_goes_again_soon_the_first_time() {
        let (brake, now) = (Brake::default(), Instant::now());
        brake.throttled(now, None);
        let longest =
            |failures| (0..100).map(|_| brake.delay(failures, RetryCause::Throttled, None)).max_by_key(|wait| wait.time).unwrap();
        assert!(longest(1).alone && longest(1).time <= ALONE);
        assert!(longest(2).alone && longest(2).time > ALONE && longest(2).time <= ceiling(2));
        let told = brake.delay(1, RetryCause::Throttled, Some(S));
        assert_eq!(told, Wait { time: S, alone: false });
        (0..LUCK).for_each(|_| brake.throttled(now, None));
        assert_eq!(brake.delay(1, RetryCause::Throttled, None), Wait { time: BASE, alone: false });
    }

    #[tokio::test(start_paused = true)]
    async fn more_refusals_than_one_in_32_hold_all_up() {
        let (brake, now) = (Brake::default(), Instant::now());
        for _ in 0..LUCK * 2 {
            brake.throttled(now, None);
            (0..TOLERATED / 2).for_each(|_| brake.passed(now));
        }
        assert_eq!(brake.left(), BASE);
    }

    #[tokio::test(start_paused = true)]
    async fn everyone_waits_as_long_as_the_service_says() {
        let brake = std::sync::Arc::new(Brake::default());
        let start = Instant::now();
        brake.throttled(start, Some(S * 5));
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let brake = brake.clone();
            all.spawn(async move {
                brake.wait().await;
                start.elapsed()
            });
        }
        assert_eq!(brake.left(), S * 5);
        for waited in all.join_all().await {
            assert!((S * 5..=S * 6).contains(&waited), "{waited:?}");
        }
        brake.passed(Instant::now());
        let before = Instant::now();
        brake.wait().await;
        assert_eq!(Instant::now(), before);
    }
}
