//! `BlobListing`: everything once, nothing asked for in vain, whatever the service's pages are like (cases 34, 44).

use crate::script::{Reply, Script, Seen, answer, refusal};
use blobjet::endpoint::blob_listing::{BlobListing, Listed};
use blobjet::endpoint::blob_pattern::BlobPattern;
use blobjet::endpoint::list_of_files::ListOfFiles;
use blobjet::endpoint::selection::{Filter, Selection};
use blobjet::error::{Kind, Result};
use blobjet::rest::model::{BlobItem, ListEntry, ListPage, Properties};
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// A service that has these blobs, and gives pages as small as the service may.
struct Shelf {
    script: Script,
}

/// A parameter of a request, decoded.
fn parameter(seen: &Seen, name: &str) -> Option<String> {
    let query = seen.target.split_once('?')?.1;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(percent_decode_str(value).decode_utf8().unwrap().into_owned())
}

/// A page from the marker on. Markers are names; every third page is empty and has a next one nevertheless.
fn page(names: &BTreeSet<String>, most: usize, seen: &Seen) -> ListPage {
    let of = |name| parameter(seen, name);
    let (prefix, marker) = (of("prefix").unwrap_or_default(), of("marker"));
    let most = most.min(of("maxresults").map_or(5000, |text| text.parse().unwrap()));
    if let Some(again) = marker.as_deref().and_then(|marker| marker.strip_prefix("gap ")) {
        return ListPage { next_marker: Some(again.to_owned()), ..ListPage::default() };
    }
    let mut entries: Vec<ListEntry> = Vec::new();
    let mut next_marker = None;
    for name in
        names.iter().filter(|name| name.starts_with(&prefix)).filter(|name| marker.as_ref().is_none_or(|from| *name >= from))
    {
        let folder = match of("delimiter") {
            Some(delimiter) => name[prefix.len()..].find(&delimiter).map(|at| &name[..=prefix.len() + at]),
            None => None,
        };
        let entry = match folder {
            Some(folder) => ListEntry::Prefix(folder.to_owned()),
            None => {
                let mut properties = Properties::default();
                properties.push("Last-Modified", "Thu, 15 Jan 2026 08:30:00 GMT");
                properties.push("Content-Length", name.len().to_string());
                ListEntry::Blob(BlobItem { name: name.clone(), properties, ..BlobItem::default() })
            }
        };
        if entries.last() == Some(&entry) {
            continue;
        }
        if entries.len() == most {
            let gap = if name.len() % 3 == 0 { "gap " } else { "" };
            next_marker = Some(format!("{gap}{name}"));
            break;
        }
        entries.push(entry);
    }
    ListPage { entries, next_marker, ..ListPage::default() }
}

impl Shelf {
    async fn of<T: Into<String>>(names: impl IntoIterator<Item = T>, most: usize) -> Shelf {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        Shelf { script: Script::start(move |_, seen| answer(200, "", &page(&names, most, seen).to_xml())).await }
    }

    fn listing(&self) -> BlobListing {
        BlobListing::new(self.script.client(), "cont".to_owned())
    }

    /// What was asked for: prefix, and a `/` where it was by folders. Pages after the first are left out.
    fn asked(&self) -> Vec<String> {
        let first = |seen: &Seen| parameter(seen, "marker").is_none();
        let shown = |seen: &Seen| {
            let by_folders = if parameter(seen, "delimiter").is_some() { " by folders" } else { "" };
            format!("{}{by_folders}", parameter(seen, "prefix").unwrap_or_default())
        };
        let mut asked: Vec<String> = self.script.seen().iter().filter(|seen| first(seen)).map(shown).collect();
        asked.sort();
        asked
    }
}

async fn run(listing: BlobListing) -> Result<Vec<Listed>> {
    let (sender, mut receiver) = mpsc::channel(1);
    let listed = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(batch) = receiver.recv().await {
            all.extend(batch);
        }
        all
    });
    listing.run(sender).await?;
    Ok(listed.await.unwrap())
}

