//! `check` as people use it.

use crate::cli_support::World as Program;
use crate::world::World as Service;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

/// Exit code, and the lines before the totals.
fn check(program: &Program, args: &[&str]) -> (i32, Vec<String>) {
    let ran = program.run(&[&["check"][..], args].concat());
    let mut lines: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
    let last = lines.pop().unwrap_or_else(|| panic!("{args:?}: {ran:?}"));
    assert!(last.contains(" the same, "), "{args:?}: {ran:?}");
    (ran.code, lines)
}

/// Names that sort differently folder by folder, byte by byte, and in any language.
const NAMES: &[&str] = &["A", "a-1", "a.txt", "a/b", "a/c/d.txt", "a0", "b c/é", "b%20c", "\u{ff5e}", "🎈"];

// semantics 87
#[tokio::test(flavor = "multi_thread")]
async fn what_was_copied_is_the_same_and_what_is_done_to_it_is_seen() {
    let service = Service::new().await;
    let program = service.program();
    for name in NAMES {
        program.write(&format!("d/{name}"), name);
    }
    std::os::unix::fs::symlink("A", program.path().join("d/link")).unwrap();
    let (root, sub) = (service.at(""), service.at("d"));
    assert_eq!(program.run(&["copy", "d", &root, "--recursive"]).code, 0);
    for args in [&["d", &sub][..], &[&sub, "d"], &["./d/", &format!("{sub}/")], &["d", "d"], &[&sub, &sub]] {
        assert_eq!(check(&program, args), (0, vec![]), "{args:?}");
    }
    let all: Vec<String> = NAMES.iter().map(|name| format!("= {name}")).collect();
    assert_eq!(check(&program, &["d", &sub, "--all"]), (0, all));
    let ran = program.run(&["check", "d", &sub]);
    let expected = format!("10 the same, 0 only in d, 0 only in {sub}, 0 different, 0 not compared, 1 left out\n");
    assert_eq!((ran.stdout, ran.stderr.contains("left out: d/link: symbolic link")), (expected, true));

    // Without its own name nothing of the folder is where it is looked for.
    let (code, lines) = check(&program, &["d", &root]);
    assert_eq!((code, lines.len(), lines[0].as_str(), lines[19].as_str()), (1, 20, "+ A", "+ 🎈"));

    fs::remove_file(program.path().join("d/a0")).unwrap();
    program.write("d/a/c/d.txt", "other bytes");
    program.write("d/a/c/e", "");
    program.write("d/a.txt.bak", "");
    let expected = ["+ a.txt.bak", "* a/c/d.txt", "+ a/c/e", "- a0"];
    assert_eq!(check(&program, &["d", &sub]), (1, expected.map(str::to_owned).to_vec()));
    let turned = ["- a.txt.bak", "* a/c/d.txt", "- a/c/e", "+ a0"];
    assert_eq!(check(&program, &[&sub, "d"]), (1, turned.map(str::to_owned).to_vec()));
    for (filter, expected) in [
        ("--exclude-path=a;a0;a.txt.bak", &[][..]),
        ("--include-path=a", &expected[1..3]),
        ("--include-pattern=*.txt", &expected[1..2]),
        ("--glob=a*", &[expected[0], expected[3]]),
        ("--min-size=12", &[]),
    ] {
        let code = i32::from(!expected.is_empty());
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(check(&program, &["d", &sub, filter]), (code, expected), "{filter}");
    }

    let ran = program.run(&["check", "d", &sub, "--output-type=json"]);
    let lines: Vec<_> = ran.json().into_iter().filter(|line| line["type"] == "compared").collect();
    assert_eq!((lines[1]["name"].as_str(), lines[1]["sign"].as_str()), (Some("a/c/d.txt"), Some("*")));
    assert_eq!((lines[1]["source_bytes"].as_u64(), lines[1]["destination_bytes"].as_u64()), (Some(11), Some(9)));
    assert_eq!((lines[1]["differs_in"].as_str(), lines[0]["destination_bytes"].is_null()), (Some("size"), true));
    let totals = ran.json().pop().unwrap();
    assert_eq!((totals["type"].as_str(), totals["exit_code"].as_u64(), ran.code), (Some("check_totals"), Some(1), 1));
    let counts = ["same", "only_in_source", "only_in_destination", "different", "not_compared", "left_out"];
    assert_eq!(counts.map(|name| totals[name].as_u64().unwrap()), [8, 2, 1, 1, 0, 1]);
    assert_eq!(program.run(&["check", "d", &sub, "--output-level=quiet"]).stdout.lines().count(), 4);
}

