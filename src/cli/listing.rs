//! Lists of blobs for the commands that show them: from a place and the options of the selection to a [`BlobListing`], and through
//! it batch by batch.

use super::exit::Exit;
use super::output::Output;
use super::render::{Report, printable};
use super::selection_args::SelectionArgs;
use crate::endpoint::Filtered;
use crate::endpoint::blob_listing::{BlobListing, Listed, no_container};
use crate::endpoint::blob_pattern::BlobPattern;
use crate::error::{Error, Kind, Result};
use crate::rest::client::Client;
use clap::{Args, ValueEnum};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::mpsc;

/// `--include`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct IncludeArgs {
    /// Also: versions, snapshots, deleted, uncommitted; and of each blob its metadata, tags
    #[arg(long, value_enum, value_delimiter = ';', ignore_case = true, hide_possible_values = true, value_name = "WHAT;WHAT")]
    include: Vec<Include>,
}

/// What else can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Include {
    Versions,
    Snapshots,
    /// What is deleted and can be brought back.
    Deleted,
    /// Blobs of which there are uncommitted blocks alone.
    Uncommitted,
    Metadata,
    Tags,
}

impl IncludeArgs {
    pub(crate) fn has(&self, what: Include) -> bool {
        self.include.contains(&what)
    }

    /// As the service calls them ("List Blobs"), each once.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        let mut words: Vec<&'static str> = self
            .include
            .iter()
            .map(|what| match what {
                Include::Versions => "versions",
                Include::Snapshots => "snapshots",
                Include::Deleted => "deleted",
                Include::Uncommitted => "uncommittedblobs",
                Include::Metadata => "metadata",
                Include::Tags => "tags",
            })
            .collect();
        words.sort_unstable();
        words.dedup();
        words
    }
}

/// A listing, and how many entries of its list of names failed.
pub(crate) struct Listing {
    pub(crate) blobs: BlobListing,
    failed: Arc<AtomicU64>,
    /// What is listed, for messages.
    named: String,
    /// Whether it is a container as a whole, which may be empty.
    whole: bool,
    out: Arc<Output>,
}

impl Listing {
    /// Lists a container, what begins with a prefix, or what matches a pattern. Entries of a list of names that cannot be listed
    /// are told as they are met.
    ///
    /// # Errors
    /// `Usage` for a filter that is wrong, or a list of names within a pattern.
    pub(crate) fn new(
        client: Client,
        container: &str,
        path: Option<&str>,
        args: &SelectionArgs,
        out: &Arc<Output>,
    ) -> Result<Listing> {
        let mut blobs = BlobListing::new(client, container.to_owned()).selecting(Arc::new(args.selection()?));
        let failed = Arc::<AtomicU64>::default();
        blobs = match path {
            Some(path) if BlobPattern::is_pattern(path) => {
                if args.list_of_files.is_some() {
                    let message = format!("cannot take a list of files within the pattern {path}");
                    return Err(Error::new(Kind::Usage, message).with_advice(
                        "with --list-of-files the URL names the container, or the folder that the names in the list are in",
                    ));
                }
                blobs.matching(BlobPattern::new(path))
            }
            // Names of a list are in a folder.
            Some(path) if args.list_of_files.is_some() && !path.ends_with('/') => blobs.under(format!("{path}/")),
            path => blobs.under(path.unwrap_or_default()),
        };
        if let Some(list) = args.list() {
            let (out, failed) = (Arc::clone(out), Arc::clone(&failed));
            let tell = move |_: String, error: Error| {
                failed.fetch_add(1, Relaxed);
                out.error(Report::of(&error), Exit::SomeFailed);
            };
            blobs = blobs.only(list, Arc::new(tell));
        }
        let named = path.map_or_else(|| container.to_owned(), |path| format!("{container}/{path}"));
        let whole = path.is_none() && args.given().is_empty();
        Ok(Listing { blobs, failed, named, whole, out: Arc::clone(out) })
    }

    /// Lists to the end. Returns how it went.
    ///
    /// # Errors
    /// Those of the requests; `SourceNotFound` where the container is not there.
    pub(crate) async fn each(&self, mut take: impl FnMut(Vec<Listed>)) -> Result<Exit> {
        let (sender, mut receiver) = mpsc::channel::<Vec<Listed>>(1);
        let taking = async {
            let mut any = false;
            while let Some(batch) = receiver.recv().await {
                any |= !batch.is_empty();
                take(batch);
            }
            any
        };
        let (listed, any) = tokio::join!(self.blobs.run(sender), taking);
        listed.map_err(no_container)?;
        if self.failed.load(Relaxed) > 0 {
            return Ok(Exit::SomeFailed);
        }
        if !any && !self.whole {
            // Not an error: a prefix is not a thing that is there or not.
            let named = printable(&self.named);
            let left_out = self.blobs.filtered() != Filtered::default();
            self.out.warn(&if left_out {
                format!("nothing found: filters leave out all of {named}")
            } else {
                format!("nothing found: no blob matches {named}")
            });
        }
        Ok(Exit::Done)
    }
}
