//! `--report`, as it is run: what is written, when, and what is never in it.

use crate::cli_support::{Ran, World, emulator};
use std::process::Stdio;

fn page(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path().join(name)).unwrap()
}

fn data(world: &World, name: &str) -> serde_json::Value {
    serde_json::from_str(&page(world, name)).unwrap()
}

/// What is in the folder besides what the test made.
fn left(world: &World) -> Vec<String> {
    let names = std::fs::read_dir(world.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("run")).collect()
}

#[test]
fn a_run_is_told_as_a_page_and_as_data() {
    let world = World::new();
    (0..30).for_each(|i| drop(world.write(&format!("d/{i}.txt"), vec![7; 100 * i])));
    let copy = |report: &str| world.run(&["copy", "d", "dev://box", "--recursive", "--concurrency=3", "--report", report]);
    let ran = copy("run.json");
    assert!(ran.code == 0 && ran.stdout.contains("\nreport: run.json") && ran.stdout.contains("\nverdict: "), "{ran:?}");
    let record = data(&world, "run.json");
    assert_eq!(
        (&record["schema"], &record["summary"]["done"], &record["summary"]["exit_code"]),
        (&1.into(), &30.into(), &0.into())
    );
    let sum = |list: &str, field: &str| -> u64 {
        let list = record[list].as_array().unwrap_or_else(|| record[list]["slots"].as_array().unwrap());
        list.iter().map(|entry| entry[field].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("sizes", "count"), sum("sizes", "bytes")), (30, 43_500));
    assert_eq!((sum("timeline", "bytes"), sum("timeline", "done")), (43_500, 30));
    assert_eq!(record["slowest"].as_array().unwrap().len(), 20);
    let settings = record["settings"].as_array().unwrap();
    assert!(settings.contains(&serde_json::json!({ "name": "concurrency", "value": "3", "origin": "flag" })), "{settings:?}");
    world.write("run.html", "an older one");
    assert_eq!(copy("run.html").code, 0);
    let page = page(&world, "run.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("Completed") && page.contains("dev://box"));
    let mut names = left(&world);
    names.sort();
    assert_eq!(names, ["run.html", "run.json"], "nothing half written is left");
}

/// semantics 31
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_refused_before_anything_is_sent() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("f.txt", "one");
    let url = format!("{}/box", emulator.url());
    for (report, word) in [("run.pdf", ".html"), ("gone/run.html", "cannot write the report"), (".", "what kind of report")] {
        let ran = world.run(&["copy", "f.txt", &url, "--create-container", "--report", report]);
        assert!(ran.code == 2 && ran.stderr.contains(word), "{report}: {ran:?}");
    }
    let ran = world.run(&["copy", "f.txt", &url, "--dry-run", "--report", "run.html"]);
    assert!(ran.code == 2 && ran.stderr.contains("--dry-run"), "{ran:?}");
    assert_eq!((emulator.requests(), left(&world)), (0, Vec::new()));
}

/// Case 39, semantics 25: reports neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_has_its_report_and_no_secret_is_in_it() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("d/f.txt", "one");
    world.write("d/bad\\name.txt", "two");
    let url = format!("{}/box", emulator.url());
    assert_eq!(world.run(&["make", &url]).code, 0);
    let sas = world.run(&["sas", &url, "--permissions", "cw", "--expiry", "2h"]).stdout.trim().to_owned();
    let sig = sas.split("sig=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let nobody = World::new();
    nobody.write("d/f.txt", "one");
    nobody.write("d/bad\\name.txt", "two");
    let check = |ran: Ran, code: i32, words: &[&str]| {
        assert_eq!(ran.code, code, "{ran:?}");
        for name in ["run.html", "run.json"].into_iter().filter(|name| nobody.path().join(name).exists()) {
            let text = page(&nobody, name);
            assert!(!text.contains(&sig) && !text.contains(&sig[1..30]) && !text.contains(emulator.key().expose()));
            assert!(text.contains("sig=REDACTED"));
            words.iter().for_each(|word| assert!(text.contains(word), "{name}: {word}"));
            std::fs::remove_file(nobody.path().join(name)).unwrap();
        }
    };
    for report in ["run.html", "run.json"] {
        let ran = nobody.run(&["copy", "d", &sas, "--recursive", "--report", report, "--metadata", "a=x?sig=abc"]);
        check(ran, 1, &["rename the file"]);
        // Its first character may be one that is percent-encoded.
        let rest = if sig.starts_with('%') { &sig[3..] } else { &sig[1..] };
        let wrong = sas.replace(&sig, &format!("{}{rest}", if sig.starts_with('A') { 'B' } else { 'A' }));
        let ran = nobody.run(&["copy", "d/f.txt", &wrong, "--report", report]);
        check(ran, 4, &["Failed"]);
    }
}

/// Stopped by a signal, it is written all the same (semantics 31).
#[test]
fn a_run_that_is_stopped_has_its_report() {
    let world = World::new();
    let mut command = world.command(&["copy", "-", "dev://box/pipe", "--report", "run.json", "--output-type=json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.next().unwrap().unwrap().contains("\"init\""));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let last = lines.map(Result::unwrap).last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(last.contains("\"report\":\"run.json\""), "{last}");
    assert_eq!(data(&world, "run.json")["summary"]["status"], "Cancelled");
}
