//! Blob Batch: deletes, or changes of tier, of up to 256 blobs of one container in one request.
//!
//! A batch is not atomic: each part is signed, let in and answered on its own. Parts that may heal are sent again, in smaller
//! batches, with the patience a single request gets; the others end as the single operation would. The batch is the
//! container's, so that a container's SAS will do.
//!
//! Source: "Blob Batch", Azure Storage REST reference.

use crate::error::{Error, Kind, Result};
use crate::rest::blob::{Blob, DELETE, DeleteSnapshots, deleted};
use crate::rest::change::{RehydratePriority, SET_TIER, Tiering, tiering};
use crate::rest::client::parts::{PartEnd, Patience};
use crate::rest::client::{Client, Op};
use crate::rest::model::multipart::{Builder, Part, parse};
use crate::rest::request::{Request, Response};
use crate::rest::stats::RetryCause;
use http::{HeaderValue, Method};
use std::time::Duration;
use tokio::time::Instant;

/// Most parts of a batch. More fail with 400 `ExceedsMaxBatchRequestCount`.
pub const MAX_PARTS: usize = 256;

/// Largest body of a batch, 4 MiB. More fails with 413.
const MAX_BODY: usize = 4 << 20;

/// Batches of the blobs of a container.
#[derive(Clone, Copy)]
pub struct BlobBatch<'a> {
    client: &'a Client,
    container: &'a str,
}

/// A part, and what has become of it so far.
struct Entry {
    request: Request,
    end: Option<Result<Response>>,
    tries: u32,
}

