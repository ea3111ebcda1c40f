//! What an answer means: success, another try, or an error of some kind. Pure: status, headers and body in, verdict out.
//!
//! Sources: "Common REST API error codes", "Blob service error codes", Azure Storage REST reference.

use crate::error::{Answer, Kind};
use crate::rest::date;
use crate::rest::model::ErrorBody;
use crate::rest::request::Response;
use crate::rest::stats::RetryCause;
use http::StatusCode;
use std::time::{Duration, SystemTime};

/// What to do about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What was asked for has been done.
    Done,
    /// Sending again may help.
    Again(RetryCause),
    /// Sending again once may help: a checksum did not fit.
    Once,
    /// The service does not know `x-ms-content-crc64`: another form of checksum will do.
    NoCrc64,
    /// Final.
    Error(Kind),
}

/// Whether an answer comes from the service rather than from something in between.
pub(crate) fn from_service(response: &Response) -> bool {
    response.headers.contains("x-ms-request-id") || response.headers.contains("x-ms-version")
}

/// What was asked, as far as the meaning of an answer depends on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    /// A condition that something be absent or older was sent.
    pub(crate) conditional: bool,
    /// `x-ms-content-crc64` was sent, or asked for.
    pub(crate) crc64: bool,
}

/// The verdict on an answer whose error code is `code`, with the value of the body's `HeaderName`.
pub(crate) fn judge(status: StatusCode, code: Option<&str>, header_name: Option<&str>, asked: Asked) -> Verdict {
    use Verdict::{Again, Done, NoCrc64, Once};
    let code = code.unwrap_or_default();
    match (status.as_u16(), code) {
        (200..=299, _) => Done,
        // Azurite's answer to x-ms-content-crc64; the other two are how a service would refuse a header it does not know [I].
        (500, "FeatureNotSupported") if asked.crc64 => NoCrc64,
        (400, "UnsupportedHeader" | "InvalidHeaderValue")
            if asked.crc64 && header_name.is_some_and(|h| h.to_ascii_lowercase().ends_with("content-crc64")) =>
        {
            NoCrc64
        }
        (_, "FeatureNotSupported" | "APINotImplemented" | "NotImplemented") | (501 | 505, _) => Verdict::Error(Kind::Unsupported),
        (503 | 429, _) => Again(RetryCause::Throttled),
        (408 | 500 | 502 | 504, _) => Again(RetryCause::ServerError),
        (409, "ContainerBeingDeleted" | "AccountBeingCreated" | "SnapshotOperationRateExceeded") => {
            Again(RetryCause::ServerError)
        }
        (400, "Md5Mismatch" | "Crc64Mismatch") => Once,
        _ => Verdict::Error(kind(status, code, asked.conditional)),
    }
}

/// What a caller can do about a final refusal.
fn kind(status: StatusCode, code: &str, conditional: bool) -> Kind {
    match code {
        "ContainerNotFound" | "ContainerDisabled" => return Kind::ContainerNotFound,
        "ContainerAlreadyExists" => return Kind::AlreadyExists,
        "BlobAlreadyExists" | "ResourceAlreadyExists" if conditional => return Kind::AlreadyExists,
        "UnauthorizedBlobOverwrite"
        | "BlobArchived"
        | "BlobBeingRehydrated"
        | "BlobImmutableDueToPolicy"
        | "BlobImmutableDueToLegalHold"
        | "InvalidBlobType"
        | "PendingCopyOperation"
        | "BlobUsesCustomerSpecifiedEncryption"
        | "SnapshotsPresent"
        | "InfiniteLeaseDurationRequired" => return Kind::Conflict,
        "PublicAccessNotPermitted" => return Kind::AccessRefused,
        "InvalidBlockList" => return Kind::BlocksMissing,
        "InvalidBlobOrBlock" => return Kind::Leftovers,
        // Seen with and without `RequestEntityTooLarge` before it.
        _ if code.ends_with("BlockCountExceedsLimit") => return Kind::Leftovers,
        _ if code.starts_with("Lease") => return Kind::Conflict,
        _ => {}
    }
    match status.as_u16() {
        401 | 403 | 407 => Kind::AccessRefused,
        404 => Kind::NotFound,
        // 412 for "only if absent" has been seen beside the documented 409.
        409 | 412 if conditional && matches!(code, "" | "ConditionNotMet" | "TargetConditionNotMet") => Kind::AlreadyExists,
        409 | 412 => Kind::Conflict,
        413 => Kind::TooLarge,
        300..=399 => Kind::BadAnswer,
        _ => Kind::Refused,
    }
}

