//! `blobjet access`: what a credential may do at a place, when it ends, and how the service is reached. Nothing that is there is
//! changed: [`rest::probe`](crate::rest::probe) says how that can be.

use super::context::Context;
use super::exit::Exit;
use super::hints::{CLOCK_TOLERANCE_S, people_time};
use super::json::Event;
use super::remote::{Remote, place};
use super::render::{Report, printable};
use crate::error::{Error, Result};
use crate::rest::auth::anonymous::nobody;
use crate::rest::auth::sas::Fields;
use crate::rest::auth::sas_credential::parse_time;
use crate::rest::client::{Client, Config};
use crate::rest::location::Location;
use crate::rest::probe::{self, Account, Finding, Probed, Right, Scope, Target};
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

const EXAMPLES: &str = "\
Examples:
  blobjet access 'https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS'
  blobjet access az://ACCOUNT/CONTAINER --need rwl         exit code 4 unless all three are there
  blobjet access az://ACCOUNT                              the account: may its containers be listed?

Rights: l list, r read, c create, w write (and replace), d delete, t tags. Nothing is changed: what is asked of writing cannot
succeed, and whether it is refused for want of the right or for another reason tells which it is.";

/// Arguments of `access`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AccessArgs {
    /// Account, container or blob: https://, az:// or dev:// URL
    pub(crate) url: String,
    /// Rights that have to be there: letters of lrcwdt
    #[arg(long, value_name = "LETTERS", value_parser = rights)]
    pub(crate) need: Option<Rights>,
}

/// Rights, by their letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights(Vec<Right>);

fn rights(text: &str) -> Result<Rights, String> {
    let right = |letter| Right::ALL.into_iter().find(|right| right.letter() == letter);
    match text.chars().map(right).collect::<Option<Vec<_>>>() {
        Some(rights) if !rights.is_empty() => Ok(Rights(rights)),
        _ => Err("use letters of lrcwdt: list, read, create, write, delete, tags".to_owned()),
    }
}

/// Requests whose median is told; one before them opens the connection.
const TIMED: usize = 5;

/// How long the service may keep failing before that is the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was found out.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Access {
    url: String,
    /// Kind of credential, and where it was found.
    credential: &'static str,
    found_in: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sas: Option<Sas>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container_exists: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_sku: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hierarchical_namespace: Option<bool>,
    /// Seconds by which our clock is ahead of the service's.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_ahead_s: Option<i64>,
    latency_ms: f64,
    rights: Vec<Verdict>,
    /// Letters that `--need` has and that are not known to be there.
    missing: String,
}

/// What a SAS says of itself; names as in the token.
#[derive(Debug, Clone, Default, Serialize)]
struct Sas {
    sv: Option<String>,
    sr: Option<String>,
    ss: Option<String>,
    srt: Option<String>,
    sp: Option<String>,
    st: Option<String>,
    se: Option<String>,
    si: Option<String>,
    sip: Option<String>,
    spr: Option<String>,
    /// Seconds until `se`; negative once it is past.
    expires_in_s: Option<i64>,
}

