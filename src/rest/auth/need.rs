//! What an operation needs of a credential, so that a SAS that cannot do it is refused before the first request.
//! Source: "Create a service SAS" and "Create an account SAS", tables of permissions.

/// What a request addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The account.
    Service,
    /// A container.
    Container,
    /// A blob.
    Object,
}

/// Rights an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// What is done, as it stands after `does not allow to`: `list blobs`.
    pub action: &'static str,
    /// What is addressed.
    pub level: Level,
    /// One letter out of each of these has to be among the permissions.
    pub rights: &'static [&'static str],
    /// Whether a service SAS can ever do it, or an account SAS only.
    pub account_only: bool,
}

impl Need {
    const fn new(action: &'static str, level: Level, rights: &'static [&'static str]) -> Need {
        Need { action, level, rights, account_only: false }
    }

    const fn by_account(action: &'static str, level: Level, rights: &'static [&'static str]) -> Need {
        Need { action, level, rights, account_only: true }
    }

    /// List Containers.
    pub const LIST_CONTAINERS: Need = Need::by_account("list containers", Level::Service, &["l"]);
    /// Create Container.
    pub const CREATE_CONTAINER: Need = Need::by_account("create a container", Level::Container, &["cw"]);
    /// Delete Container.
    pub const DELETE_CONTAINER: Need = Need::by_account("delete a container", Level::Container, &["d"]);
    /// Get Container Properties.
    pub const READ_CONTAINER: Need = Need::by_account("read a container's properties", Level::Container, &["r"]);
    /// List Blobs.
    pub const LIST: Need = Need::new("list blobs", Level::Container, &["l"]);
    /// Get Blob, Get Blob Properties, Get Block List.
    pub const READ: Need = Need::new("read blobs", Level::Object, &["r"]);
    /// Put Blob, Put Block, Put Block List. `c` does for names that are not taken yet.
    pub const WRITE: Need = Need::new("write blobs", Level::Object, &["cw"]);
    /// The same with tags.
    pub const WRITE_TAGGED: Need = Need::new("write blobs with tags", Level::Object, &["cw", "t"]);
    /// Get Blob Tags.
    pub const TAGS: Need = Need::new("read blobs' tags", Level::Object, &["t"]);
    /// Set Blob Properties, Set Blob Metadata, Set Blob Tier.
    pub const CHANGE: Need = Need::new("change blobs", Level::Object, &["w"]);
    /// Set Blob Tags.
    pub const CHANGE_TAGS: Need = Need::new("change blobs' tags", Level::Object, &["t"]);
    /// Undelete Blob.
    pub const UNDELETE: Need = Need::new("undelete blobs", Level::Object, &["w"]);
    /// Delete Blob.
    pub const DELETE: Need = Need::new("delete blobs", Level::Object, &["d"]);
}
