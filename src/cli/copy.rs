//! `blobjet copy`: which way it goes, and what all ways have in common.

use super::context::Context;
use super::copy_args::{CopyArgs, OverwriteArg, ReadArg};
use super::direction::{Direction, direction, refuse_misplaced};
use super::entry::Origin;
use super::exit::Exit;
use super::remote::place;
use super::report::Recording;
use super::report::file::ReportFile;
use super::report::recorder;
use super::settings::{cap_bits_per_s, told};
use super::{copy_remote, download, job, upload};
use crate::endpoint::Source;
use crate::endpoint::file::ReadMode;
use crate::endpoint::open::{Opening, Place};
use crate::endpoint::timed::Timed;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Inputs;
use crate::rest::auth::sas::Token;
use crate::rest::client::Config;
use crate::rest::stats::Stats;
use crate::transfer::journal::Finished;
use crate::transfer::overwrite::{Answer, Prompt};
use crate::transfer::plan::Tuning;
use std::io::IsTerminal;
use std::sync::Arc;

/// Where a copy comes from.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// A command line, or the journal.
    pub(crate) origin: Option<Origin>,
    /// What an earlier run of it finished.
    pub(crate) earlier: Option<Finished>,
}

/// Runs the command, for a job that comes from there: without an origin it is not written down.
///
/// # Errors
/// What keeps the job from starting; how it went is the exit code.
pub(crate) async fn run(args: &CopyArgs, mut origin: Option<Origin>, context: &Context) -> Result<Exit> {
    let (mut from, mut to) = places(args, &context.inputs)?;
    let mut earlier = None;
    if let Some(Origin::Again { resumed, source_sas, destination_sas, .. }) = &mut origin {
        earlier = Some(std::mem::take(&mut resumed.finished));
        with_sas(&mut from, source_sas.take(), "--source-sas: the source")?;
        with_sas(&mut to, destination_sas.take(), "--destination-sas: the destination")?;
    }
    let direction = direction(&from, &to, args.from_to.as_deref())?;
    refuse_misplaced(args, direction)?;
    let about = About { origin, earlier };
    match direction {
        Direction::Upload => upload::run(args, (from, to), about, context).await,
        Direction::Download => download::run(args, (from, to), about, context).await,
        Direction::Between => copy_remote::run(args, (from, to), about, context).await,
    }
}

/// The file of `--report`, if it was given.
pub(crate) fn report(args: &CopyArgs) -> Result<Option<ReportFile>> {
    match &args.sending.report {
        Some(_) if args.dry_run => Err(usage("--report needs a run, and --dry-run does not make one", "leave out one of them")),
        Some(path) => ReportFile::at(path).map(Some),
        None => Ok(None),
    }
}

/// What is recorded of the job for the report, if there is to be one.
pub(crate) fn recording(
    args: &CopyArgs,
    report: Option<ReportFile>,
    named: &job::Named,
    tuning: &Tuning,
    service_inside: bool,
) -> Option<Recording> {
    report.map(|file| Recording {
        about: recorder::About {
            settings: told(args, tuning),
            service_inside,
            ..recorder::About::new(named, &args.sending, tuning)
        },
        file: Some(file),
    })
}

/// The source, with the time that reading it takes measured for the report.
pub(crate) fn timed(source: Arc<dyn Source>, recording: Option<&Recording>) -> Arc<dyn Source> {
    match recording {
        Some(recording) => Arc::new(Timed::new(source, Arc::clone(&recording.about.reading_ns))),
        None => source,
    }
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// Gives a place another SAS.
fn with_sas(place: &mut Place, sas: Option<Token>, what: &str) -> Result<()> {
    match (place, sas) {
        (_, None) => Ok(()),
        (Place::Remote(location), Some(sas)) => {
            location.sas = Some(sas);
            Ok(())
        }
        _ => Err(usage(format!("{what} is not one that takes a SAS"), "leave it out")),
    }
}

/// Source and destination. One place alone is what is piped to or from, if `--from-to` says so, as with AzCopy.
fn places(args: &CopyArgs, inputs: &Inputs) -> Result<(Place, Place)> {
    match &args.destination {
        Some(destination) => Ok((place(&args.source, inputs)?, place(destination, inputs)?)),
        None if args.from_to.as_deref().is_some_and(|pair| pair.eq_ignore_ascii_case("BlobPipe")) => {
            Ok((place(&args.source, inputs)?, Place::Stdio))
        }
        None if args.from_to.as_deref().is_some_and(|pair| pair.eq_ignore_ascii_case("PipeBlob")) => {
            Ok((Place::Stdio, place(&args.source, inputs)?))
        }
        None => Err(usage(
            "the destination is missing",
            "write 'blobjet copy SOURCE DESTINATION'; to upload standard input, 'blobjet copy - DESTINATION'",
        )),
    }
}

/// How a source is opened; where it lands is for the way to say.
///
/// # Errors
/// `Usage` for filters that cannot be understood.
pub(crate) fn opening(args: &CopyArgs) -> Result<Opening> {
    Ok(Opening {
        recursive: args.recursive,
        as_subdir: args.as_subdir,
        follow_symlinks: args.follow_symlinks,
        ordered: false,
        read: match args.read {
            ReadArg::Auto => ReadMode::Auto,
            ReadArg::Mmap => ReadMode::Mmap,
            ReadArg::Pread => ReadMode::Pread,
        },
        list_of_files: args.selection.list(),
        selection: Arc::new(args.selection.selection()?),
        stored: args.download.stored(),
        dest: None,
    })
}

/// How a client behaves.
pub(crate) fn config(args: &CopyArgs, stats: &Arc<Stats>, context: &Context) -> Config {
    Config {
        stats: Arc::clone(stats),
        cap_bits_per_s: cap_bits_per_s(&args.sending),
        allow_http: context.shared.allow_http,
        check: args.sending.check.into(),
        ..Config::default()
    }
}

/// Who is asked under `--overwrite prompt`.
pub(crate) fn prompt(args: &CopyArgs, from: &Place, context: &Context) -> Result<Option<Prompt>> {
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
