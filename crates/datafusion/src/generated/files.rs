//! The job that writes files of a dataset: a row for each file.
//!
//! A file is a part of the dataset. It appears when it is complete, with a manifest of the part. A task that is
//! repeated, or that runs twice at a time, finds the complete file and keeps it. In a directory a lock makes the second
//! one wait. Stores have none: there it waits within a process, and between processes the one whose upload was
//! cut short by the other looks again.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use sawmill_generator::{
    ColumnCompression, Dataset, ErrorKind, Existing, FileOptions, GroupBytes, Job, Layout, Output, Part,
    ROW_GROUP_BYTES, RowSize, StoreFolder, StoreOutput, WrittenFile, write,
};
use sawmill_profile::Profile;
use sawmill_source::embedded_arrow_schema;
use sawmill_store::UploadLimits;
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};
use crate::generated::spec::Spec;
use crate::objects;
use crate::units::job::{Job as UnitsJob, numbers_of};
use crate::units::work::{SendBatch, Work, WorkDescription};

/// How often a task checks again an object that another task was writing.
const LOOKS: u32 = 5;

/// Until it looks again.
const PAUSE: Duration = Duration::from_millis(500);

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
    /// Codecs, as `sawmill gen --compression` has them.
    compression: Vec<String>,
    /// An absolute path, or the URL of a folder of a store.
    folder: String,
}

impl GeneratedFiles {
    /// The files that `sawmill gen` makes with the same arguments.
    ///
    /// # Errors
    /// The dataset, a codec or the number of files cannot be used.
    pub(crate) fn new(
        (spec, dataset): (Spec, &Dataset),
        (rows, files, seed): (u64, u32, u64),
        compression: &[ColumnCompression],
        folder: String,
    ) -> Result<Self> {
        let compression: Vec<String> = compression.iter().map(ColumnCompression::to_string).collect();
        let options = options(&compression, dataset)?;
        let size = RowSize::measure(dataset, &options, seed).map_err(external)?;
        let (row_group_rows, page_rows) = (size.row_group_rows(), size.page_rows());
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

    /// Writes a part of the files, unless they exist already.
    ///
    /// # Errors
    /// A file cannot be written, or the folder holds files of another dataset, seed or layout.
    pub(crate) fn write(&self, dataset: &Dataset, part: Part) -> Result<Vec<WrittenFile>> {
        let _writing = self.is_in_store()?.then(|| Writing::alone(format!("{} {part}", self.folder)));
        self.run(dataset, part, NonZeroUsize::MIN, Existing::Resume)?.map_err(unwritten)
    }

    /// Compares all files with their manifests, on `threads` threads, and writes the manifest of the whole dataset.
    ///
    /// # Errors
    /// A file is missing, or is not the one that was made.
    pub(crate) fn finish(&self, dataset: &Dataset, threads: NonZeroUsize) -> Result<Vec<WrittenFile>> {
        self.run(dataset, Part::WHOLE, threads, Existing::Finish)?.map_err(|error| {
            let advice = "run the same command again";
            match error.kind() {
                ErrorKind::Spec | ErrorKind::Incomplete => refused(error.what(), &error.place(), advice),
                _ => external(error),
            }
        })
    }

    fn run(
        &self,
        dataset: &Dataset,
        part: Part,
        threads: NonZeroUsize,
        existing: Existing,
    ) -> Result<std::result::Result<Vec<WrittenFile>, sawmill_generator::Error>> {
        let (layout, options) = (self.layout()?, options(&self.compression, dataset)?);
        let (profile, cancel) = (Profile::new(), false.into());
        let phase = profile.phase("generate");
        // While another job makes the same objects, its manifests take each other's places, which a store without locks
        // shows as files without a manifest.
        let in_store = self.is_in_store()?;
        let passes = |error: &sawmill_generator::Error| match error.kind() {
            ErrorKind::Busy => true,
            ErrorKind::Spec | ErrorKind::Incomplete => in_store,
            _ => false,
        };
        let mut looks = 0;
        loop {
            // Starts over, so that it sees the objects that the other task has written.
            let output = self.output()?;
            let job = Job {
                options: options.clone(),
                seed: self.seed,
                threads,
                part,
                existing,
                ..Job::new(&layout, &output, &phase, &cancel)
            };
            match write(dataset, &job) {
                Err(error) if looks < LOOKS && passes(&error) => {
                    looks += 1;
                    std::thread::sleep(PAUSE);
                }
                written => return Ok(written),
            }
        }
    }

    /// Whether the files are objects.
    pub(crate) fn is_in_store(&self) -> Result<bool> {
        Ok(objects::url_of(&self.folder)?.is_some())
    }

    fn output(&self) -> Result<Output> {
        let Some(url) = objects::url_of(&self.folder)? else {
            return Ok(Output::Directory(PathBuf::from(&self.folder)));
        };
        let folder = StoreFolder::open(objects::stores()?, &url, UploadLimits::default(), false);
        Ok(Output::Store(StoreOutput { folder: Arc::new(folder.map_err(external)?), file: None }))
    }
}

/// The error of files that cannot be written. A job has no option to replace others.
fn unwritten(error: sawmill_generator::Error) -> DataFusionError {
    match error.advice().contains("--overwrite") {
        true => refused(error.what(), &error.place(), "remove the files, or give another --out"),
        false => external(error),
    }
}

/// A part of objects that this process writes, on one thread at a time.
struct Writing(String);

/// The parts being written, and the condition that signals the end of one.
static WRITING: (Mutex<Option<HashSet<String>>>, Condvar) = (Mutex::new(None), Condvar::new());

impl Writing {
    /// Waits until this thread may write the part alone, and claims it.
    fn alone(part: String) -> Self {
        // A panic cannot leave the set half-changed.
        let (parts, ended) = &WRITING;
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        while !parts.get_or_insert_default().insert(part.clone()) {
            parts = ended.wait(parts).unwrap_or_else(PoisonError::into_inner);
        }
        Self(part)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let (parts, ended) = &WRITING;
        parts.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().remove(&self.0);
        ended.notify_all();
    }
}

/// The options of `sawmill gen`.
fn options(compression: &[String], dataset: &Dataset) -> Result<FileOptions> {
    let mut options = FileOptions::default();
    let given = compression.iter().map(|text| text.parse());
    let given: Vec<ColumnCompression> =
        given.collect::<std::result::Result<_, _>>().map_err(|error: String| {
            refused(error, "--compression", "give none, snappy, lz4, zstd, zstd:LEVEL, gzip or brotli")
        })?;
    options.set_compressions(&given).map_err(external)?;
    if dataset.needs_arrow_schema() {
        options.key_values.push(embedded_arrow_schema(dataset, None));
    }
    Ok(options)
}

/// The schema of the result, which has a row for each file.
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
            let written = self.files.write(&self.dataset, part)?;
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
