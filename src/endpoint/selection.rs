//! The one filter: which of the things under a root are taken, by name, path, time and size. Local walks, listings of blobs and
//! every command ask it, and it says which rule decided.
//!
//! Pure: it looks at nothing but what it is given. All kinds of rules must agree (a time and a pattern both have to fit); of
//! several patterns of one kind, one that fits is enough. What an exclude rule fits is never taken. Paths are relative to the
//! root, `/`-separated; a folder that [`Selection::may_hold`] rules out holds nothing that would be taken, so that it need not be
//! looked into.

use crate::endpoint::filter::{self, Moment, Pattern, is_within, moment, pattern};
use crate::endpoint::moment::Twice;
use crate::error::Result;
use jiff::tz::TimeZone;
use std::time::SystemTime;

pub use crate::endpoint::filter::{Filter, Verdict};

/// Something that may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Path relative to the root.
    pub path: &'a str,
    /// Length in bytes; asked for only where [`Selection::needs_facts`] says so.
    pub len: Option<u64>,
    /// Last change; as `len`.
    pub modified: Option<SystemTime>,
}

/// The rules of one command line. The default takes everything.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// By kind; none is empty.
    include: Vec<(Filter, Vec<Pattern>)>,
    exclude: Vec<(Filter, Pattern)>,
    after: Option<Moment>,
    before: Option<Moment>,
    min: Option<u64>,
    max: Option<u64>,
}

impl Selection {
    /// Adds a rule. Patterns add up; of several moments the narrowest counts. Times without a zone are local.
    ///
    /// # Errors
    /// `Usage`, naming the flag and the pattern that is wrong.
    pub fn with(self, filter: Filter, text: &str) -> Result<Selection> {
        self.with_in(filter, text, &TimeZone::system())
    }

    fn with_in(mut self, filter: Filter, text: &str, zone: &TimeZone) -> Result<Selection> {
        match filter {
            Filter::IncludeAfter => {
                let moment = moment(filter, text, zone, Twice::Earlier)?;
                if self.after.as_ref().is_none_or(|known| known.time < moment.time) {
                    self.after = Some(moment);
                }
            }
            Filter::IncludeBefore => {
                let moment = moment(filter, text, zone, Twice::Later)?;
                if self.before.as_ref().is_none_or(|known| known.time > moment.time) {
                    self.before = Some(moment);
                }
            }
            Filter::Glob => match text.strip_prefix('!') {
                Some(excluded) => {
                    let mut pattern = pattern(filter, excluded)?;
                    text.clone_into(&mut pattern.text);
                    self.exclude.push((filter, pattern));
                }
                None => self.including(filter, vec![pattern(filter, text)?]),
            },
            _ => {
                let patterns = filter::patterns(filter, text)?;
                match filter {
                    Filter::ExcludePattern | Filter::ExcludePath | Filter::ExcludeRegex => {
                        self.exclude.extend(patterns.into_iter().map(|pattern| (filter, pattern)));
                    }
                    _ => self.including(filter, patterns),
                }
            }
        }
        Ok(self)
    }

    fn including(&mut self, filter: Filter, patterns: Vec<Pattern>) {
        match self.include.iter_mut().find(|(kind, _)| *kind == filter) {
            Some((_, known)) => known.extend(patterns),
            None => self.include.push((filter, patterns)),
        }
    }

    /// Takes only what has at least this many bytes.
    #[must_use]
    pub fn at_least(mut self, bytes: u64) -> Selection {
        self.min = Some(bytes);
        self
    }

    /// Takes only what has at most this many bytes.
    #[must_use]
    pub fn at_most(mut self, bytes: u64) -> Selection {
        self.max = Some(bytes);
        self
    }

