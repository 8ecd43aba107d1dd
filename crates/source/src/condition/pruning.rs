//! Evaluates conditions on a file's statistics: finds row groups and pages in which no row can pass, and row
//! groups in which all rows pass.
//!
//! Bounds are used if the file declares their order
//! (<https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>, `ColumnOrder`),
//! and if they have the type that the column is read as. They may be wider than the values, as truncated text
//! is. They do not include NaNs.

use std::ops::Range;

use arrow_schema::{DataType, TimeUnit};
use half::f16;
use sawmill_footer::{
    ColumnChunk, ColumnIndex, ColumnOrder, ConvertedType, Element, Footer, LogicalType, OffsetIndex,
    PhysicalType, RangeReader, RowGroup, Statistics,
};

use crate::condition::literal::{Domain, domain, order_of_f32, order_of_f64, value_type};
use crate::condition::rows::{RowTest, Test, ValueTest, prefix};

/// The conclusion from statistics about the rows of a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// Whether some rows may pass.
    pub some: bool,
    /// Whether all rows pass.
    pub all: bool,
}

/// The pages that need not be read.
#[derive(Debug)]
pub(crate) struct PagePlan {
    /// The rows that may pass, in ascending order.
    pub rows: Vec<Range<u64>>,
    /// Number of data pages of the condition's columns that have an index.
    pub pages: usize,
    /// Number of those in which no row can pass.
    pub pruned: usize,
}

/// The facts that statistics tell about a column's values in a row group or a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Lower and upper bound of the values, which may be wider than the values.
    pub bounds: Option<Bounds>,
    /// Whether there are nulls.
    pub nulls: Nulls,
}

/// Inclusive bounds of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Bounds of numbers, dates and times, as the integers that they are compared as.
    Whole(i128, i128),
    /// Bounds of text and bytes.
    Bytes(Vec<u8>, Vec<u8>),
}

/// Whether a column has nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// No value is null.
    None,
    /// The statistics do not say.
    Maybe,
    /// All values are null.
    All,
}

/// A column of a condition in a row group.
struct Chunk<'a> {
    chunk: ColumnChunk<'a>,
    element: Element<'a>,
    data_type: &'a DataType,
}

/// Returns the facts that a row group's statistics tell about a top-level column, given its name in the file
/// and the type that it is read as.
pub(crate) fn known_of(footer: &Footer, group: RowGroup<'_>, name: &str, data_type: &DataType) -> Known {
    let known = chunk_of(footer, group, name, data_type).map(|chunk| chunk.known(footer));
    known.unwrap_or(Known { bounds: None, nulls: Nulls::Maybe })
}

fn chunk_of<'a>(
    footer: &'a Footer,
    group: RowGroup<'a>,
    name: &str,
    data_type: &'a DataType,
) -> Option<Chunk<'a>> {
    let element = footer.schema().root().children().find(|child| child.name() == name)?;
    let chunk = group.column_of_leaf(element.column()?)?;
    Some(Chunk { chunk, element, data_type: value_type(data_type) })
}

/// Returns the conclusion from a row group's statistics about a condition. Unreadable statistics tell
/// nothing.
pub(crate) fn outlook(test: &RowTest, footer: &Footer, group: RowGroup<'_>) -> Outlook {
    let known: Vec<Known> = chunks(test, footer, group)
        .into_iter()
        .map(|chunk| chunk.map_or(Known { bounds: None, nulls: Nulls::Maybe }, |chunk| chunk.known(footer)))
        .collect();
    outlook_of(&test.test, &known)
}

/// Returns the conclusion from a file's folders alone about a condition.
pub(crate) fn outlook_of_folders(test: &RowTest) -> Outlook {
    outlook_of(&test.test, &[])
}

/// Returns the condition's columns in a row group, `None` for those that the footer does not have.
fn chunks<'a>(test: &'a RowTest, footer: &'a Footer, group: RowGroup<'a>) -> Vec<Option<Chunk<'a>>> {
    let columns = test.columns.iter();
    columns.map(|column| chunk_of(footer, group, &column.name, &column.data_type)).collect()
}

