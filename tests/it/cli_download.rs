//! `copy` from blobs, as it is run.

use crate::cli_support::{World, emulator};
use crate::double::pattern;
use crate::world::{CONTAINER, World as Service};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

const MIB: usize = 1 << 20;

/// A container `box` with a small and a large blob in a folder.
fn stored() -> World {
    let world = World::new();
    world.write("d/small", "hello");
    std::fs::write(world.path().join("d/large"), pattern(9 * MIB)).unwrap();
    assert_eq!(world.run(&["copy", "d", "dev://box", "--recursive", "--put-md5"]).code, 0);
    world
}

// semantics 68
#[test]
fn a_tree_comes_back_as_it_went() {
    let world = stored();
    let ran = world.run(&["copy", "dev://box/d", "out", "--recursive"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("Number of File Transfers Completed: 2"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(world.path().join("out/d/small")).unwrap(), "hello");
    assert!(std::fs::read(world.path().join("out/d/large")).unwrap() == pattern(9 * MIB));
    let again = world.run(&["copy", "dev://box/d", "out", "--recursive", "--overwrite=false", "--output-type", "json"]);
    let lines = again.json();
    let summary = lines.last().unwrap();
    assert_eq!((&summary["skipped"], &summary["done"]), (&2.into(), &0.into()), "{summary}");
}

/// The second table of docs/landing.md, as `--dry-run` tells it.
// semantics 17
#[test]
fn a_download_lands_where_the_table_says() {
    let world = World::new();
    world.write("d/a.txt", "a");
    world.write("d/s/b.txt", "b");
    assert_eq!(world.run(&["copy", "d", "dev://box", "--recursive"]).code, 0);
    std::fs::create_dir(world.path().join("there")).unwrap();
    let document = include_str!("../../docs/landing.md");
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| B")).collect();
    assert!(rows.len() >= 10, "{} rows", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [source, destination, flag, lands] = cells[..] else { panic!("four cells: {row}") };
        let source = format!("dev://box{}", source.strip_prefix('B').unwrap());
        let mut args = vec!["copy", &source, destination, "--recursive", "--dry-run", "--output-type", "json"];
        args.extend(Some(flag).filter(|flag| !flag.is_empty()));
        let ran = world.run(&args);
        assert_eq!(ran.code, 0, "{row}: {ran:?}");
        let plans = ran.json();
        let found: Vec<&str> =
            plans.iter().filter(|line| line["type"] == "plan").filter_map(|line| line["destination"].as_str()).collect();
        assert_eq!(found.join(", "), lands.replace("/B/", "/box/"), "{row}");
    }
    assert!(!world.path().join("new").exists());
}

/// Case 50.
// semantics 77
#[test]
fn standard_output_has_the_bytes_and_nothing_else() {
    let world = stored();
    for (name, expected) in [("small", b"hello".to_vec()), ("large", pattern(9 * MIB))] {
        let url = format!("dev://box/d/{name}");
        for args in [
            vec!["copy", &url, "-"],
            vec!["copy", &url, "--from-to", "BlobPipe"],
            vec!["copy", &url, "-", "--block-size-mb", "1"],
        ] {
            let ran = world.command(&args).stdin(Stdio::null()).output().unwrap();
            assert!(ran.status.success() && ran.stdout == expected && ran.stderr.is_empty(), "{args:?}: {:?}", ran.status);
        }
    }
    // Who has seen enough closes it.
    let mut child =
        world.command(&["copy", "dev://box/d/large", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 100];
    out.read_exact(&mut first).unwrap();
    drop(out);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
    let ran = world.run(&["copy", "dev://box/d", "-", "--recursive"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

// semantics 79
#[test]
fn options_that_mean_nothing_on_the_way_are_refused() {
    let world = stored();
    for (args, said) in [
        (&["copy", "dev://box/d/small", "x", "--put-md5"][..], "--put-md5 is about writing blobs"),
        (&["copy", "dev://box/d/small", "x", "--content-type", "a/b"], "is about writing blobs"),
        (&["copy", "d", "dev://box", "--recursive", "--decompress"], "--decompress is about downloads"),
        (&["copy", "dev://box/d/small", "null:", "--check-md5", "LogOnly"], "--check-md5: what is dropped"),
        (&["copy", "dev://box/d/small", "-", "--decompress"], "--decompress: only files are unpacked"),
        (&["copy", "dev://box/d", "x"], "there is no blob"),
        (&["copy", "dev://box", "x"], "cannot take the container box without --recursive"),
    ] {
        let ran = world.run(args);
        assert!(ran.code != 0 && ran.stderr.contains(said), "{args:?}: {ran:?}");
    }
    assert!(!world.path().join("x").exists());
    assert_eq!(world.run(&["copy", "dev://box/d/none", "x"]).code, 3);
    assert_eq!(world.run(&["copy", "dev://nowhere/none", "x"]).code, 3);
    // A filter is not ignored because there is one blob.
    let ran = world.run(&["copy", "dev://box/d/small", "x", "--exclude-pattern", "s*"]);
    assert!(ran.code == 0 && !world.path().join("x").exists(), "{ran:?}");
    // Nor are folders of a list taken without being asked for.
    world.write("list", "d\nd/small\n");
    let ran = world.run(&["copy", "dev://box", "y", "--list-of-files", "list", "--as-subdir=false"]);
    assert_eq!(std::fs::read_dir(world.path().join("y/d")).unwrap().count(), 1, "{ran:?}");
}

/// A job that failed goes on as `jobs resume` says, also downwards.
// semantics 73, 36
#[test]
fn a_download_is_a_job_that_can_be_gone_on_with() {
    let world = stored();
    // A folder is in the way of one of the two.
    std::fs::create_dir_all(world.path().join("out/d/large")).unwrap();
    let ran = world.run(&["copy", "dev://box/d", "out", "--recursive", "--output-type", "json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let lines = ran.json();
    let id = lines.last().unwrap()["job_id"].as_str().unwrap().to_owned();
    std::fs::remove_dir(world.path().join("out/d/large")).unwrap();
    let ran = world.run(&["jobs", "resume", &id, "--output-type", "json"]);
    let lines = ran.json();
    let summary = lines.last().unwrap();
    assert_eq!((ran.code, &summary["done"], &summary["skipped"]), (0, &1.into(), &1.into()), "{summary}");
    assert!(std::fs::read(world.path().join("out/d/large")).unwrap() == pattern(9 * MIB));
}

/// Promised as semantics 98.
#[test]
fn a_place_where_nothing_can_be_written_is_told_once() {
    let world = World::new();
    (0..50).for_each(|n| drop(world.write(&format!("d/{n}"), "x")));
    assert_eq!(world.run(&["copy", "d", "dev://box", "--recursive"]).code, 0);
    // Not even root makes a folder there.
    let args = ["copy", "dev://box/d", "/sys/blobjet-has-no-place-here", "--recursive"];
    let ran = world.run(&args);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.stderr.matches("\nfailed: d/").count(), 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("failed: 50 x like this: cannot "), "{}", ran.stdout);
    let lines = world.run(&[&args[..], &["--output-type", "json"]].concat()).json();
    assert_eq!(lines.iter().filter(|line| line["type"] == "failed").count(), 50, "JSON names all");
}

/// semantics 35: a file that an earlier run has finished, and that is not there any more or was written to since, is fetched again.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_job_fetches_again_what_is_not_as_it_was() {
    for preserve in ["--preserve-last-modified-time=false", "--preserve-last-modified-time"] {
        let service = Service::new().await;
        let world = service.program();
        for name in ["bad", "gone", "kept", "longer", "rewritten"] {
            world.write(&format!("d/{name}"), name);
        }
        let url = format!("{}/{CONTAINER}", service.emulator.url());
        assert_eq!(world.run(&["copy", "d", &url, "--recursive"]).code, 0);
        let armed = service.emulator.fault("op=GetBlob,path=*/bad,status=409/BlobArchived".parse().unwrap());
        let ran = world.run(&["copy", &format!("{url}/d"), "out", "--recursive", preserve, "--output-type=json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let end = ran.json().pop().unwrap();
        assert_eq!((&end["done"], &end["failed"]), (&4.into(), &1.into()), "{end}");
        armed.remove();
        let file = |name: &str| world.path().join("out/d").join(name);
        let kept = std::fs::metadata(file("kept")).unwrap().modified().unwrap();
        std::fs::remove_file(file("gone")).unwrap();
        std::fs::write(file("longer"), "longer than it was").unwrap();
        std::fs::File::options().write(true).open(file("longer")).unwrap().set_modified(kept).unwrap();
        std::fs::write(file("rewritten"), "REWRITTEN").unwrap();
        let later = SystemTime::now() + Duration::from_secs(3600);
        std::fs::File::options().write(true).open(file("rewritten")).unwrap().set_modified(later).unwrap();

        let before = service.emulator.seen().len();
        let id = end["job_id"].as_str().unwrap();
        let ran = world.run(&["jobs", "resume", id, "--output-type=json"]);
        let end = ran.json().pop().unwrap();
        let counts = ["total", "done", "failed", "skipped"].map(|name| end[name].as_u64().unwrap());
        assert_eq!((ran.code, counts), (0, [5, 4, 0, 1]), "{ran:?}");
        for name in ["bad", "gone", "kept", "longer", "rewritten"] {
            assert_eq!(std::fs::read_to_string(file(name)).unwrap(), name);
        }
        let seen = service.emulator.seen().split_off(before);
        assert!(!seen.iter().any(|seen| seen.path.ends_with("/kept")), "{preserve}");
        let job = world.run(&["jobs", "show", id, "--output-type=json"]).json().remove(0);
        assert_eq!((&job["done"], &job["skipped"]), (&5.into(), &0.into()), "{job}");
    }
}

/// What is kept of a download is told as it is, and is taken over.
// semantics 23, 73
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_download_tells_what_is_kept_of_it() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("large", pattern(2 * MIB));
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["copy", "large", &url, "--create-container"]).code, 0);
    let hangs = emulator.fault("op=GetBlob,after=3,hang".parse().unwrap());
    let blob = format!("{url}/large");
    let args = ["copy", &blob, "out/large", "--block-size-mb", "0.25", "--concurrency", "2", "--output-type", "json"];
    let mut child = world.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let id = child.id().to_string();
    let interrupt = || assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("\"bytes_done\":786432,")).unwrap();
    interrupt();
    lines.find(|line| line.contains("stopping")).unwrap();
    interrupt();
    let said = lines.find(|line| line.contains("interrupted: ")).unwrap();
    assert!(said.contains("what has come of large ones is kept beside them and not fetched again"), "{said}");
    assert!(lines.last().unwrap().contains("\"Cancelled\""));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!world.path().join("out/large").exists());

    hangs.remove();
    let ran = world.run(&args[..args.len() - 2]);
    assert!(ran.code == 0 && ran.stdout.contains("in 3 blocks were there from an earlier try and not fetched again"), "{ran:?}");
    assert!(std::fs::read(world.path().join("out/large")).unwrap() == pattern(2 * MIB));
}
