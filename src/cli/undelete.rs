//! `blobjet undelete`: brings deleted blobs back, where the account keeps them for a while (soft delete).

use super::changing::{self, ChangingArgs, Doer, target};
use super::context::Context;
use super::doing::Changing;
use super::entry::Origin;
use super::exit::Exit;
use crate::endpoint::blob_changes::Undeletion;
use crate::error::Result;
use crate::rest::auth::Need;
use clap::Args;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  blobjet undelete 'https://ACCOUNT.blob.core.windows.net/CONTAINER/report.pdf?SAS'   one blob, with its deleted snapshots
  blobjet undelete 'https://ACCOUNT.blob.core.windows.net/CONTAINER/logs?SAS' --recursive --dry-run
                                                                what was deleted in a folder and is kept
Blobs are kept where 'soft delete' is on at the account (Data protection), for as many days as are set there.";

/// Arguments of `undelete`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct UndeleteArgs {
    #[command(flatten)]
    pub(crate) changing: ChangingArgs,
}

const WORDS: Changing = Changing {
    command: "undelete",
    verb: "undelete",
    nothing: "no deleted blob that is kept (soft delete may be off at the account)",
    done: "undeleted",
    dry_run: false,
    selects: false,
    gone_earlier: 0,
};

/// Undeletes what the URL names.
///
/// # Errors
/// What keeps it from starting.
pub(crate) async fn run(args: &UndeleteArgs, mut origin: Option<Origin>, context: &Context) -> Result<Exit> {
    let target = target(&args.changing, &mut origin, context)?;
    let doer = Doer {
        words: WORDS,
        needs: &[Need::UNDELETE],
        include: &["deleted"],
        vanish: true,
        with_stub: false,
        change: &|blobs| Arc::new(Undeletion::new(blobs)),
    };
    changing::run(&args.changing, target, origin, doer, context).await
}
