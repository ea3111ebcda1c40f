//! `blobjet jobs`, and jobs that are gone on with: killed, stopped, failed, with another credential. The server says when to kill.

use crate::cli_support::{KEY, Ran, World, emulator};
use crate::script::{Reply, Script, Seen, answer, refusal};
use crate::support::raw::VERSION;
use blobjet::emulator::Emulator;
use blobjet::rest::auth::{sas, shared_key};
use blobjet::secret::Secret;
use blobjet::transfer::journal::{Job, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// A server that acknowledges so many writes and then falls silent, until it is told to go on.
struct Held {
    script: Script,
    limit: Arc<AtomicUsize>,
    requests: mpsc::UnboundedReceiver<usize>,
}

impl Held {
    async fn after(limit: usize) -> Held {
        let limit = Arc::new(AtomicUsize::new(limit));
        let (sender, requests) = mpsc::unbounded_channel();
        let most = Arc::clone(&limit);
        let script = Script::start(move |number, _: &Seen| {
            let _ = sender.send(number);
            if number < most.load(Ordering::SeqCst) { answer(201, "", "") } else { Reply::Silence }
        })
        .await;
        Held { script, limit, requests }
    }

    /// Waits until so many requests have come.
    async fn until(&mut self, count: usize) {
        while self.requests.recv().await.unwrap() + 1 < count {}
    }

    fn go_on(&self) {
        self.limit.store(usize::MAX, Ordering::SeqCst);
    }

    fn url(&self) -> String {
        format!("http://{}/devstoreaccount1/box", self.script.address)
    }

    /// How often each name was written by the requests from `from` on.
    fn writes(&self, from: usize) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        for seen in &self.script.seen()[from..] {
            let name = seen.target.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned();
            *writes.entry(name).or_default() += 1;
        }
        writes
    }
}

