//! Where an index is built: files without names, which vanish with the process, however that ends.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use sawmill_profile::{Error, Kind, Result};
use sawmill_store::directories;

/// Where an index is built, and the memory for it.
#[derive(Clone, Debug)]
pub struct IndexPlace {
    /// The directory that has the room for the index.
    pub directory: PathBuf,
    /// The memory for entries and copies while the index is built, over all threads.
    pub memory: u64,
}

impl IndexPlace {
    /// The memory by default: 64 MiB.
    pub const MEMORY: u64 = 64 << 20;

    /// Makes a file of the index. It has rows in it, and no name by which another user could read it.
    pub(super) fn create(&self) -> Result<File> {
        let create = || {
            // The output may be in there, too, so its entry is on disk.
            directories::make(&self.directory)?;
            tempfile::tempfile_in(&self.directory)
        };
        create().map_err(|error| self.failed(&error))
    }

    /// The error for a file of the index that cannot be written or read.
    pub(super) fn failed(&self, error: &io::Error) -> Error {
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                "free some space, or name a directory on another disk with --index-dir; the index takes 48 bytes a row \
                 while it is built, of text 12 more and the bytes of the rows"
            }
            _ => "name another directory with --index-dir",
        };
        Error::new(Kind::Output, format!("the index cannot be written or read: {error}"))
            .at(self.directory.display().to_string())
            .advise(advice)
    }
}
