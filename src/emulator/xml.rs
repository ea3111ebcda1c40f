//! The XML of requests and answers: a small tree for reading, elements for writing.
//!
//! What requests say is read apart from `rest::model` on purpose, and so are the documents of answers composed: the client's side
//! and this one check each other. How an element is written and escaped is the same for both.

use super::errors::{Failure, Outcome};
pub(crate) use crate::rest::model::xml::{push_element as element, push_escaped as escape};
use quick_xml::Reader;
use quick_xml::events::Event;

/// Elements within elements at most. No request has more than five; a tree is dropped by recursion, so depth must have an end.
const DEPTH: usize = 64;

/// An element with its text and children. Attributes mean nothing to the service and are dropped.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
    /// Where the name in its end tag stands, which is where the service points when it dislikes the content.
    end: usize,
}

impl Element {
    /// The first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|c| c.name == name)
    }

    /// The text of the first child of this name.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|c| c.text.as_str())
    }

    /// A refusal pointing at the end of this element in `source`.
    pub(crate) fn refuse(&self, source: &[u8], reason: &str) -> Failure {
        let (line, column) = position(source, self.end);
        Failure::xml(line, column, reason)
    }
}

/// Reads a document whose root has this name.
///
/// # Errors
/// 400 `InvalidXmlDocument` with line and position.
pub(crate) fn parse(source: &[u8], root: &str) -> Outcome<Element> {
    let text = std::str::from_utf8(source).map_err(|e| fail(source, e.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = vec![Element::default()];
    loop {
        let before = offset(&reader);
        let event = reader.read_event().map_err(|_| fail(source, offset(&reader)))?;
        let here = offset(&reader);
        if open.len() > DEPTH {
            return Err(fail(source, here));
        }
        let top = open.last_mut().ok_or_else(|| fail(source, here))?;
        match event {
            Event::Start(start) => {
                let name = start.local_name().as_ref().to_owned();
                open.push(Element { name, ..Element::default() });
            }
            Event::Empty(start) => {
                let name = start.local_name().as_ref().to_owned();
                top.children.push(Element { name, end: before + 1, ..Element::default() });
            }
            Event::End(_) => {
                let mut done = open.pop().ok_or_else(|| fail(source, here))?;
                done.end = before + 2;
                open.last_mut().ok_or_else(|| fail(source, here))?.children.push(done);
            }
            Event::Text(text) => top.text.push_str(&text),
            Event::CData(text) => top.text.push_str(&text),
            Event::GeneralRef(reference) => {
                let c = match reference.resolve_char_ref().map_err(|_| fail(source, here))? {
                    Some(c) => c,
                    None => match &*reference {
                        "lt" => '<',
                        "gt" => '>',
                        "amp" => '&',
                        "apos" => '\'',
                        "quot" => '"',
                        _ => return Err(fail(source, here)),
                    },
                };
                top.text.push(c);
            }
            Event::DocType(_) => return Err(fail(source, here)),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
            Event::Eof => break,
        }
    }
    let (Some(mut document), true) = (open.pop(), open.is_empty()) else { return Err(fail(source, source.len())) };
    match document.children.pop() {
        Some(element) if document.children.is_empty() && element.name == root => Ok(element),
        _ => Err(fail(source, 0)),
    }
}

fn offset(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

fn fail(source: &[u8], at: usize) -> Failure {
    let (line, column) = position(source, at);
    Failure::xml(line, column, "")
}

fn position(source: &[u8], at: usize) -> (u64, u64) {
    let before = &source[..at.min(source.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() as u64 + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() as u64 + 1;
    (line, column)
}

/// The service's first bytes of a document: byte order mark and declaration.
pub(crate) const HEADER: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// Whether XML 1.0 can carry the character.
pub(crate) fn legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_keep_order_text_and_references() {
        let root =
            parse("\u{feff}<?xml version='1.0'?>\n<L><Latest>a+/=</Latest><C/><Latest> &lt;&#x41; </Latest></L>".as_bytes(), "L")
                .unwrap();
        let got: Vec<_> = root.children.iter().map(|c| (c.name.as_str(), c.text.as_str())).collect();
        assert_eq!(got, [("Latest", "a+/="), ("C", ""), ("Latest", " <A ")]);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for bad in
            ["", "x", "<L>", "<L></M>", "<M></M>", "<L></L><L></L>", "<L>&unknown;</L>", "<!DOCTYPE L [<!ENTITY a 'b'>]><L/>"]
        {
            let code = parse(bad.as_bytes(), "L").unwrap_err().code().name;
            assert_eq!(code, "InvalidXmlDocument", "{bad}");
        }
        assert!(parse(b"<L>\xff</L>", "L").is_err());
        for depth in [DEPTH, 200_000] {
            let deep = format!("<L>{}{}</L>", "<a>".repeat(depth), "</a>".repeat(depth));
            assert!(parse(deep.as_bytes(), "L").is_err(), "{depth}");
        }
    }
}
