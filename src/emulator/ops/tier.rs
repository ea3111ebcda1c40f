//! Set Blob Tier, and what the archive tier forbids.

use super::Ctx;
use super::common::{Encryption, Guards};
use crate::emulator::blob::{Blob, Kind, Tier};
use crate::emulator::conditions::{Conditions, Use};
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::Staged;
use crate::emulator::http::Answer;
use crate::emulator::lease::Guard;

const BLOCK_TIERS: &[&str] = &["Hot", "Cool", "Cold", "Archive", "Smart"];
const PAGE_TIERS: &[&str] = &["P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80"];

/// A tier of block blobs as the service spells it.
///
/// # Errors
/// 400 naming the header.
pub(crate) fn block_tier(text: &str) -> Outcome<String> {
    known(BLOCK_TIERS, text)
}

fn known(tiers: &[&str], text: &str) -> Outcome<String> {
    let found = tiers.iter().find(|tier| tier.eq_ignore_ascii_case(text));
    found.map(|tier| (*tier).to_owned()).ok_or_else(|| Failure::header("x-ms-access-tier", text))
}

/// `rehydrate-pending-to-hot`.
pub(crate) fn archive_status(to: &str) -> String {
    format!("rehydrate-pending-to-{}", to.to_ascii_lowercase())
}

fn refused(blob: &Blob) -> Option<Failure> {
    let tier = blob.facts.tier.as_ref().filter(|tier| tier.name == "Archive")?;
    Some(if tier.rehydrating.is_some() { e::BLOB_REHYDRATING.into() } else { e::BLOB_ARCHIVED.into() })
}

/// Whether content can be read.
///
/// # Errors
/// 409 `BlobArchived`, `BlobBeingRehydrated`.
pub(crate) fn readable(blob: &Blob) -> Outcome<()> {
    refused(blob).map_or(Ok(()), Err)
}

/// Whether content can be replaced.
///
/// # Errors
/// As [`readable`].
pub(crate) fn writable(blob: &Blob) -> Outcome<()> {
    readable(blob)
}

/// Set Blob Tier. ETag and Last-Modified stay. Out of the archive nothing ever arrives here: the service needs hours, and a
/// blob that says it is on its way is what clients have to deal with.
///
/// # Errors
/// By "Set Blob Tier".
pub(crate) fn set(ctx: &Ctx<'_>) -> Outcome {
    let text = ctx.head.header("x-ms-access-tier").ok_or_else(|| Failure::missing_header("x-ms-access-tier"))?;
    let guards = Guards::lease_only(ctx.head)?;
    let conditions = Conditions::of(ctx.head, Use::Read)?;
    Encryption::of(ctx.head)?;
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let (blob, is_snapshot) = super::read::target(ctx, &held)?;
    if !is_snapshot {
        guards.check(Some(blob), Guard::Write, ctx.now)?;
    }
    conditions.check(Some(super::common::target(blob)), Use::Write)?;
    let name = match blob.kind() {
        Kind::Block => block_tier(text)?,
        Kind::Page => known(PAGE_TIERS, text)?,
        Kind::Append => return Err(e::INVALID_BLOB_TYPE.into()),
    };
    let mut blob = blob.clone();
    let old = blob.facts.tier.clone();
    let archived = old.as_ref().filter(|tier| tier.name == "Archive");
    let changed = ctx.now;
    let (tier, status) = match (archived, name.as_str()) {
        (Some(Tier { rehydrating: Some((to, _)), .. }), _) if *to != name => return Err(e::BLOB_REHYDRATING.into()),
        (Some(tier @ Tier { rehydrating: Some(_), .. }), _) => (tier.clone(), 202),
        (Some(tier), "Archive") => (tier.clone(), 200),
        (Some(tier), _) => {
            let priority = match ctx.head.header("x-ms-rehydrate-priority") {
                None => "Standard",
                Some(text) if text.eq_ignore_ascii_case("standard") => "Standard",
                Some(text) if text.eq_ignore_ascii_case("high") => "High",
                Some(text) => return Err(Failure::header("x-ms-rehydrate-priority", text)),
            };
            (Tier { rehydrating: Some((name, priority.to_owned())), ..tier.clone() }, 202)
        }
        (None, _) => (Tier { name, changed, rehydrating: None }, 200),
    };
    blob.facts_mut().tier = Some(tier);
    match ctx.head.parameter("snapshot").filter(|_| is_snapshot) {
        Some(time) => held.put_snapshot(&ctx.blob, time, blob)?,
        None => held.put_blob(&ctx.blob, blob, Staged::Keep)?,
    }
    Ok(Answer::new(status))
}
