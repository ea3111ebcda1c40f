//! The emulator's door: signatures, SAS, public access, clocks, versions. Each refusal with the service's code.

use crate::support::raw::{As, Reply, Service, VERSION};

const FAR: &str = "2030-01-01T00:00:00Z";

async fn with_blob() -> Service {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    assert_eq!(service.upload("/box/a%20b/%C3%BC.txt", b"hello").await.status, 201);
    service
}

const BLOB: &str = "/box/a%20b/%C3%BC.txt";

async fn read(service: &Service, who: As<'_>, headers: &[(&str, &str)]) -> Reply {
    service.call_as(who, "GET", BLOB, headers, b"").await
}

// semantics 29
#[tokio::test]
async fn the_key_opens_and_another_does_not() {
    let service = with_blob().await;
    assert_eq!(read(&service, As::Key, &[]).await.body, b"hello");
    let refused = read(&service, As::WrongKey, &[]).await;
    assert_eq!(refused.outcome(), (403, "AuthenticationFailed"));
    // The server's own string to sign is told, so that a client can compare.
    let detail = refused.all("AuthenticationErrorDetail").concat();
    assert!(detail.contains("Server used following string to sign: 'GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:"), "{detail}");
    assert!(detail.ends_with("/devstoreaccount1/devstoreaccount1/box/a%20b/%C3%BC.txt'."), "{detail}");
}

#[tokio::test]
async fn authorization_that_cannot_be_right() {
    let service = with_blob().await;
    for (value, outcome) in [
        ("nonsense", (400, "InvalidAuthenticationInfo")),
        ("SharedKey devstoreaccount1", (400, "InvalidAuthenticationInfo")),
        ("SharedKey other:AAAA", (403, "AuthenticationFailed")),
        ("SharedKey devstoreaccount1:AAAA", (403, "AuthenticationFailed")),
        ("Bearer eyJ0", (401, "InvalidAuthenticationInfo")),
    ] {
        let got = read(&service, As::Nobody, &[("Authorization", value)]).await;
        assert_eq!(got.outcome(), outcome, "{value}");
    }
    let old = [("x-ms-version", "2018-11-09"), ("Authorization", "Bearer x")];
    assert_eq!(read(&service, As::Nobody, &old).await.outcome(), (400, "InvalidAuthenticationInfo"));
}

#[tokio::test]
async fn clocks_may_differ_by_a_quarter_of_an_hour() {
    let service = with_blob().await;
    for (seconds, status) in [(-899, 200), (899, 200), (-901, 403), (901, 403)] {
        let date = service.date(seconds);
        assert_eq!(read(&service, As::Key, &[("x-ms-date", &date)]).await.status, status, "{seconds}");
    }
    let none = read(&service, As::Key, &[("x-ms-date", "")]).await;
    assert_eq!(none.outcome(), (403, "AuthenticationFailed"));
    let plain = service.date(0);
    assert_eq!(read(&service, As::Key, &[("x-ms-date", ""), ("Date", &plain)]).await.status, 200);
}

#[tokio::test]
async fn versions_are_known_or_refused() {
    let service = with_blob().await;
    for version in ["2019-12-12", "2021-12-02", VERSION, "2026-10-06"] {
        let got = read(&service, As::Key, &[("x-ms-version", version)]).await;
        assert_eq!((got.status, got.header("x-ms-version")), (200, Some(version)));
    }
    for version in ["2020-01-01", "banana", "2099-01-01"] {
        let got = read(&service, As::Key, &[("x-ms-version", version)]).await;
        assert_eq!(got.outcome(), (400, "InvalidHeaderValue"), "{version}");
        assert_eq!(got.all("HeaderName"), ["x-ms-version"]);
    }
}

