//! Files of other writers equal the `parquet` crate's metadata in every field.
//!
//! `scripts/peers/files/fixtures.py` generates those in `fixtures/foreign`. `SAWMILL_FOREIGN` names a directory
//! of freshly generated ones, `SAWMILL_PARQUET_TESTING` a checkout of apache/parquet-testing.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use parquet::file::metadata::ParquetMetaDataReader;
use sawmill_footer::{Footer, Method, Options};

use crate::broken::exercise;
use crate::equality::{assert_equal, by_parquet};
use crate::interop::assert_conversions;
use crate::methods::assert_agreement;
use crate::page_index_equality::{assert_methods_read_the_same_page_indexes, assert_page_indexes};
use crate::samples;

fn parquet_files(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect();
    found.sort();
    found
}

/// Compares the results of both decoders; false if the crate cannot read the file.
fn compare(path: &Path) -> bool {
    let file = std::fs::read(path).unwrap();
    let theirs = by_parquet(samples::metadata(&file));
    for method in [Method::Scalar, Method::Portable, Method::Avx2] {
        let ours = Footer::from_file_bytes(&file, &Options::new().method(method));
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_equal(ours, theirs);
                sawmill_inspect::check(ours, |finding| panic!("{}: {finding}", path.display()));
            }
            (Err(error), Ok(_)) => panic!("{}: {error}", path.display()),
            (_, Err(_)) => {}
        }
    }
    // Unchanged files have no findings, not even in their page indexes.
    if let Ok(ours) = Footer::from_file_bytes(&file, &Options::new()) {
        let checked = sawmill_inspect::check_file(&ours, file.as_slice(), |finding| {
            panic!("{}: {finding}", path.display())
        });
        checked.unwrap();
    }
    if theirs.is_ok() {
        assert_conversions(&path.display().to_string(), samples::metadata(&file));
    }
    let (of_columns, of_offsets) = assert_page_indexes(&path.display().to_string(), &file);
    println!("{of_columns} column indexes, {of_offsets} offset indexes");
    theirs.is_ok()
}

#[test]
fn fixtures_of_foreign_writers_equal_the_parquet_crates_metadata() {
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign")];
    match std::env::var_os("SAWMILL_FOREIGN") {
        Some(directory) => directories.push(directory.into()),
        None => println!("skipped: SAWMILL_FOREIGN is not set, so no freshly generated files are compared"),
    }
    for directory in directories {
        let files = parquet_files(&directory);
        assert!(!files.is_empty(), "{}", directory.display());
        for path in files {
            println!("{}", path.display());
            assert!(compare(&path), "{}", path.display());
        }
    }
}

#[test]
fn the_files_of_parquet_testing_equal_the_parquet_crates_metadata() {
    let Some(checkout) = std::env::var_os("SAWMILL_PARQUET_TESTING") else {
        println!("skipped: SAWMILL_PARQUET_TESTING does not name a checkout of apache/parquet-testing");
        return;
    };
    let mut directories = vec![Path::new(&checkout).join("data"), Path::new(&checkout).join("bad_data")];
    let (mut files, mut compared) = (0, 0);
    while let Some(directory) = directories.pop() {
        for path in parquet_files(&directory) {
            println!("{}", path.display());
            files += 1;
            compared += usize::from(compare_loosely(&path));
        }
        let entries = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        directories.extend(entries.filter(|path| path.is_dir()));
    }
    println!("{compared} of {files} files compared");
    assert!(compared > 0);
}

/// Like [`compare`], for files that may be broken on purpose, so only equality is checked. This decoder must
/// read what the crate can read, and all methods must agree in any case.
fn compare_loosely(path: &Path) -> bool {
    let file = std::fs::read(path).unwrap();
    let ours = match Footer::from_file_bytes(&file, &Options::new()) {
        Ok(ours) => ours,
        Err(error) => {
            println!("{}: {error}", path.display());
            assert!(ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file)).is_err());
            return false;
        }
    };
    exercise(ours.bytes());
    assert_agreement(ours.bytes(), &Options::new());
    assert_methods_read_the_same_page_indexes(&path.display().to_string(), &file);
    match by_parquet(ours.bytes()) {
        Ok(theirs) => assert_equal(&ours, &theirs),
        Err(error) => println!("{}: the crate cannot read it: {error}", path.display()),
    }
    true
}
