//! Plays one recording against a server: what the service made up is replaced by what the server made up, everything is signed
//! afresh, and the clock shows the time of the recording, so that dates in conditions and tokens mean what they meant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blobjet::rest::auth::sas::{Fields, account_string_to_sign, canonical_resource, service_string_to_sign};
use blobjet::rest::auth::shared_key::{ToSign, sign, string_to_sign};
use blobjet::rest::headers::HeaderList;
use http::{HeaderName, HeaderValue};
use md5::Md5;
use sha2::{Digest as _, Sha256};

use super::batch;
use super::compare::{self, Known};
use super::infer;
use super::recording::{Depth, Exchange, Headers, Recording, decoded, encoded, parameters};
use super::wire::{self, Reply};
use super::xml;

/// The server played against, with the account's key.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) account: String,
    pub(crate) key: Vec<u8>,
    pub(crate) clock: Clock,
}

/// A clock that both sides read; it moves only when told to.
#[derive(Clone)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn at(time: Duration) -> Clock {
        Clock(Arc::new(AtomicU64::new(micros(time))))
    }

    pub(crate) fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.since_epoch()
    }

    fn since_epoch(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::SeqCst))
    }

    /// Goes `by` further, and at least to `least`.
    fn advance(&self, by: Duration, least: Option<Duration>) {
        let now = self.since_epoch() + by;
        self.0.store(micros(least.map_or(now, |least| now.max(least))), Ordering::SeqCst);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("recordings are of this age")
}

/// What differs at which exchange.
pub(crate) struct Difference {
    pub(crate) exchange: usize,
    pub(crate) what: String,
}

/// When the recording begins, as far as its answers tell.
pub(crate) fn begins(recording: &Recording) -> Duration {
    let mut waited = 0.0;
    for exchange in &recording.exchanges {
        waited += exchange.wait_s.unwrap_or_default();
        if let Some(time) = said_time(exchange) {
            return time.saturating_sub(Duration::from_secs_f64(waited));
        }
    }
    Duration::from_secs(1_700_000_000)
}

/// The latest time an answer mentions that was not in its future.
fn said_time(exchange: &Exchange) -> Option<Duration> {
    let in_text = exchange.answer_text().split_once("\nTime:").map(|(_, rest)| rest.split('<').next().unwrap_or_default());
    let headers = ["last-modified", "x-ms-snapshot", "x-ms-version-id"].map(|n| exchange.answer_headers.get(n));
    headers.into_iter().flatten().map(String::as_str).chain(in_text).filter_map(instant).max()
}

fn instant(text: &str) -> Option<Duration> {
    let time = jiff::fmt::rfc2822::parse(text).map(|z| z.timestamp()).or_else(|_| text.parse::<jiff::Timestamp>()).ok()?;
    Duration::try_from(time.duration_since(jiff::Timestamp::UNIX_EPOCH)).ok()
}

struct Player<'a> {
    server: &'a Server,
    recording: &'a Recording,
    known: Known,
    /// The hash of a blob that was made up for want of its contents.
    source_md5: Option<String>,
}

/// Plays all of it and tells what differs.
pub(crate) fn play(server: &Server, recording: &Recording) -> Vec<Difference> {
    let mut player = Player { server, recording, known: Known::default(), source_md5: None };
    let mut out = Vec::new();
    for (path, request) in infer::assumed(recording) {
        if let Err(what) = player.assume(&path, request) {
            out.push(Difference { exchange: 0, what });
            return out;
        }
    }
    for (index, exchange) in recording.exchanges.iter().enumerate() {
        server.clock.advance(Duration::from_secs_f64(exchange.wait_s.unwrap_or(0.02)), said_time(exchange));
        let found = match player.send(index, exchange) {
            Ok(reply) => {
                player.note(exchange);
                let found = compare::answers(exchange, &reply, &mut player.known);
                player.markers(exchange, &reply);
                found
            }
            Err(what) => vec![what],
        };
        out.extend(found.into_iter().map(|what| Difference { exchange: index, what }));
    }
    out
}

