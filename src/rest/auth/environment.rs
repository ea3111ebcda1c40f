//! What the environment says: the names that Azure's own command line reads, and those other tools have taken to.

use super::Inputs;
use crate::secret::Secret;

impl Inputs {
    /// Reads variables through `var`; empty ones count as unset.
    pub fn from_env(var: &dyn Fn(&str) -> Option<String>) -> Inputs {
        let first = |names: &[&str]| names.iter().find_map(|name| var(name).filter(|value| !value.trim().is_empty()));
        let secret = |names: &[&str]| first(names).map(Secret::new);
        Inputs {
            account: first(&["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"]),
            key: secret(&["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"]),
            connection_string: secret(&["AZURE_STORAGE_CONNECTION_STRING"]),
            sas_token: secret(&["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_name_that_is_set_wins_and_empty_is_unset() {
        let inputs = Inputs::from_env(&|name| match name {
            "AZURE_STORAGE_ACCOUNT" => Some(" ".into()),
            "AZURE_STORAGE_ACCOUNT_NAME" => Some("acct".into()),
            "AZURE_STORAGE_KEY" => Some("first".into()),
            "AZURE_STORAGE_ACCESS_KEY" => Some("second".into()),
            _ => None,
        });
        assert_eq!(inputs.account.as_deref(), Some("acct"));
        assert_eq!(inputs.key.unwrap().expose(), "first");
        assert!(inputs.connection_string.is_none() && inputs.sas_token.is_none());
    }
}
