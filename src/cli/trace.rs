//! What the layers below trace. Their warnings become the program's own; all else goes to stderr, where `--log-level` asked.

use super::options::LogLevel;
use super::output::Output;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Starts tracing for this process.
pub(crate) fn start(level: LogLevel, out: &Arc<Output>) {
    let asked = match level {
        LogLevel::None => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    // A stderr that takes no more would be complained of on stderr, with a panic.
    let log = tracing_subscriber::fmt::layer().with_ansi(false).log_internal_errors(false).with_writer(std::io::stderr);
    let log = log.with_filter(asked);
    // A warning is told once: where the log has it, that is enough.
    let warnings = (asked < LevelFilter::WARN).then(|| Warnings(Arc::clone(out)).with_filter(LevelFilter::WARN));
    // A second subscriber in one process (a test's) is no reason to fail.
    let _ = tracing_subscriber::registry().with(log).with(warnings).try_init();
}

/// Tells warnings the way the command tells its own.
struct Warnings(Arc<Output>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::WARN && event.metadata().target().starts_with(env!("CARGO_CRATE_NAME")) {
            let mut message = Message::default();
            event.record(&mut message);
            self.0.warn(&message.0);
        }
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing to a String cannot fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}
