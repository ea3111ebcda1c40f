//! Sources that change between listing and open, while they are read, and before the commit, under each `--on-change`: the right
//! end, nothing mixed, and what was there before stays. The changes are made by the sink as calls reach it.

use crate::double::{Call, Store, pattern};
use crate::sources::{opened, recursive, tree};
use blobjet::endpoint::file::ReadMode;
use blobjet::endpoint::open::Opening;
use blobjet::error::Kind;
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::{OnChange, Tuning};
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Small, so that files of a few blocks cost nothing; mapped all the same where that is asked for.
const B: usize = 4096;

fn tuning(on_change: OnChange) -> Tuning {
    let block = B as u64;
    // One lane, so that what comes after a call is known.
    Tuning { block_size: block, whole_limit: block, lanes: NonZeroUsize::MIN, on_change, ..Tuning::default() }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Cut,
    Grown,
    Rewritten,
    Touched,
    Replaced,
    Deleted,
}

use Change::{Cut, Deleted, Grown, Replaced, Rewritten, Touched};

impl Change {
    const ALL: [Change; 6] = [Cut, Grown, Rewritten, Touched, Replaced, Deleted];

    fn make(self, path: &Path) {
        let file = File::options().write(true).open(path).unwrap();
        let later = file.metadata().unwrap().modified().unwrap() + Duration::from_millis(200);
        match self {
            Cut => file.set_len(CUT as u64).unwrap(),
            Grown => file.write_all_at(b"and more", fs::metadata(path).unwrap().len()).unwrap(),
            Rewritten => file.write_all_at(&other(), 0).unwrap(),
            Touched => {}
            Replaced => {
                let beside = path.with_extension("new");
                fs::write(&beside, other()).unwrap();
                fs::rename(&beside, path).unwrap();
            }
            Deleted => fs::remove_file(path).unwrap(),
        }
        // A file written within one tick of the filesystem's clock keeps its time.
        if matches!(self, Cut | Grown | Rewritten | Touched) {
            file.set_modified(later).unwrap();
        }
    }
}

const LEN: usize = 5 * B + 7;
const CUT: usize = B + 9;

fn other() -> Vec<u8> {
    pattern(LEN).into_iter().map(|byte| !byte).collect()
}

struct World {
    _dir: tempfile::TempDir,
    path: PathBuf,
    store: Store,
}

impl World {
    /// A file, and a blob of its name; `hook` hears of each call and its number.
    fn new(hook: impl Fn(&Path, &Call, usize) + Send + Sync + 'static) -> World {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, pattern(LEN)).unwrap();
        let own = path.clone();
        let store = Store::failing(move |call, number| {
            hook(&own, call, number);
            None
        });
        World { _dir: dir, path, store: store.with("f", b"before", None) }
    }

    async fn upload(self, read: ReadMode, on_change: OnChange) -> (Store, Arc<Progress>) {
        let source = opened(self.path.to_str().unwrap(), &Opening { read, ..Opening::default() }).unwrap();
        let (store, progress) = (Arc::new(self.store), Progress::new(None));
        let job = Job { source, sink: Arc::clone(&store) as _, tuning: tuning(on_change), prompt: None, earlier: None };
        run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
        (Arc::into_inner(store).unwrap(), progress)
    }
}

/// What is to come of a change: this content, or a failure; and how often it was sent anew.
fn expected(change: Change, on_change: OnChange) -> (Option<Vec<u8>>, u64) {
    let before = pattern(LEN);
    let after = match change {
        Cut => before[..CUT].to_vec(),
        Grown => [&before[..], b"and more"].concat(),
        Rewritten | Replaced => other(),
        Touched | Deleted => before.clone(),
    };
    match (on_change, change) {
        // What was opened is held, whole; nothing newer is there.
        (_, Deleted) => (Some(before), 0),
        (OnChange::Fail, _) | (OnChange::Snapshot, Cut) => (None, 0),
        (OnChange::Retry, _) => (Some(after), 1),
        (OnChange::Snapshot, _) => (Some(before), 0),
    }
}

