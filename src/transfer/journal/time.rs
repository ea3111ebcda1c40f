//! Moments as the integers the file holds.

use std::time::{Duration, SystemTime};

/// Microseconds since 1970, UTC; negative before. What does not fit ends at the border.
pub(super) fn micros(moment: SystemTime) -> i64 {
    signed(moment, Duration::as_micros)
}

/// Nanoseconds since 1970: the form in which times of change are compared, which must not be rounded.
pub(super) fn nanos(moment: SystemTime) -> i64 {
    signed(moment, Duration::as_nanos)
}

/// The moment so many microseconds after 1970.
pub(super) fn of_micros(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { SystemTime::UNIX_EPOCH - distance } else { SystemTime::UNIX_EPOCH + distance }
}

/// The moment so many nanoseconds after 1970.
pub(super) fn of_nanos(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { SystemTime::UNIX_EPOCH - distance } else { SystemTime::UNIX_EPOCH + distance }
}

fn signed(moment: SystemTime, unit: fn(&Duration) -> u128) -> i64 {
    match moment.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(unit(&after)).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(unit(&before.duration())).map_or(i64::MIN, |distance| -distance),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_back_as_they_were() {
        for moment in [
            SystemTime::UNIX_EPOCH,
            SystemTime::UNIX_EPOCH + Duration::new(1_767_323_045, 678_901_234),
            SystemTime::UNIX_EPOCH - Duration::new(5, 1),
        ] {
            assert_eq!(of_nanos(nanos(moment)), moment);
            let rounded = of_micros(micros(moment));
            let off = moment.duration_since(rounded).or_else(|_| rounded.duration_since(moment)).unwrap();
            assert!(off < Duration::from_micros(1), "{off:?}");
        }
        assert_eq!(micros(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::MAX >> 2)), i64::MAX);
    }
}
