//! Why one path of a local source would be taken or left out, without listing the rest: the walk's decisions in the walk's order,
//! each told with what decided it.

use crate::endpoint::blob_pattern::BlobPattern;
use crate::endpoint::file::What;
use crate::endpoint::list_of_files::ListOfFiles;
use crate::endpoint::name::usable;
use crate::endpoint::open::{Opening, local};
use crate::endpoint::selection::{Selection, Verdict};
use crate::endpoint::walk::{FOLDER, LINK, join, special};
use crate::error::Result;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::Path;

/// What becomes of a path, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Whether it is taken. Of a folder: whether it is looked into.
    pub taken: bool,
    /// What decided it.
    pub why: String,
    /// Where it lands, if it is taken and goes anywhere: the name at the destination, raw.
    pub target: Option<String>,
}

impl Explanation {
    pub(super) fn no(why: impl Into<String>) -> Explanation {
        Explanation { taken: false, why: why.into(), target: None }
    }

    pub(super) fn yes(why: impl Into<String>, target: Option<String>) -> Explanation {
        Explanation { taken: true, why: why.into(), target }
    }
}

/// Explains one path of a source: as it is within it, or with the source before it. What is not there is explained as far as its
/// name tells.
///
/// # Errors
/// Those of [`source`](crate::endpoint::open::source): the source itself cannot be used; and those of reading a list of files.
pub fn explain(source: &str, opening: &Opening, path: &str) -> Result<Explanation> {
    let source = local(source, opening)?;
    let selection = &opening.selection;
    // How much of the path is named by a list: what is below it is walked.
    let mut named = 0;
    let (root, relative, prefix) = match source.what() {
        What::One { path: file, target } => {
            let name = file.rsplit('/').next().unwrap_or(file);
            if path != file && path != name {
                return Ok(Explanation::no(format!("the source is the file {file} alone")));
            }
            return Ok(as_file(selection, name, fs::metadata(file).ok().as_ref(), target.clone()));
        }
        What::Tree { root, prefix } => (root.clone(), within(root, path), prefix),
        What::Pattern { pattern, prefix } => {
            let folder = pattern.rsplit_once('/').map_or("", |(folder, _)| folder);
            let whole = [path.to_owned(), join(folder, path)].into_iter().find_map(|path| {
                let at = BlobPattern::new(pattern).relative_at(&path)?;
                Some((path[..at].trim_end_matches('/').to_owned(), path[at..].to_owned()))
            });
            match whole {
                Some((root, relative)) => (root, Some(relative), prefix),
                None => return Ok(Explanation::no(format!("the pattern {pattern} does not match it"))),
            }
        }
        What::Listed { root, prefix, list } => {
            let relative = within(root, path);
            if let Some(relative) = &relative {
                match listed(list, relative)? {
                    Some(len) => named = len,
                    None => return Ok(Explanation::no("the list of files names neither it nor a folder it is in")),
                }
            }
            (root.clone(), relative, prefix)
        }
    };
    let Some(relative) = relative else { return Ok(Explanation::no(format!("it is not in {root}"))) };
    if let Err(error) = usable(OsStr::new(&relative)) {
        return Ok(Explanation::no(error.to_string()));
    }
    Ok(step_by_step(&root, &relative, named, prefix, opening))
}

/// The path within a folder, without `.` and double slashes; `None` where it leads out of it, or to the folder itself.
fn within(root: &str, path: &str) -> Option<String> {
    let root = root.trim_end_matches('/');
    let inner = match path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) {
        // A folder may hold one of its own name: what is there counts.
        Some(inner) if !Path::new(&join(root, path)).exists() => inner,
        _ if path.starts_with('/') => return None,
        _ => path,
    };
    let parts: Vec<&str> = inner.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}

/// How much of a path an entry of a list names, bytes.
fn listed(list: &ListOfFiles, relative: &str) -> Result<Option<usize>> {
    for entry in list.open()? {
        let entry = entry?;
        let Ok(text) = std::str::from_utf8(&entry) else { continue };
        let named = within("", text).unwrap_or_default();
        if relative.strip_prefix(named.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Ok(Some(named.len()));
        }
    }
    Ok(None)
}

/// From the root down, or from what is named, as the walk goes.
fn step_by_step(root: &str, relative: &str, named: usize, prefix: &str, opening: &Opening) -> Explanation {
    let selection = &opening.selection;
    let walked = relative.match_indices('/').filter(|(slash, _)| *slash >= named);
    for (slash, _) in walked {
        let folder = &relative[..slash];
        if let Some(verdict) = selection.why_not_within(folder) {
            return Explanation::no(format!("the folder {folder} is not looked into: {verdict}"));
        }
        let looked_at = fs::symlink_metadata(join(root, folder));
        if looked_at.is_ok_and(|metadata| metadata.is_symlink()) && !opening.follow_symlinks && slash != named {
            return Explanation::no(format!("{folder}, which it is in, is skipped: {LINK}"));
        }
        if !opening.recursive {
            return Explanation::no(format!("{folder}, which it is in, is skipped: {FOLDER}"));
        }
    }
    let path = join(root, relative);
    let target = format!("{prefix}{relative}");
    let there = fs::symlink_metadata(&path).ok();
    let is_link = there.as_ref().is_some_and(Metadata::is_symlink);
    let follows = opening.follow_symlinks || relative.len() == named;
    let there = if is_link && follows { fs::metadata(&path).ok() } else { there };
    match &there {
        None if is_link => Explanation::no("it is a symbolic link that points to nothing"),
        None => match selection.takes_path(relative) {
            Verdict::Taken => Explanation::no("there is no such file; its name is one that is taken"),
            left_out => Explanation::no(format!("{left_out}; and there is no such file")),
        },
        Some(metadata) if metadata.is_dir() => match selection.why_not_within(relative) {
            Some(verdict) => Explanation::no(format!("the folder is not looked into: {verdict}")),
            None if !opening.recursive => Explanation::no(format!("it is skipped: {FOLDER}")),
            None => Explanation::yes("it is a folder, and is looked into", Some(format!("{target}/"))),
        },
        Some(metadata) if metadata.is_file() => as_file(selection, relative, Some(metadata), target),
        Some(metadata) => match selection.takes_path(relative) {
            Verdict::Taken if is_link && !follows => Explanation::no(format!("it is skipped: {LINK}")),
            Verdict::Taken => Explanation::no(format!("it is skipped: {}", special(metadata.file_type()))),
            left_out => Explanation::no(left_out.to_string()),
        },
    }
}

