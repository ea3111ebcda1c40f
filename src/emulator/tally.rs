//! What has been asked for so far, by operation: requests, how many were refused, and the bytes that came with them. Counted
//! always, so that a measurement can tell that a client sent what it had to, and once.

use super::route::Op;
use super::state::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// How often an operation was asked for, and with how much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// As the emulator names it: `PutBlob`, `PutBlock`. `Unknown` for what was refused before it had a meaning.
    pub operation: String,
    /// Requests, whatever the answer.
    pub requests: u64,
    /// Those answered with a status of 400 or more.
    pub refused: u64,
    /// Lengths of their bodies as declared, in bytes.
    pub body_bytes: u64,
}

#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    refused: u64,
    body_bytes: u64,
}

/// Counts by operation; `None` is a request that never got as far as to have one.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<Option<Op>, Counts>>);

impl Tally {
    /// Counts a request that has been answered.
    pub(crate) fn count(&self, op: Option<Op>, status: u16, body_bytes: u64) {
        let mut all = lock(&self.0);
        let counts = all.entry(op).or_default();
        counts.requests += 1;
        counts.body_bytes += body_bytes;
        counts.refused += u64::from(status >= 400);
    }

    /// What was asked for, in the order of the operations.
    pub(crate) fn served(&self) -> Vec<Served> {
        let one = |(op, counts): (&Option<Op>, &Counts)| Served {
            operation: op.map_or_else(|| "Unknown".to_owned(), |op| format!("{op:?}")),
            requests: counts.requests,
            refused: counts.refused,
            body_bytes: counts.body_bytes,
        };
        lock(&self.0).iter().map(one).collect()
    }
}
