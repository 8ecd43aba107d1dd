//! Finds the files and objects that a path, a URL or a pattern names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use datafusion::error::{DataFusionError, Result};
use sawmill_store::found_files::{
    Found, FoundKeys, is_parquet, is_pattern, literal_folder, matching, parquet_files,
};
use sawmill_store::{Location, ObjectUrl};

use crate::error::{external, refused};
use crate::objects;

/// A pattern with the current directory in front, so that it names the same files in other processes. URLs of stores
/// stay as they are.
pub(crate) fn absolute(pattern: &str) -> Result<String> {
    if pattern.is_empty() {
        return Err(refused("the path is empty", "''", "name a file, a folder or a pattern"));
    }
    let path = match Location::new(Path::new(pattern)).map_err(external)? {
        Location::Object(url) if url.query().is_some() => {
            let advice = "a signature in it would be in the plan: name objects of a store";
            return Err(refused("a URL with a query cannot be used", &url.to_string(), advice));
        }
        Location::Object(url) => return Ok(url.to_string()),
        Location::Path(path) => std::path::absolute(path),
    };
    let path = path.ok().and_then(|path| path.into_os_string().into_string().ok());
    path.ok_or_else(|| refused("the path cannot be used", pattern, "give a path of Unicode text"))
}

/// The Parquet files that an absolute path, a URL or a pattern names, in the order of their names: the file itself,
/// those below a folder, or the matches of the pattern. Names that begin with `_` or `.` are skipped.
///
/// # Errors
/// No files match, or a directory or a store cannot be read.
pub(crate) fn named(pattern: &str) -> Result<Vec<String>> {
    match objects::url_of(pattern)? {
        Some(url) => Ok(objects_named(&url)?.into_iter().map(|(url, _)| url.to_string()).collect()),
        None => files_named(Path::new(pattern)),
    }
}

/// The error for a pattern without files.
pub(crate) fn none(pattern: &str) -> DataFusionError {
    let advice = "check the path; names that begin with _ or . are skipped";
    DataFusionError::Plan(format!("no Parquet file matches {pattern} - {advice}"))
}

/// The objects that a URL or a pattern names, with their sizes as far as they were listed.
///
/// # Errors
/// No objects match, or the store cannot be read.
pub(crate) fn objects_named(url: &ObjectUrl) -> Result<Vec<(ObjectUrl, Option<u64>)>> {
    let key = url.key();
    let is_pattern = is_pattern(Path::new(key));
    if url.scheme().is_web() || (!is_pattern && is_parquet(key)) {
        return Ok(vec![(url.clone(), None)]);
    }
    let prefix = if is_pattern { literal_folder(key) } else { key };
    let (stores, folder) = (objects::stores()?, url.sibling(prefix));
    let listed = stores.list(&folder).map_err(external)?;
    let keys = listed.iter().map(|object| object.url().key());
    let found = match is_pattern {
        true => FoundKeys::matching(key, keys),
        false => FoundKeys::below(key, keys),
    };
    if found.files.is_empty() {
        return Err(none(&url.to_string()));
    }
    stores.refuse_unfinished(&folder, &listed, &found.files).map_err(external)?;
    let sizes: HashMap<&str, u64> = listed.iter().map(|object| (object.url().key(), object.size())).collect();
    Ok(found.files.into_iter().map(|key| (url.sibling(key), sizes.get(key).copied())).collect())
}

fn files_named(path: &Path) -> Result<Vec<String>> {
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
        return Err(none(&path.display().to_string()));
    }
    found.files.into_iter().map(text).collect()
}

fn below(directory: &Path, found: &mut Found) -> Result<()> {
    let walked = parquet_files(directory, |_| false, found);
    walked.map_err(|(directory, error)| unreadable(&directory, &error))
}

fn unreadable(directory: &Path, error: &std::io::Error) -> DataFusionError {
    let place = directory.display().to_string();
    refused(format!("reading the directory failed: {error}"), &place, "check its permissions")
}

fn text(path: PathBuf) -> Result<String> {
    let text = path.into_os_string().into_string();
    text.map_err(|path| refused("the name of a file is not Unicode", &path.to_string_lossy(), "rename it"))
}
