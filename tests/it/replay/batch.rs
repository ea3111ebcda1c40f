//! Blob batches: each part of a request is signed on its own, each part of an answer is an answer of its own.

use super::compare::{Known, error_bodies, headers};

/// A message within a multipart body.
pub(crate) struct Part {
    /// Headers of the part itself.
    pub(crate) outer: Vec<(String, String)>,
    /// Request or status line.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// The parts of a multipart body, whatever its boundary and line ends.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let text = text.replace("\r\n", "\n");
    let boundary = text.lines().find(|line| line.starts_with("--")).unwrap_or("--").to_owned();
    let inner = text.split(&boundary).skip(1).filter(|part| !part.starts_with("--"));
    inner.map(|part| part.strip_prefix('\n').unwrap_or(part)).map(part).collect()
}

fn part(text: &str) -> Part {
    let (outer, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let (line, inner) = head.split_once('\n').unwrap_or((head, ""));
    Part { outer: header_lines(outer), line: line.trim().to_owned(), headers: header_lines(inner), body: body.trim().to_owned() }
}

fn header_lines(text: &str) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(n, v)| (n.trim().to_owned(), v.trim().to_owned())).collect()
}

/// The request body: parts with the lines that `rewrite` makes of them.
pub(crate) fn request(text: &str, mut rewrite: impl FnMut(Part) -> Part) -> String {
    let boundary = text.lines().find(|line| line.starts_with("--")).unwrap_or("--").trim().to_owned();
    let mut out = String::new();
    for part in parts(text).into_iter().map(&mut rewrite) {
        out.push_str(&format!("{boundary}\r\n"));
        for (name, value) in &part.outer {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str(&format!("\r\n{}\r\n", part.line));
        for (name, value) in &part.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str(&format!("\r\n{}\r\n", part.body));
    }
    out.push_str(&format!("{boundary}--\r\n"));
    out
}

/// Compares two multipart answers part by part.
pub(crate) fn answers(recorded: &str, got: &str, known: &mut Known, out: &mut Vec<String>) {
    let (recorded, got) = (parts(recorded), parts(got));
    if recorded.len() != got.len() {
        out.push(format!("{} parts, recorded {}", got.len(), recorded.len()));
        return;
    }
    for (index, (theirs, ours)) in recorded.iter().zip(&got).enumerate() {
        let mut found = Vec::new();
        let status = |part: &Part| part.line.split(' ').nth(1).unwrap_or_default().to_owned();
        if status(theirs) != status(ours) {
            found.push(format!("answers {:?}, recorded {:?}", ours.line, theirs.line));
        } else {
            headers(&theirs.outer, &ours.outer, false, known, &mut found);
            headers(&theirs.headers, &ours.headers, false, known, &mut found);
            match (theirs.body.is_empty(), ours.body.is_empty()) {
                (false, false) => error_bodies(&theirs.body, &ours.body, known, &mut found),
                (true, true) => {}
                _ => found.push("only one has a body".to_owned()),
            }
        }
        out.extend(found.into_iter().map(|what| format!("part {index}: {what}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_apart_and_together() {
        let text = "--b\r\nContent-ID: 0\r\n\r\nDELETE /c/x HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n--b--\r\n";
        let found = parts(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, "DELETE /c/x HTTP/1.1");
        assert_eq!(found[0].headers, [("Content-Length".to_owned(), "0".to_owned())]);
        assert_eq!(request(text, |part| part), text);
    }
}
