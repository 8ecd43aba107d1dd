//! `--page-headers`: the pages of each column chunk as their headers describe them, dictionaries included.
//!
//! Files without page indexes have these, too. Bodies are left out, and each page is written once its header
//! is read: a chunk of a billion pages takes no more memory than one of ten thousand.

use std::io::{self, Write};

use sawmill_footer::{ChunkPage, ColumnChunk, RangeReader, RowGroup};
use serde::Serialize;

use crate::file::open_file::OpenFile;
use crate::text::json::Each;
use crate::text::style::ratio;
use crate::text::table::Table;
use crate::views::row_groups;

/// How many pages to put into one table: their widths decide the width of its columns.
const ROWS: usize = 10_000;

#[derive(Serialize)]
struct ChunkHeaders<'a, P: Serialize> {
    row_group: usize,
    column: usize,
    path: &'a str,
    /// `None` if they cannot be read here.
    pages: Option<P>,
}

#[derive(Serialize)]
struct Page {
    page: usize,
    page_type: String,
    /// Where the header starts in the file.
    offset: u64,
    header_bytes: usize,
    compressed_bytes: u32,
    uncompressed_bytes: u32,
    num_values: i32,
    crc: Option<u32>,
}

/// Why the pages of a chunk cannot be read here.
fn unreadable(file: &OpenFile, chunk: &ColumnChunk<'_>) -> Option<&'static str> {
    if !chunk.has_metadata() || chunk.is_encrypted() {
        return Some("encrypted");
    }
    let elsewhere = file.locations(chunk).file_path.is_some_and(|path| !path.is_empty());
    elsewhere.then_some("in another file")
}

/// The pages up to the first that cannot be read, which is the file's fault.
fn pages<'a>(
    file: &'a OpenFile,
    chunk: ColumnChunk<'a>,
    reader: &'a dyn RangeReader,
) -> impl Iterator<Item = ChunkPage> + 'a {
    let mut pages = file.or_fault(chunk.pages(reader));
    std::iter::from_fn(move || file.or_fault(pages.as_mut()?.next_header()).flatten())
}

/// The pages for programs.
pub(crate) fn json(file: &OpenFile) -> impl Serialize {
    Each(move || file.chunks().map(move |chunk| of_chunk(file, chunk)))
}

/// A chunk whose pages are read while it is serialised.
fn of_chunk<'a>(file: &'a OpenFile, chunk: ColumnChunk<'a>) -> impl Serialize + 'a {
    let reader = file.reader().filter(|_| unreadable(file, &chunk).is_none());
    ChunkHeaders {
        row_group: chunk.row_group().index(),
        column: chunk.leaf(),
        path: &file.column(&chunk).path,
        pages: reader.map(|reader| Each(move || pages(file, chunk, reader).map(Page::from))),
    }
}

impl From<ChunkPage> for Page {
    fn from(page: ChunkPage) -> Self {
        Self {
            page: page.index,
            page_type: page.page_type.to_string(),
            offset: page.offset,
            header_bytes: page.header_len,
            compressed_bytes: page.compressed_size,
            uncompressed_bytes: page.uncompressed_size,
            num_values: page.num_values,
            crc: page.crc,
        }
    }
}

/// Tables for each row group.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let Some(reader) = file.reader() else { return Ok(()) };
    for (i, group) in file.footer.row_groups().enumerate() {
        row_groups::heading(&group, i == 0, &file.style, out)?;
        of_row_group(file, group, reader, out)?;
    }
    Ok(())
}

fn of_row_group(
    file: &OpenFile,
    group: RowGroup<'_>,
    reader: &dyn RangeReader,
    out: &mut dyn Write,
) -> io::Result<()> {
    let style = &file.style;
    let (mut table, mut rows) = (empty_table(), 0);
    for chunk in group.columns() {
        let path = file.column(&chunk).path.as_str();
        if let Some(why) = unreadable(file, &chunk) {
            table.row(&[&path, &"-", &why, &"-", &"-", &"-", &"-", &"-", &"-", &"-"]);
            rows += 1;
            continue;
        }
        for page in pages(file, chunk, reader) {
            if rows == ROWS {
                table.write(out)?;
                (table, rows) = (empty_table(), 0);
            }
            // The name once in a table, as with page indexes.
            let path = if page.index == 0 || rows == 0 { path } else { "" };
            table.row(&[
                &path,
                &page.index,
                &page.page_type,
                &style.count(page.offset),
                &style.bytes(page.header_len as u64),
                &style.bytes(page.compressed_size.into()),
                &style.bytes(page.uncompressed_size.into()),
                &ratio(page.uncompressed_size.into(), page.compressed_size.into()),
                &style.stated_count(page.num_values.into()),
                &page.crc.map_or_else(|| "-".to_owned(), |crc| format!("{crc:08x}")),
            ]);
            rows += 1;
        }
    }
    table.write(out)
}

fn empty_table() -> Table {
    Table::new("column, page>, type, offset>, header>, compressed>, uncompressed>, ratio>, values>, crc")
}
