//! Finds the page indexes of all decoded chunks through the footer: a second walk over chunks with known offsets,
//! which starts at their statistics.

use std::ops::Range;

use crate::chunk::column_chunk::ColumnChunk;
use crate::chunk::rows::{STATISTICS_NONE, STATISTICS_UNKNOWN};
use crate::decode::usual;
use crate::error::Result;
use crate::footer::Footer;
use crate::matching::kernel::Method;

/// Where a chunk's page indexes are in the file: offset and length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Location {
    pub offset_index: Option<(u64, u32)>,
    pub column_index: Option<(u64, u32)>,
}

/// Calls `found` with the locations of all wanted chunks, each with its row, by row group and then by column.
///
/// # Errors
///
/// A value is malformed or negative; or `found` returns an error.
pub(crate) fn each(
    footer: &Footer,
    wanted: impl Fn(usize, usize) -> bool,
    mut found: impl FnMut(usize, Location) -> Result<()>,
) -> Result<()> {
    for group in footer.row_groups() {
        for chunk in group.columns().filter(|chunk| wanted(group.position(), chunk.position())) {
            let location = match usual(&chunk) {
                Some(location) => location,
                None => walked(&chunk)?,
            };
            found(chunk.row, location)?;
        }
    }
    Ok(())
}

/// The location by the quick walk, from the chunk's statistics on if their place is known.
#[inline(always)]
fn usual(chunk: &ColumnChunk<'_>) -> Option<Location> {
    let footer = chunk.group.footer;
    if footer.method() == Method::Scalar {
        return None;
    }
    let bytes = footer.bytes.as_slice();
    let (at, place) = footer.decoded.rows.statistics(chunk.row);
    let after = match place {
        STATISTICS_NONE | STATISTICS_UNKNOWN => None,
        place => usual::page_indexes_after(bytes, at, place.into()),
    };
    let (values, stated) = after.or_else(|| usual::page_indexes(bytes, at))?;
    location(values, stated)
}

/// The location from the numbers that are stated; `None` if only the other walk can judge one of them.
#[inline(always)]
fn location([offset, length, column_offset, column_length]: [i64; 4], stated: u8) -> Option<Location> {
    let index = |both: u8, offset: i64, length: i64| -> Option<Option<(u64, u32)>> {
        if stated & both != both {
            return Some(None);
        }
        let length = i32::try_from(length).ok()?;
        Some(Some((u64::try_from(offset).ok()?, u32::try_from(length).ok()?)))
    };
    Some(Location {
        offset_index: index(0b0011, offset, length)?,
        column_index: index(0b1100, column_offset, column_length)?,
    })
}

fn walked(chunk: &ColumnChunk<'_>) -> Result<Location> {
    let found = chunk.locations()?;
    let place =
        |range: Option<Range<u64>>| range.map(|range| (range.start, (range.end - range.start) as u32));
    let offset_index =
        chunk.index_range("offset_index", found.offset_index_offset, found.offset_index_length)?;
    let column_index =
        chunk.index_range("column_index", found.column_index_offset, found.column_index_length)?;
    Ok(Location { offset_index: place(offset_index), column_index: place(column_index) })
}
