//! Where the pages of a column chunk are, and their limits, by the metadata of the `parquet` crate.

use std::ops::Range;

use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;
use sawmill_footer::{Codec, PhysicalType};

use crate::pages::limits::{PageLimits, compresses_all};

/// The bytes of a chunk's pages in the file of this writer, and the limits of these pages where one may have `max_page`
/// bytes.
pub fn page_limits_59(
    chunk: &ColumnChunkMetaData,
    created_by: Option<&str>,
    max_page: u64,
) -> (Range<u64>, PageLimits) {
    let data = chunk.data_page_offset();
    // Some writers set 0 for "no dictionary".
    let dictionary = chunk.dictionary_page_offset().filter(|start| (4..data).contains(start));
    let start = u64::try_from(dictionary.unwrap_or(data)).unwrap_or(0);
    let length = u64::try_from(chunk.compressed_size()).unwrap_or(0);
    let column = chunk.column_descr();
    let levels = [column.max_def_level(), column.max_rep_level()];
    let levels = levels.map(|max| u32::try_from(max).unwrap_or(0));
    // Its types have the numbers of the format.
    let physical = PhysicalType::from_number(column.physical_type() as i32);
    let limits = PageLimits::new(Some(physical), Some(column.type_length()), levels, max_page);
    let (codec, chunk_size) = (codec_of(chunk.compression()), chunk.uncompressed_size());
    let compresses_all = compresses_all(created_by);
    (start..start.saturating_add(length), PageLimits { codec, chunk_size, compresses_all, ..limits })
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
