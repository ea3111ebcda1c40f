//! Filters where they are used: the local walk and the command line (case 44).

use crate::cli_support::World;
use crate::sources::{found, opened, recursive, tree};
use blobjet::endpoint::list_of_files::ListOfFiles;
use blobjet::endpoint::open::{Opening, Place, source};
use blobjet::endpoint::selection::{Filter, Selection};
use blobjet::endpoint::{Filtered, Found};
use blobjet::error::Kind;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

fn opening(rules: &[(Filter, &str)]) -> Opening {
    let with = |selection: Selection, (filter, text): &(Filter, &str)| selection.with(*filter, text);
    let selection = rules.iter().try_fold(Selection::default(), with).unwrap();
    Opening { as_subdir: false, selection: Arc::new(selection), ..recursive() }
}

/// What a walk takes, what it names besides, and what filters left out.
async fn walked(root: &Path, opening: &Opening) -> (Vec<String>, Vec<String>, Filtered) {
    let (mut taken, mut named, mut filtered) = (Vec::new(), Vec::new(), Filtered::default());
    for found in found(opened(root.to_str().unwrap(), opening).unwrap()).await {
        match found {
            Found::Item(item) => taken.push(item.target),
            Found::Skipped { name, .. } | Found::Failed { name, .. } => named.push(name),
            Found::Filtered(more) => {
                filtered.objects += more.objects;
                filtered.folders += more.folders;
            }
        }
    }
    taken.sort();
    named.sort();
    (taken, named, filtered)
}

fn of(objects: u64, folders: u64) -> Filtered {
    Filtered { objects, folders }
}

// semantics 51
#[tokio::test]
async fn a_walk_takes_what_the_filters_take_and_looks_into_no_other_folder() {
    let dir = tree(&["a.txt", "b.md", "build/x.o", "build/deep/y.txt", "buildings.txt", "src/a.rs", "src/sub/b.rs"]);
    let root = dir.path();
    for (rules, expected, filtered) in [
        (&[(Filter::IncludePattern, "*.txt")][..], &["a.txt", "build/deep/y.txt", "buildings.txt"][..], of(4, 0)),
        (&[(Filter::ExcludePath, "build")], &["a.txt", "b.md", "buildings.txt", "src/a.rs", "src/sub/b.rs"], of(0, 1)),
        (&[(Filter::Glob, "src/**/*.rs")], &["src/a.rs", "src/sub/b.rs"], of(3, 1)),
        (&[(Filter::IncludePath, "src/sub;b.md"), (Filter::ExcludePattern, "*.md")], &["src/sub/b.rs"], of(4, 1)),
        (
            &[(Filter::IncludeRegex, "^b"), (Filter::ExcludeRegex, r"\.o$")],
            &["b.md", "build/deep/y.txt", "buildings.txt"],
            of(4, 0),
        ),
    ] {
        assert_eq!(
            walked(root, &opening(rules)).await,
            (expected.iter().map(|s| (*s).to_owned()).collect(), vec![], filtered),
            "{rules:?}"
        );
    }
}

// semantics 51
#[tokio::test]
async fn what_filters_leave_out_is_not_named_whatever_it_is() {
    let dir = tree(&["keep/a", "target/x", "no/a", "other/d/e"]);
    let root = dir.path();
    symlink("nowhere", root.join("broken.tmp")).unwrap();
    symlink("other", root.join("linked")).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"bad\xff.tmp")), "").unwrap();
    fs::set_permissions(root.join("no"), fs::Permissions::from_mode(0o000)).unwrap();
    let rules = opening(&[(Filter::ExcludePattern, "*.tmp;linked"), (Filter::ExcludePath, "target;no;other")]);
    assert_eq!(walked(root, &rules).await, (vec!["keep/a".to_owned()], vec![], of(3, 3)));
    // A link that is followed is filtered as what it is.
    let follow =
        Opening { follow_symlinks: true, ..opening(&[(Filter::IncludePattern, "e"), (Filter::ExcludePath, "other;no")]) };
    assert_eq!(walked(root, &follow).await.0, ["linked/d/e"]);
    fs::set_permissions(root.join("no"), fs::Permissions::from_mode(0o755)).unwrap();
}

// semantics 51
#[tokio::test]
async fn sizes_and_times_are_those_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    for (name, len, seconds) in [("small", 1, 1000), ("middle", 10, 2000), ("large", 100, 3000)] {
        let path = dir.path().join(name);
        fs::write(&path, vec![0; len]).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
    let sized = |selection| Opening { selection: Arc::new(selection), ..opening(&[]) };
    for (opening, expected) in [
        (sized(Selection::default().at_least(10)), vec!["large", "middle"]),
        (sized(Selection::default().at_most(10)), vec!["middle", "small"]),
        (opening(&[(Filter::IncludeAfter, "1970-01-01T00:33:20Z")]), vec!["large", "middle"]),
        (opening(&[(Filter::IncludeBefore, "1970-01-01T00:33:20Z")]), vec!["middle", "small"]),
    ] {
        assert_eq!(walked(dir.path(), &opening).await.0, expected);
    }
    // A source that is one file is filtered too, by its name.
    let one = dir.path().join("small");
    assert_eq!(walked(&one, &sized(Selection::default().at_least(2))).await, (vec![], vec![], of(1, 0)));
    assert_eq!(walked(&one, &opening(&[(Filter::IncludePattern, "s*")])).await.0, ["small"]);
    let error = source(&Place::Stdio, &Opening { dest: Some("x".into()), ..sized(Selection::default().at_least(2)) });
    assert_eq!(error.err().map(|e| e.kind()), Some(Kind::Usage));
}

