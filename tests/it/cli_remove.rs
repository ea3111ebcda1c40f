//! `blobjet remove` and `blobjet undelete`: what goes, what stays, what is said, and how it is gone on with.

use crate::cli_support::{Ran, World};
use crate::script::{Reply, Script, answer, refusal};
use crate::world::{CONTAINER, World as Service};
use blobjet::attributes::Attributes;
use blobjet::rest::blob::{Blob, DeleteSnapshots};
use blobjet::rest::model::{BlobItem, ListEntry, ListPage};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A service with these blobs, and the program with its key.
async fn with(names: &[&str]) -> (Service, World) {
    let service = Service::new().await;
    for name in names {
        service.put(name, &Attributes::default()).await;
    }
    let mut world = World::new();
    world.know(&service.emulator);
    (service, world)
}

fn at(service: &Service, path: &str) -> String {
    let url = format!("{}/{CONTAINER}", service.emulator.url());
    if path.is_empty() { url } else { format!("{url}/{path}") }
}

fn summary(ran: &Ran) -> serde_json::Value {
    ran.json().pop().unwrap()
}

fn counts(line: &serde_json::Value) -> [u64; 4] {
    ["total", "done", "failed", "skipped"].map(|name| line[name].as_u64().unwrap())
}

/// semantics 58, 59: a folder is what is under it and its own entry, and not what begins alike; names come as they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_goes_and_nothing_that_begins_alike() {
    let inside = ["logs/a", "logs/a b+c%20", "logs/a//b", "logs/dir/", "logs/x/y/é\u{1F680}"];
    let outside = ["log", "logs-old/a", "logs.txt", "other/logs/a"];
    let (service, world) = with(&[&inside[..], &outside].concat()).await;
    let stub = Attributes { metadata: vec![("hdi_isfolder".into(), "true".into())], ..Attributes::default() };
    service.put("logs", &stub).await;
    let ran = world.run(&["remove", &at(&service, "logs"), "--recursive", "--dry-run"]);
    assert!(
        ran.code == 0 && ran.stdout.contains("DRYRUN: remove http://") && ran.stdout.matches("DRYRUN").count() == 6,
        "{ran:?}"
    );
    assert_eq!(service.names().await.len(), 10);
    let before = service.emulator.seen().len();
    let ran = world.run(&["remove", &at(&service, "logs"), "--recursive", "--output-type=json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let end = summary(&ran);
    assert_eq!((counts(&end), &end["status"], &end["command"]), ([6, 6, 0, 0], &"Completed".into(), &"remove".into()));
    let mut left = service.names().await;
    left.sort_unstable();
    assert_eq!(left, ["log", "logs-old/a", "logs.txt", "other/logs/a"]);
    let requests = service.requests(before);
    assert_eq!(requests.iter().filter(|request| *request == "POST batch").count(), 1, "{requests:?}");
    let ran = world.run(&["remove", &at(&service, "logs/"), "--recursive"]);
    assert!(ran.code == 0 && ran.stderr.contains("warning: nothing to delete"), "{ran:?}");
    // A blob that is no folder's entry is not the folder's.
    service.put("log/x", &Attributes::default()).await;
    assert_eq!(world.run(&["rm", &at(&service, "log"), "--recursive=true"]).code, 0);
    assert!(service.names().await.contains(&"log".to_owned()));
}

/// semantics 58: what is not there, is leased or has snapshots is named; the rest goes, and the counts add up.
#[tokio::test(flavor = "multi_thread")]
async fn each_blob_that_stays_is_named_with_its_cause() {
    let (service, world) = with(&["d/a", "d/b", "d/leased", "d/shot", "e/a.gz", "e/b.gz", "e/c.txt", "e/f/d.gz"]).await;
    service.lease("d/leased", true).await;
    service.ask("d/shot", "snapshot", &[]).await;
    let ran = world.run(&["remove", &at(&service, "d"), "--recursive", "--output-type=json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let failed: Vec<_> = ran.json().into_iter().filter(|line| line["type"] == "failed").collect();
    let mut causes: Vec<_> =
        failed.iter().map(|line| (line["object"].as_str().unwrap(), line["error"]["code"].as_str().unwrap())).collect();
    causes.sort_unstable();
    assert_eq!(causes, [("d/leased", "LeaseIdMissing"), ("d/shot", "SnapshotsPresent")]);
    assert_eq!(counts(&summary(&ran)), [4, 2, 2, 0]);
    let ran = world.run(&["remove", &at(&service, "d/shot"), "--delete-snapshots", "only"]);
    assert!(ran.code == 0 && ran.stdout.contains("1 blobs deleted in"), "{ran:?}");
    assert_eq!(world.run(&["remove", &at(&service, "d/shot")]).code, 0);
    let ran = world.run(&["remove", &at(&service, "d/shot")]);
    assert!(ran.code == 3 && ran.stderr.contains("there is no blob http://"), "{ran:?}");
    let nowhere = format!("{}/nowhere/x", service.emulator.url());
    for more in [&[][..], &["--recursive"]] {
        let ran = world.run(&[&["remove", &nowhere][..], more].concat());
        assert!(ran.code == 3 && ran.stderr.contains("ContainerNotFound"), "{ran:?}");
    }

    let ran = world.run(&["remove", &at(&service, "e/*.gz"), "--output-type=json"]);
    assert_eq!((ran.code, counts(&summary(&ran))), (0, [2, 2, 0, 0]), "{ran:?}");
    assert_eq!(service.names().await, ["d/leased", "e/c.txt", "e/f/d.gz"]);
    world.write("names", "c.txt\nmissing\nf\n");
    let ran = world.run(&["remove", &at(&service, "e"), "--list-of-files", "names", "--recursive", "--output-type=json"]);
    assert_eq!((ran.code, counts(&summary(&ran))), (1, [3, 2, 1, 0]), "{ran:?}");
    assert!(ran.stdout.contains("cannot find e/missing"), "{ran:?}");
    assert_eq!(service.names().await, ["d/leased"]);
}

/// A container goes as a whole, and not by chance.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_needs_to_be_meant() {
    let (service, world) = with(&["a"]).await;
    for (args, words) in [(&[][..], "is a container"), (&["--recursive"], "cannot ask whether to delete the container cont")] {
        let ran = world.run(&[&["remove", &at(&service, "")][..], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(words), "{ran:?}");
    }
    let ran = world.run(&["remove", &at(&service, ""), "--recursive", "--dry-run"]);
    assert!(ran.code == 0 && ran.stdout.starts_with("DRYRUN: remove http://"), "{ran:?}");
    assert_eq!(service.names().await, ["a"]);
    assert_eq!(world.run(&["remove", &at(&service, ""), "--recursive", "--yes"]).code, 0);
    let nowhere = format!("{}/nowhere", service.emulator.url());
    let ran = world.run(&["remove", &nowhere, "--recursive", "--yes"]);
    assert!(ran.code == 3 && ran.stderr.contains("there is no container"), "{ran:?}");
}

/// semantics 60: after the first page nothing of the listing is answered before a delete has come; whether pages follow one another
/// or the folders are listed beside each other, and each blob is met once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deleting_begins_while_the_listing_goes_on() {
    let blobs = |names: Vec<String>, next: bool| {
        let entries = names.into_iter().map(|name| ListEntry::Blob(BlobItem { name, ..BlobItem::default() })).collect();
        ListPage { entries, next_marker: next.then(|| "next".to_owned()), ..ListPage::default() }.to_xml()
    };
    let in_folder = |i: u32| format!("d/{}/{i:05}", i / 1000);
    let flat = move |target: &str| match (target.contains("marker=next"), target.contains("delimiter=")) {
        (true, _) => blobs((5000..10_000).map(|i| format!("d/{i:05}")).collect(), false),
        (false, _) => blobs((0..5000).map(|i| format!("d/{i:05}")).collect(), true),
    };
    let folders = move |target: &str| {
        let one = (0..10).find(|k| target.contains(&format!("prefix=d%2F{k}%2F")));
        match one {
            Some(k) => blobs((k * 1000..k * 1000 + 1000).map(in_folder).collect(), false),
            None if target.contains("delimiter=") => {
                let entries = (0..10).map(|k| ListEntry::Prefix(format!("d/{k}/"))).collect();
                ListPage { entries, ..ListPage::default() }.to_xml()
            }
            None => blobs((0..5000).map(in_folder).collect(), true),
        }
    };
    type Listing = Box<dyn Fn(&str) -> String + Send + Sync>;
    for (shape, listing) in [("flat", Box::new(flat) as Listing), ("folders", Box::new(folders))] {
        let (deleted, lists) = ((Mutex::new(false), Condvar::new()), AtomicUsize::new(0));
        let script = Script::start(move |_, request| {
            let target = &request.target;
            if target.contains("comp=batch") {
                *deleted.0.lock().unwrap() = true;
                deleted.1.notify_all();
                return all_deleted(&request.body);
            }
            if request.method != "GET" {
                return refusal(404, "BlobNotFound");
            }
            if lists.fetch_add(1, Ordering::SeqCst) > 0 {
                let none = deleted.0.lock().unwrap();
                // So long only where it never comes.
                let wait = || deleted.1.wait_timeout_while(none, Duration::from_secs(60), |done| !*done).unwrap().1.timed_out();
                if tokio::task::block_in_place(wait) {
                    return refusal(400, "NothingDeleted");
                }
            }
            answer(200, "", &listing(target))
        })
        .await;
        let world = World::new();
        let url = format!("http://{}/devstoreaccount1/box/d", script.address);
        let ran = world.run(&["remove", &url, "--recursive", "--output-type=json"]);
        assert_eq!((ran.code, counts(&summary(&ran))), (0, [10_000, 10_000, 0, 0]), "{shape}: {ran:?}");
    }
}

/// The answer to a batch of deletes that all went well.
fn all_deleted(body: &[u8]) -> Reply {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let ids = body.lines().filter_map(|line| line.strip_prefix("Content-ID: "));
    let parts: String = ids
        .map(|id| format!("--r\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\nHTTP/1.1 202 Accepted\r\nx-ms-request-id: p\r\n\r\n"))
        .collect();
    answer(202, "Content-Type: multipart/mixed; boundary=r", &format!("{parts}--r--"))
}

/// Where the service does not take batches, blobs are deleted one by one.
#[tokio::test(flavor = "multi_thread")]
async fn without_batches_it_takes_a_request_a_blob() {
    let names: Vec<String> = (0..40).map(|i| format!("d/{i:02}")).collect();
    let (service, world) = with(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for fault in ["op=BlobBatch,status=501/APINotImplemented", "op=BlobBatch,status=400/UnsupportedQueryParameter"] {
        let armed = service.emulator.fault(fault.parse().unwrap());
        let before = service.emulator.seen().len();
        let ran = world.run(&["remove", &at(&service, "d/*"), "--output-type=json"]);
        assert_eq!((ran.code, counts(&summary(&ran))), (0, [40, 40, 0, 0]), "{ran:?}");
        let requests = service.requests(before);
        let of = |what: &str| requests.iter().filter(|request| *request == what).count();
        assert_eq!((of("POST batch"), of("DELETE")), (1, 40), "{requests:?}");
        armed.remove();
        for name in &names {
            service.put(name, &Attributes::default()).await;
        }
    }
}

/// semantics 61: what was left by a job is done by another run of it, under its id; what is gone is counted as done.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_left_something_is_gone_on_with() {
    let (service, mut world) = with(&["d/a", "d/b", "d/leased"]).await;
    service.lease("d/leased", true).await;
    world.set("AZURE_STORAGE_KEY", "");
    let place = format!("{}?{}", at(&service, "d"), service.sas("rld"));
    let ran = world.run(&["remove", &place, "--recursive", "--output-type=json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let end = summary(&ran);
    let id = end["job_id"].as_str().unwrap().to_owned();
    assert_eq!(end["resume"], format!("blobjet jobs resume {id} --source-sas 'SAS'"));
    let ran = world.run(&["jobs", "list"]);
    assert!(ran.stdout.contains("remove http://") && ran.stdout.contains("2/1/0"), "{ran:?}");
    let ran = world.run(&["jobs", "show", &id, "--with-status=failed"]);
    assert!(
        ran.stdout.contains("Command: remove\n") && ran.stdout.contains("Failed  d/leased  0 B  Conflict: 412 LeaseIdMissing"),
        "{ran:?}"
    );
    service.lease("d/leased", false).await;
    let ran = world.run(&["jobs", "resume", &id, "--source-sas", &service.sas("ld"), "--output-type=json"]);
    assert_eq!((ran.code, counts(&summary(&ran))), (0, [1, 1, 0, 0]), "{ran:?}");
    let job = world.run(&["jobs", "show", &id, "--output-type=json"]).json().remove(0);
    assert_eq!((counts(&job), &job["command"], &job["runs"]), ([3, 3, 0, 0], &"remove".into(), &2.into()));
    assert!(service.names().await.is_empty());
}

/// semantics 61: what a list names and an earlier run has deleted is not missing; what it never found still is, and of what may have
/// gone with it, that is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_gone_on_with_where_it_was_left() {
    let (service, world) = with(&["d/a", "d/leased", "d/sub/x", "d/sub/y"]).await;
    service.lease("d/leased", true).await;
    world.write("names", "a\nmissing\nleased\nsub\n");
    let list = ["--list-of-files", "names", "--recursive", "--output-type=json"];
    let ran = world.run(&[&["remove", &at(&service, "d")][..], &list].concat());
    assert_eq!((ran.code, counts(&summary(&ran))), (1, [5, 3, 2, 0]), "{ran:?}");
    let id = summary(&ran)["job_id"].as_str().unwrap().to_owned();
    service.lease("d/leased", false).await;
    let ran = world.run(&["jobs", "resume", &id, "--output-type=json"]);
    assert_eq!((ran.code, counts(&summary(&ran))), (1, [2, 1, 1, 0]), "{ran:?}");
    assert_eq!(summary(&ran)["failures"][0]["objects"][0], "d/missing");
    let job = world.run(&["jobs", "show", &id, "--output-type=json"]).json().remove(0);
    assert_eq!(counts(&job), [5, 4, 1, 0], "{job}");
    assert!(service.names().await.is_empty());

    // Ended before it came to anything; what is gone since, nobody knows by whom.
    for name in ["d/b", "d/c"] {
        service.put(name, &Attributes::default()).await;
    }
    world.write("names", "b\nc\n");
    let refused = ["op=BlobBatch,status=403/AuthorizationFailure", "op=DeleteBlob,status=403/AuthorizationFailure"];
    let armed = refused.map(|fault| service.emulator.fault(fault.parse().unwrap()));
    let ran = world.run(&[&["remove", &at(&service, "d")][..], &list].concat());
    assert_eq!(ran.code, 4, "{ran:?}");
    armed.into_iter().for_each(|armed| armed.remove());
    let id = summary(&ran)["job_id"].as_str().unwrap().to_owned();
    Blob::new(&service.client, CONTAINER, "d/b").delete(DeleteSnapshots::Refuse).await.unwrap();
    let ran = world.run(&["jobs", "resume", &id, "--output-type=json"]);
    assert_eq!((ran.code, counts(&summary(&ran))), (0, [2, 1, 0, 1]), "{ran:?}");
    assert_eq!(summary(&ran)["left_out"][0]["reason"], "not there: an earlier run of this job may be done with it");
    assert!(service.names().await.is_empty());
}

/// semantics 62: what was deleted and is kept comes back, one blob or all in a folder; where nothing is kept, that is said.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_blobs_come_back() {
    let (service, world) = with(&["d/a", "d/b", "d/live", "d-/c"]).await;
    let off = world.run(&["undelete", &at(&service, "d"), "--recursive"]);
    assert!(off.code == 0 && off.stderr.contains("nothing to undelete") && off.stderr.contains("soft delete"), "{off:?}");
    service.keep_deleted().await;
    for place in ["d/a", "d/b", "d-/c"] {
        assert_eq!(world.run(&["remove", &at(&service, place)]).code, 0);
    }
    let ran = world.run(&["undelete", &at(&service, "d"), "--recursive", "--dry-run"]);
    assert_eq!((ran.code, ran.stdout.matches("DRYRUN: undelete").count()), (0, 2), "{ran:?}");
    let ran = world.run(&["undelete", &at(&service, "d"), "--recursive", "--output-type=json"]);
    assert_eq!((ran.code, counts(&summary(&ran))), (0, [2, 2, 0, 0]), "{ran:?}");
    assert_eq!(service.names().await, ["d/a", "d/b", "d/live"]);
    assert_eq!(world.run(&["undelete", &at(&service, "d-/c")]).code, 0);
    let ran = world.run(&["undelete", &at(&service, "never")]);
    assert!(ran.code == 3 && ran.stderr.contains("no deleted blob") && ran.stderr.contains("soft delete"), "{ran:?}");
}
