//! The Parquet file of rejected rows: the columns of the source, where each row was, and why it was refused.
//!
//! Several loads that append to one table may share it, as for a growing directory: each replaces the rows of
//! its own source's files and keeps all others.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{LargeStringDictionaryBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, StringViewArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use sawmill_loader::TableName;
use sawmill_pgcopy::value_type;
use sawmill_source::{Error, Kind, ParquetFiles, Result, Source, Unit, UnitKey, UnitReader, parquet_schema};
use sawmill_store::{WholeFile, is_stream};

use crate::rejected::bad_records::gone;
use crate::rejected::rejects::Reject;
use crate::rejected::views::{as_read, as_written};

/// Rows of a row group of the file, which bounds the memory of writing it.
const ROW_GROUP_ROWS: usize = 64 * 1024;
/// Rows of the existing file that are read at once.
const ROWS_AT_ONCE: usize = 4096;

/// The columns that say where a row was.
const FILE: &str = "_sawmill_file";
const ROW_GROUP: &str = "_sawmill_row_group";
const ROW: &str = "_sawmill_row";
/// The column that says why a row was refused.
const REASON: &str = "_sawmill_reason";

/// The entry of the footer that names the table.
const TABLE: &str = "sawmill.table";

/// Which load writes the file.
#[derive(Clone, Copy)]
pub(crate) struct RejectsOf<'a> {
    pub source: &'a dyn Source,
    pub table: &'a TableName,
    /// The table keeps its rows, so the file keeps the rows of other loads.
    pub adds: bool,
}

impl RejectsOf<'_> {
    /// Whether the existing file has rows of loads into the same table, which stay.
    fn adds_to(self, path: &Path) -> Result<bool> {
        Ok(self.adds && table_of(path)?.is_some_and(|table| table == self.table.to_string()))
    }
}

/// A file being written, under a temporary name until it is complete.
pub(crate) struct RejectsFile<'a> {
    path: PathBuf,
    of: RejectsOf<'a>,
    schema: SchemaRef,
    writer: ArrowWriter<WholeFile>,
}

/// Checks, before a row is sent, that the file can be written, that an existing one was written by a load,
/// and that rows to be kept have the same columns.
pub(crate) fn check(path: &Path, of: RejectsOf<'_>) -> Result<()> {
    if is_stream(path) {
        return Ok(());
    }
    if path.exists() {
        let there = ParquetFiles::open(&[path]).ok();
        let Some(there) = there.filter(|file| file.schema().index_of(REASON).is_ok()) else {
            return Err(Error::new(
                Kind::Config,
                "the file already exists, and no load has written rejected rows to it",
            )
            .at(path.display().to_string())
            .advise("name another file with --rejects, or remove this one"));
        };
        if of.adds_to(path)? {
            kept(&there, path, of, |_| Ok(()))?;
        }
    }
    WholeFile::create_private(path).map(drop).map_err(|error| {
        Error::new(Kind::Config, format!("the file of rejected rows cannot be written: {error}"))
            .at(path.display().to_string())
            .advise("name a file that can be written with --rejects, and run the same command again")
    })
}

/// The table whose rejected rows a file holds, if the file names one.
fn table_of(path: &Path) -> Result<Option<String>> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::new(Kind::Source, format!("the file of rejected rows cannot be read: {error}"))
            .at(path.display().to_string())
            .advise("name another file with --rejects, or move this one away")
    };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let reader = SerializedFileReader::new(file).map_err(|error| unreadable(&error))?;
    let entries = reader.metadata().file_metadata().key_value_metadata();
    let entry = entries.into_iter().flatten().find(|entry| entry.key == TABLE);
    Ok(entry.and_then(|entry| entry.value.clone()))
}

/// Passes the rows of a file that come from other files than the source's to `each`.
fn kept(
    there: &ParquetFiles,
    path: &Path,
    of: RejectsOf<'_>,
    mut each: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let own: HashSet<&str> = of.source.files().iter().map(|file| file.name.as_str()).collect();
    let mut reader = there.reader(ROWS_AT_ONCE);
    for unit in there.plan(ROW_GROUP_ROWS as u64).iter().flatten() {
        reader.start(unit)?;
        while let Some(batch) = reader.next_batch()? {
            let files = batch.column_by_name(FILE).and_then(|column| column.as_string_view_opt());
            let files = files.ok_or_else(|| no_rejects(path, FILE))?;
            let names: Vec<&str> = files.iter().map(Option::unwrap_or_default).collect();
            let mut first = 0;
            for run in names.chunk_by(|a, b| a == b) {
                if run.first().is_some_and(|name| !own.contains(name)) {
                    refuse_other_columns(&batch, path, of)?;
                    each(batch.slice(first, run.len()))?;
                }
                first += run.len();
            }
        }
    }
    Ok(())
}

