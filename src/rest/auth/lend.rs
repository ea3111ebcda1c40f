//! Letting the service read a blob in our place: what a copy's source URL carries.
//!
//! A SAS is passed on as it is. A key is not: from it comes a SAS that can read this one blob, for an hour. It is made anew for
//! each request, which costs one signature, so that no copy outlives it and nobody has to keep it.

use super::sas::{Fields, Token, mint_with};
use crate::rest::VERSION;
use crate::rest::location::Scheme;
use std::time::{Duration, SystemTime};

/// How long what is made from a key is good for: far longer than a request and its retries take, wrong clocks included.
const GOOD_FOR: Duration = Duration::from_secs(60 * 60);

/// The blob that is to be read.
#[derive(Debug, Clone, Copy)]
pub struct Lending<'a> {
    /// Its container, raw.
    pub container: &'a str,
    /// Its name, raw.
    pub blob: &'a str,
    /// How it will be read.
    pub scheme: Scheme,
    /// The present.
    pub now: SystemTime,
}

/// A SAS for reading this one blob. Without a start: a clock that is ahead would put it into the future.
pub(super) fn read_only(account: &str, sign: impl FnOnce(&str) -> String, blob: &Lending<'_>) -> Token {
    let expiry = jiff::Timestamp::try_from(blob.now + GOOD_FOR).unwrap_or(jiff::Timestamp::MAX);
    let fields = Fields {
        sv: Some(VERSION.to_owned()),
        sr: Some("b".to_owned()),
        sp: Some("r".to_owned()),
        se: Some(expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        spr: (blob.scheme == Scheme::Https).then(|| "https".to_owned()),
        ..Fields::default()
    };
    mint_with(account, sign, &fields, Some((blob.container, Some(blob.blob))))
}
