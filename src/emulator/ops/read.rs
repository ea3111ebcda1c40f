//! Get Blob and Get Blob Properties.

use super::Ctx;
use super::common::{Encryption, Guards, crc64_text, md5_text};
use super::describe::{self, View};
use crate::emulator::blob::Blob;
use crate::emulator::conditions::Use;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::Held;
use crate::emulator::http::{Answer, plain_number};
use crate::emulator::lease::Guard;
use crate::emulator::state::internal;
use crate::emulator::store::{self, Wanted};
use crate::emulator::time;

/// Largest range whose hash is computed ("Get Blob").
const MAX_HASHED: u64 = 4 * 1024 * 1024;

/// A snapshot's name in a query.
///
/// # Errors
/// 400 naming the parameter, without the code in a header [R].
pub(crate) fn snapshot_name(text: &str) -> Outcome<&str> {
    match time::parse_iso(text) {
        Some(_) => Ok(text),
        None => Err(Failure::query("snapshot", text, "").without_header_code()),
    }
}

/// The blob or snapshot a read names, and whether it is a snapshot.
///
/// # Errors
/// 400, 404. No versions are kept: naming one finds nothing.
pub(crate) fn target<'h>(ctx: &Ctx<'_>, held: &'h Held<'_>) -> Outcome<(&'h Blob, bool)> {
    if ctx.head.parameter("versionid").is_some() {
        return Err(e::BLOB_NOT_FOUND.into());
    }
    match ctx.head.parameter("snapshot") {
        Some(time) => match held.snapshot(&ctx.blob, snapshot_name(time)?) {
            Ok(blob) => Ok((blob, true)),
            // Of a blob itself, by a deletion, and before this version nothing is said of being deleted only for now [R].
            Err(failure) if ctx.since("2019-12-12") && held.any_snapshot(&ctx.blob, time).is_some() => {
                Err(failure.with_header("x-ms-is-soft-deleted", "true"))
            }
            Err(failure) => Err(failure),
        },
        None => Ok((held.blob(&ctx.blob)?, false)),
    }
}

/// Get Blob Properties.
///
/// # Errors
/// By "Get Blob Properties".
pub(crate) fn head(ctx: &Ctx<'_>) -> Outcome {
    let guards = Guards::of(ctx.head, Use::Read)?;
    let encryption = Encryption::of(ctx.head)?;
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let (blob, is_snapshot) = target(ctx, &held)?;
    guards.check(Some(blob), Guard::Read, ctx.now)?;
    encryption.opens(blob)?;
    Ok(describe::blob(ctx, Answer::new(200), blob, is_snapshot, View::Head).stored(Vec::new(), blob.len()))
}

/// Get Blob.
///
/// # Errors
/// By "Get Blob" and the tables of errors; 501 where content was thrown away.
pub(crate) fn get(ctx: &Ctx<'_>) -> Outcome {
    let guards = Guards::of(ctx.head, Use::Read)?;
    let encryption = Encryption::of(ctx.head)?;
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let (blob, is_snapshot) = target(ctx, &held)?;
    guards.check(Some(blob), Guard::Read, ctx.now)?;
    encryption.opens(blob)?;
    super::tier::readable(blob)?;
    let size = blob.len();
    let range = ctx.head.header("x-ms-range").or_else(|| ctx.head.header("range")).and_then(parse_range);
    let hashed = hash_wanted(ctx, range.is_some())?;
    if ctx.model.store.discards() && size > 0 {
        return Err(Failure::from(e::NOT_IMPLEMENTED).with_message("This store keeps no content (it was started to discard it)."));
    }
    let Some((start, end)) = range else {
        let pieces = blob.content.range(0, size);
        return Ok(describe::blob(ctx, Answer::new(200), blob, is_snapshot, View::Whole).stored(pieces, size));
    };
    if start >= size {
        return Err(Failure::from(e::INVALID_RANGE).with_header("Content-Range", format!("bytes */{size}")));
    }
    let end = end.unwrap_or(u64::MAX).min(size - 1);
    let len = end - start + 1;
    let pieces = blob.content.range(start, len);
    let mut answer = describe::blob(ctx, Answer::new(206), blob, is_snapshot, View::Part)
        .with("Content-Range", format!("bytes {start}-{end}/{size}"));
    if hashed.md5 || hashed.crc64 {
        if len > MAX_HASHED {
            return Err(e::OUT_OF_RANGE_INPUT.into());
        }
        let (md5, crc64) = store::checksums(&pieces, hashed).map_err(|error| internal(&error))?;
        if let Some(md5) = md5 {
            answer.header("Content-MD5", md5_text(&md5));
        }
        if let Some(crc64) = crc64 {
            answer.header("x-ms-content-crc64", crc64_text(crc64));
        }
    }
    Ok(answer.stored(pieces, len))
}

/// Which hash of a range is asked for: one at most, and only with a range.
fn hash_wanted(ctx: &Ctx<'_>, has_range: bool) -> Outcome<Wanted> {
    let (md5, crc64) = ("x-ms-range-get-content-md5", "x-ms-range-get-content-crc64");
    let asked = |name| ctx.head.header(name).is_some_and(|v| v.eq_ignore_ascii_case("true"));
    match (asked(md5), asked(crc64)) {
        (true, true) => Err(Failure::header(crc64, "true")),
        (true, false) if !has_range => Err(Failure::header(md5, "true")),
        (false, true) if !has_range => Err(Failure::header(crc64, "true")),
        (md5, crc64) => Ok(Wanted { md5, crc64, declared_crc64: None }),
    }
}

/// `bytes=a-b` or `bytes=a-`. The service takes no other form and reads on as if there were none: `None`.
pub(crate) fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (start, end) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let start = plain_number(start.trim())?;
    let end = match end.trim() {
        "" => None,
        end => Some(plain_number(end)?),
    };
    end.is_none_or(|end| end >= start).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_the_service_takes() {
        for (text, want) in [
            ("bytes=0-4", Some((0, Some(4)))),
            ("bytes=5-", Some((5, None))),
            ("bytes=0-0", Some((0, Some(0)))),
            ("bytes=-5", None),
            ("bytes=4-2", None),
            ("bytes=0-1,3-4", None),
            ("items=0-1", None),
            ("bytes=a-b", None),
        ] {
            assert_eq!(parse_range(text), want, "{text}");
        }
    }
}
