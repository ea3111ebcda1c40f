//! A bare HTTP client for the emulator's tests: one connection a request, headers as given, signed with the account key unless
//! told otherwise. On purpose not the crate's own client, whose idea of the protocol is what the emulator has to check.

use blobjet::emulator::{Builder, Emulator};
use blobjet::rest::auth::sas;
use blobjet::rest::auth::shared_key::{self, ToSign};
use blobjet::rest::headers::HeaderList;
use http::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The version the tests speak unless they say another.
pub(crate) const VERSION: &str = "2025-11-05";

/// 2026-01-15T08:30:00Z, where the tests' clocks start.
pub(crate) const START: u64 = 1_768_465_800;

/// An emulator whose clock stands still until it is moved.
pub(crate) struct Service {
    pub(crate) emulator: Emulator,
    seconds: Arc<Mutex<u64>>,
}

/// How a request says who it is.
#[derive(Clone, Copy)]
pub(crate) enum As<'a> {
    Key,
    /// With another key than the account's.
    WrongKey,
    Nobody,
    /// A SAS, appended to the query as it is.
    Sas(&'a str),
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    pub(crate) fn code(&self) -> &str {
        self.header("x-ms-error-code").unwrap_or("")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The texts of all elements of this name, in order.
    pub(crate) fn all(&self, element: &str) -> Vec<String> {
        let (text, open, close) = (self.text(), format!("<{element}>"), format!("</{element}>"));
        text.split(&open).skip(1).map(|rest| rest.split(&close).next().unwrap().to_owned()).collect()
    }

    /// Status and code, for tables.
    pub(crate) fn outcome(&self) -> (u16, &str) {
        (self.status, self.code())
    }
}

impl Service {
    pub(crate) async fn start() -> Service {
        Service::with(Emulator::builder()).await
    }

    pub(crate) async fn with(builder: Builder) -> Service {
        let seconds = Arc::new(Mutex::new(START));
        let clock = seconds.clone();
        let now = move || UNIX_EPOCH + Duration::from_secs(*clock.lock().unwrap());
        let emulator = builder.clock(Arc::new(now)).start().await.unwrap();
        Service { emulator, seconds }
    }

    pub(crate) fn pass(&self, seconds: u64) {
        *self.seconds.lock().unwrap() += seconds;
    }

    /// The moment as a header has it; only days within January 2026 are needed.
    pub(crate) fn date(&self, offset: i64) -> String {
        let seconds = self.seconds.lock().unwrap().checked_add_signed(offset).unwrap() - 1_767_225_600;
        let (day, rest) = (seconds / 86_400, seconds % 86_400);
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(day % 7).unwrap()];
        format!("{weekday}, {:02} Jan 2026 {:02}:{:02}:{:02} GMT", day + 1, rest / 3600, rest / 60 % 60, rest % 60)
    }

    /// A service SAS for a container, or a blob in it.
    pub(crate) fn sas(&self, container: &str, blob: Option<&str>, fields: &[(&str, &str)]) -> String {
        self.mint(fields, Some((container, blob)))
    }

    /// An account SAS.
    pub(crate) fn account_sas(&self, fields: &[(&str, &str)]) -> String {
        self.mint(fields, None)
    }

    fn mint(&self, fields: &[(&str, &str)], resource: Option<(&str, Option<&str>)>) -> String {
        let pairs: Vec<(String, String)> = fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let key = shared_key::decode_key(self.emulator.key()).unwrap();
        let fields = sas::Fields::from_query(&pairs);
        sas::mint(self.emulator.account(), &key, &fields, resource).expose().to_owned()
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.call("GET", target, &[], b"").await
    }

    pub(crate) async fn put(&self, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.call("PUT", target, headers, body).await
    }

    /// Put Blob of a block blob.
    pub(crate) async fn upload(&self, target: &str, body: &[u8]) -> Reply {
        self.put(target, &[("x-ms-blob-type", "BlockBlob")], body).await
    }

    pub(crate) async fn call(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.call_as(As::Key, method, target, headers, body).await
    }

    /// Sends a request to `/account` + `target`. `x-ms-version` and `x-ms-date` are added where `headers` does not have them;
    /// an empty value leaves a header out.
    pub(crate) async fn call_as(&self, who: As<'_>, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let wire = self.request(who, method, target, headers, body.len());
        let mut stream = TcpStream::connect(("127.0.0.1", self.emulator.port())).await.unwrap();
        stream.write_all(wire.as_bytes()).await.unwrap();
        // A refused body may be cut off; the answer counts.
        let _ = stream.write_all(body).await;
        read_reply(&mut stream, method == "HEAD").await
    }

    /// The head of a request, signed.
    pub(crate) fn request(&self, who: As<'_>, method: &str, target: &str, headers: &[(&str, &str)], length: usize) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = format!("/{}{path}", self.emulator.account());
        let date = self.date(0);
        let length = length.to_string();
        let mut all: Vec<(&str, &str)> = vec![("x-ms-version", VERSION), ("x-ms-date", &date)];
        if matches!(method, "PUT" | "POST") {
            all.push(("Content-Length", &length));
        }
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let mut map = HeaderList::default();
        for (name, value) in &all {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let version = map.get("x-ms-version").map_or(VERSION, |v| v.to_str().unwrap()).to_owned();
        let mut query = query.to_owned();
        let mut head = String::new();
        match who {
            As::Key | As::WrongKey => {
                let parameters = shared_key::decode_query(&query);
                let account = self.emulator.account();
                let what = ToSign { method, account, path: &path, query: &parameters, headers: &map, version: &version };
                let mut key = shared_key::decode_key(self.emulator.key()).unwrap();
                if matches!(who, As::WrongKey) {
                    key[0] ^= 1;
                }
                let signature = shared_key::sign(&key, &shared_key::string_to_sign(&what));
                head = format!("Authorization: SharedKey {account}:{signature}\r\n");
            }
            As::Sas(token) => {
                query = if query.is_empty() { token.to_owned() } else { format!("{query}&{token}") };
            }
            As::Nobody => {}
        }
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        let lines: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}{head}\r\n")
    }
}

/// Reads one answer from a connection that may go on.
pub(crate) async fn read_reply(stream: &mut TcpStream, to_head: bool) -> Reply {
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            match buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => {
                    assert_ne!(stream.read_buf(&mut buffer).await.unwrap(), 0, "cut off: {:?}", String::from_utf8_lossy(&buffer))
                }
            }
        };
        let head = String::from_utf8(buffer.drain(..end).collect()).unwrap();
        let mut lines = head.split("\r\n");
        let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        if status == 100 {
            continue;
        }
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = if to_head { 0 } else { headers.get("content-length").map_or(0, |v| v.parse().unwrap()) };
        while buffer.len() < length {
            assert_ne!(stream.read_buf(&mut buffer).await.unwrap(), 0, "body cut off");
        }
        assert_eq!(buffer.len(), length, "more than the answer");
        return Reply { status, headers, body: buffer };
    }
}
