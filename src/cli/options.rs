//! The command line: commands, options all of them share, and how values are read.
//!
//! Booleans are written as AzCopy's are: `--recursive`, `--recursive=true`, `--recursive=false`; [`Switch`] makes a flag one. What
//! each command takes stands in its own file; AzCopy's flags that we do not have are in [`azcopy`](super::azcopy).

use super::access::AccessArgs;
use super::bench::BenchArgs;
use super::cat::CatArgs;
use super::check::CheckArgs;
use super::completion::CompletionArgs;
use super::copy_args::CopyArgs;
use super::demo::DemoArgs;
use super::du::DuArgs;
use super::explain::ExplainArgs;
use super::hash::HashArgs;
use super::jobs::JobsArgs;
use super::list::ListArgs;
use super::make::MakeArgs;
use super::man::ManArgs;
use super::remove::RemoveArgs;
use super::sas::SasArgs;
use super::serve::ServeArgs;
use super::set_properties::SetPropertiesArgs;
use super::stat::StatArgs;
use super::undelete::UndeleteArgs;
use clap::{Arg, ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  blobjet copy ./docs dev://docs --recursive          try it without an account: the embedded service keeps the data
  blobjet copy big.bin 'https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS'
  pg_dump db | blobjet copy - az://ACCOUNT/backups/db.sql
  blobjet list dev://docs
  blobjet serve --memory                              a Blob service on http://127.0.0.1:10000 for tests

Places: https://ACCOUNT.blob.core.windows.net/CONTAINER/BLOB?SAS, az://ACCOUNT/CONTAINER/BLOB, dev://CONTAINER/BLOB,
a local path or pattern, - for stdin.
Credentials: a SAS in the URL, AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_SAS_TOKEN, or AZURE_STORAGE_ACCOUNT with
AZURE_STORAGE_KEY. HTTPS_PROXY, HTTP_PROXY, NO_PROXY and SSL_CERT_FILE are honoured; BLOBJET_STATE names the state folder.
Exit codes: 0 done, 1 some objects failed, 2 usage, 3 source not found, 4 access refused, 5 gave up after retries,
6 checksum mismatch, 9 nothing transferred (only with --error-on-no-transfer), 130/143 stopped by a signal.";

/// Moves files to and from Azure block blobs, and blobs between accounts, as fast as the machine allows.
#[derive(Debug, Parser)]
#[command(name = "blobjet", version, after_long_help = EXAMPLES, max_term_width = 100, disable_help_subcommand = true, args_override_self = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy files to blobs, blobs to files, or blobs to blobs
    #[command(visible_aliases = ["cp", "c"])]
    Copy(Box<CopyArgs>),
    /// Look at jobs that were run, and go on with those that did not finish
    Jobs(JobsArgs),
    /// Upload made-up data and say what limits
    Bench(Box<BenchArgs>),
    /// Run a Blob service on this machine, for trying and testing
    Serve(ServeArgs),
    /// Make a URL with a shared access signature (SAS), from the account key
    Sas(SasArgs),
    /// List blobs with their sizes and properties, or containers
    #[command(visible_alias = "ls")]
    List(Box<ListArgs>),
    /// Add up bytes and blobs by folder, tier and type
    Du(Box<DuArgs>),
    /// Compare two folders, containers or prefixes, copying nothing
    Check(Box<CheckArgs>),
    /// Write blobs, or parts of them, to standard output
    Cat(CatArgs),
    /// Show everything about a blob, a container or an account
    Stat(StatArgs),
    /// Print hashes of files and blobs, as md5sum does
    Hash(Box<HashArgs>),
    /// Create a container
    Make(MakeArgs),
    /// Delete a blob, the blobs under a prefix or of a pattern, or a container
    #[command(visible_alias = "rm")]
    Remove(RemoveArgs),
    /// Change tier, metadata, tags or content headers of blobs
    SetProperties(Box<SetPropertiesArgs>),
    /// Bring deleted blobs back, where the account keeps them (soft delete)
    Undelete(UndeleteArgs),
    /// Tell what a credential may do at a place, changing nothing there
    Access(AccessArgs),
    /// Say what an error code means and what to do about it
    Explain(ExplainArgs),
    /// Five minutes with blobjet, without an account
    Demo(DemoArgs),
    /// Print a script that lets the shell complete commands and flags
    Completion(CompletionArgs),
    /// Print a manual page, or write all of them
    Man(ManArgs),
}

