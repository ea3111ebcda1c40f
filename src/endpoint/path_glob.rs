//! Globs over a whole relative path: `*` and `?` stay within one name, `**` crosses `/`, `[abc]` and `[!a-z]` are one character,
//! `{a,b}` is either, `\` takes the next character as it is.
//!
//! Translated to a regular expression, which takes time linear in the path whatever the pattern. By hand: in `globset` a `?` is
//! one byte, which is half an `é`, and so is every character of a class.

use regex::Regex;
use std::fmt::Write;

/// A glob ready to match.
#[derive(Debug, Clone)]
pub(super) struct PathGlob {
    regex: Regex,
    /// The folders that all it matches is in, with the last `/`.
    within: String,
    /// Most `/` in what it matches; `None` where there is no limit.
    deepest: Option<usize>,
    /// Matches the folders all of whose contents it matches: `dir` of `dir/**`.
    whole: Option<Regex>,
}

impl PathGlob {
    /// Takes a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(pattern: &str) -> Result<PathGlob, String> {
        let literal = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
        let within = pattern[..literal].rfind('/').map_or("", |slash| &pattern[..=slash]).to_owned();
        let deepest = (!pattern.contains("**")).then(|| pattern.matches('/').count());
        let whole = pattern.strip_suffix("/**").filter(|folder| !folder.is_empty()).map(compiled).transpose()?;
        Ok(PathGlob { regex: compiled(pattern)?, within, deepest, whole })
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        self.regex.is_match(path)
    }

    /// Whether something it matches can be in a folder (given without a `/` at its end).
    pub(super) fn may_match_within(&self, folder: &str) -> bool {
        let depth = folder.matches('/').count() + 1;
        let in_folder =
            |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let root = self.within.trim_end_matches('/');
        self.deepest.is_none_or(|deepest| depth <= deepest)
            && (root.is_empty() || in_folder(folder, root) || in_folder(root, folder))
    }

    /// Whether it matches all there can be in a folder (given without a `/` at its end).
    pub(super) fn matches_all_within(&self, folder: &str) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.is_match(folder))
    }
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    Regex::new(&translated(pattern)?).map_err(|error| reason(&error))
}

/// What is wrong with a regular expression, in one line.
pub(super) fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn translated(pattern: &str) -> Result<String, String> {
    let mut out = String::from("(?s)^");
    let mut rest = pattern;
    let mut braces = 0u32;
    while let Some(c) = rest.chars().next() {
        let at_start = rest.len() == pattern.len() || pattern[..pattern.len() - rest.len()].ends_with('/');
        if at_start && let Some(after) = rest.strip_prefix("**/") {
            out.push_str("(?:.*/)?");
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("**") {
            out.push_str(".*");
            rest = after.trim_start_matches('*');
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => rest = class(rest, &mut out)?,
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            ',' if braces > 0 => out.push('|'),
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            '\\' => {
                let next = rest.chars().next().ok_or("it ends in a \\")?;
                push_literal(&mut out, next);
                rest = &rest[next.len_utf8()..];
            }
            c => push_literal(&mut out, c),
        }
    }
    if braces > 0 {
        return Err("a { is not closed; write \\{ for the character".to_owned());
    }
    out.push('$');
    Ok(out)
}

/// Translates what follows a `[`, and returns what follows its `]`.
fn class<'a>(text: &'a str, out: &mut String) -> Result<&'a str, String> {
    let open = || "a [ is not closed; write \\[ for the character".to_owned();
    let (negated, body) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // A ] that comes first is one of the characters.
    let first = body.chars().next().ok_or_else(open)?.len_utf8();
    let end = first + body[first..].find(']').ok_or_else(open)?;
    // No class matches a slash: && takes it out whatever the ranges hold.
    out.push_str(if negated { "[^/" } else { "[[^/]&&[" });
    let chars: Vec<char> = body[..end].chars().collect();
    let mut at = 0;
    while let Some(&from) = chars.get(at) {
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&to)) if from <= to => {
                let _ = write!(out, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(from), u32::from(to));
                at += 3;
            }
            (Some('-'), Some(to)) => return Err(format!("the range {from}-{to} runs backwards")),
            _ => {
                let _ = write!(out, "\\x{{{:x}}}", u32::from(from));
                at += 1;
            }
        }
    }
    out.push_str(if negated { "]" } else { "]]" });
    Ok(&body[end + 1..])
}

fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_paths() {
        for (glob, yes, no) in [
            ("*.txt", vec!["a.txt", ".txt", "é\n.txt"], vec!["d/a.txt", "a.txt.bak", "a.TXT"]),
            ("**/*.txt", vec!["a.txt", "d/a.txt", "d/e/a.txt", "/a.txt"], vec!["a.md", "d/a.txt/b"]),
            ("**.txt", vec!["a.txt", "d/e/a.txt"], vec!["a.md"]),
            ("d/**", vec!["d/a", "d/e/f", "d/"], vec!["d", "dd/a", "x/d/a"]),
            ("d/**/f", vec!["d/f", "d/e/f", "d/e/e/f"], vec!["d/ef", "df", "d/e/ff"]),
            ("**/d/**", vec!["d/a", "x/y/d/a/b"], vec!["d", "xd/a"]),
            ("a?c", vec!["abc", "aéc", "a😀c"], vec!["ac", "a/c", "abbc"]),
            ("[a-cé]x", vec!["ax", "cx", "éx"], vec!["dx", "x"]),
            ("[!a-c]x", vec!["dx", "éx"], vec!["ax", "/x"]),
            ("a[+-/]b", vec!["a.b", "a-b"], vec!["a/b"]),
            ("[]x]", vec!["]", "x"], vec!["a"]),
            ("[a-]", vec!["a", "-"], vec!["b"]),
            ("[&&~]", vec!["&", "~"], vec!["a"]),
            ("{a,b/c}.*", vec!["a.x", "b/c.x"], vec!["b.x", "ab/c.x"]),
            ("a,b", vec!["a,b"], vec!["a"]),
            ("}", vec!["}"], vec![]),
            ("\\*\\{\\[", vec!["*{["], vec!["a{["]),
            ("a.b+(c)|^$", vec!["a.b+(c)|^$"], vec!["axb+(c)|^$"]),
            ("-#&~ é", vec!["-#&~ é"], vec![]),
        ] {
            let compiled = PathGlob::new(glob).unwrap_or_else(|e| panic!("{glob}: {e}"));
            yes.iter().for_each(|path| assert!(compiled.matches(path), "{glob} matches {path:?}"));
            no.iter().for_each(|path: &&str| assert!(!compiled.matches(path), "{glob} does not match {path:?}"));
        }
    }

    #[test]
    fn what_is_no_glob_is_refused() {
        for (glob, word) in [
            ("a[b", "not closed"),
            ("[", "not closed"),
            ("[!]", "not closed"),
            ("{a", "not closed"),
            ("a\\", "ends in"),
            ("[z-a]", "backwards"),
        ] {
            let error = PathGlob::new(glob).unwrap_err();
            assert!(error.contains(word), "{glob}: {error}");
        }
    }

    #[test]
    fn folders_that_hold_no_match_are_known() {
        // Glob, folder, whether there may be a match in it, whether all in it matches.
        for (glob, folder, may, all) in [
            ("*.txt", "d", false, false),
            ("*/*.txt", "d", true, false),
            ("*/*.txt", "d/e", false, false),
            ("**/*.txt", "d/e/f", true, false),
            ("src/**/*.rs", "src", true, false),
            ("src/**/*.rs", "src/a", true, false),
            ("src/**/*.rs", "srcs", false, false),
            ("a/b/*", "a", true, false),
            ("a/b/*", "a/b", true, false),
            ("a/b/*", "a/c", false, false),
            ("a/b/*", "ab", false, false),
            ("target/**", "target", true, true),
            ("**/target/**", "x/target", true, true),
            ("**/target/**", "x/targets", true, false),
            ("{a,b/c}/x", "b/c", true, false),
        ] {
            let compiled = PathGlob::new(glob).unwrap();
            assert_eq!((compiled.may_match_within(folder), compiled.matches_all_within(folder)), (may, all), "{glob} {folder}");
        }
    }
}
