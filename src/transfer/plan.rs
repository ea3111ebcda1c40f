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
    /// Block data in memory at most, bytes; mapped data counts.
    pub memory: u64,
    /// Whether the MD5 of the whole object is stored with it.
    pub put_md5: bool,
    /// What to do where something is there already.
    pub overwrite: Overwrite,
    /// What to do about a source that changes while it is sent.
    pub on_change: OnChange,
}

/// Requests in flight on a machine with this many cores: 8 a core, at least 16 and at most 64. The service gives one connection
/// some 0.2 to 0.4 Gbit/s, so that 16 fill a line of 5 Gbit/s, and more cores mostly come with a faster one.
pub fn lanes_for(cores: NonZeroUsize) -> NonZeroUsize {
    const LEAST: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not 0");
    const MOST: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");
    const A_CORE: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not 0");
    cores.saturating_mul(A_CORE).clamp(LEAST, MOST)
}

/// Block data in memory by default: a block for each lane, up to 1 GiB, and never less than two of the largest pieces, which
/// make a pipeline.
pub fn memory_for(lanes: NonZeroUsize, block_size: u64, whole_limit: u64) -> u64 {
    let each = u64::try_from(lanes.get()).unwrap_or(u64::MAX).saturating_mul(block_size);
    each.min(1024 * MIB).max(block_size.max(whole_limit).saturating_mul(2))
}

impl Default for Tuning {
    /// For a small machine, whatever this one is. 8 MiB blocks reach the service's fast path for writes ("high-throughput block
    /// blobs") on every kind of account; 16 of them keep two cores busy within 128 MiB.
    fn default() -> Self {
        let (block_size, lanes) = (8 * MIB, lanes_for(NonZeroUsize::MIN));
        Tuning {
            block_size,
            block_size_fixed: false,
            whole_limit: block_size,
            lanes,
            memory: memory_for(lanes, block_size, block_size),
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
            Plan::Blocks { count, .. } => u64::from(*count) + 1,
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
            (B + 1, blocks(B, 2), 3),
            (2 * B, blocks(B, 2), 3),
            (2 * B + 1, blocks(B, 3), 4),
            (5 << 30, blocks(B, 640), 641),
            (50_000 * B, blocks(B, 50_000), 50_001),
            (50_000 * B + 1, blocks(9 * MIB, 44_445), 44_446),
            (50_000 * 4000 * MIB, blocks(4000 * MIB, 50_000), 50_001),
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
        for (cores, lanes) in [(1, 16), (2, 16), (4, 32), (8, 64), (128, 64)] {
            assert_eq!(lanes_for(n(cores)), n(lanes), "{cores} cores");
        }
        for (lanes, block, whole, memory) in
            [(16, 8, 8, 128), (64, 8, 8, 512), (1000, 8, 8, 1024), (4, 1, 256, 512), (1, 4000, 8, 8000)]
        {
            assert_eq!(memory_for(n(lanes), block * MIB, whole * MIB), memory * MIB, "{lanes} lanes of {block} MiB");
        }
    }
}
