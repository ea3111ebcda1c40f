//! Both ends of a connection, each facing a peer that sends nearly right bytes: the embedded service gets requests, the client
//! gets answers.

use super::edits::Language;
use crate::script::config;
use crate::support::raw::Service;
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::Blob;
use blobjet::rest::client::{Client, Config};
use blobjet::rest::container::{Container, ListOptions};
use blobjet::rest::location::Location;
use blobjet::rest::model::BlockListType;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, set_hook, take_hook};
use std::sync::Once;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

/// Panics on this thread so far. A runtime of one thread hides those of its tasks, and the tasks here run on this one.
fn panics() -> u64 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            PANICS.with(|count| count.set(count.get() + 1));
            before(info);
        }));
    });
    PANICS.with(Cell::get)
}

fn runtime(paused: bool) -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(paused).build().unwrap()
}

const REQUEST: Language = Language {
    seeds: &[
        "PUT /devstoreaccount1/con/b HTTP/1.1\r\nHost: h\r\nx-ms-version: 2025-11-05\r\nx-ms-blob-type: BlockBlob\r\n\
         Content-Length: 3\r\n\r\nabc",
        "PUT /devstoreaccount1/con/b?comp=block&blockid=QUFB HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "PUT /devstoreaccount1/con/b?comp=blocklist HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 52\r\n\r\n\
         <BlockList><Latest>QUFB</Latest></BlockList>12345678",
        "GET /devstoreaccount1/con?restype=container&comp=list&prefix=a%2F&maxresults=5&marker=2!72!x HTTP/1.1\r\nHost: h\r\n\
         x-ms-version: 2025-11-05\r\n\r\n",
        "GET /devstoreaccount1/con/b?snapshot=2026-01-15T08:30:00.0000000Z HTTP/1.1\r\nHost: h\r\nRange: bytes=1-2\r\n\
         If-Modified-Since: Thu, 15 Jan 2026 08:30:00 GMT\r\nAuthorization: SharedKey devstoreaccount1:AAAA\r\n\r\n",
        "POST /devstoreaccount1/con?restype=container&comp=batch HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/mixed; boundary=x\r\n\
         Content-Length: 40\r\n\r\n--x\r\nContent-ID: 0\r\n\r\nDELETE /con/b HTTP/1.1",
        "PUT /devstoreaccount1/con/b?sv=2025-11-05&sr=b&sp=w&se=2026-02-01&sig=AAAA HTTP/1.1\r\nHost: h\r\nx-ms-copy-source: http://h/\r\n\
         x-ms-meta-a: b\r\nx-ms-tags: a=b\r\nx-ms-lease-id: 1\r\nContent-Length: 0\r\n\r\n",
    ],
    words: &[
        "\r\n",
        "\r\n\r\n",
        ":",
        " HTTP/1.0",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\n",
        "%2F",
        "%00",
        "%",
        "?",
        "&comp=",
        "&restype=service",
        "x-ms-",
        "Range: bytes=-5\r\n",
        "x-ms-range: bytes=9-1\r\n",
        "FFFFFFFFFFFFFFFF\r\n",
        "\u{e9}",
        "&delimiter=",
        "&timeout=1",
        "--x--",
        "x-ms-content-crc64: A\r\n",
        "Content-MD5: ?\r\n",
        "x-ms-date: now\r\n",
        "&include=",
    ],
};

/// Semantics 29: whatever is sent, the service answers or hangs up, and goes on serving.
#[test]
fn requests_to_the_service() {
    let runtime = runtime(false);
    let service = runtime.block_on(async {
        let service = Service::start().await;
        assert_eq!(service.put("/con?restype=container", &[], b"").await.status, 201);
        assert_eq!(service.upload("/con/kept", b"as it was").await.status, 201);
        service
    });
    let world = AssertUnwindSafe((&runtime, &service));
    bolero::check!().with_iterations(1500).for_each(move |bytes: &[u8]| {
        let (runtime, service) = *world;
        let before = panics();
        let answer = runtime.block_on(async {
            let mut stream = TcpStream::connect(("127.0.0.1", service.emulator.port())).await.unwrap();
            // The service may have hung up already.
            let _ = stream.write_all(&REQUEST.text(bytes)).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            answer
        });
        assert_eq!(panics(), before);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&answer));
    });
    // None of it was signed.
    runtime.block_on(async {
        assert_eq!(service.get("/con/kept").await.body, b"as it was");
        assert_eq!(service.get("/con?restype=container&comp=list").await.all("Name"), ["kept"]);
    });
}

