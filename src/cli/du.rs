//! `blobjet du`: how much there is, by folder, access tier and type of blob.
//!
//! Blobs come in the order of names, so that a folder is whole when the first blob behind it comes: what is held are the folders
//! that are open, and not all there are. A folder's amount holds that of the folders in it, which are told before it.

use super::context::Context;
use super::exit::Exit;
use super::explain_path;
use super::json::{Amount, Event, UsageTotals};
use super::listing::{IncludeArgs, Listing};
use super::options::Switch;
use super::remote::{Remote, place};
use super::render::printable;
use super::selection_args::SelectionArgs;
use crate::error::{Error, Kind, Result};
use crate::rest::model::BlobItem;
use crate::units::ByteCount;
use clap::Args;
use std::collections::BTreeMap;

const EXAMPLES: &str = "\
Examples:
  blobjet du dev://box                           each folder of the container, and all of it by tier and type
  blobjet du dev://box/logs/ --depth 2           two levels below a folder
  blobjet du dev://box --depth 0 --glob '**/*.log' --machine-readable
  blobjet du dev://box --include versions;deleted    what older versions and deleted blobs take besides";

/// Arguments of `du`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DuArgs {
    /// Container, prefix or pattern of blobs: https://, az:// or dev:// URL
    pub(crate) url: String,
    /// Levels of folders to tell apart; 0 for the sum alone
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) depth: usize,
    /// Plain numbers with tabs between: bytes, blobs, name
    #[arg(long, switch = false)]
    pub(crate) machine_readable: bool,
    #[command(flatten)]
    pub(crate) include: IncludeArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Say why this blob would be taken or left out, and add nothing up
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) explain: Vec<String>,
}

/// Adds up to the end.
///
/// # Errors
/// Those of the requests; `SourceNotFound` where the container is not there; `Usage` for a URL without a container.
pub(crate) async fn run(args: &DuArgs, context: &Context) -> Result<Exit> {
    let remote = Remote::open(&place(&args.url, &context.inputs)?, context).await?;
    let client = remote.client(context)?;
    let path = remote.location.blob.as_deref();
    let container = remote.location.container.as_deref().ok_or_else(|| {
        Error::new(Kind::Usage, "the URL names no container").with_advice("'blobjet list' of the account shows those there are")
    })?;
    let mut listing = Listing::new(client, container, path, &args.selection, &context.out)?;
    if !args.explain.is_empty() {
        let exit = explain_path::of_blobs(&listing.blobs, &args.explain, context).await?;
        remote.close().await;
        return Ok(exit);
    }
    listing.blobs = listing.blobs.including(&args.include.words()).ordered();
    let mut usage = Usage::new(root(path.unwrap_or_default()).to_owned(), args.depth);
    let tell = |(name, amount): (String, Amount)| {
        context.out.data(|| line(amount, &name, args.machine_readable), || Event::Usage { name: name.clone(), amount });
    };
    let exit = listing.each(|batch| batch.iter().for_each(|listed| usage.add(&listed.item, tell))).await?;
    let totals = usage.end(tell);
    let name = remote.shown(path);
    context.out.data(|| text(&totals, &name, args.machine_readable), || Event::UsageTotals(Box::new(totals.clone())));
    remote.close().await;
    Ok(exit)
}

/// The folder that all names are in which a path may mean: what stands up to the last `/` before the first wildcard.
fn root(path: &str) -> &str {
    let literal = &path[..path.find(['*', '?']).unwrap_or(path.len())];
    literal.rfind('/').map_or("", |slash| &literal[..=slash])
}

/// What has been added up so far.
struct Usage {
    root: String,
    depth: usize,
    /// The folders that may not be whole yet, each in the one before it.
    open: Vec<(String, Amount)>,
    totals: UsageTotals,
}

impl Usage {
    fn new(root: String, depth: usize) -> Usage {
        Usage { root, depth, open: Vec::new(), totals: UsageTotals::default() }
    }

