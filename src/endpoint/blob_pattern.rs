//! Patterns over the names of blobs, as local ones: `*` and `?` within one name between slashes. Pure: what `blob_listing` has
//! to list for one, and what of it matches.

use crate::endpoint::glob;

/// A pattern, taken apart at its slashes. What has no wildcard in it is compared as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobPattern {
    parts: Vec<String>,
}

impl BlobPattern {
    /// Takes a raw name with wildcards in it, or with none: then it matches that name.
    pub fn new(pattern: &str) -> BlobPattern {
        BlobPattern { parts: pattern.split('/').map(str::to_owned).collect() }
    }

    /// Whether a raw name is a pattern. At the service `*` and `?` are characters like any other, so that a blob of such a name is
    /// named by a pattern that matches it.
    pub fn is_pattern(name: &str) -> bool {
        glob::is_pattern(name)
    }

    /// Where the relative path of a name begins, if it matches or is in a folder that matches: at the last part of the pattern.
    pub(super) fn relative_at(&self, name: &str) -> Option<usize> {
        let mut at = 0;
        let mut names = name.split('/');
        for (i, part) in self.parts.iter().enumerate() {
            let name = names.next()?;
            if !glob::matches(part, name) {
                return None;
            }
            if i + 1 < self.parts.len() {
                at += name.len() + 1;
            }
        }
        Some(at)
    }

    /// Whether a folder, with its last `/`, may hold something that matches.
    pub(super) fn may_hold(&self, folder: &str) -> bool {
        folder.strip_suffix('/').unwrap_or(folder).split('/').zip(&self.parts).all(|(name, part)| glob::matches(part, name))
    }

    /// The longest beginning that everything has that matches within a folder (with its last `/`; empty for the root): where a
    /// listing has to begin.
    pub(super) fn beginning(&self, folder: &str) -> String {
        let mut beginning = folder.to_owned();
        let mut parts = self.parts.iter().skip(folder.matches('/').count()).peekable();
        while let Some(part) = parts.next() {
            let literal = part.find(['*', '?']).unwrap_or(part.len());
            beginning.push_str(&part[..literal]);
            if literal < part.len() || parts.peek().is_none() {
                break;
            }
            beginning.push('/');
        }
        beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_part_by_part() {
        // Pattern, name, relative path.
        for (pattern, name, relative) in [
            ("*", "a", Some("a")),
            ("*", "a/b/c", Some("a/b/c")),
            ("d/*.txt", "d/a.txt", Some("a.txt")),
            ("d/*.txt", "d/a.txt/b", Some("a.txt/b")),
            ("d/*.txt", "d/e/a.txt", None),
            ("d/*.txt", "x/a.txt", None),
            ("d*/e?/f", "d1/ex/f", Some("f")),
            ("d*/e?/f", "d1/ex/f/g", Some("f/g")),
            ("d*/e?/f", "d1/ex", None),
            ("a//*", "a//b", Some("b")),
            ("a//*", "a/b", None),
            ("*/", "d/", Some("")),
            ("d/x", "d/x", Some("x")),
            ("[a]*", "[a]1", Some("[a]1")),
            ("é?", "éß", Some("éß")),
        ] {
            let pattern_of = BlobPattern::new(pattern);
            assert_eq!(pattern_of.relative_at(name).map(|at| &name[at..]), relative, "{pattern} {name}");
        }
    }

    #[test]
    fn the_longest_literal_beginning_is_listed() {
        for (pattern, folder, beginning) in [
            ("*", "", ""),
            ("logs/2026-*/a.txt", "", "logs/2026-"),
            ("logs/2026-*/a.txt", "logs/", "logs/2026-"),
            ("logs/2026-*/a.txt", "logs/2026-01/", "logs/2026-01/a.txt"),
            ("logs/*", "logs/x/", "logs/x/"),
            ("a/b/c", "", "a/b/c"),
            ("a?/b/c/d*", "a1/", "a1/b/c/d"),
        ] {
            assert_eq!(BlobPattern::new(pattern).beginning(folder), beginning, "{pattern} {folder}");
        }
    }

    #[test]
    fn folders_that_cannot_match_are_known() {
        for (pattern, folder, may) in [
            ("d*/e/*", "d1/", true),
            ("d*/e/*", "x/", false),
            ("d*/e/*", "d1/e/", true),
            ("d*/e/*", "d1/f/", false),
            ("d*/e/*", "d1/e/f/g/", true),
        ] {
            assert_eq!(BlobPattern::new(pattern).may_hold(folder), may, "{pattern} {folder}");
        }
    }
}
