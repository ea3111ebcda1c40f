//! Lists the blobs of a container: under a prefix, matching a pattern, or named in a list; those a selection takes.
//!
//! One page is one request, and one is enough for what fits a page. Where there is more and requests are to spare, the folders of
//! that place are asked for and listed beside each other; where folders are small and many, that would take more requests than
//! it saves, and pages follow one another. Either way, what the first page has is told before anything else is asked for. What
//! need not be listed is not: the longest literal beginning of a pattern is the prefix, and folders that can hold nothing taken
//! are left out. Memory holds [`AT_A_TIME`] pages and the names of folders, a page of them at each level.
//!
//! A page that cannot be had ends the whole with its error: a listing is never silently short. Blobs that come or go meanwhile
//! may be in it or not; all others are, once. Where the account has a hierarchical namespace, entries of the folders themselves
//! come with a listing in pages, and of one by folders with its first page [I].

use crate::endpoint::Filtered;
use crate::endpoint::blob_pages::{Job, Piece, Where, Work};
use crate::endpoint::blob_pattern::BlobPattern;
use crate::endpoint::explain::Explanation;
use crate::endpoint::list_of_files::ListOfFiles;
use crate::endpoint::name::{shown, usable};
use crate::endpoint::selection::Selection;
use crate::endpoint::walk::FOLDER;
use crate::error::{Error, Kind, Result};
use crate::rest::client::Client;
use crate::rest::model::BlobItem;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Pages in flight, or held because those before them are not there yet. A full page takes some 10 MB while it is read.
const AT_A_TIME: usize = 8;

/// Something listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What the service says of it. Of a folder only the name, with its `/`.
    pub item: BlobItem,
    /// Its path relative to the root: the folder that the prefix, what the pattern matches, or the list is in.
    pub relative: String,
    /// Whether it is a folder: only where [`BlobListing::folders`] asks for them.
    pub is_folder: bool,
}

/// What is told of an entry of a list that cannot be listed: its name, and why.
pub type Failing = Arc<dyn Fn(String, Error) + Send + Sync>;

/// What to list, and how.
#[derive(Clone)]
pub struct BlobListing {
    job: Arc<Job>,
    list: Option<ListOfFiles>,
    failing: Option<Failing>,
    ordered: bool,
}

impl BlobListing {
    /// All blobs of a container.
    pub fn new(client: Client, container: String) -> BlobListing {
        BlobListing { job: Arc::new(Job::new(client, container)), list: None, failing: None, ordered: false }
    }

    fn with(mut self, change: impl FnOnce(&mut Job)) -> BlobListing {
        change(Arc::make_mut(&mut self.job));
        self
    }

    /// Those whose name begins so. The root is what stands up to the last `/` of it; for a folder alone (`logs`, and not
    /// `logs-old`) it ends in `/`.
    #[must_use]
    pub fn under(self, prefix: impl Into<String>) -> BlobListing {
        let prefix = prefix.into();
        self.with(|job| job.at = Where::Under(prefix))
    }

    /// Those that match a pattern or are in a folder that does. The root is the folder of the match.
    #[must_use]
    pub fn matching(self, pattern: BlobPattern) -> BlobListing {
        self.with(|job| job.at = Where::Matching(pattern))
    }

    /// Those a list names, or that are in a folder it names, instead of all: its entries are relative to the root of
    /// [`BlobListing::under`]. Entries that cannot be listed, or name nothing, are told to `failing`.
    #[must_use]
    pub fn only(mut self, list: ListOfFiles, failing: Failing) -> BlobListing {
        (self.list, self.failing) = (Some(list), Some(failing));
        self
    }

    /// Only those that a selection takes, by the relative path.
    #[must_use]
    pub fn selecting(self, selection: Arc<Selection>) -> BlobListing {
        self.with(|job| job.selection = selection)
    }

