//! Blobs at the emulator: writing, blocks, reading, properties, tiers, snapshots, copies; by the service's rules.

use crate::support::raw::{As, Reply, Service, VERSION, read_reply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

async fn started() -> Service {
    let service = Service::start().await;
    assert_eq!(service.put("/box?restype=container", &[], b"").await.status, 201);
    service
}

async fn block(service: &Service, id: &str, body: &[u8]) -> Reply {
    service.put(&format!("/box/b?comp=block&blockid={}", id.replace('=', "%3D")), &[], body).await
}

async fn commit(service: &Service, list: &str, headers: &[(&str, &str)]) -> Reply {
    let xml = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{list}</BlockList>");
    service.put("/box/b?comp=blocklist", headers, xml.as_bytes()).await
}

#[tokio::test]
async fn put_blob_answers_both_hashes_and_get_tells_all_it_was_given() {
    let service = started().await;
    let headers = [
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-meta-Mixed_Case", "yes"),
        ("x-ms-tags", "a=1&b%20c=2"),
    ];
    let made = service.put("/box/b", &headers, b"Hello World!").await;
    assert_eq!(made.status, 201);
    // RFC 1321's algorithm and CRC-64/NVME, values published elsewhere.
    assert_eq!(made.header("content-md5"), Some("7Qdih1MuhjZehB6Sv8UNjA=="));
    assert_eq!(made.header("x-ms-content-crc64"), Some("peH8Xsgc5QI="));
    assert_eq!(made.header("x-ms-request-server-encrypted"), Some("true"));
    let got = service.get("/box/b").await;
    for (name, value) in [
        ("content-type", "text/plain"),
        ("cache-control", "no-cache"),
        ("x-ms-meta-mixed_case", "yes"),
        ("x-ms-tag-count", "2"),
        ("content-md5", "7Qdih1MuhjZehB6Sv8UNjA=="),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-lease-state", "available"),
        ("accept-ranges", "bytes"),
        ("last-modified", "Thu, 15 Jan 2026 08:30:00 GMT"),
        ("etag", made.header("etag").unwrap()),
    ] {
        assert_eq!(got.header(name), Some(value), "{name}");
    }
    assert_eq!((got.status, got.body.as_slice()), (200, b"Hello World!".as_slice()));
    // Only HEAD tells the tier.
    assert_eq!(got.header("x-ms-access-tier"), None);
    let head = service.call("HEAD", "/box/b", &[], b"").await;
    assert_eq!((head.header("x-ms-access-tier"), head.header("x-ms-access-tier-inferred")), (Some("Hot"), Some("true")));
    assert_eq!(head.header("content-length"), Some("12"));
}

#[tokio::test]
async fn hashes_are_checked_and_told() {
    let service = started().await;
    let (md5, crc) = ("7Qdih1MuhjZehB6Sv8UNjA==", "peH8Xsgc5QI=");
    let other_md5 = "AAAAAAAAAAAAAAAAAAAAAA==";
    for (name, value, outcome) in [
        ("Content-MD5", md5, (201, "")),
        ("Content-MD5", other_md5, (400, "Md5Mismatch")),
        ("Content-MD5", "AAAA", (400, "InvalidMd5")),
        ("x-ms-content-crc64", crc, (201, "")),
        ("x-ms-content-crc64", "AAAAAAAAAAA=", (400, "Crc64Mismatch")),
        ("x-ms-content-crc64", "AAAA", (400, "InvalidHeaderValue")),
        ("x-ms-blob-content-md5", other_md5, (400, "Md5Mismatch")),
    ] {
        let got = service.put("/box/b", &[("x-ms-blob-type", "BlockBlob"), (name, value)], b"Hello World!").await;
        assert_eq!(got.outcome(), outcome, "{name}: {value}");
    }
    // A block answers with the hash it was given, else with the CRC64.
    let target = "/box/b?comp=block&blockid=AAAA";
    let plain = service.put(target, &[], b"Hello World!").await;
    assert_eq!((plain.header("content-md5"), plain.header("x-ms-content-crc64")), (None, Some(crc)));
    let asked = service.put(target, &[("Content-MD5", md5)], b"Hello World!").await;
    assert_eq!((asked.header("content-md5"), asked.header("x-ms-content-crc64")), (Some(md5), None));
    let old = service.put(target, &[("x-ms-version", "2018-11-09")], b"Hello World!").await;
    assert_eq!((old.header("content-md5"), old.header("x-ms-content-crc64")), (Some(md5), None));
    let wrong = service.put(target, &[("x-ms-content-crc64", "AAAAAAAAAAA=")], b"Hello World!").await;
    assert_eq!(
        (wrong.all("UserSpecifiedCrc"), wrong.all("ServerCalculatedCrc")),
        (vec!["AAAAAAAAAAA=".into()], vec![crc.into()])
    );
}

#[tokio::test]
async fn ranges() {
    let service = started().await;
    service.upload("/box/b", b"0123456789").await;
    service.upload("/box/empty", b"").await;
    for (blob, range, status, content_range, body) in [
        ("b", "bytes=0-4", 206, Some("bytes 0-4/10"), "01234"),
        ("b", "bytes=8-99", 206, Some("bytes 8-9/10"), "89"),
        ("b", "bytes=3-", 206, Some("bytes 3-9/10"), "3456789"),
        ("b", "bytes=9-9", 206, Some("bytes 9-9/10"), "9"),
        ("b", "bytes=-3", 200, None, "0123456789"),
        ("b", "bytes=0-1,3-4", 200, None, "0123456789"),
        ("b", "bytes=10-", 416, Some("bytes */10"), ""),
        ("empty", "bytes=0-", 416, Some("bytes */0"), ""),
        ("empty", "bytes=0-0", 416, Some("bytes */0"), ""),
    ] {
        let got = service.call("GET", &format!("/box/{blob}"), &[("x-ms-range", range)], b"").await;
        assert_eq!((got.status, got.header("content-range")), (status, content_range), "{blob} {range}");
        if status < 400 {
            assert_eq!(got.text(), body, "{blob} {range}");
            let own = if status == 206 { "x-ms-blob-content-md5" } else { "content-md5" };
            assert_eq!(got.header(own), Some("eB5eJF1ptWaXm4bijSPyxw=="), "{range}");
        } else {
            assert_eq!(got.code(), "InvalidRange");
        }
    }
    let both = [("Range", "bytes=0-1"), ("x-ms-range", "bytes=2-3")];
    assert_eq!(service.call("GET", "/box/b", &both, b"").await.text(), "23");
    let hashed = [("x-ms-range", "bytes=0-8"), ("x-ms-range-get-content-crc64", "true")];
    service.upload("/box/b", b"123456789!").await;
    assert_eq!(service.call("GET", "/box/b", &hashed, b"").await.header("x-ms-content-crc64"), Some("iJh5CoYUi64="));
    assert_eq!(service.call("GET", "/box/b", &hashed[1..], b"").await.status, 400);
}

#[tokio::test]
async fn a_list_is_the_new_blob() {
    let service = started().await;
    for (id, body) in [("AAAA", "one,"), ("AAAB", "two,"), ("AAAC", "three")] {
        assert_eq!(block(&service, id, body.as_bytes()).await.status, 201);
    }
    // Staged only: not there for readers, but its blocks are.
    assert_eq!(service.get("/box/b").await.outcome(), (404, "BlobNotFound"));
    let list = service.get("/box/b?comp=blocklist&blocklisttype=all").await;
    assert!(list.text().ends_with(
        "<BlockList><CommittedBlocks /><UncommittedBlocks><Block><Name>AAAA</Name><Size>4</Size></Block><Block><Name>AAAB</Name>\
         <Size>4</Size></Block><Block><Name>AAAC</Name><Size>5</Size></Block></UncommittedBlocks></BlockList>"
    ));
    assert_eq!(list.header("etag"), None);

    let order = "<Latest>AAAB</Latest><Uncommitted>AAAA</Uncommitted><Latest>AAAB</Latest>";
    assert_eq!(commit(&service, order, &[]).await.status, 201);
    let got = service.get("/box/b").await;
    assert_eq!((got.text().as_str(), got.header("content-md5")), ("two,one,two,", None));
    // The block not named is gone.
    assert_eq!(commit(&service, "<Latest>AAAC</Latest>", &[]).await.outcome(), (400, "InvalidBlockList"));
    assert_eq!(service.get("/box/b").await.text(), "two,one,two,");

    block(&service, "AAAA", b"ONE,").await;
    let mixed = "<Committed>AAAA</Committed><Latest>AAAB</Latest>";
    assert_eq!(commit(&service, mixed, &[]).await.status, 201);
    assert_eq!(service.get("/box/b").await.text(), "one,two,", "committed means the old one");
    block(&service, "AAAA", b"ONE,").await;
    assert_eq!(commit(&service, "<Latest>AAAA</Latest>", &[]).await.status, 201);
    assert_eq!(service.get("/box/b").await.text(), "ONE,", "latest means the new one");
    // Sending the same again, as after a lost answer, changes nothing that matters.
    assert_eq!(commit(&service, "<Latest>AAAA</Latest>", &[]).await.status, 201);
    assert_eq!(commit(&service, "<Uncommitted>AAAA</Uncommitted>", &[]).await.outcome(), (400, "InvalidBlockList"));
    assert_eq!(commit(&service, "", &[]).await.status, 201);
    assert_eq!(service.get("/box/b").await.text(), "");
}

// semantics 29
#[tokio::test]
async fn block_rules() {
    let service = started().await;
    let put = async |query: &str, body: &[u8]| service.put(&format!("/box/b?comp=block{query}"), &[], body).await;
    let long = BASE64.encode([0; 65]);
    for (query, body, outcome) in [
        ("", "x", (400, "MissingRequiredQueryParameter")),
        ("&blockid=AAA", "x", (400, "InvalidQueryParameterValue")),
        ("&blockid=%21", "x", (400, "InvalidQueryParameterValue")),
        ("&blockid=", "x", (400, "InvalidBlobOrBlock")),
        (&format!("&blockid={long}"), "x", (400, "OutOfRangeInput")),
        ("&blockid=AAAA", "", (400, "InvalidHeaderValue")),
        ("&blockid=AAAA", "x", (201, "")),
        ("&blockid=AAAAAAAA", "x", (400, "InvalidBlobOrBlock")),
        // `=` unencoded inside a value is legal.
        ("&blockid=AAA=", "x", (201, "")),
    ] {
        assert_eq!(put(query, body.as_bytes()).await.outcome(), outcome, "{query}");
    }
    let empty = put("&blockid=AAAA", b"").await;
    assert_eq!((empty.all("HeaderName"), empty.all("HeaderValue")), (vec!["Content-Length".into()], vec!["0".into()]));
    // Put Blob drops what was staged.
    service.upload("/box/b", b"whole").await;
    assert_eq!(commit(&service, "<Latest>AAAA</Latest>", &[]).await.outcome(), (400, "InvalidBlockList"));
    let missing = service.put("/none/b?comp=block&blockid=AAAA", &[], b"x").await;
    assert_eq!(missing.outcome(), (404, "ContainerNotFound"));
    let many = "<Latest>AAAA</Latest>".repeat(50_001);
    assert_eq!(commit(&service, &many, &[]).await.outcome(), (400, "BlockListTooLong"));
    for bad in ["<Other>AAAA</Other>", "<Latest>AAAA"] {
        assert_eq!(commit(&service, bad, &[]).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn limits_follow_the_version_of_the_request() {
    let service = started().await;
    let mib = 1 << 20;
    for (version, target, limit) in [
        ("2015-12-11", "/box/b?comp=block&blockid=AAAA", 4 * mib),
        ("2018-11-09", "/box/b?comp=block&blockid=AAAA", 100 * mib),
        (VERSION, "/box/b?comp=block&blockid=AAAA", 4000 * mib),
        ("2015-12-11", "/box/b", 64 * mib),
        ("2018-11-09", "/box/b", 256 * mib),
        (VERSION, "/box/b", 5000 * mib),
    ] {
        // Refused by its length alone: no body is sent, and "100 Continue" is not answered.
        let headers = [("x-ms-version", version), ("x-ms-blob-type", "BlockBlob"), ("Expect", "100-continue")];
        let head = service.request(As::Key, "PUT", target, &headers, limit + 1);
        let mut stream = TcpStream::connect(("127.0.0.1", service.emulator.port())).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let got = read_reply(&mut stream, false).await;
        assert_eq!(got.status, 413, "{version} {target}");
        assert_eq!(got.all("MaxLimit"), [limit.to_string()], "{version} {target}");
    }
}

#[tokio::test]
async fn writes_clear_what_they_do_not_name() {
    let service = started().await;
    block(&service, "AAAA", b"x").await;
    let headers =
        [("x-ms-blob-content-type", "a/b"), ("x-ms-meta-k", "v"), ("x-ms-blob-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")];
    assert_eq!(commit(&service, "<Latest>AAAA</Latest>", &headers).await.status, 201);
    let got = service.get("/box/b").await;
    // On a commit the MD5 is stored as it comes.
    assert_eq!((got.header("content-type"), got.header("content-md5")), (Some("a/b"), Some("AAAAAAAAAAAAAAAAAAAAAA==")));
    commit(&service, "<Latest>AAAA</Latest>", &[]).await;
    let got = service.get("/box/b").await;
    assert_eq!(got.header("content-type"), Some("application/octet-stream"));
    assert_eq!((got.header("x-ms-meta-k"), got.header("content-md5")), (None, None));
    // Set Blob Properties without any clears the type itself.
    assert_eq!(service.put("/box/b?comp=properties", &[], b"").await.status, 200);
    assert_eq!(service.get("/box/b").await.header("content-type"), None);
}

#[tokio::test]
async fn conditions_guard_writes() {
    let service = started().await;
    let etag = service.upload("/box/b", b"1").await.header("etag").unwrap().to_owned();
    let put = async |name: &'static str, value: &str| {
        service.put("/box/b", &[("x-ms-blob-type", "BlockBlob"), (name, value)], b"2").await
    };
    assert_eq!(put("If-None-Match", "*").await.outcome(), (409, "BlobAlreadyExists"));
    assert_eq!(put("If-Match", "\"0x1\"").await.outcome(), (412, "ConditionNotMet"));
    assert_eq!(put("If-Match", &etag).await.status, 201);
    assert_eq!(put("If-Match", &etag).await.outcome(), (412, "ConditionNotMet"), "the etag has changed");
    let read = service.call("GET", "/box/b", &[("If-Modified-Since", &service.date(0))], b"").await;
    assert_eq!((read.outcome(), read.body.len()), ((304, "ConditionNotMet"), 0));
    block(&service, "AAAA", b"x").await;
    let committed = commit(&service, "<Latest>AAAA</Latest>", &[("If-None-Match", "*")]).await;
    assert_eq!(committed.outcome(), (409, "BlobAlreadyExists"));
    let tagged = [("x-ms-if-tags", "\"a\" = '1'")];
    assert_eq!(service.call("GET", "/box/b", &tagged, b"").await.status, 412);
    let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
    assert_eq!(service.put("/box/b?comp=tags", &[], tags.as_bytes()).await.status, 204);
    assert_eq!(service.call("GET", "/box/b", &tagged, b"").await.status, 200);
}

#[tokio::test]
async fn leases_guard_writes_and_run_out() {
    let service = started().await;
    service.upload("/box/b", b"1").await;
    let id = "11111111-2222-3333-4444-555555555555";
    let lease = async |headers: &[(&str, &str)]| service.put("/box/b?comp=lease", headers, b"").await;
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", id)];
    let got = lease(&acquire).await;
    assert_eq!((got.status, got.header("x-ms-lease-id")), (201, Some(id)));
    assert_eq!(service.upload("/box/b", b"2").await.outcome(), (412, "LeaseIdMissing"));
    let with = |id: &'static str| [("x-ms-blob-type", "BlockBlob"), ("x-ms-lease-id", id)];
    assert_eq!(service.put("/box/b", &with(id), b"2").await.status, 201);
    let foreign = "99999999-2222-3333-4444-555555555555";
    assert_eq!(service.put("/box/b", &with(foreign), b"2").await.outcome(), (412, "LeaseIdMismatchWithBlobOperation"));
    assert_eq!(service.put("/box/b", &with("garbage"), b"2").await.outcome(), (400, "InvalidHeaderValue"));
    assert_eq!(block(&service, "AAAA", b"x").await.outcome(), (412, "LeaseIdMissing"));
    let head = service.call("HEAD", "/box/b", &[], b"").await;
    assert_eq!((head.header("x-ms-lease-state"), head.header("x-ms-lease-duration")), (Some("leased"), Some("fixed")));
    service.pass(15);
    assert_eq!(service.put("/box/b", &with(id), b"2").await.outcome(), (412, "LeaseLost"));
    assert_eq!(service.upload("/box/b", b"2").await.status, 201);
    for (duration, status) in [("14", 400), ("61", 400), ("-10", 400), ("x", 400), ("-1", 201)] {
        let got = lease(&[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", duration)]).await;
        assert_eq!(got.status, status, "{duration}");
    }
    let broken = lease(&[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "5")]).await;
    assert_eq!((broken.status, broken.header("x-ms-lease-time"), broken.header("x-ms-lease-id")), (202, Some("5"), None));
}

#[tokio::test]
async fn snapshots_stay_as_they_were_and_stand_in_the_way_of_deletion() {
    let service = started().await;
    service.upload("/box/b", b"old").await;
    let made = service.put("/box/b?comp=snapshot", &[], b"").await;
    assert_eq!(made.status, 201);
    let time = made.header("x-ms-snapshot").unwrap().to_owned();
    service.upload("/box/b", b"new").await;
    assert_eq!(service.get(&format!("/box/b?snapshot={time}")).await.text(), "old");
    assert_eq!(service.get("/box/b").await.text(), "new");
    assert_eq!(service.get("/box/b?snapshot=yesterday").await.outcome(), (400, ""));
    let write = service.put(&format!("/box/b?snapshot={time}"), &[("x-ms-blob-type", "BlockBlob")], b"x").await;
    assert_eq!(write.outcome(), (400, "InvalidQueryParameterValue"));
    let delete = async |headers: &[(&str, &str)]| service.call("DELETE", "/box/b", headers, b"").await;
    assert_eq!(delete(&[]).await.outcome(), (409, "SnapshotsPresent"));
    assert_eq!(delete(&[("x-ms-delete-snapshots", "only")]).await.status, 202);
    assert_eq!(service.get(&format!("/box/b?snapshot={time}")).await.outcome(), (404, "BlobNotFound"));
    let gone = delete(&[]).await;
    assert_eq!((gone.status, gone.header("x-ms-delete-type-permanent")), (202, Some("true")));
    assert_eq!(delete(&[]).await.outcome(), (404, "BlobNotFound"));
}

#[tokio::test]
async fn what_is_deleted_can_be_had_back_while_the_account_keeps_it() {
    let service = started().await;
    let keep = |days: &str| {
        format!(
            "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></DeleteRetentionPolicy>\
             </StorageServiceProperties>"
        )
    };
    let properties = "/?restype=service&comp=properties";
    assert_eq!(service.put(properties, &[], keep("366").as_bytes()).await.outcome(), (400, "InvalidXmlDocument"));
    assert_eq!(service.put(properties, &[], keep("2").as_bytes()).await.status, 202);
    service.upload("/box/b", b"x").await;
    let taken = service.put("/box/b?comp=snapshot", &[], b"").await;
    let snapshot = format!("/box/b?snapshot={}", taken.header("x-ms-snapshot").unwrap());
    let delete = async || service.call("DELETE", "/box/b", &[("x-ms-delete-snapshots", "include")], b"").await;
    assert_eq!(delete().await.header("x-ms-delete-type-permanent"), Some("false"));
    let soft = async |target: &str| service.get(target).await.header("x-ms-is-soft-deleted").map(str::to_owned);
    assert_eq!((service.get("/box/b").await.outcome(), soft("/box/b").await), ((404, "BlobNotFound"), None));
    assert_eq!(soft(&snapshot).await.as_deref(), Some("true"));
    let list = async |include: &str| service.get(&format!("/box?restype=container&comp=list&include={include}")).await;
    assert_eq!(list("snapshots").await.all("Name"), [""; 0]);
    let page = list("snapshots,deleted").await;
    assert_eq!((page.all("Deleted").len(), page.all("RemainingRetentionDays")), (2, vec!["1".to_owned(); 2]));
    let undelete = async || service.put("/box/b?comp=undelete", &[], b"").await;
    assert_eq!(undelete().await.status, 200);
    assert_eq!(service.get("/box/b").await.text(), "x");
    assert_eq!(list("snapshots,deleted").await.all("Name").len(), 2);
    assert_eq!(undelete().await.status, 200, "and nothing happens");
    delete().await;
    service.pass(2 * 86_400);
    assert_eq!(list("snapshots,deleted").await.all("Name"), [""; 0]);
    assert_eq!(undelete().await.outcome(), (404, "BlobNotFound"));
}

#[tokio::test]
async fn tiers_and_the_way_out_of_the_archive() {
    let service = started().await;
    service.upload("/box/b", b"x").await;
    let set = async |tier: &str| service.put("/box/b?comp=tier", &[("x-ms-access-tier", tier)], b"").await;
    for (tier, outcome) in [
        ("Lukewarm", (400, "InvalidHeaderValue")),
        ("P10", (400, "InvalidHeaderValue")),
        ("Cool", (200, "")),
        ("Archive", (200, "")),
        ("Archive", (200, "")),
    ] {
        assert_eq!(set(tier).await.outcome(), outcome, "{tier}");
    }
    assert_eq!(service.get("/box/b").await.outcome(), (409, "BlobArchived"));
    assert_eq!(block(&service, "AAAA", b"y").await.outcome(), (409, "BlobArchived"));
    assert_eq!(set("Hot").await.status, 202);
    assert_eq!(set("Hot").await.status, 202);
    assert_eq!(set("Cool").await.outcome(), (409, "BlobBeingRehydrated"));
    let head = service.call("HEAD", "/box/b", &[], b"").await;
    assert_eq!(
        ["x-ms-access-tier", "x-ms-archive-status", "x-ms-rehydrate-priority"].map(|name| head.header(name)),
        [Some("Archive"), Some("rehydrate-pending-to-hot"), Some("Standard")]
    );
}

#[tokio::test]
async fn other_kinds_of_blob_keep_out_of_each_others_way() {
    let service = started().await;
    let kind = |name: &'static str| [("x-ms-blob-type", name), ("x-ms-blob-content-length", "1024")];
    assert_eq!(service.put("/box/page", &kind("PageBlob"), b"").await.status, 201);
    assert_eq!(service.put("/box/append", &kind("AppendBlob")[..1], b"").await.status, 201);
    assert_eq!(service.upload("/box/page", b"x").await.outcome(), (409, "InvalidBlobType"));
    let staged = service.put("/box/append?comp=block&blockid=AAAA", &[], b"x").await;
    assert_eq!(staged.outcome(), (409, "InvalidBlobType"));
    assert_eq!(service.put("/box/x", &kind("CloudBlob"), b"").await.outcome(), (400, "InvalidHeaderValue"));
    assert_eq!(service.put("/box/x", &[], b"").await.outcome(), (400, "MissingRequiredHeader"));
    let write = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=512-1023")];
    assert_eq!(service.put("/box/page?comp=page", &write, &[7; 512]).await.status, 201);
    assert_eq!(service.get("/box/page").await.body, [vec![0; 512], vec![7; 512]].concat());
    for (at, status) in [("0", 201), ("0", 412), ("3", 201)] {
        let got = service.put("/box/append?comp=appendblock", &[("x-ms-blob-condition-appendpos", at)], b"abc").await;
        assert_eq!(got.status, status, "{at}");
    }
    assert_eq!(service.get("/box/append").await.text(), "abcabc");
}

#[tokio::test]
async fn copies_read_what_their_caller_may_read() {
    let service = started().await;
    service
        .put(
            "/box/src",
            &[("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-k", "v"), ("x-ms-blob-content-type", "a/b")],
            b"0123456789",
        )
        .await;
    let url = format!("{}/box/src", service.emulator.url());
    let copied = service.put("/box/copy", &[("x-ms-copy-source", &url)], b"").await;
    assert_eq!((copied.status, copied.header("x-ms-copy-status")), (202, Some("success")));
    let got = service.get("/box/copy").await;
    assert_eq!(
        (got.text().as_str(), got.header("x-ms-meta-k"), got.header("content-type")),
        ("0123456789", Some("v"), Some("a/b"))
    );
    assert_eq!(got.header("x-ms-copy-source"), Some(url.as_str()));
    let part = [("x-ms-copy-source", url.as_str()), ("x-ms-source-range", "bytes=2-4")];
    assert_eq!(service.put("/box/b?comp=block&blockid=AAAA", &part, b"").await.status, 201);
    assert_eq!(commit(&service, "<Latest>AAAA</Latest>", &[]).await.status, 201);
    assert_eq!(service.get("/box/b").await.text(), "234");
    let whole = [("x-ms-copy-source", url.as_str()), ("x-ms-blob-type", "BlockBlob")];
    assert_eq!(service.put("/box/whole", &whole, b"").await.status, 201);
    assert_eq!(service.get("/box/whole").await.text(), "0123456789");

    // Somebody with a SAS for the target alone does not thereby read the source.
    let token = service.sas("box", None, &[("sv", VERSION), ("sr", "c"), ("se", "2030-01-01"), ("sp", "cw")]);
    let refused = service.call_as(As::Sas(&token), "PUT", "/box/stolen", &[("x-ms-copy-source", &url)], b"").await;
    assert_eq!(refused.outcome(), (401, "CannotVerifyCopySource"));
    assert_eq!(refused.header("x-ms-copy-source-status-code"), Some("401"));
    let missing = service.put("/box/c", &[("x-ms-copy-source", &format!("{url}x"))], b"").await;
    assert_eq!(
        (missing.outcome(), missing.header("x-ms-copy-source-error-code")),
        ((404, "CannotVerifyCopySource"), Some("BlobNotFound"))
    );
    let elsewhere = service.put("/box/c", &[("x-ms-copy-source", "http://example.com/a/b")], b"").await;
    assert_eq!(elsewhere.code(), "CannotVerifyCopySource");
    let unmet = [("x-ms-copy-source", url.as_str()), ("x-ms-source-if-match", "\"0x1\"")];
    assert_eq!(service.put("/box/c", &unmet, b"").await.outcome(), (412, "SourceConditionNotMet"));
    let sync = [&unmet[..], &[("x-ms-requires-sync", "true")]].concat();
    assert_eq!(service.put("/box/c", &sync, b"").await.outcome(), (412, "CannotVerifyCopySource"));
}
