//! Local sources as they are met: trees with links and odd things in them, patterns, lists, files that change or are cut short.

use blobjet::endpoint::file::ReadMode;
use blobjet::endpoint::list_of_files::ListOfFiles;
use blobjet::endpoint::open::{Opening, Place, source};
use blobjet::endpoint::walk::{DEVICE, FIFO, FOLDER, LINK, LOOP, SOCKET};
use blobjet::endpoint::{Filtered, Found, Item, Same, Source};
use blobjet::error::Kind;
use blobjet::units::MIB;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// A folder with these files, each holding its own path.
pub(crate) fn tree(files: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    dir
}

pub(crate) fn opened(arg: &str, opening: &Opening) -> blobjet::Result<Arc<dyn Source>> {
    source(&Place::Local(arg.to_owned()), opening)
}

pub(crate) fn recursive() -> Opening {
    Opening { recursive: true, ..Opening::default() }
}

/// What a listing reports, by target or name: `ok`, the reason it is skipped, or the kind of failure.
async fn listed(source: Arc<dyn Source>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for found in found(source).await {
        let (name, what) = match found {
            Found::Item(Item { target, .. }) => (target, "ok".to_owned()),
            Found::Skipped { name, reason } => (name, reason.to_owned()),
            Found::Failed { name, error } => (name, format!("{:?}", error.kind())),
            Found::Filtered(Filtered { objects, folders }) => {
                ("filtered".to_owned(), format!("{objects} objects, {folders} folders"))
            }
        };
        assert!(all.insert(name.clone(), what).is_none(), "{name} is reported once");
    }
    all
}

pub(crate) async fn found(source: Arc<dyn Source>) -> Vec<Found> {
    let (sender, mut receiver) = mpsc::channel(1);
    let listing = tokio::spawn(async move { source.list(sender).await });
    let mut all = Vec::new();
    while let Some(batch) = receiver.recv().await {
        all.extend(batch);
    }
    listing.await.unwrap().unwrap();
    all
}

fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries.into_iter().map(|(name, what)| (name.to_owned(), what.to_owned())).collect()
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

// semantics 13
#[tokio::test]
async fn what_is_no_file_is_named_and_never_opened() {
    let dir = tree(&["d/a", "d/s/b"]);
    let d = dir.path().join("d");
    mkfifo(&d.join("fifo"));
    let _listener = UnixListener::bind(d.join("socket")).unwrap();
    symlink("a", d.join("link")).unwrap();
    symlink("/dev/null", d.join("null")).unwrap();
    let arg = d.to_str().unwrap();
    let at = |name: &str| format!("{arg}/{name}");
    let mut expected = map([("d/a", "ok"), ("d/s/b", "ok")]);
    for (name, reason) in [("fifo", FIFO), ("socket", SOCKET), ("link", LINK), ("null", LINK)] {
        expected.insert(at(name), reason.to_owned());
    }
    assert_eq!(listed(opened(arg, &recursive()).unwrap()).await, expected);
    let follow = Opening { follow_symlinks: true, ..recursive() };
    expected.insert("d/link".into(), "ok".into());
    expected.remove(&at("link"));
    expected.insert(at("null"), DEVICE.to_owned());
    assert_eq!(listed(opened(arg, &follow).unwrap()).await, expected);
}

