//! Whether the emulator's answer is the service's answer.
//!
//! Equal must be: status, error code, which headers are there, their values or (for what the service makes up) their form, the
//! names, order and nesting of elements with the texts that say something, and the contents of blobs. Free are the words of
//! messages, what belongs to the account rather than to the request, and what the recordings leave out.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::batch;
use super::recording::{Body, Depth, Exchange, code_in, decoded};
use super::tokens::Tokens;
use super::wire::Reply;
use super::xml::{self, Element};

/// What is known about the conversation so far.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) tokens: Tokens,
    /// Some bytes sent were not those of the recording, so hashes and contents differ.
    pub(crate) other_bytes: bool,
    /// Containers made in this conversation; the rest of an account listing is the account's.
    pub(crate) made: BTreeSet<String>,
    /// Service properties set in this conversation; the rest are the account's.
    pub(crate) set: BTreeSet<String>,
}

/// Headers that say nothing about the operation, were taken out of the recordings, or belong to the transfer.
const FREE_HEADERS: &[&str] = &[
    "connection",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
    "x-content-type-options",
    "x-ms-client-request-id",
    "x-ms-request-id",
    // The accounts of most recordings kept versions; the emulator's does not.
    "x-ms-is-current-version",
    "x-ms-version-id",
];

/// Elements that only an account with versions shows.
const FREE_ELEMENTS: &[&str] = &["IsCurrentVersion", "VersionId", "HasVersionsOnly"];

/// Headers and elements whose value the service makes up and hands out to be sent back.
const TOKENS: &[&str] =
    &["etag", "x-ms-copy-id", "x-ms-lease-id", "x-ms-snapshot", "Etag", "CopyId", "NextMarker", "Marker", "Snapshot"];

/// Headers and elements of which only the form is the service's.
const FORMS: &[&str] = &[
    "etag",
    "last-modified",
    "x-ms-access-tier-change-time",
    "x-ms-copy-completion-time",
    "x-ms-copy-id",
    "x-ms-creation-time",
    // Permanent or not is the account's retention policy; encrypted or not its age.
    "x-ms-delete-type-permanent",
    "x-ms-immutability-policy-until-date",
    "x-ms-lease-id",
    "x-ms-lease-time",
    "x-ms-request-server-encrypted",
    "x-ms-server-encrypted",
    "x-ms-snapshot",
    "AccessTierChangeTime",
    "CopyCompletionTime",
    "CopyId",
    "Creation-Time",
    "Etag",
    "LastSyncTime",
    "Last-Modified",
    "ServerEncrypted",
    "Snapshot",
];

/// Elements of which only the presence is the service's.
const FREE_TEXT: &[&str] =
    &["AuthenticationErrorDetail", "LineNumber", "LinePosition", "Marker", "Message", "NextMarker", "Reason", "Value"];

/// Hashes of what was sent.
const HASHES: &[&str] =
    &["Content-MD5", "ServerCalculatedMd5", "UserSpecifiedMd5", "content-md5", "x-ms-blob-content-md5", "x-ms-content-crc64"];

/// Headers that describe the account.
const ACCOUNT: &[&str] = &["x-ms-account-kind", "x-ms-is-hns-enabled", "x-ms-sku-name"];

/// All that differs, in the order found; pairs up what both sides made up.
pub(crate) fn answers(exchange: &Exchange, reply: &Reply, known: &mut Known) -> Vec<String> {
    let mut out = Vec::new();
    let text = String::from_utf8_lossy(&reply.body);
    let code = reply.header("x-ms-error-code").or_else(|| code_in(&text));
    if exchange.status != reply.status || exchange.code() != code {
        let shown = |status: u16, code: Option<&str>| format!("{status} {}", code.unwrap_or_default()).trim_end().to_owned();
        out.push(format!("answers {}, recorded {}", shown(reply.status, code), shown(exchange.status, exchange.code())));
        return out;
    }
    let recorded: Vec<_> = exchange.answer_headers.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
    let reads_blob = exchange.depth() == Depth::Blob && exchange.comp().is_empty() && exchange.method != "PUT";
    let length_matters = reads_blob && reply.status < 300 && exchange.answer_headers.contains_key("content-length");
    headers(&recorded, &reply.headers, length_matters, known, &mut out);
    body(exchange, reply, known, &mut out);
    out
}

