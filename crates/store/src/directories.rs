//! Durable directories: an entry made or renamed in one survives a crash of the machine only once the
//! directory itself is on disk.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The directory of a file.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a directory and those above it that are not there, and puts the entry of each on disk.
///
/// # Errors
/// When a directory cannot be made.
pub fn make(directory: &Path) -> io::Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let mut missing: Vec<&Path> = directory.ancestors().take_while(is_missing).collect();
    while let Some(path) = missing.pop() {
        match fs::create_dir(path) {
            // Another run made it in between.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(e) => return Err(e),
            Ok(()) => sync(directory_of(path))?,
        }
    }
    match directory.as_os_str().is_empty() || directory.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// Puts the entries of a directory on disk: the names of the files in it.
///
/// # Errors
/// When the disk fails.
pub fn sync(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|open| open.sync_all()) {
        // File systems that do not know it keep names by themselves.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        // A directory that may be written but not read.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Directories with new names in them that are not on disk yet.
#[derive(Debug, Default)]
pub struct Unsynced(BTreeSet<PathBuf>);

impl Unsynced {
    /// The file at `path` has got its name.
    pub fn named(&mut self, path: &Path) {
        let directory = directory_of(path);
        if !self.0.contains(directory) {
            self.0.insert(directory.to_owned());
        }
    }

    /// Puts all names on disk.
    ///
    /// # Errors
    /// When the disk fails: the error, and the directory. The rest stays to be done.
    pub fn sync(&mut self) -> Result<(), (io::Error, PathBuf)> {
        while let Some(directory) = self.0.first() {
            sync(directory).map_err(|e| (e, directory.clone()))?;
            self.0.pop_first();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_down_to_the_last_and_a_file_in_the_way_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        make(&dir.path().join("a/b/c")).unwrap();
        make(&dir.path().join("a/b/c")).unwrap();
        assert!(dir.path().join("a/b/c").is_dir());
        fs::write(dir.path().join("file"), b"").unwrap();
        assert!(make(&dir.path().join("file")).is_err());
        assert!(make(&dir.path().join("file/below")).is_err());
    }

    #[test]
    fn a_directory_is_synced_once_for_all_names_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut unsynced = Unsynced::default();
        unsynced.named(&dir.path().join("a"));
        unsynced.named(&dir.path().join("b"));
        assert_eq!(unsynced.0.len(), 1);
        unsynced.sync().unwrap();
        assert!(unsynced.0.is_empty());
        unsynced.named(&dir.path().join("gone/a"));
        assert!(unsynced.sync().unwrap_err().1.ends_with("gone") && unsynced.0.len() == 1);
    }
}