// semantics 14
#[tokio::test]
async fn links_are_followed_to_files_folders_and_relatives_and_only_loops_are_cut() {
    let dir = tree(&["d/a", "d/s/b", "other/c", "other/deep/e"]);
    let d = dir.path().join("d");
    symlink("../other", d.join("sibling")).unwrap();
    symlink("../../other/c", d.join("s/file")).unwrap();
    symlink("s", d.join("twice")).unwrap();
    symlink("..", d.join("s/up")).unwrap();
    symlink(".", d.join("self")).unwrap();
    symlink("nowhere", d.join("broken")).unwrap();
    let arg = d.to_str().unwrap();
    let at = |name: &str| format!("{arg}/{name}");
    let mut expected = map([
        ("d/a", "ok"),
        ("d/s/b", "ok"),
        ("d/s/file", "ok"),
        ("d/sibling/c", "ok"),
        ("d/sibling/deep/e", "ok"),
        ("d/twice/b", "ok"),
        ("d/twice/file", "ok"),
    ]);
    for name in ["s/up", "twice/up", "self"] {
        expected.insert(at(name), LOOP.to_owned());
    }
    expected.insert(at("broken"), "SourceUnreadable".into());
    assert_eq!(listed(opened(arg, &Opening { follow_symlinks: true, ..recursive() }).unwrap()).await, expected);

    // The source itself is followed without the flag.
    let link = dir.path().join("link");
    symlink("other", &link).unwrap();
    let seen = listed(opened(link.to_str().unwrap(), &recursive()).unwrap()).await;
    assert_eq!(seen, map([("link/c", "ok"), ("link/deep/e", "ok")]));
    let file = dir.path().join("flink");
    symlink("other/c", &file).unwrap();
    assert_eq!(listed(opened(file.to_str().unwrap(), &Opening::default()).unwrap()).await, map([("flink", "ok")]));
}

// semantics 13
#[tokio::test]
async fn an_unreadable_folder_fails_and_the_rest_goes_on() {
    let dir = tree(&["d/a", "d/locked/b", "d/z/c"]);
    let d = dir.path().join("d");
    let mut expected = map([("d/a", "ok"), ("d/z/c", "ok")]);
    let locked = d.join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o0)).unwrap();
    // The superuser may read everything.
    match fs::read_dir(&locked) {
        Ok(_) => expected.insert("d/locked/b".into(), "ok".into()),
        Err(_) => expected.insert(locked.to_str().unwrap().to_owned(), "SourceUnreadable".into()),
    };
    // Nobody may read a path of over 4,096 bytes: two deep folders, one put at the end of the other.
    let chain: Vec<String> = (0..10).map(|_| "x".repeat(240)).collect();
    let (upper, lower) = (d.join("deep").join(chain.join("/")), dir.path().join("lower"));
    fs::create_dir_all(&upper).unwrap();
    fs::create_dir_all(lower.join(chain.join("/"))).unwrap();
    fs::rename(&lower, upper.join("lower")).unwrap();
    let mut seen = listed(opened(d.to_str().unwrap(), &recursive()).unwrap()).await;
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
    let deep: Vec<String> = seen.keys().filter(|name| name.contains("/lower/")).cloned().collect();
    assert_eq!(deep.len(), 1);
    assert_eq!(seen.remove(&deep[0]).unwrap(), "SourceUnreadable");
    assert!(deep[0].len() > 4000, "it is named in full");
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn names_that_cannot_be_blob_names_fail_alone_with_an_escape() {
    let dir = tree(&["d/good", "d/[test].txt", "d/-", "d/ü"]);
    let d = dir.path().join("d");
    fs::write(d.join(std::ffi::OsStr::from_bytes(b"caf\xe9\x1b[31m")), "").unwrap();
    fs::write(d.join("back\\slash"), "").unwrap();
    // A link that fails is named with an escape as well.
    symlink("nowhere", d.join("bell\u{7}")).unwrap();
    let arg = d.to_str().unwrap();
    let mut expected = map([("d/good", "ok"), ("d/[test].txt", "ok"), ("d/-", "ok"), ("d/ü", "ok")]);
    expected.insert(format!(r"{arg}/caf\xe9\u{{1b}}[31m"), "Name".into());
    expected.insert(format!(r"{arg}/back\\slash"), "Name".into());
    expected.insert(format!(r"{arg}/bell\u{{7}}"), "SourceUnreadable".into());
    assert_eq!(listed(opened(arg, &Opening { follow_symlinks: true, ..recursive() }).unwrap()).await, expected);
}

