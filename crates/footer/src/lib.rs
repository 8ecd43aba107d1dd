//! Parquet footers, decoded into flat metadata.
//!
//! ```text
//! file ──tail──▶ footer's bytes ──walk──▶ Footer { bytes, Schema (one arena), Rows (32 bytes a chunk) }
//!                                            │
//!                                            └──▶ RowGroup ──▶ ColumnChunk ──on demand──▶ statistics, ...
//! ```
//!
//! A [`Footer`] owns the footer's bytes. Decoding walks them once and keeps of every column chunk what
//! plans are made from, plus the place of its struct; everything else is decoded from there when asked
//! for, as slices of the bytes. [`Options`] say which columns and row groups to keep.
//!
//! No input makes this crate panic, read out of bounds, recurse without bound or allocate more than a
//! small multiple of its own length. An [`Error`] names the byte offset, the Thrift path and what was
//! expected there.
//!
//! The format: [parquet.thrift](https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift)
//! in the Thrift compact protocol.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_values;
#[cfg(target_arch = "x86_64")]
mod bmi2;
mod boundary;
mod buffer;
mod carried;
mod check;
mod chunk;
mod chunk_pages;
mod columns;
mod decode;
mod details;
mod directory;
mod dump;
mod element;
mod element_kinds;
mod encryption;
mod ending;
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "ends_elsewhere.rs"
)]
mod ends;
mod engine;
mod enums;
mod error;
mod footer;
mod format;
mod glob;
mod groups;
mod index;
mod index_pass;
mod indexed_chunk;
mod indexed_footer;
#[cfg(feature = "parquet")]
mod interop;
#[cfg(feature = "parquet")]
mod interop_arrow;
#[cfg(feature = "parquet")]
mod interop_schema;
mod kernel;
mod locations;
mod logical;
mod many;
#[cfg(all(unix, target_pointer_width = "64"))]
mod mapped;
mod memory;
mod names;
mod opener;
mod options;
#[cfg(feature = "page-checksums")]
mod page_checksums;
mod page_index;
mod page_index_entries;
mod page_index_read;
mod page_index_tables;
mod page_index_usual;
mod pages;
mod parts;
mod portable;
mod resolve;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod ring;
mod row;
mod row_group;
mod rows;
mod saved_index;
mod scan;
mod schema;
mod shape;
mod source;
mod spare;
mod statistics;
mod synthetic;
mod tail;
mod thrift;
mod thrift_writer;
mod trace;
mod tree;
mod whole_file;

pub use buffer::FooterBytes;
pub use check::Finding;
pub use chunk::ColumnChunk;
pub use chunk_pages::{ChunkPage, ChunkPages};
pub use columns::ColumnSelector;
pub use details::{ChunkDetails, ColumnCryptoMetaData};
pub use dump::{DumpLine, DumpValue, Root, dump};
pub use element::Element;
pub use encryption::{AesParameters, EncryptionAlgorithm};
pub use enums::{
    BoundaryOrder, Codec, ColumnOrder, ConvertedType, EdgeInterpolationAlgorithm, Encoding, EncodingSet,
    PageType, PhysicalType, Repetition,
};
pub use error::Error;
pub use footer::Footer;
pub use index::FooterIndex;
pub use indexed_chunk::IndexedChunk;
pub use indexed_footer::IndexedFooter;
pub use kernel::Method;
pub use logical::{LogicalType, TimeUnit};
pub use options::{
    DEFAULT_MAX_FOOTER, DEFAULT_TAIL_HINT, Options, PageIndexPolicy, StatisticsPolicy, Verify,
};
#[cfg(feature = "page-checksums")]
pub use page_checksums::{PageChecksums, WrongChecksum, page_checksums};
pub use page_index::{ColumnIndex, OffsetIndex, PageIndexes, PageLocation};
pub use row_group::RowGroup;
pub use scan::SortingColumn;
pub use schema::Schema;
pub use source::RangeReader;
pub use statistics::{BoundingBox, GeospatialStatistics, PageEncodingStats, SizeStatistics, Statistics};
pub use synthetic::{SyntheticColumns, SyntheticFooter};
pub use thrift_writer::ThriftWriter;
