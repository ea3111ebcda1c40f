//! Making a connection: name, port, proxy, TLS. Says whether a failure can heal.
//!
//! Proxies come from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` as curl reads them, with user and password
//! percent-decoded; this machine is never reached through a proxy.

use crate::ciphers;
use crate::error::{Error, Kind, Result};
use crate::rest::location::{Location, Scheme};
use crate::rest::queued;
use crate::rest::stats::Stats;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, pki_types::ServerName};

/// Name, TCP, proxy and TLS together may take this long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Unsent plain text a TLS connection holds: 16 records in one system call instead of one each (0.3 CPU s/GiB less).
const TLS_BUFFER: usize = 256 * 1024;

/// Which proxy to use for which host.
#[derive(Clone)]
pub struct Proxies(Arc<Matcher>);

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxies")
    }
}

impl Proxies {
    /// As the environment says.
    pub fn from_env() -> Proxies {
        Proxies(Arc::new(Matcher::from_env()))
    }

    /// No proxy at all.
    pub fn none() -> Proxies {
        Proxies::new("", "", "")
    }

    /// As the variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` with these values would say.
    pub fn new(http: &str, https: &str, no: &str) -> Proxies {
        let (http, https, no) = (http.to_owned(), https.to_owned(), no.to_owned());
        Proxies(Arc::new(Matcher::builder().http(http).https(https).no(no).build()))
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Trying again cannot heal it: said by the error, which is final.
    Final(Error),
    /// The host is unknown or the port refused: final at first, worth another try where it worked before.
    Nobody(Error),
    /// Timeouts, resets.
    Passing(io::Error),
}

/// What moves on a connection, for the watchdog.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The socket beneath, to ask the kernel about.
    socket: RawFd,
    /// Bytes in both directions since the last whole answer, or since the connection was made.
    unsettled: AtomicU64,
    /// Bytes in both directions.
    pub(crate) moved: AtomicU64,
    /// Bytes received.
    pub(crate) received: AtomicU64,
    /// The body waits for its share of the capped rate.
    pub(crate) waiting: Arc<AtomicBool>,
}

impl Activity {
    fn on(socket: RawFd) -> Activity {
        Activity {
            socket,
            unsettled: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            received: AtomicU64::new(0),
            waiting: Arc::default(),
        }
    }

    /// Bytes that were sent and not yet acknowledged by the other side's kernel, where that can be known.
    pub(crate) fn unacknowledged(&self) -> Option<u64> {
        queued::unacknowledged(self.socket)
    }

    /// What was sent has been answered, or never will be.
    pub(crate) fn settle(&self, stats: &Stats) {
        stats.bytes_under_way.fetch_sub(self.unsettled.swap(0, Relaxed), Relaxed);
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that counts.
pub(crate) struct Wire {
    stream: Stream,
    activity: Arc<Activity>,
    stats: Arc<Stats>,
}

impl Wire {
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    fn sent(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(n)) = result {
            self.activity.moved.fetch_add(n as u64, Relaxed);
            self.activity.unsettled.fetch_add(n as u64, Relaxed);
            self.stats.bytes_under_way.fetch_add(n as u64, Relaxed);
            self.stats.bytes_sent.fetch_add(n as u64, Relaxed);
        }
        result
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.activity.settle(&self.stats);
    }
}

macro_rules! on_stream {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.stream {
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

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = on_stream!(self, s => s.poll_read(cx, buf));
        let n = (buf.filled().len() - before) as u64;
        if n > 0 {
            self.activity.moved.fetch_add(n, Relaxed);
            self.activity.received.fetch_add(n, Relaxed);
            self.activity.unsettled.fetch_add(n, Relaxed);
            self.stats.bytes_under_way.fetch_add(n, Relaxed);
            self.stats.bytes_received.fetch_add(n, Relaxed);
        }
        result
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = on_stream!(self, s => s.poll_write(cx, buf));
        self.sent(result)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let result = on_stream!(self, s => s.poll_write_vectored(cx, bufs));
        self.sent(result)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, s => s.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, s => s.poll_shutdown(cx))
    }
}

