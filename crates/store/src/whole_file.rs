//! A file that is whole or not there at all. Devices, pipes and terminals are written to directly.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid, fchown};

use crate::directories::{directory_of, sync};
use crate::location::Location;
use crate::partial::{name_of_partial, partial_name};
use crate::path_name::path_name;
use crate::shared_places;
use crate::streams::{is_stream, unless_stopped};

/// How many links may lead from one to the next, as on Linux.
const MAX_LINKS: usize = 40;

/// A file that takes its name only when every byte is on disk. Until then it has a unique name, in all
/// processes, with `.partial` at its end. Dropping it earlier removes it.
///
/// An existing file of that name decides: a regular file is replaced; a link leads to the file to replace; a
/// device, a pipe or a terminal gets the bytes at once. The new file keeps the permissions of the one that it replaces.
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
    /// Its name, at the end of all links.
    path: PathBuf,
    /// The name until it is whole; `None` afterwards, and for a stream.
    partial: Option<PathBuf>,
    /// The file whose place it takes, and whose owner and permissions it gets.
    replaced: Option<fs::Metadata>,
    /// Whether it may take the place of another file.
    replaces: bool,
    /// Whether it is a device, a pipe or a terminal.
    is_stream: bool,
}

/// The path at the end of all links, whether there is a file or not.
///
/// # Errors
/// It is a URL; the links lead to one another, or cannot be read.
pub fn followed(path: &Path) -> io::Result<PathBuf> {
    if Location::new(path).ok().as_ref() != Some(&Location::Path(path.to_owned())) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a path, found a URL"));
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if !path.symlink_metadata().is_ok_and(|there| there.is_symlink()) {
            return Ok(path);
        }
        let target = fs::read_link(&path)?;
        path = directory_of(&path).join(target);
    }
    Err(io::Error::other("too many links lead from one to the next"))
}

impl WholeFile {
    /// Begins the file at `path`.
    ///
    /// # Errors
    /// When it cannot be made, or a directory has its name.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::begin(path, false)
    }

    /// Begins the file at `path`, which its owner alone may read, because there are rows in it.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_private(path: &Path) -> io::Result<Self> {
        Self::begin(path, true)
    }

    /// Writes all bytes of a file.
    ///
    /// # Errors
    /// When it cannot be written; the earlier file is then still there.
    pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        Self::remove_abandoned(path)?;
        Self::create(path)?.take_all(bytes)
    }

    /// Writes all bytes of a file that its owner alone may read.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
        Self::remove_abandoned(path)?;
        Self::create_private(path)?.take_all(bytes)
    }

    fn take_all(mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)?;
        self.finish()
    }

    fn begin(path: &Path, is_private: bool) -> io::Result<Self> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if is_stream(path) {
            let pipe = path.to_owned();
            let file = Some(unless_stopped(move || OpenOptions::new().write(true).open(pipe))?);
            let path = path.to_owned();
            return Ok(Self { file, path, partial: None, replaced: None, replaces: true, is_stream: true });
        }
        let path = &followed(path)?;
        let replaced = path.metadata().ok().filter(|_| !is_private);
        let usual = if is_private { 0o600 } else { 0o666 };
        let mode = replaced.as_ref().map_or(usual, |there| there.mode() & 0o777 | 0o600);
        loop {
            let partial = partial_name(path);
            let file = OpenOptions::new().mode(mode).write(true).create_new(true).open(&partial)?;
            // Without locks nothing is lost, because no file counts as abandoned.
            let _ = file.lock();
            // Another process may have taken it for abandoned between the two calls.
            if partial.exists() {
                let (path, partial) = (path.to_owned(), Some(partial));
                let file = Some(file);
                return Ok(WholeFile { file, path, partial, replaced, replaces: true, is_stream: false });
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
        if is_stream(path) {
            return Ok(());
        }
        let path = &followed(path)?;
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
            let opened = shared_places::open(&entry.path(), OpenOptions::new().write(true));
            let Ok(file) = opened else { continue };
            if file.try_lock().is_ok() {
                match fs::remove_file(entry.path()) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The name it will have, at the end of all links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a device, a pipe or a terminal, which gets the bytes at once.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Closes the file until the next write: there are more files under way than may be open.
    pub fn park(&mut self) {
        // A reader of a pipe would take that for its end.
        if !self.is_stream {
            self.file = None;
        }
    }

    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let path = self.partial.as_deref().unwrap_or(&self.path);
            self.file = Some(shared_places::open(path, OpenOptions::new().append(true))?);
        }
        // Opened just now, where it was not.
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Puts the file on disk and gives it its name, which is on disk when its directory is.
    ///
    /// # Errors
    /// When the disk fails, or the file cannot be renamed; when another file has its name and may not be replaced.
    pub fn give_name(mut self) -> io::Result<Identity> {
        let (is_stream, replaced) = (self.is_stream, self.replaced.take());
        let file = self.open()?;
        if let Some(there) = replaced {
            // Some file systems keep no modes. Only the superuser can give files away.
            let _ = file.set_permissions(Permissions::from_mode(there.mode() & 0o777));
            let owners = (Uid::from_raw(there.uid()), Gid::from_raw(there.gid()));
            let _ = fchown(&*file, None, Some(owners.1)).and_then(|()| fchown(&*file, Some(owners.0), None));
        }
        if !is_stream {
            file.sync_all()?;
        }
        let identity = Identity::new(&file.metadata()?);
        match &self.partial {
            Some(partial) if self.replaces => fs::rename(partial, &self.path)?,
            Some(partial) => rename_new(partial, &self.path)?,
            None => {}
        }
        self.partial = None;
        Ok(identity)
    }

    /// Puts the file and its name on disk, unless a file has the name. Returns whether it got it. If several
    /// files compete for a name, one gets it.
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
    /// The disk fails. The file then lacks its name, or may lose it in a crash.
    pub fn finish(self) -> io::Result<()> {
        let directory = directory_of(&self.path).to_owned();
        let is_stream = self.is_stream;
        self.give_name()?;
        if is_stream { Ok(()) } else { sync(&directory) }
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
            // If an error led here, it is the one to report.
            let _ = fs::remove_file(partial);
        }
    }
}

