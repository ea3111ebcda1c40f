//! How many requests should be in flight: tries numbers and keeps the one that pays. Pure: samples in, a number out.
//!
//! A number of lanes is judged by the work it gets done in a second, bytes and requests alike, as `trial.rs` measures it.
//! More lanes are kept if they bring enough for their number, fewer if they cost little. At first the number doubles; later it is
//! probed now and then, ever more rarely while nothing comes of it. Where the destination pushes back, it goes down at once and
//! comes up in small steps.
//!
//! More lanes that bring nearly as much more are believed at first sight, so that a long line is filled within a few round trips.
//! Those that bring little more are believed only when fewer have brought less once more: what the destination does by itself in
//! the meantime is not theirs.

use crate::transfer::trial::{CLEAR, Reading, Sample, Seen, Trial, real};
use std::time::Duration;

/// Time from a finding to the next probe: doubles from the first to the last while nothing comes of it.
const PAUSE: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(16));

/// `k` times the lanes that do `k` to the power of this times the work take memory for the next ones as well: 87 % more for twice as
/// many.
const PROPORTIONAL: f64 = 0.9;

/// Steps: at the start, of probes upwards and downwards, and upwards once the destination has pushed back.
const DOUBLE: f64 = 2.0;
const UP: f64 = 1.5;
const DOWN: f64 = 0.75;
const CAREFUL: f64 = 1.25;

/// Where the destination pushes back and no smaller number is known that it took.
const RETREAT: f64 = 0.7;

/// So many times the work, or so little of it, in [`ODD`] windows on end: something has changed, and all is found out anew.
const CHANGED: f64 = 2.0;
const ODD: u32 = 3;

/// What should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    /// Lanes.
    pub(super) lanes: usize,
    /// What to do about counting; `None`: go on as before.
    pub(super) count: Option<Count>,
}

/// Which pieces of work are followed to their ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Those begun from now on and no others.
    Anew,
    /// Those begun so far and no more.
    Closed,
}

/// On to another number of lanes.
#[derive(Debug, Clone, Copy)]
struct Step {
    factor: f64,
    /// As far as there may be so many with so much memory.
    memory: u64,
    /// The one before has clearly paid, so that this one is believed to if it looks like it.
    believed: bool,
}

impl Step {
    fn new(factor: f64, now: &Sample) -> Step {
        Step { factor, memory: now.memory_easy, believed: false }
    }

    /// After twice the lanes have clearly paid.
    fn doubling(reading: &Reading, base: &Reading, now: &Sample) -> Step {
        let memory = if reading.brings(base, PROPORTIONAL) { now.memory } else { now.memory_easy };
        Step { factor: DOUBLE, memory, believed: true }
    }
}

#[derive(Debug)]
enum State {
    /// Trying `lanes`, which came from a base by this factor.
    Try {
        factor: f64,
        believed: bool,
        base: Option<Reading>,
        /// What was read before, where it did not pay at first sight.
        first: Option<Reading>,
    },
    /// Back at fewer lanes than `more`, which came from them by this factor: do they do less once more?
    Check { factor: f64, more: Reading },
    /// Staying, until it is time for a probe.
    Stay {
        until: Duration,
        steady: Option<Reading>,
        /// Readings on end that are nothing like `steady`.
        odd: u32,
    },
}

/// Finds the number of lanes.
#[derive(Debug)]
pub(super) struct Tuner {
    most: usize,
    lanes: usize,
    trial: Trial,
    state: State,
    pause: Duration,
    /// The next probe goes up.
    up: bool,
    /// By how much.
    step: f64,
}

impl Tuner {
    /// Begins with `start` lanes and will not wish for more than `most`.
    pub(super) fn new(start: usize, most: usize) -> Tuner {
        Tuner {
            most: most.max(1),
            lanes: start.clamp(1, most.max(1)),
            trial: Trial::new(Sample::default()),
            state: State::Try { factor: DOUBLE, believed: false, base: None, first: None },
            pause: PAUSE.0,
            up: true,
            step: UP,
        }
    }

