//! The emulator's storages: what survives, what is refused, what is thrown away; and its HTTP.

use crate::support::raw::{As, Service, read_reply};
use blobjet::emulator::{Emulator, Storage};
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn on(folder: &Path) -> Service {
    Service::with(Emulator::builder().storage(Storage::Disk(folder.to_owned()))).await
}

/// Ends an emulator as abruptly as one process can, and waits until its folder is free.
async fn cut(service: Service) {
    service.emulator.stop().await;
}

// semantics 28
#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let service = on(folder.path()).await;
    service.put("/box?restype=container", &[("x-ms-meta-k", "v"), ("x-ms-blob-public-access", "blob")], b"").await;
    let body: Vec<u8> = (0..3_000_000u32).flat_map(|i| i.to_le_bytes()).take(3_000_000).collect();
    let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-Name", "ü"), ("x-ms-tags", "t=1")];
    let etag = service.put("/box/whole", &headers, &body).await.header("etag").unwrap().to_owned();
    for id in ["AAAA", "AAAB"] {
        service.put(&format!("/box/blocks?comp=block&blockid={id}"), &[], id.as_bytes()).await;
    }
    let list = "<BlockList><Latest>AAAB</Latest><Latest>AAAA</Latest></BlockList>";
    service.put("/box/blocks?comp=blocklist", &[], list.as_bytes()).await;
    service.put("/box/staged?comp=block&blockid=AAAA", &[], b"later").await;
    let snapshot = service.put("/box/blocks?comp=snapshot", &[], b"").await.header("x-ms-snapshot").unwrap().to_owned();
    service.upload("/box/gone", b"x").await;
    service.call("DELETE", "/box/gone", &[], b"").await;
    cut(service).await;

    let service = on(folder.path()).await;
    let got = service.call_as(As::Nobody, "GET", "/box/whole", &[], b"").await;
    assert_eq!(got.body, body);
    assert_eq!(
        (got.header("etag"), got.header("x-ms-meta-name"), got.header("x-ms-tag-count")),
        (Some(etag.as_str()), Some("ü"), Some("1"))
    );
    assert_eq!(service.get("/box/blocks").await.text(), "AAABAAAA");
    assert_eq!(service.get(&format!("/box/blocks?snapshot={snapshot}")).await.text(), "AAABAAAA");
    assert_eq!(service.get("/box/gone").await.status, 404);
    let list = "<BlockList><Uncommitted>AAAA</Uncommitted></BlockList>";
    assert_eq!(service.put("/box/staged?comp=blocklist", &[], list.as_bytes()).await.status, 201);
    assert_eq!(service.get("/box/staged").await.text(), "later");
    // What is written now must not look older than what was there.
    let new = service.upload("/box/whole", b"new").await.header("etag").unwrap().to_owned();
    assert!(new > etag, "{new} after {etag}");
}

// semantics 28
#[tokio::test]
async fn accounts_not_named_this_time_keep_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let service = on(folder.path()).await;
    service.put("/box?restype=container", &[], b"").await;
    service.upload("/box/whole", b"kept").await;
    service.put("/box/staged?comp=block&blockid=AAAA", &[], b"kept too").await;
    cut(service).await;
    let other = Emulator::builder().storage(Storage::Disk(folder.path().to_owned()));
    cut(Service::with(other.account("other", blobjet::secret::Secret::new("b3RoZXI="))).await).await;

    let service = on(folder.path()).await;
    assert_eq!(service.get("/box/whole").await.text(), "kept");
    let list = "<BlockList><Latest>AAAA</Latest></BlockList>";
    assert_eq!(service.put("/box/staged?comp=blocklist", &[], list.as_bytes()).await.status, 201);
    assert_eq!(service.get("/box/staged").await.text(), "kept too");
}

#[tokio::test]
async fn a_folder_in_use_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let service = on(folder.path()).await;
    let second = Emulator::builder().storage(Storage::Disk(folder.path().to_owned())).start().await.unwrap_err();
    assert_eq!(second.kind(), blobjet::Kind::Local);
    assert!(second.to_string().contains(folder.path().to_str().unwrap()), "{second}");
    assert!(second.to_string().contains("in use"), "{second}");
    cut(service).await;
    on(folder.path()).await;
}

#[tokio::test]
async fn a_store_of_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    cut(on(folder.path()).await).await;
    let file = rusqlite::Connection::open(folder.path().join("metadata.sqlite")).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let refused = Emulator::builder().storage(Storage::Disk(folder.path().to_owned())).start().await.unwrap_err();
    assert!(refused.to_string().contains("format 99"), "{refused}");
}

