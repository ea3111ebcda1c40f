//! A source and a sink in memory, with faults: what the engine does is seen here without a file or a request.

use blobjet::attributes::Replace;
use blobjet::chunks::Chunks;
use blobjet::endpoint::{
    BlockId, Facts, Finish, Found, Item, Limits, Listing, Payload, Reader, Receipt, Same, Sink, Source, Task, There, Which,
};
use blobjet::error::{Error, Kind, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// Bytes that tell where they are from: no two blocks of a few MiB are alike.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((i ^ (i >> 8) ^ (i >> 16)) & 0xFF).unwrap()).collect()
}

/// What a [`Memory`] source has under a name.
#[derive(Clone, Default)]
pub(crate) struct Given {
    pub(crate) data: Bytes,
    pub(crate) modified: Option<SystemTime>,
    /// Its length is not told: it is a pipe, whose reads come in small pieces.
    pub(crate) pipe: bool,
    /// It has changed by the time it is to be committed.
    pub(crate) changes: bool,
}

/// Objects in memory, by name; each lands under its own name.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) objects: BTreeMap<String, Given>,
    /// Reported by the listing besides.
    pub(crate) others: Mutex<Vec<Found>>,
    /// Bytes read and not dropped yet, and the most there ever were.
    pub(crate) held: Arc<Held>,
}

#[derive(Default)]
pub(crate) struct Held {
    now: AtomicU64,
    pub(crate) most: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) most_open: AtomicU64,
}

impl Memory {
    pub(crate) fn of(objects: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let given = |(name, data): (String, Vec<u8>)| (name, Given { data: data.into(), ..Given::default() });
        Memory { objects: objects.into_iter().map(given).collect(), ..Memory::default() }
    }

    pub(crate) fn one(name: &str, given: Given) -> Self {
        Memory { objects: BTreeMap::from([(name.to_owned(), given)]), ..Memory::default() }
    }
}

struct Open {
    name: String,
    given: Given,
    held: Arc<Held>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.held.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A piece that is counted as long as anybody holds it.
struct Counted(Bytes, Arc<Held>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.now.fetch_sub(self.0.len() as u64, Ordering::SeqCst);
    }
}

impl Source for Memory {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            let items = self.objects.keys().map(|name| Found::Item(Item::new(name.clone(), name.clone())));
            let mut all: Vec<Found> = std::mem::take(&mut *self.others.lock().unwrap());
            all.extend(items);
            while !all.is_empty() {
                let rest = all.split_off(all.len().min(7));
                if out.send(std::mem::replace(&mut all, rest)).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        })
    }

    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let given = self.objects.get(&item.source).cloned();
            let given = given.ok_or_else(|| Error::new(Kind::SourceChanged, format!("{} is gone", item.source)))?;
            let open = self.held.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.held.most_open.fetch_max(open, Ordering::SeqCst);
            Ok(Box::new(Open { name: item.source.clone(), given, held: Arc::clone(&self.held) }) as Box<dyn Reader>)
        })
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }
}

impl Reader for Open {
    fn facts(&self) -> Facts {
        let len = (!self.given.pipe).then(|| self.given.data.len() as u64);
        Facts { len, modified: self.given.modified }
    }

    fn read<'a>(&'a self, offset: u64, len: u64) -> Task<'a, Result<Chunks>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let have = self.given.data.len();
            let start = usize::try_from(offset).unwrap().min(have);
            let end = (start + usize::try_from(len).unwrap()).min(have);
            let data = self.given.data.slice(start..end);
            let now = self.held.now.fetch_add(data.len() as u64, Ordering::SeqCst) + data.len() as u64;
            self.held.most.fetch_max(now, Ordering::SeqCst);
            let mut chunks = Chunks::default();
            let counted = Bytes::from_owner(Counted(data, Arc::clone(&self.held)));
            let step = if self.given.pipe { (counted.len() / 300).max(3) } else { counted.len().max(1) };
            for at in (0..counted.len()).step_by(step) {
                chunks.push(counted.slice(at..(at + step).min(counted.len())));
            }
            Ok(chunks)
        })
    }

    fn check_unchanged(&self, _: Same) -> Result<()> {
        match self.given.changes {
            true => Err(Error::new(Kind::SourceChanged, format!("{} changed", self.name))),
            false => Ok(()),
        }
    }
}

