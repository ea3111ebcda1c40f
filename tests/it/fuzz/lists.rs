//! Lists of files as any tool may write them.

use super::edits::Language;
use crate::sources::{found, opened, recursive, tree};
use blobjet::endpoint::Found;
use blobjet::endpoint::list_of_files::ListOfFiles;
use blobjet::endpoint::open::Opening;
use std::panic::AssertUnwindSafe;
use tokio::runtime::Builder;

const LIST: Language = Language {
    seeds: &["a\nb c\ns\n", "\u{feff}./a\r\n\r\ns/x\r\nmissing\r\n", "a\0s/x\0b c"],
    words: &["../", "/", "..", "\n", "\r\n", "\0", "./", "outside", "s/../", "//", "\u{feff}", "\\", "\u{e9}", "*", "~", "-"],
};

/// Semantics 13 and 16: whatever a list says, what is taken lies within the folder, and each entry is accounted for.
#[test]
fn lists_of_files() {
    let dir = tree(&["d/a", "d/b c", "d/s/x", "outside"]);
    let (folder, list) = (dir.path().join("d"), dir.path().join("list"));
    let (folder, list) = (folder.to_str().unwrap().to_owned(), list.to_str().unwrap().to_owned());
    let runtime = AssertUnwindSafe(Builder::new_current_thread().enable_all().build().unwrap());
    bolero::check!().with_iterations(300).for_each(move |bytes: &[u8]| {
        std::fs::write(&list, LIST.text(bytes)).unwrap();
        let from = ListOfFiles { from: list.clone(), nul: bytes.len().is_multiple_of(2) };
        let source = opened(&folder, &Opening { list_of_files: Some(from), ..recursive() }).unwrap();
        for found in runtime.block_on(found(source)) {
            if let Found::Item(item) = found {
                assert!(["d/a", "d/b c", "d/s/x"].contains(&item.target.as_str()), "{item:?}");
                assert!(item.source.starts_with(&folder), "{item:?}");
            }
        }
    });
}
