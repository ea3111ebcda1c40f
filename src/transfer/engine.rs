//! Runs a job: one task lists, the lanes move; how many there are is up to [`lanes`](crate::transfer::lanes). Each lane takes a
//! block of an object already started, or else the next object; so one large object keeps as many lanes busy as many small ones do.
//!
//! Nothing is spawned per object or block. The lanes belong to [`run`] and end with it: dropping its future stops them. What
//! may be in memory is taken from the budget before it is read.

use crate::attributes::Replace;
use crate::chunks::Chunks;
use crate::endpoint::{BlockId, Finish, Found, Item, Limits, Payload, Reader, Receipt, Same, Sink, Source, Span};
use crate::error::{Error, Kind, Result};
use crate::transfer::attempt::Attempt;
use crate::transfer::audit::audit;
use crate::transfer::block_id::{Fingerprint, Trust, Writer};
use crate::transfer::budget::Budget;
use crate::transfer::journal::{FINISHED_EARLIER, Finished};
use crate::transfer::lanes::{Lanes, Load, broken};
use crate::transfer::md5_queue::Md5Queue;
use crate::transfer::object::{Cut, Object, cause};
use crate::transfer::overwrite::{Gate, Look, Prompt, Written};
use crate::transfer::plan::{OnChange, Plan, Tuning, plan, smaller_block};
use crate::transfer::progress::{Course, Progress, Snapshot};
use crate::transfer::queue::{Queue, Work};
use crate::transfer::resume::Asking;
use crate::transfer::staging::Staging;
use crate::transfer::stop::{Phase, Stop};
use crate::transfer::stream::Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;

/// Batches of a listing that wait at most between the source and the queue.
const BATCHES: usize = 4;

/// What to move, where, and how.
#[derive(Clone)]
pub struct Job {
    /// Where the objects come from.
    pub source: Arc<dyn Source>,
    /// Where they go.
    pub sink: Arc<dyn Sink>,
    /// How.
    pub tuning: Tuning,
    /// Who is asked under [`Overwrite::Prompt`](crate::transfer::plan::Overwrite::Prompt); without one the answer is no.
    pub prompt: Option<Prompt>,
    /// What an earlier run of this job finished: skipped where it has not changed since.
    pub earlier: Option<Arc<Finished>>,
}

/// What came of a job that was not ended by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The final counters; listed = done + failed + skipped.
    pub counts: Snapshot,
    /// From the start to the last answer.
    pub elapsed: Duration,
    /// Whether it was told to stop before its end.
    pub stopped: bool,
}

/// What became of one object, when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Moved(u64),
    Skipped(&'static str),
}

/// What all lanes share.
pub(super) struct Shared {
    pub(super) job: Job,
    pub(super) limits: Limits,
    /// Whether the sink draws its bytes itself.
    pub(super) draws: bool,
    pub(super) budget: Budget,
    pub(super) gate: Gate,
    pub(super) progress: Arc<Progress>,
    pub(super) stop: Stop,
    pub(super) load: Load,
    pub(super) queue: Queue,
    pub(super) asking: Asking,
    md5: Md5Queue,
    /// Largest object to send in one request; lowered for good when the sink refuses one as too large.
    whole_limit: AtomicU64,
}

/// Runs a job to its end, and counts into `progress`.
///
/// A failing object is recorded there and does not end the job. Told to [`Phase::Drain`], it takes no more work and ends when
/// requests in flight have; told to [`Phase::Now`], it drops them. Dropping the future is as good as `Now`. However it ends,
/// the counters then add up, and no object is half written: staged blocks are invisible and stay for a later run.
///
/// # Errors
/// The first error that would befall every other object as well ([`Error::ends_job`]), as soon as it is met, and what bars the
/// whole listing. The object that met it is counted as failed without being recorded: this error is its record.
pub async fn run(job: Job, progress: Arc<Progress>, stop: Stop) -> Result<Summary> {
    let start = Instant::now();
    let shared = Arc::new(Shared {
        limits: job.sink.limits(),
        draws: job.sink.draws(),
        budget: Budget::new(job.tuning.memory).counting(progress.memory_wait()),
        gate: Gate::new(job.tuning.overwrite, job.prompt.clone()),
        whole_limit: AtomicU64::new(job.tuning.whole_limit),
        queue: Queue::default(),
        load: Load::default(),
        asking: Asking::default(),
        md5: Md5Queue::default(),
        stop: stop.clone(),
        progress,
        job,
    });
    let mut lanes = Lanes::start(Arc::clone(&shared), list(Arc::clone(&shared)));
    let (mut drain, mut now) = (stop.clone(), stop);
    let mut stopped = false;
    let result = loop {
        tokio::select! {
            biased;
            () = now.reached(Phase::Now) => {
                stopped = true;
                break Ok(());
            }
            () = drain.reached(Phase::Drain), if !stopped => {
                stopped = true;
                shared.queue.close();
            }
            ended = lanes.next() => match ended {
                None => break Ok(()),
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => break Err(error),
                Some(Err(join)) => break Err(broken(join)),
            },
        }
    };
    lanes.stop().await;
    let result = if stopped { result } else { result.and_then(|()| audit(&shared.progress.snapshot())) };
    shared.progress.settle(shared.queue.waiting());
    result.map(|()| Summary { counts: shared.progress.snapshot(), elapsed: start.elapsed(), stopped })
}

