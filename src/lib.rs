//! blobjet moves files to and from Azure block blobs as fast as the machine allows.
//!
//! ```text
//! cli          commands, options, what the screen says           sees everything below
//!  │
//! transfer     the engine: plan, lanes, memory budget, progress  knows Source and Sink, never a header
//!  │
//! endpoint     Source and Sink: file, blob, stdio, null          joins files and the wire
//!  │
//! rest         the wire: transport, the one retry loop, signing  knows the service, never a file or a job
//!
//! emulator     a Blob service to try all of this on              shares `rest::model` and the strings to sign
//!
//! error units chunks crc64 md5_lanes ciphers secret attributes                     vocabulary: imports nothing of ours
//! ```
//!
//! Arrows point one way; `tests/it/layers.rs` checks them. One block's journey is told in `docs/architecture.md`.

pub mod attributes;
pub mod chunks;
mod ciphers;
pub mod cli;
mod crc64;
pub mod emulator;
pub mod endpoint;
pub mod error;
mod md5_lanes;
pub mod rest;
pub mod secret;
pub mod transfer;
pub mod units;

pub use error::{Error, Kind, Result};
