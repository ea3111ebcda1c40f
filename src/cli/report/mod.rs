//! `--report FILE`: a picture of a run as one page, or its data as JSON.
//!
//! `recorder` watches, `timeline` and `objects` keep what it sees in bounded memory, `host` tells what machine it is, `record` is the
//! result as plain values. `page`, with `history`, `chart` and `text`, draws it; `file` writes it. Drawing is pure and knows nothing of a
//! running job.

use file::ReportFile;
use recorder::About;

mod chart;
#[cfg(test)]
mod example;
pub(crate) mod file;
mod history;
mod host;
mod objects;
mod page;
pub(crate) mod record;
pub(crate) mod recorder;
pub(crate) mod text;
mod timeline;

/// That a run is to be recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) about: About,
    /// Where its report goes, if one was asked for.
    pub(crate) file: Option<ReportFile>,
}
