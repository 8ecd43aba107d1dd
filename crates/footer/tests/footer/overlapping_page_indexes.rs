//! Hostile footers whose chunks name the same page indexes again and again: memory and time must be bounded by
//! the file, not by the number of chunks.

use sawmill_footer::{Error, Footer, Options, PageIndexPolicy};

use crate::handmade;
use crate::page_index_equality::assert_page_indexes;
use crate::thrift_writer::ThriftWriter;

/// The bytes of a column index with this many pages of nulls, after `before` fields that no reader knows.
fn column_index(pages: usize, before: usize) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    // A field of one byte: true, with an id that is one greater than the last.
    writer.raw(&vec![0x11; before]);
    // After these, ids are stated in full: type, then the id as a zigzag varint.
    let begin = |writer: &mut ThriftWriter, wire: u8, id: u8| writer.raw(&[wire, id * 2]);
    begin(&mut writer, 9, 1);
    writer.raw(&list(1, pages));
    writer.raw(&vec![1; pages]);
    for field in [2, 3] {
        begin(&mut writer, 9, field);
        writer.raw(&list(handmade::BINARY, pages));
        writer.raw(&vec![0; pages]);
    }
    begin(&mut writer, handmade::I32, 4);
    writer.raw(&[0, 0]);
    writer.into_bytes()
}

/// The header of a list of up to 16,383 elements.
fn list(element: u8, len: usize) -> [u8; 3] {
    [0xf0 | element, (len & 0x7f) as u8 | 0x80, (len >> 7) as u8]
}

/// A file whose `chunks` all have a column index in these bytes; `place` says where in them.
fn file(indexes: &[u8], chunks: usize, place: impl Fn(usize) -> (usize, usize)) -> Vec<u8> {
    let mut before = b"PAR1".to_vec();
    before.resize(104, 0);
    before.extend_from_slice(indexes);
    let columns = 10;
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    handmade::schema(&mut writer, columns);
    writer.i64(3, 10);
    writer.list(4, handmade::STRUCT, (chunks / columns) as u64);
    for group in 0..chunks / columns {
        handmade::row_group(&mut writer, columns, |writer, column| {
            let (at, len) = place(group * columns + column);
            writer.begin_element();
            writer.i64(2, 0);
            writer.begin(3);
            handmade::required(writer, &format!("c{column}"), 200, 4);
            writer.stop();
            writer.i64(6, 104 + at as i64);
            writer.i32(7, len as i32);
            writer.stop();
        });
    }
    writer.stop();
    handmade::file_of(before, writer.bytes())
}

fn opened(file: &[u8], options: &Options) -> Footer {
    Footer::from_file_bytes(file, options).expect("the footer itself is valid")
}

/// Every way to read all page indexes at once.
fn ways(footer: &Footer, file: &[u8]) -> Vec<Result<(), Error>> {
    vec![
        footer.read_page_indexes(file).map(drop),
        footer.read_page_indexes_of(file, &PageIndexPolicy::All).map(drop),
        footer.page_index_ranges(&PageIndexPolicy::All).map(drop),
        footer.to_parquet_59_with_page_indexes(None, file).map(drop),
        #[cfg(feature = "parquet-60")]
        footer.to_parquet_60_with_page_indexes(Some(&[0, 5]), file).map(drop),
    ]
}

#[test]
fn chunks_that_share_an_index_are_read_as_long_as_all_fit_into_the_file() {
    let index = column_index(10, 0);
    let (len, chunks) = (index.len(), 40);
    let indexes = [index, vec![0; len * chunks]].concat();
    assert_page_indexes("shared", &file(&indexes, chunks, |_| (0, len)));
}

#[test]
fn a_thousand_chunks_that_name_the_same_long_index_are_an_error() {
    let index = column_index(16_000, 0);
    let len = index.len();
    let file = file(&index, 10_000, |_| (0, len));
    let footer = opened(&file, &Options::new());
    for way in ways(&footer, &file) {
        let error = way.expect_err("the indexes overlap").to_string();
        assert!(error.contains("some overlap"), "{error}");
    }
    // Read alone, each index is valid.
    let chunk = footer.column_chunk(7, 3).unwrap();
    assert_eq!(chunk.read_column_index(file.as_slice()).unwrap().unwrap().num_pages(), 16_000);
}

#[test]
fn indexes_that_start_within_each_other_are_an_error_too() {
    let before = 2_000;
    let index = column_index(16_000, before);
    let len = index.len();
    let file = file(&index, before, |chunk| (chunk, len - chunk));
    let footer = opened(&file, &Options::new());
    let pages = |row_group, column| {
        let chunk = footer.column_chunk(row_group, column).unwrap();
        chunk.read_column_index(file.as_slice()).unwrap().unwrap().num_pages()
    };
    assert_eq!((pages(0, 0), pages(100, 7)), (16_000, 16_000), "each one is valid");
    assert!(ways(&footer, &file).iter().all(Result::is_err));
    let mut findings = Vec::new();
    sawmill_inspect::check_file(&footer, file.as_slice(), |finding| findings.push(finding.to_string()))
        .unwrap();
    assert!(findings.iter().any(|finding| finding.contains("some overlap")), "{findings:?}");
}

#[test]
fn memory_is_a_multiple_of_the_indexes_however_far_apart_they_are() {
    let index = column_index(20, 0);
    let (len, chunks, apart) = (index.len(), 500, 8_000);
    let mut indexes = vec![0; chunks * apart];
    for chunk in 0..chunks {
        indexes[chunk * apart..][..len].copy_from_slice(&index);
    }
    let file = file(&indexes, chunks, |chunk| (chunk * apart, len));
    assert_page_indexes("apart", &file);
    let read = opened(&file, &Options::new()).read_page_indexes(file.as_slice()).unwrap();
    let allowed = chunks * (48 + 20 * len);
    assert!(read.heap_bytes() < allowed, "{} of {allowed} bytes", read.heap_bytes());
}

#[test]
fn more_bytes_of_page_indexes_than_the_options_allow_are_an_error_that_says_so() {
    let index = column_index(100, 0);
    let len = index.len();
    let indexes: Vec<u8> = index.iter().copied().cycle().take(20 * len).collect();
    let file = file(&indexes, 20, |chunk| (chunk * len, len));
    let allowed = (20 * len) as u64;
    let of = |most| opened(&file, &Options::new().max_page_indexes(most));
    assert!(ways(&of(allowed), &file).iter().all(Result::is_ok));
    let errors = ways(&of(allowed / 5 - 1), &file);
    for error in errors.into_iter().map(|way| way.expect_err("too many bytes").to_string()) {
        assert!(error.contains("max_page_indexes"), "{error}");
    }
}
