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
//! # Open a file and list its columns
//!
//! ```
//! # fn list(path: &std::path::Path) -> Result<(), sawmill_footer::Error> {
//! use sawmill_footer::Footer;
//!
//! let footer = Footer::open(path)?;
//! for leaf in footer.schema().leaves() {
//!     println!("{}: {:?}", leaf.path(), leaf.physical_type());
//! }
//! for group in footer.row_groups() {
//!     for chunk in group.columns() {
//!         let statistics = chunk.statistics()?; // decoded here, borrowed from the footer
//!         println!("{} {} bytes, {:?}", chunk.path(), chunk.compressed_size(), statistics);
//!     }
//! }
//! # Ok(())
//! # }
//! # list(std::path::Path::new("../../fixtures/foreign/pyarrow_plain.parquet"))?;
//! # Ok::<(), sawmill_footer::Error>(())
//! ```
//!
//! # Project: some columns, some row groups
//!
//! ```
//! # fn project(path: &std::path::Path) -> Result<(), sawmill_footer::Error> {
//! use sawmill_footer::{Footer, Options};
//!
//! // Other columns are skipped: that takes two thirds of the time, and no memory.
//! let options = Options::new().column_globs(["m*e"]).row_groups(0..1);
//! let footer = Footer::open_with(path, &options)?;
//! for chunk in footer.row_groups().flat_map(|group| group.columns()) {
//!     println!("{} at {:?}", chunk.path(), chunk.byte_range());
//! }
//! # Ok(())
//! # }
//! # project(std::path::Path::new("../../fixtures/foreign/pyarrow_plain.parquet"))?;
//! # Ok::<(), sawmill_footer::Error>(())
//! ```
//!
//! # Many files
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
//! use sawmill_footer::{Footer, Options};
//!
//! let paths = ["a.parquet", "b.parquet"];
//! let rows = AtomicI64::new(0);
//! Footer::open_many(&paths, &Options::new().threads(2), |file, footer| {
//!     match footer {
//!         Ok(footer) => _ = rows.fetch_add(footer.num_rows(), Relaxed),
//!         Err(error) => eprintln!("{}: {error}", paths[file]),
//!     }
//!     ControlFlow::Continue(())
//! });
//! ```
//!
//! Each footer is decoded with the knowledge of earlier ones. A [`Decoder`] does the same for callers that open footers
//! one by one.
//!
//! # Hand it to arrow-rs, 3 of 10,000 columns
//!
//! With the feature of the `parquet` release that you use: `parquet-59` or `parquet-60`.
//!
//! ```toml
//! sawmill-footer = { version = "0.1", features = ["parquet-59"] }
//! parquet = "59"
//! ```
//!
//! ```
//! # #[cfg(feature = "parquet-59")]
//! # fn read(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
//! use sawmill_footer::{Footer, Options};
//!
//! let footer = Footer::open_with(path, &Options::new().column_roots(["a", "b", "c"]))?;
//! let metadata = ArrowReaderMetadata::try_new(footer.to_parquet_59(None)?.into(), Default::default())?;
//! let file = std::fs::File::open(path)?;
//! for batch in ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).build()? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! For `parquet` 60 it is `to_parquet_60`, with the same arguments.
//!
//! # From an asynchronous client
//!
//! Implement `AsyncRangeReader` (feature `async`), which is a length and a read of a range, and call
//! `Footer::read_async`; it needs no runtime. [`FooterRequest`] does the same without a trait: it says which bytes it
//! needs next.
//!
//! # From `parquet` to this crate
//!
//! | `parquet` | here | costs |
//! |---|---|---|
//! | `ParquetMetaDataReader::new().parse_and_finish(&file)` | [`Footer::open`] | one read, one walk; 32 bytes a chunk |
//! | `ParquetMetaDataReader::decode_metadata(bytes)` | [`Footer::decode`]; [`Decoder::decode`] one after the other | one walk |
//! | `ParquetMetaDataPushDecoder`, `AsyncFileReader` | [`FooterRequest`], [`FetchedRanges`]; `AsyncRangeReader` (feature `async`) | your I/O, the same walk |
//! | `ParquetMetaDataOptions::with_column_stats_policy` | [`Options::statistics`] | nothing: statistics are decoded on request |
//! | `metadata.file_metadata().schema_descr()` | [`Footer::schema`], [`Schema::leaves`] | decoded once, 32 bytes an element |
//! | `metadata.file_metadata().key_value_metadata()` | [`Footer::key_value_metadata`] | borrowed from the footer |
//! | `metadata.row_group(i).column(j)` | [`Footer::column_chunk`] | an index into a table |
//! | `column.total_compressed_size()`, `.compression()`, `.byte_range()` | [`ColumnChunk::compressed_size`], [`ColumnChunk::codec`], [`ColumnChunk::byte_range`] | a load |
//! | `column.statistics()` | [`ColumnChunk::statistics`] | decodes one struct, borrowed |
//! | `column.bloom_filter_offset()`, `.offset_index_offset()` | [`ColumnChunk::locations`] | walks one chunk |
//! | `column.page_encoding_stats()`, `.definition_level_histogram()` | [`ColumnChunk::details`] | walks one chunk, allocates its lists |
//! | `PageIndexPolicy`, `metadata.column_index()` | [`Options::page_indexes`], [`Footer::read_page_indexes`] | reads of neighbours together; a few shared tables |
//! | `ArrowReaderMetadata::load` | `Footer::to_parquet_59` or `to_parquet_60`, `ArrowReaderMetadata::try_new` (features `parquet-59`, `parquet-60`) | what `parquet` takes to decode the wanted chunks |
//! | the same, with `PageIndexPolicy::Optional` | `Footer::to_parquet_59_with_page_indexes`, `to_parquet_60_with_page_indexes` | also reads and decodes the wanted columns' page indexes |
//!
//! `to_parquet_*` gives `parquet` the converted columns as it would have decoded them itself, and nothing of the
//! others. It leaves out encrypted columns (only `parquet` can decrypt their metadata: open such files with it) and
//! columns with types, codecs or encodings that `parquet` does not know. Columns of geospatial types keep their
//! statistics; `VARIANT` converts as `parquet` has it.
//!
//! `examples/three_of_many_columns.rs` reads 3 of 10,000 columns with arrow-rs, `examples/datafusion` queries
//! them with DataFusion, `examples/object_store.rs` opens footers and page indexes from an asynchronous client.
//!
//! # Features
//!
//! Only `fast` is on by default. The decoder needs only `std`.
//!
//! | feature | adds |
//! |---|---|
//! | `fast` | all `unsafe` code: the AVX2 kernel, prefetches, huge pages, `Footer::open_mapped`; without it the crate forbids `unsafe` |
//! | `async` | `AsyncRangeReader`, `Footer::read_async`, `Footer::read_page_indexes_async` |
//! | `parquet-59`, `parquet-60` | `Footer::to_parquet_59` and `to_parquet_60`, the same with page indexes, `from_parquet_59` and `from_parquet_60`, `enums_as_text_59`, `annotated_59`; that release of `parquet` |
//!
//! # Rooms
//!
//! | room | what it does |
//! |---|---|
//! | `open` | opens files and reads their tails, one or many at a time |
//! | `thrift` | reads and dumps the Thrift compact protocol |
//! | `decode` | walks `FileMetaData` and its row groups, several at once if their starts can be guessed |
//! | `matching` | compares column chunks with their neighbours' shape instead of parsing them |
//! | `schema` | the schema's elements, their types, and selections of columns |
//! | `chunk` | row groups and column chunks, statistics and page headers on demand |
//! | `page_index` | finds and decodes column and offset indexes |
//! | `memory` | fallible allocation, huge pages, prefetches |
//! | `interop` | conversion to the `parquet` crate's metadata (features `parquet-59`, `parquet-60`) |
//!
//! No input makes this crate panic, read out of bounds, recurse without bound or allocate more than a small multiple of
//! its own length. An [`Error`] names the byte offset, the Thrift path and the expected value.
//!
//! The format:
//! [parquet.thrift](https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift) in
//! the Thrift compact protocol.

