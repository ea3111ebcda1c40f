//! `blobjet demo`: five minutes with a sample tree and the embedded service, for somebody without an account. Each command is
//! shown and run as a process of this same program, so that what is seen is what it does.
//!
//! Everything happens in a temporary folder of its own, which is gone afterwards: the commands get it as their state folder, and
//! none of the credentials in the environment. Waits for Enter between steps where there is somebody to press it.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use super::options::Switch;
use super::render::printable;
use super::standard_output::write_text;
use crate::error::{Error, Kind, Result};
use crate::units::MIB;
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  blobjet demo                  step by step: Enter goes on, q ends it
  blobjet demo --yes            in one go
  blobjet demo --keep           leave its folder, with the report of a run to look at";

/// Arguments of `demo`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Do not wait between the steps
    #[arg(long, switch = false)]
    pub(crate) yes: bool,
    /// Leave the folder when it ends
    #[arg(long, switch = false)]
    pub(crate) keep: bool,
}

/// Size of the large file, and how much of it is to be there when its upload is interrupted.
const LARGE: u64 = 64 * MIB;
const INTERRUPTED_AT: u64 = LARGE / 3;

/// How often is looked how much is there.
const LOOK: Duration = Duration::from_millis(20);

/// Files of the sample tree. Names are what people have.
const SAMPLES: &[(&str, &str)] = &[
    ("plain.txt", "nothing special\n"),
    ("two words.txt", "a space\n"),
    ("100% #1?.txt", "what an address gives another meaning\n"),
    ("a+b&c=d.txt", "and more of it\n"),
    ("naïve café.md", "accents\n"),
    ("文件/читай 🎈.txt", "other scripts\n"),
    ("empty", ""),
    (".hidden", "a dot in front\n"),
];

/// Variables that hold credentials, or say where state is kept.
const NOT_PASSED_ON: &[&str] =
    &["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN"];

/// Runs the demonstration.
///
/// # Errors
/// `Local` where the folder cannot be made or a command cannot be started; `Usage` with `--output-type json`.
pub(crate) async fn run(args: &DemoArgs, context: &Context) -> Result<Exit> {
    if context.out.is_json() {
        return Err(Error::new(Kind::Usage, "the demonstration is for people to read").with_advice("leave out --output-type"));
    }
    let folder = Folder::new(args.keep)?;
    let stage = Arc::new(Stage {
        folder: folder.path.clone(),
        program: std::env::current_exe().map_err(|e| local("cannot find this program's file", e))?,
        paced: !args.yes && std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
        stopped: AtomicBool::new(false),
        running: Mutex::new(None),
    });
    let play = {
        let (stage, out) = (Arc::clone(&stage), Arc::clone(&context.out));
        let say = move |text: &str| out.data(|| text.to_owned(), || Event::Note { message: text.to_owned() });
        tokio::task::spawn_blocking(move || play(&stage, &say))
    };
    let mut play = play;
    let end = match context.signals.unless_told(&mut play).await {
        Ok(ended) => ended.map_err(|e| local("the demonstration broke off", e))?.map(|()| Exit::Done),
        Err(which) => {
            // A command that runs is told and waited for, as it writes into the folder; nobody waits for a key.
            stage.stopped.store(true, Relaxed);
            if stage.stop_running() {
                let _ = play.await;
            }
            Ok(which.into())
        }
    };
    if args.keep {
        let note = format!("left for you: {}", folder.path.display());
        context.out.data(|| printable(&note).into_owned(), || Event::Note { message: note.clone() });
    }
    end
}

fn local(what: impl Into<String>, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(Kind::Local, what).with_source(cause)
}

/// The folder, which goes with this unless it is to stay.
struct Folder {
    path: PathBuf,
    stays: bool,
}

