//! The body of a request on its way out: whole pieces without a copy, or slices when there is a cap.

use crate::chunks::Chunks;
use crate::rest::pace::Pace;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep};

/// Hands [`Chunks`] to the connection: one frame a piece, so that a block goes out as one long vectored write.
pub(crate) struct SendBody {
    chunks: Chunks,
    /// Index of the next piece.
    next: usize,
    /// Bytes not yet handed out.
    left: u64,
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
        SendBody { left: chunks.len(), chunks, next: 0, capped }
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
}

impl Body for SendBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let out = match this.capped.take() {
            None => this.next_piece(),
            Some(mut capped) => {
                if capped.piece.is_empty() {
                    capped.piece = this.next_piece().unwrap_or_default();
                }
                let slice = poll_slice(&mut capped, cx);
                this.capped = Some(capped);
                ready!(slice)
            }
        };
        let Some(out) = out else { return Poll::Ready(None) };
        this.left -= out.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(out))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
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

    async fn frames(body: &mut SendBody) -> Vec<Bytes> {
        let mut out = Vec::new();
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            out.push(frame.into_data().unwrap());
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
        assert_eq!(body.size_hint().exact(), Some(100_010));
        let out = frames(&mut body).await;
        assert_eq!(out, [a.clone(), b]);
        assert_eq!(out[0].as_ptr(), a.as_ptr());
        assert!(body.is_end_stream());
        assert!(SendBody::new(Chunks::default(), None).is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn capped_body_takes_its_time_and_keeps_its_bytes() {
        let data: Vec<u8> = (0..1_000_000u32).map(|i| i.to_le_bytes()[0]).collect();
        let start = Instant::now();
        let out = frames(&mut SendBody::new(data.clone().into(), Some(cap(&Arc::new(Pace::new(800_000)))))).await;
        assert_eq!(out.concat(), data);
        let took = start.elapsed().as_secs_f64();
        assert!((9.5..=10.5).contains(&took), "1 MB at 100 kB/s took {took} s");
    }

    // semantics 48
    #[tokio::test(start_paused = true)]
    async fn heads_count_against_the_cap() {
        let (pace, start) = (Arc::new(Pace::new(800_000)), Instant::now());
        for _ in 0..500 {
            frames(&mut SendBody::new(vec![0; 500].into(), Some(cap(&pace)))).await;
            frames(&mut SendBody::new(Chunks::default(), Some(cap(&pace)))).await;
        }
        let took = start.elapsed().as_secs_f64();
        assert!((6.5..=7.5).contains(&took), "1000 heads of 450 bytes and 250 kB at 100 kB/s took {took} s");
    }
}
