//! The command line: parses it, sets up what every command shares, runs the command, and turns its end into an exit code.
//!
//! A command is a file here and a word in [`options::Command`]. Commands return errors; this file prints them, in one place.
//! Nothing is contacted, written or asked that the command does not need.

mod access;
mod attribute_args;
mod azcopy;
mod bench;
mod cat;
mod changing;
mod check;
mod completion;
mod context;
mod copy;
mod copy_args;
mod copy_remote;
mod copy_remote_args;
mod deletes;
mod demo;
mod digest;
mod direction;
mod doing;
mod download;
mod download_args;
mod dry_run;
mod du;
mod entry;
mod examples;
mod exit;
mod explain;
mod explain_path;
mod hash;
mod hints;
mod job;
mod jobs;
mod json;
mod json_lists;
mod kept;
mod limits;
mod list;
mod list_properties;
mod listing;
mod machine;
mod make;
mod man;
mod meter;
mod options;
mod output;
mod remote;
mod remove;
mod render;
mod report;
mod resume;
mod sas;
mod selection_args;
mod sending_args;
mod serve;
mod set_properties;
mod settings;
mod standard_output;
mod stat;
mod summary;
mod trace;
mod undelete;
mod upload;
mod verdict;

use crate::error::{Error, Kind, Result};
use crate::rest::auth::Inputs;
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use context::{Context, Signals};
use entry::Origin;
use exit::Exit;
use json::Event;
use kept::Kept;
use options::{Cli, Command, Format, Level};
use output::Output;
use render::{Report, printable};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command line of this process: never panics on what it is given, and prints why where it fails.
pub fn main() -> ExitCode {
    limits::leave_no_core();
    std::panic::set_hook(Box::new(|panic| tell_panic(&panic.to_string())));
    let args: Vec<OsString> = std::env::args_os().collect();
    match std::panic::catch_unwind(|| run(&args)) {
        Ok(exit) => exit.into(),
        // The panic's own message is on stderr by now.
        Err(_) => {
            let out = Output::new(if options::wants_json(&args) { Format::Json } else { Format::Text }, Level::Default);
            let error =
                Error::new(Kind::Local, "blobjet has a bug and stopped").with_advice("please report it with what is above");
            out.error(Report::of(&error), Exit::SomeFailed);
            Exit::SomeFailed.into()
        }
    }
}

/// What a panic says, without signatures: what broke may have held one.
fn tell_panic(text: &str) {
    use std::io::Write;
    let lines = text.lines().map(|line| printable(&crate::secret::SafeUrl::new(line).to_string()).into_owned());
    let _ = writeln!(std::io::stderr().lock(), "{}", lines.collect::<Vec<_>>().join("\n"));
}

fn run(args: &[OsString]) -> Exit {
    let parsed = match parse(args) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error, options::wants_json(args)),
    };
    let shared = &parsed.cli.shared;
    let out = Arc::new(Output::new(shared.output_type, shared.output_level));
    trace::start(shared.log_level, &out);
    for flag in parsed.taken {
        tracing::debug!("--{flag} is taken for AzCopy's sake; nothing has to be done for it");
    }
    let runtime = match limits::runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            out.error(Report::of(&error), Exit::SomeFailed);
            return Exit::SomeFailed;
        }
    };
    let result = runtime.block_on(command(parsed.cli, parsed.kept, Arc::clone(&out)));
    // Not waited for: a thread that reads standard input may never come back.
    runtime.shutdown_background();
    let exit = result.unwrap_or_else(|error| {
        let exit = Exit::of(&error);
        out.error(Report::of(&error), exit);
        exit
    });
    out.lost(exit)
}

