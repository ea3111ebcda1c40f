//! What a hit does to its request: on the way in, instead of the work, on the way out.
//!
//! `conn` asks at each point where something may be disturbed; here stands what happens there. A request that ends without an
//! answer has its connection reset, closed or kept open in silence, as the rule says.

use super::InFlight;
use crate::emulator::errors::error_xml;
use crate::emulator::http::Answer;
use crate::emulator::state::lock;
use crate::emulator::time::Ticks;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

/// All that can happen to a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Effects {
    /// Wait before anything else.
    pub(super) delay: Option<Duration>,
    /// Both bodies go at this rate, shared with all other hits of the rule.
    pub(super) rate: Option<Arc<Rate>>,
    /// The service's clock is ahead by so much, for what is judged and for the answer's `Date`.
    pub(super) clock_ahead_s: Option<i64>,
    /// This byte of the request's body is received wrong.
    pub(super) flip_request: Option<u64>,
    /// This byte of the answer's body is sent wrong.
    pub(super) flip_answer: Option<u64>,
    pub(super) cut: Option<Cut>,
    pub(super) lowered: Lowered,
    pub(super) end: Option<End>,
    /// The end comes after the work and not in its place.
    pub(super) late: bool,
}

/// How a request ends that is not to end well.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// The request is received, and nothing is said.
    Hang,
    /// The connection is reset when so many bytes of the body have come, or all of it.
    Reset(u64),
    /// The work is done, and the connection closed without an answer.
    Drop,
    Status(Status),
}

/// An answer made up.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    pub(super) status: u16,
    pub(super) code: Option<String>,
    pub(super) retry_after_s: Option<u64>,
    pub(super) location: Option<String>,
}

impl Status {
    pub(super) fn of(status: u16) -> Status {
        Status { status, code: None, retry_after_s: None, location: None }
    }

    /// The answer, without what all answers have.
    pub(crate) fn answer(&self, request_id: &str, now: Ticks) -> Answer {
        let mut answer = Answer::new(self.status);
        if let Some(seconds) = self.retry_after_s {
            answer.header("Retry-After", seconds.to_string());
        }
        if let Some(location) = &self.location {
            answer.header("Location", location.clone());
        }
        let Some(code) = &self.code else { return answer };
        answer.header("x-ms-error-code", code.clone());
        answer.header("Content-Type", "application/xml");
        answer.body(error_xml(code, "This refusal was made up by a fault rule.", &[], request_id, now))
    }
}

/// Where an answer is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// In the middle of its head.
    Head,
    /// After so many bytes of its body.
    Body(u64),
}

/// Limits below the service's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lowered {
    /// Blocks in a list.
    pub(crate) blocks: Option<u64>,
    /// Uncommitted blocks of a blob.
    pub(crate) uncommitted: Option<u64>,
    /// Length of a block.
    pub(crate) block_bytes: Option<u64>,
    /// Length of what Put Blob brings.
    pub(crate) blob_bytes: Option<u64>,
}

impl Effects {
    /// These, and where they say nothing what the others say.
    pub(super) fn or(self, other: &Effects) -> Effects {
        let (end, late) = match self.end {
            Some(end) => (Some(end), self.late),
            None => (other.end.clone(), other.late),
        };
        let (ours, theirs) = (self.lowered, other.lowered);
        Effects {
            delay: self.delay.or(other.delay),
            rate: self.rate.or_else(|| other.rate.clone()),
            clock_ahead_s: self.clock_ahead_s.or(other.clock_ahead_s),
            flip_request: self.flip_request.or(other.flip_request),
            flip_answer: self.flip_answer.or(other.flip_answer),
            cut: self.cut.or(other.cut),
            lowered: Lowered {
                blocks: ours.blocks.or(theirs.blocks),
                uncommitted: ours.uncommitted.or(theirs.uncommitted),
                block_bytes: ours.block_bytes.or(theirs.block_bytes),
                blob_bytes: ours.blob_bytes.or(theirs.blob_bytes),
            },
            end,
            late,
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        let Effects { delay, rate, clock_ahead_s, flip_request, flip_answer, cut, lowered, end, late: _ } = self;
        delay.is_none()
            && rate.is_none()
            && clock_ahead_s.is_none()
            && flip_request.is_none()
            && flip_answer.is_none()
            && cut.is_none()
            && *lowered == Lowered::default()
            && end.is_none()
    }
}

/// A rate shared by all requests a rule hits, as a narrow line is.
#[derive(Debug)]
pub(crate) struct Rate {
    bytes_per_s: u64,
    /// When what was booked so far will have passed.
    until: Mutex<Option<Instant>>,
}

/// Pieces in which bodies pass a narrow line, a second: fine enough to be seen as a flow.
const PIECES_PER_S: u64 = 20;

impl Rate {
    pub(super) fn new(bytes_per_s: u64) -> Rate {
        Rate { bytes_per_s: bytes_per_s.max(1), until: Mutex::default() }
    }

    fn piece(&self) -> usize {
        usize::try_from((self.bytes_per_s / PIECES_PER_S).clamp(1, 64 * 1024)).unwrap_or(1)
    }

