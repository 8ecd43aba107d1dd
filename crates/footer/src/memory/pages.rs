//! What speeds up memory and cannot be safe code: zeroed pages from the system, huge pages, prefetches, and mapped
//! footers.
//!
//! `without_pages.rs` replaces it without the feature `fast`.
#![allow(unsafe_code, reason = "calls of the allocator and the system, and prefetches, each with its proof")]

use std::alloc::{Layout, alloc_zeroed};
use std::ops::Range;

/// Smaller tables are left alone.
#[cfg(all(target_os = "linux", not(miri)))]
const WORTH_ALL_AT_ONCE: usize = 1 << 15;

/// Tables of at least this size get huge pages, one at a time as threads write to them.
#[cfg(all(target_os = "linux", not(miri)))]
const WORTH_HUGE: usize = 1 << 20;

/// Miri, which checks the rest, cannot call it.
#[cfg(all(target_os = "linux", not(miri)))]
mod advice {
    unsafe extern "C" {
        pub fn madvise(start: *mut u8, len: usize, advice: i32) -> i32;
    }
    pub const PAGE: usize = 4096;
    pub const HUGE_PAGE: i32 = 14;
    pub const POPULATE_WRITE: i32 = 23;
}

/// Numbers, or arrays of them, which may be made of pages that the system has cleared.
pub(crate) trait Number: Sized {
    /// A vector of `len` zeros; `None` if memory is short. To reserve a vector and fill it with zeros would write
    /// every page twice.
    fn zeroed(len: usize) -> Option<Vec<Self>>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            fn zeroed(len: usize) -> Option<Vec<Self>> {
                if len == 0 {
                    return Some(Vec::new());
                }
                let layout = Layout::array::<Self>(len).ok()?;
                // SAFETY: the layout's size is not zero.
                let start = unsafe { alloc_zeroed(layout) }.cast::<Self>();
                // SAFETY: the global allocator returned this memory for an array of `len` elements, and nothing else
                // owns it. All bits are zero, which is a value of each integer and each array of integers.
                (!start.is_null()).then(|| unsafe { Vec::from_raw_parts(start, len, len) })
            }
        }
    )*};
}

numbers!(u8, [u32; 4], [u32; 8], [u64; 4]);

/// Requests pages for `table`, which is about to be written for the first time. A table of 64 MB then takes
/// some thirty page faults instead of 16,000, which measured a tenth of the time of a whole decode; one of
/// 320 kB takes none instead of eighty, a sixth of the time of the first row group of 10,000 columns.
pub(crate) fn advise<T>(table: &mut [T]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if size_of_val(table) >= WORTH_ALL_AT_ONCE {
        let start = table.as_mut_ptr().cast::<u8>();
        // From the page where the table starts to the page where it ends: adjacent tables then share huge
        // pages, for which a smaller one alone would have no room.
        let before = start.addr() % advice::PAGE;
        let len = (before + size_of_val(table)).next_multiple_of(advice::PAGE);
        let advice = if size_of_val(table) < WORTH_HUGE { advice::POPULATE_WRITE } else { advice::HUGE_PAGE };
        // SAFETY: neither advice changes anything visible to a program except speed and memory use, for any
        // page of the range, whoever owns the rest of the first and last page. A kernel that does not know
        // the advice or is out of memory returns an error, which changes nothing.
        unsafe { advice::madvise(start.wrapping_sub(before), len, advice) };
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    let _ = table;
}

/// Prefetches two cache lines `distance` bytes after `at`.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: usize, distance: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let ahead = bytes.as_ptr().wrapping_add(at + distance).cast::<i8>();
        // SAFETY: a prefetch reads nothing and faults on no address; the instruction is in the baseline.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(ahead);
            _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at, distance);
}

/// Prefetches a range of the bytes.
pub(crate) fn prefetch_range(bytes: &[u8], range: Range<usize>) {
    prefetch_lines(bytes.as_ptr(), range);
}

/// Prefetches rows that will be written soon.
pub(crate) fn prefetch_rows<T>(rows: &[T]) {
    prefetch_lines(rows.as_ptr().cast(), 0..size_of_val(rows));
}

#[inline(always)]
fn prefetch_lines(start: *const u8, range: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    for line in range.step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let ahead = start.wrapping_add(line).cast::<i8>();
        // SAFETY: a prefetch reads nothing and faults on no address; the instruction is in the baseline.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(ahead) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, range);
}

/// A memory-mapped range of a file, and the footer in it.
#[cfg(all(unix, target_pointer_width = "64"))]
mod mapped {
    use std::ffi::{c_int, c_void};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use crate::error::{Error, Result};
    use crate::footer::Footer;
    use crate::open::buffer::FooterBytes;
    use crate::open::source::{allowed, open_regular};
    use crate::open::{source::RangeReader, tail};
    use crate::options::Options;

    unsafe extern "C" {
        fn mmap(
            addr: *mut c_void,
            len: usize,
            prot: c_int,
            flags: c_int,
            fd: c_int,
            offset: i64,
        ) -> *mut c_void;
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

    impl Footer {
        /// Like [`Footer::open_with`], but maps the footer instead of reading it: for footers of hundreds of
        /// megabytes in the page cache, which take longer to copy than to decode.
        ///
        /// # Errors
        ///
        /// As for [`Footer::open_with`]; or the file cannot be mapped.
        ///
        /// # Safety
        ///
        /// The file must not be changed or shortened while the footer or any slice of it lives: mapped bytes
        /// change with the file, and touching bytes that were cut off kills the process.
        pub unsafe fn open_mapped(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
            let path = path.as_ref();
            let name = path.display().to_string();
            let (file, file_len) = open_regular(path)?;
            let reading = |error: io::Error| Error::io("reading the footer", &error).in_path(path);
            let mut end = [0; tail::TAIL_LEN as usize];
            let tail_len = file_len.min(tail::TAIL_LEN);
            let end = &mut end[..tail_len as usize];
            file.read_exact_at(file_len - tail_len, end).map_err(reading)?;
            let len = tail::metadata_len(end, file_len).and_then(|len| allowed(len, options));
            let len = len.map_err(|error| error.in_file(&name))?;
            let start = file_len - tail::TAIL_LEN - len;
            // SAFETY: the caller guarantees that the file does not change.
            let mapped = unsafe { Mapped::new(&file, start, len as usize) };
            let mapped = mapped.map_err(|error| Error::io("mapping the footer", &error).in_path(path))?;
            let bytes = FooterBytes::from_owner(mapped);
            Self::decode_in_file(bytes, options, Some(&name), Some(file_len))?
                .with_page_indexes(&file, options)
        }
    }

    /// Mapped bytes; unmapped when dropped.
    struct Mapped {
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
        unsafe fn new(file: &File, offset: u64, len: usize) -> io::Result<Self> {
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
}
