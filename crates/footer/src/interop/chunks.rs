//! Column chunks of the `parquet` crate, built from the structs of usual ones: those that state nothing that the
//! crate's builder cannot be given, and nothing that the crate refuses. The crate's own decoder makes the others.

use std::sync::Arc;

use super::parquet::basic::{
    CompressionCodec, Encoding as TheirEncoding, EncodingMask, PageType as TheirPageType, Type,
};
use super::parquet::data_type::{ByteArray, FixedLenByteArray};
use super::parquet::file::metadata::{ColumnChunkMetaData, LevelHistogram, PageEncodingStats};
use super::parquet::file::statistics::{Statistics as Theirs, ValueStatistics};
use super::parquet::schema::types::ColumnDescPtr;

use crate::chunk::statistics::{self, SizeStatistics, Statistics};
use crate::schema::enums::EncodingSet;
use crate::thrift::cursor::{Cursor, I32, I64, LIST, STOP, STRUCT};
use crate::thrift::varint;

/// How a struct begins whose file offset is 0, which is the builder's: it cannot be given another one.
const USUAL_START: [u8; 3] = [0x26, 0, 1 << 4 | STRUCT];

/// Whether the chunk whose struct is at `at` may be a usual one.
pub(super) fn may_be_usual(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(&USUAL_START))
}

/// The chunk whose struct is at `at`; `None` if only the crate's decoder can tell.
pub(super) fn built(bytes: &[u8], at: usize, column: &ColumnDescPtr) -> Option<ColumnChunkMetaData> {
    if !may_be_usual(bytes, at) {
        return None;
    }
    let mut found = Found::default();
    let cursor = &mut Cursor::new(bytes, at + USUAL_START.len());
    found.meta_data(cursor)?;
    found.page_indexes(cursor)?;
    found.build(column)
}

/// What a chunk states.
#[derive(Default)]
struct Found<'a> {
    encodings: i32,
    codec: i32,
    num_values: i64,
    uncompressed: i64,
    compressed: i64,
    data_page: i64,
    index_page: Option<i64>,
    dictionary_page: Option<i64>,
    statistics: Option<Statistics<'a>>,
    encoding_stats: Option<Vec<PageEncodingStats>>,
    bloom_filter: (Option<i64>, Option<i32>),
    sizes: SizeStatistics,
    offset_index: (Option<i64>, Option<i32>),
    column_index: (Option<i64>, Option<i32>),
}

impl<'a> Found<'a> {
    fn meta_data(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        let mut last = 0;
        loop {
            let before = last;
            let field = cursor.field(&mut last).ok()?;
            match (field.id, field.wire) {
                (_, STOP) => return Some(()),
                // Of a repeated field, decoders may take either value.
                (id, _) if id <= before => return None,
                (1, I32) | (3 | 8, LIST) => cursor.skip(field.wire).ok()?,
                (2, LIST) => self.encodings = encodings(cursor)?,
                (4, I32) => self.codec = cursor.i32().ok()?,
                (5, I64) => self.num_values = integer(cursor)?,
                (6, I64) => self.uncompressed = integer(cursor)?,
                (7, I64) => self.compressed = integer(cursor)?,
                (9, I64) => self.data_page = integer(cursor)?,
                (10, I64) => self.index_page = Some(integer(cursor)?),
                (11, I64) => self.dictionary_page = Some(integer(cursor)?),
                (12, STRUCT) => self.statistics = Some(statistics::statistics(cursor).ok()?),
                (13, LIST) => self.encoding_stats = Some(encoding_stats(cursor)?),
                (14, I64) => self.bloom_filter.0 = Some(integer(cursor)?),
                (15, I32) => self.bloom_filter.1 = Some(cursor.i32().ok()?),
                (16, STRUCT) => self.sizes = statistics::size_statistics(cursor).ok()?,
                _ => return None,
            }
        }
    }