/// Rows of other loads can be kept if they have the columns of this one.
fn refuse_other_columns(batch: &RecordBatch, path: &Path, of: RejectsOf<'_>) -> Result<()> {
    let (there, here) = (batch.schema(), of.source.schema());
    let there = there.fields().iter().map(|field| (field.name(), field.data_type().clone()));
    let here = here.fields().iter().map(|field| (field.name(), as_read(field.data_type())));
    if there.take_while(|(name, _)| name.as_str() != FILE).eq(here) {
        return Ok(());
    }
    Err(Error::new(Kind::Exists, "the file has rejected rows of a load with other columns")
        .at(path.display().to_string())
        .advise("name another file with --rejects, or move this one away"))
}

/// The rows that a load of the source rejected, with the source's columns.
///
/// # Errors
/// A file that cannot be read, or that was not written by a load of these columns.
pub(crate) fn open(path: &Path, source: &dyn Source) -> Result<ParquetFiles> {
    let rejects = ParquetFiles::open(&[path])?;
    if let Some(missing) =
        [REASON, FILE, ROW_GROUP, ROW].iter().find(|name| rejects.schema().index_of(name).is_err())
    {
        return Err(no_rejects(path, missing));
    }
    let columns = source.schema().fields().iter().map(|field| field.name().as_str());
    rejects.select(&columns.map(str::to_owned).collect::<Vec<_>>(), &[])
}

/// Passes on, for each row of a file of rejected rows, its row group and its number there, and its place in the source:
/// file, row group and row.
///
/// # Errors
/// A file that cannot be read, or that no load has written.
pub(crate) fn places(path: &Path, mut each: impl FnMut(UnitKey, u64, (&str, u32, u64))) -> Result<()> {
    let rejects = ParquetFiles::open(&[path])?;
    let rejects = rejects.select(&[FILE, ROW_GROUP, ROW].map(str::to_owned), &[])?;
    let mut reader = rejects.reader(ROWS_AT_ONCE);
    for unit in rejects.plan(u64::MAX).iter().flatten() {
        reader.start(unit)?;
        let mut at = 0;
        while let Some(batch) = reader.next_batch()? {
            let [files, groups, rows] = batch.columns() else { return Err(no_rejects(path, FILE)) };
            let files = files.as_string_view_opt().ok_or_else(|| no_rejects(path, FILE))?;
            let groups = groups.as_primitive_opt::<Int32Type>().ok_or_else(|| no_rejects(path, ROW_GROUP))?;
            let rows = rows.as_primitive_opt::<Int64Type>().ok_or_else(|| no_rejects(path, ROW))?;
            for ((file, group), row) in files.iter().zip(groups.values()).zip(rows.values()) {
                each(unit.key, at, (file.unwrap_or_default(), *group as u32, *row as u64));
                at += 1;
            }
        }
    }
    Ok(())
}

/// The error for a file that lacks a column of rejected rows.
fn no_rejects(path: &Path, column: &str) -> Error {
    Error::new(Kind::Schema, format!("it has no column {column:?}: no load has written these rows"))
        .at(path.display().to_string())
        .advise("name the file that the load wrote with --rejects")
}

impl<'a> RejectsFile<'a> {
    pub(crate) fn create(path: &Path, of: RejectsOf<'a>) -> Result<Self> {
        let source = of.source;
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
        if let Some(parquet) = parquet_schema(&schema).map_err(|error| unwritable(path, &error))? {
            options = options.with_parquet_schema(parquet);
        }
        let file = WholeFile::create_private(path).map_err(|error| unwritable(path, &error))?;
        let mut writer = ArrowWriter::try_new_with_options(file, Arc::clone(&schema), options)
            .map_err(|error| unwritable(path, &error))?;
        writer.append_key_value_metadata(KeyValue::new(TABLE.to_owned(), of.table.to_string()));
        Ok(Self { path: path.to_owned(), of, schema, writer })
    }

