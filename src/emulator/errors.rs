//! Refusals: one table of the service's error codes with status and message, and the XML they are told in.
//!
//! A code not in the table cannot be answered, so every code the emulator knows stands here. Sources: the pages "Common REST
//! API error codes", "Blob service error codes", "SAS error codes".

use super::http::Answer;
use super::time;
use super::xml::escape;

/// A row of the table: the code, its status, and the first line of the message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// As in `x-ms-error-code`.
    pub(crate) name: &'static str,
    pub(crate) status: u16,
    message: &'static str,
}

macro_rules! codes {
    ($($constant:ident $status:literal $name:literal $message:literal;)*) => {
        $(pub(crate) const $constant: &Code = &Code { name: $name, status: $status, message: $message };)*
        #[cfg(test)]
        const ALL: &[&Code] = &[$($constant),*];
    };
}

codes! {
    INVALID_HEADER_VALUE 400 "InvalidHeaderValue" "The value for one of the HTTP headers is not in the correct format.";
    INVALID_QUERY_VALUE 400 "InvalidQueryParameterValue" "Value for one of the query parameters specified in the request URI is invalid.";
    OUT_OF_RANGE_QUERY 400 "OutOfRangeQueryParameterValue" "One of the query parameters specified in the request URI is outside the permissible range.";
    MISSING_HEADER 400 "MissingRequiredHeader" "An HTTP header that's mandatory for this request is not specified.";
    MISSING_QUERY 400 "MissingRequiredQueryParameter" "A query parameter that's mandatory for this request is not specified.";
    INVALID_AUTH_INFO 400 "InvalidAuthenticationInfo" "Authentication information is not given in the correct format. Check the value of Authorization header.";
    INVALID_INPUT 400 "InvalidInput" "One of the request inputs is not valid.";
    INVALID_URI 400 "InvalidUri" "The requested URI does not represent any resource on the server.";
    INVALID_RESOURCE_NAME 400 "InvalidResourceName" "The specifed resource name contains invalid characters.";
    OUT_OF_RANGE_INPUT 400 "OutOfRangeInput" "One of the request inputs is out of range.";
    INVALID_METADATA 400 "InvalidMetadata" "The metadata specified is invalid. It has characters that are not permitted.";
    EMPTY_METADATA_KEY 400 "EmptyMetadataKey" "The key for one of the metadata key-value pairs is empty.";
    METADATA_TOO_LARGE 400 "MetadataTooLarge" "The metadata specified exceeds the maximum permissible limit (8KB).";
    INVALID_TAG 400 "InvalidTag" "The tags specified are invalid. It contains characters that are not permitted.";
    TAGS_TOO_LARGE 400 "TagsTooLarge" "The tags specified exceed the maximum permissible limit.";
    DUPLICATE_TAG_NAMES 400 "DuplicateTagNames" "The tags specified contain duplicate names.";
    EMPTY_TAG_NAME 400 "EmptyTagName" "The name of one of the tag key-value pairs is empty.";
    INVALID_XML 400 "InvalidXmlDocument" "XML specified is not syntactically valid.";
    UNSUPPORTED_XML_NODE 400 "UnsupportedXmlNode" "One of the XML nodes specified in the request body is not supported.";
    MULTIPLE_CONDITIONS 400 "MultipleConditionHeadersNotSupported" "Multiple condition headers are not supported.";
    INVALID_BLOCK_LIST 400 "InvalidBlockList" "The specified block list is invalid.";
    BLOCK_LIST_TOO_LONG 400 "BlockListTooLong" "The block list may not contain more than 50,000 blocks.";
    INVALID_BLOB_OR_BLOCK 400 "InvalidBlobOrBlock" "The specified blob or block content is invalid.";
    INVALID_MD5 400 "InvalidMd5" "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded.";
    MD5_MISMATCH 400 "Md5Mismatch" "The MD5 value specified in the request did not match with the MD5 value calculated by the server.";
    CRC64_MISMATCH 400 "Crc64Mismatch" "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.";
    MIXED_BATCH 400 "AllBatchSubRequestsShouldBeSameApi" "All batch subrequests should be the same api.";
    TOO_MANY_PARTS 400 "ExceedsMaxBatchRequestCount" "The batch operation exceeds the maximum number of allowed subrequests.";
    NO_AUTH 401 "NoAuthenticationInformation" "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    INVALID_TOKEN 401 "InvalidAuthenticationInfo" "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    AUTH_FAILED 403 "AuthenticationFailed" "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.";
    AUTHZ_FAILURE 403 "AuthorizationFailure" "This request is not authorized to perform this operation.";
    PERMISSION_MISMATCH 403 "AuthorizationPermissionMismatch" "This request is not authorized to perform this operation using this permission.";
    SERVICE_MISMATCH 403 "AuthorizationServiceMismatch" "This request is not authorized to perform this operation using this service.";
    RESOURCE_TYPE_MISMATCH 403 "AuthorizationResourceTypeMismatch" "This request is not authorized to perform this operation using this resource type.";
    PROTOCOL_MISMATCH 403 "AuthorizationProtocolMismatch" "This request is not authorized to perform this operation using this protocol.";
    SOURCE_IP_MISMATCH 403 "AuthorizationSourceIPMismatch" "This request is not authorized to perform this operation using this source IP.";
    UNAUTHORIZED_OVERWRITE 403 "UnauthorizedBlobOverwrite" "This request is not authorized to perform blob overwrites.";
    INSUFFICIENT_ACCOUNT 403 "InsufficientAccountPermissions" "The account being accessed does not have sufficient permissions to execute this operation.";
    RESOURCE_NOT_FOUND 404 "ResourceNotFound" "The specified resource does not exist.";
    CONTAINER_NOT_FOUND 404 "ContainerNotFound" "The specified container does not exist.";
    BLOB_NOT_FOUND 404 "BlobNotFound" "The specified blob does not exist.";
    CANNOT_VERIFY_SOURCE 404 "CannotVerifyCopySource" "The specified copy source could not be verified.";
    UNSUPPORTED_VERB 405 "UnsupportedHttpVerb" "The resource doesn't support specified Http Verb.";
    CONTAINER_EXISTS 409 "ContainerAlreadyExists" "The specified container already exists.";
    CONTAINER_BEING_DELETED 409 "ContainerBeingDeleted" "The specified container is being deleted. Try operation later.";
    BLOB_EXISTS 409 "BlobAlreadyExists" "The specified blob already exists.";
    INVALID_BLOB_TYPE 409 "InvalidBlobType" "The blob type is invalid for this operation.";
    SNAPSHOTS_PRESENT 409 "SnapshotsPresent" "This operation is not permitted because the blob has snapshots.";
    BLOB_ARCHIVED 409 "BlobArchived" "This operation is not permitted on an archived blob.";
    BLOB_REHYDRATING 409 "BlobBeingRehydrated" "This operation is not permitted because the blob is being rehydrated.";
    CUSTOMER_ENCRYPTED 409 "BlobUsesCustomerSpecifiedEncryption" "The blob is encrypted with customer specified encryption, but it was not provided in the request.";
    TOO_MANY_UNCOMMITTED 409 "RequestEntityTooLargeBlockCountExceedsLimit" "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.";
    BLOCK_COUNT 409 "BlockCountExceedsLimit" "The committed block count cannot exceed the maximum limit of 50,000 blocks.";
    NO_PENDING_COPY 409 "NoPendingCopyOperation" "There is currently no pending copy operation.";
    LEASE_PRESENT 409 "LeaseAlreadyPresent" "There is already a lease present.";
    LEASE_MISMATCH 409 "LeaseIdMismatchWithLeaseOperation" "The lease ID specified did not match the lease ID.";
    LEASE_NOT_PRESENT 409 "LeaseNotPresentWithLeaseOperation" "There is currently no lease.";
    LEASE_BREAKING_ACQUIRE 409 "LeaseIsBreakingAndCannotBeAcquired" "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.";
    LEASE_BREAKING_CHANGE 409 "LeaseIsBreakingAndCannotBeChanged" "The lease ID matched, but the lease is currently in breaking state and cannot be changed.";
    LEASE_BROKEN_RENEW 409 "LeaseIsBrokenAndCannotBeRenewed" "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.";
    LENGTH_REQUIRED 411 "MissingContentLengthHeader" "Content length HTTP header is required.";
    CONDITION_NOT_MET 412 "ConditionNotMet" "The condition specified using HTTP conditional header(s) is not met.";
    SOURCE_CONDITION 412 "SourceConditionNotMet" "The source condition specified using HTTP conditional header(s) is not met.";
    LEASE_ID_MISSING 412 "LeaseIdMissing" "There is currently a lease on the resource and no lease ID was specified in the request.";
    LEASE_LOST 412 "LeaseLost" "A lease ID was specified, but the lease has expired.";
    LEASE_MISMATCH_BLOB 412 "LeaseIdMismatchWithBlobOperation" "The lease ID specified did not match the lease ID for the blob.";
    LEASE_MISMATCH_CONTAINER 412 "LeaseIdMismatchWithContainerOperation" "The lease ID specified did not match the lease ID for the container.";
    LEASE_ABSENT_BLOB 412 "LeaseNotPresentWithBlobOperation" "There is currently no lease on the blob.";
    LEASE_ABSENT_CONTAINER 412 "LeaseNotPresentWithContainerOperation" "There is currently no lease on the container.";
    INFINITE_LEASE 412 "InfiniteLeaseDurationRequired" "The lease ID matched, but the specified lease must be an infinite-duration lease.";
    APPEND_POSITION 412 "AppendPositionConditionNotMet" "The append position condition specified was not met.";
    MAX_BLOB_SIZE 412 "MaxBlobSizeConditionNotMet" "The max blob size condition specified was not met.";
    SEQUENCE_NUMBER 412 "SequenceNumberConditionNotMet" "The sequence number condition specified was not met.";
    BODY_TOO_LARGE 413 "RequestBodyTooLarge" "The request body is too large and exceeds the maximum permissible limit.";
    INVALID_RANGE 416 "InvalidRange" "The range specified is invalid for the current size of the resource.";
    INVALID_PAGE_RANGE 416 "InvalidPageRange" "The page range specified is invalid.";
    INTERNAL 500 "InternalError" "Server encountered an internal error. Please try again after some time.";
    STORE_FULL 507 "InsufficientStorage" "There is no room left where this store keeps its data.";
    NOT_IMPLEMENTED 501 "NotImplemented" "The requested operation is not implemented on the specified resource.";
}

