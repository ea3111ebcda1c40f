//! Windows of mapped files, and the guard that keeps a file cut short under a mapping from killing the process.
//!
//! Who may change a mapped file: anyone, at any time. Reading bytes that change under us gives old or new bytes and is noticed by
//! the comparison of length and time before the commit. Reading pages that no longer exist raises SIGBUS; the guard finds the
//! address in a table of live windows, puts pages of zeros there, marks the file as changed, and lets the thread go on. An
//! address that is not in the table goes to whoever handled SIGBUS before.
//!
//! What else needs `unsafe` in this layer is here as well: the question which filesystem a file is on.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::{mem, ptr};

use bytes::Bytes;
use memmap2::{Advice, Mmap, MmapOptions};
use std::sync::Arc;

/// Live windows at most; one more is read instead of mapped. Lanes are tens, so this is never met in earnest.
const SLOTS: usize = 1024;

/// A slot's `start` while it is being filled: no mapping begins there, and no fault is looked for below it.
const TAKEN: usize = 1;

/// One live window. Free while `start` is 0. `end` and `changed` are written between the claim (`TAKEN`) and the store of the
/// real `start`, which publishes them (Release; the handler loads with Acquire). `uses` goes up with each claim, before anything
/// else changes, so that the handler never pairs the start of one window with the end of the next.
struct Slot {
    uses: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    changed: AtomicPtr<AtomicBool>,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        uses: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        changed: AtomicPtr::new(ptr::null_mut()),
    }
}; SLOTS];

/// Where the search for a free slot starts.
static HINT: AtomicUsize = AtomicUsize::new(0);

/// Who handled SIGBUS before us. Set before our handler is installed.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Whether the guard is in place, decided at the first window.
static GUARD: OnceLock<bool> = OnceLock::new();

/// A mapped piece of a file; unmapped when the last `Bytes` of it is dropped.
struct Window {
    map: Mmap,
    slot: &'static Slot,
    /// Keeps alive what the slot points to.
    _changed: Arc<AtomicBool>,
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // The mapping still exists here (fields drop after this), so its addresses cannot be anybody else's yet.
        self.slot.start.store(0, Ordering::Release);
    }
}

/// Maps `len` bytes at `offset` and brings them in, so that the caller's thread pays for the disk and not the one that sends.
/// `changed` is set if the file turns out to be too short later on, while somebody reads the window.
///
/// # Errors
/// `UnexpectedEof` if the file ends before the window does; `Unsupported` where mapping is not possible (no free slot, no guard,
/// a filesystem that cannot), so that the caller reads instead.
pub(super) fn window(file: &File, offset: u64, len: usize, changed: &Arc<AtomicBool>) -> io::Result<Bytes> {
    let unsupported = |why: &str| io::Error::new(io::ErrorKind::Unsupported, why.to_owned());
    if !*GUARD.get_or_init(|| install().is_ok()) {
        return Err(unsupported("no guard against truncation"));
    }
    let slot = claim().ok_or_else(|| unsupported("too many windows"))?;
    let release = |error| {
        slot.start.store(0, Ordering::Release);
        error
    };
    // SAFETY: the map is read-only and private to this module, which hands it out as bytes that are only ever checksummed and
    // sent. The file may change under it: see the module's text for what happens then (stale or zero bytes, noticed before the
    // commit). Nothing relies on the bytes staying the same, as `str` or a `bool` would.
    let map = unsafe { MmapOptions::new().offset(offset).len(len).map(file) };
    let map = map.map_err(|e| release(io::Error::new(io::ErrorKind::Unsupported, e)))?;
    // Hints: a kernel without them reads as well.
    let _ = map.advise(Advice::Sequential);
    if let Err(error) = map.advise(Advice::PopulateRead) {
        // EFAULT: there are no pages behind part of it. Anything else (older than Linux 5.14): the pages come when touched.
        if error.raw_os_error() == Some(libc::EFAULT) {
            return Err(release(io::Error::new(io::ErrorKind::UnexpectedEof, error)));
        }
    }
    let start = map.as_ptr() as usize;
    slot.end.store(start + len, Ordering::Relaxed);
    slot.changed.store(Arc::as_ptr(changed).cast_mut(), Ordering::Relaxed);
    slot.start.store(start, Ordering::Release);
    Ok(Bytes::from_owner(Window { map, slot, _changed: Arc::clone(changed) }))
}

