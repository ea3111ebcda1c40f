//! The options of `copy`, with AzCopy's names.

use super::attribute_args::AttributeArgs;
use super::copy_remote_args::CopyRemoteArgs;
use super::download_args::DownloadArgs;
use super::options::Switch;
use super::selection_args::SelectionArgs;
use super::sending_args::SendingArgs;
use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  blobjet copy file.bin 'https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS'      one file, to CONTAINER/file.bin
  blobjet copy file.bin 'https://ACCOUNT.blob.core.windows.net/CONTAINER/new?SAS'  one file, to CONTAINER/new
  blobjet copy ./dir dev://box --recursive                                     a folder, to box/dir/...
  blobjet copy ./dir dev://box --recursive --as-subdir=false                   what is in it, to box/...
  blobjet copy 'logs/*.gz' dev://box/logs/                                     a pattern (in quotes)
  tar c dir | blobjet copy - dev://box/dir.tar                                 stdin
  blobjet copy ./dir dev://box --recursive --glob '**/*.pdf' --exclude-path tmp    some of it
  blobjet copy dev://box/dir ./here --recursive                                a download, to ./here/dir/...
  blobjet copy dev://box/dir.tar - | tar x                                     stdout
  blobjet copy ./dir dev://box --recursive --dry-run                           where everything would land
  blobjet copy ./dir dev://box --recursive --report run.html                   and a page that shows how it went

A file that exists is never taken for a pattern. The table of where things land is in docs/landing.md.";

/// Arguments of `copy`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CopyArgs {
    /// Files (or - for stdin) to upload, or blobs to download
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Where to: https://... (with SAS), az://ACCOUNT/..., dev://CONTAINER/...; or a path, or -
    #[arg(value_name = "DEST")]
    pub(crate) destination: Option<String>,

    /// Take folders with all that is under them
    #[arg(long, switch = false)]
    pub(crate) recursive: bool,
    /// Put a folder under its own name (default true)
    #[arg(long, switch = true)]
    pub(crate) as_subdir: bool,
    /// Show what would go where, and send nothing
    #[arg(long, switch = false)]
    pub(crate) dry_run: bool,
    /// true, false, prompt or ifSourceNewer
    #[arg(long, value_enum, ignore_case = true, default_value_t = OverwriteArg::True, hide_possible_values = true, value_name = "HOW")]
    pub(crate) overwrite: OverwriteArg,
    /// A source that changes meanwhile: fail, retry or snapshot [default: fail for files, retry for blobs]
    #[arg(long, value_enum, ignore_case = true, hide_possible_values = true, value_name = "HOW", hide_short_help = true)]
    pub(crate) on_change: Option<OnChangeArg>,
    /// Create the container if it is not there
    #[arg(long, switch = false)]
    pub(crate) create_container: bool,
    /// Follow symbolic links in folders
    #[arg(long, switch = false)]
    pub(crate) follow_symlinks: bool,
    /// What source and destination are, e.g. LocalBlob or PipeBlob; checked against what they are
    #[arg(long, value_name = "PAIR", hide_short_help = true)]
    pub(crate) from_to: Option<String>,
    /// Jobs that the journal keeps, this one included; 0 does not write this one down
    #[arg(long, value_name = "N", default_value_t = 100, hide_short_help = true)]
    pub(crate) keep_jobs: usize,
    /// Exit with 9 if nothing was transferred
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) error_on_no_transfer: bool,

    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Say why this path within the source would be taken or left out, and send nothing
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) explain: Vec<String>,
    #[command(flatten)]
    pub(crate) sending: SendingArgs,
    /// How files are read: auto, mmap, pread
    #[arg(long, value_enum, default_value_t = ReadArg::Auto, hide_possible_values = true, hide_default_value = true, value_name = "HOW", hide_short_help = true)]
    pub(crate) read: ReadArg,

    /// Leave the content type to the service
    #[arg(long, switch = false, hide_short_help = true)]
    pub(crate) no_guess_mime_type: bool,
    #[command(flatten)]
    pub(crate) attributes: AttributeArgs,
    #[command(flatten)]
    pub(crate) download: DownloadArgs,
    #[command(flatten)]
    pub(crate) remote: CopyRemoteArgs,
}

/// `--on-change`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnChangeArg {
    Fail,
    Retry,
    Snapshot,
}

/// `--overwrite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverwriteArg {
    True,
    False,
    Prompt,
    #[value(name = "ifSourceNewer")]
    IfSourceNewer,
}

/// `--read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadArg {
    Auto,
    Mmap,
    Pread,
}
