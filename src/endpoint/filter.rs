//! One rule of a selection: the flag it is given with, its text taken apart, what it fits, and the words in which a decision is
//! told. How rules add up is `selection`'s.

use crate::endpoint::glob;
use crate::endpoint::moment::{self, Twice};
use crate::endpoint::path_glob::{PathGlob, reason};
use crate::error::{Error, Kind, Result};
use crate::units::ByteCount;
use jiff::tz::TimeZone;
use regex::Regex;
use std::fmt;
use std::time::SystemTime;

/// A rule that is given as text, by its flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Names that are taken: `*` and `?`, a `;` between them.
    IncludePattern,
    /// Names that are left out.
    ExcludePattern,
    /// Files and folders that are taken, by their whole path, a `;` between them.
    IncludePath,
    /// Files and folders that are left out.
    ExcludePath,
    /// Regular expressions found somewhere in the relative path of what is taken, a `;` between them.
    IncludeRegex,
    /// Regular expressions found somewhere in the relative path of what is left out.
    ExcludeRegex,
    /// A glob over the whole relative path of what is taken; with a `!` before it, of what is left out. Not a list.
    Glob,
    /// Changed then or later.
    IncludeAfter,
    /// Changed then or before.
    IncludeBefore,
}

impl Filter {
    /// The flag it is given with.
    pub fn flag(self) -> &'static str {
        match self {
            Filter::IncludePattern => "--include-pattern",
            Filter::ExcludePattern => "--exclude-pattern",
            Filter::IncludePath => "--include-path",
            Filter::ExcludePath => "--exclude-path",
            Filter::IncludeRegex => "--include-regex",
            Filter::ExcludeRegex => "--exclude-regex",
            Filter::Glob => "--glob",
            Filter::IncludeAfter => "--include-after",
            Filter::IncludeBefore => "--include-before",
        }
    }
}

