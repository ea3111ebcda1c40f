//! An object of known length that is sent in blocks, by as many lanes as are free.
//!
//! Each lane moves the block it claimed; the one whose acknowledgement is the last commits. The first block that fails fails the
//! object, once, and its other blocks are not sent any more. What is committed already under that name stays as it was.

use crate::attributes::Replace;
use crate::endpoint::{Facts, Finish, Reader, Same};
use crate::error::{Error, Kind, Result};
use crate::transfer::attempt::Attempt;
use crate::transfer::block_id::Writer;
use crate::transfer::engine::{Done, Shared};
use crate::transfer::md5::Hashing;
use crate::transfer::overwrite::Written;
use crate::transfer::staged::{Staged, Total};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    writer: Writer,
    replace: Replace,
    staged: Mutex<Staged>,
    hashing: Mutex<Option<Hashing>>,
    failed: AtomicBool,
}

impl Object {
    pub(super) fn new(attempt: Arc<Attempt>, reader: Arc<dyn Reader>, cut: Cut, replace: Replace, put_md5: bool) -> Result<Self> {
        let Facts { len, modified } = reader.facts();
        Ok(Object {
            writer: Writer::new(len, modified, cut.block_size)?,
            staged: Mutex::new(Staged::of(Total { count: cut.count, bytes: cut.len })),
            hashing: Mutex::new(put_md5.then(|| Hashing::start(Arc::clone(&reader), cut.len))),
            failed: AtomicBool::new(false),
            attempt,
            reader,
            cut,
            replace,
        })
    }

    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    pub(super) fn count(&self) -> u32 {
        self.cut.count
    }

    /// Moves one block, and commits if it was the last. `None`: there is nothing to report yet, or it was reported by another
    /// lane.
    pub(super) async fn move_block(&self, index: u32, shared: &Shared) -> Option<Result<Done>> {
        let result = match self.put_block(index, shared).await {
            Ok(None) => return None,
            Ok(Some(ids)) => self.commit(&ids, shared).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(done) => Some(Ok(done)),
            Err(error) => {
                let first = !self.failed.swap(true, Ordering::Relaxed);
                // Dropping the hash stops its thread; nobody will ask for it.
                drop(self.hashing.lock().unwrap_or_else(PoisonError::into_inner).take());
                first.then(|| Err(cause(error, &*self.reader, shared.same())))
            }
        }
    }

    async fn put_block(&self, index: u32, shared: &Shared) -> Result<Option<Vec<crate::endpoint::BlockId>>> {
        let offset = u64::from(index) * self.cut.block_size;
        let len = self.cut.block_size.min(self.cut.len - offset);
        let _permit = shared.budget.acquire(len).await;
        if self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let data = self.reader.read(offset, len).await?;
        if data.len() != len {
            return Err(Error::new(
                Kind::SourceChanged,
                format!("{} has become shorter while it was read", self.attempt.item().source),
            ));
        }
        let id = shared.stage_block(&self.attempt, &self.writer, index, data).await?;
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        staged.enter(index, id, len)?;
        staged.take_complete()
    }

    async fn commit(&self, ids: &[crate::endpoint::BlockId], shared: &Shared) -> Result<Done> {
        let hashing = self.hashing.lock().unwrap_or_else(PoisonError::into_inner).take();
        let content_md5 = match hashing {
            Some(hashing) => Some(hashing.finish().await?),
            None => None,
        };
        self.reader.check_unchanged(shared.same())?;
        let (sink, target) = (&shared.job.sink, &self.attempt.item().target);
        let commit = |replace| sink.commit(target, ids, Finish { content_md5, replace });
        Ok(match shared.gate.write(target, self.replace, commit).await? {
            Written::Done(receipt) => {
                self.attempt.count(receipt);
                Done::Moved(self.cut.len)
            }
            Written::Skipped(reason) => Done::Skipped(reason),
        })
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
