//! From the arguments of `copy` to what the engine and the sink are told. Pure; what cannot work is refused here, before anything
//! is opened or sent.

use super::copy_args::{CopyArgs, OnChangeArg, OverwriteArg};
use super::limits::Said;
use super::machine::Machine;
use super::report::record::{Origin, Setting};
use super::sending_args::{CheckArg, Concurrency, SendingArgs};
use crate::error::{Error, Kind, Result};
use crate::rest::client::Check;
use crate::secret::SafeUrl;
use crate::transfer::plan::{OnChange, Overwrite, Tuning, first_lanes, memory_for, most_lanes};
use crate::units::{ByteCount, MIB};
use clap::ValueEnum as _;
use std::num::NonZeroUsize;

fn usage(what: impl Into<String>, advice: impl Into<String>) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// What the engine is told.
///
/// # Errors
/// `Usage` where the numbers contradict each other.
pub(crate) fn tuning(args: &SendingArgs, overwrite: Overwrite) -> Result<Tuning> {
    tuning_on(&Machine::this(), args, overwrite)
}

fn tuning_on(machine: &Machine, args: &SendingArgs, overwrite: Overwrite) -> Result<Tuning> {
    let mut tuning = Tuning { put_md5: args.put_md5, overwrite, ..Tuning::default() };
    if let Some(size) = args.block_size_mb {
        tuning.block_size = size;
        tuning.block_size_fixed = true;
        tuning.whole_limit = size;
    }
    if let Some(size) = args.put_blob_size_mb {
        tuning.whole_limit = size;
    }
    let largest = tuning.block_size.max(tuning.whole_limit);
    match args.concurrency {
        Concurrency::Fixed(lanes) => tuning.lanes = lanes,
        Concurrency::Auto => {
            tuning.lanes = most_lanes(machine.cores).min(machine.most_requests());
            tuning.lanes_first = Some(first_lanes(machine.cores).min(tuning.lanes));
        }
    }
    tuning.memory = match args.memory {
        Some(memory) => memory.0,
        None => {
            let spare = match args.concurrency {
                Concurrency::Fixed(_) => machine.memory / 4,
                Concurrency::Auto => (machine.memory / 4).min(blocks_a_core(machine.cores, MOST_BLOCKS)),
            };
            memory_for(tuning.lanes, tuning.block_size, spare).max(largest.saturating_mul(2))
        }
    };
    if args.memory.is_none() {
        tuning.memory_easy = blocks_a_core(machine.cores, EASY_BLOCKS);
    }
    if largest > tuning.memory {
        return Err(usage(
            format!("one block of {} does not fit into --memory", ByteCount(largest)),
            "raise --memory, or lower --block-size-mb and --put-blob-size-mb",
        ));
    }
    Ok(tuning)
}

/// Block data in memory where the number of requests is found, blocks of 8 MiB a core: so many keep a core busy with answers that
/// come 100 ms late ...
const MOST_BLOCKS: u64 = 32;

/// ... and so many do where they come at once. More only where it clearly pays.
const EASY_BLOCKS: u64 = 14;

fn blocks_a_core(cores: NonZeroUsize, blocks: u64) -> u64 {
    u64::try_from(cores.get()).unwrap_or(u64::MAX).saturating_mul(blocks * 8 * MIB)
}

/// Which of the settings that may bend to the machine the user has given.
pub(crate) fn said(args: &SendingArgs) -> Said {
    Said {
        memory: args.memory.is_some(),
        sizes: args.block_size_mb.is_some() || args.put_blob_size_mb.is_some(),
        concurrency: args.concurrency != Concurrency::Auto,
    }
}

impl From<OverwriteArg> for Overwrite {
    fn from(arg: OverwriteArg) -> Overwrite {
        match arg {
            OverwriteArg::True => Overwrite::True,
            OverwriteArg::False => Overwrite::False,
            OverwriteArg::IfSourceNewer => Overwrite::IfSourceNewer,
            OverwriteArg::Prompt => Overwrite::Prompt,
        }
    }
}

impl From<OnChangeArg> for OnChange {
    fn from(arg: OnChangeArg) -> OnChange {
        match arg {
            OnChangeArg::Fail => OnChange::Fail,
            OnChangeArg::Retry => OnChange::Retry,
            OnChangeArg::Snapshot => OnChange::Snapshot,
        }
    }
}

impl From<CheckArg> for Check {
    fn from(arg: CheckArg) -> Check {
        match arg {
            CheckArg::Crc64 => Check::Crc64,
            CheckArg::Md5 => Check::Md5,
            CheckArg::None => Check::None,
        }
    }
}

/// What a report tells of the settings: what the engine was told, and what else was asked for. Values as they were typed, without
/// signatures.
pub(crate) fn told(args: &CopyArgs, tuning: &Tuning) -> Vec<Setting> {
    let mut all = told_of_sending(&args.sending, tuning);
    let overwrite = args.overwrite.to_possible_value().map(|value| value.get_name().to_owned());
    all.push(setting("overwrite", overwrite.unwrap_or_default(), args.overwrite != OverwriteArg::True));
    for (name, is, usual) in [
        ("recursive", args.recursive, false),
        ("as-subdir", args.as_subdir, true),
        ("follow-symlinks", args.follow_symlinks, false),
        ("create-container", args.create_container, false),
    ] {
        all.push(setting(name, is.to_string(), is != usual));
    }
    all.extend(args.attributes.given().map(|(name, value)| setting(name, SafeUrl::new(value).to_string(), true)));
    all.extend(args.selection.given().into_iter().map(|(name, value)| setting(name, SafeUrl::new(&value).to_string(), true)));
    all
}

