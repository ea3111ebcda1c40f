//! The file's form: its tables, its version, how an older one is brought up to date, and how a connection is set up.
//!
//! One row a transfer, in the order of their ends, clustered by job: the key is the job's number and a counter, so a job's rows
//! lie together and removing it frees whole pages. Names are kept without what all of a job share, times as differences, causes
//! by number: some 90 bytes for a name of 40 characters. Finished transfers are found by nothing but their job, so they have no
//! index; the few others have one.

use crate::error::{Error, Kind, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What makes a file of version `i + 1` out of one of version `i`; an empty file has version 0. Steps are added and never
/// changed: files that were made by them are out there.
const STEPS: &[&str] = &[VERSION_1];

const VERSION_1: &str = "
    -- Moments are microseconds since 1970, UTC.
    CREATE TABLE job (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        source TEXT NOT NULL,
        destination TEXT NOT NULL,
        -- What is needed to run it again, as the command line put it: JSON. No secret is in it.
        command TEXT NOT NULL,
        started INTEGER NOT NULL,
        -- NULL while it runs, and for good if its process died.
        ended INTEGER,
        status TEXT,
        error TEXT,
        runs INTEGER NOT NULL DEFAULT 1,
        -- Known at the end.
        listed INTEGER,
        done INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        skipped INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        -- What sources and targets of transfers begin with.
        source_root TEXT,
        target_root TEXT
    );
    -- The part after the job's number in the keys of its transfers is below 2^32.
    CREATE TABLE transfer (
        n INTEGER PRIMARY KEY,
        -- 0: source and target as they are. 1: source without source_root; target is target_root and the same.
        -- 2: source without source_root; target as it is.
        form INTEGER NOT NULL,
        source TEXT NOT NULL,
        target TEXT,
        -- 0 done, 1 failed, 2 skipped.
        outcome INTEGER NOT NULL,
        reason INTEGER,
        -- Microseconds after the start of the job, after queued (NULL: never begun), after started (or queued).
        queued INTEGER NOT NULL,
        started INTEGER,
        finished INTEGER NOT NULL,
        -- The source's last change, nanoseconds since 1970.
        modified INTEGER,
        bytes INTEGER,
        blocks INTEGER NOT NULL,
        retries INTEGER NOT NULL
    );
    CREATE INDEX transfer_left ON transfer (outcome) WHERE outcome <> 0;
    CREATE TABLE reason (job INTEGER NOT NULL, n INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (job, n)) WITHOUT ROWID;
";

/// How long another process may hold the lock for writing. Transactions are short; a second job prunes at most.
const BUSY: Duration = Duration::from_secs(5);

/// Memory for pages of the file while it is written, instead of SQLite's 2 MiB, as `cache_size` has it: rows go to its end, and
/// what lies before is not read again. A transaction that changes more is written in parts.
const CACHE_KIB: i32 = -512;

/// The file in the state folder.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join("jobs.sqlite")
}

