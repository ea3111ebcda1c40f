//! Every numbered promise in `docs/semantics.md` is cited by a test (`semantics N` in a comment or a message).

use std::collections::BTreeSet;
use std::path::Path;

fn texts(dir: &Path, out: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py") && !path.ends_with("promises.rs") {
            out.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The numbers at the beginnings of list items, up to the exit codes.
fn promised(text: &str) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    for number in text.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()) {
        assert!(numbers.insert(number), "two promises have the number {number}");
    }
    numbers
}

/// The numbers after each `semantics `, also in lists: `semantics 3, 4`.
fn cited(text: &str) -> BTreeSet<u32> {
    text.split("semantics ")
        .skip(1)
        .flat_map(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ',' || c == ' ')).unwrap_or(rest.len());
            rest[..end].split(',').filter_map(|n| n.trim().parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}

#[test]
fn every_promise_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let promised = promised(&std::fs::read_to_string(root.join("docs/semantics.md")).unwrap());
    assert!(promised.len() > 20, "the list was not found");
    let mut sources = String::new();
    texts(&root.join("tests"), &mut sources);
    texts(&root.join("src"), &mut sources);
    let cited = cited(&sources);
    let uncited: Vec<_> = promised.difference(&cited).collect();
    assert!(uncited.is_empty(), "promises no test cites: {uncited:?}");
    let unknown: Vec<_> = cited.difference(&promised).collect();
    assert!(unknown.is_empty(), "tests cite promises that do not stand there: {unknown:?}");
}
