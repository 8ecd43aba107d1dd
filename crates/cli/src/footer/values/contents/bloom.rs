//! `sawmill footer bloom`: which row groups may hold a value, by the Bloom filters of a column.

use std::io::Write;
use std::path::Path;

use arrow_array::types::{Date32Type, Decimal128Type, Time64NanosecondType, TimestampNanosecondType};
use arrow_cast::parse::{Parser, parse_decimal};
use bytes::Bytes;
use parquet::bloom_filter::{BITSET_MAX_LENGTH, Sbbf};
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::reader::{ChunkReader, Length};
use sawmill_footer::{ColumnChunk, ConvertedType, Element, LogicalType, PhysicalType, TimeUnit};
use sawmill_inspect::escaped;
use sawmill_source::FileBytes;
use serde::Serialize;

use crate::arguments::stores::Objects;
use crate::error::Error;
use crate::footer::place::{Place, Places};
use crate::footer::run::unwritten;
use crate::footer::values::args::BloomArgs;
use crate::footer::values::contents::chunk_alone::{chunk_alone, footer_with_data};
use crate::footer::{escaped_path, escaped_place};
use crate::interrupt;
use crate::screen::console::Console;

/// What the filters of a file say about a value.
#[derive(Default, Serialize)]
struct Lookup {
    file: String,
    column: String,
    value: String,
    /// The row groups whose filters may hold the value.
    may_contain: Vec<usize>,
    /// Those whose filters rule it out.
    absent: Vec<usize>,
    /// Those without a filter for the column.
    no_filter: Vec<usize>,
}

pub(crate) fn run(args: &BloomArgs, console: Console) -> Result<(), Error> {
    let mut lookups = Vec::new();
    let Places { places, objects } = Places::new(&args.files, &args.stores)?;
    for place in &places {
        lookups.extend(look_up((place, &objects), args)?);
    }
    if console.json {
        return console.result(&lookups, String::new);
    }
    let mut out = console.output();
    let written = lookups.iter().try_for_each(|lookup| writeln!(out, "{}", lookup.text()));
    written.and_then(|()| out.flush()).map_err(unwritten)
}

fn look_up((file, objects): (&Place, &Objects), args: &BloomArgs) -> Result<Vec<Lookup>, Error> {
    let opened = file.open(objects)?;
    let place = || escaped_place(file);
    let footer = footer_with_data(&opened, std::slice::from_ref(&args.column), None, &place())?;
    let leaves: Vec<usize> = (0..footer.num_columns()).filter_map(|at| footer.leaf_of(at)).collect();
    let [leaf] = leaves[..] else {
        let what = format!("expected --column to name one column, found {}", leaves.len());
        let advice = "give its whole path: sawmill footer FILE --chunks lists them";
        return Err(Error::failure(what, place(), advice));
    };
    let Some(element) = footer.schema().leaf(leaf) else { return Ok(Vec::new()) };
    let stored = |value: &String| {
        plain_bytes(element, value).map_err(|expected| {
            let what = format!("column {}: expected {expected}, found {value:?}", escaped(&element.path()));
            Error::failure(what, place(), "write the value as sawmill footer --bounds shows it")
        })
    };
    let values: Vec<Vec<u8>> = args.value.iter().map(stored).collect::<Result<_, _>>()?;
    let failed = |chunk: &ColumnChunk<'_>, error: &str| {
        let what = format!("reading a Bloom filter failed: {error}");
        let (group, path) = (chunk.row_group().index(), chunk.path());
        let place = format!("{}, row group {group}, column {}", place(), escaped(&path));
        opened.because(Error::failure(what, place, "sawmill footer FILE --check looks for faults"))
    };
    let lookup = |value: &String| Lookup {
        file: file.to_string(),
        column: element.path(),
        value: value.clone(),
        ..Lookup::default()
    };
    let mut lookups: Vec<Lookup> = args.value.iter().map(lookup).collect();
    for group in footer.row_groups() {
        interrupt::check()?;
        let filter = match group.column(0) {
            Some(chunk) => {
                filter_of(&chunk, &opened.bytes)?.map_err(|error| failed(&chunk, &error.to_string()))?
            }
            None => None,
        };
        for (lookup, value) in lookups.iter_mut().zip(&values) {
            let answer = match &filter {
                None => &mut lookup.no_filter,
                Some(filter) if filter.check(value.as_slice()) => &mut lookup.may_contain,
                Some(_) => &mut lookup.absent,
            };
            answer.push(group.index());
        }
    }
    Ok(lookups)
}

