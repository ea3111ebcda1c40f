//! What the journal keeps of a command line that makes a job, and the command line that comes of it when the job is taken up again.
//!
//! Places are kept without their SAS, flags as they were given. Credentials are found anew each time. A signature that stands
//! anywhere else is taken out, and the job cannot be resumed then: it would not do what it did.

use crate::error::{Error, Kind, Result};
use crate::secret::SafeUrl;
use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// See the module's text. Fields may be added; a missing one is as if it were empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Kept {
    /// The command's name; empty for `copy`.
    pub(crate) command: String,
    /// The folder it was run in, which relative paths start from.
    pub(crate) folder: Option<String>,
    /// The first place, or the only one.
    pub(crate) source: String,
    /// The second place.
    pub(crate) destination: Option<String>,
    /// Whether a SAS was taken out of the destination.
    pub(crate) sas: bool,
    /// The same for the source.
    pub(crate) source_sas: bool,
    /// Flags that were given, as `--name=value`.
    pub(crate) flags: Vec<String>,
    /// Why it cannot be taken up again.
    pub(crate) never: Option<String>,
}

/// What is about the screen, or has no meaning for another run.
const NOT_KEPT: &[&str] = &["output_type", "output_level", "log_level", "dry_run", "explain", "source", "destination", "url"];

impl Kept {
    /// From the parsed command line of this command.
    pub(crate) fn of(command: &str, given: &ArgMatches) -> Kept {
        let moves = command == "copy";
        let command = if moves { String::new() } else { command.to_owned() };
        let mut kept = Kept { command, folder: folder(), ..Kept::default() };
        let text = |name: &str| given.try_get_one::<String>(name).ok().flatten().cloned();
        let source = text(if moves { "source" } else { "url" }).unwrap_or_default();
        let (destination, list) = (text("destination"), text("list_of_files"));
        if source == "-" || (moves && destination.is_none()) || list.as_deref() == Some("-") {
            kept.never = Some("it read standard input, which is not there any more".to_owned());
        } else if kept.folder.is_none() {
            kept.never = Some("the name of the folder it ran in cannot be kept".to_owned());
        }
        let (place, had_sas) = without_sas(&source);
        kept.source = kept.safe(&place, "the source");
        kept.source_sas = had_sas;
        if let Some(destination) = destination {
            let (place, had_sas) = without_sas(&destination);
            kept.destination = Some(kept.safe(&place, "the destination"));
            kept.sas = had_sas;
        }
        for id in given.ids().map(clap::Id::as_str) {
            // Options are in lower case; groups of them have the names of types.
            let is_option = !id.starts_with(|c: char| c.is_ascii_uppercase()) && !NOT_KEPT.contains(&id);
            if !is_option || given.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let name = id.replace('_', "-");
            for value in given.get_raw(id).into_iter().flatten() {
                let flag = format!("--{name}={}", value.to_string_lossy());
                let safe = kept.safe(&flag, &format!("--{name}"));
                kept.flags.push(safe);
                if value.to_str().is_none() {
                    kept.never = Some(format!("--{name} is not UTF-8"));
                }
            }
        }
        kept
    }

    /// The command's name.
    pub(crate) fn command(&self) -> &str {
        if self.command.is_empty() { "copy" } else { &self.command }
    }

    /// The command line again, from the name of the program on.
    pub(crate) fn command_line(&self) -> Vec<OsString> {
        let head = ["blobjet", self.command()].into_iter().map(str::to_owned);
        // Behind `--` a place may begin with a dash.
        let places = std::iter::once("--".to_owned()).chain([self.source.clone()]).chain(self.destination.clone());
        head.chain(self.flags.iter().cloned()).chain(places).map(OsString::from).collect()
    }

    /// As the journal has it.
    pub(crate) fn to_json(&self) -> String {
        // Strings and booleans only: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From the journal.
    ///
    /// # Errors
    /// `Unsupported` if it is none of ours.
    pub(crate) fn of_json(text: &str) -> Result<Kept> {
        serde_json::from_str(text)
            .map_err(|e| Error::new(Kind::Unsupported, "cannot understand how the job was started").with_source(e))
    }

    /// The text without signatures; where there was one, the job will not be resumed.
    fn safe(&mut self, text: &str, what: &str) -> String {
        let safe = SafeUrl::new(text).to_string();
        if safe != text {
            self.never = Some(format!("{what} held a signature, which is not kept"));
        }
        safe
    }
}

fn folder() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}

/// A place without what follows the `?` of a URL, and whether there was anything.
fn without_sas(place: &str) -> (String, bool) {
    let is_url = place.split_once("://").is_some_and(|(scheme, _)| {
        let scheme = scheme.to_ascii_lowercase();
        scheme == "http" || scheme == "https"
    });
    match place.split_once('?') {
        Some((url, query)) if is_url => (url.to_owned(), !query.is_empty()),
        _ => (place.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Command;
    use super::super::parse;
    use super::*;

    fn kept(line: &str) -> Kept {
        parse(&args(line)).unwrap().kept.unwrap()
    }

    fn args(line: &str) -> Vec<OsString> {
        ["blobjet", "copy"].into_iter().chain(line.split(' ')).map(Into::into).collect()
    }

    /// The options as the command gets them.
    fn understood(args: &[OsString]) -> String {
        match parse(args).unwrap().cli.command {
            Command::Copy(args) => format!("{args:?}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_same_options_come_back() {
        for line in [
            "a dev://box",
            "d https://a.blob.core.windows.net/c/x%20y --recursive --as-subdir=false --metadata a=b;c=d --put-md5 --block-size-mb 0.25",
            "d az://acct/c --overwrite=ifsourcenewer --follow-symlinks --blob-tags k=v --block-blob-tier Cool --concurrency 3",
            "d dev://c --list-of-files names --list-of-files-nul --content-type text/plain --cap-mbps 8 --check md5 --check-length=true",
            "d dev://c --recursive --recursive=false --recursive",
            "-- -dash dev://c",
        ] {
            let kept = kept(line);
            assert_eq!(kept.never, None, "{line}");
            let again = Kept::of_json(&kept.to_json()).unwrap();
            assert_eq!(understood(&again.command_line()), understood(&args(line)), "{line}");
        }
    }

    #[test]
    fn no_signature_is_kept() {
        let sas = "sv=2025-11-05&sp=w&sig=abc%2Bdef%3D";
        let plain = kept(&format!("d https://a.blob.core.windows.net/c/p?{sas}"));
        assert_eq!(plain.destination.as_deref(), Some("https://a.blob.core.windows.net/c/p"));
        assert!(plain.sas && plain.never.is_none());
        let odd = kept(&format!("d HTTPS://a.blob.core.windows.net/c --content-type=?{sas}"));
        assert!(odd.never.as_deref().unwrap().contains("--content-type"));
        for kept in [plain, odd] {
            assert!(!kept.to_json().contains("abc"), "{}", kept.to_json());
        }
        // A question mark in a path is one.
        assert_eq!(kept("what? dev://c/x?y").source, "what?");
    }

    #[test]
    fn what_was_piped_cannot_be_taken_up_again() {
        for line in ["- dev://c/x", "dev://c/x --from-to PipeBlob", "d dev://c --list-of-files -"] {
            assert!(kept(line).never.unwrap().contains("standard input"), "{line}");
        }
    }

    #[test]
    fn the_screen_is_not_part_of_a_job() {
        let kept = kept("d dev://c --output-type=json --log-level debug --output-level quiet --allow-http");
        assert_eq!(kept.flags, ["--allow-http=true"]);
    }
}
