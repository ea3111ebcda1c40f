//! `blobjet check`: compares two places without copying, and says which names are the same, missing or different.
//!
//! What is compared are the contents of the two roots; a file is compared with the blob it would become. Comparing is
//! [`compare`](crate::transfer::compare)'s; here places become its two sides, and verdicts lines.

use super::context::Context;
use super::exit::Exit;
use super::json::{CheckTotals, Compared, Event};
use super::options::Switch;
use super::remote::{Remote, named, place};
use super::render::{Report, printable};
use super::selection_args::SelectionArgs;
use crate::endpoint::Source;
use crate::endpoint::blob_listing::BlobListing;
use crate::endpoint::blob_listing::no_container;
use crate::endpoint::blob_pattern::BlobPattern;
use crate::endpoint::blob_source::{BlobSource, Many, What};
use crate::endpoint::landing::last_name;
use crate::endpoint::open::{Opening, Place, source};
use crate::endpoint::selection::Selection;
use crate::error::{Error, Kind, Result};
use crate::transfer::compare::{By, Side, Told, Verdict, compare};
use clap::{Args, ValueEnum};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  blobjet check ./d dev://box/d                  after 'blobjet copy ./d dev://box --recursive'
  blobjet check ./d dev://box/d --by hash        contents too: stored MD5s, as copy --put-md5 stores them
  blobjet check ./d dev://box/d --by hash --download   and blobs without one are read
  blobjet check az://ACCOUNT/CONTAINER az://OTHER/CONTAINER --exclude-path tmp
  blobjet check big.bin dev://box/big.bin

Lines: + only in the source, - only in the destination, * different, ! could not be compared (and why), = the same (with --all).
The contents of the two are compared, not their own names: where copy has put a folder under its name, name it on both sides.
Filters are asked of each side by itself. Times differ where the source was changed after the destination, to the second.
Exit codes: 0 all the same, 1 there are differences or something could not be compared.";

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Folder, file, container, prefix or blob
    pub(crate) source: String,
    /// What to compare it with: the same
    pub(crate) destination: String,
    /// size; time (size, and not changed after the destination); hash (size, and MD5)
    #[arg(long, value_enum, ignore_case = true, default_value_t = ByArg::Size, hide_possible_values = true, value_name = "WHAT")]
    pub(crate) by: ByArg,
    /// Show what is the same, too
    #[arg(long, switch = false)]
    pub(crate) all: bool,
    /// With --by hash: read blobs that have no MD5 stored with them
    #[arg(long, switch = false)]
    pub(crate) download: bool,
    /// Follow symbolic links in local folders
    #[arg(long, switch = false)]
    pub(crate) follow_symlinks: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
}

/// `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArg {
    Size,
    Time,
    Hash,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> By {
        match by {
            ByArg::Size => By::Size,
            ByArg::Time => By::Time,
            ByArg::Hash => By::Hash,
        }
    }
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// Compares to the end.
///
/// # Errors
/// `Usage` for places and options that do not go together; `SourceNotFound` where one of the two is not there; those of the
/// listings.
pub(crate) async fn run(args: &CheckArgs, context: &Context) -> Result<Exit> {
    if args.download && args.by != ByArg::Hash {
        return Err(usage("--download reads blobs for --by hash", "add --by hash, or leave it out"));
    }
    if args.selection.list_of_files.is_some() {
        let advice = "name them with --include-path: what the two have is compared in order, and a list has an order of its own";
        return Err(usage("cannot compare by a list of files", advice));
    }
    let selection = Arc::new(args.selection.selection()?);
    let roots = [root(&args.source, context)?, root(&args.destination, context)?];
    let one_file = match (&roots[0].is_file, &roots[1].is_file) {
        (Some(true), Some(false)) | (Some(false), Some(true)) => {
            return Err(usage("cannot compare a file with a folder", "name two files, or two folders"));
        }
        (a, b) => *a == Some(true) || *b == Some(true),
    };
    if one_file && !selection.takes_all() {
        return Err(usage("there is nothing to filter: a file is compared with one other", "leave the filters out"));
    }
    let label = roots.iter().find(|root| root.is_file == Some(true)).unwrap_or(&roots[0]).label();
    let shape = if one_file {
        Shape::One(label)
    } else if roots.iter().any(|root| root.is_file == Some(false)) || !selection.takes_all() {
        Shape::Tree
    } else {
        Shape::Either(label)
    };
    let [first, second] = &roots;
    let at_first = remote(first, context).await?;
    let at_second = match &at_first {
        Some(remote) if first.is_embedded() && second.is_embedded() => Some(remote.beside(&second.place)),
        _ => remote(second, context).await?,
    };
    let plan = Plan { args, shape: &shape, selection: &selection };
    let sides = (plan.side(first, at_first.as_ref(), context)?, plan.side(second, at_second.as_ref(), context)?);
    let mut tally = Tally { all: args.all, totals: CheckTotals::default() };
    let compared = compare(sides.0, sides.1, args.by.into(), |told| tally.take(told, context)).await;
    tally.totals.source = first.shown(at_first.as_ref());
    tally.totals.destination = second.shown(at_second.as_ref());
    for remote in [at_second, at_first].into_iter().flatten() {
        remote.close().await;
    }
    compared.map_err(no_container)?;
    Ok(tally.end(context))
}

