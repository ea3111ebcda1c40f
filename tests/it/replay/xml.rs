//! XML as a tree of names, attributes and text, which is all that comparing two answers needs.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|c| c.name == name)
    }

    /// The text of a child, empty if there is no such child.
    pub(crate) fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |c| c.text.as_str())
    }

    /// This element and everything below, in document order.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(&Element)) {
        visit(self);
        self.children.iter().for_each(|c| c.walk(visit));
    }
}

/// Parses a document; the byte order mark in front is no part of it.
pub(crate) fn parse(text: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Start(start) => open.push(element(&start)?),
            Event::Empty(start) => {
                let element = element(&start)?;
                open.last_mut().ok_or("no parent")?.children.push(element);
            }
            Event::End(_) => {
                let done = open.pop().ok_or("too many ends")?;
                open.last_mut().ok_or("too many ends")?.children.push(done);
            }
            Event::Text(text) => {
                open.last_mut().ok_or("no parent")?.text.push_str(&text);
            }
            Event::GeneralRef(name) => {
                let name: &str = &name;
                let text = quick_xml::escape::unescape(&format!("&{name};")).map_err(|e| e.to_string())?.into_owned();
                open.last_mut().ok_or("no parent")?.text.push_str(&text);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match (open.len(), open.pop().and_then(|mut root| root.children.pop())) {
        (1, Some(root)) => Ok(root),
        _ => Err("not one whole element".to_owned()),
    }
}

fn element(start: &BytesStart<'_>) -> Result<Element, String> {
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|e| e.to_string())?;
        let name = attribute.key.as_ref().to_owned();
        attributes.push((name, attribute.value.into_owned()));
    }
    let name = start.name().as_ref().to_owned();
    Ok(Element { name, attributes, ..Element::default() })
}
