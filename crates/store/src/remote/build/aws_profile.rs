//! Profiles of the AWS command line tools: keys, region and endpoint from `~/.aws/credentials` and
//! `~/.aws/config`.

use std::path::PathBuf;

use crate::error::{Error, Kind};
use crate::streams::read_text;

/// The keys of a profile, under the names that the client knows.
const KEYS: [&str; 5] =
    ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url"];
/// Ways to get credentials that only the tools themselves know.
const ELSEWHERE: [&str; 4] = ["sso_session", "sso_start_url", "credential_process", "role_arn"];

/// The settings of the profile that `AWS_PROFILE` names, or of the profile `default` if there is one.
///
/// # Errors
///
/// The named profile does not exist, or has no keys.
pub(super) fn settings() -> Result<Vec<(&'static str, String)>, Error> {
    let named = std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    let name = named.as_deref().unwrap_or("default");
    let text = |variable, file| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        let usual = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".aws").join(file));
        named.or_else(usual).and_then(|path| read_text(&path).ok()).unwrap_or_default()
    };
    let (credentials, config) =
        (text("AWS_SHARED_CREDENTIALS_FILE", "credentials"), text("AWS_CONFIG_FILE", "config"));
    let found = of_files(name, &credentials, &config);
    let asked = named.is_some();
    let wrong =
        |what: String, advice: &str| Err(Error::new(Kind::Usage, what).at("AWS_PROFILE").advise(advice));
    match found {
        None if asked => {
            wrong(format!("there is no profile {name:?}"), "check ~/.aws/credentials and ~/.aws/config")
        }
        Some(Found { elsewhere: Some(way), .. }) if asked => wrong(
            format!("the profile {name:?} gets its credentials by {way}, which only the AWS tools can do"),
            "put them into the environment: eval \"$(aws configure export-credentials --format env)\"",
        ),
        found => Ok(found.map(|found| found.settings).unwrap_or_default()),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    settings: Vec<(&'static str, String)>,
    /// The setting for credentials from elsewhere, if the profile contains none.
    elsewhere: Option<&'static str>,
}

fn of_files(name: &str, credentials: &str, config: &str) -> Option<Found> {
    let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
    let sections = [section(credentials, name), section(config, &in_config)];
    if sections.iter().all(Option::is_none) {
        return None;
    }
    let lines: Vec<(&str, &str)> = sections.into_iter().flatten().flatten().collect();
    // The file of credentials comes first and wins.
    let value =
        |key: &str| lines.iter().find(|(found, _)| *found == key).map(|(_, value)| (*value).to_owned());
    let settings: Vec<_> = KEYS.iter().filter_map(|key| Some((*key, value(key)?))).collect();
    let has_keys = settings.iter().any(|(key, _)| *key == "aws_secret_access_key");
    let elsewhere = ELSEWHERE.into_iter().find(|way| !has_keys && value(way).is_some());
    Some(Found { settings, elsewhere })
}

/// The keys and values below `[name]`.
fn section<'t>(text: &'t str, name: &str) -> Option<Vec<(&'t str, &'t str)>> {
    let mut found: Option<Vec<_>> = None;
    let mut inside = false;
    for line in text.lines() {
        let written = line.trim();
        if let Some(header) = written.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            inside = header.split_whitespace().eq(name.split_whitespace());
            if inside {
                found.get_or_insert_default();
            }
        } else if let Some((key, value)) = written.split_once('=')
            && inside
            && !line.starts_with([' ', '\t', '#', ';'])
        {
            // Indented lines belong to a nested setting.
            found.get_or_insert_default().push((key.trim(), value.trim()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\
[default]
aws_access_key_id = AKIA1
aws_secret_access_key=s1

# another
[work]
aws_access_key_id=AKIA2
aws_secret_access_key=s2
aws_session_token=t2
";
    const CONFIG: &str = "\
[default]
region=eu-central-1
[profile work]
region = us-west-2
s3 =
  max_concurrent_requests = 20
endpoint_url = http://127.0.0.1:9000
[profile single sign-on]
sso_session = me
";

    #[test]
    fn a_profile_has_what_both_files_say() {
        let work = of_files("work", CREDENTIALS, CONFIG).unwrap();
        let expected = ["AKIA2", "s2", "t2", "us-west-2", "http://127.0.0.1:9000"];
        assert_eq!(work.settings.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(of_files("default", CREDENTIALS, CONFIG).unwrap().settings.len(), 3);
        assert_eq!(of_files("none", CREDENTIALS, CONFIG), None);
        assert_eq!(of_files("single sign-on", "", CONFIG).unwrap().elsewhere, Some("sso_session"));
    }
}
