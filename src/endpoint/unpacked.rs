//! What is compressed by its Content-Encoding, unpacked after the download (`--decompress`): gzip, and deflate, which in HTTP is
//! the zlib format (RFC 9110, 8.4.1).

use crate::attributes::Attributes;
use crate::endpoint::file_sink::unwritable;
use crate::endpoint::name::shown;
use crate::error::{Error, Kind, Result};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use tokio::runtime::{Handle, RuntimeFlavor};

/// How something is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Deflate,
}

/// How an object says it is compressed; `None` where it does not, or in a way that is not known.
pub(super) fn packing(carried: Option<&Attributes>) -> Option<Packing> {
    match carried?.content_encoding.as_deref()?.trim().to_ascii_lowercase().as_str() {
        "gzip" | "x-gzip" => Some(Packing::Gzip),
        "deflate" => Some(Packing::Deflate),
        _ => None,
    }
}

/// The name it gets: without `.gz`, `.gzip` or `.zz`, as with AzCopy, where something else is left.
pub(super) fn name(target: &str) -> &str {
    let last = target.rsplit('/').next().unwrap_or(target);
    let stem = last
        .rsplit_once('.')
        .filter(|(stem, end)| !stem.is_empty() && ["gz", "gzip", "zz"].iter().any(|known| end.eq_ignore_ascii_case(known)));
    stem.map_or(target, |(stem, _)| &target[..target.len() - last.len() + stem.len()])
}

/// Unpacks the unfinished file at `path`, which then is what was in it.
///
/// # Errors
/// `SourceUnreadable` where it is not what it says it is, `Local` for what the filesystem refuses.
pub(super) fn unpack(packing: Packing, packed: &File, path: &Path) -> Result<File> {
    let work = || {
        let mut from = packed.try_clone().map_err(|error| unwritable("unpack", path, error))?;
        from.rewind().map_err(|error| unwritable("unpack", path, error))?;
        let from = BufReader::with_capacity(1 << 20, from);
        let decoder: Box<dyn Read> = match packing {
            Packing::Gzip => Box::new(MultiGzDecoder::new(from)),
            Packing::Deflate => Box::new(ZlibDecoder::new(from)),
        };
        // The finished file gets the name of the packed one; should anything fail, whoever owns that name removes it.
        let beside = path.with_extension("unpacked");
        let written = pump(decoder, &beside, path);
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        let file = written?;
        fs::rename(&beside, path).map_err(|error| unwritable("unpack", path, error))?;
        Ok(file)
    };
    // Long work: other tasks of this thread are given to another.
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn pump(mut decoder: Box<dyn Read>, beside: &Path, path: &Path) -> Result<File> {
    let to = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(beside);
    let mut to = BufWriter::with_capacity(1 << 20, to.map_err(|error| unwritable("unpack", path, error))?);
    let mut buf = vec![0; 1 << 18];
    loop {
        match decoder.read(&mut buf) {
            Ok(0) => break,
            Ok(n) => to.write_all(&buf[..n]).map_err(|error| unwritable("unpack", path, error))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Error::new(Kind::SourceUnreadable, format!("cannot unpack {}", shown(path.as_os_str())))
                    .with_source(error)
                    .with_advice(
                        "its Content-Encoding says that it is compressed, and it is not, or not whole; leave out --decompress",
                    ));
            }
        }
    }
    to.into_inner().map_err(|error| unwritable("unpack", path, error.into_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_told_by_the_encoding_and_names_lose_their_ending() {
        let packed = |text: &str| packing(Some(&Attributes { content_encoding: Some(text.into()), ..Attributes::default() }));
        assert_eq!(
            [packed("gzip"), packed("GZIP"), packed("deflate")],
            [Some(Packing::Gzip), Some(Packing::Gzip), Some(Packing::Deflate)]
        );
        assert_eq!([packed("br"), packed(""), packing(None)], [None; 3]);
        for (from, to) in [("d/a.txt.gz", "d/a.txt"), ("a.GZIP", "a"), ("a.zz", "a"), ("a.txt", "a.txt"), ("d/.gz", "d/.gz")] {
            assert_eq!(name(from), to, "{from}");
        }
    }

    #[test]
    fn several_members_are_one_file_and_half_a_member_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.part");
        // `printf one | gzip -n`, then `printf two | gzip -n` (GNU gzip 1.12).
        let one = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0xcf, 0x4b, 5, 0, 0xf1, 0x86, 0x6c, 0x7a, 3, 0, 0, 0];
        let two = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x2b, 0x29, 0xcf, 7, 0, 0x66, 0x8a, 0xca, 0x11, 3, 0, 0, 0];
        fs::write(&path, [one, two].concat()).unwrap();
        unpack(Packing::Gzip, &File::open(&path).unwrap(), &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "onetwo");
        fs::write(&path, &one[..15]).unwrap();
        let error = unpack(Packing::Gzip, &File::open(&path).unwrap(), &path).unwrap_err();
        assert_eq!(error.kind(), Kind::SourceUnreadable);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
