//! Guards calls of the `parquet` crate, which may panic on bytes that no writer would produce: page indexes
//! that point before their column chunk, an invalid embedded schema, encodings that do not match the type.
//!
//! The reader that panicked must not be used again. The caller reports the file, the row group and the column.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{ConvertedType, LogicalType};
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::columns::common::with_readable_dictionaries;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// What users read of a panic: bytes that no writer would produce are damaged.
const DAMAGED: &str = "the data is damaged, and cannot be decoded";

/// The `parquet` crate panicked.
#[derive(Debug)]
pub struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DAMAGED)
    }
}

impl From<Panicked> for ParquetError {
    fn from(panicked: Panicked) -> Self {
        Self::General(panicked.to_string())
    }
}

impl From<Panicked> for ArrowError {
    fn from(panicked: Panicked) -> Self {
        Self::ParquetError(panicked.to_string())
    }
}

/// Returns what `decode` returns, and catches its panics.
///
/// # Errors
/// The error of `decode`, or [`Panicked`] if it panicked.
pub fn guarded<T, E: From<Panicked>>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let before = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(before);
    decoded.unwrap_or_else(|_| Err(Panicked.into()))
}

/// Returns the fault of a page, from the error of decoding it.
pub fn fault_of_page(error: &impl fmt::Display) -> String {
    let what = error.to_string();
    if what.ends_with(DAMAGED) {
        "the page's data is damaged, and cannot be decoded".to_owned()
    } else {
        what
    }
}

/// Returns the first of these leaf columns that cannot be decoded alone, from the rows that `rows` makes readers of.
///
/// # Errors
/// Errors of `rows`.
pub fn undecodable<R: ChunkReader + 'static, E>(
    leaves: impl IntoIterator<Item = usize>,
    rows: impl Fn() -> Result<ParquetRecordBatchReaderBuilder<R>, E>,
) -> Result<Option<usize>, E> {
    for leaf in leaves {
        let rows = rows()?;
        let (whole, _) = whole_maps(rows.parquet_schema(), leaf);
        let mask = ProjectionMask::leaves(rows.parquet_schema(), whole);
        let decoded = guarded(|| rows.with_projection(mask).build()?.try_for_each(|batch| batch.map(drop)));
        if decoded.is_err() {
            return Ok(Some(leaf));
        }
    }
    Ok(None)
}

/// Returns, in ascending order, the leaf columns without which a leaf cannot be read, because half a map is none: the leaf, and for each map
/// around it the first leaf of its other half. Also returns for each of these maps whether the leaf is in its keys (0) or
/// in its values (1).
pub(crate) fn whole_maps(schema: &SchemaDescriptor, leaf: usize) -> (Vec<usize>, Vec<usize>) {
    let path_of = |leaf: usize| schema.column(leaf).path().parts().to_vec();
    let (path, mut leaves, mut halves) = (path_of(leaf), vec![leaf], Vec::new());
    let mut group = schema.root_schema_ptr();
    let (mut is_map, mut is_entry) = (false, false);
    for (depth, name) in path.iter().enumerate() {
        let fields = group.get_fields();
        let Some(half) = fields.iter().position(|field| field.name() == name) else { break };
        if is_entry {
            let is_other =
                |other: &[String]| other.starts_with(&path[..depth]) && !other.starts_with(&path[..=depth]);
            leaves.extend((0..schema.num_columns()).find(|other| is_other(&path_of(*other))));
            halves.push(half);
        }
        let next = Arc::clone(&fields[half]);
        if !next.is_group() {
            break;
        }
        (is_entry, is_map) = (is_map, !is_map && is_a_map(&next));
        group = next;
    }
    leaves.sort_unstable();
    (leaves, halves)
}

fn is_a_map(group: &Type) -> bool {
    let info = group.get_basic_info();
    matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
        || matches!(info.logical_type_ref(), Some(LogicalType::Map))
}

/// Derives the Arrow schema of a file by `derive`. The Arrow schema that the file embeds is a hint: if it cannot be
/// used (Polars' of 128-bit integers, one nested too deep), columns have the types that the Parquet schema gives them,
/// and dictionaries that the `parquet` crate does not read are read as plain values. Returns whether the embedded
/// schema was used.
///
/// # Errors
/// The error of `derive` without that schema, or that it panicked.
pub fn arrow_metadata(
    options: ArrowReaderOptions,
    derive: impl Fn(ArrowReaderOptions) -> Result<ArrowReaderMetadata, ParquetError>,
) -> Result<(ArrowReaderMetadata, bool), ParquetError> {
    let hinted = guarded(|| {
        let derived = derive(options.clone())?;
        match with_readable_dictionaries(derived.schema()) {
            None => Ok(derived),
            Some(readable) => {
                let options = options.clone().with_schema(Arc::new(readable));
                ArrowReaderMetadata::try_new(Arc::clone(derived.metadata()), options)
            }
        }
    });
    match hinted {
        Ok(hinted) => Ok((hinted, true)),
        Err(_) => guarded(|| derive(options.with_skip_arrow_metadata(true))).map(|derived| (derived, false)),
    }
}

/// Suppresses the report of panics that this module turns into errors. A program calls it once, at its start;
/// all other panics are reported as before.
pub fn silence_guarded_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            report(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_only_the_guarded_call() {
        let within: Result<bool, Panicked> = guarded(|| {
            let lost: Result<u8, Panicked> = guarded(|| Ok([0; 3][std::hint::black_box(3)]));
            assert!(lost.is_err());
            Ok(GUARDED.get())
        });
        assert!(within.is_ok_and(|guarded| guarded), "the outer call is still guarded");
        assert!(!GUARDED.get());
    }
}
