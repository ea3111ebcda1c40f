//! `blobjet stat`: everything the service says about a blob, a container or an account. Nothing is changed, and what the credential
//! may not see is left out and named.

use super::context::Context;
use super::exit::Exit;
use super::json::{Event, StatLine};
use super::options::Switch;
use super::remote::{Remote, place};
use super::render::printable;
use crate::error::{Error, Kind, Result};
use crate::rest::blob::{Blob, BlobProperties};
use crate::rest::client::Client;
use crate::rest::container::{Container, ListOptions};
use crate::rest::model::{BlockListType, BlockState};
use crate::rest::probe::{self, Scope, Target};
use crate::units::ByteCount;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  blobjet stat 'https://ACCOUNT.blob.core.windows.net/CONTAINER/big.bin?SAS'          properties, metadata, tags, tier, lease
  blobjet stat 'https://ACCOUNT.blob.core.windows.net/CONTAINER/big.bin?SAS' --blocks     and its blocks, with what is staged
  blobjet stat az://ACCOUNT/CONTAINER
  blobjet stat az://ACCOUNT --output-type json";

/// Arguments of `stat`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct StatArgs {
    /// Blob, container or account: https://, az:// or dev:// URL
    pub(crate) url: String,
    /// List the blocks of the blob, committed and uncommitted
    #[arg(long, switch = false)]
    pub(crate) blocks: bool,
}

/// Headers that are about the answer and not about the thing.
const ANSWERS: &[&str] = &[
    "accept-ranges",
    "access-control-expose-headers",
    "connection",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
    "x-ms-client-request-id",
    "x-ms-request-id",
    "x-ms-version",
];

/// Looks and tells.
///
/// # Errors
/// `SourceNotFound` where there is no such thing, and those of the requests.
pub(crate) async fn run(args: &StatArgs, context: &Context) -> Result<Exit> {
    let remote = Remote::open(&place(&args.url, &context.inputs)?, context).await?;
    let client = remote.client(context)?;
    let names = (remote.location.container.clone(), remote.location.blob.clone());
    if args.blocks && names.1.is_none() {
        return Err(Error::new(Kind::Usage, "--blocks is about one blob").with_advice("name the blob, or leave it out"));
    }
    let line = match &names {
        (None, _) => account(&client, &remote).await?,
        (Some(container), None) => of_container(&client, container, &remote).await?,
        (Some(container), Some(blob)) => of_blob(&client, container, blob, args, &remote).await?,
    };
    context.out.data(|| text(&line), || Event::Stat(Box::new(line.clone())));
    if let ((Some(container), Some(blob)), true) = (&names, args.blocks) {
        blocks(&Blob::new(&client, container, blob), context).await?;
    }
    remote.close().await;
    Ok(Exit::Done)
}

fn missing(what: &str, url: &str) -> Error {
    Error::new(Kind::SourceNotFound, format!("there is no {what} {url}")).with_advice("'blobjet list' shows what is there")
}

async fn account(client: &Client, remote: &Remote) -> Result<StatLine> {
    let url = remote.location.safe().to_string();
    let target = Target { container: None, scope: Scope::Names(String::new()) };
    let there = probe::account(client, &target).await?.ok_or_else(|| {
        Error::new(Kind::AccessRefused, format!("cannot see what kind of account {url} is"))
            .with_advice("use the account key or an account SAS; a container's SAS shows its container")
    })?;
    let hierarchical = there.hierarchical.map(|is| is.to_string());
    let known = [("sku", there.sku), ("kind", there.kind), ("hierarchical-namespace", hierarchical)];
    let properties = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Ok(StatLine { what: "account", url, properties, ..StatLine::default() })
}

async fn of_container(client: &Client, container: &str, remote: &Remote) -> Result<StatLine> {
    let url = remote.shown(None);
    let answer = Container::new(client, container).get_properties().await?.ok_or_else(|| missing("container", &url))?;
    Ok(of_headers("container", url, &BlobProperties::of(answer)))
}

async fn of_blob(client: &Client, container: &str, name: &str, args: &StatArgs, remote: &Remote) -> Result<StatLine> {
    let blob = Blob::new(client, container, name);
    let url = remote.shown(Some(name));
    let Some(there) = blob.get_properties().await? else {
        // Blocks alone are not a blob yet, and may be what is looked for.
        return match args.blocks {
            true => Ok(StatLine { what: "uncommitted blob", url, ..StatLine::default() }),
            false => Err(missing("blob", &url)),
        };
    };
    let mut line = of_headers("blob", url, &there);
    match blob.get_tags().await {
        Ok(tags) => line.tags = Some(tags.0.into_iter().collect()),
        Err(error) => line.leave_out("tags", error)?,
    }
    match versions(client, container, name).await {
        Ok(counts) => (line.snapshots, line.versions) = counts.unzip(),
        Err(error) => line.leave_out("snapshots and versions", error)?,
    }
    Ok(line)
}

