//! Columns that cannot be read cost the other columns nothing: if they are not wanted, they are left out.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{Field, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema_by_columns};
use parquet::file::metadata::ParquetMetaData;
use sawmill_footer::{ColumnChunk, Footer};
use sawmill_profile::{Error, Kind, Result};

use crate::parquet_files::guarded::{arrow_metadata, guarded};
use crate::parquet_files::opened_file::{not_readable, refused_footer};
use crate::parquet_files::reader::FileBytes;

/// The metadata that readers need, without the columns that cannot be read.
pub(super) struct Readable {
    pub derived: ArrowReaderMetadata,
    /// Whether the Arrow schema in the file was used.
    pub uses_embedded: bool,
    pub left_out: Vec<LeftOut>,
}

/// A column that cannot be read.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub name: String,
    what: String,
}

impl LeftOut {
    /// Returns the error for a column that is wanted.
    pub(super) fn error(&self) -> Error {
        Error::new(Kind::Source, format!("column {:?} cannot be read: {}", self.name, self.what))
            .advise("name the other columns with --columns")
    }
}

/// Returns the fields of a schema whose names are not among these.
pub(super) fn without(schema: &Schema, names: &HashSet<String>) -> Schema {
    let fields = schema.fields().iter().filter(|field| !names.contains(field.name()));
    Schema::new(fields.map(|field| field.as_ref().clone()).collect::<Vec<Field>>())
}

/// Converts the footer of a file. Columns that cannot be read may be left out if `wanted` names others.
///
/// # Errors
/// A wanted column cannot be read; the file cannot, whatever its columns.
pub(super) fn readable(
    footer: &Footer,
    file: &FileBytes,
    wanted: &[String],
    shown: &str,
) -> Result<Readable> {
    check_rows(footer).map_err(|error| error.at(shown))?;
    let mut left_out = Vec::new();
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        if let Err(error) = chunk.is_here() {
            let name = root_of(footer, chunk.leaf());
            if is_wanted(name, wanted) {
                let place = format!("{shown}, {}", error.path());
                return Err(refused_footer(error).at(place));
            }
            leave_out(&mut left_out, name, &error.what(), wanted, shown)?;
        }
        if let Some(what) = damage(&chunk) {
            leave_out(&mut left_out, root_of(footer, chunk.leaf()), &what, wanted, shown)?;
        }
    }
    let metadata = match parquet_metadata(footer, file, &left_out) {
        Ok(metadata) => metadata,
        Err(error) => {
            for (leaf, error) in footer.unreadable_by_parquet_59() {
                leave_out(&mut left_out, root_of(footer, leaf), &error.what(), wanted, shown)?;
            }
            match left_out.as_slice() {
                [] => return Err(refused_footer(error)),
                _ => parquet_metadata(footer, file, &left_out).map_err(refused_footer)?,
            }
        }
    };
    match derived(&metadata) {
        Ok((derived, uses_embedded)) => Ok(Readable { derived, uses_embedded, left_out }),
        Err(error) => {
            let before = left_out.len();
            for (name, what) in without_arrow_type(&metadata) {
                leave_out(&mut left_out, &name, &what, wanted, shown)?;
            }
            if left_out.len() == before {
                return Err(not_readable(&error).at(shown));
            }
            let metadata = parquet_metadata(footer, file, &left_out).map_err(refused_footer)?;
            let (derived, uses_embedded) =
                derived(&metadata).map_err(|error| not_readable(&error).at(shown))?;
            Ok(Readable { derived, uses_embedded, left_out })
        }
    }
}

fn derived(metadata: &Arc<ParquetMetaData>) -> parquet::errors::Result<(ArrowReaderMetadata, bool)> {
    let derive = |options| ArrowReaderMetadata::try_new(Arc::clone(metadata), options);
    arrow_metadata(ArrowReaderOptions::new(), derive)
}

/// The most rows of a file: its units are in memory, and no real file has more rows.
const MAX_ROWS: i64 = 1 << 38;

/// Refuses a number of rows that a damaged footer states.
fn check_rows(footer: &Footer) -> Result<()> {
    let rows = footer.row_groups().fold(0_i64, |rows, group| rows.saturating_add(group.num_rows()));
    if rows <= MAX_ROWS {
        return Ok(());
    }
    let what = format!("the row groups state {rows} rows, more than any file has");
    Err(Error::new(Kind::Source, what).advise("the footer is damaged: write or copy the file again"))
}

/// What keeps a column chunk from being read, though the other columns can be: its footer entry has no values,
/// no bytes or no place, or states a negative one.
fn damage(chunk: &ColumnChunk<'_>) -> Option<String> {
    let (group, rows) = (chunk.row_group().index(), chunk.row_group().num_rows());
    if rows == 0 || !chunk.has_metadata() {
        return None;
    }
    let is_counted = chunk.num_values() > 0 || chunk.element().max_rep() == 0;
    let missing = match (is_counted, chunk.byte_range()) {
        (false, _) => "num_values",
        (_, range) if range.start == 0 => "data_page_offset",
        (_, range) if range.is_empty() => "total_compressed_size",
        _ => return None,
    };
    Some(format!("in row group {group} of {rows} rows, its {missing} is 0 or negative"))
}

/// Leaves out a column. Fails if the column is wanted; if `wanted` is empty, all columns are.
fn leave_out(
    left_out: &mut Vec<LeftOut>,
    name: &str,
    what: &str,
    wanted: &[String],
    shown: &str,
) -> Result<()> {
    if left_out.iter().any(|before| before.name == name) {
        return Ok(());
    }
    let column = LeftOut { name: name.to_owned(), what: what.to_owned() };
    if is_wanted(name, wanted) {
        return Err(column.error().at(shown));
    }
    left_out.push(column);
    Ok(())
}

fn is_wanted(name: &str, wanted: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == name)
}

fn root_of(footer: &Footer, leaf: usize) -> &str {
    footer.schema().leaf(leaf).map_or("", |leaf| leaf.top().name())
}

/// Returns the columns that Arrow has no type for, and why.
fn without_arrow_type(metadata: &ParquetMetaData) -> Vec<(String, String)> {
    let schema = metadata.file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields().iter().enumerate();
    let failed = fields.filter_map(|(place, field)| {
        let mask = ProjectionMask::roots(schema, [place]);
        let alone = guarded(|| parquet_to_arrow_schema_by_columns(schema, mask, None));
        alone.err().map(|error| (field.name().to_owned(), error.to_string()))
    });
    failed.collect()
}

/// Returns the footer in the `parquet` crate's form, with the places of pages where they can be read: without them
/// more is read, but the same rows.
fn parquet_metadata(
    footer: &Footer,
    file: &FileBytes,
    left_out: &[LeftOut],
) -> std::result::Result<Arc<ParquetMetaData>, sawmill_footer::Error> {
    let is_read = |leaf: &usize| !left_out.iter().any(|column| column.name == root_of(footer, *leaf));
    let leaves: Vec<usize> = (0..footer.num_columns()).filter(is_read).collect();
    let with_places = footer.to_parquet_59_with_offset_indexes(Some(&leaves), file);
    with_places.or_else(|_| footer.to_parquet_59(Some(&leaves))).map(Arc::new)
}
