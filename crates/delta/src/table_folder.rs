//! The folder of a table: lists and reads its log, and writes each file of it once.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sawmill_profile::{Error, Kind, Result};
use sawmill_store::{Location, WholeFile, directories, open_regular, open_regular_input};

/// The folder of a table. Names are relative to it, with slashes.
pub trait TableFolder: Sync {
    /// Returns the names of the files directly in a folder, without the folder, and their lengths; none if it does not
    /// exist.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn names(&self, below: &str) -> Result<Vec<(String, u64)>>;

    /// Reads a file of at most so many bytes; `None` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or is longer.
    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>>;

    /// Reads a file that may be outside of the folder; `None` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or is neither on this machine nor in the table's store.
    fn read_at(&self, place: &Location) -> Result<Option<Vec<u8>>>;

    /// Writes a file that appears whole, and only if its name is free. Returns whether it was written.
    ///
    /// # Errors
    /// The file cannot be written.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool>;

    /// Returns where a file of the table is; the folder itself for an empty name.
    ///
    /// # Errors
    /// The name is not valid.
    fn location(&self, name: &str) -> Result<Location>;
}

/// A table in a directory.
#[derive(Clone, Debug)]
pub struct LocalTable(PathBuf);

impl LocalTable {
    /// Returns the table in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }
}

impl TableFolder for LocalTable {
    fn names(&self, below: &str) -> Result<Vec<(String, u64)>> {
        let directory = self.0.join(below);
        let failed = |error: io::Error| failed("reading the directory", &directory, &error);
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let names = entries.map(|entry| {
            let entry = entry?;
            let bytes = fs::metadata(entry.path()).map_or(0, |there| there.len());
            Ok((entry.file_name().to_string_lossy().into_owned(), bytes))
        });
        names.collect::<io::Result<_>>().map_err(failed)
    }

    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        held(&self.0.join(name), most, open_regular)
    }

    fn read_at(&self, place: &Location) -> Result<Option<Vec<u8>>> {
        let Location::Path(path) = place else { return Err(elsewhere(place)) };
        held(path, u64::MAX, open_regular_input)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let path = self.0.join(name);
        created(&path, bytes).map_err(|error| failed("writing", &path, &error))
    }

    fn location(&self, name: &str) -> Result<Location> {
        Ok(Location::Path(if name.is_empty() { self.0.clone() } else { self.0.join(name) }))
    }
}

/// Reads a file of at most so many bytes.
fn held(path: &Path, most: u64, open: fn(&Path) -> io::Result<fs::File>) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes));
    let longer = || io::Error::other(format!("it has more than {most} bytes"));
    match read.and_then(|_| if bytes.len() as u64 > most { Err(longer()) } else { Ok(()) }) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("reading", path, &error)),
    }
}

fn elsewhere(place: &Location) -> Error {
    Error::new(Kind::Failed, "the file is in another store than the table").at(place.to_string())
}

/// Writes a file that appears whole, and only if its name is free.
fn created(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let directory = path.parent().unwrap_or(Path::new(""));
    directories::make(directory)?;
    // A link or a pipe has the name, too.
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    WholeFile::remove_abandoned(path)?;
    let mut file = WholeFile::create(path)?;
    file.write_all(bytes)?;
    file.finish_if_new()
}

fn failed(doing: &str, path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "check the permissions",
        io::ErrorKind::StorageFull => "free some space, then run the command again",
        _ => "",
    };
    Error::new(Kind::Failed, format!("{doing} failed: {error}")).at(path.display().to_string()).advise(advice)
}

/// A table in a store.
#[cfg(feature = "objects")]
#[derive(Debug)]
pub struct StoreTable(pub sawmill_store::ObjectFolder);

#[cfg(feature = "objects")]
impl TableFolder for StoreTable {
    fn names(&self, below: &str) -> Result<Vec<(String, u64)>> {
        let (entries, _) = self.0.list(below)?;
        let folder = format!("{below}/");
        let name = |name: String| name.strip_prefix(&folder).map(str::to_owned).unwrap_or(name);
        Ok(entries.into_iter().map(|entry| (name(entry.name), entry.bytes)).collect())
    }

    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.0.read_at_most(name, most)?)
    }

    fn read_at(&self, place: &Location) -> Result<Option<Vec<u8>>> {
        match place {
            Location::Object(url) if url.is_below(&self.0.url("").sibling("")) => {
                Ok(self.0.read_key(url.key())?)
            }
            _ => Err(elsewhere(place)),
        }
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        match self.0.create_small(name, bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == sawmill_store::Kind::Exists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn location(&self, name: &str) -> Result<Location> {
        Ok(Location::Object(self.0.url(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_that_create_a_file_at_once_one_does_and_the_file_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        let texts: Vec<String> = (0..8).map(|of| format!("{of}").repeat(100_000)).collect();
        let won: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = texts
                .iter()
                .map(|text| scope.spawn(|| table.create("_delta_log/x.json", text.as_bytes()).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let winner = won.iter().position(|won| *won).unwrap();
        assert_eq!(table.read("_delta_log/x.json", 100_000).unwrap().unwrap(), texts[winner].as_bytes());
        assert_eq!(table.names("_delta_log").unwrap(), [("x.json".to_owned(), 100_000)]);
        assert!(table.read("_delta_log/x.json", 99_999).unwrap_err().to_string().contains("more than 99999"));
        std::os::unix::fs::symlink("/dev/zero", directory.path().join("endless")).unwrap();
        assert!(table.read("endless", 1).unwrap_err().to_string().contains("regular file"));
    }
}
