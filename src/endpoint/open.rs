//! From an argument to an endpoint: which kind of place it is, and the source it makes.
//!
//! A new kind of place is a file beside this one and an arm here.

use crate::endpoint::file::{FileSource, ReadMode, What};
use crate::endpoint::landing::{Ask, Landing, SourceKind, land, last_name};
use crate::endpoint::list_of_files::ListOfFiles;
use crate::endpoint::name::{shown, usable};
use crate::endpoint::patience::patiently_here;
use crate::endpoint::posix::Stored;
use crate::endpoint::selection::Selection;
use crate::endpoint::stdio::StdinSource;
use crate::endpoint::walk::{FIFO, Rules, special};
use crate::endpoint::{Source, glob};
use crate::error::{Error, Kind, Result};
use crate::rest::location::{Location, Scheme};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What an argument means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A path on this machine, or a pattern of them.
    Local(String),
    /// `-`.
    Stdio,
    /// `null:` and `/dev/null`: what goes there is dropped.
    Null,
    /// A place at the service.
    Remote(Box<Location>),
    /// A place at the embedded service, which the command line starts and makes a [`Place::Remote`] of.
    Dev {
        /// Container.
        container: Option<String>,
        /// Blob or prefix, raw; never empty.
        path: Option<String>,
    },
}

/// Tells what an argument means. Looks at the text alone: no file is looked for, no request is made.
///
/// # Errors
/// `Usage` for a URL that cannot be a place at the service. Secrets in it are not repeated.
pub fn place(arg: &str) -> Result<Place> {
    let scheme = arg.split_once("://").map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest));
    match scheme.as_ref().map(|(scheme, rest)| (scheme.as_str(), *rest)) {
        _ if arg == "-" => Ok(Place::Stdio),
        _ if arg == "null:" || arg == "/dev/null" => Ok(Place::Null),
        _ if arg.is_empty() => Err(Error::new(Kind::Usage, "cannot take an empty argument for a place")),
        Some(("http" | "https", _)) => Ok(Place::Remote(Box::new(Location::parse(arg)?))),
        Some(("az" | "dev", rest)) if has_sas(rest) => {
            Err(Error::new(Kind::Usage, "cannot take a SAS in an az:// or dev:// place, where ? is a character like any other")
                .with_advice("write https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS, or set AZURE_STORAGE_SAS_TOKEN"))
        }
        Some(("az", rest)) => azure(rest).map(|location| Place::Remote(Box::new(location))),
        Some(("dev", rest)) => {
            let (container, path) = container_and_path(rest);
            Ok(Place::Dev { container, path })
        }
        _ => Ok(Place::Local(arg.to_owned())),
    }
}

/// `az://account/container/path`: names as they are, nothing in them is decoded.
/// Whether a signature was pasted behind a place. Taken for part of a name, it would be stored and shown.
fn has_sas(rest: &str) -> bool {
    rest.split_once('?').is_some_and(|(_, query)| query.split(['&', ';']).any(|pair| pair.starts_with("sig=")))
}

fn azure(rest: &str) -> Result<Location> {
    let (account, path) = rest.split_once('/').unwrap_or((rest, ""));
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !(3..=24).contains(&account.len()) || !account.chars().all(letters) {
        // An account's name is 3 to 24 lower-case letters and digits ("Storage account overview").
        return Err(Error::new(Kind::Usage, "cannot take what follows az:// for a storage account")
            .with_advice("write az://ACCOUNT/CONTAINER/PATH; an account is 3 to 24 lower-case letters and digits"));
    }
    let (container, blob) = container_and_path(path);
    Ok(Location {
        scheme: Scheme::Https,
        host: format!("{account}.blob.core.windows.net"),
        port: None,
        account: Some(account.to_owned()),
        path_style: false,
        container,
        blob,
        sas: None,
        embedded: false,
    })
}

