//! What the commands that change blobs where they are have in common: which blobs are meant, the job around it, and the same
//! without doing it.

use super::context::Context;
use super::doing::{Changing, Doing};
use super::entry::Origin;
use super::exit::Exit;
use super::explain_path;
use super::job;
use super::json::Event;
use super::options::Switch;
use super::remote::{Remote, named, place};
use super::render::printable;
use super::selection_args::SelectionArgs;
use crate::endpoint::Task;
use crate::endpoint::blob_changes::Blobs;
use crate::endpoint::blob_listing::BlobListing;
use crate::endpoint::blob_pattern::BlobPattern;
use crate::endpoint::blob_subjects::{Listing, Stub, Subjects};
use crate::endpoint::change::{Change, Changed, Met, Subject};
use crate::endpoint::explain::Explanation;
use crate::endpoint::open::Place;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::client::{Client, Config};
use crate::rest::location::Location;
use crate::rest::stats::Stats;
use crate::transfer::sweep::{self, Sweep};
use crate::units::ByteCount;
use clap::Args;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Arguments of all of them.
#[derive(Debug, Clone, Args)]
pub(crate) struct ChangingArgs {
    /// Blob, folder (with --recursive) or pattern (in quotes): https://, az:// or dev:// URL
    pub(crate) url: String,
    /// Take folders with all that is under them
    #[arg(long, switch = false)]
    pub(crate) recursive: bool,
    /// Show what would be done, and do nothing
    #[arg(long, switch = false)]
    pub(crate) dry_run: bool,
    /// Requests in flight at a time, each for up to 256 blobs where the service takes batches
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=256), hide_default_value = true, hide_short_help = true)]
    pub(crate) concurrency: u16,
    /// Jobs that the journal keeps, this one included; 0 does not write this one down
    #[arg(long, value_name = "N", default_value_t = 100, hide_short_help = true)]
    pub(crate) keep_jobs: usize,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Say why this blob would be changed or left alone, and do nothing
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) explain: Vec<String>,
}

impl ChangingArgs {
    /// Whether more is said than where they are.
    pub(crate) fn selects(&self) -> bool {
        !self.selection.given().is_empty()
    }
}

/// What a command does to the blobs.
pub(crate) struct Doer<'a> {
    /// In words.
    pub(crate) words: Changing,
    /// Rights it needs.
    pub(crate) needs: &'a [Need],
    /// What a listing has to tell.
    pub(crate) include: &'static [&'static str],
    /// Whether blobs it is done with are not listed any more, so that a resumed job does not meet them again.
    pub(crate) vanish: bool,
    /// Whether the entry of a folder belongs to the folder.
    pub(crate) with_stub: bool,
    /// Makes it.
    pub(crate) change: &'a (dyn Fn(Blobs) -> Arc<dyn Change> + Sync),
}

/// A place and the blobs that are meant there.
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) location: Location,
    pub(crate) container: String,
}

