//! A server's directory: private, marked with a living owner, removed when dropped.
//!
//! ```text
//! sawmill-pg-XXXXXX/   mode 0700, owned by the account that the server runs as
//!   owner              locked by the process that started the server; contains its pid, for people
//!   data/              created by initdb
//!   server.log
//!   .s.PGSQL.PORT      the socket
//! ```
//!
//! The lock shows other processes that the owner is alive. The kernel releases it however the owner ends, it
//! cannot be confused with another process as a reused process id can, and other containers that share the
//! directory see it. [`LocalPg::keep`](crate::LocalPg::keep) renames the file to `kept`.
//!
//! A directory has an owner from its first file to its last: before the lock exists, it is empty or holds
//! only the file about to be locked, and cleanup removes that file last. So whatever a killed process leaves
//! is recognised as abandoned at every step. In return, a sweep may remove a directory that another process
//! is just creating; that process then creates another one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem::{offset_of, size_of};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::housekeeping::account::Account;
use crate::housekeeping::process::{self, Shutdown};
use crate::housekeeping::shared_memory;

/// The prefix of all such directories' names.
pub(crate) const PREFIX: &str = "sawmill-pg-";
/// The data directory within it.
pub(crate) const DATA: &str = "data";
/// The locked file of a directory that ends with its owner.
pub(crate) const OWNER: &str = "owner";
/// The name of that file until it is locked.
pub(crate) const UNLOCKED: &str = "owner.new";
/// The name of that file once the server is kept.
pub(crate) const KEPT: &str = "kept";

/// How long processes may take to end after a signal before a stronger one follows.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many times in a row another process may sweep away a directory during its creation.
const SWEPT_AWAY: u32 = 20;

/// A directory of ours. Dropping it ends the PostgreSQL processes in it and removes it.
#[derive(Debug)]
pub(crate) struct Home {
    pub path: PathBuf,
    pub data: PathBuf,
    /// Holds the lock; `None` if the directory was removed or is kept.
    owner: Option<File>,
}

impl Home {
    /// Creates a directory in `base` for the account.
    pub(crate) fn create(base: &Path, account: &Account) -> Result<Self, Error> {
        let failed = |cause| Error::io("cannot make a private directory for the server", cause).at_path(base);
        let mut swept_away = 0;
        loop {
            let path = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir_in(base)
                .map_err(failed)?
                .keep();
            match claim(&path, account) {
                Ok(lock) => return Ok(Self { data: path.join(DATA), path, owner: Some(lock) }),
                Err(cause) => {
                    let gone = cause.kind() == io::ErrorKind::NotFound;
                    let _ = fs::remove_dir_all(&path);
                    swept_away += 1;
                    if !gone || swept_away == SWEPT_AWAY {
                        return Err(failed(cause));
                    }
                }
            }
        }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// Removes the directory and reports failure.
    pub(crate) fn remove(mut self) -> Result<(), Error> {
        self.owner = None;
        clear(&self.path).map(drop)
    }

    /// Marks the directory to outlive this process.
    pub(crate) fn keep(&mut self) -> Result<(), Error> {
        fs::rename(self.path.join(OWNER), self.path.join(KEPT)).map_err(|cause| {
            Error::io("cannot mark the server's directory as one to keep", cause).at_path(&self.path)
        })?;
        self.owner = None;
        Ok(())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.owner.is_some() {
            // Errors cannot be reported here; the next start sweeps the leftovers.
            let _ = clear(&self.path);
        }
    }
}

/// Creates the locked owner file. Locks it before giving it its final name, so that it never exists unlocked
/// under that name. The error `NotFound` means that another process has swept the directory away.
fn claim(directory: &Path, account: &Account) -> io::Result<File> {
    let unlocked = directory.join(UNLOCKED);
    let mut file = File::create_new(&unlocked)?;
    file.lock()?;
    writeln!(file, "pid {}", std::process::id())?;
    fs::rename(&unlocked, directory.join(OWNER))?;
    account.give(directory)?;
    Ok(file)
}

/// Ends the PostgreSQL processes in the directory, then removes it. Returns the processes it ended.
pub(crate) fn clear(directory: &Path) -> Result<Vec<u32>, Error> {
    let owner = match fs::symlink_metadata(directory) {
        Ok(metadata) => metadata.uid(),
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(Error::io("cannot look at the directory", cause).at_path(directory)),
    };
    let ended = evict(directory, owner)?;
    shared_memory::remove_left_behind(&directory.join(DATA), owner);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match remove(directory) {
            Ok(()) => return Ok(ended),
            Err(gone) if gone.kind() == io::ErrorKind::NotFound && !directory.exists() => return Ok(ended),
            // An ending process may still have created or removed a file.
            Err(busy)
                if matches!(busy.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound)
                    && Instant::now() < deadline =>
            {
                sleep(Duration::from_millis(10));
            }
            Err(cause) => {
                return Err(Error::io("cannot remove the server's directory", cause)
                    .at_path(directory)
                    .advise(format!("remove it with `rm -rf {}`", directory.display())));
            }
        }
    }
}

