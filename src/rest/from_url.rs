//! Put Blob From URL and Put Block From URL: the service fetches the bytes itself, and none of them pass through here.
//! Source: "Put Blob From URL", "Put Block From URL", Azure Storage REST reference.
//!
//! What is read is pinned to one version of the source by its ETag. The service tells trouble with the source apart from trouble
//! with the destination by `x-ms-copy-source-status-code` and `-error-code`, or by its code alone; [`verdict`] reads that, and
//! the errors say which of the two it was. The source's own MD5 is not sent along for comparing: whoever wrote the blob may have
//! stored any, and a copy must not depend on it.

use crate::attributes::{Attributes, Replace};
use crate::error::{Answer, Error, Kind, Result};
use crate::rest::answer::Verdict;
use crate::rest::auth::{Lending, Need};
use crate::rest::blob::{Blob, BlobProperties, Written, maybe_made_by_us, op_for, settled, unsettled};
use crate::rest::client::{Client, Op};
use crate::rest::properties;
use crate::rest::request::Request;
use crate::rest::stats::RetryCause;
use crate::secret::SafeUrl;
use http::{HeaderValue, Method};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Longest `x-ms-copy-source`, bytes ("Put Blob From URL").
const MAX_URL: usize = 2 * 1024;

/// Slowest pace at which a source is given time to be fetched, bytes a second.
const SLOWEST: u64 = 1024 * 1024;

/// The header that names a source.
pub(crate) const COPY_SOURCE: &str = "x-ms-copy-source";

const PUT_BLOB: Op = Op::new("put blob from URL to", Need::WRITE);
const PUT_BLOCK: Op = Op::new("put a block from URL to", Need::WRITE);

/// A blob's address with what lets the service read it, for a request or two: what is lent in it runs out. `Debug` shows no
/// signature.
#[derive(Debug, Clone)]
pub struct Link {
    url: HeaderValue,
    shown: SafeUrl,
}

impl Client {
    /// A blob of this client's service for another one to read.
    ///
    /// # Errors
    /// `Name` where the address would be longer than the service takes.
    pub fn link(&self, container: &str, blob: &str) -> Result<Link> {
        let location = self.location();
        let path = location.blob_path(container, blob);
        let mut url = format!("{}://{}{path}", location.scheme.as_str(), location.authority());
        let shown = location.safe_path(&path);
        let lending = Lending { container, blob, scheme: location.scheme, now: SystemTime::now() };
        if let Some(token) = self.lend(&lending) {
            url.push('?');
            url.push_str(token.expose());
        }
        if url.len() > MAX_URL {
            let text = format!("the address of {shown} has {} bytes with its SAS, and the service takes {MAX_URL}", url.len());
            return Err(Error::new(Kind::Name, text).with_advice("--stream sends its bytes through this machine"));
        }
        let mut url = HeaderValue::try_from(url)
            .map_err(|e| Error::new(Kind::Name, format!("{shown} cannot stand in a header")).with_source(e))?;
        url.set_sensitive(true);
        Ok(Link { url, shown })
    }
}

/// What is read of a source.
#[derive(Debug, Clone, Copy)]
pub struct From<'a> {
    /// Where it is.
    pub link: &'a Link,
    /// The version it has to be (`x-ms-source-if-match`), without quotes.
    pub etag: Option<&'a str>,
    /// Bytes the service has to fetch: it is given time for them.
    pub len: u64,
}

impl From<'_> {
    fn ask(&self, request: Request) -> Result<Request> {
        let mut request = request.header(COPY_SOURCE, self.link.url.clone());
        if let Some(etag) = self.etag {
            let quoted = HeaderValue::try_from(format!("\"{etag}\""));
            let quoted =
                quoted.map_err(|e| Error::new(Kind::BadAnswer, format!("the ETag of {}", self.link.shown)).with_source(e))?;
            request = request.header("x-ms-source-if-match", quoted);
        }
        request.patience = Duration::from_secs(self.len / SLOWEST);
        Ok(request)
    }

    /// Says whose trouble it was, where it was the source's.
    fn explained(&self, error: Error) -> Error {
        let source = error.answer().and_then(Trouble::of);
        let shown = &self.link.shown;
        let (what, advice) = match (source, error.kind()) {
            (_, Kind::Unsupported) => (
                format!("this server cannot fetch {shown} itself"),
                "--stream sends the bytes through this machine".to_owned(),
            ),
            (None, _) => return error,
            (Some(_), Kind::SourceChanged) => (
                format!("{shown} has changed since it was listed"),
                "run it again; --on-change retry does so by itself".to_owned(),
            ),
            (Some(_), Kind::AccessRefused) => (
                format!("the service was refused when it read the source {shown}"),
                "the credential of the source needs the right to read (sp=r), and the source's firewall must let the service of the destination in; --stream reads it from this machine".to_owned(),
            ),
            (Some(_), Kind::Unreachable) => (
                format!("the service cannot reach the source {shown}"),
                "the source has to be reachable from the destination's service, not from here; --stream sends the bytes through this machine".to_owned(),
            ),
            (Some(_), Kind::Conflict) => (
                format!("the service cannot read the source {shown}"),
                "if it is in the archive tier, bring it back first: blobjet set-properties URL --block-blob-tier hot; that takes hours".to_owned(),
            ),
            (Some(_), _) => return error.context(format!("the service cannot read the source {shown}")),
        };
        error.context(what).with_advice(advice)
    }
}

