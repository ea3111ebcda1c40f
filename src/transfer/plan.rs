//! How an object is cut: in one piece or into blocks, and how large the blocks are. Pure: numbers in, numbers out.
//!
//! Blocks never get more than the service takes, neither in size nor in number: where the size is ours to choose it grows, and
//! where it was fixed the object is refused before its first byte, with the size that would do.

use crate::endpoint::{Limits, Same};
use crate::error::{Error, Kind, Result};
use crate::units::{ByteCount, MIB};
use std::num::NonZeroUsize;

/// When a write may replace what is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// Always.
    #[default]
    True,
    /// Never: what is there is skipped.
    False,
    /// Only where the source was changed later than the destination.
    IfSourceNewer,
    /// Where something is there, the job's prompt is asked.
    Prompt,
}

/// What to do about a source that changes while it is sent. A mixture is never committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnChange {
    /// That object fails.
    #[default]
    Fail,
    /// It is opened again and sent anew, a few times; then it fails.
    Retry,
    /// It is sent as long as it was when it was opened: what is appended meanwhile is left for another time, and its time of
    /// change does not matter. One that becomes shorter fails. Right for files that are only ever appended to.
    Snapshot,
}

impl OnChange {
    /// What must still hold of a source before it is committed.
    pub(super) fn must_hold(self) -> Same {
        match self {
            OnChange::Fail | OnChange::Retry => Same::Whole,
            OnChange::Snapshot => Same::Length,
        }
    }
}

/// What the engine was told, or chose.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Size of a block, bytes.
    pub block_size: u64,
    /// Whether the user gave `block_size`: then it is kept or refused, never grown.
    pub block_size_fixed: bool,
    /// Largest object sent in one request, bytes.
    pub whole_limit: u64,
    /// Requests in flight at most.
    pub lanes: NonZeroUsize,
    /// Requests in flight to begin with, where their number is tuned while the job runs; without it there are `lanes` throughout.
    pub lanes_first: Option<NonZeroUsize>,
    /// Block data in memory at most, bytes; mapped data counts.
    pub memory: u64,
    /// What of it is to do where the number of requests is tuned, unless it clearly pays to take more.
    pub memory_easy: u64,
    /// Whether the MD5 of the whole object is stored with it.
    pub put_md5: bool,
    /// What to do where something is there already.
    pub overwrite: Overwrite,
    /// What to do about a source that changes while it is sent.
    pub on_change: OnChange,
}

/// Requests in flight to begin with on a machine with this many cores, where their number is tuned: 4 a core, at least 12 and at
/// most 32. 12 keep two cores busy, hold 96 MiB of blocks, and are few doublings away from what a line of any width needs.
pub fn first_lanes(cores: NonZeroUsize) -> NonZeroUsize {
    within(cores, 4, 12, 32)
}

/// Requests in flight at most on a machine with this many cores, where their number is tuned: 64 a core, at least 256 and at
/// most 1024. At 100 ms a request 256 make 2,560 small objects a second, and with blocks of 8 MiB 170 Gbit/s.
pub fn most_lanes(cores: NonZeroUsize) -> NonZeroUsize {
    within(cores, 64, 256, 1024)
}

fn within(cores: NonZeroUsize, each: usize, least: usize, most: usize) -> NonZeroUsize {
    NonZeroUsize::new(cores.get().saturating_mul(each).clamp(least, most)).unwrap_or(NonZeroUsize::MIN)
}

/// Block data in memory by default: a block for each lane, up to 1 GiB and to what the machine can spare.
pub fn memory_for(lanes: NonZeroUsize, block_size: u64, spare: u64) -> u64 {
    let each = u64::try_from(lanes.get()).unwrap_or(u64::MAX).saturating_mul(block_size);
    each.min(1024 * MIB).min(spare)
}

impl Default for Tuning {
    /// For a small machine, whatever this one is. 8 MiB blocks reach the service's fast path for writes ("high-throughput block
    /// blobs") on every kind of account; 16 of them keep two cores busy within 128 MiB.
    fn default() -> Self {
        let (block_size, lanes) = (8 * MIB, NonZeroUsize::new(16).expect("16 is not 0"));
        Tuning {
            block_size,
            block_size_fixed: false,
            whole_limit: block_size,
            lanes,
            lanes_first: None,
            memory: memory_for(lanes, block_size, u64::MAX),
            memory_easy: u64::MAX,
            put_md5: false,
            overwrite: Overwrite::True,
            on_change: OnChange::Fail,
        }
    }
}

/// How one object of known length is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// In one request.
    Whole,
    /// In blocks of `block_size` bytes, the last one shorter, then a commit.
    Blocks {
        /// Bytes a block.
        block_size: u64,
        /// How many, at least 1.
        count: u32,
    },
}

