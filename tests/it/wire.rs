//! The client on the wire: what it sends, when it sends again, and what it makes of answers. Time is paused: waits take none.

use crate::script::{Reply, Script, answer, answer_text, config, refusal};
use base64::Engine as _;
use blobjet::Kind;
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::rest::auth::shared_key::{DEV_ACCOUNT, DEV_KEY, ToSign, decode_query, sign, string_to_sign};
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::{Blob, DeleteSnapshots};
use blobjet::rest::client::{Check, Client, Config};
use blobjet::rest::container::{Container, ListOptions, list_containers};
use blobjet::rest::headers::HeaderList;
use blobjet::rest::location::Location;
use blobjet::rest::model::BlockListType;
use blobjet::rest::stats::RETRY_CAUSES;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::time::Duration;
use tokio::time::Instant;

fn data() -> Chunks {
    Chunks::from(Bytes::from("Hello World!"))
}

/// CRC-64/NVME of it, and how the service writes it.
const CRC: u64 = 0x02E5_1CC8_5EFC_E1A5;
const CRC_HEADER: &str = "peH8Xsgc5QI=";
/// `printf 'Hello World!' | md5sum`, in base64.
const MD5_HEADER: &str = "7Qdih1MuhjZehB6Sv8UNjA==";

fn blob(client: &Client) -> Blob<'_> {
    Blob::new(client, "c", "d/ä #1.txt")
}

async fn put(client: &Client, replace: Replace) -> blobjet::Result<()> {
    blob(client).put_blob(&data(), CRC, &Attributes::default(), replace).await.map(drop)
}

fn retries(client: &Client, cause: &str) -> u64 {
    let at = RETRY_CAUSES.iter().position(|c| *c == cause).unwrap();
    client.stats().retries()[at]
}

fn all_retries(client: &Client) -> u64 {
    client.stats().retries().iter().sum()
}

fn created() -> Reply {
    answer(201, "ETag: \"0x8D1\"", "")
}

