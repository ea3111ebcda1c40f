//! What listed things of both kinds have: properties and metadata.

use super::unquoted;
use super::xml::{Node, push_element};
use std::borrow::Cow;
use std::time::SystemTime;

/// The `Properties` of a listed thing: every element in its order, also the empty ones and those of versions to come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(Vec<(Cow<'static, str>, Cow<'static, str>)>);

/// Names the service writes, so that a page of 5000 entries does not hold each of them 5000 times.
const KNOWN: &[&str] = &[
    "AccessTier",
    "AccessTierChangeTime",
    "AccessTierInferred",
    "ArchiveStatus",
    "BlobType",
    "Cache-Control",
    "Content-CRC64",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-MD5",
    "Content-Type",
    "CopyCompletionTime",
    "CopyId",
    "CopyProgress",
    "CopySource",
    "CopyStatus",
    "Creation-Time",
    "DefaultEncryptionScope",
    "DeletedTime",
    "DenyEncryptionScopeOverride",
    "Etag",
    "HasImmutabilityPolicy",
    "HasLegalHold",
    "ImmutableStorageWithVersioningEnabled",
    "Last-Modified",
    "LeaseDuration",
    "LeaseState",
    "LeaseStatus",
    "PublicAccess",
    "RehydratePriority",
    "RemainingRetentionDays",
    "ServerEncrypted",
    "TagCount",
    "x-ms-blob-sequence-number",
];

/// Values that most entries have, for the same reason.
const COMMON: &[&str] =
    &["Archive", "BlockBlob", "Cold", "Cool", "Hot", "application/octet-stream", "available", "false", "true", "unlocked"];

impl Properties {
    /// Appends one; an empty value becomes an empty element.
    pub fn push(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.push((name.into(), Cow::Owned(value.into())));
    }

    /// A property's value; `None` where it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| &**v)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (&**n, &**v))
    }

    /// ETag without quotes.
    pub fn etag(&self) -> Option<&str> {
        self.get("Etag").map(unquoted)
    }

    /// Length in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.get("Content-Length")?.parse().ok()
    }

    /// Last change, to the second.
    pub fn last_modified(&self) -> Option<SystemTime> {
        crate::rest::date::parse(self.get("Last-Modified")?)
    }

    pub(super) fn read(node: Option<&Node<'_>>) -> Properties {
        let read = |child: &Node<'_>| {
            let shared = |table: &[&'static str], text: &Cow<'_, str>| match table.binary_search(&&**text) {
                Ok(i) => Cow::Borrowed(table[i]),
                Err(_) => Cow::Owned(text.clone().into_owned()),
            };
            (shared(KNOWN, &child.name), shared(COMMON, &child.text))
        };
        Properties(node.map(|n| n.children.iter().map(read).collect()).unwrap_or_default())
    }

    pub(super) fn push_xml(&self, out: &mut String) {
        if self.0.is_empty() {
            return push_element(out, "Properties", "");
        }
        out.push_str("<Properties>");
        for (name, value) in &self.0 {
            push_element(out, name, value);
        }
        out.push_str("</Properties>");
    }
}

/// Metadata as names and values; a name that is not an XML name stands as the value of `x-ms-invalid-name`.
pub type Metadata = Vec<(String, String)>;

pub(super) fn read_pairs(node: &Node<'_>) -> Metadata {
    node.children.iter().map(|c| (c.name.clone().into_owned(), c.text.clone().into_owned())).collect()
}

pub(super) fn push_metadata(out: &mut String, metadata: Option<&Metadata>) {
    let Some(pairs) = metadata else { return };
    if pairs.is_empty() {
        return push_element(out, "Metadata", "");
    }
    out.push_str("<Metadata>");
    for (name, value) in pairs {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        if is_name { push_element(out, name, value) } else { push_element(out, "x-ms-invalid-name", name) }
    }
    out.push_str("</Metadata>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_and_values_are_sorted() {
        assert!(KNOWN.is_sorted() && COMMON.is_sorted());
    }

    #[test]
    fn metadata_names_that_are_no_xml_names_are_written_as_values() {
        let mut out = String::new();
        push_metadata(&mut out, Some(&vec![("1 a".into(), "v".into()), ("b".into(), "w".into())]));
        assert_eq!(out, "<Metadata><x-ms-invalid-name>1 a</x-ms-invalid-name><b>w</b></Metadata>");
    }
}
