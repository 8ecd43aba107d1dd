//! Infers the types of columns from a sample of the records.
//!
//! Each value is of some types; a column gets the first type that all its values have. A type that would lose
//! something of a value, such as a leading zero or a digit, is not one of its types.

use std::io::Write;

use arrow_schema::TimeUnit;
use sawmill_profile::{Pool, Result};
use serde::Serialize;

use super::arrays::{Fields, Part, Texts, time, timestamp};
use super::column_type::ColumnType;
use super::formats::{Formats, Moment};
use crate::condition::days_of;
use crate::delimited::records::cursor::{Cursor, not_utf8};
use crate::delimited::records::dialect::Dialect;
use crate::delimited::records::leading::Split;
use crate::delimited::records::place::shown;
use crate::delimited::records::splitter::Cell;
use crate::delimited::text_file::TextFile;

/// The digits that a decimal has at most.
const MAX_DIGITS: usize = 38;

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
    /// The reason: the value that excluded other types and its place, or that the type was given.
    pub because: String,
}

/// Sets of types, in the order of preference.
const BOOL: u16 = 1;
const INT: u16 = 1 << 1;
/// Digits, with or without a point.
const DECIMAL: u16 = 1 << 2;
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

const NUMBERS: u16 = INT | DECIMAL | FLOAT;
const MOMENTS: u16 = DATE | TIME | MICROS | NANOS | MICROS_UTC | NANOS_UTC;

/// The findings about a column after a part of the sample.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    types: u16,
    /// Most digits of a decimal before the point, and after it.
    digits: (usize, usize),
    /// The patterns that all values have, and those that some have; whether all values have one of them.
    patterns: u32,
    some_patterns: u32,
    by_patterns: bool,
    /// Whether all values are points in time in whole microseconds, by their patterns.
    micros: bool,
    values: u64,
    /// The value that narrowed the types last.
    pub evidence: Option<Evidence>,
}

/// A value, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub value: String,
    pub file: usize,
    pub offset: u64,
}

impl Default for Candidates {
    fn default() -> Self {
        Self {
            types: u16::MAX,
            digits: (0, 0),
            patterns: u32::MAX,
            some_patterns: 0,
            by_patterns: true,
            micros: true,
            values: 0,
            evidence: None,
        }
    }
}

impl Candidates {
    pub(crate) fn add(&mut self, value: &str, formats: &Formats, file: usize, offset: u64) {
        self.values += 1;
        self.by_patterns &= !formats.patterns.is_empty();
        // Nothing is left to exclude.
        if self.types == TEXT && !self.by_patterns {
            return;
        }
        let before = (self.types, self.patterns, self.by_patterns);
        let (types, digits) = types_of(value, formats, self.types);
        self.types &= types;
        self.add_digits(digits);
        if self.by_patterns {
            self.add_patterns(value, formats);
        }
        if before != (self.types, self.patterns, self.by_patterns) {
            self.evidence = Some(Evidence { value: shown(value.as_bytes()), file, offset });
        }
    }

    fn add_digits(&mut self, (whole, fraction): (usize, usize)) {
        self.digits = (self.digits.0.max(whole), self.digits.1.max(fraction));
        if self.digits.0 + self.digits.1 > MAX_DIGITS {
            self.types &= !DECIMAL;
        }
    }

    fn add_patterns(&mut self, value: &str, formats: &Formats) {
        let mut matched = 0;
        for (at, pattern) in formats.patterns.iter().enumerate() {
            if let Some(moment) = pattern.value(value) {
                matched |= 1 << at;
                self.micros &= pattern.of == Moment::Date || moment % 1_000 == 0;
            }
        }
        self.patterns &= matched;
        self.some_patterns |= matched;
        self.by_patterns &= matched != 0;
    }

    /// Adds what another file's sample says.
    pub(crate) fn merge(&mut self, other: Self) {
        let before = (self.types, self.patterns, self.by_patterns);
        self.types &= other.types;
        self.add_digits(other.digits);
        self.patterns &= other.patterns;
        self.some_patterns |= other.some_patterns;
        self.by_patterns &= other.by_patterns;
        self.micros &= other.micros;
        if before != (self.types, self.patterns, self.by_patterns) {
            self.evidence = other.evidence;
        }
        self.values += other.values;
    }

    /// Returns the type by patterns: the first pattern that all values have, or else all that some have, if
    /// they describe the same.
    fn by_patterns(&self, formats: &Formats) -> Option<ColumnType> {
        if !self.by_patterns || self.values == 0 {
            return None;
        }
        let all = (0..formats.patterns.len()).find(|at| self.patterns & (1 << at) != 0);
        let chosen = all.map_or(self.some_patterns, |at| 1 << at);
        let mut kinds = formats.chosen(chosen);
        let first = kinds.next()?;
        let unit = if self.micros { TimeUnit::Microsecond } else { TimeUnit::Nanosecond };
        let fits = self.micros || first.of != Moment::Time;
        (fits && kinds.all(|other| other.of == first.of))
            .then_some(ColumnType::Pattern(first.of, unit, chosen))
    }

