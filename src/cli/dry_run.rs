//! `--dry-run`: lists the source, opens each object for its length, and says where it would go and what that would take. Nothing
//! is sent.

use super::context::Context;
use super::doing::{Doing, Way};
use super::exit::Exit;
use super::job::new_id;
use super::json::{Cause, Event, LeftOut, Summary};
use super::render::{Report, printable};
use super::summary::{End, filtered, status};
use crate::endpoint::{Filtered, Found, Item, Sink, Source};
use crate::error::{Error, Result};
use crate::transfer::plan::{Plan, Tuning, plan};
use crate::units::ByteCount;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

/// What is added up on the way.
#[derive(Debug, Default)]
struct Totals {
    planned: u64,
    unknown_length: u64,
    bytes: u64,
    requests: u64,
    failed: Vec<(String, Error)>,
    skipped: Vec<(String, &'static str)>,
    filtered: Filtered,
}

/// What one object would take.
#[derive(Debug, Clone, Copy)]
struct Costs {
    bytes: Option<u64>,
    plan: Option<Plan>,
}

/// Shows the plan. `lands` says where an object lands, as the user wrote the destination.
///
/// # Errors
/// What bars the listing as a whole.
pub(crate) async fn run(
    source: Arc<dyn Source>,
    sink: Arc<dyn Sink>,
    tuning: &Tuning,
    lands: &(dyn Fn(&str) -> String + Sync),
    context: &Context,
) -> Result<Exit> {
    let id = new_id()?;
    let started = Instant::now();
    let (sender, mut receiver) = mpsc::channel(4);
    let lister = Arc::clone(&source);
    let listing = tokio::spawn(async move { lister.list(sender).await });
    let mut totals = Totals::default();
    while let Some(batch) = receiver.recv().await {
        for found in batch {
            match found {
                Found::Item(item) => match costs(&*source, &*sink, tuning, &item).await {
                    Ok(costs) => totals.add(&item, costs, lands(&item.target), context),
                    Err(error) => totals.fail(item.source, error, context),
                },
                Found::Failed { name, error } => totals.fail(name, error, context),
                Found::Skipped { name, reason } => totals.skip(name, reason, context),
                Found::Filtered(more) => {
                    totals.filtered.objects += more.objects;
                    totals.filtered.folders += more.folders;
                }
            }
        }
    }
    listing.await.map_err(|e| Error::new(crate::Kind::Cancelled, "the listing was stopped").with_source(e))??;
    let exit = Exit::of_failures(totals.failed.iter().map(|(_, error)| error.kind()), totals.planned);
    let summary = totals.summary(id, exit, started);
    context.out.summary(|| totals.text(), || Event::Summary(Box::new(summary)));
    Ok(exit)
}

async fn costs(source: &dyn Source, sink: &dyn Sink, tuning: &Tuning, item: &Item) -> Result<Costs> {
    sink.check_name(&item.target)?;
    let reader = source.open(item).await?;
    let bytes = reader.facts().len;
    Ok(Costs { bytes, plan: bytes.map(|len| plan(len, tuning, &sink.limits())).transpose()? })
}

impl Totals {
    fn add(&mut self, item: &Item, costs: Costs, destination: String, context: &Context) {
        self.planned += 1;
        self.bytes += costs.bytes.unwrap_or(0);
        self.unknown_length += u64::from(costs.bytes.is_none());
        self.requests += costs.plan.map_or(0, |plan| plan.requests());
        context.out.data(
            || {
                let takes = words(costs);
                format!("DRYRUN: copy {} to {} ({takes})", printable(&item.source), printable(&destination))
            },
            || Event::Plan {
                source: item.source.clone(),
                destination: destination.clone(),
                bytes: costs.bytes,
                requests: costs.plan.map(|plan| plan.requests()),
                block_size: match costs.plan {
                    Some(Plan::Blocks { block_size, .. }) => Some(block_size),
                    _ => None,
                },
            },
        );
    }

    fn fail(&mut self, name: String, error: Error, context: &Context) {
        let report = Report::of(&error);
        context.out.news(
            || format!("would fail: {}: {}", printable(&name), printable(&report.one_line())),
            || Event::Failed { object: name.clone(), error: report.clone() },
        );
        self.failed.push((name, error));
    }

    fn skip(&mut self, name: String, reason: &'static str, context: &Context) {
        context.out.news(
            || format!("would skip: {}: {reason}", printable(&name)),
            || Event::Skipped { object: name.clone(), reason: reason.to_owned() },
        );
        self.skipped.push((name, reason));
    }

    fn text(&self) -> String {
        let pipe = if self.unknown_length > 0 { ", and a stream of unknown length" } else { "" };
        let filtered = filtered(self.filtered.objects, self.filtered.folders).map_or(String::new(), |line| format!(" {line}."));
        format!(
            "\n{}, {} ({} bytes), {}{pipe}; {} would fail, {} would be skipped.{filtered} Nothing was sent.",
            counted(self.planned, "file"),
            ByteCount(self.bytes),
            self.bytes,
            counted(self.requests, "request"),
            self.failed.len(),
            self.skipped.len(),
        )
    }

    fn summary(&self, job_id: String, exit: Exit, started: Instant) -> Summary {
        let (failed, skipped) = (self.failed.len() as u64, self.skipped.len() as u64);
        Summary {
            job_id,
            status: status(End::Whole, self.planned, failed, skipped),
            exit_code: exit.code(),
            command: "copy",
            dry_run: true,
            elapsed_s: (started.elapsed().as_secs_f64() * 1e4).round() / 1e4,
            total: self.planned + failed + skipped,
            done: self.planned,
            failed,
            skipped,
            pending: 0,
            bytes_done: self.bytes,
            bytes_resumed: 0,
            blocks_resumed: 0,
            leftovers_cleared: 0,
            throughput_mbps: 0.0,
            concurrency: 0,
            requests: self.requests,
            bytes_on_wire: 0,
            latency_p50_ms: None,
            latency_p99_ms: None,
            retries: std::collections::BTreeMap::new(),
            source_changed: 0,
            restarts: 0,
            filtered_objects: self.filtered.objects,
            filtered_folders: self.filtered.folders,
            peak_memory_bytes: None,
            anonymous_memory_bytes: None,
            failures: self
                .failed
                .iter()
                .map(|(name, error)| Cause { count: 1, objects: vec![name.clone()], error: Report::of(error) })
                .collect(),
            left_out: self
                .skipped
                .iter()
                .map(|(name, reason)| LeftOut { count: 1, reason: (*reason).to_owned(), objects: vec![name.clone()] })
                .collect(),
            verdict: None,
            report: None,
            resume: None,
            doing: Doing::Moving { command: "copy", way: Way::Up },
        }
    }
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn words(costs: Costs) -> String {
    match (costs.bytes, costs.plan) {
        (Some(bytes), Some(Plan::Blocks { block_size, count })) => {
            format!("{}, {count} blocks of {} and a commit", ByteCount(bytes), ByteCount(block_size))
        }
        (Some(bytes), _) => format!("{}, one request", ByteCount(bytes)),
        (None, _) => "length unknown, blocks that grow".to_owned(),
    }
}
