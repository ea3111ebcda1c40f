//! What a run was, as plain values: what `--report` writes as JSON and draws as a page. Counted and sampled elsewhere; nothing
//! here holds a secret, because each text came in redacted.
//!
//! The shape is `docs/report.md`'s. `schema` grows when a field changes its meaning or goes.

use super::super::json::Summary;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the shape.
pub(crate) const SCHEMA: u32 = 1;

/// One run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunRecord {
    pub(crate) schema: u32,
    /// Version of the program.
    pub(crate) version: String,
    /// The command as it was typed, quoted for a shell.
    pub(crate) command: String,
    /// When it began and ended, UTC, RFC 3339.
    pub(crate) started: String,
    pub(crate) ended: String,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) machine: Machine,
    /// What it ran with, whether said or chosen.
    pub(crate) settings: Vec<Setting>,
    /// The same as the last line of `--output-type json`, verdict included.
    pub(crate) summary: Summary,
    pub(crate) usage: Usage,
    pub(crate) timeline: Timeline,
    /// Sizes of the objects that are done, smallest first.
    pub(crate) sizes: Vec<SizeBucket>,
    /// Times of answered requests, shortest first.
    pub(crate) latency: Latency,
    /// Objects that took longest, first the slowest.
    pub(crate) slowest: Vec<Slow>,
}

/// Where it ran.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Machine {
    pub(crate) system: String,
    pub(crate) processor: String,
    pub(crate) cores: u64,
    pub(crate) memory_bytes: Option<u64>,
}

/// One setting.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// It was on the command line.
    Flag,
    /// It was not.
    Default,
}

/// What the process used.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Usage {
    /// CPU seconds of the process, an embedded service's included.
    pub(crate) cpu_s: f64,
    /// Share of the time of all cores, 0 to 1.
    pub(crate) cpu_share: f64,
    /// The same of the whole machine, all processes; `None` where it does not tell.
    pub(crate) machine_cpu_share: Option<f64>,
    /// Requests in flight, on average.
    pub(crate) in_flight: f64,
    /// How many there might have been, on average.
    pub(crate) concurrency: f64,
    /// Share of the requests' time in which one waited for memory, and in which one read its data.
    pub(crate) memory_wait_share: f64,
    pub(crate) reading_share: f64,
}

/// The run cut into stretches, none of which overlap.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Timeline {
    /// What a stretch is long, about.
    pub(crate) step_s: f64,
    pub(crate) slots: Vec<Slot>,
}

/// What happened in one stretch.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Slot {
    /// Since the start.
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// Bytes acknowledged.
    pub(crate) bytes: u64,
    /// Bytes written to sockets.
    pub(crate) bytes_on_wire: u64,
    pub(crate) requests: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// By cause, those that occurred.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) retries: BTreeMap<&'static str, u64>,
    /// Requests in flight: on average, the most that was seen, and how many there might have been.
    pub(crate) in_flight: f64,
    pub(crate) in_flight_max: u64,
    pub(crate) concurrency: u64,
    pub(crate) cpu_s: f64,
}

/// Objects up to a size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SizeBucket {
    /// Larger than this (0 and more for the first one: empty objects).
    pub(crate) above: Option<u64>,
    /// At most this many bytes.
    pub(crate) up_to: u64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// How long requests took from their first byte out to the head of their answer.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Latency {
    /// Percentile and milliseconds, to within 19 %.
    pub(crate) percentiles: Vec<Percentile>,
    pub(crate) buckets: Vec<LatencyBucket>,
}

/// A share of the requests stayed below this.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Percentile {
    pub(crate) percent: f64,
    pub(crate) ms: f64,
}

/// Requests that took up to this long.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct LatencyBucket {
    pub(crate) up_to_ms: f64,
    pub(crate) count: u64,
}

/// An object that took long.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Slow {
    pub(crate) object: String,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    /// Requests that were sent again for it.
    pub(crate) retries: u32,
    pub(crate) failed: bool,
}
