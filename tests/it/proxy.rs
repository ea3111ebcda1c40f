//! Proxies: plain requests in absolute form, TLS through a pipe, user and password on each connection.

use crate::script::{Reply, Script, answer, config};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::Blob;
use blobjet::rest::client::{Client, Config};
use blobjet::rest::connect::Proxies;
use blobjet::rest::location::Location;
use blobjet::secret::Secret;
use blobjet::{Kind, Result};
use tokio::time::Instant;

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
