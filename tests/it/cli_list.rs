//! `list` and `du` as people use them (cases 31 to 34).

use crate::cli_support::{World, emulator};
use crate::world::client;
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::rest::auth::{Inputs, Need};
use blobjet::rest::blob::{Blob, DeleteSnapshots};
use blobjet::rest::client::{Client, Op};
use blobjet::rest::container::Container;
use blobjet::rest::request::Request;
use bytes::Bytes;
use http::Method;

/// A client of an emulator, with a container `box` in it.
async fn with_box(emulator: &blobjet::emulator::Emulator) -> Client {
    let inputs = Inputs { account: Some(emulator.account().to_owned()), key: Some(emulator.key().clone()), ..Inputs::default() };
    let client = client(&emulator.url(), &inputs);
    assert!(Container::new(&client, "box").create().await.unwrap());
    client
}

async fn put(client: &Client, name: &str, len: usize) {
    let data = Chunks::from(Bytes::from(vec![b'x'; len]));
    let crc = data.crc64();
    let attributes = Attributes { content_type: Some("text/plain".into()), ..Attributes::default() };
    Blob::new(client, "box", name).put_blob(&data, crc, &attributes, Replace::Always).await.unwrap();
}

/// Names of lines, without what follows them.
fn names(stdout: &str) -> Vec<&str> {
    stdout.lines().map(|line| line.split(';').next().unwrap()).collect()
}

// semantics 53
#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_sorted_and_cut_at_a_level() {
    let emulator = emulator().await;
    let client = with_box(&emulator).await;
    for (name, len) in
        [("a.txt", 3), ("logs/1/x.gz", 2000), ("logs/1/y.txt", 5), ("logs/2/x.gz", 40), ("logs-old", 1), ("logs/*", 7)]
    {
        put(&client, name, len).await;
    }
    let mut world = World::new();
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    let listed = |path: &str, more: &[&str]| {
        let ran = world.run(&[&["list", &format!("{url}{path}")][..], more].concat());
        assert_eq!(ran.code, 0, "{path} {more:?}: {ran:?}");
        ran.stdout
    };
    let all = ["a.txt", "logs-old", "logs/*", "logs/1/x.gz", "logs/1/y.txt", "logs/2/x.gz"];
    for (path, more, expected) in [
        ("", &[][..], &all[..]),
        ("", &["--sort=none", "--include-pattern=*.gz"], &["logs/1/x.gz", "logs/2/x.gz"]),
        ("", &["--sort=size"], &["logs/1/x.gz", "logs/2/x.gz", "logs/*", "logs/1/y.txt", "a.txt", "logs-old"]),
        ("", &["--min-size=5", "--max-size=40"], &["logs/*", "logs/1/y.txt", "logs/2/x.gz"]),
        ("", &["--glob=logs/*/*.gz", "--exclude-path=logs/2"], &["logs/1/x.gz"]),
        ("", &["--depth=1"], &["a.txt", "logs-old", "logs/"]),
        ("/logs/", &["--depth", "1"], &["logs/*", "logs/1/", "logs/2/"]),
        ("/logs", &[], &all[1..]),
        ("/logs/*/x.gz", &[], &["logs/1/x.gz", "logs/2/x.gz"]),
        // semantics 94
        ("/logs/%3F/*.txt", &[], &["logs/1/y.txt"]),
        ("/logs/*", &["--depth=1"], &["logs/*", "logs/1/", "logs/2/"]),
        ("/none", &[], &[]),
    ] {
        assert_eq!(names(&listed(path, more)), expected, "{path} {more:?}");
    }
    world.write("names", "1/y.txt\n2\n");
    assert_eq!(names(&listed("/logs", &["--list-of-files=names"])), ["logs/1/y.txt", "logs/2/x.gz"]);
    world.write("names", "1/y.txt\nnone\n");
    let ran = world.run(&["list", &format!("{url}/logs"), "--list-of-files=names"]);
    assert!(
        ran.code == 1 && ran.stdout == "logs/1/y.txt; Content Length: 5 B\n" && ran.stderr.contains("cannot find logs/none"),
        "{ran:?}"
    );

    assert_eq!(
        listed("/a", &["--machine-readable", "--running-tally"]),
        "a.txt; Content Length: 3\n\nFile count: 1\nTotal file size: 3\n"
    );
    let text = listed("/a", &["--properties=ContentType;BlobType;LeaseState"]);
    assert_eq!(text, "a.txt; ContentType: text/plain; BlobType: BlockBlob; LeaseState: available; Content Length: 3 B\n");

    let explained = listed(
        "/logs/",
        &["--exclude-path=2", "--max-size=5", "--explain=1/y.txt", "--explain=logs/2/x.gz", "--explain=1/x.gz", "--explain=z"],
    );
    let expected = "1/y.txt: taken: no filter leaves it out\n\
                    logs/2/x.gz: not taken: the folder 2 is not looked into: --exclude-path 2 fits it\n\
                    1/x.gz: not taken: it is larger than --max-size 5 B\n\
                    z: not taken: there is no such blob; its name is one that is taken\n";
    assert_eq!(explained, expected);
    assert_eq!(listed("/*/1", &["--explain=a.txt"]), "a.txt: not taken: the pattern does not match it\n");

    for (more, words) in [
        (&["--properties=Colour"][..], "there is no property Colour"),
        (&["--depth=1", "--include=snapshots"], "--depth"),
        (&["--depth=0"], "--depth"),
        (&["--include-regex=("], "--include-regex"),
    ] {
        let ran = world.run(&[&["list", &url][..], more].concat());
        assert!(ran.code == 2 && ran.stderr.contains(words), "{more:?}: {ran:?}");
    }
    let account = emulator.url();
    assert_eq!(world.run(&["list", &account]).stdout, "box\n");
    assert_eq!(world.run(&["list", &account, "--glob=*"]).code, 2);
    assert_eq!(world.run(&["list", &format!("{account}/none")]).code, 3);
}

