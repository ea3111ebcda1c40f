//! The engine: moves the objects of a [`Source`](crate::endpoint::Source) into a [`Sink`](crate::endpoint::Sink).
//!
//! It decides sizes ([`plan`]), names blocks ([`block_id`]), keeps memory in bounds ([`budget`]), runs the lanes ([`engine`]),
//! counts ([`progress`]) and stops when told ([`stop`]). Two sources are compared by [`compare`]. It never sees a header, a status code or a URL.

mod attempt;
mod audit;
pub mod block_id;
pub mod budget;
pub mod compare;
pub mod engine;
pub mod journal;
mod lanes;
mod md5;
mod md5_queue;
mod object;
pub mod overwrite;
pub mod plan;
pub mod progress;
mod queue;
mod resume;
mod staged;
mod staging;
pub mod stop;
mod stream;
pub mod sweep;
mod trial;
mod tuner;
