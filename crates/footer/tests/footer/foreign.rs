//! Files of other writers equal the `parquet` crate's metadata in every field.
//!
//! Those in `fixtures/foreign` are made by `scripts/fixtures.py`. `SAWMILL_FOREIGN` names a directory of
//! freshly made ones, `SAWMILL_PARQUET_TESTING` a checkout of apache/parquet-testing.

use std::path::{Path, PathBuf};

use sawmill_footer::{Footer, Method, Options};

use crate::equality::{assert_equal, by_parquet};
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

/// Compares what either decoder says; false if the crate cannot read the file.
fn compare(path: &Path) -> bool {
    let file = std::fs::read(path).unwrap();
    let theirs = by_parquet(samples::metadata(&file));
    for method in [Method::Scalar, Method::Portable, Method::Avx2, Method::Avx512] {
        let ours = Footer::from_file_bytes(&file, &Options::new().method(method));
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_equal(ours, theirs);
                ours.check(|finding| panic!("{}: {finding}", path.display()));
                ours.read_page_indexes(file.as_slice()).unwrap_or_else(|error| panic!("{error}"));
            }
            (Err(error), Ok(_)) => panic!("{}: {error}", path.display()),
            (_, Err(_)) => {}
        }
    }
    theirs.is_ok()
}

#[test]
fn fixtures_of_foreign_writers_equal_the_parquet_crates_metadata() {
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign")];
    match std::env::var_os("SAWMILL_FOREIGN") {
        Some(directory) => directories.push(directory.into()),
        None => println!("SAWMILL_FOREIGN is not set: no freshly made files are compared"),
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
        println!("skipped: SAWMILL_PARQUET_TESTING names no checkout of apache/parquet-testing");
        return;
    };
    let files = parquet_files(&Path::new(&checkout).join("data"));
    let compared = files.iter().filter(|path| compare_loosely(path)).count();
    println!("{compared} of {} files compared", files.len());
    assert!(compared > 0);
}

/// As [`compare`], of files some of which are broken on purpose: what is checked beyond equality does not
/// hold for them.
fn compare_loosely(path: &Path) -> bool {
    let file = std::fs::read(path).unwrap();
    // Some are encrypted or no whole files.
    let Ok(ours) = Footer::from_file_bytes(&file, &Options::new()) else { return false };
    let Ok(theirs) = by_parquet(samples::metadata(&file)) else { return false };
    assert_equal(&ours, &theirs);
    true
}
