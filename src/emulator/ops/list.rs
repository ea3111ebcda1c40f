//! List Containers, List Blobs, Find Blobs by Tags.
//!
//! Markers name the next item (base64 in the form the service uses for blobs, `/account/name` for containers), so that a page
//! continues rightly whatever was added or removed in between.

use super::Ctx;
use super::items::{blob_item, container_item, named};
use crate::emulator::blob::Blob;
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::filter::Filter;
use crate::emulator::held::Held;
use crate::emulator::http::Answer;
use crate::emulator::state::Entry;
use crate::emulator::xml::{self, element};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::ops::Bound;

/// Largest page.
const MAX_RESULTS: usize = 5000;

/// Parameters that all listings share.
struct Paging<'a> {
    prefix: &'a str,
    marker: &'a str,
    delimiter: &'a str,
    max: usize,
    include: Vec<&'a str>,
}

impl<'a> Paging<'a> {
    fn of(ctx: &'a Ctx<'_>, allowed: &[&str]) -> Outcome<Self> {
        let max = match ctx.head.parameter("maxresults") {
            None => MAX_RESULTS,
            Some(text) => match text.parse::<i64>() {
                Ok(n) if n >= 1 => usize::try_from(n).unwrap_or(MAX_RESULTS).min(MAX_RESULTS),
                Ok(_) => {
                    return Err(Failure::from(e::OUT_OF_RANGE_QUERY)
                        .detail("QueryParameterName", "maxresults")
                        .detail("QueryParameterValue", text)
                        .detail("MinimumAllowed", "1")
                        .detail("MaximumAllowed", "2147483647"));
                }
                Err(_) => return Err(Failure::query("maxresults", text, "")),
            },
        };
        // A list may come as one value with commas, or as several parameters.
        let values = ctx.head.query.parameters().iter().filter(|(name, _)| name.eq_ignore_ascii_case("include"));
        let include: Vec<&str> =
            values.flat_map(|(_, value)| value.split(',')).map(str::trim).filter(|v| !v.is_empty()).collect();
        if let Some(unknown) = include.iter().find(|item| !allowed.contains(item)) {
            return Err(Failure::query("include", *unknown, "Invalid query parameter value."));
        }
        let text = |name| ctx.head.parameter(name).unwrap_or("");
        Ok(Paging { prefix: text("prefix"), marker: text("marker"), delimiter: text("delimiter"), max, include })
    }

    fn includes(&self, what: &str) -> bool {
        self.include.contains(&what)
    }

    /// The parameters as they are told again, those that were given.
    fn echo(&self, ctx: &Ctx<'_>, out: &mut String) {
        for (parameter, name) in
            [("prefix", "Prefix"), ("marker", "Marker"), ("maxresults", "MaxResults"), ("delimiter", "Delimiter")]
        {
            match ctx.head.parameter(parameter) {
                Some("") | None => {}
                Some(value) => named(out, name, value),
            }
        }
    }
}

fn finish(mut text: String, next: &str) -> Answer {
    element(&mut text, "NextMarker", next);
    text.push_str("</EnumerationResults>");
    Answer::new(200).with("Content-Type", "application/xml").body(text.into_bytes())
}

fn start(ctx: &Ctx<'_>) -> String {
    let mut text = String::from(xml::HEADER);
    text.push_str("<EnumerationResults ServiceEndpoint=\"");
    text.push_str(&format!("{}/{}/\"", ctx.service.origin, ctx.account.name));
    text
}

/// List Containers.
///
/// # Errors
/// By "List Containers"; a marker that is none is 400 `OutOfRangeInput` [R].
pub(crate) fn containers(ctx: &Ctx<'_>) -> Outcome {
    let paging = Paging::of(ctx, &["metadata", "deleted", "system"])?;
    let marker_start = format!("/{}/", ctx.account.name);
    let from = match paging.marker {
        "" => paging.prefix,
        marker => marker.strip_prefix(&marker_start).ok_or(e::OUT_OF_RANGE_INPUT)?.max(paging.prefix),
    };
    let mut found = ctx.account.containers_from(from, paging.max + 1);
    found.retain(|c| c.name.starts_with(paging.prefix));
    let next = found.get(paging.max).map(|c| format!("{marker_start}{}", c.name)).unwrap_or_default();
    let mut text = start(ctx);
    text.push('>');
    paging.echo(ctx, &mut text);
    let mut items = String::new();
    for container in found.iter().take(paging.max) {
        // One deleted since the names were taken is left out.
        let Ok(held) = container.hold(ctx.model, &ctx.account.name) else { continue };
        container_item(ctx, &mut items, &container.name, &held, &paging.include);
    }
    wrap(&mut text, "Containers", &items);
    Ok(finish(text, &next))
}

