//! Operations on one block blob, named as the service names them.
//! Source: "Operations on blobs" and "Operations on block blobs", Azure Storage REST reference, each by its title.

use crate::attributes::{Attributes, Replace};
use crate::chunks::Chunks;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::client::{Client, Op};
use crate::rest::date;
use crate::rest::headers::text;
use crate::rest::model::{BlockList, BlockListType, BlockState, ListedBlock, XmlError, block_list_xml, each_block, unquoted};
use crate::rest::properties::{self, md5_header};
use crate::rest::request::{Request, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderValue, Method};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// One blob.
#[derive(Clone)]
pub struct Blob<'a> {
    pub(super) client: &'a Client,
    pub(super) path: String,
}

/// What a write answered. Only one that made or replaced a blob names its ETag and last change.
#[derive(Debug, Clone)]
pub struct Written(pub(super) Response);

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
pub struct BlobProperties(pub(super) Response);

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

    /// Whether its last change was after this moment, by the clock of the service; times there are whole seconds.
    pub(super) fn is_since(&self, moment: Instant) -> bool {
        let now = self.0.header("date").and_then(date::parse);
        let (Some(now), Some(changed)) = (now, self.last_modified()) else { return true };
        changed + moment.elapsed() + Duration::from_secs(1) >= now
    }

    /// The headers of an answer about something that has properties, as a container has.
    pub fn of(answer: Response) -> BlobProperties {
        BlobProperties(answer)
    }

    /// All headers that are text, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.headers.iter().filter_map(|(name, value)| Some((name, text(value)?)))
    }

    /// Any property as its header has it, e.g. `content-type` or `x-ms-access-tier`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.header(name)
    }

    /// Whether every header could be read as text: what could not is missing from [`BlobProperties::get`] and
    /// [`BlobProperties::metadata`].
    pub fn all_text(&self) -> bool {
        self.0.headers.iter().all(|(_, value)| text(value).is_some())
    }

    /// What it carries, as far as a write can set it: without tags, which are asked for apart, and tier. Metadata names are in
    /// lower case.
    ///
    /// # Errors
    /// Why it cannot be written back as it is: not plain text, or an MD5 that is none.
    pub fn attributes(&self) -> Result<Attributes, &'static str> {
        if !self.all_text() {
            return Err("the blob there has a property that is not plain text");
        }
        let plain = |name: &str| self.get(name).map(str::to_owned);
        let content_md5 = match self.get("content-md5") {
            None => None,
            Some(text) => {
                let md5 = BASE64.decode(text).ok().and_then(|raw| <[u8; 16]>::try_from(raw).ok());
                Some(md5.ok_or("the MD5 stored with the blob there cannot be read")?)
            }
        };
        Ok(Attributes {
            content_type: plain("content-type"),
            content_encoding: plain("content-encoding"),
            content_language: plain("content-language"),
            content_disposition: plain("content-disposition"),
            cache_control: plain("cache-control"),
            content_md5,
            metadata: self.metadata().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..Attributes::default()
        })
    }

    /// Metadata, names in lower case as HTTP libraries hand them on.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all().filter_map(|(name, value)| Some((name.strip_prefix("x-ms-meta-")?, value)))
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
pub(super) const DELETE: Op = Op::new("delete blob", Need::DELETE);

/// The operation as it is with these attributes and this condition.
pub(super) fn op_for(op: Op, attributes: &Attributes, replace: Replace) -> Op {
    let need = if attributes.tags.is_empty() { op.need } else { Need::WRITE_TAGGED };
    Op { need, conditional: replace != Replace::Always, ..op }
}

