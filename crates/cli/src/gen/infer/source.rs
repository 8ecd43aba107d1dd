//! The files that a sample is taken from.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema_from_seekable;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};

use sawmill_footer::{Options, enums_as_text_59};
use sawmill_inspect::{CorrectedHeaders, DEFAULT_MAX_PAGE, check_page_sizes};
use sawmill_profile::Pool;
use sawmill_store::{Location, open_regular_input};
use tempfile::TempDir;

use crate::arguments::delta;
use crate::arguments::paths::{Located, Wanted, located};
use crate::arguments::stores::{Objects, PlaceBytes, StoreArgs};
use crate::arguments::text::text_kind;
use crate::error::{Error, Result};
use crate::r#gen::infer::ranges::{spread, within};
use crate::r#gen::infer::{arrow_lengths, copies, parquet_types, text};

/// Rows to read at a time.
const BATCH_ROWS: usize = 8192;
/// The most fields of JSON, and values of a batch.
const MAX_JSON_FIELDS: usize = 20_000;
const MAX_BATCH_VALUES: usize = 1 << 20;

/// The most memory for the values of a sample.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

/// The memory of one value of a sample.
pub(crate) const VALUE_BYTES: u64 = 9;

/// How many objects are opened at the same time.
const OBJECTS: usize = 32;

/// Files of the same columns.
pub(crate) struct Source {
    named: PathBuf,
    pub schema: SchemaRef,
    pub rows: u64,
    files: Files,
    objects: Objects,
    /// What holds the copy of an object.
    _copy: Option<TempDir>,
}

enum Files {
    /// Each with its footer, and the headers of pages that are corrected.
    Parquet(Vec<(Location, ArrowReaderMetadata, CorrectedHeaders)>),
    /// The file; of an object, a copy.
    Arrow(PathBuf),
    Json(PathBuf),
}

/// What the footers say of a column.
#[derive(Default)]
pub(crate) struct Footer {
    /// The numbers of nulls and of rows.
    pub nulls: Option<(u64, u64)>,
    /// The least and greatest values of row groups.
    pub bounds: Vec<ArrayRef>,
}

impl Source {
    /// Opens the files or objects that `named` names: one file, the Parquet files below a directory, or the matches
    /// of a pattern.
    pub(crate) fn open(named: &Path, stores: &StoreArgs) -> Result<Self> {
        let place = Location::new(named)?;
        let key = match &place {
            Location::Path(path) => path.clone(),
            Location::Object(url) => PathBuf::from(url.key()),
        };
        let kind = key.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        let single = |open: fn(&Path, PathBuf, Option<TempDir>) -> Result<Self>| match &place {
            Location::Path(path) => open(named, path.clone(), None),
            Location::Object(url) => {
                let objects = Objects::new(stores, Some(url))?;
                let (copies, directory) = copies::make(std::slice::from_ref(url), &objects)?;
                let copy = copies.into_iter().next().unwrap_or_default();
                open(named, copy, Some(directory))
            }
        };
        match kind.as_str() {
            "arrow" | "ipc" | "feather" | "arrows" if !named.is_dir() => single(Self::arrow),
            "json" | "ndjson" | "jsonl" if !named.is_dir() => single(Self::json),
            _ if !named.is_dir() && text_kind(&key).is_some() => {
                let (rows, directory) = text::as_parquet(named, stores)?;
                let rows = Self::parquet(&rows, stores)?;
                Ok(Source { named: named.to_owned(), _copy: Some(directory), ..rows })
            }
            _ => Self::parquet(named, stores),
        }
    }

