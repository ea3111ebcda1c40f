//! One connection: sends a request and receives its answer, by polling; never two at a time.
//!
//! Head and body go out in one system call where they fit. What comes of an answer's head is received into a small buffer of the
//! connection; bodies pass through one large buffer of the thread that happens to poll, so that it is the same few hundred
//! kilobytes, in the processor's cache, for all connections, and idle ones hold none.

use super::framing::{Framing, Malformed};
use super::head::{self, AnswerHead};
use crate::rest::body::SendBody;
use crate::rest::connect::{Activity, Wire};
use bytes::{Buf as _, Bytes};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// What is received of a body at a time, at most: as much as stays in a core's cache until it has been summed and handed on. 128 KiB
/// take more system calls.
const PIECE: usize = 256 * 1024;

/// A connection's own buffer: an answer's head, and with it all of a small body.
const INPUT: usize = 8 * 1024;

/// Longest head of an answer: 8 KiB of metadata and 1 KiB each of a few more.
const MOST_HEAD: usize = 128 * 1024;

thread_local! {
    /// Where pieces of bodies are received; empty before the first, and while one is looked at.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Why there is no answer, or not all of it.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection broke.
    Io(io::Error),
    /// What came is not HTTP.
    Nonsense(Malformed),
}

/// See the module's text.
pub(crate) struct Connection {
    wire: Wire,
    output: Output,
    /// Received and not used yet: `input[start..end]`.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// The body that is being received.
    framing: Framing,
    /// The request was HEAD.
    headless: bool,
    /// Largest piece to receive at once.
    most: usize,
    /// Another request may follow, as far as what has come says.
    keeps: bool,
}

/// A request on its way out.
#[derive(Default)]
struct Output {
    head: Vec<u8>,
    /// Bytes of the head that are written.
    head_sent: usize,
    /// What is being written of the body.
    piece: Bytes,
    body: SendBody,
    /// Something has been written.
    begun: bool,
    /// All of it has been, and has left our buffers.
    done: bool,
}

impl Connection {
    /// A connection that has not carried anything yet. Bodies are received in pieces of `most` bytes at most.
    pub(crate) fn new(wire: Wire, most: Option<usize>) -> Connection {
        Connection {
            wire,
            output: Output { done: true, ..Output::default() },
            input: Vec::new(),
            start: 0,
            end: 0,
            framing: Framing::Length(0),
            headless: false,
            most: most.map_or(PIECE, |most| most.min(PIECE)),
            keeps: true,
        }
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        self.wire.activity()
    }

    /// Whether another request may follow as far as is known: the last one is sent and answered whole, nothing came behind the answer,
    /// and it did not say that the connection will be closed.
    pub(crate) fn is_reusable(&self) -> bool {
        self.output.done && self.keeps && self.framing.is_done() && self.start == self.end
    }

