//! A file that is whole or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

use crate::directories::{directory_of, sync};
use crate::partial::{name_of_partial, partial_name};
use crate::path_name::path_name;

/// A file that takes its name only when every byte is on disk. Until then it has a name that no other
/// process and no other file has, with `.partial` at its end. It is removed when it is dropped before.
///
/// ```
/// use std::io::Write;
/// use sawmill_store::WholeFile;
/// # let directory = tempfile::tempdir()?;
/// let path = directory.path().join("a.txt");
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"all of it")?;
/// assert!(!path.exists());
/// file.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    /// `None` while it is parked.
    file: Option<File>,
    path: PathBuf,
    /// The name until it is whole; `None` afterwards.
    partial: Option<PathBuf>,
    /// Whether it may take the place of another file.
    replaces: bool,
}

impl WholeFile {
    /// Begins the file at `path`.
    ///
    /// # Errors
    /// When it cannot be made, or a directory has its name.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        loop {
            let partial = partial_name(path);
            let file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
            // Without locks nothing is lost: then nothing is taken for abandoned either.
            let _ = file.lock();
            // Another process may have taken it for abandoned between the two calls.
            if partial.exists() {
                let (path, partial) = (path.to_owned(), Some(partial));
                return Ok(WholeFile { file: Some(file), path, partial, replaces: true });
            }
        }
    }

    /// Makes a file that has its name when this one is finished an error, rather than to replace it.
    pub fn new_only(mut self) -> Self {
        self.replaces = false;
        self
    }

    /// Removes what killed processes left of the file at `path`: its partial files that no process has
    /// locked.
    ///
    /// # Errors
    /// When the directory cannot be read, or a file cannot be removed.
    pub fn remove_abandoned(path: &Path) -> io::Result<()> {
        let name = path_name(path.file_name().unwrap_or_default().as_ref());
        let entries = match fs::read_dir(directory_of(path)) {
            // A directory may be written to that cannot be read.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if name_of_partial(&path_name(entry.file_name().as_ref())) != Some(&name) {
                continue;
            }
            let Ok(file) = OpenOptions::new().write(true).open(entry.path()) else { continue };
            if file.try_lock().is_ok() {
                match fs::remove_file(entry.path()) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The name it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the file until the next write: there are more files under way than may be open.
    pub fn park(&mut self) {
        self.file = None;
    }

    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let path = self.partial.as_deref().unwrap_or(&self.path);
            self.file = Some(OpenOptions::new().append(true).open(path)?);
        }
        // Opened just now, where it was not.
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Puts the file on disk and gives it its name, which is on disk when its directory is.
    ///
    /// # Errors
    /// When the disk fails, or the file cannot be renamed; when another file has its name and may not be replaced.
    pub fn give_name(mut self) -> io::Result<Identity> {
        let file = self.open()?;
        file.sync_all()?;
        let identity = Identity::of(&file.metadata()?);
        match &self.partial {
            Some(partial) if self.replaces => fs::rename(partial, &self.path)?,
            Some(partial) => rename_new(partial, &self.path)?,
            None => {}
        }
        self.partial = None;
        Ok(identity)
    }

    /// Puts the file and its name on disk, unless a file has the name. Returns whether it got it. Of several
    /// files that are given a name at the same time, one gets it.
    ///
    /// # Errors
    /// When the disk fails, or its file system has no links.
    pub fn finish_if_new(mut self) -> io::Result<bool> {
        self.open()?.sync_all()?;
        let named = match self.partial.as_deref().map(|partial| fs::hard_link(partial, &self.path)) {
            Some(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => false,
            linked => linked.transpose()?.is_some(),
        };
        let directory = directory_of(&self.path).to_owned();
        // Removes the other name.
        drop(self);
        sync(&directory)?;
        Ok(named)
    }

    /// Puts the file and its name on disk.
    ///
    /// # Errors
    /// When the disk fails; then it does not have its name, or has it perhaps not after a crash.
    pub fn finish(self) -> io::Result<()> {
        let directory = directory_of(&self.path).to_owned();
        self.give_name()?;
        sync(&directory)
    }
}

/// Renames a file, unless another one has the name.
fn rename_new(partial: &Path, path: &Path) -> io::Result<()> {
    let taken = || {
        io::Error::new(io::ErrorKind::AlreadyExists, "another program has written the file in the meantime")
    };
    match fs::hard_link(partial, path) {
        Ok(()) => fs::remove_file(partial),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken()),
        // Its file system may have no links. Another program may then come between these two calls.
        Err(_) if path.symlink_metadata().is_ok() => Err(taken()),
        Err(_) => fs::rename(partial, path),
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open()?.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.open()?.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // The error that brought us here is the one to report.
            let _ = fs::remove_file(partial);
        }
    }
}

/// What tells a file from another one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    file: (u64, u64),
    bytes: u64,
}

impl Identity {
    /// The identity of the file with this metadata.
    pub fn of(metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let file = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let file = (0, 0);
        Identity { file, bytes: metadata.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_under_the_same_name_do_not_meet_before_they_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut first = WholeFile::create(&path).unwrap();
        let mut second = WholeFile::create(&path).unwrap();
        first.write_all(b"first").unwrap();
        second.write_all(b"the second").unwrap();
        second.park();
        first.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        second.write_all(b" one").unwrap();
        second.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"the second one");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_never_replaces_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let write = |text: &[u8]| {
            let mut file = WholeFile::create(&path).unwrap();
            file.write_all(text).unwrap();
            file.finish_if_new().unwrap()
        };
        assert!(write(b"first"));
        assert!(!write(b"second"));
        let mut third = WholeFile::create(&path).unwrap().new_only();
        third.write_all(b"third").unwrap();
        assert!(third.finish().unwrap_err().to_string().contains("in the meantime"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_process_left_is_abandoned_and_what_is_being_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut alive = WholeFile::create(&path).unwrap();
        let dead = partial_name(&path);
        fs::write(&dead, b"half").unwrap();
        WholeFile::remove_abandoned(&path).unwrap();
        assert!(!dead.exists());
        alive.write_all(b"whole").unwrap();
        alive.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }
}