#[tokio::test]
async fn service_sas_does_what_it_says() {
    let service = with_blob().await;
    let container = |fields: &[(&str, &str)]| service.sas("box", None, fields);
    let base = [("sv", VERSION), ("sr", "c"), ("se", FAR)];
    let with = |extra: &[(&'static str, &'static str)]| [&base[..], extra].concat();
    let rows: Vec<(String, (u16, &str))> = vec![
        (container(&with(&[("sp", "r")])), (200, "")),
        (container(&with(&[("sp", "wl")])), (403, "AuthorizationPermissionMismatch")),
        (container(&with(&[("sp", "r"), ("st", "2026-01-15T08:29:59Z")])), (200, "")),
        (container(&with(&[("sp", "r"), ("st", "2026-01-15T08:30:01Z")])), (403, "AuthenticationFailed")),
        (container(&[("sv", VERSION), ("sr", "c"), ("se", "2026-01-15T08:30:00Z"), ("sp", "r")]), (403, "AuthenticationFailed")),
        (container(&[("sv", VERSION), ("sr", "c"), ("sp", "r")]), (403, "AuthenticationFailed")),
        (container(&with(&[("sp", "r"), ("sip", "127.0.0.1")])), (200, "")),
        (container(&with(&[("sp", "r"), ("sip", "127.0.0.0-127.0.0.9")])), (200, "")),
        (container(&with(&[("sp", "r"), ("sip", "10.0.0.1-10.0.0.9")])), (403, "AuthorizationSourceIPMismatch")),
        (container(&with(&[("sp", "r"), ("spr", "https,http")])), (200, "")),
        (container(&with(&[("sp", "r"), ("spr", "https")])), (403, "AuthorizationProtocolMismatch")),
        (service.sas("box", Some("a b/ü.txt"), &[("sv", VERSION), ("sr", "b"), ("se", FAR), ("sp", "r")]), (200, "")),
        (
            service.sas("box", Some("other"), &[("sv", VERSION), ("sr", "b"), ("se", FAR), ("sp", "r")]),
            (403, "AuthenticationFailed"),
        ),
        (service.sas("crate", None, &with(&[("sp", "r")])), (403, "AuthenticationFailed")),
    ];
    for (token, outcome) in rows {
        assert_eq!(read(&service, As::Sas(&token), &[]).await.outcome(), outcome, "{token}");
    }
}

#[tokio::test]
async fn a_sas_that_was_good_once_is_held_against_each_request_anew() {
    let service = with_blob().await;
    service.put("/crate?restype=container", &[], b"").await;
    let token = service.sas("box", None, &[("sv", VERSION), ("sr", "c"), ("sp", "r"), ("se", "2026-01-15T08:40:00Z")]);
    let one = service.sas("box", Some("a b/ü.txt"), &[("sv", VERSION), ("sr", "b"), ("se", FAR), ("sp", "r")]);
    for token in [&token, &one] {
        assert_eq!(read(&service, As::Sas(token), &[]).await.status, 200);
    }
    let refused = [
        ("PUT", BLOB, token.clone(), "AuthorizationPermissionMismatch"),
        ("GET", "/crate/x", token.clone(), "AuthenticationFailed"),
        ("GET", "/box/other", one, "AuthenticationFailed"),
        ("GET", BLOB, token.replace("sp=r", "sp=rw"), "AuthenticationFailed"),
        ("GET", BLOB, format!("{token}&sp=rw"), "AuthenticationFailed"),
        ("PUT", BLOB, format!("sp=rw&{token}&sp=rw"), "AuthenticationFailed"),
    ];
    for (method, target, token, code) in refused {
        let got = service.call_as(As::Sas(&token), method, target, &[("x-ms-blob-type", "BlockBlob")], b"").await;
        assert_eq!(got.outcome(), (403, code), "{method} {target} {token}");
    }
    service.pass(599);
    assert_eq!(read(&service, As::Sas(&token), &[]).await.status, 200);
    service.pass(1);
    assert_eq!(read(&service, As::Sas(&token), &[]).await.outcome(), (403, "AuthenticationFailed"));
}

#[tokio::test]
async fn account_sas_has_services_and_resource_types() {
    let service = with_blob().await;
    for (ss, srt, outcome) in [
        ("b", "o", (200, "")),
        ("bq", "sco", (200, "")),
        ("q", "sco", (403, "AuthorizationServiceMismatch")),
        ("b", "sc", (403, "AuthorizationResourceTypeMismatch")),
    ] {
        let token = service.account_sas(&[("sv", VERSION), ("ss", ss), ("srt", srt), ("sp", "r"), ("se", FAR)]);
        assert_eq!(read(&service, As::Sas(&token), &[]).await.outcome(), outcome, "{ss} {srt}");
    }
}

