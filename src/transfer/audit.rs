//! The books of a job, checked at its end: every object found has come to one end, and every byte was counted once.
//!
//! Counts that do not add up are a bug of ours, and perhaps a file that nobody mentions. Then the job does not pass for a good
//! one, whatever its other figures say. A job that was stopped or ended by an error leaves objects without an end; those are
//! counted as such afterwards ([`Progress::settle`](super::progress::Progress::settle)) and are not looked at here.

use crate::error::{Error, Kind, Result};
use crate::transfer::progress::Snapshot;

/// Checks the counters of a job that came to its end by itself.
///
/// # Errors
/// `Local`, naming the figures, if they do not add up.
pub(super) fn audit(counts: &Snapshot) -> Result<()> {
    let Snapshot { listed, done, failed, skipped, bytes_known, bytes_done, .. } = *counts;
    if listed != done + failed + skipped {
        return Err(bug(format!("{listed} objects were found, {done} are done, {failed} failed and {skipped} were skipped")));
    }
    let there = counts.bytes_there();
    // Of what failed or was skipped, some bytes may have been acknowledged.
    if failed + skipped == 0 && (there != bytes_done || bytes_known != bytes_done) {
        let text = format!("{bytes_known} bytes were to be sent, {there} were acknowledged and {bytes_done} are done");
        return Err(bug(text));
    }
    Ok(())
}

fn bug(figures: String) -> Error {
    Error::new(Kind::Local, format!("blobjet has a bug: its counts do not add up: {figures}"))
        .with_advice("compare source and destination, and please report this")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_add_up_is_an_error() {
        let good = Snapshot { listed: 3, done: 3, bytes_known: 9, bytes_sent: 9, bytes_done: 9, ..Snapshot::default() };
        for (counts, adds_up) in [
            (Snapshot::default(), true),
            (good, true),
            (Snapshot { done: 2, failed: 1, bytes_sent: 7, bytes_done: 6, ..good }, true),
            (Snapshot { done: 2, skipped: 1, bytes_sent: 6, bytes_done: 6, ..good }, true),
            (Snapshot { bytes_sent: 5, bytes_resumed: 4, ..good }, true),
            (Snapshot { bytes_resumed: 1, ..good }, false),
            (Snapshot { done: 2, ..good }, false),
            (Snapshot { skipped: 1, ..good }, false),
            (Snapshot { bytes_sent: 10, ..good }, false),
            (Snapshot { bytes_sent: 8, ..good }, false),
            (Snapshot { bytes_known: 10, ..good }, false),
        ] {
            assert_eq!(audit(&counts).is_ok(), adds_up, "{counts:?}");
        }
    }
}
