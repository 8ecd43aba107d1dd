//! The job that writes files of a dataset: a row for each file.
//!
//! A file is a part of the dataset. It appears when it is complete, with a manifest of the part. A task that is
//! repeated, or that runs twice at a time, finds the complete file and keeps it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use sawmill_generator::{
    Dataset, Existing, FileOptions, GroupBytes, Job, Layout, Output, Part, ROW_GROUP_BYTES, RowSize,
    WrittenFile, write,
};
use sawmill_profile::Profile;
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};
use crate::generated::spec::Spec;
use crate::units::job::{Job as UnitsJob, numbers_of};
use crate::units::work::{SendBatch, Work, WorkDescription};

/// Files of a dataset in a folder that all executors see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GeneratedFiles {
    pub spec: Spec,
    pub seed: u64,
    pub rows: u64,
    pub files: u32,
    /// Most rows of a row group and of a page.
    row_group_rows: u64,
    page_rows: u64,
    /// A codec with its level, as `sawmill gen --compression` has it.
    compression: String,
    /// An absolute path.
    folder: String,
}

impl GeneratedFiles {
    /// The files that `sawmill gen` makes with the same arguments.
    ///
    /// # Errors
    /// The dataset, the codec or the number of files cannot be used.
    pub(crate) fn new(
        (spec, dataset): (Spec, &Dataset),
        (rows, files, seed): (u64, u32, u64),
        compression: &str,
        folder: String,
    ) -> Result<Self> {
        let options = options(compression)?;
        let size = RowSize::measure(dataset, &options, seed).map_err(external)?;
        let (row_group_rows, page_rows) = (size.row_group_rows(), size.page_rows());
        let compression = compression.to_owned();
        let made = Self { spec, seed, rows, files, row_group_rows, page_rows, compression, folder };
        made.layout()?;
        Ok(made)
    }

    fn layout(&self) -> Result<Layout> {
        let layout = Layout::new(self.rows, self.files).map_err(external)?;
        let layout = layout.with_row_group_rows(self.row_group_rows).map_err(external)?;
        let layout = layout.with_row_group_bytes(GroupBytes::around(None, ROW_GROUP_BYTES));
        layout.with_page_rows(self.page_rows).map_err(external)
    }

    /// Writes a part of the files, unless they are there.
    ///
    /// # Errors
    /// A file cannot be written, or the folder holds files of another dataset, seed or layout.
    pub(crate) fn write(
        &self,
        dataset: &Dataset,
        part: Part,
        threads: NonZeroUsize,
    ) -> Result<Vec<WrittenFile>> {
        let (layout, output) = (self.layout()?, Output::Directory(PathBuf::from(&self.folder)));
        let (profile, cancel) = (Profile::new(), false.into());
        let phase = profile.phase("generate");
        let job = Job {
            options: options(&self.compression)?,
            seed: self.seed,
            threads,
            part,
            existing: Existing::Resume,
            ..Job::new(&layout, &output, &phase, &cancel)
        };
        write(dataset, &job).map_err(external)
    }
}

fn options(compression: &str) -> Result<FileOptions> {
    let mut options = FileOptions::default();
    options.compression = compression.parse().map_err(|error: String| {
        refused(error, "--compression", "give none, snappy, lz4, zstd, zstd:LEVEL, gzip or brotli")
    })?;
    Ok(options)
}

/// What is said of each file.
pub(crate) static FILES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        field("file", DataType::Int64),
        field("path", DataType::Utf8),
        field("rows", DataType::Int64),
        field("bytes", DataType::Int64),
        Field::new("checksum", DataType::Utf8, true),
        field("kept", DataType::Boolean),
    ]))
});

/// Files as rows.
fn rows_of(files: &[WrittenFile]) -> Result<RecordBatch> {
    let numbers = |number: fn(&WrittenFile) -> u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(files.iter().map(|file| number(file) as i64)))
    };
    let paths = files.iter().map(|file| file.path.display().to_string());
    let sums = files.iter().map(|file| file.sum.map(|sum| sum.to_string()));
    let columns: Vec<ArrayRef> = vec![
        numbers(|file| file.file.into()),
        Arc::new(StringArray::from_iter_values(paths)),
        numbers(|file| file.rows),
        numbers(|file| file.bytes),
        Arc::new(StringArray::from_iter(sums)),
        Arc::new(BooleanArray::from_iter(files.iter().map(|file| Some(file.kept)))),
    ];
    Ok(RecordBatch::try_new(Arc::clone(&FILES_SCHEMA), columns)?)
}

/// [`GeneratedFiles`], ready to be written.
#[derive(Debug)]
pub(crate) struct FilesWork {
    files: GeneratedFiles,
    dataset: Arc<Dataset>,
}

impl FilesWork {
    /// Reads the dataset on this machine.
    pub(crate) fn open(files: GeneratedFiles) -> Result<Self> {
        let dataset = files.spec.open()?;
        Ok(Self { files, dataset })
    }
}

impl Work for FilesWork {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&FILES_SCHEMA)
    }

    fn rows(&self, units: &RecordBatch) -> Option<u64> {
        Some(units.num_rows() as u64)
    }

    fn run(&self, units: &RecordBatch, _: usize, send: SendBatch<'_>) -> Result<()> {
        for file in numbers_of(units)? {
            let part = format!("{}/{}", u64::from(*file) + 1, self.files.files);
            let part = part.parse().map_err(|error: String| internal_datafusion_err!("{error}"))?;
            let written = self.files.write(&self.dataset, part, NonZeroUsize::MIN)?;
            if !send(rows_of(&written)?) {
                break;
            }
        }
        Ok(())
    }

    fn description(&self) -> WorkDescription {
        WorkDescription::Files(self.files.clone())
    }

    fn explained(&self) -> String {
        let GeneratedFiles { spec, seed, rows, files, folder, .. } = &self.files;
        format!(
            "GeneratedFiles: spec={}, seed={seed}, rows={rows}, files={files}, folder={folder}",
            spec.name()
        )
    }
}

impl UnitsJob for GeneratedFiles {
    fn work(self) -> Result<Arc<dyn Work>> {
        Ok(Arc::new(FilesWork::open(self)?))
    }

    fn schema() -> SchemaRef {
        Arc::clone(&FILES_SCHEMA)
    }

    fn units(&self) -> u32 {
        self.files
    }
}