impl Folder {
    fn new(stays: bool) -> Result<Folder> {
        use std::os::unix::fs::DirBuilderExt;
        let random = getrandom::u64().map_err(|e| local("the system gives no random numbers", e))?;
        let path = std::env::temp_dir().join(format!("blobjet-demo-{random:016x}"));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| local(format!("cannot make the folder {}", path.display()), e))?;
        Ok(Folder { path, stays })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.stays {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// What the steps need.
struct Stage {
    folder: PathBuf,
    program: PathBuf,
    /// Whether somebody presses Enter between the steps.
    paced: bool,
    stopped: AtomicBool,
    /// The command that runs.
    running: Mutex<Option<Pid>>,
}

impl Stage {
    /// Waits for Enter. Returns whether to go on.
    fn goes_on(&self) -> bool {
        if self.stopped.load(Relaxed) {
            return false;
        }
        if !self.paced {
            return true;
        }
        if !write_text("\n[Enter goes on, q ends] ").is_ok_and(|heard| heard) {
            return false;
        }
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).unwrap_or(0);
        read > 0 && !line.trim().eq_ignore_ascii_case("q")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.folder).env("BLOBJET_STATE", self.state()).stdin(Stdio::null());
        for name in NOT_PASSED_ON {
            command.env_remove(name);
        }
        command
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn start(&self, args: &[&str], stdout: Stdio) -> Result<Child> {
        let child = self.command(args).stdout(stdout).spawn();
        let child = child.map_err(|e| local(format!("cannot run {}", self.program.display()), e))?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Pid::from_child(&child));
        Ok(child)
    }

    fn wait(&self, mut child: Child) -> Result<ExitStatus> {
        let ended = child.wait();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        ended.map_err(|e| local("cannot wait for a command", e))
    }

    /// Runs a command to its end, its output where ours goes.
    fn run(&self, args: &[&str]) -> Result<()> {
        let ended = self.wait(self.start(args, Stdio::inherit())?)?;
        match ended.code() {
            Some(0) | None => Ok(()),
            Some(_) if self.stopped.load(Relaxed) => Ok(()),
            Some(code) => Err(Error::new(Kind::Local, format!("'blobjet {}' ended with {code}", args.join(" ")))),
        }
    }

    /// Tells the command that runs to end. Returns whether there is one.
    fn stop_running(&self) -> bool {
        let running = *self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.is_some_and(|pid| kill_process(pid, Signal::INT).is_ok())
    }
}

/// One step: what it shows, and what does it.
struct Step {
    title: &'static str,
    text: &'static str,
    shown: &'static [&'static str],
    act: fn(&Stage) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step {
        title: "Upload a folder",
        text: "dev://demo is a container of a Blob service inside this program; with an account it would be\n\
               az://ACCOUNT/CONTAINER or a URL with a SAS. Names go as they are; the link is left out, and said so.",
        shown: &["blobjet copy docs dev://demo --recursive --put-md5"],
        act: |stage| stage.run(&["copy", "docs", "dev://demo", "--recursive", "--put-md5"]),
    },
    Step {
        title: "See what is there",
        text: "",
        shown: &["blobjet list dev://demo --running-tally"],
        act: |stage| stage.run(&["list", "dev://demo", "--running-tally"]),
    },
    Step {
        title: "Compare the folder with its copy",
        text: "By the MD5s that --put-md5 has stored; nothing is copied. Lines with + - * or ! would show what differs.",
        shown: &["blobjet check docs dev://demo/docs --by hash"],
        act: |stage| stage.run(&["check", "docs", "dev://demo/docs", "--by", "hash"]),
    },
    Step {
        title: "Interrupt an upload",
        text: "64 MiB, slowed down so that there is time: a third of the way Ctrl-C is pressed for you. What is on its way\n\
               still arrives, and the blocks stay at the service.",
        shown: &["blobjet copy large.bin dev://demo --cap-mbps 200 --concurrency 2 --block-size-mb 4   ... and Ctrl-C"],
        act: interrupt,
    },
    Step {
        title: "Go on with it",
        text: "The same command again. It asks what is there, compares checksums, and sends the rest. --report draws the run.",
        shown: &["blobjet copy large.bin dev://demo --block-size-mb 4 --report report.html"],
        act: |stage| stage.run(&["copy", "large.bin", "dev://demo", "--block-size-mb", "4", "--report", "report.html"]),
    },
    Step {
        title: "Get it back",
        text: "A download: each file gets its name when all of it is there and its MD5 is the one stored with the blob.",
        shown: &["blobjet copy dev://demo/docs back --recursive"],
        act: |stage| stage.run(&["copy", "dev://demo/docs", "back", "--recursive"]),
    },
    Step {
        title: "Print hashes",
        text: "The hashes that are stored with the blobs, as md5sum prints them: 'md5sum -c' in back/docs takes these lines.",
        shown: &["blobjet hash dev://demo/docs --recursive"],
        act: |stage| stage.run(&["hash", "dev://demo/docs", "--recursive"]),
    },
    Step {
        title: "Damage data on the way",
        text: "A service that flips one bit of what arrives in the third block. The checksum that goes with every block\n\
               finds it, and the block is sent again: see 'retries' in the summary.",
        shown: &[
            "blobjet serve --memory --port 0 --fault op=PutBlock,nth=3,flip-request=1000000 &",
            "blobjet copy large.bin http://127.0.0.1:PORT/devstoreaccount1/demo --create-container --block-size-mb 4",
        ],
        act: damage,
    },
    Step {
        title: "What was done",
        text: "Every job is written down; one that was interrupted or had failures can be gone on with by its id.",
        shown: &["blobjet jobs list"],
        act: |stage| stage.run(&["jobs", "list"]),
    },
    Step {
        title: "Ask what an error means",
        text: "Errors name such a page. No network is needed for it.",
        shown: &["blobjet explain AuthorizationPermissionMismatch"],
        act: |stage| stage.run(&["explain", "AuthorizationPermissionMismatch"]),
    },
];

