//! One request to the service before it is signed, and one answer.

use crate::chunks::Chunks;
use crate::rest::headers::{HeaderList, Headers};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header::HeaderName};
use std::time::Duration;

/// A request in the form every operation builds and [`Client::send`](super::client::Client::send) takes. Replayable: the body
/// is memory that stays until the answer is there.
#[derive(Debug, Clone)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Percent-encoded path as it goes on the wire, account segment included on path-style hosts. Signed as it is.
    pub path: String,
    /// Own query parameters, **not** encoded. A SAS is not among them: the credential appends it byte for byte.
    pub query: Vec<(&'static str, String)>,
    /// Own headers; date, version, request id, length and authorisation are added on each try.
    pub headers: HeaderList,
    /// Body; empty sends `Content-Length: 0` on PUT and POST.
    pub body: Chunks,
    /// CRC-64/NVME of the body, where it is to be checked: the client sends it in the form the service understands, and compares
    /// the one that comes back.
    pub crc64: Option<u64>,
    /// Whether the service is asked for a checksum of the range it answers with, to be compared on arrival.
    pub summed_answer: bool,
    /// How much longer than usual the service may be silent before it answers, because it has something to fetch first.
    pub patience: Duration,
}

/// The service's answer, whole.
#[derive(Debug, Clone)]
pub struct Response {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers.
    pub headers: Headers,
    /// Body.
    pub body: Bytes,
    /// Requests sent until it came, 1 at least: more where some were sent again.
    pub attempts: u32,
}

impl Response {
    /// A header's value, where it is there and text. The name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }
}

impl Request {
    /// A request without query, headers or body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Request {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: HeaderList::default(),
            body: Chunks::default(),
            crc64: None,
            summed_answer: false,
            patience: Duration::ZERO,
        }
    }

    /// Adds a query parameter (unencoded).
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Chunks>) -> Self {
        self.body = body.into();
        self
    }

    /// Asks for a checksum of the range in the answer.
    #[must_use]
    pub fn summed_answer(mut self) -> Self {
        self.summed_answer = true;
        self
    }

    /// Sets the body together with its CRC-64/NVME.
    #[must_use]
    pub fn checked_body(mut self, body: impl Into<Chunks>, crc64: u64) -> Self {
        self.body = body.into();
        self.crc64 = Some(crc64);
        self
    }
}