async fn names(listing: BlobListing) -> Vec<String> {
    run(listing).await.unwrap().into_iter().map(|listed| listed.item.name).collect()
}

async fn relatives(listing: BlobListing) -> Vec<String> {
    let mut all: Vec<String> = run(listing).await.unwrap().into_iter().map(|listed| listed.relative).collect();
    all.sort();
    all
}

fn selection(rules: &[(Filter, &str)]) -> Arc<Selection> {
    let with = |selection: Selection, (filter, text): &(Filter, &str)| selection.with(*filter, text);
    Arc::new(rules.iter().try_fold(Selection::default(), with).unwrap())
}

/// Folders of all sizes, some in others, and names that sort between a folder's name and what is in it.
fn tree() -> Vec<String> {
    let mut names: Vec<String> = (0..40).map(|i| format!("big/{i:02}.txt")).collect();
    names.extend((0..30).map(|i| format!("deep/a/b/c{}/{i:02}", i % 3)));
    names.extend((0..25).map(|i| format!("many/{i:02}/x")));
    names.extend(["big", "big-1", "big.1", "big0", "a//b", "/lead", "dir/", "x/../y", "é/ü", "z"].map(str::to_owned));
    names.sort();
    names
}

// semantics 53
#[tokio::test]
async fn everything_is_listed_once_whatever_the_pages() {
    for most in [1, 2, 3, 7, 20, 1000] {
        let shelf = Shelf::of(tree(), most).await;
        let mut found = names(shelf.listing()).await;
        found.sort();
        assert_eq!(found, tree(), "pages of {most}");
        assert_eq!(names(shelf.listing().ordered()).await, tree(), "pages of {most}, in order");
    }
}

#[tokio::test]
async fn what_fits_a_page_is_one_request_and_what_does_not_goes_by_folders() {
    let shelf = Shelf::of(tree(), 1000).await;
    assert_eq!((names(shelf.listing()).await.len(), shelf.asked()), (tree().len(), vec![String::new()]));

    // Two large folders, of which one has another in it alone.
    let large = (0..60).map(|i| if i < 30 { format!("a/{i:02}") } else { format!("b/c/{i:02}") });
    let shelf = Shelf::of(large, 10).await;
    assert_eq!(names(shelf.listing()).await.len(), 60);
    let asked = shelf.asked();
    assert!(asked.contains(&" by folders".to_owned()) && asked.contains(&"a/".to_owned()), "{asked:?}");

    // Folders by the hundred, with a blob each: by folders that would be as many requests.
    let shelf = Shelf::of((0..600).map(|i| format!("{i:03}/x")), 100).await;
    assert_eq!((names(shelf.listing()).await.len(), shelf.asked()), (600, vec![String::new()]));
    // Also where the first page does not show it.
    let hidden = (0..100).map(|i| format!("0/{i:03}")).chain((0..1200).map(|i| format!("{i:04}/x")));
    let shelf = Shelf::of(hidden, 100).await;
    assert_eq!(names(shelf.listing()).await.len(), 1300);
    assert!(shelf.script.count() < 40, "{} requests", shelf.script.count());
}

// semantics 53
#[tokio::test]
async fn a_pattern_lists_its_longest_literal_beginning_and_nothing_else() {
    let logs = [
        "logs/2025-12/a.txt",
        "logs/2026-01/a.txt",
        "logs/2026-01/a.txt/under",
        "logs/2026-01/b.md",
        "logs/2026-02/x/a.txt",
        "logs/2026-02/aa.txt",
        "logsx",
    ];
    for most in [1, 2, 100] {
        let shelf = Shelf::of(logs, most).await;
        let pattern = BlobPattern::new("logs/2026-*/a*.txt");
        let found = relatives(shelf.listing().matching(pattern.clone())).await;
        assert_eq!(found, ["a.txt", "a.txt/under", "aa.txt"], "pages of {most}");
        assert!(shelf.asked().iter().all(|asked| asked.starts_with("logs/2026-")), "{:?}", shelf.asked());
        // Without what is in folders that match.
        assert_eq!(relatives(shelf.listing().matching(pattern).recursive(false)).await, ["a.txt", "aa.txt"], "pages of {most}");
    }
}

