//! `--chunks`: everything that the footer states of each column chunk, except its values.

use std::io::{self, Write};

use sawmill_footer::ColumnChunk;
use serde::Serialize;

use crate::chunks::record::ChunkRecord;
use crate::file::open_file::OpenFile;
use crate::text::json::Each;
use crate::text::style::ratio;
use crate::text::table::Table;
use crate::views::row_groups;

/// A column chunk with what lies beside its pages.
#[derive(Serialize)]
pub(crate) struct Chunk<'a> {
    #[serde(flatten)]
    pub record: ChunkRecord<'a>,
    pub column_index_offset: Option<i64>,
    pub column_index_length: Option<i32>,
    pub offset_index_offset: Option<i64>,
    pub offset_index_length: Option<i32>,
    pub bloom_filter_offset: Option<i64>,
    pub bloom_filter_length: Option<i32>,
    /// The file that holds the pages, if it is another.
    pub file_path: Option<&'a str>,
    pub encrypted: bool,
    /// Why a reader of this version of the format cannot read the chunk.
    pub unreadable: Option<String>,
}

pub(crate) fn chunk_of<'a>(file: &'a OpenFile, chunk: &ColumnChunk<'a>) -> Chunk<'a> {
    let places = file.locations(chunk);
    Chunk {
        record: ChunkRecord::new(chunk, file.column(chunk)),
        column_index_offset: places.column_index_offset,
        column_index_length: places.column_index_length,
        offset_index_offset: places.offset_index_offset,
        offset_index_length: places.offset_index_length,
        bloom_filter_offset: places.bloom_filter_offset,
        bloom_filter_length: places.bloom_filter_length,
        file_path: places.file_path,
        encrypted: chunk.is_encrypted(),
        unreadable: chunk.readable().err().map(|error| error.what()),
    }
}

/// The column chunks for programs, row group by row group.
pub(crate) fn json(file: &OpenFile) -> impl Serialize {
    Each(move || file.chunks().map(move |chunk| chunk_of(file, &chunk)))
}

/// One table for each row group.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let style = &file.style;
    for (i, group) in file.footer.row_groups().enumerate() {
        row_groups::heading(&group, i == 0, style, out)?;
        let mut table = Table::new(
            "column, type, codec, encodings, values>, compressed>, uncompressed>, ratio>, first byte>, extras",
        );
        for chunk in group.columns() {
            let chunk = chunk_of(file, &chunk);
            let record = &chunk.record;
            // The decoder rejects negative sizes.
            let (compressed, uncompressed) =
                (record.compressed_bytes.unwrap_or(0) as u64, record.uncompressed_bytes.unwrap_or(0) as u64);
            table.row(&[
                &record.path,
                &record.kind(),
                &record.codec(),
                &record.encodings.join(" "),
                &record.values(style),
                &record.compressed(style),
                &record.uncompressed(style),
                &ratio(uncompressed, compressed),
                &record.first_byte(style),
                &extras(&chunk).join(", "),
            ]);
        }
        table.write(out)?;
    }
    Ok(())
}

/// What a chunk has besides its pages, and whether it cannot be read.
fn extras(chunk: &Chunk<'_>) -> Vec<&'static str> {
    let all = [
        (chunk.record.dictionary_page_offset.is_some(), "dictionary"),
        (chunk.column_index_offset.is_some(), "column index"),
        (chunk.offset_index_offset.is_some(), "offset index"),
        (chunk.bloom_filter_offset.is_some(), "bloom filter"),
        (chunk.file_path.is_some_and(|path| !path.is_empty()), "in another file"),
        (chunk.encrypted, "encrypted"),
        (chunk.unreadable.is_some() && !chunk.encrypted, "unreadable"),
    ];
    all.into_iter().filter_map(|(there, what)| there.then_some(what)).collect()
}