    fn page_indexes(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        let mut last = 3;
        loop {
            let before = last;
            let field = cursor.field(&mut last).ok()?;
            match (field.id, field.wire) {
                (_, STOP) => return Some(()),
                (id, _) if id <= before => return None,
                (4, I64) => self.offset_index.0 = Some(integer(cursor)?),
                (5, I32) => self.offset_index.1 = Some(cursor.i32().ok()?),
                (6, I64) => self.column_index.0 = Some(integer(cursor)?),
                (7, I32) => self.column_index.1 = Some(cursor.i32().ok()?),
                _ => return None,
            }
        }
    }

    /// All at once: each step of the builder may copy it.
    fn build(self, column: &ColumnDescPtr) -> Option<ColumnChunkMetaData> {
        let mut made = ColumnChunkMetaData::builder(Arc::clone(column))
            .set_encodings_mask(EncodingMask::try_new(self.encodings).ok()?)
            .set_compression_codec(codec(self.codec)?)
            .set_num_values(self.num_values)
            .set_total_uncompressed_size(self.uncompressed)
            .set_total_compressed_size(self.compressed)
            .set_data_page_offset(self.data_page)
            .set_index_page_offset(self.index_page)
            .set_dictionary_page_offset(self.dictionary_page)
            .set_bloom_filter_offset(self.bloom_filter.0)
            .set_bloom_filter_length(self.bloom_filter.1)
            .set_offset_index_offset(self.offset_index.0)
            .set_offset_index_length(self.offset_index.1)
            .set_column_index_offset(self.column_index.0)
            .set_column_index_length(self.column_index.1)
            .set_unencoded_byte_array_data_bytes(self.sizes.unencoded_byte_array_data_bytes);
        if let Some(found) = &self.statistics {
            made = made.set_statistics(bounds(found, column.physical_type())?);
        }
        if let Some(stats) = self.encoding_stats {
            made = made.set_page_encoding_stats(stats);
        }
        if let Some(levels) = self.sizes.repetition_level_histogram {
            made = made.set_repetition_level_histogram(Some(LevelHistogram::from(levels)));
        }
        if let Some(levels) = self.sizes.definition_level_histogram {
            made = made.set_definition_level_histogram(Some(LevelHistogram::from(levels)));
        }
        made.build().ok()
    }
}

/// A number, usually in one step.
#[inline(always)]
fn integer(cursor: &mut Cursor<'_>) -> Option<i64> {
    let word = cursor.bytes.get(cursor.at..).and_then(|rest| rest.first_chunk());
    match word.and_then(|word| varint::integer(u64::from_le_bytes(*word))) {
        Some((value, len)) => {
            cursor.at += len;
            Some(value)
        }
        None => cursor.integer().ok(),
    }
}

/// The bits of the encodings' numbers.
fn encodings(cursor: &mut Cursor<'_>) -> Option<i32> {
    let mut set = EncodingSet::default();
    for _ in 0..cursor.list_of(I32, "").ok()? {
        set = set.with(cursor.i32().ok()?);
    }
    // The crate refuses bits of numbers that it does not know, the top bit among them.
    Some(set.bits().cast_signed())
}

fn codec(number: i32) -> Option<CompressionCodec> {
    Some(match number {
        0 => CompressionCodec::UNCOMPRESSED,
        1 => CompressionCodec::SNAPPY,
        2 => CompressionCodec::GZIP,
        3 => CompressionCodec::LZO,
        4 => CompressionCodec::BROTLI,
        5 => CompressionCodec::LZ4,
        6 => CompressionCodec::ZSTD,
        7 => CompressionCodec::LZ4_RAW,
        _ => return None,
    })
}

