//! No credential: for containers that allow public access.

use super::{Credential, Found, Head, Inputs};
use crate::error::{Error, Kind, Result};
use crate::rest::location::Location;
use std::sync::Arc;

struct Anonymous;

impl Credential for Anonymous {
    fn name(&self) -> &'static str {
        "anonymous"
    }

    fn sign(&self, _head: &mut Head<'_>) -> Result<()> {
        Ok(())
    }
}

/// No credential, whatever was given.
pub fn nobody() -> Arc<dyn Credential> {
    Arc::new(Anonymous)
}

/// Always finds itself, except where what the user gave is for another account: that would only end in a refusal that does not
/// say why.
pub(super) fn find(location: &Location, inputs: &Inputs) -> Found {
    let given = inputs.key.as_ref().and(inputs.account.as_deref());
    if let (Some(given), Some(wanted)) = (given, &location.account)
        && given != wanted
    {
        return Err(Error::new(Kind::Usage, format!("the account key is for {given}, and the URL is of {wanted}"))
            .with_advice("set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY for the account in the URL, or unset them"));
    }
    Ok(Some(Arc::new(Anonymous)))
}
