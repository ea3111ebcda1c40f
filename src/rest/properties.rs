//! Attributes of a blob as headers: the one function behind Put Blob, Put Block List and copies, so that the same options give
//! the same properties. Also what the service would refuse for sure, and how metadata and tags are written on a command line.

use crate::attributes::{Attributes, Replace};
use crate::chunks::Chunks;
use crate::error::{Error, Kind, Result};
use crate::rest::date;
use crate::rest::headers::HeaderList;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use md5::{Digest as _, Md5};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::time::Duration;

/// Most bytes of metadata, names and values together ("Setting and retrieving properties and metadata").
const MAX_METADATA: usize = 8 * 1024;

/// Most index tags of a blob, and longest key and value in characters ("Manage and find Azure Blob data with blob index tags").
const MAX_TAGS: usize = 10;
const MAX_TAG_KEY: usize = 128;
const MAX_TAG_VALUE: usize = 256;

/// Writes everything into headers. Values were looked at by [`check`]; what cannot stand in a header is an error here too.
///
/// # Errors
/// `Usage`.
pub fn apply(attributes: &Attributes, replace: Replace, headers: &mut HeaderList) -> Result<()> {
    let plain = [
        ("x-ms-blob-content-type", &attributes.content_type),
        ("x-ms-blob-content-encoding", &attributes.content_encoding),
        ("x-ms-blob-content-language", &attributes.content_language),
        ("x-ms-blob-content-disposition", &attributes.content_disposition),
        ("x-ms-blob-cache-control", &attributes.cache_control),
        ("x-ms-access-tier", &attributes.tier),
    ];
    for (name, value) in plain {
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), header_value(name, value)?);
        }
    }
    if let Some(md5) = &attributes.content_md5 {
        let value = owned(BASE64.encode(md5)).expect("base64 is visible ASCII");
        headers.insert(HeaderName::from_static("x-ms-blob-content-md5"), value);
    }
    for (key, value) in &attributes.metadata {
        let name = HeaderName::try_from(format!("x-ms-meta-{key}"))
            .map_err(|e| refused(format!("the metadata name {key:?} cannot stand in a header")).with_source(e))?;
        headers.insert(name, header_value(key, value)?);
    }
    if !attributes.tags.is_empty() {
        headers.insert(HeaderName::from_static("x-ms-tags"), owned(tags_header(&attributes.tags)).expect("percent-encoded"));
    }
    match replace {
        Replace::Always => {}
        Replace::Never => {
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        Replace::IfOlderThan(moment) => {
            // The service keeps whole seconds, and "not changed since" includes the second named: the last one before the
            // moment is meant.
            let before = moment.checked_sub(Duration::from_nanos(1)).unwrap_or(moment);
            headers.insert(header::IF_UNMODIFIED_SINCE, owned(date::format(before)).expect("a date is visible ASCII"));
        }
    }
    Ok(())
}

fn owned(text: String) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::from(text)).ok()
}

fn refused(what: String) -> Error {
    Error::new(Kind::Usage, what)
}

