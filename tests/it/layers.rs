//! The arrows between layers, checked by reading `use crate::` and `crate::` paths in the sources.

use std::path::{Path, PathBuf};

/// What each top module may import from the crate. The vocabulary is open to all and imports nothing but itself.
const VOCABULARY: &[&str] = &["attributes", "chunks", "ciphers", "crc64", "error", "md5_lanes", "secret", "units"];

const ARROWS: &[(&str, &[&str])] = &[
    ("rest", &["rest"]),
    ("endpoint", &["endpoint", "rest"]),
    ("transfer", &["transfer", "endpoint"]),
    ("emulator", &["emulator", "rest::auth", "rest::model", "rest::location", "rest::headers"]),
    ("cli", &["cli", "transfer", "endpoint", "rest", "emulator"]),
];

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Every path after `crate::` in a file, with grouped imports (`crate::{a, b::c}`) taken apart one level.
fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.split("crate::").skip(1) {
        let end = line.find(|c: char| !(c.is_alphanumeric() || "_:{".contains(c))).unwrap_or(line.len());
        match line[..end].split_once('{') {
            Some(("", _)) => {
                let group = line.find(';').map_or(line, |semi| &line[..semi]);
                found.extend(group.trim_matches(['{', '}']).split(',').map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()));
            }
            Some((head, _)) => found.push(head.trim_end_matches(':').to_owned()),
            None => found.push(line[..end].trim_end_matches(':').to_owned()),
        }
    }
    found
}

#[test]
fn arrows_point_one_way() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let top = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        if top == "lib" || top == "main" {
            continue;
        }
        let allowed: &[&str] = ARROWS.iter().find(|(name, _)| *name == top).map_or(&[], |(_, to)| to);
        for import in imports(&std::fs::read_to_string(&file).unwrap()) {
            let head = import.split("::").next().unwrap();
            let ok = VOCABULARY.contains(&head)
                || ["Error", "Result", "Kind"].contains(&head)
                || allowed.iter().any(|a| import == *a || import.starts_with(&format!("{a}::")));
            if !ok {
                wrong.push(format!("{}: crate::{import}", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "imports against the arrows:\n{}", wrong.join("\n"));
}

#[test]
fn the_checker_sees_grouped_and_inline_imports() {
    let text = "use crate::rest::{blob, client};\nuse crate::{error::Error, cli::x};\nfn f() { crate::transfer::go() }";
    assert_eq!(imports(text), ["rest", "error::Error", "cli::x", "transfer::go"]);
}

#[test]
fn the_engine_never_speaks_http() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/transfer");
    let mut files = Vec::new();
    rust_files(&dir, &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in ["http::", "http1", "StatusCode", "HeaderMap"] {
            assert!(!text.contains(word), "{} mentions {word}", file.display());
        }
    }
}
