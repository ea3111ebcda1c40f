//! Operations on one block blob, named as the service names them.
//! Source: "Operations on blobs" and "Operations on block blobs", Azure Storage REST reference, each by its title.

use crate::attributes::{Attributes, Replace};
use crate::chunks::Chunks;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::client::{Client, Op};
use crate::rest::date;
use crate::rest::model::{BlockList, BlockListType, ListedBlock, block_list_xml, unquoted};
use crate::rest::properties::{self, md5_header};
use crate::rest::request::{Request, Response};
use http::{HeaderValue, Method};
use std::time::SystemTime;

/// One blob.
#[derive(Clone)]
pub struct Blob<'a> {
    client: &'a Client,
    path: String,
}

/// What a write answered. Only one that made or replaced a blob names its ETag and last change.
#[derive(Debug, Clone)]
pub struct Written(Response);

impl Written {
    /// Requests it took, 1 at least: more where some were sent again.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// ETag without quotes.
    pub fn etag(&self) -> Option<&str> {
        self.0.header("etag").map(unquoted)
    }

    /// Last change, to the second.
    pub fn last_modified(&self) -> Option<SystemTime> {
        self.0.header("last-modified").and_then(date::parse)
    }
}

/// Properties of a blob.
#[derive(Debug, Clone)]
pub struct BlobProperties(Response);

impl BlobProperties {
    /// Length in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.0.header("content-length")?.parse().ok()
    }

    /// ETag without quotes.
    pub fn etag(&self) -> Option<&str> {
        self.0.header("etag").map(unquoted)
    }

    /// Last change, to the second.
    pub fn last_modified(&self) -> Option<SystemTime> {
        self.0.header("last-modified").and_then(date::parse)
    }

    /// Any property as its header has it, e.g. `content-type` or `x-ms-access-tier`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.header(name)
    }

    /// Metadata, names in lower case as HTTP libraries hand them on.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.headers.iter().filter_map(|(name, value)| Some((name.as_str().strip_prefix("x-ms-meta-")?, value.to_str().ok()?)))
    }
}

/// What Delete Blob does about snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteSnapshots {
    /// Refuse where there are any (409 `SnapshotsPresent`).
    Refuse,
    /// Delete them with the blob.
    Include,
    /// Delete them and keep the blob.
    Only,
}

const PUT_BLOB: Op = Op::new("put blob", Need::WRITE);
const PUT_BLOCK: Op = Op::new("put a block of", Need::WRITE);
const PUT_BLOCK_LIST: Op = Op::new("commit the blocks of", Need::WRITE);
const GET_BLOCK_LIST: Op = Op::new("get the block list of", Need::READ);
const GET_PROPERTIES: Op = Op::new("get properties of", Need::READ);
const DELETE: Op = Op::new("delete blob", Need::DELETE);

/// The operation as it is with these attributes and this condition.
fn op_for(op: Op, attributes: &Attributes, replace: Replace) -> Op {
    let need = if attributes.tags.is_empty() { op.need } else { Need::WRITE_TAGGED };
    Op { need, conditional: replace != Replace::Always, ..op }
}

