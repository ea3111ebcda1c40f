//! Files under a folder of this machine as a sink, for what is downloaded.
//!
//! Bytes are drawn from the reader and written at their places as they come, into a file with a short name of its own in the
//! folder where they belong; it gets its real name when all of it is there and has passed its checks ([`arrival`]). Until then
//! what had that name stays as it was. An object of several blocks goes through a [`Part`], which a later run can go on with.
//!
//! Names come from elsewhere: whatever they say, nothing is written outside the folder ([`check_path`]).

use crate::crc64::Crc64;
use crate::endpoint::arrival::{Arrival, Handling, Tell, check_free, may_replace};
use crate::endpoint::local_name::{CaseTwins, check_path, unfinished};
use crate::endpoint::mapped::{Filesystem, filesystem_of};
use crate::endpoint::name::shown;
use crate::endpoint::part::{Part, open_alone};
use crate::endpoint::{BlockId, Facts, Finish, Limits, Payload, Pour, Reader, Receipt, Sink, Span, Task, There, Which, nameless};
use crate::error::{Error, Kind, Result};
use crate::units::{ByteCount, MIB};
use md5::{Digest as _, Md5};
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Most of a request's bytes in memory at a time: what a connection's buffer grows to, and what it had before while it grows.
const HELD: u64 = MIB;

/// Folders remembered as made: asking again costs a system call, remembering all of them memory.
const FOLDERS: usize = 10_000;

/// See the module's text.
pub struct FileSink {
    root: PathBuf,
    handling: Handling,
    tell: Arc<Tell>,
    /// First half of the names of unfinished files.
    nonce: u32,
    count: AtomicU64,
    folders: Mutex<HashSet<PathBuf>>,
    /// By [`key`].
    parts: Mutex<HashMap<usize, Arc<Part>>>,
    twins: OnceLock<CaseTwins>,
    filesystem: OnceLock<Filesystem>,
    /// Whether files can be without a name.
    nameless: OnceLock<bool>,
}

impl FileSink {
    /// Files under `root`, which is made when the first one comes. `tell` hears of what is worth telling and no failure.
    pub fn new(root: impl Into<PathBuf>, handling: Handling, tell: Arc<Tell>) -> FileSink {
        FileSink {
            root: root.into(),
            handling,
            tell,
            nonce: getrandom::u32().unwrap_or_default(),
            count: AtomicU64::new(0),
            folders: Mutex::default(),
            parts: Mutex::default(),
            twins: OnceLock::new(),
            filesystem: OnceLock::new(),
            nameless: OnceLock::new(),
        }
    }

    /// Takes the filesystem for one that does not tell upper from lower case, or for one that does, instead of finding out.
    #[must_use]
    pub fn case_blind(self, blind: bool) -> FileSink {
        FileSink { twins: OnceLock::from(CaseTwins::new(blind)), ..self }
    }

    /// Where something goes, and the file that is there: through links, as any program that writes to one does.
    ///
    /// # Errors
    /// `Local` where a link leads to nothing, or a folder or device has the name.
    fn path(&self, target: &str) -> Result<(PathBuf, Option<Metadata>)> {
        let path = self.root.join(target);
        let Ok(there) = fs::symlink_metadata(&path) else { return Ok((path, None)) };
        if !there.is_symlink() {
            check_free(&path, &there)?;
            return Ok((path, Some(there)));
        }
        let followed = fs::canonicalize(&path).and_then(|path| fs::metadata(&path).map(|there| (path, there)));
        let (path, there) = followed.map_err(|error| unwritable("follow the link", &path, error))?;
        check_free(&path, &there)?;
        Ok((path, Some(there)))
    }

