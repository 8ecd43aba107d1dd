//! Page indexes in the `parquet` crate's metadata: our reads, our decoder, and the crate's, which is given only
//! what ours has written.
//!
//! The crate reads one range from the first wanted index to the last, whatever is between them, and allocates
//! whatever length an index claims. Here only the wanted ones are read, neighbours together. What our decoder
//! makes of them is written one after the other, for the crate to decode; the offsets of a copy of the metadata
//! refer to that. An index that is damaged is left out. If the indexes are next to one another and none is damaged,
//! the crate decodes them as they are.

use std::io;
use std::ops::Range;

use super::parquet::basic::Type;
use super::parquet::errors::ParquetError;
use super::parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
    RowGroupMetaData,
};
use bytes::Bytes;

use super::metadata;
use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::memory::allocate;
use crate::open::source::RangeReader;
use crate::page_index::indexes::{ColumnIndex, OffsetIndex};
use crate::page_index::runs::{join, total};
use crate::schema::enums::BoundaryOrder;
use crate::thrift::cursor::{BINARY, FALSE, I64, STRUCT, TRUE};
use crate::thrift_writer::ThriftWriter;

/// Bytes after the indexes: the crate expects a file to be longer than they are.
const PADDING: usize = 16;

/// Which page indexes to add.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Both,
    OffsetIndexes,
}

/// A range of the file, and where its bytes stand among those that were read.
struct Part {
    range: Range<u64>,
    place: usize,
}

/// The metadata of these leaves with the page indexes of all its chunks.
///
/// # Errors
///
/// The footer cannot be converted, or bytes cannot be read.
pub(super) fn read<R: RangeReader + ?Sized>(
    footer: &Footer,
    leaves: Option<&[usize]>,
    wanted: Wanted,
    reader: &R,
) -> Result<ParquetMetaData> {
    let mut metadata = metadata::to_parquet(footer, leaves)?;
    let (parts, claimed) = parts(&metadata, wanted);
    let mut read = Read { bytes: bytes_of(footer, &parts, claimed, reader)?, parts };
    if let [part] = read.parts.as_slice()
        && wanted == Wanted::Both
        && read.are_sound(footer, &metadata)
    {
        let start = part.range.start;
        let mut bytes = std::mem::take(&mut read.bytes);
        bytes.extend_from_slice(&[0; PADDING]);
        let bytes = Bytes::from(bytes);
        match decode(metadata, wanted, &bytes, start) {
            Ok(decoded) => return Ok(decoded),
            Err(_) => {
                read.bytes = bytes.to_vec();
                metadata = metadata::to_parquet(footer, leaves)?;
            }
        }
    }
    let decoded = located(&metadata, wanted, &read)
        .and_then(|(located, written)| decode(located, wanted, &Bytes::from(written), 0));
    let decoded = decoded.map_err(|error| {
        let what = format!("the parquet crate rejects the page indexes: {error}");
        footer.name_error(Error::new(what).with_advice("convert the footer without them"))
    })?;
    let groups = metadata.into_builder().take_row_groups();
    Ok(decoded.into_builder().set_row_groups(groups).build())
}

/// Adds what the crate decodes of the page indexes in `bytes`, which start at this place of the file.
fn decode(
    metadata: ParquetMetaData,
    wanted: Wanted,
    bytes: &Bytes,
    start: u64,
) -> Result<ParquetMetaData, ParquetError> {
    let of_columns = if wanted == Wanted::Both { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
    let mut decoding = ParquetMetaDataReader::new_with_metadata(metadata)
        .with_column_index_policy(of_columns)
        .with_offset_index_policy(PageIndexPolicy::Optional);
    decoding.read_page_indexes_sized(bytes, start + bytes.len() as u64)?;
    decoding.finish()
}

/// The indexes of a chunk, as far as they are there and not damaged.
struct Indexes {
    column: Option<ColumnIndex>,
    offsets: Option<OffsetIndex>,
}

impl Indexes {
    /// Without those that do not fit the chunk.
    fn fitting(self, chunk: &ColumnChunkMetaData, rows: i64) -> Self {
        let offsets = self.offsets.filter(|index| is_within(index, chunk, rows));
        let pages = offsets.as_ref().map(|index| index.page_locations().len());
        let column = self
            .column
            .filter(|index| pages.is_none_or(|pages| pages == index.num_pages()) && has_bounds(index, chunk));
        Self { column, offsets }
    }
}

/// The parts, and their bytes one after the other.
struct Read {
    parts: Vec<Part>,
    bytes: Vec<u8>,
}

impl Read {
    fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let at = self.parts.partition_point(|part| part.range.start <= range.start).checked_sub(1)?;
        let part = self.parts.get(at)?;
        let start = part.place + (range.start - part.range.start) as usize;
        self.bytes.get(start..start + (range.end - range.start) as usize)
    }

    fn indexes(&self, chunk: &ColumnChunkMetaData, rows: i64, wanted: Wanted) -> Indexes {
        let [column, offsets] = ranges(chunk, wanted).map(|range| range.and_then(|range| self.get(range)));
        let offsets = offsets.and_then(|bytes| OffsetIndex::decode(bytes).ok());
        let column = column.and_then(|bytes| ColumnIndex::decode(bytes).ok());
        Indexes { column, offsets }.fitting(chunk, rows)
    }

    /// Whether the metadata has all decoded columns, no index is damaged, and the crate can use each as it is.
    fn are_sound(&self, footer: &Footer, metadata: &ParquetMetaData) -> bool {
        let groups = metadata.row_groups();
        let columns = footer.num_columns();
        if groups.iter().any(|group| group.num_columns() != columns) {
            return false;
        }
        let Ok(all) = footer.read_page_indexes(self) else { return false };
        groups.iter().enumerate().all(|(at, group)| {
            group.columns().iter().enumerate().all(|(place, chunk)| {
                let [column, offsets] = ranges(chunk, Wanted::Both);
                let found =
                    Indexes { column: all.column_index(at, place), offsets: all.offset_index(at, place) }
                        .fitting(chunk, group.num_rows());
                column.is_some() == found.column.is_some()
                    && offsets.is_some() == found.offsets.is_some()
                    && found.column.is_none_or(|index| is_usable(&index))
            })
        })
    }
}

