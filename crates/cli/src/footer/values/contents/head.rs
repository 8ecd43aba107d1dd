//! `sawmill footer head` and `cat`: rows as JSON, read by the `parquet` crate with metadata that this
//! project's decoder made for the selected columns.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use arrow_schema::{ArrowError, DataType, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaData;
use sawmill_footer::{Footer, annotated_59};
use sawmill_inspect::{JsonSafe, check_page_sizes};
use sawmill_source::{
    FileBytes, fault_of_page, guarded, intervals_as_bytes, rows_within, undecodable, with_leaves,
};

use crate::arguments::stores::PlaceBytes;
use crate::error::{Error, Result};
use crate::footer::escaped_place;
use crate::footer::place::{Place, Places};
use crate::footer::run::unwritten;
use crate::footer::values::args::HeadArgs;
use crate::footer::values::contents::chunk_alone::footer_with_data;
use crate::r#gen::formats::ndjson;
use crate::r#gen::formats::text_form::{NoText, text_batch};
use crate::interrupt;
use crate::screen::console::Console;

/// Columns that an error names.
const MAX_NAMED: usize = 8;

/// The most rows of a batch: few, so that the first ones of wide files come soon.
const BATCH_ROWS: usize = 256;

/// Writes up to `rows` rows of all files together, after the first `skip`.
pub(crate) fn run(args: &HeadArgs, rows: u64, console: Console) -> Result<()> {
    let mut out = console.output();
    let (mut left, mut skip) = (rows, args.skip);
    let chunks = &args.chunks;
    let Places { places, objects } = Places::new(&chunks.files, &chunks.stores)?;
    // Also if the rows of the others suffice.
    if let Some(missing) = places.iter().find(|place| matches!(place, Place::Path(path) if !path.exists())) {
        missing.open(&objects)?;
    }
    for place in &places {
        if left == 0 {
            break;
        }
        let opened = place.open(&objects)?;
        let footer =
            footer_with_data(&opened, &chunks.column, chunks.row_group.as_ref(), &escaped_place(place))?;
        let there = footer.row_groups().map(|group| group.num_rows().max(0) as u64).sum::<u64>();
        let skipped = skip.min(there);
        skip -= skipped;
        let wanted = left.min(there - skipped);
        left -= wanted;
        if wanted > 0 {
            write_rows((place, &opened), &footer, (skipped, wanted), args.max_page, &mut out)?;
        }
    }
    out.flush().map_err(unwritten)
}

fn write_rows(
    (place, opened): (&Place, &PlaceBytes),
    footer: &Footer,
    (skip, rows): (u64, u64),
    max_page: u64,
    out: &mut impl Write,
) -> Result<()> {
    let failed_at = |error: String, place: String| {
        let advice = "sawmill footer FILE --check looks for faults; --column reads fewer columns";
        opened.because(Error::failure(format!("reading rows failed: {error}"), place, advice))
    };
    let failed = |error: String| failed_at(error, escaped_place(place));
    check_chunks(footer, place)?;
    let metadata = footer.to_parquet_59(None)?;
    if metadata.file_metadata().schema_descr().num_columns() < footer.num_columns() {
        return Err(unreadable(footer, escaped_place(place)));
    }
    let sizes = check_page_sizes(footer, &opened.bytes, max_page, skip.saturating_add(rows), |_| true);
    let (row_size, headers) = sizes.map_err(|error| opened.because(error.into()))?;
    let bytes = opened.bytes.clone().corrected(headers);
    let at_once = rows_within(row_size).min(BATCH_ROWS);
    let metadata = in_utc(Arc::new(metadata)).map_err(|error| failed(error.to_string()))?;
    let limit = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let all = || ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), metadata.clone());
    let builder =
        all().with_batch_size(limit(rows).min(at_once)).with_offset(limit(skip)).with_limit(limit(rows));
    let damaged = |what: String| {
        let found = damaged_column(footer, skip.saturating_add(rows), |group, rows| {
            all().with_row_groups(vec![group]).with_batch_size(at_once).with_limit(limit(rows))
        });
        failed_at(what, escaped_place(place) + &found.unwrap_or_default())
    };
    let mut reader = guarded(|| builder.build()).map_err(|error| damaged(fault_of_page(&error)))?;
    let mut first = skip;
    loop {
        let batch = guarded(|| reader.next().transpose()).map_err(|error| damaged(fault_of_page(&error)))?;
        let Some(batch) = batch else { break };
        if let Err(NoText::Value { column, row, what }) = text_batch(&batch) {
            let place = format!("{}, column {column}, row {}", escaped_place(place), first + row as u64);
            return Err(Error::failure(what, place, "name the other columns with --column"));
        }
        first += batch.num_rows() as u64;
        ndjson::write_rows(&batch, &mut JsonSafe(&mut *out)).map_err(|error| match error {
            ArrowError::IoError(_, error) => unwritten(error),
            error => failed(error.to_string()),
        })?;
        interrupt::check()?;
    }
    Ok(())
}

