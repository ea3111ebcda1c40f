//! `blobjet copy`: from arguments to a job.
//!
//! Everything that can be known without asking the service is checked first: the places, the options, the source, and what can
//! be read from a SAS. Only then is the embedded service started, a container made, and the job run.

use super::context::Context;
use super::copy_args::{CopyArgs, OverwriteArg, ReadArg};
use super::doing::Doing;
use super::entry::Origin;
use super::exit::Exit;
use super::remote::{Remote, named, place, shown};
use super::report::Recording;
use super::report::file::ReportFile;
use super::report::recorder::About;
use super::settings::{Side, cap_bits_per_s, direction, said, told, tuning};
use super::{dry_run, explain_path, job, limits};
use crate::attributes::Attributes;
use crate::endpoint::blob::{BlobSink, ContentTypes};
use crate::endpoint::file::ReadMode;
use crate::endpoint::mime;
use crate::endpoint::open::{Opening, Place, source};
use crate::endpoint::timed::Timed;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::sas::Token;
use crate::rest::auth::{Inputs, Need, choose};
use crate::rest::client::{Client, Config};
use crate::rest::container::Container;
use crate::rest::location::Location;
use crate::rest::stats::Stats;
use crate::transfer::engine::Job;
use crate::transfer::overwrite::{Answer, Prompt};
use crate::transfer::plan::Tuning;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

/// Runs the command, for a job that comes from there: without an origin it is not written down.
///
/// # Errors
/// What keeps the job from starting; how it went is the exit code.
pub(crate) async fn run(args: &CopyArgs, mut origin: Option<Origin>, context: &Context) -> Result<Exit> {
    let (from, mut to) = places(args, &context.inputs)?;
    let mut earlier = None;
    if let Some(Origin::Again { resumed, sas, .. }) = &mut origin {
        earlier = Some(Arc::new(std::mem::take(&mut resumed.finished)));
        if let Some(sas) = sas.take() {
            with_sas(&mut to, sas)?;
        }
    }
    direction(side(&from), side(&to), args.from_to.as_deref())?;
    let target = named(&to, &context.inputs)?;
    let container = target.container.clone().ok_or_else(|| {
        usage(format!("the destination {} names no container", shown(&to, &target, None)), "add CONTAINER to it, before any ?")
    })?;
    let mut tuning = Tuning { on_change: args.on_change.into(), ..tuning(&args.sending, args.overwrite.into())? };
    if let Some(note) = limits::fit(&mut tuning, said(&args.sending), limits::address_space()) {
        context.out.note(&note);
    }
    let attributes = args.attributes.attributes()?;
    let prompt = prompt(args, &from, context)?;
    let report = report(args)?;
    let source = source(&from, &opening(args, &target)?)?;
    if !args.explain.is_empty() {
        let Place::Local(arg) = &from else {
            return Err(usage("--explain: the source has no paths", "leave it out, or name files as the source"));
        };
        let lands = |name: &str| shown(&to, &target, Some(name));
        return explain_path::run(arg, &opening(args, &target)?, &args.explain, &lands, context);
    }
    let need = if attributes.tags.is_empty() { Need::WRITE } else { Need::WRITE_TAGGED };
    if args.dry_run {
        let client = client_for_names(&target, args, context)?;
        client.check_need(need)?;
        let sink = sink(client, &container, attributes, args, &from);
        let lands = |name: &str| shown(&to, &target, Some(name));
        return dry_run::run(source, Arc::new(sink), &tuning, &lands, context).await;
    }
    let remote = Remote::open(&to, context).await?;
    remote.check(need)?;
    let stats = Arc::<Stats>::default();
    let client = remote.client_with(config(args, &stats, context))?;
    if args.create_container || matches!(to, Place::Dev { .. }) {
        let container = Container::new(&client, &container);
        match context.signals.unless_told(container.create()).await {
            Ok(made) => made?,
            Err(which) => return Ok(which.into()),
        };
    }
    let named = job::Named {
        doing: Doing::Moving { command: "copy" },
        source: source.describe(),
        destination: remote.shown(target.blob.as_deref()),
        error_on_no_transfer: args.error_on_no_transfer,
        keep_jobs: args.keep_jobs,
        origin,
        told_when_stopped: true,
    };
    let recording = report.map(|file| Recording {
        about: About {
            settings: told(args, &tuning),
            service_inside: matches!(to, Place::Dev { .. }),
            ..About::new(&named, &args.sending, &tuning)
        },
        file: Some(file),
    });
    let source = match &recording {
        Some(recording) => Arc::new(Timed::new(source, Arc::clone(&recording.about.reading_ns))) as _,
        None => source,
    };
    let job = Job { source, sink: Arc::new(sink(client, &container, attributes, args, &from)), tuning, prompt, earlier };
    let exit = job::run(job::Run { work: job::moving(job), named, stats, recording }, context).await?;
    remote.close().await;
    Ok(exit)
}

