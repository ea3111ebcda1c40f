//! What others send, broken in every way: whatever the bytes, a parser answers or refuses, and what it took means the same when
//! it is written and read again.
//!
//! `cargo test` gives each target some thousand inputs. For longer, `BOLERO_RANDOM_ITERATIONS=1000000 cargo test --release
//! --test it -- fuzz::`, or led by coverage `cargo bolero test --test it --sanitizer NONE fuzz::xml_documents`; an input that
//! fails is kept as a file in `__fuzz__/TARGET/crashes` beside this one, which every later run tries first.

mod edits;
mod lists;
mod peers;

use blobjet::rest::auth::connection_string::ConnectionString;
use blobjet::rest::auth::sas::Token;
use blobjet::rest::auth::shared_key;
use blobjet::rest::date;
use blobjet::rest::location::Location;
use blobjet::rest::model::xml::Node;
use blobjet::rest::model::{
    BlockList, BlockListType, CommitEntry, ContainerPage, ErrorBody, ListPage, SignedIdentifiers, Spelling, Tags, block_list_xml,
    parse_block_list_body,
};
use blobjet::rest::names::check_blob_name;
use blobjet::rest::properties::{parse_metadata, parse_tags};
use blobjet::secret::{SafeUrl, Secret};
use edits::Language;

/// A signature as no other text here has it.
const SIGNATURE: &str = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";

const XML: Language = Language {
    seeds: &[
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><CommittedBlocks><Block><Name>QUFB</Name><Size>4</Size>\
         </Block></CommittedBlocks><UncommittedBlocks><Block><Name>QUFC</Name><Size>8388608</Size></Block></UncommittedBlocks>\
         </BlockList>",
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><Latest>QUFB</Latest><Committed>QUFC</Committed>\
         <Uncommitted>QUFD</Uncommitted></BlockList>",
        "<EnumerationResults ServiceEndpoint=\"http://127.0.0.1/a/\" ContainerName=\"c\"><Prefix>p&amp;q</Prefix><Marker/>\
         <MaxResults>2</MaxResults><Delimiter>/</Delimiter><Blobs><Blob><Name>a b</Name><Snapshot>2026-01-15T08:30:00.0000000Z\
         </Snapshot><Properties><Creation-Time>Thu, 15 Jan 2026 08:30:00 GMT</Creation-Time><Etag>0x8D</Etag><Content-Length>5\
         </Content-Length><BlobType>BlockBlob</BlobType></Properties><Metadata><k>v</k></Metadata><Tags><TagSet><Tag><Key>a\
         </Key><Value>b</Value></Tag></TagSet></Tags></Blob><BlobPrefix><Name Encoded=\"true\">d%EF%BF%BF/</Name></BlobPrefix>\
         </Blobs><NextMarker>2!72!MDAwMDA</NextMarker></EnumerationResults>",
        "<EnumerationResults ServiceEndpoint=\"http://127.0.0.1/a/\"><Containers><Container><Name>c</Name><Properties>\
         <Last-Modified>Thu, 15 Jan 2026 08:30:00 GMT</Last-Modified><Etag>\"0x8D\"</Etag></Properties></Container></Containers>\
         <NextMarker/></EnumerationResults>",
        "<Error><Code>ServerBusy</Code><Message>Wait.\nRequestId:1\nTime:2</Message><HeaderName>Range</HeaderName></Error>",
        "<SignedIdentifiers><SignedIdentifier><Id>i</Id><AccessPolicy><Start>2026-01-15</Start><Expiry>2026-01-16</Expiry>\
         <Permission>rwl</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
        "<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>",
    ],
    words: &[
        "<Block>",
        "</Block>",
        "<Name>",
        "</Name>",
        "<Size>",
        "<Blob>",
        "<Latest>",
        "<Tag>",
        "<Key>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<?",
        "?>",
        "&amp;",
        "&lt;",
        "&#0;",
        "&#x10FFFF;",
        "&#xD800;",
        "&nbsp;",
        "&",
        "<!DOCTYPE a [<!ENTITY b \"c\">]>",
        "&b;",
        " Encoded=\"true\"",
        "%2F",
        "%",
        "18446744073709551616",
        "-1",
        "\u{feff}",
        "<a:b xmlns:a=\"c\">",
        "\u{ffff}",
        "'",
    ],
};

