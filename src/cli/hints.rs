//! What an error means and what to do about it, from its kind, the service's code and the clocks.
//!
//! A table of service codes (Common REST API error codes, Blob service error codes, SAS error codes), then a table of kinds for
//! what the codes do not cover. A wrong clock is looked for before anything is said of keys: with a clock that is off every
//! signature is refused, and the service's own message speaks of the signature.

use super::render::printable;
use crate::error::{Answer, Error, Kind};

/// Meaning and next step of an error; either may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Explained {
    /// What it means, where the message does not say it.
    pub(crate) meaning: Option<String>,
    /// What to do next.
    pub(crate) hint: Option<String>,
}

/// The service refuses requests whose date is further off than this (15 minutes; "Authorize with Shared Key").
const CLOCK_TOLERANCE_S: u64 = 900;

/// `code, meaning, hint`. The hint of an error's own place, where it has one, comes first.
const CODES: &[(&str, &str, &str)] = &[
    (
        "AuthorizationFailure",
        "the request was understood and is not allowed: the account's firewall or network rules, or a right the SAS lacks",
        "look at the account's networking page (this machine's address must be allowed) and at the SAS's rights (sp); Azurite also says this of a wrong key",
    ),
    (
        "AuthorizationPermissionMismatch",
        "the SAS lacks a right this needs, or the identity lacks a data role",
        "make a SAS with create and write (sp=cw; tags also need t), or assign the role Storage Blob Data Contributor",
    ),
    (
        "AuthorizationSourceIPMismatch",
        "the SAS is limited to other addresses (sip)",
        "make a SAS for this machine's public address, or without --ip",
    ),
    ("AuthorizationProtocolMismatch", "the SAS allows https only (spr)", "write https:// in the address"),
    ("AuthorizationServiceMismatch", "the account SAS is not for the Blob service (ss)", "make a SAS with service b"),
    (
        "AuthorizationResourceTypeMismatch",
        "the account SAS does not cover this kind of resource (srt)",
        "make a SAS with resource types c (containers) and o (objects)",
    ),
    (
        "KeyBasedAuthenticationNotPermitted",
        "the account does not accept account keys, nor SAS made with them",
        "use a user delegation SAS, or allow shared key access in the account's configuration",
    ),
    (
        "InsufficientAccountPermissions",
        "reading or writing is switched off for the whole account",
        "look at the account's state in the portal",
    ),
    ("AccountIsDisabled", "the account is disabled", "look at the subscription and its billing"),
    (
        "UnauthorizedBlobOverwrite",
        "the SAS may create blobs and not overwrite them, and this one exists",
        "make a SAS with w, or add --overwrite=false to leave existing blobs alone",
    ),
    (
        "NoAuthenticationInformation",
        "no credential was sent, and this is not public",
        "append a SAS to the URL, or set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_CONNECTION_STRING",
    ),
    (
        "PublicAccessNotPermitted",
        "the account forbids anonymous access",
        "append a SAS to the URL, or set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY",
    ),
    (
        "ContainerNotFound",
        "there is no such container",
        "check its name; --create-container makes it, as does 'blobjet make URL'",
    ),
    ("ContainerBeingDeleted", "the container was just deleted and its name is not free yet", "try again in a minute"),
    ("ContainerDisabled", "an administrator has disabled the container", "ask whoever runs the account"),
    (
        "ResourceNotFound",
        "the account or the path is not there, or is hidden from anonymous readers",
        "check the address; give a credential if it is not public",
    ),
    ("BlobNotFound", "there is no such blob", "check its name (upper and lower case differ); 'blobjet list' shows what is there"),
    (
        "BlobAlreadyExists",
        "a blob of this name exists, and overwriting was excluded or needs another right",
        "add --overwrite=true, or use a SAS with w",
    ),
    (
        "LeaseIdMissing",
        "somebody holds a lease on it",
        "wait for the lease to end or break it ('az storage blob lease break'); nothing was changed",
    ),
    (
        "InvalidBlobType",
        "a page or append blob of this name is in the way",
        "write under another name, or remove that blob first",
    ),
    (
        "BlobArchived",
        "the blob is in the archive tier",
        "change its tier to hot or cool and wait for it (hours), or use another name",
    ),
    ("BlobBeingRehydrated", "the blob is on its way out of the archive tier", "wait until that is done (hours)"),
    (
        "BlobImmutableDueToPolicy",
        "an immutability policy or legal hold protects the blob",
        "write under another name; the policy cannot be got round",
    ),
    ("BlobImmutableDueToLegalHold", "a legal hold protects the blob", "write under another name; the hold cannot be got round"),
    ("SnapshotsPresent", "the blob has snapshots", "add --delete-snapshots=include to 'blobjet remove'"),
    (
        "InvalidBlobTier",
        "the account or blob cannot have this tier",
        "leave out --block-blob-tier, or give a tier the account has",
    ),
    (
        "BlobAccessTierNotSupportedForAccountType",
        "this kind of account has no access tiers (premium, or general purpose v1)",
        "leave out --block-blob-tier",
    ),
    ("AccessTierNotSupportedForBlobType", "this kind of blob has no access tier", "leave out --block-blob-tier"),
    ("InvalidMetadata", "the service refuses the metadata", "keys must be letters, digits and _, values printable ASCII"),
    ("MetadataTooLarge", "metadata may be 8 KiB in all", "shorten --metadata"),
    (
        "InvalidResourceName",
        "the service refuses the name",
        "container names: 3 to 63 lower-case letters, digits and single dashes",
    ),
    (
        "OutOfRangeInput",
        "a name or value is too short or too long",
        "container names: 3 to 63 lower-case letters, digits and single dashes",
    ),
    (
        "InsufficientStorage",
        "the disk of the embedded service is full",
        "make room, or name another folder (BLOBJET_STATE, --dir)",
    ),
    (
        "ServerBusy",
        "the account's limit was reached and stayed reached",
        "run it again later, or lower --concurrency or --cap-mbps",
    ),
    ("RequestBodyTooLarge", "the request was larger than the service takes", "lower --block-size-mb or --put-blob-size-mb"),
];