/// One call on the sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Put(String),
    Block(String),
    Commit(String),
    Look(String),
    Blocks(String),
    Clear(String),
}

/// Decides whether a call fails; the number is that of the call, from 0, not counting those that ask for blocks.
pub(crate) type Fault = Box<dyn Fn(&Call, usize) -> Option<Error> + Send + Sync>;

/// A stored object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Stored {
    pub(crate) data: Vec<u8>,
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) blocks: Vec<BlockId>,
    pub(crate) parts: HashMap<BlockId, Vec<u8>>,
    pub(crate) modified: Option<SystemTime>,
}

/// Objects written, with faults on the way.
pub(crate) struct Store {
    pub(crate) limits: Limits,
    pub(crate) objects: Mutex<BTreeMap<String, Stored>>,
    pub(crate) staged: Mutex<HashMap<(String, BlockId), Vec<u8>>>,
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) fault: Fault,
    /// Requests wait here until it is opened.
    pub(crate) gate: tokio::sync::watch::Sender<bool>,
    /// Calls from this number on wait until so many are in flight at once, for the first time.
    pub(crate) gather: Option<(usize, u64)>,
    pub(crate) gathered: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) most_in_flight: AtomicU64,
    pub(crate) wrong_crc: AtomicBool,
    /// Requests that each call claims to have taken.
    pub(crate) attempts: u32,
    pub(crate) checks: bool,
    pub(crate) asked: AtomicUsize,
}

impl Store {
    pub(crate) fn new() -> Self {
        Store {
            limits: Limits { whole: 1 << 30, block: 1 << 30, blocks: 50_000 },
            objects: Mutex::default(),
            staged: Mutex::default(),
            calls: Mutex::default(),
            fault: Box::new(|_, _| None),
            gate: tokio::sync::watch::Sender::new(true),
            gather: None,
            gathered: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            most_in_flight: AtomicU64::new(0),
            wrong_crc: AtomicBool::new(false),
            attempts: 1,
            checks: true,
            asked: AtomicUsize::new(0),
        }
    }

    pub(crate) fn failing(fault: impl Fn(&Call, usize) -> Option<Error> + Send + Sync + 'static) -> Self {
        Store { fault: Box::new(fault), ..Store::new() }
    }

    pub(crate) fn with(self, name: &str, data: &[u8], modified: Option<SystemTime>) -> Self {
        let stored = Stored { data: data.to_vec(), modified, ..Stored::default() };
        self.objects.lock().unwrap().insert(name.to_owned(), stored);
        self
    }

    pub(crate) fn data(&self, name: &str) -> Option<Vec<u8>> {
        self.objects.lock().unwrap().get(name).map(|stored| stored.data.clone())
    }

    pub(crate) fn count(&self, is: impl Fn(&Call) -> bool) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| is(call)).count()
    }

    async fn call(&self, call: Call) -> Result<()> {
        let asks = matches!(call, Call::Blocks(_));
        let number = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(call.clone());
            // Asking what is there is not among the calls that tests number and hold back: those move data.
            calls.len() - 1 - self.asked.fetch_add(usize::from(asks), Ordering::SeqCst)
        };
        if asks {
            return (self.fault)(&call, number).map_or(Ok(()), Err);
        }
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_in_flight.fetch_max(now, Ordering::SeqCst);
        let mut gate = self.gate.subscribe();
        gate.wait_for(|open| *open).await.unwrap();
        tokio::task::yield_now().await;
        if let Some((_, most)) = self.gather.filter(|(from, _)| number >= *from) {
            while self.gathered.fetch_max(self.in_flight.load(Ordering::SeqCst), Ordering::SeqCst) < most {
                tokio::task::yield_now().await;
            }
        }
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        (self.fault)(&call, number).map_or(Ok(()), Err)
    }

    fn receipt(&self) -> Receipt {
        Receipt { attempts: self.attempts }
    }

    fn bytes(&self, payload: &Payload) -> Vec<u8> {
        if payload.data.crc64() != payload.crc64 {
            self.wrong_crc.store(true, Ordering::SeqCst);
        }
        payload.data.iter().flat_map(|b| b.to_vec()).collect()
    }

    fn store(&self, target: &str, stored: Stored, replace: Replace) -> Result<()> {
        let mut objects = self.objects.lock().unwrap();
        let there = objects.get(target);
        let may = match replace {
            Replace::Always => true,
            Replace::Never => there.is_none(),
            Replace::IfOlderThan(moment) => there.is_none_or(|there| there.modified.is_some_and(|time| time < moment)),
        };
        if !may {
            return Err(Error::new(Kind::AlreadyExists, format!("{target} is there")));
        }
        objects.insert(target.to_owned(), stored);
        Ok(())
    }
}

