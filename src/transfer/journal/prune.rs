//! Keeps the file in bounds: the oldest jobs go, a piece at a time, so that neither a running job nor another process waits long.
//! The space they leave is used again.

use super::book::keys;
use super::lease::Lease;
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::Path;
use std::time::Duration;

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Jobs.
    pub jobs: usize,
    /// How long.
    pub age: Duration,
    /// Size of the file in bytes: above half of it the oldest jobs go, and beyond it nothing is written.
    pub bytes: u64,
}

impl Default for Keep {
    /// 100 jobs, 90 days, 2 GiB (some 20 million transfers).
    fn default() -> Self {
        Keep { jobs: 100, age: Duration::from_secs(90 * 24 * 3600), bytes: 2 << 30 }
    }
}

/// Removes up to `rows` transfers of one job that is not kept, and the job with the last of them. Returns whether there was
/// anything to remove. `own` is the job of this process.
pub(super) fn step(
    connection: &mut Connection,
    folder: &Path,
    keep: &Keep,
    own: i64,
    now: i64,
    rows: u32,
) -> rusqlite::Result<bool> {
    let Some((job, id)) = victim(connection, keep, own, now)? else { return Ok(false) };
    // Nobody else works on it, or it stays: another step will find it again.
    let Ok(Some(_lease)) = Lease::take(folder, &id) else { return Ok(false) };
    remove_some(connection, job, rows)?;
    Ok(true)
}

/// Removes up to `rows` transfers of a job, and the job if no more are left. Returns whether it is gone.
pub(super) fn remove_some(connection: &mut Connection, job: i64, rows: u32) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (first, last) = keys(job);
    let next = || -> rusqlite::Result<Option<i64>> {
        transaction.query_row("SELECT min(n) FROM transfer WHERE n BETWEEN ?1 AND ?2", (first, last), |row| row.get(0))
    };
    if let Some(from) = next()? {
        let to = from.saturating_add(i64::from(rows)).min(last);
        transaction.execute("DELETE FROM transfer WHERE n BETWEEN ?1 AND ?2", (from, to))?;
    }
    let gone = next()?.is_none();
    if gone {
        transaction.execute("DELETE FROM reason WHERE job = ?1", [job])?;
        transaction.execute("DELETE FROM job WHERE n = ?1", [job])?;
    }
    transaction.commit()?;
    Ok(gone)
}

/// The oldest job, if it is one too many, too old, or the file is too large.
fn victim(connection: &Connection, keep: &Keep, own: i64, now: i64) -> rusqlite::Result<Option<(i64, String)>> {
    let count: i64 = connection.prepare_cached("SELECT count(*) FROM job")?.query_row([], |row| row.get(0))?;
    let pragma = |name| connection.pragma_query_value::<i64, _>(None, name, |row| row.get(0));
    let used = (pragma("page_count")? - pragma("freelist_count")?).saturating_mul(pragma("page_size")?);
    let used = u64::try_from(used).unwrap_or(0);
    let too_many = usize::try_from(count).unwrap_or(usize::MAX) > keep.jobs || used > keep.bytes / 2;
    let oldest = now.saturating_sub(i64::try_from(keep.age.as_micros()).unwrap_or(i64::MAX));
    let mut statement = connection.prepare_cached(
        "SELECT n, id FROM job WHERE n <> ?1 AND (?2 OR started < ?3) ORDER BY coalesce(ended, started), n LIMIT 1",
    )?;
    let mut found = statement.query_map(params![own, too_many, oldest], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.next().transpose()
}
