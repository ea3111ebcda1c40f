//! Put Block, Put Block From URL, Put Block List, Get Block List.

use super::Ctx;
use super::common::{Declared, Encryption, Guards, Plain, facts, hashes, live_lease, md5_header, root_only, stamp};
use super::copy::Source;
use crate::emulator::blob::{Blob, Block, Content, Kind};
use crate::emulator::conditions::{Conditions, Use};
use crate::emulator::conn::Body;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::{Held, Staged};
use crate::emulator::http::Answer;
use crate::emulator::lease::{self, Guard, Of};
use crate::emulator::payload::Payload;
use crate::emulator::service::received;
use crate::emulator::state::Entry;
use crate::emulator::xml;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::collections::HashMap;

const MIB: u64 = 1024 * 1024;
/// Most blocks in a blob ("Put Block List").
const MAX_COMMITTED: usize = 50_000;
/// Most uncommitted blocks on a blob ("Put Block").
const MAX_UNCOMMITTED: usize = 100_000;

/// Largest block of a version.
pub(crate) fn block_limit(ctx: &Ctx<'_>) -> u64 {
    let limit = match ctx.version {
        v if v >= "2019-12-12" => 4000 * MIB,
        v if v >= "2016-05-31" => 100 * MIB,
        _ => 4 * MIB,
    };
    ctx.lowered.block_bytes.map_or(limit, |lower| lower.min(limit))
}

/// A limit on a count, or the lower one a fault rule sets.
fn at_most(limit: usize, lowered: Option<u64>) -> usize {
    lowered.and_then(|lower| usize::try_from(lower).ok()).map_or(limit, |lower| lower.min(limit))
}

/// `blockid`: base64 of 1 to 64 bytes, padding kept.
fn block_id<'a>(ctx: &'a Ctx<'_>) -> Outcome<&'a str> {
    let id = ctx.head.parameter("blockid");
    let id = id.ok_or_else(|| Failure::from(e::MISSING_QUERY).detail("QueryParameterName", "blockid"))?;
    match BASE64.decode(id).map(|bytes| bytes.len()) {
        Err(_) => Err(Failure::query("blockid", id, "Not a valid base64 string.")),
        Ok(0) => Err(e::INVALID_BLOB_OR_BLOCK.into()),
        Ok(1..=64) => Ok(id),
        Ok(_) => Err(e::OUT_OF_RANGE_INPUT.into()),
    }
}

/// Lets a block be staged: kind and state of the blob, its lease, the length of the other ids, their count.
fn may_stage(ctx: &Ctx<'_>, held: &Held<'_>, id: &str, guards: &Guards<'_>) -> Outcome<()> {
    let entry = held.blobs.get(&ctx.blob);
    let base = entry.and_then(Entry::live);
    guards.check(base, Guard::Write, ctx.now)?;
    if let Some(blob) = base {
        if blob.kind() != Kind::Block {
            return Err(e::INVALID_BLOB_TYPE.into());
        }
        super::tier::writable(blob)?;
    }
    if let Some(staged) = entry.and_then(|entry| entry.staged.as_ref()) {
        if staged.keys().next().is_some_and(|other| other.len() != id.len()) {
            return Err(e::INVALID_BLOB_OR_BLOCK.into());
        }
        if staged.len() >= at_most(MAX_UNCOMMITTED, ctx.lowered.uncommitted) && !staged.contains_key(id) {
            return Err(e::TOO_MANY_UNCOMMITTED.into());
        }
    }
    Ok(())
}

/// Put Block. ETag and Last-Modified of a blob that is there stay as they are.
///
/// # Errors
/// By "Put Block" and the tables of errors.
pub(crate) async fn put_block(ctx: &Ctx<'_>, body: &mut Body<'_>) -> Outcome {
    root_only(ctx.head)?;
    let id = block_id(ctx)?;
    match body.remaining() {
        0 => return Err(Failure::header("Content-Length", "0")),
        len if len > block_limit(ctx) => return Err(Failure::too_large(block_limit(ctx))),
        _ => {}
    }
    let guards = Guards::lease_only(ctx.head)?;
    let encryption = Encryption::of(ctx.head)?;
    let declared = Declared::of(ctx.head)?;
    let container = ctx.open()?;
    may_stage(ctx, &container.hold(ctx.model, &ctx.account.name)?, id, &guards)?;

    let got = ctx.model.store.receive(body, declared.wanted(ctx)).await.map_err(|error| received(&error))?;
    declared.verify(got.md5, got.crc64)?;

    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    may_stage(ctx, &held, id, &guards)?;
    held.stage(&ctx.blob, Block { id: id.into(), payload: got.payload })?;
    Ok(encryption.echo(ctx, declared.echo(ctx, Answer::new(201), got.md5, got.crc64)))
}