/// Snapshots and earlier versions, as far as one page of the listing tells for sure.
async fn versions(client: &Client, container: &str, name: &str) -> Result<Option<(u64, u64)>> {
    let include = vec!["snapshots", "versions"];
    let options = ListOptions { prefix: Some(name.to_owned()), include, ..ListOptions::default() };
    let page = match Container::new(client, container).list(&options).await {
        Ok(page) => page,
        // Azurite has no versions and says so.
        Err(error) if matches!(error.kind(), Kind::Refused | Kind::Unsupported) => {
            Container::new(client, container).list(&ListOptions { include: vec!["snapshots"], ..options }).await?
        }
        Err(error) => return Err(error),
    };
    if page.next_marker.is_some() && page.blobs().all(|item| item.name == name) {
        return Ok(None);
    }
    let (mut snapshots, mut versions) = (0, 0);
    for item in page.blobs().filter(|item| item.name == name) {
        snapshots += u64::from(item.snapshot.is_some());
        versions += u64::from(item.snapshot.is_none() && item.version_id.is_some() && !item.is_current_version);
    }
    Ok(Some((snapshots, versions)))
}

fn of_headers(what: &'static str, url: String, there: &BlobProperties) -> StatLine {
    let is_about_it = |name: &str| !ANSWERS.contains(&name) && !name.starts_with("x-ms-meta-");
    let properties = there.all().filter(|(name, _)| is_about_it(name));
    StatLine {
        what,
        url,
        properties: properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        metadata: there.metadata().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..StatLine::default()
    }
}

impl StatLine {
    /// What the credential may not see is no reason to see nothing.
    fn leave_out(&mut self, what: &str, error: Error) -> Result<()> {
        match error.kind() {
            Kind::AccessRefused | Kind::Unsupported | Kind::Refused | Kind::Conflict => {
                self.not_seen.push(what.to_owned());
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// For people: what everybody asks for first, then everything by its name at the service.
fn text(line: &StatLine) -> String {
    let mut out = format!("{}: {}", line.what, printable(&line.url));
    if let Some(len) = line.properties.get("content-length").and_then(|len| len.parse().ok()).filter(|_| line.what == "blob") {
        out.push_str(&format!("\nsize: {} ({len} bytes)", ByteCount(len)));
    }
    let own = |name: &&String| !(name.as_str() == "content-length" && line.what == "container");
    for (name, value) in line.properties.iter().filter(|(name, _)| own(name)) {
        let name = name.strip_prefix("x-ms-").unwrap_or(name);
        out.push_str(&format!("\n{name}: {}", printable(value)));
    }
    for (title, count) in [("snapshots", line.snapshots), ("earlier versions", line.versions)] {
        if let Some(count) = count {
            out.push_str(&format!("\n{title}: {count}"));
        }
    }
    push_pairs(&mut out, "metadata", &line.metadata);
    push_pairs(&mut out, "tags", line.tags.iter().flatten());
    for what in &line.not_seen {
        out.push_str(&format!("\n{what}: not shown to this credential"));
    }
    out
}

fn push_pairs<'a>(out: &mut String, title: &str, pairs: impl IntoIterator<Item = (&'a String, &'a String)>) {
    for (name, value) in pairs {
        out.push_str(&format!("\n{title}: {} = {}", printable(name), printable(value)));
    }
}

/// Blocks printed at a time.
const LINES: usize = 1000;

async fn blocks(blob: &Blob<'_>, context: &Context) -> Result<()> {
    let mut lines = Vec::with_capacity(LINES);
    let (mut index, mut counts) = (0u64, [(0u64, 0u64); 2]);
    let found = blob
        .each_block_of(BlockListType::All, |state, id, len| {
            let (word, at) = match state {
                BlockState::Committed => ("committed", 0),
                BlockState::Uncommitted => ("uncommitted", 1),
            };
            index += 1;
            counts[at].0 += 1;
            counts[at].1 += len;
            let text = format!("  {word} {} {len}", printable(id));
            lines.push((text, Event::Block { index: counts[at].0 - 1, id: id.to_owned(), bytes: len, state: word }));
            if lines.len() == LINES {
                context.out.data_lines(lines.drain(..));
            }
        })
        .await?;
    context.out.data_lines(lines.into_iter());
    if !found {
        return Err(Error::new(Kind::SourceNotFound, "there is neither a blob of that name nor a block staged for one"));
    }
    if !context.out.is_json() {
        let [committed, staged] = counts.map(|(count, bytes)| format!("{count} ({})", ByteCount(bytes)));
        context
            .out
            .data(|| format!("blocks: {committed} committed, {staged} uncommitted"), || Event::Totals { count: 0, bytes: 0 });
    }
    Ok(())
}