    /// Whether there is no rule at all.
    pub fn takes_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty() && !self.needs_facts()
    }

    /// Whether a rule asks for length or time.
    pub fn needs_facts(&self) -> bool {
        self.after.is_some() || self.before.is_some() || self.min.is_some() || self.max.is_some()
    }

    /// What becomes of something.
    pub fn takes(&self, candidate: &Candidate<'_>) -> Verdict<'_> {
        match self.takes_path(candidate.path) {
            Verdict::Taken => self.takes_facts(candidate.len, candidate.modified),
            left_out => left_out,
        }
    }

    /// What the rules on names and paths say: all there is to ask where [`Selection::needs_facts`] is `false`.
    pub fn takes_path(&self, path: &str) -> Verdict<'_> {
        if let Some((filter, pattern)) = self.exclude.iter().find(|(_, pattern)| pattern.fits(path)) {
            return Verdict::Excluded(*filter, &pattern.text);
        }
        match self.include.iter().find(|(_, patterns)| !patterns.iter().any(|pattern| pattern.fits(path))) {
            Some((filter, patterns)) => not_included(*filter, patterns),
            None => Verdict::Taken,
        }
    }

    /// What the rules on length and time say. Something of unknown length or time is left out by a rule about it.
    pub fn takes_facts(&self, len: Option<u64>, modified: Option<SystemTime>) -> Verdict<'_> {
        match (self.min, len) {
            (Some(_), None) => return Verdict::Unknown("--min-size"),
            (Some(min), Some(len)) if len < min => return Verdict::TooSmall(min),
            _ => {}
        }
        match (self.max, len) {
            (Some(_), None) => return Verdict::Unknown("--max-size"),
            (Some(max), Some(len)) if len > max => return Verdict::TooLarge(max),
            _ => {}
        }
        match (&self.after, modified) {
            (Some(_), None) => return Verdict::Unknown("--include-after"),
            (Some(after), Some(time)) if time < after.time => return Verdict::TooOld(&after.text),
            _ => {}
        }
        match (&self.before, modified) {
            (Some(_), None) => Verdict::Unknown("--include-before"),
            (Some(before), Some(time)) if time > before.time => Verdict::TooNew(&before.text),
            _ => Verdict::Taken,
        }
    }

    /// Whether a folder (relative to the root, without a `/` at its end) may hold something that is taken. `true` where it is
    /// not known. Asked from the root downwards.
    pub fn may_hold(&self, folder: &str) -> bool {
        self.why_not_within(folder).is_none()
    }

    /// The rule because of which nothing in a folder is taken, if there is one.
    pub fn why_not_within(&self, folder: &str) -> Option<Verdict<'_>> {
        if let Some((filter, pattern)) = self.exclude.iter().find(|(_, pattern)| pattern.fits_all_within(folder)) {
            return Some(Verdict::Excluded(*filter, &pattern.text));
        }
        let hopeless = |patterns: &[Pattern]| !patterns.iter().any(|pattern| pattern.may_fit_within(folder));
        let (filter, patterns) = self.include.iter().find(|(_, patterns)| hopeless(patterns))?;
        Some(not_included(*filter, patterns))
    }

    /// The files and folders, relative to the root, outside of which nothing is taken: what `--include-path` names, none within
    /// another. Empty where that is not known.
    pub fn roots(&self) -> Vec<&str> {
        let mut named: Vec<&str> = self
            .include
            .iter()
            .filter(|(filter, _)| *filter == Filter::IncludePath)
            .flat_map(|(_, patterns)| patterns)
            .filter_map(Pattern::path)
            .collect();
        named.sort_unstable();
        named.dedup();
        let all = named.clone();
        named.retain(|path| !all.iter().any(|other| other != path && is_within(path, other)));
        named
    }
}