/// What was found out about one right.
#[derive(Debug, Clone, Serialize)]
struct Verdict {
    right: &'static str,
    letter: char,
    /// `None` where the answer did not tell.
    allowed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Asks about every right.
///
/// # Errors
/// Where the service cannot be reached; `Usage` for a place that is not at a service. Rights that are not there are the exit code.
pub(crate) async fn run(args: &AccessArgs, context: &Context) -> Result<Exit> {
    let place = place(&args.url, &context.inputs)?;
    let remote = Remote::open(&place, context).await?;
    let config = || Config { allow_http: context.shared.allow_http, give_up_after: PATIENCE, ..Config::default() };
    let target = target(&remote);
    let (clock_ahead_s, latency) = reached(&Client::new(&remote.location, nobody(), config())?, &target).await?;
    let client = remote.client_with(config())?;
    let mut access = Access {
        url: remote.shown(remote.location.blob.as_deref()),
        credential: remote.credential().name(),
        found_in: remote.found_in(&context.inputs),
        sas: remote.credential().sas().map(|fields| Sas::of(fields, SystemTime::now())),
        container_exists: None,
        account_kind: None,
        account_sku: None,
        hierarchical_namespace: None,
        clock_ahead_s,
        latency_ms: (latency.as_secs_f64() * 1e5).round() / 100.0,
        rights: Vec::new(),
        missing: String::new(),
    };
    for right in Right::ALL {
        let probed = probe::right(&client, &target, right).await?;
        if target.container.is_some() {
            access.container_exists = access.container_exists.or(probed.container);
        }
        access.rights.push(verdict(right, &probed, access.credential));
    }
    if let Some(Account { kind, sku, hierarchical }) = probe::account(&client, &target).await? {
        (access.account_kind, access.account_sku, access.hierarchical_namespace) = (kind, sku, hierarchical);
    }
    let allowed = |right: &Right| access.rights.iter().any(|v| v.letter == right.letter() && v.allowed == Some(true));
    let needed = args.need.as_ref().map(|Rights(rights)| rights.as_slice());
    let missing: String = needed.unwrap_or_default().iter().filter(|right| !allowed(right)).map(|right| right.letter()).collect();
    let enough = match needed {
        Some(_) => missing.is_empty(),
        None => Right::ALL.iter().any(allowed),
    };
    access.missing = missing;
    context.out.data(|| access.text(), || Event::Access(Box::new(access.clone())));
    remote.close().await;
    Ok(if enough { Exit::Done } else { Exit::AccessRefused })
}

/// What to ask about. A SAS for one blob is asked about that blob, any other credential about names that are not there.
fn target(remote: &Remote) -> Target {
    let Location { container, blob, .. } = &remote.location;
    let sas = remote.credential().sas();
    let resource = sas.and_then(|fields| fields.sr.as_deref());
    let scope = match (resource, blob) {
        (Some("b"), Some(blob)) => {
            let own = sas.filter(|fields| fields.si.is_none()).and_then(|fields| fields.sp.clone());
            Scope::Blob(blob.clone(), own)
        }
        (Some("bs" | "bv"), Some(blob)) => Scope::Moment(blob.clone()),
        // Under the blob or folder: the SAS may be for a folder.
        (_, Some(blob)) => Scope::Names(format!("{}/", blob.trim_end_matches('/'))),
        (_, None) => Scope::Names(String::new()),
    };
    Target { container: container.clone(), scope }
}

/// Difference of the clocks, and how long a request takes, from requests without a credential.
async fn reached(client: &Client, target: &Target) -> Result<(Option<i64>, Duration)> {
    let ahead = probe::clock(client, target).await?;
    let mut times = Vec::with_capacity(TIMED);
    for _ in 0..TIMED {
        let begun = Instant::now();
        probe::clock(client, target).await?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok((ahead, times[TIMED / 2]))
}

fn verdict(right: Right, probed: &Probed, credential: &str) -> Verdict {
    let (allowed, reason) = match &probed.finding {
        // Who is nobody may not be told that it is there.
        Finding::Allowed if probed.container == Some(false) && credential == nobody().name() => {
            (None, Some("the service says that there is no such container".to_owned()))
        }
        Finding::Allowed => (Some(true), None),
        Finding::Refused(error) => (Some(false), Some(reason(error))),
        Finding::Unclear(error) => (None, Some(reason(error))),
    };
    Verdict { right: right.word(), letter: right.letter(), allowed, reason }
}

/// Status and code of the answer; without an answer, what the SAS lacks.
fn reason(error: &Error) -> String {
    let answered = error.answer().map(|answer| match &answer.code {
        Some(code) => format!("{} {code}", answer.status),
        None => answer.status.to_string(),
    });
    answered.unwrap_or_else(|| Report::of(error).causes.pop().unwrap_or_else(|| error.to_string()))
}

impl Sas {
    fn of(fields: &Fields, now: SystemTime) -> Sas {
        let until = |time: SystemTime| match time.duration_since(now) {
            Ok(left) => i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            Err(past) => i64::try_from(past.duration().as_secs()).map_or(i64::MIN, |s| -s),
        };
        let Fields { sv, sr, ss, srt, sp, st, se, si, sip, spr, .. } = fields.clone();
        let expires_in_s = se.as_deref().and_then(parse_time).map(until);
        Sas { sv, sr, ss, srt, sp, st, se, si, sip, spr, expires_in_s }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let scope = match (self.sr.as_deref(), &self.srt) {
            (Some("c"), _) => "for the container (sr=c)".to_owned(),
            (Some("b"), _) => "for this blob only (sr=b)".to_owned(),
            (Some("d"), _) => "for a folder (sr=d)".to_owned(),
            (Some(other), _) => format!("for one resource (sr={other})"),
            (None, Some(types)) => {
                format!("for the account: services ss={}, resource types srt={types}", self.ss.as_deref().unwrap_or_default())
            }
            (None, None) => String::new(),
        };
        lines.push(("scope", scope));
        if let Some(permissions) = &self.sp {
            lines.push(("permissions", format!("sp={permissions}")));
        }
        if let Some(policy) = &self.si {
            lines.push(("policy", format!("{policy} (si): what the SAS does not say stands in the container's stored policy")));
        }
        if let Some(start) = &self.st {
            lines.push(("starts", start.clone()));
        }
        if let Some(end) = &self.se {
            let left = match self.expires_in_s {
                Some(left @ 0..) => format!(" (in {})", people_time(left.unsigned_abs())),
                Some(past) => format!(" (expired {} ago)", people_time(past.unsigned_abs())),
                None => String::new(),
            };
            lines.push(("expires", format!("{end}{left}")));
        }
        lines.extend(self.spr.as_ref().map(|protocol| ("protocol", protocol.clone())));
        lines.extend(self.sip.as_ref().map(|addresses| ("addresses", format!("{addresses} only (sip)"))));
        lines.extend(self.sv.as_ref().map(|version| ("version", version.clone())));
        lines
    }
}

impl Access {
    fn text(&self) -> String {
        let found_in = if self.found_in.contains(self.credential) { String::new() } else { format!(", from {}", self.found_in) };
        let mut lines = vec![("credential", format!("{}{found_in}", self.credential))];
        lines.extend(self.sas.iter().flat_map(Sas::lines));
        if let Some(exists) = self.container_exists {
            lines.push(("container", if exists { "is there".to_owned() } else { "is not there".to_owned() }));
        }
        let flat = self.hierarchical_namespace.map(|yes| if yes { "hierarchical" } else { "flat names" }.to_owned());
        let account: Vec<_> = [self.account_kind.clone(), self.account_sku.clone(), flat].into_iter().flatten().collect();
        if !account.is_empty() {
            lines.push(("account", account.join(", ")));
        }
        if let Some(ahead) = self.clock_ahead_s {
            lines.push(("clock", clock(ahead)));
        }
        lines.push(("latency", format!("{} ms (median of {TIMED} requests)", self.latency_ms)));
        let mut out = self.url.clone();
        for (name, value) in lines {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n  {name:11}  {}", printable(&value));
        }
        out.push('\n');
        for verdict in &self.rights {
            let word = match verdict.allowed {
                Some(true) => "yes",
                Some(false) => "no",
                None => "unclear",
            };
            let line = format!("  {:11}  {word:7}  {}", verdict.right, verdict.reason.as_deref().unwrap_or_default());
            let _ = write!(out, "\n{}", printable(line.trim_end()));
        }
        if !self.missing.is_empty() {
            let _ = write!(out, "\n\nmissing: {}", self.missing);
        }
        out
    }
}

fn clock(ahead_s: i64) -> String {
    let off = ahead_s.unsigned_abs();
    let way = if ahead_s > 0 { "ahead of" } else { "behind" };
    match off {
        // Dates have whole seconds, and the answer was on its way.
        0..=2 => "agrees with the service's".to_owned(),
        3..=CLOCK_TOLERANCE_S => format!("{} {way} the service's; 15 minutes are allowed", people_time(off)),
        _ => format!("{} {way} the service's: too much, requests are refused for it", people_time(off)),
    }
}

#[cfg(test)]
impl Access {
    /// One with everything in it.
    pub(crate) fn example() -> Access {
        let text = |text: &str| Some(text.to_owned());
        let sas = Sas {
            sv: text("2025-11-05"),
            sr: text("c"),
            sp: text("rl"),
            se: text("2026-01-02T05:04:05Z"),
            spr: text("https"),
            expires_in_s: Some(7200),
            ..Sas::default()
        };
        let verdict = |right: Right, allowed, reason| Verdict { right: right.word(), letter: right.letter(), allowed, reason };
        Access {
            url: "https://ACCOUNT.blob.core.windows.net/box".into(),
            credential: "SAS",
            found_in: "SAS in the URL",
            sas: Some(sas),
            container_exists: Some(true),
            account_kind: text("StorageV2"),
            account_sku: text("Standard_LRS"),
            hierarchical_namespace: Some(false),
            clock_ahead_s: Some(0),
            latency_ms: 6.73,
            rights: vec![
                verdict(Right::List, Some(true), None),
                verdict(Right::Write, Some(false), text("403 AuthorizationPermissionMismatch")),
            ],
            missing: "w".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_for_reading() {
        insta::assert_snapshot!(Access::example().text(), @r"
        https://ACCOUNT.blob.core.windows.net/box
          credential   SAS
          scope        for the container (sr=c)
          permissions  sp=rl
          expires      2026-01-02T05:04:05Z (in 2 hours)
          protocol     https
          version      2025-11-05
          container    is there
          account      StorageV2, Standard_LRS, flat names
          clock        agrees with the service's
          latency      6.73 ms (median of 5 requests)

          list         yes
          write        no       403 AuthorizationPermissionMismatch

        missing: w
        ");
    }

    #[test]
    fn clocks_are_told_apart_by_what_the_service_allows() {
        assert_eq!(clock(1), "agrees with the service's");
        assert_eq!(clock(-90), "1 minute behind the service's; 15 minutes are allowed");
        assert_eq!(clock(3600), "1 hour ahead of the service's: too much, requests are refused for it");
    }

    #[test]
    fn letters_are_rights() {
        assert_eq!(rights("rl"), Ok(Rights(vec![Right::Read, Right::List])));
        assert!(rights("rx").is_err() && rights("").is_err());
    }
}