/// Put Block From URL.
///
/// # Errors
/// By "Put Block From URL"; sources that no emulator on this machine has are 404 `CannotVerifyCopySource`.
pub(crate) fn put_block_from_url(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    if ctx.head.body_len() > 0 {
        return Err(Failure::header("Content-Length", ctx.head.body_len().to_string()));
    }
    let id = block_id(ctx)?;
    let guards = Guards::lease_only(ctx.head)?;
    let encryption = Encryption::of(ctx.head)?;
    let declared = Declared::of_source(ctx.head)?;
    let container = ctx.open()?;
    let source = Source::open(ctx)?;
    source.check_conditions_of_read(&Conditions::of_source(ctx.head)?)?;
    let pieces = source.range(ctx.head.header("x-ms-source-range"))?;
    let payload = Payload::from(pieces);
    match payload.len() {
        0 => return Err(Failure::header("Content-Length", "0")),
        len if len > block_limit(ctx) => return Err(Failure::too_large(block_limit(ctx))),
        _ => {}
    }
    let (md5, crc64) = super::copy::sums(ctx, payload.pieces(), declared.wanted(ctx))?;
    declared.verify(md5, crc64)?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    may_stage(ctx, &held, id, &guards)?;
    held.stage(&ctx.blob, Block { id: id.into(), payload })?;
    Ok(encryption.echo(ctx, declared.echo(ctx, Answer::new(201), md5, crc64)))
}

/// Put Block List: the list is the new blob.
///
/// # Errors
/// By "Put Block List" and the tables of errors. Nothing changes on any.
pub(crate) fn put_block_list(ctx: &Ctx<'_>, body: &[u8]) -> Outcome {
    root_only(ctx.head)?;
    let guards = Guards::of(ctx.head, Use::Create)?;
    let encryption = Encryption::of(ctx.head)?;
    let mut facts = facts(ctx, Plain::Ignored, &encryption)?;
    let stored_md5 = md5_header(ctx.head, "x-ms-blob-content-md5")?;
    let declared = Declared::of(ctx.head)?;
    // [I]: before the list is read, so that one damaged on its way is told from one that is wrong.
    let got = hashes(body, declared.wanted(ctx));
    declared.verify(got.md5, got.crc64)?;
    let list = xml::parse(body, "BlockList")?;
    if list.children.len() > at_most(MAX_COMMITTED, ctx.lowered.blocks) {
        return Err(e::BLOCK_LIST_TOO_LONG.into());
    }
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let existing = held.blob(&ctx.blob).ok();
    ctx.caller.may_write(existing.is_some())?;
    guards.check(existing, Guard::Write, ctx.now)?;
    if let Some(blob) = existing {
        if blob.kind() != Kind::Block {
            return Err(e::INVALID_BLOB_TYPE.into());
        }
        super::tier::writable(blob)?;
        encryption.opens(blob)?;
    }
    let blocks = choose(&list, held.blobs.get(&ctx.blob))?;

    let (created, old_tier, old_lease) = match held.blob(&ctx.blob) {
        Ok(old) => (old.created, old.facts.tier.clone(), live_lease(old, ctx.now)),
        Err(_) => (ctx.now, None, None),
    };
    facts.tier = facts.tier.or(old_tier);
    facts.lease = old_lease;
    let etag = ctx.model.unique(ctx.now);
    let content = Content::Blocks(blocks.into());
    let facts = ctx.model.share(facts);
    held.put_blob(&ctx.blob, Blob { etag, modified: ctx.now, created, md5: stored_md5, content, facts }, Staged::Drop)?;
    drop(held);
    ctx.model.reclaim();
    let answer = stamp(Answer::new(201), etag, ctx.now);
    Ok(encryption.echo(ctx, declared.echo(ctx, answer, got.md5, got.crc64)))
}

