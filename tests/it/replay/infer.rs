//! What a request must have said, where the recorder kept only method and path.
//!
//! Everything is read off the answers: those to the request itself, and those that later show what it did. Where they do not
//! tell, the request is not made up: the recording is then one that differs, with this as its reason.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

use super::recording::{Body, Depth, Exchange, Headers, Recording, decoded};
use super::xml::{self, Element};

/// A request put together.
pub(crate) struct Request {
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    /// Whether the body is, byte for byte, what was sent.
    pub(crate) sure: bool,
}

/// The request of exchange `index`.
pub(crate) fn request(recording: &Recording, index: usize) -> Result<Request, String> {
    let exchange = &recording.exchanges[index];
    let later = &recording.exchanges[index + 1..];
    let earlier = &recording.exchanges[..index];
    let version = exchange.answer_headers.get("x-ms-version").unwrap_or(&recording.version).clone();
    let mut request = empty(&version);
    let lease = active_lease(earlier, &exchange.path);
    match (exchange.method.as_str(), exchange.depth(), exchange.comp().as_str()) {
        ("GET" | "HEAD", Depth::Blob, "") => range(exchange, &mut request),
        ("GET" | "HEAD", ..) => {}
        ("PUT", _, "lease") => lease_action(exchange, lease.clone(), later, &mut request)?,
        ("PUT", Depth::Container, "") => container(exchange, later, &mut request),
        ("PUT", Depth::Container, "acl") => acl(later, exchange, &mut request),
        ("PUT", _, "metadata") => metadata(exchange, later, &mut request),
        ("PUT", Depth::Account, "properties") => {
            let shown = later.iter().find(|e| e.comp() == "properties" && e.method == "GET");
            let shown = shown.ok_or("the properties that were set are not shown later")?;
            request.body = shown.answer_text().trim_start_matches('\u{feff}').as_bytes().to_vec();
        }
        ("PUT", Depth::Blob, "") => blob(exchange, earlier, later, &mut request)?,
        ("PUT", Depth::Blob, "block") => block(exchange, later, &mut request),
        ("PUT", Depth::Blob, "blocklist") => block_list(exchange, earlier, later, &mut request),
        ("PUT", Depth::Blob, "properties") => properties(exchange, later, &mut request),
        ("PUT", Depth::Blob, "tier") => tier(exchange, later, &mut request),
        ("PUT", Depth::Blob, "snapshot") => snapshot(exchange, earlier, later, &mut request),
        ("PUT", Depth::Blob, "appendblock") => append(exchange, later, &mut request),
        ("PUT", Depth::Blob, "page") => page(exchange, &mut request),
        ("PUT", Depth::Blob, "undelete") => {}
        ("DELETE", Depth::Blob, "") => {
            let snapshots = earlier.iter().any(|e| e.path == exchange.path && e.comp() == "snapshot");
            if snapshots && exchange.query.is_empty() {
                // `only` leaves the blob: it is there when next looked at.
                let there = later.iter().find(|e| e.path == exchange.path && e.query.is_empty()).is_some_and(|e| e.status < 300);
                request.headers.insert("x-ms-delete-snapshots".to_owned(), if there { "only" } else { "include" }.to_owned());
            }
        }
        ("DELETE", ..) => {}
        (method, _, comp) => return Err(format!("the request of {method} {comp} was not recorded")),
    }
    // Whoever changed what is leased, and was let, named the lease.
    let changes = !matches!(exchange.method.as_str(), "GET" | "HEAD") && exchange.comp() != "lease";
    if let Some(id) = lease.filter(|_| changes && exchange.status < 300 && exchange.path.len() > 1) {
        request.headers.insert("x-ms-lease-id".to_owned(), id);
    }
    Ok(request)
}

