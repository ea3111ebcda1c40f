//! The options of `copy` about copies from blob to blob, with AzCopy's names.

use super::options::Switch;
use crate::endpoint::keep::{InvalidMetadata, Keep};
use clap::{Args, ValueEnum};

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct CopyRemoteArgs {
    /// From blob to blob: send the bytes through this machine, where the services cannot reach each other
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) stream: bool,
    /// From blob to blob: keep content headers, stored MD5 and metadata (default true)
    #[arg(long, switch = true, hide_short_help = true)]
    pub(crate) s2s_preserve_properties: bool,
    /// From blob to blob: keep the access tier (default true)
    #[arg(long, switch = true, hide_short_help = true)]
    pub(crate) s2s_preserve_access_tier: bool,
    /// From blob to blob: keep index tags (default false)
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) s2s_preserve_blob_tags: bool,
    /// Metadata that cannot be written as they are: ExcludeIfInvalid (default), FailIfInvalid, RenameIfInvalid
    #[arg(long, value_enum, ignore_case = true, hide_possible_values = true, value_name = "HOW", hide_short_help = true)]
    pub(crate) s2s_handle_invalid_metadata: Option<InvalidArg>,
    /// From account to account: not these containers
    #[arg(long, value_name = "NAME;NAME", hide_short_help = true)]
    pub(crate) exclude_container: Vec<String>,
}

/// `--s2s-handle-invalid-metadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InvalidArg {
    #[value(name = "ExcludeIfInvalid")]
    Exclude,
    #[value(name = "FailIfInvalid")]
    Fail,
    #[value(name = "RenameIfInvalid")]
    Rename,
}

impl Default for CopyRemoteArgs {
    fn default() -> Self {
        CopyRemoteArgs {
            stream: false,
            s2s_preserve_properties: true,
            s2s_preserve_access_tier: true,
            s2s_preserve_blob_tags: false,
            s2s_handle_invalid_metadata: None,
            exclude_container: Vec::new(),
        }
    }
}

impl CopyRemoteArgs {
    /// Whether anything is not as it is by default, apart from the way of the bytes.
    pub(crate) fn is_given_besides_stream(&self) -> bool {
        CopyRemoteArgs { stream: false, ..self.clone() } != CopyRemoteArgs::default()
    }

    /// What blobs keep of those they are made of.
    pub(crate) fn keep(&self) -> Keep {
        Keep {
            properties: self.s2s_preserve_properties,
            tier: self.s2s_preserve_access_tier,
            tags: self.s2s_preserve_blob_tags,
            invalid: match self.s2s_handle_invalid_metadata {
                None | Some(InvalidArg::Exclude) => InvalidMetadata::Exclude,
                Some(InvalidArg::Fail) => InvalidMetadata::Fail,
                Some(InvalidArg::Rename) => InvalidMetadata::Rename,
            },
        }
    }
}
