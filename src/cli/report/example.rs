//! A record made by hand, for tests: each figure is one that no other field has.

use super::super::doing::{Doing, Way};
use super::super::json::{Cause, LeftOut, Summary};
use super::super::render::Report;
use super::super::verdict::{Certainty, Limit, Verdict};
use super::record::{
    Latency, LatencyBucket, Machine, Origin, Percentile, RunRecord, Setting, SizeBucket, Slot, Slow, Timeline, Usage,
};
use crate::error::{Answer, Attempts, Error, Kind};
use std::collections::BTreeMap;
use std::time::Duration;

/// See the module's text.
pub(crate) fn record() -> RunRecord {
    let error = Error::new(Kind::GaveUp, "cannot put https://acc.blob.core.windows.net/box/a")
        .with_answer(Answer { status: 503, code: Some("ServerBusy".into()), from_service: true, ..Answer::default() })
        .with_attempts(Attempts { count: 7, elapsed: Duration::from_secs(301) });
    let slot = |from_s: f64, bytes_on_wire, retries: &[(&'static str, u64)]| Slot {
        from_s,
        to_s: from_s + 0.5,
        bytes: bytes_on_wire,
        bytes_on_wire,
        requests: 11,
        done: 3,
        failed: 0,
        retries: retries.iter().copied().collect(),
        in_flight: 12.25,
        in_flight_max: 16,
        concurrency: 17,
        cpu_s: 0.25,
    };
    RunRecord {
        schema: 1,
        version: "9.8.7".into(),
        command: "blobjet copy './it'\\''s <b>' 'https://acc.blob.core.windows.net/box?sv=1&sig=REDACTED'".into(),
        started: "2026-01-02T03:04:05.678Z".into(),
        ended: "2026-01-02T03:04:07.178Z".into(),
        source: "./it's <b>".into(),
        destination: "https://acc.blob.core.windows.net/box".into(),
        machine: Machine {
            system: "linux 6.1 x86_64".into(),
            processor: "Example <CPU>".into(),
            cores: 2,
            memory_bytes: Some(24 << 30),
        },
        settings: vec![
            Setting { name: "block size", value: "8 MiB".into(), origin: Origin::Default },
            Setting { name: "concurrency", value: "17".into(), origin: Origin::Flag },
        ],
        summary: Summary {
            command: "copy",
            doing: Doing::Moving { command: "copy", way: Way::Up },
            job_id: "0b9d6c1e-8f7a-4d0e-9b7e-2f6a1c3d5e7f".into(),
            status: "CompletedWithErrorsAndSkipped",
            exit_code: 1,
            dry_run: false,
            elapsed_s: 1.5,
            total: 1_234_567,
            done: 1_234_500,
            failed: 41,
            skipped: 26,
            pending: 0,
            bytes_done: 3 << 29,
            bytes_resumed: 0,
            blocks_resumed: 0,
            leftovers_cleared: 0,
            throughput_mbps: 8589.9346,
            concurrency: 17,
            requests: 45_678,
            bytes_on_wire: 1_700_000_000,
            latency_p50_ms: Some(6.73),
            latency_p99_ms: Some(38.05),
            retries: BTreeMap::from([("throttled", 9), ("connection", 4)]),
            source_changed: 0,
            restarts: 0,
            filtered_objects: 0,
            filtered_folders: 0,
            peak_memory_bytes: Some(139 << 20),
            anonymous_memory_bytes: Some(9 << 20),
            failures: vec![Cause {
                count: 40,
                objects: vec!["./<script>alert(1)</script>".into(), "./\u{202e}txt.exe".into()],
                error: Report::of(&error),
            }],
            left_out: vec![LeftOut { count: 26, reason: "symbolic link".into(), objects: vec!["./a&b".into()] }],
            verdict: Some(Verdict {
                limit: Limit::Cpu,
                certainty: Certainty::Likely,
                text: "most likely this machine's processors limited it".into(),
                evidence: vec!["processors: 81 %".into()],
                advice: vec!["use a machine with more cores".into()],
            }),
            report: Some("run.html".into()),
            resume: None,
        },
        usage: Usage {
            cpu_s: 2.43,
            cpu_share: 0.81,
            machine_cpu_share: Some(0.9),
            in_flight: 12.25,
            concurrency: 17.0,
            memory_wait_share: 0.0,
            reading_share: 0.1,
        },
        timeline: Timeline {
            step_s: 0.5,
            slots: vec![
                slot(0.0, 500_000_000, &[]),
                slot(0.5, 700_000_000, &[("throttled", 9)]),
                slot(1.0, 500_000_000, &[("connection", 4)]),
            ],
        },
        sizes: vec![
            SizeBucket { above: None, up_to: 0, count: 5, bytes: 0 },
            SizeBucket { above: Some(0), up_to: 1024, count: 1_234_495, bytes: 3 << 29 },
        ],
        latency: Latency {
            percentiles: vec![Percentile { percent: 50.0, ms: 6.73 }, Percentile { percent: 99.9, ms: 45.31 }],
            buckets: vec![LatencyBucket { up_to_ms: 6.73, count: 23_000 }, LatencyBucket { up_to_ms: 45.25, count: 22_000 }],
        },
        slowest: vec![
            Slow { object: "./<img src=x onerror=alert(1)>".into(), bytes: 5 << 20, seconds: 1.25, retries: 6, failed: false },
            Slow { object: "./lost".into(), bytes: 77, seconds: 0.5, retries: 3, failed: true },
        ],
    }
}
