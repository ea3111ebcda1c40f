//! What several operations have in common: reading the headers of a write, checking hashes, stamping answers.

use super::Ctx;
use crate::emulator::blob::{Blob, Facts};
use crate::emulator::conditions::{Conditions, Target, Use, quoted_etag};
use crate::emulator::errors::{self as e, Failure, Outcome};
use crate::emulator::held::Held;
use crate::emulator::http::{Answer, Head};
use crate::emulator::lease::{self, Guard, Of, Phase};
use crate::emulator::names;
use crate::emulator::store::{Received, Wanted};
use crate::emulator::time::{self, Ticks};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

/// Adds ETag and Last-Modified.
pub(crate) fn stamp(answer: Answer, etag: Ticks, modified: Ticks) -> Answer {
    answer.with("ETag", quoted_etag(etag)).with("Last-Modified", time::http_date(modified))
}

/// Base64 of an MD5.
pub(crate) fn md5_text(md5: &[u8; 16]) -> String {
    BASE64.encode(md5)
}

/// A CRC64 as `x-ms-content-crc64` has it: little-endian, base64.
pub(crate) fn crc64_text(crc64: u64) -> String {
    BASE64.encode(crc64.to_le_bytes())
}

/// Reads an MD5 header.
///
/// # Errors
/// 400 `InvalidMd5`.
pub(crate) fn md5_header(head: &Head, name: &str) -> Outcome<Option<[u8; 16]>> {
    let Some(text) = head.header(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let bytes = BASE64.decode(text).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map(Some).ok_or_else(|| e::INVALID_MD5.into())
}

/// Hashes of the body that a request declares.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Declared {
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) crc64: Option<u64>,
}

impl Declared {
    /// Reads `Content-MD5` and `x-ms-content-crc64`.
    ///
    /// # Errors
    /// 400: malformed, or both.
    pub(crate) fn of(head: &Head) -> Outcome<Self> {
        Self::read(head, "content-md5", "x-ms-content-crc64")
    }

    /// The same for a body that comes from a URL.
    ///
    /// # Errors
    /// As [`of`](Declared::of).
    pub(crate) fn of_source(head: &Head) -> Outcome<Self> {
        Self::read(head, "x-ms-source-content-md5", "x-ms-source-content-crc64")
    }

    fn read(head: &Head, md5_name: &'static str, crc_name: &'static str) -> Outcome<Self> {
        let md5 = md5_header(head, md5_name)?;
        let crc64 = match head.header(crc_name) {
            None => None,
            Some(text) => {
                let bytes = BASE64.decode(text).ok().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
                // [I]: the code for a malformed one.
                Some(u64::from_le_bytes(bytes.ok_or_else(|| Failure::header(crc_name, text))?))
            }
        };
        if let (Some(_), Some(crc64)) = (md5, crc64) {
            return Err(Failure::header(crc_name, crc64_text(crc64)));
        }
        Ok(Declared { md5, crc64 })
    }

    /// What has to be computed to check this, and to answer as the request's version does.
    pub(crate) fn wanted(&self, ctx: &Ctx<'_>) -> Wanted {
        let old = !ctx.since("2019-02-02") && !ctx.model.store.discards();
        Wanted {
            md5: self.md5.is_some() || old,
            crc64: self.md5.is_none() && !old || self.crc64.is_some(),
            declared_crc64: self.crc64,
        }
    }

    /// Compares with what arrived.
    ///
    /// # Errors
    /// 400 `Md5Mismatch`, `Crc64Mismatch`.
    pub(crate) fn verify(&self, md5: Option<[u8; 16]>, crc64: Option<u64>) -> Outcome<()> {
        if let (Some(declared), Some(actual)) = (self.md5, md5)
            && declared != actual
        {
            return Err(md5_mismatch(&declared, &actual));
        }
        if let (Some(declared), Some(actual)) = (self.crc64, crc64)
            && declared != actual
        {
            return Err(Failure::from(e::CRC64_MISMATCH)
                .detail("UserSpecifiedCrc", crc64_text(declared))
                .detail("ServerCalculatedCrc", crc64_text(actual)));
        }
        Ok(())
    }

    /// Adds the hash that the service answers: the MD5 if one was declared, and always before 2019-02-02, else the CRC64.
    pub(crate) fn echo(&self, ctx: &Ctx<'_>, answer: Answer, md5: Option<[u8; 16]>, crc64: Option<u64>) -> Answer {
        match (self.md5.is_some() || !ctx.since("2019-02-02"), md5, crc64) {
            (true, Some(md5), _) => answer.with("Content-MD5", md5_text(&md5)),
            (false, _, Some(crc64)) => answer.with("x-ms-content-crc64", crc64_text(crc64)),
            _ => answer,
        }
    }
}

