//! Runs one job with everything around it: the meter, the signals, the journal, the summary, the exit code. What the job does is
//! a [`Work`]: moving objects through the engine, or changing them where they are.
//!
//! The job ends with its last answer; nothing here waits for a timer. The first signal lets requests in flight end, for at most
//! ten seconds; the second drops them.

use super::context::{Context, Which};
use super::doing::Doing;
use super::entry::{Entry, Origin};
use super::exit::Exit;
use super::json::{Event, Progress as ProgressLine};
use super::meter::{BAR_EVERY, Counts, EVERY, Meter};
use super::output::{Measure, Output};
use super::render::{Report, printable};
use super::report::Recording;
use super::report::file::ReportFile;
use super::report::recorder::Recorder;
use super::summary::{End, as_a_whole, status, summary, text};
use crate::endpoint::{Filtered, Task};
use crate::error::{Error, Kind, Result};
use crate::rest::stats::Stats;
use crate::secret::SafeUrl;
use crate::transfer::engine::{self, Job};
use crate::transfer::journal::Ending;
use crate::transfer::progress::{self, NOT_STARTED, Observer, Outcome, Progress};
use crate::transfer::stop::{self, Phase, Stop};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, interval_at, sleep};

/// How long requests in flight may take to end after the first signal.
const DRAIN: Duration = Duration::from_secs(10);

/// Failures named on the screen as they happen; JSON names all.
const FAILURES_SHOWN: u64 = 1000;

/// What a job is called on the screen.
#[derive(Debug)]
pub(crate) struct Named {
    /// What it does.
    pub(crate) doing: Doing,
    /// Source and destination, without secrets. What is changed where it is has no destination: that is empty.
    pub(crate) source: String,
    pub(crate) destination: String,
    /// Whether nothing transferred is an error.
    pub(crate) error_on_no_transfer: bool,
    /// Jobs that the journal keeps.
    pub(crate) keep_jobs: usize,
    /// Where the job comes from, if it is to be written down.
    pub(crate) origin: Option<Origin>,
    /// Whether, when it is stopped, it is said what is kept and how to start again.
    pub(crate) told_when_stopped: bool,
}

/// A new job id: a random UUID (RFC 9562, version 4).
///
/// # Errors
/// Where the system has no random numbers.
pub(crate) fn new_id() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::new(Kind::Local, "cannot get random numbers from the system").with_source(e.to_string()))?;
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// What a job does: it counts into the progress it is given, and ends when it is told to stop.
pub(crate) type Work = Box<dyn FnOnce(Arc<Progress>, Stop) -> Task<'static, Result<()>>>;

/// The work of moving objects.
pub(crate) fn moving(job: Job) -> Work {
    Box::new(|progress, stop| Box::pin(async move { engine::run(job, progress, stop).await.map(drop) }))
}

/// A job and what is around it.
pub(crate) struct Run {
    pub(crate) work: Work,
    pub(crate) named: Named,
    /// Where its client counts.
    pub(crate) stats: Arc<Stats>,
    pub(crate) recording: Option<Recording>,
}

/// Runs the job to its end and says how it went. Errors of the job are printed here: the summary comes after them.
///
/// # Errors
/// None of the job's; only what keeps it from starting.
pub(crate) async fn run(run: Run, context: &Context) -> Result<Exit> {
    Ok(drive(run, context).await?.tell(&context.out))
}

/// A job that has ended, and not been told of yet.
pub(crate) struct Ended {
    id: String,
    named: Named,
    result: Result<()>,
    signal: Option<Which>,
    elapsed: Duration,
    progress: Arc<Progress>,
    stats: Arc<Stats>,
    entry: Entry,
    recorder: Option<Recorder>,
    file: Option<ReportFile>,
    left_something: bool,
}

/// Runs the job to its end.
///
/// # Errors
/// As [`run`].
pub(crate) async fn drive(run: Run, context: &Context) -> Result<Ended> {
    let Run { work, mut named, stats, recording } = run;
    let places = (named.source.as_str(), named.destination.as_str());
    let entry = Entry::begin(named.origin.take(), named.keep_jobs, places, context)?;
    let id = entry.id.clone();
    let out = &context.out;
    out.news(
        || format!("Job {id} has started"),
        || Event::Init {
            job_id: id.clone(),
            command: named.doing.command(),
            version: env!("CARGO_PKG_VERSION"),
            source: named.source.clone(),
            destination: named.destination.clone(),
        },
    );
    let mut observers: Vec<Arc<dyn Observer>> = vec![Arc::new(Teller::new(out))];
    let (mut recorder, file) = match recording {
        Some(Recording { about, file }) => (Some(Recorder::start(about)), file),
        None => (None, None),
    };
    observers.extend(entry.observer());
    observers.extend(recorder.as_ref().map(Recorder::observer));
    let progress = Progress::new(Some(Arc::new(observers)));
    let started = Instant::now();
    let measure = match named.doing {
        Doing::Moving { .. } => Measure::Bytes,
        Doing::Changing(_) => Measure::Objects,
    };
    let (result, signal) = watch((work, measure), &progress, &stats, &id, recorder.as_mut(), context).await;
    let elapsed = started.elapsed();
    Ok(Ended { entry, id, named, result, signal, elapsed, progress, stats, recorder, file, left_something: false })
}

