//! Infers specs from existing files: Parquet, Arrow IPC, or JSON records.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatchReader;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema_from_seekable;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sawmill_generator::InferredSpec;

use crate::arguments::paths;
use crate::error::Error;

/// Least rows of JSON to infer keys and types from.
const JSON_ROWS: u64 = 10_000;

/// Rows to read at a time.
const BATCH_ROWS: usize = 8192;

/// The spec for a file like `named`, or like the first file in that directory: its columns, and the values of
/// its first `sample` rows.
pub(crate) fn spec(named: &Path, sample: u64) -> Result<String, Error> {
    let searched = if named.is_dir() { paths::parquet_files(&[named.to_owned()])? } else { Vec::new() };
    let file = searched.first().map_or(named, PathBuf::as_path);
    let wrong = |what: String| {
        Error::usage(
            what,
            file.display().to_string(),
            "give a Parquet file, an Arrow IPC file or stream, or one JSON record on each line",
        )
    };
    let open = || File::open(file).map_err(|error| wrong(format!("cannot be read: {error}")));
    let kind = file.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let mut batches: Box<dyn RecordBatchReader> = match kind.as_str() {
        "arrow" | "ipc" | "feather" | "arrows" => match FileReader::try_new(BufReader::new(open()?), None) {
            Ok(reader) => Box::new(reader),
            // What is not in the file format may be in the stream format.
            Err(_) => Box::new(
                StreamReader::try_new(BufReader::new(open()?), None)
                    .map_err(|error| wrong(error.to_string()))?,
            ),
        },
        "json" | "ndjson" | "jsonl" => {
            let mut text = BufReader::new(open()?);
            let rows = sample.max(JSON_ROWS) as usize;
            let (schema, _) = infer_json_schema_from_seekable(&mut text, Some(rows))
                .map_err(|error| wrong(error.to_string()))?;
            text.rewind().map_err(|error| wrong(error.to_string()))?;
            let reader = ReaderBuilder::new(schema.into()).with_batch_size(BATCH_ROWS).build(text);
            Box::new(reader.map_err(|error| wrong(error.to_string()))?)
        }
        _ => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(open()?)
                .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build());
            Box::new(reader.map_err(|error| wrong(error.to_string()))?)
        }
    };
    let stem = named.file_stem().map_or_else(|| "data".into(), |stem| stem.to_string_lossy().into_owned());
    let in_file = |error: sawmill_generator::Error| {
        Error::usage(error.what(), format!("{}, {}", file.display(), error.place()), error.advice())
    };
    let mut inferred = InferredSpec::new(&stem, &batches.schema()).map_err(in_file)?;
    let mut left = sample as usize;
    while left > 0 {
        let Some(batch) = batches.next() else { break };
        let batch = batch.map_err(|error| wrong(error.to_string()))?;
        let batch = batch.slice(0, batch.num_rows().min(left));
        left -= batch.num_rows();
        inferred.add(&batch).map_err(in_file)?;
    }
    Ok(inferred.to_toml())
}
