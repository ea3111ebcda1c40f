//! What a blob that is made of another one takes over of what that one carries. Pure.
//!
//! What was asked for by name wins; everything else stays as it was at the source, as far as it is to be kept. Metadata and tags are
//! put together name by name.

use crate::attributes::Attributes;
use crate::error::{Error, Kind, Result};
use crate::rest::properties::{check, is_header_text, is_metadata_name};

/// What is kept of what a source carries. By default everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Content headers, the stored MD5, and metadata.
    pub properties: bool,
    /// The access tier.
    pub tier: bool,
    /// Index tags.
    pub tags: bool,
    /// What becomes of metadata that could not be written as they are.
    pub invalid: InvalidMetadata,
}

impl Default for Keep {
    fn default() -> Self {
        Keep { properties: true, tier: true, tags: true, invalid: InvalidMetadata::default() }
    }
}

/// What becomes of metadata whose name or value no request can carry: names that are not identifiers, values that are not plain
/// ASCII. Blobs written long ago, or by other services, have them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InvalidMetadata {
    /// They are left out.
    #[default]
    Exclude,
    /// The object fails.
    Fail,
    /// The name is made valid: `1-a` becomes `rename_1_a`, and `rename_key_1_a` holds `1-a`. A value that cannot be is left out.
    Rename,
}

impl Keep {
    /// What the new blob carries: what was `asked` for, over what is kept of what the source `carried`.
    ///
    /// # Errors
    /// `Conflict` where the source carries what no request can, and it is neither given anew nor left out.
    pub fn merge(&self, asked: &Attributes, carried: &Attributes) -> Result<Attributes> {
        let mut all = asked.clone();
        if self.properties {
            let over = |mine: &mut Option<String>, theirs: &Option<String>| {
                if mine.is_none() {
                    mine.clone_from(theirs);
                }
            };
            over(&mut all.content_type, &carried.content_type);
            over(&mut all.content_encoding, &carried.content_encoding);
            over(&mut all.content_language, &carried.content_language);
            over(&mut all.content_disposition, &carried.content_disposition);
            over(&mut all.cache_control, &carried.cache_control);
            all.content_md5 = all.content_md5.or(carried.content_md5);
            let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
            add(&mut all.metadata, self.invalid.settle(&carried.metadata)?, same);
        }
        if self.tags {
            add(&mut all.tags, carried.tags.clone(), |a, b| a == b);
        }
        if self.tier && all.tier.is_none() {
            all.tier = carried.tier.clone().filter(|tier| !is_of_other_kinds(tier));
        }
        check(&all).map_err(|error| {
            Error::new(Kind::Conflict, "cannot keep what the source carries")
                .with_source(error)
                .with_advice("give that property by its own flag, or leave all out with --s2s-preserve-properties=false")
        })?;
        Ok(all)
    }
}

/// Adds the pairs whose names are not there yet.
fn add(to: &mut Vec<(String, String)>, pairs: Vec<(String, String)>, same: impl Fn(&str, &str) -> bool) {
    let asked = to.len();
    for (name, value) in pairs {
        if !to[..asked].iter().any(|(known, _)| same(known, &name)) {
            to.push((name, value));
        }
    }
}

/// Tiers of page blobs (`P10`), and the one that listings tell of premium accounts [I]: no block blob can be given them.
fn is_of_other_kinds(tier: &str) -> bool {
    let size = tier.strip_prefix('P').unwrap_or_default();
    tier.eq_ignore_ascii_case("Premium") || (!size.is_empty() && size.bytes().all(|c| c.is_ascii_digit()))
}

