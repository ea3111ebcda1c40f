//! `blobjet make`: creates a container.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use super::remote::{Remote, place};
use crate::error::{Error, Kind, Result};
use crate::rest::container::Container;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  blobjet make az://ACCOUNT/box                            with the key or connection string in the environment
  blobjet make 'https://ACCOUNT.blob.core.windows.net/box?SAS'     an account SAS with c; a container's cannot make it";

/// Arguments of `make`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct MakeArgs {
    /// Container: https://, az:// or dev:// URL
    pub(crate) url: String,
}

/// Creates the container; one that exists is left as it is, with a note.
///
/// # Errors
/// Those of the request; `Usage` for a URL that is no container's.
pub(crate) async fn run(args: &MakeArgs, context: &Context) -> Result<Exit> {
    let remote = Remote::open(&place(&args.url, &context.inputs)?, context).await?;
    let name = match (&remote.location.container, &remote.location.blob) {
        (Some(container), None) => container,
        _ => {
            return Err(Error::new(Kind::Usage, format!("{} is not the URL of a container", remote.location.safe()))
                .with_advice("write https://ACCOUNT.blob.core.windows.net/CONTAINER or dev://CONTAINER"));
        }
    };
    let made = Container::new(&remote.client(context)?, name).create().await?;
    let url = remote.shown(None);
    context.out.data(
        || format!("{url} {}", if made { "created" } else { "exists already" }),
        || Event::Made { url: url.clone(), existed: !made },
    );
    remote.close().await;
    Ok(Exit::Done)
}
