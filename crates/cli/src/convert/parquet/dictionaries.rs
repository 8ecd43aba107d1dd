//! Finds columns with too many distinct values for a dictionary: the writer would build it and throw it away.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

/// The fewest rows that say something.
const MIN: usize = 1024;

/// The share of distinct values in 4,096 rows from which on a column has more than 60,000 of them, if they are
/// evenly distributed: its dictionary takes more than it saves.
const DISTINCT: f64 = 0.97;

/// Returns the properties without dictionaries for the columns whose values in the first rows are nearly all
/// distinct. `given` are the columns whose encoding the user has chosen; `None` means all of them.
pub(super) fn without_useless(
    properties: WriterProperties,
    first: &RecordBatch,
    given: &[Option<&str>],
) -> WriterProperties {
    if first.num_rows() < MIN || given.contains(&None) {
        return properties;
    }
    let mut properties = properties.into_builder();
    for (field, column) in first.schema_ref().fields().iter().zip(first.columns()) {
        let is_given = given.contains(&Some(field.name().as_str()));
        if !is_given && distinct(column.as_ref()).is_some_and(|share| share > DISTINCT) {
            let path = ColumnPath::new(vec![field.name().clone()]);
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    properties.build()
}

/// The share of distinct values among the values that are not null; `None` for few values, and for types that
/// have few or that are not examined.
fn distinct(array: &dyn Array) -> Option<f64> {
    let values = array.len() - array.null_count();
    if values < MIN {
        return None;
    }
    let state = RandomState::new();
    let mut seen = HashSet::with_capacity(values);
    match array.data_type() {
        DataType::Int32 => add::<Int32Type>(array, &mut seen, i64::from),
        DataType::Int64 => add::<Int64Type>(array, &mut seen, |value| value),
        DataType::Date32 => add::<Date32Type>(array, &mut seen, i64::from),
        DataType::Float64 => add::<Float64Type>(array, &mut seen, |value| value.to_bits().cast_signed()),
        DataType::Time64(TimeUnit::Microsecond) => {
            add::<Time64MicrosecondType>(array, &mut seen, |value| value);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            add::<TimestampMicrosecondType>(array, &mut seen, |value| value);
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            add::<TimestampNanosecondType>(array, &mut seen, |value| value);
        }
        DataType::Utf8 => {
            let texts = array.as_string_opt::<i32>()?;
            // Two texts with one hash only make the share smaller.
            seen.extend(texts.iter().flatten().map(|text| state.hash_one(text).cast_signed()));
        }
        _ => return None,
    }
    Some(seen.len() as f64 / values as f64)
}

fn add<T: ArrowPrimitiveType>(array: &dyn Array, seen: &mut HashSet<i64>, bits: impl Fn(T::Native) -> i64) {
    if let Some(values) = array.as_primitive_opt::<T>() {
        seen.extend(values.iter().flatten().map(bits));
    }
}
