//! Stored access policies of a container. Sources: "Set Container ACL", "Get Container ACL", Azure Storage REST reference.

use super::xml::{BOM, DECLARATION, Node, XmlError, push_element, push_optional};

/// One stored access policy; what it does not set, the token sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedIdentifier {
    /// Id, as a SAS names it in `si`.
    pub id: String,
    /// Start, as written.
    pub start: Option<String>,
    /// Expiry, as written.
    pub expiry: Option<String>,
    /// Permission letters.
    pub permission: Option<String>,
}

/// All policies of a container, at most five.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedIdentifiers(pub Vec<SignedIdentifier>);

impl SignedIdentifiers {
    /// Reads the document.
    ///
    /// # Errors
    /// Where it is not one, or a policy has no id.
    pub fn parse(document: &[u8]) -> Result<SignedIdentifiers, XmlError> {
        let root = Node::parse(document, "SignedIdentifiers")?;
        let policy = |node: &Node<'_>| {
            let id = node.filled("Id").ok_or_else(|| XmlError::Unexpected("a policy has no Id".to_owned()))?;
            let part = |name: &str| node.child("AccessPolicy").and_then(|p| p.filled(name));
            Ok(SignedIdentifier { id, start: part("Start"), expiry: part("Expiry"), permission: part("Permission") })
        };
        root.children.iter().filter(|c| c.name == "SignedIdentifier").map(policy).collect::<Result<_, _>>().map(SignedIdentifiers)
    }

    /// The body of a request.
    pub fn to_request_xml(&self) -> String {
        if self.0.is_empty() {
            return format!("{DECLARATION}<SignedIdentifiers />");
        }
        let mut out = format!("{DECLARATION}<SignedIdentifiers>");
        for policy in &self.0 {
            out.push_str("<SignedIdentifier>");
            push_element(&mut out, "Id", &policy.id);
            let parts = [("Start", &policy.start), ("Expiry", &policy.expiry), ("Permission", &policy.permission)];
            // A policy without fields has no AccessPolicy element at all.
            if parts.iter().any(|(_, value)| value.is_some()) {
                out.push_str("<AccessPolicy>");
                for (name, value) in parts {
                    push_optional(&mut out, name, value.as_deref());
                }
                out.push_str("</AccessPolicy>");
            }
            out.push_str("</SignedIdentifier>");
        }
        out.push_str("</SignedIdentifiers>");
        out
    }

    /// The answer as the service writes it, byte order mark first.
    pub fn to_xml(&self) -> String {
        format!("{BOM}{}", self.to_request_xml())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_go_both_ways() {
        let policies = SignedIdentifiers(vec![
            SignedIdentifier {
                id: "read".into(),
                expiry: Some("2030-01-01T00:00:00.0000000Z".into()),
                permission: Some("r".into()),
                ..SignedIdentifier::default()
            },
            SignedIdentifier { id: "bare".into(), ..SignedIdentifier::default() },
        ]);
        let xml = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>read</Id><AccessPolicy><Expiry>2030-01-01T00:00:00.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>bare</Id></SignedIdentifier></SignedIdentifiers>";
        assert_eq!(policies.to_request_xml(), xml);
        assert_eq!(SignedIdentifiers::parse(policies.to_xml().as_bytes()).unwrap(), policies);
        let none = SignedIdentifiers::default().to_xml();
        assert!(none.ends_with("<SignedIdentifiers />"));
        assert!(SignedIdentifiers::parse(none.as_bytes()).unwrap().0.is_empty());
        assert!(SignedIdentifiers::parse(b"<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>").is_err());
    }
}
