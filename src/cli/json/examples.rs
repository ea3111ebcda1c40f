//! One example of each line, which are those of `docs/json-output.md`: document and program cannot differ.

use super::super::doing::Way;
use super::*;
use crate::error::{Answer, Attempts, Error, Kind};
use crate::rest::model::BlobItem;
use std::time::Duration;

const JOB: &str = "0b9d6c1e-8f7a-4d0e-9b7e-2f6a1c3d5e7f";
const BOX: &str = "https://ACCOUNT.blob.core.windows.net/box";

fn bad_name() -> Report {
    Report::of(&Error::new(Kind::Name, r"cannot store a blob named a\tb"))
}

fn refused() -> Report {
    let error = Error::new(Kind::AccessRefused, format!("cannot put {BOX}/docs/a"))
        .with_answer(Answer {
            status: 403,
            code: Some("AuthorizationPermissionMismatch".into()),
            message: Some("This request is not authorized to perform this operation using this permission.".into()),
            request_id: Some("5397335d-801e-0023-7ff1-2a2bd9000000".into()),
            from_service: true,
            ..Answer::default()
        })
        .with_attempts(Attempts { count: 2, elapsed: Duration::from_millis(1400) })
        .with_source(std::io::Error::other("connection reset"));
    Report::of(&error)
}

fn summary() -> Summary {
    Summary {
        job_id: JOB.into(),
        command: "copy",
        status: "CompletedWithErrorsAndSkipped",
        exit_code: 1,
        dry_run: false,
        elapsed_s: 4.0021,
        total: 14,
        done: 12,
        failed: 1,
        skipped: 1,
        pending: 0,
        bytes_done: 67_108_864,
        bytes_resumed: 16_777_216,
        blocks_resumed: 2,
        leftovers_cleared: 1,
        throughput_mbps: 134.1471,
        concurrency: 16,
        requests: 21,
        bytes_on_wire: 67_115_008,
        latency_p50_ms: Some(6.73),
        latency_p99_ms: Some(38.05),
        retries: BTreeMap::from([("throttled", 2)]),
        source_changed: 0,
        restarts: 0,
        filtered_objects: 0,
        filtered_folders: 0,
        peak_memory_bytes: Some(35_651_584),
        anonymous_memory_bytes: Some(9_437_184),
        failures: vec![Cause { count: 1, objects: vec!["./docs/a\tb".into()], error: bad_name() }],
        left_out: vec![LeftOut { count: 1, reason: "symbolic link".into(), objects: vec!["./docs/link".into()] }],
        verdict: None,
        report: None,
        resume: Some(format!("blobjet jobs resume {JOB}")),
        doing: Doing::Moving { command: "copy", way: Way::Up },
    }
}

fn job() -> JobLine {
    JobLine {
        job_id: JOB.into(),
        command: "copy".into(),
        status: "CompletedWithErrorsAndSkipped".into(),
        source: "./docs".into(),
        destination: BOX.into(),
        started: "2026-01-02T03:04:05.678Z".into(),
        ended: Some("2026-01-02T03:04:09.678Z".into()),
        runs: 1,
        total: Some(14),
        done: 12,
        failed: 1,
        skipped: 1,
        bytes_done: 67_108_864,
        error: None,
    }
}

fn transfer() -> TransferLine {
    TransferLine {
        job_id: JOB.into(),
        source: "./docs/a.bin".into(),
        destination: Some("docs/a.bin".into()),
        status: "Failed",
        reason: Some("GaveUp: 503 ServerBusy".into()),
        bytes: Some(67_108_864),
        blocks: 8,
        retries: 40,
        queued: "2026-01-02T03:04:05.700Z".into(),
        started: Some("2026-01-02T03:04:05.701Z".into()),
        finished: "2026-01-02T03:04:09.600Z".into(),
        source_modified: Some("2025-12-31T23:59:59.123Z".into()),
    }
}

fn blob() -> BlobItem {
    let mut blob = BlobItem {
        name: "docs/a.bin".into(),
        version_id: Some("2026-01-02T03:04:05.0000000Z".into()),
        is_current_version: true,
        metadata: Some(vec![("made_by".into(), "me".into())]),
        ..BlobItem::default()
    };
    for (name, value) in [
        ("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT"),
        ("Content-Type", "application/octet-stream"),
        ("BlobType", "BlockBlob"),
        ("AccessTier", "Hot"),
        ("Etag", "0x8DE49A5B6C7D8E9"),
    ] {
        blob.properties.push(name, value);
    }
    blob
}

