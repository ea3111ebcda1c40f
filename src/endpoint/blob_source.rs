//! Blobs of one container as a source: what is listed, and ranges of one version of each.
//!
//! A listing tells length, ETag and properties, so that opening a blob asks nothing. All reading is pinned to that ETag: a blob
//! that is replaced meanwhile is another source, and fails as such. What lies in the archive is known beforehand.

use crate::attributes::Attributes;
use crate::chunks::Chunks;
use crate::endpoint::blob_listing::{BlobListing, Listed, no_container};
use crate::endpoint::explain::Explanation;
use crate::endpoint::list_of_files::ListOfFiles;
use crate::endpoint::local_name::{self, Ancestors};
use crate::endpoint::selection::{Candidate, Selection, Verdict};
use crate::endpoint::unpacked;
use crate::endpoint::{Facts, Filtered, Flow, Found, Item, Known, Listing, Pour, Reader, Receipt, Same, Source, Task};
use crate::error::{Error, Kind, Result};
use crate::rest::blob::{Blob, BlobProperties};
use crate::rest::client::Client;
use crate::rest::from_url::Link;
use crate::rest::location::Location;
use crate::rest::model::BlobItem;
use crate::rest::range::Range;
use crate::rest::receive::Receive;
use crate::rest::request::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Why a blob that only stands for a folder is left out.
pub const MARKS_A_FOLDER: &str = "marks a folder and has no content";

/// What of a container is taken, and where it lands.
#[derive(Clone)]
pub enum What {
    /// One blob.
    One {
        /// Its name.
        blob: String,
        /// What it lands as.
        target: String,
    },
    /// What a listing gives.
    Many(Many),
    /// A name that may be that of a blob or of a folder, which is found out. A blob it is if there is one.
    Either {
        /// The name, and what a blob lands as.
        blob: String,
        /// See there.
        target: String,
        /// The folder's blobs otherwise.
        many: Many,
    },
}

/// Blobs that a listing gives.
#[derive(Clone)]
pub struct Many {
    /// The listing.
    pub listing: BlobListing,
    /// Of what it gives only what this names.
    pub only: Option<ListOfFiles>,
    /// What they land as, followed by their relative paths: empty, or ends in `/`.
    pub under: String,
    /// The name or pattern they have in common, for messages; empty for the whole container.
    pub named: String,
}

/// What becomes of the names of what is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpacked {
    /// Nothing is unpacked.
    No,
    /// They lose their endings.
    All,
    /// So do those of listings; a single blob has the name it was given.
    Listed,
}

/// A container to read blobs from.
pub struct BlobSource {
    client: Client,
    container: Arc<str>,
    place: Location,
    what: What,
    /// Decides whether a single blob is taken; a listing has its own.
    selection: Arc<Selection>,
    /// Whether names become paths, so that none may lie under another.
    paths: bool,
    /// What becomes of the names of what is unpacked.
    unpacked: Unpacked,
    /// Whether index tags are asked for.
    tags: bool,
}

impl BlobSource {
    /// Blobs of `container`. Whether there are any is not asked.
    pub fn new(client: Client, container: impl Into<Arc<str>>, what: What) -> Self {
        let container = container.into();
        let place = Location { container: Some(container.to_string()), blob: None, ..client.location().clone() };
        let (selection, unpacked) = (Arc::default(), Unpacked::No);
        BlobSource { client, container, place, what, selection, paths: false, unpacked, tags: false }
    }

    /// For files: a blob whose name lies under that of another fails, as no file can be in a file.
    #[must_use]
    pub fn as_paths(self) -> Self {
        BlobSource { paths: true, ..self }
    }

    /// Asks for index tags as well, with the listing or, of a single blob, with a request of their own.
    #[must_use]
    pub fn with_tags(self) -> Self {
        BlobSource { tags: true, ..self }
    }

