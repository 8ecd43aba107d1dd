//! Conversion of numbers to columns of another type, exactly or not at all; and the text that the server writes of them.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;
use half::f16;

use crate::arrays::fault::Fault;
use crate::arrays::integers::{Integers, scale};
use crate::types::pg_type::PgType;
use crate::values::numeric::write_text;

/// Returns the Arrow type of the numbers that a column of integers or floats takes; `None` for other columns.
pub(super) fn arrow_type(target: PgType) -> Option<DataType> {
    Some(match target {
        PgType::Int2 => DataType::Int16,
        PgType::Int4 => DataType::Int32,
        PgType::Int8 => DataType::Int64,
        PgType::Float4 => DataType::Float32,
        PgType::Float8 => DataType::Float64,
        _ => return None,
    })
}

/// A number, if integers or floats may represent it.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(value) => Some(value),
            // No integer type of PostgreSQL reaches beyond 2^127.
            Self::Float(value) => (value.fract() == 0.0 && value.abs() < 1e38).then_some(value as i128),
        }
    }

    fn double(self) -> Option<f64> {
        match self {
            Self::Whole(value) => Some(value as f64).filter(|float| *float as i128 == value),
            Self::Float(value) => Some(value),
        }
    }

    fn single(self) -> Option<f32> {
        match self {
            Self::Whole(value) => Some(value as f32).filter(|float| *float as i128 == value),
            Self::Float(value) => {
                Some(value as f32).filter(|float| value.is_nan() || f64::from(*float) == value)
            }
        }
    }
}

/// Returns the function that reads a number, `None` for a decimal with digits behind the point.
fn numbers(array: &ArrayRef) -> Option<Box<dyn Fn(usize) -> Option<Number> + '_>> {
    macro_rules! floats {
        ($t:ty) => {{
            let values = array.as_primitive_opt::<$t>()?.values();
            Box::new(move |row: usize| Some(Number::Float(f64::from(values[row]))))
        }};
    }
    Some(match array.data_type() {
        DataType::Float16 => floats!(Float16Type),
        DataType::Float32 => floats!(Float32Type),
        DataType::Float64 => floats!(Float64Type),
        DataType::Boolean => {
            let values = array.as_boolean_opt()?;
            Box::new(move |row| Some(Number::Whole(i128::from(values.value(row)))))
        }
        arrow => {
            let (values, scale) = (Integers::bind(array)?, scale(arrow));
            Box::new(move |row| unscaled(values.wide(row).ok()?, scale).map(Number::Whole))
        }
    })
}

/// Returns the function that reads integers and floats as the nearest `f64`.
pub(super) fn doubles(array: &ArrayRef) -> Option<impl Fn(usize) -> Option<f64> + '_> {
    let number = numbers(array)?;
    let double = |number| match number {
        Number::Whole(value) => value as f64,
        Number::Float(value) => value,
    };
    Some(move |row| number(row).map(double))
}

/// Returns the numbers as another type. Adds to `faults` those that it cannot represent exactly.
pub(super) fn convert(array: &ArrayRef, target: PgType, faults: &mut Vec<Fault>) -> Option<ArrayRef> {
    let number = numbers(array)?;
    fn integer<T: TryFrom<i128>>(number: Number) -> Option<T> {
        T::try_from(number.whole()?).ok()
    }
    macro_rules! to {
        ($t:ty, $exact:expr) => {{
            let exact = |row| number(row).and_then($exact);
            Arc::new(each::<$t>(array, target, exact, faults)) as ArrayRef
        }};
    }
    Some(match target {
        PgType::Int2 => to!(Int16Type, integer),
        PgType::Int4 => to!(Int32Type, integer),
        PgType::Int8 => to!(Int64Type, integer),
        PgType::Float4 => to!(Float32Type, Number::single),
        PgType::Float8 => to!(Float64Type, Number::double),
        _ => return None,
    })
}

fn each<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    target: PgType,
    exact: impl Fn(usize) -> Option<T::Native>,
    faults: &mut Vec<Fault>,
) -> PrimitiveArray<T> {
    let converted = (0..array.len()).map(|row| {
        if array.is_null(row) {
            return None;
        }
        let converted = exact(row);
        if converted.is_none() {
            let mut text = Vec::new();
            if let Some(write) = writer(array) {
                write(row, &mut text);
            }
            let value = String::from_utf8_lossy(&text);
            faults.push(Fault::new(row, format!("the value {value} cannot be stored exactly as {target}")));
        }
        converted
    });
    converted.collect()
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

/// Appends the value of a row.
type WriteDigits<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Returns the function that writes numbers and booleans as the server does: integers and decimals in full, floats by
/// the shortest digits that parse to the same value.
pub(super) fn writer(array: &ArrayRef) -> Option<WriteDigits<'_>> {
    macro_rules! float {
        ($t:ty, $fixed:expr, $value:expr) => {{
            let values = array.as_primitive_opt::<$t>()?.values();
            Box::new(move |row: usize, out: &mut Vec<u8>| {
                let value = $value(values[row]);
                write_float(&value, &format!("{value:e}"), $fixed, out);
            })
        }};
    }
    Some(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean_opt()?;
            Box::new(move |row, out| drop(write!(out, "{}", values.value(row))))
        }
        DataType::Float16 => float!(Float16Type, MAX_FIXED_REAL, |value: f16| value.to_f32()),
        DataType::Float32 => float!(Float32Type, MAX_FIXED_REAL, |value: f32| value),
        DataType::Float64 => float!(Float64Type, MAX_FIXED_DOUBLE, |value: f64| value),
        arrow => {
            let (values, scale) = (Integers::bind(array)?, scale(arrow));
            match u16::try_from(scale) {
                Ok(0) => Box::new(move |row, out| values.write(row, out)),
                Ok(scale) => Box::new(move |row, out| write_text(&values.digits(row), scale, out)),
                Err(_) => Box::new(move |row, out| {
                    values.write(row, out);
                    let zeros = if values.wide(row) == Ok(0) { 0 } else { scale.unsigned_abs() };
                    out.resize(out.len() + usize::from(zeros), b'0');
                }),
            }
        }
    })
}