/// What an answer says of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// It is another version by now, or gone.
    Changed,
    /// Whoever reads it may not.
    Refused,
    /// It is in the archive, or on its way out of it.
    Archived,
    /// Its service asks for patience, or has a passing trouble.
    Busy(RetryCause),
    /// It could not be looked at: out of reach for good, or for now.
    Unverified,
}

impl Trouble {
    /// `None` where the source is not what the answer is about.
    fn of(answer: &Answer) -> Option<Trouble> {
        let code = answer.code.as_deref().unwrap_or_default();
        let status = answer.detail("CopySourceStatusCode").and_then(|text| text.parse().ok());
        if status.is_none() && !matches!(code, "CannotVerifyCopySource" | "SourceConditionNotMet") {
            return None;
        }
        let source_code = answer.detail("CopySourceErrorCode").unwrap_or_default();
        Some(match (status.unwrap_or(answer.status), source_code) {
            (_, "OperationTimedOut" | "InternalError") => Trouble::Busy(RetryCause::ServerError),
            (_, "ServerBusy") | (429 | 503, _) => Trouble::Busy(RetryCause::Throttled),
            (_, "BlobArchived" | "BlobBeingRehydrated") => Trouble::Archived,
            (_, "PublicAccessNotPermitted") | (401 | 403, _) => Trouble::Refused,
            // 304 and 412 without a code of the source: recorded of synchronous copies.
            (304 | 412, _) | (404, "BlobNotFound" | "ContainerNotFound") | (416, _) => Trouble::Changed,
            (500 | 502 | 504, _) if status.is_some() => Trouble::Busy(RetryCause::ServerError),
            _ => Trouble::Unverified,
        })
    }
}

/// What to do about the answer to a request that names a source; `None` where the source is not what it is about.
///
/// `reached`: the service has fetched something before. Until then, a source that cannot be verified after a few `failures`
/// is taken to be out of its reach.
pub(crate) fn verdict(answer: &Answer, reached: bool, failures: u32) -> Option<Verdict> {
    const FEW: u32 = 2;
    Some(match Trouble::of(answer)? {
        Trouble::Changed => Verdict::Error(Kind::SourceChanged),
        Trouble::Refused => Verdict::Error(Kind::AccessRefused),
        Trouble::Archived => Verdict::Error(Kind::Conflict),
        Trouble::Busy(cause) => Verdict::Again(cause),
        Trouble::Unverified if !reached && failures >= FEW => Verdict::Error(Kind::Unreachable),
        // A missing resource does not come back; with others found before, it concerns this one alone.
        Trouble::Unverified if reached && answer.status == 404 => Verdict::Error(Kind::SourceChanged),
        Trouble::Unverified => Verdict::Again(RetryCause::ServerError),
    })
}

