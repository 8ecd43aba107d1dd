//! Pages that claim, or hold, more than a reader allows are refused before they are decompressed.

use std::io::Write;
use std::path::{Path, PathBuf};

use sawmill_footer::ThriftWriter;
use sawmill_source::{ParquetFiles, Result, Source};

const ROWS: i64 = 1000;

const SNAPPY: i32 = 1;
const GZIP: i32 = 2;
const BROTLI: i32 = 4;
const ZSTD: i32 = 6;

/// A file of columns of 1,000 INT64, each in one page with this body, which claims this size.
fn file(directory: &Path, columns: usize, codec: i32, claimed: usize, body: &[u8]) -> PathBuf {
    let mut bytes = b"PAR1".to_vec();
    let mut chunks = Vec::new();
    for _ in 0..columns {
        let mut header = ThriftWriter::new();
        header.i32(1, 0);
        header.i32(2, claimed as i32);
        header.i32(3, body.len() as i32);
        header.begin(5);
        header.i32(1, ROWS as i32);
        header.i32(2, 0);
        header.i32(3, 3);
        header.i32(4, 3);
        header.stop();
        header.stop();
        let start = bytes.len();
        bytes.extend(header.into_bytes());
        bytes.extend(body);
        chunks.push((start, bytes.len() - start));
    }
    let mut footer = ThriftWriter::new();
    footer.i32(1, 1);
    footer.list(2, 12, columns as u64 + 1);
    footer.begin_element();
    footer.binary(4, b"root");
    footer.i32(5, columns as i32);
    footer.stop();
    for column in 0..columns {
        footer.begin_element();
        footer.i32(1, 2);
        footer.i32(3, 0);
        footer.binary(4, format!("c{column}").as_bytes());
        footer.stop();
    }
    footer.i64(3, ROWS);
    footer.list(4, 12, 1);
    footer.begin_element();
    footer.list(1, 12, columns as u64);
    for (column, (start, len)) in chunks.into_iter().enumerate() {
        footer.begin_element();
        footer.i64(2, 0);
        footer.begin(3);
        footer.i32(1, 2);
        footer.list(2, 5, 1);
        footer.integer(0);
        footer.list(3, 8, 1);
        footer.bytes_value(format!("c{column}").as_bytes());
        footer.i32(4, codec);
        for (field, number) in [(5, ROWS), (6, claimed as i64), (7, len as i64), (9, start as i64)] {
            footer.i64(field, number);
        }
        footer.stop();
        footer.stop();
    }
    footer.i64(2, (claimed * columns) as i64);
    footer.i64(3, ROWS);
    footer.stop();
    footer.stop();
    let footer = footer.into_bytes();
    bytes.extend(&footer);
    bytes.extend((footer.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    let path = directory.join("pages.parquet");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn zstd(len: usize) -> Vec<u8> {
    zstd::bulk::compress(&vec![0; len], 1).unwrap()
}

fn gzip(len: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&vec![0; len]).unwrap();
    encoder.finish().unwrap()
}

fn brotli(len: usize) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 1, 22);
    encoder.write_all(&vec![0; len]).unwrap();
    encoder.into_inner()
}

/// Zeros: one literal, and copies of it.
fn snappy(len: usize) -> Vec<u8> {
    let mut length = ThriftWriter::new();
    length.varint(len as u64);
    let mut bytes = length.into_bytes();
    bytes.extend([0, 0]);
    let mut left = len - 1;
    while left > 0 {
        let copied = left.min(64);
        bytes.extend([((copied - 1) << 2 | 2) as u8, 1, 0]);
        left -= copied;
    }
    bytes
}

fn rows_of(source: &ParquetFiles) -> Result<usize> {
    let mut reader = source.reader(128);
    let mut rows = 0;
    for unit in source.plan(1500).iter().flatten() {
        reader.start(unit)?;
        while let Some(batch) = reader.next_batch()? {
            rows += batch.num_rows();
        }
    }
    Ok(rows)
}

fn open(path: &Path) -> ParquetFiles {
    ParquetFiles::open(&[path]).unwrap()
}

#[test]
fn a_page_that_claims_more_than_the_limit_is_refused_with_its_place_and_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    for codec in [0, SNAPPY, GZIP, BROTLI, ZSTD] {
        let path = file(directory.path(), 1, codec, (64 << 20) + 1, &[0; 40]);
        for check_sums in [true, false] {
            let error = rows_of(&open(&path).compare_page_checksums(check_sums)).unwrap_err().to_string();
            let parts = ["pages.parquet", "row group 0", "\"c0\"", "page 0", "67108865", "--max-page"];
            for part in parts {
                assert!(error.contains(part), "{codec}: {part} in {error}");
            }
        }
    }
}

#[test]
fn a_larger_page_is_read_where_the_limit_allows_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 1, ZSTD, 3 << 20, &zstd(3 << 20));
    assert_eq!(rows_of(&open(&path)).unwrap(), 1000);
    assert!(rows_of(&open(&path).max_page(2 << 20)).is_err());
    assert_eq!(rows_of(&open(&path).max_page(3 << 20)).unwrap(), 1000);
}

#[test]
fn a_page_that_holds_another_size_than_it_claims_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for codec in [SNAPPY, BROTLI] {
        let body = |len| if codec == SNAPPY { snappy(len) } else { brotli(len) };
        assert_eq!(rows_of(&open(&file(directory.path(), 1, codec, 8000, &body(8000)))).unwrap(), 1000);
        for (claimed, held) in [(8000, 3 << 20), (9000, 8000)] {
            let path = file(directory.path(), 1, codec, claimed, &body(held));
            let error = rows_of(&open(&path)).unwrap_err().to_string();
            let expected = format!("expected {claimed} bytes in a page, as its header claims");
            assert!(error.contains(&expected), "{codec}: {error}");
        }
    }
}

#[test]
fn gzip_that_can_grow_beyond_measure_is_tested_up_to_its_claim() {
    let directory = tempfile::tempdir().unwrap();
    // A body of more than 254 KiB may hold more than 256 MiB.
    let body = gzip(300 << 20);
    assert!(body.len() > 260_000, "{}", body.len());
    let path = file(directory.path(), 1, GZIP, 8000, &body);
    let error = rows_of(&open(&path)).unwrap_err().to_string();
    assert!(error.contains("expected 8000 bytes in a page, as its header claims, found more"), "{error}");
}

#[test]
fn pages_of_many_columns_that_are_hardly_stored_are_refused_together() {
    let directory = tempfile::tempdir().unwrap();
    let body = zstd(1 << 20);
    let path = file(directory.path(), 100, ZSTD, 1 << 20, &body);
    assert_eq!(rows_of(&open(&path)).unwrap(), 1000, "100 MiB are as much as one page and a half");
    let error = rows_of(&open(&path).max_page(2 << 20)).unwrap_err().to_string();
    assert!(error.contains("largest pages of all columns"), "{error}");
    assert!(error.contains("--max-page"), "{error}");
}
