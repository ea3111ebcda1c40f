//! The body of a batch and of its answer: `multipart/mixed` whose parts are requests and answers in the form of HTTP/1.1.
//!
//! Pure, and strict about nothing that servers differ in: parts may come in any order and with any line ends around their
//! boundaries. A part is told by its `Content-ID`; an answer to the batch as a whole is one part that has none.
//!
//! Sources: "Blob Batch", Azure Storage REST reference; RFC 2046, 5.1 (multipart).

use crate::rest::headers::Headers;
use bytes::Bytes;
use http::StatusCode;
use std::fmt;

/// A body under construction.
#[derive(Debug)]
pub(crate) struct Builder {
    boundary: String,
    body: Vec<u8>,
}

/// One answer in the answer to a batch.
#[derive(Debug, Clone)]
pub struct Part {
    /// Number of the request it answers, if it says so.
    pub content_id: Option<usize>,
    /// Its own status.
    pub status: StatusCode,
    /// Its own headers.
    pub headers: Headers,
    /// Its own body.
    pub body: Bytes,
}

/// Why a document is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// Headers of a part's head at most.
const HEADERS: usize = 64;

impl Builder {
    /// An empty body; the boundary must not occur in any part.
    pub(crate) fn new(boundary: String) -> Builder {
        Builder { boundary, body: Vec::new() }
    }

    /// The value of `Content-Type`.
    pub(crate) fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// Adds a request: its head from the request line on, each line with its line end, without the blank line.
    pub(crate) fn push(&mut self, id: usize, head: &str) {
        self.body.extend_from_slice(self.around(id).as_bytes());
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(b"\r\n");
    }

    /// Bytes the body will have with one more such request.
    pub(crate) fn len_with(&self, id: usize, head: &str) -> usize {
        self.body.len() + self.around(id).len() + head.len() + "\r\n".len() + self.end().len()
    }

    /// The whole body.
    pub(crate) fn finish(mut self) -> Bytes {
        let end = self.end();
        self.body.extend_from_slice(end.as_bytes());
        self.body.into()
    }

    fn around(&self, id: usize) -> String {
        format!(
            "--{}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {id}\r\n\r\n",
            self.boundary
        )
    }

    /// The service wants the line end behind it.
    fn end(&self) -> String {
        format!("--{}--\r\n", self.boundary)
    }
}

/// Takes the answer to a batch apart.
///
/// # Errors
/// Where it is not multipart, or a part is no answer.
pub fn parse(content_type: &str, body: &Bytes) -> Result<Vec<Part>, Malformed> {
    let boundary = boundary(content_type).ok_or(Malformed("the answer is not multipart/mixed"))?;
    let delimiter = format!("--{boundary}");
    let mut starts = find_all(body, delimiter.as_bytes());
    let mut parts = Vec::new();
    let Some(mut at) = starts.next() else { return Err(Malformed("there is no boundary in the answer")) };
    loop {
        let inside = at + delimiter.len();
        if body[inside..].starts_with(b"--") {
            return Ok(parts);
        }
        let Some(end) = starts.next() else { return Err(Malformed("the answer was cut off")) };
        parts.push(read_part(body, inside, end)?);
        at = end;
    }
}

fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let value = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    })?;
    (!value.is_empty()).then_some(value)
}

/// Where the delimiter stands at the beginning of a line.
fn find_all<'a>(body: &'a [u8], delimiter: &'a [u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let found = at + body.get(at..)?.windows(delimiter.len()).position(|window| window == delimiter)?;
            at = found + delimiter.len();
            if found == 0 || body[found - 1] == b'\n' {
                return Some(found);
            }
        }
    })
}

fn read_part(body: &Bytes, start: usize, end: usize) -> Result<Part, Malformed> {
    let broken = Malformed("a part of the answer is no answer");
    let around = &body[start..end];
    let around = &around[line_end(around)..];
    let mut space = [httparse::EMPTY_HEADER; HEADERS];
    let (inside, content_id) = match httparse::parse_headers(around, &mut space) {
        Ok(httparse::Status::Complete((len, headers))) => {
            let id = headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-id"));
            let id = id.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok());
            (end - around.len() + len, id)
        }
        _ => return Err(broken),
    };
    let mut space = [httparse::EMPTY_HEADER; HEADERS];
    let mut answer = httparse::Response::new(&mut space);
    let head = match answer.parse(&body[inside..end]) {
        Ok(httparse::Status::Complete(len)) => len,
        _ => return Err(broken),
    };
    let status = answer.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or_else(|| broken.clone())?;
    let headers = answer.headers.iter().map(|header| (header.name, header.value)).collect();
    // The line end before a boundary belongs to the boundary.
    let mut until = end;
    for byte in [b'\n', b'\r'] {
        if until > inside + head && body[until - 1] == byte {
            until -= 1;
        }
    }
    Ok(Part { content_id, status, headers, body: body.slice(inside + head..until) })
}

