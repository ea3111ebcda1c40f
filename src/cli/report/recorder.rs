//! Watches a run while it runs, and makes its record in the end. What it keeps is bounded, whatever the run is.

use super::super::job::{Named, command_line};
use super::super::json::Summary;
use super::super::sending_args::SendingArgs;
use super::super::verdict::{Measured, judge};
use super::host::{self, Ticks};
use super::objects::Objects;
use super::record::{Latency, LatencyBucket, Percentile, RunRecord, SCHEMA, Setting, Slot, Usage};
use super::timeline::{Reading, Recorded};
use crate::rest::stats::Stats;
use crate::transfer::plan::Tuning;
use crate::transfer::progress::{Observer, Progress};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Percentiles that are told.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 100.0];

/// What a run is about: known before it starts, and free of secrets.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// As typed, quoted for a shell.
    pub(crate) command: String,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) settings: Vec<Setting>,
    /// The cap on the rate, decimal megabits a second.
    pub(crate) cap_mbps: Option<f64>,
    pub(crate) put_md5: bool,
    /// Whether the number of requests in flight is tuned while it runs.
    pub(crate) tuned: bool,
    /// Whether the service runs in this process.
    pub(crate) service_inside: bool,
    /// Nanoseconds all lanes together spent reading the source, as far as they are counted.
    pub(crate) reading_ns: Arc<AtomicU64>,
}

impl About {
    /// Of a job to another process's service. What to tell of its settings is up to the command.
    pub(crate) fn new(named: &Named, args: &SendingArgs, tuning: &Tuning) -> About {
        About {
            command: command_line(),
            source: named.source.clone(),
            destination: named.destination.clone(),
            settings: Vec::new(),
            cap_mbps: args.cap(),
            put_md5: tuning.put_md5,
            tuned: tuning.lanes_first.is_some(),
            service_inside: false,
            reading_ns: Arc::default(),
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Recorder {
    about: About,
    started: jiff::Timestamp,
    cpu: Duration,
    ticks: Option<Ticks>,
    objects: Arc<Objects>,
    recorded: Recorded,
}

impl Recorder {
    /// Starts: what is measured counts from here.
    pub(crate) fn start(about: About) -> Recorder {
        Recorder {
            about,
            started: jiff::Timestamp::now(),
            cpu: host::process_cpu(),
            ticks: Ticks::read(),
            objects: Arc::default(),
            recorded: Recorded::default(),
        }
    }

    /// To be told of each object.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.objects) as Arc<dyn Observer>
    }

    /// How long to wait until the next sample.
    pub(crate) fn pause(&self) -> Duration {
        self.recorded.pause()
    }

    /// Takes a sample, `at` this time since the start.
    pub(crate) fn sample(&mut self, at: Duration, progress: &Progress, stats: &Stats) {
        self.recorded.take(self.reading(at, progress, stats));
    }

    fn reading(&self, at: Duration, progress: &Progress, stats: &Stats) -> Reading {
        let counts = progress.snapshot();
        Reading {
            at,
            bytes: counts.bytes_sent,
            bytes_on_wire: stats.bytes_on_wire(),
            requests: stats.requests.load(Relaxed),
            done: counts.done,
            failed: counts.failed,
            retries: stats.retries(),
            cpu: host::process_cpu().saturating_sub(self.cpu),
            in_flight: stats.in_flight.load(Relaxed),
            concurrency: u64::try_from(counts.lanes).unwrap_or(u64::MAX),
        }
    }

    /// Ends: takes the last sample, judges, and adds the verdict to the summary.
    pub(crate) fn end(mut self, at: Duration, mut summary: Summary, progress: &Progress, stats: &Stats) -> RunRecord {
        let last = self.reading(at, progress, stats);
        self.recorded.end(last);
        let timeline = self.recorded.timeline();
        let machine = host::machine();
        let usage = self.usage(last, &timeline.slots, machine.cores, progress);
        let measured = Measured {
            elapsed_s: at.as_secs_f64(),
            bytes: summary.bytes_done,
            objects: summary.done + summary.failed,
            requests: summary.requests,
            rate_mbps: summary.throughput_mbps,
            cores: machine.cores,
            cpu_share: usage.cpu_share,
            machine_cpu_share: usage.machine_cpu_share,
            service_inside: self.about.service_inside,
            cap_mbps: self.about.cap_mbps,
            throttled: stats.retries()[0],
            in_flight: usage.in_flight,
            concurrency: usage.concurrency,
            tuned: self.about.tuned,
            memory_wait_share: usage.memory_wait_share,
            reading_share: usage.reading_share,
            put_md5: self.about.put_md5,
            md5_mbps: self.about.put_md5.then(md5_mbps),
            latency_p50_ms: summary.latency_p50_ms,
        };
        summary.verdict = Some(judge(&measured));
        RunRecord {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: time(self.started),
            ended: time(jiff::Timestamp::now()),
            machine,
            summary,
            usage,
            timeline,
            sizes: self.objects.sizes(),
            latency: latency(stats),
            slowest: self.objects.slowest(),
            command: self.about.command,
            source: self.about.source,
            destination: self.about.destination,
            settings: self.about.settings,
        }
    }

    fn usage(&self, last: Reading, slots: &[Slot], cores: u64, progress: &Progress) -> Usage {
        let elapsed = last.at.as_secs_f64().max(1e-9);
        let average = |value: &dyn Fn(&Slot) -> f64| {
            slots.iter().map(|slot| value(slot) * (slot.to_s - slot.from_s)).sum::<f64>() / elapsed
        };
        let concurrency = average(&|slot| real(slot.concurrency));
        let of_lanes = |nanos: u64| (real(nanos) / 1e9 / elapsed / concurrency.max(1.0)).min(1.0);
        Usage {
            cpu_s: last.cpu.as_secs_f64(),
            cpu_share: (last.cpu.as_secs_f64() / elapsed / real(cores.max(1))).min(1.0),
            machine_cpu_share: self.ticks.and_then(|then| Ticks::read()?.share_since(then)),
            in_flight: average(&|slot| slot.in_flight),
            concurrency,
            memory_wait_share: of_lanes(progress.memory_wait_ns()),
            reading_share: of_lanes(self.about.reading_ns.load(Relaxed)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures with three digits")]
fn real(value: u64) -> f64 {
    value as f64
}

fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn latency(stats: &Stats) -> Latency {
    let ms = |took: Duration| (took.as_secs_f64() * 1e5).round() / 100.0;
    Latency {
        percentiles: PERCENTILES
            .iter()
            .filter_map(|percent| Some(Percentile { percent: *percent, ms: ms(stats.latency(percent / 100.0)?) }))
            .collect(),
        buckets: stats.latencies().into_iter().map(|(up_to, count)| LatencyBucket { up_to_ms: ms(up_to), count }).collect(),
    }
}

/// What one core hashes, measured on 8 MiB: some hundredths of a second, spent only where MD5 was asked for.
fn md5_mbps() -> f64 {
    use md5::{Digest, Md5};
    const SAMPLE: u32 = 8 << 20;
    let data = vec![0x5Au8; 1 << 20];
    let before = host::process_cpu();
    let mut hash = Md5::new();
    for _ in 0..SAMPLE >> 20 {
        hash.update(&data);
    }
    std::hint::black_box(hash.finalize());
    f64::from(SAMPLE) * 8.0 / 1e6 / host::process_cpu().saturating_sub(before).as_secs_f64().max(1e-6)
}
