//! The options about how bytes are sent, which `copy` and `bench` share: rate, concurrency, memory, block sizes, checksums.

use super::options::{Switch, mebibytes};
use crate::units::ByteCount;
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// See the module's text.
#[derive(Debug, Clone, Args)]
pub(crate) struct SendingArgs {
    /// Most megabits a second (0: no limit)
    #[arg(long, value_name = "MBPS", value_parser = megabits, allow_negative_numbers = true)]
    pub(crate) cap_mbps: Option<f64>,
    /// Requests in flight at a time (auto: as many as pay)
    #[arg(long, value_name = "N|auto", value_parser = concurrency, allow_negative_numbers = true, default_value = "auto", hide_default_value = true)]
    pub(crate) concurrency: Concurrency,
    /// Most memory for data in flight, e.g. 256MiB (default: a block for each request, up to 1 GiB, a quarter of what is free and, where their number is found, 256 MiB a core)
    #[arg(long, value_name = "SIZE", hide_short_help = true, allow_negative_numbers = true)]
    pub(crate) memory: Option<ByteCount>,
    /// Block size in MiB, e.g. 0.25 (default 8; downloads 4)
    #[arg(long, value_name = "MIB", value_parser = mebibytes, allow_negative_numbers = true, hide_short_help = true)]
    pub(crate) block_size_mb: Option<u64>,
    /// Largest file sent in one request, MiB (default: the block size)
    #[arg(long, value_name = "MIB", value_parser = mebibytes, hide_short_help = true)]
    pub(crate) put_blob_size_mb: Option<u64>,
    /// Checksum sent with each request for the service to check: crc64, md5, none
    #[arg(long, value_enum, default_value_t = CheckArg::Crc64, hide_possible_values = true, value_name = "SUM", hide_short_help = true)]
    pub(crate) check: CheckArg,
    /// Store each file's MD5 as Content-MD5
    #[arg(long, switch = false)]
    pub(crate) put_md5: bool,
    /// Draw the run to FILE.html, or write its data to FILE.json
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// `--check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckArg {
    Crc64,
    Md5,
    None,
}

/// `--concurrency`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concurrency {
    /// As many as suit the machine.
    Auto,
    /// This many.
    Fixed(NonZeroUsize),
}

fn concurrency(text: &str) -> Result<Concurrency, String> {
    match text.parse::<NonZeroUsize>() {
        _ if text.eq_ignore_ascii_case("auto") => Ok(Concurrency::Auto),
        Ok(n) if n.get() <= 4096 => Ok(Concurrency::Fixed(n)),
        _ => Err("use auto, or a number from 1 to 4096".to_owned()),
    }
}

impl SendingArgs {
    /// The cap on the rate, megabits a second; 0 is none, as with AzCopy.
    pub(crate) fn cap(&self) -> Option<f64> {
        self.cap_mbps.filter(|rate| *rate > 0.0)
    }
}

fn megabits(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && (0.0..1e9).contains(&rate) => Ok(rate),
        _ => Err("use megabits a second, e.g. 80".to_owned()),
    }
}