#[tokio::test(start_paused = true)]
async fn put_blob_is_one_signed_request_and_connections_are_used_again() {
    let server = Script::start(|_, _| created()).await;
    let client = server.client();
    for _ in 0..20 {
        put(&client, Replace::Always).await.unwrap();
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 20);
    assert!(seen.iter().all(|s| s.connection == 0));
    let request = &seen[0];
    assert_eq!((request.method.as_str(), request.body.as_slice()), ("PUT", b"Hello World!".as_slice()));
    assert_eq!(request.target, "/devstoreaccount1/c/d/%C3%A4%20%231.txt");
    assert_eq!(request.header("content-length"), Some("12"));
    assert_eq!(request.header("x-ms-blob-type"), Some("BlockBlob"));
    assert_eq!(request.header("x-ms-content-crc64"), Some(CRC_HEADER));
    assert_eq!(request.header("content-md5"), None);
    assert_eq!(request.header("host"), Some(server.address.to_string().as_str()));
    let stats = client.stats();
    assert_eq!(stats.requests.load(std::sync::atomic::Ordering::Relaxed), 20);
    assert!(stats.latency(0.5).is_some());
    let ids: std::collections::HashSet<_> = seen.iter().map(|s| s.header("x-ms-client-request-id").unwrap()).collect();
    assert_eq!(ids.len(), 20);
    for id in ids {
        // RFC 9562: 8-4-4-4-12 digits, version 4, variant 8 to b.
        let (groups, digits): (Vec<_>, Vec<char>) = (id.split('-').collect(), id.chars().collect());
        assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
        assert!(groups.concat().chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{id}");
        assert!(digits[14] == '4' && matches!(digits[19], '8' | '9' | 'a' | 'b'), "{id}");
    }
}

/// Signs again what arrived, with the functions that the vectors pin.
fn expected_authorization(seen: &crate::script::Seen) -> String {
    let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
    let mut headers = HeaderList::default();
    for (name, value) in &seen.headers {
        headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    let query = decode_query(query);
    let string = string_to_sign(&ToSign {
        method: &seen.method,
        account: DEV_ACCOUNT,
        path,
        query: &query,
        headers: &headers,
        version: seen.header("x-ms-version").unwrap(),
    });
    let key = base64::engine::general_purpose::STANDARD.decode(DEV_KEY).unwrap();
    format!("SharedKey {DEV_ACCOUNT}:{}", sign(&key, &string))
}

#[tokio::test(start_paused = true)]
async fn what_is_signed_is_what_arrives() {
    let list = "<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>";
    let server = Script::start(move |number, _| match number {
        0 => refusal(500, "InternalError"),
        1 | 2 => created(),
        3 => answer(200, "", list),
        _ => answer(202, "", ""),
    })
    .await;
    let client = server.client();
    let attributes = Attributes {
        content_type: Some("text/plain; charset=utf-8".into()),
        metadata: vec![("a_b".into(), "1".into()), ("a1".into(), "2".into()), ("Empty".into(), String::new())],
        tags: vec![("k 1".into(), "a+b".into())],
        ..Attributes::default()
    };
    blob(&client).put_blob(&data(), CRC, &attributes, Replace::Never).await.unwrap();
    blob(&client).put_block("A+/=", &data(), CRC).await.unwrap();
    let options = ListOptions {
        prefix: Some("папка/a b&c=d+e".into()),
        max_results: Some(7),
        include: vec!["metadata", "tags"],
        ..ListOptions::default()
    };
    Container::new(&client, "c").list(&options).await.unwrap();
    blob(&client).delete(DeleteSnapshots::Include).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 5);
    for request in &seen {
        assert_eq!(request.header("authorization"), Some(expected_authorization(request).as_str()), "{}", request.target);
    }
    assert_eq!(seen[1].header("if-none-match"), Some("*"));
    assert_eq!(seen[1].header("x-ms-tags"), Some("k%201=a%2Bb"));
    assert_eq!(seen[2].target, "/devstoreaccount1/c/d/%C3%A4%20%231.txt?comp=block&blockid=A%2B%2F%3D");
    assert_eq!(
        seen[3].target,
        "/devstoreaccount1/c?restype=container&comp=list&prefix=%D0%BF%D0%B0%D0%BF%D0%BA%D0%B0%2Fa%20b%26c%3Dd%2Be&maxresults=7&include=metadata%2Ctags"
    );
}

#[tokio::test(start_paused = true)]
async fn sas_goes_out_byte_for_byte_and_without_authorization() {
    let server = Script::start(|_, _| created()).await;
    let sas = "sp=cw&se=2999-01-01T00:00:00Z&sv=2025-11-05&sr=c&sig=J0qoIjJdOZzodOm8xwscO8o2XBuIOxeI8k5y2UJ2gt4%3d&x=a,b%2c";
    let location = server.location(&format!("/c?{sas}"));
    let client = Client::new(&location, choose(&location, &Inputs::default()).unwrap(), config()).unwrap();
    put(&client, Replace::Always).await.unwrap();
    blob(&client).put_block("AA==", &data(), CRC).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[0].target, format!("/devstoreaccount1/c/d/%C3%A4%20%231.txt?{sas}"));
    assert_eq!(seen[1].target, format!("/devstoreaccount1/c/d/%C3%A4%20%231.txt?comp=block&blockid=AA%3D%3D&{sas}"));
    assert!(seen.iter().all(|s| s.header("authorization").is_none()));
    // What it may not do is said without a request.
    let error = Container::new(&client, "c").list(&ListOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::AccessRefused);
    let text = format!("{error} {:?}", error);
    assert!(text.contains("sp=cw has no l") && !text.contains("J0qoIjJd"), "{text}");
    assert_eq!(server.count(), 2);
}

// semantics 21
#[tokio::test(start_paused = true)]
async fn some_refusals_are_tried_again_and_most_are_final() {
    let again = [408, 429, 500, 502, 503, 504].map(|status| (status, "", None));
    let last = [
        (400, "InvalidUri", Some(Kind::Refused)),
        (401, "NoAuthenticationInformation", Some(Kind::AccessRefused)),
        (403, "AuthenticationFailed", Some(Kind::AccessRefused)),
        (404, "ContainerNotFound", Some(Kind::ContainerNotFound)),
        (404, "BlobNotFound", Some(Kind::NotFound)),
        (409, "InvalidBlobType", Some(Kind::Conflict)),
        (412, "LeaseIdMissing", Some(Kind::Conflict)),
        (413, "RequestBodyTooLarge", Some(Kind::TooLarge)),
        (501, "APINotImplemented", Some(Kind::Unsupported)),
        (409, "ContainerBeingDeleted", None),
    ];
    for (status, code, kind) in again.into_iter().chain(last) {
        let server = Script::start(move |n, _| if n == 0 { refusal(status, code) } else { created() }).await;
        let client = server.client();
        let result = put(&client, Replace::Always).await;
        match kind {
            None => {
                result.unwrap();
                assert_eq!((server.count(), all_retries(&client)), (2, 1), "{status} {code}");
            }
            Some(kind) => {
                let error = result.unwrap_err();
                assert_eq!((error.kind(), error.code(), server.count()), (kind, Some(code), 1), "{status} {code}");
                assert!(error.attempts().is_none());
                let answer = error.answer().unwrap();
                assert_eq!((answer.status, answer.request_id.as_deref()), (status, Some("the-id")));
                assert!(error.to_string().starts_with("cannot put blob http://127.0.0.1:"), "{error}");
            }
        }
    }
}

