//! Walks folders on a blocking thread and reports what it meets, in batches. Opens nothing and asks for no sizes: the kind of an
//! entry comes with its name, at 0.3 us each. Only where a filter or a comparison asks for sizes or times are files looked at,
//! those whose path is taken.
//!
//! An unreadable folder is reported and never taken for an empty one. One whose reading is interrupted is read again, and what
//! was reported before is not reported twice.

use crate::endpoint::local_name::is_unfinished;
use crate::endpoint::name::{shown, usable};
use crate::endpoint::patience::{Patience, patiently_here, unreadable_as};
use crate::endpoint::selection::Selection;
use crate::endpoint::{Filtered, Found, Item, Known, Listing};
use crate::error::{Error, Kind};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, FileType, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

/// Entries a batch.
const BATCH: usize = 256;

/// Why links are skipped.
pub const LINK: &str = "symbolic link (--follow-symlinks follows it)";
/// Why what a download left is left out.
const UNFINISHED: &str = "is an unfinished download";
/// Why a link back to a folder it lies in is skipped.
pub const LOOP: &str = "symbolic link to a folder it lies in (a loop)";
/// Why folders are skipped without `--recursive`.
pub const FOLDER: &str = "folder (--recursive takes it)";
/// Why FIFOs are skipped.
pub const FIFO: &str = "FIFO";
/// Why sockets are skipped.
pub const SOCKET: &str = "socket";
/// Why devices are skipped.
pub const DEVICE: &str = "device";

const NOT_TAKEN: Filtered = Filtered { objects: 1, folders: 0 };
const UNOPENED: Filtered = Filtered { objects: 0, folders: 1 };

/// What a walk does with folders and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) recursive: bool,
    pub(super) follow: bool,
    /// In the order of paths, each file with its length and time ([`ordered_walk`](crate::endpoint::ordered_walk)).
    pub(super) ordered: bool,
}

/// Stops when nobody listens any more.
pub(super) type Flow = ControlFlow<()>;

/// A walk under way.
pub(super) struct Walk {
    pub(super) rules: Rules,
    selection: Arc<Selection>,
    /// Where in a target the path begins that filters look at, bytes.
    root: usize,
    out: Listing,
    batch: Vec<Found>,
    filtered: Filtered,
}

/// A folder to read, and the folders it lies in (kept only where links are followed).
pub(super) struct Folder {
    pub(super) path: String,
    prefix: String,
    chain: Option<Arc<Ancestor>>,
}

struct Ancestor {
    id: (u64, u64),
    above: Option<Arc<Ancestor>>,
}

impl Walk {
    /// A walk whose targets all begin with `prefix`, which filters do not see.
    pub(super) fn new(rules: Rules, selection: Arc<Selection>, prefix: &str, out: Listing) -> Self {
        Walk { rules, selection, root: prefix.len(), out, batch: Vec::with_capacity(BATCH), filtered: Filtered::default() }
    }

    /// Reports what is in a folder; names are `prefix` and the path within it. The folder itself may be a link.
    pub(super) fn tree(&mut self, root: &str, prefix: &str) -> Flow {
        let mut folders = Vec::new();
        match self.enter(root, prefix, None, || patiently_here(|| fs::metadata(root))) {
            Ok(Some(folder)) => folders.push(folder),
            Ok(None) => {}
            Err(error) => self.failed(root, unreadable(root, error))?,
        }
        self.drain(folders)
    }

    /// Reports one thing that was named or matched, a folder with all that is in it.
    pub(super) fn thing(&mut self, path: String, target: String, kind: FileType) -> Flow {
        let mut folders = Vec::new();
        self.meet(path, target, kind, None, &mut folders)?;
        self.drain(folders)
    }

    /// Reports something that fails, by its path.
    pub(super) fn failed(&mut self, path: impl AsRef<OsStr>, error: Error) -> Flow {
        self.push(Found::Failed { name: shown(path.as_ref()), error })
    }

    /// Sends what is left.
    pub(super) fn finish(&mut self) -> Flow {
        self.flush()
    }

    fn drain(&mut self, mut folders: Vec<Folder>) -> Flow {
        if self.rules.ordered {
            return self.drain_in_order(folders);
        }
        while let Some(folder) = folders.pop() {
            self.read(&folder, &mut folders)?;
        }
        Flow::Continue(())
    }

