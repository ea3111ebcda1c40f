//! Shared Key authorization: the strings to sign, the signature, and the credential that signs with an account key.
//!
//! The string is built from the head exactly as it goes on the wire; what is added later would break the signature. The
//! embedded service checks signatures with the same functions, which is why `tests/it/vectors.rs` pins them to strings and
//! signatures made by others.
//!
//! Source: "Authorize with Shared Key", Azure Storage REST reference.

use super::lend::read_only;
use super::sas::Token;
use super::{Credential, Found, Head, Inputs, Lending};
use crate::error::{Error, Kind, Result};
use crate::rest::headers::HeaderList;
use crate::rest::location::Location;
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{self, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use sha2::Sha256;
use std::cmp::Ordering;
use std::sync::Arc;

/// The account every emulator of the service knows.
pub const DEV_ACCOUNT: &str = "devstoreaccount1";

/// The key of [`DEV_ACCOUNT`]: public and well known, no secret.
pub const DEV_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// What a signature covers.
#[derive(Debug, Clone, Copy)]
pub struct ToSign<'a> {
    /// HTTP method, upper case.
    pub method: &'a str,
    /// Account name, without `-secondary`.
    pub account: &'a str,
    /// Path as on the wire, percent-encoding untouched; path-style hosts have the account in it once more.
    pub path: &'a str,
    /// Query parameters, each name and value decoded once; see [`decode_query`].
    pub query: &'a [(String, String)],
    /// Headers as on the wire, `Content-Length` included.
    pub headers: &'a HeaderList,
    /// `x-ms-version` of the request: how an empty body is written depends on it.
    pub version: &'a str,
}

/// Splits a raw query and decodes names and values once. A `+` stays a `+`: the service's clients send a space as `%20`.
/// Only the first `=` separates, so that `blockid=AA==` keeps its padding.
pub fn decode_query(raw: &str) -> Vec<(String, String)> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    raw.split('&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(name), decode(value))
        })
        .collect()
}

/// The string to sign of the scheme `SharedKey`, for the Blob and Queue services.
pub fn string_to_sign(what: &ToSign<'_>) -> String {
    let query: Vec<(&str, &str)> = what.query.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let mut out = String::with_capacity(512);
    write_string_to_sign(&mut out, what.method, what.account, what.path, &query, what.headers, what.version);
    out
}

/// The same, into a buffer that is used again and without owning the query.
pub(crate) fn write_string_to_sign(
    out: &mut String,
    method: &str,
    account: &str,
    path: &str,
    query: &[(&str, &str)],
    headers: &HeaderList,
    version: &str,
) {
    out.push_str(method);
    out.push('\n');
    push_header(out, headers, &header::CONTENT_ENCODING);
    push_header(out, headers, &header::CONTENT_LANGUAGE);
    // A length of 0 signs as nothing since this version.
    match headers.get(header::CONTENT_LENGTH) {
        Some(length) if length == "0" && version >= "2015-02-21" => out.push('\n'),
        _ => push_header(out, headers, &header::CONTENT_LENGTH),
    }
    push_header(out, headers, &CONTENT_MD5);
    push_header(out, headers, &header::CONTENT_TYPE);
    push_date(out, headers);
    push_header(out, headers, &header::IF_MODIFIED_SINCE);
    push_header(out, headers, &header::IF_MATCH);
    push_header(out, headers, &header::IF_NONE_MATCH);
    push_header(out, headers, &header::IF_UNMODIFIED_SINCE);
    push_header(out, headers, &header::RANGE);
    push_canonical_headers(out, headers, version);
    push_resource(out, account, path);

    // Names are lower-cased; a name that occurs more than once is one line with its values sorted and joined.
    let mut parameters: Vec<(String, &str)> = query.iter().map(|(n, v)| (n.to_ascii_lowercase(), *v)).collect();
    parameters.sort_unstable();
    let mut last: Option<&str> = None;
    for (name, value) in &parameters {
        if last == Some(name) {
            out.push(',');
        } else {
            out.push('\n');
            out.push_str(name);
            out.push(':');
        }
        out.push_str(value);
        last = Some(name);
    }
}