impl Plan {
    /// Requests it takes when nothing has to be sent again.
    pub fn requests(&self) -> u64 {
        match self {
            Plan::Whole => 1,
            // One asks what an earlier try has staged, one commits.
            Plan::Blocks { count, .. } => u64::from(*count) + 2,
        }
    }
}

/// Decides how an object of `len` bytes is sent.
///
/// # Errors
/// `TooLarge` if it needs more blocks than there may be: with a fixed block size the advice names one that would do.
pub fn plan(len: u64, tuning: &Tuning, limits: &Limits) -> Result<Plan> {
    if len <= tuning.whole_limit.min(limits.whole) {
        return Ok(Plan::Whole);
    }
    let most = u64::from(limits.blocks.max(1));
    let smallest = len.div_ceil(most).max(1);
    if smallest > limits.block {
        return Err(Error::new(
            Kind::TooLarge,
            format!("{} is more than a blob can hold ({} blocks of {})", ByteCount(len), limits.blocks, ByteCount(limits.block)),
        ));
    }
    let mut block_size = tuning.block_size.clamp(1, limits.block);
    if block_size < smallest {
        // Whole MiB where there is room for them: round figures, and pages of the file start on block borders.
        let grown = smallest.div_ceil(MIB).saturating_mul(MIB).min(limits.block);
        if tuning.block_size_fixed {
            let needed = len.div_ceil(block_size);
            return Err(Error::new(
                Kind::TooLarge,
                format!("{} in blocks of {} is {needed} blocks, {most} are allowed", ByteCount(len), ByteCount(block_size)),
            )
            .with_advice(format!("use --block-size-mb {} or more, or leave it out", mib_text(grown))));
        }
        block_size = grown;
    }
    let count = u32::try_from(len.div_ceil(block_size)).expect("at most limits.blocks, a u32");
    // An object under the whole-object limit of the user and over that of the sink still needs its one block.
    Ok(Plan::Blocks { block_size, count: count.max(1) })
}

