//! The layout of a dataset: its rows in files, row groups and pages.
//!
//! Row `i` is the same in every layout; the layout only determines its place. A [`Part`] is a subset of the
//! files, each the same as in the whole dataset.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The default rows of a page: sixteen blocks.
pub(crate) const PAGE_ROWS: u64 = 16_384;

/// The default rows of a row group: 128 Ki, eight pages. A thread holds one row group in memory, and the
/// loader loads one row group as a unit of work.
pub const ROW_GROUP_ROWS: u64 = 131_072;

/// The largest expected size of a row group before compression, for any number of rows: 1 GiB. Each thread
/// holds one row group.
pub const MAX_GROUP_BYTES: u64 = 1 << 30;

/// The most files of a dataset; their names have five digits.
pub(crate) const MAX_FILES: u32 = 100_000;

/// The most rows of a row group, which a thread holds in memory.
pub const MAX_GROUP_ROWS: u64 = 1 << 24;

/// Part `index` of `of` parts of a dataset: a range of its files.
///
/// ```
/// use sawmill_generator::Part;
/// let part: Part = "2/3".parse()?;
/// assert_eq!((part.index(), part.parts()), (2, 3));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    index: u32,
    of: u32,
}

impl Part {
    /// The whole dataset.
    pub const WHOLE: Self = Part { index: 1, of: 1 };

    /// The number of the part, from 1.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The number of parts.
    pub fn parts(self) -> u32 {
        self.of
    }

    /// All parts of a dataset divided into `of`.
    pub(crate) fn all(of: u32) -> impl Iterator<Item = Self> {
        (1..=of).map(move |index| Part { index, of })
    }

    /// Its files among `files`.
    pub fn files(self, files: u32) -> Range<u32> {
        let bound = |k: u32| (u64::from(files) * u64::from(k) / u64::from(self.of)) as u32;
        bound(self.index - 1)..bound(self.index)
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u32>().ok();
        match text.split_once('/').map(|(k, n)| (number(k), number(n))) {
            Some((Some(index), Some(of))) if (1..=of).contains(&index) => Ok(Part { index, of }),
            _ => Err(format!("{text:?} is not a part: use k/n with k from 1 to n, like 2/8")),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// A layout. `Layout::new(rows, files)?` fills in the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// Rows of the dataset.
    pub rows: u64,
    /// The number of files. Rows are spread evenly, unless `rows_per_file` is set.
    pub files: u32,
    /// Rows of each file except the last, which has the rest.
    pub rows_per_file: Option<u64>,
    /// Rows of a row group; the last one of a file may have fewer.
    pub row_group_rows: u64,
    /// Rows of a page; the last one of a row group may have fewer.
    pub page_rows: u64,
    /// Bytes at which a row group ends early.
    pub row_group_bytes: GroupBytes,
}

/// The bytes at which a row group ends early, after the page that reaches them. This depends on the rows
/// alone, so it ends at the same row in every run. The number of rows in a row group is based on an average;
/// this limit applies where long values are rare or clustered.
///
/// A thread uses at most twice [`raw`](Self::raw) plus the memory of 1,024 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupBytes {
    /// Bytes in the file; with folders, in the largest folder.
    pub stored: Option<u64>,
    /// Bytes before compression; with folders, in all folders.
    pub raw: u64,
}

impl GroupBytes {
    /// A quarter more than `stored` bytes in the file and `raw` bytes in memory, so row groups of average
    /// size do not end early.
    pub fn around(stored: Option<u64>, raw: u64) -> Self {
        let more = |bytes: u64| bytes.saturating_add(bytes / 4);
        GroupBytes { stored: stored.map(more), raw: more(raw) }
    }

    /// Whether a row group with these bytes ends.
    pub(crate) fn reached(&self, stored: u64, raw: u64) -> bool {
        raw >= self.raw || self.stored.is_some_and(|most| stored >= most)
    }

    /// The bytes at which the rows that are drawn together end.
    pub(crate) fn drawn(&self) -> usize {
        usize::try_from(self.raw).unwrap_or(usize::MAX)
    }
}

impl Default for GroupBytes {
    fn default() -> Self {
        Self::around(None, MAX_GROUP_BYTES)
    }
}

/// A row group to make: the unit of work. It becomes several row groups if it reaches its bytes early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedGroup {
    pub file: usize,
    /// Its position among the row groups of its file.
    pub row_group: usize,
    /// Rows, numbered over the whole dataset.
    pub rows: Range<u64>,
}

