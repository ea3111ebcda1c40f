//! Dates as HTTP writes them: `Thu, 15 Jan 2026 08:30:00 GMT` (RFC 9110, 5.6.7).

use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Writes a moment, to the second.
pub fn format(moment: SystemTime) -> String {
    let whole = Timestamp::try_from(moment).unwrap_or_default();
    DateTimePrinter::new().timestamp_to_rfc9110_string(&whole).unwrap_or_default()
}

/// Reads a date; `None` where it is none.
pub fn parse(text: &str) -> Option<SystemTime> {
    DateTimeParser::new().parse_timestamp(text.trim()).ok().and_then(|t| SystemTime::try_from(t).ok())
}

/// The present second, formatted once a second rather than once a request.
pub fn now(clock: SystemTime) -> http::HeaderValue {
    static LAST: Mutex<Option<(u64, http::HeaderValue)>> = Mutex::new(None);
    let second = clock.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((at, value)) if *at == second => value.clone(),
        _ => {
            let value = http::HeaderValue::from_maybe_shared(bytes::Bytes::from(format(clock)))
                .expect("a date has visible ASCII characters only");
            *last = Some((second, value.clone()));
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_465_800);
        assert_eq!(format(moment), "Thu, 15 Jan 2026 08:30:00 GMT");
        assert_eq!(parse("Thu, 15 Jan 2026 08:30:00 GMT"), Some(moment));
        assert_eq!(format(moment - Duration::from_secs(5 * 86_400)), "Sat, 10 Jan 2026 08:30:00 GMT");
        assert_eq!(now(moment), "Thu, 15 Jan 2026 08:30:00 GMT");
        assert_eq!(now(moment + Duration::from_millis(1500)), "Thu, 15 Jan 2026 08:30:01 GMT");
        for text in ["", "yesterday", "15 Jan 2026", "Thu, 32 Jan 2026 08:30:00 GMT"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
