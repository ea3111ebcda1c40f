//! Shared access signatures: the token as the user gave it, its fields, the strings to sign, and minting.
//!
//! A token given by a user is carried byte for byte: taking it apart and putting it together again is the usual cause of
//! `AuthenticationFailed`. Sources: "Create an account SAS", "Create a service SAS", Azure Storage REST reference.

use super::shared_key::{decode_query, sign};
use crate::error::{Error, Kind, Result};
use crate::secret::Secret;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;

/// A token: the query of a SAS URL, without `?`. `Debug` shows no signature.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Secret);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", crate::secret::SafeUrl::new(&format!("?{}", self.0.expose())))
    }
}

/// Bytes that cannot stand in a request line as they are. Everything else of a token is left alone.
const NOT_IN_A_QUERY: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// What a minted token writes plainly: unreserved characters and `/`.
const MINTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

impl Token {
    /// Takes a token, minus surrounding white space, quotes and one leading `?`. Kept as it is but for two things that could
    /// not be sent: a plain `+` in `sig` becomes `%2B` (base64 of a decoded token), and characters that no request line can
    /// hold are escaped.
    ///
    /// # Errors
    /// `Usage` where it cannot be right: no `sig`, a `sig` with a space (a form decoder ate a plus) or cut short, control
    /// characters.
    pub fn parse(text: &str) -> Result<Token> {
        let text = text.trim().trim_matches(['"', '\'']).trim();
        let text = text.strip_prefix('?').unwrap_or(text);
        if text.chars().any(char::is_control) {
            return Err(refused("the SAS holds a line break or another control character", "paste it again as one line"));
        }
        let mut signatures = 0;
        let mut wire = String::with_capacity(text.len());
        for (i, part) in text.split('&').enumerate() {
            if i > 0 {
                wire.push('&');
            }
            match part.split_once('=') {
                Some((name, value)) if is_named(name, "sig") => {
                    signatures += 1;
                    check_signature(value)?;
                    wire.push_str(name);
                    wire.push('=');
                    wire.push_str(&value.replace('+', "%2B"));
                }
                _ => wire.extend(utf8_percent_encode(part, NOT_IN_A_QUERY)),
            }
        }
        match signatures {
            1 => Ok(Token(Secret::new(wire))),
            0 => Err(refused(
                "the query of the URL is no SAS: it has no sig parameter",
                "put the whole URL in quotes, or else the shell ends the command at the first &",
            )),
            _ => Err(refused("the SAS has more than one sig parameter", "give one SAS only")),
        }
    }

    /// The bytes for the wire.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Every parameter, decoded.
    pub fn query(&self) -> Vec<(String, String)> {
        decode_query(self.expose())
    }

    /// The fields that have a meaning, decoded.
    pub fn fields(&self) -> Fields {
        Fields::from_query(&self.query())
    }
}

fn is_named(raw: &str, name: &str) -> bool {
    percent_encoding::percent_decode_str(raw).decode_utf8_lossy().eq_ignore_ascii_case(name)
}

fn refused(what: &str, advice: &str) -> Error {
    Error::new(Kind::Usage, what).with_advice(advice)
}

/// A signature is base64 of 32 bytes: 44 characters.
fn check_signature(raw: &str) -> Result<()> {
    let value = percent_encoding::percent_decode_str(raw).decode_utf8_lossy();
    if value.contains(' ') {
        return Err(refused(
            "the sig parameter of the SAS contains a space: a form decoder turned a + into it",
            "copy the SAS from where it was made, or write %2B for each space",
        ));
    }
    // Base64 and nothing else: a quote or a # in it would be taken for its end where URLs are shown.
    if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) {
        return Err(refused(
            "the sig parameter of the SAS holds characters that no signature has",
            "copy the SAS from where it was made; a mail or a document may have changed it",
        ));
    }
    if value.len() != 44 || !value.ends_with('=') {
        return Err(refused(
            &format!("the sig parameter of the SAS has {} characters where a whole one has 44", value.len()),
            "the SAS was cut or changed on the way: copy it again and put the URL in quotes",
        ));
    }
    Ok(())
}

