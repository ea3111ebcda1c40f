//! Compares what two sources have, without moving anything: two listings in the order of names, merged, and a verdict on each name.
//!
//! What is held is a batch of each listing, whatever they have in all, and the hashes that are being computed. Names are compared
//! byte for byte. Nothing is said to be missing on a side whose listing has a gap there: a part that could not be read may hold it.
//! A listing that ends in an error ends the comparison with it.

use crate::endpoint::in_order::{Ahead, in_order};
use crate::endpoint::{Found, Item, Known, Reader, Same, Source};
use crate::error::{Error, Kind, Result};
use crate::transfer::md5::Running;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::future::pending;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use std::vec::IntoIter;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Names that are being hashed, or wait for their turn to be told, at a time.
const AT_A_TIME: usize = 8;

/// Bytes read at a time for a hash, and how many such blocks are in memory for each object: 64 MiB in all where both sides are
/// read one after the other.
const AHEAD: Ahead = Ahead { block: 4 * 1024 * 1024, blocks: NonZeroUsize::MIN.saturating_add(1) };

/// What two objects of one name are compared by. Lengths always count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Length alone.
    Size,
    /// Whether the source was changed after the destination, to the second.
    Time,
    /// MD5.
    Hash,
}

/// One of the two.
#[derive(Clone)]
pub struct Side {
    /// Lists in the order of targets, each with what is [`Known`] of it.
    pub source: Arc<dyn Source>,
    /// Whether objects without a stored MD5 are read for it.
    pub reads: bool,
}

/// The verdict on a name.
#[derive(Debug)]
pub enum Verdict {
    /// As far as is compared, the two are the same.
    Same,
    /// Only the source has it.
    OnlyInSource,
    /// Only the destination has it.
    OnlyInDestination,
    /// They differ in this.
    Different(By),
    /// Could not be compared.
    Unknown(Error),
}

/// What is told of one name.
#[derive(Debug)]
pub enum Told {
    /// A verdict.
    Compared {
        /// The name, relative to the two roots; of what could not be listed, where it is, escaped for a terminal.
        name: String,
        /// The verdict.
        verdict: Verdict,
        /// Length at the source, bytes, if it is there.
        source: Option<u64>,
        /// Length at the destination.
        destination: Option<u64>,
    },
    /// Not compared on purpose (links, FIFOs, what stands for a folder).
    LeftOut {
        /// What it is, escaped for a terminal.
        name: String,
        /// Why.
        reason: &'static str,
    },
}

/// Compares all there is, and tells it in the order of names. Dropping the future stops everything.
///
/// # Errors
/// Those of the listings; of reading, those that would meet every object alike; `BadAnswer` for a listing out of order.
pub async fn compare(source: Side, destination: Side, by: By, tell: impl FnMut(Told)) -> Result<()> {
    let (list_source, first) = listed(&source);
    let (list_destination, second) = listed(&destination);
    let merge = Merge { sides: [source.clone(), destination.clone()], by, line: Line::default(), tell };
    tokio::try_join!(list_source, list_destination, merge.run(first, second)).map(drop)
}

/// A listing as it comes, and the work that makes it come.
fn listed(side: &Side) -> (impl Future<Output = Result<()>>, Listed) {
    let (sender, batches) = mpsc::channel(2);
    let (done, whole) = oneshot::channel();
    let list = async move {
        side.source.list(sender).await?;
        // Where the comparison has ended nobody waits for it.
        let _ = done.send(());
        Ok(())
    };
    let listed = Listed { batches, batch: Vec::new().into_iter(), whole: Some(whole), head: None, gap: false, last: None };
    (list, listed)
}

struct Listed {
    batches: mpsc::Receiver<Vec<Found>>,
    batch: IntoIter<Found>,
    /// Told once the listing has come to its end and is whole.
    whole: Option<oneshot::Receiver<()>>,
    /// The next object.
    head: Option<Item>,
    /// Whether something that could not be listed stands before it.
    gap: bool,
    last: Option<String>,
}

