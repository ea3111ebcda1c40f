//! Requests that tell what a credential may do, and that can change nothing.
//!
//! The service checks rights before it looks whether anything is there, then leases, then conditions, and the body last [I: the
//! order is gathered from answers; no page states it]. So a request that must fail for one of the later reasons tells whether
//! the right is there: refused with 401 or 403, it is not; with 404 or 412, it is.
//!
//! What is asked of writing cannot write, for reasons that do not depend on each other:
//! - Set Blob Metadata, Snapshot Blob and Delete Blob do nothing to a name that is not there, and none of them makes a blob or
//!   stages a block. That is why Put Blob and Put Block, which would, are not asked.
//! - The name has 128 random bits, unless the credential is for one blob only; then the name is that blob's, and the next two
//!   keep it as it is.
//! - `If-Match` demands an ETag that no blob has: 412 where there is a blob.
//! - `x-ms-lease-id` names a lease that nobody holds: 412 where there is a blob without a lease, and with another one.
//!
//! Delete Blob is not asked of that one blob: one of which only blocks are staged can be deleted, and has no ETag to demand another
//! of. Whether its SAS is taken for good, and what it says of itself, tell the right instead.
//!
//! Sources: "Set Blob Metadata", "Snapshot Blob", "Delete Blob", "Get Blob Tags", "Get Account Information", "Specifying conditional
//! headers for Blob service operations", Azure Storage REST reference.

use crate::error::{Error, Kind, Result};
use crate::rest::answer;
use crate::rest::auth::{Level, Need};
use crate::rest::client::{Client, Op};
use crate::rest::request::{Request, Response};
use http::{HeaderValue, Method};
use std::time::SystemTime;

/// A right, by the letter it has in a SAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// `l`: list blobs; of an account, containers.
    List,
    /// `r`
    Read,
    /// `c`: make blobs that are not there. `w` has it too.
    Create,
    /// `w`: replace and change blobs.
    Write,
    /// `d`
    Delete,
    /// `t`: read and set tags. Reading is what is asked.
    Tags,
}

impl Right {
    /// All that are asked about.
    pub const ALL: [Right; 6] = [Right::List, Right::Read, Right::Create, Right::Write, Right::Delete, Right::Tags];

    /// The letter.
    pub fn letter(self) -> char {
        match self {
            Right::List => 'l',
            Right::Read => 'r',
            Right::Create => 'c',
            Right::Write => 'w',
            Right::Delete => 'd',
            Right::Tags => 't',
        }
    }

    /// What it allows, in a word.
    pub fn word(self) -> &'static str {
        match self {
            Right::List => "list",
            Right::Read => "read",
            Right::Create => "create",
            Right::Write => "write",
            Right::Delete => "delete",
            Right::Tags => "tags",
        }
    }
}

/// What was found out about a right.
#[derive(Debug)]
pub enum Finding {
    /// It is there.
    Allowed,
    /// It is not; the error says why.
    Refused(Error),
    /// The answer tells neither.
    Unclear(Error),
}

/// What an answer told.
#[derive(Debug)]
pub struct Probed {
    /// Of the right.
    pub finding: Finding,
    /// Whether the container is there, where that was told, too.
    pub container: Option<bool>,
}

/// What is asked about.
#[derive(Debug, Clone)]
pub struct Target {
    /// Container; without one, listing is about containers, and the rest about a container that is not there.
    pub container: Option<String>,
    /// What of the container.
    pub scope: Scope,
}

/// Which names the credential is for.
#[derive(Debug, Clone)]
pub enum Scope {
    /// All that begin so: one is made up.
    Names(String),
    /// One blob, and the rights of its SAS, where they stand in it rather than in a stored policy.
    Blob(String, Option<String>),
    /// One snapshot or version of a blob, which the SAS names. What could change it is not asked.
    Moment(String),
}

/// An ETag that no blob has: the service's are times.
const NO_ETAG: HeaderValue = HeaderValue::from_static("\"0x0\"");

/// What made-up names begin with.
const MADE_UP: &str = "blobjet-access-";

/// Rights that no table of [`Need`] has.
const CREATE: Need = Need { action: "create blobs", level: Level::Object, rights: &["cw"], account_only: false };
const REACH: Need = Need { action: "reach the service", level: Level::Object, rights: &[], account_only: false };
const INFORMATION: Need = Need { action: "see the account", level: Level::Object, rights: &[], account_only: false };

/// The kind of account, as far as it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// `StorageV2`, `BlockBlobStorage`, ...
    pub kind: Option<String>,
    /// `Standard_LRS`, `Premium_ZRS`, ...
    pub sku: Option<String>,
    /// Whether it has hierarchical namespaces.
    pub hierarchical: Option<bool>,
}

