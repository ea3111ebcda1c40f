//! What `--output-type json` prints: one typed object a line on stdout. The schema is `docs/json-output.md`; a test reads the
//! examples there against these types.

use super::doing::Doing;
use super::meter::Counts;
use super::render::Report;
use super::verdict::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

pub(crate) use super::json_lists::{Amount, BlobLine, CheckTotals, Compared, UsageTotals};

/// Version of the schema, in every line. It grows when a field changes its meaning or goes; new fields and types may come at
/// any time.
pub(crate) const SCHEMA: u32 = 1;

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    schema: u32,
    time: String,
    #[serde(flatten)]
    event: &'a Event,
}

/// What a line can be.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A job starts.
    Init { job_id: String, command: &'static str, version: &'static str, source: String, destination: String },
    /// Every two seconds.
    Progress(Progress),
    /// With `--dry-run`: one object and what it would take.
    Plan { source: String, destination: String, bytes: Option<u64>, requests: Option<u64>, block_size: Option<u64> },
    /// With `--dry-run` of a command that changes blobs where they are: one blob that it would change.
    PlanChange { command: &'static str, url: String, bytes: Option<u64> },
    /// With `--explain`: why a path would be taken or left out.
    Explained { path: String, taken: bool, why: String, destination: Option<String> },
    /// An object that failed.
    Failed { object: String, error: Report },
    /// An object left out on purpose.
    Skipped { object: String, reason: String },
    /// Something the user should know.
    Warning { message: String },
    /// What the program chose by itself.
    Note { message: String },
    /// The command failed, or was never begun.
    Error {
        #[serde(flatten)]
        error: Report,
        exit_code: u8,
    },
    /// A blob found by `list`.
    Blob(Box<BlobLine>),
    /// A folder that `list --depth` does not look into.
    Folder { name: String },
    /// A container found by `list`.
    Container { name: String, last_modified: Option<String> },
    /// The end of a listing.
    Totals { count: u64, bytes: u64 },
    /// A folder that `du` has added up.
    Usage {
        name: String,
        #[serde(flatten)]
        amount: Amount,
    },
    /// The end of `du`.
    UsageTotals(Box<UsageTotals>),
    /// A name that `check` has compared.
    Compared(Box<Compared>),
    /// The end of `check`.
    CheckTotals(Box<CheckTotals>),
    /// A container made.
    Made { url: String, existed: bool },
    /// What is known of a blob, a container or an account.
    Stat(Box<StatLine>),
    /// A hash of a file or blob, from `hash`.
    Hash {
        name: String,
        algorithm: &'static str,
        hash: String,
        bytes: u64,
        /// Whether it is what is stored with a blob, and nothing was read.
        stored: bool,
    },
    /// A block of a blob, from `stat --blocks`.
    Block { index: u64, id: String, bytes: u64, state: &'static str },
    /// A container removed.
    Removed { url: String, dry_run: bool },
    /// A job, from `jobs list` and `jobs show`.
    Job(Box<JobLine>),
    /// A transfer, from `jobs show --with-status`.
    Transfer(Box<TransferLine>),
    /// A job that is not in the journal any more.
    JobRemoved { job_id: String },
    /// A text asked for as a whole: a completion script, a manual page.
    Text { name: String, text: String },
    /// What a credential may do.
    Access(Box<super::access::Access>),
    /// What an error code means.
    Page {
        names: Vec<String>,
        statuses: Vec<u16>,
        meaning: String,
        causes: Vec<String>,
        steps: Vec<String>,
        /// Whether the request is sent again.
        retried: String,
    },
    /// A file written.
    Written { path: String },
    /// A URL with its SAS: the one place where a signature is printed, because it is asked for.
    Sas { url: String },
    /// The embedded service listens.
    Serving {
        url: String,
        account: String,
        connection_string: String,
        /// File of the certificate to trust.
        #[serde(skip_serializing_if = "Option::is_none")]
        certificate: Option<String>,
    },
    /// What the embedded service has had so far: it ends, or was asked.
    Served {
        requests: u64,
        operations: Vec<Operation>,
        /// TLS versions and ciphers that were agreed on.
        tls: Vec<String>,
    },
    /// The end of a job: always its last line.
    Summary(Box<Summary>),
}

/// What `serve` counted of one operation.
#[derive(Debug, Serialize)]
pub(crate) struct Operation {
    pub(crate) operation: String,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) body_bytes: u64,
}

/// Counts at one moment.
#[derive(Debug, Serialize)]
pub(crate) struct Progress {
    pub(crate) job_id: String,
    pub(crate) percent: f64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) pending: u64,
    pub(crate) skipped: u64,
    pub(crate) total: u64,
    pub(crate) scanning: bool,
    pub(crate) bytes_done: u64,
    /// Of `bytes_done`, those an earlier try had sent.
    pub(crate) bytes_resumed: u64,
    pub(crate) bytes_known: u64,
    pub(crate) throughput_mbps: f64,
    pub(crate) concurrency: usize,
}

