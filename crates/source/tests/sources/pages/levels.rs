//! Levels of pages without checksums: levels that writers make are read; levels that no writer makes are an error that
//! names the page.

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use sawmill_source::{ParquetFiles, Result, Source};

use crate::thrift_writer::ThriftWriter;

const CODECS: [i32; 5] = [0, 1, 2, 4, 6];

/// A page of INT32: its number of values, its levels, and how many values are stored. In version 2 its header counts
/// NULLs, rows, and the bytes of definition and of repetition levels.
#[derive(Clone)]
struct Page {
    values: i32,
    levels: Vec<u8>,
    stored: i32,
    version_2: Option<[i32; 4]>,
    denies_codec: bool,
}

/// Levels of version 1, with their length before them.
fn levels(runs: &[u8]) -> Vec<u8> {
    [&(runs.len() as u32).to_le_bytes(), runs].concat()
}

/// A page of version 1 with ten values and these runs of definition levels.
fn ten(runs: &[u8]) -> Page {
    Page { values: 10, levels: levels(runs), stored: 10, version_2: None, denies_codec: false }
}

/// A page of version 1 in lists.
fn of_lists(values: i32, repetition: &[u8]) -> Page {
    let levels = [levels(repetition), levels(&[values as u8 * 2, 1])].concat();
    Page { values, levels, stored: values, version_2: None, denies_codec: false }
}

/// A page of version 2 in lists, which states that it has so many rows.
fn of_lists_2(values: i32, repetition: &[u8], rows: i32) -> Page {
    let levels = [repetition, &[values as u8 * 2, 1]].concat();
    let version_2 = Some([0, rows, 2, repetition.len() as i32]);
    Page { values, levels, stored: values, version_2, denies_codec: false }
}

/// A page of version 2 with ten values and without NULLs.
fn second(counts: [i32; 4]) -> Page {
    Page { values: 10, levels: vec![20, 1], stored: 10, version_2: Some(counts), denies_codec: false }
}

fn compressed(codec: i32, bytes: &[u8]) -> Vec<u8> {
    match codec {
        1 => {
            // One literal of up to 60 bytes.
            let len = bytes.len() as u8;
            if len == 0 { vec![0] } else { [&[len, (len - 1) << 2], bytes].concat() }
        }
        2 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        4 => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 1, 16);
            encoder.write_all(bytes).unwrap();
            encoder.into_inner()
        }
        6 => zstd::bulk::compress(bytes, 1).unwrap(),
        _ => bytes.to_vec(),
    }
}

impl Page {
    fn bytes(&self, codec: i32) -> Vec<u8> {
        let values: Vec<u8> = (0..self.stored).flat_map(i32::to_le_bytes).collect();
        let whole = self.levels.len() + values.len();
        let body = match self.version_2 {
            None => compressed(codec, &[&self.levels[..], &values].concat()),
            Some(_) => [&self.levels[..], &compressed(codec, &values)].concat(),
        };
        let mut header = ThriftWriter::new();
        header.i32(1, if self.version_2.is_some() { 3 } else { 0 });
        header.i32(2, whole as i32);
        header.i32(3, body.len() as i32);
        header.begin(if self.version_2.is_some() { 8 } else { 5 });
        header.i32(1, self.values);
        let numbers = match self.version_2 {
            None => vec![0, 3, 3],
            Some([nulls, rows, definition, repetition]) => vec![nulls, rows, 0, definition, repetition],
        };
        for (field, number) in (2..).zip(numbers) {
            header.i32(field, number);
        }
        if self.denies_codec {
            header.bool(7, false);
        }
        header.stop();
        header.stop();
        [header.into_bytes(), body].concat()
    }
}