impl Player<'_> {
    /// Makes what the recording found there.
    fn assume(&mut self, path: &str, request: infer::Request) -> Result<(), String> {
        let mut exchange = self.recording.exchanges[0].clone();
        "PUT".clone_into(&mut exchange.method);
        path.clone_into(&mut exchange.path);
        exchange.query = String::new();
        exchange.secondary = false;
        match exchange.depth() {
            Depth::Account => exchange.query = "restype=service&comp=properties".to_owned(),
            Depth::Container => {
                exchange.query = "restype=container".to_owned();
                self.known.made.insert(path.trim_start_matches('/').to_owned());
            }
            Depth::Blob => {}
        }
        if !request.sure {
            self.known.other_bytes = true;
            self.source_md5 = Some(STANDARD.encode(Md5::digest(&request.body)));
        }
        let reply = self.transmit(&exchange, request.headers, request.body, true)?;
        if [201, 202].contains(&reply.status) { Ok(()) } else { Err(format!("cannot make {path}: {}", reply.status)) }
    }

    fn send(&mut self, index: usize, exchange: &Exchange) -> Result<Reply, String> {
        let (headers, body) = match &exchange.headers {
            Some(headers) => {
                let body = match &exchange.body {
                    None => Vec::new(),
                    Some(body) => body.known().unwrap_or_else(|| {
                        self.known.other_bytes = true;
                        vec![0; body.len()]
                    }),
                };
                (headers.clone(), body)
            }
            None => {
                let request = infer::request(self.recording, index)?;
                self.known.other_bytes |= !request.sure;
                (request.headers, request.body)
            }
        };
        // Nothing else tells that a request carried no credentials.
        let anonymous = exchange.status == 401 || !headers.contains_key("x-ms-version");
        self.transmit(exchange, headers, body, !anonymous)
    }

    fn transmit(&mut self, exchange: &Exchange, headers: Headers, body: Vec<u8>, sign: bool) -> Result<Reply, String> {
        let query = exchange.query.replace("marker=/ACCOUNT/", &format!("marker=/{}/", self.server.account));
        let mut query = self.own_signature(&self.known.tokens.replaced_query(&query), &exchange.path);
        // Only the second location tells how far it is; not every recorder kept the host.
        let secondary = exchange.secondary || (exchange.comp() == "stats" && exchange.status == 200);
        if let Some(token) = self.narrow_token(exchange) {
            query = format!("{query}&{token}");
        }
        let by_query = parameters(&query).iter().any(|(name, _)| name == "sig");
        let mut sent: Vec<(String, String)> = Vec::new();
        for (name, value) in headers {
            if name == "content-length" {
                continue;
            }
            let value = if name == "x-ms-copy-source" {
                self.own_url(&value)
            } else if name == "x-ms-source-content-md5" && exchange.status < 300 {
                self.source_md5.clone().unwrap_or(value)
            } else {
                self.known.tokens.ours(&value).unwrap_or_else(|| customer_key(&value))
            };
            sent.push((name, value));
        }
        let body = match std::str::from_utf8(&body) {
            Ok(text) if exchange.comp() == "batch" => batch::request(text, |part| self.own_part(part)).into_bytes(),
            // Long bodies are contents; short ones may be XML with ids in it.
            Ok(text) if text.len() < 100_000 => self.known.tokens.replaced(text).into_bytes(),
            _ => body,
        };
        if !body.is_empty() || ["PUT", "POST"].contains(&exchange.method.as_str()) {
            sent.push(("content-length".to_owned(), body.len().to_string()));
        }
        if sign && !by_query {
            self.sign(&exchange.method, &exchange.path, secondary, &query, &mut sent);
        }
        let target = self.target(&exchange.path, secondary, &query);
        wire::exchange(self.server.port, &exchange.method, &target, &sent, &body).map_err(|e| format!("no answer: {e}"))
    }

    /// The request target, with the account in front of the path.
    fn target(&self, path: &str, secondary: bool, query: &str) -> String {
        let secondary = if secondary { "-secondary" } else { "" };
        let question = if query.is_empty() { "" } else { "?" };
        format!("/{}{secondary}{path}{question}{query}", self.server.account)
    }

    fn sign(&self, method: &str, path: &str, secondary: bool, query: &str, sent: &mut Vec<(String, String)>) {
        let date = jiff::Timestamp::try_from(self.server.clock.now()).expect("recordings are of this age");
        sent.push(("x-ms-date".to_owned(), date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()));
        let mut map = HeaderList::default();
        for (name, value) in sent.iter() {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("recorded names are names");
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("recorded values are values"));
        }
        let version = sent.iter().find(|(n, _)| n == "x-ms-version").map_or("2019-12-12", |(_, v)| v);
        let path = self.target(path, secondary, "");
        let query = parameters(query);
        let account = &self.server.account;
        let text = string_to_sign(&ToSign { method, account, path: &path, query: &query, headers: &map, version });
        sent.push(("authorization".to_owned(), format!("SharedKey {account}:{}", sign(&self.server.key, &text))));
    }

    /// A query in which `sig=SIG` became a signature of ours over the same parameters.
    fn own_signature(&self, query: &str, path: &str) -> String {
        let found = parameters(query);
        if !found.iter().any(|(name, value)| name == "sig" && value == "SIG") {
            return query.to_owned();
        }
        // One recorder shortened the expiry of its tokens to a word.
        let hour = jiff::Timestamp::try_from(self.server.clock.now() + Duration::from_secs(3600)).expect("this age");
        let later = hour.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let query = query.replace("se=end", &format!("se={later}"));
        let fields = Fields::from_query(&parameters(&query));
        let account = &self.server.account;
        let text = if fields.is_account() {
            account_string_to_sign(account, &fields)
        } else {
            let path = decoded(path.trim_start_matches('/'));
            let (container, blob) = path.split_once('/').map_or((path.as_str(), None), |(c, b)| (c, Some(b)));
            let blob = blob.filter(|_| fields.sr.as_deref() != Some("c"));
            let version = fields.sv.as_deref().unwrap_or_default();
            service_string_to_sign(&canonical_resource(version, account, container, blob), &fields)
        };
        query.replace("sig=SIG", &format!("sig={}", encoded(&sign(&self.server.key, &text))))
    }

    /// An account SAS that lacks what the note of the recording says it lacked.
    fn narrow_token(&self, exchange: &Exchange) -> Option<String> {
        let note = self.recording.note.as_deref().filter(|note| note.contains("carried an account SAS"))?;
        let (services, rights) = if note.contains("ss lacks b") { ("q", "r") } else { ("b", "w") };
        let version = exchange.headers.as_ref()?.get("x-ms-version")?;
        let token = format!("sv={version}&ss={services}&srt=sco&sp={rights}&se=end&sig=SIG");
        Some(self.own_signature(&token, "/"))
    }

    /// A recorded URL as it is here.
    fn own_url(&self, url: &str) -> String {
        let Some((_, rest)) = url.split_once("://ACCOUNT") else { return url.to_owned() };
        let path = rest.find('/').map_or("/", |at| &rest[at..]);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query = self.own_signature(&self.known.tokens.replaced_query(query), path);
        format!("http://127.0.0.1:{}{}", self.server.port, self.target(path, false, &query))
    }

    fn own_part(&self, mut part: batch::Part) -> batch::Part {
        let mut words = part.line.splitn(3, ' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let query = self.known.tokens.replaced_query(query);
        part.headers.retain(|(n, _)| !["authorization", "x-ms-date"].contains(&n.to_ascii_lowercase().as_str()));
        self.sign(&method, path, false, &query, &mut part.headers);
        part.line = format!("{method} {} HTTP/1.1", self.target(path, false, &query));
        part
    }

    /// Notes what this conversation made or set, for answers that also show what others did.
    fn note(&mut self, exchange: &Exchange) {
        if exchange.method != "PUT" || exchange.status >= 300 {
            return;
        }
        match exchange.depth() {
            Depth::Container if exchange.comp().is_empty() => {
                self.known.made.insert(exchange.path.trim_start_matches('/').to_owned());
            }
            Depth::Account if exchange.comp() == "properties" => {
                let text = exchange.body.as_ref().and_then(|b| b.text()).unwrap_or_default();
                if let Ok(root) = xml::parse(text) {
                    self.known.set.extend(root.children.into_iter().map(|c| c.name));
                }
            }
            _ => {}
        }
    }

    /// Pairs what both sides put into listings to be sent back, also where other things differ.
    fn markers(&mut self, exchange: &Exchange, reply: &Reply) {
        let text = String::from_utf8_lossy(&reply.body);
        let (Ok(recorded), Ok(got)) = (xml::parse(exchange.answer_text()), xml::parse(&text)) else { return };
        let _ = self.known.tokens.pair(recorded.text_of("NextMarker"), got.text_of("NextMarker"));
    }
}

/// Any key and its hash where the recording had a customer's key.
fn customer_key(value: &str) -> String {
    let key = |name: &str| name.bytes().cycle().take(32).collect::<Vec<u8>>();
    if let Some(name) = value.strip_prefix("CPK-KEY-") {
        STANDARD.encode(key(name))
    } else if let Some(name) = value.strip_prefix("CPK-SHA256-") {
        STANDARD.encode(Sha256::digest(key(name)))
    } else {
        value.to_owned()
    }
}