/// Asks about one right.
///
/// # Errors
/// Where the service cannot be reached, or the answer is not its own.
pub async fn right(client: &Client, target: &Target, right: Right) -> Result<Probed> {
    let random = random()?;
    let made_up = format!("{MADE_UP}{random:032x}");
    let container = target.container.as_deref().unwrap_or(&made_up);
    let changes = matches!(right, Right::Create | Right::Write | Right::Delete);
    let name = match &target.scope {
        Scope::Names(start) => format!("{start}{made_up}"),
        Scope::Moment(_) if changes => {
            return Ok(not_asked("this is not asked of a SAS for a snapshot or a version"));
        }
        Scope::Blob(name, rights) if right == Right::Delete => {
            return deleting_one(client, client.location().blob_path(container, name), rights.as_deref()).await;
        }
        Scope::Blob(name, _) | Scope::Moment(name) => name.clone(),
    };
    let path = client.location().blob_path(container, &name);
    let (request, op) = match right {
        Right::List => match &target.container {
            Some(_) => {
                let request = Request::new(Method::GET, client.location().container_path(container));
                (request.query("restype", "container").query("comp", "list"), Op::new("list blobs of", Need::LIST))
            }
            None => {
                let request = Request::new(Method::GET, client.location().account_path());
                (request.query("comp", "list"), Op::new("list containers of", Need::LIST_CONTAINERS))
            }
        },
        Right::Read => (Request::new(Method::HEAD, path), Op::new("read", Need::READ)),
        Right::Tags => (Request::new(Method::GET, path).query("comp", "tags"), Op::new("read the tags of", Need::TAGS)),
        Right::Create => (Request::new(Method::PUT, path).query("comp", "snapshot"), Op::new("create", CREATE)),
        Right::Write => (Request::new(Method::PUT, path).query("comp", "metadata"), Op::new("write", Need::CHANGE)),
        Right::Delete => (Request::new(Method::DELETE, path), Op::new("delete", Need::DELETE)),
    };
    let request = match right {
        Right::List => request.query("maxresults", "1"),
        Right::Read | Right::Tags => request,
        Right::Create | Right::Write | Right::Delete => {
            let lease = HeaderValue::try_from(lease_id(random))
                .map_err(|e| Error::new(Kind::Local, "cannot make up a lease id").with_source(e))?;
            request.header("if-match", NO_ETAG).header("x-ms-lease-id", lease)
        }
    };
    let result = client.send(request, op).await;
    let container = container_of(&result);
    Ok(Probed { finding: found(result, changes)?, container })
}

fn not_asked(why: &str) -> Probed {
    Probed { finding: Finding::Unclear(Error::new(Kind::Unsupported, why)), container: None }
}

/// Whether the one blob that a SAS is for may be deleted, as its `rights` say, if the service takes the SAS.
async fn deleting_one(client: &Client, path: String, rights: Option<&str>) -> Result<Probed> {
    if rights.is_none() {
        return Ok(not_asked("deleting is not asked of a SAS for one blob whose rights stand in a stored policy"));
    }
    if let Err(error) = client.check_need(Need::DELETE) {
        return Ok(Probed { finding: Finding::Refused(error), container: None });
    }
    // Without the right to read the answer is a refusal that comes after the signature was found good.
    let result = client.send(Request::new(Method::HEAD, path), Op::new("reach", REACH)).await;
    let container = container_of(&result);
    let finding = match found(result, false)? {
        Finding::Refused(error) if error.code() == Some("AuthorizationPermissionMismatch") => Finding::Allowed,
        other => other,
    };
    Ok(Probed { finding, container })
}

fn container_of(result: &Result<Response>) -> Option<bool> {
    match result.as_ref().map_err(Error::code) {
        Ok(_) | Err(Some("BlobNotFound")) => Some(true),
        Err(Some("ContainerNotFound")) => Some(false),
        Err(_) => None,
    }
}

/// What a result means for the right that was asked about.
fn found(result: Result<Response>, cannot_succeed: bool) -> Result<Finding> {
    let error = match result {
        Ok(_) if !cannot_succeed => return Ok(Finding::Allowed),
        Ok(_) => {
            let what = "a request that no service could have granted was answered with success";
            return Ok(Finding::Unclear(Error::new(Kind::BadAnswer, what)));
        }
        Err(error) => error,
    };
    // Refused without a request: the SAS itself says that it lacks the right.
    let Some(answer) = error.answer() else {
        return if error.kind() == Kind::AccessRefused { Ok(Finding::Refused(error)) } else { Err(error) };
    };
    if !answer.from_service {
        return Err(error);
    }
    let code = answer.code.as_deref().unwrap_or_default();
    Ok(match (answer.status, code) {
        // What may not be seen without a credential is answered as if it were not there.
        (401 | 403, _) | (404, "ResourceNotFound") | (409, "PublicAccessNotPermitted") => Finding::Refused(error),
        (404 | 412, _) => Finding::Allowed,
        // The state of the one blob that it is about.
        (409, "SnapshotsPresent" | "BlobArchived" | "InvalidBlobType") => Finding::Allowed,
        (409, _) if code.starts_with("Lease") || code.starts_with("BlobImmutable") => Finding::Allowed,
        _ => Finding::Unclear(error),
    })
}