    /// Returns the type of the contents of JSON strings: text, or a type with its own form.
    pub(crate) fn of_strings(&self, formats: &Formats) -> ColumnType {
        match self.inferred(formats) {
            of @ (ColumnType::Date
            | ColumnType::Time
            | ColumnType::Timestamp(_)
            | ColumnType::TimestampUtc(_)
            | ColumnType::Pattern(..)) => of,
            of @ ColumnType::Bool if formats.has_words() => of,
            _ => ColumnType::Text,
        }
    }

    /// Whether all values may be of a type of moments; true for other types.
    pub(crate) fn may_be(&self, of: ColumnType) -> bool {
        let wanted = match of {
            ColumnType::Date => DATE,
            ColumnType::Time => TIME,
            ColumnType::Timestamp(_) => MICROS | NANOS,
            ColumnType::TimestampUtc(_) => MICROS | NANOS | MICROS_UTC | NANOS_UTC,
            _ => return true,
        };
        self.values == 0 || self.types & wanted != 0
    }

    /// Returns how many values are not NULL.
    pub(crate) fn values(&self) -> u64 {
        self.values
    }

    /// Returns the type that all values have.
    pub(crate) fn inferred(&self, formats: &Formats) -> ColumnType {
        if let Some(of) = self.by_patterns(formats) {
            return of;
        }
        match self.types {
            _ if self.values == 0 => ColumnType::Text,
            types if types & BOOL != 0 => ColumnType::Bool,
            types if types & INT != 0 => ColumnType::Int64,
            types if types & DECIMAL != 0 && self.digits.1 == 0 => ColumnType::Decimal(38, 0),
            types if types & FLOAT != 0 && types & NOT_FINITE == 0 => ColumnType::Float64,
            // Later values may have more digits before the point.
            types if types & DECIMAL != 0 => ColumnType::Decimal(38, self.digits.1 as i8),
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

/// Whether inference takes a later value for one of the type that it gave a column.
pub(crate) fn accepts(of: ColumnType, value: &str, formats: &Formats) -> bool {
    let wanted = match of {
        ColumnType::Bool => BOOL,
        ColumnType::Int64 => INT,
        ColumnType::Decimal(..) => DECIMAL,
        ColumnType::Float64 => FLOAT,
        ColumnType::TimestampUtc(TimeUnit::Nanosecond) => NANOS_UTC,
        ColumnType::TimestampUtc(_) => MICROS_UTC,
        _ => return true,
    };
    types_of(value, formats, wanted).0 & wanted != 0
}

/// Returns which of the types in `left` fit a value, and how many digits a decimal has before and after the
/// point. The result may contain types outside of `left`.
fn types_of(value: &str, formats: &Formats, left: u16) -> (u16, (usize, usize)) {
    let first = value.bytes().next().unwrap_or(b' ');
    if formats.has_words() && formats.word(value).is_some() {
        return (TEXT | BOOL, (0, 0));
    }
    let mut digits = (0, 0);
    let types = match first {
        b'0'..=b'9' | b'-' | b'.' | b',' => {
            let mut types = if left & MOMENTS == 0 { 0 } else { moment(value) };
            if left & NUMBERS != 0
                && let Some(value) = formats.number(value)
            {
                let (numbers, of) = number(&value);
                (types, digits) = (types | numbers, of);
            }
            types
        }
        b't' | b'T' | b'f' | b'F'
            if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") =>
        {
            BOOL
        }
        b'n' | b'N' | b'i' | b'I' if value.parse::<f64>().is_ok() => FLOAT | NOT_FINITE,
        _ => 0,
    };
    (TEXT | types, digits)
}

/// Returns which numbers a text is, and the digits of a decimal before and after the point.
fn number(value: &str) -> (u16, (usize, usize)) {
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    let Some(first) = unsigned.bytes().next() else { return (0, (0, 0)) };
    if first.is_ascii_alphabetic() {
        return (if value.parse::<f64>().is_ok() { FLOAT | NOT_FINITE } else { 0 }, (0, 0));
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, ""));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    let Some(float) = value.parse::<f64>().ok().filter(|_| !has_leading_zero && first != b'+') else {
        return (0, (0, 0));
    };
    let mut types = if float_keeps(float, mantissa, exponent) { FLOAT } else { 0 };
    // Decimals have no exponent, and no zero with a sign.
    if mantissa.len() == unsigned.len() && !(unsigned.len() < value.len() && float == 0.0) {
        types |= DECIMAL;
        if whole.len() == unsigned.len() && value.parse::<i64>().is_ok() {
            types |= INT;
        }
    }
    (types, (if whole == "0" { 0 } else { whole.len() }, fraction.len()))
}

/// Whether a float, printed again, has the digits that it was read from.
fn float_keeps(float: f64, mantissa: &str, exponent: &str) -> bool {
    let digits = || mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0');
    let zeros = mantissa.bytes().rev().filter(u8::is_ascii_digit).take_while(|digit| *digit == b'0').count();
    let significant = digits().count().saturating_sub(zeros);
    // All numbers of 15 digits are different floats, unless they are tiny or infinite.
    if significant <= 15 && (float.is_normal() || exponent.is_empty() && mantissa.len() < 300) {
        return true;
    }
    // The power of ten is right, because the digits of the nearest float differ otherwise; zero has none.
    let mut printed = [0; 32];
    if write!(printed.as_mut_slice(), "{:e}", float.abs()).is_err() {
        return false;
    }
    let printed = printed.split(|byte| *byte == b'e').next().unwrap_or_default().iter().copied();
    let printed = printed.filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0');
    float.is_finite() && printed.eq(digits().take(significant))
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
        match (timestamp(Part::new(value), unit, false), timestamp(Part::new(value), unit, true)) {
            (Some(_), _) => types |= local,
            (None, Some(_)) => types |= utc,
            (None, None) => {}
        }
    }
    types
}

/// How much of the files a sample takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Most records of all files together.
    pub rows: u64,
    pub files: usize,
}

