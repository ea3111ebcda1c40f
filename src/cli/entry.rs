//! A job of the command line in the journal: how it is entered, how its end is written down, and how it is gone on with.

use super::context::Context;
use super::job::new_id;
use super::kept::Kept;
use super::render::Report;
use crate::error::Result;
use crate::rest::auth::sas::Token;
use crate::transfer::journal::{Ending, Journal, Keep, NewJob, Notice, Resumed, Start};
use crate::transfer::progress::Observer;
use std::sync::Arc;
use std::time::SystemTime;

/// Where a job comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A command line.
    New(Kept),
    /// A command whose jobs are not written down, with the id of this one.
    Unkept(String),
    /// The journal.
    Again {
        /// What the journal has of it.
        resumed: Box<Resumed>,
        /// Its command line.
        kept: Kept,
        /// The SAS for its source, or for its only place, this time.
        source_sas: Option<Token>,
        /// The SAS for its destination this time.
        destination_sas: Option<Token>,
    },
}

/// See the module's text.
pub(crate) struct Entry {
    /// The job's id.
    pub(crate) id: String,
    journal: Option<Arc<Journal>>,
    /// The command that goes on with it, if it can be gone on with.
    resume: Option<String>,
}

impl Entry {
    /// Begins to write a job down that goes from `source` to `destination` (as they are shown), keeping `keep_jobs` jobs. With 0,
    /// without an origin, or where there is no folder for it, it only gets an id.
    ///
    /// # Errors
    /// Where the system has no random numbers.
    pub(crate) fn begin(
        origin: Option<Origin>,
        keep_jobs: usize,
        (source, destination): (&str, &str),
        context: &Context,
    ) -> Result<Entry> {
        let (id, kept, start) = match origin {
            None => return Ok(Entry { id: new_id()?, journal: None, resume: None }),
            Some(Origin::Unkept(id)) => return Ok(Entry { id, journal: None, resume: None }),
            Some(Origin::Again { resumed, kept, .. }) => (resumed.id.clone(), kept, Start::Again(*resumed)),
            Some(Origin::New(kept)) => {
                let new = NewJob {
                    id: new_id()?,
                    source: source.to_owned(),
                    destination: destination.to_owned(),
                    command: kept.to_json(),
                    started: SystemTime::now(),
                };
                (new.id.clone(), kept, Start::New(new))
            }
        };
        let Some(folder) = context.state.clone().filter(|_| keep_jobs > 0) else {
            return Ok(Entry { id, journal: None, resume: None });
        };
        let out = Arc::clone(&context.out);
        let resumable = kept.never.is_none();
        let tell = move |notice: Notice<'_>| match notice {
            Notice::Off(error) => {
                let why = Report::of(error).one_line();
                out.warn(&format!("the journal is off: {why}. The job goes on; 'blobjet jobs' will not know all of it"));
            }
            // Neither could one like this be gone on with.
            Notice::Unfinished(_) if !resumable => {}
            Notice::Unfinished(id) => out.warn(&format!(
                "an earlier job of the same places did not finish; 'blobjet jobs resume {id}' would have gone on with it"
            )),
        };
        let keep = Keep { jobs: keep_jobs, ..Keep::default() };
        let resume = resumable.then(|| {
            let source = if kept.source_sas { " --source-sas 'SAS'" } else { "" };
            let destination = if kept.sas { " --destination-sas 'SAS'" } else { "" };
            format!("blobjet jobs resume {id}{source}{destination}")
        });
        Ok(Entry { journal: Some(Journal::start(folder, keep, start, Box::new(tell))), id, resume })
    }

    /// Who is to be told of each object, if anybody.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.journal.clone().map(|journal| journal as _)
    }

    /// Writes the end down. Returns the command that goes on with the job, if the journal has all that takes.
    pub(crate) fn end(&self, ending: Ending) -> Option<String> {
        let whole = self.journal.as_ref().is_some_and(|journal| journal.end(ending));
        self.resume.clone().filter(|_| whole)
    }
}
