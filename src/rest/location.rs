//! Where something lives at the service: host, account, container, blob, and the SAS that came with the URL.
//!
//! Names are raw (decoded) inside and percent-encoded once, when a wire path is made. URLs are taken apart by hand: a general
//! URL parser removes dot segments and would address another blob than the one that was named.

use crate::error::{Error, Kind, Result};
use crate::rest::auth::sas::Token;
use crate::secret::SafeUrl;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::net::IpAddr;

/// How the connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plain; for emulators.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// Port where the URL names none.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// A place at the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Plain or TLS.
    pub scheme: Scheme,
    /// Host name or address, lower case; an IPv6 address without brackets.
    pub host: String,
    /// Port, where the URL names one.
    pub port: Option<u16>,
    /// Account; `None` for a custom domain that does not tell.
    pub account: Option<String>,
    /// Whether the account is the first segment of the path (emulators, appliances, addresses) rather than in the host.
    pub path_style: bool,
    /// Container.
    pub container: Option<String>,
    /// Blob or prefix, raw; never empty; may hold `//` and end in `/`.
    pub blob: Option<String>,
    /// SAS that came with the URL, byte for byte.
    pub sas: Option<Token>,
    /// Whether this is the embedded service behind `dev://`: its address, another one each time, is nobody's to know, and messages
    /// show the place as it is written.
    pub embedded: bool,
}

/// Everything but unreserved characters (RFC 3986, 2.3) is escaped in a path; slashes separate.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const BLOB: &AsciiSet = &SEGMENT.remove(b'/');
/// `$root`, `$web` and `$logs` go plainly.
const CONTAINER: &AsciiSet = &SEGMENT.remove(b'$');

fn refused(url: &str, what: impl std::fmt::Display, advice: &str) -> Error {
    Error::new(Kind::Usage, format!("cannot use the URL {}: {what}", SafeUrl::new(url))).with_advice(advice)
}

impl Location {
    /// Takes an `http://` or `https://` URL apart.
    ///
    /// # Errors
    /// `Usage`, with advice, and with the signature taken out of the URL it shows.
    pub fn parse(url: &str) -> Result<Location> {
        let wrong = |what: &str, advice: &str| refused(url, what, advice);
        let (scheme, rest) = url
            .split_once("://")
            .and_then(|(scheme, rest)| match scheme.to_ascii_lowercase().as_str() {
                "http" => Some((Scheme::Http, rest)),
                "https" => Some((Scheme::Https, rest)),
                _ => None,
            })
            .ok_or_else(|| wrong("it does not begin with https://", "write https://ACCOUNT.blob.core.windows.net/CONTAINER"))?;
        if rest.contains('#') {
            return Err(wrong("a # ends a URL", "write %23 for a # in a name"));
        }
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_authority(authority).map_err(|(what, advice)| wrong(what, advice))?;
        let path = percent_decode_path(path).map_err(|(what, advice)| wrong(what, advice))?;
        let mut path = path.strip_prefix('/').unwrap_or(&path);

        let path_style = is_path_style(&host, port);
        let account = if path_style {
            let (account, rest) = path.split_once('/').unwrap_or((path, ""));
            path = rest;
            if account.is_empty() {
                return Err(wrong(
                    "the account is missing",
                    "on this host the account is the first part of the path: http://HOST:PORT/ACCOUNT/CONTAINER",
                ));
            }
            Some(account.to_owned())
        } else {
            account_of_host(&host).map_err(|(what, advice)| wrong(what, advice))?
        };
        let (container, blob) = path.split_once('/').unwrap_or((path, ""));
        if container.is_empty() && !blob.is_empty() {
            return Err(wrong(
                "the container is missing",
                "write https://HOST/CONTAINER/BLOB with one slash before the container",
            ));
        }
        if query.is_some_and(|query| !query.is_empty() && !looks_like_pairs(query)) {
            return Err(wrong(
                "what follows the first ? is no SAS",
                "write %3F for a ? in a name or pattern; in az:// and dev:// places it is a character like any other",
            ));
        }
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let sas = match query {
            None | Some("") => None,
            Some(query) => Some(Token::parse(query).map_err(|e| e.context(format!("cannot use the URL {}", SafeUrl::new(url))))?),
        };
        Ok(Location {
            scheme,
            host,
            port,
            account,
            path_style,
            container: some(container),
            blob: some(blob),
            sas,
            embedded: false,
        })
    }

    /// The same place, of this account; for custom domains.
    #[must_use]
    pub fn with_account(mut self, account: &str) -> Self {
        self.account = Some(account.to_owned());
        self
    }

    /// Wire path of the account: `/` or `/account`.
    pub fn account_path(&self) -> String {
        match self.path_prefix() {
            "" => "/".to_owned(),
            account => format!("/{}", utf8_percent_encode(account, SEGMENT)),
        }
    }

