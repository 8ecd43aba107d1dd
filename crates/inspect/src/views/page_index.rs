//! `--data-pages`: the data pages of each column chunk, with their offsets and bounds.

use std::io::{self, Write};

use sawmill_footer::{ColumnChunk, ColumnIndex, OffsetIndex, RangeReader};
use serde::Serialize;

use crate::file::open_file::OpenFile;
use crate::text::json::Each;
use crate::text::table::Table;
use crate::text::values::{CLIP, Value};
use crate::views::row_groups;

/// The page indexes of a chunk.
struct Indexes {
    offsets: Option<OffsetIndex>,
    bounds: Option<ColumnIndex>,
}

#[derive(Serialize)]
struct ChunkPages<'a> {
    row_group: usize,
    column: usize,
    path: &'a str,
    boundary_order: Option<String>,
    /// `None` if the chunk has no index of either kind.
    pages: Option<Vec<Page<'a>>>,
}

/// A data page. Without an offset index it lacks offsets and rows, without a column index bounds and
/// counts.
#[derive(Serialize)]
struct Page<'a> {
    offset: Option<i64>,
    compressed_bytes: Option<i32>,
    first_row: Option<i64>,
    rows: Option<i64>,
    null_page: Option<bool>,
    null_count: Option<i64>,
    nan_count: Option<i64>,
    min: Option<Value<'a>>,
    max: Option<Value<'a>>,
    unencoded_byte_array_data_bytes: Option<i64>,
}

fn read(file: &OpenFile, chunk: &ColumnChunk<'_>, reader: &dyn RangeReader) -> Indexes {
    Indexes {
        offsets: file.or_fault(chunk.read_offset_index(reader)).flatten(),
        bounds: file.or_fault(chunk.read_column_index(reader)).flatten(),
    }
}

fn pages<'a>(file: &OpenFile, chunk: &ColumnChunk<'_>, indexes: &'a Indexes) -> Option<Vec<Page<'a>>> {
    let reader = &file.column(chunk).reader;
    let Indexes { offsets, bounds } = indexes;
    let places = offsets.as_ref().map(|offsets| offsets.page_locations());
    let sizes = offsets.as_ref().and_then(|offsets| offsets.unencoded_byte_array_data_bytes());
    // The decoder does not compare the two indexes: show the pages of the longer one.
    let all = match (places, bounds) {
        (None, None) => return None,
        (places, bounds) => {
            places.map_or(0, <[_]>::len).max(bounds.as_ref().map_or(0, ColumnIndex::num_pages))
        }
    };
    let page = |at: usize| {
        let place = places.and_then(|places| places.get(at));
        let end = match places.and_then(|places| places.get(at + 1)) {
            Some(next) => next.first_row_index,
            None => chunk.row_group().num_rows(),
        };
        let null_page = bounds.as_ref().and_then(|bounds| bounds.is_null_page(at));
        let bound = |bytes: Option<&'a [u8]>| {
            bytes.filter(|_| null_page == Some(false)).map(|bytes| reader.value(bytes))
        };
        let number = |numbers: Option<&[i64]>| numbers.and_then(|numbers| numbers.get(at).copied());
        Page {
            offset: place.map(|place| place.offset),
            compressed_bytes: place.map(|place| place.compressed_page_size),
            first_row: place.map(|place| place.first_row_index),
            rows: place.map(|place| end.saturating_sub(place.first_row_index)),
            null_page,
            null_count: number(bounds.as_ref().and_then(ColumnIndex::null_counts)),
            nan_count: number(bounds.as_ref().and_then(ColumnIndex::nan_counts)),
            min: bound(bounds.as_ref().and_then(|bounds| bounds.min_value(at))),
            max: bound(bounds.as_ref().and_then(|bounds| bounds.max_value(at))),
            unencoded_byte_array_data_bytes: number(sizes),
        }
    };
    Some((0..all).map(page).collect())
}

/// A chunk's pages; its indexes are read while it is serialised.
struct Lazy<'a> {
    file: &'a OpenFile,
    chunk: ColumnChunk<'a>,
    reader: Option<&'a dyn RangeReader>,
}

impl Serialize for Lazy<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Lazy { file, chunk, reader } = self;
        let indexes = match reader {
            Some(reader) => read(file, chunk, *reader),
            None => Indexes { offsets: None, bounds: None },
        };
        ChunkPages {
            row_group: chunk.row_group().index(),
            column: chunk.leaf(),
            path: &file.column(chunk).path,
            boundary_order: indexes.bounds.as_ref().map(|bounds| bounds.boundary_order().to_string()),
            pages: pages(file, chunk, &indexes),
        }
        .serialize(serializer)
    }
}

/// The pages for programs.
pub(crate) fn json(file: &OpenFile) -> impl Serialize {
    Each(move || file.chunks().map(move |chunk| Lazy { file, chunk, reader: file.reader() }))
}

/// One table for each row group.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let limit = file.style.at_most(CLIP);
    let Some(reader) = file.reader() else { return Ok(()) };
    for (i, group) in file.footer.row_groups().enumerate() {
        row_groups::heading(&group, i == 0, &file.style, out)?;
        let mut table =
            Table::new("column, page>, first row>, rows>, offset>, bytes>, nulls>, min, max, order");
        for chunk in group.columns() {
            let path = &file.column(&chunk).path;
            let indexes = read(file, &chunk, reader);
            let Some(pages) = pages(file, &chunk, &indexes) else {
                let why = if chunk.is_encrypted() { "encrypted" } else { "no index" };
                table.row(&[path, &"-", &"-", &"-", &"-", &"-", &"-", &why, &"", &""]);
                continue;
            };
            let order =
                indexes.bounds.as_ref().map(|bounds| bounds.boundary_order().to_string().to_lowercase());
            let order = order.as_deref().unwrap_or("-");
            for (at, page) in pages.iter().enumerate() {
                let number =
                    |value: Option<i64>| value.map_or("-".to_owned(), |value| file.style.stated_count(value));
                let bound = |value: &Option<Value<'_>>| match (value, page.null_page) {
                    (_, Some(true)) => "all null".to_owned(),
                    (Some(value), _) => value.shown(limit),
                    (None, _) => "-".to_owned(),
                };
                table.row(&[
                    if at == 0 { path } else { &"" },
                    &file.style.count(at as u64),
                    &number(page.first_row),
                    &number(page.rows),
                    &number(page.offset),
                    &page
                        .compressed_bytes
                        .map_or("-".to_owned(), |bytes| file.style.stated_bytes(bytes.into())),
                    &number(page.null_count),
                    &bound(&page.min),
                    &bound(&page.max),
                    if at == 0 { &order } else { &"" },
                ]);
            }
        }
        table.write(out)?;
    }
    Ok(())
}