/// Numbers of pages whose three fields are in order.
fn encoding_stats(cursor: &mut Cursor<'_>) -> Option<Vec<PageEncodingStats>> {
    const LEN: usize = 7;
    let next = |cursor: &mut Cursor<'_>| match cursor.byte() {
        Ok(header) if header == 1 << 4 | I32 => cursor.i32().ok(),
        _ => None,
    };
    let count = cursor.list_of(STRUCT, "").ok()?;
    let mut all = Vec::with_capacity(count.min(cursor.left() / LEN));
    for _ in 0..count {
        let page_type = match next(cursor)? {
            0 => TheirPageType::DATA_PAGE,
            1 => TheirPageType::INDEX_PAGE,
            2 => TheirPageType::DICTIONARY_PAGE,
            3 => TheirPageType::DATA_PAGE_V2,
            _ => return None,
        };
        let encoding = match next(cursor)? {
            0 => TheirEncoding::PLAIN,
            2 => TheirEncoding::PLAIN_DICTIONARY,
            3 => TheirEncoding::RLE,
            5 => TheirEncoding::DELTA_BINARY_PACKED,
            6 => TheirEncoding::DELTA_LENGTH_BYTE_ARRAY,
            7 => TheirEncoding::DELTA_BYTE_ARRAY,
            8 => TheirEncoding::RLE_DICTIONARY,
            9 => TheirEncoding::BYTE_STREAM_SPLIT,
            _ => return None,
        };
        all.push(PageEncodingStats { page_type, encoding, count: next(cursor)? });
        if cursor.byte() != Ok(STOP) {
            return None;
        }
    }
    Some(all)
}

/// Statistics as the crate makes them of bounds of a column of this type.
fn bounds(found: &Statistics<'_>, physical_type: Type) -> Option<Theirs> {
    let old = found.min_value.is_none() && found.max_value.is_none();
    let (min, max) = if old { (found.min, found.max) } else { (found.min_value, found.max_value) };
    let distinct = found.distinct_count.map(i64::cast_unsigned);
    let nulls = match found.null_count {
        Some(count) => Some(u64::try_from(count).ok()?),
        None => None,
    };
    // Release 59 does not know it.
    if found.nan_count.is_some() {
        return None;
    }
    Some(match physical_type {
        Type::BOOLEAN => {
            let read = |[byte]: [u8; 1]| byte != 0;
            Theirs::boolean(number(min, read)?, number(max, read)?, distinct, nulls, old)
        }
        Type::INT32 => {
            let read = i32::from_le_bytes;
            Theirs::int32(number(min, read)?, number(max, read)?, distinct, nulls, old)
        }
        Type::INT64 => {
            let read = i64::from_le_bytes;
            Theirs::int64(number(min, read)?, number(max, read)?, distinct, nulls, old)
        }
        Type::FLOAT => {
            let read = f32::from_le_bytes;
            let made = ValueStatistics::new(number(min, read)?, number(max, read)?, distinct, nulls, old);
            Theirs::Float(if super::ARE_FLOATS_EXACT { made } else { exact(made, found) })
        }
        Type::DOUBLE => {
            let read = f64::from_le_bytes;
            let made = ValueStatistics::new(number(min, read)?, number(max, read)?, distinct, nulls, old);
            Theirs::Double(if super::ARE_FLOATS_EXACT { made } else { exact(made, found) })
        }
        Type::BYTE_ARRAY => {
            let (min, max) = (min.map(ByteArray::from), max.map(ByteArray::from));
            Theirs::ByteArray(exact(ValueStatistics::new(min, max, distinct, nulls, old), found))
        }
        Type::FIXED_LEN_BYTE_ARRAY => {
            let read = |bytes| FixedLenByteArray::from(ByteArray::from(bytes));
            let (min, max) = (min.map(read), max.map(read));
            Theirs::FixedLenByteArray(exact(ValueStatistics::new(min, max, distinct, nulls, old), found))
        }
        Type::INT96 => return None,
    })
}

/// The number that a bound begins with; `None` if it is shorter.
fn number<const N: usize, T>(bound: Option<&[u8]>, read: impl Fn([u8; N]) -> T) -> Option<Option<T>> {
    match bound {
        Some(bound) => Some(Some(read(*bound.first_chunk()?))),
        None => Some(None),
    }
}

fn exact<T>(made: ValueStatistics<T>, found: &Statistics<'_>) -> ValueStatistics<T> {
    made.with_max_is_exact(found.is_max_value_exact.unwrap_or(false))
        .with_min_is_exact(found.is_min_value_exact.unwrap_or(false))
}
