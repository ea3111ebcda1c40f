//! `blobjet list`: the blobs of a container or under a prefix, with their sizes; the containers of an account.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use super::options::Switch;
use super::remote::{Remote, place};
use super::render::printable;
use crate::error::{Error, Kind, Result};
use crate::rest::client::Client;
use crate::rest::container::{Container, ListOptions, list_containers};
use crate::units::ByteCount;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  blobjet list az://ACCOUNT                                the containers of an account
  blobjet list az://ACCOUNT/box/logs/                      the blobs whose names begin with logs/
  blobjet list dev://box --running-tally                   and how many bytes they are";

/// Arguments of `list`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Account, container, or container with a prefix: https://, az:// or dev:// URL
    pub(crate) url: String,
    /// Sizes as plain numbers of bytes
    #[arg(long, switch = false)]
    pub(crate) machine_readable: bool,
    /// Count blobs and bytes at the end
    #[arg(long, switch = false)]
    pub(crate) running_tally: bool,
}

/// Lists to the end.
///
/// # Errors
/// Those of the requests; `SourceNotFound` where the container is not there.
pub(crate) async fn run(args: &ListArgs, context: &Context) -> Result<Exit> {
    let remote = Remote::open(&place(&args.url, &context.inputs)?, context).await?;
    let client = remote.client(context)?;
    let (count, bytes) = match &remote.location.container {
        None => (containers(&client, context).await?, 0),
        Some(name) => blobs(&client, name, remote.location.blob.clone(), args, context).await?,
    };
    if args.running_tally || context.out.is_json() {
        context
            .out
            .data(|| format!("\nFile count: {count}\nTotal file size: {}", size(bytes, args)), || Event::Totals { count, bytes });
    }
    remote.close().await;
    Ok(Exit::Done)
}

async fn containers(client: &Client, context: &Context) -> Result<u64> {
    let (mut count, mut marker) = (0, None);
    loop {
        let page = list_containers(client, None, marker).await?;
        count += page.containers.len() as u64;
        context.out.data_lines(page.containers.iter().map(|container| {
            let modified = container.properties.get("Last-Modified").map(str::to_owned);
            let event = Event::Container { name: container.name.clone(), last_modified: modified };
            (printable(&container.name).into_owned(), event)
        }));
        marker = page.next_marker;
        if marker.is_none() {
            return Ok(count);
        }
    }
}

async fn blobs(
    client: &Client,
    container: &str,
    prefix: Option<String>,
    args: &ListArgs,
    context: &Context,
) -> Result<(u64, u64)> {
    let container = Container::new(client, container);
    let mut options = ListOptions { prefix, ..ListOptions::default() };
    let (mut count, mut bytes) = (0, 0);
    loop {
        let page = container.list(&options).await.map_err(nothing_to_list)?;
        context.out.data_lines(page.blobs().map(|blob| {
            let length = blob.properties.content_length().unwrap_or(0);
            count += 1;
            bytes += length;
            let property = |name: &str| blob.properties.get(name).map(str::to_owned);
            let event = Event::Blob {
                name: blob.name.clone(),
                bytes: length,
                last_modified: property("Last-Modified"),
                content_type: property("Content-Type"),
                blob_type: property("BlobType"),
            };
            (format!("{}; Content Length: {}", printable(&blob.name), size(length, args)), event)
        }));
        options.marker = page.next_marker;
        if options.marker.is_none() {
            return Ok((count, bytes));
        }
    }
}

fn size(bytes: u64, args: &ListArgs) -> String {
    if args.machine_readable { bytes.to_string() } else { ByteCount(bytes).to_string() }
}

/// For a listing, a container that is not there is a source that is not there.
pub(crate) fn nothing_to_list(error: Error) -> Error {
    if error.kind() != Kind::ContainerNotFound {
        return error;
    }
    let answer = error.answer().cloned().unwrap_or_default();
    Error::new(Kind::SourceNotFound, error.to_string())
        .with_answer(answer)
        .with_advice("check the name; 'blobjet list' of the account shows what is there")
}
