//! Short values of a few rows, written column by column before rows are put together.
//!
//! The code checks a column's type once for a whole run of rows, and the loop that follows knows it: it
//! writes each value, with the comma before it, into a cell of 32 bytes. A row is then its cells one after
//! the other, each copied whole and cut to its length. The cells of a run fit the first-level cache. What
//! does not fit a cell, or cannot be represented, is marked; [`JsonColumn::write`] writes it when it is
//! the row's turn: so faults are found in the order of rows.

use std::ops::Range;

use arrow_buffer::{ArrowNativeType, NullBuffer};
use sawmill_pgcopy::{ByteStrings, Integers, with_integers};

use crate::encode::digits::{POWERS, put_fraction, put_hundredths, put_number};
use crate::encode::integers::Scale;
use crate::encode::json;
use crate::encode::json_column::{JsonColumn, Values};
use crate::encode::text_cells::{short_texts, short_views};

/// A comma, a value, and in the last byte how long both are together.
pub(crate) type Cell = [u8; 32];

/// Marker in place of the length: the value is not in the cell.
pub(crate) const NOT_HERE: u8 = u8::MAX;
pub(crate) const LENGTH: usize = 31;
/// Cells of a run at most, unless there are more columns: 32 KiB of a first-level cache of 48.
const CELLS: usize = 1024;

/// The cells of a run of rows, row by row.
#[derive(Debug, Default)]
pub(crate) struct JsonCells {
    cells: Vec<Cell>,
    columns: usize,
}

/// Rows of a run, with so many columns.
pub(crate) fn run_of(columns: usize) -> usize {
    (CELLS / columns.max(1)).max(1)
}

/// The bytes of a cell, if its value is there.
#[inline]
pub(crate) fn filled(cell: &Cell) -> Option<usize> {
    (cell[LENGTH] != NOT_HERE).then(|| usize::from(cell[LENGTH]))
}

impl JsonCells {
    /// Writes the values of these rows.
    pub(crate) fn fill(&mut self, bound: &[JsonColumn<'_>], rows: Range<usize>) {
        self.columns = bound.len();
        self.cells.resize(rows.len() * bound.len(), [0; 32]);
        for (i, column) in bound.iter().enumerate() {
            fill_column(column, rows.clone(), &mut self.cells[i..], bound.len());
        }
    }

    /// The cells of a row of the run.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[Cell] {
        &self.cells[row * self.columns..(row + 1) * self.columns]
    }
}

/// Writes each value of a slice into the cell at the same position.
fn each<'c, T: Copy>(
    values: &[T],
    cells: impl Iterator<Item = &'c mut Cell>,
    mut write: impl FnMut(T, &mut Cell) -> u8,
) {
    for (value, cell) in values.iter().zip(cells) {
        cell[0] = b',';
        cell[LENGTH] = write(*value, cell);
    }
}

