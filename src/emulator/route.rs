//! From method, path level, `restype` and `comp` to the operation, and what right each operation needs.

use super::errors::{self as e, Failure, Outcome};
use super::http::Head;
use super::state::Access;

/// How deep a path reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Service,
    Container,
    Blob,
}

macro_rules! operations {
    ($($op:ident,)*) => {
        /// The operations, named as the service names them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Op {
            $($op,)*
        }

        impl Op {
            /// All of them.
            pub(crate) const ALL: &[Op] = &[$(Op::$op),*];
        }
    };
}

operations! {
    ListContainers,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    GetAccountInformation,
    GetUserDelegationKey,
    FindBlobsByTags,
    BlobBatch,
    CreateContainer,
    GetContainerProperties,
    SetContainerMetadata,
    DeleteContainer,
    GetContainerAcl,
    SetContainerAcl,
    LeaseContainer,
    ListBlobs,
    PutBlob,
    PutBlobFromUrl,
    CopyBlob,
    AbortCopyBlob,
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    GetBlockList,
    GetBlob,
    GetBlobProperties,
    SetBlobProperties,
    GetBlobMetadata,
    SetBlobMetadata,
    GetBlobTags,
    SetBlobTags,
    SetBlobTier,
    DeleteBlob,
    UndeleteBlob,
    SnapshotBlob,
    LeaseBlob,
    AppendBlock,
    AppendBlockFromUrl,
    SealAppendBlob,
    PutPage,
    PutPageFromUrl,
    GetPageRanges,
}

/// Who may do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// Letters of `sp`, any of which suffices; none: no SAS will do.
    pub(crate) any_of: &'static str,
    /// Letter of `srt` in an account SAS.
    pub(crate) resource: char,
    /// Whether a service SAS can do it at all.
    pub(crate) service_sas: bool,
    /// Public access that makes credentials unnecessary.
    pub(crate) public: Option<Access>,
}

impl Op {
    /// Finds the operation.
    ///
    /// # Errors
    /// 400: unknown `comp` or `restype`; 405: known, but not with this method.
    pub(crate) fn of(head: &Head, level: Level) -> Outcome<Op> {
        let comp = head.parameter("comp").unwrap_or("");
        let restype = head.parameter("restype").unwrap_or("");
        let from_url = head.header("x-ms-copy-source").is_some();
        let method = head.method.as_str();
        if restype == "account" && comp == "properties" {
            return match method {
                "GET" | "HEAD" => Ok(Op::GetAccountInformation),
                _ => Err(e::UNSUPPORTED_VERB.into()),
            };
        }
        let found = match level {
            Level::Service => match (restype, comp, method) {
                ("", "list", "GET") => Op::ListContainers,
                ("service", "properties", "GET") => Op::GetServiceProperties,
                ("service", "properties", "PUT") => Op::SetServiceProperties,
                ("service", "stats", "GET") => Op::GetServiceStats,
                ("service", "userdelegationkey", "POST") => Op::GetUserDelegationKey,
                ("", "blobs", "GET") => Op::FindBlobsByTags,
                ("", "batch", "POST") => Op::BlobBatch,
                _ => return Err(unknown(restype, comp, &["list", "properties", "stats", "userdelegationkey", "blobs", "batch"])),
            },
            Level::Container => match (restype, comp, method) {
                ("container", "", "PUT") => Op::CreateContainer,
                ("container", "", "GET" | "HEAD") | ("container", "metadata", "GET" | "HEAD") => Op::GetContainerProperties,
                ("container", "", "DELETE") => Op::DeleteContainer,
                ("container", "metadata", "PUT") => Op::SetContainerMetadata,
                ("container", "acl", "GET" | "HEAD") => Op::GetContainerAcl,
                ("container", "acl", "PUT") => Op::SetContainerAcl,
                ("container", "lease", "PUT") => Op::LeaseContainer,
                ("container", "list", "GET") => Op::ListBlobs,
                ("container", "blobs", "GET") => Op::FindBlobsByTags,
                ("container", "batch", "POST") => Op::BlobBatch,
                ("container", "undelete", "PUT") => return Err(e::NOT_IMPLEMENTED.into()),
                _ => return Err(unknown(restype, comp, &["", "metadata", "acl", "lease", "list", "blobs", "batch"])),
            },
            Level::Blob => match (comp, method) {
                ("", "PUT") if from_url && head.header("x-ms-blob-type").is_some() => Op::PutBlobFromUrl,
                ("", "PUT") if from_url => Op::CopyBlob,
                ("", "PUT") => Op::PutBlob,
                ("", "GET") => Op::GetBlob,
                ("", "HEAD") => Op::GetBlobProperties,
                ("", "DELETE") => Op::DeleteBlob,
                ("block", "PUT") if from_url => Op::PutBlockFromUrl,
                ("block", "PUT") => Op::PutBlock,
                ("blocklist", "PUT") => Op::PutBlockList,
                ("blocklist", "GET") => Op::GetBlockList,
                ("properties", "PUT") => Op::SetBlobProperties,
                ("metadata", "GET" | "HEAD") => Op::GetBlobMetadata,
                ("metadata", "PUT") => Op::SetBlobMetadata,
                ("tags", "GET") => Op::GetBlobTags,
                ("tags", "PUT") => Op::SetBlobTags,
                ("tier", "PUT") => Op::SetBlobTier,
                ("snapshot", "PUT") => Op::SnapshotBlob,
                ("lease", "PUT") => Op::LeaseBlob,
                ("copy", "PUT") => Op::AbortCopyBlob,
                ("appendblock", "PUT") if from_url => Op::AppendBlockFromUrl,
                ("appendblock", "PUT") => Op::AppendBlock,
                ("seal", "PUT") => Op::SealAppendBlob,
                ("page", "PUT") if from_url => Op::PutPageFromUrl,
                ("page", "PUT") => Op::PutPage,
                ("pagelist", "GET") => Op::GetPageRanges,
                ("undelete", "PUT") => Op::UndeleteBlob,
                ("expiry" | "immutabilityPolicies" | "legalhold" | "query" | "incrementalcopy", _) => {
                    return Err(e::NOT_IMPLEMENTED.into());
                }
                _ => {
                    let known = [
                        "",
                        "block",
                        "blocklist",
                        "properties",
                        "metadata",
                        "tags",
                        "tier",
                        "snapshot",
                        "lease",
                        "copy",
                        "appendblock",
                        "seal",
                        "page",
                        "pagelist",
                    ];
                    return Err(unknown("", comp, &known));
                }
            },
        };
        Ok(found)
    }