#[tokio::test]
async fn what_is_under_a_prefix_is_relative_to_its_folder() {
    let shelf = Shelf::of(["logs/a", "logs/b/c", "logs-old/a", "lo"], 100).await;
    for (prefix, expected) in [
        ("", vec!["lo", "logs-old/a", "logs/a", "logs/b/c"]),
        ("logs", vec!["logs-old/a", "logs/a", "logs/b/c"]),
        ("logs/", vec!["a", "b/c"]),
        ("logs/b", vec!["b/c"]),
        ("none/", vec![]),
    ] {
        assert_eq!(relatives(shelf.listing().under(prefix)).await, expected, "{prefix}");
    }
    assert_eq!(relatives(shelf.listing().under("logs/").recursive(false)).await, ["a"]);
}

#[tokio::test]
async fn folders_that_hold_nothing_taken_are_not_listed() {
    for most in [3, 1000] {
        let shelf = Shelf::of(tree(), most).await;
        let rules = selection(&[(Filter::ExcludePath, "big;many"), (Filter::Glob, "!deep/**")]);
        let expected = ["/lead", "a//b", "big-1", "big.1", "big0", "dir/", "x/../y", "z", "é/ü"];
        assert_eq!(relatives(shelf.listing().selecting(rules)).await, expected, "pages of {most}");
        let asked = shelf.asked();
        assert!(!asked.iter().any(|asked| asked.starts_with("big/") || asked.starts_with("deep/")), "{asked:?}");

        // Of what is to be taken alone, nothing else is asked for.
        let shelf = Shelf::of(tree(), most).await;
        let rules = selection(&[(Filter::IncludePath, "deep/a/b/c1;big;none")]);
        assert_eq!(names(shelf.listing().selecting(rules)).await.len(), 51);
        let asked = shelf.asked();
        let within = |asked: &String| ["deep/a/b/c1", "big", "none"].iter().any(|root| asked.starts_with(root));
        assert!(asked.iter().all(within), "{asked:?}");
    }
}

#[tokio::test]
async fn sizes_and_times_are_those_of_the_listing() {
    let shelf = Shelf::of(["1", "22", "333", "4444"], 100).await;
    let sized = Arc::new(Selection::default().at_least(2).at_most(3));
    assert_eq!(names(shelf.listing().selecting(sized)).await, ["22", "333"]);
    for (filter, moment, count) in [
        (Filter::IncludeAfter, "2026-01-15T08:30:00Z", 4),
        (Filter::IncludeAfter, "2026-01-15T08:30:01Z", 0),
        (Filter::IncludeBefore, "2026-01-15T08:30:00Z", 4),
        (Filter::IncludeBefore, "2026-01-15T08:29:59Z", 0),
    ] {
        assert_eq!(names(shelf.listing().selecting(selection(&[(filter, moment)]))).await.len(), count, "{filter:?} {moment}");
    }
}

#[tokio::test]
async fn folders_are_told_down_to_a_level() {
    for most in [1, 3, 1000] {
        let shelf = Shelf::of(["a", "d/b", "d/e/c", "d/e/f/g", "x//y"], most).await;
        for (levels, expected) in
            [(1, vec!["a", "d/", "x/"]), (2, vec!["a", "d/b", "d/e/", "x//"]), (9, vec!["a", "d/b", "d/e/c", "d/e/f/g", "x//y"])]
        {
            let found = run(shelf.listing().folders(NonZeroUsize::new(levels).unwrap()).ordered()).await.unwrap();
            let shown: Vec<&str> = found.iter().map(|listed| listed.relative.as_str()).collect();
            assert_eq!(shown, expected, "{levels} levels, pages of {most}");
            found.iter().for_each(|listed| assert_eq!(listed.is_folder, listed.item.properties.content_length().is_none()));
        }
        let one = shelf.listing().under("d/").folders(NonZeroUsize::MIN).selecting(selection(&[(Filter::ExcludePath, "e")]));
        assert_eq!(relatives(one).await, ["b"]);
    }
}