impl Blob<'_> {
    /// Put Blob From URL: the whole blob in one request, atomically, with these properties and none of the source's. Where no
    /// metadata are given the service takes those of the source all the same. Up to 5000 MiB.
    ///
    /// A try whose answer was lost and that made what the next one finds in its way is a success where that can be proved: by
    /// length, the MD5 of the source, and the time of change.
    ///
    /// # Errors
    /// `SourceChanged`, `AlreadyExists` by the condition, `Unsupported` where the server does not know it, `Unreachable` where
    /// it cannot get at the source, `AccessRefused` by either side, `Conflict`, and those of [`Client::send`].
    pub async fn put_blob_from_url(&self, from: From<'_>, attributes: &Attributes, replace: Replace) -> Result<Written> {
        let request = self.request(Method::PUT).header("x-ms-blob-type", HeaderValue::from_static("BlockBlob"));
        // One function says what a blob carries, whatever way its bytes take: the source's properties are among ours already.
        let request = request.header("x-ms-copy-source-blob-properties", HeaderValue::from_static("false"));
        let mut request = from.ask(request)?;
        properties::apply(attributes, replace, &mut request.headers)?;
        let (op, started) = (op_for(PUT_BLOB, attributes, replace), Instant::now());
        match self.client.send(request, op).await {
            Ok(response) => Ok(Written(response)),
            Err(error) if maybe_made_by_us(&error) => match self.get_properties().await {
                Ok(Some(there)) if is_copy(&there, &from, attributes) && there.is_since(started) => Ok(settled(there.0, &error)),
                other => Err(unsettled(error, other.err())),
            },
            Err(error) => Err(from.explained(error)),
        }
    }

    /// Put Block From URL: stages `from.len` bytes at `offset` of the source as one block, up to 4000 MiB. Safe to repeat.
    ///
    /// # Errors
    /// As [`Blob::put_blob_from_url`]; `Leftovers` for blocks that are in the way.
    pub async fn put_block_from_url(&self, id: &str, from: From<'_>, offset: u64) -> Result<Written> {
        let range = format!("bytes={offset}-{}", (offset + from.len).saturating_sub(1));
        let request = self.request(Method::PUT).query("comp", "block").query("blockid", id);
        let request = request.header("x-ms-source-range", HeaderValue::try_from(range).expect("digits"));
        let request = from.ask(request)?;
        self.client.send(request, PUT_BLOCK).await.map(Written).map_err(|error| from.explained(error))
    }
}

/// Whether what is there is what was to be copied, as far as its length and MD5 tell.
fn is_copy(there: &BlobProperties, from: &From<'_>, attributes: &Attributes) -> bool {
    let md5 = there.attributes().ok().and_then(|carried| carried.content_md5);
    md5.is_some() && md5 == attributes.content_md5 && there.content_length() == Some(from.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, code: &str, source: Option<(&str, &str)>) -> Answer {
        let details = source.map_or(Vec::new(), |(status, code)| {
            vec![("CopySourceStatusCode".into(), status.into()), ("CopySourceErrorCode".into(), code.into())]
        });
        Answer { status, code: Some(code.into()), details, ..Answer::default() }
    }

    #[test]
    fn trouble_of_the_source_is_told_from_the_destinations() {
        use RetryCause::{ServerError, Throttled};
        use Verdict::{Again, Error};
        let cannot = "CannotVerifyCopySource";
        for (status, code, source, reached, failures, expected) in [
            // Recorded, of a synchronous copy.
            (412, cannot, None, true, 0, Some(Error(Kind::SourceChanged))),
            (304, cannot, None, false, 0, Some(Error(Kind::SourceChanged))),
            (412, "SourceConditionNotMet", None, true, 0, Some(Error(Kind::SourceChanged))),
            (404, cannot, Some(("404", "BlobNotFound")), false, 0, Some(Error(Kind::SourceChanged))),
            (403, cannot, Some(("403", "AuthenticationFailed")), true, 0, Some(Error(Kind::AccessRefused))),
            (401, cannot, Some(("401", "NoAuthenticationInformation")), true, 0, Some(Error(Kind::AccessRefused))),
            (403, "AuthorizationFailure", Some(("403", "AuthorizationFailure")), true, 0, Some(Error(Kind::AccessRefused))),
            (409, cannot, Some(("409", "PublicAccessNotPermitted")), true, 0, Some(Error(Kind::AccessRefused))),
            (409, cannot, Some(("409", "BlobArchived")), true, 0, Some(Error(Kind::Conflict))),
            (503, cannot, Some(("503", "ServerBusy")), true, 0, Some(Again(Throttled))),
            (400, cannot, Some(("500", "OperationTimedOut")), true, 9, Some(Again(ServerError))),
            // Out of reach: given a few tries, unless others were reached before.
            (500, cannot, None, false, 0, Some(Again(ServerError))),
            (500, cannot, None, false, 2, Some(Error(Kind::Unreachable))),
            (500, cannot, None, true, 5, Some(Again(ServerError))),
            (404, cannot, None, false, 2, Some(Error(Kind::Unreachable))),
            (404, cannot, None, true, 0, Some(Error(Kind::SourceChanged))),
            // The destination's own.
            (403, "AuthenticationFailed", None, true, 0, None),
            (404, "ContainerNotFound", None, false, 0, None),
            (503, "ServerBusy", None, false, 0, None),
            (412, "ConditionNotMet", None, false, 0, None),
        ] {
            assert_eq!(verdict(&answer(status, code, source), reached, failures), expected, "{status} {code} {source:?}");
        }
    }
}
