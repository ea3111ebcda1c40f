//! What a command's help says after its options: examples, one a line, and notes.
//!
//! The text stands beside the command's options. It begins with `Examples:`; each line after it is indented and ends with what it
//! is for, two spaces or more apart. An empty line ends them, and the rest are notes: paragraphs, among them those that begin with
//! a title (`Exit codes: 0 done`), and indented lines, which stay as they are. How it was broken into lines makes no difference:
//! [`laid_out`] does that for the screen, and [`man`](super::man) for pages.

use clap::Command;
use std::fmt::Write;

/// One example.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Example<'a> {
    /// What is typed.
    pub(crate) line: &'a str,
    /// What it is for, where it says so.
    pub(crate) what: &'a str,
}

/// A part of the notes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Note<'a> {
    /// A paragraph in one line, with the title it begins with, if it does.
    Paragraph(Option<&'a str>, String),
    /// A line that stays as it is.
    Kept(&'a str),
}

/// Examples that are no wider than this together with what they are for share a line with it.
const WIDE: usize = 80;

/// The text after the options in a command's long help.
pub(crate) fn after_help(command: &Command) -> String {
    command.get_after_long_help().map(ToString::to_string).unwrap_or_default()
}

/// Examples and notes of such a text.
pub(crate) fn taken_apart(text: &str) -> (Vec<Example<'_>>, Vec<Note<'_>>) {
    let Some(rest) = text.strip_prefix("Examples:\n") else {
        return (Vec::new(), notes(text));
    };
    let (examples, rest) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let examples = examples.lines().map(|line| {
        let (line, what) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
        Example { line, what: what.trim() }
    });
    (examples.collect(), notes(rest))
}

fn notes(text: &str) -> Vec<Note<'_>> {
    let mut notes = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.starts_with(' ') {
            notes.push(Note::Kept(line.trim_end()));
            open = false;
        } else if line.is_empty() {
            open = false;
        } else if let Some((title, rest)) = titled(line) {
            notes.push(Note::Paragraph(Some(title), rest.to_owned()));
            open = true;
        } else if let (true, Some(Note::Paragraph(_, paragraph))) = (open, notes.last_mut()) {
            paragraph.push(' ');
            paragraph.push_str(line);
        } else {
            notes.push(Note::Paragraph(None, line.to_owned()));
            open = true;
        }
    }
    notes
}

/// `Exit codes: 0 done`: the title, of one or two words, and what follows it.
fn titled(line: &str) -> Option<(&str, &str)> {
    let (title, rest) = line.split_once(": ")?;
    let is_title = title.starts_with(char::is_uppercase) && title.chars().all(|c| c.is_alphabetic() || c == ' ');
    (is_title && title.split(' ').count() <= 2).then_some((title, rest))
}

/// The command and those under it with these texts as they look on a screen. Paragraphs are left to be wrapped.
pub(crate) fn laid_out(command: Command) -> Command {
    let text = screen(&after_help(&command));
    let command = command.mut_subcommands(laid_out);
    if text.is_empty() { command } else { command.after_long_help(text) }
}

