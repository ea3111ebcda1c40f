//! Local files as a source: one file, a folder, a pattern, or a list of paths within a folder.
//!
//! Blocks of files on this machine's filesystems are mapped ([`mapped`](crate::endpoint::mapped)); everything else is read with
//! positioned reads. Length, time of change and identity are taken from the descriptor the bytes come from, at open and again
//! before the commit, so no mixture of an old and a new file is ever committed. What the filesystem refuses for the moment is
//! asked for again ([`patience`](crate::endpoint::patience)); a handle gone stale is opened again if the same file is there.

use crate::attributes::Attributes;
use crate::chunks::Chunks;
use crate::endpoint::glob::{self, Expanded, Match};
use crate::endpoint::list_of_files::ListOfFiles;
use crate::endpoint::mapped::{self, Filesystem};
use crate::endpoint::name::shown;
use crate::endpoint::patience::{Patience, is_stale, patiently_here, unreadable_as};
use crate::endpoint::posix::{Posix, Stored};
use crate::endpoint::selection::{Candidate, Selection};
use crate::endpoint::walk::{Rules, Walk};
use crate::endpoint::{Facts, Filtered, Found, Item, Known, Listing, Reader, Same, Source, Task};
use crate::error::{Error, Kind, Result};
use bytes::Bytes;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;
use tokio::sync::oneshot;

/// Shortest piece that is mapped: below it, mapping and unmapping cost more than copying (9 us against 4 us for 4 KiB).
const MAP_FROM: u64 = 1024 * 1024;

/// How file contents are brought in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// Mapped where that is sound and pays, read otherwise.
    #[default]
    Auto,
    /// Mapped wherever the filesystem allows it.
    Mmap,
    /// Always read.
    Pread,
}

/// What to list.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// One file; it lands as `target`.
    One { path: String, target: String },
    /// What is in a folder, under `prefix`.
    Tree { root: String, prefix: String },
    /// What a pattern matches, under `prefix`.
    Pattern { pattern: String, prefix: String },
    /// The paths in a list, within a folder, under `prefix`.
    Listed { root: String, prefix: String, list: ListOfFiles },
}

/// Local files.
#[derive(Debug)]
pub struct FileSource {
    what: What,
    rules: Rules,
    selection: Arc<Selection>,
    read: ReadMode,
    /// Whether opening a file may wait for a network: asked of the filesystem the source is on.
    remote: bool,
    /// What is stored with each blob of its file's times and permissions.
    stored: Option<Stored>,
    /// Filesystems by device number, as files of them come up: a handful at most.
    filesystems: RwLock<Vec<(u64, Filesystem)>>,
}

impl FileSource {
    pub(super) fn new(what: What, rules: Rules, selection: Arc<Selection>, read: ReadMode) -> Self {
        let at = match &what {
            What::One { path: root, .. } | What::Tree { root, .. } | What::Listed { root, .. } => root,
            What::Pattern { pattern, .. } => pattern.rsplit_once('/').map_or(".", |(folder, _)| folder),
        };
        // A pattern's folder may be a pattern itself: then it is not known, and taken for local.
        let remote = matches!(mapped::filesystem_at(at), Ok(Filesystem::Other));
        FileSource { what, rules, selection, read, remote, stored: None, filesystems: RwLock::default() }
    }

    /// Has times, or permissions as well, stored with each blob.
    #[must_use]
    pub(super) fn storing(self, stored: Option<Stored>) -> Self {
        FileSource { stored, ..self }
    }

    /// What it lists.
    pub(super) fn what(&self) -> &What {
        &self.what
    }

    fn filesystem(&self, file: &File, device: u64) -> Filesystem {
        let known = self.filesystems.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, filesystem)) = known.iter().find(|(d, _)| *d == device) {
            return *filesystem;
        }
        drop(known);
        let filesystem = mapped::filesystem_of(file).unwrap_or(Filesystem::Other);
        self.filesystems.write().unwrap_or_else(PoisonError::into_inner).push((device, filesystem));
        filesystem
    }

    fn reader(&self, path: &str, file: File) -> Result<FileReader> {
        let opened = Identity::of(&file).map_err(|e| unreadable(path, e))?;
        let opened = opened.ok_or_else(|| changed(path, "is no longer a regular file"))?;
        if opened.len == 0 && holds_more(&file, 0).map_err(|e| unreadable(path, e))? {
            let doing =
                format!("cannot tell how long {} is: its length is given as 0, and it has bytes", shown(OsStr::new(path)));
            return Err(Error::new(Kind::SourceUnreadable, doing)
                .with_advice("pipe it: blobjet copy - DESTINATION < FILE, which reads to the end"));
        }
        let filesystem = self.filesystem(&file, opened.device);
        let map_from = match (self.read, filesystem) {
            (ReadMode::Pread, _) | (ReadMode::Auto, Filesystem::Other) => u64::MAX,
            (ReadMode::Mmap, _) => 1,
            (ReadMode::Auto, _) => MAP_FROM,
        };
        let carried = match self.stored {
            Some(stored) => Some(Box::new(carried(&file, stored).map_err(|e| unreadable(path, e))?)),
            None => None,
        };
        Ok(FileReader {
            carried,
            path: path.to_owned(),
            named: true,
            file: RwLock::new(Arc::new(file)),
            base: 0,
            opened,
            filesystem,
            map_from,
            cut_short: Arc::new(AtomicBool::new(false)),
        })
    }
}