/// Identifies a file among others of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    file: (u64, u64),
    bytes: u64,
}

impl Identity {
    /// The identity of the file with this metadata.
    pub fn new(metadata: &fs::Metadata) -> Self {
        Identity { file: (metadata.dev(), metadata.ino()), bytes: metadata.len() }
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
    fn through_a_link_the_file_is_replaced_and_the_link_stays() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("below")).unwrap();
        fs::write(at("below/old"), "old").unwrap();
        symlink("below/old", at("link")).unwrap();
        symlink(at("link"), at("second")).unwrap();
        symlink("below/new", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (link, file) in [("second", "below/old"), ("dangling", "below/new")] {
            WholeFile::write(&at(link), b"whole").unwrap();
            assert_eq!(fs::read(at(file)).unwrap(), b"whole");
            assert!(at(link).symlink_metadata().unwrap().is_symlink());
        }
        assert!(WholeFile::create(&at("loop")).is_err());
        assert_eq!(fs::read_dir(at("below")).unwrap().count(), 2);
    }

    #[test]
    fn a_url_is_no_path() {
        for url in ["s3://b/x", "s3:/b/x", "s3:x", "gs:x", "file:///dev/null"] {
            let error = WholeFile::write(Path::new(url), b"x").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{url}");
            assert!(!Path::new(url).exists());
        }
    }

    #[test]
    fn a_pipe_gets_the_bytes_and_stays_a_pipe() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::os::unix::fs::FileTypeExt;
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        let mut file = WholeFile::create(&pipe).unwrap().new_only();
        file.write_all(b"all ").unwrap();
        file.park();
        file.write_all(b"of it").unwrap();
        file.finish().unwrap();
        assert_eq!(reader.join().unwrap(), b"all of it");
        assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_another_user_has_put_beside_a_file_is_neither_followed_nor_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let (pipe, link) = (partial_name(&path), partial_name(&path));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink("/", &link).unwrap();
        WholeFile::write(&path, b"whole").unwrap();
        assert!(pipe.exists() && link.exists());
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn a_private_file_is_for_its_owner_alone_and_stays_so_when_it_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        WholeFile::create_private(&path).unwrap().finish().unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        for mode in [0o640, 0o400] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let mut again = WholeFile::create(&path).unwrap();
            again.park();
            again.write_all(b"rows").unwrap();
            again.finish().unwrap();
            assert_eq!(path.metadata().unwrap().mode() & 0o777, mode);
        }
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
