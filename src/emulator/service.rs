//! One request: resolve the address, check the version, let the caller in, hand it to the operation, dress the answer.

use super::auth::{Asked, Caller};
use super::conn::Body;
use super::digits::hex;
use super::errors::{self as e, Failure, Outcome};
use super::fault::{Faults, Interference, Lowered, Silence};
use super::http::{Answer, BodyLength, Head, plain_number};
use super::ops::{self, Ctx};
use super::route::{Level, Op};
use super::state::{Model, lock};
use super::tally::Tally;
use super::time::{self, Ticks};
use super::{Clock, Seen, fetch, names, store};
use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Versions of the service, oldest first: they are looked up by halving.
const VERSIONS: &[&str] = &[
    "2009-09-19",
    "2011-08-18",
    "2012-02-12",
    "2013-08-15",
    "2014-02-14",
    "2015-02-21",
    "2015-04-05",
    "2015-07-08",
    "2015-12-11",
    "2016-05-31",
    "2017-04-17",
    "2017-07-29",
    "2017-11-09",
    "2018-03-28",
    "2018-06-17",
    "2018-11-09",
    "2019-02-02",
    "2019-07-07",
    "2019-10-10",
    "2019-12-12",
    "2020-02-10",
    "2020-04-08",
    "2020-06-12",
    "2020-08-04",
    "2020-10-02",
    "2020-12-06",
    "2021-02-12",
    "2021-04-10",
    "2021-06-08",
    "2021-08-06",
    "2021-10-04",
    "2021-12-02",
    "2022-11-02",
    "2023-01-03",
    "2023-05-03",
    "2023-08-03",
    "2023-11-03",
    "2024-02-04",
    "2024-05-04",
    "2024-08-04",
    "2024-11-04",
    "2025-01-05",
    "2025-05-05",
    "2025-07-05",
    "2025-11-05",
    "2026-02-06",
    "2026-04-06",
    "2026-06-06",
    "2026-10-06",
];

/// The version of an anonymous request that names none, on an account without a `DefaultServiceVersion` (as recorded).
const ANONYMOUS_VERSION: &str = "2014-02-14";

/// Largest body read into memory as a whole: a list of 50,000 ids of 64 bytes is 5.3 MB, a batch 4 MiB.
const COLLECT_LIMIT: u64 = 16 * 1024 * 1024;

const SERVER: &str = "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0";

/// The emulator behind its connections.
pub(crate) struct Service {
    pub(crate) model: Model,
    pub(crate) clock: Clock,
    pub(crate) seen: Option<Mutex<Vec<Seen>>>,
    /// `http://127.0.0.1:PORT` or `https://127.0.0.1:PORT`, as listings tell it and copy sources name it.
    pub(crate) origin: String,
    pub(crate) tally: Tally,
    /// TLS versions and ciphers that connections have agreed on.
    pub(crate) protocols: Mutex<BTreeSet<String>>,
    pub(crate) faults: Faults,
    requests: AtomicU64,
}

impl Service {
    pub(crate) fn new(model: Model, clock: Clock, record: bool, origin: String) -> Self {
        let seen = record.then(Mutex::default);
        let (faults, tally) = (Faults::default(), Tally::default());
        Service { model, clock, seen, origin, faults, tally, protocols: Mutex::default(), requests: AtomicU64::new(0) }
    }

    /// Whether connections are encrypted.
    pub(crate) fn secure(&self) -> bool {
        self.origin.starts_with("https:")
    }

    /// Requests that had a head worth answering, so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The answer to what is not HTTP.
    pub(crate) fn malformed(&self, status: u16) -> Answer {
        let now = time::ticks((self.clock)());
        Answer::new(status).with("Server", SERVER).with("Date", time::http_date(now))
    }

