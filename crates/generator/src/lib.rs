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
//! let files = write(&dataset, &Job {
//!     layout: &Layout::new(10_000, 2)?,
//!     output: &Output::Directory(directory.path().into()),
//!     seed: 42,
//!     threads: std::thread::available_parallelism()?,
//!     phase: &profile.phase("generate"),
//!     cancel: &false.into(),
//! })?;
//! assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bloom_filter;
mod byte_stream_split;
mod civil;
mod column_chunk;
mod compression;
mod dataset;
mod delta;
mod dictionary_page;
mod encoding;
mod error;
mod file_metadata;
mod layout;
mod levels;
mod output;
mod person_name;
mod rng;
mod shred;
mod spec;
mod statistics;
mod template;
mod thrift;
mod values;
mod weights;
mod write;

pub use bloom_filter::BLOOM_FALSE_POSITIVES;
pub use compression::Compression;
pub use dataset::{BUILT_IN, DEEPEST, Dataset, MOST_ELEMENTS};
pub use encoding::{DICTIONARY_BYTES, Encoding};
pub use error::{Error, ErrorKind};
pub use layout::{Layout, MOST_FILES, PAGE_ROWS, ROW_GROUP_ROWS};
pub use output::Output;
pub use shred::BLOCK_ROWS;
pub use write::{Job, WrittenFile, write};
