//! Errors as people read them: what was being done, what the service said, what it means, what to do next, and where there is more.
//!
//! Nothing leaves here that could move a terminal's cursor or show a signature: control characters and direction marks are
//! escaped, and `sig` parameters are taken out once more, whatever the text came from.

use super::hints::explain;
use crate::error::Error;
use crate::secret::SafeUrl;
use serde::Serialize;
use std::borrow::Cow;
use std::error::Error as _;

/// An error taken apart for printing, as text or as JSON.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub(crate) struct Report {
    /// What was being done to which thing.
    pub(crate) message: String,
    /// The chain of causes, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<String>,
    /// Name of the error's kind.
    pub(crate) kind: String,
    /// HTTP status of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Error code of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// The service's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_message: Option<String>,
    /// `x-ms-request-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// Requests sent before it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// Seconds from the first request to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tried_for_s: Option<u64>,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) meaning: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// What 'blobjet explain' has a page about, where that says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<String>,
}

impl Report {
    /// Takes an error apart.
    pub(crate) fn of(error: &Error) -> Report {
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(cause) = next {
            let text = safe(&cause.to_string());
            if causes.last() != Some(&text) {
                causes.push(text);
            }
            next = cause.source();
        }
        let answer = error.answer();
        let explained = explain(error);
        Report {
            message: safe(&error.to_string()),
            causes,
            kind: format!("{:?}", error.kind()),
            status: answer.map(|a| a.status),
            code: answer.and_then(|a| a.code.clone()),
            service_message: answer.and_then(|a| a.message.as_deref()).map(safe),
            request_id: answer.and_then(|a| a.request_id.clone()),
            attempts: error.attempts().map(|a| a.count),
            tried_for_s: error.attempts().map(|a| a.elapsed.as_secs()),
            meaning: explained.meaning.as_deref().map(safe),
            hint: explained.hint.as_deref().map(safe),
            page: explained.page,
        }
    }

    /// A usage error that has no [`Error`] behind it.
    pub(crate) fn usage(message: &str, hint: &str) -> Report {
        Report::of(&Error::new(crate::Kind::Usage, message).with_advice(hint))
    }

    /// What went wrong in one line, without advice.
    pub(crate) fn one_line(&self) -> String {
        let mut out = self.message.clone();
        for cause in &self.causes {
            out.push_str(": ");
            out.push_str(cause);
        }
        if let Some(line) = self.answer_line() {
            out.push_str(": ");
            out.push_str(&line);
        }
        out
    }

    /// The four parts, one a line, without colour, and the page that says more. Causes are told in the first line, the service's answer in the second.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("error: {}", printable(&self.message));
        for cause in &self.causes {
            out.push_str(": ");
            out.push_str(&printable(cause));
        }
        if let Some(line) = self.answer_line() {
            out.push_str("\n  answer: ");
            out.push_str(&printable(&line));
        }
        if let Some(meaning) = &self.meaning {
            out.push_str("\n  meaning: ");
            out.push_str(&printable(meaning));
        }
        if let Some(hint) = &self.hint {
            out.push_str("\n  hint: ");
            out.push_str(&printable(hint));
        }
        if let Some(page) = &self.page {
            out.push_str("\n  more: blobjet explain ");
            out.push_str(&printable(page));
        }
        out
    }

    fn answer_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(status) = self.status {
            parts.push(match &self.code {
                Some(code) => format!("{status} {code}"),
                None => status.to_string(),
            });
        }
        parts.extend(self.service_message.clone());
        if let Some(id) = &self.request_id {
            parts.push(format!("request id {id}"));
        }
        if let (Some(count), Some(seconds)) = (self.attempts, self.tried_for_s)
            && count > 1
        {
            parts.push(format!("after {count} requests in {seconds} s"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn safe(text: &str) -> String {
    SafeUrl::new(text).to_string()
}

/// The text with everything escaped that a terminal could act on: control characters, line breaks, direction overrides.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn acts(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Answer, Attempts, Kind};
    use std::time::Duration;

    #[test]
    fn an_error_has_four_parts() {
        let error = Error::new(Kind::AccessRefused, "cannot put https://a.blob.core.windows.net/c/x?sp=r&sig=abc")
            .with_answer(Answer {
                status: 403,
                code: Some("AuthorizationPermissionMismatch".into()),
                message: Some("This request is not authorized.".into()),
                request_id: Some("1f2e".into()),
                from_service: true,
                ..Answer::default()
            })
            .with_attempts(Attempts { count: 3, elapsed: Duration::from_secs(7) });
        insta::assert_snapshot!(Report::of(&error).text(), @r"
        error: cannot put https://a.blob.core.windows.net/c/x?sp=r&sig=REDACTED
          answer: 403 AuthorizationPermissionMismatch; This request is not authorized.; request id 1f2e; after 3 requests in 7 s
          meaning: the SAS lacks a right this needs, or the identity lacks a data role
          hint: make a SAS with create and write (sp=cw; tags also need t), or assign the role Storage Blob Data Contributor
          more: blobjet explain AuthorizationPermissionMismatch
        ");
    }

    #[test]
    fn causes_follow_on_the_same_line_once_each() {
        let error = Error::new(Kind::SourceUnreadable, "cannot open a")
            .with_source(std::io::Error::other("disk on fire"))
            .context("cannot upload a");
        assert!(Report::of(&error).text().starts_with("error: cannot upload a: cannot open a: disk on fire\n"));
    }

    #[test]
    fn names_cannot_act_on_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\rc\nd\u{202e}e\u{9b}f"), "a\\u{1b}[31mb\\rc\\nd\\u{202e}e\\u{9b}f");
        assert_eq!(printable("naïve 文件 🎈"), "naïve 文件 🎈");
    }
}
