//! HTTP/1.1 as values: a request's head taken from bytes, an answer put into bytes. No I/O, which is `conn`'s.

use super::digits::decimal;
use super::payload::Piece;
use crate::rest::headers::Headers;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::sync::Arc;

/// Longest head taken, in bytes. The service does not state its own; 64 KiB holds 8 KiB of metadata, a SAS and a long URL.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 256;
const META: &str = "x-ms-meta-";

/// A request's head.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// As on the wire, without the query.
    pub(crate) path: String,
    /// Shared with the request before on the connection, where that had the same.
    pub(crate) query: Arc<Query>,
    pub(crate) headers: Headers,
    /// `x-ms-meta-*` without the prefix.
    pub(crate) metadata: Vec<(String, Vec<u8>)>,
    pub(crate) length: BodyLength,
    pub(crate) keep_alive: bool,
    pub(crate) expect_continue: bool,
    /// Who sent it.
    pub(crate) peer: IpAddr,
}

/// A query, as text and taken apart.
#[derive(Debug)]
pub(crate) struct Query {
    text: String,
    parameters: Vec<(String, String)>,
}

impl Query {
    /// Takes a query apart.
    pub(crate) fn of(text: &str) -> Self {
        Query { text: text.to_owned(), parameters: parameters(text) }
    }

    /// As on the wire, without `?`.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Decoded, in the order they came.
    pub(crate) fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }
}

/// How long the body says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    /// Neither Content-Length nor Transfer-Encoding.
    Absent,
    Known(u64),
    /// `Transfer-Encoding`: not taken by the service.
    Chunked,
}

impl Head {
    /// Takes a head from the start of `bytes`: `Ok(None)` if it is not whole yet, else the head and its length in bytes.
    /// `before` is the query of the request before, which this one may have too: a client that puts small blobs with a SAS has
    /// nothing else in its queries.
    ///
    /// # Errors
    /// The bytes cannot become a request head.
    pub(crate) fn parse(bytes: &[u8], peer: IpAddr, before: Option<&Arc<Query>>) -> Result<Option<(Head, usize)>, ()> {
        let mut slots = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut []);
        let length = match request.parse_with_uninit_headers(bytes, &mut slots).map_err(|_| ())? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial => return Ok(None),
        };
        let target = request.path.ok_or(())?;
        // The absolute form (`GET http://host/path`) is what a client sends through a proxy.
        let target = match target.find("://") {
            Some(at) if target.starts_with("http") => target[at + 3..].find('/').map_or("/", |slash| &target[at + 3 + slash..]),
            _ => target,
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = Headers::with_capacity(request.headers.len(), length);
        let mut metadata = Vec::new();
        for header in request.headers.iter() {
            if let Some((prefix, name)) = header.name.split_at_checked(META.len())
                && prefix.eq_ignore_ascii_case(META)
            {
                metadata.push((name.to_owned(), header.value.trim_ascii().to_vec()));
            }
            headers.push(header.name, header.value);
        }
        let mut lengths = headers.all("content-length");
        let length_of_body = match (headers.bytes("transfer-encoding"), lengths.next()) {
            (Some(_), _) => BodyLength::Chunked,
            (None, Some(value)) => BodyLength::Known(std::str::from_utf8(value).ok().and_then(plain_number).ok_or(())?),
            (None, None) => BodyLength::Absent,
        };
        if lengths.next().is_some() {
            return Err(());
        }
        drop(lengths);
        let connection = headers.bytes("connection").unwrap_or_default();
        let keep_alive = match request.version {
            Some(1) => !connection.eq_ignore_ascii_case(b"close"),
            _ => connection.eq_ignore_ascii_case(b"keep-alive"),
        };
        let expect_continue = headers.bytes("expect").is_some_and(|v| v.eq_ignore_ascii_case(b"100-continue"));
        let head = Head {
            method: request.method.ok_or(())?.to_owned(),
            path: path.to_owned(),
            query: before.filter(|before| before.text == query).cloned().unwrap_or_else(|| Arc::new(Query::of(query))),
            headers,
            metadata,
            length: length_of_body,
            keep_alive,
            expect_continue,
            peer,
        };
        Ok(Some((head, length)))
    }

    /// A header's value as text; one that is not visible ASCII counts as UTF-8, else as absent.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.bytes(name).and_then(|v| std::str::from_utf8(v).ok()).map(str::trim)
    }

    /// A query parameter, decoded; the first of several. Names are compared without case.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.parameters.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// Length of the body in bytes; what has none counts as empty.
    pub(crate) fn body_len(&self) -> u64 {
        match self.length {
            BodyLength::Known(len) => len,
            BodyLength::Absent | BodyLength::Chunked => 0,
        }
    }
}

/// Decimal digits only: no sign, no space.
pub(crate) fn plain_number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Splits a query and decodes each value once. A `+` stays a plus: every client of the service sends `%20`. `=` inside a
/// value stays.
pub(crate) fn parameters(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

/// An answer being put together.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Bytes(Vec<u8>),
    Pieces { pieces: Vec<Piece>, len: u64 },
}

impl Answer {
    /// An answer without headers or body.
    pub(crate) fn new(status: u16) -> Self {
        Answer { status, headers: Vec::with_capacity(12), body: Body::Bytes(Vec::new()) }
    }

