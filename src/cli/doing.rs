//! What a job does, in the words that are said about it.

use super::context::Which;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Objects are moved.
    Moving {
        /// The command's name.
        command: &'static str,
        /// Which way they go.
        way: Way,
    },
    /// Something is done to blobs where they are.
    Changing(Changing),
}

/// Which way objects are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Files to blobs; blobs to blobs through this machine too.
    Up,
    /// Blobs to files.
    Down,
    /// Blobs to nowhere, for measuring.
    Away,
    /// Blobs to blobs, fetched by the service.
    Across,
}

/// A job that changes blobs where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changing {
    /// The command's name.
    pub(crate) command: &'static str,
    /// What it does to blobs: `delete`.
    pub(crate) verb: &'static str,
    /// What is missing where there is nothing to do it to: `no blob`.
    pub(crate) nothing: &'static str,
    /// What it has done: `deleted`.
    pub(crate) done: &'static str,
    /// Whether it only says what it would do.
    pub(crate) dry_run: bool,
    /// Whether more than a place says what is meant.
    pub(crate) selects: bool,
    /// Blobs that earlier runs of the job are done with and that no listing will ever show again.
    pub(crate) gone_earlier: u64,
}

impl Doing {
    /// The command's name.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Doing::Moving { command, .. } => command,
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
            Doing::Changing(Changing { verb, .. }) if filtered => format!("nothing to {verb}: filters leave out all of {source}"),
            Doing::Changing(Changing { verb, nothing, selects: true, .. }) => {
                format!("nothing to {verb}: {nothing} matches {source} and the filters")
            }
            Doing::Changing(Changing { verb, nothing, .. }) => format!("nothing to {verb}: {nothing} matches {source}"),
        }
    }

    /// What is left when a signal ends it.
    pub(crate) fn kept(self, signal: Which) -> String {
        let reason = match signal {
            Which::Interrupt => "interrupted",
            Which::Terminate => "told to terminate",
        };
        let kept = match self {
            Doing::Moving { way: Way::Up, .. } => {
                "blobs that are done stay, of others nothing is visible; blocks of files that have arrived are kept for a week and \
                 not sent again"
            }
            Doing::Moving { way: Way::Across, .. } => {
                "blobs that are done stay, of others nothing is visible; blocks of blobs that have arrived are kept for a week and \
                 not fetched again"
            }
            Doing::Moving { way: Way::Down, .. } => {
                "files that are done stay, others have not got their names; what has come of large ones is kept beside them and \
                 not fetched again"
            }
            Doing::Moving { way: Way::Away, .. } => "nothing was to be kept",
            Doing::Changing(Changing { dry_run: true, .. }) => "nothing was changed",
            Doing::Changing(Changing { done, .. }) => {
                return format!("{reason}: what is {done} stays {done}, the rest is as it was");
            }
        };
        format!("{reason}: {kept}")
    }

    /// What did not have to be done to blocks that were there.
    pub(crate) fn spared(self) -> &'static str {
        match self {
            Doing::Moving { way: Way::Down | Way::Away | Way::Across, .. } => "fetched",
            Doing::Moving { way: Way::Up, .. } | Doing::Changing(_) => "sent",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_told_of_the_way_things_went() {
        for (way, has, lacks) in [
            (Way::Up, "not sent again", "fetched"),
            (Way::Down, "not fetched again", "week"),
            (Way::Across, "blobs that have arrived are kept for a week", "files"),
            (Way::Away, "nothing was to be kept", "stay"),
        ] {
            let said = Doing::Moving { command: "copy", way }.kept(Which::Interrupt);
            assert!(said.starts_with("interrupted: ") && said.contains(has) && !said.contains(lacks), "{said}");
        }
        let changing = Changing {
            command: "remove",
            verb: "delete",
            nothing: "",
            done: "deleted",
            dry_run: false,
            selects: false,
            gone_earlier: 0,
        };
        let said = |dry_run| Doing::Changing(Changing { dry_run, ..changing }).kept(Which::Terminate);
        assert_eq!(said(false), "told to terminate: what is deleted stays deleted, the rest is as it was");
        assert_eq!(said(true), "told to terminate: nothing was changed");
    }
}
