//! The text of a rule: `op=PutBlock,nth=5,status=503/ServerBusy,retry-after=7`. Pure; `docs/faults.md` explains it to people.

use super::effects::{Cut, Effects, End, Lowered, Rate, Status};
use crate::emulator::route::Op;
use crate::error::{Error, Kind, Result};
use crate::units::ByteCount;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// One rule: which requests it is for, which of those it hits, and what happens to them. Made from its text, which `Display`
/// gives back: `key=value` pairs and words between commas, explained in `docs/faults.md` and by `blobjet serve --help`.
///
/// ```
/// use blobjet::emulator::Fault;
/// let fault: Fault = "op=PutBlock,nth=5,status=403/AuthorizationFailure".parse()?;
/// # Ok::<(), blobjet::Error>(())
/// ```
#[derive(Clone)]
pub struct Fault {
    text: String,
    pub(super) select: Select,
    pub(super) when: When,
    pub(super) effects: Effects,
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({})", self.text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Which requests a rule is for. All that is given has to fit.
#[derive(Debug, Clone, Default)]
pub(super) struct Select {
    pub(super) method: Option<String>,
    pub(super) ops: Vec<Op>,
    /// For `container/blob`.
    pub(super) path: Option<String>,
    pub(super) page: Option<u64>,
    pub(super) above: Option<u64>,
}

/// Which of those it hits, by their number.
#[derive(Debug, Clone, Default)]
pub(super) struct When {
    /// So many are left alone; the others are counted from there.
    pub(super) after: u64,
    pub(super) nth: Option<u64>,
    pub(super) every: Option<u64>,
    pub(super) first: Option<u64>,
    pub(super) share_of_2_pow_32: Option<u64>,
    pub(super) seed: u64,
}

const KEYS: &str = "which requests: method op path page above; which of them: nth every first after share seed; what happens: \
    delay hang rate reset status retry-after redirect late drop flip-request flip-answer cut date max-blocks max-uncommitted \
    max-block max-blob";

/// Why a pair cannot be taken, and what to write instead.
struct Wrong {
    what: String,
    instead: String,
}

impl Wrong {
    fn new(what: impl Into<String>, instead: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), instead: instead.into() }
    }
}

impl FromStr for Fault {
    type Err = Error;

    /// # Errors
    /// [`Kind::Usage`], saying which part is wrong and what it could be.
    fn from_str(text: &str) -> Result<Fault> {
        parse(text).map_err(|Wrong { what, instead }| {
            Error::new(Kind::Usage, format!("cannot take the fault rule '{text}'")).with_source(what).with_advice(instead)
        })
    }
}

