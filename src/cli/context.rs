//! What every command gets: the screen, the credentials of the environment, the signals, the state folder.

use super::options::Shared;
use super::output::Output;
use crate::rest::auth::Inputs;
use std::ffi::OsString;
use std::path::PathBuf;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Shared by the whole command.
#[derive(Debug)]
pub(crate) struct Context {
    /// The screen.
    pub(crate) out: std::sync::Arc<Output>,
    /// Options of every command.
    pub(crate) shared: Shared,
    /// Credentials of the environment.
    pub(crate) inputs: Inputs,
    /// SIGINT and SIGTERM.
    pub(crate) signals: Signals,
    /// The folder for what outlives a run; `None` where there is no home to put it in.
    pub(crate) state: Option<PathBuf>,
}

impl Context {
    /// Where `dev://` and `serve` keep their data.
    pub(crate) fn store_folder(&self) -> PathBuf {
        self.state_or_temporary().join("store")
    }

    /// Where `serve --tls` puts the certificate to trust.
    pub(crate) fn certificate_folder(&self) -> PathBuf {
        self.state_or_temporary().join("tls")
    }

    fn state_or_temporary(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| std::env::temp_dir().join("blobjet"))
    }
}

/// The folder for what outlives a run: `BLOBJET_STATE`, else `$XDG_STATE_HOME/blobjet`, else `~/.local/state/blobjet`. Not created
/// here, and absolute, whatever folder the program changes to.
pub(crate) fn state_folder(var: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let given = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = given("BLOBJET_STATE") {
        return std::path::absolute(folder).ok();
    }
    // The XDG base directory specification: relative paths are to be ignored.
    if let Some(folder) = given("XDG_STATE_HOME").filter(|path| path.is_absolute()) {
        return Some(folder.join("blobjet"));
    }
    given("HOME").and_then(|home| std::path::absolute(home.join(".local/state/blobjet")).ok())
}

/// A signal that asks the program to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// SIGINT, Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Counts the signals that ask the program to stop. From the moment it is made they no longer end the process by themselves.
#[derive(Debug, Clone)]
pub(crate) struct Signals(watch::Receiver<(u32, Which)>);

impl Signals {
    /// Starts listening; needs a runtime.
    ///
    /// # Errors
    /// Where the system does not let us.
    pub(crate) fn listen() -> std::io::Result<Signals> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let (sender, receiver) = watch::channel((0, Which::Interrupt));
        tokio::spawn(count(interrupt, terminate, sender));
        Ok(Signals(receiver))
    }

    /// How many have come so far.
    pub(crate) fn seen(&self) -> u32 {
        self.0.borrow().0
    }

    /// Waits for the first one. Cancel-safe.
    pub(crate) async fn first(&self) -> Which {
        self.reached(1).await
    }

    /// Does the work unless the first signal comes before it is done: then the work is dropped.
    pub(crate) async fn unless_told<T>(&self, work: impl Future<Output = T>) -> Result<T, Which> {
        tokio::select! {
            done = work => Ok(done),
            which = self.first() => Err(which),
        }
    }

    /// Waits until this many have come, and tells the last. Cancel-safe.
    pub(crate) async fn reached(&self, count: u32) -> Which {
        let mut receiver = self.0.clone();
        match receiver.wait_for(|(seen, _)| *seen >= count).await {
            Ok(now) => now.1,
            Err(_) => std::future::pending().await,
        }
    }
}

async fn count(mut interrupt: Signal, mut terminate: Signal, sender: watch::Sender<(u32, Which)>) {
    loop {
        let which = tokio::select! {
            _ = interrupt.recv() => Which::Interrupt,
            _ = terminate.recv() => Which::Terminate,
        };
        sender.send_modify(|now| *now = (now.0 + 1, which));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_environment() {
        let folder = |set: &[(&str, &str)]| {
            state_folder(&|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value)))
        };
        let here = |path: &str| Some(std::env::current_dir().unwrap().join(path));
        assert_eq!(folder(&[("BLOBJET_STATE", "rel"), ("HOME", "/h")]), here("rel"));
        assert_eq!(folder(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]), here("/x/blobjet"));
        assert_eq!(folder(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]), here("/h/.local/state/blobjet"));
        assert_eq!(folder(&[("HOME", "")]), None);
    }
}
