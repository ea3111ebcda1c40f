//! HTTP/1.1 as a client of a Blob service speaks it (RFC 9112): a request written, an answer read, one after the other on a
//! connection.
//!
//! Our own, because a general library's share of a small file was a third of all instructions, and because it decides where
//! bytes are received: here into one buffer a thread, which stays in the processor's cache, whatever the number of connections.
//! What it leaves out, the service does not use: upgrades, pipelining, trailers (which are read and dropped), bodies in anything
//! but identity or chunks. When to send, on which connection, and how long to wait is the transport's.

mod connection;
mod framing;
mod head;

pub(crate) use connection::{Broken, Connection};
pub(crate) use head::RequestHead;
