//! HTTP/1.1 with nothing added: the path goes out byte for byte as it was recorded, and header names come back in their own case.
//! One connection a request.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In order; names as sent.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

/// Sends one request and reads its answer to the end of the connection.
pub(crate) fn exchange(
    port: u16,
    method: &str,
    target: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> std::io::Result<Reply> {
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    socket.write_all(head.as_bytes())?;
    // A server may refuse by the head alone and close; its answer is worth more than our broken pipe.
    let sent = socket.write_all(body);
    let mut bytes = Vec::new();
    if let Err(error) = socket.read_to_end(&mut bytes)
        && bytes.is_empty()
    {
        sent?;
        return Err(error);
    }
    parse(&bytes, method == "HEAD")
}

fn parse(bytes: &[u8], head_only: bool) -> std::io::Result<Reply> {
    let mut slots = [httparse::EMPTY_HEADER; 128];
    let mut response = httparse::Response::new(&mut slots);
    let bad = |what: String| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    let body_at = match response.parse(bytes) {
        Ok(httparse::Status::Complete(at)) => at,
        Ok(httparse::Status::Partial) => return Err(bad(format!("head cut short after {} bytes", bytes.len()))),
        Err(error) => return Err(bad(error.to_string())),
    };
    let status = response.code.unwrap_or_default();
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers: Vec<_> = response.headers.iter().map(|h| (h.name.to_owned(), text(h.value))).collect();
    let mut reply = Reply { status, headers, body: bytes[body_at..].to_vec() };
    if reply.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        reply.body = unchunked(&reply.body).ok_or_else(|| bad("chunks cut short".to_owned()))?;
    }
    let promised = reply.header("content-length").and_then(|v| v.parse::<usize>().ok());
    if !head_only && status != 304 && promised.is_some_and(|len| len != reply.body.len()) {
        return Err(bad(format!("content-length {promised:?} and {} bytes of body", reply.body.len())));
    }
    if head_only && !reply.body.is_empty() {
        return Err(bad("a body after HEAD".to_owned()));
    }
    Ok(reply)
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let end = rest.windows(2).position(|w| w == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?.trim(), 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(out);
        }
        out.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}
