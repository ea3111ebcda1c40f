//! What `list --properties` can show of a blob: AzCopy's names, and those it lacks.

use crate::error::{Error, Kind, Result};
use crate::rest::model::BlobItem;

/// A property by the name it is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) name: &'static str,
    /// Its element in a list ("List Blobs"); that of the version stands outside of the properties.
    element: &'static str,
}

const VERSION: &str = "VersionId";

const ALL: &[Property] = &[
    Property { name: "LastModifiedTime", element: "Last-Modified" },
    Property { name: VERSION, element: VERSION },
    Property { name: "BlobType", element: "BlobType" },
    Property { name: "BlobAccessTier", element: "AccessTier" },
    Property { name: "ContentType", element: "Content-Type" },
    Property { name: "ContentEncoding", element: "Content-Encoding" },
    Property { name: "ContentMD5", element: "Content-MD5" },
    Property { name: "LeaseState", element: "LeaseState" },
    Property { name: "LeaseDuration", element: "LeaseDuration" },
    Property { name: "LeaseStatus", element: "LeaseStatus" },
    Property { name: "ArchiveStatus", element: "ArchiveStatus" },
    Property { name: "AccessTierChangeTime", element: "AccessTierChangeTime" },
    Property { name: "CacheControl", element: "Cache-Control" },
    Property { name: "ContentDisposition", element: "Content-Disposition" },
    Property { name: "ContentLanguage", element: "Content-Language" },
    Property { name: "CreationTime", element: "Creation-Time" },
    Property { name: "DeletedTime", element: "DeletedTime" },
    Property { name: "EncryptionScope", element: "EncryptionScope" },
    Property { name: "ETag", element: "Etag" },
    Property { name: "LegalHold", element: "LegalHold" },
    Property { name: "RehydratePriority", element: "RehydratePriority" },
    Property { name: "RemainingRetentionDays", element: "RemainingRetentionDays" },
    Property { name: "TagCount", element: "TagCount" },
];

impl Property {
    /// Its value; `None` where the service tells none.
    pub(crate) fn of(self, blob: &BlobItem) -> Option<&str> {
        match self.element {
            VERSION => blob.version_id.as_deref(),
            element => blob.properties.get(element),
        }
    }

    /// Whether older versions are to be listed for it, as AzCopy does.
    pub(crate) fn needs_versions(self) -> bool {
        self.element == VERSION
    }
}

/// Those a list names, a `;` between them; `all` for every one but the version, which would list the older ones too.
///
/// # Errors
/// `Usage` for one that is none, naming those there are.
pub(crate) fn properties(text: &str) -> Result<Vec<Property>> {
    let mut asked: Vec<Property> = Vec::new();
    for name in text.split(';').map(str::trim).filter(|name| !name.is_empty()) {
        let known = ALL.iter().find(|property| property.name.eq_ignore_ascii_case(name));
        match known {
            Some(property) if !asked.contains(property) => asked.push(*property),
            Some(_) => {}
            None if name.eq_ignore_ascii_case("all") => asked.extend(ALL.iter().filter(|property| !property.needs_versions())),
            None => {
                let names: Vec<&str> = ALL.iter().map(|property| property.name).collect();
                return Err(Error::new(Kind::Usage, format!("--properties: there is no property {name}"))
                    .with_advice(format!("there are {}, and all", names.join(", "))));
            }
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_asked_for_by_azcopys_names() {
        let names = |text: &str| properties(text).unwrap().iter().map(|property| property.name).collect::<Vec<_>>();
        assert_eq!(
            names("ContentType;lastmodifiedtime; ;VersionId;ContentType"),
            ["ContentType", "LastModifiedTime", "VersionId"]
        );
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("all").len(), ALL.len() - 1);
        let error = properties("ContentType;Colour").unwrap_err();
        assert!(error.to_string().contains("Colour") && error.advice().is_some_and(|text| text.contains("BlobAccessTier")));
    }
}
