//! `blobjet serve`: the embedded Blob service in the foreground, until a signal. It listens on this machine only, and tells what it
//! counted at its end, or when SIGUSR1 asks.
//!
//! Keys of accounts other than the well-known one are never shown.

use super::context::Context;
use super::exit::Exit;
use super::json::{Event, Operation};
use crate::emulator::{Emulator, Fault, Storage};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::shared_key::{DEV_ACCOUNT, DEV_KEY, SharedKey};
use crate::secret::Secret;
use clap::{ArgAction, Args};
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  blobjet serve                              data under the state folder, http://127.0.0.1:10000/devstoreaccount1
  blobjet serve --memory --port 0            nothing is kept; a free port
  blobjet serve --discard                    bodies are thrown away: measures how fast a client can write
  blobjet serve --account mine:BASE64KEY     another account; repeat for more
  blobjet serve --tls                        https, with a certificate made now: put the file it names into SSL_CERT_FILE
  blobjet serve --fault op=PutBlock,share=10%,status=503/ServerBusy,retry-after=2
  blobjet serve --fault rate=125000 --fault op=PutBlockList,nth=1,drop

Fault rules are key=value pairs and words between commas; docs/faults.md has examples of each.
  which requests   method=PUT  op=PutBlock|PutBlob  path=box/*.bin  page=2 (of a listing)
                   above=8 (in flight)
  which of them    nth=5  every=10  first=3  after=100  share=10% (seed=1)
  what happens     delay=2s  rate=125000 (bytes/s)  date=+1h  status=503/CODE (retry-after=7)
                   redirect=URL  hang
                   reset=BYTE|end  drop  late  flip-request=BYTE  flip-answer=BYTE  cut=BYTE|head
                   max-blocks=N  max-uncommitted=N  max-block=SIZE  max-blob=SIZE

UseDevelopmentStorage=true in AZURE_STORAGE_CONNECTION_STRING reaches it from any SDK.
SIGUSR1 makes it tell what it has served so far, as it does at its end.";

/// Arguments of `serve`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Keep data in this folder (default: where dev:// keeps its data)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["memory", "discard"])]
    pub(crate) dir: Option<PathBuf>,
    /// Keep data in memory
    #[arg(long, action = ArgAction::SetTrue, conflicts_with = "discard")]
    pub(crate) memory: bool,
    /// Keep lengths and checksums only, for measuring how fast clients write
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) discard: bool,
    /// Serve https, with a certificate made at each start; its file is printed, for SSL_CERT_FILE and the like
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) tls: bool,
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 10000)]
    pub(crate) port: u16,
    /// Account and base64 key; repeat for several (default: the well-known development account)
    #[arg(long, value_name = "NAME:KEY")]
    pub(crate) account: Vec<String>,
    /// Disturb requests that fit a rule (below); repeat for several
    #[arg(long, value_name = "RULE")]
    pub(crate) fault: Vec<String>,
}

/// Runs the service until SIGINT or SIGTERM.
///
/// # Errors
/// `Usage` for arguments that cannot work, a port in use among them; `Local` where the data cannot be kept.
pub(crate) async fn run(args: &ServeArgs, context: &Context) -> Result<Exit> {
    let storage = match (&args.dir, args.memory, args.discard) {
        (_, true, _) => Storage::Memory,
        (_, _, true) => Storage::Discard,
        (Some(dir), ..) => Storage::Disk(dir.clone()),
        (None, ..) => Storage::Disk(context.store_folder()),
    };
    let kept = match &storage {
        Storage::Memory => "in memory".to_owned(),
        Storage::Discard => "nowhere: bodies are thrown away".to_owned(),
        Storage::Disk(dir) => dir.display().to_string(),
    };
    let mut builder = Emulator::builder().storage(storage).port(args.port);
    for pair in &args.account {
        let (name, key) = account(pair)?;
        builder = builder.account(name, key);
    }
    if args.tls {
        builder = builder.tls();
    }
    for rule in &args.fault {
        builder = builder.fault(rule.parse::<Fault>()?);
    }
    // Before anybody can know whom to ask.
    let mut asked = signal(SignalKind::user_defined1())
        .map_err(|error| Error::new(Kind::Local, "cannot listen for SIGUSR1").with_source(error))?;
    let emulator = builder.start().await.map_err(|error| explain_start(error, args))?;
    let (url, name) = (emulator.url(), emulator.account().to_owned());
    let shown = if emulator.account() == DEV_ACCOUNT && emulator.key().expose() == DEV_KEY { DEV_KEY } else { "<KEY>" };
    let scheme = if args.tls { "https" } else { "http" };
    let certificate = Certificate::write(&emulator, context)?;
    let connection = format!("DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={shown};BlobEndpoint={url};");
    context.out.data(
        || {
            let trust = certificate.as_ref().map(|file| format!("Certificate: {}\n", file.0.display())).unwrap_or_default();
            format!(
                "Blob service at {url}\nAccount: {name}\nConnection string: {connection}\n{trust}Data: {kept}\nCtrl-C ends it."
            )
        },
        || Event::Serving {
            url: url.clone(),
            account: name.clone(),
            connection_string: connection.clone(),
            certificate: certificate.as_ref().map(|file| file.0.display().to_string()),
        },
    );
    loop {
        tokio::select! {
            _ = context.signals.first() => break,
            _ = asked.recv() => tell_served(&emulator, context),
        }
    }
    tell_served(&emulator, context);
    emulator.stop().await;
    Ok(Exit::Done)
}

/// What it has served so far.
fn tell_served(emulator: &Emulator, context: &Context) {
    let (requests, tls) = (emulator.requests(), emulator.protocols());
    let operations = emulator.served().into_iter().map(|served| Operation {
        operation: served.operation,
        requests: served.requests,
        refused: served.refused,
        body_bytes: served.body_bytes,
    });
    context
        .out
        .data(|| format!("Requests served: {requests}"), || Event::Served { requests, operations: operations.collect(), tls });
}

/// The file with the certificate that clients have to trust, there as long as the service is. Named by the port, so that a
/// variable that points to it survives a restart.
struct Certificate(PathBuf);

impl Certificate {
    fn write(emulator: &Emulator, context: &Context) -> Result<Option<Certificate>> {
        let Some(pem) = emulator.authority_pem() else { return Ok(None) };
        let folder = context.certificate_folder();
        let file = folder.join(format!("serve-{}.pem", emulator.port()));
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, pem))
            .map_err(|e| Error::new(Kind::Local, format!("cannot write the certificate {}", file.display())).with_source(e))?;
        Ok(Some(Certificate(file)))
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        // Left behind it harms nobody: its authority's key is gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// `NAME:KEY`; the key is checked here, and never repeated in a message.
fn account(pair: &str) -> Result<(String, Secret)> {
    let wrong = |what: &str| Error::new(Kind::Usage, format!("--account: {what}")).with_advice("write --account NAME:BASE64KEY");
    let (name, key) = pair.split_once(':').ok_or_else(|| wrong("there is no ':'"))?;
    let letters = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if !(3..=24).contains(&name.len()) || !letters {
        return Err(wrong("a name is 3 to 24 lower-case letters and digits"));
    }
    let key = Secret::new(key);
    SharedKey::new(name, &key).map_err(|_| wrong("the key is not base64"))?;
    Ok((name.to_owned(), key))
}

fn explain_start(error: Error, args: &ServeArgs) -> Error {
    let in_use = std::error::Error::source(&error)
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .is_some_and(|io| io.kind() == std::io::ErrorKind::AddrInUse);
    if in_use {
        return Error::new(Kind::Usage, format!("port {} is in use by another program", args.port))
            .with_advice("give another --port, or 0 for a free one");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_account_is_refused_without_showing_the_key() {
        for pair in ["mine", "Mine:a2V5", "mine:not base64!", "x:a2V5"] {
            let error = account(pair).unwrap_err();
            assert!(!error.to_string().contains("not base64!") && !error.to_string().contains("a2V5"), "{error}");
        }
        assert_eq!(account("mine:a2V5").unwrap().1.expose(), "a2V5");
    }
}