#[tokio::test]
async fn patterns_take_what_matches_and_existing_names_are_never_patterns() {
    let dir = tree(&["d/a.txt", "d/b.txt", "d/.hidden.txt", "d/c.md", "d/s/e.txt", "star*", "starfish"]);
    let root = dir.path().to_str().unwrap();
    let with = |pattern: &str, opening: &Opening| opened(&format!("{root}/{pattern}"), opening).unwrap();
    let flat = Opening::default();
    let seen = listed(with("d/*.txt", &flat)).await;
    assert_eq!(seen, map([("a.txt", "ok"), ("b.txt", "ok"), (".hidden.txt", "ok")]));
    assert_eq!(listed(with("star*", &flat)).await, map([("star*", "ok")]));
    let mut expected = map([("a.txt", "ok"), ("b.txt", "ok"), (".hidden.txt", "ok"), ("c.md", "ok")]);
    expected.insert(format!("{root}/d/s"), FOLDER.into());
    assert_eq!(listed(with("d/*", &flat)).await, expected);
    expected.remove(&format!("{root}/d/s"));
    expected.insert("s/e.txt".into(), "ok".into());
    assert_eq!(listed(with("d/*", &recursive())).await, expected);
    assert_eq!(listed(with("d/*.none", &flat)).await, map([]));
}

#[test]
fn wrong_sources_fail_at_once_each_in_its_way() {
    let dir = tree(&["d/a", "f"]);
    mkfifo(&dir.path().join("fifo"));
    symlink("nowhere", dir.path().join("broken*")).unwrap();
    let list = Opening { list_of_files: Some(ListOfFiles { from: "-".into(), nul: false }), ..Opening::default() };
    for (name, opening, kind) in [
        ("none", Opening::default(), Kind::SourceNotFound),
        ("[none]", Opening::default(), Kind::SourceNotFound),
        ("f/x", Opening::default(), Kind::SourceNotFound),
        ("broken*", Opening::default(), Kind::SourceNotFound),
        ("d", Opening::default(), Kind::Usage),
        ("fifo", Opening::default(), Kind::SourceUnreadable),
        ("f", list.clone(), Kind::Usage),
        ("*", list, Kind::Usage),
    ] {
        let error = opened(&format!("{}/{name}", dir.path().display()), &opening).err().unwrap();
        assert_eq!(error.kind(), kind, "{name}");
    }
}

/// A file of /proc has the length 0 and contents: taken by its length it would be an empty blob, reported as done.
#[tokio::test]
async fn an_empty_file_with_bytes_in_it_is_refused() {
    let source = opened("/proc/self/status", &Opening::default()).unwrap();
    let item = Item::new("/proc/self/status", "x");
    let error = source.open(&item).await.err().unwrap();
    assert_eq!(error.kind(), Kind::SourceUnreadable);
    assert!(error.advice().is_some_and(|advice| advice.contains("pipe it")));
}

#[tokio::test]
async fn a_list_names_what_to_take_and_missing_entries_fail_alone() {
    let dir = tree(&["d/a", "d/b c", "d/s/x", "d/s/t/y", "d/not listed", "outside"]);
    symlink("../outside", dir.path().join("d/link")).unwrap();
    let list = dir.path().join("list");
    fs::write(&list, "\u{feff}a\r\n\r\n./b c\r\ns\r\nmissing\r\n../outside\r\n/a/../../outside\r\nlink").unwrap();
    let opening = |recursive, nul| Opening {
        recursive,
        list_of_files: Some(ListOfFiles { from: list.to_str().unwrap().to_owned(), nul }),
        ..Opening::default()
    };
    let d = dir.path().join("d");
    let arg = d.to_str().unwrap();
    let mut expected = map([
        ("d/a", "ok"),
        ("d/b c", "ok"),
        ("d/s/x", "ok"),
        ("d/s/t/y", "ok"),
        ("d/link", "ok"),
        ("../outside", "Name"),
        ("/a/../../outside", "Name"),
    ]);
    expected.insert(format!("{arg}/missing"), "SourceNotFound".into());
    assert_eq!(listed(opened(arg, &opening(true, false)).unwrap()).await, expected);

    fs::write(&list, "a\0s\0").unwrap();
    let seen = listed(opened(arg, &opening(false, true)).unwrap()).await;
    let mut expected = map([("d/a", "ok")]);
    expected.insert(format!("{arg}/s"), FOLDER.into());
    assert_eq!(seen, expected);

    fs::remove_file(&list).unwrap();
    let source = opened(arg, &opening(true, false)).unwrap();
    let error = source.list(mpsc::channel(1).0).await.unwrap_err();
    assert_eq!(error.kind(), Kind::SourceNotFound);
}

