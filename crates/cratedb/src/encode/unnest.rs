//! Columns of a batch as binary array parameters of the PostgreSQL protocol, for `UNNEST`.
//!
//! An array in binary (`array_send` in PostgreSQL's src/backend/utils/adt/arrayfuncs.c): number of
//! dimensions, whether there are NULLs, the element's type, then length and lower bound of each
//! dimension, all 32 bits; then each element as a 32-bit length (-1 for NULL) and its bytes. UNNEST
//! flattens every level, so columns with parts go as JSON text that the statement casts.

use std::ops::Range;

use sawmill_pgcopy::{Fault, Integers, numeric};
use tokio_postgres::types::Type;

use crate::encode::json_column::{JsonColumn, Values};
use crate::encode::numbers::{Floats, Scale};
use crate::table::columns::{Column, Key, Plan};
use crate::table::crate_type::CrateType;
use crate::table::names::{CrateTable, quote};
use crate::table::native::Native;

/// Milliseconds from 1970 to 2000, from where PostgreSQL counts.
const EPOCH_2000: i64 = 946_684_800_000;
/// Bytes before the first element.
const HEADER: usize = 20;

/// One column's array while it grows.
#[derive(Debug)]
pub(crate) struct ArrayColumn {
    bytes: Vec<u8>,
    elements: i32,
    nulls: bool,
}

impl ArrayColumn {
    /// An empty array in this buffer.
    pub(crate) fn new(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.resize(HEADER, 0);
        Self { bytes, elements: 0, nulls: false }
    }

    /// Appends a value of a column of this type.
    pub(crate) fn push(
        &mut self,
        data_type: &CrateType,
        bound: &JsonColumn<'_>,
        row: usize,
    ) -> Result<(), Fault> {
        if bound.is_null(row) {
            self.push_null();
            return Ok(());
        }
        self.elements += 1;
        let out = &mut self.bytes;
        match data_type {
            CrateType::Boolean => out.extend_from_slice(&[0, 0, 0, 1, bound.integer(row)? as u8]),
            CrateType::SmallInt => fixed(&(bound.integer(row)? as i16).to_be_bytes(), out),
            CrateType::Integer => fixed(&(bound.integer(row)? as i32).to_be_bytes(), out),
            CrateType::BigInt => fixed(&bound.integer(row)?.to_be_bytes(), out),
            CrateType::Real => fixed(&(bound.double(row)? as f32).to_bits().to_be_bytes(), out),
            CrateType::Double => fixed(&bound.double(row)?.to_bits().to_be_bytes(), out),
            CrateType::Timestamp | CrateType::TimestampTz => {
                let millis = bound.integer(row)?;
                let micros = millis.checked_sub(EPOCH_2000).and_then(|millis| millis.checked_mul(1000));
                let micros = micros.ok_or_else(|| {
                    Fault::new(
                        0,
                        format!("the timestamp {millis} ms is out of range for the PostgreSQL wire"),
                    )
                })?;
                fixed(&micros.to_be_bytes(), out);
            }
            CrateType::Numeric(..) => {
                let (value, from, to) = bound.decimal(row)?;
                variable(out, |out| match value {
                    Ok(value) => {
                        numeric::write_u128(value < 0, value.unsigned_abs(), from.into(), to.into(), out);
                        Ok(())
                    }
                    Err(value) => {
                        numeric::write_i256(value, from.into(), to.into(), out);
                        Ok(())
                    }
                })?;
            }
            CrateType::Text | CrateType::Native(_) | CrateType::Object(_) | CrateType::Array(_) => {
                variable(out, |out| bound.write_plain(row, out))?;
            }
        }
        Ok(())
    }

