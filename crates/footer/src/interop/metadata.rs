//! Converts a footer, or its decoded part, to the `parquet` crate's metadata, so that the crate's readers can
//! use it. Compiled once for each version of the crate, which the module above names.
//!
//! In that metadata a row group must have every column of its schema, so both the schema
//! (`schema.rs`) and the Arrow schema beside it (`arrow.rs`) are pruned to the
//! wanted columns. That also saves the readers their cost for every other column.

use std::borrow::Cow;
use std::sync::Arc;

use super::parquet::basic::{
    CompressionCodec, Encoding as TheirEncoding, EncodingMask, PageType as TheirPage,
};
use super::parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use super::parquet::errors::ParquetError;
use super::parquet::file::metadata::{
    ColumnChunkMetaData, ColumnChunkMetaDataBuilder, FileMetaData, KeyValue, LevelHistogram,
    PageEncodingStats, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataOptions,
    ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData, SortingColumn as TheirSorting,
};
use super::parquet::file::statistics::{Statistics as TheirStatistics, ValueStatistics};
use super::parquet::geospatial::bounding_box::BoundingBox as TheirBox;
use super::parquet::geospatial::statistics::GeospatialStatistics as TheirGeospatial;
use super::parquet::schema::types::{ColumnDescPtr, SchemaDescPtr, SchemaDescriptor};

use super::{arrow, schema};
use crate::chunk::column_chunk::ColumnChunk;
use crate::chunk::row_group::RowGroup;
use crate::chunk::statistics::{GeospatialStatistics, Statistics};
use crate::error::Error;
use crate::footer::Footer;
use crate::options::Options;
use crate::schema::enums::{Codec, Encoding, PageType, PhysicalType};
use crate::thrift::cursor::{BINARY, I32, STRUCT};
use crate::thrift::writer::ThriftWriter;

/// A footer that is being converted.
struct Conversion<'f> {
    footer: &'f Footer,
}

/// See [`Footer::to_parquet_59`].
pub(super) fn to_parquet(footer: &Footer, leaves: Option<&[usize]>) -> Result<ParquetMetaData, Error> {
    Conversion { footer }.run(leaves)
}

/// See [`Footer::from_parquet_59`].
pub(super) fn from_parquet(metadata: &ParquetMetaData, options: &Options) -> Result<Footer, Error> {
    let mut bytes = Vec::new();
    let theirs = |error: ParquetError| Error::new(format!("writing metadata failed: {error}"));
    ParquetMetaDataWriter::new(&mut bytes, metadata).finish().map_err(theirs)?;
    // The writer appends the footer's length and the magic; the length locates the footer's start.
    let tail = bytes.last_chunk::<8>().ok_or_else(|| Error::new("expected metadata, found no bytes"))?;
    let len = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
    let end = bytes.len() - 8;
    let start = end.checked_sub(len).ok_or_else(|| Error::new("expected whole metadata, found a part"))?;
    Footer::decode(&bytes[start..end], options)
}