async fn bytes(reader: &dyn blobjet::endpoint::Reader, offset: u64, len: u64) -> blobjet::Result<Vec<u8>> {
    Ok(reader.read(offset, len).await?.iter().flat_map(|b| b.to_vec()).collect())
}

#[tokio::test]
async fn every_way_of_reading_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let data: Vec<u8> = (0..3 * MIB + 5).map(|i| (i ^ (i >> 8) ^ (i >> 16)).to_le_bytes()[0]).collect();
    fs::write(&path, &data).unwrap();
    let item = Item::new(path.to_str().unwrap(), "f");
    for read in [ReadMode::Auto, ReadMode::Mmap, ReadMode::Pread] {
        let source = opened(&item.source, &Opening { read, ..Opening::default() }).unwrap();
        let reader = source.open(&item).await.unwrap();
        assert_eq!(reader.facts().len, Some(data.len() as u64));
        for (offset, len) in [(0, data.len()), (0, 0), (1, 10), (4095, 4098), (1_000_001, 2_000_000), (data.len() - 1, 1)] {
            let seen = bytes(&*reader, offset as u64, len as u64).await.unwrap();
            assert!(seen == data[offset..offset + len], "{read:?} {offset}+{len}");
        }
        reader.check_unchanged(Same::Whole).unwrap();
        let past = bytes(&*reader, data.len() as u64 - 10, 2 * MIB).await.unwrap_err();
        assert_eq!(past.kind(), Kind::SourceChanged, "{read:?}");
    }
}

#[tokio::test]
async fn a_source_that_changes_is_noticed_whatever_way_it_changes() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("cut", |path| File::options().write(true).open(path).unwrap().set_len(4096).unwrap()),
        ("grown", |path| File::options().write(true).open(path).unwrap().set_len(9_000_000).unwrap()),
        ("rewritten", |path| {
            let file = File::options().write(true).open(path).unwrap();
            file.write_all_at(b"other", 7).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_001)).unwrap();
        }),
        ("touched by 0.2 s", |path| {
            let time = UNIX_EPOCH + Duration::from_millis(1_000_000_000_200);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }),
    ];
    for read in [ReadMode::Mmap, ReadMode::Pread] {
        for (how, change) in changes {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("f");
            fs::write(&path, vec![1; 4_000_000]).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
            let item = Item::new(path.to_str().unwrap(), "f");
            let source = opened(&item.source, &Opening { read, ..Opening::default() }).unwrap();
            let reader = source.open(&item).await.unwrap();
            let window = reader.read(0, 4_000_000).await.unwrap();
            change(&path);
            // Reading what was mapped must not kill the process, whatever it gives.
            std::hint::black_box(window.crc64());
            assert_eq!(reader.check_unchanged(Same::Whole).unwrap_err().kind(), Kind::SourceChanged, "{how} {read:?}");
        }
    }
}

#[tokio::test]
async fn what_takes_a_files_place_after_the_listing_is_never_waited_for() {
    let dir = tree(&["f"]);
    let path = dir.path().join("f");
    let item = Item::new(path.to_str().unwrap(), "f");
    let source = opened(&item.source, &Opening::default()).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(source.open(&item).await.err().unwrap().kind(), Kind::SourceChanged);
    mkfifo(&path);
    assert_eq!(source.open(&item).await.err().unwrap().kind(), Kind::SourceChanged);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(source.open(&item).await.err().unwrap().kind(), Kind::SourceChanged);
}
