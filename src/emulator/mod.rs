//! An embedded Blob service, to try the client on, to test with, and to measure against.
//!
//! It listens on a loopback port, path style (`http://127.0.0.1:PORT/ACCOUNT/container/blob`), and answers as the service does:
//! signatures, versions, conditions, leases, limits and names are checked, each refusal has the service's code. Content is kept
//! in memory, in a folder, or thrown away ([`Storage`]).
//!
//! ```no_run
//! # async fn example() -> blobjet::Result<()> {
//! let emulator = blobjet::emulator::Emulator::builder().start().await?;
//! println!("{}", emulator.connection_string());
//! # emulator.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! Inside: `conn` and `http` move requests and bodies, `service` lets them in (`route`, `auth`), `ops` has one file a family of
//! operations, `state` and `held` the one model behind all storages, `store`, `disk` and `rows` keep bytes and metadata.

mod auth;
mod blob;
mod conditions;
mod conn;
mod digits;
mod disk;
mod drain;
mod errors;
mod fault;
mod fetch;
mod filter;
mod grants;
mod held;
mod http;
mod lease;
mod names;
mod ops;
mod payload;
mod route;
mod rows;
mod service;
mod state;
mod store;
mod stream;
mod tally;
mod time;
mod tls;
mod xml;

pub use fault::{Armed, Fault};

use crate::rest::auth::shared_key::{DEV_ACCOUNT, DEV_KEY, decode_key};
use crate::secret::Secret;
use crate::{Error, Kind, Result};
use service::Service;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use store::Store;
use stream::Stream;
pub use tally::Served;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// Tells the emulator the time. Tests move it; leases, SAS and the like follow.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Where content is kept.
#[derive(Debug, Clone, Default)]
pub enum Storage {
    /// In memory, gone with the emulator.
    #[default]
    Memory,
    /// In this folder. What was answered survives the death of the process; one process at a time.
    Disk(PathBuf),
    /// Nowhere: only names, lengths and properties are kept, so that writing speed can be measured. A declared CRC64 is
    /// believed and echoed, none is computed, an MD5 only where one is sent, and reading content back is refused with 501
    /// `NotImplemented`.
    Discard,
}

/// A request that was served, for tests to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// HTTP method.
    pub method: String,
    /// Path as it was on the wire.
    pub path: String,
    /// Query as it was on the wire, without `?`.
    pub query: String,
    /// Status of the answer; 0 where a fault rule has it end without one.
    pub status: u16,
    /// Length of the request's body in bytes, as declared.
    pub body_len: u64,
    /// Bytes of the body received by the time of the answer.
    pub received: u64,
}

/// Settings of an [`Emulator`] to be.
#[must_use]
pub struct Builder {
    storage: Storage,
    port: u16,
    accounts: Vec<(String, Secret)>,
    clock: Clock,
    record: bool,
    tls: bool,
    faults: Vec<Fault>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("storage", &self.storage).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Builder {
    /// Where content is kept; memory if not said.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Port on 127.0.0.1; 0, the default, takes a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Adds an account with its key in base64. Without any there is the well-known development account.
    pub fn account(mut self, name: impl Into<String>, key: Secret) -> Self {
        self.accounts.push((name.into(), key));
        self
    }

    /// The time by which everything is judged; the system's if not said.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Whether served requests are kept for [`Emulator::seen`]. Off by default, as the list grows.
    pub fn record(mut self, record: bool) -> Self {
        self.record = record;
        self
    }

    /// Speaks TLS, with a certificate made at the start that is vouched for by [`Emulator::authority_pem`]. Plain if not said.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Adds a fault rule, after those given before.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Opens the store, binds the port and starts to serve, on the current tokio runtime.
    ///
    /// # Errors
    /// [`Kind::Usage`]: an account's key is not base64, or a name is given twice. [`Kind::Local`]: the port is taken; the
    /// folder is in use by another process, has a newer format, or cannot be written; no certificate can be made.
    pub async fn start(mut self) -> Result<Emulator> {
        if self.accounts.is_empty() {
            self.accounts.push((DEV_ACCOUNT.to_owned(), Secret::new(DEV_KEY)));
        }
        let mut keys: Vec<(String, Vec<u8>)> = Vec::new();
        for (name, key) in &self.accounts {
            if keys.iter().any(|(other, _)| other == name) {
                return Err(Error::new(Kind::Usage, format!("account {name} is given twice")));
            }
            keys.push((name.clone(), decode_key(key)?));
        }
        let store = match &self.storage {
            Storage::Memory => Store::Memory,
            Storage::Disk(folder) => Store::Disk(Box::new(disk::Disk::open(folder)?)),
            Storage::Discard => Store::Discard,
        };
        let model = state::Model::open(keys, store)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let failed = |e: std::io::Error| Error::new(Kind::Local, format!("cannot listen on {address}")).with_source(e);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let identity = self.tls.then(tls::Identity::generate).transpose()?;
        let (scheme, acceptor, authority_pem) = match identity {
            Some(identity) => ("https", Some(identity.acceptor), Some(identity.authority_pem)),
            None => ("http", None, None),
        };
        let service = Arc::new(Service::new(model, self.clock, self.record, format!("{scheme}://127.0.0.1:{port}")));
        for fault in self.faults {
            service.faults.arm(fault);
        }
        let (stop, stopped) = watch::channel(false);
        let server = tokio::spawn(serve(listener, acceptor, service.clone(), stopped));
        Ok(Emulator { service, port, authority_pem, accounts: self.accounts, stop, server })
    }
}

/// A running Blob service. Dropping it stops it at once; [`stop`](Emulator::stop) lets requests in flight end.
pub struct Emulator {
    service: Arc<Service>,
    port: u16,
    authority_pem: Option<String>,
    accounts: Vec<(String, Secret)>,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// How long [`Emulator::stop`] waits for requests in flight.
const GRACE: Duration = Duration::from_secs(5);

impl Emulator {
    /// Settings to start from.
    pub fn builder() -> Builder {
        Builder {
            storage: Storage::Memory,
            port: 0,
            accounts: Vec::new(),
            clock: Arc::new(SystemTime::now),
            record: false,
            tls: false,
            faults: Vec::new(),
        }
    }