/// 400 with both values.
pub(crate) fn md5_mismatch(declared: &[u8; 16], actual: &[u8; 16]) -> Failure {
    Failure::from(e::MD5_MISMATCH).detail("UserSpecifiedMd5", md5_text(declared)).detail("ServerCalculatedMd5", md5_text(actual))
}

/// Hashes of a body that is in memory, as if it had been received.
pub(crate) fn hashes(body: &[u8], wanted: Wanted) -> Received {
    let md5 = wanted.md5.then(|| md5::Md5::digest(body).into());
    let crc64 = wanted.crc64.then(|| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, body));
    Received { md5, crc64, ..Received::default() }
}

/// Refuses `snapshot=` and `versionid=` on what only the blob itself can do.
///
/// # Errors
/// 400 `InvalidQueryParameterValue` naming the parameter.
pub(crate) fn root_only(head: &Head) -> Outcome<()> {
    for name in ["snapshot", "versionid"] {
        if let Some(value) = head.parameter(name) {
            return Err(Failure::query(name, value, ROOT_ONLY));
        }
    }
    Ok(())
}

/// The reason the service gives.
pub(crate) const ROOT_ONLY: &str =
    "This operation is only allowed on the root blob. Snapshot should not be provided. Version Id should not be provided.";

/// A customer's key or scope named by a request. The emulator encrypts nothing; it remembers with which key or scope a blob
/// was written and asks for the same again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Encryption {
    pub(crate) key_sha256: Option<String>,
    pub(crate) scope: Option<String>,
}

impl Encryption {
    /// Reads the headers. The service wants TLS for customer keys; this emulator takes them without it too.
    ///
    /// # Errors
    /// 400: not all three headers, a key that is not 32 bytes, a hash that is not the key's, a key and a scope.
    pub(crate) fn of(head: &Head) -> Outcome<Self> {
        let (key, hash, algorithm) = ("x-ms-encryption-key", "x-ms-encryption-key-sha256", "x-ms-encryption-algorithm");
        let scope = head.header("x-ms-encryption-scope").map(str::to_owned);
        let given = [key, hash, algorithm].map(|name| head.header(name));
        let [Some(key_text), Some(hash_text), Some(algorithm_text)] = given else {
            if given.iter().all(Option::is_none) {
                return Ok(Encryption { key_sha256: None, scope });
            }
            let missing = [key, hash, algorithm].into_iter().find(|name| head.header(name).is_none());
            return Err(Failure::missing_header(missing.unwrap_or(key)));
        };
        let bytes = BASE64.decode(key_text).ok().filter(|bytes| bytes.len() == 32);
        let bytes = bytes.ok_or_else(|| Failure::header(key, ""))?;
        if BASE64.encode(Sha256::digest(&bytes)) != hash_text {
            return Err(Failure::header(hash, hash_text));
        }
        if algorithm_text != "AES256" || scope.is_some() {
            return Err(Failure::header(algorithm, algorithm_text));
        }
        Ok(Encryption { key_sha256: Some(hash_text.to_owned()), scope: None })
    }

    /// Holds the request's key against the blob's.
    ///
    /// # Errors
    /// 409 `BlobUsesCustomerSpecifiedEncryption`.
    pub(crate) fn opens(&self, blob: &Blob) -> Outcome<()> {
        if blob.facts.key_sha256 == self.key_sha256 { Ok(()) } else { Err(e::CUSTOMER_ENCRYPTED.into()) }
    }

    /// The same for snapshots and appends, which ask for the scope too [R: EncryptionScope].
    ///
    /// # Errors
    /// As [`opens`](Encryption::opens).
    pub(crate) fn opens_scope(&self, blob: &Blob) -> Outcome<()> {
        self.opens(blob)?;
        if blob.facts.encryption_scope == self.scope { Ok(()) } else { Err(e::CUSTOMER_ENCRYPTED.into()) }
    }

    /// Adds what a write answers about it.
    pub(crate) fn echo(&self, ctx: &Ctx<'_>, mut answer: Answer) -> Answer {
        if ctx.since("2015-12-11") {
            answer.header("x-ms-request-server-encrypted", "true");
        }
        if let Some(hash) = &self.key_sha256 {
            answer.header("x-ms-encryption-key-sha256", hash.clone());
        }
        if let Some(scope) = &self.scope {
            answer.header("x-ms-encryption-scope", scope.clone());
        }
        answer
    }
}

