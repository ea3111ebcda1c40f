//! An object of known length that is sent in blocks, by as many lanes as are free.
//!
//! Each lane moves the block it claimed; the one whose acknowledgement is the last commits. A block that an earlier try has
//! staged is not sent. Where the commit finds blocks gone (another writer committed meanwhile), those are read and sent again,
//! and it is tried once more. The first block that fails fails the object, once, and its other blocks are not sent any more.
//! What is committed already under that name stays as it was.

use crate::attributes::Replace;
use crate::endpoint::{self, BlockId, Facts, Finish, Reader, Same, Span, Which};
use crate::error::{Error, Kind, Result};
use crate::transfer::attempt::Attempt;
use crate::transfer::block_id::{BlockName, Fingerprint, Trust, Writer};
use crate::transfer::engine::{Done, Shared};
use crate::transfer::md5::Hashing;
use crate::transfer::progress::There;
use crate::transfer::resume::Earlier;
use crate::transfer::staged::{Staged, Total};
use crate::transfer::staging::Staging;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::OnceCell;

/// How often lost blocks are sent again before an object is given up: each time, another writer has committed in between.
const ROUNDS: u32 = 3;

/// How it is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) len: u64,
    pub(super) block_size: u64,
    pub(super) count: u32,
}

pub(super) struct Object {
    attempt: Arc<Attempt>,
    reader: Arc<dyn Reader>,
    cut: Cut,
    staging: Staging,
    earlier: OnceCell<Earlier>,
    staged: Mutex<Staged>,
    hashing: Mutex<Option<Hashing>>,
    content_md5: OnceLock<[u8; 16]>,
    /// Commits that found blocks gone.
    rounds: AtomicU32,
    failed: AtomicBool,
}

impl Object {
    pub(super) fn new(
        attempt: Arc<Attempt>,
        reader: Arc<dyn Reader>,
        cut: Cut,
        replace: Replace,
        shared: &Shared,
    ) -> Result<Self> {
        let Facts { len, modified } = reader.facts();
        let put_md5 = shared.job.tuning.put_md5 && !shared.draws;
        let version = reader.version();
        let trust = match (shared.draws, version) {
            (true, Some(_)) => Trust::Pinned,
            (true, None) => Trust::Unchecked,
            (false, _) => shared.trust(),
        };
        let writer = Writer::new(Fingerprint::new(len, modified, cut.block_size).of_version(version), trust)?;
        Ok(Object {
            staging: Staging::new(writer, replace),
            earlier: OnceCell::new(),
            staged: Mutex::new(Staged::of(Total { count: cut.count, bytes: cut.len })),
            hashing: Mutex::new(put_md5.then(|| Hashing::start(Arc::clone(&reader), cut.len)).transpose()?),
            content_md5: OnceLock::new(),
            rounds: AtomicU32::new(0),
            failed: AtomicBool::new(false),
            attempt,
            reader,
            cut,
        })
    }

    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    pub(super) fn count(&self) -> u32 {
        self.cut.count
    }

    /// What an earlier try has staged. The first to ask sends the request, the others wait for it. The lane that opened the
    /// object asks before it moves a block; the others read theirs and compute its checksum meanwhile, so that the time the
    /// answer takes is not added to that of the first blocks, and no block is sent that is there already.
    pub(super) async fn earlier(&self, shared: &Shared) -> Result<&Earlier> {
        let mut failed = None;
        let ask = async || {
            let (target, source) = (&self.attempt.item().target, self.staging.writer().fingerprint());
            let asked = Earlier::ask(shared, target, &*self.reader, source).await;
            asked.unwrap_or_else(|error| {
                failed = Some(error);
                Earlier::default()
            })
        };
        let earlier = self.earlier.get_or_init(ask).await;
        failed.map_or(Ok(earlier), Err)
    }

    /// Moves one block, and commits if it was the last. `None`: there is nothing to report yet, or it was reported by another
    /// lane.
    pub(super) async fn move_block(self: &Arc<Self>, index: u32, shared: &Shared) -> Option<Result<Done>> {
        let result = match self.put_block(index, shared).await {
            Ok(None) => return None,
            Ok(Some(ids)) => self.finish(ids, shared).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(done) => done.map(Ok),
            Err(error) => self.fail(error, shared).map(Err),
        }
    }

    /// Fails the object; the error to report comes back the first time.
    pub(super) fn fail(&self, error: Error, shared: &Shared) -> Option<Error> {
        let first = !self.failed.swap(true, Ordering::Relaxed);
        // Dropping the hash stops its thread; nobody will ask for it.
        drop(self.hashing.lock().unwrap_or_else(PoisonError::into_inner).take());
        if first {
            shared.job.sink.abandon(&self.attempt.item().target, &*self.reader);
        }
        first.then(|| cause(error, &*self.reader, shared.same()))
    }

    async fn put_block(&self, index: u32, shared: &Shared) -> Result<Option<Vec<BlockId>>> {
        let len = self.len_of(index);
        let span = Span { reader: &*self.reader, offset: u64::from(index) * self.cut.block_size, len };
        let _permit = shared.budget.acquire(if shared.draws { shared.job.sink.holds(len) } else { len }).await;
        if self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let id = if shared.draws { self.drawn(index, span, shared).await? } else { self.read(index, span, shared).await? };
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        staged.enter(index, id, len)?;
        staged.take_complete()
    }

