//! The account of one object's staged blocks: which ids, how many bytes, and whether it is complete.
//!
//! A commit gets its list from here or not at all: ids in order, none missing, none twice, and lengths that add up.

use crate::endpoint::BlockId;
use crate::error::{Error, Kind, Result};

/// Blocks acknowledged so far.
#[derive(Debug, Default)]
pub(super) struct Staged {
    ids: Vec<Option<BlockId>>,
    acknowledged: u32,
    bytes: u64,
    total: Option<Total>,
    taken: bool,
}

/// What has to be there in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) count: u32,
    pub(super) bytes: u64,
}

impl Staged {
    /// An account that knows its end from the start.
    pub(super) fn of(total: Total) -> Self {
        Staged { total: Some(total), ..Staged::default() }
    }

    /// Says what has to be there; for a stream, once it has ended.
    pub(super) fn ends_at(&mut self, total: Total) {
        self.total = Some(total);
    }

    /// Enters an acknowledged block.
    ///
    /// # Errors
    /// `BadAnswer` if that index was entered before.
    pub(super) fn enter(&mut self, index: u32, id: BlockId, bytes: u64) -> Result<()> {
        let at = usize::try_from(index).map_err(|e| Error::new(Kind::TooLarge, "block index").with_source(e))?;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, None);
        }
        if self.ids[at].replace(id).is_some() {
            return Err(Error::new(Kind::BadAnswer, format!("block {index} was acknowledged twice")));
        }
        self.acknowledged += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes back a list that could not be committed: of what is `gone` each block has to be entered anew. `len_of` is a block's
    /// length.
    pub(super) fn reopen(&mut self, ids: Vec<BlockId>, gone: &[u32], len_of: impl Fn(u32) -> u64) {
        self.ids = ids.into_iter().map(Some).collect();
        for &index in gone {
            if let Some(entry) = usize::try_from(index).ok().and_then(|at| self.ids.get_mut(at))
                && entry.take().is_some()
            {
                self.acknowledged -= 1;
                self.bytes -= len_of(index);
            }
        }
        self.taken = false;
    }

    /// The list to commit, to the one caller that finds it complete; `None` before that and after.
    ///
    /// # Errors
    /// `SourceChanged` if all blocks are there and their lengths do not add up.
    pub(super) fn take_complete(&mut self) -> Result<Option<Vec<BlockId>>> {
        let Some(total) = self.total.filter(|total| self.acknowledged >= total.count && !self.taken) else {
            return Ok(None);
        };
        self.taken = true;
        let ids: Vec<BlockId> = std::mem::take(&mut self.ids).into_iter().flatten().collect();
        let found = Total { count: u32::try_from(ids.len()).unwrap_or(u32::MAX), bytes: self.bytes };
        if found != total {
            let text = format!(
                "{} blocks of {} bytes were staged, {} blocks of {} bytes are the object",
                found.count, found.bytes, total.count, total.bytes
            );
            return Err(Error::new(Kind::SourceChanged, text));
        }
        Ok(Some(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> BlockId {
        BlockId([n; 32])
    }

    #[test]
    fn complete_once_and_in_order() {
        let mut staged = Staged::of(Total { count: 3, bytes: 25 });
        for (index, bytes) in [(2, 5), (0, 10)] {
            staged.enter(index, id(u8::try_from(index).unwrap()), bytes).unwrap();
            assert_eq!(staged.take_complete().unwrap(), None);
        }
        staged.enter(1, id(1), 10).unwrap();
        assert_eq!(staged.take_complete().unwrap(), Some(vec![id(0), id(1), id(2)]));
        assert_eq!(staged.take_complete().unwrap(), None);
    }

    #[test]
    fn what_is_gone_has_to_be_entered_anew() {
        let mut staged = Staged::of(Total { count: 3, bytes: 25 });
        for (index, bytes) in [(0, 10), (1, 10), (2, 5)] {
            staged.enter(index, id(u8::try_from(index).unwrap()), bytes).unwrap();
        }
        let ids = staged.take_complete().unwrap().unwrap();
        staged.reopen(ids, &[0, 2, 2], |index| if index == 2 { 5 } else { 10 });
        assert_eq!(staged.take_complete().unwrap(), None);
        staged.enter(2, id(9), 5).unwrap();
        staged.enter(0, id(8), 10).unwrap();
        assert_eq!(staged.take_complete().unwrap(), Some(vec![id(8), id(1), id(9)]));
    }

    #[test]
    fn a_block_twice_is_an_error() {
        let mut staged = Staged::of(Total { count: 2, bytes: 2 });
        staged.enter(1, id(1), 1).unwrap();
        assert!(staged.enter(1, id(2), 1).is_err());
    }

    #[test]
    fn gaps_and_wrong_sums_are_never_committed() {
        let mut wrong_sum = Staged::of(Total { count: 1, bytes: 10 });
        wrong_sum.enter(0, id(0), 9).unwrap();
        assert_eq!(wrong_sum.take_complete().unwrap_err().kind(), Kind::SourceChanged);
        let mut beyond = Staged::of(Total { count: 1, bytes: 10 });
        beyond.enter(0, id(0), 5).unwrap();
        beyond.enter(1, id(1), 5).unwrap();
        assert!(beyond.take_complete().is_err());
    }

    #[test]
    fn a_stream_is_complete_only_after_its_end_is_known() {
        let mut staged = Staged::default();
        staged.enter(0, id(0), 4).unwrap();
        assert_eq!(staged.take_complete().unwrap(), None);
        staged.ends_at(Total { count: 1, bytes: 4 });
        assert_eq!(staged.take_complete().unwrap(), Some(vec![id(0)]));
    }
}