fn screen(text: &str) -> String {
    let (examples, notes) = taken_apart(text);
    let mut out = String::new();
    let column = examples.iter().map(|example| example.line.chars().count()).max().unwrap_or_default();
    let beside = examples.iter().all(|example| 2 + column + 3 + example.what.chars().count() <= WIDE);
    if !examples.is_empty() {
        out.push_str("Examples:");
    }
    for Example { line, what } in &examples {
        // Writing to a string cannot fail.
        let _ = match what.is_empty() {
            true => write!(out, "\n  {line}"),
            false if beside => write!(out, "\n  {line:column$}   {what}"),
            false => write!(out, "\n  {line}\n      {what}"),
        };
    }
    for note in &notes {
        let _ = match note {
            Note::Kept(line) => write!(out, "\n{line}"),
            Note::Paragraph(Some(title), paragraph) => write!(out, "\n\n{title}: {paragraph}"),
            Note::Paragraph(None, paragraph) => write!(out, "\n\n{paragraph}"),
        };
    }
    out.trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::Cli;
    use clap::CommandFactory;

    /// This command and those under it, itself first.
    fn all(mut root: Command) -> Vec<Command> {
        root.build();
        let mut all = vec![root];
        let mut next = 0;
        while next < all.len() {
            let below: Vec<_> = all[next].get_subcommands().cloned().collect();
            all.extend(below);
            next += 1;
        }
        all
    }

    fn name(command: &Command) -> &str {
        command.get_bin_name().unwrap_or("blobjet")
    }

    /// The words of each command in a line of shell: quotes are taken off, pipes and redirections end a command, and what is
    /// between `<(` and `)` is a command too.
    fn commands(line: &str) -> Vec<Vec<String>> {
        let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), c) => word.get_or_insert_default().push(c),
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, ' ' | '|' | '>' | '<' | '(' | ')' | ';' | '&') => {
                    words.extend(word.take());
                    if c != ' ' {
                        all.push(std::mem::take(&mut words));
                    }
                }
                (None, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        all.push(words);
        all
    }

    #[test]
    fn lines_are_split_as_a_shell_would() {
        let found = commands("tar c 'a b' | blobjet copy - 'x?a&b' 2> log; source <(blobjet man)");
        let found: Vec<_> = found.iter().filter(|words| words.first().is_some_and(|word| word == "blobjet")).collect();
        assert_eq!(found, [&vec!["blobjet", "copy", "-", "x?a&b", "2"], &vec!["blobjet", "man"]]);
    }

    #[test]
    fn a_text_is_examples_and_notes() {
        let (examples, notes) = taken_apart("Examples:\n  a b   what for\n  d\n\nA\nnote.\nExit codes: 0\n1\n\nLast:\n  kept");
        assert_eq!(examples, [Example { line: "a b", what: "what for" }, Example { line: "d", what: "" }]);
        let paragraph = |title, text: &str| Note::Paragraph(title, text.to_owned());
        let expected =
            [paragraph(None, "A note."), paragraph(Some("Exit codes"), "0 1"), paragraph(None, "Last:"), Note::Kept("  kept")];
        assert_eq!(notes, expected);
        assert_eq!(taken_apart("Only a note."), (vec![], vec![paragraph(None, "Only a note.")]));
    }

    #[test]
    fn wide_examples_have_what_they_are_for_under_them() {
        assert_eq!(screen("Examples:\n  a b  what\n  c  for"), "Examples:\n  a b   what\n  c     for");
        let wide = "x".repeat(70);
        let text = format!("Examples:\n  {wide}  what for\n  c");
        assert_eq!(screen(&text), format!("Examples:\n  {wide}\n      what for\n  c"));
    }

    /// Promised as semantics 64: every command has examples, and they are command lines that are understood.
    #[test]
    fn every_command_has_examples_that_parse() {
        for command in all(Cli::command()) {
            let text = after_help(&command);
            let (examples, _) = taken_apart(&text);
            let mut own = 0;
            for example in &examples {
                for words in commands(example.line).iter().filter(|words| words.first().is_some_and(|word| word == "blobjet")) {
                    let args: Vec<_> = words.iter().map(Into::into).collect();
                    if let Err(error) = crate::cli::parse(&args) {
                        panic!("{}: {}\n{error}", name(&command), example.line);
                    }
                    own += usize::from(words.join(" ").contains(name(&command)));
                }
            }
            assert!(own > 0, "{} has no example of itself", name(&command));
        }
    }

    /// Promised as semantics 64: `-h` fits on a screen.
    #[test]
    fn short_help_fits_on_a_screen() {
        for command in all(Cli::definition()) {
            // As wide as the widest that the program makes it.
            let help = command.clone().term_width(100).render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= 40, "{} -h has {lines} lines:\n{help}", name(&command));
            let long = command.clone().term_width(100).render_long_help().to_string();
            for line in help.lines().chain(long.lines()) {
                assert!(line.chars().count() <= 100, "{}: wider than 100: {line}", name(&command));
            }
        }
    }
}
