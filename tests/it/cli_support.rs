//! Runs the real program, away from the environment of whoever runs the tests, and makes what it prints comparable.

use blobjet::emulator::{Emulator, Storage};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A key that is nobody's, for accounts of single tests.
pub(crate) const KEY: &str = "c2VjcmV0LWtleS1vZi1hLXRlc3Qtc2VjcmV0LWtleS1vZi1hLXRlc3Qtc2VjcmV0LWtleS0wMTIzNDU2Nzg5MDEyMw==";

/// A folder, and the program run in it.
pub(crate) struct World {
    dir: TempDir,
    env: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> World {
        World { dir: tempfile::tempdir().unwrap(), env: Vec::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Sets a variable for the runs to come.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.env.push((name.to_owned(), value.into()));
    }

    /// Gives the runs to come the emulator's credential.
    pub(crate) fn know(&mut self, emulator: &Emulator) {
        self.set("AZURE_STORAGE_ACCOUNT", emulator.account());
        self.set("AZURE_STORAGE_KEY", emulator.key().expose());
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The program, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blobjet"));
        command.args(args).current_dir(self.path()).env_clear().env("HOME", self.path());
        command.env("BLOBJET_STATE", self.path().join(".state")).stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// What was printed, with addresses, ids, times and folders replaced by words.
    pub(crate) fn plain(&self, text: &str) -> String {
        let text = text.replace(self.path().to_str().unwrap(), "DIR");
        let text = replace_after(&text, "127.0.0.1:", "PORT", |c| c.is_ascii_digit());
        let text = replace_after(&text, "Job ", "ID", |c| c.is_ascii_hexdigit() || c == '-');
        let text = replace_after(&text, "jobs resume ", "ID", |c| c.is_ascii_hexdigit() || c == '-');
        replace_after(&text, "request id ", "ID", |c| c.is_ascii_hexdigit() || c == '-')
    }
}

/// Replaces the run of characters that belong, after each `mark`.
fn replace_after(text: &str, mark: &str, word: &str, belongs: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(mark);
        let rest = part.trim_start_matches(&belongs);
        if rest.len() < part.len() {
            out.push_str(word);
        }
        out.push_str(rest);
    }
    out
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Everything that was printed.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Stdout as JSON; fails if one line does not parse.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// An emulator in memory that remembers what it was asked.
pub(crate) async fn emulator() -> Emulator {
    Emulator::builder().storage(Storage::Memory).port(0).record(true).start().await.unwrap()
}
