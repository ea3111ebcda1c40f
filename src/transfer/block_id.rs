//! What the 32 raw bytes of a block id mean, so that two writers never mix blocks and a later run knows its own.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | flags: 1 if nobody compared the block with its checksum when it was staged; 2 if its checksum is not known here and its source is pinned to a version; else 0 |
//! | 2..4 | spare, 0 |
//! | 4..12 | fingerprint of the source: length, time of last change, block size, version where it has one |
//! | 12..20 | nonce of the writer, new for each object and run |
//! | 20..24 | index of the block, big-endian |
//! | 24..32 | CRC-64/NVME of the block, big-endian; 0 where it is not known |
//!
//! All ids of a blob must have one length (Put Block, "Remarks"), so this layout never gets longer or shorter.

use crate::endpoint::BlockId;
use crate::error::{Error, Kind, Result};
use sha2::{Digest, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

const VERSION: u8 = 1;

/// Flag: staged without a check.
const UNCHECKED: u8 = 1;

/// Flag: the source is pinned to a version, and the CRC is not known.
const PINNED: u8 = 2;

/// What a staged block is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// By its CRC, with which it was compared when it was staged.
    Checked,
    /// By a CRC that nobody compared it with.
    Unchecked,
    /// By the version of its source, which the fingerprint has: it was drawn from there without passing through here.
    Pinned,
}

/// What a block came from: equal for equal length, time of last change (to the nanosecond) and block size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 8]);

impl Fingerprint {
    /// The fingerprint of a source; the first 8 bytes of a SHA-256, which every machine and release computes alike.
    pub fn new(len: Option<u64>, modified: Option<SystemTime>, block_size: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update([u8::from(len.is_some())]);
        hash.update(len.unwrap_or(0).to_be_bytes());
        let (sign, since) = match modified.map(|time| time.duration_since(UNIX_EPOCH)) {
            None => (0, 0),
            Some(Ok(after)) => (1, after.as_nanos()),
            Some(Err(before)) => (2, before.duration().as_nanos()),
        };
        hash.update([sign]);
        hash.update(since.to_be_bytes());
        hash.update(block_size.to_be_bytes());
        Fingerprint(first_8(&hash.finalize()))
    }

    /// The fingerprint of one version of such a source.
    #[must_use]
    pub fn of_version(self, version: Option<&str>) -> Self {
        let Some(version) = version else { return self };
        Fingerprint(first_8(&Sha256::new().chain_update(self.0).chain_update(version).finalize()))
    }
}

/// Sets one writer apart from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub [u8; 8]);

impl Nonce {
    /// A new one from the operating system's randomness.
    ///
    /// # Errors
    /// `Local` if the system has none to give.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes)
            .map_err(|e| Error::new(Kind::Local, "cannot get random bytes for block ids").with_source(e.to_string()))?;
        Ok(Nonce(bytes))
    }
}

/// One upload of one object: what all its blocks' names share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    fingerprint: Fingerprint,
    nonce: Nonce,
    trust: Trust,
}

impl Writer {
    /// A writer of its own for a source of this fingerprint; `trust` says what its blocks are known by.
    ///
    /// # Errors
    /// Those of [`Nonce::random`].
    pub fn new(fingerprint: Fingerprint, trust: Trust) -> Result<Self> {
        Ok(Writer { fingerprint, nonce: Nonce::random()?, trust })
    }

    /// What it writes.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether the block of this name is its own.
    pub fn wrote(&self, name: &BlockName) -> bool {
        self.nonce == name.nonce
    }

    /// The name of its block `index`.
    pub fn block(&self, index: u32, crc64: u64) -> BlockName {
        BlockName { fingerprint: self.fingerprint, nonce: self.nonce, index, crc64, trust: self.trust }
    }
}

/// A block id taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockName {
    /// What it came from.
    pub fingerprint: Fingerprint,
    /// Who wrote it.
    pub nonce: Nonce,
    /// Which block of the object it is, from 0.
    pub index: u32,
    /// CRC-64/NVME of its bytes; 0 for pinned ones.
    pub crc64: u64,
    /// What it is known by.
    pub trust: Trust,
}

