//! Ensures that only one run at a time writes the files of a dataset into a directory.
//!
//! A run locks a file next to its files: `_sawmill.NAME.lock`, or `_sawmill.NAME.part-K-of-N.lock` for a
//! part. Different parts of the same division share no files and can run at the same time; other runs exclude
//! each other. It is a lock of the operating system (`flock(2)`, which also works on NFS under Linux), so it
//! ends with its process. The lock file is removed with the lock. The lock file of a killed process is not
//! locked and does no harm.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::layout::rows::Part;
use crate::output::dataset_files::entries;
use crate::output::process::this_process;
use sawmill_store::{directories::directory_of, shared_places};

/// The prefix of lock files and manifests.
pub(crate) const PREFIX: &str = "_sawmill.";

/// The lock of a run on its files. Dropping it releases the lock.
#[derive(Debug)]
pub struct OutputLock {
    /// `None` if the file system does not support locks.
    held: Option<(File, PathBuf)>,
}

/// What to do if another run holds the lock.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Whether to wait until the other run ends.
    pub waits: bool,
    /// Receives a line that names the run to wait for.
    pub notice: &'a dyn Fn(&str),
    /// Cancels the waiting when it becomes true.
    pub cancel: &'a AtomicBool,
}

/// The files that a lock protects.
#[derive(Clone, Copy)]
struct LockedFiles<'a> {
    directory: &'a Path,
    name: &'a str,
    part: Part,
}

enum Opened {
    Locked(File),
    Busy,
    /// The file system does not support locks.
    NoLocks,
    /// The lock file was replaced or removed in the meantime.
    Gone,
}

impl OutputLock {
    /// Locks a part of the files of the dataset `name` in `directory`, which must exist.
    ///
    /// # Errors
    /// Another run holds the lock and `patience` does not wait or was cancelled, or the lock file cannot be
    /// created.
    pub fn of_directory(directory: &Path, name: &str, part: Part, patience: &Patience<'_>) -> Result<Self> {
        LockedFiles { directory, name, part }.lock(directory, patience)
    }

    /// Locks the single file at `path`, whose directory must exist.
    ///
    /// # Errors
    /// As [`of_directory`](Self::of_directory).
    pub fn of_file(path: &Path, patience: &Patience<'_>) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let directory = directory_of(path);
        LockedFiles { directory, name: &name, part: Part::WHOLE }.lock(path, patience)
    }
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        if let Some((file, path)) = self.held.take() {
            // Removed while still locked: a run that has opened it in between sees that its name is gone.
            if is_named(&file, &path) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

impl LockedFiles<'_> {
    /// Errors and notices name `output`.
    fn lock(&self, output: &Path, patience: &Patience<'_>) -> Result<OutputLock> {
        let mut reported = false;
        loop {
            let busy = match self.try_lock()? {
                Ok(lock) => return Ok(lock),
                Err(busy) => busy,
            };
            if !patience.waits {
                return Err(Error::busy(&format!("{} is writing here", holder(&busy)), output));
            }
            if !reported {
                (patience.notice)(&waiting(output, &holder(&busy)));
                reported = true;
            }
            // Waiting processes do not all retry at the same time.
            std::thread::sleep(Duration::from_millis(50 + u64::from(std::process::id() % 41)));
            if patience.cancel.load(Relaxed) {
                return Err(Error::cancelled());
            }
        }
    }

    /// The lock, or the path of the lock file that another run has locked.
    fn try_lock(&self) -> Result<Result<OutputLock, PathBuf>, Error> {
        let name = format!("{PREFIX}{}{}.lock", self.name, part_infix(self.part));
        let path = self.directory.join(name);
        let (mut file, path) = loop {
            match open(&path, true)? {
                Opened::Locked(file) => break (file, path),
                Opened::Busy => return Ok(Err(path)),
                Opened::NoLocks => {
                    let _ = fs::remove_file(&path);
                    return Ok(Ok(OutputLock { held: None }));
                }
                Opened::Gone => {}
            }
        };
        // Only information for people, so errors do not matter.
        let _ = file.set_len(0).and_then(|()| file.write_all(this_process().as_bytes()));
        let lock = OutputLock { held: Some((file, path)) };
        // Take the own lock first, then check the others: of two runs, at least one sees the other.
        for other in self.others()? {
            match open(&other, false)? {
                Opened::Busy => return Ok(Err(other)),
                // It belonged to a killed process.
                Opened::Locked(file) => drop(OutputLock { held: Some((file, other)) }),
                Opened::Gone | Opened::NoLocks => {}
            }
        }
        Ok(Ok(lock))
    }

    /// The lock files of runs that would write the same files.
    fn others(&self) -> Result<Vec<PathBuf>> {
        // For a single file, the directory may be writable but not readable.
        let mut others = entries(self.directory, std::io::ErrorKind::PermissionDenied)?;
        others.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            part_in_name(&name, self.name, "lock").is_some_and(|part| part.parts() != self.part.parts())
        });
        others.sort_unstable();
        Ok(others)
    }
}

/// The line for a run that waits for another one.
pub(crate) fn waiting(place: &Path, other: &str) -> String {
    format!("{}: {other} is writing here, waiting for it to end", place.display())
}

