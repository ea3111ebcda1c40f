//! Throws received bytes away as cheaply as the system can.
//!
//! On Linux `recv` with `MSG_TRUNC` on a TCP socket drops bytes inside the kernel (tcp(7)), so that receiving a block to be
//! discarded costs no copy. Elsewhere they are read into a small buffer.

use std::io;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Most bytes asked for at once.
const AT_ONCE: u64 = 4 * 1024 * 1024;

/// Receives exactly `count` bytes and drops them.
///
/// # Errors
/// The socket's; `UnexpectedEof` if it ends early.
pub(crate) async fn skip(stream: &TcpStream, mut count: u64) -> io::Result<()> {
    while count > 0 {
        let at_once = usize::try_from(count.min(AT_ONCE)).unwrap_or(usize::MAX);
        let got = stream.async_io(Interest::READABLE, || receive(stream, at_once)).await?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        count -= got as u64;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn receive(stream: &TcpStream, count: usize) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for as long as `stream` is borrowed. With MSG_TRUNC a TCP socket writes nothing to the
    // buffer (tcp(7)), so a null one of any stated length is never touched; MSG_DONTWAIT keeps the call from blocking.
    let got = unsafe { libc::recv(stream.as_raw_fd(), std::ptr::null_mut(), count, libc::MSG_TRUNC | libc::MSG_DONTWAIT) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

#[cfg(not(target_os = "linux"))]
fn receive(stream: &TcpStream, count: usize) -> io::Result<usize> {
    let mut scratch = [0; 16 * 1024];
    let room = count.min(scratch.len());
    stream.try_read(&mut scratch[..room])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn exactly_as_many_bytes_go() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sender = tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&vec![7; 3_000_000]).await.unwrap();
            stream.write_all(b"rest").await.unwrap();
        });
        let (mut stream, _) = listener.accept().await.unwrap();
        skip(&stream, 3_000_000).await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "rest");
        assert_eq!(skip(&stream, 1).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        sender.await.unwrap();
    }
}
