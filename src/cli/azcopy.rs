//! AzCopy's flags that `copy` does not have: some are taken and need nothing done, the others are refused with the reason.
//!
//! None is ever taken and ignored where the user would have wanted something to happen. `docs/from-azcopy.md` says the same for
//! people, and a test keeps the two together.

use super::options::Switch;
use clap::{Arg, ArgMatches, Command};

/// What becomes of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Taken; what it asks for is so anyway, or has no meaning on this system. A boolean.
    Switch,
    /// Taken with one of these values (any, if none is listed), which ask for nothing else than what is done anyway.
    Value(&'static [&'static str]),
    /// Refused, with the reason.
    Refused(&'static str),
}

const SERVICE_TO_SERVICE: &str = "it is about copies from service to service, which blobjet does not offer yet";
const WINDOWS: &str = "file attributes of Windows do not exist on this system";
const FILES: &str = "it is about Azure Files, and blobjet writes block blobs";
const CPK: &str = "keys provided by the client are not offered yet";
const DEBUGGING: &str = "it is a debugging aid of AzCopy's own";

/// Name and verdict, by name.
pub(crate) const FLAGS: &[(&str, Verdict)] = &[
    ("await-continue", Verdict::Refused(DEBUGGING)),
    ("await-open", Verdict::Refused(DEBUGGING)),
    ("backup", Verdict::Refused("backup privileges exist on Windows only")),
    ("blob-type", Verdict::Value(&["Detect", "BlockBlob"])),
    ("check-length", Verdict::Switch),
    ("check-version", Verdict::Refused("blobjet makes no network call that nobody needs")),
    ("cpk-by-name", Verdict::Refused(CPK)),
    ("cpk-by-value", Verdict::Refused(CPK)),
    ("debug-skip-files", Verdict::Refused(DEBUGGING)),
    ("disable-auto-decoding", Verdict::Switch),
    ("exclude-attributes", Verdict::Refused(WINDOWS)),
    ("exclude-blob-type", Verdict::Refused(SERVICE_TO_SERVICE)),
    ("force-if-read-only", Verdict::Switch),
    ("hardlinks", Verdict::Value(&["follow"])),
    ("include-attributes", Verdict::Refused(WINDOWS)),
    ("include-directory-stub", Verdict::Refused(SERVICE_TO_SERVICE)),
    ("list-of-versions", Verdict::Refused("versions of blobs cannot be copied yet")),
    ("page-blob-tier", Verdict::Value(&["None"])),
    ("posix-properties-style", Verdict::Value(&["standard"])),
    ("preserve-info", Verdict::Refused(FILES)),
    ("preserve-owner", Verdict::Refused("--preserve-posix-properties keeps owner and group with the other properties")),
    ("preserve-permissions", Verdict::Refused(FILES)),
    ("preserve-smb-info", Verdict::Refused(FILES)),
    ("preserve-smb-permissions", Verdict::Refused(FILES)),
    ("preserve-symlinks", Verdict::Refused("links cannot be stored as links yet; --follow-symlinks stores what they point to")),
    ("s2s-detect-source-changed", Verdict::Switch),
    ("trailing-dot", Verdict::Value(&["Enable"])),
    ("trusted-microsoft-suffixes", Verdict::Value(&[])),
];

/// Why AzCopy's `--name` is refused, if it is.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    FLAGS.iter().find_map(|(flag, verdict)| match verdict {
        Verdict::Refused(reason) if *flag == name => Some(*reason),
        _ => None,
    })
}

/// Adds the flags that are taken to a command, out of sight.
pub(crate) fn add_taken(command: Command) -> Command {
    add(command, |_| true)
}

fn add(command: Command, which: impl Fn(&str) -> bool) -> Command {
    FLAGS.iter().filter(|(name, _)| which(name)).fold(command, |command, (name, verdict)| {
        let arg = Arg::new(*name).long(*name).hide(true);
        match verdict {
            Verdict::Refused(_) => command,
            // Without a default, so that it tells whether it was given.
            Verdict::Switch => command.arg(arg.switch(false).default_value(None)),
            Verdict::Value([]) => command.arg(arg),
            Verdict::Value(values) => command.arg(arg.ignore_case(true).value_parser(values.to_vec())),
        }
    })
}

/// Those of them that `azcopy bench` has, to that command.
pub(crate) fn add_taken_by_bench(command: Command) -> Command {
    add(command, |name| ["blob-type", "check-length", "trusted-microsoft-suffixes"].contains(&name))
}

/// Those of them that `azcopy remove` and `azcopy set-properties` have, to those commands: what the places are is plain.
pub(crate) fn add_taken_by_changes(command: Command) -> Command {
    let from_to = Arg::new("from-to").long("from-to").hide(true).ignore_case(true);
    add(command, |name| ["trailing-dot", "trusted-microsoft-suffixes"].contains(&name))
        .arg(from_to.value_parser(["BlobTrash", "BlobNone"]))
}

/// The taken flags that were given, for a note in the trace.
pub(crate) fn given(matches: &ArgMatches) -> Vec<&'static str> {
    let taken = FLAGS.iter().filter(|(_, verdict)| !matches!(verdict, Verdict::Refused(_)));
    taken.map(|(name, _)| *name).filter(|name| matches.try_contains_id(name).unwrap_or(false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_has_no_doubles() {
        assert!(FLAGS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
