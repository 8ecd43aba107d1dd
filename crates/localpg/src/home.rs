//! A server's directory: made private, marked with a living owner, removed when dropped.
//!
//! ```text
//! sawmill-pg-XXXXXX/   mode 0700, of the account that the server runs as
//!   owner              locked by the process that started the server; its pid, for people
//!   data/              what initdb made
//!   server.log
//!   .s.PGSQL.PORT      the socket
//! ```
//!
//! The lock is how others know that the owner lives: the kernel gives it up when the owner ends in
//! whatever way, it cannot be mistaken as a process id that was given out again can, and it is
//! seen from other containers that share the directory. A server that was told to stay has its
//! file renamed to `kept`.
//!
//! A directory has an owner from its first file to its last: before there is a lock it is empty or
//! holds the file that is about to be locked, and when it is cleared the file goes last. So what a
//! killed process leaves is known as abandoned at whichever step that was. The price is that a
//! sweep may take the directory from under the hands of one who is just making it; that one then
//! makes another.

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem::{offset_of, size_of};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::account::Account;
use crate::process::{self, Shutdown};
use crate::shared_memory;

/// What the names of all such directories begin with.
pub(crate) const PREFIX: &str = "sawmill-pg-";
/// The data directory in it.
pub(crate) const DATA: &str = "data";
/// The locked file of a directory that ends with its owner.
pub(crate) const OWNER: &str = "owner";
/// What that file is called until it is locked.
pub(crate) const UNLOCKED: &str = "owner.new";
/// What that file is called once the server was told to stay.
pub(crate) const KEPT: &str = "kept";

/// How long processes may take to end after a signal, before the next stronger one.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often in a row a directory that is being made may be swept away by somebody else.
const SWEPT_AWAY: u32 = 20;

/// A directory of ours. Dropping it ends what PostgreSQL runs in it and removes it.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    data: PathBuf,
    /// Holds the lock; none when the directory is removed or was told to stay.
    owner: Option<File>,
}

impl Home {
    /// Makes a directory in `base` and gives it to the account.
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// Removes the directory and says so when that fails.
    pub(crate) fn remove(mut self) -> Result<(), Error> {
        self.owner = None;
        clear(&self.path).map(drop)
    }

    /// Marks the directory as one that outlives this process.
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
            // There is nobody to tell; what stays behind is swept by the next start.
            let _ = clear(&self.path);
        }
    }
}

/// Puts a locked owner file in place; it is locked before it has its name, so that nobody ever sees
/// it without the lock. "Not found" says that somebody swept the directory away meanwhile.
fn claim(directory: &Path, account: &Account) -> io::Result<File> {
    let unlocked = directory.join(UNLOCKED);
    let mut file = File::create_new(&unlocked)?;
    file.lock()?;
    writeln!(file, "pid {}", std::process::id())?;
    fs::rename(&unlocked, directory.join(OWNER))?;
    account.give(directory)?;
    Ok(file)
}

/// Ends what PostgreSQL runs in the directory, then removes it. Gives the processes it ended.
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
            // A process on its last steps may still have made or removed a file.
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

/// Removes the directory, the owner's file last: what is killed here goes with the next sweep.
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

/// Ends the processes that live in the directory, first as a crash would, then for certain.
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
        .advise("end them by hand, then remove the directory"))
}

/// Where directories go when nobody says: the temporary directory, or a well-known one should that
/// be closed to the server's account or too deep for a socket's path.
pub(crate) fn default_bases() -> Vec<PathBuf> {
    let mut bases = Vec::new();
    for base in [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")] {
        // Resolved, because that is what the kernel will tell of a process in it.
        if let Ok(base) = base.canonicalize()
            && !bases.contains(&base)
        {
            bases.push(base);
        }
    }
    bases
}

/// Whether the path of a socket for any port fits in a socket address when the socket lies in this
/// directory: 107 bytes on Linux, 103 on macOS (unix(7): `sun_path` less its closing zero byte).
pub(crate) fn socket_fits(directory: &Path) -> bool {
    let room = size_of::<libc::sockaddr_un>() - offset_of!(libc::sockaddr_un, sun_path) - 1;
    directory.as_os_str().as_bytes().len() + "/.s.PGSQL.65535".len() <= room
}

/// Whether the socket of a server in a directory that is yet to be made in `base` would fit.
pub(crate) fn socket_will_fit(base: &Path) -> bool {
    socket_fits(&base.join(format!("{PREFIX}XXXXXX")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_private_and_goes_when_dropped() {
        let account = Account::for_server().unwrap();
        let home = Home::create(&std::env::temp_dir(), &account).unwrap();
        let path = home.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(account.can_enter(&path));
        drop(home);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_without_room_is_an_error_that_names_the_place() {
        let account = Account::for_server().unwrap();
        let error = Home::create(Path::new("/no/such/place"), &account).unwrap_err();
        assert_eq!(error.place(), "/no/such/place");
    }

    #[test]
    fn the_limit_of_a_socket_path_is_the_operating_systems() {
        let room = if cfg!(target_os = "linux") { 107 } else { 103 };
        let longest = room - "/.s.PGSQL.65535".len();
        assert!(socket_fits(Path::new(&"x".repeat(longest))));
        assert!(!socket_fits(Path::new(&"x".repeat(longest + 1))));
    }
}