/// Removes the directory, the owner file last: if this is killed, the next sweep finishes it.
fn remove(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != OWNER {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_file(directory.join(OWNER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir(directory)
}

/// Ends the processes that live in the directory, first as in a crash, then by force.
fn evict(directory: &Path, owner: u32) -> Result<Vec<u32>, Error> {
    let all = process::residents(directory, owner);
    let mut left = all.clone();
    for how in [Shutdown::Immediate, Shutdown::Kill] {
        for pid in &left {
            process::signal(*pid, how)
                .map_err(|cause| Error::io("cannot end a server", cause).at(format!("process {pid}")))?;
        }
        let deadline = Instant::now() + PATIENCE;
        while !left.is_empty() && Instant::now() < deadline {
            sleep(Duration::from_millis(5));
            left = process::residents(directory, owner);
        }
        if left.is_empty() {
            return Ok(all);
        }
    }
    Err(Error::new(format!("processes {left:?} did not end"))
        .at_path(directory)
        .advise("end them manually, then remove the directory"))
}

/// The default parents: the temporary directory, or a well-known one if the server's account cannot enter
/// that one or its path is too long for a socket.
pub(crate) fn default_bases() -> Vec<PathBuf> {
    let mut bases = Vec::new();
    for base in [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")] {
        // Resolved, because the kernel reports the resolved path of a process in it.
        if let Ok(base) = base.canonicalize()
            && !bases.contains(&base)
        {
            bases.push(base);
        }
    }
    bases
}

/// Whether the path of a socket in this directory, with any port, fits in a socket address: 107 bytes on
/// Linux, 103 on macOS (unix(7): `sun_path` less its terminating zero byte).
pub(crate) fn socket_fits(directory: &Path) -> bool {
    let room = size_of::<libc::sockaddr_un>() - offset_of!(libc::sockaddr_un, sun_path) - 1;
    directory.as_os_str().as_bytes().len() + "/.s.PGSQL.65535".len() <= room
}

/// Whether the socket of a server would fit in a directory created in `base`.
pub(crate) fn socket_will_fit(base: &Path) -> bool {
    socket_fits(&base.join(format!("{PREFIX}XXXXXX")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_private_and_removed_when_dropped() {
        let account = Account::for_server().unwrap();
        let home = Home::create(&std::env::temp_dir(), &account).unwrap();
        let path = home.path.clone();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(account.can_enter(&path));
        drop(home);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_that_cannot_be_created_is_an_error_with_its_parent() {
        let account = Account::for_server().unwrap();
        let error = Home::create(Path::new("/no/such/place"), &account).unwrap_err();
        assert_eq!(error.place(), "/no/such/place");
    }

    #[test]
    fn the_socket_path_limit_matches_the_operating_system() {
        let room = if cfg!(target_os = "linux") { 107 } else { 103 };
        let longest = room - "/.s.PGSQL.65535".len();
        assert!(socket_fits(Path::new(&"x".repeat(longest))));
        assert!(!socket_fits(Path::new(&"x".repeat(longest + 1))));
    }
}
