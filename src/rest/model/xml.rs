//! A small XML tree for the service's documents, and the escaping for writing them.
//!
//! Documents are shallow and come as a whole, so a tree of borrowed names and text is enough. What is read may be anything:
//! depth is bounded and nothing panics.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use std::borrow::Cow;

/// The byte order mark the service's documents begin with.
pub const BOM: &str = "\u{feff}";

/// The declaration the service writes.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// Deepest nesting taken; the service's documents have five levels.
const MAX_DEPTH: usize = 32;

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum XmlError {
    /// Not UTF-8.
    #[error("the document is not UTF-8")]
    NotUtf8,
    /// Not well-formed.
    #[error("the document is not well-formed XML")]
    NotXml(#[from] quick_xml::Error),
    /// Well-formed and not what belongs here.
    #[error("the document is not what was asked for: {0}")]
    Unexpected(String),
}

/// An element.
#[derive(Debug, Default)]
pub struct Node<'a> {
    /// Name, prefix included.
    pub name: Cow<'a, str>,
    /// Attributes, unescaped.
    pub attributes: Vec<(String, String)>,
    /// Text directly inside, pieces joined, unescaped.
    pub text: Cow<'a, str>,
    /// Elements inside, in order.
    pub children: Vec<Node<'a>>,
}

impl<'a> Node<'a> {
    /// Reads a document and checks the name of its root.
    ///
    /// # Errors
    /// As [`XmlError`] says.
    pub fn parse(document: &'a [u8], root: &str) -> Result<Node<'a>, XmlError> {
        Node::parse_sifting(document, root, |_, node| Ok(Some(node)))
    }

    /// [`Node::parse`], where each element is shown to `sift` as it ends, behind those it lies in, the root first: what comes back
    /// becomes part of the tree. So a long list need not be in memory as a tree of all its entries.
    ///
    /// # Errors
    /// As [`XmlError`] says, and those of `sift`.
    pub fn parse_sifting(
        document: &'a [u8],
        root: &str,
        sift: impl FnMut(&[Node<'a>], Node<'a>) -> Result<Option<Node<'a>>, XmlError>,
    ) -> Result<Node<'a>, XmlError> {
        let node = Node::parse_any(document, sift)?;
        if node.name == root { Ok(node) } else { Err(XmlError::Unexpected(format!("the root is {} and not {root}", node.name))) }
    }

    fn parse_any(
        document: &'a [u8],
        mut sift: impl FnMut(&[Node<'a>], Node<'a>) -> Result<Option<Node<'a>>, XmlError>,
    ) -> Result<Node<'a>, XmlError> {
        let text = std::str::from_utf8(document).map_err(|_| XmlError::NotUtf8)?;
        let text = text.strip_prefix(BOM).unwrap_or(text);
        let mut reader = Reader::from_str(text);
        let mut open: Vec<Node<'a>> = Vec::new();
        loop {
            let closed = match reader.read_event()? {
                Event::Start(start) => {
                    if open.len() == MAX_DEPTH {
                        return Err(XmlError::Unexpected("it is nested too deeply".to_owned()));
                    }
                    open.push(Node::begin(&start, text)?);
                    None
                }
                Event::Empty(start) => Some(Node::begin(&start, text)?),
                Event::End(_) => open.pop(),
                Event::Text(piece) => {
                    push_text(&mut open, piece.xml10_content());
                    None
                }
                Event::CData(data) => {
                    push_text(&mut open, data.xml10_content());
                    None
                }
                Event::GeneralRef(reference) => {
                    let known = match reference.resolve_char_ref()? {
                        Some(c) => Some(c.to_string()),
                        None => quick_xml::escape::resolve_xml_entity(&reference.xml10_content()).map(str::to_owned),
                    };
                    let Some(text) = known else {
                        return Err(XmlError::Unexpected("it names an entity that XML does not define".to_owned()));
                    };
                    push_text(&mut open, Cow::Owned(text));
                    None
                }
                Event::Eof => return Err(XmlError::Unexpected("it has no root, or the root is not closed".to_owned())),
                // Declarations, comments and the like carry nothing.
                _ => None,
            };
            let Some(node) = closed else { continue };
            if open.is_empty() {
                return Ok(node);
            }
            let kept = sift(&open, node)?;
            if let (Some(node), Some(parent)) = (kept, open.last_mut()) {
                parent.children.push(node);
            }
        }
    }

    fn begin(start: &BytesStart<'a>, document: &'a str) -> Result<Node<'a>, XmlError> {
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(quick_xml::Error::from)?;
            let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0)?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(Node { name: borrowed(start.name().as_ref(), document), attributes, ..Node::default() })
    }

    /// First child of this name.
    pub fn child(&self, name: &str) -> Option<&Node<'a>> {
        self.children.iter().find(|c| c.name == name)
    }

    /// Text of the first child of this name; `Some("")` if it is there and empty.
    pub fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name).map(|c| &*c.text)
    }

    /// The same, owned, and `None` where it is empty: the service writes absent properties as empty elements.
    pub fn filled(&self, name: &str) -> Option<String> {
        self.child_text(name).filter(|t| !t.is_empty()).map(str::to_owned)
    }

    /// An attribute's value.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// A name as the part of the document that it is, which the reader's types do not tell: a list has some twenty for each entry.