    fn read(&mut self, folder: &Folder, folders: &mut Vec<Folder>) -> Flow {
        let (mut met, mut patience) = (Met::default(), Patience::default());
        loop {
            match self.read_on(folder, folders, &mut met) {
                Ok(flow) => return flow,
                // What was not read is unknown: the folder is named, and not tried for ever.
                Err(error) => match patience.after(error) {
                    Ok(pause) => std::thread::sleep(pause),
                    Err(error) => return self.failed(&folder.path, unreadable(&folder.path, error)),
                },
            }
            met.start_over();
        }
    }

    /// Reports what is in a folder and was not met before.
    fn read_on(&mut self, folder: &Folder, folders: &mut Vec<Folder>, met: &mut Met) -> io::Result<Flow> {
        for entry in fs::read_dir(&folder.path)? {
            let entry = entry?;
            let name = entry.file_name();
            if !met.is_new(&name) {
                continue;
            }
            if self.entry(folder, &name, kind_of(&entry), folders).is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    /// Reports an entry of a folder; if it is a folder itself, it goes to `folders`.
    pub(super) fn entry(&mut self, folder: &Folder, name: &OsStr, kind: io::Result<FileType>, folders: &mut Vec<Folder>) -> Flow {
        let text = match usable(name) {
            Ok(text) => text,
            Err(_) if self.leaves_out_oddly_named(folder, &kind, name) => return self.filtered(NOT_TAKEN),
            Err(error) => return self.failed(Path::new(&folder.path).join(name), error),
        };
        let path = join(&folder.path, text);
        match kind {
            Ok(kind) => {
                let target = [folder.prefix.as_str(), text].concat();
                self.meet(path, target, kind, folder.chain.as_ref(), folders)
            }
            Err(error) => self.failed(&path, unreadable(&path, error)),
        }
    }

    fn meet(
        &mut self,
        path: String,
        target: String,
        mut kind: FileType,
        chain: Option<&Arc<Ancestor>>,
        folders: &mut Vec<Folder>,
    ) -> Flow {
        let relative = target.get(self.root..).unwrap_or(&target);
        let (taken, may_hold) = (self.selection.takes_path(relative).is_taken(), self.selection.may_hold(relative));
        let is_link = kind.is_symlink();
        // What a link points to does not matter where neither a file nor a folder would be taken.
        let follows = is_link && self.rules.follow && (taken || may_hold);
        if (!taken && !kind.is_dir() && !follows) || (!may_hold && kind.is_dir()) {
            return self.filtered(if kind.is_dir() { UNOPENED } else { NOT_TAKEN });
        }
        let mut followed: Option<Metadata> = None;
        if is_link {
            if !self.rules.follow {
                return self.skipped(path, LINK);
            }
            match patiently_here(|| fs::metadata(&path)) {
                Ok(metadata) => {
                    kind = metadata.file_type();
                    followed = Some(metadata);
                }
                Err(error) => {
                    let doing = format!("cannot follow the symbolic link {}", shown(OsStr::new(&path)));
                    let advice = "ls -l shows where it points to; remove it, or leave out --follow-symlinks to skip links";
                    return self.failed(path, Error::new(Kind::SourceUnreadable, doing).with_source(error).with_advice(advice));
                }
            }
        }
        // Of a link only now is it known which of the two counts.
        if is_link && if kind.is_dir() { !may_hold } else { !taken } {
            return self.filtered(if kind.is_dir() { UNOPENED } else { NOT_TAKEN });
        }
        if kind.is_file() {
            if is_unfinished(path.rsplit('/').next().unwrap_or_default()) {
                return self.skipped(path, UNFINISHED);
            }
            return self.file(path, target, followed.as_ref());
        }
        if !kind.is_dir() {
            return self.skipped(path, special(kind));
        }
        if !self.rules.recursive {
            return self.skipped(path, FOLDER);
        }
        let metadata = || followed.map_or_else(|| patiently_here(|| fs::metadata(&path)), Ok);
        match self.enter(&path, &format!("{target}/"), chain, metadata) {
            Ok(Some(folder)) => {
                folders.push(folder);
                Flow::Continue(())
            }
            Ok(None) => self.skipped(path, LOOP),
            Err(error) => {
                let error = unreadable(&path, error);
                self.failed(path, error)
            }
        }
    }

    fn file(&mut self, path: String, target: String, metadata: Option<&Metadata>) -> Flow {
        let mut known = None;
        if self.selection.needs_facts() || self.rules.ordered {
            let looked_at = match metadata {
                Some(metadata) => Ok(metadata.clone()),
                None => patiently_here(|| fs::metadata(&path)),
            };
            match looked_at {
                Ok(metadata) if self.selection.takes_facts(Some(metadata.len()), metadata.modified().ok()).is_taken() => {
                    known = self.rules.ordered.then(|| Arc::new(Known::of_file(&metadata)));
                }
                Ok(_) => return self.filtered(NOT_TAKEN),
                Err(error) => {
                    let doing = format!("cannot look at {}", shown(OsStr::new(&path)));
                    return self.failed(path, unreadable_as(doing, error));
                }
            }
        }
        self.push(Found::Item(Item { known, ..Item::new(path, target) }))
    }

    /// Whether filters leave out something whose name cannot be that of a blob: as far as its name can be read.
    fn leaves_out_oddly_named(&self, folder: &Folder, kind: &io::Result<FileType>, name: &OsStr) -> bool {
        let target = [folder.prefix.as_str(), &name.to_string_lossy()].concat();
        let relative = target.get(self.root..).unwrap_or(&target);
        match kind {
            Ok(kind) if kind.is_file() => !self.selection.takes_path(relative).is_taken(),
            _ => !self.selection.may_hold(relative),
        }
    }

    fn filtered(&mut self, more: Filtered) -> Flow {
        self.filtered.objects += more.objects;
        self.filtered.folders += more.folders;
        Flow::Continue(())
    }

    /// The folder to read, or `None` if it lies in itself. Only links can make that happen, so only where they are followed is
    /// the folder looked at.
    fn enter(
        &self,
        path: &str,
        prefix: &str,
        chain: Option<&Arc<Ancestor>>,
        metadata: impl FnOnce() -> io::Result<Metadata>,
    ) -> io::Result<Option<Folder>> {
        let mut folder = Folder { path: path.to_owned(), prefix: prefix.to_owned(), chain: None };
        if self.rules.follow {
            let metadata = metadata()?;
            let id = (metadata.dev(), metadata.ino());
            let mut above = chain;
            while let Some(ancestor) = above {
                if ancestor.id == id {
                    return Ok(None);
                }
                above = ancestor.above.as_ref();
            }
            folder.chain = Some(Arc::new(Ancestor { id, above: chain.cloned() }));
        }
        Ok(Some(folder))
    }

    fn skipped(&mut self, path: String, reason: &'static str) -> Flow {
        self.push(Found::Skipped { name: shown(OsStr::new(&path)), reason })
    }

    fn push(&mut self, found: Found) -> Flow {
        self.batch.push(found);
        if self.batch.len() >= BATCH { self.flush() } else { Flow::Continue(()) }
    }

    fn flush(&mut self) -> Flow {
        let filtered = std::mem::take(&mut self.filtered);
        if filtered != Filtered::default() {
            self.batch.push(Found::Filtered(filtered));
        }
        if self.batch.is_empty() {
            return Flow::Continue(());
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        match self.out.blocking_send(batch) {
            Ok(()) => Flow::Continue(()),
            Err(_) => Flow::Break(()),
        }
    }
}

/// The names of a folder met so far, by their hash: eight bytes a name, looked at only if the folder has to be read again. Two
/// names of one folder share a hash of 64 bits with a chance of one in 36 million where there are a million names.
#[derive(Default)]
struct Met {
    hasher: RandomState,
    hashes: Vec<u64>,
    before: HashSet<u64>,
}

impl Met {
    fn is_new(&mut self, name: &OsStr) -> bool {
        let hash = self.hasher.hash_one(name);
        let new = self.before.is_empty() || !self.before.contains(&hash);
        if new {
            self.hashes.push(hash);
        }
        new
    }

    /// The folder is read from its beginning again.
    fn start_over(&mut self) {
        self.before.extend(&self.hashes);
    }
}

/// What an entry of a folder is.
pub(super) fn kind_of(entry: &DirEntry) -> io::Result<FileType> {
    patiently_here(|| entry.file_type())
}

/// Why something that is neither file, folder nor link is skipped.
pub(super) fn special(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        FIFO
    } else if kind.is_socket() {
        SOCKET
    } else {
        DEVICE
    }
}

/// A path and a name in it, as the user would type it.
pub(super) fn join(folder: &str, name: &str) -> String {
    // Once an entry, a million times: `format!` takes five times as long as putting pieces together.
    if folder.is_empty() || folder.ends_with('/') { [folder, name].concat() } else { [folder, "/", name].concat() }
}

pub(super) fn unreadable(path: &str, error: io::Error) -> Error {
    unreadable_as(format!("cannot read the folder {}", shown(OsStr::new(path))), error)
}
