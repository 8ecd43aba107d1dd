//! How Parquet is written: the options of the command line as properties of a writer.

use arrow_schema::{DataType, Schema};
use parquet::basic::{BrotliLevel, Compression as Codec, GzipLevel, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;
use sawmill_generator::{ColumnCompression, Compression, Encoding, FileOptions};

use crate::arguments::words::YesNo;
use crate::convert::ConvertArgs;
use crate::convert::parquet::columns::Columns;
use crate::r#gen::formats::text_form::NoText;
use crate::r#gen::options::file_args::{DataPageVersion, PageArgs, Statistics};

/// With more columns none has a dictionary unless it is asked for: an empty one takes 64 KiB, twice.
pub(crate) const MAX_DICTIONARIES: usize = 2048;

/// How Parquet is written.
pub(in crate::convert) fn properties(
    args: &ConvertArgs,
    schema: &Schema,
) -> Result<WriterPropertiesBuilder, NoText> {
    let columns = Columns::new(schema);
    let rows = args.row_group_rows.and_then(|rows| usize::try_from(rows).ok());
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(rows.unwrap_or(131_072).max(1)));
    let properties = properties.set_dictionary_enabled(columns.len() <= MAX_DICTIONARIES);
    let properties = with_codecs(properties, &args.pages.compression, &columns)?;
    with_options(properties, &args.pages, schema, &columns)
}

/// Adds the codecs of the columns.
fn with_codecs(
    properties: WriterPropertiesBuilder,
    given: &[ColumnCompression],
    columns: &Columns,
) -> Result<WriterPropertiesBuilder, NoText> {
    let mut options = FileOptions::default();
    options.set_compressions(given)?;
    let compressions = options.compressions(columns.len(), |name| columns.positions(name))?;
    let mut properties = properties.set_compression(codec(options.compression)?);
    for (column, compression) in columns.iter().zip(compressions) {
        if compression != options.compression {
            properties = properties.set_column_compression(column.path.clone(), codec(compression)?);
        }
    }
    Ok(properties)
}

/// Adds the options of pages, statistics and filters.
fn with_options(
    mut properties: WriterPropertiesBuilder,
    args: &PageArgs,
    schema: &Schema,
    columns: &Columns,
) -> Result<WriterPropertiesBuilder, NoText> {
    if let Some(bytes) = args.page_size.and_then(|bytes| usize::try_from(bytes).ok()) {
        properties = properties.set_data_page_size_limit(bytes.max(1));
    }
    if args.data_page_version == DataPageVersion::Two {
        properties = properties.set_writer_version(WriterVersion::PARQUET_2_0);
    }
    let has_pages = args.page_index == YesNo::Yes;
    properties = properties.set_statistics_enabled(match args.statistics {
        Statistics::None => EnabledStatistics::None,
        Statistics::Page if has_pages => EnabledStatistics::Page,
        Statistics::Chunk | Statistics::Page => EnabledStatistics::Chunk,
    });
    properties = properties.set_offset_index_disabled(!has_pages);
    for bloom in &args.bloom {
        let column = columns.find(&bloom.column)?.path.clone();
        if !(bloom.false_positives > 0.0 && bloom.false_positives < 1.0) {
            let what = format!("the share of false positives of {:?} must be between 0 and 1", bloom.column);
            return Err(NoText::Option(what));
        }
        properties = properties.set_column_bloom_filter_fpp(column, bloom.false_positives);
    }
    for (column, encoding) in &args.encoding {
        let leaves: Vec<(ColumnPath, DataType)> = match column {
            Some(name) => {
                let column = columns.find(name)?;
                vec![(column.path.clone(), column.data_type.clone())]
            }
            None => schema
                .fields()
                .iter()
                .filter(|field| allows(*encoding, field.data_type()))
                .map(|field| (ColumnPath::from(field.name().as_str()), field.data_type().clone()))
                .collect(),
        };
        for (leaf, data_type) in leaves {
            if !allows(*encoding, &data_type) {
                let what = format!("column {leaf} of type {data_type} cannot have the encoding {encoding:?}");
                return Err(NoText::Option(what));
            }
            properties =
                properties.set_column_dictionary_enabled(leaf.clone(), *encoding == Encoding::Dictionary);
            if let Some(encoding) = as_parquet(*encoding) {
                properties = properties.set_column_encoding(leaf, encoding);
            }
        }
    }
    Ok(properties)
}

fn as_parquet(encoding: Encoding) -> Option<parquet::basic::Encoding> {
    use parquet::basic::Encoding as Of;
    Some(match encoding {
        Encoding::Dictionary => return None,
        Encoding::Plain => Of::PLAIN,
        Encoding::Delta => Of::DELTA_BINARY_PACKED,
        Encoding::DeltaLength => Of::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DeltaByteArray => Of::DELTA_BYTE_ARRAY,
        Encoding::ByteStreamSplit => Of::BYTE_STREAM_SPLIT,
        _ => return None,
    })
}

/// Whether values of a type may have an encoding.
fn allows(encoding: Encoding, data_type: &DataType) -> bool {
    let is_text = matches!(
        data_type,
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Binary | DataType::BinaryView
    );
    let is_fixed = matches!(data_type, DataType::FixedSizeBinary(_) | DataType::Decimal128(19.., _));
    let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
    let is_number = !is_text && !is_fixed && !is_float && data_type.is_primitive();
    match encoding {
        Encoding::Plain => !data_type.is_nested(),
        Encoding::Dictionary => !data_type.is_nested() && *data_type != DataType::Boolean,
        Encoding::Delta => is_number,
        Encoding::DeltaLength => is_text,
        Encoding::DeltaByteArray => is_text || is_fixed,
        Encoding::ByteStreamSplit => is_number || is_float || is_fixed,
        _ => false,
    }
}

fn codec(compression: Compression) -> Result<Codec, NoText> {
    Ok(match compression {
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        Compression::Zstd(level) => {
            Codec::ZSTD(ZstdLevel::try_new(level).map_err(|_| {
                NoText::Option(format!("{compression}: convert has zstd at the levels 1 to 22"))
            })?)
        }
        Compression::Gzip => Codec::GZIP(GzipLevel::default()),
        Compression::Brotli => Codec::BROTLI(BrotliLevel::default()),
        _ => Codec::UNCOMPRESSED,
    })
}
