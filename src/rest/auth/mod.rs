//! Who we are to the service. A kind of credential is a file here and a line in [`KINDS`].
//!
//! A credential is asked on **every try** of every request, inside the retry loop: [`Credential::ready`] first (where an Entra
//! ID token will be fetched or refreshed), then [`Credential::sign`] with the final head.

pub mod sas;
pub mod shared_key;
