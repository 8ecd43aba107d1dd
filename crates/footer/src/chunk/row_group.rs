//! A row group of a decoded footer.

use std::fmt;

use crate::chunk::column_chunk::ColumnChunk;
use crate::decode::scan::{RowGroupFields, SortingColumn};
use crate::footer::Footer;

/// A row group of a [`Footer`].
///
/// Accessors cost a load.
#[derive(Clone, Copy)]
pub struct RowGroup<'a> {
    pub(crate) footer: &'a Footer,
    /// Always less than the number of decoded row groups.
    pub(crate) position: usize,
}

impl<'a> RowGroup<'a> {
    fn fields(&self) -> &'a RowGroupFields {
        &self.footer.decoded.row_groups[self.position].fields
    }

    /// The footer that it belongs to.
    pub fn footer(&self) -> &'a Footer {
        self.footer
    }

    /// The row group's index in the file.
    pub fn index(&self) -> usize {
        self.footer.decoded.row_groups[self.position].index as usize
    }

    /// The row group's position among the decoded ones.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The number of rows.
    pub fn num_rows(&self) -> i64 {
        self.fields().num_rows
    }

    /// The size of all column chunks before compression in bytes, including headers.
    pub fn total_byte_size(&self) -> i64 {
        self.fields().total_byte_size
    }

    /// The size of all column chunks in the file in bytes; `None` if the file does not state it.
    pub fn total_compressed_size(&self) -> Option<i64> {
        self.fields().total_compressed_size
    }

    /// Where the row group's first page starts in the file; `None` if the file does not state it.
    pub fn file_offset(&self) -> Option<i64> {
        self.fields().file_offset
    }

    /// The row group's ordinal as the file states it.
    pub fn ordinal(&self) -> Option<i16> {
        self.fields().ordinal
    }

    /// The columns that the rows are sorted by, most significant first; `None` if the file does not state
    /// them.
    pub fn sorting_columns(&self) -> Option<&'a [SortingColumn]> {
        self.fields().sorting_columns.as_deref()
    }

    /// Where the row group's struct starts in the footer.
    pub fn footer_offset(&self) -> usize {
        self.fields().at as usize
    }

    /// The number of decoded columns.
    pub fn num_columns(&self) -> usize {
        self.footer.num_columns()
    }

    /// The chunk of the `position`-th decoded column. If all columns are decoded, `position` is the leaf
    /// index.
    #[inline]
    pub fn column(&self, position: usize) -> Option<ColumnChunk<'a>> {
        let columns = self.num_columns();
        if position >= columns {
            return None;
        }
        Some(ColumnChunk { group: *self, position, row: self.position * columns + position })
    }

    /// The chunk of a schema leaf, if it was decoded.
    ///
    /// Costs a binary search if columns were selected.
    pub fn column_of_leaf(&self, leaf: usize) -> Option<ColumnChunk<'a>> {
        self.column(self.footer.position_of(leaf)?)
    }

    /// The chunks of all decoded columns.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = ColumnChunk<'a>> + use<'a> {
        let group = *self;
        let first = group.position * group.num_columns();
        (0..group.num_columns()).map(move |position| ColumnChunk { group, position, row: first + position })
    }
}

impl fmt::Debug for RowGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroup")
            .field("index", &self.index())
            .field("num_rows", &self.num_rows())
            .field("total_byte_size", &self.total_byte_size())
            .field("columns", &self.num_columns())
            .finish()
    }
}
