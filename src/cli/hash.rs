//! `blobjet hash`: MD5, CRC64 or SHA-256 of files and blobs, in lines that `md5sum -c` takes.
//!
//! Files are read; of a blob the MD5 that is stored with it is told, and with `--download` its content is read like a file's. Some
//! objects are hashed at a time and told in the order they are listed in, so that one slow one holds back what is said, and not
//! what is done.

use super::context::Context;
use super::digest::{Algorithm, Form, Hash, Hashing};
use super::exit::Exit;
use super::json::Event;
use super::options::Switch;
use super::remote::{Remote, place};
use super::render::{Report, printable};
use super::selection_args::SelectionArgs;
use crate::chunks::Chunks;
use crate::endpoint::blob_listing::no_container;
use crate::endpoint::blob_pattern::BlobPattern;
use crate::endpoint::blob_source::BlobSource;
use crate::endpoint::in_order::{Ahead, Coming, in_order};
use crate::endpoint::open::{self, Opening, Place};
use crate::endpoint::open_blobs::blobs;
use crate::endpoint::stdio::StdinSource;
use crate::endpoint::{Found, Item, Reader, Same, Source};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::range::MAX_SUMMED;
use clap::Args;
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

const EXAMPLES: &str = "\
Examples:
  blobjet hash big.bin                                  its MD5, as md5sum prints it
  blobjet hash ./dir --recursive --algorithm sha256
  blobjet hash dev://box --recursive                    the MD5s that are stored with blobs: nothing is read
  blobjet hash dev://box/big.bin --download --format base64   of what is really there, as Content-MD5 has it
  blobjet hash big.bin --algorithm md5,crc64 --output-type json

Names of blobs are told as a download with --as-subdir=false lands them, so that 'md5sum -c' in that folder checks it. With several
algorithms lines are those of 'md5sum --tag'.";

/// Arguments of `hash`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct HashArgs {
    /// Files, folders (with --recursive), -, or blobs: https://, az:// or dev:// URLs
    #[arg(required = true, value_name = "PATH|URL")]
    pub(crate) places: Vec<String>,
    /// md5, crc64 (that of x-ms-content-crc64), sha256; several with commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        ignore_case = true,
        default_value = "md5",
        hide_possible_values = true,
        value_name = "NAME"
    )]
    pub(crate) algorithm: Vec<Algorithm>,
    /// Read blobs and hash what they hold, instead of telling the MD5 stored with them
    #[arg(long, switch = false)]
    pub(crate) download: bool,
    /// hex, or base64 as headers have it
    #[arg(long, value_enum, ignore_case = true, default_value_t = Form::Hex, hide_possible_values = true, value_name = "FORM")]
    pub(crate) format: Form,
    /// Everything in folders, and in those in them
    #[arg(long, switch = false)]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
}

/// Objects read at a time at most: hashing takes a processor each, and each has its blocks in memory.
const OBJECTS: usize = 8;

/// Objects begun or done that wait until those before them are told.
const IN_TURN: usize = 64;

/// How an object is read: with all of [`OBJECTS`] that is 128 MiB at most.
const AHEAD: Ahead = Ahead { block: MAX_SUMMED, blocks: NonZeroUsize::new(4).expect("4 is not 0") };

/// Shows a blob as the user would recognise it.
type Shower = Box<dyn Fn(&str) -> String + Send + Sync>;

/// Where objects come from.
struct Origin {
    objects: Objects,
    /// For blobs; a file is known by its path.
    shown: Option<Shower>,
}

enum Objects {
    /// Their content is read.
    Read(Arc<dyn Source>),
    /// What is stored with them is told.
    Stored(Box<BlobSource>),
}

/// Something met, in turn.
enum Met {
    /// To be hashed.
    Object(Arc<Origin>, Item),
    /// Known already.
    Told(Told),
}

