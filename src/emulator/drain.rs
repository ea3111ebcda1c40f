//! Throws received bytes away as cheaply as the system can.
//!
//! On Linux `recv` with `MSG_TRUNC` on a TCP socket drops bytes inside the kernel (tcp(7)), so that receiving a block to be
//! discarded costs no copy: the buffer it is told of is never touched. Elsewhere bytes are read into it.

use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Most bytes asked for at once.
const AT_ONCE: u64 = 4 * 1024 * 1024;

#[cfg(target_os = "linux")]
const DROP: i32 = libc::MSG_TRUNC;
#[cfg(not(target_os = "linux"))]
const DROP: i32 = 0;

/// Receives exactly `count` bytes and drops them.
///
/// # Errors
/// The socket's; `UnexpectedEof` if it ends early.
pub(crate) async fn skip(stream: &TcpStream, mut count: u64) -> io::Result<()> {
    // Address space and no memory, as long as nobody writes to it.
    let mut buffer: Box<[MaybeUninit<u8>]> = Box::new_uninit_slice(room(count));
    while count > 0 {
        let room = room(count).min(buffer.len());
        let receive = || SockRef::from(stream).recv_with_flags(&mut buffer[..room], DROP);
        let got = stream.async_io(Interest::READABLE, receive).await?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        count -= got as u64;
    }
    Ok(())
}

fn room(count: u64) -> usize {
    usize::try_from(count.min(AT_ONCE)).unwrap_or(usize::MAX)
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
