//! Where bytes come from and go to, alike for the engine: [`Source`] lists and opens, [`Reader`] hands out blocks, [`Sink`] takes
//! them and commits.
//!
//! A file, a pipe and a blob look the same here. The engine knows these traits and nothing behind them; which endpoint an
//! argument means is decided in [`open`]. All trait methods may be called from any task of the runtime.

pub mod account;
pub mod arrival;
pub mod blob;
pub mod blob_changes;
pub mod blob_listing;
mod blob_pages;
pub mod blob_pattern;
pub mod blob_source;
pub mod blob_subjects;
pub mod change;
pub mod copy_sink;
pub mod explain;
pub mod file;
pub mod file_sink;
mod filter;
mod glob;
pub mod in_order;
pub mod keep;
pub mod landing;
pub mod list_of_files;
mod local_name;
pub mod made_up;
mod mapped;
pub mod mime;
mod moment;
mod name;
mod nameless;
pub mod null;
pub mod open;
pub mod open_blobs;
mod ordered_walk;
mod part;
mod path_glob;
mod patience;
pub mod posix;
pub mod selection;
pub mod stdio;
pub mod timed;
mod unpacked;
pub mod walk;

use crate::attributes::{Attributes, Replace};
use crate::chunks::Chunks;
use crate::error::{Error, Kind, Result};
use crate::rest::from_url::Link;
use crate::rest::stats::{RetryCause, Stats};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;
use tokio::sync::mpsc;

/// What the trait methods return: a future that may move between threads.
pub type Task<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One object a source has, and where it lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What the source needs to open it again: for files the path as the user would type it.
    pub source: String,
    /// Name at the destination, raw (not percent-encoded), `/`-separated.
    pub target: String,
    /// What the listing told of it already, so that opening it need not ask again.
    pub known: Option<Arc<Known>>,
}

impl Item {
    /// An object of which nothing else is known.
    pub fn new(source: impl Into<String>, target: impl Into<String>) -> Item {
        Item { source: source.into(), target: target.into(), known: None }
    }
}

/// What a listing tells of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Length in bytes.
    pub len: u64,
    /// Last change, to the second.
    pub modified: Option<SystemTime>,
    /// ETag without quotes; empty for what has none (files).
    pub etag: String,
    /// Everything else it carries.
    pub carried: Attributes,
}

impl Known {
    /// What there is to tell of a file.
    fn of_file(file: &std::fs::Metadata) -> Known {
        let (len, modified) = (file.len(), file.modified().ok());
        Known { len, modified, etag: String::new(), carried: Attributes::default() }
    }

    /// The last change of what it was made from, where an upload has stored that with it; its own otherwise.
    pub fn origin_modified(&self) -> Option<SystemTime> {
        posix::Posix::of(&self.carried.metadata).modified.or(self.modified)
    }
}

/// What a listing says about one thing it met.
#[derive(Debug)]
pub enum Found {
    /// An object to move.
    Item(Item),
    /// Left out on purpose (link, FIFO, socket, device): counted as skipped and named.
    Skipped {
        /// What it is, escaped for a terminal.
        name: String,
        /// Why it is left out.
        reason: &'static str,
    },
    /// Meant to be moved, and cannot be (unreadable folder, bad name): counted as failed.
    Failed {
        /// What it is, escaped for a terminal.
        name: String,
        /// Why.
        error: Error,
    },
    /// Left out by the user's filters since the last of these: neither listed nor named.
    Filtered(Filtered),
}

/// What filters have left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Objects that were met and not taken.
    pub objects: u64,
    /// Folders that were not looked into, because nothing in them could be taken.
    pub folders: u64,
}

/// Where a listing goes: batches, so that a million small files do not cost a million wake-ups. Bounded, so that a listing
/// never runs far ahead of the transfer.
pub type Listing = mpsc::Sender<Vec<Found>>;

/// Something that has objects to read.
pub trait Source: Send + Sync {
    /// Reports everything there is. Called once a job, from a task of its own; ends when all has been sent, or quietly when
    /// the receiver is gone.
    ///
    /// # Errors
    /// Only what bars the whole listing, e.g. `SourceNotFound`; a part that cannot be read is a [`Found::Failed`].
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>>;

    /// Opens one object. Called once an item, by the lane that will start on it; many at a time.
    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>>;

    /// The source as the user would recognise it, fit for messages.
    fn describe(&self) -> String;

    /// As [`Sink::flow`], for a source that objects come from over a network.
    fn flow(&self) -> Option<Flow> {
        None
    }
}

/// What is known of an object once it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Length in bytes; `None` for a pipe.
    pub len: Option<u64>,
    /// Last change; `None` where there is no such thing.
    pub modified: Option<SystemTime>,
}

/// An object open for reading.
pub trait Reader: Send + Sync {
    /// Length and time as they were when it was opened.
    fn facts(&self) -> Facts;