impl Progress {
    /// The counts of a job, with its rate in Mb/s.
    pub(crate) fn new(job_id: &str, counts: &Counts, rate: f64) -> Progress {
        Progress {
            job_id: job_id.to_owned(),
            percent: (counts.percent() * 10.0).round() / 10.0,
            done: counts.done,
            failed: counts.failed,
            pending: counts.pending(),
            skipped: counts.skipped,
            total: counts.listed,
            scanning: counts.listing,
            bytes_done: counts.bytes_done,
            bytes_resumed: counts.bytes_resumed,
            bytes_known: counts.bytes_listed,
            throughput_mbps: (rate * 1e4).round() / 1e4,
            concurrency: counts.concurrency,
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    pub(crate) job_id: String,
    /// The command's name.
    pub(crate) command: &'static str,
    /// AzCopy's word for it, e.g. `CompletedWithErrors`.
    pub(crate) status: &'static str,
    pub(crate) exit_code: u8,
    pub(crate) dry_run: bool,
    pub(crate) elapsed_s: f64,
    /// Objects found.
    pub(crate) total: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// Found, and not begun or not finished when the job was stopped.
    pub(crate) pending: u64,
    pub(crate) bytes_done: u64,
    /// Of `bytes_done`, those an earlier try had sent, and the blocks they are in.
    pub(crate) bytes_resumed: u64,
    pub(crate) blocks_resumed: u64,
    /// Objects under whose name uncommitted blocks of another program were discarded.
    pub(crate) leftovers_cleared: u64,
    pub(crate) throughput_mbps: f64,
    /// Requests that might be in flight in the end.
    pub(crate) concurrency: usize,
    pub(crate) requests: u64,
    pub(crate) bytes_on_wire: u64,
    pub(crate) latency_p50_ms: Option<f64>,
    pub(crate) latency_p99_ms: Option<f64>,
    /// Retries by cause; causes that did not occur are left out.
    pub(crate) retries: BTreeMap<&'static str, u64>,
    /// Objects that failed because their source changed.
    pub(crate) source_changed: u64,
    /// How often an object was sent anew because its source had changed.
    pub(crate) restarts: u64,
    /// What filters left out: objects that were met, and folders that were not looked into.
    pub(crate) filtered_objects: u64,
    pub(crate) filtered_folders: u64,
    pub(crate) peak_memory_bytes: Option<u64>,
    pub(crate) anonymous_memory_bytes: Option<u64>,
    /// Failures grouped by cause.
    pub(crate) failures: Vec<Cause>,
    /// What was left out, grouped by reason.
    pub(crate) left_out: Vec<LeftOut>,
    /// What limited it, where the run was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<Verdict>,
    /// The report that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<String>,
    /// The command that goes on with it, where there is something left to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<String>,
    /// What the job did, for the words that people read.
    #[serde(skip)]
    pub(crate) doing: Doing,
}

/// Objects that failed for one reason.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cause {
    pub(crate) count: u64,
    /// The first of them.
    pub(crate) objects: Vec<String>,
    pub(crate) error: Report,
}

/// Objects left out for one reason.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) count: u64,
    pub(crate) reason: String,
    /// The first of them.
    pub(crate) objects: Vec<String>,
}

/// Everything that is known of a thing at the service.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct StatLine {
    /// `blob`, `uncommitted blob`, `container` or `account`.
    pub(crate) what: &'static str,
    pub(crate) url: String,
    /// By the names of the service's headers, in lower case.
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Absent where they could not be seen.
    pub(crate) tags: Option<BTreeMap<String, String>>,
    pub(crate) snapshots: Option<u64>,
    pub(crate) versions: Option<u64>,
    /// What the credential may not see.
    pub(crate) not_seen: Vec<String>,
}

/// A job in the journal.
#[derive(Debug, Serialize)]
pub(crate) struct JobLine {
    pub(crate) job_id: String,
    /// The command's name.
    pub(crate) command: String,
    pub(crate) status: String,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) started: String,
    pub(crate) ended: Option<String>,
    pub(crate) runs: u64,
    /// Objects found; known once it has ended.
    pub(crate) total: Option<u64>,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) bytes_done: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// A transfer in the journal.
#[derive(Debug, Serialize)]
pub(crate) struct TransferLine {
    pub(crate) job_id: String,
    pub(crate) source: String,
    pub(crate) destination: Option<String>,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) bytes: Option<u64>,
    pub(crate) blocks: u32,
    pub(crate) retries: u32,
    pub(crate) queued: String,
    pub(crate) started: Option<String>,
    pub(crate) finished: String,
    pub(crate) source_modified: Option<String>,
}

impl Event {
    /// The event as one line of JSON, without the line break.
    pub(crate) fn line(&self, time: jiff::Timestamp) -> String {
        let line = Line { schema: SCHEMA, time: rfc3339(time), event: self };
        // Serialising these types cannot fail: no map with other keys than strings, no fallible `Serialize`.
        serde_json::to_string(&line).unwrap_or_else(|e| format!("{{\"schema\":{SCHEMA},\"type\":\"error\",\"message\":\"{e}\"}}"))
    }
}

/// UTC with milliseconds.
pub(crate) fn rfc3339(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod examples;
