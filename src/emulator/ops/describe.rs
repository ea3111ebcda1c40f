//! What Get Blob and Get Blob Properties say about a blob, in headers. Which of them stand on which answer follows recordings.

use super::Ctx;
use super::common::{md5_text, stamp};
use crate::emulator::auth::Caller;
use crate::emulator::blob::{Blob, Content, Kind};
use crate::emulator::http::Answer;
use crate::emulator::lease::{self, Phase};
use crate::emulator::time;

/// Which answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Get Blob, the whole.
    Whole,
    /// Get Blob, a range.
    Part,
    /// Get Blob Properties.
    Head,
}

/// Adds the headers.
pub(crate) fn blob(ctx: &Ctx<'_>, answer: Answer, blob: &Blob, is_snapshot: bool, view: View) -> Answer {
    let facts = &blob.facts;
    let mut answer = stamp(answer, blob.etag, blob.modified).with("Accept-Ranges", "bytes");
    let overrides = match &ctx.caller {
        Caller::Sas { overrides, .. } => overrides.as_slice(),
        _ => &[],
    };
    for (name, stored) in [
        ("Content-Type", &facts.content_type),
        ("Content-Encoding", &facts.content_encoding),
        ("Content-Language", &facts.content_language),
        ("Content-Disposition", &facts.content_disposition),
        ("Cache-Control", &facts.cache_control),
    ] {
        let replaced = overrides.iter().find(|(other, _)| *other == name).map(|(_, value)| value);
        if let Some(value) = replaced.or(stored.as_ref()) {
            answer.header(name, value.clone());
        }
    }
    if let Some(md5) = &blob.md5 {
        // On a range the stored one has a header of its own; before 2016-05-31 it had not.
        let own = view == View::Part && ctx.since("2016-05-31");
        answer.header(if own { "x-ms-blob-content-md5" } else { "Content-MD5" }, md5_text(md5));
    }
    answer.header("x-ms-blob-type", blob.kind().name());
    if ctx.since("2017-11-09") {
        answer.header("x-ms-creation-time", time::http_date(blob.created));
    }
    for (name, value) in &facts.metadata {
        answer.header(format!("x-ms-meta-{name}"), value.clone());
    }
    if view != View::Head
        && !ctx.since("2019-12-12")
        && let Some(time) = ctx.head.parameter("snapshot")
    {
        answer.header("x-ms-snapshot", time.to_owned());
    }
    if !is_snapshot {
        lease_headers(&mut answer, facts.lease.as_ref(), ctx.now);
    }
    match (&blob.content, blob.kind()) {
        (Content::Appended(blocks), Kind::Append) => {
            answer.header("x-ms-blob-committed-block-count", blocks.len().to_string());
            if facts.sealed {
                answer.header("x-ms-blob-sealed", "true");
            }
        }
        (_, Kind::Page) => answer.header("x-ms-blob-sequence-number", facts.sequence_number.to_string()),
        _ => {}
    }
    if let Some(copy) = &facts.copy {
        answer.header("x-ms-copy-id", copy.id.clone());
        answer.header("x-ms-copy-source", copy.source.clone());
        answer.header("x-ms-copy-status", "success");
        answer.header("x-ms-copy-progress", format!("{}/{}", copy.len, copy.len));
        answer.header("x-ms-copy-completion-time", time::http_date(copy.completed));
    }
    if ctx.since("2015-12-11") {
        answer.header("x-ms-server-encrypted", "true");
    }
    if let Some(hash) = &facts.key_sha256 {
        answer.header("x-ms-encryption-key-sha256", hash.clone());
    }
    if let Some(scope) = &facts.encryption_scope {
        answer.header("x-ms-encryption-scope", scope.clone());
    }
    if counts_tags(ctx, facts.tags.len()) {
        answer.header("x-ms-tag-count", facts.tags.len().to_string());
    }
    if view == View::Head && ctx.since(if is_snapshot { "2019-12-12" } else { "2017-04-17" }) {
        tier_headers(ctx, &mut answer, blob);
    }
    answer
}

/// Whether the number of tags is told: where there are any. Answers recorded at 2018-11-09 and 2019-02-02 told a zero too.
pub(crate) fn counts_tags(ctx: &Ctx<'_>, count: usize) -> bool {
    (count > 0 && ctx.since("2019-12-12")) || (ctx.since("2018-11-09") && !ctx.since("2019-12-12"))
}

fn tier_headers(ctx: &Ctx<'_>, answer: &mut Answer, blob: &Blob) {
    match &blob.facts.tier {
        Some(tier) => {
            answer.header("x-ms-access-tier", tier.name.clone());
            if let Some((to, priority)) = &tier.rehydrating {
                answer.header("x-ms-archive-status", super::tier::archive_status(to));
                if ctx.since("2019-12-12") {
                    answer.header("x-ms-rehydrate-priority", priority.clone());
                }
            }
            answer.header("x-ms-access-tier-change-time", time::http_date(tier.changed));
        }
        // Of page blobs listings do not say so, Get Blob Properties does [R: 2018-03-28, 2018-11-09]; of append blobs neither.
        None if blob.kind() == Kind::Block || (blob.kind() == Kind::Page && ctx.since("2018-03-28")) => {
            answer.header("x-ms-access-tier", "Hot");
            answer.header("x-ms-access-tier-inferred", "true");
        }
        None => {}
    }
}

/// `x-ms-lease-status`, `-state`, and `-duration` while leased.
pub(crate) fn lease_headers(answer: &mut Answer, held: Option<&lease::Lease>, now: time::Ticks) {
    let phase = lease::phase(held, now);
    answer.header("x-ms-lease-status", phase.status());
    answer.header("x-ms-lease-state", phase.name());
    if let (Some(lease), Phase::Leased) = (held, phase) {
        answer.header("x-ms-lease-duration", lease.duration_name());
    }
}
