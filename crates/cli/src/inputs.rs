//! The Parquet files that a user means by the paths of a command line.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::globs;

/// The files that `paths` name: files as they are, directories searched for `.parquet` files and
/// patterns for what matches them, in the order of their names.
pub(crate) fn parquet_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        // A file may have the name of a pattern.
        if globs::is_pattern(path) && path.symlink_metadata().is_err() {
            let failed = |error: std::io::Error| {
                let place = path.display().to_string();
                Error::failure(format!("reading a directory failed: {error}"), place, "check its permissions")
            };
            let found = globs::matching(path).map_err(failed)?;
            if found.is_empty() {
                let advice = "check the pattern";
                return Err(Error::failure("no files match", path.display().to_string(), advice));
            }
            // Of a directory among them its files, if it has any, once.
            let mut here = Vec::new();
            for path in found {
                match path.is_dir() {
                    true => search(&path, &mut here)?,
                    false => here.push(path),
                }
            }
            here.sort();
            here.dedup();
            files.append(&mut here);
        } else if path.is_dir() {
            let before = files.len();
            search(path, &mut files)?;
            if files.len() == before {
                let advice = "name the files themselves if they end otherwise";
                return Err(Error::failure("no .parquet files", path.display().to_string(), advice));
            }
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn search(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |error: std::io::Error| {
        let place = directory.display().to_string();
        Error::failure(format!("reading the directory failed: {error}"), place, "check its permissions")
    };
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        entries.push((entry.path(), entry.file_type().map_err(failed)?));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, kind) in entries {
        if kind.is_dir() {
            search(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "parquet") {
            files.push(path);
        }
    }
    Ok(())
}
