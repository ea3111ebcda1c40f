//! `bench`, as it is run: what it writes, what it leaves, what it says.

use crate::cli_support::World as Cli;
use crate::world::{CONTAINER, World};
use blobjet::rest::container::{Container, ListOptions};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const SMALL: [&str; 4] = ["--file-count=30", "--size-per-file=4K", "--number-of-folders=3", "--output-type=json"];

/// A service with a container that holds somebody's blob, and the program with the service's key.
async fn both() -> (World, Cli, String) {
    let world = World::new().await;
    let mut cli = Cli::new();
    cli.know(&world.emulator);
    let url = format!("{}/{CONTAINER}", world.emulator.url());
    cli.write("theirs", "not ours");
    assert_eq!(cli.run(&["copy", "theirs", &url]).code, 0);
    (world, cli, url)
}

/// All names, those of uncommitted blobs among them.
async fn names(world: &World) -> Vec<String> {
    let options = ListOptions { include: vec!["uncommittedblobs"], ..ListOptions::default() };
    let page = Container::new(&world.client, CONTAINER).list(&options).await.unwrap();
    page.blobs().map(|blob| blob.name.clone()).collect()
}

/// What `azcopy bench --help` lists, version 10.32.2, is taken, or refused with the reason.
#[test]
fn azcopys_flags_are_known() {
    let cli = Cli::new();
    let small = ["bench", "--file-count=2", "--size-per-file=1k"];
    for flag in [
        "--blob-type=Detect",
        "--block-size-mb=0.25",
        "--check-length",
        "--delete-test-data=false",
        "--mode=Upload",
        "--number-of-folders=1",
        "--put-blob-size-mb=1",
        "--put-md5",
        "--cap-mbps=100",
        "--log-level=ERROR",
        "--output-level=essential",
        "--output-type=json",
        "--trusted-microsoft-suffixes=*.example.org",
    ] {
        let ran = cli.run(&[&small[..], &[flag]].concat());
        assert_eq!(ran.code, 0, "{flag}: {ran:?}");
    }
    for flag in ["--await-continue", "--await-open", "--check-version", "--debug-skip-files=a"] {
        let ran = cli.run(&[&small[..], &[flag]].concat());
        assert!(ran.code == 2 && ran.stderr.contains("is refused"), "{flag}: {ran:?}");
    }
}

#[test]
fn without_a_destination_it_measures_this_machine() {
    let cli = Cli::new();
    let ran = cli.run(&[&["bench", "--report=run.json"], &SMALL[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let summary = ran.json().pop().unwrap();
    assert_eq!((&summary["type"], &summary["done"], &summary["bytes_done"]), (&"summary".into(), &30.into(), &122_880.into()));
    assert_eq!(summary["verdict"]["certainty"], "not_sure", "30 requests say nothing: {}", summary["verdict"]);
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(cli.path().join("run.json")).unwrap()).unwrap();
    assert_eq!((&record["summary"]["verdict"], &record["sizes"][0]["count"]), (&summary["verdict"], &30.into()));
    assert!(!cli.path().join(".state").exists(), "the embedded service keeps nothing");
}

/// Promised as semantics 49: its own names, and no others, are written and deleted.
#[tokio::test(flavor = "multi_thread")]
async fn it_deletes_what_it_wrote_and_touches_nothing_else() {
    let (world, cli, url) = both().await;
    let ran = cli.run(&[&["bench", &url], &SMALL[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(&world).await, ["theirs"]);
    let id = ran.json()[0]["job_id"].as_str().unwrap().to_owned();
    let ours = format!("/{CONTAINER}/blobjet-bench-{id}/");
    let seen = world.emulator.seen();
    let changes = seen.iter().filter(|seen| ["PUT", "DELETE"].contains(&seen.method.as_str()) && seen.path.contains("blobjet"));
    let changes: Vec<_> = changes.collect();
    assert_eq!(changes.len(), 60, "a request a file, and one to delete it");
    assert!(changes.iter().all(|seen| seen.path.contains(&ours)), "{changes:?}");
    let kept = cli.run(&[&["bench", &format!("{url}/under"), "--delete-test-data=false", "--put-md5"], &SMALL[..]].concat());
    assert_eq!(kept.code, 0, "{kept:?}");
    let names = names(&world).await;
    assert_eq!(names.len(), 31);
    assert!(names.iter().filter(|name| *name != "theirs").all(|name| name.starts_with("under/blobjet-bench-")), "{names:?}");
}

/// Stopped half way, blocks and all.
#[tokio::test(flavor = "multi_thread")]
async fn it_cleans_up_after_ctrl_c() {
    let (world, cli, url) = both().await;
    let faults = ["op=PutBlock,after=3,hang"].map(|rule| world.emulator.fault(rule.parse().unwrap()));
    let args = ["bench", &url, "--file-count=50", "--size-per-file=32K", "--block-size-mb=0.015625", "--output-type=json"];
    let mut child = cli.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let id = child.id().to_string();
    let interrupt = || std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("\"bytes_done\":49152")).unwrap();
    interrupt();
    lines.find(|line| line.contains("stopping")).unwrap();
    interrupt();
    let last = lines.last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(last.contains("\"Cancelled\"") && faults[0].hits() > 0, "{last}");
    assert_eq!(names(&world).await, ["theirs"], "not even uncommitted blocks");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_deleted_is_named() {
    let (world, cli, url) = both().await;
    world.emulator.fault("op=DeleteBlob,path=*00000007.bin,status=409/LeaseIdMissing".parse().unwrap());
    let ran = cli.run(&["bench", &url, "--file-count=9", "--size-per-file=1K"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr.contains("1 files of the test may still be there") && ran.stderr.contains("00000007.bin"),
        "{}",
        ran.stderr
    );
    assert_eq!(names(&world).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_refused_before_anything_is_sent() {
    let (world, cli, url) = both().await;
    let sas = cli.run(&["sas", &url, "--permissions", "cw", "--expiry", "2h"]).stdout.trim().to_owned();
    let before = world.emulator.requests();
    for (args, code, word) in [
        (&["bench", &url, "--mode=Download"][..], 2, "downloads are not offered yet"),
        (&["bench", &sas], 4, "--delete-test-data=false"),
        (&["bench", "./here"], 2, "no container"),
        (&["bench", &world.emulator.url()], 2, "names no container"),
        (&["bench", &url, "--size-per-file=12X"], 2, "unknown unit"),
        (&["bench", &url, "--file-count=0"], 2, "file-count"),
        (&["bench", &url, "--report=run"], 2, "what kind of report"),
        (&["bench", &url, "--size-per-file=1T", "--block-size-mb=1"], 2, "block"),
    ] {
        let ran = cli.run(args);
        assert!(ran.code == code && ran.stderr.contains(word), "{args:?}: {ran:?}");
    }
    assert_eq!(world.emulator.requests(), before);
    let ran = cli.run(&["bench", &sas, "--file-count=2", "--size-per-file=1K", "--delete-test-data=false"]);
    assert_eq!(ran.code, 0, "a SAS that may only write is enough then: {ran:?}");
}
