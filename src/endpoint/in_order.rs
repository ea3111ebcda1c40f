//! An object read from its beginning to its end, for whoever needs the bytes in order (a pipe, a hash): blocks are fetched ahead,
//! side by side, and handed on one after the other.

use crate::chunks::Chunks;
use crate::endpoint::Reader;
use crate::error::{Error, Kind, Result};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use tokio::task::{JoinError, JoinHandle};

/// How it is read.
#[derive(Debug, Clone, Copy)]
pub struct Ahead {
    /// Bytes a block.
    pub block: u64,
    /// Blocks at a time, in memory or on their way.
    pub blocks: NonZeroUsize,
}

/// Work under way whose results are taken in the order it was begun in; what is not taken is stopped with it.
pub(crate) struct Coming<T>(VecDeque<JoinHandle<T>>);

impl<T> Coming<T> {
    /// With nothing under way, and room for some.
    pub(crate) fn with_capacity(room: usize) -> Coming<T> {
        Coming(VecDeque::with_capacity(room))
    }

    /// How much is under way, or done and not taken.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts work last in turn.
    pub(crate) fn push(&mut self, work: JoinHandle<T>) {
        self.0.push_back(work);
    }

    /// Waits for what is first in turn; `None` where there is nothing. Cancel-safe.
    ///
    /// # Errors
    /// Where the work broke.
    pub(crate) async fn next(&mut self) -> Option<Result<T, JoinError>> {
        let first = self.0.front_mut()?.await;
        self.0.pop_front();
        Some(first)
    }
}

impl<T> Drop for Coming<T> {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Reads the bytes of `span` and hands them to `each` in order; ends early where that returns `false`.
///
/// # Errors
/// Those of the reader, and of `each`.
pub async fn in_order(
    reader: Arc<dyn Reader>,
    span: Range<u64>,
    ahead: Ahead,
    mut each: impl FnMut(Chunks) -> Result<bool>,
) -> Result<()> {
    let mut coming = Coming::with_capacity(ahead.blocks.get());
    let mut next = span.start;
    loop {
        while coming.len() < ahead.blocks.get() && next < span.end {
            let len = ahead.block.max(1).min(span.end - next);
            let (reader, offset) = (Arc::clone(&reader), next);
            coming.push(tokio::spawn(async move { reader.read(offset, len).await }));
            next += len;
        }
        let Some(first) = coming.next().await else { return Ok(()) };
        let data = first.map_err(|e| Error::new(Kind::Cancelled, "reading was stopped").with_source(e))??;
        if !each(data)? {
            return Ok(());
        }
    }
}
