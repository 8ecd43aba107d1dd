//! How the rows of a dataset are laid out: files, row groups, pages.
//!
//! Row `i` is the same row in every layout; the layout only says where it stands.

use std::ops::Range;

use crate::error::Error;

/// Rows of a page where nothing else is asked for: sixteen blocks.
pub const PAGE_ROWS: u64 = 16_384;

/// Rows of a row group where nothing else is asked for: 128 Ki, eight pages. A row group is what
/// one thread holds in memory, and what the loader takes as one unit of work.
pub const ROW_GROUP_ROWS: u64 = 131_072;

/// Most files of one dataset; their names have five digits.
pub const MOST_FILES: u32 = 100_000;

/// A layout. `Layout::new(rows, files)?` fills in the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// Rows of the dataset.
    pub rows: u64,
    /// Files that they are spread over, as evenly as whole rows allow.
    pub files: u32,
    /// Rows of a row group; the last one of a file may have fewer.
    pub row_group_rows: u64,
    /// Rows of a page; the last one of a row group may have fewer.
    pub page_rows: u64,
}

/// A row group to be made: the unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub file: usize,
    /// Its place among the row groups of its file.
    pub row_group: usize,
    /// Rows, numbered over the whole dataset.
    pub rows: Range<u64>,
}

impl Layout {
    /// A layout with row groups of [`ROW_GROUP_ROWS`] and pages of [`PAGE_ROWS`].
    ///
    /// # Errors
    /// With no files, or more than [`MOST_FILES`].
    pub fn new(rows: u64, files: u32) -> Result<Self, Error> {
        if files == 0 || files > MOST_FILES {
            let what = format!("{files} files");
            return Err(Error::spec(what, "the layout", format!("give 1 to {MOST_FILES}")));
        }
        if rows > i64::MAX as u64 {
            return Err(Error::spec(format!("{rows} rows"), "the layout", "Parquet counts rows in 63 bits"));
        }
        Ok(Layout { rows, files, row_group_rows: ROW_GROUP_ROWS, page_rows: PAGE_ROWS })
    }

    /// The same with row groups of `rows`.
    ///
    /// # Errors
    /// With no rows, or more than 2^24: a row group is held in memory by each thread.
    pub fn with_row_group_rows(self, rows: u64) -> Result<Self, Error> {
        const MOST: u64 = 1 << 24;
        if rows == 0 || rows > MOST {
            let what = format!("row groups of {rows} rows");
            return Err(Error::spec(what, "the layout", format!("give 1 to {MOST}")));
        }
        Ok(Layout { row_group_rows: rows, ..self })
    }

    /// The rows of file `file`.
    pub(crate) fn file_rows(&self, file: u32) -> Range<u64> {
        let bound = |f: u32| (u128::from(self.rows) * u128::from(f) / u128::from(self.files)) as u64;
        bound(file)..bound(file + 1)
    }

    /// Row groups of file `file`.
    pub(crate) fn row_groups(&self, file: u32) -> u64 {
        let rows = self.file_rows(file);
        (rows.end - rows.start).div_ceil(self.row_group_rows)
    }

    /// All row groups, file after file.
    pub(crate) fn units(&self) -> impl Iterator<Item = Unit> + '_ {
        (0..self.files).flat_map(move |file| {
            let rows = self.file_rows(file);
            (0..self.row_groups(file)).map(move |group| {
                let start = rows.start + group * self.row_group_rows;
                let end = rows.end.min(start + self.row_group_rows);
                Unit { file: file as usize, row_group: group as usize, rows: start..end }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn units_cover_every_row_once_in_order(
            rows in 0u64..100_000, files in 1u32..50, group in 1u64..5_000,
        ) {
            let layout = Layout::new(rows, files).unwrap().with_row_group_rows(group).unwrap();
            let mut next = 0;
            let mut per_file = vec![0usize; files as usize];
            for unit in layout.units() {
                prop_assert_eq!(unit.rows.start, next);
                prop_assert!(!unit.rows.is_empty() && unit.rows.end - unit.rows.start <= group);
                prop_assert_eq!(unit.row_group, per_file[unit.file]);
                per_file[unit.file] += 1;
                next = unit.rows.end;
            }
            prop_assert_eq!(next, rows);
            let sizes: Vec<u64> = (0..files).map(|f| layout.file_rows(f)).map(|r| r.end - r.start).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn an_impossible_layout_is_refused() {
        assert!(Layout::new(1, 0).is_err());
        assert!(Layout::new(1, MOST_FILES + 1).is_err());
        assert!(Layout::new(u64::MAX, 1).is_err());
        assert!(Layout::new(1, 1).unwrap().with_row_group_rows(0).is_err());
    }
}
