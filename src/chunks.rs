//! Block data on its way from a source to a socket: a short list of [`Bytes`], nearly always one.
//!
//! Nothing here copies: a mapped window arrives as one `Bytes` that unmaps when dropped, a pipe's block as the pieces it was
//! read in.

use crate::crc64::Crc64;
use bytes::Bytes;

/// The bytes of one block (or of one small object), in order. Cloning is cheap and shares the memory.
#[derive(Debug, Clone, Default)]
pub struct Chunks(Parts);

#[derive(Debug, Clone, Default)]
enum Parts {
    #[default]
    None,
    One(Bytes),
    Many(Vec<Bytes>),
}

impl Chunks {
    /// Total length in bytes.
    pub fn len(&self) -> u64 {
        self.iter().map(|b| b.len() as u64).sum()
    }

    /// Whether there is no byte in it.
    pub fn is_empty(&self) -> bool {
        self.iter().all(|b| b.is_empty())
    }

    /// The pieces, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Bytes> {
        match &self.0 {
            Parts::None => [].iter(),
            Parts::One(one) => std::slice::from_ref(one).iter(),
            Parts::Many(many) => many.iter(),
        }
    }

    /// CRC-64/NVME over the bytes, as `x-ms-content-crc64` carries it.
    pub fn crc64(&self) -> u64 {
        let mut crc = Crc64::new();
        self.iter().for_each(|piece| crc.update(piece));
        crc.finish()
    }

    /// The `len` bytes at `offset`, sharing the memory; shorter where there are fewer.
    pub fn slice(&self, offset: u64, len: u64) -> Self {
        let mut out = Chunks::default();
        let (mut skip, mut left) = (offset, len);
        for piece in self.iter() {
            let have = piece.len() as u64;
            let start = skip.min(have);
            let take = left.min(have - start);
            skip -= start;
            left -= take;
            if take > 0 {
                // Both lie within the piece, whose length is a usize.
                let at = usize::try_from(start).unwrap_or(usize::MAX);
                out.push(piece.slice(at..at + usize::try_from(take).unwrap_or(usize::MAX)));
            }
        }
        out
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        self.0 = match std::mem::take(&mut self.0) {
            Parts::None => Parts::One(piece),
            Parts::One(one) => Parts::Many(vec![one, piece]),
            Parts::Many(mut many) => {
                many.push(piece);
                Parts::Many(many)
            }
        };
    }
}

impl From<Bytes> for Chunks {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Chunks(Parts::None) } else { Chunks(Parts::One(bytes)) }
    }
}

impl From<Vec<u8>> for Chunks {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc64_is_the_published_one() {
        for (data, crc) in [("", 0), ("123456789", 0xAE8B_1486_0A79_9888), ("Hello World!", 0x02E5_1CC8_5EFC_E1A5)] {
            assert_eq!(Chunks::from(Bytes::from(data)).crc64(), crc, "{data}");
        }
    }

    #[test]
    fn slices_run_across_pieces() {
        let mut chunks = Chunks::default();
        for piece in ["ab", "c", "def"] {
            chunks.push(Bytes::from(piece));
        }
        for (offset, len, expected) in
            [(0, 6, "abcdef"), (1, 3, "bcd"), (2, 1, "c"), (3, 9, "def"), (6, 1, ""), (9, 9, ""), (0, 0, "")]
        {
            let slice: Vec<u8> = chunks.slice(offset, len).iter().flat_map(|b| b.to_vec()).collect();
            assert_eq!(slice, expected.as_bytes(), "{offset}+{len}");
        }
    }

    #[test]
    fn pieces_stay_in_order_and_add_up() {
        let mut chunks = Chunks::default();
        assert!(chunks.is_empty());
        for piece in ["ab", "c", "def"] {
            chunks.push(Bytes::from(piece));
        }
        assert_eq!(chunks.len(), 6);
        assert_eq!(chunks.iter().flat_map(|b| b.to_vec()).collect::<Vec<_>>(), b"abcdef");
    }
}