impl BlockName {
    /// The id.
    pub fn build(&self) -> BlockId {
        let mut raw = [0; 32];
        raw[0] = VERSION;
        raw[1] = match self.trust {
            Trust::Checked => 0,
            Trust::Unchecked => UNCHECKED,
            Trust::Pinned => PINNED,
        };
        raw[4..12].copy_from_slice(&self.fingerprint.0);
        raw[12..20].copy_from_slice(&self.nonce.0);
        raw[20..24].copy_from_slice(&self.index.to_be_bytes());
        raw[24..].copy_from_slice(&self.crc64.to_be_bytes());
        BlockId(raw)
    }

    /// Takes an id apart; `None` for ids of another program, another version, or with bits set that this release does not know.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        let raw: &[u8; 32] = raw.try_into().ok()?;
        let trust = match raw[..4] {
            [VERSION, 0, 0, 0] => Trust::Checked,
            [VERSION, UNCHECKED, 0, 0] => Trust::Unchecked,
            [VERSION, PINNED, 0, 0] => Trust::Pinned,
            _ => return None,
        };
        let (index, crc64) = raw[20..].split_at(4);
        Some(BlockName {
            fingerprint: Fingerprint(first_8(&raw[4..12])),
            nonce: Nonce(first_8(&raw[12..20])),
            index: u32::from_be_bytes(index.try_into().ok()?),
            crc64: u64::from_be_bytes(crc64.try_into().ok()?),
            trust,
        })
    }
}

/// The first 8 bytes; zeros stand in for what is missing, which no caller lets happen.
fn first_8(bytes: &[u8]) -> [u8; 8] {
    std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn name() -> BlockName {
        BlockName {
            fingerprint: Fingerprint([1, 2, 3, 4, 5, 6, 7, 8]),
            nonce: Nonce([9; 8]),
            index: 0x0001_0203,
            crc64: 0xA1A2_A3A4_A5A6_A7A8,
            trust: Trust::Checked,
        }
    }

    #[test]
    fn every_field_has_its_place() {
        let expected = [
            1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9, 0, 1, 2, 3, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7,
            0xA8,
        ];
        assert_eq!(name().build().0, expected);
        assert_eq!(BlockName::parse(&expected), Some(name()));
        for (trust, flags) in [(Trust::Unchecked, 1), (Trust::Pinned, 2)] {
            let other = BlockName { trust, ..name() };
            assert_eq!(other.build().0[..4], [1, flags, 0, 0]);
            assert_eq!(BlockName::parse(&other.build().0), Some(other));
        }
    }

    #[test]
    fn foreign_ids_are_not_ours() {
        let id = name().build().0;
        assert_eq!(BlockName::parse(&id[..31]), None);
        assert_eq!(BlockName::parse(&[&id[..], &[0]].concat()), None);
        for (at, value) in [(0, 0), (0, 2), (1, 3), (2, 1), (3, 1)] {
            let mut other = id;
            other[at] = value;
            assert_eq!(BlockName::parse(&other), None, "byte {at} = {value}");
        }
        assert_eq!(BlockName::parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), None);
    }

    #[test]
    fn a_fingerprint_tells_length_time_and_block_size_apart() {
        let at = UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
        let base = Fingerprint::new(Some(10), Some(at), 8);
        assert_eq!(base, Fingerprint::new(Some(10), Some(at), 8));
        for other in [
            Fingerprint::new(Some(11), Some(at), 8),
            Fingerprint::new(Some(10), Some(at + Duration::from_nanos(1)), 8),
            Fingerprint::new(Some(10), Some(UNIX_EPOCH - Duration::from_nanos(1_700_000_000_123_456_789)), 8),
            Fingerprint::new(Some(10), None, 8),
            Fingerprint::new(None, Some(at), 8),
            Fingerprint::new(Some(10), Some(at), 9),
            base.of_version(Some("0x8D")),
        ] {
            assert_ne!(base, other);
        }
        assert_eq!(base, base.of_version(None));
        assert_ne!(base.of_version(Some("0x8D")), base.of_version(Some("0x8E")));
    }

    #[test]
    fn two_writers_differ() {
        assert_ne!(Nonce::random().unwrap(), Nonce::random().unwrap());
    }
}
