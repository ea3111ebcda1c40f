//! The credential that appends a SAS to each request, and what can be said about a SAS before the first one.

use super::need::{Level, Need};
use super::sas::{Fields, Token};
use super::{Credential, Found, Head, Inputs, Lending};
use crate::error::{Error, Kind, Result};
use crate::rest::location::{Location, Scheme};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A start this far ahead of our clock may still be past by the service's.
const SKEW: Duration = Duration::from_secs(15 * 60);

/// A SAS ready for use.
pub struct SasCredential {
    token: Token,
    fields: Fields,
    /// Names of all its parameters, lower case.
    names: Vec<String>,
    scheme: Scheme,
    /// When it begins to hold and when it ends, where it says so in a way that can be read.
    starts: Option<SystemTime>,
    expires: Option<SystemTime>,
}

impl SasCredential {
    /// For requests over this scheme.
    pub fn new(token: Token, scheme: Scheme) -> SasCredential {
        let names = token.query().into_iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        let fields = token.fields();
        let time = |text: &Option<String>| text.as_deref().and_then(parse_time);
        let (starts, expires) = (time(&fields.st), time(&fields.se));
        SasCredential { fields, token, names, scheme, starts, expires }
    }
}

/// Reads a time as a SAS writes it: a date, or with minutes, seconds or fractions, in UTC.
pub(crate) fn parse_time(text: &str) -> Option<SystemTime> {
    let timestamp: jiff::Timestamp = match text.len() {
        10 => format!("{text}T00:00:00Z").parse().ok()?,
        _ => text.parse().ok()?,
    };
    SystemTime::try_from(timestamp).ok()
}

fn refused(what: String, advice: &str) -> Error {
    Error::new(Kind::AccessRefused, what).with_advice(advice)
}

impl Credential for SasCredential {
    fn name(&self) -> &'static str {
        "SAS"
    }

    fn sign(&self, head: &mut Head<'_>) -> Result<()> {
        if let Some((name, _)) = head.query.iter().find(|(name, _)| self.names.iter().any(|n| n == name)) {
            return Err(Error::new(
                Kind::Usage,
                format!("the SAS has a parameter {name} of its own, which this operation needs"),
            )
            .with_advice(format!("take {name}=… out of the URL")));
        }
        head.query_suffix.push_str(self.token.expose());
        Ok(())
    }

    fn lend(&self, _blob: &Lending<'_>) -> Option<Token> {
        Some(self.token.clone())
    }

    fn sas(&self) -> Option<&Fields> {
        Some(&self.fields)
    }

    fn check(&self, need: Need, now: SystemTime) -> Result<()> {
        let f = &self.fields;
        let past = |time: SystemTime, by: Duration| time.checked_add(by).is_none_or(|t| t <= now);
        if let Some(expiry) = &f.se
            && self.expires.is_some_and(|time| past(time, Duration::ZERO))
        {
            return Err(refused(
                format!("the SAS expired at {expiry} (parameter se)"),
                "make a new SAS; and check this machine's clock",
            ));
        }
        if let Some(start) = &f.st
            && self.starts.is_some_and(|time| now.checked_add(SKEW).is_some_and(|limit| time > limit))
        {
            let advice = "wait, or make a SAS that starts earlier; and check this machine's clock";
            return Err(refused(format!("the SAS is not valid before {start} (parameter st)"), advice));
        }
        if self.scheme == Scheme::Http && f.spr.as_deref() == Some("https") {
            return Err(refused(
                "the SAS is for https only (parameter spr), and the URL says http".into(),
                "write https:// in the URL",
            ));
        }
        if f.is_account() {
            self.check_account(need)?;
        } else if let Some(resource) = &f.sr {
            check_service(resource, need)?;
        }
        // Where a stored policy is named it may hold what is absent here.
        let Some(permissions) = &f.sp else { return Ok(()) };
        for letters in need.rights {
            if f.si.is_none() && !permissions.contains(|c| letters.contains(c)) {
                let wanted: Vec<String> = letters.chars().map(String::from).collect();
                return Err(refused(
                    format!("the SAS does not allow to {}: sp={permissions} has no {}", need.action, wanted.join(" or ")),
                    "make a SAS with that permission",
                ));
            }
        }
        Ok(())
    }
}

impl SasCredential {
    fn check_account(&self, need: Need) -> Result<()> {
        let f = &self.fields;
        if let Some(services) = &f.ss
            && !services.contains('b')
        {
            let what = format!("the SAS is not for blobs: ss={services} has no b");
            return Err(refused(what, "make a SAS for the Blob service"));
        }
        let (letter, name) = match need.level {
            Level::Service => ('s', "the account itself"),
            Level::Container => ('c', "containers"),
            Level::Object => ('o', "blobs"),
        };
        match &f.srt {
            Some(types) if !types.contains(letter) => Err(refused(
                format!("the SAS does not allow to {}: srt={types} has no {letter} ({name})", need.action),
                "make a SAS with that resource type",
            )),
            _ => Ok(()),
        }
    }
}

