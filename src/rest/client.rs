//! The one place that sends: a loop that signs, sends, judges the answer, waits and sends again.
//!
//! Every try is signed afresh, with its own date and request id. What is final and what is worth another try stands in
//! `answer.rs`, how long to wait in `retry.rs`. Bodies are memory that stays until the answer is there, so each try sends the
//! same bytes. What each try puts on is `client/dress.rs`'s. Redirects are never followed: a SAS must not reach another host.

mod dress;
pub(in crate::rest) mod parts;

use crate::error::{Attempts, Error, Kind, Result};
use crate::rest::answer::{self, Asked, Verdict};
use crate::rest::auth::sas::Token;
use crate::rest::auth::{Credential, Lending, Need};
use crate::rest::connect::{Connector, Proxies};
use crate::rest::from_url;
use crate::rest::location::{Location, Scheme};
use crate::rest::pace::Pace;
use crate::rest::properties::crc64_text;
use crate::rest::receive::{Incoming, Receive};
use crate::rest::request::{Request, Response};
use crate::rest::retry::{Brake, Wait};
use crate::rest::stats::{RetryCause, Stats};
use crate::rest::transport::{Failure, Transport};
use crate::secret::SafeUrl;
use dress::{Sums, X_MS_CONTENT_CRC64};
use http::header::HeaderValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// How bodies are protected on their way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Check {
    /// `x-ms-content-crc64`, computed where the bytes were read; MD5 where the service does not know it.
    #[default]
    Crc64,
    /// `Content-MD5`.
    Md5,
    /// Nothing.
    None,
}

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it counts.
    pub stats: Arc<Stats>,
    /// Cap on bodies sent, bits per second, over all requests.
    pub cap_bits_per_s: Option<u64>,
    /// A request on which no byte moves for this long is dropped and sent again.
    pub no_progress: Duration,
    /// Retries of a request end this long after its first failure (and after a few tries at least).
    pub give_up_after: Duration,
    /// Proxies.
    pub proxies: Proxies,
    /// Whether plain http may go to other hosts than this machine.
    pub allow_http: bool,
    /// How bodies are checked.
    pub check: Check,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            stats: Arc::default(),
            cap_bits_per_s: None,
            no_progress: Duration::from_secs(30),
            give_up_after: Duration::from_secs(300),
            proxies: Proxies::from_env(),
            allow_http: false,
            check: Check::default(),
        }
    }
}

/// What a request is for: words for messages, rights it needs, and how a refusal is to be read.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    /// As it stands between `cannot` and the URL: `put block of`.
    pub action: &'static str,
    /// Rights it needs, checked before it is sent.
    pub need: Need,
    /// Whether it carries a condition that something be absent or older, so that 409 and 412 mean `AlreadyExists`.
    pub conditional: bool,
}

impl Op {
    /// Without a condition.
    pub const fn new(action: &'static str, need: Need) -> Op {
        Op { action, need, conditional: false }
    }
}

/// A client of one service. Cloning is cheap and shares connections, brake and counters.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    location: Location,
    host: HeaderValue,
    credential: Arc<dyn Credential>,
    transport: Transport,
    config: Config,
    pace: Option<Arc<Pace>>,
    brake: Brake,
    /// The service has said that it does not know CRC64.
    no_crc64: AtomicBool,
    /// Some connection was made: from then on an unreachable host may be a passing trouble.
    connected: AtomicBool,
    /// The service has fetched something from a URL: from then on a source it cannot verify may be a passing trouble.
    fetched: AtomicBool,
    /// First half of each request id.
    nonce: u64,
    /// Requests so far: second half of each request id.
    count: AtomicU64,
}

/// Tries before the clock alone ends a request: on a slow line each may take minutes.
const MIN_TRIES: u32 = 4;

/// How long a host that worked before may be gone.
const GONE: Duration = Duration::from_secs(10);

/// What has happened to a request so far.
struct Story {
    started: Instant,
    /// Requests sent.
    sent: u32,
    /// Failures, for the waits.
    failures: u32,
    /// When the first of them was: retries end some time after it. A long transfer before it does not count.
    failing_since: Option<Instant>,
    /// A checksum did not fit before.
    mismatched: bool,
    /// Idle connections are not to be trusted any more.
    fresh: bool,
}

/// How one try ended, where it was not the last word.
enum Trouble {
    Answer(RetryCause, Box<Response>),
    Failure(RetryCause, Box<dyn std::error::Error + Send + Sync>),
}

