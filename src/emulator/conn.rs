//! One connection: heads in, bodies where they belong, answers out, in order, until either side has enough.
//!
//! Our own loop rather than a server crate's because of the bodies: a block is received straight into the buffer it will be
//! kept in (or thrown away inside the kernel), with no intermediate chunks, channels or copies. What a request means is
//! [`Service`]'s; this file knows only how long things are.

use super::fault::{Interference, Silence};
use super::http::{Answer, BodyLength, Head, MAX_HEAD, Query};
use super::service::Service;
use super::store;
use super::stream::Stream;
use bytes::{Buf, BufMut, BytesMut};
use socket2::SockRef;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

/// First read of a connection; grows for larger heads. A small blob arrives with its head in one read.
const READ_BUFFER: usize = 16 * 1024;
/// What the kernel may take in for us on a narrow line, or else a body would have passed it before the first byte is read.
const NARROW_BUFFER: usize = 16 * 1024;
/// A refused body up to this size is read to its end so that the connection, and the client's view of the answer, survive.
const DRAIN_LIMIT: u64 = 512 * 1024 * 1024;

pub(crate) struct Conn {
    stream: Stream,
    buffer: BytesMut,
    peer: IpAddr,
    /// The query of the last request.
    query: Option<Arc<Query>>,
}

impl Conn {
    pub(crate) fn new(stream: Stream, peer: IpAddr) -> Self {
        Conn { stream, buffer: BytesMut::with_capacity(READ_BUFFER), peer, query: None }
    }

    /// Serves requests until the client leaves, something breaks, or `stop` changes between two requests.
    ///
    /// # Errors
    /// The socket's. They end the connection and concern nobody else.
    pub(crate) async fn run(mut self, service: Arc<Service>, mut stop: watch::Receiver<bool>) -> io::Result<()> {
        // Kept from one request to the next: to be put on the list of those who wait, and taken off it, costs a lock each time.
        let mut told = stop.clone();
        let mut told = pin!(super::told(&mut told));
        loop {
            let head = tokio::select! {
                biased;
                () = &mut told => return Ok(()),
                head = self.head() => head?,
            };
            let head = match head {
                Next::Head(head) => *head,
                Next::Closed => return Ok(()),
                Next::Malformed(status) => {
                    let answer = service.malformed(status);
                    let (wire, _) = answer.into_wire(false, false);
                    self.write(&wire).await?;
                    return self.linger().await;
                }
            };
            let faults = service.faults.meet(&head);
            if let Some(faults) = &faults {
                if faults.is_narrow() {
                    SockRef::from(self.stream.socket()).set_recv_buffer_size(NARROW_BUFFER)?;
                }
                faults.wait().await;
            }
            let mut body = Body { remaining: head.body_len(), awaits_continue: head.expect_continue, faults, conn: &mut self };
            let answer = service.answer(&head, &mut body).await;
            let (remaining, unasked, faults) = (body.remaining, body.awaits_continue, body.faults.take());
            if let Some(silence) = faults.as_deref().and_then(Interference::silence) {
                return self.fall_silent(silence, remaining, &mut stop).await;
            }
            // After a refusal without "100 Continue" nobody can know whether the body still comes.
            let keep = head.keep_alive
                && head.length != BodyLength::Chunked
                && remaining <= DRAIN_LIMIT
                && !(unasked && remaining > 0)
                && !*stop.borrow();
            let to_head = head.method == "HEAD";
            let cut = match faults.filter(|faults| !faults.leaves_answer()) {
                None => {
                    self.send(answer, to_head, keep).await?;
                    false
                }
                Some(faults) => self.send_spoiled(answer, to_head, keep, &faults).await?,
            };
            if cut || !keep {
                return self.linger().await;
            }
            self.skip(remaining).await?;
        }
    }