/// Consecutive records of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub file: usize,
    first: u64,
    rows: u64,
}

impl Sample {
    /// The number of records that a sample has unless another is asked for.
    pub(crate) const ROWS: u64 = 16_384;

    /// Returns the pieces of a file: all of a short file; else pieces from its start to its end, fewer of each
    /// of many files.
    fn pieces(self, number: usize, file: &TextFile) -> Vec<Piece> {
        let files = self.files.max(1) as u64;
        let most = (self.rows / files).max(768);
        let piece = |first, rows| Piece { file: number, first, rows };
        if file.rows <= most {
            const ROWS: u64 = 16 * 1024;
            return (0..file.rows.div_ceil(ROWS))
                .map(|n| piece(n * ROWS, ROWS.min(file.rows - n * ROWS)))
                .collect();
        }
        let pieces = (PIECES / files).max(3).max(most / Self::ROWS);
        let rows = most / pieces;
        (0..pieces)
            .map(|n| {
                piece(((file.rows - rows) as u128 * u128::from(n) / u128::from(pieces - 1)) as u64, rows)
            })
            .collect()
    }
}

/// Looks at a sample of the records on all cores: `look` at each piece, `add` the findings in their order.
pub(crate) fn on_sample<R: Send>(
    files: &[TextFile],
    sample: Sample,
    look: impl Fn(&TextFile, Piece) -> Result<R> + Sync,
    mut add: impl FnMut(Piece, R),
) -> Result<()> {
    let pieces = files.iter().enumerate().flat_map(|(number, file)| sample.pieces(number, file));
    let pieces: Vec<Piece> = pieces.collect();
    let seen = |piece: Piece| -> Result<Option<(Piece, R)>> {
        files.get(piece.file).map(|file| Ok((piece, look(file, piece)?))).transpose()
    };
    // Only the findings of a few pieces are held at once.
    Pool::on_cores("sampler", pieces.len(), None).in_order(pieces, 64, seen, |seen| {
        if let Some((piece, seen)) = seen? {
            add(piece, seen);
        }
        Ok(())
    })
}

/// Passes the records of a piece: text, their fields as ranges of it, and its place in the file. Records that are
/// not UTF-8 are left out of a file whose bad records are rejected later.
pub(crate) fn each_record(
    file: &TextFile,
    piece: Piece,
    mut each: impl FnMut(&str, &[Cell], u64) -> Result<()>,
) -> Result<()> {
    let mut cursor = Cursor::open(file)?;
    let mut cells = Vec::new();
    file.move_to(&mut cursor, piece.first, &mut cells)?;
    let mut left = piece.rows;
    while left > 0 {
        let read = cursor.records(left as usize, Split::all(file.fields()), &mut cells)?;
        if read == 0 {
            break;
        }
        left -= read as u64;
        let (bytes, base) = cursor.buffer();
        let range = |cells: &[Cell]| {
            let ends = cells.first().zip(cells.last());
            ends.map_or(0..0, |(first, last)| first.start as usize..last.end as usize)
        };
        let mut pass = |cells: &mut [Cell]| {
            let range = range(cells);
            let start = range.start as u32;
            let text = std::str::from_utf8(&bytes[range])
                .map_err(|error| not_utf8(file, base + u64::from(start) + error.valid_up_to() as u64))?;
            for cell in cells.iter_mut() {
                (cell.start, cell.end) = (cell.start - start, cell.end - start);
            }
            each(text, cells, base + u64::from(start))
        };
        if !file.splitter.lenient || std::str::from_utf8(&bytes[range(&cells)]).is_ok() {
            pass(&mut cells)?;
            continue;
        }
        for record in cells.chunks_mut(file.fields().max(1)) {
            if std::str::from_utf8(&bytes[range(record)]).is_ok() {
                pass(record)?;
            }
        }
    }
    Ok(())
}