fn check_service(resource: &str, need: Need) -> Result<()> {
    if need.account_only {
        let what = format!(
            "the SAS does not allow to {}: only an account SAS or a key can, and this is one for a container or blob (sr={resource})",
            need.action
        );
        return Err(refused(what, "use an account SAS or the account key"));
    }
    if need.level == Level::Container && ["b", "bs", "bv"].contains(&resource) {
        let what = format!("the SAS does not allow to {}: it is for one blob (sr={resource})", need.action);
        return Err(refused(what, "make a SAS for the container (sr=c)"));
    }
    Ok(())
}

pub(super) fn from_url(location: &Location, _inputs: &Inputs) -> Found {
    Ok(location.sas.clone().map(|token| Arc::new(SasCredential::new(token, location.scheme)) as Arc<dyn Credential>))
}

pub(super) fn from_inputs(location: &Location, inputs: &Inputs) -> Found {
    let Some(text) = &inputs.sas_token else { return Ok(None) };
    let token = Token::parse(text.expose()).map_err(|e| e.context("cannot use AZURE_STORAGE_SAS_TOKEN"))?;
    Ok(Some(Arc::new(SasCredential::new(token, location.scheme))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIG: &str = "sig=HaBIaU9149nq7JWzzfXNZvrL8PBBp1tyS%2BwNrvoMFCI%3D";

    fn check(token: &str, scheme: Scheme, need: Need) -> Result<()> {
        let now = parse_time("2026-01-15T08:30:00Z").unwrap();
        SasCredential::new(Token::parse(&format!("{token}&{SIG}")).unwrap(), scheme).check(need, now)
    }

    #[test]
    fn what_will_do_passes() {
        for (token, need) in [
            ("sv=1&sr=c&sp=w&se=2030-01-01", Need::WRITE),
            ("sv=1&sr=c&sp=c&se=2026-01-15T08:30:01Z", Need::WRITE),
            ("sv=1&sr=c&sp=cwt&se=2030-01-01T00:00Z", Need::WRITE_TAGGED),
            ("sv=1&sr=c&sp=rl&st=2026-01-15T08:40:00.0000000Z", Need::LIST),
            ("sv=1&sr=c&si=policy", Need::DELETE),
            ("sv=1&sr=c&si=policy&sp=r", Need::DELETE),
            ("sv=1&sr=b&sp=w", Need::WRITE),
            ("sv=1&ss=b&srt=c&sp=c&spr=https,http", Need::CREATE_CONTAINER),
            ("sv=1&ss=bq&srt=s&sp=l", Need::LIST_CONTAINERS),
            ("sv=1&sr=c&sp=w&se=nonsense", Need::WRITE),
        ] {
            let result = check(token, Scheme::Http, need);
            assert!(result.is_ok(), "{token}: {result:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (token, need, words) in [
            ("sv=1&sr=c&sp=w&se=2026-01-15T08:29:59Z", Need::WRITE, "expired at 2026-01-15T08:29:59Z (parameter se)"),
            ("sv=1&sr=c&sp=w&se=2026-01-15", Need::WRITE, "expired at 2026-01-15 (parameter se)"),
            ("sv=1&sr=c&sp=w&st=2026-01-15T09:30:00Z", Need::WRITE, "not valid before"),
            ("sv=1&sr=c&sp=w&spr=https", Need::WRITE, "https only (parameter spr)"),
            ("sv=1&sr=c&sp=rl", Need::WRITE, "to write blobs: sp=rl has no c or w"),
            ("sv=1&sr=c&sp=cw", Need::WRITE_TAGGED, "sp=cw has no t"),
            ("sv=1&sr=c&sp=rw", Need::LIST, "to list blobs: sp=rw has no l"),
            ("sv=1&sr=b&sp=rwl", Need::LIST, "it is for one blob (sr=b)"),
            ("sv=1&sr=c&sp=rwcl", Need::CREATE_CONTAINER, "only an account SAS"),
            ("sv=1&sr=c&sp=l", Need::LIST_CONTAINERS, "only an account SAS"),
            ("sv=1&ss=q&srt=o&sp=w", Need::WRITE, "ss=q has no b"),
            ("sv=1&ss=b&srt=sc&sp=w", Need::WRITE, "srt=sc has no o"),
            ("sv=1&ss=b&srt=o&sp=w", Need::CREATE_CONTAINER, "srt=o has no c"),
        ] {
            let error = check(token, Scheme::Http, need).unwrap_err();
            assert_eq!(error.kind(), Kind::AccessRefused, "{token}");
            assert!(error.to_string().contains(words), "{token}: {error}");
        }
        assert!(check("sv=1&sr=c&sp=w&spr=https", Scheme::Https, Need::WRITE).is_ok());
    }

    #[test]
    fn own_parameters_are_not_sent_twice() {
        let credential = SasCredential::new(Token::parse(&format!("Comp=list&{SIG}")).unwrap(), Scheme::Https);
        let (mut headers, mut suffix) = (crate::rest::headers::HeaderList::default(), String::new());
        let query = [("comp", "block".to_owned())];
        let mut head =
            Head { method: "PUT", account: "a", path: "/c/b", query: &query, headers: &mut headers, query_suffix: &mut suffix };
        let error = credential.sign(&mut head).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        head.query = &[];
        credential.sign(&mut head).unwrap();
        assert_eq!(*head.query_suffix, format!("Comp=list&{SIG}"));
        assert!(headers.is_empty());
    }
}
