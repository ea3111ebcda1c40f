//! Local patterns, as AzCopy has them: `*` for any characters within one name, `?` for one. `[` and `{` are ordinary.
//!
//! A part without a wildcard is taken as it is, so folders with odd names can stand before a pattern.

use crate::endpoint::walk::join;
use globset::{GlobBuilder, GlobMatcher};
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
    let Some(matcher) = matcher(part) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(if folder.is_empty() { "." } else { folder }) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| matcher.is_match(name)).collect();
    names.sort_unstable();
    names
}

/// Only `*` and `?` keep their meaning; `**` is one `*`, as in AzCopy.
fn matcher(part: &str) -> Option<GlobMatcher> {
    let mut glob = String::new();
    for c in part.chars() {
        match c {
            '*' if glob.ends_with('*') => {}
            '*' | '?' => glob.push(c),
            other => glob.push_str(&globset::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    GlobBuilder::new(&glob).literal_separator(true).backslash_escape(true).build().ok().map(|glob| glob.compile_matcher())
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
            ("a**b", vec!["ab", "axxb"], vec!["a/b"]),
        ] {
            let matcher = matcher(part).unwrap();
            yes.iter().for_each(|name| assert!(matcher.is_match(name), "{part} matches {name:?}"));
            no.iter().for_each(|name: &&str| assert!(!matcher.is_match(name), "{part} does not match {name:?}"));
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