fn outlook_of(test: &Test, known: &[Known]) -> Outlook {
    match test {
        Test::All(tests) => tests.iter().map(|test| outlook_of(test, known)).fold(
            Outlook { some: true, all: true },
            |sum, one| Outlook { some: sum.some && one.some, all: sum.all && one.all },
        ),
        Test::Any(tests) => tests.iter().map(|test| outlook_of(test, known)).fold(
            Outlook { some: false, all: false },
            |sum, one| Outlook { some: sum.some || one.some, all: sum.all || one.all },
        ),
        Test::Value(column, test) => {
            known.get(*column).map_or(Outlook { some: true, all: false }, |known| known.outlook(test))
        }
    }
}

impl Known {
    fn outlook(&self, test: &ValueTest) -> Outlook {
        let (some, all) = match (test, &self.bounds) {
            (ValueTest::Null(wanted), _) => {
                let (null, value) = (self.nulls != Nulls::None, self.nulls != Nulls::All);
                let (same, other) = if *wanted { (null, value) } else { (value, null) };
                return Outlook { some: same, all: !other };
            }
            _ if self.nulls == Nulls::All => (false, false),
            (ValueTest::Whole(set), Some(Bounds::Whole(low, high))) => {
                (set.any(low, high), set.all(low, high))
            }
            (ValueTest::Bytes(set), Some(Bounds::Bytes(low, high))) => {
                (set.any(low.as_slice(), high.as_slice()), set.all(low.as_slice(), high.as_slice()))
            }
            (ValueTest::Like { pattern, negated: false }, Some(Bounds::Bytes(low, high))) => {
                let start = prefix(pattern);
                // The bounds, truncated to the length of the prefix, compare with it as all values between
                // them do.
                let cut = |bound: &[u8]| bound.get(..start.len()).unwrap_or(bound).to_vec();
                (cut(low) <= start && start <= cut(high), false)
            }
            _ => (true, false),
        };
        Outlook { some, all: all && self.nulls == Nulls::None }
    }
}

