//! Statistics of column chunks: bounds, counts, histograms, bounding boxes. They are decoded on demand;
//! bounds are slices of the footer.

use crate::error::Fault;
use crate::schema::enums::{Encoding, PageType};
use crate::thrift::cursor::{
    BINARY, Cursor, DOUBLE, FALSE, I32, I64, LIST, STOP, STRUCT, Step, TRUE, each_field,
};
use crate::thrift::varint::{integer, word};

/// Bounds and counts of a column chunk (`Statistics`), under the format's own names.
///
/// Bounds are PLAIN-encoded values (byte arrays without a length). Unless `is_*_exact` says otherwise, they
/// may be truncated or rounded and need not occur in the column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics<'a> {
    /// The old upper bound, in signed order. Deprecated.
    pub max: Option<&'a [u8]>,
    /// The old lower bound, in signed order. Deprecated.
    pub min: Option<&'a [u8]>,
    /// The number of nulls; `None` means unknown.
    pub null_count: Option<i64>,
    /// The number of distinct values.
    pub distinct_count: Option<i64>,
    /// The upper bound in the column's order.
    pub max_value: Option<&'a [u8]>,
    /// The lower bound in the column's order.
    pub min_value: Option<&'a [u8]>,
    /// Whether `max_value` occurs in the column.
    pub is_max_value_exact: Option<bool>,
    /// Whether `min_value` occurs in the column.
    pub is_min_value_exact: Option<bool>,
    /// The number of NaNs of a floating-point column; `None` means unknown.
    pub nan_count: Option<i64>,
}

/// Sizes and level histograms of a column chunk (`SizeStatistics`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SizeStatistics {
    /// The total size of all byte arrays in bytes, without their lengths.
    pub unencoded_byte_array_data_bytes: Option<i64>,
    /// How often each repetition level occurs.
    pub repetition_level_histogram: Option<Vec<i64>>,
    /// How often each definition level occurs.
    pub definition_level_histogram: Option<Vec<i64>>,
}

/// The number of pages of one type with one encoding (`PageEncodingStats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageEncodingStats {
    /// The page type.
    pub page_type: PageType,
    /// The encoding.
    pub encoding: Encoding,
    /// The number of such pages.
    pub count: i32,
}

/// The bounding box of all geometries in a column chunk (`BoundingBox`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BoundingBox {
    /// Lowest x.
    pub xmin: f64,
    /// Highest x.
    pub xmax: f64,
    /// Lowest y.
    pub ymin: f64,
    /// Highest y.
    pub ymax: f64,
    /// Lowest z.
    pub zmin: Option<f64>,
    /// Highest z.
    pub zmax: Option<f64>,
    /// Lowest measure.
    pub mmin: Option<f64>,
    /// Highest measure.
    pub mmax: Option<f64>,
}

/// Statistics of a geometry or geography column chunk (`GeospatialStatistics`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GeospatialStatistics {
    /// The bounding box of all values.
    pub bbox: Option<BoundingBox>,
    /// The well-known-binary codes of the geometry types that occur; empty if unknown.
    pub geospatial_types: Option<Vec<i32>>,
}

/// Decodes statistics.
#[inline]
pub(crate) fn statistics<'a>(cursor: &mut Cursor<'a>) -> Step<Statistics<'a>> {
    match usual(cursor.bytes, cursor.at) {
        Some((found, len)) => {
            cursor.at += len;
            Ok(found)
        }
        None => any(cursor),
    }
}

/// The window size that most statistics fit into, in bytes.
const WINDOW: usize = 256;

/// The statistics at `at` and their length, if they have the usual form.
#[inline(always)]
pub(crate) fn usual(bytes: &[u8], at: usize) -> Option<(Statistics<'_>, usize)> {
    usual_in(bytes.get(at..)?.first_chunk()?)
}

/// Field headers with a delta of one, for a binary field; the next two are for an i64 and for flags.
const NEXT_BINARY: u8 = 0x18;
const NEXT_I64: u8 = 0x16;
const NEXT_TRUE: u8 = 0x11;
const NEXT_FALSE: u8 = 0x12;
/// The header of the null count if no deprecated bounds precede it.
const FIRST_NULL_COUNT: u8 = 0x36;

/// Decodes statistics in the usual form: all within a window, fields in ascending order, bounds in pairs with
/// one-byte lengths. Returns `None` for any other form.
#[inline(always)]
fn usual_in(window: &[u8; WINDOW]) -> Option<(Statistics<'_>, usize)> {
    // Kept in registers until everything is known: writing the struct twice costs as much as decoding it.
    let (mut max, mut min, mut max_value, mut min_value) = (None, None, None, None);
    let (mut null_count, mut distinct_count) = (None, None);
    let (mut is_max_value_exact, mut is_min_value_exact) = (None, None);
    // The bound whose header is at an offset, and the offset after it.
    let bound = |at: usize| {
        let start = at + 2;
        // A two-byte length starts with a byte of at least 0x80, beyond or close to the window's end.
        let end = start + usize::from(*window.get(at + 1).filter(|&&len| len < 0x80)?);
        Some((window.get(start..end)?, end))
    };
    let is = |at: usize, header: u8| window.get(at) == Some(&header);
    let mut at = 0;
    let old = is(at, NEXT_BINARY);
    if old {
        let ([upper, lower], next) = pair(bound, is, at)?;
        (max, min, at) = (Some(upper), Some(lower), next);
    }
    // The field id delta from the previous field to the upper bound.
    let mut to_bounds = if old { 3 } else { 5 };
    if is(at, if old { NEXT_I64 } else { FIRST_NULL_COUNT }) {
        let (value, next) = count(window, at + 1)?;
        (null_count, at, to_bounds) = (Some(value), next, 2);
        if is(at, NEXT_I64) {
            let (value, next) = count(window, at + 1)?;
            (distinct_count, at, to_bounds) = (Some(value), next, 1);
        }
    }
    if is(at, to_bounds << 4 | BINARY) {
        let ([upper, lower], next) = pair(bound, is, at)?;
        (max_value, min_value, at) = (Some(upper), Some(lower), next);
        let flag = |at: usize| match *window.get(at)? {
            NEXT_TRUE => Some(true),
            NEXT_FALSE => Some(false),
            _ => None,
        };
        if let Some(exact) = flag(at) {
            is_max_value_exact = Some(exact);
            is_min_value_exact = Some(flag(at + 1)?);
            at += 2;
        }
    }
    let found = Statistics {
        max,
        min,
        null_count,
        distinct_count,
        max_value,
        min_value,
        is_max_value_exact,
        is_min_value_exact,
        nan_count: None,
    };
    is(at, STOP).then_some((found, at + 1))
}

