//! The crate's error: what was being done to which thing, what the service said, and what the caller can do about it.
//!
//! Callers branch on [`Error::kind`] or on the service's code, never on text. The words for people (what it means, what to do
//! next) are put together in `cli::render` from the same facts. No secret gets in here: URLs arrive as
//! [`SafeUrl`](crate::secret::SafeUrl) text.

use std::fmt;
use std::time::Duration;

/// Shorthand used all over the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The call or the command line is wrong; nothing was started.
    Usage,
    /// The source does not exist.
    SourceNotFound,
    /// The source exists and cannot be read (permission, I/O error, broken link).
    SourceUnreadable,
    /// The source changed while it was being read; nothing was committed.
    SourceChanged,
    /// A name the service cannot take; found before any request.
    Name,
    /// The credential is missing, wrong, expired or lacks a right. Every other object of the job would fail the same way.
    AccessRefused,
    /// The container, or the account, does not exist. Every other object of the job would fail the same way.
    ContainerNotFound,
    /// The blob (or other remote thing) does not exist.
    NotFound,
    /// It is there already, and was to be created only if absent; or a newer one is there.
    AlreadyExists,
    /// A lease, archive tier, immutability policy, other blob type, or pending copy stands in the way of this one object.
    Conflict,
    /// The service refused the request as wrong (400 and the like) and would refuse it again.
    Refused,
    /// A block to be committed is not there (any more): another writer committed, or it was dropped.
    BlocksMissing,
    /// Blocks that another program staged under that name and never committed are in the way of ours.
    Leftovers,
    /// Body or block over the limit of the service (413).
    TooLarge,
    /// The service lacks the feature asked for (an emulator, mostly), and would for every other object of the job.
    Unsupported,
    /// Bytes differ from their checksum, again after a second try.
    Corrupt,
    /// Throttled, timed out or broken connections until retries were used up.
    GaveUp,
    /// Unknown host, refused port, bad certificate: trying again cannot heal it.
    Unreachable,
    /// An answer that is not what the protocol says.
    BadAnswer,
    /// Stopped because it was asked to (signal, dropped job).
    Cancelled,
    /// Reading or writing something local other than a source (state folder, emulator's store).
    Local,
}

/// What the service answered, as far as it said it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// `x-ms-error-code`, or the code in the body.
    pub code: Option<String>,
    /// First line of the message in the body, without request id and time.
    pub message: Option<String>,
    /// `AuthenticationErrorDetail` and the other extra elements of the error body, by name.
    pub details: Vec<(String, String)>,
    /// `x-ms-request-id`.
    pub request_id: Option<String>,
    /// How far our clock is ahead of the answer's `Date`, in seconds (negative: behind).
    pub clock_ahead_s: Option<i64>,
    /// `false` if neither `x-ms-request-id` nor `x-ms-version` was there: a proxy or gateway answered.
    pub from_service: bool,
}

impl Answer {
    /// The value of an extra element of the error body, e.g. `HeaderName`.
    pub fn detail(&self, name: &str) -> Option<&str> {
        self.details.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// How often something was tried before it was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// Requests sent, the first included.
    pub count: u32,
    /// Time from the first to the last.
    pub elapsed: Duration,
}

/// An error of this crate. One pointer wide; see the module's text.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    doing: String,
    answer: Option<Answer>,
    attempts: Option<Attempts>,
    advice: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error while `doing` something: lower case, names the thing, no full stop (`cannot put block 17 of data.bin`).
    pub fn new(kind: Kind, doing: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, doing: doing.into(), answer: None, attempts: None, advice: None, source: None }))
    }

    /// Adds what the service answered.
    #[must_use]
    pub fn with_answer(mut self, answer: Answer) -> Self {
        self.0.answer = Some(answer);
        self
    }

    /// Adds how often it was tried.
    #[must_use]
    pub fn with_attempts(mut self, attempts: Attempts) -> Self {
        self.0.attempts = Some(attempts);
        self
    }

    /// Adds what to do next, where only this place knows it; general advice by kind and code is `cli::render`'s.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Wraps this error in a statement of the larger thing that failed; kind, answer, attempts and advice stay visible.
    #[must_use]
    pub fn context(self, doing: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind: self.0.kind,
            doing: doing.into(),
            answer: self.0.answer.clone(),
            attempts: self.0.attempts,
            advice: self.0.advice.clone(),
            source: Some(Box::new(self)),
        }))
    }

    /// The same error for another object that met it too, without the cause, which only one can have.
    #[must_use]
    pub fn alike(&self) -> Self {
        let Inner { kind, doing, answer, attempts, advice, source: _ } = &*self.0;
        let (doing, answer, advice) = (doing.clone(), answer.clone(), advice.clone());
        Error(Box::new(Inner { kind: *kind, doing, answer, attempts: *attempts, advice, source: None }))
    }

    /// The same facts in other words: for who asked, it is an error of that kind.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind, doing: impl Into<String>) -> Self {
        (self.0.kind, self.0.doing) = (kind, doing.into());
        self
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What the service answered, if it did.
    pub fn answer(&self) -> Option<&Answer> {
        self.0.answer.as_ref()
    }

    /// The service's error code, if it gave one.
    pub fn code(&self) -> Option<&str> {
        self.answer().and_then(|a| a.code.as_deref())
    }

    /// How often it was tried, where it was tried more than once.
    pub fn attempts(&self) -> Option<Attempts> {
        self.0.attempts
    }

    /// What to do next, where the place that failed knows.
    pub fn advice(&self) -> Option<&str> {
        self.0.advice.as_deref()
    }

    /// The number of the system's error where this machine refuses to write, which it will most likely refuse others too: no
    /// room, a filesystem that is read-only, permissions.
    pub fn refused_here(&self) -> Option<i32> {
        let mut cause = std::error::Error::source(self).filter(|_| self.kind() == Kind::Local)?;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let number = cause.downcast_ref::<std::io::Error>()?.raw_os_error()?;
        [libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EACCES, libc::EPERM].contains(&number).then_some(number)
    }

    /// Whether every other object of the same job would fail for the same reason, so that the job should end at once.
    pub fn ends_job(&self) -> bool {
        matches!(
            self.kind(),
            Kind::AccessRefused | Kind::ContainerNotFound | Kind::Unsupported | Kind::Unreachable | Kind::Usage | Kind::Cancelled
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.doing)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}
