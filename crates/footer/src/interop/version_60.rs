//! Conversion to and from metadata of the `parquet` crate 60 (feature `parquet-60`).

use {arrow_ipc60 as arrow_ipc, arrow_schema60 as arrow_schema, parquet60 as parquet};

#[path = "arrow.rs"]
mod arrow;
#[path = "metadata.rs"]
mod metadata;
#[path = "page_indexes.rs"]
mod page_indexes;
#[path = "projection.rs"]
mod projection;
#[path = "row_groups.rs"]
mod row_groups;
#[path = "schema.rs"]
mod schema;

use self::parquet::basic::ColumnOrder as TheirOrder;
use self::parquet::file::metadata::ParquetMetaData;
use self::parquet::schema::types::ColumnDescriptor;
use crate::chunk::row_group::RowGroup;
use crate::error::Error;
use crate::footer::Footer;
use crate::open::source::RangeReader;
use crate::options::Options;
use crate::schema::enums::ColumnOrder;
use page_indexes::Wanted;

impl Footer {
    /// The decoded row groups as metadata of the `parquet` crate 60, with the columns of these leaves, which
    /// must all be decoded, or with all decoded columns that can be read. The latter excludes encrypted
    /// columns, those with types, codecs or encodings that the crate does not know
    /// ([`crate::ColumnChunk::readable`] says why), and the other columns of a map that holds one.
    ///
    /// Pass it to `ArrowReaderMetadata::try_new`; the reader then reads the pages from the same file. The
    /// columns of the result are renumbered in leaf order. Page indexes are not included: see
    /// [`Footer::to_parquet_60_with_page_indexes`].
    ///
    /// Costs what the crate takes to decode the wanted chunks, and a copy of their structs unless all are wanted. The
    /// crate's form of the schema stays with the [`Schema`](crate::Schema), up to 1,024 columns: the next conversion
    /// with the same columns costs less, of this footer or of another one that has the same schema from
    /// [`Options::schema`], a [`Decoder`](crate::Decoder) or [`Footer::open_many`].
    ///
    /// # Errors
    ///
    /// A column was not decoded, cannot be read ([`crate::ColumnChunk::readable`]) or is wanted without the
    /// other columns of its map; or its metadata is malformed.
    pub fn to_parquet_60(&self, leaves: Option<&[usize]>) -> Result<ParquetMetaData, Error> {
        metadata::to_parquet(self, leaves)
    }

    /// Like [`Footer::to_parquet_60`], with the page indexes of the columns of the result, which are read
    /// from the file. They are what the crate reads with `PageIndexPolicy::Optional`: column indexes may be
    /// missing; if an offset index is, the crate's release 59 leaves out all of them. An index that is malformed, or
    /// whose pages are not within its column chunk, counts as missing.
    ///
    /// Only the indexes of these columns are read, neighbours together. Callers with I/O of their own fetch
    /// [`Footer::page_index_ranges`] and pass them as [`FetchedRanges`](crate::FetchedRanges).
    ///
    /// # Errors
    ///
    /// As for [`Footer::to_parquet_60`]; or bytes cannot be read.
    pub fn to_parquet_60_with_page_indexes<R: RangeReader + ?Sized>(
        &self,
        leaves: Option<&[usize]>,
        reader: &R,
    ) -> Result<ParquetMetaData, Error> {
        page_indexes::read(self, metadata::to_parquet(self, leaves)?, Wanted::Both, reader)
    }

    /// Like [`Footer::to_parquet_60_with_page_indexes`], without column indexes, which are not read: for readers that
    /// skip pages by their rows alone.
    ///
    /// # Errors
    ///
    /// As for [`Footer::to_parquet_60_with_page_indexes`].
    pub fn to_parquet_60_with_offset_indexes<R: RangeReader + ?Sized>(
        &self,
        leaves: Option<&[usize]>,
        reader: &R,
    ) -> Result<ParquetMetaData, Error> {
        page_indexes::read(self, metadata::to_parquet(self, leaves)?, Wanted::OffsetIndexes, reader)
    }

    /// The decoded columns that [`Footer::to_parquet_60`] leaves out unless they are named, by their leaves, each with
    /// what is wrong with it.
    ///
    /// Costs some nanoseconds a chunk, and the making of each column's type.
    pub fn unreadable_by_parquet_60(&self) -> Vec<(usize, Error)> {
        metadata::unreadable(self)
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
