//! A run's history in bounded memory: stretches of equal length, whose length doubles when there are too many of them. So a job
//! of a second and one of a week both have some hundred. Pure: readings in, stretches out.

use super::record::{Slot, Timeline};
use crate::rest::stats::RETRY_CAUSES;
use std::time::Duration;

/// Stretches kept at most: more than a page is wide in pairs of pixels.
const SLOTS: usize = 360;

/// Length of a stretch to begin with: a run of half a second still has a shape.
const FIRST_STEP: Duration = Duration::from_millis(20);

/// Longest time between two readings, so that requests in flight are seen often also where stretches are long.
const SELDOM: Duration = Duration::from_secs(1);

/// Totals at one moment. They only grow, but for the last two.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// Since the start.
    pub(crate) at: Duration,
    pub(crate) bytes: u64,
    pub(crate) bytes_on_wire: u64,
    pub(crate) requests: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// In the order of [`RETRY_CAUSES`].
    pub(crate) retries: [u64; RETRY_CAUSES.len()],
    pub(crate) cpu: Duration,
    pub(crate) in_flight: u64,
    pub(crate) concurrency: u64,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Recorded {
    step: Duration,
    last: Reading,
    slots: Vec<Slot>,
}

impl Default for Recorded {
    fn default() -> Self {
        Recorded { step: FIRST_STEP, last: Reading::default(), slots: Vec::new() }
    }
}

impl Recorded {
    /// When the next reading should be taken, after the one before.
    pub(crate) fn pause(&self) -> Duration {
        self.step.min(SELDOM)
    }

    /// Takes a reading. One that is not later than the one before is left out.
    pub(crate) fn take(&mut self, now: Reading) {
        let last = std::mem::replace(&mut self.last, now);
        if now.at <= last.at {
            self.last = Reading { at: last.at, ..now };
            return;
        }
        let delta = between(&last, &now);
        // A timer that was a little early must not make a second, tiny stretch.
        let nearly = self.step.mul_f64(0.9).as_secs_f64();
        match self.slots.last_mut() {
            Some(slot) if slot.to_s - slot.from_s < nearly => *slot = joined(slot, &delta),
            _ => self.slots.push(delta),
        }
        if self.slots.len() > SLOTS {
            self.step *= 2;
            self.slots = self.slots.chunks(2).map(|pair| pair[1..].iter().fold(pair[0].clone(), |a, b| joined(&a, b))).collect();
        }
    }

    /// Takes the last reading. Nothing is in flight any more, and the rest since the one before may be short: it joins it.
    pub(crate) fn end(&mut self, now: Reading) {
        let in_flight = self.slots.last().map_or(now.in_flight, |_| self.last.in_flight);
        let delta = between(&self.last, &Reading { in_flight, ..now });
        if now.at > self.last.at {
            match self.slots.last_mut() {
                Some(slot) => *slot = joined(slot, &delta),
                None => self.slots.push(delta),
            }
        }
    }

    /// All of it.
    pub(crate) fn timeline(&self) -> Timeline {
        Timeline { step_s: self.step.as_secs_f64(), slots: self.slots.clone() }
    }
}

fn between(last: &Reading, now: &Reading) -> Slot {
    let by_cause = RETRY_CAUSES.iter().zip(now.retries).zip(last.retries);
    #[expect(clippy::cast_precision_loss, reason = "some thousand at most")]
    let in_flight = now.in_flight as f64;
    Slot {
        from_s: last.at.as_secs_f64(),
        to_s: now.at.as_secs_f64(),
        bytes: now.bytes.saturating_sub(last.bytes),
        bytes_on_wire: now.bytes_on_wire.saturating_sub(last.bytes_on_wire),
        requests: now.requests.saturating_sub(last.requests),
        done: now.done.saturating_sub(last.done),
        failed: now.failed.saturating_sub(last.failed),
        retries: by_cause.map(|((cause, now), last)| (*cause, now.saturating_sub(last))).filter(|(_, n)| *n > 0).collect(),
        in_flight,
        in_flight_max: now.in_flight,
        concurrency: now.concurrency,
        cpu_s: now.cpu.saturating_sub(last.cpu).as_secs_f64(),
    }
}