impl RangeReader for Read {
    fn len(&self) -> io::Result<u64> {
        Ok(self.parts.last().map_or(0, |part| part.range.end))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.get(offset..offset.saturating_add(buffer.len() as u64));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The ranges of the chunk's column index and offset index.
fn ranges(chunk: &ColumnChunkMetaData, wanted: Wanted) -> [Option<Range<u64>>; 2] {
    let range = |offset: Option<i64>, length: Option<i32>| {
        let (start, length) = (u64::try_from(offset?).ok()?, u64::try_from(length?).ok()?);
        Some(start..start.saturating_add(length))
    };
    let of_columns = range(chunk.column_index_offset(), chunk.column_index_length());
    [
        of_columns.filter(|_| wanted == Wanted::Both),
        range(chunk.offset_index_offset(), chunk.offset_index_length()),
    ]
}

/// What to read: each byte once, neighbours in one range; and how long all indexes are together.
fn parts(metadata: &ParquetMetaData, wanted: Wanted) -> (Vec<Part>, u64) {
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let mut all: Vec<Range<u64>> = chunks.flat_map(|chunk| ranges(chunk, wanted)).flatten().collect();
    let claimed = total(&all);
    all.sort_unstable_by_key(|range| range.start);
    join(&mut all, 0);
    let mut end: usize = 0;
    let part = |range: Range<u64>| {
        let place = end;
        // Ranges that do not fit are rejected by the length of the file before they are read.
        end = end.saturating_add(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
        Part { place, range }
    };
    (all.into_iter().map(part).collect(), claimed)
}

/// The bytes of the parts, which hold indexes of `claimed` bytes together.
fn bytes_of<R: RangeReader + ?Sized>(
    footer: &Footer,
    parts: &[Part],
    claimed: u64,
    reader: &R,
) -> Result<Vec<u8>> {
    let reading = |error| footer.name_error(Error::io("reading the page indexes", &error));
    let file_len = reader.len().map_err(reading)?;
    let end = parts.last().map_or(0, |part| part.range.end);
    if end > file_len {
        return Err(footer.name_error(Error::new(format!(
            "expected page indexes within the file's {file_len} bytes, found some up to {end}"
        ))));
    }
    // The index of each chunk is decoded, even if several chunks name the same bytes.
    footer.may_read(claimed, file_len)?;
    let len = parts.last().map_or(0, |part| part.place + (part.range.end - part.range.start) as usize);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| footer.name_error(allocate::too_little("page indexes", len)))?;
    bytes.resize(len, 0);
    for part in parts {
        let len = (part.range.end - part.range.start) as usize;
        let Some(into) = bytes.get_mut(part.place..part.place + len) else { continue };
        reader.read_exact_at(part.range.start, into).map_err(reading)?;
    }
    Ok(bytes)
}

/// The metadata with nothing but the places of the page indexes among bytes that hold them as our decoder has read
/// them, and these bytes.
fn located(
    metadata: &ParquetMetaData,
    wanted: Wanted,
    read: &Read,
) -> Result<(ParquetMetaData, Vec<u8>), ParquetError> {
    let schema = metadata.file_metadata().schema_descr_ptr();
    let mut writer = ThriftWriter::new();
    let mut groups = Vec::with_capacity(metadata.num_row_groups());
    for group in metadata.row_groups() {
        let mut columns = Vec::with_capacity(group.num_columns());
        for chunk in group.columns() {
            let Indexes { column, offsets } = read.indexes(chunk, group.num_rows(), wanted);
            let column = column.and_then(|index| written(&mut writer, |writer| write_bounds(&index, writer)));
            let offsets =
                offsets.and_then(|index| written(&mut writer, |writer| write_places(&index, writer)));
            let located = ColumnChunkMetaData::builder(chunk.column_descr_ptr())
                .set_column_index_offset(column.map(|(offset, _)| offset))
                .set_column_index_length(column.map(|(_, length)| length))
                .set_offset_index_offset(offsets.map(|(offset, _)| offset))
                .set_offset_index_length(offsets.map(|(_, length)| length));
            columns.push(located.build()?);
        }
        groups.push(RowGroupMetaData::builder(schema.clone()).set_column_metadata(columns).build()?);
    }
    writer.raw(&[0; PADDING]);
    let located =
        ParquetMetaDataBuilder::new(metadata.file_metadata().clone()).set_row_groups(groups).build();
    Ok((located, writer.into_bytes()))
}

/// Where an index is that `write` writes, and its length.
fn written(writer: &mut ThriftWriter, write: impl FnOnce(&mut ThriftWriter)) -> Option<(i64, i32)> {
    let start = writer.bytes().len();
    writer.begin_element();
    write(writer);
    writer.stop();
    Some((i64::try_from(start).ok()?, i32::try_from(writer.bytes().len() - start).ok()?))
}

/// Whether the pages follow one another without a gap up to the end of the chunk, and their rows within the row group:
/// the crate subtracts these numbers from one another, and reads no byte of a page that an index leaves out.
fn is_within(index: &OffsetIndex, chunk: &ColumnChunkMetaData, rows: i64) -> bool {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let end = start.saturating_add(chunk.compressed_size());
    let (mut at, mut next_row) = (start, 0);
    let follow = index.page_locations().iter().enumerate().all(|(page, location)| {
        let is_next = if page == 0 {
            location.offset >= at && location.first_row_index == 0
        } else {
            location.offset == at && (next_row..rows).contains(&location.first_row_index)
        };
        at = location.offset.saturating_add(location.compressed_page_size.into());
        next_row = location.first_row_index.saturating_add(1);
        is_next && location.compressed_page_size >= 0
    });
    follow && at == end
}

/// Whether the bounds of all pages with values have the length of their type.
fn has_bounds(index: &ColumnIndex, chunk: &ColumnChunkMetaData) -> bool {
    let width = match chunk.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => return true,
    };
    let fits = |bound: Option<&[u8]>| bound.is_some_and(|bound| bound.len() == width);
    (0..index.num_pages()).all(|page| {
        index.is_null_page(page) == Some(true) || fits(index.min_value(page)) && fits(index.max_value(page))
    })
}

fn write_places(index: &OffsetIndex, writer: &mut ThriftWriter) {
    writer.list(1, STRUCT, index.page_locations().len() as u64);
    for location in index.page_locations() {
        writer.begin_element();
        writer.i64(1, location.offset);
        writer.i32(2, location.compressed_page_size);
        writer.i64(3, location.first_row_index);
        writer.stop();
    }
    write_numbers(2, index.unencoded_byte_array_data_bytes(), writer);
}

fn write_bounds(index: &ColumnIndex, writer: &mut ThriftWriter) {
    let pages = index.num_pages();
    writer.list(1, TRUE, pages as u64);
    for page in 0..pages {
        writer.raw(&[if index.is_null_page(page) == Some(true) { TRUE } else { FALSE }]);
    }
    writer.list(2, BINARY, pages as u64);
    (0..pages).for_each(|page| writer.bytes_value(index.min_value(page).unwrap_or_default()));
    writer.list(3, BINARY, pages as u64);
    (0..pages).for_each(|page| writer.bytes_value(index.max_value(page).unwrap_or_default()));
    let order = index.boundary_order();
    writer.i32(4, if order.is_known() { order.number() } else { BoundaryOrder::Unordered.number() });
    // One wrong number makes a list useless, not the bounds.
    for (field, numbers, fits) in lists(index) {
        write_numbers(field, numbers.filter(|_| fits), writer);
    }
}

/// The lists of numbers, each with its field and whether the crate can use it.
fn lists(index: &ColumnIndex) -> [(i16, Option<&[i64]>, bool); 4] {
    let pages = index.num_pages();
    let counts = |counts: Option<&[i64]>| counts.unwrap_or_default().iter().all(|&count| count >= 0);
    let histograms =
        |counts: Option<&[i64]>| counts.is_none_or(|counts| pages > 0 && counts.len().is_multiple_of(pages));
    let (nulls, nans) = (index.null_counts(), index.nan_counts());
    let (repetition, definition) = (index.repetition_level_histograms(), index.definition_level_histograms());
    [
        (5, nulls, counts(nulls)),
        (6, repetition, histograms(repetition)),
        (7, definition, histograms(definition)),
        (8, nans, counts(nans)),
    ]
}

/// Whether the crate can use the index as it is.
fn is_usable(index: &ColumnIndex) -> bool {
    index.boundary_order().is_known() && lists(index).iter().all(|(_, _, fits)| *fits)
}

fn write_numbers(field: i16, numbers: Option<&[i64]>, writer: &mut ThriftWriter) {
    let Some(numbers) = numbers else { return };
    writer.list(field, I64, numbers.len() as u64);
    numbers.iter().for_each(|&number| writer.integer(number));
}