    /// Makes the folder something belongs into.
    fn make_folder(&self, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut known = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folder.as_os_str().is_empty() || known.contains(folder) {
            return Ok(());
        }
        fs::create_dir_all(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => in_the_way(folder),
            _ => unwritable("make the folder", folder, error),
        })?;
        if known.len() >= FOLDERS {
            known.clear();
        }
        known.insert(folder.to_owned());
        Ok(())
    }

    /// Whether writing may wait for a disk; asked of the filesystem once.
    fn waits(&self, file: &File) -> bool {
        *self.filesystem.get_or_init(|| filesystem_of(file).unwrap_or(Filesystem::Other)) != Filesystem::Memory
    }

    /// An unfinished file for this path that nobody else has: the one of the same name in every run, so that what an earlier one left
    /// is found, or one of its own where somebody has that.
    fn unfinished<T>(&self, path: &Path, open: impl Fn(&Path) -> io::Result<T>) -> Result<(T, PathBuf)> {
        let mut crc = Crc64::new();
        crc.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        let mut at = path.with_file_name(unfinished(crc.finish()));
        let opened = match open(&at) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                at = self.own(path);
                open(&at)
            }
            // The folder was removed since it was made.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.folders.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.make_folder(path)?;
                open(&at)
            }
            other => other,
        };
        opened.map(|file| (file, at)).map_err(|error| unwritable("write", path, error))
    }

    /// Beside this path a name that no other download has.
    fn own(&self, path: &Path) -> PathBuf {
        let own = u64::from(self.nonce) << 32 | self.count.fetch_add(1, Relaxed) & u64::from(u32::MAX);
        path.with_file_name(unfinished(own))
    }

    /// A file without a name for something that replaces nothing, and a name it can have meanwhile; `None` where another way has to
    /// do.
    fn nameless(&self, path: &Path) -> Option<(File, PathBuf)> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let own = self.own(path);
        let possible = self.handling.takes_nameless() && *self.nameless.get_or_init(|| nameless::are_possible(folder, &own));
        if possible { nameless::open(folder).ok().map(|file| (file, own)) } else { None }
    }

    /// What an object of several blocks is gathered in.
    fn part(&self, path: &Path, reader: &dyn Reader) -> Result<Arc<Part>> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get(&key(reader)) {
            return Ok(Arc::clone(part));
        }
        self.handling.check_has_md5(reader, &shown(path.as_os_str()))?;
        self.make_folder(path)?;
        let (len, hash) = (reader.facts().len.unwrap_or(0), self.handling.expected(reader).is_some());
        let (part, _) = self.unfinished(path, |at| Part::open(at, len, hash))?;
        let reserved = reserve(part.file(), path, len, self.waits(part.file()));
        let part = Arc::new(part);
        if reserved.is_err() && !part.is_worth_keeping() {
            let _ = fs::remove_file(part.path());
        }
        reserved?;
        parts.insert(key(reader), Arc::clone(&part));
        Ok(part)
    }

    fn take_part(&self, reader: &dyn Reader) -> Option<Arc<Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(reader))
    }
}

/// Tells objects on their way apart, also two that go to the same name: a reader is one object's, and stays where it is as long as
/// that is on its way.
fn key(reader: &dyn Reader) -> usize {
    std::ptr::from_ref(reader).cast::<()>().addr()
}

/// Refuses at once what has no room, and takes the room where that means something.
fn reserve(file: &File, path: &Path, len: u64, on_disk: bool) -> Result<()> {
    let there = file.metadata().map_or(0, |metadata| metadata.len());
    let free = free(file);
    let needed = len.saturating_sub(there);
    if let Some(free) = free.filter(|free| *free < needed) {
        return Err(full(path, needed, free));
    }
    if on_disk && there < len {
        // Keeps the file in one piece and finds a full disk now. Where it is not supported, neither is the case.
        if fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) == Err(rustix::io::Errno::NOSPC) {
            return Err(full(path, needed, free.unwrap_or(0)));
        }
    }
    Ok(())
}

fn full(path: &Path, need: u64, have: u64) -> Error {
    let text =
        format!("cannot write {}: {} are needed and {} are free", shown(path.as_os_str()), ByteCount(need), ByteCount(have));
    Error::new(Kind::Local, text)
        .with_source(io::Error::from_raw_os_error(libc::ENOSPC))
        .with_advice("make room, or choose another folder; the same command goes on with what is missing")
}

fn in_the_way(folder: &Path) -> Error {
    Error::new(Kind::Local, format!("cannot make the folder {}: a file has that name", shown(folder.as_os_str())))
        .with_advice("a blob can lie under the name of another, a file cannot: rename one of the two, or use another folder")
}

