//! Set Blob Properties, Get and Set Blob Metadata, Get and Set Blob Tags.

use super::Ctx;
use super::common::{Declared, Encryption, Guards, hashes, md5_header, root_only, stamp, touch};
use crate::emulator::blob::{Content, Kind, write_pages};
use crate::emulator::conditions::Use;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::Staged;
use crate::emulator::http::{Answer, plain_number};
use crate::emulator::lease::Guard;
use crate::emulator::names;
use crate::emulator::xml;
use std::sync::Arc;

/// Set Blob Properties: all six are replaced, those not named are cleared, the type too. On page blobs also length and
/// sequence number, which leave the others alone if they come without them.
///
/// # Errors
/// By "Set Blob Properties".
pub(crate) fn set(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let guards = Guards::of(ctx.head, Use::Write)?;
    let md5 = md5_header(ctx.head, "x-ms-blob-content-md5")?;
    let resize = ctx.head.header("x-ms-blob-content-length");
    let action = ctx.head.header("x-ms-sequence-number-action");
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut blob = guards.existing(ctx, &held)?.clone();
    if (resize.is_some() || action.is_some()) && blob.kind() != Kind::Page {
        return Err(e::INVALID_BLOB_TYPE.into());
    }
    let one = |name| ctx.head.header(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let six = [
        one("x-ms-blob-content-type"),
        one("x-ms-blob-content-encoding"),
        one("x-ms-blob-content-language"),
        one("x-ms-blob-content-disposition"),
        one("x-ms-blob-cache-control"),
    ];
    if md5.is_some() || six.iter().any(Option::is_some) || (resize.is_none() && action.is_none()) {
        blob.md5 = md5;
        let facts = blob.facts_mut();
        [facts.content_type, facts.content_encoding, facts.content_language, facts.content_disposition, facts.cache_control] =
            six;
    }
    if let Some(text) = resize {
        let new = plain_number(text).filter(|len| len.is_multiple_of(512) && *len <= 8 << 40);
        let new = new.ok_or_else(|| Failure::header("x-ms-blob-content-length", text))?;
        if let Content::Pages { len, written } = &mut blob.content {
            if new < *len {
                write_pages(Arc::make_mut(written), new, *len - new, None);
            }
            *len = new;
        }
    }
    if let Some(action) = action {
        let given = ctx
            .head
            .header("x-ms-blob-sequence-number")
            .map(|text| plain_number(text).ok_or_else(|| Failure::header("x-ms-blob-sequence-number", text)));
        let current = blob.facts.sequence_number;
        let next = match (action, given.transpose()?) {
            ("increment", None) => current + 1,
            ("max", Some(number)) => current.max(number),
            ("update", Some(number)) => number,
            ("increment" | "max" | "update", _) => return Err(Failure::missing_header("x-ms-blob-sequence-number")),
            (other, _) => return Err(Failure::header("x-ms-sequence-number-action", other)),
        };
        blob.facts_mut().sequence_number = next;
    }
    touch(ctx, &mut blob);
    let mut answer = stamp(Answer::new(200), blob.etag, blob.modified);
    if blob.kind() == Kind::Page {
        answer.header("x-ms-blob-sequence-number", blob.facts.sequence_number.to_string());
    }
    held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    Ok(answer)
}

/// Get Blob Metadata, also of a snapshot.
///
/// # Errors
/// By "Get Blob Metadata".
pub(crate) fn get_metadata(ctx: &Ctx<'_>) -> Outcome {
    let guards = Guards::of(ctx.head, Use::Read)?;
    let encryption = Encryption::of(ctx.head)?;
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let (blob, _) = super::read::target(ctx, &held)?;
    guards.check(Some(blob), Guard::Read, ctx.now)?;
    encryption.opens(blob)?;
    let mut answer = stamp(Answer::new(200), blob.etag, blob.modified);
    for (name, value) in &blob.facts.metadata {
        answer.header(format!("x-ms-meta-{name}"), value.clone());
    }
    Ok(answer)
}

/// Set Blob Metadata: all of it is replaced.
///
/// # Errors
/// By "Set Blob Metadata".
pub(crate) fn set_metadata(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let guards = Guards::of(ctx.head, Use::Write)?;
    let encryption = Encryption::of(ctx.head)?;
    let metadata = names::metadata(ctx.head)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut blob = guards.existing(ctx, &held)?.clone();
    encryption.opens(&blob)?;
    blob.facts_mut().metadata = metadata;
    touch(ctx, &mut blob);
    let answer = stamp(Answer::new(200), blob.etag, blob.modified);
    held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    Ok(encryption.echo(ctx, answer))
}

/// Get Blob Tags.
///
/// # Errors
/// By "Get Blob Tags".
pub(crate) fn get_tags(ctx: &Ctx<'_>) -> Outcome {
    let guards = Guards::of(ctx.head, Use::Read)?;
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let (blob, _) = super::read::target(ctx, &held)?;
    guards.check(Some(blob), Guard::Read, ctx.now)?;
    let mut text = format!("{}\n<Tags>", xml::HEADER);
    tag_set(&mut text, &blob.facts.tags);
    text.push_str("</Tags>");
    Ok(Answer::new(200).with("Content-Type", "application/xml").body(text.into_bytes()))
}

/// Appends `<TagSet>`.
pub(crate) fn tag_set(out: &mut String, tags: &[(String, String)]) {
    if tags.is_empty() {
        out.push_str("<TagSet />");
        return;
    }
    out.push_str("<TagSet>");
    for (name, value) in tags {
        out.push_str("<Tag>");
        xml::element(out, "Key", name);
        xml::element(out, "Value", value);
        out.push_str("</Tag>");
    }
    out.push_str("</TagSet>");
}

/// Set Blob Tags: all are replaced. ETag and Last-Modified stay.
///
/// # Errors
/// By "Set Blob Tags".
pub(crate) fn set_tags(ctx: &Ctx<'_>, body: &[u8]) -> Outcome {
    if let Some(time) = ctx.head.parameter("snapshot") {
        return Err(Failure::query("snapshot", time, super::common::ROOT_ONLY));
    }
    let guards = Guards::of(ctx.head, Use::Write)?;
    let declared = Declared::of(ctx.head)?;
    let got = hashes(body, declared.wanted(ctx));
    declared.verify(got.md5, got.crc64)?;
    let root = xml::parse(body, "Tags")?;
    let missing = |name: &'static str| Failure::from(e::INVALID_XML).detail("XmlNodeName", name);
    let set = root.child("TagSet").ok_or_else(|| missing("TagSet"))?;
    let mut tags = Vec::new();
    for tag in &set.children {
        let name = tag.text_of("Key").ok_or_else(|| missing("Key"))?;
        let value = tag.text_of("Value").ok_or_else(|| missing("Value"))?;
        tags.push((name.to_owned(), value.to_owned()));
    }
    names::tags(&tags)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut blob = guards.existing(ctx, &held)?.clone();
    blob.facts_mut().tags = tags;
    held.put_blob(&ctx.blob, blob, Staged::Keep)?;
    Ok(Answer::new(204))
}