impl Source for FileSource {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            if let What::One { path, target } = &self.what {
                // One file needs no thread.
                let found = if takes_one(&self.selection, path) {
                    let known = match self.rules.ordered.then(|| patiently_here(|| std::fs::metadata(path))) {
                        Some(looked_at) => Some(Arc::new(Known::of_file(&looked_at.map_err(|e| unreadable(path, e))?))),
                        None => None,
                    };
                    Found::Item(Item { known, ..Item::new(path.clone(), target.clone()) })
                } else {
                    Found::Filtered(Filtered { objects: 1, folders: 0 })
                };
                let _ = out.send(vec![found]).await;
                return Ok(());
            }
            let (what, rules, selection) = (self.what.clone(), self.rules, Arc::clone(&self.selection));
            // A thread of its own: it waits for whoever takes what is listed, while others read for them.
            let (done, walked) = oneshot::channel();
            let thread = std::thread::Builder::new().name("listing".to_owned()).spawn(move || {
                let _ = done.send(walk(&what, rules, selection, out));
            });
            let failed = |e| Error::new(Kind::Local, "cannot list the source").with_source(e);
            thread.map_err(failed)?;
            walked.await.map_err(|_| failed(io::Error::other("the listing thread broke")))?
        })
    }

    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let path = &item.source;
            let mut patience = Patience::default();
            let file = loop {
                let opened = if self.remote {
                    let owned = path.clone();
                    blocking(move || open(&owned)).await
                } else {
                    open(path)
                };
                match opened {
                    Ok(file) => break Ok(file),
                    Err(error) => match patience.wait_after(error).await {
                        Ok(()) => {}
                        Err(error) => break Err(error),
                    },
                }
            };
            let file = file.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => changed(path, "is gone since it was listed"),
                _ => unreadable(path, error),
            })?;
            Ok(Box::new(self.reader(path, file)?) as Box<dyn Reader>)
        })
    }

    fn describe(&self) -> String {
        let (What::One { path: text, .. }
        | What::Tree { root: text, .. }
        | What::Pattern { pattern: text, .. }
        | What::Listed { root: text, .. }) = &self.what;
        shown(OsStr::new(text))
    }
}

/// Lists on a thread that may block.
fn walk(what: &What, rules: Rules, selection: Arc<Selection>, out: Listing) -> Result<()> {
    let (What::One { target: prefix, .. }
    | What::Tree { prefix, .. }
    | What::Pattern { prefix, .. }
    | What::Listed { prefix, .. }) = what;
    let mut walk = Walk::new(rules, selection, prefix, out);
    let flow = match what {
        // Listed without a walk.
        What::One { .. } => ControlFlow::Continue(()),
        What::Tree { root, prefix } => walk.tree(root, prefix),
        What::Pattern { pattern, prefix } => glob::expand(pattern).into_iter().try_for_each(|expanded| match expanded {
            Expanded::Match(Match { path, name, kind }) => walk.thing(path, format!("{prefix}{name}"), kind),
            Expanded::Failed(path, error) => walk.failed(&path, error),
        }),
        What::Listed { root, prefix, list } => list.walk(root, prefix, &mut walk)?,
    };
    // Nobody listening any more is no error of the listing.
    let _ = flow.is_continue() && walk.finish().is_continue();
    Ok(())
}

/// Whether a source that is one file is taken: for filters its path is its name. One that cannot be looked at is, and fails when it
/// is opened.
fn takes_one(selection: &Selection, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match selection.needs_facts().then(|| std::fs::metadata(path)) {
        Some(Ok(metadata)) => {
            let (len, modified) = (Some(metadata.len()), metadata.modified().ok());
            selection.takes(&Candidate { path: name, len, modified }).is_taken()
        }
        _ => selection.takes_path(name).is_taken(),
    }
}