/// The chunk's filter, if it has one.
///
/// # Errors
///
/// The outer error: the chunk is encrypted, elsewhere or of an unknown type; the inner one: the filter cannot be read.
fn filter_of(chunk: &ColumnChunk<'_>, bytes: &FileBytes) -> Result<Parquet<Option<Sbbf>>, Error> {
    let (chunk, bytes) = (chunk_alone(chunk)?, FewBytes(bytes));
    let read = || {
        let filter = match (chunk.bloom_filter_offset(), chunk.bloom_filter_length()) {
            (None, _) => return Ok(None),
            // The whole of it at once, so that its header can be compared with the footer.
            (Some(offset), Some(length)) => match (u64::try_from(offset), usize::try_from(length)) {
                (Ok(offset), Ok(length)) => Sbbf::from_bytes(&bytes.get_bytes(offset, length)?)?,
                _ => return Err(ParquetError::General("its offset or its length is negative".to_owned())),
            },
            (Some(_), None) => match Sbbf::read_from_column_chunk(&chunk, &bytes)? {
                None => return Ok(None),
                Some(filter) => filter,
            },
        };
        match filter.num_blocks() {
            0 => Err(ParquetError::General("expected blocks of 32 bytes, found none".to_owned())),
            _ => Ok(Some(filter)),
        }
    };
    Ok(read())
}

/// The bytes of a file. A single read is limited to a filter's greatest length: a damaged header may claim 2 GiB.
struct FewBytes<'a>(&'a FileBytes);

/// What a filter may have: its blocks and its header, which is much shorter.
const MAX_LENGTH: usize = BITSET_MAX_LENGTH + 1024;

impl Length for FewBytes<'_> {
    fn len(&self) -> u64 {
        Length::len(self.0)
    }
}

impl ChunkReader for FewBytes<'_> {
    type T = <FileBytes as ChunkReader>::T;

    fn get_read(&self, start: u64) -> Parquet<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Parquet<Bytes> {
        if length > MAX_LENGTH {
            let what = format!("expected at most {MAX_LENGTH} bytes, found a filter that claims {length}");
            return Err(ParquetError::General(what));
        }
        self.0.get_bytes(start, length)
    }
}

impl Lookup {
    fn text(&self) -> String {
        let file = escaped_path(Path::new(&self.file));
        let mut text = format!("{file}: {} = {}: ", escaped(&self.column), escaped(&self.value));
        let filters = self.may_contain.len() + self.absent.len();
        text += &match (filters, self.may_contain.len()) {
            (0, _) => "no Bloom filter".to_owned(),
            (1, 0) => "not in the row group".to_owned(),
            (1, _) => "perhaps in the row group".to_owned(),
            (all, 0) => format!("in none of {all} row groups"),
            (all, _) => format!(
                "perhaps in {} of {all} row groups: {}",
                self.may_contain.len(),
                ranges(&self.may_contain)
            ),
        };
        if filters > 0 && !self.no_filter.is_empty() {
            text += &format!("; no filter in row groups {}", ranges(&self.no_filter));
        }
        text
    }
}