impl Conversion<'_> {
    fn run(&self, leaves: Option<&[usize]>) -> Result<ParquetMetaData, Error> {
        let leaves = self.wanted_leaves(leaves)?;
        let whole = leaves.len() == self.footer.schema().num_leaves();
        let root =
            schema::pruned(self.footer.schema(), &leaves).map_err(|error| self.footer.name_error(error))?;
        let schema = Arc::new(SchemaDescriptor::new(root));
        if whole && let Some(metadata) = self.decoded_by_the_crate(&schema) {
            return Ok(metadata);
        }
        let mut pairs: Vec<KeyValue> = Vec::new();
        for (key, value) in self.footer.key_value_metadata() {
            let value = match value {
                Some(value) if !whole && key == super::parquet::arrow::ARROW_SCHEMA_META_KEY => {
                    match arrow::pruned(&value, self.footer.schema(), &leaves, &schema) {
                        Some(pruned) => Some(pruned),
                        // A hint that does not fit the schema is useless; without it, readers derive Arrow's
                        // types from the schema.
                        None => continue,
                    }
                }
                value => value.map(Cow::into_owned),
            };
            pairs.push(KeyValue { key: key.into_owned(), value });
        }
        let pairs = self.footer.has_key_value_metadata().then_some(pairs);
        let orders =
            self.footer.column_orders().filter(|orders| orders.len() == self.footer.schema().num_leaves());
        let orders = orders.map(|orders| {
            let order = |(&leaf, column): (&usize, &ColumnDescPtr)| super::column_order(orders[leaf], column);
            leaves.iter().zip(schema.columns()).map(order).collect()
        });
        let all_groups = self.footer.num_row_groups() == self.footer.num_row_groups_in_file();
        let num_rows = match all_groups {
            true => self.footer.num_rows(),
            false => self.footer.row_groups().map(|group| group.num_rows()).fold(0, i64::saturating_add),
        };
        let created_by = self.footer.created_by().map(Cow::into_owned);
        let file = FileMetaData::new(
            self.footer.version(),
            num_rows,
            created_by,
            pairs,
            Arc::clone(&schema),
            orders,
        );
        let groups: Result<Vec<_>, _> =
            self.footer.row_groups().map(|group| self.their_row_group(group, &leaves, &schema)).collect();
        Ok(ParquetMetaDataBuilder::new(file).set_row_groups(groups?).build())
    }

    /// What the crate's own decoder makes of the footer, at a half to a quarter of the time of conversion;
    /// `None` if that has less than what was decoded, or more.
    fn decoded_by_the_crate(&self, schema: &SchemaDescPtr) -> Option<ParquetMetaData> {
        let all = self.footer.num_row_groups() == self.footer.num_row_groups_in_file()
            && self.footer.decoded.with_statistics.is_none()
            && self.footer.trailing_bytes().is_empty()
            && self.readable_leaves().len() == self.footer.schema().num_leaves();
        let options =
            ParquetMetaDataOptions::new().with_schema(Arc::clone(schema)).with_encoding_stats_as_mask(false);
        // A footer that the crate rejects may still convert, or be rejected with a better error.
        all.then(|| {
            ParquetMetaDataReader::decode_metadata_with_options(self.footer.bytes(), Some(&options)).ok()
        })?
    }

    fn wanted_leaves(&self, leaves: Option<&[usize]>) -> Result<Vec<usize>, Error> {
        let mut leaves = match leaves {
            Some(leaves) => leaves.to_vec(),
            None => return Ok(self.readable_leaves()),
        };
        leaves.sort_unstable();
        leaves.dedup();
        match leaves.iter().find(|&&leaf| self.footer.position_of(leaf).is_none()) {
            Some(leaf) => Err(self.footer.name_error(
                Error::new(format!("expected decoded columns, found column {leaf}, which was not decoded"))
                    .with_advice("decode it too: name it in the options"),
            )),
            None => Ok(leaves),
        }
    }

    /// The decoded columns whose every chunk the crate can read, without parts of maps.
    fn readable_leaves(&self) -> Vec<usize> {
        let decoded: Vec<usize> =
            (0..self.footer.num_columns()).filter_map(|position| self.footer.leaf_of(position)).collect();
        let is_readable = |leaf: usize| {
            let mut groups = self.footer.row_groups();
            self.footer.schema().leaf(leaf).is_some_and(schema::is_known)
                && groups.all(|group| group.column_of_leaf(leaf).is_none_or(|chunk| chunk.readable().is_ok()))
        };
        let mut left_out: Vec<usize> = decoded.iter().copied().filter(|&leaf| !is_readable(leaf)).collect();
        for leaf in left_out.clone() {
            let element = self.footer.schema().leaf(leaf);
            let groups = std::iter::successors(element, |element| element.parent());
            let maps = groups.filter(|group| schema::is_map(*group));
            left_out.extend(maps.flat_map(|map| map.columns()));
        }
        left_out.sort_unstable();
        decoded.into_iter().filter(|leaf| left_out.binary_search(leaf).is_err()).collect()
    }

    fn their_row_group(
        &self,
        group: RowGroup<'_>,
        leaves: &[usize],
        schema: &SchemaDescPtr,
    ) -> Result<RowGroupMetaData, Error> {
        let mut starts = self.with_file_offsets(&group, leaves, schema)?.into_iter();
        let mut columns = Vec::with_capacity(leaves.len());
        for (&leaf, column) in leaves.iter().zip(schema.columns()) {
            let Some(chunk) = group.column_of_leaf(leaf) else { continue };
            chunk.readable()?;
            let start = match starts.next() {
                Some(start) => start.into_builder(),
                None => ColumnChunkMetaData::builder(Arc::clone(column)),
            };
            let made = their_chunk(&chunk, start).map_err(|what| {
                let path = format!("row_groups[{}].columns[{leaf}]", group.index());
                self.footer.name_error(Error::new(what).at_path(path))
            });
            columns.push(made??);
        }
        let mut builder = RowGroupMetaData::builder(Arc::clone(schema))
            .set_num_rows(group.num_rows())
            .set_total_byte_size(group.total_byte_size())
            .set_column_metadata(columns);
        if let Some(ordinal) = super::ordinal(&group) {
            builder = builder.set_ordinal(ordinal);
        }
        if let Some(offset) = group.file_offset() {
            builder = builder.set_file_offset(offset);
        }
        if let Some(sorting) = group.sorting_columns() {
            // Rows sorted by several columns are sorted by the first of them, as long as those are included.
            let sorting = sorting.iter().map_while(|by| {
                let leaf = usize::try_from(by.column_idx).ok()?;
                let column_idx = leaves.binary_search(&leaf).ok()? as i32;
                Some(TheirSorting { column_idx, descending: by.descending, nulls_first: by.nulls_first })
            });
            builder = builder.set_sorting_columns(Some(sorting.collect()));
        }
        let theirs = |error: ParquetError| Error::new(format!("building a row group failed: {error}"));
        builder.build().map_err(theirs)
    }
}