/// What is stored with the blob besides the bytes.
fn carried(file: &File, stored: Stored) -> io::Result<Attributes> {
    let posix = Posix::of_file(&patiently_here(|| file.metadata())?);
    Ok(Attributes { metadata: posix.metadata(stored), ..Attributes::default() })
}

/// Opens for reading, never waiting for the other end of a FIFO that has taken the file's place.
fn open(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Runs something that may wait on a thread for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(io::Error::other(e)))
}

/// Whether there is a byte at `offset`. Files of /proc and the like have the length 0 and contents nevertheless; what is empty
/// by its length is not believed to be, at the price of a system call.
fn holds_more(file: &File, offset: u64) -> io::Result<bool> {
    patiently_here(|| file.read_at(&mut [0], offset)).map(|read| read > 0)
}

/// Fills `buf`. As `read_exact_at` does, which would make an interrupted call again for ever.
fn read_full(file: &File, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    let mut patience = Patience::default();
    while !buf.is_empty() {
        match file.read_at(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buf = &mut buf[read..];
                offset += read as u64;
            }
            // Others are waited for by whoever may wait.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => drop(patience.after(error)?),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads exactly `len` bytes, into pieces no larger than [`MAP_FROM`]: where memory is short, small pieces are found sooner, and
/// what is not found is an error instead of the end of the process.
fn read_pieces(file: &File, offset: u64, len: usize) -> io::Result<Chunks> {
    let mut chunks = Chunks::default();
    let piece_len = usize::try_from(MAP_FROM).map_err(io::Error::other)?;
    for at in (0..len).step_by(piece_len) {
        let size = piece_len.min(len - at);
        let mut piece = Vec::new();
        piece.try_reserve_exact(size).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        piece.resize(size, 0);
        read_full(file, &mut piece, offset + at as u64)?;
        chunks.push(Bytes::from(piece));
    }
    Ok(chunks)
}

fn unreadable(path: &str, error: io::Error) -> Error {
    unreadable_as(format!("cannot read {}", shown(OsStr::new(path))), error)
}

fn changed(path: &str, how: &str) -> Error {
    Error::new(Kind::SourceChanged, format!("{} {how}", shown(OsStr::new(path))))
}

/// What must not change while a file is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    len: u64,
    modified: Option<SystemTime>,
    device: u64,
    inode: u64,
}

impl Identity {
    /// `None` if it is not a regular file.
    fn of(file: &File) -> io::Result<Option<Self>> {
        let metadata = patiently_here(|| file.metadata())?;
        Ok(metadata.is_file().then(|| Identity::from(&metadata)))
    }
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        Identity { len: metadata.len(), modified: metadata.modified().ok(), device: metadata.dev(), inode: metadata.ino() }
    }
}

/// An open regular file.
#[derive(Debug)]
pub(super) struct FileReader {
    carried: Option<Box<Attributes>>,
    path: String,
    /// Whether `path` is one, and not only words for what somebody else opened.
    named: bool,
    /// Replaced by another handle of the same file when it goes stale.
    file: RwLock<Arc<File>>,
    /// Where in the file the object begins.
    base: u64,
    opened: Identity,
    filesystem: Filesystem,
    map_from: u64,
    /// Set by the guard of mapped windows.
    cut_short: Arc<AtomicBool>,
}

impl FileReader {
    /// What is left, from offset `base` on, of a file somebody else opened; `None` if it is not a regular file.
    pub(super) fn rest_of(name: &str, file: File, base: u64) -> Result<Option<Self>> {
        let Some(opened) = Identity::of(&file).map_err(|e| unreadable(name, e))? else { return Ok(None) };
        if base >= opened.len && holds_more(&file, base).map_err(|e| unreadable(name, e))? {
            return Ok(None);
        }
        let filesystem = mapped::filesystem_of(&file).unwrap_or(Filesystem::Other);
        Ok(Some(FileReader {
            carried: None,
            path: name.to_owned(),
            named: false,
            file: RwLock::new(Arc::new(file)),
            base: base.min(opened.len),
            opened,
            filesystem,
            map_from: if filesystem == Filesystem::Other { u64::MAX } else { MAP_FROM },
            cut_short: Arc::new(AtomicBool::new(false)),
        }))
    }

