//! Connections and what goes over them: a stack of idle ones, one request at a time on each, no task of their own.
//!
//! The request's own future drives its connection, so nothing hops between threads, and dropping the future closes the
//! connection. The most recently used connection is taken first; one that the server has closed meanwhile is noticed before the
//! request is written, or else reported as [`Failure::Stale`], which costs nothing but another try.

use crate::error::Error;
use crate::rest::body::SendBody;
use crate::rest::client::Config;
use crate::rest::connect::{Activity, Connector, Refusal};
use crate::rest::http1::{Broken, Connection};
use crate::rest::pace::Pace;
use crate::rest::receive::Incoming;
use crate::rest::request::Response;
use crate::rest::stats::Stats;
use crate::rest::watchdog::Watchdog;
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Largest answer held in memory: a list of 150,000 blocks with the longest ids has 20 MB.
const MAX_ANSWER: usize = 64 << 20;

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
    Broken(io::Error),
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

struct Conn {
    http: Connection,
    watchdog: Watchdog,
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
        self.conn.http.activity()
    }

    /// Where the next request's head is to be written: empty, with the room that the last one took.
    pub(crate) fn head(&mut self) -> &mut Vec<u8> {
        self.conn.http.head()
    }

    /// Takes the request's body. `headless`: the answer has none, being one to HEAD.
    pub(crate) fn begin(&mut self, body: SendBody, headless: bool) {
        self.conn.http.begin(body, headless);
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
            if poll_fn(|cx| Poll::Ready(conn.http.is_usable(cx))).await {
                return Ok(Lease { conn, reused: true });
            }
        }
        let wire = self.connector.connect().await.map_err(|refusal| match refusal {
            Refusal::Final(error) => Failure::Final(error),
            Refusal::Nobody(error) => Failure::Nobody(error),
            Refusal::Passing(error) => Failure::NoConnection(error),
        })?;
        let watchdog = Watchdog::new(wire.activity().clone());
        // Pieces as short as a cap asks for.
        let http = Connection::new(wire, self.pace.as_ref().map(|pace| pace.slice()));
        Ok(Lease { conn: Box::new(Conn { http, watchdog }), reused: false })
    }

    fn pop(&self) -> Option<Box<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Sends the request that the lease was given and takes the whole answer, which may be silent `patience` longer than others; the
    /// body of a success goes to `into` as it comes. The connection goes back to the pool only after a whole answer.
    pub(crate) async fn exchange(
        &self,
        lease: Lease,
        patience: Duration,
        into: Option<&mut Incoming<'_>>,
    ) -> Result<Response, Failure> {
        let Lease { mut conn, reused } = lease;
        let _under_way = self.stats.under_way();
        let received_before = conn.http.activity().received.load(Relaxed);
        let silence = self.no_progress.saturating_add(patience);
        conn.watchdog.begin(silence);
        let result = self.drive(&mut conn, into).await;
        let (activity, sent) = (conn.http.activity(), conn.http.has_sent());
        activity.settle(&self.stats);
        if sent {
            self.stats.requests.fetch_add(1, Relaxed);
        }
        match result {
            Ok(response) => {
                if conn.http.is_reusable() {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
                }
                Ok(response)
            }
            Err(Lost::NoProgress) => Err(Failure::NoProgress(silence)),
            Err(Lost::Broken(_)) if reused && activity.received.load(Relaxed) == received_before => Err(Failure::Stale { sent }),
            Err(Lost::Broken(Broken::Io(cause))) => Err(Failure::Broken(cause)),
            Err(Lost::Broken(Broken::Nonsense(cause))) => Err(Failure::Nonsense(cause.into())),
            Err(Lost::Refused(error)) => Err(Failure::NotTaken(error)),
            Err(Lost::TooLong) => Err(Failure::Nonsense(format!("the answer is longer than {MAX_ANSWER} bytes").into())),
        }
    }

    async fn drive(&self, conn: &mut Conn, into: Option<&mut Incoming<'_>>) -> Result<Response, Lost> {
        let Conn { http, watchdog } = conn;
        let started = Instant::now();
        let head = poll_fn(|cx| match http.poll_head(cx) {
            Poll::Ready(head) => Poll::Ready(head.map_err(Lost::from)),
            Poll::Pending => watchdog.poll(cx).map(|()| Err(Lost::NoProgress)),
        })
        .await?;
        self.stats.answered(started.elapsed());

        let mut response = Response { status: head.status, headers: head.headers, body: Bytes::new(), attempts: 1 };
        let mut into = into.filter(|_| response.status.is_success());
        if let Some(into) = &mut into {
            into.begin(&response).map_err(Lost::Refused)?;
        }
        let mut collected = Vec::new();
        loop {
            let mut take = |piece: &[u8]| match &mut into {
                Some(into) => into.piece(piece).map_err(Lost::Refused),
                None if collected.len() + piece.len() > MAX_ANSWER => Err(Lost::TooLong),
                None => {
                    collected.extend_from_slice(piece);
                    Ok(())
                }
            };
            let came = poll_fn(|cx| match http.poll_body(cx, &mut take) {
                Poll::Ready(came) => Poll::Ready(came),
                Poll::Pending => watchdog.poll(cx).map(|()| Err(Lost::NoProgress)),
            })
            .await?;
            match came {
                None => break,
                Some(len) if into.is_some() => self.keep_pace(len, http.activity()).await,
                Some(_) => {}
            }
        }
        response.body = collected.into();
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

/// What ended an exchange before its answer was whole.
enum Lost {
    Broken(Broken),
    NoProgress,
    TooLong,
    /// Whoever takes the body did not want it.
    Refused(Error),
}

impl From<Broken> for Lost {
    fn from(broken: Broken) -> Lost {
        Lost::Broken(broken)
    }
}