    fn parquet(named: &Path, stores: &StoreArgs) -> Result<Self> {
        if delta::named(named).is_some() {
            let what = "a Delta table, whose log has some of its columns, cannot be imitated";
            let advice = "convert it to Parquet first, or name a file of it";
            return Err(Error::usage(what, named.display().to_string(), advice));
        }
        let Located { places, objects } = located(&[named.to_owned()], Wanted::Parquet, stores)?;
        let mut files: Vec<(Location, ArrowReaderMetadata, CorrectedHeaders)> = Vec::new();
        let mut rows = 0;
        let threads =
            if places.iter().any(|place| matches!(place, Location::Object(_))) { OBJECTS } else { 1 };
        let opened = |at: usize| -> Result<(ArrowReaderMetadata, CorrectedHeaders)> {
            let place = PlaceBytes::open(&places[at], &objects)?;
            let footer = place.footer(&Options::new())?;
            footer.check_has_data("values")?;
            let sizes = check_page_sizes(&footer, &place.bytes, DEFAULT_MAX_PAGE, u64::MAX, |_| true);
            let (_, headers) = sizes.map_err(|error| place.because(error.into()))?;
            let all: Vec<usize> = (0..footer.num_columns()).collect();
            let metadata = Arc::new(footer.to_parquet_59(Some(&all))?);
            let derive = |options| ArrowReaderMetadata::try_new(Arc::clone(&metadata), options);
            sawmill_source::arrow_metadata(ArrowReaderOptions::new(), derive)
                .and_then(|(found, _)| match enums_as_text_59(found.schema(), found.parquet_schema()) {
                    Some(schema) => derive(ArrowReaderOptions::new().with_schema(Arc::new(schema))),
                    None => Ok(found),
                })
                .map(|found| (found, headers))
                .map_err(|error| place.because(unreadable(&places[at], &error)))
        };
        let pool = Pool::new("opener", threads.min(places.len()), None);
        let opened = |at| Ok::<_, Error>((at, opened(at)?));
        pool.in_order(0..places.len(), threads, opened, |opened| {
            let (at, (metadata, headers)) = opened?;
            if let Some((first, known, _)) = files.first()
                && known.schema().fields() != metadata.schema().fields()
            {
                let what = format!("its columns differ from those of {first}");
                return Err(Error::usage(what, places[at].to_string(), "give files of the same columns"));
            }
            rows += metadata.metadata().file_metadata().num_rows().max(0) as u64;
            files.push((places[at].clone(), metadata, headers));
            Ok(())
        })?;
        let Some((_, first, _)) = files.first() else {
            return Err(Error::usage("no Parquet files", named.display().to_string(), "give another path"));
        };
        let schema = parquet_types::marked(first.schema(), first.parquet_schema());
        Ok(Source {
            named: named.to_owned(),
            schema,
            rows,
            files: Files::Parquet(files),
            objects,
            _copy: None,
        })
    }

    fn arrow(named: &Path, path: PathBuf, copy: Option<TempDir>) -> Result<Self> {
        let batches = arrow_batches(named, &path)?;
        let schema = batches.schema();
        let mut rows = 0;
        for batch in batches {
            rows += batch.map_err(|error| unreadable(named.display(), &error))?.num_rows() as u64;
        }
        let (named, files) = (named.to_owned(), Files::Arrow(path));
        Ok(Source { named, schema, rows, files, objects: Objects::default(), _copy: copy })
    }

    fn json(named: &Path, path: PathBuf, copy: Option<TempDir>) -> Result<Self> {
        let mut text = BufReader::new(opened(named, &path)?);
        let (schema, rows) = infer_json_schema_from_seekable(&mut text, None)
            .map_err(|error| unreadable(named.display(), &error))?;
        let (named, files, rows) = (named.to_owned(), Files::Json(path), rows as u64);
        Ok(Source { named, schema: schema.into(), rows, files, objects: Objects::default(), _copy: copy })
    }

    /// The name of a dataset like this. A dot would end it where other tables refer to its columns.
    pub(crate) fn name(&self) -> String {
        let stem = self.named.file_stem().map(Path::new);
        // The extension of compressed text is that before the last.
        let text = stem.filter(|stem| text_kind(&self.named).is_some() && text_kind(stem).is_some());
        let stem = text.and_then(Path::file_stem).or(stem.map(Path::as_os_str));
        let name = stem.and_then(|stem| stem.to_str()).unwrap_or("data");
        if name.contains(['*', '?', '[']) { "data".to_owned() } else { name.replace('.', "_") }
    }

    /// What the footers say of each column of the record that is not nested.
    pub(crate) fn footers(&self) -> Result<Vec<Footer>> {
        let mut footers: Vec<Footer> = self.schema.fields().iter().map(|_| Footer::default()).collect();
        let Files::Parquet(files) = &self.files else { return Ok(footers) };
        for (field, footer) in self.schema.fields().iter().zip(&mut footers) {
            let named_once = self.schema.fields().iter().filter(|f| f.name() == field.name()).count() == 1;
            if field.data_type().is_nested() || *field.data_type() == DataType::Null || !named_once {
                continue;
            }
            let mut nulls = Some(0);
            for (place, metadata, _) in files {
                let groups = metadata.metadata().row_groups();
                let schema = metadata.parquet_schema();
                let read = || -> Result<_, parquet::errors::ParquetError> {
                    let converter = StatisticsConverter::try_new(field.name(), &self.schema, schema)?;
                    let counts = converter.row_group_null_counts(groups)?;
                    Ok((counts, converter.row_group_mins(groups)?, converter.row_group_maxes(groups)?))
                };
                let (counts, mins, maxes) = read().map_err(|error| unreadable(place, &error))?;
                let known = counts.null_count() == 0;
                let sum: u64 = counts.iter().flatten().sum();
                nulls = nulls.filter(|_| known).map(|nulls: u64| nulls + sum);
                footer.bounds.extend([mins, maxes]);
            }
            footer.nulls = nulls.map(|nulls| (nulls, self.rows));
        }
        Ok(footers)
    }