fn claim() -> Option<&'static Slot> {
    let first = HINT.fetch_add(1, Ordering::Relaxed);
    let slot = (0..SLOTS)
        .map(|i| &TABLE[first.wrapping_add(i) % SLOTS])
        .find(|slot| slot.start.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok())?;
    slot.uses.fetch_add(1, Ordering::Relaxed);
    // Pairs with the fence in `read_slot`: who sees what is written from here on also sees the new count.
    fence(Ordering::Release);
    Some(slot)
}

/// Puts the guard in front of whoever handles SIGBUS now.
fn install() -> io::Result<()> {
    // SAFETY: `sigaction` is a plain C struct for which all zeros is a valid value (no handler, empty mask).
    let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { mem::zeroed() };
    // SAFETY: a null new action only asks; `before` is a valid place for the answer.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let _ = PREVIOUS.set(before);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
    ours.sa_sigaction = handler as usize;
    // On the alternate stack: the previous handler may be the one that reports stack overflows.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `ours.sa_mask` is a valid set to write to.
    unsafe { libc::sigemptyset(&mut ours.sa_mask) };
    // SAFETY: `on_sigbus` has the signature SA_SIGINFO asks for, and does only what a signal handler may (see there).
    if unsafe { libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The handler. Only atomics and direct system calls: no allocation, no lock.
extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler, and si_addr is set for SIGBUS.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code == libc::BUS_ADRERR && mend(address) {
        return;
    }
    match PREVIOUS.get() {
        Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: an action with SA_SIGINFO holds a function of this signature; it gets what we got.
                let call: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    unsafe { mem::transmute(before.sa_sigaction) };
                call(signal, info, context);
            } else {
                // SAFETY: an action without SA_SIGINFO that is neither SIG_DFL nor SIG_IGN holds a function of this signature.
                let call: extern "C" fn(libc::c_int) = unsafe { mem::transmute(before.sa_sigaction) };
                call(signal);
            }
        }
        // The default is to die of it: the fault happens again on return, and then does.
        // SAFETY: `signal` may be called from a handler; SIG_DFL is a valid disposition.
        _ => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}