/// What became of something.
enum Told {
    Hashed { name: String, bytes: u64, hashes: Vec<Hash>, stored: bool },
    Skipped { name: String, reason: &'static str },
    Failed { name: String, error: Error },
}

/// Hashes to the end.
///
/// # Errors
/// `Usage`; for one place alone also what bars all of it. How the others went is the exit code.
pub(crate) async fn run(args: &HashArgs, context: &Context) -> Result<Exit> {
    let places = args.places.iter().map(|arg| place(arg, &context.inputs)).collect::<Result<Vec<_>>>()?;
    check(args, &places)?;
    let opening = Opening {
        recursive: args.recursive,
        as_subdir: false,
        selection: Arc::new(args.selection.selection()?),
        list_of_files: args.selection.list(),
        ..Opening::default()
    };
    let (out, met) = mpsc::channel(1);
    let lister = Lister { args, opening, context, dev: None, remotes: Vec::new() };
    let terminal = std::io::stdout().is_terminal();
    let mut teller = Teller { args, context, terminal, done: 0, kinds: Vec::new(), end: None };
    let (listed, ()) = tokio::join!(lister.list(&places, out), teller.tell(met));
    for remote in listed? {
        remote.close().await;
    }
    match teller.end {
        Some(error) => Err(error),
        None => Ok(Exit::of_failures(teller.kinds, teller.done)),
    }
}

/// Refuses what cannot be meant, before anything is looked at.
fn check(args: &HashArgs, places: &[Place]) -> Result<()> {
    let usage = |what: String, advice: &str| Err(Error::new(Kind::Usage, what).with_advice(advice));
    let is_remote = |place: &Place| matches!(place, Place::Remote(_) | Place::Dev { .. });
    if let Some(other) = args.algorithm.iter().find(|algorithm| **algorithm != Algorithm::Md5)
        && !args.download
        && places.iter().any(is_remote)
    {
        let what = format!("--algorithm {}: the service stores MD5s and no others", other.word());
        return usage(what, "add --download: it reads the blobs and hashes what they hold");
    }
    if args.download && !places.iter().any(is_remote) {
        return usage("--download is about blobs, and none is named".into(), "leave it out: files are always read");
    }
    if args.selection.list_of_files.is_some() && places.len() > 1 {
        return usage("a list of files is within one folder, and several places are named".into(), "name one");
    }
    Ok(())
}

/// Finds what is to be hashed.
struct Lister<'a> {
    args: &'a HashArgs,
    opening: Opening,
    context: &'a Context,
    /// The one of `remotes` that has the embedded service.
    dev: Option<usize>,
    remotes: Vec<Remote>,
}

impl Lister<'_> {
    /// Lists all places, one after the other. Returns what has to stay open until everything is read.
    async fn list(mut self, places: &[Place], out: mpsc::Sender<Met>) -> Result<Vec<Remote>> {
        for (arg, place) in self.args.places.iter().zip(places) {
            let listed = match self.origin(place).await {
                Ok(origin) => list(Arc::new(origin), &out).await.map_err(no_container),
                Err(error) => Err(error),
            };
            match listed {
                Ok(0) => self.context.out.warn(&format!("nothing to hash at {arg}")),
                Ok(_) => {}
                Err(error) if places.len() == 1 || error.kind() == Kind::Usage => return Err(error),
                Err(error) => {
                    let name = crate::secret::SafeUrl::new(arg).to_string();
                    let _ = out.send(Met::Told(Told::Failed { name, error })).await;
                }
            }
        }
        Ok(self.remotes)
    }

    async fn origin(&mut self, place: &Place) -> Result<Origin> {
        if *place == Place::Stdio && self.opening.selection.takes_all() {
            // It lands nowhere, so that no name need be given.
            return Ok(Origin { objects: Objects::Read(Arc::new(StdinSource::new("-"))), shown: None });
        }
        if !matches!(place, Place::Remote(_) | Place::Dev { .. }) {
            return Ok(Origin { objects: Objects::Read(open::source(place, &self.opening)?), shown: None });
        }
        let remote = match (place, self.dev.and_then(|at| self.remotes.get(at))) {
            (Place::Dev { .. }, Some(dev)) => dev.beside(place),
            _ => Remote::open(place, self.context).await?,
        };
        if matches!(place, Place::Dev { .. }) && self.dev.is_none() {
            self.dev = Some(self.remotes.len());
        }
        self.remotes.push(remote);
        let remote = self.remotes.last().expect("just pushed");
        let location = &remote.location;
        let container = location.container.as_deref().ok_or_else(|| {
            Error::new(Kind::Usage, "the URL names no container")
                .with_advice("'blobjet list' of the account shows those there are")
        })?;
        let path = location.blob.as_deref();
        let lists = self.args.recursive || self.opening.list_of_files.is_some() || path.is_some_and(BlobPattern::is_pattern);
        remote.check(if self.args.download || !lists { Need::READ } else { Need::LIST })?;
        let source = blobs(remote.client(self.context)?, container, path, &self.opening)?;
        let objects = if self.args.download { Objects::Read(Arc::new(source)) } else { Objects::Stored(Box::new(source)) };
        Ok(Origin { objects, shown: Some(Box::new(remote.shower())) })
    }
}