#[tokio::test]
async fn a_list_names_blobs_and_folders_and_what_is_missing_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    std::fs::write(&path, b"a\nd/f\nnone\nd/\nx\ne\nnone/\nb\\c\n\xff\n").unwrap();
    let list = ListOfFiles { from: path.to_str().unwrap().to_owned(), nul: false };
    // Neighbours between a name and what is in the folder of that name.
    let stored = ["r/a", "r/a-1", "r/a.1", "r/a/1", "r/a0", "r/d/f", "r/d/g", "r/e", "r/x-", "r/x/1", "r/x/2", "a"];
    for most in [1, 2, 100] {
        let shelf = Shelf::of(stored, most).await;
        for (recursive, expected, missing) in [
            (true, &["a", "a/1", "d/f", "d/f", "d/g", "e", "x/1", "x/2"][..], vec!["b\\\\c", "r/none", "r/none/", "\\xff"]),
            (false, &["a", "d/f", "e"][..], vec!["b\\\\c", "r/d/", "r/none", "r/none/", "r/x", "\\xff"]),
        ] {
            let told = Arc::new(Mutex::new(Vec::new()));
            let tell = Arc::clone(&told);
            let failing = Arc::new(move |name: String, error: blobjet::Error| {
                assert!([Kind::SourceNotFound, Kind::Name].contains(&error.kind()), "{error}");
                tell.lock().unwrap().push(name);
            });
            let listing = shelf.listing().under("r/").only(list.clone(), failing).recursive(recursive);
            assert_eq!(relatives(listing).await, expected, "pages of {most}");
            let mut told = told.lock().unwrap().clone();
            told.sort();
            let mut missing = missing;
            missing.sort_unstable();
            assert_eq!(told, missing, "pages of {most}");
        }
    }
    let absent = ListOfFiles { from: dir.path().join("absent").to_str().unwrap().to_owned(), nul: false };
    let shelf = Shelf::of(["a"], 1).await;
    let error = run(shelf.listing().only(absent, Arc::new(|_, _| {}))).await.unwrap_err();
    assert_eq!((error.kind(), shelf.script.count()), (Kind::SourceNotFound, 0));
}

// semantics 53
#[tokio::test]
async fn a_page_that_cannot_be_had_ends_the_listing_with_its_error() {
    let names: BTreeSet<String> = (0..60).map(|i| format!("{}/{i:02}", ["a", "deep"][i % 2])).collect();
    let script = Script::start(move |_, seen| match parameter(seen, "prefix") {
        Some(prefix) if prefix.starts_with("deep/") => refusal(403, "AuthorizationFailure"),
        _ => answer(200, "", &page(&names, 5, seen).to_xml()),
    })
    .await;
    for ordered in [true, false] {
        let listing = BlobListing::new(script.client(), "cont".to_owned());
        let error = run(if ordered { listing.ordered() } else { listing }).await.unwrap_err();
        assert_eq!(error.kind(), Kind::AccessRefused);
    }
}

#[tokio::test]
async fn a_listing_nobody_listens_to_any_more_ends_quietly() {
    let shelf = Shelf::of(tree(), 1).await;
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    shelf.listing().run(sender).await.unwrap();
    // Also while it waits for an answer that does not come.
    let silent = Script::start(|_, _| Reply::Silence).await;
    let (sender, receiver) = mpsc::channel(1);
    let listing = BlobListing::new(silent.client(), "cont".to_owned());
    let running = tokio::spawn(async move { listing.run(sender).await });
    drop(receiver);
    running.await.unwrap().unwrap();
}