    fn file(&self) -> Arc<File> {
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether another file has the name now. A file whose name is gone is still whole, and nothing newer is there instead.
    fn replaced(&self) -> bool {
        let Some(there) = std::fs::metadata(&self.path).ok().filter(|_| self.named) else { return false };
        let there = Identity::from(&there);
        // Some network filesystems make up numbers for files as they go: one that differs alone says nothing there.
        (there.device, there.inode) != (self.opened.device, self.opened.inode)
            && (self.filesystem != Filesystem::Other || (there.len, there.modified) != (self.opened.len, self.opened.modified))
    }

    /// Opens the file again after its handle went stale, and takes the new handle if it is the same file as before.
    async fn reopen(&self) -> io::Result<()> {
        let path = self.path.clone();
        let file = blocking(move || open(&path)).await?;
        if Identity::of(&file)? != Some(self.opened) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "another file has taken its place"));
        }
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(file);
        Ok(())
    }

    async fn fetch_patiently(&self, offset: u64, len: usize) -> io::Result<Chunks> {
        let mut patience = Patience::default();
        loop {
            match self.fetch(offset, len).await {
                Ok(data) => return Ok(data),
                Err(error) => {
                    let stale = is_stale(&error) && self.named;
                    patience.wait_after(error).await?;
                    if stale {
                        self.reopen().await?;
                    }
                }
            }
        }
    }

    /// Reads once, in the way that suits the file.
    async fn fetch(&self, offset: u64, len: usize) -> io::Result<Chunks> {
        if len as u64 >= self.map_from { self.map(offset, len).await } else { self.pread(offset, len).await }
    }

    /// Maps, and falls back to reading where that is not possible.
    async fn map(&self, offset: u64, len: usize) -> io::Result<Chunks> {
        let (file, cut_short) = (self.file(), Arc::clone(&self.cut_short));
        let bytes = match self.filesystem {
            Filesystem::Memory => mapped::window(&file, offset, len, &cut_short),
            // Bringing the window in may wait for the disk; a runtime thread must not.
            _ => blocking(move || mapped::window(&file, offset, len, &cut_short)).await,
        };
        match bytes {
            Ok(bytes) => Ok(bytes.into()),
            // No way to map it, or no memory of that kind; or a page that is not to be had, and reading will tell why.
            Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::UnexpectedEof) => {
                self.pread(offset, len).await
            }
            Err(error) => Err(error),
        }
    }

    async fn pread(&self, offset: u64, len: usize) -> io::Result<Chunks> {
        let read = move |file: &File| read_pieces(file, offset, len);
        // Small pieces of files on this machine come from its cache nearly always: a hand-over to another thread costs more.
        if self.filesystem != Filesystem::Other && len as u64 <= MAP_FROM {
            return read(&self.file());
        }
        let file = self.file();
        blocking(move || read(&file)).await
    }
}

impl Reader for FileReader {
    fn facts(&self) -> Facts {
        Facts { len: Some(self.opened.len - self.base), modified: self.opened.modified }
    }

    fn read<'a>(&'a self, offset: u64, len: u64) -> Task<'a, Result<Chunks>> {
        Box::pin(async move {
            if len == 0 {
                return Ok(Chunks::default());
            }
            let size = usize::try_from(len)
                .map_err(|e| Error::new(Kind::TooLarge, format!("cannot hold {len} bytes of {}", self.path)).with_source(e))?;
            let offset = self.base + offset;
            let data = self.fetch_patiently(offset, size).await;
            data.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => changed(&self.path, "has become shorter while it was read"),
                _ => unreadable(&self.path, error),
            })
        })
    }

    fn carried(&self) -> Option<&Attributes> {
        self.carried.as_deref()
    }

    fn check_unchanged(&self, same: Same) -> Result<()> {
        if self.cut_short.load(Ordering::Acquire) {
            return Err(changed(&self.path, "has become shorter while it was read"));
        }
        let now = Identity::of(&self.file()).map_err(|e| match is_stale(&e) {
            true => changed(&self.path, "is gone from its server"),
            false => unreadable(&self.path, e),
        })?;
        match now {
            Some(now) if same == Same::Length && now.len >= self.opened.len => Ok(()),
            Some(now) if now.len != self.opened.len => {
                let how = format!("has changed from {} to {} bytes while it was sent", self.opened.len, now.len);
                Err(changed(&self.path, &how))
            }
            Some(now) if now == self.opened => match self.replaced() {
                true => Err(changed(&self.path, "was replaced by another file while it was sent")),
                false => Ok(()),
            },
            _ => Err(changed(&self.path, "was written to while it was sent")),
        }
    }
}