    /// Appends the values of consecutive rows of a column of this type. The type is matched once; an error names
    /// the row.
    pub(crate) fn extend(
        &mut self,
        data_type: &CrateType,
        bound: &JsonColumn<'_>,
        rows: Range<usize>,
    ) -> Result<(), (usize, Fault)> {
        use CrateType as T;
        let micros = |millis: i64| millis.checked_sub(EPOCH_2000)?.checked_mul(1000).map(record8);
        match (data_type, &bound.values) {
            (T::Integer, Values::Int(Integers::Int32(values))) => {
                self.run(data_type, bound, rows, values, |value| Some(record4(value.to_be_bytes())))
            }
            (T::BigInt, Values::Int(Integers::Int64(values))) => {
                self.run(data_type, bound, rows, values, |value| Some(record8(value)))
            }
            (T::Real, Values::Real(Floats::Single(values))) => {
                self.run(data_type, bound, rows, values, |value| Some(record4(value.to_bits().to_be_bytes())))
            }
            (T::Double, Values::Double(Floats::Double(values))) => {
                self.run(data_type, bound, rows, values, |value| Some(record8(value.to_bits() as i64)))
            }
            (T::Timestamp | T::TimestampTz, Values::Millis(Integers::Int64(values), scale, _)) => match scale
            {
                Scale::Times(1) => self.run(data_type, bound, rows, values, micros),
                // The usual divisor as a constant, which the compiler turns into a multiplication.
                Scale::Exactly(1000) => self.run(data_type, bound, rows, values, |value| {
                    if value % 1000 == 0 { micros(value / 1000) } else { None }
                }),
                _ => self.one_by_one(data_type, bound, rows),
            },
            (T::Text, Values::Text(texts)) => {
                for row in rows {
                    match bound.nulls.is_some_and(|nulls| nulls.is_null(row)) {
                        true => self.push_null(),
                        false => self.push_text(&[], texts.value(row)),
                    }
                }
                Ok(())
            }
            _ => self.one_by_one(data_type, bound, rows),
        }
    }

    fn one_by_one(
        &mut self,
        data_type: &CrateType,
        bound: &JsonColumn<'_>,
        mut rows: Range<usize>,
    ) -> Result<(), (usize, Fault)> {
        rows.try_for_each(|row| self.push(data_type, bound, row).map_err(|fault| (row, fault)))
    }

    /// Elements of one width. A value for which `record` returns `None` is pushed alone, which may fail.
    fn run<T: Copy, const R: usize>(
        &mut self,
        data_type: &CrateType,
        bound: &JsonColumn<'_>,
        rows: Range<usize>,
        values: &[T],
        record: impl Fn(T) -> Option<[u8; R]>,
    ) -> Result<(), (usize, Fault)> {
        self.bytes.reserve(rows.len() * R);
        for (row, value) in rows.clone().zip(&values[rows]) {
            if bound.nulls.is_some_and(|nulls| nulls.is_null(row)) {
                self.push_null();
                continue;
            }
            match record(*value) {
                Some(bytes) => {
                    self.elements += 1;
                    self.bytes.extend_from_slice(&bytes);
                }
                None => self.push(data_type, bound, row).map_err(|fault| (row, fault))?,
            }
        }
        Ok(())
    }

    fn push_null(&mut self) {
        self.elements += 1;
        self.nulls = true;
        self.bytes.extend_from_slice(&(-1i32).to_be_bytes());
    }

    /// Appends a text of two parts.
    pub(crate) fn push_text(&mut self, first: &[u8], second: &[u8]) {
        self.elements += 1;
        fixed_len(first.len() + second.len(), &mut self.bytes);
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(second);
    }

    /// The array with its header, whose elements are of this type.
    pub(crate) fn finish(mut self, data_type: &CrateType) -> Vec<u8> {
        let oid = wire_types(data_type).0.oid();
        // An empty array would have no dimension, but no block is empty.
        for (at, value) in [1, i32::from(self.nulls), oid as i32, self.elements, 1].into_iter().enumerate() {
            self.bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_be_bytes());
        }
        self.bytes
    }
}

/// Appends the elements of an array to another one of its type, or to nothing.
pub(crate) fn append(array: &mut Vec<u8>, more: &[u8]) {
    if array.len() < HEADER || more.len() < HEADER {
        array.extend_from_slice(more);
        return;
    }
    let number = |bytes: &[u8]| i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let nulls = number(&array[4..8]) | number(&more[4..8]);
    let elements = number(&array[12..16]) + number(&more[12..16]);
    array[4..8].copy_from_slice(&nulls.to_be_bytes());
    array[12..16].copy_from_slice(&elements.to_be_bytes());
    array.extend_from_slice(&more[HEADER..]);
}

