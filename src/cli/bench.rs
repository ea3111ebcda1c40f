//! `blobjet bench`: uploads made-up data and says what limited it. AzCopy's command of that name, with its flags.
//!
//! It is `copy` with another source: the same engine, the same options, the same summary. What it writes goes under a folder nobody
//! else has, and only names made up here are ever deleted.

use super::context::Context;
use super::deletes::delete_all;
use super::doing::{Doing, Way};
use super::entry::Origin;
use super::exit::Exit;
use super::job;
use super::options::Switch;
use super::remote::{Remote, named, place, shown};
use super::render::Report;
use super::report::Recording;
use super::report::file::ReportFile;
use super::report::record::Setting;
use super::report::recorder::About;
use super::sending_args::SendingArgs;
use super::settings::{cap_bits_per_s, setting, told_of_sending, tuning};
use crate::attributes::{Attributes, Replace};
use crate::chunks::Chunks;
use crate::endpoint::blob::{BlobSink, ContentTypes};
use crate::endpoint::made_up::{MadeUp, Shape};
use crate::endpoint::open::Place;
use crate::endpoint::{Sink as _, Source as _};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::blob::{Blob, DeleteSnapshots};
use crate::rest::client::{Client, Config};
use crate::rest::container::Container;
use crate::rest::stats::Stats;
use crate::transfer::engine::Job;
use crate::transfer::plan::{Overwrite, plan};
use crate::units::ByteCount;
use clap::{Args, ValueEnum};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  blobjet bench                                          how fast is this machine, without a network? to an embedded service
  blobjet bench 'https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS'              100 files of 250 MiB; the SAS needs cwd
  blobjet bench az://ACCOUNT/CONTAINER --file-count 50000 --size-per-file 8K       many small files
  blobjet bench az://ACCOUNT/CONTAINER --report run.html                           and a page that shows how it went

The data are made up in memory, go under CONTAINER/blobjet-bench-JOB/, and are deleted in the end. A dev:// container is on this
machine's disk. The verdict at the end says what limited it and what to change: docs/report.md.";

/// The container of the embedded service.
const EMBEDDED: &str = "bench";

/// Names deleted before a signal is looked for.
const AT_ONCE: usize = 1000;

/// Names that could not be deleted and are told.
const NAMES_SHOWN: usize = 5;

/// Arguments of `bench`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// Container, or folder in one, to write to; without it an embedded service that throws the bytes away
    #[arg(value_name = "DEST")]
    pub(crate) destination: Option<String>,
    /// upload
    #[arg(long, value_enum, ignore_case = true, default_value_t = ModeArg::Upload, hide_possible_values = true, hide_default_value = true, value_name = "MODE")]
    pub(crate) mode: ModeArg,
    /// Files to make up
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) file_count: u64,
    /// Size of each, e.g. 12K, 250M, 2G
    #[arg(long, value_name = "SIZE", default_value = "250M", allow_negative_numbers = true)]
    pub(crate) size_per_file: ByteCount,
    /// Folders to divide them among
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) number_of_folders: u64,
    /// Delete the data in the end (default true)
    #[arg(long, switch = true)]
    pub(crate) delete_test_data: bool,
    #[command(flatten)]
    pub(crate) sending: SendingArgs,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Upload,
    Download,
}

/// Where the data go, and what is left of them.
struct Target {
    remote: Remote,
    client: Client,
    container: String,
    source: Arc<MadeUp>,
    shape: Shape,
    /// Whether a file of this size goes in blocks.
    in_blocks: bool,
}

