//! What a number of lanes gets done, measured while they work. Pure: samples in, a reading out; what follows from it is the tuner's.
//!
//! A request counts as much as [`REQUEST`] bytes, so that large objects are judged by bytes and small ones by requests. How long a
//! request takes is never judged: of a large block that is mostly the time its bytes need.
//!
//! The work done is lanes over time a request (Little's law) and not a count over a window: requests that set out together end
//! together, and a window with one more such wave in it would look far better than it is. That time is the mean over all requests
//! that set out in a span of time, slow ones as well: of those that also end in it the slow ones would be missing, and the more
//! so the slower the many lanes make each other. Where requests take longer than a window, what has moved on the wire is counted
//! instead.

use std::time::Duration;

/// What a request is worth beside its bytes: where it takes as long as its bytes, on a connection with 1 ms between request and
/// answer at 0.5 Gbit/s.
const REQUEST: f64 = 65_536.0;

/// `k` times the lanes have to do `k` to the power of this times the work: 11 % more for twice as many, and 4 % less is accepted
/// for three quarters. Where work grows with the lanes up to some number, what is found is within 6 % of the best.
const WORTH: f64 = 0.15;

/// `k` times the lanes that do `k` to the power of this times the work are believed at first sight, and before they have settled:
/// 68 % more for twice as many. Those that do less have it measured again what fewer do.
pub(super) const CLEAR: f64 = 0.75;

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

/// Pushed back once in so many answers, and [`LUCK`] times more, is bad luck; more often is too many lanes.
const TOLERATED: u64 = 32;
const LUCK: u64 = 4;

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

/// Work done in a second by a number of lanes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) lanes: usize,
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
    pub(super) fn over(&self, other: &Reading) -> f64 {
        let Some((mine, others)) = self.by_pieces.zip(other.by_pieces) else { return ratio(self.by_moved, other.by_moved) };
        let by_pieces = ratio(mine, others);
        // The few that take longest are not waited for, and that flatters the many; a count does not.
        if self.lanes > other.lanes { by_pieces.min(ratio(self.by_ended, other.by_ended)) } else { by_pieces }
    }

    /// Whether it is worth its lanes, compared with `base`.
    pub(super) fn pays(&self, base: &Reading) -> bool {
        self.brings(base, WORTH)
    }

    /// Whether its lanes, at least twice as many, and nothing else must be the reason that it is so much more than `base`, read
    /// just before.
    pub(super) fn is_clear(&self, base: &Reading) -> bool {
        self.lanes >= base.lanes * 2 && self.brings(base, CLEAR)
    }

    pub(super) fn brings(&self, base: &Reading, power: f64) -> bool {
        self.over(base) >= (real(self.lanes) / real(base.lanes)).powf(power)
    }

    /// Whether there was work for all: otherwise the number of lanes says nothing.
    pub(super) fn is_full(&self) -> bool {
        self.at_work >= 0.8 * real(self.lanes)
    }

    pub(super) fn mean(self, other: Reading) -> Reading {
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
pub(super) struct Trial {
    start: Sample,
    /// Once settled.
    from: Option<Sample>,
    /// No more pieces are added to those that are followed.
    closed: bool,
    ticks: u32,
    busy: usize,
    waiting: usize,
    /// Settling after a push-back: what is pushed back now was sent before.
    pub(super) grace: bool,
}

pub(super) enum Seen {
    Nothing,
    Settled,
    Closed,
    Reading(Reading),
}

impl Trial {
    pub(super) fn new(start: Sample) -> Trial {
        Trial { start, from: None, closed: false, ticks: 0, busy: 0, waiting: 0, grace: false }
    }

    /// One that needs no settling.
    pub(super) fn going_on(start: Sample) -> Trial {
        Trial { from: Some(start), ..Trial::new(start) }
    }

    pub(super) fn is_pushed_back(&self, now: &Sample) -> bool {
        let times = now.pushed_back.saturating_sub(self.start.pushed_back);
        let answers = times + now.done.saturating_sub(self.start.done);
        !self.grace && times > LUCK + answers / TOLERATED
    }

    /// Takes note of what there is to be averaged; once a sample.
    pub(super) fn note(&mut self, now: &Sample) {
        self.ticks += 1;
        self.busy += now.busy;
        self.waiting += now.waiting.min(now.busy);
    }

    /// `patience`: windows' worth to measure.
    pub(super) fn see(&mut self, now: &Sample, lanes: usize, patience: u32) -> Seen {
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
    pub(super) fn glance(&self, now: &Sample, lanes: usize, least: usize) -> Option<Reading> {
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

pub(super) trait Real {
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

pub(super) fn real(value: impl Real) -> f64 {
    value.real()
}