/// Ascending numbers as `0, 3..5, 9`; a range excludes its end, as in `--row-group`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((*run.first()?, *run.last()?)));
    let run = |(first, last)| match last - first {
        0 => format!("{first}"),
        _ => format!("{first}..{}", last + 1),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

/// A value in the encoding PLAIN, which filters hash; or the expected form.
fn plain_bytes(element: Element<'_>, text: &str) -> Result<Vec<u8>, &'static str> {
    let logical = element.logical_type();
    match element.physical_type() {
        Some(PhysicalType::Int32) => {
            whole::<4>(element, text, ["a 32-bit integer", "an unsigned 32-bit integer"])
        }
        Some(PhysicalType::Int64) => {
            whole::<8>(element, text, ["a 64-bit integer", "an unsigned 64-bit integer"])
        }
        Some(PhysicalType::Float) => {
            text.parse().map(|value: f32| value.to_le_bytes().to_vec()).map_err(|_| "a number")
        }
        Some(PhysicalType::Double) => {
            text.parse().map(|value: f64| value.to_le_bytes().to_vec()).map_err(|_| "a number")
        }
        Some(PhysicalType::ByteArray) => match (logical, decimal(element)) {
            (_, Some(_)) => {
                Err("a column whose values have one form of bytes (a decimal of any length has many)")
            }
            (None, None) if element.converted_type().is_none() && text.starts_with("0x") => hexadecimal(text),
            _ => Ok(text.as_bytes().to_vec()),
        },
        Some(PhysicalType::FixedLenByteArray) => fixed(element, text),
        _ => Err("a column of a type that filters support"),
    }
}

/// A number in `BYTES` bytes; `names` names the signed and the unsigned type.
fn whole<const BYTES: usize>(
    element: Element<'_>,
    text: &str,
    names: [&'static str; 2],
) -> Result<Vec<u8>, &'static str> {
    let (value, half) = (integer(element, text)?, 1_i128 << (8 * BYTES - 1));
    let (range, expected) = match is_unsigned(element) {
        true => (0..2 * half, names[1]),
        false => (-half..half, names[0]),
    };
    if range.contains(&value) { Ok(value.to_le_bytes()[..BYTES].to_vec()) } else { Err(expected) }
}

/// The number that an integer column stores for a value.
fn integer(element: Element<'_>, text: &str) -> Result<i128, &'static str> {
    if let Some((precision, scale)) = decimal(element) {
        // The parser cuts digits off that the column cannot hold.
        let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len());
        let fits = digits <= usize::try_from(scale).unwrap_or(0) && !text.contains(['e', 'E']);
        let value = parse_decimal::<Decimal128Type>(text, precision, scale).ok().filter(|_| fits);
        return value.ok_or("a decimal of the column's type");
    }
    let converted = element.converted_type();
    let unit = match element.logical_type() {
        Some(LogicalType::Timestamp { unit, .. } | LogicalType::Time { unit, .. }) => Some(*unit),
        _ => match converted {
            Some(ConvertedType::TimestampMillis | ConvertedType::TimeMillis) => Some(TimeUnit::Millis),
            Some(ConvertedType::TimestampMicros | ConvertedType::TimeMicros) => Some(TimeUnit::Micros),
            _ => None,
        },
    };
    let is_time = matches!(element.logical_type(), Some(LogicalType::Time { .. }))
        || matches!(converted, Some(ConvertedType::TimeMillis | ConvertedType::TimeMicros));
    if let Some(unit) = unit {
        let (nanoseconds, expected) = match is_time {
            true => (Time64NanosecondType::parse(text), "a time such as 12:30:00, in the column's unit"),
            false => (
                TimestampNanosecondType::parse(text),
                "a timestamp such as 2024-02-29T12:30:00Z, in the column's unit",
            ),
        };
        let of_unit = match unit {
            TimeUnit::Millis => 1_000_000,
            TimeUnit::Micros => 1_000,
            TimeUnit::Nanos => 1,
            TimeUnit::Unknown(_) => return Err("a column with a known unit of time"),
        };
        let exact = nanoseconds.map(i128::from).filter(|nanoseconds| nanoseconds % of_unit == 0);
        return exact.map(|nanoseconds| nanoseconds / of_unit).ok_or(expected);
    }
    if matches!(element.logical_type(), Some(LogicalType::Date)) || converted == Some(ConvertedType::Date) {
        return Date32Type::parse(text).map(i128::from).ok_or("a date such as 2024-02-29");
    }
    text.parse().map_err(|_| "an integer")
}

fn is_unsigned(element: Element<'_>) -> bool {
    use ConvertedType::{UInt8, UInt16, UInt32, UInt64};
    matches!(element.logical_type(), Some(LogicalType::Integer { is_signed: false, .. }))
        || matches!(element.converted_type(), Some(UInt8 | UInt16 | UInt32 | UInt64))
}

/// Precision and scale of a decimal column.
fn decimal(element: Element<'_>) -> Option<(u8, i8)> {
    let (precision, scale) = match (element.logical_type(), element.converted_type()) {
        (Some(LogicalType::Decimal { scale, precision }), _) => (*precision, *scale),
        (None, Some(ConvertedType::Decimal)) => (element.precision()?, element.scale().unwrap_or(0)),
        _ => return None,
    };
    Some((u8::try_from(precision).ok()?, i8::try_from(scale).ok()?))
}

fn fixed(element: Element<'_>, text: &str) -> Result<Vec<u8>, &'static str> {
    let length = element.type_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    if decimal(element).is_some() {
        let value = integer(element, text)?.to_be_bytes();
        let sign = if value[0] >= 0x80 { 0xff } else { 0 };
        return match value.len().checked_sub(length) {
            Some(cut) => Ok(value[cut..].to_vec()),
            None => Ok([vec![sign; length - value.len()], value.to_vec()].concat()),
        };
    }
    let bytes = match element.logical_type() {
        Some(LogicalType::Uuid) => {
            hexadecimal(&format!("0x{}", text.replace('-', ""))).map_err(|_| "a UUID")?
        }
        _ if text.starts_with("0x") => hexadecimal(text)?,
        _ => text.as_bytes().to_vec(),
    };
    if bytes.len() == length { Ok(bytes) } else { Err("as many bytes as the column's values have") }
}

fn hexadecimal(text: &str) -> Result<Vec<u8>, &'static str> {
    const EXPECTED: &str = "0x and an even number of hexadecimal digits";
    let digits = text.strip_prefix("0x").filter(|digits| digits.is_ascii()).ok_or(EXPECTED)?;
    let pair =
        |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or(EXPECTED);
    (0..digits.len()).step_by(2).map(pair).collect()
}
