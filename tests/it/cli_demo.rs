//! `blobjet demo`: that it does what it shows, and leaves nothing behind.

use crate::cli_support::World;
use std::io::Read;
use std::process::Stdio;

/// Promised as semantics 67: it runs through where nobody presses Enter, and touches nothing of the user's.
#[test]
fn the_demonstration_runs_through_and_leaves_nothing() {
    let mut world = World::new();
    let temporary = world.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.to_str().unwrap());
    // A credential that must not be used, or asked: it would be refused.
    world.set("AZURE_STORAGE_CONNECTION_STRING", "nonsense");
    let ran = world.run(&["demo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let after = |mark: &str| ran.stdout.split_once(mark).unwrap_or_else(|| panic!("{mark} in {}", ran.stdout)).1;
    let uploaded = after("$ blobjet copy docs dev://demo");
    assert!(uploaded.contains("Number of File Transfers Completed: 8"), "{uploaded}");
    assert!(after("$ blobjet list dev://demo").contains("docs/文件/читай 🎈.txt; Content Length:"));
    assert!(after("... and Ctrl-C").contains("Final Job Status: Cancelled"));
    let resumed = after("--report report.html");
    assert!(
        resumed.contains("Final Job Status: Completed") && resumed.contains("blocks were there from an earlier try"),
        "{resumed}"
    );
    let downloaded = after("$ blobjet copy dev://demo/docs back");
    assert!(downloaded.contains("Number of File Transfers Completed: 8"), "{downloaded}");
    let hashed = after("$ blobjet hash dev://demo/docs").split("---").next().unwrap();
    assert_eq!(hashed.lines().filter(|line| line.contains("  ")).count(), 8, "{hashed}");
    assert!(hashed.contains("  文件/читай 🎈.txt\n"), "{hashed}");
    let damaged = after("flip-request=1000000");
    assert!(damaged.contains("checksum") && damaged.contains("Final Job Status: Completed"), "{damaged}");
    assert!(after("$ blobjet jobs list").contains("Cancelled"));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "its folder is gone");
    assert!(!world.path().join(".state").exists(), "the state folder is not touched");
    assert_eq!(std::fs::read_dir(world.path()).unwrap().count(), 1);
}

/// Promised as semantics 67: also when it is stopped.
#[test]
fn a_demonstration_that_is_stopped_leaves_nothing() {
    let mut world = World::new();
    let temporary = world.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.to_str().unwrap());
    let mut child = world.command(&["demo"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut seen = String::new();
    let mut some = [0; 256];
    while !seen.contains("Interrupt an upload") {
        let read = stdout.read(&mut some).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let mut rest = String::new();
    // The commands it ran have the pipe too: its end is theirs.
    std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{rest}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "its folder is gone");
}

#[test]
fn the_demonstration_is_for_reading() {
    assert_eq!(World::new().run(&["demo", "--output-type", "json"]).code, 2);
}
