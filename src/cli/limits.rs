//! What bounds this process besides memory ([`machine`](super::machine)): address space, threads, core files. Defaults bend to it,
//! with a note; what the user said is kept.
//!
//! Address space is what `ulimit -v` bounds. Beside block data it goes to the stack of each thread and to the arenas of the C
//! library, 64 MiB for each thread that allocates, however little is in them.

use crate::error::{Error, Kind, Result};
use crate::transfer::plan::Tuning;
use crate::units::{ByteCount, MIB};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::RwLock;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Threads that run tasks where threads or address space are short.
const FEW: usize = 4;

/// Stack of a thread where address space is short: what tasks need and a half. Builds without optimisation need twice that.
const SMALL_STACK: usize = if cfg!(debug_assertions) { 2 << 20 } else { 1 << 20 };

/// Stack of a thread otherwise: tokio's own figure.
const STACK: usize = 2 << 20;

/// Address space a request in flight may take beside its block: its connection, and threads that work for it.
const A_LANE: u64 = 8 * MIB;

/// Keeps this process from leaving its memory on disk when it crashes: keys and signatures are in there. Who wants a core file
/// raises the limit of the running process (`prlimit --core`).
pub(crate) fn leave_no_core() {
    let limit = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
    // Lowering one's own soft limit cannot be refused.
    let _ = setrlimit(Resource::Core, limit);
}

/// Starts the threads that run tasks: one a core, or as many as there may be.
///
/// # Errors
/// `Local` where not one thread can be started.
pub(crate) fn runtime() -> Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let tight = getrlimit(Resource::As).current.is_some();
    if tight {
        one_arena();
    }
    let (wanted, stack) = if tight { (cores.min(FEW), SMALL_STACK) } else { (cores, STACK) };
    // One more, for what waits for a disk: without it such work would wait for ever.
    let found = startable(wanted + 1, stack);
    let failed = |why: std::io::Error| {
        Error::new(Kind::Local, "cannot start threads")
            .with_source(why)
            .with_advice("allow more processes (ulimit -u) or more address space (ulimit -v, 128 MiB at least)")
    };
    let workers = found.map_err(failed)?.saturating_sub(1).clamp(1, wanted);
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().worker_threads(workers).thread_stack_size(stack);
    if tight || workers < wanted {
        builder.max_blocking_threads(FEW).thread_keep_alive(Duration::MAX);
    }
    let runtime = builder.build().map_err(failed)?;
    if tight || workers < wanted {
        // Started while it can be, and kept.
        runtime.spawn_blocking(|| ());
    }
    Ok(runtime)
}

/// How many threads can be there at once, of those wanted; the error, if not one.
fn startable(wanted: usize, stack: usize) -> std::io::Result<usize> {
    let gate = RwLock::new(());
    let mut why = None;
    let started = std::thread::scope(|scope| {
        let closed = gate.write();
        let one = |_: &usize| {
            let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, || drop(gate.read()));
            thread.map_err(|error| why = Some(error)).is_ok()
        };
        let started = (0..wanted).take_while(one).count();
        drop(closed);
        started
    });
    match why {
        Some(error) if started == 0 => Err(error),
        _ => Ok(started),
    }
}

/// Lets all threads allocate from one arena instead of one each.
fn one_arena() {
    // SAFETY: mallopt sets a parameter of the allocator and takes no pointer; no thread of ours runs yet.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Address space that may still be taken; `None` where nobody bounds it.
pub(crate) fn address_space() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    Some(limit.saturating_sub(pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)))
}

/// What the user said, and what is therefore kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    pub(crate) memory: bool,
    pub(crate) sizes: bool,
    pub(crate) concurrency: bool,
}

/// Fits the defaults into half of the address space there is; returns what to tell about it, if anything had to give way.
pub(crate) fn fit(tuning: &mut Tuning, said: Said, address_space: Option<u64>) -> Option<String> {
    let bytes = address_space?;
    let (share, before) = (bytes / 2, (tuning.memory, tuning.lanes));
    if !said.concurrency {
        let lanes = usize::try_from((share / A_LANE).max(2)).unwrap_or(usize::MAX);
        tuning.lanes = tuning.lanes.min(lanes.try_into().expect("2 at least"));
        tuning.lanes_first = tuning.lanes_first.map(|first| first.min(tuning.lanes));
    }
    if !said.memory && tuning.memory > share {
        if !said.sizes {
            // Some blocks at once make a pipeline; blocks of less than a MiB cost more in requests than they save.
            let size = (share / 4 / MIB * MIB).clamp(MIB, tuning.block_size.max(MIB));
            tuning.block_size = tuning.block_size.min(size);
            tuning.whole_limit = tuning.whole_limit.min(size);
        }
        tuning.memory = share.max(2 * tuning.block_size.max(tuning.whole_limit)).min(tuning.memory);
    }
    (before != (tuning.memory, tuning.lanes)).then(|| {
        format!(
            "{} of address space are left (ulimit -v): blocks of {}, {} in flight at most, over {} connections at most; --memory, \
             --block-size-mb and --concurrency say otherwise",
            ByteCount(bytes),
            ByteCount(tuning.block_size),
            ByteCount(tuning.memory),
            tuning.lanes
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Said = Said { memory: false, sizes: false, concurrency: false };

    fn fitted(mib: u64, said: Said) -> (u64, u64, usize, bool) {
        let mut tuning = Tuning::default();
        let told = fit(&mut tuning, said, Some(mib * MIB)).is_some();
        (tuning.memory / MIB, tuning.block_size / MIB, tuning.lanes.get(), told)
    }

    #[test]
    fn defaults_give_way_and_what_was_said_is_kept() {
        assert_eq!(fitted(4096, NOTHING), (128, 8, 16, false));
        assert_eq!(fitted(200, NOTHING), (100, 8, 12, true));
        assert_eq!(fitted(60, NOTHING), (30, 7, 3, true));
        assert_eq!(fitted(1, NOTHING), (2, 1, 2, true), "too little is still tried");
        assert_eq!(fitted(60, Said { memory: true, sizes: true, concurrency: true }), (128, 8, 16, false));
        assert_eq!(fitted(20, Said { sizes: true, ..NOTHING }), (16, 8, 2, true), "two blocks of the size that was said");
        assert_eq!(fit(&mut Tuning::default(), NOTHING, None), None);
    }

    #[test]
    fn threads_that_can_be_started_are_counted() {
        assert_eq!(startable(3, STACK).unwrap(), 3);
        // More than any address space holds.
        assert!(startable(2, usize::MAX / 4).is_err());
    }
}
