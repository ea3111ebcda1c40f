//! What the service makes up (ETags, ids, snapshots, markers), paired with what the emulator made up in the same place.
//!
//! The pairing is also a check: a recorded ETag that comes back must come back here, and a new one must be new here.

use std::collections::BTreeMap;

use super::recording::{decoded, encoded};

#[derive(Default)]
pub(crate) struct Tokens {
    ours: BTreeMap<String, String>,
    theirs: BTreeMap<String, String>,
}

impl Tokens {
    /// Notes that the emulator says `got` where the service said `recorded`; an error if that contradicts an earlier pair.
    pub(crate) fn pair(&mut self, recorded: &str, got: &str) -> Result<(), String> {
        let (recorded, got) = (recorded.trim_matches('"'), got.trim_matches('"'));
        if recorded.is_empty() || got.is_empty() {
            return Ok(());
        }
        let before = self.ours.insert(recorded.to_owned(), got.to_owned());
        let other = self.theirs.insert(got.to_owned(), recorded.to_owned());
        match (before, other) {
            (Some(before), _) if before != got => Err("changed where it stayed the same in the recording".to_owned()),
            (_, Some(other)) if other != recorded => Err("stayed the same where it changed in the recording".to_owned()),
            _ => Ok(()),
        }
    }

    /// Ours for a whole value, quoted or not.
    pub(crate) fn ours(&self, recorded: &str) -> Option<String> {
        let inner = recorded.trim_matches('"');
        let found = self.ours.get(inner)?;
        Some(if inner.len() == recorded.len() { found.clone() } else { format!("\"{found}\"") })
    }

    /// Text with every recorded token in it replaced by ours.
    pub(crate) fn replaced(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (recorded, ours) in &self.ours {
            // Short markers could be part of anything.
            if recorded.len() > 8 {
                text = text.replace(recorded.as_str(), ours);
            }
        }
        text
    }

    /// A raw query string with the values that are tokens replaced; what is none keeps its bytes.
    pub(crate) fn replaced_query(&self, query: &str) -> String {
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) => match self.ours(&decoded(value)) {
                Some(ours) => format!("{name}={}", encoded(&ours)),
                None => pair.to_owned(),
            },
            None => pair.to_owned(),
        };
        query.split('&').map(pair).collect::<Vec<_>>().join("&")
    }
}
