//! Small things that conversations with the real service taught: each a story of a few requests and what has to come back.

use crate::support::raw::{As, Service};

/// A request and what its answer has to be.
#[derive(Default)]
struct Step {
    request: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    status: u16,
    code: &'static str,
    /// Headers that have to be there with this value, or (`None`) must not be.
    tells: &'static [(&'static str, Option<&'static str>)],
    holds: &'static [&'static str],
    lacks: &'static [&'static str],
    /// Seconds that pass before it.
    after: u64,
}

fn ask(request: &'static str, status: u16) -> Step {
    Step { request, status, ..Step::default() }
}

/// Put Blob of a block blob with a few bytes, with more headers.
fn write(request: &'static str, headers: &'static [(&'static str, &'static str)], status: u16) -> Step {
    ask(request, status).with(headers).body("abc")
}

impl Step {
    fn with(self, headers: &'static [(&'static str, &'static str)]) -> Step {
        Step { headers, ..self }
    }

    fn body(self, body: &'static str) -> Step {
        Step { body, ..self }
    }

    fn code(self, code: &'static str) -> Step {
        Step { code, ..self }
    }

    fn tells(self, tells: &'static [(&'static str, Option<&'static str>)]) -> Step {
        Step { tells, ..self }
    }

    fn holds(self, holds: &'static [&'static str]) -> Step {
        Step { holds, ..self }
    }

    fn lacks(self, lacks: &'static [&'static str]) -> Step {
        Step { lacks, ..self }
    }

    fn after(self, seconds: u64) -> Step {
        Step { after: seconds, ..self }
    }
}

const BLOCK: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];
const ARCHIVED: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob"), ("x-ms-access-tier", "Archive")];

/// Tells the story on a service of its own that has a container `box`.
async fn tell(steps: Vec<Step>) {
    let service = Service::start().await;
    assert_eq!(service.put("/box?restype=container", &[], b"").await.status, 201);
    for (number, step) in steps.into_iter().enumerate() {
        service.pass(step.after);
        let (method, target) = step.request.split_once(' ').unwrap();
        let reply = service.call(method, target, step.headers, step.body.as_bytes()).await;
        let here = format!("step {number}, {}", step.request);
        assert_eq!(reply.outcome(), (step.status, step.code), "{here}");
        for (name, value) in step.tells {
            assert_eq!(reply.header(name), *value, "{here}: {name}");
        }
        let text = String::from_utf8_lossy(&reply.body);
        step.holds.iter().for_each(|part| assert!(text.contains(part), "{here}: no {part} in {text}"));
        step.lacks.iter().for_each(|part| assert!(!text.contains(part), "{here}: {part} in {text}"));
    }
}

#[tokio::test]
async fn a_refusal_of_head_says_nothing_about_a_body() {
    let nothing: &[_] = &[("content-type", None), ("content-length", None)];
    tell(vec![
        ask("HEAD /box/none", 404).code("BlobNotFound").tells(nothing),
        write("PUT /box/b", BLOCK, 201),
        ask("HEAD /box/b", 412).with(&[("If-Match", "\"0x8D0\"")]).code("ConditionNotMet").tells(nothing),
        ask("GET /box/none", 404).code("BlobNotFound").tells(&[("content-type", Some("application/xml"))]),
    ])
    .await;
}

#[tokio::test]
async fn a_container_can_be_deleted_again_while_it_fades() {
    tell(vec![
        ask("DELETE /box?restype=container", 202),
        ask("DELETE /box?restype=container", 202),
        ask("HEAD /box?restype=container", 404).code("ContainerNotFound"),
        ask("PUT /box?restype=container", 409).code("ContainerBeingDeleted"),
        ask("DELETE /box?restype=container", 404).code("ContainerNotFound").after(31),
        ask("PUT /box?restype=container", 201),
    ])
    .await;
}

#[tokio::test]
async fn a_blob_in_the_archive_is_replaced_like_any_other() {
    let tier = |tier| -> &'static [(&'static str, &'static str)] {
        match tier {
            "Archive" => &[("x-ms-access-tier", "Archive")],
            _ => &[("x-ms-access-tier", "Cool")],
        }
    };
    tell(vec![
        write("PUT /box/b", ARCHIVED, 201),
        ask("GET /box/b", 409).code("BlobArchived"),
        write("PUT /box/b", ARCHIVED, 201),
        write("PUT /box/b", BLOCK, 201),
        ask("HEAD /box/b", 200).tells(&[("x-ms-access-tier", Some("Hot")), ("x-ms-access-tier-inferred", Some("true"))]),
        ask("PUT /box/b?comp=tier", 200).with(tier("Archive")),
        ask("PUT /box/b?comp=tier", 202).with(tier("Cool")),
        write("PUT /box/b", BLOCK, 201),
        ask("GET /box/b", 200).tells(&[("x-ms-archive-status", None)]).holds(&["abc"]),
    ])
    .await;
}

