//! `blobjet copy` from this machine to blobs: from arguments to a job.
//!
//! Everything that can be known without asking the service is checked first: the places, the options, the source, and what can
//! be read from a SAS. Only then is the embedded service started, a container made, and the job run.

use super::context::Context;
use super::copy::{About, config, opening, prompt, recording, report, timed};
use super::copy_args::CopyArgs;
use super::doing::{Doing, Way};
use super::exit::Exit;
use super::remote::{Remote, named, shown};
use super::settings::{said, tuning};
use super::{dry_run, explain_path, job, limits};
use crate::attributes::Attributes;
use crate::endpoint::blob::{BlobSink, ContentTypes};
use crate::endpoint::mime;
use crate::endpoint::open::{Opening, Place, source};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::{Need, choose};
use crate::rest::client::Client;
use crate::rest::container::Container;
use crate::rest::location::Location;
use crate::rest::stats::Stats;
use crate::transfer::engine::Job;
use crate::transfer::plan::{OnChange, Tuning};
use std::path::Path;
use std::sync::Arc;

/// Runs an upload.
///
/// # Errors
/// What keeps the job from starting; how it went is the exit code.
pub(crate) async fn run(args: &CopyArgs, (from, to): (Place, Place), about: About, context: &Context) -> Result<Exit> {
    let target = named(&to, &context.inputs)?;
    let container = target.container.clone().ok_or_else(|| {
        usage(format!("the destination {} names no container", shown(&target, None)), "add CONTAINER to it, before any ?")
    })?;
    let mut tuning =
        Tuning { on_change: args.on_change.map_or(OnChange::Fail, Into::into), ..tuning(&args.sending, args.overwrite.into())? };
    if let Some(note) = limits::fit(&mut tuning, said(&args.sending), limits::address_space()) {
        context.out.note(&note);
    }
    let attributes = args.attributes.attributes()?;
    let prompt = prompt(args, &from, context)?;
    let report = report(args)?;
    let opening = Opening { dest: target.blob.clone(), ..opening(args)? };
    let source = source(&from, &opening)?;
    if !args.explain.is_empty() {
        let Place::Local(arg) = &from else {
            return Err(usage("--explain: the source has no paths", "leave it out, or name files as the source"));
        };
        let lands = |name: &str| shown(&target, Some(name));
        return explain_path::run(arg, &opening, &args.explain, &lands, context);
    }
    let need = if attributes.tags.is_empty() { Need::WRITE } else { Need::WRITE_TAGGED };
    if args.dry_run {
        let client = client_for_names(&target, args, context)?;
        client.check_need(need)?;
        let sink = sink(client, &container, attributes, args, &from);
        let lands = |name: &str| shown(&target, Some(name));
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
        doing: Doing::Moving { command: "copy", way: Way::Up },
        source: source.describe(),
        destination: remote.shown(target.blob.as_deref()),
        error_on_no_transfer: args.error_on_no_transfer,
        keep_jobs: args.keep_jobs,
        origin: about.origin,
        told_when_stopped: true,
    };
    let recording = recording(args, report, &named, &tuning, matches!(to, Place::Dev { .. }));
    let source = timed(source, recording.as_ref());
    let job = Job {
        source,
        sink: Arc::new(sink(client, &container, attributes, args, &from)),
        tuning,
        prompt,
        earlier: about.earlier.map(Arc::new),
    };
    let exit = job::run(job::Run { work: job::moving(job), named, stats, recording }, context).await?;
    remote.close().await;
    Ok(exit)
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
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
