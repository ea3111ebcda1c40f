//! One request of a listing of blobs: a page, what of it is taken, and what is to be asked for next. What is in flight at a time,
//! and in what order it is told, is `blob_listing`'s.

use crate::endpoint::Filtered;
use crate::endpoint::blob_listing::Listed;
use crate::endpoint::blob_pattern::BlobPattern;
use crate::endpoint::explain::Explanation;
use crate::endpoint::selection::{Candidate, Selection, Verdict};
use crate::error::{Error, Kind, Result};
use crate::rest::client::Client;
use crate::rest::container::{Container, ListOptions};
use crate::rest::model::{BlobItem, ListEntry, ListPage};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A place with more than a page is listed by its folders if the first page is from so many at most: then a request a folder
/// brings 300 blobs or more, and what is done beside each other takes less time than a page after the other.
const FEW: usize = 16;

/// With more folders than this a place is listed in pages after all: most of the folders may hold next to nothing.
const MANY: usize = 1000;

/// Entries of a page about one name: enough for its neighbours, mostly, so that one request tells whether it is there.
const PROBE: u32 = 100;

/// What a listing is about.
#[derive(Clone)]
pub(super) struct Job {
    client: Client,
    container: String,
    pub(super) at: Where,
    pub(super) selection: Arc<Selection>,
    pub(super) include: Vec<&'static str>,
    /// Levels that are looked into; what is deeper is not listed.
    pub(super) levels: Option<NonZeroUsize>,
    /// Whether the folders that are not looked into are told.
    pub(super) tells_folders: bool,
    /// What the selection has left out.
    left_out: Arc<LeftOut>,
}

/// Counts what filters leave out.
#[derive(Debug, Default)]
struct LeftOut {
    objects: AtomicU64,
    folders: AtomicU64,
}

/// Which names are meant.
#[derive(Debug, Clone)]
pub(super) enum Where {
    Under(String),
    Matching(BlobPattern),
}

/// Something to ask for.
#[derive(Debug)]
pub(super) enum Work {
    /// A blob or a folder, by its whole name.
    Named {
        name: String,
        /// Whether it is an error if there is neither.
        required: bool,
    },
    /// A prefix of which nothing is known.
    Place {
        prefix: String,
        /// A name that has failed if nothing is there.
        sought: Option<String>,
        told: Told,
    },
    /// A prefix, page after page.
    Pages { prefix: String, marker: Option<String>, sought: Option<String>, told: Told },
    /// What is directly under a prefix, folder by folder.
    Folders { prefix: String, marker: Option<String>, told: Told },
}

/// Names that have been told already, from the page that showed how a place is to be listed. They are kept rather than compared
/// with the last of them, as no promise is known about how the service orders all of Unicode.
#[derive(Debug, Clone, Default)]
pub(super) struct Told(Option<Arc<HashSet<String>>>);

impl Told {
    fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|names| names.contains(name))
    }

    /// These, and those of a page.
    fn and(&self, page: &ListPage) -> Told {
        let before = self.0.iter().flat_map(|names| names.iter());
        Told(Some(Arc::new(before.chain(page.blobs().map(|blob| &blob.name)).cloned().collect())))
    }
}

/// What has come of it, in the order of names.
#[derive(Debug)]
pub(super) enum Piece {
    Batch(Vec<Listed>),
    Work(Work),
}

/// The outcome of one piece of work.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) pieces: Vec<Piece>,
    /// A name that was asked for and is not there.
    pub(super) failed: Option<(String, Error)>,
}

impl Step {
    fn batch(&mut self, batch: Vec<Listed>) {
        if !batch.is_empty() {
            self.pieces.push(Piece::Batch(batch));
        }
    }

    fn work(&mut self, work: Work) {
        self.pieces.push(Piece::Work(work));
    }

    fn missing(&mut self, name: Option<String>) {
        self.failed = name.map(|name| {
            let error = Error::new(Kind::SourceNotFound, format!("cannot find {name} of the list: there is no such blob"));
            (name, error)
        });
    }
}

impl Job {
    pub(super) fn new(client: Client, container: String) -> Job {
        Job {
            client,
            container,
            at: Where::Under(String::new()),
            selection: Arc::default(),
            include: Vec::new(),
            levels: None,
            tells_folders: false,
            left_out: Arc::default(),
        }
    }

