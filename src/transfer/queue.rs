//! What the lanes take their work from: blocks of objects already started first, then the next object of the listing.
//!
//! An object whose blocks are all handed out may come back with some of them, if they got lost.
//!
//! One lock, held for a few instructions, guards it all; a lane that finds nothing waits for a change. Objects are finished in
//! the order they were started in, and a lane opens a new one only when no started one has work left, so no more objects are
//! open than there are lanes, however long the listing is.

use crate::endpoint::Item;
use crate::transfer::attempt::Attempt;
use crate::transfer::object::Object;
use crate::transfer::stream::Stream;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::Notify;

/// Items waiting at most before the listing has to wait; what it finds at once comes on top (a walk 256, a page of blobs 5,000).
/// It goes on when half of them are taken, which is well before the lanes have none: a walk is many times as fast as they are, and
/// of blobs the next pages are asked for while one waits here. Each costs some 500 bytes, which showed with 16,384 of them.
const AHEAD: usize = 4096;

/// One thing for a lane to do.
pub(super) enum Work {
    /// Move this block of the object.
    Block(Arc<Object>, u32),
    /// Read and move the stream's next block.
    Turn(Arc<Stream>),
    /// Open this object; [`Queue::settled`] or [`Queue::again`] must follow in the end.
    Item(Attempt),
    /// Nothing now: wait for a change.
    Wait,
    /// Nothing any more.
    End,
}

enum Large {
    Object { object: Arc<Object>, blocks: Blocks },
    Stream(Arc<Stream>),
}

/// Blocks not handed out yet.
enum Blocks {
    All(std::ops::Range<u32>),
    Lost(std::vec::IntoIter<u32>),
}

impl Blocks {
    /// The next one, and whether it is the last.
    fn next(&mut self) -> Option<(u32, bool)> {
        match self {
            Blocks::All(range) => range.next().map(|index| (index, range.start >= range.end)),
            Blocks::Lost(list) => list.next().map(|index| (index, list.len() == 0)),
        }
    }
}

#[derive(Default)]
struct State {
    items: VecDeque<Attempt>,
    large: VecDeque<Large>,
    /// Objects taken that have not come to their end: each may turn out to be large, or be started again, so that idle lanes
    /// wait for them.
    under_way: usize,
    listed: bool,
    closed: bool,
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Notify,
    room: Notify,
}

impl Queue {
    /// Takes the next piece of work.
    pub(super) async fn next(&self) -> Work {
        loop {
            match self.try_next() {
                Work::Wait => {}
                work => return work,
            }
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listening starts before the second look, so a change between the two is not missed.
            changed.as_mut().enable();
            match self.try_next() {
                Work::Wait => changed.await,
                work => return work,
            }
        }
    }

    fn try_next(&self) -> Work {
        let mut state = self.state();
        if state.closed {
            return Work::End;
        }
        match state.large.front_mut() {
            Some(Large::Object { object, blocks }) => {
                if let Some((index, last)) = blocks.next() {
                    let work = Work::Block(Arc::clone(object), index);
                    if last {
                        state.large.pop_front();
                    }
                    return work;
                }
                // Without any block; there is no such object.
                state.large.pop_front();
            }
            Some(Large::Stream(stream)) => return Work::Turn(Arc::clone(stream)),
            None => {}
        }
        if let Some(attempt) = state.items.pop_front() {
            state.under_way += 1;
            if state.items.len() == AHEAD / 2 {
                self.room.notify_one();
            }
            return Work::Item(attempt);
        }
        if state.listed && state.under_way == 0 { Work::End } else { Work::Wait }
    }

    /// A taken object has come to its end.
    pub(super) fn settled(&self) {
        let idle = {
            let mut state = self.state();
            state.under_way -= 1;
            state.under_way == 0 && state.listed && state.items.is_empty()
        };
        if idle {
            self.changed.notify_waiters();
        }
    }

    /// A taken object is to be started again, after all that waits now.
    pub(super) fn again(&self, attempt: Attempt) {
        {
            let mut state = self.state();
            state.under_way -= 1;
            state.items.push_back(attempt);
        }
        self.changed.notify_waiters();
    }

    /// The taken item is a large object: its blocks are there for all lanes.
    pub(super) fn add_object(&self, object: Arc<Object>) {
        let blocks = Blocks::All(0..object.count());
        self.add(Large::Object { object, blocks });
    }

    /// These blocks of an object got lost and have to be moved again; at least one. They come before all else, as it is nearly
    /// done.
    pub(super) fn give_back(&self, object: Arc<Object>, lost: Vec<u32>) {
        let blocks = Blocks::Lost(lost.into_iter());
        self.state().large.push_front(Large::Object { object, blocks });
        self.changed.notify_waiters();
    }

    /// The taken item is a stream.
    pub(super) fn add_stream(&self, stream: Arc<Stream>) {
        self.add(Large::Stream(stream));
    }

    fn add(&self, large: Large) {
        self.state().large.push_back(large);
        self.changed.notify_waiters();
    }

    /// No more blocks of this object are wanted: it has failed.
    pub(super) fn drop_object(&self, gone: &Arc<Object>) {
        self.remove(|large| matches!(large, Large::Object { object, .. } if Arc::ptr_eq(object, gone)));
    }

    /// No more turns of this stream are wanted: it has ended or failed.
    pub(super) fn drop_stream(&self, gone: &Arc<Stream>) {
        self.remove(|large| matches!(large, Large::Stream(stream) if Arc::ptr_eq(stream, gone)));
    }

    fn remove(&self, is: impl Fn(&Large) -> bool) {
        self.state().large.retain(|large| !is(large));
        self.changed.notify_waiters();
    }

    /// Adds what was found and waits while too much is waiting; `false` once the queue is closed. It is added before the wait:
    /// wherever a stop comes, what was listed is here or with a lane, and is counted as not started or given up.
    pub(super) async fn push(&self, items: Vec<Item>, queued: SystemTime) -> bool {
        self.state().items.extend(items.into_iter().map(|item| Attempt::first(item, queued)));
        self.changed.notify_waiters();
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let state = self.state();
                if state.closed {
                    return false;
                }
                if state.items.len() < AHEAD {
                    return true;
                }
            }
            room.await;
        }
    }

    /// Nothing more will be pushed.
    pub(super) fn listed(&self) {
        self.state().listed = true;
        self.changed.notify_waiters();
    }

    /// Hands out no more work.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_waiters();
        self.room.notify_one();
    }

    /// Items nobody took.
    pub(super) fn waiting(&self) -> u64 {
        self.state().items.len() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_for_room_when_the_listing_is_stopped_is_still_there() {
        let items = |count| vec![Item::new("a", "a"); count];
        let (queue, now) = (Queue::default(), SystemTime::now());
        assert!(queue.push(items(AHEAD - 1), now).await);
        for _ in 0..2 {
            tokio::select! {
                biased;
                _ = queue.push(items(5), now) => {}
                () = std::future::ready(()) => {}
            }
        }
        assert_eq!(queue.waiting(), AHEAD as u64 + 9);
        queue.close();
        assert!(!queue.push(items(1), now).await);
        assert_eq!(queue.waiting(), AHEAD as u64 + 10);
    }
}
