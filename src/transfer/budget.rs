//! Memory in flight, in bytes: the permit is taken before a block is read, so what is in memory is what the budget says.
//!
//! Who waits is served in order, so a large block is never starved by small ones. A block larger than the whole budget is
//! let through alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The semaphore counts in pages: its permits are `u32` a call, which in bytes would end at 4 GiB.
const PAGE: u64 = 4096;

/// The bytes that may be in memory at once.
#[derive(Debug, Clone)]
pub struct Budget {
    pages: Arc<Semaphore>,
    total: u32,
    waited_ns: Arc<AtomicU64>,
}

/// The right to hold some bytes; dropping it gives them back.
#[derive(Debug)]
pub struct Permit(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Budget {
    /// A budget of `bytes`, at least one page.
    pub fn new(bytes: u64) -> Self {
        let total = pages(bytes);
        let permits = usize::try_from(total).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Budget { pages: Arc::new(Semaphore::new(permits)), total, waited_ns: Arc::default() }
    }

    /// Counts there what is spent waiting, nanoseconds of all who wait together.
    #[must_use]
    pub fn counting(self, waited_ns: Arc<AtomicU64>) -> Self {
        Budget { waited_ns, ..self }
    }

    /// Waits until `bytes` may be held. Cancel-safe.
    pub async fn acquire(&self, bytes: u64) -> Permit {
        let wanted = pages(bytes).min(self.total);
        // Cannot push in before those who wait: what is given back is theirs at once.
        if let Ok(permit) = Arc::clone(&self.pages).try_acquire_many_owned(wanted) {
            return Permit(permit);
        }
        let since = Instant::now();
        let permit = Arc::clone(&self.pages).acquire_many_owned(wanted).await;
        self.waited_ns.fetch_add(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
        Permit(permit.expect("the semaphore is never closed"))
    }

    /// All there is, bytes.
    pub fn total(&self) -> u64 {
        u64::from(self.total) * PAGE
    }

    /// Bytes that could be taken now, to the page.
    pub fn free(&self) -> u64 {
        self.pages.available_permits() as u64 * PAGE
    }
}

fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn now<F: Future>(future: F) -> Option<F::Output> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn no_more_than_the_budget_is_out() {
        let budget = Budget::new(3 * PAGE);
        let first = now(budget.acquire(2 * PAGE)).unwrap();
        assert_eq!(budget.free(), PAGE);
        assert!(now(budget.acquire(PAGE + 1)).is_none());
        let _second = now(budget.acquire(1)).unwrap();
        assert_eq!(budget.free(), 0);
        drop(first);
        assert_eq!(budget.free(), 2 * PAGE);
    }

    #[test]
    fn only_waiting_is_counted_as_waiting() {
        let waited = Arc::new(AtomicU64::new(0));
        let budget = Budget::new(PAGE).counting(Arc::clone(&waited));
        let first = now(budget.acquire(PAGE)).unwrap();
        assert_eq!(waited.load(Relaxed), 0);
        let mut second = pin!(budget.acquire(PAGE));
        let mut context = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(second.as_mut().poll(&mut context).is_ready());
        assert!(waited.load(Relaxed) > 0);
    }

    #[test]
    fn a_block_over_the_budget_goes_alone() {
        let budget = Budget::new(2 * PAGE);
        let small = now(budget.acquire(1)).unwrap();
        assert!(now(budget.acquire(1 << 40)).is_none());
        drop(small);
        assert!(now(budget.acquire(1 << 40)).is_some());
    }
}
