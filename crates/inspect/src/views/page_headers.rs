//! `--page-headers`: the pages of each column chunk as their headers describe them, dictionaries included.
//!
//! Files without page indexes have these, too. Every page of the selected chunks is read, but not
//! decompressed.

use std::io::{self, Write};

use sawmill_footer::{ChunkPages, ColumnChunk};
use serde::Serialize;

use crate::file::open_file::OpenFile;
use crate::text::json::Each;
use crate::text::style::ratio;
use crate::text::table::{Left, Right, Table};
use crate::views::row_groups;

#[derive(Serialize)]
struct ChunkHeaders<'a> {
    row_group: usize,
    column: usize,
    path: &'a str,
    pages: Vec<Page>,
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

/// The pages up to the first that cannot be read, which is the file's fault.
fn pages(file: &OpenFile, chunk: &ColumnChunk<'_>) -> Vec<Page> {
    let mut found = Vec::new();
    let elsewhere = file.locations(chunk).file_path.is_some_and(|path| !path.is_empty());
    if !chunk.has_metadata() || chunk.is_encrypted() || elsewhere {
        return found;
    }
    let Some(reader) = file.reader() else { return found };
    let mut pages = ChunkPages::new(reader, chunk.byte_range());
    while let Some(page) = file.or_fault(pages.next_page(|_| {})).flatten() {
        found.push(Page {
            page: page.index,
            page_type: page.page_type.to_string(),
            offset: page.offset,
            header_bytes: page.header_len,
            compressed_bytes: page.compressed_size,
            uncompressed_bytes: page.uncompressed_size,
            num_values: page.num_values,
            crc: page.crc,
        });
    }
    found
}

/// The pages for programs.
pub(crate) fn json(file: &OpenFile) -> impl Serialize {
    let headers = move |chunk: ColumnChunk<'_>| ChunkHeaders {
        row_group: chunk.row_group().index(),
        column: chunk.leaf(),
        path: &file.column(&chunk).path,
        pages: pages(file, &chunk),
    };
    Each(move || file.chunks().map(headers))
}

/// One table for each row group.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let style = &file.style;
    for (i, group) in file.footer.row_groups().enumerate() {
        row_groups::heading(&group, i == 0, style, out)?;
        let mut table = Table::new(&[
            ("column", Left),
            ("page", Right),
            ("type", Left),
            ("offset", Right),
            ("header", Right),
            ("compressed", Right),
            ("uncompressed", Right),
            ("ratio", Right),
            ("values", Right),
            ("crc", Left),
        ]);
        for chunk in group.columns() {
            for page in pages(file, &chunk) {
                // The name once, as with page indexes.
                let path = if page.page == 0 { file.column(&chunk).path.as_str() } else { "" };
                table.row(&[
                    &path,
                    &page.page,
                    &page.page_type,
                    &style.count(page.offset),
                    &style.bytes(page.header_bytes as u64),
                    &style.bytes(page.compressed_bytes.into()),
                    &style.bytes(page.uncompressed_bytes.into()),
                    &ratio(page.uncompressed_bytes.into(), page.compressed_bytes.into()),
                    &style.stated_count(page.num_values.into()),
                    &page.crc.map_or_else(|| "-".to_owned(), |crc| format!("{crc:08x}")),
                ]);
            }
        }
        table.write(out)?;
    }
    Ok(())
}
