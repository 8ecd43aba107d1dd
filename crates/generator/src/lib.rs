//! Synthetic nested datasets, written as Parquet.
//!
//! A dataset spec (TOML) becomes a validated [`Dataset`]; a [`Layout`] says which rows stand in
//! which file and row group; [`write()`] makes the row groups on several threads and appends them
//! to their files. Columns are *born shredded*: each field draws its definition levels, repetition
//! levels and values for many rows at once, and pages are encoded from those. No record and no
//! Arrow array is made on the way.
//!
//! Row *i* depends on the spec and the seed alone, a file on those and the layout: neither on
//! threads nor on scheduling.
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
mod arrow_schema;
#[cfg(feature = "arrow")]
mod batches;
mod bloom_filter;
mod byte_stream_split;
mod choice;
mod civil;
mod column_chunk;
mod compression;
mod content_sum;
mod cut_values;
mod dataset;
mod dataset_reader;
mod delta;
mod dictionary_page;
mod distribution;
mod draw;
mod encoding;
mod error;
mod existing;
mod explain;
mod expression;
mod file_metadata;
mod folder_share;
#[cfg(feature = "infer")]
mod inferred_spec;
mod instruction_sets;
mod json_schema;
mod kept;
mod layout;
mod lengths;
mod levels;
mod literal;
mod logical_type;
mod long_bounds;
mod manifest;
mod misfit;
mod options;
mod output;
mod page_header;
mod page_maker;
mod page_rows;
mod pages;
mod partition;
mod pattern;
mod person_name;
mod physical;
mod rng;
mod row_group;
mod row_size;
#[cfg(feature = "infer")]
mod sampled_values;
mod sampler;
mod schema;
mod shred;
mod source_file;
mod spec_folder;
mod statistics;
mod template;
mod text_values;
mod thrift;
mod toml_reader;
mod value_buffer;
mod value_length;
mod values;
mod walk;
mod weights;
mod wide;
mod write;

#[cfg(feature = "arrow")]
pub use batches::Batches;
pub use bloom_filter::BLOOM_FALSE_POSITIVES;
pub use compression::Compression;
pub use content_sum::ContentSum;
pub use dataset::{BUILT_IN, DEEPEST, Dataset, MOST_ELEMENTS};
pub use encoding::{DICTIONARY_BYTES, Encoding};
pub use error::{Error, ErrorKind};
pub use existing::Existing;
pub use explain::{ExplainedColumn, Explanation};
#[cfg(feature = "infer")]
pub use inferred_spec::InferredSpec;
pub use json_schema::json_schema;
pub use layout::{Layout, MOST_FILES, MOST_GROUP_ROWS, PAGE_ROWS, Part, ROW_GROUP_ROWS};
pub use manifest::{Manifest, ManifestFile};
pub use options::{BloomColumn, FileOptions, PAGE_BYTES, PageVersion, StatisticsLevel};
pub use output::Output;
pub use output::dataset_files::DatasetFiles;
pub use output::lock::{OutputLock, Patience};
pub use output::whole_file::WholeFile;
pub use pages::{Page, PageSink, RowGroup, RowGroups};
pub use partition::MOST_PARTITIONS;
pub use row_size::{MOST_GROUP_BYTES, ROW_GROUP_BYTES, RowSize};
pub use sampler::{CategoricalSampler, ZipfSampler};
pub use shred::BLOCK_ROWS;
pub use source_file::protect_sources;
pub use write::{Job, Notices, WrittenFile, write};