/// One of the two places.
struct Root {
    place: Place,
    /// As it was typed; of a remote place only used where that is known to hold no secret.
    arg: String,
    /// Of a local place: whether it is a file.
    is_file: Option<bool>,
    /// Of a remote place: its path in the container, empty for all of it.
    path: String,
}

fn root(arg: &str, context: &Context) -> Result<Root> {
    let place = place(arg, &context.inputs)?;
    match &place {
        Place::Local(path) => {
            // Patterns have no place here, and `open::source` would take one.
            let is_file = match std::fs::metadata(path) {
                Ok(there) => !there.is_dir(),
                Err(error) => {
                    let kind = match error.kind() {
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Kind::SourceNotFound,
                        _ => Kind::SourceUnreadable,
                    };
                    return Err(Error::new(kind, format!("cannot find {path}"))
                        .with_source(error)
                        .with_advice("name a folder or a file; filters such as --include-pattern choose within it"));
                }
            };
            Ok(Root { is_file: Some(is_file), path: String::new(), arg: path.clone(), place })
        }
        Place::Stdio | Place::Null => Err(usage(format!("cannot compare {arg} with anything"), "name a folder or a file")),
        Place::Remote(_) | Place::Dev { .. } => {
            let location = named(&place, &context.inputs)?;
            if location.container.is_none() {
                return Err(usage("a place names no container", "add CONTAINER to it, before any ?"));
            }
            let path = location.blob.unwrap_or_default();
            if BlobPattern::is_pattern(&path) {
                let advice = "name what is before it, and choose with --include-pattern or --glob";
                return Err(usage(format!("cannot compare what matches the pattern {path}"), advice));
            }
            Ok(Root { is_file: None, path: path.clone(), arg: path, place })
        }
    }
}

impl Root {
    /// Its own name, for what is no tree.
    fn label(&self) -> String {
        last_name(&self.arg).unwrap_or(&self.arg).to_owned()
    }

    fn is_embedded(&self) -> bool {
        matches!(self.place, Place::Dev { .. })
    }

    fn shown(&self, remote: Option<&Remote>) -> String {
        match remote {
            Some(remote) => remote.shown(Some(self.path.as_str()).filter(|path| !path.is_empty())),
            None => self.arg.clone(),
        }
    }
}

async fn remote(root: &Root, context: &Context) -> Result<Option<Remote>> {
    match root.is_file {
        Some(_) => Ok(None),
        None => Remote::open(&root.place, context).await.map(Some),
    }
}

/// What the two are.
enum Shape {
    /// Two folders.
    Tree,
    /// Two objects, to be told under this name.
    One(String),
    /// Two blobs, or two folders of them: that is found out. Blobs are told under this name.
    Either(String),
}

struct Plan<'a> {
    args: &'a CheckArgs,
    shape: &'a Shape,
    selection: &'a Arc<Selection>,
}

