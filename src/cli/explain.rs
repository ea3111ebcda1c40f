//! `blobjet explain`: the page of an error code, of a kind of error, or of an exit code. Nothing is contacted.
//!
//! The pages stand in `pages.txt`, the one source of what codes mean and what to do about them: the meaning and the hint under an
//! error come from there too ([`hints`](super::hints)). Sources for the codes: "Common REST API error codes", "Blob service error
//! codes", Azure Storage REST reference.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use crate::error::{Error, Kind, Result};
use clap::Args;
use std::fmt::Write;

const PAGES: &str = include_str!("pages.txt");

/// As wide as the pages are written to be read.
const WIDTH: usize = 80;

/// Names that are offered for one that is not known.
const OFFERED: usize = 3;

/// How alike a name has to be, from 0 to 1, to be offered.
const ALIKE: f64 = 0.8;

const EXAMPLES: &str = "\
Examples:
  blobjet explain AuthorizationPermissionMismatch    a code of the service
  blobjet explain SourceChanged                      a kind of error of blobjet's own
  blobjet explain 4                                  an exit code
  blobjet explain 403                                the codes that come with a status
  blobjet explain                                    all there is";

/// Arguments of `explain`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Error code, kind of error, exit code or HTTP status (default: list them)
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Where it stands.
    pub(crate) section: String,
    /// The names it is for.
    pub(crate) names: Vec<String>,
    /// HTTP statuses it comes with.
    pub(crate) statuses: Vec<u16>,
    /// What it means, where an error's own message does not say it.
    pub(crate) means: Option<String>,
    /// What it means, where that is not repeated under an error.
    pub(crate) what: Option<String>,
    /// The first thing to do.
    pub(crate) hint: Option<String>,
    /// Usual causes.
    pub(crate) causes: Vec<String>,
    /// What else to do.
    pub(crate) steps: Vec<String>,
    /// Whether blobjet sends the request again.
    pub(crate) retried: String,
}

impl Page {
    /// Whether there is more on it than what stands under an error.
    pub(crate) fn says_more(&self) -> bool {
        !self.causes.is_empty() || !self.steps.is_empty()
    }

    fn meaning(&self) -> &str {
        self.means.as_deref().or(self.what.as_deref()).unwrap_or_default()
    }

    fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn add(&mut self, key: &str, text: &str) {
        let text = text.to_owned();
        match key {
            "status" => self.statuses = text.split(' ').filter_map(|status| status.parse().ok()).collect(),
            "means" => self.means = Some(text),
            "what" => self.what = Some(text),
            "hint" => self.hint = Some(text),
            "cause" => self.causes.push(text),
            "do" => self.steps.push(text),
            "retried" => self.retried = text,
            // A test keeps the file free of others.
            _ => {}
        }
    }

    fn text(&self) -> String {
        let mut out = self.names.join(", ");
        if !self.statuses.is_empty() {
            let statuses: Vec<_> = self.statuses.iter().map(u16::to_string).collect();
            // Writing to a string cannot fail.
            let _ = write!(out, "\nHTTP status {}", statuses.join(", "));
        }
        out.push('\n');
        fill(&mut out, "", self.meaning());
        let steps: Vec<_> = self.hint.iter().chain(&self.steps).collect();
        for (title, items) in [("Usual causes", self.causes.iter().collect()), ("What to do", steps)] {
            if !items.is_empty() {
                let _ = write!(out, "\n\n{title}");
            }
            for item in items {
                fill(&mut out, "  - ", item);
            }
        }
        out.push('\n');
        fill(&mut out, "", &format!("Sent again? {}", self.retried));
        out
    }

    fn event(&self) -> Event {
        Event::Page {
            names: self.names.clone(),
            statuses: self.statuses.clone(),
            meaning: self.meaning().to_owned(),
            causes: self.causes.clone(),
            steps: self.hint.iter().chain(&self.steps).cloned().collect(),
            retried: self.retried.clone(),
        }
    }
}

