//! A column chunk as tables and JSON show it.

use sawmill_footer::{Codec, ColumnChunk};
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

impl<'a> ChunkRecord<'a> {
    pub(crate) fn new(chunk: &ColumnChunk<'_>, column: &'a Column) -> Self {
        let number = |value: i64| chunk.has_metadata().then_some(value);
        Self {
            row_group: chunk.row_group().index(),
            column: chunk.leaf(),
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
