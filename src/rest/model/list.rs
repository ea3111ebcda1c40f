//! Lists of blobs and of containers. Sources: "List Blobs", "List Containers", Azure Storage REST reference.

use super::listed::{Metadata, Properties, push_metadata, read_pairs};
use super::tags::Tags;
use super::xml::{BOM, DECLARATION, Node, XmlError, is_plain, push_attribute, push_element, push_optional};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// A blob, snapshot or version in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlobItem {
    /// Name, raw.
    pub name: String,
    /// Snapshot time, of a snapshot.
    pub snapshot: Option<String>,
    /// Version id, where versions are kept.
    pub version_id: Option<String>,
    /// Whether this is the current version; the element is there only then.
    pub is_current_version: bool,
    /// Whether it is soft-deleted; the element is there only then.
    pub deleted: bool,
    /// Whether only older versions exist (`HasVersionsOnly`).
    pub has_versions_only: bool,
    /// Properties.
    pub properties: Properties,
    /// Metadata, where it was asked for.
    pub metadata: Option<Metadata>,
    /// Tags, where they were asked for and there are any.
    pub tags: Option<Tags>,
    /// Object replication metadata: the element is there from version 2020-02-10 on, mostly empty.
    pub or_metadata: Option<Metadata>,
}

/// What a page of blobs holds: blobs, and with a delimiter the common prefixes, in one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListEntry {
    /// A blob.
    Blob(BlobItem),
    /// A common prefix, the delimiter included.
    Prefix(String),
}

/// One page of List Blobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    /// `ServiceEndpoint`.
    pub service_endpoint: String,
    /// `ContainerName`.
    pub container_name: String,
    /// Echo of the parameter.
    pub prefix: Option<String>,
    /// Echo of the parameter.
    pub marker: Option<String>,
    /// Echo of the parameter.
    pub max_results: Option<String>,
    /// Echo of the parameter.
    pub delimiter: Option<String>,
    /// Blobs and prefixes, in the service's order. A page may be empty and still have a next one.
    pub entries: Vec<ListEntry>,
    /// Where the next page begins; `None` on the last. The only sign of the end.
    pub next_marker: Option<String>,
}

impl ListPage {
    /// Reads a page.
    ///
    /// # Errors
    /// Where it is not one, or an entry has no name.
    pub fn parse(document: &[u8]) -> Result<ListPage, XmlError> {
        let mut entries = Vec::new();
        let root = Node::parse_sifting(document, "EnumerationResults", |around, node| {
            if !matches!(around, [_, blobs] if blobs.name == "Blobs") {
                return Ok(Some(node));
            }
            match &*node.name {
                "Blob" => entries.push(ListEntry::Blob(read_blob(&node)?)),
                "BlobPrefix" => entries.push(ListEntry::Prefix(read_name(&node)?)),
                _ => {}
            }
            Ok(None)
        })?;
        root.child("Blobs").ok_or_else(|| XmlError::Unexpected("there is no Blobs element".to_owned()))?;
        Ok(ListPage {
            service_endpoint: root.attribute("ServiceEndpoint").unwrap_or_default().to_owned(),
            container_name: root.attribute("ContainerName").unwrap_or_default().to_owned(),
            prefix: read_echo(&root, "Prefix"),
            marker: read_echo(&root, "Marker"),
            max_results: read_echo(&root, "MaxResults"),
            delimiter: read_echo(&root, "Delimiter"),
            entries,
            next_marker: root.filled("NextMarker"),
        })
    }