// semantics 88
#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_compared_by_md5_and_read_where_none_is_stored_only_when_asked() {
    let service = Service::new().await;
    let program = service.program();
    // More than two windows, so that order matters.
    let large: Vec<u8> = (0..9 * 1024 * 1024 + 1_u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    for (name, bytes) in [("empty", &b""[..]), ("large", &large), ("same", b"same"), ("turned", b"abcd")] {
        program.write(&format!("d/{name}"), bytes);
    }
    let sub = service.at("d");
    assert_eq!(program.run(&["copy", "d", &service.at(""), "--recursive", "--block-size-mb=4"]).code, 0);
    // Of equal length, other bytes.
    service.put_bytes("d/turned", b"dcba").await;
    assert_eq!(check(&program, &["d", &sub]), (0, vec![]));
    // The service stores an MD5 with what comes in one request, and not with what comes in blocks.
    let unread = "! large: no MD5 is stored with it (--download reads it)";
    for args in [["d", &sub], [&sub, "d"]] {
        let before = service.emulator.seen().len();
        let expected = vec![unread.to_owned(), "* turned".to_owned()];
        assert_eq!(check(&program, &[&args[..], &["--by=hash"]].concat()), (1, expected), "{args:?}");
        assert!(service.requests(before).iter().all(|request| request == "GET list"), "{:?}", service.requests(before));
        let read = check(&program, &[&args[..], &["--by=hash", "--download"]].concat());
        assert_eq!(read, (1, vec!["* turned".to_owned()]), "{args:?}");
    }
    let other: Vec<u8> = large.iter().rev().copied().collect();
    program.write("d/large", &other);
    let read = check(&program, &["d", &sub, "--by=hash", "--download"]);
    assert_eq!(read, (1, vec!["* large".to_owned(), "* turned".to_owned()]));
    for args in [&["d", &sub, "--download"][..], &["d", &sub, "--list-of-files=x"], &["d", "-"], &["d", &service.at("a*")]] {
        let ran = program.run(&[&["check"][..], args].concat());
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{args:?}: {ran:?}");
    }
}

