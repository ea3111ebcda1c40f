//! `--list-of-files`: the names to move, one a line (or NUL-separated), from a file or standard input.
//!
//! Lists come from every kind of tool, so a byte order mark, CRLF, blank lines, and a missing last line end are read right. A
//! line is otherwise taken as it is, spaces included.

use crate::endpoint::name::{shown, usable};
use crate::endpoint::patience::patiently_here;
use crate::endpoint::walk::{Flow, Walk, join};
use crate::error::{Error, Kind, Result};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use tokio::sync::mpsc;

/// Where a list comes from and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOfFiles {
    /// A path, or `-` for standard input.
    pub from: String,
    /// Whether entries end with a NUL (as from `find -print0`) and not with the line.
    pub nul: bool,
}

impl ListOfFiles {
    /// Reports each entry, a path within `root`.
    ///
    /// # Errors
    /// `SourceNotFound` or `SourceUnreadable` if the list itself cannot be read.
    pub(super) fn walk(&self, root: &str, prefix: &str, walk: &mut Walk) -> Result<Flow> {
        for entry in self.open()? {
            let flow = one(&entry?, root, prefix, walk);
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(Flow::Continue(()))
    }

    /// The entries as they are, read on a thread of their own: standard input may never end. Ends after an error, or when the
    /// receiver is gone and the next entry comes.
    ///
    /// # Errors
    /// `Local` where there can be no thread. Through the channel `SourceNotFound` or `SourceUnreadable`.
    pub(super) fn entries(&self) -> Result<mpsc::Receiver<Result<Vec<u8>>>> {
        let (sender, receiver) = mpsc::channel(256);
        let list = self.clone();
        let read = move || match list.open() {
            Ok(mut entries) => drop(entries.try_for_each(|entry| sender.blocking_send(entry))),
            Err(error) => drop(sender.blocking_send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("list-of-files".to_owned()).spawn(read);
        thread.map_err(|e| Error::new(Kind::Local, "cannot read the list of files").with_source(e))?;
        Ok(receiver)
    }

    /// Its entries as they are.
    ///
    /// # Errors
    /// `SourceNotFound` or `SourceUnreadable`, at once or instead of an entry.
    pub(super) fn open(&self) -> Result<impl Iterator<Item = Result<Vec<u8>>>> {
        let input: Box<dyn Read> = if self.from == "-" {
            Box::new(std::io::stdin())
        } else {
            let file = patiently_here(|| File::open(&self.from)).map_err(|error| {
                let kind = match error.kind() {
                    std::io::ErrorKind::NotFound => Kind::SourceNotFound,
                    _ => Kind::SourceUnreadable,
                };
                Error::new(kind, format!("cannot open the list of files {}", self.from)).with_source(error)
            })?;
            Box::new(file)
        };
        let from = self.from.clone();
        let entries = Entries::new(BufReader::new(input), self.nul);
        Ok(entries.map(move |entry| {
            entry.map_err(|error| {
                Error::new(Kind::SourceUnreadable, format!("cannot read the list of files {from}")).with_source(error)
            })
        }))
    }
}

fn one(entry: &[u8], root: &str, prefix: &str, walk: &mut Walk) -> Flow {
    let raw = OsStr::from_bytes(entry);
    let text = match usable(raw) {
        Ok(text) => text,
        Err(error) => return walk.failed(raw, error),
    };
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() || parts.contains(&"..") {
        let doing = format!("cannot take {} of the list: it is not a path within {root}", shown(raw));
        return walk.failed(raw, Error::new(Kind::Name, doing));
    }
    let relative = parts.join("/");
    let path = join(root, &relative);
    // Named by the user, so a link is followed, as one that is the source itself.
    match patiently_here(|| fs::metadata(&path)) {
        Ok(metadata) => walk.thing(path, format!("{prefix}{relative}"), metadata.file_type()),
        Err(error) => {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => Kind::SourceNotFound,
                _ => Kind::SourceUnreadable,
            };
            let doing = format!("cannot find {} of the list", shown(OsStr::new(&path)));
            walk.failed(&path, Error::new(kind, doing).with_source(error))
        }
    }
}

/// The entries of a list.
struct Entries<R> {
    input: R,
    nul: bool,
    first: bool,
}

impl<R: BufRead> Entries<R> {
    fn new(input: R, nul: bool) -> Self {
        Entries { input, nul, first: true }
    }
}

impl<R: BufRead> Iterator for Entries<R> {
    type Item = std::io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = if self.nul { 0 } else { b'\n' };
        loop {
            let mut entry = Vec::new();
            match self.input.read_until(end, &mut entry) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
            if entry.last() == Some(&end) {
                entry.pop();
            }
            if !self.nul && entry.last() == Some(&b'\r') {
                entry.pop();
            }
            if std::mem::take(&mut self.first) && entry.starts_with(b"\xEF\xBB\xBF") {
                entry.drain(..3);
            }
            let blank = if self.nul { entry.is_empty() } else { entry.trim_ascii().is_empty() };
            if !blank {
                return Some(Ok(entry));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_all_kinds_are_read_right() {
        for (text, nul, expected) in [
            ("a\nb\n", false, vec!["a", "b"]),
            ("a\nb", false, vec!["a", "b"]),
            ("a\r\nb c\r\n", false, vec!["a", "b c"]),
            ("\u{feff}a\n\n \nb \n", false, vec!["a", "b "]),
            ("\u{feff}", false, vec![]),
            ("", false, vec![]),
            ("a\0b\nc\0\0d\r", true, vec!["a", "b\nc", "d\r"]),
        ] {
            let entries: Vec<String> =
                Entries::new(text.as_bytes(), nul).map(|e| String::from_utf8(e.unwrap()).unwrap()).collect();
            assert_eq!(entries, expected, "{text:?}");
        }
    }
}
