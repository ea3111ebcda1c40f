//! All containers of an account as one source, and of another as one sink: names begin with the container.
//!
//! Neither lists nor makes containers: that is done before. One container is listed after the other.

use crate::attributes::Replace;
use crate::endpoint::{
    BlockId, Facts, Finish, Flow, Found, Item, Limits, Listing, Payload, Reader, Receipt, Sink, Source, Span, Task, There, Which,
};
use crate::error::{Error, Kind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Container and the rest; a name without a `/` is a container alone.
pub fn split(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((name, ""))
}

fn unknown(name: &str) -> Error {
    Error::new(Kind::Name, format!("{name} is in no container of this job"))
}

/// Sources by container.
pub struct AccountSource {
    parts: BTreeMap<String, Arc<dyn Source>>,
    described: String,
}

impl AccountSource {
    /// Each lists its own names, without the container.
    pub fn new(parts: BTreeMap<String, Arc<dyn Source>>, described: String) -> Self {
        AccountSource { parts, described }
    }

    /// One container's listing, names lengthened. `false`: nobody listens any more.
    async fn list_one(container: &str, source: &dyn Source, out: &Listing) -> Result<bool> {
        let (sender, mut listed) = mpsc::channel::<Vec<Found>>(1);
        let longer = |found| match found {
            Found::Item(item) => Found::Item(Item {
                source: format!("{container}/{}", item.source),
                target: format!("{container}/{}", item.target),
                known: item.known,
            }),
            other => other,
        };
        let hand_on = async {
            while let Some(batch) = listed.recv().await {
                if out.send(batch.into_iter().map(longer).collect()).await.is_err() {
                    // The listing sees that nobody listens.
                    drop(listed);
                    return false;
                }
            }
            true
        };
        let (result, listening) = tokio::join!(source.list(sender), hand_on);
        result.map(|()| listening)
    }
}

impl Source for AccountSource {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            for (container, source) in &self.parts {
                if !Self::list_one(container, &**source, &out).await? {
                    break;
                }
            }
            Ok(())
        })
    }

    fn open<'a>(&'a self, item: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async move {
            let (container, name) = split(&item.source);
            let source = self.parts.get(container).ok_or_else(|| unknown(&item.source))?;
            source.open(&Item { source: name.to_owned(), ..item.clone() }).await
        })
    }

    fn describe(&self) -> String {
        self.described.clone()
    }

    /// All containers share their client, so that one tells for all.
    fn flow(&self) -> Option<Flow> {
        self.parts.values().next()?.flow()
    }
}

/// Sinks by container.
pub struct AccountSink {
    parts: BTreeMap<String, Arc<dyn Sink>>,
    limits: Limits,
    draws: bool,
}

impl AccountSink {
    /// All of one kind; `None` where there is none.
    pub fn new(parts: BTreeMap<String, Arc<dyn Sink>>) -> Option<Self> {
        let first = parts.values().next()?;
        let (limits, draws) = (first.limits(), first.draws());
        Some(AccountSink { parts, limits, draws })
    }

    fn part<'a>(&'a self, target: &'a str) -> Result<(&'a dyn Sink, &'a str)> {
        let (container, name) = split(target);
        self.parts.get(container).map(|sink| (&**sink, name)).ok_or_else(|| unknown(target))
    }

    fn any(&self) -> impl Iterator<Item = &dyn Sink> {
        self.parts.values().map(|sink| &**sink)
    }
}

/// Hands a task on to the part that a target is in.
macro_rules! in_part {
    ($self:ident, $target:ident, $sink:ident, $name:ident => $call:expr) => {
        match $self.part($target) {
            Ok(($sink, $name)) => $call,
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    };
}

impl Sink for AccountSink {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn check_name(&self, target: &str) -> Result<()> {
        self.part(target).and_then(|(sink, name)| sink.check_name(name))
    }

    fn put<'a>(&'a self, target: &'a str, payload: Payload, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        in_part!(self, target, sink, name => sink.put(name, payload, finish))
    }

    fn put_block<'a>(&'a self, target: &'a str, id: BlockId, payload: Payload) -> Task<'a, Result<Receipt>> {
        in_part!(self, target, sink, name => sink.put_block(name, id, payload))
    }

    fn draws(&self) -> bool {
        self.draws
    }

    fn holds(&self, len: u64) -> u64 {
        self.any().map(|sink| sink.holds(len)).max().unwrap_or(len)
    }

    fn draw<'a>(&'a self, target: &'a str, span: Span<'a>, finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        in_part!(self, target, sink, name => sink.draw(name, span, finish))
    }

    fn draw_block<'a>(&'a self, target: &'a str, id: BlockId, span: Span<'a>) -> Task<'a, Result<Receipt>> {
        in_part!(self, target, sink, name => sink.draw_block(name, id, span))
    }

    fn commit<'a>(&'a self, target: &'a str, ids: &'a [BlockId], finish: Finish<'a>) -> Task<'a, Result<Receipt>> {
        in_part!(self, target, sink, name => sink.commit(name, ids, finish))
    }

    fn blocks<'a>(&'a self, target: &'a str, which: Which, source: &'a dyn Reader) -> Task<'a, Result<Vec<There>>> {
        in_part!(self, target, sink, name => sink.blocks(name, which, source))
    }

    fn clear<'a>(&'a self, target: &'a str, replace: Replace) -> Task<'a, Result<()>> {
        in_part!(self, target, sink, name => sink.clear(name, replace))
    }

    fn checks(&self) -> bool {
        self.any().all(Sink::checks)
    }

    fn look<'a>(&'a self, target: &'a str) -> Task<'a, Result<Option<Facts>>> {
        in_part!(self, target, sink, name => sink.look(name))
    }

    /// Bytes add up; how often the service pushed back, and how many wait, is the client's, which all containers share.
    fn flow(&self) -> Option<Flow> {
        let flows = self.any().filter_map(Sink::flow);
        flows.reduce(|all, one| Flow { moved: if self.draws { all.moved + one.moved } else { all.moved }, ..all })
    }

    fn describe(&self, target: &str) -> String {
        self.part(target).map_or_else(|_| target.to_owned(), |(sink, name)| sink.describe(name))
    }
}
