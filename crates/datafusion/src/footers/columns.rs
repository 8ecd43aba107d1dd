//! The columns of footers' tables.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cluster", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
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

    /// The columns of this level's table, in their order.
    pub(crate) fn columns(self) -> Vec<FooterColumn> {
        let here = |column: &FooterColumn| column.levels().contains(&self);
        FooterColumn::ALL.iter().copied().filter(here).collect()
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

/// Whether a column may be null.
macro_rules! nullable {
    (null) => {
        true
    };
    (required) => {
        false
    };
}

/// Defines the columns: name in SQL, type, whether it may be null, and the tables that have it.
macro_rules! columns {
    ($($column:ident $name:literal $kind:ident $null:ident in $($level:ident),+;)+) => {
        /// A column of one of the tables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum FooterColumn {
            $($column,)+
        }

        impl FooterColumn {
            /// All columns, in the order in which each table has its columns.
            const ALL: &[Self] = &[$(Self::$column,)+];

            fn levels(self) -> &'static [FooterLevel] {
                match self {
                    $(Self::$column => &[$(FooterLevel::$level),+],)+
                }
            }

            fn field(self) -> Field {
                match self {
                    $(Self::$column => Field::new($name, DataType::$kind, nullable!($null)),)+
                }
            }
        }
    };
}

columns! {
    File "file" Utf8View required in Chunk, RowGroup, File;
    FileBytes "file_bytes" Int64 null in File;
    FooterBytes "footer_bytes" Int64 required in File;
    NumRows "num_rows" Int64 required in File;
    NumRowGroups "num_row_groups" Int64 required in File;
    RowGroup "row_group" Int64 required in Chunk, RowGroup;
    RowGroupRows "row_group_rows" Int64 required in Chunk, RowGroup;
    NumColumns "num_columns" Int64 required in RowGroup, File;
    Version "version" Int64 required in File;
    CreatedBy "created_by" Utf8View null in File;
    Column "column" Int64 required in Chunk;
    Path "path" Utf8View required in Chunk;
    PhysicalType "physical_type" Utf8View required in Chunk;
    LogicalType "logical_type" Utf8View null in Chunk;
    Codec "codec" Utf8View null in Chunk;
    Encodings "encodings" Utf8View required in Chunk;
    NumValues "num_values" Int64 null in Chunk;
    CompressedBytes "compressed_bytes" Int64 null in Chunk, RowGroup;
    UncompressedBytes "uncompressed_bytes" Int64 null in Chunk, RowGroup;
    FileOffset "file_offset" Int64 null in RowGroup;
    DataPageOffset "data_page_offset" Int64 null in Chunk;
    DictionaryPageOffset "dictionary_page_offset" Int64 null in Chunk;
    NullCount "null_count" Int64 null in Chunk;
    DistinctCount "distinct_count" Int64 null in Chunk;
    Min "min" Utf8View null in Chunk;
    Max "max" Utf8View null in Chunk;
    Encrypted "encrypted" Boolean required in Chunk;
}
