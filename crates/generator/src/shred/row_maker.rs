//! Rows that a program of their own computes, in place of fields that draw their values one by one.
//!
//! The shredder asks a [`RowCursor`] for ranges of rows; all else (pages, statistics, Arrow batches, layouts) is
//! the same as for drawn rows.

use std::fmt;
use std::ops::Range;

use crate::benchmark::Benchmark;
use crate::shred::block::LeafBuffer;

/// Computes the rows of a dataset of flat columns. A row depends on its number alone.
pub(crate) trait RowMaker: Send + Sync {
    /// The benchmark that the rows are of.
    fn benchmark(&self) -> Benchmark;

    /// A cursor over the rows; each thread has its own.
    fn cursor(&self) -> Box<dyn RowCursor + '_>;
}

/// Appends ranges of rows. Ranges that follow one another are cheapest.
pub(crate) trait RowCursor: Send {
    /// Appends exactly one value for each of `rows` to each required leaf. An optional leaf gets one definition level
    /// for each row, and only the values that are not null.
    fn append(&mut self, rows: Range<u64>, leaves: &mut [LeafBuffer]);
}

impl fmt::Debug for dyn RowMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows of {}", self.benchmark())
    }
}

impl fmt::Debug for dyn RowCursor + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cursor")
    }
}