    /// `http://127.0.0.1:PORT/ACCOUNT` of the first account; `https` with [`Builder::tls`].
    pub fn url(&self) -> String {
        format!("{}/{}", self.service.origin, self.account())
    }

    /// The port listened on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Name of the first account.
    pub fn account(&self) -> &str {
        &self.accounts[0].0
    }

    /// Key of the first account, in base64.
    pub fn key(&self) -> &Secret {
        &self.accounts[0].1
    }

    /// A connection string for the first account, as SDKs and tools take it. It holds the key.
    pub fn connection_string(&self) -> String {
        format!(
            "DefaultEndpointsProtocol={};AccountName={};AccountKey={};BlobEndpoint={};",
            if self.service.secure() { "https" } else { "http" },
            self.account(),
            self.key().expose(),
            self.url()
        )
    }

    /// The requests served so far, in the order of their answers; empty unless [`Builder::record`] was on.
    pub fn seen(&self) -> Vec<Seen> {
        self.service.seen.as_ref().map(|seen| state::lock(seen).clone()).unwrap_or_default()
    }

    /// How many requests have come so far, whatever the answer; counted always, unlike [`Emulator::seen`].
    pub fn requests(&self) -> u64 {
        self.service.requests()
    }

    /// Puts a fault rule in force, after those that are; the handle counts its hits and takes it out of force again.
    pub fn fault(&self, fault: Fault) -> Armed {
        self.service.faults.arm(fault)
    }

    /// What has been asked for so far, by operation.
    pub fn served(&self) -> Vec<Served> {
        self.service.tally.served()
    }

    /// The certificate, PEM, that a client has to trust; `None` without TLS.
    pub fn authority_pem(&self) -> Option<&str> {
        self.authority_pem.as_deref()
    }

    /// TLS versions and ciphers that connections have agreed on so far, as `TLSv1_3 TLS13_AES_128_GCM_SHA256`.
    pub fn protocols(&self) -> Vec<String> {
        state::lock(&self.service.protocols).iter().cloned().collect()
    }

    /// Takes no new requests, waits up to 5 s for those in flight, and ends.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let server = &mut self.server;
        // Connections that outlive the grace are cut by the drop that follows.
        let _ = tokio::time::timeout(GRACE, server).await;
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Accepts until told to stop. Connections belong to the set, which cuts them when it is dropped.
async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let for_connections = stopped.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Answers are written whole; waiting to fill a segment only adds delay. Failing is harmless.
                    let _ = stream.set_nodelay(true);
                    let (tls, service, stop) = (tls.clone(), service.clone(), for_connections.clone());
                    connections.spawn(async move {
                        let stream = Stream::accept(stream, tls.as_ref()).await?;
                        if let Some(protocol) = stream.protocol() {
                            state::lock(&service.protocols).insert(protocol);
                        }
                        conn::Conn::new(stream, peer.ip()).run(service, stop).await
                    });
                }
                // Out of descriptors, mostly: give connections time to close.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            // Reaps finished connections; a broken one is its client's concern.
            Some(_) = connections.join_next() => {}
            () = told(&mut stopped) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until the emulator is told to stop, or its owner is gone.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // An error says that the sender is gone.
    let _ = stopped.wait_for(|stop| *stop).await;
}