/// Meaning and next step of an error.
pub(crate) fn explain(error: &Error) -> Explained {
    let by_kind = of_kind(error.kind());
    let found = error.answer().and_then(of_answer).or_else(|| of_system(error)).unwrap_or(by_kind);
    match error.advice() {
        Some(advice) => Explained { hint: Some(advice.to_owned()), ..found },
        None => found,
    }
}

fn of_answer(answer: &Answer) -> Option<Explained> {
    if !answer.from_service {
        return said(
            "the answer did not come from Azure Storage but from something in between (proxy, gateway) or another server",
            "check the address, HTTPS_PROXY and NO_PROXY",
        );
    }
    let refused = matches!(answer.status, 401 | 403);
    if refused && let Some(ahead) = answer.clock_ahead_s.filter(|s| s.unsigned_abs() > CLOCK_TOLERANCE_S) {
        let way = if ahead > 0 { "ahead of" } else { "behind" };
        return Some(Explained {
            meaning: Some(format!("this machine's clock is {} {way} the service's", people_time(ahead.unsigned_abs()))),
            hint: Some(
                "set the clock (timedatectl set-ntp true), then run it again; nothing is wrong with the key yet".to_owned(),
            ),
        });
    }
    let code = answer.code.as_deref()?;
    if matches!(code, "AuthenticationFailed" | "InvalidAuthenticationInfo") {
        return Some(authentication(answer));
    }
    if code == "InvalidHeaderValue" && answer.detail("HeaderName").is_some_and(|n| n.eq_ignore_ascii_case("x-ms-version")) {
        return said("the server is older than this client", "update the emulator; Azurite takes --skipApiVersionCheck");
    }
    CODES.iter().find(|(name, ..)| name.eq_ignore_ascii_case(code)).and_then(|(_, meaning, hint)| said(meaning, hint))
}

/// The service says one code for many things and tells them apart in `AuthenticationErrorDetail` only. What is read there is
/// used for words alone: nothing branches on it.
fn authentication(answer: &Answer) -> Explained {
    let detail = answer.detail("AuthenticationErrorDetail").unwrap_or("");
    let lower = detail.to_ascii_lowercase();
    if lower.contains("expiry") || lower.contains("time frame") {
        // It has the times, and nothing secret.
        return Explained {
            meaning: Some(format!("the SAS has expired or is not valid yet: {}", printable(detail))),
            hint: Some("make a new SAS; blocks already sent stay for a week and are not sent again".to_owned()),
        };
    }
    let (meaning, hint) = if lower.contains("signature did not match") || lower.contains("mac signature") {
        (
            "the signature is not the one the service computes: wrong key, or a SAS changed on its way here",
            "paste the SAS again, in quotes (a '+' turned into a space, or '%2B' into '%252B', breaks it), or check the key",
        )
    } else if lower.contains("date header") {
        ("the request's time was refused", "set this machine's clock (timedatectl set-ntp true)")
    } else {
        (
            "the signature, key or SAS is wrong, or belongs to another account",
            "check AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or paste the SAS again, in quotes",
        )
    };
    Explained { meaning: Some(meaning.to_owned()), hint: Some(hint.to_owned()) }
}

/// A limit of this process says itself what it is, wherever it was met.
fn of_system(error: &Error) -> Option<Explained> {
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        if let Some(libc::EMFILE | libc::ENFILE) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return said(
                "this process may not have as many files and connections open as it needs",
                "raise the limit (ulimit -n), or lower --concurrency",
            );
        }
        next = cause.source();
    }
    None
}

