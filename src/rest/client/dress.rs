//! What a request has on that is new with each try: date, id, checksums, length, signature; and its head as it is written. Whether
//! and when it is sent is the client's.

use super::{Check, Inner};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Head;
use crate::rest::body::{Cap, SendBody};
use crate::rest::headers::HeaderList;
use crate::rest::http1::RequestHead;
use crate::rest::properties::{crc64_header, md5_header};
use crate::rest::receive::Sum;
use crate::rest::request::Request;
use crate::rest::transport::Lease;
use crate::rest::{VERSION, date};
use http::Method;
use http::header::{self, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

/// Headers a try adds to those of the request, at most: host, agent, version, date, id, length, checksum, and what signs it or
/// is meant for a proxy.
const DRESS: usize = 9;

/// Own parameters are encoded to the last reserved character.
const PARAMETER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
pub(super) const X_MS_CONTENT_CRC64: HeaderName = HeaderName::from_static("x-ms-content-crc64");
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("blobjet/", env!("CARGO_PKG_VERSION")));

/// How one try is protected.
pub(super) struct Sums {
    /// The header that protects the request's body.
    pub(super) sent: Option<(HeaderName, HeaderValue)>,
    /// What the service is asked for about its answer.
    pub(super) asked: Option<Sum>,
}

impl Sums {
    /// Whether the service was told, or asked for, a CRC64.
    pub(super) fn has_crc64(&self) -> bool {
        self.asked == Some(Sum::Crc64) || self.sent.as_ref().is_some_and(|(name, _)| *name == X_MS_CONTENT_CRC64)
    }
}

/// Path and query as they stand in the request line.
pub(super) fn push_target(target: &mut String, request: &Request, suffix: &str) {
    target.push_str(&request.path);
    let mut separator = '?';
    for (name, value) in &request.query {
        target.push(separator);
        target.push_str(name);
        target.push('=');
        target.extend(utf8_percent_encode(value, PARAMETER));
        separator = '&';
    }
    if !suffix.is_empty() {
        target.push(separator);
        target.push_str(suffix);
    }
}

impl Inner {
    /// Gives the connection the request, with what each try has anew: date, id, checksum, length, signature.
    pub(super) fn dress(&self, request: &Request, lease: &mut Lease, sums: &Sums) -> Result<()> {
        let mut headers = HeaderList::with_capacity(request.headers.len() + DRESS);
        headers.append(header::HOST, self.host.clone());
        request.headers.iter().for_each(|(name, value)| headers.append(name.clone(), value.clone()));
        headers.append(header::USER_AGENT, USER_AGENT);
        headers.append(X_MS_VERSION, HeaderValue::from_static(VERSION));
        headers.append(X_MS_DATE, date::now(SystemTime::now()));
        headers.append(X_MS_CLIENT_REQUEST_ID, self.request_id());
        let body_len = request.body.len();
        if body_len > 0 || request.method == Method::PUT || request.method == Method::POST {
            headers.append(header::CONTENT_LENGTH, HeaderValue::from(body_len));
        }
        if let Some((name, value)) = &sums.sent {
            headers.append(name.clone(), value.clone());
        }
        if let Some(sum) = sums.asked {
            headers.append(HeaderName::from_static(sum.asked_by()), HeaderValue::from_static("true"));
        }

        let mut suffix = String::new();
        let mut head = Head {
            method: request.method.as_str(),
            account: self.location.account.as_deref().unwrap_or_default(),
            path: &request.path,
            query: &request.query,
            headers: &mut headers,
            query_suffix: &mut suffix,
        };
        self.credential.sign(&mut head)?;

        let mut target = String::with_capacity(request.path.len() + suffix.len() + 96);
        let forward = self.transport.connector().forward_proxy();
        if let Some(proxy) = forward {
            target.push_str("http://");
            target.push_str(&self.location.authority());
            if let Some(value) = proxy.basic_auth() {
                headers.append(header::PROXY_AUTHORIZATION, value.clone());
            }
        }
        push_target(&mut target, request, &suffix);
        let head = RequestHead { method: request.method.as_str(), target: &target, headers: &headers };
        let written = lease.head();
        head.write(written)
            .map_err(|e| Error::new(Kind::Usage, "the path or the query cannot stand in a request").with_source(e))?;

        let head = written.len();
        let waiting = &lease.activity().waiting;
        let cap = self.pace.as_ref().map(|pace| Cap { pace: pace.clone(), head, waiting: waiting.clone() });
        lease.begin(SendBody::new(request.body.clone(), cap), request.method == Method::HEAD);
        Ok(())
    }

    /// How a try of this request is protected, as things stand.
    pub(super) fn sums(&self, request: &Request) -> Sums {
        Sums { sent: self.checksum(request), asked: self.answer_sum(request) }
    }

    /// The checksum to send with the body.
    fn checksum(&self, request: &Request) -> Option<(HeaderName, HeaderValue)> {
        let crc64 = request.crc64?;
        match self.config.check {
            Check::None => None,
            Check::Crc64 if !self.no_crc64.load(Relaxed) => Some((X_MS_CONTENT_CRC64, crc64_header(crc64))),
            Check::Crc64 | Check::Md5 => Some((CONTENT_MD5, md5_header(&request.body))),
        }
    }

    /// The checksum to ask the service for with its answer.
    fn answer_sum(&self, request: &Request) -> Option<Sum> {
        match self.config.check {
            Check::None => None,
            _ if !request.summed_answer => None,
            Check::Crc64 if !self.no_crc64.load(Relaxed) => Some(Sum::Crc64),
            Check::Crc64 | Check::Md5 => Some(Sum::Md5),
        }
    }

    /// A UUID in form: random for the client, then counting.
    fn request_id(&self) -> HeaderValue {
        // Version 4, variant 1 (RFC 9562).
        let (nonce, count) = (self.nonce, self.count.fetch_add(1, Relaxed));
        let high = (nonce & !0xF000) | 0x4000;
        let low = (count & 0x0FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000;
        // By hand: `format!` was another twentieth.
        let mut id = [b'-'; 36];
        let mut left = (u128::from(high) << 64) | u128::from(low);
        for place in (0..id.len()).rev().filter(|place| ![8, 13, 18, 23].contains(place)) {
            id[place] = b"0123456789abcdef"[usize::from(left.to_le_bytes()[0] & 0xF)];
            left >>= 4;
        }
        HeaderValue::from_bytes(&id).expect("hexadecimal digits and hyphens")
    }
}
