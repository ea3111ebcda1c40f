//! Leases of blobs and containers: a state machine over values ("Lease Blob", "Lease Container", with what recordings add).
//!
//! Time moves a lease from leased to expired and from breaking to broken; nothing has to run for that, the phase is computed
//! from the clock when somebody looks.

use super::errors::{self as e, Code, Failure, Outcome};
use super::http::{Head, plain_number};
use super::time::{SECOND, Ticks};
use serde::{Deserialize, Serialize};

/// A lease that was acquired and not released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) id: String,
    /// In seconds; none is for ever.
    pub(crate) duration: Option<u64>,
    /// End of a lease with a duration.
    expires: Option<Ticks>,
    /// When a break takes effect, once one was asked for.
    breaks: Option<Ticks>,
}

/// `x-ms-lease-state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Available,
    Leased,
    Expired,
    Breaking,
    Broken,
}

impl Phase {
    /// As in headers and listings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Available => "available",
            Phase::Leased => "leased",
            Phase::Expired => "expired",
            Phase::Breaking => "breaking",
            Phase::Broken => "broken",
        }
    }

    /// `x-ms-lease-status`.
    pub(crate) fn status(self) -> &'static str {
        if matches!(self, Phase::Leased | Phase::Breaking) { "locked" } else { "unlocked" }
    }
}

/// The phase now.
pub(crate) fn phase(lease: Option<&Lease>, now: Ticks) -> Phase {
    match lease {
        None => Phase::Available,
        Some(Lease { breaks: Some(at), .. }) if *at <= now => Phase::Broken,
        Some(Lease { breaks: Some(_), .. }) => Phase::Breaking,
        Some(Lease { expires: Some(at), .. }) if *at <= now => Phase::Expired,
        Some(_) => Phase::Leased,
    }
}

impl Lease {
    /// `x-ms-lease-duration`, told while the phase is leased.
    pub(crate) fn duration_name(&self) -> &'static str {
        if self.duration.is_some() { "fixed" } else { "infinite" }
    }
}

/// What is leased; the codes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Blob,
    Container,
}

/// Whether an operation needs the id of an active lease, or only may not name a wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    Write,
    Read,
}

/// Checks the lease id of an ordinary operation.
///
/// # Errors
/// 412 by the table of "Lease Blob": missing, mismatched, lost, or none there.
pub(crate) fn check(lease: Option<&Lease>, id: Option<&str>, of: Of, guard: Guard, now: Ticks) -> Outcome<()> {
    let (mismatch, absent) = match of {
        Of::Blob => (e::LEASE_MISMATCH_BLOB, e::LEASE_ABSENT_BLOB),
        Of::Container => (e::LEASE_MISMATCH_CONTAINER, e::LEASE_ABSENT_CONTAINER),
    };
    let matches = |id: &str| lease.is_some_and(|l| l.id.eq_ignore_ascii_case(id));
    let refused: &'static Code = match (phase(lease, now), id, guard) {
        (Phase::Leased | Phase::Breaking, None, Guard::Write) => e::LEASE_ID_MISSING,
        (_, None, _) => return Ok(()),
        (Phase::Available, Some(_), _) => absent,
        (Phase::Leased | Phase::Breaking, Some(id), _) if matches(id) => return Ok(()),
        (Phase::Broken | Phase::Expired, Some(id), _) if matches(id) => e::LEASE_LOST,
        (_, Some(_), _) => mismatch,
    };
    let failure = Failure::from(refused);
    Err(match (refused.name, of) {
        ("LeaseIdMissing", Of::Blob) => {
            failure.with_message("There is currently a lease on the blob and no lease ID was specified in the request.")
        }
        ("LeaseIdMissing", Of::Container) => {
            failure.with_message("There is currently a lease on the container and no lease ID was specified in the request.")
        }
        ("LeaseLost", Of::Blob) => failure.with_message("A lease ID was specified, but the lease for the blob has expired."),
        ("LeaseLost", Of::Container) => {
            failure.with_message("A lease ID was specified, but the lease for the container has expired.")
        }
        _ => failure,
    })
}

/// `x-ms-lease-id` of a request, if any.
///
/// # Errors
/// 400 naming the header if it is no GUID.
pub(crate) fn id_of(head: &Head) -> Outcome<Option<&str>> {
    guid(head, "x-ms-lease-id")
}

