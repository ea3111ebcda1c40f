//! `copy` and the commands around it, as they are run.

use crate::cli_support::{KEY, Ran, World, emulator};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

/// The names in a container, through the program.
fn names(world: &World, url: &str) -> Vec<String> {
    let ran = world.run(&["list", url, "--output-type", "json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let blobs = ran.json().into_iter().filter(|line| line["type"] == "blob");
    blobs.map(|line| line["name"].as_str().unwrap().to_owned()).collect()
}

fn tree(world: &World) {
    world.write("f.txt", "one");
    world.write("d/a.txt", "hello");
    world.write("d/s/b.txt", "you");
}

/// `az://` names an account, and the connection string says where its service is.
#[tokio::test(flavor = "multi_thread")]
async fn az_places_are_where_the_connection_string_says() {
    let mut world = World::new();
    world.write("f.txt", "one");
    let emulator = emulator().await;
    world.set("AZURE_STORAGE_CONNECTION_STRING", emulator.connection_string());
    let account = format!("az://{}", emulator.account());
    let ran = world.run(&["copy", "f.txt", &format!("{account}/box/x/"), "--create-container"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(&world, &format!("{account}/box")), ["x/f.txt"]);
}

/// The rule of docs/landing.md, as `--dry-run` tells it (case 35 and semantics 17).
#[test]
fn a_dry_run_tells_where_things_land() {
    let world = World::new();
    tree(&world);
    let mut out = String::new();
    for (source, destination) in [
        ("d", "dev://box"),
        ("d/", "dev://box"),
        ("d", "dev://box/x"),
        ("d", "dev://box/x/"),
        ("f.txt", "dev://box"),
        ("f.txt", "dev://box/x"),
        ("f.txt", "dev://box/x/"),
        ("d/*", "dev://box"),
        ("d/*.txt", "dev://box/x"),
    ] {
        let ran = world.run(&["copy", source, destination, "--recursive", "--dry-run"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{source} {destination}");
        writeln!(out, "$ blobjet copy '{source}' {destination} --recursive --dry-run\n{}", ran.stdout).unwrap();
    }
    insta::assert_snapshot!(out);
    assert!(!world.path().join(".state").exists(), "a dry run starts nothing");
}

#[test]
fn a_dry_run_counts_blocks_and_requests() {
    let world = World::new();
    world.write("big.bin", vec![7; 1_000_000]);
    let args = ["copy", "big.bin", "dev://box", "--dry-run", "--block-size-mb=0.25", "--output-type=json"];
    let lines = world.run(&args).json();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["type"], &lines[0]["requests"], &lines[0]["block_size"]), (&"plan".into(), &6.into(), &262_144.into()));
    assert_eq!(lines[0]["destination"], "dev://box/big.bin");
    assert_eq!(
        (&lines[1]["type"], &lines[1]["requests"], &lines[1]["bytes_done"]),
        (&"summary".into(), &6.into(), &1_000_000.into())
    );
}

/// `dev://` keeps its data from run to run, and makes its container (semantics 10).
#[test]
fn the_embedded_store_keeps_what_it_is_given() {
    let world = World::new();
    tree(&world);
    let ran = world.run(&["copy", "d", "dev://box", "--recursive"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(&world, "dev://box"), ["d/a.txt", "d/s/b.txt"]);
    assert_eq!(names(&world, "dev://box/d/s/"), ["d/s/b.txt"]);
    let listed = world.run(&["list", "dev://box", "--machine-readable", "--running-tally"]);
    assert_eq!(listed.stdout, "d/a.txt; Content Length: 5\nd/s/b.txt; Content Length: 3\n\nFile count: 2\nTotal file size: 8\n");
    assert_eq!(world.run(&["list", "dev://"]).stdout, "box\n");
    assert_eq!(world.run(&["remove", "dev://box/d/a.txt"]).code, 0);
    assert_eq!(world.run(&["remove", "dev://box/d/", "--recursive", "--dry-run"]).code, 0);
    assert_eq!(names(&world, "dev://box"), ["d/s/b.txt"]);
    assert_eq!(world.run(&["remove", "dev://box/d/", "--recursive"]).code, 0);
    assert_eq!(names(&world, "dev://box"), Vec::<String>::new());
    assert_eq!(world.run(&["remove", "dev://box", "--recursive"]).code, 2, "nobody can be asked");
    assert_eq!(world.run(&["remove", "dev://box", "--recursive", "--yes"]).code, 0);
    assert_eq!(world.run(&["list", "dev://box"]).code, 3);
}

/// Case 6, semantics 20: what would meet every file alike is told once.
#[tokio::test(flavor = "multi_thread")]
async fn refused_access_is_told_once_and_ends_the_job() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.set("AZURE_STORAGE_ACCOUNT", emulator.account());
    world.set("AZURE_STORAGE_KEY", KEY);
    (0..50).for_each(|i| drop(world.write(&format!("d/{i}.txt"), "x")));
    let ran = world.run(&["copy", "d", &format!("{}/box", emulator.url()), "--recursive"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("answer: 403 AuthenticationFailed").count(), 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("Final Job Status: Failed"), "{}", ran.stdout);
    assert!(emulator.seen().iter().all(|seen| seen.status == 403));
}

/// Case 39, semantics 25: nothing shows a secret, traces neither.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_shown_whatever_fails() {
    let emulator = emulator().await;
    let sig = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY%3D";
    let url = format!("{}/box", emulator.url());
    let mut world = World::new();
    tree(&world);
    let with_sas = format!("{url}?sv=2025-11-05&sr=c&sp=rcwdl&se=2999-01-01T00:00:00Z&spr=https,http&sig={sig}");
    let check = |ran: Ran| {
        assert_ne!(ran.code, 0, "{ran:?}");
        for secret in [sig, &sig[..40], KEY, &KEY[..40]] {
            assert!(!ran.all().contains(secret), "{ran:?}");
        }
    };
    for form in ["text", "json"] {
        let more = ["--log-level", "debug", "--output-type", form];
        check(world.run(&[&["copy", "f.txt", &with_sas][..], &more].concat()));
        check(world.run(&[&["copy", "d", &with_sas, "--nonsense"][..], &more].concat()));
        check(world.run(&[&["list", &with_sas][..], &more].concat()));
        check(world.run(&[&["remove", &with_sas, "--recursive", "--yes"][..], &more].concat()));
    }
    world.set(
        "AZURE_STORAGE_CONNECTION_STRING",
        format!("AccountName={};AccountKey={KEY};BlobEndpoint={}", emulator.account(), emulator.url()),
    );
    for form in ["text", "json"] {
        let more = ["--log-level", "debug", "--output-type", form];
        check(world.run(&[&["copy", "f.txt", &url][..], &more].concat()));
        check(world.run(&[&["make", &url][..], &more].concat()));
    }
}

/// Case 5, semantics 15.
#[test]
fn a_pattern_that_matches_nothing_warns() {
    let world = World::new();
    let ran = world.run(&["copy", "*.none", "dev://box"]);
    assert!(ran.code == 0 && ran.stderr.contains("warning: ") && ran.stderr.contains("*.none"), "{ran:?}");
    let ran = world.run(&["copy", "*.none", "dev://box", "--error-on-no-transfer"]);
    assert_eq!(ran.code, 9, "{ran:?}");
    world.write("[x].txt", "a file that exists is never taken for a pattern");
    assert_eq!(world.run(&["copy", "[x].txt", "dev://box"]).code, 0);
    assert_eq!(names(&world, "dev://box"), ["[x].txt"]);
}

/// Case 4.
#[test]
fn a_list_of_files_with_a_missing_entry_fails_for_that_one() {
    let world = World::new();
    tree(&world);
    world.write("list", "\u{feff}a.txt\r\n\r\ns/b.txt\r\ngone.txt");
    let ran = world.run(&["copy", "d", "dev://box", "--list-of-files", "list"]);
    assert!(ran.code == 1 && ran.stderr.contains("gone.txt"), "{ran:?}");
    assert_eq!(names(&world, "dev://box").len(), 2);
    let mut child = world
        .command(&["copy", "d", "dev://nul", "--list-of-files=-", "--list-of-files-nul"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a.txt\0s/b.txt\0").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(names(&world, "dev://nul").len(), 2);
}

/// Case 50: a regular file, a pipe and nothing on standard input; options apply.
// semantics 9
#[test]
fn standard_input_is_uploaded_with_all_options() {
    let world = World::new();
    let file = world.write("f.txt", "from a file");
    let copy =
        |name: &str| ["copy".to_owned(), "-".to_owned(), format!("dev://box/{name}"), "--content-type=text/x-test".to_owned()];
    let run = |name: &str, stdin: Stdio, bytes: &[u8]| {
        let args = copy(name);
        let mut child = world
            .command(&args.each_ref().map(String::as_str))
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(bytes).unwrap();
        }
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}");
    };
    run("file", Stdio::from(std::fs::File::open(file).unwrap()), b"");
    run("pipe", Stdio::piped(), b"through a pipe");
    run("nothing", Stdio::piped(), b"");
    // Its length is given as 0.
    run("proc", Stdio::from(std::fs::File::open("/proc/version").unwrap()), b"");
    let listed = world.run(&["list", "dev://box", "--output-type=json"]).json();
    let seen: Vec<_> = listed
        .iter()
        .filter(|line| line["type"] == "blob")
        .map(|line| (line["name"].as_str().unwrap(), line["bytes"].as_u64().unwrap(), line["content_type"].as_str().unwrap()))
        .collect();
    let version = std::fs::read("/proc/version").unwrap().len() as u64;
    let expected = [("file", 11), ("nothing", 0), ("pipe", 14), ("proc", version)].map(|(name, len)| (name, len, "text/x-test"));
    assert_eq!(seen, expected);
    // AzCopy's way of saying it: one place, and the direction.
    let mut child = world
        .command(&["copy", "dev://box/azcopy", "--from-to", "PipeBlob"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Promised as semantics 18: what is not replaced counts as skipped.
#[test]
fn what_is_not_overwritten_is_skipped() {
    let world = World::new();
    tree(&world);
    assert_eq!(world.run(&["copy", "d", "dev://box", "--recursive"]).code, 0);
    world.write("d/new.txt", "new");
    let ran = world.run(&["copy", "d", "dev://box", "--recursive", "--overwrite=false"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in
        ["Number of File Transfers Completed: 1", "Number of File Transfers Skipped: 2", "Final Job Status: CompletedWithSkipped"]
    {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
}

/// A minted SAS is good for what it says and for nothing else, at the service and before.
#[tokio::test(flavor = "multi_thread")]
async fn a_minted_sas_works() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    tree(&world);
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["make", &url]).code, 0);
    let mint = |url: &str, rights: &str| {
        let ran = world.run(&["sas", url, "--permissions", rights, "--expiry", "2h"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    let (write, list, account) = (mint(&url, "cw"), mint(&url, "l"), mint(&emulator.url(), "rwl"));
    let nobody = World::new();
    tree(&nobody);
    let ran = nobody.run(&["copy", "d", &write, "--recursive"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(&nobody, &list), ["d/a.txt", "d/s/b.txt"]);
    assert_eq!(nobody.run(&["list", &write]).code, 4);
    assert_eq!(nobody.run(&["copy", "f.txt", &list]).code, 4);
    assert_eq!(nobody.run(&["list", &account]).stdout, "box\n");
}
