//! `blobjet access`: that it tells what a credential may do, and changes nothing.

use crate::cli_support::{KEY, Ran, World};
use blobjet::chunks::Chunks;
use blobjet::emulator::Emulator;
use blobjet::rest::auth::{Inputs, Need, choose};
use blobjet::rest::client::{Client, Config, Op};
use blobjet::rest::location::Location;
use blobjet::rest::request::{Request, Response};
use blobjet::secret::Secret;
use http::{HeaderValue, Method};
use std::fmt::Write;

const SEND: Op = Op::new("send", Need::READ);

/// A service with a container in which there is something of every kind, and the program with its key.
struct Place {
    world: World,
    emulator: Emulator,
    client: Client,
}

impl Place {
    async fn new() -> Place {
        let mut world = World::new();
        // Not the well-known account, whose key is found without being given.
        let emulator = Emulator::builder().account("acct", Secret::new(KEY)).record(true).start().await.unwrap();
        world.know(&emulator);
        let location = Location::parse(&emulator.url()).unwrap();
        let inputs =
            Inputs { account: Some(emulator.account().to_owned()), key: Some(emulator.key().clone()), ..Inputs::default() };
        let client = Client::new(&location, choose(&location, &inputs).unwrap(), Config::default()).unwrap();
        let place = Place { world, emulator, client };
        place.put("/box?restype=container", &[], b"").await;
        place.put("/box/a.txt", &[("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-k", "v"), ("x-ms-tags", "t=1")], b"hello").await;
        place.put("/box/a.txt?comp=snapshot", &[], b"").await;
        place.put("/box/begun?comp=block&blockid=QUFBQQ==", &[], b"never committed").await;
        place
    }

