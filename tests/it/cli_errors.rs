//! What goes wrong before or at the first request: told within moments, in four parts, once, with the right exit code, nothing
//! half done, and no secret anywhere. The snapshots are the catalogue of what people read.

use crate::cli_support::{KEY, World, emulator};
use blobjet::chunks::Chunks;
use blobjet::emulator::Emulator;
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::Blob;
use blobjet::rest::client::{Client, Config};
use blobjet::rest::location::Location;
use blobjet::secret::Secret;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Every error here is found without waiting for anything; the limit only tells "at once" from "after retries".
const AT_ONCE: Duration = Duration::from_secs(5);

/// Runs each command line, and writes down how it ended.
fn catalogue(world: &World, lines: &[&[&str]]) -> String {
    let mut out = String::new();
    for args in lines {
        let begun = Instant::now();
        let ran = world.run(args);
        assert!(begun.elapsed() < AT_ONCE, "{args:?} took {:?}", begun.elapsed());
        for secret in [KEY, &KEY[..20], "sig=abc", SIG] {
            assert!(!ran.all().contains(secret), "{args:?} shows a secret: {}", ran.all());
        }
        let typed: Vec<String> = args.iter().map(|arg| world.plain(arg).replace(SIG, "SIG")).collect();
        writeln!(out, "$ blobjet {}\n{}[exit {}]\n", typed.join(" "), world.plain(&ran.all()), ran.code).unwrap();
    }
    out
}

/// 44 characters, as a signature has; nobody's.
const SIG: &str = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY%3D";

/// Among them semantics 27: nothing goes over plain HTTP to another machine unless asked.
#[test]
fn places_that_cannot_be() {
    let world = World::new();
    world.write("f.txt", "x");
    world.write("d/f.txt", "x");
    let https = "https://acct.blob.core.windows.net/box";
    let said = catalogue(
        &world,
        &[
            &["copy", "f.txt", "https://"],
            &["copy", "f.txt", "ftp://acct/box"],
            &["copy", "f.txt", "https://acct.blob.core.windows.net"],
            &["copy", "f.txt", "https://acct.dfs.core.windows.net/box"],
            &["copy", "f.txt", "https://acct.blob.core.windows.net/box?sv=1&sig=abc"],
            &["copy", "f.txt", "other.txt"],
            &["copy", https, "f.txt"],
            &["copy", "f.txt"],
            &["copy", "-", https],
            &["copy", "f.txt", "dev://Docs"],
            &["make", "https://acct.blob.core.windows.net/a--b"],
            &["copy", "d", https],
            &["copy", "gone.txt", https],
            &["copy", "f.txt", "http://example.org/box", "--dry-run"],
            &["copy", "f.txt", "dev://box", "--from-to", "LocalFile"],
            &["copy", "f.txt", "dev://box", "--from-to", "PipeBlob"],
        ],
    );
    insta::assert_snapshot!(said);
}

#[test]
fn options_that_cannot_be() {
    let world = World::new();
    world.write("f.txt", "x");
    let to = |args: &[&'static str]| [&["copy", "f.txt", "dev://box"], args].concat();
    let lines = [
        to(&["--recursve"]),
        to(&["--preserve-smb-permissions"]),
        to(&["--blob-type=PageBlob"]),
        to(&["--recursive=maybe"]),
        to(&["--block-size-mb", "0"]),
        to(&["--block-size-mb", "100", "--memory", "64MiB"]),
        to(&["--metadata", "novalue"]),
        to(&["--metadata", "a-b=1"]),
        to(&["--blob-tags", "a"]),
        to(&["--overwrite", "prompt"]),
        to(&["--concurrency", "0"]),
        vec!["sas", "https://acct.blob.core.windows.net/box", "--permissions", "w", "--expiry", "2h"],
        vec!["serve", "--port", "65536"],
        vec!["serve", "--memory", "--discard"],
        vec!["serve", "--account", "mine:not base64"],
        vec!["nonsense"],
    ];
    let said = catalogue(&world, &lines.iter().map(Vec::as_slice).collect::<Vec<_>>());
    insta::assert_snapshot!(said);
}

/// Promised as semantics 26: what can be read from a SAS is checked before the first request.
#[tokio::test(flavor = "multi_thread")]
async fn access_that_is_refused_before_the_first_request() {
    let mut world = World::new();
    world.write("f.txt", "x");
    let emulator = emulator().await;
    let url = emulator.url();
    let sas = |rest: &str| format!("{url}/box?sv=2025-11-05&sr=c&{rest}&sig={SIG}");
    let late = sas("se=2020-01-01T00%3A00%3A00Z&sp=cw");
    let early = sas("st=2998-01-01&se=2999-01-01T00%3A00%3A00Z&sp=cw");
    let reads = sas("se=2999-01-01T00%3A00%3A00Z&sp=rl");
    let https = sas("se=2999-01-01T00%3A00%3A00Z&sp=cw&spr=https");
    let untagged = sas("se=2999-01-01T00%3A00%3A00Z&sp=rcwl&spr=https,http");
    let writes = sas("se=2999-01-01T00%3A00%3A00Z&sp=w&spr=https,http");
    let said = catalogue(
        &world,
        &[
            &["copy", "f.txt", &late],
            &["copy", "f.txt", &early],
            &["copy", "f.txt", &reads],
            &["copy", "f.txt", &reads, "--dry-run"],
            &["copy", "f.txt", &https],
            &["copy", "f.txt", &untagged, "--blob-tags", "a=b"],
            &["list", &writes],
        ],
    );
    world.set("AZURE_STORAGE_ACCOUNT", emulator.account());
    world.set("AZURE_STORAGE_KEY", "tooshort!");
    let key = catalogue(&world, &[&["copy", "f.txt", &format!("{url}/box")]]);
    insta::assert_snapshot!(said + &key);
    assert_eq!(emulator.seen().len(), 0, "all of that was known without asking");
}

/// Promised as semantics 19, 22: four parts, and the exit code.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_service_refuses() {
    let mut world = World::new();
    world.write("f.txt", "x");
    let emulator = emulator().await;
    let url = format!("{}/box", emulator.url());
    let forged = format!("{url}?sv=2025-11-05&sr=c&se=2999-01-01T00%3A00%3A00Z&sp=rcwl&spr=https,http&sig={SIG}");
    let mut said = catalogue(&world, &[&["copy", "f.txt", &forged], &["list", &forged], &["copy", "f.txt", &url]]);
    world.set("AZURE_STORAGE_ACCOUNT", emulator.account());
    world.set("AZURE_STORAGE_KEY", KEY);
    said += &catalogue(&world, &[&["copy", "f.txt", &url], &["make", &url]]);
    let unused = format!("http://127.0.0.1:{}/devstoreaccount1/box", closed_port());
    said += &catalogue(&world, &[&["copy", "f.txt", &unused]]);
    insta::assert_snapshot!(quiet_figures(&said));
    assert!(emulator.seen().iter().all(|seen| seen.status >= 400), "nothing is half done: {:?}", emulator.seen());
}