impl Layout {
    /// A layout with row groups of [`ROW_GROUP_ROWS`] and pages of 16,384 rows.
    ///
    /// # Errors
    /// `files` is 0 or more than 100,000.
    pub fn new(rows: u64, files: u32) -> Result<Self> {
        if files == 0 || files > MAX_FILES {
            return Err(Error::spec(format!("{files} files"), "the layout", format!("use 1 to {MAX_FILES}")));
        }
        if rows > i64::MAX as u64 {
            return Err(Error::spec(
                format!("{rows} rows"),
                "the layout",
                "use at most 2^63 - 1: Parquet counts rows in 63 bits",
            ));
        }
        Ok(Layout {
            rows,
            files,
            rows_per_file: None,
            row_group_rows: ROW_GROUP_ROWS,
            page_rows: PAGE_ROWS,
            row_group_bytes: GroupBytes::default(),
        })
    }

    /// A layout with `per_file` rows in each file except the last.
    ///
    /// # Errors
    /// Files have no rows, or there are more than 100,000.
    pub fn with_rows_per_file(rows: u64, per_file: u64) -> Result<Self> {
        let files = match per_file {
            0 => return Err(Error::spec("files without rows", "the layout", "use 1 or more rows per file")),
            n => rows.div_ceil(n).max(1),
        };
        let files = u32::try_from(files).unwrap_or(u32::MAX);
        Ok(Layout { rows_per_file: Some(per_file), ..Layout::new(rows, files)? })
    }

    /// The same with pages of at most `rows`.
    ///
    /// # Errors
    /// `rows` is 0 or more than 2^24.
    pub fn with_page_rows(self, rows: u64) -> Result<Self> {
        Ok(Layout { page_rows: checked(rows, "pages")?, ..self })
    }

    /// The same with row groups of `rows`.
    ///
    /// # Errors
    /// `rows` is 0 or more than 2^24: each thread holds a row group in memory.
    pub fn with_row_group_rows(self, rows: u64) -> Result<Self> {
        Ok(Layout { row_group_rows: checked(rows, "row groups")?, ..self })
    }

    /// The same with row groups that end at these bytes, even if they have fewer rows.
    pub fn with_row_group_bytes(self, bytes: GroupBytes) -> Self {
        Layout { row_group_bytes: bytes, ..self }
    }

    /// The rows of file `file`.
    pub fn file_rows(&self, file: u32) -> Range<u64> {
        if let Some(each) = self.rows_per_file {
            let bound = |f: u32| each.saturating_mul(f.into()).min(self.rows);
            return bound(file)..bound(file + 1);
        }
        let bound = |f: u32| (u128::from(self.rows) * u128::from(f) / u128::from(self.files)) as u64;
        bound(file)..bound(file + 1)
    }

    /// The row groups of file `file`, if none ends early at its bytes.
    pub fn row_groups(&self, file: u32) -> u64 {
        let rows = self.file_rows(file);
        (rows.end - rows.start).div_ceil(self.row_group_rows)
    }

    /// The rows of a part.
    pub fn part_rows(&self, part: Part) -> u64 {
        let files = part.files(self.files);
        match files.is_empty() {
            true => 0,
            false => self.file_rows(files.end - 1).end - self.file_rows(files.start).start,
        }
    }

    /// All row groups of `files`, `writers` files at a time: one row group of each in turn.
    pub(crate) fn planned_groups(&self, files: Vec<u32>, writers: usize) -> PlannedGroups<'_> {
        PlannedGroups {
            layout: self,
            files: files.into_iter(),
            writers: writers.max(1),
            under_way: VecDeque::new(),
        }
    }
}

/// The rows of `each`, if a thread can hold them.
fn checked(rows: u64, each: &str) -> Result<u64> {
    if rows == 0 || rows > MAX_GROUP_ROWS {
        let what = format!("{each} of {rows} rows");
        return Err(Error::spec(what, "the layout", format!("use 1 to {MAX_GROUP_ROWS}")));
    }
    Ok(rows)
}

