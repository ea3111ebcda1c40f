//! `blobjet sas`: a URL with a shared access signature, made on this machine from the account key. Nothing is sent.
//!
//! A container or blob URL gets a service SAS, an account URL an account SAS ("Create a service SAS", "Create an account SAS").
//! This is the one command that prints a signature.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use super::remote::{named, place};
use crate::endpoint::open::Place;
use crate::error::{Error, Kind, Result};
use crate::rest::VERSION;
use crate::rest::auth::Inputs;
use crate::rest::auth::connection_string::ConnectionString;
use crate::rest::auth::sas::{self, Fields};
use crate::rest::auth::shared_key::{DEV_ACCOUNT, DEV_KEY, decode_key};
use crate::rest::location::{Location, Scheme};
use crate::secret::Secret;
use clap::Args;
use jiff::{SignedDuration, Timestamp};

const EXAMPLES: &str = "\
Examples:
  export AZURE_STORAGE_ACCOUNT=... AZURE_STORAGE_KEY=...
  blobjet sas https://ACCOUNT.blob.core.windows.net/box --permissions cw --expiry 2h        to write into a container
  blobjet sas https://ACCOUNT.blob.core.windows.net/box/a.bin --permissions r --expiry 7d   to read one blob
  blobjet sas https://ACCOUNT.blob.core.windows.net --permissions rwl --expiry 2030-01-01   for the whole account

Rights: r read, a add, c create, w write, d delete, x delete version, y permanent delete, l list, t tags, f find by tags,
m move, e execute, o owner, p permissions, i immutability; u update and p process for account SAS.";

/// Arguments of `sas`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SasArgs {
    /// Container or blob (service SAS), or the account (account SAS)
    pub(crate) url: String,
    /// Rights, one letter each, in any order: r read, c create, w write, d delete, l list, t tags...
    #[arg(long, value_name = "LETTERS")]
    pub(crate) permissions: String,
    /// End: 30m, 2h, 7d from now, a date, or a time such as 2030-01-01T12:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub(crate) expiry: String,
    /// Start, written as the end is, durations reaching back (default: at once)
    #[arg(long, value_name = "WHEN")]
    pub(crate) start: Option<String>,
    /// Address or range that may use it, e.g. 10.0.0.1-10.0.0.9
    #[arg(long, value_name = "IP[-IP]")]
    pub(crate) ip: Option<String>,
    /// https, or https,http (default: https; both for http:// URLs)
    #[arg(long, value_name = "PROTOCOL", value_parser = ["https", "https,http"])]
    pub(crate) protocol: Option<String>,
    /// Account SAS: services, of b q t f
    #[arg(long, value_name = "LETTERS", default_value = "b")]
    pub(crate) services: String,
    /// Account SAS: resource types, of s c o
    #[arg(long, value_name = "LETTERS", default_value = "sco")]
    pub(crate) resource_types: String,
}

/// Permission letters in the order the service's pages demand ("Create a service SAS", "Create an account SAS").
const CONTAINER_RIGHTS: &str = "racwdxyltfmeopi";
const BLOB_RIGHTS: &str = "racwdxytmeopi";
const ACCOUNT_RIGHTS: &str = "rwdxylacuptfi";

/// Prints the URL with its SAS.
///
/// # Errors
/// `Usage`, saying which argument is wrong or that there is no key.
pub(crate) fn run(args: &SasArgs, context: &Context) -> Result<Exit> {
    let location = match place(&args.url, &context.inputs)? {
        Place::Dev { .. } => {
            return Err(wrong("dev:// places have no address to share", "use the URL that 'blobjet serve' prints"));
        }
        other => named(&other, &context.inputs)?,
    };
    if location.sas.is_some() {
        return Err(wrong("the URL has a SAS already", "leave out everything from the ? on"));
    }
    let (account, key) = account_key(&location, &context.inputs)?;
    let fields = fields(args, &location, Timestamp::now())?;
    let resource = location.container.as_deref().map(|container| (container, location.blob.as_deref()));
    let token = sas::mint(&account, &decode_key(&key)?, &fields, resource);
    let path = match (&location.container, &location.blob) {
        (Some(container), Some(blob)) => location.blob_path(container, blob),
        (Some(container), None) => location.container_path(container),
        (None, _) => location.account_path(),
    };
    let url = format!("{}://{}{path}?{}", location.scheme.as_str(), location.authority(), token.expose());
    context.out.data(|| url.clone(), || Event::Sas { url: url.clone() });
    Ok(Exit::Done)
}

