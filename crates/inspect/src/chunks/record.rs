//! A column chunk as tables and JSON show it, whether its footer was decoded or an index located it.

use sawmill_footer::{Codec, ColumnChunk, IndexedChunk};
use serde::Serialize;

use crate::file::column::Column;
use crate::text::json::shown;
use crate::text::style::TextStyle;

/// What the footer states of a column chunk. The fields that the footer of an encrypted chunk hides are
/// `None`.
#[derive(Serialize)]
pub(crate) struct ChunkRecord<'a> {
    pub row_group: usize,
    /// The column's index in the file.
    pub column: usize,
    pub path: &'a str,
    pub physical_type: &'a str,
    pub logical_type: Option<&'a str>,
    #[serde(serialize_with = "shown")]
    pub codec: Option<Codec>,
    pub encodings: Vec<String>,
    pub num_values: Option<i64>,
    pub compressed_bytes: Option<i64>,
    pub uncompressed_bytes: Option<i64>,
    pub data_page_offset: Option<i64>,
    pub dictionary_page_offset: Option<i64>,
    /// The first byte of the chunk's pages.
    #[serde(skip)]
    pub first_byte: u64,
}

/// Both kinds of chunks have these methods, and no trait in common.
macro_rules! record {
    ($chunk:expr, $row_group:expr, $index:expr, $column:expr) => {{
        let (chunk, column) = ($chunk, $column);
        let number = |value: i64| chunk.has_metadata().then_some(value);
        ChunkRecord {
            row_group: $row_group,
            column: $index,
            path: &column.path,
            physical_type: &column.physical_type,
            logical_type: column.logical_type.as_deref(),
            codec: chunk.has_metadata().then(|| chunk.codec()),
            encodings: chunk.encodings().iter().map(|encoding| encoding.to_string()).collect(),
            num_values: number(chunk.num_values()),
            compressed_bytes: number(chunk.compressed_size()),
            uncompressed_bytes: number(chunk.uncompressed_size()),
            data_page_offset: number(chunk.data_page_offset()),
            dictionary_page_offset: chunk.dictionary_page_offset(),
            first_byte: chunk.byte_range().start,
        }
    }};
}

impl<'a> ChunkRecord<'a> {
    pub(crate) fn of(chunk: &ColumnChunk<'_>, column: &'a Column) -> Self {
        record!(chunk, chunk.row_group().index(), chunk.leaf(), column)
    }

    pub(crate) fn of_indexed(chunk: &IndexedChunk<'_>, column: &'a Column) -> Self {
        record!(chunk, chunk.row_group(), chunk.column(), column)
    }

    /// `INT64 (TIMESTAMP(MICROS,true))`
    pub(crate) fn kind(&self) -> String {
        match self.logical_type {
            Some(logical) => format!("{} ({logical})", self.physical_type),
            None => self.physical_type.to_owned(),
        }
    }

    pub(crate) fn codec(&self) -> String {
        self.codec.map_or_else(none, |codec| codec.to_string())
    }

    pub(crate) fn values(&self, style: &TextStyle) -> String {
        self.num_values.map_or_else(none, |values| style.stated_count(values))
    }

    pub(crate) fn compressed(&self, style: &TextStyle) -> String {
        self.compressed_bytes.map_or_else(none, |bytes| style.stated_bytes(bytes))
    }

    pub(crate) fn uncompressed(&self, style: &TextStyle) -> String {
        self.uncompressed_bytes.map_or_else(none, |bytes| style.stated_bytes(bytes))
    }

    pub(crate) fn first_byte(&self, style: &TextStyle) -> String {
        self.data_page_offset.map_or_else(none, |_| style.count(self.first_byte))
    }
}

/// A cell of a table without a value.
pub(crate) fn none() -> String {
    "-".to_owned()
}
