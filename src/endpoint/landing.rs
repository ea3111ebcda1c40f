//! Where things land: AzCopy's rule, as one pure function. `docs/landing.md` shows it as a table, which the tests run.

use crate::error::{Error, Kind, Result};

/// What a source argument turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// One file.
    File,
    /// A folder.
    Folder,
    /// A pattern: several files and folders.
    Pattern,
    /// Standard input.
    Stdin,
}

/// What the rule needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What the source is.
    pub kind: SourceKind,
    /// The source as typed.
    pub source: &'a str,
    /// The folder's own name, for a source whose text does not end in one (`.`, `..`, `d/..`); `None` for `/`.
    pub real_name: Option<&'a str>,
    /// The destination within its container, raw; `None` for the container itself.
    pub dest: Option<&'a str>,
    /// `--as-subdir`: whether a folder lands under its own name.
    pub as_subdir: bool,
}

/// Where objects get their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    /// The one object is this.
    At(String),
    /// Objects are this followed by their path within the source (folder) or their own name (pattern). Empty, or ends in `/`.
    Under(String),
}

/// Applies the rule.
///
/// # Errors
/// `Usage` if standard input is given no name to land at.
pub fn land(ask: Ask<'_>) -> Result<Landing> {
    let dest = ask.dest.unwrap_or("");
    let is_prefix = dest.is_empty() || dest.ends_with('/');
    let name = last_name(ask.source).or(ask.real_name);
    match ask.kind {
        SourceKind::File if is_prefix => Ok(Landing::At(format!("{dest}{}", name.unwrap_or_default()))),
        SourceKind::File => Ok(Landing::At(dest.to_owned())),
        SourceKind::Stdin if is_prefix => Err(Error::new(Kind::Usage, "cannot name the blob that standard input goes to")
            .with_advice("give the destination a blob name, as in https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME")),
        SourceKind::Stdin => Ok(Landing::At(dest.to_owned())),
        SourceKind::Folder | SourceKind::Pattern => {
            let mut under = dest.to_owned();
            if !is_prefix {
                under.push('/');
            }
            if let Some(name) = name.filter(|_| ask.kind == SourceKind::Folder && ask.as_subdir) {
                under.push_str(name);
                under.push('/');
            }
            Ok(Landing::Under(under))
        }
    }
}

/// The last name in a path as typed (`d/` and `d/.` end in `d`); `None` where the text does not tell (`.`, `d/..`, `/`).
pub fn last_name(source: &str) -> Option<&str> {
    source.rsplit('/').find(|part| !part.is_empty() && *part != ".").filter(|part| *part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of the table: source, destination, flags, names it lands as.
    fn rows() -> Vec<[String; 4]> {
        let text = include_str!("../../docs/landing.md");
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>()
        };
        text.lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| cells(line).try_into().unwrap_or_else(|_| panic!("four cells: {line}")))
            .collect()
    }

    /// What the table's legend says is there.
    fn legend(source: &str) -> (SourceKind, Option<&'static str>, &'static [&'static str]) {
        const TREE: &[&str] = &["a.txt", "s/b.txt"];
        match source {
            "f.txt" | "p/f.txt" => (SourceKind::File, None, &[]),
            "d" | "d/" | "p/d" | "d/." => (SourceKind::Folder, None, TREE),
            ". (in d)" | ".. (in d/s)" => (SourceKind::Folder, Some("d"), TREE),
            "/" => (SourceKind::Folder, None, TREE),
            "d/*" => (SourceKind::Pattern, None, TREE),
            "d/*.txt" => (SourceKind::Pattern, None, &["a.txt"]),
            "-" => (SourceKind::Stdin, None, &[]),
            other => panic!("{other} is not in the legend"),
        }
    }

    #[test]
    fn the_documented_table_is_what_happens() {
        let rows = rows();
        assert!(rows.len() >= 20, "{} rows", rows.len());
        for [source, dest, flags, expected] in rows {
            let (kind, real_name, tree) = legend(&source);
            let typed = source.split(" (").next().unwrap();
            let dest = dest.strip_prefix('C').unwrap().strip_prefix('/').filter(|d| !d.is_empty());
            let as_subdir = match flags.as_str() {
                "" => true,
                "--as-subdir=false" => false,
                other => panic!("unknown flag {other}"),
            };
            let landed = match land(Ask { kind, source: typed, real_name, dest, as_subdir }) {
                Ok(Landing::At(name)) => name,
                Ok(Landing::Under(prefix)) => tree.iter().map(|t| format!("{prefix}{t}")).collect::<Vec<_>>().join(", "),
                Err(error) => format!("refused ({:?})", error.kind()),
            };
            assert_eq!(landed, expected, "{source} to {dest:?} {flags}");
        }
    }

    #[test]
    fn last_names() {
        for (source, name) in [
            ("d", Some("d")),
            ("/a/d/", Some("d")),
            ("d/./", Some("d")),
            (".", None),
            ("", None),
            ("/", None),
            ("d/..", None),
            ("..", None),
            ("d/...", Some("...")),
        ] {
            assert_eq!(last_name(source), name, "{source}");
        }
    }
}
