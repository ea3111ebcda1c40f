//! `--explain PATH` of every command that takes filters, and what is said where nothing is left to do.

use crate::cli_support::{Ran, World};
use crate::world::World as Service;
use blobjet::attributes::Attributes;

/// A service with these blobs, and the program with its key.
async fn with(names: &[&str]) -> (Service, World) {
    let service = Service::new().await;
    for name in names {
        service.put(name, &Attributes::default()).await;
    }
    let world = service.program();
    (service, world)
}

/// Each path that was asked about, why it is taken or not, and where it lands if it does.
fn explained(ran: &Ran) -> Vec<(String, bool, String, Option<String>)> {
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = |line: &serde_json::Value, name: &str| line[name].as_str().map(str::to_owned);
    let lines = ran.json().into_iter().filter(|line| line["type"] == "explained");
    lines
        .map(|line| {
            let taken = line["taken"].as_bool().unwrap();
            (text(&line, "path").unwrap(), taken, text(&line, "why").unwrap(), text(&line, "destination"))
        })
        .collect()
}

fn check(ran: &Ran, wanted: &[(&str, bool, &str)]) {
    let explained = explained(ran);
    let seen: Vec<(&str, bool, &str)> =
        explained.iter().map(|(path, taken, why, _)| (path.as_str(), *taken, why.as_str())).collect();
    assert_eq!(seen, wanted);
}

/// semantics 91: what a change would do to a blob is said, and nothing is done.
#[tokio::test(flavor = "multi_thread")]
async fn changes_are_explained_and_not_made() {
    let (service, world) = with(&["d/a.txt", "d/b.log", "d/tmp/c.txt", "e"]).await;
    let stub = Attributes { metadata: vec![("hdi_isfolder".into(), "true".into())], ..Attributes::default() };
    service.put("d/f", &stub).await;
    service.put("d", &stub).await;
    service.keep_deleted().await;
    assert_eq!(world.run(&["remove", &service.at("e")]).code, 0);
    let before = service.emulator.seen().len();
    let names = service.names().await;

    let json = "--output-type=json";
    let filters = ["--recursive", "--exclude-pattern=*.log", "--exclude-path=tmp", json];
    let paths = ["--explain=a.txt", "--explain=d/b.log", "--explain=tmp/c.txt", "--explain=d/zip", "--explain=d/a.txt"];
    let ran = world.run(&[&["remove", &service.at("d")][..], &filters, &paths].concat());
    check(
        &ran,
        &[
            ("a.txt", true, "no filter leaves it out"),
            ("d/b.log", false, "--exclude-pattern *.log fits it"),
            ("tmp/c.txt", false, "the folder tmp is not looked into: --exclude-path tmp fits it"),
            ("d/zip", false, "there is no such blob; its name is one that is taken"),
            ("d/a.txt", true, "no filter leaves it out"),
        ],
    );
    let ran = world.run(&["remove", &service.at("d"), "--recursive", "--explain=d", json]);
    check(&ran, &[("d", true, "it is the entry of the folder itself")]);
    // Neither asked about nor deleted as a whole.
    let ran = world.run(&["remove", &service.at(""), "--recursive", "--explain=d/a.txt", json]);
    check(&ran, &[("d/a.txt", true, "no filter leaves it out")]);
    let ran = world.run(&["remove", &service.at("d/*"), "--explain=d/a.txt", "--explain=d/tmp/c.txt", "--explain=x", json]);
    check(
        &ran,
        &[
            ("d/a.txt", true, "no filter leaves it out"),
            ("d/tmp/c.txt", false, "it is in a folder: folder (--recursive takes it)"),
            ("x", false, "the pattern does not match it"),
        ],
    );
    let ran = world.run(&["remove", &service.at("d/a.txt"), "--explain=a.txt", "--explain=b", json]);
    check(
        &ran,
        &[
            ("a.txt", true, "it is the one blob that is named; whether it is there was not asked"),
            ("b", false, "the blob d/a.txt alone is named"),
        ],
    );
    world.write("names", "tmp\na.txt\n");
    let list = ["--list-of-files=names", "--explain=a.txt", "--explain=b.log", "--explain=tmp/c.txt", json];
    let ran = world.run(&[&["remove", &service.at("d")][..], &list].concat());
    check(
        &ran,
        &[
            ("a.txt", true, "no filter leaves it out"),
            ("b.log", false, "the list of files names neither it nor a folder it is in"),
            ("tmp/c.txt", false, "it is in a folder: folder (--recursive takes it)"),
        ],
    );
    let set = ["set-properties", &service.at("d"), "--recursive", "--metadata=a=b", "--explain=f", "--explain=a.txt", json];
    check(
        &world.run(&set),
        &[("f", false, "it is skipped: a folder, and not a blob with content"), ("a.txt", true, "no filter leaves it out")],
    );
    let undelete = ["undelete", &service.at(""), "--recursive", "--explain=e", "--explain=d/a.txt", json];
    check(&world.run(&undelete), &[("e", true, "no filter leaves it out"), ("d/a.txt", false, "it is not deleted")]);

    assert!(service.emulator.seen()[before..].iter().all(|seen| ["GET", "HEAD"].contains(&seen.method.as_str())));
    assert_eq!(service.names().await, names);
    assert_eq!(world.run(&["jobs", "list", json]).json().iter().filter(|line| line["type"] == "job").count(), 1);
}