/// What is told of a copy's source in headers, by the names it has in bodies.
const SOURCE_DETAILS: [(&str, &str); 2] =
    [("x-ms-copy-source-status-code", "CopySourceStatusCode"), ("x-ms-copy-source-error-code", "CopySourceErrorCode")];

/// Takes an answer's facts out of it: the header first, then the body; on HEAD there is only the header.
pub(crate) fn facts(response: &Response, now: SystemTime) -> Answer {
    let body = ErrorBody::parse(&response.body);
    let text = |name: &str| response.header(name).map(str::to_owned);
    let ahead = response.header("date").and_then(date::parse).map(|theirs| match now.duration_since(theirs) {
        Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap_or(i64::MAX),
        Err(behind) => i64::try_from(behind.duration().as_secs()).map_or(i64::MIN, |s| -s),
    });
    let (code, message, mut details) = match body {
        Some(body) => (Some(body.code.clone()), Some(body.first_line().to_owned()), body.details),
        None => (None, foreign_text(response), Vec::new()),
    };
    for (header, name) in SOURCE_DETAILS {
        if let Some(value) = text(header)
            && !details.iter().any(|(known, _)| known == name)
        {
            details.push((name.to_owned(), value));
        }
    }
    Answer {
        status: response.status.as_u16(),
        code: text("x-ms-error-code").or(code).filter(|c| !c.is_empty()),
        message: message.filter(|m| !m.is_empty()),
        details,
        request_id: text("x-ms-request-id"),
        clock_ahead_s: ahead,
        from_service: from_service(response),
    }
}

/// The beginning of a body that is no error document, with control characters left out: a gateway's page, mostly.
fn foreign_text(response: &Response) -> Option<String> {
    const MOST: usize = 200;
    if response.status.is_success() || response.body.is_empty() {
        return None;
    }
    let start = &response.body[..response.body.len().min(MOST)];
    let text = String::from_utf8_lossy(start);
    Some(text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect())
}

