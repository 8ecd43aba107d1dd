//! Protects the files that a dataset was inferred from: generated files never replace them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Refuses to replace or remove the file at `path` if it is one of `sources`, even through a symbolic link or
/// another hard link.
///
/// # Errors
/// It is one of them.
pub fn protect_sources(sources: &[PathBuf], path: &Path) -> Result<()> {
    match sources.iter().find(|source| same_file(source, path)) {
        Some(source) => Err(would_replace(source, path)),
        None => Ok(()),
    }
}

pub(crate) fn would_replace(source: &Path, path: &Path) -> Error {
    Error::spec(
        format!("the dataset is read from {}, which would be replaced", source.display()),
        path.display().to_string(),
        "write somewhere else",
    )
}

fn same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|there| (there.dev(), there.ino())).ok();
    identity(a).is_some_and(|a| identity(b) == Some(a))
}
