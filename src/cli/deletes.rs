//! Deletes many blobs, some at a time: how `bench` cleans up, which has to know of each name whether there was such a blob.

use crate::error::Result;
use crate::rest::blob::{Blob, DeleteSnapshots};
use crate::rest::client::Client;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Deletions in flight at a time.
const AT_A_TIME: usize = 16;

/// Deletes these, in no particular order. With each name, whether there was such a blob, or why it is still there. Meant for some
/// thousand names at a time: each is a task. Dropping the future stops what is under way.
pub(crate) async fn delete_all(
    client: &Client,
    container: &str,
    names: Vec<String>,
    snapshots: DeleteSnapshots,
) -> Vec<(String, Result<bool>)> {
    let permits = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = JoinSet::new();
    for name in names {
        let (client, container, permits) = (client.clone(), container.to_owned(), Arc::clone(&permits));
        tasks.spawn(async move {
            let _permit = permits.acquire().await;
            let result = Blob::new(&client, &container, &name).delete(snapshots).await;
            (name, result)
        });
    }
    tasks.join_all().await
}