    async fn put(&self, target: &str, headers: &[(&'static str, &str)], body: &[u8]) {
        self.send(Method::PUT, target, headers, body).await;
    }

    async fn send(&self, method: Method, target: &str, headers: &[(&'static str, &str)], body: &[u8]) -> Response {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request::new(method, format!("/{}{path}", self.emulator.account()));
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap();
            let known = ["restype", "comp", "include", "blockid", "blocklisttype"].into_iter().find(|known| *known == name);
            request = request.query(known.unwrap(), value);
        }
        for (name, value) in headers {
            request = request.header(name, HeaderValue::from_str(value).unwrap());
        }
        self.client.send(request.body(Chunks::from(body.to_vec())), SEND).await.unwrap()
    }

    /// Everything that is there: lists with all they can tell, properties, bytes, blocks.
    async fn all(&self) -> String {
        let mut out = String::new();
        let list = "/box?restype=container&comp=list&include=metadata,tags,snapshots,versions,deleted,uncommittedblobs,copy";
        for target in [list, "/box?restype=container", "/box/a.txt", "/box/begun?comp=blocklist&blocklisttype=all", "?comp=list"]
        {
            let got = self.send(Method::GET, target, &[], b"").await;
            let (etag, modified) = (got.header("etag"), got.header("last-modified"));
            writeln!(out, "{target} {etag:?} {modified:?} {:?}", String::from_utf8_lossy(&got.body)).unwrap();
        }
        out
    }

    fn sas(&self, path: &str, rights: &str) -> String {
        let url = format!("{}{path}", self.emulator.url());
        let ran = self.world.run(&["sas", &url, "--permissions", rights, "--expiry", "2h"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.trim().to_owned()
    }

    fn access(&self, url: &str, more: &[&str]) -> Ran {
        self.world.run(&[&["access", url, "--output-type", "json"], more].concat())
    }
}

/// The letters that are said to be there; fails on an unclear one.
fn rights(ran: &Ran) -> String {
    let line = &ran.json()[0];
    assert_eq!(line["type"], "access", "{ran:?}");
    let rights = line["rights"].as_array().unwrap();
    assert_eq!(rights.len(), 6);
    let there = rights.iter().filter(|right| right["allowed"].as_bool().unwrap_or_else(|| panic!("{right}")));
    there.map(|right| right["letter"].as_str().unwrap()).collect()
}

/// Promised as semantics 66: each single right, of a container's SAS, of a blob's and of an account's, is told, and nothing has
/// changed afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn each_right_is_told_and_nothing_is_changed() {
    let place = Place::new().await;
    let before = place.all().await;
    for (path, list) in [("/box", "l"), ("/box/a.txt", ""), ("/box/begun", ""), ("/box/absent", ""), ("", "l")] {
        for (right, there) in [("r", "r"), ("l", "l"), ("c", "c"), ("w", "cw"), ("d", "d"), ("t", "t"), ("rwdt", "rcwdt")] {
            // A blob's SAS cannot have it.
            if right == "l" && list.is_empty() {
                continue;
            }
            let ran = place.access(&place.sas(path, right), &[]);
            assert_eq!((rights(&ran).as_str(), ran.code), (there, 0), "sp={right} of {path}");
        }
    }
    let ran = place.access(&format!("{}/box", place.emulator.url()), &["--need", "lrcwdt"]);
    assert_eq!((rights(&ran).as_str(), ran.code), ("lrcwdt", 0), "the key may do everything");
    assert_eq!(ran.json()[0]["container_exists"], true);
    assert_eq!(place.all().await, before);
    let writes = place.emulator.seen().into_iter().filter(|seen| seen.path.contains("blobjet-access-"));
    assert!(writes.clone().count() > 0 && writes.into_iter().all(|seen| seen.status >= 400), "{before}");
}

/// Promised as semantics 66: `--need` is the exit code.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_needed_and_not_there_is_the_exit_code() {
    let place = Place::new().await;
    let url = place.sas("/box", "rl");
    assert_eq!(place.access(&url, &["--need", "rl"]).code, 0);
    let ran = place.access(&url, &["--need", "rlwd"]);
    assert_eq!((ran.code, &ran.json()[0]["missing"]), (4, &"wd".into()), "{ran:?}");
    assert_eq!(place.access(&url, &["--need", "x"]).code, 2);
    let ran = place.world.run(&["access", &url]);
    for line in [
        "  permissions  sp=rl",
        "  container    is there",
        "  write        no       the SAS does not allow to change blobs: sp=rl has no w",
    ] {
        assert!(ran.stdout.contains(line), "{line} in\n{}", ran.stdout);
    }
    assert!(!ran.all().contains("sig=") || ran.all().contains("sig=REDACTED"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sas_that_has_ended_may_do_nothing() {
    let place = Place::new().await;
    let url = place.sas("/box", "rwl");
    let (head, tail) = url.split_once("se=").unwrap();
    let rest = tail.split_once('&').unwrap().1;
    let ran = place.access(&format!("{head}se=2020-01-01&{rest}"), &[]);
    assert_eq!((rights(&ran).as_str(), ran.code), ("", 4));
    let line = &ran.json()[0];
    assert!(line["sas"]["expires_in_s"].as_i64().unwrap() < 0, "{line}");
    assert!(line["clock_ahead_s"].as_i64().unwrap().abs() < 60, "the clock is asked all the same: {line}");
}

/// What a stored policy allows does not stand in the SAS: it has to be asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_policy_is_asked() {
    let place = Place::new().await;
    let policy = "<SignedIdentifiers><SignedIdentifier><Id>pol</Id><AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry>\
                  <Permission>rd</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    place.put("/box?restype=container&comp=acl", &[], policy.as_bytes()).await;
    let key = blobjet::rest::auth::shared_key::decode_key(place.emulator.key()).unwrap();
    let fields = [("sv", "2025-11-05"), ("sr", "c"), ("si", "pol")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    let fields = blobjet::rest::auth::sas::Fields::from_query(&fields);
    let token = blobjet::rest::auth::sas::mint(place.emulator.account(), &key, &fields, Some(("box", None)));
    let url = format!("{}/box?{}", place.emulator.url(), token.expose());
    let before = place.all().await;
    let ran = place.access(&url, &[]);
    assert_eq!((rights(&ran).as_str(), ran.code), ("rd", 0), "{ran:?}");
    assert_eq!(ran.json()[0]["sas"]["si"], "pol");
    let reason = &ran.json()[0]["rights"][0]["reason"];
    assert_eq!(reason, "403 AuthorizationPermissionMismatch", "{ran:?}");
    assert_eq!(place.all().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_credential_only_what_is_public_is_there() {
    let place = Place::new().await;
    let nobody = World::new();
    let url = format!("{}/box", place.emulator.url());
    let access = || nobody.run(&["access", &url, "--output-type", "json"]);
    let ran = access();
    assert_eq!((rights(&ran).as_str(), ran.code), ("", 4), "{ran:?}");
    let line = &ran.json()[0];
    assert_eq!(
        (&line["credential"], &line["rights"][1]["reason"]),
        (&"anonymous".into(), &"401 NoAuthenticationInformation".into())
    );
    for (public, there) in [("blob", "r"), ("container", "lr")] {
        place.put("/box?restype=container&comp=acl", &[("x-ms-blob-public-access", public)], b"").await;
        let ran = access();
        assert_eq!((rights(&ran).as_str(), ran.code), (there, 0), "{public}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_be_reached_is_an_error() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ran = World::new().run(&["access", &format!("http://127.0.0.1:{port}/devstoreaccount1/box")]);
    assert_eq!(ran.code, 5, "{ran:?}");
}
