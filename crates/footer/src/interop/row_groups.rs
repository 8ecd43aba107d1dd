//! Row groups of the `parquet` crate, which decodes them from a footer that holds nothing but the structs of the wanted
//! column chunks.
//!
//! ```text
//! our rows ─where the structs start─▶ footer of wanted structs ─the crate's decoder─▶ its column chunks
//! ```
//!
//! The result is exactly what the crate decodes.

use std::ops::Range;
use std::sync::Arc;

use super::super::repaired;
use super::parquet::errors::ParquetError;
use super::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
    RowGroupMetaData, SortingColumn as TheirSorting,
};
use super::parquet::schema::types::SchemaDescPtr;

use crate::chunk::column_chunk::ColumnChunk;
use crate::chunk::row_group::RowGroup;
use crate::decode::file_metadata::has_dictionary;
use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::thrift::cursor::{BINARY, Cursor, I32, STRUCT};
use crate::thrift_writer::ThriftWriter;

/// How many column chunks to pass to the crate at once: some megabytes of structs.
const CHUNKS: usize = 1 << 14;

/// How many row groups to pass at once: the crate's release 59 rejects more than 32,767.
const ROW_GROUPS: usize = 1 << 12;

/// Row groups being converted.
struct RowGroups<'f> {
    footer: &'f Footer,
    leaves: &'f [usize],
    schema: &'f SchemaDescPtr,
    options: ParquetMetaDataOptions,
    plain: bool,
}

/// Which chunks to repair before they are passed to the crate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repair {
    /// Those whose pages it would not find.
    Places,
    All,
}

/// The decoded row groups with the columns of `leaves`, which `schema` has. `plain` says that all chunks are known
/// to be readable, where the crate looks for them.
///
/// What the crate refuses of a chunk is left out, if the chunk can be read without.
///
/// # Errors
///
/// A chunk cannot be read, or the crate rejects it; the error names it.
pub(super) fn convert(
    footer: &Footer,
    leaves: &[usize],
    schema: &SchemaDescPtr,
    plain: bool,
) -> Result<Vec<RowGroupMetaData>> {
    let mut options =
        ParquetMetaDataOptions::new().with_schema(Arc::clone(schema)).with_encoding_stats_as_mask(false);
    if let Some(wanted) = &footer.decoded.with_statistics {
        let is_wanted = |leaf: usize| wanted.binary_search(&(leaf as u32)).is_ok();
        let kept: Vec<usize> = (0..leaves.len()).filter(|&place| is_wanted(leaves[place])).collect();
        options = options.with_column_stats_policy(match kept.is_empty() {
            true => ParquetStatisticsPolicy::SkipAll,
            false => ParquetStatisticsPolicy::skip_except(&kept),
        });
    }
    let groups = RowGroups { footer, leaves, schema, options, plain };
    let at_once = (CHUNKS / leaves.len().max(1)).clamp(1, ROW_GROUPS);
    let mut made = Vec::with_capacity(footer.num_row_groups());
    for start in (0..footer.num_row_groups()).step_by(at_once) {
        let end = footer.num_row_groups().min(start + at_once);
        made.extend(groups.some(start..end)?);
    }
    Ok(made)
}

