//! What listings say about a container and a blob, in XML. Elements and their order follow recordings.

use super::Ctx;
use super::common::md5_text;
use super::describe::counts_tags;
use crate::emulator::blob::{Blob, Kind};
use crate::emulator::conditions::{plain_etag, quoted_etag};
use crate::emulator::held::Held;
use crate::emulator::lease::{self, Lease, Phase};
use crate::emulator::time;
use crate::emulator::xml::{self, element};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// An element whose text may hold characters XML has no place for: then it is percent-encoded whole, and says so.
pub(crate) fn named(out: &mut String, name: &str, text: &str) {
    if text.chars().all(xml::legal) {
        element(out, name, text);
        return;
    }
    out.push_str(&format!("<{name} Encoded=\"true\">{}</{name}>", utf8_percent_encode(text, UNRESERVED)));
}

/// What stays as it is in an encoded name: RFC 3986's unreserved characters.
const UNRESERVED: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A container of List Containers.
pub(crate) fn container_item(ctx: &Ctx<'_>, out: &mut String, name: &str, held: &Held<'_>, include: &[&str]) {
    let info = &held.info;
    out.push_str("<Container>");
    element(out, "Name", name);
    out.push_str("<Properties>");
    element(out, "Last-Modified", &time::http_date(info.modified));
    element(out, "Etag", &quoted_etag(info.etag));
    lease_elements(out, info.lease.as_ref(), ctx.now);
    if let Some(access) = info.access.name() {
        element(out, "PublicAccess", access);
    }
    if ctx.since("2019-07-07") {
        element(out, "DefaultEncryptionScope", "$account-encryption-key");
        element(out, "DenyEncryptionScopeOverride", "false");
    }
    if ctx.since("2017-11-09") {
        element(out, "HasImmutabilityPolicy", "false");
        element(out, "HasLegalHold", "false");
    }
    if ctx.since("2020-10-02") {
        element(out, "ImmutableStorageWithVersioningEnabled", "false");
    }
    out.push_str("</Properties>");
    if include.contains(&"metadata") {
        metadata(out, &info.metadata);
    }
    out.push_str("</Container>");
}

fn metadata(out: &mut String, metadata: &[(String, String)]) {
    if metadata.is_empty() {
        out.push_str("<Metadata />");
        return;
    }
    out.push_str("<Metadata>");
    metadata.iter().for_each(|(name, value)| element(out, name, value));
    out.push_str("</Metadata>");
}

fn lease_elements(out: &mut String, held: Option<&Lease>, now: time::Ticks) {
    let phase = lease::phase(held, now);
    element(out, "LeaseStatus", phase.status());
    element(out, "LeaseState", phase.name());
    if let (Some(lease), Phase::Leased) = (held, phase) {
        element(out, "LeaseDuration", lease.duration_name());
    }
}

/// A blob of List Blobs; without a blob, one of which there are only uncommitted blocks [R: UncommittedBlob].
pub(crate) fn blob_item(
    ctx: &Ctx<'_>,
    out: &mut String,
    name: &str,
    snapshot: Option<&str>,
    blob: Option<&Blob>,
    include: &[&str],
) {
    out.push_str("<Blob>");
    named(out, "Name", name);
    if let Some(snapshot) = snapshot {
        element(out, "Snapshot", snapshot);
    }
    if blob.is_some_and(|blob| !blob.is_live()) {
        element(out, "Deleted", "true");
    }
    out.push_str("<Properties>");
    match blob {
        Some(blob) => properties(ctx, out, blob, snapshot.is_some(), include),
        None => {
            element(out, "Content-Length", "0");
            element(out, "BlobType", "BlockBlob");
            element(out, "AccessTier", "Hot");
            element(out, "AccessTierInferred", "true");
            lease_elements(out, None, ctx.now);
            element(out, "ServerEncrypted", "false");
        }
    }
    out.push_str("</Properties>");
    if let Some(blob) = blob {
        if include.contains(&"metadata") {
            metadata(out, &blob.facts.metadata);
        }
        if include.contains(&"tags") && !blob.facts.tags.is_empty() {
            out.push_str("<Tags>");
            super::properties::tag_set(out, &blob.facts.tags);
            out.push_str("</Tags>");
        }
    }
    if ctx.since("2020-02-10") {
        out.push_str("<OrMetadata />");
    }
    out.push_str("</Blob>");
}