#[tokio::test]
async fn creating_is_less_than_overwriting_and_no_sas_touches_an_acl() {
    let service = with_blob().await;
    let token = service.account_sas(&[("sv", VERSION), ("ss", "b"), ("srt", "sco"), ("sp", "c"), ("se", FAR)]);
    let put = |target: &'static str| {
        let (service, token) = (&service, token.clone());
        async move {
            let headers = [("x-ms-blob-type", "BlockBlob")];
            service.call_as(As::Sas(&token), "PUT", target, &headers, b"x").await
        }
    };
    assert_eq!(put("/box/new").await.status, 201);
    assert_eq!(put("/box/new").await.outcome(), (403, "UnauthorizedBlobOverwrite"));
    let all = service.account_sas(&[("sv", VERSION), ("ss", "b"), ("srt", "sco"), ("sp", "rwdlac"), ("se", FAR)]);
    let acl = service.call_as(As::Sas(&all), "GET", "/box?restype=container&comp=acl", &[], b"").await;
    assert_eq!(acl.outcome(), (403, "AuthorizationFailure"));
}

#[tokio::test]
async fn a_stored_policy_gives_and_takes_rights() {
    let service = with_blob().await;
    let token = service.sas("box", None, &[("sv", VERSION), ("sr", "c"), ("si", "pol")]);
    assert_eq!(read(&service, As::Sas(&token), &[]).await.outcome(), (403, "AuthenticationFailed"));
    let acl = |permission: &str| {
        format!(
            "<SignedIdentifiers><SignedIdentifier><Id>pol</Id><AccessPolicy><Expiry>{FAR}</Expiry><Permission>{permission}\
             </Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        )
    };
    let target = "/box?restype=container&comp=acl";
    assert_eq!(service.put(target, &[], acl("r").as_bytes()).await.status, 200);
    assert_eq!(read(&service, As::Sas(&token), &[]).await.status, 200);
    assert_eq!(service.put(target, &[], acl("l").as_bytes()).await.status, 200);
    assert_eq!(read(&service, As::Sas(&token), &[]).await.outcome(), (403, "AuthorizationPermissionMismatch"));
    let both = service.sas("box", None, &[("sv", VERSION), ("sr", "c"), ("si", "pol"), ("sp", "r")]);
    assert_eq!(read(&service, As::Sas(&both), &[]).await.outcome(), (400, "InvalidQueryParameterValue"));
}

#[tokio::test]
async fn nobody_is_challenged_unless_access_is_public() {
    let service = with_blob().await;
    let got = read(&service, As::Nobody, &[]).await;
    assert_eq!(got.outcome(), (401, "NoAuthenticationInformation"));
    assert!(got.header("www-authenticate").unwrap().starts_with("Bearer authorization_uri=https://"), "{got:?}");
    let old = read(&service, As::Nobody, &[("x-ms-version", "2018-11-09")]).await;
    assert_eq!(old.outcome(), (404, "ResourceNotFound"));

    let list = "/box?restype=container&comp=list";
    for (access, blob_status, list_status) in [("blob", 200, 401), ("container", 200, 200), ("", 401, 401)] {
        let acl = "/box?restype=container&comp=acl";
        service.put(acl, &[("x-ms-blob-public-access", access)], b"").await;
        assert_eq!(read(&service, As::Nobody, &[]).await.status, blob_status, "{access}");
        assert_eq!(service.call_as(As::Nobody, "GET", list, &[], b"").await.status, list_status, "{access}");
        let write = service.call_as(As::Nobody, "DELETE", BLOB, &[], b"").await;
        assert_eq!(write.status, 401, "{access}");
    }
}

#[tokio::test]
async fn a_sas_can_replace_headers_of_the_answer() {
    let service = with_blob().await;
    let fields = [("sv", VERSION), ("sr", "c"), ("se", FAR), ("sp", "r"), ("rscd", "attachment"), ("rsct", "text/x")];
    let got = read(&service, As::Sas(&service.sas("box", None, &fields)), &[]).await;
    assert_eq!((got.header("content-disposition"), got.header("content-type")), (Some("attachment"), Some("text/x")));
}
