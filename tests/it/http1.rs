//! Answers in every form HTTP/1.1 gives them, right and wrong: what reaches the caller, and which connections are used again. Time
//! is paused: waits take none.

use crate::script::{Reply, Script, answer_text, config};
use blobjet::chunks::Chunks;
use blobjet::rest::auth::{Inputs, Need, choose};
use blobjet::rest::blob::Blob;
use blobjet::rest::client::{Client, Op};
use blobjet::rest::location::Location;
use blobjet::rest::request::{Request, Response};
use blobjet::{Error, Kind};
use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const HEAD: &str = "HTTP/1.1 200 OK\r\nx-ms-request-id: the-id\r\n";

async fn get(client: &Client) -> Result<Response, Error> {
    client.send(Request::new(Method::GET, "/devstoreaccount1/c/b"), Op::new("read", Need::READ)).await
}

/// What reaches the caller of two requests that are answered like this, and on how many connections they came.
async fn twice(text: &str) -> (Vec<Result<String, Kind>>, usize) {
    let raw = text.to_owned();
    let server = Script::start(move |_, _| Reply::Bytes(raw.clone())).await;
    let client = server.client();
    let mut all = Vec::new();
    for _ in 0..2 {
        let answer = get(&client).await;
        all.push(answer.map(|answer| String::from_utf8(answer.body.to_vec()).unwrap()).map_err(|error| error.kind()));
    }
    let connections = server.seen().iter().map(|seen| seen.connection).max().unwrap_or_default() + 1;
    (all, connections)
}

fn both(text: &str) -> Vec<Result<String, Kind>> {
    vec![Ok(text.to_owned()); 2]
}

#[tokio::test(start_paused = true)]
async fn bodies_are_read_as_they_are_framed() {
    for (rest, body, connections) in [
        ("Content-Length: 5\r\n\r\nhello", "hello", 1),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nExpires: 0\r\n\r\n", "hello", 1),
        ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", 1),
        ("Content-Length: 5\r\nConnection: close\r\n\r\nhello", "hello", 2),
        // Somebody means it to be read in two ways.
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", 2),
        // What nobody has asked for is no answer to the next request.
        ("Content-Length: 5\r\n\r\nhelloHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "hello", 2),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "hello", 2),
    ] {
        assert_eq!(twice(&format!("{HEAD}{rest}")).await, (both(body), connections), "{rest:?}");
        let interim = format!("HTTP/1.1 100 Continue\r\n\r\n{HEAD}{rest}");
        assert_eq!(twice(&interim).await, (both(body), connections), "{interim:?}");
    }
    let server = Script::start(|_, _| Reply::Close(format!("{HEAD}\r\nhello"))).await;
    assert_eq!(get(&server.client()).await.unwrap().body, "hello", "all until it closes");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_http_is_no_answer() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(),
        format!("{HEAD}Content-Length: 5, 6\r\n\r\nhello"),
        format!("{HEAD}Content-Length: -5\r\n\r\nhello"),
        format!("{HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n"),
        format!("{HEAD}x: {}\r\n\r\n", "y".repeat(200_000)),
    ] {
        let (all, connections) = twice(&text).await;
        let shown = &text[..text.len().min(100)];
        assert_eq!((all, connections), (vec![Err(Kind::BadAnswer); 2], 2), "{shown:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    for whole in ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"] {
        let whole = format!("{HEAD}{whole}");
        let lengths = whole.len();
        let text = whole.clone();
        let server = Script::start(move |number, _| match text.get(..number) {
            Some(part) if number < text.len() => Reply::Close(part.to_owned()),
            _ => Reply::Bytes(text.clone()),
        })
        .await;
        // Each of the first answers is cut off one byte later: a request gives up after some of them, the next goes on.
        let client = server.client();
        let mut found = None;
        while found.is_none() && server.count() < 2 * lengths {
            found = match get(&client).await {
                Ok(answer) => Some(answer),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::GaveUp, "{error:?}");
                    None
                }
            };
        }
        assert_eq!((found.unwrap().body.as_ref(), server.count()), (&b"hello"[..], lengths + 1), "{whole:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_of_many_names_is_read() {
    let lines: String = (0..800).map(|i| format!("x-ms-meta-n{i}: {i}\n")).collect();
    let server = Script::start(move |_, _| Reply::Bytes(answer_text(200, &lines, ""))).await;
    let client = server.client();
    let there = Blob::new(&client, "c", "b").get_properties().await.unwrap().unwrap();
    assert_eq!(there.metadata().count(), 800);
    assert!(there.metadata().any(|pair| pair == ("n799", "799")));
}

#[tokio::test(start_paused = true)]
async fn answers_arrive_however_they_are_cut() {
    let text = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        loop {
            while stream.read_u8().await.unwrap() != b'\n' || stream.read_u8().await.unwrap() != b'\r' {}
            assert_eq!(stream.read_u8().await.unwrap(), b'\n');
            for byte in text.as_bytes() {
                stream.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let location = Location::parse(&format!("http://{address}/devstoreaccount1")).unwrap();
    let client = Client::new(&location, choose(&location, &Inputs::default()).unwrap(), config()).unwrap();
    for _ in 0..3 {
        assert_eq!(get(&client).await.unwrap().body, "hello");
    }
}

/// Who refuses a request need not read it. What it says counts, also where the rest of the request finds nobody any more.
#[tokio::test(start_paused = true)]
async fn a_refusal_before_the_end_of_the_body_is_heard_though_the_connection_closes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut some = vec![0; 1 << 20];
            stream.read_exact(&mut some).await.unwrap();
            let text = answer_text(403, "x-ms-error-code: AuthenticationFailed\nConnection: close", "");
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    let location = Location::parse(&format!("http://{address}/devstoreaccount1")).unwrap();
    let client = Client::new(&location, choose(&location, &Inputs::default()).unwrap(), config()).unwrap();
    let data = Chunks::from(vec![1; 32 << 20]);
    for _ in 0..3 {
        let error = Blob::new(&client, "c", "b").put_block("AA==", &data, 1).await.unwrap_err();
        assert_eq!(error.kind(), Kind::AccessRefused, "{error:?}");
    }
}