/// Planned row groups, in the order of their making.
#[derive(Debug)]
pub(crate) struct PlannedGroups<'a> {
    layout: &'a Layout,
    /// Files that have not begun.
    files: std::vec::IntoIter<u32>,
    writers: usize,
    /// Files that have begun, each with its next row group.
    under_way: VecDeque<(u32, u64)>,
}

impl Iterator for PlannedGroups<'_> {
    type Item = PlannedGroup;

    fn next(&mut self) -> Option<PlannedGroup> {
        while self.under_way.len() < self.writers {
            let Some(file) = self.files.next() else { break };
            if self.layout.row_groups(file) > 0 {
                self.under_way.push_back((file, 0));
            }
        }
        let (file, group) = self.under_way.pop_front()?;
        if group + 1 < self.layout.row_groups(file) {
            self.under_way.push_back((file, group + 1));
        }
        let rows = self.layout.file_rows(file);
        let start = rows.start + group * self.layout.row_group_rows;
        let end = rows.end.min(start + self.layout.row_group_rows);
        Some(PlannedGroup { file: file as usize, row_group: group as usize, rows: start..end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn planned_groups_cover_every_row_once_in_order(
            rows in 0u64..100_000, files in 1u32..50, group in 1u64..5_000,
        ) {
            let layout = Layout::new(rows, files).unwrap().with_row_group_rows(group).unwrap();
            let mut next = 0;
            let mut per_file = vec![0usize; files as usize];
            for unit in layout.planned_groups((0..files).collect(), 1) {
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

        #[test]
        fn the_number_of_writers_only_changes_the_order_of_planned_groups(
            rows in 0u64..10_000, per_file in 1u64..3_000, group in 1u64..900, writers in 1usize..6,
        ) {
            let layout = Layout::with_rows_per_file(rows, per_file).unwrap();
            let layout = layout.with_row_group_rows(group).unwrap();
            let files: Vec<u32> = (0..layout.files).collect();
            let mut units: Vec<PlannedGroup> = layout.planned_groups(files.clone(), writers).collect();
            let mut begun: Vec<usize> = Vec::new();
            for unit in &units {
                // Row groups of a file are in order, and at most `writers` files are open.
                begun.resize(begun.len().max(unit.file + 1), 0);
                prop_assert_eq!(unit.row_group, begun[unit.file]);
                begun[unit.file] += 1;
                let open = begun.iter().enumerate().filter(|(f, n)| {
                    **n > 0 && (**n as u64) < layout.row_groups(*f as u32)
                });
                prop_assert!(open.count() <= writers);
            }
            units.sort_by_key(|unit| unit.rows.start);
            prop_assert_eq!(units, layout.planned_groups(files, 1).collect::<Vec<_>>());
        }

        #[test]
        fn parts_contain_every_file_once(files in 1u32..200, of in 1u32..20) {
            let all: Vec<u32> = (1..=of).flat_map(|index| Part { index, of }.files(files)).collect();
            prop_assert_eq!(all, (0..files).collect::<Vec<_>>());
            let layout = Layout::new(1000, files).unwrap();
            let rows: u64 = (1..=of).map(|index| layout.part_rows(Part { index, of })).sum();
            prop_assert_eq!(rows, 1000);
        }
    }

    #[test]
    fn a_part_is_parsed_from_its_display_and_nonsense_is_refused() {
        assert_eq!("3/8".parse::<Part>().unwrap().to_string(), "3/8");
        for bad in ["", "1", "0/2", "3/2", "a/2", "1/0", "1/2/3"] {
            assert!(bad.parse::<Part>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_impossible_layout_is_refused() {
        assert!(Layout::with_rows_per_file(10, 0).is_err());
        assert!(Layout::with_rows_per_file(u64::MAX >> 1, 1).is_err());
        assert!(Layout::new(1, 1).unwrap().with_page_rows(0).is_err());
        assert!(Layout::new(1, 0).is_err());
        assert!(Layout::new(1, MAX_FILES + 1).is_err());
        assert!(Layout::new(u64::MAX, 1).is_err());
        assert!(Layout::new(1, 1).unwrap().with_row_group_rows(0).is_err());
    }
}