    /// Adds a header; a value that HTTP cannot carry in one line loses its control characters.
    pub(crate) fn header(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) {
        let value = value.into();
        let value = match value {
            Cow::Owned(text) if text.bytes().any(|b| b < 0x20 && b != b'\t') => {
                Cow::Owned(text.chars().filter(|c| !c.is_control()).collect())
            }
            fits => fits,
        };
        self.headers.push((name.into(), value));
    }

    /// The same, for building in one go.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.header(name, value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub(crate) fn body(mut self, bytes: Vec<u8>) -> Self {
        self.body = Body::Bytes(bytes);
        self
    }

    /// Sets the body to stored data; `len` is the sum of the pieces' lengths, or, for HEAD, what they would be.
    #[must_use]
    pub(crate) fn stored(mut self, pieces: Vec<Piece>, len: u64) -> Self {
        self.body = Body::Pieces { pieces, len };
        self
    }

    /// The body where it is in memory as one.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Bytes(bytes) => bytes,
            Body::Pieces { .. } => &[],
        }
    }

    /// The headers as `name: value` lines, for a part of a batch.
    pub(crate) fn header_lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Takes the answer apart for the wire: the head, with the body appended where it is small bytes, and the stored pieces
    /// that follow. To HEAD only the head goes out, with the length the body would have.
    pub(crate) fn into_wire(self, to_head: bool, keep_alive: bool) -> (Vec<u8>, Vec<Piece>) {
        let mut out = String::with_capacity(768);
        out.push_str("HTTP/1.1 ");
        decimal(&mut out, self.status.into(), 3);
        out.push(' ');
        out.push_str(reason(self.status));
        out.push_str("\r\n");
        // Neither has it a type: the service leaves that out too.
        let untyped = to_head && self.status >= 400;
        for (name, value) in self.headers.iter().filter(|(name, _)| !(untyped && name == "Content-Type")) {
            out.push_str(name);
            out.push_str(": ");
            out.push_str(value);
            out.push_str("\r\n");
        }
        if !keep_alive {
            out.push_str("Connection: close\r\n");
        }
        let (bytes, pieces, len) = match self.body {
            Body::Bytes(bytes) => {
                let len = bytes.len() as u64;
                (bytes, Vec::new(), len)
            }
            Body::Pieces { pieces, len } => (Vec::new(), pieces, len),
        };
        // RFC 9110, 8.6: neither 204 nor 304 may carry a length that is not the representation's. A refusal of HEAD has no
        // length because there is nothing it could be the length of.
        let bodiless = matches!(self.status, 204 | 304) || (to_head && self.status >= 400);
        if !bodiless {
            out.push_str("Content-Length: ");
            decimal(&mut out, len, 1);
            out.push_str("\r\n");
        }
        out.push_str("\r\n");
        let mut out = out.into_bytes();
        if to_head || bodiless {
            return (out, Vec::new());
        }
        out.extend_from_slice(&bytes);
        (out, pieces)
    }
}

/// Reason phrases of the statuses the service uses.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        507 => "Insufficient Storage",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn head(text: &str) -> Head {
        Head::parse(text.as_bytes(), PEER, None).unwrap().unwrap().0
    }

    #[test]
    fn a_head_is_taken_whole_or_not_at_all() {
        let text = b"PUT /a/c/b%20c?comp=block&blockid=AA== HTTP/1.1\r\nContent-Length: 3\r\nx-ms-meta-A: 1\r\n\r\nabc";
        for cut in 0..text.len() - 3 {
            assert!(Head::parse(&text[..cut], PEER, None).unwrap().is_none(), "{cut}");
        }
        let (head, used) = Head::parse(text, PEER, None).unwrap().unwrap();
        assert_eq!(used, text.len() - 3);
        assert_eq!((head.path.as_str(), head.query.text()), ("/a/c/b%20c", "comp=block&blockid=AA=="));
        assert_eq!(head.parameter("blockid"), Some("AA=="));
        assert_eq!(head.length, BodyLength::Known(3));
        assert!(head.keep_alive);
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for bad in [
            "GET\r\n\r\n",
            "\u{0}\u{1}\u{2}\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        ] {
            assert!(Head::parse(bad.as_bytes(), PEER, None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn connection_and_target_forms() {
        assert!(!head("GET / HTTP/1.0\r\n\r\n").keep_alive);
        assert!(!head("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").keep_alive);
        assert_eq!(head("GET http://h:1/a/b?c=d HTTP/1.1\r\n\r\n").path, "/a/b");
        assert_eq!(head("GET /a/http://x HTTP/1.1\r\n\r\n").path, "/a/http://x");
        assert_eq!(head("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n").length, BodyLength::Chunked);
    }

    #[test]
    fn values_are_decoded_once_and_plus_stays() {
        let got = parameters("a=1%2B1+1&b=x=y&c&&%73ig=%2525");
        let want = [("a", "1+1+1"), ("b", "x=y"), ("c", ""), ("sig", "%25")];
        assert_eq!(got, want.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }

    #[test]
    fn a_header_cannot_break_out_of_its_line() {
        let mut answer = Answer::new(200);
        answer.header("x-ms-meta-a", "1\r\nx-evil: 2".to_owned());
        let (wire, _) = answer.into_wire(false, true);
        assert!(String::from_utf8(wire).unwrap().contains("x-ms-meta-a: 1x-evil: 2\r\n"));
    }

    #[test]
    fn head_is_told_the_length_and_gets_no_body() {
        let (wire, _) = Answer::new(200).body(b"abc".to_vec()).into_wire(true, true);
        assert_eq!(wire, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
    }
}
