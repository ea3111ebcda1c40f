//! Which way a copy goes, and which of its options mean something on that way. Pure.

use super::attribute_args::AttributeArgs;
use super::copy_args::{CopyArgs, ReadArg};
use crate::endpoint::open::Place;
use crate::error::{Error, Kind, Result};

/// A way to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Files, or standard input, to blobs.
    Upload,
    /// Blobs to files, to standard output, or to nowhere.
    Download,
    /// Blobs to blobs.
    Between,
}

/// What a place is, in AzCopy's words.
fn word(place: &Place) -> &'static str {
    match place {
        Place::Local(_) => "Local",
        Place::Stdio => "Pipe",
        Place::Null => "Null",
        Place::Remote(_) | Place::Dev { .. } => "Blob",
    }
}

fn usage(what: impl Into<String>, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// The way from one place to another, if it is offered and `--from-to`, where it is given, says the same.
///
/// # Errors
/// `Usage`, with the reason.
pub(crate) fn direction(from: &Place, to: &Place, from_to: Option<&str>) -> Result<Direction> {
    let (from, to) = (word(from), word(to));
    if let Some(pair) = from_to {
        if let Some(reason) = refused_pair(pair) {
            return Err(usage(format!("--from-to {pair}: {reason}"), "leave it out: what the places are tells the way"));
        }
        if !format!("{from}{to}").eq_ignore_ascii_case(pair) {
            return Err(usage(format!("--from-to {pair}: source and destination are {from}{to}"), "leave it out, or correct it"));
        }
    }
    match (from, to) {
        ("Local" | "Pipe", "Blob") => Ok(Direction::Upload),
        ("Blob", "Local" | "Pipe" | "Null") => Ok(Direction::Download),
        ("Blob", _) => Ok(Direction::Between),
        ("Null", _) => Err(usage("there is nothing to read from null:", "'blobjet bench' sends made-up data")),
        _ => Err(usage(
            "neither source nor destination is a container or blob",
            "write https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS, az://ACCOUNT/CONTAINER or dev://CONTAINER for one of them",
        )),
    }
}

fn refused_pair(pair: &str) -> Option<&'static str> {
    let lower = pair.to_ascii_lowercase();
    Some(match lower.as_str() {
        "localblob" | "pipeblob" | "bloblocal" | "blobpipe" | "blobnull" | "blobblob" => return None,
        "s3blob" | "gcpblob" => "other clouds are not spoken",
        "blobtrash" => "'blobjet remove' deletes",
        _ if lower.contains("blobfs") => "the Data Lake endpoint is not spoken; the same data is under the blob endpoint",
        _ if lower.contains("file") => "Azure Files is not spoken; blobjet copies blobs",
        _ => "this pair is not known",
    })
}