/// What becomes of a candidate, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No rule is in its way.
    Taken,
    /// This exclude rule fits it.
    Excluded(Filter, &'a str),
    /// None of the rules of this kind fits it.
    NotIncluded(Filter, Vec<&'a str>),
    /// It is smaller than `--min-size`, bytes.
    TooSmall(u64),
    /// It is larger than `--max-size`, bytes.
    TooLarge(u64),
    /// It was changed before `--include-after`, which was given so.
    TooOld(&'a str),
    /// It was changed after `--include-before`, which was given so.
    TooNew(&'a str),
    /// Its length or time is not known, and this flag asks for it.
    Unknown(&'static str),
}

impl Verdict<'_> {
    /// Whether it is taken.
    pub fn is_taken(&self) -> bool {
        *self == Verdict::Taken
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Taken => write!(f, "no filter leaves it out"),
            Verdict::Excluded(filter, text) => write!(f, "{} {text} fits it", filter.flag()),
            Verdict::NotIncluded(filter, texts) => {
                let (flag, all) = (filter.flag(), texts.join(", "));
                match texts.len() {
                    1 => write!(f, "{flag} {all} does not fit it"),
                    _ => write!(f, "no {flag} fits it ({all})"),
                }
            }
            Verdict::TooSmall(bytes) => write!(f, "it is smaller than --min-size {}", ByteCount(*bytes)),
            Verdict::TooLarge(bytes) => write!(f, "it is larger than --max-size {}", ByteCount(*bytes)),
            Verdict::TooOld(text) => write!(f, "it was changed before --include-after {text}"),
            Verdict::TooNew(text) => write!(f, "it was changed after --include-before {text}"),
            Verdict::Unknown(flag) => write!(f, "{flag} asks for something that is not known of it"),
        }
    }
}

/// How one pattern is matched.
#[derive(Debug, Clone)]
enum Matcher {
    /// The last component, with `*` and `?`.
    Name(String),
    /// The path itself, or a folder it is in.
    Path(String),
    Regex(Regex),
    Glob(PathGlob),
}

/// One pattern as it was given.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// As it was given.
    pub(super) text: String,
    matcher: Matcher,
}

impl Pattern {
    pub(super) fn fits(&self, path: &str) -> bool {
        match &self.matcher {
            Matcher::Name(pattern) => glob::matches(pattern, path.rsplit('/').next().unwrap_or(path)),
            Matcher::Path(named) => is_within(path, named),
            Matcher::Regex(regex) => regex.is_match(path),
            Matcher::Glob(glob) => glob.matches(path),
        }
    }

    /// The path it names, where it is one of [`Filter::IncludePath`] or [`Filter::ExcludePath`].
    pub(super) fn path(&self) -> Option<&str> {
        match &self.matcher {
            Matcher::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Whether something it fits can be in a folder.
    pub(super) fn may_fit_within(&self, folder: &str) -> bool {
        match &self.matcher {
            Matcher::Name(_) | Matcher::Regex(_) => true,
            Matcher::Path(named) => is_within(folder, named) || is_within(named, folder),
            Matcher::Glob(glob) => glob.may_match_within(folder),
        }
    }

    /// Whether it fits all there can be in a folder.
    pub(super) fn fits_all_within(&self, folder: &str) -> bool {
        match &self.matcher {
            Matcher::Name(_) | Matcher::Regex(_) => false,
            Matcher::Path(named) => is_within(folder, named),
            Matcher::Glob(glob) => glob.matches_all_within(folder),
        }
    }
}

/// Whether a path is another one or lies in it, component by component: `foobar` is not in `foo`.
pub(super) fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A moment as it was given.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    /// As it was given.
    pub(super) text: String,
    /// When that is.
    pub(super) time: SystemTime,
}

const EMPTY: &str = "it is empty";
const LEAVE_OUT: &str = "leave the flag out, or name what it is about";

/// The patterns of a list: a `;` between them, `\;` for one in them. Empty ones do not count, but one has to be there.
///
/// # Errors
/// `Usage`.
pub(super) fn patterns(filter: Filter, text: &str) -> Result<Vec<Pattern>> {
    let texts = split(text);
    if texts.is_empty() {
        return Err(wrong(filter, text, EMPTY).with_advice(LEAVE_OUT));
    }
    texts.iter().map(|text| pattern(filter, text)).collect()
}

fn split(text: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek(), entries.last_mut()) {
            ('\\', Some(';'), Some(entry)) => {
                chars.next();
                entry.push(';');
            }
            (';', _, _) => entries.push(String::new()),
            (c, _, Some(entry)) => entry.push(c),
            _ => {}
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}

fn wrong(filter: Filter, text: &str, why: &str) -> Error {
    Error::new(Kind::Usage, format!("{}: cannot use '{text}': {why}", filter.flag()))
}

/// Reads a moment; one without a zone is in this one.
///
/// # Errors
/// `Usage`.
pub(super) fn moment(filter: Filter, text: &str, zone: &TimeZone, twice: Twice) -> Result<Moment> {
    match moment::parse(text.trim(), zone, twice) {
        Some(time) => Ok(Moment { text: text.trim().to_owned(), time }),
        None => Err(wrong(filter, text, "it is no date or time of ISO 8601")
            .with_advice("write 2026-01-31, 2026-01-31T08:30:00 (local time) or 2026-01-31T08:30:00Z")),
    }
}

/// Reads one pattern, of any kind but moments. A `!` before a glob is not part of it.
///
/// # Errors
/// `Usage`.
pub(super) fn pattern(filter: Filter, text: &str) -> Result<Pattern> {
    if text.is_empty() {
        return Err(wrong(filter, text, EMPTY).with_advice(LEAVE_OUT));
    }
    let matcher = match filter {
        Filter::IncludeRegex | Filter::ExcludeRegex => {
            let regex = Regex::new(text).map_err(|error| {
                wrong(filter, text, &reason(&error))
                    .with_advice("it is a regular expression; for * and ? there are --include-pattern and --glob")
            })?;
            Matcher::Regex(regex)
        }
        Filter::Glob => Matcher::Glob(PathGlob::new(text).map_err(|why| wrong(filter, text, &why))?),
        Filter::IncludePath | Filter::ExcludePath => Matcher::Path(path(filter, text)?),
        _ if text.contains('/') => {
            let advice = format!("paths are for --include-path and --exclude-path; with wildcards: --glob '{text}'");
            return Err(
                wrong(filter, text, "it has a / in it, and is matched against names, which have none").with_advice(advice)
            );
        }
        _ => Matcher::Name(text.to_owned()),
    };
    Ok(Pattern { text: text.to_owned(), matcher })
}

/// A path as it is compared: without `./` before it and `/` behind it.
fn path(filter: Filter, text: &str) -> Result<String> {
    let path = text.strip_prefix("./").unwrap_or(text).trim_end_matches('/');
    let advice = "write it as it is within the source: --exclude-path 'build;docs/old.pdf'";
    if path.is_empty() || path == "." || path.starts_with('/') {
        return Err(wrong(filter, text, "it names no path within the source").with_advice(advice));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(wrong(filter, text, "it leads out of the source").with_advice(advice));
    }
    Ok(path.to_owned())
}
