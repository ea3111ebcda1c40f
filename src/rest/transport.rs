//! Connections and what goes over them: a stack of idle ones, one request at a time on each, no task of their own.
//!
//! The request's own future drives its connection, so nothing hops between threads, and dropping the future closes the
//! connection. The most recently used connection is taken first; one that the server has closed meanwhile is noticed before the
//! request is written, or else reported as [`Failure::Stale`], which costs nothing but another try.

use crate::error::Error;
use crate::rest::body::SendBody;
use crate::rest::client::Config;
use crate::rest::connect::{Activity, Connector, Refusal, Wire};
use crate::rest::pace::Pace;
use crate::rest::receive::Incoming;
use crate::rest::request::Response;
use crate::rest::stats::Stats;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use http_body::Body as _;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Largest answer held in memory: a list of 150,000 blocks with the longest ids has 20 MB.
const MAX_ANSWER: usize = 64 << 20;

/// A standstill is looked for this often within the time allowed, so it is found after that time and at most a quarter more.
const LOOKS: u32 = 4;

/// What a connection receives at a time, at most: as much as stays in a core's cache until it has been summed and handed on. 408 KiB,
/// hyper's own, take more memory for no less CPU time, 128 KiB more system calls.
const BUFFER: usize = 256 * 1024;

/// What hyper wants to have for a buffer at least.
const LEAST_BUFFER: usize = 8192;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Sending again cannot heal it.
    Final(Error),
    /// Whoever takes the answer did not want it.
    NotTaken(Error),
    /// Nobody is there; see [`Refusal::Nobody`].
    Nobody(Error),
    /// No connection, for now: nothing was sent.
    NoConnection(io::Error),
    /// An idle connection turned out to be closed before a byte of the answer came.
    Stale {
        /// Whether some of the request may have reached the service.
        sent: bool,
    },
    /// The connection broke; the request may have had its effect.
    Broken(BoxError),
    /// No byte moved for too long; the request may have had its effect.
    NoProgress(Duration),
    /// Not HTTP, or too long.
    Nonsense(BoxError),
}

/// Connections to one service.
pub(crate) struct Transport {
    connector: Connector,
    #[expect(clippy::vec_box, reason = "a connection is some kilobytes, and is moved in and out for each request")]
    idle: Mutex<Vec<Box<Conn>>>,
    stats: Arc<Stats>,
    no_progress: Duration,
    /// The cap on what is received, as on what is sent.
    pace: Option<Arc<Pace>>,
}

/// A connection with its two halves: where requests go in, and what moves the bytes.
struct Conn {
    sender: SendRequest<SendBody>,
    driver: Connection<TokioIo<Wire>, SendBody>,
    activity: Arc<Activity>,
}

impl Conn {
    /// Whether a request can be sent now. Moves the driver, so that a close by the other side is seen.
    fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        Pin::new(&mut self.driver).poll(cx).is_pending() && self.sender.is_ready()
    }
}

/// How a request on its way is watched.
#[derive(Clone, Copy)]
struct Watched {
    started: Instant,
    /// How long no byte may move.
    silence: Duration,
}

/// A connection taken for one request.
pub(crate) struct Lease {
    conn: Box<Conn>,
    /// It has carried a request before.
    reused: bool,
}

impl Lease {
    /// For the body that waits for its share of a cap.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.conn.activity
    }
}

