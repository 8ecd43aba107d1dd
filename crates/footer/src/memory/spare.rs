//! Tables of rows, and the one of a footer that was dropped, which the next footer gets.
//!
//! Memory that was never touched is slow to write: the system gives it page by page, and clears each. That took a
//! fifth of the time of a footer of 10,000 columns or more. So one table of wide row groups is kept; a large one is
//! marked as free to the system, which takes its pages back when it is short of memory. Rows of narrow row groups are
//! written here and there, and what the system has just cleared is at least near: they took longer in a table that
//! was kept.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use crate::chunk::rows::Packed;
use crate::memory::allocate;
use crate::memory::pages;

/// Bytes of a table that is worth keeping, at least and at most.
const WORTH: std::ops::RangeInclusive<usize> = 1 << 20..=64 << 20;

/// Memory that is kept.
struct Spare {
    rows: Vec<MaybeUninit<Packed>>,
    /// How many smaller tables were dropped since it was of use.
    passed_over: usize,
}

static SPARE: Mutex<Option<Spare>> = Mutex::new(None);

/// A table is kept while so many smaller ones come and go: one row group of a footer would else cost the memory of
/// all of them, a fifth of the time of 100,000 columns.
const PATIENCE: usize = 8;

/// Bytes from which on a table is the system's to take. Pages of smaller ones are mostly small, and to write to each
/// for the first time again takes as long as the table spares.
const LARGE: usize = 8 << 20;

/// Row groups of at least so many decoded columns are wide.
const WIDE: usize = 1_000;

/// The rows of a footer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    rows: Vec<Packed>,
    /// Whether its memory is of use to the next footer.
    keeps: bool,
}

impl Table {
    /// The rows of row groups of so many decoded columns.
    pub fn new(rows: Vec<Packed>, width: usize) -> Self {
        let bytes = rows.capacity() * size_of::<Packed>();
        Self { rows, keeps: width >= WIDE && WORTH.contains(&bytes) }
    }
}

impl Deref for Table {
    type Target = Vec<Packed>;

    fn deref(&self) -> &Vec<Packed> {
        &self.rows
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut Vec<Packed> {
        &mut self.rows
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.keeps {
            keep(std::mem::take(&mut self.rows));
        }
    }
}

/// Keeps the memory of a table for the next footer, in the place of what was kept before, unless that is larger.
fn keep(rows: Vec<Packed>) {
    let mut rows = ManuallyDrop::new(rows);
    // SAFETY: pointer, length and capacity are those of a vector that nobody owns any more, and a row that may not be
    // written has the layout of one that is.
    let mut rows = unsafe { Vec::from_raw_parts(rows.as_mut_ptr().cast(), rows.len(), rows.capacity()) };
    if rows.capacity() * size_of::<Packed>() >= LARGE {
        pages::give_back(&mut rows);
    }
    // Whoever would have to wait for another thread rather does without.
    let Ok(mut spare) = SPARE.try_lock() else { return };
    let superfluous = match &mut *spare {
        Some(kept) if kept.rows.capacity() > rows.capacity() && kept.passed_over < PATIENCE => {
            kept.passed_over += 1;
            Some(rows)
        }
        _ => spare.replace(Spare { rows, passed_over: 0 }).map(|before| before.rows),
    };
    drop(spare);
    // Not while the lock is held: the system takes its time.
    drop(superfluous);
}

/// Room for so many rows of row groups of `width` decoded columns: what was kept, if it is about as large. None where
/// there is no memory.
pub(crate) fn table(len: usize, width: usize) -> Option<Vec<MaybeUninit<Packed>>> {
    if width < WIDE {
        return new_table(len);
    }
    // A footer shall not keep much more than it needs.
    let fits = |spare: &mut Spare| (len..=len + len / 8).contains(&spare.rows.capacity());
    let spare = SPARE.try_lock().ok().and_then(|mut spare| spare.take_if(fits));
    match spare {
        Some(Spare { mut rows, .. }) => {
            // SAFETY: the capacity was asked for above, and such rows need not be written.
            unsafe { rows.set_len(len) };
            Some(rows)
        }
        None => new_table(len),
    }
}

/// Room for so many rows of any kind, never used before; none where there is no memory.
pub(crate) fn new_table<T>(len: usize) -> Option<Vec<MaybeUninit<T>>> {
    // Zeroing them first took 8 % of the time of a footer of 10,000 columns.
    let mut rows = allocate::unwritten(len)?;
    pages::advise(&mut rows);
    Some(rows)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::{PATIENCE, SPARE, Table, WIDE, WORTH, table};
    use crate::{Footer, Options, SyntheticColumns, SyntheticFooter};

    /// What is kept is the process's: one test at a time looks at it.
    static ALONE: Mutex<()> = Mutex::new(());

    fn kept() -> Option<usize> {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|spare| spare.rows.capacity())
    }

    #[test]
    fn a_footer_gets_the_table_of_the_one_before_and_nothing_of_its_rows() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = |seed| {
            SyntheticFooter { columns: 2_000, row_groups: 20, kind: SyntheticColumns::Text, seed }.bytes()
        };
        let (first, second) = (bytes(1), bytes(2));
        let all = |footer: &Footer| -> Vec<(i64, i64)> {
            let chunks = footer.row_groups().flat_map(|group| group.columns());
            chunks.map(|chunk| (chunk.data_page_offset(), chunk.compressed_size())).collect()
        };
        let footer = Footer::decode(first.as_slice(), &Options::new()).unwrap();
        let of_first = all(&footer);
        drop(footer);
        assert_eq!(kept(), Some(40_000));
        let footer = Footer::decode(second.as_slice(), &Options::new()).unwrap();
        assert_eq!(kept(), None);
        let fresh = Footer::decode(second.as_slice(), &Options::new()).unwrap();
        assert_eq!(all(&footer), all(&fresh));
        assert_ne!(all(&footer), of_first);
        assert_eq!(footer.heap_bytes(), fresh.heap_bytes());
    }

    #[test]
    fn tables_much_larger_too_small_or_of_narrow_row_groups_are_not_used() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = WORTH.start() / 32;
        let drop_table = |rows: usize, width: usize| drop(Table::new(vec![[0; 4]; rows], width));
        drop_table(2 * rows, WIDE);
        assert_eq!(table(rows, WIDE).unwrap().capacity(), rows);
        assert_eq!(table(2 * rows, WIDE - 1).unwrap().capacity(), 2 * rows);
        assert_eq!(kept(), Some(2 * rows));
        assert_eq!(table(2 * rows - 10, WIDE).unwrap().capacity(), 2 * rows);
        assert_eq!(kept(), None);
        drop_table(rows - 1, WIDE);
        drop_table(rows, WIDE - 1);
        assert_eq!(kept(), None);
    }

    #[test]
    fn a_larger_table_is_kept_while_some_smaller_ones_come_and_go_but_not_for_ever() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = WORTH.start() / 32;
        let drop_table = |rows: usize| drop(Table::new(vec![[0; 4]; rows], WIDE));
        drop_table(2 * rows);
        for _ in 0..PATIENCE {
            drop_table(rows);
            assert_eq!(kept(), Some(2 * rows));
        }
        drop_table(rows);
        assert_eq!(kept(), Some(rows));
        drop_table(3 * rows);
        assert_eq!(kept(), Some(3 * rows));
        assert_eq!(table(3 * rows, WIDE).unwrap().capacity(), 3 * rows);
        assert_eq!(kept(), None);
    }
}