/// Lists one place. Returns how much was met.
async fn list(origin: Arc<Origin>, out: &mpsc::Sender<Met>) -> Result<u64> {
    let (sender, mut found) = mpsc::channel(1);
    let hand_on = async {
        let mut count = 0;
        while let Some(batch) = found.recv().await {
            for one in batch {
                let met = match one {
                    Found::Item(item) => Met::Object(Arc::clone(&origin), item),
                    Found::Skipped { name, reason } => Met::Told(Told::Skipped { name, reason }),
                    Found::Failed { name, error } => Met::Told(Told::Failed { name, error }),
                    Found::Filtered(_) => continue,
                };
                count += 1;
                if out.send(met).await.is_err() {
                    // Nobody listens any more: the listing sees that too.
                    found.close();
                    return count;
                }
            }
        }
        count
    };
    let (listed, count) = tokio::join!(origin.source().list(sender), hand_on);
    listed.map(|()| count)
}

impl Origin {
    fn source(&self) -> &dyn Source {
        match &self.objects {
            Objects::Read(source) => &**source,
            Objects::Stored(blobs) => &**blobs,
        }
    }

    /// Of a file its path as typed; of a blob where a download lands it.
    fn name(&self, item: Item) -> String {
        if self.shown.is_some() { item.target } else { item.source }
    }

    async fn hash(&self, item: Item, algorithms: &[Algorithm]) -> Told {
        let hashed = match &self.objects {
            Objects::Read(source) => read(&**source, &item, algorithms).await,
            Objects::Stored(blobs) => self.stored(blobs, &item).await,
        };
        match hashed {
            Ok((bytes, hashes)) => {
                let stored = matches!(self.objects, Objects::Stored(_));
                Told::Hashed { name: self.name(item), bytes, hashes, stored }
            }
            Err(error) => Told::Failed { name: self.recognised(&item), error },
        }
    }

    fn recognised(&self, item: &Item) -> String {
        self.shown.as_ref().map_or_else(|| item.source.clone(), |shown| shown(&item.source))
    }

    async fn stored(&self, blobs: &BlobSource, item: &Item) -> Result<(u64, Vec<Hash>)> {
        let known = blobs.known(item).await?;
        let md5 = known.carried.content_md5.ok_or_else(|| {
            Error::new(Kind::NotFound, format!("no MD5 of {}: none stored", self.recognised(item)))
                .with_advice("--download reads the blob and hashes what it holds; 'copy --put-md5' stores one")
        })?;
        Ok((known.len, vec![Hash::md5(md5)]))
    }
}