/// Semantics 19: what cannot be read is an error, not an end.
#[test]
fn xml_documents() {
    bolero::check!().with_iterations(4000).for_each(|bytes: &[u8]| {
        let text = XML.text(bytes);
        settles(BlockList::parse(&text).ok(), |list| list.to_xml(BlockListType::All), |xml| BlockList::parse(xml).unwrap());
        settles(ListPage::parse(&text).ok(), ListPage::to_xml, |xml| ListPage::parse(xml).unwrap());
        settles(ContainerPage::parse(&text).ok(), ContainerPage::to_xml, |xml| ContainerPage::parse(xml).unwrap());
        settles(ErrorBody::parse(&text), |error| error.to_xml(Spelling::Joined), |xml| ErrorBody::parse(xml).unwrap());
        settles(SignedIdentifiers::parse(&text).ok(), SignedIdentifiers::to_xml, |xml| SignedIdentifiers::parse(xml).unwrap());
        settles(Tags::parse(&text).ok(), Tags::to_xml, |xml| Tags::parse(xml).unwrap());
        if let Ok(entries) = parse_block_list_body(&text) {
            let again = parse_block_list_body(block_list_xml(entries.iter().map(id)).as_bytes()).unwrap();
            assert_eq!(again.len(), entries.len());
        }
        let _ = Node::parse(&text, "Blobs");
    });
}

/// What was taken can be written, and from then on reads the same each time. (Not from the start: characters that XML has no way
/// to write, such as NUL, are taken as they come and written as U+FFFD.)
fn settles<T: PartialEq + std::fmt::Debug>(taken: Option<T>, write: impl Fn(&T) -> String, read: impl Fn(&[u8]) -> T) {
    let Some(taken) = taken else { return };
    let once = read(write(&taken).as_bytes());
    assert_eq!(read(write(&once).as_bytes()), once);
}

fn id(entry: &CommitEntry) -> &str {
    match entry {
        CommitEntry::Latest(id) | CommitEntry::Uncommitted(id) | CommitEntry::Committed(id) => id,
    }
}

const URL: Language = Language {
    seeds: &[
        "https://account.blob.core.windows.net/container/a/b%20c?sv=2025-11-05&sr=c&sp=rw&sig=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",
        "http://127.0.0.1:10000/devstoreaccount1/container/blob",
        "http://[::1]:10000/devstoreaccount1/container?SIG=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0&se=2026-01-15",
        "https://name:c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0@account-secondary.blob.core.windows.net/$root/x#y",
        "https://data.example.com/container/%2F/..//%41",
    ],
    words: &[
        "?",
        "&",
        "&sig=",
        "%73ig=",
        "//",
        "/../",
        "%2F",
        "%00",
        "%",
        "@",
        ":",
        "[",
        "]",
        "#",
        "$web",
        "https://",
        "\u{e9}",
        "?snapshot=2026",
        "&comp=list",
        ":99999",
        ".blob.core.windows.net",
        "%e9",
        "\\",
    ],
};

/// Semantics 25: no signature or password is left in what is shown of a URL.
#[test]
fn urls() {
    bolero::check!().with_iterations(10_000).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(&URL.text(bytes)).into_owned();
        let shown = SafeUrl::new(&text).to_string();
        assert_eq!(SafeUrl::new(&shown).to_string(), shown);
        let location = match Location::parse(&text) {
            Ok(location) => location,
            Err(error) => {
                let said = format!("{error} {error:?}");
                assert!(!whole_signature(&text) || !said.contains(SIGNATURE), "{said}");
                return;
            }
        };
        let said = format!("{location:?} {} {}", location.safe(), location.safe_blob("x"));
        assert!(!whole_signature(&text) || !said.contains(SIGNATURE), "{said}");
        if let (Some(container), Some(blob)) = (&location.container, &location.blob) {
            let path = location.blob_path(container, blob);
            let again = Location::parse(&format!("{}://{}{path}", location.scheme.as_str(), location.authority())).unwrap();
            assert_eq!((&again.container, &again.blob), (&location.container, &location.blob), "{path}");
        }
    });
}

/// Whether the signature stands where one belongs: edits may have moved its text into a name, which is shown.
fn whole_signature(text: &str) -> bool {
    let mut places = text.match_indices(SIGNATURE);
    places.all(|(at, _)| {
        let before = &text[..at];
        ["&sig=", "?sig=", "&SIG=", "?SIG="].iter().any(|name| before.ends_with(name))
            && before.matches("://").count() == 1
            && before.find("://").is_some_and(|start| before.find(['?', '#']).is_some_and(|query| query > start))
    })
}

