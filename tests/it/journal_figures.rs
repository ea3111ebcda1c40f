//! How fast the journal is and what it costs: a million transfers told straight to it. Run by hand, for its figures:
//! `cargo test --release --test it -- --ignored --nocapture journal_figures`.

use crate::tell;
use blobjet::endpoint::Facts;
use blobjet::transfer::journal::{Ended, Ending, Journal, Keep, NewJob, Start, Store};
use blobjet::transfer::progress::{Course, Event, Observer, Outcome, Snapshot};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

const TRANSFERS: u64 = 1_000_000;

/// Records told before the file is looked at again: less than may wait.
const PIECE: u64 = 20_000;

fn size(folder: &Path) -> u64 {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
#[ignore = "measures"]
fn a_million_transfers() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state");
    let id = "0b9d6c1e-8f7a-4d0e-9b7e-2f6a1c3d5e7f";
    let new = NewJob {
        id: id.to_owned(),
        source: "/srv/photos".to_owned(),
        destination: "https://account.blob.core.windows.net/box".to_owned(),
        command: "{}".to_owned(),
        started: SystemTime::now(),
    };
    let journal = Journal::start(folder.clone(), Keep::default(), Start::New(new), Box::new(|said| panic!("{said:?}")));
    let begun = Instant::now();
    let mut told = Duration::ZERO;
    for i in 0..TRANSFERS {
        let target = format!("photos/{:04}/{:02}/IMG_{i:08}.edited.jpeg", 2000 + i % 25, i % 12);
        let source = format!("/srv/{target}");
        let now = SystemTime::now();
        let facts = Some(Facts { len: Some(3_000_000 + i), modified: Some(now - Duration::from_nanos(i * 1_000_003)) });
        let course = Course { queued: now, started: Some(now), facts, blocks: 0, retries: 0 };
        let outcome = if i % 1000 == 0 { Outcome::Skipped("symbolic link") } else { Outcome::Done { bytes: 3_000_000 + i } };
        let telling = Instant::now();
        journal.ended(Event { source: &source, target: Some(&target), outcome, course, finished: SystemTime::now() });
        told += telling.elapsed();
        if i % PIECE == PIECE - 1 {
            let behind = |store: &Store| store.find(id).is_ok_and(|job| job.done + job.skipped + PIECE < i);
            while Store::open(&folder).unwrap().is_none_or(|store| behind(&store)) {
                std::thread::yield_now();
            }
        }
    }
    let skipped = TRANSFERS / 1000;
    let counts = Snapshot { listed: TRANSFERS, done: TRANSFERS - skipped, skipped, ..Snapshot::default() };
    assert!(journal.end(Ending { status: "CompletedWithSkipped".to_owned(), error: None, counts }));
    let elapsed = begun.elapsed();
    let per_second = TRANSFERS as f64 / elapsed.as_secs_f64();
    let each = size(&folder) / TRANSFERS;
    let ns = told.as_nanos() / u128::from(TRANSFERS);
    tell(&format!("{per_second:.0} records/s; {ns} ns a record on the lane; {each} bytes a transfer"));

    let time = |what: &str, run: &dyn Fn(&Store)| {
        let begun = Instant::now();
        run(&Store::open(&folder).unwrap().unwrap());
        tell(&format!("{what}: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3));
    };
    time("a job", &|store| assert_eq!(store.find("0b9d").unwrap().done, TRANSFERS - skipped));
    time("its skipped transfers", &|store| {
        let mut seen = 0;
        let mut see = |_| {
            seen += 1;
            ControlFlow::Continue(())
        };
        store.transfers(&store.find(id).unwrap(), Some(Ended::Skipped), &mut see).unwrap();
        assert_eq!(seen, skipped);
    });
    time("what a resume needs of it", &|store| {
        let job = store.find(id).unwrap();
        let lease = store.lease(&job, "resume").unwrap();
        assert_eq!(store.resume(&job, lease).unwrap().finished.len() as u64, TRANSFERS - skipped);
    });
    time("removing it", &|_| {
        let mut store = Store::open(&folder).unwrap().unwrap();
        store.remove(&store.find(id).unwrap()).unwrap();
        store.shrink();
    });
    tell(&format!("{} bytes are left", size(&folder)));
    assert!(per_second >= 60_000.0 && each < 300, "{per_second:.0} records/s, {each} bytes each");
}
