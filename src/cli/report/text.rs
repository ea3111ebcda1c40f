//! Words and figures for the page: escaped, and as people read them.

use super::super::render::printable;
use crate::units::ByteCount;
use std::fmt;

/// Text as it stands in HTML, in an element or an attribute: nothing in it acts on the page, and what would act on a terminal or
/// turn the direction of reading is shown as what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = printable(self.0);
        let mut plain = printable.as_ref();
        while let Some(at) = plain.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&plain[..at])?;
            f.write_str(match plain.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            plain = &plain[at + 1..];
        }
        f.write_str(plain)
    }
}

/// JSON as it may stand in a script element: `</script>` and `<!--` cannot occur in it, and it is still the same JSON.
pub(crate) fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// `812 Mb/s`, `23.5 Gb/s`: decimal bits.
pub(crate) fn rate(mbps: f64) -> String {
    if mbps >= 1000.0 { format!("{} Gb/s", three(mbps / 1000.0)) } else { format!("{} Mb/s", three(mbps)) }
}

/// Three digits that matter, without trailing zeros.
pub(crate) fn three(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `6.3 ms`, `1.83 s`, `2 min 5 s`, `3 h 12 min`, `2 d 4 h`.
pub(crate) fn seconds(value: f64) -> String {
    if value == 0.0 {
        return "0 s".to_owned();
    }
    if value < 0.9995 {
        return format!("{} ms", three(value * 1000.0));
    }
    if value < 60.0 {
        return format!("{} s", three(value));
    }
    let whole = std::time::Duration::try_from_secs_f64(value).map_or(u64::MAX, |value| value.as_secs());
    match (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60) {
        (0, 0, minutes, 0) => format!("{minutes} min"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, 0, _) => format!("{hours} h"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

/// `12,345`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.5 GiB`, `143 MiB`: three digits that matter.
pub(crate) fn bytes(value: u64) -> String {
    let exact = ByteCount(value).to_string();
    match exact.split_once(' ') {
        Some((number, unit)) => number.parse().map_or(exact.clone(), |number: f64| format!("{} {unit}", three(number))),
        None => exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_acts_on_the_page() {
        let shown = Text("<script>alert(\"x\" & 'y')</script>\u{202e}\n\u{1b}[31m").to_string();
        assert_eq!(shown, "&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt;\\u{202e}\\n\\u{1b}[31m");
        assert_eq!(Text("naïve 文件 🎈").to_string(), "naïve 文件 🎈");
    }

    #[test]
    fn json_in_a_script_is_the_same_json() {
        let json = serde_json::json!({ "name": "</script><!--&\u{2028}" }).to_string();
        let inside = in_script(&json);
        assert!(!inside.contains(['<', '>', '&', '\u{2028}']), "{inside}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&inside).unwrap(),
            serde_json::from_str::<serde_json::Value>(&json).unwrap()
        );
    }

    #[test]
    fn figures_are_as_people_write_them() {
        for (value, words) in
            [(0.0, "0 s"), (0.00635, "6.35 ms"), (0.02, "20 ms"), (1.83, "1.83 s"), (59.0, "59 s"), (125.4, "2 min 5 s")]
        {
            assert_eq!(seconds(value), words);
        }
        assert_eq!((seconds(11_520.0), seconds(187_200.0)), ("3 h 12 min".to_owned(), "2 d 4 h".to_owned()));
        assert_eq!(
            (rate(812.4), rate(23_456.0), rate(0.5)),
            ("812 Mb/s".to_owned(), "23.5 Gb/s".to_owned(), "0.5 Mb/s".to_owned())
        );
        assert_eq!(
            (bytes(3 << 29), bytes(150_454_272), bytes(512)),
            ("1.5 GiB".to_owned(), "143 MiB".to_owned(), "512 B".to_owned())
        );
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".to_owned(), "999".to_owned(), "1,234,567".to_owned()));
    }
}