/// Get Account Information, asked of the container where there is one, which a SAS for it may do. `None` where it may not be seen.
///
/// # Errors
/// Where the service cannot be reached.
pub async fn account(client: &Client, target: &Target) -> Result<Option<Account>> {
    let path = match (&target.container, &target.scope) {
        (Some(container), Scope::Blob(blob, _) | Scope::Moment(blob)) => client.location().blob_path(container, blob),
        (Some(container), Scope::Names(_)) => client.location().container_path(container),
        (None, _) => client.location().account_path(),
    };
    let request = Request::new(Method::GET, path).query("restype", "account").query("comp", "properties");
    match client.send(request, Op::new("get information about the account of", INFORMATION)).await {
        Ok(response) => {
            let text = |name: &str| response.header(name).map(str::to_owned);
            let hierarchical = text("x-ms-is-hns-enabled").map(|value| value.eq_ignore_ascii_case("true"));
            Ok(Some(Account { kind: text("x-ms-account-kind"), sku: text("x-ms-sku-name"), hierarchical }))
        }
        Err(error) if error.answer().is_some() || error.kind() == Kind::AccessRefused => Ok(None),
        Err(error) => Err(error),
    }
}

/// Get Container Properties (of an account, List Containers), for the sake of the answer's clock: how many seconds ours is ahead of
/// it, whatever the answer is. `None` where it has no date. Meant for a client without a credential.
///
/// # Errors
/// Where there was no answer from the service.
pub async fn clock(client: &Client, target: &Target) -> Result<Option<i64>> {
    let request = match &target.container {
        Some(container) => Request::new(Method::HEAD, client.location().container_path(container)).query("restype", "container"),
        None => Request::new(Method::GET, client.location().account_path()).query("comp", "list").query("maxresults", "1"),
    };
    match client.send(request, Op::new("reach", REACH)).await {
        Ok(response) => Ok(answer::facts(&response, SystemTime::now()).clock_ahead_s),
        Err(error) => match error.answer() {
            Some(answer) if answer.from_service => Ok(answer.clock_ahead_s),
            _ => Err(error),
        },
    }
}

fn random() -> Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| Error::new(Kind::Local, "the system gives no random numbers").with_source(e))?;
    Ok(u128::from_le_bytes(bytes))
}

/// A random GUID ("Lease Blob": lease ids are GUIDs).
fn lease_id(random: u128) -> String {
    let hex = format!("{:032x}", !random);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Answer;
    use crate::rest::headers::Headers;

    fn answered(status: u16, code: &str) -> Result<Response> {
        let answer = Answer { status, code: Some(code.to_owned()), from_service: true, ..Answer::default() };
        Err(Error::new(Kind::Refused, "x").with_answer(answer))
    }

    fn ok() -> Result<Response> {
        let (status, headers) = (http::StatusCode::OK, Headers::default());
        Ok(Response { status, headers, body: bytes::Bytes::new(), attempts: 1 })
    }

    #[test]
    fn answers_tell_whether_the_right_is_there() {
        for (status, code, word) in [
            (404, "BlobNotFound", "Allowed"),
            (404, "ContainerNotFound", "Allowed"),
            (412, "ConditionNotMet", "Allowed"),
            (412, "LeaseNotPresentWithBlobOperation", "Allowed"),
            (409, "BlobImmutableDueToPolicy", "Allowed"),
            (409, "SnapshotsPresent", "Allowed"),
            (403, "AuthorizationPermissionMismatch", "Refused"),
            (403, "AuthenticationFailed", "Refused"),
            (401, "NoAuthenticationInformation", "Refused"),
            (404, "ResourceNotFound", "Refused"),
            (409, "PublicAccessNotPermitted", "Refused"),
            (409, "FeatureVersionMismatch", "Unclear"),
            (400, "InvalidInput", "Unclear"),
            (503, "ServerBusy", "Unclear"),
        ] {
            let finding = format!("{:?}", found(answered(status, code), true).unwrap());
            assert!(finding.starts_with(word), "{status} {code}: {finding}");
        }
        assert!(matches!(found(ok(), false), Ok(Finding::Allowed)));
        assert!(matches!(found(ok(), true), Ok(Finding::Unclear(_))), "a lock was passed over");
        assert!(matches!(found(Err(Error::new(Kind::AccessRefused, "x")), true), Ok(Finding::Refused(_))));
        assert!(found(Err(Error::new(Kind::Unreachable, "x")), true).is_err());
        let gateway = Error::new(Kind::AccessRefused, "x").with_answer(Answer { status: 403, ..Answer::default() });
        assert!(found(Err(gateway), true).is_err(), "a proxy's refusal is not the service's");
    }

    #[test]
    fn lease_ids_are_guids() {
        assert_eq!(lease_id(u128::MAX), "00000000-0000-0000-0000-000000000000");
        assert_eq!(lease_id(0).len(), 36);
    }
}
