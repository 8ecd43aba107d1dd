//! Finds servers whose owner was killed by their directories, ends them and removes the directories.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::housekeeping::account::Account;
use crate::housekeeping::home::{self, OWNER, PREFIX, UNLOCKED};
use crate::housekeeping::process;

/// How long a lock may outlive its process: a child that the process just forked also holds it until the
/// child executes its program.
const FORKED: Duration = Duration::from_secs(2);

/// An abandoned server's directory that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// The directory.
    pub directory: PathBuf,
    /// The server's processes that were still running and were ended; empty if there were none.
    pub processes: Vec<u32>,
}

/// Ends servers and removes directories that killed processes left behind. Searches the temporary directory,
/// `/tmp` and `/var/tmp`. [`start`] calls this.
///
/// Leaves alone servers whose owner is alive, servers to be [kept](crate::LocalPg::keep), and other users'
/// servers. Ends a process only if it is a PostgreSQL process of the directory's own user that works in the
/// directory.
///
/// # Errors
///
/// The first abandoned server that could not be ended or removed, after all were tried.
///
/// [`start`]: crate::LocalPg::start
pub fn sweep_abandoned() -> Result<Vec<Swept>, Error> {
    sweep(&home::default_bases(), &Account::for_server()?)
}

/// Like [`sweep_abandoned`], for one directory, such as one passed to
/// [`parent_dir`](crate::Builder::parent_dir).
///
/// # Errors
///
/// The first abandoned server that could not be ended or removed, after all were tried.
pub fn sweep_abandoned_in(directory: impl AsRef<Path>) -> Result<Vec<Swept>, Error> {
    let directory = directory.as_ref();
    let directory = directory
        .canonicalize()
        .map_err(|cause| Error::io("cannot look for abandoned servers", cause).at_path(directory))?;
    sweep(&[directory], &Account::for_server()?)
}

pub(crate) fn sweep(bases: &[PathBuf], account: &Account) -> Result<Vec<Swept>, Error> {
    let mut swept = Vec::new();
    let mut first_error = None;
    for entry in bases.iter().filter_map(|base| fs::read_dir(base).ok()).flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let directory = entry.path();
        // Hold the claim's lock while removing the directory: only one of several sweepers gets it.
        let Some(_claim) = claim_abandoned(&directory, account) else { continue };
        match home::clear(&directory) {
            Ok(processes) => swept.push(Swept { directory, processes }),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        None => Ok(swept),
        Some(error) => Err(error),
    }
}

/// Claims a directory without an owner for removal. If it is empty, or holds only the file that its creator
/// was about to lock, removes it immediately.
fn claim_abandoned(directory: &Path, account: &Account) -> Option<File> {
    // Do not follow a link, which could lead anywhere.
    let metadata = fs::symlink_metadata(directory).ok()?;
    if !metadata.is_dir() || !account.owns(metadata.uid()) {
        return None;
    }
    match open(&directory.join(OWNER)) {
        // It may have been renamed to `kept` between opening and locking.
        Ok(file) => take(file).filter(|_| directory.join(OWNER).exists()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let unlocked = directory.join(UNLOCKED);
            let _lock = match open(&unlocked) {
                Ok(file) => {
                    // The creator waits for this lock and then finds the file gone.
                    let lock = take(file)?;
                    fs::remove_file(&unlocked).ok()?;
                    Some(lock)
                }
                Err(_) => None,
            };
            // Removes only an empty directory; a kept server's has files.
            let _ = fs::remove_dir(directory);
            None
        }
        Err(_) => None,
    }
}

/// Opens a file that may be in the directory of a less trusted account: no links, and no pipes that block.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Locks the file, unless a living process holds the lock.
fn take(mut file: File) -> Option<File> {
    let deadline = Instant::now() + FORKED;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            // Without locks it is unknown whether the owner is alive: leave the directory alone.
            Err(TryLockError::Error(_)) => return None,
            Err(TryLockError::WouldBlock) => {}
        }
        let mut line = String::new();
        (&mut file).take(64).read_to_string(&mut line).ok()?;
        let owner = line.trim().strip_prefix("pid ")?.parse().ok()?;
        if process::is_alive(owner) || Instant::now() >= deadline {
            return None;
        }
        sleep(Duration::from_millis(2));
        io::Seek::rewind(&mut file).ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::housekeeping::home::Home;

    fn shared_base() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        base
    }

    #[test]
    fn directories_of_living_processes_are_left_alone() {
        let base = shared_base();
        let home = Home::create(base.path(), &Account::for_server().unwrap()).unwrap();
        assert_eq!(sweep_abandoned_in(base.path()).unwrap(), []);
        assert!(home.path.exists());
    }

    #[test]
    fn abandoned_directories_are_removed() {
        let base = shared_base();
        let abandoned = base.path().join("sawmill-pg-abandoned");
        fs::create_dir_all(abandoned.join("data")).unwrap();
        fs::write(abandoned.join(OWNER), "pid 1\n").unwrap();
        let swept = sweep_abandoned_in(base.path()).unwrap();
        assert_eq!(swept.len(), 1);
        assert!(swept[0].processes.is_empty());
        assert!(!abandoned.exists());
    }

    #[test]
    fn kept_directories_stay() {
        let base = shared_base();
        let mut home = Home::create(base.path(), &Account::for_server().unwrap()).unwrap();
        home.keep().unwrap();
        let path = home.path.clone();
        drop(home);
        assert_eq!(sweep_abandoned_in(base.path()).unwrap(), []);
        assert!(path.exists());
    }

    #[test]
    fn other_names_and_links_are_left_alone() {
        let base = shared_base();
        fs::create_dir(base.path().join("other")).unwrap();
        std::os::unix::fs::symlink("/etc", base.path().join("sawmill-pg-link")).unwrap();
        assert_eq!(sweep_abandoned_in(base.path()).unwrap(), []);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 2);
    }

    #[test]
    fn directories_of_processes_killed_during_creation_are_removed() {
        let base = shared_base();
        fs::create_dir(base.path().join("sawmill-pg-empty")).unwrap();
        fs::create_dir(base.path().join("sawmill-pg-unlocked")).unwrap();
        fs::write(base.path().join("sawmill-pg-unlocked").join(UNLOCKED), "").unwrap();
        sweep_abandoned_in(base.path()).unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn creation_succeeds_despite_concurrent_sweeps() {
        let base = shared_base();
        let account = Account::for_server().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep_abandoned_in(base.path()).unwrap();
                }
            });
            for _ in 0..200 {
                let home = Home::create(base.path(), &account).unwrap();
                assert!(home.path.join(OWNER).exists());
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn the_sweep_waits_for_a_lock_that_a_forked_child_still_holds() {
        let base = shared_base();
        let abandoned = base.path().join("sawmill-pg-abandoned");
        fs::create_dir(&abandoned).unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        fs::write(abandoned.join(OWNER), format!("pid {}\n", gone.id())).unwrap();
        let lock = File::open(abandoned.join(OWNER)).unwrap();
        lock.lock().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(Duration::from_millis(100));
                drop(lock);
            });
            assert_eq!(sweep_abandoned_in(base.path()).unwrap().len(), 1);
        });
        assert!(!abandoned.exists());
    }
}