/// What was there before the recording began: what it says it assumes, and what it uses without having made it.
pub(crate) fn assumed(recording: &Recording) -> Vec<(String, Request)> {
    let mut seen = BTreeSet::new();
    let mut out: Vec<(String, Request)> = retention(recording).map(|request| ("/".to_owned(), request)).into_iter().collect();
    for path in &recording.assumes {
        seen.insert(path.clone());
        if !path.trim_start_matches('/').contains('/') {
            out.push((path.clone(), empty(&recording.version)));
        }
    }
    for exchange in &recording.exchanges {
        let gone = ["ContainerNotFound", "ContainerBeingDeleted", "InvalidResourceName"];
        let absent = exchange.code().is_some_and(|code| gone.contains(&code));
        for path in addressed(exchange) {
            let (container, blob) =
                path.trim_start_matches('/').split_once('/').map_or((&path[1..], None), |(c, b)| (c, Some(b)));
            let at_container = blob.is_none() && exchange.path == path;
            let made_here = at_container && exchange.method == "PUT" && exchange.comp().is_empty() && exchange.status == 201;
            let no_container = absent || made_here || (at_container && exchange.status == 404);
            if !container.is_empty() && seen.insert(format!("/{container}")) && !no_container {
                out.push((format!("/{container}"), empty(&recording.version)));
            }
            let written = exchange.path == path && exchange.method == "PUT" && ["", "block"].contains(&exchange.comp().as_str());
            let exists = exchange.code() == Some("BlobAlreadyExists") || (exchange.status < 300 && !written);
            let of_account = exchange.parameter("restype").is_some();
            if blob.is_some() && !of_account && (recording.assumes.contains(&path) || seen.insert(path.clone())) && exists {
                out.extend(assumed_blob(recording, &path).map(|request| (path.clone(), request)));
                seen.insert(path);
            }
        }
    }
    out.dedup_by(|a, b| a.0 == b.0);
    out
}

/// The retention of deleted blobs that the account had, where a deletion was not for good and nothing before it had asked for that.
fn retention(recording: &Recording) -> Option<Request> {
    let kept = |e: &Exchange| e.answer_headers.get("x-ms-delete-type-permanent").is_some_and(|v| v == "false");
    let asked = |e: &Exchange| e.method == "PUT" && e.depth() == Depth::Account && e.comp() == "properties";
    let first = recording.exchanges.iter().find(|e| kept(e) || asked(e)).filter(|e| kept(e))?;
    // Of what was just deleted one day of all has begun.
    let left = |e: &Exchange| e.answer_text().split_once("<RemainingRetentionDays>")?.1.split('<').next()?.parse::<u32>().ok();
    let days = recording.exchanges.iter().find_map(left).unwrap_or(6) + 1;
    let mut request = empty(first.answer_headers.get("x-ms-version").unwrap_or(&recording.version));
    request.body = format!(
        "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></DeleteRetentionPolicy>\
         </StorageServiceProperties>"
    )
    .into_bytes();
    Some(request)
}

/// A request that says nothing but its version.
fn empty(version: &str) -> Request {
    Request { headers: Headers::from([("x-ms-version".to_owned(), version.to_owned())]), body: Vec::new(), sure: true }
}

/// The paths that an exchange is about: its own, that of a copy's source, those of a batch.
fn addressed(exchange: &Exchange) -> Vec<String> {
    let mut paths = vec![exchange.path.clone()];
    let source = exchange.headers.as_ref().and_then(|h| h.get("x-ms-copy-source"));
    if let Some((_, path)) = source.and_then(|url| url.split_once("://ACCOUNT")).and_then(|(_, rest)| rest.split_once('/')) {
        paths.push(format!("/{}", path.split('?').next().unwrap_or_default()));
    }
    if exchange.comp() == "batch" {
        let text = exchange.body.as_ref().and_then(Body::text).unwrap_or_default();
        let targets = text.lines().filter_map(|line| line.strip_suffix(" HTTP/1.1")?.split_once(' '));
        // Whether a blob in a batch is there, its own exchanges tell; its container must be.
        paths.extend(targets.filter_map(|(_, t)| Some(format!("/{}", t.trim_start_matches('/').split_once('/')?.0))));
    }
    paths
}

/// A blob that was there, as the reads of it show it.
fn assumed_blob(recording: &Recording, path: &str) -> Option<Request> {
    let all = &recording.exchanges;
    let mut made = all.first()?.clone();
    (made.method, made.path, made.query, made.status) = ("PUT".to_owned(), path.to_owned(), String::new(), 201);
    let hash = all.iter().filter(|e| e.path == path).find_map(|e| {
        e.answer_headers.get("x-ms-blob-content-md5").or_else(|| e.answer_headers.get("content-md5").filter(|_| e.status == 200))
    });
    // No hash that bytes could have stands for a block blob whose bytes are not known.
    made.answer_headers = Headers::from([("content-md5".to_owned(), hash.cloned().unwrap_or_default())]);
    let mut request = empty(&recording.version);
    blob(&made, &[], all, &mut request).ok()?;
    if request.body.is_empty() && !request.sure {
        // Known only as the source of a copy, which says how long it was.
        let progress = all.iter().find_map(|e| e.answer_headers.get("x-ms-copy-progress")?.split_once('/')?.1.parse().ok());
        let listed = || all.iter().find_map(|e| e.answer_text().split_once("<Size>")?.1.split('<').next()?.parse().ok());
        let range =
            || all.iter().find_map(|e| e.headers.as_ref()?.get("x-ms-source-range")?.split_once('-')?.1.parse::<usize>().ok());
        request.body = vec![b'x'; progress.or_else(listed).or_else(|| range().map(|last| last + 1)).unwrap_or(1024)];
    }
    Some(request)
}

