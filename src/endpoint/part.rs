//! A file that is being downloaded in blocks: the bytes at their places, and behind them a record of each block that is whole.
//!
//! A later run finds the file by its name, believes those records whose CRC fits what is there, and has the rest fetched again.
//! Nothing beside the file is needed for that, and nothing of it is seen under the final name: at the end the records are cut off
//! and the file renamed. A record is written after its block, so that a process may end between the two.
//!
//! One download at a time has the file, by a lock; a second one to the same name, in this process or another, uses a file of its
//! own.

use crate::crc64::Crc64;
use crate::endpoint::{BlockId, There};
use md5::{Digest as _, Md5};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Bytes of a record: id, offset, length, CRC64, length of the whole; numbers little-endian.
const RECORD: usize = 64;

/// Bytes read at a time to hash or verify.
const PIECE: usize = 1 << 20;

/// See the module's text.
pub(super) struct Part {
    file: File,
    path: PathBuf,
    /// Length of the whole.
    len: u64,
    /// Records so far.
    records: AtomicU64,
    /// Whether a later run has something to go on with.
    worth_keeping: AtomicBool,
    following: Option<Following>,
    turn: Mutex<()>,
}

/// The MD5 of what has been written without a gap from the beginning on, computed beside the transfer, while the bytes are in the
/// system's cache.
#[derive(Default)]
struct Following {
    state: Mutex<Follow>,
    idle: Notify,
}

#[derive(Default)]
struct Follow {
    hash: Md5,
    hashed: u64,
    /// Ends of written blocks by their beginnings, as far as they are not hashed yet.
    written: BTreeMap<u64, u64>,
    running: bool,
}

impl Follow {
    /// Up to where there is no gap.
    fn frontier(&self) -> u64 {
        let mut end = self.hashed;
        while let Some(next) = self.written.get(&end) {
            end = *next;
        }
        end
    }
}

/// A block that is whole.
struct Record {
    id: BlockId,
    offset: u64,
    len: u64,
    crc64: u64,
}

impl Part {
    /// Opens the file for a whole of `len` bytes, or makes it: with what an earlier run left, if that was as long. `hash`: whether
    /// its MD5 will be asked for.
    ///
    /// # Errors
    /// `WouldBlock` where another process has it, and those of the filesystem.
    pub(super) fn open(path: &Path, len: u64, hash: bool) -> io::Result<Part> {
        let file = open_alone(path)?;
        let records = match record_count(&file)? {
            Some((total, records)) if total == len => records,
            _ => {
                file.set_len(0)?;
                0
            }
        };
        Ok(Part {
            file,
            path: path.to_owned(),
            len,
            records: AtomicU64::new(records),
            worth_keeping: AtomicBool::new(records > 0),
            following: hash.then(Following::default),
            turn: Mutex::default(),
        })
    }

    /// The blocks that an earlier run left in it, each compared with its CRC.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub(super) fn verified(&self) -> io::Result<Vec<There>> {
        let file = &self.file;
        let Some((total, count)) = record_count(file)? else { return Ok(Vec::new()) };
        let mut there = Vec::new();
        let mut buf = vec![0; PIECE];
        for slot in 0..count {
            let mut raw = [0; RECORD];
            file.read_exact_at(&mut raw, total + slot * RECORD as u64)?;
            let Some(record) = Record::parse(&raw, total) else { continue };
            let mut crc = Crc64::new();
            each_piece(file, record.offset, record.offset + record.len, &mut buf, |piece| crc.update(piece))?;
            if crc.finish() == record.crc64 {
                there.push(There { id: record.id, len: record.len });
            }
        }
        Ok(there)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What one writer at a time holds where writing does not wait for a disk.
    pub(super) fn turn(&self) -> &Mutex<()> {
        &self.turn
    }