#[tokio::test]
async fn younger_facts_are_not_told_to_older_versions() {
    tell(vec![
        write("PUT /box/b", ARCHIVED, 201),
        ask("PUT /box/b?comp=snapshot", 201),
        ask("PUT /box/b?comp=tier", 202).with(&[("x-ms-access-tier", "Hot")]),
        ask("HEAD /box/b", 200)
            .with(&[("x-ms-version", "2018-11-09")])
            .tells(&[("x-ms-archive-status", Some("rehydrate-pending-to-hot")), ("x-ms-rehydrate-priority", None)]),
        ask("HEAD /box/b", 200).with(&[("x-ms-version", "2019-12-12")]).tells(&[("x-ms-rehydrate-priority", Some("Standard"))]),
        ask("GET /box?restype=container&comp=list&include=snapshots", 200)
            .with(&[("x-ms-version", "2018-11-09")])
            .holds(&["<Snapshot>", "<ArchiveStatus>rehydrate-pending-to-hot"])
            .lacks(&[
                "<RehydratePriority>",
                "<BlobType>BlockBlob</BlobType><AccessTier>Archive</AccessTier><AccessTierChangeTime>",
            ]),
        ask("GET /box?restype=container&comp=list&include=snapshots", 200).holds(&[
            "<RehydratePriority>",
            "<BlobType>BlockBlob</BlobType><AccessTier>Archive</AccessTier><AccessTierChangeTime>",
        ]),
        ask("HEAD /box?restype=container", 200).with(&[("x-ms-version", "2020-06-12")]).tells(&[
            ("x-ms-immutable-storage-with-versioning-enabled", None),
            ("x-ms-deny-encryption-scope-override", Some("false")),
        ]),
        ask("HEAD /box?restype=container", 200)
            .with(&[("x-ms-version", "2020-10-02")])
            .tells(&[("x-ms-immutable-storage-with-versioning-enabled", Some("false"))]),
        ask("HEAD /?restype=account&comp=properties", 200)
            .with(&[("x-ms-version", "2018-11-09")])
            .tells(&[("x-ms-account-kind", Some("StorageV2")), ("x-ms-is-hns-enabled", None)]),
        ask("HEAD /?restype=account&comp=properties", 200).tells(&[("x-ms-is-hns-enabled", Some("false"))]),
    ])
    .await;
}

#[tokio::test]
async fn which_kinds_of_blob_tell_a_tier() {
    let page: &[_] = &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    tell(vec![
        ask("PUT /box/p", 201).with(page),
        ask("PUT /box/a", 201).with(&[("x-ms-blob-type", "AppendBlob")]),
        ask("HEAD /box/p", 200).tells(&[("x-ms-access-tier", Some("Hot"))]),
        ask("HEAD /box/a", 200).tells(&[("x-ms-access-tier", None)]),
        ask("GET /box?restype=container&comp=list", 200).lacks(&["<AccessTier>"]),
    ])
    .await;
}

#[tokio::test]
async fn a_lease_with_an_end_bars_asynchronous_copies_only() {
    const ID: &str = "0cf32d0c-5b9c-4a4e-9a0c-5a6f8c1e2d3f";
    let service = Service::start().await;
    assert_eq!(service.put("/box?restype=container", &[], b"").await.status, 201);
    for blob in ["/box/from", "/box/to"] {
        assert_eq!(service.upload(blob, b"abc").await.status, 201);
    }
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", ID)];
    assert_eq!(service.put("/box/to?comp=lease", &lease, b"").await.status, 201);
    let source = format!("{}/box/from", service.emulator.url());
    let copy = [("x-ms-copy-source", source.as_str()), ("x-ms-lease-id", ID)];
    assert_eq!(service.put("/box/to", &copy, b"").await.outcome(), (412, "InfiniteLeaseDurationRequired"));
    let sync = [copy[0], copy[1], ("x-ms-requires-sync", "true")];
    assert_eq!(service.put("/box/to", &sync, b"").await.outcome(), (202, ""));
}

#[tokio::test]
async fn documents_come_back_in_the_form_of_the_service() {
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Start>2026-01-15T08:00:00Z</Start>\
                    <Expiry>2026-01-16</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let properties = "<StorageServiceProperties><DefaultServiceVersion>2019-02-02</DefaultServiceVersion><Logging>\
                      <RetentionPolicy><Days>3</Days><Enabled>True</Enabled></RetentionPolicy><Write>False</Write>\
                      <Delete>True</Delete><Read>False</Read><Version>1.0</Version></Logging><Cors><CorsRule>\
                      <AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds>\
                      <ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-meta-a*,x-ms-b</AllowedHeaders></CorsRule></Cors>\
                      </StorageServiceProperties>";
    tell(vec![
        ask("PUT /box?restype=container&comp=acl", 200).body(policies),
        ask("GET /box?restype=container&comp=acl", 200)
            .holds(&["<Start>2026-01-15T08:00:00.0000000Z</Start><Expiry>2026-01-16T00:00:00.0000000Z</Expiry>"]),
        ask("PUT /?restype=service&comp=properties", 202).body(properties),
        ask("GET /?restype=service&comp=properties", 200).holds(&[
            "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>true</Delete>\
             <RetentionPolicy><Enabled>true</Enabled><Days>3</Days></RetentionPolicy></Logging>",
            "<CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>*</AllowedOrigins>\
             <AllowedHeaders>x-ms-b,x-ms-meta-a*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders>",
            "<DefaultServiceVersion>2019-02-02</DefaultServiceVersion></StorageServiceProperties>",
        ]),
    ])
    .await;
}

#[tokio::test]
async fn a_token_for_another_service_is_refused_by_something_that_knows_no_version() {
    let service = Service::start().await;
    let fields = [("sv", "2021-12-02"), ("ss", "q"), ("srt", "sco"), ("sp", "r"), ("se", "2027-01-01T00:00:00Z")];
    let token = service.account_sas(&fields);
    let reply = service.call_as(As::Sas(&token), "GET", "/?restype=service&comp=properties", &[], b"").await;
    assert_eq!(reply.outcome(), (403, "AuthorizationServiceMismatch"));
    assert_eq!(reply.header("x-ms-version"), None);
    assert_eq!(reply.header("server"), Some("Microsoft-HTTPAPI/2.0"));
}