/// Two adjacent bounds, and the offset after them.
#[inline(always)]
fn pair<'a>(
    bound: impl Fn(usize) -> Option<(&'a [u8], usize)>,
    is: impl Fn(usize, u8) -> bool,
    at: usize,
) -> Option<([&'a [u8]; 2], usize)> {
    let (upper, at) = bound(at)?;
    if !is(at, NEXT_BINARY) {
        return None;
    }
    let (lower, at) = bound(at)?;
    Some(([upper, lower], at))
}

/// The i64 at an offset, and the offset after it.
#[inline(always)]
fn count(window: &[u8; WINDOW], at: usize) -> Option<(i64, usize)> {
    // Only the general decoder can judge varints of more than eight bytes.
    let (value, len) = integer(word(window, at)?)?;
    Some((value, at + len))
}

/// Decodes statistics in any form.
#[inline(never)]
pub(crate) fn any<'a>(cursor: &mut Cursor<'a>) -> Step<Statistics<'a>> {
    let mut found = Statistics::default();
    each_field!(cursor, {
        (1, BINARY) => found.max = Some(cursor.binary()?),
        (2, BINARY) => found.min = Some(cursor.binary()?),
        (3, I64) => found.null_count = Some(cursor.integer()?),
        (4, I64) => found.distinct_count = Some(cursor.integer()?),
        (5, BINARY) => found.max_value = Some(cursor.binary()?),
        (6, BINARY) => found.min_value = Some(cursor.binary()?),
        (7, wire @ (TRUE | FALSE)) => found.is_max_value_exact = Some(wire == TRUE),
        (8, wire @ (TRUE | FALSE)) => found.is_min_value_exact = Some(wire == TRUE),
        (9, I64) => found.nan_count = Some(cursor.integer()?),
    });
    Ok(found)
}

pub(crate) fn size_statistics(cursor: &mut Cursor<'_>) -> Step<SizeStatistics> {
    let mut found = SizeStatistics::default();
    each_field!(cursor, {
        (1, I64) => found.unencoded_byte_array_data_bytes = Some(cursor.integer()?),
        (2, LIST) => found.repetition_level_histogram = Some(integers(cursor)?),
        (3, LIST) => found.definition_level_histogram = Some(integers(cursor)?),
    });
    Ok(found)
}

/// A list of i64.
pub(crate) fn integers(cursor: &mut Cursor<'_>) -> Step<Vec<i64>> {
    let count = cursor.list_of(I64, "a list of i64")?;
    (0..count).map(|_| cursor.integer()).collect()
}

pub(crate) fn encoding_stats(cursor: &mut Cursor<'_>) -> Step<Vec<PageEncodingStats>> {
    let count = cursor.list_of(STRUCT, "a list of structs")?;
    (0..count).map(|_| page_encoding_stats(cursor)).collect()
}

fn page_encoding_stats(cursor: &mut Cursor<'_>) -> Step<PageEncodingStats> {
    let start = cursor.at;
    let (mut page_type, mut encoding, mut count) = (None, None, None);
    each_field!(cursor, {
        (1, I32) => page_type = Some(PageType::from_number(cursor.i32()?)),
        (2, I32) => encoding = Some(Encoding::from_number(cursor.i32()?)),
        (3, I32) => count = Some(cursor.i32()?),
    });
    Ok(PageEncodingStats {
        page_type: page_type.ok_or(Fault::missing(start, "page_type"))?,
        encoding: encoding.ok_or(Fault::missing(start, "encoding"))?,
        count: count.ok_or(Fault::missing(start, "count"))?,
    })
}

pub(crate) fn geospatial_statistics(cursor: &mut Cursor<'_>) -> Step<GeospatialStatistics> {
    let mut found = GeospatialStatistics::default();
    each_field!(cursor, {
        (1, STRUCT) => found.bbox = Some(bounding_box(cursor)?),
        (2, LIST) => {
            let count = cursor.list_of(I32, "a list of i32")?;
            found.geospatial_types = Some((0..count).map(|_| cursor.i32()).collect::<Step<_>>()?);
        },
    });
    Ok(found)
}

fn bounding_box(cursor: &mut Cursor<'_>) -> Step<BoundingBox> {
    let start = cursor.at;
    let mut found = [None; 8];
    each_field!(cursor, {
        (id @ 1..=8, DOUBLE) => found[id as usize - 1] = Some(cursor.double()?),
    });
    let [xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax] = found;
    Ok(BoundingBox {
        xmin: xmin.ok_or(Fault::missing(start, "xmin"))?,
        xmax: xmax.ok_or(Fault::missing(start, "xmax"))?,
        ymin: ymin.ok_or(Fault::missing(start, "ymin"))?,
        ymax: ymax.ok_or(Fault::missing(start, "ymax"))?,
        zmin,
        zmax,
        mmin,
        mmax,
    })
}
