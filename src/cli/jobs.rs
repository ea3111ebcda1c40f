//! `blobjet jobs`: what the journal knows. Lists jobs, shows one with its transfers, removes them; [`resume`](super::resume) goes
//! on with one.

use super::context::Context;
use super::exit::Exit;
use super::json::{Event, JobLine, TransferLine, rfc3339};
use super::kept::Kept;
use super::render::printable;
use super::resume;
use crate::error::{Error, Kind, Result};
use crate::transfer::journal::{Ended, Job, State, Store, Transfer};
use crate::units::ByteCount;
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use std::ops::ControlFlow;
use std::time::SystemTime;

const EXAMPLES: &str = "\
Examples:
  blobjet jobs list                                        the last 100 jobs
  blobjet jobs show 0b9d --with-status=Failed              what failed in one of them, and why
  blobjet jobs resume 0b9d                                 go on with it";

const LIST_EXAMPLES: &str = "\
Examples:
  blobjet jobs list
  blobjet jobs list --with-status=Interrupted              those whose process died";

const SHOW_EXAMPLES: &str = "\
Examples:
  blobjet jobs show 0b9d                                   the beginning of the id is enough
  blobjet jobs show 0b9d --with-status=Failed              with the transfers that failed, and why";

const REMOVE_EXAMPLES: &str = "\
Examples:
  blobjet jobs remove 0b9d                                 what was transferred stays where it is";

const CLEAN_EXAMPLES: &str = "\
Examples:
  blobjet jobs clean
  blobjet jobs clean --with-status=Completed               keep those that can be gone on with";

/// Arguments of `jobs`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do with jobs.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Verb {
    /// List jobs, the latest first
    #[command(after_long_help = LIST_EXAMPLES)]
    List {
        /// Only jobs of this status
        #[arg(long, value_enum, ignore_case = true, default_value_t = JobStatus::All, hide_default_value = true, value_name = "STATUS")]
        with_status: JobStatus,
    },
    /// Show a job, and with --with-status its transfers
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show {
        /// Job id, or how it begins
        id: String,
        /// List the transfers of this status
        #[arg(long, value_enum, ignore_case = true, value_name = "STATUS")]
        with_status: Option<TransferStatus>,
    },
    /// Go on with a job: send what is missing, and what failed again
    Resume(resume::ResumeArgs),
    /// Remove a job from the journal
    #[command(visible_alias = "rm", after_long_help = REMOVE_EXAMPLES)]
    Remove {
        /// Job id, or how it begins
        id: String,
    },
    /// Remove all jobs from the journal but those that are running
    #[command(after_long_help = CLEAN_EXAMPLES)]
    Clean {
        /// Only jobs of this status
        #[arg(long, value_enum, ignore_case = true, default_value_t = JobStatus::All, hide_default_value = true, value_name = "STATUS")]
        with_status: JobStatus,
    },
}

/// `--with-status` of jobs: AzCopy's words, and `Interrupted` for a job whose process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum JobStatus {
    All,
    #[value(alias = "Started")]
    InProgress,
    Interrupted,
    Cancelled,
    #[value(alias = "Done", alias = "Success")]
    Completed,
    #[value(alias = "CompletedWithFailures")]
    CompletedWithErrors,
    #[value(alias = "Skipped")]
    CompletedWithSkipped,
    #[value(alias = "CompletedWithFailuresAndSkipped")]
    CompletedWithErrorsAndSkipped,
    Failed,
}

/// `--with-status` of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum TransferStatus {
    All,
    /// Those under way: none is listed, because a transfer is written down when it ends.
    #[value(alias = "InProgress")]
    Started,
    #[value(alias = "Done", alias = "Completed")]
    Success,
    Failed,
    Skipped,
}

impl JobStatus {
    fn takes(self, job: &Job) -> bool {
        self == JobStatus::All || self.to_possible_value().is_some_and(|value| value.get_name() == status(job))
    }
}

/// Transfers printed at a time.
const LINES: usize = 1000;

