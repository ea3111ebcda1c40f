//! The program against a service that misbehaves: exit code, requests, what is said of the cause, and what to do about it.

use crate::cli_support::{KEY, World, emulator};
use crate::double::pattern;
use blobjet::emulator::{Armed, Emulator};
use std::net::TcpListener;
use std::ops::RangeInclusive;

struct Row {
    /// Rules, each for one `--fault`.
    rules: &'static [&'static str],
    /// Bytes of the file; over 100,000 it goes in four blocks.
    len: usize,
    code: i32,
    /// Requests the service got.
    requests: RangeInclusive<usize>,
    /// What has to be said: cause and cure.
    said: &'static [&'static str],
}

const SMALL: usize = 1000;
const LARGE: usize = 400_000;

// semantics 19, 21, 22
#[tokio::test(flavor = "multi_thread")]
async fn each_fault_has_its_end() {
    let row = |rules, len, code, requests, said| Row { rules, len, code, requests, said };
    let rows = [
        row(&[], SMALL, 0, 1..=1, &[]),
        row(&[], LARGE, 0, 6..=6, &[]),
        // What heals.
        row(&["nth=1,status=503/ServerBusy"], SMALL, 0, 2..=2, &["throttled"]),
        row(&["nth=1,status=500/InternalError"], SMALL, 0, 2..=2, &["server error"]),
        row(&["nth=1,reset=500"], SMALL, 0, 2..=2, &["connection"]),
        row(&["op=PutBlock,nth=2,flip-request=9"], LARGE, 0, 7..=7, &["checksum"]),
        row(&["op=PutBlockList,nth=1,drop"], LARGE, 0, 7..=7, &[]),
        row(&["max-blob=500"], SMALL, 0, 4..=4, &[]),
        // What does not.
        row(
            &["status=401/NoAuthenticationInformation"],
            SMALL,
            4,
            1..=1,
            &["no credential was sent", "hint: append a SAS to the URL"],
        ),
        row(&["status=403/AuthorizationFailure"], SMALL, 4, 1..=1, &["AuthorizationFailure", "firewall", "hint: "]),
        row(&["status=403/AuthorizationPermissionMismatch"], LARGE, 4, 1..=5, &["lacks a right", "sp=cw"]),
        row(&["status=404/ContainerNotFound"], SMALL, 1, 1..=1, &["ContainerNotFound", "hint: "]),
        row(&["status=409/BlobImmutableDueToPolicy"], SMALL, 1, 1..=1, &["BlobImmutableDueToPolicy", "hint: "]),
        row(&["status=412/LeaseIdMissing"], SMALL, 1, 1..=1, &["LeaseIdMissing", "lease", "hint: "]),
        row(&["status=409/BlobArchived"], SMALL, 1, 1..=1, &["BlobArchived", "hint: "]),
        row(&["status=409/InvalidBlobType"], SMALL, 1, 1..=1, &["InvalidBlobType", "hint: "]),
        row(&["date=+1h"], SMALL, 4, 1..=1, &["this machine's clock is", "behind the service's", "set the clock"]),
        row(&["date=-1h"], SMALL, 4, 1..=1, &["this machine's clock is", "ahead of the service's", "set the clock"]),
        row(&["redirect=http://192.0.2.1/elsewhere"], SMALL, 1, 1..=1, &["http://192.0.2.1/elsewhere", "never followed"]),
        row(&["flip-request=9"], SMALL, 6, 2..=2, &["Md5Mismatch", "Crc64Mismatch"]),
        row(&["status=503/ServerBusy,retry-after=3600"], SMALL, 5, 1..=1, &["ServerBusy", "hint: "]),
        row(&["max-block=50K"], LARGE, 1, 1..=5, &["RequestBodyTooLarge", "--block-size-mb"]),
    ];
    for Row { rules, len, code, requests, said } in rows {
        let mut world = World::new();
        let emulator = emulator().await;
        world.know(&emulator);
        let url = format!("{}/box", emulator.url());
        assert_eq!(world.run(&["make", &url]).code, 0);
        let armed: Vec<_> = rules.iter().map(|rule| emulator.fault(rule.parse().unwrap())).collect();
        world.write("f.bin", pattern(len));
        let before = emulator.seen().len();
        let ran = world.run(&["copy", "f.bin", &url, "--block-size-mb", "0.09765625", "--concurrency", "4"]);
        let seen = &emulator.seen()[before..];
        assert!(ran.code == code && requests.contains(&seen.len()), "{rules:?}: {}\n{} {seen:?}", ran.all(), ran.code);
        if code == 6 {
            assert!(said.iter().any(|words| ran.all().contains(words)), "{rules:?}: {}", ran.all());
        } else {
            for words in said {
                assert!(ran.all().contains(words), "{rules:?}: no '{words}' in {}", ran.all());
            }
        }
        armed.iter().for_each(Armed::remove);
        assert_eq!(world.run(&["list", &url]).stdout.contains("f.bin"), code == 0, "{rules:?}");
    }
}

