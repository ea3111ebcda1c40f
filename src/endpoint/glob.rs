//! Local patterns, as AzCopy has them: `*` for any characters within one name, `?` for one. `[` and `{` are ordinary.
//!
//! A part without a wildcard is taken as it is, so folders with odd names can stand before a pattern.

use crate::endpoint::name::usable;
use crate::endpoint::patience::patiently_here;
use crate::endpoint::walk::{join, unreadable};
use crate::error::Error;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// Whether an argument that is no existing file is a pattern.
pub(super) fn is_pattern(arg: &str) -> bool {
    arg.contains(['*', '?'])
}

/// Something that matched.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) kind: FileType,
}

/// What comes of a pattern.
#[derive(Debug)]
pub(super) enum Expanded {
    /// It matches.
    Match(Match),
    /// It may hold matches and cannot be read, or would match under a name that no blob can have.
    Failed(PathBuf, Error),
}

/// Everything that matches, by name. A folder that cannot be read is never one in which nothing matches.
pub(super) fn expand(pattern: &str) -> Vec<Expanded> {
    let (root, rest) = match pattern.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => ("", pattern),
    };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = Vec::new();
    descend(root, &parts, &mut found);
    found
}

fn descend(folder: &str, parts: &[&str], found: &mut Vec<Expanded>) {
    let Some((part, rest)) = parts.split_first() else { return };
    let names = if is_pattern(part) { matching(folder, part, found) } else { vec![(*part).to_owned()] };
    for name in names {
        let path = join(folder, &name);
        if rest.is_empty() {
            if let Ok(metadata) = fs::symlink_metadata(&path) {
                found.push(Expanded::Match(Match { kind: metadata.file_type(), path, name }));
            }
        } else if Path::new(&path).is_dir() {
            descend(&path, rest, found);
        }
    }
}

fn matching(folder: &str, part: &str, found: &mut Vec<Expanded>) -> Vec<String> {
    let entries = patiently_here(|| fs::read_dir(if folder.is_empty() { "." } else { folder })?.collect::<io::Result<Vec<_>>>());
    let entries = match entries {
        Ok(entries) => entries,
        // Gone, or a file by now: nothing in it matches.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Vec::new(),
        Err(error) => {
            found.push(Expanded::Failed(PathBuf::from(folder), unreadable(folder, error)));
            return Vec::new();
        }
    };
    let mut names = Vec::new();
    for name in entries.iter().map(DirEntry::file_name) {
        if !matches(part, &name.to_string_lossy()) {
            continue;
        }
        match usable(&name) {
            Ok(name) => names.push(name.to_owned()),
            Err(error) => found.push(Expanded::Failed(Path::new(folder).join(&name), error)),
        }
    }
    names.sort_unstable();
    names
}

/// Whether a name matches. By hand, because `globset` has `?` match one byte, which is half an `é`. Each `*` takes as little as
/// it can, and the last one met takes more when what follows does not fit: linear in memory, no recursion.
pub(super) fn matches(part: &str, name: &str) -> bool {
    let (mut part, mut name) = (part.chars(), name.chars());
    let mut retry = None;
    loop {
        let here = (part.clone(), name.clone());
        match (part.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                name = here.1;
                retry = Some((part.clone(), name.clone()));
                continue;
            }
            (Some('?'), Some(_)) => continue,
            (Some(a), Some(b)) if a == b => continue,
            _ => {}
        }
        let Some((after, mut rest)) = retry else { return false };
        if rest.next().is_none() {
            return false;
        }
        (part, name) = (after.clone(), rest.clone());
        retry = Some((after, rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_star_and_question_mark_are_special() {
        for (part, yes, no) in [
            ("*", vec!["a", ".hidden", "a b", "[x]", "\n"], vec![]),
            ("*.txt", vec!["a.txt", ".txt", "[a].txt"], vec!["a.txt.bak", "a.TXT"]),
            ("a?c", vec!["abc", "aéc"], vec!["ac", "abbc"]),
            ("[ab]*", vec!["[ab]", "[ab]x"], vec!["a", "b"]),
            ("{a,b}*", vec!["{a,b}1"], vec!["a", "b"]),
            ("!a*", vec!["!ab"], vec!["b"]),
            ("a**b", vec!["ab", "axxb"], vec!["axxbc"]),
            ("*ab*ab", vec!["abab", "xabxxabab"], vec!["ab", "ababx"]),
            ("?*", vec!["a", "ab"], vec![""]),
            ("x", vec!["x"], vec!["", "xx"]),
        ] {
            yes.iter().for_each(|name| assert!(matches(part, name), "{part} matches {name:?}"));
            no.iter().for_each(|name: &&str| assert!(!matches(part, name), "{part} does not match {name:?}"));
        }
    }

    fn name(expanded: Expanded) -> String {
        match expanded {
            Expanded::Match(Match { name, .. }) => name,
            Expanded::Failed(path, error) => format!("{path:?}: {:?}", error.kind()),
        }
    }

    #[test]
    fn a_star_stays_within_one_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        for path in ["[1]/a/x.txt", "[1]/b/y.txt", "[1]/b/z.md", "[1]/top.txt"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        for (pattern, expected) in [
            ("[1]/*/*.txt", "x.txt y.txt"),
            ("[1]/*.txt", "top.txt"),
            ("[1]/*", "a b top.txt"),
            ("*/b/?.md", "z.md"),
            ("[1]/none*", ""),
            ("none/*", ""),
        ] {
            let names: Vec<String> = expand(&format!("{root}/{pattern}")).into_iter().map(name).collect();
            assert_eq!(names.join(" "), expected, "{pattern}");
        }
    }
}
