//! Writes files completely or not at all.

use std::path::Path;

use sawmill_store::WholeFile;

use crate::error::{Error, Result};

/// Writes a file so that a reader sees either all of it or the previous contents, also after a crash of the
/// machine. A device or a pipe gets the bytes; if the path is a link, its target is replaced.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    WholeFile::write(path, bytes).map_err(|error| {
        let advice = "check that its folder exists, is writable and is not full";
        Error::failed(format!("the file cannot be written: {error}"), path.display().to_string(), advice)
    })
}
