//! Proxies: plain requests in absolute form, TLS through a pipe, user and password on each connection.

use crate::script::{Reply, Script, Seen, answer, config};
use base64::Engine as _;
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::Blob;
use blobjet::rest::client::{Client, Config};
use blobjet::rest::connect::Proxies;
use blobjet::rest::location::Location;
use blobjet::secret::Secret;
use blobjet::{Kind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{CipherSuite, ServerConfig};

/// `us@er:p w`, percent-encoded as in the variable and base64 as in the header.
const USER: &str = "us%40er:p%20w";
const BASIC: &str = "Basic dXNAZXI6cCB3";

async fn put_through(proxy: &Script, url: &str) -> (Client, Result<()>) {
    let proxy_url = format!("http://{USER}@{}", proxy.address);
    let location = Location::parse(url).unwrap();
    let inputs = Inputs { key: Some(Secret::new(blobjet::rest::auth::shared_key::DEV_KEY)), ..Inputs::default() };
    let config = Config { proxies: Proxies::new(&proxy_url, &proxy_url, ""), allow_http: true, ..config() };
    let client = Client::new(&location, choose(&location, &inputs).unwrap(), config).unwrap();
    let data = Chunks::from(vec![1, 2, 3]);
    let result =
        Blob::new(&client, "c", "b").put_blob(&data, data.crc64(), &Attributes::default(), Replace::Always).await.map(drop);
    (client, result)
}

#[tokio::test(start_paused = true)]
async fn plain_requests_go_in_absolute_form_with_a_password() {
    let proxy = Script::start(|_, _| answer(201, "", "")).await;
    put_through(&proxy, "http://acct.blob.example.test:8080/c").await.1.unwrap();
    let seen = &proxy.seen()[0];
    assert_eq!(seen.target, "http://acct.blob.example.test:8080/c/b");
    assert_eq!(seen.header("host"), Some("acct.blob.example.test:8080"));
    assert_eq!(seen.header("proxy-authorization"), Some(BASIC));
    assert!(seen.header("authorization").unwrap().starts_with("SharedKey acct:"));
}

#[tokio::test(start_paused = true)]
async fn tls_asks_for_a_pipe_on_each_connection() {
    // A pipe that closes before TLS has begun: the connection is tried again, nothing of the request was shown.
    let proxy = Script::start(|n, _| {
        if n < 2 { Reply::Close("HTTP/1.1 200 Connection established\r\n\r\n".into()) } else { answer(407, "", "") }
    })
    .await;
    let (_, result) = put_through(&proxy, "https://acct.blob.example.test/c").await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable);
    let seen = proxy.seen();
    for request in &seen {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("CONNECT", "acct.blob.example.test:443"));
        assert_eq!(request.header("proxy-authorization"), Some(BASIC));
        assert_eq!(request.header("authorization"), None);
        assert!(request.body.is_empty());
    }
    assert!(!format!("{error:?}").contains("p%20w") && !format!("{error:?}").contains("p w"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_refuses_is_named_at_once() {
    for (status, word) in [(407, "wants a user and a password"), (403, "does not let us through")] {
        let proxy = Script::start(move |_, _| answer(status, "", "")).await;
        let start = Instant::now();
        let error = put_through(&proxy, "https://acct.blob.example.test/c").await.1.unwrap_err();
        assert_eq!((error.kind(), proxy.count()), (Kind::Unreachable, 1));
        assert!(start.elapsed().as_secs() < 1);
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(word) && cause.contains(&proxy.address.to_string()), "{cause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_passes_nonsense_for_tls_is_an_error_of_tls() {
    let proxy =
        Script::start(|_, _| Reply::Bytes("HTTP/1.1 200 OK\r\nVia: a proxy\r\n\r\nHTTP/1.1 400 this is no TLS\r\n\r\n".into()))
            .await;
    let error = put_through(&proxy, "https://acct.blob.example.test/c").await.1.unwrap_err();
    assert_eq!((error.kind(), proxy.count()), (Kind::Unreachable, 1));
    assert!(error.advice().unwrap().contains("speaks TLS"), "{error:?}");
}

/// A TLS server for `acct.blob.example.test`, behind a proxy that pipes everything to it.
async fn tls_behind_proxy(folder: &Path) -> (Script, Arc<Mutex<Vec<Seen>>>) {
    let der = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let key = PrivateKeyDer::try_from(der("key.der")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(der("leaf.der"))], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let log = seen.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(tls) = acceptor.accept(stream).await {
                let suite = tls.get_ref().1.negotiated_cipher_suite().unwrap().suite();
                assert_eq!(suite, CipherSuite::TLS13_AES_128_GCM_SHA256);
                tokio::spawn(crate::script::serve(tls, 0, Arc::new(|_, _: &Seen| answer(201, "", "")), log.clone()));
            }
        }
    });
    (Script::pipe_to(server).await, seen)
}

