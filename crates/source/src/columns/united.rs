//! The columns of files that differ: a type that holds the values of two, and what some of the files have themselves.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, i256};
use arrow_schema::DataType::{
    Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64, Int8, Int16, Int32, Int64,
    Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow_select::take::take;

use crate::columns::common::{common, has_other_fields, is_untyped, values_of, with_type};
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
    match (a, b) {
        (Timestamp(a, zone), Timestamp(b, other)) if zone.is_some() == other.is_some() => {
            Some(Timestamp((*a).max(*b), zone.clone()))
        }
        (Time32(a) | Time64(a), Time32(b) | Time64(b)) => Some(match (*a).max(*b) {
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

/// Returns the batch with the types of `wanted` for columns without a type, for narrower ones, and for structs with other
/// fields. Its columns may be `nullable` as in other files.
pub(crate) fn as_wanted<'a>(
    batch: &RecordBatch,
    wanted: impl Iterator<Item = Option<&'a FieldRef>>,
    nullable: bool,
) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
    for ((field, array), wanted) in batch.schema_ref().fields().iter().zip(batch.columns()).zip(wanted) {
        let has = field.data_type();
        let array = match wanted.map(|wanted| wanted.data_type()) {
            Some(wanted) if is_untyped(has) || has_other_fields(has, wanted) => with_type(array, wanted)?,
            Some(wanted) if wanted != has && wider(values_of(has), wanted).is_some() => wide(array, wanted)?,
            _ => Arc::clone(array),
        };
        let field = field.as_ref().clone().with_data_type(array.data_type().clone());
        fields.push(Arc::new(if nullable { field.with_nullable(true) } else { field }));
        columns.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Returns the same values as a type that is wider by [`wider`]. Not by `arrow-cast`, for which the README's first
/// command would wait: these few types need no text.
fn wide(array: &dyn Array, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return wide(&take(dictionary.values(), dictionary.keys(), None)?, wanted);
    }
    Ok(match (array.data_type(), wanted) {
        (has, wanted) if has == wanted => make_array(array.to_data()),
        (Float16, Float32) => {
            Arc::new(array.as_primitive::<Float16Type>().unary::<_, Float32Type>(|value| value.to_f32()))
        }
        (Float16, Float64) => {
            Arc::new(array.as_primitive::<Float16Type>().unary::<_, Float64Type>(|value| value.to_f64()))
        }
        (Float32, Float64) => {
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float64Type>(f64::from))
        }
        _ => whole_numbers(array, wanted)?,
    })
}

/// Powers of ten by which the numbers of a type are smaller than its units.
fn exponent(data_type: &DataType) -> i32 {
    match data_type {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
            i32::from(*scale)
        }
        Time32(unit) | Time64(unit) | Timestamp(unit, _) => 3 * *unit as i32,
        _ => 0,
    }
}

/// As [`wide`], of types that store whole numbers of some unit.
fn whole_numbers(array: &dyn Array, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    let has = array.data_type();
    let misfit = || ArrowError::CastError(format!("a value of {has} does not fit {wanted}"));
    let times = u32::try_from(exponent(wanted) - exponent(has)).map_err(|_| misfit())?;
    let factor = i256::from_i128(10).checked_pow(times).ok_or_else(misfit)?;
    let data = array.to_data();
    macro_rules! read {
        ($native:ty) => {
            data.buffer::<$native>(0).iter().map(|value| i256::from_i128(i128::from(*value))).collect()
        };
    }
    let unsigned = has.is_unsigned_integer();
    let numbers: Vec<i256> = match (has.primitive_width(), unsigned) {
        (Some(1), true) => read!(u8),
        (Some(2), true) => read!(u16),
        (Some(4), true) => read!(u32),
        (Some(8), true) => read!(u64),
        (Some(1), _) => read!(i8),
        (Some(2), _) => read!(i16),
        (Some(4), _) => read!(i32),
        (Some(8), _) => read!(i64),
        (Some(16), _) => read!(i128),
        (Some(32), _) => data.buffer::<i256>(0).to_vec(),
        _ => return Err(misfit()),
    };
    let is_value = |row| !array.is_null(row);
    let scaled = numbers.into_iter().enumerate().map(|(row, number)| match is_value(row) {
        true => number.checked_mul(factor).ok_or_else(misfit),
        // Anything may stand where the value is NULL.
        false => Ok(i256::ZERO),
    });
    let scaled = scaled.collect::<Result<Vec<i256>, _>>()?;
    let values = match (wanted.primitive_width(), wanted.is_unsigned_integer()) {
        (Some(2), true) => narrowed::<u16>(&scaled),
        (Some(4), true) => narrowed::<u32>(&scaled),
        (Some(8), true) => narrowed::<u64>(&scaled),
        (Some(2), _) => narrowed::<i16>(&scaled),
        (Some(4), _) => narrowed::<i32>(&scaled),
        (Some(8), _) => narrowed::<i64>(&scaled),
        (Some(16), _) => narrowed::<i128>(&scaled),
        (Some(32), _) => Some(Buffer::from_vec(scaled)),
        _ => None,
    };
    let built = data.into_builder().data_type(wanted.clone()).buffers(vec![values.ok_or_else(misfit)?]);
    Ok(make_array(built.offset(0).build()?))
}

/// Converts the numbers to a type; `None` if one is too large.
fn narrowed<T: ArrowNativeType + TryFrom<i128>>(numbers: &[i256]) -> Option<Buffer> {
    let values = numbers.iter().map(|number| T::try_from(number.to_i128()?).ok());
    values.collect::<Option<Vec<T>>>().map(Buffer::from_vec)
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

    #[test]
    fn values_become_those_that_arrow_cast_makes() {
        use arrow_array::{Int8Array, types::Int32Type};
        use arrow_cast::cast;
        let small = Int8Array::from(vec![Some(1), None, Some(-128), Some(127), Some(0)]);
        let seconds = Timestamp(TimeUnit::Second, Some("UTC".into()));
        let types = [Int8, Int16, Int32, Int64, Decimal32(5, 1), Decimal64(12, 2), Decimal128(20, 0)];
        let times = [Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond), Time64(TimeUnit::Nanosecond)];
        let moments = [seconds, Timestamp(TimeUnit::Microsecond, Some("UTC".into()))];
        let mut compared = 0;
        let pairs = [&types[..], &times, &moments, &[Float16, Float32, Float64], &[UInt8, UInt32, UInt64]];
        for (has, other) in pairs.iter().flat_map(|of| of.iter().flat_map(|a| of.iter().map(move |b| (a, b))))
        {
            let whole = if has.is_unsigned_integer() { cast(&small, &Int16) } else { cast(&small, &Int64) };
            let whole = match has {
                Time32(TimeUnit::Second) => cast(&whole.unwrap(), &Int32),
                _ => whole,
            };
            let Ok(array) = cast(&whole.unwrap(), has) else { continue };
            let wanted = wider(has, other).unwrap();
            let expected = cast(&array, &wanted).unwrap();
            assert_eq!(&wide(&array, &wanted).unwrap(), &expected, "{has} {wanted}");
            assert_eq!(&wide(&array.slice(1, 3), &wanted).unwrap(), &expected.slice(1, 3), "{has} {wanted}");
            compared += 1;
        }
        assert!(compared > 40, "{compared}");
        let entries: arrow_array::DictionaryArray<Int32Type> =
            arrow_array::DictionaryArray::new(vec![Some(2), None, Some(0)].into(), Arc::new(small));
        let wanted = Decimal128(20, 3);
        assert_eq!(&wide(&entries, &wanted).unwrap(), &cast(&entries, &wanted).unwrap());
        let last = arrow_array::TimestampSecondArray::from(vec![i64::MAX]);
        let error = wide(&last, &Timestamp(TimeUnit::Nanosecond, None)).unwrap_err();
        assert!(error.to_string().contains("does not fit"), "{error}");
    }
}