    /// Whether everything lands under the name it has.
    pub fn keeps_names(&self) -> bool {
        let same = |many: &Many| many.under == many.named[..many.named.rfind('/').map_or(0, |at| at + 1)];
        match &self.what {
            What::One { blob, target } => blob == target,
            What::Many(many) => same(many),
            What::Either { blob, target, many } => blob == target || same(many),
        }
    }

    /// Takes a single blob only if this does, by its last name.
    #[must_use]
    pub fn selecting(self, selection: Arc<Selection>) -> Self {
        BlobSource { selection, ..self }
    }

    /// Names what is compressed as it will be called once it is unpacked.
    #[must_use]
    pub fn unpacked(self, unpacked: Unpacked) -> Self {
        BlobSource { unpacked, ..self }
    }

    /// Whether a single blob is taken.
    fn takes(&self, blob: &str, known: Option<&Known>) -> bool {
        let path = blob.rsplit('/').next().unwrap_or(blob);
        let (len, modified) = (known.map(|known| known.len), known.and_then(|known| known.modified));
        self.selection.takes(&Candidate { path, len, modified }).is_taken()
    }

    /// What a blob lands as that would land as `target`.
    fn target<'a>(&self, target: &'a str, known: Option<&Known>, which: &[Unpacked]) -> &'a str {
        let packed = which.contains(&self.unpacked) && unpacked::packing(known.map(|known| &known.carried)).is_some();
        if packed { unpacked::name(target) } else { target }
    }

    fn shown(&self, blob: &str) -> String {
        self.place.safe_blob(blob).to_string()
    }

    async fn list_one(&self, blob: &str, target: &str, known: Option<Known>, out: &Listing) {
        if !self.takes(blob, known.as_ref()) {
            let _ = out.send(vec![Found::Filtered(Filtered { objects: 1, folders: 0 })]).await;
            return;
        }
        let target = self.target(target, known.as_ref(), &[Unpacked::All]);
        let item = Item { known: known.map(Arc::new), ..Item::new(blob, target) };
        let _ = out.send(vec![Found::Item(item)]).await;
    }

    async fn list_many(&self, many: &Many, out: &Listing) -> Result<()> {
        let (sender, mut listed) = mpsc::channel::<Vec<Listed>>(1);
        let failed = Arc::new(Mutex::new(Vec::new()));
        let include: &[&str] = if self.tags { &["metadata", "tags"] } else { &["metadata"] };
        let mut listing = many.listing.clone().including(include);
        if self.paths {
            // What it takes to see that a name lies under another.
            listing = listing.ordered();
        }
        if let Some(list) = &many.only {
            let failed = Arc::clone(&failed);
            let tell = move |name, error| {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(Found::Failed { name, error });
            };
            listing = listing.only(list.clone(), Arc::new(tell));
        }
        let mut ancestors = self.paths.then(Ancestors::default);
        // Of what is unpacked: two names may become one.
        let mut names = HashSet::new();
        let hand_on = async {
            while let Some(batch) = listed.recv().await {
                let found = batch.into_iter().map(|one| self.found(one, &many.under, &mut ancestors, &mut names)).collect();
                if out.send(found).await.is_err() {
                    break;
                }
            }
            listed.close();
        };
        let (result, ()) = tokio::join!(listing.run(sender), hand_on);
        let mut last = std::mem::take(&mut *failed.lock().unwrap_or_else(PoisonError::into_inner));
        last.extend(Some(listing.filtered()).filter(|filtered| *filtered != Filtered::default()).map(Found::Filtered));
        let _ = out.send(last).await;
        result
    }

    /// Why a blob would be taken or left out, by its name or its path within what is listed, and what it would land as.
    ///
    /// # Errors
    /// Those of looking for it; a container that is not there is `SourceNotFound`.
    pub async fn explain(&self, path: &str) -> Result<Explanation> {
        self.explained(path).await.map_err(no_container)
    }

    async fn explained(&self, path: &str) -> Result<Explanation> {
        let many = match &self.what {
            What::Many(many) => many,
            What::One { blob, target } => return self.explain_one(blob, target, self.look(blob).await?, path),
            What::Either { blob, target, many } => match self.look(blob).await? {
                Some(known) if !known.marks_a_folder() => return self.explain_one(blob, target, Some(known), path),
                _ => many,
            },
        };
        let mut listing = many.listing.clone().including(&["metadata"]);
        if let Some(list) = &many.only {
            listing = listing.only(list.clone(), Arc::new(|_, _| ()));
        }
        let (explanation, listed) = listing.explain(path).await?;
        let Some(Listed { item, relative, .. }) = listed else { return Ok(explanation) };
        if marks_a_folder(&item) {
            return Ok(Explanation::no(format!("it is skipped: {MARKS_A_FOLDER}")));
        }
        let target = self.target(&relative, known(&item).as_ref(), &[Unpacked::All, Unpacked::Listed]);
        Ok(Explanation { target: Some(format!("{}{target}", many.under)), ..explanation })
    }

    fn explain_one(&self, blob: &str, target: &str, known: Option<Known>, path: &str) -> Result<Explanation> {
        let name = blob.rsplit('/').next().unwrap_or(blob);
        if path != blob && path != name {
            return Ok(Explanation::no(format!("the source is the blob {blob} alone")));
        }
        let Some(known) = known else { return Ok(Explanation::no("there is no such blob")) };
        let candidate = Candidate { path: name, len: Some(known.len), modified: known.modified };
        Ok(match self.selection.takes(&candidate) {
            Verdict::Taken => {
                let target = self.target(target, Some(&known), &[Unpacked::All]);
                Explanation::yes(Verdict::Taken.to_string(), Some(target.to_owned()))
            }
            left_out => Explanation::no(left_out.to_string()),
        })
    }

    fn collides(&self, blob: &str, text: String) -> Found {
        let error = Error::new(Kind::Local, text).with_advice("copy one of the two alone, to a name of your own");
        Found::Failed { name: self.shown(blob), error }
    }

    fn found(&self, listed: Listed, under: &str, ancestors: &mut Option<Ancestors>, names: &mut HashSet<u64>) -> Found {
        let Listed { item: blob, relative, .. } = listed;
        if marks_a_folder(&blob) {
            return Found::Skipped { name: self.shown(&blob.name), reason: MARKS_A_FOLDER };
        }
        if let Some(earlier) = ancestors.as_mut().and_then(|ancestors| ancestors.enter(&relative)) {
            let text = format!("cannot write {relative}: {earlier} is a blob as well, and becomes a file");
            return self.collides(&blob.name, text);
        }
        let known = known(&blob).map(Arc::new);
        let target = self.target(&relative, known.as_deref(), &[Unpacked::All, Unpacked::Listed]);
        if self.unpacked != Unpacked::No && !names.insert(local_name::hash(target)) {
            return self.collides(&blob.name, format!("cannot write {target}: another blob becomes that file"));
        }
        let target = format!("{under}{target}");
        Found::Item(Item { known, ..Item::new(blob.name, target) })
    }

    /// What is known of a blob without reading it: what the listing told, or a request does.
    ///
    /// # Errors
    /// `SourceNotFound` where it is not there, and those of the request.
    pub async fn known(&self, item: &Item) -> Result<Arc<Known>> {
        match &item.known {
            Some(known) => Ok(Arc::clone(known)),
            None => self.existing(&item.source).await.map(Arc::new),
        }
    }

    async fn existing(&self, blob: &str) -> Result<Known> {
        self.look(blob).await?.ok_or_else(|| {
            Error::new(Kind::SourceNotFound, format!("there is no blob {}", self.shown(blob)))
                .with_advice("'blobjet list' shows what is there; a folder needs --recursive")
        })
    }

    async fn look(&self, blob: &str) -> Result<Option<Known>> {
        let at = Blob::new(&self.client, &self.container, blob);
        let Some(there) = at.get_properties().await? else { return Ok(None) };
        let mut known = known_by(&there);
        if let Some(known) = known.as_mut().filter(|_| self.tags && there.get("x-ms-tag-count").is_some()) {
            known.carried.tags = at.get_tags().await?.0;
        }
        let missing =
            || Error::new(Kind::BadAnswer, format!("length or ETag is missing in the properties of {}", self.shown(blob)));
        known.ok_or_else(missing).map(Some)
    }
}

