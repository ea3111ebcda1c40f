//! Every recorded answer of the real service, fed to the parser of its operation. The recordings are not part of this project:
//! their folder is named by `BLOBJET_RECORDINGS`, and without it this is left out, saying so.
//!
//! What a parser should find is counted here by plain text search, so that parser and expectation do not share their mistakes.

use blobjet::rest::model::{
    BlockList, ContainerPage, ErrorBody, ListEntry, ListPage, Properties, SignedIdentifiers, Spelling, Tags, multipart,
};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

struct Exchange {
    /// Test and number, for messages.
    id: String,
    method: String,
    query: String,
    status: u64,
    headers: BTreeMap<String, String>,
    body: String,
}

fn exchanges() -> Option<Vec<Exchange>> {
    let Some(folder) = std::env::var_os("BLOBJET_RECORDINGS").map(PathBuf::from) else {
        crate::tell("recorded answers: left out, BLOBJET_RECORDINGS names no folder of recordings");
        return None;
    };
    let mut out = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let recording: Value = serde_json::from_str(line).unwrap();
            if recording["service"] != "blob" {
                continue;
            }
            for (i, e) in recording["exchanges"].as_array().unwrap().iter().enumerate() {
                let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
                out.push(Exchange {
                    id: format!("{} #{i}", text(&recording["test"])),
                    method: text(&e["method"]),
                    query: text(&e["query"]),
                    status: e["status"].as_u64().unwrap(),
                    headers: e["answer_headers"]
                        .as_object()
                        .map(|h| h.iter().map(|(n, v)| (n.clone(), text(v))).collect())
                        .unwrap_or_default(),
                    body: text(&e["answer"]),
                });
            }
        }
    }
    assert!(!out.is_empty(), "no recording of the Blob service in {}", folder.display());
    Some(out)
}

/// Texts between `<name>` and `</name>`, by plain search. Attributes of the opening tag are passed over.
fn between<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(&open) {
        rest = &rest[start + open.len()..];
        // A longer name, or an empty element?
        let tag_end = rest.find('>').unwrap();
        if !rest.starts_with(['>', ' ']) || rest[..tag_end].ends_with('/') {
            continue;
        }
        let inside = &rest[tag_end + 1..];
        found.push(&inside[..inside.find(&close).unwrap()]);
    }
    found
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Parameters of a query, by name.
fn is(query: &str, pairs: &[&str]) -> bool {
    pairs.iter().all(|pair| query.split('&').any(|p| p.eq_ignore_ascii_case(pair)))
}

/// Each property as text search finds it, against what the parser says of it.
fn assert_properties(id: &str, xml: &str, properties: &Properties) {
    let inside = between(xml, "Properties").first().copied().unwrap_or_default();
    let elements = inside.matches('<').count() - inside.matches("</").count();
    assert_eq!(properties.iter().count(), elements, "{id}: {inside}");
    for (name, value) in properties.iter() {
        match between(inside, name).first() {
            Some(text) => assert_eq!(unescaped(text), value, "{id}: {name}"),
            None => assert!(value.is_empty() && inside.contains(&format!("<{name} />")), "{id}: {name}"),
        }
    }
}