/// The greatest exponents that `float4out` and `float8out` write without exponent (`to_chars` in src/common/f2s.c and
/// d2s.c).
const MAX_FIXED_REAL: i32 = 5;
const MAX_FIXED_DOUBLE: i32 = 14;

/// Writes a float as the server does. `scientific` is its text with an exponent.
fn write_float(value: &impl std::fmt::Display, scientific: &str, max_fixed: i32, out: &mut Vec<u8>) {
    let parts = scientific.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>()));
    // Writing to a `Vec` cannot fail.
    drop(match parts {
        Some((digits, Ok(exponent))) if !(-4..=max_fixed).contains(&exponent) => {
            write!(out, "{digits}e{exponent:+03}")
        }
        Some(_) => write!(out, "{value}"),
        None if scientific == "NaN" => write!(out, "NaN"),
        None => write!(out, "{}Infinity", if scientific.starts_with('-') { "-" } else { "" }),
    });
}

#[cfg(test)]
mod tests {
    use super::super::written::Writing;
    use super::*;
    use crate::from_text::TextForm;
    use crate::types::value_options::ValueOptions;

    fn refused(array: impl Array + 'static, target: PgType) -> Vec<usize> {
        let mut faults = Vec::new();
        convert(&(Arc::new(array) as ArrayRef), target, &mut faults).unwrap();
        faults.into_iter().map(|fault| fault.row).collect()
    }

    #[test]
    fn only_exactly_representable_numbers_are_converted() {
        use arrow_array::*;
        let ends = Int64Array::from(vec![i64::from(i32::MIN), i64::from(i32::MAX) + 1, 7]);
        assert_eq!(refused(ends, PgType::Int4), [1]);
        let odd = Int64Array::from(vec![(1 << 53) + 1, 1 << 53, i64::MAX, i64::MIN]);
        assert_eq!(refused(odd, PgType::Float8), [0, 2]);
        assert_eq!(refused(UInt64Array::from(vec![u64::MAX, 1 << 63]), PgType::Float8), [0]);
        let floats = vec![1.5, 2.0, f64::NAN, f64::INFINITY, 9.3e18, -9_223_372_036_854_775_808.0];
        assert_eq!(refused(Float64Array::from(floats), PgType::Int8), [0, 2, 3, 4]);
        assert_eq!(refused(Float64Array::from(vec![0.1, 0.5, f64::NAN, f64::MAX]), PgType::Float4), [0, 3]);
        let decimals = Decimal128Array::from(vec![100, 150]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(refused(decimals, PgType::Int2), [1]);
    }

    fn texts(array: impl Array + 'static) -> Vec<String> {
        let mut faults = Vec::new();
        let text = TextForm::new(PgType::Text, &ValueOptions::default());
        let written = Writing::Plain.parsed(&(Arc::new(array) as ArrayRef), text, &mut faults).unwrap();
        assert!(faults.is_empty());
        written.as_binary::<i64>().iter().map(|text| String::from_utf8_lossy(text.unwrap()).into()).collect()
    }

    #[test]
    fn numbers_are_written_as_the_server_writes_them() {
        use arrow_array::*;
        assert_eq!(texts(UInt64Array::from(vec![u64::MAX])), ["18446744073709551615"]);
        assert_eq!(texts(BooleanArray::from(vec![true, false])), ["true", "false"]);
        let decimals = Decimal128Array::from(vec![-5, 1200]).with_precision_and_scale(9, 2).unwrap();
        assert_eq!(texts(decimals), ["-0.05", "12.00"]);
        let thousands = Decimal128Array::from(vec![-5, 0]).with_precision_and_scale(9, -3).unwrap();
        assert_eq!(texts(thousands), ["-5000", "0"]);
        let doubles = vec![0.1, 1e14, 1e15, -1.5e-4, 1.5e-5, 1e100, -0.0, f64::NAN, f64::NEG_INFINITY];
        let written =
            ["0.1", "100000000000000", "1e+15", "-0.00015", "1.5e-05", "1e+100", "-0", "NaN", "-Infinity"];
        assert_eq!(texts(Float64Array::from(doubles)), written);
        assert_eq!(
            texts(Float32Array::from(vec![0.1, 123_456.0, 1_234_567.0])),
            ["0.1", "123456", "1.234567e+06"]
        );
    }
}
