//! SIGINT and SIGTERM at the stages of a job, with and without a terminal: the exit code, the summary as the last line, nothing
//! committed by halves and nothing taken away. Moments come from what the service is asked and what the program prints.

use crate::cli_support::{Ran, World};
use crate::script::{Reply, Script, Seen, answer, refusal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

const BOTH: [(Signal, i32); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

/// A process that may not be started yet.
#[derive(Clone, Default)]
struct Process(Arc<OnceLock<u32>>);

impl Process {
    fn tell(&self, signal: Signal) {
        let id = self.0.wait();
        kill_process(Pid::from_raw(i32::try_from(*id).unwrap()).unwrap(), signal).unwrap();
    }
}

fn created() -> Reply {
    answer(201, "ETag: \"0x8D1\"", "")
}

/// A service that has everything, and calls `at` with the number of each block it is sent.
async fn service(at: impl Fn(u32) -> Reply + Send + Sync + 'static) -> Script {
    let blocks = AtomicU32::new(0);
    Script::start(move |_, seen| match seen.method.as_str() {
        "PUT" if seen.target.contains("comp=block") => at(blocks.fetch_add(1, Ordering::SeqCst)),
        // Nothing was staged before.
        "GET" => refusal(404, "BlobNotFound"),
        _ => created(),
    })
    .await
}

/// A run whose lines are read as they come.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl Running {
    fn start(mut command: Command, process: &Process) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.0.set(child.id()).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { child, lines, seen: Vec::new() }
    }

    /// Reads on until a line of this type.
    fn until(&mut self, kind: &str) -> &Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no {kind} among {:?}", self.seen);
            self.seen.push(serde_json::from_str(&line).unwrap());
            if self.seen.last().unwrap()["type"] == kind {
                return self.seen.last().unwrap();
            }
        }
    }

    /// Waits for its end, before which it is stopped.
    fn end(self) -> (i32, Value) {
        let (code, summary) = self.ended();
        assert_eq!(summary["status"], "Cancelled");
        (code, summary)
    }

    /// Waits for its end; the code, and the summary, which has to be the last line.
    fn ended(mut self) -> (i32, Value) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        self.seen.extend(rest.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let summary = self.seen.pop().unwrap();
        assert_eq!(summary["type"], "summary", "{:?}", self.seen);
        assert_eq!(summary["exit_code"].as_i64(), Some(code.into()));
        let figure = |name: &str| summary[name].as_u64().unwrap();
        assert_eq!(figure("total"), figure("done") + figure("failed") + figure("skipped"));
        (code, summary)
    }
}

fn url(script: &Script) -> String {
    format!("http://{}/devstoreaccount1/box", script.address)
}

const SMALL_BLOCKS: [&str; 6] = ["--block-size-mb", "0.001", "--put-blob-size-mb", "0.001", "--output-type", "json"];

fn copying(world: &World, source: &str, script: &Script) -> Command {
    world.command(&[&["copy", source, &url(script), "--concurrency", "4"], &SMALL_BLOCKS[..]].concat())
}

/// Nothing was committed, and nothing was deleted: what is staged is there for the next run.
fn assert_kept(script: &Script) {
    let seen = script.seen();
    let changes = |seen: &Seen| seen.method == "DELETE" || (seen.method == "PUT" && seen.target.contains("comp=blocklist"));
    assert!(!seen.iter().any(changes));
}

// semantics 23
#[tokio::test(flavor = "multi_thread")]
async fn in_transfer_requests_in_flight_end_and_what_is_staged_stays() {
    for (signal, code) in BOTH {
        let (world, process) = (World::new(), Process::default());
        world.write("f", vec![b'x'; 5_000_000]);
        let own = process.clone();
        let script = service(move |block| {
            if block == 5 {
                own.tell(signal);
            }
            created()
        })
        .await;
        let (ended, summary) = Running::start(copying(&world, "f", &script), &process).end();
        assert_eq!(ended, code);
        assert_eq!((summary["total"].as_u64(), summary["done"].as_u64()), (Some(1), Some(0)));
        assert!(summary["bytes_done"].as_u64().unwrap() >= 5 * 1048, "{summary}");
        assert_kept(&script);
    }
}