/// Compares two sets of headers.
pub(crate) fn headers(
    recorded: &[(String, String)],
    got: &[(String, String)],
    length_matters: bool,
    known: &mut Known,
    out: &mut Vec<String>,
) {
    let kept = |headers: &[(String, String)]| -> Vec<(String, String)> {
        let name = |n: &str| if n.to_ascii_lowercase().starts_with("x-ms-meta-") { n.to_owned() } else { n.to_ascii_lowercase() };
        let named = headers.iter().map(|(n, v)| (name(n), v.clone()));
        named
            .filter(|(n, v)| {
                !(FREE_HEADERS.contains(&n.as_str())
                    || n.starts_with("access-control-")
                    || n == "content-length" && !length_matters
                    // Only for some weeks of 2019 did the service say so of blobs without tags.
                    || n == "x-ms-tag-count" && v == "0")
            })
            .collect()
    };
    let (recorded, got) = (kept(recorded), kept(got));
    for (name, value) in &recorded {
        match got.iter().find(|(n, _)| n == name) {
            None => out.push(format!("header {name} is missing")),
            Some((_, ours)) => values(name, value, ours, known, out),
        }
    }
    for (name, value) in &got {
        if !recorded.iter().any(|(n, _)| n == name) {
            out.push(format!("header {name} is not in the recording ({value})"));
        }
    }
}

/// Compares two values of one header or element.
fn values(name: &str, recorded: &str, got: &str, known: &mut Known, out: &mut Vec<String>) {
    if TOKENS.contains(&name)
        && let Err(why) = known.tokens.pair(recorded, got)
    {
        out.push(format!("{name} {why}"));
    }
    let first_word = |v: &str| v.split([' ', ';']).next().unwrap_or_default().to_owned();
    let equal = match name {
        "x-ms-copy-source" | "CopySource" => below_account(recorded) == below_account(got),
        "x-ms-encryption-key-sha256" => !got.is_empty(),
        "content-type" if recorded.starts_with("multipart/") => first_word(recorded) == first_word(got),
        "www-authenticate" => first_word(recorded) == first_word(got),
        _ if ACCOUNT.contains(&name) => !got.is_empty(),
        _ if FREE_TEXT.contains(&name) => recorded.is_empty() == got.is_empty(),
        _ if FORMS.contains(&name) || (HASHES.contains(&name) && known.other_bytes) => form(recorded) == form(got),
        _ => recorded == got || known.tokens.ours(recorded).as_deref() == Some(got),
    };
    if !equal {
        out.push(format!("{name} is {got:?}, recorded {recorded:?}"));
    }
}

/// The path of a URL without the account's part of it, decoded: hosts, account and signatures are not the recording's.
fn below_account(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    let path = url.split_once("://").map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    let in_host = url.contains("://ACCOUNT");
    decoded(if in_host { path } else { path.split_once('/').map_or("", |(_, below)| below) })
}

/// The shape of a value: what kind of thing it is, and its length where that is part of the kind.
fn form(value: &str) -> String {
    let inner = value.trim_matches('"');
    let quoted = if inner.len() == value.len() { "" } else { "quoted " };
    let shape: String = inner.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let kind = if inner.strip_prefix("0x").is_some_and(|hex| hex.chars().all(|c| c.is_ascii_hexdigit())) {
        "etag".to_owned()
    } else if jiff::fmt::rfc2822::parse(inner).is_ok() {
        "date".to_owned()
    } else if shape == "0000-00-00T00:00:00.0000000Z" {
        "time".to_owned()
    } else if inner.len() == 36 && inner.split('-').map(str::len).eq([8, 4, 4, 4, 12]) {
        "id".to_owned()
    } else if inner.len().is_multiple_of(4) && inner.ends_with('=') {
        format!("base64 of {}", inner.len())
    } else if inner.parse::<u64>().is_ok() {
        "number".to_owned()
    } else if inner == "true" || inner == "false" {
        "truth".to_owned()
    } else {
        inner.to_owned()
    };
    format!("{quoted}{kind}")
}

fn body(exchange: &Exchange, reply: &Reply, known: &mut Known, out: &mut Vec<String>) {
    if let Some(Body::Bytes { .. }) = &exchange.answer
        && exchange.depth() == Depth::Account
    {
        // A listing of the account too long to be kept.
        return;
    }
    let Some(recorded) = &exchange.answer else {
        if !reply.body.is_empty() {
            out.push(format!("a body of {} bytes, recorded none", reply.body.len()));
        }
        return;
    };
    if let Some(text) = recorded.text() {
        if text.trim_start_matches('\u{feff}').starts_with("<?xml") {
            documents(exchange, text, &reply.body, known, out);
            return;
        }
        if text.starts_with("--batchresponse") {
            batch::answers(text, &String::from_utf8_lossy(&reply.body), known, out);
            return;
        }
    }
    let hash = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect::<String>();
    let same = match recorded {
        _ if known.other_bytes => true,
        Body::Text(text) => text.as_bytes() == reply.body,
        Body::Bytes { sha256, .. } => *sha256 == hash(&reply.body),
    };
    if recorded.len() != reply.body.len() {
        out.push(format!("{} bytes of body, recorded {}", reply.body.len(), recorded.len()));
    } else if !same {
        out.push("contents differ".to_owned());
    }
}