/// The part of it that every command that sends has.
pub(crate) fn told_of_sending(args: &SendingArgs, tuning: &Tuning) -> Vec<Setting> {
    let check = args.check.to_possible_value().map(|value| value.get_name().to_owned());
    let cap = args.cap().map_or("none".to_owned(), |cap| format!("{cap} Mb/s"));
    let lanes = match tuning.lanes_first {
        Some(_) => format!("auto, at most {}", tuning.lanes),
        None => tuning.lanes.to_string(),
    };
    vec![
        setting("concurrency", lanes, args.concurrency != Concurrency::Auto),
        setting("memory for data in flight", ByteCount(tuning.memory).to_string(), args.memory.is_some()),
        setting("block size", ByteCount(tuning.block_size).to_string(), args.block_size_mb.is_some()),
        setting("largest file in one request", ByteCount(tuning.whole_limit).to_string(), args.put_blob_size_mb.is_some()),
        setting("cap on the rate", cap, args.cap_mbps.is_some()),
        setting("checksum of requests", check.unwrap_or_default(), args.check != CheckArg::Crc64),
        setting("stored MD5", args.put_md5.to_string(), args.put_md5),
    ]
}

/// What is told of one setting.
pub(crate) fn setting(name: &'static str, value: String, asked: bool) -> Setting {
    Setting { name, value, origin: if asked { Origin::Flag } else { Origin::Default } }
}

/// `--cap-mbps` in bits a second.
pub(crate) fn cap_bits_per_s(args: &SendingArgs) -> Option<u64> {
    let rate = args.cap()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the option takes 0 to 1e9")]
    Some(((rate * 1e6) as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CopyArgs,
    }

    fn args(line: &str) -> CopyArgs {
        Line::parse_from(format!("copy a b {line}").split_whitespace()).args
    }

    fn tune(args: &CopyArgs) -> Result<Tuning> {
        tuning(&args.sending, args.overwrite.into())
    }

    #[test]
    fn sizes_are_kept_as_asked_for() {
        let tuned = tune(&args("--block-size-mb 0.25 --concurrency 3 --memory 1MiB --overwrite ifsourcenewer")).unwrap();
        assert_eq!((tuned.block_size, tuned.block_size_fixed, tuned.whole_limit), (262_144, true, 262_144));
        assert_eq!((tuned.lanes.get(), tuned.lanes_first), (3, None));
        assert_eq!((tuned.memory, tuned.overwrite), (1 << 20, Overwrite::IfSourceNewer));
        assert!(tune(&args("--block-size-mb 100 --memory 64MiB")).is_err());
    }

    #[test]
    fn memory_and_requests_follow_the_machine() {
        let machine = Machine { cores: NonZeroUsize::new(2).unwrap(), descriptors: 1024, memory: 24 << 30 };
        let on = |machine: Machine, line| tuning_on(&machine, &args(line).sending, Overwrite::True).unwrap();
        let tuned = on(machine, "");
        let first = tuned.lanes_first.map(NonZeroUsize::get);
        assert_eq!((first, tuned.lanes.get(), tuned.memory, tuned.memory_easy), (Some(12), 256, 512 << 20, 224 << 20));
        assert_eq!(on(machine, "--memory 300MiB").memory_easy, u64::MAX);
        // More requests at a time mean more blocks in memory, unless that was said.
        assert_eq!(on(machine, "--concurrency 40").memory, 320 << 20);
        assert_eq!(on(machine, "--put-blob-size-mb=2000").memory, 4000 << 20);
        let small = Machine { descriptors: 84, memory: 256 << 20, ..machine };
        let tuned = on(small, "--concurrency auto");
        let first = tuned.lanes_first.map(NonZeroUsize::get);
        assert_eq!((first, tuned.lanes.get(), tuned.memory), (Some(10), 10, 64 << 20));
        assert_eq!(on(small, "--concurrency 40").memory, 64 << 20);
    }

    #[test]
    fn booleans_are_written_as_azcopys_are() {
        assert!(args("--recursive").recursive && args("--recursive=true").recursive && args("--recursive=1").recursive);
        assert!(!args("--recursive=false").recursive && !args("").recursive);
        assert!(args("").as_subdir && !args("--as-subdir=false").as_subdir);
    }

    #[test]
    fn no_tier_and_no_cap_have_azcopys_words() {
        let attributes = |line| args(line).attributes.attributes().unwrap();
        assert_eq!(attributes("--block-blob-tier none").tier, None);
        assert_eq!(attributes("--block-blob-tier Smart").tier.as_deref(), Some("Smart"));
        assert_eq!(cap_bits_per_s(&args("--cap-mbps 0").sending), None);
        assert_eq!(cap_bits_per_s(&args("--cap-mbps 0.5").sending), Some(500_000));
    }
}