/// The string to sign of the scheme `SharedKeyLite`, for the Blob and Queue services: of the query only `comp` is signed.
pub fn lite_string_to_sign(what: &ToSign<'_>) -> String {
    let mut out = String::with_capacity(512);
    out.push_str(what.method);
    out.push('\n');
    push_header(&mut out, what.headers, &CONTENT_MD5);
    push_header(&mut out, what.headers, &header::CONTENT_TYPE);
    push_date(&mut out, what.headers);
    push_canonical_headers(&mut out, what.headers, what.version);
    push_resource(&mut out, what.account, what.path);
    if let Some((_, comp)) = what.query.iter().find(|(name, _)| name.eq_ignore_ascii_case("comp")) {
        out.push_str("?comp=");
        out.push_str(comp);
    }
    out
}

/// HMAC-SHA256 over the string under the (decoded) key, in base64.
pub fn sign(key: &[u8], string_to_sign: &str) -> String {
    mac_base64(keyed(key), string_to_sign)
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn mac_base64(mut mac: Hmac<Sha256>, string_to_sign: &str) -> String {
    mac.update(string_to_sign.as_bytes());
    BASE64.encode(mac.finalize().into_bytes())
}

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// The value and a line feed; an absent header is an empty line.
fn push_header(out: &mut String, headers: &HeaderList, name: &HeaderName) {
    if let Some(value) = headers.get(name) {
        push_value(out, value.as_bytes());
    }
    out.push('\n');
}

/// `Date` is signed only where there is no `x-ms-date`, which stands among the canonical headers.
fn push_date(out: &mut String, headers: &HeaderList) {
    if headers.contains("x-ms-date") { out.push('\n') } else { push_header(out, headers, &header::DATE) }
}

fn push_value(out: &mut String, value: &[u8]) {
    out.push_str(String::from_utf8_lossy(value).trim());
}

fn push_canonical_headers(out: &mut String, headers: &HeaderList, version: &str) {
    let mut names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).filter(|n| n.starts_with("x-ms-")).collect();
    names.sort_unstable_by(|a, b| culture_order(a, b));
    names.dedup();
    for name in names {
        let start = out.len();
        out.push_str(name);
        out.push(':');
        let values_start = out.len();
        let values = headers.iter().filter(|(there, _)| there.as_str() == name);
        for (i, (_, value)) in values.enumerate() {
            if i > 0 {
                out.push(',');
            }
            push_value(out, value.as_bytes());
        }
        // Before this version a header without a value was left out.
        if out.len() == values_start && version < "2016-05-31" {
            out.truncate(start);
        } else {
            out.push('\n');
        }
    }
}

fn push_resource(out: &mut String, account: &str, path: &str) {
    out.push('/');
    out.push_str(account);
    out.push_str(if path.is_empty() { "/" } else { path });
}

/// The order the service sorts header names in: a .NET culture comparison, not ASCII. Hyphens and apostrophes count only
/// where everything else is equal; punctuation comes before digits, digits before letters. So `x-ms-meta-a_b` precedes
/// `x-ms-meta-a1`, which ASCII has the other way round, and which the service refuses in ASCII order.
fn culture_order(a: &str, b: &str) -> Ordering {
    fn weights(name: &str) -> impl Iterator<Item = usize> + '_ {
        const PUNCTUATION: &str = "!#$%&*.^_`|~+";
        name.bytes().filter(|c| !b"-'".contains(c)).map(|c| match c {
            b'0'..=b'9' => 100 + usize::from(c - b'0'),
            b'a'..=b'z' => 200 + usize::from(c - b'a'),
            _ => PUNCTUATION.bytes().position(|p| p == c).unwrap_or(99),
        })
    }
    weights(a).cmp(weights(b)).then_with(|| a.cmp(b))
}

/// An account and its key, ready to sign.
pub struct SharedKey {
    account: String,
    /// HMAC with the key already taken in: each signature starts from a copy.
    mac: Hmac<Sha256>,
}

impl SharedKey {
    /// Takes the key as the portal shows it.
    ///
    /// # Errors
    /// `Usage` where the account name is empty or the key is not base64: refused here, before any request.
    pub fn new(account: &str, key: &Secret) -> Result<SharedKey> {
        if account.is_empty() {
            return Err(Error::new(Kind::Usage, "cannot sign with an account key without the account's name")
                .with_advice("set AZURE_STORAGE_ACCOUNT, or use a URL that names the account"));
        }
        let raw = decode_key(key)?;
        Ok(SharedKey { account: account.to_owned(), mac: keyed(&raw) })
    }

    /// Account the key belongs to.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The value of `Authorization` for a string to sign.
    fn authorization(&self, string_to_sign: &str) -> String {
        let signature = mac_base64(self.mac.clone(), string_to_sign);
        format!("SharedKey {}:{signature}", self.account)
    }
}

