//! Heads: of a request as it is written, of an answer as it is read (RFC 9112, sections 2 to 5).

use super::framing::{Framing, Malformed};
use crate::rest::headers::{HeaderList, Headers};
use http::StatusCode;

/// Headers an answer has as a rule, at most: a blob with much metadata has more, up to [`MOST_HEADERS`].
const HEADERS: usize = 64;

/// Metadata may have 8 KiB ("Setting and retrieving properties and metadata for Blob service resources"), and a header of it not
/// less than a few bytes.
const MOST_HEADERS: usize = 4096;

/// The head of a request.
pub(crate) struct RequestHead<'a> {
    /// Method, upper case.
    pub(crate) method: &'a str,
    /// What stands behind it: path and query, or the whole URL for a proxy.
    pub(crate) target: &'a str,
    /// Headers.
    pub(crate) headers: &'a HeaderList,
}

impl RequestHead<'_> {
    /// Appends it as it goes on the wire.
    ///
    /// # Errors
    /// Where the target has what would end it early. Headers cannot.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if self.target.bytes().any(|byte| matches!(byte, 0..=b' ' | 0x7F | b'#')) {
            return Err(Malformed("a space, a control character or a # stands in it"));
        }
        let mut put = |text: &[u8]| out.extend_from_slice(text);
        put(self.method.as_bytes());
        put(b" ");
        put(self.target.as_bytes());
        put(b" HTTP/1.1\r\n");
        for (name, value) in self.headers.iter() {
            put(name.as_str().as_bytes());
            put(b": ");
            put(value.as_bytes());
            put(b"\r\n");
        }
        put(b"\r\n");
        Ok(())
    }
}

/// The head of an answer, and what follows from it.
#[derive(Debug)]
pub(crate) struct AnswerHead {
    /// Status.
    pub(crate) status: StatusCode,
    /// Headers.
    pub(crate) headers: Headers,
    /// How long the body is.
    pub(super) framing: Framing,
    /// Whether the connection can be used again afterwards.
    pub(super) keeps: bool,
}

/// Reads the head of an answer from the beginning of what has come, and says how many bytes it has. `None`: it is not whole yet.
/// Answers that only precede the real one are passed over. `headless`: the request was HEAD, whose answers have no body.
///
/// # Errors
/// Where it is not HTTP.
pub(super) fn parse(bytes: &[u8], headless: bool) -> Result<Option<(AnswerHead, usize)>, Malformed> {
    let mut before = 0;
    loop {
        let Some((head, len)) = parse_one(&bytes[before..], headless)? else { return Ok(None) };
        match head.status.as_u16() {
            101 => return Err(Malformed("the answer changes to a protocol that was not asked for")),
            100..=199 => before += len,
            _ => return Ok(Some((head, before + len))),
        }
    }
}

fn parse_one(bytes: &[u8], headless: bool) -> Result<Option<(AnswerHead, usize)>, Malformed> {
    let mut few = [httparse::EMPTY_HEADER; HEADERS];
    match parse_with(bytes, headless, &mut few) {
        Err(httparse::Error::TooManyHeaders) => parse_with(bytes, headless, &mut vec![httparse::EMPTY_HEADER; MOST_HEADERS]),
        other => other,
    }
    .map_err(|error| Malformed(what(error)))?
    .transpose()
}

type Parsed = Result<Option<Result<(AnswerHead, usize), Malformed>>, httparse::Error>;

fn parse_with<'b>(bytes: &'b [u8], headless: bool, space: &mut [httparse::Header<'b>]) -> Parsed {
    let mut answer = httparse::Response::new(space);
    let httparse::Status::Complete(len) = answer.parse(bytes)? else { return Ok(None) };
    let mut headers = Headers::with_capacity(answer.headers.len(), len);
    answer.headers.iter().for_each(|header| headers.push(header.name, header.value));
    let status = answer.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(httparse::Error::Status)?;
    let bodiless = headless || matches!(status.as_u16(), 100..=199 | 204 | 304);
    let has = |name| headers.contains(name);
    // A message with both may have been meant to be read in two ways.
    let doubtful = has("transfer-encoding") && has("content-length");
    let keeps = answer.version == Some(1) && !closes(&headers) && !doubtful;
    Ok(Some(Framing::of(&headers, bodiless).map(|framing| (AnswerHead { status, headers, framing, keeps }, len))))
}

