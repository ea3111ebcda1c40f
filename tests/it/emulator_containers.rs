//! Containers and listings at the emulator.

use crate::support::raw::Service;
use std::collections::BTreeSet;

#[tokio::test]
async fn a_container_is_made_once_and_its_name_stays_taken_for_a_while() {
    let service = Service::start().await;
    let create = async |name: &str| service.put(&format!("/{name}?restype=container"), &[], b"").await;
    assert_eq!(create("box").await.status, 201);
    assert_eq!(create("box").await.outcome(), (409, "ContainerAlreadyExists"));
    assert_eq!(create("Box").await.outcome(), (400, "InvalidResourceName"));
    assert_eq!(create("bo").await.outcome(), (400, "OutOfRangeInput"));
    let delete = async || service.call("DELETE", "/box?restype=container", &[], b"").await;
    assert_eq!(delete().await.status, 202);
    assert_eq!(delete().await.status, 202, "again, while it fades");
    service.pass(29);
    assert_eq!(create("box").await.outcome(), (409, "ContainerBeingDeleted"));
    service.pass(1);
    assert_eq!(create("box").await.status, 201);
}

#[tokio::test]
async fn container_leases_protect_only_from_deletion() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    let id = "11111111-2222-3333-4444-555555555555";
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", id)];
    assert_eq!(service.put("/box?restype=container&comp=lease", &lease, b"").await.status, 201);
    assert_eq!(service.put("/box?restype=container&comp=metadata", &[("x-ms-meta-a", "b")], b"").await.status, 200);
    let foreign = [("x-ms-lease-id", "99999999-2222-3333-4444-555555555555")];
    let got = service.call("GET", "/box?restype=container", &foreign, b"").await;
    assert_eq!(got.outcome(), (412, "LeaseIdMismatchWithContainerOperation"));
    let target = "/box?restype=container";
    assert_eq!(service.call("DELETE", target, &[], b"").await.outcome(), (412, "LeaseIdMissing"));
    assert_eq!(service.call("DELETE", target, &[("x-ms-lease-id", id)], b"").await.status, 202);
}

#[tokio::test]
async fn container_listing_pages_and_repeats_what_it_was_asked() {
    let service = Service::start().await;
    for name in ["aa1", "aa2", "aa3", "bbb"] {
        service.put(&format!("/{name}?restype=container"), &[("x-ms-meta-k", name)], b"").await;
    }
    let first = service.get("/?comp=list&prefix=aa&maxresults=2&include=metadata").await;
    assert_eq!(first.all("Name"), ["aa1", "aa2"]);
    assert_eq!(first.all("k"), ["aa1", "aa2"]);
    assert_eq!((first.all("Prefix"), first.all("MaxResults")), (vec!["aa".into()], vec!["2".into()]));
    assert!(first.text().starts_with("\u{feff}<?xml"));
    assert!(first.all("Etag")[0].starts_with("\"0x"), "quoted here");
    let marker = first.all("NextMarker").concat();
    assert_eq!(marker, "/devstoreaccount1/aa3");
    let second = service.get(&format!("/?comp=list&prefix=aa&marker={marker}")).await;
    assert_eq!(second.all("Name"), ["aa3"]);
    assert!(second.text().contains("<NextMarker />"));
    assert_eq!(service.get("/?comp=list&marker=garbage").await.outcome(), (400, "OutOfRangeInput"));
}

async fn names(service: &Service, query: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut marker = String::new();
    loop {
        let page = service.get(&format!("/box?restype=container&comp=list{query}{marker}")).await;
        assert_eq!(page.status, 200, "{query}: {}", page.text());
        found.extend(page.all("Name"));
        match page.all("NextMarker").first() {
            Some(next) => marker = format!("&marker={}", next.replace('=', "%3D").replace('+', "%2B")),
            None => return found,
        }
    }
}

#[tokio::test]
async fn blob_listing_by_prefix_delimiter_and_page() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    for name in ["a", "a/1", "a/2/x", "a/2/y", "a//", "b", "B", "%C3%BC", "a0"] {
        assert_eq!(service.upload(&format!("/box/{name}"), b"x").await.status, 201, "{name}");
    }
    let all = ["B", "a", "a//", "a/1", "a/2/x", "a/2/y", "a0", "b", "ü"];
    for max in 1..=9 {
        assert_eq!(names(&service, &format!("&maxresults={max}")).await, all, "pages of {max}");
        let by_delimiter = names(&service, &format!("&delimiter=/&maxresults={max}")).await;
        assert_eq!(by_delimiter, ["B", "a", "a/", "a0", "b", "ü"], "pages of {max}");
    }
    assert_eq!(names(&service, "&prefix=a/&delimiter=/").await, ["a//", "a/1", "a/2/"]);
    assert_eq!(names(&service, "&prefix=a/2").await, ["a/2/x", "a/2/y"]);
    assert_eq!(names(&service, "&prefix=c").await, [""; 0]);
    for (query, outcome) in [
        ("&maxresults=0", (400, "OutOfRangeQueryParameterValue")),
        ("&maxresults=x", (400, "InvalidQueryParameterValue")),
        ("&maxresults=99999", (200, "")),
        ("&include=everything", (400, "InvalidQueryParameterValue")),
        ("&include=snapshots&delimiter=/", (400, "InvalidQueryParameterValue")),
        ("&include=snapshots,metadata", (200, "")),
        ("&include=snapshots%2Cmetadata", (200, "")),
        ("&marker=x", (400, "InvalidQueryParameterValue")),
    ] {
        let got = service.get(&format!("/box?restype=container&comp=list{query}")).await;
        assert_eq!(got.outcome(), outcome, "{query}");
    }
}

