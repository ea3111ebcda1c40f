//! Strings to sign and signatures, against requests signed by the service's own SDKs (and some made by hand from the published
//! rules). The embedded service shares these functions with the client, so without the vectors both could agree on a mistake.

use base64::Engine as _;
use blobjet::rest::auth::sas::{self, Fields, Token, account_string_to_sign, canonical_resource, mint, service_string_to_sign};
use blobjet::rest::auth::shared_key::{DEV_ACCOUNT, DEV_KEY, ToSign, decode_query, lite_string_to_sign, sign, string_to_sign};
use blobjet::rest::headers::HeaderList;
use http::{HeaderName, HeaderValue};

const VERSION: &str = "2025-11-05";
const DATE: &str = "Thu, 15 Jan 2026 08:30:00 GMT";
const REQUEST_ID: (&str, &str) = ("x-ms-client-request-id", "11111111-2222-3333-4444-555555555555");

fn key() -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(DEV_KEY).unwrap()
}

fn headers(own: &[(&str, &str)]) -> HeaderList {
    let mut map = HeaderList::default();
    for (name, value) in own.iter().chain(&[("x-ms-date", DATE), ("x-ms-version", VERSION)]) {
        map.insert(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    map
}

struct Case {
    id: &'static str,
    method: &'static str,
    /// Path and query as on the wire.
    target: &'static str,
    headers: &'static [(&'static str, &'static str)],
    string_to_sign: String,
    signature: &'static str,
}

const UNICODE: &str = "/devstoreaccount1/vectors/%D0%BF%D0%B0%D0%BF%D0%BA%D0%B0/na%C3%AFve%20file%20%231%3F.txt";

/// `method`, empty lines but for those given by number (2 Content-Encoding to 12 Range), `x-ms-*` lines, resource.
fn expected(method: &str, lines: &[(usize, &str)], before_date: &str, after_date: &str, resource: &str) -> String {
    let mut standard = [""; 11];
    for (number, value) in lines {
        standard[number - 2] = value;
    }
    format!("{method}\n{}\n{before_date}x-ms-date:{DATE}\n{after_date}x-ms-version:{VERSION}\n{resource}", standard.join("\n"))
}

const ID_LINE: &str = "x-ms-client-request-id:11111111-2222-3333-4444-555555555555\n";

fn cases() -> Vec<Case> {
    vec![
        Case {
            id: "B1: create container, path style",
            method: "PUT",
            target: "/devstoreaccount1/vectors?restype=container",
            headers: &[REQUEST_ID],
            string_to_sign: expected("PUT", &[], ID_LINE, "", "/devstoreaccount1/devstoreaccount1/vectors\nrestype:container"),
            signature: "CeVdGhfDNZuRpcLgQlMRMUdO4E4jqa784Zf0hwMMeUM=",
        },
        Case {
            id: "B1c: create container, host style",
            method: "PUT",
            target: "/vectors?restype=container",
            headers: &[REQUEST_ID],
            string_to_sign: expected("PUT", &[], ID_LINE, "", "/devstoreaccount1/vectors\nrestype:container"),
            signature: "qBkgPANVBhQzOfk9jA+3z8IJlyWOpFe0QoyvNPSAdRg=",
        },
        Case {
            id: "B2: put blob, name and metadata that sort otherwise than in ASCII",
            method: "PUT",
            target: UNICODE,
            headers: &[
                REQUEST_ID,
                ("content-length", "5"),
                ("x-ms-meta-Color", "blue"),
                ("x-ms-meta-a_b", "1"),
                ("x-ms-meta-a1", "2"),
                ("x-ms-blob-type", "BlockBlob"),
                ("x-ms-blob-content-type", "text/plain; charset=utf-8"),
                ("if-none-match", "*"),
                ("content-type", "application/octet-stream"),
            ],
            string_to_sign: expected(
                "PUT",
                &[(4, "5"), (6, "application/octet-stream"), (10, "*")],
                &format!("x-ms-blob-content-type:text/plain; charset=utf-8\nx-ms-blob-type:BlockBlob\n{ID_LINE}"),
                "x-ms-meta-a_b:1\nx-ms-meta-a1:2\nx-ms-meta-color:blue\n",
                &format!("/devstoreaccount1{UNICODE}"),
            ),
            signature: "vaftuCWrc73jWgxaM1YWeD/boaEFkMIJWB1UvySgh44=",
        },
        Case {
            id: "B3: put block",
            method: "PUT",
            target: "/devstoreaccount1/vectors/big.bin?comp=block&blockid=fn5%2BPj4%2BPz8%2Ffg%3D%3D",
            headers: &[
                REQUEST_ID,
                ("content-length", "16"),
                ("content-type", "application/octet-stream"),
                ("content-md5", "QDKvjWEDUSOQbljgZxQMxQ=="),
            ],
            string_to_sign: expected(
                "PUT",
                &[(4, "16"), (5, "QDKvjWEDUSOQbljgZxQMxQ=="), (6, "application/octet-stream")],
                ID_LINE,
                "",
                "/devstoreaccount1/devstoreaccount1/vectors/big.bin\nblockid:fn5+Pj4+Pz8/fg==\ncomp:block",
            ),
            signature: "1h+gQk5gpBB5MiiNeOh1BZactxa/l/soqeEPtjO1CWI=",
        },
        Case {
            id: "B4: put block list",
            method: "PUT",
            target: "/devstoreaccount1/vectors/big.bin?comp=blocklist",
            headers: &[REQUEST_ID, ("content-length", "95"), ("if-match", "\"0x8D1\""), ("content-type", "application/xml")],
            string_to_sign: expected(
                "PUT",
                &[(4, "95"), (6, "application/xml"), (9, "\"0x8D1\"")],
                ID_LINE,
                "",
                "/devstoreaccount1/devstoreaccount1/vectors/big.bin\ncomp:blocklist",
            ),
            signature: "ztnTXWpd5DOhh38iuJDfzuo4ginUGRBHmfouvv7p5RA=",
        },
        Case {
            id: "B5: list blobs, decoded query values",
            method: "GET",
            target: "/devstoreaccount1/vectors?restype=container&comp=list&prefix=%D0%BF%D0%B0%D0%BF%D0%BA%D0%B0%2Fa%20b%26c%3Dd%2Be&maxresults=100&include=metadata,tags,uncommittedblobs",
            headers: &[REQUEST_ID],
            string_to_sign: expected(
                "GET",
                &[],
                ID_LINE,
                "",
                "/devstoreaccount1/devstoreaccount1/vectors\ncomp:list\ninclude:metadata,tags,uncommittedblobs\nmaxresults:100\nprefix:папка/a b&c=d+e\nrestype:container",
            ),
            signature: "6DoURk/FhQy03x2quG5A6H0KrvQOjRzh11sBAxmErug=",
        },
        Case {
            id: "B6: get blob, x-ms-range",
            method: "GET",
            target: "/devstoreaccount1/vectors/big.bin",
            headers: &[REQUEST_ID, ("x-ms-range", "bytes=0-4")],
            string_to_sign: expected(
                "GET",
                &[],
                ID_LINE,
                "x-ms-range:bytes=0-4\n",
                "/devstoreaccount1/devstoreaccount1/vectors/big.bin",
            ),
            signature: "glZxbJHEteWPy0HsnmKw66OHQgXzOczYPGQGjzfJ/+o=",
        },
        Case {
            id: "B7: secondary host signs with the plain account",
            method: "HEAD",
            target: "/vectors/big.bin",
            headers: &[REQUEST_ID],
            string_to_sign: expected("HEAD", &[], ID_LINE, "", "/devstoreaccount1/vectors/big.bin"),
            signature: "Q0xc1tF2XKsCtpt6WHRbBubuxMipz5/CBgbYVxX9BB4=",
        },
        Case {
            id: "H1: Range",
            method: "GET",
            target: UNICODE,
            headers: &[("range", "bytes=0-4")],
            string_to_sign: expected("GET", &[(12, "bytes=0-4")], "", "", &format!("/devstoreaccount1{UNICODE}")),
            signature: "N4SP0N7YGtP8CW5kQt65R3tx9gTPMfwa4ZEpOCVyhKE=",
        },
        Case {
            id: "H2: a parameter more than once",
            method: "GET",
            target: "/devstoreaccount1/vectors?restype=container&comp=list&include=snapshots&include=metadata&include=uncommittedblobs",
            headers: &[],
            string_to_sign: expected(
                "GET",
                &[],
                "",
                "",
                "/devstoreaccount1/devstoreaccount1/vectors\ncomp:list\ninclude:metadata,snapshots,uncommittedblobs\nrestype:container",
            ),
            signature: "bB95HrFl5u+fRwrvG0Nhi2uI9SRNZ5M/xF3yrITNL5Q=",
        },
        Case {
            id: "H4: account level",
            method: "GET",
            target: "/devstoreaccount1?comp=list",
            headers: &[],
            string_to_sign: expected("GET", &[], "", "", "/devstoreaccount1/devstoreaccount1\ncomp:list"),
            signature: "ngPmDUK3vEKg71jxEXwbcAVrpjKjb2nsxTnxk0WCWkk=",
        },
        Case {
            id: "H4b: account level with a slash",
            method: "GET",
            target: "/devstoreaccount1/?comp=list",
            headers: &[],
            string_to_sign: expected("GET", &[], "", "", "/devstoreaccount1/devstoreaccount1/\ncomp:list"),
            signature: "JxJFOqinevL4/ms0DioGb9iTXyJUo6BC6EKOs5zkb3s=",
        },
        Case {
            id: "H5: block id with plain padding",
            method: "PUT",
            target: "/devstoreaccount1/vectors/big2.bin?comp=block&blockid=AAAAAA==",
            headers: &[("content-length", "3")],
            string_to_sign: expected(
                "PUT",
                &[(4, "3")],
                "",
                "",
                "/devstoreaccount1/devstoreaccount1/vectors/big2.bin\nblockid:AAAAAA==\ncomp:block",
            ),
            signature: "0AheKcMqFKqCnL9dP86eqcMQBWdmtUPmyW+ykC1eCO8=",
        },
        Case {
            id: "Q1: create queue",
            method: "PUT",
            target: "/devstoreaccount1/jobs",
            headers: &[("content-length", "0")],
            string_to_sign: expected("PUT", &[], "", "", "/devstoreaccount1/devstoreaccount1/jobs"),
            signature: "bbPIwxS6qMpqYWT6D1SCKUlQstmmsIQUbPbAieDgf6s=",
        },
        Case {
            id: "Q2: put message",
            method: "POST",
            target: "/devstoreaccount1/jobs/messages?visibilitytimeout=30&messagettl=-1",
            headers: &[("content-length", "60"), ("content-type", "application/xml")],
            string_to_sign: expected(
                "POST",
                &[(4, "60"), (6, "application/xml")],
                "",
                "",
                "/devstoreaccount1/devstoreaccount1/jobs/messages\nmessagettl:-1\nvisibilitytimeout:30",
            ),
            signature: "8njA/YAHhi7clRBPh1n0/JTVP080uKt9c5MZFxjDv88=",
        },
        Case {
            id: "Q3: get messages",
            method: "GET",
            target: "/devstoreaccount1/jobs/messages?numofmessages=5&visibilitytimeout=60",
            headers: &[],
            string_to_sign: expected(
                "GET",
                &[],
                "",
                "",
                "/devstoreaccount1/devstoreaccount1/jobs/messages\nnumofmessages:5\nvisibilitytimeout:60",
            ),
            signature: "vGoIIhp0arOuvm3znG+5o3IGpaZH2i17+wx/cftCyE8=",
        },
    ]
}

#[test]
fn shared_key_signs_as_the_sdks_do() {
    for case in cases() {
        let (path, raw_query) = case.target.split_once('?').unwrap_or((case.target, ""));
        let (query, headers) = (decode_query(raw_query), headers(case.headers));
        let what = ToSign { method: case.method, account: DEV_ACCOUNT, path, query: &query, headers: &headers, version: VERSION };
        let string = string_to_sign(&what);
        assert_eq!(string, case.string_to_sign, "{}", case.id);
        assert_eq!(sign(&key(), &string), case.signature, "{}", case.id);
    }
}

#[test]
fn shared_key_lite_signs_comp_alone_of_the_query() {
    let headers = headers(&[]);
    let query = decode_query("restype=container&comp=list");
    let string = lite_string_to_sign(&ToSign {
        method: "GET",
        account: DEV_ACCOUNT,
        path: "/devstoreaccount1/vectors",
        query: &query,
        headers: &headers,
        version: VERSION,
    });
    let expected =
        format!("GET\n\n\n\nx-ms-date:{DATE}\nx-ms-version:{VERSION}\n/devstoreaccount1/devstoreaccount1/vectors?comp=list");
    assert_eq!(string, expected);
    assert_eq!(sign(&key(), &string), "moJsOYEVOob3JBRJ1FS4IUB8Ay77ijlbk8EgQ5LzIX4=");
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn account_sas_is_minted_as_the_sdk_does() {
    let fields = Fields {
        st: some("2026-01-01T00:00:00Z"),
        se: some("2030-01-01T00:00:00Z"),
        sp: some("rwdlacup"),
        sip: some("127.0.0.1-127.0.0.9"),
        spr: some("https,http"),
        sv: some(VERSION),
        ss: some("bqt"),
        srt: some("sco"),
        ..Fields::default()
    };
    assert_eq!(
        account_string_to_sign(DEV_ACCOUNT, &fields),
        "devstoreaccount1\nrwdlacup\nbqt\nsco\n2026-01-01T00:00:00Z\n2030-01-01T00:00:00Z\n127.0.0.1-127.0.0.9\nhttps,http\n2025-11-05\n\n"
    );
    let token = mint(DEV_ACCOUNT, &key(), &fields, None);
    assert_eq!(
        token.expose(),
        "st=2026-01-01T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sp=rwdlacup&sip=127.0.0.1-127.0.0.9&spr=https%2Chttp&sv=2025-11-05&ss=bqt&srt=sco&sig=i1ix8xG6uOWeTnMqpC6XLG%2BwSvp0IdwY3HAiCNkRZSk%3D"
    );
    assert_eq!(Token::parse(token.expose()).unwrap().fields(), fields);
}

#[test]
fn service_sas_is_minted_as_the_sdk_does() {
    let blob = "папка/naïve file #1?.txt";
    let cases = [
        (
            Fields {
                st: some("2026-01-01T00:00:00Z"),
                se: some("2030-01-01T00:00:00Z"),
                sp: some("r"),
                spr: some("https,http"),
                sv: some(VERSION),
                sr: some("b"),
                rscd: some("attachment; filename=\"a b.txt\""),
                rsct: some("text/plain"),
                ..Fields::default()
            },
            Some(blob),
            "r\n2026-01-01T00:00:00Z\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/vectors/папка/naïve file #1?.txt\n\n\nhttps,http\n2025-11-05\nb\n\n\n\nattachment; filename=\"a b.txt\"\n\n\ntext/plain",
            "st=2026-01-01T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sp=r&spr=https%2Chttp&sv=2025-11-05&sr=b&rscd=attachment%3B%20filename%3D%22a%20b.txt%22&rsct=text/plain&sig=J0qoIjJdOZzodOm8xwscO8o2XBuIOxeI8k5y2UJ2gt4%3D",
        ),
        (
            Fields { sv: some(VERSION), si: some("pol-1"), sr: some("c"), ..Fields::default() },
            None,
            "\n\n\n/blob/devstoreaccount1/vectors\npol-1\n\n\n2025-11-05\nc\n\n\n\n\n\n\n",
            "sv=2025-11-05&si=pol-1&sr=c&sig=HaBIaU9149nq7JWzzfXNZvrL8PBBp1tyS%2BwNrvoMFCI%3D",
        ),
        (
            Fields {
                se: some("2030-01-01T00:00:00Z"),
                sp: some("racwl"),
                sv: some(VERSION),
                sr: some("c"),
                ses: some("myscope"),
                ..Fields::default()
            },
            None,
            "racwl\n\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/vectors\n\n\n\n2025-11-05\nc\n\nmyscope\n\n\n\n\n",
            "se=2030-01-01T00%3A00%3A00Z&sp=racwl&sv=2025-11-05&sr=c&ses=myscope&sig=%2BJpcbzs4/j%2BoQt23lZl15bw369X4KWs9dgWPLVquL9w%3D",
        ),
    ];
    for (fields, blob, string, token) in cases {
        let resource = canonical_resource(VERSION, DEV_ACCOUNT, "vectors", blob);
        assert_eq!(service_string_to_sign(&resource, &fields), string);
        let minted = mint(DEV_ACCOUNT, &key(), &fields, Some(("vectors", blob)));
        assert_eq!(minted.expose(), token);
        assert_eq!(sas::Fields::from_query(&minted.query()), fields);
    }
}
