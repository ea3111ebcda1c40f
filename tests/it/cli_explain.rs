//! `blobjet explain`, and that errors point to it.

use crate::cli_support::{World, emulator};

/// Promised as semantics 65.
#[test]
fn codes_kinds_and_exit_codes_have_pages() {
    let world = World::new();
    for code in
        ["authorizationpermissionmismatch", "ServerBusy", "SourceChanged", "4", "LeaseIdMissing", "CannotVerifyCopySource"]
    {
        let ran = world.run(&["explain", code]);
        assert!(ran.code == 0 && ran.stderr.is_empty(), "{ran:?}");
        assert!(ran.stdout.lines().next().unwrap().to_lowercase().contains(&code.to_lowercase()), "{}", ran.stdout);
        for part in ["\nUsual causes\n", "\nWhat to do\n", "\nSent again? "] {
            assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
        }
        assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
    }
    let page = &world.run(&["explain", "SnapshotsPresent", "--output-type", "json"]).json()[0];
    assert_eq!((&page["type"], &page["statuses"][0]), (&"page".into(), &409.into()));
}

/// Every code that the reference of the service has for blobs, and that a client can meet.
const CODES: &str = "AuthenticationFailed AuthorizationFailure AuthorizationPermissionMismatch AuthorizationSourceIPMismatch \
    AuthorizationProtocolMismatch AuthorizationServiceMismatch AuthorizationResourceTypeMismatch \
    KeyBasedAuthenticationNotPermitted InsufficientAccountPermissions AccountIsDisabled UnauthorizedBlobOverwrite \
    NoAuthenticationInformation InvalidAuthenticationInfo PublicAccessNotPermitted ResourceNotFound ContainerNotFound \
    BlobNotFound ContainerAlreadyExists BlobAlreadyExists ResourceAlreadyExists ContainerBeingDeleted ContainerDisabled \
    AccountBeingCreated ConditionNotMet SourceConditionNotMet TargetConditionNotMet LeaseIdMissing \
    LeaseIdMismatchWithBlobOperation LeaseIdMismatchWithContainerOperation LeaseNotPresentWithBlobOperation LeaseLost \
    LeaseAlreadyPresent LeaseIdMismatchWithLeaseOperation LeaseIsBreakingAndCannotBeAcquired \
    LeaseIsBreakingAndCannotBeChanged LeaseIsBrokenAndCannotBeRenewed LeaseNotPresentWithLeaseOperation LeaseAlreadyBroken \
    InfiniteLeaseDurationRequired InvalidBlockList InvalidBlobOrBlock InvalidBlockId BlockListTooLong \
    BlockCountExceedsLimit RequestEntityTooLargeBlockCountExceedsLimit RequestBodyTooLarge InvalidBlobType BlobArchived \
    BlobBeingRehydrated BlobNotArchived InvalidBlobTier CannotChangeToLowerTier BlobTierInadequateForContentLength \
    ContentLengthLargerThanTierLimit BlobAccessTierNotSupportedForAccountType BlobImmutableDueToPolicy \
    BlobImmutableDueToLegalHold OperationNotAllowedOnRootBlob AllBatchSubRequestsShouldBeSameApi \
    ImmutabilityPolicyDeleteOnLockedPolicy AccountProtectedFromDeletion BlobUsesCustomerSpecifiedEncryption \
    SnapshotsPresent SnapshotOperationRateExceeded SnapshotCountExceeded PendingCopyOperation NoPendingCopyOperation \
    CopyIdMismatch CannotVerifyCopySource CopyAcrossAccountsNotSupported Md5Mismatch Crc64Mismatch InvalidMd5 \
    InvalidHeaderValue InvalidQueryParameterValue OutOfRangeQueryParameterValue MissingRequiredHeader \
    MissingRequiredQueryParameter MissingRequiredXmlNode UnsupportedHeader UnsupportedQueryParameter UnsupportedXmlNode \
    UnsupportedHttpVerb InvalidXmlDocument InvalidXmlNodeValue InvalidUri RequestUrlFailedToParse InvalidHttpVerb \
    InvalidInput OutOfRangeInput InvalidResourceName InvalidMetadata EmptyMetadataKey MetadataTooLarge \
    MultipleConditionHeadersNotSupported ConditionHeadersNotSupported MissingContentLengthHeader InvalidRange \
    InvalidPageRange AppendPositionConditionNotMet MaxBlobSizeConditionNotMet SequenceNumberConditionNotMet \
    FeatureVersionMismatch SystemInUse ServerBusy OperationTimedOut InternalError";

/// Promised as semantics 65.
#[test]
fn no_code_of_the_service_is_left_out() {
    let listed = World::new().run(&["explain"]);
    assert_eq!(listed.code, 0);
    let names: Vec<&str> = listed.stdout.split([' ', ',', '\n']).collect();
    for code in CODES.split_whitespace() {
        assert!(names.contains(&code), "{code} has no page");
    }
    let of_status = World::new().run(&["explain", "416"]).stdout;
    assert!(of_status.contains("InvalidRange") && !of_status.contains("ServerBusy"), "{of_status}");
}

#[test]
fn what_is_not_known_is_refused_with_what_was_meant() {
    let ran = World::new().run(&["explain", "ServerBuzy"]);
    assert_eq!(ran.code, 2);
    let said = "error: there is no page about ServerBuzy\n  hint: did you mean ServerBusy? 'blobjet explain' lists all\n";
    assert_eq!(ran.stderr, said);
}

/// Promised as semantics 65: an error names the page about it, and that page is there.
#[tokio::test(flavor = "multi_thread")]
async fn errors_name_their_page() {
    let mut world = World::new();
    let emulator = emulator().await;
    world.know(&emulator);
    world.write("f.txt", "x");
    let ran = world.run(&["copy", "f.txt", &format!("{}/nowhere", emulator.url())]);
    let page = ran.stderr.lines().chain(ran.stdout.lines()).find_map(|line| line.strip_prefix("  more: blobjet "));
    let page = page.unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(page, "explain ContainerNotFound");
    assert_eq!(world.run(&page.split(' ').collect::<Vec<_>>()).code, 0);
}
