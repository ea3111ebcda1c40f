//! Names of local files as text: which ones can be names of blobs, and how the others are shown.

use crate::error::{Error, Kind};
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// The name as text, or why it cannot be one: not UTF-8 (blob names are), or with a backslash in it, which the service takes
/// for a `/` ([Naming and referencing containers, blobs, and metadata]).
///
/// [Naming and referencing containers, blobs, and metadata]: https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
pub(super) fn usable(name: &OsStr) -> Result<&str, Error> {
    let why = match name.to_str() {
        Some(text) if text.contains('\\') => "it has a backslash in it, which the service would turn into '/'",
        Some(text) => return Ok(text),
        None => "it is not valid UTF-8",
    };
    Err(Error::new(Kind::Name, format!("cannot use the name {}: {why}", shown(name))).with_advice("rename the file"))
}

/// A name fit for a terminal: what is not UTF-8 as `\xNN`, control characters and backslashes escaped.
pub(super) fn shown(name: &OsStr) -> String {
    let mut out = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || c == '\\' {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_blob_name_is_shown_with_escapes() {
        for (bytes, expected) in [
            (&b"caf\xe9.txt"[..], r"caf\xe9.txt"),
            (b"a\\b", r"a\\b"),
            (b"a\x1b[31m\xff", r"a\u{1b}[31m\xff"),
            ("naïve\n".as_bytes(), r"naïve\n"),
        ] {
            assert_eq!(shown(OsStr::from_bytes(bytes)), expected);
        }
        for bad in [&b"caf\xe9"[..], b"a\\b"] {
            assert_eq!(usable(OsStr::from_bytes(bad)).unwrap_err().kind(), Kind::Name);
        }
        for good in ["a b", "naïve", "-", "[x]", "a%zz", ".."] {
            assert_eq!(usable(OsStr::new(good)).unwrap(), good);
        }
    }
}
