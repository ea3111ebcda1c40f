//! Append blobs: Append Block, Append Block From URL, Seal.

use super::Ctx;
use super::common::{Declared, Encryption, Guards, root_only, stamp, touch};
use super::copy::Source;
use crate::emulator::blob::{Blob, Content, Kind};
use crate::emulator::conditions::{Conditions, Use};
use crate::emulator::conn::Body;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::{Held, Staged};
use crate::emulator::http::{Answer, plain_number};
use crate::emulator::payload::Payload;
use crate::emulator::service::received;
use std::sync::Arc;

const MIB: u64 = 1024 * 1024;
/// Most appends to a blob.
const MAX_BLOCKS: usize = 50_000;

fn limit(ctx: &Ctx<'_>) -> u64 {
    if ctx.since("2022-11-02") { 100 * MIB } else { 4 * MIB }
}

/// The blob, if `len` bytes may be appended to it.
fn may_append<'h>(ctx: &Ctx<'_>, held: &'h Held<'_>, guards: &Guards<'_>, len: u64) -> Outcome<&'h Blob> {
    let blob = guards.existing(ctx, held)?;
    let Content::Appended(blocks) = &blob.content else { return Err(e::INVALID_BLOB_TYPE.into()) };
    Encryption::of(ctx.head)?.opens_scope(blob)?;
    if blob.facts.sealed {
        return Err(Failure::from(e::INVALID_BLOB_TYPE).with_message("The blob is sealed and its contents cannot be modified."));
    }
    let size = blob.len();
    let number = |name: &'static str| match ctx.head.header(name) {
        None => Ok(None),
        Some(text) => plain_number(text).map(Some).ok_or_else(|| Failure::header(name, text)),
    };
    if number("x-ms-blob-condition-appendpos")?.is_some_and(|at| at != size) {
        return Err(e::APPEND_POSITION.into());
    }
    if number("x-ms-blob-condition-maxsize")?.is_some_and(|max| size + len > max) {
        return Err(e::MAX_BLOB_SIZE.into());
    }
    if blocks.len() >= MAX_BLOCKS {
        return Err(e::BLOCK_COUNT.into());
    }
    Ok(blob)
}

/// Append Block.
///
/// # Errors
/// By "Append Block".
pub(crate) async fn append_block(ctx: &Ctx<'_>, body: &mut Body<'_>) -> Outcome {
    root_only(ctx.head)?;
    let len = body.remaining();
    if len == 0 {
        return Err(Failure::header("Content-Length", "0"));
    }
    if len > limit(ctx) {
        return Err(Failure::too_large(limit(ctx)));
    }
    let guards = Guards::of(ctx.head, Use::Write)?;
    let declared = Declared::of(ctx.head)?;
    let container = ctx.open()?;
    may_append(ctx, &container.hold(ctx.model, &ctx.account.name)?, &guards, len)?;
    let got = ctx.model.store.receive(body, declared.wanted(ctx)).await.map_err(|error| received(&error))?;
    declared.verify(got.md5, got.crc64)?;
    append(ctx, &guards, got.payload, declared, got.md5, got.crc64)
}

/// Append Block From URL.
///
/// # Errors
/// By "Append Block From URL".
pub(crate) fn append_block_from_url(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let guards = Guards::of(ctx.head, Use::Write)?;
    let declared = Declared::of_source(ctx.head)?;
    let source = Source::open(ctx)?;
    source.check_conditions_of_read(&Conditions::of_source(ctx.head)?)?;
    let payload = Payload::from(source.range(ctx.head.header("x-ms-source-range"))?);
    if payload.len() > limit(ctx) {
        return Err(Failure::too_large(limit(ctx)));
    }
    let (md5, crc64) = super::copy::sums(ctx, payload.pieces(), declared.wanted(ctx))?;
    declared.verify(md5, crc64)?;
    append(ctx, &guards, payload, declared, md5, crc64)
}

fn append(
    ctx: &Ctx<'_>,
    guards: &Guards<'_>,
    payload: Payload,
    declared: Declared,
    md5: Option<[u8; 16]>,
    crc64: Option<u64>,
) -> Outcome {
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut blob = may_append(ctx, &held, guards, payload.len())?.clone();
    let offset = blob.len();
    let count = match &mut blob.content {
        Content::Appended(blocks) => {
            let blocks = Arc::make_mut(blocks);
            blocks.push(payload);
            blocks.len()
        }
        _ => return Err(e::INVALID_BLOB_TYPE.into()),
    };
    blob.md5 = None;
    touch(ctx, &mut blob);
    let answer = stamp(Answer::new(201), blob.etag, blob.modified)
        .with("x-ms-blob-append-offset", offset.to_string())
        .with("x-ms-blob-committed-block-count", count.to_string());
    held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    Ok(Encryption::of(ctx.head)?.echo(ctx, declared.echo(ctx, answer, md5, crc64)))
}

/// Append Blob Seal.
///
/// # Errors
/// By "Append Blob Seal".
pub(crate) fn seal(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let guards = Guards::of(ctx.head, Use::Write)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut blob = guards.existing(ctx, &held)?.clone();
    if blob.kind() != Kind::Append {
        return Err(e::INVALID_BLOB_TYPE.into());
    }
    if let Some(at) = ctx.head.header("x-ms-blob-condition-appendpos")
        && plain_number(at) != Some(blob.len())
    {
        return Err(e::APPEND_POSITION.into());
    }
    if !blob.facts.sealed {
        blob.facts_mut().sealed = true;
        touch(ctx, &mut blob);
    }
    let answer = stamp(Answer::new(200), blob.etag, blob.modified).with("x-ms-blob-sealed", "true");
    held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    Ok(answer)
}
