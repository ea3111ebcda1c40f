//! `blobjet copy` from blobs to blobs: the service fetches the bytes itself, or, with `--stream`, they go through this machine.
//!
//! Which of the two is decided once, by what was asked for: a service that cannot fetch ends the job at its first object, with the
//! other way as its advice. What the new blobs carry is the same either way.

use super::context::Context;
use super::copy::{About, config, opening, prompt, recording, report, timed};
use super::copy_args::CopyArgs;
use super::doing::{Doing, Way};
use super::exit::Exit;
use super::remote::{Remote, named, shown};
use super::sending_args::SendingArgs;
use super::settings::{said, tuning};
use super::{dry_run, explain_path, job, limits};
use crate::attributes::Attributes;
use crate::endpoint::account::{self, AccountSink, AccountSource};
use crate::endpoint::blob::{BlobSink, ContentTypes};
use crate::endpoint::copy_sink::{BLOCK, CopySink};
use crate::endpoint::open::{Opening, Place};
use crate::endpoint::open_blobs::blobs;
use crate::endpoint::{Sink, Source};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::client::Client;
use crate::rest::container::{Container, list_containers};
use crate::rest::location::Location;
use crate::rest::stats::Stats;
use crate::transfer::engine::Job;
use crate::transfer::plan::{OnChange, Tuning};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs a copy from blobs to blobs.
///
/// # Errors
/// What keeps the job from starting; how it went is the exit code.
pub(crate) async fn run(args: &CopyArgs, (from, to): (Place, Place), about: About, context: &Context) -> Result<Exit> {
    let (source_at, target) = (named(&from, &context.inputs)?, named(&to, &context.inputs)?);
    let extent = Extent::of(&source_at, &target)?;
    within_reach(args, (&from, &source_at), (&to, &target))?;
    let mut tuning = how(args)?;
    if let Some(note) = limits::fit(&mut tuning, said(&args.sending), limits::address_space()) {
        context.out.note(&note);
    }
    let attributes = args.attributes.attributes()?;
    let prompt = prompt(args, &from, context)?;
    let file = report(args)?;
    let mut opening = Opening { dest: target.blob.clone(), ..opening(args)? };
    // A container copied to a container is not put into it as a folder: AzCopy's rule.
    opening.as_subdir &= source_at.blob.is_some() || target.blob.is_some();
    extent.check(args, &opening)?;
    let reading = Remote::open(&from, context).await?;
    let writing = match (&from, &to) {
        (Place::Dev { .. }, Place::Dev { .. }) => reading.beside(&to),
        _ => Remote::open(&to, context).await?,
    };
    check_rights(args, &extent, &attributes, (&reading, &writing))?;
    let stats = Arc::<Stats>::default();
    let client_of = |remote: &Remote| remote.client_with(config(args, &stats, context));
    let (reader, writer) = (client_of(&reading)?, client_of(&writing)?);
    let same_service = reading.location.is_beside(&writing.location);
    if !args.explain.is_empty() {
        let Extent::Containers { source, target: container } = &extent else {
            return Err(usage("--explain is about one container", "name the container"));
        };
        let source = blobs(reader, source, source_at.blob.as_deref(), &opening)?;
        let sink = sink(writer, container, attributes, args);
        let lands = |name: &str| lands(&target, name);
        let exit = explain_path::of_source(&source, &*sink, &args.explain, &lands, context).await?;
        writing.close().await;
        reading.close().await;
        return Ok(exit);
    }
    let ends = match context.signals.unless_told(extent.ends(args, (&reader, &writer), &source_at, &opening, attributes)).await {
        Ok(ends) => ends?,
        Err(which) => return Ok(which.into()),
    };
    if ends.keeps_names && same_service {
        return Err(usage("source and destination are the same", "name another container or folder as the destination"));
    }
    if args.dry_run {
        let lands = |name: &str| lands(&target, name);
        let exit = dry_run::run(ends.source, ends.sink, &tuning, &lands, context).await;
        writing.close().await;
        reading.close().await;
        return exit;
    }
    let whole_account = matches!(extent, Extent::Account);
    if whole_account || args.create_container || matches!(to, Place::Dev { .. }) {
        for container in &ends.containers {
            match context.signals.unless_told(Container::new(&writer, container).create()).await {
                Ok(made) => made?,
                Err(which) => return Ok(which.into()),
            };
        }
    }
    let named = job::Named {
        source: reading.shown(source_at.blob.as_deref()),
        destination: writing.shown(target.blob.as_deref()),
        error_on_no_transfer: args.error_on_no_transfer,
        keep_jobs: args.keep_jobs,
        origin: about.origin,
        told_when_stopped: true,
        doing: Doing::Moving { command: "copy", way: if args.remote.stream { Way::Up } else { Way::Across } },
    };
    let inside = |place: &Place| matches!(place, Place::Dev { .. });
    let recording = recording(args, file, &named, &tuning, inside(&from) || inside(&to));
    let source = timed(ends.source, recording.as_ref());
    let job = Job { source, sink: ends.sink, tuning, prompt, earlier: about.earlier.map(Arc::new) };
    let exit = job::run(job::Run { work: job::moving(job), named, stats, recording }, context).await?;
    writing.close().await;
    reading.close().await;
    Ok(exit)
}