    /// Reads a block and puts it, unless it is there already.
    async fn read(&self, index: u32, span: Span<'_>, shared: &Shared) -> Result<BlockId> {
        let data = span.reader.read(span.offset, span.len).await?;
        if data.len() != span.len {
            let text = format!("{} has become shorter while it was read", self.attempt.item().source);
            return Err(Error::new(Kind::SourceChanged, text));
        }
        let crc64 = data.crc64();
        match self.taken_over(index, Some(crc64), span.len, shared).await? {
            Some(id) => Ok(id),
            None => self.staging.put(&self.attempt, index, data, crc64, shared).await,
        }
    }

    /// Lets the sink draw a block, unless it is there already.
    async fn drawn(&self, index: u32, span: Span<'_>, shared: &Shared) -> Result<BlockId> {
        match self.taken_over(index, None, span.len, shared).await? {
            Some(id) => Ok(id),
            None => self.staging.draw(&self.attempt, index, span, shared).await,
        }
    }

    fn len_of(&self, index: u32) -> u64 {
        self.cut.block_size.min(self.cut.len - u64::from(index) * self.cut.block_size)
    }

    /// The block an earlier try has staged, if it is what ours would be. None once blocks got lost: it may be among them.
    async fn taken_over(&self, index: u32, crc64: Option<u64>, len: u64, shared: &Shared) -> Result<Option<BlockId>> {
        if self.rounds.load(Ordering::Relaxed) > 0 || self.staging.has_cleared() {
            return Ok(None);
        }
        let found = self.earlier(shared).await?.find(index, crc64, len);
        if found.is_some() {
            self.attempt.resumed(len, &shared.progress);
        }
        Ok(found)
    }

    /// Commits; where blocks are gone, gives those back to the lanes and comes to no end yet (`None`).
    async fn finish(self: &Arc<Self>, ids: Vec<BlockId>, shared: &Shared) -> Result<Option<Done>> {
        loop {
            let error = match self.commit(&ids, shared).await {
                Err(error) if error.kind() == Kind::BlocksMissing => error,
                result => return result.map(Some),
            };
            let round = self.rounds.fetch_add(1, Ordering::Relaxed);
            if round == ROUNDS {
                return Err(error);
            }
            let gone = match shared.job.sink.blocks(&self.attempt.item().target, Which::All, &*self.reader).await {
                Ok(there) => self.gone(&ids, &there),
                // Who may not look sends all of it again, but only once.
                Err(_) if round == 0 => (0..self.cut.count).collect(),
                Err(_) => return Err(error),
            };
            if gone.is_empty() {
                continue;
            }
            tracing::debug!(blocks = gone.len(), "blocks of {} got lost and are sent again", self.attempt.item().source);
            self.uncount(&ids, &gone, shared);
            self.staged.lock().unwrap_or_else(PoisonError::into_inner).reopen(ids, &gone, |index| self.len_of(index));
            shared.queue.give_back(Arc::clone(self), gone);
            return Ok(None);
        }
    }

    /// Indices of the blocks that are not there.
    fn gone(&self, ids: &[BlockId], there: &[endpoint::There]) -> Vec<u32> {
        let there: HashSet<(BlockId, u64)> = there.iter().map(|block| (block.id, block.len)).collect();
        let indices = (0u32..).zip(ids);
        indices.filter(|(index, id)| !there.contains(&(**id, self.len_of(*index)))).map(|(index, _)| index).collect()
    }

    /// Takes lost blocks out of the counts of bytes, to be counted when they are sent again.
    fn uncount(&self, ids: &[BlockId], gone: &[u32], shared: &Shared) {
        let mut lost = There::default();
        for &index in gone {
            let id = usize::try_from(index).ok().and_then(|at| ids.get(at));
            let ours = id.and_then(|id| BlockName::parse(&id.0)).is_some_and(|name| self.staging.writer().wrote(&name));
            if ours {
                lost.sent += self.len_of(index);
            } else {
                lost.resumed += self.len_of(index);
                lost.blocks_resumed += 1;
            }
        }
        self.attempt.lost(lost, &shared.progress);
    }

    async fn commit(&self, ids: &[BlockId], shared: &Shared) -> Result<Done> {
        let hashing = self.hashing.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(hashing) = hashing {
            let hash = hashing.finish().await?;
            self.content_md5.get_or_init(|| hash);
        }
        let content_md5 = self.content_md5.get().copied();
        self.reader.check_unchanged(shared.same())?;
        let (sink, target) = (&shared.job.sink, &self.attempt.item().target);
        let source = Some(&*self.reader);
        let commit = |replace| sink.commit(target, ids, Finish { content_md5, replace, source });
        Ok(shared.gate.write(target, self.staging.replace(), commit).await?.count(&self.attempt, self.cut.len))
    }
}

/// The error to report: where the source has changed under a transfer, that is why it failed, whatever it failed with (bytes
/// that differ from their checksum, a mapping that ends early).
pub(super) fn cause(error: Error, reader: &dyn Reader, same: Same) -> Error {
    if error.ends_job() {
        return error;
    }
    match reader.check_unchanged(same) {
        Err(changed) if changed.kind() == Kind::SourceChanged => changed,
        _ => error,
    }
}
