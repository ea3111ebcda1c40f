//! The end of a download: what has come is compared with what should have, gets times and permissions, and then its name.

use crate::attributes::Replace;
use crate::endpoint::file_sink::unwritable;
use crate::endpoint::name::shown;
use crate::endpoint::posix::Posix;
use crate::endpoint::{Reader, nameless, unpacked};
use crate::error::{Error, Kind, Result};
use rustix::fs::{RenameFlags, renameat_with};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, FileTimes, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is done about the MD5 that is stored with a blob, in AzCopy's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckMd5 {
    /// It is not looked at.
    NoCheck,
    /// A difference is told and no failure.
    LogOnly,
    /// A difference is a failure.
    #[default]
    FailIfDifferent,
    /// So is that none is stored.
    FailIfDifferentOrMissing,
}

/// What of an object is kept besides its bytes, and how it is checked.
#[derive(Debug, Clone, Default)]
pub struct Handling {
    /// The stored MD5.
    pub check_md5: CheckMd5,
    /// Its time of last change at the service becomes the file's.
    pub last_modified: bool,
    /// The time of last change that was stored with it by an upload does, where there is one.
    pub times: bool,
    /// So do permissions and, for those who may, owner and group.
    pub posix: bool,
    /// What is compressed by its Content-Encoding is unpacked.
    pub decompress: bool,
}

/// Hears of what is worth telling and no failure.
pub type Tell = dyn Fn(&str) + Send + Sync;

/// A file that is whole and not yet under its name.
pub(super) struct Arrival<'a> {
    pub(super) file: &'a File,
    /// The name it has, or, where it is [`nameless`], one it can have meanwhile.
    pub(super) temporary: &'a Path,
    pub(super) nameless: bool,
    pub(super) path: &'a Path,
    /// The file that is there and will be replaced.
    pub(super) there: Option<&'a Metadata>,
    pub(super) reader: &'a dyn Reader,
    /// MD5 of what has come, where one is expected.
    pub(super) found: Option<[u8; 16]>,
    /// Who hears of what is no failure.
    pub(super) tell: &'a Tell,
}

impl Handling {
    /// The MD5 to compare with.
    pub(super) fn expected(&self, reader: &dyn Reader) -> Option<[u8; 16]> {
        reader.carried().and_then(|carried| carried.content_md5).filter(|_| self.check_md5 != CheckMd5::NoCheck)
    }

    /// Refuses what has no stored MD5 where one is asked for, before it is fetched. `what` is what comes of it.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn check_has_md5(&self, reader: &dyn Reader, what: &str) -> Result<()> {
        if self.check_md5 == CheckMd5::FailIfDifferentOrMissing && self.expected(reader).is_none() {
            return Err(Error::new(Kind::Conflict, format!("no MD5 is stored with the blob of {what}"))
                .with_advice("--check-md5 FailIfDifferent takes blobs without one"));
        }
        Ok(())
    }

    /// Checks it, dresses it and names it.
    ///
    /// # Errors
    /// `Corrupt` where the MD5 differs (the bytes are kept under another name then), `AlreadyExists` where it must not replace
    /// what is there, `Local` for what the filesystem refuses.
    pub(super) fn arrive(&self, arrival: Arrival<'_>, replace: Replace) -> Result<()> {
        self.check_md5(&arrival)?;
        let Arrival { file, temporary, nameless, path, there, reader, .. } = arrival;
        if let Some(packing) = unpacked::packing(reader.carried()).filter(|_| self.decompress) {
            let whole = unpacked::unpack(packing, file, temporary)?;
            self.dress(&whole, path, there, reader)?;
            return name(temporary, path, replace);
        }
        self.dress(file, path, there, reader)?;
        if nameless {
            match nameless::name(file, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && replace != Replace::Never => {
                    // It came there meanwhile, and is replaced like any other.
                    nameless::name(file, temporary).map_err(|error| unwritable("write", path, error))?;
                    self.dress(file, path, fs::metadata(path).ok().as_ref(), reader)?;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(path)),
                other => return other.map_err(|error| unwritable("write", path, error)),
            }
        }
        name(temporary, path, replace)
    }

    /// Whether a file without a name will do until all of it is there.
    pub(super) fn takes_nameless(&self) -> bool {
        // What is unpacked is unpacked beside its name.
        !self.decompress
    }

    /// Whether stored MD5s are looked at.
    pub(crate) fn checks_md5(&self) -> bool {
        self.check_md5 != CheckMd5::NoCheck
    }

    /// Compares the MD5 of what has come, `what`, with the stored one. What is only to be told comes back.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn judge_md5(&self, reader: &dyn Reader, found: Option<[u8; 16]>, what: &str) -> Result<Option<String>> {
        match (self.expected(reader), found) {
            (Some(stored), Some(found)) if stored != found => {
                let text = format!("the MD5 of {what} is {}, and {} is stored with the blob", hex(found), hex(stored));
                if self.check_md5 == CheckMd5::LogOnly { Ok(Some(text)) } else { Err(Error::new(Kind::Corrupt, text)) }
            }
            _ => Ok(None),
        }
    }

    fn check_md5(&self, arrival: &Arrival<'_>) -> Result<()> {
        match self.judge_md5(arrival.reader, arrival.found, &shown(arrival.path.as_os_str())) {
            Ok(note) => {
                if let Some(note) = note {
                    (arrival.tell)(&note);
                }
                Ok(())
            }
            Err(error) => {
                let kept = kept_as(arrival.path);
                let named = if arrival.nameless { nameless::name(arrival.file, arrival.temporary) } else { Ok(()) };
                let advice = match named.and_then(|()| fs::rename(arrival.temporary, &kept)) {
                    Ok(()) => format!(
                        "what has come is kept as {}: if it is right, the stored MD5 is wrong (--check-md5 LogOnly takes it)",
                        shown(kept.as_os_str())
                    ),
                    Err(cause) => format!("what has come could not be kept as {}: {cause}", shown(kept.as_os_str())),
                };
                Err(error.with_advice(advice))
            }
        }
    }

    /// Times, permissions, owner.
    fn dress(&self, file: &File, path: &Path, there: Option<&Metadata>, reader: &dyn Reader) -> Result<()> {
        let failed = |error| unwritable("set times or permissions of", path, error);
        if self.posix {
            self.stored(reader).apply(file).map_err(failed)?;
        } else if let Some(there) = there.filter(|there| there.is_file()) {
            // As the one it replaces.
            file.set_permissions(there.permissions()).map_err(failed)?;
        }
        match self.time(reader) {
            Some(time) => file.set_times(FileTimes::new().set_modified(time)).map_err(failed),
            None => Ok(()),
        }
    }

    /// What of a file's properties an upload has stored, as far as it is wanted.
    fn stored(&self, reader: &dyn Reader) -> Posix {
        let carried = reader.carried().filter(|_| self.times || self.posix);
        carried.map(|carried| Posix::of(&carried.metadata)).unwrap_or_default()
    }

    /// The time of change that a file gets, where it does not keep that of its writing.
    fn time(&self, reader: &dyn Reader) -> Option<SystemTime> {
        let own = || reader.facts().modified.filter(|_| self.last_modified || self.times);
        self.stored(reader).modified.or_else(own)
    }

    /// Whether what is `there` can be what arrived at that moment: it has its length, and nobody has written to it since. A file
    /// that was given a time to come has that one still.
    pub(super) fn is_as_it_arrived(&self, there: &fs::Metadata, reader: &dyn Reader, arrived: SystemTime) -> bool {
        let unpacked = self.decompress && unpacked::packing(reader.carried()).is_some();
        let len = unpacked || reader.facts().len == Some(there.len());
        len && there.modified().is_ok_and(|changed| changed <= arrived || self.time(reader) == Some(changed))
    }
}

