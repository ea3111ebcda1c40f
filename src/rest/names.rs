//! Rules for names, checked before any request. Source: "Naming and referencing containers, blobs, and metadata".

use crate::error::{Error, Kind, Result};

/// Longest blob name, in UTF-16 code units as the service counts.
const MAX_UNITS: usize = 1024;

/// Most segments of a blob name between slashes.
const MAX_SEGMENTS: usize = 254;

fn refused(name: &str, rule: &str) -> Error {
    Error::new(Kind::Name, format!("the name {} cannot be stored: {rule}", name.escape_debug()))
}

/// Refuses a blob name the service cannot take, or would store as another.
///
/// U+FFFF is allowed: the service takes it. Other code points it refuses are the control characters (C0, DEL, C1) and the first of the
/// private use area, U+E000 is what the page names; the rest of that area is let through.
///
/// # Errors
/// `Name`, saying which rule is broken; the name is escaped.
pub fn check_blob_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(refused(name, "it is empty"));
    }
    // Cheap for the common case: UTF-8 is never shorter than UTF-16 in units.
    if name.len() > MAX_UNITS {
        let units = name.encode_utf16().count();
        if units > MAX_UNITS {
            return Err(refused(name, &format!("it has {units} UTF-16 characters, and {MAX_UNITS} are allowed")));
        }
    }
    if let Some(c) = name.chars().find(|c| c.is_control() || *c == '\u{e000}') {
        return Err(refused(name, &format!("it holds U+{:04X}", u32::from(c))));
    }
    if name.contains('\\') {
        return Err(refused(name, "it holds a backslash, which the service turns into a slash"));
    }
    let mut segments = 0;
    for segment in name.split('/') {
        segments += 1;
        // Servers and libraries on the way resolve these, and another blob would be written.
        if segment == "." || segment == ".." {
            return Err(refused(name, &format!("it holds the segment {segment}, which is resolved on the way")));
        }
    }
    if segments > MAX_SEGMENTS {
        return Err(refused(name, &format!("it has {segments} segments, and {MAX_SEGMENTS} are allowed")));
    }
    Ok(())
}

/// Refuses a container name the service cannot take.
///
/// # Errors
/// `Name`, saying what a name looks like.
pub fn check_container_name(name: &str) -> Result<()> {
    if ["$root", "$logs", "$web", "$blobchangefeed"].contains(&name) {
        return Ok(());
    }
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let ok = (3..=63).contains(&bytes.len())
        && bytes.iter().all(|&b| plain(b) || b == b'-')
        && bytes.first().is_some_and(|&b| plain(b))
        && bytes.last().is_some_and(|&b| plain(b))
        && !name.contains("--");
    if ok {
        return Ok(());
    }
    Err(Error::new(Kind::Name, format!("{} is no name for a container", name.escape_debug()))
        .with_advice("3 to 63 lower-case letters, digits and single hyphens, beginning and ending with a letter or digit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_names_that_work() {
        let long = "x".repeat(1024);
        let emoji = "😀".repeat(512);
        let deep = vec!["d"; 254].join("/");
        for name in [
            "a", " ", "a%zz.txt", "[x]", "-", "a ", "a.", "...", ".x", "a//b", "/lead", "dir/", "e\u{301}", "\u{ffff}", &long,
            &emoji, &deep,
        ] {
            check_blob_name(name).unwrap_or_else(|e| panic!("{name:?}: {e}"));
        }
    }

    #[test]
    fn blob_names_that_do_not() {
        let long = "x".repeat(1025);
        let emoji = "😀".repeat(513);
        let deep = vec!["d"; 255].join("/");
        for name in [
            "",
            ".",
            "..",
            "a/../b",
            "./a",
            "a\\b",
            "a\nb",
            "a\tb",
            "\u{0}",
            "\u{1b}[31m",
            "\u{7f}",
            "\u{85}",
            "\u{e000}",
            &long,
            &emoji,
            &deep,
        ] {
            let error = check_blob_name(name).unwrap_err();
            assert_eq!(error.kind(), Kind::Name, "{name:?}");
            assert!(!error.to_string().contains(char::is_control), "{name:?}");
        }
    }

    #[test]
    fn container_names() {
        for name in ["abc", "a-b-c", "0ab", "$root", "$web", &"x".repeat(63)] {
            check_container_name(name).unwrap();
        }
        for name in ["", "ab", "Abc", "-abc", "abc-", "a--b", "a_b", "äbc", "a.b", "$x", &"x".repeat(64)] {
            assert_eq!(check_container_name(name).unwrap_err().kind(), Kind::Name, "{name}");
        }
    }
}
