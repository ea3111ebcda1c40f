//! Staging the blocks of one object where something may be in the way: what another program staged under the same name and
//! never committed.
//!
//! The service takes no block whose id is longer or shorter than those already staged under a name, and no more than 100,000 of
//! them. The first lane that meets this has the sink discard what is staged, once an object; the others wait for it and then
//! send their block again. All that happens in the lanes and with the memory they have: nothing more is asked of the budget.

use crate::attributes::Replace;
use crate::chunks::Chunks;
use crate::endpoint::{BlockId, Payload, Receipt, Span, Task};
use crate::error::{Error, Kind, Result};
use crate::transfer::attempt::Attempt;
use crate::transfer::block_id::Writer;
use crate::transfer::engine::Shared;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A block that is being staged.
#[derive(Clone, Copy)]
struct Block {
    index: u32,
    id: BlockId,
    len: u64,
}

pub(super) struct Staging {
    writer: Writer,
    replace: Replace,
    /// Whether leftovers could be discarded, or why not; not set before any were met.
    cleared: OnceCell<Result<(), Arc<Error>>>,
}

impl Staging {
    /// For an object whose commit carries this condition.
    pub(super) fn new(writer: Writer, replace: Replace) -> Self {
        Staging { writer, replace, cleared: OnceCell::new() }
    }

    pub(super) fn writer(&self) -> &Writer {
        &self.writer
    }

    pub(super) fn replace(&self) -> Replace {
        self.replace
    }

    /// Whether what was staged before has been discarded, so that there is nothing to take over any more.
    pub(super) fn has_cleared(&self) -> bool {
        matches!(self.cleared.get(), Some(Ok(())))
    }

    /// Stages one block under a name of its own; its bytes count once they are acknowledged.
    pub(super) async fn put(&self, attempt: &Attempt, index: u32, data: Chunks, crc64: u64, shared: &Shared) -> Result<BlockId> {
        let (target, len) = (&attempt.item().target, data.len());
        let id = self.writer.block(index, crc64).build();
        let payload = Payload { data, crc64 };
        self.stage(attempt, Block { index, id, len }, shared, || shared.job.sink.put_block(target, id, payload.clone())).await
    }

    /// Lets the sink draw one block.
    pub(super) async fn draw(&self, attempt: &Attempt, index: u32, span: Span<'_>, shared: &Shared) -> Result<BlockId> {
        let target = &attempt.item().target;
        let id = self.writer.block(index, 0).build();
        let block = Block { index, id, len: span.len };
        self.stage(attempt, block, shared, || shared.job.sink.draw_block(target, id, span)).await
    }

    async fn stage<'a, P>(&self, attempt: &Attempt, block: Block, shared: &Shared, put: P) -> Result<BlockId>
    where
        P: Fn() -> Task<'a, Result<Receipt>>,
    {
        let Block { index, id, len } = block;
        let result = match put().await {
            Err(error) if error.kind() == Kind::Leftovers => {
                self.clear(attempt, error, shared).await?;
                put().await
            }
            result => result,
        };
        let receipt = result.map_err(|e| e.context(format!("cannot move block {index} of {}", attempt.item().source)))?;
        attempt.count(receipt);
        attempt.sent(len, &shared.progress);
        Ok(id)
    }

    /// Makes room, or says why there is none: to each lane that met it, as any of them may be the one that reports.
    async fn clear(&self, attempt: &Attempt, met: Error, shared: &Shared) -> Result<()> {
        let item = attempt.item();
        let clear = async || {
            shared.job.sink.clear(&item.target, self.replace).await.map_err(Arc::new)?;
            shared.progress.cleared();
            tracing::info!("discarded what another program had staged under {}", shared.job.sink.describe(&item.target));
            Ok(())
        };
        let Err(why_not) = self.cleared.get_or_init(clear).await else { return Ok(()) };
        // Kind and answer are those of what was met: that the way out is barred does not bar it for other objects.
        let mut error = Error::new(Kind::Leftovers, format!("cannot stage blocks for {}", item.source));
        if let Some(answer) = met.answer() {
            error = error.with_answer(answer.clone());
        }
        if let Some(advice) = why_not.advice() {
            error = error.with_advice(advice.to_owned());
        }
        Err(error.with_source(Arc::clone(why_not)))
    }
}