    /// The blobs alone.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobItem> {
        self.entries.iter().filter_map(|entry| match entry {
            ListEntry::Blob(blob) => Some(blob),
            ListEntry::Prefix(_) => None,
        })
    }

    /// The prefixes alone.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match entry {
            ListEntry::Blob(_) => None,
            ListEntry::Prefix(prefix) => Some(prefix.as_str()),
        })
    }

    /// Writes the page as the service does.
    pub fn to_xml(&self) -> String {
        let mut out = String::with_capacity(512 + self.entries.len() * 900);
        out.push_str(BOM);
        out.push_str(DECLARATION);
        out.push_str("<EnumerationResults");
        push_attribute(&mut out, "ServiceEndpoint", &self.service_endpoint);
        push_attribute(&mut out, "ContainerName", &self.container_name);
        out.push('>');
        for (name, value) in [("Prefix", &self.prefix), ("Marker", &self.marker)] {
            push_echo(&mut out, name, value.as_deref());
        }
        push_optional(&mut out, "MaxResults", self.max_results.as_deref());
        push_echo(&mut out, "Delimiter", self.delimiter.as_deref());
        if self.entries.is_empty() {
            push_element(&mut out, "Blobs", "");
        } else {
            out.push_str("<Blobs>");
            for entry in &self.entries {
                match entry {
                    ListEntry::Blob(blob) => push_blob(&mut out, blob),
                    ListEntry::Prefix(prefix) => {
                        out.push_str("<BlobPrefix>");
                        push_name(&mut out, "Name", prefix);
                        out.push_str("</BlobPrefix>");
                    }
                }
            }
            out.push_str("</Blobs>");
        }
        push_element(&mut out, "NextMarker", self.next_marker.as_deref().unwrap_or_default());
        out.push_str("</EnumerationResults>");
        out
    }
}

/// An echoed parameter: `None` where it is not echoed, and where it is empty.
fn read_echo(root: &Node<'_>, name: &str) -> Option<String> {
    root.child(name).map(name_text).filter(|t| !t.is_empty())
}

fn push_echo(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        push_name(out, name, value);
    }
}

fn name_text(node: &Node<'_>) -> String {
    if node.attribute("Encoded") == Some("true") {
        percent_decode_str(&node.text).decode_utf8_lossy().into_owned()
    } else {
        node.text.clone().into_owned()
    }
}

fn read_name(node: &Node<'_>) -> Result<String, XmlError> {
    let missing = || XmlError::Unexpected(format!("a {} has no Name", node.name));
    node.child("Name").map(name_text).filter(|name| !name.is_empty()).ok_or_else(missing)
}

/// A name that XML cannot hold is percent-encoded as a whole, slashes too, and marked.
fn push_name(out: &mut String, element: &str, name: &str) {
    const ALL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    if is_plain(name) {
        return push_element(out, element, name);
    }
    out.push_str(&format!("<{element} Encoded=\"true\">{}</{element}>", utf8_percent_encode(name, ALL)));
}

fn read_blob(node: &Node<'_>) -> Result<BlobItem, XmlError> {
    let flag = |name: &str| node.child_text(name) == Some("true");
    let tags = node.child("Tags").and_then(|t| t.child("TagSet")).map(Tags::from_set).transpose()?;
    Ok(BlobItem {
        name: read_name(node)?,
        snapshot: node.filled("Snapshot"),
        version_id: node.filled("VersionId"),
        is_current_version: flag("IsCurrentVersion"),
        deleted: flag("Deleted"),
        has_versions_only: flag("HasVersionsOnly"),
        properties: Properties::read(node.child("Properties")),
        metadata: node.child("Metadata").map(read_pairs),
        tags,
        or_metadata: node.child("OrMetadata").map(read_pairs),
    })
}

fn push_blob(out: &mut String, blob: &BlobItem) {
    let flag = |out: &mut String, name: &str, is: bool| push_optional(out, name, is.then_some("true"));
    out.push_str("<Blob>");
    push_name(out, "Name", &blob.name);
    push_optional(out, "Snapshot", blob.snapshot.as_deref());
    push_optional(out, "VersionId", blob.version_id.as_deref());
    flag(out, "IsCurrentVersion", blob.is_current_version);
    flag(out, "Deleted", blob.deleted);
    blob.properties.push_xml(out);
    flag(out, "HasVersionsOnly", blob.has_versions_only);
    push_metadata(out, blob.metadata.as_ref());
    if let Some(tags) = &blob.tags {
        tags.push(out);
    }
    if let Some(pairs) = &blob.or_metadata {
        if pairs.is_empty() {
            push_element(out, "OrMetadata", "");
        } else {
            out.push_str("<OrMetadata>");
            pairs.iter().for_each(|(name, value)| push_element(out, name, value));
            out.push_str("</OrMetadata>");
        }
    }
    out.push_str("</Blob>");
}

/// A container in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerItem {
    /// Name.
    pub name: String,
    /// Whether it is soft-deleted; the element is there only then.
    pub deleted: bool,
    /// Version of a soft-deleted container, needed to restore it.
    pub version: Option<String>,
    /// Properties; `Etag` has its quotes here, other than in a list of blobs.
    pub properties: Properties,
    /// Metadata, where it was asked for.
    pub metadata: Option<Metadata>,
}