/// Runs the verb.
///
/// # Errors
/// `SourceNotFound` for a job that is not there, `Conflict` for one that is running, those of the journal and of a resumed job.
pub(crate) async fn run(verb: &Verb, context: &Context) -> Result<Exit> {
    match verb {
        Verb::List { with_status } => list(*with_status, context),
        Verb::Show { id, with_status } => show(id, *with_status, context),
        Verb::Resume(args) => resume::run(args, context).await,
        Verb::Remove { id } => {
            let mut store = journal(id, context)?;
            let job = store.find(id)?;
            remove(&mut store, &job, context)?;
            store.shrink();
            Ok(Exit::Done)
        }
        Verb::Clean { with_status } => clean(*with_status, context),
    }
}

/// The journal, in which job `id` is looked for.
///
/// # Errors
/// `SourceNotFound` if there is none.
pub(crate) fn journal(id: &str, context: &Context) -> Result<Store> {
    open(context)?.ok_or_else(|| {
        Error::new(Kind::SourceNotFound, format!("there is no job {id}: the journal is empty"))
            .with_advice("jobs are written down in the state folder: BLOBJET_STATE, or ~/.local/state/blobjet")
    })
}

fn open(context: &Context) -> Result<Option<Store>> {
    context.state.as_deref().map_or(Ok(None), Store::open)
}

fn list(with_status: JobStatus, context: &Context) -> Result<Exit> {
    let jobs = open(context)?.map_or(Ok(Vec::new()), |store| store.jobs())?;
    let jobs: Vec<Job> = jobs.into_iter().filter(|job| with_status.takes(job)).collect();
    if jobs.is_empty() {
        context.out.news(|| "no jobs".to_owned(), || Event::Warning { message: "no jobs".to_owned() });
        return Ok(Exit::Done);
    }
    let row = |job: &Job| {
        let counts = format!("{}/{}/{}", job.done, job.failed, job.skipped);
        let places = match job.destination.as_str() {
            "" => format!("{} {}", command(job), printable(&job.source)),
            destination => format!("{} -> {}", printable(&job.source), printable(destination)),
        };
        format!("{:36}  {:19}  {:29}  {counts:>21}  {places}", job.id, people(job.started), status(job))
    };
    if !context.out.is_json() {
        let head = format!(
            "{:36}  {:19}  {:29}  {:>21}  SOURCE -> DESTINATION",
            "JOB", "STARTED (UTC)", "STATUS", "DONE/FAILED/SKIPPED"
        );
        context.out.data(|| head, || Event::Warning { message: String::new() });
    }
    context.out.data_lines(jobs.iter().map(|job| (row(job), Event::Job(Box::new(line(job))))));
    Ok(Exit::Done)
}

fn show(id: &str, with_status: Option<TransferStatus>, context: &Context) -> Result<Exit> {
    let store = journal(id, context)?;
    let job = store.find(id)?;
    context.out.data(|| text(&job), || Event::Job(Box::new(line(&job))));
    let ended = match with_status {
        None => return Ok(Exit::Done),
        Some(TransferStatus::Started) => {
            context.out.warn("transfers are written down when they end: those under way cannot be listed");
            return Ok(Exit::Done);
        }
        Some(TransferStatus::All) => None,
        Some(TransferStatus::Success) => Some(Ended::Done),
        Some(TransferStatus::Failed) => Some(Ended::Failed),
        Some(TransferStatus::Skipped) => Some(Ended::Skipped),
    };
    let mut lines = Vec::with_capacity(LINES);
    store.transfers(&job, ended, &mut |transfer| {
        lines.push(transfer_line(&job, transfer));
        if lines.len() == LINES {
            context.out.data_lines(lines.drain(..));
        }
        ControlFlow::Continue(())
    })?;
    context.out.data_lines(lines.into_iter());
    Ok(Exit::Done)
}

fn remove(store: &mut Store, job: &Job, context: &Context) -> Result<()> {
    store.remove(job)?;
    context.out.data(|| format!("removed job {}", job.id), || Event::JobRemoved { job_id: job.id.clone() });
    Ok(())
}