fn guid<'a>(head: &'a Head, name: &'static str) -> Outcome<Option<&'a str>> {
    match head.header(name) {
        None => Ok(None),
        Some(value) if is_guid(value) => Ok(Some(value)),
        Some(value) => Err(Failure::header(name, value)),
    }
}

/// The forms .NET's `Guid` reads that clients send: with hyphens, optionally in braces, or 32 digits alone.
fn is_guid(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
    let hex = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit());
    let lengths: Vec<usize> = inner.split('-').map(str::len).collect();
    inner.split('-').all(hex) && (lengths == [8, 4, 4, 4, 12] || lengths == [32])
}

/// A lease request, read from its headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Acquire { duration: Option<u64>, proposed: Option<String> },
    Renew { id: String },
    Change { id: String, proposed: String },
    Release { id: String },
    Break { period: Option<u64> },
}

impl Action {
    /// Reads the headers.
    ///
    /// # Errors
    /// 400: a header is missing, not a GUID, not a number, or out of range.
    pub(crate) fn of(head: &Head) -> Outcome<Action> {
        let need = |name| guid(head, name)?.map(str::to_owned).ok_or_else(|| Failure::missing_header(name));
        let action = head.header("x-ms-lease-action").ok_or_else(|| Failure::missing_header("x-ms-lease-action"))?;
        match action.to_ascii_lowercase().as_str() {
            "acquire" => {
                let text = head.header("x-ms-lease-duration").ok_or_else(|| Failure::missing_header("x-ms-lease-duration"))?;
                let duration = match (text, plain_number(text)) {
                    ("-1", _) => None,
                    (_, Some(seconds @ 15..=60)) => Some(seconds),
                    _ => return Err(Failure::header("x-ms-lease-duration", text)),
                };
                Ok(Action::Acquire { duration, proposed: guid(head, "x-ms-proposed-lease-id")?.map(str::to_owned) })
            }
            "renew" => Ok(Action::Renew { id: need("x-ms-lease-id")? }),
            "change" => Ok(Action::Change { id: need("x-ms-lease-id")?, proposed: need("x-ms-proposed-lease-id")? }),
            "release" => Ok(Action::Release { id: need("x-ms-lease-id")? }),
            "break" => match head.header("x-ms-lease-break-period") {
                None => Ok(Action::Break { period: None }),
                Some(text) => match plain_number(text) {
                    Some(seconds @ 0..=60) => Ok(Action::Break { period: Some(seconds) }),
                    _ => Err(Failure::header("x-ms-lease-break-period", text)),
                },
            },
            _ => Err(Failure::header("x-ms-lease-action", action)),
        }
    }
}

/// What a lease request did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) status: u16,
    pub(crate) lease: Option<Lease>,
    /// `x-ms-lease-id` of the answer.
    pub(crate) id: Option<String>,
    /// `x-ms-lease-time` of the answer, in seconds.
    pub(crate) time: Option<u64>,
}

