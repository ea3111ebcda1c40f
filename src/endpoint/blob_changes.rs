//! What can be done to blobs where they are: [`Deletion`], [`Setting`] of what they carry, [`Undeletion`]. Each knows which blobs
//! it is about ([`Subjects`]) and what the service is asked for them. Deletes and changes of tier go in batches of up to 256 where
//! the service takes them, and one by one where it does not; that is found out by the first batch.

use crate::attributes::Attributes;
use crate::endpoint::Task;
use crate::endpoint::blob_listing::{Listed, no_container};
use crate::endpoint::blob_source::{folder_mark, marks_a_folder};
use crate::endpoint::blob_subjects::{Subjects, is_directory};
use crate::endpoint::change::{Change, Changed, Met, Subject};
use crate::endpoint::explain::Explanation;
use crate::error::{Error, Kind, Result};
use crate::rest::batch::{BlobBatch, MAX_PARTS};
use crate::rest::blob::{Blob, DeleteSnapshots};
use crate::rest::change::{RehydratePriority, Tiering};
use crate::rest::client::Client;
use crate::rest::model::Tags;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Requests at a time for the blobs of a batch that the service did not take.
const AT_A_TIME: usize = 16;

/// The blobs that something is done to.
#[derive(Clone)]
pub struct Blobs {
    /// Who is asked.
    pub client: Client,
    /// The container they are in.
    pub container: String,
    /// Which.
    pub subjects: Subjects,
}

/// Deletes blobs. One that is gone when its turn comes is as good as deleted, unless it is the only one meant.
pub struct Deletion(Arc<Of<DeleteSnapshots>>);

/// What is set; what is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Content headers, of which those that are given are changed; an empty one is taken away. Nothing else in it counts.
    pub headers: Option<Attributes>,
    /// Metadata, all of them.
    pub metadata: Option<Vec<(String, String)>>,
    /// Tags, all of them.
    pub tags: Option<Tags>,
    /// Tier, sent as given.
    pub tier: Option<String>,
    /// How soon a blob comes out of the archive.
    pub priority: Option<RehydratePriority>,
}

/// Sets what blobs carry besides their bytes.
pub struct Setting(Arc<Of<Settings>>);

/// Brings soft-deleted blobs back.
pub struct Undeletion(Arc<Of<()>>);

/// What is said where one blob is meant and is not there.
struct Missing {
    what: &'static str,
    advice: &'static str,
}

const NO_BLOB: Missing = Missing {
    what: "there is no blob",
    advice: "'blobjet list' shows what is there; for all that is in a folder, add --recursive",
};

const NOT_KEPT: Missing = Missing {
    what: "there is no deleted blob",
    advice: "deleted blobs are kept only where soft delete was on at the account, and for as many days as it says; for all that was \
             in a folder, add --recursive",
};

/// Some blobs, and what is done to them.
struct Of<T> {
    blobs: Blobs,
    what: T,
    missing: Missing,
    /// The service does not take batches.
    no_batch: AtomicBool,
    /// Blobs that are on their way out of the archive.
    rehydrating: AtomicU64,
}

impl<T: Send + Sync + 'static> Of<T> {
    fn new(blobs: Blobs, what: T, missing: Missing) -> Arc<Of<T>> {
        Arc::new(Of { blobs, what, missing, no_batch: AtomicBool::new(false), rehydrating: AtomicU64::new(0) })
    }

    fn blob(&self, name: &str) -> Blob<'_> {
        Blob::new(&self.blobs.client, &self.blobs.container, name)
    }

    fn batch(&self) -> BlobBatch<'_> {
        BlobBatch::new(&self.blobs.client, &self.blobs.container)
    }

    fn at_a_time(&self, in_batches: bool) -> usize {
        if in_batches && !self.no_batch.load(Relaxed) { MAX_PARTS } else { 1 }
    }

    /// The results of a batch; `None` where the service does not take it and the blobs have to be asked for one by one.
    fn of_batch(&self, subjects: &[Subject], results: Result<Vec<Result<Changed>>>) -> Option<Vec<Result<Changed>>> {
        match results {
            Ok(results) => Some(results),
            // What a container's SAS or a role allows for a blob need not be allowed for a batch [I].
            Err(error) if matches!(error.kind(), Kind::Refused | Kind::Unsupported | Kind::AccessRefused | Kind::NotFound) => {
                if !self.no_batch.swap(true, Relaxed) {
                    tracing::info!(%error, "batches are not taken: blobs are asked for one by one");
                }
                None
            }
            Err(error) => {
                let mut all: Vec<_> = subjects.iter().skip(1).map(|_| Err(error.alike())).collect();
                all.push(Err(error));
                Some(all)
            }
        }
    }

    /// Does it to each, some at a time, in no particular order; results are in the order of the subjects.
    async fn each<F>(self: &Arc<Self>, subjects: &[Subject], one: impl Fn(Arc<Self>, String) -> F) -> Vec<Result<Changed>>
    where
        F: Future<Output = Result<Changed>> + Send + 'static,
    {
        if let [subject] = subjects {
            return vec![self.lone(one(Arc::clone(self), subject.name.clone()).await)];
        }
        let permits = Arc::new(Semaphore::new(AT_A_TIME));
        let mut tasks = JoinSet::new();
        for (nth, subject) in subjects.iter().enumerate() {
            let (permits, work) = (Arc::clone(&permits), one(Arc::clone(self), subject.name.clone()));
            tasks.spawn(async move {
                let _permit = permits.acquire().await;
                (nth, work.await)
            });
        }
        let mut results = tasks.join_all().await;
        results.sort_by_key(|(nth, _)| *nth);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Where one blob is meant and is not there, there is nothing to work on.
    fn lone(&self, result: Result<Changed>) -> Result<Changed> {
        match result {
            Err(error) if error.kind() == Kind::NotFound => match self.blobs.subjects.one() {
                Some(shown) => {
                    let error = error.of_kind(Kind::SourceNotFound, format!("{} {shown}", self.missing.what));
                    Err(error.with_advice(self.missing.advice))
                }
                None => Err(error),
            },
            Err(error) if error.kind() == Kind::ContainerNotFound => Err(no_container(error)),
            result => result,
        }
    }
}

