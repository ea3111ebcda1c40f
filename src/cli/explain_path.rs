//! `--explain PATH`: why a path would be taken or left out by this command line. Nothing is sent.

use super::context::Context;
use super::exit::Exit;
use super::json::Event;
use super::render::printable;
use crate::endpoint::explain::explain;
use crate::endpoint::open::Opening;
use crate::error::Result;

/// Explains paths of a local source. `lands` says where something lands, as the user wrote the destination.
///
/// # Errors
/// Those of the source itself.
pub(crate) fn run(
    source: &str,
    opening: &Opening,
    paths: &[String],
    lands: &dyn Fn(&str) -> String,
    context: &Context,
) -> Result<Exit> {
    for path in paths {
        let explained = explain(source, opening, path)?;
        let destination = explained.target.as_deref().map(lands);
        let text = || {
            let shown = printable(path);
            let why = printable(&explained.why);
            match &destination {
                Some(destination) => format!("{shown}: taken, to {}: {why}", printable(destination)),
                None => format!("{shown}: not taken: {why}"),
            }
        };
        context.out.data(text, || Event::Explained {
            path: path.clone(),
            taken: explained.taken,
            why: explained.why.clone(),
            destination: destination.clone(),
        });
    }
    Ok(Exit::Done)
}
