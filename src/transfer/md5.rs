//! MD5 of whole objects, for `--put-md5`. It has to see the bytes in order, which the blocks do not come in.
//!
//! The service stores what it is given at a commit without checking it (Put Block List), so this is for readers to check
//! against; the transfer itself is guarded by the CRC of each block.

use crate::chunks::Chunks;
use crate::endpoint::Reader;
use crate::error::{Error, Kind, Result};
use ::md5::{Digest, Md5};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Bytes read at a time: one such window an object is in memory beside the budget.
const WINDOW: u64 = 4 * 1024 * 1024;

/// A hash that is fed in order.
#[derive(Clone, Default)]
pub(super) struct Running(Md5);

impl Running {
    pub(super) fn update(&mut self, data: &Chunks) {
        data.iter().for_each(|piece| self.0.update(piece));
    }

    pub(super) fn finish(self) -> [u8; 16] {
        self.0.finalize().into()
    }
}

/// The hash of bytes in memory.
pub(super) fn of(data: &Chunks) -> [u8; 16] {
    let mut hash = Running::default();
    hash.update(data);
    hash.finish()
}

/// A hash under way on a blocking thread, reading the source beside the transfer. Dropping it makes the thread stop at the next
/// window.
pub(super) struct Hashing {
    task: Option<JoinHandle<Result<[u8; 16]>>>,
    stop: Arc<AtomicBool>,
}

impl Hashing {
    /// Starts. Must be called inside a runtime.
    pub(super) fn start(reader: Arc<dyn Reader>, len: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let runtime = Handle::current();
        let task = tokio::task::spawn_blocking(move || {
            let mut hash = Running::default();
            let mut offset = 0;
            while offset < len {
                if told.load(Ordering::Relaxed) {
                    return Err(Error::new(Kind::Cancelled, "hashing was no longer needed"));
                }
                let data = runtime.block_on(reader.read(offset, WINDOW.min(len - offset)))?;
                hash.update(&data);
                offset += data.len();
            }
            Ok(hash.finish())
        });
        Hashing { task: Some(task), stop }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// What reading the source failed with.
    pub(super) async fn finish(mut self) -> Result<[u8; 16]> {
        let task = self.task.take().expect("only taken here, and self is consumed");
        task.await.unwrap_or_else(|e| Err(Error::new(Kind::Local, "cannot hash the source").with_source(e)))
    }
}

impl Drop for Hashing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors() {
        // RFC 1321, appendix A.5.
        for (text, hex) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ] {
            let hash: String = of(&Chunks::from(text.as_bytes().to_vec())).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(hash, hex, "{text}");
        }
    }
}
