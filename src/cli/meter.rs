//! Progress as text: the line AzCopy users know, and what stands in the bar under it. Pure: takes counts and times, gives strings.
//!
//! Done are acknowledged bytes only, each once, so that the last line equals the total. The percentage and the bar also count
//! what is on its way in requests that are not yet answered, and lose it again where a request fails: on a slow line a block may
//! take minutes. The rate counts what goes over the wire, as AzCopy's does. `Mb/s` are decimal megabits a second.

use std::collections::VecDeque;
use std::time::Duration;

/// How often a line is written, as AzCopy does.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// How often the bar under it moves, on a terminal.
pub(crate) const BAR_EVERY: Duration = Duration::from_millis(200);

/// Rates kept for the sparkline, one a line.
const RATES_KEPT: usize = 24;

/// Where a job stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Objects found so far.
    pub(crate) listed: u64,
    /// Objects whose length is known, because they were opened.
    pub(crate) opened: u64,
    /// Objects transferred.
    pub(crate) done: u64,
    /// Objects that failed.
    pub(crate) failed: u64,
    /// Objects left out on purpose.
    pub(crate) skipped: u64,
    /// Bytes of the objects whose length is known.
    pub(crate) bytes_listed: u64,
    /// Bytes the destination has acknowledged, to this run or an earlier one.
    pub(crate) bytes_done: u64,
    /// Of these, the ones an earlier run had sent.
    pub(crate) bytes_resumed: u64,
    /// Bytes on their way, in requests that are not answered.
    pub(crate) bytes_under_way: u64,
    /// Bytes that went over the wire, heads and what was sent again included.
    pub(crate) bytes_on_wire: u64,
    /// Whether the source is still being listed.
    pub(crate) listing: bool,
    /// Requests that may be in flight at present.
    pub(crate) concurrency: usize,
}

impl Counts {
    /// Found, and neither done nor failed nor skipped.
    pub(crate) fn pending(&self) -> u64 {
        self.listed.saturating_sub(self.done + self.failed + self.skipped)
    }

    /// Bytes there are in all, as far as one can tell: objects not opened yet count as large as the average of the others.
    pub(crate) fn bytes_expected(&self) -> u64 {
        let unopened = self.listed.saturating_sub(self.opened.max(self.done + self.failed + self.skipped));
        self.bytes_listed.saturating_add(self.bytes_listed.checked_div(self.opened).unwrap_or(0).saturating_mul(unopened))
    }

    /// Bytes acknowledged or on their way; never more than there are.
    pub(crate) fn bytes_reached(&self) -> u64 {
        self.bytes_done.saturating_add(self.bytes_under_way).min(self.bytes_expected())
    }