fn wrap(out: &mut String, name: &str, inner: &str) {
    if inner.is_empty() {
        out.push_str(&format!("<{name} />"));
    } else {
        out.push_str(&format!("<{name}>{inner}</{name}>"));
    }
}

/// List Blobs.
///
/// # Errors
/// By "List Blobs": 400 for an unknown `include`, a delimiter with snapshots, a marker that is none.
pub(crate) fn blobs(ctx: &Ctx<'_>) -> Outcome {
    let allowed = [
        "copy",
        "deleted",
        "metadata",
        "snapshots",
        "uncommittedblobs",
        "versions",
        "tags",
        "immutabilitypolicy",
        "legalhold",
        "deletedwithversions",
    ];
    let paging = Paging::of(ctx, &allowed)?;
    if !paging.delimiter.is_empty() && paging.includes("snapshots") {
        return Err(Failure::query("include", "snapshots", "Delimiter and snapshots cannot be used together."));
    }
    let marker = match paging.marker {
        "" => Marker::default(),
        text => Marker::parse(text).ok_or_else(|| Failure::query("marker", text, ""))?,
    };
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let mut text = start(ctx);
    text.push_str(&format!(" ContainerName=\"{}\">", ctx.container));
    paging.echo(ctx, &mut text);
    let mut items = String::new();
    let next = page(ctx, &paging, &held, &marker, &mut items);
    wrap(&mut text, "Blobs", &items);
    Ok(finish(text, &next.map(|m| m.text()).unwrap_or_default()))
}

/// Where a page of blobs goes on: a name, and within it a snapshot.
#[derive(Debug, Default, PartialEq, Eq)]
struct Marker {
    name: String,
    snapshot: String,
}

impl Marker {
    /// `2!LEN!BASE64`, base64 with `-` for `=`, as the service's look; inside, the name and the snapshot.
    fn text(&self) -> String {
        let inner = BASE64.encode(format!("{:06}!{}!{}", self.name.len(), self.name, self.snapshot)).replace('=', "-");
        format!("2!{}!{inner}", inner.len())
    }

    fn parse(text: &str) -> Option<Marker> {
        let (len, inner) = text.strip_prefix("2!")?.split_once('!')?;
        if len.parse() != Ok(inner.len()) {
            return None;
        }
        let inner = String::from_utf8(BASE64.decode(inner.replace('-', "=")).ok()?).ok()?;
        let (len, rest) = inner.split_once('!')?;
        let (name, snapshot) = rest.split_at_checked(len.parse().ok()?)?;
        Some(Marker { name: name.to_owned(), snapshot: snapshot.strip_prefix('!')?.to_owned() })
    }
}

/// Writes one page and tells where the next begins.
fn page(ctx: &Ctx<'_>, paging: &Paging<'_>, held: &Held<'_>, marker: &Marker, out: &mut String) -> Option<Marker> {
    let mut from: Bound<String> = Bound::Included(paging.prefix.max(&marker.name).to_owned());
    let mut count = 0;
    loop {
        // Taken anew after each prefix, so that a million names under one cost nothing.
        let mut skip_to = None;
        for (name, entry) in held.blobs.range::<String, _>((from.clone(), Bound::Unbounded)) {
            if !name.starts_with(paging.prefix) {
                return None;
            }
            let rest = &name[paging.prefix.len()..];
            let cut = (!paging.delimiter.is_empty()).then(|| rest.find(paging.delimiter)).flatten();
            if let Some(at) = cut {
                let prefix = &name[..paging.prefix.len() + at + paging.delimiter.len()];
                if under(ctx, held, prefix, paging) {
                    if count == paging.max {
                        return Some(Marker { name: prefix.to_owned(), snapshot: String::new() });
                    }
                    count += 1;
                    out.push_str("<BlobPrefix>");
                    named(out, "Name", prefix);
                    out.push_str("</BlobPrefix>");
                }
                skip_to = Some(beyond(prefix));
                break;
            }
            let first = if *name == marker.name { marker.snapshot.as_str() } else { "" };
            for (snapshot, item) in shown(ctx, entry, paging) {
                // Snapshots come oldest first and the blob itself last, which `~` sorts behind them.
                if !first.is_empty() && snapshot.is_some_and(|s| s < first) {
                    continue;
                }
                if count == paging.max {
                    return Some(Marker { name: name.clone(), snapshot: snapshot.unwrap_or("~").to_owned() });
                }
                count += 1;
                blob_item(ctx, out, name, snapshot, item, &paging.include);
            }
        }
        from = match skip_to? {
            Some(next) => Bound::Included(next),
            None => return None,
        };
    }
}