    /// Where to begin. What is listed by names is in order, if `ordered`.
    pub(super) fn beginnings(&self, ordered: bool) -> Vec<Work> {
        let prefix = match &self.at {
            Where::Under(prefix) => prefix.clone(),
            Where::Matching(pattern) => pattern.beginning(""),
        };
        if self.levels.is_some() {
            return vec![Work::Folders { prefix, marker: None, told: Told::default() }];
        }
        let roots = match &self.at {
            Where::Under(prefix) if prefix.len() == self.root().len() => self.selection.roots(),
            _ => Vec::new(),
        };
        // Each brings a name and what is in a folder of that name, between which other names may be.
        if roots.is_empty() || (ordered && roots.len() > 1) {
            return vec![Work::Place { prefix, sought: None, told: Told::default() }];
        }
        roots.iter().map(|root| Work::Named { name: [&prefix, *root].concat(), required: false }).collect()
    }

    /// What to ask for because a list names it.
    pub(super) fn named(&self, name: &str) -> Work {
        Work::Named { name: [self.root(), name].concat(), required: true }
    }

    /// The folder that paths are relative to, with its `/`. With a pattern it is not one for all.
    fn root(&self) -> &str {
        match &self.at {
            Where::Under(prefix) => prefix.rfind('/').map_or("", |slash| &prefix[..=slash]),
            Where::Matching(_) => "",
        }
    }

    /// Where the relative path of a name begins; `None` for a name that is not meant.
    fn relative_at(&self, name: &str) -> Option<usize> {
        match &self.at {
            Where::Under(prefix) => name.starts_with(prefix.as_str()).then(|| self.root().len()),
            Where::Matching(pattern) => pattern.relative_at(name),
        }
    }

    /// Does one piece of work. `crowded` says that there is enough to do already.
    ///
    /// # Errors
    /// Those of the request.
    pub(super) async fn step(&self, work: Work, crowded: bool) -> Result<Step> {
        let mut step = Step::default();
        match work {
            Work::Named { name, required } => self.one(name, required, &mut step).await?,
            Work::Place { prefix, sought, told } => {
                let page = self.page(&prefix, None, None).await?;
                if page.next_marker.is_some() && !crowded && self.splits(&prefix, &page) {
                    // Whoever waits has something to do while the folders are asked for.
                    let both = told.and(&page);
                    step.batch(self.all_taken(page, &told));
                    step.work(Work::Folders { prefix, marker: None, told: both });
                } else {
                    self.flat(prefix, page, sought, told, &mut step);
                }
            }
            Work::Pages { prefix, marker, sought, told } => {
                let page = self.page(&prefix, marker, None).await?;
                self.flat(prefix, page, sought, told, &mut step);
            }
            Work::Folders { prefix, marker, told } => {
                let is_first = marker.is_none();
                let page = self.page(&prefix, marker, Some("/")).await?;
                let many = page.next_marker.is_some() || page.prefixes().filter(|folder| self.enters(folder)).count() > MANY;
                if is_first && many && self.levels.is_none() {
                    step.work(Work::Pages { prefix, marker: None, sought: None, told });
                } else {
                    self.by_folders(prefix, page, told, &mut step);
                }
            }
        }
        Ok(step)
    }

    /// A blob of this name, and what is in a folder of this name.
    async fn one(&self, name: String, required: bool, step: &mut Step) -> Result<()> {
        let folder = if name.ends_with('/') { name.clone() } else { format!("{name}/") };
        let is_meant = |found: &str| found == name || (self.levels.is_none() && found.starts_with(&folder));
        let (mut batch, mut found, mut marker) = (Vec::new(), false, None);
        loop {
            let page = self.list(ListOptions { max_results: Some(PROBE), ..self.options(&name, marker, None) }).await?;
            let goes_on = page.next_marker.is_some();
            // All of that very name come first; neighbours may stand between it and what is in the folder.
            let only_it = page.blobs().last().is_none_or(|blob| blob.name == name);
            for blob in blobs(page.entries).filter(|blob| is_meant(&blob.name) && (!goes_on || blob.name == name)) {
                found = true;
                batch.extend(self.taken(blob));
            }
            marker = page.next_marker;
            if !(goes_on && only_it) {
                break;
            }
        }
        step.batch(batch);
        let sought = (required && !found).then(|| name.clone());
        if marker.is_some() && self.levels.is_none() {
            step.work(Work::Place { prefix: folder, sought, told: Told::default() });
        } else {
            step.missing(sought);
        }
        Ok(())
    }

