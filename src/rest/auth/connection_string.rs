//! Connection strings: `AccountName=…;AccountKey=…;EndpointSuffix=…`.
//! Source: "Configure Azure Storage connection strings", Azure documentation.

use super::sas::Token;
use super::sas_credential::SasCredential;
use super::shared_key::{DEV_ACCOUNT, DEV_KEY, SharedKey};
use super::{Found, Inputs};
use crate::error::{Error, Kind, Result};
use crate::rest::location::Location;
use crate::secret::Secret;
use std::sync::Arc;

/// What a connection string says about the Blob service.
#[derive(Debug)]
pub struct ConnectionString {
    /// Where the service is, with the account.
    pub endpoint: Location,
    key: Option<Secret>,
    sas: Option<Token>,
}

fn refused(what: &str, advice: &str) -> Error {
    Error::new(Kind::Usage, format!("cannot use the connection string: {what}")).with_advice(advice)
}

impl ConnectionString {
    /// Takes one apart. Keys are compared without case, split from their values at the first `=`; empty segments are passed
    /// over, unknown keys too.
    ///
    /// # Errors
    /// `Usage`, without showing any value of it.
    pub fn parse(text: &Secret) -> Result<ConnectionString> {
        let text = text.expose().trim().trim_matches(['"', '\'']);
        let mut pairs: Vec<(String, &str)> = Vec::new();
        for segment in text.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            let (name, value) = segment.split_once('=').ok_or_else(|| {
                refused("a part between semicolons has no =", "copy the whole string and put it in quotes: it has semicolons")
            })?;
            pairs.push((name.trim().to_ascii_lowercase(), value.trim()));
        }
        let get = |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, v)| *v).filter(|v| !v.is_empty());
        if get("usedevelopmentstorage").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
            let endpoint = Location::parse(&format!("http://127.0.0.1:10000/{DEV_ACCOUNT}"))?;
            return Ok(ConnectionString { endpoint, key: Some(Secret::new(DEV_KEY)), sas: None });
        }
        let account = get("accountname");
        let mut endpoint = match (get("blobendpoint"), account) {
            (Some(url), _) => Location::parse(url)?,
            (None, Some(account)) => {
                let scheme = get("defaultendpointsprotocol").unwrap_or("https");
                let suffix = get("endpointsuffix").unwrap_or("core.windows.net");
                Location::parse(&format!("{scheme}://{account}.blob.{suffix}"))?
            }
            (None, None) => {
                return Err(refused(
                    "it names neither an account nor a BlobEndpoint",
                    "it needs AccountName=…;AccountKey=… or BlobEndpoint=…;SharedAccessSignature=…",
                ));
            }
        };
        if let Some(account) = account {
            endpoint = endpoint.with_account(account);
        }
        let key = get("accountkey").map(Secret::new);
        let sas = match get("sharedaccesssignature") {
            Some(token) => Some(Token::parse(token)?),
            None => endpoint.sas.take(),
        };
        if key.is_some() && sas.is_some() {
            return Err(refused("it has both AccountKey and SharedAccessSignature", "leave one of them out"));
        }
        Ok(ConnectionString { endpoint, key, sas })
    }

    /// The account key in it.
    pub fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// The credential in it; `None` where it only names an endpoint.
    ///
    /// # Errors
    /// `Usage` for a malformed key.
    fn credential(&self) -> Found {
        Ok(match (&self.key, &self.sas) {
            (Some(key), _) => {
                let account = self.endpoint.account.as_deref().unwrap_or_default();
                Some(Arc::new(SharedKey::new(account, key)?))
            }
            (None, Some(token)) => Some(Arc::new(SasCredential::new(token.clone(), self.endpoint.scheme))),
            (None, None) => None,
        })
    }
}

/// The string is for this place where both name the same account, or else the same host.
pub(super) fn find(location: &Location, inputs: &Inputs) -> Found {
    let Some(text) = &inputs.connection_string else { return Ok(None) };
    let string = ConnectionString::parse(text)?;
    let same = match (&location.account, &string.endpoint.account) {
        (Some(wanted), Some(given)) => wanted == given,
        _ => location.host == string.endpoint.host,
    };
    if same { string.credential() } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAS: &str = "sv=2025-11-05&sr=c&sp=w&sig=HaBIaU9149nq7JWzzfXNZvrL8PBBp1tyS%2BwNrvoMFCI%3D";

    fn parse(text: &str) -> Result<ConnectionString> {
        ConnectionString::parse(&Secret::new(text))
    }

    #[test]
    fn endpoints_and_credentials() {
        let dev = "http://127.0.0.1:10000/devstoreaccount1";
        for (text, endpoint, credential) in [
            ("UseDevelopmentStorage=true".to_owned(), dev, Some("account key")),
            (format!("AccountName=acct;AccountKey={DEV_KEY}"), "https://acct.blob.core.windows.net/", Some("account key")),
            (
                format!(
                    ";;defaultEndpointsProtocol=http; ACCOUNTNAME=acct ;accountkey={DEV_KEY};EndpointSuffix=core.chinacloudapi.cn;"
                ),
                "http://acct.blob.core.chinacloudapi.cn/",
                Some("account key"),
            ),
            (
                format!(
                    "AccountName=devstoreaccount1;AccountKey={DEV_KEY};BlobEndpoint={dev};QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
                ),
                dev,
                Some("account key"),
            ),
            (
                format!("BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature=?{SAS}"),
                "https://acct.blob.core.windows.net/",
                Some("SAS"),
            ),
            (format!("BlobEndpoint=https://files.example.org?{SAS}"), "https://files.example.org/", Some("SAS")),
            ("BlobEndpoint=https://files.example.org".to_owned(), "https://files.example.org/", None),
        ] {
            let string = parse(&text).unwrap();
            assert_eq!(string.endpoint.safe().to_string(), endpoint, "{text}");
            assert_eq!(string.credential().unwrap().map(|c| c.name()), credential, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_showing_it() {
        for text in [
            "secret".to_owned(),
            "AccountKey=c2VjcmV0".to_owned(),
            format!("AccountName=a;AccountKey=c2VjcmV0;SharedAccessSignature={SAS}"),
            "AccountName=a;DefaultEndpointsProtocol=ftp".to_owned(),
            "AccountName=a;SharedAccessSignature=sv=1".to_owned(),
        ] {
            let error = parse(&text).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{text}");
            assert!(!format!("{error:?}").contains("c2VjcmV0") && !format!("{error:?}").contains("secret"), "{error:?}");
        }
        assert!(parse("AccountName=a;AccountKey=!").unwrap().credential().is_err());
    }

    #[test]
    fn it_counts_for_its_own_account_only() {
        let inputs = Inputs { connection_string: Some(Secret::new("UseDevelopmentStorage=true")), ..Inputs::default() };
        let found = |url: &str| find(&Location::parse(url).unwrap(), &inputs).unwrap().is_some();
        assert!(found("http://127.0.0.1:10000/devstoreaccount1/c"));
        assert!(!found("https://acct.blob.core.windows.net/c"));
    }
}
