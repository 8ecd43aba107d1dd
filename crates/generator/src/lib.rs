//! Synthetic nested datasets, written as Parquet.
//!
//! A dataset spec (TOML) becomes a validated [`Dataset`]. A [`Layout`] assigns rows to files and row groups.
//! [`write()`] makes the row groups on several threads and appends them to their files. Columns are *born
//! shredded*: each field draws its definition levels, repetition levels and values for many rows at once, and
//! pages are encoded from those, without records or Arrow arrays.
//!
//! | room | content |
//! |---|---|
//! | `spec_file` | the TOML of a spec with the position of every value |
//! | `types` | column types and their values |
//! | `random` | counter-based random numbers and elementary functions that are the same everywhere |
//! | `draw` | how values are drawn: distributions, lists, formulas, references, text |
//! | `spec` | finds a dataset by its name, reads and checks its spec |
//! | `explain` | schema, expected sizes and expected values of a dataset |
//! | `shred` | blocks of rows as definition levels, repetition levels and values |
//! | `encode` | encodings, codecs, statistics and Bloom filters of values |
//! | `layout` | rows in files, row groups and pages, and how these are written |
//! | `write` | pages, column chunks, row groups and footers of a dataset's files |
//! | `output` | destinations, earlier files, writing files completely or not at all |
//! | `infer` | a spec from existing data (feature `infer`) |
//! | `benchmark` | the names and tables of TPC-H and TPC-DS, their rows in chunks (feature `tpch`) |
//! | `tpch`, `tpcds` | the columns and rows of each table (feature `tpch`) |
//! | `arrow` | the rows as Arrow batches (feature `arrow`) |
//!
//! Row *i* depends on the spec and the seed alone, a file on those and the layout. Threads and scheduling do
//! not matter.
//!
//! ```
//! use sawmill_generator::{Dataset, Job, Layout, Output, write};
//! # let directory = tempfile::tempdir()?;
//! let dataset = Dataset::from_toml(r#"
//!     name = "trips"
//!     [[fields]]
//!     name = "vendor"
//!     type = "int32"
//!     nulls = 0.1
//!     values = { zipf = { n = 100, s = 1.1 } }
//! "#)?;
//! let profile = sawmill_profile::Profile::new();
//! let (layout, output) = (Layout::new(10_000, 2)?, Output::Directory(directory.path().into()));
//! let (phase, cancel) = (profile.phase("generate"), false.into());
//! let files = write(&dataset, &Job {
//!     threads: std::thread::available_parallelism()?,
//!     ..Job::new(&layout, &output, &phase, &cancel)
//! })?;
//! assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "arrow")]
mod arrow;
mod benchmark;
mod draw;
mod encode;
mod error;
mod explain;
#[cfg(feature = "infer")]
mod infer;
mod layout;
mod output;
mod random;
mod shred;
mod spec;
mod spec_file;
#[cfg(feature = "tpch")]
mod tpcds;
#[cfg(feature = "tpch")]
mod tpch;
mod types;
mod write;

#[cfg(feature = "arrow")]
pub use arrow::batches::Batches;
pub use benchmark::Benchmark;
pub use draw::sampler::ZipfSampler;
pub use draw::value_spec::own::DrawnNumber;
pub use encode::compression::Compression;
pub use encode::values::Encoding;
pub use error::{Error, ErrorKind};
pub use explain::{ExplainedColumn, Explanation};
#[cfg(feature = "infer")]
pub use infer::fidelity::{
    ColumnFidelity, Fidelity, Kept, KeyFidelity, MeasureFidelity, OrderFidelity, PairFidelity,
    RelationFidelity, TreeFidelity,
};
#[cfg(feature = "infer")]
pub use infer::references::KeyColumn;
#[cfg(feature = "infer")]
pub use infer::references::tables::InferredTables;
#[cfg(feature = "infer")]
pub use infer::sample::stored::PARQUET_TYPE;
#[cfg(feature = "infer")]
pub use infer::spec::inferred_spec::{InferredSpec, LeftOut};
#[cfg(feature = "infer")]
pub use infer::values::made_up::Verbatim;
pub use layout::column_compression::ColumnCompression;
pub use layout::file_options::{BloomColumn, FileOptions, PageVersion, StatisticsLevel};
pub use layout::rows::{GroupBytes, Layout, MAX_GROUP_BYTES, MAX_GROUP_ROWS, Part, ROW_GROUP_ROWS};
pub use output::checksum::{Checksum, PieceSum};
pub use output::dataset_files::DatasetFiles;
pub use output::destination::{Output, StoreOutput};
pub use output::existing::Existing;
#[cfg(feature = "objects")]
pub use output::folder::store::StoreFolder;
pub use output::folder::{FileBytes, Folder, MadeFile};
pub use output::lock::{OutputLock, Patience};
pub use output::sink::{Sink, Upload};
pub use output::source_file::protect_sources;
pub use output::unfinished_run::{UnfinishedRun, is_manifest, unfinished_dataset};
pub use spec::dataset::{BUILT_IN, Dataset};
pub use spec::json_schema::json_schema;
pub use spec::named::{DatasetName, NamedRows};
pub use write::dataset::{Job, Notices, WrittenFile, write};
pub use write::row_size::{ROW_GROUP_BYTES, RowSize};
