//! What a run prints, where, and in which form.

use crate::cli_support::{World, emulator};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

/// Case 48; semantics 24: the last line counts the total.
#[tokio::test(flavor = "multi_thread")]
async fn progress_goes_to_stderr_and_the_summary_to_stdout_without_escape_codes() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("d/a.txt", "hello");
    world.write("d/s/b.txt", "you");
    world.write("d/empty", "");
    let ran = world.run(&["copy", "d", &format!("{}/box", emulator.url()), "--recursive", "--create-container"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.all().contains(['\x1b', '\r']), "{ran:?}");
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("100.0 %, 3 Done, 0 Failed, 0 Pending, 0 Skipped, 3 Total, 2-sec Throughput (Mb/s): "), "{last}");
    assert!(ran.stderr.starts_with("Job "), "{}", ran.stderr);
    for line in [
        "Number of File Transfers: 3",
        "Number of File Transfers Completed: 3",
        "Number of File Transfers Failed: 0",
        "Total Number of Bytes Transferred: 8",
        "Final Job Status: Completed",
    ] {
        assert!(ran.stdout.lines().any(|l| l == line), "{line} is not in {}", ran.stdout);
    }
}

/// Case 49; semantics 12: the counts add up.
#[tokio::test(flavor = "multi_thread")]
async fn every_json_line_parses_and_the_last_one_is_the_summary() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("d/a.txt", "hello");
    world.write("d/bad\\name", "x");
    std::os::unix::fs::symlink("a.txt", world.path().join("d/link")).unwrap();
    let url = format!("{}/box", emulator.url());
    let ran = world.run(&["copy", "d", &url, "--recursive", "--create-container", "--output-type", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "{ran:?}");
    let lines = ran.json();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types.first(), Some(&"init"));
    for expected in ["failed", "skipped", "progress"] {
        assert!(types.contains(&expected), "{expected} in {types:?}");
    }
    let summary = lines.last().unwrap();
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["status"], "CompletedWithErrorsAndSkipped");
    assert_eq!([&summary["total"], &summary["done"], &summary["failed"], &summary["skipped"]], [3, 1, 1, 1]);
    assert_eq!((&summary["bytes_done"], &summary["exit_code"]), (&5.into(), &1.into()));
    assert!(lines.iter().all(|line| line["schema"] == 1));
}

#[test]
fn wrong_usage_is_json_too() {
    let world = World::new();
    for args in [
        &["copy", "--output-type", "json"][..],
        &["copy", "a", "b", "--nonsense", "--output-type=json"],
        &["copy", "a", "dev://b", "--preserve-smb-permissions", "--output-type=json"],
        &["--output-type=json", "copy", "gone", "dev://b"],
        &["--output-type=json", "nonsense"],
    ] {
        let ran = world.run(args);
        let lines = ran.json();
        let [line] = lines.as_slice() else { panic!("{args:?}: {ran:?}") };
        assert_eq!((&line["type"], &line["exit_code"]), (&"error".into(), &ran.code.into()), "{args:?}");
        assert_eq!(ran.stderr, "", "{args:?}");
    }
}

/// Promised as semantics 22, 23.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_job_ends_with_its_summary() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    let url = format!("{}/box/stream", emulator.url());
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let args = ["copy", "-", &url, "--create-container", "--output-type", "json"];
        let mut child = world.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"the beginning of something").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains("\"init\""));
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let summary: serde_json::Value = serde_json::from_str(rest.last().unwrap()).unwrap();
        assert_eq!((&summary["type"], &summary["status"]), (&"summary".into(), &"Cancelled".into()), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("to start again: ")), "{rest:?}");
        drop(stdin);
    }
    assert!(!emulator.seen().iter().any(|seen| seen.path.ends_with("/stream") && seen.method == "PUT" && seen.query.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn works_without_a_home_a_terminal_or_standard_streams() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("f.txt", "x");
    let url = format!("{}/box", emulator.url());
    let mut command = world.command(&["copy", "f.txt", &url, "--create-container"]);
    assert_eq!(command.env_remove("HOME").env_remove("BLOBJET_STATE").status().unwrap().code(), Some(0));
    let line = format!("exec \"$0\" copy f.txt '{url}' <&- >&- 2>&-");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_blobjet")]).current_dir(world.path()).env_clear();
    shell.env("AZURE_STORAGE_ACCOUNT", emulator.account()).env("AZURE_STORAGE_KEY", emulator.key().expose());
    assert_eq!(shell.status().unwrap().code(), Some(0));
    assert_eq!(emulator.seen().iter().filter(|seen| seen.status == 201 && seen.path.ends_with("f.txt")).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_levels_leave_out_what_they_say() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("f.txt", "x");
    let url = format!("{}/box", emulator.url());
    let run = |level: &str| world.run(&["copy", "f.txt", &url, "--create-container", "--output-level", level]);
    let essential = run("essential");
    assert!(!essential.stderr.contains("Throughput") && essential.stdout.contains("Final Job Status"), "{essential:?}");
    let quiet = run("quiet");
    assert_eq!((quiet.code, quiet.all().as_str()), (0, ""));
    let none = format!("{}/none", emulator.url());
    let failed = world.run(&["copy", &format!("{none}/x"), "y", "--output-level", "quiet"]);
    assert!(failed.code != 0 && failed.stderr.contains("none/x"), "{failed:?}");
    world.write("bad\\name", "x");
    let failed = world.run(&["copy", ".", &url, "--recursive", "--output-level", "quiet"]);
    assert!(failed.code == 1 && failed.stderr.contains("backslash"), "an object that fails is an error: {failed:?}");
    let gone = world.run(&["copy", "gone.txt", &url, "--output-level", "quiet"]);
    assert!(gone.code == 3 && gone.stderr.starts_with("error: "), "{gone:?}");
}

/// A job ends with its last answer: nothing waits for the two seconds of the meter. The limit is generous because tests share
/// the machine; 30 ms is what the bench asks of a release build.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_copy_does_not_wait_for_a_timer() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("f.txt", "x");
    let begun = std::time::Instant::now();
    assert_eq!(world.run(&["copy", "f.txt", &format!("{}/box", emulator.url()), "--create-container"]).code, 0);
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
}