    /// The wish before the first sample.
    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Takes a sample; to be called every 10 to 20 ms.
    pub(super) fn take(&mut self, now: Sample) -> Wish {
        if self.trial.is_pushed_back(&now) {
            self.retreat(now);
            return self.wish(Some(Count::Anew));
        }
        // A probe is about a few percent, the doubling at the start is not.
        let patience = match self.state {
            State::Try { factor, .. } | State::Check { factor, .. } if factor < DOUBLE => 2,
            _ => 1,
        };
        self.trial.note(&now);
        let glance = self.glance(&now).map(Seen::Reading);
        let count = match glance.unwrap_or_else(|| self.trial.see(&now, self.lanes, patience)) {
            Seen::Nothing => None,
            Seen::Settled => Some(Count::Anew),
            Seen::Closed => Some(Count::Closed),
            Seen::Reading(reading) => {
                self.judge(reading, now);
                Some(Count::Anew)
            }
        };
        self.wish(count)
    }

    fn wish(&self, count: Option<Count>) -> Wish {
        Wish { lanes: self.lanes, count }
    }

    /// While the number doubles a glance is enough, where it shows clearly that it pays.
    fn glance(&self, now: &Sample) -> Option<Reading> {
        match &self.state {
            State::Try { base: None, .. } => self.trial.glance(now, self.lanes, self.lanes).filter(Reading::is_full),
            State::Try { base: Some(base), first: None, .. } if self.lanes >= base.lanes * 2 => {
                let reading = self.trial.glance(now, self.lanes, self.lanes / 2)?;
                (reading.is_full() && reading.is_clear(base)).then_some(reading)
            }
            _ => None,
        }
    }

    fn judge(&mut self, reading: Reading, now: Sample) {
        match &mut self.state {
            State::Try { .. } if !reading.is_full() => self.stay(None, now),
            State::Try { factor, base: None, .. } => {
                let factor = *factor;
                self.go(Step::new(factor, &now), reading, now);
            }
            State::Try { factor, believed, base: Some(base), first } => {
                let (factor, believed) = (*factor, *believed);
                let reading = first.map_or(reading, |first| first.mean(reading));
                if reading.pays(base) && factor < 1.0 {
                    self.go(Step::new(factor, &now), reading, now);
                } else if reading.is_clear(base) {
                    let step = Step::doubling(&reading, base, &now);
                    self.go(step, reading, now);
                } else if reading.pays(base) && believed {
                    self.go(Step::new(UP, &now), reading, now);
                } else if reading.pays(base) {
                    let lanes = base.lanes;
                    self.state = State::Check { factor, more: reading };
                    self.set(lanes, now);
                } else if first.is_none() && factor > 1.0 {
                    *first = Some(reading);
                    self.trial = Trial::going_on(now);
                } else {
                    let base = *base;
                    self.set(base.lanes, now);
                    self.stay(Some(base), now);
                    self.pause = (self.pause * 2).min(PAUSE.1);
                }
            }
            State::Check { .. } if !reading.is_full() => self.stay(None, now),
            State::Check { factor, more } => {
                let (factor, more) = (*factor, *more);
                if more.pays(&reading) {
                    self.lanes = more.lanes;
                    let next = if more.brings(&reading, CLEAR) { (factor * CAREFUL).min(DOUBLE) } else { factor.min(UP) };
                    self.go(Step::new(next, &now), more, now);
                } else {
                    self.stay(Some(reading), now);
                    self.pause = (self.pause * 2).min(PAUSE.1);
                }
            }
            State::Stay { steady, odd, until } => {
                self.trial = Trial::going_on(now);
                if !reading.is_full() {
                    return;
                }
                let Some(known) = steady else {
                    *steady = Some(reading);
                    return;
                };
                let ratio = reading.over(known);
                if (1.0 / CHANGED..=CHANGED).contains(&ratio) {
                    (*steady, *odd) = (Some(known.mean(reading)), 0);
                } else {
                    *odd += 1;
                    if *odd >= ODD {
                        self.pause = PAUSE.0;
                        self.go(Step::new(DOUBLE, &now), reading, now);
                        return;
                    }
                }
                if now.at >= *until {
                    self.probe(now);
                }
            }
        }
    }

    /// Tries a few lanes more or less than now; the direction alternates.
    fn probe(&mut self, now: Sample) {
        let State::Stay { steady: Some(steady), .. } = self.state else { return };
        let factor = if self.up { self.step } else { DOWN };
        self.up = !self.up;
        self.go(Step::new(factor, &now), steady, now);
    }

