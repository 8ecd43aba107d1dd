//! `--bounds`: typed bounds and counts of each column chunk.

use std::io::{self, Write};

use sawmill_footer::{ChunkDetails, ColumnChunk, Statistics};
use serde::Serialize;

use crate::file::open_file::OpenFile;
use crate::text::json::Each;
use crate::text::table::Table;
use crate::text::values::{CLIP, Reader, Value};
use crate::views::row_groups;

/// Bounds and counts of a chunk.
#[derive(Serialize)]
pub(crate) struct Bounds<'a> {
    pub null_count: Option<i64>,
    pub distinct_count: Option<i64>,
    pub nan_count: Option<i64>,
    pub min: Option<Value<'a>>,
    pub max: Option<Value<'a>>,
    /// Whether the bound is a value of the column; `None` if the file does not state it.
    pub is_min_exact: Option<bool>,
    pub is_max_exact: Option<bool>,
    /// Whether the bounds come from the deprecated fields, which have a signed order for all types.
    pub deprecated: bool,
}

/// The typed bounds of a chunk; `None` without statistics.
pub(crate) fn bounds_of<'a>(file: &OpenFile, chunk: &ColumnChunk<'a>) -> Option<Bounds<'a>> {
    file.statistics(chunk).map(|found| typed(&file.column(chunk).reader, found))
}

/// The bounds, with values that `reader` read.
pub(crate) fn typed<'a>(reader: &Reader, found: Statistics<'a>) -> Bounds<'a> {
    let deprecated = found.min_value.is_none()
        && found.max_value.is_none()
        && (found.min.is_some() || found.max.is_some());
    let (min, max) = if deprecated { (found.min, found.max) } else { (found.min_value, found.max_value) };
    Bounds {
        null_count: found.null_count,
        distinct_count: found.distinct_count,
        nan_count: found.nan_count,
        min: min.map(|bytes| reader.value(bytes)),
        max: max.map(|bytes| reader.value(bytes)),
        is_min_exact: found.is_min_value_exact,
        is_max_exact: found.is_max_value_exact,
        deprecated,
    }
}

#[derive(Serialize)]
struct ChunkStatistics<'a> {
    row_group: usize,
    column: usize,
    path: &'a str,
    statistics: Option<Bounds<'a>>,
    #[serde(flatten)]
    sizes: SizesAndEncodings,
    bounding_box: Option<[Option<f64>; 8]>,
    geospatial_types: Option<Vec<i32>>,
}

/// The size statistics of a chunk, and the encodings of its pages.
#[derive(Serialize)]
pub(crate) struct SizesAndEncodings {
    pub unencoded_byte_array_data_bytes: Option<i64>,
    pub repetition_level_histogram: Option<Vec<i64>>,
    pub definition_level_histogram: Option<Vec<i64>>,
    pub encoding_stats: Option<Vec<PageEncodings>>,
}

/// How many pages of a type have an encoding.
#[derive(Serialize)]
pub(crate) struct PageEncodings {
    pub page_type: String,
    pub encoding: String,
    pub count: i32,
}

pub(crate) fn sizes_and_encodings(details: &mut ChunkDetails<'_>) -> SizesAndEncodings {
    let sizes = details.size_statistics.take().unwrap_or_default();
    let one = |of: sawmill_footer::PageEncodingStats| PageEncodings {
        page_type: of.page_type.to_string(),
        encoding: of.encoding.to_string(),
        count: of.count,
    };
    SizesAndEncodings {
        unencoded_byte_array_data_bytes: sizes.unencoded_byte_array_data_bytes,
        repetition_level_histogram: sizes.repetition_level_histogram,
        definition_level_histogram: sizes.definition_level_histogram,
        encoding_stats: details.encoding_stats.take().map(|pages| pages.into_iter().map(one).collect()),
    }
}

fn chunk_statistics<'a>(file: &'a OpenFile, chunk: &ColumnChunk<'a>) -> ChunkStatistics<'a> {
    let mut details = file.details(chunk);
    let sizes = sizes_and_encodings(&mut details);
    let geospatial = details.geospatial_statistics.unwrap_or_default();
    ChunkStatistics {
        row_group: chunk.row_group().index(),
        column: chunk.leaf(),
        path: &file.column(chunk).path,
        statistics: details.statistics.map(|found| typed(&file.column(chunk).reader, found)),
        sizes,
        bounding_box: geospatial.bbox.map(|b| {
            [Some(b.xmin), Some(b.xmax), Some(b.ymin), Some(b.ymax), b.zmin, b.zmax, b.mmin, b.mmax]
        }),
        geospatial_types: geospatial.geospatial_types,
    }
}

/// The statistics for programs.
pub(crate) fn json(file: &OpenFile) -> impl Serialize {
    Each(move || file.chunks().map(move |chunk| chunk_statistics(file, &chunk)))
}

/// One table for each row group.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let limit = file.style.at_most(CLIP);
    let (mut inexact, mut old) = (false, false);
    for (i, group) in file.footer.row_groups().enumerate() {
        row_groups::heading(&group, i == 0, &file.style, out)?;
        let mut table = Table::new("column, values>, nulls>, distinct>, min, max");
        for chunk in group.columns() {
            let path = &file.column(&chunk).path;
            let values = if chunk.has_metadata() {
                file.style.stated_count(chunk.num_values())
            } else {
                "-".to_owned()
            };
            let number =
                |value: Option<i64>| value.map_or("-".to_owned(), |value| file.style.stated_count(value));
            let Some(bounds) = bounds_of(file, &chunk) else {
                let why = if chunk.is_encrypted() { "encrypted" } else { "no statistics" };
                table.row(&[path, &values, &"-", &"-", &why, &""]);
                continue;
            };
            let mut bound = |value: &Option<Value<'_>>, exact: Option<bool>| match value {
                None => "-".to_owned(),
                Some(value) => {
                    let rough = exact == Some(false);
                    inexact |= rough;
                    old |= bounds.deprecated;
                    let marks = [if rough { "~" } else { "" }, if bounds.deprecated { "?" } else { "" }];
                    marks.concat() + &value.shown(limit)
                }
            };
            let min = bound(&bounds.min, bounds.is_min_exact);
            let max = bound(&bounds.max, bounds.is_max_exact);
            let (nulls, distinct) = (number(bounds.null_count), number(bounds.distinct_count));
            table.row(&[path, &values, &nulls, &distinct, &min, &max]);
        }
        table.write(out)?;
    }
    if inexact {
        writeln!(out, "\n~ a truncated bound, which is not a value of the column")?;
    }
    if old {
        writeln!(
            out,
            "\n? bounds from the deprecated fields, in signed order: do not trust them for text and unsigned numbers"
        )?;
    }
    Ok(())
}
