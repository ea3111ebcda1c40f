//! The `blobjet` command; everything is in the library.

fn main() -> std::process::ExitCode {
    blobjet::cli::main()
}
