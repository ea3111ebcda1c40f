//! A cap on the rate of sending, shared by all requests of a client (`--cap-mbps`).
//!
//! Bodies go out in slices that are short against the cap, and each slice is booked in one queue of virtual time: it may leave
//! when those booked before it have had their share. So the cap holds also where a block is larger than a second's allowance,
//! and many requests share it evenly. What goes on the wire counts: heads, and what is sent again; only the framing of TLS, 0.2 %,
//! does not.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Unused time that may be made up for: covers late timers, and is 1 % of the ten seconds over which the cap is judged.
const CATCH_UP: Duration = Duration::from_millis(100);

/// How long one slice takes at the cap.
const SLICE_MS: u64 = 20;

/// The cap.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_s: NonZeroU64,
    /// When everything booked so far will have gone out.
    booked_until: Mutex<Option<Instant>>,
}

impl Pace {
    /// A cap in bits per second; below 8 bits per second it is 8.
    pub(crate) fn new(bits_per_s: u64) -> Pace {
        Pace { bytes_per_s: NonZeroU64::new(bits_per_s / 8).unwrap_or(NonZeroU64::MIN), booked_until: Mutex::new(None) }
    }

    /// Largest slice to send at once, bytes.
    pub(crate) fn slice(&self) -> usize {
        let bytes = (self.bytes_per_s.get() / (1000 / SLICE_MS)).clamp(512, 256 * 1024);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Books `bytes` and says when they may leave.
    pub(crate) fn book(&self, bytes: usize, now: Instant) -> Instant {
        let bytes = u128::try_from(bytes).unwrap_or(u128::MAX);
        let nanos = bytes * 1_000_000_000 / u128::from(self.bytes_per_s.get());
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut booked_until = self.booked_until.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
        let starts = booked_until.map_or(now, |booked| booked.max(earliest));
        *booked_until = Some(starts + takes);
        starts.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Sends blocks of `block` bytes from several tasks for `seconds`, each slice when the pace lets it, with timers that are up
    /// to a millisecond late as tokio's are.
    async fn sent_in(bits_per_s: u64, block: usize, tasks: usize, seconds: u64) -> u64 {
        let pace = Arc::new(Pace::new(bits_per_s));
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..tasks {
            let pace = pace.clone();
            all.spawn(async move {
                let mut sent = 0;
                loop {
                    let mut left = block;
                    while left > 0 {
                        let slice = left.min(pace.slice());
                        tokio::time::sleep_until(pace.book(slice, Instant::now())).await;
                        if Instant::now() >= until {
                            return sent;
                        }
                        sent += u64::try_from(slice).unwrap();
                        left -= slice;
                    }
                }
            });
        }
        all.join_all().await.into_iter().sum()
    }

    // semantics 48
    #[tokio::test(start_paused = true)]
    async fn ten_seconds_are_within_five_percent_of_the_cap() {
        for mbit in [1, 8, 80, 800] {
            for (block, tasks) in [(8 << 20, 1), (8 << 20, 32), (64 << 20, 4), (4096, 8)] {
                let bits = mbit * 1_000_000;
                let sent = sent_in(bits, block, tasks, 10).await * 8;
                let (low, high) = (bits * 10 * 95 / 100, bits * 10 * 105 / 100);
                assert!((low..=high).contains(&sent), "{mbit} Mbit/s, {tasks} tasks of {block}: {sent}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_no_burst_at_the_start() {
        for (bits, block, tasks) in [(1_000_000, 8 << 20, 64), (80_000_000, 4096, 256), (800_000_000, 64 << 20, 64)] {
            let sent = sent_in(bits, block, tasks, 1).await * 8;
            assert!(sent <= bits * 105 / 100, "{bits} bit/s, {tasks} tasks of {block}: {sent} in the first second");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_not_made_up_for() {
        let pace = Pace::new(8_000_000);
        let start = Instant::now();
        pace.book(1_000_000, start);
        let later = start + Duration::from_secs(60);
        assert_eq!(pace.book(100_000, later), later);
        assert_eq!(pace.book(100_000, later), later);
        assert!(pace.book(1, later) > later - Duration::from_millis(1));
        pace.book(100_000, later);
        assert!(pace.book(1, later) >= later + Duration::from_millis(199));
    }
}