    /// Whether the other side has neither closed nor sent anything since.
    pub(crate) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        Pin::new(&mut self.wire).poll_read(cx, &mut ReadBuf::new(&mut [0])).is_pending()
    }

    /// Where the head of the next request is to be written: empty, with the room that the last one took.
    pub(crate) fn head(&mut self) -> &mut Vec<u8> {
        self.output.head.clear();
        &mut self.output.head
    }

    /// Takes the body of a request whose head has been written. `headless`: its answer has no body, being one to HEAD.
    pub(crate) fn begin(&mut self, body: SendBody, headless: bool) {
        let head = std::mem::take(&mut self.output.head);
        self.output = Output { head, body, ..Output::default() };
        self.headless = headless;
    }

    /// Whether some of the request may have reached the other side.
    pub(crate) fn has_sent(&self) -> bool {
        self.output.begun
    }

    /// Sends what can be sent and waits for the answer's head. An answer may come before all has been sent: then nothing more is,
    /// and the connection is of no further use.
    ///
    /// # Errors
    /// As [`Broken`] says.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<AnswerHead, Broken>> {
        let mut failed = None;
        if !self.output.done
            && let Poll::Ready(Err(error)) = self.output.poll_send(cx, &mut self.wire)
        {
            if error.raw_os_error() == Some(libc::EFAULT) {
                return Poll::Ready(Err(Broken::Io(error)));
            }
            // Who refuses a request answers and closes, perhaps before all of it was there: the answer counts.
            failed = Some(error);
        }
        loop {
            let came = &self.input[self.start..self.end];
            match if came.is_empty() { Ok(None) } else { head::parse(came, self.headless) } {
                Err(malformed) => return Poll::Ready(Err(Broken::Nonsense(malformed))),
                Ok(Some((mut head, len))) => {
                    self.start += len;
                    self.keeps = head.keeps;
                    self.framing = std::mem::replace(&mut head.framing, Framing::Length(0));
                    return Poll::Ready(Ok(head));
                }
                Ok(None) if self.end - self.start >= MOST_HEAD => {
                    return Poll::Ready(Err(Broken::Nonsense(Malformed("the head of the answer is too long"))));
                }
                Ok(None) => {}
            }
            let received = match (self.poll_input(cx), failed.take()) {
                (Poll::Ready(Ok(0)), None) => Err(Broken::Io(cut_off())),
                (Poll::Ready(Ok(0) | Err(_)) | Poll::Pending, Some(failed)) => Err(Broken::Io(failed)),
                (Poll::Ready(Ok(_)), before) => {
                    failed = before;
                    Ok(())
                }
                (Poll::Ready(Err(error)), None) => Err(Broken::Io(error)),
                (Poll::Pending, None) => return Poll::Pending,
            };
            if let Err(broken) = received {
                return Poll::Ready(Err(broken));
            }
        }
    }

    /// Receives into the connection's own buffer, which grows as long as a head does not fit.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.input.len() {
            let len = if self.input.is_empty() { INPUT } else { self.input.len() * 2 };
            self.input.resize(len, 0);
        }
        let mut space = ReadBuf::new(&mut self.input[self.end..]);
        ready!(Pin::new(&mut self.wire).poll_read(cx, &mut space))?;
        let len = space.filled().len();
        self.end += len;
        Poll::Ready(Ok(len))
    }

    /// Hands the next piece of the answer's body to `take` and returns how many bytes came, framing included; `None` at the end.
    ///
    /// # Errors
    /// As [`Broken`] says, and those of `take`.
    pub(crate) fn poll_body<E: From<Broken>>(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Poll<Result<Option<usize>, E>> {
        if self.framing.is_done() {
            return Poll::Ready(Ok(None));
        }
        if self.start < self.end {
            let came = &self.input[self.start..self.end];
            let len = came.len();
            self.start += split(&mut self.framing, came, take)?;
            return Poll::Ready(Ok(Some(len)));
        }
        let mut buffer = BUFFER.take();
        if buffer.is_empty() {
            buffer.resize(PIECE, 0);
        }
        let mut space = ReadBuf::new(&mut buffer[..self.most]);
        let polled = Pin::new(&mut self.wire).poll_read(cx, &mut space).map_ok(|()| space.filled());
        let result = match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(Broken::Io(error).into())),
            Poll::Ready(Ok([])) => Poll::Ready(self.ended().map_err(E::from)),
            Poll::Ready(Ok(came)) => Poll::Ready(split(&mut self.framing, came, take).map(|used| {
                // What comes behind the answer has been asked for by no request.
                self.keeps &= used == came.len();
                Some(came.len())
            })),
        };
        BUFFER.set(buffer);
        result
    }

    /// The other side has closed.
    fn ended(&mut self) -> Result<Option<usize>, Broken> {
        if !self.framing.may_end() {
            return Err(Broken::Io(cut_off()));
        }
        self.keeps = false;
        self.framing = Framing::Length(0);
        Ok(None)
    }
}

/// Hands what is data of what has come to `take`, and says how many bytes have been used: all, but for those behind the end.
fn split<E: From<Broken>>(framing: &mut Framing, came: &[u8], take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<usize, E> {
    let mut at = 0;
    while at < came.len() && !framing.is_done() {
        let (used, data) = framing.next(&came[at..]).map_err(Broken::Nonsense)?;
        take(data)?;
        at += used;
    }
    Ok(at)
}

impl Output {
    /// Writes until there is no more, or no more room for it.
    fn poll_send(&mut self, cx: &mut Context<'_>, wire: &mut Wire) -> Poll<io::Result<()>> {
        loop {
            if self.piece.is_empty() {
                match self.body.poll_piece(cx) {
                    Poll::Ready(piece) => self.piece = piece.unwrap_or_default(),
                    // A body that waits for its share of a cap lets its head wait as well, and holds nothing back that may go.
                    Poll::Pending => {
                        ready!(Pin::new(wire).poll_flush(cx))?;
                        return Poll::Pending;
                    }
                }
            }
            let head = &self.head[self.head_sent..];
            let slices = [IoSlice::new(head), IoSlice::new(&self.piece)];
            let slices = match (head.is_empty(), self.piece.is_empty()) {
                (true, true) => break,
                (true, false) => &slices[1..],
                (false, true) => &slices[..1],
                (false, false) => &slices[..],
            };
            let sent = ready!(Pin::new(&mut *wire).poll_write_vectored(cx, slices))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.begun = true;
            let of_head = sent.min(head.len());
            self.head_sent += of_head;
            self.piece.advance(sent - of_head);
        }
        ready!(Pin::new(wire).poll_flush(cx))?;
        self.done = true;
        Poll::Ready(Ok(()))
    }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed before the answer was whole")
}