impl Conversion<'_> {
    /// Chunks of a row group with their file offsets, if some are not 0: the crate's builder sets none, only
    /// its decoder does. Nothing else in these chunks is used.
    fn with_file_offsets(
        &self,
        group: &RowGroup<'_>,
        leaves: &[usize],
        schema: &SchemaDescPtr,
    ) -> Result<Vec<ColumnChunkMetaData>, Error> {
        let mut offsets = Vec::with_capacity(leaves.len());
        for &leaf in leaves {
            let Some(chunk) = group.column_of_leaf(leaf) else { return Ok(Vec::new()) };
            offsets.push(chunk.locations()?.file_offset);
        }
        if offsets.iter().all(|&offset| offset == 0) {
            return Ok(Vec::new());
        }
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        writer.i64(3, 0);
        writer.list(4, STRUCT, 1);
        writer.begin_element();
        writer.list(1, STRUCT, offsets.len() as u64);
        for offset in offsets {
            writer.begin_element();
            writer.i64(2, offset);
            writer.begin(3);
            writer.i32(1, 0);
            writer.list(2, I32, 0);
            writer.list(3, BINARY, 0);
            writer.i32(4, 0);
            for field in [5, 6, 7, 9] {
                writer.i64(field, 0);
            }
            writer.stop();
            writer.stop();
        }
        writer.i64(2, 0);
        writer.i64(3, 0);
        writer.stop();
        writer.stop();
        let theirs = |error: ParquetError| {
            self.footer.name_error(Error::new(format!("building column chunks failed: {error}")))
        };
        let options = ParquetMetaDataOptions::new().with_schema(Arc::clone(schema));
        let decoded = ParquetMetaDataReader::decode_metadata_with_options(writer.bytes(), Some(&options));
        let group = decoded.map_err(theirs)?.row_groups().first().cloned();
        Ok(group.map(|group| group.columns().to_vec()).unwrap_or_default())
    }
}