/// A refused request: a code and what goes with it. One pointer wide.
#[derive(Debug)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: &'static Code,
    status: u16,
    message: Option<String>,
    details: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    header_code: bool,
}

/// What an operation gives back.
pub(crate) type Outcome<T = Answer> = Result<T, Failure>;

impl From<&'static Code> for Failure {
    fn from(code: &'static Code) -> Self {
        Failure(Box::new(Inner {
            code,
            status: code.status,
            message: None,
            details: Vec::new(),
            headers: Vec::new(),
            header_code: true,
        }))
    }
}

impl Failure {
    /// 400 naming a header and the value it had.
    pub(crate) fn header(name: &'static str, value: impl Into<String>) -> Self {
        Failure::from(INVALID_HEADER_VALUE).detail("HeaderName", name).detail("HeaderValue", value)
    }

    /// 400 naming a header that has to be there.
    pub(crate) fn missing_header(name: &'static str) -> Self {
        Failure::from(MISSING_HEADER).detail("HeaderName", name)
    }

    /// 400 naming a query parameter, its value and the reason.
    pub(crate) fn query(name: &'static str, value: impl Into<String>, reason: &str) -> Self {
        Failure::from(INVALID_QUERY_VALUE)
            .detail("QueryParameterName", name)
            .detail("QueryParameterValue", value)
            .detail("Reason", reason)
    }

