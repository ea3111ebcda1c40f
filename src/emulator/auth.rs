//! Who is asking, and whether they may: Shared Key, account and service SAS, public access ("Authorize with Shared Key",
//! "Create an account SAS", "Create a service SAS", "SAS error codes").
//!
//! First the signature, then the limits the signer set, then the right for the operation; each failure has its own code. Every
//! refused signature is answered with the string the server signed, as the service does it.

use super::errors::{self as e, Failure, Outcome};
use super::grants::Grant;
use super::http::{Head, Query};
use super::route::{Need, Op};
use super::state::{Access, Account, Container, Model};
use super::time::{self, SECOND, Ticks};
use crate::rest::auth::sas::{self, Fields};
use crate::rest::auth::shared_key::{self, ToSign};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

/// Clock difference allowed between client and service.
const SKEW: Ticks = 15 * 60 * SECOND;

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// Holds the account's key.
    Key,
    /// Holds a SAS with these letters.
    Sas { letters: String, overrides: Overrides },
    /// Nobody in particular, where access is public.
    Anonymous,
}

/// `rscc` and friends: headers of Get Blob that a SAS replaces.
pub(crate) type Overrides = Vec<(&'static str, String)>;

impl Caller {
    /// Whether a right is there. The key has all.
    pub(crate) fn may(&self, letter: char) -> bool {
        match self {
            Caller::Key => true,
            Caller::Sas { letters, .. } => letters.contains(letter),
            Caller::Anonymous => false,
        }
    }

    /// Refuses to replace a blob with a SAS that may only create.
    ///
    /// # Errors
    /// 403 `UnauthorizedBlobOverwrite`.
    pub(crate) fn may_write(&self, exists: bool) -> Outcome<()> {
        if exists && !self.may('w') { Err(e::UNAUTHORIZED_OVERWRITE.into()) } else { Ok(()) }
    }
}

/// What is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) model: &'a Model,
    pub(crate) account: &'a Account,
    pub(crate) container: &'a str,
    pub(crate) blob: &'a str,
    pub(crate) op: Op,
    pub(crate) version: &'static str,
    pub(crate) now: Ticks,
    /// The request came over TLS.
    pub(crate) secure: bool,
}

