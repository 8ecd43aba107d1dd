//! Observers of encoded rows.

use super::layout::{BoundColumn, ColumnLayout};

/// Receives each encoded row once, for example to compute a sum. `()` ignores them.
pub trait RowObserver {
    /// Receives the rows after the rows of the last call.
    fn rows(&mut self, rows: &EncodedRows<'_>);
}

impl RowObserver for () {
    fn rows(&mut self, _rows: &EncodedRows<'_>) {}
}

/// Consecutive encoded rows of a batch.
pub struct EncodedRows<'a> {
    pub(super) bytes: &'a [u8],
    /// The start and the end of each row in `bytes`.
    pub(super) starts: &'a [u32],
    pub(super) ends: &'a [u32],
    pub(super) bound: &'a [BoundColumn<'a>],
    pub(super) layouts: &'a [ColumnLayout],
}

impl EncodedRows<'_> {
    /// Returns the bytes of each row: its number of fields, and for each field the length and the value.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.iter().zip(self.ends).map(|(start, end)| &self.bytes[*start as usize..*end as usize])
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the number of non-NULL values of each column.
    pub fn non_null(&self) -> impl Iterator<Item = usize> {
        self.bound.iter().zip(self.layouts).map(|(column, layout)| match column {
            BoundColumn::Null => 0,
            _ => self.row_count() - layout.valid.nulls_among(self.row_count()),
        })
    }
}