fn parse(text: &str) -> Result<Fault, Wrong> {
    let mut fault =
        Fault { text: text.to_owned(), select: Select::default(), when: When::default(), effects: Effects::default() };
    let mut given: Vec<&str> = Vec::new();
    let mut retry_after = None;
    for part in text.split(',').map(str::trim) {
        let (key, value) = part.split_once('=').map_or((part, None), |(key, value)| (key.trim(), Some(value.trim())));
        if given.contains(&key) {
            return Err(Wrong::new(format!("'{key}' is there twice"), "give a second --fault for a second fault"));
        }
        given.push(key);
        let Fault { select, when, effects, .. } = &mut fault;
        match (key, value) {
            ("method", Some(value)) => select.method = Some(value.to_ascii_uppercase()),
            ("op", Some(value)) => select.ops = value.split('|').map(operation).collect::<Result<_, _>>()?,
            ("path", Some(value)) => select.path = Some(value.to_owned()),
            ("page", Some(value)) => select.page = Some(positive(key, value)?),
            ("above", Some(value)) => select.above = Some(number(key, value)?),
            ("nth", Some(value)) => when.nth = Some(positive(key, value)?),
            ("every", Some(value)) => when.every = Some(positive(key, value)?),
            ("first", Some(value)) => when.first = Some(positive(key, value)?),
            ("after", Some(value)) => when.after = number(key, value)?,
            ("share", Some(value)) => when.share_of_2_pow_32 = Some(share(value)?),
            ("seed", Some(value)) => when.seed = number(key, value)?,
            ("delay", Some(value)) => effects.delay = Some(duration(key, value)?),
            ("rate", Some(value)) => effects.rate = Some(Arc::new(Rate::new(rate(value)?))),
            ("date", Some(value)) => effects.clock_ahead_s = Some(offset(value)?),
            ("flip-request", Some(value)) => effects.flip_request = Some(number(key, value)?),
            ("flip-answer", Some(value)) => effects.flip_answer = Some(number(key, value)?),
            ("cut", Some("head")) => effects.cut = Some(Cut::Head),
            ("cut", Some(value)) => effects.cut = Some(Cut::Body(number(key, value)?)),
            ("max-blocks" | "max-uncommitted" | "max-block" | "max-blob", Some(value)) => {
                lower(&mut effects.lowered, key, size(key, value)?);
            }
            ("reset", None) => end(effects, End::Reset(0))?,
            ("reset", Some("end")) => end(effects, End::Reset(u64::MAX))?,
            ("reset", Some(value)) => end(effects, End::Reset(number(key, value)?))?,
            ("hang", None) => end(effects, End::Hang)?,
            ("drop", None) => end(effects, End::Drop)?,
            ("status", Some(value)) => end(effects, End::Status(status(value)?))?,
            ("redirect", Some(value)) => {
                end(effects, End::Status(Status { location: Some(value.to_owned()), ..Status::of(307) }))?;
            }
            ("retry-after", Some(value)) => retry_after = Some(number(key, value)?),
            ("late", None) => effects.late = true,
            ("", None) => return Err(Wrong::new("there is nothing between two commas", KEYS)),
            (key, value) if KEYS.split([' ', ':', ';']).any(|known| known == key && !known.is_empty()) => {
                return Err(match value {
                    Some(_) => Wrong::new(format!("'{key}' takes no value"), format!("write {key} alone")),
                    None => Wrong::new(format!("'{key}' needs a value"), format!("write {key}=VALUE")),
                });
            }
            (key, _) => return Err(Wrong::new(format!("there is no '{key}'"), KEYS)),
        }
    }
    match (&mut fault.effects.end, retry_after) {
        (_, None) => {}
        (Some(End::Status(status)), after) => status.retry_after_s = after,
        _ => return Err(Wrong::new("'retry-after' goes with a status", "add status=503/ServerBusy")),
    }
    if fault.effects.late && !matches!(fault.effects.end, Some(End::Hang | End::Status(_))) {
        return Err(Wrong::new(
            "'late' goes with hang, status or redirect",
            "write drop to do the work and leave without an answer",
        ));
    }
    if fault.effects.is_nothing() {
        return Err(Wrong::new("nothing is to happen", "add what happens, such as status=503/ServerBusy or reset"));
    }
    Ok(fault)
}

fn end(effects: &mut Effects, end: End) -> Result<(), Wrong> {
    match effects.end.replace(end) {
        None => Ok(()),
        Some(_) => Err(Wrong::new(
            "a request can end in one way only",
            "keep one of hang, reset, drop, status and redirect, and give the other in a --fault of its own",
        )),
    }
}

fn lower(lowered: &mut Lowered, key: &str, limit: u64) {
    match key {
        "max-blocks" => lowered.blocks = Some(limit),
        "max-uncommitted" => lowered.uncommitted = Some(limit),
        "max-block" => lowered.block_bytes = Some(limit),
        _ => lowered.blob_bytes = Some(limit),
    }
}

fn operation(name: &str) -> Result<Op, Wrong> {
    let found = Op::ALL.iter().find(|op| format!("{op:?}").eq_ignore_ascii_case(name.trim()));
    found.copied().ok_or_else(|| {
        let all: Vec<String> = Op::ALL.iter().map(|op| format!("{op:?}")).collect();
        Wrong::new(format!("there is no operation '{name}'"), format!("the operations are {}", all.join(" ")))
    })
}

fn number(key: &str, value: &str) -> Result<u64, Wrong> {
    value.parse().map_err(|_| Wrong::new(format!("'{value}' is no number"), format!("write {key}=N, a whole number")))
}

fn positive(key: &str, value: &str) -> Result<u64, Wrong> {
    match number(key, value)? {
        0 => Err(Wrong::new(format!("{key}=0 fits nothing"), "counting starts at 1")),
        n => Ok(n),
    }
}

fn size(key: &str, value: &str) -> Result<u64, Wrong> {
    let size: Result<ByteCount, String> = value.parse();
    size.map(|size| size.0).map_err(|why| Wrong::new(why, format!("write {key}=8M, or a plain number")))
}

fn rate(value: &str) -> Result<u64, Wrong> {
    match size("rate", value.strip_suffix("/s").unwrap_or(value))? {
        0 => Err(Wrong::new("at a rate of 0 nothing ever ends", "write hang, or rate=125000 for 1 Mbit/s")),
        bytes => Ok(bytes),
    }
}

/// `30%` or `0.3`, as a share of 2³².
fn share(value: &str) -> Result<u64, Wrong> {
    let (text, whole) = value.strip_suffix('%').map_or((value, 1.0), |percent| (percent, 100.0));
    let share = text.trim().parse::<f64>().ok().map(|share| share / whole).filter(|share| (0.0..=1.0).contains(share));
    let share = share.ok_or_else(|| Wrong::new(format!("'{value}' is no share"), "write share=10% or share=0.1"))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2^32 by the check above")]
    Ok((share * 4_294_967_296.0) as u64)
}

