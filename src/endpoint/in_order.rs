//! An object read from its beginning to its end, for whoever needs the bytes in order (a pipe, a hash): blocks are fetched ahead,
//! side by side, and handed on one after the other.

use crate::chunks::Chunks;
use crate::endpoint::Reader;
use crate::error::{Error, Kind, Result};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// How it is read.
#[derive(Debug, Clone, Copy)]
pub struct Ahead {
    /// Bytes a block.
    pub block: u64,
    /// Blocks at a time, in memory or on their way.
    pub blocks: NonZeroUsize,
}

/// Blocks on their way; those not taken are dropped with it.
struct Coming(VecDeque<JoinHandle<Result<Chunks>>>);

impl Drop for Coming {
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
    let mut coming = Coming(VecDeque::with_capacity(ahead.blocks.get()));
    let mut next = span.start;
    loop {
        while coming.0.len() < ahead.blocks.get() && next < span.end {
            let len = ahead.block.max(1).min(span.end - next);
            let (reader, offset) = (Arc::clone(&reader), next);
            coming.0.push_back(tokio::spawn(async move { reader.read(offset, len).await }));
            next += len;
        }
        let Some(first) = coming.0.front_mut() else { return Ok(()) };
        let data = first.await.map_err(|e| Error::new(Kind::Cancelled, "reading was stopped").with_source(e))??;
        coming.0.pop_front();
        if !each(data)? {
            return Ok(());
        }
    }
}
