//! The wire: requests to the Azure Blob service and its answers, over HTTP/1.1.
//!
//! [`client`] holds the one retry loop, with signing inside it; [`transport`] the connections below it; [`blob`] and
//! [`container`] the operations above it, named as the service names them. This layer knows no file, no job and no progress.

pub(crate) mod answer;
pub mod auth;
pub mod batch;
pub mod blob;
mod body;
pub mod change;
pub mod client;
pub mod connect;
pub mod container;
pub mod date;
pub mod from_url;
pub mod headers;
mod http1;
mod leftovers;
pub mod location;
pub mod model;
pub mod names;
mod pace;
pub mod probe;
pub mod properties;
mod queued;
pub mod range;
pub mod receive;
pub mod request;
mod retry;
pub mod stats;
mod transport;
mod watchdog;

/// `x-ms-version` sent with every request: the newest that Azurite 3.35 takes, and it has every limit we use.
pub const VERSION: &str = "2025-11-05";
