//! Operations on containers and lists, named as the service names them.
//! Source: "Operations on containers" and "List Containers", Azure Storage REST reference, each by its title.

use crate::error::{Kind, Result};
use crate::rest::auth::Need;
use crate::rest::client::{Client, Op};
use crate::rest::model::{ContainerPage, ListPage};
use crate::rest::request::{Request, Response};
use http::Method;

/// One container.
#[derive(Clone)]
pub struct Container<'a> {
    client: &'a Client,
    path: String,
}

/// What to list, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Only names that begin so.
    pub prefix: Option<String>,
    /// Names that have this after the prefix are folded into one entry up to it.
    pub delimiter: Option<String>,
    /// Where to go on: [`ListPage::next_marker`] of the page before.
    pub marker: Option<String>,
    /// Most entries of a page, at most 5000 (which is also what the service takes where it is not said).
    pub max_results: Option<u32>,
    /// What else to tell: `metadata`, `tags`, `snapshots`, `versions`, `deleted`, `uncommittedblobs`, `copy`.
    pub include: Vec<&'static str>,
}

const CREATE: Op = Op::new("create container", Need::CREATE_CONTAINER);
const DELETE: Op = Op::new("delete container", Need::DELETE_CONTAINER);
const GET_PROPERTIES: Op = Op::new("get properties of container", Need::READ_CONTAINER);
const LIST: Op = Op::new("list blobs of", Need::LIST);
const LIST_CONTAINERS: Op = Op::new("list containers of", Need::LIST_CONTAINERS);

impl<'a> Container<'a> {
    /// A container by its name.
    pub fn new(client: &'a Client, name: &str) -> Container<'a> {
        Container { client, path: client.location().container_path(name) }
    }

    fn request(&self, method: Method) -> Request {
        Request::new(method, self.path.clone()).query("restype", "container")
    }

    /// Create Container. Returns whether it was made; `false` where it was there already. One that is being deleted is waited
    /// for.
    ///
    /// # Errors
    /// Those of [`Client::send`](super::client::Client::send).
    pub async fn create(&self) -> Result<bool> {
        match self.client.send(self.request(Method::PUT), CREATE).await {
            Ok(_) => Ok(true),
            // On a later try it may be ours.
            Err(error) if error.kind() == Kind::AlreadyExists => Ok(error.attempts().is_some()),
            Err(error) => Err(error),
        }
    }

    /// Delete Container, with everything in it. Returns whether there was one.
    ///
    /// # Errors
    /// `Conflict` for a lease, and those of [`Client::send`](super::client::Client::send).
    pub async fn delete(&self) -> Result<bool> {
        match self.client.send(self.request(Method::DELETE), DELETE).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::ContainerNotFound) => Ok(error.attempts().is_some()),
            Err(error) => Err(error),
        }
    }

    /// Get Container Properties: the answer's headers. `None` where there is no such container.
    ///
    /// # Errors
    /// Those of [`Client::send`](super::client::Client::send).
    pub async fn get_properties(&self) -> Result<Option<Response>> {
        match self.client.send(self.request(Method::HEAD), GET_PROPERTIES).await {
            Ok(response) => Ok(Some(response)),
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::ContainerNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// List Blobs: one page. Go on while [`ListPage::next_marker`] is there, also after an empty page.
    ///
    /// # Errors
    /// `ContainerNotFound`, `BadAnswer`, and those of [`Client::send`](super::client::Client::send).
    pub async fn list(&self, options: &ListOptions) -> Result<ListPage> {
        let request = self.request(Method::GET).query("comp", "list");
        let page = [("prefix", &options.prefix), ("delimiter", &options.delimiter), ("marker", &options.marker)];
        let mut request = with_page(request, page, options.max_results);
        if !options.include.is_empty() {
            request = request.query("include", options.include.join(","));
        }
        let response = self.client.send(request, LIST).await?;
        ListPage::parse(&response.body).map_err(|e| self.client.bad_answer(LIST, &self.path, e))
    }
}

/// List Containers: one page of the account's containers whose names begin with `prefix`, from `marker` on.
///
/// # Errors
/// `BadAnswer`, and those of [`Client::send`](super::client::Client::send).
pub async fn list_containers(client: &Client, prefix: Option<String>, marker: Option<String>) -> Result<ContainerPage> {
    let path = client.location().account_path();
    let request = Request::new(Method::GET, path.clone()).query("comp", "list");
    let request = with_page(request, [("prefix", &prefix), ("marker", &marker)], None);
    let response = client.send(request, LIST_CONTAINERS).await?;
    ContainerPage::parse(&response.body).map_err(|e| client.bad_answer(LIST_CONTAINERS, &path, e))
}

fn with_page<const N: usize>(
    mut request: Request,
    parameters: [(&'static str, &Option<String>); N],
    max_results: Option<u32>,
) -> Request {
    for (name, value) in parameters {
        if let Some(value) = value.as_deref().filter(|v| !v.is_empty()) {
            request = request.query(name, value);
        }
    }
    match max_results {
        Some(most) => request.query("maxresults", most.to_string()),
        None => request,
    }
}
