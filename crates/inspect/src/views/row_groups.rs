//! `--row-groups`: what the footer states of each row group.

use std::io::{self, Write};

use sawmill_footer::{Footer, RowGroup};
use serde::Serialize;

use crate::file::open_file::OpenFile;
use crate::text::escape::escaped;
use crate::text::json::Each;
use crate::text::style::{TextStyle, ratio};
use crate::text::table::Table;

/// Writes the line above the table of a row group, with an empty line before all but the first.
pub(crate) fn heading(
    group: &RowGroup<'_>,
    first: bool,
    style: &TextStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !first {
        writeln!(out)?;
    }
    writeln!(out, "row group {}, {}", group.index(), style.stated_counted(group.num_rows(), "row"))
}

#[derive(Serialize)]
struct Group {
    row_group: usize,
    rows: i64,
    /// Bytes of the decoded column chunks.
    compressed_bytes: i64,
    uncompressed_bytes: i64,
    /// As the footer states them.
    total_byte_size: i64,
    total_compressed_size: Option<i64>,
    file_offset: Option<i64>,
    ordinal: Option<i16>,
    /// Where the first of the decoded pages starts.
    first_byte: Option<u64>,
    sorting_columns: Option<Vec<Sorting>>,
}

/// A column that rows are sorted by.
#[derive(Serialize)]
pub(crate) struct Sorting {
    column: i32,
    path: Option<String>,
    descending: bool,
    nulls_first: bool,
}

/// What a row group is sorted by, as the footer states it.
pub(crate) fn sorting_of(footer: &Footer, group: &RowGroup<'_>) -> Option<Vec<Sorting>> {
    let sorting = |by: &sawmill_footer::SortingColumn| Sorting {
        column: by.column_idx,
        path: usize::try_from(by.column_idx)
            .ok()
            .and_then(|column| footer.schema().leaf(column))
            .map(|leaf| leaf.path()),
        descending: by.descending,
        nulls_first: by.nulls_first,
    };
    group.sorting_columns().map(|columns| columns.iter().map(sorting).collect())
}

fn group_of(file: &OpenFile, group: RowGroup<'_>) -> Group {
    let (mut compressed, mut uncompressed, mut first_byte) = (0i64, 0i64, None::<u64>);
    for chunk in group.columns().filter(|chunk| chunk.has_metadata()) {
        compressed = compressed.saturating_add(chunk.compressed_size());
        uncompressed = uncompressed.saturating_add(chunk.uncompressed_size());
        let start = chunk.byte_range().start;
        first_byte = Some(first_byte.map_or(start, |first| first.min(start)));
    }
    Group {
        row_group: group.index(),
        rows: group.num_rows(),
        compressed_bytes: compressed,
        uncompressed_bytes: uncompressed,
        total_byte_size: group.total_byte_size(),
        total_compressed_size: group.total_compressed_size(),
        file_offset: group.file_offset(),
        ordinal: group.ordinal(),
        first_byte,
        sorting_columns: sorting_of(&file.footer, &group),
    }
}

/// The row groups for programs.
pub(crate) fn json(file: &OpenFile) -> impl Serialize {
    Each(move || file.footer.row_groups().map(move |group| group_of(file, group)))
}

pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(
        "row group>, rows>, compressed>, uncompressed>, ratio>, bytes/row>, first byte>, sorted by",
    );
    for group in file.footer.row_groups() {
        let group = group_of(file, group);
        // The decoder rejects negative sizes.
        let (compressed, rows) = (group.compressed_bytes as u64, group.rows as u64);
        let sorted: Vec<String> = group.sorting_columns.iter().flatten().map(order_by).collect();
        table.row(&[
            &group.row_group,
            &file.style.stated_count(group.rows),
            &file.style.stated_bytes(group.compressed_bytes),
            &file.style.stated_bytes(group.uncompressed_bytes),
            &ratio(group.uncompressed_bytes as u64, compressed),
            &ratio(compressed, rows),
            &group.first_byte.map_or("-".to_owned(), |byte| file.style.count(byte)),
            &sorted.join(", "),
        ]);
    }
    table.write(out)
}

/// `price descending nulls first`, fit for a terminal.
pub(crate) fn order_by(by: &Sorting) -> String {
    let path =
        by.path.as_deref().map_or_else(|| format!("column {}", by.column), |p| escaped(p).into_owned());
    let direction = if by.descending { " descending" } else { "" };
    let nulls = if by.nulls_first { " nulls first" } else { "" };
    format!("{path}{direction}{nulls}")
}