    /// What the selection has left out so far. Names that it never asked for are not among it.
    pub(super) fn filtered(&self) -> Filtered {
        Filtered { objects: self.left_out.objects.load(Relaxed), folders: self.left_out.folders.load(Relaxed) }
    }

    /// The whole name of a blob that is given by its path relative to the root, or by that name itself.
    pub(super) fn whole_name(&self, path: &str) -> String {
        match &self.at {
            Where::Under(prefix) if !path.starts_with(prefix.as_str()) => [self.root(), path].concat(),
            _ => path.to_owned(),
        }
    }

    /// Why a blob would be taken or left out, by its whole name, and what is taken. One request, to see whether it is there.
    ///
    /// # Errors
    /// Those of the request.
    pub(super) async fn explain(&self, name: &str) -> Result<(Explanation, Option<Listed>)> {
        let no = |why: String| Ok((Explanation::no(why), None));
        let Some(relative) = self.relative(name) else {
            let meant = match &self.at {
                Where::Under(prefix) => format!("its name does not begin with {prefix}"),
                Where::Matching(_) => "the pattern does not match it".to_owned(),
            };
            return no(meant);
        };
        let folders = relative.match_indices('/').map(|(slash, _)| &relative[..slash]);
        for folder in folders {
            if let Some(verdict) = self.selection.why_not_within(folder) {
                return no(format!("the folder {folder} is not looked into: {verdict}"));
            }
        }
        let page = self.list(ListOptions { max_results: Some(PROBE), ..self.options(name, None, None) }).await?;
        // The blob itself comes after its snapshots.
        let there = page.blobs().filter(|blob| blob.name == name).last();
        let verdict = match there {
            Some(blob) => {
                let (len, modified) = (blob.properties.content_length(), blob.properties.last_modified());
                self.selection.takes(&Candidate { path: relative, len, modified })
            }
            None => self.selection.takes_path(relative),
        };
        match (verdict, there) {
            (Verdict::Taken, Some(blob)) => {
                let listed = Listed { item: blob.clone(), relative: relative.to_owned(), is_folder: false };
                Ok((Explanation::yes(Verdict::Taken.to_string(), None), Some(listed)))
            }
            (Verdict::Taken, None) => no("there is no such blob; its name is one that is taken".to_owned()),
            (left_out, Some(_)) => no(left_out.to_string()),
            (left_out, None) => no(format!("{left_out}; and there is no such blob")),
        }
    }

    fn flat(&self, prefix: String, mut page: ListPage, sought: Option<String>, told: Told, step: &mut Step) {
        let sought = sought.filter(|_| page.entries.is_empty());
        let marker = page.next_marker.take();
        step.batch(self.all_taken(page, &told));
        match marker {
            Some(marker) => step.work(Work::Pages { prefix, marker: Some(marker), sought, told }),
            None => step.missing(sought),
        }
    }

    /// What is taken of a page, but for what has been told.
    fn all_taken(&self, page: ListPage, told: &Told) -> Vec<Listed> {
        let new = blobs(page.entries).filter(|blob| !told.has(&blob.name));
        new.filter_map(|blob| self.taken(blob)).collect()
    }

