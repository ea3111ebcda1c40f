//! Copies: Copy Blob, Put Blob From URL, Abort Copy Blob, and the reading of sources that all "From URL" operations share.
//!
//! A source in this same emulator is read in process, after its SAS (or its public access, or the key the copy was signed with)
//! was checked as for a read of its own; one in another emulator on this machine was [fetched](super::super::fetch) before.
//! Copies are done before they are answered, as the service's within an account were in every recorded case.

use super::Ctx;
use super::common::{
    Declared, Encryption, Guards, Plain, crc64_text, facts, guid, md5_header, md5_text, root_only, stamp, target,
};
use super::put::{may_replace, replace};
use crate::emulator::auth::Asked;
use crate::emulator::blob::{Blob, Content, CopyState, Facts, Kind};
use crate::emulator::conditions::{Conditions, Use, Verdict};
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::fetch::{Fetched, unmet, unreadable};
use crate::emulator::http::{Answer, Query};
use crate::emulator::lease::{self, Phase};
use crate::emulator::names;
use crate::emulator::payload::{Payload, Piece};
use crate::emulator::route::Op;
use crate::emulator::service::Address;
use crate::emulator::state::internal;
use crate::emulator::store::{self, Wanted};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::sync::Arc;

/// Longest `x-ms-copy-source` in bytes.
const MAX_SOURCE_URL: usize = 2048;
/// Largest source of a synchronous Copy Blob.
const MAX_SYNC: u64 = 256 * 1024 * 1024;

/// A source, as it was when it was opened.
pub(crate) struct Source {
    pub(crate) blob: Blob,
    /// The URL without its SAS.
    url: String,
    /// It was fetched: conditions were checked there, and it is the range that was asked for.
    fetched: bool,
}

