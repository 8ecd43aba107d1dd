//! The fields of a column chunk that its row does not keep, decoded on demand from the chunk's own bytes.

use crate::chunk::statistics::{self, GeospatialStatistics, PageEncodingStats, SizeStatistics, Statistics};
use crate::error::Fault;
use crate::schema::enums::Encoding;
use crate::thrift::cursor::{BINARY, Cursor, I32, I64, LIST, STRUCT, Step, each_field};

/// All fields of a `ColumnChunk` and its `ColumnMetaData` that the row does not keep, under the format's own
/// names.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ChunkDetails<'a> {
    /// The file that holds the chunk's pages; this file if `None`.
    pub file_path: Option<&'a str>,
    /// Deprecated; writers put 0 or the offset of a copy of the metadata here.
    pub file_offset: i64,
    /// Where the offset index starts in the file.
    pub offset_index_offset: Option<i64>,
    /// The length of the offset index in bytes.
    pub offset_index_length: Option<i32>,
    /// Where the column index starts in the file.
    pub column_index_offset: Option<i64>,
    /// The length of the column index in bytes.
    pub column_index_length: Option<i32>,
    /// How the column is encrypted.
    pub crypto_metadata: Option<ColumnCryptoMetaData<'a>>,
    /// The encrypted `ColumnMetaData`.
    pub encrypted_column_metadata: Option<&'a [u8]>,
    /// The encodings in file order.
    pub encodings: Vec<Encoding>,
    /// The names from below the root down to the column.
    pub path_in_schema: Option<Vec<&'a str>>,
    /// The chunk's key-value metadata.
    pub key_value_metadata: Option<Vec<(&'a str, Option<&'a str>)>>,
    /// Where the index page starts; no known writer produces one.
    pub index_page_offset: Option<i64>,
    /// Bounds and counts.
    pub statistics: Option<Statistics<'a>>,
    /// The number of pages for each encoding.
    pub encoding_stats: Option<Vec<PageEncodingStats>>,
    /// Where the bloom filter starts in the file.
    pub bloom_filter_offset: Option<i64>,
    /// The length of the bloom filter in bytes, including its header.
    pub bloom_filter_length: Option<i32>,
    /// Sizes and level histograms.
    pub size_statistics: Option<SizeStatistics>,
    /// Bounding box and geometry types.
    pub geospatial_statistics: Option<GeospatialStatistics>,
}

/// How a column is encrypted (`ColumnCryptoMetaData`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnCryptoMetaData<'a> {
    /// With the footer's key.
    EncryptionWithFooterKey,
    /// With the column's own key.
    EncryptionWithColumnKey {
        /// The names from below the root down to the column.
        path_in_schema: Vec<&'a str>,
        /// What a key management service needs to find the key.
        key_metadata: Option<&'a [u8]>,
    },
    /// A method unknown to this version: the union's field id, 0 for an empty union.
    Unknown(i16),
}

/// Which nested values to decode; the others are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    All,
    /// Only numbers and slices.
    Locations,
}

pub(crate) fn column_chunk<'a>(cursor: &mut Cursor<'a>, want: Want) -> Step<ChunkDetails<'a>> {
    let mut chunk = ChunkDetails::default();
    let all = want == Want::All;
    each_field!(cursor, {
        (1, BINARY) => chunk.file_path = Some(cursor.text()?),
        (2, I64) => chunk.file_offset = cursor.integer()?,
        (3, STRUCT) => column_meta_data(cursor, &mut chunk, want)?,
        (4, I64) => chunk.offset_index_offset = Some(cursor.integer()?),
        (5, I32) => chunk.offset_index_length = Some(cursor.i32()?),
        (6, I64) => chunk.column_index_offset = Some(cursor.integer()?),
        (7, I32) => chunk.column_index_length = Some(cursor.i32()?),
        (8, STRUCT) if all => chunk.crypto_metadata = Some(crypto_metadata(cursor)?),
        (9, BINARY) => chunk.encrypted_column_metadata = Some(cursor.binary()?),
    });
    Ok(chunk)
}