/// The lease last taken on a path and not given back.
fn active_lease(earlier: &[Exchange], path: &str) -> Option<String> {
    let last = earlier.iter().rev().find(|e| e.path == path && e.comp() == "lease" && e.status < 300)?;
    last.answer_headers.get("x-ms-lease-id").cloned()
}

fn lease_action(exchange: &Exchange, active: Option<String>, later: &[Exchange], request: &mut Request) -> Result<(), String> {
    let mut set = |name: &str, value: &str| request.headers.insert(format!("x-ms-{name}"), value.to_owned());
    let named = exchange.answer_headers.get("x-ms-lease-id");
    match (exchange.status, named, active) {
        (201, Some(id), _) => {
            set("lease-action", "acquire");
            set("proposed-lease-id", id);
            let shown = later.iter().filter(|e| e.path == exchange.path && e.method == "HEAD");
            let fixed = shown.filter_map(|e| e.answer_headers.get("x-ms-lease-duration")).next().is_some_and(|d| d == "fixed");
            // A break that leaves part of a minute to wait says that the lease was not without end.
            set("lease-duration", if fixed { "15" } else { "-1" });
        }
        (200, Some(id), Some(active)) => {
            set("lease-action", if *id == active { "renew" } else { "change" });
            set("lease-id", &active);
            if *id != active {
                set("proposed-lease-id", id);
            }
        }
        (200, None, Some(active)) => {
            set("lease-action", "release");
            set("lease-id", &active);
        }
        (202, None, _) => {
            set("lease-action", "break");
            if let Some(left) = exchange.answer_headers.get("x-ms-lease-time") {
                set("lease-break-period", left);
            }
        }
        (409, None, _) if exchange.code() == Some("LeaseAlreadyPresent") => {
            set("lease-action", "acquire");
            set("lease-duration", "-1");
        }
        (409, None, _) if exchange.code() == Some("LeaseNotPresentWithLeaseOperation") => {
            set("lease-action", "break");
        }
        _ => return Err("which lease action was asked for was not recorded".to_owned()),
    }
    Ok(())
}

fn container(exchange: &Exchange, later: &[Exchange], request: &mut Request) {
    if exchange.status != 201 {
        return;
    }
    let reads = |e: &&Exchange| e.path == exchange.path && e.status == 200 && e.method != "PUT";
    let until = |comp: &'static str| move |e: &&Exchange| !(e.path == exchange.path && e.method == "PUT" && e.comp() == comp);
    if let Some(shown) =
        later.iter().take_while(until("metadata")).filter(reads).find(|e| ["", "metadata"].contains(&e.comp().as_str()))
    {
        copy_metadata(shown, request);
    }
    if let Some(shown) = later.iter().take_while(until("acl")).filter(reads).find(|e| ["", "acl"].contains(&e.comp().as_str())) {
        copy(shown, "x-ms-blob-public-access", "x-ms-blob-public-access", request);
    }
    let name = exchange.path.trim_start_matches('/');
    for listing in later.iter().filter(|e| e.depth() == Depth::Account && e.comp() == "list") {
        let Ok(root) = xml::parse(listing.answer_text()) else { continue };
        let listed = root.child("Containers").and_then(|all| all.children.iter().find(|c| c.text_of("Name") == name));
        let Some(listed) = listed else { continue };
        for pair in listed.child("Metadata").map(|m| m.children.as_slice()).unwrap_or_default() {
            request.headers.insert(format!("x-ms-meta-{}", pair.name), pair.text.clone());
        }
        if let Some(access) = listed.child("Properties").and_then(|p| p.child("PublicAccess")) {
            request.headers.insert("x-ms-blob-public-access".to_owned(), access.text.clone());
        }
    }
}

