//! Reads checkpoints: the entries of all commits up to a version, in Parquet or JSON.

use std::sync::Arc;

use arrow_json::LineDelimitedWriter;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use sawmill_footer::{ColumnChunk, Footer, Options};
use sawmill_inspect::{DEFAULT_MAX_PAGE, check_page_sizes};
use sawmill_profile::{Error, Kind};

use crate::action::Action;
use crate::log_name::LOG;
use crate::table_folder::TableFolder;

/// The folder of the files that hold most entries of some checkpoints.
const SIDECARS: &str = "_sidecars";

/// The columns to read; file statistics are not among them.
const COLUMNS: [&str; 5] = ["protocol", "metaData", "txn", "sidecar", "add"];
const OF_ADD: [&str; 5] = ["path", "partitionValues", "size", "modificationTime", "deletionVector"];
/// Maximum rows of a checkpoint file. Writers split a checkpoint into several files long before that.
const MAX_ROWS: i64 = 64 << 20;
/// Entries take more bytes than this, because they name files; a few may be equal.
const ENTRY_BYTES: usize = 8;
const MIN_ENTRIES: usize = 10_000;
/// As JSON they are at most so many times as long as in the file, except for a few.
const USUAL_RATIO: usize = 64;
const MIN_TEXT: usize = 16 << 20;
/// The longest line. Its schema or the values of a file take most of it.
const MAX_LINE: usize = 16 << 20;
/// How many rows are read at a time, and how many bytes they may have.
const BATCH_ROWS: usize = 1024;
const MAX_DECODED: u64 = 32 << 20;

/// Where entries go, one after the other.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Action) -> Result<(), String>;

/// Takes the entries of a checkpoint in these files of the log's folder.
pub(crate) fn read(table: &dyn TableFolder, names: &[String], take: Take<'_>) -> sawmill_profile::Result<()> {
    let mut sidecars = Vec::new();
    for name in names {
        read_file(table, &format!("{LOG}/{name}"), &mut |action| {
            sidecars.extend(action.sidecar.as_ref().map(|sidecar| sidecar.path.clone()));
            take(action)
        })?;
    }
    for sidecar in sidecars {
        if sidecar.contains('/') {
            return Err(Error::new(Kind::Failed, "a sidecar outside of the log's folder")
                .at(sidecar)
                .advise(
                    "write a checkpoint of the table without sidecars, or one that has them in its log",
                ));
        }
        read_file(table, &format!("{LOG}/{SIDECARS}/{sidecar}"), take)?;
    }
    Ok(())
}

fn read_file(table: &dyn TableFolder, name: &str, take: Take<'_>) -> sawmill_profile::Result<()> {
    let place = || table.location(name).map_or_else(|_| name.to_owned(), |place| place.to_string());
    let damaged = |what: String| {
        Error::new(Kind::Failed, format!("the checkpoint cannot be read: {what}"))
            .at(place())
            .advise("restore it, or remove it if the log has all commits before it")
    };
    let bytes = table.read(name, u64::MAX)?.ok_or_else(|| damaged("the file is missing".to_owned()))?;
    match name.ends_with(".json") {
        true => each_action(&bytes, take),
        false => each_action_of_parquet(bytes, take),
    }
    .map_err(damaged)
}

/// Takes the entries on the lines of a commit, or of a checkpoint in JSON.
pub(crate) fn each_action(lines: &[u8], take: Take<'_>) -> Result<(), String> {
    let lines = lines.split(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
        let at = |what: String| format!("line {}: {what}", at + 1);
        // What is made of a line takes some ten times its bytes.
        if line.len() > MAX_LINE {
            return Err(at(format!("it has {} bytes, more than {MAX_LINE}", line.len())));
        }
        let action: Action = serde_json::from_slice(line).map_err(|error| at(error.to_string()))?;
        if action.is_used() {
            take(action)?;
        }
    }
    Ok(())
}

/// Takes the entries in the rows of a Parquet file. Empty rows, which a file can claim by the billion in a few bytes,
/// take no memory.
fn each_action_of_parquet(mut bytes: Vec<u8>, take: Take<'_>) -> Result<(), String> {
    let size = bytes.len();
    let most = size / ENTRY_BYTES + MIN_ENTRIES;
    let footer = Footer::from_file_bytes(&bytes, &Options::new()).map_err(|e| e.to_string())?;
    let rows: i64 = footer.row_groups().map(|group| group.num_rows()).fold(0, i64::saturating_add);
    if rows > MAX_ROWS {
        return Err(format!("it has {rows} rows, where at most {MAX_ROWS} are read"));
    }
    let is_read = |chunk: &ColumnChunk<'_>| COLUMNS.contains(&chunk.element().top().name());
    let (row, headers) = check_page_sizes(&footer, bytes.as_slice(), DEFAULT_MAX_PAGE, u64::MAX, is_read)
        .map_err(|e| e.to_string())?;
    for (at, header) in headers {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let there = bytes.get_mut(at..).and_then(|behind| behind.get_mut(..header.len()));
        there.into_iter().for_each(|there| there.copy_from_slice(&header));
    }
    let at_once = usize::try_from(MAX_DECODED / row.max(1)).unwrap_or(BATCH_ROWS).clamp(1, BATCH_ROWS);
    let all: Vec<usize> = (0..footer.num_columns()).collect();
    let metadata = Arc::new(footer.to_parquet_59(Some(&all)).map_err(|e| e.to_string())?);
    // The Parquet schema's types suffice.
    let metadata =
        ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new().with_skip_arrow_metadata(true))
            .map_err(|e| e.to_string())?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(Bytes::from(bytes), metadata);
    let schema = builder.parquet_schema();
    let wanted = (0..schema.num_columns()).filter(|leaf| {
        let column = schema.column(*leaf);
        match column.path().parts() {
            [root, field, ..] if root == "add" => OF_ADD.contains(&field.as_str()),
            [root, ..] => COLUMNS.contains(&root.as_str()),
            [] => false,
        }
    });
    let mask = ProjectionMask::leaves(schema, wanted);
    let reader = builder.with_projection(mask).with_batch_size(at_once).build().map_err(|e| e.to_string())?;
    let (mut count, mut text) = (0, 0);
    for batch in reader {
        let mut lines = LineDelimitedWriter::new(Vec::new());
        lines.write(&batch.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        lines.finish().map_err(|e| e.to_string())?;
        let lines = lines.into_inner();
        text += lines.len();
        each_action(&lines, &mut |action| {
            count += 1;
            take(action)
        })?;
        if count > most || text > size.saturating_mul(USUAL_RATIO).saturating_add(MIN_TEXT) {
            let what = format!("{count} entries of {text} bytes in {size} bytes of the file");
            return Err(format!("it is made to exhaust memory: found {what}"));
        }
    }
    Ok(())
}