/// Runs the command.
///
/// # Errors
/// What keeps the job from starting; how it went is the exit code.
pub(crate) async fn run(args: &BenchArgs, context: &Context) -> Result<Exit> {
    if args.mode == ModeArg::Download {
        return Err(usage("--mode download: downloads are not offered yet", "leave it out to measure uploads"));
    }
    let tuning = tuning(&args.sending, Overwrite::True)?;
    let file = args.sending.report.as_deref().map(ReportFile::at).transpose()?;
    let to = args.destination.as_deref().map(|destination| destination_of(destination, context)).transpose()?;
    let embedded = to.is_none();
    let remote = match &to {
        Some(to) => Remote::open(to, context).await?,
        None => Remote::discarding(EMBEDDED).await?,
    };
    remote.check(Need::WRITE)?;
    let deletes = args.delete_test_data && !embedded;
    if deletes {
        remote
            .check(Need::DELETE)
            .map_err(|e| e.with_advice("use a SAS that may delete (d), or add --delete-test-data=false"))?;
    }
    let id = job::new_id()?;
    let folder = remote.location.blob.as_deref().map(|path| format!("{}/", path.trim_end_matches('/'))).unwrap_or_default();
    let shape = Shape {
        count: args.file_count,
        size: args.size_per_file.0,
        folders: args.number_of_folders,
        under: format!("{folder}blobjet-bench-{id}/"),
    };
    let source = Arc::new(MadeUp::new(shape.clone())?);
    let stats = Arc::<Stats>::default();
    let client = remote.client_with(config(args, &stats, context))?;
    let container = remote.location.container.clone().unwrap_or_default();
    if embedded || matches!(to, Some(Place::Dev { .. })) {
        Container::new(&client, &container).create().await?;
    }
    let sink = BlobSink::new(client.clone(), &container, Attributes::default(), ContentTypes::Service);
    let plan = plan(shape.size, &tuning, &sink.limits()).map_err(|error| {
        let advice = error.advice().unwrap_or("lower --size-per-file").to_owned();
        Error::new(Kind::Usage, format!("cannot write files of {}", args.size_per_file)).with_advice(advice).with_source(error)
    })?;
    sink.check_name(&shape.name(shape.count - 1))?;
    let named = job::Named {
        doing: Doing::Moving { command: "bench", way: Way::Up },
        source: source.describe(),
        destination: if embedded {
            "an embedded service that throws the bytes away".to_owned()
        } else {
            remote.shown(Some(&shape.under))
        },
        error_on_no_transfer: false,
        keep_jobs: 0,
        origin: Some(Origin::Unkept(id)),
        // What becomes of the data is told where they are deleted.
        told_when_stopped: false,
    };
    let recording = Recording {
        about: About {
            settings: settings(args, &tuning),
            service_inside: embedded || matches!(to, Some(Place::Dev { .. })),
            ..About::new(&named, &args.sending, &tuning)
        },
        file,
    };
    let job = Job { source: Arc::clone(&source) as _, sink: Arc::new(sink), tuning, prompt: None, earlier: None };
    let mut ended = job::drive(job::Run { work: job::moving(job), named, stats, recording: Some(recording) }, context).await?;
    let target = Target { remote, client, container, source, shape, in_blocks: plan.requests() > 1 };
    if deletes && !target.clean(context).await {
        ended.left_something();
    }
    let exit = ended.tell(&context.out);
    target.remote.close().await;
    Ok(exit)
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

fn destination_of(argument: &str, context: &Context) -> Result<Place> {
    let to = place(argument, &context.inputs)?;
    if matches!(to, Place::Local(_) | Place::Stdio | Place::Null) {
        return Err(usage(
            "the destination is no container or folder in one",
            "write https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS, az://ACCOUNT/CONTAINER or dev://CONTAINER, or leave it out",
        ));
    }
    let location = named(&to, &context.inputs)?;
    if location.container.is_none() {
        let place = shown(&location, None);
        return Err(usage(format!("the destination {place} names no container"), "add CONTAINER to it, before any ?"));
    }
    Ok(to)
}

fn config(args: &BenchArgs, stats: &Arc<Stats>, context: &Context) -> Config {
    Config {
        stats: Arc::clone(stats),
        cap_bits_per_s: cap_bits_per_s(&args.sending),
        allow_http: context.shared.allow_http,
        check: args.sending.check.into(),
        ..Config::default()
    }
}

fn settings(args: &BenchArgs, tuning: &crate::transfer::plan::Tuning) -> Vec<Setting> {
    let mut all = told_of_sending(&args.sending, tuning);
    all.extend([
        setting("file-count", args.file_count.to_string(), args.file_count != 100),
        setting("size-per-file", args.size_per_file.to_string(), args.size_per_file != ByteCount(250 << 20)),
        setting("number-of-folders", args.number_of_folders.to_string(), args.number_of_folders != 0),
        setting("delete-test-data", args.delete_test_data.to_string(), !args.delete_test_data),
    ]);
    all
}

impl Target {
    /// Deletes what can have been written. Says what could not be, and whether all of it is gone. A signal ends it: whoever sends one
    /// does not want to wait.
    async fn clean(&self, context: &Context) -> bool {
        let names: Vec<String> = (0..self.source.opened().min(self.shape.count)).map(|index| self.shape.name(index)).collect();
        if names.is_empty() {
            return true;
        }
        context.out.note(&format!("deleting the test data: {} files", names.len()));
        let seen = context.signals.seen();
        let mut left: Vec<(String, Option<Error>)> = Vec::new();
        let mut rest = names.chunks(AT_ONCE);
        for some in rest.by_ref() {
            let ended = tokio::select! {
                biased;
                _ = context.signals.reached(seen + 1) => true,
                failed = self.delete(some) => {
                    let hopeless = failed.iter().any(|(_, error)| error.ends_job());
                    left.extend(failed.into_iter().map(|(name, error)| (name, Some(error))));
                    hopeless
                }
            };
            if ended {
                break;
            }
        }
        left.extend(rest.flatten().map(|name| (name.clone(), None)));
        self.tell_left(&left, context);
        left.is_empty()
    }

    /// Deletes these; gives those that are still there, with the reason.
    async fn delete(&self, names: &[String]) -> Vec<(String, Error)> {
        let deleted = delete_all(&self.client, &self.container, names.to_vec(), DeleteSnapshots::Refuse).await;
        let mut failed = Vec::new();
        for (name, result) in deleted {
            match result {
                Ok(true) => {}
                // Not there, but blocks of it may be: committing anything drops them. The service would do so after a week.
                Ok(false) if self.in_blocks => failed.extend(self.drop_blocks(&name).await.err().map(|error| (name, error))),
                Ok(false) => {}
                Err(error) => failed.push((name, error)),
            }
        }
        failed
    }

    async fn drop_blocks(&self, name: &str) -> Result<()> {
        let blob = Blob::new(&self.client, &self.container, name);
        blob.put_blob(&Chunks::default(), Chunks::default().crc64(), &Attributes::default(), Replace::Always).await?;
        blob.delete(DeleteSnapshots::Refuse).await.map(drop)
    }

    fn tell_left(&self, left: &[(String, Option<Error>)], context: &Context) {
        if left.is_empty() {
            return;
        }
        let reason = left
            .iter()
            .find_map(|(_, error)| error.as_ref())
            .map_or_else(|| "stopped by a signal".to_owned(), |error| Report::of(error).one_line());
        let names: Vec<String> = left.iter().take(NAMES_SHOWN).map(|(name, _)| self.remote.shown(Some(name))).collect();
        let more = if left.len() > names.len() { ", ..." } else { "" };
        context.out.warn(&format!(
            "{} files of the test may still be there: {reason}; 'blobjet remove URL --recursive' with {} deletes them ({}{more})",
            left.len(),
            self.remote.shown(Some(&self.shape.under)),
            names.join(", "),
        ));
    }
}
