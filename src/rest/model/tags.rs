//! Blob index tags as a document. Sources: "Set Blob Tags", "Get Blob Tags", Azure Storage REST reference.

use super::xml::{BOM, DECLARATION, Node, XmlError, push_element};

/// Tags of a blob, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(pub Vec<(String, String)>);

impl Tags {
    /// Reads a `Tags` document.
    ///
    /// # Errors
    /// Where it is not one, or a tag has no key.
    pub fn parse(document: &[u8]) -> Result<Tags, XmlError> {
        let root = Node::parse(document, "Tags")?;
        root.child("TagSet").map_or(Ok(Tags::default()), Tags::from_set)
    }

    /// Reads a `TagSet` element, as lists of blobs hold it too.
    pub(super) fn from_set(set: &Node<'_>) -> Result<Tags, XmlError> {
        let tag = |node: &Node<'_>| {
            let key = node.child_text("Key").ok_or_else(|| XmlError::Unexpected("a tag has no Key".to_owned()))?;
            Ok((key.to_owned(), node.child_text("Value").unwrap_or_default().to_owned()))
        };
        set.children.iter().filter(|c| c.name == "Tag").map(tag).collect::<Result<_, _>>().map(Tags)
    }

    /// The element without declaration.
    pub(super) fn push(&self, out: &mut String) {
        out.push_str("<Tags>");
        if self.0.is_empty() {
            out.push_str("<TagSet />");
        } else {
            out.push_str("<TagSet>");
            for (key, value) in &self.0 {
                out.push_str("<Tag>");
                push_element(out, "Key", key);
                push_element(out, "Value", value);
                out.push_str("</Tag>");
            }
            out.push_str("</TagSet>");
        }
        out.push_str("</Tags>");
    }

    /// The body of a request.
    pub fn to_request_xml(&self) -> String {
        let mut out = String::from(DECLARATION);
        self.push(&mut out);
        out
    }

    /// The answer as the service writes it, byte order mark first.
    pub fn to_xml(&self) -> String {
        format!("{BOM}{}", self.to_request_xml())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_both_ways() {
        let tags = Tags(vec![("k 1".into(), "a+b=c".into()), ("empty".into(), String::new())]);
        let xml = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet><Tag><Key>k 1</Key><Value>a+b=c</Value></Tag><Tag><Key>empty</Key><Value /></Tag></TagSet></Tags>";
        assert_eq!(tags.to_request_xml(), xml);
        assert_eq!(tags.to_xml(), format!("\u{feff}{xml}"));
        assert_eq!(Tags::parse(tags.to_xml().as_bytes()).unwrap(), tags);
        assert_eq!(Tags::parse(Tags::default().to_xml().as_bytes()).unwrap(), Tags::default());
        assert_eq!(Tags::parse(b"<Tags/>").unwrap(), Tags::default());
        assert!(Tags::parse(b"<Tags><TagSet><Tag><Value>v</Value></Tag></TagSet></Tags>").is_err());
        assert!(Tags::parse(b"<html/>").is_err());
    }
}
