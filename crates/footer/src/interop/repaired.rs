//! Column chunks for the `parquet` crate, without the fields that it refuses or stumbles over although the pages can be
//! read: one wrong number costs a fact about a column, not its file.
//!
//! The numbers that locate pages come from the chunk's row. Of the optional fields, only the well-formed and possible
//! ones are written again.

use crate::chunk::column_chunk::ColumnChunk;
use crate::chunk::statistics::{self, PageEncodingStats, SizeStatistics, Statistics};
use crate::decode::file_metadata::has_dictionary;
use crate::schema::enums::PhysicalType;
use crate::thrift::cursor::{BINARY, Cursor, I32, I64, LIST, STRUCT, Step};
use crate::thrift_writer::ThriftWriter;

/// Writes the chunk's struct.
pub(crate) fn write(chunk: &ColumnChunk<'_>, writer: &mut ThriftWriter) {
    let mut kept = Optional::default();
    let mut cursor = Cursor::new(chunk.row_group().footer.bytes(), chunk.footer_offset());
    // The scan has walked the same bytes; an error here only leaves values out.
    let _ = kept.chunk(&mut cursor);
    writer.begin_element();
    if let Some(path) = kept.file_path {
        writer.binary(1, path.as_bytes());
    }
    writer.i64(2, kept.file_offset);
    writer.begin(3);
    writer.i32(1, chunk.physical_type().number());
    // Readers find the encoding of a page in its header.
    let encodings: Vec<_> = chunk.encodings().iter().filter(|encoding| encoding.is_known()).collect();
    writer.list(2, I32, encodings.len() as u64);
    encodings.iter().for_each(|encoding| writer.integer(encoding.number().into()));
    writer.list(3, BINARY, 0);
    writer.i32(4, chunk.codec().number());
    writer.i64(5, chunk.known_values());
    let range = chunk.byte_range();
    let compressed = i64::try_from(range.end - range.start).unwrap_or(i64::MAX);
    // Page headers that the footer left out of its sizes; an unknown size says nothing about them.
    let stated = chunk.compressed_size();
    let missing = if stated > 0 { compressed.saturating_sub(stated).max(0) } else { 0 };
    writer.i64(6, chunk.uncompressed_size().saturating_add(missing));
    writer.i64(7, compressed);
    writer.i64(9, chunk.data_page_offset());
    if has_dictionary(&chunk.chunk()) {
        writer.i64(11, chunk.dictionary_page_offset().unwrap_or_default());
    }
    kept.write_details(chunk.physical_type(), writer);
    writer.stop();
    for (field, place) in [(4, kept.offset_index), (6, kept.column_index)] {
        if let (Some(offset @ 0..), Some(length @ 0..)) = place {
            writer.i64(field, offset);
            writer.i32(field + 1, length);
        }
    }
    writer.stop();
}

/// The well-formed optional fields. A field whose type differs from the format's is skipped.
#[derive(Default)]
struct Optional<'a> {
    file_path: Option<&'a str>,
    file_offset: i64,
    offset_index: (Option<i64>, Option<i32>),
    column_index: (Option<i64>, Option<i32>),
    statistics: Option<Statistics<'a>>,
    encoding_stats: Option<Vec<PageEncodingStats>>,
    bloom_filter: (Option<i64>, Option<i32>),
    sizes: Option<SizeStatistics>,
    /// The bytes of the geospatial statistics.
    geospatial: Option<&'a [u8]>,
}

impl<'a> Optional<'a> {
    fn chunk(&mut self, cursor: &mut Cursor<'a>) -> Step<()> {
        let mut last = 0;
        while let Some(field) = cursor.next_field(&mut last)? {
            let mut value = *cursor;
            match (field.id, field.wire) {
                (1, BINARY) => self.file_path = value.text().ok(),
                (2, I64) => self.file_offset = value.integer()?,
                (3, STRUCT) => self.meta_data(&mut value)?,
                (4, I64) => self.offset_index.0 = Some(value.integer()?),
                (5, I32) => self.offset_index.1 = Some(value.i32()?),
                (6, I64) => self.column_index.0 = Some(value.integer()?),
                (7, I32) => self.column_index.1 = Some(value.i32()?),
                _ => {}
            }
            cursor.skip(field.wire)?;
        }
        Ok(())
    }