fn properties(ctx: &Ctx<'_>, out: &mut String, blob: &Blob, is_snapshot: bool, include: &[&str]) {
    let facts = &blob.facts;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    if ctx.since("2017-11-09") {
        element(out, "Creation-Time", &time::http_date(blob.created));
    }
    element(out, "Last-Modified", &time::http_date(blob.modified));
    element(out, "Etag", &plain_etag(blob.etag));
    element(out, "Content-Length", &blob.len().to_string());
    element(out, "Content-Type", &text(&facts.content_type));
    element(out, "Content-Encoding", &text(&facts.content_encoding));
    element(out, "Content-Language", &text(&facts.content_language));
    if ctx.since("2020-02-10") {
        out.push_str("<Content-CRC64 />");
    }
    element(out, "Content-MD5", &blob.md5.as_ref().map(md5_text).unwrap_or_default());
    element(out, "Cache-Control", &text(&facts.cache_control));
    element(out, "Content-Disposition", &text(&facts.content_disposition));
    if blob.kind() == Kind::Page {
        element(out, "x-ms-blob-sequence-number", &facts.sequence_number.to_string());
    }
    element(out, "BlobType", blob.kind().name());
    if ctx.since(if is_snapshot { "2019-12-12" } else { "2017-04-17" }) {
        tier(ctx, out, blob);
    }
    match (is_snapshot, blob.is_live()) {
        (true, _) => {}
        (false, true) => lease_elements(out, facts.lease.as_ref(), ctx.now),
        (false, false) => element(out, "LeaseStatus", ""),
    }
    if let Some(copy) = facts.copy.as_ref().filter(|_| include.contains(&"copy")) {
        element(out, "CopyId", &copy.id);
        element(out, "CopySource", &copy.source);
        element(out, "CopyStatus", "success");
        element(out, "CopyProgress", &format!("{0}/{0}", copy.len));
        element(out, "CopyCompletionTime", &time::http_date(copy.completed));
    }
    if ctx.since("2015-12-11") {
        element(out, "ServerEncrypted", "true");
    }
    if let Some(hash) = &facts.key_sha256 {
        element(out, "CustomerProvidedKeySha256", hash);
    }
    if let Some(scope) = &facts.encryption_scope {
        element(out, "EncryptionScope", scope);
    }
    if facts.sealed {
        element(out, "Sealed", "true");
    }
    if let Some(deleted) = facts.deleted {
        element(out, "DeletedTime", &time::http_date(deleted.at));
        // Whole days that are left after this one.
        let days = deleted.until.saturating_sub(ctx.now + 1) / (86_400 * time::SECOND);
        element(out, "RemainingRetentionDays", &days.to_string());
    }
    if counts_tags(ctx, facts.tags.len()) {
        element(out, "TagCount", &facts.tags.len().to_string());
    }
}

fn tier(ctx: &Ctx<'_>, out: &mut String, blob: &Blob) {
    match &blob.facts.tier {
        Some(tier) => {
            element(out, "AccessTier", &tier.name);
            if let Some((to, priority)) = &tier.rehydrating {
                element(out, "ArchiveStatus", &super::tier::archive_status(to));
                if ctx.since("2019-12-12") {
                    element(out, "RehydratePriority", priority);
                }
            }
            element(out, "AccessTierChangeTime", &time::http_date(tier.changed));
        }
        None if blob.kind() == Kind::Block => {
            element(out, "AccessTier", "Hot");
            element(out, "AccessTierInferred", "true");
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_xml_cannot_hold_are_encoded_whole() {
        let mut out = String::new();
        named(&mut out, "Name", "a/b\u{ffff} c");
        named(&mut out, "Name", "a<b");
        assert_eq!(out, "<Name Encoded=\"true\">a%2Fb%EF%BF%BF%20c</Name><Name>a&lt;b</Name>");
    }
}