    /// Percent done or on its way: of the bytes where there are any, otherwise of the objects.
    pub(crate) fn percent(&self) -> f64 {
        match self.bytes_expected() {
            0 => share(self.done + self.skipped, self.listed),
            expected => share(self.bytes_reached(), expected),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure with one decimal")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Turns counts into lines; keeps what it needs of the past.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    last: (Duration, u64),
    rates: VecDeque<f64>,
}

impl Meter {
    /// Takes the counts `at` this time since the start of the job; called once every [`EVERY`]. Gives the rate since the call
    /// before, in Mb/s.
    pub(crate) fn beat(&mut self, at: Duration, counts: &Counts) -> f64 {
        let rate = self.rate(at, counts);
        self.last = (at, counts.bytes_on_wire);
        if self.rates.len() == RATES_KEPT {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
        rate
    }

    /// Mb/s since the last beat.
    pub(crate) fn rate(&self, at: Duration, counts: &Counts) -> f64 {
        mbps(counts.bytes_on_wire.saturating_sub(self.last.1), at.saturating_sub(self.last.0))
    }

    /// What stands behind the bar: rate for people, time left, and the rates of the last minute as a sparkline.
    pub(crate) fn tail(&self, counts: &Counts) -> String {
        let recent: Vec<f64> = self.rates.iter().rev().take(5).copied().collect();
        #[expect(clippy::cast_precision_loss, reason = "at most five")]
        let rate = if recent.is_empty() { 0.0 } else { recent.iter().sum::<f64>() / recent.len() as f64 };
        let mut out = people_rate(rate);
        let left = counts.bytes_expected().saturating_sub(counts.bytes_reached());
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let seconds = left as f64 * 8.0 / 1e6 / rate;
        if !counts.listing && left > 0 && seconds.is_finite() && seconds < 1e8 {
            out.push_str(&format!("  ETA {}", people_left(seconds)));
        }
        if self.rates.len() > 1 {
            out.push_str("  ");
            out.push_str(&sparkline(&self.rates));
        }
        out
    }
}

/// Decimal megabits a second.
pub(crate) fn mbps(bytes: u64, took: Duration) -> f64 {
    if took.is_zero() {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let bits = bytes as f64 * 8.0;
    bits / 1e6 / took.as_secs_f64()
}

/// AzCopy's line, field by field: `12.3 %, 4 Done, 0 Failed, 10 Pending, 0 Skipped, 14 Total, 2-sec Throughput (Mb/s): 93.1`.
pub(crate) fn line(counts: &Counts, rate: f64) -> String {
    format!(
        "{:.1} %, {} Done, {} Failed, {} Pending, {} Skipped, {} Total{}, 2-sec Throughput (Mb/s): {}",
        counts.percent(),
        counts.done,
        counts.failed,
        counts.pending(),
        counts.skipped,
        counts.listed,
        if counts.listing { " (scanning...)" } else { "" },
        four_decimals(rate),
    )
}

/// At most four decimals and no trailing zeros, as AzCopy prints its figures.
pub(crate) fn four_decimals(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

fn people_rate(mbps: f64) -> String {
    if mbps >= 1000.0 { format!("{:.2} Gb/s", mbps / 1000.0) } else { format!("{mbps:.1} Mb/s") }
}

fn people_left(seconds: f64) -> String {
    let whole = Duration::from_secs_f64(seconds).as_secs();
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn sparkline(rates: &VecDeque<f64>) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let top = rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7 by construction")]
    rates.iter().map(|rate| STEPS[((rate / top * 7.0).round() as usize).min(7)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Counts = Counts {
        listed: 14,
        opened: 14,
        done: 4,
        failed: 1,
        skipped: 2,
        bytes_listed: 4_000_000,
        bytes_done: 500_000,
        bytes_resumed: 0,
        bytes_under_way: 0,
        bytes_on_wire: 500_000,
        listing: true,
        concurrency: 12,
    };

    #[test]
    fn the_line_is_the_one_azcopy_prints() {
        let mut meter = Meter::default();
        let rate = meter.beat(EVERY, &HALF);
        assert_eq!(
            line(&HALF, rate),
            "12.5 %, 4 Done, 1 Failed, 7 Pending, 2 Skipped, 14 Total (scanning...), 2-sec Throughput (Mb/s): 2"
        );
        let more = Counts { bytes_done: 1_234_567, bytes_on_wire: 1_234_567, listing: false, ..HALF };
        let rate = meter.beat(EVERY * 2, &more);
        assert_eq!(
            line(&more, rate),
            "30.9 %, 4 Done, 1 Failed, 7 Pending, 2 Skipped, 14 Total, 2-sec Throughput (Mb/s): 2.9383"
        );
    }

    #[test]
    fn what_is_on_its_way_counts_and_is_never_more_than_there_is() {
        // One block of a slow line, a second after its start: nothing is acknowledged yet.
        let slow = Counts { listed: 1, opened: 1, bytes_listed: 100_000_000, bytes_under_way: 125_000, ..Counts::default() };
        assert!((slow.percent() - 0.125).abs() < 1e-9);
        // The heads of the requests are on their way, too.
        let last = Counts { bytes_done: 99_999_999, bytes_under_way: 700, ..slow };
        assert_eq!(last.bytes_reached(), 100_000_000);
        assert_eq!(Counts { bytes_under_way: 0, ..last }.bytes_reached(), 99_999_999, "at the end only what is acknowledged");
    }

    #[test]
    fn objects_not_opened_yet_count_as_the_average() {
        let counts = Counts {
            listed: 100,
            opened: 10,
            done: 10,
            bytes_listed: 1000,
            bytes_done: 1000,
            listing: true,
            ..Counts::default()
        };
        assert!((counts.percent() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn empty_files_count_as_objects() {
        let counts = Counts { listed: 4, opened: 1, done: 1, ..Counts::default() };
        assert!((counts.percent() - 25.0).abs() < 1e-9);
        assert!(Counts::default().percent().abs() < 1e-9);
    }

    #[test]
    fn the_bar_tells_rate_time_left_and_history() {
        let mut meter = Meter::default();
        let mut counts = Counts { bytes_listed: 1_000_000_000, opened: 1, listed: 1, ..Counts::default() };
        for beat in 1..=3u32 {
            counts.bytes_done += 50_000_000 * u64::from(beat);
            counts.bytes_on_wire = counts.bytes_done;
            meter.beat(EVERY * beat, &counts);
        }
        assert_eq!(meter.tail(&counts), "400.0 Mb/s  ETA 0:14  ▃▆█");
        counts.listing = true;
        assert_eq!(meter.tail(&counts), "400.0 Mb/s  ▃▆█", "no promise while still counting");
    }

    #[test]
    fn a_stalled_job_divides_by_nothing() {
        let mut meter = Meter::default();
        meter.beat(Duration::ZERO, &HALF);
        meter.beat(Duration::ZERO, &HALF);
        assert_eq!(meter.tail(&Counts { listing: false, ..HALF }), "0.0 Mb/s  ▁▁");
    }
}
