//! Recorded conversations with the real service, played against the emulator: the measure of how true it is.
//!
//! The recordings stay where they are; `BLOBJET_RECORDINGS` names the folder. What differs stands in `differences.txt`, a line
//! a recording, with the reason. The list only shrinks: a recording that differs and is not in it fails the test, and so does one
//! in it that agrees, or that first differs elsewhere than the list says.
//! `BLOBJET_RECORDINGS_SHOW` with part of a test's name prints all that differs there.

#![allow(clippy::print_stdout, reason = "a test says how it went")]

mod batch;
mod compare;
mod infer;
mod player;
mod recording;
mod tokens;
mod wire;
mod xml;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blobjet::emulator::{Emulator, Storage};
use blobjet::secret::Secret;

use player::{Clock, Difference, Server};
use recording::Recording;

/// The listed differences: name | exchange | what | why.
const LISTED: &str = include_str!("differences.txt");

const ACCOUNT: &str = "recorded";
const KEY: &str = "a2V5IG9mIHRoZSBhY2NvdW50IHRoYXQgcmVjb3JkaW5ncyBydW4gb24=";

/// The exchange at which each listed recording first differs, by name.
fn listed() -> BTreeMap<&'static str, usize> {
    let mut all = BTreeMap::new();
    for line in LISTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(" | ").collect();
        let [name, exchange, _what, why] = fields[..] else { panic!("not four fields: {line}") };
        assert!(!why.trim().is_empty(), "no reason: {line}");
        let exchange = exchange.parse().unwrap_or_else(|_| panic!("no exchange number: {line}"));
        assert!(all.insert(name, exchange).is_none(), "listed twice: {name}");
    }
    all
}

#[test]
fn every_recording_agrees_or_is_listed() {
    let Some(folder) = std::env::var_os("BLOBJET_RECORDINGS") else {
        crate::tell("replay: left out, BLOBJET_RECORDINGS names no folder of recordings");
        return;
    };
    let recordings = recording::load(Path::new(&folder));
    let found = play_all(&recordings);
    let listed = listed();
    let mut wrong = Vec::new();
    for (recording, differences) in recordings.iter().zip(&found) {
        let first = differences.first();
        match (first, listed.get(recording.test.as_str())) {
            (None, None) => {}
            (Some(first), Some(listed)) if first.exchange == *listed => {}
            (Some(first), Some(listed)) => {
                wrong.push(format!("{} | {} | {} (listed for exchange {})", recording.test, first.exchange, first.what, listed));
            }
            (Some(first), None) => wrong.push(format!("{} | {} | {}", recording.test, first.exchange, first.what)),
            (None, Some(_)) => wrong.push(format!("{} agrees: take it off the list", recording.test)),
        }
        if std::env::var_os("BLOBJET_RECORDINGS_SHOW").is_some_and(|show| recording.test.contains(&*show.to_string_lossy())) {
            differences.iter().for_each(|d| println!("{} | {} | {}", recording.test, d.exchange, d.what));
        }
    }
    for name in listed.keys().filter(|name| !recordings.iter().any(|r| r.test == **name)) {
        wrong.push(format!("{name} is listed and not among the recordings"));
    }
    let agree = found.iter().filter(|d| d.is_empty()).count();
    crate::tell(&format!("replay: {agree} of {} recordings agree, {} are listed", recordings.len(), listed.len()));
    assert!(wrong.is_empty(), "{} of {agree} agreeing:\n{}", wrong.len(), wrong.join("\n"));
}

/// Plays every recording against an emulator of its own, a few at a time.
fn play_all(recordings: &[Recording]) -> Vec<Vec<Difference>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((index, recording)) = {
                    let index = next.fetch_add(1, Ordering::SeqCst);
                    recordings.get(index).map(|recording| (index, recording))
                } {
                    let clock = Clock::at(player::begins(recording));
                    let shown = clock.clone();
                    let builder = Emulator::builder()
                        .storage(Storage::Memory)
                        .port(0)
                        .account(ACCOUNT, Secret::new(KEY))
                        .clock(std::sync::Arc::new(move || shown.now()));
                    let emulator = runtime.block_on(builder.start()).unwrap();
                    let key = STANDARD.decode(KEY).unwrap();
                    let server = Server { port: emulator.port(), account: ACCOUNT.to_owned(), key, clock };
                    let differences = player::play(&server, recording);
                    runtime.block_on(emulator.stop());
                    found.lock().unwrap().insert(index, differences);
                }
            });
        }
    });
    found.into_inner().unwrap().into_values().collect()
}