impl Chunk<'_> {
    fn known(&self, footer: &Footer) -> Known {
        let optional = self.element.max_def() > 0;
        let unknown = if optional { Nulls::Maybe } else { Nulls::None };
        let Ok(Some(statistics)) = self.chunk.statistics() else {
            return Known { bounds: None, nulls: unknown };
        };
        let nulls = match statistics.null_count {
            Some(0) => Nulls::None,
            Some(count) if optional && count == self.chunk.num_values() => Nulls::All,
            _ => unknown,
        };
        let bounds = match self.bounds_in_order(footer, &statistics) {
            Some((low, high)) => self.bounds(low, high, statistics.nan_count),
            None => None,
        };
        Known { bounds, nulls }
    }

    /// Whether the file declares that its bounds use the order of the column's type.
    fn is_ordered(&self, footer: &Footer) -> bool {
        let order = footer.column_orders().and_then(|orders| orders.get(self.chunk.leaf()));
        matches!(order, Some(ColumnOrder::TypeOrder | ColumnOrder::Ieee754TotalOrder))
    }

    fn bounds_in_order<'a>(
        &self,
        footer: &Footer,
        statistics: &Statistics<'a>,
    ) -> Option<(&'a [u8], &'a [u8])> {
        if self.is_ordered(footer)
            && let Some(pair) = statistics.min_value.zip(statistics.max_value)
        {
            return Some(pair);
        }
        // The old bounds use signed comparison, which is valid for signed numbers only.
        let bytes = matches!(
            self.element.physical_type()?,
            PhysicalType::ByteArray | PhysicalType::FixedLenByteArray | PhysicalType::Int96
        );
        (!bytes && !self.is_unsigned()).then(|| statistics.min.zip(statistics.max))?
    }

    fn is_unsigned(&self) -> bool {
        use ConvertedType::{UInt8, UInt16, UInt32, UInt64};
        matches!(self.element.logical_type(), Some(LogicalType::Integer { is_signed: false, .. }))
            || matches!(self.element.converted_type(), Some(UInt8 | UInt16 | UInt32 | UInt64))
    }

    fn bounds(&self, low: &[u8], high: &[u8], nans: Option<i64>) -> Option<Bounds> {
        if domain(self.data_type)? == Domain::Bytes {
            let same_order = matches!(
                self.element.physical_type()?,
                PhysicalType::ByteArray | PhysicalType::FixedLenByteArray
            );
            return (same_order && low <= high).then(|| Bounds::Bytes(low.to_vec(), high.to_vec()));
        }
        let (low, mut high) = (self.whole(low)?, self.whole(high)?);
        if low > high {
            return None;
        }
        if nans != Some(0) {
            high = match self.data_type {
                DataType::Float16 | DataType::Float32 => order_of_f32(f32::NAN).into(),
                DataType::Float64 => order_of_f64(f64::NAN).into(),
                _ => high,
            };
        }
        Some(Bounds::Whole(low, high))
    }

    /// Returns a bound as an integer, if it has the type that the column is read as.
    fn whole(&self, bytes: &[u8]) -> Option<i128> {
        use DataType::{
            Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64,
            Time32, Time64, Timestamp,
        };
        let physical = self.element.physical_type()?;
        let integer = || match physical {
            PhysicalType::Int32 => Some(i128::from(i32::from_le_bytes(bytes.try_into().ok()?))),
            PhysicalType::Int64 => Some(i128::from(i64::from_le_bytes(bytes.try_into().ok()?))),
            _ => None,
        };
        match self.data_type {
            Boolean => match (physical, bytes) {
                (PhysicalType::Boolean, [byte]) => Some(i128::from(*byte != 0)),
                _ => None,
            },
            Float16 => {
                let value = f16::from_le_bytes(bytes.try_into().ok()?);
                (!value.is_nan()).then(|| order_of_f32(value.to_f32()).into())
            }
            Float32 => {
                let value = f32::from_le_bytes(bytes.try_into().ok()?);
                (!value.is_nan() && physical == PhysicalType::Float).then(|| order_of_f32(value).into())
            }
            Float64 => {
                let value = f64::from_le_bytes(bytes.try_into().ok()?);
                (!value.is_nan() && physical == PhysicalType::Double).then(|| order_of_f64(value).into())
            }
            Date32 => integer(),
            Date64 => match physical {
                PhysicalType::Int32 => integer().map(|days| days * 86_400_000),
                _ => integer(),
            },
            Time32(unit) | Time64(unit) | Timestamp(unit, _) => {
                integer().filter(|_| self.unit() == Some(*unit))
            }
            Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
                let stored = match self.element.logical_type() {
                    Some(LogicalType::Decimal { scale, .. }) => Some(*scale),
                    _ => self.element.scale(),
                };
                let value = match physical {
                    PhysicalType::ByteArray | PhysicalType::FixedLenByteArray => big_endian(bytes),
                    _ => integer(),
                };
                value.filter(|_| stored.unwrap_or(0) == i32::from(*scale))
            }
            unsigned if unsigned.is_unsigned_integer() => match physical {
                PhysicalType::Int32 => integer().map(|value| i128::from(value as u32)),
                _ => integer().map(|value| i128::from(value as u64)),
            }
            .filter(|_| self.is_unsigned()),
            signed if signed.is_signed_integer() => integer().filter(|_| !self.is_unsigned()),
            _ => None,
        }
    }

    /// Returns the unit of stored timestamps and times.
    fn unit(&self) -> Option<TimeUnit> {
        use sawmill_footer::TimeUnit::{Micros, Millis, Nanos};
        match (self.element.logical_type(), self.element.converted_type()) {
            (Some(LogicalType::Time { unit, .. } | LogicalType::Timestamp { unit, .. }), _) => match unit {
                Millis => Some(TimeUnit::Millisecond),
                Micros => Some(TimeUnit::Microsecond),
                Nanos => Some(TimeUnit::Nanosecond),
                _ => None,
            },
            (_, Some(ConvertedType::TimeMillis | ConvertedType::TimestampMillis)) => {
                Some(TimeUnit::Millisecond)
            }
            (_, Some(ConvertedType::TimeMicros | ConvertedType::TimestampMicros)) => {
                Some(TimeUnit::Microsecond)
            }
            _ => None,
        }
    }

    /// Returns the chunk's pages: the first row of each, and the bounds of its values. `None` if the
    /// file does not have a page index, or an inconsistent one.
    fn pages(&self, footer: &Footer, file: &dyn RangeReader, rows: u64) -> Option<Pages> {
        let places: OffsetIndex = self.chunk.read_offset_index(file).ok()??;
        let index: ColumnIndex = self.chunk.read_column_index(file).ok()??;
        let mut starts: Vec<u64> = Vec::with_capacity(places.page_locations().len() + 1);
        for place in places.page_locations() {
            starts.push(u64::try_from(place.first_row_index).ok()?);
        }
        starts.push(rows);
        let ordered = starts.first() == Some(&0) && starts.is_sorted();
        if !ordered || starts.len() != index.num_pages() + 1 {
            return None;
        }
        let optional = self.element.max_def() > 0;
        let known = (0..index.num_pages()).map(|page| {
            let count = index.null_counts().and_then(|counts| counts.get(page));
            let nulls = match count {
                _ if optional && index.is_null_page(page) == Some(true) => Nulls::All,
                Some(0) => Nulls::None,
                _ if optional => Nulls::Maybe,
                _ => Nulls::None,
            };
            let nans = index.nan_counts().and_then(|counts| counts.get(page)).copied();
            let pair = index.min_value(page).zip(index.max_value(page));
            let pair = pair.filter(|_| nulls != Nulls::All && self.is_ordered(footer));
            Known { bounds: pair.and_then(|(low, high)| self.bounds(low, high, nans)), nulls }
        });
        let known = known.collect();
        Some(Pages { starts, known })
    }
}