impl InvalidMetadata {
    fn settle(self, pairs: &[(String, String)]) -> Result<Vec<(String, String)>> {
        let mut out = Vec::with_capacity(pairs.len());
        for (name, value) in pairs {
            match (is_metadata_name(name) && is_header_text(value), self) {
                (true, _) => out.push((name.clone(), value.clone())),
                (false, InvalidMetadata::Exclude) => {}
                (false, InvalidMetadata::Fail) => {
                    return Err(Error::new(Kind::Conflict, format!("the source's metadata {name:?} cannot be written"))
                        .with_advice(
                            "--s2s-handle-invalid-metadata ExcludeIfInvalid leaves it out, RenameIfInvalid renames it",
                        ));
                }
                (false, InvalidMetadata::Rename) if is_header_text(value) && is_header_text(name) => {
                    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
                    out.push((format!("rename_{plain}"), value.clone()));
                    out.push((format!("rename_key_{plain}"), name.clone()));
                }
                (false, InvalidMetadata::Rename) => {}
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn carried() -> Attributes {
        Attributes {
            content_type: Some("text/x-a".into()),
            content_encoding: Some("gzip".into()),
            content_language: Some("de".into()),
            content_disposition: Some("inline".into()),
            cache_control: Some("no-cache".into()),
            content_md5: Some([7; 16]),
            metadata: pairs(&[("a", "1"), ("b", "2")]),
            tags: pairs(&[("t", "x")]),
            tier: Some("Cool".into()),
        }
    }

    #[test]
    fn all_is_kept_but_for_what_was_asked_for() {
        let keep = Keep::default();
        assert_eq!(keep.merge(&Attributes::default(), &carried()).unwrap(), carried());
        let asked = Attributes {
            content_type: Some("text/x-b".into()),
            metadata: pairs(&[("A", "9")]),
            tags: pairs(&[("T", "y")]),
            tier: Some("Hot".into()),
            ..Attributes::default()
        };
        let merged = keep.merge(&asked, &carried()).unwrap();
        assert_eq!((merged.content_type.as_deref(), merged.tier.as_deref()), (Some("text/x-b"), Some("Hot")));
        assert_eq!(merged.metadata, pairs(&[("A", "9"), ("b", "2")]), "names of metadata have no case");
        assert_eq!(merged.tags, pairs(&[("T", "y"), ("t", "x")]), "those of tags do");
        assert_eq!(merged.content_encoding.as_deref(), Some("gzip"));
    }

    #[test]
    fn what_is_not_to_be_kept_is_not() {
        let bare = Keep { properties: false, tier: false, tags: false, ..Keep::default() };
        assert_eq!(bare.merge(&Attributes::default(), &carried()).unwrap(), Attributes::default());
        let no_tier = Keep { tier: false, ..Keep::default() };
        assert_eq!(no_tier.merge(&Attributes::default(), &carried()).unwrap().tier, None);
        for (tier, kept) in [("P10", None), ("Premium", None), ("Cold", Some("Cold")), ("P", Some("P")), ("Smart", Some("Smart"))]
        {
            let carried = Attributes { tier: Some(tier.into()), ..Attributes::default() };
            assert_eq!(Keep::default().merge(&Attributes::default(), &carried).unwrap().tier.as_deref(), kept, "{tier}");
        }
    }

    #[test]
    fn invalid_metadata_are_left_out_refused_or_renamed() {
        let carried =
            Attributes { metadata: pairs(&[("ok", "1"), ("123-invalid", "content"), ("u", "ä")]), ..Attributes::default() };
        let with = |invalid| Keep { invalid, ..Keep::default() }.merge(&Attributes::default(), &carried);
        assert_eq!(with(InvalidMetadata::Exclude).unwrap().metadata, pairs(&[("ok", "1")]));
        assert_eq!(with(InvalidMetadata::Fail).unwrap_err().kind(), Kind::Conflict);
        // As AzCopy does it.
        let renamed = pairs(&[("ok", "1"), ("rename_123_invalid", "content"), ("rename_key_123_invalid", "123-invalid")]);
        assert_eq!(with(InvalidMetadata::Rename).unwrap().metadata, renamed);
    }

    #[test]
    fn a_property_no_header_can_have_fails_its_object_alone() {
        let carried = Attributes { content_disposition: Some("filename=\u{e4}".into()), ..Attributes::default() };
        let error = Keep::default().merge(&Attributes::default(), &carried).unwrap_err();
        assert!(error.kind() == Kind::Conflict && !error.ends_job());
        let asked = Attributes { content_disposition: Some("inline".into()), ..Attributes::default() };
        assert!(Keep::default().merge(&asked, &carried).is_ok());
    }
}
