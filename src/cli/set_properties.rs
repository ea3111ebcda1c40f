//! `blobjet set-properties`: changes tier, metadata, tags and content headers of blobs where they are.

use super::attribute_args::AttributeArgs;
use super::changing::{self, ChangingArgs, Doer, target};
use super::context::Context;
use super::doing::Changing;
use super::entry::Origin;
use super::exit::Exit;
use crate::attributes::Attributes;
use crate::endpoint::blob_changes::{Setting, Settings};
use crate::error::{Error, Kind, Result};
use crate::rest::auth::Need;
use crate::rest::change::RehydratePriority;
use crate::rest::model::Tags;
use clap::{Args, ValueEnum};
use std::sync::{Arc, OnceLock};

const EXAMPLES: &str = "\
Examples:
  blobjet set-properties 'https://ACCOUNT.blob.core.windows.net/CONTAINER/old?SAS' --recursive --block-blob-tier Cool
  blobjet set-properties az://ACCOUNT/backups/db.bak --block-blob-tier Hot --rehydrate-priority High
  blobjet set-properties 'dev://box/*.html' --content-type 'text/html; charset=utf-8' --cache-control no-cache
  blobjet set-properties dev://box/a --metadata 'owner=ops;run=7' --blob-tags ''
Metadata and tags are replaced as a whole; '' takes all away. Of the content headers those that are named change; '' takes one away.";

/// Arguments of `set-properties`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SetPropertiesArgs {
    #[command(flatten)]
    pub(crate) changing: ChangingArgs,
    #[command(flatten)]
    pub(crate) attributes: AttributeArgs,
    /// How soon blobs come out of the archive: standard (hours) or high
    #[arg(long, value_enum, ignore_case = true, hide_possible_values = true, value_name = "HOW")]
    pub(crate) rehydrate_priority: Option<PriorityArg>,
}

/// `--rehydrate-priority`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorityArg {
    Standard,
    High,
}

impl From<PriorityArg> for RehydratePriority {
    fn from(arg: PriorityArg) -> Self {
        match arg {
            PriorityArg::Standard => RehydratePriority::Standard,
            PriorityArg::High => RehydratePriority::High,
        }
    }
}

const WORDS: Changing = Changing {
    command: "set-properties",
    verb: "change",
    nothing: "no blob",
    done: "changed",
    dry_run: false,
    selects: false,
    gone_earlier: 0,
};

/// Changes what the URL names.
///
/// # Errors
/// What keeps it from starting; `Usage` where nothing is to be set, or what the service would refuse for sure.
pub(crate) async fn run(args: &SetPropertiesArgs, mut origin: Option<Origin>, context: &Context) -> Result<Exit> {
    let settings = settings(args)?;
    let target = target(&args.changing, &mut origin, context)?;
    let needs: Vec<Need> = [
        (settings.headers.is_some(), Need::READ),
        (settings.headers.is_some() || settings.metadata.is_some() || settings.tier.is_some(), Need::CHANGE),
        (settings.tags.is_some(), Need::CHANGE_TAGS),
    ]
    .into_iter()
    .filter_map(|(is_needed, need)| is_needed.then_some(need))
    .collect();
    let made = OnceLock::new();
    let doer = Doer {
        words: WORDS,
        needs: &needs,
        // What marks a folder is in its metadata.
        include: if settings.metadata.is_some() { &["metadata"] } else { &[] },
        vanish: false,
        with_stub: false,
        change: &|blobs| {
            let setting = Arc::new(Setting::new(blobs, settings.clone()));
            made.get_or_init(|| Arc::clone(&setting));
            setting
        },
    };
    let exit = changing::run(&args.changing, target, origin, doer, context).await?;
    if let Some(count) = made.get().map(|setting| setting.rehydrating()).filter(|count| *count > 0) {
        context.out.note(&format!(
            "{count} of the blobs are on their way out of the archive: that takes hours, and until then they cannot be read"
        ));
    }
    Ok(exit)
}

/// AzCopy's word for no metadata and no tags.
fn cleared(text: Option<&String>) -> Option<String> {
    text.map(|text| if text.eq_ignore_ascii_case("clear") { String::new() } else { text.clone() })
}

fn settings(args: &SetPropertiesArgs) -> Result<Settings> {
    let given = AttributeArgs {
        metadata: cleared(args.attributes.metadata.as_ref()),
        blob_tags: cleared(args.attributes.blob_tags.as_ref()),
        ..args.attributes.clone()
    };
    let attributes = given.attributes()?;
    let Attributes { metadata, tags, tier, .. } = attributes.clone();
    let headers = Attributes { metadata: Vec::new(), tags: Vec::new(), tier: None, ..attributes };
    let settings = Settings {
        headers: (headers != Attributes::default()).then_some(headers),
        metadata: given.metadata.is_some().then_some(metadata),
        tags: given.blob_tags.is_some().then_some(Tags(tags)),
        tier,
        priority: args.rehydrate_priority.map(Into::into),
    };
    if settings == (Settings { priority: settings.priority, ..Settings::default() }) {
        return Err(Error::new(Kind::Usage, "there is nothing to set")
            .with_advice("add --block-blob-tier, --metadata, --blob-tags or a content header such as --content-type"));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SetPropertiesArgs,
    }

    fn of(line: &[&str]) -> Result<Settings> {
        settings(&Line::parse_from(["set-properties", "dev://c/b"].iter().chain(line)).args)
    }

    #[test]
    fn what_is_not_given_stays_and_nothing_clears() {
        let pair = |k: &str, v: &str| vec![(k.to_owned(), v.to_owned())];
        let all = of(&["--metadata", "a=1", "--blob-tags", "k=v", "--block-blob-tier", "Smart"]).unwrap();
        assert_eq!(
            (all.metadata, all.tags, all.tier.as_deref()),
            (Some(pair("a", "1")), Some(Tags(pair("k", "v"))), Some("Smart"))
        );
        assert_eq!(all.headers, None);
        for nothing in ["", "clear", "Clear"] {
            let cleared = of(&["--metadata", nothing, "--blob-tags", nothing]).unwrap();
            assert_eq!((cleared.metadata, cleared.tags, cleared.tier), (Some(Vec::new()), Some(Tags::default()), None));
        }
        let headers = of(&["--content-type", "text/css", "--cache-control", ""]).unwrap().headers.unwrap();
        let text = |text: &str| Some(text.to_owned());
        let expected = Attributes { content_type: text("text/css"), cache_control: text(""), ..Attributes::default() };
        assert_eq!(headers, expected);
    }

    #[test]
    fn nothing_to_set_is_wrong_usage() {
        for line in [&[][..], &["--rehydrate-priority", "high"], &["--block-blob-tier", "none"], &["--metadata", "a-b=1"]] {
            assert_eq!(of(line).unwrap_err().kind(), Kind::Usage, "{line:?}");
        }
    }
}
