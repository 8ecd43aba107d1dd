//! Conversion of numbers to columns of another type of number, exactly or not at all.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, downcast_integer};
use arrow_schema::DataType;

use crate::arrays::fault::Fault;
use crate::arrays::integers::Integers;
use crate::from_text::numeric;
use crate::types::pg_type::PgType;
use crate::values::numeric::write_text;

/// The type of a number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
}

impl Width {
    pub(super) fn new(target: PgType) -> Option<Self> {
        Some(match target {
            PgType::Int2 => Self::Int2,
            PgType::Int4 => Self::Int4,
            PgType::Int8 => Self::Int8,
            PgType::Float4 => Self::Float4,
            PgType::Float8 => Self::Float8,
            _ => return None,
        })
    }

    pub(super) fn arrow(self) -> DataType {
        match self {
            Self::Int2 => DataType::Int16,
            Self::Int4 => DataType::Int32,
            Self::Int8 => DataType::Int64,
            Self::Float4 => DataType::Float32,
            Self::Float8 => DataType::Float64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Int2 => "smallint",
            Self::Int4 => "integer",
            Self::Int8 => "bigint",
            Self::Float4 => "real",
            Self::Float8 => "double precision",
        }
    }
}

/// Returns the numbers as another type. Adds to `faults` those that it cannot represent exactly.
pub(super) fn convert(array: &ArrayRef, width: Width, faults: &mut Vec<Fault>) -> Option<ArrayRef> {
    macro_rules! to_int {
        ($values:expr, $t:ty, $whole:expr) => {{
            let whole = $whole;
            Arc::new(each::<_, $t>(&$values, width, faults, |value| {
                whole(value).and_then(|whole: i128| <$t as ArrowPrimitiveType>::Native::try_from(whole).ok())
            }))
        }};
    }
    macro_rules! from_ints {
        ($t:ty) => {{
            let values = array.as_primitive_opt::<$t>()?;
            let wide = |value| Some(i128::from(value));
            Some(match width {
                Width::Int2 => to_int!(values, Int16Type, wide),
                Width::Int4 => to_int!(values, Int32Type, wide),
                Width::Int8 => to_int!(values, Int64Type, wide),
                Width::Float4 => Arc::new(each::<_, Float32Type>(values, width, faults, |value| {
                    let float = value as f32;
                    (float as i128 == i128::from(value)).then_some(float)
                })),
                Width::Float8 => Arc::new(each::<_, Float64Type>(values, width, faults, |value| {
                    let float = value as f64;
                    (float as i128 == i128::from(value)).then_some(float)
                })),
            })
        }};
    }
    macro_rules! from_floats {
        ($t:ty) => {{
            let values = array.as_primitive_opt::<$t>()?;
            Some(match width {
                Width::Int2 => to_int!(values, Int16Type, |value| whole(f64::from(value))),
                Width::Int4 => to_int!(values, Int32Type, |value| whole(f64::from(value))),
                Width::Int8 => to_int!(values, Int64Type, |value| whole(f64::from(value))),
                Width::Float4 => Arc::new(each::<_, Float32Type>(values, width, faults, |value| {
                    let (wide, narrow) = (f64::from(value), f64::from(value) as f32);
                    (wide.is_nan() || f64::from(narrow) == wide).then_some(narrow)
                })),
                Width::Float8 => {
                    Arc::new(each::<_, Float64Type>(values, width, faults, |value| Some(f64::from(value))))
                }
            })
        }};
    }
    macro_rules! from_decimals {
        ($t:ty, $scale:expr) => {{
            let values = array.as_primitive_opt::<$t>()?;
            let unscaled = |value| unscaled(i128::try_from(value).ok()?, *$scale);
            Some(match width {
                Width::Int2 => to_int!(values, Int16Type, unscaled),
                Width::Int4 => to_int!(values, Int32Type, unscaled),
                Width::Int8 => to_int!(values, Int64Type, unscaled),
                Width::Float4 | Width::Float8 => return None,
            })
        }};
    }
    downcast_integer! {
        array.data_type() => (from_ints),
        DataType::Float16 => from_floats!(Float16Type),
        DataType::Float32 => from_floats!(Float32Type),
        DataType::Float64 => from_floats!(Float64Type),
        DataType::Decimal32(_, scale) => from_decimals!(Decimal32Type, scale),
        DataType::Decimal64(_, scale) => from_decimals!(Decimal64Type, scale),
        DataType::Decimal128(_, scale) => from_decimals!(Decimal128Type, scale),
        DataType::Decimal256(_, scale) => {
            let values = array.as_primitive_opt::<Decimal256Type>()?;
            let unscaled = |value: arrow_buffer::i256| unscaled(value.to_i128()?, *scale);
            Some(match width {
                Width::Int2 => to_int!(values, Int16Type, unscaled),
                Width::Int4 => to_int!(values, Int32Type, unscaled),
                Width::Int8 => to_int!(values, Int64Type, unscaled),
                Width::Float4 | Width::Float8 => return None,
            })
        },
        _ => None,
    }
}

