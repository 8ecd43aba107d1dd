//! Pages that claim, or hold, more than a reader allows are refused before they are decompressed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use sawmill_source::{ParquetFiles, Result, Source};

use crate::thrift_writer::ThriftWriter;

const ROWS: i64 = 1000;

const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;

const PLAIN: i32 = 0;
const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
const DELTA_BYTE_ARRAY: i32 = 7;

const SNAPPY: i32 = 1;
const GZIP: i32 = 2;
const BROTLI: i32 = 4;
const ZSTD: i32 = 6;

/// A file of columns of 1,000 INT64, each in one page with this body, which claims this size.
fn file(directory: &Path, columns: usize, codec: i32, claimed: usize, body: &[u8]) -> PathBuf {
    file_of((INT64, PLAIN), directory, columns, codec, claimed, body)
}

/// The same with another physical type and encoding.
fn file_of(
    (physical, encoding): (i32, i32),
    directory: &Path,
    columns: usize,
    codec: i32,
    claimed: usize,
    body: &[u8],
) -> PathBuf {
    let mut bytes = b"PAR1".to_vec();
    let mut chunks = Vec::new();
    for _ in 0..columns {
        let mut header = ThriftWriter::new();
        header.i32(1, 0);
        header.i32(2, claimed as i32);
        header.i32(3, body.len() as i32);
        header.begin(5);
        header.i32(1, ROWS as i32);
        header.i32(2, encoding);
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
        footer.i32(1, physical);
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
        footer.i32(1, physical);
        footer.list(2, 5, 1);
        footer.integer(encoding.into());
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

#[test]
fn a_long_value_of_a_dictionary_comes_in_small_batches() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dictionary.parquet");
    let text = "x".repeat(4 << 20);
    let column: ArrayRef = Arc::new(StringArray::from_iter_values((0..64).map(|_| &text)));
    let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_page_size_limit(64 << 20)
        .build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(path.metadata().unwrap().len() < 1 << 20);
    for check_sums in [true, false] {
        let source = open(&path).compare_page_checksums(check_sums);
        let mut reader = source.reader(4096);
        let mut batches = Vec::new();
        for unit in source.plan(1500).iter().flatten() {
            reader.start(unit).unwrap();
            while let Some(batch) = reader.next_batch().unwrap() {
                batches.push(batch.num_rows());
            }
        }
        assert_eq!(batches, [8; 8], "32 MiB at once");
    }
}

/// Rows of lists of texts, which a dictionary holds. `long` is the first, of a MiB.
fn lists_of_texts(path: &Path, version: WriterVersion, rows: impl Iterator<Item = (bool, usize)>) {
    let long = "x".repeat(1 << 20);
    let mut lists = ListBuilder::new(StringBuilder::new());
    for (is_long, len) in rows {
        let text = |place: usize| if is_long { long.clone() } else { format!("text {}", place % 100) };
        (0..len).for_each(|place| lists.values().append_value(text(place)));
        lists.append(true);
    }
    let column: ArrayRef = Arc::new(lists.finish());
    let batch = RecordBatch::try_from_iter([("tags", column)]).unwrap();
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(Compression::SNAPPY)
        .set_dictionary_page_size_limit(64 << 20)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_long_text_and_a_long_list_in_different_rows_are_read_and_in_one_row_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lists.parquet");
    let check = || {
        let file = std::fs::File::open(&path).unwrap();
        let footer = sawmill_footer::Footer::open(&path).unwrap();
        sawmill_inspect::check_page_sizes(&footer, &file, sawmill_inspect::DEFAULT_MAX_PAGE, u64::MAX, |_| {
            true
        })
    };
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let others = || (0..126).map(|_| (false, 2));
        lists_of_texts(&path, version, [(true, 1), (false, 10_000)].into_iter().chain(others()));
        assert_eq!(check().unwrap(), (1 << 20, Vec::new()), "the bytes of the largest row");
        let source = open(&path);
        let mut reader = source.reader(4096);
        reader.start(&source.plan(1500)[0][0]).unwrap();
        assert_eq!(reader.next_batch().unwrap().unwrap().num_rows(), 32, "32 MiB at once");

        lists_of_texts(&path, version, others().chain([(false, 10_000), (true, 200), (false, 3)]));
        let error = check().unwrap_err().to_string();
        let what = "expected rows of at most 134217728 bytes in a list, found one that may take 209715200";
        for part in [what, "row group 0", "tags.list.item", ", row 127", "--max-page"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn lengths_of_text_beyond_the_values_of_their_page_are_refused_with_every_codec() {
    let directory = tempfile::tempdir().unwrap();
    // Blocks of 128 values in four miniblocks, 3,000,000,000 values; the first is 0.
    let body = [0x80, 1, 4, 0x80, 0xbc, 0xc1, 0x96, 0x0b, 0];
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&body).unwrap();
        encoder.finish().unwrap()
    };
    let literal = [&[9, 8 << 2], body.as_slice()].concat();
    let bodies = [
        (0, body.to_vec()),
        (SNAPPY, literal),
        (GZIP, gzip),
        (ZSTD, zstd::bulk::compress(&body, 1).unwrap()),
    ];
    for encoding in [DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY] {
        for (codec, stored) in &bodies {
            let path = file_of((BYTE_ARRAY, encoding), directory.path(), 1, *codec, body.len(), stored);
            for check_sums in [true, false] {
                let error = rows_of(&open(&path).compare_page_checksums(check_sums)).unwrap_err().to_string();
                for part in ["row group 0", "\"c0\"", "page 0", "at most 1000 values", "3000000000 lengths"] {
                    assert!(error.contains(part), "{codec}: {part} in {error}");
                }
            }
        }
    }
}

#[test]
fn text_stored_as_lengths_is_read_whatever_its_codec_version_and_levels() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text.parquet");
    let text = |row: usize| {
        (!row.is_multiple_of(7)).then(|| format!("https://example.org/{}/{row}", "a".repeat(row % 300)))
    };
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..3000 {
        (0..row % 3).for_each(|place| lists.values().append_option(text(row + place)));
        lists.append(row % 5 > 0);
    }
    let none = StringArray::from_iter((0..3000).map(|_| None::<&str>));
    let required = StringArray::from_iter_values((0..3000).map(|row| format!("{row:09}")));
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("text", Arc::new((0..3000).map(text).collect::<StringArray>()), true),
        ("lists", Arc::new(lists.finish()), true),
        ("none", Arc::new(none), true),
        ("required", Arc::new(required), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for codec in codecs {
                let properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_dictionary_enabled(false)
                    .set_encoding(encoding)
                    .set_compression(codec)
                    .set_data_page_row_count_limit(700)
                    .set_write_batch_size(100)
                    .build();
                let file = std::fs::File::create(&path).unwrap();
                let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
                assert_eq!(rows_of(&open(&path)).unwrap(), 3000, "{encoding} {codec}");
                // Prefixes make more text of it than a page holds.
                let refused = rows_of(&open(&path).max_page(60_000)).err().map(|error| error.to_string());
                let refused = refused.is_some_and(|error| error.contains("text of at most 60000 bytes"));
                assert_eq!(refused, encoding == Encoding::DELTA_BYTE_ARRAY, "{encoding} {codec}");
            }
        }
    }
}