/// Adds a paragraph from a new line on, the lines after the first indented as the first is.
fn fill(out: &mut String, lead: &str, text: &str) {
    let mut column = usize::MAX;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if column == usize::MAX {
            let _ = write!(out, "\n{lead}{word}");
            column = lead.len() + len;
        } else if column + 1 + len > WIDTH {
            let _ = write!(out, "\n{:1$}{word}", "", lead.len());
            column = lead.len() + len;
        } else {
            let _ = write!(out, " {word}");
            column += 1 + len;
        }
    }
}

/// All pages, in the order of the file.
pub(crate) fn pages() -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    let mut section = String::new();
    for line in lines() {
        let (key, text) = line.split_once(' ').unwrap_or((&line, ""));
        match (key, pages.last_mut()) {
            ("##", _) => section = text.to_owned(),
            ("=", _) => {
                let names = text.split(' ').map(str::to_owned).collect();
                pages.push(Page { section: section.clone(), names, ..Page::default() });
            }
            (_, Some(page)) => page.add(key, text),
            (_, None) => {}
        }
    }
    pages
}

/// The lines of the file without comments, those that go on joined to the one before.
fn lines() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in PAGES.lines().filter(|line| !line.is_empty() && !is_comment(line)) {
        match (line.strip_prefix("  "), lines.last_mut()) {
            (Some(rest), Some(last)) => {
                last.push(' ');
                last.push_str(rest);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

fn is_comment(line: &str) -> bool {
    line == "#" || line.starts_with("# ")
}

/// The page of this name, whatever its case.
pub(crate) fn page(name: &str) -> Option<Page> {
    pages().into_iter().find(|page| page.is_named(name))
}

/// Prints what was asked for.
///
/// # Errors
/// `Usage` for a code that has no page, with those that look like it.
pub(crate) fn run(args: &ExplainArgs, context: &Context) -> Result<Exit> {
    let Some(code) = &args.code else {
        list(pages(), context);
        return Ok(Exit::Done);
    };
    if let Some(page) = page(code) {
        context.out.data(|| page.text(), || page.event());
        return Ok(Exit::Done);
    }
    let of_status =
        code.parse::<u16>().map(|status| pages().into_iter().filter(|page| page.statuses.contains(&status)).collect());
    match of_status {
        Ok(found) if !Vec::is_empty(&found) => {
            list(found, context);
            Ok(Exit::Done)
        }
        _ => Err(unknown(code)),
    }
}

/// A line for each page, under the titles of their sections.
fn list(pages: Vec<Page>, context: &Context) {
    let mut section = String::new();
    context.out.data_lines(pages.into_iter().map(|page| {
        let mut text = String::new();
        if page.section != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{}", page.section);
            section.clone_from(&page.section);
        }
        let _ = write!(text, "  {}", page.names.join(", "));
        fill(&mut text, "      ", page.meaning());
        (text, page.event())
    }));
}

fn unknown(code: &str) -> Error {
    let wanted = code.to_ascii_lowercase();
    let mut alike: Vec<(f64, String)> = pages()
        .into_iter()
        .flat_map(|page| page.names)
        .map(|name| {
            let lower = name.to_ascii_lowercase();
            let part = wanted.len() > 3 && lower.contains(&wanted);
            (if part { 1.0 } else { strsim::jaro_winkler(&lower, &wanted) }, name)
        })
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<_> = alike.into_iter().take(OFFERED).map(|(_, name)| name).collect();
    let advice = match names.as_slice() {
        [] => "'blobjet explain' lists the codes there are".to_owned(),
        names => format!("did you mean {}? 'blobjet explain' lists all", names.join(" or ")),
    };
    Error::new(Kind::Usage, format!("there is no page about {code}")).with_advice(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const KINDS: &[Kind] = &[
        Kind::Usage,
        Kind::SourceNotFound,
        Kind::SourceUnreadable,
        Kind::SourceChanged,
        Kind::Name,
        Kind::AccessRefused,
        Kind::ContainerNotFound,
        Kind::NotFound,
        Kind::AlreadyExists,
        Kind::Conflict,
        Kind::Refused,
        Kind::BlocksMissing,
        Kind::Leftovers,
        Kind::TooLarge,
        Kind::Unsupported,
        Kind::Corrupt,
        Kind::GaveUp,
        Kind::Unreachable,
        Kind::BadAnswer,
        Kind::Cancelled,
        Kind::Local,
    ];

    #[test]
    fn pages_are_whole_and_each_name_has_one() {
        let keys = ["##", "=", "status", "means", "what", "hint", "cause", "do", "retried"];
        for line in lines() {
            let key = line.split(' ').next().unwrap();
            assert!(keys.contains(&key), "{key} is no key: {line}");
        }
        let mut names = BTreeSet::new();
        for page in pages() {
            for name in &page.names {
                assert!(!name.is_empty() && names.insert(name.to_ascii_lowercase()), "{name} has two pages");
            }
            assert!(page.means.is_some() != page.what.is_some(), "{:?}", page.names);
            assert!(!page.retried.is_empty() && !page.section.is_empty(), "{:?}", page.names);
            for text in page.causes.iter().chain(&page.steps).chain(&page.hint).chain(&page.means) {
                assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
            }
        }
    }

    #[test]
    fn every_kind_and_every_exit_code_has_a_page() {
        for kind in KINDS {
            assert!(page(&format!("{kind:?}")).is_some(), "{kind:?}");
        }
        let promised = include_str!("../../docs/semantics.md").split("## Exit codes").nth(1).unwrap();
        let codes: Vec<_> = promised
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
            .flat_map(|line| line.split('|').next().unwrap_or_default().split(','))
            .map(str::trim)
            .filter(|code| code.parse::<u8>().is_ok())
            .collect();
        assert!(codes.len() >= 10, "{codes:?}");
        for code in codes {
            assert!(page(code).is_some_and(|page| page.statuses.is_empty()), "{code}");
        }
    }

    /// What the client does is what the pages say.
    #[test]
    fn pages_say_no_where_nothing_is_sent_again() {
        use crate::rest::answer::{Asked, Verdict, judge};
        for page in pages().iter().filter(|page| !page.statuses.is_empty()) {
            for status in &page.statuses {
                let status = http::StatusCode::from_u16(*status).unwrap();
                for name in &page.names {
                    let again = !matches!(judge(status, Some(name), None, Asked::default()), Verdict::Error(_) | Verdict::Done);
                    let says_no = page.retried.starts_with("no");
                    assert!(!(again && says_no), "{name} {status}: {}", page.retried);
                }
            }
        }
    }

    #[test]
    fn what_is_spelt_nearly_right_is_offered() {
        for (typed, offered) in
            [("AuthorisationFailure", "AuthorizationFailure"), ("serverbuzy", "ServerBusy"), ("leaseid", "LeaseIdMissing")]
        {
            let error = unknown(typed);
            assert!(error.advice().is_some_and(|advice| advice.contains(offered)), "{typed}: {:?}", error.advice());
        }
        assert_eq!(unknown("zzz").advice(), Some("'blobjet explain' lists the codes there are"));
    }

    #[test]
    fn a_page_is_laid_out_for_reading() {
        let text = page("snapshotspresent").unwrap().text();
        insta::assert_snapshot!(text, @r"
        SnapshotsPresent
        HTTP status 409

        the blob has snapshots

        Usual causes
          - a blob with snapshots is not deleted unless it is said what becomes of them

        What to do
          - add --delete-snapshots=include to 'blobjet remove'
          - --delete-snapshots=include deletes both, =only the snapshots

        Sent again? no
        ");
    }
}
