//! The bytes of one connection, plain or in TLS, and how to be rid of those that nobody wants.

use super::drain;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Received from the socket at once. The TLS library asks for 4 KiB a time, which would be a system call a quarter of a record.
const TLS_READ: usize = 256 * 1024;
/// Opened at once and thrown away: one record, which is all a read of the library gives.
const TLS_SKIP: usize = 16 * 1024;

/// A connection's bytes.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<BufReader<TcpStream>>>),
}

impl Stream {
    /// Does the handshake, where there is one to do.
    ///
    /// # Errors
    /// The socket's; a client that does not trust us, or speaks no TLS.
    pub(crate) async fn accept(tcp: TcpStream, tls: Option<&TlsAcceptor>) -> io::Result<Self> {
        match tls {
            None => Ok(Stream::Plain(tcp)),
            Some(acceptor) => {
                let stream = acceptor.accept(BufReader::with_capacity(TLS_READ, tcp)).await?;
                Ok(Stream::Tls(Box::new(stream)))
            }
        }
    }

    /// Version and cipher agreed on: `TLSv1_3 TLS13_AES_128_GCM_SHA256`.
    pub(crate) fn protocol(&self) -> Option<String> {
        let Stream::Tls(stream) = self else { return None };
        let (_, session) = stream.get_ref();
        Some(format!("{:?} {:?}", session.protocol_version()?, session.negotiated_cipher_suite()?.suite()))
    }

    /// The socket beneath.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0.get_ref(),
        }
    }

    /// Receives exactly `count` bytes and drops them.
    ///
    /// # Errors
    /// The socket's; `UnexpectedEof` if it ends early.
    pub(crate) async fn skip(&mut self, mut count: u64) -> io::Result<()> {
        if let Stream::Plain(stream) = self {
            return drain::skip(stream, count).await;
        }
        let mut buffer = [0; TLS_SKIP];
        while count > 0 {
            let room = usize::try_from(count).unwrap_or(usize::MAX).min(TLS_SKIP);
            let got = self.read(&mut buffer[..room]).await?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            count -= got as u64;
        }
        Ok(())
    }
}

macro_rules! on_stream {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut *$self {
            Stream::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Tls($stream) => {
                let $stream = Pin::new(&mut **$stream);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, s => s.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_stream!(self, s => s.poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, s => s.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, s => s.poll_shutdown(cx))
    }
}
