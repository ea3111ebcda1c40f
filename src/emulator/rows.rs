//! The metadata of a store on disk: a SQLite file that mirrors the model in memory, one row a thing, written before the answer
//! and read once, at the start.
//!
//! The file is locked for this process alone (`locking_mode=EXCLUSIVE`), which is also how a second process on the same folder
//! is found and refused. `synchronous=NORMAL` in WAL mode: what was committed outlives the process, not a power failure.

use crate::{Error, Kind, Result};
use rusqlite::{Connection, ErrorCode, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// `PRAGMA user_version`: the shape of the tables and of the JSON in them.
const SCHEMA: i64 = 1;

const TABLES: &str = "
    CREATE TABLE service (account TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE containers (account TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
        PRIMARY KEY (account, name)) WITHOUT ROWID;
    CREATE TABLE blobs (account TEXT NOT NULL, container TEXT NOT NULL, name TEXT NOT NULL, snapshot TEXT NOT NULL,
        state TEXT NOT NULL, PRIMARY KEY (account, container, name, snapshot)) WITHOUT ROWID;
    CREATE TABLE blocks (account TEXT NOT NULL, container TEXT NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL,
        state TEXT NOT NULL, PRIMARY KEY (account, container, name, id)) WITHOUT ROWID;";

/// One change to the rows. `state` is JSON.
#[derive(Debug)]
pub(crate) enum Change<'a> {
    PutService {
        state: String,
    },
    PutContainer {
        state: String,
    },
    /// With all that is in it.
    DropContainer,
    /// `snapshot` is empty for the blob itself.
    PutBlob {
        name: &'a str,
        snapshot: &'a str,
        state: String,
    },
    DropBlob {
        name: &'a str,
        snapshot: &'a str,
    },
    PutBlock {
        name: &'a str,
        id: &'a str,
        state: String,
    },
    DropBlocks {
        name: &'a str,
    },
}

/// A row read back.
#[derive(Debug)]
pub(crate) enum Row {
    Service { account: String, state: String },
    Container { account: String, name: String, state: String },
    Blob { account: String, container: String, name: String, snapshot: String, state: String },
    Block { account: String, container: String, name: String, id: String, state: String },
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Rows {
    connection: Mutex<Connection>,
    file: PathBuf,
}

impl Rows {
    /// Opens or makes the file in `folder`.
    ///
    /// # Errors
    /// [`Kind::Local`], naming the folder.
    pub(crate) fn open(folder: &Path) -> Result<Rows> {
        let file = folder.join("metadata.sqlite");
        let failed = |e: rusqlite::Error| {
            if matches!(e.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
                return Error::new(Kind::Local, format!("the store in {} is in use by another process", folder.display()))
                    .with_advice("let the other one end, or name another folder")
                    .with_source(e);
            }
            Error::new(Kind::Local, format!("cannot open {}", file.display())).with_source(e)
        };
        let connection = Connection::open(&file).map_err(failed)?;
        connection.busy_timeout(std::time::Duration::ZERO).map_err(failed)?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        // The lock is taken by the first write and then kept.
        connection.execute_batch("BEGIN EXCLUSIVE; COMMIT").map_err(failed)?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
        match version {
            0 => connection.execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {SCHEMA}; COMMIT")).map_err(failed)?,
            SCHEMA => {}
            other => {
                return Err(Error::new(Kind::Local, format!("the store in {} has format {other}", folder.display()))
                    .with_advice(format!("this program reads format {SCHEMA}: use the one that wrote it, or another folder")));
            }
        }
        connection.set_prepared_statement_cache_capacity(16);
        Ok(Rows { connection: Mutex::new(connection), file })
    }

    /// Applies changes to one container (or to the account, where `container` plays no part), all or none.
    ///
    /// # Errors
    /// SQLite's: disk full, I/O.
    pub(crate) fn apply(&self, account: &str, container: &str, changes: &[Change<'_>]) -> rusqlite::Result<()> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let [change] = changes
            && !matches!(change, Change::DropContainer)
        {
            return one(&connection, account, container, change);
        }
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let done = changes
            .iter()
            .try_for_each(|change| one(&connection, account, container, change))
            .and_then(|()| connection.prepare_cached("COMMIT")?.execute([]).map(|_| ()));
        if done.is_err() {
            // Fails only if the transaction is over already.
            let _ = connection.execute_batch("ROLLBACK");
        }
        done
    }

    /// Hands every row to `see`: containers before their blobs.
    ///
    /// # Errors
    /// [`Kind::Local`]: SQLite's, or what `see` found wrong.
    pub(crate) fn load(&self, see: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        let failed = |e: rusqlite::Error| Error::new(Kind::Local, format!("cannot read {}", self.file.display())).with_source(e);
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        type Read = fn(&rusqlite::Row<'_>) -> rusqlite::Result<Row>;
        let queries: [(&str, Read); 4] = [
            ("SELECT account, state FROM service", |r| Ok(Row::Service { account: r.get(0)?, state: r.get(1)? })),
            ("SELECT account, name, state FROM containers", |r| {
                Ok(Row::Container { account: r.get(0)?, name: r.get(1)?, state: r.get(2)? })
            }),
            ("SELECT account, container, name, snapshot, state FROM blobs", |r| {
                let (account, container) = (r.get(0)?, r.get(1)?);
                Ok(Row::Blob { account, container, name: r.get(2)?, snapshot: r.get(3)?, state: r.get(4)? })
            }),
            ("SELECT account, container, name, id, state FROM blocks", |r| {
                let (account, container) = (r.get(0)?, r.get(1)?);
                Ok(Row::Block { account, container, name: r.get(2)?, id: r.get(3)?, state: r.get(4)? })
            }),
        ];
        for (query, read) in queries {
            let mut statement = connection.prepare(query).map_err(failed)?;
            for row in statement.query_map([], read).map_err(failed)? {
                see(row.map_err(failed)?)?;
            }
        }
        Ok(())
    }
}

fn one(connection: &Connection, account: &str, container: &str, change: &Change<'_>) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| connection.prepare_cached(sql)?.execute(values).map(|_| ());
    match change {
        Change::PutService { state } => run("REPLACE INTO service VALUES (?1, ?2)", params![account, state]),
        Change::PutContainer { state } => run("REPLACE INTO containers VALUES (?1, ?2, ?3)", params![account, container, state]),
        Change::DropContainer => {
            run("DELETE FROM blocks WHERE account = ?1 AND container = ?2", params![account, container])?;
            run("DELETE FROM blobs WHERE account = ?1 AND container = ?2", params![account, container])?;
            run("DELETE FROM containers WHERE account = ?1 AND name = ?2", params![account, container])
        }
        Change::PutBlob { name, snapshot, state } => {
            run("REPLACE INTO blobs VALUES (?1, ?2, ?3, ?4, ?5)", params![account, container, name, snapshot, state])
        }
        Change::DropBlob { name, snapshot } => run(
            "DELETE FROM blobs WHERE account = ?1 AND container = ?2 AND name = ?3 AND snapshot = ?4",
            params![account, container, name, snapshot],
        ),
        Change::PutBlock { name, id, state } => {
            run("REPLACE INTO blocks VALUES (?1, ?2, ?3, ?4, ?5)", params![account, container, name, id, state])
        }
        Change::DropBlocks { name } => {
            run("DELETE FROM blocks WHERE account = ?1 AND container = ?2 AND name = ?3", params![account, container, name])
        }
    }
}