    /// Enters a block whose bytes are written.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub(super) fn enter(self: &Arc<Self>, id: BlockId, offset: u64, len: u64, crc64: u64) -> io::Result<()> {
        let slot = self.records.fetch_add(1, Relaxed);
        let record = Record { id, offset, len, crc64 };
        self.file.write_all_at(&record.build(self.len), self.len + slot * RECORD as u64)?;
        self.worth_keeping.store(true, Relaxed);
        if let Some(following) = &self.following {
            let mut state = following.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.written.insert(offset, offset + len);
            if !state.running && state.frontier() > state.hashed {
                state.running = true;
                let part = Arc::clone(self);
                tokio::task::spawn_blocking(move || part.follow());
            }
        }
        Ok(())
    }

    /// Hashes up to the frontier, as often as that has moved meanwhile.
    fn follow(&self) {
        let Some(following) = &self.following else { return };
        let mut buf = vec![0; PIECE];
        loop {
            let (mut hash, from, to) = {
                let mut state = following.state.lock().unwrap_or_else(PoisonError::into_inner);
                let (from, to) = (state.hashed, state.frontier());
                if from == to {
                    state.running = false;
                    following.idle.notify_one();
                    return;
                }
                (std::mem::take(&mut state.hash), from, to)
            };
            let read = each_piece(&self.file, from, to, &mut buf, |piece| hash.update(piece));
            let mut state = following.state.lock().unwrap_or_else(PoisonError::into_inner);
            if read.is_err() {
                // Read again from the beginning at the end, where the error is told.
                *state = Follow::default();
                following.idle.notify_one();
                return;
            }
            (state.hash, state.hashed) = (hash, to);
            let rest = state.written.split_off(&to);
            state.written = rest;
        }
    }

    /// The MD5 of the whole, once all of it is written.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub(super) async fn md5(self: &Arc<Self>) -> io::Result<[u8; 16]> {
        let (mut hash, from) = match &self.following {
            None => (Md5::new(), 0),
            Some(following) => loop {
                let idle = following.idle.notified();
                {
                    let mut state = following.state.lock().unwrap_or_else(PoisonError::into_inner);
                    if !state.running {
                        break (std::mem::take(&mut state.hash), std::mem::take(&mut state.hashed));
                    }
                }
                idle.await;
            },
        };
        let part = Arc::clone(self);
        let rest = tokio::task::spawn_blocking(move || {
            each_piece(&part.file, from, part.len, &mut vec![0; PIECE], |piece| hash.update(piece))?;
            Ok(hash.finalize().into())
        });
        rest.await.map_err(io::Error::other)?
    }

    /// Cuts the records off.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.file.set_len(self.len)
    }

    /// Whether a later run has something to go on with.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.worth_keeping.load(Relaxed)
    }
}

impl Record {
    fn build(&self, total: u64) -> [u8; RECORD] {
        let mut raw = [0; RECORD];
        raw[..32].copy_from_slice(&self.id.0);
        for (at, number) in [(32, self.offset), (40, self.len), (48, self.crc64), (56, total)] {
            raw[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        raw
    }

    /// `None` where it was not written, or cannot be one.
    fn parse(raw: &[u8; RECORD], total: u64) -> Option<Record> {
        let record = Record {
            id: BlockId(raw[..32].try_into().ok()?),
            offset: number(raw, 32),
            len: number(raw, 40),
            crc64: number(raw, 48),
        };
        let end = record.offset.checked_add(record.len)?;
        (record.len > 0 && end <= total && number(raw, 56) == total).then_some(record)
    }
}

fn number(raw: &[u8; RECORD], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| raw[at + i]))
}

/// Opens or makes an unfinished file that nobody else has, in this process or another: only a regular file, and no link. What is in
/// it stays.
///
/// # Errors
/// `WouldBlock` where somebody has it, or something else has its name, and those of the filesystem.
pub(super) fn open_alone(path: &Path) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match options.open(path) {
            // A link.
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(io::ErrorKind::WouldBlock.into()),
            other => other?,
        };
        let ours = file.metadata()?;
        if !ours.is_file() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Between opening and locking, whoever had it may have given it its real name.
        match std::fs::symlink_metadata(path) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => return Ok(file),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Length of the whole and number of records, as the last record tells them; `None` where the file does not end in one.
fn record_count(file: &File) -> io::Result<Option<(u64, u64)>> {
    let size = file.metadata()?.len();
    let Some(last) = size.checked_sub(RECORD as u64) else { return Ok(None) };
    let mut raw = [0; RECORD];
    file.read_exact_at(&mut raw, last)?;
    let total = number(&raw, 56);
    let records = size.checked_sub(total).filter(|bytes| bytes % RECORD as u64 == 0).map(|bytes| bytes / RECORD as u64);
    Ok(records.filter(|count| *count > 0 && Record::parse(&raw, total).is_some()).map(|count| (total, count)))
}

