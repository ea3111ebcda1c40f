//! The file a report goes to: looked at before the job starts, written when it has ended, in one step.
//!
//! A reader of the file sees the old report or the new one, never half of one: it is written beside it and renamed.

use super::page;
use super::record::RunRecord;
use crate::error::{Error, Kind, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What it is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Json,
}

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportFile {
    /// As it was given.
    named: PathBuf,
    /// Behind links, so that these stay.
    path: PathBuf,
    form: Form,
}

impl ReportFile {
    /// A file that can be written, as far as one can tell now: a new file beside it could be made.
    ///
    /// # Errors
    /// `Usage`: its name says neither HTML nor JSON, it is a folder or a device, or its folder cannot be written to.
    pub(crate) fn at(named: &Path) -> Result<ReportFile> {
        let ending = named.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let form = match ending.as_deref() {
            Some("html" | "htm") => Form::Html,
            Some("json") => Form::Json,
            _ => {
                return Err(Error::new(Kind::Usage, format!("cannot tell what kind of report {} is to be", named.display()))
                    .with_advice("end its name in .html for a page, or in .json for data"));
            }
        };
        let path = fs::canonicalize(named).unwrap_or_else(|_| named.to_owned());
        let file = ReportFile { named: named.to_owned(), path, form };
        match fs::metadata(&file.path) {
            Ok(there) if !there.is_file() => {
                return Err(Error::new(Kind::Usage, format!("cannot write the report {}: it is not a file", named.display()))
                    .with_advice("name a file, which may be new"));
            }
            _ => {}
        }
        let refused = |e| file.failed(Kind::Usage, e).with_advice("name a file in a folder that is there and can be written to");
        let (beside, _) = file.beside().map_err(refused)?;
        fs::remove_file(beside).map_err(refused)?;
        Ok(file)
    }

    /// Writes it; a file that is there is replaced.
    ///
    /// # Errors
    /// `Local`.
    pub(crate) fn write(&self, record: &RunRecord) -> Result<()> {
        let text = match self.form {
            Form::Html => page::html(record),
            Form::Json => json(record),
        };
        let (beside, mut out) = self.beside().map_err(|e| self.failed(Kind::Local, e))?;
        let written =
            out.write_all(text.as_bytes()).and_then(|()| out.sync_data()).and_then(|()| fs::rename(&beside, &self.path));
        written.map_err(|e| {
            // What is left of it is of no use to anyone.
            let _ = fs::remove_file(&beside);
            self.failed(Kind::Local, e)
        })
    }

    /// As it was given.
    pub(crate) fn named(&self) -> &Path {
        &self.named
    }

    /// A new file in the same folder, under a name nobody else has.
    fn beside(&self) -> io::Result<(PathBuf, File)> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let nonce = getrandom::u64().map_err(|e| io::Error::other(e.to_string()))?;
        let path = self.path.with_file_name(format!(".{name}.{nonce:016x}.tmp"));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok((path, file))
    }

    fn failed(&self, kind: Kind, cause: io::Error) -> Error {
        Error::new(kind, format!("cannot write the report {}", self.named.display())).with_source(cause)
    }
}

/// The record as JSON, for a file of its own.
fn json(record: &RunRecord) -> String {
    // Serialising these types cannot fail: no map with other keys than strings, no fallible `Serialize`.
    let mut text = serde_json::to_string_pretty(record).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::example::record;
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_path_that_cannot_be_written_is_refused_before_anything_starts() {
        let dir = tempfile::tempdir().unwrap();
        for (name, word) in [
            ("run.txt", "what kind of report"),
            ("run", "what kind of report"),
            ("gone/run.html", "cannot write"),
            ("folder.html", "not a file"),
        ] {
            fs::create_dir_all(dir.path().join("folder.html")).unwrap();
            let error = ReportFile::at(&dir.path().join(name)).unwrap_err();
            assert!(error.kind() == Kind::Usage && error.to_string().contains(word), "{name}: {error}");
        }
        assert!(ReportFile::at(Path::new("/dev/null")).is_err());
        assert_eq!(names(dir.path()), ["folder.html"]);
    }

    #[test]
    fn it_is_replaced_whole_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let old = dir.path().join("old.HTML");
        fs::write(&old, "old").unwrap();
        std::os::unix::fs::symlink(&old, dir.path().join("link.html")).unwrap();
        let file = ReportFile::at(&dir.path().join("link.html")).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "old", "untouched until the end");
        file.write(&record()).unwrap();
        assert!(fs::read_to_string(&old).unwrap().starts_with("<!doctype html>"));
        ReportFile::at(&dir.path().join("new.json")).unwrap().write(&record()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(dir.path().join("new.json")).unwrap()).unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(names(dir.path()), ["link.html", "new.json", "old.HTML"]);
    }
}