/// Reads an object to its end.
async fn read(source: &dyn Source, item: &Item, algorithms: &[Algorithm]) -> Result<(u64, Vec<Hash>)> {
    let reader: Arc<dyn Reader> = Arc::from(source.open(item).await?);
    let mut hashings: Vec<Hashing> = algorithms.iter().map(|algorithm| Hashing::new(*algorithm)).collect();
    let mut feed = |data: &Chunks| tokio::task::block_in_place(|| hashings.iter_mut().for_each(|hashing| hashing.update(data)));
    let len = match reader.facts().len {
        Some(len) => {
            let each = |data: Chunks| {
                feed(&data);
                Ok(true)
            };
            in_order(Arc::clone(&reader), 0..len, AHEAD, each).await?;
            len
        }
        None => {
            let mut len = 0;
            loop {
                let data = reader.read(len, AHEAD.block).await?;
                feed(&data);
                len += data.len();
                if data.len() < AHEAD.block {
                    break len;
                }
            }
        }
    };
    reader.check_unchanged(Same::Whole)?;
    Ok((len, hashings.into_iter().map(Hashing::finish).collect()))
}

/// Has what is met hashed, and says how that went.
struct Teller<'a> {
    args: &'a HashArgs,
    context: &'a Context,
    /// Whether lines go to one.
    terminal: bool,
    done: u64,
    kinds: Vec<Kind>,
    /// What bars everything.
    end: Option<Error>,
}

impl Teller<'_> {
    async fn tell(&mut self, mut met: mpsc::Receiver<Met>) {
        let mut algorithms = self.args.algorithm.clone();
        algorithms.sort_unstable();
        algorithms.dedup();
        let (algorithms, permits) = (Arc::<[Algorithm]>::from(algorithms), Arc::new(Semaphore::new(OBJECTS)));
        let (mut coming, mut more) = (Coming::with_capacity(IN_TURN), true);
        while more || coming.len() > 0 {
            tokio::select! {
                next = met.recv(), if more && coming.len() < IN_TURN => match next {
                    Some(Met::Object(origin, item)) => {
                        let (algorithms, permits) = (Arc::clone(&algorithms), Arc::clone(&permits));
                        coming.push(tokio::spawn(async move {
                            let _permit = permits.acquire_owned().await;
                            origin.hash(item, &algorithms).await
                        }));
                    }
                    // In its turn.
                    Some(Met::Told(told)) => coming.push(tokio::spawn(async { told })),
                    None => more = false,
                },
                Some(told) = coming.next() => {
                    let stopped = |e| Error::new(Kind::Cancelled, "hashing was stopped").with_source(e);
                    self.say(told.unwrap_or_else(|e| Told::Failed { name: String::new(), error: stopped(e) }), algorithms.len() > 1);
                    if self.end.is_some() {
                        return;
                    }
                }
            }
        }
    }

    fn say(&mut self, told: Told, tagged: bool) {
        let out = &self.context.out;
        match told {
            Told::Hashed { name, bytes, hashes, stored } => {
                self.done += 1;
                let form = self.args.format;
                out.data_lines(hashes.into_iter().map(|hash| {
                    let line = hash.line(&name, form, tagged);
                    // For programs exactly what md5sum writes; a terminal must not act on a name.
                    let line = if self.terminal { printable(&line).into_owned() } else { line };
                    let (algorithm, hash) = (hash.algorithm.word(), hash.text(form));
                    (line, Event::Hash { name: name.clone(), algorithm, hash, bytes, stored })
                }));
            }
            Told::Skipped { name, reason } => out.news(
                || format!("skipped: {}: {reason}", printable(&name)),
                || Event::Skipped { object: name.clone(), reason: reason.to_owned() },
            ),
            Told::Failed { error, .. } if self.is_lone() || (self.args.places.len() == 1 && error.ends_job()) => {
                self.end = Some(error);
            }
            Told::Failed { name, error } => {
                let report = Report::of(&error);
                self.kinds.push(error.kind());
                out.news(
                    || format!("failed: {}: {}", printable(&name), printable(&report.one_line())),
                    || Event::Failed { object: name.clone(), error: report.clone() },
                );
            }
        }
    }

    /// Whether one object alone is meant, whose failure is that of the command.
    fn is_lone(&self) -> bool {
        let [only] = self.args.places.as_slice() else { return false };
        !self.args.recursive && self.args.selection.list_of_files.is_none() && !only.contains(['*', '?', '['])
    }
}
