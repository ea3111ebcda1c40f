//! The end of a job: AzCopy's fields, then what else is worth knowing, then failures by cause and what was left out.

use super::doing::{Changing, Doing};
use super::json::{Cause, LeftOut, Summary};
use super::meter::{four_decimals, mbps};
use super::render::{Report, printable};
use super::verdict::Verdict;
use crate::error::{Error, Kind};
use crate::rest::stats::{RETRY_CAUSES, Stats};
use crate::transfer::journal::FINISHED_EARLIER;
use crate::transfer::progress::{NOT_STARTED, Progress, Snapshot};
use crate::units::ByteCount;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Names shown under one cause; JSON has a hundred.
const NAMES_SHOWN: usize = 5;
const NAMES_IN_JSON: usize = 100;

/// How the job ended, apart from its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It came to its end.
    Whole,
    /// It was stopped by a signal.
    Stopped,
    /// An error ended it that would have met every object alike.
    Failed,
}

/// AzCopy's word for the end of a job.
pub(crate) fn status(end: End, done: u64, failed: u64, skipped: u64) -> &'static str {
    match (end, done, failed, skipped) {
        (End::Stopped, ..) => "Cancelled",
        (End::Failed, 0, ..) => "Failed",
        (_, _, 0, 0) => "Completed",
        (_, _, 0, _) => "CompletedWithSkipped",
        (_, 0, _, 0) => "Failed",
        (_, _, _, 0) => "CompletedWithErrors",
        _ => "CompletedWithErrorsAndSkipped",
    }
}

/// The counters of a job over all its runs: what earlier ones finished is done, and not skipped.
pub(crate) fn as_a_whole(counts: &Snapshot, progress: &Progress) -> Snapshot {
    let earlier = progress.skips().iter().find(|group| group.reason == FINISHED_EARLIER).map_or(0, |group| group.count);
    Snapshot { done: counts.done + earlier, skipped: counts.skipped.saturating_sub(earlier), ..*counts }
}

/// Failures by cause, those without a record of their own included: the object whose error ended the job, and what was given up
/// half way then or when it was stopped.
fn causes(progress: &Progress, failed: u64, ended_by: Option<&Error>) -> Vec<Cause> {
    let groups = progress.failures();
    let unrecorded = failed - groups.iter().map(|group| group.count).sum::<u64>().min(failed);
    let mut causes: Vec<Cause> = groups
        .iter()
        .map(|group| Cause {
            count: group.count,
            objects: group.names.iter().take(NAMES_IN_JSON).cloned().collect(),
            error: Report::of(&group.first),
        })
        .collect();
    if unrecorded > 0 {
        let stopped = || Report::of(&Error::new(Kind::Cancelled, "given up half way: the job was stopped"));
        causes.push(Cause { count: unrecorded, objects: Vec::new(), error: ended_by.map_or_else(stopped, Report::of) });
    }
    causes
}