impl Cli {
    /// The definition, with examples and notes as they look on a screen.
    pub(crate) fn definition() -> clap::Command {
        super::examples::laid_out(Cli::command())
    }
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Shared {
    /// text or json
    #[arg(long, global = true, value_enum, ignore_case = true, default_value_t = Format::Text, hide_possible_values = true, value_name = "FORM")]
    pub(crate) output_type: Format,
    /// default, essential (no progress) or quiet (errors and data)
    #[arg(long, global = true, value_enum, ignore_case = true, default_value_t = Level::Default, hide_possible_values = true, hide_default_value = true, value_name = "LEVEL")]
    pub(crate) output_level: Level,
    /// What is traced on stderr: none, error, warning, info, debug
    #[arg(long, global = true, value_enum, ignore_case = true, default_value_t = LogLevel::None, hide_possible_values = true, hide_default_value = true, value_name = "LEVEL", hide_short_help = true)]
    pub(crate) log_level: LogLevel,
    /// Allow http:// to hosts other than this machine (credentials and data travel in the clear)
    #[arg(long, global = true, switch = false, hide_short_help = true)]
    pub(crate) allow_http: bool,
}

/// `--output-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// `--output-level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    Default,
    Essential,
    Quiet,
}

/// `--log-level`, with AzCopy's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    None,
    Error,
    #[value(alias = "warn")]
    Warning,
    Info,
    #[value(alias = "trace")]
    Debug,
}

/// For flags: `#[arg(long, switch = false)]` on a `bool`, with the trait in scope.
pub(crate) trait Switch {
    /// Makes it a boolean that is written as AzCopy's are, with this value where it is not given.
    fn switch(self, default: bool) -> Self;
}

impl Switch for Arg {
    fn switch(self, default: bool) -> Arg {
        self.action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_value(if default { "true" } else { "false" })
            .default_missing_value("true")
            .value_parser(boolean)
            .value_name("BOOL")
            .hide_default_value(true)
            .hide_possible_values(true)
    }
}

/// Reads a boolean as Go's flag package does, which is what AzCopy's users write.
fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("use true or false".to_owned()),
    }
}

/// `8`, `0.25`: MiB with fractions, as bytes.
pub(crate) fn mebibytes(text: &str) -> Result<u64, String> {
    match crate::units::scaled(text, crate::units::MIB)? {
        0 => Err("must be more than 0".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Whether `--output-type json` is among these arguments: asked when they could not be parsed, so that even then the answer is
/// JSON.
pub(crate) fn wants_json(args: &[std::ffi::OsString]) -> bool {
    let is_json = |value: &std::ffi::OsStr| value.eq_ignore_ascii_case("json");
    args.iter().enumerate().any(|(i, arg)| match arg.to_str() {
        Some("--output-type") => args.get(i + 1).is_some_and(|value| is_json(value)),
        Some(one) => one.strip_prefix("--output-type=").is_some_and(|value| is_json(value.as_ref())),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_seen_in_a_command_line_that_does_not_parse() {
        let args = |line: &str| line.split(' ').map(Into::into).collect::<Vec<_>>();
        assert!(wants_json(&args("blobjet copy --output-type=json --nonsense")));
        assert!(wants_json(&args("blobjet --output-type JSON")));
        assert!(!wants_json(&args("blobjet copy --output-type text json")));
    }

    #[test]
    fn sizes_in_mebibytes_take_fractions_and_not_nothing() {
        assert_eq!(mebibytes("0.25"), Ok(262_144));
        assert!(mebibytes("0").is_err());
        assert!(mebibytes("-1").is_err());
    }
}
