//! Downloads from the embedded service to real files: bytes, requests, names, what is checked, what is kept, and going on.

use crate::double::pattern;
use crate::world::{CONTAINER, World, local};
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::emulator::{Armed, Fault};
use blobjet::endpoint::arrival::{CheckMd5, Handling};
use blobjet::endpoint::blob_source::Unpacked;
use blobjet::endpoint::file_sink::FileSink;
use blobjet::endpoint::null::NullSink;
use blobjet::endpoint::open::Opening;
use blobjet::endpoint::open_blobs::blobs;
use blobjet::endpoint::posix::Stored;
use blobjet::endpoint::{Sink, Source};
use blobjet::error::{Kind, Result};
use blobjet::rest::blob::Blob;
use blobjet::transfer::engine::{Job, Summary, run};
use blobjet::transfer::plan::{OnChange, Overwrite, Tuning};
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Bytes a block.
const B: usize = 100_000;

fn tuning() -> Tuning {
    Tuning { block_size: B as u64, whole_limit: B as u64, on_change: OnChange::Retry, ..Tuning::default() }
}

fn recursive() -> Opening {
    Opening { recursive: true, ..Opening::default() }
}

/// A service, a folder to download to, and what was told of no failure.
struct Stage {
    world: World,
    folder: tempfile::TempDir,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    async fn new() -> Stage {
        Stage { world: World::new().await, folder: tempfile::tempdir().unwrap(), notes: Arc::default() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn put(&self, name: &str, data: &[u8], attributes: Attributes) {
        let data = Chunks::from(data.to_vec());
        let blob = Blob::new(&self.world.client, CONTAINER, name);
        blob.put_blob(&data, data.crc64(), &attributes, Replace::Always).await.unwrap();
    }

    fn sink(&self, handling: Handling) -> FileSink {
        let notes = Arc::clone(&self.notes);
        FileSink::new(self.path(), handling, Arc::new(move |note: &str| notes.lock().unwrap().push(note.to_owned())))
    }

    fn source(&self, path: Option<&str>, opening: &Opening) -> Result<Arc<dyn Source>> {
        blobs(self.world.client.clone(), CONTAINER, path, opening).map(|source| Arc::new(source.as_paths()) as _)
    }

    async fn run(&self, source: Arc<dyn Source>, sink: impl Sink + 'static, tuning: Tuning) -> (Summary, Arc<Progress>) {
        let progress = Progress::new(None);
        let job = Job { source, sink: Arc::new(sink), tuning, prompt: None, earlier: None };
        let summary = run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
        assert_eq!(summary.counts.pending(), 0);
        (summary, progress)
    }

    /// All blobs, to the folder.
    async fn all(&self, handling: Handling) -> (Summary, Arc<Progress>) {
        let opening = Opening { as_subdir: false, ..recursive() };
        self.run(self.source(None, &opening).unwrap(), self.sink(handling), tuning()).await
    }

    fn arm(&self, rule: &str) -> Armed {
        self.world.emulator.fault(rule.parse::<Fault>().unwrap())
    }

    /// Every file in the folder, hidden ones too, by its path.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => found.push(entry.strip_prefix(self.path()).unwrap().to_str().unwrap().to_owned()),
                }
            }
        }
        found.sort();
        found
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap()
    }
}

// semantics 68, 74
#[tokio::test(flavor = "multi_thread")]
async fn sizes_round_trip_with_the_fewest_requests() {
    let stage = Stage::new().await;
    let sizes = [0, 1, B - 1, B, B + 1, 2 * B, 2 * B + 1];
    for len in sizes {
        stage.put(&format!("d/{len}"), &pattern(len), Attributes::default()).await;
    }
    let before = stage.world.emulator.seen().len();
    let (summary, _) = stage.all(Handling::default()).await;
    assert_eq!((summary.counts.done, summary.counts.bytes_sent), (7, sizes.iter().sum::<usize>() as u64));
    let requests = stage.world.requests(before);
    let of = |what: &str| requests.iter().filter(|request| *request == what).count();
    // A page, and ranges: nothing is asked for before a blob or after it.
    assert_eq!((of("GET list"), of("GET"), requests.len()), (1, 4 + 2 + 2 + 3, 12));
    let seen = stage.world.emulator.seen();
    let empty = seen.iter().find(|seen| seen.path.ends_with("/d/0") && seen.method == "GET").unwrap();
    assert_eq!(empty.status, 200, "the service refuses any range of an empty blob");
    for len in sizes {
        assert!(stage.read(&format!("d/{len}")) == pattern(len), "{len} bytes");
    }
    assert_eq!(stage.files().len(), 7, "nothing else is left: {:?}", stage.files());
}