fn play(stage: &Stage, say: &dyn Fn(&str)) -> Result<()> {
    prepare(&stage.folder)?;
    say(&format!(
        "This is blobjet with a sample folder and a Blob service of its own. All of it is in\n{}\nand nothing else is touched.\n\n{}",
        printable(&stage.folder.display().to_string()),
        SAMPLES.iter().map(|(name, _)| format!("  docs/{name}\n")).collect::<String>()
            + "  docs/link -> plain.txt\n  large.bin, 64 MiB"
    ));
    for (i, step) in STEPS.iter().enumerate() {
        if !stage.goes_on() {
            return Ok(());
        }
        let text = if step.text.is_empty() { String::new() } else { format!("{}\n", step.text) };
        let shown: String = step.shown.iter().map(|line| format!("\n$ {line}")).collect();
        say(&format!("\n--- {}/{}  {}\n{text}{shown}\n", i + 1, STEPS.len(), step.title));
        (step.act)(stage)?;
    }
    say("\nThat is all. 'blobjet --help' has the commands, 'blobjet access URL' tells what a SAS of yours may do.");
    Ok(())
}

/// Makes the sample tree.
fn prepare(folder: &Path) -> Result<()> {
    let docs = folder.join("docs");
    let failed = |e| local("cannot make the sample files", e);
    for (name, text) in SAMPLES {
        let path = docs.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&docs)).map_err(failed)?;
        std::fs::write(path, text).map_err(failed)?;
    }
    std::os::unix::fs::symlink("plain.txt", docs.join("link")).map_err(failed)?;
    let mut large = std::io::BufWriter::new(std::fs::File::create(folder.join("large.bin")).map_err(failed)?);
    // Any bytes will do that are not alike from block to block (xorshift).
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..LARGE / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        large.write_all(&state.to_le_bytes()).map_err(failed)?;
    }
    large.flush().map_err(failed)
}

/// Starts the upload and presses Ctrl-C once a third of it is there.
fn interrupt(stage: &Stage) -> Result<()> {
    let before = size(&stage.state());
    // With few blocks at a time: what is under way still arrives, and is not to be all that is left.
    let args = ["copy", "large.bin", "dev://demo", "--cap-mbps", "200", "--concurrency", "2", "--block-size-mb", "4"];
    let mut child = stage.start(&args, Stdio::inherit())?;
    while child.try_wait().map_err(|e| local("cannot look after a command", e))?.is_none() {
        if size(&stage.state()).saturating_sub(before) >= INTERRUPTED_AT {
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
            break;
        }
        std::thread::sleep(LOOK);
    }
    stage.wait(child).map(drop)
}

/// Bytes under a folder; what cannot be looked at counts nothing.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Uploads to a service that damages a block on its arrival.
fn damage(stage: &Stage) -> Result<()> {
    let rule = "op=PutBlock,nth=3,flip-request=1000000";
    let serve = ["serve", "--memory", "--port", "0", "--fault", rule, "--output-type", "json"];
    let mut service = Ended(stage.start(&serve, Stdio::piped())?);
    let mut line = String::new();
    if let Some(stdout) = service.0.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(|e| local("cannot read what the service says", e))?;
    }
    let said: serde_json::Value = serde_json::from_str(&line).map_err(|e| local("the service did not start", e))?;
    let url = format!("{}/demo", said["url"].as_str().unwrap_or_default());
    stage.run(&["copy", "large.bin", &url, "--create-container", "--block-size-mb", "4"])
}

/// A process that is told to end, and waited for, when this goes.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let _ = self.0.wait();
    }
}
