//! What the wire counts about itself: requests, retries by cause, bytes, latencies. Shared by reference, read by anyone.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Why a request was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryCause {
    /// 503 or 429: the service asked us to slow down.
    Throttled,
    /// 500, 502, 504, 408.
    ServerError,
    /// Connection refused, reset, cut.
    Connection,
    /// No byte moved for too long.
    NoProgress,
    /// The service found a checksum mismatch.
    Checksum,
}

/// Names of the causes, in the order of [`RetryCause`], as they stand in JSON and in the summary.
pub const RETRY_CAUSES: [&str; 5] = ["throttled", "server error", "connection", "no progress", "checksum"];

/// Upper edges of the latency buckets are `2^(i/4)` ms: 96 buckets reach from 1 ms to over four hours.
const BUCKETS: usize = 96;

/// Counters of one client. All relaxed: they order nothing.
#[derive(Debug)]
pub struct Stats {
    /// Requests sent, retries included.
    pub requests: AtomicU64,
    /// Bytes written to sockets (heads and bodies, before TLS).
    pub bytes_sent: AtomicU64,
    /// Bytes read from sockets (heads and bodies, after TLS).
    pub bytes_received: AtomicU64,
    /// Requests that are under way now, from their first byte to the end of their answer.
    pub in_flight: AtomicU64,
    /// Bytes, in both directions, of requests that have not ended yet. Falls again when a request ends, whatever came of it, so
    /// that nothing sent or asked for again is in it twice.
    pub bytes_under_way: AtomicU64,
    /// Requests that wait now to be sent again, each refused alone: the service has the others go on.
    pub waiting: AtomicU64,
    retries: [AtomicU64; RETRY_CAUSES.len()],
    latency: [AtomicU64; BUCKETS],
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            requests: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            bytes_under_way: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            retries: [const { AtomicU64::new(0) }; RETRY_CAUSES.len()],
            latency: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }
}

impl Stats {
    /// Bytes that went over sockets, in both directions.
    pub fn bytes_on_wire(&self) -> u64 {
        self.bytes_sent.load(Relaxed) + self.bytes_received.load(Relaxed)
    }

    /// Counts a retry.
    pub fn retried(&self, cause: RetryCause) {
        self.retries[cause as usize].fetch_add(1, Relaxed);
    }

    /// Retries so far, by cause.
    pub fn retries(&self) -> [u64; RETRY_CAUSES.len()] {
        std::array::from_fn(|i| self.retries[i].load(Relaxed))
    }

    /// Counts a request as under way until what it gives is dropped.
    pub(crate) fn under_way(&self) -> Among<'_> {
        Among::new(&self.in_flight)
    }

    /// Counts a request as waiting until what it gives is dropped.
    pub(crate) fn waits(&self) -> Among<'_> {
        Among::new(&self.waiting)
    }

    /// Counts an answered request that took this long from first byte out to head in.
    pub fn answered(&self, took: Duration) {
        let ms = took.as_secs_f64() * 1000.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped below to the table")]
        let bucket = (ms.max(1.0).log2() * 4.0).ceil() as usize;
        self.latency[bucket.min(BUCKETS - 1)].fetch_add(1, Relaxed);
    }

    /// How many answered requests took up to each time, each counted once, from the first bucket with one in it to the last.
    pub fn latencies(&self) -> Vec<(Duration, u64)> {
        let counts = self.latency.each_ref().map(|count| count.load(Relaxed));
        let used = |count: &u64| *count > 0;
        match (counts.iter().position(used), counts.iter().rposition(used)) {
            (Some(first), Some(last)) => (first..=last).map(|bucket| (edge(bucket), counts[bucket])).collect(),
            _ => Vec::new(),
        }
    }

    /// The latency below which this share (0 to 1) of the answered requests stayed, to within 19 %; `None` before the first.
    pub fn latency(&self, share: f64) -> Option<Duration> {
        let counts: Vec<u64> = self.latency.iter().map(|c| c.load(Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(edge(bucket))
    }
}

/// Upper edge of a latency bucket.
fn edge(bucket: usize) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "at most 95")]
    Duration::from_secs_f64(2f64.powf(bucket as f64 / 4.0) / 1000.0)
}

/// A request that is counted for as long as this lives; see [`Stats::under_way`].
#[derive(Debug)]
pub(crate) struct Among<'a>(&'a AtomicU64);

impl<'a> Among<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Relaxed);
        Among(count)
    }
}

impl Drop for Among<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_within_a_bucket() {
        let stats = Stats::default();
        assert_eq!(stats.latency(0.5), None);
        for ms in 1..=100 {
            stats.answered(Duration::from_millis(ms));
        }
        let median = stats.latency(0.5).unwrap().as_secs_f64() * 1000.0;
        assert!((50.0..=60.0).contains(&median), "{median}");
        let p99 = stats.latency(0.99).unwrap().as_secs_f64() * 1000.0;
        assert!((99.0..=118.0).contains(&p99), "{p99}");
    }

    #[test]
    fn the_histogram_has_every_request_once() {
        let stats = Stats::default();
        assert!(stats.latencies().is_empty());
        [1, 2, 2, 16].into_iter().for_each(|ms| stats.answered(Duration::from_millis(ms)));
        let all = stats.latencies();
        let used: Vec<_> = all.iter().filter(|(_, count)| *count > 0).map(|(up_to, count)| (up_to.as_millis(), *count)).collect();
        assert_eq!((all.len(), used), (17, vec![(1, 1), (2, 2), (16, 1)]));
    }

    #[test]
    fn a_dropped_request_is_not_under_way() {
        let stats = Stats::default();
        let (one, two) = (stats.under_way(), stats.under_way());
        assert_eq!(stats.in_flight.load(Relaxed), 2);
        drop((one, two));
        assert_eq!(stats.in_flight.load(Relaxed), 0);
    }
}