// semantics 87
#[tokio::test(flavor = "multi_thread")]
async fn a_source_changed_after_the_destination_differs_in_time() {
    let service = Service::new().await;
    let program = service.program();
    let path = program.write("d/x", "x");
    service.put_bytes("d/x", b"y").await;
    let sub = service.at("d");
    let touch = |ahead: i64| {
        let now = SystemTime::now();
        let shift = Duration::from_secs(ahead.unsigned_abs());
        let time = if ahead < 0 { now - shift } else { now + shift };
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    touch(-3600);
    assert_eq!(check(&program, &["d", &sub, "--by=time"]), (0, vec![]));
    // Turned around, the blob is the newer one.
    assert_eq!(check(&program, &[&sub, "d", "--by=time"]), (1, vec!["* x".to_owned()]));
    touch(3600);
    assert_eq!(check(&program, &["d", &sub, "--by=time"]), (1, vec!["* x".to_owned()]));
    assert_eq!(check(&program, &["d", &sub]), (0, vec![]));
    // A time that the upload has stored counts, and not that of the upload.
    touch(-3600);
    assert_eq!(program.run(&["copy", "d", &service.at(""), "--recursive", "--preserve-times"]).code, 0);
    assert_eq!(check(&program, &[&sub, "d", "--by=time"]), (0, vec![]));
    touch(-1800);
    assert_eq!(check(&program, &["d", &sub, "--by=time"]), (1, vec!["* x".to_owned()]));
}

// semantics 87
#[tokio::test(flavor = "multi_thread")]
async fn one_file_is_compared_with_the_blob_it_would_become() {
    let service = Service::new().await;
    let program = service.program();
    program.write("x.bin", "12345");
    program.write("y.bin", "1");
    program.write("d/z", "1");
    service.put_bytes("x.bin", b"12345").await;
    service.put_bytes("other", b"12345").await;
    service.put_bytes("d/x.bin", b"1").await;
    for (args, code, lines) in [
        (["x.bin", "x.bin"], 0, &["= x.bin"][..]),
        (["x.bin", "other"], 0, &["= x.bin"]),
        (["x.bin", ""], 0, &["= x.bin"]),
        (["x.bin", "d/"], 1, &["* x.bin"]),
        (["x.bin", "none"], 1, &["+ x.bin"]),
    ] {
        let url = service.at(args[1]);
        assert_eq!(
            check(&program, &[args[0], &url, "--all"]),
            (code, lines.iter().map(|l| (*l).to_owned()).collect()),
            "{args:?}"
        );
    }
    let blobs = [service.at("x.bin"), service.at("other"), service.at("d")];
    assert_eq!(check(&program, &[&blobs[0], &blobs[1], "--all"]), (0, vec!["= x.bin".to_owned()]));
    assert_eq!(check(&program, &["x.bin", "y.bin"]), (1, vec!["* x.bin".to_owned()]));
    assert_eq!(check(&program, &["d", &blobs[2]]), (1, vec!["- x.bin".to_owned(), "+ z".to_owned()]));
    for (args, code) in [
        (["x.bin", "d"], 2),
        (["none", &blobs[0]], 3),
        (["d/*", &blobs[2]], 3),
        (["d", &format!("{}/none", service.emulator.url())], 3),
        (["d", &service.emulator.url()], 2),
    ] {
        let ran = program.run(&["check", args[0], args[1]]);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    }
    assert_eq!(program.run(&["check", "x.bin", &blobs[0], "--min-size=1"]).code, 2);
    // Both in the embedded store, which one process has at a time.
    assert_eq!(program.run(&["copy", "d", "dev://box", "--recursive"]).code, 0);
    assert_eq!(program.run(&["copy", "d", "dev://tub/e", "--recursive", "--as-subdir=false"]).code, 0);
    assert_eq!(check(&program, &["dev://box/d", "dev://tub/e", "--all"]), (0, vec!["= z".to_owned()]));
}

// semantics 89
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_to_be_missing_that_could_not_be_looked_for() {
    let service = Service::new().await;
    let program = service.program();
    for name in ["a", "m/x", "z"] {
        program.write(&format!("d/{name}"), "1");
    }
    assert_eq!(program.run(&["copy", "d", &service.at(""), "--recursive"]).code, 0);
    service.put_bytes("d/b", b"").await;
    program.write("d/y", "");
    let closed = program.path().join("d/m");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let reads_anyway = fs::read_dir(&closed).is_ok();
    let ran = program.run(&["check", "d", &service.at("d")]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    if reads_anyway {
        crate::tell("the superuser reads every folder; unreadable ones were not compared");
    } else {
        let signs: Vec<&str> = ran.stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(signs[..4], ["! d/m", "! b", "! m/x", "+ y"], "{ran:?}");
    }
    // A name that no blob can have is told, what may hide behind it is not missing, and the rest is compared.
    program.write("d/back\\slash", "");
    let (code, lines) = check(&program, &["d", &service.at("d")]);
    let signs: Vec<&str> = lines.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!((code, signs), (1, vec![r"! d/back\\slash", "! b", "+ y"]), "{lines:?}");
}

// semantics 89
#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_breaks_off_is_no_end_of_a_side() {
    let service = Service::new().await;
    let mut program = service.program();
    program.write("d/x", "1");
    // A SAS that may not list: refused, instead of a list of what only the source has.
    program.set("AZURE_STORAGE_ACCOUNT", "");
    program.set("AZURE_STORAGE_KEY", "");
    let url = format!("{}?{}", service.at("d"), service.sas("r"));
    let ran = program.run(&["check", "d", &url]);
    assert!(ran.code == 4 && !ran.stdout.contains("+ x"), "{ran:?}");
}