    /// Takes a step and tries what it leads to, compared with `base`, as far as there may be so many.
    fn go(&mut self, step: Step, base: Reading, now: Sample) {
        let lanes = self.scaled(step, &now);
        if lanes == self.lanes {
            self.pause = (self.pause * 2).min(PAUSE.1);
            self.stay(Some(base), now);
        } else {
            let Step { factor, believed, .. } = step;
            self.state = State::Try { factor, believed, base: Some(base), first: None };
            self.set(lanes, now);
        }
    }

    fn stay(&mut self, steady: Option<Reading>, now: Sample) {
        self.state = State::Stay { until: now.at + self.pause, steady, odd: 0 };
        self.trial = Trial::new(now);
    }

    fn set(&mut self, lanes: usize, now: Sample) {
        self.lanes = lanes;
        self.trial = Trial::new(now);
    }

    fn retreat(&mut self, now: Sample) {
        (self.lanes, self.pause) = match &self.state {
            // A step too far.
            State::Try { base: Some(base), .. } if base.lanes < self.lanes => (base.lanes, (self.pause * 2).min(PAUSE.1)),
            // The destination takes less than it did.
            _ => (scale(self.lanes, RETREAT).max(1), PAUSE.0),
        };
        (self.up, self.step) = (true, CAREFUL);
        self.stay(None, now);
        self.trial.grace = true;
    }

    /// Never more lanes than have memory, and never one alone by choice: while one waits, another reads.
    fn scaled(&self, Step { factor, memory, .. }: Step, now: &Sample) -> usize {
        let lanes = scale(self.lanes, factor);
        if factor < 1.0 {
            return lanes.max(2).min(self.lanes);
        }
        let room = real(memory) / real(now.memory_used.max(1));
        lanes.max(self.lanes + 1).min(scale(now.busy, room)).min(self.most).max(self.lanes)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and a cast of a float saturates")]
fn scale(lanes: usize, factor: f64) -> usize {
    (real(lanes) * factor).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(20);

    /// Feeds a tuner for `seconds` with what lanes do of which each ends `rate(lanes)` pieces of `len` bytes a second, `idle` of
    /// them having nothing to do. The lanes wished for come back, 50 a second.
    fn feed(tuner: &mut Tuner, seconds: u32, len: u64, idle: usize, rate: impl Fn(usize) -> u64) -> Vec<usize> {
        let (mut now, mut wishes, mut fiftieths) =
            (Sample { memory: 1 << 30, memory_easy: 1 << 30, ..Sample::default() }, Vec::new(), 0);
        for _ in 0..seconds * 50 {
            let lanes = tuner.lanes();
            now.busy = lanes.saturating_sub(idle);
            fiftieths += rate(lanes) * u64::try_from(now.busy).unwrap();
            now.at += TICK;
            now.done = fiftieths / 50;
            (now.begun, now.counted) = (now.done, now.done);
            now.counted_time += TICK * u32::try_from(now.busy).unwrap();
            now.bytes = now.done * len;
            now.moved = now.bytes;
            now.memory_used = len * u64::try_from(now.busy).unwrap();
            wishes.push(tuner.take(now).lanes);
        }
        wishes
    }

    #[test]
    fn it_doubles_while_that_pays() {
        let mut tuner = Tuner::new(4, 100);
        let mut wishes = feed(&mut tuner, 3, 1000, 0, |_| 50);
        wishes.dedup();
        assert_eq!(wishes[..6], [4, 8, 16, 32, 64, 100]);
    }

    #[test]
    fn nothing_is_learnt_from_lanes_without_work() {
        let mut tuner = Tuner::new(16, 100);
        let wishes = feed(&mut tuner, 10, 1000, 8, |_| 50);
        assert_eq!(wishes, [16; 500]);
    }

    #[test]
    fn lanes_that_bring_nothing_are_given_up() {
        for len in [1000, 8 << 20] {
            let mut tuner = Tuner::new(32, 1000);
            let wishes = feed(&mut tuner, 30, len, 0, |lanes| 8000 / u64::try_from(lanes).unwrap());
            assert!(wishes.iter().all(|lanes| *lanes <= 64), "{wishes:?}");
            assert!(*wishes.last().unwrap() <= 8, "{wishes:?}");
        }
    }
}