fn acl(later: &[Exchange], exchange: &Exchange, request: &mut Request) {
    if let Some(shown) =
        later.iter().find(|e| e.path == exchange.path && e.comp() == "acl" && e.method == "GET" && e.status == 200)
    {
        request.body = shown.answer_text().trim_start_matches('\u{feff}').as_bytes().to_vec();
        copy(shown, "x-ms-blob-public-access", "x-ms-blob-public-access", request);
    }
}

fn metadata(exchange: &Exchange, later: &[Exchange], request: &mut Request) {
    let shown = later.iter().find(|e| {
        e.path == exchange.path && e.status == 200 && e.method != "PUT" && ["", "metadata"].contains(&e.comp().as_str())
    });
    if let Some(shown) = shown {
        copy_metadata(shown, request);
    }
}

fn range(exchange: &Exchange, request: &mut Request) {
    let shown = exchange.answer_headers.get("content-range").and_then(|r| r.strip_prefix("bytes "));
    let shown = shown.and_then(|r| r.split_once('/'));
    match (exchange.status, shown) {
        (206, Some((range, _))) => request.headers.insert("x-ms-range".to_owned(), format!("bytes={range}")),
        (416, Some((_, total))) => request.headers.insert("x-ms-range".to_owned(), format!("bytes={total}-")),
        (304, _) => request.headers.insert("if-none-match".to_owned(), "*".to_owned()),
        _ => None,
    };
}

/// Put Blob, or a copy.
fn blob(exchange: &Exchange, earlier: &[Exchange], later: &[Exchange], request: &mut Request) -> Result<(), String> {
    let mut set = |name: &str, value: &str| request.headers.insert(name.to_owned(), value.to_owned());
    match (exchange.status, exchange.code()) {
        (202, _) => {
            let shown = later.iter().filter(|e| e.path == exchange.path).find_map(|e| e.answer_headers.get("x-ms-copy-source"));
            let listed = || item(later, exchange, "CopySource");
            let source = shown.cloned().or_else(listed).ok_or("what was copied was not recorded")?;
            set("x-ms-copy-source", &source);
            if exchange.answer_headers.contains_key("x-ms-content-crc64") || exchange.answer_headers.contains_key("content-md5") {
                set("x-ms-requires-sync", "true");
            }
            return Ok(());
        }
        (409, Some("BlobAlreadyExists")) => set("if-none-match", "*"),
        (412, Some("ConditionNotMet")) => set("if-match", "\"0x8D0000000000000\""),
        (400, Some("InvalidQueryParameterValue")) | (201, _) => None,
        (status, code) => return Err(format!("what made the service say {status} {code:?} was not recorded")),
    };
    let on_path = || later.iter().filter(|e| e.path == exchange.path && e.parameter("snapshot").is_none());
    let shown = on_path().take_while(|e| !(e.method == "PUT" && e.comp().is_empty())).find(|e| reads(e) && e.status < 300);
    let kind =
        on_path().find_map(|e| e.answer_headers.get("x-ms-blob-type")).cloned().or_else(|| item(later, exchange, "BlobType"));
    let kind = kind.unwrap_or_else(|| {
        let next = on_path().map(Exchange::comp).find(|comp| ["page", "appendblock"].contains(&comp.as_str()));
        match next.as_deref() {
            Some("page") => "PageBlob",
            Some("appendblock") => "AppendBlob",
            _ if on_path().any(|e| e.answer_headers.contains_key("x-ms-blob-sequence-number")) => "PageBlob",
            // Every block blob is answered with the hash of its bytes, empty ones too.
            _ if exchange.status == 201 && !exchange.answer_headers.contains_key("content-md5") => "AppendBlob",
            _ => "BlockBlob",
        }
        .to_owned()
    });
    request.headers.insert("x-ms-blob-type".to_owned(), kind.clone());
    match (shown, on_path().find(|e| e.comp() == "metadata" && e.status == 200 && e.method != "PUT")) {
        (Some(shown), _) => copy_properties(shown, request),
        (None, Some(shown)) => copy_metadata(shown, request),
        (None, None) => {}
    }
    let length = shown.and_then(total_length).or_else(|| item(later, exchange, "Content-Length").and_then(|v| v.parse().ok()));
    if kind == "PageBlob" {
        request.headers.insert("x-ms-blob-content-length".to_owned(), length.unwrap_or(1024).to_string());
    } else if kind == "BlockBlob" {
        let untiered = on_path().take_while(|e| e.comp() != "tier");
        let before_tier = untiered.into_iter().find(|e| e.answer_headers.contains_key("x-ms-access-tier"));
        if let Some(shown) = before_tier.filter(|s| !s.answer_headers.contains_key("x-ms-access-tier-inferred")) {
            copy(shown, "x-ms-access-tier", "x-ms-access-tier", request);
        }
        contents(exchange, earlier, later, length, request);
    }
    Ok(())
}