impl Plan<'_> {
    fn side(&self, root: &Root, remote: Option<&Remote>, context: &Context) -> Result<Side> {
        match remote {
            Some(remote) => Ok(Side { source: self.blobs(root, remote, context)?, reads: self.args.download }),
            None => {
                let dest = match self.shape {
                    Shape::One(label) => Some(label.clone()),
                    Shape::Tree | Shape::Either(_) => None,
                };
                let opening = Opening {
                    recursive: true,
                    as_subdir: false,
                    ordered: true,
                    follow_symlinks: self.args.follow_symlinks,
                    selection: Arc::clone(self.selection),
                    dest,
                    ..Opening::default()
                };
                Ok(Side { source: source(&root.place, &opening)?, reads: true })
            }
        }
    }

    fn blobs(&self, root: &Root, remote: &Remote, context: &Context) -> Result<Arc<dyn Source>> {
        let container = remote.location.container.clone().unwrap_or_default();
        let client = remote.client(context)?;
        let is_folder = root.path.is_empty() || root.path.ends_with('/');
        let many = |folder: String| Many {
            listing: BlobListing::new(client.clone(), container.clone())
                .selecting(Arc::clone(self.selection))
                .under(&*folder)
                .ordered(),
            only: None,
            under: String::new(),
            named: folder,
        };
        let either = |blob: String, label: &String| {
            let many = many(format!("{blob}/"));
            What::Either { blob, target: label.clone(), many }
        };
        let what = match self.shape {
            // Where copy would put it.
            Shape::One(label) if is_folder => either(format!("{}{label}", root.path), label),
            Shape::One(label) => either(root.path.clone(), label),
            Shape::Either(label) if !is_folder => either(root.path.clone(), label),
            Shape::Tree | Shape::Either(_) if is_folder => What::Many(many(root.path.clone())),
            Shape::Tree | Shape::Either(_) => What::Many(many(format!("{}/", root.path))),
        };
        Ok(Arc::new(BlobSource::new(client.clone(), container.clone(), what)))
    }
}

/// What was told so far.
struct Tally {
    all: bool,
    totals: CheckTotals,
}

impl Tally {
    fn take(&mut self, told: Told, context: &Context) {
        let (name, verdict, source, destination) = match told {
            Told::Compared { name, verdict, source, destination } => (name, verdict, source, destination),
            Told::LeftOut { name, reason } => {
                self.totals.left_out += 1;
                let text = || format!("left out: {}: {reason}", printable(&name));
                context.out.news(text, || Event::Skipped { object: name.clone(), reason: reason.to_owned() });
                return;
            }
        };
        let totals = &mut self.totals;
        let (sign, count, differs_in, reason) = match verdict {
            Verdict::Same => ("=", &mut totals.same, None, None),
            Verdict::OnlyInSource => ("+", &mut totals.only_in_source, None, None),
            Verdict::OnlyInDestination => ("-", &mut totals.only_in_destination, None, None),
            Verdict::Different(by) => ("*", &mut totals.different, Some(word(by)), None),
            Verdict::Unknown(error) => ("!", &mut totals.not_compared, None, Some(Report::of(&error).one_line())),
        };
        *count += 1;
        if sign == "=" && !self.all {
            return;
        }
        let text = || match &reason {
            Some(reason) => format!("{sign} {}: {}", printable(&name), printable(reason)),
            None => format!("{sign} {}", printable(&name)),
        };
        context.out.data(text, || {
            Event::Compared(Box::new(Compared {
                name: name.clone(),
                sign,
                source_bytes: source,
                destination_bytes: destination,
                differs_in,
                reason: reason.clone(),
            }))
        });
    }

    fn end(self, context: &Context) -> Exit {
        let mut totals = self.totals;
        let differ = totals.only_in_source + totals.only_in_destination + totals.different + totals.not_compared;
        let exit = if differ > 0 { Exit::SomeFailed } else { Exit::Done };
        totals.exit_code = exit.code();
        if differ + totals.same == 0 {
            context.out.warn("there is nothing on either side that was to be compared");
        }
        context.out.summary(|| text(&totals), || Event::CheckTotals(Box::new(totals.clone())));
        exit
    }
}

fn word(by: By) -> &'static str {
    match by {
        By::Size => "size",
        By::Time => "time",
        By::Hash => "hash",
    }
}

fn text(totals: &CheckTotals) -> String {
    let mut out = format!(
        "{} the same, {} only in {}, {} only in {}, {} different, {} not compared",
        totals.same,
        totals.only_in_source,
        printable(&totals.source),
        totals.only_in_destination,
        printable(&totals.destination),
        totals.different,
        totals.not_compared
    );
    if totals.left_out > 0 {
        out.push_str(&format!(", {} left out", totals.left_out));
    }
    out
}
