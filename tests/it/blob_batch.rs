//! Batches of deletes and of changes of tier, against the embedded service, and against a server that does what none should.

use crate::script::{Reply, Script, answer, config, refusal};
use crate::world::{CONTAINER, World, client};
use blobjet::attributes::Attributes;
use blobjet::error::Kind;
use blobjet::rest::auth::Inputs;
use blobjet::rest::batch::BlobBatch;
use blobjet::rest::blob::DeleteSnapshots;
use blobjet::rest::change::{RehydratePriority, Tiering};
use blobjet::rest::client::{Client, Config};
use std::time::Duration;

/// Names that other tools trip over.
const ODD: [&str; 8] = ["a b/c+d", "a//b", "dir/", "100%25", "é/\u{1F680}", "x=1&y=2", "semi;colon,#?", "'\"<>"];

fn with_sas(world: &World, rights: &str) -> Client {
    client(&format!("{}/{CONTAINER}?{}", world.emulator.url(), world.sas(rights)), &Inputs::default())
}

/// Each blob has its own end: gone, not there, leased, with snapshots.
#[tokio::test]
async fn parts_of_a_batch_end_one_by_one() {
    let world = World::new().await;
    for name in ODD.iter().chain(&["leased", "shot", "stays"]) {
        world.put(name, &Attributes::default()).await;
    }
    world.lease("leased", true).await;
    world.ask("shot", "snapshot", &[]).await;
    let before = world.emulator.seen().len();
    let names: Vec<&str> = ODD.iter().copied().chain(["leased", "missing", "shot"]).collect();
    let ends = BlobBatch::new(&world.client, CONTAINER).delete(&names, DeleteSnapshots::Refuse).await.unwrap();
    assert_eq!(world.requests(before), ["POST batch"]);
    let ends: Vec<_> =
        ends.into_iter().map(|end| end.map_err(|e| (e.kind(), e.code().unwrap().to_owned(), e.to_string()))).collect();
    assert!(ends[..ODD.len()].iter().all(|end| matches!(end, Ok(true))), "{ends:?}");
    let (kind, code, message) = ends[ODD.len()].clone().unwrap_err();
    assert_eq!((kind, code.as_str()), (Kind::Conflict, "LeaseIdMissing"));
    assert!(message.starts_with("cannot delete blob http://") && message.ends_with("/leased"), "{message}");
    assert!(matches!(ends[ODD.len() + 1], Ok(false)));
    assert_eq!(ends[ODD.len() + 2].clone().unwrap_err().1, "SnapshotsPresent");
    assert_eq!(world.names().await, ["leased", "shot", "stays"]);
    let ends = BlobBatch::new(&world.client, CONTAINER).delete(&["shot"], DeleteSnapshots::Include).await.unwrap();
    assert!(matches!(ends[0], Ok(true)));
    assert_eq!(world.names().await, ["leased", "stays"]);
}

/// With the signature in each part's URL, and no more rights than deleting.
#[tokio::test]
async fn a_containers_sas_will_do() {
    let world = World::new().await;
    for name in ODD {
        world.put(name, &Attributes::default()).await;
    }
    let ends = BlobBatch::new(&with_sas(&world, "d"), CONTAINER).delete(&ODD, DeleteSnapshots::Refuse).await.unwrap();
    assert!(ends.iter().all(|end| matches!(end, Ok(true))), "{ends:?}");
    assert!(world.names().await.is_empty());
    let before = world.emulator.seen().len();
    let error = BlobBatch::new(&with_sas(&world, "rw"), CONTAINER).delete(&["a"], DeleteSnapshots::Refuse).await.unwrap_err();
    assert!(error.kind() == Kind::AccessRefused && error.to_string().contains("cannot send a batch"), "{error}");
    assert_eq!(world.emulator.seen().len(), before, "known without asking");
}

/// Over 256 names, and names that with their signatures fill 4 MiB before.
#[tokio::test]
async fn as_many_batches_as_it_takes() {
    let world = World::new().await;
    let count = |since: usize| world.requests(since).iter().filter(|request| *request == "POST batch").count();
    for (names, batches) in [
        ((0..600).map(|i| format!("n{i:03}")).collect::<Vec<_>>(), 3),
        // 1,021 characters of four bytes, each of them three on the wire: some 12 KiB a name.
        ((0..500).map(|i| format!("{i:03}{}", "\u{1F680}".repeat(510))).collect(), 2),
    ] {
        let before = world.emulator.seen().len();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ends = BlobBatch::new(&world.client, CONTAINER).delete(&names, DeleteSnapshots::Refuse).await.unwrap();
        assert!(ends.len() == names.len() && ends.iter().all(|end| matches!(end, Ok(false))));
        assert_eq!(count(before), batches);
    }
}

#[tokio::test]
async fn tiers_in_a_batch() {
    let world = World::new().await;
    for (name, tier) in [("hot", "Hot"), ("deep", "Archive")] {
        world.put(name, &Attributes { tier: Some(tier.into()), ..Attributes::default() }).await;
    }
    let batch = BlobBatch::new(&world.client, CONTAINER);
    let ends = batch.set_tier(&["hot", "deep", "missing"], "Cool", Some(RehydratePriority::High)).await.unwrap();
    assert!(matches!(ends[..2], [Ok(Tiering::Done), Ok(Tiering::Rehydrating)]), "{ends:?}");
    assert_eq!(ends[2].as_ref().unwrap_err().kind(), Kind::NotFound);
    let deep = world.properties("deep").await.unwrap();
    assert_eq!(
        ["x-ms-access-tier", "x-ms-archive-status", "x-ms-rehydrate-priority"].map(|name| deep.get(name)),
        [Some("Archive"), Some("rehydrate-pending-to-cool"), Some("High")]
    );
    assert_eq!(world.properties("hot").await.unwrap().get("x-ms-access-tier"), Some("Cool"));
    let ends = batch.set_tier(&["hot"], "Lukewarm", None).await.unwrap();
    let error = ends[0].as_ref().unwrap_err();
    assert_eq!((error.kind(), error.code()), (Kind::Refused, Some("InvalidHeaderValue")));
}