fn clean(with_status: JobStatus, context: &Context) -> Result<Exit> {
    let Some(mut store) = open(context)? else { return Ok(Exit::Done) };
    for job in store.jobs()?.iter().filter(|job| with_status.takes(job)) {
        if job.state == State::InProgress {
            context.out.warn(&format!("job {} is running and stays", job.id));
        } else {
            remove(&mut store, job, context)?;
        }
    }
    store.shrink();
    Ok(Exit::Done)
}

/// A job's status in a word.
pub(crate) fn status(job: &Job) -> &str {
    match &job.state {
        State::InProgress => "InProgress",
        State::Interrupted => "Interrupted",
        State::Ended(status) => status,
    }
}

/// The command that started it, in a word.
fn command(job: &Job) -> String {
    Kept::of_json(&job.command).unwrap_or_default().command().to_owned()
}

fn text(job: &Job) -> String {
    let mut out = format!("Job {}\nCommand: {}\nSource: {}\n", job.id, command(job), printable(&job.source));
    if !job.destination.is_empty() {
        out.push_str(&format!("Destination: {}\n", printable(&job.destination)));
    }
    out.push_str(&format!("Started (UTC): {}\n", people(job.started)));
    if let Some(ended) = job.ended {
        out.push_str(&format!("Ended (UTC): {}\n", people(ended)));
    }
    let total =
        job.listed.map_or_else(|| "not known: the listing or the transfer did not end".to_owned(), |total| total.to_string());
    out.push_str(&format!(
        "Runs: {}\nTotal Number of Transfers: {total}\nNumber of Transfers Completed: {}\nNumber of Transfers Failed: {}\n\
         Number of Transfers Skipped: {}\nTotal Number of Bytes Transferred: {} ({})\nJob Status: {}",
        job.runs,
        job.done,
        job.failed,
        job.skipped,
        job.bytes,
        ByteCount(job.bytes),
        status(job)
    ));
    if let Some(error) = &job.error {
        out.push_str(&format!("\nError: {}", printable(error)));
    }
    out
}

fn line(job: &Job) -> JobLine {
    JobLine {
        job_id: job.id.clone(),
        command: command(job),
        status: status(job).to_owned(),
        source: job.source.clone(),
        destination: job.destination.clone(),
        started: moment(job.started),
        ended: job.ended.map(moment),
        runs: job.runs,
        total: job.listed,
        done: job.done,
        failed: job.failed,
        skipped: job.skipped,
        bytes_done: job.bytes,
        error: job.error.clone(),
    }
}

fn transfer_line(job: &Job, transfer: Transfer) -> (String, Event) {
    let status = match transfer.ended {
        Ended::Done => "Success",
        Ended::Failed => "Failed",
        Ended::Skipped => "Skipped",
    };
    let mut text = format!("{status}  {}", printable(&transfer.source));
    if let Some(target) = &transfer.target {
        text.push_str(&format!(" -> {}", printable(target)));
    }
    if let Some(bytes) = transfer.bytes {
        text.push_str(&format!("  {}", ByteCount(bytes)));
    }
    if transfer.retries > 0 {
        text.push_str(&format!("  {} retries", transfer.retries));
    }
    if let Some(reason) = &transfer.reason {
        text.push_str(&format!("  {}", printable(reason)));
    }
    let event = TransferLine {
        job_id: job.id.clone(),
        source: transfer.source,
        destination: transfer.target,
        status,
        reason: transfer.reason,
        bytes: transfer.bytes,
        blocks: transfer.blocks,
        retries: transfer.retries,
        queued: moment(transfer.queued),
        started: transfer.started.map(moment),
        finished: moment(transfer.finished),
        source_modified: transfer.modified.map(moment),
    };
    (text, Event::Transfer(Box::new(event)))
}

/// As JSON has it; a time that no calendar has (a file can carry one) is told as 1970.
fn moment(time: SystemTime) -> String {
    rfc3339(Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// As people read it.
fn people(time: SystemTime) -> String {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
