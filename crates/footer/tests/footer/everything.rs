//! Formats everything that a footer can return as text, to compare two footers.

use std::fmt::{Debug, Write};

use sawmill_footer::{ColumnChunk, Error, Footer, RangeReader};

fn result<T: Debug>(result: Result<T, Error>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Everything that decoding returns; details only for some chunks of large footers.
pub fn everything(decoded: &Result<Footer, Error>) -> String {
    let footer = match decoded {
        Ok(footer) => footer,
        Err(error) => return error.to_string(),
    };
    let mut text = format!(
        "{footer:?} {} {} {} {} {:?} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?}\n",
        footer.version(),
        footer.num_rows(),
        footer.num_row_groups_in_file(),
        footer.num_columns(),
        footer.file_len(),
        footer.created_by(),
        footer.key_value_metadata().collect::<Vec<_>>(),
        footer.has_key_value_metadata(),
        footer.column_orders(),
        result(footer.encryption_algorithm()),
        footer.footer_signing_key_metadata(),
        footer.trailing_bytes(),
        result(footer.complete()),
    );
    let step = 1 + footer.num_columns() * footer.num_row_groups() / 5000;
    if step == 1 {
        writeln!(text, "{:?}", footer.schema()).unwrap();
        sawmill_inspect::check(footer, |finding| writeln!(text, "{finding}").unwrap());
    }
    for group in footer.row_groups() {
        writeln!(
            text,
            "{group:?} {} {} {} {} {:?} {:?} {:?} {:?} {}",
            group.index(),
            group.position(),
            group.num_rows(),
            group.total_byte_size(),
            group.total_compressed_size(),
            group.sorting_columns(),
            group.file_offset(),
            group.ordinal(),
            group.footer_offset(),
        )
        .unwrap();
        for chunk in group.columns() {
            text += &numbers(&chunk);
            if chunk.position() % step == 0 {
                text += &rarities(&chunk);
            }
        }
    }
    text
}

/// The values that a row stores for a chunk.
fn numbers(chunk: &ColumnChunk<'_>) -> String {
    format!(
        "{} {} {} {} {} {} {} {} {:?} {:?} {} {} {}\n",
        chunk.leaf(),
        chunk.physical_type(),
        chunk.codec(),
        chunk.encodings(),
        chunk.num_values(),
        chunk.compressed_size(),
        chunk.uncompressed_size(),
        chunk.data_page_offset(),
        chunk.dictionary_page_offset(),
        chunk.byte_range(),
        chunk.is_encrypted(),
        chunk.has_metadata(),
        chunk.footer_offset(),
    )
}

/// The details that are decoded for a chunk on demand.
fn rarities(chunk: &ColumnChunk<'_>) -> String {
    format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}\n",
        chunk.path(),
        result(chunk.details()),
        result(chunk.locations()),
        result(chunk.statistics()),
        result(chunk.null_count()),
        result(chunk.size_statistics()),
        result(chunk.offset_index_range()),
        result(chunk.column_index_range()),
        result(chunk.readable()),
        chunk,
    )
}

/// The page indexes of all decoded chunks, read together.
pub fn page_indexes<R: RangeReader + ?Sized>(footer: &Footer, reader: &R) -> String {
    let found = match footer.read_page_indexes(reader) {
        Ok(found) => found,
        Err(error) => return error.to_string(),
    };
    each_page_index(footer, |group, column| {
        format!("{:?} {:?}", found.offset_index(group, column), found.column_index(group, column))
    })
}

/// The page indexes of all decoded chunks, read chunk by chunk.
pub fn page_indexes_one_by_one<R: RangeReader + ?Sized>(footer: &Footer, reader: &R) -> String {
    each_page_index(footer, |group, column| {
        let chunk = footer.column_chunk(group, column).unwrap();
        match (chunk.read_offset_index(reader), chunk.read_column_index(reader)) {
            (Ok(offset), Ok(column)) => format!("{offset:?} {column:?}"),
            (Err(error), _) | (_, Err(error)) => error.to_string(),
        }
    })
}

fn each_page_index(footer: &Footer, of: impl Fn(usize, usize) -> String) -> String {
    let mut text = String::new();
    for group in 0..footer.num_row_groups() {
        for column in 0..footer.num_columns() {
            writeln!(text, "{group} {column}: {}", of(group, column)).unwrap();
        }
    }
    text
}
