//! The options of `copy` about downloads, and about what files and blobs keep of each other.

use super::options::Switch;
use crate::endpoint::arrival::{CheckMd5, Handling};
use crate::endpoint::posix::Stored;
use clap::{Args, ValueEnum};

/// See the module's text.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DownloadArgs {
    /// Stored MD5 of what is downloaded: NoCheck, LogOnly, FailIfDifferent (default), FailIfDifferentOrMissing
    #[arg(long, value_enum, ignore_case = true, hide_possible_values = true, value_name = "HOW", hide_short_help = true)]
    pub(crate) check_md5: Option<CheckMd5Arg>,
    /// Unpack what is gzip or deflate by its Content-Encoding
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) decompress: bool,
    /// Downloaded files get the time of their blob's last change
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) preserve_last_modified_time: bool,
    /// Store each file's time with its blob; give it back on download
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) preserve_times: bool,
    /// The same for time, permissions, owner and group
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) preserve_posix_properties: bool,
}

/// `--check-md5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckMd5Arg {
    #[value(name = "NoCheck")]
    NoCheck,
    #[value(name = "LogOnly")]
    LogOnly,
    #[value(name = "FailIfDifferent")]
    FailIfDifferent,
    #[value(name = "FailIfDifferentOrMissing")]
    FailIfDifferentOrMissing,
}

impl From<CheckMd5Arg> for CheckMd5 {
    fn from(arg: CheckMd5Arg) -> CheckMd5 {
        match arg {
            CheckMd5Arg::NoCheck => CheckMd5::NoCheck,
            CheckMd5Arg::LogOnly => CheckMd5::LogOnly,
            CheckMd5Arg::FailIfDifferent => CheckMd5::FailIfDifferent,
            CheckMd5Arg::FailIfDifferentOrMissing => CheckMd5::FailIfDifferentOrMissing,
        }
    }
}

impl DownloadArgs {
    /// What files keep of their blobs.
    pub(crate) fn handling(&self) -> Handling {
        Handling {
            check_md5: self.check_md5.map(CheckMd5::from).unwrap_or_default(),
            last_modified: self.preserve_last_modified_time,
            times: self.preserve_times,
            posix: self.preserve_posix_properties,
            decompress: self.decompress,
        }
    }

    /// What blobs keep of their files.
    pub(crate) fn stored(&self) -> Option<Stored> {
        match (self.preserve_posix_properties, self.preserve_times) {
            (true, _) => Some(Stored::All),
            (false, true) => Some(Stored::Times),
            (false, false) => None,
        }
    }
}
