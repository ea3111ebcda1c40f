//! Notices a connection on which nothing moves: however slow a line is, it is not still.

use crate::rest::connect::Activity;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A standstill is looked for this often within the time allowed, so it is found after that time and at most a quarter more.
const LOOKS: u32 = 4;

/// Fires when no byte has moved in either direction for the time allowed, neither between us and the kernel nor between it and
/// the other side. It stays with its connection: a timer for each request would be set and cancelled a hundred thousand times.
pub(crate) struct Watchdog {
    activity: Arc<Activity>,
    seen: u64,
    /// What the kernel held when it was asked last.
    held: Option<u64>,
    /// Looks in a row that have to find nothing moved.
    left: u32,
    every: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Watchdog {
    pub(crate) fn new(activity: Arc<Activity>) -> Watchdog {
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        Watchdog { activity, seen: 0, held: None, left: LOOKS, every: Duration::ZERO, timer }
    }

    /// A request is about to be sent on which nothing may move for so long.
    pub(crate) fn begin(&mut self, allowed: Duration) {
        self.seen = self.activity.moved.load(Relaxed);
        self.held = None;
        // The first look may be due at any moment.
        self.left = LOOKS + 1;
        let every = allowed / LOOKS;
        if every != self.every {
            self.every = every;
            self.timer.as_mut().reset(Instant::now() + every);
        }
    }

    /// Ready once nothing has moved for too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let moved = self.activity.moved.load(Relaxed);
            if moved == self.seen && !self.activity.waiting.load(Relaxed) {
                let held = self.activity.unacknowledged();
                let before = std::mem::replace(&mut self.held, held);
                let drains = held.is_some() && held < before;
                self.left = if drains { LOOKS } else { self.left - 1 };
            } else {
                (self.left, self.held) = (LOOKS, None);
            }
            self.seen = moved;
            if self.left == 0 {
                return Poll::Ready(());
            }
            // From now on and not from when it was due: a process that was stopped has not seen anything stand still.
            self.timer.as_mut().reset(Instant::now() + self.every);
        }
        Poll::Pending
    }
}
