//! What sees rows when they are encoded.

use super::layout::{BoundColumn, ColumnLayout};

/// Sees each row that is encoded once, for example to sum rows up. `()` looks at none.
pub trait RowObserver {
    /// Rows that follow those of the last call.
    fn rows(&mut self, rows: &EncodedRows<'_>);
}

impl RowObserver for () {
    fn rows(&mut self, _rows: &EncodedRows<'_>) {}
}

/// Some rows of a batch, as they were encoded.
pub struct EncodedRows<'a> {
    pub(super) bytes: &'a [u8],
    /// Where each row begins and ends in `bytes`.
    pub(super) starts: &'a [u32],
    pub(super) ends: &'a [u32],
    pub(super) bound: &'a [BoundColumn<'a>],
    pub(super) layouts: &'a [ColumnLayout],
}

impl EncodedRows<'_> {
    /// The bytes of each row: its number of fields, and of each field the length and the value.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.iter().zip(self.ends).map(|(start, end)| &self.bytes[*start as usize..*end as usize])
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.starts.len()
    }

    /// Of each column the number of values that are not NULL.
    pub fn non_null(&self) -> impl Iterator<Item = usize> {
        self.bound.iter().zip(self.layouts).map(|(column, layout)| match column {
            BoundColumn::Null => 0,
            _ => self.row_count() - layout.valid.nulls_among(self.row_count()),
        })
    }
}