fn fill_column(bound: &JsonColumn<'_>, rows: Range<usize>, cells: &mut [Cell], columns: usize) {
    let into = cells.iter_mut().step_by(columns);
    match &bound.values {
        Values::Null => {}
        Values::Bool(values) => {
            for (row, cell) in rows.clone().zip(into) {
                cell[..6].copy_from_slice(if values.value(row) { b",true\0" } else { b",false" });
                cell[LENGTH] = 6 - u8::from(values.value(row));
            }
        }
        Values::Int(ints) => integers(ints, rows.clone(), into, integer),
        Values::Millis(ints, Scale::Times(1), _) => {
            integers(ints, rows.clone(), into, integer);
        }
        Values::Millis(ints, Scale::Times(n), _) => {
            integers(ints, rows.clone(), into, |value, cell| match value.checked_mul(*n) {
                Some(millis) => integer(millis, cell),
                None => NOT_HERE,
            });
        }
        // The usual divisors as constants, which the compiler turns into multiplications.
        Values::Millis(ints, Scale::Exactly(1000), _) => {
            integers(ints, rows.clone(), into, |value, cell| match value % 1000 {
                0 => integer(value / 1000, cell),
                _ => NOT_HERE,
            });
        }
        Values::Millis(ints, Scale::Exactly(n), _) => {
            integers(ints, rows.clone(), into, |value, cell| match value % n {
                0 => integer(value / n, cell),
                _ => NOT_HERE,
            });
        }
        Values::Millis(ints, Scale::Floor(1000), _) => {
            integers(ints, rows.clone(), into, |value, cell| integer(value.div_euclid(1000), cell));
        }
        Values::Millis(ints, Scale::Floor(n), _) => {
            integers(ints, rows.clone(), into, |value, cell| integer(value.div_euclid(*n), cell));
        }
        Values::Decimal(ints, from, to) => decimals(ints, *from, *to, rows.clone(), into),
        Values::Float64(values) => each(&values[rows.clone()], into, double),
        Values::Wide32(values) => each(&values[rows.clone()], into, |value, cell| double(value.into(), cell)),
        Values::Wide16(values) => {
            each(&values[rows.clone()], into, |value, cell| double(value.to_f64(), cell));
        }
        Values::Float32(values) => each(&values[rows.clone()], into, float),
        Values::Float16(values) => {
            each(&values[rows.clone()], into, |value, cell| float(value.to_f32(), cell))
        }
        Values::Text(ByteStrings::Utf8View(views)) => short_views(views, rows.clone(), into),
        Values::Text(ByteStrings::Utf8(texts)) => {
            short_texts(texts.value_offsets(), texts.value_data(), rows.clone(), into);
        }
        Values::Text(ByteStrings::LargeUtf8(texts)) => {
            short_texts(texts.value_offsets(), texts.value_data(), rows.clone(), into);
        }
        _ => into.for_each(|cell| cell[LENGTH] = NOT_HERE),
    }
    let null = |cell: &mut Cell| {
        cell[..5].copy_from_slice(b",null");
        cell[LENGTH] = 5;
    };
    let into = cells.iter_mut().step_by(columns);
    match (&bound.values, bound.nulls) {
        (Values::Null, _) => into.for_each(null),
        (_, Some(nulls)) => nulls_of(nulls, rows, into, null),
        // NULLs of a dictionary's entries are seen when the value is written.
        (_, None) => {}
    }
}

fn nulls_of<'c>(
    nulls: &NullBuffer,
    rows: Range<usize>,
    cells: impl Iterator<Item = &'c mut Cell>,
    null: impl Fn(&mut Cell),
) {
    rows.zip(cells).filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, cell)| null(cell));
}

/// Hands each value out as 64 bits with a sign; those of more bits are not written.
fn integers<'c>(
    ints: &Integers<'_>,
    rows: Range<usize>,
    cells: impl Iterator<Item = &'c mut Cell>,
    write: impl Fn(i64, &mut Cell) -> u8,
) {
    with_integers!(ints, values => each(&values[rows], cells, |value, cell| match value.to_i64() {
        Some(value) => write(value, cell),
        None => NOT_HERE,
    }));
}

/// A sign at the second byte, to be overwritten where there is none; returns where digits begin.
#[inline]
fn sign(negative: bool, cell: &mut Cell) -> usize {
    cell[1] = b'-';
    1 + usize::from(negative)
}

#[inline]
fn integer(value: i64, cell: &mut Cell) -> u8 {
    let at = sign(value < 0, cell);
    put_number(cell, at, value.unsigned_abs()) as u8
}

/// Most figures have two places at most. `cents / 100` is the double nearest to that decimal, so the decimal
/// reads back as the value, and it is the shortest that does.
#[inline]
fn double(value: f64, cell: &mut Cell) -> u8 {
    let cents = json::cents(value);
    let Some(cents) = cents else { return rare_double(value, cell) };
    let at = sign(cents < 0, cell);
    put_hundredths(cell, at, cents.unsigned_abs()) as u8
}

#[inline(never)]
fn rare_double(value: f64, cell: &mut Cell) -> u8 {
    match value.is_finite() {
        true => copied(zmij::Buffer::new().format_finite(value), cell),
        false => NOT_HERE,
    }
}

