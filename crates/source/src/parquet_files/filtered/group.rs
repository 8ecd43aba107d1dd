//! The rows of one row group that pass a condition.

use std::ops::Range;

use parquet::arrow::arrow_reader::RowSelection;

use crate::condition::pruning::intersection;

/// Rows of a row group that are filtered at once. The state of a row takes at most 16 bytes in each reading
/// thread.
pub(crate) const WINDOW_ROWS: u64 = 1 << 20;

/// Rows that are read again if one of them passes: fewer than most pages have.
pub(crate) const BLOCK_ROWS: u64 = 1024;

/// The rows of a row group that pass.
pub(crate) struct FilteredGroup {
    pub rows: u64,
    pub reading: Reading,
}

/// The part of a row group to read.
pub(crate) enum Reading {
    None,
    All,
    Some {
        /// Rows that may pass, in ascending order.
        candidates: Vec<Range<u64>>,
        /// How many of every [`WINDOW_ROWS`] rows pass.
        passing: Vec<u64>,
    },
}

impl FilteredGroup {
    /// A row group without a condition: all rows in `kept` pass. `None` means that no row is deleted.
    pub fn whole(rows: u64, kept: Option<Vec<Range<u64>>>) -> Self {
        let Some(candidates) = kept else { return Self { rows, reading: Reading::All } };
        let window = |n: u64| Range { start: n * WINDOW_ROWS, end: (n + 1) * WINDOW_ROWS };
        let count = |n: u64| -> u64 {
            intersection(&candidates, &[window(n)]).iter().map(|rows| rows.end - rows.start).sum()
        };
        let passing = (0..rows.div_ceil(WINDOW_ROWS)).map(count).collect();
        Self { rows, reading: Reading::Some { candidates, passing } }
    }

    /// How many rows pass.
    pub fn passing(&self) -> u64 {
        match &self.reading {
            Reading::None => 0,
            Reading::All => self.rows,
            Reading::Some { passing, .. } => passing.iter().sum(),
        }
    }

    /// Returns the rows of a window that may pass.
    pub fn candidates(&self, window: usize) -> Vec<Range<u64>> {
        let start = window as u64 * WINDOW_ROWS;
        match &self.reading {
            Reading::Some { candidates, .. } => {
                intersection(candidates, &[Range { start, end: self.rows.min(start + WINDOW_ROWS) }])
            }
            Reading::None | Reading::All => Vec::new(),
        }
    }

    /// Returns the same rows for the reader.
    pub fn selection(&self, window: usize) -> RowSelection {
        let ranges = self.candidates(window).into_iter();
        let ranges = ranges.map(|rows| rows.start as usize..rows.end as usize);
        RowSelection::from_consecutive_ranges(ranges, self.rows as usize)
    }
}

/// Where rows pass, as ranges of whole blocks, at most one for each block.
#[derive(Default)]
pub(crate) struct PassingPlaces {
    pub ranges: Vec<Range<u64>>,
    /// A range of the candidates, and how many candidates are before it.
    at: usize,
    before: u64,
}

impl PassingPlaces {
    /// Adds a run of candidates that pass, given by their numbers; each run comes after the last one.
    pub fn add(&mut self, candidates: &[Range<u64>], mut run: Range<u64>) {
        while let Some(range) = candidates.get(self.at).filter(|_| !run.is_empty()) {
            let length = range.end - range.start;
            if run.start >= self.before + length {
                self.before += length;
                self.at += 1;
                continue;
            }
            let start = range.start + (run.start - self.before);
            let few = (run.end - run.start).min(range.end - start);
            self.push(start..start + few);
            run.start += few;
        }
    }

    fn push(&mut self, rows: Range<u64>) {
        let start = rows.start - rows.start % BLOCK_ROWS;
        let end = rows.end.next_multiple_of(BLOCK_ROWS);
        match self.ranges.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => self.ranges.push(start..end),
        }
    }
}
