//! What a blob is: its content by handle, and the facts about it. Plain data; the rules are in `ops`.

use super::lease::Lease;
use super::payload::{Payload, Piece, cut};
use super::time::Ticks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The three kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[default]
    Block,
    Append,
    Page,
}

impl Kind {
    /// As in `x-ms-blob-type` and `BlobType`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Block => "BlockBlob",
            Kind::Append => "AppendBlob",
            Kind::Page => "PageBlob",
        }
    }
}

/// A committed blob or a snapshot of one.
///
/// Small, because a store that discards content holds millions: what most blobs share is behind `facts`, shared between blobs
/// that look alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Blob {
    /// The tick of the last change; unique in the store.
    pub(crate) etag: Ticks,
    pub(crate) modified: Ticks,
    pub(crate) created: Ticks,
    /// Stored MD5 of the content, as a property.
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) content: Content,
    pub(crate) facts: Arc<Facts>,
}

/// The bytes of a blob, as they were put together.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Content {
    /// Put Blob.
    Whole(Payload),
    /// Put Block List.
    Blocks(Arc<[Block]>),
    /// Append Block: one payload a call.
    Appended(Arc<Vec<Payload>>),
    /// Put Page: the written runs by offset; they do not overlap.
    Pages { len: u64, written: Arc<BTreeMap<u64, Payload>> },
}

/// A block with its name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Block {
    /// Base64, as in the query and in lists.
    pub(crate) id: Box<str>,
    pub(crate) payload: Payload,
}

/// All else that is known of a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) cache_control: Option<String>,
    /// Names as they were sent (their case is kept), in the order they were sent.
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) tier: Option<Tier>,
    pub(crate) lease: Option<Lease>,
    pub(crate) copy: Option<CopyState>,
    /// `x-ms-encryption-key-sha256` of the customer's key it was written with.
    pub(crate) key_sha256: Option<String>,
    pub(crate) encryption_scope: Option<String>,
    pub(crate) sequence_number: u64,
    pub(crate) sealed: bool,
    /// Deleted, but kept for a while because the account says so.
    #[serde(default)]
    pub(crate) deleted: Option<Deleted>,
}

/// When something was deleted, and how long it can be had back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deleted {
    pub(crate) at: Ticks,
    pub(crate) until: Ticks,
}

/// A tier that was asked for; a block blob without one is Hot, inferred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tier {
    pub(crate) name: String,
    pub(crate) changed: Ticks,
    /// While a blob comes out of the archive: the tier it goes to, and the priority.
    pub(crate) rehydrating: Option<(String, String)>,
}

/// What became of the copy that made a blob. Copies here are done before they are answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyState {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) completed: Ticks,
    pub(crate) len: u64,
}

impl Content {
    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Content::Whole(payload) => payload.len(),
            Content::Blocks(blocks) => blocks.iter().map(|b| b.payload.len()).sum(),
            Content::Appended(payloads) => payloads.iter().map(Payload::len).sum(),
            Content::Pages { len, .. } => *len,
        }
    }

    /// The pieces of the range `[start, start + len)`, as far as it is there.
    pub(crate) fn range(&self, start: u64, len: u64) -> Vec<Piece> {
        match self {
            Content::Whole(payload) => cut(payload.pieces().iter(), start, len),
            Content::Blocks(blocks) => cut(blocks.iter().flat_map(|b| b.payload.pieces()), start, len),
            Content::Appended(payloads) => cut(payloads.iter().flat_map(Payload::pieces), start, len),
            Content::Pages { len: total, written } => cut(pages(*total, written).iter(), start, len),
        }
    }

    /// Every payload, for finding the files again.
    pub(crate) fn each_payload(&mut self, see: &mut dyn FnMut(&mut Payload) -> bool) -> bool {
        match self {
            Content::Whole(payload) => see(payload),
            Content::Blocks(blocks) => {
                let mut all: Vec<Block> = blocks.to_vec();
                let found = all.iter_mut().all(|b| see(&mut b.payload));
                *blocks = all.into();
                found
            }
            Content::Appended(payloads) => Arc::make_mut(payloads).iter_mut().all(see),
            Content::Pages { written, .. } => Arc::make_mut(written).values_mut().all(see),
        }
    }
}

/// The whole of a page blob as pieces, zeros where nothing was written.
fn pages(total: u64, written: &BTreeMap<u64, Payload>) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut at = 0;
    for (&start, payload) in written {
        if start > at {
            out.push(Piece::Zeros { len: start - at });
        }
        out.extend_from_slice(payload.pieces());
        at = start + payload.len();
    }
    if total > at {
        out.push(Piece::Zeros { len: total - at });
    }
    out
}

/// Replaces `[start, start + len)` of a page blob's runs by `with` (or clears it); what lies outside stays.
pub(crate) fn write_pages(written: &mut BTreeMap<u64, Payload>, start: u64, len: u64, with: Option<Payload>) {
    let end = start + len;
    let touched: Vec<u64> = written.range(..end).filter(|(at, run)| *at + run.len() > start).map(|(at, _)| *at).collect();
    for at in touched {
        let Some(run) = written.remove(&at) else { continue };
        let run_end = at + run.len();
        if at < start {
            written.insert(at, cut(run.pieces().iter(), 0, start - at).into());
        }
        if run_end > end {
            written.insert(end, cut(run.pieces().iter(), end - at, run_end - end).into());
        }
    }
    if let Some(payload) = with {
        written.insert(start, payload);
    }
}

impl Blob {
    /// The kind of blob.
    pub(crate) fn kind(&self) -> Kind {
        self.facts.kind
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.content.len()
    }

    /// Whether it is there for everybody, not only to be undeleted.
    pub(crate) fn is_live(&self) -> bool {
        self.facts.deleted.is_none()
    }

    /// The facts, to be changed; no longer shared.
    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_replaced_where_written_and_kept_elsewhere() {
        let run = |text: &'static str| Payload::One(Piece::Memory(text.into()));
        let mut written = BTreeMap::new();
        write_pages(&mut written, 2, 4, Some(run("abcd")));
        write_pages(&mut written, 8, 2, Some(run("yz")));
        write_pages(&mut written, 3, 2, Some(run("XY")));
        write_pages(&mut written, 5, 4, None);
        let content = Content::Pages { len: 12, written: Arc::new(written) };
        let bytes = |piece: Piece| match piece {
            Piece::Memory(bytes) => bytes.to_vec(),
            other => vec![b'0'; usize::try_from(other.len()).unwrap()],
        };
        let text: Vec<u8> = content.range(0, 12).into_iter().flat_map(bytes).collect();
        assert_eq!(text, b"00aXY0000z00");
    }
}