/// semantics 91: of what is copied from blobs it is also said where it lands.
#[tokio::test(flavor = "multi_thread")]
async fn copies_from_blobs_are_explained() {
    let (service, world) = with(&["d/a.txt", "d/b.log", "d/../c.txt", "d/dir/"]).await;
    let json = "--output-type=json";
    let paths = ["--explain=a.txt", "--explain=b.log", "--explain=../c.txt", "--explain=dir/", "--explain=d/a.txt"];
    let filters = ["--recursive", "--exclude-pattern=*.log", json];
    let (place, other) = (service.at("d"), format!("{}/other/x", service.emulator.url()));
    let ran = world.run(&[&["copy", &place, "out"][..], &filters, &paths].concat());
    let seen = explained(&ran);
    let at_a = Some("out/d/a.txt".to_owned());
    assert_eq!(seen[0], ("a.txt".into(), true, "no filter leaves it out".into(), at_a.clone()));
    assert_eq!(seen[1], ("b.log".into(), false, "--exclude-pattern *.log fits it".into(), None));
    assert!(!seen[2].1 && seen[2].2.contains(".."), "{seen:?}");
    assert_eq!(seen[3], ("dir/".into(), false, "it is skipped: marks a folder and has no content".into(), None));
    assert_eq!(seen[4].3, at_a);
    assert!(!world.path().join("out").exists());
    let ran = world.run(&[&["copy", &place, &other][..], &filters, &paths[..2]].concat());
    let seen = explained(&ran);
    assert_eq!(seen[0].3, Some(format!("{other}/d/a.txt")));
    assert!(!seen[1].1);
    let one = ["copy", &service.at("d/b.log"), "new.log", "--explain=b.log", "--explain=a.txt", json];
    let seen = explained(&world.run(&one));
    assert_eq!(seen[0], ("b.log".into(), true, "no filter leaves it out".into(), Some("new.log".into())));
    assert_eq!(seen[1], ("a.txt".into(), false, "the source is the blob d/b.log alone".into(), None));
    let nowhere = format!("{}/nowhere/d", service.emulator.url());
    for args in [["copy", &nowhere, "out", "--recursive"], ["remove", &nowhere, "--yes", "--recursive"]] {
        let ran = world.run(&[&args[..], &["--explain=a"]].concat());
        assert_eq!(ran.code, 3, "{ran:?}");
    }
}

/// semantics 92: where nothing is left to do it is said whether filters are why, and how many they left out.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_left_to_do_has_a_reason() {
    let (service, world) = with(&["d/a.txt", "d/b.txt"]).await;
    let place = service.at("d");
    for (command, verb) in [
        (&["remove"][..], "delete"),
        (&["set-properties", "--metadata=a=b"], "change"),
        (&["undelete"], "undelete"),
        (&["copy"], "transfer"),
    ] {
        let to: &[&str] = if command[0] == "copy" { &["out"] } else { &[] };
        let more = ["--recursive", "--include-pattern=*.zip", "--output-type=json"];
        let ran = world.run(&[command, &[&place], to, &more].concat());
        let said = ran.json().into_iter().find(|line| line["type"] == "warning").unwrap_or_else(|| panic!("{ran:?}"));
        let wanted = format!("nothing to {verb}: filters leave out all of {place}");
        assert_eq!((ran.code, said["message"].as_str()), (0, Some(wanted.as_str())), "{ran:?}");
        assert_eq!(ran.json().pop().unwrap()["filtered_objects"], 2, "{ran:?}");
    }
    for command in [&["remove"][..], &["set-properties", "--metadata=a=b"]] {
        let ran = world.run(&[command, &[&service.at("x*")]].concat());
        assert!(ran.code == 0 && ran.stderr.contains(": no blob matches http"), "{ran:?}");
    }
    assert_eq!(service.names().await.len(), 2);
}

/// semantics 93: an empty prefix is no error and an empty container not even worth a word; one that is not there is.
#[tokio::test(flavor = "multi_thread")]
async fn listing_nothing_is_said_and_no_error() {
    let (service, world) = with(&["d/a.txt"]).await;
    let empty = format!("{}/empty", service.emulator.url());
    assert_eq!(world.run(&["make", &empty]).code, 0);
    for command in ["list", "du"] {
        for (place, filter, said) in [
            (service.at("nothing"), "", "warning: nothing found: no blob matches cont/nothing\n"),
            (service.at("d/*.zip"), "", "warning: nothing found: no blob matches cont/d/*.zip\n"),
            (service.at(""), "--include-pattern=*.zip", "warning: nothing found: filters leave out all of cont\n"),
            (empty.clone(), "", ""),
        ] {
            let args = [command, &place, filter].into_iter().filter(|arg| !arg.is_empty()).collect::<Vec<_>>();
            let ran = world.run(&args);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, said), "{ran:?}");
        }
        let ran = world.run(&[command, &format!("{}/nowhere", service.emulator.url())]);
        assert_eq!(ran.code, 3, "{ran:?}");
    }
}
