//! Snapshot Blob.

use super::Ctx;
use super::common::{Encryption, Guards, root_only, stamp};
use crate::emulator::conditions::Use;
use crate::emulator::errors::Outcome;
use crate::emulator::http::Answer;
use crate::emulator::lease::Guard;
use crate::emulator::names;
use crate::emulator::time;

/// Snapshot Blob: content and facts as they are now, under a moment's name. Metadata given replaces the blob's in the
/// snapshot. The lease stays with the blob, and one that is active does not stand in the way.
///
/// # Errors
/// By "Snapshot Blob"; unmet conditions of all kinds are 412.
pub(crate) fn create(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let guards = Guards::of(ctx.head, Use::Write)?;
    let encryption = Encryption::of(ctx.head)?;
    let metadata = names::metadata(ctx.head)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let blob = held.blob(&ctx.blob)?;
    guards.check(Some(blob), Guard::Read, ctx.now)?;
    encryption.opens_scope(blob)?;
    let mut copy = blob.clone();
    if copy.facts.lease.is_some() {
        copy.facts_mut().lease = None;
    }
    let (mut etag, modified) = (copy.etag, copy.modified);
    if !metadata.is_empty() {
        etag = ctx.model.unique(ctx.now);
        copy.etag = etag;
        copy.facts_mut().metadata = metadata;
    }
    let name = time::iso(ctx.model.unique(ctx.now));
    held.put_snapshot(&ctx.blob, &name, copy)?;
    let mut answer = stamp(Answer::new(201), etag, modified).with("x-ms-snapshot", name);
    if ctx.since("2018-11-09") {
        // Nothing is encrypted anew by a snapshot, and that is what is told [R].
        answer.header("x-ms-request-server-encrypted", "false");
    }
    Ok(answer)
}
