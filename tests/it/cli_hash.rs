//! `blobjet hash`: hashes that others compute too, in lines that `md5sum -c` takes.

use crate::cli_support::{Ran, World};
use crate::world::{CONTAINER, World as Service};
use blobjet::attributes::Attributes;
use blobjet::rest::blob::Blob;
use std::io::Write;
use std::process::Stdio;

/// Of `abc`: RFC 1321, A.5, and FIPS 180-2, B.1. The base64 is openssl's.
const ABC: &str = "900150983cd24fb0d6963f7d28e17f72";
const ABC_BASE64: &str = "kAFQmDzST7DWlj99KOF/cg==";
const ABC_SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// Of nothing, by the same.
const EMPTY: &str = "d41d8cd98f00b204e9800998ecf8427e";

async fn service() -> (Service, World) {
    let service = Service::new().await;
    let mut world = World::new();
    world.know(&service.emulator);
    (service, world)
}

/// Stages a blob of one block: no MD5 is stored with it.
async fn put_blocks(service: &Service, world: &World, name: &str, bytes: &[u8]) {
    world.write("upload", bytes);
    let ran = world.run(&["copy", "upload", &service.at(name), "--put-blob-size-mb", "1", "--block-size-mb", "1"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(service.properties(name).await.unwrap().get("content-md5"), None);
}

/// What a checksum tool of this machine makes of what was printed.
fn checked_by(tool: &str, world: &World, folder: &str, lines: &str) -> Ran {
    let mut command = std::process::Command::new(tool);
    command.args(["-c", "--strict"]).current_dir(world.path().join(folder));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// semantics 90: files, in the order they are named in, as md5sum prints them.
#[test]
fn files_are_hashed_as_md5sum_does() {
    let world = World::new();
    let odd = ["d/two words", "d/line\nbreak", "d/e/читай 🎈", "d/return\r"];
    odd.iter().for_each(|name| drop(world.write(name, name)));
    world.write("a", "abc");
    world.write("empty", "");
    // Several blocks, the last one short; from a folder of its own, so that it is listed alone.
    world.write("large/x", vec![b'a'; 9_000_001]);
    let ran = world.run(&["hash", "a", "empty", "./a", "large/x"]);
    let md5sum = std::process::Command::new("md5sum").args(["a", "empty", "./a", "large/x"]).current_dir(world.path()).output();
    assert_eq!((ran.code, &ran.stdout), (0, &String::from_utf8(md5sum.unwrap().stdout).unwrap()));
    assert!(ran.stdout.starts_with(&format!("{ABC}  a\n{EMPTY}  empty\n{ABC}  ./a\n")), "{ran:?}");

    let ran = world.run(&["hash", "d", "--recursive"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, odd.len()), "{ran:?}");
    let checked = checked_by("md5sum", &world, ".", &ran.stdout);
    assert!(checked.code == 0 && checked.stderr.is_empty(), "{checked:?} of {}", ran.stdout);
    assert_eq!(checked.stdout.matches(": OK").count(), odd.len());
    let ran = world.run(&["hash", "d", "--recursive", "--include-pattern", "two*", "--algorithm", "sha256"]);
    let checked = checked_by("sha256sum", &world, ".", &ran.stdout);
    assert_eq!((checked.code, checked.stdout.as_str()), (0, "d/two words: OK\n"), "{ran:?}");
}

/// semantics 90: other algorithms and forms; what is piped in.
#[test]
fn every_algorithm_in_both_forms() {
    let world = World::new();
    world.write("a", "abc");
    // The check value of CRC-64/NVME, and the header of the service for it.
    world.write("digits", "123456789");
    let line = |args: &[&str]| {
        let ran = world.run(&[&["hash"][..], args].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    };
    assert_eq!(line(&["a", "--format", "base64"]), format!("{ABC_BASE64}  a\n"));
    assert_eq!(line(&["a", "--algorithm", "sha256"]), format!("{ABC_SHA256}  a\n"));
    assert_eq!(line(&["digits", "--algorithm", "CRC64"]), "ae8b14860a799888  digits\n");
    assert_eq!(line(&["digits", "--algorithm", "crc64", "--format=base64"]), "iJh5CoYUi64=  digits\n");
    let two = line(&["a", "--algorithm", "sha256,md5,md5"]);
    assert_eq!(two, format!("MD5 (a) = {ABC}\nSHA256 (a) = {ABC_SHA256}\n"));
    let json = world.run(&["hash", "a", "--output-type=json"]).json();
    let fields = ["type", "name", "algorithm", "hash", "bytes", "stored"].map(|name| json[0][name].clone());
    assert_eq!(serde_json::json!(fields), serde_json::json!(["hash", "a", "md5", ABC, 3, false]));

    let mut child = world.command(&["hash", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"abc").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout), (0, format!("{ABC}  -\n")));
}

/// semantics 90: the MD5 that is stored is told without reading; one that is not there is missed; --download reads.
#[tokio::test(flavor = "multi_thread")]
async fn of_blobs_what_is_stored_or_what_is_there() {
    let (service, world) = service().await;
    // Not what the content has, so that it is seen which of the two is told.
    service.put_with("d/b", b"abc", &Attributes::default()).await;
    service.put_with("d/e/c", b"", &Attributes::default()).await;
    put_blocks(&service, &world, "d/two blocks", &[b'a'; 1_500_000]).await;
    service
        .put_with("stub", b"", &Attributes { metadata: vec![("hdi_isfolder".into(), "true".into())], ..Attributes::default() })
        .await;

    let before = service.emulator.seen().len();
    let ran = world.run(&["hash", &service.at("d/b")]);
    assert_eq!((ran.code, ran.stdout), (0, format!("{ABC}  b\n")), "{}", ran.stderr);
    assert_eq!(service.requests(before), ["HEAD"]);
    let before = service.emulator.seen().len();
    let ran = world.run(&["hash", &service.at("d/"), "--recursive"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, format!("{ABC}  b\n{EMPTY}  e/c\n").as_str()), "{}", ran.stderr);
    assert!(ran.stderr.contains("two%20blocks: no MD5 of") && ran.stderr.contains("none stored"), "{}", ran.stderr);
    assert_eq!(service.requests(before), ["GET list"]);
    let alone = world.run(&["hash", &service.at("d/two%20blocks")]);
    assert!(alone.code == 1 && alone.stdout.is_empty() && alone.stderr.contains("--download"), "{alone:?}");

    let ran = world.run(&["hash", &service.at(""), "--recursive", "--download"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 3), "{ran:?}");
    assert!(ran.stderr.contains("skipped: ") && ran.stderr.contains("stub"), "{}", ran.stderr);
    let copied = world.run(&["copy", &service.at(""), "here", "--recursive", "--as-subdir=false"]);
    assert_eq!(copied.code, 0, "{copied:?}");
    let checked = checked_by("md5sum", &world, "here", &ran.stdout);
    assert_eq!((checked.code, checked.stdout.matches(": OK").count()), (0, 3), "{checked:?}");
}

/// semantics 90: of a blob that lies about itself, each way tells its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_md5_that_is_stored_shows() {
    let (service, world) = service().await;
    put_blocks(&service, &world, "b", &[b'a'; 1_100_000]).await;
    let blob = Blob::new(&service.client, CONTAINER, "b");
    blob.change_properties(&Attributes { content_md5: Some([0x17; 16]), ..Attributes::default() }).await.unwrap();
    let [stored, read] = [&[][..], &["--download"]].map(|more| {
        let ran = world.run(&[&["hash", &service.at("b"), "--output-type=json"][..], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json().remove(0)
    });
    assert_eq!((stored["hash"].as_str(), &stored["stored"]), (Some("17".repeat(16).as_str()), &true.into()));
    let md5sum = std::process::Command::new("md5sum").arg("upload").current_dir(world.path()).output().unwrap().stdout;
    let expected = String::from_utf8(md5sum).unwrap();
    assert_eq!((read["hash"].as_str(), &read["stored"]), (expected.split(' ').next(), &false.into()));
}

/// semantics 90, 22: how it went is the exit code, and what cannot be hashed does not keep the rest from it.
#[tokio::test(flavor = "multi_thread")]
async fn ends_are_those_of_other_commands() {
    let (service, world) = service().await;
    world.write("a", "abc");
    world.write("d/x", "abc");
    let none = service.at("none");
    let other = format!("{}/other", service.emulator.url());
    for (args, code, word) in [
        (&["none"][..], 3, "cannot find none"),
        (&["d"], 2, "--recursive"),
        (&[], 2, "PATH|URL"),
        (&["a", "--download"], 2, "none is named"),
        (&[&none], 3, "there is no blob"),
        (&[&none, "--algorithm=sha256"], 2, "--download"),
        (&[&other, "--recursive"], 3, "blobjet list"),
        (&[&none, "none", "a"], 1, "there is no blob"),
        (&["a", "d", "--list-of-files=x"], 2, "name one"),
    ] {
        let ran = world.run(&[&["hash"][..], args].concat());
        assert!(ran.code == code && ran.stderr.contains(word), "{args:?} {ran:?}");
        assert_eq!(ran.stdout, if code == 1 { format!("{ABC}  a\n") } else { String::new() }, "{args:?}");
    }
}
