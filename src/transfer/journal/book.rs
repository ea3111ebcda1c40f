//! One job's pages in the file: its row, and a row for each of its transfers, written a batch at a time in one transaction.
//!
//! Whatever moment the process dies at, the job's counters and its transfers tell the same: they are written together.

use super::batch::{Batch, Ended, Entry, now, since};
use super::lease::Lease;
use super::schema;
use super::writer::{Ending, NewJob};
use crate::error::Result;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Causes kept apart; any further one is written as [`OTHER`].
const REASONS: usize = 1000;
const OTHER: &str = "another cause";

/// Rows put in by one statement: most of what a row alone costs is beginning and ending its statement.
const ROWS: usize = 32;

/// Bits of a transfer's key below its job's number.
pub(super) const BITS: u32 = 32;

/// See the module's text.
pub(super) struct Book {
    pub(super) connection: Connection,
    file: PathBuf,
    pub(super) job: i64,
    /// When the job began first; moments are written as differences to it.
    started: i64,
    next: i64,
    roots: Option<Roots>,
    reasons: HashMap<String, i64>,
    /// Objects that earlier runs had finished.
    earlier: u64,
}

/// What all names begin with.
struct Roots {
    source: String,
    target: String,
}

impl Book {
    /// Enters a new job. The second value is the last job with the same places, if it was not finished.
    pub(super) fn of_new(connection: Connection, folder: &Path, new: &NewJob) -> Result<(Book, Option<String>)> {
        let file = schema::file(folder);
        let failed = schema::failed(&file);
        let started = super::time::micros(new.started);
        let before: Option<(String, bool, Option<String>)> = connection
            .query_row(
                "SELECT id, ended IS NULL, status FROM job WHERE source = ?1 AND destination = ?2 ORDER BY n DESC LIMIT 1",
                params![new.source, new.destination],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()
            .map_err(&failed)?;
        let unfinished = before.and_then(|(id, never_ended, status)| {
            let died = never_ended && !Lease::is_held(folder, &id);
            (died || status.as_deref() == Some(super::store::CANCELLED)).then_some(id)
        });
        connection
            .execute(
                "INSERT INTO job (id, source, destination, command, started) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![new.id, new.source, new.destination, new.command, started],
            )
            .map_err(&failed)?;
        let job = connection.last_insert_rowid();
        let book = Book { job, started, next: 0, roots: None, reasons: HashMap::new(), earlier: 0, file, connection };
        Ok((book, unfinished))
    }

    /// Goes on with a job: its row says again that it runs.
    pub(super) fn of_old(mut connection: Connection, folder: &Path, job: i64) -> Result<Book> {
        let file = schema::file(folder);
        let failed = schema::failed(&file);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let read = || -> rusqlite::Result<_> {
            transaction.execute(
                "UPDATE job SET ended = NULL, status = NULL, error = NULL, listed = NULL, failed = 0, skipped = 0, runs = runs + 1 \
                 WHERE n = ?1",
                [job],
            )?;
            let (started, roots) =
                transaction.query_row("SELECT started, source_root, target_root FROM job WHERE n = ?1", [job], |row| {
                    let roots = (row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?);
                    Ok((row.get(0)?, roots))
                })?;
            let range = keys(job);
            let last: Option<i64> =
                transaction.query_row("SELECT max(n) FROM transfer WHERE n BETWEEN ?1 AND ?2", range, |row| row.get(0))?;
            let mut reasons = HashMap::new();
            let mut statement = transaction.prepare("SELECT text, n FROM reason WHERE job = ?1")?;
            for row in statement.query_map([job], |row| Ok((row.get(0)?, row.get(1)?)))? {
                let (text, n) = row?;
                reasons.insert(text, n);
            }
            Ok((started, roots, last.map_or(0, |last| last - range.0 + 1), reasons))
        };
        let (started, roots, next, reasons) = read().map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        let roots = match roots {
            (Some(source), Some(target)) => Some(Roots { source, target }),
            _ => None,
        };
        Ok(Book { job, started, next, roots, reasons, earlier: 0, file, connection })
    }

    /// Writes what has come, and the end of the job if it has come too. All of it or nothing.
    pub(super) fn write(&mut self, batch: &Batch, ending: Option<&Ending>) -> Result<()> {
        self.earlier += batch.earlier;
        let written = self.transaction(batch, ending);
        if written.is_err() {
            // Fails only if the transaction is over already.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        written.map_err(schema::failed(&self.file))
    }

    fn transaction(&mut self, batch: &Batch, ending: Option<&Ending>) -> rusqlite::Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        if !batch.is_empty() {
            self.find_roots(batch)?;
            self.insert(batch)?;
        }
        if let Some(ending) = ending {
            self.end(ending)?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn insert(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        let (mut counts, mut bytes) = ([0u32; 3], 0u64);
        let mut entries = batch.entries();
        for (rows, times) in [(ROWS, batch.len() / ROWS), (1, batch.len() % ROWS)] {
            if times == 0 {
                continue;
            }
            let mut insert = self.connection.prepare_cached(&insertion(rows))?;
            for _ in 0..times {
                let mut column = 0;
                for entry in entries.by_ref().take(rows) {
                    let record = entry.record;
                    let (form, source, target) = shortened(self.roots.as_ref(), &entry);
                    let reason = match entry.reason {
                        "" => None,
                        text => Some(number(&self.connection, &mut self.reasons, self.job, text)?),
                    };
                    let begun = record.started.unwrap_or(record.queued);
                    let row = params![
                        (self.job << BITS) + self.next,
                        form,
                        source,
                        target,
                        record.ended.code(),
                        reason,
                        record.queued.saturating_sub(self.started),
                        record.started.map(|started| since(record.queued, started)),
                        since(begun, record.finished),
                        record.modified,
                        record.bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
                        record.blocks,
                        record.retries,
                    ];
                    for value in row {
                        column += 1;
                        insert.raw_bind_parameter(column, value)?;
                    }
                    self.next += 1;
                    let count = match record.ended {
                        Ended::Done => {
                            bytes += record.bytes.unwrap_or(0);
                            0
                        }
                        Ended::Failed => 1,
                        Ended::Skipped => 2,
                    };
                    counts[count] += 1;
                }
                insert.raw_execute()?;
            }
        }
        self.connection
            .prepare_cached(
                "UPDATE job SET done = done + ?2, failed = failed + ?3, skipped = skipped + ?4, bytes = bytes + ?5 WHERE n = ?1",
            )?
            .execute(params![self.job, counts[0], counts[1], counts[2], i64::try_from(bytes).unwrap_or(i64::MAX)])?;
        Ok(())
    }

    fn end(&self, ending: &Ending) -> rusqlite::Result<()> {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let counts = &ending.counts;
        self.connection
            .prepare_cached(
                "UPDATE job SET ended = ?2, status = ?3, error = ?4, listed = ?5, done = ?6, failed = ?7, skipped = ?8 WHERE n = ?1",
            )?
            .execute(params![
                self.job,
                now(),
                ending.status,
                ending.error,
                count(counts.listed),
                count(counts.done + self.earlier),
                count(counts.failed),
                count(counts.skipped.saturating_sub(self.earlier)),
            ])?;
        Ok(())
    }

    /// Learns from the first object that has a name on both sides what all names begin with.
    fn find_roots(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        if self.roots.is_some() {
            return Ok(());
        }
        let found = batch.entries().find_map(|entry| {
            let shared = shared_tail(entry.source, entry.target?)?;
            Some((entry.source.strip_suffix(shared)?, entry.target?.strip_suffix(shared)?))
        });
        if let Some((source, target)) = found {
            let mut update = self.connection.prepare_cached("UPDATE job SET source_root = ?2, target_root = ?3 WHERE n = ?1")?;
            update.execute(params![self.job, source, target])?;
            self.roots = Some(Roots { source: source.to_owned(), target: target.to_owned() });
        }
        Ok(())
    }
}

/// Keys of a job's transfers, first and last.
pub(super) fn keys(job: i64) -> (i64, i64) {
    (job << BITS, ((job + 1) << BITS) - 1)
}

/// The statement that puts so many transfers in. What it cannot do undoes the whole transaction, as [`Book::write`] would, so that
/// SQLite need not keep the pages as they were before each statement.
fn insertion(rows: usize) -> String {
    const ROW: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    format!(
        "INSERT OR ROLLBACK INTO transfer \
         (n, form, source, target, outcome, reason, queued, started, finished, modified, bytes, blocks, retries) VALUES {}",
        vec![ROW; rows].join(", ")
    )
}

/// The number of a cause, entered if it is new.
fn number(connection: &Connection, reasons: &mut HashMap<String, i64>, job: i64, text: &str) -> rusqlite::Result<i64> {
    if let Some(n) = reasons.get(text) {
        return Ok(*n);
    }
    if reasons.len() >= REASONS && text != OTHER {
        return number(connection, reasons, job, OTHER);
    }
    let n = i64::try_from(reasons.len()).unwrap_or(i64::MAX);
    connection.prepare_cached("INSERT INTO reason (job, n, text) VALUES (?1, ?2, ?3)")?.execute(params![job, n, text])?;
    reasons.insert(text.to_owned(), n);
    Ok(n)
}

/// A row's `form`, `source` and `target`.
fn shortened<'a>(roots: Option<&Roots>, entry: &Entry<'a>) -> (i64, &'a str, Option<&'a str>) {
    let Some((roots, source)) = roots.and_then(|roots| Some((roots, entry.source.strip_prefix(&roots.source)?))) else {
        return (0, entry.source, entry.target);
    };
    match entry.target {
        Some(target) if target.strip_prefix(&roots.target) == Some(source) => (1, source, None),
        other => (2, source, other),
    }
}

/// The longest path that both end in, whole names only.
fn shared_tail<'a>(source: &'a str, target: &str) -> Option<&'a str> {
    let alike = source.bytes().rev().zip(target.bytes().rev()).take_while(|(a, b)| a == b).count();
    let begins_a_name = |text: &str, at: usize| at == 0 || text.as_bytes()[at - 1] == b'/';
    (1..=alike)
        .rev()
        .find(|len| begins_a_name(source, source.len() - len) && begins_a_name(target, target.len() - len))
        .map(|len| &source[source.len() - len..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_that_both_end_in() {
        for (source, target, shared) in [
            ("./d/x/f", "d/x/f", Some("d/x/f")),
            ("/home/u/d/x/f", "p/x/f", Some("x/f")),
            ("/home/ux/f", "x/f", Some("f")),
            ("f", "f", Some("f")),
            ("dir/f.bin", "new", None),
            ("xf", "f", None),
            ("/é/ä", "ä", Some("ä")),
            ("-", "", None),
        ] {
            assert_eq!(shared_tail(source, target), shared, "{source} {target}");
        }
    }
}