#![cfg_attr(not(feature = "fast"), forbid(unsafe_code))]
#![cfg_attr(feature = "fast", deny(unsafe_code))]

mod chunk;
mod decode;
mod error;
mod footer;
#[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
mod interop;
mod matching;
mod memory;
mod open;
mod options;
mod page_index;
mod schema;
mod thrift;
#[cfg(any(test, feature = "parquet-59", feature = "parquet-60"))]
#[path = "interop/writer.rs"]
mod thrift_writer;

#[cfg(test)]
#[path = "../tests/footer/synthetic.rs"]
mod synthetic;

pub use chunk::column_chunk::ColumnChunk;
pub use chunk::details::{ChunkDetails, ColumnCryptoMetaData};
pub use chunk::encryption::{AesParameters, EncryptionAlgorithm};
pub use chunk::pages::{ChunkPage, ChunkPages};
pub use chunk::row_group::RowGroup;
pub use chunk::statistics::{
    BoundingBox, GeospatialStatistics, PageEncodingStats, SizeStatistics, Statistics,
};
pub use decode::decoder::Decoder;
pub use decode::scan::SortingColumn;
pub use error::Error;
pub use footer::Footer;
#[cfg(feature = "parquet-59")]
pub use interop::{annotated_59, enums_as_text_59};
pub use matching::kernel::Method;
#[cfg(feature = "async")]
pub use open::asynchronous::AsyncRangeReader;
pub use open::buffer::FooterBytes;
pub use open::request::{FetchedRanges, FooterRequest, NextStep};
pub use open::source::RangeReader;
pub use options::{
    DEFAULT_MAX_FOOTER, DEFAULT_MAX_PAGE_INDEXES, Options, PageIndexPolicy, StatisticsPolicy, Verify,
};
pub use page_index::indexes::{ColumnIndex, OffsetIndex, PageIndexes, PageLocation};
pub use schema::arena::Schema;
pub use schema::columns::ColumnSelector;
pub use schema::element::Element;
pub use schema::enums::{
    BoundaryOrder, Codec, ColumnOrder, ConvertedType, EdgeInterpolationAlgorithm, Encoding, EncodingSet,
    PageType, PhysicalType, Repetition,
};
pub use schema::logical::{LogicalType, TimeUnit};
pub use thrift::dump::{DumpLine, DumpValue, Root, dump};
