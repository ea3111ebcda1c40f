//! The journal as it is looked at: jobs, their transfers, what a resume needs, and removal.

use super::batch::Ended;
use super::book::keys;
use super::finished::Finished;
use super::lease::Lease;
use super::prune::remove_some;
use super::schema;
use super::time::{of_micros, of_nanos};
use crate::error::{Error, Kind, Result};
use rusqlite::{Connection, Row, params};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Status of a job that was told to stop.
pub(super) const CANCELLED: &str = "Cancelled";

/// Transfers removed in one transaction.
const AT_A_TIME: u32 = 50_000;

/// The file, open.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    folder: PathBuf,
    file: PathBuf,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Its process lives.
    InProgress,
    /// Its process died before the job's end.
    Interrupted,
    /// It ended, as its status says.
    Ended(String),
}

/// One job.
#[derive(Debug, Clone)]
pub struct Job {
    n: i64,
    /// Its id.
    pub id: String,
    /// Source and destination as they are shown.
    pub source: String,
    /// See `source`.
    pub destination: String,
    /// What whoever started it left to run it again.
    pub command: String,
    /// When it started first.
    pub started: SystemTime,
    /// When it ended last.
    pub ended: Option<SystemTime>,
    /// How it stands.
    pub state: State,
    /// The error that ended it.
    pub error: Option<String>,
    /// How often it was run.
    pub runs: u64,
    /// Objects found; known once it has ended, and then `done + failed + skipped`.
    pub listed: Option<u64>,
    /// Objects at their destination, whichever run brought them there.
    pub done: u64,
    /// Objects that failed in the last run.
    pub failed: u64,
    /// Objects left out in the last run.
    pub skipped: u64,
    /// Bytes of the objects that are done.
    pub bytes: u64,
}

/// One object's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The object at its source.
    pub source: String,
    /// Its name at the destination, if it got one.
    pub target: Option<String>,
    /// How it ended.
    pub ended: Ended,
    /// Why, where it is not done.
    pub reason: Option<String>,
    /// When it was found.
    pub queued: SystemTime,
    /// When work on it began.
    pub started: Option<SystemTime>,
    /// When it ended.
    pub finished: SystemTime,
    /// Last change of the source when it was opened.
    pub modified: Option<SystemTime>,
    /// Its length.
    pub bytes: Option<u64>,
    /// Blocks it was cut into; 0 for one request.
    pub blocks: u32,
    /// Requests sent again for it.
    pub retries: u32,
}

/// A job taken up again: nobody else can while this lives.
#[derive(Debug)]
pub struct Resumed {
    pub(super) job: i64,
    pub(super) lease: Lease,
    /// Its id, which it keeps.
    pub id: String,
    /// What need not be sent again.
    pub finished: Finished,
}

impl Store {
    /// Opens the journal in a folder; `None` if there is none.
    ///
    /// # Errors
    /// `Local` if it cannot be opened, `Unsupported` if a newer program made it.
    pub fn open(folder: &Path) -> Result<Option<Store>> {
        let connection = schema::open_existing(folder)?;
        Ok(connection.map(|connection| Store { connection, folder: folder.to_owned(), file: schema::file(folder) }))
    }

    /// All jobs, the latest first.
    ///
    /// # Errors
    /// `Local`.
    pub fn jobs(&self) -> Result<Vec<Job>> {
        self.select("1 ORDER BY n DESC", &[])
    }

    /// The job whose id begins so.
    ///
    /// # Errors
    /// `SourceNotFound` if there is none, `Usage` if there are several, `Local`.
    pub fn find(&self, prefix: &str) -> Result<Job> {
        let wanted = prefix.to_ascii_lowercase();
        let mut found = self.select("substr(id, 1, length(?1)) = ?1 ORDER BY n DESC LIMIT 2", &[&wanted])?;
        match (found.len(), wanted.is_empty()) {
            (1, false) => Ok(found.remove(0)),
            (2, false) => Err(Error::new(Kind::Usage, format!("several jobs have an id that begins with {prefix}"))
                .with_advice("give more of it; 'blobjet jobs list' shows them")),
            _ => Err(Error::new(Kind::SourceNotFound, format!("there is no job {prefix}"))
                .with_advice("'blobjet jobs list' shows those there are")),
        }
    }