/// Whether metadata can have this name: letters, digits and `_`, and no digit first ("Naming and referencing containers, blobs,
/// and metadata").
pub fn is_metadata_name(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether this can be the value of a property or of metadata.
pub fn is_header_text(value: &str) -> bool {
    value.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// Values are visible ASCII: what the service would make of other bytes, and how it would sign them, is not documented.
fn header_value(name: &str, value: &str) -> Result<HeaderValue> {
    match HeaderValue::from_str(value) {
        Ok(header) if is_header_text(value) => Ok(header),
        _ => Err(refused(format!("the value of {name} has characters that are not plain ASCII"))
            .with_advice("percent-encode them, or write them as base64")),
    }
}

fn tags_header(tags: &[(String, String)]) -> String {
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let mut out = String::new();
    for (key, value) in tags {
        if !out.is_empty() {
            out.push('&');
        }
        out.extend(utf8_percent_encode(key, PLAIN));
        out.push('=');
        out.extend(utf8_percent_encode(value, PLAIN));
    }
    out
}

/// Refuses what the service would refuse for sure, so that a job ends before its first request.
///
/// # Errors
/// `Usage`, naming the rule.
pub fn check(attributes: &Attributes) -> Result<()> {
    let mut size = 0;
    let mut keys: Vec<String> = Vec::new();
    for (key, value) in &attributes.metadata {
        if !is_metadata_name(key) {
            return Err(refused(format!("the metadata name {key:?} is not allowed"))
                .with_advice("a name is letters, digits and _, and does not begin with a digit"));
        }
        if keys.contains(&key.to_ascii_lowercase()) {
            return Err(refused(format!("the metadata name {key:?} is there twice (case does not count)")));
        }
        keys.push(key.to_ascii_lowercase());
        size += key.len() + value.len();
    }
    if size > MAX_METADATA {
        return Err(refused(format!("the metadata has {size} bytes, and {MAX_METADATA} are allowed")));
    }
    check_tags(&attributes.tags)?;
    apply(attributes, Replace::Always, &mut HeaderList::default())
}

fn check_tags(tags: &[(String, String)]) -> Result<()> {
    if tags.len() > MAX_TAGS {
        return Err(refused(format!("there are {} tags, and {MAX_TAGS} are allowed", tags.len())));
    }
    let allowed = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || " +-./:=_".contains(c));
    for (i, (key, value)) in tags.iter().enumerate() {
        if key.is_empty() || key.len() > MAX_TAG_KEY || value.len() > MAX_TAG_VALUE {
            return Err(refused(format!(
                "the tag {key:?} is not allowed: keys have 1 to {MAX_TAG_KEY} characters, values up to {MAX_TAG_VALUE}"
            )));
        }
        if !allowed(key) || !allowed(value) {
            return Err(refused(format!("the tag {key:?} is not allowed: letters, digits, space and + - . / : = _ are")));
        }
        if tags[..i].iter().any(|(other, _)| other == key) {
            return Err(refused(format!("the tag {key:?} is there twice")));
        }
    }
    Ok(())
}

/// Reads metadata as a command line has it: `k=v;k2=v2`. The first `=` of each pair separates; `\;` is a semicolon and `\\` a
/// backslash, any other backslash stands for itself.
///
/// # Errors
/// `Usage` for a pair without `=`.
pub fn parse_metadata(text: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = pairs.last_mut().expect("never empty");
        match (c, chars.peek()) {
            ('\\', Some(&next @ (';' | '\\'))) => {
                last.push(next);
                chars.next();
            }
            (';', _) => pairs.push(String::new()),
            _ => last.push(c),
        }
    }
    pairs
        .iter()
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                refused(format!("the metadata {pair:?} has no ="))
                    .with_advice("write name=value;name=value, and \\; for a semicolon in a value")
            })?;
            Ok((key.trim().to_owned(), value.to_owned()))
        })
        .collect()
}

/// Reads tags as a command line has them, percent-encoded: `k=v&k2=v2`.
///
/// # Errors
/// `Usage` for a pair without `=`, or percent-encoding that is not UTF-8.
pub fn parse_tags(text: &str) -> Result<Vec<(String, String)>> {
    let decode = |part: &str| {
        let text = percent_decode_str(part).decode_utf8();
        text.map(|t| t.into_owned()).map_err(|e| refused(format!("the tag {part:?} is not UTF-8")).with_source(e))
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                refused(format!("the tag {pair:?} has no =")).with_advice("write key=value&key=value, percent-encoded, in quotes")
            })?;
            Ok((decode(key)?, decode(value)?))
        })
        .collect()
}

/// The value of `x-ms-content-crc64`: eight bytes, least significant first, in base64.
pub fn crc64_header(crc64: u64) -> HeaderValue {
    HeaderValue::from_bytes(&crc64_text(crc64)).expect("base64 is visible ASCII")
}

/// The same, to be compared with.
pub(crate) fn crc64_text(crc64: u64) -> [u8; 12] {
    let mut out = [0; 12];
    BASE64.encode_slice(crc64.to_le_bytes(), &mut out).expect("8 bytes are 12 characters");
    out
}

/// The value of `Content-MD5` for a body.
pub fn md5_header(body: &Chunks) -> HeaderValue {
    owned(BASE64.encode(md5(body))).expect("base64 is visible ASCII")
}

