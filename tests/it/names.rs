//! Names of files, byte for byte through an upload and a listing, and those the service cannot take.

use crate::world::{World, local};
use blobjet::endpoint::open::Opening;
use blobjet::error::Kind;
use blobjet::transfer::plan::Tuning;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn write(dir: &Path, name: &str) {
    let path = dir.join("d").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, name).unwrap();
}

async fn upload(world: &World, dir: &Path) -> BTreeMap<String, Kind> {
    let opening = Opening { recursive: true, as_subdir: false, ..Opening::default() };
    let (_, progress) = world.upload(local(&dir.join("d"), &opening), world.sink(), Tuning::default()).await;
    progress.failures().into_iter().flat_map(|group| group.names.into_iter().map(move |name| (name, group.kind))).collect()
}

// semantics 16
#[tokio::test(flavor = "multi_thread")]
async fn odd_names_round_trip() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let printable: String = (b' '..=b'~').map(char::from).filter(|c| !"/\\".contains(*c)).collect();
    let long = "x".repeat(255);
    let deep = vec!["d"; 254].join("/");
    let path = format!("{}/{}/{}/{}", "a".repeat(255), "b".repeat(255), "c".repeat(255), "e".repeat(256 - 1));
    let mut names = vec![
        "a%zz.txt",
        "abc.%22",
        "%2F",
        "%41",
        "A",
        "[test].txt",
        "-leading",
        "trailing ",
        "trailing.",
        " ",
        "…",
        "😀",
        "caf\u{e9}",
        "cafe\u{301}",
        "a+b",
        "a&b=c",
        "?q#f",
        "{x}",
        "\u{ffff}",
        printable.as_str(),
        long.as_str(),
        deep.as_str(),
        path.as_str(),
    ];
    names.iter().for_each(|name| write(dir.path(), name));
    assert_eq!(path.encode_utf16().count(), 1023);
    assert_eq!(upload(&world, dir.path()).await, BTreeMap::new());
    let mut there = world.names().await;
    there.sort_unstable();
    names.sort_unstable();
    assert_eq!(there, names);
    for name in names {
        assert_eq!(world.get(name).await, name.as_bytes(), "{name}");
    }
}

// semantics 16
#[tokio::test(flavor = "multi_thread")]
async fn names_the_service_cannot_take_fail_alone_before_any_request() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let long = format!("{}/{}/{}/{}/x", "a".repeat(255), "b".repeat(255), "c".repeat(255), "e".repeat(255));
    let deep = vec!["s"; 255].join("/");
    let bad = ["\u{1b}[31mred", "bell\u{7}", "\u{85}", long.as_str(), deep.as_str()];
    bad.iter().for_each(|name| write(dir.path(), name));
    write(dir.path(), "good");
    let before = world.emulator.seen().len();
    let failed = upload(&world, dir.path()).await;
    assert_eq!(world.emulator.seen().len() - before, 1, "only the good one is sent");
    assert_eq!(failed.len(), bad.len());
    assert!(failed.values().all(|kind| *kind == Kind::Name), "{failed:?}");
    assert_eq!(world.names().await, ["good"]);
}