    /// Calls `take` with the batches of a sample of about `wanted` rows and the number of their first row.
    pub(crate) fn each(
        &self,
        wanted: u64,
        take: &mut dyn FnMut(u64, &RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let most = MAX_BYTES / (self.values_a_row() * VALUE_BYTES).max(1);
        self.each_of(&spread(self.rows, wanted.min(most)), None, take)
    }

    /// Calls `take` with all values of a column in their order. The column is not nested, and its name is unique.
    pub(crate) fn each_value(
        &self,
        column: usize,
        take: &mut dyn FnMut(&ArrayRef) -> Result<()>,
    ) -> Result<()> {
        let name = self.schema.field(column).name();
        let all = std::iter::once(0..self.rows).collect::<Vec<_>>();
        self.each_of(&all, Some(column), &mut |_, batch| {
            batch.column_by_name(name).map_or(Ok(()), &mut *take)
        })
    }

    /// Calls `take` with the batches of these rows and the number of their first row. From Parquet files it
    /// reads this column alone, if one is given.
    fn each_of(
        &self,
        ranges: &[Range<u64>],
        column: Option<usize>,
        take: &mut dyn FnMut(u64, &RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let files = match &self.files {
            Files::Parquet(files) => files,
            Files::Arrow(path) => {
                return each_of_all(&self.named, arrow_batches(&self.named, path)?, ranges, take);
            }
            Files::Json(path) => return each_of_all(&self.named, self.json_batches(path)?, ranges, take),
        };
        let mut first = 0;
        for (place, metadata, headers) in files {
            let rows = metadata.metadata().file_metadata().num_rows().max(0) as u64;
            let parts = within(ranges, &(first..first + rows));
            if !parts.is_empty() {
                let mut opened = PlaceBytes::open(place, &self.objects)?;
                opened.bytes = opened.bytes.corrected(headers.clone());
                let mut take = |row, batch: &RecordBatch| take(first + row, batch);
                each_of_parquet((place, &opened), (metadata, column), &parts, &mut take)?;
            }
            first += rows;
        }
        Ok(())
    }

    /// The records of a JSON file.
    fn json_batches(&self, path: &Path) -> Result<Box<dyn RecordBatchReader>> {
        let failed = |error: &dyn std::fmt::Display| unreadable(self.named.display(), error);
        let mut text = BufReader::new(opened(&self.named, path)?);
        text.rewind().map_err(|error| failed(&error))?;
        // The reader makes room for all values of a batch, and for a struct in a list of all fields.
        let fields = self.schema.flattened_fields().len();
        if fields > MAX_JSON_FIELDS {
            return Err(failed(&format!("it has {fields} fields, more than {MAX_JSON_FIELDS}")));
        }
        let rows = (MAX_BATCH_VALUES / fields.max(1)).clamp(1, BATCH_ROWS);
        let reader = ReaderBuilder::new(self.schema.clone()).with_batch_size(rows).build(text);
        Ok(Box::new(reader.map_err(|error| failed(&error))?))
    }

    /// The average number of values in a row.
    fn values_a_row(&self) -> u64 {
        match &self.files {
            Files::Parquet(files) => {
                let groups = files.iter().flat_map(|(_, metadata, _)| metadata.metadata().row_groups());
                let values = groups.flat_map(|group| group.columns()).map(|c| c.num_values().max(0) as u64);
                values.sum::<u64>() / self.rows.max(1)
            }
            _ => self.schema.flattened_fields().len() as u64,
        }
    }

    /// An error in the files.
    pub(crate) fn wrong(&self, error: &sawmill_generator::Error) -> Error {
        Error::usage(error.what(), format!("{}, {}", self.named.display(), error.place()), error.advice())
    }

    /// An error in the spec that was learned from the files, which the user may not have seen.
    pub(crate) fn refused(&self, error: &sawmill_generator::Error) -> Error {
        let place = format!("{}, the spec learned from it, {}", self.named.display(), error.place());
        Error::usage(error.what(), place, "leave out the column, with --exclude COLUMN")
    }
}

fn opened(named: &Path, path: &Path) -> Result<File> {
    open_regular_input(path).map_err(|error| unreadable(named.display(), &format!("cannot be read: {error}")))
}

fn unreadable(place: impl std::fmt::Display, what: &dyn std::fmt::Display) -> Error {
    let what = what.to_string();
    let advice = if what.contains("decompress") {
        "write the Arrow file without compression, such as write_feather(.., compression='uncompressed')"
    } else {
        "give a Parquet file, an Arrow IPC file or stream, one JSON record on each line, or text such as .csv"
    };
    Error::usage(what, place.to_string(), advice)
}

fn arrow_batches(named: &Path, path: &Path) -> Result<Box<dyn RecordBatchReader>> {
    let failed = |what: &dyn std::fmt::Display| unreadable(named.display(), what);
    let file = opened(named, path)?;
    let is_file = arrow_lengths::check(&file).map_err(|what| failed(&what))?;
    let text = BufReader::new(file);
    let reader = sawmill_source::guarded(|| -> Result<Box<dyn RecordBatchReader>, ArrowError> {
        Ok(match is_file {
            true => Box::new(FileReader::try_new(text, None)?),
            false => Box::new(StreamReader::try_new(text, None)?),
        })
    });
    Ok(Box::new(GuardedBatches(reader.map_err(|error| failed(&damaged(error)))?)))
}

/// Batches of an Arrow file, whose reader panics at some that no writer would produce.
struct GuardedBatches(Box<dyn RecordBatchReader>);

impl Iterator for GuardedBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        sawmill_source::guarded(|| self.0.next().transpose()).map_err(damaged).transpose()
    }
}

