//! A filesystem that refuses: interrupted calls, failing disks, stale handles, no descriptors, no memory. The real program runs
//! with a library before the C library's (`faulty_files.c`) that makes chosen calls fail.

use crate::cli_support::{Ran, World, emulator};
use crate::double::pattern;
use blobjet::emulator::Emulator;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The library, built once; `None` where there is no C compiler.
fn library() -> Option<&'static PathBuf> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/faulty_files.c");
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faulty_files_{}.so", std::process::id()));
        let cc = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl").status();
        match cc {
            Ok(status) => {
                assert!(status.success(), "tests/it/faulty_files.c does not compile");
                Some(library)
            }
            Err(_) => {
                crate::tell("faulty_files: left out, there is no C compiler (cc)");
                None
            }
        }
    };
    LIBRARY.get_or_init(build).as_ref()
}

const EINTR: i32 = libc::EINTR;
const EVER: usize = 1_000_000;

/// `call` on paths that end in `path` fails with `errno`, `count` times from the `nth` on.
fn fault(call: &str, path: &str, (nth, count): (usize, usize), errno: i32) -> String {
    format!("{call}:{path}:{nth}:{count}:{errno};")
}

/// How it has to end.
enum End {
    /// All is there.
    Done,
    /// This one is named as failed with this word, and the others are there.
    Failed(&'static str, &'static str),
}

struct Case {
    what: &'static str,
    read: &'static str,
    faults: String,
    end: End,
}

/// Longer than a block, and than what is read in one piece.
const LEN: usize = 2_500_000;

fn run(world: &World, emulator: &Emulator, container: &str, read: &str, faults: &str) -> Ran {
    let url = format!("{}/{container}", emulator.url());
    let args = ["copy", "d", &url, "--recursive", "--create-container", "--read", read, "--output-type", "json"];
    run_with(world, &[&args[..], &["--block-size-mb", "1.5", "--put-blob-size-mb", "0.01"]].concat(), faults)
}

/// Runs the program with these faults, of which some have to come about.
fn run_with(world: &World, args: &[&str], faults: &str) -> Ran {
    let mut command = world.command(args);
    if !faults.is_empty() {
        let told = world.path().join("faults");
        command.env("LD_PRELOAD", library().unwrap()).env("FAULTS", faults).env("FAULTS_TOLD", &told);
        let ran = command.output().unwrap().into();
        assert_ne!(std::fs::read_to_string(told).unwrap(), "0", "no call failed: {faults} {ran:?}");
        return ran;
    }
    command.output().unwrap().into()
}

