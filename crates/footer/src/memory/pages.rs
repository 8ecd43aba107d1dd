//! Memory pages under large tables: huge ones where the system gives them, and those of medium tables all at once.

use std::mem::MaybeUninit;

/// Tables smaller than this are left alone.
const WORTH_ALL_AT_ONCE: usize = 1 << 15;

/// Tables from here on get huge pages. Those come one after the other, as threads write to them.
const WORTH_HUGE: usize = 1 << 20;

#[cfg(target_os = "linux")]
mod advice {
    unsafe extern "C" {
        pub fn madvise(start: *mut u8, len: usize, advice: i32) -> i32;
    }
    pub const PAGE: usize = 4096;
    pub const FREE: i32 = 8;
    pub const HUGE_PAGE: i32 = 14;
    pub const POPULATE_WRITE: i32 = 23;
}

/// Asks for the pages under `table`, which has not been written to by the program yet and is going to be. A table of
/// 64 MB then takes some thirty page faults instead of 16,000, which measured a tenth of the time of a whole decode;
/// one of 320 kB takes none instead of eighty, a sixth of the time of the first row group of 10,000 columns.
pub(crate) fn advise<T>(table: &mut [T]) {
    #[cfg(target_os = "linux")]
    if size_of_val(table) >= WORTH_ALL_AT_ONCE {
        let start = table.as_mut_ptr().cast::<u8>();
        // From the page where the table starts to that where it ends: tables allocated one behind the
        // other then share huge pages, of which the smaller ones alone would have room for none.
        let before = start.addr() % advice::PAGE;
        let len = (before + size_of_val(table)).next_multiple_of(advice::PAGE);
        let advice = if size_of_val(table) < WORTH_HUGE { advice::POPULATE_WRITE } else { advice::HUGE_PAGE };
        // SAFETY: either advice changes nothing that a program can see but speed and memory in use, in no page of
        // the range, whoever owns what else is in the first and the last; a kernel that does not know it, or has no
        // memory left, answers with an error, which changes nothing.
        unsafe { advice::madvise(start.wrapping_sub(before), len, advice) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (table, WORTH_ALL_AT_ONCE, WORTH_HUGE);
}

/// Lets the system take the pages under `table` when it is short of memory, until they are written to. What the table
/// holds is lost.
pub(crate) fn give_back<T>(table: &mut Vec<MaybeUninit<T>>) {
    #[cfg(target_os = "linux")]
    {
        let room = table.spare_capacity_mut();
        let end = room.as_mut_ptr().wrapping_add(room.len()).cast::<u8>();
        let start = table.as_mut_ptr().cast::<u8>();
        // Whole pages of the table: others hold what is not its own.
        let before = start.addr().next_multiple_of(advice::PAGE) - start.addr();
        let len = (end.addr() - start.addr()).saturating_sub(before) / advice::PAGE * advice::PAGE;
        // SAFETY: the pages lie within the table's memory, which is borrowed alone and of which nothing need be
        // written; those that the system takes read as zeros. An error changes nothing.
        unsafe { advice::madvise(start.wrapping_add(before), len, advice::FREE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}