/// Makes connections to one service.
pub(crate) struct Connector {
    host: String,
    port: u16,
    tls: Option<(tokio_rustls::TlsConnector, ServerName<'static>)>,
    proxy: Option<Intercept>,
    stats: Arc<Stats>,
}

impl Connector {
    /// # Errors
    /// `Usage` for a proxy of a kind that is not supported, and where no certificate authority is known.
    pub(crate) fn new(location: &Location, proxies: &Proxies, stats: Arc<Stats>) -> Result<Connector> {
        let proxy = if location.is_loopback() { None } else { proxy_for(location, proxies)? };
        let tls = match location.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let name = ServerName::try_from(location.host.clone()).map_err(|e| {
                    Error::new(Kind::Usage, format!("{} is no name a certificate can have", location.host)).with_source(e)
                })?;
                Some((tokio_rustls::TlsConnector::from(tls_config()?), name))
            }
        };
        Ok(Connector { host: location.host.clone(), port: location.port_or_default(), tls, proxy, stats })
    }

    /// The proxy that gets requests in absolute form, with the value of `Proxy-Authorization`: for plain requests only, TLS goes
    /// through it as through a pipe.
    pub(crate) fn forward_proxy(&self) -> Option<&Intercept> {
        self.proxy.as_ref().filter(|_| self.tls.is_none())
    }

    /// Makes a connection.
    pub(crate) async fn connect(&self) -> Result<Wire, Refusal> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.open()).await {
            Ok(result) => result,
            Err(_) => {
                let text = format!("no connection to {} within {} s", self.peer(), CONNECT_TIMEOUT.as_secs());
                Err(Refusal::Passing(io::Error::new(io::ErrorKind::TimedOut, text)))
            }
        }
    }

    /// Host and port that TCP goes to, for messages.
    fn peer(&self) -> String {
        let (host, port) = self.dial();
        if self.proxy.is_some() { format!("the proxy {host}:{port}") } else { format!("{host}:{port}") }
    }

    fn dial(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => {
                (proxy.uri().host().unwrap_or_default().trim_matches(['[', ']']), proxy.uri().port_u16().unwrap_or(80))
            }
            None => (&self.host, self.port),
        }
    }

    async fn open(&self) -> Result<Wire, Refusal> {
        let (host, port) = self.dial();
        let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(ip) => vec![(ip, port).into()],
            Err(_) => tokio::net::lookup_host((host, port)).await.map_err(|e| self.nobody("cannot find the host", e))?.collect(),
        };
        let mut tcp = Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
        // Each address has its share of the time: one that swallows packets must not keep us from the next.
        let share = CONNECT_TIMEOUT / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        for address in addresses {
            tcp = tokio::time::timeout(share, TcpStream::connect(address)).await.unwrap_or_else(|late| Err(late.into()));
            if tcp.is_ok() {
                break;
            }
        }
        let mut tcp = tcp.map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Refusal::Passing(e),
            _ => self.nobody("cannot connect to", e),
        })?;
        tcp.set_nodelay(true).map_err(Refusal::Passing)?;
        let activity = Arc::new(Activity::on(tcp.as_raw_fd()));
        let stream = match &self.tls {
            None => Stream::Plain(tcp),
            Some((connector, name)) => {
                if let Some(proxy) = &self.proxy {
                    self.tunnel(&mut tcp, proxy).await?;
                }
                let mut tls = connector.connect(name.clone(), tcp).await.map_err(|e| self.tls_refusal(e))?;
                tls.get_mut().1.set_buffer_limit(Some(TLS_BUFFER));
                Stream::Tls(Box::new(tls))
            }
        };
        Ok(Wire { stream, activity, stats: self.stats.clone() })
    }

    fn nobody(&self, what: &str, cause: io::Error) -> Refusal {
        let error = Error::new(Kind::Unreachable, format!("{what} {}", self.peer())).with_source(cause);
        Refusal::Nobody(error.with_advice(if self.proxy.is_some() {
            "check HTTPS_PROXY and HTTP_PROXY; NO_PROXY names hosts to reach without them"
        } else {
            "check the host in the URL, and whether a firewall or a missing proxy setting stands in between"
        }))
    }

    fn tls_refusal(&self, cause: io::Error) -> Refusal {
        let tls = cause.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
        let advice = match tls {
            None => return Refusal::Passing(cause),
            Some(rustls::Error::InvalidCertificate(_)) => {
                "if a proxy that inspects TLS stands in between, put its CA certificate into the system's store or name its file in SSL_CERT_FILE"
            }
            Some(_) => "check that the port speaks TLS; for an emulator without TLS write http://",
        };
        let error = Error::new(Kind::Unreachable, format!("cannot set up TLS with {}:{}", self.host, self.port));
        Refusal::Final(error.with_source(cause).with_advice(advice))
    }

    /// Asks the proxy for a pipe to the service (RFC 9110, 9.3.6).
    async fn tunnel(&self, tcp: &mut TcpStream, proxy: &Intercept) -> Result<(), Refusal> {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n", port = self.port).into_bytes();
        if let Some(value) = proxy.basic_auth() {
            head.extend_from_slice(b"Proxy-Authorization: ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        tcp.write_all(&head).await.map_err(Refusal::Passing)?;
        let status = read_connect_status(tcp).await.map_err(Refusal::Passing)?;
        let error = |what: &str| Error::new(Kind::Unreachable, format!("{} {what} (status {status})", self.peer()));
        match status {
            200..=299 => Ok(()),
            407 => Err(Refusal::Final(
                error("wants a user and a password")
                    .with_advice("write HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, special characters percent-encoded"),
            )),
            408 | 429 | 500..=599 => {
                Err(Refusal::Passing(io::Error::other(format!("the proxy answered CONNECT with status {status}"))))
            }
            _ => Err(Refusal::Final(error("does not let us through to the service"))),
        }
    }
}

/// Reads an answer's head byte by byte: what follows it belongs to TLS.
async fn read_connect_status(tcp: &mut TcpStream) -> io::Result<u16> {
    const LIMIT: usize = 16 * 1024;
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == LIMIT {
            return Err(io::Error::other("the proxy's answer to CONNECT is too long"));
        }
        head.push(tcp.read_u8().await?);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(&head) {
        Ok(_) => response.code.ok_or_else(|| io::Error::other("the proxy's answer to CONNECT has no status")),
        Err(e) => Err(io::Error::other(e)),
    }
}

fn proxy_for(location: &Location, proxies: &Proxies) -> Result<Option<Intercept>> {
    let url = format!("{}://{}/", location.scheme.as_str(), location.authority());
    let uri: http::Uri = url.parse().map_err(|e| Error::new(Kind::Usage, format!("{url} is no URL")).with_source(e))?;
    match proxies.0.intercept(&uri) {
        Some(proxy) if proxy.uri().scheme_str() != Some("http") => {
            let scheme = proxy.uri().scheme_str().unwrap_or_default();
            Err(Error::new(Kind::Usage, format!("cannot use a proxy spoken to by {scheme}"))
                .with_advice("name an http:// proxy in HTTPS_PROXY; the connection to the service itself stays encrypted"))
        }
        proxy => Ok(proxy),
    }
}

fn tls_config() -> Result<Arc<ClientConfig>> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ciphers::provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::new(Kind::Usage, "cannot set up TLS").with_source(e))?
        .with_root_certificates(trusted_roots()?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The system's authorities, or those of `SSL_CERT_FILE`/`SSL_CERT_DIR`; the bundled ones only where the system has none.
fn trusted_roots() -> Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    if ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|name| std::env::var_os(name).is_some()) {
        let error = Error::new(Kind::Usage, "cannot read a certificate from SSL_CERT_FILE or SSL_CERT_DIR");
        return Err(match found.errors.into_iter().next() {
            Some(cause) => error.with_source(cause),
            None => error,
        });
    }
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connector(url: &str, proxies: &Proxies) -> Result<Connector> {
        Connector::new(&Location::parse(url).unwrap(), proxies, Arc::default())
    }

    #[test]
    fn proxies_are_chosen_as_the_variables_say() {
        let proxies = Proxies::new("http://plain:8080", "http://us%40er:p%3Aw@secure:3128", "inside.test");
        for (url, dials) in [
            ("http://a.blob.outside.test/c", ("plain", 8080)),
            ("https://a.blob.outside.test/c", ("secure", 3128)),
            ("http://a.blob.inside.test/c", ("a.blob.inside.test", 80)),
            ("http://127.0.0.1:10000/a/c", ("127.0.0.1", 10000)),
            ("http://localhost:10000/a/c", ("localhost", 10000)),
        ] {
            assert_eq!(connector(url, &proxies).unwrap().dial(), dials, "{url}");
        }
        let secure = connector("https://a.blob.outside.test/c", &proxies).unwrap();
        assert!(secure.forward_proxy().is_none());
        // us@er:p:w
        assert_eq!(secure.proxy.unwrap().basic_auth().unwrap(), "Basic dXNAZXI6cDp3");
        let error = connector("http://a.blob.outside.test/c", &Proxies::new("socks5://p:1", "", "")).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage);
    }
}
