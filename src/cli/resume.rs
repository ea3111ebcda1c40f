//! `blobjet jobs resume`: the same job again, under its id. What it finished is left alone as long as it has not changed, what
//! failed is tried again, and the credential is taken anew.

use super::context::Context;
use super::entry::Origin;
use super::exit::Exit;
use super::jobs::{journal, status};
use super::kept::Kept;
use super::options::{Command, Shared};
use super::{copy, parse, remove, set_properties, undelete};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::sas::Token;
use crate::transfer::journal::{Job, State};
use clap::Args;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  blobjet jobs resume 0b9d                                 with the key or connection string in the environment
  blobjet jobs resume 0b9d --destination-sas 'SAS'         with a new SAS, if it had one
  blobjet --output-type json jobs resume 0b9d              options of every command go with any";

/// Arguments of `jobs resume`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// Job id, or how it begins
    pub(crate) id: String,
    /// SAS for the destination; without one, the credential is looked for in the environment
    #[arg(long, value_name = "SAS", hide_short_help = false)]
    pub(crate) destination_sas: Option<String>,
    /// SAS for the source
    #[arg(long, value_name = "SAS")]
    pub(crate) source_sas: Option<String>,
}

/// Runs the job to its end.
///
/// # Errors
/// `SourceNotFound` if there is no such job, `Conflict` if it is running, `Usage` if it cannot be resumed, and those of `copy`.
pub(crate) async fn run(args: &ResumeArgs, context: &Context) -> Result<Exit> {
    let store = journal(&args.id, context)?;
    let job = store.find(&args.id)?;
    let lease = store.lease(&job, "resume")?;
    // Read again now that nobody else can work on it: another process may have ended it meanwhile.
    let job = store.find(&job.id)?;
    if is_finished(&job) {
        let message = format!("job {} is finished ({}): there is nothing left to do", job.id, status(&job));
        context.out.warn(&message);
        return Ok(Exit::Done);
    }
    let kept = Kept::of_json(&job.command)?;
    if let Some(reason) = &kept.never {
        return Err(Error::new(Kind::Usage, format!("cannot resume job {}: {reason}", job.id))
            .with_advice("run its command again; blocks of large files that are there already are not sent again"));
    }
    let token = |text: &Option<String>, flag| text.as_deref().map(Token::parse).transpose().map_err(|e| e.context(flag));
    let source_sas = token(&args.source_sas, "--source-sas")?;
    let destination_sas = token(&args.destination_sas, "--destination-sas")?;
    go_to(&kept)?;
    let parsed = parse(&kept.command_line()).map_err(|e| {
        let why = e.to_string();
        Error::new(Kind::Unsupported, format!("cannot run the command of job {} again", job.id))
            .with_source(why.lines().next().unwrap_or_default().to_owned())
    })?;
    let shared = Shared { allow_http: context.shared.allow_http || parsed.cli.shared.allow_http, ..context.shared.clone() };
    let context = Context {
        out: Arc::clone(&context.out),
        shared,
        inputs: context.inputs.clone(),
        signals: context.signals.clone(),
        state: context.state.clone(),
    };
    let resumed = Box::new(store.resume(&job, lease)?);
    drop(store);
    let origin = Some(Origin::Again { resumed, kept, source_sas, destination_sas });
    match parsed.cli.command {
        Command::Copy(args) => copy::run(&args, origin, &context).await,
        Command::Remove(args) => remove::run(&args, origin, &context).await,
        Command::SetProperties(args) => set_properties::run(&args, origin, &context).await,
        Command::Undelete(args) => undelete::run(&args, origin, &context).await,
        _ => Err(Error::new(Kind::Unsupported, format!("job {} is of a kind that cannot be resumed", job.id))),
    }
}

/// Whether every object of it is where it should be, or was left out on purpose.
fn is_finished(job: &Job) -> bool {
    matches!(&job.state, State::Ended(status) if status.starts_with("Completed")) && job.failed == 0
}

/// Relative paths start where they did the first time.
fn go_to(kept: &Kept) -> Result<()> {
    let Some(folder) = &kept.folder else { return Ok(()) };
    std::env::set_current_dir(folder)
        .map_err(|e| Error::new(Kind::SourceNotFound, format!("cannot go to {folder}, where the job was started")).with_source(e))
}
