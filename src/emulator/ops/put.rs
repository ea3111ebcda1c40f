//! Put Blob: all three kinds of blob in one request, and the last step of every way to make a block blob.

use super::Ctx;
use super::common::{
    Declared, Encryption, Guards, Plain, facts, live_lease, md5_header, md5_mismatch, md5_text, root_only, stamp,
};
use crate::emulator::blob::{Blob, Content, Facts, Kind};
use crate::emulator::conditions::Use;
use crate::emulator::conn::Body;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::{Held, Staged};
use crate::emulator::http::{Answer, plain_number};
use crate::emulator::lease::Guard;
use crate::emulator::service::received;
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1024 * 1024;

/// Largest body of Put Blob in a version ("Put Blob").
fn limit(ctx: &Ctx<'_>) -> u64 {
    let limit = match ctx.version {
        v if v >= "2019-12-12" => 5000 * MIB,
        v if v >= "2016-05-31" => 256 * MIB,
        _ => 64 * MIB,
    };
    ctx.lowered.blob_bytes.map_or(limit, |lower| lower.min(limit))
}

/// The kind a Put Blob asks for.
///
/// # Errors
/// 400: the header is missing or unknown.
fn kind(ctx: &Ctx<'_>) -> Outcome<Kind> {
    match ctx.head.header("x-ms-blob-type") {
        Some("BlockBlob") => Ok(Kind::Block),
        Some("AppendBlob") => Ok(Kind::Append),
        Some("PageBlob") => Ok(Kind::Page),
        Some(other) => Err(Failure::header("x-ms-blob-type", other)),
        None => Err(Failure::missing_header("x-ms-blob-type")),
    }
}

/// Put Blob.
///
/// # Errors
/// By "Put Blob" and the tables of errors.
pub(crate) async fn put_blob(ctx: &Ctx<'_>, body: &mut Body<'_>) -> Outcome {
    root_only(ctx.head)?;
    let kind = kind(ctx)?;
    if body.remaining() > limit(ctx) {
        return Err(Failure::too_large(limit(ctx)));
    }
    let guards = Guards::of(ctx.head, Use::Create)?;
    let encryption = Encryption::of(ctx.head)?;
    let mut facts = Facts { kind, ..facts(ctx, Plain::Counts, &encryption)? };
    let stored_md5 = md5_header(ctx.head, "x-ms-blob-content-md5")?;
    let declared = Declared::of(ctx.head)?;
    let empty = match kind {
        Kind::Block => None,
        Kind::Append => Some(Content::Appended(Arc::default())),
        Kind::Page => {
            let text = ctx.head.header("x-ms-blob-content-length");
            let text = text.ok_or_else(|| Failure::missing_header("x-ms-blob-content-length"))?;
            let len = plain_number(text).filter(|len| len.is_multiple_of(512) && *len <= 8 << 40);
            let len = len.ok_or_else(|| Failure::header("x-ms-blob-content-length", text))?;
            facts.sequence_number = ctx.head.header("x-ms-blob-sequence-number").and_then(plain_number).unwrap_or(0);
            Some(Content::Pages { len, written: Arc::new(BTreeMap::new()) })
        }
    };
    if empty.is_some() && body.remaining() > 0 {
        return Err(Failure::header("Content-Length", body.remaining().to_string()));
    }
    let container = ctx.open()?;
    let check = |held: &Held<'_>| may_replace(ctx, held, &guards, kind);
    // Nobody shall send in vain what can be refused before.
    if !body.is_here() {
        check(&container.hold(ctx.model, &ctx.account.name)?)?;
    }

    let mut wanted = declared.wanted(ctx);
    // The service stores an MD5 of what Put Blob brings, whether one was sent or not.
    wanted.md5 |= stored_md5.is_some() || (kind == Kind::Block && !ctx.model.store.discards());
    wanted.crc64 |= kind == Kind::Block && ctx.since("2019-02-02");
    let got = ctx.model.store.receive(body, wanted).await.map_err(|error| received(&error))?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    check(&held)?;
    declared.verify(got.md5, got.crc64)?;
    if let (Some(stored), Some(actual)) = (stored_md5, got.md5)
        && stored != actual
        && kind == Kind::Block
    {
        return Err(md5_mismatch(&stored, &actual));
    }

    let is_block = empty.is_none();
    let content = empty.unwrap_or(Content::Whole(got.payload));
    let md5 = if is_block { got.md5 } else { stored_md5 };
    let blob = replace(ctx, &mut held, content, md5, facts)?;
    let mut answer = stamp(Answer::new(201), blob.0, blob.1);
    if is_block {
        if let Some(md5) = got.md5 {
            answer.header("Content-MD5", md5_text(&md5));
        }
        if let Some(crc64) = got.crc64.filter(|_| ctx.since("2019-02-02")) {
            answer.header("x-ms-content-crc64", super::common::crc64_text(crc64));
        }
    }
    Ok(encryption.echo(ctx, answer))
}

/// Lets a whole new blob take the place of what is there.
///
/// # Errors
/// 403 for a SAS that may only create, 409 for another kind, 412 and the like for lease and conditions. A blob in the archive,
/// or on its way out of it, is replaced like any other [R].
pub(crate) fn may_replace(ctx: &Ctx<'_>, held: &Held<'_>, guards: &Guards<'_>, kind: Kind) -> Outcome<()> {
    let existing = held.blob(&ctx.blob).ok();
    ctx.caller.may_write(existing.is_some())?;
    guards.check(existing, Guard::Write, ctx.now)?;
    match existing {
        Some(blob) if blob.kind() != kind => Err(e::INVALID_BLOB_TYPE.into()),
        _ => Ok(()),
    }
}

/// Puts a whole new blob in place: uncommitted blocks go, snapshots and an active lease stay, a tier other than the
/// archive is inherited where none is named. Gives ETag and time.
///
/// # Errors
/// 500 if the store fails.
pub(crate) fn replace(
    ctx: &Ctx<'_>,
    held: &mut Held<'_>,
    content: Content,
    md5: Option<[u8; 16]>,
    mut facts: Facts,
) -> Outcome<(u64, u64)> {
    if let Ok(old) = held.blob(&ctx.blob) {
        facts.lease = live_lease(old, ctx.now);
        facts.tier = facts.tier.or_else(|| old.facts.tier.clone().filter(|tier| tier.name != "Archive"));
    }
    let etag = ctx.model.unique(ctx.now);
    let blob = Blob { etag, modified: ctx.now, created: ctx.now, md5, content, facts: ctx.model.share(facts) };
    held.put_blob(&ctx.blob, blob, Staged::Drop)?;
    Ok((etag, ctx.now))
}