    /// Serves one request. Never fails: whatever goes wrong is an answer, except a broken socket, after which the answer
    /// reaches nobody. Where the faults of the request say so, the work is left undone, or the answer is another.
    pub(crate) async fn answer(&self, head: &Head, body: &mut Body<'_>) -> Answer {
        let now = time::shifted(time::ticks((self.clock)()), body.faults().map_or(0, Interference::clock_ahead_s));
        let request_id = self.request_id(now);
        let known = self.version(head);
        let version = *known.as_ref().unwrap_or(&VERSIONS[VERSIONS.len() - 1]);
        let admitted = known.and_then(|version| self.admit(head, version, now, None));
        let op = admitted.as_ref().ok().map(|ctx| ctx.op);
        let works = body.faults().is_none_or(Interference::works);
        let outcome = match admitted {
            Ok(ctx) if works => {
                let lowered = body.faults().map_or(Lowered::default(), Interference::lowered);
                self.serve(Ctx { request_id: &request_id, lowered, ..ctx }, body).await
            }
            // What is answered, or not, by a fault alone.
            Ok(_) => {
                if body.faults().and_then(Interference::silence) == Some(Silence::Hang) {
                    // A body cut off leaves nobody to be silent to.
                    let _ = body.discard().await;
                }
                Ok(Answer::new(500))
            }
            Err(failure) => Err(failure),
        };
        // A token for another service does not get as far as this one: what refuses it knows no version [R].
        let in_front = matches!(&outcome, Err(failure) if failure.code() == e::SERVICE_MISMATCH);
        let mut answer = outcome.unwrap_or_else(|failure| failure.answer(&request_id, now, version));
        if let Some(status) = body.faults().and_then(Interference::status) {
            answer = status.answer(&request_id, now);
        }
        answer.header("Server", if in_front { "Microsoft-HTTPAPI/2.0" } else { SERVER });
        answer.header("x-ms-request-id", request_id);
        if !in_front {
            answer.header("x-ms-version", version);
        }
        if let Some(id) = head.header("x-ms-client-request-id") {
            answer.header("x-ms-client-request-id", id.to_owned());
        }
        answer.header("Date", time::http_date(now));
        let status = if body.faults().and_then(Interference::silence).is_some() { 0 } else { answer.status };
        self.tally.count(op, status, head.body_len());
        if let Some(seen) = &self.seen {
            lock(seen).push(Seen {
                method: head.method.clone(),
                path: head.path.clone(),
                query: head.query.text().to_owned(),
                status,
                body_len: head.body_len(),
                received: head.body_len() - body.remaining(),
            });
        }
        answer
    }

    /// Runs the operation of a request that was let in, once its source is there.
    async fn serve(&self, ctx: Ctx<'_>, body: &mut Body<'_>) -> Outcome {
        if ctx.head.header("x-ms-copy-source").is_none() {
            return serve(&ctx, body).await;
        }
        let fetched = fetch::source(ctx.head, &self.origin, ctx.version, &self.model.store).await?;
        serve(&Ctx { fetched, ..ctx }, body).await
    }

    /// Everything that comes before the operation itself. In a batch, `outer` is the batch's own caller.
    pub(crate) fn admit<'a>(
        &'a self,
        head: &'a Head,
        version: &'static str,
        now: Ticks,
        outer: Option<&Caller>,
    ) -> Outcome<Ctx<'a>> {
        let address = Address::of(&head.path)?;
        let secondary = address.account.strip_suffix("-secondary");
        let name = secondary.unwrap_or(&address.account);
        let account = self.model.account(name).ok_or_else(|| Failure::auth(format!("There is no account '{name}' here.")))?;
        let op = Op::of(head, address.level)?;
        let asked = Asked {
            model: &self.model,
            account,
            container: &address.container,
            blob: &address.blob,
            op,
            version,
            now,
            secure: self.secure(),
        };
        let caller = match outer {
            // A part without credentials of its own is the batch's caller's.
            Some(outer) if head.header("authorization").is_none() && head.parameter("sig").is_none() => outer.clone(),
            _ => asked.authorise(head)?,
        };
        if secondary.is_some() && !op.reads() {
            return Err(e::INSUFFICIENT_ACCOUNT.into());
        }
        if op == Op::GetServiceStats && secondary.is_none() {
            return Err(Failure::query("comp", "stats", ""));
        }
        if address.level != Level::Service {
            names::container(&address.container)?;
        }
        if address.level == Level::Blob {
            names::blob(&address.blob)?;
        }
        Ok(Ctx {
            service: self,
            model: &self.model,
            account,
            head,
            now,
            version,
            op,
            container: address.container,
            blob: address.blob,
            caller,
            request_id: "",
            lowered: Lowered::default(),
            fetched: None,
        })
    }

    /// The version a request is to be served by.
    fn version(&self, head: &Head) -> Outcome<&'static str> {
        let known = |text: &str| VERSIONS.binary_search(&text).ok().map(|at| VERSIONS[at]);
        if let Some(text) = head.header("x-ms-version") {
            return known(text).ok_or_else(|| Failure::header("x-ms-version", text));
        }
        if let Some(text) = head.parameter("api-version").or_else(|| head.parameter("sv")) {
            return known(text).ok_or_else(|| Failure::query("sv", text, ""));
        }
        if head.header("authorization").is_some() {
            return Err(Failure::missing_header("x-ms-version"));
        }
        let account = head.path.trim_start_matches('/').split('/').next().unwrap_or("");
        let account = self.model.account(account.trim_end_matches("-secondary"));
        let set = account.and_then(|a| lock(&a.service).default_version.clone());
        Ok(set.as_deref().and_then(known).unwrap_or(ANONYMOUS_VERSION))
    }

    /// Unique, and in the form of the service's.
    fn request_id(&self, now: Ticks) -> String {
        // Relaxed: only uniqueness is needed.
        let count = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(36);
        hex(&mut id, count & 0xffff_ffff, 8);
        id.push_str("-001e-0000-");
        hex(&mut id, count >> 32 & 0xffff, 4);
        id.push('-');
        hex(&mut id, now & 0xffff_ffff_ffff, 12);
        id
    }
}