#[tokio::test]
async fn space_of_deleted_content_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let service = on(folder.path()).await;
    service.put("/box?restype=container", &[], b"").await;
    let segments = || std::fs::read_dir(folder.path().join("segments")).unwrap().count();
    let half = vec![1; 40 << 20];
    for name in ["a", "b", "c"] {
        assert_eq!(service.upload(&format!("/box/{name}"), &half).await.status, 201);
    }
    assert_eq!(segments(), 3, "two do not fit into one");
    service.call("DELETE", "/box/a", &[], b"").await;
    service.upload("/box/b", b"").await;
    service.upload("/box/d", &half).await;
    assert_eq!(segments(), 2, "c's, and the one being filled");
    service.call("DELETE", "/box?restype=container", &[], b"").await;
    cut(service).await;
    on(folder.path()).await;
    assert_eq!(segments(), 0);
}

#[tokio::test]
async fn discarding_keeps_all_but_the_content() {
    let service = Service::with(Emulator::builder().storage(Storage::Discard)).await;
    service.put("/box?restype=container", &[], b"").await;
    let body = vec![7; 5_000_000];
    let declared = [("x-ms-content-crc64", "peH8Xsgc5QI=")];
    let put = service.put("/box/b?comp=block&blockid=AAAA", &declared, &body).await;
    // Believed: the bytes were not looked at.
    assert_eq!((put.status, put.header("x-ms-content-crc64")), (201, Some("peH8Xsgc5QI=")));
    // Not declared: none is computed.
    let put = service.put("/box/b?comp=block&blockid=AAAB", &[], b"Hello World!").await;
    assert_eq!((put.status, put.header("x-ms-content-crc64")), (201, None));
    let list = "<BlockList><Latest>AAAA</Latest><Latest>AAAB</Latest></BlockList>";
    assert_eq!(service.put("/box/b?comp=blocklist", &[], list.as_bytes()).await.status, 201);
    let head = service.call("HEAD", "/box/b", &[], b"").await;
    assert_eq!(head.header("content-length"), Some("5000012"));
    assert_eq!(service.get("/box/b?comp=blocklist").await.all("Size"), ["5000000", "12"]);
    assert_eq!(service.get("/box?restype=container&comp=list").await.all("Content-Length"), ["5000012"]);
    assert_eq!(service.get("/box/b").await.outcome(), (501, "NotImplemented"));
    let wrong =
        service.put("/box/c", &[("x-ms-blob-type", "BlockBlob"), ("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")], b"x").await;
    assert_eq!(wrong.outcome(), (400, "Md5Mismatch"));
    service.upload("/box/empty", b"").await;
    assert_eq!(service.get("/box/empty").await.status, 200);
}

async fn connect(service: &Service) -> TcpStream {
    TcpStream::connect(("127.0.0.1", service.emulator.port())).await.unwrap()
}

#[tokio::test]
async fn one_connection_serves_many_even_sent_at_once() {
    let service = Service::start().await;
    let put = service.request(As::Key, "PUT", "/box?restype=container", &[], 0);
    let blob = service.request(As::Key, "PUT", "/box/b", &[("x-ms-blob-type", "BlockBlob")], 3) + "abc";
    let refused = service.request(As::WrongKey, "PUT", "/box/c", &[("x-ms-blob-type", "BlockBlob")], 3) + "xyz";
    let get = service.request(As::Key, "GET", "/box/b", &[], 0);
    let mut stream = connect(&service).await;
    stream.write_all(format!("{put}{blob}{refused}{get}").as_bytes()).await.unwrap();
    let mut all = Vec::new();
    while !all.ends_with(b"\r\n\r\nabc") {
        assert_ne!(stream.read_buf(&mut all).await.unwrap(), 0);
    }
    let text = String::from_utf8(all).unwrap();
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    // The refused body was skipped, not taken for a request.
    assert_eq!(statuses, ["201", "201", "403", "200"]);
}

