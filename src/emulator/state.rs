//! The model: accounts, containers, blobs. One for all storages; what is in a container changes through [`Held`].
//!
//! Locks: the map of containers of an account, and one lock a container. None is held over an `await`. Rows are written first
//! and the memory second, so that no answer tells of what a restart would not know.

use super::blob::{Blob, Block, Facts};
use super::errors::{self as e, Failure, Outcome};
use super::grants::Grants;
use super::held::Held;
use super::lease::Lease;
use super::payload::Payload;
use super::rows::{Change, Row};
use super::store::Store;
use super::time::Ticks;
use crate::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Everything the emulator knows.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) accounts: Vec<Account>,
    pub(crate) store: Store,
    last_tick: AtomicU64,
    /// A few sets of facts that blobs were lately given: most blobs of a container look alike.
    recent: Mutex<Vec<Arc<Facts>>>,
    /// Content of accounts that were not named this time, held so that its segments are not taken for unused.
    unseen: Mutex<Vec<Payload>>,
}

/// A storage account.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) key: Vec<u8>,
    containers: RwLock<BTreeMap<String, Arc<Container>>>,
    /// Names of deleted containers, and when they may be used again. Not kept over a restart.
    fading: Mutex<BTreeMap<String, Ticks>>,
    /// The XML last set as service properties.
    pub(crate) service: Mutex<Service>,
    pub(crate) grants: Grants,
}

/// Service properties: what was set, kept as the elements it came in.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Service {
    /// Element name to its XML.
    pub(crate) parts: BTreeMap<String, String>,
    /// `DefaultServiceVersion`: the version of anonymous requests that name none.
    pub(crate) default_version: Option<String>,
    /// Days of `DeleteRetentionPolicy`, while enabled: deleted blobs are kept.
    pub(crate) keep_deleted_days: Option<u64>,
}

/// A container.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    inner: Mutex<Inner>,
}

/// What is in a container.
#[derive(Debug, Default)]
pub(crate) struct Inner {
    /// Deleted while somebody still had a handle.
    gone: bool,
    pub(crate) info: Info,
    pub(crate) blobs: BTreeMap<String, Entry>,
}

/// Properties of a container.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Info {
    pub(crate) etag: Ticks,
    pub(crate) modified: Ticks,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) access: Access,
    pub(crate) policies: Vec<Policy>,
    pub(crate) lease: Option<Lease>,
}

/// Who may read without credentials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Access {
    #[default]
    Private,
    /// Blobs can be read.
    Blob,
    /// The container can be listed too.
    Container,
}

impl Access {
    /// As in `x-ms-blob-public-access`.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Access::Private => None,
            Access::Blob => Some("blob"),
            Access::Container => Some("container"),
        }
    }
}

/// A stored access policy, as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(crate) id: String,
    pub(crate) start: Option<String>,
    pub(crate) expiry: Option<String>,
    pub(crate) permission: Option<String>,
}

/// All there is under one blob name.
#[expect(clippy::box_collection, reason = "a million entries have neither: a pointer each is less than an empty map")]
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) base: Option<Box<Blob>>,
    /// By snapshot time.
    pub(crate) snapshots: Option<Box<BTreeMap<String, Blob>>>,
    /// Uncommitted blocks by id.
    pub(crate) staged: Option<Box<BTreeMap<Box<str>, Block>>>,
}

impl Entry {
    /// The blob itself, unless it was deleted.
    pub(crate) fn live(&self) -> Option<&Blob> {
        self.base.as_deref().filter(|blob| blob.is_live())
    }

    /// The snapshots that were not deleted.
    pub(crate) fn live_snapshots(&self) -> impl Iterator<Item = (&String, &Blob)> {
        self.snapshots.as_deref().into_iter().flatten().filter(|(_, blob)| blob.is_live())
    }

    /// Whether there is nothing under the name any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.base.is_none() && self.snapshots.is_none() && self.staged.is_none()
    }
}

/// How long a deleted container's name stays taken: at least 30 s ("Delete Container").
const FADING: Ticks = 30 * super::time::SECOND;

impl Model {
    /// Builds the model over a store and reads back what it holds.
    ///
    /// # Errors
    /// [`Kind::Local`]: the store cannot be read, or names files it does not have.
    pub(crate) fn open(accounts: Vec<(String, Vec<u8>)>, store: Store) -> Result<Model> {
        let account = |(name, key)| Account {
            name,
            key,
            containers: RwLock::default(),
            fading: Mutex::default(),
            service: Mutex::default(),
            grants: Grants::default(),
        };
        let accounts = accounts.into_iter().map(account).collect();
        let model = Model { accounts, store, last_tick: AtomicU64::new(0), recent: Mutex::default(), unseen: Mutex::default() };
        if let Store::Disk(disk) = &model.store {
            disk.rows.load(&mut |row| model.restore(row))?;
            disk.reclaim();
        }
        Ok(model)
    }

