//! Sources of copies that lie in another emulator on this machine: fetched over HTTP like anybody's, with what the URL carries.
//!
//! Only plain HTTP to this machine is spoken: nothing leaves it, and whatever else is named is a source that cannot be verified.
//! Conditions on the source travel with the request and are the other side's to check. Source: "Put Block From URL".

use super::errors::{self as e, Failure, Outcome};
use super::http::Head;
use super::payload::Payload;
use super::state::internal;
use super::store::Store;
use bytes::{Bytes, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Conditions on a source, and what they are called where the source is asked for.
const CONDITIONS: [(&str, &str); 5] = [
    ("x-ms-source-if-match", "If-Match"),
    ("x-ms-source-if-none-match", "If-None-Match"),
    ("x-ms-source-if-modified-since", "If-Modified-Since"),
    ("x-ms-source-if-unmodified-since", "If-Unmodified-Since"),
    ("x-ms-source-if-tags", "x-ms-if-tags"),
];

/// Names this machine has in URLs of copies.
const HERE: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
/// Most headers an answer may have, and bytes of its head.
const MAX_HEADERS: usize = 64;
const MAX_HEAD: usize = 64 * 1024;
const PIECE: usize = 1024 * 1024;
/// How long a source may be silent before it cannot be verified.
const PATIENCE: Duration = Duration::from_secs(30);

/// A source, or the range asked for of it, as it came.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Headers of the answer, names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) payload: Payload,
}

impl Fetched {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        let own = |(name, value): &(String, String)| Some((name.strip_prefix("x-ms-meta-")?.to_owned(), value.clone()));
        self.headers.iter().filter_map(own).collect()
    }
}

/// The address after `http://`, taken apart, where it is another server on this machine.
fn elsewhere<'u>(url: &'u str, origin: &str) -> Option<(&'u str, &'u str)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, target) = rest.split_at(rest.find('/')?);
    let (host, port) = authority.rsplit_once(':')?;
    let (own_scheme, own) = origin.split_once("://")?;
    let own_port = own.rsplit_once(':').map_or("", |(_, port)| port);
    (HERE.contains(&host) && (own_scheme != "http" || port != own_port)).then_some((authority, target))
}

/// Fetches what `x-ms-copy-source` names, if that lies in another emulator. `None`: there is nothing to fetch.
///
/// # Errors
/// `CannotVerifyCopySource`, with what the other side refused it with; 500 where it cannot be stored.
pub(crate) async fn source(head: &Head, origin: &str, version: &str, store: &Store) -> Outcome<Option<Fetched>> {
    let Some((authority, target)) = head.header("x-ms-copy-source").and_then(|url| elsewhere(url, origin)) else {
        return Ok(None);
    };
    let mut ask = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\nx-ms-version: {version}\r\nConnection: close\r\n");
    let range = head.header("x-ms-source-range").map(|range| ("x-ms-range", range));
    let conditions = CONDITIONS.iter().filter_map(|(ours, theirs)| Some((*theirs, head.header(ours)?)));
    for (name, value) in range.into_iter().chain(conditions) {
        ask.push_str(&format!("{name}: {value}\r\n"));
    }
    ask.push_str("\r\n");
    let answered = tokio::time::timeout(PATIENCE, begin(authority, &ask)).await;
    let Ok(Ok(mut answer)) = answered else { return Err(e::CANNOT_VERIFY_SOURCE.into()) };
    if !(200..300).contains(&answer.status) {
        let code = answer.header("x-ms-error-code").unwrap_or_default().to_owned();
        return Err(refused(answer.status, &code));
    }
    let mut keeping = store.keep(answer.remaining).map_err(|error| internal(&error))?;
    while answer.remaining > 0 {
        let Ok(Ok(piece)) = tokio::time::timeout(PATIENCE, answer.piece()).await else {
            return Err(refused(500, "OperationTimedOut"));
        };
        keeping.add(piece).map_err(|error| internal(&error))?;
    }
    Ok(Some(Fetched { headers: answer.headers, payload: keeping.finish() }))
}

/// A source that was refused: its own status and code, told in headers and body. A condition that is not met has neither, as
/// recorded of synchronous copies.
fn refused(status: u16, code: &str) -> Failure {
    match status {
        304 | 412 => unmet().with_status(status),
        _ => unreadable(status, code, ""),
    }
}

/// A condition on the source that does not hold [R].
pub(crate) fn unmet() -> Failure {
    Failure::from(e::CANNOT_VERIFY_SOURCE).with_message(Failure::from(e::CONDITION_NOT_MET).message())
}

/// A source that cannot be read: its own status and code, told in headers and body.
pub(crate) fn unreadable(status: u16, code: &str, message: &str) -> Failure {
    Failure::from(e::CANNOT_VERIFY_SOURCE)
        .with_status(status)
        .with_message(message)
        .with_header("x-ms-copy-source-status-code", status.to_string())
        .with_header("x-ms-copy-source-error-code", code)
        .detail("CopySourceStatusCode", status.to_string())
        .detail("CopySourceErrorCode", code)
        .detail("CopySourceErrorMessage", message)
}

/// The answer of a source, whose body is still to be read.
struct Answer {
    stream: TcpStream,
    status: u16,
    headers: Vec<(String, String)>,
    buffer: BytesMut,
    remaining: u64,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    async fn piece(&mut self) -> io::Result<Bytes> {
        let most = usize::try_from(self.remaining).unwrap_or(PIECE).min(PIECE);
        while self.buffer.len() < most {
            self.buffer.reserve(most - self.buffer.len());
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.remaining -= most as u64;
        Ok(self.buffer.split_to(most).freeze())
    }
}

async fn begin(authority: &str, ask: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(authority).await?;
    stream.write_all(ask.as_bytes()).await?;
    let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
    let mut buffer = BytesMut::new();
    loop {
        if buffer.len() > MAX_HEAD || stream.read_buf(&mut buffer).await? == 0 {
            return Err(nonsense());
        }
        let mut space = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut space);
        let httparse::Status::Complete(used) = parsed.parse(&buffer).map_err(|_| nonsense())? else { continue };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers: Vec<_> = parsed.headers.iter().map(|h| (h.name.to_ascii_lowercase(), text(h.value))).collect();
        let status = parsed.code.ok_or_else(nonsense)?;
        let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
        let _ = buffer.split_to(used);
        return Ok(Answer { stream, status, headers, buffer, remaining: length.unwrap_or(0) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_ports_of_this_machine_are_elsewhere() {
        let own = "http://127.0.0.1:1000";
        for (url, found) in [
            ("http://127.0.0.1:1001/a/c/b?x", Some(("127.0.0.1:1001", "/a/c/b?x"))),
            ("http://localhost:1001/a", Some(("localhost:1001", "/a"))),
            ("http://[::1]:1001/a", Some(("[::1]:1001", "/a"))),
            ("http://127.0.0.1:1000/a/c/b", None),
            ("http://127.0.0.1/a/c/b", None),
            ("https://127.0.0.1:1001/a/c/b", None),
            ("http://10.0.0.1:1001/a/c/b", None),
            ("http://127.0.0.1:1001", None),
            ("nonsense", None),
        ] {
            assert_eq!(elsewhere(url, own), found, "{url}");
        }
        assert!(elsewhere("http://127.0.0.1:1000/a", "https://127.0.0.1:1000").is_some());
    }
}
