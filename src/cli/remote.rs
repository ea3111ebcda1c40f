//! A place at a Blob service as a command needs it: its location, a credential, and for `dev://` the embedded service behind it,
//! which lives as long as this.

use super::context::Context;
use crate::emulator::{Emulator, Storage};
use crate::endpoint::open::Place;
use crate::error::{Error, Kind, Result};
use crate::rest::auth::shared_key::DEV_ACCOUNT;
use crate::rest::auth::{Credential, Inputs, Need, choose};
use crate::rest::client::{Client, Config};
use crate::rest::location::Location;
use std::sync::Arc;
use std::time::SystemTime;

/// See the module's text.
pub(crate) struct Remote {
    /// Where it is.
    pub(crate) location: Location,
    credential: Arc<dyn Credential>,
    emulator: Option<Emulator>,
}

impl Remote {
    /// Finds the credential for a place, and starts the embedded service if it is there.
    ///
    /// # Errors
    /// `Usage` for a place that is not at a service, or a credential that cannot be right; `Local` where the embedded service
    /// cannot start.
    pub(crate) async fn open(place: &Place, context: &Context) -> Result<Remote> {
        if let Place::Dev { .. } = place {
            let emulator = Emulator::builder().storage(Storage::Disk(context.store_folder())).start().await?;
            let location = Location { container: None, blob: None, ..Location::parse(&emulator.url())? };
            let location = with_names(location, place);
            // Credentials of the environment are for other services.
            let credential = choose(&location, &Inputs::default())?;
            return Ok(Remote { location, credential, emulator: Some(emulator) });
        }
        let location = named(place, &context.inputs)?;
        let credential = choose(&location, &context.inputs)?;
        Ok(Remote { location, credential, emulator: None })
    }

    /// A client that counts into statistics of its own.
    ///
    /// # Errors
    /// `Usage` for plain http to another machine, or a proxy setting that cannot be used.
    pub(crate) fn client(&self, context: &Context) -> Result<Client> {
        self.client_with(Config { allow_http: context.shared.allow_http, ..Config::default() })
    }

    /// A client.
    ///
    /// # Errors
    /// As [`Remote::client`].
    pub(crate) fn client_with(&self, config: Config) -> Result<Client> {
        Client::new(&self.location, Arc::clone(&self.credential), config)
    }

    /// What can be known to be missing before the first request.
    ///
    /// # Errors
    /// `AccessRefused`.
    pub(crate) fn check(&self, need: Need) -> Result<()> {
        self.credential.check(need, SystemTime::now())
    }

    /// A blob of the container, or the container, as the user writes places: `dev://` without the address behind it.
    pub(crate) fn shown(&self, blob: Option<&str>) -> String {
        let container = self.location.container.as_deref().unwrap_or_default();
        match (&self.emulator, blob) {
            (Some(_), blob) => shown_dev(container, blob),
            (None, Some(blob)) => self.location.safe_blob(blob).to_string(),
            (None, None) => Location { blob: None, ..self.location.clone() }.safe().to_string(),
        }
    }

    /// Lets the embedded service end in order.
    pub(crate) async fn close(self) {
        if let Some(emulator) = self.emulator {
            emulator.stop().await;
        }
    }
}

/// `dev://container/blob`.
pub(crate) fn shown_dev(container: &str, blob: Option<&str>) -> String {
    match blob {
        Some(blob) => format!("dev://{container}/{blob}"),
        None => format!("dev://{container}"),
    }
}

/// Where a place is, without starting anything: of `dev://` only the names are right.
///
/// # Errors
/// `Usage` for a place that is not at a service.
pub(crate) fn named(place: &Place, inputs: &Inputs) -> Result<Location> {
    match place {
        Place::Remote(location) => Ok(match (&location.account, &inputs.account) {
            // A custom domain does not tell whose it is.
            (None, Some(account)) => (**location).clone().with_account(account),
            _ => (**location).clone(),
        }),
        Place::Dev { .. } => Ok(with_names(Location::parse(&format!("http://127.0.0.1/{DEV_ACCOUNT}"))?, place)),
        Place::Local(_) | Place::Stdio => Err(Error::new(Kind::Usage, "cannot take a local path for a place at a Blob service")
            .with_advice("write https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS, az://ACCOUNT/CONTAINER or dev://CONTAINER")),
    }
}

fn with_names(location: Location, place: &Place) -> Location {
    match place {
        Place::Dev { container, path } => Location { container: container.clone(), blob: path.clone(), ..location },
        _ => location,
    }
}