    async fn head(&mut self) -> io::Result<Next> {
        loop {
            // Empty lines before a request line are allowed (RFC 9112, 2.2) and would make the parser wait for ever.
            while self.buffer.starts_with(b"\r\n") {
                self.buffer.advance(2);
            }
            if !self.buffer.is_empty() {
                match Head::parse(&self.buffer, self.peer, self.query.as_ref()) {
                    Ok(Some((head, used))) => {
                        self.buffer.advance(used);
                        self.query = Some(Arc::clone(&head.query));
                        return Ok(Next::Head(Box::new(head)));
                    }
                    Ok(None) if self.buffer.len() < MAX_HEAD => {}
                    Ok(None) => return Ok(Next::Malformed(431)),
                    Err(()) => return Ok(Next::Malformed(400)),
                }
            }
            self.buffer.reserve(READ_BUFFER);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(Next::Closed);
            }
        }
    }

    async fn send(&mut self, answer: Answer, to_head: bool, keep: bool) -> io::Result<()> {
        let (wire, pieces) = answer.into_wire(to_head, keep);
        self.stream.write_all(&wire).await?;
        for piece in pieces {
            store::write_piece(&piece, &mut self.stream).await?;
        }
        // TLS may still hold a record back.
        self.stream.flush().await
    }

    async fn write(&mut self, wire: &[u8]) -> io::Result<()> {
        self.stream.write_all(wire).await?;
        self.stream.flush().await
    }

    /// Sends an answer that is to be changed, cut or slowed down, out of memory. `true`: it was cut.
    async fn send_spoiled(&mut self, answer: Answer, to_head: bool, keep: bool, faults: &Interference) -> io::Result<bool> {
        let (mut wire, pieces) = answer.into_wire(to_head, keep);
        for piece in pieces {
            store::write_piece(&piece, &mut wire).await?;
        }
        let cut = faults.spoil(&mut wire);
        faults.send(&mut self.stream, &wire).await?;
        self.stream.flush().await?;
        Ok(cut)
    }

    /// Ends a request without an answer, and with it the connection; silence lasts until the client has enough of it.
    async fn fall_silent(&mut self, how: Silence, remaining: u64, stop: &mut watch::Receiver<bool>) -> io::Result<()> {
        match how {
            // What is closed with a linger of nothing is reset (socket(7)).
            Silence::Reset => SockRef::from(self.stream.socket()).set_linger(Some(Duration::ZERO)),
            Silence::Close => self.linger().await,
            Silence::Hang => {
                self.skip(remaining).await?;
                let mut scratch = vec![0; READ_BUFFER];
                tokio::select! {
                    () = super::told(stop) => {}
                    () = async { while self.stream.read(&mut scratch).await.is_ok_and(|n| n > 0) {} } => {}
                }
                Ok(())
            }
        }
    }

    /// Throws `count` bytes of the stream away.
    async fn skip(&mut self, count: u64) -> io::Result<()> {
        let held = usize::try_from(count).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.advance(held);
        self.stream.skip(count - held as u64).await
    }

    /// Ends our side and reads a little on, so that a client still sending sees the answer rather than a reset.
    async fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut scratch = vec![0; 64 * 1024];
        let rest = async { while self.stream.read(&mut scratch).await.is_ok_and(|n| n > 0) {} };
        // The outcome does not matter: either the client is done or it had its time.
        let _ = tokio::time::timeout(Duration::from_secs(2), rest).await;
        Ok(())
    }
}

enum Next {
    Head(Box<Head>),
    Closed,
    Malformed(u16),
}

/// The body of the request at hand. What is not read of it is skipped after the answer.
pub(crate) struct Body<'a> {
    conn: &'a mut Conn,
    remaining: u64,
    awaits_continue: bool,
    faults: Option<Box<Interference>>,
}

impl Body<'_> {
    /// Bytes still to come.
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Whether all that is still to come has been received with the head.
    pub(crate) fn is_here(&self) -> bool {
        self.remaining <= self.conn.buffer.len() as u64
    }

    /// What disturbs this request.
    pub(crate) fn faults(&self) -> Option<&Interference> {
        self.faults.as_deref()
    }

    /// Lets a client that waits for it send (RFC 9110, 10.1.1).
    async fn invite(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.awaits_continue) && self.remaining > 0 {
            self.conn.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        Ok(())
    }

    /// Reads until `out` has grown by `count` bytes or the body ends; room is made once.
    ///
    /// # Errors
    /// The socket's; a body cut short is `UnexpectedEof`.
    pub(crate) async fn fill(&mut self, out: &mut BytesMut, count: usize) -> io::Result<()> {
        self.invite().await?;
        let mut wanted = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(count);
        out.reserve(wanted);
        if let Some(mut faults) = self.faults.take_if(|faults| !faults.leaves_body()) {
            let result = self.fill_disturbed(&mut faults, out, wanted).await;
            self.faults = Some(faults);
            return result;
        }
        let held = wanted.min(self.conn.buffer.len());
        out.extend_from_slice(&self.conn.buffer[..held]);
        self.conn.buffer.advance(held);
        self.remaining -= held as u64;
        wanted -= held;
        while wanted > 0 {
            let got = self.conn.stream.read_buf(&mut (&mut *out).limit(wanted)).await?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            wanted -= got;
            self.remaining -= got as u64;
        }
        Ok(())
    }

    /// The same in pieces, each of which may be changed, delayed, or the last one before the connection breaks.
    async fn fill_disturbed(&mut self, faults: &mut Interference, out: &mut BytesMut, mut wanted: usize) -> io::Result<()> {
        while wanted > 0 {
            let piece = faults.piece(wanted);
            let from = out.len();
            let held = piece.min(self.conn.buffer.len());
            out.extend_from_slice(&self.conn.buffer[..held]);
            self.conn.buffer.advance(held);
            if held == 0 && self.conn.stream.read_buf(&mut (&mut *out).limit(piece)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let got = out.len() - from;
            wanted -= got;
            self.remaining -= got as u64;
            if !faults.received(&mut out[from..]).await {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
        Ok(())
    }

    /// Reads the body and throws it away, uncopied where the system can.
    ///
    /// # Errors
    /// As [`fill`](Body::fill).
    pub(crate) async fn discard(&mut self) -> io::Result<()> {
        if self.faults.as_ref().is_some_and(|faults| !faults.leaves_body()) {
            let mut scratch = BytesMut::new();
            while self.remaining > 0 {
                scratch.clear();
                self.fill(&mut scratch, READ_BUFFER).await?;
            }
            return Ok(());
        }
        self.invite().await?;
        let count = std::mem::take(&mut self.remaining);
        self.conn.skip(count).await
    }
}
