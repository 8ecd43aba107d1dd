//! The directory of an index: made, locked, found again after a killed run, and removed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use sawmill_profile::{Error, Kind, Result};
use sawmill_store::{directories, shared_places};

/// Where an index is built, and the memory for it.
#[derive(Clone, Debug)]
pub struct IndexPlace {
    /// The directory in which the index makes its directory.
    pub directory: PathBuf,
    /// The memory for entries and copies while the index is built, over all threads.
    pub memory: u64,
}

impl IndexPlace {
    /// The memory by default: 64 MiB.
    pub const MEMORY: u64 = 64 << 20;
}

/// The directory of one index. It is removed when it is dropped; a killed process leaves it to the next run
/// of the same command.
pub(super) struct Workspace {
    path: PathBuf,
    /// Locked as long as the process works here.
    lock: Option<File>,
}

const LOCK: &str = "lock";

impl Workspace {
    /// Opens the directory for an index that `identity` names. If another process works there, it is another
    /// directory. Removes what killed runs of the same `command` have left of files that have changed since.
    pub(super) fn open(place: &IndexPlace, command: &str, identity: &str) -> Result<Self> {
        let [command, hash] = [command, identity].map(|text| xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
        let of_command = format!(".sawmill-index-{command:016x}");
        let own = format!("{of_command}{hash:016x}");
        // The output may be in there, too, so its entry is on disk.
        directories::make(&place.directory).map_err(|error| failed(&place.directory, &error))?;
        remove_abandoned(&place.directory, &of_command, &own);
        for attempt in 0..100 {
            let name = match attempt {
                0 => own.clone(),
                more => format!("{own}.{more}"),
            };
            let path = place.directory.join(name);
            if let Some(lock) = locked(&path).map_err(|error| failed(&path, &error))? {
                return Ok(Self { path, lock: Some(lock) });
            }
        }
        Err(Error::new(Kind::Busy, "a hundred other runs of this command are under way")
            .at(place.directory.display().to_string())
            .advise("wait for them, or name another --index-dir"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a file that its owner alone may read, because there are rows in it.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        shared_places::open(&self.file(name), OpenOptions::new().write(true).create(true).truncate(true))
    }

    /// Removes all files but the lock.
    pub(super) fn clear(&self) -> Result<()> {
        let cleared = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.file_name() != LOCK {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        cleared().map_err(|error| failed(&self.path, &error))
    }

    /// The error for a file of the index that cannot be written or read.
    pub(super) fn failed(&self, error: &io::Error) -> Error {
        failed(&self.path, error)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.lock = None;
        // If an error led here, it is the one to report.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the directories of a command that no process works in, other than those named `own`. What cannot be
/// removed stays.
fn remove_abandoned(directory: &Path, of_command: &str, own: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(of_command) || name.starts_with(own) {
            continue;
        }
        if !shared_places::is_own_folder(&entry.path()).unwrap_or(false) {
            continue;
        }
        let lock = shared_places::open(&entry.path().join(LOCK), OpenOptions::new().write(true));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Makes the directory and locks it; `None` if another process has, or if it is not this user's: another one
/// could change its content.
fn locked(path: &Path) -> io::Result<Option<File>> {
    shared_places::make_folder(path)?;
    match shared_places::is_own_folder(path) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        // The process that worked here has removed the directory in between.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut how = OpenOptions::new();
    let lock = match shared_places::open(&path.join(LOCK), how.write(true).create(true).truncate(false)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    match lock.try_lock() {
        // As before: the lock is on a file that no longer has a name.
        Ok(()) => Ok(path.join(LOCK).exists().then_some(lock)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        // Without locks, runs neither notice nor await each other.
        Err(fs::TryLockError::Error(_)) => Ok(Some(lock)),
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some space, or name a directory on another disk with --index-dir; the index takes 48 bytes a row \
             while it is built, of text 12 more and the bytes of the rows"
        }
        _ => "name another directory with --index-dir",
    };
    Error::new(Kind::Output, format!("the index cannot be written or read: {error}"))
        .at(path.display().to_string())
        .advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_have_two_directories_and_remove_them() {
        let directory = tempfile::tempdir().unwrap();
        let place = IndexPlace { directory: directory.path().join("a/b"), memory: 1 };
        let one = Workspace::open(&place, "sort", "x").unwrap();
        let two = Workspace::open(&place, "sort", "x").unwrap();
        assert_ne!(one.path(), two.path());
        fs::write(one.file("index"), b"x").unwrap();
        one.clear().unwrap();
        assert!(!one.file("index").exists());
        let path = one.path().to_owned();
        drop((one, two));
        assert!(!path.exists());
        assert_eq!(fs::read_dir(&place.directory).unwrap().count(), 0);
    }

    #[test]
    #[cfg(unix)]
    fn a_directory_that_another_user_may_have_prepared_is_not_used() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let place = IndexPlace { directory: directory.path().to_owned(), memory: 1 };
        let usual = Workspace::open(&place, "sort", "x").unwrap().path().to_owned();
        let victim = directory.path().join("victim");
        for prepare in [
            // A folder that others may write to, with links to a victim's file under the names that are used.
            (&|| {
                fs::create_dir(&usual).unwrap();
                fs::set_permissions(&usual, PermissionsExt::from_mode(0o777)).unwrap();
                for name in [LOCK, "entries"] {
                    symlink(&victim, usual.join(name)).unwrap();
                }
            }) as &dyn Fn(),
            // A link to a folder of the victim's own.
            &|| {
                fs::create_dir(directory.path().join("own")).unwrap();
                symlink(directory.path().join("own"), &usual).unwrap();
            },
        ] {
            fs::write(&victim, "precious").unwrap();
            prepare();
            let workspace = Workspace::open(&place, "sort", "x").unwrap();
            assert_ne!(workspace.path(), usual);
            let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
            workspace.create("entries").unwrap();
            assert_eq!((mode(workspace.path()), mode(&workspace.file("entries"))), (0o700, 0o600));
            drop(workspace);
            // The next run of the command does not clear up in there either.
            drop(Workspace::open(&place, "sort", "y").unwrap());
            assert!(fs::read(&victim).unwrap() == b"precious" && usual.symlink_metadata().is_ok());
            fs::remove_dir_all(&usual).unwrap();
        }
        assert_eq!(fs::read_dir(directory.path().join("own")).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let place = IndexPlace { directory: directory.path().to_owned(), memory: 1 };
        let killed = Workspace::open(&place, "sort", "x").unwrap();
        fs::write(killed.file("index"), b"entries").unwrap();
        let path = killed.path().to_owned();
        // As the kernel does when a process ends.
        killed.lock.as_ref().unwrap().unlock().unwrap();
        std::mem::forget(killed);
        let next = Workspace::open(&place, "sort", "x").unwrap();
        assert_eq!(next.path(), path);
        assert_eq!(fs::read(next.file("index")).unwrap(), b"entries");
        // After files have changed it is useless; indexes of other commands stay.
        next.lock.as_ref().unwrap().unlock().unwrap();
        std::mem::forget(next);
        drop(Workspace::open(&place, "sort otherwise", "y").unwrap());
        assert!(path.exists());
        drop(Workspace::open(&place, "sort", "y").unwrap());
        assert!(!path.exists());
    }
}
