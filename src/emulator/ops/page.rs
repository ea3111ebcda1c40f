//! Page blobs: Put Page, Put Page From URL, Get Page Ranges.

use super::Ctx;
use super::common::{Declared, Encryption, Guards, root_only, stamp, touch};
use super::copy::Source;
use crate::emulator::blob::{Blob, Content, write_pages};
use crate::emulator::conditions::{Conditions, Use};
use crate::emulator::conn::Body;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::{Held, Staged};
use crate::emulator::http::{Answer, plain_number};
use crate::emulator::lease::Guard;
use crate::emulator::payload::Payload;
use crate::emulator::service::received;
use crate::emulator::xml;
use std::sync::Arc;

const PAGE: u64 = 512;
/// Largest body of Put Page.
const LIMIT: u64 = 4 * 1024 * 1024;

/// The pages a request names: start and length, both whole pages.
fn pages(ctx: &Ctx<'_>) -> Outcome<(u64, u64)> {
    let text = ctx.head.header("x-ms-range").or_else(|| ctx.head.header("range"));
    let text = text.ok_or_else(|| Failure::missing_header("x-ms-range"))?;
    match super::read::parse_range(text) {
        Some((start, Some(end))) if start.is_multiple_of(PAGE) && (end + 1).is_multiple_of(PAGE) => Ok((start, end + 1 - start)),
        Some((_, Some(_))) => Err(e::INVALID_PAGE_RANGE.into()),
        _ => Err(Failure::header("x-ms-range", text)),
    }
}

