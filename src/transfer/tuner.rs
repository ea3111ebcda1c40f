//! How many requests should be in flight: tries numbers and keeps the one that pays. Pure: samples in, a number out.
//!
//! A number of lanes is judged by the work it gets done in a second, bytes and requests alike: a request counts as much as
//! [`REQUEST`] bytes, so that large objects are judged by bytes and small ones by requests. More lanes are kept if they bring
//! enough for their number ([`WORTH`]), fewer if they cost little. At first the number doubles; later it is probed now and then,
//! ever more rarely while nothing comes of it. Where the destination pushes back, it goes down at once and comes up in small
//! steps. How long a request takes is never judged: of a large block that is mostly the time its bytes need.
//!
//! The work done is lanes over time a request (Little's law) and not a count over a window: requests that set out together end
//! together, and a window with one more such wave in it would look far better than it is. That time is the mean over all requests
//! that set out in a span of time, slow ones as well: of those that also end in it the slow ones would be missing, and the more
//! so the slower the many lanes make each other. Where requests take longer than a window, what has moved on the wire is counted
//! instead.
//!
//! More lanes that bring nearly as much more are believed at first sight, so that a long line is filled within a few round trips.
//! Those that bring little more are believed only when fewer have brought less once more: what the destination does by itself in
//! the meantime is not theirs.

use std::time::Duration;

/// What a request is worth beside its bytes: where it takes as long as its bytes, on a connection with 1 ms between request and
/// answer at 0.5 Gbit/s.
const REQUEST: f64 = 65_536.0;

/// `k` times the lanes have to do `k` to the power of this times the work: 11 % more for twice as many, and 4 % less is accepted
/// for three quarters. Where work grows with the lanes up to some number, what is found is within 6 % of the best.
const WORTH: f64 = 0.15;

/// After a change, new lanes get their connections and old ones end what they have begun: until as many requests have ended as
/// there are lanes, between these times.
const SETTLE: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(300));

/// As long as the destination's pushing back makes requests wait at most, to begin with.
const GRACE: Duration = Duration::from_millis(500);

/// Then as many again are followed, those that set out from now on: for the first of these times at least, and to their ends
/// unless that takes longer than the second.
const WINDOW: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(800));

/// So many of a hundred have to have ended: some may wait to be sent again.
const ENDED: u64 = 95;

/// Time from a finding to the next probe: doubles from the first to the last while nothing comes of it.
const PAUSE: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(16));

/// `k` times the lanes that do `k` to the power of this times the work are believed at first sight, and before they have settled:
/// 68 % more for twice as many. Those that do less have it measured again what fewer do.
const CLEAR: f64 = 0.75;

/// And those that do that much more take memory for the next ones as well: 87 % more for twice as many.
const PROPORTIONAL: f64 = 0.9;

/// Steps: at the start, of probes upwards and downwards, and upwards once the destination has pushed back.
const DOUBLE: f64 = 2.0;
const UP: f64 = 1.5;
const DOWN: f64 = 0.75;
const CAREFUL: f64 = 1.25;

/// Where the destination pushes back and no smaller number is known that it took.
const RETREAT: f64 = 0.7;

/// Pushed back once in so many answers, and [`LUCK`] times more, is bad luck; more often is too many lanes.
const TOLERATED: u64 = 32;
const LUCK: u64 = 4;

/// So many times the work, or so little of it, in [`ODD`] windows on end: something has changed, and all is found out anew.
const CHANGED: f64 = 2.0;
const ODD: u32 = 3;

/// Where the job stands. Totals since its start, if not said otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// Time.
    pub(super) at: Duration,
    /// Bytes moved on the wire, acknowledged or not.
    pub(super) moved: u64,
    /// Bytes acknowledged.
    pub(super) bytes: u64,
    /// Pieces of work ended: requests, mostly.
    pub(super) done: u64,
    /// Answers that asked us to slow down.
    pub(super) pushed_back: u64,
    /// Pieces begun while they are counted ([`Count`]); how many of those have ended since, and the time they took.
    pub(super) begun: u64,
    pub(super) counted: u64,
    pub(super) counted_time: Duration,
    /// Lanes at work now, and how many of them only wait to send something again.
    pub(super) busy: usize,
    pub(super) waiting: usize,
    /// Memory there is for blocks, the part of it to be content with unless more lanes clearly pay, and what is taken now.
    pub(super) memory: u64,
    pub(super) memory_easy: u64,
    pub(super) memory_used: u64,
}

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

/// Work done in a second by a number of lanes.
#[derive(Debug, Clone, Copy)]
struct Reading {
    lanes: usize,
    /// From lanes and time a piece, where enough pieces have ended.
    by_pieces: Option<f64>,
    /// From what has ended in the time.
    by_ended: f64,
    /// From what has moved in the time, ended or not.
    by_moved: f64,
    /// Lanes that were at work all the time, without those that waited to send something again.
    at_work: f64,
}

impl Reading {
    /// Work per work of `other`.
    fn over(&self, other: &Reading) -> f64 {
        let Some((mine, others)) = self.by_pieces.zip(other.by_pieces) else { return ratio(self.by_moved, other.by_moved) };
        let by_pieces = ratio(mine, others);
        // The few that take longest are not waited for, and that flatters the many; a count does not.
        if self.lanes > other.lanes { by_pieces.min(ratio(self.by_ended, other.by_ended)) } else { by_pieces }
    }

    /// Whether it is worth its lanes, compared with `base`.
    fn pays(&self, base: &Reading) -> bool {
        self.brings(base, WORTH)
    }

