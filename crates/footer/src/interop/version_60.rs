//! Conversion to and from metadata of the `parquet` crate 60 (feature `parquet-60`).

use {arrow_ipc60 as arrow_ipc, arrow_schema60 as arrow_schema, parquet60 as parquet};

#[path = "arrow.rs"]
mod arrow;
#[path = "metadata.rs"]
mod metadata;
#[path = "schema.rs"]
mod schema;

use self::parquet::basic::ColumnOrder as TheirOrder;
use self::parquet::file::metadata::ParquetMetaData;
use self::parquet::schema::types::ColumnDescriptor;
use crate::chunk::row_group::RowGroup;
use crate::error::Error;
use crate::footer::Footer;
use crate::options::Options;
use crate::schema::enums::ColumnOrder;

impl Footer {
    /// The decoded row groups as metadata of the `parquet` crate 60, with the columns of these leaves, which
    /// must all be decoded, or with all decoded columns that can be read. The latter excludes encrypted
    /// columns, those with types, codecs or encodings that the crate does not know
    /// ([`crate::ColumnChunk::readable`] says why), and the other columns of a map that holds one.
    ///
    /// Pass it to `ArrowReaderMetadata::try_new`; the reader then reads the pages from the same file. The
    /// columns of the result are renumbered in leaf order. Page indexes are not included.
    ///
    /// # Errors
    ///
    /// A column was not decoded, cannot be read ([`crate::ColumnChunk::readable`]) or is wanted without the
    /// other columns of its map; or its metadata is malformed.
    pub fn to_parquet_60(&self, leaves: Option<&[usize]>) -> Result<ParquetMetaData, Error> {
        metadata::to_parquet(self, leaves)
    }

    /// Converts metadata of the `parquet` crate 60 to a footer, by way of the bytes that the crate writes for
    /// it.
    ///
    /// # Errors
    ///
    /// The crate cannot write the metadata.
    pub fn from_parquet_60(metadata: &ParquetMetaData, options: &Options) -> Result<Self, Error> {
        metadata::from_parquet(metadata, options)
    }
}

/// The order in which a column's bounds are compared.
#[expect(deprecated, reason = "no other public function knows a type's own order")]
fn column_order(order: ColumnOrder, column: &ColumnDescriptor) -> TheirOrder {
    match order {
        ColumnOrder::TypeOrder => TheirOrder::TYPE_DEFINED_ORDER(TheirOrder::sort_order_for_type(
            column.logical_type_ref(),
            column.converted_type(),
            column.physical_type(),
            true,
        )),
        ColumnOrder::Ieee754TotalOrder => TheirOrder::IEEE_754_TOTAL_ORDER,
        ColumnOrder::Int96TimestampOrder => TheirOrder::INT96_TIMESTAMP_ORDER,
        ColumnOrder::Unknown(_) => TheirOrder::UNKNOWN,
    }
}

/// A row group's ordinal, or its index.
fn ordinal(group: &RowGroup<'_>) -> Option<i32> {
    group.ordinal().map(i32::from).or_else(|| i32::try_from(group.index()).ok())
}
