//! `blobjet remove`: deletes one blob, the blobs under a prefix, or a container.

use super::context::Context;
use super::deletes::delete_all;
use super::exit::Exit;
use super::json::Event;
use super::list::nothing_to_list;
use super::options::Switch;
use super::remote::{Remote, named, place};
use super::render::{Report, printable};
use crate::error::{Error, Kind, Result};
use crate::rest::blob::{Blob, DeleteSnapshots};
use crate::rest::client::Client;
use crate::rest::container::{Container, ListOptions};
use clap::{Args, ValueEnum};
use std::io::IsTerminal;

const EXAMPLES: &str = "\
Examples:
  blobjet remove az://ACCOUNT/box/old.bin                  one blob
  blobjet remove az://ACCOUNT/box/logs --recursive --dry-run       what would go of a folder
  blobjet remove az://ACCOUNT/box --recursive --yes        a container with all that is in it, unasked";

/// Arguments of `remove`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RemoveArgs {
    /// Blob, prefix or container: https://, az:// or dev:// URL
    pub(crate) url: String,
    /// Delete all blobs under the prefix; of a container, the container itself
    #[arg(long, switch = false)]
    pub(crate) recursive: bool,
    /// Blobs with snapshots: delete both (include), the snapshots (only), or refuse (default)
    #[arg(long, value_enum, ignore_case = true, default_value_t = SnapshotsArg::None, hide_possible_values = true, hide_default_value = true, value_name = "HOW")]
    pub(crate) delete_snapshots: SnapshotsArg,
    /// Do not ask before a container is deleted
    #[arg(long, switch = false)]
    pub(crate) yes: bool,
    /// Show what would be deleted, and delete nothing
    #[arg(long, switch = false)]
    pub(crate) dry_run: bool,
}

/// `--delete-snapshots`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SnapshotsArg {
    None,
    Include,
    Only,
}

impl From<SnapshotsArg> for DeleteSnapshots {
    fn from(arg: SnapshotsArg) -> Self {
        match arg {
            SnapshotsArg::None => DeleteSnapshots::Refuse,
            SnapshotsArg::Include => DeleteSnapshots::Include,
            SnapshotsArg::Only => DeleteSnapshots::Only,
        }
    }
}

/// Deletes what the URL names.
///
/// # Errors
/// Those of the requests; `Usage` where more would go than was said.
pub(crate) async fn run(args: &RemoveArgs, context: &Context) -> Result<Exit> {
    let place = place(&args.url, &context.inputs)?;
    let names = named(&place, &context.inputs)?;
    let container = names.container.as_deref().ok_or_else(|| usage("the URL names no container", "accounts are not deleted"))?;
    match (&names.blob, args.recursive) {
        (None, false) => {
            let advice = "add --recursive to delete the container with all that is in it, or name a blob";
            return Err(usage(format!("{container} is a container"), advice));
        }
        (None, true) if !args.dry_run => confirm(container, args, context)?,
        _ => {}
    }
    let remote = Remote::open(&place, context).await?;
    let client = remote.client(context)?;
    let exit = match (&names.blob, args.recursive) {
        (Some(blob), false) => one(&client, &remote, container, blob, args, context).await?,
        (Some(prefix), true) => under(&client, &remote, container, prefix, args, context).await?,
        (None, _) => whole(&client, &remote, container, args, context).await?,
    };
    remote.close().await;
    Ok(exit)
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// Deleting a container cannot be undone: it is confirmed by its name, or by `--yes`.
fn confirm(container: &str, args: &RemoveArgs, context: &Context) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    if context.out.is_json() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(usage(format!("cannot ask whether to delete the container {container}"), "add --yes"));
    }
    let question = format!("Delete the container {container} and everything in it? Type its name to go on: ");
    if context.out.ask(&question).as_deref() == Some(container) {
        Ok(())
    } else {
        Err(Error::new(Kind::Cancelled, format!("the container {container} was not deleted")))
    }
}

async fn one(
    client: &Client,
    remote: &Remote,
    container: &str,
    blob: &str,
    args: &RemoveArgs,
    context: &Context,
) -> Result<Exit> {
    if !args.dry_run && !Blob::new(client, container, blob).delete(args.delete_snapshots.into()).await? {
        let message = format!("there is no blob {}", remote.shown(Some(blob)));
        return Err(Error::new(Kind::SourceNotFound, message).with_advice("'blobjet list' shows what is there"));
    }
    gone(remote.shown(Some(blob)), args, context);
    Ok(Exit::Done)
}

/// Deletes page by page what begins with the prefix. One that cannot be deleted is named, and the others go.
async fn under(
    client: &Client,
    remote: &Remote,
    container: &str,
    prefix: &str,
    args: &RemoveArgs,
    context: &Context,
) -> Result<Exit> {
    // A folder, not everything whose name begins alike: `logs` is not `logs-old`.
    let prefix = if prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") };
    let mut options = ListOptions { prefix: Some(prefix), ..ListOptions::default() };
    let (mut removed, mut failed) = (0u64, Vec::new());
    loop {
        let page = Container::new(client, container).list(&options).await.map_err(nothing_to_list)?;
        let names: Vec<String> = page.blobs().map(|blob| blob.name.clone()).collect();
        let results = match args.dry_run {
            true => names.into_iter().map(|name| (name, Ok(true))).collect(),
            false => delete_all(client, container, names, args.delete_snapshots.into()).await,
        };
        for (name, result) in results {
            match result {
                // One that is gone already counts as deleted.
                Ok(_) => {
                    removed += 1;
                    gone(remote.shown(Some(&name)), args, context);
                }
                Err(error) if error.ends_job() => return Err(error),
                Err(error) => {
                    context.out.error(Report::of(&error), Exit::SomeFailed);
                    failed.push(error.kind());
                }
            }
        }
        options.marker = page.next_marker;
        if options.marker.is_none() {
            break;
        }
    }
    if removed == 0 && failed.is_empty() {
        context.out.warn(&format!("nothing to delete under {}", remote.shown(options.prefix.as_deref())));
    }
    Ok(Exit::of_failures(failed, removed))
}

async fn whole(client: &Client, remote: &Remote, container: &str, args: &RemoveArgs, context: &Context) -> Result<Exit> {
    if !args.dry_run && !Container::new(client, container).delete().await? {
        return Err(Error::new(Kind::SourceNotFound, format!("there is no container {}", remote.shown(None))));
    }
    gone(remote.shown(None), args, context);
    Ok(Exit::Done)
}

fn gone(url: String, args: &RemoveArgs, context: &Context) {
    let done = if args.dry_run { "DRYRUN: remove" } else { "removed" };
    context.out.data(|| format!("{done} {}", printable(&url)), || Event::Removed { url: url.clone(), dry_run: args.dry_run });
}
