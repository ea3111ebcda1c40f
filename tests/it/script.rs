//! A server that does what a test tells it: reads whole requests, writes down what it saw, and answers from a script. For what no
//! well-behaved service does.

use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::client::{Client, Config};
use blobjet::rest::connect::Proxies;
use blobjet::rest::location::Location;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
    pub(crate) method: String,
    /// Request target as on the wire.
    pub(crate) target: String,
    /// Headers, names as sent.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

/// What to do about a request.
pub(crate) enum Reply {
    /// Write this and go on.
    Bytes(String),
    /// Write this (perhaps nothing) and close.
    Close(String),
    /// Say nothing, and keep the connection.
    Silence,
}

/// An answer as the service gives it.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Reply {
    Reply::Bytes(answer_text(status, headers, body))
}

pub(crate) fn answer_text(status: u16, headers: &str, body: &str) -> String {
    let lines: String = headers.lines().map(|line| format!("{}\r\n", line.trim())).collect();
    format!(
        "HTTP/1.1 {status} Words\r\nx-ms-request-id: the-id\r\nx-ms-version: 2025-11-05\r\nContent-Length: {}\r\n{lines}\r\n{body}",
        body.len()
    )
}

/// An error answer with its code.
pub(crate) fn refusal(status: u16, code: &str) -> Reply {
    answer(status, &format!("x-ms-error-code: {code}"), "")
}

type Play = Arc<dyn Fn(usize, &Seen) -> Reply + Send + Sync>;

/// A running server; it ends with the test's runtime.
pub(crate) struct Script {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Script {
    /// Starts one. `play` gets the number of the request, from 0, and the request.
    pub(crate) async fn start(play: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Script {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (play, log): (Play, _) = (Arc::new(play), seen.clone());
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(serve(stream, connection, play.clone(), log.clone()));
            }
        });
        Script { address, seen }
    }

    /// A proxy that answers one request on each connection, whatever it asks, and then pipes it to this address.
    pub(crate) async fn pipe_to(target: SocketAddr) -> Script {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let log = seen.clone();
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let log = log.clone();
                tokio::spawn(async move {
                    let request = read_request(&mut stream, connection).await.unwrap();
                    log.lock().unwrap().push(request);
                    stream.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").await.unwrap();
                    let mut onward = tokio::net::TcpStream::connect(target).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
                });
            }
        });
        Script { address, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// A place on it; `rest` follows the account.
    pub(crate) fn location(&self, rest: &str) -> Location {
        Location::parse(&format!("http://{}/devstoreaccount1{rest}", self.address)).unwrap()
    }

    /// A client of it, with the well-known key.
    pub(crate) fn client(&self) -> Client {
        self.client_with(config())
    }

    pub(crate) fn client_with(&self, config: Config) -> Client {
        let location = self.location("");
        let credential = choose(&location, &Inputs::default()).unwrap();
        Client::new(&location, credential, config).unwrap()
    }
}

/// A configuration that does not look at the environment.
pub(crate) fn config() -> Config {
    Config { proxies: Proxies::none(), ..Config::default() }
}

/// Reads requests and answers them until the script says to close.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    play: Play,
    log: Arc<Mutex<Vec<Seen>>>,
) {
    while let Some(request) = read_request(&mut stream, connection).await {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            log.len() - 1
        };
        match play(number, &request) {
            Reply::Bytes(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::Close(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Silence => {}
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin), connection: usize) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let text = String::from_utf8(head).unwrap();
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap().split(' ');
    let (method, target) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
    let headers: Vec<(String, String)> =
        lines.filter_map(|l| l.split_once(": ")).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let mut seen = Seen { connection, method, target, headers, body: Vec::new() };
    let len = seen.header("content-length").map_or(0, |v| v.parse().unwrap());
    seen.body = vec![0; len];
    stream.read_exact(&mut seen.body).await.ok()?;
    Some(seen)
}