/// The chunk's metadata; an error of its own if the target type cannot represent a value.
#[allow(clippy::type_complexity, reason = "an error of ours within one that still lacks its place")]
fn their_chunk(
    chunk: &ColumnChunk<'_>,
    start: ColumnChunkMetaDataBuilder,
) -> Result<Result<ColumnChunkMetaData, Error>, String> {
    let details = match chunk.details() {
        Ok(details) => details,
        Err(error) => return Ok(Err(error)),
    };
    let theirs = |error: ParquetError| error.to_string();
    let mask = EncodingMask::try_new(chunk.encodings().bits() as i32).map_err(theirs)?;
    let mut builder = start
        .set_encodings_mask(mask)
        .set_num_values(chunk.num_values())
        .set_compression_codec(codec(chunk.codec())?)
        .set_total_compressed_size(chunk.compressed_size())
        .set_total_uncompressed_size(chunk.uncompressed_size())
        .set_data_page_offset(chunk.data_page_offset())
        .set_dictionary_page_offset(chunk.dictionary_page_offset())
        .set_index_page_offset(details.index_page_offset)
        .set_bloom_filter_offset(details.bloom_filter_offset)
        .set_bloom_filter_length(details.bloom_filter_length)
        .set_offset_index_offset(details.offset_index_offset)
        .set_offset_index_length(details.offset_index_length)
        .set_column_index_offset(details.column_index_offset)
        .set_column_index_length(details.column_index_length);
    if let Some(path) = details.file_path {
        builder = builder.set_file_path(path.to_string());
    }
    if let Some(found) = &details.statistics {
        builder = builder.set_statistics(statistics(found, chunk.physical_type())?);
    }
    if let Some(stats) = &details.encoding_stats {
        let stats: Result<Vec<_>, String> = stats
            .iter()
            .map(|one| {
                let (page_type, encoding) = (page_type(one.page_type)?, encoding(one.encoding)?);
                Ok(PageEncodingStats { page_type, encoding, count: one.count })
            })
            .collect();
        builder = builder.set_page_encoding_stats(stats?);
    }
    if let Some(sizes) = details.size_statistics {
        builder = builder
            .set_unencoded_byte_array_data_bytes(sizes.unencoded_byte_array_data_bytes)
            .set_repetition_level_histogram(sizes.repetition_level_histogram.map(LevelHistogram::from))
            .set_definition_level_histogram(sizes.definition_level_histogram.map(LevelHistogram::from));
    }
    if let Some(geospatial) = details.geospatial_statistics {
        builder = builder.set_geo_statistics(Box::new(geospatial_statistics(geospatial)));
    }
    builder.build().map(Ok).map_err(theirs)
}

fn geospatial_statistics(found: GeospatialStatistics) -> TheirGeospatial {
    let bbox = found.bbox.map(|bbox| {
        let mut theirs = TheirBox::new(bbox.xmin, bbox.xmax, bbox.ymin, bbox.ymax);
        if let (Some(min), Some(max)) = (bbox.zmin, bbox.zmax) {
            theirs = theirs.with_zrange(min, max);
        }
        if let (Some(min), Some(max)) = (bbox.mmin, bbox.mmax) {
            theirs = theirs.with_mrange(min, max);
        }
        theirs
    });
    TheirGeospatial::new(bbox, found.geospatial_types)
}