pub(super) fn unwritable(doing: &str, path: &Path, error: io::Error) -> Error {
    let advice = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            Some("make room, or choose another folder; the same command goes on where it stopped")
        }
        Some(libc::EROFS) => Some("the filesystem is mounted read-only: choose another folder"),
        Some(libc::EACCES | libc::EPERM) => Some("choose a folder you may write to, or change its permissions"),
        Some(libc::ENAMETOOLONG) => Some("the path is too long for the filesystem: choose a shorter folder"),
        Some(libc::EFBIG) => Some("the file is larger than the filesystem, or ulimit -f, allows"),
        _ => None,
    };
    let error = Error::new(Kind::Local, format!("cannot {doing} {}", shown(path.as_os_str()))).with_source(error);
    match advice {
        Some(advice) => error.with_advice(advice),
        None => error,
    }
}

/// An unfinished file that goes away unless it is taken.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes what comes at its place.
struct Writing<'a> {
    file: &'a File,
    path: &'a Path,
    /// Where it begins, and where the next piece goes.
    start: u64,
    at: u64,
    /// Whether writing may wait for a disk: then a thread is given up for it where there are others.
    waits: bool,
    /// Held while a piece goes into memory: the kernel has one writer of a file at a time, and the others run in circles until it is
    /// their turn (two threads, CPU s/GiB: 1.05, and 0.67 where one sleeps).
    turn: Option<&'a Mutex<()>>,
    crc64: Option<Crc64>,
    md5: Option<Md5>,
}

impl<'a> Writing<'a> {
    fn new(file: &'a File, path: &'a Path, start: u64, waits: bool) -> Self {
        let waits = waits && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        Writing { file, path, start, at: start, waits, turn: None, crc64: None, md5: None }
    }

    fn failed(&self, error: io::Error, len: usize) -> Error {
        match error.raw_os_error() {
            Some(libc::ENOSPC) => full(self.path, len as u64, free(self.file).unwrap_or(0)),
            _ => unwritable("write", self.path, error),
        }
    }
}

/// Bytes that are free where a file is.
fn free(file: &File) -> Option<u64> {
    fstatvfs(file).ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

impl Pour for Writing<'_> {
    fn restart(&mut self) -> Result<()> {
        self.at = self.start;
        self.crc64 = self.crc64.take().map(|_| Crc64::new());
        self.md5 = self.md5.take().map(|_| Md5::new());
        Ok(())
    }

    fn piece(&mut self, piece: &[u8]) -> Result<()> {
        if let Some(crc64) = &mut self.crc64 {
            crc64.update(piece);
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(piece);
        }
        let (file, at) = (self.file, self.at);
        let write = || file.write_all_at(piece, at);
        let written = if self.waits {
            tokio::task::block_in_place(write)
        } else {
            let _turn = self.turn.map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
            write()
        };
        written.map_err(|error| self.failed(error, piece.len()))?;
        self.at += piece.len() as u64;
        Ok(())
    }
}

impl Sink for FileSink {
    fn limits(&self) -> Limits {
        Limits { whole: u64::MAX, block: u64::MAX, blocks: u32::MAX }
    }

    fn check_name(&self, target: &str) -> Result<()> {
        check_path(target)?;
        self.twins.get_or_init(|| CaseTwins::of(&self.root)).check(target)
    }

