//! Block blobs of one container as a sink: joins the engine's objects and the wire's operations.
//!
//! One request for a whole object, nothing asked before or after; all properties travel in the request that creates the blob.

use crate::attributes::{Attributes, Replace};
use crate::endpoint::keep::Keep;
use crate::endpoint::{BlockId, Facts, Finish, Flow, Limits, Payload, Reader, Receipt, Sink, Task, There, Which, mime};
use crate::error::Result;
use crate::rest::blob::{Blob, Written};
use crate::rest::client::{Check, Client};
use crate::rest::location::Location;
use crate::rest::model::BlockListType;
use crate::rest::names::check_blob_name;
use crate::units::MIB;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::atomic::Ordering::Relaxed;

/// Limits of the service version we speak ("Put Blob" and "Put Block", tables by version): 5000 MiB in one request, 50,000
/// blocks of 4000 MiB.
const LIMITS: Limits = Limits { whole: 5000 * MIB, block: 4000 * MIB, blocks: 50_000 };

/// Where content types come from, where none was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentTypes {
    /// From the blob's name ([`mime::guess`]).
    ByName {
        /// The type where the name does not tell: for a single file that of the file's own name, else [`mime::DEFAULT`].
        otherwise: &'static str,
    },
    /// Left to the service, which takes `application/octet-stream`.
    Service,
}

/// A container to write blobs to.
pub struct BlobSink {
    client: Client,
    container: String,
    /// The container, for messages.
    place: Location,
    attributes: Attributes,
    types: ContentTypes,
    keep: Keep,
}

impl BlobSink {
    /// Blobs of `container`, each with these attributes. Whether the container exists is not asked.
    pub fn new(client: Client, container: impl Into<String>, attributes: Attributes, types: ContentTypes) -> Self {
        let container = container.into();
        let place = Location { container: Some(container.clone()), blob: None, ..client.location().clone() };
        BlobSink { client, container, place, attributes, types, keep: Keep::default() }
    }

    /// Keeps this of what the sources carry.
    #[must_use]
    pub fn keeping(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    pub(super) fn blob(&self, target: &str) -> Blob<'_> {
        Blob::new(&self.client, &self.container, target)
    }

    /// What a blob carries: what was asked for, what is kept of its source, and a type by its name.
    pub(super) fn attributes(&self, target: &str, finish: Finish<'_>) -> Result<Attributes> {
        let mut attributes = match finish.source.and_then(|source| source.carried()) {
            Some(carried) => self.keep.merge(&self.attributes, carried)?,
            None => self.attributes.clone(),
        };
        if finish.content_md5.is_some() {
            attributes.content_md5 = finish.content_md5;
        }
        if let (None, ContentTypes::ByName { otherwise }) = (&attributes.content_type, self.types) {
            let guess = match mime::guess(target) {
                mime::DEFAULT => otherwise,
                known => known,
            };
            // The service's own default needs no header.
            attributes.content_type = (guess != mime::DEFAULT).then(|| guess.to_owned());
        }
        Ok(attributes)
    }
}

impl Sink for BlobSink {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn check_name(&self, target: &str) -> Result<()> {
        check_blob_name(target)
    }

    fn put<'a>(&'a self, target: &'a str, payload: Payload, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            let attributes = self.attributes(target, finish)?;
            self.blob(target).put_blob(&payload.data, payload.crc64, &attributes, finish.replace).await.map(receipt)
        })
    }

    fn put_block<'a>(&'a self, target: &'a str, id: BlockId, payload: Payload) -> Task<'a, Result<Receipt>> {
        Box::pin(
            async move { self.blob(target).put_block(WireId::of(&id).as_ref(), &payload.data, payload.crc64).await.map(receipt) },
        )
    }

    fn commit<'a>(&'a self, target: &'a str, ids: &'a [BlockId], finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move {
            let attributes = self.attributes(target, finish)?;
            self.blob(target).put_block_list(ids.iter().map(WireId::of), &attributes, finish.replace).await.map(receipt)
        })
    }

    fn blocks<'a>(&'a self, target: &'a str, which: Which, _: &'a dyn Reader) -> Task<'a, Result<Vec<There>>> {
        Box::pin(async move {
            let which = match which {
                Which::Staged => BlockListType::Uncommitted,
                Which::All => BlockListType::All,
            };
            let mut there = Vec::new();
            let each = |id: &str, len| there.extend(block_id(id).map(|id| There { id, len }));
            self.blob(target).each_block(which, each).await?;
            Ok(there)
        })
    }

    fn clear<'a>(&'a self, target: &'a str, replace: Replace) -> Task<'a, Result<()>> {
        Box::pin(async move { self.blob(target).discard_uncommitted(replace).await })
    }

    fn checks(&self) -> bool {
        self.client.check() != Check::None
    }

    fn look<'a>(&'a self, target: &'a str) -> Task<'a, Result<Option<Facts>>> {
        Box::pin(async move {
            let there = self.blob(target).get_properties().await?;
            Ok(there.map(|there| Facts { len: there.content_length(), modified: there.last_modified() }))
        })
    }

    fn flow(&self) -> Option<Flow> {
        let stats = self.client.stats();
        Some(Flow::counted(stats, stats.bytes_sent.load(Relaxed)))
    }

    fn describe(&self, target: &str) -> String {
        self.place.safe_blob(target).to_string()
    }
}

pub(super) fn receipt(written: Written) -> Receipt {
    Receipt { attempts: written.attempts() }
}

/// 44 characters of base64, the form of the query parameter (before it is percent-encoded) and of the list. On the stack: a commit
/// has up to 50,000 of them.
pub(super) struct WireId([u8; 44]);

impl WireId {
    pub(super) fn of(id: &BlockId) -> WireId {
        let mut text = [0; 44];
        STANDARD.encode_slice(id.0, &mut text).expect("32 bytes are 44 characters");
        WireId(text)
    }
}

impl AsRef<str> for WireId {
    fn as_ref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("base64 is ASCII")
    }
}

/// The id behind what a list has; `None` for ids of another length, which are not ours.
fn block_id(text: &str) -> Option<BlockId> {
    let mut raw = [0; 33];
    let len = STANDARD.decode_slice(text, &mut raw).ok()?;
    raw[..len].try_into().ok().map(BlockId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = BlockId(std::array::from_fn(|i| u8::try_from(i * 8).unwrap()));
        assert_eq!(block_id(WireId::of(&id).as_ref()), Some(id));
        let others =
            [&STANDARD.encode([1; 31])[..], &STANDARD.encode([1; 33]), &STANDARD.encode([1; 64]), "", "AAAA", "no base64!"];
        assert!(others.into_iter().all(|text| block_id(text).is_none()));
    }
}