/// `250ms`, `2s`, `5m`, `1h`; a plain number is seconds.
fn duration(key: &str, value: &str) -> Result<Duration, Wrong> {
    let split = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (count, unit) = value.split_at(split);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = count.parse::<f64>().map_or(f64::NAN, |count| count * factor);
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Wrong::new(format!("'{value}' is no time"), format!("write {key}=250ms, {key}=2s, {key}=5m or {key}=1h")))
}

fn offset(value: &str) -> Result<i64, Wrong> {
    let (sign, text) = match value.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, value.strip_prefix('+').unwrap_or(value)),
    };
    let seconds = duration("date", text)?.as_secs();
    Ok(sign * i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// `503` or `503/ServerBusy`.
fn status(value: &str) -> Result<Status, Wrong> {
    let (number, code) = value.split_once('/').map_or((value, None), |(number, code)| (number, Some(code)));
    let status = number.parse().ok().filter(|status| (200..600).contains(status));
    let status =
        status.ok_or_else(|| Wrong::new(format!("'{number}' is no status"), "write status=503 or status=503/ServerBusy"))?;
    if code.is_some_and(|code| code.is_empty() || !code.bytes().all(|b| b.is_ascii_alphanumeric())) {
        return Err(Wrong::new("an error code is a word", "write it as the service does: status=503/ServerBusy"));
    }
    Ok(Status { code: code.map(str::to_owned), ..Status::of(status) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_meant() {
        let fault: Fault =
            "op=PutBlock, path=c/*.bin, after=2, nth=5, status=503/ServerBusy, retry-after=7, late".parse().unwrap();
        assert_eq!(fault.select.ops, [Op::PutBlock]);
        assert_eq!((fault.select.path.as_deref(), fault.when.after, fault.when.nth), (Some("c/*.bin"), 2, Some(5)));
        assert!(fault.effects.late);
        let Some(End::Status(status)) = &fault.effects.end else { panic!("no status") };
        assert_eq!((status.status, status.code.as_deref(), status.retry_after_s), (503, Some("ServerBusy"), Some(7)));

        let fault: Fault = "delay=250ms,date=-1h,flip-request=3,cut=head,max-block=4K,max-blocks=10".parse().unwrap();
        let effects = fault.effects;
        assert_eq!((effects.delay, effects.clock_ahead_s), (Some(Duration::from_millis(250)), Some(-3600)));
        assert_eq!((effects.flip_request, effects.cut), (Some(3), Some(Cut::Head)));
        assert_eq!((effects.lowered.block_bytes, effects.lowered.blocks), (Some(4096), Some(10)));
        for (text, at) in [("reset", 0), ("reset=4096", 4096), ("reset=end", u64::MAX)] {
            let fault: Fault = text.parse().unwrap();
            assert!(matches!(fault.effects.end, Some(End::Reset(k)) if k == at), "{text}");
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn wrong_rules_are_refused_with_what_to_write() {
        for (text, what, instead) in [
            ("op=PutBlok,hang", "no operation 'PutBlok'", "PutBlock PutBlockFromUrl"),
            ("nht=5,hang", "no 'nht'", "nth every"),
            ("nth=5", "nothing is to happen", "status=503/ServerBusy"),
            ("nth=0,hang", "fits nothing", "starts at 1"),
            ("nth=x,hang", "'x' is no number", "nth=N"),
            ("hang,,late", "nothing between two commas", "which requests"),
            ("hang,hang", "there twice", "second --fault"),
            ("hang,reset", "one way only", "of its own"),
            ("hang=3", "takes no value", "write hang alone"),
            ("status", "needs a value", "status=VALUE"),
            ("status=99", "'99' is no status", "status=503"),
            ("status=503/Server Busy", "a word", "ServerBusy"),
            ("delay=3x", "'3x' is no time", "delay=250ms"),
            ("share=120%,hang", "'120%' is no share", "share=10%"),
            ("rate=0", "nothing ever ends", "125000"),
            ("rate=fast", "unknown unit", "rate=8M"),
            ("retry-after=3,hang", "goes with a status", "status=503"),
            ("late,reset", "'late' goes with", "drop"),
            ("", "nothing between", "which requests"),
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            let said = format!("{error}: {}", std::error::Error::source(&error).unwrap());
            assert!(said.contains(what), "{text}: {said}");
            assert!(error.advice().unwrap().contains(instead), "{text}: {:?}", error.advice());
            assert_eq!(error.kind(), Kind::Usage);
        }
    }
}
