//! Where words go: data and summaries to stdout, progress, warnings and errors to stderr; with `--output-type json` all of it
//! as lines of JSON on stdout.
//!
//! Writing never stops the work: that a reader went away (`| head`) ends the output and is no error. What could not be written
//! for another reason is kept, and [`Output::lost`] makes it the end of the command. Without its reader, JSON has errors on stderr.
//! No escape code is written unless stderr is a terminal.

use super::exit::Exit;
use super::json::Event;
use super::meter::{Counts, Meter, line};
use super::options::{Format, Level};
use super::render::{Report, printable};
use super::standard_output::write_text;
use crate::error::Error;
use crate::secret::SafeUrl;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tokio::sync::SetOnce;

/// The screen of one command.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
    level: Level,
    bar: Mutex<Option<ProgressBar>>,
    /// Whether a question waits for its answer. Orders nothing.
    asking: AtomicBool,
    /// Set once standard output takes nothing more.
    deaf: SetOnce<Deaf>,
}

/// Why nothing more is written to standard output.
#[derive(Debug)]
enum Deaf {
    /// Its reader went away.
    Closed,
    /// It could not be written to.
    Failed(Error),
}

/// What a bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Bytes, where there are any.
    Bytes,
    /// Objects.
    Objects,
}

impl Output {
    /// Output of this form and verbosity. Nothing is written yet.
    pub(crate) fn new(format: Format, level: Level) -> Output {
        Output { format, level, bar: Mutex::new(None), asking: AtomicBool::new(false), deaf: SetOnce::new() }
    }

    /// Whether lines of JSON are asked for.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether progress is shown at all.
    pub(crate) fn shows_progress(&self) -> bool {
        self.level == Level::Default
    }

    /// Data the command was run for: `text` as it is, or the event. Shown at every level.
    pub(crate) fn data(&self, text: impl FnOnce() -> String, event: impl FnOnce() -> Event) {
        self.stdout(&if self.is_json() { event_line(&event()) } else { text() });
    }

    /// Many lines of data, in one write.
    pub(crate) fn data_lines(&self, lines: impl Iterator<Item = (String, Event)>) {
        let lines: Vec<String> = lines.map(|(text, event)| if self.is_json() { event_line(&event) } else { text }).collect();
        if !lines.is_empty() {
            self.stdout(&lines.join("\n"));
        }
    }

    /// What is said about the work: shown unless `quiet`.
    pub(crate) fn news(&self, text: impl FnOnce() -> String, event: impl FnOnce() -> Event) {
        if self.level != Level::Quiet {
            self.failure(text, event);
        }
    }

    /// One object that failed: an error, and so shown at every level.
    pub(crate) fn failure(&self, text: impl FnOnce() -> String, event: impl FnOnce() -> Event) {
        if self.is_json() {
            self.stdout(&event_line(&event()));
        } else {
            self.stderr(&text());
        }
    }

    /// The end of the work, on stdout unless `quiet`.
    pub(crate) fn summary(&self, text: impl FnOnce() -> String, event: impl FnOnce() -> Event) {
        if self.level == Level::Quiet {
            return;
        }
        self.data(text, event);
    }

    /// Something the user should know, in one line. It may repeat what was typed, so a signature is taken out here too.
    pub(crate) fn warn(&self, message: &str) {
        let message = SafeUrl::new(message).to_string();
        self.news(|| format!("warning: {}", printable(&message)), || Event::Warning { message: message.clone() });
    }

    /// What the program chose by itself, in one line.
    pub(crate) fn note(&self, message: &str) {
        self.news(|| format!("note: {message}"), || Event::Note { message: message.to_owned() });
    }

    /// Why the command failed. Shown at every level.
    pub(crate) fn error(&self, report: Report, exit: Exit) {
        let event = || event_line(&Event::Error { error: report.clone(), exit_code: exit.code() });
        if !self.is_json() || !self.stdout(&event()) {
            self.stderr(&report.text());
        }
    }