fn wrong(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// The account of the place and its key, from where the other commands look for keys, too.
fn account_key(location: &Location, inputs: &Inputs) -> Result<(String, Secret)> {
    let mut found = None;
    if let Some(text) = &inputs.connection_string {
        let parsed = ConnectionString::parse(text)?;
        found = parsed.key().cloned().map(|key| (parsed.endpoint.account, key));
    }
    let from_variables = || inputs.key.clone().map(|key| (inputs.account.clone(), key));
    let well_known = || location.is_loopback().then(|| (Some(DEV_ACCOUNT.to_owned()), Secret::new(DEV_KEY)));
    let (owner, key) = found.or_else(from_variables).or_else(well_known).ok_or_else(|| {
        wrong(
            "no account key to sign with",
            "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_CONNECTION_STRING",
        )
    })?;
    match (&location.account, owner) {
        (Some(account), Some(owner)) if *account != owner => Err(wrong(
            format!("the URL is of account {account}, and the key of {owner}"),
            "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY to those of the URL",
        )),
        (Some(account), _) => Ok((account.clone(), key)),
        (None, Some(owner)) => Ok((owner, key)),
        (None, None) => Err(wrong("the account's name is not in the URL", "set AZURE_STORAGE_ACCOUNT")),
    }
}

fn fields(args: &SasArgs, location: &Location, now: Timestamp) -> Result<Fields> {
    let (order, sr) = match (&location.container, &location.blob) {
        (Some(_), Some(_)) => (BLOB_RIGHTS, Some("b")),
        (Some(_), None) => (CONTAINER_RIGHTS, Some("c")),
        (None, _) => (ACCOUNT_RIGHTS, None),
    };
    let end = moment("--expiry", &args.expiry, now, 1)?;
    let start = args.start.as_deref().map(|start| moment("--start", start, now, -1)).transpose()?;
    if end <= now {
        return Err(wrong(format!("--expiry: {} is in the past", written(end)), "give a time to come, e.g. 2h"));
    }
    if start.is_some_and(|start| start >= end) {
        return Err(wrong("--start is not before --expiry", "swap them"));
    }
    let protocol = args.protocol.clone().unwrap_or_else(|| match location.scheme {
        Scheme::Https => "https".to_owned(),
        Scheme::Http => "https,http".to_owned(),
    });
    let mut fields = Fields {
        sv: Some(VERSION.to_owned()),
        sp: Some(ordered("--permissions", &args.permissions, order)?),
        st: start.map(written),
        se: Some(written(end)),
        sip: args.ip.clone(),
        spr: Some(protocol),
        sr: sr.map(str::to_owned),
        ..Fields::default()
    };
    if sr.is_none() {
        fields.ss = Some(ordered("--services", &args.services, "bqtf")?);
        fields.srt = Some(ordered("--resource-types", &args.resource_types, "sco")?);
    }
    Ok(fields)
}

/// The letters in the order that the service demands; each once.
fn ordered(flag: &str, letters: &str, order: &str) -> Result<String> {
    if let Some(unknown) = letters.chars().find(|c| !order.contains(*c)) {
        return Err(wrong(format!("{flag}: '{unknown}' has no meaning here"), &format!("use letters of {order}")));
    }
    if letters.is_empty() {
        return Err(wrong(format!("{flag}: no letter given"), &format!("use letters of {order}")));
    }
    Ok(order.chars().filter(|c| letters.contains(*c)).collect())
}

/// A time written as a duration from now (`direction` 1) or back (-1), a date, or RFC 3339.
fn moment(flag: &str, text: &str, now: Timestamp, direction: i64) -> Result<Timestamp> {
    let bad = || wrong(format!("{flag}: cannot read '{text}'"), "use 30m, 2h, 7d, 2030-01-01, or 2030-01-01T12:00:00Z");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_s = match &text[digits.len()..] {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        "w" => Some(7 * 86_400),
        _ => None,
    };
    if let (Ok(count), Some(unit_s)) = (digits.parse::<u32>(), unit_s) {
        return now.checked_add(SignedDuration::from_secs(i64::from(count) * unit_s * direction)).map_err(|_| bad());
    }
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    whole.parse().map_err(|_| bad())
}

/// The long form that every service version reads.
fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SasArgs,
    }

    fn args(line: &str) -> SasArgs {
        Line::parse_from(format!("sas {line}").split(' ')).args
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn made(line: &str) -> Result<Fields> {
        let args = args(line);
        fields(&args, &Location::parse(&args.url)?, now())
    }

    #[test]
    fn rights_are_put_into_the_order_the_service_demands() {
        let fields = made("https://a.blob.core.windows.net/c --permissions lwcr --expiry 2h").unwrap();
        assert_eq!(fields.sp.as_deref(), Some("rcwl"));
        assert_eq!((fields.sr.as_deref(), fields.spr.as_deref(), fields.srt), (Some("c"), Some("https"), None));
        let fields = made("http://127.0.0.1:10000/a --permissions ldr --expiry 2h --resource-types oc").unwrap();
        assert_eq!(fields.sp.as_deref(), Some("rdl"));
        assert_eq!((fields.sr, fields.spr.as_deref(), fields.srt.as_deref()), (None, Some("https,http"), Some("co")));
        let error = made("https://a.blob.core.windows.net/c/b --permissions rl --expiry 2h").unwrap_err();
        assert_eq!(error.to_string(), "--permissions: 'l' has no meaning here", "a blob cannot be listed");
    }

    #[test]
    fn times_are_durations_dates_or_rfc_3339() {
        for (text, time) in [
            ("90s", "2026-01-01T00:01:30Z"),
            ("30m", "2026-01-01T00:30:00Z"),
            ("2h", "2026-01-01T02:00:00Z"),
            ("7d", "2026-01-08T00:00:00Z"),
            ("2w", "2026-01-15T00:00:00Z"),
            ("2030-02-03", "2030-02-03T00:00:00Z"),
            ("2030-02-03T04:05:06+01:00", "2030-02-03T03:05:06Z"),
        ] {
            assert_eq!(written(moment("--expiry", text, now(), 1).unwrap()), time, "{text}");
        }
        assert_eq!(written(moment("--start", "5m", now(), -1).unwrap()), "2025-12-31T23:55:00Z");
        for bad in ["", "h", "tomorrow", "99999999999h", "2030-13-01"] {
            assert!(moment("--expiry", bad, now(), 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_could_never_work_is_refused() {
        for line in ["--expiry 2020-01-01", "--expiry 1h --start 2027-01-01", "--expiry 1h --services x"] {
            let url =
                if line.contains("services") { "https://a.blob.core.windows.net" } else { "https://a.blob.core.windows.net/c" };
            assert!(made(&format!("{url} --permissions r {line}")).is_err(), "{line}");
        }
    }
}