/// Puts the figures of a job together.
pub(crate) fn summary(
    (job_id, doing): (&str, Doing),
    end: End,
    exit_code: u8,
    elapsed: Duration,
    (progress, ended_by): (&Progress, Option<&Error>),
    stats: &Stats,
) -> Summary {
    let counts = progress.snapshot();
    let millis = |share: f64| stats.latency(share).map(|d| (d.as_secs_f64() * 1e5).round() / 100.0);
    let retries = RETRY_CAUSES.iter().copied().zip(stats.retries()).filter(|(_, count)| *count > 0).collect();
    let memory = Memory::read();
    let whole = as_a_whole(&counts, progress);
    let failures = causes(progress, counts.failed, ended_by);
    let changed = format!("{:?}", Kind::SourceChanged);
    Summary {
        job_id: job_id.to_owned(),
        command: doing.command(),
        status: status(end, whole.done, whole.failed, whole.skipped),
        exit_code,
        dry_run: doing.is_dry_run(),
        elapsed_s: (elapsed.as_secs_f64() * 1e4).round() / 1e4,
        total: counts.listed,
        done: counts.done,
        failed: counts.failed,
        skipped: counts.skipped,
        pending: counts.pending(),
        bytes_done: counts.bytes_there(),
        bytes_resumed: counts.bytes_resumed,
        blocks_resumed: counts.blocks_resumed,
        leftovers_cleared: counts.cleared,
        throughput_mbps: (mbps(counts.bytes_sent, elapsed) * 1e4).round() / 1e4,
        concurrency: counts.lanes,
        requests: stats.requests.load(Relaxed),
        bytes_on_wire: stats.bytes_on_wire(),
        latency_p50_ms: millis(0.5),
        latency_p99_ms: millis(0.99),
        retries,
        source_changed: failures.iter().filter(|cause| cause.error.kind == changed).map(|cause| cause.count).sum(),
        restarts: counts.restarts,
        filtered_objects: counts.filtered.objects,
        filtered_folders: counts.filtered.folders,
        peak_memory_bytes: memory.map(|m| m.peak),
        anonymous_memory_bytes: memory.map(|m| m.anonymous),
        failures,
        left_out: progress
            .skips()
            .iter()
            .map(|group| LeftOut {
                count: group.count,
                reason: group.reason.to_owned(),
                objects: group.names.iter().take(NAMES_IN_JSON).cloned().collect(),
            })
            .collect(),
        verdict: None,
        report: None,
        resume: None,
        doing,
    }
}

/// The summary for people.
pub(crate) fn text(s: &Summary) -> String {
    let of_links = |link: bool| -> u64 {
        let mine = s.left_out.iter().filter(|group| group.is_special() && group.reason.contains("link") == link);
        mine.map(|group| group.count).sum()
    };
    let mut out = format!(
        "\nJob {} summary\n\
         Elapsed Time (Minutes): {}\n\
         Number of File Transfers: {}\n\
         Number of Folder Property Transfers: 0\n\
         Number of Symlink Transfers: 0\n\
         Total Number of Transfers: {}\n\
         Number of File Transfers Completed: {}\n\
         Number of Folder Transfers Completed: 0\n\
         Number of File Transfers Failed: {}\n\
         Number of Folder Transfers Failed: 0\n\
         Number of File Transfers Skipped: {}\n\
         Number of Folder Transfers Skipped: 0\n\
         Number of Symbolic Links Skipped: {}\n\
         Number of Special Files Skipped: {}\n\
         Total Number of Bytes Transferred: {}\n\
         Final Job Status: {}\n",
        s.job_id,
        four_decimals(s.elapsed_s / 60.0),
        s.total,
        s.total,
        s.done,
        s.failed,
        s.skipped,
        of_links(true),
        of_links(false),
        s.bytes_done,
        s.status,
    );
    push_figures(&mut out, s);
    for cause in &s.failures {
        // The error that ended the job has been told.
        if !cause.objects.is_empty() || cause.error.kind == format!("{:?}", Kind::Cancelled) {
            push_cause(&mut out, cause);
        }
    }
    if let Some(line) = filtered(s.filtered_objects, s.filtered_folders) {
        out.push_str(&format!("\n{line}"));
    }
    for group in &s.left_out {
        out.push_str(&format!("\nskipped: {} x {}", group.count, printable(&group.reason)));
        push_names(&mut out, &group.objects, group.count);
    }
    if let Some(verdict) = &s.verdict {
        push_verdict(&mut out, verdict);
    }
    if let Some(report) = &s.report {
        out.push_str(&format!("\nreport: {}", printable(report)));
    }
    if let Some(command) = &s.resume {
        out.push_str(&format!("\nto go on with what is missing: {command}"));
    }
    if out.ends_with('\n') {
        out.pop();
    }
    out
}

/// What filters left out, in a line, if there was anything.
pub(crate) fn filtered(objects: u64, folders: u64) -> Option<String> {
    let counted = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    match (objects, folders) {
        (0, 0) => None,
        (objects, 0) => Some(format!("left out by filters: {}", counted(objects, "file"))),
        (0, folders) => Some(format!("left out by filters: {} not looked into", counted(folders, "folder"))),
        _ => Some(format!("left out by filters: {}, {} not looked into", counted(objects, "file"), counted(folders, "folder"))),
    }
}

