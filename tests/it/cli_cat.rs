//! `cat` as people use it.

use crate::world::World as Service;
use std::io::Read;
use std::process::Stdio;

/// 9 MiB and a bit: more than two ranges, with a pattern that no shift of it fits.
fn large() -> Vec<u8> {
    (0..9 * 1024 * 1024 + 17_u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

// semantics 86
#[tokio::test(flavor = "multi_thread")]
async fn blobs_and_parts_of_them_come_in_order() {
    let service = Service::new().await;
    let bytes = large();
    service.put_bytes("big", &bytes).await;
    service.put_bytes("a*?", b"first\n").await;
    service.put_bytes("b", b"second, no line break").await;
    service.put_bytes("empty", b"").await;
    let program = service.program();
    let cat = |names: &[&str], flags: &[&str]| {
        let urls: Vec<String> = names.iter().map(|name| service.at(name)).collect();
        let args = [&["cat"][..], &urls.iter().map(String::as_str).collect::<Vec<_>>(), flags].concat();
        let output = program.command(&args).output().unwrap();
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    let len = bytes.len();
    for (names, flags, expected) in [
        (&["a*%3F", "b", "empty", "b"][..], &[][..], b"first\nsecond, no line breaksecond, no line break".to_vec()),
        (&["big"], &[], bytes.clone()),
        (&["big"], &["--offset=5M", "--count=4194305"], bytes[5 << 20..(5 << 20) + 4_194_305].to_vec()),
        (&["big"], &["--offset=9M"], bytes[9 << 20..].to_vec()),
        (&["big"], &["--tail", "5M"], bytes[len - (5 << 20)..].to_vec()),
        (&["a*%3F", "b"], &["--head=3"], b"firsec".to_vec()),
        (&["a*%3F", "b"], &["--tail=2"], b"t\nak".to_vec()),
        (&["b"], &["--tail=1G"], b"second, no line break".to_vec()),
        (&["b"], &["--offset=100"], b"".to_vec()),
        (&["b"], &["--count=0"], b"".to_vec()),
    ] {
        let (code, stdout, stderr) = cat(names, flags);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{names:?} {flags:?}");
        assert!(stdout == expected, "{names:?} {flags:?}: {} bytes, not {}", stdout.len(), expected.len());
    }
    // No more is fetched than is asked for.
    let before = service.emulator.seen().len();
    cat(&["big"], &["--tail=10"]);
    assert_eq!(service.requests(before), ["HEAD", "GET"]);
    let (code, stdout, stderr) = cat(&["a*%3F", "none", "b"], &[]);
    assert!((code, &*stdout) == (Some(3), b"first\n") && stderr.contains("there is no blob"), "{stderr}");
    for (names, flags, words) in [
        (&[""][..], &[][..], "it names no blob"),
        (&["b", "d/"], &[], "it names no blob"),
        (&["b"], &["--output-type=json"], "no JSON"),
        (&["b"], &["--head=1", "--tail=1"], "cannot be used with"),
        (&["b"], &["--offset=1", "--tail=1"], "cannot be used with"),
    ] {
        let (code, stdout, stderr) = cat(names, flags);
        let all = [String::from_utf8(stdout).unwrap(), stderr].concat();
        assert!(code == Some(2) && all.contains(words), "{names:?} {flags:?}: {all}");
    }
}

// semantics 86
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_blob_is_compared_with_its_stored_md5() {
    let service = Service::new().await;
    service.put_bytes("x", b"bytes\n").await;
    // MD5 of nothing.
    service.ask("x", "properties", &[("x-ms-blob-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")]).await;
    let program = service.program();
    let url = service.at("x");
    let ran = program.run(&["cat", &url]);
    assert!(ran.code == 6 && ran.stdout == "bytes\n" && ran.stderr.contains("MD5"), "{ran:?}");
    let ran = program.run(&["cat", &url, "--check-md5=LogOnly"]);
    assert!(ran.code == 0 && ran.stderr.starts_with("warning: "), "{ran:?}");
    for flag in ["--check-md5=NoCheck", "--head=6", "--tail=1"] {
        let ran = program.run(&["cat", &url, flag]);
        // A part that happens to be all of it is all of it.
        assert_eq!(ran.code, if flag == "--head=6" { 6 } else { 0 }, "{flag}: {ran:?}");
    }
}

// semantics 86
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let service = Service::new().await;
    service.put_bytes("big", &large()).await;
    service.put_bytes("small", b"no line break").await;
    let program = service.program();
    let (big, small) = (service.at("big"), service.at("small"));
    let mut child = program.command(&["cat", &big, &small]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(start, large()[..10]);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}