impl Listed {
    /// Goes on to the next object, if there is one.
    async fn advance(&mut self, line: &mut Line, tell: &mut impl FnMut(Told)) -> Result<()> {
        (self.head, self.gap) = (None, false);
        loop {
            let Some(found) = self.batch.next() else {
                match self.batches.recv().await {
                    Some(batch) => self.batch = batch.into_iter(),
                    None => {
                        self.end().await;
                        return Ok(());
                    }
                }
                continue;
            };
            match found {
                Found::Item(item) => {
                    if self.last.as_ref().is_some_and(|last| *last >= item.target) {
                        let text = format!("cannot compare a listing out of order: {} comes late", item.target.escape_debug());
                        return Err(Error::new(Kind::BadAnswer, text));
                    }
                    self.last = Some(item.target.clone());
                    self.head = Some(item);
                    return Ok(());
                }
                Found::Skipped { name, reason } => line.push(Coming::Told(Told::LeftOut { name, reason })),
                Found::Failed { name, error } => {
                    self.gap = true;
                    let verdict = Verdict::Unknown(error);
                    line.push(Coming::Told(Told::Compared { name, verdict, source: None, destination: None }));
                }
                Found::Filtered(_) => {}
            }
            line.tell(AT_A_TIME, tell).await?;
        }
    }

    /// Nothing more comes: because that is all, or because the listing has failed, which ends everything by itself.
    async fn end(&mut self) {
        if let Some(whole) = self.whole.take()
            && whole.await.is_err()
        {
            pending::<()>().await;
        }
    }
}

struct Merge<F> {
    sides: [Side; 2],
    by: By,
    line: Line,
    tell: F,
}

impl<F: FnMut(Told)> Merge<F> {
    async fn run(mut self, mut source: Listed, mut destination: Listed) -> Result<()> {
        source.advance(&mut self.line, &mut self.tell).await?;
        destination.advance(&mut self.line, &mut self.tell).await?;
        loop {
            let order = match (&source.head, &destination.head) {
                (Some(a), Some(b)) => a.target.cmp(&b.target),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let first = if order.is_le() { source.head.take() } else { None };
            let second = if order.is_ge() { destination.head.take() } else { None };
            let gap = if order.is_lt() { destination.gap } else { source.gap };
            let coming = match (first, second) {
                (Some(a), Some(b)) => self.both(a, b),
                (Some(a), None) => Coming::Told(alone(a, Verdict::OnlyInSource, gap)),
                (None, Some(b)) => Coming::Told(alone(b, Verdict::OnlyInDestination, gap)),
                (None, None) => break,
            };
            self.line.push(coming);
            self.line.tell(AT_A_TIME, &mut self.tell).await?;
            if order.is_le() {
                source.advance(&mut self.line, &mut self.tell).await?;
            }
            if order.is_ge() {
                destination.advance(&mut self.line, &mut self.tell).await?;
            }
        }
        self.line.tell(0, &mut self.tell).await
    }

    fn both(&self, a: Item, b: Item) -> Coming {
        let name = a.target.clone();
        let (source, destination) = (len(&a), len(&b));
        let told = move |verdict| Told::Compared { name, verdict, source, destination };
        let (Some(at_source), Some(at_destination)) = (&a.known, &b.known) else {
            return Coming::Told(told(Verdict::Unknown(Error::new(Kind::BadAnswer, "its length is not told"))));
        };
        match judge(at_source, at_destination, self.by) {
            Some(verdict) => Coming::Told(told(verdict)),
            None => {
                let [first, second] = self.sides.clone();
                let work = async move {
                    match same_bytes((&first, &a), (&second, &b)).await {
                        Ok(true) => Ok(told(Verdict::Same)),
                        Ok(false) => Ok(told(Verdict::Different(By::Hash))),
                        Err(error) if error.ends_job() => Err(error),
                        Err(error) => Ok(told(Verdict::Unknown(error))),
                    }
                };
                Coming::Hashed(tokio::spawn(work))
            }
        }
    }
}

fn len(item: &Item) -> Option<u64> {
    item.known.as_ref().map(|known| known.len)
}

/// What only one side has, as far as is known.
fn alone(item: Item, verdict: Verdict, gap: bool) -> Told {
    let len = len(&item);
    let (source, destination) = if matches!(verdict, Verdict::OnlyInSource) { (len, None) } else { (None, len) };
    let verdict = if gap {
        let text = "something beside it could not be listed on the other side, and may be this";
        Verdict::Unknown(Error::new(Kind::SourceUnreadable, text))
    } else {
        verdict
    };
    Told::Compared { name: item.target, verdict, source, destination }
}

/// What lengths and times say; `None` where hashes have to.
fn judge(source: &Known, destination: &Known, by: By) -> Option<Verdict> {
    if source.len != destination.len {
        return Some(Verdict::Different(By::Size));
    }
    match by {
        By::Size => Some(Verdict::Same),
        By::Time => Some(match (source.origin_modified(), destination.origin_modified()) {
            (Some(a), Some(b)) if seconds(a) > seconds(b) => Verdict::Different(By::Time),
            (Some(_), Some(_)) => Verdict::Same,
            _ => Verdict::Unknown(Error::new(Kind::BadAnswer, "its time of change is not told")),
        }),
        // There is one way to be empty.
        By::Hash if source.len == 0 => Some(Verdict::Same),
        By::Hash => None,
    }
}

/// Since 1970, rounded down: the service tells no more.
fn seconds(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i128::from(after.as_secs()),
        Err(before) => {
            let before = before.duration();
            -i128::from(before.as_secs()) - i128::from(before.subsec_nanos() > 0)
        }
    }
}

