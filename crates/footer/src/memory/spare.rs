//! Tables of rows, and the spare table of a dropped footer, which the next footer reuses.
//!
//! Writing to untouched memory is slow: the system provides it page by page and clears each page. That took a
//! fifth of the time of a footer of 10,000 columns or more. So the process keeps one table of wide row
//! groups; the system may reclaim a large one's pages when memory is short. Tables of narrow row groups are
//! not kept: their rows are written at scattered addresses, and pages that the system has just cleared are at
//! least in the caches. Reusing a table was slower there.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use crate::chunk::rows::Packed;
use crate::memory::allocate;
use crate::memory::pages;

/// The range of table sizes worth keeping, in bytes.
const WORTH: std::ops::RangeInclusive<usize> = 1 << 20..=64 << 20;

/// The memory kept.
struct Spare {
    rows: Vec<Packed>,
    /// How many smaller tables were dropped since it was last used.
    passed_over: usize,
}

static SPARE: Mutex<Option<Spare>> = Mutex::new(None);

/// A table is kept while this many smaller ones come and go. Otherwise, dropping a footer of one row group
/// would discard the memory for a whole file, a fifth of the time of 100,000 columns.
const PATIENCE: usize = 8;

/// Tables of at least this size may be reclaimed by the system. Smaller ones mostly have small pages, and
/// writing to each for the first time again takes as long as reuse saves.
const LARGE: usize = 8 << 20;

/// Row groups of at least this many decoded columns are wide.
const WIDE: usize = 1_000;

/// The rows of a footer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    rows: Vec<Packed>,
    /// Whether its memory is worth keeping for the next footer.
    keeps: bool,
}

impl Table {
    /// The rows of row groups with `width` decoded columns.
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

/// Keeps a table's memory for the next footer, replacing the one kept unless that is larger.
fn keep(mut rows: Vec<Packed>) {
    if rows.capacity() * size_of::<Packed>() >= LARGE {
        pages::give_back(&mut rows);
    }
    // Rather drop the table than wait for another thread.
    let Ok(mut spare) = SPARE.try_lock() else { return };
    let superfluous = match &mut *spare {
        Some(kept) if kept.rows.capacity() > rows.capacity() && kept.passed_over < PATIENCE => {
            kept.passed_over += 1;
            Some(rows)
        }
        _ => spare.replace(Spare { rows, passed_over: 0 }).map(|before| before.rows),
    };
    drop(spare);
    // After releasing the lock: freeing memory takes the system a while.
    drop(superfluous);
}

/// A table of `len` rows, of any content, for row groups of `width` decoded columns: the spare one if its size is
/// close. `None` if memory is short.
pub(crate) fn table(len: usize, width: usize) -> Option<Vec<Packed>> {
    // A footer should not hold much more memory than it needs.
    let fits = |spare: &mut Spare| (len..=len + len / 8).contains(&spare.rows.capacity());
    let spare = match width {
        ..WIDE => None,
        WIDE.. => SPARE.try_lock().ok().and_then(|mut spare| spare.take_if(fits)),
    };
    match spare {
        Some(Spare { mut rows, .. }) => {
            rows.resize(len, Packed::default());
            Some(rows)
        }
        None => {
            let mut rows = allocate::zeroed(len)?;
            pages::advise(&mut rows);
            Some(rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::{PATIENCE, SPARE, Table, WIDE, WORTH, table};
    use crate::synthetic::{SyntheticColumns, SyntheticFooter};
    use crate::{Footer, Options};

    /// The spare table is process-wide: only one test may use it at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    fn kept() -> Option<usize> {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|spare| spare.rows.capacity())
    }

    #[test]
    fn a_footer_reuses_the_previous_table_but_none_of_its_rows() {
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
    fn tables_too_large_too_small_or_of_narrow_row_groups_are_not_reused() {
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
    fn a_larger_table_outlives_some_smaller_ones_but_not_for_ever() {
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
