//! Little address space and few threads: everything works within it, or ends as an error that says so.

use crate::cli_support::{Ran, World};
use blobjet::emulator::{Emulator, Storage};
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

const MIB: u64 = 1024 * 1024;

/// The program under a limit of the shell's, e.g. `-v` with KiB.
fn limited(world: &World, limit: &str, args: &[&str]) -> Command {
    let plain = world.command(&[]);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_blobjet")]).args(args);
    command.current_dir(world.path()).env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null());
    command
}

/// Bodies are counted and dropped, and their checksums believed.
async fn place(world: &mut World) -> (Emulator, String) {
    let emulator = Emulator::builder().storage(Storage::Discard).port(0).start().await.unwrap();
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["make", &url]).code, 0);
    (emulator, url)
}

fn check(what: &str, ran: &Ran, done: u64, bytes: u64) {
    let lines = ran.json();
    let summary = lines.last().unwrap_or_else(|| panic!("{what}: {ran:?}"));
    assert_eq!((ran.code, &summary["type"]), (0, &"summary".into()), "{what}: {ran:?}");
    assert_eq!((summary["done"].as_u64(), summary["bytes_done"].as_u64()), (Some(done), Some(bytes)), "{what}");
}

// semantics 34
#[tokio::test(flavor = "multi_thread")]
async fn within_little_address_space_everything_is_uploaded() {
    let mut world = World::new();
    let (_emulator, url) = place(&mut world).await;
    // Holes take no room on the disk, and are read like anything else. More than there may be in memory, each.
    for (mib, read) in [(256, "auto"), (128, "auto"), (128, "pread")] {
        File::create(world.path().join("large")).unwrap().set_len((mib + 40) * MIB).unwrap();
        let args = ["copy", "large", &url, "--read", read, "--put-md5", "--output-type", "json"];
        let ran: Ran = limited(&world, &format!("-v {}", mib * 1024), &args).output().unwrap().into();
        check(&format!("one large file, {read}, {mib} MiB"), &ran, 1, (mib + 40) * MIB);
        assert_eq!(ran.json().iter().filter(|line| line["type"] == "note").count(), 1, "{ran:?}");
    }
    let limit = "-v 131072";
    (0..2000).for_each(|i| drop(world.write(&format!("d/{i}"), format!("{i:04}"))));
    let ran: Ran = limited(&world, limit, &["copy", "d", &url, "--recursive", "--output-type", "json"]).output().unwrap().into();
    check("small files", &ran, 2000, 8000);

    let mut command = limited(&world, limit, &["copy", "-", &format!("{url}/piped"), "--output-type", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || (0..140).try_for_each(|_| input.write_all(&vec![7; 1024 * 1024])));
    let ran: Ran = child.wait_with_output().unwrap().into();
    check("standard input", &ran, 1, 140 * MIB);
    feeding.join().unwrap().unwrap();
}

/// What cannot work at all says why, in the parts every error has, and dies of nothing.
#[tokio::test(flavor = "multi_thread")]
async fn too_little_is_told() {
    let world = World::new();
    world.write("f", "x");
    // Too little for a second thread's stack beside the program itself; how much that is, is found out.
    let refused = (1..100).map(|step| step * 4).find_map(|mib| {
        let ran: Ran = limited(&world, &format!("-v {}", mib * 1024), &["copy", "f", "dev://box"]).output().unwrap().into();
        ran.stderr.starts_with("error: cannot start threads").then_some(ran)
    });
    // A loader that fails before our first instruction, and then all that is needed: there may be nothing between the two.
    if let Some(ran) = refused {
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains("hint: allow more"), "{ran:?}");
    }
}

/// A value that was given is kept, and nothing is told of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_kept() {
    let mut world = World::new();
    let (_emulator, url) = place(&mut world).await;
    world.write("f", vec![1; 3_000_000]);
    let args = ["copy", "f", &url, "--memory", "32MiB", "--block-size-mb", "1", "--concurrency", "4", "--output-type", "json"];
    let ran: Ran = limited(&world, "-v 262144", &args).output().unwrap().into();
    check("settings of the user's", &ran, 1, 3_000_000);
    assert!(ran.json().iter().all(|line| line["type"] != "note"), "{ran:?}");
}