impl Transport {
    pub(crate) fn new(connector: Connector, config: &Config, pace: Option<Arc<Pace>>) -> Transport {
        let (stats, no_progress) = (config.stats.clone(), config.no_progress);
        Transport { connector, idle: Mutex::default(), stats, no_progress, pace }
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// An idle connection that is still open, or a new one.
    pub(crate) async fn lease(&self, fresh: bool) -> Result<Lease, Failure> {
        while !fresh && let Some(mut conn) = self.pop() {
            if poll_fn(|cx| Poll::Ready(conn.is_usable(cx))).await {
                return Ok(Lease { conn, reused: true });
            }
        }
        let wire = self.connector.connect().await.map_err(|refusal| match refusal {
            Refusal::Final(error) => Failure::Final(error),
            Refusal::Nobody(error) => Failure::Nobody(error),
            Refusal::Passing(error) => Failure::NoConnection(error),
        })?;
        let activity = wire.activity().clone();
        let mut http = http1::Builder::new();
        // Pieces as short as a cap asks for; no shorter than the library allows.
        http.max_buf_size(self.pace.as_ref().map_or(BUFFER, |pace| pace.slice().max(LEAST_BUFFER)));
        let (sender, driver) = http.handshake(TokioIo::new(wire)).await.map_err(|e| Failure::Broken(e.into()))?;
        Ok(Lease { conn: Box::new(Conn { sender, driver, activity }), reused: false })
    }

    fn pop(&self) -> Option<Box<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Sends a request and takes the whole answer, which may be silent `patience` longer than others; the body of a success goes to `into` as it comes. The connection goes back to
    /// the pool only after a whole answer.
    pub(crate) async fn exchange(
        &self,
        lease: Lease,
        request: http::Request<SendBody>,
        patience: Duration,
        into: Option<&mut Incoming<'_>>,
    ) -> Result<Response, Failure> {
        let Lease { mut conn, reused } = lease;
        let _under_way = self.stats.under_way();
        let started = Instant::now();
        let received_before = conn.activity.received.load(Relaxed);
        let watched = Watched { started, silence: self.no_progress.saturating_add(patience) };
        let result = self.drive(&mut conn, request, watched, into).await;
        conn.activity.settle(&self.stats);
        if !matches!(&result, Err(Lost::Error { sent: false, .. })) {
            self.stats.requests.fetch_add(1, Relaxed);
        }
        match result {
            Ok(response) => {
                // An answer may come before the body has gone out; then the rest of the body, and the connection, are dropped.
                if poll_fn(|cx| Poll::Ready(conn.is_usable(cx))).await {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
                }
                Ok(response)
            }
            Err(Lost::NoProgress) => Err(Failure::NoProgress(watched.silence)),
            Err(Lost::Error { sent, .. }) if reused && conn.activity.received.load(Relaxed) == received_before => {
                Err(Failure::Stale { sent })
            }
            Err(Lost::Error { cause, .. }) => Err(match cause.downcast_ref::<hyper::Error>() {
                Some(error) if error.is_parse() => Failure::Nonsense(cause),
                _ => Failure::Broken(cause),
            }),
            Err(Lost::Refused(error)) => Err(Failure::NotTaken(error)),
            Err(Lost::TooLong) => Err(Failure::Nonsense(format!("the answer is longer than {MAX_ANSWER} bytes").into())),
        }
    }

    async fn drive(
        &self,
        conn: &mut Conn,
        request: http::Request<SendBody>,
        Watched { started, silence }: Watched,
        into: Option<&mut Incoming<'_>>,
    ) -> Result<Response, Lost> {
        let Conn { sender, driver, activity } = conn;
        let mut watchdog = Watchdog::new(silence, activity);
        let mut driver = Driver { driver, done: None };

        let mut answer = pin!(sender.try_send_request(request));
        let answer = poll_fn(|cx| {
            driver.poll(cx);
            match answer.as_mut().poll(cx) {
                Poll::Ready(result) => Poll::Ready(Ok(result)),
                Poll::Pending => watchdog.poll(cx).map(Err),
            }
        })
        .await?
        .map_err(|mut error| {
            let sent = error.take_message().is_none();
            Lost::Error { sent, cause: error.into_error().into() }
        })?;
        self.stats.answered(started.elapsed());

        let (head, mut body) = answer.into_parts();
        let headers = if into.is_some() { detached(head.headers) } else { head.headers };
        let mut response = Response { status: head.status, headers, body: Bytes::new(), attempts: 1 };
        let mut into = into.filter(|_| response.status.is_success());
        if let Some(into) = &mut into {
            into.begin(&response).map_err(Lost::Refused)?;
        }
        let mut collected = Collected::default();
        while !body.is_end_stream() {
            let frame = poll_fn(|cx| {
                driver.poll(cx);
                match Pin::new(&mut body).poll_frame(cx) {
                    Poll::Ready(frame) => Poll::Ready(Ok(frame)),
                    Poll::Pending => watchdog.poll(cx).map(Err),
                }
            })
            .await?;
            let piece = match frame {
                None => break,
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Err(Lost::Error { sent: true, cause: error.into() }),
            };
            match &mut into {
                Some(into) => {
                    let len = piece.len();
                    into.piece(piece).map_err(Lost::Refused)?;
                    self.keep_pace(len, activity).await;
                }
                None => collected.push(piece)?,
            }
        }
        response.body = collected.into_bytes();
        Ok(response)
    }

    /// Waits as long as a cap says after so many bytes. What is not read meanwhile fills the kernel's buffer and stops the other
    /// side.
    async fn keep_pace(&self, len: usize, activity: &Activity) {
        let Some(pace) = &self.pace else { return };
        let now = tokio::time::Instant::now();
        let at = pace.book(len, now);
        if at > now {
            activity.waiting.store(true, Relaxed);
            tokio::time::sleep_until(at).await;
            activity.waiting.store(false, Relaxed);
        }
    }
}

/// Headers with values of their own. As they come they are parts of the connection's buffer, which is not used again as long as one
/// of them is there: each body would be received into fresh memory, whose pages the kernel has to bring first.
fn detached(mut headers: HeaderMap) -> HeaderMap {
    let mut all = Vec::with_capacity(headers.values().map(HeaderValue::len).sum());
    headers.values().for_each(|value| all.extend_from_slice(value.as_bytes()));
    let mut all = Bytes::from(all);
    for value in headers.values_mut() {
        let own = all.split_to(value.len());
        *value = HeaderValue::from_maybe_shared(own).expect("it is a header's value already");
    }
    headers
}

/// What ended an exchange before its answer was whole.
enum Lost {
    Error {
        sent: bool,
        cause: BoxError,
    },
    NoProgress,
    TooLong,
    /// Whoever takes the body did not want it.
    Refused(Error),
}

/// The connection's own future, polled beside what waits for it and not again after its end.
struct Driver<'a> {
    driver: &'a mut Connection<TokioIo<Wire>, SendBody>,
    done: Option<()>,
}