#[tokio::test]
async fn continue_is_said_only_when_the_body_is_wanted() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    let headers = [("x-ms-blob-type", "BlockBlob"), ("Expect", "100-continue")];
    let mut stream = connect(&service).await;
    stream.write_all(service.request(As::Key, "PUT", "/box/b", &headers, 3).as_bytes()).await.unwrap();
    let mut first = [0; 25];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").await.unwrap();
    assert_eq!(read_reply(&mut stream, false).await.status, 201);
    let mut stream = connect(&service).await;
    stream.write_all(service.request(As::Key, "PUT", "/none/b", &headers, 3).as_bytes()).await.unwrap();
    let got = read_reply(&mut stream, false).await;
    assert_eq!((got.status, got.header("connection")), (404, Some("close")));
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_and_the_service_goes_on() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    let send = async |text: String| {
        let mut stream = connect(&service).await;
        stream.write_all(text.as_bytes()).await.unwrap();
        read_reply(&mut stream, false).await
    };
    assert_eq!(send("nonsense\r\n\r\n".into()).await.status, 400);
    assert_eq!(send(format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(70_000))).await.status, 431);
    let headers = [("x-ms-blob-type", "BlockBlob"), ("Content-Length", ""), ("Transfer-Encoding", "chunked")];
    let chunked = service.request(As::Key, "PUT", "/box/b", &headers, 0) + "3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(send(chunked).await.outcome(), (411, "MissingContentLengthHeader"));
    let none = service.request(As::Key, "PUT", "/box/b", &headers[..2], 0);
    assert_eq!(send(none).await.outcome(), (411, "MissingContentLengthHeader"));
    for (method, target, outcome) in [
        ("GET", "/box/b?comp=nonsense", (400, "InvalidQueryParameterValue")),
        ("GET", "/box?restype=nonsense", (400, "InvalidQueryParameterValue")),
        ("DELETE", "/box?restype=container&comp=acl", (405, "UnsupportedHttpVerb")),
        ("GET", "/box/%zz", (400, "InvalidUri")),
        ("GET", "/box/b?timeout=0", (400, "InvalidQueryParameterValue")),
        ("GET", "/box/b?timeout=x", (400, "InvalidQueryParameterValue")),
    ] {
        assert_eq!(service.call(method, target, &[], b"").await.outcome(), outcome, "{method} {target}");
    }
    // A body cut short leaves nothing behind.
    let mut stream = connect(&service).await;
    let head = service.request(As::Key, "PUT", "/box/cut", &[("x-ms-blob-type", "BlockBlob")], 100);
    stream.write_all(format!("{head}only this").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(service.get("/box/cut").await.outcome(), (404, "BlobNotFound"));
}

#[tokio::test]
async fn every_answer_says_which_request_it_answers() {
    let service = Service::start().await;
    let first = service.call("HEAD", "/none?restype=container", &[("x-ms-client-request-id", "mine")], b"").await;
    assert_eq!((first.outcome(), first.header("x-ms-client-request-id")), ((404, "ContainerNotFound"), Some("mine")));
    let second = service.get("/none?restype=container").await;
    assert_ne!(first.header("x-ms-request-id"), second.header("x-ms-request-id"));
    assert!(second.text().contains(&format!("RequestId:{}", second.header("x-ms-request-id").unwrap())));
    assert_eq!(second.header("date"), Some("Thu, 15 Jan 2026 08:30:00 GMT"));
    assert_eq!(second.header("server"), Some("Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"));
}

#[tokio::test]
async fn requests_are_recorded_when_asked() {
    let service = Service::with(Emulator::builder().record(true)).await;
    service.put("/box?restype=container", &[], b"").await;
    service.upload("/box/b", b"abc").await;
    let seen = service.emulator.seen();
    let lines: Vec<_> =
        seen.iter().map(|s| (s.method.as_str(), s.path.as_str(), s.query.as_str(), s.status, s.body_len)).collect();
    assert_eq!(
        lines,
        [("PUT", "/devstoreaccount1/box", "restype=container", 201, 0), ("PUT", "/devstoreaccount1/box/b", "", 201, 3)]
    );
}

#[tokio::test]
async fn accounts_are_apart() {
    let key = blobjet::secret::Secret::new("c2Vjb25k");
    let builder = Emulator::builder().account("first", blobjet::secret::Secret::new("Zmlyc3Q=")).account("second", key);
    let service = Service::with(builder).await;
    assert_eq!(service.put("/box?restype=container", &[], b"").await.status, 201);
    assert!(service.emulator.connection_string().contains("AccountName=first;AccountKey=Zmlyc3Q=;"));
    let twice =
        Emulator::builder().account("a", blobjet::secret::Secret::new("YQ==")).account("a", blobjet::secret::Secret::new("YQ=="));
    assert_eq!(twice.start().await.unwrap_err().kind(), blobjet::Kind::Usage);
}