/// Looks at a piece of a file of delimited text.
pub(crate) fn sampled(file: &TextFile, piece: Piece, dialect: &Dialect) -> Result<Vec<Candidates>> {
    let columns = file.fields();
    let mut candidates = vec![Candidates::default(); columns];
    each_record(file, piece, |text, cells, base| {
        for (column, candidates) in candidates.iter_mut().enumerate() {
            let fields =
                Fields { text, cells, column, columns, splitter: &file.splitter, dialect, trims: true };
            // No value is refused.
            let _ = fields.try_each(|row, value| {
                if let Some(value) = value {
                    let at = base + u64::from(cells[row * columns + column].start);
                    candidates.add(value.text(), &dialect.formats, piece.file, at);
                }
                Ok(())
            });
        }
        Ok(())
    })?;
    Ok(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&str]) -> String {
        let mut candidates = Candidates::default();
        let formats = Formats::default();
        values.iter().for_each(|value| candidates.add(value, &formats, 0, 0));
        candidates.inferred(&formats).to_string()
    }

    #[test]
    fn a_column_gets_the_pattern_that_all_its_values_have_or_else_several() {
        let mut formats = Formats::default();
        for pattern in ["%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d.%m.%Y %H:%M"] {
            formats.add(pattern.parse().unwrap()).unwrap();
        }
        let inferred = |values: &[&str]| {
            let mut candidates = Candidates::default();
            values.iter().for_each(|value| candidates.add(value, &formats, 0, 0));
            candidates.inferred(&formats)
        };
        let date = |patterns| ColumnType::Pattern(Moment::Date, TimeUnit::Microsecond, patterns);
        assert_eq!(inferred(&["01/02/2024", "13/02/2024"]), date(0b10), "the first alone does not fit");
        assert_eq!(inferred(&["01/02/2024"]), date(0b1));
        assert_eq!(inferred(&["25/12/2024", "24.12.2024"]), date(0b110), "both are needed");
        assert_eq!(inferred(&["24.12.2024", "24.12.2024 10:00"]), ColumnType::Text);
        assert_eq!(inferred(&["24.12.2024", "never"]), ColumnType::Text);
        assert_eq!(inferred(&["2024-12-24"]), ColumnType::Date, "without a pattern");
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
            &["1", "x"],
            &[""],
            &["nan"],
            &["NaN", "inf"],
            &["1e400"],
            &["1e-400"],
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

    #[test]
    fn a_column_is_a_float_only_if_every_float_is_printed_with_the_digits_it_was_read_from() {
        for floats in [
            &["0.1", "12.50", "1e300", "-1.5E-7"][..],
            &["0.30000000000000004", "2.2250738585072014e-308", "5e-324"],
            &["1.00000000000000000000", "1000000000000000000000.0"],
            &["1234567890123456", "0.5"],
        ] {
            assert_eq!(inferred(floats), "float64", "{floats:?}");
        }
        assert_eq!(inferred(&["99999999999999.999"]), "decimal(38,3)");
        assert_eq!(inferred(&["0.5", "999999999.12345671", "999999999.12345672"]), "decimal(38,8)");
        assert_eq!(inferred(&["0.1234567890123456789", "1"]), "decimal(38,19)");
        assert_eq!(inferred(&["0.12345678901234567890123456789012345678"]), "decimal(38,38)");
        assert_eq!(inferred(&["9007199254740993", "0.5"]), "decimal(38,1)");
        assert_eq!(inferred(&["9007199254740993.0"]), "decimal(38,1)");
        assert_eq!(inferred(&["0.5", "-9007199254740993."]), "decimal(38,1)");
        for text in [
            // Each is a decimal or a float, but no type has both, or all digits.
            &["99999999999999.999", "1e5"][..],
            &["99999999999999.999", "-0.0"],
            &["99999999999999.999", "NaN"],
            &["0.123456789012345678901234567890123456789"],
            &["12345678901234567890123456789012345678", "0.5"],
            &["3e-324"],
        ] {
            assert_eq!(inferred(text), "text", "{text:?}");
        }
        assert_eq!(inferred(&["9007199254740992.0", "1234567890123456.5", "0e5"]), "float64");
    }
}