impl Driver<'_> {
    /// How it ends is told to whoever waits for the answer, so the result itself is of no use.
    fn poll(&mut self, cx: &mut Context<'_>) {
        if self.done.is_none() && Pin::new(&mut *self.driver).poll(cx).is_ready() {
            self.done = Some(());
        }
    }
}

/// Fires when no byte has moved in either direction for the time allowed, neither between us and the kernel nor between it and
/// the other side: however slow a line is, it is not still.
struct Watchdog<'a> {
    activity: &'a Activity,
    seen: u64,
    /// What the kernel held when it was asked last.
    held: Option<u64>,
    still: u32,
    every: Duration,
    timer: Pin<Box<tokio::time::Sleep>>,
}

impl<'a> Watchdog<'a> {
    fn new(allowed: Duration, activity: &'a Activity) -> Self {
        let every = allowed / LOOKS;
        let timer = Box::pin(tokio::time::sleep(every));
        Watchdog { activity, seen: activity.moved.load(Relaxed), held: None, still: 0, every, timer }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Lost> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let moved = self.activity.moved.load(Relaxed);
            if moved == self.seen && !self.activity.waiting.load(Relaxed) {
                let held = self.activity.unacknowledged();
                let before = std::mem::replace(&mut self.held, held);
                let drains = held.is_some() && held < before;
                self.still = if drains { 0 } else { self.still + 1 };
            } else {
                (self.still, self.held) = (0, None);
            }
            self.seen = moved;
            if self.still >= LOOKS {
                return Poll::Ready(Lost::NoProgress);
            }
            // From now on and not from when it was due: a process that was stopped has not seen anything stand still.
            let next = tokio::time::Instant::now() + self.every;
            self.timer.as_mut().reset(next);
        }
        Poll::Pending
    }
}

/// An answer's body: mostly nothing or one piece.
#[derive(Default)]
struct Collected {
    first: Bytes,
    all: BytesMut,
}

impl Collected {
    fn push(&mut self, piece: Bytes) -> Result<(), Lost> {
        if self.first.is_empty() && self.all.is_empty() {
            self.first = piece;
            return Ok(());
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.first);
        }
        if self.all.len() + piece.len() > MAX_ANSWER {
            return Err(Lost::TooLong);
        }
        self.all.extend_from_slice(&piece);
        Ok(())
    }

    fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detached_headers_say_the_same_and_let_the_buffer_go() {
        let buffer = Bytes::from(b"onetwothree".to_vec());
        let mut headers = HeaderMap::new();
        for (name, part) in [("a", 0..3), ("b", 3..6), ("a", 6..11), ("empty", 11..11)] {
            headers.append(name, HeaderValue::from_maybe_shared(buffer.slice(part)).unwrap());
        }
        let before: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.as_bytes().to_vec())).collect();
        let headers = detached(headers);
        assert!(buffer.is_unique());
        let after: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.as_bytes().to_vec())).collect();
        assert_eq!(after, before);
    }
}
