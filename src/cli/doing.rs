//! What a job does, in the words that are said about it.

use super::context::Which;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Objects are moved.
    Moving {
        /// The command's name.
        command: &'static str,
    },
    /// Something is done to blobs where they are.
    Changing(Changing),
}

/// A job that changes blobs where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changing {
    /// The command's name.
    pub(crate) command: &'static str,
    /// What it does to blobs: `delete`.
    pub(crate) verb: &'static str,
    /// What is said besides where there is nothing to do it to.
    pub(crate) nothing: &'static str,
    /// What it has done: `deleted`.
    pub(crate) done: &'static str,
    /// Whether it only says what it would do.
    pub(crate) dry_run: bool,
    /// Blobs that earlier runs of the job are done with and that no listing will ever show again.
    pub(crate) gone_earlier: u64,
}

impl Doing {
    /// The command's name.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Doing::Moving { command } => command,
            Doing::Changing(changing) => changing.command,
        }
    }

    /// Whether it only says what it would do.
    pub(crate) fn is_dry_run(self) -> bool {
        matches!(self, Doing::Changing(Changing { dry_run: true, .. }))
    }

    /// See [`Changing::gone_earlier`].
    pub(crate) fn gone_earlier(self) -> u64 {
        match self {
            Doing::Moving { .. } => 0,
            Doing::Changing(changing) => changing.gone_earlier,
        }
    }

    /// What is said of a place with nothing in it, or with nothing that filters leave.
    pub(crate) fn nothing(self, source: &str, filtered: bool) -> String {
        match self {
            Doing::Moving { .. } if filtered => format!("nothing to transfer: filters leave out all of {source}"),
            Doing::Moving { .. } => format!("nothing to transfer: {source} has no files"),
            Doing::Changing(Changing { verb, nothing, .. }) => format!("nothing to {verb} at {source}{nothing}"),
        }
    }

    /// What is left when a signal ends it.
    pub(crate) fn kept(self, signal: Which) -> String {
        let reason = match signal {
            Which::Interrupt => "interrupted",
            Which::Terminate => "told to terminate",
        };
        match self {
            Doing::Moving { .. } => format!(
                "{reason}: blobs that are done stay, of others nothing is visible; blocks of files that have arrived are kept for \
                 a week and not sent again"
            ),
            Doing::Changing(Changing { done, .. }) => format!("{reason}: what is {done} stays {done}, the rest is as it was"),
        }
    }
}
