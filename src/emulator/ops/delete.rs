//! Delete Blob, and Undelete Blob for accounts that keep what was deleted (soft delete).
//!
//! Overwriting keeps nothing here; the service then makes a deleted snapshot.

use super::Ctx;
use super::common::{Guards, root_only};
use crate::emulator::blob::{Blob, Deleted};
use crate::emulator::conditions::Use;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::Staged;
use crate::emulator::http::Answer;
use crate::emulator::lease::Guard;
use crate::emulator::state::lock;
use crate::emulator::time::SECOND;

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
    let kept = kept(ctx);
    if let Some(time) = snapshot {
        let time = super::read::snapshot_name(time)?;
        guards.check(Some(held.snapshot(&ctx.blob, time)?), Guard::Write, ctx.now)?;
        let time = time.to_owned();
        held.remove(&ctx.blob, false, &[time], kept)?;
        return Ok(done(ctx, kept));
    }
    let entry = held.blobs.get(&ctx.blob).ok_or(e::BLOB_NOT_FOUND)?;
    let only_snapshots = what.as_deref() == Some("only");
    match entry.live() {
        // The blob itself stays, so its lease does not stand in the way; a wrong id still does.
        Some(blob) if only_snapshots => guards.check(Some(blob), Guard::Read, ctx.now)?,
        Some(blob) => guards.check(Some(blob), Guard::Write, ctx.now)?,
        // Only uncommitted blocks: deletable since 2013-08-15.
        None if entry.staged.is_some() && ctx.since("2013-08-15") => {}
        None => held.blob(&ctx.blob).map(|_| ())?,
    }
    let snapshots: Vec<String> = entry.live_snapshots().map(|(time, _)| time.clone()).collect();
    match what.as_deref() {
        None if !snapshots.is_empty() => return Err(e::SNAPSHOTS_PRESENT.into()),
        None | Some("include" | "only") => {}
        Some(other) => return Err(Failure::header("x-ms-delete-snapshots", other)),
    }
    held.remove(&ctx.blob, !only_snapshots, &snapshots, kept)?;
    Ok(done(ctx, kept))
}

/// How long what is deleted now is kept, if the account keeps it at all.
fn kept(ctx: &Ctx<'_>) -> Option<Deleted> {
    let days = lock(&ctx.account.service).keep_deleted_days?;
    Some(Deleted { at: ctx.now, until: ctx.now + days * 86_400 * SECOND })
}

fn done(ctx: &Ctx<'_>, kept: Option<Deleted>) -> Answer {
    let answer = Answer::new(202);
    let permanent = if kept.is_some() { "false" } else { "true" };
    if ctx.since("2017-07-29") { answer.with("x-ms-delete-type-permanent", permanent) } else { answer }
}

/// Undelete Blob: the blob and its snapshots come back as they were. What is there already stays.
///
/// # Errors
/// By "Undelete Blob": 404 where there is neither a blob nor anything to bring back.
pub(crate) fn undelete(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let entry = held.blobs.get(&ctx.blob).ok_or(e::BLOB_NOT_FOUND)?;
    let back = |blob: &Blob| {
        let deleted = blob.facts.deleted.filter(|deleted| deleted.until > ctx.now);
        deleted.map(|_| {
            let mut blob = blob.clone();
            blob.facts_mut().deleted = None;
            blob
        })
    };
    let base = entry.base.as_deref().and_then(back);
    let all = entry.snapshots.as_deref().into_iter().flatten();
    let snapshots: Vec<(String, Blob)> = all.filter_map(|(time, blob)| Some((time.clone(), back(blob)?))).collect();
    if base.is_none() && snapshots.is_empty() && entry.live().is_none() {
        return Err(e::BLOB_NOT_FOUND.into());
    }
    if let Some(blob) = base {
        held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    }
    for (time, blob) in snapshots {
        held.put_snapshot(&ctx.blob, &time, blob)?;
    }
    Ok(Answer::new(200))
}