/// Length and bytes of an element.
fn record4(value: [u8; 4]) -> [u8; 8] {
    (4u64 << 32 | u64::from(u32::from_be_bytes(value))).to_be_bytes()
}

fn record8(value: i64) -> [u8; 12] {
    let mut record = [0; 12];
    record[3] = 8;
    record[4..].copy_from_slice(&value.to_be_bytes());
    record
}

fn fixed_len(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as i32).to_be_bytes());
}

fn fixed(value: &[u8], out: &mut Vec<u8>) {
    fixed_len(value.len(), out);
    out.extend_from_slice(value);
}

fn variable(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>) -> Result<(), Fault> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out)?;
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Maximum bytes of an element beyond its JSON: the whole element for types of fixed width, the length prefix for
/// texts.
pub(crate) fn beside_json(data_type: &CrateType) -> usize {
    4 + match data_type {
        CrateType::Boolean => 1,
        CrateType::SmallInt => 2,
        CrateType::Integer | CrateType::Real => 4,
        CrateType::BigInt | CrateType::Double | CrateType::Timestamp | CrateType::TimestampTz => 8,
        // Four numbers of 16 bits, then as many of four digits each on both sides of the point.
        CrateType::Numeric(precision, _) => 8 + 2 * (usize::from(*precision) / 4 + 2),
        CrateType::Text | CrateType::Native(_) | CrateType::Object(_) | CrateType::Array(_) => 0,
    }
}

/// The type of an array's elements on the wire, and the type of the array.
fn wire_types(data_type: &CrateType) -> (Type, Type) {
    match data_type {
        CrateType::Boolean => (Type::BOOL, Type::BOOL_ARRAY),
        CrateType::SmallInt => (Type::INT2, Type::INT2_ARRAY),
        CrateType::Integer => (Type::INT4, Type::INT4_ARRAY),
        CrateType::BigInt => (Type::INT8, Type::INT8_ARRAY),
        CrateType::Real => (Type::FLOAT4, Type::FLOAT4_ARRAY),
        CrateType::Double => (Type::FLOAT8, Type::FLOAT8_ARRAY),
        CrateType::Numeric(..) => (Type::NUMERIC, Type::NUMERIC_ARRAY),
        CrateType::Timestamp => (Type::TIMESTAMP, Type::TIMESTAMP_ARRAY),
        CrateType::TimestampTz => (Type::TIMESTAMPTZ, Type::TIMESTAMPTZ_ARRAY),
        CrateType::Text | CrateType::Native(_) | CrateType::Object(_) | CrateType::Array(_) => {
            (Type::VARCHAR, Type::VARCHAR_ARRAY)
        }
    }
}

/// The type of an array parameter.
pub(crate) fn array_type(data_type: &CrateType) -> Type {
    wire_types(data_type).1
}

/// The types of a plan's parameters, the row key first, the tag last.
pub(crate) fn parameter_types(plan: &Plan) -> Vec<Type> {
    let key = matches!(plan.key, Key::Row(_)).then_some(Type::VARCHAR_ARRAY);
    let tag = matches!(plan.key, Key::Tags(_)).then_some(Type::INT8);
    let columns = plan.columns.iter().map(|column| array_type(&column.crate_type));
    key.into_iter().chain(columns).chain(tag).collect()
}

/// The expression that turns a parameter into a column's value: a cast for JSON text, else the name.
///
/// CrateDB has no cast from text to an array but to one of objects. As a field of an object that takes
/// anything, JSON of an array has a type that can be cast. The server makes vectors from arrays, and
/// characters from text, without being asked.
pub(crate) fn from_json(name: &str, data_type: &CrateType) -> String {
    let of_field = |cast: &str| format!("(('{{\"a\":' || {name} || '}}')::object(ignored))['a']::{cast}");
    match data_type {
        CrateType::Native(Native::FloatVector(_)) => of_field("array(real)"),
        // Text has a cast to shapes, but from well-known text only.
        CrateType::Native(Native::GeoShape) => of_field(&data_type.cast()),
        CrateType::Native(Native::GeoPoint | Native::Ip) => format!("{name}::{}", data_type.cast()),
        // The server (seen: 6.4.3) fails at the cast of NULL.
        CrateType::Native(Native::Bit(_)) => {
            format!("CASE WHEN {name} IS NULL THEN NULL ELSE {name}::{} END", data_type.cast())
        }
        CrateType::Array(item) if !matches!(**item, CrateType::Object(_)) => of_field(&data_type.cast()),
        nested if nested.is_nested() => format!("{name}::{}", nested.cast()),
        _ => name.to_owned(),
    }
}

