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
use tokio::sync::oneshot;

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

/// What is hashed on the spot: 0.4 ms. More than that keeps a thread of the runtime from moving other requests' bytes.
const AT_ONCE: u64 = 256 * 1024;

impl Running {
    /// Feeds it, beside the runtime where it takes long.
    ///
    /// # Errors
    /// Where the runtime is shutting down.
    pub(super) async fn fed(mut self, data: &Chunks) -> Result<Running> {
        if data.len() <= AT_ONCE {
            self.update(data);
            return Ok(self);
        }
        let data = data.clone();
        let fed = tokio::task::spawn_blocking(move || {
            self.update(&data);
            self
        });
        fed.await.map_err(|e| Error::new(Kind::Local, "cannot hash the source").with_source(e))
    }
}

/// A hash under way on a thread of its own (the runtime's must stay free for the reading it waits for), reading the source beside
/// the transfer. Dropping it makes the thread stop at the next window.
pub(super) struct Hashing {
    result: Option<oneshot::Receiver<Result<[u8; 16]>>>,
    stop: Arc<AtomicBool>,
}

impl Hashing {
    /// Starts. Must be called inside a runtime.
    ///
    /// # Errors
    /// `Local` where no thread can be started.
    pub(super) fn start(reader: Arc<dyn Reader>, len: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let runtime = Handle::current();
        let hash = move || {
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
        };
        let (done, result) = oneshot::channel();
        let thread = std::thread::Builder::new().name("md5".to_owned()).spawn(move || {
            let _ = done.send(hash());
        });
        thread.map_err(|e| Error::new(Kind::Local, "cannot start a thread to hash the source").with_source(e))?;
        Ok(Hashing { result: Some(result), stop })
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// What reading the source failed with.
    pub(super) async fn finish(mut self) -> Result<[u8; 16]> {
        let result = self.result.take().expect("only taken here, and self is consumed");
        result.await.unwrap_or_else(|e| Err(Error::new(Kind::Local, "cannot hash the source").with_source(e)))
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

    async fn of(data: &Chunks) -> [u8; 16] {
        Running::default().fed(data).await.unwrap().finish()
    }

    #[tokio::test]
    async fn the_published_vectors() {
        // RFC 1321, appendix A.5.
        for (text, hex) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ] {
            let hash: String = of(&Chunks::from(text.as_bytes().to_vec())).await.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(hash, hex, "{text}");
        }
    }

    #[tokio::test]
    async fn what_is_hashed_elsewhere_is_the_same() {
        // openssl md5 of a million letters a, as in the test vectors of the SHA family.
        let mut chunks = Chunks::default();
        (0..10).for_each(|_| chunks.push(vec![b'a'; 100_000].into()));
        assert!(chunks.len() > AT_ONCE);
        let hash: String = of(&chunks).await.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hash, "7707d6ae4e027c70eea2a935c2296f21");
    }
}
