//! The options about what a blob carries besides its bytes, with AzCopy's names: one set for every command that writes or changes
//! blobs.

use crate::attributes::Attributes;
use crate::error::Result;
use crate::rest::properties;
use clap::Args;

/// See the module's text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct AttributeArgs {
    /// Content type of all blobs
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Content-Encoding, stored with the blob
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) content_encoding: Option<String>,
    /// Content-Language, stored with the blob
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) content_language: Option<String>,
    /// Content-Disposition, stored with the blob
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) content_disposition: Option<String>,
    /// Cache-Control, stored with the blob
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) cache_control: Option<String>,
    /// Metadata; write \; for a semicolon in a value
    #[arg(long, value_name = "K=V;K=V")]
    pub(crate) metadata: Option<String>,
    /// Index tags, percent-encoded; a SAS needs t for them
    #[arg(long, value_name = "K=V&K=V", hide_short_help = true)]
    pub(crate) blob_tags: Option<String>,
    /// Access tier: Hot, Cool, Cold, Archive
    #[arg(long, value_name = "TIER")]
    pub(crate) block_blob_tier: Option<String>,
}

impl AttributeArgs {
    /// What every blob of the job carries.
    ///
    /// # Errors
    /// `Usage` for metadata or tags that cannot be read, or that the service would refuse for sure.
    pub(crate) fn attributes(&self) -> Result<Attributes> {
        // AzCopy's word for no tier.
        let tier = self.block_blob_tier.clone().filter(|tier| !tier.eq_ignore_ascii_case("none"));
        let attributes = Attributes {
            content_type: self.content_type.clone(),
            content_encoding: self.content_encoding.clone(),
            content_language: self.content_language.clone(),
            content_disposition: self.content_disposition.clone(),
            cache_control: self.cache_control.clone(),
            content_md5: None,
            metadata: self.metadata.as_deref().map(properties::parse_metadata).transpose()?.unwrap_or_default(),
            tags: self.blob_tags.as_deref().map(properties::parse_tags).transpose()?.unwrap_or_default(),
            tier,
        };
        properties::check(&attributes)?;
        Ok(attributes)
    }

    /// Those that were given, by name, for a report.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("content-type", &self.content_type),
            ("content-encoding", &self.content_encoding),
            ("content-language", &self.content_language),
            ("content-disposition", &self.content_disposition),
            ("cache-control", &self.cache_control),
            ("metadata", &self.metadata),
            ("blob-tags", &self.blob_tags),
            ("block-blob-tier", &self.block_blob_tier),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}