    /// What a caller needs for it ("Create a service SAS", "Create an account SAS": the tables of operations).
    pub(crate) fn need(self) -> Need {
        let sas = |any_of, resource, service_sas| Need { any_of, resource, service_sas, public: None };
        let public = |access, need: Need| Need { public: Some(access), ..need };
        match self {
            Op::ListContainers => sas("l", 's', false),
            Op::GetServiceProperties | Op::GetServiceStats => sas("r", 's', false),
            Op::SetServiceProperties => sas("w", 's', false),
            Op::GetAccountInformation => sas("racwdxyltfmeopi", 's', true),
            Op::GetUserDelegationKey | Op::GetContainerAcl | Op::SetContainerAcl => sas("", 'c', false),
            Op::FindBlobsByTags => sas("f", 'o', true),
            // The parts of a batch are authorised one by one.
            Op::BlobBatch => sas("racwdxyltfmeopi", 'o', true),
            Op::CreateContainer => sas("cw", 'c', false),
            Op::DeleteContainer => sas("d", 'c', false),
            Op::GetContainerProperties => public(Access::Container, sas("r", 'c', false)),
            Op::SetContainerMetadata => sas("w", 'c', false),
            Op::LeaseContainer => sas("wd", 'c', false),
            Op::ListBlobs => public(Access::Container, sas("l", 'c', true)),
            Op::GetBlob | Op::GetBlobProperties | Op::GetBlobMetadata | Op::GetBlockList | Op::GetPageRanges => {
                public(Access::Blob, sas("r", 'o', true))
            }
            Op::PutBlob | Op::PutBlobFromUrl | Op::CopyBlob | Op::SnapshotBlob => sas("cw", 'o', true),
            Op::PutBlock | Op::PutBlockFromUrl | Op::PutBlockList => sas("cw", 'o', true),
            Op::AbortCopyBlob | Op::SetBlobProperties | Op::SetBlobMetadata | Op::SetBlobTier | Op::UndeleteBlob => {
                sas("w", 'o', true)
            }
            Op::PutPage | Op::PutPageFromUrl => sas("w", 'o', true),
            Op::GetBlobTags | Op::SetBlobTags => sas("t", 'o', true),
            Op::DeleteBlob => sas("d", 'o', true),
            Op::LeaseBlob => sas("wd", 'o', true),
            Op::AppendBlock | Op::AppendBlockFromUrl | Op::SealAppendBlob => sas("aw", 'o', true),
        }
    }

    /// Whether the operation leaves everything as it is; the secondary takes only these.
    pub(crate) fn reads(self) -> bool {
        matches!(
            self,
            Op::ListContainers
                | Op::GetServiceProperties
                | Op::GetServiceStats
                | Op::GetAccountInformation
                | Op::FindBlobsByTags
                | Op::GetContainerProperties
                | Op::GetContainerAcl
                | Op::ListBlobs
                | Op::GetBlockList
                | Op::GetBlob
                | Op::GetBlobProperties
                | Op::GetBlobMetadata
                | Op::GetBlobTags
                | Op::GetPageRanges
        )
    }
}

fn unknown(restype: &str, comp: &str, known: &[&str]) -> Failure {
    if !matches!(restype, "" | "service" | "container" | "account") {
        return Failure::query("restype", restype, "");
    }
    if known.contains(&comp) { e::UNSUPPORTED_VERB.into() } else { Failure::query("comp", comp, "") }
}
