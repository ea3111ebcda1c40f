//! The walk of [`walk`](crate::endpoint::walk) in the order of whole paths, byte by byte, as the service lists blobs.
//!
//! That is not the order of names folder by folder: `a.txt` comes before `a/b`, as `.` does before `/`. A folder sorts like its
//! name with a `/` behind it, as all that is in it begins so. In memory are the names of the folders that are open: those in one
//! folder, and in the ones it lies in.

use crate::endpoint::patience::patiently_here;
use crate::endpoint::walk::{Flow, Folder, Walk, join, kind_of, unreadable};
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::vec::IntoIter;

/// An entry of a folder.
struct Entry {
    name: OsString,
    kind: io::Result<FileType>,
    is_folder: bool,
}

impl Walk {
    /// Reports what is in folders, one folder after the other.
    pub(super) fn drain_in_order(&mut self, folders: Vec<Folder>) -> Flow {
        let mut open: Vec<(Folder, IntoIter<Entry>)> = Vec::new();
        for folder in folders {
            self.begin(folder, &mut open)?;
            while let Some((folder, rest)) = open.last_mut() {
                let Some(entry) = rest.next() else {
                    open.pop();
                    continue;
                };
                let mut within = Vec::with_capacity(1);
                self.entry(folder, &entry.name, entry.kind, &mut within)?;
                within.into_iter().try_for_each(|folder| self.begin(folder, &mut open))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn begin(&mut self, folder: Folder, open: &mut Vec<(Folder, IntoIter<Entry>)>) -> Flow {
        let follow = self.rules.follow;
        match patiently_here(|| sorted(&folder.path, follow)) {
            Ok(entries) => {
                open.push((folder, entries.into_iter()));
                ControlFlow::Continue(())
            }
            Err(error) => self.failed(&folder.path, unreadable(&folder.path, error)),
        }
    }
}

fn sorted(folder: &str, follow: bool) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), kind_of(&entry));
        let is_folder = match &kind {
            // A link that cannot be followed is told when it is met.
            Ok(kind) if kind.is_symlink() && follow => name
                .to_str()
                .is_some_and(|name| patiently_here(|| fs::metadata(join(folder, name))).is_ok_and(|metadata| metadata.is_dir())),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        entries.push(Entry { name, kind, is_folder });
    }
    entries.sort_unstable_by(|a, b| by_path((&a.name, a.is_folder), (&b.name, b.is_folder)));
    Ok(entries)
}

/// How what two entries of one folder stand for compares: files by their names, folders by what begins the paths in them.
fn by_path((a, a_is_folder): (&OsStr, bool), (b, b_is_folder): (&OsStr, bool)) -> Ordering {
    let end = |is_folder: bool| if is_folder { &b"/"[..] } else { &[] };
    a.as_bytes().iter().chain(end(a_is_folder)).cmp(b.as_bytes().iter().chain(end(b_is_folder)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Found;
    use crate::endpoint::selection::Selection;
    use crate::endpoint::walk::Rules;
    use proptest::prelude::*;
    use std::sync::Arc;
    use tokio::sync::mpsc;

    /// The paths of a tree, as they are walked.
    fn walked(root: &str, follow: bool) -> Vec<String> {
        let (out, mut listed) = mpsc::channel(1);
        let root = root.to_owned();
        let walking = std::thread::spawn(move || {
            let rules = Rules { recursive: true, follow, ordered: true };
            let mut walk = Walk::new(rules, Arc::<Selection>::default(), "", out);
            let _ = walk.tree(&root, "").is_continue() && walk.finish().is_continue();
        });
        let mut paths = Vec::new();
        while let Some(batch) = listed.blocking_recv() {
            for found in batch {
                let Found::Item(item) = found else { panic!("{found:?}") };
                assert_eq!(item.known.unwrap().len, item.target.len() as u64);
                paths.push(item.target);
            }
        }
        walking.join().unwrap();
        paths
    }

    /// Makes files of these paths, each as long as its path; what cannot be made beside the others is left out.
    fn tree(paths: &[&str]) -> (tempfile::TempDir, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let mut made: Vec<String> = Vec::new();
        for path in paths {
            let full = dir.path().join(path);
            if full.exists() || fs::create_dir_all(full.parent().unwrap()).is_err() {
                continue;
            }
            fs::write(&full, path).unwrap();
            made.push((*path).to_owned());
        }
        (dir, made)
    }

    #[test]
    fn folders_stand_where_their_paths_do() {
        let expected = ["Z", "a", "b!/x", "b-1", "b.txt", "b/a/z", "b/a0", "b0", "c/d", "é/f", "\u{ff5e}", "🎈"];
        let (dir, made) = tree(&expected);
        assert_eq!(made.len(), expected.len());
        assert_eq!(walked(dir.path().to_str().unwrap(), false), expected);
    }

    #[test]
    fn a_link_to_a_folder_that_is_followed_stands_where_the_folder_would() {
        let (dir, _) = tree(&["b.txt", "b0"]);
        let (other, _) = tree(&["x"]);
        std::os::unix::fs::symlink(other.path(), dir.path().join("b")).unwrap();
        fs::write(other.path().join("x"), "b/x").unwrap();
        assert_eq!(walked(dir.path().to_str().unwrap(), true), ["b.txt", "b/x", "b0"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_tree_comes_in_the_order_of_its_paths(paths in prop::collection::vec("[a!.0é-]{1,2}(/[a!.0é-]{1,2}){0,3}", 0..20)) {
            let good: Vec<&str> = paths.iter().map(String::as_str)
                .filter(|path| !path.split('/').any(|part| part.chars().all(|c| c == '.'))).collect();
            let (dir, mut made) = tree(&good);
            made.sort_unstable();
            prop_assert_eq!(walked(dir.path().to_str().unwrap(), false), made);
        }
    }
}
