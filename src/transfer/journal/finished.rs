//! What earlier runs of a job finished, so that a resume leaves it alone as long as it has not changed since.
//!
//! Kept as hashes with random keys: 24 bytes an object, whatever its name. Two names are taken for one with a probability of
//! 2^-128, and a changed file for an unchanged one with 2^-64.

use super::time::nanos;
use crate::endpoint::{Facts, Item};
use std::hash::{BuildHasher, RandomState};

/// The reason under which such objects are skipped.
pub const FINISHED_EARLIER: &str = "finished earlier, and unchanged since";

/// See the module's text.
#[derive(Debug, Default)]
pub struct Finished {
    keys: [RandomState; 2],
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    name: [u64; 2],
    facts: u64,
}

impl Finished {
    /// Whether the object was finished when it had this length and time of change. Never for a source that has neither.
    pub fn has(&self, item: &Item, facts: &Facts) -> bool {
        let (Some(len), Some(modified)) = (facts.len, facts.modified) else { return false };
        let name = self.name(&item.source, &item.target);
        let found = self.entries.binary_search_by_key(&name, |entry| entry.name);
        found.is_ok_and(|at| self.entries[at].facts == self.facts(len, nanos(modified)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds one; [`Finished::sort`] must follow the last.
    pub(super) fn add(&mut self, source: &str, target: &str, len: u64, modified: i64) {
        let entry = Entry { name: self.name(source, target), facts: self.facts(len, modified) };
        self.entries.push(entry);
    }

    /// Of two under one name the later stands.
    pub(super) fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.name);
        self.entries.dedup_by(|later, earlier| {
            let same = later.name == earlier.name;
            if same {
                earlier.facts = later.facts;
            }
            same
        });
    }

    fn name(&self, source: &str, target: &str) -> [u64; 2] {
        self.keys.each_ref().map(|key| key.hash_one((source, target)))
    }

    fn facts(&self, len: u64, modified: i64) -> u64 {
        self.keys[0].hash_one((len, modified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn unchanged_means_name_length_and_time() {
        let item = |source: &str, target: &str| Item::new(source, target);
        let facts = |len, nanos| Facts { len: Some(len), modified: Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)) };
        let mut finished = Finished::default();
        for (source, target, len, modified) in [("a", "x/a", 5, 7), ("b", "x/b", 5, 7), ("b", "x/b", 6, 8), ("c", "x/c", 0, 7)] {
            finished.add(source, target, len, modified);
        }
        finished.sort();
        assert_eq!(finished.len(), 3);
        assert!(finished.has(&item("a", "x/a"), &facts(5, 7)));
        assert!(!finished.has(&item("a", "x/a"), &facts(5, 8)), "touched");
        assert!(!finished.has(&item("a", "x/a"), &facts(4, 7)), "shorter");
        assert!(!finished.has(&item("a", "a"), &facts(5, 7)), "elsewhere");
        assert!(finished.has(&item("b", "x/b"), &facts(6, 8)));
        assert!(!finished.has(&item("b", "x/b"), &facts(5, 7)), "replaced by a later one");
        assert!(!finished.has(&item("d", "x/d"), &facts(5, 7)));
        assert!(!finished.has(&item("a", "x/a"), &Facts { len: Some(5), modified: None }));
    }
}