impl Credential for SharedKey {
    fn name(&self) -> &'static str {
        "account key"
    }

    fn sign(&self, head: &mut Head<'_>) -> Result<()> {
        let query: Vec<(&str, &str)> = head.query.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let mut string = String::with_capacity(512);
        write_string_to_sign(&mut string, head.method, &self.account, head.path, &query, head.headers, crate::rest::VERSION);
        let value = HeaderValue::from_maybe_shared(Bytes::from(self.authorization(&string)));
        let mut value =
            value.map_err(|e| Error::new(Kind::Usage, "the account's name cannot stand in a header").with_source(e))?;
        value.set_sensitive(true);
        head.headers.insert(header::AUTHORIZATION, value);
        Ok(())
    }

    fn lend(&self, blob: &Lending<'_>) -> Option<Token> {
        Some(read_only(&self.account, |text| mac_base64(self.mac.clone(), text), blob))
    }
}

/// The key the user gave, for the account named with it, or for the URL's where none is named.
pub(super) fn find(location: &Location, inputs: &Inputs) -> Found {
    let Some(key) = &inputs.key else { return Ok(None) };
    match (&inputs.account, &location.account) {
        (Some(given), Some(wanted)) if given != wanted => Ok(None),
        (given, wanted) => {
            let account = given.as_ref().or(wanted.as_ref()).map_or("", String::as_str);
            Ok(Some(Arc::new(SharedKey::new(account, key)?)))
        }
    }
}

/// The well-known account on this machine needs no key from the user.
pub(super) fn find_well_known(location: &Location, _inputs: &Inputs) -> Found {
    if !location.is_loopback() || location.account.as_deref() != Some(DEV_ACCOUNT) {
        return Ok(None);
    }
    Ok(Some(Arc::new(SharedKey::new(DEV_ACCOUNT, &Secret::new(DEV_KEY))?)))
}

/// The bytes of an account key.
///
/// # Errors
/// `Usage` where it is empty or not base64.
pub fn decode_key(key: &Secret) -> Result<Vec<u8>> {
    let text = key.expose().trim();
    match BASE64.decode(text) {
        Ok(raw) if !raw.is_empty() => Ok(raw),
        _ => Err(Error::new(Kind::Usage, "the account key is not valid base64")
            .with_advice("copy the whole key from the account's access keys; it has 88 characters and ends in ==")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscore_sorts_before_digits_and_hyphens_last() {
        let mut names = ["x-ms-meta-a1", "x-ms-meta-ab", "x-ms-meta-a_b", "x-ms-meta-a", "x-ms-date", "x-ms-meta-a-b"];
        names.sort_by(|a, b| culture_order(a, b));
        assert_eq!(names, ["x-ms-date", "x-ms-meta-a", "x-ms-meta-a_b", "x-ms-meta-a1", "x-ms-meta-a-b", "x-ms-meta-ab"]);
    }

    #[test]
    fn query_is_decoded_once_and_keeps_padding() {
        let query = decode_query("comp=block&blockid=AA%3D%3D&x=a+b%2520c&blockid=AA==&flag");
        let pairs: Vec<(&str, &str)> = query.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("comp", "block"), ("blockid", "AA=="), ("x", "a+b%20c"), ("blockid", "AA=="), ("flag", "")]);
    }

    #[test]
    fn malformed_key_is_refused_without_showing_it() {
        for key in ["", "not base64!", "abc"] {
            let error = SharedKey::new("a", &Secret::new(key)).err().unwrap();
            assert_eq!(error.kind(), Kind::Usage, "{key}");
            assert!(key.is_empty() || !format!("{error:?}").contains(key));
        }
        assert!(SharedKey::new("", &Secret::new(DEV_KEY)).is_err());
    }

    #[test]
    fn versions_decide_on_empty_values() {
        let mut headers = HeaderList::default();
        headers.insert(HeaderName::from_static("content-length"), "0".parse().unwrap());
        headers.insert(HeaderName::from_static("x-ms-meta-a"), "".parse().unwrap());
        headers.insert(HeaderName::from_static("date"), "D".parse().unwrap());
        let sts =
            |version| string_to_sign(&ToSign { method: "PUT", account: "a", path: "", query: &[], headers: &headers, version });
        assert_eq!(sts("2014-02-14"), "PUT\n\n\n0\n\n\nD\n\n\n\n\n\n/a/");
        assert_eq!(sts("2016-05-31"), "PUT\n\n\n\n\n\nD\n\n\n\n\n\nx-ms-meta-a:\n/a/");
    }
}
