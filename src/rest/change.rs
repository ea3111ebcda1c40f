//! Operations that change a blob where it is: its properties, metadata, tags and tier, and that bring back a deleted one.
//! Source: "Set Blob Properties", "Set Blob Metadata", "Set Blob Tags", "Get Blob Tags", "Set Blob Tier", "Undelete Blob", Azure
//! Storage REST reference.

use crate::attributes::{Attributes, Replace};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::blob::{Blob, Written};
use crate::rest::client::Op;
use crate::rest::model::Tags;
use crate::rest::properties;
use crate::rest::request::{Request, Response};
use http::header::{HeaderValue, IF_MATCH};
use http::{Method, StatusCode};

/// How soon a blob comes out of the archive (`x-ms-rehydrate-priority`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RehydratePriority {
    /// Within 15 hours.
    Standard,
    /// Within an hour, for small blobs.
    High,
}

/// What Set Blob Tier came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiering {
    /// The blob has its tier.
    Done,
    /// It is on its way out of the archive, and has its old tier until it is there.
    Rehydrating,
}

const SET_PROPERTIES: Op = Op::new("set the properties of", Need::CHANGE);
const SET_METADATA: Op = Op::new("set the metadata of", Need::CHANGE);
const SET_TAGS: Op = Op::new("set the tags of", Need::CHANGE_TAGS);
const GET_TAGS: Op = Op::new("get the tags of", Need::TAGS);
pub(super) const SET_TIER: Op = Op::new("set the tier of", Need::CHANGE);
const UNDELETE: Op = Op::new("undelete blob", Need::UNDELETE);

/// How often properties are read again because somebody else changed the blob meanwhile.
const LOOKS: u32 = 4;

impl Blob<'_> {
    /// Changes the content headers that `changes` names and leaves the others as they are; an empty text takes one away.
    ///
    /// Set Blob Properties clears what it is not sent, so that the blob is read first and written under its ETag: where
    /// somebody else changes it in between, it is read again, a few times. Needs the rights to read and to write.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a lease, an archived blob, a blob that never stands still, and one that carries what cannot
    /// be written back; and those of [`Client::send`](super::client::Client::send).
    pub async fn change_properties(&self, changes: &Attributes) -> Result<Written> {
        let mut looks = 0;
        loop {
            let there = self.get_properties().await?.ok_or_else(|| self.not_there())?;
            let old = there
                .attributes()
                .map_err(|why| Error::new(Kind::Conflict, format!("{}: {why}", self.client.doing(SET_PROPERTIES, &self.path))))?;
            looks += 1;
            match self.set_properties(&merged(changes, old), there.get("etag")).await {
                Err(error) if is_another_etag(&error) && looks < LOOKS => {}
                result => return result,
            }
        }
    }

    /// Set Blob Properties: the content headers become these, and only these; of the attributes nothing else is sent.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` (another ETag, a lease, an archived blob), and those of
    /// [`Client::send`](super::client::Client::send).
    pub async fn set_properties(&self, all: &Attributes, if_match: Option<&str>) -> Result<Written> {
        let headers = Attributes { metadata: Vec::new(), tags: Vec::new(), tier: None, ..all.clone() };
        let mut request = self.request(Method::PUT).query("comp", "properties");
        properties::apply(&headers, Replace::Always, &mut request.headers)?;
        if let Some(etag) = if_match.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            request.headers.insert(IF_MATCH, etag);
        }
        self.client.send(request, SET_PROPERTIES).await.map(Written)
    }

    /// Set Blob Metadata: the metadata become these, and only these.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` (a lease, an archived blob), and those of [`Client::send`](super::client::Client::send).
    pub async fn set_metadata(&self, metadata: &[(String, String)]) -> Result<Written> {
        let attributes = Attributes { metadata: metadata.to_vec(), ..Attributes::default() };
        let mut request = self.request(Method::PUT).query("comp", "metadata");
        properties::apply(&attributes, Replace::Always, &mut request.headers)?;
        self.client.send(request, SET_METADATA).await.map(Written)
    }

    /// Get Blob Tags.
    ///
    /// # Errors
    /// `NotFound`, `AccessRefused` where the credential may read and not see tags, and those of
    /// [`Client::send`](super::client::Client::send).
    pub async fn get_tags(&self) -> Result<Tags> {
        let response = self.client.send(self.request(Method::GET).query("comp", "tags"), GET_TAGS).await?;
        Tags::parse(&response.body).map_err(|e| self.client.bad_answer(GET_TAGS, &self.path, e))
    }

    /// Set Blob Tags: the tags become these, and only these. ETag and time of change stay.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` (a lease), and those of [`Client::send`](super::client::Client::send).
    pub async fn set_tags(&self, tags: &Tags) -> Result<()> {
        let body = crate::chunks::Chunks::from(tags.to_request_xml().into_bytes());
        let crc64 = body.crc64();
        let request = self.request(Method::PUT).query("comp", "tags");
        let request = request.header("content-type", HeaderValue::from_static("application/xml; charset=utf-8"));
        self.client.send(request.checked_body(body, crc64), SET_TAGS).await.map(drop)
    }

    /// Set Blob Tier. The tier is sent as given: which there are is the account's to say. ETag and time of change stay.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` (a lease, a blob that is being rehydrated to another tier), `Refused` for a tier that is none,
    /// and those of [`Client::send`](super::client::Client::send).
    pub async fn set_tier(&self, tier: &str, priority: Option<RehydratePriority>) -> Result<Tiering> {
        self.client.send(self.tier_request(tier, priority)?, SET_TIER).await.map(|response| tiering(&response))
    }

    /// Set Blob Tier as a request, also for a batch.
    pub(super) fn tier_request(&self, tier: &str, priority: Option<RehydratePriority>) -> Result<Request> {
        let attributes = Attributes { tier: Some(tier.to_owned()), ..Attributes::default() };
        let mut request = self.request(Method::PUT).query("comp", "tier");
        properties::apply(&attributes, Replace::Always, &mut request.headers)?;
        Ok(match priority {
            None => request,
            Some(RehydratePriority::Standard) => request.header("x-ms-rehydrate-priority", HeaderValue::from_static("Standard")),
            Some(RehydratePriority::High) => request.header("x-ms-rehydrate-priority", HeaderValue::from_static("High")),
        })
    }

    /// Undelete Blob: brings a soft-deleted blob back, with its soft-deleted snapshots. One that is not deleted stays as it is,
    /// and its deleted snapshots come back.
    ///
    /// # Errors
    /// `NotFound` where nothing deleted is kept under that name, and those of
    /// [`Client::send`](super::client::Client::send).
    pub async fn undelete(&self) -> Result<()> {
        self.client.send(self.request(Method::PUT).query("comp", "undelete"), UNDELETE).await.map(drop)
    }

    fn not_there(&self) -> Error {
        Error::new(Kind::NotFound, self.client.doing(SET_PROPERTIES, &self.path))
    }
}

