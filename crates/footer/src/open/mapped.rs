//! A memory-mapped range of a file.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

unsafe extern "C" {
    fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn munmap(addr: *mut c_void, len: usize) -> c_int;
}

const PROT_READ: c_int = 1;
const MAP_PRIVATE: c_int = 2;

/// Maps all pages at once before they are touched, at half the cost of single page faults.
#[cfg(target_os = "linux")]
const MAP_POPULATE: c_int = 0x8000;
#[cfg(not(target_os = "linux"))]
const MAP_POPULATE: c_int = 0;

/// Offsets are rounded down to a multiple of this, which is a multiple of every system's page size.
const ALIGNMENT: u64 = 64 * 1024;

/// Mapped bytes; unmapped when dropped.
pub(crate) struct Mapped {
    base: *mut c_void,
    mapped_len: usize,
    /// Where the wanted bytes start, relative to `base`.
    skip: usize,
}

// SAFETY: the mapping is read-only and owned: any thread may read or unmap it.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps `len` bytes of `file` starting at `offset`.
    ///
    /// # Safety
    ///
    /// The range must lie within the file, and the file must not be changed or shortened while the mapping
    /// lives.
    pub unsafe fn new(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        let skip = (offset % ALIGNMENT) as usize;
        let start = i64::try_from(offset - skip as u64).map_err(|_| io::ErrorKind::InvalidInput)?;
        // An empty range cannot be mapped.
        let mapped_len = (skip + len).max(1);
        let flags = MAP_PRIVATE | MAP_POPULATE;
        // SAFETY: a new mapping at an address of the system's choice touches no memory of ours.
        let base =
            unsafe { mmap(std::ptr::null_mut(), mapped_len, PROT_READ, flags, file.as_raw_fd(), start) };
        // The system reports failure as -1.
        if base.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base, mapped_len: skip + len, skip })
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `base` is the start of `mapped_len` readable bytes, which stay mapped while `self` lives
        // and, as `new` requires, do not change.
        let all = unsafe { std::slice::from_raw_parts(self.base.cast::<u8>(), self.mapped_len) };
        &all[self.skip..]
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the range is the one that `mmap` returned, and no slice of it outlives `self`.
        unsafe { munmap(self.base, self.mapped_len.max(1)) };
    }
}
