//! What an earlier try left at the destination: staged blocks that came from the same source, for the next try to take over.
//!
//! No state is kept for this but what the sink keeps of blocks. A block's id says what it came from (length, time, block size), which block it is and what its
//! CRC is; whoever has read the same block of the same source and has the same CRC need not send it. Which run wrote it does
//! not matter, only that it was checked when it was staged. Asking costs one request an object of several blocks, and none
//! where it was once refused.

use crate::endpoint::{BlockId, Reader, Which};
use crate::error::{Error, Kind, Result};
use crate::transfer::block_id::{BlockName, Fingerprint, Trust};
use crate::transfer::engine::Shared;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a job may ask what is staged: it stops to after a refusal.
#[derive(Debug, Default)]
pub(super) struct Asking {
    refused: AtomicBool,
}

/// The blocks of one object that are staged already.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Sorted by index.
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    index: u32,
    /// `None` where the source is pinned.
    crc64: Option<u64>,
    len: u64,
    id: BlockId,
}

impl Earlier {
    /// Asks the sink. What cannot be found out is not there: the blocks are sent then, as they would be anyway.
    ///
    /// # Errors
    /// `Unreachable`: nothing else would fare better.
    pub(super) async fn ask(shared: &Shared, target: &str, reader: &dyn Reader, source: Fingerprint) -> Result<Self> {
        let refused = &shared.asking.refused;
        if refused.load(Ordering::Relaxed) {
            return Ok(Earlier::default());
        }
        match shared.job.sink.blocks(target, Which::Staged, reader).await {
            Ok(there) => Ok(Earlier::of(there.into_iter().map(|block| (block.id, block.len)), source)),
            Err(error) if error.kind() == Kind::Unreachable => Err(error),
            Err(error) => {
                if refuses_all(&error) {
                    refused.store(true, Ordering::Relaxed);
                }
                tracing::debug!(%error, "cannot see what an earlier try has staged: all blocks are sent");
                Ok(Earlier::default())
            }
        }
    }

    fn of(there: impl Iterator<Item = (BlockId, u64)>, source: Fingerprint) -> Self {
        let ours = there.filter_map(|(id, len)| {
            let name = BlockName::parse(&id.0).filter(|name| name.fingerprint == source)?;
            let crc64 = match name.trust {
                Trust::Checked => Some(name.crc64),
                Trust::Pinned => None,
                Trust::Unchecked => return None,
            };
            Some(Block { index: name.index, crc64, len, id })
        });
        let mut blocks: Vec<Block> = ours.collect();
        blocks.sort_unstable_by_key(|block| block.index);
        Earlier { blocks }
    }

    /// A staged block that has what block `index` has now: the same CRC, or, without one, the same version of the source.
    pub(super) fn find(&self, index: u32, crc64: Option<u64>, len: u64) -> Option<BlockId> {
        let from = self.blocks.partition_point(|block| block.index < index);
        let candidates = self.blocks[from..].iter().take_while(|block| block.index == index);
        candidates.into_iter().find(|block| block.crc64 == crc64 && block.len == len).map(|block| block.id)
    }
}

/// Whether a refusal concerns the credential or the service rather than this one object.
fn refuses_all(error: &Error) -> bool {
    matches!(error.kind(), Kind::AccessRefused | Kind::Unsupported | Kind::Refused | Kind::BadAnswer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::block_id::Nonce;

    fn name(index: u32, nonce: u8, crc64: u64) -> BlockName {
        BlockName { fingerprint: Fingerprint([1; 8]), nonce: Nonce([nonce; 8]), index, crc64, trust: Trust::Checked }
    }

    #[test]
    fn a_block_is_taken_over_if_source_index_crc_and_length_are_the_same() {
        let other_source = BlockName { fingerprint: Fingerprint([2; 8]), ..name(4, 1, 40) };
        let unchecked = BlockName { trust: Trust::Unchecked, ..name(5, 1, 50) };
        let pinned = BlockName { trust: Trust::Pinned, ..name(6, 1, 0) };
        let there = [
            (name(3, 1, 30), 8),
            (name(0, 1, 10), 8),
            (name(0, 2, 11), 8),
            (name(1, 2, 20), 7),
            (other_source, 8),
            (unchecked, 8),
            (pinned, 8),
        ];
        let ids = there.iter().map(|(name, len)| (name.build(), *len)).chain([(BlockId([b'x'; 32]), 8)]);
        let earlier = Earlier::of(ids, Fingerprint([1; 8]));
        for (index, crc64, len, found) in [
            (0, 10, 8, Some(name(0, 1, 10))),
            (0, 11, 8, Some(name(0, 2, 11))),
            (0, 12, 8, None),
            (1, 20, 7, Some(name(1, 2, 20))),
            (1, 20, 8, None),
            (2, 30, 8, None),
            (3, 30, 8, Some(name(3, 1, 30))),
            (4, 40, 8, None),
            (5, 50, 8, None),
            (6, 0, 8, None),
            (7, 0, 8, None),
        ] {
            assert_eq!(
                earlier.find(index, Some(crc64), len),
                found.map(|name| name.build()),
                "block {index}, crc {crc64}, {len} bytes"
            );
        }
        assert_eq!(earlier.find(6, None, 8), Some(pinned.build()));
        assert_eq!((earlier.find(6, None, 7), earlier.find(0, None, 8)), (None, None));
    }
}
