//! Conditional requests: one evaluator for all operations ("Specifying conditional headers for Blob service operations", with
//! what recordings add).

use super::digits::upper_hex;
use super::errors::{self as e, Failure, Outcome};
use super::filter::Filter;
use super::http::Head;
use super::time::{self, Ticks, whole_second};

/// The conditions of a request.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
    modified_since: Option<Ticks>,
    unmodified_since: Option<Ticks>,
    tags: Option<Filter>,
}

#[derive(Debug, PartialEq, Eq)]
enum Tags {
    Any,
    Of(Vec<String>),
}

/// How an unmet condition is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Get and HEAD: any combination of headers; `If-None-Match` and `If-Modified-Since` give 304.
    Read,
    /// All else, snapshots and leases among it: one header or two pairs; always 412.
    Write,
    /// Creating a blob: as a write, but `If-None-Match: *` on an existing one is 409 `BlobAlreadyExists` [R].
    Create,
}

/// What conditions are held against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) etag: Ticks,
    pub(crate) modified: Ticks,
    pub(crate) tags: &'a [(String, String)],
}

impl Conditions {
    /// Reads the `If-*` headers and `x-ms-if-tags`.
    ///
    /// # Errors
    /// 400: a combination that the use does not allow, or a value that cannot be read.
    pub(crate) fn of(head: &Head, usage: Use) -> Outcome<Self> {
        let names = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "x-ms-if-tags"];
        Self::read(head, names, usage)
    }

    /// The same for the source of a copy.
    ///
    /// # Errors
    /// As [`of`](Conditions::of).
    pub(crate) fn of_source(head: &Head) -> Outcome<Self> {
        let names = [
            "x-ms-source-if-match",
            "x-ms-source-if-none-match",
            "x-ms-source-if-modified-since",
            "x-ms-source-if-unmodified-since",
            "x-ms-source-if-tags",
        ];
        Self::read(head, names, Use::Read)
    }

    fn read(head: &Head, [im, inm, ims, ius, tags]: [&'static str; 5], usage: Use) -> Outcome<Self> {
        let date = |name: &'static str| match head.header(name) {
            None | Some("") => Ok(None),
            Some(text) => time::parse_http_date(text).map(Some).ok_or_else(|| Failure::header(name, text)),
        };
        let etags = |name| head.header(name).filter(|text| !text.is_empty()).map(Tags::read);
        let conditions = Conditions {
            if_match: etags(im),
            if_none_match: etags(inm),
            modified_since: date(ims)?,
            unmodified_since: date(ius)?,
            tags: head
                .header(tags)
                .map(|text| Filter::parse(text).ok_or_else(|| Failure::header("x-ms-if-tags", text)))
                .transpose()?,
        };
        if usage != Use::Read {
            conditions.check_combination()?;
        }
        Ok(conditions)
    }

    /// Writes take one condition, or a tag with its date: `If-None-Match` with `If-Modified-Since`, `If-Match` with
    /// `If-Unmodified-Since`; and one tag a header.
    fn check_combination(&self) -> Outcome<()> {
        let given = [
            self.if_match.is_some(),
            self.if_none_match.is_some(),
            self.modified_since.is_some(),
            self.unmodified_since.is_some(),
        ];
        let allowed = matches!(
            given,
            [false, false, false, false]
                | [true, false, false, false]
                | [false, true, false, false]
                | [false, false, true, false]
                | [false, false, false, true]
                | [false, true, true, false]
                | [true, false, false, true]
        );
        let single = [&self.if_match, &self.if_none_match].into_iter().flatten().all(|tags| match tags {
            Tags::Any => true,
            Tags::Of(list) => list.len() == 1,
        });
        if allowed && single { Ok(()) } else { Err(e::MULTIPLE_CONDITIONS.into()) }
    }

    /// Holds the conditions against what is there.
    ///
    /// # Errors
    /// 304, 409 or 412 as [`Use`] says.
    pub(crate) fn check(&self, target: Option<Target<'_>>, usage: Use) -> Outcome<()> {
        match self.verdict(target, usage) {
            Verdict::Met => Ok(()),
            Verdict::Unmet => Err(e::CONDITION_NOT_MET.into()),
            Verdict::NotModified if usage == Use::Read => Err(Failure::from(e::CONDITION_NOT_MET).with_status(304)),
            Verdict::NotModified => {
                let exists = usage == Use::Create && self.if_none_match == Some(Tags::Any);
                Err(if exists { e::BLOB_EXISTS.into() } else { e::CONDITION_NOT_MET.into() })
            }
        }
    }

    /// The bare verdict, for copies, which have their own way of telling.
    pub(crate) fn verdict(&self, target: Option<Target<'_>>, usage: Use) -> Verdict {
        let Some(target) = target else {
            // Nothing is there: only "if it is there" can fail.
            let wants_one = self.if_match.is_some() || self.tags.is_some();
            return if wants_one { Verdict::Unmet } else { Verdict::Met };
        };
        if self.tags.as_ref().is_some_and(|filter| !filter.matches(target.tags)) {
            return Verdict::Unmet;
        }
        let same = |tags: &Tags| tags.name(target.etag);
        // Dates in headers have whole seconds; so compares what they are held against.
        let modified = whole_second(target.modified);
        let matched = self.if_match.as_ref().map(same);
        let unmodified = self.unmodified_since.map(|since| modified <= since);
        let none_matched = self.if_none_match.as_ref().map(|tags| !same(tags));
        let newer = self.modified_since.map(|since| modified > since);
        let (strict, loose) = match usage {
            Use::Read => {
                let strict = matched != Some(false) && unmodified != Some(false);
                // Either of the two suffices for a read.
                let loose = match (none_matched, newer) {
                    (Some(a), Some(b)) => a || b,
                    (a, b) => a.or(b).unwrap_or(true),
                };
                (strict, loose)
            }
            // The tag wins over its date.
            Use::Write | Use::Create => (matched.or(unmodified).unwrap_or(true), none_matched.or(newer).unwrap_or(true)),
        };
        match (strict, loose) {
            (false, _) => Verdict::Unmet,
            (true, false) => Verdict::NotModified,
            (true, true) => Verdict::Met,
        }
    }
}