fn documents(exchange: &Exchange, recorded: &str, got: &[u8], known: &mut Known, out: &mut Vec<String>) {
    let got = match std::str::from_utf8(got) {
        Ok(text) => text,
        Err(error) => return out.push(format!("body is not UTF-8: {error}")),
    };
    if recorded.starts_with('\u{feff}') != got.starts_with('\u{feff}') {
        out.push("only one body begins with a byte order mark".to_owned());
    }
    let (mut recorded, mut got) = match (xml::parse(recorded), xml::parse(got)) {
        (Ok(recorded), Ok(got)) => (recorded, got),
        (recorded, got) => return out.push(format!("XML: recorded {:?}, ours {:?}", recorded.err(), got.err())),
    };
    let of_account = exchange.depth() == Depth::Account;
    if of_account && (without_others(&mut recorded, known) | without_others(&mut got, known)) {
        // Where the page of an account that holds more would end says nothing.
        recorded.children.retain(|c| c.name != "NextMarker");
        got.children.retain(|c| c.name != "NextMarker");
    }
    elements(&recorded, &got, &got.name, known, out);
}

/// Takes out what an answer of the account says about other containers and other settings; whether there were other containers.
fn without_others(root: &mut Element, known: &Known) -> bool {
    if root.name == "StorageServiceProperties" {
        root.children.retain(|c| known.set.contains(&c.name));
    }
    let mut dropped = false;
    for list in root.children.iter_mut().filter(|c| c.name == "Containers") {
        let before = list.children.len();
        list.children.retain(|c| known.made.contains(c.text_of("Name")));
        dropped |= list.children.len() < before;
    }
    dropped
}

fn elements(recorded: &Element, got: &Element, path: &str, known: &mut Known, out: &mut Vec<String>) {
    for (name, value) in &recorded.attributes {
        match got.attributes.iter().find(|(n, _)| n == name) {
            None => out.push(format!("{path} lacks attribute {name}")),
            Some((_, ours)) if name != "ServiceEndpoint" && ours != value => {
                out.push(format!("{path} {name} is {ours:?}, recorded {value:?}"));
            }
            Some(_) => {}
        }
    }
    if let Some((name, _)) = got.attributes.iter().find(|(n, _)| !recorded.attributes.iter().any(|(m, _)| m == n)) {
        out.push(format!("{path} has attribute {name}, which the recording lacks"));
    }
    let kept = |element: &Element| -> Vec<Element> {
        let mut kept: Vec<Element> =
            element.children.iter().filter(|c| !FREE_ELEMENTS.contains(&c.name.as_str())).cloned().collect();
        if element.name == "Metadata" {
            // They come in the order in which they were sent, which the recordings do not tell.
            kept.sort_by(|a, b| a.name.cmp(&b.name));
        }
        kept
    };
    let (theirs, ours) = (kept(recorded), kept(got));
    let names = |list: &[Element]| list.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    if names(&theirs) != names(&ours) {
        out.push(format!("{path} holds {}, recorded {}", names(&ours).join(" "), names(&theirs).join(" ")));
        return;
    }
    if theirs.is_empty() && ours.is_empty() {
        let mut found = Vec::new();
        values(&recorded.name, &recorded.text, &got.text, known, &mut found);
        out.extend(found.into_iter().map(|what| format!("{path}: {what}")));
    }
    for (theirs, ours) in theirs.iter().zip(&ours) {
        elements(theirs, ours, &format!("{path}/{}", theirs.name), known, out);
    }
}

/// Compares two error bodies of batch parts.
pub(crate) fn error_bodies(recorded: &str, got: &str, known: &mut Known, out: &mut Vec<String>) {
    match (xml::parse(recorded.trim()), xml::parse(got.trim())) {
        (Ok(recorded), Ok(got)) => elements(&recorded, &got, &got.name, known, out),
        (recorded, got) => out.push(format!("XML: recorded {:?}, ours {:?}", recorded.err(), got.err())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_tell_kinds_apart() {
        for (a, b, same) in [
            ("\"0x8D9\"", "\"0x1\"", true),
            ("\"0x8D9\"", "0x8D9", false),
            ("Thu, 09 May 2019 00:58:02 GMT", "Fri, 10 May 2019 01:00:00 GMT", true),
            ("Thu, 09 May 2019 00:58:02 GMT", "2019-05-09T00:58:02.0000000Z", false),
            ("XrY7u+Ae7tCTyyK7j1rNww==", "PPzLtEWEL4w=", false),
            ("7cc4225e-ca8a-4272-9007-6e93f24b66e9", "00000000-ca8a-4272-9007-6e93f24b66e9", true),
        ] {
            assert_eq!(form(a) == form(b), same, "{a} {b}");
        }
    }

    #[test]
    fn urls_are_compared_below_the_account() {
        assert_eq!(below_account("https://ACCOUNT.blob.core.windows.net/c/b%20c?sig=x"), "c/b c");
        assert_eq!(below_account("http://127.0.0.1:1234/devstoreaccount1/c/b c?sig=y"), "c/b c");
    }
}