/// What is listed besides the blobs as they are.
// semantics 53
#[tokio::test(flavor = "multi_thread")]
async fn snapshots_deleted_and_uncommitted_blobs_are_listed_when_asked_for() {
    let emulator = emulator().await;
    let client = with_box(&emulator).await;
    let send = async |request: Request, what: &'static str| {
        client.send(request, Op::new(what, Need::WRITE)).await.unwrap();
    };
    let policy = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>3</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    let properties = Request::new(Method::PUT, client.location().account_path());
    let properties = properties.query("restype", "service").query("comp", "properties");
    send(properties.body(Chunks::from(Bytes::from_static(policy.as_bytes()))), "set properties of").await;
    put(&client, "kept", 2).await;
    let path = client.location().blob_path("box", "kept");
    send(Request::new(Method::PUT, path).query("comp", "snapshot"), "snapshot").await;
    put(&client, "gone", 3).await;
    assert!(Blob::new(&client, "box", "gone").delete(DeleteSnapshots::Refuse).await.unwrap());
    let data = Chunks::from(Bytes::from_static(b"x"));
    Blob::new(&client, "box", "staged").put_block("AAAA", &data, data.crc64()).await.unwrap();

    let mut world = World::new();
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    let listed = |include: &str| world.run(&["list", &url, include]).stdout;
    assert_eq!(listed("--sort=name"), "kept; Content Length: 2 B\n");
    assert_eq!(
        listed("--include=deleted;uncommitted"),
        "gone; Deleted; Content Length: 3 B\nkept; Content Length: 2 B\nstaged; Uncommitted; Content Length: 0 B\n"
    );
    let snapshots = listed("--include=snapshots");
    assert!(snapshots.starts_with("kept; Snapshot: 20") && snapshots.lines().count() == 2, "{snapshots}");
    let json = world.run(&["list", &url, "--include=deleted", "--output-type=json"]).json();
    assert_eq!((&json[0]["name"], &json[0]["deleted"]), (&"gone".into(), &true.into()), "{json:?}");
    assert!(json[1]["etag"].is_string() && json[1].get("deleted").is_none(), "{json:?}");
}

/// Names that no terminal should act on, and one the service lists in another form.
// semantics 54
#[tokio::test(flavor = "multi_thread")]
async fn odd_names_are_listed_as_they_are_and_harm_no_terminal() {
    let emulator = emulator().await;
    let client = with_box(&emulator).await;
    let odd = ["%2F", "..", "/lead", "[x] ", "a//b", "a\u{202e}b", "a\u{ffff}/b c", "dir/", "e\u{301}", "\u{e9}", "x/../y", "😀"];
    for name in odd {
        put(&client, name, 1).await;
    }
    let mut world = World::new();
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    let json = world.run(&["list", &url, "--output-type=json"]).json();
    let mut found: Vec<&str> = json.iter().filter_map(|line| line["name"].as_str()).collect();
    found.sort_unstable();
    let mut expected = odd;
    expected.sort_unstable();
    assert_eq!(found, expected);
    let text = world.run(&["list", &url]).stdout;
    assert!(text.contains("a\\u{202e}b;") && !text.contains('\u{202e}'), "{text}");
    let one = world.run(&["list", &url, "--glob=a\u{ffff}/*", "--output-type=json"]).json();
    assert_eq!(one[0]["name"], "a\u{ffff}/b c");
}