impl Client {
    /// A client for the service a place is at.
    ///
    /// # Errors
    /// `Usage`: plain http to another machine without `allow_http`, a proxy or certificate setting that cannot be used.
    pub fn new(location: &Location, credential: Arc<dyn Credential>, config: Config) -> Result<Client> {
        if location.scheme == Scheme::Http && !location.is_loopback() && !config.allow_http {
            return Err(Error::new(Kind::Usage, format!("refusing to use {} without TLS", location.safe()))
                .with_advice("write https://, or pass --allow-http where the network in between is trusted"));
        }
        let connector = Connector::new(location, &config.proxies, config.stats.clone())?;
        let host = HeaderValue::try_from(location.authority())
            .map_err(|e| Error::new(Kind::Usage, format!("{} is no host name", location.host)).with_source(e))?;
        let pace = config.cap_bits_per_s.map(|bits| Arc::new(Pace::new(bits)));
        Ok(Client(Arc::new(Inner {
            location: Location { container: None, blob: None, sas: None, ..location.clone() },
            host,
            credential,
            transport: Transport::new(connector, &config, pace.clone()),
            pace,
            brake: Brake::default(),
            no_crc64: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            fetched: AtomicBool::new(false),
            nonce: getrandom::u64().unwrap_or_default(),
            count: AtomicU64::new(0),
            config,
        })))
    }

    /// How bodies are protected on their way.
    pub fn check(&self) -> Check {
        self.0.config.check
    }

    /// Where it counts.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.0.config.stats
    }

    /// The service it speaks to: a place without container, blob and SAS.
    pub fn location(&self) -> &Location {
        &self.0.location
    }

    /// Refuses what the credential cannot do as far as can be told without asking the service.
    ///
    /// # Errors
    /// `AccessRefused`.
    pub fn check_need(&self, need: Need) -> Result<()> {
        self.0.credential.check(need, SystemTime::now())
    }

    /// What lets another party read a blob of this service; `None` where nothing is needed.
    pub(crate) fn lend(&self, blob: &Lending<'_>) -> Option<Token> {
        self.0.credential.lend(blob)
    }

    /// The error for an answer to a request for `path` that could not be read.
    pub(crate) fn bad_answer(&self, op: Op, path: &str, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::new(Kind::BadAnswer, self.doing(op, path)).with_source(cause)
    }

    /// What failed when it did: `cannot put block of https://…`, without secrets.
    pub(crate) fn doing(&self, op: Op, path: &str) -> String {
        self.0.doing(path, op)
    }

    /// Sends a request until it is done, refused for good, or given up. Dropping the future closes the connection it was on;
    /// the service may or may not have done what was asked.
    ///
    /// # Errors
    /// Any kind of [`Kind`] but those of sources; with the service's answer and the number of tries where there were any.
    pub async fn send(&self, request: Request, op: Op) -> Result<Response> {
        self.converse(request, op, None).await
    }

    /// [`Client::send`], with the body of a success going to `into` as it comes; the response has none then.
    ///
    /// # Errors
    /// As of `send`; `Corrupt` where what came differs from its checksum a second time, and those of `into`.
    pub async fn receive(&self, request: Request, op: Op, into: &mut dyn Receive) -> Result<Response> {
        self.converse(request, op, Some(&mut Incoming::new(into))).await
    }

    async fn converse(&self, request: Request, op: Op, mut into: Option<&mut Incoming<'_>>) -> Result<Response> {
        let inner = &*self.0;
        inner.credential.check(op.need, SystemTime::now()).map_err(|e| e.context(inner.doing(&request.path, op)))?;
        let mut story =
            Story { started: Instant::now(), sent: 0, failures: 0, failing_since: None, mismatched: false, fresh: false };
        loop {
            inner.brake.wait().await;
            let trouble = match inner.attempt(&request, op, &mut story, into.as_deref_mut()).await? {
                Outcome::Done(response) => return Ok(Response { attempts: story.sent, ..response }),
                Outcome::AtOnce => continue,
                Outcome::Trouble(trouble) => trouble,
            };
            story.failures += 1;
            let failing_for = story.failing_since.get_or_insert_with(Instant::now).elapsed();
            let (cause, hint) = match &trouble {
                Trouble::Answer(cause, response) => (*cause, answer::retry_hint(response, SystemTime::now())),
                Trouble::Failure(cause, _) => (*cause, None),
            };
            let wait = inner.brake.delay(story.failures, cause, hint);
            if inner.is_hopeless(story.failures, failing_for, wait.time, hint) {
                return Err(inner.gave_up(&request, op, &story, trouble));
            }
            tracing::debug!(?cause, wait = ?wait.time, failures = story.failures, "{} will be tried again", inner.doing(&request.path, op));
            inner.config.stats.retried(cause);
            inner.wait(wait).await;
        }
    }
}