/// One page of List Containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerPage {
    /// `ServiceEndpoint`.
    pub service_endpoint: String,
    /// Echo of the parameter.
    pub prefix: Option<String>,
    /// Echo of the parameter.
    pub marker: Option<String>,
    /// Echo of the parameter.
    pub max_results: Option<String>,
    /// Containers, by name.
    pub containers: Vec<ContainerItem>,
    /// Where the next page begins; `None` on the last.
    pub next_marker: Option<String>,
}

impl ContainerPage {
    /// Reads a page.
    ///
    /// # Errors
    /// Where it is not one, or a container has no name.
    pub fn parse(document: &[u8]) -> Result<ContainerPage, XmlError> {
        let root = Node::parse(document, "EnumerationResults")?;
        let list = root.child("Containers").ok_or_else(|| XmlError::Unexpected("there is no Containers element".to_owned()))?;
        let read = |node: &Node<'_>| {
            Ok(ContainerItem {
                name: read_name(node)?,
                deleted: node.child_text("Deleted") == Some("true"),
                version: node.filled("Version"),
                properties: Properties::read(node.child("Properties")),
                metadata: node.child("Metadata").map(read_pairs),
            })
        };
        Ok(ContainerPage {
            service_endpoint: root.attribute("ServiceEndpoint").unwrap_or_default().to_owned(),
            prefix: read_echo(&root, "Prefix"),
            marker: read_echo(&root, "Marker"),
            max_results: read_echo(&root, "MaxResults"),
            containers: list.children.iter().filter(|c| c.name == "Container").map(read).collect::<Result<_, XmlError>>()?,
            next_marker: root.filled("NextMarker"),
        })
    }

    /// Writes the page as the service does.
    pub fn to_xml(&self) -> String {
        let mut out = String::with_capacity(512 + self.containers.len() * 512);
        out.push_str(BOM);
        out.push_str(DECLARATION);
        out.push_str("<EnumerationResults");
        push_attribute(&mut out, "ServiceEndpoint", &self.service_endpoint);
        out.push('>');
        for (name, value) in [("Prefix", &self.prefix), ("Marker", &self.marker), ("MaxResults", &self.max_results)] {
            push_optional(&mut out, name, value.as_deref());
        }
        if self.containers.is_empty() {
            push_element(&mut out, "Containers", "");
        } else {
            out.push_str("<Containers>");
            for item in &self.containers {
                out.push_str("<Container>");
                push_element(&mut out, "Name", &item.name);
                push_optional(&mut out, "Deleted", item.deleted.then_some("true"));
                push_optional(&mut out, "Version", item.version.as_deref());
                item.properties.push_xml(&mut out);
                push_metadata(&mut out, item.metadata.as_ref());
                out.push_str("</Container>");
            }
            out.push_str("</Containers>");
        }
        push_element(&mut out, "NextMarker", self.next_marker.as_deref().unwrap_or_default());
        out.push_str("</EnumerationResults>");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    const HEAD: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

    fn properties(pairs: &[(&'static str, &str)]) -> Properties {
        let mut properties = Properties::default();
        pairs.iter().for_each(|(name, value)| properties.push(*name, *value));
        properties
    }

    #[test]
    fn a_page_of_blobs_goes_both_ways() {
        let page = ListPage {
            service_endpoint: "http://127.0.0.1:10000/a".into(),
            container_name: "c".into(),
            prefix: Some("d/".into()),
            max_results: Some("4".into()),
            delimiter: Some("/".into()),
            entries: vec![
                ListEntry::Blob(BlobItem {
                    name: "d/a&b".into(),
                    version_id: Some("2026-01-01T00:00:00.0000000Z".into()),
                    is_current_version: true,
                    properties: properties(&[
                        ("Last-Modified", "Thu, 15 Jan 2026 08:30:00 GMT"),
                        ("Etag", "0x8D1"),
                        ("Content-Length", "11"),
                        ("Content-Encoding", ""),
                    ]),
                    metadata: Some(vec![("a_b".into(), "1".into()), ("x-ms-invalid-name".into(), "a b".into())]),
                    tags: Some(Tags(vec![("k".into(), "v".into())])),
                    or_metadata: Some(Vec::new()),
                    ..BlobItem::default()
                }),
                ListEntry::Prefix("d/e/".into()),
                ListEntry::Blob(BlobItem {
                    name: "d/x\u{ffff} y/z".into(),
                    snapshot: Some("2026-01-02T00:00:00.0000000Z".into()),
                    deleted: true,
                    metadata: Some(Vec::new()),
                    ..BlobItem::default()
                }),
            ],
            next_marker: Some("2!8!abc-".into()),
            ..ListPage::default()
        };
        let xml = format!(
            "{HEAD}<EnumerationResults ServiceEndpoint=\"http://127.0.0.1:10000/a\" ContainerName=\"c\"><Prefix>d/</Prefix><MaxResults>4</MaxResults><Delimiter>/</Delimiter><Blobs>\
             <Blob><Name>d/a&amp;b</Name><VersionId>2026-01-01T00:00:00.0000000Z</VersionId><IsCurrentVersion>true</IsCurrentVersion><Properties><Last-Modified>Thu, 15 Jan 2026 08:30:00 GMT</Last-Modified><Etag>0x8D1</Etag><Content-Length>11</Content-Length><Content-Encoding /></Properties><Metadata><a_b>1</a_b><x-ms-invalid-name>a b</x-ms-invalid-name></Metadata><Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags><OrMetadata /></Blob>\
             <BlobPrefix><Name>d/e/</Name></BlobPrefix>\
             <Blob><Name Encoded=\"true\">d%2Fx%EF%BF%BF%20y%2Fz</Name><Snapshot>2026-01-02T00:00:00.0000000Z</Snapshot><Deleted>true</Deleted><Properties /><Metadata /></Blob>\
             </Blobs><NextMarker>2!8!abc-</NextMarker></EnumerationResults>"
        );
        assert_eq!(page.to_xml(), xml);
        let read = ListPage::parse(xml.as_bytes()).unwrap();
        assert_eq!(read, page);
        assert_eq!(read.prefixes().collect::<Vec<_>>(), ["d/e/"]);
        let first = read.blobs().next().unwrap();
        assert_eq!(first.properties.content_length(), Some(11));
        assert_eq!(first.properties.etag(), Some("0x8D1"));
        assert_eq!(first.properties.get("Content-Encoding"), None);
        let time = first.properties.last_modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(time.as_secs(), 1_768_465_800);
    }

    #[test]
    fn a_page_of_containers_goes_both_ways() {
        let page = ContainerPage {
            service_endpoint: "https://a.blob.core.windows.net/".into(),
            max_results: Some("1".into()),
            containers: vec![ContainerItem {
                name: "c".into(),
                deleted: true,
                version: Some("01D8".into()),
                properties: properties(&[("Etag", "\"0x8D2\""), ("LeaseState", "available")]),
                metadata: Some(vec![("hello".into(), "world".into())]),
            }],
            next_marker: Some("/a/d".into()),
            ..ContainerPage::default()
        };
        let xml = format!(
            "{HEAD}<EnumerationResults ServiceEndpoint=\"https://a.blob.core.windows.net/\"><MaxResults>1</MaxResults><Containers><Container><Name>c</Name><Deleted>true</Deleted><Version>01D8</Version><Properties><Etag>\"0x8D2\"</Etag><LeaseState>available</LeaseState></Properties><Metadata><hello>world</hello></Metadata></Container></Containers><NextMarker>/a/d</NextMarker></EnumerationResults>"
        );
        assert_eq!(page.to_xml(), xml);
        let read = ContainerPage::parse(xml.as_bytes()).unwrap();
        assert_eq!(read, page);
        assert_eq!(read.containers[0].properties.etag(), Some("0x8D2"));
    }

    #[test]
    fn empty_pages_and_broken_ones() {
        let page = ListPage { next_marker: Some("m".into()), ..ListPage::default() };
        assert_eq!(ListPage::parse(page.to_xml().as_bytes()).unwrap(), page);
        assert!(ContainerPage::default().to_xml().contains("<Containers /><NextMarker />"));
        for text in [
            "",
            "<EnumerationResults/>",
            "<EnumerationResults><Blobs><Blob><Properties/></Blob></Blobs></EnumerationResults>",
            "<EnumerationResults><Blobs><Blob><Name></Name></Blob></Blobs></EnumerationResults>",
            "<EnumerationResults><Blobs>",
        ] {
            assert!(ListPage::parse(text.as_bytes()).is_err(), "{text}");
            assert!(ContainerPage::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
