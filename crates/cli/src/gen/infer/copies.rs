//! Copies of objects whose formats are read from start to end, more than once: text and Arrow IPC.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use sawmill_profile::Pool;
use sawmill_store::ObjectUrl;
use tempfile::TempDir;

use crate::arguments::stores::Objects;
use crate::error::{Error, Result};
use crate::interrupt;

/// How many objects are copied at the same time.
const OBJECTS: usize = 8;

/// Copies objects to a temporary directory, each below a folder with its number and the folders of its name.
/// Returns the copies in the order of the objects.
///
/// # Errors
///
/// An object cannot be read, its name cannot be a file's name, or the disk is full.
pub(crate) fn make(urls: &[ObjectUrl], objects: &Objects) -> Result<(Vec<PathBuf>, TempDir)> {
    let failed = |error: &io::Error, place: String| {
        let what = format!("storing a copy of the object failed: {error}");
        Error::failure(what, place, "free some space, or set TMPDIR")
    };
    let directory = TempDir::with_prefix("sawmill-")
        .map_err(|error| failed(&error, std::env::temp_dir().display().to_string()))?;
    let copy = |(at, url): (usize, &ObjectUrl)| -> Result<PathBuf> {
        interrupt::check()?;
        let mut path = directory.path().join(format!("{at:06}"));
        path.extend(url.key().split('/').filter(|part| !matches!(*part, "" | "." | "..")));
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&path));
        let mut file = made.map_err(|error| failed(&error, url.to_string()))?;
        objects.stores()?.copy(url, &mut file)?;
        file.flush().map_err(|error| failed(&error, url.to_string()))?;
        Ok(path)
    };
    let pool = Pool::new("copier", OBJECTS.min(urls.len()), None);
    Ok((pool.map(urls.iter().enumerate(), copy)?, directory))
}