    /// The end of a command that would end with `exit`: says so where some of its output could not be written, which makes it a
    /// failure. Asked once, at the very end.
    pub(crate) fn lost(&self, exit: Exit) -> Exit {
        match self.deaf.get() {
            Some(Deaf::Failed(error)) => {
                let exit = if exit == Exit::Done { Exit::of(error) } else { exit };
                self.error(Report::of(error), exit);
                exit
            }
            _ => exit,
        }
    }

    /// Waits until nobody hears any more what is written to standard output. Cancel-safe.
    pub(crate) async fn unheard(&self) {
        self.deaf.wait().await;
    }

    /// A beat of the meter as a plain line or an event; on a terminal the line stands above the bar and is drawn in place.
    pub(crate) fn progress(&self, counts: &Counts, rate: f64, event: impl FnOnce() -> Event) {
        if !self.shows_progress() || self.asking.load(Relaxed) {
            return;
        }
        if self.is_json() {
            self.stdout(&event_line(&event()));
        } else if let Some(bar) = self.lock().as_ref() {
            bar.set_message(line(counts, rate));
        } else {
            self.stderr(&line(counts, rate));
        }
    }

    /// Starts the bar if there is a terminal to draw it on. Returns whether there is one.
    pub(crate) fn start_bar(&self, measure: Measure) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if self.is_json() || !self.shows_progress() || dumb || !std::io::stderr().is_terminal() {
            return false;
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(match measure {
            Measure::Bytes => "{msg}\n[{wide_bar}] {bytes}/{total_bytes}  {prefix}",
            Measure::Objects => "{msg}\n[{wide_bar}] {pos}/{len}",
        });
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        *self.lock() = Some(bar);
        true
    }

    /// Moves the bar; called several times a second.
    pub(crate) fn move_bar(&self, counts: &Counts, meter: &Meter) {
        if let Some(bar) = self.lock().as_ref() {
            let (length, position) = match counts.bytes_expected() {
                0 => (counts.listed, counts.listed - counts.pending()),
                bytes => (bytes, counts.bytes_reached()),
            };
            bar.set_length(length);
            bar.set_position(position);
            bar.set_prefix(meter.tail(counts));
            if bar.message().is_empty() {
                bar.set_message(line(counts, 0.0));
            }
        }
    }

    /// Takes the bar away and leaves the last line in its place.
    pub(crate) fn end_bar(&self) {
        let bar = self.lock().take();
        if let Some(bar) = bar {
            let last = bar.message();
            bar.finish_and_clear();
            self.stderr(&last);
        }
    }

    /// Asks on the terminal; `None` where nobody answers. The bar is away meanwhile, and progress is not shown: whoever drives
    /// the meter must not be kept waiting by an open question.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        self.asking.store(true, Relaxed);
        let bar = self.lock().take();
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        let _ = write!(std::io::stderr().lock(), "{}", printable(question));
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer).unwrap_or(0);
        self.asking.store(false, Relaxed);
        if bar.is_some() {
            self.start_bar(Measure::Bytes);
        }
        (read > 0).then(|| answer.trim().to_owned())
    }

    /// Runs `f` with the bar out of the way.
    fn aside<T>(&self, f: impl FnOnce() -> T) -> T {
        match self.lock().as_ref() {
            Some(bar) => bar.suspend(f),
            None => f(),
        }
    }

    /// Returns whether it was written.
    fn stdout(&self, text: &str) -> bool {
        if self.deaf.get().is_some() {
            return false;
        }
        let deaf = match self.aside(|| write_text(&format!("{text}\n"))) {
            Ok(true) => return true,
            Ok(false) => Deaf::Closed,
            Err(error) => Deaf::Failed(error),
        };
        // Of two that fail at once the first one counts.
        let _ = self.deaf.set(deaf);
        false
    }

    fn stderr(&self, text: &str) {
        self.aside(|| {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn event_line(event: &Event) -> String {
    event.line(jiff::Timestamp::now())
}
