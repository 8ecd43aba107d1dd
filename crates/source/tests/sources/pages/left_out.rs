//! Columns that cannot be read cost nothing unless they are wanted, and then the error names them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use arrow_schema::{DataType, Field, Schema};
use sawmill_profile::Profile;
use sawmill_source::{Control, Hive, ParquetFiles, Result, Source, TableFile, UnlikeFiles};
use sawmill_store::{Location, ObjectUrl};

use crate::thrift_writer::ThriftWriter;

/// A column: physical type, length, converted type, precision, codec.
type Column<'a> = (&'a str, i32, Option<i32>, Option<(i32, Option<i32>)>, i32);

const DECIMAL: i32 = 5;

const GOOD: Column<'_> = ("good", 2, None, None, 0);
/// Columns that Sawmill cannot read, each for another reason.
const BAD: [Column<'_>; 4] = [
    ("of an unknown type", 42, None, None, 0),
    ("with too many digits", 7, Some(40), Some((DECIMAL, Some(80))), 0),
    ("without digits", 1, None, Some((DECIMAL, None)), 0),
    ("of an unknown codec", 1, None, None, 77),
];

/// An encoding that the format does not have, and columns that state it: of one the pages have it.
const UNKNOWN: i32 = 29;
const OF_KNOWN_PAGES: &str = "of known pages";
const OF_UNKNOWN_PAGES: &str = "of unknown pages";

/// Writes a file of these columns, with three rows of zeros.
fn write(path: &Path, columns: &[Column<'_>]) {
    let mut bytes = b"PAR1".to_vec();
    let mut starts = Vec::new();
    for (name, ..) in columns {
        let mut header = ThriftWriter::new();
        header.i32(1, 0);
        header.i32(2, 120);
        header.i32(3, 120);
        header.begin(5);
        let encoding = if *name == OF_UNKNOWN_PAGES { UNKNOWN } else { 0 };
        for (field, number) in [(1, 3), (2, encoding), (3, 3), (4, 3)] {
            header.i32(field, number);
        }
        header.stop();
        header.stop();
        starts.push(bytes.len());
        bytes.extend(header.into_bytes());
        bytes.extend([0; 120]);
    }
    let mut footer = ThriftWriter::new();
    footer.i32(1, 1);
    footer.list(2, 12, columns.len() as u64 + 1);
    footer.begin_element();
    footer.binary(4, b"root");
    footer.i32(5, columns.len() as i32);
    footer.stop();
    for (name, physical, length, converted, _) in columns {
        footer.begin_element();
        footer.i32(1, *physical);
        if let Some(length) = length {
            footer.i32(2, *length);
        }
        footer.i32(3, 0);
        footer.binary(4, name.as_bytes());
        if let Some((converted, precision)) = converted {
            footer.i32(6, *converted);
            footer.i32(7, 2);
            if let Some(precision) = precision {
                footer.i32(8, *precision);
            }
        }
        footer.stop();
    }
    footer.i64(3, 3);
    footer.list(4, 12, 1);
    footer.begin_element();
    footer.list(1, 12, columns.len() as u64);
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    for ((name, physical, .., codec), (start, end)) in columns.iter().zip(starts.iter().zip(ends)) {
        footer.begin_element();
        footer.i64(2, 0);
        footer.begin(3);
        footer.i32(1, *physical);
        footer.list(2, 5, 1);
        footer.integer(if *name == GOOD.0 { 0 } else { UNKNOWN.into() });
        footer.list(3, 8, 1);
        footer.bytes_value(name.as_bytes());
        footer.i32(4, *codec);
        let length = (end - start) as i64;
        for (field, number) in [(5, 3), (6, length), (7, length), (9, *start as i64)] {
            footer.i64(field, number);
        }
        footer.stop();
        footer.stop();
    }
    footer.i64(2, bytes.len() as i64);
    footer.i64(3, 3);
    footer.stop();
    footer.stop();
    let footer = footer.into_bytes();
    bytes.extend(&footer);
    bytes.extend((footer.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    std::fs::write(path, bytes).unwrap();
}

fn open(paths: &[&Path], columns: &[&str]) -> Result<ParquetFiles> {
    let places: Vec<_> = paths.iter().map(|path| Location::Path(path.to_path_buf())).collect();
    let none = |url: &ObjectUrl| Err(sawmill_store::Error::new(sawmill_store::Kind::Usage, url.to_string()));
    let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
    ParquetFiles::open_located(&places, &none, Hive::Ignored, 1 << 20, &columns, UnlikeFiles::default())?
        .select(&columns, &[])
}

fn rows(source: &dyn Source) -> usize {
    let mut reader = source.reader(128);
    let mut rows = 0;
    for unit in source.plan(1000).iter().flatten() {
        reader.start(unit).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            rows += batch.num_rows();
        }
    }
    rows
}

#[test]
fn the_other_columns_are_read_and_a_wanted_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd.parquet");
    for bad in BAD {
        for columns in [[GOOD, bad], [bad, GOOD]] {
            write(&path, &columns);
            let files = open(&[&path], &["good"]).unwrap();
            assert_eq!((rows(&files), files.schema().fields().len()), (3, 1), "{}", bad.0);
            for wanted in [&["good", bad.0][..], &[bad.0], &[]] {
                let error = open(&[&path], wanted).err().unwrap().to_string();
                let expected = format!("column {:?} cannot be read: ", bad.0);
                assert!(error.contains(&expected) && error.contains("odd.parquet"), "{error}");
                assert!(error.contains("name the other columns with --columns"), "{error}");
            }
            let (cancel, profile) = (AtomicBool::new(false), Profile::new());
            let phase = profile.phase("read");
            let control = Control::new(&cancel, &phase);
            let condition = format!("\"{}\" >= 1", bad.0).parse().unwrap();
            let error = files.filtered(condition, &control).err().unwrap().to_string();
            assert!(error.contains("cannot be read"), "{error}");
        }
    }
    let all = [GOOD].into_iter().chain(BAD).collect::<Vec<_>>();
    write(&path, &all);
    assert_eq!(rows(&open(&[&path], &["good"]).unwrap()), 3);
}

#[test]
fn a_table_is_read_without_a_column_that_cannot_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd.parquet");
    let none = |url: &ObjectUrl| Err(sawmill_store::Error::new(sawmill_store::Kind::Usage, url.to_string()));
    for bad in BAD {
        write(&path, &[GOOD, bad]);
        let of = |name: &str| Field::new(name, DataType::Int64, false);
        let (good, physical) =
            (of("good"), [("delta.columnMapping.physicalName".to_owned(), bad.0.to_owned())]);
        let tables = [
            (bad.0, Schema::new(vec![good.clone(), of(bad.0)])),
            (
                "mapped",
                Schema::new(vec![with_name_in_files(&good), of("mapped").with_metadata(physical.into())]),
            ),
        ];
        for (name, table) in tables {
            let bytes = path.metadata().unwrap().len();
            let place = Location::Path(path.clone());
            let files = [TableFile { place, bytes, given: Vec::new(), deleted: None }];
            let opened = |columns: &[&str]| {
                let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
                ParquetFiles::open_table(&table, &files, &none, 1 << 20, &columns)?.select(&columns, &[])
            };
            let files = opened(&["good"]).unwrap();
            assert_eq!((rows(&files), files.schema().fields().len()), (3, 1), "{}", bad.0);
            for columns in [&[][..], &[name], &[name, "good"]] {
                let error = opened(columns).err().unwrap().to_string();
                assert!(error.contains("cannot be read") && error.contains("odd.parquet"), "{error}");
            }
            let (cancel, profile) = (AtomicBool::new(false), Profile::new());
            let phase = profile.phase("read");
            let condition = format!("\"{name}\" is null").parse().unwrap();
            let error = files.filtered(condition, &Control::new(&cancel, &phase)).err().unwrap().to_string();
            assert!(error.contains("cannot be read"), "{error}");
        }
    }
}

