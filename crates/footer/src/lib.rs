//! Parquet footers, decoded into flat metadata.
//!
//! ```text
//! file ──tail──▶ footer's bytes ──walk──▶ Footer { bytes, Schema (one arena), Rows (32 bytes per chunk) }
//!                                            │
//!                                            └──▶ RowGroup ──▶ ColumnChunk ──on demand──▶ statistics, ...
//! ```
//!
//! A [`Footer`] owns the footer's bytes. Decoding walks them once and stores for every column chunk what
//! planning needs, plus the offset of its struct; everything else is decoded from there on demand, as slices
//! of the bytes. [`Options`] select the columns and row groups to decode.
//!
//! | room | what it does |
//! |---|---|
//! | `open` | opens files and reads their tails, one or many at a time |
//! | `thrift` | reads, writes, traces and dumps the Thrift compact protocol |
//! | `decode` | walks `FileMetaData` and its row groups, in parallel if their starts can be guessed |
//! | `matching` | compares column chunks with their neighbours' shape instead of parsing them |
//! | `schema` | the schema's elements, their types, and selections of columns |
//! | `chunk` | row groups and column chunks, statistics and page headers on demand |
//! | `page_index` | finds and decodes column and offset indexes |
//! | `saved_index` | saves and reopens the offset of each chunk's struct |
//! | `check` | checks a footer against itself, its file and its page indexes |
//! | `memory` | fallible allocation, huge pages, reusable tables |
//! | `interop` | conversion to the `parquet` crate's metadata (feature `parquet`) |
//!
//! No input makes this crate panic, read out of bounds, recurse without bound or allocate more than a small
//! multiple of its own length. An [`Error`] names the byte offset, the Thrift path and what was expected
//! there.
//!
//! The format:
//! [parquet.thrift](https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift) in
//! the Thrift compact protocol.

mod check;
mod chunk;
mod decode;
mod error;
mod footer;
#[cfg(feature = "parquet")]
mod interop;
mod matching;
mod memory;
mod open;
mod options;
mod page_index;
mod saved_index;
mod schema;
mod synthetic;
mod thrift;

pub use check::Finding;
pub use chunk::column_chunk::ColumnChunk;
pub use chunk::details::{ChunkDetails, ColumnCryptoMetaData};
pub use chunk::encryption::{AesParameters, EncryptionAlgorithm};
#[cfg(feature = "page-checksums")]
pub use chunk::page_checksums::{PageChecksums, WrongChecksum, page_checksums};
pub use chunk::pages::{ChunkPage, ChunkPages};
pub use chunk::row_group::RowGroup;
pub use chunk::statistics::{
    BoundingBox, GeospatialStatistics, PageEncodingStats, SizeStatistics, Statistics,
};
pub use decode::scan::SortingColumn;
pub use error::Error;
pub use footer::Footer;
pub use matching::kernel::Method;
pub use open::buffer::FooterBytes;
pub use open::source::RangeReader;
pub use options::{DEFAULT_MAX_FOOTER, Options, PageIndexPolicy, StatisticsPolicy, Verify};
pub use page_index::indexes::{ColumnIndex, OffsetIndex, PageIndexes, PageLocation};
pub use saved_index::index::FooterIndex;
pub use saved_index::indexed_chunk::IndexedChunk;
pub use saved_index::indexed_footer::IndexedFooter;
pub use schema::arena::Schema;
pub use schema::columns::ColumnSelector;
pub use schema::element::Element;
pub use schema::enums::{
    BoundaryOrder, Codec, ColumnOrder, ConvertedType, EdgeInterpolationAlgorithm, Encoding, EncodingSet,
    PageType, PhysicalType, Repetition,
};
pub use schema::logical::{LogicalType, TimeUnit};
pub use synthetic::{SyntheticColumns, SyntheticFooter};
pub use thrift::dump::{DumpLine, DumpValue, Root, dump};
pub use thrift::writer::ThriftWriter;