const SAS: Language = Language {
    seeds: &[
        "sv=2025-11-05&ss=b&srt=co&sp=rwc&se=2026-02-01T00:00:00Z&spr=https&sig=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmU%3D",
        "?sv=2025-11-05&sr=c&si=policy&sig=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmU=",
        "\"sp=r&st=2026-01-15&se=2026-01-16&sip=10.0.0.1-10.0.0.9&sdd=2&sr=d&sig=a+b/c+d/e+f/g+h/i+j/k+l/m+n/o+p/q+r/s+t/u8=\"",
    ],
    words: &["&", "=", "sig=", "%3D", "%3d", "+", " ", "%", "&&", "?", "%2B", "%73", "\u{e9}", "sp=", "\r\n"],
};

/// Semantics 26: what a token says is read without harm, and what goes on the wire can stand in a request line.
#[test]
fn shared_access_signatures() {
    bolero::check!().with_iterations(10_000).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(&SAS.text(bytes)).into_owned();
        let Ok(token) = Token::parse(&text) else { return };
        let wire = token.expose();
        assert!(wire.bytes().all(|byte| byte.is_ascii_graphic()), "{wire}");
        assert_eq!(Token::parse(wire).unwrap().expose(), wire);
        // With another signature it must look the same. That its text is not there says less: chance edits may have made it a
        // part of another field, which is shown.
        let parts = wire.split('&').map(|part| {
            let decoded = shared_key::decode_query(part);
            match part.split_once('=') {
                Some((name, _)) if decoded[0].0.eq_ignore_ascii_case("sig") => format!("{name}={}%3D", "A".repeat(43)),
                _ => part.to_owned(),
            }
        });
        let other = Token::parse(&parts.collect::<Vec<_>>().join("&")).unwrap();
        assert_eq!(format!("{token:?}"), format!("{other:?}"));
        let _ = format!("{:?}", token.fields());
    });
}

const CONNECTION: Language = Language {
    seeds: &[
        "DefaultEndpointsProtocol=https;AccountName=name;AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0;EndpointSuffix=core.windows.net",
        "BlobEndpoint=https://name.blob.core.windows.net/;SharedAccessSignature=sv=2025-11-05&sp=r&sig=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",
        "UseDevelopmentStorage=true",
    ],
    words: &[
        ";",
        "=",
        "AccountKey=",
        "BlobEndpoint=",
        "http://127.0.0.1:1/a",
        "?sig=",
        "\u{e9}",
        " ",
        "\"",
        "SharedAccessSignature=",
    ],
};

/// Semantics 25.
#[test]
fn connection_strings() {
    bolero::check!().with_iterations(10_000).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(&CONNECTION.text(bytes)).into_owned();
        let said = format!("{:?}", ConnectionString::parse(&Secret::new(text.as_str())));
        // Edits may have made the secret part of a name, which is shown.
        let in_place = text.split(';').filter(|segment| segment.contains(SIGNATURE)).all(|segment| {
            let name = segment.split('=').next().unwrap_or_default().trim();
            ["AccountKey", "SharedAccessSignature"].iter().any(|known| name.eq_ignore_ascii_case(known))
        });
        assert!(!in_place || !said.contains(SIGNATURE), "{said}");
    });
}

const WORDS: Language = Language {
    seeds: &["Thu, 15 Jan 2026 08:30:00 GMT", "a=1;b=two;c==;d", "k=v&k2=v%202", "folder/sub.d/name"],
    words: &["=", ";", "\\;", "&", "%", "%2", "Jan", "99", "-", ":", "/", ".", "..", "\u{e9}", "\u{7f}", "\u{1F600}"],
};

/// Semantics 16: a name that is taken comes out of the path as it went in.
#[test]
fn dates_names_and_options() {
    bolero::check!().with_iterations(10_000).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(&WORDS.text(bytes)).into_owned();
        if let Some(moment) = date::parse(&text) {
            assert_eq!(date::parse(&date::format(moment)), Some(moment), "{text}");
        }
        let _ = (parse_metadata(&text), parse_tags(&text));
        if check_blob_name(&text).is_ok() {
            let place = Location::parse("http://127.0.0.1:1/account").unwrap();
            let url = format!("http://127.0.0.1:1{}", place.blob_path("container", &text));
            assert_eq!(Location::parse(&url).unwrap().blob.as_deref(), Some(text.as_str()));
        }
    });
}