/// A file of one column `n`, optional or repeated, of these pages.
fn file(directory: &Path, codec: i32, rows: i64, pages: &[Page], is_repeated: bool) -> PathBuf {
    let pages_bytes: Vec<u8> = pages.iter().flat_map(|page| page.bytes(codec)).collect();
    let values: i64 = pages.iter().map(|page| i64::from(page.values)).sum();
    let length = pages_bytes.len() as i64;
    let mut footer = ThriftWriter::new();
    footer.i32(1, 1);
    footer.list(2, 12, 2);
    footer.begin_element();
    footer.binary(4, b"root");
    footer.i32(5, 1);
    footer.stop();
    footer.begin_element();
    footer.i32(1, 1);
    footer.i32(3, if is_repeated { 2 } else { 1 });
    footer.binary(4, b"n");
    footer.stop();
    footer.i64(3, rows);
    footer.list(4, 12, 1);
    footer.begin_element();
    footer.list(1, 12, 1);
    footer.begin_element();
    footer.i64(2, 0);
    footer.begin(3);
    footer.i32(1, 1);
    footer.list(2, 5, 2);
    footer.integer(0);
    footer.integer(3);
    footer.list(3, 8, 1);
    footer.bytes_value(b"n");
    footer.i32(4, codec);
    for (field, number) in [(5, values), (6, length), (7, length), (9, 4)] {
        footer.i64(field, number);
    }
    footer.stop();
    footer.stop();
    footer.i64(2, length);
    footer.i64(3, rows);
    footer.stop();
    footer.binary(6, b"parquet-cpp version 1.5.1-SNAPSHOT");
    footer.stop();
    let footer = footer.into_bytes();
    let footer_len = (footer.len() as u32).to_le_bytes();
    let path = directory.join("levels.parquet");
    std::fs::write(&path, [b"PAR1", &pages_bytes[..], &footer, &footer_len, b"PAR1"].concat()).unwrap();
    path
}

/// Reads the file: how many rows it has, and how many of them are not NULL.
fn read(path: &Path) -> Result<(usize, usize)> {
    let source = ParquetFiles::open(&[path])?;
    let mut reader = source.reader(128);
    let (mut rows, mut nulls) = (0, 0);
    for unit in source.plan(1500).iter().flatten() {
        reader.start(unit)?;
        while let Some(batch) = reader.next_batch()? {
            rows += batch.num_rows();
            nulls += batch.column(0).null_count();
        }
    }
    Ok((rows, rows - nulls))
}

#[test]
fn what_writers_make_of_levels_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let all_null = Page { stored: 0, ..ten(&[20, 0]) };
    let half = Page { stored: 5, ..ten(&[5, 0b0001_1111, 0]) };
    let optional = [
        ("a run", vec![ten(&[20, 1])], 10),
        ("a run that goes on behind the page", vec![ten(&[40, 1])], 10),
        ("groups of eight", vec![ten(&[5, 0xff, 3])], 10),
        ("a last group that is cut off", vec![ten(&[7, 0xff, 3])], 10),
        ("bits behind the last level", vec![ten(&[5, 0xff, 0xff])], 10),
        ("no value", vec![all_null], 0),
        ("values and none, in two runs", vec![half], 5),
        ("padding behind the levels", vec![ten(&[20, 1, 0, 0, 0])], 10),
        ("version 2", vec![second([0, 10, 2, 0])], 10),
        ("Arrow C++ before release 3", vec![Page { denies_codec: true, ..second([0, 10, 2, 0]) }], 10),
        ("both versions", vec![ten(&[20, 1]), second([0, 10, 2, 0])], 20),
    ];
    for codec in CODECS {
        for (what, pages, values) in &optional {
            let rows = 10 * pages.len() as i64;
            let path = file(directory.path(), codec, rows, pages, false);
            assert_eq!(read(&path).unwrap(), (rows as usize, *values), "{what}, codec {codec}");
        }
        // The first row continues on the second page.
        let spanning = [of_lists(3, &[3, 0b110]), of_lists(2, &[3, 0b01])];
        assert_eq!(read(&file(directory.path(), codec, 2, &spanning, true)).unwrap(), (2, 2), "{codec}");
        // Arrow C++ before release 12 and parquet.js state the number of values.
        let stated = [of_lists_2(3, &[3, 0b010], 3), of_lists_2(14, &[4, 0, 24, 1], 14)];
        let path = file(directory.path(), codec, 4, &stated, true);
        assert_eq!(read(&path).unwrap(), (4, 4), "{codec}");
        let source = ParquetFiles::open(&[&path]).unwrap();
        let last = source.plan(3).into_iter().flatten().next_back().unwrap();
        let mut reader = source.reader(128);
        reader.start(&last).unwrap();
        let batch = reader.next_batch().unwrap().unwrap();
        assert_eq!((last.key.first_row, batch.num_rows()), (3, 1), "{codec}");
        assert_eq!(batch.column(0).as_list::<i32>().value(0).len(), 13, "{codec}");
    }
}

