//! MD5 of small objects, for `--put-md5`: those that wait at the same time are hashed side by side, on threads beside the runtime.
//!
//! As many threads run as there is work for, one a processor at most; one that finds nothing more ends. Memory is the
//! caller's: a message is one that has been read and is about to be sent.

use crate::chunks::Chunks;
use crate::error::{Error, Kind, Result};
use crate::md5_lanes::{LANES, side_by_side};
use crate::transfer::md5::Running;
use bytes::Bytes;
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::oneshot;

/// What is hashed on the spot: 25 us, about what handing it over and back would cost.
const AT_ONCE: u64 = 16 * 1024;

/// See the module's text.
#[derive(Default)]
pub(super) struct Md5Queue {
    state: Arc<Mutex<State>>,
    /// Threads, at most. Asked once, by the first object: the answer is in files.
    most: OnceLock<usize>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Message>,
    threads: usize,
}

struct Message {
    data: Bytes,
    digest: oneshot::Sender<[u8; 16]>,
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Md5Queue {
    /// The hash of an object's bytes.
    ///
    /// # Errors
    /// Where the runtime is shutting down.
    pub(super) async fn digest(&self, data: &Chunks) -> Result<[u8; 16]> {
        let mut pieces = data.iter();
        match (pieces.next(), pieces.next()) {
            (Some(piece), None) if data.len() > AT_ONCE => self.hand_over(piece.clone()).await,
            _ => Ok(Running::default().fed(data).await?.finish()),
        }
    }

    async fn hand_over(&self, data: Bytes) -> Result<[u8; 16]> {
        let (digest, result) = oneshot::channel();
        let most = *self.most.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get));
        {
            let mut state = lock(&self.state);
            state.waiting.push_back(Message { data, digest });
            let enough = state.threads * LANES >= state.waiting.len();
            if !enough && state.threads < most {
                state.threads += 1;
                let shared = Arc::clone(&self.state);
                tokio::task::spawn_blocking(move || work(&shared));
            }
        }
        result.await.map_err(|e| Error::new(Kind::Local, "cannot hash the source").with_source(e))
    }
}

fn work(shared: &Mutex<State>) {
    loop {
        side_by_side(
            || lock(shared).waiting.pop_front(),
            // Nobody waits for the hash of an object that was given up.
            |message, digest| {
                let _ = message.digest.send(digest);
            },
        );
        let mut state = lock(shared);
        if state.waiting.is_empty() {
            state.threads -= 1;
            return;
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A holder only moves values.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_object_gets_its_own_hash() {
        let queue = Arc::new(Md5Queue::default());
        let mut pieces = Chunks::default();
        (0..10).for_each(|_| pieces.push(vec![b'a'; 100_000].into()));
        // openssl md5 of a million, and of a hundred, letters a.
        let long = "7707d6ae4e027c70eea2a935c2296f21";
        let mut all = vec![(Chunks::from(vec![b'a'; 1_000_000]), long); 2 * LANES];
        all.extend([(Chunks::from(vec![b'a'; 100]), "36a92cc94a9e0fa21f625f8bfb007adf"), (pieces, long)]);
        // The threads end when there is nothing left, and are started again.
        for _ in 0..2 {
            let mut tasks = tokio::task::JoinSet::new();
            for (data, expected) in all.clone() {
                let queue = Arc::clone(&queue);
                tasks.spawn(async move { (queue.digest(&data).await.unwrap(), expected) });
            }
            for (digest, expected) in tasks.join_all().await {
                assert_eq!(digest.iter().map(|b| format!("{b:02x}")).collect::<String>(), expected);
            }
        }
    }
}