/// Finds the blocks of a list.
///
/// # Errors
/// 400: an unknown element or block, or one id under two kinds of element.
fn choose(list: &xml::Element, entry: Option<&Entry>) -> Outcome<Vec<Block>> {
    let none = std::collections::BTreeMap::new();
    let staged = entry.and_then(|entry| entry.staged.as_deref()).unwrap_or(&none);
    let committed: HashMap<&str, &Block> = match entry.and_then(Entry::live).map(|blob| &blob.content) {
        Some(Content::Blocks(blocks)) => blocks.iter().map(|block| (&*block.id, block)).collect(),
        _ => HashMap::new(),
    };
    let mut kinds: HashMap<&str, &str> = HashMap::with_capacity(list.children.len());
    let mut out = Vec::with_capacity(list.children.len());
    for element in &list.children {
        let id = element.text.trim();
        let found = match element.name.as_str() {
            "Latest" => staged.get(id).or_else(|| committed.get(id).copied()),
            "Uncommitted" => staged.get(id),
            "Committed" => committed.get(id).copied(),
            _ => return Err(Failure::from(e::UNSUPPORTED_XML_NODE).detail("XmlNodeName", element.name.clone())),
        };
        // [I]: the code for one id under two kinds.
        let first = *kinds.entry(id).or_insert(&element.name);
        match found {
            Some(block) if first == element.name => out.push(block.clone()),
            _ => return Err(e::INVALID_BLOCK_LIST.into()),
        }
    }
    Ok(out)
}

/// Get Block List.
///
/// # Errors
/// By "Get Block List": 404 where there is neither a blob nor an uncommitted block, 409 for other kinds of blob.
pub(crate) fn get_block_list(ctx: &Ctx<'_>) -> Outcome {
    let which = ctx.head.parameter("blocklisttype").unwrap_or("committed").to_ascii_lowercase();
    if !matches!(which.as_str(), "committed" | "uncommitted" | "all") {
        return Err(Failure::query("blocklisttype", which, ""));
    }
    let conditions = Conditions::of(ctx.head, Use::Read)?;
    let lease_id = lease::id_of(ctx.head)?;
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let snapshot = ctx.head.parameter("snapshot");
    let base = match snapshot {
        Some(time) => Some(held.snapshot(&ctx.blob, super::read::snapshot_name(time)?)?),
        None => held.blob(&ctx.blob).ok(),
    };
    let staged = held.blobs.get(&ctx.blob).and_then(|entry| entry.staged.as_deref()).filter(|_| snapshot.is_none());
    if base.is_none() && staged.is_none() {
        return Err(e::BLOB_NOT_FOUND.into());
    }
    lease::check(base.and_then(|b| b.facts.lease.as_ref()), lease_id, Of::Blob, Guard::Read, ctx.now)?;
    if let Some(blob) = base {
        if blob.kind() != Kind::Block {
            return Err(e::INVALID_BLOB_TYPE.into());
        }
        conditions.check(Some(super::common::target(blob)), Use::Read)?;
    }
    let mut text = String::from(xml::HEADER);
    text.push_str("<BlockList>");
    if which != "uncommitted" {
        let blocks: &[Block] = match base.map(|blob| &blob.content) {
            Some(Content::Blocks(blocks)) => blocks,
            _ => &[],
        };
        section(&mut text, "CommittedBlocks", blocks.iter());
    }
    if which != "committed" {
        section(&mut text, "UncommittedBlocks", staged.into_iter().flat_map(|all| all.values()));
    }
    text.push_str("</BlockList>");
    let mut answer = Answer::new(200).with("Content-Type", "application/xml");
    if let Some(blob) = base {
        answer = stamp(answer, blob.etag, blob.modified).with("x-ms-blob-content-length", blob.len().to_string());
    }
    Ok(answer.body(text.into_bytes()))
}

fn section<'a>(out: &mut String, name: &str, blocks: impl Iterator<Item = &'a Block>) {
    let mut inner = String::new();
    for block in blocks {
        inner.push_str("<Block>");
        xml::element(&mut inner, "Name", &block.id);
        xml::element(&mut inner, "Size", &block.payload.len().to_string());
        inner.push_str("</Block>");
    }
    if inner.is_empty() {
        out.push_str(&format!("<{name} />"));
    } else {
        out.push_str(&format!("<{name}>{inner}</{name}>"));
    }
}
