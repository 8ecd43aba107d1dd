//! Infers the types of columns from a sample of the records.
//!
//! Each value is of some types; a column gets the first type that all its values have. A type that would lose
//! something of a value, such as a leading zero or a digit, is not one of its types.

use arrow_schema::TimeUnit;
use serde::Serialize;

use super::arrays::{Fields, time, timestamp};
use super::column_type::ColumnType;
use super::cursor::{Cursor, not_utf8};
use super::dialect::Dialect;
use super::place::shown;
use super::text_file::TextFile;
use crate::condition::days_of;
use crate::error::Result;

/// Most records of a file that a sample takes as a whole, or in pieces.
const WHOLE: u64 = 16_384;
/// Pieces of a sample, from the start of a file to its end.
const PIECES: u64 = 16;

/// The type of a column, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InferredColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub data_type: String,
    /// How many values of the sample are not NULL.
    pub values: u64,
    /// What decided: the value that excluded other types and its place, or that the type was given.
    pub because: String,
}

/// Sets of types, in the order of preference.
const BOOL: u16 = 1;
const INT: u16 = 1 << 1;
const WIDE: u16 = 1 << 2;
const FLOAT: u16 = 1 << 3;
const DATE: u16 = 1 << 4;
const TIME: u16 = 1 << 5;
const MICROS: u16 = 1 << 6;
const NANOS: u16 = 1 << 7;
const MICROS_UTC: u16 = 1 << 8;
const NANOS_UTC: u16 = 1 << 9;
const TEXT: u16 = 1 << 10;
/// NaN and infinities, which alone would be words.
const NOT_FINITE: u16 = 1 << 11;

/// What is known of a column after a part of the sample.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    types: u16,
    values: u64,
    /// The value that narrowed the types last.
    pub evidence: Option<Evidence>,
}

/// A value, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub value: String,
    pub file: usize,
    pub offset: u64,
}

impl Default for Candidates {
    fn default() -> Self {
        Self { types: u16::MAX, values: 0, evidence: None }
    }
}

impl Candidates {
    fn add(&mut self, value: &str, file: usize, offset: u64) {
        self.values += 1;
        // Nothing is left to exclude.
        if self.types == TEXT {
            return;
        }
        let types = self.types & types_of(value);
        if types != self.types {
            self.types = types;
            self.evidence = Some(Evidence { value: shown(value.as_bytes()), file, offset });
        }
    }

    /// Adds what another file's sample says.
    pub(super) fn merge(&mut self, other: Self) {
        let types = self.types & other.types;
        if types != self.types {
            self.evidence = other.evidence;
        }
        (self.types, self.values) = (types, self.values + other.values);
    }

    /// Returns how many values are not NULL.
    pub(super) fn values(&self) -> u64 {
        self.values
    }

    /// Returns the type that all values have.
    pub(super) fn inferred(&self) -> ColumnType {
        match self.types {
            _ if self.values == 0 => ColumnType::Text,
            types if types & BOOL != 0 => ColumnType::Bool,
            types if types & INT != 0 => ColumnType::Int64,
            types if types & WIDE != 0 => ColumnType::Decimal(38, 0),
            types if types & FLOAT != 0 && types & NOT_FINITE == 0 => ColumnType::Float64,
            types if types & DATE != 0 => ColumnType::Date,
            types if types & TIME != 0 => ColumnType::Time,
            types if types & MICROS != 0 => ColumnType::Timestamp(TimeUnit::Microsecond),
            types if types & NANOS != 0 => ColumnType::Timestamp(TimeUnit::Nanosecond),
            types if types & MICROS_UTC != 0 => ColumnType::TimestampUtc(TimeUnit::Microsecond),
            types if types & NANOS_UTC != 0 => ColumnType::TimestampUtc(TimeUnit::Nanosecond),
            _ => ColumnType::Text,
        }
    }
}

/// Returns the types that a value has.
fn types_of(value: &str) -> u16 {
    let first = value.bytes().next().unwrap_or(b' ');
    TEXT | match first {
        b'0'..=b'9' | b'-' | b'.' => number(value) | moment(value),
        b't' | b'T' | b'f' | b'F'
            if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") =>
        {
            BOOL
        }
        b'n' | b'N' | b'i' | b'I' if value.parse::<f64>().is_ok() => FLOAT | NOT_FINITE,
        _ => 0,
    }
}

fn number(value: &str) -> u16 {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_negative = digits.len() < value.len();
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    if leading_zero {
        return 0;
    }
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if is_negative && digits == "0" {
            return FLOAT;
        }
        // Greater whole numbers are not all numbers of 64-bit floats.
        let as_float = if digits.len() <= 15 { FLOAT } else { 0 };
        return match (value.parse::<i64>(), digits.len()) {
            (Ok(_), _) => INT | WIDE | as_float,
            (_, ..=38) => WIDE,
            _ => 0,
        };
    }
    let significant =
        digits.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).filter(u8::is_ascii_digit);
    let significant = significant.skip_while(|byte| *byte == b'0').count();
    let is_infinite = digits.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    match value.parse::<f64>() {
        Ok(_) if is_infinite => FLOAT | NOT_FINITE,
        Ok(number) if significant <= 17 && number.is_finite() => FLOAT,
        _ => 0,
    }
}