/// What an answer to Set Blob Tier says.
pub(super) fn tiering(response: &Response) -> Tiering {
    if response.status == StatusCode::ACCEPTED { Tiering::Rehydrating } else { Tiering::Done }
}

/// Whether a write was refused because the blob is not the one that was read.
fn is_another_etag(error: &Error) -> bool {
    error.code() == Some("ConditionNotMet")
}

/// The content headers as they are to be: those of `changes`, and the old ones where it has none. An empty one goes.
fn merged(changes: &Attributes, old: Attributes) -> Attributes {
    let pick = |new: &Option<String>, old: Option<String>| new.clone().or(old).filter(|text| !text.is_empty());
    Attributes {
        content_type: pick(&changes.content_type, old.content_type),
        content_encoding: pick(&changes.content_encoding, old.content_encoding),
        content_language: pick(&changes.content_language, old.content_language),
        content_disposition: pick(&changes.content_disposition, old.content_disposition),
        cache_control: pick(&changes.cache_control, old.cache_control),
        content_md5: changes.content_md5.or(old.content_md5),
        ..Attributes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_stays_and_an_empty_text_takes_away() {
        let text = |text: &str| Some(text.to_owned());
        let old = Attributes {
            content_type: text("text/plain"),
            content_encoding: text("gzip"),
            content_language: text("de"),
            content_md5: Some([7; 16]),
            metadata: vec![("k".into(), "v".into())],
            ..Attributes::default()
        };
        let changes = Attributes {
            content_type: text("text/html"),
            content_encoding: text(""),
            cache_control: text("no-cache"),
            ..Attributes::default()
        };
        let expected = Attributes {
            content_type: text("text/html"),
            content_language: text("de"),
            cache_control: text("no-cache"),
            content_md5: Some([7; 16]),
            ..Attributes::default()
        };
        assert_eq!(merged(&changes, old), expected);
    }
}