/// Case 31, downwards.
// semantics 72
#[tokio::test(flavor = "multi_thread")]
async fn names_arrive_byte_for_byte() {
    let stage = Stage::new().await;
    let ascii: String = (b' '..=b'~').map(char::from).filter(|c| !"/\\".contains(*c)).collect();
    let names =
        ["a%zz.txt", "abc.%22", "%2F", "%41", "[test].txt", "-dash", "trailing ", "dot.", "\u{1F600}", "é", "e\u{301}", &ascii];
    for name in names {
        stage.put(&format!("n/{name}"), name.as_bytes(), Attributes::default()).await;
    }
    let (summary, progress) = stage.all(Handling::default()).await;
    assert_eq!(summary.counts.done, names.len() as u64, "{:?}", progress.failures());
    for name in names {
        assert_eq!(stage.read(&format!("n/{name}")), name.as_bytes(), "{name}");
    }
}

/// Case 34.
// semantics 72
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_elsewhere_and_names_that_are_no_paths_fail_alone() {
    let stage = Stage::new().await;
    let outside = stage.path().parent().unwrap().join("y");
    let bad = ["/lead", "a//b", "file/below", "deep/er/x", &"x".repeat(256)];
    let stubs = ["dir/", "stub"];
    for name in ["ok", "file", "deep/er", "file-2"].iter().chain(&bad) {
        stage.put(name, b"x", Attributes::default()).await;
    }
    stage.put("dir/", b"", Attributes::default()).await;
    let stub = Attributes { metadata: vec![("hdi_isfolder".into(), "true".into())], ..Attributes::default() };
    stage.put("stub", b"", stub).await;
    let (summary, progress) = stage.all(Handling::default()).await;
    let counts = summary.counts;
    assert_eq!(
        (counts.done, counts.failed, counts.skipped),
        (4, bad.len() as u64, stubs.len() as u64),
        "{:?}",
        progress.failures()
    );
    assert!(progress.failures().iter().all(|failure| failure.kind == Kind::Local), "{:?}", progress.failures());
    assert_eq!(stage.files(), ["deep/er", "file", "file-2", "ok"]);
    assert!(!outside.exists());
    // No URL leads to names with dots for parts; a sink refuses them whoever they come from.
    for name in ["..", "../y", "x/../y", "."] {
        assert_eq!(stage.sink(Handling::default()).check_name(name).unwrap_err().kind(), Kind::Local, "{name}");
    }
}

/// Case 34: names that meet in one file on a disk that does not tell case apart.
// semantics 72
#[tokio::test(flavor = "multi_thread")]
async fn case_twins_are_told_where_case_tells_nothing() {
    let stage = Stage::new().await;
    for name in ["a/B", "a/b", "c"] {
        stage.put(name, name.as_bytes(), Attributes::default()).await;
    }
    let opening = Opening { as_subdir: false, ..recursive() };
    let sink = stage.sink(Handling::default()).case_blind(true);
    let (summary, progress) = stage.run(stage.source(None, &opening).unwrap(), sink, tuning()).await;
    assert_eq!((summary.counts.done, summary.counts.failed), (2, 1));
    assert!(progress.failures()[0].first.to_string().contains("only in case"), "{:?}", progress.failures());
    let (summary, _) = stage.all(Handling::default()).await;
    assert_eq!(summary.counts.done, 3, "this disk tells them apart");
}

