//! The embedded service in a test of your own: no account, no network, no other program.
//!
//! ```text
//! cargo run --example emulator_in_a_test
//! ```
//!
//! In a project of yours the body of `main` is a `#[tokio::test]`. Any client of Azure Blob Storage can use it as well: give it
//! `emulator.connection_string()`.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::emulator::Emulator;
use blobjet::rest::auth::{Inputs, choose};
use blobjet::rest::blob::Blob;
use blobjet::rest::client::{Client, Config};
use blobjet::rest::container::{Container, ListOptions};
use blobjet::rest::location::Location;
use blobjet::secret::Secret;

#[tokio::main]
async fn main() -> blobjet::Result<()> {
    // Each emulator has a free port and an empty store of its own, so tests can run beside each other.
    let emulator = Emulator::builder().record(true).start().await?;
    let inputs = Inputs { connection_string: Some(Secret::new(emulator.connection_string())), ..Inputs::default() };
    let location = Location::parse(&emulator.url())?;
    let client = Client::new(&location, choose(&location, &inputs)?, Config::default())?;

    let container = Container::new(&client, "photos");
    container.create().await?;
    let data = Chunks::from(b"not really a picture".to_vec());
    let blob = Blob::new(&client, "photos", "2026/cat.jpg");
    blob.put_blob(&data, data.crc64(), &Attributes::default(), Replace::Never).await?;

    let page = container.list(&ListOptions::default()).await?;
    let names: Vec<_> = page.blobs().map(|blob| blob.name.as_str()).collect();
    assert_eq!(names, ["2026/cat.jpg"]);

    // What the client sent can be looked at, too.
    for seen in emulator.seen() {
        println!("{} {} {}", seen.status, seen.method, seen.path);
    }
    emulator.stop().await;
    Ok(())
}
