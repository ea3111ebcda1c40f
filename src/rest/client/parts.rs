//! What a batch needs of the client: its parts signed one by one, their answers judged as whole answers are, and the same
//! patience with what may heal.

use super::dress::{X_MS_DATE, push_target};
use super::{Client, Op};
use crate::error::{Attempts, Error, Kind, Result};
use crate::rest::answer::{self, Asked, Verdict};
use crate::rest::auth::Head;
use crate::rest::date;
use crate::rest::request::{Request, Response};
use crate::rest::stats::RetryCause;
use http::header::{CONTENT_LENGTH, HeaderValue};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// What became of a part.
#[derive(Debug)]
pub(in crate::rest) enum PartEnd {
    /// It has been done.
    Done(Response),
    /// It may be done if it is sent again: why, how long the service asks to wait, and the error if it is not.
    Again(RetryCause, Option<Duration>, Error),
    /// It will not be done.
    Failed(Error),
}

/// What has happened to the parts of a batch so far.
#[derive(Debug)]
pub(in crate::rest) struct Patience {
    started: Instant,
    /// Batches in which parts failed for reasons that may heal.
    failures: u32,
    /// Since when.
    failing_since: Option<Instant>,
}

impl Client {
    /// The head of a request as a part of a batch has it, each line with its line end: with a date and signature of its own, and
    /// without a version, which is the batch's.
    ///
    /// # Errors
    /// Those of the credential.
    pub(in crate::rest) async fn part_head(&self, request: &Request, op: Op) -> Result<String> {
        let inner = &*self.0;
        let context = |error: Error| error.context(inner.doing(&request.path, op));
        inner.credential.ready().await.map_err(context)?;
        let mut headers = request.headers.clone();
        headers.insert(X_MS_DATE, date::now(SystemTime::now()));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
        let mut suffix = String::new();
        let mut head = Head {
            method: request.method.as_str(),
            account: inner.location.account.as_deref().unwrap_or_default(),
            path: &request.path,
            query: &request.query,
            headers: &mut headers,
            query_suffix: &mut suffix,
        };
        inner.credential.sign(&mut head).map_err(context)?;
        let mut text = format!("{} ", request.method);
        push_target(&mut text, request, &suffix);
        text.push_str(" HTTP/1.1\r\n");
        for (name, value) in headers.iter() {
            text.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
        }
        Ok(text)
    }

    /// What the answer to a part means that was sent at this moment; its `attempts` are all those so far.
    pub(in crate::rest) fn judge_part(
        &self,
        request: &Request,
        op: Op,
        answer: Response,
        sent: Instant,
        story: &Patience,
    ) -> PartEnd {
        let inner = &*self.0;
        let facts = answer::facts(&answer, SystemTime::now());
        match answer::judge(answer.status, facts.code.as_deref(), facts.detail("HeaderName"), Asked::default()) {
            Verdict::Done => PartEnd::Done(answer),
            Verdict::Again(cause) => {
                let hint = answer::retry_hint(&answer, SystemTime::now());
                if cause == RetryCause::Throttled {
                    inner.brake.throttled(sent, hint);
                }
                let error = Error::new(Kind::GaveUp, inner.doing(&request.path, op)).with_answer(facts);
                PartEnd::Again(cause, hint, error)
            }
            Verdict::Error(kind) => {
                let error = Error::new(kind, inner.doing(&request.path, op)).with_answer(facts);
                let attempts = Attempts { count: answer.attempts, elapsed: story.started.elapsed() };
                PartEnd::Failed(if attempts.count > 1 { error.with_attempts(attempts) } else { error })
            }
            // Parts have no bodies whose checksum could be wrong: a server that says so is not understood.
            Verdict::Once | Verdict::NoCrc64 => {
                PartEnd::Failed(Error::new(Kind::BadAnswer, inner.doing(&request.path, op)).with_answer(facts))
            }
        }
    }
}

impl Patience {
    /// Of a batch that is about to be sent.
    pub(in crate::rest) fn new() -> Patience {
        Patience { started: Instant::now(), failures: 0, failing_since: None }
    }

    /// The error for a part that could have healed and did not.
    pub(in crate::rest) fn gave_up(&self, error: Error, count: u32) -> Error {
        error.with_attempts(Attempts { count, elapsed: self.started.elapsed() })
    }

    /// Waits before parts are sent again. Returns whether they may be: otherwise the time for it is over.
    pub(in crate::rest) async fn wait(&mut self, client: &Client, cause: RetryCause, hint: Option<Duration>) -> bool {
        let inner = &*client.0;
        self.failures += 1;
        let failing_for = self.failing_since.get_or_insert_with(Instant::now).elapsed();
        let wait = inner.brake.delay(self.failures, cause, hint);
        if inner.is_hopeless(self.failures, failing_for, wait.time, hint) {
            return false;
        }
        inner.config.stats.retried(cause);
        inner.wait(wait).await;
        true
    }
}