fn borrowed<'a>(name: &str, document: &'a str) -> Cow<'a, str> {
    let at = name.as_ptr().addr().wrapping_sub(document.as_ptr().addr());
    let part = at.checked_add(name.len()).and_then(|end| document.get(at..end));
    part.filter(|part| *part == name).map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed)
}

fn push_text<'a>(open: &mut [Node<'a>], text: Cow<'a, str>) {
    if let Some(node) = open.last_mut() {
        if node.text.is_empty() {
            node.text = text;
        } else {
            node.text.to_mut().push_str(&text);
        }
    }
}

/// Whether XML 1.0 can hold this text at all. A carriage return could stand as a reference but is not kept by every reader.
pub fn is_plain(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..))
}

/// Appends text with `&`, `<`, `>` escaped; characters XML cannot hold become U+FFFD.
pub fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#xD;"),
            c if is_plain(c.encode_utf8(&mut [0; 4])) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

/// Appends an attribute's value, quotes escaped too.
pub fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    let mut escaped = String::with_capacity(value.len());
    push_escaped(&mut escaped, value);
    out.push_str(&escaped.replace('"', "&quot;"));
    out.push('"');
}

/// Appends `<name>text</name>`, or `<name />` for no text, as the service writes it.
pub fn push_element(out: &mut String, name: &str, text: &str) {
    out.push('<');
    out.push_str(name);
    if text.is_empty() {
        out.push_str(" />");
        return;
    }
    out.push('>');
    push_escaped(out, text);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// Appends the element where there is a value; an empty value is written as an empty element.
pub fn push_optional(out: &mut String, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        push_element(out, name, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_references_and_cdata_join_into_one_text() {
        let document = "\u{feff}<?xml version='1.0'?><!-- c --><r a='&lt;&#65;'>a&amp;b&#x20AC;<![CDATA[<c>]]><x/>\r\nd</r>";
        let node = Node::parse(document.as_bytes(), "r").unwrap();
        assert_eq!(node.text, "a&b€<c>\nd");
        assert_eq!(node.attribute("a"), Some("<A"));
        assert_eq!(node.children.len(), 1);
    }

    #[test]
    fn what_is_sifted_out_is_no_part_of_the_tree() {
        let document = b"<r><l><e>1</e><l><e>2</e></l><e>3</e></l><e>4</e></r>";
        let mut taken = Vec::new();
        let tree = Node::parse_sifting(document, "r", |around, node| {
            if node.name != "e" || !matches!(around, [_, list] if list.name == "l") {
                return Ok(Some(node));
            }
            taken.push(node.text.into_owned());
            Ok(None)
        });
        let tree = tree.unwrap();
        assert_eq!(taken, ["1", "3"]);
        assert_eq!(tree.children.iter().map(|node| &*node.name).collect::<Vec<_>>(), ["l", "e"]);
        assert_eq!(tree.children[0].children[0].children[0].text, "2");
        assert!(Node::parse_sifting(document, "r", |_, _| Err(XmlError::NotUtf8)).is_err());
        assert!(matches!(&tree.name, Cow::Borrowed("r")));
    }

    #[test]
    fn what_is_no_document_is_an_error_and_no_panic() {
        let deep = "<a>".repeat(100_000);
        for text in ["", "text", "<r>", "</r>", "<r></x>", "<r>&unknown;</r>", "<r>&#0;</r>", "<r a=1></r>", "<s/>", &deep] {
            assert!(Node::parse(text.as_bytes(), "r").is_err(), "{}", &text[..text.len().min(20)]);
        }
        assert!(Node::parse(b"<r>\xff</r>", "r").is_err());
    }

    #[test]
    fn what_is_written_comes_back() {
        let text = "a<b>&\"'\r\n\t€😀";
        let mut out = String::from("<r");
        push_attribute(&mut out, "q", text);
        out.push('>');
        push_element(&mut out, "t", text);
        push_element(&mut out, "e", "");
        out.push_str("</r>");
        let node = Node::parse(out.as_bytes(), "r").unwrap();
        assert_eq!(node.child_text("t"), Some(text));
        assert!(out.ends_with("<e /></r>"));
        let mut out = String::new();
        push_escaped(&mut out, "\u{1}\u{ffff}");
        assert_eq!(out, "\u{fffd}\u{fffd}");
        assert!(!is_plain("\u{ffff}") && !is_plain("\u{0}") && !is_plain("\r") && is_plain("é\t\n😀"));
    }
}