/// What is copied to where, as far as containers go.
enum Extent {
    /// From one container to another, or to the same.
    Containers { source: String, target: String },
    /// All containers of an account, to those of the same names.
    Account,
}

/// Both ends of a job.
struct Ends {
    source: Arc<dyn Source>,
    sink: Arc<dyn Sink>,
    /// Containers that are written to.
    containers: Vec<String>,
    /// Whether everything lands in its own container under its own name.
    keeps_names: bool,
}

impl Extent {
    fn of(source: &Location, target: &Location) -> Result<Extent> {
        match (source.container.clone(), target.container.clone()) {
            (Some(source), Some(target)) => Ok(Extent::Containers { source, target }),
            (None, None) => Ok(Extent::Account),
            (None, Some(_)) => Err(usage(
                "the source is an account, and the destination a container",
                "copy to an account, or name the container to copy",
            )),
            (Some(_), None) => Err(usage("the destination names no container", "add CONTAINER to it, before any ?")),
        }
    }

    fn check(&self, args: &CopyArgs, opening: &Opening) -> Result<()> {
        let excluded = !args.remote.exclude_container.is_empty();
        match self {
            Extent::Containers { .. } if excluded => {
                Err(usage("--exclude-container is about copies from account to account", "leave it out"))
            }
            Extent::Account if !opening.recursive => {
                Err(usage("cannot copy an account without --recursive", "add --recursive, or name a container"))
            }
            Extent::Account if opening.list_of_files.is_some() => {
                Err(usage("--list-of-files is about one container", "name the container"))
            }
            _ => Ok(()),
        }
    }

    async fn ends(
        &self,
        args: &CopyArgs,
        (reader, writer): (&Client, &Client),
        source_at: &Location,
        opening: &Opening,
        attributes: Attributes,
    ) -> Result<Ends> {
        let source = |container: &str, path: Option<&str>| -> Result<(Arc<dyn Source>, bool)> {
            let source = blobs(reader.clone(), container, path, opening)?;
            let source = if args.remote.s2s_preserve_blob_tags { source.with_tags() } else { source };
            let keeps_names = source.keeps_names();
            Ok((Arc::new(source), keeps_names))
        };
        match self {
            Extent::Containers { source: from, target } => {
                let (source, keeps_names) = source(from, source_at.blob.as_deref())?;
                Ok(Ends {
                    source,
                    sink: sink(writer.clone(), target, attributes, args),
                    containers: vec![target.clone()],
                    keeps_names: keeps_names && from == target,
                })
            }
            Extent::Account => {
                let containers = containers(reader, &args.remote.exclude_container).await?;
                let sources = containers.iter().map(|name| Ok((name.clone(), source(name, None)?.0)));
                let sources = sources.collect::<Result<BTreeMap<_, _>>>()?;
                let sinks = containers.iter().map(|name| (name.clone(), sink(writer.clone(), name, attributes.clone(), args)));
                let sink = AccountSink::new(sinks.collect()).ok_or_else(|| {
                    Error::new(Kind::SourceNotFound, format!("there is no container to copy in {}", source_at.safe()))
                })?;
                let source = AccountSource::new(sources, source_at.safe().to_string());
                Ok(Ends { source: Arc::new(source), sink: Arc::new(sink), containers, keeps_names: true })
            }
        }
    }
}