impl Source {
    /// Finds the blob that `x-ms-copy-source` names, if the caller may read it.
    ///
    /// # Errors
    /// 400 for what is no URL; else what a read of the source is refused with, told as the copy's refusal.
    pub(crate) fn open(ctx: &Ctx<'_>) -> Outcome<Source> {
        let name = "x-ms-copy-source";
        let url = ctx.head.header(name).ok_or_else(|| Failure::missing_header(name))?;
        let malformed = || Failure::header(name, "");
        if url.len() > MAX_SOURCE_URL || url.contains(' ') {
            return Err(malformed());
        }
        if let Some(fetched) = &ctx.fetched {
            return Ok(Self::of_fetched(ctx, url, fetched));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(malformed)?;
        let (authority, path) = rest.split_at(rest.find('/').ok_or_else(malformed)?);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let origin = &ctx.service.origin;
        let port = origin.rsplit_once(':').map_or("", |(_, port)| port);
        let here = ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .any(|host| authority.strip_prefix(host).and_then(|rest| rest.strip_prefix(':')).is_some_and(|given| given == port));
        if origin.split_once(':').is_none_or(|(own, _)| own != scheme) || !here {
            return Err(e::CANNOT_VERIFY_SOURCE.into());
        }
        let query = Query::of(query);
        let blob = Self::read(ctx, path, &query)
            .map_err(|failure| unreadable(failure.status(), failure.code().name, failure.message()))?;
        let kept = query.parameters().iter().find(|(name, _)| name == "snapshot");
        let kept = kept.map(|(_, time)| format!("?snapshot={time}")).unwrap_or_default();
        Ok(Source { blob, url: format!("{scheme}://{authority}{path}{kept}"), fetched: false })
    }

    /// A source as its answer tells of it: a block blob, whatever it was there.
    fn of_fetched(ctx: &Ctx<'_>, url: &str, fetched: &Fetched) -> Source {
        let text = |name: &str| fetched.header(name).map(str::to_owned);
        let facts = Facts {
            content_type: text("content-type"),
            content_encoding: text("content-encoding"),
            content_language: text("content-language"),
            content_disposition: text("content-disposition"),
            cache_control: text("cache-control"),
            metadata: fetched.metadata(),
            ..Facts::default()
        };
        let md5 = fetched.header("content-md5").and_then(|md5| BASE64.decode(md5).ok()).and_then(|md5| md5.try_into().ok());
        let content = Content::Whole(fetched.payload.clone());
        let blob = Blob { etag: 0, modified: ctx.now, created: ctx.now, md5, content, facts: Arc::new(facts) };
        Source { blob, url: url.split_once('?').map_or(url, |(path, _)| path).to_owned(), fetched: true }
    }

    fn read(ctx: &Ctx<'_>, path: &str, query: &Query) -> Outcome<Blob> {
        let address = Address::of(path)?;
        let name = address.account.strip_suffix("-secondary").unwrap_or(&address.account);
        let account = ctx.model.account(name).ok_or(e::RESOURCE_NOT_FOUND)?;
        let asked = Asked {
            model: ctx.model,
            account,
            container: &address.container,
            blob: &address.blob,
            op: Op::GetBlob,
            version: ctx.version,
            now: ctx.now,
            secure: ctx.service.secure(),
        };
        let own = if account.name == ctx.account.name { ctx.caller.clone() } else { crate::emulator::auth::Caller::Anonymous };
        asked.authorise_source(query, ctx.head.peer, &own)?;
        let container = account.container(&address.container)?;
        let held = container.hold(ctx.model, &account.name)?;
        let blob = match query.parameters().iter().find(|(name, _)| name == "snapshot") {
            Some((_, time)) => held.snapshot(&address.blob, time)?,
            None => held.blob(&address.blob)?,
        };
        let key = Encryption { key_sha256: ctx.head.header("x-ms-source-encryption-key-sha256").map(str::to_owned), scope: None };
        key.opens(blob)?;
        super::tier::readable(blob)?;
        Ok(blob.clone())
    }

    /// Source conditions of what reads its source (sync copies and the "From URL" family): a refused read, told so [R].
    ///
    /// # Errors
    /// 412, or 304 for `If-None-Match` and `If-Modified-Since`, both `CannotVerifyCopySource`.
    pub(crate) fn check_conditions_of_read(&self, conditions: &Conditions) -> Outcome<()> {
        if self.fetched {
            return Ok(());
        }
        match conditions.verdict(Some(target(&self.blob)), Use::Read) {
            Verdict::Met => Ok(()),
            Verdict::Unmet => Err(unmet().with_status(412)),
            Verdict::NotModified => Err(unmet().with_status(304)),
        }
    }

    /// The pieces of `x-ms-source-range`, or all.
    ///
    /// # Errors
    /// 400 for a malformed range, 416 for one outside the blob.
    pub(crate) fn range(&self, range: Option<&str>) -> Outcome<Vec<Piece>> {
        let size = self.blob.len();
        let Some(text) = range.filter(|_| !self.fetched) else { return Ok(self.blob.content.range(0, size)) };
        let (start, end) = super::read::parse_range(text).ok_or_else(|| Failure::header("x-ms-source-range", text))?;
        if start >= size {
            return Err(e::INVALID_RANGE.into());
        }
        let end = end.unwrap_or(u64::MAX).min(size - 1);
        Ok(self.blob.content.range(start, end - start + 1))
    }
}

/// Hashes of stored bytes; none where they were thrown away.
///
/// # Errors
/// 500 if the store fails.
pub(crate) fn sums(ctx: &Ctx<'_>, pieces: &[Piece], wanted: Wanted) -> Outcome<(Option<[u8; 16]>, Option<u64>)> {
    if ctx.model.store.discards() {
        return Ok((None, None));
    }
    store::checksums(pieces, wanted).map_err(|error| internal(&error))
}

/// Copy Blob, at once or by agreement "asynchronous".
///
/// # Errors
/// By "Copy Blob" and "Copy Blob From URL".
pub(crate) fn copy_blob(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    let sync = ctx.head.header("x-ms-requires-sync").is_some_and(|v| v.eq_ignore_ascii_case("true"));
    let guards = Guards::of(ctx.head, Use::Create)?;
    let encryption = Encryption::of(ctx.head)?;
    let declared = Declared::of_source(ctx.head)?;
    let conditions = Conditions::of_source(ctx.head)?;
    let given = facts(ctx, Plain::Ignored, &encryption)?;
    let source = Source::open(ctx)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    may_replace(ctx, &held, &guards, source.blob.kind())?;
    if !sync
        && let Ok(old) = held.blob(&ctx.blob)
        && let Some(lease) = old.facts.lease.as_ref().filter(|l| l.duration.is_some())
        && lease::phase(Some(lease), ctx.now) == Phase::Leased
    {
        return Err(e::INFINITE_LEASE.into());
    }
    let size = source.blob.len();
    if sync {
        source.check_conditions_of_read(&conditions)?;
        if size > MAX_SYNC {
            return Err(Failure::too_large(MAX_SYNC));
        }
    } else if !source.fetched && conditions.verdict(Some(target(&source.blob)), Use::Read) != Verdict::Met {
        return Err(e::SOURCE_CONDITION.into());
    }
    let (md5, crc64) = if sync { sums(ctx, &source.range(None)?, declared.wanted(ctx))? } else { (None, None) };
    declared.verify(md5, crc64)?;

    let id = guid();
    let copied_tags = match ctx.head.header("x-ms-copy-source-tag-option") {
        Some("COPY") => source.blob.facts.tags.clone(),
        _ => given.tags,
    };
    let facts = Facts {
        metadata: if given.metadata.is_empty() { source.blob.facts.metadata.clone() } else { given.metadata },
        tags: copied_tags,
        tier: given.tier,
        lease: None,
        copy: Some(CopyState { id: id.clone(), source: source.url.clone(), completed: ctx.now, len: size }),
        key_sha256: given.key_sha256,
        encryption_scope: given.encryption_scope,
        ..Facts::clone(&source.blob.facts)
    };
    let (etag, modified) = replace(ctx, &mut held, source.blob.content.clone(), source.blob.md5, facts)?;
    let mut answer = stamp(Answer::new(202), etag, modified).with("x-ms-copy-id", id).with("x-ms-copy-status", "success");
    if sync {
        answer = declared.echo(ctx, answer, md5, crc64);
        if ctx.since("2019-02-02") {
            answer = encryption.echo(ctx, answer);
        }
    }
    Ok(answer)
}

/// Put Blob From URL: a block blob made of the source's bytes as one, without blocks.
///
/// # Errors
/// By "Put Blob From URL".
pub(crate) fn put_blob(ctx: &Ctx<'_>) -> Outcome {
    root_only(ctx.head)?;
    match ctx.head.header("x-ms-blob-type") {
        Some("BlockBlob") => {}
        other => return Err(Failure::header("x-ms-blob-type", other.unwrap_or(""))),
    }
    let guards = Guards::of(ctx.head, Use::Create)?;
    let encryption = Encryption::of(ctx.head)?;
    let declared = Declared::of_source(ctx.head)?;
    let conditions = Conditions::of_source(ctx.head)?;
    let given = facts(ctx, Plain::Ignored, &encryption)?;
    let metadata = names::metadata(ctx.head)?;
    let source = Source::open(ctx)?;
    source.check_conditions_of_read(&conditions)?;
    let pieces = source.range(None)?;
    let mut wanted = declared.wanted(ctx);
    wanted.md5 = true;
    let (md5, crc64) = sums(ctx, &pieces, wanted)?;
    declared.verify(md5, crc64)?;
    // [I]: what is to be stored is stored, right or wrong, as by Put Block List.
    let stored_md5 = md5_header(ctx.head, "x-ms-blob-content-md5")?.or(md5);
    let from = &source.blob.facts;
    let copy_properties = !ctx.head.header("x-ms-copy-source-blob-properties").is_some_and(|v| v.eq_ignore_ascii_case("false"));
    // A header names a property; else the source's counts, unless the request says not to take those.
    let pick = |header: &str, own: Option<String>, theirs: &Option<String>| {
        if copy_properties && ctx.head.header(header).is_none() { theirs.clone() } else { own }
    };
    let tags = match ctx.head.header("x-ms-copy-source-tag-option") {
        Some("COPY") => from.tags.clone(),
        _ => given.tags,
    };
    let facts = Facts {
        kind: Kind::Block,
        content_type: pick("x-ms-blob-content-type", given.content_type, &from.content_type),
        content_encoding: pick("x-ms-blob-content-encoding", given.content_encoding, &from.content_encoding),
        content_language: pick("x-ms-blob-content-language", given.content_language, &from.content_language),
        content_disposition: pick("x-ms-blob-content-disposition", given.content_disposition, &from.content_disposition),
        cache_control: pick("x-ms-blob-cache-control", given.cache_control, &from.cache_control),
        metadata: if metadata.is_empty() { from.metadata.clone() } else { metadata },
        tags,
        tier: given.tier,
        key_sha256: given.key_sha256,
        encryption_scope: given.encryption_scope,
        ..Facts::default()
    };
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    may_replace(ctx, &held, &guards, Kind::Block)?;
    let (etag, modified) = replace(ctx, &mut held, Content::Whole(Payload::from(pieces)), stored_md5, facts)?;
    let mut answer = stamp(Answer::new(201), etag, modified);
    match (declared.md5, md5, crc64) {
        (Some(_), Some(md5), _) => answer.header("Content-MD5", md5_text(&md5)),
        (_, _, Some(crc64)) => answer.header("x-ms-content-crc64", crc64_text(crc64)),
        _ => {}
    }
    Ok(encryption.echo(ctx, answer))
}

/// Abort Copy Blob: there is never one to abort.
///
/// # Errors
/// 400 without an id, 404 without the blob, else 409 `NoPendingCopyOperation`.
pub(crate) fn abort(ctx: &Ctx<'_>) -> Outcome {
    if ctx.head.parameter("copyid").is_none() {
        return Err(Failure::from(e::MISSING_QUERY).detail("QueryParameterName", "copyid"));
    }
    match ctx.head.header("x-ms-copy-action") {
        Some("abort") => {}
        Some(other) => return Err(Failure::header("x-ms-copy-action", other)),
        None => return Err(Failure::missing_header("x-ms-copy-action")),
    }
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    held.blob(&ctx.blob)?;
    Err(e::NO_PENDING_COPY.into())
}