    /// Takes a row into the model. Rows of accounts that were not named this time stay on disk, unseen.
    fn restore(&self, row: Row) -> Result<()> {
        let (Row::Service { account, .. }
        | Row::Container { account, .. }
        | Row::Blob { account, .. }
        | Row::Block { account, .. }) = &row;
        let account = self.account(account);
        let broken = |what: String| Error::new(Kind::Local, format!("the store's record of {what} is broken"));
        let Store::Disk(disk) = &self.store else { return Ok(()) };
        let find = |number| disk.segment(number);
        match row {
            Row::Service { state, .. } => {
                let Some(account) = account else { return Ok(()) };
                let state = serde_json::from_str(&state).map_err(|e| broken("service properties".to_owned()).with_source(e))?;
                *lock(&account.service) = state;
            }
            Row::Container { name, state, .. } => {
                let Some(account) = account else { return Ok(()) };
                let info: Info = serde_json::from_str(&state).map_err(|e| broken(format!("container {name}")).with_source(e))?;
                self.seen(info.etag);
                let inner = Inner { gone: false, info, blobs: BTreeMap::new() };
                let container = Container { name: name.clone(), inner: Mutex::new(inner) };
                write(&account.containers).insert(name, Arc::new(container));
            }
            Row::Blob { container, name, snapshot, state, .. } => {
                let mut blob: Blob =
                    serde_json::from_str(&state).map_err(|e| broken(format!("blob {container}/{name}")).with_source(e))?;
                if !blob.content.each_payload(&mut |payload| payload.attach(&find)) {
                    return Err(broken(format!("blob {container}/{name}")).with_advice("a segment file of the store is missing"));
                }
                let Some(account) = account else {
                    blob.content.each_payload(&mut |payload| {
                        lock(&self.unseen).push(payload.clone());
                        true
                    });
                    return Ok(());
                };
                self.seen(blob.etag);
                blob.facts = self.share(Arc::unwrap_or_clone(blob.facts));
                let Ok(container) = account.container(&container) else { return Ok(()) };
                let mut inner = lock(&container.inner);
                let entry = inner.blobs.entry(name).or_default();
                if snapshot.is_empty() {
                    entry.base = Some(Box::new(blob));
                } else {
                    entry.snapshots.get_or_insert_default().insert(snapshot, blob);
                }
            }
            Row::Block { container, name, id, state, .. } => {
                let mut block: Block =
                    serde_json::from_str(&state).map_err(|e| broken(format!("a block of {container}/{name}")).with_source(e))?;
                if !block.payload.attach(&find) {
                    return Err(
                        broken(format!("a block of {container}/{name}")).with_advice("a segment file of the store is missing")
                    );
                }
                let Some(account) = account else {
                    lock(&self.unseen).push(block.payload);
                    return Ok(());
                };
                let Ok(container) = account.container(&container) else { return Ok(()) };
                let mut inner = lock(&container.inner);
                inner.blobs.entry(name).or_default().staged.get_or_insert_default().insert(id.into(), block);
            }
        }
        Ok(())
    }

