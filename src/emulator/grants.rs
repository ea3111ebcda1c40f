//! Shared access signatures that are known to be genuine, so that a client that sends thousands of requests with one has it taken
//! apart, and its signature computed, once.
//!
//! What is remembered cannot change: that this text was signed with the account's key for this resource, and what its fields say.
//! Whether it holds now, for this operation and this sender, is asked anew for each request. Nothing refused is remembered.

use super::state::lock;
use crate::rest::auth::sas::Fields;
use std::sync::{Arc, Mutex};

/// As many as different clients, or users of one client, have at the same time; with more nothing is lost but time.
const KEPT: usize = 8;

/// A genuine signature.
#[derive(Debug)]
pub(crate) struct Grant {
    token: Box<str>,
    container: Box<str>,
    /// The blob, where the signature is for that one alone.
    blob: Option<Box<str>>,
    pub(crate) fields: Fields,
}

/// The genuine signatures of an account that were used last.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<Vec<Arc<Grant>>>);

impl Grants {
    /// What is known of the signature in a query that is for this blob (or none) of this container.
    pub(crate) fn find(&self, query: &str, container: &str, blob: &str) -> Option<Arc<Grant>> {
        let token = token(query);
        let fits = |grant: &&Arc<Grant>| {
            *grant.token == *token && *grant.container == *container && grant.blob.as_deref().is_none_or(|own| own == blob)
        };
        lock(&self.0).iter().find(fits).cloned()
    }

    /// Remembers a signature that was found to be the account's for this container; for one blob of it, or for all.
    pub(crate) fn add(&self, query: &str, container: &str, blob: Option<&str>, fields: Fields) -> Arc<Grant> {
        let grant = Grant { token: token(query).into(), container: container.into(), blob: blob.map(Into::into), fields };
        let grant = Arc::new(grant);
        let mut all = lock(&self.0);
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push(Arc::clone(&grant));
        grant
    }
}

/// What is left of a query without the parameters before it that say what is asked for: no field of a signature among them, and
/// another one for each block.
fn token(query: &str) -> &str {
    let mut rest = query;
    while let Some((first, behind)) = rest.split_once('&') {
        match first.split_once('=') {
            Some(("comp" | "restype" | "blockid" | "timeout", _)) => rest = behind,
            _ => break,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_known_for_what_it_was_made_for() {
        let grants = Grants::default();
        grants.add("comp=block&blockid=AA%3D%3D&sv=1&sig=x", "c", None, Fields::default());
        grants.add("sv=2&sig=y", "c", Some("b"), Fields::default());
        for (query, container, blob, known) in [
            ("sv=1&sig=x", "c", "", true),
            ("comp=block&blockid=BB&sv=1&sig=x", "c", "any", true),
            ("sv=1&sig=x", "d", "any", false),
            ("sv=1&sig=x&sp=rwd", "c", "any", false),
            ("sp=rwd&sv=1&sig=x", "c", "any", false),
            ("sv=1&sig=X", "c", "any", false),
            ("sv=2&sig=y", "c", "b", true),
            ("sv=2&sig=y", "c", "b2", false),
            ("sv=2&sig=y", "c", "", false),
        ] {
            assert_eq!(grants.find(query, container, blob).is_some(), known, "{query} {container}/{blob}");
        }
        for i in 0..KEPT {
            grants.add(&format!("sv=3&sig={i}"), "c", None, Fields::default());
        }
        assert!(grants.find("sv=1&sig=x", "c", "").is_none());
    }
}