/// Every container of an account but those left out, and but those the service keeps for itself.
async fn containers(client: &Client, excluded: &[String]) -> Result<Vec<String>> {
    let excluded: Vec<&str> = excluded.iter().flat_map(|names| names.split(';')).map(str::trim).collect();
    let (mut all, mut marker) = (Vec::new(), None);
    loop {
        let page = list_containers(client, None, marker).await?;
        let names = page.containers.into_iter().map(|container| container.name);
        all.extend(names.filter(|name| !OWN.contains(&name.as_str()) && !excluded.contains(&name.as_str())));
        marker = page.next_marker;
        if marker.is_none() {
            return Ok(all);
        }
    }
}

/// Containers that the service writes itself, and nobody else can.
const OWN: [&str; 2] = ["$logs", "$blobchangefeed"];

/// What can be known to be missing before the first request, on both sides.
fn check_rights(args: &CopyArgs, extent: &Extent, attributes: &Attributes, (reading, writing): (&Remote, &Remote)) -> Result<()> {
    reading.check(Need::READ)?;
    if args.remote.s2s_preserve_blob_tags {
        reading.check(Need::TAGS)?;
    }
    let tagged = !attributes.tags.is_empty() || args.remote.s2s_preserve_blob_tags;
    writing.check(if tagged { Need::WRITE_TAGGED } else { Need::WRITE })?;
    if let Extent::Account = extent {
        reading.check(Need::LIST_CONTAINERS)?;
        writing.check(Need::CREATE_CONTAINER)?;
    }
    Ok(())
}

/// Where something lands, as the user writes places; from account to account names begin with their container.
fn lands(target: &Location, name: &str) -> String {
    if target.container.is_some() {
        return shown(target, Some(name));
    }
    let (container, blob) = account::split(name);
    shown(&Location { container: Some(container.to_owned()), ..target.clone() }, Some(blob))
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// What the engine is told. Where the service fetches, no memory is taken here, so that none bounds the size of a block.
fn how(args: &CopyArgs) -> Result<Tuning> {
    let on_change = args.on_change.map_or(OnChange::Retry, Into::into);
    if args.remote.stream {
        return Ok(Tuning { on_change, ..tuning(&args.sending, args.overwrite.into())? });
    }
    for (flag, given) in [("--put-md5", args.sending.put_md5), ("--cap-mbps", args.sending.cap_mbps.is_some())] {
        if given {
            let text = format!("{flag}: the bytes of this copy go from service to service, and are not seen here");
            return Err(usage(text, "add --stream to send them through this machine, or leave it out"));
        }
    }
    let sending = SendingArgs { memory: None, ..args.sending.clone() };
    let mut tuning = Tuning { on_change, ..tuning(&sending, args.overwrite.into())? };
    if !tuning.block_size_fixed {
        tuning.block_size = BLOCK;
        if args.sending.put_blob_size_mb.is_none() {
            tuning.whole_limit = BLOCK;
        }
    }
    Ok(tuning)
}

/// Refuses what no service can fetch: what only this machine can reach, for one that is elsewhere.
fn within_reach(args: &CopyArgs, (from, source): (&Place, &Location), (to, target): (&Place, &Location)) -> Result<()> {
    let local = |place: &Place, location: &Location| matches!(place, Place::Dev { .. }) || location.is_loopback();
    if args.remote.stream || !local(from, source) || local(to, target) {
        return Ok(());
    }
    let text = format!("the service cannot fetch from {}: only this machine can reach that", shown(source, None));
    Err(usage(text, "add --stream: the bytes then go through this machine"))
}

fn sink(client: Client, container: &str, attributes: Attributes, args: &CopyArgs) -> Arc<dyn Sink> {
    // A blob without a type has the service's, as it had at its source.
    let sink = BlobSink::new(client, container, attributes, ContentTypes::Service).keeping(args.remote.keep());
    if args.remote.stream { Arc::new(sink) } else { Arc::new(CopySink::new(sink)) }
}