const ANSWER: Language = Language {
    seeds: &[
        "HTTP/1.1 201 Created\r\nContent-Length: 0\r\nETag: \"0x8D1\"\r\nLast-Modified: Thu, 15 Jan 2026 08:30:00 GMT\r\n\
         x-ms-request-id: 1\r\nx-ms-content-crc64: peH8Xsgc5QI=\r\nx-ms-request-server-encrypted: true\r\n\r\n",
        "HTTP/1.1 503 Busy\r\nContent-Length: 84\r\nRetry-After: 1\r\nx-ms-request-id: 1\r\nx-ms-error-code: ServerBusy\r\n\r\n\
         <?xml version=\"1.0\"?><Error><Code>ServerBusy</Code><Message>Wait.</Message></Error> ",
        "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\nDate: Thu, 15 Jan 2026 08:30:00 GMT\r\nx-ms-request-id: 1\r\n\r\n\
         2f\r\n<Error><Code>AuthenticationFailed</Code></Error>\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 82\r\nx-ms-version: 2025-11-05\r\n\r\n\
         <EnumerationResults><Blobs><Blob><Name>a</Name></Blob></Blobs></EnumerationResults>",
        "HTTP/1.1 200 OK\r\nContent-Length: 89\r\nx-ms-version: 2025-11-05\r\n\r\n<BlockList><UncommittedBlocks>\
         <Block><Name>QQ==</Name><Size>1</Size></Block></UncommittedBlocks></BlockList>",
        "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 412 No\r\nContent-Length: 0\r\nx-ms-error-code: ConditionNotMet\r\n\r\n",
    ],
    words: &[
        "\r\n",
        "\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Transfer-Encoding: chunked\r\n",
        "7fffffff\r\n",
        "Retry-After: 99999999999\r\n",
        "Retry-After: Thu, 15 Jan 2099 08:30:00 GMT\r\n",
        "x-ms-retry-after-ms: -1\r\n",
        "Date: never\r\n",
        "Connection: close\r\n",
        "x-ms-content-crc64: AAAAAAAAAAA=\r\n",
        "404",
        "500",
        "999",
        "000",
        "<Error>",
        "&#0;",
        "\u{feff}",
        "%",
    ],
};

/// Semantics 19 and 21: whatever comes back, each operation ends with a result.
#[test]
fn answers_to_the_client() {
    let runtime = runtime(true);
    let (listener, port) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    });
    let world = AssertUnwindSafe((&runtime, &listener));
    bolero::check!().with_iterations(400).for_each(move |bytes: &[u8]| {
        let (runtime, listener) = *world;
        let before = panics();
        let text = ANSWER.text(bytes);
        let serve = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                // Each request here fits into one segment.
                if stream.read(&mut request).await.is_ok() && stream.write_all(&text).await.is_ok() {
                    let _ = stream.shutdown().await;
                }
            }
        };
        let ask = async {
            let place = Location::parse(&format!("http://127.0.0.1:{port}/devstoreaccount1")).unwrap();
            let credential = choose(&place, &Inputs::default()).unwrap();
            let config = Config { give_up_after: Duration::from_secs(2), ..config() };
            let client = Client::new(&place, credential, config).unwrap();
            let data = Chunks::from(bytes::Bytes::from_static(b"Hello World!"));
            let crc64 = data.crc64();
            let blob = Blob::new(&client, "c", "b");
            let _ = format!("{:?}", blob.put_blob(&data, crc64, &Attributes::default(), Replace::Always).await);
            let _ = format!("{:?}", blob.get_block_list(BlockListType::Uncommitted).await);
            let _ = format!("{:?}", Container::new(&client, "c").list(&ListOptions::default()).await);
        };
        runtime.block_on(async {
            tokio::select! {
                () = ask => {}
                () = serve => {}
            }
        });
        assert_eq!(panics(), before);
    });
}
