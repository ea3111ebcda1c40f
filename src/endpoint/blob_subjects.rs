//! Which blobs a change is about: one by its name, or those of a listing, told as the change wants to hear of them.

use crate::endpoint::blob_listing::{BlobListing, Listed, no_container};
use crate::endpoint::blob_source::is_mark;
use crate::endpoint::change::{Met, Subject};
use crate::endpoint::explain::Explanation;
use crate::endpoint::list_of_files::ListOfFiles;
use crate::endpoint::{Facts, Filtered};
use crate::error::{Kind, Result};
use crate::rest::blob::Blob;
use crate::rest::client::Client;
use crate::rest::model::BlobItem;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Batches that wait between the listing and whoever hears of it.
const BATCHES: usize = 2;

/// See the module's text.
#[derive(Clone)]
pub enum Subjects {
    /// One, by its name. Nobody looks whether it is there before it is asked for.
    One {
        /// Its name, raw.
        name: String,
        /// The same as the user would recognise it.
        shown: String,
    },
    /// Those of a listing.
    Of(Box<Listing>),
}

/// A listing, and what is not in it and belongs to it.
#[derive(Clone)]
pub struct Listing {
    /// What is listed.
    pub blobs: BlobListing,
    /// Only what this names.
    pub list: Option<ListOfFiles>,
    /// The entry of the folder itself, where it is to be told too: of a container, the blob of the folder's name that is marked
    /// as a folder (`hdi_isfolder`). Another blob of that name is not the folder's.
    pub stub: Option<Stub>,
}

/// Where the entry of a folder may be.
#[derive(Clone)]
pub struct Stub {
    /// Who is asked.
    pub client: Client,
    /// The container.
    pub container: String,
    /// The folder's name without the last `/`.
    pub name: String,
}

impl Subjects {
    /// If it is one by its name, that one as the user would recognise it.
    pub(super) fn one(&self) -> Option<&str> {
        match self {
            Subjects::One { shown, .. } => Some(shown),
            Subjects::Of(_) => None,
        }
    }

    /// Tells what there is, as `judge` sees it; of what it gives nothing for, nothing is told. Ends quietly when nobody listens.
    ///
    /// # Errors
    /// Those of the listing; a container that is not there is `SourceNotFound`.
    pub(super) async fn list(&self, out: mpsc::Sender<Vec<Met>>, judge: impl Fn(Listed) -> Option<Met> + Send) -> Result<()> {
        let listing = match self {
            Subjects::Of(listing) => listing,
            Subjects::One { name, .. } => {
                let facts = Facts { len: None, modified: None };
                let subject = Subject { name: name.clone(), facts, last: false };
                // Nobody may be listening any more.
                let _ = out.send(vec![Met::Subject(subject)]).await;
                return Ok(());
            }
        };
        let (failing, mut failed) = mpsc::unbounded_channel();
        let (sender, mut listed) = mpsc::channel::<Vec<Listed>>(BATCHES);
        let blobs = match &listing.list {
            None => listing.blobs.clone(),
            Some(list) => {
                let tell = move |name, error| drop(failing.send(Met::Failed { name, error }));
                listing.blobs.clone().only(list.clone(), Arc::new(tell))
            }
        };
        let told = out.clone();
        let pass = async move {
            // In here, so that the listing sees when nobody listens any more.
            while let Some(batch) = listed.recv().await {
                let mut met: Vec<Met> = std::iter::from_fn(|| failed.try_recv().ok()).collect();
                met.extend(batch.into_iter().filter_map(&judge));
                if !met.is_empty() && told.send(met).await.is_err() {
                    return;
                }
            }
            let rest: Vec<Met> = std::iter::from_fn(|| failed.try_recv().ok()).collect();
            if !rest.is_empty() {
                let _ = told.send(rest).await;
            }
        };
        let (result, ()) = tokio::join!(blobs.run(sender), pass);
        result.map_err(no_container)?;
        let filtered = blobs.filtered();
        if filtered != Filtered::default() {
            let _ = out.send(vec![Met::Filtered(filtered)]).await;
        }
        match &listing.stub {
            Some(stub) => stub.tell(out).await,
            None => Ok(()),
        }
    }
}

impl Subjects {
    /// Why something would be told or not, by its name or its path within what is listed. `otherwise` is said of what `judge` gives
    /// nothing for.
    ///
    /// # Errors
    /// Those of looking for it; a container that is not there is `SourceNotFound`.
    pub(super) async fn explain(
        &self,
        path: &str,
        judge: impl Fn(Listed) -> Option<Met> + Send,
        otherwise: &'static str,
    ) -> Result<Explanation> {
        let listing = match self {
            Subjects::Of(listing) => listing,
            Subjects::One { name, .. } if path == name || name.rsplit('/').next() == Some(path) => {
                return Ok(Explanation::yes("it is the one blob that is named; whether it is there was not asked", None));
            }
            Subjects::One { name, .. } => return Ok(Explanation::no(format!("the blob {name} alone is named"))),
        };
        if let Some(stub) = listing.stub.as_ref().filter(|stub| stub.name == path)
            && stub.there().await.map_err(no_container)?.is_some()
        {
            return Ok(Explanation::yes("it is the entry of the folder itself", None));
        }
        let blobs = match &listing.list {
            None => listing.blobs.clone(),
            Some(list) => listing.blobs.clone().only(list.clone(), Arc::new(|_, _| ())),
        };
        let (explanation, listed) = blobs.explain(path).await.map_err(no_container)?;
        let Some(listed) = listed else { return Ok(explanation) };
        Ok(match judge(listed) {
            Some(Met::Skipped { reason, .. }) => Explanation::no(format!("it is skipped: {reason}")),
            Some(_) => explanation,
            None => Explanation::no(otherwise),
        })
    }
}

impl Stub {
    async fn tell(&self, out: mpsc::Sender<Vec<Met>>) -> Result<()> {
        if let Some(facts) = self.there().await? {
            let _ = out.send(vec![Met::Subject(Subject { name: self.name.clone(), facts, last: true })]).await;
        }
        Ok(())
    }

    /// The entry, if there is one.
    async fn there(&self) -> Result<Option<Facts>> {
        let there = match Blob::new(&self.client, &self.container, &self.name).get_properties().await {
            Ok(there) => there,
            // Who may not read may still list and delete what is in the folder.
            Err(error) if error.kind() == Kind::AccessRefused => None,
            Err(error) => return Err(error),
        };
        let there = there.filter(|there| there.metadata().any(|(name, value)| is_mark(name, value)));
        Ok(there.map(|there| Facts { len: there.content_length(), modified: there.last_modified() }))
    }
}

impl Subject {
    /// A blob of a listing.
    pub(super) fn of(item: BlobItem) -> Subject {
        let facts = Facts { len: item.properties.content_length(), modified: item.properties.last_modified() };
        Subject { name: item.name, facts, last: false }
    }
}

/// Whether the entry is a directory of an account with a hierarchical namespace: it can be deleted only when it is empty.
pub(super) fn is_directory(item: &BlobItem) -> bool {
    item.properties.get("ResourceType") == Some("directory")
}
