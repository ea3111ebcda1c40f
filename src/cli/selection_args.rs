//! The options that say what is taken, the same in every command that looks at many things: AzCopy's filters under its names, and
//! what it lacks. What they mean stands in [`selection`](crate::endpoint::selection).

use super::options::Switch;
use crate::endpoint::list_of_files::ListOfFiles;
use crate::endpoint::selection::{Filter, Selection};
use crate::error::{Error, Kind, Result};
use crate::units::ByteCount;
use clap::Args;

/// See the module's text.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SelectionArgs {
    /// Only names like these, with * and ? (--help has more filters)
    #[arg(long, value_name = "NAME;NAME")]
    include_pattern: Vec<String>,
    /// Not names like these
    #[arg(long, value_name = "NAME;NAME", hide_short_help = true)]
    exclude_pattern: Vec<String>,
    /// Only these files and folders, by their path within the source
    #[arg(long, value_name = "PATH;PATH", hide_short_help = true)]
    include_path: Vec<String>,
    /// Not these files and folders, by their path within the source
    #[arg(long, value_name = "PATH;PATH")]
    exclude_path: Vec<String>,
    /// Only paths in which one of these regular expressions is found
    #[arg(long, value_name = "RE;RE", hide_short_help = true)]
    include_regex: Vec<String>,
    /// Not paths in which one of these regular expressions is found
    #[arg(long, value_name = "RE;RE", hide_short_help = true)]
    exclude_regex: Vec<String>,
    /// Only whole paths like this: ** crosses folders, also [a-z] and {a,b}; with ! before it, not these
    #[arg(long, value_name = "GLOB", hide_short_help = true)]
    glob: Vec<String>,
    /// Only what was changed then or later: 2026-01-31, or with a time, local or with a zone
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    include_after: Vec<String>,
    /// Only what was changed then or before
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    include_before: Vec<String>,
    /// Only what has at least this size: 512, 64K, 1.5GiB
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    min_size: Option<ByteCount>,
    /// Only what has at most this size
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    max_size: Option<ByteCount>,
    /// Only what this file names, one path within the source a line; - reads the list from stdin
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) list_of_files: Option<String>,
    /// The list of files is separated by NUL, as find -print0 writes it
    #[arg(long, short = '0', switch = false, hide_short_help = true)]
    pub(crate) list_of_files_nul: bool,
}

impl SelectionArgs {
    /// The filter.
    ///
    /// # Errors
    /// `Usage`, naming the flag and what is wrong with its value.
    pub(crate) fn selection(&self) -> Result<Selection> {
        let mut selection = Selection::default();
        for (filter, texts) in self.filters() {
            for text in texts {
                selection = selection.with(filter, text)?;
            }
        }
        if let (Some(min), Some(max)) = (self.min_size, self.max_size)
            && min > max
        {
            let message = format!("no size is at least {min} and at most {max}");
            return Err(Error::new(Kind::Usage, message).with_advice("exchange --min-size and --max-size"));
        }
        if let Some(ByteCount(bytes)) = self.min_size {
            selection = selection.at_least(bytes);
        }
        if let Some(ByteCount(bytes)) = self.max_size {
            selection = selection.at_most(bytes);
        }
        Ok(selection)
    }

    /// The list of names, if one is given.
    pub(crate) fn list(&self) -> Option<ListOfFiles> {
        self.list_of_files.clone().map(|from| ListOfFiles { from, nul: self.list_of_files_nul })
    }

    /// What was given, by name and as it was typed.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let filters = self.filters().into_iter().filter(|(_, texts)| !texts.is_empty());
        let mut given: Vec<_> = filters.map(|(filter, texts)| (filter.flag().trim_start_matches('-'), texts.join(" "))).collect();
        for (name, size) in [("min-size", self.min_size), ("max-size", self.max_size)] {
            given.extend(size.map(|size| (name, size.to_string())));
        }
        given.extend(self.list_of_files.clone().map(|from| ("list-of-files", from)));
        given
    }

    fn filters(&self) -> [(Filter, &[String]); 9] {
        [
            (Filter::IncludePattern, &self.include_pattern),
            (Filter::ExcludePattern, &self.exclude_pattern),
            (Filter::IncludePath, &self.include_path),
            (Filter::ExcludePath, &self.exclude_path),
            (Filter::IncludeRegex, &self.include_regex),
            (Filter::ExcludeRegex, &self.exclude_regex),
            (Filter::Glob, &self.glob),
            (Filter::IncludeAfter, &self.include_after),
            (Filter::IncludeBefore, &self.include_before),
        ]
    }
}