/// Whether plain `Content-Type` and the like set properties too (Put Blob), or only the `x-ms-blob-` ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain {
    Counts,
    Ignored,
}

/// The properties, metadata and tags that a request gives a new blob; what it does not name has its default.
///
/// # Errors
/// 400: metadata or tags against the rules, an unknown tier.
pub(crate) fn facts(ctx: &Ctx<'_>, plain: Plain, encryption: &Encryption) -> Outcome<Facts> {
    let one = |own: &str, standard: &str| {
        let given = ctx.head.header(own).or_else(|| ctx.head.header(standard).filter(|_| plain == Plain::Counts));
        given.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let tier = ctx.head.header("x-ms-access-tier").map(super::tier::block_tier).transpose()?;
    let tier = tier.map(|name| crate::emulator::blob::Tier { name, changed: ctx.now, rehydrating: None });
    Ok(Facts {
        content_type: Some(
            one("x-ms-blob-content-type", "content-type").unwrap_or_else(|| "application/octet-stream".to_owned()),
        ),
        content_encoding: one("x-ms-blob-content-encoding", "content-encoding"),
        content_language: one("x-ms-blob-content-language", "content-language"),
        content_disposition: one("x-ms-blob-content-disposition", "content-disposition"),
        cache_control: one("x-ms-blob-cache-control", "cache-control"),
        metadata: names::metadata(ctx.head)?,
        tags: names::tags_header(ctx.head)?,
        tier,
        key_sha256: encryption.key_sha256.clone(),
        encryption_scope: encryption.scope.clone(),
        ..Facts::default()
    })
}

/// What guards a write: conditions and a lease id.
pub(crate) struct Guards<'a> {
    conditions: Conditions,
    usage: Use,
    lease_id: Option<&'a str>,
}

impl<'a> Guards<'a> {
    /// Reads them.
    ///
    /// # Errors
    /// 400: see [`Conditions::of`] and [`lease::id_of`].
    pub(crate) fn of(head: &'a Head, usage: Use) -> Outcome<Self> {
        Ok(Guards { conditions: Conditions::of(head, usage)?, usage, lease_id: lease::id_of(head)? })
    }

    /// A lease id alone, for operations that take no conditions.
    ///
    /// # Errors
    /// 400: it is no GUID.
    pub(crate) fn lease_only(head: &'a Head) -> Outcome<Self> {
        Ok(Guards { conditions: Conditions::default(), usage: Use::Write, lease_id: lease::id_of(head)? })
    }

    /// Lets a write to what is there (or is not) pass.
    ///
    /// # Errors
    /// 412 about the lease, then 304, 409, 412 about the conditions.
    pub(crate) fn check(&self, blob: Option<&Blob>, guard: Guard, now: Ticks) -> Outcome<()> {
        let lease = blob.and_then(|b| b.facts.lease.as_ref());
        lease::check(lease, self.lease_id, Of::Blob, guard, now)?;
        self.conditions.check(blob.map(target), self.usage)
    }

    /// The blob of the request, if it may be changed.
    ///
    /// # Errors
    /// 404, then as [`check`](Guards::check).
    pub(crate) fn existing<'h>(&self, ctx: &Ctx<'_>, held: &'h Held<'_>) -> Outcome<&'h Blob> {
        let blob = held.blob(&ctx.blob)?;
        self.check(Some(blob), Guard::Write, ctx.now)?;
        Ok(blob)
    }
}

/// What conditions look at.
pub(crate) fn target(blob: &Blob) -> Target<'_> {
    Target { etag: blob.etag, modified: blob.modified, tags: &blob.facts.tags }
}

/// Marks a blob as changed now, and lets go of a lease that has run out, which a write does.
pub(crate) fn touch(ctx: &Ctx<'_>, blob: &mut Blob) {
    blob.etag = ctx.model.unique(ctx.now);
    blob.modified = ctx.now;
    if blob.facts.lease.is_some() && live_lease(blob, ctx.now).is_none() {
        blob.facts_mut().lease = None;
    }
}

/// The lease that goes on after a write.
pub(crate) fn live_lease(blob: &Blob, now: Ticks) -> Option<lease::Lease> {
    let active = matches!(lease::phase(blob.facts.lease.as_ref(), now), Phase::Leased | Phase::Breaking);
    blob.facts.lease.clone().filter(|_| active)
}

/// A random GUID (version 4).
pub(crate) fn guid() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without the system's randomness uniqueness within the process has to do: the address of fresh memory and the time.
        let now = time::ticks(std::time::SystemTime::now());
        bytes[..8].copy_from_slice(&now.to_le_bytes());
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