// semantics 51
#[tokio::test]
async fn filters_combine_with_a_pattern_and_with_a_list_of_files() {
    let dir = tree(&["d/a.txt", "d/b.md", "d/s/c.txt", "d/s/d.md", "d/t/e.txt"]);
    let rules = [(Filter::IncludePattern, "*.txt"), (Filter::ExcludePath, "t")];
    let pattern = dir.path().join("d/*");
    assert_eq!(walked(&pattern, &opening(&rules)).await, (vec!["a.txt".into(), "s/c.txt".into()], vec![], of(2, 1)));
    let list = dir.path().join("list");
    fs::write(&list, "b.md\ns\nt\n").unwrap();
    let list = ListOfFiles { from: list.to_str().unwrap().to_owned(), nul: false };
    let listed = Opening { list_of_files: Some(list), ..opening(&rules) };
    assert_eq!(walked(&dir.path().join("d"), &listed).await, (vec!["s/c.txt".into()], vec![], of(2, 1)));
}

// semantics 51, 52
#[test]
fn the_command_line_filters_counts_and_refuses_what_is_wrong() {
    let world = World::new();
    for name in ["d/a.txt", "d/b.md", "d/foo/x.txt", "d/foobar.txt", "d/s/c.txt"] {
        world.write(name, "x");
    }
    let ran = world.run(&[
        "copy",
        "d",
        "dev://box",
        "--recursive",
        "--include-pattern=*.txt",
        "--include-pattern",
        "*.none",
        "--exclude-path",
        "foo",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("Total Number of Transfers: 3\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nleft out by filters: 1 file, 1 folder not looked into"), "{}", ran.stdout);
    let listed = world.run(&["list", "dev://box"]).stdout;
    assert_eq!(listed, "d/a.txt; Content Length: 1 B\nd/foobar.txt; Content Length: 1 B\nd/s/c.txt; Content Length: 1 B\n");

    let ran = world.run(&["copy", "d", "dev://box", "--recursive", "--glob", "!**/*.txt", "--dry-run", "--output-type=json"]);
    let summary = ran.json().pop().unwrap();
    assert_eq!((&summary["total"], &summary["filtered_objects"]), (&1.into(), &4.into()), "{summary}");

    let ran = world.run(&["copy", "d", "dev://box", "--recursive", "--include-regex", "nothing is called so"]);
    assert!(ran.code == 0 && ran.stderr.contains("filters leave out all of d"), "{ran:?}");

    for (flag, value, words) in [
        ("--exclude-regex", "a(", "unclosed group"),
        ("--glob", "[", "not closed"),
        ("--include-pattern", "a/*", "--glob"),
        ("--include-after", "soon", "2026-01-31"),
        ("--min-size", "big", "--min-size"),
    ] {
        let ran = world.run(&["copy", "d", "dev://box", "--recursive", flag, value]);
        assert!(ran.code == 2 && ran.stderr.contains(flag) && ran.stderr.contains(words), "{flag}: {ran:?}");
    }
    let ran = world.run(&["copy", "d", "dev://box", "--recursive", "--min-size=2K", "--max-size=1K"]);
    assert!(ran.code == 2 && ran.stderr.contains("no size is at least 2 KiB and at most 1 KiB"), "{ran:?}");
}

// semantics 52
#[test]
fn a_path_is_explained_and_nothing_is_sent() {
    let world = World::new();
    world.write("d/a.txt", "x");
    world.write("d/tmp/b.txt", "x");
    let args = ["copy", "d", "dev://box", "--recursive", "--exclude-path=tmp", "--explain=d/a.txt", "--explain", "tmp/b.txt"];
    let ran = world.run(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines = "d/a.txt: taken, to dev://box/d/a.txt: no filter leaves it out\n\
                 tmp/b.txt: not taken: the folder tmp is not looked into: --exclude-path tmp fits it\n";
    assert_eq!(ran.stdout, lines);
    assert_eq!(world.run(&["list", "dev://box"]).code, 3, "nothing was made");
    assert_eq!(world.run(&["copy", "-", "dev://box/x", "--explain=a"]).code, 2);
}

/// A job is gone on with under the filters it was begun with.
// semantics 35
#[test]
fn a_resumed_job_keeps_its_filters() {
    let world = World::new();
    for name in ["d/a.txt", "d/b.md", "d/t/d.txt"] {
        world.write(name, "x");
    }
    symlink("../later", world.path().join("d/c.txt")).unwrap();
    let flags = ["--include-pattern=a.*", "--include-pattern=c.*;d.*", "--exclude-path=t", "--follow-symlinks", "--recursive"];
    let ran = world.run(&[&["copy", "d", "dev://box"][..], &flags[..]].concat());
    assert!(ran.code == 1 && ran.stdout.contains("Transfers Completed: 1"), "{ran:?}");
    world.write("later", "x");
    let id = world.run(&["jobs", "list", "--output-type=json"]).json()[0]["job_id"].as_str().unwrap().to_owned();
    assert_eq!(world.run(&["jobs", "resume", &id]).code, 0);
    let listed = world.run(&["list", "dev://box"]).stdout;
    assert_eq!(listed, "d/a.txt; Content Length: 1 B\nd/c.txt; Content Length: 1 B\n");
}
