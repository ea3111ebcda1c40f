//! Numbers as text, without the formatter: an answer has a dozen of them (dates, ids, lengths), and they were a fifth of what a
//! small request cost.

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Adds a number in base ten, with zeros before it up to `width`.
pub(crate) fn decimal(out: &mut String, value: u64, width: usize) {
    push::<10>(out, value, width, LOWER);
}

/// Adds a number in base sixteen with small letters, with zeros before it up to `width`.
pub(crate) fn hex(out: &mut String, value: u64, width: usize) {
    push::<16>(out, value, width, LOWER);
}

/// The same with capital letters.
pub(crate) fn upper_hex(out: &mut String, value: u64, width: usize) {
    push::<16>(out, value, width, UPPER);
}

fn push<const BASE: u64>(out: &mut String, mut value: u64, width: usize, alphabet: &[u8; 16]) {
    // The longest there is: 2^64 - 1 in base ten.
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    let first = at - width.clamp(1, at);
    while value > 0 {
        at -= 1;
        digits[at] = usize::try_from(value % BASE).map_or(b'0', |digit| alphabet[digit]);
        value /= BASE;
    }
    out.push_str(std::str::from_utf8(&digits[at.min(first)..]).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_formatter_writes_them() {
        for value in [0, 1, 9, 10, 15, 16, 255, 65_535, 639_000_000_000_000_000, u64::MAX] {
            let (mut out, mut padded) = (String::new(), String::new());
            decimal(&mut out, value, 1);
            hex(&mut out, value, 12);
            upper_hex(&mut out, value, 0);
            decimal(&mut padded, value, 4);
            assert_eq!(out, format!("{value}{value:012x}{value:X}"));
            assert_eq!(padded, format!("{value:04}"));
        }
    }
}