/// An answer, and what it is judged by.
struct Heard {
    response: Response,
    sums: Sums,
    /// What was received of its body, if that was taken as it came, is what the service sent.
    whole: bool,
    sent_at: Instant,
}

enum Outcome {
    Done(Response),
    /// Send again now: nothing failed.
    AtOnce,
    Trouble(Trouble),
}

impl Inner {
    /// Waits, counted among those that do where the others go on.
    async fn wait(&self, wait: Wait) {
        let _waits = wait.alone.then(|| self.config.stats.waits());
        tokio::time::sleep(wait.time).await;
    }

    /// Whether it is given up rather than waited for so long.
    fn is_hopeless(&self, failures: u32, failing_for: Duration, wait: Duration, hint: Option<Duration>) -> bool {
        let limit = self.config.give_up_after;
        let out_of_time = failures >= MIN_TRIES && failing_for + wait > limit;
        out_of_time || hint.is_some_and(|hint| hint > limit)
    }

    async fn attempt(
        &self,
        request: &Request,
        op: Op,
        story: &mut Story,
        mut into: Option<&mut Incoming<'_>>,
    ) -> Result<Outcome> {
        self.credential.ready().await.map_err(|e| e.context(self.doing(&request.path, op)))?;
        let mut lease = match self.transport.lease(story.fresh).await {
            Ok(lease) => lease,
            Err(failure) => return self.failed(request, op, story, failure),
        };
        self.connected.store(true, Relaxed);
        let sums = self.sums(request);
        self.dress(request, &mut lease, &sums).map_err(|e| e.context(self.doing(&request.path, op)))?;
        let sent_at = Instant::now();
        story.sent += 1;
        if let Some(into) = &mut into {
            into.expect(sums.asked);
        }
        match self.transport.exchange(lease, request.patience, into.as_deref_mut()).await {
            Ok(response) => {
                let whole = into.is_none_or(|into| into.is_whole());
                let outcome = self.judged(request, op, story, Heard { response, sums, whole, sent_at })?;
                if !matches!(outcome, Outcome::Trouble(Trouble::Answer(RetryCause::Throttled, _))) {
                    self.brake.passed(sent_at);
                }
                Ok(outcome)
            }
            Err(failure) => self.failed(request, op, story, failure),
        }
    }

    fn judged(&self, request: &Request, op: Op, story: &mut Story, heard: Heard) -> Result<Outcome> {
        let Heard { response, sums, whole, sent_at } = heard;
        let asked = Asked { conditional: op.conditional, crc64: sums.has_crc64() };
        if response.status.is_success() {
            return self.accepted(request, op, story, response, whole);
        }
        let facts = answer::facts(&response, SystemTime::now());
        let names_source = request.headers.contains(from_url::COPY_SOURCE);
        let of_source = names_source.then(|| from_url::verdict(&facts, self.fetched.load(Relaxed), story.failures)).flatten();
        let of_answer = || answer::judge(response.status, facts.code.as_deref(), facts.detail("HeaderName"), asked);
        match of_source.unwrap_or_else(of_answer) {
            Verdict::Done => Ok(Outcome::Done(response)),
            Verdict::Again(cause) => {
                if cause == RetryCause::Throttled {
                    self.brake.throttled(sent_at, answer::retry_hint(&response, SystemTime::now()));
                }
                Ok(Outcome::Trouble(Trouble::Answer(cause, Box::new(response))))
            }
            Verdict::Once if !story.mismatched => {
                story.mismatched = true;
                self.config.stats.retried(RetryCause::Checksum);
                Ok(Outcome::AtOnce)
            }
            Verdict::Once => Err(self.error(Kind::Corrupt, request, op, story).with_answer(facts)),
            Verdict::NoCrc64 => {
                if !self.no_crc64.swap(true, Relaxed) {
                    tracing::warn!("{} does not know CRC64: using MD5, which costs more", self.location.safe());
                }
                story.sent -= 1;
                Ok(Outcome::AtOnce)
            }
            Verdict::Error(kind) => {
                let error = self.error(kind, request, op, story).with_answer(facts);
                let target = response.status.is_redirection().then(|| response.header("location")).flatten();
                Err(match target {
                    Some(to) => error.with_advice(format!("it redirects to {}, which is never followed", SafeUrl::new(to))),
                    None => error,
                })
            }
        }
    }

