//! The columns of files that differ: a type that holds the values of two, and what some of the files have themselves.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType::{
    Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64, Int8, Int16, Int32, Int64,
    Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use crate::columns::common::{common, values_of};
use crate::parquet_files::schema::{EXTENSION_NAME, same};
use crate::units::Source;

/// Returns the columns that the files of a source have themselves, with the types that hold their values: without
/// columns that only other files of the folder have. Equals the source's schema if its files do not differ.
pub fn columns_of_files(source: &dyn Source) -> SchemaRef {
    let whole = source.schema();
    let own: Option<Vec<&SchemaRef>> = source.files().iter().map(|file| file.columns.as_ref()).collect();
    let Some(own) = own.filter(|own| !own.is_empty()) else { return Arc::clone(whole) };
    let of_field = |field: &FieldRef| {
        let found = own.iter().filter_map(|schema| schema.field_with_name(field.name()).ok());
        let has_all = found.clone().count() == own.len();
        let widest = found.map(|own| Some(own.clone())).reduce(|a, b| widest(&a?, &b?))?;
        let typed = widest.filter(|widest| *widest.data_type() != DataType::Null);
        let widest = typed.unwrap_or_else(|| field.as_ref().clone());
        let nullable = !has_all || widest.is_nullable();
        Some(widest.with_nullable(nullable))
    };
    let fields: Vec<Field> = whole.fields().iter().filter_map(of_field).collect();
    Arc::new(Schema::new(fields))
}

/// Returns the field that holds the values of both without a loss; `None` if there is none.
pub(crate) fn widest(first: &Field, other: &Field) -> Option<Field> {
    if same(first, other) {
        return Some(common(first, other));
    }
    let extension = |field: &Field| field.metadata().contains_key(EXTENSION_NAME);
    if extension(first) || extension(other) {
        return None;
    }
    let data_type = wider(values_of(first.data_type()), values_of(other.data_type()))?;
    let nullable = first.is_nullable() || other.is_nullable();
    Some(first.clone().with_data_type(data_type).with_nullable(nullable))
}

fn wider(a: &DataType, b: &DataType) -> Option<DataType> {
    let finer = |a: TimeUnit, b: TimeUnit| if rank(a) >= rank(b) { a } else { b };
    match (a, b) {
        (Timestamp(a, zone), Timestamp(b, other)) if zone.is_some() == other.is_some() => {
            Some(Timestamp(finer(*a, *b), zone.clone()))
        }
        (Time32(a) | Time64(a), Time32(b) | Time64(b)) => Some(match finer(*a, *b) {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => Time32(unit),
            unit => Time64(unit),
        }),
        (Float16 | Float32 | Float64, Float16 | Float32 | Float64) => {
            Some(if [a, b].contains(&&Float64) { Float64 } else { Float32 })
        }
        _ if a.is_integer() && b.is_integer() => wider_integer(a, b),
        _ => wider_decimal(digits(a)?, digits(b)?),
    }
}

fn rank(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

fn wider_integer(a: &DataType, b: &DataType) -> Option<DataType> {
    let bits = |of: &DataType| of.primitive_width().map(|bytes| 8 * bytes);
    let (wide, signed) = (bits(a)?.max(bits(b)?), a.is_signed_integer() || b.is_signed_integer());
    if !signed {
        return Some(match wide {
            8 => UInt8,
            16 => UInt16,
            32 => UInt32,
            _ => UInt64,
        });
    }
    // A signed type has one bit less for positive numbers.
    let needed = |of: &DataType| Some(bits(of)? + usize::from(!of.is_signed_integer()));
    Some(match needed(a)?.max(needed(b)?) {
        ..=8 => Int8,
        9..=16 => Int16,
        17..=32 => Int32,
        33..=64 => Int64,
        _ => Decimal128(20, 0),
    })
}

/// Digits before and behind the point.
fn digits(of: &DataType) -> Option<(u8, u8)> {
    Some(match of {
        Int8 | UInt8 => (3, 0),
        Int16 | UInt16 => (5, 0),
        Int32 | UInt32 => (10, 0),
        Int64 => (19, 0),
        UInt64 => (20, 0),
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            (precision.checked_sub(scale)?, scale)
        }
        _ => return None,
    })
}

fn wider_decimal(a: (u8, u8), b: (u8, u8)) -> Option<DataType> {
    let (before, behind) = (a.0.max(b.0), a.1.max(b.1));
    let scale = i8::try_from(behind).ok()?;
    match before.checked_add(behind)? {
        precision @ ..=38 => Some(Decimal128(precision, scale)),
        precision @ 39..=76 => Some(Decimal256(precision, scale)),
        _ => None,
    }
}

/// Returns the batch with the wider types that other files have for some of its columns.
pub(crate) fn widened<'a>(
    batch: &RecordBatch,
    wanted: impl Iterator<Item = Option<&'a FieldRef>>,
) -> Result<RecordBatch, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
    for ((field, array), wanted) in batch.schema_ref().fields().iter().zip(batch.columns()).zip(wanted) {
        let is_narrow = |wanted: &&FieldRef| {
            wanted.data_type() != field.data_type()
                && wider(values_of(field.data_type()), wanted.data_type()).is_some()
        };
        let array = match wanted.filter(is_narrow) {
            None => Arc::clone(array),
            Some(wanted) => cast_with_options(array, wanted.data_type(), &options)?,
        };
        fields.push(Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone())));
        columns.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wider_type_holds_the_values_of_both_or_there_is_none() {
        use DataType::Utf8View;
        let zone = Some("UTC".into());
        for (a, b, wide) in [
            (Int32, Int64, Some(Int64)),
            (UInt8, Int8, Some(Int16)),
            (UInt32, Int32, Some(Int64)),
            (UInt64, Int8, Some(Decimal128(20, 0))),
            (UInt16, UInt32, Some(UInt32)),
            (Float32, Float64, Some(Float64)),
            (Decimal128(10, 2), Decimal128(10, 4), Some(Decimal128(12, 4))),
            (Int64, Decimal128(10, 4), Some(Decimal128(23, 4))),
            (Decimal128(38, 0), Decimal128(38, 38), Some(Decimal256(76, 38))),
            (Decimal256(76, 0), Decimal128(38, 38), None),
            (
                Timestamp(TimeUnit::Millisecond, None),
                Timestamp(TimeUnit::Microsecond, None),
                Some(Timestamp(TimeUnit::Microsecond, None)),
            ),
            (Timestamp(TimeUnit::Second, zone), Timestamp(TimeUnit::Second, None), None),
            (Int64, Float64, None),
            (Int64, Utf8View, None),
        ] {
            assert_eq!(wider(&a, &b), wide, "{a} {b}");
            assert_eq!(wider(&b, &a), wide, "{b} {a}");
        }
    }
}