    /// Whether its lanes, at least twice as many, and nothing else must be the reason that it is so much more than `base`, read
    /// just before.
    fn is_clear(&self, base: &Reading) -> bool {
        self.lanes >= base.lanes * 2 && self.brings(base, CLEAR)
    }

    fn brings(&self, base: &Reading, power: f64) -> bool {
        self.over(base) >= (real(self.lanes) / real(base.lanes)).powf(power)
    }

    /// Whether there was work for all: otherwise the number of lanes says nothing.
    fn is_full(&self) -> bool {
        self.at_work >= 0.8 * real(self.lanes)
    }

    fn mean(self, other: Reading) -> Reading {
        let by_pieces = self.by_pieces.zip(other.by_pieces).map(|(a, b)| (a + b) / 2.0);
        let mean = |a: f64, b: f64| (a + b) / 2.0;
        Reading {
            by_pieces,
            by_ended: mean(self.by_ended, other.by_ended),
            by_moved: mean(self.by_moved, other.by_moved),
            ..self
        }
    }
}

/// One number of lanes under examination.
#[derive(Debug)]
struct Trial {
    start: Sample,
    /// Once settled.
    from: Option<Sample>,
    /// No more pieces are added to those that are followed.
    closed: bool,
    ticks: u32,
    busy: usize,
    waiting: usize,
    /// Settling after a push-back: what is pushed back now was sent before.
    grace: bool,
}

enum Seen {
    Nothing,
    Settled,
    Closed,
    Reading(Reading),
}

impl Trial {
    fn new(start: Sample) -> Trial {
        Trial { start, from: None, closed: false, ticks: 0, busy: 0, waiting: 0, grace: false }
    }

    /// One that needs no settling.
    fn going_on(start: Sample) -> Trial {
        Trial { from: Some(start), ..Trial::new(start) }
    }

    fn is_pushed_back(&self, now: &Sample) -> bool {
        let times = now.pushed_back.saturating_sub(self.start.pushed_back);
        let answers = times + now.done.saturating_sub(self.start.done);
        !self.grace && times > LUCK + answers / TOLERATED
    }

    /// Takes note of what there is to be averaged; once a sample.
    fn note(&mut self, now: &Sample) {
        self.ticks += 1;
        self.busy += now.busy;
        self.waiting += now.waiting.min(now.busy);
    }

    /// `patience`: windows' worth to measure.
    fn see(&mut self, now: &Sample, lanes: usize, patience: u32) -> Seen {
        let Some(from) = self.from else {
            let took = now.at.saturating_sub(self.start.at);
            let (least, most) = if self.grace { (GRACE, GRACE) } else { SETTLE };
            if took >= most || (took >= least && now.done - self.start.done >= count(lanes)) {
                let start = if self.grace { *now } else { self.start };
                *self = Trial { start, ..Trial::going_on(*now) };
                return Seen::Settled;
            }
            return Seen::Nothing;
        };
        let took = now.at.saturating_sub(from.at);
        let begun = now.begun.saturating_sub(from.begun);
        if !self.closed && took >= WINDOW.0 * patience && begun >= count(lanes) * u64::from(patience) {
            self.closed = true;
            return Seen::Closed;
        }
        let ended = self.closed && now.counted.saturating_sub(from.counted) * 100 >= begun * ENDED;
        if !ended && took < WINDOW.1 * patience {
            return Seen::Nothing;
        }
        Seen::Reading(self.reading(&from, now, lanes, ended))
    }

    /// A look at lanes that have not settled: as many pieces as `least` that were begun with them have ended.
    fn glance(&self, now: &Sample, lanes: usize, least: usize) -> Option<Reading> {
        let counted = now.counted.saturating_sub(self.start.counted);
        let long = now.at.saturating_sub(self.start.at) >= SETTLE.0;
        (self.from.is_none() && !self.grace && long && counted >= count(least))
            .then(|| self.reading(&self.start, now, lanes, true))
    }

    fn reading(&self, from: &Sample, now: &Sample, lanes: usize, by_pieces: bool) -> Reading {
        let took = now.at.saturating_sub(from.at).as_secs_f64();
        let counted = now.counted.saturating_sub(from.counted);
        let done = real(now.done - self.start.done);
        let piece = REQUEST + if done > 0.0 { real(now.bytes.saturating_sub(self.start.bytes)) / done } else { 0.0 };
        let mean = |sum: usize| real(sum) / f64::from(self.ticks);
        let time = now.counted_time.saturating_sub(from.counted_time).as_secs_f64();
        let by_pieces = (by_pieces && time > 0.0).then(|| mean(self.busy) * real(counted) / time * piece);
        let requests = real(now.done - from.done) * REQUEST;
        let per_s = |bytes: u64| (real(bytes) + requests) / took;
        let (by_ended, by_moved) = (per_s(now.bytes.saturating_sub(from.bytes)), per_s(now.moved.saturating_sub(from.moved)));
        Reading { lanes, by_pieces, by_ended, by_moved, at_work: mean(self.busy - self.waiting) }
    }
}

fn ratio(mine: f64, others: f64) -> f64 {
    if others > 0.0 { mine / others } else { 1.0 }
}

fn count(lanes: usize) -> u64 {
    u64::try_from(lanes).unwrap_or(u64::MAX)
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

trait Real {
    fn real(self) -> f64;
}

impl Real for u64 {
    #[expect(clippy::cast_precision_loss, reason = "figures that are compared to within percents")]
    fn real(self) -> f64 {
        self as f64
    }
}

impl Real for usize {
    #[expect(clippy::cast_precision_loss, reason = "figures that are compared to within percents")]
    fn real(self) -> f64 {
        self as f64
    }
}

fn real(value: impl Real) -> f64 {
    value.real()
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