/// MD5 of a body.
pub(crate) fn md5(body: &Chunks) -> [u8; 16] {
    let mut digest = Md5::new();
    body.iter().for_each(|piece| digest.update(piece));
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn every_attribute_has_its_header() {
        let attributes = Attributes {
            content_type: Some("text/html; charset=utf-8".into()),
            content_encoding: Some("gzip".into()),
            content_language: Some("de".into()),
            content_disposition: Some("attachment; filename=\"a b\"".into()),
            cache_control: Some("no-cache".into()),
            content_md5: Some([0; 16]),
            metadata: pairs(&[("Color", "blue=1;2"), ("a_b", "")]),
            tags: pairs(&[("k 1", "a+b=c/d"), ("e", "")]),
            tier: Some("Smart".into()),
        };
        check(&attributes).unwrap();
        let mut headers = HeaderList::default();
        apply(&attributes, Replace::Never, &mut headers).unwrap();
        let mut got: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        got.sort_unstable();
        assert_eq!(
            got,
            [
                ("if-none-match", "*"),
                ("x-ms-access-tier", "Smart"),
                ("x-ms-blob-cache-control", "no-cache"),
                ("x-ms-blob-content-disposition", "attachment; filename=\"a b\""),
                ("x-ms-blob-content-encoding", "gzip"),
                ("x-ms-blob-content-language", "de"),
                ("x-ms-blob-content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
                ("x-ms-blob-content-type", "text/html; charset=utf-8"),
                ("x-ms-meta-a_b", ""),
                ("x-ms-meta-color", "blue=1;2"),
                ("x-ms-tags", "k%201=a%2Bb%3Dc%2Fd&e="),
            ]
        );
    }

    #[test]
    fn older_than_is_unmodified_since_the_last_second_before() {
        let mut headers = HeaderList::default();
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_465_800);
        apply(&Attributes::default(), Replace::IfOlderThan(moment), &mut headers).unwrap();
        assert_eq!(headers.get("if-unmodified-since").unwrap(), "Thu, 15 Jan 2026 08:29:59 GMT");
        let half_later = moment + Duration::from_millis(500);
        apply(&Attributes::default(), Replace::IfOlderThan(half_later), &mut headers).unwrap();
        assert_eq!(headers.get("if-unmodified-since").unwrap(), "Thu, 15 Jan 2026 08:30:00 GMT");
        assert_eq!(headers.len(), 1);
        let mut headers = HeaderList::default();
        apply(&Attributes::default(), Replace::Always, &mut headers).unwrap();
        assert!(headers.is_empty());
    }

    #[test]
    fn what_the_service_would_refuse_is_refused_first() {
        let metadata = |list: &[(&str, &str)]| Attributes { metadata: pairs(list), ..Attributes::default() };
        let tags = |list: &[(&str, &str)]| Attributes { tags: pairs(list), ..Attributes::default() };
        let eleven: Vec<(String, String)> = (0..11).map(|i| (format!("k{i}"), String::new())).collect();
        for attributes in [
            metadata(&[("a-b", "1")]),
            metadata(&[("", "1")]),
            metadata(&[("1a", "1")]),
            metadata(&[("ä", "1")]),
            metadata(&[("a b", "1")]),
            metadata(&[("a", "1"), ("A", "2")]),
            metadata(&[("a", "ä")]),
            metadata(&[("a", "x\ny")]),
            metadata(&[("a", &"x".repeat(8192))]),
            tags(&[("", "v")]),
            tags(&[("k", "v&w")]),
            tags(&[("k", "ä")]),
            tags(&[("k", "1"), ("k", "2")]),
            tags(&[(&"k".repeat(129), "")]),
            tags(&[("k", &"v".repeat(257))]),
            Attributes { tags: eleven, ..Attributes::default() },
            Attributes { content_type: Some("text/plain\r\nx-evil: 1".into()), ..Attributes::default() },
        ] {
            assert_eq!(check(&attributes).unwrap_err().kind(), Kind::Usage, "{attributes:?}");
        }
        check(&metadata(&[("a", &"x".repeat(8191))])).unwrap();
        check(&metadata(&[("_a1", "any ~ !\"#$%&'()*+,-./:;<=>?@[]^`{|}")])).unwrap();
        check(&tags(&[("k", "a+b - c./:=_")])).unwrap();
    }

    #[test]
    fn metadata_splits_at_the_first_equals_sign_and_semicolons_can_be_written() {
        for (text, expected) in [
            ("a=1;b=2", pairs(&[("a", "1"), ("b", "2")])),
            ("a=b=c;", pairs(&[("a", "b=c")])),
            (r"a=x\;y;b=c\\;d=C:\temp", pairs(&[("a", "x;y"), ("b", r"c\"), ("d", r"C:\temp")])),
            (" a = v ;;b=", pairs(&[("a", " v "), ("b", "")])),
            ("", vec![]),
        ] {
            assert_eq!(parse_metadata(text).unwrap(), expected, "{text}");
        }
        assert_eq!(parse_metadata("a=1;b").unwrap_err().kind(), Kind::Usage);
    }

    #[test]
    fn tags_are_percent_decoded() {
        assert_eq!(parse_tags("a%20b=c%26d&e=f%3Dg=h").unwrap(), pairs(&[("a b", "c&d"), ("e", "f=g=h")]));
        assert!(parse_tags("").unwrap().is_empty());
        assert!(parse_tags("a").is_err() && parse_tags("a=%FF").is_err());
    }

    #[test]
    fn checksums_as_published() {
        for (crc, header) in [
            (0, "AAAAAAAAAAA="),
            (0x02E5_1CC8_5EFC_E1A5, "peH8Xsgc5QI="),
            (0xAE8B_1486_0A79_9888, "iJh5CoYUi64="),
            (2_153_758_901_452_455_624, "yL7oTE+w4x0="),
            (0x6482_D367_EB22_B64E, "TrYi62fTgmQ="),
        ] {
            assert_eq!(crc64_header(crc), header);
        }
        let mut body = Chunks::from(Bytes::from("01234567"));
        body.push(Bytes::from("89abcdef"));
        assert_eq!(md5_header(&body), "QDKvjWEDUSOQbljgZxQMxQ==");
    }
}
