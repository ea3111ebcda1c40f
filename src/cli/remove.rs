//! `blobjet remove`: deletes a blob, those in a folder, of a pattern or of a list; or a whole container.

use super::changing::{self, ChangingArgs, Doer, Target, target};
use super::context::Context;
use super::doing::Changing;
use super::entry::Origin;
use super::exit::Exit;
use super::json::Event;
use super::options::Switch;
use super::remote::Remote;
use super::render::printable;
use crate::endpoint::blob_changes::Deletion;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::blob::DeleteSnapshots;
use crate::rest::container::Container;
use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  blobjet remove 'https://ACCOUNT.blob.core.windows.net/CONTAINER/old.log?SAS'   one blob
  blobjet remove dev://box/logs --recursive                          all in the folder logs (and nothing of logs-old)
  blobjet remove 'dev://box/logs/*.gz' --dry-run                     what a pattern would delete (in quotes)
  blobjet remove dev://box --list-of-files names.txt                 what a list names
  blobjet remove dev://box --recursive                               the container itself, after asking for its name";

/// Arguments of `remove`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    pub(crate) changing: ChangingArgs,
    /// Blobs with snapshots: delete both (include), the snapshots (only), or refuse (default)
    #[arg(long, value_enum, ignore_case = true, default_value_t = SnapshotsArg::None, hide_possible_values = true, hide_default_value = true, value_name = "HOW")]
    pub(crate) delete_snapshots: SnapshotsArg,
    /// Do not ask before a whole container is deleted
    #[arg(long, switch = false)]
    pub(crate) yes: bool,
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

const WORDS: Changing = Changing {
    command: "remove",
    verb: "delete",
    nothing: "no blob",
    done: "deleted",
    dry_run: false,
    selects: false,
    gone_earlier: 0,
};

/// Deletes what the URL names.
///
/// # Errors
/// What keeps it from starting; `Usage` where more would go than was said.
pub(crate) async fn run(args: &RemoveArgs, mut origin: Option<Origin>, context: &Context) -> Result<Exit> {
    let target = target(&args.changing, &mut origin, context)?;
    if target.location.blob.is_none() && args.changing.recursive && !args.changing.selects() && args.changing.explain.is_empty() {
        if !args.changing.dry_run {
            confirm(&target.container, args, context)?;
        }
        let whole = whole(&target, args, context);
        return context.signals.unless_told(whole).await.unwrap_or_else(|which| Ok(which.into()));
    }
    let snapshots = args.delete_snapshots.into();
    let doer = Doer {
        words: WORDS,
        needs: &[Need::DELETE],
        include: &[],
        vanish: true,
        with_stub: true,
        change: &|blobs| Arc::new(Deletion::new(blobs, snapshots)),
    };
    changing::run(&args.changing, target, origin, doer, context).await
}

/// Deleting a container cannot be undone: it is confirmed by its name, or by `--yes`.
fn confirm(container: &str, args: &RemoveArgs, context: &Context) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    if context.out.is_json() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let what = format!("cannot ask whether to delete the container {container}");
        return Err(Error::new(Kind::Usage, what).with_advice("add --yes"));
    }
    let question = format!("Delete the container {container} and everything in it? Type its name to go on: ");
    if context.out.ask(&question).as_deref() == Some(container) {
        Ok(())
    } else {
        Err(Error::new(Kind::Cancelled, format!("the container {container} was not deleted")))
    }
}

/// A container is one request, and no job.
async fn whole(target: &Target, args: &RemoveArgs, context: &Context) -> Result<Exit> {
    let remote = Remote::open(&target.place, context).await?;
    let client = remote.client(context)?;
    let dry_run = args.changing.dry_run;
    let url = remote.shown(None);
    if !dry_run && !Container::new(&client, &target.container).delete().await? {
        return Err(Error::new(Kind::SourceNotFound, format!("there is no container {url}")));
    }
    let done = if dry_run { "DRYRUN: remove" } else { "removed" };
    context.out.data(|| format!("{done} {}", printable(&url)), || Event::Removed { url: url.clone(), dry_run });
    remote.close().await;
    Ok(Exit::Done)
}