/// How long the service asks us to wait: milliseconds where it says so, else `Retry-After` in seconds or as a date (RFC 9110,
/// 10.2.3).
pub(crate) fn retry_hint(response: &Response, now: SystemTime) -> Option<Duration> {
    for name in ["x-ms-retry-after-ms", "retry-after-ms"] {
        if let Some(ms) = response.header(name).and_then(|v| v.trim().parse().ok()) {
            return Some(Duration::from_millis(ms));
        }
    }
    let value = response.header("retry-after")?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // Against the answer's own clock: ours may be wrong.
    let now = response.header("date").and_then(date::parse).unwrap_or(now);
    date::parse(value).map(|at| at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&'static str, &str)], body: &str) -> Response {
        let headers = headers.iter().copied().collect();
        Response { status: StatusCode::from_u16(status).unwrap(), headers, body: body.to_owned().into(), attempts: 1 }
    }

    #[test]
    fn verdicts() {
        use RetryCause::{ServerError, Throttled};
        use Verdict::{Again, Done, Error, NoCrc64, Once};
        let plain = Asked::default();
        let conditional = Asked { conditional: true, crc64: true };
        for (status, code, asked, verdict) in [
            (201, "", plain, Done),
            (202, "", plain, Done),
            (503, "ServerBusy", plain, Again(Throttled)),
            (429, "", plain, Again(Throttled)),
            (500, "InternalError", plain, Again(ServerError)),
            (500, "OperationTimedOut", plain, Again(ServerError)),
            (502, "", plain, Again(ServerError)),
            (504, "", plain, Again(ServerError)),
            (408, "", plain, Again(ServerError)),
            (409, "ContainerBeingDeleted", plain, Again(ServerError)),
            (400, "Md5Mismatch", plain, Once),
            (400, "Crc64Mismatch", plain, Once),
            (500, "FeatureNotSupported", conditional, NoCrc64),
            (500, "FeatureNotSupported", plain, Error(Kind::Unsupported)),
            (501, "APINotImplemented", plain, Error(Kind::Unsupported)),
            (400, "InvalidHeaderValue", plain, Error(Kind::Refused)),
            (400, "InvalidBlockList", plain, Error(Kind::BlocksMissing)),
            (400, "InvalidBlobOrBlock", plain, Error(Kind::Leftovers)),
            (409, "BlockCountExceedsLimit", plain, Error(Kind::Leftovers)),
            (409, "RequestEntityTooLargeBlockCountExceedsLimit", plain, Error(Kind::Leftovers)),
            (401, "NoAuthenticationInformation", plain, Error(Kind::AccessRefused)),
            (403, "AuthenticationFailed", plain, Error(Kind::AccessRefused)),
            (403, "AuthorizationPermissionMismatch", plain, Error(Kind::AccessRefused)),
            (403, "UnauthorizedBlobOverwrite", plain, Error(Kind::Conflict)),
            (404, "ContainerNotFound", plain, Error(Kind::ContainerNotFound)),
            (404, "BlobNotFound", plain, Error(Kind::NotFound)),
            (404, "", plain, Error(Kind::NotFound)),
            (409, "ContainerAlreadyExists", plain, Error(Kind::AlreadyExists)),
            (409, "BlobAlreadyExists", conditional, Error(Kind::AlreadyExists)),
            (409, "BlobAlreadyExists", plain, Error(Kind::Conflict)),
            (412, "ConditionNotMet", conditional, Error(Kind::AlreadyExists)),
            (412, "", conditional, Error(Kind::AlreadyExists)),
            (412, "ConditionNotMet", plain, Error(Kind::Conflict)),
            (412, "LeaseIdMissing", conditional, Error(Kind::Conflict)),
            (409, "BlobArchived", conditional, Error(Kind::Conflict)),
            (409, "BlobImmutableDueToPolicy", plain, Error(Kind::Conflict)),
            (409, "InvalidBlobType", conditional, Error(Kind::Conflict)),
            (409, "PublicAccessNotPermitted", plain, Error(Kind::AccessRefused)),
            (413, "RequestBodyTooLarge", plain, Error(Kind::TooLarge)),
            (302, "", plain, Error(Kind::BadAnswer)),
            (411, "MissingContentLengthHeader", plain, Error(Kind::Refused)),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(judge(status, Some(code), None, asked), verdict, "{status} {code}");
        }
        let refused = judge(StatusCode::BAD_REQUEST, Some("InvalidHeaderValue"), Some("x-ms-content-crc64"), conditional);
        assert_eq!(refused, NoCrc64);
    }

    #[test]
    fn header_wins_over_body_and_details_stay() {
        let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>FromBody</Code><Message>First.\nRequestId:1\nTime:2</Message><AuthenticationErrorDetail>why</AuthenticationErrorDetail></Error>";
        let now = date::parse("Thu, 15 Jan 2026 09:30:00 GMT").unwrap();
        let head = [("x-ms-error-code", "FromHeader"), ("x-ms-request-id", "id"), ("date", "Thu, 15 Jan 2026 08:30:00 GMT")];
        let answer = facts(&response(403, &head, xml), now);
        assert_eq!((answer.code.as_deref(), answer.message.as_deref()), (Some("FromHeader"), Some("First.")));
        assert_eq!((answer.detail("AuthenticationErrorDetail"), answer.clock_ahead_s), (Some("why"), Some(3600)));
        assert_eq!((answer.request_id.as_deref(), answer.from_service), (Some("id"), true));
        let answer = facts(&response(403, &[("x-ms-version", "v")], xml), now);
        assert_eq!((answer.code.as_deref(), answer.from_service), (Some("FromBody"), true));
    }

    #[test]
    fn gateways_pages_are_kept_short_and_known_as_foreign() {
        let page = format!("<html>\r\n<h1>502\u{1b}[31m Bad</h1>{}", "x".repeat(1000));
        let answer = facts(&response(502, &[("server", "nginx")], &page), SystemTime::now());
        assert!(!answer.from_service);
        let text = answer.message.unwrap();
        assert!(text.starts_with("<html> <h1>502[31m Bad</h1>xxx") && text.len() <= 200, "{text}");
        assert_eq!(facts(&response(502, &[], ""), SystemTime::now()).message, None);
    }

    #[test]
    fn hints_in_all_their_forms() {
        let now = date::parse("Thu, 15 Jan 2026 08:30:00 GMT").unwrap();
        for (headers, seconds) in [
            (vec![("retry-after", "7")], Some(7.0)),
            (vec![("retry-after", "7"), ("x-ms-retry-after-ms", "250")], Some(0.25)),
            (vec![("retry-after", "Thu, 15 Jan 2026 08:30:09 GMT")], Some(9.0)),
            (vec![("retry-after", "Thu, 15 Jan 2026 08:30:09 GMT"), ("date", "Thu, 15 Jan 2026 08:30:04 GMT")], Some(5.0)),
            (vec![("retry-after", "Thu, 15 Jan 2026 08:00:00 GMT")], Some(0.0)),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "-1")], None),
            (vec![], None),
        ] {
            assert_eq!(retry_hint(&response(503, &headers, ""), now).map(|d| d.as_secs_f64()), seconds, "{headers:?}");
        }
    }
}
