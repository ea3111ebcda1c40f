//! Fails on purpose, in every way there is, with every verb and in both forms of output, and looks through all that was printed
//! or written for what must not be there: signatures, keys, passwords, each as given, decoded, and percent-encoded.

use crate::cli_support::{KEY, World, emulator};
use crate::script::{Reply, Script, refusal};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

/// A signature is 32 bytes in base64 (44 characters); this one is nobody's, and has all that gets percent-encoded.
const SIGNATURE: &str = "q/83dG+ziPUKgPqqYw8/T4GHGrFZlBB/ZeVzSU6MM+g=";
const PASSWORD: &str = "pass/w0rd+of=the&proxy";

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Everything that would give it away. Parts too: half a key is a leak.
fn forms() -> Vec<(String, Vec<u8>)> {
    let mut forms = Vec::new();
    for (name, text) in [("signature", SIGNATURE), ("key", KEY), ("password", PASSWORD)] {
        let encoded = percent_encoded(text);
        forms.push((name.to_owned(), text.as_bytes().to_vec()));
        forms.push((format!("{name}, percent-encoded"), encoded.clone().into_bytes()));
        forms.push((format!("{name}, percent-encoded in lower case"), encoded.to_lowercase().into_bytes()));
        forms.push((format!("first half of the {name}"), text.as_bytes()[..text.len() / 2].to_vec()));
        forms.push((format!("first half of the {name}, percent-encoded"), encoded.as_bytes()[..encoded.len() / 2].to_vec()));
        if let Ok(bytes) = STANDARD.decode(text) {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            forms.push((format!("{name}, hexadecimal"), hex.into_bytes()));
            forms.push((format!("{name}, decoded"), bytes));
        }
    }
    // What a proxy is sent.
    forms.push(("password, for a proxy".into(), STANDARD.encode(format!("user:{PASSWORD}")).into_bytes()));
    forms
}

fn look(forms: &[(String, Vec<u8>)], what: &str, text: &[u8]) {
    for (name, form) in forms {
        assert!(
            !text.windows(form.len()).any(|window| window[0] == form[0] && window == form),
            "{what} shows the {name}:\n{}",
            String::from_utf8_lossy(text)
        );
    }
}

fn look_through(forms: &[(String, Vec<u8>)], folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => look_through(forms, &entry),
            false => look(forms, &entry.display().to_string(), &fs::read(&entry).unwrap()),
        }
    }
}

/// The command lines that end at this place. Some succeed where the place does.
fn commands(place: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["copy", "f", place],
        vec!["copy", "d", place, "--recursive", "--create-container", "--put-md5"],
        vec!["copy", "d", place, "--recursive", "--dry-run"],
        vec!["copy", "f", place, "--blob-tags", "a=b", "--overwrite", "false", "--block-size-mb", "0.001"],
        vec!["copy", "gone", place],
        vec!["copy", place, "f"],
        vec!["copy", place, place, "--from-to", place],
        vec!["copy", "f", place, "--no-such-flag", place],
        vec!["copy", "f", place, "--metadata", place],
        vec!["list", place],
        vec!["make", place],
        vec!["remove", place, "--recursive"],
        vec!["remove", place],
        vec!["jobs", "list"],
        vec!["jobs", "show", place],
        vec!["jobs", "resume", place, "--destination-sas", place],
        vec!["serve", "--account", place],
        vec!["sas", place, "--permissions", "x", "--expiry", "never"],
        vec![place],
    ]
}