    /// Reads `len` bytes at `offset`. Of known length: any order, many at a time, and always exactly `len` bytes. Of unknown
    /// length: in order, one at a time, and fewer bytes than asked for mean the end.
    ///
    /// # Errors
    /// `SourceChanged` if it has become shorter, `SourceUnreadable` otherwise.
    fn read<'a>(&'a self, offset: u64, len: u64) -> Task<'a, Result<Chunks>>;

    /// Called before the commit (and before a small object is sent whole, after it was read).
    ///
    /// # Errors
    /// `SourceChanged` if it is not what it was when it was opened.
    fn check_unchanged(&self, same: Same) -> Result<()>;

    /// Text that changes whenever the contents do (an ETag), where there is such a thing. All reading is pinned to it then: what
    /// was read earlier of the same version need not be read again.
    fn version(&self) -> Option<&str> {
        None
    }

    /// What the object carries besides its bytes, where it carries anything.
    fn carried(&self) -> Option<&Attributes> {
        None
    }

    /// Where a service can fetch the object by itself; `None` where it cannot. Asked for each request, as what it lends runs out.
    ///
    /// # Errors
    /// `Name` for an address that no request can carry.
    fn link(&self) -> Result<Option<Link>> {
        Ok(None)
    }

    /// Reads `len` bytes at `offset` and hands them on in order, as they come.
    ///
    /// # Errors
    /// As of [`Reader::read`], and those of `into`.
    fn pour<'a>(&'a self, offset: u64, len: u64, into: &'a mut dyn Pour) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            let data = self.read(offset, len).await?;
            into.restart()?;
            data.iter().try_for_each(|piece| into.piece(piece))?;
            Ok(Receipt { attempts: 1 })
        })
    }
}

/// Takes bytes as they come, in order; told to begin anew where they broke off. Called by one task, one call after the other.
pub trait Pour: Send {
    /// What came before is void.
    ///
    /// # Errors
    /// Any: reading ends with it.
    fn restart(&mut self) -> Result<()>;

    /// The next piece.
    ///
    /// # Errors
    /// Any: reading ends with it.
    fn piece(&mut self, piece: &[u8]) -> Result<()>;
}

/// A part of an open object, for a sink that draws the bytes itself.
#[derive(Clone, Copy)]
pub struct Span<'a> {
    /// The object.
    pub reader: &'a dyn Reader,
    /// First byte.
    pub offset: u64,
    /// How many.
    pub len: u64,
}

/// In what an object must be what it was when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Same {
    /// In length, time of change and identity, and no other may have taken its name.
    Whole,
    /// In that no byte is missing of those it had; it may have grown, been touched, or lost its name.
    Length,
}

/// The bytes of one request and their checksum, computed once where they were read.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The bytes.
    pub data: Chunks,
    /// CRC-64/NVME over them.
    pub crc64: u64,
}

/// A block's id, as raw bytes: see `transfer::block_id` for what they mean. Sinks write it as 44 characters of base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockId(pub [u8; 32]);

/// A block that is there, and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct There {
    /// Its id.
    pub id: BlockId,
    /// Its length.
    pub len: u64,
}

/// Which blocks are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those staged and not committed.
    Staged,
    /// Those a commit could name: staged ones, and those of the object as it is.
    All,
}

/// What a commit, or a whole object, carries besides its bytes; everything else about it is the sink's (content type by name,
/// metadata asked for).
#[derive(Clone, Copy, Default)]
pub struct Finish<'a> {
    /// MD5 of the whole object, to be stored with it.
    pub content_md5: Option<[u8; 16]>,
    /// When it may replace what is there.
    pub replace: Replace,
    /// What it was read from, for what it carries besides its bytes.
    pub source: Option<&'a dyn Reader>,
}

/// What an acknowledged write took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Requests sent, 1 at least: more where some were sent again.
    pub attempts: u32,
}

impl Receipt {
    /// Requests beyond the first.
    pub fn retries(self) -> u32 {
        self.attempts.saturating_sub(1)
    }
}

/// What a sink can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest object in one [`Sink::put`], bytes.
    pub whole: u64,
    /// Largest block, bytes.
    pub block: u64,
    /// Most blocks of one object.
    pub blocks: u32,
}

/// What has gone to a sink so far, by every way it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Bytes on their way or there, those sent again included. Only grows.
    pub moved: u64,
    /// Times it asked to be sent less. Only grows.
    pub pushed_back: u64,
    /// Requests that wait now to be sent again, without its having asked the others to wait as well: others may go in their place.
    pub waiting: u64,
}

impl Flow {
    /// What a client has counted, beside what it moved.
    fn counted(stats: &Stats, moved: u64) -> Flow {
        Flow { moved, pushed_back: stats.retries()[RetryCause::Throttled as usize], waiting: stats.waiting.load(Relaxed) }
    }
}

/// Something objects are written to. Each method retries inside; an error is final.
///
/// A sink is given bytes ([`Sink::put`], [`Sink::put_block`]), or, where [`Sink::draws`] says so, draws them from the reader
/// itself, as they come or without their passing through here at all ([`Sink::draw`], [`Sink::draw_block`]).
pub trait Sink: Send + Sync {
    /// What it can take; asked once a job.
    fn limits(&self) -> Limits;