/// Case 46: the old file stays until the new one is whole.
// semantics 68
#[tokio::test(flavor = "multi_thread")]
async fn an_old_file_survives_a_failure() {
    let stage = Stage::new().await;
    stage.put("small", &pattern(10), Attributes::default()).await;
    stage.put("large", &pattern(5 * B), Attributes::default()).await;
    for name in ["small", "large"] {
        fs::write(stage.path().join(name), "old").unwrap();
        fs::set_permissions(stage.path().join(name), fs::Permissions::from_mode(0o640)).unwrap();
    }
    let armed = stage.arm("op=GetBlob,status=409/LeaseIdMissing,after=1");
    let (summary, _) = stage.all(Handling::default()).await;
    assert!(summary.counts.failed > 0 && armed.hits() > 0);
    for (name, len) in [("small", 10), ("large", 5 * B)] {
        let there = stage.read(name);
        assert!(there == b"old" || (name == "small" && there == pattern(len)), "{name} has {} bytes", there.len());
    }
    armed.remove();
    let (summary, _) = stage.all(Handling::default()).await;
    assert_eq!(summary.counts.done, 2);
    assert!(stage.read("large") == pattern(5 * B));
    assert_eq!(fs::metadata(stage.path().join("large")).unwrap().mode() & 0o777, 0o640, "as the one it replaces");
    assert_eq!(stage.files(), ["large", "small"]);
}

/// Case 46: a blob that is replaced while it is read is read again, and is never a mixture.
// semantics 69
#[tokio::test(flavor = "multi_thread")]
async fn a_blob_replaced_on_the_way_is_read_again() {
    let stage = Stage::new().await;
    let (old, new) = (pattern(5 * B), pattern(6 * B).into_iter().rev().collect::<Vec<u8>>());
    stage.put("x", &old, Attributes::default()).await;
    // The third range waits, and meanwhile the blob is another one.
    let armed = stage.arm("op=GetBlob,nth=3,delay=300ms");
    let replace = async {
        while armed.hits() == 0 {
            tokio::task::yield_now().await;
        }
        stage.put("x", &new, Attributes::default()).await;
    };
    let one_lane = Tuning { lanes: 1.try_into().unwrap(), ..tuning() };
    let opening = Opening { as_subdir: false, ..recursive() };
    let (source, sink) = (stage.source(None, &opening).unwrap(), stage.sink(Handling::default()));
    let ((summary, progress), ()) = tokio::join!(stage.run(source, sink, one_lane.clone()), replace);
    assert_eq!((summary.counts.done, summary.counts.restarts), (1, 1), "{:?}", progress.failures());
    assert!(stage.read("x") == new);
    assert_eq!(stage.files(), ["x"]);
}

// semantics 70
#[tokio::test(flavor = "multi_thread")]
async fn a_byte_flipped_on_the_way_is_found_and_fetched_again() {
    let stage = Stage::new().await;
    stage.put("small", &pattern(1000), Attributes::default()).await;
    stage.put("large", &pattern(3 * B), Attributes::default()).await;
    for nth in 1..=4 {
        let armed = stage.arm(&format!("op=GetBlob,nth={nth},flip-answer=500"));
        let (summary, progress) = stage.all(Handling::default()).await;
        assert_eq!((summary.counts.done, armed.hits()), (2, 1), "{:?}", progress.failures());
        assert!(stage.read("small") == pattern(1000) && stage.read("large") == pattern(3 * B));
    }
    let _armed = stage.arm("op=GetBlob,flip-answer=500");
    let (summary, progress) = stage.all(Handling::default()).await;
    assert_eq!(summary.counts.failed, 2);
    assert!(progress.failures().iter().all(|failure| failure.kind == Kind::Corrupt));
    assert!(stage.read("small") == pattern(1000), "what was there stays");
}

/// Case 21, downwards: what breaks off is fetched again.
// semantics 70
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_break_off_are_asked_for_again() {
    for rule in [
        "op=GetBlob,nth=2,cut=50000",
        "op=GetBlob,nth=2,reset=0",
        "op=GetBlob,nth=2,status=503/ServerBusy",
        "op=GetBlob,nth=2,status=500/InternalError",
    ] {
        let stage = Stage::new().await;
        stage.put("x", &pattern(4 * B), Attributes::default()).await;
        let armed = stage.arm(rule);
        let (summary, progress) = stage.all(Handling::default()).await;
        assert_eq!((summary.counts.done, armed.hits()), (1, 1), "{rule}: {:?}", progress.failures());
        assert!(stage.read("x") == pattern(4 * B), "{rule}");
    }
}