/// Whether anything under a prefix would be listed.
fn under(ctx: &Ctx<'_>, held: &Held<'_>, prefix: &str, paging: &Paging<'_>) -> bool {
    held.blobs
        .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
        .take_while(|(name, _)| name.starts_with(prefix))
        .any(|(_, entry)| shown(ctx, entry, paging).next().is_some())
}

/// The first name after all that begin with a prefix; none if there can be no such name.
fn beyond(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            c => char::from_u32(u32::from(c) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// What of an entry is listed, in order. An item without a blob is one of which there are only uncommitted blocks.
fn shown<'e>(ctx: &Ctx<'_>, entry: &'e Entry, paging: &Paging<'_>) -> impl Iterator<Item = (Option<&'e str>, Option<&'e Blob>)> {
    let (now, with_deleted) = (ctx.now, paging.includes("deleted"));
    let visible = move |blob: &&Blob| match blob.facts.deleted {
        None => true,
        Some(deleted) => with_deleted && deleted.until > now,
    };
    let snapshots = entry.snapshots.as_deref().filter(|_| paging.includes("snapshots")).into_iter().flatten();
    let snapshots = snapshots.map(|(time, blob)| (Some(time.as_str()), blob));
    let base = entry.base.as_deref().map(|blob| (None, blob));
    let uncommitted = entry.live().is_none() && entry.staged.is_some() && paging.includes("uncommittedblobs");
    let there = snapshots.chain(base).filter(move |(_, blob)| visible(blob)).map(|(time, blob)| (time, Some(blob)));
    there.chain(uncommitted.then_some((None, None)))
}

/// Find Blobs by Tags, in the account or in one container. The index here is the blobs themselves, always up to date.
///
/// # Errors
/// By "Find Blobs by Tags".
pub(crate) fn find(ctx: &Ctx<'_>) -> Outcome {
    let paging = Paging::of(ctx, &[])?;
    let expression = ctx.head.parameter("where").unwrap_or("");
    let filter = Filter::parse(expression).ok_or_else(|| Failure::query("where", expression, ""))?;
    let only = Some(ctx.container.as_str()).filter(|name| !name.is_empty()).or_else(|| filter.container());
    let containers = match only {
        Some(name) => vec![ctx.account.container(name)?],
        None => ctx.account.containers_from("", usize::MAX),
    };
    let after = match paging.marker {
        "" => Marker::default(),
        text => Marker::parse(text).ok_or_else(|| Failure::query("marker", text, ""))?,
    };
    let (mut items, mut count, mut next) = (String::new(), 0, String::new());
    'all: for container in &containers {
        let Ok(held) = container.hold(ctx.model, &ctx.account.name) else { continue };
        for (name, entry) in &held.blobs {
            let Some(blob) = entry.live().filter(|blob| !blob.facts.tags.is_empty()) else { continue };
            // In the marker a container stands where a snapshot would.
            if (container.name.as_str(), name) < (after.snapshot.as_str(), &after.name) || !filter.matches(&blob.facts.tags) {
                continue;
            }
            if count == paging.max {
                next = Marker { name: name.clone(), snapshot: container.name.clone() }.text();
                break 'all;
            }
            count += 1;
            let tags: Vec<_> = blob.facts.tags.iter().filter(|(n, _)| filter.names().any(|f| f == n)).cloned().collect();
            items.push_str("<Blob>");
            named(&mut items, "Name", name);
            element(&mut items, "ContainerName", &container.name);
            items.push_str("<Tags>");
            super::properties::tag_set(&mut items, &tags);
            items.push_str("</Tags></Blob>");
        }
    }
    let mut text = start(ctx);
    text.push('>');
    element(&mut text, "Where", expression);
    wrap(&mut text, "Blobs", &items);
    Ok(finish(text, &next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_come_back() {
        for (name, snapshot) in [("a", ""), ("ä!b/", "2026-01-15T08:30:00.1234567Z"), ("", "~")] {
            let marker = Marker { name: name.into(), snapshot: snapshot.into() };
            assert_eq!(Marker::parse(&marker.text()), Some(marker));
        }
        for bad in ["x", "2!3!abcd", "2!4!####", "2!4!YWJj"] {
            assert_eq!(Marker::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn beyond_a_prefix_nothing_of_it_is_left() {
        assert_eq!(beyond("a/").as_deref(), Some("a0"));
        assert_eq!(beyond("\u{10ffff}"), None);
        assert_eq!(beyond("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(beyond("\u{d7ff}").as_deref(), Some("\u{e000}"));
    }
}