#[inline]
fn float(value: f32, cell: &mut Cell) -> u8 {
    match value.is_finite() {
        true => copied(zmij::Buffer::new().format_finite(value), cell),
        false => NOT_HERE,
    }
}

/// Digits as they are; those of a double take 24 bytes at most.
#[inline]
fn copied(digits: &str, cell: &mut Cell) -> u8 {
    match cell.get_mut(1..1 + digits.len()) {
        Some(room) if digits.len() < LENGTH => {
            room.copy_from_slice(digits.as_bytes());
            1 + digits.len() as u8
        }
        _ => NOT_HERE,
    }
}

/// Decimals of up to 18 digits, in quotation marks.
fn decimals<'c>(
    ints: &Integers<'_>,
    from: u8,
    to: u8,
    rows: Range<usize>,
    cells: impl Iterator<Item = &'c mut Cell>,
) {
    let (from, to) = (usize::from(from), usize::from(to));
    if from > 16 || to < from || to > from + 7 {
        return cells.for_each(|cell| cell[LENGTH] = NOT_HERE);
    }
    let unit = POWERS[from];
    integers(ints, rows, cells, |value, cell| {
        let digits = value.unsigned_abs();
        if digits >= POWERS[18] {
            return NOT_HERE;
        }
        cell[1] = b'"';
        cell[2] = b'-';
        let mut at = put_number(cell, 2 + usize::from(value < 0), digits / unit);
        if to > 0 {
            cell[at] = b'.';
            at += 1;
            if from > 0 {
                at = put_fraction(cell, at, digits % unit, from);
            }
            cell[at..at + to - from].fill(b'0');
            at += to - from;
        }
        cell[at] = b'"';
        at as u8 + 1
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::*;
    use arrow_schema::Field;
    use proptest::prelude::*;

    use super::*;
    use crate::encode::form::{Form, natural};
    use crate::options::{CrateOptions, Dates, Timestamps};

    /// All values of an array as a row of the loader has them: from its cells, else one by one.
    fn by_cells(form: &Form, array: &ArrayRef) -> Vec<Result<String, String>> {
        let bound = [form.bind(array).unwrap()];
        let mut cells = JsonCells::default();
        let mut values = Vec::new();
        // Runs of an odd length, so that they begin anywhere.
        for start in (0..array.len()).step_by(7) {
            let rows = start..(start + 7).min(array.len());
            cells.fill(&bound, rows.clone());
            for row in rows {
                let cell = &cells.row(row - start)[0];
                values.push(match filled(cell) {
                    Some(length) => Ok(String::from_utf8(cell[1..length].to_vec()).unwrap()),
                    None => one(&bound[0], row),
                });
            }
        }
        values
    }

    fn one(bound: &JsonColumn<'_>, row: usize) -> Result<String, String> {
        let mut out = Vec::new();
        bound.write(row, &mut out).map_err(|fault| fault.what)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn check(array: ArrayRef, options: &CrateOptions) {
        let field = Field::new("c", array.data_type().clone(), true);
        let (_, form) = natural(&field, options).unwrap();
        same(&form, &array);
        if let Form::Decimal { from, .. } = form {
            for to in [from + 1, from + 7, from + 8] {
                same(&Form::Decimal { from, to }, &array);
            }
        }
        if matches!(form, Form::Real) {
            same(&Form::Double, &array);
        }
    }

    fn same(form: &Form, array: &ArrayRef) {
        let bound = form.bind(array).unwrap();
        let expected: Vec<_> = (0..array.len()).map(|row| one(&bound, row)).collect();
        assert_eq!(by_cells(form, array), expected, "{:?}", array.data_type());
    }

    /// Numbers of every length, with extremes and NULLs between them.
    fn spread(values: Vec<(i64, u32)>) -> Vec<Option<i64>> {
        let edges = [0, 1, -1, i64::MIN, i64::MAX, 999, 1000, -999_999_999, 100_000_000, 9_999, 10_000];
        let values = values.into_iter().map(|(value, shift)| (shift % 9 > 0).then_some(value >> shift));
        edges.into_iter().map(Some).chain(values).collect()
    }

    proptest! {
        #[test]
        fn cells_hold_what_is_written_value_by_value(
            numbers in prop::collection::vec((any::<i64>(), 0u32..64), 40),
            doubles in prop::collection::vec(any::<f64>(), 40),
            texts in prop::collection::vec(prop::option::of("[ -~é\\n\"\\\\]{0,30}"), 40),
        ) {
            let numbers = spread(numbers);
            let plain = CrateOptions::default();
            let dates = CrateOptions { dates: Dates::Timestamp, timestamps: Timestamps::Truncate, ..plain.clone() };
            macro_rules! narrow {
                ($($t:ty => $native:ty),*) => {
                    $(check(Arc::new(numbers.iter().map(|n| n.map(|n| n as $native)).collect::<$t>()), &plain);)*
                };
            }
            narrow!(Int8Array => i8, Int16Array => i16, Int32Array => i32, Int64Array => i64, UInt8Array => u8,
                UInt16Array => u16, UInt32Array => u32, UInt64Array => u64);
            let moments: Vec<Option<i64>> = numbers.iter().map(|n| n.map(|n| n / 1000 * 1000)).collect();
            for values in [&numbers, &moments] {
                for options in [&plain, &dates] {
                    check(Arc::new(TimestampSecondArray::from(values.clone())), options);
                    check(Arc::new(TimestampMillisecondArray::from(values.clone())), options);
                    check(Arc::new(TimestampMicrosecondArray::from(values.clone())), options);
                    check(Arc::new(TimestampNanosecondArray::from(values.clone())), options);
                    check(Arc::new(values.iter().map(|n| n.map(|n| n as i32)).collect::<Date32Array>()), options);
                }
            }
            for (precision, scale) in [(38, 0), (38, 1), (38, 2), (38, 8), (38, 9), (38, 16), (38, 17), (38, 30)] {
                let decimals: Decimal128Array = numbers.iter().map(|n| n.map(i128::from)).collect();
                check(Arc::new(decimals.with_precision_and_scale(precision, scale).unwrap()), &plain);
            }
            let wide: Decimal128Array = numbers.iter().map(|n| n.map(|n| i128::from(n) * i128::from(i64::MAX))).collect();
            check(Arc::new(wide.with_precision_and_scale(38, 5).unwrap()), &plain);
            let cents = numbers.iter().flatten().map(|n| *n as f64 / 100.0);
            let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e300, 5e-324, 0.29, 1e15, 1e16];
            let doubles: Vec<f64> = doubles.into_iter().chain(cents).chain(special).collect();
            check(Arc::new(Float64Array::from(doubles.clone())), &plain);
            check(Arc::new(doubles.iter().map(|d| Some(*d as f32)).collect::<Float32Array>()), &plain);
            check(Arc::new(numbers.iter().map(|n| n.map(|n| n % 3 == 0)).collect::<BooleanArray>()), &plain);
            check(Arc::new(texts.iter().cloned().collect::<StringArray>()), &plain);
            check(Arc::new(texts.iter().cloned().collect::<LargeStringArray>()), &plain);
            check(Arc::new(texts.iter().cloned().collect::<StringViewArray>()), &plain);
            let some: DictionaryArray<types::Int8Type> = texts.iter().map(|text| text.as_deref()).collect();
            check(Arc::new(some), &plain);
        }
    }

    #[test]
    fn arrays_that_begin_within_others_are_written_from_where_they_begin() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b\"", "c", "dd"]).slice(1, 3));
        check(texts, &CrateOptions::default());
        let views = StringViewArray::from(vec!["a", "twelve bytes", "and more than that", "dd"]);
        check(Arc::new(views.slice(1, 3)), &CrateOptions::default());
        check(Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]).slice(1, 2)), &CrateOptions::default());
        check(Arc::new(NullArray::new(3)), &CrateOptions::default());
    }

    #[test]
    fn a_run_has_a_row_at_least() {
        assert_eq!((run_of(1), run_of(0), run_of(100_000)), (1024, 1024, 1));
    }
}