/// Case 47.
// semantics 71
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_md5_is_compared_as_the_mode_says() {
    // MD5 of nothing, as RFC 1321 has it: wrong for anything else.
    let wrong = [0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8, 0x42, 0x7e];
    for len in [10, 3 * B] {
        let stage = Stage::new().await;
        // Put Blob would compare it, or have one computed; a commit stores what it is told, or nothing.
        for (name, content_md5) in [("none", None), ("wrong", Some(wrong))] {
            let attributes = Attributes { content_md5, ..Attributes::default() };
            let data = Chunks::from(pattern(len));
            let blob = Blob::new(&stage.world.client, CONTAINER, name);
            blob.put_block("AAAA", &data, data.crc64()).await.unwrap();
            blob.put_block_list(["AAAA"], &attributes, Replace::Always).await.unwrap();
        }
        for (mode, failed, noted) in [
            (CheckMd5::NoCheck, 0, 0),
            (CheckMd5::LogOnly, 0, 1),
            (CheckMd5::FailIfDifferent, 1, 0),
            (CheckMd5::FailIfDifferentOrMissing, 2, 0),
        ] {
            stage.files().iter().for_each(|file| fs::remove_file(stage.path().join(file)).unwrap());
            stage.notes.lock().unwrap().clear();
            let (summary, progress) = stage.all(Handling { check_md5: mode, ..Handling::default() }).await;
            assert_eq!((summary.counts.failed, stage.notes.lock().unwrap().len()), (failed, noted), "{mode:?}, {len} bytes");
            let failures = progress.failures();
            if failed == 1 {
                let said = format!("{failures:?}");
                assert!(said.contains("d41d8cd98f00b204e9800998ecf8427e") && said.contains("wrong.md5-differs"), "{said}");
                assert!(stage.read("wrong.md5-differs") == pattern(len), "what came is kept");
                assert!(!stage.path().join("wrong").exists());
            } else if failed == 0 {
                assert!(stage.read("wrong") == pattern(len));
            }
        }
    }
}

/// Case 27, downwards: a later run fetches only what is not there.
// semantics 73
#[tokio::test(flavor = "multi_thread")]
async fn a_later_run_fetches_the_rest() {
    let stage = Stage::new().await;
    stage.put("d/x", &pattern(10 * B), Attributes::default()).await;
    let armed = stage.arm("op=GetBlob,after=6,status=409/LeaseIdMissing");
    let one_lane = Tuning { lanes: 1.try_into().unwrap(), ..tuning() };
    let opening = Opening { as_subdir: false, ..recursive() };
    let go = async || stage.run(stage.source(None, &opening).unwrap(), stage.sink(Handling::default()), one_lane.clone()).await;
    let (summary, _) = go().await;
    assert_eq!(summary.counts.failed, 1);
    let left = stage.files();
    assert!(left.len() == 1 && left[0].starts_with("d/.bj-") && left[0].ends_with(".part"), "{left:?}");
    let (uploaded, _) = stage.world.upload(local(stage.path(), &recursive()), stage.world.sink(), tuning()).await;
    assert_eq!((uploaded.counts.done, uploaded.counts.skipped), (0, 1));
    armed.remove();
    // One of the six blocks is not what it was.
    let part = stage.path().join(&left[0]);
    let mut bytes = fs::read(&part).unwrap();
    bytes[2 * B + 5] ^= 1;
    fs::write(&part, bytes).unwrap();
    let before = stage.world.emulator.seen().len();
    let (summary, _) = go().await;
    assert_eq!((summary.counts.done, summary.counts.blocks_resumed), (1, 5));
    assert_eq!(stage.world.requests(before), [&["GET list"][..], &["GET"; 5]].concat());
    assert!(stage.read("d/x") == pattern(10 * B));
    assert_eq!(stage.files(), ["d/x"]);
    // Of another version nothing is taken over.
    let armed = stage.arm("op=GetBlob,after=6,status=409/LeaseIdMissing");
    fs::remove_file(stage.path().join("d/x")).unwrap();
    go().await;
    armed.remove();
    let other: Vec<u8> = pattern(10 * B).into_iter().rev().collect();
    stage.put("d/x", &other, Attributes::default()).await;
    let (summary, _) = go().await;
    assert_eq!((summary.counts.done, summary.counts.blocks_resumed), (1, 0));
    assert!(stage.read("d/x") == other);
}

