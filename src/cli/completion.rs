//! `blobjet completion`: a script with which a shell completes commands, flags and their values, made from the definitions that
//! parse the command line.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use super::options::Cli;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  source <(blobjet completion bash)                        in this shell, now
  blobjet completion bash > ~/.local/share/bash-completion/completions/blobjet     bash, from the next shell on
  blobjet completion zsh > ~/.zfunc/_blobjet               zsh; the folder must be in $fpath
  blobjet completion fish > ~/.config/fish/completions/blobjet.fish";

/// Arguments of `completion`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionArgs {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_enum, ignore_case = true, hide_possible_values = true, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionArgs, context: &Context) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "blobjet", &mut script);
    let script = String::from_utf8_lossy(&script).trim_end().to_owned();
    let name = args.shell.to_string();
    context.out.data(|| script.clone(), || Event::Text { name, text: script.clone() });
    Exit::Done
}
