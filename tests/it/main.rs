//! The one integration-test binary: the real program and library against the embedded service.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod blob_batch;
mod blob_changes;
mod cli_access;
mod cli_bench;
mod cli_cat;
mod cli_check;
mod cli_copy;
mod cli_demo;
mod cli_docs;
mod cli_download;
mod cli_errors;
mod cli_explain;
mod cli_explain_path;
mod cli_faults;
mod cli_hash;
mod cli_help;
mod cli_list;
mod cli_output;
mod cli_remove;
mod cli_report;
mod cli_serve;
mod cli_set_properties;
mod cli_stat;
mod cli_support;
mod contract;
mod copy_remote;
mod counts;
mod double;
mod download;
mod emulator_auth;
mod emulator_blobs;
mod emulator_containers;
mod emulator_killed;
mod emulator_lessons;
mod emulator_storage;
mod engine;
mod fault_cases;
mod faults;
mod faulty_files;
mod from_url;
mod fuzz;
mod http1;
mod jobs;
mod journal_figures;
mod killed;
mod landing;
mod layers;
mod listing;
mod little_memory;
mod lost_output;
mod model;
mod moving_sources;
mod names;
mod promises;
mod proxy;
mod recorded_answers;
mod replay;
mod resume;
mod script;
mod secrets;
mod selection;
mod signals;
mod sources;
mod support;
mod sweep;
mod truncated_files;
mod tuner;
mod upload;
mod vectors;
mod wire;
mod world;

/// Says something about a test's run that is to be seen though the test passes: what is written straight to the stream is not
/// kept back.
fn tell(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "\n{line}");
}
