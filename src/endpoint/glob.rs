//! Local patterns, as AzCopy has them: `*` for any characters within one name, `?` for one. `[` and `{` are ordinary.
//!
//! A part without a wildcard is taken as it is, so folders with odd names can stand before a pattern.

use crate::endpoint::walk::join;
use std::fs::{self, FileType};
use std::path::Path;

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

/// Everything that matches, by name. Folders on the way that cannot be read match nothing; names that are not UTF-8 match
/// nothing either.
pub(super) fn expand(pattern: &str) -> Vec<Match> {
    let (root, rest) = match pattern.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => ("", pattern),
    };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = Vec::new();
    descend(root, &parts, &mut found);
    found
}

fn descend(folder: &str, parts: &[&str], found: &mut Vec<Match>) {
    let Some((part, rest)) = parts.split_first() else { return };
    let names = if is_pattern(part) { matching(folder, part) } else { vec![(*part).to_owned()] };
    for name in names {
        let path = join(folder, &name);
        if rest.is_empty() {
            if let Ok(metadata) = fs::symlink_metadata(&path) {
                found.push(Match { kind: metadata.file_type(), path, name });
            }
        } else if Path::new(&path).is_dir() {
            descend(&path, rest, found);
        }
    }
}

fn matching(folder: &str, part: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(if folder.is_empty() { "." } else { folder }) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| matches(part, name)).collect();
    names.sort_unstable();
    names
}

/// Whether a name matches. By hand, because `globset` has `?` match one byte, which is half an `é`. Each `*` takes as little as
/// it can, and the last one met takes more when what follows does not fit: linear in memory, no recursion.
fn matches(part: &str, name: &str) -> bool {
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
            let names: Vec<String> = expand(&format!("{root}/{pattern}")).into_iter().map(|m| m.name).collect();
            assert_eq!(names.join(" "), expected, "{pattern}");
        }
    }
}
