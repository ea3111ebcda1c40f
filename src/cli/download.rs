//! `blobjet copy` from blobs to this machine: to files, to standard output, or to nowhere.

use super::context::Context;
use super::copy::{About, config, opening, prompt, recording, report, timed};
use super::copy_args::CopyArgs;
use super::doing::{Doing, Way};
use super::exit::Exit;
use super::remote::{Remote, named};
use super::settings::{said, tuning};
use super::standard_output::{AHEAD, pour};
use super::{dry_run, explain_path, job, limits};
use crate::endpoint::blob_source::Unpacked;
use crate::endpoint::file_sink::FileSink;
use crate::endpoint::in_order::Ahead;
use crate::endpoint::null::NullSink;
use crate::endpoint::open::{Opening, Place};
use crate::endpoint::open_blobs::blobs;
use crate::endpoint::{Item, Sink, Source};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::range::MAX_SUMMED;
use crate::rest::stats::Stats;
use crate::transfer::engine::Job;
use crate::transfer::plan::{OnChange, Tuning};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs a download.
///
/// # Errors
/// What keeps the job from starting; how it went is the exit code.
pub(crate) async fn run(args: &CopyArgs, (from, mut to): (Place, Place), about: About, context: &Context) -> Result<Exit> {
    if to == Place::Local("/dev/stdout".to_owned()) {
        to = Place::Stdio;
    }
    let location = named(&from, &context.inputs)?;
    let Some(container) = location.container.clone() else {
        return Err(Error::new(Kind::Usage, "the source names no container").with_advice("add CONTAINER to it, before any ?"));
    };
    refuse_unchecked(args, &to)?;
    let mut sending = args.sending.clone();
    // The most that the service sends a checksum with.
    sending.block_size_mb.get_or_insert(MAX_SUMMED);
    let mut tuning =
        Tuning { on_change: args.on_change.map_or(OnChange::Retry, Into::into), ..tuning(&sending, args.overwrite.into())? };
    if let Some(note) = limits::fit(&mut tuning, said(&args.sending), limits::address_space()) {
        context.out.note(&note);
    }
    if !args.explain.is_empty() && to == Place::Stdio {
        return Err(
            Error::new(Kind::Usage, "--explain: standard output takes the one blob that is named").with_advice("leave it out")
        );
    }
    let prompt = prompt(args, &from, context)?;
    let file = report(args)?;
    let (root, dest) = landing_place(&to);
    let earlier = about.earlier.map(|earlier| match (&dest, root.file_name().and_then(|name| name.to_str())) {
        // What is a folder now may not have been there at first: it was a name then.
        (None, Some(name)) => earlier.first_under(format!("{name}/")),
        _ => earlier,
    });
    let opening = Opening { dest, ..opening(args)? };
    let remote = Remote::open(&from, context).await?;
    remote.check(Need::READ)?;
    let stats = Arc::<Stats>::default();
    let client = remote.client_with(config(args, &stats, context))?;
    let source = blobs(client, &container, location.blob.as_deref(), &opening)?.unpacked(match &opening.dest {
        _ if !args.download.decompress => Unpacked::No,
        None => Unpacked::All,
        Some(_) => Unpacked::Listed,
    });
    if to == Place::Stdio {
        let name = location.blob.clone().filter(|_| !args.recursive && opening.list_of_files.is_none());
        let name = name.ok_or_else(|| Error::new(Kind::Usage, "standard output takes one blob").with_advice("name one blob"))?;
        let exit = context.signals.unless_told(to_stdout(&source, &name, args, &tuning, context)).await;
        remote.close().await;
        return exit.unwrap_or_else(|which| Ok(which.into()));
    }
    let sink: Arc<dyn Sink> = match &to {
        Place::Null => Arc::new(NullSink),
        _ => {
            let out = Arc::clone(&context.out);
            Arc::new(FileSink::new(root, args.download.handling(), Arc::new(move |note: &str| out.warn(note))))
        }
    };
    if !args.explain.is_empty() {
        let lands = |name: &str| sink.describe(name);
        let exit = explain_path::of_source(&source, &*sink, &args.explain, &lands, context).await?;
        remote.close().await;
        return Ok(exit);
    }
    let source: Arc<dyn Source> = if to == Place::Null { Arc::new(source) } else { Arc::new(source.as_paths()) };
    if args.dry_run {
        let lands = |name: &str| sink.describe(name);
        let exit = dry_run::run(source, Arc::clone(&sink), &tuning, &lands, context).await;
        remote.close().await;
        return exit;
    }
    let named = job::Named {
        doing: Doing::Moving { command: "copy", way: if to == Place::Null { Way::Away } else { Way::Down } },
        source: remote.shown(location.blob.as_deref()),
        destination: match &to {
            Place::Local(path) => path.clone(),
            _ => "null:".to_owned(),
        },
        error_on_no_transfer: args.error_on_no_transfer,
        keep_jobs: args.keep_jobs,
        origin: about.origin,
        told_when_stopped: true,
    };
    let recording = recording(args, file, &named, &tuning, matches!(from, Place::Dev { .. }));
    let source = timed(source, recording.as_ref());
    let job = Job { source, sink, tuning, prompt, earlier: earlier.map(Arc::new) };
    let exit = job::run(job::Run { work: job::moving(job), named, stats, recording }, context).await?;
    remote.close().await;
    Ok(exit)
}

/// Refuses what cannot be done where bytes go out as they come.
fn refuse_unchecked(args: &CopyArgs, to: &Place) -> Result<()> {
    let refuse = |what: &str| Err(Error::new(Kind::Usage, what.to_owned()).with_advice("download to a file, or leave it out"));
    match to {
        Place::Local(_) => Ok(()),
        _ if args.download.decompress => refuse("--decompress: only files are unpacked"),
        Place::Null if args.download.check_md5.is_some() => {
            refuse("--check-md5: what is dropped is not compared with a stored MD5")
        }
        _ => Ok(()),
    }
}

/// The folder that names are relative to, and the name in it that a single blob gets. What is a folder, or is written as one, takes
/// blobs under their own names; anything else is the name itself.
fn landing_place(to: &Place) -> (PathBuf, Option<String>) {
    let Place::Local(to) = to else { return (PathBuf::new(), None) };
    let path = Path::new(to);
    let name = path.file_name().and_then(|name| name.to_str());
    match name {
        Some(name) if !to.ends_with('/') && !path.is_dir() => {
            (path.parent().map(Path::to_owned).unwrap_or_default(), Some(name.to_owned()))
        }
        _ => (path.to_owned(), None),
    }
}

/// Writes one blob to standard output.
async fn to_stdout(source: &dyn Source, name: &str, args: &CopyArgs, tuning: &Tuning, context: &Context) -> Result<Exit> {
    let reader: Arc<dyn crate::endpoint::Reader> = Arc::from(source.open(&Item::new(name, "-")).await?);
    let len = reader.facts().len.unwrap_or(0);
    let lanes = tuning.lanes_first.map_or(tuning.lanes, |_| NonZeroUsize::new(AHEAD).unwrap_or(NonZeroUsize::MIN));
    let most = usize::try_from(tuning.memory / tuning.block_size.max(1)).unwrap_or(usize::MAX);
    let ahead = Ahead { block: tuning.block_size, blocks: lanes.min(NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN)) };
    pour(&reader, 0..len, ahead, &args.download.handling(), context).await?;
    Ok(Exit::Done)
}
