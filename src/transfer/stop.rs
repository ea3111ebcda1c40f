//! How a running job is told to stop: first gently, then at once.

use tokio::sync::watch;

/// How far a stop has gone. Only ever moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Go on.
    Run,
    /// Take no more work; let requests in flight end. What is staged stays staged.
    Drain,
    /// Drop what is in flight.
    Now,
}

/// The end that says stop. Dropping it means nothing.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<Phase>);

/// The end that listens.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Phase>);

/// A pair of both ends.
pub fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(Phase::Run);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Moves on to `phase`; going back is ignored.
    pub fn advance(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let forward = phase > *now;
            *now = phase.max(*now);
            forward
        });
    }
}

impl Stop {
    /// One that never says stop.
    pub fn never() -> Self {
        channel().1
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until at least `phase` is reached; for ever if the other end is gone without saying so. Cancel-safe.
    pub async fn reached(&mut self, phase: Phase) {
        if self.0.wait_for(|now| *now >= phase).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_only_move_forward() {
        let (stopper, mut stop) = channel();
        assert_eq!(stop.phase(), Phase::Run);
        stopper.advance(Phase::Now);
        stopper.advance(Phase::Drain);
        assert_eq!(stop.phase(), Phase::Now);
        stop.reached(Phase::Drain).await;
    }
}
