//! An object whose length is not known until it ends: a pipe.
//!
//! Blocks are read in order, one lane at a time, and sent side by side. Their size grows with their number
//! ([`stream_block`]), so that a stream of any length fits. One that ends within its first block goes in one request.

use crate::attributes::Replace;
use crate::chunks::Chunks;
use crate::endpoint::{BlockId, Finish, Reader};
use crate::error::{Error, Kind, Result};
use crate::transfer::attempt::Attempt;
use crate::transfer::block_id::{Fingerprint, Writer};
use crate::transfer::budget::Permit;
use crate::transfer::engine::{Done, Shared};
use crate::transfer::md5;
use crate::transfer::plan::stream_block;
use crate::transfer::staged::{Staged, Total};
use crate::transfer::staging::Staging;
use crate::transfer::stop::Phase;
use crate::units::ByteCount;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where reading stands.
#[derive(Default)]
struct Turn {
    /// Bytes read, `ahead` included.
    offset: u64,
    /// Index of the next block.
    index: u32,
    /// One byte read ahead of the next block, to know whether there is one.
    ahead: Chunks,
    ended: bool,
    hash: Option<md5::Running>,
}

/// A block as read, with the permit for its memory.
pub(super) struct Block {
    index: u32,
    data: Chunks,
    permit: Permit,
    /// The stream ends with it.
    last: bool,
}

pub(super) struct Stream {
    attempt: Arc<Attempt>,
    reader: Arc<dyn Reader>,
    staging: Staging,
    turn: tokio::sync::Mutex<Turn>,
    staged: Mutex<Staged>,
    hash: Mutex<Option<[u8; 16]>>,
    failed: AtomicBool,
}

impl Stream {
    pub(super) fn new(attempt: Arc<Attempt>, reader: Arc<dyn Reader>, replace: Replace, shared: &Shared) -> Result<Self> {
        let hash = shared.job.tuning.put_md5.then(md5::Running::default);
        let fingerprint = Fingerprint::new(None, reader.facts().modified, shared.job.tuning.block_size);
        Ok(Stream {
            staging: Staging::new(Writer::new(fingerprint, shared.trust())?, replace),
            turn: tokio::sync::Mutex::new(Turn { hash, ..Turn::default() }),
            staged: Mutex::default(),
            hash: Mutex::default(),
            failed: AtomicBool::new(false),
            attempt,
            reader,
        })
    }

    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    pub(super) fn reader(&self) -> &dyn Reader {
        &*self.reader
    }

    pub(super) fn replace(&self) -> Replace {
        self.staging.replace()
    }

    /// Reads the next block; `None` after the last one, after a failure, and once the job is told to stop: a pipe may never
    /// say another word.
    pub(super) async fn read(&self, shared: &Shared) -> Result<Option<Block>> {
        let mut stop = shared.stop.clone();
        tokio::select! {
            biased;
            () = stop.reached(Phase::Drain) => Ok(None),
            block = self.read_block(shared) => block,
        }
    }

    async fn read_block(&self, shared: &Shared) -> Result<Option<Block>> {
        let mut turn = self.turn.lock().await;
        if turn.ended || self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (tuning, limits) = (&shared.job.tuning, &shared.limits);
        let size = stream_block(turn.index, tuning, limits).ok_or_else(|| {
            let sent = ByteCount(turn.offset);
            let text = format!("{} goes on after {sent}, and {} blocks are allowed", self.attempt.item().source, limits.blocks);
            Error::new(Kind::TooLarge, text).with_advice("use a larger --block-size-mb, or more --memory")
        })?;
        let permit = shared.budget.acquire(size).await;
        let mut data = std::mem::take(&mut turn.ahead);
        let wanted = size - data.len();
        let more = self.reader.read(turn.offset, wanted).await?;
        turn.ended = more.len() < wanted;
        turn.offset += more.len();
        more.iter().for_each(|piece| data.push(piece.clone()));
        if let Some(hash) = turn.hash.take() {
            turn.hash = Some(hash.fed(&data).await?);
        }
        self.attempt.known(data.len(), &shared.progress);
        if !turn.ended {
            turn.ahead = self.reader.read(turn.offset, 1).await?;
            turn.offset += turn.ahead.len();
            turn.ended = turn.ahead.is_empty();
        }
        let index = turn.index;
        turn.index += 1;
        if turn.ended {
            *self.hash.lock().unwrap_or_else(PoisonError::into_inner) = turn.hash.take().map(md5::Running::finish);
            let total = Total { count: turn.index, bytes: turn.offset };
            self.staged.lock().unwrap_or_else(PoisonError::into_inner).ends_at(total);
        }
        Ok(Some(Block { index, data, permit, last: turn.ended }))
    }

    /// Sends a block, and commits if it was the last to be acknowledged. `None` as for an object's block.
    pub(super) async fn move_block(&self, block: Block, shared: &Shared) -> Option<Result<Done>> {
        let result = match self.put_block(block, shared).await {
            Ok(None) => return None,
            Ok(Some(ids)) => self.commit(&ids, shared).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(done) => Some(Ok(done)),
            Err(error) => self.fail(error).map(Err),
        }
    }

    /// Fails the stream; the error comes back the first time.
    pub(super) fn fail(&self, error: Error) -> Option<Error> {
        (!self.failed.swap(true, Ordering::Relaxed)).then_some(error)
    }

    async fn put_block(&self, block: Block, shared: &Shared) -> Result<Option<Vec<BlockId>>> {
        let Block { index, data, permit: _permit, .. } = block;
        if self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let len = data.len();
        let crc64 = data.crc64();
        let id = self.staging.put(&self.attempt, index, data, crc64, shared).await?;
        self.attempt.add_blocks(1);
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        staged.enter(index, id, len)?;
        staged.take_complete()
    }

    async fn commit(&self, ids: &[BlockId], shared: &Shared) -> Result<Done> {
        self.reader.check_unchanged(shared.same())?;
        let content_md5 = self.content_md5();
        let bytes = self.turn.lock().await.offset;
        let (sink, target) = (&shared.job.sink, &self.attempt.item().target);
        let commit = |replace| sink.commit(target, ids, Finish { content_md5, replace, source: Some(&*self.reader) });
        Ok(shared.gate.write(target, self.staging.replace(), commit).await?.count(&self.attempt, bytes))
    }

    /// The hash over all of it; there once the last block was read, and if it was asked for.
    pub(super) fn content_md5(&self) -> Option<[u8; 16]> {
        *self.hash.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Block {
    /// The bytes and their permit, if they are the whole stream.
    pub(super) fn into_whole(self, limit: u64) -> std::result::Result<(Chunks, Permit), Block> {
        if self.index == 0 && self.last && self.data.len() <= limit { Ok((self.data, self.permit)) } else { Err(self) }
    }

    pub(super) fn is_last(&self) -> bool {
        self.last
    }
}
