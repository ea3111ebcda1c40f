//! Exit codes, in one place. `docs/semantics.md` lists them for people.

use super::context::Which;
use crate::error::{Error, Kind};
use std::process::ExitCode;

/// How a run of the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All that was asked for is done.
    Done,
    /// Some objects failed; the others are done.
    SomeFailed,
    /// The command line is wrong; nothing was started.
    Usage,
    /// What was to be read does not exist.
    SourceNotFound,
    /// The credential is missing, wrong, expired or lacks a right.
    AccessRefused,
    /// Given up after retries, or the service cannot be reached at all.
    GaveUp,
    /// Bytes differ from their checksum.
    Corrupt,
    /// Nothing was transferred, and `--error-on-no-transfer` was given.
    NothingTransferred,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::SomeFailed => 1,
            Exit::Usage => 2,
            Exit::SourceNotFound => 3,
            Exit::AccessRefused => 4,
            Exit::GaveUp => 5,
            Exit::Corrupt => 6,
            Exit::NothingTransferred => 9,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }

    /// The end of a command that failed with this error. A missing container is nothing to read from for `list`, and a failed
    /// object for `copy`: those commands say which.
    pub(crate) fn of_kind(kind: Kind) -> Exit {
        match kind {
            Kind::Usage => Exit::Usage,
            Kind::SourceNotFound => Exit::SourceNotFound,
            Kind::AccessRefused => Exit::AccessRefused,
            Kind::GaveUp | Kind::Unreachable => Exit::GaveUp,
            Kind::Corrupt => Exit::Corrupt,
            Kind::Cancelled => Exit::Interrupted,
            _ => Exit::SomeFailed,
        }
    }

    /// As [`Exit::of_kind`], for a whole error.
    pub(crate) fn of(error: &Error) -> Exit {
        Exit::of_kind(error.kind())
    }

    /// The end of a job in which objects failed for these reasons, and `done` others went well. A checksum mismatch always
    /// shows; any other code than 1 only where nothing was done and there was one reason.
    pub(crate) fn of_failures(kinds: impl IntoIterator<Item = Kind>, done: u64) -> Exit {
        let mut ends: Vec<Exit> = kinds
            .into_iter()
            .map(|kind| match Exit::of_kind(kind) {
                // An entry of a list that is not there: the source as a whole is.
                Exit::SourceNotFound => Exit::SomeFailed,
                exit => exit,
            })
            .collect();
        ends.dedup();
        match ends.as_slice() {
            [] => Exit::Done,
            many if many.contains(&Exit::Corrupt) => Exit::Corrupt,
            [one] if done == 0 => *one,
            _ => Exit::SomeFailed,
        }
    }
}

impl From<Which> for Exit {
    fn from(signal: Which) -> Self {
        match signal {
            Which::Interrupt => Exit::Interrupted,
            Which::Terminate => Exit::Terminated,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reason_for_everything_is_the_exit_code() {
        for (kinds, done, code) in [
            (&[][..], 5, 0),
            (&[Kind::AccessRefused, Kind::AccessRefused], 0, 4),
            (&[Kind::AccessRefused], 3, 1),
            (&[Kind::GaveUp, Kind::Name], 0, 1),
            (&[Kind::GaveUp, Kind::Corrupt], 9, 6),
            (&[Kind::GaveUp], 0, 5),
            (&[Kind::SourceUnreadable], 0, 1),
            (&[Kind::SourceNotFound], 0, 1),
        ] {
            assert_eq!(Exit::of_failures(kinds.iter().copied(), done).code(), code, "{kinds:?} {done}");
        }
    }
}