fn push_verdict(out: &mut String, verdict: &Verdict) {
    out.push_str(&format!("\nverdict: {}", verdict.text));
    for fact in &verdict.evidence {
        out.push_str(&format!("\n  {fact}"));
    }
    for step in &verdict.advice {
        out.push_str(&format!("\n  hint: {step}"));
    }
}

fn push_figures(out: &mut String, s: &Summary) {
    match s.doing {
        Doing::Moving { .. } => out.push_str(&format!(
            "\n{} in {:.2} s: {} Mb/s, {} requests",
            ByteCount(s.bytes_done - s.bytes_resumed),
            s.elapsed_s,
            four_decimals(s.throughput_mbps),
            s.requests,
        )),
        Doing::Changing(Changing { done, .. }) => {
            let would = if s.dry_run { "would be " } else { "" };
            out.push_str(&format!("\n{} blobs {would}{done} in {:.2} s, {} requests", s.done, s.elapsed_s, s.requests));
        }
    }
    if let (Some(median), Some(p99)) = (s.latency_p50_ms, s.latency_p99_ms) {
        out.push_str(&format!(", latency p50 {median:.1} ms, p99 {p99:.1} ms"));
    }
    if s.blocks_resumed > 0 {
        let (bytes, blocks) = (ByteCount(s.bytes_resumed), s.blocks_resumed);
        out.push_str(&format!(
            "\nresumed: {bytes} in {blocks} blocks were there from an earlier try and not {} again",
            s.doing.spared()
        ));
    }
    if s.leftovers_cleared > 0 {
        let blobs = s.leftovers_cleared;
        out.push_str(&format!("\ncleared: uncommitted blocks of another program, in the way under the names of {blobs} blobs"));
    }
    let retries: Vec<String> = s.retries.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    out.push_str(&format!("\nretries: {}", if retries.is_empty() { "none".to_owned() } else { retries.join(", ") }));
    if s.source_changed + s.restarts > 0 {
        out.push_str(&format!("\nsources that changed: {} failed, {} {} anew", s.source_changed, s.restarts, s.doing.spared()));
    }
    if let (Some(peak), Some(anonymous)) = (s.peak_memory_bytes, s.anonymous_memory_bytes) {
        out.push_str(&format!("\nmemory: {} at its peak, {} anonymous at the end", ByteCount(peak), ByteCount(anonymous)));
    }
}

fn push_cause(out: &mut String, cause: &Cause) {
    if cause.count == 1 {
        out.push_str(&format!("\nfailed: {}", cause.error.text().trim_start_matches("error: ")));
        return;
    }
    out.push_str(&format!("\nfailed: {} x like this: {}", cause.count, cause.error.text().trim_start_matches("error: ")));
    push_names(out, &cause.objects, cause.count);
}

fn push_names(out: &mut String, names: &[String], count: u64) {
    for name in names.iter().take(NAMES_SHOWN) {
        out.push_str(&format!("\n  {}", printable(name)));
    }
    let more = count.saturating_sub(names.len().min(NAMES_SHOWN) as u64);
    if more > 0 && !names.is_empty() {
        out.push_str(&format!("\n  and {more} more"));
    }
}

impl LeftOut {
    /// Whether this is about a kind of file rather than about `--overwrite` or the end of the job.
    fn is_special(&self) -> bool {
        self.reason != NOT_STARTED && self.reason != FINISHED_EARLIER && !self.reason.contains("destination")
    }
}

#[derive(Debug, Clone, Copy)]
struct Memory {
    peak: u64,
    anonymous: u64,
}

impl Memory {
    /// What the kernel counts for this process; `None` where there is no `/proc`.
    fn read() -> Option<Memory> {
        let text = std::fs::read_to_string("/proc/self/status").ok()?;
        let kib = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name))?;
            value.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib * 1024)
        };
        Some(Memory { peak: kib("VmHWM:")?, anonymous: kib("RssAnon:")? })
    }
}
