//! The directory for the demo's files: the user's, or a temporary one.
//!
//! A temporary directory has a lock file that its process keeps locked. A killed process cannot remove its
//! directory, but it loses its lock, so that the next demo removes the directory.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use sawmill_store::shared_places;
use tempfile::TempDir;

use crate::error::{Error, Result};

const PREFIX: &str = "sawmill-demo-";
const LOCK: &str = ".lock";

/// Where the files are.
pub(crate) enum Directory {
    Kept(PathBuf),
    Temporary { directory: TempDir, _lock: File },
}

impl Directory {
    /// The user's directory, or a new temporary one.
    pub(crate) fn new(keep: Option<&Path>) -> Result<Self> {
        if let Some(directory) = keep {
            return Ok(Directory::Kept(directory.to_owned()));
        }
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let make = || {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
            // Locked before it has its name: another process takes a lock file that it can lock for abandoned.
            let lock = tempfile::NamedTempFile::new_in(directory.path())?;
            lock.as_file().lock()?;
            let lock = lock.persist(directory.path().join(LOCK)).map_err(|error| error.error)?;
            Ok(Directory::Temporary { directory, _lock: lock })
        };
        make().map_err(|error: std::io::Error| {
            let place = parent.display().to_string();
            Error::failure(format!("creating a directory failed: {error}"), place, "set TMPDIR or give --out")
        })
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Directory::Kept(path) => path,
            Directory::Temporary { directory, .. } => directory.path(),
        }
    }

    /// Removes a temporary directory; an error if that fails.
    pub(crate) fn close(self) -> Result<()> {
        let Directory::Temporary { directory, .. } = self else { return Ok(()) };
        let place = directory.path().display().to_string();
        directory
            .close()
            .map_err(|e| Error::failure(format!("removing failed: {e}"), place, "remove it by hand"))
    }
}

/// Removes the directories of killed demos, except those it may not remove, such as another account's.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if !shared_places::is_own_folder(&entry.path()).unwrap_or(false) {
            continue;
        }
        let lock = shared_places::open(&entry.path().join(LOCK), OpenOptions::new().read(true));
        let Ok(lock) = lock else { continue };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_demos_are_removed_and_those_in_use_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let directory = parent.path().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("data"), "x").unwrap();
            directory
        };
        let (killed, used, young, other) =
            (make("sawmill-demo-1"), make("sawmill-demo-2"), make("sawmill-demo-3"), make("other"));
        fs::write(killed.join(LOCK), "").unwrap();
        let lock = File::create(used.join(LOCK)).unwrap();
        lock.lock().unwrap();
        remove_abandoned(parent.path());
        assert!(!killed.exists());
        assert!(used.exists() && young.exists() && other.exists());
    }
}
