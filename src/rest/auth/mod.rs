//! Who we are to the service. A kind of credential is a file here and a line in [`KINDS`].
//!
//! A credential is asked on **every try** of every request, inside the retry loop: [`Credential::ready`] first (where a kind
//! that needs a token fetches or refreshes it), then [`Credential::sign`] with the final head.

pub mod anonymous;
pub mod connection_string;
pub mod environment;
pub mod lend;
pub mod need;
pub mod sas;
pub mod sas_credential;
pub mod shared_key;

use self::sas::Token;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::rest::headers::HeaderList;
use crate::rest::location::Location;
use crate::secret::Secret;
pub use lend::Lending;
pub use need::{Level, Need};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

/// A future that may move between threads.
pub type Task<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The head of a request that is about to be sent.
pub struct Head<'a> {
    /// Method, upper case.
    pub method: &'a str,
    /// Account, where the place tells it.
    pub account: &'a str,
    /// Path as on the wire.
    pub path: &'a str,
    /// Own parameters, not encoded.
    pub query: &'a [(&'static str, String)],
    /// Headers as on the wire; a credential adds to them.
    pub headers: &'a mut HeaderList,
    /// What a credential adds to the query, byte for byte; empty at first.
    pub query_suffix: &'a mut String,
}

/// One way of saying who we are.
pub trait Credential: Send + Sync {
    /// Short name for messages: `SAS`, `account key`.
    fn name(&self) -> &'static str;

    /// Gets ready to sign: called before each try, from the request's own task. Where there is nothing to fetch, done at once.
    ///
    /// # Errors
    /// `AccessRefused` where there is no way to get ready.
    fn ready(&self) -> Task<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Adds what proves who we are to a head that is otherwise complete. Called after [`Credential::ready`], on each try.
    ///
    /// # Errors
    /// `Usage` where the request cannot be signed this way.
    fn sign(&self, head: &mut Head<'_>) -> Result<()>;

    /// The fields of the SAS, if it is one.
    fn sas(&self) -> Option<&sas::Fields> {
        None
    }

    /// What can be known to be missing before the first request.
    ///
    /// # Errors
    /// `AccessRefused`, naming what is missing.
    fn check(&self, need: Need, now: SystemTime) -> Result<()> {
        let _ = (need, now);
        Ok(())
    }

    /// What another party appends to a blob's URL to read that blob in our place. `None` where it needs nothing, or where this
    /// kind cannot be lent. Called for each request that names a source.
    fn lend(&self, blob: &Lending<'_>) -> Option<Token> {
        let _ = blob;
        None
    }
}

/// What a user gave beside the URL.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Account the key belongs to.
    pub account: Option<String>,
    /// Account key.
    pub key: Option<Secret>,
    /// Connection string.
    pub connection_string: Option<Secret>,
    /// SAS for URLs that carry none.
    pub sas_token: Option<Secret>,
}

/// What a way of finding a credential comes to; `None` where the inputs do not hold one for this place.
pub type Found = Result<Option<Arc<dyn Credential>>>;

/// One way of finding a credential.
pub struct Kind {
    /// Where it is looked for, for messages.
    pub name: &'static str,
    /// Makes the credential.
    pub find: fn(&Location, &Inputs) -> Found,
}

/// Every way, in order: the first that finds something is used.
pub const KINDS: &[Kind] = &[
    Kind { name: "SAS in the URL", find: sas_credential::from_url },
    Kind { name: "connection string", find: connection_string::find },
    Kind { name: "SAS from the environment", find: sas_credential::from_inputs },
    Kind { name: "account key", find: shared_key::find },
    Kind { name: "the emulator's well-known key", find: shared_key::find_well_known },
    Kind { name: "anonymous", find: anonymous::find },
];

/// The credential for a place.
///
/// # Errors
/// `Usage` for one that cannot be right: a malformed key, a connection string without what it needs, a key of another account.
pub fn choose(location: &Location, inputs: &Inputs) -> Result<Arc<dyn Credential>> {
    for kind in KINDS {
        if let Some(credential) = (kind.find)(location, inputs)? {
            tracing::debug!(kind = kind.name, place = %location.safe(), "credential chosen");
            return Ok(credential);
        }
    }
    Err(Error::new(ErrorKind::Usage, format!("there is no credential for {}", location.safe())))
}

#[cfg(test)]
mod tests {
    use super::shared_key::{DEV_ACCOUNT, DEV_KEY};
    use super::*;

    const SAS: &str = "sv=2025-11-05&sr=c&sp=w&sig=HaBIaU9149nq7JWzzfXNZvrL8PBBp1tyS%2BwNrvoMFCI%3D";

    fn chosen(url: &str, inputs: &Inputs) -> Result<&'static str> {
        choose(&Location::parse(url).unwrap(), inputs).map(|c| c.name())
    }

    #[test]
    fn order_of_the_kinds() {
        let url = "https://acct.blob.core.windows.net/c";
        let all = Inputs {
            account: Some("acct".into()),
            key: Some(Secret::new(DEV_KEY)),
            connection_string: Some(Secret::new(format!("AccountName=acct;AccountKey={DEV_KEY}"))),
            sas_token: Some(Secret::new(SAS)),
        };
        assert_eq!(chosen(&format!("{url}?{SAS}"), &all).unwrap(), "SAS");
        assert_eq!(chosen(url, &all).unwrap(), "account key");
        let no_string = Inputs { connection_string: None, ..all.clone() };
        assert_eq!(chosen(url, &no_string).unwrap(), "SAS");
        let key_only = Inputs { sas_token: None, ..no_string };
        assert_eq!(chosen(url, &key_only).unwrap(), "account key");
        assert_eq!(chosen(url, &Inputs::default()).unwrap(), "anonymous");
        assert_eq!(chosen("http://127.0.0.1:10000/devstoreaccount1/c", &Inputs::default()).unwrap(), "account key");
        assert_eq!(chosen("http://10.0.0.1:10000/devstoreaccount1/c", &Inputs::default()).unwrap(), "anonymous");
    }

    #[test]
    fn key_of_another_account_is_an_error_and_not_an_anonymous_request() {
        let inputs = Inputs { account: Some("other".into()), key: Some(Secret::new(DEV_KEY)), ..Inputs::default() };
        let error = chosen("https://acct.blob.core.windows.net/c", &inputs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("other") && error.to_string().contains("acct"), "{error}");
        // The emulator's account has a key of its own.
        assert_eq!(chosen(&format!("http://127.0.0.1:10000/{DEV_ACCOUNT}/c"), &inputs).unwrap(), "account key");
        // Without an account's name the key is taken to belong to the URL's.
        let nameless = Inputs { account: None, ..inputs };
        assert_eq!(chosen("https://acct.blob.core.windows.net/c", &nameless).unwrap(), "account key");
    }

    #[test]
    fn malformed_key_is_refused() {
        let inputs = Inputs { key: Some(Secret::new("oops!")), ..Inputs::default() };
        assert_eq!(chosen("https://acct.blob.core.windows.net/c", &inputs).unwrap_err().kind(), ErrorKind::Usage);
        let inputs = Inputs { sas_token: Some(Secret::new("sv=1")), ..Inputs::default() };
        assert_eq!(chosen("https://acct.blob.core.windows.net/c", &inputs).unwrap_err().kind(), ErrorKind::Usage);
    }
}