/// Whether the other side says that it closes the connection (RFC 9112, 9.6).
fn closes(headers: &Headers) -> bool {
    headers
        .all("connection")
        .any(|value| value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close")))
}

fn what(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "the answer has a header whose name is none",
        httparse::Error::HeaderValue => "the answer has a header with a control character in it",
        httparse::Error::NewLine => "the lines of the answer's head are broken",
        httparse::Error::Status => "the answer has no status",
        httparse::Error::Token => "the answer's first line is broken",
        httparse::Error::TooManyHeaders => "the answer has too many headers",
        httparse::Error::Version => "what answered does not speak HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn whole(text: &str) -> (AnswerHead, usize) {
        parse(text.as_bytes(), false).unwrap().unwrap()
    }

    #[test]
    fn a_request_is_written_as_it_stands() {
        let line = |name, value: &str| (HeaderName::from_static(name), value.parse().unwrap());
        let headers = [line("host", "a.test"), line("x-ms-meta-a", "")].into_iter().collect();
        let mut out = Vec::new();
        RequestHead { method: "PUT", target: "/c/b%20?comp=block", headers: &headers }.write(&mut out).unwrap();
        assert_eq!(out, b"PUT /c/b%20?comp=block HTTP/1.1\r\nhost: a.test\r\nx-ms-meta-a: \r\n\r\n");
        for target in ["/a b", "/a\r\nx: y", "/a\tb", "/a\0", "/a#b", "/a\u{7f}"] {
            let mut out = Vec::new();
            assert!(RequestHead { method: "PUT", target, headers: &headers }.write(&mut out).is_err(), "{target:?}");
            assert!(out.is_empty());
        }
    }

    #[test]
    fn an_answer_is_read_once_it_is_whole() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nETag: \"1\"\r\nContent-Length: 3\r\n\r\nabc";
        for end in 0..text.len() - 3 {
            assert!(parse(&text.as_bytes()[..end], false).unwrap().is_none(), "{end}");
        }
        let (head, len) = whole(text);
        assert_eq!((head.status.as_u16(), head.headers.get("etag"), &text[len..]), (201, Some("\"1\""), "abc"));
        assert_eq!((head.framing, head.keeps), (Framing::Length(3), true));
    }

    #[test]
    fn answers_without_a_body_have_none_whatever_they_say() {
        for status in ["204 No Content", "304 Not Modified"] {
            let (head, _) = whole(&format!("HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\n"));
            assert!(head.framing.is_done(), "{status}");
        }
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
        assert!(parse(text, true).unwrap().unwrap().0.framing.is_done());
        assert!(!parse(text, false).unwrap().unwrap().0.framing.is_done());
    }

    #[test]
    fn who_closes_is_believed() {
        for (head, keeps) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\nConnection: x, close \r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ] {
            assert_eq!(whole(head).0.keeps, keeps, "{head:?}");
        }
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for text in [
            "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nname with space: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: b\u{1}\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
            "HTTP/1.1 099 Odd\r\n\r\n",
        ] {
            assert!(parse(text.as_bytes(), false).is_err(), "{text:?}");
        }
    }

    #[test]
    fn much_metadata_fits() {
        let lines = |count: usize| (0..count).map(|i| format!("x-ms-meta-a{i}: {i}\r\n")).collect::<String>();
        let (head, _) = whole(&format!("HTTP/1.1 200 OK\r\n{}\r\n", lines(1000)));
        assert_eq!((head.headers.iter().count(), head.headers.get("x-ms-meta-a999")), (1000, Some("999")));
        let error = parse(format!("HTTP/1.1 200 OK\r\n{}\r\n", lines(MOST_HEADERS + 1)).as_bytes(), false).unwrap_err();
        assert_eq!(error.to_string(), "the answer has too many headers");
    }
}
