//! A source whose reading is timed, for whoever wants to know whether it holds a run up. Hands everything through as it is.

use crate::attributes::Attributes;
use crate::chunks::Chunks;
use crate::endpoint::{Facts, Flow, Item, Listing, Pour, Reader, Receipt, Same, Source, Task};
use crate::error::Result;
use crate::rest::from_url::Link;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// See the module's text.
pub struct Timed {
    inner: Arc<dyn Source>,
    reading_ns: Arc<AtomicU64>,
}

impl Timed {
    /// Adds to `reading_ns` the nanoseconds that opening and reading take, of all lanes together.
    pub fn new(inner: Arc<dyn Source>, reading_ns: Arc<AtomicU64>) -> Self {
        Timed { inner, reading_ns }
    }
}

struct TimedReader {
    inner: Box<dyn Reader>,
    reading_ns: Arc<AtomicU64>,
}

async fn timed<T>(reading_ns: &AtomicU64, work: Task<'_, T>) -> T {
    let since = Instant::now();
    let done = work.await;
    reading_ns.fetch_add(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
    done
}

impl Source for Timed {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        self.inner.list(out)
    }

    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let inner = timed(&self.reading_ns, self.inner.open(item)).await?;
            Ok(Box::new(TimedReader { inner, reading_ns: Arc::clone(&self.reading_ns) }) as Box<dyn Reader>)
        })
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn flow(&self) -> Option<Flow> {
        self.inner.flow()
    }
}

impl Reader for TimedReader {
    fn facts(&self) -> Facts {
        self.inner.facts()
    }

    fn read<'a>(&'a self, offset: u64, len: u64) -> Task<'a, Result<Chunks>> {
        Box::pin(timed(&self.reading_ns, self.inner.read(offset, len)))
    }

    fn check_unchanged(&self, same: Same) -> Result<()> {
        self.inner.check_unchanged(same)
    }

    fn version(&self) -> Option<&str> {
        self.inner.version()
    }

    fn carried(&self) -> Option<&Attributes> {
        self.inner.carried()
    }

    fn link(&self) -> Result<Option<Link>> {
        self.inner.link()
    }

    fn pour<'a>(&'a self, offset: u64, len: u64, into: &'a mut dyn Pour) -> Task<'a, Result<Receipt>> {
        Box::pin(timed(&self.reading_ns, self.inner.pour(offset, len, into)))
    }
}
