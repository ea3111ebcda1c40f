//! The engine: moves the objects of a [`Source`](crate::endpoint::Source) into a [`Sink`](crate::endpoint::Sink).
//!
//! It decides sizes ([`plan`]), names blocks ([`block_id`]), keeps memory in bounds ([`budget`]), runs the lanes ([`engine`])
//! and counts ([`progress`]). It never sees a header, a status code or a URL.