// semantics 68
#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_there_are_replaced_as_asked() {
    let hour = Duration::from_secs(3600);
    for (overwrite, age, replaced) in [
        (Overwrite::True, hour, true),
        (Overwrite::False, hour, false),
        (Overwrite::IfSourceNewer, hour, true),
        (Overwrite::IfSourceNewer, Duration::ZERO, false),
    ] {
        let stage = Stage::new().await;
        stage.put("small", b"new", Attributes::default()).await;
        stage.put("large", &pattern(2 * B), Attributes::default()).await;
        for name in ["small", "large"] {
            fs::write(stage.path().join(name), "old").unwrap();
            let file = fs::File::options().write(true).open(stage.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(5) - age).unwrap();
        }
        let before = stage.world.emulator.seen().len();
        let opening = Opening { as_subdir: false, ..recursive() };
        let how = Tuning { overwrite, ..tuning() };
        let (summary, _) = stage.run(stage.source(None, &opening).unwrap(), stage.sink(Handling::default()), how).await;
        let expected = if replaced { (2, 0) } else { (0, 2) };
        assert_eq!((summary.counts.done, summary.counts.skipped), expected, "{overwrite:?}");
        assert_eq!(stage.read("small") == b"new", replaced);
        if !replaced {
            assert_eq!(stage.world.requests(before), ["GET list"], "nothing is fetched in vain");
        }
        assert_eq!(stage.files(), ["large", "small"]);
    }
}

/// What appears under a file's name while that is fetched is treated like what was there before.
// semantics 68
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_appears_meanwhile_is_replaced_as_asked() {
    for (overwrite, replaced) in [(Overwrite::True, true), (Overwrite::False, false)] {
        let stage = Stage::new().await;
        stage.put("x", b"new", Attributes::default()).await;
        let armed = stage.arm("op=GetBlob,nth=1,delay=1s");
        let appear = async {
            while armed.hits() == 0 {
                tokio::task::yield_now().await;
            }
            fs::write(stage.path().join("x"), "old").unwrap();
            fs::set_permissions(stage.path().join("x"), fs::Permissions::from_mode(0o640)).unwrap();
        };
        let opening = Opening { as_subdir: false, ..recursive() };
        let (source, sink) = (stage.source(None, &opening).unwrap(), stage.sink(Handling::default()));
        let how = Tuning { overwrite, ..tuning() };
        let ((summary, progress), ()) = tokio::join!(stage.run(source, sink, how), appear);
        let expected = if replaced { (1, 0) } else { (0, 1) };
        assert_eq!((summary.counts.done, summary.counts.skipped), expected, "{:?}", progress.failures());
        assert_eq!(stage.read("x") == b"new", replaced);
        assert_eq!(fs::metadata(stage.path().join("x")).unwrap().mode() & 0o777, 0o640);
        assert_eq!(stage.files(), ["x"]);
    }
}

/// Case 45.
// semantics 75
#[tokio::test(flavor = "multi_thread")]
async fn what_is_packed_is_unpacked_only_when_asked() {
    let stage = Stage::new().await;
    // `printf one | gzip -n`.
    let packed = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0xcf, 0x4b, 5, 0, 0xf1, 0x86, 0x6c, 0x7a, 3, 0, 0, 0];
    let gzip = Attributes { content_encoding: Some("gzip".into()), ..Attributes::default() };
    stage.put("a.txt.gz", &packed, gzip.clone()).await;
    stage.put("plain.gz", &packed, Attributes::default()).await;
    stage.all(Handling::default()).await;
    assert_eq!((stage.files(), stage.read("a.txt.gz")), (vec!["a.txt.gz".into(), "plain.gz".into()], packed.to_vec()));
    fs::remove_file(stage.path().join("a.txt.gz")).unwrap();
    let unpack = async || {
        let opening = Opening { as_subdir: false, ..recursive() };
        let source = blobs(stage.world.client.clone(), CONTAINER, None, &opening).unwrap().as_paths().unpacked(Unpacked::All);
        stage.run(Arc::new(source), stage.sink(Handling { decompress: true, ..Handling::default() }), tuning()).await
    };
    let (summary, progress) = unpack().await;
    assert_eq!(summary.counts.done, 2, "{:?}", progress.failures());
    assert_eq!((stage.files(), stage.read("a.txt")), (vec!["a.txt".into(), "plain.gz".into()], b"one".to_vec()));
    stage.put("b.gz", b"no gzip at all", gzip).await;
    stage.put("a.txt", b"in the way", Attributes::default()).await;
    let (summary, progress) = unpack().await;
    assert_eq!((summary.counts.done, summary.counts.failed), (2, 2), "no gzip, and two that become one file");
    assert!(progress.failures().iter().any(|failure| failure.first.to_string().contains("another blob becomes that file")));
    assert_eq!(stage.files(), ["a.txt", "plain.gz"]);
}

