//! Where the pages of a column chunk are, and their limits, by the metadata of the `parquet` crate.

use std::ops::Range;

use super::parquet::basic::{Compression, Type};
use super::parquet::file::metadata::ColumnChunkMetaData;
use crate::chunk::checks::page_sizes::PageLimits;
use crate::schema::enums::Codec;

/// The bytes of a chunk's pages in the file, and the limits of these pages where one may have `max_page` bytes.
pub fn page_limits_59(chunk: &ColumnChunkMetaData, max_page: u64) -> (Range<u64>, PageLimits) {
    let data = chunk.data_page_offset();
    // Some writers set 0 for "no dictionary".
    let dictionary = chunk.dictionary_page_offset().filter(|start| (4..data).contains(start));
    let start = u64::try_from(dictionary.unwrap_or(data)).unwrap_or(0);
    let length = u64::try_from(chunk.compressed_size()).unwrap_or(0);
    let column = chunk.column_descr();
    let level = |max: i16| u32::try_from(max).unwrap_or(0);
    let limits = PageLimits {
        max_page,
        codec: codec_of(chunk.compression()),
        chunk_size: chunk.uncompressed_size(),
        max_levels: [level(column.max_def_level()), level(column.max_rep_level())],
        value_size: match column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => u32::try_from(column.type_length()).unwrap_or(0),
        },
        is_text: column.physical_type() == Type::BYTE_ARRAY,
        rows: None,
    };
    (start..start.saturating_add(length), limits)
}

fn codec_of(compression: Compression) -> Codec {
    match compression {
        Compression::UNCOMPRESSED => Codec::Uncompressed,
        Compression::SNAPPY => Codec::Snappy,
        Compression::GZIP(_) => Codec::Gzip,
        Compression::LZO => Codec::Lzo,
        Compression::BROTLI(_) => Codec::Brotli,
        Compression::LZ4 => Codec::Lz4,
        Compression::ZSTD(_) => Codec::Zstd,
        Compression::LZ4_RAW => Codec::Lz4Raw,
    }
}