/// A path taken apart: `/account[/container[/blob]]`, decoded.
pub(crate) struct Address {
    pub(crate) account: String,
    pub(crate) container: String,
    pub(crate) blob: String,
    pub(crate) level: Level,
}

impl Address {
    /// Takes a wire path apart. One segment after the account is a container; a blob of `$root` is named with it.
    pub(crate) fn of(path: &str) -> Outcome<Address> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut segments = path.splitn(3, '/');
        let mut next = || names::decode(segments.next().unwrap_or(""));
        let (account, container, blob) = (next()?, next()?, next()?);
        let level = match (container.is_empty(), blob.is_empty()) {
            (true, _) => Level::Service,
            (false, true) => Level::Container,
            (false, false) => Level::Blob,
        };
        Ok(Address { account, container, blob, level })
    }
}

/// What every request has to have right.
fn check_common(head: &Head) -> Outcome<()> {
    if let Some(timeout) = head.parameter("timeout")
        && plain_number(timeout).is_none_or(|seconds| seconds == 0)
    {
        return Err(Failure::query("timeout", timeout, ""));
    }
    if let Some(id) = head.headers.bytes("x-ms-client-request-id")
        && (id.len() > 1024 || !id.iter().all(|b| (0x20..0x7f).contains(b)))
    {
        return Err(Failure::header("x-ms-client-request-id", ""));
    }
    let sends = matches!(head.method.as_str(), "PUT" | "POST");
    if head.length == BodyLength::Chunked || (sends && head.length == BodyLength::Absent) {
        return Err(e::LENGTH_REQUIRED.into());
    }
    Ok(())
}

async fn serve(ctx: &Ctx<'_>, body: &mut Body<'_>) -> Outcome {
    check_common(ctx.head)?;
    match ctx.op {
        Op::PutBlob => ops::put::put_blob(ctx, body).await,
        Op::PutBlock => ops::blocks::put_block(ctx, body).await,
        Op::AppendBlock => ops::append::append_block(ctx, body).await,
        Op::PutPage => ops::page::put_page(ctx, body).await,
        Op::BlobBatch => {
            let bytes = collected(body).await?;
            ops::batch::run(ctx, &bytes)
        }
        _ => {
            let bytes = collected(body).await?;
            ops::run(ctx, &bytes)
        }
    }
}

async fn collected(body: &mut Body<'_>) -> Outcome<Vec<u8>> {
    if body.remaining() > COLLECT_LIMIT {
        return Err(Failure::too_large(COLLECT_LIMIT));
    }
    store::collect(body).await.map_err(|error| received(&error))
}

/// A body that could not be received: cut off by the client, who will not see the answer, or our disk, and who will.
pub(crate) fn received(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => e::INVALID_INPUT.into(),
        _ => super::state::internal(error),
    }
}
