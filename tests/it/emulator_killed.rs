//! `serve --dir` killed with SIGKILL while it is being written to: what was acknowledged is there, and nothing is there by half.

use crate::cli_support::World;
use crate::support::raw::{Service, VERSION, read_reply};
use blobjet::emulator::{Emulator, Storage};
use blobjet::rest::auth::{sas, shared_key};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Every blob's content follows from its name, so that any of them can be checked.
fn content(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(200_000).collect()
}

fn token() -> String {
    let fields = [("sv", VERSION), ("ss", "b"), ("srt", "sco"), ("sp", "rwdlac"), ("se", "2099-01-01")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let key = shared_key::decode_key(&blobjet::secret::Secret::new(shared_key::DEV_KEY)).unwrap();
    sas::mint(shared_key::DEV_ACCOUNT, &key, &sas::Fields::from_query(&fields), None).expose().to_owned()
}

/// Sends one request and says whether it was acknowledged; a connection that breaks was not.
async fn put(stream: &mut TcpStream, target: &str, body: &[u8]) -> bool {
    let head = format!(
        "PUT /{}{target}{}{} HTTP/1.1\r\nHost: x\r\nx-ms-version: {VERSION}\r\nx-ms-blob-type: BlockBlob\r\nContent-Length: {}\r\n\r\n",
        shared_key::DEV_ACCOUNT,
        if target.contains('?') { '&' } else { '?' },
        token(),
        body.len()
    );
    let wire = [head.as_bytes(), body].concat();
    if stream.write_all(&wire).await.is_err() {
        return false;
    }
    let mut first = [0; 12];
    // Looks before it reads: `read_reply` takes a broken connection for a failed test.
    match stream.peek(&mut first).await {
        Ok(n) if n > 0 => read_reply(stream, false).await.status == 201,
        _ => false,
    }
}

/// Writes blobs one after the other, in one request and in blocks by turns, until the server is gone.
async fn write(port: u16, writer: usize, done: Arc<Mutex<Vec<String>>>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    for i in 0.. {
        let name = format!("w{writer}-{i}");
        let body = content(&name);
        let acknowledged = if i % 2 == 0 {
            put(&mut stream, &format!("/box/{name}"), &body).await
        } else {
            let (first, second) = body.split_at(70_000);
            let list = b"<BlockList><Latest>AAAA</Latest><Latest>AAAB</Latest></BlockList>";
            put(&mut stream, &format!("/box/{name}?comp=block&blockid=AAAA"), first).await
                && put(&mut stream, &format!("/box/{name}?comp=block&blockid=AAAB"), second).await
                && put(&mut stream, &format!("/box/{name}?comp=blocklist"), list).await
        };
        if !acknowledged {
            return;
        }
        done.lock().unwrap().push(name);
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_and_nothing_is_there_by_half() {
    let world = World::new();
    let folder = world.path().join("store");
    let args = ["serve", "--port", "0", "--output-type", "json", "--dir", folder.to_str().unwrap()];
    let mut child = world.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    let url = said["url"].as_str().unwrap();
    let port: u16 = url.split(':').nth(2).unwrap().split('/').next().unwrap().parse().unwrap();

    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    assert!(put(&mut stream, "/box?restype=container", b"").await);
    let done = Arc::new(Mutex::new(Vec::new()));
    let writers: Vec<_> = (0..3).map(|writer| tokio::spawn(write(port, writer, done.clone()))).collect();
    while done.lock().unwrap().len() < 30 {
        tokio::task::yield_now().await;
    }
    // SIGKILL on Unix: no destructor, no handler, no flush.
    child.kill().unwrap();
    child.wait().unwrap();
    for writer in writers {
        writer.await.unwrap();
    }

    let service = Service::with(Emulator::builder().storage(Storage::Disk(folder))).await;
    let done = done.lock().unwrap().clone();
    for name in &done {
        assert_eq!(service.get(&format!("/box/{name}")).await.body, content(name), "{name} was acknowledged");
    }
    let page = service.get("/box?restype=container&comp=list").await;
    for name in page.all("Name") {
        assert_eq!(service.get(&format!("/box/{name}")).await.body, content(&name), "{name} is there");
    }
}