async fn command(cli: Cli, kept: Option<Kept>, out: Arc<Output>) -> Result<Exit> {
    let signals = Signals::listen().map_err(|e| Error::new(Kind::Local, "cannot listen for signals").with_source(e))?;
    let inputs = Inputs::from_env(&|name| std::env::var(name).ok());
    let state = context::state_folder(&|name| std::env::var_os(name));
    let context = Context { out, shared: cli.shared, inputs, signals, state };
    match cli.command {
        // These end by themselves what they have begun.
        Command::Copy(args) => copy::run(&args, kept.map(Origin::New), &context).await,
        Command::Jobs(args) => jobs::run(&args.verb, &context).await,
        Command::Demo(args) => demo::run(&args, &context).await,
        Command::Bench(args) => bench::run(&args, &context).await,
        Command::Serve(args) => serve::run(&args, &context).await,
        Command::Sas(args) => sas::run(&args, &context),
        Command::Completion(args) => Ok(completion::run(&args, &context)),
        Command::Explain(args) => explain::run(&args, &context),
        Command::Man(args) => man::run(&args, &context),
        Command::List(args) => until_unheard(&context, list::run(&args, &context)).await,
        Command::Cat(args) => until_signal(&context, cat::run(&args, &context)).await,
        Command::Check(args) => until_signal(&context, check::run(&args, &context)).await,
        Command::Du(args) => until_unheard(&context, du::run(&args, &context)).await,
        Command::Access(args) => until_signal(&context, access::run(&args, &context)).await,
        Command::Stat(args) => until_signal(&context, stat::run(&args, &context)).await,
        Command::Hash(args) => until_unheard(&context, hash::run(&args, &context)).await,
        Command::Make(args) => until_signal(&context, make::run(&args, &context)).await,
        Command::Remove(args) => remove::run(&args, kept.map(Origin::New), &context).await,
        Command::SetProperties(args) => set_properties::run(&args, kept.map(Origin::New), &context).await,
        Command::Undelete(args) => undelete::run(&args, kept.map(Origin::New), &context).await,
    }
}

async fn until_signal(context: &Context, work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    context.signals.unless_told(work).await.unwrap_or_else(|which| Ok(which.into()))
}

/// For what is only looked at: once nobody reads it there is nothing left to do.
async fn until_unheard(context: &Context, work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let work = async {
        tokio::select! {
            done = work => done,
            () = context.out.unheard() => Ok(Exit::Done),
        }
    };
    until_signal(context, work).await
}

/// A command line, understood.
struct Parsed {
    cli: Cli,
    /// Flags of AzCopy in it that need nothing done.
    taken: Vec<&'static str>,
    /// Of a command that makes a job: what the journal keeps of it.
    kept: Option<Kept>,
}

fn parse(args: &[OsString]) -> Result<Parsed, clap::Error> {
    let matches = Cli::definition()
        .mut_subcommand("copy", azcopy::add_taken)
        .mut_subcommand("bench", azcopy::add_taken_by_bench)
        .mut_subcommand("remove", azcopy::add_taken_by_changes)
        .mut_subcommand("set-properties", azcopy::add_taken_by_changes)
        .try_get_matches_from(args)?;
    let taken = matches.subcommand().map(|(_, given)| azcopy::given(given)).unwrap_or_default();
    let makes_job = |name: &str| ["copy", "remove", "set-properties", "undelete"].contains(&name);
    let kept = matches.subcommand().filter(|(name, _)| makes_job(name)).map(|(name, given)| Kept::of(name, given));
    Ok(Parsed { cli: Cli::from_arg_matches(&matches)?, taken, kept })
}

/// Prints help where it was asked for, and otherwise what is wrong with the command line.
fn refuse(error: &clap::Error, json: bool) -> Exit {
    use std::io::Write;
    let out = Output::new(if json { Format::Json } else { Format::Text }, Level::Default);
    let asked_for = match error.kind() {
        ErrorKind::DisplayHelp => Some("help"),
        ErrorKind::DisplayVersion => Some("version"),
        _ => None,
    };
    if let Some(name) = asked_for {
        let text = error.render().to_string();
        out.data(|| text.trim_end().to_owned(), || Event::Text { name: name.to_owned(), text: text.clone() });
        return out.lost(Exit::Done);
    }
    let whole = crate::secret::SafeUrl::new(&error.render().to_string()).to_string();
    let refused =
        azcopy_flag(error).and_then(|flag| azcopy::refusal(&flag).map(|reason| format!("--{flag} is refused: {reason}")));
    if let Some(message) = refused {
        out.error(Report::usage(&message, "docs/from-azcopy.md lists AzCopy's flags and what becomes of them"), Exit::Usage);
    } else if json {
        let first = whole.split("\n\n").next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first).split_whitespace().collect::<Vec<_>>().join(" ");
        out.error(Report::usage(&message, "'blobjet COMMAND --help' shows what can be said"), Exit::Usage);
    } else {
        let lines: Vec<_> = whole.trim_end().lines().map(printable).collect();
        let _ = writeln!(std::io::stderr().lock(), "{}", lines.join("\n"));
    }
    Exit::Usage
}

/// The name of the flag that was not known, without dashes.
fn azcopy_flag(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)?) {
        (ErrorKind::UnknownArgument, ContextValue::String(flag)) => {
            Some(flag.trim_start_matches('-').split('=').next()?.to_owned())
        }
        _ => None,
    }
}