/// The same column in a table that maps its columns.
fn with_name_in_files(field: &Field) -> Field {
    let name = [("delta.columnMapping.physicalName".to_owned(), field.name().clone())];
    field.clone().with_metadata(name.into())
}

#[test]
fn an_unknown_encoding_matters_only_if_a_page_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd.parquet");
    let (known, unknown) = ((OF_KNOWN_PAGES, 2, None, None, 0), (OF_UNKNOWN_PAGES, 2, None, None, 0));
    write(&path, &[known, unknown]);
    assert_eq!(rows(&open(&[&path], &[OF_KNOWN_PAGES]).unwrap()), 3);
    let files = open(&[&path], &[]).unwrap();
    let error = files.reader(128).start(&files.plan(10)[0][0]).unwrap_err().to_string();
    assert!(error.contains("unknown (29)") && error.contains(OF_UNKNOWN_PAGES), "{error}");
}

#[test]
fn a_column_that_only_some_files_have_readable_is_left_out_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let (odd, even) = (directory.path().join("odd.parquet"), directory.path().join("even.parquet"));
    for bad in BAD {
        write(&odd, &[GOOD, bad]);
        write(&even, &[(bad.0, 1, None, None, 0), GOOD]);
        for paths in [[odd.as_path(), &even], [&even, &odd]] {
            assert_eq!(rows(&open(&paths, &["good"]).unwrap()), 6);
            assert!(open(&paths, &[bad.0]).is_err());
        }
    }
}
