//! Discarding uncommitted blocks under a name, which the service has no operation for.
//!
//! Blocks that nobody committed bar a name to writers whose ids have another length, for a week. Two operations drop them as a
//! side effect, and here each is held to leave everything else as it is: where a blob is committed, its own block list is
//! committed again, with all its properties, under `If-Match`; where none is, Delete Blob takes away the uncommitted blob, under
//! `If-None-Match: *`, so that a blob that appears meanwhile is not touched. Where either cannot be sure to change nothing,
//! nothing is done.
//!
//! Sources: "Put Block List", "Delete Blob", "Specifying conditional headers for Blob service operations". That Delete Blob
//! heeds `If-None-Match: *` on a name with uncommitted blocks only follows from those pages; it is not in our recordings.

use crate::attributes::{Attributes, Replace};
use crate::chunks::Chunks;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::blob::{Blob, BlobProperties};
use crate::rest::client::Op;
use crate::rest::headers::HeaderList;
use crate::rest::model::blocks::committed_list_xml;
use crate::rest::model::{BlockList, BlockListType};
use crate::rest::properties;
use http::Method;
use http::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};

const COMMIT_AGAIN: Op = Op { conditional: true, ..Op::new("commit again the blocks of", Need::WRITE_TAGGED) };
const DROP: Op = Op { conditional: true, ..Op::new("drop the uncommitted blocks of", Need::DELETE) };

/// What a blob may carry that a commit sets, or that stays by itself. A blob with another property of its own may lose it by a
/// commit, so it is left alone.
const UNKNOWN_KEPT: [&str; 3] = ["x-ms-encryption-key-sha256", "x-ms-expiry-time", "x-ms-immutability-policy-until-date"];

impl Blob<'_> {
    /// Drops all uncommitted blocks. What is committed keeps its content, its properties, metadata (names in lower case, as
    /// answers are read here), tags and tier; it gets a new ETag and time of change. An upload of another program that is under
    /// way to this name loses its blocks, as it would by any commit.
    ///
    /// `replace` is the condition of the write that is to follow: one that goes by the time of change bars this.
    ///
    /// # Errors
    /// `Conflict` where it would not be safe, `AccessRefused` where a right is missing, `AlreadyExists` where somebody wrote
    /// meanwhile, each with advice; and those of [`Client::send`](super::client::Client::send).
    pub async fn discard_uncommitted(&self, replace: Replace) -> Result<()> {
        match self.block_list(BlockListType::Committed).await.map_err(|e| advise(e, "read (r)"))? {
            None => Ok(()),
            // Without a committed blob the list has no ETag.
            Some((_, answer)) if answer.header("etag").is_none() => self.drop_uncommitted().await,
            Some((list, answer)) => {
                if replace != Replace::Always {
                    return Err(
                        self.barred("a blob is there, and it may be replaced only under a condition that this would change")
                    );
                }
                self.commit_again(&list, answer.header("etag").unwrap_or_default()).await
            }
        }
    }

    async fn drop_uncommitted(&self) -> Result<()> {
        let mut request = self.request(Method::DELETE);
        request.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        match self.client.send(request, DROP).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            Err(error) => Err(advise(error, "delete (d)")),
        }
    }

    async fn commit_again(&self, list: &BlockList, etag: &str) -> Result<()> {
        let there = self.get_properties().await.map_err(|e| advise(e, "read (r)"))?;
        let there = there.filter(|there| there.get("etag") == Some(etag));
        let there = there.ok_or_else(|| self.barred("somebody else writes to it"))?;
        if list.committed.iter().map(|block| block.size).sum::<u64>() != there.content_length().unwrap_or(u64::MAX) {
            return Err(self.barred("the blob there was not written in blocks, and cannot be committed again as it is"));
        }
        let mut attributes = self.attributes_of(&there)?;
        attributes.tags = self.get_tags().await.map_err(|e| advise(e, "tags (t)"))?.0;

        let body = Chunks::from(committed_list_xml(list.committed.iter().map(|block| block.id.as_str())).into_bytes());
        let crc64 = body.crc64();
        let mut request = self.request(Method::PUT).query("comp", "blocklist");
        properties::apply(&attributes, Replace::Always, &mut request.headers)?;
        copy(&there, "x-ms-encryption-scope", &mut request.headers);
        let etag = HeaderValue::from_str(etag).map_err(|_| self.barred("its ETag cannot stand in a header"))?;
        request.headers.insert(IF_MATCH, etag);
        self.client.send(request.checked_body(body, crc64), COMMIT_AGAIN).await.map(drop)
    }

    /// What a commit has to carry so that the blob keeps what it has. The tier stays by itself.
    fn attributes_of(&self, there: &BlobProperties) -> Result<Attributes> {
        if there.get("x-ms-blob-type") != Some("BlockBlob") || UNKNOWN_KEPT.iter().any(|name| there.get(name).is_some()) {
            return Err(self.barred("the blob there has a property that would not survive"));
        }
        there.attributes().map_err(|why| self.barred(why))
    }

    fn barred(&self, why: &str) -> Error {
        Error::new(Kind::Conflict, format!("{}: {why}", self.client.doing(DROP, &self.path))).with_advice(OTHER_WAYS)
    }
}

const OTHER_WAYS: &str = "send it in one request, which drops them: --put-blob-size-mb of at least its size; or wait a week, after which the service does";

fn advise(error: Error, right: &str) -> Error {
    match error.kind() {
        Kind::AccessRefused => error.with_advice(format!("dropping them needs the right to {right}; or {OTHER_WAYS}")),
        _ => error.with_advice(OTHER_WAYS),
    }
}

fn copy(there: &BlobProperties, name: &'static str, headers: &mut HeaderList) {
    if let Some(value) = there.get(name).and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
