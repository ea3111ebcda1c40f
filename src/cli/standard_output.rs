//! Standard output: the one place that writes to it, and the bytes of an object in order, for `copy URL -` and `cat`.
//!
//! Ranges are fetched ahead, side by side. What is read whole is compared with its stored MD5: what was written cannot be taken
//! back, but the exit code tells.

use super::context::Context;
use crate::chunks::Chunks;
use crate::endpoint::Reader;
use crate::endpoint::arrival::Handling;
use crate::endpoint::in_order::{Ahead, in_order};
use crate::error::{Error, Kind, Result};
use md5::{Digest as _, Md5};
use std::io::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;

/// Ranges fetched ahead at most, where their number is not given: they are in memory.
pub(crate) const AHEAD: usize = 16;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Poured {
    /// All is written.
    All,
    /// Whoever reads it has seen enough.
    Closed,
}

/// Writes the bytes of `span`. A reader who has seen enough ends it without a word.
///
/// # Errors
/// Those of reading; `Local` where standard output takes nothing more; `Corrupt` as `handling` says.
pub(crate) async fn pour(
    reader: &Arc<dyn Reader>,
    span: Range<u64>,
    ahead: Ahead,
    handling: &Handling,
    context: &Context,
) -> Result<Poured> {
    handling.check_has_md5(&**reader, "standard output")?;
    let whole = span.start == 0 && reader.facts().len == Some(span.end);
    let expected = reader.carried().and_then(|carried| carried.content_md5);
    let mut md5 = expected.filter(|_| whole && handling.checks_md5()).map(|_| Md5::new());
    let mut closed = false;
    let each = |data: Chunks| {
        if let Some(md5) = &mut md5 {
            data.iter().for_each(|piece| md5.update(piece));
        }
        // Whoever reads it may take its time, and so does a hash of megabytes.
        closed = !tokio::task::block_in_place(|| write(|out| data.iter().try_for_each(|piece| out.write_all(piece))))?;
        Ok(!closed)
    };
    in_order(Arc::clone(reader), span, ahead, each).await?;
    // What stands behind the last line break is still in the process.
    if closed || !tokio::task::block_in_place(|| write(|out| out.flush()))? {
        return Ok(Poured::Closed);
    }
    let found = md5.map(|md5| md5.finalize().into());
    if whole && let Some(text) = handling.judge_md5(&**reader, found, "what went to standard output")? {
        context.out.warn(&text);
    }
    Ok(Poured::All)
}

/// Does `work` with standard output. Returns whether there is still somebody who reads it.
///
/// # Errors
/// `Local` where it takes nothing more, a full disk for example.
pub(crate) fn write(work: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) -> Result<bool> {
    match work(&mut io::stdout().lock()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::new(Kind::Local, "cannot write to standard output").with_source(error)),
    }
}

/// Writes all of `text` and keeps nothing of it back.
///
/// # Errors
/// As [`write`].
pub(crate) fn write_text(text: &str) -> Result<bool> {
    write(|out| out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}