/// If the address lies in a live window: zeros from its page to the window's end, and the file is marked as changed.
fn mend(address: usize) -> bool {
    for slot in &TABLE {
        let Some((start, end, changed)) = read_slot(slot) else { continue };
        // The window starts anywhere in its first page, and the fault is reported for an address in it or at the page's start.
        let page = page_size();
        if address < start & !(page - 1) || address >= end {
            continue;
        }
        let from = address & !(page - 1);
        // SAFETY: errno is this thread's; what was interrupted must find it as it was.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: [from, end rounded up) lies within a mapping of ours that is alive: the faulting thread is reading it, and a
        // window leaves the table before it is unmapped. Replacing read-only file pages by read-only zero pages is what the
        // reader is promised.
        let mended = unsafe {
            libc::mmap(
                from as *mut libc::c_void,
                (end - from).next_multiple_of(page),
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        if mended == libc::MAP_FAILED {
            return false;
        }
        // SAFETY: the window keeps the flag alive, and is alive itself (it is being read).
        unsafe { (*changed).store(true, Ordering::Release) };
        return true;
    }
    false
}

/// A live window as it was at one moment; `None` if there is none or it is just changing hands. The window the calling thread
/// faulted in does neither.
fn read_slot(slot: &Slot) -> Option<(usize, usize, *mut AtomicBool)> {
    let uses = slot.uses.load(Ordering::Acquire);
    let start = slot.start.load(Ordering::Acquire);
    let (end, changed) = (slot.end.load(Ordering::Relaxed), slot.changed.load(Ordering::Relaxed));
    fence(Ordering::Acquire);
    (start > TAKEN && slot.uses.load(Ordering::Relaxed) == uses).then_some((start, end, changed))
}

fn page_size() -> usize {
    // SAFETY: sysconf takes no pointers and is safe in a signal handler on Linux (it reads what the kernel passed at start).
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// How a filesystem is best read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filesystem {
    /// In memory: reading never waits.
    Memory,
    /// On a disk of this machine: mapping is sound, reading may wait.
    Disk,
    /// Over a network, in user space, or unknown: lengths may be stale and reads may hang.
    Other,
}

/// The filesystem an open file is on.
pub(super) fn filesystem_of(file: &File) -> io::Result<Filesystem> {
    // SAFETY: all zeros is a valid statfs.
    let mut answer: libc::statfs = unsafe { mem::zeroed() };
    // SAFETY: the descriptor is open as long as `file` is borrowed, and `answer` is a valid place for the answer.
    match unsafe { libc::fstatfs(file.as_raw_fd(), &mut answer) } {
        0 => Ok(known(&answer)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The filesystem a path is on.
pub(super) fn filesystem_at(path: &str) -> io::Result<Filesystem> {
    let path = CString::new(path)?;
    // SAFETY: all zeros is a valid statfs.
    let mut answer: libc::statfs = unsafe { mem::zeroed() };
    // SAFETY: `path` is a C string and `answer` a valid place for the answer.
    match unsafe { libc::statfs(path.as_ptr(), &mut answer) } {
        0 => Ok(known(&answer)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn known(answer: &libc::statfs) -> Filesystem {
    // statfs(2); ext2 to ext4 share one number.
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58F6;
    const EXT: u64 = 0xEF53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683E;
    // The field is signed on some C libraries and 32 bits wide on some machines: the low 32 bits are the number everywhere.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "masked to the bits that are meant")]
    match answer.f_type as u64 & 0xFFFF_FFFF {
        TMPFS | RAMFS => Filesystem::Memory,
        EXT | XFS | BTRFS => Filesystem::Disk,
        _ => Filesystem::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(len: usize) -> File {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; len], 0).unwrap();
        file
    }

    #[test]
    fn a_window_shows_its_part_and_frees_its_slot() {
        let (file, changed) = (file(100_000), Arc::new(AtomicBool::new(false)));
        std::os::unix::fs::FileExt::write_all_at(&file, b"here", 70_001).unwrap();
        for _ in 0..2 * SLOTS {
            let bytes = window(&file, 70_001, 29_999, &changed).unwrap();
            assert_eq!((bytes.len(), bytes.get(..5)), (29_999, Some(&b"here\x07"[..])));
        }
        assert!(!changed.load(Ordering::Acquire));
    }

    #[test]
    fn a_file_cut_short_gives_zeros_and_a_mark_instead_of_a_signal() {
        let changed = Arc::new(AtomicBool::new(false));
        let (cut, whole) = (file(1 << 20), file(1 << 20));
        let other = Arc::new(AtomicBool::new(false));
        let kept = window(&whole, 0, 1 << 20, &other).unwrap();
        let bytes = window(&cut, 100, (1 << 20) - 100, &changed).unwrap();
        cut.set_len(5000).unwrap();
        let sum: usize = bytes.iter().map(|b| usize::from(*b)).sum();
        // The page that holds the new end stays, zeroed behind it by the kernel; the later ones are ours.
        assert_eq!(sum, 7 * 4900);
        assert!(changed.load(Ordering::Acquire));
        assert!(kept.iter().all(|b| *b == 7));
        assert!(!other.load(Ordering::Acquire), "another file's mark stays");
    }

    #[test]
    fn a_window_past_the_end_is_refused() {
        let changed = Arc::new(AtomicBool::new(false));
        let error = window(&file(4096), 0, 1 << 20, &changed).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
