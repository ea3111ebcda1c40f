//! Uploads one file and shows its progress.
//!
//! ```text
//! cargo run --example upload -- FILE 'https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME?SAS'
//! ```
//!
//! Credentials come from the URL or from the environment, as with the command (`AZURE_STORAGE_ACCOUNT` and
//! `AZURE_STORAGE_KEY`, or `AZURE_STORAGE_CONNECTION_STRING`).
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use blobjet::attributes::Attributes;
use blobjet::endpoint::blob::{BlobSink, ContentTypes};
use blobjet::endpoint::mime;
use blobjet::endpoint::open::{Opening, Place, place, source};
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::client::{Client, Config};
use blobjet::transfer::engine::{Job, run};
use blobjet::transfer::plan::Tuning;
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use blobjet::units::ByteCount;
use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: upload FILE URL".into());
    };

    // Where to: a client for the service, and a container of it as a sink.
    let Place::Remote(location) = place(&url)? else { return Err("the destination is an http or https URL".into()) };
    let container = location.container.clone().ok_or("the URL names no container")?;
    let credential = choose(&location, &Inputs::from_env(&|name| std::env::var(name).ok()))?;
    let client = Client::new(&location, credential, Config::default())?;
    let types = ContentTypes::ByName { otherwise: mime::guess(&file) };
    let sink = BlobSink::new(client, container, Attributes::default(), types);

    // Where from: the destination within the container decides the blob's name.
    let source = source(&place(&file)?, &Opening { dest: location.blob.clone(), ..Opening::default() })?;

    let job = Job { source, sink: Arc::new(sink), tuning: Tuning::default(), prompt: None, earlier: None };
    let progress = Progress::new(None);
    let transfer = run(job, Arc::clone(&progress), Stop::never());
    tokio::pin!(transfer);
    let summary = loop {
        tokio::select! {
            ended = &mut transfer => break ended?,
            () = tokio::time::sleep(Duration::from_millis(500)) => {
                let now = progress.snapshot();
                println!("{} of {}", ByteCount(now.bytes_sent), ByteCount(now.bytes_known));
            }
        }
    };

    // One failing object does not end a job, so success is in the counts.
    if let Some(failure) = progress.failures().first() {
        return Err(format!("{}: {}", failure.first, failure.names.join(", ")).into());
    }
    println!("{} in {:.2} s", ByteCount(summary.counts.bytes_done), summary.elapsed.as_secs_f64());
    Ok(())
}