    /// Writes the rejected rows of one unit, which are read again from the source.
    pub(crate) fn unit(
        &mut self,
        unit: &Unit,
        rejects: &[Reject],
        reader: &mut dyn UnitReader,
    ) -> Result<()> {
        let numbers: Vec<u64> = rejects.iter().map(|reject| reject.row).collect();
        let numbers = self.of.source.rows_in_group(unit.key, &numbers)?;
        if numbers.len() < rejects.len() {
            return Err(gone(unit.key.row_group));
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
        if left.is_empty() { Ok(()) } else { Err(gone(unit.key.row_group)) }
    }

    /// Writes rows of one batch, whose first row is `first`, with their numbers in their row group. Runs of
    /// neighbours are written as one.
    fn rows(
        &mut self,
        unit: &Unit,
        rejects: &[Reject],
        numbers: &[u64],
        batch: &RecordBatch,
        first: u64,
    ) -> Result<()> {
        let file = self.of.source.name_of(unit.key.file);
        let mut numbers = numbers;
        for run in rejects.chunk_by(|a, b| a.row + 1 == b.row) {
            let (here, left) = numbers.split_at(run.len());
            numbers = left;
            let rows = batch.slice((run[0].row - first) as usize, run.len());
            let fields = self.schema.fields();
            let mut columns: Vec<ArrayRef> =
                rows.columns().iter().zip(fields).map(|(array, field)| as_text(array, field)).collect();
            let places: [ArrayRef; 4] = [
                Arc::new(StringArray::from(vec![file.as_str(); run.len()])),
                Arc::new(Int32Array::from(vec![unit.key.row_group as i32; run.len()])),
                Arc::new(Int64Array::from_iter_values(here.iter().map(|row| *row as i64))),
                Arc::new(StringArray::from_iter_values(run.iter().map(|reject| &reject.reason))),
            ];
            columns.extend(places);
            self.write(columns)?;
        }
        Ok(())
    }

    fn write(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        // Inside lists and structs the schema says more than the arrays, for example which bytes are UUIDs.
        let options = RecordBatchOptions::new().with_match_field_names(false);
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        let rows = rows.map_err(|error| unwritable(&self.path, &error))?;
        self.writer.write(&rows).map_err(|error| unwritable(&self.path, &error))
    }

    /// Adds the rows that other loads into the table have rejected, completes the file and gives it its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.path.is_file() && self.of.adds_to(&self.path)? {
            let (path, of) = (self.path.clone(), self.of);
            let there = ParquetFiles::open(&[&path])?;
            kept(&there, &path, of, |rows| {
                let columns = rows.columns().iter().zip(self.schema.fields());
                let columns = columns.map(|(column, field)| as_written(column, field.data_type()));
                let columns = columns.collect::<std::result::Result<_, _>>();
                self.write(columns.map_err(|error| unwritable(&path, &error))?)
            })?;
        }
        let Self { path, writer, .. } = self;
        let file = writer.into_inner().map_err(|error| unwritable(&path, &error))?;
        file.finish().map_err(|error| unwritable(&path, &error))
    }
}

/// Text that comes as bytes because some of it is not UTF-8, with what cannot be read replaced (U+FFFD).
fn as_text(array: &ArrayRef, field: &Field) -> ArrayRef {
    let is_text = value_type(field).is_string();
    let Some(bytes) = array.as_binary_view_opt().filter(|_| is_text) else { return Arc::clone(array) };
    let texts = bytes.iter().map(|bytes| bytes.map(String::from_utf8_lossy));
    match field.data_type() {
        DataType::Utf8 => Arc::new(StringArray::from_iter(texts)),
        DataType::Dictionary(_, values) if **values == DataType::LargeUtf8 => {
            let mut made = LargeStringDictionaryBuilder::<Int32Type>::new();
            made.extend(texts);
            Arc::new(made.finish())
        }
        DataType::Dictionary(..) => {
            let mut made = StringDictionaryBuilder::<Int32Type>::new();
            made.extend(texts);
            Arc::new(made.finish())
        }
        _ => Arc::new(StringViewArray::from_iter(texts)),
    }
}

fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Output, format!("the file of rejected rows cannot be written: {error}"))
        .at(path.display().to_string())
        .advise(
            "free some space, or name another file with --rejects, and run the same command again: it writes all rejected rows \
             of the load",
        )
}