fn each<From, To>(
    values: &PrimitiveArray<From>,
    width: Width,
    faults: &mut Vec<Fault>,
    mut exact: impl FnMut(From::Native) -> Option<To::Native>,
) -> PrimitiveArray<To>
where
    From: ArrowPrimitiveType,
    To: ArrowPrimitiveType,
{
    let converted = (0..values.len()).map(|row| match values.is_valid(row) {
        false => None,
        true => {
            let converted = exact(values.value(row));
            if converted.is_none() {
                let value = shown_number(values, row);
                let what = format!("the value {value} cannot be stored exactly as {}", width.name());
                faults.push(Fault::new(row, what));
            }
            converted
        }
    });
    converted.collect()
}

fn shown_number<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, row: usize) -> String {
    match T::DATA_TYPE {
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            let mut text = Vec::new();
            let scale = decimal_scale(values.data_type()).unwrap_or(0);
            write_text(&format!("{:?}", values.value(row)), scale, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        _ => format!("{:?}", values.value(row)),
    }
}

/// Returns a float as an integer, if it is one. No integer type of PostgreSQL reaches beyond 2^127.
fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() < 1e38).then_some(value as i128)
}

/// Returns a decimal as an integer, if it is one.
fn unscaled(value: i128, scale: i8) -> Option<i128> {
    let unit = 10i128.checked_pow(u32::from(scale.unsigned_abs()));
    match (unit, scale < 0) {
        (Some(unit), false) => (value % unit == 0).then_some(value / unit),
        (Some(unit), true) => value.checked_mul(unit),
        // With a unit of more than 128 bits only zero is an integer.
        (None, _) => (value == 0).then_some(0),
    }
}

/// Returns the digits after the point of a type of decimals, if they are not negative.
fn decimal_scale(arrow: &DataType) -> Option<u16> {
    match arrow {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => u16::try_from(*scale).ok(),
        _ => None,
    }
}

/// Returns numbers as numerics of these bounds, by their decimal digits: floats by the shortest digits that
/// parse to the same value. Adds to `faults` numbers that the bounds would round or exclude.
pub(super) fn to_numeric(
    array: &ArrayRef,
    bounds: Option<(u16, u16)>,
    faults: &mut Vec<Fault>,
) -> Option<ArrayRef> {
    let write_digits = decimal_digits(array)?;
    let mut wire = LargeBinaryBuilder::with_capacity(array.len(), 16 * array.len());
    let (mut text, mut bytes) = (Vec::new(), Vec::new());
    for row in 0..array.len() {
        if array.is_null(row) {
            wire.append_null();
            continue;
        }
        text.clear();
        bytes.clear();
        write_digits(row, &mut text);
        match numeric::write(&text, bounds, &mut bytes) {
            Ok(()) => wire.append_value(&bytes),
            Err(why) => {
                let value = String::from_utf8_lossy(&text);
                faults.push(Fault::new(row, format!("the value {value} does not fit: {why}")));
                wire.append_null();
            }
        }
    }
    Some(Arc::new(wire.finish()))
}

/// Returns the function that writes the decimal digits of a value.
type WriteDigits<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

fn decimal_digits(array: &ArrayRef) -> Option<WriteDigits<'_>> {
    macro_rules! float {
        ($t:ty) => {{
            let values = array.as_primitive_opt::<$t>()?.values();
            // Writing to a `Vec` cannot fail. Floats are written in full: `Display` never uses an exponent.
            Box::new(move |row: usize, out: &mut Vec<u8>| drop(write!(out, "{}", values[row])))
        }};
    }
    Some(match array.data_type() {
        DataType::Float16 => float!(Float16Type),
        DataType::Float32 => float!(Float32Type),
        DataType::Float64 => float!(Float64Type),
        arrow if arrow.is_integer() => {
            let values = Integers::bind(array)?;
            Box::new(move |row, out| values.write(row, out))
        }
        arrow => {
            let scale = decimal_scale(arrow)?;
            let values = Integers::bind(array)?;
            Box::new(move |row, out| write_text(&values.digits(row), scale, out))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(array: impl Array + 'static, width: Width) -> Vec<usize> {
        let mut faults = Vec::new();
        convert(&(Arc::new(array) as ArrayRef), width, &mut faults).unwrap();
        faults.into_iter().map(|fault| fault.row).collect()
    }

    #[test]
    fn only_exactly_representable_numbers_are_converted() {
        use arrow_array::*;
        let ends = Int64Array::from(vec![i64::from(i32::MIN), i64::from(i32::MAX) + 1, 7]);
        assert_eq!(refused(ends, Width::Int4), [1]);
        let odd = Int64Array::from(vec![(1 << 53) + 1, 1 << 53, i64::MAX, i64::MIN]);
        assert_eq!(refused(odd, Width::Float8), [0, 2]);
        assert_eq!(refused(UInt64Array::from(vec![u64::MAX, 1 << 63]), Width::Float8), [0]);
        let floats = vec![1.5, 2.0, f64::NAN, f64::INFINITY, 9.3e18, -9_223_372_036_854_775_808.0];
        assert_eq!(refused(Float64Array::from(floats), Width::Int8), [0, 2, 3, 4]);
        assert_eq!(refused(Float64Array::from(vec![0.1, 0.5, f64::NAN, f64::MAX]), Width::Float4), [0, 3]);
        let decimals = Decimal128Array::from(vec![100, 150]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(refused(decimals, Width::Int2), [1]);
    }
}