/// Whether a blob stands for a folder: a stub as Hadoop and ADLS write them, or an empty one whose name ends in `/`.
pub(super) fn marks_a_folder(blob: &BlobItem) -> bool {
    let metadata = blob.metadata.iter().flatten();
    blob.properties.content_length() == Some(0) && (blob.name.ends_with('/') || is_stub(metadata))
}

fn is_stub<'a>(metadata: impl Iterator<Item = &'a (String, String)>) -> bool {
    mark(metadata).is_some()
}

/// What marks an empty blob as a folder.
fn mark<'a>(mut metadata: impl Iterator<Item = &'a (String, String)>) -> Option<&'a (String, String)> {
    metadata.find(|(name, value)| is_mark(name, value))
}

/// Whether it is this pair of metadata that marks a folder.
pub(super) fn is_mark(name: &str, value: &str) -> bool {
    name.eq_ignore_ascii_case("hdi_isfolder") && value.eq_ignore_ascii_case("true")
}

/// The metadata by which a blob is marked as a folder, where it is.
pub(super) fn folder_mark(blob: &BlobProperties) -> Option<(String, String)> {
    let metadata = blob.attributes().ok()?.metadata;
    mark(metadata.iter()).filter(|_| blob.get("content-length") == Some("0")).cloned()
}

