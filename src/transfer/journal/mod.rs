//! The journal: what became of every object of every job, kept in one SQLite file, so that jobs can be looked at and gone on with.
//!
//! [`Journal`] is told of each object by the engine and writes on a thread of its own ([`writer`]); it never holds up a transfer
//! and never fails one: what it cannot write turns it off, with one warning. [`Store`] reads, removes and prepares a resume.
//! [`schema`] owns the file's form, [`lease`] tells which jobs have a living process, [`Finished`] what need not be sent again.
//!
//! Nothing secret gets here: whoever starts a job hands over places without their SAS, and causes are told by kind and code.
//!
//! What a crash leaves: everything that was written survives the death of the process at any moment (`kill -9`), and that is all
//! but the last tenth of a second. A power failure may take the last few seconds with it, and leaves the file whole
//! (`synchronous=NORMAL` in WAL mode). Both err on the safe side: an object is written down after it is at its destination, so
//! what is missing is sent again.

mod batch;
mod book;
mod finished;
mod lease;
mod prune;
mod schema;
mod store;
mod time;
mod writer;

pub use batch::Ended;
pub use finished::{Absence, FINISHED_EARLIER, Finished};
pub use lease::Lease;
pub use prune::Keep;
pub use store::{Job, Resumed, State, Store, Transfer};
pub use writer::{Ending, Journal, NewJob, Notice, Start, Tell};