/// Run by the test below in a process of its own, because `SSL_CERT_FILE` belongs to a process.
#[tokio::test]
#[ignore = "needs the variables that tls_trusts_the_authorities_it_is_told_to sets"]
async fn tls_in_a_process_of_its_own() {
    let folder = PathBuf::from(std::env::var_os("BLOBJET_TEST_TLS").unwrap());
    let (proxy, seen) = tls_behind_proxy(&folder).await;
    let location = Location::parse("https://acct.blob.example.test/c").unwrap();
    let inputs = Inputs { key: Some(Secret::new(blobjet::rest::auth::shared_key::DEV_KEY)), ..Inputs::default() };
    let config = Config { proxies: Proxies::new("", &format!("http://{}", proxy.address), ""), ..config() };
    let client = Client::new(&location, choose(&location, &inputs).unwrap(), config).unwrap();
    let mut data = Chunks::default();
    for i in 0..3 {
        data.push(vec![i; 3_000_001].into());
    }
    let blob = Blob::new(&client, "c", "b");
    let (crc64, plain) = (data.crc64(), Attributes::default());
    let put = || blob.put_blob(&data, crc64, &plain, Replace::Always);
    if std::env::var_os("SSL_CERT_FILE").is_some() {
        put().await.unwrap();
        put().await.unwrap();
        let seen = seen.lock().unwrap();
        let sent: Vec<u8> = data.iter().flat_map(|piece| piece.to_vec()).collect();
        assert!(seen.len() == 2 && seen.iter().all(|s| s.body == sent));
        assert_eq!(proxy.count(), 1, "the second went over the same pipe");
    } else {
        let error = put().await.unwrap_err();
        assert_eq!((error.kind(), proxy.count()), (Kind::Unreachable, 1));
        assert!(error.advice().unwrap().contains("SSL_CERT_FILE"), "{error:?}");
    }
}

#[test]
fn tls_trusts_the_authorities_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new([]).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_der = base64::engine::general_purpose::STANDARD.encode(ca.self_signed(&ca_key).unwrap().der());
    let ca_pem = format!("-----BEGIN CERTIFICATE-----\n{ca_der}\n-----END CERTIFICATE-----\n");
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new(["acct.blob.example.test".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &rcgen::Issuer::new(ca, ca_key)).unwrap();
    std::fs::write(folder.path().join("ca.pem"), ca_pem).unwrap();
    std::fs::write(folder.path().join("leaf.der"), leaf.der()).unwrap();
    std::fs::write(folder.path().join("key.der"), key.serialize_der()).unwrap();
    for trusted in [true, false] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "proxy::tls_in_a_process_of_its_own", "--ignored"]);
        child.env("BLOBJET_TEST_TLS", folder.path()).env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
        if trusted {
            child.env("SSL_CERT_FILE", folder.path().join("ca.pem"));
        }
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "trusted: {trusted}\n{text}");
    }
}