impl<'a> BlobBatch<'a> {
    /// Batches of the blobs of this container.
    pub fn new(client: &'a Client, container: &'a str) -> BlobBatch<'a> {
        BlobBatch { client, container }
    }

    /// Deletes blobs, as [`Blob::delete`] does: for each name, whether there was such a blob. Any number of names; those over
    /// [`MAX_PARTS`] go in batches of their own.
    ///
    /// # Errors
    /// `Unsupported` or `Refused` where the server does not take batches: then nothing was done. Those of
    /// [`Client::send`](super::client::Client::send) for a batch as a whole, of which parts may have been done; what came of a
    /// part is in its own result, with the errors of [`Blob::delete`].
    pub async fn delete(&self, names: &[&str], snapshots: DeleteSnapshots) -> Result<Vec<Result<bool>>> {
        let requests = names.iter().map(|name| Blob::new(self.client, self.container, name).delete_request(snapshots)).collect();
        let ends = self.submit(DELETE, requests).await?;
        Ok(ends.into_iter().map(|end| deleted(end.map(drop))).collect())
    }

    /// Sets the tier of blobs, as [`Blob::set_tier`] does.
    ///
    /// # Errors
    /// As [`BlobBatch::delete`].
    pub async fn set_tier(
        &self,
        names: &[&str],
        tier: &str,
        priority: Option<RehydratePriority>,
    ) -> Result<Vec<Result<Tiering>>> {
        let blob = |name| Blob::new(self.client, self.container, name);
        let requests = names.iter().map(|name| blob(name).tier_request(tier, priority)).collect::<Result<_>>()?;
        let ends = self.submit(SET_TIER, requests).await?;
        Ok(ends.into_iter().map(|end| end.map(|response| tiering(&response))).collect())
    }

    /// Sends the requests until each has come to its end.
    async fn submit(&self, op: Op, requests: Vec<Request>) -> Result<Vec<Result<Response>>> {
        let mut entries: Vec<Entry> = requests.into_iter().map(|request| Entry { request, end: None, tries: 0 }).collect();
        let mut left: Vec<usize> = (0..entries.len()).collect();
        let mut patience = Patience::new();
        while !left.is_empty() {
            let mut again = Again::default();
            let mut rest = left.as_slice();
            while !rest.is_empty() {
                let sent = self.send(op, &mut entries, rest, &patience, &mut again).await?;
                rest = &rest[sent..];
            }
            if let Some(cause) = again.cause
                && !patience.wait(self.client, cause, again.hint).await
            {
                for (index, error) in again.parts {
                    entries[index].end = Some(Err(patience.gave_up(error, entries[index].tries)));
                }
                break;
            }
            left = again.parts.into_iter().map(|(index, _)| index).collect();
            left.sort_unstable();
        }
        let bad = || Error::new(Kind::BadAnswer, self.client.doing(op, &self.path()));
        Ok(entries.into_iter().map(|entry| entry.end.unwrap_or_else(|| Err(bad()))).collect())
    }

    /// Sends as many of the parts as go into one batch. Returns how many.
    async fn send(
        &self,
        op: Op,
        entries: &mut [Entry],
        parts: &[usize],
        patience: &Patience,
        again: &mut Again,
    ) -> Result<usize> {
        let mut builder = Builder::new(format!("batch_{:032x}", random()));
        let mut sent = 0;
        for index in parts.iter().copied().take(MAX_PARTS) {
            let head = self.client.part_head(&entries[index].request, op).await?;
            if sent > 0 && builder.len_with(index, &head) > MAX_BODY {
                break;
            }
            builder.push(index, &head);
            sent += 1;
        }
        let batch = Op::new("send a batch to", op.need);
        let content_type = HeaderValue::try_from(builder.content_type()).expect("hexadecimal digits");
        let request = Request::new(Method::POST, self.path()).query("restype", "container").query("comp", "batch");
        let request = request.header("content-type", content_type).body(builder.finish());
        let set_out = Instant::now();
        let response = self.client.send(request, batch).await?;
        let answers = parse(response.header("content-type").unwrap_or_default(), &response.body)
            .map_err(|e| self.client.bad_answer(batch, &self.path(), e))?;
        let attempts = response.attempts;
        if let [whole] = answers.as_slice()
            && whole.content_id.is_none()
            && !whole.status.is_success()
        {
            let request = Request::new(Method::POST, self.path());
            return match self.client.judge_part(&request, batch, answer(whole.clone(), attempts), set_out, patience) {
                PartEnd::Failed(error) | PartEnd::Again(_, _, error) => Err(error),
                PartEnd::Done(_) => Ok(sent),
            };
        }
        // Azurite, as the service, gives back the ids; an answer without them is in the order of the parts.
        for (nth, part) in answers.into_iter().enumerate() {
            let index = part.content_id.or_else(|| parts.get(nth).copied());
            let Some(entry) = index.filter(|index| parts[..sent].contains(index)).map(|index| &mut entries[index]) else {
                continue;
            };
            entry.tries += attempts;
            let answer = answer(part, entry.tries);
            match self.client.judge_part(&entry.request, op, answer, set_out, patience) {
                PartEnd::Done(response) => entry.end = Some(Ok(response)),
                PartEnd::Failed(error) => entry.end = Some(Err(error)),
                PartEnd::Again(cause, hint, error) => again.add(index.unwrap_or_default(), cause, hint, error),
            }
        }
        Ok(sent)
    }

    fn path(&self) -> String {
        self.client.location().container_path(self.container)
    }
}

/// Parts to be sent again.
#[derive(Default)]
struct Again {
    parts: Vec<(usize, Error)>,
    cause: Option<RetryCause>,
    hint: Option<Duration>,
}

impl Again {
    fn add(&mut self, index: usize, cause: RetryCause, hint: Option<Duration>, error: Error) {
        self.parts.push((index, error));
        self.cause.get_or_insert(cause);
        self.hint = self.hint.max(hint);
    }
}

fn answer(part: Part, attempts: u32) -> Response {
    Response { status: part.status, headers: part.headers, body: part.body, attempts }
}

/// A number that no name contains. Where the system has no random numbers any will do: names are percent-encoded, and none of
/// them has a line that begins with two hyphens.
fn random() -> u128 {
    (u128::from(getrandom::u64().unwrap_or_default()) << 64) | u128::from(getrandom::u64().unwrap_or_default())
}