// semantics 2, 30
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_while_it_is_sent_ends_as_asked_and_is_never_mixed() {
    const LAST: usize = LEN / B;
    for read in [ReadMode::Mmap, ReadMode::Pread] {
        for change in Change::ALL {
            // While blocks are still to be read, and when all were.
            for at in [1, LAST] {
                for on_change in [OnChange::Fail, OnChange::Retry, OnChange::Snapshot] {
                    if (change, on_change) == (Rewritten, OnChange::Snapshot) {
                        // A file that is written to within its length has no snapshot: see the promise.
                        continue;
                    }
                    let hook = move |path: &Path, _: &Call, number: usize| {
                        if number == at {
                            change.make(path);
                        }
                    };
                    let (store, progress) = World::new(hook).upload(read, on_change).await;
                    let what = format!("{change:?} at call {at}, {on_change:?}, {read:?}");
                    let (content, restarts) = expected(change, on_change);
                    let counts = progress.snapshot();
                    assert_eq!((counts.listed, counts.opened, counts.restarts), (1, 1, restarts), "{what}");
                    match content {
                        Some(content) => {
                            let len = content.len() as u64;
                            assert!(store.data("f").unwrap() == content, "{what}");
                            assert_eq!((counts.done, counts.bytes_known, counts.bytes_sent), (1, len, len), "{what}");
                        }
                        None => {
                            assert_eq!(counts.failed, 1, "{what}");
                            assert_eq!(progress.failures()[0].kind, Kind::SourceChanged, "{what}");
                            assert_eq!(store.data("f").unwrap(), b"before", "{what}");
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_before_it_was_opened_is_sent_as_it_is_then() {
    for change in Change::ALL {
        for on_change in [OnChange::Fail, OnChange::Retry, OnChange::Snapshot] {
            let dir = tree(&["d/a", "d/b"]);
            let d = dir.path().join("d");
            for name in ["a", "b"] {
                fs::write(d.join(name), pattern(LEN)).unwrap();
            }
            // When the first one is sent, both are listed, and the other is not open.
            let folder = d.clone();
            let store = Store::failing(move |call, number| {
                if let (0, Call::Block(name)) = (number, call) {
                    change.make(&folder.join(if name == "d/a" { "b" } else { "a" }));
                }
                None
            });
            let (store, progress) = (Arc::new(store), Progress::new(None));
            let source = opened(d.to_str().unwrap(), &recursive()).unwrap();
            let job = Job { source, sink: Arc::clone(&store) as _, tuning: tuning(on_change), prompt: None, earlier: None };
            run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
            let what = format!("{change:?}, {on_change:?}");
            let counts = progress.snapshot();
            let gone = u64::from(change == Deleted);
            assert_eq!((counts.listed, counts.done, counts.failed), (2, 2 - gone, gone), "{what}");
            assert_eq!(counts.restarts, if on_change == OnChange::Retry { 3 * gone } else { 0 }, "{what}");
            if gone == 1 {
                assert_eq!(progress.failures()[0].kind, Kind::SourceChanged, "{what}");
            }
            for name in ["a", "b"] {
                let now = fs::read(d.join(name)).ok();
                assert!(store.data(&format!("d/{name}")) == now, "{what}: {name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_every_time_is_given_up_after_four_tries() {
    let hook = |path: &Path, call: &Call, _: usize| {
        if matches!(call, Call::Block(_)) {
            // A time of its own for each change, whatever the filesystem's clock says.
            let file = File::options().write(true).open(path).unwrap();
            let time = file.metadata().unwrap().modified().unwrap();
            file.set_modified(time + Duration::from_secs(1)).unwrap();
        }
    };
    let (store, progress) = World::new(hook).upload(ReadMode::Auto, OnChange::Retry).await;
    let counts = progress.snapshot();
    assert_eq!((counts.listed, counts.opened, counts.failed, counts.restarts), (1, 1, 1, 3));
    assert_eq!((counts.bytes_known, counts.bytes_sent), (LEN as u64, LEN as u64), "of the last try only");
    assert_eq!(store.count(|call| matches!(call, Call::Commit(_))), 0);
    assert_eq!(store.data("f").unwrap(), b"before");
    let failures = progress.failures();
    assert!(failures[0].first.to_string().ends_with("tried 4 times"), "{}", failures[0].first);
    assert_eq!(failures[0].kind, Kind::SourceChanged);
}

/// A large file that is started again is sent by all lanes again, though the listing has long ended.
#[tokio::test(flavor = "multi_thread")]
async fn all_lanes_wait_for_what_may_be_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, pattern(40 * B)).unwrap();
    let own = path.clone();
    let mut store = Store::failing(move |_, number| {
        if number == 39 {
            File::options().write(true).open(&own).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        None
    });
    // Requests of the second try wait until all lanes have one.
    store.gather = Some((40, 8));
    let (store, progress) = (Arc::new(store), Progress::new(None));
    let source = opened(path.to_str().unwrap(), &Opening::default()).unwrap();
    let lanes = NonZeroUsize::new(8).unwrap();
    let job = Job {
        source,
        sink: Arc::clone(&store) as _,
        tuning: Tuning { lanes, ..tuning(OnChange::Retry) },
        prompt: None,
        earlier: None,
    };
    run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
    assert!(store.data("f").unwrap() == pattern(40 * B));
    assert_eq!((progress.snapshot().restarts, progress.snapshot().done), (1, 1));
}
