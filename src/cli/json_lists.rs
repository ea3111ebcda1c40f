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

/// A name that `check` has compared.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Compared {
    pub(crate) name: String,
    /// As in the lines of text: `=`, `+`, `-`, `*` or `!`.
    pub(crate) sign: &'static str,
    pub(crate) source_bytes: Option<u64>,
    pub(crate) destination_bytes: Option<u64>,
    /// In what they differ: `size`, `time` or `hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) differs_in: Option<&'static str>,
    /// Why it could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// All that `check` has compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct CheckTotals {
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) same: u64,
    pub(crate) only_in_source: u64,
    pub(crate) only_in_destination: u64,
    pub(crate) different: u64,
    pub(crate) not_compared: u64,
    /// Links, FIFOs and the like, which are not compared on purpose.
    pub(crate) left_out: u64,
    pub(crate) exit_code: u8,
}
