//! Moments as AzCopy's flags take them: a date, or a date and a time, of ISO 8601, with a zone or without one.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::{Disambiguation, TimeZone};
use std::time::SystemTime;

/// Which moment is meant by a local time that comes twice in the night the clocks are set back, so that a filter takes more
/// rather than less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    Earlier,
    Later,
}

/// Reads a moment; what has no zone is local time in `zone`, what has no time is midnight. `None` where it is none.
pub(super) fn parse(text: &str, zone: &TimeZone, twice: Twice) -> Option<SystemTime> {
    // A date with a zone and no time, which AzCopy takes and ISO 8601 does not have.
    let with_time = match (text.get(..10), text.get(10..)) {
        (Some(date), Some(rest)) if rest.starts_with(['Z', 'z', '+', '-']) => Some(format!("{date}T00{rest}")),
        _ => None,
    };
    let pieces = Pieces::parse(with_time.as_deref().unwrap_or(text)).ok()?;
    if pieces.time_zone_annotation().is_some() {
        return None;
    }
    let zone = match pieces.offset() {
        None => zone.clone(),
        Some(PiecesOffset::Zulu) => TimeZone::UTC,
        Some(PiecesOffset::Numeric(offset)) => TimeZone::fixed(offset.offset()),
        Some(_) => return None,
    };
    let local = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let twice = match twice {
        Twice::Earlier => Disambiguation::Earlier,
        Twice::Later => Disambiguation::Later,
    };
    let moment: Timestamp = zone.to_ambiguous_timestamp(local).disambiguate(twice).ok()?;
    SystemTime::try_from(moment).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn seconds(moment: SystemTime) -> u64 {
        moment.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
    }

    #[test]
    fn moments_come_with_a_zone_or_are_local() {
        // Two hours ahead of UTC: what is local is earlier in UTC.
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // 2020-08-19T00:00:00Z.
        let day = 1_597_795_200;
        for (text, expected) in [
            ("2020-08-19T15:04:00Z", day + 15 * 3600 + 4 * 60),
            ("2020-08-19t15:04:00z", day + 15 * 3600 + 4 * 60),
            ("2020-08-19T15:04:05.1234567Z", day + 15 * 3600 + 4 * 60 + 5),
            ("2020-08-19T15:04:00+01:00", day + 14 * 3600 + 4 * 60),
            ("2020-08-19T15:04Z", day + 15 * 3600 + 4 * 60),
            ("2020-08-19T15Z", day + 15 * 3600),
            ("2020-08-19Z", day),
            ("2020-08-19+01:00", day - 3600),
            ("2020-08-19", day - 7200),
            ("2020-08-19T15", day + 13 * 3600),
            ("2020-08-19T15:04", day + 13 * 3600 + 4 * 60),
            ("2020-08-19T15:04:05", day + 13 * 3600 + 4 * 60 + 5),
            ("2020-08-19 15:04:05", day + 13 * 3600 + 4 * 60 + 5),
        ] {
            assert_eq!(parse(text, &zone, Twice::Earlier).map(seconds), Some(expected), "{text}");
        }
        for text in
            ["", "yesterday", "2020", "2020-08", "2020-13-01", "19/08/2020", "15:04", "2020-08-19T25:00", "1597795200", "é"]
        {
            assert_eq!(parse(text, &zone, Twice::Earlier), None, "{text}");
        }
    }

    #[test]
    fn an_hour_that_comes_twice_is_the_one_that_takes_more() {
        // Central Europe, whose clocks are set back at 01:00 UTC on the last Sunday of October.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let first = parse("2020-10-25T02:30", &zone, Twice::Earlier).unwrap();
        let second = parse("2020-10-25T02:30", &zone, Twice::Later).unwrap();
        // 2020-10-25T00:30:00Z.
        assert_eq!(seconds(first), 1_603_585_800);
        assert_eq!(second.duration_since(first).unwrap(), Duration::from_secs(3600));
    }
}