// semantics 76
#[tokio::test(flavor = "multi_thread")]
async fn times_and_permissions_survive_the_round_trip() {
    let stage = Stage::new().await;
    let from = tempfile::tempdir().unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    for (name, len) in [("small", 10), ("large", 3 * B)] {
        fs::write(from.path().join(name), pattern(len)).unwrap();
        fs::set_permissions(from.path().join(name), fs::Permissions::from_mode(0o751)).unwrap();
        fs::File::options().write(true).open(from.path().join(name)).unwrap().set_modified(moment).unwrap();
    }
    let opening = Opening { as_subdir: false, stored: Some(Stored::All), ..recursive() };
    stage.world.upload(local(from.path(), &opening), stage.world.sink(), tuning()).await;
    let metadata = stage.world.properties("large").await.unwrap();
    let metadata: Vec<_> = metadata.metadata().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    // AzCopy's names and forms.
    for expected in [("modtime", "1234567890123456789"), ("permissions", "33257")] {
        assert!(metadata.contains(&(expected.0.to_owned(), expected.1.to_owned())), "{metadata:?}");
    }
    let at = |name: &str| fs::metadata(stage.path().join(name)).unwrap();
    let there = stage.world.properties("large").await.unwrap().last_modified().unwrap();
    for (handling, time, mode) in [
        (Handling { posix: true, ..Handling::default() }, Some(moment), Some(0o751)),
        (Handling { times: true, ..Handling::default() }, Some(moment), None),
        (Handling { last_modified: true, ..Handling::default() }, Some(there), None),
        (Handling::default(), None, None),
    ] {
        stage.files().iter().for_each(|file| fs::remove_file(stage.path().join(file)).unwrap());
        stage.all(handling.clone()).await;
        for name in ["small", "large"] {
            let found = at(name);
            match time {
                // Small blobs were written at another second, perhaps.
                Some(time) if name == "large" || time == moment => assert_eq!(found.modified().unwrap(), time, "{handling:?}"),
                Some(_) => {}
                None => assert!(found.modified().unwrap() > moment + Duration::from_secs(1_000_000), "{handling:?}"),
            }
            if let Some(mode) = mode {
                assert_eq!(found.mode() & 0o7777, mode);
            }
        }
    }
}

// semantics 74
#[tokio::test(flavor = "multi_thread")]
async fn one_blob_lands_where_it_is_told_and_a_name_may_be_a_folder() {
    let stage = Stage::new().await;
    stage.put("d/x", b"file", Attributes::default()).await;
    stage.put("d/x/y", b"below", Attributes::default()).await;
    stage.put("d/xy", b"beside", Attributes::default()).await;
    let go = async |path: &str, opening: Opening| {
        let (summary, progress) =
            stage.run(stage.source(Some(path), &opening).unwrap(), stage.sink(Handling::default()), tuning()).await;
        let files = stage.files();
        files.iter().for_each(|file| fs::remove_file(stage.path().join(file)).unwrap());
        let _ = fs::remove_dir_all(stage.path().join("d"));
        let _ = fs::remove_dir_all(stage.path().join("x"));
        (summary.counts.done, files, progress.failures().len())
    };
    let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(go("d/x", Opening::default()).await, (1, files(&["x"]), 0));
    assert_eq!(go("d/x", Opening { dest: Some("n".into()), ..Opening::default() }).await, (1, files(&["n"]), 0));
    assert_eq!(go("d/x", recursive()).await, (1, files(&["x"]), 0), "a blob it is if there is one");
    assert_eq!(go("d/x/", recursive()).await, (1, files(&["x/y"]), 0));
    assert_eq!(go("d/x*", Opening::default()).await, (2, files(&["x", "xy"]), 0));
    assert_eq!(go("d", Opening { as_subdir: false, ..recursive() }).await, (2, files(&["x", "xy"]), 1));
    let none = stage.source(Some("d/none"), &Opening::default()).unwrap();
    let (sender, _listening) = tokio::sync::mpsc::channel(1);
    assert_eq!(none.list(sender).await.unwrap_err().kind(), Kind::SourceNotFound);
    assert_eq!(stage.source(Some("d/"), &Opening::default()).err().unwrap().kind(), Kind::Usage);
    assert_eq!(stage.source(None, &Opening::default()).err().unwrap().kind(), Kind::Usage);
}