    /// Only for sources whose length is not known; those are not copied to files.
    fn put<'a>(&'a self, target: &'a str, _: Payload, _: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { Err(Error::new(Kind::Unsupported, format!("cannot put {}", self.describe(target)))) })
    }

    fn put_block<'a>(&'a self, target: &'a str, _: BlockId, _: Payload) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { Err(Error::new(Kind::Unsupported, format!("cannot put {}", self.describe(target)))) })
    }

    fn draws(&self) -> bool {
        true
    }

    fn holds(&self, len: u64) -> u64 {
        len.min(HELD)
    }

    fn draw<'a>(&'a self, target: &'a str, span: Span<'a>, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            let (path, there) = self.path(target)?;
            self.handling.check_has_md5(span.reader, &shown(path.as_os_str()))?;
            may_replace(&path, finish.replace)?;
            self.make_folder(&path)?;
            let fresh = if there.is_none() { self.nameless(&path) } else { None };
            let (file, at, nameless) = match fresh {
                Some((file, own)) => (file, own, true),
                None => {
                    let (file, at) = self.unfinished(&path, open_alone)?;
                    file.set_len(0).map_err(|error| unwritable("write", &path, error))?;
                    (file, at, false)
                }
            };
            let mut unfinished = Unfinished(Some(at.clone()));
            let expected = self.handling.expected(span.reader);
            let mut writing = Writing::new(&file, &path, span.offset, self.waits(&file));
            writing.md5 = expected.map(|_| Md5::new());
            let receipt = span.reader.pour(span.offset, span.len, &mut writing).await?;
            let found = writing.md5.map(|md5| md5.finalize().into());
            let (there, reader, tell) = (there.as_ref(), span.reader, &*self.tell);
            let arrival = Arrival { file: &file, temporary: &at, nameless, path: &path, there, reader, found, tell };
            self.handling.arrive(arrival, finish.replace)?;
            unfinished.0 = None;
            Ok(receipt)
        })
    }

    fn draw_block<'a>(&'a self, target: &'a str, id: BlockId, span: Span<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            let (path, _) = self.path(target)?;
            let part = self.part(&path, span.reader)?;
            let mut writing = Writing::new(part.file(), &path, span.offset, self.waits(part.file()));
            writing.turn = Some(part.turn());
            writing.crc64 = Some(Crc64::new());
            let receipt = span.reader.pour(span.offset, span.len, &mut writing).await?;
            let crc64 = writing.crc64.map_or(0, |crc64| crc64.finish());
            part.enter(id, span.offset, span.len, crc64).map_err(|error| unwritable("write", &path, error))?;
            Ok(receipt)
        })
    }

    fn commit<'a>(&'a self, target: &'a str, _: &'a [BlockId], finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            let (path, there) = self.path(target)?;
            let reader = finish.source.ok_or_else(|| Error::new(Kind::Unsupported, "cannot finish a file without its source"))?;
            let part = self.part(&path, reader)?;
            may_replace(&path, finish.replace)?;
            let failed = |error| unwritable("write", &path, error);
            let found = match self.handling.expected(reader) {
                Some(_) => Some(part.md5().await.map_err(failed)?),
                None => None,
            };
            part.finish().map_err(failed)?;
            let (there, tell) = (there.as_ref(), &*self.tell);
            let (file, temporary) = (part.file(), part.path());
            let arrival = Arrival { file, temporary, nameless: false, path: &path, there, reader, found, tell };
            self.handling.arrive(arrival, finish.replace)?;
            self.take_part(reader);
            Ok(Receipt { attempts: 1 })
        })
    }

    fn blocks<'a>(&'a self, target: &'a str, _: Which, source: &'a dyn Reader) -> Task<'a, Result<Vec<There>>> {
        Box::pin(async move {
            let part = self.part(&self.path(target)?.0, source)?;
            if !part.is_worth_keeping() {
                return Ok(Vec::new());
            }
            let verified = tokio::task::spawn_blocking(move || part.verified()).await;
            // What cannot be read is not there: it is fetched.
            Ok(verified.ok().and_then(io::Result::ok).unwrap_or_default())
        })
    }

    fn abandon(&self, _: &str, source: &dyn Reader) {
        if let Some(part) = self.take_part(source).filter(|part| !part.is_worth_keeping()) {
            let _ = fs::remove_file(part.path());
        }
    }

    fn still_has(&self, target: &str, source: &dyn Reader, finished: SystemTime) -> bool {
        let there = fs::metadata(self.root.join(target));
        there.is_ok_and(|there| there.is_file() && self.handling.is_as_it_arrived(&there, source, finished))
    }

    fn look<'a>(&'a self, target: &'a str) -> Task<'a, Result<Option<Facts>>> {
        Box::pin(async move {
            let (path, _) = self.path(target)?;
            match fs::metadata(&path) {
                Ok(there) => Ok(Some(Facts { len: Some(there.len()), modified: there.modified().ok() })),
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
                Err(error) => Err(unwritable("look at", &path, error)),
            }
        })
    }

    fn describe(&self, target: &str) -> String {
        shown(self.root.join(target).as_os_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // semantics 78
    #[test]
    fn what_has_no_room_is_refused_with_what_it_needs_and_what_there_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = reserve(file.as_file(), Path::new("d/x"), 1 << 60, false).unwrap_err();
        let said = error.to_string();
        assert!(error.kind() == Kind::Local && said.contains("cannot write d/x: 1048576 TiB are needed and "), "{said}");
        assert!(said.ends_with("are free") && error.advice().unwrap().contains("make room"), "{said}");
        reserve(file.as_file(), Path::new("d/x"), 1, true).unwrap();
    }
}