impl RowGroups<'_> {
    fn some(&self, positions: Range<usize>) -> Result<Vec<RowGroupMetaData>> {
        let groups: Vec<RowGroup<'_>> = positions.filter_map(|at| self.footer.row_group(at)).collect();
        for group in groups.iter().filter(|_| !self.plain) {
            for &leaf in self.leaves {
                group.column_of_leaf(leaf).map_or(Ok(()), |chunk| chunk.readable())?;
            }
        }
        let all = 0..self.leaves.len();
        let theirs = match self.decode(&groups, all.clone(), Repair::Places)? {
            Ok(theirs) => theirs,
            Err(_) => self.decode(&groups, all, Repair::All)?.map_err(|_| self.rejected(&groups))?,
        };
        let finish = |(group, theirs): (&RowGroup<'_>, RowGroupMetaData)| {
            self.finish(group, theirs.into_builder().take_columns())
        };
        groups.iter().zip(theirs).map(finish).collect()
    }

    /// What the crate decodes of the groups' chunks; those outside of the places among the leaves are replaced
    /// by valid ones.
    #[allow(clippy::type_complexity, reason = "an error of theirs within one of ours")]
    fn decode(
        &self,
        groups: &[RowGroup<'_>],
        places: Range<usize>,
        repair: Repair,
    ) -> Result<Result<Vec<RowGroupMetaData>, ParquetError>, Error> {
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        writer.i64(3, 0);
        writer.list(4, STRUCT, groups.len() as u64);
        for group in groups {
            writer.begin_element();
            writer.list(1, STRUCT, self.leaves.len() as u64);
            for (place, &leaf) in self.leaves.iter().enumerate() {
                match group.column_of_leaf(leaf).filter(|_| places.contains(&place)) {
                    Some(chunk) if repair == Repair::All || !(self.plain || is_found(&chunk)) => {
                        repaired::write(&chunk, &mut writer);
                    }
                    Some(chunk) => writer.raw(struct_of(&chunk)?),
                    None => valid_chunk(&mut writer),
                }
            }
            writer.i64(2, 0);
            writer.i64(3, 0);
            writer.stop();
        }
        writer.stop();
        let decoded =
            ParquetMetaDataReader::decode_metadata_with_options(writer.bytes(), Some(&self.options));
        Ok(decoded.map(|metadata| metadata.into_builder().take_row_groups()))
    }

    /// The row group with these chunks and what our decoder knows of the group.
    fn finish(&self, group: &RowGroup<'_>, columns: Vec<ColumnChunkMetaData>) -> Result<RowGroupMetaData> {
        let mut builder = RowGroupMetaData::builder(Arc::clone(self.schema))
            .set_num_rows(group.num_rows())
            .set_total_byte_size(group.total_byte_size())
            .set_column_metadata(columns);
        if let Some(ordinal) = super::ordinal(group) {
            builder = builder.set_ordinal(ordinal);
        }
        if let Some(offset) = group.file_offset() {
            builder = builder.set_file_offset(offset);
        }
        if let Some(sorting) = group.sorting_columns() {
            // Rows sorted by several columns are sorted by the first of them, as long as those are included.
            let sorting = sorting.iter().map_while(|by| {
                let leaf = usize::try_from(by.column_idx).ok()?;
                let column_idx = self.leaves.binary_search(&leaf).ok()? as i32;
                Some(TheirSorting { column_idx, descending: by.descending, nulls_first: by.nulls_first })
            });
            builder = builder.set_sorting_columns(Some(sorting.collect()));
        }
        let theirs = |error: ParquetError| {
            self.footer.name_error(Error::new(format!("building a row group failed: {error}")))
        };
        builder.build().map_err(theirs)
    }

    /// The error for the first chunk that the crate rejects.
    #[cold]
    fn rejected(&self, groups: &[RowGroup<'_>]) -> Error {
        for group in groups {
            let one = std::slice::from_ref(group);
            let (mut start, mut end) = (0, self.leaves.len());
            let Err(mut found) = self.decode(one, start..end, Repair::All).and_then(|decoded| {
                decoded.map_err(|error| Error::new(format!("the parquet crate rejects it: {error}")))
            }) else {
                continue;
            };
            while end - start > 1 {
                let middle = start.midpoint(end);
                match self.decode(one, start..middle, Repair::All) {
                    Ok(Ok(_)) => start = middle,
                    Ok(Err(error)) => {
                        found = Error::new(format!("the parquet crate rejects it: {error}"));
                        end = middle;
                    }
                    Err(error) => return error,
                }
            }
            let leaf = self.leaves.get(start).copied().unwrap_or_default();
            let path = format!("row_groups[{}].columns[{leaf}]", group.index());
            return self.footer.name_error(found.at_path(path).with_advice("leave the column out"));
        }
        self.footer.name_error(Error::new("the parquet crate rejects the row groups together"))
    }
}

/// Whether the crate looks for the chunk's pages where they are.
fn is_found(chunk: &ColumnChunk<'_>) -> bool {
    let is_possible = chunk.dictionary_page_offset().is_none() || has_dictionary(&chunk.chunk());
    is_possible && chunk.has_true_size()
}

/// The bytes of a chunk's struct.
fn struct_of<'a>(chunk: &ColumnChunk<'a>) -> Result<&'a [u8]> {
    let footer = chunk.row_group().footer;
    let (bytes, start) = (footer.bytes(), chunk.footer_offset());
    // Structs of neighbours follow each other.
    let next = chunk.row_group().column(chunk.position() + 1);
    let end = match next.filter(|next| next.leaf() == chunk.leaf() + 1) {
        Some(next) => next.footer_offset(),
        None => {
            let mut cursor = Cursor::new(bytes, start);
            cursor.skip(STRUCT).map_err(|fault| footer.chunk_error(fault, chunk))?;
            cursor.at
        }
    };
    Ok(bytes.get(start..end).unwrap_or_default())
}

/// A chunk with the required fields.
fn valid_chunk(writer: &mut ThriftWriter) {
    writer.begin_element();
    writer.i64(2, 0);
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