// semantics 21
#[tokio::test(start_paused = true)]
async fn retry_after_holds_back_everyone() {
    let server =
        Script::start(|n, _| if n == 0 { answer(503, "Retry-After: 7\nx-ms-error-code: ServerBusy", "") } else { created() })
            .await;
    let client = server.client();
    let start = Instant::now();
    let other = async {
        // Sent when the first has been throttled: it has to wait as long.
        while server.count() == 0 || retries(&client, "throttled") == 0 {
            tokio::task::yield_now().await;
        }
        put(&client, Replace::Always).await.unwrap();
        start.elapsed()
    };
    let (first, other) = tokio::join!(put(&client, Replace::Always), other);
    first.unwrap();
    let range = Duration::from_secs(7)..Duration::from_secs(9);
    assert!(range.contains(&start.elapsed()) && range.contains(&other), "{:?} {other:?}", start.elapsed());
    assert_eq!((server.count(), retries(&client, "throttled")), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn endless_trouble_is_given_up_within_the_time() {
    let server = Script::start(|_, _| refusal(503, "ServerBusy")).await;
    let client = server.client();
    let start = Instant::now();
    let error = put(&client, Replace::Always).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (Kind::GaveUp, Some("ServerBusy")));
    let attempts = error.attempts().unwrap();
    assert_eq!(usize::try_from(attempts.count).unwrap(), server.count());
    assert!(attempts.count >= 5 && start.elapsed() <= Duration::from_secs(400), "{attempts:?} {:?}", start.elapsed());
    // Being told to come back after the end of our patience ends at once.
    let server = Script::start(|_, _| answer(503, "Retry-After: 3600", "")).await;
    let error = put(&server.client(), Replace::Always).await.unwrap_err();
    assert_eq!((error.kind(), server.count()), (Kind::GaveUp, 1));
}

#[tokio::test(start_paused = true)]
async fn broken_connections_are_tried_again_from_the_first_request_on() {
    let cut = answer_text(201, "", "1234567890").replace("Content-Length: 10", "Content-Length: 20");
    for reply in [String::new(), "HTTP/1.1 201 Cre".to_owned(), cut] {
        let text = reply.clone();
        let server = Script::start(move |n, _| if n == 0 { Reply::Close(text.clone()) } else { created() }).await;
        let client = server.client();
        put(&client, Replace::Always).await.unwrap();
        assert_eq!((server.count(), retries(&client, "connection")), (2, 1), "{reply:?}");
    }
    let server = Script::start(|_, _| Reply::Bytes("SSH-2.0-OpenSSH\r\n\r\n".into())).await;
    let error = put(&server.client(), Replace::Always).await.unwrap_err();
    assert_eq!((error.kind(), server.count()), (Kind::BadAnswer, 1));
}

#[tokio::test(start_paused = true)]
async fn idle_connections_closed_by_the_server_cost_nothing() {
    // Closed after each answer: seen before the next request is written.
    let server = Script::start(|_, _| Reply::Close(answer_text(201, "", ""))).await;
    let client = server.client();
    for _ in 0..3 {
        put(&client, Replace::Always).await.unwrap();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((server.count(), all_retries(&client)), (3, 0));
    // Closed when the next request has set out.
    let server = Script::start(|n, _| if n == 1 { Reply::Close(String::new()) } else { created() }).await;
    let client = server.client();
    put(&client, Replace::Always).await.unwrap();
    put(&client, Replace::Always).await.unwrap();
    assert_eq!((server.count(), all_retries(&client)), (3, 0));
    let connections: Vec<usize> = server.seen().iter().map(|s| s.connection).collect();
    assert_eq!(connections, [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn silence_is_noticed_and_the_request_sent_again() {
    let server = Script::start(|n, _| if n == 0 { Reply::Silence } else { created() }).await;
    let client = server.client();
    let start = Instant::now();
    put(&client, Replace::Always).await.unwrap();
    let took = start.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(40)).contains(&took), "{took:?}");
    assert_eq!((server.count(), retries(&client, "no progress")), (2, 1));
    // A head that trickles in is progress, an answer cut short is not for ever.
    let server = Script::start(|n, _| if n == 0 { Reply::Bytes("HTTP/1.1 201 C".into()) } else { created() }).await;
    let client = server.client();
    put(&client, Replace::Always).await.unwrap();
    assert_eq!(retries(&client, "no progress"), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_by_our_own_cap_is_not_silence() {
    let server = Script::start(|_, _| created()).await;
    let client = server.client_with(Config { cap_bits_per_s: Some(8 * 1000), ..config() });
    let data = Chunks::from(vec![7; 100_000]);
    let start = Instant::now();
    blob(&client).put_blob(&data, data.crc64(), &Attributes::default(), Replace::Always).await.unwrap();
    let took = start.elapsed().as_secs_f64();
    assert!((95.0..=105.0).contains(&took), "100 kB at 1 kB/s took {took} s");
    assert_eq!((server.count(), all_retries(&client)), (1, 0));
    assert_eq!(server.seen()[0].body, vec![7; 100_000]);
}

// semantics 11
#[tokio::test(start_paused = true)]
async fn redirects_are_not_followed() {
    let elsewhere = Script::start(|_, _| created()).await;
    let to = format!("Location: http://{}/devstoreaccount1/c/x", elsewhere.address);
    for status in [301, 302, 307, 308] {
        let to = to.clone();
        let server = Script::start(move |_, _| answer(status, &to, "")).await;
        let error = put(&server.client(), Replace::Always).await.unwrap_err();
        assert_eq!((error.kind(), server.count(), elsewhere.count()), (Kind::BadAnswer, 1, 0), "{status}");
        assert!(error.advice().unwrap().contains(&elsewhere.address.to_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_there_is_said_at_once() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let location = Location::parse(&format!("http://{free}/devstoreaccount1")).unwrap();
    let client = Client::new(&location, choose(&location, &Inputs::default()).unwrap(), config()).unwrap();
    let start = Instant::now();
    let error = put(&client, Replace::Always).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed()), (Kind::Unreachable, Duration::ZERO));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, format!("cannot connect to {free}"));
}

#[tokio::test(start_paused = true)]
async fn plain_http_is_for_this_machine_only() {
    let location = Location::parse("http://192.0.2.1:10000/devstoreaccount1").unwrap();
    let make = |allow_http| {
        let credential = choose(&location, &Inputs::default()).unwrap();
        Client::new(&location, credential, Config { allow_http, ..config() })
    };
    let error = make(false).err().unwrap();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.advice().unwrap().contains("--allow-http"));
    assert!(make(true).is_ok());
}

// semantics 3
#[tokio::test(start_paused = true)]
async fn a_checksum_that_does_not_fit_is_tried_once_more() {
    let wrong = || answer(201, "x-ms-content-crc64: AAAAAAAAAAA=", "");
    let right = || answer(201, &format!("x-ms-content-crc64: {CRC_HEADER}"), "");
    type Answers = Vec<fn() -> Reply>;
    let mismatch = || refusal(400, "Crc64Mismatch");
    let cases: [(Answers, bool, usize); 6] = [
        (vec![right], true, 1),
        (vec![wrong, right], true, 2),
        (vec![wrong, wrong, right], false, 2),
        (vec![mismatch, right], true, 2),
        (vec![mismatch, mismatch, right], false, 2),
        (vec![|| refusal(400, "Md5Mismatch"), wrong, right], false, 2),
    ];
    for (i, (answers, good, count)) in cases.into_iter().enumerate() {
        let server = Script::start(move |n, _| answers[n]()).await;
        let client = server.client();
        let result = blob(&client).put_block("AA==", &data(), CRC).await;
        assert_eq!((result.is_ok(), server.count()), (good, count), "case {i}");
        if let Err(error) = result {
            assert_eq!((error.kind(), error.attempts().unwrap().count), (Kind::Corrupt, 2));
        }
        assert_eq!(retries(&client, "checksum"), u64::from(count > 1), "case {i}");
    }
}

// semantics 3
#[tokio::test(start_paused = true)]
async fn a_service_without_crc64_gets_md5_from_then_on() {
    let server =
        Script::start(
            |_, seen| {
                if seen.header("x-ms-content-crc64").is_some() { refusal(500, "FeatureNotSupported") } else { created() }
            },
        )
        .await;
    let client = server.client();
    for _ in 0..3 {
        put(&client, Replace::Always).await.unwrap();
    }
    let seen = server.seen();
    assert_eq!((seen.len(), all_retries(&client)), (4, 0));
    assert!(seen[1..].iter().all(|s| s.header("content-md5") == Some(MD5_HEADER)));
    // Where that is not the reason the answer is final.
    let server = Script::start(|_, _| refusal(500, "FeatureNotSupported")).await;
    let error = put(&server.client(), Replace::Always).await.unwrap_err();
    assert_eq!((error.kind(), server.count()), (Kind::Unsupported, 2));
}

#[tokio::test(start_paused = true)]
async fn checks_can_be_chosen() {
    for (check, crc64, md5) in
        [(Check::Crc64, Some(CRC_HEADER), None), (Check::Md5, None, Some(MD5_HEADER)), (Check::None, None, None)]
    {
        let server = Script::start(|_, _| created()).await;
        put(&server.client_with(Config { check, ..config() }), Replace::Always).await.unwrap();
        let seen = &server.seen()[0];
        assert_eq!((seen.header("x-ms-content-crc64"), seen.header("content-md5")), (crc64, md5));
    }
}

/// A blob of our content, last changed then, asked for at half past eight.
fn dated(len: usize, changed: &str) -> Reply {
    let headers =
        format!("Content-MD5: {MD5_HEADER}\nETag: \"0x8D2\"\nLast-Modified: {changed}\nDate: Thu, 15 Jan 2026 08:30:00 GMT");
    Reply::Bytes(answer_text(200, &headers, "").replace("Content-Length: 0", &format!("Content-Length: {len}")))
}

// semantics 44
#[tokio::test(start_paused = true)]
async fn a_conditional_put_whose_answer_was_lost_is_settled_by_looking() {
    let there = |len: usize, md5: &str| {
        Reply::Bytes(
            answer_text(200, &format!("Content-MD5: {md5}\nETag: \"0x8D2\""), "")
                .replace("Content-Length: 0", &format!("Content-Length: {len}")),
        )
    };
    type Look = fn(&dyn Fn(usize, &str) -> Reply) -> Reply;
    let cases: [(Look, Option<Kind>); 7] = [
        (|there| there(12, MD5_HEADER), None),
        // There since before the first try: somebody else's, though the same.
        (|_| dated(12, "Thu, 15 Jan 2026 08:29:50 GMT"), Some(Kind::AlreadyExists)),
        (|_| dated(12, "Thu, 15 Jan 2026 08:30:00 GMT"), None),
        (|there| there(12, "1B2M2Y8AsgTpgAmY7PhCfg=="), Some(Kind::AlreadyExists)),
        (|there| there(13, MD5_HEADER), Some(Kind::AlreadyExists)),
        (|_| refusal(403, "AuthorizationPermissionMismatch"), Some(Kind::AlreadyExists)),
        (|_| refusal(404, "BlobNotFound"), Some(Kind::AlreadyExists)),
    ];
    for (i, (look, kind)) in cases.into_iter().enumerate() {
        for (status, code) in [(409, "BlobAlreadyExists"), (412, "ConditionNotMet")] {
            let server = Script::start(move |n, seen| match (n, seen.method.as_str()) {
                (0, _) => Reply::Close(String::new()),
                (_, "HEAD") => look(&there),
                _ => refusal(status, code),
            })
            .await;
            let result = put(&server.client(), Replace::Never).await;
            assert_eq!(result.as_ref().err().map(blobjet::Error::kind), kind, "case {i}");
            assert_eq!(server.count(), 3);
            if i == 5 {
                assert!(result.unwrap_err().advice().unwrap().contains("earlier try"));
            }
        }
    }
    // A SAS that may create and not overwrite is refused by what it has created.
    let server = Script::start(|n, seen| match (n, seen.method.as_str()) {
        (0, _) => Reply::Close(String::new()),
        (_, "HEAD") => dated(12, "Thu, 15 Jan 2026 08:30:00 GMT"),
        _ => refusal(403, "UnauthorizedBlobOverwrite"),
    })
    .await;
    put(&server.client(), Replace::Always).await.unwrap();
    // At the first try there is nothing to settle.
    let server = Script::start(|_, _| refusal(409, "BlobAlreadyExists")).await;
    let error = put(&server.client(), Replace::Never).await.unwrap_err();
    assert_eq!((error.kind(), server.count()), (Kind::AlreadyExists, 1));
}

// semantics 44
#[tokio::test(start_paused = true)]
async fn a_commit_whose_answer_was_lost_is_settled_by_its_list() {
    let ids = ["AAA=".to_owned(), "AAB=".to_owned()];
    let refusals = [
        (412, "ConditionNotMet", Replace::Never, Kind::AlreadyExists),
        (409, "BlobAlreadyExists", Replace::Never, Kind::AlreadyExists),
        (400, "InvalidBlockList", Replace::Always, Kind::BlocksMissing),
        (412, "LeaseIdMissing", Replace::Always, Kind::Conflict),
        // Each later answer is lost as well, until it is given up.
        (500, "OperationTimedOut", Replace::Always, Kind::GaveUp),
    ];
    for ((status, code, replace, kind), (second, good)) in
        refusals.into_iter().flat_map(|refusal| [("AAB=", true), ("ZZZ=", false)].map(|list| (refusal, list)))
    {
        let server = Script::start(move |n, seen| match (n, seen.method.as_str()) {
            (0, _) => refusal(500, "OperationTimedOut"),
            (_, "GET") => {
                let block = |id: &str| format!("<Block><Name>{id}</Name><Size>6</Size></Block>");
                let xml = format!("<BlockList><CommittedBlocks>{}{}</CommittedBlocks></BlockList>", block("AAA="), block(second));
                answer(200, "ETag: \"0x8D3\"", &xml)
            }
            _ => refusal(status, code),
        })
        .await;
        let client = server.client();
        let result = blob(&client).put_block_list(&ids, &Attributes::default(), replace).await;
        assert_eq!(result.as_ref().ok().and_then(|w| w.etag()), good.then_some("0x8D3"), "{status} {code}");
        assert_eq!(result.err().map(|e| e.kind()), (!good).then_some(kind), "{status} {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_something_else_is_no_success() {
    let server = Script::start(|_, _| Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html>Sign in".into())).await;
    let error = put(&server.client(), Replace::Always).await.unwrap_err();
    assert_eq!((error.kind(), error.answer().unwrap().from_service), (Kind::BadAnswer, false));
    let server = Script::start(|_, _| answer(200, "", "<html>no list</html>")).await;
    let client = server.client();
    assert_eq!(list_containers(&client, None, None).await.unwrap_err().kind(), Kind::BadAnswer);
    let error = blob(&client).get_block_list(BlockListType::All).await.unwrap_err();
    assert_eq!(error.kind(), Kind::BadAnswer);
    assert!(error.to_string().starts_with("cannot get the block list of http://127"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn absent_things_are_none_and_false() {
    let server = Script::start(|_, seen| {
        refusal(404, if seen.target.contains("restype=container") { "ContainerNotFound" } else { "BlobNotFound" })
    })
    .await;
    let client = server.client();
    assert!(blob(&client).get_properties().await.unwrap().is_none());
    assert!(blob(&client).get_block_list(BlockListType::Uncommitted).await.unwrap().is_none());
    assert!(!blob(&client).delete(DeleteSnapshots::Refuse).await.unwrap());
    let container = Container::new(&client, "c");
    assert!(container.get_properties().await.unwrap().is_none());
    assert!(!container.delete().await.unwrap());
    assert_eq!(container.list(&ListOptions::default()).await.unwrap_err().kind(), Kind::ContainerNotFound);
    let server = Script::start(|_, _| refusal(409, "ContainerAlreadyExists")).await;
    assert!(!Container::new(&server.client(), "c").create().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_early_refusal_reaches_the_caller_and_the_connection_is_not_used_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut held = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 100];
            stream.read_exact(&mut head).await.unwrap();
            stream.write_all(answer_text(403, "x-ms-error-code: AuthenticationFailed", "").as_bytes()).await.unwrap();
            held.push(stream);
        }
    });
    let location = Location::parse(&format!("http://{address}/devstoreaccount1")).unwrap();
    let client = Client::new(&location, choose(&location, &Inputs::default()).unwrap(), config()).unwrap();
    let data = Chunks::from(vec![1; 32 << 20]);
    for _ in 0..2 {
        let error = blob(&client).put_block("AA==", &data, 1).await.unwrap_err();
        assert_eq!(error.kind(), Kind::AccessRefused);
    }
}
