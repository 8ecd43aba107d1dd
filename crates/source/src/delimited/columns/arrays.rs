//! Turns the fields of a column into an Arrow array.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder, StringViewBuilder};
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, TimeUnit};

use super::column_type::ColumnType;
use super::formats::{Formats, Moment};
use super::numbers::{decimal, float, in_range, whole};
use crate::condition::{days_of, plain_timestamp, time_of, timestamp_of};
use crate::delimited::records::dialect::Dialect;
use crate::delimited::records::splitter::{Cell, Form, Splitter};

/// The fields of one column in consecutive records.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub text: &'a str,
    /// All fields of the records.
    pub cells: &'a [Cell],
    /// The column, and how many there are.
    pub column: usize,
    pub columns: usize,
    pub splitter: &'a Splitter,
    pub dialect: &'a Dialect,
    /// Whether blanks at both ends of a field without quotes are not part of it, as in `1, 2`.
    pub trims: bool,
}

impl<'a> Fields<'a> {
    /// The value of a field in quotes; `None` for NULL, and for one that is not there.
    fn quoted(&self, cell: &Cell, nulls: Nulls<'_>) -> Option<Cow<'a, str>> {
        let raw = &self.text[cell.start as usize..cell.end as usize];
        let value = match cell.form {
            Form::Plain | Form::Quoted => Cow::Borrowed(raw),
            Form::Escaped => Cow::Owned(self.splitter.unescaped(raw)),
            Form::Missing => return None,
        };
        (!(self.dialect.quoted_nulls && nulls.have(value.as_bytes()))).then_some(value)
    }
}

/// The words for NULL.
#[derive(Clone, Copy)]
struct Nulls<'a> {
    /// Whether no text is one.
    empty: bool,
    words: &'a [String],
    /// Whether others than the empty text are among them.
    has_words: bool,
}

impl<'a> Nulls<'a> {
    fn new(dialect: &'a Dialect) -> Self {
        let words = dialect.nulls.as_slice();
        Self {
            empty: words.iter().any(String::is_empty),
            words,
            has_words: words.iter().any(|word| !word.is_empty()),
        }
    }

    #[inline(always)]
    fn have(self, text: &[u8]) -> bool {
        match text.is_empty() {
            true => self.empty,
            false => self.has_words && self.words.iter().any(|word| word.as_bytes() == text),
        }
    }
}

/// A text, as a part of another: numbers are read from its bytes, without the check that it begins and ends
/// between characters.
#[derive(Clone, Copy)]
pub(crate) struct Part<'t> {
    whole: &'t str,
    start: usize,
    end: usize,
}

impl<'t> Part<'t> {
    /// All of a text.
    pub(crate) fn new(whole: &'t str) -> Self {
        Self { whole, start: 0, end: whole.len() }
    }

    /// The text without blanks at both ends, which are between a delimiter and a value other than text.
    #[inline(always)]
    fn trimmed(mut self) -> Self {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        while self.bytes().first().is_some_and(is_blank) {
            self.start += 1;
        }
        while self.bytes().last().is_some_and(is_blank) {
            self.end -= 1;
        }
        self
    }

    pub(crate) fn bytes(self) -> &'t [u8] {
        &self.whole.as_bytes()[self.start..self.end]
    }

    pub(crate) fn text(self) -> &'t str {
        &self.whole[self.start..self.end]
    }
}

/// The texts of a column, `None` for NULL.
pub(crate) trait Texts {
    fn rows(&self) -> usize;