impl Known {
    fn marks_a_folder(&self) -> bool {
        self.len == 0 && is_stub(self.carried.metadata.iter())
    }
}

/// What a listing tells; `None` where it does not tell length or ETag.
fn known(blob: &BlobItem) -> Option<Known> {
    let properties = &blob.properties;
    let text = |name: &str| properties.get(name).map(str::to_owned);
    let metadata = blob.metadata.clone().unwrap_or_default();
    Some(Known {
        len: properties.content_length()?,
        modified: properties.last_modified(),
        etag: properties.etag()?.to_owned(),
        carried: Attributes {
            content_type: text("Content-Type"),
            content_encoding: text("Content-Encoding"),
            content_language: text("Content-Language"),
            content_disposition: text("Content-Disposition"),
            cache_control: text("Cache-Control"),
            content_md5: properties.get("Content-MD5").and_then(md5),
            metadata,
            tags: blob.tags.clone().map(|tags| tags.0).unwrap_or_default(),
            tier: text("AccessTier"),
        },
    })
}

/// What Get Blob Properties tells.
fn known_by(there: &BlobProperties) -> Option<Known> {
    let text = |name: &str| there.get(name).map(str::to_owned);
    Some(Known {
        len: there.content_length()?,
        modified: there.last_modified(),
        etag: there.etag()?.to_owned(),
        carried: Attributes {
            content_type: text("content-type"),
            content_encoding: text("content-encoding"),
            content_language: text("content-language"),
            content_disposition: text("content-disposition"),
            cache_control: text("cache-control"),
            content_md5: there.get("content-md5").and_then(md5),
            metadata: there.metadata().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            tags: Vec::new(),
            tier: text("x-ms-access-tier"),
        },
    })
}

fn md5(text: &str) -> Option<[u8; 16]> {
    BASE64.decode(text).ok()?.try_into().ok()
}

