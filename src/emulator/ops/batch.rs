//! Blob Batch: up to 256 deletes, or as many changes of tier, in one request; each part let in and answered on its own.

use super::{Ctx, delete, tier};
use crate::emulator::errors::{self as e, Code, Failure, Outcome};
use crate::emulator::http::{Answer, Head, reason};
use crate::emulator::route::Op;

/// Most parts of a batch.
const MAX_PARTS: usize = 256;
/// Largest body of a batch in bytes.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// Blob Batch.
///
/// # Errors
/// 413 for the body; everything else is told in the parts, with 202 on the whole [R].
pub(crate) fn run(ctx: &Ctx<'_>, body: &[u8]) -> Outcome {
    if body.len() > MAX_BODY {
        return Err(Failure::too_large(MAX_BODY as u64));
    }
    let content_type = ctx.head.header("content-type").unwrap_or("");
    let boundary = content_type.split("boundary=").nth(1).map(|b| b.split(';').next().unwrap_or(b).trim().trim_matches('"'));
    let out = match boundary.and_then(|boundary| parts(ctx, body, boundary)) {
        None => refused(ctx, e::INVALID_INPUT),
        Some(parts) if parts.len() > MAX_PARTS => refused(ctx, e::TOO_MANY_PARTS),
        Some(parts) => answer_parts(ctx, &parts),
    };
    let boundary = format!("batchresponse_{}", ctx.request_id);
    let mut text = Vec::new();
    for (id, part) in out {
        text.extend_from_slice(format!("--{boundary}\r\nContent-Type: application/http\r\n").as_bytes());
        if let Some(id) = id {
            text.extend_from_slice(format!("Content-ID: {id}\r\n").as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&part);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(format!("--{boundary}--").as_bytes());
    Ok(Answer::new(202).with("Content-Type", format!("multipart/mixed; boundary={boundary}")).body(text))
}

type Part = (Option<String>, Vec<u8>);

fn refused(ctx: &Ctx<'_>, code: &'static Code) -> Vec<Part> {
    vec![(None, part(ctx, None, Err(code.into())))]
}

/// Takes the multipart body apart; `None` if it is none, is empty, or does not end as it should.
fn parts(ctx: &Ctx<'_>, body: &[u8], boundary: &str) -> Option<Vec<(String, Head)>> {
    let text = std::str::from_utf8(body).ok()?;
    let (inner, end) = text.rsplit_once(&format!("--{boundary}--"))?;
    if !end.starts_with("\r\n") && !end.starts_with('\n') {
        return None;
    }
    let mut found = Vec::new();
    for piece in inner.split(&format!("--{boundary}")).skip(1) {
        // The part's own headers, a blank line, then a request's head.
        let (mime, request) = piece.split_once("\r\n\r\n")?;
        let id = mime.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case("content-id").then(|| value.trim().to_owned())
        });
        let request = format!("{}\r\n\r\n", request.trim_end());
        let (head, _) = Head::parse(request.as_bytes(), ctx.head.peer, None).ok()??;
        found.push((id.unwrap_or_default(), head));
    }
    (!found.is_empty()).then_some(found)
}

fn answer_parts(ctx: &Ctx<'_>, parts: &[(String, Head)]) -> Vec<Part> {
    let kind = |head: &Head| match (head.method.as_str(), head.parameter("comp").unwrap_or("")) {
        ("DELETE", "") => Some(Op::DeleteBlob),
        ("PUT", "tier") => Some(Op::SetBlobTier),
        _ => None,
    };
    let Some(first) = parts.first().and_then(|(_, head)| kind(head)) else { return refused(ctx, e::INVALID_INPUT) };
    if parts.iter().any(|(_, head)| kind(head) != Some(first)) {
        return refused(ctx, e::MIXED_BATCH);
    }
    let one = |head: &Head| {
        let sub = ctx.service.admit(head, ctx.version, ctx.now, Some(&ctx.caller))?;
        if sub.op != first || (!ctx.container.is_empty() && sub.container != ctx.container) {
            return Err(e::INVALID_INPUT.into());
        }
        if first == Op::DeleteBlob { delete::blob(&sub) } else { tier::set(&sub) }
    };
    parts.iter().map(|(id, head)| (Some(id.clone()), part(ctx, Some(head), one(head)))).collect()
}

/// A part's answer as text. A refusal says its message as the reason [R].
fn part(ctx: &Ctx<'_>, head: Option<&Head>, outcome: Outcome) -> Vec<u8> {
    let (phrase, answer) = match outcome {
        Ok(answer) => (reason(answer.status).to_owned(), answer),
        Err(failure) => (failure.message().to_owned(), failure.answer(ctx.request_id, ctx.now, ctx.version)),
    };
    let mut out = format!("HTTP/1.1 {} {phrase}\r\n", answer.status);
    for (name, value) in answer.header_lines() {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str(&format!("x-ms-request-id: {}\r\nx-ms-version: {}\r\n", ctx.request_id, ctx.version));
    if let Some(id) = head.and_then(|head| head.header("x-ms-client-request-id")) {
        out.push_str(&format!("x-ms-client-request-id: {id}\r\n"));
    }
    let body = answer.bytes();
    if !body.is_empty() {
        out.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    out.push_str("Server: Windows-Azure-Blob/1.0\r\n\r\n");
    let mut out = out.into_bytes();
    out.extend_from_slice(body);
    out
}
