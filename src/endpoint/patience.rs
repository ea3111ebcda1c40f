//! Which refusals of the local filesystem are worth another try: those that say "not now" rather than "no".
//!
//! An interrupted call is made again at once. What is short for the moment (descriptors, memory, kernel resources) is waited for,
//! a few seconds in all, since our own requests in flight give it back as they end. A stale name of a network filesystem is
//! looked up again; a stale handle is for whoever knows its path. Everything else is told as it is, at once.

use crate::error::{Error, Kind};
use std::io;
use std::time::Duration;

/// Calls made again at once, one after the other, at most: a filesystem that always says "interrupted" is broken.
const INTERRUPTIONS: u32 = 100;

/// Lookups made again at once: the second one asks the server.
const LOOKUPS: u32 = 2;

/// Pauses before what is short is asked for again: about four seconds in all.
const PAUSES: [Duration; 8] = [
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_secs(1),
    Duration::from_secs(1),
    Duration::from_secs(1),
];

/// What was tried so far of one piece of work.
#[derive(Debug, Default)]
pub(super) struct Patience {
    interruptions: u32,
    lookups: u32,
    waits: usize,
}

impl Patience {
    /// How long to wait before the next try, or the error, if there is to be none.
    pub(super) fn after(&mut self, error: io::Error) -> io::Result<Duration> {
        match error.raw_os_error() {
            Some(libc::EINTR) if self.interruptions < INTERRUPTIONS => {
                self.interruptions += 1;
                Ok(Duration::ZERO)
            }
            Some(libc::ESTALE) if self.lookups < LOOKUPS => {
                self.lookups += 1;
                Ok(Duration::ZERO)
            }
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN) if self.waits < PAUSES.len() => {
                self.waits += 1;
                Ok(PAUSES[self.waits - 1])
            }
            _ => Err(error),
        }
    }

    /// Waits as a task until the next try, or gives the error back, if there is to be none.
    pub(super) async fn wait_after(&mut self, error: io::Error) -> io::Result<()> {
        let pause = self.after(error)?;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }
}

/// Does the work, again where that may help, on a thread that may block.
pub(super) fn patiently_here<T>(mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut patience = Patience::default();
    loop {
        match work() {
            Err(error) => std::thread::sleep(patience.after(error)?),
            done => return done,
        }
    }
}

/// What to do about an error that was not healed by waiting, where permissions are not what is wrong.
fn advice(error: &io::Error) -> Option<&'static str> {
    Some(match error.raw_os_error()? {
        libc::EIO => "the disk, or what stands for one, cannot read it: dmesg tells more; look after it before anything else",
        libc::EMFILE => "raise the number of open files (ulimit -n), or lower --concurrency",
        libc::ENFILE => "the system has no open files left: see what holds them (fs.file-nr), or wait for it to end",
        libc::ENOMEM => "there is no memory left: lower --memory and --concurrency, or allow more (ulimit -v, control group)",
        libc::EAGAIN => "the system lacks a resource at present (threads, locked memory): allow more (ulimit -a), or try later",
        libc::ESTALE => "the server of this filesystem no longer knows the file: mount it anew, and run this again",
        _ => return None,
    })
}

/// The error about something that cannot be read, with the advice that fits.
pub(super) fn unreadable_as(doing: impl Into<String>, error: io::Error) -> Error {
    let advice = advice(&error);
    let whole = Error::new(Kind::SourceUnreadable, doing).with_source(error);
    match advice {
        Some(advice) => whole.with_advice(advice),
        None => whole,
    }
}

/// Whether a handle has lost its file at the server: the path may still lead to it.
pub(super) fn is_stale(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESTALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often something that always fails with this is tried, and what it fails with in the end.
    async fn tries(errno: i32) -> (usize, io::Error) {
        let (mut patience, mut calls) = (Patience::default(), 1);
        loop {
            match patience.wait_after(io::Error::from_raw_os_error(errno)).await {
                Ok(()) => calls += 1,
                Err(error) => return (calls, error),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn not_now_is_tried_again_and_no_is_no() {
        for (errno, most) in [
            (libc::EINTR, 101),
            (libc::ESTALE, 3),
            (libc::EMFILE, 9),
            (libc::ENFILE, 9),
            (libc::ENOMEM, 9),
            (libc::EAGAIN, 9),
            (libc::EIO, 1),
            (libc::EACCES, 1),
        ] {
            let start = tokio::time::Instant::now();
            let (calls, error) = tries(errno).await;
            assert_eq!((calls, error.raw_os_error()), (most, Some(errno)));
            assert!(start.elapsed() < Duration::from_secs(5), "{errno} is told within 5 s");
        }
        let mut calls = 0;
        let result = patiently_here(|| {
            calls += 1;
            if calls > 50 { Ok(calls) } else { Err(io::Error::from_raw_os_error(libc::EINTR)) }
        });
        assert_eq!(result.unwrap(), 51);
    }
}
