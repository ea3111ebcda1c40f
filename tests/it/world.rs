//! An embedded service with a container, a client of it, and uploads to it through the library.

use crate::cli_support::World as Program;
use blobjet::attributes::{Attributes, Replace};
use blobjet::chunks::Chunks;
use blobjet::emulator::Emulator;
use blobjet::endpoint::Source;
use blobjet::endpoint::blob::{BlobSink, ContentTypes};
use blobjet::endpoint::mime;
use blobjet::endpoint::open::{Opening, Place, source};
use blobjet::rest::auth::{Inputs, Need, choose, sas, shared_key};
use blobjet::rest::blob::{Blob, BlobProperties};
use blobjet::rest::client::{Client, Config, Op};
use blobjet::rest::container::{Container, ListOptions};
use blobjet::rest::location::Location;
use blobjet::rest::request::Request;
use blobjet::transfer::engine::{Job, Summary, run};
use blobjet::transfer::plan::Tuning;
use blobjet::transfer::progress::Progress;
use blobjet::transfer::stop::Stop;
use http::{HeaderValue, Method};
use std::path::Path;
use std::sync::Arc;

pub(crate) const CONTAINER: &str = "cont";

/// Names that are decoded, cut, joined or taken for something else where somebody is not careful.
pub(crate) const ODD_NAMES: &[&str] = &[
    "a%zz.txt",
    "abc.%22",
    "%2F",
    "%41",
    "[test].txt",
    "-lead",
    "trail ",
    "trail.",
    "a//b",
    "?q#f",
    "a&b=c;d",
    "a+b",
    "caf\u{e9}",
    "cafe\u{301}",
    "😀",
    " ",
    "{x}|\"^`<>",
    "x*y",
];

pub(crate) struct World {
    pub(crate) emulator: Emulator,
    /// With the account's key.
    pub(crate) client: Client,
}

pub(crate) fn client(url: &str, inputs: &Inputs) -> Client {
    let location = Location::parse(url).unwrap();
    let credential = choose(&location, inputs).unwrap();
    Client::new(&location, credential, Config::default()).unwrap()
}

impl World {
    /// A service with the container `cont`, seen requests recorded.
    pub(crate) async fn new() -> World {
        let emulator = Emulator::builder().record(true).start().await.unwrap();
        let inputs =
            Inputs { account: Some(emulator.account().to_owned()), key: Some(emulator.key().clone()), ..Inputs::default() };
        let client = client(&emulator.url(), &inputs);
        assert!(Container::new(&client, CONTAINER).create().await.unwrap());
        World { emulator, client }
    }

    /// The program, with the account's key.
    pub(crate) fn program(&self) -> Program {
        let mut program = Program::new();
        program.know(&self.emulator);
        program
    }

    /// The URL of a blob, or of what is written like one.
    pub(crate) fn at(&self, name: &str) -> String {
        format!("{}/{CONTAINER}/{name}", self.emulator.url())
    }

    /// Puts an empty blob.
    pub(crate) async fn put(&self, name: &str, attributes: &Attributes) {
        self.put_with(name, &[], attributes).await;
    }

    /// Puts a blob with these bytes.
    pub(crate) async fn put_bytes(&self, name: &str, bytes: &[u8]) {
        self.put_with(name, bytes, &Attributes::default()).await;
    }

    /// Puts a blob with these bytes and attributes.
    pub(crate) async fn put_with(&self, name: &str, bytes: &[u8], attributes: &Attributes) {
        let data = Chunks::from(bytes.to_vec());
        Blob::new(&self.client, CONTAINER, name).put_blob(&data, data.crc64(), attributes, Replace::Always).await.unwrap();
    }

    /// An operation on a blob that the library has no need of.
    pub(crate) async fn ask(&self, name: &str, comp: &'static str, headers: &[(&'static str, &'static str)]) {
        let mut request = Request::new(Method::PUT, self.client.location().blob_path(CONTAINER, name)).query("comp", comp);
        for (name, value) in headers {
            request = request.header(name, HeaderValue::from_static(value));
        }
        self.client.send(request, Op::new("prepare", Need::WRITE)).await.unwrap();
    }

    /// Leases a blob for ever, or ends that at once.
    pub(crate) async fn lease(&self, name: &str, acquire: bool) {
        let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let end = [("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")];
        self.ask(name, "lease", if acquire { &lease } else { &end }).await;
    }

    /// A SAS for the container.
    pub(crate) fn sas(&self, rights: &str) -> String {
        let pairs = [("sv", "2025-11-05"), ("sr", "c"), ("sp", rights), ("se", "2099-01-01T00:00:00Z")];
        let pairs: Vec<(String, String)> = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let key = shared_key::decode_key(self.emulator.key()).unwrap();
        let fields = sas::Fields::from_query(&pairs);
        sas::mint(self.emulator.account(), &key, &fields, Some((CONTAINER, None))).expose().to_owned()
    }

    /// Has deleted blobs kept from now on.
    pub(crate) async fn keep_deleted(&self) {
        let policy = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>";
        let request = Request::new(Method::PUT, self.client.location().account_path());
        let request =
            request.query("restype", "service").query("comp", "properties").body(Chunks::from(policy.as_bytes().to_vec()));
        self.client.send(request, Op::new("set", Need::LIST_CONTAINERS)).await.unwrap();
    }

    pub(crate) fn sink(&self) -> BlobSink {
        let types = ContentTypes::ByName { otherwise: mime::DEFAULT };
        BlobSink::new(self.client.clone(), CONTAINER, Attributes::default(), types)
    }

    /// Uploads and expects no error of the job itself.
    pub(crate) async fn upload(&self, source: Arc<dyn Source>, sink: BlobSink, tuning: Tuning) -> (Summary, Arc<Progress>) {
        let progress = Progress::new(None);
        let job = Job { source, sink: Arc::new(sink), tuning, prompt: None, earlier: None };
        let summary = run(job, Arc::clone(&progress), Stop::never()).await.unwrap();
        assert_eq!(summary.counts.pending(), 0);
        (summary, progress)
    }

    pub(crate) async fn get(&self, name: &str) -> Vec<u8> {
        let path = self.client.location().blob_path(CONTAINER, name);
        let response = self.client.send(Request::new(Method::GET, path), Op::new("get", Need::READ)).await.unwrap();
        response.body.to_vec()
    }

    pub(crate) async fn properties(&self, name: &str) -> Option<BlobProperties> {
        Blob::new(&self.client, CONTAINER, name).get_properties().await.unwrap()
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let page = Container::new(&self.client, CONTAINER).list(&ListOptions::default()).await.unwrap();
        page.blobs().map(|blob| blob.name.clone()).collect()
    }

    /// What was asked of the service since `since` requests, as `METHOD comp`.
    pub(crate) fn requests(&self, since: usize) -> Vec<String> {
        let comp = |query: &str| query.split('&').find_map(|p| p.strip_prefix("comp=")).unwrap_or("").to_owned();
        self.emulator.seen()[since..].iter().map(|s| format!("{} {}", s.method, comp(&s.query)).trim().to_owned()).collect()
    }
}

pub(crate) fn local(path: &Path, opening: &Opening) -> Arc<dyn Source> {
    source(&Place::Local(path.to_str().unwrap().to_owned()), opening).unwrap()
}
