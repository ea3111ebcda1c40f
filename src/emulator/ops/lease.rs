//! Lease Blob and Lease Container: the state machine of `emulator::lease`, applied.

use super::Ctx;
use super::common::{guid, root_only, stamp, target};
use crate::emulator::conditions::{Conditions, Target, Use};
use crate::emulator::errors::Outcome;
use crate::emulator::held::Staged;
use crate::emulator::http::Answer;
use crate::emulator::lease::{Action, Done, Of, apply};
use crate::emulator::time::Ticks;

/// Lease Blob. ETag and Last-Modified stay.
///
/// # Errors
/// By "Lease Blob".
pub(crate) fn blob(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let action = Action::of(ctx.head)?;
    let conditions = Conditions::of(ctx.head, Use::Write)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut blob = held.blob(&ctx.blob)?.clone();
    conditions.check(Some(target(&blob)), Use::Write)?;
    let done = apply(blob.facts.lease.as_ref(), action, Of::Blob, ctx.now, &guid)?;
    blob.facts_mut().lease = done.lease.clone();
    let (etag, modified) = (blob.etag, blob.modified);
    held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    Ok(answer(&done, etag, modified))
}

/// Lease Container.
///
/// # Errors
/// By "Lease Container".
pub(crate) fn container(ctx: &Ctx<'_>) -> Outcome {
    let action = Action::of(ctx.head)?;
    let conditions = Conditions::of(ctx.head, Use::Write)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut info = held.info.clone();
    conditions.check(Some(Target { etag: info.etag, modified: info.modified, tags: &[] }), Use::Write)?;
    let done = apply(info.lease.as_ref(), action, Of::Container, ctx.now, &guid)?;
    info.lease = done.lease.clone();
    let (etag, modified) = (info.etag, info.modified);
    held.put_info(info)?;
    Ok(answer(&done, etag, modified))
}

fn answer(done: &Done, etag: Ticks, modified: Ticks) -> Answer {
    let mut answer = stamp(Answer::new(done.status), etag, modified);
    if let Some(id) = &done.id {
        answer.header("x-ms-lease-id", id.clone());
    }
    if let Some(seconds) = done.time {
        answer.header("x-ms-lease-time", seconds.to_string());
    }
    answer
}