    /// Adds a blob, and tells the folders that are whole by now.
    fn add(&mut self, blob: &BlobItem, mut tell: impl FnMut((String, Amount))) {
        let bytes = blob.properties.content_length().unwrap_or(0);
        while self.open.last().is_some_and(|(folder, _)| !blob.name.starts_with(folder.as_str())) {
            self.open.pop().into_iter().for_each(&mut tell);
        }
        let mut at = self.open.last().map_or(self.root.len(), |(folder, _)| folder.len());
        while self.open.len() < self.depth
            && let Some(slash) = blob.name.get(at..).and_then(|rest| rest.find('/'))
        {
            at += slash + 1;
            self.open.push((blob.name[..at].to_owned(), Amount::default()));
        }
        self.open.iter_mut().for_each(|(_, amount)| amount.add(bytes));
        self.totals.all.add(bytes);
        for (amounts, property) in [(&mut self.totals.by_tier, "AccessTier"), (&mut self.totals.by_type, "BlobType")] {
            amounts.entry(blob.properties.get(property).unwrap_or("none").to_owned()).or_default().add(bytes);
        }
    }

    /// Tells what is left.
    fn end(mut self, tell: impl FnMut((String, Amount))) -> UsageTotals {
        self.open.drain(..).rev().for_each(tell);
        self.totals
    }
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

fn line(amount: Amount, name: &str, machine_readable: bool) -> String {
    let name = printable(name);
    if machine_readable {
        return format!("{}\t{}\t{name}", amount.bytes, amount.count);
    }
    format!("{:>12}  {:>12}  {name}", ByteCount(amount.bytes).to_string(), blobs(amount.count))
}

fn blobs(count: u64) -> String {
    if count == 1 { "1 blob".to_owned() } else { format!("{count} blobs") }
}

fn text(totals: &UsageTotals, name: &str, machine_readable: bool) -> String {
    let mut out = line(totals.all, name, machine_readable);
    if machine_readable {
        return out;
    }
    let by = |amounts: &BTreeMap<String, Amount>| {
        let shown = amounts
            .iter()
            .map(|(kind, amount)| format!("{} {} in {}", printable(kind), ByteCount(amount.bytes), blobs(amount.count)));
        shown.collect::<Vec<_>>().join(", ")
    };
    for (what, amounts) in [("by tier", &totals.by_tier), ("by type", &totals.by_type)] {
        if !amounts.is_empty() {
            out.push_str(&format!("\n{what}: {}", by(amounts)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(root: &str, depth: usize, names: &[&str]) -> Vec<String> {
        let mut told = Vec::new();
        let mut usage = Usage::new(root.to_owned(), depth);
        for name in names {
            let mut blob = BlobItem { name: (*name).to_owned(), ..BlobItem::default() };
            blob.properties.push("Content-Length", "10");
            usage.add(&blob, |(name, amount)| told.push(format!("{name} {} {}", amount.count, amount.bytes)));
        }
        let totals = usage.end(|(name, amount)| told.push(format!("{name} {} {}", amount.count, amount.bytes)));
        told.push(format!("= {} {}", totals.all.count, totals.all.bytes));
        told
    }

    #[test]
    fn folders_are_added_up_with_what_is_in_them() {
        let names = ["a-1", "a/b/c", "a/b/d/e", "a/f", "a0", "g//h", "i"];
        assert_eq!(told("", 0, &names), ["= 7 70"]);
        assert_eq!(told("", 1, &names), ["a/ 3 30", "g/ 1 10", "= 7 70"]);
        assert_eq!(told("", 2, &names), ["a/b/ 2 20", "a/ 3 30", "g// 1 10", "g/ 1 10", "= 7 70"]);
        assert_eq!(told("", 9, &names)[..3], ["a/b/d/ 1 10", "a/b/ 2 20", "a/ 3 30"]);
        assert_eq!(told("x/", 1, &["x/a/b", "x/a/c", "x/d"]), ["x/a/ 2 20", "= 3 30"]);
        assert_eq!(told("", 1, &[]), ["= 0 0"]);
    }

    #[test]
    fn the_root_of_a_pattern_is_what_stands_before_it() {
        for (path, expected) in [("", ""), ("logs", ""), ("logs/", "logs/"), ("a/b*/c", "a/"), ("*/a", ""), ("a/b/c?", "a/b/")] {
            assert_eq!(root(path), expected, "{path}");
        }
    }
}
