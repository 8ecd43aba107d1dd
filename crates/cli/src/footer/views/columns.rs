//! `--columns`: what the footer says of every column chunk but its values.

use std::io::{self, Write};

use sawmill_footer::{Codec, ColumnChunk};
use serde::Serialize;

use crate::footer::files::open_file::OpenFile;
use crate::footer::text::each::{Each, shown};
use crate::footer::text::escape::{Left, Right, Table, ratio};
use crate::footer::views::row_groups;
use crate::footer::views::summary::{count, size};
use crate::screen::phases::thousands;

/// A column chunk. What an encrypted one keeps to itself is none.
#[derive(Serialize)]
pub(crate) struct Chunk<'a> {
    pub row_group: usize,
    /// The column's index in the file.
    pub column: usize,
    pub path: &'a str,
    pub physical_type: &'a str,
    pub logical_type: Option<&'a str>,
    #[serde(serialize_with = "shown")]
    pub codec: Option<Codec>,
    pub encodings: Vec<String>,
    pub num_values: Option<i64>,
    pub compressed_bytes: Option<i64>,
    pub uncompressed_bytes: Option<i64>,
    pub data_page_offset: Option<i64>,
    pub dictionary_page_offset: Option<i64>,
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
    let column = &file.columns()[chunk.position()];
    let places = file.locations(chunk);
    let there = chunk.has_metadata();
    let number = |value: i64| there.then_some(value);
    Chunk {
        row_group: chunk.row_group().index(),
        column: chunk.leaf(),
        path: &column.path,
        physical_type: &column.physical_type,
        logical_type: column.logical_type.as_deref(),
        codec: there.then(|| chunk.codec()),
        encodings: chunk.encodings().iter().map(|encoding| encoding.to_string()).collect(),
        num_values: number(chunk.num_values()),
        compressed_bytes: number(chunk.compressed_size()),
        uncompressed_bytes: number(chunk.uncompressed_size()),
        data_page_offset: number(chunk.data_page_offset()),
        dictionary_page_offset: chunk.dictionary_page_offset(),
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
    Each(move || {
        let chunks = file.footer.row_groups().flat_map(|group| group.columns());
        chunks.map(move |chunk| chunk_of(file, &chunk))
    })
}

/// A table a row group.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    for (i, group) in file.footer.row_groups().enumerate() {
        row_groups::heading(&group, i == 0, out)?;
        let mut table = Table::new(&[
            ("column", Left),
            ("type", Left),
            ("codec", Left),
            ("encodings", Left),
            ("values", Right),
            ("compressed", Right),
            ("uncompressed", Right),
            ("ratio", Right),
            ("first byte", Right),
            ("extras", Left),
        ]);
        for chunk in group.columns() {
            let record = chunk_of(file, &chunk);
            let kind = match record.logical_type {
                Some(logical) => format!("{} ({logical})", record.physical_type),
                None => record.physical_type.to_owned(),
            };
            let number = |value: Option<i64>, show: fn(i64) -> String| value.map_or("-".to_owned(), show);
            // Sizes are never negative: the decoder refuses them.
            let (compressed, uncompressed) =
                (record.compressed_bytes.unwrap_or(0) as u64, record.uncompressed_bytes.unwrap_or(0) as u64);
            table.row(&[
                &record.path,
                &kind,
                &record.codec.map_or("-".to_owned(), |codec| codec.to_string()),
                &record.encodings.join(" "),
                &number(record.num_values, count),
                &number(record.compressed_bytes, size),
                &number(record.uncompressed_bytes, size),
                &ratio(uncompressed, compressed),
                &record.data_page_offset.map_or("-".to_owned(), |_| thousands(chunk.byte_range().start)),
                &extras(&record).join(", "),
            ]);
        }
        table.write(out)?;
    }
    Ok(())
}

/// What a chunk has beside its pages, and what is wrong with it.
fn extras(chunk: &Chunk<'_>) -> Vec<&'static str> {
    let all = [
        (chunk.dictionary_page_offset.is_some(), "dictionary"),
        (chunk.column_index_offset.is_some(), "column index"),
        (chunk.offset_index_offset.is_some(), "offset index"),
        (chunk.bloom_filter_offset.is_some(), "bloom filter"),
        (chunk.file_path.is_some_and(|path| !path.is_empty()), "in another file"),
        (chunk.encrypted, "encrypted"),
        (chunk.unreadable.is_some() && !chunk.encrypted, "unreadable"),
    ];
    all.into_iter().filter_map(|(there, what)| there.then_some(what)).collect()
}
