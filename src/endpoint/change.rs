//! What is done to objects where they are, alike for the engine: a [`Change`] lists what it is about, and does it to some objects
//! at a time. Deleting is one, changing properties another; the engine knows neither.

use crate::endpoint::explain::Explanation;
use crate::endpoint::{Facts, Filtered, Task};
use crate::error::{Error, Result};
use std::time::SystemTime;
use tokio::sync::mpsc;

/// An object that something is done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its name, raw.
    pub name: String,
    /// Length and last change as far as they are known without asking for them.
    pub facts: Facts,
    /// Whether it has to wait until all others are done, and then for those whose names come after its own: a folder that must be
    /// empty. Such names are kept in memory.
    pub last: bool,
}

/// What a listing says about one thing it met.
#[derive(Debug)]
pub enum Met {
    /// Something to be changed.
    Subject(Subject),
    /// Left out on purpose.
    Skipped {
        /// What it is.
        name: String,
        /// Why it is left out.
        reason: &'static str,
    },
    /// Meant to be changed, and cannot be.
    Failed {
        /// What it is.
        name: String,
        /// Why.
        error: Error,
    },
    /// Left out by the user's filters: neither listed nor named.
    Filtered(Filtered),
}

/// What became of one object when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It is as it should be; its last change is now this, if that is known to have moved.
    Done(Option<SystemTime>),
    /// It was left as it is.
    Skipped(&'static str),
}

/// Something to do to many objects. All methods may be called from any task of the runtime.
pub trait Change: Send + Sync {
    /// Reports everything it is about, in batches. Called once a job; ends when all has been sent, or quietly when the receiver
    /// is gone.
    ///
    /// # Errors
    /// Only what bars the whole listing; what is already sent is done all the same.
    fn list<'a>(&'a self, out: mpsc::Sender<Vec<Met>>) -> Task<'a, Result<()>>;

    /// Why an object would be changed or left alone, by its name or its path within what is listed.
    ///
    /// # Errors
    /// Those of looking for it.
    fn explain<'a>(&'a self, path: &'a str) -> Task<'a, Result<Explanation>>;

    /// Most objects that one call of [`Change::apply`] takes, 1 at least. Asked before each call.
    fn at_a_time(&self) -> usize;

    /// Does it to these objects: as many results as there are objects, in their order. Many calls at a time. Once dropped, it
    /// may or may not have been done.
    ///
    /// An error that would befall every other object ends the job ([`Error::ends_job`]); `SourceNotFound` does as well, for a
    /// job that is about one object.
    fn apply<'a>(&'a self, subjects: &'a [Subject]) -> Task<'a, Vec<Result<Changed>>>;
}
