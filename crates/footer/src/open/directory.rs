//! Opens files relative to their directory, so that the system looks up one name instead of a path.
//!
//! Used on Linux, where it saved a twentieth of the time to open and decode small files. If a directory is
//! moved while its files are opened, they are still opened in the moved directory.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use std::ffi::OsStr;
use std::fs::File;
use std::io;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use std::os::{
    fd::{AsRawFd, FromRawFd, RawFd},
    unix::{ffi::OsStrExt, fs::OpenOptionsExt},
};
use std::path::Path;

use crate::open::source;

/// The directory of the last opened file.
#[derive(Default)]
pub(crate) struct Directory {
    /// Its path with a trailing slash.
    path: Vec<u8>,
    /// Opened when a second file of the directory is requested.
    handle: Option<File>,
    /// The name of a file, terminated by a zero.
    name: Vec<u8>,
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Directory {
    /// Opens a file like [`source::open_to_read`].
    pub fn open_to_read(&mut self, path: &Path) -> io::Result<File> {
        unsafe extern "C" {
            fn openat(directory: i32, name: *const std::ffi::c_char, flags: i32, ...) -> i32;
        }
        const O_NONBLOCK: i32 = 0o4000;
        const O_CLOEXEC: i32 = 0o2_000_000;

        if !self.is_of(path) {
            self.enter(path);
            return source::open_to_read(path);
        }
        let handle = match &self.handle {
            Some(handle) => handle.as_raw_fd(),
            None => self.open()?,
        };
        let mut name = std::mem::take(&mut self.name);
        let is_name = self.put_name(path, &mut name);
        self.name = name;
        if !is_name {
            return source::open_to_read(path);
        }
        let flags = O_NONBLOCK | O_CLOEXEC;
        // SAFETY: the name ends with a zero and outlives the call; the handle is open.
        let file = unsafe { openat(handle, self.name.as_ptr().cast(), flags) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(unsafe { File::from_raw_fd(file) })
    }

    /// Opens the directory of a file and returns its descriptor, which stays open until the next call.
    pub fn open_for(&mut self, path: &Path) -> io::Result<RawFd> {
        if !self.is_of(path) {
            self.enter(path);
        }
        match &self.handle {
            Some(handle) => Ok(handle.as_raw_fd()),
            None => self.open(),
        }
    }

    /// Writes a file's name in this directory to `name`, terminated by a zero; false if the file is in
    /// another directory or has no usable name.
    pub fn put_name(&self, path: &Path, name: &mut Vec<u8>) -> bool {
        let bytes = path.as_os_str().as_bytes();
        let Some(found) = bytes.strip_prefix(self.path.as_slice()) else { return false };
        name.clear();
        name.extend_from_slice(found);
        name.push(0);
        // A path that ends with a slash has no file name.
        !(self.path.is_empty() || found.is_empty() || found.iter().any(|&byte| matches!(byte, 0 | b'/')))
    }

    /// Writes a whole path to `name`, terminated by a zero; false if the path contains one.
    pub fn put_path(path: &Path, name: &mut Vec<u8>) -> bool {
        let bytes = path.as_os_str().as_bytes();
        name.clear();
        name.extend_from_slice(bytes);
        name.push(0);
        !bytes.contains(&0)
    }

    /// The path up to and including the last slash; empty without one.
    fn before_name(path: &Path) -> &[u8] {
        let bytes = path.as_os_str().as_bytes();
        let len = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        bytes.get(..len).unwrap_or_default()
    }

    fn is_of(&self, path: &Path) -> bool {
        !self.path.is_empty() && Self::before_name(path) == self.path
    }

    /// Switches to the directory of a file.
    fn enter(&mut self, path: &Path) {
        self.path.clear();
        self.path.extend_from_slice(Self::before_name(path));
        self.handle = None;
    }

    fn open(&mut self) -> io::Result<RawFd> {
        const O_PATH: i32 = 0o10_000_000;
        if self.path.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let directory =
            File::options().read(true).custom_flags(O_PATH).open(OsStr::from_bytes(&self.path))?;
        Ok(self.handle.insert(directory).as_raw_fd())
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
impl Directory {
    /// Opens a file like [`source::open_to_read`].
    pub fn open_to_read(&mut self, path: &Path) -> io::Result<File> {
        let _ = (&self.path, &self.handle, &self.name);
        source::open_to_read(path)
    }
}
