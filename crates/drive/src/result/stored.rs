//! Results in files.

use std::path::Path;

use sawmill_profile::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::plan::reader::MAX_OPERATIONS;
use crate::report::NamedResult;
use crate::result::consistency;
use crate::result::file::{DriveResult, FORMAT, VERSION};

const ADVICE: &str = "pass a file that sawmill drive --json-file wrote";

impl DriveResult {
    /// What makes the next result describe the server; empty if this one does.
    pub fn advice(&self) -> String {
        crate::run::verdict::advice(self)
    }

    /// Parses JSON text; `place` names it in errors.
    ///
    /// # Errors
    /// The text is not JSON, not the result of a load test, of a newer version, or its figures
    /// contradict each other.
    pub fn from_json(text: &str, place: &str) -> Result<Self, Error> {
        /// The fields that all versions have.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u64,
            #[serde(default)]
            operations: Vec<IgnoredAny>,
        }
        let none = |error: serde_json::Error| {
            Error::failed(format!("this is not the result of a load test: {error}"), place, ADVICE)
        };
        let head: Head = serde_json::from_str(text).map_err(none)?;
        if head.format != FORMAT {
            let what = format!("this is a file of format {:?}, not {FORMAT:?}", head.format);
            return Err(Error::failed(what, place, ADVICE));
        }
        if head.version == 0 || head.version > VERSION {
            let what = format!("it has version {} of the format", head.version);
            let advice = format!("read it with a newer sawmill; this one reads versions 1 to {VERSION}");
            return Err(Error::failed(what, place, advice));
        }
        if head.operations.len() > MAX_OPERATIONS {
            let what = format!("it has {} operations, more than {MAX_OPERATIONS}", head.operations.len());
            return Err(Error::failed(what, place, ADVICE));
        }
        let mut result: Self = serde_json::from_str(text).map_err(none)?;
        consistency::check(&result)
            .and_then(|()| consistency::judge(&mut result))
            .map_err(|what| Error::failed(format!("the result contradicts itself: {what}"), place, ADVICE))?;
        Ok(result)
    }

    /// Whether a text claims to be the result of a load test. It may still be damaged.
    pub fn is_in(text: &str) -> bool {
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }
        serde_json::from_str::<Head>(text).is_ok_and(|head| head.format == FORMAT)
    }
}

impl NamedResult {
    /// Parses the text of a file, and names the result after the file.
    ///
    /// # Errors
    /// See [`DriveResult::from_json`].
    pub fn from_json(text: &str, path: &Path) -> Result<Self, Error> {
        let result = DriveResult::from_json(text, &path.display().to_string())?;
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, result })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::result::file::{FindMax, LimitResult, OperationResult, RunDescription, Trial};
    use crate::result::proof::Proof;
    use crate::result::second::{ChaosEvent, OperationSecond, Second, ServerSample};

    #[test]
    fn files_that_are_no_results_or_too_new_are_rejected_by_name() {
        for (text, what) in [
            ("[]", "this is not the result of a load test"),
            (r#"{"format":"sawmill-bench","version":1}"#, "this is a file of format \"sawmill-bench\""),
            (r#"{"format":"sawmill-drive","version":99}"#, "it has version 99"),
            (
                format!(r#"{{"format":"sawmill-drive","version":1,"operations":[{}0]}}"#, "0,".repeat(300))
                    .as_str(),
                "it has 301",
            ),
            (r#"{"format":"sawmill-drive","version":1}"#, "this is not the result of a load test"),
        ] {
            let error = DriveResult::from_json(text, "a.json").unwrap_err();
            assert!(error.what().starts_with(what), "{error}");
            assert_eq!(error.place(), "a.json");
        }
        assert!(DriveResult::is_in(r#"{"format":"sawmill-drive","version":99}"#));
        assert!(!DriveResult::is_in(r#"{"format":"sawmill-bench"}"#) && !DriveResult::is_in("x"));
    }

    #[test]
    fn a_result_comes_back_from_its_json_with_the_name_of_its_file() {
        let result = DriveResult {
            format: FORMAT.into(),
            version: VERSION,
            invalid_because: vec!["no operation was counted".into()],
            run: RunDescription { duration: 1.0, ..RunDescription::default() },
            seconds: vec![Second { at: 1.0, length: 1.0, ..Second::default() }],
            ..DriveResult::default()
        };
        let text = serde_json::to_string(&result).unwrap();
        let named = NamedResult::from_json(&text, Path::new("/tmp/before.json")).unwrap();
        assert_eq!((named.name.as_str(), named.result), ("before", result));
    }

    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.keys().cloned());
                fields.values().for_each(|value| keys(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_written_field_is_documented() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench-results.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        let result = DriveResult {
            operations: vec![OperationResult::default()],
            seconds: vec![Second { server: Some(ServerSample::default()), ..Second::default() }],
            chaos: vec![ChaosEvent::default()],
            limits: vec![LimitResult::default()],
            proof: vec![Proof { check: true, ..Proof::default() }],
            find_max: Some(FindMax { trials: vec![Trial::default()], ..FindMax::default() }),
            ..DriveResult::default()
        };
        let mut found = BTreeSet::new();
        keys(&serde_json::to_value(result).unwrap(), &mut found);
        keys(&serde_json::to_value(OperationSecond::default()).unwrap(), &mut found);
        let undocumented: Vec<&String> =
            found.iter().filter(|key| !docs.contains(&format!("`{key}`"))).collect();
        assert!(undocumented.is_empty(), "{undocumented:?}");
    }
}