impl Deletion {
    fn judge(listed: Listed) -> Option<Met> {
        let last = is_directory(&listed.item);
        Some(Met::Subject(Subject { last, ..Subject::of(listed.item) }))
    }

    /// Deletes these.
    pub fn new(blobs: Blobs, snapshots: DeleteSnapshots) -> Deletion {
        Deletion(Of::new(blobs, snapshots, NO_BLOB))
    }
}

fn gone(there_was: bool, is_one: bool, blob: &str) -> Result<Changed> {
    if there_was || !is_one {
        return Ok(Changed::Done(None));
    }
    Err(Error::new(Kind::NotFound, format!("cannot delete {blob}")))
}

impl Change for Deletion {
    fn list<'a>(&'a self, out: mpsc::Sender<Vec<Met>>) -> Task<'a, Result<()>> {
        Box::pin(self.0.blobs.subjects.list(out, Deletion::judge))
    }

    fn explain<'a>(&'a self, path: &'a str) -> Task<'a, Result<Explanation>> {
        Box::pin(self.0.blobs.subjects.explain(path, Deletion::judge, ""))
    }

    fn at_a_time(&self) -> usize {
        self.0.at_a_time(true)
    }

    fn apply<'a>(&'a self, subjects: &'a [Subject]) -> Task<'a, Vec<Result<Changed>>> {
        Box::pin(async move {
            if subjects.len() > 1 {
                let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
                let ends = self.0.batch().delete(&names, self.0.what).await;
                let ends = ends.map(|ends| ends.into_iter().map(|end| end.map(|_| Changed::Done(None))).collect());
                if let Some(results) = self.0.of_batch(subjects, ends) {
                    return results;
                }
            }
            self.0
                .each(subjects, |of, name| async move {
                    gone(of.blob(&name).delete(of.what).await?, of.blobs.subjects.one().is_some(), &name)
                })
                .await
        })
    }
}

impl Setting {
    fn judge(&self, listed: Listed) -> Option<Met> {
        // Metadata are set as a whole: the mark would be gone.
        if is_directory(&listed.item) || self.0.what.metadata.is_some() && marks_a_folder(&listed.item) {
            return Some(Met::Skipped { name: listed.item.name, reason: FOLDER });
        }
        Some(Met::Subject(Subject::of(listed.item)))
    }

    /// Sets this on these.
    pub fn new(blobs: Blobs, settings: Settings) -> Setting {
        Setting(Of::new(blobs, settings, NO_BLOB))
    }

    /// How many of the blobs are on their way out of the archive.
    pub fn rehydrating(&self) -> u64 {
        self.0.rehydrating.load(Relaxed)
    }
}

impl Settings {
    /// Whether a tier is all that is set: many can be in one request.
    fn is_tier_alone(&self) -> Option<&str> {
        let others = self.headers.is_some() || self.metadata.is_some() || self.tags.is_some();
        self.tier.as_deref().filter(|_| !others)
    }

    /// Leaves a mark where it is, unless it is set otherwise.
    fn keep(&mut self, mark: (String, String)) {
        let metadata = self.metadata.get_or_insert_default();
        if !metadata.iter().any(|(name, _)| name.eq_ignore_ascii_case(&mark.0)) {
            metadata.push(mark);
        }
    }