#[test]
fn a_page_of_version_2_that_continues_a_row_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let pages = [of_lists_2(3, &[3, 0b110], 1), of_lists_2(2, &[3, 0b01], 1)];
    let error = read(&file(directory.path(), 0, 2, &pages, true)).unwrap_err().to_string();
    assert!(error.contains("begin with a row") && error.contains("page 1"), "{error}");
    assert!(error.contains("pyarrow") && !error.contains("damaged"), "{error}");
}

#[test]
fn a_row_of_more_values_than_memory_may_hold_is_refused_within_a_page_and_across_pages() {
    let directory = tempfile::tempdir().unwrap();
    let run = |len: u64, level: u8| {
        let mut run = ThriftWriter::new();
        run.varint(len << 1);
        [run.into_bytes(), vec![level]].concat()
    };
    let page = |repetition: &[u8], values: u64| {
        let levels = [levels(repetition), levels(&run(values, 1))].concat();
        Page { values: values as i32, levels, stored: 0, version_2: None, denies_codec: false }
    };
    let first = |values: u64| page(&[run(1, 0), run(values - 1, 1)].concat(), values);
    let further = |values: u64| page(&run(values, 1), values);
    let spanning = vec![first(9_000_000), further(9_000_000)];
    for (pages, at) in [(vec![first(18_000_000)], "page 0"), (spanning, "page 1")] {
        let path = file(directory.path(), 0, 1, &pages, true);
        let error = read(&path).unwrap_err().to_string();
        let expected = "expected rows with at most 16777216 values in a list, found one with 18000000";
        for part in [expected, at, "\"n\"", "--max-page"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn levels_that_do_not_fit_are_an_error_that_names_the_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut beyond = ten(&[20, 1]);
    beyond.levels[..4].copy_from_slice(&1000_u32.to_le_bytes());
    let good = || vec![ten(&[20, 1])];
    let of_one = |page| (10, vec![page]);
    let optional = [
        ("expected 10 definition levels, found 9", of_one(ten(&[18, 1]))),
        ("expected 10 definition levels, found 8", of_one(ten(&[5, 0xff]))),
        ("expected 10 definition levels, found 0", of_one(ten(&[]))),
        ("expected a run of definition levels", of_one(ten(&[20]))),
        ("expected definition levels of at most 1, found 3", of_one(ten(&[20, 3]))),
        ("expected the levels within the page's 46 bytes, found that they end at 1004", of_one(beyond)),
        ("expected the levels within the page's 42 bytes", of_one(second([0, 10, 100, 0]))),
        ("expected a num_nulls of 0, as the page's levels have, found 3", of_one(second([3, 10, 2, 0]))),
        ("expected a num_rows of 10, as the page's levels have, found 9", of_one(second([0, 9, 2, 0]))),
        ("expected pages of 12 rows, as the row group has, found 10 in all of them", (12, good())),
        ("expected pages of 8 rows, as the row group has, found 10 up to this one", (8, good())),
    ];
    let lists = [
        ("expected the repetition level 0 at the start of a row", (1, vec![of_lists(3, &[3, 0b011])])),
        ("expected repetition levels of at most 1, found 3", (3, vec![of_lists(3, &[6, 3])])),
        ("expected 3 repetition levels, found 2", (2, vec![of_lists(3, &[4, 0])])),
        ("expected a num_rows of 2", (2, vec![of_lists_2(3, &[3, 0b010], 1)])),
        (
            "expected pages of 4 rows, as the row group has, found 3 in all of them",
            (4, vec![of_lists(3, &[6, 0])]),
        ),
    ];
    let cases = optional.map(|case| (false, case)).into_iter().chain(lists.map(|case| (true, case)));
    for (is_repeated, (expected, (rows, pages))) in cases {
        for codec in CODECS.into_iter().filter(|codec| *codec == 0 || !expected.contains("42 bytes")) {
            let path = file(directory.path(), codec, rows, &pages, is_repeated);
            let error = read(&path).unwrap_err().to_string();
            for part in ["levels.parquet", "row group 0", "\"n\"", expected] {
                assert!(error.contains(part), "codec {codec}: {part} in {error}");
            }
            assert!(
                expected.contains("in all") || error.contains("page 0, byte 4"),
                "codec {codec}: {error}"
            );
        }
    }
}