    /// A success, if it is the service's and the checksum it computed is ours.
    fn accepted(&self, request: &Request, op: Op, story: &mut Story, response: Response, whole: bool) -> Result<Outcome> {
        if !answer::from_service(&response) {
            let facts = answer::facts(&response, SystemTime::now());
            return Err(self.error(Kind::BadAnswer, request, op, story).with_answer(facts).with_advice(
                "something that is not Azure Storage answered: a proxy, a login page of the network, or another server on this port",
            ));
        }
        if request.headers.contains(from_url::COPY_SOURCE) {
            self.fetched.store(true, Relaxed);
        }
        let theirs = response.headers.bytes(X_MS_CONTENT_CRC64.as_str());
        let arrived = request.crc64.zip(theirs).is_none_or(|(ours, theirs)| *theirs == crc64_text(ours));
        if arrived && whole {
            return Ok(Outcome::Done(response));
        }
        if story.mismatched {
            let facts = answer::facts(&response, SystemTime::now());
            return Err(self.error(Kind::Corrupt, request, op, story).with_answer(facts));
        }
        story.mismatched = true;
        self.config.stats.retried(RetryCause::Checksum);
        Ok(Outcome::AtOnce)
    }

    /// A try that got no answer.
    fn failed(&self, request: &Request, op: Op, story: &mut Story, failure: Failure) -> Result<Outcome> {
        let trouble = match failure {
            Failure::Final(error) => return Err(error.context(self.doing(&request.path, op))),
            Failure::NotTaken(error) => return Err(error),
            Failure::Nobody(error) => {
                let gone = story.failing_since.is_some_and(|since| since.elapsed() > GONE);
                if gone || !self.connected.load(Relaxed) {
                    return Err(error.context(self.doing(&request.path, op)));
                }
                Trouble::Failure(RetryCause::Connection, error.into())
            }
            Failure::NoConnection(error) => {
                if !self.connected.load(Relaxed) && story.failures > 0 {
                    return Err(self.error(Kind::Unreachable, request, op, story).with_source(error));
                }
                Trouble::Failure(RetryCause::Connection, error.into())
            }
            Failure::Stale { sent } => {
                // An idle connection was closed as the request set out: any other idle one may be as old. One that may have
                // arrived counts as sent, so that a condition that fails next is looked into.
                story.fresh = true;
                story.sent -= u32::from(!sent);
                return Ok(Outcome::AtOnce);
            }
            // The kernel found no memory behind the body: a mapped file was cut short. It will find none again.
            Failure::Broken(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                return Err(self.error(Kind::SourceChanged, request, op, story).with_source(error));
            }
            Failure::Broken(error) => Trouble::Failure(RetryCause::Connection, error.into()),
            Failure::NoProgress(after) => {
                let text = format!("no byte moved for {} s", after.as_secs());
                Trouble::Failure(RetryCause::NoProgress, text.into())
            }
            Failure::Nonsense(error) => return Err(self.error(Kind::BadAnswer, request, op, story).with_source(error)),
        };
        Ok(Outcome::Trouble(trouble))
    }

    fn gave_up(&self, request: &Request, op: Op, story: &Story, trouble: Trouble) -> Error {
        let error = self.error(Kind::GaveUp, request, op, story);
        match trouble {
            Trouble::Answer(_, response) => error.with_answer(answer::facts(&response, SystemTime::now())),
            Trouble::Failure(_, cause) => error.with_source(cause),
        }
    }

    fn error(&self, kind: Kind, request: &Request, op: Op, story: &Story) -> Error {
        let error = Error::new(kind, self.doing(&request.path, op));
        if story.sent > 1 { error.with_attempts(Attempts { count: story.sent, elapsed: story.started.elapsed() }) } else { error }
    }

    fn doing(&self, path: &str, op: Op) -> String {
        format!("cannot {} {}", op.action, self.location.safe_path(path))
    }
}