    fn meta_data(&mut self, cursor: &mut Cursor<'a>) -> Step<()> {
        let mut last = 0;
        while let Some(field) = cursor.next_field(&mut last)? {
            let mut value = *cursor;
            let start = cursor.at;
            cursor.skip(field.wire)?;
            match (field.id, field.wire) {
                (12, STRUCT) if self.statistics.is_none() => {
                    self.statistics = statistics::any(&mut value).ok();
                }
                (13, LIST) => self.encoding_stats = statistics::encoding_stats(&mut value).ok(),
                (14, I64) => self.bloom_filter.0 = Some(value.integer()?),
                (15, I32) => self.bloom_filter.1 = Some(value.i32()?),
                (16, STRUCT) => self.sizes = statistics::size_statistics(&mut value).ok(),
                (17, STRUCT) if statistics::geospatial_statistics(&mut value).is_ok() => {
                    self.geospatial = cursor.bytes.get(start..cursor.at);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write_details(&self, physical_type: PhysicalType, writer: &mut ThriftWriter) {
        if let Some(found) = &self.statistics {
            write_statistics(found, physical_type, writer);
        }
        let known = |of: &&Vec<PageEncodingStats>| {
            of.iter().all(|stats| stats.page_type.is_known() && stats.encoding.is_known())
        };
        if let Some(all) = self.encoding_stats.as_ref().filter(known) {
            writer.list(13, STRUCT, all.len() as u64);
            for stats in all {
                writer.begin_element();
                writer.i32(1, stats.page_type.number());
                writer.i32(2, stats.encoding.number());
                writer.i32(3, stats.count);
                writer.stop();
            }
        }
        if let Some(offset @ 0..) = self.bloom_filter.0 {
            writer.i64(14, offset);
            if let Some(length @ 0..) = self.bloom_filter.1 {
                writer.i32(15, length);
            }
        }
        if let Some(sizes) = &self.sizes {
            writer.begin(16);
            if let Some(bytes @ 0..) = sizes.unencoded_byte_array_data_bytes {
                writer.i64(1, bytes);
            }
            for (field, levels) in
                [(2, &sizes.repetition_level_histogram), (3, &sizes.definition_level_histogram)]
            {
                let Some(levels) = levels.as_ref().filter(|of| of.iter().all(|&count| count >= 0)) else {
                    continue;
                };
                writer.list(field, I64, levels.len() as u64);
                levels.iter().for_each(|&count| writer.integer(count));
            }
            writer.stop();
        }
        if let Some(geospatial) = self.geospatial {
            writer.field(17, STRUCT);
            writer.raw(geospatial);
        }
    }
}

/// Writes the possible values: counts that are not negative, bounds of their type's length.
fn write_statistics(found: &Statistics<'_>, physical_type: PhysicalType, writer: &mut ThriftWriter) {
    let width = match physical_type {
        PhysicalType::Boolean => Some(1),
        other => other.width(None),
    };
    writer.begin(12);
    let bound = |writer: &mut ThriftWriter, field, bound: Option<&[u8]>| {
        if let Some(bound) = bound.filter(|bound| width.is_none_or(|width| bound.len() == width)) {
            writer.binary(field, bound);
        }
    };
    let count = |writer: &mut ThriftWriter, field, count: Option<i64>| {
        if let Some(count @ 0..) = count {
            writer.i64(field, count);
        }
    };
    bound(writer, 1, found.max);
    bound(writer, 2, found.min);
    count(writer, 3, found.null_count);
    count(writer, 4, found.distinct_count);
    bound(writer, 5, found.max_value);
    bound(writer, 6, found.min_value);
    for (field, exact) in [(7, found.is_max_value_exact), (8, found.is_min_value_exact)] {
        if let Some(exact) = exact {
            writer.bool(field, exact);
        }
    }
    count(writer, 9, found.nan_count);
    writer.stop();
}
