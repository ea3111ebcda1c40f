//! `--explain PATH`: why a path would be taken or left out by this command line. Nothing is sent or changed.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use super::render::printable;
use crate::endpoint::Sink;
use crate::endpoint::blob_listing::{BlobListing, no_container};
use crate::endpoint::blob_source::BlobSource;
use crate::endpoint::change::Change;
use crate::endpoint::explain::{Explanation, explain};
use crate::endpoint::open::Opening;
use crate::error::Result;

/// Explains paths of a local source. `lands` says where something lands, as the user wrote the destination.
///
/// # Errors
/// Those of the source itself.
pub(crate) fn run(
    source: &str,
    opening: &Opening,
    paths: &[String],
    lands: &dyn Fn(&str) -> String,
    context: &Context,
) -> Result<Exit> {
    for path in paths {
        let explained = explain(source, opening, path)?;
        let destination = explained.target.as_deref().map(lands);
        tell(path, &explained, destination.as_deref(), context);
    }
    Ok(Exit::Done)
}

/// Explains blobs, by their names or their paths within what is listed.
///
/// # Errors
/// Those of the request that looks for each.
pub(crate) async fn of_blobs(listing: &BlobListing, paths: &[String], context: &Context) -> Result<Exit> {
    for path in paths {
        tell(path, &listing.explain(path).await.map_err(no_container)?.0, None, context);
    }
    Ok(Exit::Done)
}

/// Explains what a command would do to blobs.
///
/// # Errors
/// Those of the request that looks for each.
pub(crate) async fn of_change(change: &dyn Change, paths: &[String], context: &Context) -> Result<Exit> {
    for path in paths {
        tell(path, &change.explain(path).await?, None, context);
    }
    Ok(Exit::Done)
}

/// Explains blobs that are copied. `lands` says where something lands, as the user wrote the destination.
///
/// # Errors
/// Those of the request that looks for each.
pub(crate) async fn of_source(
    source: &BlobSource,
    sink: &dyn Sink,
    paths: &[String],
    lands: &(dyn Fn(&str) -> String + Sync),
    context: &Context,
) -> Result<Exit> {
    for path in paths {
        let mut explained = source.explain(path).await?;
        if let Some(Err(error)) = explained.target.as_deref().map(|target| sink.check_name(target)) {
            explained = Explanation { taken: false, why: error.to_string(), target: None };
        }
        let destination = explained.target.as_deref().map(lands);
        tell(path, &explained, destination.as_deref(), context);
    }
    Ok(Exit::Done)
}

fn tell(path: &str, explained: &Explanation, destination: Option<&str>, context: &Context) {
    let text = || {
        let taken = match (explained.taken, destination) {
            (true, Some(destination)) => format!("taken, to {}", printable(destination)),
            (true, None) => "taken".to_owned(),
            (false, _) => "not taken".to_owned(),
        };
        format!("{}: {taken}: {}", printable(path), printable(&explained.why))
    };
    context.out.data(text, || Event::Explained {
        path: path.to_owned(),
        taken: explained.taken,
        why: explained.why.clone(),
        destination: destination.map(str::to_owned),
    });
}
