//! Records on their way to the writer: names in one long text, figures in one list, so that a record costs no allocation once
//! the two have grown.

use super::finished::FINISHED_EARLIER;
use super::time::{micros, nanos};
use crate::error::Error;
use crate::secret::SafeUrl;
use crate::transfer::progress::{Event, Outcome};
use std::error::Error as _;
use std::time::SystemTime;

/// Records since the writer came by last.
#[derive(Debug, Default)]
pub(super) struct Batch {
    text: String,
    records: Vec<Record>,
    /// Objects that an earlier run had finished: counted, because their record is there.
    pub(super) earlier: u64,
}

/// One object's end, but for its names and reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    source: usize,
    target: Option<usize>,
    reason: usize,
    pub(super) ended: Ended,
    /// Microseconds since 1970, as are `started` and `finished`.
    pub(super) queued: i64,
    pub(super) started: Option<i64>,
    pub(super) finished: i64,
    /// Nanoseconds since 1970.
    pub(super) modified: Option<i64>,
    pub(super) bytes: Option<u64>,
    pub(super) blocks: u32,
    pub(super) retries: u32,
}

/// How an object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is at its destination.
    Done,
    /// It is not, and should be.
    Failed,
    /// It was left out on purpose.
    Skipped,
}

impl Ended {
    /// As its row has it.
    pub(super) fn code(self) -> i64 {
        match self {
            Ended::Done => 0,
            Ended::Failed => 1,
            Ended::Skipped => 2,
        }
    }

    pub(super) fn of_code(code: i64) -> Option<Ended> {
        [Ended::Done, Ended::Failed, Ended::Skipped].into_iter().find(|ended| ended.code() == code)
    }
}

/// A record with its texts.
pub(super) struct Entry<'a> {
    pub(super) source: &'a str,
    pub(super) target: Option<&'a str>,
    /// Why it failed or was skipped; empty where there is nothing to say.
    pub(super) reason: &'a str,
    pub(super) record: Record,
}

impl Batch {
    pub(super) fn push(&mut self, event: &Event<'_>) {
        let len = event.course.facts.and_then(|facts| facts.len);
        let (ended, bytes) = match event.outcome {
            Outcome::Skipped(FINISHED_EARLIER) => {
                self.earlier += 1;
                return;
            }
            Outcome::Done { bytes } => (Ended::Done, Some(bytes)),
            Outcome::Failed(_) => (Ended::Failed, len),
            Outcome::Skipped(_) => (Ended::Skipped, len),
        };
        self.text.push_str(event.source);
        self.text.push_str(event.target.unwrap_or_default());
        let named = self.text.len();
        match event.outcome {
            Outcome::Done { .. } => {}
            Outcome::Failed(error) => self.text.push_str(&cause(error)),
            Outcome::Skipped(reason) => self.text.push_str(reason),
        }
        self.records.push(Record {
            source: event.source.len(),
            target: event.target.map(str::len),
            reason: self.text.len() - named,
            ended,
            queued: micros(event.course.queued),
            started: event.course.started.map(micros),
            finished: micros(event.finished),
            modified: event.course.facts.and_then(|facts| facts.modified).map(nanos),
            bytes,
            blocks: event.course.blocks,
            retries: event.course.retries,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.earlier == 0
    }

    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.records.clear();
        self.earlier = 0;
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = self.text.as_str();
        self.records.iter().map(move |record| {
            let mut take = |len| {
                let (piece, behind) = rest.split_at(len);
                rest = behind;
                piece
            };
            let source = take(record.source);
            let target = record.target.map(&mut take);
            Entry { source, target, reason: take(record.reason), record: *record }
        })
    }
}

/// Why an object failed, in words that other objects failing alike share: kind, code, and the innermost cause that is not ours
/// (ours name the object). No message of the service, no URL.
fn cause(error: &Error) -> String {
    let mut text = format!("{:?}", error.kind());
    if let Some(answer) = error.answer() {
        text.push_str(&format!(": {} {}", answer.status, answer.code.as_deref().unwrap_or_default()));
        return text.trim_end().to_owned();
    }
    let deepest = std::iter::successors(error.source(), |cause| (*cause).source()).last();
    if let Some(cause) = deepest.filter(|cause| !cause.is::<Error>()) {
        text.push_str(": ");
        text.push_str(&SafeUrl::new(&cause.to_string()).to_string());
    }
    text
}

/// Microseconds from one moment to another, none if the clock was set back in between.
pub(super) fn since(earlier: i64, later: i64) -> i64 {
    later.saturating_sub(earlier).max(0)
}

/// Now, as rows have it.
pub(super) fn now() -> i64 {
    micros(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Facts;
    use crate::error::{Answer, Kind};
    use crate::transfer::progress::Course;
    use std::time::Duration;

    #[test]
    fn records_come_out_as_they_went_in() {
        let error = Error::new(Kind::AccessRefused, "cannot put https://a/c?sig=abc").with_answer(Answer {
            status: 403,
            code: Some("AuthenticationFailed".into()),
            ..Answer::default()
        });
        let io = Error::new(Kind::SourceUnreadable, "cannot read b").with_source(std::io::Error::other("disk on fire"));
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let course = Course {
            queued: at(1),
            started: Some(at(2)),
            facts: Some(Facts { len: Some(7), modified: Some(at(0)) }),
            blocks: 2,
            retries: 1,
        };
        let mut batch = Batch::default();
        for (source, target, outcome) in [
            ("é/a", Some("a"), Outcome::Done { bytes: 7 }),
            ("b", None, Outcome::Failed(&io)),
            ("", Some(""), Outcome::Failed(&error)),
            ("l", None, Outcome::Skipped("link")),
            ("old", Some("old"), Outcome::Skipped(FINISHED_EARLIER)),
        ] {
            batch.push(&Event { source, target, outcome, course, finished: at(3) });
        }
        let seen: Vec<_> = batch.entries().map(|e| (e.source, e.target, e.reason, e.record.ended, e.record.bytes)).collect();
        assert_eq!(
            seen,
            [
                ("é/a", Some("a"), "", Ended::Done, Some(7)),
                ("b", None, "SourceUnreadable: disk on fire", Ended::Failed, Some(7)),
                ("", Some(""), "AccessRefused: 403 AuthenticationFailed", Ended::Failed, Some(7)),
                ("l", None, "link", Ended::Skipped, Some(7)),
            ]
        );
        assert_eq!(batch.earlier, 1);
        let first = batch.entries().next().unwrap().record;
        assert_eq!((first.queued, first.started, first.finished), (1_000_000, Some(2_000_000), 3_000_000));
        assert_eq!((first.modified, first.blocks, first.retries), (Some(0), 2, 1));
        batch.clear();
        assert!(batch.is_empty() && batch.text_len() == 0);
    }
}