/// Case 38: with a clock that is off every signature is refused; the clock is named before any talk of keys.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_is_named() {
    let mut world = World::new();
    world.write("f.txt", "x");
    let ahead = || std::time::SystemTime::now() + Duration::from_secs(3600 + 30);
    let emulator = Emulator::builder().clock(Arc::new(ahead)).start().await.unwrap();
    world.know(&emulator);
    let ran = world.run(&["copy", "f.txt", &format!("{}/box", emulator.url())]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("meaning: this machine's clock is 1 hour behind the service's\n"), "{}", ran.stderr);
}

/// What another program staged and left bars blocks with ids of another length: it is cleared, or the way out is told.
#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_another_program_are_cleared_or_explained() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["make", &url]).code, 0);
    let location = Location::parse(&emulator.url()).unwrap();
    let inputs = Inputs { connection_string: Some(Secret::new(emulator.connection_string())), ..Inputs::default() };
    let client = Client::new(&location, choose(&location, &inputs).unwrap(), Config::default()).unwrap();
    let block = Chunks::from(b"left".to_vec());
    let leave = || async { Blob::new(&client, "box", "f.txt").put_block("c2hvcnQ=", &block, block.crc64()).await.unwrap() };
    world.write("f.txt", vec![b'x'; 3000]);

    leave().await;
    let ran = world.run(&["copy", "f.txt", &url, "--block-size-mb=0.001"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout.contains("cleared: uncommitted blocks of another program, in the way under the names of 1 blob"),
        "{ran:?}"
    );

    // With the right to write only, the way out is one request.
    leave().await;
    let sas = world.run(&["sas", &url, "--permissions", "cw", "--expiry", "2h"]).stdout;
    let ran = world.run(&["copy", "f.txt", sas.trim(), "--block-size-mb=0.001"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.all().contains("another program staged") && ran.all().contains("--put-blob-size-mb"), "{}", ran.all());
    let ran = world.run(&["copy", "f.txt", sas.trim(), "--block-size-mb=0.001", "--put-blob-size-mb=1"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A port on which nothing listens.
fn closed_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Without times, rates and sizes of memory.
fn quiet_figures(text: &str) -> String {
    let figures = ["Elapsed Time", "memory:", "0 B in "];
    let lines = text.lines().filter(|line| !figures.iter().any(|figure| line.starts_with(figure)));
    lines.map(|line| line.split_inclusive("(Mb/s):").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Nobody knows the address of the service behind `dev://`: places in it are told as they are written. Promised as semantics 19.
#[test]
fn places_in_the_embedded_service_are_named_as_they_are_written() {
    let world = World::new();
    world.write("d/a.txt", "hello");
    assert_eq!(world.run(&["copy", "d", "dev://box", "--recursive"]).code, 0);
    for (args, named) in [
        (&["copy", "dev://box/no.txt", "x"][..], "dev://box/no.txt"),
        (&["copy", "dev://none/no.txt", "x"], "dev://none"),
        (&["copy", "dev://box/d", "x"], "dev://box/d"),
        (&["copy", "dev://box/no.txt", "dev://box/to.txt"], "dev://box/no.txt"),
        (&["cat", "dev://box/no.txt"], "dev://box/no.txt"),
        (&["stat", "dev://box/no.txt"], "dev://box/no.txt"),
        (&["stat", "dev://none"], "dev://none"),
        (&["hash", "dev://box/no.txt"], "dev://box/no.txt"),
        (&["list", "dev://none"], "dev://none"),
        (&["du", "dev://none"], "dev://none"),
        (&["check", "d", "dev://none"], "dev://none"),
        (&["remove", "dev://box/no.txt"], "dev://box/no.txt"),
        (&["set-properties", "dev://box/no.txt", "--metadata", "a=b"], "dev://box/no.txt"),
        (&["undelete", "dev://box/no.txt"], "dev://box/no.txt"),
        (&["make", "dev://box/no.txt"], "dev://box/no.txt"),
    ] {
        // Bytes are no JSON.
        for form in ["text", "json"].into_iter().filter(|form| args[0] != "cat" || *form == "text") {
            let ran = world.run(&[args, &["--output-type", form]].concat());
            let said = ran.all();
            assert!(ran.code != 0 && said.contains(named) && !said.contains("127.0.0.1"), "{args:?}: {ran:?}");
        }
    }
}