    /// 400 about the XML in the body.
    pub(crate) fn xml(line: u64, column: u64, reason: &str) -> Self {
        Failure::from(INVALID_XML)
            .detail("LineNumber", line.to_string())
            .detail("LinePosition", column.to_string())
            .detail("Reason", reason)
    }

    /// 403 with the detail that tells why authentication failed.
    pub(crate) fn auth(detail: impl Into<String>) -> Self {
        Failure::from(AUTH_FAILED).detail("AuthenticationErrorDetail", detail)
    }

    /// 413 with the limit in bytes.
    pub(crate) fn too_large(limit: u64) -> Self {
        Failure::from(BODY_TOO_LARGE).detail("MaxLimit", limit.to_string())
    }

    /// Adds an element to the body.
    #[must_use]
    pub(crate) fn detail(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.details.push((name, value.into()));
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// Answers with another status than the code's usual one.
    #[must_use]
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.0.status = status;
        self
    }

    /// Says the text of another code, as the service does where one refusal stands for another.
    #[must_use]
    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = Some(message.into());
        self
    }

    /// Leaves `x-ms-error-code` out, as the service does for what fails before the request is understood.
    #[must_use]
    pub(crate) fn without_header_code(mut self) -> Self {
        self.0.header_code = false;
        self
    }

    /// The code.
    pub(crate) fn code(&self) -> &'static Code {
        self.0.code
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    /// First line of the message.
    pub(crate) fn message(&self) -> &str {
        self.0.message.as_deref().unwrap_or(self.0.code.message)
    }

    /// The answer that tells it: XML with its byte order mark, the code in the header from version 2017-07-29 on, on 304 no
    /// body.
    pub(crate) fn answer(&self, request_id: &str, now: time::Ticks, version: &str) -> Answer {
        let inner = &self.0;
        let mut answer = Answer::new(inner.status);
        if inner.header_code && version >= "2017-07-29" {
            answer.header("x-ms-error-code", inner.code.name);
        }
        for (name, value) in &inner.headers {
            answer.header(*name, value.clone());
        }
        if inner.status == 304 {
            return answer;
        }
        answer.header("Content-Type", "application/xml");
        answer.body(error_xml(inner.code.name, self.message(), &inner.details, request_id, now))
    }
}

