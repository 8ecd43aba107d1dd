//! Memory pages under large tables: huge pages if the system provides them; for medium tables, all pages at
//! once.

use std::mem::MaybeUninit;

/// Smaller tables are left alone.
const WORTH_ALL_AT_ONCE: usize = 1 << 15;

/// Tables of at least this size get huge pages, one at a time as threads write to them.
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

/// Requests pages for `table`, which is about to be written for the first time. A table of 64 MB then takes
/// some thirty page faults instead of 16,000, which measured a tenth of the time of a whole decode; one of
/// 320 kB takes none instead of eighty, a sixth of the time of the first row group of 10,000 columns.
pub(crate) fn advise<T>(table: &mut [T]) {
    #[cfg(target_os = "linux")]
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
    #[cfg(not(target_os = "linux"))]
    let _ = (table, WORTH_ALL_AT_ONCE, WORTH_HUGE);
}

/// Allows the system to reclaim the pages under `table` when memory is short, until they are written again.
/// The table's contents are lost.
pub(crate) fn give_back<T>(table: &mut Vec<MaybeUninit<T>>) {
    #[cfg(target_os = "linux")]
    {
        let room = table.spare_capacity_mut();
        let end = room.as_mut_ptr().wrapping_add(room.len()).cast::<u8>();
        let start = table.as_mut_ptr().cast::<u8>();
        // Only the table's whole pages: the others also hold memory of other owners.
        let before = start.addr().next_multiple_of(advice::PAGE) - start.addr();
        let len = (end.addr() - start.addr()).saturating_sub(before) / advice::PAGE * advice::PAGE;
        // SAFETY: the pages lie within the table's memory, which is exclusively borrowed and need not stay
        // written; pages that the system reclaims read as zeros. An error changes nothing.
        unsafe { advice::madvise(start.wrapping_add(before), len, advice::FREE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}
