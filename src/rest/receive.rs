//! The body of an answer on its way in: piece by piece to whoever takes it, summed on the way, no faster than a cap allows.
//!
//! Pieces go on as they come out of the connection: a body of any length passes through the same few hundred kilobytes, while they
//! are in the processor's cache. An answer that breaks off is
//! asked for again whole, so a taker must be able to begin anew.

use crate::crc64::Crc64;
use crate::error::Result;
use crate::rest::properties::crc64_text;
use crate::rest::request::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest as _, Md5};

/// Takes the body of a success as it comes. Called by the task that sends the request, one call after the other.
pub trait Receive: Send {
    /// An answer begins: what an earlier try brought is void. `head` is the answer without its body.
    ///
    /// # Errors
    /// Any: the request ends with it.
    fn begin(&mut self, head: &Response) -> Result<()>;

    /// The next piece.
    ///
    /// # Errors
    /// Any: the request ends with it.
    fn piece(&mut self, piece: &[u8]) -> Result<()>;
}

/// The checksum of a range that the service is asked to send along ("Get Blob", `x-ms-range-get-content-crc64` and `-md5`; of
/// ranges up to 4 MiB).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    /// `x-ms-content-crc64`.
    Crc64,
    /// `Content-MD5`.
    Md5,
}

impl Sum {
    /// The header that asks for it.
    pub(crate) fn asked_by(self) -> &'static str {
        match self {
            Sum::Crc64 => "x-ms-range-get-content-crc64",
            Sum::Md5 => "x-ms-range-get-content-md5",
        }
    }

    /// The header that has it.
    fn answered_by(self) -> &'static str {
        match self {
            Sum::Crc64 => "x-ms-content-crc64",
            Sum::Md5 => "content-md5",
        }
    }
}

/// A body that is being received, and what is known of it.
pub(crate) struct Incoming<'a> {
    into: &'a mut dyn Receive,
    running: Running,
    /// What the answer says it should be.
    told: Option<Vec<u8>>,
}

enum Running {
    None,
    Crc64(Crc64),
    Md5(Md5),
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(into: &'a mut dyn Receive) -> Self {
        Incoming { into, running: Running::None, told: None }
    }

    /// A try is about to be sent that asks for this checksum.
    pub(crate) fn expect(&mut self, sum: Option<Sum>) {
        self.told = None;
        self.running = match sum {
            None => Running::None,
            Some(Sum::Crc64) => Running::Crc64(Crc64::new()),
            Some(Sum::Md5) => Running::Md5(Md5::new()),
        };
    }

    pub(crate) fn begin(&mut self, head: &Response) -> Result<()> {
        let sum = match self.running {
            Running::None => None,
            Running::Crc64(_) => Some(Sum::Crc64),
            Running::Md5(_) => Some(Sum::Md5),
        };
        self.told = sum.and_then(|sum| head.headers.bytes(sum.answered_by()).map(<[u8]>::to_vec));
        if self.told.is_none() {
            // Nothing to compare with.
            self.running = Running::None;
        }
        self.into.begin(head)
    }

    pub(crate) fn piece(&mut self, piece: &[u8]) -> Result<()> {
        match &mut self.running {
            Running::None => {}
            Running::Crc64(crc64) => crc64.update(piece),
            Running::Md5(md5) => md5.update(piece),
        }
        self.into.piece(piece)
    }

    /// Whether what came is what the service sent, as far as it said.
    pub(crate) fn is_whole(&mut self) -> bool {
        let ours = match std::mem::replace(&mut self.running, Running::None) {
            Running::None => return true,
            Running::Crc64(crc64) => crc64_text(crc64.finish()).to_vec(),
            Running::Md5(md5) => BASE64.encode(md5.finalize()).into_bytes(),
        };
        self.told.as_ref().is_none_or(|told| *told == ours)
    }
}
