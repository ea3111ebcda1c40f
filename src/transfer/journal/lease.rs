//! Which jobs have a living process: each holds a lock on a file named after the job. The kernel lets go of it however the
//! process ends, so there is nothing to clean up that could be wrong; what is left is an empty file.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tries to take a lease: somebody who only looks holds it for an instant.
const TRIES: u32 = 5;

/// Held while a job runs, or is being removed. Dropping it gives it back.
#[derive(Debug)]
pub struct Lease {
    _locked: File,
    path: PathBuf,
}

impl Lease {
    /// Takes the lease on a job; `None` if somebody else has it.
    pub(super) fn take(folder: &Path, id: &str) -> io::Result<Option<Lease>> {
        let path = path(folder, id);
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        for _ in 0..TRIES {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            match file.try_lock() {
                // Whoever had it may have removed the file between our opening and locking it: then this lock says nothing.
                Ok(()) if is_at(&file, &path)? => return Ok(Some(Lease { _locked: file, path })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Whether somebody has it. Where that cannot be told, nobody is taken to.
    pub(super) fn is_held(folder: &Path, id: &str) -> bool {
        let Ok(file) = File::open(path(folder, id)) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // While the lock is held, so that nobody takes a file that is about to go. If it stays, it is an empty file.
        let _ = fs::remove_file(&self.path);
    }
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join("running").join(id)
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_seen_by_others() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!Lease::is_held(dir.path(), "a"));
        let lease = Lease::take(dir.path(), "a").unwrap().unwrap();
        assert!(Lease::is_held(dir.path(), "a"));
        assert!(Lease::take(dir.path(), "a").unwrap().is_none());
        assert!(Lease::take(dir.path(), "b").unwrap().is_some());
        drop(lease);
        assert!(!Lease::is_held(dir.path(), "a"));
        assert!(Lease::take(dir.path(), "a").unwrap().is_some());
        assert_eq!(fs::read_dir(dir.path().join("running")).unwrap().count(), 0, "nothing is left behind");
    }
}