/// The file of `--report`, if it was given.
fn report(args: &CopyArgs) -> Result<Option<ReportFile>> {
    match &args.sending.report {
        Some(_) if args.dry_run => Err(usage("--report needs a run, and --dry-run does not make one", "leave out one of them")),
        Some(path) => ReportFile::at(path).map(Some),
        None => Ok(None),
    }
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// Gives a place another SAS.
fn with_sas(place: &mut Place, sas: Token) -> Result<()> {
    match place {
        Place::Remote(location) => location.sas = Some(sas),
        _ => return Err(usage("--destination-sas: the destination is not one that takes a SAS", "leave it out")),
    }
    Ok(())
}

/// Source and destination. One place alone is the destination of what is piped in, if `--from-to` says so, as with AzCopy.
fn places(args: &CopyArgs, inputs: &Inputs) -> Result<(Place, Place)> {
    match &args.destination {
        Some(destination) => Ok((place(&args.source, inputs)?, place(destination, inputs)?)),
        None if args.from_to.as_deref().is_some_and(|pair| pair.eq_ignore_ascii_case("PipeBlob")) => {
            Ok((Place::Stdio, place(&args.source, inputs)?))
        }
        None => Err(usage(
            "the destination is missing",
            "write 'blobjet copy SOURCE DESTINATION'; to upload standard input, 'blobjet copy - DESTINATION'",
        )),
    }
}

fn side(place: &Place) -> Side {
    match place {
        Place::Local(_) => Side::Local,
        Place::Stdio => Side::Pipe,
        Place::Remote(_) | Place::Dev { .. } => Side::Blob,
    }
}

fn opening(args: &CopyArgs, target: &Location) -> Result<Opening> {
    Ok(Opening {
        recursive: args.recursive,
        as_subdir: args.as_subdir,
        follow_symlinks: args.follow_symlinks,
        read: match args.read {
            ReadArg::Auto => ReadMode::Auto,
            ReadArg::Mmap => ReadMode::Mmap,
            ReadArg::Pread => ReadMode::Pread,
        },
        list_of_files: args.selection.list(),
        selection: Arc::new(args.selection.selection()?),
        dest: target.blob.clone(),
    })
}

fn config(args: &CopyArgs, stats: &Arc<Stats>, context: &Context) -> Config {
    Config {
        stats: Arc::clone(stats),
        cap_bits_per_s: cap_bits_per_s(&args.sending),
        allow_http: context.shared.allow_http,
        check: args.sending.check.into(),
        ..Config::default()
    }
}

/// A client that is never asked to send anything: a dry run asks its sink about names and limits.
fn client_for_names(target: &Location, args: &CopyArgs, context: &Context) -> Result<Client> {
    let credential = choose(target, &context.inputs)?;
    Client::new(target, credential, config(args, &Arc::default(), context))
}

fn sink(client: Client, container: &str, attributes: Attributes, args: &CopyArgs, from: &Place) -> BlobSink {
    // A single file may land under a name that does not tell its type.
    let types = match from {
        _ if args.no_guess_mime_type => ContentTypes::Service,
        Place::Local(path) if Path::new(path).is_file() => ContentTypes::ByName { otherwise: mime::guess(path) },
        _ => ContentTypes::ByName { otherwise: mime::DEFAULT },
    };
    BlobSink::new(client, container, attributes, types)
}

/// Who is asked under `--overwrite prompt`.
fn prompt(args: &CopyArgs, from: &Place, context: &Context) -> Result<Option<Prompt>> {
    if args.overwrite != OverwriteArg::Prompt || args.dry_run {
        return Ok(None);
    }
    let reads_stdin = *from == Place::Stdio || args.selection.list_of_files.as_deref() == Some("-");
    if reads_stdin || context.out.is_json() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(usage(
            "--overwrite prompt: there is nobody to ask",
            "run it on a terminal, or use true, false or ifSourceNewer",
        ));
    }
    let out = Arc::clone(&context.out);
    Ok(Some(Arc::new(move |name: &str| {
        loop {
            match out.ask(&format!("{name} exists. Replace it? (y)es, (n)o, (a)ll, n(o)ne: ")).as_deref() {
                Some("y" | "yes") => return Answer::Yes,
                Some("n" | "no") => return Answer::No,
                Some("a" | "all") => return Answer::All,
                Some("o" | "none") | None => return Answer::None,
                Some(_) => {}
            }
        }
    })))
}