fn moment(value: &str) -> u16 {
    let mut types = 0;
    if days_of(value).is_some_and(|days| i32::try_from(days).is_ok()) {
        types |= DATE;
    }
    if time(value).is_some() {
        types |= TIME;
    }
    for (unit, local, utc) in [(1_000, MICROS, MICROS_UTC), (1, NANOS, NANOS_UTC)] {
        match (timestamp(value, unit, false), timestamp(value, unit, true)) {
            (Some(_), _) => types |= local,
            (None, Some(_)) => types |= utc,
            (None, None) => {}
        }
    }
    types
}

/// Looks at a sample of a file's records: all of a short file; else pieces from its start to its end, fewer
/// of each of many `files`.
pub(super) fn sampled(
    file: &TextFile,
    number: usize,
    dialect: &Dialect,
    files: usize,
) -> Result<Vec<Candidates>> {
    let columns = file.columns.len();
    let mut candidates = vec![Candidates::default(); columns];
    let most = (WHOLE / files.max(1) as u64).max(768);
    let pieces = (PIECES / files.max(1) as u64).max(3);
    let (pieces, rows) = if file.rows <= most { (1, file.rows) } else { (pieces, most / pieces) };
    let mut cursor = Cursor::open(file)?;
    let mut cells = Vec::new();
    for piece in 0..pieces {
        let first = if pieces == 1 { 0 } else { (file.rows - rows) * piece / (pieces - 1) };
        file.move_to(&mut cursor, first, &mut cells)?;
        let mut left = rows;
        while left > 0 {
            let read = cursor.records(left as usize, columns, &mut cells)?;
            if read == 0 {
                break;
            }
            left -= read as u64;
            let (bytes, base) = cursor.buffer();
            let start = cells.first().map_or(0, |cell| cell.start as usize);
            let end = cells.last().map_or(0, |cell| cell.end as usize);
            let text = std::str::from_utf8(&bytes[start..end])
                .map_err(|error| not_utf8(file, base + (start + error.valid_up_to()) as u64))?;
            for cell in &mut cells {
                (cell.start, cell.end) = (cell.start - start as u32, cell.end - start as u32);
            }
            for (column, candidates) in candidates.iter_mut().enumerate() {
                let fields =
                    Fields { text, cells: &cells, column, columns, splitter: &file.splitter, dialect };
                for (row, value) in fields.values().enumerate() {
                    let Some(value) = value else { continue };
                    let at = base + start as u64 + u64::from(cells[row * columns + column].start);
                    candidates.add(&value, number, at);
                }
            }
        }
    }
    Ok(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&str]) -> String {
        let mut candidates = Candidates::default();
        values.iter().for_each(|value| candidates.add(value, 0, 0));
        candidates.inferred().to_string()
    }

    #[test]
    fn a_column_gets_the_narrowest_type_that_loses_nothing() {
        assert_eq!(inferred(&["1", "-2", "0"]), "int64");
        assert_eq!(inferred(&["1", "9223372036854775808"]), "decimal(38,0)");
        assert_eq!(inferred(&["1", "2.5", "NaN", "-inf", "1e300"]), "float64");
        assert_eq!(inferred(&["True", "false"]), "bool");
        assert_eq!(inferred(&["2024-01-31", "2024-02-01"]), "date");
        assert_eq!(inferred(&["2024-01-31", "2024-02-01 10:00:00"]), "timestamp");
        assert_eq!(inferred(&["2024-02-01T10:00:00.123456789", "2024-02-01"]), "timestamp_ns");
        assert_eq!(inferred(&["2024-02-01T10:00:00Z", "2024-02-01 10:00:00.5+02:00"]), "timestamptz");
        assert_eq!(inferred(&["10:00", "23:59:59.5"]), "time");
    }

    #[test]
    fn what_a_type_would_lose_is_text() {
        for values in [
            &[][..],
            &["007"],
            &["+49"],
            &[" 1"],
            &["1", "x"],
            &[""],
            &["nan"],
            &["NaN", "inf"],
            &["0.1234567890123456789"],
            &["9007199254740993", "0.5"],
            &["1e400"],
            &["2024-01-31", "7"],
            &["2024-01-31 10:00:00", "2024-01-31 10:00:00Z"],
            &["1,5"],
            &["123456789012345678901234567890123456789"],
            &["-"],
            &["."],
        ] {
            assert_eq!(inferred(values), "text", "{values:?}");
        }
        assert_eq!(inferred(&["0", "-0"]), "float64");
    }
}
