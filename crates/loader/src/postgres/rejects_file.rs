//! The Parquet file of rejected rows: the columns of the source, and where each row was and why it was refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::WriterProperties;
use sawmill_generator::WholeFile;

use super::rejects::Reject;
use crate::error::{Error, Kind, Result};
use crate::parquet_files::ParquetFiles;
use crate::parquet_interval::as_intervals;
use crate::source::{Source, Unit, UnitReader};

/// Rows of a row group of the file, which bounds the memory of writing it.
const ROW_GROUP_ROWS: usize = 64 * 1024;

/// The columns that say where a row was.
const FILE: &str = "_sawmill_file";
const ROW_GROUP: &str = "_sawmill_row_group";
const ROW: &str = "_sawmill_row";
/// The column that says why a row was refused.
const REASON: &str = "_sawmill_reason";

/// A file being written; it gets its name when it is whole.
pub(super) struct RejectsFile<'a> {
    path: PathBuf,
    source: &'a dyn Source,
    schema: SchemaRef,
    writer: ArrowWriter<WholeFile>,
}

/// Makes sure, before a row is sent, that the file can be written and takes the place of no other: of none that a load
/// has not written.
pub(super) fn check(path: &Path) -> Result<()> {
    if path.exists() {
        let ours = ParquetFiles::open(&[path]).is_ok_and(|file| file.schema().index_of(REASON).is_ok());
        if !ours {
            return Err(Error::new(
                Kind::Config,
                "the file is there already, and no load has put rows aside in it",
            )
            .at(path.display().to_string())
            .advise("name another file with --rejects, or remove this one"));
        }
    }
    WholeFile::create(path).map(drop).map_err(|error| unwritable(path, &error))
}

/// Rows that a load of the source has put aside, with the columns of the source, and behind them file, row group and row
/// of each where `places` are wanted.
///
/// # Errors
/// A file that cannot be read, or that no load of these columns has written.
pub(super) fn open(path: &Path, source: &dyn Source, places: bool) -> Result<ParquetFiles> {
    let rejects = ParquetFiles::open(&[path])?;
    if let Some(missing) =
        [REASON, FILE, ROW_GROUP, ROW].iter().find(|name| rejects.schema().index_of(name).is_err())
    {
        return Err(no_rejects(path, missing));
    }
    let columns = source.schema().fields().iter().map(|field| field.name().as_str());
    let columns = columns.chain([FILE, ROW_GROUP, ROW].into_iter().filter(|_| places));
    rejects.select(&columns.map(str::to_owned).collect::<Vec<_>>(), &[])
}

/// The error for a file that has not the columns of one of rejected rows.
fn no_rejects(path: &Path, column: &str) -> Error {
    Error::new(Kind::Schema, format!("it has no column {column:?}: no load has put these rows aside"))
        .at(path.display().to_string())
        .advise("name the file that the load was given with --rejects")
}

impl<'a> RejectsFile<'a> {
    pub(super) fn create(path: &Path, source: &'a dyn Source) -> Result<Self> {
        WholeFile::remove_abandoned(path).map_err(|error| unwritable(path, &error))?;
        let mut fields: Vec<Field> =
            source.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        for (name, data_type) in [
            (FILE, DataType::Utf8),
            (ROW_GROUP, DataType::Int32),
            (ROW, DataType::Int64),
            (REASON, DataType::Utf8),
        ] {
            fields.push(Field::new(name, data_type, false));
        }
        let schema = Arc::new(Schema::new(fields));
        let properties =
            WriterProperties::builder().set_max_row_group_row_count(Some(ROW_GROUP_ROWS)).build();
        let mut options = ArrowWriterOptions::new().with_properties(properties);
        if let Some(parquet) = as_intervals(&schema).map_err(|error| unwritable(path, &error))? {
            options = options.with_parquet_schema(parquet);
        }
        let file = WholeFile::create(path).map_err(|error| unwritable(path, &error))?;
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&schema), options)
            .map_err(|error| unwritable(path, &error))?;
        Ok(Self { path: path.to_owned(), source, schema, writer })
    }

    /// Writes the rejected rows of one unit, which are read again.
    pub(super) fn unit(
        &mut self,
        unit: &Unit,
        rejects: &[Reject],
        reader: &mut dyn UnitReader,
    ) -> Result<()> {
        let numbers: Vec<u64> = rejects.iter().map(|reject| reject.row).collect();
        let numbers = self.source.rows_in_group(unit.key, &numbers)?;
        if numbers.len() < rejects.len() {
            return Err(gone(unit));
        }
        let mut left = rejects;
        let mut numbers = numbers.as_slice();
        let mut first = unit.key.first_row;
        reader.start(unit)?;
        while let (Some(next), Some(batch)) = (left.first(), reader.next_batch()?) {
            let end = first + batch.num_rows() as u64;
            let here = left.partition_point(|reject| reject.row < end);
            if next.row < end {
                self.rows(unit, &left[..here], &numbers[..here], &batch, first)?;
            }
            numbers = &numbers[here..];
            left = &left[here..];
            first = end;
        }
        match left.is_empty() {
            true => Ok(()),
            false => Err(gone(unit)),
        }
    }

    /// Rows of one batch, whose first row is `first`, with the numbers that they have in their row group; runs of
    /// neighbours are written as one.
    fn rows(
        &mut self,
        unit: &Unit,
        rejects: &[Reject],
        numbers: &[u64],
        batch: &RecordBatch,
        first: u64,
    ) -> Result<()> {
        let file = self.source.files().get(unit.key.file as usize);
        let file = file.map(|file| file.name.as_str()).unwrap_or_default();
        let mut numbers = numbers;
        for run in rejects.chunk_by(|a, b| a.row + 1 == b.row) {
            let (here, left) = numbers.split_at(run.len());
            numbers = left;
            let rows = batch.slice((run[0].row - first) as usize, run.len());
            let mut columns = rows.columns().to_vec();
            let places: [ArrayRef; 4] = [
                Arc::new(StringArray::from(vec![file; run.len()])),
                Arc::new(Int32Array::from(vec![unit.key.row_group as i32; run.len()])),
                Arc::new(Int64Array::from_iter_values(here.iter().map(|row| *row as i64))),
                Arc::new(StringArray::from_iter_values(run.iter().map(|reject| &reject.reason))),
            ];
            columns.extend(places);
            // Within lists and structs the schema says more than the arrays: which bytes are UUIDs.
            let options = RecordBatchOptions::new().with_match_field_names(false);
            let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
            let rows = rows.map_err(|error| unwritable(&self.path, &error))?;
            self.writer.write(&rows).map_err(|error| unwritable(&self.path, &error))?;
        }
        Ok(())
    }

    /// Ends the file and gives it its name.
    pub(super) fn finish(self) -> Result<()> {
        let Self { path, writer, .. } = self;
        let file = writer.into_inner().map_err(|error| unwritable(&path, &error))?;
        file.finish().map_err(|error| unwritable(&path, &error))
    }
}

fn gone(unit: &Unit) -> Error {
    Error::new(Kind::Changed, "rejected rows are no longer in the source")
        .at(format!("row group {}", unit.key.row_group))
        .advise("bring back the file as it was and run the same command again")
}

fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Config, format!("the file of rejected rows cannot be written: {error}"))
        .at(path.display().to_string())
        .advise("name a file that can be written with --rejects, and run the same command again")
}