/// The body of a refusal.
pub(crate) fn error_xml(
    code: &str,
    message: &str,
    details: &[(&'static str, String)],
    request_id: &str,
    now: time::Ticks,
) -> Vec<u8> {
    let mut xml = String::from("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>");
    xml.push_str(code);
    xml.push_str("</Code><Message>");
    escape(&mut xml, message);
    xml.push_str(&format!("\nRequestId:{request_id}\nTime:{}</Message>", time::iso(now)));
    for (name, value) in details {
        if value.is_empty() {
            xml.push_str(&format!("<{name} />"));
        } else {
            xml.push_str(&format!("<{name}>"));
            escape(&mut xml, value);
            xml.push_str(&format!("</{name}>"));
        }
    }
    xml.push_str("</Error>");
    xml.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_with_a_status_stands_once() {
        for (i, code) in ALL.iter().enumerate() {
            assert!((400..600).contains(&code.status), "{code:?}");
            assert!(!ALL[..i].iter().any(|other| other.name == code.name && other.status == code.status), "{code:?}");
        }
    }

    #[test]
    fn details_are_escaped_and_empty_ones_close_themselves() {
        let answer = Failure::query("comp", "<a&b>", "").answer("id", 0, "2021-04-10");
        let text = String::from_utf8(answer.bytes().to_vec()).unwrap();
        assert!(
            text.starts_with("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>InvalidQueryParameterValue</Code>")
        );
        assert!(text.ends_with("<QueryParameterValue>&lt;a&amp;b&gt;</QueryParameterValue><Reason /></Error>"), "{text}");
    }
}