    /// Wire path of a container, percent-encoded: `/container` or `/account/container`.
    pub fn container_path(&self, container: &str) -> String {
        let mut out = String::with_capacity(container.len() + 32);
        self.push_container(&mut out, container);
        out
    }

    /// Wire path of a blob, percent-encoded; slashes stay.
    pub fn blob_path(&self, container: &str, blob: &str) -> String {
        let mut out = String::with_capacity(container.len() + blob.len() + 48);
        self.push_container(&mut out, container);
        out.push('/');
        out.extend(utf8_percent_encode(blob, BLOB));
        out
    }

    fn push_container(&self, out: &mut String, container: &str) {
        for (part, set) in [(self.path_prefix(), SEGMENT), (container, CONTAINER)] {
            if !part.is_empty() {
                out.push('/');
                out.extend(utf8_percent_encode(part, set));
            }
        }
    }

    fn path_prefix(&self) -> &str {
        if self.path_style { self.account.as_deref().unwrap_or_default() } else { "" }
    }

    /// What goes into the `Host` header: the port is there only if the URL names it; an IPv6 address has its brackets.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match self.port {
            Some(port) if port != self.scheme.default_port() => format!("{host}:{port}"),
            _ => host,
        }
    }

    /// Port to connect to.
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or(self.scheme.default_port())
    }

    /// Whether this is at the same service as another place, of the same account.
    pub fn is_beside(&self, other: &Location) -> bool {
        let service = |place: &Location| (place.scheme, place.host.clone(), place.port_or_default(), place.account.clone());
        service(self) == service(other)
    }

    /// Whether the host is this machine: `localhost`, `*.localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    /// The whole place, for messages.
    pub fn safe(&self) -> SafeUrl {
        match (&self.container, &self.blob) {
            (Some(container), Some(blob)) => self.safe_path(&self.blob_path(container, blob)),
            _ => self.safe_container(),
        }
    }

    /// The container of this place, for messages; the account where it names none.
    pub fn safe_container(&self) -> SafeUrl {
        self.safe_path(&self.container.as_ref().map_or_else(|| self.account_path(), |container| self.container_path(container)))
    }

    /// A blob in the container of this place, for messages; the place itself where it names no container.
    pub fn safe_blob(&self, blob: &str) -> SafeUrl {
        match &self.container {
            Some(container) => self.safe_path(&self.blob_path(container, blob)),
            None => self.safe(),
        }
    }

    /// What a wire path is the path of, for messages.
    pub(super) fn safe_path(&self, path: &str) -> SafeUrl {
        if self.embedded {
            let names = path.trim_start_matches('/').split_once('/').map_or("", |(_account, names)| names);
            return SafeUrl::new(&format!("dev://{}", percent_decode_str(names).decode_utf8_lossy()));
        }
        SafeUrl::new(&format!("{}://{}{path}", self.scheme.as_str(), self.authority()))
    }
}

/// Whether a query begins with `NAME=`. The rest of a path with a wildcard in it does not, also with a SAS behind it.
fn looks_like_pairs(query: &str) -> bool {
    // A SAS may have a ? of its own, or quotes around it.
    let first = query.trim_start_matches(['?', '"', '\'', ' ']);
    let name = first.split('&').next().and_then(|pair| pair.split_once('=')).map(|(name, _)| name);
    name.is_some_and(|name| !name.contains(['/', '*', '?']))
}

type Wrong = (&'static str, &'static str);

fn split_authority(authority: &str) -> Result<(String, Option<u16>), Wrong> {
    if authority.contains('@') {
        return Err((
            "it holds a user name or password",
            "give the account key through AZURE_STORAGE_KEY, or a SAS in the query",
        ));
    }
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or(("the [ of an IPv6 address is not closed", "write [::1]"))?;
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(("there is no IPv6 address between the brackets", "write [::1]"));
        }
        (address, after.strip_prefix(':').or(if after.is_empty() { None } else { Some(after) }))
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if host.is_empty() || !host.chars().all(allowed) {
        return Err(("the host name is missing or has characters that no host name has", "check the part after https://"));
    }
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(
            port.parse().map_err(|_| ("the port is no number from 0 to 65535", "an IPv6 address needs brackets: [::1]:10000"))?,
        ),
    };
    Ok((host.to_ascii_lowercase(), port))
}

fn percent_decode_path(path: &str) -> Result<String, Wrong> {
    let bytes = path.as_bytes();
    for (i, _) in path.match_indices('%') {
        if !bytes.get(i + 1..i + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
            return Err(("a % in it is not followed by two hexadecimal digits", "write %25 for a % in a name"));
        }
    }
    match percent_decode_str(path).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(("its percent-encoding is not UTF-8", "names of blobs are UTF-8 before they are percent-encoded")),
    }
}

