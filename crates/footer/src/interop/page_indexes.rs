//! Page indexes in the `parquet` crate's metadata: our reads, the crate's decoder.
//!
//! The crate reads one range from the first wanted index to the last, whatever is between them. Here only the
//! wanted ones are read, neighbours together. If they make up most of that range, the crate gets it with gaps
//! that were not read; else they stand one after the other in the bytes that the crate decodes, to which the
//! offsets of a copy of the metadata refer.

use std::ops::Range;

use super::parquet::errors::ParquetError;
use super::parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
    RowGroupMetaData,
};
use bytes::Bytes;

use crate::error::Error;
use crate::footer::Footer;
use crate::memory::allocate;
use crate::open::source::RangeReader;
use crate::page_index::runs::total;

/// Bytes after the indexes: the crate expects a file to be longer than they are.
const PADDING: usize = 16;

/// A range of the file, and where its bytes stand among those that were read.
struct Part {
    range: Range<u64>,
    place: usize,
}

/// Where the bytes of the parts stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    /// At their distance from the first, as in the file.
    AsInFile,
    /// One after the other.
    Packed,
}

/// Adds the page indexes of all chunks of the metadata.
///
/// # Errors
///
/// Bytes cannot be read, or the crate rejects an index.
pub(super) fn read<R: RangeReader + ?Sized>(
    footer: &Footer,
    metadata: ParquetMetaData,
    reader: &R,
) -> Result<ParquetMetaData, Error> {
    let (parts, places, claimed) = parts(&metadata);
    let bytes = bytes_of(footer, &parts, claimed, reader)?;
    let theirs = |error: ParquetError| {
        let what = format!("the parquet crate rejects the page indexes: {error}");
        footer.name_error(Error::new(what).with_advice("convert the footer without them"))
    };
    let decode = |metadata: ParquetMetaData, end: u64| {
        let mut decoding = ParquetMetaDataReader::new_with_metadata(metadata)
            .with_page_index_policy(PageIndexPolicy::Optional);
        decoding.read_page_indexes_sized(&Bytes::from(bytes), end + PADDING as u64)?;
        decoding.finish()
    };
    match places {
        Places::AsInFile => decode(metadata, parts.last().map_or(0, |part| part.range.end)).map_err(theirs),
        Places::Packed => {
            let end = bytes_end(&parts) as u64;
            let decoded =
                located(&metadata, &parts).and_then(|located| decode(located, end)).map_err(theirs)?;
            let groups = metadata.into_builder().take_row_groups();
            Ok(decoded.into_builder().set_row_groups(groups).build())
        }
    }
}

/// The ranges of the chunk's column index and offset index.
fn ranges(chunk: &ColumnChunkMetaData) -> [Option<Range<u64>>; 2] {
    let range = |offset: Option<i64>, length: Option<i32>| {
        let (start, length) = (u64::try_from(offset?).ok()?, u64::try_from(length?).ok()?);
        Some(start..start.saturating_add(length))
    };
    [
        range(chunk.column_index_offset(), chunk.column_index_length()),
        range(chunk.offset_index_offset(), chunk.offset_index_length()),
    ]
}

/// What to read: each byte once, neighbours in one range; and how long all indexes are together.
fn parts(metadata: &ParquetMetaData) -> (Vec<Part>, Places, u64) {
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let mut wanted: Vec<Range<u64>> = chunks.flat_map(ranges).flatten().collect();
    let claimed = total(&wanted);
    wanted.sort_unstable_by_key(|range| range.start);
    wanted.dedup_by(|next, range| {
        let adjoins = next.start <= range.end;
        range.end = if adjoins { range.end.max(next.end) } else { range.end };
        adjoins
    });
    let start = wanted.first().map_or(0, |range| range.start);
    let end = wanted.last().map_or(0, |range| range.end);
    let places = if total(&wanted) >= (end - start) / 2 { Places::AsInFile } else { Places::Packed };
    let mut packed = 0;
    let part = |range: Range<u64>| {
        let place = if places == Places::Packed { packed } else { range.start - start };
        packed += range.end - range.start;
        // Ranges that do not fit are rejected by the length of the file before they are read.
        Part { place: usize::try_from(place).unwrap_or(usize::MAX), range }
    };
    (wanted.into_iter().map(part).collect(), places, claimed)
}

/// Where the bytes of the last part end among those that are read.
fn bytes_end(parts: &[Part]) -> usize {
    parts.last().map_or(0, |part| part.place.saturating_add((part.range.end - part.range.start) as usize))
}

/// The bytes of the parts, which are those of indexes of `claimed` bytes together.
fn bytes_of<R: RangeReader + ?Sized>(
    footer: &Footer,
    parts: &[Part],
    claimed: u64,
    reader: &R,
) -> Result<Vec<u8>, Error> {
    let reading = |error| footer.name_error(Error::io("reading the page indexes", &error));
    let file_len = reader.len().map_err(reading)?;
    let end = parts.last().map_or(0, |part| part.range.end);
    if end > file_len {
        return Err(footer.name_error(Error::new(format!(
            "expected page indexes within the file's {file_len} bytes, found some up to {end}"
        ))));
    }
    // The crate decodes the index of each chunk, even if several chunks name the same bytes.
    footer.may_read(claimed, file_len)?;
    // At most twice what is read, and no byte is read twice: the file is at least half as long.
    let len = bytes_end(parts);
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len + PADDING)
        .map_err(|_| footer.name_error(allocate::too_little("page indexes", len)))?;
    bytes.resize(len + PADDING, 0);
    for part in parts {
        let len = (part.range.end - part.range.start) as usize;
        let Some(into) = bytes.get_mut(part.place..part.place + len) else { continue };
        reader.read_exact_at(part.range.start, into).map_err(reading)?;
    }
    Ok(bytes)
}

/// The metadata with nothing but the places of the page indexes among the bytes that were read.
fn located(metadata: &ParquetMetaData, parts: &[Part]) -> Result<ParquetMetaData, ParquetError> {
    let place = |range: Option<Range<u64>>| -> Option<(i64, i32)> {
        let range = range?;
        let part =
            parts.get(parts.partition_point(|part| part.range.start <= range.start).checked_sub(1)?)?;
        let place = part.place as u64 + (range.start - part.range.start);
        Some((i64::try_from(place).ok()?, i32::try_from(range.end - range.start).ok()?))
    };
    let mut groups = Vec::with_capacity(metadata.num_row_groups());
    for group in metadata.row_groups() {
        let mut columns = Vec::with_capacity(group.num_columns());
        for chunk in group.columns() {
            let (column_index, offset_index) = ranges(chunk).map(place).into();
            let located = ColumnChunkMetaData::builder(chunk.column_descr_ptr())
                .set_column_index_offset(column_index.map(|(offset, _)| offset))
                .set_column_index_length(column_index.map(|(_, length)| length))
                .set_offset_index_offset(offset_index.map(|(offset, _)| offset))
                .set_offset_index_length(offset_index.map(|(_, length)| length));
            columns.push(located.build()?);
        }
        let schema = metadata.file_metadata().schema_descr_ptr();
        groups.push(RowGroupMetaData::builder(schema).set_column_metadata(columns).build()?);
    }
    Ok(ParquetMetaDataBuilder::new(metadata.file_metadata().clone()).set_row_groups(groups).build())
}
