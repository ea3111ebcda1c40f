//! One try at moving an object, and what it has counted: a try made in vain is taken back whole, so that a source sent again
//! counts as one object whose bytes were acknowledged once.
//!
//! Requests of a try may be answered after it is over (lanes are not called back). What they report then counts no more.

use crate::endpoint::{Facts, Item, Receipt};
use crate::error::Error;
use crate::transfer::progress::{Course, Progress, There};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// How often an object is started again at most because its source changed. One that is written to all the time would never
/// come to an end.
const AGAIN: u32 = 3;

/// A try at moving one object.
#[derive(Debug)]
pub(super) struct Attempt {
    item: Item,
    /// Tries before this one.
    before: u32,
    tally: Mutex<Tally>,
}

#[derive(Debug)]
struct Tally {
    known: u64,
    there: There,
    course: Course,
    over: bool,
}

impl Attempt {
    /// The first try at an object found in a listing taken then.
    pub(super) fn first(item: Item, queued: SystemTime) -> Self {
        Attempt::new(item, 0, Course::queued(queued))
    }

    fn new(item: Item, before: u32, course: Course) -> Self {
        Attempt { item, before, tally: Mutex::new(Tally { known: 0, there: There::default(), course, over: false }) }
    }

    /// The try after this one; `None` once it was tried often enough.
    pub(super) fn next(&self) -> Option<Self> {
        let Course { queued, started, retries, .. } = self.course();
        let course = Course { started, retries, ..Course::queued(queued) };
        // What the listing told is no longer so.
        let item = Item { known: None, ..self.item.clone() };
        (self.before < AGAIN).then(|| Attempt::new(item, self.before + 1, course))
    }

    /// What is to be moved.
    pub(super) fn item(&self) -> &Item {
        &self.item
    }

    /// How it went so far.
    pub(super) fn course(&self) -> Course {
        self.tally().course
    }

    /// Work on it begins.
    pub(super) fn started(&self) {
        self.tally().course.started.get_or_insert_with(SystemTime::now);
    }

    /// The source is open.
    pub(super) fn opened(&self, facts: Facts, progress: &Progress) {
        self.tally().course.facts = Some(facts);
        progress.opened();
    }

    /// So many more bytes are to be sent.
    pub(super) fn known(&self, bytes: u64, progress: &Progress) {
        self.tally().known += bytes;
        progress.known(bytes);
    }

    /// It is cut into so many blocks more.
    pub(super) fn add_blocks(&self, count: u32) {
        self.tally().course.blocks += count;
    }

    /// A request was answered in the end.
    pub(super) fn count(&self, receipt: Receipt) {
        self.tally().course.count(receipt);
    }

    /// So many more bytes are acknowledged.
    pub(super) fn sent(&self, bytes: u64, progress: &Progress) {
        // Counted under the lock, or a try could be taken back in between.
        let mut tally = self.tally();
        if !tally.over {
            tally.there.sent += bytes;
            progress.sent(bytes);
        }
    }

    /// A block of so many bytes was there from an earlier run.
    pub(super) fn resumed(&self, bytes: u64, progress: &Progress) {
        let mut tally = self.tally();
        if !tally.over {
            tally.there.resumed += bytes;
            tally.there.blocks_resumed += 1;
            progress.resumed(bytes);
        }
    }

    /// Of what was counted so much got lost, and is to be sent again.
    pub(super) fn lost(&self, lost: There, progress: &Progress) {
        let mut tally = self.tally();
        if !tally.over {
            tally.there.sent -= lost.sent;
            tally.there.resumed -= lost.resumed;
            tally.there.blocks_resumed -= lost.blocks_resumed;
            progress.gone(lost);
        }
    }

    /// Takes back what this try has counted.
    pub(super) fn take_back(&self, progress: &Progress) {
        let mut tally = self.tally();
        if !tally.over {
            tally.over = true;
            progress.take_back(tally.course.facts.is_some(), tally.known, tally.there);
        }
    }

    /// The error as it is told: with the number of tries, if there was more than one.
    pub(super) fn explain(&self, error: Error) -> Error {
        match self.before {
            0 => error,
            before => error.context(format!("cannot send {}, tried {} times", self.item.source, before + 1)),
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_in_vain_leaves_no_trace_whenever_its_answers_come() {
        let progress = Progress::new(None);
        let first = Attempt::first(Item::new("a", "a"), SystemTime::now());
        first.opened(Facts { len: Some(100), modified: None }, &progress);
        first.known(100, &progress);
        first.sent(60, &progress);
        first.take_back(&progress);
        first.sent(40, &progress);
        first.take_back(&progress);
        let counts = progress.snapshot();
        assert_eq!((counts.opened, counts.bytes_known, counts.bytes_sent, counts.restarts), (0, 0, 0, 1));
        let mut tries = vec![first];
        while let Some(next) = tries.last().and_then(Attempt::next) {
            tries.push(next);
        }
        assert_eq!(tries.len(), 4, "the first try and three more");
    }
}