/// Where bytes are kept that are not what they should be.
fn kept_as(path: &Path) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(".md5-differs");
    path.with_file_name(name)
}

fn hex(hash: [u8; 16]) -> String {
    hash.iter().fold(String::with_capacity(32), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Refuses a name that a folder, a device or a pipe has, as what is `there` tells.
///
/// # Errors
/// `Local`.
pub(super) fn check_free(path: &Path, there: &Metadata) -> Result<()> {
    if there.is_dir() {
        return Err(has_folder(path));
    }
    if !there.is_file() {
        return Err(Error::new(Kind::Local, format!("cannot write {}: it is a device, pipe or socket", shown(path.as_os_str())))
            .with_advice("write to standard output instead: blobjet copy URL - > FILE"));
    }
    Ok(())
}

fn has_folder(path: &Path) -> Error {
    Error::new(Kind::Local, format!("cannot write {}: a folder has that name", shown(path.as_os_str())))
        .with_advice("a blob can have the name of a folder, a file cannot: rename one of the two, or use another folder")
}

/// Gives an unfinished file its name, in one step, under a condition.
fn name(temporary: &Path, path: &Path, replace: Replace) -> Result<()> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(libc::EISDIR | libc::ENOTEMPTY) => has_folder(path),
        _ => unwritable("write", path, error),
    };
    if replace == Replace::Never {
        match renameat_with(rustix::fs::CWD, temporary, rustix::fs::CWD, path, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::EXIST) => return Err(exists(path)),
            // Filesystems that cannot do that in one step.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
    may_replace(path, replace)?;
    fs::rename(temporary, path).map_err(failed)
}

fn exists(path: &Path) -> Error {
    Error::new(Kind::AlreadyExists, format!("{} is there already", shown(path.as_os_str())))
}

/// Refuses to take the place of what is there, where the condition does not hold.
///
/// # Errors
/// `AlreadyExists`.
pub(super) fn may_replace(path: &Path, replace: Replace) -> Result<()> {
    let newer = |moment: SystemTime, there: &Metadata| there.modified().is_ok_and(|theirs| theirs >= moment);
    match replace {
        Replace::Always => Ok(()),
        Replace::Never if fs::symlink_metadata(path).is_ok() => Err(exists(path)),
        Replace::IfOlderThan(moment) if fs::metadata(path).is_ok_and(|there| newer(moment, &there)) => Err(exists(path)),
        Replace::Never | Replace::IfOlderThan(_) => Ok(()),
    }
}