/// The container and the name that a URL says.
///
/// # Errors
/// `Usage` for a URL that names no container.
pub(crate) fn target(args: &ChangingArgs, origin: &mut Option<Origin>, context: &Context) -> Result<Target> {
    let mut place = place(&args.url, &context.inputs)?;
    if let Some(Origin::Again { source_sas, destination_sas, .. }) = origin
        && let Some(sas) = source_sas.take().or_else(|| destination_sas.take())
    {
        match &mut place {
            Place::Remote(location) => location.sas = Some(sas),
            _ => return Err(usage("the place is not one that takes a SAS", "leave it out")),
        }
    }
    let location = named(&place, &context.inputs)?;
    let container = location.container.clone();
    let container = container.ok_or_else(|| usage("the URL names no container", "add CONTAINER to it, before any ?"))?;
    Ok(Target { place, location, container })
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// Runs the command as a job, or says what it would do.
///
/// # Errors
/// What keeps the job from starting; how it went is the exit code.
pub(crate) async fn run(
    args: &ChangingArgs,
    target: Target,
    origin: Option<Origin>,
    doer: Doer<'_>,
    context: &Context,
) -> Result<Exit> {
    let remote = Remote::open(&target.place, context).await?;
    doer.needs.iter().try_for_each(|need| remote.check(*need))?;
    let stats = Arc::<Stats>::default();
    let config = Config { stats: Arc::clone(&stats), allow_http: context.shared.allow_http, ..Config::default() };
    let client = remote.client_with(config)?;
    let subjects = subjects(args, &target, &remote, &client, &doer)?;
    if !matches!(subjects, Subjects::One { .. }) {
        remote.check(Need::LIST)?;
    }
    if !args.explain.is_empty() {
        let change = (doer.change)(Blobs { client, container: target.container.clone(), subjects });
        let exit = explain_path::of_change(&*change, &args.explain, context).await?;
        remote.close().await;
        return Ok(exit);
    }
    let mut doing = Changing { dry_run: args.dry_run, selects: args.selects(), ..doer.words };
    let mut earlier = None;
    let mut origin = origin.filter(|_| !args.dry_run);
    if let Some(Origin::Again { resumed, .. }) = &mut origin {
        let finished = std::mem::take(&mut resumed.finished);
        doing.gone_earlier = if doer.vanish { u64::try_from(finished.len()).unwrap_or(u64::MAX) } else { 0 };
        earlier = Some(Arc::new(finished));
    }
    let mut change = (doer.change)(Blobs { client, container: target.container.clone(), subjects });
    if args.dry_run {
        change = Arc::new(Rehearsal { change, doing, shown: Box::new(remote.shower()), out: Arc::clone(&context.out) });
    }
    let named = job::Named {
        doing: Doing::Changing(doing),
        source: remote.shown(target.location.blob.as_deref()),
        destination: String::new(),
        error_on_no_transfer: false,
        keep_jobs: if args.dry_run { 0 } else { args.keep_jobs },
        origin,
        told_when_stopped: true,
    };
    let lanes = NonZeroUsize::new(usize::from(args.concurrency)).unwrap_or(NonZeroUsize::MIN);
    let sweep = Sweep { change, lanes: if args.dry_run { NonZeroUsize::MIN } else { lanes }, earlier, vanish: doer.vanish };
    let work: job::Work = Box::new(move |progress, stop| Box::pin(sweep::run(sweep, progress, stop)));
    let exit = job::run(job::Run { work, named, stats, recording: None }, context).await?;
    remote.close().await;
    Ok(exit)
}

/// Which blobs are meant.
fn subjects(args: &ChangingArgs, target: &Target, remote: &Remote, client: &Client, doer: &Doer<'_>) -> Result<Subjects> {
    let selection = Arc::new(args.selection.selection()?);
    let listing = BlobListing::new(client.clone(), target.container.clone()).selecting(selection);
    let listing = listing.including(doer.include).recursive(args.recursive);
    let list = args.selection.list();
    let blob = target.location.blob.as_deref();
    let mut stub = None;
    let blobs = match blob {
        Some(pattern) if BlobPattern::is_pattern(pattern) && list.is_none() => listing.matching(BlobPattern::new(pattern)),
        Some(name) if args.recursive || args.selects() => {
            // A folder, not everything whose name begins alike: `logs` is not `logs-old`.
            let name = name.strip_suffix('/').unwrap_or(name);
            if doer.with_stub && !args.selects() && !name.is_empty() {
                stub = Some(Stub { client: client.clone(), container: target.container.clone(), name: name.to_owned() });
            }
            listing.under(format!("{name}/"))
        }
        Some(name) => return Ok(Subjects::One { name: name.to_owned(), shown: remote.shown(Some(name)) }),
        None if args.recursive || args.selects() => listing,
        None => {
            let what = format!("{} is a container", target.container);
            return Err(usage(what, "add --recursive for all blobs in it, or name a blob, a folder or a pattern"));
        }
    };
    Ok(Subjects::Of(Box::new(Listing { blobs, list, stub })))
}

/// A change that is only told of.
struct Rehearsal {
    change: Arc<dyn Change>,
    doing: Changing,
    /// Names as the user writes places.
    shown: Box<dyn Fn(&str) -> String + Send + Sync>,
    out: Arc<super::output::Output>,
}

impl Change for Rehearsal {
    fn list<'a>(&'a self, out: mpsc::Sender<Vec<Met>>) -> Task<'a, Result<()>> {
        self.change.list(out)
    }

    fn explain<'a>(&'a self, path: &'a str) -> Task<'a, Result<Explanation>> {
        self.change.explain(path)
    }

    fn at_a_time(&self) -> usize {
        1000
    }

    fn apply<'a>(&'a self, subjects: &'a [Subject]) -> Task<'a, Vec<Result<Changed>>> {
        let command = self.doing.command;
        self.out.data_lines(subjects.iter().map(|subject| {
            let url = (self.shown)(&subject.name);
            let size = subject.facts.len.map(|len| format!(" ({})", ByteCount(len))).unwrap_or_default();
            let text = format!("DRYRUN: {command} {}{size}", printable(&url));
            (text, Event::PlanChange { command, url, bytes: subject.facts.len })
        }));
        Box::pin(std::future::ready(subjects.iter().map(|_| Ok(Changed::Done(None))).collect()))
    }
}