/// Refuses options that would be ignored on this way.
///
/// # Errors
/// `Usage`, naming the option.
pub(crate) fn refuse_misplaced(args: &CopyArgs, direction: Direction) -> Result<()> {
    let of_files = [
        ("--follow-symlinks", args.follow_symlinks),
        ("--no-guess-mime-type", args.no_guess_mime_type),
        ("--read", args.read != ReadArg::Auto),
    ];
    let of_blobs_made = [
        ("--put-md5", args.sending.put_md5),
        ("--put-blob-size-mb", args.sending.put_blob_size_mb.is_some()),
        ("--create-container", args.create_container),
        (
            "an option about what a blob carries (such as --content-type, --metadata, --block-blob-tier)",
            args.attributes != AttributeArgs::default(),
        ),
    ];
    let of_downloads = [
        ("--check-md5", args.download.check_md5.is_some()),
        ("--decompress", args.download.decompress),
        ("--preserve-last-modified-time", args.download.preserve_last_modified_time),
    ];
    let of_between = [
        ("--stream", args.remote.stream),
        (
            "an option about what is taken and kept from blob to blob (--s2s-..., --exclude-container)",
            args.remote.is_given_besides_stream(),
        ),
    ];
    let (about_files, about_made) = ((&of_files[..], "is about reading files"), (&of_blobs_made[..], "is about writing blobs"));
    let (about_between, about_downloads) =
        ((&of_between[..], "is about copies from blob to blob"), (&of_downloads[..], "is about downloads"));
    let (misplaced, this) = match direction {
        Direction::Upload => (vec![about_downloads, about_between], "an upload"),
        Direction::Download => (vec![about_files, about_made, about_between], "a download"),
        Direction::Between => (vec![about_files, about_downloads], "a copy from blob to blob"),
    };
    let given = misplaced.iter().find_map(|(options, what)| Some((options.iter().find(|(_, given)| *given)?.0, *what)));
    match given {
        Some((name, what)) => Err(usage(format!("{name} {what}, and this is {this}"), "leave it out")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::open::place;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CopyArgs,
    }

    #[test]
    fn the_pair_must_say_what_the_places_are() {
        let way = |from, to, pair| direction(&place(from).unwrap(), &place(to).unwrap(), pair);
        for (from, to, pair, expected) in [
            ("d", "dev://c", None, Direction::Upload),
            ("-", "dev://c/x", Some("pipeblob"), Direction::Upload),
            ("dev://c", "d", Some("BlobLocal"), Direction::Download),
            ("dev://c/x", "-", Some("BlobPipe"), Direction::Download),
            ("dev://c/x", "/dev/null", None, Direction::Download),
            ("dev://c/x", "az://acct1/d", Some("BlobBlob"), Direction::Between),
        ] {
            assert_eq!(way(from, to, pair).unwrap(), expected, "{from} {to}");
        }
        for (from, to, pair, word) in [
            ("d", "dev://c", Some("PipeBlob"), "are LocalBlob"),
            ("d", "dev://c", Some("LocalFile"), "Azure Files"),
            ("d", "dev://c", Some("LocalBlobFS"), "Data Lake"),
            ("d", "dev://c", Some("Sideways"), "not known"),
            ("dev://c", "d", Some("LocalBlob"), "are BlobLocal"),
            ("d", "e", None, "neither"),
            ("null:", "dev://c", None, "nothing to read"),
        ] {
            let error = way(from, to, pair).unwrap_err();
            assert!(error.kind() == Kind::Usage && error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn no_option_is_ignored() {
        let args = |line: &str| {
            let words = ["copy", "a", "b"].into_iter().map(str::to_owned).chain(line.split_whitespace().map(str::to_owned));
            Line::try_parse_from(words.collect::<Vec<_>>()).unwrap().args
        };
        for line in
            ["--put-md5", "--content-type a/b", "--metadata a=b", "--create-container", "--read pread", "--block-blob-tier Hot"]
        {
            assert!(refuse_misplaced(&args(line), Direction::Upload).is_ok(), "{line}");
            assert!(refuse_misplaced(&args(line), Direction::Download).is_err(), "{line}");
        }
        for line in ["--check-md5 NoCheck", "--decompress", "--preserve-last-modified-time"] {
            assert!(refuse_misplaced(&args(line), Direction::Download).is_ok(), "{line}");
            assert!(refuse_misplaced(&args(line), Direction::Upload).is_err(), "{line}");
            assert!(refuse_misplaced(&args(line), Direction::Between).is_err(), "{line}");
        }
        for line in [
            "--stream",
            "--s2s-preserve-properties=false",
            "--s2s-preserve-blob-tags",
            "--s2s-handle-invalid-metadata failifinvalid",
        ] {
            assert!(refuse_misplaced(&args(line), Direction::Between).is_ok(), "{line}");
            assert!(refuse_misplaced(&args(line), Direction::Upload).is_err(), "{line}");
            assert!(refuse_misplaced(&args(line), Direction::Download).is_err(), "{line}");
        }
        assert!(refuse_misplaced(&args("--content-type a/b"), Direction::Between).is_ok());
        assert!(refuse_misplaced(&args("--follow-symlinks"), Direction::Between).is_err());
    }
}
