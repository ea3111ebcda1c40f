//! Standard output that takes nothing more, or that nobody reads.

use crate::cli_support::{Ran, World, emulator};
use std::io::Read as _;
use std::process::Stdio;

/// A full disk, as Linux has it for trying.
fn full() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// Commands with their output lost do not end as if somebody had read it. Promised as semantics 96.
#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_lost_is_an_error_of_every_command() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("d/a.txt", "hello");
    let url = format!("{}/box", emulator.url());
    let blob = format!("{url}/d/a.txt");
    let copied = world.run(&["copy", "d", &url, "--recursive", "--create-container", "--output-type", "json"]);
    let id = copied.json()[0]["job_id"].as_str().unwrap().to_owned();

    // Runs others, runs until it is told, has nothing to bring back here.
    let mut tried: Vec<String> = ["demo", "serve", "undelete"].map(str::to_owned).to_vec();
    for form in ["text", "json"] {
        let made = format!("{}/{form}", emulator.url());
        for line in [
            &["copy", "d", &url, "--recursive"][..],
            &["copy", "d", &url, "--recursive", "--dry-run"],
            &["copy", "d", &url, "--recursive", "--explain", "a.txt"],
            &["copy", &url, "into", "--recursive"],
            &["copy", &blob, "-"],
            &["list", &url],
            &["du", &url],
            &["stat", &blob],
            &["cat", &blob],
            &["hash", "d", "--recursive"],
            &["check", "d", &format!("{url}/d")],
            &["access", &url],
            &["explain", "BlobNotFound"],
            &["sas", &url, "--permissions", "r", "--expiry", "1h"],
            &["jobs", "list"],
            &["jobs", "show", &id],
            &["completion", "bash"],
            &["man", "copy"],
            &["--help"],
            &["copy", "-h"],
            &["--version"],
            &["make", &made],
            &["bench", &url, "--size-per-file", "1K", "--file-count", "1"],
            &["set-properties", &blob, "--metadata", "a=b"],
            &["remove", &blob],
        ] {
            if line[0] == "cat" && form == "json" {
                continue;
            }
            let args = [line, &["--output-type", form][..]].concat();
            let ran: Ran = world.command(&args).stdout(full()).stderr(Stdio::piped()).output().unwrap().into();
            let told = ["error: cannot write to standard output", "No space left on device"];
            assert!(ran.code == 1 && told.iter().all(|text| ran.stderr.contains(text)), "{args:?}: {ran:?}");
            tried.push(line[0].to_owned());
        }
    }
    let lost = world.command(&["stat", &format!("{url}/gone"), "--output-type", "json"]).stdout(full()).output().unwrap();
    let lost: Ran = lost.into();
    assert!(lost.code == 3 && lost.stderr.starts_with("error: ") && lost.stderr.contains("/gone"), "{lost:?}");
    let help = world.run(&["--help"]).stdout;
    let commands = help.split("\nCommands:\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
    // What is broken into two lines goes on further to the right.
    let commands = commands.filter(|line| !line.starts_with("    ")).filter_map(|line| line.split_whitespace().next());
    for command in commands {
        assert!(tried.iter().any(|name| name == command), "{command} is not tried here");
    }
}

/// As every tool in a pipe: `| head` is no error. Promised as semantics 96.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_went_away_is_no_error_and_ends_a_listing() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    (0..300).for_each(|n| drop(world.write(&format!("d/{n:0200}"), "")));
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["copy", "d", &url, "--recursive", "--create-container"]).code, 0);
    for line in [&["list", &url][..], &["list", &url, "--output-type", "json"], &["du", &url], &["man", "copy"]] {
        let mut child = world.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{line:?}");
    }
}