/// Lists into the queue; what is not an object to move is counted here.
async fn list(shared: Arc<Shared>) -> Result<()> {
    let (sender, mut receiver) = mpsc::channel(BATCHES);
    let take = async {
        // Taken in here, so that a closed queue drops it and the source sees that nobody listens.
        let mut receiver = std::mem::replace(&mut receiver, mpsc::channel(1).1);
        while let Some(batch) = receiver.recv().await {
            // One clock reading a batch.
            let queued = SystemTime::now();
            if !shared.queue.push(shared.sort(batch, queued), queued).await {
                return;
            }
        }
    };
    let mut stop = shared.stop.clone();
    let listing = async {
        let (result, ()) = tokio::join!(shared.job.source.list(sender), take);
        result
    };
    tokio::select! {
        biased;
        // The source may be waiting for a pipe with the list of names in it: it is not waited for.
        () = stop.reached(Phase::Drain) => return Ok(()),
        result = listing => result?,
    }
    shared.progress.listing_done();
    shared.queue.listed();
    Ok(())
}

/// One lane, until there is nothing left to do, or it is one too many.
pub(super) async fn lane(shared: Arc<Shared>) -> Result<()> {
    let load = &shared.load;
    while shared.stop.phase() == Phase::Run && !load.is_one_too_many() {
        match shared.queue.next().await {
            Work::Item(attempt) => load.work(shared.start(attempt)).await?,
            Work::Block(object, index) => load.work(shared.block(&object, index)).await?,
            Work::Turn(stream) => load.work(shared.turn(&stream)).await?,
            Work::Wait => {}
            Work::End => break,
        }
    }
    Ok(())
}

impl Shared {
    /// Counts a batch and keeps the objects.
    fn sort(&self, batch: Vec<Found>, queued: SystemTime) -> Vec<Item> {
        let course = Course::queued(queued);
        self.progress.listed(batch.iter().filter(|found| !matches!(found, Found::Filtered(_))).count() as u64);
        let mut items = Vec::with_capacity(batch.len());
        for found in batch {
            match found {
                Found::Item(item) => items.push(item),
                Found::Skipped { name, reason } => self.progress.skipped(&name, None, course, reason),
                Found::Failed { name, error } => self.progress.failed(&name, None, course, error),
                Found::Filtered(filtered) => self.progress.filtered(filtered),
            }
        }
        items
    }

    /// Opens an object; moves it if it goes in one request, and shares it out otherwise.
    async fn start(&self, attempt: Attempt) -> Result<()> {
        attempt.started();
        let item = attempt.item();
        let opened = match self.job.sink.check_name(&item.target) {
            Ok(()) => self.job.source.open(item).await,
            Err(error) => Err(error),
        };
        let reader = match opened {
            Ok(reader) => reader,
            Err(error) => return self.settle(&attempt, Err(error)),
        };
        let finished = self.job.earlier.as_ref().and_then(|earlier| earlier.when(item, &reader.facts()));
        if finished.is_some_and(|when| self.job.sink.still_has(&item.target, &*reader, when)) {
            return self.settle(&attempt, Ok(Done::Skipped(FINISHED_EARLIER)));
        }
        attempt.opened(reader.facts(), &self.progress);
        let Some(len) = reader.facts().len else { return self.start_stream(Arc::new(attempt), Arc::from(reader)).await };
        attempt.known(len, &self.progress);
        let tuning = Tuning { whole_limit: self.whole_limit.load(Ordering::Relaxed), ..self.job.tuning };
        match plan(len, &tuning, &self.limits) {
            Ok(Plan::Whole) => {
                let result = self.move_whole(&attempt, &*reader, len).await;
                self.settle(&attempt, result.map_err(|e| cause(e, &*reader, self.same())))
            }
            Ok(Plan::Blocks { block_size, count }) => {
                attempt.add_blocks(count);
                self.start_object(Arc::new(attempt), Arc::from(reader), Cut { len, block_size, count }).await
            }
            Err(error) => {
                let error = error.context(format!("cannot send {}", item.source));
                self.settle(&attempt, Err(error))
            }
        }
    }