    /// What is set on a blob comes in this order: what the archive bars before the tier.
    async fn set(&self, blob: &Blob<'_>) -> Result<(Option<SystemTime>, Tiering)> {
        let mut changed = None;
        if let Some(headers) = &self.headers {
            changed = blob.change_properties(headers).await?.last_modified();
        }
        if let Some(metadata) = &self.metadata {
            changed = blob.set_metadata(metadata).await?.last_modified();
        }
        if let Some(tags) = &self.tags {
            blob.set_tags(tags).await?;
        }
        let tiering = match &self.tier {
            Some(tier) => blob.set_tier(tier, self.priority).await?,
            None => Tiering::Done,
        };
        Ok((changed, tiering))
    }
}

/// What marks a blob as a folder, if it is one. A credential that may not read is told nothing.
async fn mark_on(blob: &Blob<'_>) -> Result<Option<(String, String)>> {
    match blob.get_properties().await {
        Ok(there) => Ok(there.as_ref().and_then(folder_mark)),
        Err(error) if error.kind() == Kind::AccessRefused => Ok(None),
        Err(error) => Err(error),
    }
}

impl Of<Settings> {
    fn count(&self, tiering: Tiering) {
        if tiering == Tiering::Rehydrating {
            self.rehydrating.fetch_add(1, Relaxed);
        }
    }
}

/// Why the entry of a folder is left as it is.
const FOLDER: &str = "a folder, and not a blob with content";

impl Change for Setting {
    fn list<'a>(&'a self, out: mpsc::Sender<Vec<Met>>) -> Task<'a, Result<()>> {
        Box::pin(self.0.blobs.subjects.list(out, |listed| self.judge(listed)))
    }

    fn explain<'a>(&'a self, path: &'a str) -> Task<'a, Result<Explanation>> {
        Box::pin(self.0.blobs.subjects.explain(path, |listed| self.judge(listed), ""))
    }

    fn at_a_time(&self) -> usize {
        self.0.at_a_time(self.0.what.is_tier_alone().is_some())
    }

    fn apply<'a>(&'a self, subjects: &'a [Subject]) -> Task<'a, Vec<Result<Changed>>> {
        Box::pin(async move {
            if subjects.len() > 1
                && let Some(tier) = self.0.what.is_tier_alone()
            {
                let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
                let ends = self.0.batch().set_tier(&names, tier, self.0.what.priority).await;
                let done = |tiering| {
                    self.0.count(tiering);
                    Changed::Done(None)
                };
                let ends = ends.map(|ends| ends.into_iter().map(|end| end.map(done)).collect());
                if let Some(results) = self.0.of_batch(subjects, ends) {
                    return results;
                }
            }
            self.0
                .each(subjects, |of, name| async move {
                    let blob = of.blob(&name);
                    let mut what = Cow::Borrowed(&of.what);
                    // Of blobs that were listed it is known what they are.
                    if of.blobs.subjects.one().is_some()
                        && what.metadata.is_some()
                        && let Some(mark) = mark_on(&blob).await?
                    {
                        what.to_mut().keep(mark);
                    }
                    let (changed, tiering) = what.set(&blob).await?;
                    of.count(tiering);
                    Ok(Changed::Done(changed))
                })
                .await
        })
    }
}

impl Undeletion {
    fn judge(listed: Listed) -> Option<Met> {
        let is_blob = listed.item.deleted && listed.item.snapshot.is_none();
        is_blob.then(|| Met::Subject(Subject::of(listed.item)))
    }

    /// Brings these back. Their listing must include what is deleted; what is not is left out of account.
    pub fn new(blobs: Blobs) -> Undeletion {
        Undeletion(Of::new(blobs, (), NOT_KEPT))
    }
}

impl Change for Undeletion {
    fn list<'a>(&'a self, out: mpsc::Sender<Vec<Met>>) -> Task<'a, Result<()>> {
        Box::pin(self.0.blobs.subjects.list(out, Undeletion::judge))
    }

    fn explain<'a>(&'a self, path: &'a str) -> Task<'a, Result<Explanation>> {
        Box::pin(self.0.blobs.subjects.explain(path, Undeletion::judge, "it is not deleted"))
    }

    fn at_a_time(&self) -> usize {
        1
    }

    fn apply<'a>(&'a self, subjects: &'a [Subject]) -> Task<'a, Vec<Result<Changed>>> {
        let one = |of: Arc<Of<()>>, name: String| async move {
            of.blob(&name).undelete().await?;
            Ok(Changed::Done(None))
        };
        Box::pin(self.0.each(subjects, one))
    }
}
