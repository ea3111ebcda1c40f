//! What is remembered of single objects, in bounded memory: a histogram of their sizes, and which took longest.
//!
//! Told of each object as it ends, from any task: an object costs two additions, and the lock is taken only for one that is among
//! the slowest so far.

use super::record::{SizeBucket, Slow};
use crate::transfer::progress::{Event, Observer, Outcome};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Objects named as the slowest.
const SLOWEST: usize = 20;

/// Upper edges: nothing, 1 KiB, then four times as much each, up to 256 TiB, which no blob reaches.
const EDGES: usize = 21;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    counts: [AtomicU64; EDGES],
    bytes: [AtomicU64; EDGES],
    /// Nanoseconds an object has to have taken to be among the slowest. Only grows; orders nothing, as the lock decides.
    least: AtomicU64,
    slowest: Mutex<Vec<Slow>>,
}

/// Upper edge of a bucket, bytes.
fn edge(index: usize) -> u64 {
    match u32::try_from(index) {
        Ok(0) | Err(_) => 0,
        Ok(index) => 1024u64.saturating_mul(4u64.saturating_pow(index - 1)),
    }
}

fn bucket(bytes: u64) -> usize {
    (0..EDGES).find(|index| bytes <= edge(*index)).unwrap_or(EDGES - 1)
}

impl Objects {
    fn count(&self, bytes: u64) {
        let bucket = bucket(bytes);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.bytes[bucket].fetch_add(bytes, Relaxed);
    }

    fn slow(&self, took: Duration, slow: impl FnOnce() -> Slow) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if nanos <= self.least.load(Relaxed) {
            return;
        }
        let mut slowest = self.slowest.lock().unwrap_or_else(PoisonError::into_inner);
        let slow = slow();
        let at = slowest.partition_point(|other| other.seconds >= slow.seconds);
        slowest.insert(at, slow);
        slowest.truncate(SLOWEST);
        if let (SLOWEST, Some(last)) = (slowest.len(), slowest.last()) {
            let least = u64::try_from(Duration::from_secs_f64(last.seconds).as_nanos()).unwrap_or(u64::MAX);
            self.least.store(least, Relaxed);
        }
    }

    /// The sizes of what is done, from the first bucket with something in it to the last.
    pub(crate) fn sizes(&self) -> Vec<SizeBucket> {
        let all: Vec<SizeBucket> = (0..EDGES)
            .map(|index| SizeBucket {
                above: index.checked_sub(1).map(edge),
                up_to: edge(index),
                count: self.counts[index].load(Relaxed),
                bytes: self.bytes[index].load(Relaxed),
            })
            .collect();
        let used = |bucket: &SizeBucket| bucket.count > 0;
        match (all.iter().position(used), all.iter().rposition(used)) {
            (Some(first), Some(last)) => all[first..=last].to_vec(),
            _ => Vec::new(),
        }
    }

    /// The slowest, slowest first.
    pub(crate) fn slowest(&self) -> Vec<Slow> {
        self.slowest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Objects {
    fn ended(&self, event: Event<'_>) {
        let course = event.course;
        let (bytes, failed) = match event.outcome {
            Outcome::Done { bytes } => (bytes, false),
            Outcome::Failed(_) => (course.facts.and_then(|facts| facts.len).unwrap_or(0), true),
            Outcome::Skipped(_) => return,
        };
        if !failed {
            self.count(bytes);
        }
        // A clock that was set back meanwhile says nothing about how long it took.
        if let Some(took) = course.started.and_then(|started| event.finished.duration_since(started).ok()) {
            let retries = course.retries;
            self.slow(took, || Slow { object: event.source.to_owned(), bytes, seconds: took.as_secs_f64(), retries, failed });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_where_they_belong() {
        for (bytes, bucket_of) in
            [(0, 0), (1, 1), (1024, 1), (1025, 2), (4096, 2), (4097, 3), (1 << 30, 11), (u64::MAX, EDGES - 1)]
        {
            assert_eq!(bucket(bytes), bucket_of, "{bytes}");
        }
        let objects = Objects::default();
        [0, 3000, 4096, 70_000].into_iter().for_each(|bytes| objects.count(bytes));
        let sizes = objects.sizes();
        let seen: Vec<_> = sizes.iter().map(|b| (b.above, b.up_to, b.count, b.bytes)).collect();
        assert_eq!(seen[0], (None, 0, 1, 0));
        assert_eq!(seen[2], (Some(1024), 4096, 2, 7096));
        assert_eq!(*seen.last().unwrap(), (Some(65_536), 262_144, 1, 70_000));
        assert!(Objects::default().sizes().is_empty());
    }

    #[test]
    fn the_slowest_are_kept_in_order_and_bounded() {
        let objects = Objects::default();
        for ms in (0..1000).map(|i| i * 7 % 1000) {
            let took = Duration::from_millis(ms + 1);
            let slow = Slow { object: ms.to_string(), bytes: 1, seconds: took.as_secs_f64(), retries: 0, failed: false };
            objects.slow(took, || slow);
        }
        let names: Vec<String> = objects.slowest().into_iter().map(|slow| slow.object).collect();
        assert_eq!(names, (980..1000).rev().map(|ms| ms.to_string()).collect::<Vec<_>>());
    }
}