impl Sink for Store {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn check_name(&self, target: &str) -> Result<()> {
        match target.contains('!') {
            true => Err(Error::new(Kind::Name, format!("{target} has a '!'"))),
            false => Ok(()),
        }
    }

    fn put<'a>(&'a self, target: &'a str, payload: Payload, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            self.call(Call::Put(target.to_owned())).await?;
            if payload.data.len() > self.limits.whole {
                return Err(Error::new(Kind::TooLarge, "too large"));
            }
            let stored = Stored { data: self.bytes(&payload), md5: finish.content_md5, ..Stored::default() };
            self.store(target, stored, finish.replace).map(|()| self.receipt())
        })
    }

    fn put_block<'a>(&'a self, target: &'a str, id: BlockId, payload: Payload) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            self.call(Call::Block(target.to_owned())).await?;
            if payload.data.len() > self.limits.block {
                return Err(Error::new(Kind::TooLarge, "too large"));
            }
            let data = self.bytes(&payload);
            self.staged.lock().unwrap().insert((target.to_owned(), id), data);
            Ok(self.receipt())
        })
    }

    fn commit<'a>(&'a self, target: &'a str, ids: &'a [BlockId], finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            self.call(Call::Commit(target.to_owned())).await?;
            let parts: Option<Vec<(BlockId, Vec<u8>)>> = {
                let (staged, objects) = (self.staged.lock().unwrap(), self.objects.lock().unwrap());
                let committed = objects.get(target).map(|stored| &stored.parts);
                let latest = |id: &BlockId| {
                    let staged = staged.get(&(target.to_owned(), *id));
                    Some((*id, staged.or_else(|| committed?.get(id))?.clone()))
                };
                ids.iter().map(latest).collect()
            };
            let parts = parts.ok_or_else(|| Error::new(Kind::BlocksMissing, "a block is missing"))?;
            let data = parts.iter().flat_map(|(_, data)| data.clone()).collect();
            let parts = parts.into_iter().collect();
            let stored = Stored { data, md5: finish.content_md5, blocks: ids.to_vec(), parts, ..Stored::default() };
            self.store(target, stored, finish.replace)?;
            self.staged.lock().unwrap().retain(|(name, _), _| name != target);
            Ok(self.receipt())
        })
    }

    fn blocks<'a>(&'a self, target: &'a str, which: Which, _: &'a dyn Reader) -> Task<'a, Result<Vec<There>>> {
        Box::pin(async move {
            self.call(Call::Blocks(target.to_owned())).await?;
            let staged = self.staged.lock().unwrap();
            let staged = staged.iter().filter(|((name, _), _)| name == target);
            let mut there: Vec<There> = staged.map(|((_, id), data)| There { id: *id, len: data.len() as u64 }).collect();
            if which == Which::All
                && let Some(stored) = self.objects.lock().unwrap().get(target)
            {
                there.extend(stored.parts.iter().map(|(id, data)| There { id: *id, len: data.len() as u64 }));
            }
            Ok(there)
        })
    }

    fn clear<'a>(&'a self, target: &'a str, _: Replace) -> Task<'a, Result<()>> {
        Box::pin(async move {
            self.call(Call::Clear(target.to_owned())).await?;
            self.staged.lock().unwrap().retain(|(name, _), _| name != target);
            Ok(())
        })
    }

    fn checks(&self) -> bool {
        self.checks
    }

    fn look<'a>(&'a self, target: &'a str) -> Task<'a, Result<Option<Facts>>> {
        Box::pin(async move {
            self.call(Call::Look(target.to_owned())).await?;
            let objects = self.objects.lock().unwrap();
            Ok(objects.get(target).map(|s| Facts { len: Some(s.data.len() as u64), modified: s.modified }))
        })
    }

    fn describe(&self, target: &str) -> String {
        format!("store/{target}")
    }
}