// semantics 55
#[tokio::test(flavor = "multi_thread")]
async fn du_adds_up_by_folder_tier_and_type() {
    let emulator = emulator().await;
    let client = with_box(&emulator).await;
    for (name, len) in [("a", 1), ("d/b", 1024), ("d/e/c", 1024), ("d-1", 4), ("f/g", 2)] {
        put(&client, name, len).await;
    }
    let mut world = World::new();
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    let ran = |path: &str, more: &[&str]| world.run(&[&["du", &format!("{url}{path}")][..], more].concat());
    let text = ran("", &[]).stdout;
    let all = format!(
        "       2 KiB       2 blobs  d/\n         2 B        1 blob  f/\n    2.01 KiB       5 blobs  {url}\nby tier: Hot 2.01 KiB in 5 blobs\nby type: BlockBlob 2.01 KiB in 5 blobs\n"
    );
    assert_eq!(text, all);
    for (path, more, expected) in [
        ("", &["--depth=0"][..], format!("2055\t5\t{url}\n")),
        ("", &["--depth=2"], format!("1024\t1\td/e/\n2048\t2\td/\n2\t1\tf/\n2055\t5\t{url}\n")),
        ("/d/", &[], format!("1024\t1\td/e/\n2048\t2\t{url}/d/\n")),
        ("", &["--exclude-path=d", "--depth=0"], format!("7\t3\t{url}\n")),
        ("/*/*", &["--include-pattern=b;g"], format!("1024\t1\td/\n2\t1\tf/\n1026\t2\t{url}/%2A/%2A\n")),
    ] {
        let ran = ran(path, &[&["--machine-readable"][..], more].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, expected.as_str()), "{path} {more:?}");
    }
    let json = ran("", &["--output-type=json"]).json();
    let last = json.last().unwrap();
    assert_eq!(
        (&last["type"], &last["bytes"], &last["by_tier"]["Hot"]["count"]),
        (&"usage_totals".into(), &2055.into(), &5.into())
    );
    assert_eq!(world.run(&["du", &emulator.url()]).code, 2);
    assert_eq!(world.run(&["du", &format!("{}/none", emulator.url())]).code, 3);
}

/// Case 33: names as long as the service takes them are listed, added up and found again; longer ones are found nowhere, and that is
/// said.
// semantics 53, 55
#[tokio::test(flavor = "multi_thread")]
async fn names_at_the_limit_are_listed_like_others() {
    let emulator = emulator().await;
    let client = with_box(&emulator).await;
    // "Naming and referencing containers, blobs, and metadata": 1,024 characters, 254 segments.
    let long = format!("long/{}", "ü".repeat(1019));
    let deep = vec!["d"; 254].join("/");
    let component = format!("c/{}", "c".repeat(255));
    for name in [&long, &deep, &component] {
        put(&client, name, 3).await;
    }
    let mut world = World::new();
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    let mut all = [component.as_str(), &deep, &long];
    all.sort_unstable();
    assert_eq!(names(&world.run(&["list", &url]).stdout), all);
    let json = world.run(&["list", &url, "--output-type", "json"]).json();
    assert_eq!(json.iter().filter_map(|line| line["name"].as_str()).collect::<Vec<_>>(), all);
    for (path, more, expected) in [
        (long.as_str(), &[][..], long.as_str()),
        (&deep[..deep.len() - 1], &[], &deep),
        (&component, &[], &component),
        ("", &["--glob", "d/**/d"], &deep),
        ("", &["--include-regex", "^.{1024}$"], &long),
        ("", &["--include-path", &deep[..deep.len() - 2]], &deep),
        ("long/*", &[], &long),
    ] {
        let ran = world.run(&[&["list", &format!("{url}/{path}")][..], more].concat());
        assert_eq!((ran.code, names(&ran.stdout)), (0, vec![expected]), "{path:?} {more:?}");
    }
    assert_eq!(names(&world.run(&["list", &url, "--depth", "1"]).stdout), ["c/", "d/", "long/"]);
    // A folder for each of the 253, and what is in them all.
    let ran = world.run(&["du", &format!("{url}/{}", &deep[..deep.len() - 1]), "--machine-readable"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines = world.run(&["du", &url, "--depth", "300", "--output-type", "json"]).json();
    assert_eq!(lines.iter().filter(|line| line["name"].as_str().is_some_and(|name| name.starts_with("d/"))).count(), 253);
    for over in [format!("{long}/x"), format!("{deep}/d/d/d/"), "x/".repeat(5000)] {
        for command in ["list", "du"] {
            let ran = world.run(&[command, &format!("{url}/{over}")]);
            let found = if command == "list" { !ran.stdout.is_empty() } else { !ran.stdout.contains(" 0 blobs") };
            assert!(!found && [0, 1, 3].contains(&ran.code) && !ran.stderr.contains("panic"), "{command}: {ran:?}");
        }
    }
}
