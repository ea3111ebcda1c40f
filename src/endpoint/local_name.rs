//! Names that come from a service, as paths on this machine: which are no good, and which would meet in one file.

use crate::endpoint::name::shown;
use crate::error::{Error, Kind, Result};
use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Longest name of a file, bytes, on every filesystem in use (`NAME_MAX`).
const MOST_BYTES: usize = 255;

/// Refuses a relative path that would lead elsewhere, or that no file can have: `..`, `.`, an empty name between slashes or at
/// either end, a name over 255 bytes, a NUL.
///
/// # Errors
/// `Local`, saying what is wrong.
pub(super) fn check_path(target: &str) -> Result<()> {
    let why = target.split('/').find_map(|name| match name {
        "" => Some("it has an empty name before, after or between slashes, which no file can have".to_owned()),
        "." | ".." => Some(format!("it has '{name}' in it, which would lead to another folder")),
        _ if name.len() > MOST_BYTES => Some(format!("a name in it has {} bytes, and {MOST_BYTES} are the most", name.len())),
        _ if is_unfinished(name) => Some("it is the name of an unfinished download".to_owned()),
        _ if name.contains('\0') => Some("it has a NUL in it".to_owned()),
        _ => None,
    });
    match why {
        None => Ok(()),
        Some(why) => Err(Error::new(Kind::Local, format!("cannot use {} as a path: {why}", shown(OsStr::new(target))))
            .with_advice("copy it alone, to a name of your own: blobjet copy URL ./NAME")),
    }
}

/// The name of an unfinished download.
pub(super) fn unfinished(number: u64) -> String {
    format!(".bj-{number:016x}.part")
}

/// Whether a file is an unfinished download by its name: none that is uploaded.
pub(super) fn is_unfinished(name: &str) -> bool {
    let number = name.strip_prefix(".bj-").and_then(|rest| rest.strip_suffix(".part"));
    number.is_some_and(|number| number.len() == 16 && number.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Finds names that differ only in case, where that makes them one file.
pub(super) struct CaseTwins {
    /// Hashes of exact names by those of their folded forms; `None` where case tells files apart.
    seen: Option<Mutex<HashMap<u64, u64>>>,
}

impl CaseTwins {
    pub(super) fn new(blind: bool) -> CaseTwins {
        CaseTwins { seen: blind.then(Mutex::default) }
    }

    /// Finds out by making a file and asking for it by another name. What cannot be found out is not so.
    pub(super) fn of(root: &Path) -> CaseTwins {
        let folder = root.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        let nonce = getrandom::u32().unwrap_or_default();
        let (one, other) = (folder.join(format!(".bj-case-{nonce:08x}")), folder.join(format!(".BJ-CASE-{nonce:08X}")));
        let made = OpenOptions::new().write(true).create_new(true).open(&one).is_ok();
        let blind = made && fs::symlink_metadata(&other).is_ok();
        if made {
            let _ = fs::remove_file(&one);
        }
        CaseTwins::new(blind)
    }

    /// Refuses a name whose twin came before. The same name may come again.
    ///
    /// # Errors
    /// `Local`.
    pub(super) fn check(&self, target: &str) -> Result<()> {
        let Some(seen) = &self.seen else { return Ok(()) };
        let (folded, exact) = (hash(&target.to_lowercase()), hash(target));
        match seen.lock().unwrap_or_else(PoisonError::into_inner).entry(folded) {
            Entry::Vacant(free) => {
                free.insert(exact);
                Ok(())
            }
            Entry::Occupied(taken) if *taken.get() == exact => Ok(()),
            Entry::Occupied(_) => {
                let name = shown(OsStr::new(target));
                Err(Error::new(
                    Kind::Local,
                    format!("{name} differs only in case from another one, and the filesystem does not tell them apart"),
                )
                .with_advice("copy it alone, to a name of your own, or use a folder on a filesystem that tells case apart"))
            }
        }
    }
}

/// A number that stands for a name.
pub(super) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Finds names that lie under the name of another (`a` and `a/b`), which files cannot. Names have to come in byte order, as the
/// service lists them; then those on the way to the present one are all there is to remember.
#[derive(Debug, Default)]
pub(super) struct Ancestors(Vec<String>);

impl Ancestors {
    /// The name that stands in this one's way, if there is one. Otherwise this one may stand in that of later ones.
    pub(super) fn enter(&mut self, name: &str) -> Option<&str> {
        while self.0.last().is_some_and(|last| !name.starts_with(last.as_str())) {
            self.0.pop();
        }
        let at = self.0.iter().position(|earlier| name[earlier.len()..].starts_with('/'));
        match at {
            Some(at) => Some(&self.0[at]),
            None => {
                self.0.push(name.to_owned());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_lead_elsewhere_or_can_be_no_file_is_refused() {
        for bad in [
            "..",
            "x/../y",
            "../x",
            "x/..",
            "/lead",
            "a//b",
            "dir/",
            "",
            ".",
            "./a",
            "a/./b",
            "a\0b",
            "d/.bj-2dbd67026454e4b1.part",
            &"x".repeat(256),
        ] {
            assert_eq!(check_path(bad).unwrap_err().kind(), Kind::Local, "{bad:?}");
        }
        for good in ["a", "...", "a/..b", " ", "a b/c\n", "-", "\\", &"x".repeat(255), "\u{ffff}", ".hidden"] {
            check_path(good).unwrap();
        }
    }

    #[test]
    fn unfinished_files_are_known_by_their_names() {
        assert!(is_unfinished(&unfinished(0)) && is_unfinished(&unfinished(u64::MAX)));
        for other in [".bj-.part", ".bj-0123456789abcde.part", "bj-0123456789abcdef.part", ".bj-0123456789abcdeg.part", "a.part"]
        {
            assert!(!is_unfinished(other), "{other}");
        }
    }

    #[test]
    fn twins_are_found_only_where_case_tells_nothing() {
        let blind = CaseTwins::new(true);
        for (name, fits) in
            [("a/B", true), ("a/B", true), ("A/b", false), ("a/b", false), ("a/c", true), ("\u{c4}", true), ("\u{e4}", false)]
        {
            assert_eq!(blind.check(name).is_ok(), fits, "{name}");
        }
        let seeing = CaseTwins::new(false);
        assert!(seeing.check("a").is_ok() && seeing.check("A").is_ok());
    }

    #[test]
    fn what_lies_under_the_name_of_another_is_found() {
        let mut names = Ancestors::default();
        let found: Vec<_> = ["a", "a-b", "a-b/c", "a.txt", "a/b", "a/b/c", "a0", "b/c", "b/c/d", "b/cd"]
            .into_iter()
            .filter_map(|name| names.enter(name).map(|earlier| (name, earlier.to_owned())))
            .collect();
        let expected = [("a-b/c", "a-b"), ("a/b", "a"), ("a/b/c", "a"), ("b/c/d", "b/c")];
        assert_eq!(found, expected.map(|(name, earlier)| (name, earlier.to_owned())));
    }
}