/// Reads from `from` to `to`, piece by piece.
fn each_piece(file: &File, from: u64, to: u64, buf: &mut [u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let want = usize::try_from(to - at).unwrap_or(usize::MAX).min(buf.len());
        file.read_exact_at(&mut buf[..want], at)?;
        each(&buf[..want]);
        at += want as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> BlockId {
        BlockId([n; 32])
    }

    fn crc(data: &[u8]) -> u64 {
        let mut crc = Crc64::new();
        crc.update(data);
        crc.finish()
    }

    fn write(part: &Arc<Part>, n: u8, offset: u64, data: &[u8]) {
        part.file().write_all_at(data, offset).unwrap();
        part.enter(id(n), offset, data.len() as u64, crc(data)).unwrap();
    }

    #[tokio::test]
    async fn what_is_whole_is_found_again_and_what_is_not_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let part = Arc::new(Part::open(&path, 30, false).unwrap());
        assert!(!part.is_worth_keeping() && part.verified().unwrap().is_empty());
        write(&part, 3, 20, &[3; 10]);
        write(&part, 1, 0, &[1; 10]);
        // Overwritten since: its record is void.
        write(&part, 2, 10, &[2; 10]);
        part.file().write_all_at(&[9; 1], 12).unwrap();
        drop(part);
        let part = Arc::new(Part::open(&path, 30, false).unwrap());
        let found = part.verified().unwrap();
        assert_eq!(found, [There { id: id(3), len: 10 }, There { id: id(1), len: 10 }]);
        assert!(part.is_worth_keeping());
        write(&part, 4, 10, &[2; 10]);
        assert_eq!(part.verified().unwrap().len(), 4, "the old record of the same bytes fits again");
        part.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [[1; 10], [2; 10], [3; 10]].concat());
    }

    #[tokio::test]
    async fn a_whole_of_another_length_begins_anew_and_foreign_files_are_no_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let part = Arc::new(Part::open(&path, 30, false).unwrap());
        write(&part, 1, 0, &[1; 10]);
        drop(part);
        let part = Part::open(&path, 31, false).unwrap();
        assert!(!part.is_worth_keeping());
        assert_eq!(part.file().metadata().unwrap().len(), 0);
        drop(part);
        for bytes in [&b""[..], &[0; 63], &[0; 64], &[0xFF; 200], &[1; 128]] {
            std::fs::write(&path, bytes).unwrap();
            let part = Part::open(&path, 31, false).unwrap();
            assert!(part.verified().unwrap().is_empty(), "{} bytes", bytes.len());
        }
    }

    #[test]
    fn one_process_at_a_time_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let first = Part::open(&path, 1, false).unwrap();
        assert_eq!(Part::open(&path, 1, false).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        Part::open(&path, 1, false).unwrap();
    }

    #[test]
    fn what_is_no_file_of_ours_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("victim"), "precious").unwrap();
        std::os::unix::fs::symlink("victim", folder.path().join("link")).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        assert_eq!(open_alone(&folder.path().join("link")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(open_alone(&folder.path().join("folder")).is_err());
        assert_eq!(std::fs::read_to_string(folder.path().join("victim")).unwrap(), "precious");
    }

    #[tokio::test]
    async fn the_hash_follows_whatever_the_order() {
        let data: Vec<u8> = (0..3_000_000u32).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]).collect();
        let expected: [u8; 16] = Md5::digest(&data).into();
        for (order, hash) in [([0, 1, 2], true), ([2, 0, 1], true), ([2, 1, 0], true), ([0, 2, 1], false)] {
            let folder = tempfile::tempdir().unwrap();
            let part = Arc::new(Part::open(&folder.path().join("p"), data.len() as u64, hash).unwrap());
            for n in order {
                let at = n * 1_000_000;
                write(&part, u8::try_from(n).unwrap(), at as u64, &data[at..at + 1_000_000]);
                tokio::task::yield_now().await;
            }
            assert_eq!(part.md5().await.unwrap(), expected, "{order:?}");
        }
    }
}
