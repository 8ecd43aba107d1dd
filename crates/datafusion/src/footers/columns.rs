//! The columns of footers' tables.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FooterLevel {
    /// A column chunk.
    Chunk,
    /// A row group.
    RowGroup,
    /// A file.
    File,
}

impl FooterLevel {
    /// The levels, with their names in SQL.
    pub(crate) const ALL: [(&str, Self); 3] =
        [("chunk", Self::Chunk), ("row_group", Self::RowGroup), ("file", Self::File)];

    pub(crate) fn columns(self) -> &'static [FooterColumn] {
        use FooterColumn::*;
        match self {
            Self::Chunk => &[
                File,
                RowGroup,
                RowGroupRows,
                Column,
                Path,
                PhysicalType,
                LogicalType,
                Codec,
                Encodings,
                NumValues,
                CompressedBytes,
                UncompressedBytes,
                DataPageOffset,
                DictionaryPageOffset,
                NullCount,
                DistinctCount,
                Min,
                Max,
                Encrypted,
            ],
            Self::RowGroup => {
                &[File, RowGroup, RowGroupRows, NumColumns, CompressedBytes, UncompressedBytes, FileOffset]
            }
            Self::File => {
                &[File, FileBytes, FooterBytes, NumRows, NumRowGroups, NumColumns, Version, CreatedBy]
            }
        }
    }

    /// The schema of the columns at `places`, of all without places.
    pub(crate) fn schema(self, places: Option<&[usize]>) -> SchemaRef {
        let columns = self.columns();
        let fields: Vec<Field> = match places {
            Some(places) => {
                places.iter().filter_map(|place| columns.get(*place)).map(|c| c.field()).collect()
            }
            None => columns.iter().map(|column| column.field()).collect(),
        };
        Arc::new(Schema::new(fields))
    }
}

/// A column of one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FooterColumn {
    File,
    FileBytes,
    FooterBytes,
    NumRows,
    NumRowGroups,
    NumColumns,
    Version,
    CreatedBy,
    RowGroup,
    RowGroupRows,
    FileOffset,
    Column,
    Path,
    PhysicalType,
    LogicalType,
    Codec,
    Encodings,
    NumValues,
    CompressedBytes,
    UncompressedBytes,
    DataPageOffset,
    DictionaryPageOffset,
    NullCount,
    DistinctCount,
    Min,
    Max,
    Encrypted,
}

impl FooterColumn {
    fn field(self) -> Field {
        use FooterColumn::*;
        let (name, kind, nullable) = match self {
            File => ("file", DataType::Utf8View, false),
            FileBytes => ("file_bytes", DataType::Int64, true),
            FooterBytes => ("footer_bytes", DataType::Int64, false),
            NumRows => ("num_rows", DataType::Int64, false),
            NumRowGroups => ("num_row_groups", DataType::Int64, false),
            NumColumns => ("num_columns", DataType::Int64, false),
            Version => ("version", DataType::Int64, false),
            CreatedBy => ("created_by", DataType::Utf8View, true),
            RowGroup => ("row_group", DataType::Int64, false),
            RowGroupRows => ("row_group_rows", DataType::Int64, false),
            FileOffset => ("file_offset", DataType::Int64, true),
            Column => ("column", DataType::Int64, false),
            Path => ("path", DataType::Utf8View, false),
            PhysicalType => ("physical_type", DataType::Utf8View, false),
            LogicalType => ("logical_type", DataType::Utf8View, true),
            Codec => ("codec", DataType::Utf8View, true),
            Encodings => ("encodings", DataType::Utf8View, false),
            NumValues => ("num_values", DataType::Int64, true),
            CompressedBytes => ("compressed_bytes", DataType::Int64, true),
            UncompressedBytes => ("uncompressed_bytes", DataType::Int64, true),
            DataPageOffset => ("data_page_offset", DataType::Int64, true),
            DictionaryPageOffset => ("dictionary_page_offset", DataType::Int64, true),
            NullCount => ("null_count", DataType::Int64, true),
            DistinctCount => ("distinct_count", DataType::Int64, true),
            Min => ("min", DataType::Utf8View, true),
            Max => ("max", DataType::Utf8View, true),
            Encrypted => ("encrypted", DataType::Boolean, false),
        };
        Field::new(name, kind, nullable)
    }
}
