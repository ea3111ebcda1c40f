//! Time as the service counts it: ticks of 100 ns since the year 1, as in its ETags and snapshot names, and the two ways it
//! writes moments (RFC 1123 in headers, ISO 8601 with seven decimals in bodies).

use super::digits::decimal;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 100 ns since 0001-01-01T00:00:00Z.
pub(crate) type Ticks = u64;

/// Ticks in a second.
pub(crate) const SECOND: Ticks = 10_000_000;

const DAY_SECONDS: u64 = 86_400;
/// Seconds from the year 1 to 1970.
const TO_UNIX: u64 = 62_135_596_800;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The moment in ticks; moments before 1970 count as 1970.
pub(crate) fn ticks(moment: SystemTime) -> Ticks {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    (TO_UNIX + since.as_secs()) * SECOND + u64::from(since.subsec_nanos()) / 100
}

/// The moment so many seconds later, or earlier.
pub(crate) fn shifted(moment: Ticks, seconds: i64) -> Ticks {
    let by = seconds.unsigned_abs().saturating_mul(SECOND);
    if seconds < 0 { moment.saturating_sub(by) } else { moment.saturating_add(by) }
}

/// The start of the second a moment lies in: what a header can say, and what date conditions compare.
pub(crate) fn whole_second(moment: Ticks) -> Ticks {
    moment - moment % SECOND
}

/// `Thu, 15 Jan 2026 08:30:00 GMT` (RFC 1123).
pub(crate) fn http_date(moment: Ticks) -> String {
    let seconds = moment / SECOND;
    let days = seconds / DAY_SECONDS;
    let (year, month, day) = civil(days);
    let mut out = String::with_capacity(29);
    out.push_str(usize::try_from(days % 7).map_or("", |d| DAYS[d]));
    out.push_str(", ");
    decimal(&mut out, day, 2);
    out.push(' ');
    out.push_str(usize::try_from(month - 1).map_or("", |m| MONTHS[m]));
    out.push(' ');
    decimal(&mut out, year, 4);
    for (between, part) in [(' ', seconds / 3600 % 24), (':', seconds / 60 % 60), (':', seconds % 60)] {
        out.push(between);
        decimal(&mut out, part, 2);
    }
    out.push_str(" GMT");
    out
}

/// `2026-01-15T08:30:00.1234567Z`.
pub(crate) fn iso(moment: Ticks) -> String {
    let seconds = moment / SECOND;
    let (year, month, day) = civil(seconds / DAY_SECONDS);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:07}Z", moment % SECOND)
}

/// Reads the RFC 1123 form only; the two older HTTP forms are not used by any client of this service.
pub(crate) fn parse_http_date(text: &str) -> Option<Ticks> {
    let rest = text.trim().split_once(", ")?.1.strip_suffix(" GMT")?;
    let mut words = rest.split(' ');
    let day = number(words.next()?)?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(name))? as u64 + 1;
    let year = number(words.next()?)?;
    let mut clock = words.next()?.split(':');
    let (h, m, s) = (number(clock.next()?)?, number(clock.next()?)?, number(clock.next()?)?);
    if words.next().is_some() || clock.next().is_some() {
        return None;
    }
    assemble([year, month, day, h, m, s], 0)
}

/// Reads the forms that SAS and policies allow: a day, a minute, a second, a second with up to seven decimals; all UTC.
pub(crate) fn parse_iso(text: &str) -> Option<Ticks> {
    let (date, clock) = match text.split_once('T') {
        Some((date, clock)) => (date, clock.strip_suffix('Z').or_else(|| clock.strip_suffix("+00:00"))?),
        None => (text, "00:00"),
    };
    let mut date = date.split('-');
    let (year, month, day) = (number(date.next()?)?, number(date.next()?)?, number(date.next()?)?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.split(':');
    let (h, m) = (number(clock.next()?)?, number(clock.next()?)?);
    let s = clock.next().map_or(Some(0), number)?;
    if date.next().is_some() || clock.next().is_some() || fraction.len() > 7 {
        return None;
    }
    let decimals = if fraction.is_empty() { 0 } else { number(fraction)? };
    let scale = u32::try_from(7 - fraction.len()).map_or(1, |missing| 10u64.pow(missing));
    assemble([year, month, day, h, m, s], decimals * scale)
}

fn number(digits: &str) -> Option<u64> {
    let more = |sum: u64, digit: u8| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    };
    if digits.is_empty() { None } else { digits.bytes().try_fold(0, more) }
}

fn assemble([year, month, day, h, m, s]: [u64; 6], fraction: u64) -> Option<Ticks> {
    let inside = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !inside || h > 23 || m > 59 || s > 60 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    // A day the month does not have would come back as another.
    (civil(days) == (year, month, day)).then_some((days * DAY_SECONDS + h * 3600 + m * 60 + s) * SECOND + fraction)
}

/// Days from 0001-01-01 (proleptic Gregorian), counting years from March so that the leap day comes last.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    // 306 days lie between 0000-03-01 and 0001-01-01.
    (365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1).saturating_sub(306)
}

fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 306;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * m + 2) / 5 + 1;
    let (month, carry) = if m < 10 { (m + 3, 0) } else { (m - 9, 1) };
    (era * 400 + year_of_era + carry, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_in_both_forms() {
        // The RFC's own example, the epoch, a leap day, and 2026 (all weekdays checked against a calendar).
        for (unix, header, iso_text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.0000000Z"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.0000000Z"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT", "2000-02-29T00:00:00.0000000Z"),
            (1_768_465_800, "Thu, 15 Jan 2026 08:30:00 GMT", "2026-01-15T08:30:00.0000000Z"),
        ] {
            let moment = ticks(UNIX_EPOCH + Duration::from_secs(unix));
            assert_eq!(http_date(moment), header);
            assert_eq!(iso(moment), iso_text);
            assert_eq!(parse_http_date(header), Some(moment));
            assert_eq!(parse_iso(iso_text), Some(moment));
        }
    }

    #[test]
    fn sas_forms_parse_and_nonsense_does_not() {
        let day = parse_iso("2026-01-15");
        assert!(day.is_some());
        assert_eq!(day, parse_iso("2026-01-15T00:00Z"));
        assert_eq!(day, parse_iso("2026-01-15T00:00:00Z"));
        assert_eq!(parse_iso("2026-01-15T00:00:00.5Z"), day.map(|t| t + SECOND / 2));
        for bad in ["", "end", "2026-13-01", "2026-02-30", "2026-01-15T25:00Z", "2026-01-15T00:00:00", "2026-1-1T0"] {
            assert_eq!(parse_iso(bad), None, "{bad}");
        }
        for bad in
            ["", "Thu, 15 Jan 2026 08:30:00", "15 Jan 2026", "Thu, 15 Foo 2026 08:30:00 GMT", "Thu, 99 Jan 2026 08:30:00 GMT"]
        {
            assert_eq!(parse_http_date(bad), None, "{bad}");
        }
    }
}