/// Case 22. semantics 20: said once, with host and cause.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_said_at_once() {
    let mut world = World::new();
    (0..50).for_each(|i| drop(world.write(&format!("d/{i}"), "x")));
    world.set("AZURE_STORAGE_ACCOUNT", "mine");
    world.set("AZURE_STORAGE_KEY", KEY);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let untrusted = Emulator::builder().tls().start().await.unwrap();
    let plain = emulator().await;
    // No name has parts of more than 63 characters (RFC 1035, 2.3.4): the resolver knows without asking anybody.
    let nowhere = format!("{}.invalid", "x".repeat(64));
    for (url, said) in [
        (format!("http://{free}/mine/box"), ["cannot connect to 127.0.0.1:", "Connection refused"]),
        (format!("http://{nowhere}/mine/box"), ["cannot find the host", "check the host in the URL"]),
        (format!("{}/box", untrusted.url()), ["cannot set up TLS with 127.0.0.1:", "SSL_CERT_FILE"]),
        (format!("https://127.0.0.1:{}/mine/box", plain.port()), ["cannot set up TLS with 127.0.0.1:", "write http://"]),
    ] {
        let ran = world.run(&["copy", "d", &url, "--recursive", "--allow-http"]);
        assert_eq!(ran.code, 5, "{url}: {ran:?}");
        for words in said {
            assert_eq!(ran.stderr.matches(words).count(), 1, "{url}: '{words}' once in {}", ran.stderr);
        }
        assert!(ran.stderr.contains("hint: "), "{url}: {}", ran.stderr);
    }
    assert_eq!((untrusted.requests(), plain.requests()), (0, 0));
}

/// Case 7, as people and programs see it. semantics 12
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_counted_and_named() {
    let mut world = World::new();
    (0..200).for_each(|i| drop(world.write(&format!("d/{i:03}"), "x")));
    let emulator = emulator().await;
    world.know(&emulator);
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["make", &url]).code, 0);
    emulator.fault("op=PutBlob,path=*00,status=409/BlobImmutableDueToPolicy".parse().unwrap());
    let ran = world.run(&["copy", "d/", &url, "--recursive", "--output-type", "json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let lines = ran.json();
    let summary = lines.last().unwrap();
    let counts = ["total", "done", "failed", "skipped", "pending"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(counts, [200, 198, 2, 0, 0]);
    let cause = &summary["failures"][0];
    assert_eq!((&cause["count"], &cause["error"]["code"]), (&2.into(), &"BlobImmutableDueToPolicy".into()), "{cause}");
    let failed: Vec<&str> = lines.iter().filter(|l| l["type"] == "failed").filter_map(|l| l["object"].as_str()).collect();
    assert!(failed.len() == 2 && failed.iter().all(|name| name.ends_with("00")), "{failed:?}");
}

// semantics 33
#[test]
fn rules_on_the_command_line_are_checked() {
    let world = World::new();
    let ran = world.run(&["serve", "--memory", "--port", "0", "--fault", "op=PutBlok,hang"]);
    assert_eq!(ran.code, 2);
    let first = "error: cannot take the fault rule 'op=PutBlok,hang': there is no operation 'PutBlok'\n";
    assert!(ran.stderr.starts_with(first) && ran.stderr.contains("hint: the operations are "), "{}", ran.stderr);
}