/// The statement that inserts a block of columns.
pub(crate) fn insert(table: &CrateTable, plan: &Plan, on_conflict: &str) -> String {
    let key = matches!(plan.key, Key::Row(_));
    let count = plan.columns.len() + usize::from(key);
    let names: Vec<String> = (1..=count).map(|i| format!("c{i}")).collect();
    let parameters: Vec<String> = (1..=count).map(|i| format!("${i}")).collect();
    let cast = |(name, column): (&String, &Column)| from_json(name, &column.crate_type);
    let mut selected: Vec<String> = names.iter().take(usize::from(key)).cloned().collect();
    selected.extend(names.iter().skip(usize::from(key)).zip(plan.columns.iter()).map(cast));
    // One value for all rows of the request.
    selected.extend(matches!(plan.key, Key::Tags(_)).then(|| format!("${}", count + 1)));
    format!(
        "INSERT INTO {} ({}) (SELECT {} FROM UNNEST({}) AS {} ({})){on_conflict}",
        table.quoted(),
        plan.inserted().join(", "),
        selected.join(", "),
        parameters.join(", "),
        quote("u"),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::*;
    use arrow_schema::Field;
    use proptest::prelude::*;

    use super::*;
    use crate::encode::form::natural;
    use crate::options::{CrateOptions, Timestamps};

    /// The same array by runs and one by one, and the row at which it fails.
    fn check(array: ArrayRef, options: &CrateOptions) {
        let (data_type, form) = natural(&Field::new("c", array.data_type().clone(), true), options).unwrap();
        let bound = form.bind(&array).unwrap();
        let (mut runs, mut single) = (ArrayColumn::new(Vec::new()), ArrayColumn::new(Vec::new()));
        let expected = single.one_by_one(&data_type, &bound, 0..array.len());
        let middle = array.len() / 3;
        let ended = runs
            .extend(&data_type, &bound, 0..middle)
            .and_then(|()| runs.extend(&data_type, &bound, middle..array.len()));
        assert_eq!(ended, expected);
        if ended.is_ok() {
            assert_eq!(runs.finish(&data_type), single.finish(&data_type), "{data_type:?}");
        }
    }

    proptest! {
        #[test]
        fn runs_of_rows_are_written_as_single_rows_are(
            numbers in prop::collection::vec(prop::option::of(any::<i64>()), 1..40),
            doubles in prop::collection::vec(prop::option::of(any::<f64>()), 1..40),
            texts in prop::collection::vec(prop::option::of(".{0,20}"), 1..40),
        ) {
            let plain = CrateOptions::default();
            let truncate = CrateOptions { timestamps: Timestamps::Truncate, ..plain.clone() };
            let whole: Vec<Option<i64>> = numbers.iter().map(|n| n.map(|n| n / 2000 * 1000)).collect();
            check(Arc::new(Int64Array::from(numbers.clone())), &plain);
            check(Arc::new(numbers.iter().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()), &plain);
            check(Arc::new(numbers.iter().map(|n| n.map(|n| n as i16)).collect::<Int16Array>()), &plain);
            check(Arc::new(numbers.iter().map(|n| n.map(|n| n > 0)).collect::<BooleanArray>()), &plain);
            for values in [numbers, whole] {
                for options in [&plain, &truncate] {
                    check(Arc::new(TimestampMillisecondArray::from(values.clone())), options);
                    check(Arc::new(TimestampMicrosecondArray::from(values.clone())), options);
                    check(Arc::new(TimestampNanosecondArray::from(values.clone())), options);
                }
            }
            check(Arc::new(doubles.iter().map(|d| d.map(|d| d as f32)).collect::<Float32Array>()), &plain);
            check(Arc::new(Float64Array::from(doubles)), &plain);
            check(Arc::new(texts.iter().cloned().collect::<StringArray>()), &plain);
            check(Arc::new(texts.into_iter().collect::<StringViewArray>()), &plain);
        }
    }
}
