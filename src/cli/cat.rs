//! `blobjet cat`: blobs, or a part of each, to standard output, one after the other.

use super::context::Context;
use super::download_args::CheckMd5Arg;
use super::exit::Exit;
use super::remote::{Remote, place};
use super::standard_output::{AHEAD, Poured, pour};
use crate::endpoint::arrival::{CheckMd5, Handling};
use crate::endpoint::blob_source::{BlobSource, What};
use crate::endpoint::in_order::Ahead;
use crate::endpoint::{Item, Reader, Source};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::range::MAX_SUMMED;
use crate::units::ByteCount;
use clap::Args;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  blobjet cat dev://box/report.csv | head -n 3           what has been read is fetched, and little more
  blobjet cat dev://box/part.1 dev://box/part.2 > whole  one after the other
  blobjet cat dev://box/big.bin --offset 1GiB --count 1MiB | xxd
  blobjet cat dev://box/app.log --tail 64K               the last 64 KiB

Names are taken as they are: * and ? have no meaning here. The first blob that cannot be read ends it.
Of a blob that is written whole the stored MD5 is compared; where it differs, that is told and the exit code is 6, though the bytes
have gone out by then.";

/// Arguments of `cat`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CatArgs {
    /// Blobs: https://, az:// or dev:// URLs
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Stored MD5: NoCheck, LogOnly, FailIfDifferent (default), FailIfDifferentOrMissing
    #[arg(long, value_enum, ignore_case = true, hide_possible_values = true, value_name = "HOW")]
    pub(crate) check_md5: Option<CheckMd5Arg>,
}

/// Which part of each blob is written; what is beyond its end is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct PartArgs {
    /// Begin so many bytes into each blob: 512, 64K, 1.5GiB
    #[arg(long, value_name = "SIZE")]
    offset: Option<ByteCount>,
    /// Write so many bytes of each blob at most
    #[arg(long, value_name = "SIZE")]
    count: Option<ByteCount>,
    /// The first bytes of each blob
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["offset", "count"])]
    head: Option<ByteCount>,
    /// The last bytes of each blob
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["offset", "count", "head"])]
    tail: Option<ByteCount>,
}

impl PartArgs {
    /// The bytes meant of a blob of this length. The service knows no range that counts from the end, so the length is needed.
    fn of(self, len: u64) -> Range<u64> {
        if let Some(ByteCount(tail)) = self.tail {
            return len.saturating_sub(tail)..len;
        }
        let start = self.offset.map_or(0, |offset| offset.0.min(len));
        let count = self.head.or(self.count).map_or(u64::MAX, |count| count.0);
        start..start.saturating_add(count).min(len)
    }
}

/// Writes them.
///
/// # Errors
/// `Usage` for what is not one blob, and with `--output-type json`; those of reading.
pub(crate) async fn run(args: &CatArgs, context: &Context) -> Result<Exit> {
    if context.out.is_json() {
        return Err(Error::new(Kind::Usage, "cat writes the bytes of blobs and no JSON").with_advice("leave out --output-type"));
    }
    let check_md5 = args.check_md5.map(CheckMd5::from).unwrap_or_default();
    let handling = Handling { check_md5, ..Handling::default() };
    // Each is looked at before the first byte goes out.
    let places = args.urls.iter().map(|url| place(url, &context.inputs)).collect::<Result<Vec<_>>>()?;
    for (place, url) in places.iter().zip(&args.urls) {
        let location = super::remote::named(place, &context.inputs)?;
        if location.container.is_none() || location.blob.as_deref().is_none_or(|blob| blob.ends_with('/')) {
            let shown = crate::secret::SafeUrl::new(url);
            return Err(Error::new(Kind::Usage, format!("cannot write {shown}: it names no blob"))
                .with_advice("name the blobs; 'blobjet copy URL FOLDER --recursive' takes all of a folder"));
        }
    }
    for place in places {
        let remote = Remote::open(&place, context).await?;
        let poured = one(&remote, args.part, &handling, context).await;
        remote.close().await;
        if poured? == Poured::Closed {
            break;
        }
    }
    Ok(Exit::Done)
}

async fn one(remote: &Remote, part: PartArgs, handling: &Handling, context: &Context) -> Result<Poured> {
    remote.check(Need::READ)?;
    let location = &remote.location;
    let (Some(container), Some(blob)) = (&location.container, &location.blob) else {
        return Err(Error::new(Kind::Usage, "the URL names no blob"));
    };
    let what = What::One { blob: blob.clone(), target: blob.clone() };
    let source = BlobSource::new(remote.client(context)?, container.as_str(), what);
    let reader: Arc<dyn Reader> = Arc::from(source.open(&Item::new(blob, "-")).await?);
    let span = part.of(reader.facts().len.unwrap_or(0));
    let ahead = Ahead { block: MAX_SUMMED, blocks: NonZeroUsize::new(AHEAD).unwrap_or(NonZeroUsize::MIN) };
    pour(&reader, span, ahead, handling, context).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_within_the_blob() {
        let bytes = |n| Some(ByteCount(n));
        for (part, expected) in [
            (PartArgs::default(), 0..10),
            (PartArgs { offset: bytes(3), ..PartArgs::default() }, 3..10),
            (PartArgs { offset: bytes(3), count: bytes(4), ..PartArgs::default() }, 3..7),
            (PartArgs { offset: bytes(3), count: bytes(u64::MAX), ..PartArgs::default() }, 3..10),
            (PartArgs { offset: bytes(11), count: bytes(1), ..PartArgs::default() }, 10..10),
            (PartArgs { count: bytes(0), ..PartArgs::default() }, 0..0),
            (PartArgs { head: bytes(4), ..PartArgs::default() }, 0..4),
            (PartArgs { tail: bytes(4), ..PartArgs::default() }, 6..10),
            (PartArgs { tail: bytes(11), ..PartArgs::default() }, 0..10),
        ] {
            assert_eq!(part.of(10), expected, "{part:?}");
        }
    }
}