    fn by_folders(&self, prefix: String, page: ListPage, told: Told, step: &mut Step) {
        let mut batch = Vec::new();
        for entry in page.entries {
            match entry {
                ListEntry::Blob(blob) if told.has(&blob.name) => {}
                ListEntry::Blob(blob) => batch.extend(self.taken(blob)),
                ListEntry::Prefix(folder) if self.enters(&folder) => {
                    step.batch(std::mem::take(&mut batch));
                    let prefix = match &self.at {
                        Where::Under(_) => folder,
                        Where::Matching(pattern) => pattern.beginning(&folder),
                    };
                    step.work(match self.levels {
                        None => Work::Place { prefix, sought: None, told: told.clone() },
                        Some(_) => Work::Folders { prefix, marker: None, told: told.clone() },
                    });
                }
                ListEntry::Prefix(folder) => batch.extend(self.as_folder(folder)),
            }
        }
        step.batch(batch);
        if let Some(marker) = page.next_marker {
            step.work(Work::Folders { prefix, marker: Some(marker), told });
        }
    }

    fn taken(&self, item: BlobItem) -> Option<Listed> {
        let relative = self.relative(&item.name)?.to_owned();
        let (len, modified) = if self.selection.needs_facts() {
            (item.properties.content_length(), item.properties.last_modified())
        } else {
            (None, None)
        };
        if !self.selection.takes(&Candidate { path: &relative, len, modified }).is_taken() {
            self.left_out.objects.fetch_add(1, Relaxed);
            return None;
        }
        Some(Listed { item, relative, is_folder: false })
    }

    /// A folder as it is told where it is not looked into.
    fn as_folder(&self, name: String) -> Option<Listed> {
        let relative = self.relative(name.strip_suffix('/').unwrap_or(&name))?;
        if !self.selection.may_hold(relative) {
            self.left_out.folders.fetch_add(1, Relaxed);
            return None;
        }
        if !self.tells_folders {
            return None;
        }
        let relative = format!("{relative}/");
        Some(Listed { item: BlobItem { name, ..BlobItem::default() }, relative, is_folder: true })
    }

    pub(super) fn relative<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.get(self.relative_at(name)?..)
    }

    /// Whether a folder, with its `/`, is looked into.
    fn enters(&self, folder: &str) -> bool {
        if let Where::Matching(pattern) = &self.at
            && !pattern.may_hold(folder)
        {
            return false;
        }
        // Above what a pattern matches nothing is relative to anything yet.
        let Some(relative) = self.relative(folder.strip_suffix('/').unwrap_or(folder)) else { return true };
        let depth = relative.matches('/').count() + 1;
        self.levels.is_none_or(|levels| depth < levels.get()) && self.selection.may_hold(relative)
    }

    /// Whether a place is listed by its folders, as far as its first page shows what is there.
    fn splits(&self, prefix: &str, page: &ListPage) -> bool {
        // The service refuses a delimiter together with snapshots; of versions and what is deleted it is not said what would be
        // missing.
        if !self.include.iter().all(|include| ["metadata", "tags", "copy"].contains(include)) {
            return false;
        }
        let root = prefix.rfind('/').map_or(0, |slash| slash + 1);
        let (mut last, mut folders, mut entered, mut passed, mut total) = ("", 0, 0, 0, 0);
        let mut enters = false;
        for blob in page.blobs() {
            total += 1;
            let Some(slash) = blob.name.get(root..).and_then(|rest| rest.find('/')) else { continue };
            let folder = &blob.name[..=root + slash];
            if folder != last {
                (last, enters) = (folder, self.enters(folder));
                folders += usize::from(enters);
            }
            if enters { entered += 1 } else { passed += 1 }
        }
        passed * 2 > total || (entered * 2 > total && folders <= FEW)
    }

    fn options(&self, prefix: &str, marker: Option<String>, delimiter: Option<&str>) -> ListOptions {
        ListOptions {
            prefix: Some(prefix.to_owned()),
            delimiter: delimiter.map(str::to_owned),
            marker,
            max_results: None,
            include: self.include.clone(),
        }
    }

    async fn page(&self, prefix: &str, marker: Option<String>, delimiter: Option<&str>) -> Result<ListPage> {
        self.list(self.options(prefix, marker, delimiter)).await
    }

    async fn list(&self, options: ListOptions) -> Result<ListPage> {
        Container::new(&self.client, &self.container).list(&options).await
    }
}

fn blobs(entries: Vec<ListEntry>) -> impl Iterator<Item = BlobItem> {
    entries.into_iter().filter_map(|entry| match entry {
        ListEntry::Blob(blob) => Some(blob),
        ListEntry::Prefix(_) => None,
    })
}
