//! Where the files of a dataset go: a directory of this machine, or a folder of an object store.
//!
//! ```text
//! write ─▶ Folder ─┬─ LocalFolder: partial file ─ fsync ─ rename
//!                  └─ StoreFolder (feature `objects`): upload in parts ─ completed
//! ```
//!
//! Decisions about earlier files, manifests and parts are the same for both.

pub(crate) mod local;
#[cfg(feature = "objects")]
pub(crate) mod store;

use std::fmt;
use std::path::PathBuf;

use sawmill_store::{Identity, Location};

use crate::error::Result;
use crate::output::checksum::Checksum;
use crate::output::sink::Sink;
use crate::output::source_file::would_replace;

/// A folder that files are written to, completely or not at all. Names of files are relative to it, with
/// slashes.
///
/// Several runs at once: a directory is locked. A store has no locks; there, [`replace`](Self::replace) fails
/// if another run has replaced the file, and the manifest of a run names it.
pub trait Folder: fmt::Debug + Send + Sync {
    /// The place of a file as errors and results name it; of the folder itself for an empty name.
    fn place(&self, name: &str) -> PathBuf;

    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// It cannot be created.
    fn prepare(&self) -> Result<()>;

    /// The names of the files directly in a folder below this one, or in this one for an empty name; none if
    /// it does not exist.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn files(&self, below: &str) -> Result<Vec<String>>;

    /// The names of the folders directly in this one.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn folders(&self) -> Result<Vec<String>>;

    /// Whether the file exists.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn exists(&self, name: &str) -> Result<bool>;

    /// Reads a small file; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Writes a small file, completely or not at all, in place of the one that was read or written before.
    ///
    /// # Errors
    /// It cannot be written.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be created.
    fn create(&self, name: &str) -> Result<Sink>;

    /// Removes a file, if it exists, and its folder below this one, if it was the last.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, name: &str) -> Result<()>;

    /// Removes unfinished files of killed runs in a folder below this one, if `is_ours` accepts their names.
    ///
    /// # Errors
    /// The folder cannot be read, or a file cannot be removed.
    fn remove_leftovers(&self, below: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<()>;

    /// Makes sure that the names in a folder below this one, or in this one for an empty name, survive a crash of
    /// the machine; removed ones do not come back.
    ///
    /// # Errors
    /// The disk fails.
    fn sync(&self, _below: &str) -> Result<()> {
        Ok(())
    }

    /// Refuses to replace or remove a file that is one of `sources`, which the dataset was inferred from.
    ///
    /// # Errors
    /// It is one of them.
    fn protect(&self, sources: &[PathBuf], name: &str) -> Result<()> {
        let place = self.place(name);
        let is_place = |source: &&PathBuf| match (Location::new(source), Location::new(&place)) {
            (Ok(Location::Object(source)), Ok(Location::Object(place))) => source.is_same(&place),
            _ => **source == place,
        };
        sources.iter().find(is_place).map_or(Ok(()), |source| Err(would_replace(source, &place)))
    }

    /// Whether the file exists with these bytes.
    ///
    /// # Errors
    /// It cannot be read, or `check` fails.
    fn holds(&self, file: &FileBytes<'_>, check: &dyn Fn() -> Result<()>) -> Result<bool>;

    /// The first of the files, which this run has written, that was replaced or removed since.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn replaced(&self, made: &[MadeFile]) -> Result<Option<PathBuf>>;

    /// Whether the folder has no locks, so that only its manifest tells other runs of this one.
    fn lacks_locks(&self) -> bool {
        false
    }
}

/// A file, described by its bytes.
#[derive(Clone, Copy, Debug)]
pub struct FileBytes<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size.
    pub bytes: u64,
    /// The checksum of its bytes.
    pub sum: Checksum,
    /// The store's tag of this version.
    pub tag: Option<&'a str>,
}

/// A file that this run has written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MadeFile {
    /// Its name in the folder.
    pub name: String,
    /// Its place.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The checksum of its bytes; `None` for devices.
    pub sum: Option<Checksum>,
    /// Tells a local file from another one of the same name; `None` for streams and uploads.
    pub identity: Option<Identity>,
    /// The store's tag of this version.
    pub tag: Option<String>,
}