impl Source for BlobSource {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            let listed = match &self.what {
                What::One { blob, target } => {
                    let known = self.existing(blob).await.map_err(no_container)?;
                    self.list_one(blob, target, Some(known), &out).await;
                    Ok(())
                }
                What::Many(many) => self.list_many(many, &out).await,
                What::Either { blob, target, many } => match self.look(blob).await? {
                    Some(known) if !known.marks_a_folder() => {
                        self.list_one(blob, target, Some(known), &out).await;
                        Ok(())
                    }
                    _ => self.list_many(many, &out).await,
                },
            };
            listed.map_err(no_container)
        })
    }

    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let known = self.known(item).await?;
            if known.carried.tier.as_deref().is_some_and(|tier| tier.eq_ignore_ascii_case("archive")) {
                let shown = self.shown(&item.source);
                return Err(Error::new(Kind::Conflict, format!("cannot read {shown}: it is in the archive tier"))
                    .with_advice("bring it back first: blobjet set-properties URL --block-blob-tier hot; that takes hours"));
            }
            let (client, container) = (self.client.clone(), Arc::clone(&self.container));
            Ok(Box::new(BlobReader { client, container, name: item.source.clone(), known }) as Box<dyn Reader>)
        })
    }

    fn describe(&self) -> String {
        match &self.what {
            What::One { blob, .. } | What::Either { blob, .. } => self.shown(blob),
            What::Many(many) if many.named.is_empty() => self.place.safe().to_string(),
            What::Many(many) => self.shown(&many.named),
        }
    }

    fn flow(&self) -> Option<Flow> {
        let stats = self.client.stats();
        Some(Flow::counted(stats, stats.bytes_received.load(Relaxed)))
    }
}

/// One version of a blob.
struct BlobReader {
    client: Client,
    container: Arc<str>,
    name: String,
    known: Arc<Known>,
}

impl BlobReader {
    async fn receive(&self, offset: u64, len: u64, into: &mut dyn Receive) -> Result<Receipt> {
        if len == 0 && self.known.len > 0 {
            return Ok(Receipt { attempts: 1 });
        }
        let range = Range { offset, len, etag: &self.known.etag };
        let answer = Blob::new(&self.client, &self.container, &self.name).get_range(range, into).await?;
        Ok(Receipt { attempts: answer.attempts })
    }
}

impl Reader for BlobReader {
    fn facts(&self) -> Facts {
        Facts { len: Some(self.known.len), modified: self.known.modified }
    }

    fn read<'a>(&'a self, offset: u64, len: u64) -> Task<'a, Result<Chunks>> {
        Box::pin(async move {
            let mut all = Collect(Vec::with_capacity(usize::try_from(len).unwrap_or_default()));
            self.receive(offset, len, &mut all).await?;
            Ok(all.0.into())
        })
    }

    /// Reading is pinned to the version: it fails where that is gone.
    fn check_unchanged(&self, _: Same) -> Result<()> {
        Ok(())
    }

    fn version(&self) -> Option<&str> {
        Some(&self.known.etag)
    }

    fn carried(&self) -> Option<&Attributes> {
        Some(&self.known.carried)
    }

    fn link(&self) -> Result<Option<Link>> {
        self.client.link(&self.container, &self.name).map(Some)
    }

    fn pour<'a>(&'a self, offset: u64, len: u64, into: &'a mut dyn Pour) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { self.receive(offset, len, &mut Poured(into)).await })
    }
}

/// Keeps what comes.
struct Collect(Vec<u8>);

impl Receive for Collect {
    fn begin(&mut self, _: &Response) -> Result<()> {
        self.0.clear();
        Ok(())
    }

    fn piece(&mut self, piece: &[u8]) -> Result<()> {
        self.0.extend_from_slice(piece);
        Ok(())
    }
}

/// Hands on what comes.
struct Poured<'a>(&'a mut dyn Pour);

impl Receive for Poured<'_> {
    fn begin(&mut self, _: &Response) -> Result<()> {
        self.0.restart()
    }

    fn piece(&mut self, piece: &[u8]) -> Result<()> {
        self.0.piece(piece)
    }
}
