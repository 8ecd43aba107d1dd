//! Options of stores, `KEY=VALUE`. Their values may be secrets and are never shown.

use std::fmt;
use std::str::FromStr;

use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;

use crate::error::{Error, Kind};

/// Parts of the names of options whose values are secrets.
const SECRET: [&str; 6] = ["secret", "token", "account_key", "access_key", "sas_key", "service_account_key"];
/// Options that look like secrets and are not: identifiers, and names of files.
const PUBLIC: [&str; 4] = ["access_key_id", "token_file", "token_service_url", "use_azure_cli"];

/// Our own option: whether bytes are compared with the checksums that the store states.
const CHECKSUMS: &str = "checksums";

/// Options of stores that hold for all stores of a command.
#[derive(Clone, Default)]
pub struct StoreOptions(Vec<(String, String)>);

impl StoreOptions {
    /// Reads `KEY=VALUE` texts. The value `env:NAME` means the value of an environment variable.
    ///
    /// # Errors
    ///
    /// An option that no store has; a secret in the text itself, where other users of the machine see it.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, Error> {
        let mut options = Vec::with_capacity(texts.len());
        for text in texts {
            let (key, value) =
                text.as_ref().split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                    Error::new(Kind::Usage, "expected KEY=VALUE")
                        .at("--store")
                        .advise("for example region=eu-central-1")
                })?;
            let key = key.to_ascii_lowercase();
            let (key, value) = match value.strip_prefix("env:") {
                Some(variable) => (key, variable_value(variable)?),
                None if is_secret(&key) => return Err(shown_secret(&key)),
                None => (key, value.to_owned()),
            };
            options.push(known(&key, value)?);
        }
        Ok(Self(options))
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether the bytes of objects are compared with the checksums that their store states.
    pub(super) fn checks(&self) -> bool {
        self.pairs().all(|pair| pair != (CHECKSUMS, "no"))
    }

    pub(super) fn has(&self, keys: &[&str]) -> bool {
        self.0.iter().any(|(key, _)| keys.contains(&key.strip_prefix("aws_").unwrap_or(key)))
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

fn variable_value(variable: &str) -> Result<String, Error> {
    std::env::var(variable).map_err(|_| {
        Error::new(Kind::Usage, format!("the environment variable {variable} is not set"))
            .at("--store")
            .advise("set it, or write the value itself if it is not a secret")
    })
}

fn is_secret(key: &str) -> bool {
    SECRET.iter().any(|part| key.contains(part)) && !PUBLIC.iter().any(|public| key.ends_with(public))
}

fn shown_secret(key: &str) -> Error {
    Error::new(Kind::Usage, "a secret on a command line is visible to all users of this machine")
        .at(format!("--store {key}=..."))
        .advise(format!("put it into an environment variable: --store {key}=env:NAME"))
}

/// The option under the name that the stores know it by.
fn known(key: &str, value: String) -> Result<(String, String), Error> {
    let (key, value) = match key {
        "anonymous" => ("skip_signature", value),
        "requester_pays" => ("request_payer", value),
        "path_style" => match value.as_str() {
            "true" | "yes" | "1" => ("virtual_hosted_style_request", "false".to_owned()),
            _ => ("virtual_hosted_style_request", "true".to_owned()),
        },
        key => (key, value),
    };
    if key == CHECKSUMS && !matches!(value.as_str(), "yes" | "no") {
        return Err(Error::new(Kind::Usage, "expected yes or no").at(format!("--store {key}={value}")));
    }
    let is_known = key == CHECKSUMS
        || AmazonS3ConfigKey::from_str(key).is_ok()
        || GoogleConfigKey::from_str(key).is_ok()
        || AzureConfigKey::from_str(key).is_ok();
    match is_known {
        true => Ok((key.to_owned(), value)),
        false => Err(Error::new(Kind::Usage, "no store has this option")
            .at(format!("--store {key}=..."))
            .advise("often used ones are endpoint, region, path_style, anonymous, requester_pays and account_name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_option_and_a_secret_in_plain_sight_are_refused_without_their_values() {
        for refused in [
            "regoin=SECRET",
            "secret_access_key=SECRET",
            "AWS_SESSION_TOKEN=SECRET",
            "account_key=SECRET",
            "=SECRET",
        ] {
            let error = StoreOptions::parse(&[refused]).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
        }
        assert!(StoreOptions::parse(&["secret_access_key=env:NO_SUCH_VARIABLE"]).is_err());
    }

    #[test]
    fn options_are_shown_without_values() {
        let given =
            ["region=eu-central-1", "access_key_id=AKIA", "path_style=true", "anonymous=true", "timeout=5s"];
        let options = StoreOptions::parse(&given).unwrap();
        assert!(!format!("{options:?}").contains("AKIA"));
        assert!(options.has(&["skip_signature"]) && !options.has(&["token"]));
        assert!(options.pairs().any(|pair| pair == ("virtual_hosted_style_request", "false")));
    }
}
