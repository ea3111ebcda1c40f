//! Sizes and rates as people write and read them. Binary units for sizes (KiB, MiB, GiB), decimal bits for rates (Mb/s).

use std::fmt;
use std::str::FromStr;

/// One MiB in bytes.
pub const MIB: u64 = 1024 * 1024;

/// A count of bytes that prints in binary units and parses from `512`, `64K`, `64KiB`, `1.5GiB`, `2g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(pub u64);

const UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS.iter().find(|(_, size)| self.0 >= *size).unwrap_or(&("B", 1));
        if self.0.is_multiple_of(*size) {
            return write!(f, "{} {unit}", self.0 / size);
        }
        #[expect(clippy::cast_precision_loss, reason = "two decimals for people")]
        let value = self.0 as f64 / *size as f64;
        write!(f, "{value:.2} {unit}")
    }
}

impl FromStr for ByteCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => MIB,
            "g" | "gb" | "gib" => 1 << 30,
            "t" | "tb" | "tib" => 1 << 40,
            other => return Err(format!("unknown unit '{other}': use K, M, G or T (binary)")),
        };
        scaled(number, factor).map(ByteCount)
    }
}

/// `number * factor` in bytes, rounded down, for numbers with a fraction (`0.25` MiB).
///
/// # Errors
/// A text saying what is wrong: not a number, negative, or more than 2^63 bytes.
pub fn scaled(number: &str, factor: u64) -> Result<u64, String> {
    let value: f64 = number.parse().map_err(|_| format!("'{number}' is not a number"))?;
    #[expect(clippy::cast_precision_loss, reason = "factors are powers of two")]
    let bytes = value * factor as f64;
    if !bytes.is_finite() || !(0.0..9.2e18).contains(&bytes) {
        return Err(format!("'{number}' is out of range"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked above")]
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_and_print() {
        for (text, bytes, shown) in [
            ("0", 0, "0 B"),
            ("512", 512, "512 B"),
            ("64K", 65536, "64 KiB"),
            ("1.5GiB", 3 << 29, "1.50 GiB"),
            ("2g", 2 << 30, "2 GiB"),
            ("8 MiB", 8 << 20, "8 MiB"),
        ] {
            let parsed: ByteCount = text.parse().unwrap();
            assert_eq!((parsed.0, parsed.to_string().as_str()), (bytes, shown), "{text}");
        }
        for bad in ["", "x", "1X", "-1", "1e400", "NaN"] {
            assert!(bad.parse::<ByteCount>().is_err(), "{bad}");
        }
    }
}