/// Two stretches, one after the other, as one. Averages weigh by time.
pub(crate) fn joined(a: &Slot, b: &Slot) -> Slot {
    let (long_a, long_b) = (a.to_s - a.from_s, b.to_s - b.from_s);
    let mut retries = a.retries.clone();
    b.retries.iter().for_each(|(cause, count)| *retries.entry(*cause).or_default() += count);
    Slot {
        from_s: a.from_s,
        to_s: b.to_s,
        bytes: a.bytes + b.bytes,
        bytes_on_wire: a.bytes_on_wire + b.bytes_on_wire,
        requests: a.requests + b.requests,
        done: a.done + b.done,
        failed: a.failed + b.failed,
        retries,
        in_flight: (a.in_flight * long_a + b.in_flight * long_b) / (long_a + long_b),
        in_flight_max: a.in_flight_max.max(b.in_flight_max),
        concurrency: a.concurrency.max(b.concurrency),
        cpu_s: a.cpu_s + b.cpu_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ms: u64) -> Reading {
        Reading {
            at: Duration::from_millis(ms),
            bytes: ms * 10,
            retries: [ms / 100, 0, 0, 0, 0],
            in_flight: ms % 7,
            ..Reading::default()
        }
    }

    #[test]
    fn a_long_job_fits_and_nothing_is_lost() {
        let mut recorded = Recorded::default();
        let week = 7 * 24 * 3600 * 1000;
        let mut at = 0;
        while at < week {
            at += u64::try_from(recorded.pause().as_millis()).unwrap();
            recorded.take(reading(at));
        }
        let timeline = recorded.timeline();
        assert!((SLOTS / 2..=SLOTS).contains(&timeline.slots.len()), "{}", timeline.slots.len());
        assert_eq!(timeline.slots.iter().map(|slot| slot.bytes).sum::<u64>(), at * 10);
        assert_eq!(timeline.slots.iter().filter_map(|slot| slot.retries.get("throttled")).sum::<u64>(), at / 100);
        assert!(timeline.slots.windows(2).all(|pair| (pair[0].to_s - pair[1].from_s).abs() < 1e-9), "no gap");
        assert_eq!(timeline.slots.iter().map(|slot| slot.in_flight_max).max(), Some(6));
    }

    #[test]
    fn averages_weigh_by_time() {
        let slot = |from_s, to_s, in_flight| Slot { from_s, to_s, in_flight, in_flight_max: 9, ..Slot::default() };
        let both = joined(&slot(0.0, 3.0, 4.0), &slot(3.0, 4.0, 8.0));
        assert!((both.in_flight - 5.0).abs() < 1e-9 && both.in_flight_max == 9, "{both:?}");
    }

    #[test]
    fn a_reading_at_the_same_time_is_no_division_by_nothing() {
        let mut recorded = Recorded::default();
        recorded.take(reading(0));
        recorded.take(reading(20));
        recorded.take(reading(20));
        assert_eq!(recorded.timeline().slots.len(), 1);
    }

    #[test]
    fn the_rest_at_the_end_joins_what_is_before_it() {
        let mut recorded = Recorded::default();
        recorded.take(Reading { in_flight: 6, ..reading(20) });
        recorded.end(Reading { in_flight: 0, ..reading(21) });
        let slots = recorded.timeline().slots;
        assert_eq!((slots.len(), slots[0].bytes), (1, 210));
        assert!((slots[0].in_flight - 6.0).abs() < 1e-9, "{slots:?}");
        let mut short = Recorded::default();
        short.end(reading(3));
        assert_eq!(short.timeline().slots.len(), 1);
    }
}