impl RecordBatchReader for GuardedBatches {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// The error of a panic is one of Parquet.
fn damaged(error: ArrowError) -> ArrowError {
    match error {
        ArrowError::ParquetError(what) => ArrowError::IpcError(what),
        other => other,
    }
}

/// The rows of `parts` of one Parquet file.
fn each_of_parquet(
    (place, opened): (&Location, &PlaceBytes),
    (metadata, column): (&ArrowReaderMetadata, Option<usize>),
    parts: &[Range<u64>],
    take: &mut dyn FnMut(u64, &RecordBatch) -> Result<()>,
) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| opened.because(unreadable(place, error));
    let rows = metadata.metadata().file_metadata().num_rows().max(0) as usize;
    let ranges = parts.iter().map(|part| part.start as usize..part.end as usize);
    let roots = |column| ProjectionMask::roots(metadata.parquet_schema(), [column]);
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(opened.bytes.clone(), metadata.clone())
        .with_batch_size(BATCH_ROWS)
        .with_projection(column.map_or_else(ProjectionMask::all, roots))
        .with_row_selection(RowSelection::from_consecutive_ranges(ranges, rows));
    let reader = builder.build().map_err(|error| failed(&error))?;
    // A batch may hold rows of several parts.
    let mut parts = parts.iter().cloned();
    let mut part = parts.next().unwrap_or(0..0);
    for batch in reader {
        let batch = batch.map_err(|error| failed(&error))?;
        let mut taken = 0;
        while taken < batch.num_rows() {
            if part.start == part.end {
                let Some(next) = parts.next() else { return Ok(()) };
                part = next;
            }
            let n = (batch.num_rows() - taken).min((part.end - part.start) as usize);
            take(part.start, &batch.slice(taken, n))?;
            part.start += n as u64;
            taken += n;
        }
    }
    Ok(())
}

/// The rows of `ranges` of a reader without random access.
fn each_of_all(
    path: &Path,
    batches: Box<dyn RecordBatchReader>,
    ranges: &[Range<u64>],
    take: &mut dyn FnMut(u64, &RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut first = 0;
    for batch in batches {
        let batch = batch.map_err(|error| unreadable(path.display(), &error))?;
        let rows = first..first + batch.num_rows() as u64;
        for part in within(ranges, &rows) {
            take(first + part.start, &batch.slice(part.start as usize, (part.end - part.start) as usize))?;
        }
        first = rows.end;
    }
    Ok(())
}
