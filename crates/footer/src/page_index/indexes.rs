//! Page indexes: where the pages of a column chunk are, and the bounds of their values.
//!
//! All decoded indexes share a few tables ([`crate::page_index::tables`]); an index is a view of its part of
//! them.
//!
//! Source: [page index](https://github.com/apache/parquet-format/blob/master/PageIndex.md).

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Fault, Result};
use crate::open::buffer::FooterBytes;
use crate::page_index::entries::{ColumnEntry, OffsetEntry, Words};
use crate::page_index::tables::Tables;
use crate::schema::enums::BoundaryOrder;
use crate::thrift::dump;
use crate::thrift::format::{COLUMN_INDEX, OFFSET_INDEX, StructDef};

/// Where a data page is (`PageLocation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLocation {
    /// Where the page's header starts in the file.
    pub offset: i64,
    /// The size of the page in bytes, including its header.
    pub compressed_page_size: i32,
    /// The row of the row group that the page starts with.
    pub first_row_index: i64,
}

/// Where the data pages of a column chunk are (`OffsetIndex`).
///
/// Accessors cost a few loads.
#[derive(Clone)]
pub struct OffsetIndex {
    pub(crate) tables: Arc<Tables>,
    pub(crate) entry: OffsetEntry,
}

/// The bounds of a column chunk's data pages (`ColumnIndex`). Bounds are slices of the bytes it was decoded
/// from, which it owns.
///
/// Accessors cost a few loads.
#[derive(Clone)]
pub struct ColumnIndex {
    pub(crate) tables: Arc<Tables>,
    pub(crate) entry: ColumnEntry,
}

/// The page indexes of the decoded column chunks of a footer.
///
/// Accessors unpack an entry and count a reference: some nanoseconds, no allocation.
#[derive(Debug, Clone, Default)]
pub struct PageIndexes {
    pub(crate) columns: usize,
    pub(crate) offset: Vec<Words<4>>,
    pub(crate) column: Vec<Words<8>>,
    pub(crate) tables: Arc<Tables>,
}

impl PageIndexes {
    /// The offset index of a chunk, by the positions of its row group and column among the decoded ones.
    pub fn offset_index(&self, row_group: usize, column: usize) -> Option<OffsetIndex> {
        let words = (column < self.columns).then(|| self.offset.get(row_group * self.columns + column))??;
        OffsetEntry::unpack(*words).map(|entry| OffsetIndex { tables: Arc::clone(&self.tables), entry })
    }

    /// The column index of a chunk, by the positions of its row group and column among the decoded ones.
    pub fn column_index(&self, row_group: usize, column: usize) -> Option<ColumnIndex> {
        let words = (column < self.columns).then(|| self.column.get(row_group * self.columns + column))??;
        ColumnEntry::unpack(*words).map(|entry| ColumnIndex { tables: Arc::clone(&self.tables), entry })
    }

    /// Heap memory in bytes, including the bounds.
    pub fn heap_bytes(&self) -> usize {
        self.offset.capacity() * size_of::<Words<4>>()
            + self.column.capacity() * size_of::<Words<8>>()
            + self.tables.heap_bytes()
    }
}

impl OffsetIndex {
    /// Decodes an offset index.
    ///
    /// Costs one walk over the bytes.
    ///
    /// # Errors
    ///
    /// The bytes are not an `OffsetIndex`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut tables = Tables::default();
        let entry = tables.offset_index(bytes, 0).map_err(|fault| explain(bytes, &OFFSET_INDEX, fault))?;
        Ok(Self { tables: Arc::new(tables), entry })
    }

    /// The pages, in row order.
    pub fn page_locations(&self) -> &[PageLocation] {
        self.tables.pages(&self.entry)
    }

    /// For byte arrays, the total length of each page's values in bytes, without their length prefixes.
    pub fn unencoded_byte_array_data_bytes(&self) -> Option<&[i64]> {
        self.tables.numbers(self.entry.sizes)
    }
}