/// Moves the cursor to the chunk's first statistics and returns their offset; `None` if the chunk has none.
pub(crate) fn statistics_at(cursor: &mut Cursor<'_>) -> Step<Option<usize>> {
    each_field!(cursor, {
        (3, STRUCT) => each_field!(cursor, {
            (12, STRUCT) => return Ok(Some(cursor.at)),
        }),
    });
    Ok(None)
}

fn column_meta_data<'a>(cursor: &mut Cursor<'a>, chunk: &mut ChunkDetails<'a>, want: Want) -> Step<()> {
    let all = want == Want::All;
    each_field!(cursor, {
        (2, LIST) if all => {
            let count = cursor.list_of(I32, "a list of encodings (i32)")?;
            let numbers = (0..count).map(|_| cursor.i32().map(Encoding::from_number));
            chunk.encodings = numbers.collect::<Step<_>>()?;
        },
        (3, LIST) if all => chunk.path_in_schema = Some(texts(cursor)?),
        (8, LIST) if all => chunk.key_value_metadata = Some(key_values(cursor)?),
        (10, I64) => chunk.index_page_offset = Some(cursor.integer()?),
        // The first occurrence counts, as in `statistics` below.
        (12, STRUCT) if want != Want::Locations && chunk.statistics.is_none() => {
            chunk.statistics = Some(statistics::statistics(cursor)?);
        },
        (13, LIST) if all => chunk.encoding_stats = Some(statistics::encoding_stats(cursor)?),
        (14, I64) => chunk.bloom_filter_offset = Some(cursor.integer()?),
        (15, I32) => chunk.bloom_filter_length = Some(cursor.i32()?),
        (16, STRUCT) if all => chunk.size_statistics = Some(statistics::size_statistics(cursor)?),
        (17, STRUCT) if all => {
            chunk.geospatial_statistics = Some(statistics::geospatial_statistics(cursor)?);
        },
    });
    Ok(())
}

fn texts<'a>(cursor: &mut Cursor<'a>) -> Step<Vec<&'a str>> {
    let count = cursor.list_of(BINARY, "a list of names (binary)")?;
    (0..count).map(|_| cursor.text()).collect()
}

/// A list of `KeyValue`.
pub(crate) fn key_values<'a>(cursor: &mut Cursor<'a>) -> Step<Vec<(&'a str, Option<&'a str>)>> {
    let count = cursor.list_of(STRUCT, "a list of key-value pairs (struct)")?;
    (0..count).map(|_| key_value(cursor)).collect()
}

fn key_value<'a>(cursor: &mut Cursor<'a>) -> Step<(&'a str, Option<&'a str>)> {
    let start = cursor.at;
    let (mut key, mut value) = (None, None);
    each_field!(cursor, {
        (1, BINARY) => key = Some(cursor.text()?),
        (2, BINARY) => value = Some(cursor.text()?),
    });
    Ok((key.ok_or(Fault::missing(start, "key"))?, value))
}

fn crypto_metadata<'a>(cursor: &mut Cursor<'a>) -> Step<ColumnCryptoMetaData<'a>> {
    let (mut crypto, mut last) = (ColumnCryptoMetaData::Unknown(0), 0);
    while let Some(field) = cursor.next_field(&mut last)? {
        match (field.id, field.wire) {
            (1, STRUCT) => {
                cursor.skip(STRUCT)?;
                crypto = ColumnCryptoMetaData::EncryptionWithFooterKey;
            }
            (2, STRUCT) => crypto = column_key(cursor)?,
            (id, wire) => {
                cursor.skip(wire)?;
                crypto = ColumnCryptoMetaData::Unknown(id);
            }
        }
    }
    Ok(crypto)
}

fn column_key<'a>(cursor: &mut Cursor<'a>) -> Step<ColumnCryptoMetaData<'a>> {
    let start = cursor.at;
    let (mut path, mut key_metadata) = (None, None);
    each_field!(cursor, {
        (1, LIST) => path = Some(texts(cursor)?),
        (2, BINARY) => key_metadata = Some(cursor.binary()?),
    });
    let path_in_schema = path.ok_or(Fault::missing(start, "path_in_schema"))?;
    Ok(ColumnCryptoMetaData::EncryptionWithColumnKey { path_in_schema, key_metadata })
}