impl Ended {
    /// Something it made should be gone and is not, as was said: the exit code tells.
    pub(crate) fn left_something(&mut self) {
        self.left_something = true;
    }

    /// Says how it went: errors first, then the report, the summary last.
    pub(crate) fn tell(self, out: &Output) -> Exit {
        let (end, mut exit) = self.exit();
        let error = self.result.as_ref().err().map(Report::of);
        let resume = self.enter(end, error.as_ref());
        match self.signal {
            Some(_) if end == End::Whole => {
                out.note("when it was told to stop there was nothing left to do but what was under way")
            }
            Some(which) if self.named.told_when_stopped => {
                say_what_is_kept(out, which, self.named.doing, resume.as_deref());
            }
            _ => {}
        }
        if let Some(report) = error {
            out.error(report, exit);
        } else if self.progress.snapshot().listed == 0 && self.signal.is_none() {
            let filtered = self.progress.snapshot().filtered != Filtered::default();
            out.warn(&self.named.doing.nothing(&self.named.source, filtered));
        }
        let progress = (&*self.progress, self.result.as_ref().err());
        let mut whole = summary((&self.id, self.named.doing), end, exit.code(), self.elapsed, progress, &self.stats);
        whole.resume = resume;
        if let Some(recorder) = self.recorder {
            whole.report = self.file.as_ref().map(|file| file.named().display().to_string());
            let record = recorder.end(self.elapsed, whole, &self.progress, &self.stats);
            let written = self.file.map_or(Ok(()), |file| file.write(&record));
            whole = record.summary;
            if let Err(error) = written {
                exit = if exit == Exit::Done { Exit::of(&error) } else { exit };
                (whole.report, whole.exit_code) = (None, exit.code());
                out.error(Report::of(&error), exit);
            }
        }
        out.summary(|| text(&whole), || Event::Summary(Box::new(whole.clone())));
        exit
    }

    /// Enters the end in the journal. Returns the command that goes on with the job, if there is anything left to do.
    fn enter(&self, end: End, error: Option<&Report>) -> Option<String> {
        let mut counts = self.progress.snapshot();
        let whole = as_a_whole(&counts, &self.progress);
        let status = status(end, whole.done, whole.failed, whole.skipped).to_owned();
        counts.listed += self.named.doing.gone_earlier();
        counts.done += self.named.doing.gone_earlier();
        let resume = self.entry.end(Ending { status, error: error.map(Report::one_line), counts });
        resume.filter(|_| end != End::Whole || counts.failed > 0)
    }

    /// Whether nothing was left out for a signal that came: all that was found had been begun by then, and has come to its end.
    fn came_to_its_end(&self) -> bool {
        let counts = self.progress.snapshot();
        let told: u64 = self.progress.failures().iter().map(|group| group.count).sum();
        let begun = self.progress.skips().iter().all(|group| group.reason != NOT_STARTED);
        self.result.is_ok() && counts.listing_done && begun && counts.failed == told
    }

    fn exit(&self) -> (End, Exit) {
        let done = self.progress.snapshot().done;
        match (&self.result, self.signal.filter(|_| !self.came_to_its_end())) {
            (_, Some(Which::Interrupt)) => (End::Stopped, Exit::Interrupted),
            (_, Some(Which::Terminate)) => (End::Stopped, Exit::Terminated),
            (Err(error), None) => (End::Failed, Exit::of(error)),
            (Ok(_), None) => {
                let exit = Exit::of_failures(self.progress.failures().iter().map(|group| group.kind), done);
                let idle = exit == Exit::Done && done == 0 && self.named.error_on_no_transfer;
                (
                    End::Whole,
                    match exit {
                        Exit::Done if idle => Exit::NothingTransferred,
                        Exit::Done if self.left_something => Exit::SomeFailed,
                        exit => exit,
                    },
                )
            }
        }
    }
}