/// Opens the lock file at `path` and tries to lock it.
fn open(path: &Path, create: bool) -> Result<Opened> {
    // NFS requires a writable file for an exclusive lock.
    let mut how = OpenOptions::new();
    let file = match shared_places::open(path, how.read(true).write(true).create(create).truncate(false)) {
        Ok(file) => file,
        Err(e) if !create && e.kind() == std::io::ErrorKind::NotFound => return Ok(Opened::Gone),
        Err(e) => return Err(Error::io(&e, "creating", path, None)),
    };
    match file.try_lock() {
        Ok(()) if is_named(&file, path) => Ok(Opened::Locked(file)),
        Ok(()) => Ok(Opened::Gone),
        Err(TryLockError::WouldBlock) => Ok(Opened::Busy),
        Err(TryLockError::Error(_)) => Ok(Opened::NoLocks),
    }
}

/// Whether the file at `path` is still this file.
fn is_named(file: &File, path: &Path) -> bool {
    let identity = |there: fs::Metadata| (there.dev(), there.ino());
    file.metadata().map(identity).ok().is_some_and(|file| fs::metadata(path).map(identity).ok() == Some(file))
}

/// The part in the name of a lock file or manifest, after the prefix and the dataset's name.
pub(crate) fn part_infix(part: Part) -> String {
    match part.parts() {
        1 => String::new(),
        of => format!(".part-{}-of-{of}", part.index()),
    }
}

/// The part of the dataset `name` in the name of a lock file or manifest: `_sawmill.NAME.EXTENSION` or
/// `_sawmill.NAME.part-K-of-N.EXTENSION`.
pub(crate) fn part_in_name(file: &str, name: &str, extension: &str) -> Option<Part> {
    let infix = file.strip_prefix(PREFIX)?.strip_prefix(name)?.strip_suffix(extension)?.strip_suffix('.')?;
    if infix.is_empty() {
        return Some(Part::WHOLE);
    }
    let part: Part = infix.strip_prefix(".part-")?.replacen("-of-", "/", 1).parse().ok()?;
    (part_infix(part) == infix).then_some(part)
}

/// Describes the run that has locked the file at `path`.
fn holder(path: &Path) -> String {
    for _ in 0..20 {
        let mut text = String::new();
        let opened = shared_places::open(path, OpenOptions::new().read(true));
        let read = opened.and_then(|file| file.take(300).read_to_string(&mut text));
        match read {
            Ok(1..) if text.starts_with("process ") => return format!("another run ({})", text.trim()),
            // The other run has just taken the lock and has not written to the file yet.
            Ok(0) => std::thread::sleep(Duration::from_millis(5)),
            _ => break,
        }
    }
    "another run".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(directory: &Path, part: &str, waits: bool) -> Result<OutputLock, Error> {
        let cancel = AtomicBool::new(false);
        let patience = Patience { waits, notice: &|_| {}, cancel: &cancel };
        OutputLock::of_directory(directory, "trips", part.parse().unwrap(), &patience)
    }

    #[test]
    fn runs_that_write_the_same_files_exclude_each_other_but_parts_of_one_division_do_not() {
        let dir = tempfile::tempdir().unwrap();
        for (first, second, together) in [
            ("1/1", "1/1", false),
            ("1/1", "1/2", false),
            ("2/3", "1/1", false),
            ("1/2", "1/2", false),
            ("1/2", "2/2", true),
            ("1/2", "2/3", false),
        ] {
            let held = lock(dir.path(), first, false).unwrap();
            let other = lock(dir.path(), second, false);
            assert_eq!(other.is_ok(), together, "{first} {second}");
            if let Err(error) = &other {
                let own = format!("process {}", std::process::id());
                assert!(error.to_string().contains(&own), "{error}");
            }
            drop((held, other));
            lock(dir.path(), second, false).unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn the_lock_file_of_a_dead_process_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("_sawmill.trips.lock"), "process 1").unwrap();
        fs::write(dir.path().join("_sawmill.trips.part-1-of-2.lock"), "process 1").unwrap();
        fs::write(dir.path().join("_sawmill.trips-old.lock"), "process 1").unwrap();
        drop(lock(dir.path(), "1/1", false).unwrap());
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["_sawmill.trips-old.lock"]);
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("_sawmill.trips.lock")).unwrap();
        let error = lock(dir.path(), "1/1", false).unwrap_err().to_string();
        assert!(error.contains("has its name") && error.contains("_sawmill.trips.lock"), "{error}");
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn every_waiting_run_gets_the_lock_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let at_work = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for part in ["1/1", "1/1", "1/2", "2/3", "1/1"] {
                let (dir, at_work) = (dir.path(), &at_work);
                scope.spawn(move || {
                    for _ in 0..5 {
                        let lock = lock(dir, part, true).unwrap();
                        assert!(!at_work.swap(true, Relaxed));
                        std::thread::sleep(Duration::from_millis(1));
                        at_work.store(false, Relaxed);
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_part_is_read_from_the_file_name() {
        let part = |file: &str| part_in_name(file, "trips", "json").map(|part| part.to_string());
        assert_eq!(part("_sawmill.trips.json").as_deref(), Some("1/1"));
        assert_eq!(part("_sawmill.trips.part-2-of-3.json").as_deref(), Some("2/3"));
        for other in
            ["_sawmill.json", "_sawmill.trips-2.json", "_sawmill.trips.part-4-of-3.json", "trips.json"]
        {
            assert_eq!(part(other), None, "{other}");
        }
    }
}
