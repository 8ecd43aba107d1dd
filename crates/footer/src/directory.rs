//! Files of one directory, opened relative to it: the system looks up one name then instead of a path.
//!
//! On Linux, where this measured a twentieth of the time of opening and decoding small files. A directory
//! that is moved while its files are opened stays the one that they are opened in.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::source;

/// The directory of the file that was opened last.
#[derive(Default)]
pub(crate) struct Directory {
    /// Its path, with the slash behind it.
    path: Vec<u8>,
    /// Open once a second file of the directory is asked for.
    handle: Option<File>,
    /// The name of a file, with a zero behind it.
    name: Vec<u8>,
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Directory {
    /// As [`source::open_to_read`].
    pub fn open_to_read(&mut self, path: &Path) -> io::Result<File> {
        use std::os::fd::{AsRawFd, FromRawFd};
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::OpenOptionsExt;

        unsafe extern "C" {
            fn openat(directory: i32, name: *const std::ffi::c_char, flags: i32, ...) -> i32;
        }
        const O_NONBLOCK: i32 = 0o4000;
        const O_CLOEXEC: i32 = 0o2_000_000;
        const O_PATH: i32 = 0o10_000_000;

        let bytes = path.as_os_str().as_bytes();
        let Some(slash) = bytes.iter().rposition(|&byte| byte == b'/') else {
            return source::open_to_read(path);
        };
        let (directory, name) = bytes.split_at(slash + 1);
        if directory != self.path {
            self.path.clear();
            self.path.extend_from_slice(directory);
            self.handle = None;
            return source::open_to_read(path);
        }
        let handle = match &self.handle {
            Some(handle) => handle,
            None => {
                let directory = path.parent().unwrap_or(path);
                self.handle.insert(File::options().read(true).custom_flags(O_PATH).open(directory)?)
            }
        };
        self.name.clear();
        self.name.extend_from_slice(name);
        self.name.push(0);
        // No name has a zero, and a path that ends with a slash has no name.
        if name.is_empty() || name.contains(&0) {
            return source::open_to_read(path);
        }
        let flags = O_NONBLOCK | O_CLOEXEC;
        // SAFETY: the name ends with a zero and lives through the call; the handle is open.
        let file = unsafe { openat(handle.as_raw_fd(), self.name.as_ptr().cast(), flags) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened just now, and nobody else knows it.
        Ok(unsafe { File::from_raw_fd(file) })
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
impl Directory {
    /// As [`source::open_to_read`].
    pub fn open_to_read(&mut self, path: &Path) -> io::Result<File> {
        let _ = (&self.path, &self.handle, &self.name);
        source::open_to_read(path)
    }
}
