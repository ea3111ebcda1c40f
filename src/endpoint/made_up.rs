//! Made-up objects, for measuring how fast they can be written: many names of one length, whose bytes are slices of one buffer of
//! random bytes.
//!
//! Nothing is read and nothing is copied. The bytes cannot be compressed, and every block has its own, as the buffer is not a
//! round length and each object begins somewhere else in it. What a block holds follows from its object's name and its offset
//! alone, so that reading twice gives the same.

use crate::chunks::Chunks;
use crate::endpoint::{Facts, Found, Item, Listing, Reader, Same, Source, Task};
use crate::error::{Error, Kind, Result};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Length of the buffer: larger than a core's own caches, so that bytes come from where a file's would. It is odd, and a little
/// less than 16 MiB, so that blocks of round lengths meet it at other places each time around.
const BUFFER: usize = (16 << 20) - 4093;

/// Items reported at a time.
const BATCH: u64 = 1000;

/// What is to be made up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Objects.
    pub count: u64,
    /// Bytes each.
    pub size: u64,
    /// Folders they are divided among; none if 0.
    pub folders: u64,
    /// What all names begin with.
    pub under: String,
}

impl Shape {
    /// The name of one of them.
    pub fn name(&self, index: u64) -> String {
        let Shape { under, .. } = self;
        match index.checked_rem(self.folders) {
            Some(folder) => format!("{under}{folder:04}/{index:08}.bin"),
            None => format!("{under}{index:08}.bin"),
        }
    }
}

/// See the module's text.
pub struct MadeUp {
    shape: Shape,
    data: Bytes,
    /// Orders nothing.
    opened: AtomicU64,
}

impl MadeUp {
    /// Makes the buffer: some milliseconds.
    ///
    /// # Errors
    /// `Local` where the system has no random numbers.
    pub fn new(shape: Shape) -> Result<Self> {
        let seed = getrandom::u64()
            .map_err(|e| Error::new(Kind::Local, "cannot get random numbers from the system").with_source(e.to_string()))?;
        Ok(MadeUp { shape, data: random(seed), opened: AtomicU64::new(0) })
    }

    /// How many were opened so far: the first so many names are all that can have been written to.
    pub fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }
}

/// Random bytes, as SplitMix64 makes them (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
fn random(seed: u64) -> Bytes {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(state)
    };
    let mut data = Vec::with_capacity(BUFFER + 8);
    while data.len() < BUFFER {
        data.extend_from_slice(&next().to_le_bytes());
    }
    data.truncate(BUFFER);
    Bytes::from(data)
}

fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

struct MadeUpReader {
    data: Bytes,
    len: u64,
    /// Where in the buffer the object begins.
    start: u64,
}

impl Source for MadeUp {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            let Shape { count, .. } = self.shape;
            let mut first = 0;
            while first < count {
                let end = count.min(first + BATCH);
                let item = |index| {
                    let name = self.shape.name(index);
                    Found::Item(Item::new(name.clone(), name))
                };
                if out.send((first..end).map(item).collect()).await.is_err() {
                    break;
                }
                first = end;
            }
            Ok(())
        })
    }

    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            self.opened.fetch_add(1, Relaxed);
            let start = item.target.bytes().fold(0, |hash, byte| mixed(hash ^ u64::from(byte))) % (BUFFER as u64);
            Ok(Box::new(MadeUpReader { data: self.data.clone(), len: self.shape.size, start }) as Box<dyn Reader>)
        })
    }

    fn describe(&self) -> String {
        format!("{} made-up files of {}", self.shape.count, crate::units::ByteCount(self.shape.size))
    }
}

impl Reader for MadeUpReader {
    fn facts(&self) -> Facts {
        Facts { len: Some(self.len), modified: None }
    }

    fn read<'a>(&'a self, offset: u64, len: u64) -> Task<'a, Result<Chunks>> {
        let mut chunks = Chunks::default();
        let (mut at, mut left) = ((self.start + offset) % (BUFFER as u64), len);
        while left > 0 {
            let take = left.min(BUFFER as u64 - at);
            // Both lie within the buffer, whose length is a usize.
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            chunks.push(self.data.slice(from..from + usize::try_from(take).unwrap_or(usize::MAX)));
            (at, left) = (0, left - take);
        }
        Box::pin(std::future::ready(Ok(chunks)))
    }

    fn check_unchanged(&self, _same: Same) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tokio::sync::mpsc;

    fn shape(count: u64, size: u64, folders: u64) -> Shape {
        Shape { count, size, folders, under: "x/".into() }
    }

    async fn bytes(reader: &dyn Reader, offset: u64, len: u64) -> Vec<u8> {
        reader.read(offset, len).await.unwrap().iter().flat_map(|piece| piece.to_vec()).collect()
    }

    #[tokio::test]
    async fn every_name_comes_once_and_folders_share_them() {
        let (sender, mut receiver) = mpsc::channel(4);
        let source = MadeUp::new(shape(2500, 1, 7)).unwrap();
        let (listed, names) = tokio::join!(source.list(sender), async {
            let mut names = HashSet::new();
            while let Some(batch) = receiver.recv().await {
                for found in batch {
                    let Found::Item(item) = found else { panic!("{found:?}") };
                    assert!(names.insert(item.target));
                }
            }
            names
        });
        listed.unwrap();
        assert_eq!(names.len(), 2500);
        let folders: HashSet<&str> = names.iter().map(|name| name.rsplit_once('/').unwrap().0).collect();
        assert_eq!(folders.len(), 7);
        assert!(names.contains("x/0001/00000008.bin") && (0..2500).all(|index| names.contains(&shape(2500, 1, 7).name(index))));
        assert_eq!(shape(1, 1, 0).name(3), "x/00000003.bin");
    }

    #[tokio::test]
    async fn bytes_follow_from_name_and_offset_and_differ_from_block_to_block() {
        let source = MadeUp::new(shape(2, 100 << 20, 0)).unwrap();
        let item = |name: &str| Item::new(name, name);
        let (a, b) = (source.open(&item("a")).await.unwrap(), source.open(&item("b")).await.unwrap());
        assert_eq!((a.facts().len, source.opened()), (Some(100 << 20), 2));
        // Across the end of the buffer, wherever that is.
        let whole = bytes(&*a, 0, 40 << 20).await;
        assert_eq!(whole.len(), 40 << 20);
        for (offset, len) in [(0usize, 10usize), (5 << 20, 20 << 20), (16 << 20, 1 << 20)] {
            assert_eq!(bytes(&*a, offset as u64, len as u64).await, whole[offset..offset + len], "{offset}+{len}");
        }
        let mut sums = HashSet::new();
        for block in 0..12 {
            for reader in [&a, &b] {
                assert!(sums.insert(reader.read(block * (8 << 20), 8 << 20).await.unwrap().crc64()), "block {block}");
            }
        }
        assert!(a.read(0, 0).await.unwrap().is_empty());
    }
}
