//! The operations, one file a family, named as the service names them. Each gets a request that was let in ([`Ctx`]) and gives
//! an answer or a refusal; the order of its checks is the service's: existence and state, lease, conditions, body.

pub(crate) mod append;
pub(crate) mod batch;
pub(crate) mod blocks;
mod common;
mod container;
mod copy;
mod delete;
mod describe;
mod items;
mod lease;
mod list;
pub(crate) mod page;
mod properties;
pub(crate) mod put;
mod read;
mod services;
mod snapshot;
mod tier;

use super::auth::Caller;
use super::errors::{self as e, Outcome};
use super::fault::Lowered;
use super::fetch::Fetched;
use super::http::Head;
use super::route::Op;
use super::service::Service;
use super::state::{Account, Container, Model};
use super::time::Ticks;
use std::sync::Arc;

/// A request that was let in.
pub(crate) struct Ctx<'a> {
    pub(crate) service: &'a Service,
    pub(crate) model: &'a Model,
    pub(crate) account: &'a Account,
    pub(crate) head: &'a Head,
    pub(crate) now: Ticks,
    /// The version the request is served by.
    pub(crate) version: &'static str,
    pub(crate) op: Op,
    pub(crate) container: String,
    pub(crate) blob: String,
    pub(crate) caller: Caller,
    pub(crate) request_id: &'a str,
    pub(crate) lowered: Lowered,
    /// The source of a copy, where it had to be fetched.
    pub(crate) fetched: Option<Fetched>,
}

impl Ctx<'_> {
    /// The container of the request's path.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`.
    fn open(&self) -> Outcome<Arc<Container>> {
        self.account.container(&self.container)
    }

    /// Whether the request is served by this version or a later one.
    fn since(&self, version: &str) -> bool {
        self.version >= version
    }
}

/// Runs an operation whose request body is in memory.
///
/// # Errors
/// The operation's.
pub(crate) fn run(ctx: &Ctx<'_>, body: &[u8]) -> Outcome {
    match ctx.op {
        Op::ListContainers => list::containers(ctx),
        Op::ListBlobs => list::blobs(ctx),
        Op::FindBlobsByTags => list::find(ctx),
        Op::GetServiceProperties => services::get_properties(ctx),
        Op::SetServiceProperties => services::set_properties(ctx, body),
        Op::GetServiceStats => services::stats(ctx),
        Op::GetAccountInformation => services::account(ctx),
        // Made with the rights of a directory user, whom nobody here can be.
        Op::GetUserDelegationKey => Err(e::AUTHZ_FAILURE.into()),
        Op::CreateContainer => container::create(ctx),
        Op::GetContainerProperties => container::properties(ctx),
        Op::SetContainerMetadata => container::set_metadata(ctx),
        Op::DeleteContainer => container::delete(ctx),
        Op::GetContainerAcl => container::get_acl(ctx),
        Op::SetContainerAcl => container::set_acl(ctx, body),
        Op::LeaseContainer => lease::container(ctx),
        Op::LeaseBlob => lease::blob(ctx),
        Op::PutBlobFromUrl => copy::put_blob(ctx),
        Op::CopyBlob => copy::copy_blob(ctx),
        Op::AbortCopyBlob => copy::abort(ctx),
        Op::PutBlockFromUrl => blocks::put_block_from_url(ctx),
        Op::PutBlockList => blocks::put_block_list(ctx, body),
        Op::GetBlockList => blocks::get_block_list(ctx),
        Op::GetBlob => read::get(ctx),
        Op::GetBlobProperties => read::head(ctx),
        Op::GetBlobMetadata => properties::get_metadata(ctx),
        Op::SetBlobMetadata => properties::set_metadata(ctx),
        Op::SetBlobProperties => properties::set(ctx),
        Op::GetBlobTags => properties::get_tags(ctx),
        Op::SetBlobTags => properties::set_tags(ctx, body),
        Op::SetBlobTier => tier::set(ctx),
        Op::DeleteBlob => delete::blob(ctx),
        Op::UndeleteBlob => delete::undelete(ctx),
        Op::SnapshotBlob => snapshot::create(ctx),
        Op::SealAppendBlob => append::seal(ctx),
        Op::AppendBlockFromUrl => append::append_block_from_url(ctx),
        Op::PutPageFromUrl => page::put_page_from_url(ctx),
        Op::GetPageRanges => page::ranges(ctx),
        // These receive their bodies themselves, see `service`.
        Op::PutBlob | Op::PutBlock | Op::AppendBlock | Op::PutPage | Op::BlobBatch => Err(e::INTERNAL.into()),
    }
}