// semantics 25
#[tokio::test(flavor = "multi_thread")]
async fn nothing_shows_a_secret_however_it_fails() {
    let forms = forms();
    let emulator = emulator().await;
    let there = emulator.url();
    let broken = Script::start(|number, _| match number % 3 {
        0 => refusal(403, "AuthenticationFailed"),
        1 => refusal(404, "ContainerNotFound"),
        _ => Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\0\x1b[".into()),
    })
    .await;
    let scripted = format!("http://{}/devstoreaccount1", broken.address);
    let refusing = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let encoded = percent_encoded(SIGNATURE);
    let late = "se=2020-01-01T00%3A00%3A00Z";
    let early = "se=2999-01-01T00%3A00%3A00Z&st=2998-01-01";
    let good = "se=2999-01-01T00%3A00%3A00Z";
    let sas = |rest: &str, sig: &str| format!("?sv=2025-11-05&sr=c&sp=racwdlt&spr=https,http&{rest}&sig={sig}");
    let places = [
        // Wrong signatures, expired, not begun, raw as they should not be, twice, in odd case.
        format!("{there}/box{}", sas(good, &encoded)),
        format!("{there}/box{}", sas(late, &encoded)),
        format!("{there}/box{}", sas(early, &encoded)),
        format!("{there}/box{}", sas(good, SIGNATURE)),
        format!("{there}/box{}&sig={encoded}&Sig={encoded}", sas(good, &encoded)),
        format!("{there}/box?%73ig={encoded}&{good}"),
        format!("{there}/box{}", sas(good, &encoded).replace('&', "&amp;")),
        format!("{scripted}/box{}", sas(good, &encoded)),
        // Hosts and ports that are not there, TLS that is not spoken, places that are none.
        format!("http://{refusing}/devstoreaccount1/box{}", sas(good, &encoded)),
        format!("https://127.0.0.1:{}/devstoreaccount1/box{}", emulator.port(), sas(good, &encoded)),
        format!("http://nobody.invalid/box{}", sas(good, &encoded)),
        format!("https://user:{}@127.0.0.1:1/c{}", percent_encoded(PASSWORD), sas(good, &encoded)),
        format!("ftp://acct/box{}", sas(good, &encoded)),
        format!("https://{}", sas(good, &encoded)),
        format!("dev://box{}", sas(good, &encoded)),
        format!("az://acct1/box{}", sas(good, &encoded)),
        format!("AccountName=a;AccountKey={KEY};BlobEndpoint={there}"),
        format!("SharedAccessSignature={}", sas(good, &encoded).trim_start_matches('?')),
    ];
    let proxy = format!("http://user:{}@{}", percent_encoded(PASSWORD), broken.address);
    let connection = format!("DefaultEndpointsProtocol=http;AccountName=acct;AccountKey={KEY};BlobEndpoint={there};");
    let environments: [&[(&str, &str)]; 5] = [
        &[],
        &[("AZURE_STORAGE_ACCOUNT", emulator.account()), ("AZURE_STORAGE_KEY", KEY)],
        &[("AZURE_STORAGE_CONNECTION_STRING", &connection)],
        &[("AZURE_STORAGE_ACCOUNT", emulator.account()), ("AZURE_STORAGE_SAS_TOKEN", &places[0][there.len() + 4..])],
        &[("HTTPS_PROXY", &proxy), ("https_proxy", &proxy), ("ALL_PROXY", &proxy)],
    ];
    for (nth, place) in places.iter().enumerate() {
        let mut world = World::new();
        world.write("f", "x".repeat(3000));
        world.write("d/g", "x");
        environments[nth % 5].iter().for_each(|(name, value)| world.set(name, *value));
        // Half of the commands at each place, and each form of output in turn: every one meets every kind of place.
        for (at, command) in commands(place).iter().enumerate().filter(|(at, _)| (at + nth) % 2 == 0) {
            let form: &[&str] = if at % 4 < 2 { &["--output-type", "json"] } else { &["--log-level", "DEBUG"] };
            let output = world.command(&[&command[..], form].concat()).output().unwrap();
            look(&forms, &format!("stdout of {:?}", command[0]), &output.stdout);
            look(&forms, &format!("stderr of {:?}", command[0]), &output.stderr);
        }
        look_through(&forms, world.path());
    }
}

/// A crash leaves no memory on the disk: keys are in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_leaves_no_core() {
    let mut world = World::new();
    world.set("AZURE_STORAGE_ACCOUNT", "devstoreaccount1");
    world.set("AZURE_STORAGE_KEY", KEY);
    world.write("f", "x");
    let (asked, hears) = std::sync::mpsc::channel();
    let script = Script::start(move |_, _| {
        asked.send(()).unwrap();
        Reply::Silence
    })
    .await;
    let url = format!("http://{}/devstoreaccount1/box", script.address);
    let plain = world.command(&[]);
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_blobjet"), "copy", "f", &url]);
    command.current_dir(world.path()).env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    hears.recv().unwrap();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::ABORT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    let forms = forms();
    look(&forms, "stdout", &output.stdout);
    look(&forms, "stderr", &output.stderr);
    look_through(&forms, world.path());
    assert!(!output.status.core_dumped());
}
