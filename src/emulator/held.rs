//! A container taken for a while: the one way to change what is in it. Each change goes to the rows first, where the store keeps
//! any, and to the memory second.

use super::blob::{Blob, Block, Deleted};
use super::errors::{self as e, Outcome};
use super::rows::Change;
use super::state::{Info, Inner, Model, json, mirrored};
use super::store::Store;
use serde::Serialize;
use std::sync::MutexGuard;

/// What a change does with the uncommitted blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Staged {
    Keep,
    Drop,
}

/// A container that is ours until this is dropped. Reads go to `inner` (through `Deref`), changes through the methods.
pub(crate) struct Held<'a> {
    model: &'a Model,
    account: &'a str,
    name: &'a str,
    inner: MutexGuard<'a, Inner>,
}

impl std::ops::Deref for Held<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl<'a> Held<'a> {
    pub(crate) fn new(model: &'a Model, account: &'a str, name: &'a str, inner: MutexGuard<'a, Inner>) -> Self {
        Held { model, account, name, inner }
    }

    fn mirror(&self, changes: &[Change<'_>]) -> Outcome<()> {
        match &self.model.store {
            Store::Disk(disk) => mirrored(disk.rows.apply(self.account, self.name, changes)),
            Store::Memory | Store::Discard => Ok(()),
        }
    }

    fn on_disk(&self) -> bool {
        matches!(self.model.store, Store::Disk(_))
    }

    /// The state of a row; empty where no rows are kept.
    fn state<T: Serialize>(&self, value: &T) -> Outcome<String> {
        if self.on_disk() { json(value) } else { Ok(String::new()) }
    }

    /// The blob of this name.
    ///
    /// # Errors
    /// 404 `BlobNotFound`, for one with only uncommitted blocks too.
    pub(crate) fn blob(&self, name: &str) -> Outcome<&Blob> {
        match self.inner.blobs.get(name) {
            Some(entry) => entry.live().ok_or_else(|| e::BLOB_NOT_FOUND.into()),
            None => Err(e::BLOB_NOT_FOUND.into()),
        }
    }

    /// The snapshot of this time, deleted for now or not.
    pub(crate) fn any_snapshot(&self, name: &str, snapshot: &str) -> Option<&Blob> {
        self.inner.blobs.get(name)?.snapshots.as_ref()?.get(snapshot)
    }

    /// The snapshot of this time.
    ///
    /// # Errors
    /// 404 `BlobNotFound`.
    pub(crate) fn snapshot(&self, name: &str, snapshot: &str) -> Outcome<&Blob> {
        let found = self.any_snapshot(name, snapshot);
        found.filter(|blob| blob.is_live()).ok_or_else(|| e::BLOB_NOT_FOUND.into())
    }

    /// Replaces the container's properties.
    pub(crate) fn put_info(&mut self, info: Info) -> Outcome<()> {
        self.mirror(&[Change::PutContainer { state: self.state(&info)? }])?;
        self.inner.info = info;
        Ok(())
    }

    /// Puts a blob in place.
    pub(crate) fn put_blob(&mut self, name: &str, blob: Blob, staged: Staged) -> Outcome<()> {
        let put = Change::PutBlob { name, snapshot: "", state: self.state(&blob)? };
        let has_staged = || self.inner.blobs.get(name).is_some_and(|entry| entry.staged.is_some());
        if staged == Staged::Drop && self.on_disk() && has_staged() {
            self.mirror(&[put, Change::DropBlocks { name }])?;
        } else {
            self.mirror(&[put])?;
        }
        // A name more than is needed where there is a blob already is less than looking for it twice where there is none.
        let entry = self.inner.blobs.entry(name.to_owned()).or_default();
        entry.base = Some(Box::new(blob));
        if staged == Staged::Drop {
            entry.staged = None;
        }
        Ok(())
    }

    /// Puts a snapshot in place.
    pub(crate) fn put_snapshot(&mut self, name: &str, snapshot: &str, blob: Blob) -> Outcome<()> {
        self.mirror(&[Change::PutBlob { name, snapshot, state: self.state(&blob)? }])?;
        let entry = self.inner.blobs.entry(name.to_owned()).or_default();
        entry.snapshots.get_or_insert_default().insert(snapshot.to_owned(), blob);
        Ok(())
    }

    /// Adds an uncommitted block, or replaces the one of the same id.
    pub(crate) fn stage(&mut self, name: &str, block: Block) -> Outcome<()> {
        let id = block.id.clone();
        self.mirror(&[Change::PutBlock { name, id: &id, state: self.state(&block)? }])?;
        self.inner.blobs.entry(name.to_owned()).or_default().staged.get_or_insert_default().insert(id, block);
        Ok(())
    }

    /// Removes the blob itself and its uncommitted blocks, and the snapshots named; or marks them as deleted, to be had back.
    pub(crate) fn remove(&mut self, name: &str, base: bool, snapshots: &[String], kept: Option<Deleted>) -> Outcome<()> {
        if kept.is_some() {
            return self.mark(name, base, snapshots, kept);
        }
        let mut changes: Vec<Change<'_>> = snapshots.iter().map(|snapshot| Change::DropBlob { name, snapshot }).collect();
        if base {
            changes.push(Change::DropBlob { name, snapshot: "" });
            changes.push(Change::DropBlocks { name });
        }
        self.mirror(&changes)?;
        let Some(entry) = self.inner.blobs.get_mut(name) else { return Ok(()) };
        if base {
            entry.base = None;
            entry.staged = None;
        }
        if let Some(all) = &mut entry.snapshots {
            all.retain(|time, _| !snapshots.contains(time));
            if all.is_empty() {
                entry.snapshots = None;
            }
        }
        if entry.is_empty() {
            self.inner.blobs.remove(name);
        }
        self.model.reclaim();
        Ok(())
    }

    fn mark(&mut self, name: &str, base: bool, snapshots: &[String], deleted: Option<Deleted>) -> Outcome<()> {
        let marked = |blob: &Blob| {
            let mut blob = blob.clone();
            let facts = blob.facts_mut();
            facts.deleted = deleted;
            facts.lease = None;
            blob
        };
        for time in snapshots {
            let blob = marked(self.snapshot(name, time)?);
            self.put_snapshot(name, time, blob)?;
        }
        match self.blob(name) {
            Ok(blob) if base => {
                let blob = marked(blob);
                self.put_blob(name, blob, Staged::Drop)
            }
            // Uncommitted blocks alone are not kept.
            Err(_) if base => self.remove(name, true, &[], None),
            _ => Ok(()),
        }
    }
}