fn statistics(found: &Statistics<'_>, physical_type: PhysicalType) -> Result<TheirStatistics, String> {
    // If only deprecated bounds exist, take those.
    let deprecated = found.min_value.is_none() && found.max_value.is_none();
    let (min, max) = if deprecated { (found.min, found.max) } else { (found.min_value, found.max_value) };
    let count = |name: &str, count: Option<i64>| match count.map(u64::try_from).transpose() {
        Ok(count) => Ok(count),
        Err(_) => Err(format!("expected a non-negative {name}")),
    };
    let nulls = count("null_count", found.null_count)?;
    let distinct = count("distinct_count", found.distinct_count)?;
    macro_rules! numbers {
        ($make:ident, $type:ty) => {
            TheirStatistics::$make(
                min.map(first).transpose()?.map(<$type>::from_le_bytes),
                max.map(first).transpose()?.map(<$type>::from_le_bytes),
                distinct,
                nulls,
                deprecated,
            )
        };
    }
    let exact = (found.is_min_value_exact.unwrap_or(false), found.is_max_value_exact.unwrap_or(false));
    Ok(match physical_type {
        PhysicalType::Boolean => {
            let bit = |bound: &[u8]| first(bound).map(|[byte]| byte != 0);
            TheirStatistics::boolean(
                min.map(bit).transpose()?,
                max.map(bit).transpose()?,
                distinct,
                nulls,
                deprecated,
            )
        }
        PhysicalType::Int32 => numbers!(int32, i32),
        PhysicalType::Int64 => numbers!(int64, i64),
        PhysicalType::Float => numbers!(float, f32),
        PhysicalType::Double => numbers!(double, f64),
        PhysicalType::Int96 => {
            let (min, max) = (min.map(int96).transpose()?, max.map(int96).transpose()?);
            TheirStatistics::int96(min, max, distinct, nulls, deprecated)
        }
        PhysicalType::FixedLenByteArray => {
            let bound = |bound: &[u8]| FixedLenByteArray::from(bound.to_vec());
            let values = ValueStatistics::new(min.map(bound), max.map(bound), distinct, nulls, deprecated);
            TheirStatistics::FixedLenByteArray(values.with_min_is_exact(exact.0).with_max_is_exact(exact.1))
        }
        PhysicalType::ByteArray => {
            let bound = |bound: &[u8]| ByteArray::from(bound.to_vec());
            let values = ValueStatistics::new(min.map(bound), max.map(bound), distinct, nulls, deprecated);
            TheirStatistics::ByteArray(values.with_min_is_exact(exact.0).with_max_is_exact(exact.1))
        }
        PhysicalType::Unknown(number) => return Err(format!("expected a known type, found {number}")),
    })
}

/// The first bytes of a bound.
fn first<const N: usize>(bound: &[u8]) -> Result<[u8; N], String> {
    let found = bound.first_chunk::<N>().copied();
    found.ok_or_else(|| format!("expected a bound of {N} bytes in the statistics, found {}", bound.len()))
}

fn int96(bound: &[u8]) -> Result<Int96, String> {
    let bytes = first::<12>(bound)?;
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut value = Int96::new();
    value.set_data(word(0), word(4), word(8));
    Ok(value)
}

fn codec(codec: Codec) -> Result<CompressionCodec, String> {
    Ok(match codec {
        Codec::Uncompressed => CompressionCodec::UNCOMPRESSED,
        Codec::Snappy => CompressionCodec::SNAPPY,
        Codec::Gzip => CompressionCodec::GZIP,
        Codec::Lzo => CompressionCodec::LZO,
        Codec::Brotli => CompressionCodec::BROTLI,
        Codec::Lz4 => CompressionCodec::LZ4,
        Codec::Zstd => CompressionCodec::ZSTD,
        Codec::Lz4Raw => CompressionCodec::LZ4_RAW,
        Codec::Unknown(number) => return Err(format!("expected a known codec, found {number}")),
    })
}

fn encoding(encoding: Encoding) -> Result<TheirEncoding, String> {
    Ok(match encoding {
        Encoding::Plain => TheirEncoding::PLAIN,
        Encoding::PlainDictionary => TheirEncoding::PLAIN_DICTIONARY,
        Encoding::Rle => TheirEncoding::RLE,
        #[expect(deprecated, reason = "files have it all the same")]
        Encoding::BitPacked => TheirEncoding::BIT_PACKED,
        Encoding::DeltaBinaryPacked => TheirEncoding::DELTA_BINARY_PACKED,
        Encoding::DeltaLengthByteArray => TheirEncoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DeltaByteArray => TheirEncoding::DELTA_BYTE_ARRAY,
        Encoding::RleDictionary => TheirEncoding::RLE_DICTIONARY,
        Encoding::ByteStreamSplit => TheirEncoding::BYTE_STREAM_SPLIT,
        other => return Err(format!("expected an encoding that the parquet crate knows, found {other}")),
    })
}

fn page_type(page_type: PageType) -> Result<TheirPage, String> {
    Ok(match page_type {
        PageType::DataPage => TheirPage::DATA_PAGE,
        PageType::IndexPage => TheirPage::INDEX_PAGE,
        PageType::DictionaryPage => TheirPage::DICTIONARY_PAGE,
        PageType::DataPageV2 => TheirPage::DATA_PAGE_V2,
        PageType::Unknown(number) => return Err(format!("expected a known page type, found {number}")),
    })
}