/// Finds bytes with the hash that was answered; else any of the right length.
fn contents(exchange: &Exchange, earlier: &[Exchange], later: &[Exchange], length: Option<usize>, request: &mut Request) {
    let hash = exchange.answer_headers.get("content-md5");
    let fits = |bytes: &Vec<u8>| hash.is_some_and(|hash| *hash == STANDARD.encode(Md5::digest(bytes)));
    let read = earlier.iter().chain(later).filter(|e| e.method == "GET" && e.depth() == Depth::Blob);
    let mut tried: Vec<Vec<u8>> = read.clone().filter_map(|e| e.answer.as_ref().and_then(Body::known)).collect();
    if let Some(length) = length {
        tried.extend(
            read.filter_map(|e| e.answer.as_ref().and_then(Body::known)).filter_map(|b| b.first().map(|f| vec![*f; length])),
        );
        tried.extend([b'x', b'a', 0].map(|fill| vec![fill; length]));
    }
    tried.push(b"Hello World!".to_vec());
    tried.push(Vec::new());
    match tried.into_iter().find(fits) {
        Some(bytes) => request.body = bytes,
        None => {
            request.sure = false;
            request.body = vec![b'x'; length.unwrap_or(0)];
        }
    }
}

fn block(exchange: &Exchange, later: &[Exchange], request: &mut Request) {
    // The one block put so that only its count matters is one byte long.
    contents(exchange, &[], later, Some(1), request);
}

fn block_list(exchange: &Exchange, earlier: &[Exchange], later: &[Exchange], request: &mut Request) {
    let staged = earlier.iter().filter(|e| e.path == exchange.path && e.comp() == "block" && e.status == 201);
    let ids: Vec<String> = staged.filter_map(|e| e.parameter("blockid")).collect();
    let total = later.iter().filter(|e| e.path == exchange.path).find_map(total_length).unwrap_or(ids.len());
    let times = if ids.len() == 1 { total } else { 1 };
    let list = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect::<String>().repeat(times);
    request.body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{list}</BlockList>").into_bytes();
    // The list had its own kind of elements and line ends, which its hash covers.
    request.sure = false;
}

fn properties(exchange: &Exchange, later: &[Exchange], request: &mut Request) {
    let etag = exchange.answer_headers.get("etag");
    let shown = later.iter().find(|e| e.path == exchange.path && reads(e) && e.answer_headers.get("etag") == etag);
    if let Some(number) = exchange.answer_headers.get("x-ms-blob-sequence-number") {
        if let Some(length) = shown.and_then(total_length) {
            request.headers.insert("x-ms-blob-content-length".to_owned(), length.to_string());
        }
        request.headers.insert("x-ms-sequence-number-action".to_owned(), "update".to_owned());
        request.headers.insert("x-ms-blob-sequence-number".to_owned(), number.clone());
        return;
    }
    if let Some(shown) = shown {
        copy_properties(shown, request);
        request.headers.retain(|name, _| !name.starts_with("x-ms-meta-"));
    }
}

fn tier(exchange: &Exchange, later: &[Exchange], request: &mut Request) {
    let shown = later.iter().filter(|e| e.path == exchange.path).find_map(|e| e.answer_headers.get("x-ms-access-tier")).cloned();
    let tier = match exchange.status {
        400 => {
            exchange.answer_text().split_once("<HeaderValue>").map_or("", |(_, v)| v.split('<').next().unwrap_or("")).to_owned()
        }
        202 => {
            let status = later.iter().find_map(|e| e.answer_headers.get("x-ms-archive-status"));
            let to = status.and_then(|s| s.strip_prefix("rehydrate-pending-to-"));
            if to == Some("cool") { "Cool" } else { "Hot" }.to_owned()
        }
        _ => shown.or_else(|| item(later, exchange, "AccessTier")).unwrap_or_else(|| "Cool".to_owned()),
    };
    request.headers.insert("x-ms-access-tier".to_owned(), tier);
}