fn container_and_path(text: &str) -> (Option<String>, Option<String>) {
    let (container, path) = text.split_once('/').unwrap_or((text, ""));
    let full = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    (full(container), full(path))
}

/// How a source is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Whether folders are taken with all that is in them.
    pub recursive: bool,
    /// Whether a folder lands under its own name.
    pub as_subdir: bool,
    /// Whether symbolic links in folders are followed.
    pub follow_symlinks: bool,
    /// Whether a folder is listed in the order of paths, byte by byte, each file with its length and time.
    pub ordered: bool,
    /// How files are read.
    pub read: ReadMode,
    /// What is stored with each blob of its file's times and permissions.
    pub stored: Option<Stored>,
    /// The paths to take of a folder, instead of all that is in it.
    pub list_of_files: Option<ListOfFiles>,
    /// What is taken of all that.
    pub selection: Arc<Selection>,
    /// Where it all goes: the destination within its container, raw.
    pub dest: Option<String>,
}

impl Default for Opening {
    fn default() -> Self {
        Opening {
            recursive: false,
            as_subdir: true,
            follow_symlinks: false,
            ordered: false,
            read: ReadMode::default(),
            stored: None,
            list_of_files: None,
            selection: Arc::default(),
            dest: None,
        }
    }
}

/// The source that a local path, a pattern or `-` means. Files are looked at here, so that a wrong argument fails at once.
///
/// # Errors
/// `SourceNotFound` if there is nothing of that name, `SourceUnreadable` if it may not be looked at or is neither file nor
/// folder, `Name` if it cannot name a blob, `Usage` if an option is missing or does not fit.
pub fn source(place: &Place, opening: &Opening) -> Result<Arc<dyn Source>> {
    match place {
        Place::Local(arg) => Ok(Arc::new(local(arg, opening)?)),
        Place::Stdio if !opening.selection.takes_all() => {
            Err(Error::new(Kind::Usage, "cannot filter what is piped in: it has no name, size or time")
                .with_advice("leave the filters out, or name files as the source"))
        }
        Place::Stdio => match landing(SourceKind::Stdin, "-", None, opening)? {
            Landing::At(target) | Landing::Under(target) => Ok(Arc::new(StdinSource::new(target))),
        },
        Place::Null | Place::Remote(_) | Place::Dev { .. } => {
            Err(Error::new(Kind::Usage, "cannot take this for a local source").with_advice("the source is a local path or -"))
        }
    }
}

fn landing(kind: SourceKind, source: &str, real_name: Option<&str>, opening: &Opening) -> Result<Landing> {
    if opening.list_of_files.is_some() && kind != SourceKind::Folder {
        return Err(Error::new(Kind::Usage, format!("cannot take a list of files within {}", shown(OsStr::new(source))))
            .with_advice("with --list-of-files the source is the folder that the names in the list are in"));
    }
    land(Ask { kind, source, real_name, dest: opening.dest.as_deref(), as_subdir: opening.as_subdir })
}

