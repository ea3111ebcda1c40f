//! One request to the service before it is signed: method, wire path, query, headers, body.

use crate::chunks::Chunks;
use http::{HeaderMap, HeaderValue, Method, header::HeaderName};

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
    pub headers: HeaderMap,
    /// Body; empty sends `Content-Length: 0` on PUT and POST.
    pub body: Chunks,
}

impl Request {
    /// A request without query, headers or body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Request { method, path: path.into(), query: Vec::new(), headers: HeaderMap::new(), body: Chunks::default() }
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
}
