//! What may be called what: containers, blobs, metadata, tags ("Naming and referencing containers, blobs, and metadata").

use super::errors::{self as e, Failure, Outcome};
use super::http::Head;
use percent_encoding::percent_decode;

/// Checks a container's name.
///
/// # Errors
/// 400: its length is outside 3 to 63 or it has other characters than lower-case letters, digits and single hyphens.
pub(crate) fn container(name: &str) -> Outcome<()> {
    if matches!(name, "$root" | "$logs" | "$web" | "$blobchangefeed") {
        return Ok(());
    }
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let characters = bytes.iter().all(|b| alphanumeric(b) || *b == b'-') && !name.contains("--");
    if !characters {
        return Err(e::INVALID_RESOURCE_NAME.into());
    }
    if !(3..=63).contains(&bytes.len()) {
        return Err(e::OUT_OF_RANGE_INPUT.into());
    }
    let edges = bytes.first().is_some_and(alphanumeric) && bytes.last().is_some_and(alphanumeric);
    if edges { Ok(()) } else { Err(e::INVALID_RESOURCE_NAME.into()) }
}

/// Checks a blob's name.
///
/// # Errors
/// 400: it is longer than 1024 UTF-16 characters, has more than 254 segments, or a control character.
pub(crate) fn blob(name: &str) -> Outcome<()> {
    let (controls, units) = match name.is_ascii() {
        true => (name.bytes().any(|b| b.is_ascii_control()), name.len()),
        false => (name.chars().any(char::is_control), name.encode_utf16().count()),
    };
    if controls {
        return Err(e::INVALID_URI.into());
    }
    if units > 1024 || name.bytes().filter(|b| *b == b'/').count() > 253 {
        return Err(e::OUT_OF_RANGE_INPUT.into());
    }
    Ok(())
}

/// Decodes a path segment. A backslash becomes a slash, as the service does it.
///
/// # Errors
/// 400 `InvalidUri`: broken percent-encoding or not UTF-8.
pub(crate) fn decode(segment: &str) -> Outcome<String> {
    let bytes = segment.as_bytes();
    if !bytes.iter().any(|b| matches!(b, b'%' | b'\\')) {
        return Ok(segment.to_owned());
    }
    let broken = bytes
        .iter()
        .enumerate()
        .any(|(i, b)| *b == b'%' && !bytes.get(i + 1..i + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)));
    let text = String::from_utf8(percent_decode(bytes).collect()).ok();
    match text {
        Some(text) if !broken => Ok(text.replace('\\', "/")),
        _ => Err(e::INVALID_URI.into()),
    }
}

/// The metadata of a request, names as they were sent.
///
/// # Errors
/// 400: a name that is no identifier, empty or given twice, or more than 8 KiB in all.
pub(crate) fn metadata(head: &Head) -> Outcome<Vec<(String, String)>> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut total = 0;
    for (name, value) in &head.metadata {
        if name.is_empty() {
            return Err(e::EMPTY_METADATA_KEY.into());
        }
        let identifier =
            name.bytes().enumerate().all(|(i, b)| b == b'_' || b.is_ascii_alphabetic() || (i > 0 && b.is_ascii_digit()));
        let value = String::from_utf8(value.clone()).map_err(|_| e::INVALID_METADATA)?;
        if !identifier || found.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            return Err(e::INVALID_METADATA.into());
        }
        total += name.len() + value.len();
        found.push((name.clone(), value));
    }
    if total > 8 * 1024 { Err(e::METADATA_TOO_LARGE.into()) } else { Ok(found) }
}

/// Checks a set of blob index tags ("Set Blob Tags").
///
/// # Errors
/// 400: more than 10, a name of 0 or more than 128 or a value of more than 256 characters, other characters than letters,
/// digits, space and `+ - . / : = _`, a name given twice.
pub(crate) fn tags(tags: &[(String, String)]) -> Outcome<()> {
    let allowed = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b" +-./:=_".contains(&b));
    if tags.len() > 10 {
        return Err(e::TAGS_TOO_LARGE.into());
    }
    for (i, (name, value)) in tags.iter().enumerate() {
        let failure: Failure = if name.is_empty() {
            e::EMPTY_TAG_NAME.into()
        } else if name.len() > 128 || value.len() > 256 {
            e::TAGS_TOO_LARGE.into()
        } else if !allowed(name) || !allowed(value) {
            e::INVALID_TAG.into()
        } else if tags[..i].iter().any(|(other, _)| other == name) {
            e::DUPLICATE_TAG_NAMES.into()
        } else {
            continue;
        };
        return Err(failure);
    }
    Ok(())
}

/// `x-ms-tags` of a request: form-encoded.
///
/// # Errors
/// As [`tags`].
pub(crate) fn tags_header(head: &Head) -> Outcome<Vec<(String, String)>> {
    let Some(text) = head.header("x-ms-tags") else { return Ok(Vec::new()) };
    // Here, unlike in a URL, a plus is a space: this is a form.
    let found = super::http::parameters(&text.replace('+', "%20"));
    tags(&found)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(outcome: Outcome<()>) -> &'static str {
        outcome.map_or_else(|f| f.code().name, |()| "")
    }

    #[test]
    fn container_names() {
        for good in ["abc", "a-b-c", "123", "$root", "$web", &"a".repeat(63)] {
            assert_eq!(code(container(good)), "", "{good}");
        }
        for bad in ["Abc", "a_b", "-ab", "ab-", "a--b", "ünï", "$x1", "a.b"] {
            assert_eq!(code(container(bad)), "InvalidResourceName", "{bad}");
        }
        for bad in ["", "ab", &"a".repeat(64)] {
            assert_eq!(code(container(bad)), "OutOfRangeInput", "{bad}");
        }
    }

    #[test]
    fn blob_names() {
        let deep = vec!["a"; 254].join("/");
        for good in ["a", "a//b/", "ünï ✓", "\u{ffff}", &"é".repeat(1024), &deep] {
            assert_eq!(code(blob(good)), "", "{good}");
        }
        assert_eq!(code(blob("a\u{1}")), "InvalidUri");
        assert_eq!(code(blob(&"é".repeat(1025))), "OutOfRangeInput");
        assert_eq!(code(blob(&format!("{deep}/a"))), "OutOfRangeInput");
        // Outside the basic plane a character counts twice.
        assert_eq!(code(blob(&"😀".repeat(513))), "OutOfRangeInput");
    }

    #[test]
    fn paths_decode_or_are_refused() {
        assert_eq!(decode("a%20b%2Fc%5Cd\\e").unwrap(), "a b/c/d/e");
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(bad).unwrap_err().code().name, "InvalidUri", "{bad}");
        }
    }

    #[test]
    fn tag_rules() {
        let set = |pairs: &[(&str, &str)]| pairs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect::<Vec<_>>();
        assert_eq!(code(tags(&set(&[("a b", "x+y-z./:=_"), ("c", "")]))), "");
        assert_eq!(code(tags(&set(&[("", "x")]))), "EmptyTagName");
        assert_eq!(code(tags(&set(&[("a", "x"), ("a", "y")]))), "DuplicateTagNames");
        assert_eq!(code(tags(&set(&[("a", "x!")]))), "InvalidTag");
        assert_eq!(code(tags(&set(&[(&"a".repeat(129), "")]))), "TagsTooLarge");
        let eleven: Vec<_> = (0..11).map(|i| (i.to_string(), String::new())).collect();
        assert_eq!(code(tags(&eleven)), "TagsTooLarge");
    }
}
