//! `--overwrite`: which condition a write carries, and what happens when it does not hold.
//!
//! The condition travels with the write itself, so nothing can slip in between a look and the write. Only an object of many
//! blocks is looked at beforehand, to save sending it in vain; a credential that may not look does without.

use crate::attributes::Replace;
use crate::endpoint::{Facts, Receipt, Sink, Task};
use crate::error::{Error, Kind, Result};
use crate::transfer::attempt::Attempt;
use crate::transfer::engine::Done;
use crate::transfer::plan::Overwrite;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Mutex;

/// Why an object was skipped under `--overwrite false`, and under `prompt` when nobody can be asked.
pub const EXISTS: &str = "is at the destination already";
/// Why an object was skipped under `--overwrite ifSourceNewer`.
pub const NOT_NEWER: &str = "is not newer than what is at the destination";
/// Why an object was skipped under `--overwrite prompt`.
pub const DECLINED: &str = "is at the destination already, and was not to be replaced";

/// An answer to "replace it?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This one.
    Yes,
    /// Not this one.
    No,
    /// This one and every later one.
    All,
    /// Neither this one nor any later one.
    None,
}

/// Asks about one name at the destination. Called on a thread that may block, one at a time.
pub type Prompt = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

/// Applies one job's rule.
pub(super) struct Gate {
    overwrite: Overwrite,
    prompt: Option<Prompt>,
    /// The answer that holds for the rest of the job. An async lock: it is held while somebody is asked.
    standing: Mutex<Option<bool>>,
}

/// Whether to go on, as found before an object is sent.
pub(super) enum Look {
    Skip(&'static str),
    Go(Replace),
}

/// How a write under a condition ended.
pub(super) enum Written {
    Done(Receipt),
    Skipped(&'static str),
}

impl Written {
    /// What that means for an object of so many bytes, which its attempt is told.
    pub(super) fn count(self, attempt: &Attempt, bytes: u64) -> Done {
        match self {
            Written::Done(receipt) => {
                attempt.count(receipt);
                Done::Moved(bytes)
            }
            Written::Skipped(reason) => Done::Skipped(reason),
        }
    }
}

impl Gate {
    pub(super) fn new(overwrite: Overwrite, prompt: Option<Prompt>) -> Self {
        Gate { overwrite, prompt, standing: Mutex::new(None) }
    }

    /// The condition for a source last changed then.
    pub(super) fn condition(&self, modified: Option<SystemTime>) -> Replace {
        match (self.overwrite, modified) {
            (Overwrite::True, _) | (Overwrite::IfSourceNewer, None) => Replace::Always,
            (Overwrite::False | Overwrite::Prompt, _) => Replace::Never,
            (Overwrite::IfSourceNewer, Some(time)) => Replace::IfOlderThan(time),
        }
    }

    /// Looks before an object of many blocks is sent.
    pub(super) async fn look(&self, sink: &dyn Sink, target: &str, modified: Option<SystemTime>) -> Result<Look> {
        let condition = self.condition(modified);
        if condition == Replace::Always {
            return Ok(Look::Go(condition));
        }
        let there = match sink.look(target).await {
            Ok(there) => there,
            // A credential that may only write cannot look; the condition at the commit decides.
            Err(error) if error.kind() == Kind::AccessRefused => None,
            Err(error) => return Err(error),
        };
        let Some(Facts { modified: theirs, .. }) = there else { return Ok(Look::Go(condition)) };
        match condition {
            Replace::IfOlderThan(moment) if theirs.is_some_and(|time| time >= moment) => Ok(Look::Skip(NOT_NEWER)),
            Replace::IfOlderThan(_) | Replace::Always => Ok(Look::Go(condition)),
            Replace::Never => Ok(match self.may_replace(target).await? {
                None => Look::Go(Replace::Always),
                Some(reason) => Look::Skip(reason),
            }),
        }
    }

    /// Writes under the condition. With a prompt, writes a second time if told to.
    pub(super) async fn write<'a, W>(&self, target: &str, condition: Replace, write: W) -> Result<Written>
    where
        W: Fn(Replace) -> Task<'a, Result<Receipt>>,
    {
        match write(condition).await {
            Ok(receipt) => Ok(Written::Done(receipt)),
            Err(error) if error.kind() == Kind::AlreadyExists => match condition {
                Replace::Always => Err(error),
                Replace::IfOlderThan(_) => Ok(Written::Skipped(NOT_NEWER)),
                Replace::Never => match self.may_replace(target).await? {
                    Some(reason) => Ok(Written::Skipped(reason)),
                    None => write(Replace::Always).await.map(Written::Done),
                },
            },
            Err(error) => Err(error),
        }
    }

    /// Whether something that is there may be replaced: `None`, or the reason why not.
    async fn may_replace(&self, target: &str) -> Result<Option<&'static str>> {
        let Some(prompt) = self.prompt.as_ref().filter(|_| self.overwrite == Overwrite::Prompt) else {
            return Ok(Some(EXISTS));
        };
        let mut standing = self.standing.lock().await;
        if let Some(yes) = *standing {
            return Ok((!yes).then_some(DECLINED));
        }
        let (ask, name) = (Arc::clone(prompt), target.to_owned());
        let answer = tokio::task::spawn_blocking(move || ask(&name)).await;
        let answer = answer.map_err(|e| Error::new(Kind::Local, format!("cannot ask about {target}")).with_source(e))?;
        let yes = matches!(answer, Answer::Yes | Answer::All);
        if matches!(answer, Answer::All | Answer::None) {
            *standing = Some(yes);
        }
        Ok((!yes).then_some(DECLINED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn the_condition_follows_the_flag() {
        let time = Some(UNIX_EPOCH + Duration::from_secs(10));
        for (overwrite, modified, condition) in [
            (Overwrite::True, time, Replace::Always),
            (Overwrite::False, time, Replace::Never),
            (Overwrite::Prompt, time, Replace::Never),
            (Overwrite::IfSourceNewer, time, Replace::IfOlderThan(UNIX_EPOCH + Duration::from_secs(10))),
            (Overwrite::IfSourceNewer, None, Replace::Always),
        ] {
            assert_eq!(Gate::new(overwrite, None).condition(modified), condition, "{overwrite:?}");
        }
    }
}