impl<'a> Blob<'a> {
    /// A blob by its raw names; see [`check_blob_name`](super::names::check_blob_name) for those that cannot be.
    pub fn new(client: &'a Client, container: &str, name: &str) -> Blob<'a> {
        Blob { client, path: client.location().blob_path(container, name) }
    }

    pub(super) fn request(&self, method: Method) -> Request {
        Request::new(method, self.path.clone())
    }

    /// Put Blob: the whole blob in one request, atomically, with all its properties. `crc64` is over `data`.
    ///
    /// With a condition, or a SAS that can create and not overwrite, a try whose answer was lost may have taken effect, and the
    /// next then finds the blob there: that is settled by its length, the MD5 the service keeps of it, and the time of its last
    /// change, which must not be before the first try. Another writer of the very same bytes at the same time cannot be told
    /// from us, and need not be. Needs the right to read; without it the error stays.
    ///
    /// # Errors
    /// `AlreadyExists` by the condition, `TooLarge` over 5000 MiB, `Conflict`, `Corrupt`, and those of
    /// [`Client::send`](super::client::Client::send).
    pub async fn put_blob(&self, data: &Chunks, crc64: u64, attributes: &Attributes, replace: Replace) -> Result<Written> {
        let started = Instant::now();
        let mut request = self.request(Method::PUT).header("x-ms-blob-type", HeaderValue::from_static("BlockBlob"));
        properties::apply(attributes, replace, &mut request.headers)?;
        match self.client.send(request.checked_body(data.clone(), crc64), op_for(PUT_BLOB, attributes, replace)).await {
            Ok(response) => Ok(Written(response)),
            Err(error) if maybe_made_by_us(&error) => match self.get_properties().await {
                Ok(Some(there)) if has(&there, data) && there.is_since(started) => Ok(settled(there.0, &error)),
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
    /// A try whose answer was lost may have taken effect, and a later one is refused for that, or its answer lost as well: that is
    /// settled by the committed list, which is ours if it has our ids. Needs the right to read; without it the error stays.
    ///
    /// # Errors
    /// `AlreadyExists` by the condition, `BlocksMissing` where a block is gone, `Conflict`, and those of
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
            Err(error) if maybe_ours(&error) || gave_up(&error) => match self.committed_in_time(&error).await {
                Ok(Some((list, response))) if is_list(&list.committed, ids) => Ok(settled(response, &error)),
                other => Err(unsettled(error, other.err())),
            },
            Err(error) => Err(error),
        }
    }

    /// The committed list after a write ended with `error`. After giving up the service has been given all the time it gets.
    async fn committed_in_time(&self, error: &Error) -> Result<Option<(BlockList, Response)>> {
        let looking = self.block_list(BlockListType::Committed);
        if !gave_up(error) {
            return looking.await;
        }
        tokio::time::timeout(LAST_LOOK, looking).await.unwrap_or(Ok(None))
    }

    /// Get Block List. `None` where there is neither a blob nor an uncommitted block.
    ///
    /// # Errors
    /// `BadAnswer`, and those of [`Client::send`](super::client::Client::send).
    pub async fn get_block_list(&self, which: BlockListType) -> Result<Option<BlockList>> {
        Ok(self.block_list(which).await?.map(|(list, _)| list))
    }

    /// Get Block List, block by block, as `each(id, length)`: for lists of which little is kept. Nothing where there is neither a
    /// blob nor an uncommitted block.
    ///
    /// # Errors
    /// As [`Blob::get_block_list`]; `each` may have been called before.
    pub async fn each_block(&self, which: BlockListType, mut each: impl FnMut(&str, u64)) -> Result<()> {
        self.each_block_of(which, |_, id, len| each(id, len)).await.map(drop)
    }

    /// The same, with the list that each block is in. Returns whether there is a blob, or a block of one.
    ///
    /// # Errors
    /// As [`Blob::each_block`].
    pub async fn each_block_of(&self, which: BlockListType, each: impl FnMut(BlockState, &str, u64)) -> Result<bool> {
        let Some(response) = self.block_list_answer(which).await? else { return Ok(false) };
        each_block(&response.body, each).map_err(|e| self.no_list(e))?;
        Ok(true)
    }

    pub(super) async fn block_list(&self, which: BlockListType) -> Result<Option<(BlockList, Response)>> {
        let Some(response) = self.block_list_answer(which).await? else { return Ok(None) };
        let list = BlockList::parse(&response.body).map_err(|e| self.no_list(e))?;
        Ok(Some((list, response)))
    }

    async fn block_list_answer(&self, which: BlockListType) -> Result<Option<Response>> {
        let request = self.request(Method::GET).query("comp", "blocklist").query("blocklisttype", which.as_str());
        match self.client.send(request, GET_BLOCK_LIST).await {
            Ok(response) => Ok(Some(response)),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn no_list(&self, cause: XmlError) -> Error {
        self.client.bad_answer(GET_BLOCK_LIST, &self.path, cause)
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
        deleted(self.client.send(self.delete_request(snapshots), DELETE).await.map(drop))
    }

    /// Delete Blob as a request, also for a batch.
    pub(super) fn delete_request(&self, snapshots: DeleteSnapshots) -> Request {
        let request = self.request(Method::DELETE);
        match snapshots {
            DeleteSnapshots::Refuse => request,
            DeleteSnapshots::Include => request.header("x-ms-delete-snapshots", HeaderValue::from_static("include")),
            DeleteSnapshots::Only => request.header("x-ms-delete-snapshots", HeaderValue::from_static("only")),
        }
    }
}

/// Whether there was a blob to delete: one that an earlier try deleted is not there for a later one.
pub(super) fn deleted(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == Kind::NotFound => Ok(error.attempts().is_some()),
        Err(error) => Err(error),
    }
}

/// How long the state is looked for after a commit was given up.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// Whether a later try was refused by the state of the blob, which an earlier one may have brought about.
fn maybe_ours(error: &Error) -> bool {
    matches!(error.kind(), Kind::AlreadyExists | Kind::BlocksMissing | Kind::Conflict) && error.attempts().is_some()
}

/// Whether these blocks are the ones meant, in this order.
fn is_list(there: &[ListedBlock], ids: impl IntoIterator<Item: AsRef<str>>) -> bool {
    let mut ids = ids.into_iter();
    there.iter().all(|block| ids.next().is_some_and(|id| id.as_ref() == block.id)) && ids.next().is_none()
}

/// An earlier try did it, as looking showed; the tries count, and not the look.
pub(super) fn settled(looked: Response, error: &Error) -> Written {
    Written(Response { attempts: error.attempts().map_or(1, |tries| tries.count), ..looked })
}

/// The same for a blob that had to be new.
pub(super) fn maybe_made_by_us(error: &Error) -> bool {
    let exists = error.kind() == Kind::AlreadyExists || error.code() == Some("UnauthorizedBlobOverwrite");
    exists && error.attempts().is_some()
}

/// Whether it was given up after several tries, of which one may have had its effect.
fn gave_up(error: &Error) -> bool {
    error.kind() == Kind::GaveUp && error.attempts().is_some()
}

fn has(there: &BlobProperties, data: &Chunks) -> bool {
    there.content_length() == Some(data.len()) && there.get("content-md5").is_some_and(|md5| md5_header(data) == md5)
}

pub(super) fn unsettled(error: Error, looking: Option<Error>) -> Error {
    match looking {
        Some(cause) if cause.kind() == Kind::AccessRefused => error.with_advice(
            "an earlier try may have written it, and the credential may not read to find out: compare it, or allow reading",
        ),
        _ => error,
    }
}
