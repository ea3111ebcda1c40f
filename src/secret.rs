//! Values that must never be shown, and URLs that may be.
//!
//! [`Secret`] prints as `REDACTED`; [`SafeUrl`] is a URL whose signature has been taken out. Nothing else in the crate prints
//! a URL, a key or a token.

use std::fmt;

/// A key, token or signature. `Debug` and `Display` print `REDACTED`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// The value itself, for signing or sending; never for a message.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

/// A URL fit for messages, logs and reports: signatures, keys and any userinfo are replaced by `REDACTED`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeUrl(String);

impl SafeUrl {
    /// Takes the secrets out of a URL. Works on any text, parsable or not: every `sig` parameter (any case, also with an
    /// escaped letter such as `%73ig`) loses its value, as does the `AccountKey` of a connection string, and `user:password@`
    /// before a host goes.
    pub fn new(url: &str) -> Self {
        // In this order what comes out stays as it is when it comes in again.
        SafeUrl(redact_userinfo(&redact_query(url)))
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn redact_userinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|i| i + 3) {
        let end = rest[start..].find(['/', '?', '#', ' ', '"', '\'', '\n']).map_or(rest.len(), |i| start + i);
        out.push_str(&rest[..start]);
        match rest[start..end].rfind('@') {
            Some(at) => {
                out.push_str("REDACTED");
                out.push_str(&rest[start + at..end]);
            }
            None => out.push_str(&rest[start..end]),
        }
        rest = &rest[end..];
    }
    out + rest
}

/// What stands between the parts of a query, of a connection string, and of a sentence around them.
const BETWEEN: [char; 8] = ['?', '&', '#', ';', ' ', '"', '\'', '\n'];

fn redact_query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(BETWEEN) {
        let (body, delimiter) = match part.char_indices().next_back() {
            Some((at, c)) if BETWEEN.contains(&c) => part.split_at(at),
            _ => (part, ""),
        };
        match body.split_once('=') {
            Some((name, _)) if is_secret(name) => {
                out.push_str(name);
                out.push_str("=REDACTED");
            }
            _ => out.push_str(body),
        }
        out.push_str(delimiter);
    }
    out
}

fn is_secret(name: &str) -> bool {
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    name.eq_ignore_ascii_case("sig") || name.eq_ignore_ascii_case("AccountKey")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_goes_and_the_rest_stays() {
        for (url, safe) in [
            (
                "https://a.blob.core.windows.net/c?sv=1&sig=abc%2B%3D&sp=rw",
                "https://a.blob.core.windows.net/c?sv=1&sig=REDACTED&sp=rw",
            ),
            ("https://a/c?SIG=abc", "https://a/c?SIG=REDACTED"),
            ("https://a/c?%73ig=abc&se=2030", "https://a/c?%73ig=REDACTED&se=2030"),
            ("https://a/c?sig=a/b+c==", "https://a/c?sig=REDACTED"),
            ("https://a/c?sv=1&amp;sig=abc&amp;sp=r", "https://a/c?sv=1&amp;sig=REDACTED&amp;sp=r"),
            ("http://user:pw@proxy:8080/x", "http://REDACTED@proxy:8080/x"),
            ("https://a/sig=not-a-parameter", "https://a/sig=not-a-parameter"),
            ("not a url", "not a url"),
            ("sig=abc%3D&sp=r", "sig=REDACTED&sp=r"),
            ("a 'http://u:p@h/x' and http://v:q@i", "a 'http://REDACTED@h/x' and http://REDACTED@i"),
            (
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc+/==;EndpointSuffix=x",
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=REDACTED;EndpointSuffix=x",
            ),
        ] {
            assert_eq!(SafeUrl::new(url).to_string(), safe);
        }
    }

    #[test]
    fn secret_never_prints() {
        let secret = Secret::new("key");
        assert_eq!(format!("{secret} {secret:?}"), "REDACTED REDACTED");
    }
}
