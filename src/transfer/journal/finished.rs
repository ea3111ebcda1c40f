//! What earlier runs of a job finished, so that a resume leaves it alone as long as it has not changed since.
//!
//! Kept as hashes with random keys: 32 bytes an object, whatever its name. Two names are taken for one with a probability of
//! 2^-128, and a changed file for an unchanged one with 2^-64.

use super::time::{nanos, of_micros};
use crate::endpoint::{Facts, Item};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

/// The reason under which such objects are skipped.
pub const FINISHED_EARLIER: &str = "finished earlier, and unchanged since";

/// See the module's text.
#[derive(Debug, Default)]
pub struct Finished {
    keys: [RandomState; 2],
    entries: Vec<Entry>,
    /// Of what was changed where it is: the folders it was in.
    folders: HashSet<[u64; 2]>,
    /// What was looked for and not found.
    missed: HashSet<[u64; 2]>,
    /// See [`Finished::first_under`].
    first_under: Option<String>,
}

/// See [`Finished::absence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// An earlier run is done with it, or with what was in it.
    Finished,
    /// An earlier run looked for it in vain.
    Missed,
    /// No earlier run has come to it, or it died before it could write that down.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    name: [u64; 2],
    facts: u64,
    /// Microseconds since 1970.
    ended: i64,
}

impl Finished {
    /// When the object was finished with this length and time of change, if it was. Never for a source that has neither.
    pub fn when(&self, item: &Item, facts: &Facts) -> Option<SystemTime> {
        let (len, modified) = (facts.len?, facts.modified?);
        let first = || self.find(&item.source, &format!("{}{}", self.first_under.as_ref()?, item.target));
        let entry = self.find(&item.source, &item.target).or_else(first);
        let entry = entry.filter(|entry| entry.facts == self.facts(len, nanos(modified)))?;
        // Kept to the microsecond that had begun.
        Some(of_micros(entry.ended.saturating_add(1)))
    }

    /// The first run may have put this before what is called a target now: it made the folder that targets are relative to.
    #[must_use]
    pub fn first_under(self, folder: String) -> Finished {
        Finished { first_under: Some(folder), ..self }
    }

    /// Whether the object was finished when it had this length and time of change. Never for a source that has neither.
    pub fn has(&self, item: &Item, facts: &Facts) -> bool {
        self.when(item, facts).is_some()
    }

    /// Why something that is changed where it is may not be there any more.
    pub fn absence(&self, name: &str) -> Absence {
        let name = name.trim_end_matches('/');
        let key = self.name(name, name);
        if self.find(name, name).is_some() || self.folders.contains(&key) {
            Absence::Finished
        } else if self.missed.contains(&key) {
            Absence::Missed
        } else {
            Absence::Unknown
        }
    }

    fn find(&self, source: &str, target: &str) -> Option<&Entry> {
        let name = self.name(source, target);
        let at = self.entries.binary_search_by_key(&name, |entry| entry.name).ok()?;
        self.entries.get(at)
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
    pub(super) fn add(&mut self, (source, target): (&str, &str), len: u64, modified: i64, ended: i64) {
        let entry = Entry { name: self.name(source, target), facts: self.facts(len, modified), ended };
        self.entries.push(entry);
    }

    /// Adds the folders above something that was changed where it is.
    pub(super) fn add_folders(&mut self, name: &str) {
        for (slash, _) in name.rmatch_indices('/') {
            let folder = &name[..slash];
            // Those above are there already.
            if !self.folders.insert(self.name(folder, folder)) {
                break;
            }
        }
    }

    /// Adds something that was not found.
    pub(super) fn add_missed(&mut self, name: &str) {
        let name = name.trim_end_matches('/');
        self.missed.insert(self.name(name, name));
    }

    /// Of two under one name the later stands.
    pub(super) fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.name);
        self.entries.dedup_by(|later, earlier| {
            let same = later.name == earlier.name;
            if same {
                *earlier = *later;
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
        for (source, target, len, modified, ended) in
            [("a", "x/a", 5, 7, 1), ("b", "x/b", 5, 7, 2), ("b", "x/b", 6, 8, 3), ("c", "x/c", 0, 7, 4)]
        {
            finished.add((source, target), len, modified, ended);
        }
        finished.sort();
        assert_eq!(finished.len(), 3);
        assert!(finished.has(&item("a", "x/a"), &facts(5, 7)));
        assert!(!finished.has(&item("a", "x/a"), &facts(5, 8)), "touched");
        assert!(!finished.has(&item("a", "x/a"), &facts(4, 7)), "shorter");
        assert!(!finished.has(&item("a", "a"), &facts(5, 7)), "elsewhere");
        assert_eq!(finished.when(&item("b", "x/b"), &facts(6, 8)), Some(SystemTime::UNIX_EPOCH + Duration::from_micros(3 + 1)));
        assert!(!finished.has(&item("b", "x/b"), &facts(5, 7)), "replaced by a later one");
        assert!(!finished.has(&item("d", "x/d"), &facts(5, 7)));
        assert!(!finished.has(&item("a", "x/a"), &Facts { len: Some(5), modified: None }));
    }

    #[test]
    fn what_is_not_there_was_finished_or_missed_or_is_not_known() {
        let mut finished = Finished::default();
        for name in ["d/e/a", "d/e/b", "d//c", "f"] {
            finished.add((name, name), 1, 1, 1);
            finished.add_folders(name);
        }
        finished.add_missed("gone/");
        finished.sort();
        for (name, absence) in [
            ("d/e/a", Absence::Finished),
            ("d/e", Absence::Finished),
            ("d/e/", Absence::Finished),
            ("d", Absence::Finished),
            ("f", Absence::Finished),
            ("gone", Absence::Missed),
            ("e", Absence::Unknown),
            ("d/e/a/b", Absence::Unknown),
        ] {
            assert_eq!(finished.absence(name), absence, "{name}");
        }
    }
}
