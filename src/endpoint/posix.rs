//! Time of last change, permissions and owner of a file as metadata of a blob, in AzCopy's words: `modtime` in nanoseconds since
//! 1970, `permissions` the mode, `posix_owner` and `posix_group` their numbers, all decimal.

use rustix::fs::{Gid, Uid, fchown};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bits of a mode that say who may do what. Setuid and setgid are not taken from a blob: who may write it could become another.
const PERMISSIONS: u32 = 0o1777;

/// What is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Posix {
    pub(super) modified: Option<SystemTime>,
    pub(super) mode: Option<u32>,
    pub(super) owner: Option<u32>,
    pub(super) group: Option<u32>,
}

/// How much of a file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The time of its last change.
    Times,
    /// Permissions, owner and group as well.
    All,
}

impl Posix {
    pub(super) fn of_file(file: &Metadata) -> Posix {
        Posix { modified: file.modified().ok(), mode: Some(file.mode()), owner: Some(file.uid()), group: Some(file.gid()) }
    }

    /// Reads metadata of a blob; names are told apart without regard to case. What cannot be read is not there.
    pub(super) fn of(metadata: &[(String, String)]) -> Posix {
        let get = |name: &str| metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
        let number = |name: &str| get(name).and_then(|text| text.parse().ok());
        Posix {
            modified: get("modtime").and_then(|text| moment(text.parse().ok()?)),
            mode: number("permissions"),
            owner: number("posix_owner"),
            group: number("posix_group"),
        }
    }

    /// As metadata of a blob.
    pub(super) fn metadata(&self, stored: Stored) -> Vec<(String, String)> {
        let numbers = [("permissions", self.mode), ("posix_owner", self.owner), ("posix_group", self.group)];
        let mut all: Vec<(String, String)> =
            self.modified.map(|time| ("modtime".to_owned(), nanoseconds(time).to_string())).into_iter().collect();
        if stored == Stored::All {
            all.extend(numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_string()))));
        }
        all
    }

    /// Gives a file these permissions, and owner and group where that is allowed.
    ///
    /// # Errors
    /// Those of the filesystem, but for a refusal to give files away.
    pub(super) fn apply(&self, file: &File) -> io::Result<()> {
        if self.owner.is_some() || self.group.is_some() {
            match fchown(file, self.owner.map(Uid::from_raw), self.group.map(Gid::from_raw)) {
                // Only the superuser gives files away; the others get their own.
                Ok(()) | Err(rustix::io::Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match self.mode {
            Some(mode) => file.set_permissions(Permissions::from_mode(mode & PERMISSIONS)),
            None => Ok(()),
        }
    }
}

fn nanoseconds(time: SystemTime) -> i128 {
    let whole = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    time.duration_since(UNIX_EPOCH).map_or_else(|before| -whole(before.duration()), whole)
}

fn moment(nanoseconds: i128) -> Option<SystemTime> {
    let distance = Duration::from_nanos(u64::try_from(nanoseconds.unsigned_abs()).ok()?);
    if nanoseconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for nanos in [0, 1_768_465_800_123_456_789, -1_000_000_001] {
            let posix = Posix { modified: moment(nanos), mode: Some(0o100_640), owner: Some(1000), group: Some(7) };
            let metadata = posix.metadata(Stored::All);
            let expected = [
                ("modtime", nanos.to_string()),
                ("permissions", "33184".into()),
                ("posix_owner", "1000".into()),
                ("posix_group", "7".into()),
            ];
            assert_eq!(metadata, expected.map(|(name, value)| (name.to_owned(), value)));
            assert_eq!(Posix::of(&metadata), posix);
            let times = Posix { modified: posix.modified, ..Posix::default() };
            assert_eq!(Posix::of(&posix.metadata(Stored::Times)), times);
        }
    }

    #[test]
    fn names_come_in_any_case_and_nonsense_is_not_there() {
        let pairs = |list: &[(&str, &str)]| list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>();
        let read = Posix::of(&pairs(&[("Modtime", "5"), ("PERMISSIONS", "420")]));
        assert_eq!((read.modified, read.mode), (moment(5), Some(0o644)));
        let nonsense =
            pairs(&[("modtime", "soon"), ("permissions", "-1"), ("posix_owner", "root"), ("posix_group", "4294967296")]);
        assert_eq!(Posix::of(&nonsense), Posix::default());
        assert_eq!(Posix::of(&pairs(&[("modtime", "99999999999999999999999")])).modified, None);
    }

    #[test]
    fn setuid_is_not_taken() {
        let file = tempfile::tempfile().unwrap();
        Posix { mode: Some(0o104_755), ..Posix::default() }.apply(&file).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o755);
    }
}