    /// What else to tell of them: as [`ListOptions::include`](crate::rest::container::ListOptions::include).
    #[must_use]
    pub fn including(self, include: &[&'static str]) -> BlobListing {
        self.with(|job| job.include = include.to_vec())
    }

    /// With `false`, those directly in the root alone, or that a list names. The default is `true`.
    #[must_use]
    pub fn recursive(self, recursive: bool) -> BlobListing {
        self.with(|job| job.levels = if recursive { None } else { Some(NonZeroUsize::MIN) })
    }

    /// Looks into so many levels, 1 being the root alone, and tells the folders of the last one. The service refuses that
    /// together with snapshots.
    #[must_use]
    pub fn folders(self, levels: NonZeroUsize) -> BlobListing {
        self.with(|job| (job.levels, job.tells_folders) = (Some(levels), true))
    }

    /// In the order of names. Takes longer where one folder holds most of what there is.
    #[must_use]
    pub fn ordered(mut self) -> BlobListing {
        self.ordered = true;
        self
    }

    /// Sends batches of what is taken, those of one folder in the order of names; ends quietly when the receiver is gone.
    /// Dropping the future stops what is under way.
    ///
    /// # Errors
    /// `ContainerNotFound`, `AccessRefused` and whatever else a page can end in; `SourceNotFound` or `SourceUnreadable` for a
    /// list that cannot be read.
    pub async fn run(&self, out: mpsc::Sender<Vec<Listed>>) -> Result<()> {
        let mut line = Line { nodes: Vec::new(), ordered: self.ordered, started: 0 };
        let mut entries = None;
        match &self.list {
            Some(list) => entries = Some(list.entries()?),
            None => line.nodes.extend(self.job.beginnings(self.ordered).into_iter().map(Node::Waiting)),
        }
        let mut tasks = JoinSet::new();
        loop {
            while let Some(batch) = line.ready() {
                if out.send(batch).await.is_err() {
                    return Ok(());
                }
            }
            while tasks.len() + line.held() < AT_A_TIME.max(line.held() + 1)
                && let Some((id, work)) = line.start()
            {
                let (job, crowded) = (Arc::clone(&self.job), line.nodes.len() >= AT_A_TIME);
                tasks.spawn(async move { job.step(work, crowded).await.map(|step| (id, step)) });
            }
            let wanting = entries.is_some() && tasks.len() + line.held() < AT_A_TIME;
            if tasks.is_empty() && !wanting {
                return Ok(());
            }
            tokio::select! {
                done = tasks.join_next(), if !tasks.is_empty() => {
                    let Some(done) = done else { continue };
                    let stopped = |e| Error::new(Kind::Cancelled, "the listing was stopped").with_source(e);
                    let (id, step) = done.map_err(stopped)??;
                    step.failed.into_iter().for_each(|(name, error)| self.tell(name, error));
                    line.replace(id, step.pieces);
                }
                entry = next(&mut entries), if wanting => match entry {
                    Some(entry) => {
                        let entry = entry?;
                        let raw = OsStr::from_bytes(&entry);
                        match usable(raw) {
                            Ok(name) => line.nodes.push(Node::Waiting(self.job.named(name))),
                            Err(error) => self.tell(shown(raw), error),
                        }
                    }
                    None => entries = None,
                },
                () = out.closed() => return Ok(()),
            }
        }
    }

    /// What the selection has left out in [`BlobListing::run`]: blobs that were met, and folders that were not looked into.
    pub fn filtered(&self) -> Filtered {
        self.job.filtered()
    }

    /// Why a blob would be taken or left out, by its path relative to the root or its whole name; and what is taken.
    ///
    /// # Errors
    /// Those of the one request that looks whether it is there, and of reading a list of names.
    pub async fn explain(&self, path: &str) -> Result<(Explanation, Option<Listed>)> {
        let name = self.job.whole_name(path);
        let no = |why: &str| Ok((Explanation::no(why), None));
        if let Some(relative) = self.job.relative(&name) {
            let below = match &self.list {
                None => relative.contains('/'),
                Some(list) => match names(list, relative).await? {
                    Some(named) => named < relative.len(),
                    None => return no("the list of files names neither it nor a folder it is in"),
                },
            };
            if below && self.job.levels.is_some() {
                return no(&format!("it is in a folder: {FOLDER}"));
            }
        }
        self.job.explain(&name).await
    }

    fn tell(&self, name: String, error: Error) {
        if let Some(failing) = &self.failing {
            failing(name, error);
        }
    }
}

/// For whoever reads from it, a container that is not there is a source that is not there.
pub fn no_container(error: Error) -> Error {
    if error.kind() != Kind::ContainerNotFound {
        return error;
    }
    let message = error.to_string();
    error.of_kind(Kind::SourceNotFound, message).with_advice("check the name; 'blobjet list' of the account shows what is there")
}

/// How much of a path an entry of a list names, bytes.
async fn names(list: &ListOfFiles, relative: &str) -> Result<Option<usize>> {
    let mut entries = list.entries()?;
    while let Some(entry) = entries.recv().await {
        let entry = entry?;
        let Ok(named) = std::str::from_utf8(&entry) else { continue };
        let rest = relative.strip_prefix(named);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || named.ends_with('/')) {
            return Ok(Some(named.len()));
        }
    }
    Ok(None)
}

async fn next(entries: &mut Option<mpsc::Receiver<Result<Vec<u8>>>>) -> Option<Result<Vec<u8>>> {
    match entries {
        Some(entries) => entries.recv().await,
        None => None,
    }
}

/// What there is to do and what is done, in the order of names.
struct Line {
    nodes: Vec<Node>,
    ordered: bool,
    started: u64,
}

enum Node {
    Waiting(Work),
    Running(u64),
    Ready(Vec<Listed>),
}

impl Line {
    /// What can be sent: in order, the first; otherwise any.
    fn ready(&mut self) -> Option<Vec<Listed>> {
        let is_ready = |node: &Node| matches!(node, Node::Ready(_));
        let at = if self.ordered {
            self.nodes.first().is_some_and(is_ready).then_some(0)
        } else {
            self.nodes.iter().position(is_ready)
        };
        match self.nodes.remove(at?) {
            Node::Ready(batch) => Some(batch),
            _ => None,
        }
    }

    /// Batches that cannot be sent yet.
    fn held(&self) -> usize {
        if self.ordered { self.nodes.iter().filter(|node| matches!(node, Node::Ready(_))).count() } else { 0 }
    }

    /// The first thing to do, depth first: so the folders that are known and not begun stay few.
    fn start(&mut self) -> Option<(u64, Work)> {
        let node = self.nodes.iter_mut().find(|node| matches!(node, Node::Waiting(_)))?;
        self.started += 1;
        match std::mem::replace(node, Node::Running(self.started)) {
            Node::Waiting(work) => Some((self.started, work)),
            _ => None,
        }
    }

    /// What has come of something that was started takes its place.
    fn replace(&mut self, id: u64, pieces: Vec<Piece>) {
        let Some(at) = self.nodes.iter().position(|node| matches!(node, Node::Running(running) if *running == id)) else {
            return;
        };
        self.nodes.splice(
            at..=at,
            pieces.into_iter().map(|piece| match piece {
                Piece::Batch(batch) => Node::Ready(batch),
                Piece::Work(work) => Node::Waiting(work),
            }),
        );
    }
}