    fn select(&self, condition: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Job>> {
        let sql = format!(
            "SELECT n, id, source, destination, command, started, ended, status, error, runs, listed, done, failed, skipped, bytes \
             FROM job WHERE {condition}"
        );
        let read = || -> rusqlite::Result<Vec<Job>> {
            let mut statement = self.connection.prepare(&sql)?;
            statement.query_map(values, |row| self.job(row))?.collect()
        };
        read().map_err(schema::failed(&self.file))
    }

    fn job(&self, row: &Row<'_>) -> rusqlite::Result<Job> {
        let id: String = row.get(1)?;
        let ended: Option<i64> = row.get(6)?;
        let state = match ended {
            Some(_) => State::Ended(row.get::<_, Option<String>>(7)?.unwrap_or_default()),
            None if Lease::is_held(&self.folder, &id) => State::InProgress,
            None => State::Interrupted,
        };
        Ok(Job {
            n: row.get(0)?,
            id,
            source: row.get(2)?,
            destination: row.get(3)?,
            command: row.get(4)?,
            started: of_micros(row.get(5)?),
            ended: ended.map(of_micros),
            state,
            error: row.get(8)?,
            runs: count(row.get(9)?),
            listed: row.get::<_, Option<i64>>(10)?.map(count),
            done: count(row.get(11)?),
            failed: count(row.get(12)?),
            skipped: count(row.get(13)?),
            bytes: count(row.get(14)?),
        })
    }

    /// Hands over a job's transfers in the order of their ends; those that ended so, or all. Stops when told to.
    ///
    /// # Errors
    /// `Local`.
    pub fn transfers(&self, job: &Job, ended: Option<Ended>, see: &mut dyn FnMut(Transfer) -> ControlFlow<()>) -> Result<()> {
        let condition = match ended {
            // Told apart in words that the planner can see the index in.
            Some(Ended::Failed) => "t.outcome = 1 AND t.outcome <> 0",
            Some(Ended::Skipped) => "t.outcome = 2 AND t.outcome <> 0",
            Some(Ended::Done) => "t.outcome = 0",
            None => "1",
        };
        let sql = format!(
            "SELECT t.form, t.source, t.target, t.outcome, r.text, t.queued, t.started, t.finished, t.modified, t.bytes, t.blocks, \
             t.retries FROM transfer t LEFT JOIN reason r ON r.job = ?3 AND r.n = t.reason \
             WHERE t.n BETWEEN ?1 AND ?2 AND {condition} ORDER BY t.n"
        );
        let mut read = || -> rusqlite::Result<()> {
            let roots = self.roots(job)?;
            let (first, last) = keys(job.n);
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query(params![first, last, job.n])?;
            while let Some(row) = rows.next()? {
                if see(transfer(row, &roots, job.started)?).is_break() {
                    break;
                }
            }
            Ok(())
        };
        read().map_err(schema::failed(&self.file))
    }

    fn roots(&self, job: &Job) -> rusqlite::Result<(String, String)> {
        let sql = "SELECT coalesce(source_root, ''), coalesce(target_root, '') FROM job WHERE n = ?1";
        self.connection.query_row(sql, [job.n], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Takes a job up again: what it finished is read, and the records of what it did not are dropped, because those objects
    /// will get new ones.
    ///
    /// # Errors
    /// `Local`.
    pub fn resume(&self, job: &Job, lease: Lease) -> Result<Resumed> {
        let mut finished = Finished::default();
        self.transfers(job, Some(Ended::Done), &mut |transfer| {
            // What is changed where it is has no other name.
            let target = transfer.target.as_ref().unwrap_or_else(|| {
                finished.add_folders(&transfer.source);
                &transfer.source
            });
            if let (Some(len), Some(modified)) = (transfer.bytes, transfer.modified) {
                finished.add(
                    (&transfer.source, target),
                    len,
                    super::time::nanos(modified),
                    super::time::micros(transfer.finished),
                );
            }
            ControlFlow::Continue(())
        })?;
        let not_found = format!("{:?}", Kind::SourceNotFound);
        self.transfers(job, Some(Ended::Failed), &mut |transfer| {
            if transfer.reason.as_ref() == Some(&not_found) {
                finished.add_missed(&transfer.source);
            }
            ControlFlow::Continue(())
        })?;
        finished.sort();
        let sql = "DELETE FROM transfer WHERE outcome <> 0 AND n BETWEEN ?1 AND ?2";
        self.connection.execute(sql, keys(job.n)).map_err(schema::failed(&self.file))?;
        Ok(Resumed { job: job.n, lease, id: job.id.clone(), finished })
    }

    /// Removes a job and its records.
    ///
    /// # Errors
    /// `Conflict` if its process lives, `Local`.
    pub fn remove(&mut self, job: &Job) -> Result<()> {
        let _lease = self.lease(job, "remove")?;
        while !remove_some(&mut self.connection, job.n, AT_A_TIME).map_err(schema::failed(&self.file))? {}
        Ok(())
    }

    /// Gives the space of removed jobs back to the filesystem, where that is worth it and nobody else is at the file.
    pub fn shrink(&self) {
        let pragma = |name| self.connection.pragma_query_value::<i64, _>(None, name, |row| row.get(0)).unwrap_or(0);
        if pragma("freelist_count") > pragma("page_count") / 2 {
            // Not needed for anything: a file that stays large is used again.
            let _ = self.connection.execute_batch("VACUUM");
        }
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Keeps everybody else from the job, for doing `what` to it.
    ///
    /// # Errors
    /// `Conflict` if somebody is at it, `Local`.
    pub fn lease(&self, job: &Job, what: &str) -> Result<Lease> {
        let lease = Lease::take(&self.folder, &job.id);
        let lease = lease.map_err(|e| Error::new(Kind::Local, format!("cannot lock job {}", job.id)).with_source(e))?;
        lease.ok_or_else(|| {
            Error::new(Kind::Conflict, format!("cannot {what} job {}: it is still running", job.id))
                .with_advice("wait for its end, or stop it with Ctrl-C where it runs")
        })
    }
}

/// A count as the file has it; nothing writes negative ones.
fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn transfer(row: &Row<'_>, (source_root, target_root): &(String, String), job_started: SystemTime) -> rusqlite::Result<Transfer> {
    let form: i64 = row.get(0)?;
    let (source, target): (String, Option<String>) = (row.get(1)?, row.get(2)?);
    let target = if form == 1 { Some(format!("{target_root}{source}")) } else { target };
    let queued = super::time::micros(job_started).saturating_add(row.get(5)?);
    let started = row.get::<_, Option<i64>>(6)?.map(|after| queued.saturating_add(after));
    let finished = started.unwrap_or(queued).saturating_add(row.get(7)?);
    let code: i64 = row.get(3)?;
    Ok(Transfer {
        source: if form == 0 { source } else { format!("{source_root}{source}") },
        target,
        ended: Ended::of_code(code).ok_or(rusqlite::Error::IntegralValueOutOfRange(3, code))?,
        reason: row.get(4)?,
        queued: of_micros(queued),
        started: started.map(of_micros),
        finished: of_micros(finished),
        modified: row.get::<_, Option<i64>>(8)?.map(of_nanos),
        bytes: row.get::<_, Option<i64>>(9)?.map(count),
        blocks: row.get(10)?,
        retries: row.get(11)?,
    })
}