/// Opens the file, made if it is not there, for writing at most `bytes` into it.
///
/// # Errors
/// `Local` where it cannot be opened or is no such file; `Unsupported` where a newer program has made it.
pub(super) fn open_or_make(folder: &Path, bytes: u64) -> Result<Connection> {
    let file = file(folder);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| {
        // Before SQLite does: names of files are nobody else's business. Files beside it take its mode over.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    });
    made.map_err(|error| Error::new(Kind::Local, format!("cannot make {}", file.display())).with_source(error))?;
    open(&file, bytes, STEPS)
}

/// Opens the file if it is there.
///
/// # Errors
/// As [`open_or_make`].
pub(super) fn open_existing(folder: &Path) -> Result<Option<Connection>> {
    let file = file(folder);
    match file.try_exists() {
        Ok(false) => Ok(None),
        Ok(true) => open(&file, u64::MAX, STEPS).map(Some),
        Err(error) => Err(Error::new(Kind::Local, format!("cannot look for {}", file.display())).with_source(error)),
    }
}

/// Words for an error of SQLite's.
pub(super) fn failed(file: &Path) -> impl Fn(rusqlite::Error) -> Error + use<> {
    let file = file.to_owned();
    move |error| Error::new(Kind::Local, format!("cannot use {}", file.display())).with_source(error)
}

fn open(file: &Path, bytes: u64, steps: &[&str]) -> Result<Connection> {
    let failed = failed(file);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags).map_err(&failed)?;
    connection.busy_timeout(BUSY).map_err(&failed)?;
    // The end of a job does not wait for a disk: the next one that fills the log up copies it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(&failed)?;
    keep_log(&connection).map_err(&failed)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(&failed)?;
    connection.pragma_update(None, "journal_size_limit", 8 << 20).map_err(&failed)?;
    if bytes != u64::MAX {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(&failed)?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        connection.pragma_update(None, "max_page_count", pages).map_err(&failed)?;
        connection.pragma_update(None, "cache_size", CACHE_KIB).map_err(&failed)?;
    }
    bring_up_to_date(&mut connection, file, steps)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Switches to write-ahead logging. Of two that do so at the same time SQLite refuses one at once, whatever its patience.
fn keep_log(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + BUSY;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn bring_up_to_date(connection: &mut Connection, file: &Path, steps: &[&str]) -> Result<()> {
    let failed = failed(file);
    let version = |connection: &Connection| connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0));
    let known = i32::try_from(steps.len()).unwrap_or(i32::MAX);
    if version(connection).map_err(&failed)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    // Read again under the lock: another process may have done it meanwhile.
    let found = version(&transaction).map_err(&failed)?;
    let Some(missing) = usize::try_from(found).ok().and_then(|found| steps.get(found..)) else {
        return Err(Error::new(
            Kind::Unsupported,
            format!("{} has format {found}, and this program knows {known}", file.display()),
        )
        .with_advice("use the newer blobjet that made it, or name another folder with BLOBJET_STATE"));
    };
    for step in missing {
        transaction.execute_batch(step).map_err(&failed)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(&failed)?;
    transaction.commit().map_err(&failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = "ALTER TABLE job ADD COLUMN note TEXT NOT NULL DEFAULT 'none';";

    #[test]
    fn those_who_make_it_at_the_same_time_all_have_it() {
        for _ in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let open = || open_or_make(dir.path(), u64::MAX).map(drop);
            let results: Vec<Result<()>> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            results.into_iter().for_each(Result::unwrap);
        }
    }

    #[test]
    fn a_file_of_version_1_is_opened_by_a_later_program_and_keeps_what_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        // As version 1 was first written. The text stands here a second time on purpose: changing the step breaks this.
        let made = Connection::open(&file).unwrap();
        made.execute_batch(include_str!("../../../tests/data/journal-v1.sql")).unwrap();
        drop(made);
        let steps: Vec<&str> = STEPS.iter().copied().chain([NEXT]).collect();
        for steps in [STEPS, &steps] {
            let connection = open(&file, u64::MAX, steps).unwrap();
            let rows: (String, i64) = connection
                .query_row("SELECT job.id, count(*) FROM job, transfer WHERE transfer.n >> 32 = job.n", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap();
            assert_eq!(rows, ("0b9d6c1e-8f7a-4d0e-9b7e-2f6a1c3d5e7f".to_owned(), 3));
        }
        let note: String = Connection::open(&file).unwrap().query_row("SELECT note FROM job", [], |row| row.get(0)).unwrap();
        assert_eq!(note, "none");
        // And the older program leaves the newer file alone.
        let error = open(&file, u64::MAX, &steps[..1]).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    }

    #[test]
    fn what_is_no_journal_is_an_error_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let text = "not a database, whatever it is called".repeat(200);
        std::fs::write(file(dir.path()), &text).unwrap();
        assert_eq!(open_or_make(dir.path(), u64::MAX).unwrap_err().kind(), Kind::Local);
        assert_eq!(std::fs::read_to_string(file(dir.path())).unwrap(), text);
    }

    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        let connection = open_or_make(&folder, u64::MAX).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE; COMMIT").unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.path());
        }
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o077, 0);
    }
}
