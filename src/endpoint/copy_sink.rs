//! Block blobs that the service makes of other blobs by itself: the bytes do not pass through here.
//!
//! Small objects are one Put Blob From URL, larger ones Put Block From URL in parallel and then a commit like any other; what they
//! carry is put together by the same function as for uploads. All that does not concern the way of the bytes is [`BlobSink`]'s.

use crate::attributes::Replace;
use crate::chunks::Chunks;
use crate::endpoint::blob::{BlobSink, WireId, receipt};
use crate::endpoint::{BlockId, Facts, Finish, Flow, Limits, Payload, Reader, Receipt, Sink, Span, Task, There, Which};
use crate::error::{Error, Kind, Result};
use crate::rest::from_url::{From, Link};
use crate::units::MIB;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Objects up to this size are copied in one request, larger ones in blocks of it, unless sizes are asked for, bytes. No memory is
/// held for them here; requests of this size are few enough for their number not to matter, and short enough for many to share one
/// object, for the count of bytes to move, and for one that is lost to be cheap.
pub const BLOCK: u64 = 16 * MIB;

/// A container to copy blobs to.
pub struct CopySink {
    sink: BlobSink,
    /// Bytes the service has acknowledged.
    copied: AtomicU64,
}

impl CopySink {
    /// Copies to where this sink writes.
    pub fn new(sink: BlobSink) -> Self {
        CopySink { sink, copied: AtomicU64::new(0) }
    }

    async fn copy_whole(&self, target: &str, span: Span<'_>, finish: Finish<'_>) -> Result<Receipt> {
        let attributes = self.sink.attributes(target, finish)?;
        let carried = span.reader.carried();
        if attributes.metadata.is_empty() && carried.is_some_and(|carried| !carried.metadata.is_empty()) {
            return self.copy_bare(target, span, finish).await;
        }
        let link = link(span.reader)?;
        let from = From { link: &link, etag: span.reader.version(), len: span.len };
        self.sink.blob(target).put_blob_from_url(from, &attributes, finish.replace).await.map(receipt)
    }

    /// A small object without any metadata, of one that has some: Put Blob From URL would take those of the source. What is made
    /// of a block carries nothing but what the commit says.
    async fn copy_bare(&self, target: &str, span: Span<'_>, finish: Finish<'_>) -> Result<Receipt> {
        if span.len == 0 {
            let attributes = self.sink.attributes(target, finish)?;
            return self.sink.blob(target).put_blob(&Chunks::default(), 0, &attributes, finish.replace).await.map(receipt);
        }
        let mut id = BlockId([0; 32]);
        getrandom::fill(&mut id.0).map_err(|e| Error::new(Kind::Local, "cannot get random bytes").with_source(e))?;
        let staged = self.copy_block(target, id, span).await?;
        let made = self.sink.commit(target, &[id], finish).await?;
        Ok(Receipt { attempts: 1 + staged.retries() + made.retries() })
    }

    async fn copy_block(&self, target: &str, id: BlockId, span: Span<'_>) -> Result<Receipt> {
        let link = link(span.reader)?;
        let from = From { link: &link, etag: span.reader.version(), len: span.len };
        self.sink.blob(target).put_block_from_url(WireId::of(&id).as_ref(), from, span.offset).await.map(receipt)
    }

    fn count(&self, len: u64, result: Result<Receipt>) -> Result<Receipt> {
        if result.is_ok() {
            self.copied.fetch_add(len, Relaxed);
        }
        result
    }
}

fn link(reader: &dyn Reader) -> Result<Link> {
    reader.link()?.ok_or_else(|| Error::new(Kind::Unsupported, "the source is not at a service that another one could read"))
}

impl Sink for CopySink {
    fn limits(&self) -> Limits {
        self.sink.limits()
    }

    fn check_name(&self, target: &str) -> Result<()> {
        self.sink.check_name(target)
    }

    fn put<'a>(&'a self, target: &'a str, payload: Payload, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        self.sink.put(target, payload, finish)
    }

    fn put_block<'a>(&'a self, target: &'a str, id: BlockId, payload: Payload) -> Task<'a, Result<Receipt>> {
        self.sink.put_block(target, id, payload)
    }

    fn draws(&self) -> bool {
        true
    }

    fn holds(&self, _len: u64) -> u64 {
        0
    }

    fn draw<'a>(&'a self, target: &'a str, span: Span<'a>, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { self.count(span.len, self.copy_whole(target, span, finish).await) })
    }

    fn draw_block<'a>(&'a self, target: &'a str, id: BlockId, span: Span<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { self.count(span.len, self.copy_block(target, id, span).await) })
    }

    fn commit<'a>(&'a self, target: &'a str, ids: &'a [BlockId], finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        self.sink.commit(target, ids, finish)
    }

    fn blocks<'a>(&'a self, target: &'a str, which: Which, source: &'a dyn Reader) -> Task<'a, Result<Vec<There>>> {
        self.sink.blocks(target, which, source)
    }

    fn clear<'a>(&'a self, target: &'a str, replace: Replace) -> Task<'a, Result<()>> {
        self.sink.clear(target, replace)
    }

    fn checks(&self) -> bool {
        self.sink.checks()
    }

    fn look<'a>(&'a self, target: &'a str) -> Task<'a, Result<Option<Facts>>> {
        self.sink.look(target)
    }

    /// The bytes are those acknowledged: what is under way between the services cannot be seen from here.
    fn flow(&self) -> Option<Flow> {
        self.sink.flow().map(|flow| Flow { moved: self.copied.load(Relaxed), ..flow })
    }

    fn describe(&self, target: &str) -> String {
        self.sink.describe(target)
    }
}
