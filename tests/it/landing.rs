//! The table of `docs/landing.md`, run with real files: what the listing reports is what the table says.

use crate::sources::{found, opened, tree};
use blobjet::endpoint::Found;
use blobjet::endpoint::open::Opening;

#[tokio::test]
async fn real_sources_land_as_documented() {
    let dir = tree(&["d/a.txt", "d/s/b.txt", "p/d/a.txt", "p/d/s/b.txt", "f.txt", "p/f.txt"]);
    let text = include_str!("../../docs/landing.md");
    let mut checked = 0;
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|c| c.trim().replace('`', "")).collect();
        let [source, dest, flag, expected] = &cells[..] else { panic!("four cells: {line}") };
        let source = match source.as_str() {
            // A command's own folder and the root of the machine cannot be set up here; the rule's own test has them.
            "/" | "-" => continue,
            ". (in d)" => "d/./.",
            ".. (in d/s)" => "d/s/..",
            other => other,
        };
        let dest = dest.strip_prefix('C').and_then(|d| d.strip_prefix('/')).filter(|d| !d.is_empty()).map(str::to_owned);
        let opening = Opening { recursive: true, as_subdir: flag.is_empty(), dest, ..Opening::default() };
        let source = opened(&format!("{}/{source}", dir.path().display()), &opening).unwrap();
        let mut names: Vec<String> = found(source)
            .await
            .into_iter()
            .map(|found| match found {
                Found::Item(item) => item.target,
                other => panic!("{other:?}"),
            })
            .collect();
        names.sort();
        assert_eq!(names.join(", "), *expected, "{line}");
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}
