//! Which files a path or a pattern names.

use std::path::{Path, PathBuf};

use datafusion::error::Result;
use sawmill_store::found_files::{Found, is_pattern, matching, parquet_files};

use crate::error::refused;

/// A pattern with the current directory in front, so that it names the same files in other processes.
pub(crate) fn absolute(pattern: &str) -> Result<String> {
    if pattern.contains("://") {
        let advice = "mount the bucket, or download the files";
        return Err(refused("only files of this machine and of shared folders can be read", pattern, advice));
    }
    let path = std::path::absolute(pattern);
    let path = path.ok().and_then(|path| path.into_os_string().into_string().ok());
    path.ok_or_else(|| refused("the path cannot be used", pattern, "give a path of Unicode text"))
}

/// The Parquet files that an absolute path or pattern names, in the order of their names: the file itself, those
/// below a directory, or the matches of the pattern. Names that begin with `_` or `.` are skipped.
///
/// # Errors
/// There are none, or a directory cannot be read.
pub(crate) fn named(pattern: &str) -> Result<Vec<String>> {
    let path = Path::new(pattern);
    let mut found = Found::default();
    if is_pattern(path) && path.symlink_metadata().is_err() {
        let matches = matching(path).map_err(|error| unreadable(path, &error))?;
        for path in matches {
            match path.is_dir() {
                true => below(&path, &mut found)?,
                false => found.files.push(path),
            }
        }
        found.files.sort();
        found.files.dedup();
    } else if path.is_dir() {
        below(path, &mut found)?;
    } else {
        found.files.push(path.to_owned());
    }
    if found.files.is_empty() {
        let advice = "check the path; names that begin with _ or . are skipped";
        return Err(refused("there are no Parquet files", pattern, advice));
    }
    found.files.into_iter().map(text).collect()
}

fn below(directory: &Path, found: &mut Found) -> Result<()> {
    let walked = parquet_files(directory, |_| false, found);
    walked.map_err(|(directory, error)| unreadable(&directory, &error))
}

fn unreadable(directory: &Path, error: &std::io::Error) -> datafusion::error::DataFusionError {
    let place = directory.display().to_string();
    refused(format!("reading the directory failed: {error}"), &place, "check its permissions")
}

fn text(path: PathBuf) -> Result<String> {
    let text = path.into_os_string().into_string();
    text.map_err(|path| refused("the name of a file is not Unicode", &path.to_string_lossy(), "rename it"))
}