fn said(meaning: &str, hint: &str) -> Option<Explained> {
    Some(Explained { meaning: Some(meaning.to_owned()), hint: Some(hint.to_owned()) })
}

const ON_CHANGE: &str = "run it again; --on-change retry does so by itself, --on-change snapshot is for files that grow";

fn of_kind(kind: Kind) -> Explained {
    let (meaning, hint) = match kind {
        Kind::Usage => ("", "'blobjet --help' shows what can be said"),
        Kind::SourceNotFound => ("", "check the path; quote patterns so that the shell leaves them alone"),
        Kind::SourceUnreadable => ("", "check the permissions (ls -l) of the path and of the folders above it"),
        Kind::SourceChanged => ("the file changed while it was being read; nothing of it was committed", ON_CHANGE),
        Kind::Name => ("the service cannot store a blob of this name", "rename the file"),
        Kind::AccessRefused => ("", "check the credential and its rights"),
        Kind::ContainerNotFound => ("there is no such container", "check its name; --create-container makes it"),
        Kind::NotFound => ("there is no such thing at the service", "check the name; upper and lower case differ"),
        Kind::AlreadyExists => ("it exists already", "--overwrite=true replaces it"),
        Kind::Conflict => ("the state of this one object stands in the way; it was left as it was", ""),
        Kind::Refused => ("the service refuses this request and would refuse it again", ""),
        Kind::BlocksMissing => (
            "blocks that had arrived were gone when they were to be put together: another program writes to the same name",
            "run it again when nobody else writes there",
        ),
        Kind::Leftovers => (
            "blocks that another program staged under this name and never committed are in the way",
            "wait a week, after which the service drops them",
        ),
        Kind::TooLarge => ("larger than the service takes in one request", "lower --block-size-mb"),
        Kind::Unsupported => ("this server does not offer what was asked for", ""),
        Kind::Corrupt => (
            "bytes differ from their checksum, twice: memory or something on the way damages them",
            "try another machine or network path before trusting this one with data",
        ),
        Kind::GaveUp => (
            "retries did not help within the time limit",
            "run the same command again; check the network and the account's limits if it repeats",
        ),
        Kind::Unreachable => (
            "the service cannot be reached, and trying again cannot heal it",
            "check the address, and HTTPS_PROXY if you are behind a proxy",
        ),
        Kind::BadAnswer => ("the answer is not what the protocol says", "check that the address is a Blob service"),
        Kind::Cancelled => ("", ""),
        Kind::Local => ("", "check free space and permissions there"),
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Explained { meaning: some(meaning), hint: some(hint) }
}

/// `3 minutes`, `1 hour 5 minutes`.
fn people_time(seconds: u64) -> String {
    let unit = |n: u64, name: &str| if n == 1 { format!("1 {name}") } else { format!("{n} {name}s") };
    match (seconds / 3600, seconds % 3600 / 60) {
        (0, minutes) => unit(minutes, "minute"),
        (hours, 0) => unit(hours, "hour"),
        (hours, minutes) => format!("{} {}", unit(hours, "hour"), unit(minutes, "minute")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Answer {
        Answer { status: 403, code: Some(code.to_owned()), from_service: true, ..Answer::default() }
    }

    fn meaning(answer: Answer) -> String {
        explain(&Error::new(Kind::AccessRefused, "cannot put a").with_answer(answer)).meaning.unwrap()
    }

    #[test]
    fn a_wrong_clock_comes_before_keys() {
        let mut answer = refused("AuthenticationFailed");
        answer.details.push(("AuthenticationErrorDetail".into(), "The MAC signature found is not the same".into()));
        assert!(meaning(answer.clone()).contains("signature"));
        answer.clock_ahead_s = Some(-3900);
        assert_eq!(meaning(answer.clone()), "this machine's clock is 1 hour 5 minutes behind the service's");
        answer.clock_ahead_s = Some(600);
        assert!(meaning(answer).contains("signature"), "within tolerance");
    }

    #[test]
    fn a_gateway_is_not_taken_for_the_service() {
        let answer = Answer { from_service: false, ..refused("AuthenticationFailed") };
        assert!(meaning(answer).contains("did not come from Azure Storage"));
    }

    #[test]
    fn too_many_open_files_is_told_from_a_missing_permission() {
        let error =
            Error::new(Kind::SourceUnreadable, "cannot read a").with_source(std::io::Error::from_raw_os_error(libc::EMFILE));
        assert!(explain(&error).hint.is_some_and(|hint| hint.contains("ulimit -n")));
    }

    #[test]
    fn advice_of_the_place_that_failed_wins() {
        let error = Error::new(Kind::Name, "cannot store it").with_advice("rename x");
        assert_eq!(explain(&error).hint.as_deref(), Some("rename x"));
    }

    #[test]
    fn every_code_is_listed_once() {
        let mut names: Vec<_> = CODES.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
