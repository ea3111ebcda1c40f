//! `blobjet list`: the blobs of a container, under a prefix or matching a pattern; the containers of an account.
//!
//! Lines are AzCopy's. In the order of names, which takes no memory; by size or time everything is held until the end.

use super::context::Context;
use super::exit::Exit;
use super::explain_path;
use super::json::{BlobLine, Event};
use super::list_properties::{Property, properties};
use super::listing::{Include, IncludeArgs, Listing};
use super::options::Switch;
use super::remote::{Remote, place};
use super::render::printable;
use super::selection_args::SelectionArgs;
use crate::endpoint::blob_listing::Listed;
use crate::error::{Error, Kind, Result};
use crate::rest::client::Client;
use crate::rest::container::list_containers;
use crate::units::ByteCount;
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::time::SystemTime;

const EXAMPLES: &str = "\
Examples:
  blobjet list dev://box                                      all blobs
  blobjet list dev://box/logs/ --depth 1                      what is directly in a folder, as ls shows it
  blobjet list 'dev://box/logs/2026-*/*.gz' --running-tally   what matches, and how much it is
  blobjet list dev://box --sort size --min-size 1GiB          the largest first
  blobjet list dev://box --include versions;deleted           also older versions, and what can be brought back
  blobjet list dev://box --properties 'LastModifiedTime;BlobAccessTier'";

/// Arguments of `list`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Account, container, prefix or pattern of blobs: https://, az:// or dev:// URL
    pub(crate) url: String,
    /// Sizes as plain numbers of bytes
    #[arg(long, switch = false)]
    pub(crate) machine_readable: bool,
    /// Count blobs and bytes at the end
    #[arg(long, switch = false)]
    pub(crate) running_tally: bool,
    /// What to show of each blob: LastModifiedTime, BlobAccessTier, ContentType, ..., or all
    #[arg(long, value_name = "NAME;NAME", default_value = "", hide_default_value = true)]
    pub(crate) properties: String,
    /// Levels of folders to look into; of what is deeper the folders are shown
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<NonZeroUsize>,
    /// name, size (largest first), time (newest first), or none (as it comes, which is fastest)
    #[arg(long, value_enum, ignore_case = true, default_value_t = Sort::Name, hide_possible_values = true, value_name = "BY")]
    pub(crate) sort: Sort,
    #[command(flatten)]
    pub(crate) include: IncludeArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Say why this blob would be taken or left out, and list nothing
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) explain: Vec<String>,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    Name,
    Size,
    Time,
    None,
}

/// Lists to the end.
///
/// # Errors
/// Those of the requests; `SourceNotFound` where the container is not there; `Usage` for options that do not go together.
pub(crate) async fn run(args: &ListArgs, context: &Context) -> Result<Exit> {
    let properties = properties(&args.properties)?;
    let place = place(&args.url, &context.inputs)?;
    let remote = Remote::open(&place, context).await?;
    let client = remote.client(context)?;
    let mut shown = Shown { properties, machine_readable: args.machine_readable, count: 0, bytes: 0 };
    let exit = match &remote.location.container {
        None => containers(&client, args, &mut shown, context).await?,
        Some(name) => blobs(client, name, remote.location.blob.as_deref(), args, &mut shown, context).await?,
    };
    let (count, bytes) = (shown.count, shown.bytes);
    if (args.running_tally || context.out.is_json()) && args.explain.is_empty() {
        let text = || format!("\nFile count: {count}\nTotal file size: {}", size(bytes, args.machine_readable));
        context.out.data(text, || Event::Totals { count, bytes });
    }
    remote.close().await;
    Ok(exit)
}