struct Pages {
    /// The first row of each page, then the number of rows.
    starts: Vec<u64>,
    known: Vec<Known>,
}

/// Returns the rows of a row group that may pass, by the page indexes of the condition's columns.
pub(crate) fn pages(
    test: &RowTest,
    footer: &Footer,
    group: RowGroup<'_>,
    file: &dyn RangeReader,
) -> PagePlan {
    let total = u64::try_from(group.num_rows()).unwrap_or(0);
    let indexes: Vec<Option<Pages>> = chunks(test, footer, group)
        .into_iter()
        .map(|chunk| chunk.and_then(|chunk| chunk.pages(footer, file, total)))
        .collect();
    let rows = candidates(&test.test, &indexes, total);
    let (mut pages, mut pruned) = (0, 0);
    for index in indexes.iter().flatten() {
        pages += index.known.len();
        let untouched = |page: &[u64]| !rows.iter().any(|rows| rows.start < page[1] && page[0] < rows.end);
        pruned += index.starts.windows(2).filter(|page| untouched(page)).count();
    }
    PagePlan { rows, pages, pruned }
}

fn candidates(test: &Test, indexes: &[Option<Pages>], total: u64) -> Vec<Range<u64>> {
    let everything = || vec![Range { start: 0, end: total }];
    match test {
        Test::All(tests) => tests
            .iter()
            .fold(everything(), |rows, test| intersection(&rows, &candidates(test, indexes, total))),
        Test::Any(tests) => {
            let mut rows: Vec<_> = tests.iter().flat_map(|test| candidates(test, indexes, total)).collect();
            rows.sort_unstable_by_key(|rows| rows.start);
            merged(rows)
        }
        Test::Value(column, test) => match indexes.get(*column) {
            Some(Some(pages)) => {
                let pairs = pages.starts.windows(2).zip(&pages.known);
                let passing = pairs.filter(|(_, known)| known.outlook(test).some);
                merged(passing.map(|(page, _)| page[0]..page[1]).collect())
            }
            _ => everything(),
        },
    }
}

/// Merges ranges, given in ascending order of their starts, that touch or overlap.
fn merged(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Returns the rows that are in both lists of ranges.
pub(crate) fn intersection(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut rows = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let common = x.start.max(y.start)..x.end.min(y.end);
        if !common.is_empty() {
            rows.push(common);
        }
        if x.end <= y.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    rows
}

/// Returns a big-endian integer of any length in two's complement.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let fill = if negative { 0xff } else { 0 };
    let (beyond, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut value = [fill; 16];
    value[16 - low.len()..].copy_from_slice(low);
    let value = i128::from_be_bytes(value);
    // Bytes beyond sixteen may only repeat the sign.
    (beyond.iter().all(|byte| *byte == fill) && (value < 0) == negative).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_endian_integers_of_any_length() {
        assert_eq!(big_endian(&[0xff]), Some(-1));
        assert_eq!(big_endian(&[1, 0]), Some(256));
        assert_eq!(big_endian(&[0; 20]), Some(0));
        assert_eq!(big_endian(&[1; 17]), None);
        assert_eq!(big_endian(&[]), None);
    }

    #[test]
    fn ranges_are_merged_and_intersected() {
        assert_eq!(merged(vec![0..2, 2..5, 7..7, 8..9]), [0..5, 8..9]);
        assert_eq!(intersection(&[0..5, 8..12], &[3..9, 11..20]), [3..5, 8..9, 11..12]);
    }
}