    /// Passes every text with its row to `each`, until that fails.
    fn try_each(&self, each: impl FnMut(usize, Option<Part<'_>>) -> Result<(), usize>) -> Result<(), usize>;
}

impl Texts for Fields<'_> {
    fn rows(&self) -> usize {
        self.cells.len() / self.columns.max(1)
    }

    #[inline(always)]
    fn try_each(
        &self,
        mut each: impl FnMut(usize, Option<Part<'_>>) -> Result<(), usize>,
    ) -> Result<(), usize> {
        let nulls = Nulls::new(self.dialect);
        for (row, record) in self.cells.chunks_exact(self.columns.max(1)).enumerate() {
            let Some(cell) = record.get(self.column) else { break };
            let mut part = Part { whole: self.text, start: cell.start as usize, end: cell.end as usize };
            if self.trims {
                part = part.trimmed();
            }
            let (unescaped, value);
            match cell.form {
                Form::Plain => value = Some(part).filter(|part| !nulls.have(part.bytes())),
                _ => {
                    unescaped = self.quoted(cell, nulls);
                    value = unescaped.as_deref().map(Part::new);
                }
            }
            each(row, value)?;
        }
        Ok(())
    }
}

/// Returns the array of a type.
///
/// # Errors
/// The row of the first text that the type does not have.
pub(crate) fn array(texts: &impl Texts, formats: &Formats, wanted: ColumnType) -> Result<ArrayRef, usize> {
    let column = Column { texts, formats };
    let utc = || Some(Arc::<str>::from("UTC"));
    Ok(match wanted {
        ColumnType::Bool => {
            let mut builder = BooleanBuilder::with_capacity(texts.rows());
            texts.try_each(|row, text| {
                builder.append_option(text.map(|text| formats.boolean(text.text()).ok_or(row)).transpose()?);
                Ok(())
            })?;
            Arc::new(builder.finish())
        }
        ColumnType::Int16 => Arc::new(column.numbers::<Int16Type>(whole)?),
        ColumnType::Int32 => Arc::new(column.numbers::<Int32Type>(whole)?),
        ColumnType::Int64 => Arc::new(column.numbers::<Int64Type>(whole)?),
        ColumnType::Float32 => Arc::new(column.numbers::<Float32Type>(|text| in_range(text.text()))?),
        ColumnType::Float64 => Arc::new(column.numbers::<Float64Type>(float)?),
        ColumnType::Decimal(precision, scale) => {
            let array = column.numbers::<Decimal128Type>(|text| decimal(text, precision, scale))?;
            Arc::new(array.with_data_type(DataType::Decimal128(precision, scale)))
        }
        ColumnType::Date => Arc::new(column.primitive::<Date32Type>(|text| date(text.text()))?),
        ColumnType::Time => Arc::new(column.primitive::<Time64MicrosecondType>(|text| time(text.text()))?),
        ColumnType::Timestamp(unit) => {
            column.timestamps(unit, None, |text, of| timestamp(text, of, false))?
        }
        ColumnType::TimestampUtc(unit) => {
            column.timestamps(unit, utc(), |text, of| timestamp(text, of, true))?
        }
        ColumnType::Epoch(unit) => {
            let nanoseconds = |text: Part<'_>| epoch(Part::new(&formats.number(text.text())?), unit);
            column.timestamps(unit, utc(), |text, of| units(nanoseconds(text)?, of.into()))?
        }
        ColumnType::Pattern(Moment::Date, _, patterns) => {
            let days = |text: Part<'_>| i32::try_from(formats.moment(patterns, text.text())?).ok();
            Arc::new(column.primitive::<Date32Type>(days)?)
        }
        ColumnType::Pattern(Moment::Time, _, patterns) => {
            let micros = |text: Part<'_>| units(formats.moment(patterns, text.text())?, 1_000);
            Arc::new(column.primitive::<Time64MicrosecondType>(micros)?)
        }
        ColumnType::Pattern(of, unit, patterns) => {
            let zone = if of == Moment::Utc { utc() } else { None };
            column
                .timestamps(unit, zone, |text, of| units(formats.point(patterns, text.text())?, of.into()))?
        }
        ColumnType::Uuid => {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(texts.rows(), 16);
            texts.try_each(|row, text| {
                match text.map(|text| uuid(text.text()).ok_or(row)).transpose()? {
                    Some(bytes) => builder.append_value(bytes).map_err(|_| row),
                    None => {
                        builder.append_null();
                        Ok(())
                    }
                }
            })?;
            Arc::new(builder.finish())
        }
        ColumnType::Text | ColumnType::Json => {
            let mut builder = StringViewBuilder::with_capacity(texts.rows());
            texts.try_each(|row, text| {
                if wanted == ColumnType::Json && text.is_some_and(|text| !is_json(text.text())) {
                    return Err(row);
                }
                builder.append_option(text.map(Part::text));
                Ok(())
            })?;
            Arc::new(builder.finish())
        }
    })
}

/// A column of values of one width.
struct Column<'t, T> {
    texts: &'t T,
    formats: &'t Formats,
}

impl<T: Texts> Column<'_, T> {
    /// Points in time: `parse` returns a value in units of this many nanoseconds.
    fn timestamps(
        &self,
        unit: TimeUnit,
        zone: Option<Arc<str>>,
        parse: impl Fn(Part<'_>, i64) -> Option<i64>,
    ) -> Result<ArrayRef, usize> {
        Ok(match unit {
            TimeUnit::Nanosecond => {
                let array = self.primitive::<TimestampNanosecondType>(|text| parse(text, 1))?;
                Arc::new(array.with_timezone_opt(zone))
            }
            _ => {
                let array = self.primitive::<TimestampMicrosecondType>(|text| parse(text, 1_000))?;
                Arc::new(array.with_timezone_opt(zone))
            }
        })
    }

    fn numbers<A: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(Part<'_>) -> Option<A::Native>,
    ) -> Result<PrimitiveArray<A>, usize> {
        let formats = self.formats;
        match formats.decimal_comma || formats.thousands.is_some() {
            true => self.primitive(|text| parse(Part::new(&formats.number(text.text())?))),
            false => self.primitive(parse),
        }
    }

    fn primitive<A: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(Part<'_>) -> Option<A::Native>,
    ) -> Result<PrimitiveArray<A>, usize> {
        let rows = self.texts.rows();
        let (mut values, mut nulls) = (Vec::with_capacity(rows), NullBufferBuilder::new(rows));
        self.texts.try_each(|row, text| {
            match text {
                None => {
                    values.push(A::Native::default());
                    nulls.append_null();
                }
                Some(text) => {
                    values.push(parse(text).ok_or(row)?);
                    nulls.append_non_null();
                }
            }
            Ok(())
        })?;
        Ok(PrimitiveArray::new(values.into(), nulls.finish()))
    }
}

/// A number of units since 1970, with or without a fraction, in nanoseconds.
fn epoch(text: Part<'_>, unit: TimeUnit) -> Option<i128> {
    // Units are a thousand apart, the longest first.
    decimal(text, 38, 9 - 3 * unit as i8)
}

/// Nanoseconds in units of this many, if they are whole ones.
fn units(nanoseconds: i128, unit: i128) -> Option<i64> {
    // Divisions of 128 bits take ten times as long.
    if let (Ok(nanoseconds), Ok(unit)) = (i64::try_from(nanoseconds), i64::try_from(unit)) {
        return (nanoseconds.rem_euclid(unit) == 0).then(|| nanoseconds.div_euclid(unit));
    }
    let is_whole = nanoseconds.rem_euclid(unit) == 0;
    i64::try_from(nanoseconds.div_euclid(unit)).ok().filter(|_| is_whole)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn date(text: &str) -> Option<i32> {
    i32::try_from(days_of(text)?).ok()
}

/// Microseconds since midnight.
pub(crate) fn time(text: &str) -> Option<i64> {
    let nanoseconds = time_of(text)?;
    (nanoseconds % 1_000 == 0).then_some((nanoseconds / 1_000) as i64)
}

/// A point in time, in units of `unit` nanoseconds. Only points in UTC have an offset.
pub(crate) fn timestamp(text: Part<'_>, unit: i64, utc: bool) -> Option<i64> {
    if let Some((seconds, nanoseconds)) = plain_timestamp(text.bytes()) {
        let whole = seconds.checked_mul(1_000_000_000 / unit)?;
        return (nanoseconds % unit == 0).then_some(nanoseconds / unit)?.checked_add(whole);
    }
    let text = text.text();
    let (nanoseconds, offset) = match timestamp_of(text) {
        Some(moment) => (moment.nanoseconds, moment.offset),
        None => (i128::from(days_of(text)?) * 86_400_000_000_000, None),
    };
    if offset.is_some() && !utc {
        return None;
    }
    units(nanoseconds - offset.unwrap_or(0), unit.into())
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let has_hyphens = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    if !has_hyphens && text.len() != 32 {
        return None;
    }
    let mut digits = text.bytes().filter(|byte| !has_hyphens || *byte != b'-');
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        let mut digit = || char::from(digits.next()?).to_digit(16);
        *byte = ((digit()? << 4) | digit()?) as u8;
    }
    digits.next().is_none().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_not_rounded() {
        let timestamp = |text, unit, utc| timestamp(Part::new(text), unit, utc);
        assert_eq!(timestamp("1970-01-01 00:00:00.000001", 1_000, false), Some(1));
        assert_eq!(timestamp("1969-12-31T23:59:59.999999", 1_000, false), Some(-1));
        assert_eq!(timestamp("1970-01-02", 1_000, false), Some(86_400_000_000));
        assert_eq!(timestamp("1970-01-01T02:00:00+02:00", 1_000, true), Some(0));
        assert_eq!(timestamp("1970-01-01 00:00:00", 1_000, true), Some(0));
        assert_eq!(timestamp("1970-01-01 00:00:00.0000001", 1_000, false), None);
        assert_eq!(timestamp("1970-01-01 00:00:00Z", 1_000, false), None);
        assert_eq!(time("12:30:00.25"), Some(45_000_250_000));
    }

    #[test]
    fn json_is_one_whole_value() {
        for text in ["{\"a\": [1, null]}", "1.5", "\"x\"", " null "] {
            assert!(is_json(text), "{text}");
        }
        for wrong in ["", "not json", "{\"a\":}", "1 2", "'x'"] {
            assert!(!is_json(wrong), "{wrong}");
        }
    }

    #[test]
    fn uuids_have_hyphens_in_their_places_or_none() {
        let bytes = uuid("00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(bytes, uuid("00112233445566778899AABBCCDDEEFF"));
        assert_eq!(bytes.map(|bytes| bytes[15]), Some(0xff));
        for wrong in ["", "0011223344556677889900aabbccddeeffgg", "00112233-4455-6677-8899-aabbccddeef-"] {
            assert_eq!(uuid(wrong), None, "{wrong}");
        }
    }
}