fn usage(what: &str, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

async fn containers(client: &Client, args: &ListArgs, shown: &mut Shown, context: &Context) -> Result<Exit> {
    if !args.selection.given().is_empty() || !args.explain.is_empty() {
        return Err(usage("cannot filter containers", "name a container: filters are about the blobs in it"));
    }
    let mut marker = None;
    loop {
        let page = list_containers(client, None, marker).await?;
        shown.count += page.containers.len() as u64;
        context.out.data_lines(page.containers.iter().map(|container| {
            let modified = container.properties.get("Last-Modified").map(str::to_owned);
            let event = Event::Container { name: container.name.clone(), last_modified: modified };
            (printable(&container.name).into_owned(), event)
        }));
        marker = page.next_marker;
        if marker.is_none() {
            return Ok(Exit::Done);
        }
    }
}

async fn blobs(
    client: Client,
    container: &str,
    path: Option<&str>,
    args: &ListArgs,
    shown: &mut Shown,
    context: &Context,
) -> Result<Exit> {
    let mut include = args.include.words();
    if shown.properties.iter().any(|property| property.needs_versions()) && !include.contains(&"versions") {
        include.push("versions");
    }
    let mut listing = Listing::new(client, container, path, &args.selection, &context.out)?;
    if !args.explain.is_empty() {
        return explain_path::of_blobs(&listing.blobs, &args.explain, context).await;
    }
    listing.blobs = listing.blobs.including(&include);
    if let Some(levels) = args.depth {
        if args.include.has(Include::Snapshots) {
            let advice = "leave out one of them: the service lists snapshots only without folders";
            return Err(usage("--depth and --include snapshots cannot go together", advice));
        }
        if args.selection.list_of_files.is_some() {
            return Err(usage("--depth and --list-of-files cannot go together", "leave out one of them"));
        }
        listing.blobs = listing.blobs.folders(levels);
    }
    if args.sort == Sort::Name {
        listing.blobs = listing.blobs.ordered();
    }
    let mut held: Vec<(Key, String, Event)> = Vec::new();
    let exit = listing
        .each(|batch| {
            let lines = batch.into_iter().map(|listed| (Key::of(&listed, args.sort), shown.line(listed)));
            match args.sort {
                Sort::Name | Sort::None => context.out.data_lines(lines.map(|(_, line)| line)),
                Sort::Size | Sort::Time => held.extend(lines.map(|(key, (text, event))| (key, text, event))),
            }
        })
        .await?;
    // What is alike in it goes by name, as the text of a line begins.
    held.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    context.out.data_lines(held.into_iter().map(|(_, text, event)| (text, event)));
    Ok(exit)
}

/// What lines are sorted by, the largest first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Nothing,
    Size(u64),
    Time(Option<SystemTime>),
}

impl Key {
    fn of(listed: &Listed, sort: Sort) -> Key {
        match sort {
            Sort::Size => Key::Size(listed.item.properties.content_length().unwrap_or(0)),
            Sort::Time => Key::Time(listed.item.properties.last_modified()),
            Sort::Name | Sort::None => Key::Nothing,
        }
    }
}

/// What is shown of each blob, and what has been shown so far.
struct Shown {
    properties: Vec<Property>,
    machine_readable: bool,
    count: u64,
    bytes: u64,
}

impl Shown {
    /// The line of a blob or folder, as text and as JSON.
    fn line(&mut self, listed: Listed) -> (String, Event) {
        let blob = listed.item;
        if listed.is_folder {
            return (printable(&blob.name).into_owned(), Event::Folder { name: blob.name });
        }
        let length = blob.properties.content_length().unwrap_or(0);
        self.count += 1;
        self.bytes += length;
        let mut text = printable(&blob.name).into_owned();
        let mut push = |name: &str, value: &str| text.push_str(&format!("; {name}: {}", printable(value)));
        let asked = |property: &Property| property.of(&blob).map(|value| (property.name, value));
        self.properties.iter().filter_map(asked).for_each(|(name, value)| push(name, value));
        if let Some(snapshot) = &blob.snapshot {
            push("Snapshot", snapshot);
        }
        for (name, pairs) in [("Metadata", blob.metadata.as_ref()), ("Tags", blob.tags.as_ref().map(|tags| &tags.0))] {
            let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) else { continue };
            push(name, &pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", "));
        }
        let committed = blob.properties.etag().is_some();
        for (name, is) in [("Deleted", blob.deleted), ("Uncommitted", !committed), ("Current version", blob.is_current_version)] {
            if is {
                text.push_str(&format!("; {name}"));
            }
        }
        text.push_str(&format!("; Content Length: {}", size(length, self.machine_readable)));
        let properties = self.properties.iter().filter_map(asked).map(|(name, value)| (name, value.to_owned())).collect();
        (text, Event::Blob(Box::new(BlobLine::new(&blob, length, properties))))
    }
}

fn size(bytes: u64, machine_readable: bool) -> String {
    if machine_readable { bytes.to_string() } else { ByteCount(bytes).to_string() }
}
