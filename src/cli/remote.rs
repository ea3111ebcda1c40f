//! A place at a Blob service as a command needs it: its location, a credential, and for `dev://` the embedded service behind it,
//! which lives as long as this.

use super::context::Context;
use crate::emulator::{Emulator, Storage};
use crate::endpoint::open::{self, Place};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::connection_string::ConnectionString;
use crate::rest::auth::shared_key::DEV_ACCOUNT;
use crate::rest::auth::{Credential, Inputs, KINDS, Need, choose};
use crate::rest::client::{Client, Config};
use crate::rest::location::Location;
use crate::rest::names::check_container_name;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

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
        let location = named(place, &context.inputs)?;
        if let Place::Dev { .. } = place {
            let emulator = embedded(context).await?;
            let location = with_names(Location::parse(&emulator.url())?, place);
            // Credentials of the environment are for other services.
            let credential = choose(&location, &Inputs::default())?;
            return Ok(Remote { location, credential, emulator: Some(emulator) });
        }
        let credential = choose(&location, &context.inputs)?;
        Ok(Remote { location, credential, emulator: None })
    }

    /// Another place at the embedded service that this one has started: one process at a time can have its data.
    pub(crate) fn beside(&self, place: &Place) -> Remote {
        let location = with_names(self.location.clone(), place);
        Remote { location, credential: Arc::clone(&self.credential), emulator: None }
    }

    /// An embedded service that throws away what it is sent, with this container's name; it is gone with this.
    ///
    /// # Errors
    /// `Local` where it cannot start.
    pub(crate) async fn discarding(container: &str) -> Result<Remote> {
        let emulator = Emulator::builder().storage(Storage::Discard).start().await?;
        let place = Place::Dev { container: Some(container.to_owned()), path: None };
        let location = with_names(Location::parse(&emulator.url())?, &place);
        // Credentials of the environment are for other services.
        let credential = choose(&location, &Inputs::default())?;
        Ok(Remote { location, credential, emulator: Some(emulator) })
    }

    /// Who we are to it.
    pub(crate) fn credential(&self) -> &dyn Credential {
        &*self.credential
    }

    /// Where the credential was found.
    pub(crate) fn found_in(&self, inputs: &Inputs) -> &'static str {
        let nothing = Inputs::default();
        let inputs = if self.emulator.is_some() { &nothing } else { inputs };
        let found = KINDS.iter().find(|kind| matches!((kind.find)(&self.location, inputs), Ok(Some(_))));
        found.map_or("", |kind| kind.name)
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

    /// [`shown`] for this place.
    pub(crate) fn shown(&self, blob: Option<&str>) -> String {
        shown(&self.location, blob)
    }

    /// [`shown`] for the blobs of this place, for who needs it longer than this is borrowed.
    pub(crate) fn shower(&self) -> impl Fn(&str) -> String + Send + Sync + use<> {
        let location = self.location.clone();
        move |blob| shown(&location, Some(blob))
    }

    /// Lets the embedded service end in order.
    pub(crate) async fn close(self) {
        if let Some(emulator) = self.emulator {
            emulator.stop().await;
        }
    }
}

/// A blob of a place's container, or the container, as the user writes places.
pub(crate) fn shown(location: &Location, blob: Option<&str>) -> String {
    blob.map_or_else(|| location.safe_container(), |blob| location.safe_blob(blob)).to_string()
}

/// Starts the embedded service on the folder of `dev://`. One process at a time can have it: another run's end is waited for.
async fn embedded(context: &Context) -> Result<Emulator> {
    let started = Instant::now();
    let mut told = false;
    loop {
        match Emulator::builder().storage(Storage::Disk(context.store_folder())).start().await {
            Err(error) if is_busy(&error) && started.elapsed() < PATIENCE => {
                if !told {
                    context.out.warn("another process has the data of dev:// open; waiting for it");
                    told = true;
                }
                sleep(Duration::from_millis(50)).await;
            }
            other => return other,
        }
    }
}

/// How long another process may keep the data of `dev://`: longer than short commands take, shorter than people wait.
const PATIENCE: Duration = Duration::from_secs(5);

fn is_busy(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<rusqlite::Error>());
    let code = cause.and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
}

/// What an argument means here. An `az://` place of the account that the connection string is for is at that string's endpoint.
///
/// # Errors
/// `Usage`.
pub(crate) fn place(arg: &str, inputs: &Inputs) -> Result<Place> {
    let place = open::place(arg)?;
    let is_az = arg.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("az://"));
    match (&place, &inputs.connection_string) {
        (Place::Remote(location), Some(text)) if is_az => {
            let endpoint = ConnectionString::parse(text)?.endpoint;
            if endpoint.account != location.account {
                return Ok(place);
            }
            let (container, blob) = (location.container.clone(), location.blob.clone());
            Ok(Place::Remote(Box::new(Location { container, blob, ..endpoint })))
        }
        _ => Ok(place),
    }
}

/// Where a place is, without starting anything: of `dev://` only the names are right.
///
/// # Errors
/// `Usage` for a place that is not at a service, and for a container that cannot be.
pub(crate) fn named(place: &Place, inputs: &Inputs) -> Result<Location> {
    let location = match place {
        Place::Remote(location) => match (&location.account, &inputs.account) {
            // A custom domain does not tell whose it is.
            (None, Some(account)) => (**location).clone().with_account(account),
            _ => (**location).clone(),
        },
        Place::Dev { .. } => with_names(Location::parse(&format!("http://127.0.0.1/{DEV_ACCOUNT}"))?, place),
        Place::Local(_) | Place::Stdio | Place::Null => {
            return Err(Error::new(Kind::Usage, "cannot take a local path for a place at a Blob service").with_advice(
                "write https://ACCOUNT.blob.core.windows.net/CONTAINER?SAS, az://ACCOUNT/CONTAINER or dev://CONTAINER",
            ));
        }
    };
    if let Some(Err(error)) = location.container.as_deref().map(check_container_name) {
        let advice = error.advice().unwrap_or_default().to_owned();
        return Err(Error::new(Kind::Usage, error.to_string()).with_advice(advice));
    }
    Ok(location)
}

fn with_names(location: Location, place: &Place) -> Location {
    match place {
        Place::Dev { container, path } => {
            Location { container: container.clone(), blob: path.clone(), embedded: true, ..location }
        }
        _ => location,
    }
}