#[tokio::test]
async fn listings_show_snapshots_and_uncommitted_blobs_when_asked() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    for _ in 0..3 {
        service.upload("/box/s", b"x").await;
        service.put("/box/s?comp=snapshot", &[], b"").await;
    }
    service.put("/box/u?comp=block&blockid=AAAA", &[], b"x").await;
    service.upload("/box/z", b"x").await;
    assert_eq!(names(&service, "").await, ["s", "z"]);
    for max in 1..=6 {
        let query = format!("&include=snapshots,uncommittedblobs&maxresults={max}");
        assert_eq!(names(&service, &query).await, ["s", "s", "s", "s", "u", "z"], "pages of {max}");
    }
    let page = service.get("/box?restype=container&comp=list&include=snapshots").await;
    let times: BTreeSet<String> = page.all("Snapshot").into_iter().collect();
    assert_eq!(times.len(), 3);
    assert!(!page.all("Etag")[0].contains('"'), "not quoted here");
}

#[tokio::test]
async fn names_that_xml_cannot_hold_are_encoded() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    service.upload("/box/dir/%EF%BF%BF%26", b"x").await;
    let page = service.get("/box?restype=container&comp=list").await.text();
    assert!(page.contains("<Name Encoded=\"true\">dir%2F%EF%BF%BF%26</Name>"), "{page}");
}

#[tokio::test]
async fn policies_come_back_as_they_were_sent() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    let target = "/box?restype=container&comp=acl";
    let inner = "<SignedIdentifier><Id>a</Id><AccessPolicy><Start>2026-01-01T00:00:00.0000000Z</Start><Permission>r</Permission>\
                 </AccessPolicy></SignedIdentifier><SignedIdentifier><Id>b</Id></SignedIdentifier>";
    let sent = format!("<?xml version=\"1.0\"?><SignedIdentifiers>{inner}</SignedIdentifiers>");
    assert_eq!(service.put(target, &[("x-ms-blob-public-access", "blob")], sent.as_bytes()).await.status, 200);
    let got = service.get(target).await;
    assert_eq!(got.header("x-ms-blob-public-access"), Some("blob"));
    assert!(got.text().ends_with(&format!("<SignedIdentifiers>{inner}</SignedIdentifiers>")), "{}", got.text());
    assert_eq!(service.put(target, &[], b"").await.status, 200);
    let got = service.get(target).await;
    assert!(got.text().ends_with("<SignedIdentifiers />"));
    assert_eq!(got.header("x-ms-blob-public-access"), None);
    let six = format!("<SignedIdentifiers>{}</SignedIdentifiers>", "<SignedIdentifier><Id>x</Id></SignedIdentifier>".repeat(6));
    assert_eq!(service.put(target, &[], six.as_bytes()).await.outcome(), (400, "InvalidXmlDocument"));
}

#[tokio::test]
async fn a_batch_answers_each_part() {
    let service = Service::start().await;
    service.put("/box?restype=container", &[], b"").await;
    service.upload("/box/a", b"x").await;
    service.upload("/box/b", b"x").await;
    let part = |id: usize, line: &str| {
        format!("--lot\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\n{line} HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    };
    let send = async |parts: String| {
        let body = format!("{parts}--lot--\r\n");
        let headers = [("Content-Type", "multipart/mixed; boundary=lot")];
        service.call("POST", "/?comp=batch", &headers, body.as_bytes()).await
    };
    let delete = |name| format!("DELETE /devstoreaccount1/box/{name}");
    let got = send(part(0, &delete("a")) + &part(1, &delete("none"))).await;
    assert_eq!(got.status, 202);
    let text = got.text();
    assert!(text.contains("Content-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\n"), "{text}");
    assert!(text.contains("Content-ID: 1\r\n\r\nHTTP/1.1 404 The specified blob does not exist.\r\n"), "{text}");
    assert!(text.contains("x-ms-error-code: BlobNotFound\r\n") && text.ends_with("--"), "{text}");
    assert_eq!(service.get("/box/a").await.status, 404);

    let tier = part(1, "PUT /devstoreaccount1/box/b?comp=tier");
    let mixed = send(part(0, &delete("b")) + &tier).await;
    assert!(mixed.text().contains("HTTP/1.1 400 All batch subrequests should be the same api."), "{}", mixed.text());
    assert!(send(String::new()).await.text().contains("InvalidInput"));
    assert_eq!(service.get("/box/b").await.status, 200, "nothing of a refused batch is done");
}