    async fn start_object(&self, attempt: Arc<Attempt>, reader: Arc<dyn Reader>, cut: Cut) -> Result<()> {
        let look = self.gate.look(&*self.job.sink, &attempt.item().target, reader.facts().modified).await;
        let error = match look {
            Ok(Look::Skip(reason)) => return self.settle(&attempt, Ok(Done::Skipped(reason))),
            Ok(Look::Go(replace)) => match Object::new(Arc::clone(&attempt), reader, cut, replace, self) {
                Ok(object) => {
                    let object = Arc::new(object);
                    self.queue.add_object(Arc::clone(&object));
                    let asked = object.earlier(self).await.map(drop);
                    let failed = asked.err().and_then(|error| object.fail(error, self));
                    return self.settle_object(&object, failed.map(Err));
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        self.settle(&attempt, Err(error))
    }

    async fn start_stream(&self, attempt: Arc<Attempt>, reader: Arc<dyn Reader>) -> Result<()> {
        let replace = self.gate.condition(reader.facts().modified);
        let first = match Stream::new(Arc::clone(&attempt), reader, replace, self) {
            Ok(stream) => stream.read(self).await.map(|block| (stream, block)),
            Err(error) => Err(error),
        };
        let (stream, block) = match first {
            Ok((stream, Some(block))) => (stream, block),
            // Told to stop before it said anything: left for the final count.
            Ok((_, None)) => return Ok(()),
            Err(error) => return self.settle(&attempt, Err(error)),
        };
        match block.into_whole(self.whole_limit.load(Ordering::Relaxed).min(self.limits.whole)) {
            Ok((data, _permit)) => {
                let finish =
                    Finish { content_md5: stream.content_md5(), replace: stream.replace(), source: Some(stream.reader()) };
                let result = self.put(&attempt, Payload { crc64: data.crc64(), data }, finish).await;
                self.settle(&attempt, result)
            }
            Err(block) => {
                let stream = Arc::new(stream);
                if !block.is_last() {
                    self.queue.add_stream(Arc::clone(&stream));
                }
                let result = stream.move_block(block, self).await;
                self.settle_stream(&stream, result)
            }
        }
    }

    async fn block(&self, object: &Arc<Object>, index: u32) -> Result<()> {
        let result = object.move_block(index, self).await;
        self.settle_object(object, result)
    }

    fn settle_object(&self, object: &Arc<Object>, result: Option<Result<Done>>) -> Result<()> {
        let Some(result) = result else { return Ok(()) };
        if result.is_err() {
            self.queue.drop_object(object);
        }
        self.settle(object.attempt(), result)
    }

    async fn turn(&self, stream: &Arc<Stream>) -> Result<()> {
        let block = match stream.read(self).await {
            Ok(block) => block,
            Err(error) => return self.settle_stream(stream, stream.fail(error).map(Err)),
        };
        if block.as_ref().is_none_or(|block| block.is_last()) {
            self.queue.drop_stream(stream);
        }
        match block {
            Some(block) => {
                let result = stream.move_block(block, self).await;
                self.settle_stream(stream, result)
            }
            None => Ok(()),
        }
    }

    fn settle_stream(&self, stream: &Arc<Stream>, result: Option<Result<Done>>) -> Result<()> {
        let Some(result) = result else { return Ok(()) };
        if result.is_err() {
            self.queue.drop_stream(stream);
        }
        self.settle(stream.attempt(), result)
    }

    /// Moves an object in one request.
    async fn move_whole(&self, attempt: &Attempt, reader: &dyn Reader, len: u64) -> Result<Done> {
        if self.draws {
            return self.draw_whole(attempt, reader, len).await;
        }
        let _permit = self.budget.acquire(len).await;
        let data = reader.read(0, len).await?;
        let content_md5 = match self.job.tuning.put_md5 {
            true => Some(self.md5.digest(&data).await?),
            false => None,
        };
        let payload = Payload { crc64: data.crc64(), data };
        reader.check_unchanged(self.same())?;
        let replace = self.gate.condition(reader.facts().modified);
        self.put(attempt, payload, Finish { content_md5, replace, source: Some(reader) }).await
    }

    /// Lets the sink draw an object in one request.
    async fn draw_whole(&self, attempt: &Attempt, reader: &dyn Reader, len: u64) -> Result<Done> {
        let _permit = self.budget.acquire(self.job.sink.holds(len)).await;
        let target = &attempt.item().target;
        let replace = self.gate.condition(reader.facts().modified);
        let finish = Finish { content_md5: None, replace, source: Some(reader) };
        let span = Span { reader, offset: 0, len };
        let draw = |replace| self.job.sink.draw(target, span, Finish { replace, ..finish });
        let written = self.gate.write(target, replace, draw).await?;
        if matches!(written, Written::Done(_)) {
            attempt.sent(len, &self.progress);
        }
        Ok(written.count(attempt, len))
    }

    /// Puts a whole object that is in memory; one the sink finds too large goes again in blocks.
    async fn put(&self, attempt: &Attempt, payload: Payload, finish: Finish<'_>) -> Result<Done> {
        let item = attempt.item();
        let len = payload.data.len();
        let put = |replace| self.job.sink.put(&item.target, payload.clone(), Finish { replace, ..finish });
        let written = match self.gate.write(&item.target, finish.replace, put).await {
            Err(error) if error.kind() == Kind::TooLarge && len > 1 => {
                let told = error.answer().and_then(|answer| answer.detail("MaxLimit")).and_then(|limit| limit.parse().ok());
                let block_size = smaller_block(len, told, &self.job.tuning);
                self.whole_limit.fetch_min(block_size, Ordering::Relaxed);
                let ids = self.stage(attempt, &payload.data, block_size, finish.replace).await?;
                let commit = |replace| self.job.sink.commit(&item.target, &ids, Finish { replace, ..finish });
                self.gate.write(&item.target, finish.replace, commit).await
            }
            written => {
                // Skipped under a condition: nothing of it was taken.
                if matches!(written, Ok(Written::Done(_))) {
                    attempt.sent(len, &self.progress);
                }
                written
            }
        };
        Ok(written?.count(attempt, len))
    }

    /// Stages data that is in memory as blocks, one after the other: what is left to do when it was refused in one piece.
    async fn stage(&self, attempt: &Attempt, data: &Chunks, size: u64, replace: Replace) -> Result<Vec<BlockId>> {
        let modified = attempt.course().facts.and_then(|facts| facts.modified);
        let fingerprint = Fingerprint::new(Some(data.len()), modified, size);
        let staging = Staging::new(Writer::new(fingerprint, self.trust())?, replace);
        let mut ids = Vec::new();
        for (index, offset) in (0u32..).zip((0..data.len()).step_by(usize::try_from(size).unwrap_or(usize::MAX))) {
            let block = data.slice(offset, size.min(data.len() - offset));
            let crc64 = block.crc64();
            ids.push(staging.put(attempt, index, block, crc64, self).await?);
            attempt.add_blocks(1);
        }
        Ok(ids)
    }

    /// What blocks put from memory are known by.
    pub(super) fn trust(&self) -> Trust {
        if self.job.sink.checks() { Trust::Checked } else { Trust::Unchecked }
    }

    /// In what a source must be what it was when it was opened.
    pub(super) fn same(&self) -> Same {
        self.job.tuning.on_change.must_hold()
    }

    /// Counts an object's end, or starts it again. What would befall every other object as well ends the job.
    fn settle(&self, attempt: &Attempt, result: Result<Done>) -> Result<()> {
        if let Some(tries) = result.as_ref().err().and_then(Error::attempts) {
            attempt.count(Receipt { attempts: tries.count });
        }
        let (item, course) = (attempt.item(), attempt.course());
        match result {
            Ok(Done::Moved(bytes)) => self.progress.done(&item.source, &item.target, course, bytes),
            Ok(Done::Skipped(reason)) => self.progress.skipped(&item.source, Some(&item.target), course, reason),
            Err(error) if error.ends_job() => {
                // Closed here, so that no lane begins another object before `run` hears of it.
                self.queue.close();
                return Err(error);
            }
            Err(error) => {
                if let Some(next) = self.next_try(attempt, &error) {
                    attempt.take_back(&self.progress);
                    self.queue.again(next);
                    return Ok(());
                }
                self.progress.failed(&item.source, Some(&item.target), course, attempt.explain(error));
            }
        }
        self.queue.settled();
        Ok(())
    }

    /// The next try at an object whose source changed, where that is asked for.
    fn next_try(&self, attempt: &Attempt, error: &Error) -> Option<Attempt> {
        let wanted = self.job.tuning.on_change == OnChange::Retry && error.kind() == Kind::SourceChanged;
        if wanted && self.stop.phase() == Phase::Run { attempt.next() } else { None }
    }
}
