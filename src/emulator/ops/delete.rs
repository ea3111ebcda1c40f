//! Delete Blob.

use super::Ctx;
use super::common::Guards;
use crate::emulator::conditions::Use;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::http::Answer;
use crate::emulator::lease::Guard;
use crate::emulator::state::Entry;

/// Delete Blob, or one of its snapshots, or all of them.
///
/// # Errors
/// By "Delete Blob": 409 `SnapshotsPresent` if there are any and the request does not say what to do with them.
pub(crate) fn blob(ctx: &Ctx<'_>) -> Outcome {
    let what = ctx.head.header("x-ms-delete-snapshots").map(str::to_ascii_lowercase);
    let snapshot = ctx.head.parameter("snapshot");
    if let (Some(_), Some(time)) = (&what, snapshot) {
        return Err(Failure::query("snapshot", time, super::common::ROOT_ONLY));
    }
    if let Some(version) = ctx.head.parameter("versionid") {
        // No versions are kept, so none can be found.
        return Err(match what {
            Some(_) => Failure::query("versionid", version, super::common::ROOT_ONLY),
            None => e::BLOB_NOT_FOUND.into(),
        });
    }
    let guards = Guards::of(ctx.head, Use::Write)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    if let Some(time) = snapshot {
        let time = super::read::snapshot_name(time)?;
        guards.check(Some(held.snapshot(&ctx.blob, time)?), Guard::Write, ctx.now)?;
        let time = time.to_owned();
        held.remove(&ctx.blob, false, &[time])?;
        return Ok(done(ctx));
    }
    let entry = held.blobs.get(&ctx.blob).ok_or(e::BLOB_NOT_FOUND)?;
    let only_snapshots = what.as_deref() == Some("only");
    match entry.base.as_deref() {
        Some(blob) if only_snapshots => {
            // The blob itself stays, so its lease does not stand in the way; a wrong id still does.
            guards.check(Some(blob), Guard::Read, ctx.now)?;
        }
        Some(blob) => guards.check(Some(blob), Guard::Write, ctx.now)?,
        // Only uncommitted blocks: deletable since 2013-08-15.
        None if entry.staged.is_some() && ctx.since("2013-08-15") => {}
        None => return Err(e::BLOB_NOT_FOUND.into()),
    }
    let snapshots = names(entry);
    match what.as_deref() {
        None if !snapshots.is_empty() => return Err(e::SNAPSHOTS_PRESENT.into()),
        None | Some("include" | "only") => {}
        Some(other) => return Err(Failure::header("x-ms-delete-snapshots", other)),
    }
    held.remove(&ctx.blob, !only_snapshots, &snapshots)?;
    Ok(done(ctx))
}

fn names(entry: &Entry) -> Vec<String> {
    entry.snapshots.as_ref().map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

fn done(ctx: &Ctx<'_>) -> Answer {
    let answer = Answer::new(202);
    if ctx.since("2017-07-29") { answer.with("x-ms-delete-type-permanent", "true") } else { answer }
}
