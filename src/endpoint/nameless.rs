//! Files that have no name until they are whole (`O_TMPFILE`, open(2)): one step in the folder instead of two, and nothing is left
//! behind however this process ends. Not every filesystem has them; whoever asks must have another way.

use rustix::fs::{AtFlags, CWD, linkat};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A new file in this folder, without a name: it is gone when it is closed unless it is given one.
///
/// # Errors
/// Those of the filesystem, `EOPNOTSUPP` and `EISDIR` among them where it has no such files.
pub(super) fn open(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).open(folder)
}

/// Gives it a name that nothing has.
///
/// # Errors
/// Those of the filesystem, `AlreadyExists` among them.
pub(super) fn name(file: &File, path: &Path) -> io::Result<()> {
    // By its place in /proc: the way that needs no privilege before Linux 6.10.
    let at = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, at, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Whether such files can be made in this folder and be given a name; tried with the name `free`, which is free again afterwards.
pub(super) fn are_possible(folder: &Path, free: &Path) -> bool {
    open(folder).and_then(|file| name(&file, free)).and_then(|()| fs::remove_file(free)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_is_seen_only_once_it_has_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        if !are_possible(folder.path(), &folder.path().join("free")) {
            return;
        }
        assert_eq!(names(), 0);
        let mut file = open(folder.path()).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(names(), 0);
        let path = folder.path().join("x");
        name(&file, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(name(&file, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(open(folder.path()).unwrap());
        assert_eq!(names(), 1);
    }
}