/// What is under way when the signal comes is all there is left, and ends well. Promised as semantics 97.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_at_its_end_is_complete() {
    for (signal, _) in BOTH {
        let (world, process) = (World::new(), Process::default());
        world.write("f", "x");
        let (own, (release, released)) = (process.clone(), std::sync::mpsc::channel());
        let released = std::sync::Mutex::new(released);
        let script = Script::start(move |_, _| {
            own.tell(signal);
            // Until the program has heard it.
            tokio::task::block_in_place(|| released.lock().unwrap().recv().unwrap());
            created()
        })
        .await;
        let command = world.command(&["copy", "f", &url(&script), "--output-type", "json"]);
        let mut running = Running::start(command, &process);
        running.until("warning");
        release.send(()).unwrap();
        let said = running.until("note")["message"].as_str().unwrap().to_owned();
        assert!(said.contains("nothing left to do"), "{said}");
        let (code, summary) = running.ended();
        assert_eq!((code, &summary["status"], &summary["done"]), (0, &"Completed".into(), &1.into()), "{summary}");
        assert!(summary.get("resume").is_none(), "{summary}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_signal_does_not_wait_for_requests_in_flight() {
    for (signal, code) in BOTH {
        let (world, process) = (World::new(), Process::default());
        world.write("f", vec![b'x'; 1_000_000]);
        let own = process.clone();
        let script = service(move |block| {
            if block == 3 {
                own.tell(signal);
            }
            if block < 3 { created() } else { Reply::Silence }
        })
        .await;
        let mut running = Running::start(copying(&world, "f", &script), &process);
        running.until("warning");
        process.tell(signal);
        let begun = std::time::Instant::now();
        assert_eq!(running.end().0, code);
        // The ten seconds of the first signal are not waited for.
        assert!(begun.elapsed().as_secs() < 8);
        assert_kept(&script);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_do_not_end_are_dropped_after_ten_seconds() {
    let (world, process) = (World::new(), Process::default());
    world.write("f", vec![b'x'; 100_000]);
    let own = process.clone();
    let script = service(move |block| {
        if block == 3 {
            own.tell(Signal::TERM);
        }
        Reply::Silence
    })
    .await;
    assert_eq!(Running::start(copying(&world, "f", &script), &process).end().0, 143);
    assert_kept(&script);
}

/// Case 30: a hundred thousand names come in over a pipe, and nobody is asked anything.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_listing_with_stdin_a_pipe() {
    for (signal, code) in BOTH {
        let (world, process) = (World::new(), Process::default());
        world.write("d/f", "x");
        let own = process.clone();
        let script = Script::start(move |number, _| {
            if number == 9 {
                own.tell(signal);
            }
            created()
        })
        .await;
        let mut command = world.command(&["copy", "d", &url(&script), "--list-of-files", "-", "--output-type", "json"]);
        command.stdin(Stdio::piped());
        let mut running = Running::start(command, &process);
        let mut names = running.child.stdin.take().unwrap();
        // Ends with the reader; the pipe stays open until then, so the listing has no end.
        let writer = std::thread::spawn(move || while names.write_all(b"f\n").is_ok() {});
        let (ended, summary) = running.end();
        assert_eq!(ended, code);
        assert!(summary["skipped"].as_u64().unwrap() > 0, "what was listed and not begun: {summary}");
        writer.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_list_or_standard_input_says_nothing() {
    for source in [&["d", "--list-of-files", "fifo"][..], &["-"]] {
        for (signal, code) in BOTH {
            let (world, process) = (World::new(), Process::default());
            world.write("d/f", "x");
            assert!(Command::new("mkfifo").arg(world.path().join("fifo")).status().unwrap().success());
            let script = service(|_| created()).await;
            let url = format!("{}/x", url(&script));
            let args = [&["copy", source[0], &url, "--output-type", "json"], &source[1..]].concat();
            let mut command = world.command(&args);
            command.stdin(Stdio::piped());
            let mut running = Running::start(command, &process);
            let _silent = running.child.stdin.take();
            running.until("init");
            process.tell(signal);
            assert_eq!(running.end().0, code, "{source:?}");
            assert_eq!(script.count(), 0);
        }
    }
}

/// Before the job begins there are requests too: nobody waits for a container that is not made.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_container_is_made() {
    for (signal, code) in BOTH {
        let (world, process) = (World::new(), Process::default());
        world.write("f", "x");
        let own = process.clone();
        let script = Script::start(move |_, _| {
            own.tell(signal);
            Reply::Silence
        })
        .await;
        let url = url(&script);
        let mut command = world.command(&["copy", "f", &url, "--create-container"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.0.set(child.id()).unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, script.count()), (code, 1), "{ran:?}");
    }
}

/// On a terminal Ctrl-C is a character; the terminal makes the signal of it.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal() {
    let there = Command::new("script").arg("--version").stdout(Stdio::null()).status();
    if there.is_err() {
        crate::tell("signals::on_a_terminal: left out, there is no script (of util-linux) to make a terminal");
        return;
    }
    let world = World::new();
    world.write("f", vec![b'x'; 5_000_000]);
    let (press, pressed) = std::sync::mpsc::channel();
    let script = service(move |block| {
        if block == 5 {
            press.send(()).unwrap();
        }
        created()
    })
    .await;
    let line = format!(
        "{} copy f {} --concurrency 4 --block-size-mb 0.001 --put-blob-size-mb 0.001",
        env!("CARGO_BIN_EXE_blobjet"),
        url(&script)
    );
    let mut command = world.command(&[]);
    command = {
        let mut on_terminal = Command::new("script");
        on_terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(world.path());
        on_terminal.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        on_terminal.env("TERM", "xterm").env("SHELL", "/bin/sh").env("PATH", "/usr/bin:/bin");
        on_terminal
    };
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    let typing = std::thread::spawn(move || {
        pressed.recv().unwrap();
        keyboard.write_all(b"\x03").unwrap();
        // The keyboard stays there.
        keyboard
    });
    let mut screen = String::new();
    child.stdout.take().unwrap().read_to_string(&mut screen).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{screen}");
    assert!(screen.contains("Final Job Status: Cancelled"), "{screen}");
    assert!(screen.contains("to go on: blobjet jobs resume "), "{screen}");
    assert_kept(&script);
    drop(typing.join().unwrap());
}