fn snapshot(exchange: &Exchange, earlier: &[Exchange], later: &[Exchange], request: &mut Request) {
    let etag = |e: &Exchange| e.answer_headers.get("etag").cloned();
    let before = earlier.iter().rev().filter(|e| e.path == exchange.path).find_map(etag);
    if before == etag(exchange) {
        return;
    }
    // Only a snapshot with metadata of its own gets an ETag of its own.
    let stamp = exchange.answer_headers.get("x-ms-snapshot");
    let shown = later.iter().find(|e| e.path == exchange.path && e.parameter("snapshot").as_ref() == stamp && e.status == 200);
    match shown {
        Some(shown) => copy_metadata(shown, request),
        None => drop(request.headers.insert("x-ms-meta-own".to_owned(), "yes".to_owned())),
    }
}

fn append(exchange: &Exchange, later: &[Exchange], request: &mut Request) {
    let number = |e: &Exchange, name: &str| e.answer_headers.get(name).and_then(|v| v.parse::<usize>().ok());
    let from = number(exchange, "x-ms-blob-append-offset").unwrap_or(0);
    let on_path = later.iter().filter(|e| e.path == exchange.path);
    let to = on_path.into_iter().find_map(|e| number(e, "x-ms-blob-append-offset").or_else(|| total_length(e)));
    request.body = vec![b'x'; to.unwrap_or(from + 10) - from];
    request.sure = false;
}

fn page(exchange: &Exchange, request: &mut Request) {
    let mut set = |name: &str, value: &str| request.headers.insert(name.to_owned(), value.to_owned());
    set("x-ms-range", "bytes=0-511");
    if exchange.code() == Some("SequenceNumberConditionNotMet") {
        set("x-ms-if-sequence-number-eq", "1000");
    }
    if exchange.answer_headers.contains_key("content-md5") || exchange.status >= 400 {
        set("x-ms-page-write", "update");
        request.body = vec![b'x'; 512];
        request.sure = false;
    } else {
        set("x-ms-page-write", "clear");
    }
}

/// Whether it asks for the blob or its properties.
fn reads(exchange: &Exchange) -> bool {
    ["GET", "HEAD"].contains(&exchange.method.as_str()) && exchange.comp().is_empty()
}

fn copy(shown: &Exchange, from: &str, to: &str, request: &mut Request) {
    if let Some(value) = shown.answer_headers.get(from) {
        request.headers.insert(to.to_owned(), value.clone());
    }
}

fn copy_metadata(shown: &Exchange, request: &mut Request) {
    for (name, value) in shown.answer_headers.iter().filter(|(n, _)| n.starts_with("x-ms-meta-")) {
        request.headers.insert(name.clone(), value.clone());
    }
}

fn copy_properties(shown: &Exchange, request: &mut Request) {
    copy_metadata(shown, request);
    for name in ["content-type", "content-encoding", "content-language", "content-disposition"] {
        copy(shown, name, &format!("x-ms-blob-{name}"), request);
    }
    copy(shown, "cache-control", "x-ms-blob-cache-control", request);
}

/// The length of the whole blob, as a read of it or of a part of it tells.
fn total_length(shown: &Exchange) -> Option<usize> {
    if shown.status >= 300 || !reads(shown) {
        return None;
    }
    let total = shown.answer_headers.get("content-range").and_then(|r| r.split_once('/')).map(|(_, total)| total);
    total.or_else(|| shown.answer_headers.get("content-length").map(String::as_str))?.parse().ok()
}

/// A property of the blob of `exchange` as the first listing after it shows it.
fn item(later: &[Exchange], exchange: &Exchange, property: &str) -> Option<String> {
    let (container, blob) = exchange.path.trim_start_matches('/').split_once('/')?;
    let name = decoded(blob);
    let of_container = later.iter().filter(|e| e.comp() == "list" && e.path.trim_start_matches('/') == container);
    of_container.into_iter().find_map(|listing| {
        let mut found = None;
        xml::parse(listing.answer_text()).ok()?.walk(&mut |element: &Element| {
            if element.name == "Blob" && element.text_of("Name") == name && found.is_none() {
                found = element.child("Properties").and_then(|p| p.child(property)).map(|p| p.text.clone());
            }
        });
        found
    })
}