fn as_file(selection: &Selection, relative: &str, metadata: Option<&Metadata>, target: String) -> Explanation {
    let verdict = match (selection.takes_path(relative), metadata) {
        (Verdict::Taken, Some(metadata)) => selection.takes_facts(Some(metadata.len()), metadata.modified().ok()),
        (verdict, _) => verdict,
    };
    match verdict {
        Verdict::Taken if selection.takes_all() => Explanation::yes("there is no filter", Some(target)),
        Verdict::Taken => Explanation::yes(Verdict::Taken.to_string(), Some(target)),
        left_out => Explanation::no(left_out.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::selection::Filter;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    fn opening(rules: &[(Filter, &str)]) -> Opening {
        let with = |selection: Selection, (filter, text): &(Filter, &str)| selection.with(*filter, text);
        let selection = rules.iter().try_fold(Selection::default(), with).unwrap();
        Opening { recursive: true, dest: Some("t/".to_owned()), selection: Arc::new(selection), ..Opening::default() }
    }

    #[test]
    fn a_path_is_explained_by_what_decides_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("d");
        for name in ["a.txt", "build/x.o", "src/a.rs", "d/a.txt"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "12345").unwrap();
        }
        symlink("src", root.join("link")).unwrap();
        let source = root.to_str().unwrap();
        let inside = root.join("src/a.rs");
        let rules = [(Filter::ExcludePath, "build"), (Filter::IncludePattern, "*.rs;*.txt")];
        for (rules, path, why, target) in [
            (&[][..], "a.txt", "there is no filter", Some("t/d/a.txt")),
            (&rules, "a.txt", "no filter leaves it out", Some("t/d/a.txt")),
            (&rules, inside.to_str().unwrap(), "no filter leaves it out", Some("t/d/src/a.rs")),
            (&rules, "./src//a.rs", "no filter leaves it out", Some("t/d/src/a.rs")),
            (&rules, "build/x.o", "the folder build is not looked into: --exclude-path build fits it", None),
            (&rules, "build", "the folder is not looked into: --exclude-path build fits it", None),
            (&rules, "src", "it is a folder, and is looked into", Some("t/d/src/")),
            (&rules, "src/b.md", "no --include-pattern fits it (*.rs, *.txt); and there is no such file", None),
            (&rules, "src/b.rs", "there is no such file; its name is one that is taken", None),
            (&rules, "link/a.rs", "link, which it is in, is skipped: symbolic link (--follow-symlinks follows it)", None),
            (&rules, "../other", "it is not in ", None),
            (&rules, "/etc/passwd", "it is not in ", None),
        ] {
            let explained = explain(source, &opening(rules), path).unwrap();
            assert!(explained.why.starts_with(why), "{path}: {explained:?}");
            assert_eq!((explained.taken, explained.target.as_deref()), (target.is_some(), target), "{path}");
        }
        let sized = Opening { selection: Arc::new(Selection::default().at_least(6)), ..opening(&[]) };
        assert_eq!(explain(source, &sized, "a.txt").unwrap().why, "it is smaller than --min-size 6 B");

        let pattern = format!("{source}/s*");
        let explained = explain(&pattern, &opening(&[]), "src/a.rs").unwrap();
        assert_eq!(explained.target.as_deref(), Some("t/src/a.rs"));
        assert!(!explain(&pattern, &opening(&[]), "a.txt").unwrap().taken);
        let flat = Opening { recursive: false, ..opening(&[]) };
        assert!(explain(&pattern, &flat, "src/a.rs").unwrap().why.contains("--recursive"));

        let list = dir.path().join("list");
        fs::write(&list, "src/\n").unwrap();
        let list = ListOfFiles { from: list.to_str().unwrap().to_owned(), nul: false };
        let listed = Opening { list_of_files: Some(list), ..opening(&[]) };
        assert!(explain(source, &listed, "src/a.rs").unwrap().taken);
        assert!(!explain(source, &Opening { recursive: false, ..listed.clone() }, "src/a.rs").unwrap().taken);
        assert!(explain(source, &listed, "a.txt").unwrap().why.contains("list of files"));
        let one = root.join("a.txt");
        assert!(explain(one.to_str().unwrap(), &opening(&[]), "a.txt").unwrap().taken);
        assert!(!explain(one.to_str().unwrap(), &opening(&[]), "b.txt").unwrap().taken);
    }
}