/// One event of every type, in the order of the document, with the second it was written at.
fn events() -> Vec<(u32, Event)> {
    let half = Counts {
        listed: 14,
        opened: 14,
        done: 4,
        bytes_listed: 67_108_864,
        bytes_done: 8_388_608,
        concurrency: 12,
        ..Counts::default()
    };
    let modified = Some("Fri, 02 Jan 2026 03:04:05 GMT".to_owned());
    let all = Amount { count: 1, bytes: 67_108_864 };
    vec![
        (
            5,
            Event::Init {
                job_id: JOB.into(),
                command: "copy",
                version: "0.1.0",
                source: "./docs".into(),
                destination: BOX.into(),
            },
        ),
        (7, Event::Progress(Progress::new(JOB, &half, 33.554_43))),
        (7, Event::Failed { object: "./docs/a\tb".into(), error: bad_name() }),
        (7, Event::Skipped { object: "./docs/link".into(), reason: "symbolic link".into() }),
        (7, Event::Warning { message: "nothing to transfer: 'x*' has no files".into() }),
        (7, Event::Note { message: "there are 200 MiB of address space under ulimit -v left".into() }),
        (7, Event::Error { error: refused(), exit_code: 4 }),
        (9, Event::Summary(Box::new(summary()))),
        (
            7,
            Event::Plan {
                source: "./docs/a.bin".into(),
                destination: format!("{BOX}/docs/a.bin"),
                bytes: Some(67_108_864),
                requests: Some(10),
                block_size: Some(8_388_608),
            },
        ),
        (7, Event::PlanChange { command: "remove", url: format!("{BOX}/docs/a.bin"), bytes: Some(67_108_864) }),
        (
            7,
            Event::Explained {
                path: "tmp/a.bin".into(),
                taken: false,
                why: "--exclude-path tmp fits it".into(),
                destination: None,
            },
        ),
        (7, Event::Blob(Box::new(BlobLine::new(&blob(), 67_108_864, BTreeMap::from([("LeaseState", "available".to_owned())]))))),
        (7, Event::Container { name: "box".into(), last_modified: modified }),
        (7, Event::Folder { name: "docs/old/".into() }),
        (7, Event::Totals { count: 1, bytes: 67_108_864 }),
        (7, Event::Usage { name: "docs/".into(), amount: all }),
        (
            7,
            Event::UsageTotals(Box::new(UsageTotals {
                all,
                by_tier: BTreeMap::from([("Hot".to_owned(), all)]),
                by_type: BTreeMap::from([("BlockBlob".to_owned(), all)]),
            })),
        ),
        (
            7,
            Event::Compared(Box::new(Compared {
                name: "docs/a.bin".into(),
                sign: "*",
                source_bytes: Some(67_108_864),
                destination_bytes: Some(8_388_608),
                differs_in: Some("size"),
                reason: None,
            })),
        ),
        (
            9,
            Event::CheckTotals(Box::new(CheckTotals {
                source: "./docs".into(),
                destination: BOX.into(),
                same: 12,
                different: 1,
                left_out: 1,
                exit_code: 1,
                ..CheckTotals::default()
            })),
        ),
        (
            7,
            Event::Stat(Box::new(StatLine {
                what: "blob",
                url: format!("{BOX}/docs/a.bin"),
                properties: BTreeMap::from([
                    ("content-length".into(), "67108864".into()),
                    ("x-ms-access-tier".into(), "Hot".into()),
                ]),
                metadata: BTreeMap::from([("owner".into(), "ops".into())]),
                tags: None,
                snapshots: Some(2),
                versions: Some(0),
                not_seen: vec!["tags".into()],
            })),
        ),
        (7, Event::Block { index: 0, id: "QUFB".into(), bytes: 8_388_608, state: "committed" }),
        (
            7,
            Event::Hash {
                name: "docs/a.bin".into(),
                algorithm: "md5",
                hash: "900150983cd24fb0d6963f7d28e17f72".into(),
                bytes: 3,
                stored: true,
            },
        ),
        (7, Event::Made { url: BOX.into(), existed: false }),
        (7, Event::Removed { url: BOX.into(), dry_run: false }),
        (7, Event::Sas { url: format!("{BOX}?sv=2025-11-05&sr=c&sp=cw&se=2026-01-02T05:04:05Z&sig=REDACTED") }),
        (
            7,
            Event::Serving {
                url: "http://127.0.0.1:10000/devstoreaccount1".into(),
                account: "devstoreaccount1".into(),
                connection_string: "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=<KEY>;\
                                    BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
                    .into(),
                certificate: None,
            },
        ),
        (
            9,
            Event::Served {
                requests: 42,
                operations: vec![Operation { operation: "PutBlob".into(), requests: 42, refused: 2, body_bytes: 43_008 }],
                tls: vec!["TLSv1_3 TLS13_AES_128_GCM_SHA256".into()],
            },
        ),
        (7, Event::Job(Box::new(job()))),
        (7, Event::Transfer(Box::new(transfer()))),
        (7, Event::JobRemoved { job_id: JOB.into() }),
        (7, Event::Text { name: "bash".into(), text: "_blobjet() {\n}".into() }),
        (
            7,
            Event::Page {
                names: vec!["SnapshotsPresent".into()],
                statuses: vec![409],
                meaning: "the blob has snapshots".into(),
                causes: vec!["it was not said what becomes of them".into()],
                steps: vec!["add --delete-snapshots=include".into()],
                retried: "no".into(),
            },
        ),
        (7, Event::Access(Box::new(crate::cli::access::Access::example()))),
        (7, Event::Written { path: "man1/blobjet-copy.1".into() }),
    ]
}

#[test]
fn the_documented_lines_are_what_is_written() {
    let document = include_str!("../../../docs/json-output.md");
    // Each in an order that suits its readers.
    let mut documented: Vec<&str> = document.lines().filter(|line| line.starts_with("{\"schema\"")).collect();
    documented.sort_unstable();
    let mut written: Vec<String> = events()
        .iter()
        .map(|(second, event)| event.line(format!("2026-01-02T03:04:{second:02}.678Z").parse().unwrap()))
        .collect();
    written.sort_unstable();
    for (line, example) in written.iter().zip(&documented) {
        assert_eq!(line, example);
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert_eq!(written.len(), documented.len());
}
