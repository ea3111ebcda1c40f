//! `serve`: what it prints, that it serves, and that it ends when told to.

use crate::cli_support::{KEY, World};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

/// A running `serve`, ended with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it, and waits until it says where it is.
fn serve(world: &World, args: &[&str]) -> (Serving, serde_json::Value) {
    let (serving, _, said) = serve_and_listen(world, args);
    (serving, said)
}

/// The same, for those who want to hear the rest.
fn serve_and_listen(world: &World, args: &[&str]) -> (Serving, BufReader<ChildStdout>, serde_json::Value) {
    let args = [&["serve", "--port", "0", "--output-type", "json"], args].concat();
    let mut child = world.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    (Serving(child), stdout, serde_json::from_str(&line).unwrap())
}

#[test]
fn it_serves_until_it_is_told_to_end() {
    let mut world = World::new();
    world.write("f.txt", "x");
    let (mut serving, said) = serve(&world, &["--memory"]);
    let connection = said["connection_string"].as_str().unwrap();
    assert!(
        connection.contains("AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq"),
        "well known: {said}"
    );
    world.set("AZURE_STORAGE_CONNECTION_STRING", connection);
    let url = format!("{}/box", said["url"].as_str().unwrap());
    assert_eq!(world.run(&["copy", "f.txt", &url, "--create-container"]).code, 0);
    assert_eq!(world.run(&["list", &url]).stdout, "f.txt; Content Length: 1 B\n");
    std::process::Command::new("kill").args(["-INT", &serving.0.id().to_string()]).status().unwrap();
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_key_of_ones_own_is_not_shown() {
    let mut world = World::new();
    world.write("f.txt", "x");
    let (_serving, said) = serve(&world, &["--memory", "--account", &format!("mine:{KEY}")]);
    assert!(!said.to_string().contains(&KEY[..20]), "{said}");
    assert_eq!(said["account"], "mine");
    world.set("AZURE_STORAGE_ACCOUNT", "mine");
    world.set("AZURE_STORAGE_KEY", KEY);
    let url = format!("{}/box", said["url"].as_str().unwrap());
    assert_eq!(world.run(&["copy", "f.txt", &url, "--create-container"]).code, 0);
}

#[test]
fn a_port_in_use_is_said() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = world.run(&["serve", "--memory", "--port", &port]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.starts_with(&format!("error: port {port} is in use by another program\n")), "{ran:?}");
}

/// Case 49: runs at the same time do not disturb each other; those of `dev://` wait for one another.
#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    let world = World::new();
    let names: Vec<String> = (0..4).map(|i| format!("f{i}")).collect();
    names.iter().for_each(|name| drop(world.write(name, name)));
    let start = |name: &String| {
        let mut command = world.command(&["copy", name, "dev://box", "--output-type=json"]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    for child in names.iter().map(start).collect::<Vec<_>>() {
        let ran: crate::cli_support::Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.json().last().unwrap()["type"], "summary");
    }
    assert_eq!(world.run(&["list", "dev://box"]).stdout.lines().count(), 4);
}

/// SIGUSR1 asks for the counts and ends nothing.
#[test]
fn what_was_served_is_told_when_asked() {
    let mut world = World::new();
    let (serving, mut rest, said) = serve_and_listen(&world, &["--memory"]);
    world.set("AZURE_STORAGE_CONNECTION_STRING", said["connection_string"].as_str().unwrap());
    let url = format!("{}/box", said["url"].as_str().unwrap());
    for requests in 1..=2 {
        // The first makes the container, the second is refused because it is there.
        world.run(&["make", &url]);
        std::process::Command::new("kill").args(["-USR1", &serving.0.id().to_string()]).status().unwrap();
        let mut served = String::new();
        rest.read_line(&mut served).unwrap();
        let served: serde_json::Value = serde_json::from_str(&served).unwrap();
        assert_eq!((&served["type"], &served["requests"]), (&"served".into(), &requests.into()), "{served}");
    }
}

/// With `--tls` a client that is given the certificate gets in, another does not; the end tells what was asked for.
#[test]
fn tls_is_for_those_who_trust_the_certificate() {
    let mut world = World::new();
    world.write("f.txt", "twelve bytes");
    let (mut serving, mut rest, said) = serve_and_listen(&world, &["--discard", "--tls"]);
    let connection = said["connection_string"].as_str().unwrap();
    assert!(connection.starts_with("DefaultEndpointsProtocol=https;"), "{said}");
    world.set("AZURE_STORAGE_CONNECTION_STRING", connection);
    let url = format!("{}/box", said["url"].as_str().unwrap());
    let refused = world.run(&["copy", "f.txt", &url, "--create-container"]);
    assert!(refused.code != 0 && refused.stderr.contains("SSL_CERT_FILE"), "{refused:?}");
    let certificate = said["certificate"].as_str().unwrap().to_owned();
    world.set("SSL_CERT_FILE", &certificate);
    assert_eq!(world.run(&["copy", "f.txt", &url, "--create-container"]).code, 0);
    assert_eq!(world.run(&["list", &url]).stdout, "f.txt; Content Length: 12 B\n");
    std::process::Command::new("kill").args(["-INT", &serving.0.id().to_string()]).status().unwrap();
    let mut served = String::new();
    rest.read_line(&mut served).unwrap();
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
    let served: serde_json::Value = serde_json::from_str(&served).unwrap();
    assert_eq!(served["requests"], 3, "{served}");
    assert_eq!(served["tls"], serde_json::json!(["TLSv1_3 TLS13_AES_128_GCM_SHA256"]));
    let put = served["operations"].as_array().unwrap().iter().find(|of| of["operation"] == "PutBlob").unwrap();
    assert_eq!((&put["requests"], &put["refused"], &put["body_bytes"]), (&1.into(), &0.into(), &12.into()));
    assert!(!std::path::Path::new(&certificate).exists(), "the certificate outlives what it was for");
}
