//! Text that is not UTF-8: read as bytes, so that single rows can be refused, and found for messages.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;

use crate::parquet_files::guarded::whole_maps;
use crate::parquet_files::interval::as_bytes;

/// Returns the metadata of a file whose text columns are read as bytes, except these fields.
pub(super) fn text_as_bytes(
    file: &ArrowReaderMetadata,
    keep: &[usize],
) -> Result<ArrowReaderMetadata, ParquetError> {
    let is_text = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    };
    let fields = file.schema().fields();
    let is_read_as_bytes = |place: usize| {
        !keep.contains(&place) && fields.get(place).is_some_and(|field| is_text(field.data_type()))
    };
    let leaves = file.metadata().file_metadata().schema_descr();
    let text: Vec<usize> = (0..leaves.num_columns())
        .filter(|leaf| is_read_as_bytes(leaves.get_column_root_idx(*leaf)))
        .collect();
    let wanted = fields.iter().enumerate().map(|(place, field)| match is_read_as_bytes(place) {
        true => field.as_ref().clone().with_data_type(DataType::BinaryView),
        false => field.as_ref().clone(),
    });
    let wanted = Schema::new_with_metadata(wanted.collect::<Vec<Field>>(), file.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(wanted));
    ArrowReaderMetadata::try_new(as_bytes(file.metadata(), &text)?, options)
}

/// Returns the first row of a row group, from this one on, in which a leaf column has text that is not UTF-8, and
/// the fault. Reads row by row.
pub(super) fn first(
    bytes: impl ChunkReader + 'static,
    file: &ArrowReaderMetadata,
    (group, leaf): (usize, usize),
    from: u64,
) -> Option<(u64, String)> {
    let leaves = file.metadata().file_metadata().schema_descr();
    if leaves.column(leaf).physical_type() != Type::BYTE_ARRAY {
        return None;
    }
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let (whole, halves) = whole_maps(leaves, leaf);
    let plain = ArrowReaderMetadata::try_new(as_bytes(file.metadata(), &whole).ok()?, options).ok()?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, plain);
    let mask = ProjectionMask::leaves(builder.parquet_schema(), whole);
    let rows = builder.with_row_groups(vec![group]).with_projection(mask).with_batch_size(1);
    for (row, batch) in (from..).zip(rows.with_offset(usize::try_from(from).ok()?).build().ok()?) {
        if let Some(what) = batch.ok()?.columns().first().and_then(|array| not_utf8(array, &halves)) {
            return Some((row, what));
        }
    }
    None
}

/// Returns the fault of the first value below an array that is not UTF-8. `halves` tells for each map whether the values
/// are below its keys (0) or its values (1).
fn not_utf8(array: &ArrayRef, halves: &[usize]) -> Option<String> {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().flatten().find_map(complaint),
        DataType::List(_) => not_utf8(array.as_list::<i32>().values(), halves),
        DataType::Map(..) => {
            let (half, below) = halves.split_first()?;
            not_utf8(array.as_map().entries().columns().get(*half)?, below)
        }
        DataType::Struct(_) => array.as_struct().columns().iter().find_map(|column| not_utf8(column, halves)),
        _ => None,
    }
}

/// Returns the fault of a text that is not UTF-8.
fn complaint(value: &[u8]) -> Option<String> {
    let at = std::str::from_utf8(value).err()?.valid_up_to();
    let start: String = String::from_utf8_lossy(value).chars().take(60).collect();
    let byte = value.get(at).copied().unwrap_or_default();
    Some(format!("the text {start:?} is not UTF-8: byte 0x{byte:02x} at {at}"))
}
