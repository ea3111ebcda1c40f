//! Mapped files cut short under load: the program must not die of it (SIGBUS), and what is committed is what a file was at one
//! moment. The program is a process of its own, so that its death would be seen.

use crate::cli_support::World;
use crate::script::{Reply, Script, answer, refusal};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blobjet::chunks::Chunks;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const FILES: usize = 48;
const LEN: usize = 1_500_000;

/// Never 0, which is what a file cut short shows behind its end.
fn byte(at: usize) -> u8 {
    u8::try_from(at % 251).unwrap() + 1
}

fn crc(body: &[u8]) -> String {
    STANDARD.encode(Chunks::from(body.to_vec()).crc64().to_le_bytes())
}

fn parameter<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    target.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// What the service holds, and the lengths each file has had.
#[derive(Default)]
struct Held {
    blocks: HashMap<(String, String), Vec<u8>>,
    blobs: BTreeMap<String, Vec<u8>>,
    lengths: HashMap<String, BTreeSet<usize>>,
    cuts: usize,
}

// semantics 2
#[tokio::test(flavor = "multi_thread")]
async fn files_cut_short_under_load_neither_kill_nor_mix() {
    let world = World::new();
    let content: Vec<u8> = (0..LEN).map(byte).collect();
    let paths: Vec<PathBuf> = (0..FILES).map(|i| world.write(&format!("d/{i:02}"), &content)).collect();
    let held = Arc::new(Mutex::new(Held::default()));
    for i in 0..FILES {
        held.lock().unwrap().lengths.insert(format!("d/{i:02}"), BTreeSet::from([LEN]));
    }
    let store = Arc::clone(&held);
    let script = Script::start(move |number, seen| {
        let mut held = store.lock().unwrap();
        let name = seen.target.split('?').next().unwrap().trim_start_matches("/devstoreaccount1/box/").to_owned();
        let reply = match parameter(&seen.target, "comp") {
            _ if seen.method == "GET" => refusal(404, "BlobNotFound"),
            _ if seen.header("x-ms-content-crc64").is_some_and(|sum| sum != crc(&seen.body)) => refusal(400, "Crc64Mismatch"),
            Some("block") => {
                let id = parameter(&seen.target, "blockid").unwrap().replace("%3D", "=").replace("%2B", "+").replace("%2F", "/");
                held.blocks.insert((name, id), seen.body.clone());
                created()
            }
            Some("blocklist") => {
                let list = String::from_utf8(seen.body.clone()).unwrap();
                let ids = list.split("<Latest>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
                let blob = ids.map(|id| held.blocks[&(name.clone(), id)].clone()).collect::<Vec<_>>().concat();
                held.blobs.insert(name, blob);
                created()
            }
            _ => {
                held.blobs.insert(name, seen.body.clone());
                created()
            }
        };
        // Every third request cuts a file, somewhere.
        if number % 3 == 0 {
            let (file, len) = (number * 29 % FILES, number * 65_537 % LEN);
            let now = File::options().write(true).open(&paths[file]).unwrap();
            let len = len.min(usize::try_from(now.metadata().unwrap().len()).unwrap());
            held.lengths.get_mut(&format!("d/{file:02}")).unwrap().insert(len);
            now.set_len(len as u64).unwrap();
            held.cuts += 1;
        }
        reply
    })
    .await;
    let url = format!("http://{}/devstoreaccount1/box", script.address);
    let sizes = ["--block-size-mb", "0.0625", "--put-blob-size-mb", "0.01", "--concurrency", "32"];
    let args = ["copy", "d", &url, "--recursive", "--as-subdir", "--read", "mmap", "--output-type", "json"];
    let ran = world.run(&[&args[..], &sizes[..]].concat());

    let lines = ran.json();
    let summary = lines.last().unwrap_or_else(|| panic!("it died: {ran:?}"));
    assert!(summary["type"] == "summary" && (ran.code == 0 || ran.code == 1), "{ran:?}");
    let figure = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!((figure("total"), figure("done") + figure("failed")), (FILES as u64, FILES as u64));
    assert_eq!(figure("source_changed"), figure("failed"), "nothing else fails them: {summary}");
    let held = held.lock().unwrap();
    assert!(held.cuts > 20 && figure("failed") > 0, "{} cuts", held.cuts);
    assert_eq!(held.blobs.len() as u64, figure("done"));
    for (name, blob) in &held.blobs {
        assert!(held.lengths[name].contains(&blob.len()), "{name} never was {} bytes long", blob.len());
        assert!(*blob == content[..blob.len()], "{name} holds what never was in the file");
    }
}

fn created() -> Reply {
    answer(201, "ETag: \"0x8D1\"", "")
}