/// One after the other: where the first has no MD5, the second need not be read.
async fn same_bytes(first: (&Side, &Item), second: (&Side, &Item)) -> Result<bool> {
    Ok(md5(first.0, first.1).await? == md5(second.0, second.1).await?)
}

/// The stored MD5, or that of the bytes.
async fn md5(side: &Side, item: &Item) -> Result<[u8; 16]> {
    if let Some(stored) = item.known.as_ref().and_then(|known| known.carried.content_md5) {
        return Ok(stored);
    }
    if !side.reads {
        return Err(Error::new(Kind::Conflict, "no MD5 is stored with it (--download reads it)"));
    }
    let reader: Arc<dyn Reader> = Arc::from(side.source.open(item).await?);
    let len = reader.facts().len.unwrap_or(0);
    let mut running = Running::default();
    in_order(Arc::clone(&reader), 0..len, AHEAD, |data| {
        tokio::task::block_in_place(|| running.update(&data));
        Ok(true)
    })
    .await?;
    reader.check_unchanged(Same::Whole)?;
    if Some(len) != item.known.as_ref().map(|known| known.len) {
        return Err(Error::new(Kind::SourceChanged, "it has another length than when it was listed"));
    }
    Ok(running.finish())
}

/// What is told, in its order.
#[derive(Default)]
struct Line(VecDeque<Coming>);

enum Coming {
    Told(Told),
    Hashed(JoinHandle<Result<Told>>),
}

impl Line {
    fn push(&mut self, coming: Coming) {
        self.0.push_back(coming);
    }