pub(super) fn local(arg: &str, opening: &Opening) -> Result<FileSource> {
    let rules = Rules { recursive: opening.recursive, follow: opening.follow_symlinks, ordered: opening.ordered };
    let name = shown(OsStr::new(arg));
    // Follows links: one that is the source itself is what it points to.
    let what = match patiently_here(|| fs::metadata(arg)) {
        Ok(metadata) if metadata.is_dir() => folder(arg, opening)?,
        Ok(metadata) if metadata.is_file() => {
            usable(OsStr::new(last_name(arg).unwrap_or(arg)))?;
            match landing(SourceKind::File, arg, None, opening)? {
                Landing::At(target) | Landing::Under(target) => What::One { path: arg.to_owned(), target },
            }
        }
        Ok(metadata) => {
            let kind = special(metadata.file_type());
            let error = Error::new(Kind::SourceUnreadable, format!("cannot copy {name}: it is a {kind}"));
            return Err(error.with_advice(match kind {
                FIFO => format!("redirect it to standard input: blobjet copy - DESTINATION < {name}"),
                _ => "only files, folders and what is piped to standard input can be copied".to_owned(),
            }));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(arg).is_ok() => {
            return Err(Error::new(Kind::SourceNotFound, format!("cannot follow the symbolic link {name}"))
                .with_source(error)
                .with_advice("what it points to is not there: ls -l shows where that is"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && glob::is_pattern(arg) => {
            match landing(SourceKind::Pattern, arg, None, opening)? {
                Landing::At(prefix) | Landing::Under(prefix) => What::Pattern { pattern: arg.to_owned(), prefix },
            }
        }
        Err(error) => {
            let kind = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Kind::SourceNotFound,
                _ => Kind::SourceUnreadable,
            };
            return Err(Error::new(kind, format!("cannot find {name}")).with_source(error));
        }
    };
    Ok(FileSource::new(what, rules, Arc::clone(&opening.selection), opening.read).storing(opening.stored))
}

fn folder(arg: &str, opening: &Opening) -> Result<What> {
    if !opening.recursive && opening.list_of_files.is_none() {
        return Err(Error::new(Kind::Usage, format!("cannot take the folder {} without --recursive", shown(OsStr::new(arg))))
            .with_advice("add --recursive, or name the files in it: 'FOLDER/*'"));
    }
    let real = match last_name(arg) {
        Some(_) => None,
        // The text does not tell the folder's name: `.`, `..`, `d/..`.
        None => fs::canonicalize(arg).map(Some).map_err(|error| {
            Error::new(Kind::SourceUnreadable, format!("cannot find the name of {}", shown(OsStr::new(arg)))).with_source(error)
        })?,
    };
    let real_name = match real.as_deref().and_then(Path::file_name) {
        Some(name) => Some(usable(name)?),
        None => None,
    };
    match landing(SourceKind::Folder, arg, real_name, opening)? {
        Landing::At(prefix) | Landing::Under(prefix) => Ok(match &opening.list_of_files {
            None => What::Tree { root: arg.to_owned(), prefix },
            Some(list) => What::Listed { root: arg.to_owned(), prefix, list: list.clone() },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_mean_places() {
        let local = |text: &str| Place::Local(text.to_owned());
        let dev = |container: Option<&str>, path: Option<&str>| Place::Dev {
            container: container.map(str::to_owned),
            path: path.map(str::to_owned),
        };
        for (arg, expected) in [
            ("-", Place::Stdio),
            ("null:", Place::Null),
            ("/dev/null", Place::Null),
            ("null", local("null")),
            ("d", local("d")),
            ("./-", local("./-")),
            ("/a/b", local("/a/b")),
            ("a://b", local("a://b")),
            ("C:x", local("C:x")),
            ("dev://", dev(None, None)),
            ("dev://docs", dev(Some("docs"), None)),
            ("dev://docs/", dev(Some("docs"), None)),
            ("DEV://docs/a%20b//c/", dev(Some("docs"), Some("a%20b//c/"))),
        ] {
            assert_eq!(place(arg).unwrap(), expected, "{arg}");
        }
        let Place::Remote(location) = place("az://acct1/c/x/y z%41").unwrap() else { panic!("remote") };
        assert_eq!(
            (location.host.as_str(), location.account.as_deref(), location.container.as_deref(), location.blob.as_deref()),
            ("acct1.blob.core.windows.net", Some("acct1"), Some("c"), Some("x/y z%41"))
        );
        let Place::Remote(location) = place("https://acct1.blob.core.windows.net/c/x").unwrap() else { panic!("remote") };
        assert_eq!((location.container.as_deref(), location.blob.as_deref()), (Some("c"), Some("x")));
        for bad in
            ["", "az://", "az://A", "az://ab/c", "az://acct?sig=secret/c", "az://acct1/c?sv=1&sig=secret", "dev://c/x?sig=secret"]
        {
            let error = place(bad).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{bad}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
