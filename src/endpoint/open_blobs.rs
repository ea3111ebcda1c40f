//! From a place at the service to a source of blobs: which of them are meant, and where they land.

use crate::endpoint::blob_listing::BlobListing;
use crate::endpoint::blob_pattern::BlobPattern;
use crate::endpoint::blob_source::{BlobSource, Many, What};
use crate::endpoint::landing::{Ask, Landing, SourceKind, land};
use crate::endpoint::open::Opening;
use crate::error::{Error, Kind, Result};
use crate::rest::client::Client;
use std::sync::Arc;

/// The blobs that `path` within a container means: one, those of a folder, those that match a pattern, those that a list names.
/// No request is made: whether a name is that of a blob or of a folder is found out when it is listed.
///
/// # Errors
/// `Usage` where folders are meant and not asked for.
pub fn blobs(client: Client, container: &str, path: Option<&str>, opening: &Opening) -> Result<BlobSource> {
    let place = |kind, source| {
        let ask = Ask { kind, source, real_name: None, dest: opening.dest.as_deref(), as_subdir: opening.as_subdir };
        land(ask).map(|landing| match landing {
            Landing::At(name) | Landing::Under(name) => name,
        })
    };
    let path = path.unwrap_or_default();
    let all = BlobListing::new(client.clone(), container.to_owned()).selecting(Arc::clone(&opening.selection));
    let folder = || -> Result<Many> {
        let prefix = if path.is_empty() || path.ends_with('/') { path.to_owned() } else { format!("{path}/") };
        let under = place(SourceKind::Folder, if path.is_empty() { container } else { path })?;
        Ok(Many { listing: all.clone().under(&*prefix), only: opening.list_of_files.clone(), under, named: prefix })
    };
    let what = if opening.list_of_files.is_some() {
        let many = folder()?;
        What::Many(Many { listing: many.listing.recursive(opening.recursive), ..many })
    } else if BlobPattern::is_pattern(path) {
        let listing = all.clone().matching(BlobPattern::new(path)).recursive(opening.recursive);
        What::Many(Many { listing, only: None, under: place(SourceKind::Pattern, path)?, named: path.to_owned() })
    } else if path.is_empty() || path.ends_with('/') {
        if !opening.recursive {
            let what = if path.is_empty() { format!("the container {container}") } else { format!("the folder {path}") };
            return Err(Error::new(Kind::Usage, format!("cannot take {what} without --recursive"))
                .with_advice("add --recursive, or name the blobs in it: 'URL/*'"));
        }
        What::Many(folder()?)
    } else {
        let (blob, target) = (path.to_owned(), place(SourceKind::File, path)?);
        match opening.recursive {
            true => What::Either { blob, target, many: folder()? },
            false => What::One { blob, target },
        }
    };
    Ok(BlobSource::new(client, container, what).selecting(Arc::clone(&opening.selection)))
}
