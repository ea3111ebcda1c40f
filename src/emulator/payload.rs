//! Stored bytes by handle. What blobs are made of is the same whether the bytes lie in memory, in a file, or were thrown away.

use super::disk::Segment;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A run of bytes somewhere. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// In memory.
    Memory(Bytes),
    /// In a segment file, kept as long as any piece points into it.
    Stored(Extent),
    /// Thrown away; only the length is left.
    Discarded { len: u64 },
    /// Never written: pages of a page blob.
    Zeros { len: u64 },
}

/// A place in a segment file. In the metadata it stands as `[segment, offset, len]`; [`Extent::attach`] finds the file again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub(crate) struct Extent {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) file: Option<Arc<Segment>>,
}

impl From<(u64, u64, u64)> for Extent {
    fn from((segment, offset, len): (u64, u64, u64)) -> Self {
        Extent { segment, offset, len, file: None }
    }
}

impl From<Extent> for (u64, u64, u64) {
    fn from(extent: Extent) -> Self {
        (extent.segment, extent.offset, extent.len)
    }
}

impl Piece {
    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Piece::Memory(bytes) => bytes.len() as u64,
            Piece::Stored(extent) => extent.len,
            Piece::Discarded { len } | Piece::Zeros { len } => *len,
        }
    }

    /// The part from `start` on, `len` bytes long; both lie inside.
    fn slice(&self, start: u64, len: u64) -> Piece {
        match self {
            Piece::Memory(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                let end = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(start).min(bytes.len());
                Piece::Memory(bytes.slice(start..end))
            }
            Piece::Stored(extent) => Piece::Stored(Extent { offset: extent.offset + start, len, ..extent.clone() }),
            Piece::Discarded { .. } => Piece::Discarded { len },
            Piece::Zeros { .. } => Piece::Zeros { len },
        }
    }
}

/// The bytes of a block or a blob: a short list of pieces.
#[derive(Debug, Clone, Default)]
pub(crate) enum Payload {
    #[default]
    Empty,
    One(Piece),
    Many(Arc<[Piece]>),
}

impl Payload {
    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.pieces().iter().map(Piece::len).sum()
    }

    /// The pieces, in order.
    pub(crate) fn pieces(&self) -> &[Piece] {
        match self {
            Payload::Empty => &[],
            Payload::One(piece) => std::slice::from_ref(piece),
            Payload::Many(pieces) => pieces,
        }
    }
}

impl From<Vec<Piece>> for Payload {
    fn from(mut pieces: Vec<Piece>) -> Self {
        pieces.retain(|p| p.len() > 0);
        match pieces.len() {
            0 => Payload::Empty,
            1 => pieces.pop().map_or(Payload::Empty, Payload::One),
            _ => Payload::Many(pieces.into()),
        }
    }
}

/// The part `[start, start + len)` of a run of pieces, as far as it is there.
pub(crate) fn cut<'a>(pieces: impl Iterator<Item = &'a Piece>, start: u64, len: u64) -> Vec<Piece> {
    let end = start.saturating_add(len);
    let mut at = 0u64;
    let mut out = Vec::new();
    for piece in pieces {
        let (from, to) = (at, at + piece.len());
        at = to;
        let (lo, hi) = (from.max(start), to.min(end));
        if lo < hi {
            out.push(piece.slice(lo - from, hi - lo));
        }
        if to >= end {
            break;
        }
    }
    out
}

impl Extent {
    /// Finds the file of a handle that was read back. Returns `false` if there is none.
    pub(crate) fn attach(&mut self, find: &dyn Fn(u64) -> Option<Arc<Segment>>) -> bool {
        self.file = find(self.segment);
        self.file.is_some()
    }
}

/// How a payload stands in the metadata on disk: extents, and `n` for a run of zeros.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Mark {
    Stored(Extent),
    Zeros(u64),
}

impl Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let marks = self.pieces().iter().filter_map(|piece| match piece {
            Piece::Stored(extent) => Some(Mark::Stored(extent.clone())),
            Piece::Zeros { len } => Some(Mark::Zeros(*len)),
            // These kinds belong to storages that keep no metadata on disk.
            Piece::Memory(_) | Piece::Discarded { .. } => None,
        });
        serializer.collect_seq(marks)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let marks = Vec::<Mark>::deserialize(deserializer)?;
        let piece = |mark| match mark {
            Mark::Stored(extent) => Piece::Stored(extent),
            Mark::Zeros(len) => Piece::Zeros { len },
        };
        Ok(marks.into_iter().map(piece).collect::<Vec<_>>().into())
    }
}

impl Payload {
    /// Finds the files of all pieces again after reading metadata back. Returns `false` if one is missing.
    pub(crate) fn attach(&mut self, find: &dyn Fn(u64) -> Option<Arc<Segment>>) -> bool {
        let mut pieces = self.pieces().to_vec();
        let all = pieces.iter_mut().all(|piece| match piece {
            Piece::Stored(extent) => extent.attach(find),
            _ => true,
        });
        *self = pieces.into();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[Piece]) -> String {
        pieces
            .iter()
            .map(|p| match p {
                Piece::Memory(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                other => "0".repeat(usize::try_from(other.len()).unwrap()),
            })
            .collect()
    }

    #[test]
    fn cut_takes_the_range_across_pieces() {
        let pieces = [Piece::Memory(Bytes::from("abc")), Piece::Zeros { len: 2 }, Piece::Memory(Bytes::from("defg"))];
        for (start, len, want) in
            [(0, 9, "abc00defg"), (2, 4, "c00d"), (3, 2, "00"), (8, 1, "g"), (8, 99, "g"), (9, 1, ""), (0, 0, "")]
        {
            assert_eq!(text(&cut(pieces.iter(), start, len)), want, "{start}+{len}");
        }
    }
}