/// Drives the work and the meter until the work is done.
async fn watch(
    (work, measure): (Work, Measure),
    progress: &Arc<Progress>,
    stats: &Stats,
    id: &str,
    mut recorder: Option<&mut Recorder>,
    context: &Context,
) -> (Result<()>, Option<Which>) {
    let out = &context.out;
    let (stopper, stop) = stop::channel();
    let mut work = work(Arc::clone(progress), stop);
    let started = Instant::now();
    let mut meter = Meter::default();
    let mut lines = interval_at(started + EVERY, EVERY);
    let has_bar = out.start_bar(measure);
    let mut bar = interval_at(started + BAR_EVERY, BAR_EVERY);
    let mut sample = std::pin::pin!(sleep(recorder.as_ref().map_or(Duration::MAX, |recorder| recorder.pause())));
    let mut drained = std::pin::pin!(sleep(Duration::MAX));
    let mut signals = 0;
    let mut signal = None;
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            _ = lines.tick() => beat(out, &mut meter, started, &counts(progress, stats), id),
            _ = bar.tick(), if has_bar => out.move_bar(&counts(progress, stats), &meter),
            () = &mut sample => if let Some(recorder) = &mut recorder {
                recorder.sample(started.elapsed(), progress, stats);
                sample.as_mut().reset(Instant::now() + recorder.pause());
            },
            which = context.signals.reached(signals + 1) => {
                signals += 1;
                signal.get_or_insert(which);
                if signals == 1 {
                    out.warn("stopping: requests in flight may end, for at most 10 seconds; the same signal again stops at once");
                    stopper.advance(Phase::Drain);
                    drained.set(sleep(DRAIN));
                } else {
                    stopper.advance(Phase::Now);
                }
            }
            () = &mut drained, if signals == 1 => {
                stopper.advance(Phase::Now);
                signals += 1;
            }
        }
    };
    // The last line tells the whole, however short the job was.
    beat(out, &mut meter, started, &counts(progress, stats), id);
    out.end_bar();
    (result, signal)
}

fn beat(out: &Output, meter: &mut Meter, started: Instant, counts: &Counts, id: &str) {
    let rate = meter.beat(started.elapsed(), counts);
    out.progress(counts, rate, || Event::Progress(ProgressLine::new(id, counts, rate)));
}

fn counts(progress: &Progress, stats: &Stats) -> Counts {
    let now = progress.snapshot();
    Counts {
        listed: now.listed,
        opened: now.opened,
        done: now.done,
        failed: now.failed,
        skipped: now.skipped,
        bytes_listed: now.bytes_known,
        bytes_done: now.bytes_there(),
        bytes_resumed: now.bytes_resumed,
        bytes_under_way: stats.bytes_under_way.load(Relaxed),
        bytes_on_wire: stats.bytes_on_wire(),
        listing: !now.listing_done,
        concurrency: now.lanes,
    }
}

fn say_what_is_kept(out: &Output, which: Which, doing: Doing, resume: Option<&str>) {
    let next = match resume {
        Some(command) => format!("to go on: {command}"),
        None => format!("to start again: {}", command_line()),
    };
    out.warn(&format!("{}; {next}", doing.kept(which)));
}

/// The command as it was typed, without signatures, quoted for a shell.
pub(crate) fn command_line() -> String {
    let args = std::env::args_os().map(|arg| quoted(&SafeUrl::new(&arg.to_string_lossy()).to_string()));
    args.collect::<Vec<_>>().join(" ")
}

/// An argument as a POSIX shell takes it.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_owned() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}

/// Names objects that failed, and in JSON those left out, as it happens. What this machine refuses one object it mostly refuses
/// the others too: such a cause is told once, and the summary has the count.
struct Teller {
    out: Arc<Output>,
    failures: AtomicU64,
    refusals: Mutex<HashSet<i32>>,
}

impl Teller {
    fn new(out: &Arc<Output>) -> Teller {
        Teller { out: Arc::clone(out), failures: AtomicU64::new(0), refusals: Mutex::default() }
    }

    /// Whether this was told of another object: the disk is full, the folder may not be written to.
    fn is_known(&self, error: &Error) -> bool {
        let refusal = error.refused_here();
        let mut known = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.is_some_and(|number| !known.insert(number))
    }
}

impl Observer for Teller {
    fn ended(&self, event: progress::Event<'_>) {
        match event.outcome {
            Outcome::Done { .. } => {}
            Outcome::Failed(error) if !self.out.is_json() && self.is_known(error) => {}
            Outcome::Failed(error) => {
                let nth = self.failures.fetch_add(1, Relaxed);
                let json = self.out.is_json();
                if json || nth < FAILURES_SHOWN {
                    let report = Report::of(error);
                    self.out.failure(
                        || {
                            let more =
                                error.refused_here().map_or("", |_| " (what fails like this from here on is only counted)");
                            format!("failed: {}: {}{more}", printable(event.source), printable(&report.one_line()))
                        },
                        || Event::Failed { object: event.source.to_owned(), error: report.clone() },
                    );
                } else if nth == FAILURES_SHOWN {
                    self.out.warn("further failures are counted and not named here; --output-type json names them all");
                }
            }
            Outcome::Skipped(reason) if self.out.is_json() => {
                self.out.news(String::new, || Event::Skipped { object: event.source.to_owned(), reason: reason.to_owned() })
            }
            Outcome::Skipped(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_random_uuids() {
        let id = new_id().unwrap();
        assert_eq!(id.len(), 36);
        assert_eq!(id.match_indices('-').map(|(at, _)| at).collect::<Vec<_>>(), [8, 13, 18, 23]);
        assert_eq!(id.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&id.as_bytes()[19]));
        assert_ne!(id, new_id().unwrap());
    }

    #[test]
    fn the_command_to_run_again_can_be_pasted() {
        assert_eq!(quoted("--recursive=true"), "--recursive=true");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("https://a/c?sig=REDACTED"), "'https://a/c?sig=REDACTED'");
        assert_eq!(quoted(""), "''");
    }
}