    /// The account of this name.
    pub(crate) fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|a| a.name == name)
    }

    /// A tick no other change has: now, or the next one free.
    pub(crate) fn unique(&self, now: Ticks) -> Ticks {
        // Relaxed: the value itself is all that is shared.
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.last_tick.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(now);
        now.max(last + 1)
    }

    fn seen(&self, tick: Ticks) {
        self.last_tick.fetch_max(tick, Ordering::Relaxed);
    }

    /// The same facts, shared with a recent blob that has equal ones.
    pub(crate) fn share(&self, facts: Facts) -> Arc<Facts> {
        const KEPT: usize = 16;
        let mut recent = lock(&self.recent);
        if let Some(known) = recent.iter().find(|known| ***known == facts) {
            return known.clone();
        }
        let facts = Arc::new(facts);
        if recent.len() == KEPT {
            recent.remove(0);
        }
        recent.push(facts.clone());
        facts
    }

    /// Saves service properties.
    pub(crate) fn put_service(&self, account: &Account, service: Service) -> Outcome<()> {
        let mut held = lock(&account.service);
        if let Store::Disk(disk) = &self.store {
            mirrored(disk.rows.apply(&account.name, "", &[Change::PutService { state: json(&service)? }]))?;
        }
        *held = service;
        Ok(())
    }

    /// Makes a container.
    ///
    /// # Errors
    /// 409: it is there, or was deleted less than 30 s ago.
    pub(crate) fn create_container(&self, account: &Account, name: &str, info: Info, now: Ticks) -> Outcome<()> {
        let mut containers = write(&account.containers);
        if containers.contains_key(name) {
            return Err(e::CONTAINER_EXISTS.into());
        }
        let mut fading = lock(&account.fading);
        fading.retain(|_, until| *until > now);
        if fading.contains_key(name) {
            return Err(e::CONTAINER_BEING_DELETED.into());
        }
        if let Store::Disk(disk) = &self.store {
            mirrored(disk.rows.apply(&account.name, name, &[Change::PutContainer { state: json(&info)? }]))?;
        }
        let inner = Inner { gone: false, info, blobs: BTreeMap::new() };
        containers.insert(name.to_owned(), Arc::new(Container { name: name.to_owned(), inner: Mutex::new(inner) }));
        Ok(())
    }

    /// Deletes a container with all in it, if `check` lets it. One that is still fading can be deleted again [R].
    ///
    /// # Errors
    /// 404, or what `check` says.
    pub(crate) fn delete_container(
        &self,
        account: &Account,
        name: &str,
        now: Ticks,
        check: &dyn Fn(&Info) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut containers = write(&account.containers);
        let Some(container) = containers.get(name).cloned() else {
            let fading = lock(&account.fading).get(name).is_some_and(|until| *until > now);
            return if fading { Ok(()) } else { Err(e::CONTAINER_NOT_FOUND.into()) };
        };
        let mut inner = lock(&container.inner);
        check(&inner.info)?;
        if let Store::Disk(disk) = &self.store {
            mirrored(disk.rows.apply(&account.name, name, &[Change::DropContainer]))?;
        }
        inner.gone = true;
        inner.blobs.clear();
        containers.remove(name);
        lock(&account.fading).insert(name.to_owned(), now + FADING);
        drop((inner, containers));
        self.reclaim();
        Ok(())
    }

    /// Gives space back that nothing needs any more.
    pub(crate) fn reclaim(&self) {
        if let Store::Disk(disk) = &self.store {
            disk.reclaim();
        }
    }
}

impl Account {
    /// A container of the account.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`.
    pub(crate) fn container(&self, name: &str) -> Outcome<Arc<Container>> {
        let containers = self.containers.read().unwrap_or_else(PoisonError::into_inner);
        containers.get(name).cloned().ok_or_else(|| e::CONTAINER_NOT_FOUND.into())
    }

    /// Containers from this name on, in order.
    pub(crate) fn containers_from(&self, start: &str, count: usize) -> Vec<Arc<Container>> {
        let containers = self.containers.read().unwrap_or_else(PoisonError::into_inner);
        containers.range(start.to_owned()..).take(count).map(|(_, c)| c.clone()).collect()
    }
}

impl Container {
    /// Takes the container for a while; never over an `await`.
    ///
    /// # Errors
    /// 404: it has just been deleted.
    pub(crate) fn hold<'a>(&'a self, model: &'a Model, account: &'a str) -> Outcome<Held<'a>> {
        let inner = lock(&self.inner);
        if inner.gone {
            return Err(e::CONTAINER_NOT_FOUND.into());
        }
        Ok(Held::new(model, account, &self.name, inner))
    }
}

/// Takes a lock whose holder may have died: no change in here panics between two writes that belong together.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn json<T: Serialize>(value: &T) -> Outcome<String> {
    serde_json::to_string(value).map_err(|error| internal(&error))
}

pub(crate) fn mirrored(done: rusqlite::Result<()>) -> Outcome<()> {
    done.map_err(|error| internal(&error))
}

/// 500 for what is our own trouble; the cause goes to the log. A full disk is 507 instead, which nobody sends again in the hope
/// that it heals: the service has no such thing.
pub(crate) fn internal(error: &(dyn std::error::Error + 'static)) -> Failure {
    tracing::error!("emulator: {error}");
    let of_file = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let of_rows = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    match (of_file, of_rows) {
        (Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded), _) | (_, Some(rusqlite::ErrorCode::DiskFull)) => {
            e::STORE_FULL.into()
        }
        _ => e::INTERNAL.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart() {
        let rows = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        assert_eq!(internal(&std::io::Error::from_raw_os_error(libc::ENOSPC)).code().status, 507);
        assert_eq!(internal(&rows(rusqlite::ffi::SQLITE_FULL)).code().status, 507);
        assert_eq!(internal(&rows(rusqlite::ffi::SQLITE_IOERR)).code().status, 500);
        assert_eq!(internal(&std::io::Error::other("broken")).code().status, 500);
    }
}