/// Addresses, this machine, and the ports of emulators have the account in the path.
fn is_path_style(host: &str, port: Option<u16>) -> bool {
    host.parse::<IpAddr>().is_ok()
        || ["localhost", "host.docker.internal"].contains(&host)
        || (matches!(port, Some(10_000..=10_002)) && !host.ends_with(".blob.localhost"))
}

/// `account[-secondary][-ipv6].[zNN.]blob.SUFFIX` tells its account; a custom domain does not.
fn account_of_host(host: &str) -> Result<Option<String>, Wrong> {
    let mut labels = host.split('.');
    let first = labels.next().unwrap_or_default();
    let second = labels.next();
    let is_zone = |label: &str| label.len() >= 2 && label.starts_with('z') && label[1..].bytes().all(|c| c.is_ascii_digit());
    let service = match second {
        Some(zone) if is_zone(zone) => labels.next(),
        other => other,
    };
    match service {
        Some("blob") => Ok(Some(first.split('-').next().unwrap_or(first).to_owned())),
        Some("dfs") => Err(("dfs is the Data Lake endpoint of the account", "write blob in place of dfs; it is the same data")),
        Some("file" | "queue" | "table" | "web") if host.contains(".core.") || host.contains(".storage.azure.net") => {
            Err(("it is not a Blob endpoint", "the host of a Blob endpoint is ACCOUNT.blob.core.windows.net"))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIG: &str = "i1ix8xG6uOWeTnMqpC6XLG%2BwSvp0IdwY3HAiCNkRZSk%3D";

    #[test]
    fn urls_are_taken_apart() {
        // host, port, account, path style, container, blob
        type Parts<'a> = (&'a str, Option<u16>, Option<&'a str>, bool, Option<&'a str>, Option<&'a str>);
        let cases: &[(&str, Parts<'_>)] = &[
            ("https://acct.blob.core.windows.net", ("acct.blob.core.windows.net", None, Some("acct"), false, None, None)),
            ("https://acct.blob.core.windows.net/", ("acct.blob.core.windows.net", None, Some("acct"), false, None, None)),
            ("HTTPS://Acct.Blob.Core.Windows.Net/c", ("acct.blob.core.windows.net", None, Some("acct"), false, Some("c"), None)),
            ("https://acct.blob.core.windows.net/c/", ("acct.blob.core.windows.net", None, Some("acct"), false, Some("c"), None)),
            (
                "https://acct.blob.core.windows.net/c/a//b/",
                ("acct.blob.core.windows.net", None, Some("acct"), false, Some("c"), Some("a//b/")),
            ),
            (
                "https://acct.blob.core.windows.net/c/..%2Fx/../y%20%23%3f%25",
                ("acct.blob.core.windows.net", None, Some("acct"), false, Some("c"), Some("../x/../y #?%")),
            ),
            (
                "https://acct-secondary-ipv6.blob.core.windows.net/$root/b",
                ("acct-secondary-ipv6.blob.core.windows.net", None, Some("acct"), false, Some("$root"), Some("b")),
            ),
            (
                "https://acct.z01.blob.storage.azure.net/c",
                ("acct.z01.blob.storage.azure.net", None, Some("acct"), false, Some("c"), None),
            ),
            (
                "https://acct.blob.core.usgovcloudapi.net:443/c",
                ("acct.blob.core.usgovcloudapi.net", Some(443), Some("acct"), false, Some("c"), None),
            ),
            ("https://files.example.org/c/b", ("files.example.org", None, None, false, Some("c"), Some("b"))),
            (
                "http://127.0.0.1:10000/devstoreaccount1/c/b",
                ("127.0.0.1", Some(10000), Some("devstoreaccount1"), true, Some("c"), Some("b")),
            ),
            ("http://[::1]:10000/a/c", ("::1", Some(10000), Some("a"), true, Some("c"), None)),
            ("http://[::1]/a", ("::1", None, Some("a"), true, None, None)),
            ("http://localhost:4711/a/c", ("localhost", Some(4711), Some("a"), true, Some("c"), None)),
            ("http://azurite:10000/a/c", ("azurite", Some(10000), Some("a"), true, Some("c"), None)),
            ("http://a.blob.localhost:10000/c", ("a.blob.localhost", Some(10000), Some("a"), false, Some("c"), None)),
        ];
        for (url, expected) in cases {
            let l = Location::parse(url).unwrap_or_else(|e| panic!("{url}: {e}"));
            let got = (&*l.host, l.port, l.account.as_deref(), l.path_style, l.container.as_deref(), l.blob.as_deref());
            assert_eq!(got, *expected, "{url}");
        }
    }

    #[test]
    fn bad_urls_are_refused_with_advice_and_without_secrets() {
        for (url, word) in [
            ("ftp://acct.blob.core.windows.net/c", "https://"),
            ("acct.blob.core.windows.net/c", "https://"),
            ("https:///c", "host name"),
            ("https://a b/c", "host name"),
            ("https://u:secret@a.blob.core.windows.net/c", "user name"),
            ("https://a.blob.core.windows.net/c/x#y", "#"),
            ("https://a.blob.core.windows.net/c/x%zz", "hexadecimal"),
            ("https://a.blob.core.windows.net/c/x%F", "hexadecimal"),
            ("https://a.blob.core.windows.net/c/%FF", "UTF-8"),
            ("https://a.blob.core.windows.net//b", "container is missing"),
            ("https://a.dfs.core.windows.net/c", "Data Lake"),
            ("https://a.queue.core.windows.net/c", "not a Blob endpoint"),
            ("http://127.0.0.1:10000", "account is missing"),
            ("http://[::1/a", "not closed"),
            ("http://[nonsense]/a", "IPv6"),
            ("https://a.blob.core.windows.net:port/c", "port"),
            ("https://a.blob.core.windows.net/c?restype=container", "cannot use the URL"),
            ("https://a.blob.core.windows.net/c?sig=secret", "cannot use the URL"),
            ("https://a.blob.core.windows.net/c/s?b/*", "first ? is no SAS"),
            ("https://a.blob.core.windows.net/c/s?b/*?sv=1&sig=secret", "first ? is no SAS"),
        ] {
            let error = Location::parse(url).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{url}");
            assert!(error.to_string().contains(word), "{url}: {error}");
            assert!(error.advice().is_some(), "{url}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }

    #[test]
    fn names_are_encoded_once_and_come_back() {
        let printable: String = (' '..='~').collect();
        for blob in
            ["a%zz.txt", "abc.%22", "%2F", "[test].txt", "-x", "a ", "a.", "a\nb\tc", "é", "e\u{301}", "😀", "a//b/", &printable]
        {
            for base in ["https://acct.blob.core.windows.net/c", "http://[::1]:10000/acct/c"] {
                let base = Location::parse(base).unwrap();
                let path = base.blob_path("c", blob);
                assert!(path.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~/%".contains(&b)), "{path}");
                let url = format!("{}://{}{path}", base.scheme.as_str(), base.authority());
                assert_eq!(Location::parse(&url).unwrap(), Location { blob: Some(blob.to_owned()), ..base }, "{url}");
            }
        }
    }

    #[test]
    fn wire_paths_hold_the_account_where_the_host_does_not() {
        let host = Location::parse("https://acct.blob.core.windows.net").unwrap();
        let path = Location::parse("http://127.0.0.1:10000/acct").unwrap();
        assert_eq!((host.account_path().as_str(), path.account_path().as_str()), ("/", "/acct"));
        assert_eq!((host.container_path("$web").as_str(), path.container_path("c").as_str()), ("/$web", "/acct/c"));
        let name = "папка/naïve file #1?.txt";
        assert_eq!(
            path.blob_path("vectors", name),
            "/acct/vectors/%D0%BF%D0%B0%D0%BF%D0%BA%D0%B0/na%C3%AFve%20file%20%231%3F.txt"
        );
    }

    #[test]
    fn authority_and_loopback() {
        for (url, authority, loopback) in [
            ("http://[::1]:10000/a", "[::1]:10000", true),
            ("http://127.8.9.1/a", "127.8.9.1", true),
            ("http://localhost:80/a", "localhost", true),
            ("http://a.blob.localhost:10000", "a.blob.localhost:10000", true),
            ("https://a.blob.core.windows.net:443/", "a.blob.core.windows.net", false),
            ("http://10.0.0.1:10000/a", "10.0.0.1:10000", false),
            ("http://localhost.example.org/", "localhost.example.org", false),
        ] {
            let l = Location::parse(url).unwrap();
            assert_eq!((l.authority().as_str(), l.is_loopback()), (authority, loopback), "{url}");
        }
    }

    #[test]
    fn safe_url_names_the_thing_and_no_signature() {
        let l = Location::parse(&format!("https://a.blob.core.windows.net/c/d?sv=1&sig={SIG}")).unwrap();
        assert_eq!(l.safe().to_string(), "https://a.blob.core.windows.net/c/d");
        assert_eq!(l.safe_blob("x y").to_string(), "https://a.blob.core.windows.net/c/x%20y");
        assert!(!format!("{l:?}").contains(SIG));
        assert_eq!(l.sas.unwrap().expose(), format!("sv=1&sig={SIG}"));
    }
}