#[tokio::test(flavor = "multi_thread")]
async fn nowhere_takes_everything_and_keeps_nothing() {
    let stage = Stage::new().await;
    stage.put("a", &pattern(10), Attributes::default()).await;
    stage.put("b", &pattern(3 * B), Attributes::default()).await;
    let (summary, _) = stage.run(stage.source(None, &recursive()).unwrap(), NullSink, tuning()).await;
    assert_eq!((summary.counts.done, summary.counts.bytes_sent), (2, 10 + 3 * B as u64));
    assert!(stage.files().is_empty());
}

/// An archived blob is known beforehand: no request is made for it, and it is said what to do.
// semantics 69
#[tokio::test(flavor = "multi_thread")]
async fn what_is_archived_fails_before_it_is_asked_for() {
    let stage = Stage::new().await;
    stage.put("cold", b"x", Attributes { tier: Some("Archive".into()), ..Attributes::default() }).await;
    stage.put("warm", b"y", Attributes::default()).await;
    let before = stage.world.emulator.seen().len();
    let (summary, progress) = stage.all(Handling::default()).await;
    assert_eq!((summary.counts.done, summary.counts.failed), (1, 1));
    assert_eq!(progress.failures()[0].kind, Kind::Conflict);
    assert_eq!(stage.world.requests(before), ["GET list", "GET"]);
}

/// The emulator is told apart from a service that sends no checksum: without one ranges are taken as they come.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_crc64_gets_another_checksum() {
    let stage = Stage::new().await;
    stage.put("x", &pattern(2 * B), Attributes::default()).await;
    let armed = stage.arm("op=GetBlob,nth=1,status=500/FeatureNotSupported");
    let (summary, _) = stage.all(Handling::default()).await;
    assert_eq!((summary.counts.done, armed.hits()), (1, 1));
    assert!(stage.read("x") == pattern(2 * B));
}

/// Two downloads to one name at the same time, in one job or in two, do not mix.
// semantics 73
#[tokio::test(flavor = "multi_thread")]
async fn the_same_blob_twice_is_itself() {
    let stage = Stage::new().await;
    stage.put("x", &pattern(20 * B), Attributes::default()).await;
    let opening = Opening { as_subdir: false, ..recursive() };
    let go = async || stage.run(stage.source(None, &opening).unwrap(), stage.sink(Handling::default()), tuning()).await;
    for _ in 0..5 {
        let (one, two, three) = tokio::join!(go(), go(), go());
        assert!([one, two, three].iter().all(|(summary, _)| summary.counts.done == 1));
        assert!(stage.read("x") == pattern(20 * B));
        assert_eq!(stage.files(), ["x"]);
    }
}

/// Links are written through, and what is not ours is left alone.
// semantics 72
#[tokio::test(flavor = "multi_thread")]
async fn links_are_followed_and_their_targets_written() {
    let stage = Stage::new().await;
    for (name, len) in [("small", 10), ("large", 3 * B)] {
        stage.put(name, &pattern(len), Attributes::default()).await;
        fs::write(stage.path().join(format!("target-{name}")), "old").unwrap();
        std::os::unix::fs::symlink(format!("target-{name}"), stage.path().join(name)).unwrap();
    }
    let (summary, progress) = stage.all(Handling::default()).await;
    assert_eq!(summary.counts.done, 2, "{:?}", progress.failures());
    for (name, len) in [("small", 10), ("large", 3 * B)] {
        assert!(fs::symlink_metadata(stage.path().join(name)).unwrap().is_symlink());
        assert!(stage.read(&format!("target-{name}")) == pattern(len));
    }
}