impl PartialEq for OffsetIndex {
    fn eq(&self, other: &Self) -> bool {
        self.page_locations() == other.page_locations()
            && self.unencoded_byte_array_data_bytes() == other.unencoded_byte_array_data_bytes()
    }
}

impl fmt::Debug for OffsetIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffsetIndex")
            .field("page_locations", &self.page_locations())
            .field("unencoded_byte_array_data_bytes", &self.unencoded_byte_array_data_bytes())
            .finish()
    }
}

impl ColumnIndex {
    /// Decodes a column index.
    ///
    /// Costs one walk over the bytes.
    ///
    /// # Errors
    ///
    /// The bytes are not a `ColumnIndex`, or its lists differ in length.
    pub fn decode(bytes: impl Into<FooterBytes>) -> Result<Self> {
        let bytes = bytes.into();
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::new("expected a column index of less than 4 GiB"));
        }
        let mut tables = Tables::default();
        let entry = tables
            .column_index(bytes.as_slice(), 0)
            .map_err(|fault| explain(bytes.as_slice(), &COLUMN_INDEX, fault))?;
        tables.keep(bytes);
        Ok(Self { tables: Arc::new(tables), entry })
    }

    /// The number of data pages.
    pub fn num_pages(&self) -> usize {
        self.entry.null_pages.len as usize
    }

    /// Whether a page contains only nulls; its bounds are then meaningless.
    pub fn is_null_page(&self, page: usize) -> Option<bool> {
        // 1 means true for both element types that writers use for the list.
        self.tables.null_pages(&self.entry).get(page).map(|&byte| byte == 1)
    }

    /// A page's lower bound as stored in the file; empty for null pages.
    pub fn min_value(&self, page: usize) -> Option<&[u8]> {
        self.tables.bound(&self.entry, self.entry.min_values(), page)
    }

    /// A page's upper bound as stored in the file; empty for null pages.
    pub fn max_value(&self, page: usize) -> Option<&[u8]> {
        self.tables.bound(&self.entry, self.entry.max_values(), page)
    }

    /// How the bounds of consecutive pages are ordered.
    pub fn boundary_order(&self) -> BoundaryOrder {
        BoundaryOrder::from_number(self.entry.boundary_order)
    }

    /// The number of nulls in each page.
    pub fn null_counts(&self) -> Option<&[i64]> {
        self.tables.numbers(self.entry.null_counts())
    }

    /// The number of NaNs in each page.
    pub fn nan_counts(&self) -> Option<&[i64]> {
        self.tables.numbers(self.entry.nan_counts())
    }

    /// How often each repetition level occurs, page by page.
    pub fn repetition_level_histograms(&self) -> Option<&[i64]> {
        self.tables.numbers(self.entry.repetition_level_histograms())
    }

    /// How often each definition level occurs, page by page.
    pub fn definition_level_histograms(&self) -> Option<&[i64]> {
        self.tables.numbers(self.entry.definition_level_histograms())
    }
}

impl fmt::Debug for ColumnIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages: Vec<_> = (0..self.num_pages())
            .map(|page| (self.is_null_page(page), self.min_value(page), self.max_value(page)))
            .collect();
        f.debug_struct("ColumnIndex")
            .field("pages", &pages)
            .field("boundary_order", &self.boundary_order())
            .field("null_counts", &self.null_counts())
            .field("nan_counts", &self.nan_counts())
            .field("repetition_level_histograms", &self.repetition_level_histograms())
            .field("definition_level_histograms", &self.definition_level_histograms())
            .finish()
    }
}

/// The error for a fault in a page index.
pub(crate) fn explain(bytes: &[u8], def: &'static StructDef, fault: Fault) -> Error {
    Error::new(fault.kind.to_string())
        .at_path(dump::path_of(bytes, 0, def, fault.at))
        .with_advice("the page index is damaged: read the file without it, or write it again")
}
