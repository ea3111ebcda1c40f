//! The headers of an answer: one piece of memory, and where in it names and values stand.
//!
//! An answer has ten of them and two are looked at, so nothing is hashed and nothing has an allocation of its own. A map of names
//! cost a sixth of the instructions of a small file.

use std::fmt;

/// Headers in the order in which they came, names in lower case.
#[derive(Clone, Default)]
pub struct Headers {
    /// Each name, directly followed by its value.
    text: Vec<u8>,
    places: Vec<Place>,
}

/// Where a header stands in the text.
#[derive(Clone, Copy)]
struct Place {
    name: usize,
    value: usize,
    end: usize,
}

impl Headers {
    /// Room for this many headers of so many bytes together.
    pub(crate) fn with_capacity(headers: usize, bytes: usize) -> Headers {
        Headers { text: Vec::with_capacity(bytes), places: Vec::with_capacity(headers) }
    }

    /// Adds one. The name has to be ASCII.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let start = self.text.len();
        self.text.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        let middle = self.text.len();
        self.text.extend_from_slice(value);
        self.places.push(Place { name: start, value: middle, end: self.text.len() });
    }

    /// Names in lower case and values, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.places.iter().map(|place| (self.name(place), &self.text[place.value..place.end]))
    }

    /// The value of the first header with this name (in lower case), where it is visible ASCII.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.bytes(name).and_then(text)
    }

    /// The same, whatever it is made of.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        let same = |place: &&Place| self.text[place.name..place.value] == *name.as_bytes();
        let place = self.places.iter().find(same)?;
        Some(&self.text[place.value..place.end])
    }

    /// Whether there is one with this name (in lower case).
    pub fn contains(&self, name: &str) -> bool {
        self.bytes(name).is_some()
    }

    fn name(&self, place: &Place) -> &str {
        std::str::from_utf8(&self.text[place.name..place.value]).unwrap_or_default()
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
