//! Delta tables on the command line: `delta:FOLDER` or `delta:FOLDER@VERSION` names the files that a version lists.

#[cfg_attr(not(feature = "full"), path = "../../demo_build/delta_table.rs")]
pub(crate) mod table;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
pub(crate) use table::{DeltaTable, open};

/// A table, and one of its versions if the user names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedTable {
    pub root: PathBuf,
    pub version: Option<u64>,
}

/// Reads `delta:FOLDER` and `delta:FOLDER@VERSION`; `None` for other names, and for an existing file of that name.
pub(crate) fn named(path: &Path) -> Option<NamedTable> {
    let text = path.to_str()?.strip_prefix("delta:").filter(|_| path.symlink_metadata().is_err())?;
    let whole = || NamedTable { root: PathBuf::from(text), version: None };
    let Some((root, version)) = text.rsplit_once('@') else { return Some(whole()) };
    let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    match version.parse() {
        // A directory may be called so.
        Ok(version) if is_version && !Path::new(text).is_dir() => {
            Some(NamedTable { root: PathBuf::from(root), version: Some(version) })
        }
        _ => Some(whole()),
    }
}

/// The only input, if it is a Delta table.
///
/// # Errors
///
/// A table together with other inputs.
pub(crate) fn only(paths: &[PathBuf]) -> Result<Option<NamedTable>> {
    let Some((path, table)) = paths.iter().find_map(|path| Some((path, named(path)?))) else {
        return Ok(None);
    };
    match paths {
        [_] => Ok(Some(table)),
        _ => Err(Error::usage(
            "a Delta table together with other inputs",
            path.display().to_string(),
            "give one table at a time",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(String, Option<u64>)> {
        named(Path::new(text)).map(|table| (table.root.display().to_string(), table.version))
    }

    #[test]
    fn a_version_follows_the_folder() {
        assert_eq!(parsed("delta:/tmp/t"), Some(("/tmp/t".to_owned(), None)));
        assert_eq!(parsed("delta:s3://bucket/t@12"), Some(("s3://bucket/t".to_owned(), Some(12))));
        let account = "abfss://c@account.dfs.core.windows.net/t";
        assert_eq!(parsed(&format!("delta:{account}")), Some((account.to_owned(), None)));
        assert_eq!(parsed(&format!("delta:{account}@0")), Some((account.to_owned(), Some(0))));
        assert_eq!(parsed("delta:t@now"), Some(("t@now".to_owned(), None)));
        assert_eq!(parsed("t@1"), None);
        let directory = tempfile::tempdir().unwrap();
        let odd = directory.path().join("t@5");
        std::fs::create_dir(&odd).unwrap();
        let odd = odd.display().to_string();
        assert_eq!(parsed(&format!("delta:{odd}")), Some((odd, None)));
    }
}