    /// Waits until so many bytes have passed.
    async fn pass(&self, bytes: usize) {
        let nanos = u128::try_from(bytes).unwrap_or(u128::MAX) * 1_000_000_000 / u128::from(self.bytes_per_s);
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let until = {
            let mut until = lock(&self.until);
            let now = Instant::now();
            let end = until.map_or(now, |until| until.max(now)) + takes;
            *until = Some(end);
            end
        };
        tokio::time::sleep_until(until).await;
    }
}

/// What is to happen to one request, and how far it has got.
pub(crate) struct Interference {
    effects: Effects,
    body_len: u64,
    /// Bytes of the request's body received so far.
    received: u64,
    /// Counts the request as long as it is served.
    _in_flight: InFlight,
}

/// What becomes of the connection where a request ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    Reset,
    Close,
    Hang,
}

impl Interference {
    pub(super) fn new(effects: Effects, body_len: u64, in_flight: InFlight) -> Interference {
        Interference { effects, body_len, received: 0, _in_flight: in_flight }
    }

    /// Waits before the request is looked at.
    pub(crate) async fn wait(&self) {
        if let Some(delay) = self.effects.delay {
            tokio::time::sleep(delay).await;
        }
    }

    pub(crate) fn clock_ahead_s(&self) -> i64 {
        self.effects.clock_ahead_s.unwrap_or(0)
    }

    pub(crate) fn lowered(&self) -> Lowered {
        self.effects.lowered
    }

    /// Whether the work is to be done.
    pub(crate) fn works(&self) -> bool {
        match &self.effects.end {
            None | Some(End::Drop) => true,
            Some(End::Hang | End::Status(_)) => self.effects.late,
            // The body's end is never reached, so nothing comes of it; that it begins is part of the fault.
            Some(End::Reset(at)) => *at > 0 && self.body_len > 0,
        }
    }

    /// The answer to give in place of the right one.
    pub(crate) fn status(&self) -> Option<&Status> {
        match &self.effects.end {
            Some(End::Status(status)) => Some(status),
            _ => None,
        }
    }

    /// What happens in place of an answer.
    pub(crate) fn silence(&self) -> Option<Silence> {
        match self.effects.end {
            Some(End::Reset(_)) => Some(Silence::Reset),
            Some(End::Hang) => Some(Silence::Hang),
            Some(End::Drop) => Some(Silence::Close),
            Some(End::Status(_)) | None => None,
        }
    }

    /// Whether both bodies go at a rate.
    pub(crate) fn is_narrow(&self) -> bool {
        self.effects.rate.is_some()
    }

    /// Whether the request's body can be received, or dropped, as it is.
    pub(crate) fn leaves_body(&self) -> bool {
        !self.is_narrow() && self.effects.flip_request.is_none() && !matches!(self.effects.end, Some(End::Reset(_)))
    }

    /// How many bytes of the body may be received at once.
    pub(crate) fn piece(&self, wanted: usize) -> usize {
        let to_reset = match self.effects.end {
            Some(End::Reset(at)) => usize::try_from(at.saturating_sub(self.received)).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        self.effects.rate.as_ref().map_or(usize::MAX, |rate| rate.piece()).min(to_reset).min(wanted)
    }

    /// Takes note of bytes of the body, changes one of them, lets their time pass. `false`: here the connection breaks.
    pub(crate) async fn received(&mut self, bytes: &mut [u8]) -> bool {
        let from = self.received;
        self.received += bytes.len() as u64;
        if let Some(byte) = self.effects.flip_request.and_then(|at| at.checked_sub(from)).and_then(|at| usize::try_from(at).ok())
            && let Some(byte) = bytes.get_mut(byte)
        {
            *byte ^= 1;
        }
        if let Some(rate) = &self.effects.rate {
            rate.pass(bytes.len()).await;
        }
        !matches!(self.effects.end, Some(End::Reset(at)) if self.received >= at.min(self.body_len))
    }

    /// Whether the answer can go out as it is.
    pub(crate) fn leaves_answer(&self) -> bool {
        self.effects.flip_answer.is_none() && self.effects.cut.is_none() && !self.is_narrow()
    }

    /// Changes and cuts a whole answer on the wire. `true`: that was the end of the connection.
    pub(crate) fn spoil(&self, wire: &mut Vec<u8>) -> bool {
        let head = wire.windows(4).position(|w| w == b"\r\n\r\n").map_or(wire.len(), |at| at + 4);
        let in_body = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).saturating_add(head);
        if let Some(byte) = self.effects.flip_answer.and_then(|at| wire.get_mut(in_body(at))) {
            *byte ^= 1;
        }
        let len = match self.effects.cut {
            None => return false,
            Some(Cut::Head) => head / 2,
            Some(Cut::Body(at)) => in_body(at),
        };
        let cut = len < wire.len();
        wire.truncate(len);
        cut
    }

    /// Sends an answer, in pieces that take their time where there is a rate.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) async fn send(&self, stream: &mut (impl AsyncWrite + Unpin), wire: &[u8]) -> io::Result<()> {
        let Some(rate) = &self.effects.rate else { return stream.write_all(wire).await };
        for piece in wire.chunks(rate.piece()) {
            rate.pass(piece.len()).await;
            stream.write_all(piece).await?;
        }
        Ok(())
    }
}
