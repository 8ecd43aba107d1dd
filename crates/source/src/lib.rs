//! Reads Parquet files and delimited text as Arrow batches, planned as units of rows.
//!
//! ```text
//! files ─ footers ─▶ ParquetFiles ─ condition ─▶ Filtered ─ plan ─▶ units ─ reader ─▶ batches of rows
//!                                       └── row groups and pages that statistics exclude are not read
//! ```
//!
//! A [`Source`] plans [`Unit`]s: ranges of rows of one row group, the same in every run, so that a consumer
//! can record which are done. A [`UnitReader`] decodes one unit after the other, in batches.
//!
//! ```
//! # use std::sync::{Arc, atomic::AtomicBool};
//! # use arrow_array::{Float64Array, RecordBatch};
//! use sawmill_source::{Control, ParquetFiles, Source};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("taxi.parquet");
//! # let fares = Arc::new(Float64Array::from(vec![4.5, 12.0, 52.0])) as _;
//! # let batch = RecordBatch::try_from_iter([("fare", fares)])?;
//! # let mut writer = parquet::arrow::ArrowWriter::try_new(std::fs::File::create(&path)?, batch.schema(), None)?;
//! # writer.write(&batch)?;
//! # writer.close()?;
//! # let (cancel, profile) = (AtomicBool::new(false), sawmill_profile::Profile::new());
//! # let phase = profile.phase("read");
//! # let control = Control::new(&cancel, &phase);
//! let files = ParquetFiles::open(&[&path])?;
//! let source = files.filtered("fare > 10".parse()?, &control)?;
//! let mut reader = source.reader(4096);
//! for unit in source.plan(256 << 10).concat() {
//!     reader.start(&unit)?;
//!     while let Some(batch) = reader.next_batch()? {
//!         println!("{} rows", batch.num_rows());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | room | content |
//! |---|---|
//! | `units` | the `Source` trait: files, units of their rows, readers of batches |
//! | `parquet_files` | opens, plans and decodes Parquet files; skips what statistics exclude |
//! | `delimited` | the same for delimited text such as CSV: boundaries of records, inferred types (feature `csv`) |
//! | `condition` | parses conditions and tests them on rows, statistics and folder names |
//! | `hive` | columns whose values are in folder names such as `year=2020` |
//! | `columns` | selects and renames columns; finds a common type for the columns of several files |
//! | `ordered` | rows sorted by time and partition by partition, through an index on disk |
//! | `limited` | the first rows of a source |
//! | `traced` | rows that say which file they come from, and whether a condition is true for them |
//! | `generated_rows` | datasets of the generator as a source (feature `generated`) |

mod columns;
mod condition;
#[cfg(feature = "csv")]
mod delimited;
#[cfg(feature = "generated")]
mod generated_rows;
mod hive;
mod limited;
mod object_bytes;
mod ordered;
mod parquet_files;
mod traced;
mod units;

pub use columns::leaves::with_leaves;
pub use columns::mapping::Mapping;
pub use columns::united::columns_of_files;
pub use condition::Condition;
pub use condition::pruning::{Bounds, Known, Nulls};
#[cfg(feature = "csv")]
pub use delimited::{
    ColumnType, DelimitedFiles, DelimitedOptions, Dialect, Formats, InferredColumn, Moment, Pattern,
    ProposedOption, Ragged, RecordForm, RejectedRecord, TextColumns,
};
#[cfg(feature = "generated")]
pub use generated_rows::{GeneratedRows, embedded_arrow_schema};
pub use hive::{FolderColumn, FolderKind, Hive};
pub use limited::Limited;
pub use object_bytes::ObjectBytes;
pub use ordered::{
    Addressed, ByRow, Fetcher, IndexPlace, Order, OrderedRows, Partition, PartitionedBy, Period, RowAddress,
    Scanned, Slot, Wanted, index_disk_bytes,
};
pub use parquet_files::annotations::parquet_schema;
pub use parquet_files::files::ParquetFiles;
pub use parquet_files::filtered::{Filtered, Pruned};
pub use parquet_files::guarded::{
    Panicked, arrow_metadata, fault_of_page, guarded, silence_guarded_panics, undecodable,
};
pub use parquet_files::interval::intervals_as_bytes;
pub use parquet_files::opened_file::{OpenObject, fingerprint, open_footer};
pub use parquet_files::reader::{FileBytes, rows_within};
pub use parquet_files::schema::refuse_variants;
pub use parquet_files::table::{DeletedRows, GivenValue, TableFile};
pub use parquet_files::united::{FindLoaded, UnlikeFiles};
pub use sawmill_profile::{Control, Error, Kind, LOOK, Result};
pub use traced::{DELETES, LineageColumns, Traced};
pub use units::{
    Facts, ROW_IN_GROUP, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, counted_places, recut,
};