    /// Refuses a name it could never store, before anything is read or sent.
    ///
    /// # Errors
    /// `Name`, saying which rule is broken.
    fn check_name(&self, target: &str) -> Result<()>;

    /// Writes a whole object in one go, atomically. Dropping the future leaves the old object or the new one.
    fn put<'a>(&'a self, target: &'a str, payload: Payload, finish: Finish<'a>) -> Task<'a, Result<Receipt>>;

    /// Stages one block; invisible until [`Sink::commit`]. Any order, many at a time; staging the same id again replaces it.
    ///
    /// # Errors
    /// `Leftovers` where [`Sink::clear`] may help.
    fn put_block<'a>(&'a self, target: &'a str, id: BlockId, payload: Payload) -> Task<'a, Result<Receipt>>;

    /// Whether it draws its bytes from readers itself: then neither [`Sink::put`] nor [`Sink::put_block`] is called. Asked once a
    /// job.
    fn draws(&self) -> bool {
        false
    }

    /// Of a request for `len` bytes so many are in memory at a time, at most.
    fn holds(&self, len: u64) -> u64 {
        len
    }

    /// [`Sink::put`] for a sink that draws: `span` is the whole object.
    ///
    /// # Errors
    /// Those of the reader as well.
    fn draw<'a>(&'a self, target: &'a str, span: Span<'a>, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        let _ = (span, finish);
        Box::pin(async move { Err(Error::new(Kind::Unsupported, format!("cannot draw {}", self.describe(target)))) })
    }

    /// [`Sink::put_block`] for a sink that draws.
    ///
    /// # Errors
    /// Those of the reader as well.
    fn draw_block<'a>(&'a self, target: &'a str, id: BlockId, span: Span<'a>) -> Task<'a, Result<Receipt>> {
        let _ = (id, span);
        Box::pin(async move { Err(Error::new(Kind::Unsupported, format!("cannot draw {}", self.describe(target)))) })
    }

    /// Makes the object from staged blocks, in this order, atomically. Called after every block was acknowledged. A try whose
    /// answer was lost and that went through is a success, as far as that can be found out.
    ///
    /// # Errors
    /// `BlocksMissing` if one of them is gone: then the engine asks for [`Sink::blocks`], sends what is missing, and calls again.
    fn commit<'a>(&'a self, target: &'a str, ids: &'a [BlockId], finish: Finish<'a>) -> Task<'a, Result<Receipt>>;

    /// Which blocks with ids of our form are there, for an object that comes from `source`. Asked for at most once before an object of several blocks is sent, and again
    /// where [`Sink::commit`] misses blocks.
    ///
    /// # Errors
    /// Any: without an answer nothing is taken over. A sink that keeps no list says `Unsupported`.
    fn blocks<'a>(&'a self, target: &'a str, which: Which, source: &'a dyn Reader) -> Task<'a, Result<Vec<There>>> {
        let _ = (which, source);
        Box::pin(
            async move { Err(Error::new(Kind::Unsupported, format!("cannot list the blocks of {}", self.describe(target)))) },
        )
    }

    /// Discards every staged block under this name, in a way that neither what is committed there nor what readers see of it
    /// changes: called at most once an object, when [`Sink::put_block`] failed with `Leftovers`. `replace` is the condition its
    /// commit will carry, and must not be made to fail by this.
    ///
    /// # Errors
    /// Any, with the reason why that cannot be done safely; then everything is as it was.
    fn clear<'a>(&'a self, target: &'a str, replace: Replace) -> Task<'a, Result<()>> {
        let _ = replace;
        Box::pin(async move { Err(Error::new(Kind::Unsupported, format!("cannot clear {}", self.describe(target)))) })
    }

    /// An object of several blocks, drawn from `source`, has failed and will not be committed in this run: what is held for it can be let go. What is
    /// staged stays for a later run.
    fn abandon(&self, target: &str, source: &dyn Reader) {
        let _ = (target, source);
    }

    /// Whether what was written from `source` by an earlier run of the job, which was done with it at that moment, is there as it
    /// was, as far as a look at this machine tells. Asked once for each object that is finished and has not changed at its source;
    /// what is at a service is not asked for.
    fn still_has(&self, target: &str, source: &dyn Reader, finished: SystemTime) -> bool {
        let _ = (target, source, finished);
        true
    }

    /// Whether a block it has acknowledged was compared with the checksum of its payload. Blocks that were not are never taken
    /// over by a later run.
    fn checks(&self) -> bool {
        true
    }

    /// Whether an object is there, and since when. Called only where `--overwrite` needs it before many blocks are sent.
    fn look<'a>(&'a self, target: &'a str) -> Task<'a, Result<Option<Facts>>>;

    /// How the traffic goes; asked some 50 times a second, to choose how much is done at a time. `None` where only what is
    /// acknowledged is known.
    fn flow(&self) -> Option<Flow> {
        None
    }

    /// An object's place as the user would recognise it, without secrets.
    fn describe(&self, target: &str) -> String;
}
