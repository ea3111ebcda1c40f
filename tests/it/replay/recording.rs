//! One recorded conversation with the service, as a line of the recordings' files holds it.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// The files about blobs and containers. Queues and tables are other services, which the emulator does not offer.
const FILES: &[&str] =
    &["blob-blocks", "blob-conditions", "blob-copy", "blob-lease", "blob-properties", "containers", "errors", "listing", "sas"];

/// Name to value; blob metadata keeps the case it was sent in, other names are in lower case.
pub(crate) type Headers = BTreeMap<String, String>;

#[derive(Deserialize, Clone)]
pub(crate) struct Recording {
    pub(crate) test: String,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) note: Option<String>,
    #[serde(default)]
    pub(crate) assumes: Vec<String>,
    pub(crate) exchanges: Vec<Exchange>,
}

#[derive(Deserialize, Clone)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) secondary: bool,
    #[serde(default)]
    pub(crate) wait_s: Option<f64>,
    /// `None`: the recorder kept neither headers nor body.
    pub(crate) headers: Option<Headers>,
    pub(crate) body: Option<Body>,
    pub(crate) status: u16,
    pub(crate) answer_headers: Headers,
    pub(crate) answer: Option<Body>,
}

/// A body: text, or what is left of bytes.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub(crate) enum Body {
    Text(String),
    Bytes {
        len: usize,
        sha256: String,
        #[serde(default)]
        b64: Option<String>,
        #[serde(default)]
        fill: Option<String>,
    },
}

impl Body {
    /// The bytes, where the recording lets us know them.
    pub(crate) fn known(&self) -> Option<Vec<u8>> {
        match self {
            Body::Text(text) => Some(text.clone().into_bytes()),
            Body::Bytes { b64: Some(text), .. } => Some(STANDARD.decode(text).expect("the recordings hold good base64")),
            Body::Bytes { fill: Some(hex), len, .. } => {
                Some(vec![u8::from_str_radix(hex, 16).expect("the recordings hold good hex"); *len])
            }
            Body::Bytes { .. } => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Body::Text(text) => text.len(),
            Body::Bytes { len, .. } => *len,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Body::Text(text) => Some(text),
            Body::Bytes { .. } => None,
        }
    }
}

impl Exchange {
    /// The query, decoded, in its order.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        parameters(&self.query)
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        self.parameters().into_iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// The `comp` parameter, empty if there is none.
    pub(crate) fn comp(&self) -> String {
        self.parameter("comp").unwrap_or_default()
    }

    pub(crate) fn depth(&self) -> Depth {
        match self.path.trim_start_matches('/').split_once('/') {
            Some(_) => Depth::Blob,
            None if self.path == "/" => Depth::Account,
            None => Depth::Container,
        }
    }

    pub(crate) fn answer_text(&self) -> &str {
        self.answer.as_ref().and_then(Body::text).unwrap_or_default()
    }

    /// The error code of the answer: in the header, and before 2017-07-29 only in the body.
    pub(crate) fn code(&self) -> Option<&str> {
        self.answer_headers.get("x-ms-error-code").map(String::as_str).or_else(|| code_in(self.answer_text()))
    }
}

/// What a path addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    Account,
    Container,
    Blob,
}

/// The text of `<Code>` in an error body.
pub(crate) fn code_in(text: &str) -> Option<&str> {
    Some(text.split_once("<Code>")?.1.split_once("</Code>")?.0)
}

/// A query string, decoded, in its order. A plus stands for itself, as it does at the service.
pub(crate) fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(n, v)| (n.to_owned(), decoded(v))).collect()
}

/// Percent-decoded text.
pub(crate) fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Everything but the unreserved characters of RFC 3986 percent-encoded.
pub(crate) fn encoded(text: &str) -> String {
    const KEEP: percent_encoding::AsciiSet =
        percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encoding::utf8_percent_encode(text, &KEEP).to_string()
}

/// Reads all recordings of the folder that the emulator can be measured by.
pub(crate) fn load(folder: &Path) -> Vec<Recording> {
    let mut all = Vec::new();
    for name in FILES {
        let path = folder.join(format!("{name}.jsonl"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
        for (number, line) in text.lines().enumerate() {
            all.push(serde_json::from_str(line).unwrap_or_else(|e| panic!("{}:{}: {e}", path.display(), number + 1)));
        }
    }
    all
}
