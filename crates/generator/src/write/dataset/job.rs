//! What a caller asks for and gets: the parameters of a job, and the files that it wrote.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};

use sawmill_profile::Phase;
use serde::Serialize;

use crate::layout::file_options::FileOptions;
use crate::layout::rows::{Layout, Part};
use crate::output::checksum::Checksum;
use crate::output::destination::Output;
use crate::output::existing::{EarlierFiles, Existing};

/// The parameters for writing a dataset. [`Job::new`] sets defaults.
#[derive(Debug)]
pub struct Job<'a> {
    /// The layout of the rows.
    pub layout: &'a Layout,
    /// The destination of the files.
    pub output: &'a Output,
    /// How to write the files.
    pub options: FileOptions,
    /// The seed. The same seed produces the same bytes.
    pub seed: u64,
    /// The number of threads that make row groups.
    pub threads: NonZeroUsize,
    /// The number of files to write at the same time. The default is the number of threads.
    pub writers: Option<NonZeroUsize>,
    /// The part of the files to make.
    pub part: Part,
    /// The partition column, a top-level field. Each of its values has a folder `COLUMN=VALUE` with the files
    /// of its rows, without the column.
    pub partition_by: Option<String>,
    /// What to do with the files of an earlier run in the same directory, or with an existing single file.
    pub existing: Existing,
    /// The files that the dataset was inferred from. They are never replaced or removed.
    pub sources: Vec<PathBuf>,
    /// The content sum of the rows of all files, for the manifest, if known.
    pub content_sum: Option<Checksum>,
    /// Counts rows and bytes as row groups are written.
    pub phase: &'a Phase,
    /// Counts the rows of complete files that are kept.
    pub kept_rows: Option<&'a AtomicU64>,
    /// Receives a line when the job waits for another run to end.
    pub notices: Notices<'a>,
    /// When it becomes true, the job ends soon and removes unfinished files.
    pub cancel: &'a AtomicBool,
}

/// Receives lines that a person should read immediately. By default, they are dropped.
#[derive(Clone, Copy, Default)]
pub struct Notices<'a>(pub Option<&'a (dyn Fn(&str) + Sync)>);

impl std::fmt::Debug for Notices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Notices").field(&self.0.is_some()).finish()
    }
}

impl<'a> Job<'a> {
    /// Writes all files of `layout` with default options and seed 42, on one thread.
    pub fn new(layout: &'a Layout, output: &'a Output, phase: &'a Phase, cancel: &'a AtomicBool) -> Self {
        Job {
            layout,
            output,
            options: FileOptions::default(),
            seed: 42,
            threads: NonZeroUsize::MIN,
            writers: None,
            part: Part::WHOLE,
            partition_by: None,
            existing: Existing::default(),
            sources: Vec::new(),
            content_sum: None,
            phase,
            kept_rows: None,
            notices: Notices::default(),
            cancel,
        }
    }

    pub(super) fn earlier_files(&self) -> EarlierFiles<'_> {
        EarlierFiles { existing: self.existing, sources: &self.sources, kept_rows: self.kept_rows }
    }
}

/// A file that was written.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenFile {
    /// Its path.
    pub path: PathBuf,
    /// Its number in the layout. With partitions, several files have the same number.
    pub file: u32,
    /// Its rows.
    pub rows: u64,
    /// Its row groups.
    pub row_groups: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The XXH3-128 of its bytes; `None` for devices.
    #[serde(rename = "file_checksum")]
    pub sum: Option<Checksum>,
    /// Whether an earlier run wrote it.
    pub kept: bool,
}