/// Parameters of a SAS that its signature covers, decoded; see "Create a service SAS" for their meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Service version; decides the string to sign.
    pub sv: Option<String>,
    /// Services of an account SAS: letters of `bqtf`.
    pub ss: Option<String>,
    /// Resource types of an account SAS: letters of `sco`. Present only there.
    pub srt: Option<String>,
    /// Resource of a service SAS: `b`, `c`, `bs`, `bv`, `d`.
    pub sr: Option<String>,
    /// Permissions.
    pub sp: Option<String>,
    /// Start.
    pub st: Option<String>,
    /// Expiry.
    pub se: Option<String>,
    /// Stored access policy.
    pub si: Option<String>,
    /// Address or range of addresses.
    pub sip: Option<String>,
    /// `https` or `https,http`.
    pub spr: Option<String>,
    /// Encryption scope.
    pub ses: Option<String>,
    /// Snapshot time or version id, from the parameter `snapshot` or `versionid`.
    pub snapshot: Option<String>,
    /// Answered Cache-Control.
    pub rscc: Option<String>,
    /// Answered Content-Disposition.
    pub rscd: Option<String>,
    /// Answered Content-Encoding.
    pub rsce: Option<String>,
    /// Answered Content-Language.
    pub rscl: Option<String>,
    /// Answered Content-Type.
    pub rsct: Option<String>,
}

