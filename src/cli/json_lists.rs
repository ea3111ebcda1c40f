//! The lines of JSON of commands that list: part of `json`'s schema.

use crate::rest::model::BlobItem;
use serde::Serialize;
use std::collections::BTreeMap;

/// A blob, version or snapshot, from `list`. What the service does not tell of it, and what was not asked for, is not there.
#[derive(Debug, Serialize)]
pub(crate) struct BlobLine {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) last_modified: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) blob_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<String>,
    /// Whether it is the current one of the versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_current_version: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<BTreeMap<String, String>>,
    /// What `--properties` asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<&'static str, String>,
}

impl BlobLine {
    /// From what the service says of it.
    pub(crate) fn new(blob: &BlobItem, bytes: u64, properties: BTreeMap<&'static str, String>) -> BlobLine {
        let property = |name: &str| blob.properties.get(name).map(str::to_owned);
        let map = |pairs: &Vec<(String, String)>| pairs.iter().cloned().collect();
        BlobLine {
            name: blob.name.clone(),
            bytes,
            last_modified: property("Last-Modified"),
            content_type: property("Content-Type"),
            blob_type: property("BlobType"),
            access_tier: property("AccessTier"),
            etag: blob.properties.etag().map(str::to_owned),
            version_id: blob.version_id.clone(),
            is_current_version: blob.is_current_version,
            snapshot: blob.snapshot.clone(),
            deleted: blob.deleted,
            metadata: blob.metadata.as_ref().map(map),
            tags: blob.tags.as_ref().map(|tags| map(&tags.0)),
            properties,
        }
    }
}

/// How many blobs there are, and how many bytes they have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Amount {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// All that `du` has added up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct UsageTotals {
    #[serde(flatten)]
    pub(crate) all: Amount,
    pub(crate) by_tier: BTreeMap<String, Amount>,
    pub(crate) by_type: BTreeMap<String, Amount>,
}
