//! The body of a request on its way out: whole pieces without a copy, or slices when there is a cap.

use crate::chunks::Chunks;
use crate::rest::pace::Pace;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep};

/// Hands [`Chunks`] to the connection, piece by piece, so that a block goes out as one long write.
#[derive(Default)]
pub(crate) struct SendBody {
    chunks: Chunks,
    /// Index of the next piece.
    next: usize,
    capped: Option<Capped>,
}

/// What a body needs to keep to a cap.
pub(crate) struct Cap {
    pub(crate) pace: Arc<Pace>,
    /// Bytes of the head, which goes out before the body and counts too.
    pub(crate) head: usize,
    /// Tells the watchdog that this standstill is ours.
    pub(crate) waiting: Arc<AtomicBool>,
}

struct Capped {
    cap: Cap,
    /// Rest of the piece that is being sliced.
    piece: Bytes,
    /// A booked slice waits for its moment.
    booked: Option<(Pin<Box<Sleep>>, usize)>,
}

impl SendBody {
    pub(crate) fn new(chunks: Chunks, cap: Option<Cap>) -> SendBody {
        if let Some(Cap { pace, head, .. }) = cap.as_ref().filter(|_| chunks.is_empty()) {
            // Goes at once, at the cost of what comes next.
            pace.book(*head, Instant::now());
        }
        let capped = cap.map(|cap| Capped { cap, piece: Bytes::new(), booked: None });
        SendBody { chunks, next: 0, capped }
    }

    fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            let piece = self.chunks.iter().nth(self.next)?.clone();
            self.next += 1;
            if !piece.is_empty() {
                return Some(piece);
            }
        }
    }

    /// The next piece, once it may go; `None` at the end. No piece is empty.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(mut capped) = self.capped.take() else { return Poll::Ready(self.next_piece()) };
        if capped.piece.is_empty() {
            capped.piece = self.next_piece().unwrap_or_default();
        }
        let slice = poll_slice(&mut capped, cx);
        self.capped = Some(capped);
        slice
    }
}

fn poll_slice(capped: &mut Capped, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
    if capped.piece.is_empty() {
        return Poll::Ready(None);
    }
    let (mut sleep, len) = capped.booked.take().unwrap_or_else(|| {
        let len = capped.piece.len().min(capped.cap.pace.slice());
        let at = capped.cap.pace.book(len + std::mem::take(&mut capped.cap.head), Instant::now());
        (Box::pin(tokio::time::sleep_until(at)), len)
    });
    if Instant::now() < sleep.deadline() && sleep.as_mut().poll(cx).is_pending() {
        capped.cap.waiting.store(true, Relaxed);
        capped.booked = Some((sleep, len));
        return Poll::Pending;
    }
    capped.cap.waiting.store(false, Relaxed);
    Poll::Ready(Some(capped.piece.split_to(len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    async fn pieces(body: &mut SendBody) -> Vec<Bytes> {
        let mut out = Vec::new();
        while let Some(piece) = poll_fn(|cx| body.poll_piece(cx)).await {
            out.push(piece);
        }
        out
    }

    fn cap(pace: &Arc<Pace>) -> Cap {
        Cap { pace: Arc::clone(pace), head: 450, waiting: Arc::default() }
    }

    #[tokio::test]
    async fn pieces_go_out_whole_and_uncopied() {
        let (a, b) = (Bytes::from(vec![1; 100_000]), Bytes::from(vec![2; 10]));
        let mut chunks = Chunks::from(a.clone());
        chunks.push(Bytes::new());
        chunks.push(b.clone());
        let mut body = SendBody::new(chunks, None);
        let out = pieces(&mut body).await;
        assert_eq!(out, [a.clone(), b]);
        assert_eq!(out[0].as_ptr(), a.as_ptr());
        assert!(pieces(&mut SendBody::new(Chunks::default(), None)).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn capped_body_takes_its_time_and_keeps_its_bytes() {
        let data: Vec<u8> = (0..1_000_000u32).map(|i| i.to_le_bytes()[0]).collect();
        let start = Instant::now();
        let out = pieces(&mut SendBody::new(data.clone().into(), Some(cap(&Arc::new(Pace::new(800_000)))))).await;
        assert_eq!(out.concat(), data);
        let took = start.elapsed().as_secs_f64();
        assert!((9.5..=10.5).contains(&took), "1 MB at 100 kB/s took {took} s");
    }

    // semantics 48
    #[tokio::test(start_paused = true)]
    async fn heads_count_against_the_cap() {
        let (pace, start) = (Arc::new(Pace::new(800_000)), Instant::now());
        for _ in 0..500 {
            pieces(&mut SendBody::new(vec![0; 500].into(), Some(cap(&pace)))).await;
            pieces(&mut SendBody::new(Chunks::default(), Some(cap(&pace)))).await;
        }
        let took = start.elapsed().as_secs_f64();
        assert!((6.5..=7.5).contains(&took), "1000 heads of 450 bytes and 250 kB at 100 kB/s took {took} s");
    }
}
