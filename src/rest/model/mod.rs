//! The service's documents as types: read by the client, written by the embedded service (and the other way round for bodies of
//! requests), so that each layout is known in one place.
//!
//! Documents of the service begin with a byte order mark; empty values are empty elements (`<Content-Encoding />`). Parsers take
//! the layouts of all versions and keep what they do not know where it can be kept; they never panic.

pub mod blocks;
pub mod error_body;
pub mod list;
pub mod listed;
pub mod multipart;
pub mod policies;
pub mod tags;
pub mod xml;

pub use blocks::{
    BlockList, BlockListType, BlockState, CommitEntry, ListedBlock, block_list_xml, each_block, parse_block_list_body,
};
pub use error_body::{ErrorBody, Spelling};
pub use list::{BlobItem, ContainerItem, ContainerPage, ListEntry, ListPage};
pub use listed::{Metadata, Properties};
pub use policies::{SignedIdentifier, SignedIdentifiers};
pub use tags::Tags;
pub use xml::XmlError;

/// An ETag without its quotes: quoted in headers and in the list of containers, unquoted in the list of blobs. Opaque
/// otherwise.
pub fn unquoted(etag: &str) -> &str {
    etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(etag)
}