// semantics 50
#[tokio::test(flavor = "multi_thread")]
async fn what_heals_is_tried_again_and_what_does_not_is_named() {
    if library().is_none() {
        return;
    }
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    let small: Vec<String> = (0..5).map(|i| format!("d/small{i}")).collect();
    small.iter().for_each(|name| drop(world.write(name, name)));
    world.write("d/f", pattern(LEN));
    let done = |what, read, faults: &[String]| Case { what, read, faults: faults.concat(), end: End::Done };
    let failed = |what, read, object, word, faults: &[String]| {
        let end = End::Failed(object, word);
        Case { what, read, faults: faults.concat(), end }
    };
    let cases = [
        done("interrupted reads", "pread", &[fault("read", "/d/f", (1, 3), EINTR), fault("read", "/d/f", (7, 9), EINTR)]),
        failed("reads interrupted for ever", "pread", "d/f", "Interrupted", &[fault("read", "/d/f", (2, EVER), EINTR)]),
        failed("a failing disk", "pread", "d/f", "dmesg", &[fault("read", "/d/f", (2, EVER), libc::EIO)]),
        failed("a failing disk, once", "pread", "d/f", "dmesg", &[fault("read", "/d/f", (3, 1), libc::EIO)]),
        done("a stale handle", "pread", &[fault("read", "/d/f", (2, 1), libc::ESTALE)]),
        failed("a handle stale for ever", "pread", "d/f", "mount", &[fault("read", "/d/f", (1, EVER), libc::ESTALE)]),
        done("no memory to read into, twice", "pread", &[fault("read", "/d/f", (2, 2), libc::ENOMEM)]),
        done("no memory to map", "mmap", &[fault("map", "/d/f", (1, EVER), libc::ENOMEM)]),
        done("nothing to be mapped", "mmap", &[fault("map", "/d/f", (2, EVER), libc::ENODEV)]),
        done("no descriptor for a moment", "pread", &[fault("open", "d/f", (1, 3), libc::EMFILE)]),
        done("no descriptor in the system for a moment", "pread", &[fault("open", "small3", (1, 2), libc::ENFILE)]),
        failed("no descriptor for ever", "pread", "d/f", "ulimit -n", &[fault("open", "d/f", (1, EVER), libc::EMFILE)]),
        failed("a file that cannot be opened", "pread", "d/f", "dmesg", &[fault("open", "d/f", (1, EVER), libc::EIO)]),
        done("a stale name", "pread", &[fault("open", "d/f", (1, 1), libc::ESTALE)]),
        done("interrupted looks", "pread", &[fault("stat", "/d/f", (1, 2), EINTR)]),
        failed("a look that fails before the commit", "pread", "d/f", "dmesg", &[fault("stat", "/d/f", (2, EVER), libc::EIO)]),
        failed("a file gone stale at the commit", "pread", "d/f", "is gone", &[fault("stat", "/d/f", (2, EVER), libc::ESTALE)]),
        done("an interrupted listing", "pread", &[fault("list", "/d", (4, 1), EINTR)]),
        done("a stale listing", "pread", &[fault("list", "/d", (6, 1), libc::ESTALE)]),
        done("no descriptor for a listing", "pread", &[fault("open", "d", (1, 2), libc::EMFILE)]),
        failed("a listing that fails for ever", "pread", "d", "dmesg", &[fault("list", "/d", (3, EVER), libc::EIO)]),
    ];
    for (nth, Case { what, read, faults, end }) in cases.into_iter().enumerate() {
        let container = format!("box{nth}");
        // What was there before has to be there after a run that fails.
        let mut before = World::new();
        before.know(&emulator);
        before.write("d/f", "before");
        assert_eq!(run(&before, &emulator, &container, "auto", "").code, 0);

        let ran = run(&world, &emulator, &container, read, &faults);
        let lines = ran.json();
        let summary = lines.last().unwrap();
        let figure = |name: &str| summary[name].as_u64().unwrap();
        assert_eq!(summary["type"], "summary", "{what}: {ran:?}");
        assert_eq!(figure("total"), figure("done") + figure("failed") + figure("skipped"), "{what}");
        let stored = world.run(&["list", &format!("{}/{container}/d/", emulator.url()), "--output-type", "json"]);
        let sizes: Vec<(String, u64)> = stored.json().iter().filter(|line| line["type"] == "blob").map(size).collect();
        let large = sizes.iter().find(|(name, _)| name == "d/f").unwrap().1;
        match end {
            End::Done => {
                assert_eq!((ran.code, figure("done"), figure("failed")), (0, 6, 0), "{what}: {ran:?}");
                assert_eq!((sizes.len(), large), (6, LEN as u64), "{what}");
                assert_eq!(figure("bytes_done"), LEN as u64 + 5 * 8, "{what}");
            }
            End::Failed(object, word) => {
                assert_eq!((ran.code, figure("failed")), (1, 1), "{what}: {ran:?}");
                assert_eq!(summary["failures"][0]["objects"][0], *object, "{what}: {summary}");
                assert!(summary["failures"][0].to_string().contains(word), "{what}: {summary}");
                // Whatever the listing had come to before it failed may be there.
                assert!(large == 6 || (object == "d" && large == LEN as u64), "{what}: {large}");
                assert!(object == "d" || sizes.len() == 6, "{what}: {sizes:?}");
            }
        }
    }
}

/// A disk that is full in the middle of a download: what has that name stays, what has come is kept, and the same command goes on
/// with what is missing once there is room.
// semantics 68, 73, 98
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_in_a_download_costs_nothing_that_has_come() {
    if library().is_none() {
        return;
    }
    const LEN: usize = 300_000;
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("d/large", pattern(LEN));
    world.write("d/small", "small");
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["copy", "d", &url, "--recursive", "--create-container"]).code, 0);
    world.write("to/d/large", "before");
    let folder = || std::fs::read_dir(world.path().join("to/d")).unwrap().count();

    // No room at all: neither is there anything to keep. A small file may have no name, which /proc shows as one that is deleted.
    let from = format!("{url}/d");
    let args = ["copy", &from, "to", "--recursive", "--block-size-mb", "0.001"];
    let everywhere = [".part", " (deleted)"].map(|name| fault("write", name, (1, EVER), libc::ENOSPC)).concat();
    let ran = run_with(&world, &args, &everywhere);
    assert_eq!((ran.code, ran.stderr.matches("\nfailed: ").count()), (1, 1), "told once: {ran:?}");
    assert!(ran.stdout.contains("failed: 2 x like this") && ran.stdout.contains("No space left on device"), "{ran:?}");
    assert!(ran.stdout.contains("hint: make room"), "{ran:?}");
    assert_eq!(folder(), 1, "nothing is left but the file that was there");

    // Each block is a write, and so is its record: some eighty are there when it is full.
    let ran = run_with(&world, &args, &fault("write", ".part", (200, EVER), libc::ENOSPC));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(std::fs::read_to_string(world.path().join("to/d/large")).unwrap(), "before");

    let ran = world.run(&[&args[..], &["--output-type", "json"]].concat());
    let lines = ran.json();
    let summary = lines.last().unwrap();
    assert!(ran.code == 0 && summary["blocks_resumed"].as_u64().unwrap() > 10, "{summary}");
    assert!(std::fs::read(world.path().join("to/d/large")).unwrap() == pattern(LEN));
    assert_eq!(folder(), 2);
}

fn size(line: &serde_json::Value) -> (String, u64) {
    (line["name"].as_str().unwrap().to_owned(), line["bytes"].as_u64().unwrap())
}
