//! Where bodies go: memory, segment files, or nowhere; with the checksums that were asked for, taken on the way.

use super::conn::Body;
use super::disk::Disk;
use super::payload::{Extent, Payload, Piece};
use bytes::{Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, Digest as Crc};
use md5::{Digest as _, Md5};
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Largest piece a body is received in. Small enough to stay in a second-level cache between the socket and the checksum.
const PIECE: usize = 1024 * 1024;

/// The three storages.
#[derive(Debug)]
pub(crate) enum Store {
    Memory,
    Disk(Box<Disk>),
    Discard,
}

/// Which checksums of a body are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    pub(crate) md5: bool,
    pub(crate) crc64: bool,
    /// What the request says the CRC64 is. A store that keeps nothing believes it, and need not look at the bytes.
    pub(crate) declared_crc64: Option<u64>,
}

/// A body that has been received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) payload: Payload,
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) crc64: Option<u64>,
}

impl Store {
    /// Whether content is thrown away.
    pub(crate) fn discards(&self) -> bool {
        matches!(self, Store::Discard)
    }

    /// Room for so many bytes that come from elsewhere than a request's body.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn keep(&self, len: u64) -> io::Result<Keeping<'_>> {
        Ok(match self {
            Store::Discard => Keeping::Discarded(0),
            Store::Disk(disk) if len > 0 => Keeping::Stored { disk, extent: disk.reserve(len)?, at: 0 },
            Store::Memory | Store::Disk(_) => Keeping::Held(Vec::new()),
        })
    }

    /// Receives the whole body.
    ///
    /// # Errors
    /// The socket's and the disk's.
    pub(crate) async fn receive(&self, body: &mut Body<'_>, wanted: Wanted) -> io::Result<Received> {
        let len = body.remaining();
        let mut sums = Sums::new(wanted);
        let payload = match self {
            Store::Discard => {
                if !wanted.md5 {
                    body.discard().await?;
                    let payload = if len == 0 { Payload::Empty } else { Payload::One(Piece::Discarded { len }) };
                    return Ok(Received { payload, md5: None, crc64: wanted.declared_crc64 });
                }
                let mut buffer = BytesMut::new();
                while body.remaining() > 0 {
                    buffer.clear();
                    body.fill(&mut buffer, PIECE).await?;
                    sums.update(&buffer);
                }
                vec![Piece::Discarded { len }].into()
            }
            Store::Memory => {
                let mut pieces = Vec::new();
                while body.remaining() > 0 {
                    let mut buffer = BytesMut::new();
                    body.fill(&mut buffer, PIECE).await?;
                    sums.update(&buffer);
                    pieces.push(Piece::Memory(buffer.freeze()));
                }
                pieces.into()
            }
            Store::Disk(disk) if len > 0 => {
                let extent = disk.reserve(len)?;
                let mut buffer = BytesMut::new();
                let mut at = 0;
                while body.remaining() > 0 {
                    buffer.clear();
                    body.fill(&mut buffer, PIECE).await?;
                    sums.update(&buffer);
                    disk.write(&extent, at, &buffer)?;
                    at += buffer.len() as u64;
                }
                Payload::One(Piece::Stored(extent))
            }
            Store::Disk(_) => Payload::Empty,
        };
        let (md5, crc64) = sums.finish();
        Ok(Received { payload, md5, crc64 })
    }
}

/// Bytes on their way into the store.
pub(crate) enum Keeping<'s> {
    Held(Vec<Piece>),
    Stored { disk: &'s Disk, extent: Extent, at: u64 },
    Discarded(u64),
}

impl Keeping<'_> {
    /// Takes the next bytes; no more than there is room for.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn add(&mut self, bytes: Bytes) -> io::Result<()> {
        match self {
            Keeping::Held(pieces) => pieces.push(Piece::Memory(bytes)),
            Keeping::Stored { disk, extent, at } => {
                disk.write(extent, *at, &bytes)?;
                *at += bytes.len() as u64;
            }
            Keeping::Discarded(len) => *len += bytes.len() as u64,
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Payload {
        match self {
            Keeping::Held(pieces) => pieces.into(),
            Keeping::Stored { extent, .. } => Payload::One(Piece::Stored(extent)),
            Keeping::Discarded(len) => vec![Piece::Discarded { len }].into(),
        }
    }
}

/// Receives a body that is to be read here (XML, a batch) rather than stored.
///
/// # Errors
/// The socket's.
pub(crate) async fn collect(body: &mut Body<'_>) -> io::Result<Vec<u8>> {
    let mut buffer = BytesMut::new();
    while body.remaining() > 0 {
        body.fill(&mut buffer, PIECE).await?;
    }
    Ok(buffer.into())
}

/// Running checksums of a body.
struct Sums {
    md5: Option<Md5>,
    crc64: Option<Crc>,
}

impl Sums {
    fn new(wanted: Wanted) -> Self {
        Sums { md5: wanted.md5.then(Md5::new), crc64: wanted.crc64.then(|| Crc::new(CrcAlgorithm::Crc64Nvme)) }
    }

    fn update(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if let Some(crc64) = &mut self.crc64 {
            crc64.update(bytes);
        }
    }

    fn finish(self) -> (Option<[u8; 16]>, Option<u64>) {
        (self.md5.map(|m| m.finalize().into()), self.crc64.map(|c| c.finalize()))
    }
}

/// Checksums of bytes that are stored already (a copied range).
///
/// # Errors
/// The disk's, and `Unsupported` for what was thrown away.
pub(crate) fn checksums(pieces: &[Piece], wanted: Wanted) -> io::Result<(Option<[u8; 16]>, Option<u64>)> {
    let mut sums = Sums::new(wanted);
    if wanted.md5 || wanted.crc64 {
        for piece in pieces {
            visit(piece, &mut |bytes| sums.update(bytes))?;
        }
    }
    Ok(sums.finish())
}

fn visit(piece: &Piece, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    if let Piece::Memory(bytes) = piece {
        see(bytes);
        return Ok(());
    }
    let mut buffer = vec![0; usize::try_from(piece.len()).unwrap_or(PIECE).min(PIECE)];
    let mut at = 0;
    while at < piece.len() {
        let count = usize::try_from(piece.len() - at).unwrap_or(PIECE).min(PIECE);
        read_at(piece, at, &mut buffer[..count])?;
        see(&buffer[..count]);
        at += count as u64;
    }
    Ok(())
}

fn read_at(piece: &Piece, at: u64, out: &mut [u8]) -> io::Result<()> {
    match piece {
        Piece::Stored(extent) => match &extent.file {
            Some(file) => file.read(extent.offset + at, out),
            None => Err(io::Error::other("segment file not attached")),
        },
        Piece::Zeros { .. } => {
            out.fill(0);
            Ok(())
        }
        Piece::Memory(_) | Piece::Discarded { .. } => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Writes a piece out, to the client mostly.
///
/// # Errors
/// The disk's and the socket's. An error ends the connection: the head with the full length has gone out already.
pub(crate) async fn write_piece(piece: &Piece, out: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    if let Piece::Memory(bytes) = piece {
        return out.write_all(bytes).await;
    }
    let mut buffer = vec![0; usize::try_from(piece.len()).unwrap_or(PIECE).min(PIECE)];
    let mut at = 0;
    while at < piece.len() {
        let count = usize::try_from(piece.len() - at).unwrap_or(PIECE).min(PIECE);
        read_at(piece, at, &mut buffer[..count])?;
        out.write_all(&buffer[..count]).await?;
        at += count as u64;
    }
    Ok(())
}
