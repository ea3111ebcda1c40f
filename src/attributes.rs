//! What a blob carries besides its bytes, and the condition under which it may replace another.
//!
//! One property set for every command; `rest::properties` is the only place that turns it into headers.

use std::time::SystemTime;

/// Properties, metadata, tags and tier of a blob, as asked for. Absent ones are left to the service's default.
///
/// Values are sent as given; what the service would refuse for sure is found by `rest::properties::check` before the first
/// request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `x-ms-blob-content-type`.
    pub content_type: Option<String>,
    /// `x-ms-blob-content-encoding`: only stored, never undone.
    pub content_encoding: Option<String>,
    /// `x-ms-blob-content-language`.
    pub content_language: Option<String>,
    /// `x-ms-blob-content-disposition`.
    pub content_disposition: Option<String>,
    /// `x-ms-blob-cache-control`.
    pub cache_control: Option<String>,
    /// `x-ms-blob-content-md5`: of the whole blob.
    pub content_md5: Option<[u8; 16]>,
    /// `x-ms-meta-*`, names without the prefix, in the order given.
    pub metadata: Vec<(String, String)>,
    /// Blob index tags, at most 10.
    pub tags: Vec<(String, String)>,
    /// `x-ms-access-tier`, as given (new tier names need no new release).
    pub tier: Option<String>,
}

/// When a write may replace what is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replace {
    /// Always.
    #[default]
    Always,
    /// Only if nothing is there (`If-None-Match: *`).
    Never,
    /// Only if what is there was last modified before this moment (`If-Unmodified-Since`), or nothing is there.
    IfOlderThan(SystemTime),
}
