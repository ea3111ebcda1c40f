//! The folder of a store that survives: segment files with the bytes, and a SQLite file with everything else.
//!
//! Bytes are appended to segments (`segments/N`), each body in one run reserved by its length; the rows that point at them are
//! written after the bytes and before the answer. So a process killed at any moment leaves at worst bytes that no row names,
//! and never a row that names bytes which are not there. That holds for the death of the process; after a power failure the
//! system's page cache may be missing, as nothing is synced to the device. A segment that no row needs any more is removed.

use super::payload::Extent;
use super::rows::Rows;
use crate::{Error, Kind, Result};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A segment takes bodies until it is this long. One live blob keeps its whole segment, so it is not longer.
const SEGMENT: u64 = 64 * 1024 * 1024;

/// One file of bytes.
#[derive(Debug)]
pub(crate) struct Segment {
    file: File,
    path: PathBuf,
}

impl Segment {
    /// Fills `out` from the file at `offset`.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, out, offset)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }
}

/// An open store folder. Only one process at a time has it.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    segments: Mutex<Segments>,
    pub(crate) rows: Rows,
}

#[derive(Debug, Default)]
struct Segments {
    /// Every segment with live bytes, the one being filled among them.
    files: BTreeMap<u64, Arc<Segment>>,
    /// Number and length of the one being filled.
    current: Option<(u64, u64)>,
    last: u64,
}

impl Disk {
    /// Opens or makes the folder.
    ///
    /// # Errors
    /// [`Kind::Local`], naming the folder: it is in use by another process, was written by a newer version, or cannot be
    /// written.
    pub(crate) fn open(folder: &Path) -> Result<Disk> {
        let failed =
            |e: io::Error| Error::new(Kind::Local, format!("cannot open the store in {}", folder.display())).with_source(e);
        std::fs::create_dir_all(folder.join("segments")).map_err(failed)?;
        let rows = Rows::open(folder)?;
        let mut segments = Segments::default();
        for entry in std::fs::read_dir(folder.join("segments")).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(number) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse().ok()) else { continue };
            let file = File::open(&path).map_err(failed)?;
            segments.files.insert(number, Arc::new(Segment { file, path }));
            segments.last = segments.last.max(number);
        }
        Ok(Disk { folder: folder.to_owned(), segments: Mutex::new(segments), rows })
    }

    /// The segment of this number, for metadata read back.
    pub(crate) fn segment(&self, number: u64) -> Option<Arc<Segment>> {
        self.lock().files.get(&number).cloned()
    }

    /// Takes room for a body of `len` bytes.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn reserve(&self, len: u64) -> io::Result<Extent> {
        let mut segments = self.lock();
        let (number, used) = match segments.current {
            Some((number, used)) if used == 0 || used.saturating_add(len) <= SEGMENT => (number, used),
            _ => {
                segments.current = None;
                segments.reclaim();
                let number = segments.last + 1;
                let path = self.folder.join("segments").join(number.to_string());
                let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
                segments.files.insert(number, Arc::new(Segment { file, path }));
                segments.last = number;
                (number, 0)
            }
        };
        segments.current = Some((number, used + len));
        let file = segments.files.get(&number).cloned();
        Ok(Extent { segment: number, offset: used, len, file })
    }

    /// Writes part of a body at `at` within its extent.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn write(&self, extent: &Extent, at: u64, bytes: &[u8]) -> io::Result<()> {
        match &extent.file {
            Some(file) => file.write(extent.offset + at, bytes),
            None => Err(io::Error::other("segment file not attached")),
        }
    }

    /// Removes segments that nothing points into any more.
    pub(crate) fn reclaim(&self) {
        self.lock().reclaim();
    }

    fn lock(&self) -> MutexGuard<'_, Segments> {
        // Nothing in here panics half way, so the table is whole even if a holder's thread died.
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segments {
    /// Handles are counted: a segment whose only owner is this table has no live bytes, and none can come back to life because
    /// new handles are only made from living ones or for the current segment, under the same lock.
    fn reclaim(&mut self) {
        let current = self.current.map(|(number, _)| number);
        self.files.retain(|number, segment| {
            let live = Some(*number) == current || Arc::strong_count(segment) > 1;
            if !live && let Err(e) = std::fs::remove_file(&segment.path) {
                tracing::warn!("cannot remove {}: {e}", segment.path.display());
            }
            live
        });
    }
}