/// Applies an action. `fresh_id` is used where the client proposes none.
///
/// # Errors
/// 409 by the table of "Lease Blob".
pub(crate) fn apply(lease: Option<&Lease>, action: Action, of: Of, now: Ticks, fresh_id: &dyn Fn() -> String) -> Outcome<Done> {
    let phase = phase(lease, now);
    let same = |id: &str| lease.is_some_and(|l| l.id.eq_ignore_ascii_case(id));
    let fixed = |id: String, duration: Option<u64>| Lease {
        id,
        duration,
        expires: duration.map(|seconds| now + seconds * SECOND),
        breaks: None,
    };
    let done = |status, lease: Lease| Ok(Done { status, id: Some(lease.id.clone()), lease: Some(lease), time: None });
    let no_lease = || {
        Failure::from(e::LEASE_NOT_PRESENT).with_message(match of {
            Of::Blob => "There is currently no lease on the blob.",
            Of::Container => "There is currently no lease on the container.",
        })
    };
    let mismatch = || {
        Failure::from(e::LEASE_MISMATCH).with_message(match of {
            Of::Blob => "The lease ID specified did not match the lease ID for the blob.",
            Of::Container => "The lease ID specified did not match the lease ID for the container.",
        })
    };
    match (action, lease) {
        (Action::Acquire { duration, proposed }, _) => match (phase, proposed.as_deref()) {
            (Phase::Leased, Some(id)) if same(id) => done(201, fixed(id.to_owned(), duration)),
            (Phase::Breaking, Some(id)) if same(id) => Err(e::LEASE_BREAKING_ACQUIRE.into()),
            (Phase::Leased | Phase::Breaking, _) => Err(e::LEASE_PRESENT.into()),
            _ => done(201, fixed(proposed.unwrap_or_else(fresh_id), duration)),
        },
        (_, None) => Err(no_lease()),
        (Action::Renew { id }, Some(held)) => match phase {
            _ if !same(&id) => Err(mismatch()),
            Phase::Breaking | Phase::Broken => Err(e::LEASE_BROKEN_RENEW.into()),
            _ => done(200, fixed(held.id.clone(), held.duration)),
        },
        (Action::Change { id, proposed }, Some(held)) => match phase {
            Phase::Leased if same(&id) || same(&proposed) => done(200, Lease { id: proposed, ..held.clone() }),
            _ if !same(&id) && !same(&proposed) => Err(mismatch()),
            Phase::Breaking => Err(e::LEASE_BREAKING_CHANGE.into()),
            _ => Err(no_lease()),
        },
        (Action::Release { id }, Some(_)) => {
            if same(&id) {
                Ok(Done { status: 200, lease: None, id: None, time: None })
            } else {
                Err(mismatch())
            }
        }
        (Action::Break { period }, Some(held)) => {
            let left = match (held.breaks, held.expires) {
                (Some(at), _) | (None, Some(at)) => at.saturating_sub(now).div_ceil(SECOND),
                (None, None) => period.unwrap_or(0),
            };
            // The shorter of what is asked for and what is left; what has run out is broken at once.
            let wait = period.map_or(left, |asked| asked.min(left));
            let lease = Lease { breaks: Some(now + wait * SECOND), ..held.clone() };
            Ok(Done { status: 202, lease: Some(lease), id: None, time: Some(wait) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaa-0000-0000-0000-000000000000";
    const B: &str = "bbbbbbbb-0000-0000-0000-000000000000";
    const NOW: Ticks = 1000 * SECOND;

    fn states() -> [Option<Lease>; 5] {
        let held = |expires, breaks| Some(Lease { id: A.into(), duration: Some(20), expires, breaks });
        [
            None,
            held(Some(NOW + 20 * SECOND), None),
            held(Some(NOW + 20 * SECOND), Some(NOW + 5 * SECOND)),
            held(Some(NOW + 20 * SECOND), Some(NOW)),
            held(Some(NOW), None),
        ]
    }

    /// The table of "Lease Blob", column by column: available, leased, breaking, broken, expired.
    #[test]
    fn actions_follow_the_table() {
        let a = || A.to_owned();
        let b = || B.to_owned();
        type Make<'a> = &'a dyn Fn() -> Action;
        let rows: [(&str, Make<'_>, [&str; 5]); 9] = [
            (
                "acquire B",
                &|| Action::Acquire { duration: None, proposed: Some(b()) },
                ["leased", "LeaseAlreadyPresent", "LeaseAlreadyPresent", "leased", "leased"],
            ),
            (
                "acquire A",
                &|| Action::Acquire { duration: Some(15), proposed: Some(a()) },
                ["leased", "leased", "LeaseIsBreakingAndCannotBeAcquired", "leased", "leased"],
            ),
            (
                "break 0",
                &|| Action::Break { period: Some(0) },
                ["LeaseNotPresentWithLeaseOperation", "broken", "broken", "broken", "broken"],
            ),
            (
                "break 3",
                &|| Action::Break { period: Some(3) },
                ["LeaseNotPresentWithLeaseOperation", "breaking", "breaking", "broken", "broken"],
            ),
            (
                "change A to B",
                &|| Action::Change { id: a(), proposed: b() },
                [
                    "LeaseNotPresentWithLeaseOperation",
                    "leased",
                    "LeaseIsBreakingAndCannotBeChanged",
                    "LeaseNotPresentWithLeaseOperation",
                    "LeaseNotPresentWithLeaseOperation",
                ],
            ),
            (
                "change B to A",
                &|| Action::Change { id: b(), proposed: a() },
                [
                    "LeaseNotPresentWithLeaseOperation",
                    "leased",
                    "LeaseIsBreakingAndCannotBeChanged",
                    "LeaseNotPresentWithLeaseOperation",
                    "LeaseNotPresentWithLeaseOperation",
                ],
            ),
            (
                "renew A",
                &|| Action::Renew { id: a() },
                [
                    "LeaseNotPresentWithLeaseOperation",
                    "leased",
                    "LeaseIsBrokenAndCannotBeRenewed",
                    "LeaseIsBrokenAndCannotBeRenewed",
                    "leased",
                ],
            ),
            (
                "release A",
                &|| Action::Release { id: a() },
                ["LeaseNotPresentWithLeaseOperation", "available", "available", "available", "available"],
            ),
            (
                "renew B",
                &|| Action::Renew { id: b() },
                [
                    "LeaseNotPresentWithLeaseOperation",
                    "LeaseIdMismatchWithLeaseOperation",
                    "LeaseIdMismatchWithLeaseOperation",
                    "LeaseIdMismatchWithLeaseOperation",
                    "LeaseIdMismatchWithLeaseOperation",
                ],
            ),
        ];
        for (name, action, ends) in rows {
            for (state, end) in states().iter().zip(ends) {
                let got = match apply(state.as_ref(), action(), Of::Blob, NOW, &a) {
                    Ok(done) => phase(done.lease.as_ref(), NOW).name(),
                    Err(failure) => failure.code().name,
                };
                assert_eq!(got, end, "{name} on {}", phase(state.as_ref(), NOW).name());
            }
        }
    }

    #[test]
    fn reads_and_writes_follow_the_table() {
        let (miss, lost, wrong, none) =
            ("LeaseIdMissing", "LeaseLost", "LeaseIdMismatchWithBlobOperation", "LeaseNotPresentWithBlobOperation");
        for (guard, id, ends) in [
            (Guard::Write, Some(A), [none, "", "", lost, lost]),
            (Guard::Write, Some(B), [none, wrong, wrong, wrong, wrong]),
            (Guard::Write, None, ["", miss, miss, "", ""]),
            (Guard::Read, None, ["", "", "", "", ""]),
            (Guard::Read, Some(B), [none, wrong, wrong, wrong, wrong]),
            (Guard::Read, Some(A), [none, "", "", lost, lost]),
        ] {
            for (state, end) in states().iter().zip(ends) {
                let got = check(state.as_ref(), id, Of::Blob, guard, NOW).map_or_else(|f| f.code().name, |()| "");
                assert_eq!(got, end, "{guard:?} {id:?} on {}", phase(state.as_ref(), NOW).name());
            }
        }
    }

    #[test]
    fn break_lets_a_fixed_lease_run_and_ends_an_infinite_one() {
        let infinite = Lease { id: A.into(), duration: None, expires: None, breaks: None };
        let done = apply(Some(&infinite), Action::Break { period: None }, Of::Blob, NOW, &String::new).unwrap();
        assert_eq!((done.time, phase(done.lease.as_ref(), NOW)), (Some(0), Phase::Broken));
        let fixed = Lease { id: A.into(), duration: Some(20), expires: Some(NOW + 20 * SECOND), breaks: None };
        let done = apply(Some(&fixed), Action::Break { period: None }, Of::Blob, NOW, &String::new).unwrap();
        assert_eq!(done.time, Some(20));
        assert_eq!(phase(done.lease.as_ref(), NOW + 19 * SECOND), Phase::Breaking);
        assert_eq!(phase(done.lease.as_ref(), NOW + 20 * SECOND), Phase::Broken);
    }

    #[test]
    fn guids_in_the_forms_clients_send() {
        for good in [A, "{aaaaaaaa-0000-0000-0000-000000000000}", "aaaaaaaa000000000000000000000000"] {
            assert!(is_guid(good), "{good}");
        }
        for bad in ["", "garbage", "aaaaaaaa-0000-0000-0000-00000000000", "gaaaaaaa-0000-0000-0000-000000000000"] {
            assert!(!is_guid(bad), "{bad}");
        }
    }
}
