//! Results in files.

use std::path::Path;

use sawmill_profile::Error;
use serde::Deserialize;

use crate::report::NamedResult;
use crate::result::consistency;
use crate::result::file::{DriveResult, FORMAT, VERSION};

const ADVICE: &str = "pass a file that sawmill drive --json-file wrote";

impl DriveResult {
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
        let result: Self = serde_json::from_str(text).map_err(none)?;
        consistency::check(&result)
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
    use super::*;

    #[test]
    fn files_that_are_no_results_or_too_new_are_rejected_by_name() {
        for (text, what) in [
            ("[]", "this is not the result of a load test"),
            (r#"{"format":"sawmill-bench","version":1}"#, "this is a file of format \"sawmill-bench\""),
            (r#"{"format":"sawmill-drive","version":99}"#, "it has version 99"),
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
        let result = DriveResult { format: FORMAT.into(), version: VERSION, ..DriveResult::default() };
        let text = serde_json::to_string(&result).unwrap();
        let named = NamedResult::from_json(&text, Path::new("/tmp/before.json")).unwrap();
        assert_eq!((named.name.as_str(), named.result), ("before", result));
    }
}
