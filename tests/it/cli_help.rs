//! Help, completion and manual pages, as shells and formatters take them.

use crate::cli_support::World;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a program is installed: what needs it is tested where it is.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        crate::tell(&format!("{program} is not installed; what needs it was not tested"));
    }
    found.is_ok()
}

/// What bash offers for the last of these words, sorted.
fn completed(world: &World, script: &Path, words: &[&str]) -> Vec<String> {
    let ask = r#"
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        # What "complete" has registered is called as the shell would: command, word, word before.
        function=$(complete -p blobjet | sed 's/.* -F \([^ ]*\) .*/\1/')
        "$function" blobjet "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let bash = Command::new("bash")
        .args(["--norc", "-c", ask, "bash"])
        .arg(script)
        .args(words)
        .current_dir(world.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&bash.stderr), "", "{words:?}");
    let mut offered: Vec<_> = String::from_utf8(bash.stdout).unwrap().lines().map(str::to_owned).collect();
    offered.sort();
    offered
}

/// Promised as semantics 64.
#[test]
fn bash_completes_commands_flags_values_and_files() {
    let world = World::new();
    if !is_there("bash") {
        return;
    }
    let script = world.write("blobjet.bash", world.run(&["completion", "bash"]).stdout);
    world.write("photo.jpg", "");
    assert_eq!(completed(&world, &script, &["blobjet", "li"]), ["list"]);
    assert_eq!(completed(&world, &script, &["blobjet", "copy", "--recur"]), ["--recursive"]);
    assert_eq!(completed(&world, &script, &["blobjet", "copy", "--overwrite", "if"]), ["ifSourceNewer"]);
    assert_eq!(completed(&world, &script, &["blobjet", "jobs", "re"]), ["remove", "resume"]);
    assert_eq!(completed(&world, &script, &["blobjet", "copy", "--report", "ph"]), ["photo.jpg"]);
    let commands = completed(&world, &script, &["blobjet", ""]);
    assert!(commands.contains(&"copy".to_owned()) && !commands.contains(&"photo.jpg".to_owned()), "{commands:?}");
}

#[test]
fn every_shell_has_a_script_and_other_words_are_refused() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = world.run(&["completion", shell]);
        assert!(ran.code == 0 && ran.stderr.is_empty() && ran.stdout.contains("recursive"), "{shell}: {ran:?}");
        let json = world.run(&["completion", shell, "--output-type", "json"]).json();
        assert_eq!((&json[0]["type"], &json[0]["name"]), (&"text".into(), &shell.into()));
        assert_eq!(json[0]["text"], ran.stdout.trim_end());
    }
    assert_eq!(world.run(&["completion", "tcsh"]).code, 2);
}

/// Promised as semantics 64.
#[test]
fn manual_pages_are_rendered_without_a_warning() {
    let world = World::new();
    let ran = world.run(&["man", "--dir", "man1"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut pages: Vec<_> = ran.stdout.lines().map(|line| world.path().join(line)).collect();
    pages.sort();
    for page in ["blobjet.1", "blobjet-copy.1", "blobjet-jobs-list.1"] {
        assert!(pages.contains(&world.path().join("man1").join(page)), "{page} is not in {pages:?}");
    }
    let one = world.run(&["man", "jobs", "list"]);
    assert_eq!(one.stdout.trim_end(), std::fs::read_to_string(world.path().join("man1/blobjet-jobs-list.1")).unwrap().trim_end());
    assert!(one.stdout.contains(".SH EXAMPLES\n") && !one.stdout.contains("Examples:"), "{}", one.stdout);
    assert!(one.stdout.contains("What is traced on stderr"), "what -h leaves out is there: {}", one.stdout);
    if !is_there("groff") {
        return;
    }
    for page in pages {
        let groff = Command::new("groff").args(["-man", "-ww", "-rCHECKSTYLE=2", "-Tutf8"]).arg(&page).output().unwrap();
        let said = String::from_utf8_lossy(&groff.stderr);
        assert!(groff.status.success() && said.is_empty(), "{}: {said}", page.display());
        assert!(!groff.stdout.is_empty());
    }
}

#[test]
fn a_page_of_no_command_is_refused_with_those_there_are() {
    let ran = World::new().run(&["man", "jobs", "lst"]);
    assert_eq!(ran.code, 2);
    let said = "error: blobjet jobs has no command named lst\n  hint: use one of list, show, resume, remove, clean\n";
    assert_eq!(ran.stderr, said);
}

#[test]
fn help_and_version_are_lines_of_json_where_that_is_asked_for() {
    let world = World::new();
    for (args, name) in [(&["copy", "--help"][..], "help"), (&["copy", "-h"], "help"), (&["--version"], "version")] {
        let plain = world.run(args);
        let lines = world.run(&[args, &["--output-type", "json"]].concat()).json();
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((&line["type"], &line["name"]), (&"text".into(), &name.into()), "{args:?}");
        assert_eq!(line["text"].as_str().unwrap().trim_end(), plain.stdout.trim_end());
    }
}
