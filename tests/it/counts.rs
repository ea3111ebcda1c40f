//! What is counted, as the program tells it: every object once, every byte once, every failure with its cause.

use crate::cli_support::{Ran, World, emulator};
use crate::script::{Script, answer, refusal};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

fn summary(ran: &Ran) -> Value {
    let summary = ran.json().pop().unwrap();
    assert_eq!(summary["type"], "summary", "{ran:?}");
    let figure = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(figure("total"), figure("done") + figure("failed") + figure("skipped"), "{summary}");
    let told: u64 = summary["failures"].as_array().unwrap().iter().map(|cause| cause["count"].as_u64().unwrap()).sum();
    assert_eq!(told, figure("failed"), "every failure has a cause: {summary}");
    summary
}

// semantics 24
/// Case 48: requests are sent again, and what they carry counts when it is acknowledged, once.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_bytes_count_once_through_retries() {
    let world = World::new();
    let len = 50_000;
    world.write("f", vec![b'x'; len]);
    let script = Script::start(|number, _| match number % 5 {
        1 => refusal(503, "ServerBusy"),
        3 => answer(500, "x-ms-error-code: InternalError", ""),
        _ => answer(201, "ETag: \"0x8D1\"", ""),
    })
    .await;
    let url = format!("http://{}/devstoreaccount1/box", script.address);
    let sizes = ["--block-size-mb", "0.005", "--put-blob-size-mb", "0.001", "--concurrency", "3", "--output-type", "json"];
    let ran = world.run(&[&["copy", "f", &url], &sizes[..]].concat());
    let ended = summary(&ran);
    assert_eq!((ran.code, ended["bytes_done"].as_u64()), (0, Some(len as u64)), "{ended}");
    assert!(ended["bytes_on_wire"].as_u64().unwrap() > len as u64 + 5000, "what was sent again went over the wire: {ended}");
    let progress: Vec<Value> = ran.json().into_iter().filter(|line| line["type"] == "progress").collect();
    let done: Vec<u64> = progress.iter().map(|line| line["bytes_done"].as_u64().unwrap()).collect();
    assert!(done.is_sorted(), "{done:?}");
    let last = progress.last().unwrap();
    assert_eq!((last["bytes_done"].as_u64(), last["bytes_known"].as_u64()), (Some(len as u64), Some(len as u64)));
    assert_eq!((last["done"].as_u64(), last["total"].as_u64(), last["percent"].as_f64()), (Some(1), Some(1), Some(100.0)));
}

// semantics 12
#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_ends_the_job_is_among_its_failures() {
    let world = World::new();
    (0..200).for_each(|i| drop(world.write(&format!("d/{i}"), "x")));
    let script = Script::start(|number, _| match number {
        0..5 => answer(201, "ETag: \"0x8D1\"", ""),
        _ => refusal(403, "AuthorizationFailure"),
    })
    .await;
    let url = format!("http://{}/devstoreaccount1/box", script.address);
    let ran = world.run(&["copy", "d", &url, "--recursive", "--output-type", "json"]);
    let ended = summary(&ran);
    assert!(ran.code == 4 && ended["done"].as_u64().unwrap() <= 5, "{ended}");
    assert!(ended["failed"].as_u64().unwrap() > 0);
    assert_eq!(ended["failures"][0]["error"]["code"], "AuthorizationFailure", "{ended}");
    assert_eq!(ran.json().iter().filter(|line| line["type"] == "error").count(), 1, "told once");
}

/// Case 3: what is no readable file is counted and named, never waited for, and never an empty blob.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_counted_and_named() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("d/good", "x");
    let locked = world.write("d/locked", "x");
    fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
    // The superuser may read everything.
    let readable = fs::File::open(&locked).is_ok();
    let at = |name: &str| world.path().join("d").join(name);
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink("nowhere", at("broken")).unwrap();
    symlink("/dev/null", at("null")).unwrap();
    let url = format!("{}/box", emulator.url());
    let args = ["copy", "d", &url, "--recursive", "--follow-symlinks", "--create-container", "--output-type", "json"];
    let ran = world.run(&args);
    let ended = summary(&ran);
    let failed = if readable { 1 } else { 2 };
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!((ended["failed"].as_u64(), ended["skipped"].as_u64()), (Some(failed), Some(3)), "{ended}");
    let told = ended.to_string();
    for name in ["d/fifo", "d/socket", "d/broken", "d/null"] {
        assert!(told.contains(&format!("\"{name}\"")), "{name} is not named: {told}");
    }
    let stored = world.run(&["list", &url]).stdout;
    let expected =
        if readable { "d/good; Content Length: 1 B\nd/locked; Content Length: 1 B\n" } else { "d/good; Content Length: 1 B\n" };
    assert_eq!(stored, expected);
}
