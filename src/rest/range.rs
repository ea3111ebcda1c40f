//! Get Blob, range by range, pinned to one version of the blob by its ETag.
//! Source: "Get Blob" and "Specifying the range header for Blob service operations", Azure Storage REST reference.

use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::blob::Blob;
use crate::rest::client::Op;
use crate::rest::receive::Receive;
use crate::rest::request::{Request, Response};
use http::{HeaderValue, Method, header};

/// Largest range the service sends a checksum with, bytes.
pub const MAX_SUMMED: u64 = 4 * 1024 * 1024;

const GET_BLOB: Op = Op::new("read blob", Need::READ);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Range<'a> {
    /// First byte.
    pub offset: u64,
    /// How many; all of them have to be there.
    pub len: u64,
    /// The version they are of (`If-Match`), without quotes.
    pub etag: &'a str,
}

impl Blob<'_> {
    /// Get Blob: exactly this range of exactly this version, handed on as it comes. Each try asks for the whole range; up to
    /// [`MAX_SUMMED`] the service sends a checksum along, which is compared.
    ///
    /// A length of 0 asks without a range, as the service answers any range of an empty blob with 416: it tells that the blob is
    /// there and still empty.
    ///
    /// # Errors
    /// `SourceChanged` if the blob is another version or gone, `Conflict` where it is archived, `BadAnswer` if another range came
    /// than was asked for, `Corrupt`, those of `into`, and those of [`Client::send`](super::client::Client::send).
    pub async fn get_range(&self, range: Range<'_>, into: &mut dyn Receive) -> Result<Response> {
        let etag = HeaderValue::try_from(format!("\"{}\"", range.etag))
            .map_err(|e| Error::new(Kind::BadAnswer, self.client.doing(GET_BLOB, &self.path)).with_source(e))?;
        let mut request = self.request(Method::GET);
        request.headers.insert(header::IF_MATCH, etag);
        let request = ranged(request, range.offset, range.len);
        let mut asked = Asked { range, into, doing: || self.client.doing(GET_BLOB, &self.path) };
        self.client.receive(request, GET_BLOB, &mut asked).await.map_err(|error| match (error.kind(), error.code()) {
            (Kind::Conflict, Some("ConditionNotMet")) | (Kind::NotFound, _) => changed(error),
            _ => error,
        })
    }
}

/// Adds the range, and asks for its checksum where the service has one.
fn ranged(request: Request, offset: u64, len: u64) -> Request {
    let Some(last) = len.checked_sub(1) else { return request };
    let value = HeaderValue::try_from(format!("bytes={offset}-{}", offset + last)).expect("digits");
    let request = request.header("x-ms-range", value);
    if len <= MAX_SUMMED { request.summed_answer() } else { request }
}

fn changed(error: Error) -> Error {
    let answer = error.answer().cloned().unwrap_or_default();
    let doing = format!("{error}, which has changed since it was listed");
    Error::new(Kind::SourceChanged, doing).with_answer(answer)
}

/// Checks that the answer is the range that was asked for.
struct Asked<'a, W> {
    range: Range<'a>,
    into: &'a mut dyn Receive,
    doing: W,
}

impl<W: Fn() -> String + Send> Receive for Asked<'_, W> {
    fn begin(&mut self, head: &Response) -> Result<()> {
        let Range { offset, len, .. } = self.range;
        let length = head.header("content-length").and_then(|text| text.parse().ok());
        // An unusable range is answered with the whole blob and 200.
        let fits = match (len.checked_sub(1), head.header("content-range")) {
            (None, None) => true,
            (Some(last), Some(told)) => told.starts_with(&format!("bytes {offset}-{}/", offset + last)),
            _ => false,
        };
        if fits && length == Some(len) {
            return self.into.begin(head);
        }
        let told = head.header("content-range").unwrap_or("without Content-Range").to_owned();
        let text = format!("{}: {len} bytes at {offset} were asked for, {:?} came ({told})", (self.doing)(), length.unwrap_or(0));
        Err(Error::new(Kind::BadAnswer, text))
    }

    fn piece(&mut self, piece: &[u8]) -> Result<()> {
        self.into.piece(piece)
    }
}