/// Outcome of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    /// `If-Match`, `If-Unmodified-Since` or the tags.
    Unmet,
    /// `If-None-Match` or `If-Modified-Since`.
    NotModified,
}

impl Tags {
    fn read(text: &str) -> Self {
        if text.trim() == "*" {
            return Tags::Any;
        }
        Tags::Of(text.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"').to_owned()).collect())
    }

    fn name(&self, etag: Ticks) -> bool {
        match self {
            Tags::Any => true,
            Tags::Of(list) => list.iter().any(|tag| *tag == plain_etag(etag)),
        }
    }
}

/// An ETag without quotes, as in List Blobs.
pub(crate) fn plain_etag(etag: Ticks) -> String {
    format!("0x{etag:X}")
}

/// An ETag as in headers.
pub(crate) fn quoted_etag(etag: Ticks) -> String {
    let mut text = String::with_capacity(20);
    text.push_str("\"0x");
    upper_hex(&mut text, etag, 1);
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::super::time::SECOND;
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const MODIFIED: Ticks = 639_000_000_000_000_000 + SECOND / 2;
    const OTHER: &str = "\"0x1\"";

    fn head(headers: &[(&str, &str)]) -> Head {
        let lines: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        Head::parse(text.as_bytes(), IpAddr::V4(Ipv4Addr::LOCALHOST), None).unwrap().unwrap().0
    }

    fn outcome(headers: &[(&str, &str)], usage: Use, there: bool) -> (u16, &'static str) {
        let target = Target { etag: MODIFIED, modified: MODIFIED, tags: &[] };
        match Conditions::of(&head(headers), usage).and_then(|c| c.check(there.then_some(target), usage)) {
            Ok(()) => (200, ""),
            Err(failure) => (failure.status(), failure.code().name),
        }
    }

    #[test]
    fn the_table() {
        let same = quoted_etag(MODIFIED);
        let same = same.as_str();
        let bare = plain_etag(MODIFIED);
        let (at, before, after) =
            (time::http_date(MODIFIED), time::http_date(MODIFIED - 9 * SECOND), time::http_date(MODIFIED + 9 * SECOND));
        let (at, before, after) = (at.as_str(), before.as_str(), after.as_str());
        let many = format!("{OTHER}, {same}");
        let (im, inm, ims, ius) = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since");
        let (ok, c304, c412) = ((200, ""), (304, "ConditionNotMet"), (412, "ConditionNotMet"));
        let multiple = (400, "MultipleConditionHeadersNotSupported");
        type Case<'a> = (&'a [(&'a str, &'a str)], (u16, &'a str), (u16, &'a str));
        let cases: &[Case<'_>] = &[
            // (headers, outcome of a read, outcome of a write), both on a blob that is there
            (&[(im, same)], ok, ok),
            (&[(im, &bare)], ok, ok),
            (&[(im, "*")], ok, ok),
            (&[(im, OTHER)], c412, c412),
            (&[(inm, OTHER)], ok, ok),
            (&[(inm, same)], c304, c412),
            (&[(inm, "*")], c304, c412),
            (&[(ims, before)], ok, ok),
            (&[(ims, at)], c304, c412),
            (&[(ims, after)], c304, c412),
            (&[(ius, before)], c412, c412),
            (&[(ius, at)], ok, ok),
            (&[(ius, after)], ok, ok),
            // a read needs one of the two, a write lets the tag decide
            (&[(inm, same), (ims, before)], ok, c412),
            (&[(inm, OTHER), (ims, after)], ok, ok),
            (&[(im, same), (ius, before)], c412, ok),
            (&[(im, OTHER), (ius, after)], c412, c412),
            (&[(im, same), (inm, OTHER)], ok, multiple),
            (&[(im, same), (ims, before)], ok, multiple),
            (&[(inm, OTHER), (ius, after)], ok, multiple),
            (&[(ims, before), (ius, after)], ok, multiple),
            (&[(im, &many)], ok, multiple),
            (&[(inm, &many)], c304, multiple),
            (&[(ims, "yesterday")], (400, "InvalidHeaderValue"), (400, "InvalidHeaderValue")),
        ];
        for (headers, read, write) in cases {
            assert_eq!(outcome(headers, Use::Read, true), *read, "read {headers:?}");
            assert_eq!(outcome(headers, Use::Write, true), *write, "write {headers:?}");
        }
    }

    #[test]
    fn creating_knows_absent_and_present() {
        assert_eq!(outcome(&[("If-None-Match", "*")], Use::Create, true), (409, "BlobAlreadyExists"));
        assert_eq!(outcome(&[("If-None-Match", "*")], Use::Create, false), (200, ""));
        assert_eq!(outcome(&[("If-Match", "*")], Use::Create, false), (412, "ConditionNotMet"));
        assert_eq!(outcome(&[("If-Match", OTHER)], Use::Create, false), (412, "ConditionNotMet"));
        let long_ago = time::http_date(MODIFIED - 900 * SECOND);
        assert_eq!(outcome(&[("If-Unmodified-Since", &long_ago)], Use::Create, false), (200, ""));
    }
}