    /// Tells what there is to tell, and waits until no more than so many are left.
    async fn tell(&mut self, most: usize, tell: &mut impl FnMut(Told)) -> Result<()> {
        loop {
            let left = self.0.len();
            let told = match self.0.front_mut() {
                None => return Ok(()),
                Some(Coming::Hashed(task)) if left <= most && !task.is_finished() => return Ok(()),
                // It stays in front while it is waited for, to be stopped where this is dropped.
                Some(Coming::Hashed(task)) => {
                    Some(task.await.map_err(|e| Error::new(Kind::Cancelled, "the comparison was stopped").with_source(e))??)
                }
                Some(Coming::Told(_)) => None,
            };
            match (self.0.pop_front(), told) {
                (Some(Coming::Told(told)), _) | (Some(Coming::Hashed(_)), Some(told)) => tell(told),
                _ => return Ok(()),
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        for coming in &self.0 {
            if let Coming::Hashed(task) = coming {
                task.abort();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Attributes;
    use crate::endpoint::{Listing, Task};
    use std::time::Duration;

    /// Lists what it is told to, and then fails or does not.
    struct Given(std::sync::Mutex<Vec<Found>>, Result<()>);

    impl Source for Given {
        fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
            Box::pin(async move {
                let all = std::mem::take(&mut *self.0.lock().unwrap());
                for found in all {
                    let _ = out.send(vec![found]).await;
                }
                match &self.1 {
                    Ok(()) => Ok(()),
                    Err(error) => Err(Error::new(error.kind(), error.to_string())),
                }
            })
        }

        fn open<'a>(&'a self, _: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
            Box::pin(async { Err(Error::new(Kind::SourceUnreadable, "nothing is read here")) })
        }

        fn describe(&self) -> String {
            "given".to_owned()
        }
    }

    fn known(len: u64, modified: Option<u64>) -> Known {
        let modified = modified.map(|ms| UNIX_EPOCH + Duration::from_millis(ms));
        Known { len, modified, etag: String::new(), carried: Attributes::default() }
    }

    /// `name` is an object, `!name` one that cannot be listed.
    fn side(names: &[&str], end: Result<()>) -> Side {
        let found = names.iter().map(|name| match name.strip_prefix('!') {
            Some(name) => Found::Failed { name: name.to_owned(), error: Error::new(Kind::SourceUnreadable, "closed") },
            None => Found::Item(Item { known: Some(std::sync::Arc::new(known(1, None))), ..Item::new(*name, *name) }),
        });
        Side { source: Arc::new(Given(std::sync::Mutex::new(found.collect()), end)), reads: true }
    }

    async fn compared(source: Side, destination: Side) -> (Vec<String>, Result<()>) {
        let mut lines = Vec::new();
        let tell = |told| {
            let Told::Compared { name, verdict, .. } = told else { return };
            let sign = match verdict {
                Verdict::Same => '=',
                Verdict::OnlyInSource => '+',
                Verdict::OnlyInDestination => '-',
                Verdict::Different(_) => '*',
                Verdict::Unknown(_) => '!',
            };
            lines.push(format!("{sign}{name}"));
        };
        let result = compare(source, destination, By::Size, tell).await;
        (lines, result)
    }

    #[tokio::test]
    async fn a_gap_hides_what_is_in_it_and_nothing_else() {
        for (source, destination, expected) in [
            (&["a", "c"][..], &["b", "c", "d"][..], &["+a", "-b", "=c", "-d"][..]),
            (&["a", "!gap", "c"], &["a", "b", "c", "d"], &["=a", "!gap", "!b", "=c", "-d"]),
            (&["!gap"], &["a"], &["!gap", "!a"]),
            (&["a", "!gap"], &["a", "b"], &["=a", "!gap", "!b"]),
            (&["a", "b", "x"], &["!gap", "b"], &["!gap", "!a", "=b", "+x"]),
            (&[], &[], &[]),
        ] {
            let (lines, result) = compared(side(source, Ok(())), side(destination, Ok(()))).await;
            assert!(result.is_ok() && lines == expected, "{source:?} {destination:?}: {lines:?}");
        }
    }

    #[tokio::test]
    async fn a_listing_that_fails_or_is_out_of_order_ends_it() {
        let refused = || Err(Error::new(Kind::AccessRefused, "refused"));
        for (source, destination) in
            [(side(&["a"], refused()), side(&["a", "b"], Ok(()))), (side(&["a", "b"], Ok(())), side(&[], refused()))]
        {
            let (lines, result) = compared(source, destination).await;
            assert_eq!(result.unwrap_err().kind(), Kind::AccessRefused);
            assert!(!lines.iter().any(|line| line.ends_with('b')), "nobody knows whether it is there: {lines:?}");
        }
        for names in [["b", "a"], ["a", "a"]] {
            let (_, result) = compared(side(&names, Ok(())), side(&["a"], Ok(()))).await;
            assert_eq!(result.unwrap_err().kind(), Kind::BadAnswer);
        }
    }

    #[test]
    fn lengths_count_first_and_times_to_the_second() {
        let sign = |a: Known, b: Known, by| match judge(&a, &b, by) {
            None => "hash",
            Some(Verdict::Same) => "same",
            Some(Verdict::Different(By::Size)) => "size",
            Some(Verdict::Different(_)) => "time",
            Some(_) => "unknown",
        };
        for (a, b, by, expected) in [
            (known(1, None), known(2, None), By::Hash, "size"),
            (known(2, None), known(2, None), By::Size, "same"),
            (known(2, None), known(2, None), By::Hash, "hash"),
            (known(0, None), known(0, None), By::Hash, "same"),
            (known(2, Some(1999)), known(2, Some(1000)), By::Time, "same"),
            (known(2, Some(2000)), known(2, Some(1999)), By::Time, "time"),
            (known(2, Some(1000)), known(2, Some(9000)), By::Time, "same"),
            (known(2, None), known(2, Some(1000)), By::Time, "unknown"),
        ] {
            assert_eq!(sign(a, b, by), expected);
        }
        assert_eq!(seconds(UNIX_EPOCH - Duration::from_millis(1)), -1);
    }
}