/// Checks that all column chunks are in the file, and have bytes if they have rows.
fn check_chunks(footer: &Footer, place: &Place) -> Result<()> {
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        chunk.is_here()?;
        let rows = chunk.row_group().num_rows();
        if rows > 0 && chunk.has_metadata() && chunk.byte_range().is_empty() {
            let (group, path) = (chunk.row_group().index(), chunk.path());
            let what =
                format!("its total_compressed_size is 0 or negative, and the row group has {rows} rows");
            let place = format!(
                "{}, row group {group}, column {}",
                escaped_place(place),
                sawmill_inspect::escaped(&path)
            );
            return Err(Error::failure(what, place, "name the other columns with --column"));
        }
    }
    Ok(())
}

/// The first column that cannot be decoded within the first `rows` rows, as a part of a place. `reader` makes a reader
/// of the first rows of a row group.
fn damaged_column(
    footer: &Footer,
    rows: u64,
    reader: impl Fn(usize, u64) -> ParquetRecordBatchReaderBuilder<FileBytes>,
) -> Option<String> {
    let mut left = rows;
    for (number, group) in footer.row_groups().enumerate() {
        if left == 0 {
            break;
        }
        let here = left.min(group.num_rows().max(0) as u64);
        left -= here;
        let leaves = 0..footer.num_columns();
        let Ok(found) = undecodable(leaves, || Ok::<_, Infallible>(reader(number, here)));
        if let Some(leaf) = found {
            let path = footer.schema().leaf(leaf).map(|leaf| leaf.path()).unwrap_or_default();
            return Some(format!(
                ", row group {}, column {}",
                group.index(),
                sawmill_inspect::escaped(&path)
            ));
        }
    }
    None
}

/// The error for columns that cannot be read: names the first of them and their faults.
fn unreadable(footer: &Footer, place: String) -> Error {
    let all = footer.unreadable_by_parquet_59();
    let name = |leaf: usize| footer.schema().leaf(leaf).map(|leaf| leaf.path()).unwrap_or_default();
    let named = all.iter().take(MAX_NAMED).map(|(leaf, error)| {
        format!("`{}` ({})", sawmill_inspect::escaped(&name(*leaf)), sawmill_inspect::escaped(&error.what()))
    });
    let mut named: Vec<String> = named.collect();
    if all.len() > MAX_NAMED {
        named.push(format!("{} more", all.len() - MAX_NAMED));
    }
    let columns = if all.len() == 1 { "column" } else { "columns" };
    let what = format!("{} {columns} cannot be read: {}", all.len(), named.join(", "));
    Error::failure(what, place, "name the others with --column")
}

/// What arrow-rs needs of the metadata, with all instants in UTC: names of time zones would need a database.
fn in_utc(metadata: Arc<ParquetMetaData>) -> parquet::errors::Result<ArrowReaderMetadata> {
    let read = intervals_as_bytes(&metadata)?;
    let found = sawmill_source::arrow_metadata(ArrowReaderOptions::new(), |options| {
        ArrowReaderMetadata::try_new(Arc::clone(&read), options)
    });
    let (found, _) = found?;
    let annotated = annotated_59(found.schema(), metadata.file_metadata().schema_descr());
    let schema = annotated.as_ref().unwrap_or(found.schema());
    let Ok(fields) = with_leaves(schema.fields(), &mut |field| {
        Ok::<_, Infallible>(match field.data_type() {
            DataType::Timestamp(unit, Some(_)) => {
                let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
                Arc::new(field.as_ref().clone().with_data_type(utc))
            }
            _ => Arc::clone(field),
        })
    });
    if fields == *found.schema().fields() {
        return Ok(found);
    }
    let schema = Arc::new(Schema::new_with_metadata(fields, found.schema().metadata().clone()));
    ArrowReaderMetadata::try_new(read, ArrowReaderOptions::new().with_schema(schema))
}