/// The blob, if these pages may be written.
fn may_write<'h>(ctx: &Ctx<'_>, held: &'h Held<'_>, guards: &Guards<'_>, start: u64, len: u64) -> Outcome<&'h Blob> {
    let blob = guards.existing(ctx, held)?;
    let Content::Pages { len: size, .. } = &blob.content else { return Err(e::INVALID_BLOB_TYPE.into()) };
    Encryption::of(ctx.head)?.opens_scope(blob)?;
    let current = blob.facts.sequence_number;
    type Holds = fn(u64, u64) -> bool;
    let conditions: [(&'static str, Holds); 3] = [
        ("x-ms-if-sequence-number-le", |now, given| now <= given),
        ("x-ms-if-sequence-number-lt", |now, given| now < given),
        ("x-ms-if-sequence-number-eq", |now, given| now == given),
    ];
    for (name, holds) in conditions {
        if let Some(text) = ctx.head.header(name) {
            let given = plain_number(text).ok_or_else(|| Failure::header(name, text))?;
            if !holds(current, given) {
                return Err(e::SEQUENCE_NUMBER.into());
            }
        }
    }
    if start.saturating_add(len) > *size {
        return Err(e::INVALID_PAGE_RANGE.into());
    }
    Ok(blob)
}

/// Put Page: update or clear.
///
/// # Errors
/// By "Put Page".
pub(crate) async fn put_page(ctx: &Ctx<'_>, body: &mut Body<'_>) -> Outcome {
    root_only(ctx.head)?;
    let name = "x-ms-page-write";
    let clear = match ctx.head.header(name).map(str::to_ascii_lowercase).as_deref() {
        Some("update") => false,
        Some("clear") => true,
        Some(other) => return Err(Failure::header(name, other)),
        None => return Err(Failure::missing_header(name)),
    };
    let (start, len) = pages(ctx)?;
    if !clear && len > LIMIT {
        return Err(Failure::too_large(LIMIT));
    }
    if body.remaining() != if clear { 0 } else { len } {
        return Err(Failure::header("Content-Length", body.remaining().to_string()));
    }
    let guards = Guards::of(ctx.head, Use::Write)?;
    let declared = Declared::of(ctx.head)?;
    let container = ctx.open()?;
    may_write(ctx, &container.hold(ctx.model, &ctx.account.name)?, &guards, start, len)?;
    if clear {
        return write(ctx, &guards, start, len, None, Answer::new(201));
    }
    let got = ctx.model.store.receive(body, declared.wanted(ctx)).await.map_err(|error| received(&error))?;
    declared.verify(got.md5, got.crc64)?;
    let answer = Encryption::of(ctx.head)?.echo(ctx, declared.echo(ctx, Answer::new(201), got.md5, got.crc64));
    write(ctx, &guards, start, len, Some(got.payload), answer)
}

/// Put Page From URL.
///
/// # Errors
/// By "Put Page From URL".
pub(crate) fn put_page_from_url(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let (start, len) = pages(ctx)?;
    if len > LIMIT {
        return Err(Failure::too_large(LIMIT));
    }
    let guards = Guards::of(ctx.head, Use::Write)?;
    let declared = Declared::of_source(ctx.head)?;
    let source = Source::open(ctx)?;
    source.check_conditions_of_read(&Conditions::of_source(ctx.head)?)?;
    let payload = Payload::from(source.range(ctx.head.header("x-ms-source-range"))?);
    if payload.len() != len {
        return Err(e::INVALID_PAGE_RANGE.into());
    }
    let (md5, crc64) = super::copy::sums(ctx, payload.pieces(), declared.wanted(ctx))?;
    declared.verify(md5, crc64)?;
    let answer = Encryption::of(ctx.head)?.echo(ctx, declared.echo(ctx, Answer::new(201), md5, crc64));
    write(ctx, &guards, start, len, Some(payload), answer)
}

fn write(ctx: &Ctx<'_>, guards: &Guards<'_>, start: u64, len: u64, with: Option<Payload>, answer: Answer) -> Outcome {
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut blob = may_write(ctx, &held, guards, start, len)?.clone();
    if let Content::Pages { written, .. } = &mut blob.content {
        write_pages(Arc::make_mut(written), start, len, with);
    }
    touch(ctx, &mut blob);
    let answer =
        stamp(answer, blob.etag, blob.modified).with("x-ms-blob-sequence-number", blob.facts.sequence_number.to_string());
    held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    Ok(answer)
}

/// Get Page Ranges, without comparison to a snapshot.
///
/// # Errors
/// By "Get Page Ranges"; 501 with `prevsnapshot`.
pub(crate) fn ranges(ctx: &Ctx<'_>) -> Outcome {
    if ctx.head.parameter("prevsnapshot").is_some() {
        return Err(e::NOT_IMPLEMENTED.into());
    }
    let guards = Guards::of(ctx.head, Use::Read)?;
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let (blob, _) = super::read::target(ctx, &held)?;
    guards.check(Some(blob), Guard::Read, ctx.now)?;
    let Content::Pages { len, written } = &blob.content else { return Err(e::INVALID_BLOB_TYPE.into()) };
    let asked = ctx.head.header("x-ms-range").or_else(|| ctx.head.header("range")).and_then(super::read::parse_range);
    let (from, to) = asked.map_or((0, *len), |(start, end)| (start, end.map_or(*len, |end| (end + 1).min(*len))));
    let mut inner = String::new();
    let mut open: Option<(u64, u64)> = None;
    let mut close = |run: Option<(u64, u64)>| {
        if let Some((start, end)) = run {
            inner.push_str(&format!("<PageRange><Start>{start}</Start><End>{}</End></PageRange>", end - 1));
        }
    };
    for (&at, run) in written.iter() {
        let (start, end) = (at.max(from), (at + run.len()).min(to));
        if start >= end {
            continue;
        }
        open = match open {
            Some((first, last)) if last == start => Some((first, end)),
            other => {
                close(other);
                Some((start, end))
            }
        };
    }
    close(open);
    let text = if inner.is_empty() { "<PageList />".to_owned() } else { format!("<PageList>{inner}</PageList>") };
    let answer = stamp(Answer::new(200), blob.etag, blob.modified)
        .with("Content-Type", "application/xml")
        .with("x-ms-blob-content-length", len.to_string());
    Ok(answer.body(format!("{}{text}", xml::HEADER).into_bytes()))
}
