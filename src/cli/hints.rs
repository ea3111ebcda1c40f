//! What an error means and what to do about it, from its kind, the service's code and the clocks.
//!
//! The words stand in [`explain`](super::explain)'s pages: that of the service's code, then that of the error's kind for what the
//! codes do not cover. Here is what has to be computed. A wrong clock is looked for before anything is said of keys: with a clock
//! that is off every signature is refused, and the service's own message speaks of the signature.

use super::explain::{Page, page};
use super::render::printable;
use crate::error::{Answer, Error};

/// Meaning and next step of an error; either may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Explained {
    /// What it means, where the message does not say it.
    pub(crate) meaning: Option<String>,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// The page that says more.
    pub(crate) page: Option<String>,
}

/// The service refuses requests whose date is further off than this (15 minutes; "Authorize with Shared Key").
pub(crate) const CLOCK_TOLERANCE_S: u64 = 900;

/// Meaning and next step of an error.
pub(crate) fn explain(error: &Error) -> Explained {
    let by_kind = || of_page(&page_of_kind(error));
    let found = error.answer().and_then(of_answer).or_else(|| of_system(error)).unwrap_or_else(by_kind);
    let found = Explained { page: page_about(error), ..found };
    match error.advice() {
        Some(advice) => Explained { hint: Some(advice.to_owned()), ..found },
        None => found,
    }
}

fn page_of_kind(error: &Error) -> Page {
    page(&format!("{:?}", error.kind())).unwrap_or_default()
}

/// The name of the page that says more: the code's, or else the kind's, unless the place that failed has said what to do.
fn page_about(error: &Error) -> Option<String> {
    let from_service = error.answer().is_none_or(|answer| answer.from_service);
    let (name, page) = match error.code().filter(|_| from_service) {
        Some(code) => (code.to_owned(), page(code)?),
        None if error.advice().is_none() && error.answer().is_none() => (format!("{:?}", error.kind()), page_of_kind(error)),
        None => return None,
    };
    page.says_more().then_some(name)
}

fn of_answer(answer: &Answer) -> Option<Explained> {
    if !answer.from_service {
        return said(
            "the answer did not come from Azure Storage but from something in between (proxy, gateway) or another server",
            "check the address, HTTPS_PROXY and NO_PROXY",
        );
    }
    let refused = matches!(answer.status, 401 | 403);
    if refused && let Some(ahead) = answer.clock_ahead_s.filter(|s| s.unsigned_abs() > CLOCK_TOLERANCE_S) {
        let way = if ahead > 0 { "ahead of" } else { "behind" };
        return said(
            &format!("this machine's clock is {} {way} the service's", people_time(ahead.unsigned_abs())),
            "set the clock (timedatectl set-ntp true), then run it again; nothing is wrong with the key yet",
        );
    }
    let code = answer.code.as_deref()?;
    if matches!(code, "AuthenticationFailed" | "InvalidAuthenticationInfo") {
        return authentication(answer).or_else(|| page(code).as_ref().map(of_page));
    }
    if code == "InvalidHeaderValue" && answer.detail("HeaderName").is_some_and(|n| n.eq_ignore_ascii_case("x-ms-version")) {
        return said("the server is older than this client", "update the emulator; Azurite takes --skipApiVersionCheck");
    }
    page(code).as_ref().map(of_page)
}

/// The service says one code for many things and tells them apart in `AuthenticationErrorDetail` only. What is read there is
/// used for words alone: nothing branches on it.
fn authentication(answer: &Answer) -> Option<Explained> {
    let detail = answer.detail("AuthenticationErrorDetail").unwrap_or("");
    let lower = detail.to_ascii_lowercase();
    if lower.contains("expiry") || lower.contains("time frame") {
        // It has the times, and nothing secret.
        return said(
            &format!("the SAS has expired or is not valid yet: {}", printable(detail)),
            "make a new SAS; blocks already sent stay for a week and are not sent again",
        );
    }
    if lower.contains("signature did not match") || lower.contains("mac signature") {
        return said(
            "the signature is not the one the service computes: wrong key, or a SAS changed on its way here",
            "paste the SAS again, in quotes (a '+' turned into a space, or '%2B' into '%252B', breaks it), or check the key",
        );
    }
    if lower.contains("date header") {
        return said("the request's time was refused", "set this machine's clock (timedatectl set-ntp true)");
    }
    None
}

/// A limit of this process says itself what it is, wherever it was met.
fn of_system(error: &Error) -> Option<Explained> {
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        if let Some(libc::EMFILE | libc::ENFILE) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return said(
                "this process may not have as many files and connections open as it needs",
                "raise the limit (ulimit -n), or lower --concurrency",
            );
        }
        next = cause.source();
    }
    None
}

fn said(meaning: &str, hint: &str) -> Option<Explained> {
    Some(Explained { meaning: Some(meaning.to_owned()), hint: Some(hint.to_owned()), page: None })
}

fn of_page(page: &Page) -> Explained {
    Explained { meaning: page.means.clone(), hint: page.hint.clone(), page: None }
}

/// `40 seconds`, `3 minutes`, `1 hour 5 minutes`, `12 days`.
pub(crate) fn people_time(seconds: u64) -> String {
    let unit = |n: u64, name: &str| if n == 1 { format!("1 {name}") } else { format!("{n} {name}s") };
    match (seconds / 3600, seconds % 3600 / 60) {
        (0, 0) => unit(seconds, "second"),
        (0, minutes) => unit(minutes, "minute"),
        (hours @ 48.., _) => unit(hours / 24, "day"),
        (hours, 0) => unit(hours, "hour"),
        (hours, minutes) => format!("{} {}", unit(hours, "hour"), unit(minutes, "minute")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn refused(code: &str) -> Answer {
        Answer { status: 403, code: Some(code.to_owned()), from_service: true, ..Answer::default() }
    }

    fn meaning(answer: Answer) -> String {
        explain(&Error::new(Kind::AccessRefused, "cannot put a").with_answer(answer)).meaning.unwrap()
    }

    #[test]
    fn a_wrong_clock_comes_before_keys() {
        let mut answer = refused("AuthenticationFailed");
        answer.details.push(("AuthenticationErrorDetail".into(), "The MAC signature found is not the same".into()));
        assert!(meaning(answer.clone()).contains("signature"));
        answer.clock_ahead_s = Some(-3900);
        assert_eq!(meaning(answer.clone()), "this machine's clock is 1 hour 5 minutes behind the service's");
        answer.clock_ahead_s = Some(600);
        assert!(meaning(answer).contains("signature"), "within tolerance");
    }

    #[test]
    fn a_gateway_is_not_taken_for_the_service() {
        let answer = Answer { from_service: false, ..refused("AuthenticationFailed") };
        assert!(meaning(answer).contains("did not come from Azure Storage"));
    }

    #[test]
    fn too_many_open_files_is_told_from_a_missing_permission() {
        let error =
            Error::new(Kind::SourceUnreadable, "cannot read a").with_source(std::io::Error::from_raw_os_error(libc::EMFILE));
        assert!(explain(&error).hint.is_some_and(|hint| hint.contains("ulimit -n")));
    }

    #[test]
    fn advice_of_the_place_that_failed_wins() {
        let error = Error::new(Kind::Name, "cannot store it").with_advice("rename x");
        assert_eq!(explain(&error).hint.as_deref(), Some("rename x"));
    }
}