/// Length of what is left of a line, its end included.
fn line_end(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of "Blob Batch", shortened: three deletes, of which one finds nothing.
    const ANSWER: &str = "--batchresponse_66925647-d0cb-4109-b6d3-28efe3e1e5ed\r\n\
        Content-Type: application/http\r\nContent-ID: 0\r\n\r\n\
        HTTP/1.1 202 Accepted\r\nx-ms-delete-type-permanent: true\r\nx-ms-request-id: 778fdc83-801e-0000-62ff-0334671e284f\r\nx-ms-version: 2018-11-09\r\n\r\n\
        --batchresponse_66925647-d0cb-4109-b6d3-28efe3e1e5ed\r\n\
        Content-Type: application/http\r\nContent-ID: 2\r\n\r\n\
        HTTP/1.1 404 The specified blob does not exist.\r\nx-ms-error-code: BlobNotFound\r\nContent-Length: 216\r\nContent-Type: application/xml\r\n\r\n\
        <?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Error><Code>BlobNotFound</Code></Error>\r\n\
        --batchresponse_66925647-d0cb-4109-b6d3-28efe3e1e5ed--";
    const TYPE: &str = "multipart/mixed; boundary=batchresponse_66925647-d0cb-4109-b6d3-28efe3e1e5ed";

    fn read(content_type: &str, text: &str) -> Result<Vec<Part>, Malformed> {
        parse(content_type, &Bytes::from(text.to_owned()))
    }

    #[test]
    fn parts_are_told_by_their_ids() {
        for text in [ANSWER.to_owned(), format!("{ANSWER}\r\n"), format!("preamble\r\n{ANSWER}\r\nepilogue")] {
            let parts = read(TYPE, &text).unwrap();
            let seen: Vec<_> = parts.iter().map(|part| (part.content_id, part.status.as_u16())).collect();
            assert_eq!(seen, [(Some(0), 202), (Some(2), 404)]);
            assert!(parts[0].body.is_empty() && parts[0].headers.get("x-ms-delete-type-permanent") == Some("true"));
            assert_eq!(parts[1].headers.get("x-ms-error-code"), Some("BlobNotFound"));
            assert!(parts[1].body.starts_with(b"<?xml") && parts[1].body.ends_with(b"</Error>"));
        }
        let quoted = TYPE.replace("boundary=", "BOUNDARY=\"") + "\"; charset=utf-8";
        assert_eq!(read(&quoted, ANSWER).unwrap().len(), 2);
    }

    #[test]
    fn an_answer_to_the_whole_has_no_id() {
        let text = "--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 400 One of the request inputs is not valid.\r\nx-ms-error-code: InvalidInput\r\n\r\n--b--";
        let parts = read("multipart/mixed; boundary=b", text).unwrap();
        assert_eq!((parts[0].content_id, parts[0].status.as_u16()), (None, 400));
    }

    #[test]
    fn what_is_no_answer_is_an_error_and_never_a_panic() {
        for (content_type, text) in [
            ("text/html", ANSWER),
            ("multipart/mixed", ANSWER),
            ("multipart/mixed; boundary=", ANSWER),
            ("multipart/mixed; boundary=other", ANSWER),
            (TYPE, ""),
            ("multipart/mixed; boundary=b", "--b\r\n\r\nnonsense\r\n--b--"),
            ("multipart/mixed; boundary=b", "--b"),
            ("multipart/mixed; boundary=b", "--b\r\nContent-ID: 1"),
        ] {
            assert!(read(content_type, text).is_err(), "{content_type} {text}");
        }
        for cut in 0..ANSWER.len() - 2 {
            assert!(read(TYPE, &ANSWER[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn the_body_is_as_published() {
        let mut builder = Builder::new("batch_1".to_owned());
        let head = "DELETE /c/b0 HTTP/1.1\r\nx-ms-date: Thu, 14 Jun 2018 16:46:54 GMT\r\nContent-Length: 0\r\n";
        let len = builder.len_with(0, head);
        builder.push(0, head);
        assert_eq!(builder.content_type(), "multipart/mixed; boundary=batch_1");
        let body = builder.finish();
        let expected = format!(
            "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\n{head}\r\n--batch_1--\r\n"
        );
        assert_eq!((std::str::from_utf8(&body).unwrap(), body.len()), (expected.as_str(), len));
    }
}