/// Bytes as the MiB that `--block-size-mb` takes, to four decimals, rounded up.
fn mib_text(bytes: u64) -> String {
    let ten_thousandths = (u128::from(bytes) * 10_000).div_ceil(u128::from(MIB));
    let text = format!("{}.{:04}", ten_thousandths / 10_000, ten_thousandths % 10_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Size of block `index` of a stream whose length is not known; `None` once no more blocks are allowed.
///
/// Starts at the block size and doubles each time a tenth of the allowed blocks is used, up to the memory budget and the
/// largest block. With the defaults (8 MiB, 128 MiB, 50,000 blocks) that holds 4.4 TiB; `--memory` raises it. A fixed block size
/// stays as it is.
pub fn stream_block(index: u32, tuning: &Tuning, limits: &Limits) -> Option<u64> {
    if index >= limits.blocks {
        return None;
    }
    let first = tuning.block_size.clamp(1, limits.block);
    if tuning.block_size_fixed {
        return Some(first);
    }
    let largest = tuning.memory.min(limits.block).max(first);
    let doublings = index / (limits.blocks / 10).max(1);
    let grown = 1u64.checked_shl(doublings).and_then(|factor| first.checked_mul(factor)).unwrap_or(largest);
    Some(grown.min(largest))
}

/// Size of the blocks an object is cut into after the sink refused to take all its `len` bytes at once, not knowing why.
///
/// `told` is the limit the sink named with its refusal. Without one the object is halved, down to 4 MiB a block, which every
/// service version takes.
pub fn smaller_block(len: u64, told: Option<u64>, tuning: &Tuning) -> u64 {
    let limit = told.unwrap_or(4 * MIB).min(tuning.block_size);
    limit.min(len.div_ceil(2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { whole: 5000 * MIB, block: 4000 * MIB, blocks: 50_000 };
    const B: u64 = 8 * MIB;

    fn blocks(block_size: u64, count: u32) -> Plan {
        Plan::Blocks { block_size, count }
    }

    #[test]
    fn sizes_around_the_borders() {
        for (len, expected, requests) in [
            (0, Plan::Whole, 1),
            (1, Plan::Whole, 1),
            (B - 1, Plan::Whole, 1),
            (B, Plan::Whole, 1),
            (B + 1, blocks(B, 2), 4),
            (2 * B, blocks(B, 2), 4),
            (2 * B + 1, blocks(B, 3), 5),
            (5 << 30, blocks(B, 640), 642),
            (50_000 * B, blocks(B, 50_000), 50_002),
            (50_000 * B + 1, blocks(9 * MIB, 44_445), 44_447),
            (50_000 * 4000 * MIB, blocks(4000 * MIB, 50_000), 50_002),
        ] {
            let plan = plan(len, &Tuning::default(), &LIMITS).unwrap();
            assert_eq!((plan, plan.requests()), (expected, requests), "{len} bytes");
        }
    }

    #[test]
    fn thresholds_of_user_and_sink_both_hold() {
        for (len, whole_limit, limits, expected) in [
            (100, 99, LIMITS, blocks(B, 1)),
            (100, 100, LIMITS, Plan::Whole),
            (100 * MIB, 256 * MIB, LIMITS, Plan::Whole),
            (100, 1000, Limits { whole: 99, block: 60, blocks: 10 }, blocks(60, 2)),
            (600, 10, Limits { whole: 99, block: 60, blocks: 10 }, blocks(60, 10)),
        ] {
            let tuning = Tuning { whole_limit, ..Tuning::default() };
            assert_eq!(plan(len, &tuning, &limits).unwrap(), expected, "{len} bytes, whole up to {whole_limit}");
        }
    }

    #[test]
    fn more_than_a_blob_holds_is_refused() {
        let error = plan(50_000 * 4000 * MIB + 1, &Tuning::default(), &LIMITS).unwrap_err();
        assert_eq!(error.kind(), Kind::TooLarge);
    }

    #[test]
    fn a_fixed_block_size_is_kept_or_refused_with_one_that_would_do() {
        let tuning = Tuning { block_size: MIB / 4, block_size_fixed: true, whole_limit: 0, ..Tuning::default() };
        assert_eq!(plan(50_000 * (MIB / 4), &tuning, &LIMITS).unwrap(), blocks(MIB / 4, 50_000));
        for (len, advised) in [(50_000 * (MIB / 4) + 1, "1"), (5 << 40, "105")] {
            let error = plan(len, &tuning, &LIMITS).unwrap_err();
            assert_eq!(error.kind(), Kind::TooLarge);
            assert!(error.advice().unwrap().contains(&format!("--block-size-mb {advised} ")), "{:?}", error.advice());
            let advised = Tuning { block_size: advised.parse::<u64>().unwrap() * MIB, ..tuning.clone() };
            assert!(plan(len, &advised, &LIMITS).is_ok());
        }
    }

    #[test]
    fn mib_are_written_as_the_flag_takes_them() {
        for (bytes, text) in [(MIB, "1"), (105 * MIB, "105"), (MIB / 4, "0.25"), (1, "0.0001"), (MIB + 1, "1.0001")] {
            assert_eq!(mib_text(bytes), text);
        }
    }

    // semantics 9
    #[test]
    fn stream_blocks_grow_within_memory_and_end_at_the_limit() {
        let tuning = Tuning::default();
        for (index, size) in [
            (0, Some(8)),
            (4_999, Some(8)),
            (5_000, Some(16)),
            (9_999, Some(16)),
            (10_000, Some(32)),
            (20_000, Some(128)),
            (25_000, Some(128)),
            (49_999, Some(128)),
            (50_000, None),
        ] {
            assert_eq!(stream_block(index, &tuning, &LIMITS), size.map(|s| s * MIB), "block {index}");
        }
        let total: u64 = (0..50_000).map(|i| stream_block(i, &tuning, &LIMITS).unwrap()).sum();
        assert!(total > 4 << 40, "{total}");
        let roomy = Tuning { memory: 1 << 40, ..Tuning::default() };
        assert_eq!(stream_block(49_999, &roomy, &LIMITS), Some(4000 * MIB));
        let tight = Tuning { memory: MIB, ..Tuning::default() };
        assert_eq!(stream_block(49_999, &tight, &LIMITS), Some(8 * MIB));
        let fixed = Tuning { block_size_fixed: true, ..Tuning::default() };
        assert_eq!(stream_block(49_999, &fixed, &LIMITS), Some(8 * MIB));
    }

    #[test]
    fn after_a_refusal_blocks_are_small_enough() {
        let tuning = Tuning::default();
        for (len, told, size) in [
            (8 * MIB, None, 4 * MIB),
            (6 * MIB, None, 3 * MIB),
            (8 * MIB, Some(MIB), MIB),
            (100 * MIB, Some(64 * MIB), 8 * MIB),
            (1, None, 1),
            (3, None, 2),
        ] {
            assert_eq!(smaller_block(len, told, &tuning), size, "{len} {told:?}");
        }
    }

    #[test]
    fn lanes_and_memory_follow_the_machine() {
        let n = |n| NonZeroUsize::new(n).unwrap();
        for (cores, first, most) in [(1, 12, 256), (2, 12, 256), (4, 16, 256), (8, 32, 512), (128, 32, 1024)] {
            assert_eq!((first_lanes(n(cores)), most_lanes(n(cores))), (n(first), n(most)), "{cores} cores");
        }
        for (lanes, block, spare, memory) in [(16, 8, 4096, 128), (64, 8, 4096, 512), (1000, 8, 4096, 1024), (64, 8, 200, 200)] {
            assert_eq!(memory_for(n(lanes), block * MIB, spare * MIB), memory * MIB, "{lanes} lanes of {block} MiB");
        }
    }
}