impl<'a> Blob<'a> {
    /// A blob by its raw names; see [`check_blob_name`](super::names::check_blob_name) for those that cannot be.
    pub fn new(client: &'a Client, container: &str, name: &str) -> Blob<'a> {
        Blob { client, path: client.location().blob_path(container, name) }
    }

    fn request(&self, method: Method) -> Request {
        Request::new(method, self.path.clone())
    }

    /// Put Blob: the whole blob in one request, atomically, with all its properties. `crc64` is over `data`.
    ///
    /// With a condition, a try whose answer was lost may have taken effect, and the next then finds the blob there: that is
    /// settled by its length and the MD5 the service keeps of it. Another writer of the very same bytes cannot be told from us,
    /// and need not be. Needs the right to read; without it the error stays `AlreadyExists`.
    ///
    /// # Errors
    /// `AlreadyExists` by the condition, `TooLarge` over 5000 MiB, `Conflict`, `Corrupt`, and those of
    /// [`Client::send`](super::client::Client::send).
    pub async fn put_blob(&self, data: &Chunks, crc64: u64, attributes: &Attributes, replace: Replace) -> Result<Written> {
        let mut request = self.request(Method::PUT).header("x-ms-blob-type", HeaderValue::from_static("BlockBlob"));
        properties::apply(attributes, replace, &mut request.headers)?;
        match self.client.send(request.checked_body(data.clone(), crc64), op_for(PUT_BLOB, attributes, replace)).await {
            Ok(response) => Ok(Written(response)),
            Err(error) if maybe_ours(&error) => match self.get_properties().await {
                Ok(Some(there)) if there.content_length() == Some(data.len()) && same_md5(&there, data) => {
                    Ok(settled(there.0, &error))
                }
                other => Err(unsettled(error, other.err())),
            },
            Err(error) => Err(error),
        }
    }

    /// Put Block: stages one block. `id` is base64, of the same length for all blocks of a blob. Staging an id again replaces
    /// it, so it is safe to repeat.
    ///
    /// # Errors
    /// `TooLarge` over 4000 MiB, `Conflict` (lease, archived, other blob type), `Corrupt`, and those of
    /// [`Client::send`](super::client::Client::send).
    pub async fn put_block(&self, id: &str, data: &Chunks, crc64: u64) -> Result<Written> {
        let request = self.request(Method::PUT).query("comp", "block").query("blockid", id);
        self.client.send(request.checked_body(data.clone(), crc64), PUT_BLOCK).await.map(Written)
    }

    /// Put Block List: makes the blob from these staged or committed blocks (`Latest`), in this order, atomically, with all its
    /// properties. Safe to repeat.
    ///
    /// With a condition, a try whose answer was lost may have taken effect: that is settled by the committed list, which is ours
    /// if it has our ids. Needs the right to read; without it the error stays `AlreadyExists`.
    ///
    /// # Errors
    /// `AlreadyExists` by the condition, `Refused` with code `InvalidBlockList` where a block is gone, `Conflict`, and those of
    /// [`Client::send`](super::client::Client::send).
    pub async fn put_block_list<I>(&self, ids: I, attributes: &Attributes, replace: Replace) -> Result<Written>
    where
        I: IntoIterator<Item: AsRef<str>> + Clone,
    {
        // Fifty thousand ids are written straight into the body, and gone through again only where the outcome is unsure.
        let body = Chunks::from(block_list_xml(ids.clone()).into_bytes());
        let crc64 = body.crc64();
        let mut request = self.request(Method::PUT).query("comp", "blocklist");
        properties::apply(attributes, replace, &mut request.headers)?;
        match self.client.send(request.checked_body(body, crc64), op_for(PUT_BLOCK_LIST, attributes, replace)).await {
            Ok(response) => Ok(Written(response)),
            Err(error) if maybe_ours(&error) => match self.block_list(BlockListType::Committed).await {
                Ok(Some((list, response))) if is_list(&list.committed, ids) => Ok(settled(response, &error)),
                other => Err(unsettled(error, other.err())),
            },
            Err(error) => Err(error),
        }
    }

    /// Get Block List. `None` where there is neither a blob nor an uncommitted block.
    ///
    /// # Errors
    /// `BadAnswer`, and those of [`Client::send`](super::client::Client::send).
    pub async fn get_block_list(&self, which: BlockListType) -> Result<Option<BlockList>> {
        Ok(self.block_list(which).await?.map(|(list, _)| list))
    }

    async fn block_list(&self, which: BlockListType) -> Result<Option<(BlockList, Response)>> {
        let request = self.request(Method::GET).query("comp", "blocklist").query("blocklisttype", which.as_str());
        match self.client.send(request, GET_BLOCK_LIST).await {
            Ok(response) => {
                let list = BlockList::parse(&response.body).map_err(|e| self.client.bad_answer(GET_BLOCK_LIST, &self.path, e))?;
                Ok(Some((list, response)))
            }
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Get Blob Properties. `None` where there is no blob; one with uncommitted blocks only is none.
    ///
    /// # Errors
    /// Those of [`Client::send`](super::client::Client::send).
    pub async fn get_properties(&self) -> Result<Option<BlobProperties>> {
        match self.client.send(self.request(Method::HEAD), GET_PROPERTIES).await {
            Ok(response) => Ok(Some(BlobProperties(response))),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Delete Blob. Returns whether there was one; a repeated try may find it gone by the first.
    ///
    /// # Errors
    /// `Conflict` for a lease, or snapshots that were to be kept, and those of [`Client::send`](super::client::Client::send).
    pub async fn delete(&self, snapshots: DeleteSnapshots) -> Result<bool> {
        let request = self.request(Method::DELETE);
        let request = match snapshots {
            DeleteSnapshots::Refuse => request,
            DeleteSnapshots::Include => request.header("x-ms-delete-snapshots", HeaderValue::from_static("include")),
            DeleteSnapshots::Only => request.header("x-ms-delete-snapshots", HeaderValue::from_static("only")),
        };
        match self.client.send(request, DELETE).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == Kind::NotFound => Ok(error.attempts().is_some()),
            Err(error) => Err(error),
        }
    }
}

/// Whether a condition failed on a later try, so that an earlier one may have met it.
fn maybe_ours(error: &Error) -> bool {
    error.kind() == Kind::AlreadyExists && error.attempts().is_some()
}

/// Whether these blocks are the ones meant, in this order.
fn is_list(there: &[ListedBlock], ids: impl IntoIterator<Item: AsRef<str>>) -> bool {
    let mut ids = ids.into_iter();
    there.iter().all(|block| ids.next().is_some_and(|id| id.as_ref() == block.id)) && ids.next().is_none()
}

/// An earlier try did it, as looking showed; the tries count, and not the look.
fn settled(looked: Response, error: &Error) -> Written {
    Written(Response { attempts: error.attempts().map_or(1, |tries| tries.count), ..looked })
}

fn same_md5(there: &BlobProperties, data: &Chunks) -> bool {
    there.get("content-md5").is_some_and(|md5| md5_header(data) == md5)
}

fn unsettled(error: Error, looking: Option<Error>) -> Error {
    match looking {
        Some(cause) if cause.kind() == Kind::AccessRefused => error.with_advice(
            "an earlier try may have written it, and the credential may not read to find out: compare it, or allow reading",
        ),
        _ => error,
    }
}