fn not_included(filter: Filter, patterns: &[Pattern]) -> Verdict<'_> {
    Verdict::NotIncluded(filter, patterns.iter().map(|pattern| pattern.text.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use std::time::Duration;

    fn selection(rules: &[(Filter, &str)]) -> Selection {
        let with = |selection: Selection, (filter, text): &(Filter, &str)| selection.with_in(*filter, text, &TimeZone::UTC);
        rules.iter().try_fold(Selection::default(), with).unwrap_or_else(|e| panic!("{rules:?}: {e}"))
    }

    fn taken<'a>(selection: &Selection, paths: &[&'a str]) -> Vec<&'a str> {
        paths.iter().copied().filter(|path| selection.takes_path(path).is_taken()).collect()
    }

    use Filter::{
        ExcludePath, ExcludePattern, ExcludeRegex, Glob, IncludeAfter, IncludeBefore, IncludePath, IncludePattern, IncludeRegex,
    };

    const TREE: [&str; 8] = ["a.txt", "a.md", "foo", "foo/b.txt", "foo/x/c.md", "foobar.txt", "bar/foo/d.txt", "é b;c"];

    #[test]
    fn rules_take_what_they_say() {
        for (rules, expected) in [
            (&[][..], &TREE[..]),
            // Names: the last component, whole.
            (&[(IncludePattern, "*.txt")], &["a.txt", "foo/b.txt", "foobar.txt", "bar/foo/d.txt"]),
            (&[(IncludePattern, "a.*;c.md")], &["a.txt", "a.md", "foo/x/c.md"]),
            (&[(IncludePattern, "a.*"), (IncludePattern, "c.md")], &["a.txt", "a.md", "foo/x/c.md"]),
            (&[(IncludePattern, ";;foo*;")], &["foo", "foobar.txt"]),
            (&[(IncludePattern, "?.md")], &["a.md", "foo/x/c.md"]),
            (&[(IncludePattern, "? b\\;?")], &["é b;c"]),
            (&[(ExcludePattern, "*.txt"), (ExcludePattern, "*.md;é*")], &["foo"]),
            // Paths: whole components, from the root.
            (&[(ExcludePath, "foo")], &["a.txt", "a.md", "foobar.txt", "bar/foo/d.txt", "é b;c"]),
            (&[(ExcludePath, "./foo/"), (ExcludePath, "bar;a.md")], &["a.txt", "foobar.txt", "é b;c"]),
            (&[(IncludePath, "foo")], &["foo", "foo/b.txt", "foo/x/c.md"]),
            (&[(IncludePath, "foo/x;a.txt;bar/foo/d.txt")], &["a.txt", "foo/x/c.md", "bar/foo/d.txt"]),
            (&[(IncludePath, "*")], &[]),
            // Expressions: anywhere in the path.
            (&[(IncludeRegex, "^foo/")], &["foo/b.txt", "foo/x/c.md"]),
            (&[(IncludeRegex, "o/[bc];^é .")], &["foo/b.txt", "é b;c"]),
            (&[(ExcludeRegex, "\\.(txt|md)$")], &["foo", "é b;c"]),
            // Globs: the whole path.
            (&[(Glob, "*.txt")], &["a.txt", "foobar.txt"]),
            (&[(Glob, "**/*.txt"), (Glob, "foo")], &["a.txt", "foo", "foo/b.txt", "foobar.txt", "bar/foo/d.txt"]),
            (&[(Glob, "!foo/**")], &["a.txt", "a.md", "foo", "foobar.txt", "bar/foo/d.txt", "é b;c"]),
            (&[(Glob, "? b;c")], &["é b;c"]),
            // All kinds have to agree, and what is excluded is.
            (&[(IncludePattern, "*.txt"), (IncludePath, "foo;bar")], &["foo/b.txt", "bar/foo/d.txt"]),
            (
                &[(IncludePattern, "*.txt"), (ExcludePath, "foo"), (IncludeRegex, "o"), (Glob, "**")],
                &["foobar.txt", "bar/foo/d.txt"],
            ),
            (&[(IncludePath, "foo"), (ExcludePath, "foo/x")], &["foo", "foo/b.txt"]),
        ] {
            assert_eq!(taken(&selection(rules), &TREE), expected, "{rules:?}");
        }
    }

    #[test]
    fn a_verdict_names_the_rule() {
        let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let all = selection(&[
            (IncludePattern, "*.txt;*.md"),
            (ExcludePath, "old"),
            (Glob, "!**/tmp/**"),
            (IncludeAfter, "1970-01-01T00:00:10"),
            (IncludeAfter, "1970-01-01T00:00:05"),
            (IncludeBefore, "1970-01-01T00:00:20Z"),
        ])
        .at_least(10)
        .at_most(2048);
        for (path, len, modified, expected) in [
            ("a.txt", Some(10), at(10), "no filter leaves it out"),
            ("a.txt", Some(2048), at(20), "no filter leaves it out"),
            ("old/a.txt", Some(10), at(10), "--exclude-path old fits it"),
            ("x/tmp/a.txt", Some(10), at(10), "--glob !**/tmp/** fits it"),
            ("a.jpg", Some(10), at(10), "no --include-pattern fits it (*.txt, *.md)"),
            ("a.md", Some(9), at(10), "it is smaller than --min-size 10 B"),
            ("a.md", Some(2049), at(10), "it is larger than --max-size 2 KiB"),
            ("a.md", Some(10), at(9), "it was changed before --include-after 1970-01-01T00:00:10"),
            ("a.md", Some(10), at(21), "it was changed after --include-before 1970-01-01T00:00:20Z"),
            ("a.md", None, at(10), "--min-size asks for something that is not known of it"),
            ("a.md", Some(10), None, "--include-after asks for something that is not known of it"),
        ] {
            assert_eq!(all.takes(&Candidate { path, len, modified }).to_string(), expected, "{path} {len:?} {modified:?}");
        }
        let one = selection(&[(IncludePath, "d")]);
        assert_eq!(one.takes_path("e").to_string(), "--include-path d does not fit it");
        assert!(all.needs_facts() && !one.needs_facts() && Selection::default().takes_all() && !one.takes_all());
        assert!(Selection::default().at_least(1).needs_facts());
    }

    #[test]
    fn folders_that_can_hold_nothing_are_ruled_out() {
        for (rules, folder, may) in [
            (&[][..], "d", true),
            (&[(IncludePattern, "*.txt")], "d", true),
            (&[(ExcludePattern, "d")], "d", true),
            (&[(ExcludeRegex, "^d/")], "d", true),
            (&[(ExcludePath, "d")], "d", false),
            (&[(ExcludePath, "d")], "d/e", false),
            (&[(ExcludePath, "d/e")], "d", true),
            (&[(ExcludePath, "d")], "dd", true),
            (&[(IncludePath, "d/e")], "d", true),
            (&[(IncludePath, "d/e")], "d/e/f", true),
            (&[(IncludePath, "d/e")], "d/f", false),
            (&[(IncludePath, "d/e;d/f")], "d/f", true),
            (&[(Glob, "d/*.txt")], "e", false),
            (&[(Glob, "d/*.txt"), (Glob, "e/**")], "e", true),
            (&[(Glob, "!**/node_modules/**")], "a/node_modules", false),
            (&[(IncludePath, "d"), (Glob, "e/**")], "d", false),
        ] {
            assert_eq!(selection(rules).may_hold(folder), may, "{rules:?} {folder}");
        }
    }

    #[test]
    fn roots_are_what_include_path_names() {
        assert_eq!(selection(&[(IncludePath, "d/e;d/f;d;ab;d;a")]).roots(), ["a", "ab", "d"]);
        assert!(selection(&[(ExcludePath, "d"), (Glob, "x/**")]).roots().is_empty());
    }

    #[test]
    fn what_is_wrong_is_a_usage_error_that_names_flag_and_pattern() {
        for (filter, text, words) in [
            (IncludeRegex, "a(b", "--include-regex: cannot use 'a(b': unclosed group"),
            (ExcludeRegex, "x;[z-a]", "--exclude-regex: cannot use '[z-a]': "),
            (Glob, "a[b", "--glob: cannot use 'a[b': a [ is not closed"),
            (Glob, "!{", "--glob: cannot use '{': a { is not closed"),
            (Glob, "", "--glob: cannot use '': it is empty"),
            (Glob, "!", "--glob: cannot use '': it is empty"),
            (IncludePattern, "", "--include-pattern: cannot use '': it is empty"),
            (ExcludePath, ";;", "--exclude-path: cannot use ';;': it is empty"),
            (IncludePattern, "*.txt;d/*", "--include-pattern: cannot use 'd/*': it has a / in it"),
            (ExcludePath, "..", "it leads out of the source"),
            (IncludePath, "a/../b", "it leads out of the source"),
            (ExcludePath, "/", "it names no path within the source"),
            (ExcludePath, "./", "it names no path within the source"),
            (ExcludePath, "/home/me/d", "it names no path within the source"),
            (IncludeAfter, "yesterday", "--include-after: cannot use 'yesterday': it is no date or time"),
            (IncludeBefore, "", "--include-before: cannot use '': it is no date or time"),
        ] {
            let error = Selection::default().with(filter, text).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{text}");
            assert!(error.to_string().contains(words), "{filter:?} {text}: {error}");
        }
    }
}