impl Fields {
    /// Reads them from a decoded query; other parameters are passed over.
    pub fn from_query(query: &[(String, String)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in query {
            if let Some(slot) = fields.slot(&name.to_ascii_lowercase()) {
                *slot = Some(value.clone());
            }
        }
        fields
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<String>> {
        Some(match name {
            "sv" => &mut self.sv,
            "ss" => &mut self.ss,
            "srt" => &mut self.srt,
            "sr" => &mut self.sr,
            "sp" => &mut self.sp,
            "st" => &mut self.st,
            "se" => &mut self.se,
            "si" => &mut self.si,
            "sip" => &mut self.sip,
            "spr" => &mut self.spr,
            "ses" => &mut self.ses,
            "snapshot" | "versionid" => &mut self.snapshot,
            "rscc" => &mut self.rscc,
            "rscd" => &mut self.rscd,
            "rsce" => &mut self.rsce,
            "rscl" => &mut self.rscl,
            "rsct" => &mut self.rsct,
            _ => return None,
        })
    }

    /// Whether this is an account SAS rather than a service SAS.
    pub fn is_account(&self) -> bool {
        self.srt.is_some()
    }

    fn version(&self) -> &str {
        self.sv.as_deref().unwrap_or_default()
    }
}

fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

/// The string to sign of an account SAS (`sv` 2015-04-05 and later). Each field is followed by a line feed, the last too.
pub fn account_string_to_sign(account: &str, f: &Fields) -> String {
    let mut lines =
        vec![account, text(&f.sp), text(&f.ss), text(&f.srt), text(&f.st), text(&f.se), text(&f.sip), text(&f.spr), text(&f.sv)];
    if f.version() >= "2020-12-06" {
        lines.push(text(&f.ses));
    }
    lines.join("\n") + "\n"
}

/// The canonical resource of a service SAS for blobs: `/blob/account/container[/blob]`, decoded; without `/blob` before
/// version 2015-02-21. The account stands there once also on path-style hosts.
pub fn canonical_resource(version: &str, account: &str, container: &str, blob: Option<&str>) -> String {
    let service = if version >= "2015-02-21" { "/blob" } else { "" };
    match blob {
        Some(blob) => format!("{service}/{account}/{container}/{blob}"),
        None => format!("{service}/{account}/{container}"),
    }
}

/// The string to sign of a service SAS for blobs; see [`canonical_resource`]. Which fields take part depends on `sv`.
pub fn service_string_to_sign(canonical_resource: &str, f: &Fields) -> String {
    let version = f.version();
    let mut lines = vec![text(&f.sp), text(&f.st), text(&f.se), canonical_resource, text(&f.si)];
    if version >= "2015-04-05" {
        lines.extend([text(&f.sip), text(&f.spr)]);
    }
    lines.push(text(&f.sv));
    if version >= "2018-11-09" {
        lines.extend([text(&f.sr), text(&f.snapshot)]);
    }
    if version >= "2020-12-06" {
        lines.push(text(&f.ses));
    }
    if version >= "2013-08-15" {
        lines.extend([text(&f.rscc), text(&f.rscd), text(&f.rsce), text(&f.rscl), text(&f.rsct)]);
    }
    lines.join("\n")
}

/// Signs `fields` with an account key. `resource` is the container and perhaps the blob (raw names) of a service SAS;
/// without it, an account SAS.
pub fn mint(account: &str, key: &[u8], fields: &Fields, resource: Option<(&str, Option<&str>)>) -> Token {
    mint_with(account, |text| sign(key, text), fields, resource)
}

/// The same where only what signs is at hand.
pub(super) fn mint_with(
    account: &str,
    sign: impl FnOnce(&str) -> String,
    fields: &Fields,
    resource: Option<(&str, Option<&str>)>,
) -> Token {
    let string_to_sign = match resource {
        None => account_string_to_sign(account, fields),
        Some((container, blob)) => {
            service_string_to_sign(&canonical_resource(fields.version(), account, container, blob), fields)
        }
    };
    let signature = sign(&string_to_sign);
    // A version and a snapshot share a slot and have parameters of their own.
    let snapshot = if fields.sr.as_deref() == Some("bv") { "versionid" } else { "snapshot" };
    let parameters = [
        ("st", &fields.st),
        ("se", &fields.se),
        ("sp", &fields.sp),
        ("sip", &fields.sip),
        ("spr", &fields.spr),
        ("sv", &fields.sv),
        ("si", &fields.si),
        ("sr", &fields.sr),
        ("ss", &fields.ss),
        ("srt", &fields.srt),
        ("ses", &fields.ses),
        (snapshot, &fields.snapshot),
        ("rscc", &fields.rscc),
        ("rscd", &fields.rscd),
        ("rsce", &fields.rsce),
        ("rscl", &fields.rscl),
        ("rsct", &fields.rsct),
    ];
    let mut out = String::with_capacity(256);
    for (name, value) in parameters {
        if let Some(value) = value {
            out.push_str(name);
            out.push('=');
            out.extend(utf8_percent_encode(value, MINTED));
            out.push('&');
        }
    }
    out.push_str("sig=");
    out.extend(utf8_percent_encode(&signature, MINTED));
    Token(Secret::new(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIG: &str = "i1ix8xG6uOWeTnMqpC6XLG+wSvp0IdwY3HAiCNkRZSk=";

    #[test]
    fn token_is_carried_byte_for_byte() {
        let wire = "sp=rw&se=2030-01-01T00:00:00Z&sv=2025-11-05&sr=c&sig=J0qoIjJdOZzodOm8xwscO8o2XBuIOxeI8k5y2UJ2gt4%3d&x";
        for text in [wire.to_owned(), format!("?{wire}"), format!("  \"{wire}\"\n"), format!("'?{wire}'")] {
            assert_eq!(Token::parse(&text).unwrap().expose(), wire);
        }
        let slash = "sig=/JpcbzsAAjAoQt23lZl15bw369X4KWs9dgWPLVquL9w=&sv=1";
        assert_eq!(Token::parse(slash).unwrap().expose(), slash);
    }

    #[test]
    fn plain_plus_in_the_signature_is_escaped_and_nowhere_else() {
        let token = Token::parse(&format!("rsct=a+b&sig={SIG}&rscd=a b")).unwrap();
        assert_eq!(token.expose(), format!("rsct=a+b&sig={}&rscd=a%20b", SIG.replace('+', "%2B")));
    }

    #[test]
    fn what_cannot_be_right_is_said() {
        let cut = &SIG[..20];
        for (text, word) in [
            ("sv=2025-11-05", "no sig"),
            ("", "no sig"),
            (&*format!("sv=1&sig={}", SIG.replace('+', " ")), "space"),
            (&*format!("sv=1&sig={}", SIG.replace('+', "%20")), "space"),
            (&*format!("sig={}\u{e9}", &SIG[1..]), "no signature has"),
            (&*format!("sig={cut}"), "20 characters"),
            (&*format!("sig={SIG}&sig={SIG}"), "more than one"),
            (&*format!("sv=1\nsig={SIG}"), "control"),
        ] {
            let error = Token::parse(text).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage);
            assert!(error.to_string().contains(word), "{text}: {error}");
            assert!(!format!("{error:?}").contains(cut));
        }
    }

    #[test]
    fn debug_shows_no_signature() {
        let token = Token::parse(&format!("sv=1&%73ig={SIG}")).unwrap();
        assert_eq!(format!("{token:?}"), "Token(?sv=1&%73ig=REDACTED)");
    }

    #[test]
    fn older_versions_sign_fewer_fields() {
        let f = |sv: &str| Fields { sv: Some(sv.into()), sp: Some("r".into()), sr: Some("b".into()), ..Fields::default() };
        for (version, lines) in
            [("2020-12-06", 16), ("2018-11-09", 15), ("2015-04-05", 13), ("2013-08-15", 11), ("2012-02-12", 6)]
        {
            let resource = canonical_resource(version, "a", "c", Some("b"));
            assert_eq!(service_string_to_sign(&resource, &f(version)).split('\n').count(), lines, "{version}");
        }
        assert_eq!(canonical_resource("2015-02-20", "a", "c", None), "/a/c");
    }
}
