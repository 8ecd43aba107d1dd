//! A column chunk as the `parquet` crate reads its pages and its Bloom filter, without the rest of its row group.
//! Reading rows would also need the other column of a map.

use std::ops::Range;
use std::sync::Arc;

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};
use sawmill_footer::{Codec, ColumnChunk, Footer};

use crate::arguments::stores::PlaceBytes;
use crate::error::{Error, Result};
use crate::footer::selection::{self, RowGroups};

/// The chunk's places, sizes and codec.
///
/// # Errors
///
/// It is encrypted, in another file, or of an unknown type or codec; or it says where it is in a form that cannot
/// be decoded.
pub(crate) fn chunk_alone(chunk: &ColumnChunk<'_>) -> Result<ColumnChunkMetaData> {
    chunk.is_here()?;
    chunk.readable()?;
    let filter = chunk.locations()?;
    let theirs = |error: parquet::errors::ParquetError| {
        let what = format!("the column {} cannot be read: {error}", chunk.path());
        Error::failure(what, "", "sawmill footer FILE --check looks for faults")
    };
    let length = chunk.element().type_length().unwrap_or(0);
    let Range { start, end } = chunk.byte_range();
    let number = |of: u64| i64::try_from(of).unwrap_or(i64::MAX);
    let name = "column";
    // The crate reads the format's names of types and codecs; some need a level, which does not matter here.
    let physical = chunk.physical_type().to_string().parse().map_err(theirs)?;
    let has_level = matches!(chunk.codec(), Codec::Gzip | Codec::Brotli | Codec::Zstd);
    let level = if has_level { "(1)" } else { "" };
    let codec = format!("{}{level}", chunk.codec()).parse().map_err(theirs)?;
    let leaf = Type::primitive_type_builder(name, physical).with_length(length);
    let path = ColumnPath::new(vec![name.to_owned()]);
    let column = ColumnDescriptor::new(Arc::new(leaf.build().map_err(theirs)?), 0, 0, path);
    ColumnChunkMetaData::builder(Arc::new(column))
        .set_compression(codec)
        .set_num_values(chunk.num_values())
        .set_total_compressed_size(number(end - start))
        .set_total_uncompressed_size(chunk.uncompressed_size())
        .set_data_page_offset(number(start))
        .set_bloom_filter_offset(filter.bloom_filter_offset)
        .set_bloom_filter_length(filter.bloom_filter_length)
        .build()
        .map_err(theirs)
}

/// Reads the footer of a file, called `file`, to show values of some columns and row groups, or all.
///
/// # Errors
///
/// It cannot be read, or lacks the row groups; or `sawmill footer extract` made the file, without data.
pub(crate) fn footer_with_data(
    opened: &PlaceBytes,
    columns: &[String],
    row_groups: Option<&RowGroups>,
    file: &str,
) -> Result<Footer> {
    let footer = opened.footer(&selection::part(columns, row_groups))?;
    footer.check_has_data("values")?;
    match row_groups.and_then(|wanted| wanted.missed(footer.num_row_groups_in_file())) {
        Some(what) => Err(Error::failure(what, file, "leave --row-group out for all")),
        None => Ok(footer),
    }
}
