//! Headers as they are sent and as they are received: lists, since there are a dozen of them and each is looked for once. Maps of
//! names were a quarter of the instructions of a small file.

use http::header::{HeaderName, HeaderValue};
use std::fmt;

/// The headers of a request, in the order in which they go on the wire.
#[derive(Debug, Clone, Default)]
pub struct HeaderList(Vec<(HeaderName, HeaderValue)>);

impl HeaderList {
    /// Room for so many.
    pub(crate) fn with_capacity(headers: usize) -> HeaderList {
        HeaderList(Vec::with_capacity(headers))
    }

    /// Sets the one header with this name.
    pub fn insert(&mut self, name: HeaderName, value: HeaderValue) {
        match self.0.iter_mut().find(|(there, _)| *there == name) {
            Some((_, there)) => *there = value,
            None => self.0.push((name, value)),
        }
    }

    /// Adds one behind those that are there.
    pub fn append(&mut self, name: HeaderName, value: HeaderValue) {
        self.0.push((name, value));
    }

    /// The value of the first header with this name (in lower case).
    pub fn get(&self, name: impl AsRef<str>) -> Option<&HeaderValue> {
        let name = name.as_ref();
        self.iter().find(|(there, _)| there.as_str() == name).map(|(_, value)| value)
    }

    /// Whether there is one with this name (in lower case).
    pub fn contains(&self, name: impl AsRef<str>) -> bool {
        self.get(name).is_some()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(HeaderName, HeaderValue)> for HeaderList {
    fn from_iter<I: IntoIterator<Item = (HeaderName, HeaderValue)>>(all: I) -> HeaderList {
        HeaderList(all.into_iter().collect())
    }
}

/// Headers that were received, in the order in which they came, names in lower case: two pieces of memory, and where in them they
/// end. Most that are looked for are not there, which the lengths of the names tell.
#[derive(Clone, Default)]
pub struct Headers {
    names: String,
    values: Vec<u8>,
    ends: Vec<Ends>,
    /// A bit for each length, modulo 64, that a name has.
    lengths: u64,
}

/// Where a header's name and value end; they begin where those before them do.
#[derive(Clone, Copy, Default)]
struct Ends {
    name: usize,
    value: usize,
}

impl Headers {
    /// Room for this many headers with so many bytes of values together.
    pub(crate) fn with_capacity(headers: usize, bytes: usize) -> Headers {
        let names = String::with_capacity(headers * 24);
        Headers { names, values: Vec::with_capacity(bytes), ends: Vec::with_capacity(headers), lengths: 0 }
    }

    /// Adds one.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        self.lengths |= 1 << (name.len() % 64);
        let start = self.names.len();
        self.names.push_str(name);
        self.names[start..].make_ascii_lowercase();
        self.values.extend_from_slice(value);
        self.ends.push(Ends { name: self.names.len(), value: self.values.len() });
    }

    /// Names in lower case and values, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut start = Ends::default();
        self.ends.iter().map(move |end| {
            let header = (&self.names[start.name..end.name], &self.values[start.value..end.value]);
            start = *end;
            header
        })
    }

    /// The value of the first header with this name (in lower case), where it is visible ASCII.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.bytes(name).and_then(text)
    }

    /// The same, whatever it is made of.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        if self.lengths & 1 << (name.len() % 64) == 0 { None } else { self.all(name).next() }
    }

    /// The values of all headers with this name (in lower case).
    pub fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.iter().filter(move |(there, _)| *there == name).map(|(_, value)| value)
    }

    /// The same headers as a list, for signing, without those that could not be sent.
    pub(crate) fn to_list(&self) -> HeaderList {
        let header = |(name, value): (&str, &[u8])| Some((name.parse().ok()?, HeaderValue::from_bytes(value).ok()?));
        self.iter().filter_map(header).collect()
    }

    /// Whether there is one with this name (in lower case).
    pub fn contains(&self, name: &str) -> bool {
        self.bytes(name).is_some()
    }
}

/// A value as text, where it is nothing but visible ASCII, spaces and tabs (RFC 9110, 5.5: anything else is opaque).
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    let visible = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    visible.then(|| std::str::from_utf8(value).ok()).flatten()
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(name, value)| (name, value.escape_ascii().to_string()))).finish()
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(all: I) -> Headers {
        all.into_iter().fold(Headers::default(), |mut headers, (name, value)| {
            headers.push(name.as_ref(), value.as_ref());
            headers
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_name_is_found_whatever_its_case() {
        let all = [("ETag", "\"1\""), ("x-ms-meta-A", ""), ("etag", "\"2\""), ("x-ms-meta-b", "caf\u{e9}")];
        let headers: Headers = all.into_iter().collect();
        assert_eq!((headers.get("etag"), headers.get("x-ms-meta-a"), headers.get("tag")), (Some("\"1\""), Some(""), None));
        assert_eq!((headers.get("x-ms-meta-b"), headers.bytes("x-ms-meta-b")), (None, Some("caf\u{e9}".as_bytes())));
        assert!(headers.contains("x-ms-meta-b") && !headers.contains("x-ms-meta"));
        let names: Vec<_> = headers.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["etag", "x-ms-meta-a", "etag", "x-ms-meta-b"]);
    }

    #[test]
    fn text_is_visible_ascii() {
        for (value, is) in [(&b"a b\tc~"[..], true), (b"", true), (b"a\x7f", false), (b"\x1b[31m", false), (b"\xe9", false)] {
            assert_eq!(text(value).is_some(), is, "{value:?}");
        }
    }
}
