//! `blobjet man`: manual pages in roff, one for each command, made from the definitions that parse the command line and write its
//! help. Examples and notes of the help become sections of their own.

use super::context::Context;
use super::examples::{Note, after_help, taken_apart};
use super::exit::Exit;
use super::json::Event;
use super::options::Cli;
use crate::error::{Error, Kind, Result};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use roff::{Roff, roman};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  blobjet man | man -l -                                   read the page of blobjet
  blobjet man copy | man -l -                              read the page of a command
  blobjet man --dir ~/.local/share/man/man1                install all pages; then 'man blobjet-copy'";

/// Arguments of `man`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Command whose page is printed, e.g. copy, or jobs list (default: blobjet itself)
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub(crate) command: Vec<String>,
    /// Write all pages into this folder, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Prints a page, or writes all of them.
///
/// # Errors
/// `Usage` for a command there is not; `Local` where a page cannot be written.
pub(crate) fn run(args: &ManArgs, context: &Context) -> Result<Exit> {
    let mut root = with_all_help(Cli::command());
    root.build();
    match &args.dir {
        Some(dir) => write_all(&root, dir, context)?,
        None => {
            let page = Page::of(named(&root, &args.command)?)?;
            context.out.data(|| page.text.trim_end().to_owned(), || Event::Text { name: page.name, text: page.text.clone() });
        }
    }
    Ok(Exit::Done)
}

/// The command with the help of each option as its long help: the pages leave out a short one that `-h` does not show.
fn with_all_help(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_help().filter(|_| arg.get_long_help().is_none()).cloned() {
        Some(help) => arg.long_help(help),
        None => arg,
    });
    command.mut_subcommands(with_all_help)
}

/// The command of these words.
fn named<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command> {
    words.iter().try_fold(root, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let names = command.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
            let names = names.collect::<Vec<_>>().join(", ");
            let advice =
                if names.is_empty() { "it has no commands of its own".to_owned() } else { format!("use one of {names}") };
            Error::new(Kind::Usage, format!("{} has no command named {word}", bin_name(command))).with_advice(advice)
        })
    })
}

fn bin_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

fn write_all(root: &Command, dir: &Path, context: &Context) -> Result<()> {
    let cannot = |path: &Path, e| Error::new(Kind::Local, format!("cannot write {}", path.display())).with_source(e);
    std::fs::create_dir_all(dir).map_err(|e| cannot(dir, e))?;
    let mut open = vec![root];
    while let Some(command) = open.pop() {
        let page = Page::of(command)?;
        let path = dir.join(page.name);
        std::fs::write(&path, page.text).map_err(|e| cannot(&path, e))?;
        let shown = path.display().to_string();
        context.out.data(|| shown.clone(), || Event::Written { path: shown.clone() });
        open.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
    }
    Ok(())
}

/// A manual page.
struct Page {
    /// `blobjet-jobs-list.1`.
    name: String,
    /// Roff.
    text: String,
}

impl Page {
    fn of(command: &Command) -> Result<Page> {
        let after = after_help(command);
        let man = Man::new(command.clone()).manual("blobjet manual").source(concat!("blobjet ", env!("CARGO_PKG_VERSION")));
        let mut roff = Vec::new();
        let render = |roff: &mut Vec<u8>| {
            man.render_title(roff)?;
            man.render_name_section(roff)?;
            man.render_synopsis_section(roff)?;
            man.render_description_section(roff)?;
            if command.get_arguments().any(|arg| !arg.is_hide_set()) {
                man.render_options_section(roff)?;
            }
            if command.has_subcommands() {
                man.render_subcommands_section(roff)?;
            }
            rest(&after).to_writer(roff)
        };
        render(&mut roff).map_err(|e: std::io::Error| Error::new(Kind::Local, "cannot write a page").with_source(e))?;
        Ok(Page { name: man.get_filename(), text: String::from_utf8_lossy(&roff).into_owned() })
    }
}

/// Examples and notes; a note with a title is a section of that name.
fn rest(after: &str) -> Roff {
    let (examples, notes) = taken_apart(after);
    let mut roff = Roff::new();
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    for example in examples {
        // The line as it is typed, and indented under it what it is for.
        roff.control("PP", []).control("EX", []).text([roman(example.line)]).control("EE", []);
        if !example.what.is_empty() {
            roff.control("RS", []).text([roman(example.what)]).control("RE", []);
        }
    }
    let mut begun = false;
    for note in notes {
        if let Note::Paragraph(Some(title), _) = note {
            roff.control("SH", [title.to_uppercase().as_str()]);
        } else if !begun {
            roff.control("SH", ["NOTES"]);
        } else if let Note::Paragraph(..) = note {
            roff.control("PP", []);
        }
        begun = true;
        match note {
            Note::Paragraph(_, text) => roff.text([roman(text)]),
            Note::Kept(line) => roff.control("EX", []).text([roman(line)]).control("EE", []),
        };
    }
    roff
}