impl Asked<'_> {
    /// Lets a request in or says why not.
    ///
    /// # Errors
    /// 400, 401, 403, 404, by the tables of the reference's error pages.
    pub(crate) fn authorise(&self, head: &Head) -> Outcome<Caller> {
        let need = self.op.need();
        match head.header("authorization") {
            Some(value) => {
                self.by_header(head, value)?;
                Ok(Caller::Key)
            }
            None if head.parameter("sig").is_some() => self.by_sas(&head.query, head.peer, need),
            None => self.anonymously(need),
        }
    }

    /// The right to read the source of a copy that lies in this same account: by its own SAS, by the key the copy itself was
    /// signed with, or because it is public.
    ///
    /// # Errors
    /// As [`authorise`](Asked::authorise).
    pub(crate) fn authorise_source(&self, query: &Query, peer: IpAddr, caller: &Caller) -> Outcome<()> {
        let need = self.op.need();
        if query.parameters().iter().any(|(name, _)| name == "sig") {
            return self.by_sas(query, peer, need).map(|_| ());
        }
        match caller {
            Caller::Key => Ok(()),
            _ => self.anonymously(need).map(|_| ()),
        }
    }

    fn by_header(&self, head: &Head, value: &str) -> Outcome<()> {
        let (scheme, credential) = value.split_once(' ').unwrap_or((value, ""));
        match scheme {
            "SharedKey" | "SharedKeyLite" => {}
            // There is no directory here that could have issued a token for this service.
            "Bearer" if self.version >= "2019-12-12" => {
                return Err(Failure::from(e::INVALID_TOKEN).with_header("WWW-Authenticate", CHALLENGE));
            }
            _ => return Err(e::INVALID_AUTH_INFO.into()),
        }
        let (name, signature) = credential.trim().split_once(':').ok_or(e::INVALID_AUTH_INFO)?;
        if name != self.account.name {
            return Err(Failure::auth(format!("The account '{name}' in the Authorization header is not the one of the URL.")));
        }
        for header in SIGNED_ONCE {
            if head.headers.all(header).count() > 1 {
                return Err(Failure::header(header, head.header(header).unwrap_or("")));
            }
        }
        let date = head.header("x-ms-date").or_else(|| head.header("date"));
        match date.map(time::parse_http_date) {
            None => return Err(Failure::auth("Either the date header or the x-ms-date header has to be in the request.")),
            Some(None) => {
                return Err(Failure::auth(format!("The date header '{}' is not in a format understood.", date.unwrap_or(""))));
            }
            Some(Some(sent)) if sent.abs_diff(self.now) > SKEW => {
                let now = time::http_date(self.now);
                let sent = date.unwrap_or("");
                return Err(Failure::auth(format!(
                    "Request date header too old: '{sent}', and the server's clock says '{now}'."
                )));
            }
            Some(Some(_)) => {}
        }
        let to_sign = ToSign {
            method: &head.method,
            account: &self.account.name,
            path: &head.path,
            query: head.query.parameters(),
            headers: &head.headers.to_list(),
            version: self.version,
        };
        let string = match scheme {
            "SharedKeyLite" => shared_key::lite_string_to_sign(&to_sign),
            _ => shared_key::string_to_sign(&to_sign),
        };
        if same(&shared_key::sign(&self.account.key, &string), signature) {
            return Ok(());
        }
        Err(Failure::auth(format!(
            "The MAC signature found in the HTTP request '{signature}' is not the same as any computed signature. \
             Server used following string to sign: '{string}'."
        )))
    }

    /// The signature in a query, if it is genuine: its fields.
    fn signed(&self, query: &Query) -> Outcome<Arc<Grant>> {
        if let Some(known) = self.account.grants.find(query.text(), self.container, self.blob) {
            return Ok(known);
        }
        let parameters = query.parameters();
        let fields = Fields::from_query(parameters);
        let signature = parameters.iter().find(|(name, _)| name == "sig").map_or("", |(_, value)| value);
        let version = fields.sv.as_deref().ok_or_else(|| Failure::auth("sv is mandatory. Cannot be empty"))?;
        let mut blob = None;
        let string = if fields.is_account() {
            sas::account_string_to_sign(&self.account.name, &fields)
        } else {
            match fields.sr.as_deref() {
                Some("c") => {}
                Some("b" | "bs" | "bv") => blob = Some(self.blob),
                other => return Err(Failure::auth(format!("sr is mandatory. '{}' is not supported", other.unwrap_or("")))),
            }
            let mut fields = fields.clone();
            if fields.sr.as_deref() == Some("bv") {
                fields.snapshot = parameters.iter().find(|(name, _)| name == "versionid").map(|(_, value)| value.clone());
            } else if fields.sr.as_deref() != Some("bs") {
                fields.snapshot = None;
            }
            let named = blob.filter(|name| !name.is_empty());
            let resource = sas::canonical_resource(version, &self.account.name, self.container, named);
            sas::service_string_to_sign(&resource, &fields)
        };
        if !same(&shared_key::sign(&self.account.key, &string), signature) {
            return Err(Failure::auth(format!("Signature did not match. String to sign used was {string}")));
        }
        Ok(self.account.grants.add(query.text(), self.container, blob, fields))
    }

    fn by_sas(&self, query: &Query, peer: IpAddr, need: Need) -> Outcome<Caller> {
        let grant = self.signed(query)?;
        let fields = &grant.fields;
        let is_account = fields.is_account();
        let terms = self.terms(fields, is_account)?;
        self.check_times(&terms)?;
        if let Some(range) = fields.sip.as_deref()
            && !ip_allowed(range, peer)
        {
            return Err(Failure::from(e::SOURCE_IP_MISMATCH).detail("SourceIP", peer.to_string()));
        }
        if fields.spr.as_deref() == Some("https") && !self.secure {
            return Err(e::PROTOCOL_MISMATCH.into());
        }
        if need.any_of.is_empty() {
            return Err(e::AUTHZ_FAILURE.into());
        }
        if is_account {
            if !fields.ss.as_deref().unwrap_or("").contains('b') {
                return Err(e::SERVICE_MISMATCH.into());
            }
            if !fields.srt.as_deref().unwrap_or("").contains(need.resource) && self.op != Op::GetAccountInformation {
                return Err(e::RESOURCE_TYPE_MISMATCH.into());
            }
        } else if !need.service_sas {
            return Err(e::AUTHZ_FAILURE.into());
        }
        let letters = terms.permission.unwrap_or_default().into_owned();
        if !letters.contains(|c| need.any_of.contains(c)) {
            return Err(e::PERMISSION_MISMATCH.into());
        }
        let overrides = [
            ("Cache-Control", &fields.rscc),
            ("Content-Disposition", &fields.rscd),
            ("Content-Encoding", &fields.rsce),
            ("Content-Language", &fields.rscl),
            ("Content-Type", &fields.rsct),
        ];
        let overrides = overrides.into_iter().filter_map(|(name, value)| value.clone().map(|v| (name, v))).collect();
        Ok(Caller::Sas { letters, overrides })
    }

    /// Start, expiry and permission, from the token and its stored policy.
    fn terms<'f>(&self, fields: &'f Fields, is_account: bool) -> Outcome<Terms<'f>> {
        let field = |text: &'f Option<String>| text.as_deref().map(Cow::Borrowed);
        let own = Terms { start: field(&fields.st), expiry: field(&fields.se), permission: field(&fields.sp) };
        let Some(id) = fields.si.as_deref().filter(|_| !is_account) else { return Ok(own) };
        let container =
            self.account.container(self.container).map_err(|_| Failure::auth("The policy's container does not exist."))?;
        let held = container.hold(self.model, &self.account.name)?;
        let stored = held.info.policies.iter().find(|p| p.id == id);
        let stored = stored.ok_or_else(|| Failure::auth(format!("There is no stored access policy '{id}'.")))?;
        let one = |name: &'static str, own: Option<Cow<'f, str>>, stored: &Option<String>| match (own, stored) {
            // [I]: the reference says the request fails; the code is inferred.
            (Some(value), Some(_)) => {
                Err(Failure::query(name, value.into_owned(), "The field is in the stored access policy too."))
            }
            (own, stored) => Ok(own.or_else(|| stored.clone().map(Cow::Owned))),
        };
        Ok(Terms {
            start: one("st", own.start, &stored.start)?,
            expiry: one("se", own.expiry, &stored.expiry)?,
            permission: one("sp", own.permission, &stored.permission)?,
        })
    }

    fn check_times(&self, terms: &Terms<'_>) -> Outcome<()> {
        let read = |name: &str, text: &str| {
            time::parse_iso(text).ok_or_else(|| Failure::auth(format!("{name} is not a valid UTC time: '{text}'")))
        };
        let expiry = terms.expiry.as_deref().ok_or_else(|| Failure::auth("se is mandatory. Cannot be empty"))?;
        let (expiry, now) = (read("se", expiry)?, self.now);
        let outside = |what: &str| {
            Failure::auth(format!(
                "Signed expiry time [{}] and signed start time [{}] do not include now [{}]: {what}",
                terms.expiry.as_deref().unwrap_or(""),
                terms.start.as_deref().unwrap_or(""),
                time::http_date(now),
            ))
        };
        if expiry <= now {
            return Err(outside("it has expired"));
        }
        match terms.start.as_deref().map(|text| read("st", text)).transpose()? {
            Some(start) if start > now => Err(outside("it is not valid yet")),
            _ => Ok(()),
        }
    }

    fn anonymously(&self, need: Need) -> Outcome<Caller> {
        let access = self
            .account
            .container(self.container)
            .and_then(|c: Arc<Container>| c.hold(self.model, &self.account.name).map(|held| held.info.access))
            .unwrap_or(Access::Private);
        if need.public.is_some_and(|wanted| access >= wanted) {
            return Ok(Caller::Anonymous);
        }
        Err(if self.version >= "2019-12-12" {
            Failure::from(e::NO_AUTH).with_header("WWW-Authenticate", CHALLENGE)
        } else {
            e::RESOURCE_NOT_FOUND.into()
        })
    }
}

/// From when to when a signature lets somebody in, and to what.
struct Terms<'f> {
    start: Option<Cow<'f, str>>,
    expiry: Option<Cow<'f, str>>,
    permission: Option<Cow<'f, str>>,
}

/// Where a token could be had, as the service says it. The tenant is made up.
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/00000000-0000-0000-0000-000000000000/oauth2/authorize resource_id=https://storage.azure.com";

/// Headers in the string to sign that may stand only once. [I] for the code.
const SIGNED_ONCE: &[&str] = &[
    "content-encoding",
    "content-language",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
    "x-ms-date",
];

/// Equality that takes the same time wherever two signatures differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differ, (x, y)| differ | (x ^ y)) == 0
}

fn ip_allowed(range: &str, peer: IpAddr) -> bool {
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    match (low.trim().parse::<IpAddr>(), high.trim().parse::<IpAddr>()) {
        (Ok(low), Ok(high)) => low <= peer.to_canonical() && peer.to_canonical() <= high,
        _ => false,
    }
}