/// The answer to a batch, its parts in this order: number, status, more headers.
fn parts(parts: &[(usize, u16, &str)]) -> Reply {
    let mut body = String::new();
    for (id, status, headers) in parts {
        body.push_str(&format!(
            "--r\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\nHTTP/1.1 {status} Words\r\nx-ms-request-id: p{id}\r\n{headers}\r\n"
        ));
    }
    answer(202, "Content-Type: multipart/mixed; boundary=r", &format!("{body}--r--"))
}

/// Names in a batch, in order.
fn asked(body: &[u8]) -> Vec<String> {
    let lines = std::str::from_utf8(body).unwrap().lines().filter_map(|line| line.strip_prefix("DELETE "));
    lines.map(|line| line.split([' ', '?']).next().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

/// Parts that are throttled, or fail for the moment, are sent again until they are through; the others are not. One that is
/// gone at its second try was deleted by the first.
#[tokio::test(start_paused = true)]
async fn parts_that_may_heal_are_sent_again() {
    let script = Script::start(|number, _| match number {
        0 => parts(&[
            (3, 500, "x-ms-error-code: OperationTimedOut\r\n"),
            (0, 202, ""),
            (1, 503, "x-ms-error-code: ServerBusy\r\nRetry-After: 7\r\n"),
            (2, 404, "x-ms-error-code: BlobNotFound\r\n"),
        ]),
        1 => parts(&[(1, 202, ""), (3, 404, "x-ms-error-code: BlobNotFound\r\n")]),
        _ => refusal(400, "Unexpected"),
    })
    .await;
    let client = script.client();
    let started = tokio::time::Instant::now();
    let ends = BlobBatch::new(&client, "c").delete(&["a", "b", "c", "d"], DeleteSnapshots::Refuse).await.unwrap();
    let ends: Vec<bool> = ends.into_iter().map(Result::unwrap).collect();
    assert_eq!(ends, [true, true, false, true]);
    assert!(started.elapsed() >= Duration::from_secs(7), "the longest wait asked for is kept");
    let seen: Vec<_> = script.seen().iter().map(|seen| asked(&seen.body)).collect();
    assert_eq!(seen, [vec!["a", "b", "c", "d"], vec!["b", "d"]]);
    let first = &script.seen()[0];
    assert!(first.target.ends_with("/c?restype=container&comp=batch"), "{}", first.target);
    let body = String::from_utf8(first.body.clone()).unwrap();
    assert_eq!(body.matches("authorization: SharedKey devstoreaccount1:").count(), 4, "{body}");
    assert!(!body.contains("x-ms-version") && body.ends_with("--\r\n"), "{body}");
}

/// One that never heals is given up after the time a single request gets, with the number of tries.
#[tokio::test(start_paused = true)]
async fn parts_that_do_not_heal_are_given_up() {
    let script = Script::start(|_, seen| {
        let one = (asked(&seen.body).len() > 1).then_some((0, 202, ""));
        let busy = (1, 503, "x-ms-error-code: ServerBusy\r\n");
        parts(&one.into_iter().chain([busy]).collect::<Vec<_>>())
    })
    .await;
    let client = script.client_with(Config { give_up_after: Duration::from_secs(60), ..config() });
    let ends = BlobBatch::new(&client, "c").delete(&["a", "b"], DeleteSnapshots::Refuse).await.unwrap();
    assert!(matches!(ends[0], Ok(true)));
    let error = ends[1].as_ref().unwrap_err();
    assert_eq!((error.kind(), error.code()), (Kind::GaveUp, Some("ServerBusy")));
    assert_eq!(usize::try_from(error.attempts().unwrap().count).unwrap(), script.count());
    assert!(script.count() >= 4, "{}", script.count());
}

/// Refused as a whole, by a part without a number or by the answer itself: the caller can send single requests.
#[tokio::test]
async fn a_server_without_batches_is_told_from_parts_that_fail() {
    let whole = "--r\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 400 One of the request inputs is not valid.\r\nx-ms-error-code: InvalidInput\r\nx-ms-request-id: i\r\n\r\n--r--";
    type Answer = fn(&str) -> Reply;
    let cases: [(Answer, Kind); 4] = [
        (|whole| answer(202, "Content-Type: multipart/mixed; boundary=r", whole), Kind::Refused),
        (|_| refusal(501, "APINotImplemented"), Kind::Unsupported),
        (|_| refusal(400, "UnsupportedQueryParameter"), Kind::Refused),
        (|_| answer(202, "Content-Type: text/html", "<p>"), Kind::BadAnswer),
    ];
    for (reply, kind) in cases {
        let script = Script::start(move |_, _| reply(whole)).await;
        let error = BlobBatch::new(&script.client(), "c").delete(&["a", "b"], DeleteSnapshots::Refuse).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
    }
    // A part that is not answered has not been done.
    let script = Script::start(|_, _| parts(&[(1, 202, "")])).await;
    let ends = BlobBatch::new(&script.client(), "c").delete(&["a", "b"], DeleteSnapshots::Refuse).await.unwrap();
    assert_eq!(ends[0].as_ref().unwrap_err().kind(), Kind::BadAnswer);
    assert!(matches!(ends[1], Ok(true)));
}
