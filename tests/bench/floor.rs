//! The least a client can do: threads that send Put Block after Put Block over plain HTTP and look at nothing.
//!
//! `floor warm|sendfile FILE CONTAINER-URL-WITH-SAS THREADS`: `warm` writes one block of memory again and again, as if the file
//! were already there; `sendfile` has the kernel send the file's pages. Neither computes a checksum: the one declared is made
//! up, which a sink that keeps nothing believes. At the end the blocks are committed, so that the sink can be asked what it
//! holds. Built by the bench with `rustc -O`, without any crate.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: u64 = 8 * 1024 * 1024;

unsafe extern "C" {
    /// `sendfile64` of the C library, whose offset has 64 bits on every machine.
    fn sendfile64(out: c_int, source: c_int, offset: *mut i64, count: usize) -> isize;
}

struct Target {
    /// `127.0.0.1:PORT`.
    host: String,
    /// Path of the container.
    path: String,
    query: String,
}

fn parse(url: &str) -> Option<Target> {
    let rest = url.strip_prefix("http://")?;
    let (host, rest) = rest.split_once('/')?;
    let (path, query) = rest.split_once('?')?;
    Some(Target { host: host.to_owned(), path: format!("/{path}"), query: query.to_owned() })
}

/// A block id in base64, percent-encoded: a number of six digits is eight characters without padding.
fn id(index: u64) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let text = format!("{index:06}");
    text.as_bytes()
        .chunks(3)
        .flat_map(|three| {
            let bits = three.iter().fold(0usize, |bits, byte| bits << 8 | usize::from(*byte));
            [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]))
        })
        .collect()
}

fn answered(stream: &mut TcpStream) -> io::Result<()> {
    let mut answer = [0; 4096];
    let mut len = 0;
    while !answer[..len].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut answer[len..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => len += got,
        }
    }
    if answer.starts_with(b"HTTP/1.1 201") { Ok(()) } else { Err(io::Error::other(String::from_utf8_lossy(&answer[..len]))) }
}

fn head(target: &Target, blob: &str, what: &str, len: u64) -> String {
    let Target { host, path, query } = target;
    format!(
        "PUT {path}/{blob}?comp={what}&{query} HTTP/1.1\r\nHost: {host}\r\nx-ms-version: 2021-12-02\r\n\
         x-ms-content-crc64: AAAAAAAAAAA=\r\nContent-Length: {len}\r\n\r\n"
    )
}

/// Has the kernel send `len` bytes of the file from `at` on. `std::io::copy` would read and write instead: it takes sendfile(2)
/// only where the file's pages cannot change under way.
fn send_pages(stream: &TcpStream, source: &File, at: u64, len: u64) -> io::Result<()> {
    let mut offset = i64::try_from(at).map_err(io::Error::other)?;
    let end = at + len;
    while offset as u64 != end {
        let left = (end - offset as u64) as usize;
        // SAFETY: both descriptors are open as long as their owners are borrowed, and `offset` is a live i64 that the call alone
        // writes to while it runs.
        match unsafe { sendfile64(stream.as_raw_fd(), source.as_raw_fd(), &mut offset, left) } {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            sent if sent > 0 => {}
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

fn lane(target: &Target, file: &str, blob: &str, size: u64, next: &AtomicU64, warm: bool) -> io::Result<()> {
    let mut stream = TcpStream::connect(&target.host)?;
    stream.set_nodelay(true)?;
    let block = vec![0x5a_u8; if warm { BLOCK as usize } else { 0 }];
    let source = File::open(file)?;
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let at = index * BLOCK;
        if at >= size {
            return Ok(());
        }
        let len = BLOCK.min(size - at);
        stream.write_all(head(target, blob, &format!("block&blockid={}", id(index)), len).as_bytes())?;
        if warm {
            stream.write_all(&block[..len as usize])?;
        } else {
            send_pages(&stream, &source, at, len)?;
        }
        answered(&mut stream)?;
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, file, url, threads] = arguments.as_slice() else {
        return Err(io::Error::other("usage: floor warm|sendfile FILE CONTAINER-URL-WITH-SAS THREADS"));
    };
    let target = parse(url).ok_or_else(|| io::Error::other("the URL is http://HOST:PORT/ACCOUNT/CONTAINER?SAS"))?;
    let threads: usize = threads.parse().map_err(io::Error::other)?;
    let size = std::fs::metadata(file)?.len();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| lane(&target, file, "one.bin", size, &next, how == "warm"))).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(|_| Err(io::Error::other("a thread died"))))
    })?;
    let ids: String = (0..size.div_ceil(BLOCK)).map(|index| format!("<Latest>{}</Latest>", id(index))).collect();
    let list = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{ids}</BlockList>");
    let mut stream = TcpStream::connect(&target.host)?;
    let head = head(&target, "one.bin", "blocklist", list.len() as u64).replace("x-ms-content-crc64: AAAAAAAAAAA=\r\n", "");
    stream.write_all(format!("{head}{list}").as_bytes())?;
    answered(&mut stream)
}