fn start(world: &World, args: &[&str]) -> Child {
    world.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn state(world: &World) -> std::path::PathBuf {
    world.path().join(".state")
}

/// The one job in the journal, once it is as wanted.
async fn job_when(world: &World, wanted: impl Fn(&Job) -> bool) -> Job {
    loop {
        let jobs = Store::open(&state(world)).unwrap().map(|store| store.jobs().unwrap()).unwrap_or_default();
        if let Some(job) = jobs.into_iter().next().filter(&wanted) {
            return job;
        }
        tokio::task::yield_now().await;
    }
}

fn status(world: &World) -> String {
    let ran = world.run(&["jobs", "list", "--output-type=json"]);
    ran.json()[0]["status"].as_str().unwrap().to_owned()
}

fn summary(ran: &Ran) -> serde_json::Value {
    ran.json().pop().unwrap()
}

fn counts(line: &serde_json::Value) -> [u64; 4] {
    ["total", "done", "failed", "skipped"].map(|name| line[name].as_u64().unwrap())
}

/// Case 27; semantics 35, 39: with the journal, what was finished is not sent again.
#[tokio::test(flavor = "multi_thread")]
async fn killed_half_way_the_rest_is_sent_and_nothing_twice() {
    let world = World::new();
    let mut held = Held::after(20).await;
    for i in 0..60 {
        world.write(&format!("d/f{i:02}"), format!("{i}"));
    }
    let mut child = start(&world, &["copy", "d", &held.url(), "--recursive", "--concurrency=4"]);
    held.until(24).await;
    let job = job_when(&world, |job| job.done == 20).await;
    assert_eq!(status(&world), "InProgress");
    for verb in ["resume", "remove"] {
        let ran = world.run(&["jobs", verb, &job.id]);
        assert!(ran.code == 1 && ran.stderr.contains("still running"), "{verb}: {ran:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status(&world), "Interrupted");
    let finished = held.script.seen()[..20].iter().map(|seen| seen.target.clone()).collect::<Vec<_>>();
    world.write("d/f60", "new");
    let touched = finished[0].rsplit('/').next().unwrap();
    world.write(&format!("d/{touched}"), "changed since");

    held.go_on();
    let before = held.script.count();
    let ran = world.run(&["jobs", "resume", &job.id[..8], "--output-type=json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let writes = held.writes(before);
    assert!(writes.values().all(|count| *count == 1), "{writes:?}");
    assert_eq!(writes.len(), 42, "40 were left, one is new and one has changed: {writes:?}");
    let end = summary(&ran);
    assert_eq!((counts(&end), &end["status"]), ([61, 42, 0, 19], &"Completed".into()));
    assert_eq!(end["job_id"], job.id.as_str());
    assert_eq!(end["left_out"][0]["reason"], "finished earlier, and unchanged since");

    let shown = world.run(&["jobs", "show", &job.id, "--output-type=json"]).json().remove(0);
    assert_eq!((counts(&shown), &shown["runs"]), ([61, 61, 0, 0], &2.into()));
    let ran = world.run(&["jobs", "resume", &job.id]);
    assert!(ran.code == 0 && ran.stderr.contains("is finished"), "{ran:?}");
    assert_eq!(held.script.count(), before + 42);
}

/// semantics 36: stopped by a signal, the job says how to go on with it, and that works.
#[tokio::test(flavor = "multi_thread")]
async fn stopped_by_a_signal_it_names_the_command_that_goes_on() {
    let world = World::new();
    let mut held = Held::after(3).await;
    for i in 0..8 {
        world.write(&format!("d/f{i}"), "x");
    }
    let child = start(&world, &["copy", "d", &held.url(), "--recursive", "--concurrency=1"]);
    held.until(4).await;
    for _ in 0..2 {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        // Two signals of one kind at the same time are one.
        if held.limit.load(Ordering::SeqCst) == 3 {
            job_when(&world, |job| job.done == 3).await;
            held.limit.store(4, Ordering::SeqCst);
        }
    }
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert_eq!(ran.code, 130, "{ran:?}");
    let job = job_when(&world, |_| true).await;
    assert!(ran.stderr.contains(&format!("to go on: blobjet jobs resume {}\n", job.id)), "{}", ran.stderr);
    assert_eq!(status(&world), "Cancelled");
    held.go_on();
    let before = held.script.count();
    let ran = world.run(&["jobs", "resume", &job.id, "--output-type=json"]);
    assert_eq!((ran.code, counts(&summary(&ran))), (0, [8, 5, 0, 3]), "{ran:?}");
    assert_eq!(held.writes(before).len(), 5);
}

/// semantics 36: what failed is tried again, and only that.
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_tried_again() {
    let world = World::new();
    let healed = Arc::new(AtomicUsize::new(0));
    let is_healed = Arc::clone(&healed);
    let script = Script::start(move |_, seen: &Seen| match seen.target.contains("/locked") {
        true if is_healed.load(Ordering::SeqCst) == 0 => refusal(409, "BlobImmutableDueToPolicy"),
        _ => answer(201, "", ""),
    })
    .await;
    let url = format!("http://{}/devstoreaccount1/box", script.address);
    for name in ["a", "locked", "z"] {
        world.write(&format!("d/{name}"), name);
    }
    std::os::unix::fs::symlink("a", world.path().join("d/link")).unwrap();
    let ran = world.run(&["copy", "d", &url, "--recursive", "--metadata", "k=v"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let job = job_when(&world, |job| job.ended.is_some()).await;
    assert!(ran.stdout.contains(&format!("to go on with what is missing: blobjet jobs resume {}", job.id)), "{}", ran.stdout);

    let show = |status: &str| {
        let ran = world.run(&["jobs", "show", &job.id[..4], "--with-status", status, "--output-type=json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json().split_off(1)
    };
    let failed = show("failed");
    assert_eq!(failed.len(), 1);
    assert_eq!((&failed[0]["source"], &failed[0]["destination"]), (&"d/locked".into(), &"d/locked".into()));
    assert_eq!(failed[0]["reason"], "Conflict: 409 BlobImmutableDueToPolicy");
    assert_eq!((show("SUCCESS").len(), show("Skipped").len(), show("all").len()), (2, 1, 4));

    healed.store(1, Ordering::SeqCst);
    let before = script.count();
    // From another folder: relative paths are those of the first run.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = world.command(&["jobs", "resume", &job.id]);
    let ran: Ran = command.current_dir(elsewhere.path()).output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    let seen = script.seen().split_off(before);
    assert_eq!(seen.len(), 1);
    assert!(seen[0].target.ends_with("/box/d/locked"));
    assert_eq!(seen[0].header("x-ms-meta-k"), Some("v"), "with all options of the first run");
    assert_eq!((show("failed").len(), show("all").len()), (0, 4));
}

/// A SAS for the container, good until its signature is broken.
fn token(emulator: &Emulator, permissions: &str) -> String {
    let fields = [("sv", VERSION), ("sr", "c"), ("sp", permissions), ("se", "2099-01-01")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let key = shared_key::decode_key(emulator.key()).unwrap();
    sas::mint(emulator.account(), &key, &sas::Fields::from_query(&fields), Some(("box", None))).expose().to_owned()
}

fn signature(token: &str) -> &str {
    token.split('&').find_map(|pair| pair.strip_prefix("sig=")).unwrap()
}

/// Every file in a folder and the folders in it.
fn contents(folder: &Path, into: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { contents(&path, into) } else { into.extend(std::fs::read(&path).unwrap()) }
    }
}

/// Case 29; semantics 37, 25: another credential may finish what one began, and none is written down.
#[tokio::test(flavor = "multi_thread")]
async fn another_credential_goes_on_and_none_is_kept() {
    let mut world = World::new();
    let emulator = Emulator::builder().account("acct", Secret::new(KEY)).record(true).start().await.unwrap();
    world.write("d/a", "aaa");
    world.write("d/b", "bbb");
    let url = format!("{}/box", emulator.url());
    world.set("AZURE_STORAGE_ACCOUNT", emulator.account());
    world.set("AZURE_STORAGE_KEY", KEY);
    assert_eq!(world.run(&["make", &url]).code, 0);
    world.set("AZURE_STORAGE_KEY", "");

    let good = token(&emulator, "cw");
    let bad = good.replace(signature(&good), "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY%3D");
    let ran = world.run(&["copy", "d", &format!("{url}?{bad}"), "--recursive", "--output-type=json"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    let end = summary(&ran);
    let id = end["job_id"].as_str().unwrap();
    assert_eq!(end["resume"], format!("blobjet jobs resume {id} --destination-sas 'SAS'"));

    // Still wrong, then right.
    let ran = world.run(&["jobs", "resume", id, "--destination-sas", &bad]);
    assert_eq!(ran.code, 4, "{ran:?}");
    let ran = world.run(&["jobs", "resume", id, "--destination-sas", &format!("?{good}")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(emulator.seen().iter().filter(|seen| seen.status == 201 && seen.path.contains("/box/d/")).count() == 2);

    // And with a key where a SAS was before.
    let ran = world.run(&["copy", "d", &format!("{url}?{bad}"), "--recursive", "--output-type=json"]);
    let id = summary(&ran)["job_id"].as_str().unwrap().to_owned();
    world.set("AZURE_STORAGE_KEY", KEY);
    let ran = world.run(&["jobs", "resume", &id]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(world.run(&["jobs", "list"]).stdout.matches(" Completed ").count(), 2);

    let mut kept = Vec::new();
    contents(&state(&world), &mut kept);
    assert!(kept.len() > 4096, "the journal is there");
    for secret in [KEY, signature(&good), signature(&bad), "sig="] {
        let found = kept.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{secret} is in the journal");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_piped_is_listed_and_cannot_be_resumed() {
    let world = World::new();
    let ran = world.run(&["copy", "-", "dev://box/x"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let script = Script::start(|_, _: &Seen| refusal(409, "BlobImmutableDueToPolicy")).await;
    let ran = world.run(&["copy", "-", &format!("http://{}/devstoreaccount1/box/x", script.address)]);
    assert!(ran.code == 1 && !ran.all().contains("jobs resume"), "{ran:?}");
    let id = job_when(&world, |_| true).await.id;
    let ran = world.run(&["jobs", "resume", &id]);
    assert!(ran.code == 2 && ran.stderr.contains("standard input"), "{ran:?}");
}

/// semantics 40.
#[test]
fn jobs_are_listed_by_status_and_go_when_told_to() {
    let world = World::new();
    world.write("f", "x");
    assert_eq!(world.run(&["jobs", "list"]).code, 0);
    assert_eq!(world.run(&["jobs", "show", "abc"]).code, 3);
    for _ in 0..3 {
        assert_eq!(world.run(&["copy", "f", "dev://box"]).code, 0);
    }
    world.run(&["copy", "f", "dev://box", "--overwrite=false"]);
    assert_eq!(world.run(&["copy", "f", "dev://box", "--keep-jobs=0"]).code, 0);
    assert_eq!(world.run(&["copy", "f", "dev://box", "--dry-run"]).code, 0);
    let list = |status: &str| {
        let ran = world.run(&["jobs", "list", "--with-status", status, "--output-type=json"]);
        ran.json().into_iter().filter(|line| line["type"] == "job").collect::<Vec<_>>()
    };
    assert_eq!(list("all").len(), 4);
    assert_eq!((list("completed").len(), list("CompletedWithSkipped").len(), list("failed").len()), (3, 1, 0));
    assert_eq!(world.run(&["jobs", "list", "--with-status=nonsense"]).code, 2);
    let id = list("completed")[0]["job_id"].as_str().unwrap().to_owned();
    let shown = world.run(&["jobs", "show", &id]);
    assert!(shown.stdout.contains("Number of Transfers Completed: 1\n") && shown.stdout.contains("Job Status: Completed"));
    assert_eq!(world.run(&["jobs", "rm", &id]).code, 0);
    assert_eq!(world.run(&["jobs", "remove", &id]).code, 3);
    assert_eq!(world.run(&["jobs", "clean", "--with-status=completed"]).code, 0);
    assert_eq!(list("all").len(), 1);
    for _ in 0..3 {
        assert_eq!(world.run(&["copy", "f", "dev://box", "--keep-jobs=2"]).code, 0);
    }
    assert_eq!(list("all").len(), 2);
    assert_eq!(world.run(&["jobs", "clean"]).code, 0);
    assert_eq!(list("all").len(), 0);
}

/// Case 28; semantics 38: without a place for the journal the transfer works.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_journal_the_transfer_works() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["make", &url]).code, 0);
    for i in 0..50 {
        world.write(&format!("d/{i}"), "x");
    }
    let copy = ["copy", "d", &url, "--recursive"];
    let off = "warning: the journal is off: ";

    // No home at all: nothing to say.
    let ran: Ran = world.command(&copy).env_remove("HOME").env_remove("BLOBJET_STATE").output().unwrap().into();
    assert!(ran.code == 0 && !ran.stderr.contains("warning"), "{ran:?}");
    // A folder that cannot be made, even by root.
    let ran: Ran = world.command(&copy).env("BLOBJET_STATE", "/proc/self/nothing").output().unwrap().into();
    assert!(ran.code == 0 && ran.stderr.matches(off).count() == 1, "{ran:?}");
    // Something else under its name.
    world.write(".state/jobs.sqlite", "not a database".repeat(1000));
    let ran = world.run(&copy);
    assert!(ran.code == 0 && ran.stderr.matches(off).count() == 1, "{ran:?}");
    // A disk that is full after so many KiB, from nothing at all on.
    for kib in [0, 4, 12, 24] {
        let folder = world.path().join(format!("state{kib}"));
        let mut command = Command::new("sh");
        let limited = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
        let program = world.command(&copy);
        command.args(["-c", &limited]).arg(program.get_program()).args(program.get_args()).current_dir(world.path());
        command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        let ran: Ran = command.env("BLOBJET_STATE", &folder).output().unwrap().into();
        assert!(ran.code == 0 && ran.stderr.matches(off).count() == 1, "{kib} KiB: {ran:?}");
    }
    assert_eq!(emulator.seen().iter().filter(|seen| seen.status == 201 && seen.path.contains("/box/d/")).count(), 7 * 50);
}

/// semantics 38: a journal that a newer program made is left as it is.
#[test]
fn a_newer_journal_is_left_alone() {
    let world = World::new();
    world.write("f", "x");
    assert_eq!(world.run(&["copy", "f", "dev://box"]).code, 0);
    let file = state(&world).join("jobs.sqlite");
    let newer = rusqlite::Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 1000).unwrap();
    drop(newer);
    let ran = world.run(&["copy", "f", "dev://box"]);
    assert!(ran.code == 0 && ran.stderr.contains("has format 1000"), "{ran:?}");
    let ran = world.run(&["jobs", "list"]);
    assert!(ran.code == 1 && ran.stderr.contains("has format 1000"), "{ran:?}");
}