fn assert_page(e: &Exchange) -> usize {
    let page = ListPage::parse(e.body.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", e.id));
    let blobs = between(&e.body, "Blob");
    assert_eq!(page.blobs().count(), blobs.len(), "{}", e.id);
    assert_eq!(page.prefixes().count(), e.body.matches("<BlobPrefix>").count(), "{}", e.id);
    for (item, xml) in page.blobs().zip(&blobs) {
        let name = between(xml, "Name")[0];
        if xml.contains("Encoded=\"true\"") {
            assert_eq!(name.replace("%EF%BF%BF", "\u{ffff}").replace("%2F", "/"), item.name, "{}", e.id);
        } else {
            assert_eq!(unescaped(name), item.name, "{}", e.id);
        }
        let optional = |name: &str| between(xml, name).first().map(|t| (*t).to_owned());
        assert_eq!(item.snapshot, optional("Snapshot"), "{}", e.id);
        assert_eq!(item.version_id, optional("VersionId"), "{}", e.id);
        assert_eq!(item.is_current_version, xml.contains("<IsCurrentVersion>true<"), "{}", e.id);
        assert_eq!(item.deleted, xml.contains("<Deleted>true<"), "{}", e.id);
        assert_eq!(item.or_metadata.is_some(), xml.contains("<OrMetadata"), "{}", e.id);
        assert_properties(&e.id, xml, &item.properties);
        let length: u64 = between(xml, "Content-Length")[0].parse().unwrap();
        assert_eq!(item.properties.content_length(), Some(length), "{}", e.id);
        assert_eq!(item.properties.last_modified().is_some(), xml.contains("<Last-Modified>"), "{}", e.id);
        assert_eq!(item.properties.etag().map(str::to_owned), optional("Etag"), "{}", e.id);
        for (key, value) in item.metadata.iter().flatten() {
            assert!(xml.contains(&format!("<{key}>{value}</{key}>")), "{}: {key}", e.id);
        }
    }
    assert_eq!(page.next_marker.as_deref(), between(&e.body, "NextMarker").first().copied(), "{}", e.id);
    assert_eq!(page.delimiter.as_deref(), between(&e.body, "Delimiter").first().copied(), "{}", e.id);
    assert_eq!(page.to_xml(), e.body, "{}", e.id);
    page.entries.iter().filter(|entry| matches!(entry, ListEntry::Blob(_))).count()
}

fn assert_containers(e: &Exchange) {
    let page = ContainerPage::parse(e.body.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", e.id));
    let containers = between(&e.body, "Container");
    assert_eq!(page.containers.len(), containers.len(), "{}", e.id);
    for (item, xml) in page.containers.iter().zip(&containers) {
        assert_eq!(item.name, between(xml, "Name")[0], "{}", e.id);
        assert_eq!(item.deleted, xml.contains("<Deleted>true<"), "{}", e.id);
        assert_eq!(item.version.as_deref(), between(xml, "Version").first().copied(), "{}", e.id);
        assert_properties(&e.id, xml, &item.properties);
        let etag = between(xml, "Etag")[0].trim_matches('"');
        assert_eq!(item.properties.etag(), Some(etag), "{}", e.id);
    }
    assert_eq!(page.next_marker.as_deref(), between(&e.body, "NextMarker").first().copied(), "{}", e.id);
    assert_eq!(page.to_xml(), e.body, "{}", e.id);
}

fn assert_error(e: &Exchange) {
    let error = ErrorBody::parse(e.body.as_bytes()).unwrap_or_else(|| panic!("{}: no error in {}", e.id, e.body));
    assert_eq!(error.code, between(&e.body, "Code")[0], "{}", e.id);
    assert_eq!(error.message, unescaped(between(&e.body, "Message")[0]), "{}", e.id);
    if let Some(code) = e.headers.get("x-ms-error-code") {
        assert_eq!(&error.code, code, "{}", e.id);
    }
    let inside = between(&e.body, "Error")[0];
    let elements = inside.matches('<').count() - inside.matches("</").count();
    assert_eq!(error.details.len(), elements - 2, "{}", e.id);
    for (name, value) in &error.details {
        match between(inside, name).first() {
            Some(text) => assert_eq!(&unescaped(text), value, "{}: {name}", e.id),
            None => assert!(value.is_empty(), "{}: {name}", e.id),
        }
    }
    let spelling = if e.body.contains("?>\n<Error>") { Spelling::Broken } else { Spelling::Joined };
    assert_eq!(error.to_xml(spelling), e.body, "{}", e.id);
}

fn assert_batch(e: &Exchange) {
    let parts = multipart::parse(&e.headers["content-type"], &Bytes::from(e.body.clone())).unwrap();
    let lines = |start: &str| -> Vec<String> {
        e.body.split("\r\n").filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
    };
    let statuses: Vec<String> = parts.iter().map(|part| part.status.as_str().to_owned()).collect();
    let expected: Vec<String> = lines("HTTP/1.1 ").iter().map(|line| line[..3].to_owned()).collect();
    assert_eq!(statuses, expected, "{}", e.id);
    let ids: Vec<String> = parts.iter().filter_map(|part| Some(part.content_id?.to_string())).collect();
    assert_eq!(ids, lines("Content-ID: "), "{}", e.id);
    let codes: Vec<&str> = parts.iter().filter_map(|part| part.headers.get("x-ms-error-code")).collect();
    assert_eq!(codes, lines("x-ms-error-code: "), "{}", e.id);
    for part in parts.iter().filter(|part| !part.body.is_empty()) {
        assert!(ErrorBody::parse(&part.body).is_some(), "{}: {:?}", e.id, part.body);
    }
    assert!(!parts.is_empty(), "{}", e.id);
}

#[test]
fn every_recorded_answer_is_understood() {
    let Some(exchanges) = exchanges() else { return };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for e in &exchanges {
        // Whatever a document is, no parser panics on it.
        let bytes = e.body.as_bytes();
        let _ = (ErrorBody::parse(bytes), ListPage::parse(bytes), ContainerPage::parse(bytes), BlockList::parse(bytes));
        let _ = (Tags::parse(bytes), SignedIdentifiers::parse(bytes));
        if e.body.is_empty() || e.method == "HEAD" {
            continue;
        }
        let kind = match e.status {
            300.. => {
                assert_error(e);
                "errors"
            }
            200 if e.method == "GET" && is(&e.query, &["comp=list", "restype=container"]) => {
                *counts.entry("blobs").or_default() += assert_page(e);
                "lists of blobs"
            }
            200 if e.method == "GET" && is(&e.query, &["comp=list"]) => {
                assert_containers(e);
                "lists of containers"
            }
            200 if e.method == "GET" && is(&e.query, &["comp=blocklist"]) => {
                let list = BlockList::parse(bytes).unwrap();
                let sizes: Vec<u64> = list.committed.iter().chain(&list.uncommitted).map(|b| b.size).collect();
                let expected: Vec<u64> = between(&e.body, "Size").iter().map(|s| s.parse().unwrap()).collect();
                assert_eq!(sizes, expected, "{}", e.id);
                let uncommitted = between(&e.body, "UncommittedBlocks").first().map_or(0, |part| between(part, "Block").len());
                assert_eq!(list.uncommitted.len(), uncommitted, "{}", e.id);
                "block lists"
            }
            200 if e.method == "GET" && is(&e.query, &["comp=tags"]) => {
                let tags = Tags::parse(bytes).unwrap();
                let keys: Vec<&str> = tags.0.iter().map(|(k, _)| k.as_str()).collect();
                assert_eq!(keys, between(&e.body, "Key"), "{}", e.id);
                assert_eq!(tags.to_xml().replace(['\u{feff}', '\n'], ""), e.body.replace(['\u{feff}', '\n'], ""), "{}", e.id);
                "tags"
            }
            200 if e.method == "GET" && is(&e.query, &["comp=acl"]) => {
                let policies = SignedIdentifiers::parse(bytes).unwrap();
                let ids: Vec<&str> = policies.0.iter().map(|p| p.id.as_str()).collect();
                assert_eq!(ids, between(&e.body, "Id"), "{}", e.id);
                assert_eq!(policies.to_xml(), e.body, "{}", e.id);
                "access policies"
            }
            202 if e.method == "POST" && is(&e.query, &["comp=batch"]) => {
                assert_batch(e);
                "batches"
            }
            _ => continue,
        };
        *counts.entry(kind).or_default() += 1;
    }
    crate::tell(&format!("recorded answers: {counts:?}"));
    for kind in ["errors", "lists of blobs", "blobs", "lists of containers", "block lists", "tags", "access policies", "batches"]
    {
        assert!(counts.contains_key(kind), "no {kind} among the recordings: {counts:?}");
    }
}
