//! A file of rejected rows outlives the load that wrote it: rejected rows stay in it, and it is restored.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::*;
use sawmill_loader::{LoadOptions, LoadReport, Mode, RejectOptions};
use sawmill_postgres::{Postgres, verify};
use sawmill_source::{ParquetFiles, Result};

use crate::database::{Database, run, small, with_control};
use crate::fixture::file_of;
use crate::rejects::read_rejects;

/// Files of 1,000 rows that are appended to a table which refuses numbers that end in 77.
struct Growing {
    database: Database,
    directory: tempfile::TempDir,
}

impl Growing {
    fn new() -> Self {
        let new = Self { database: Database::new(), directory: tempfile::tempdir().unwrap() };
        new.database.client().batch_execute("CREATE TABLE t (id bigint CHECK (id % 100 <> 77))").unwrap();
        new
    }

    fn file(&self, number: i64) {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(number * 1000..(number + 1) * 1000));
        let (_made, path) = file_of(vec![("id", ids)], 300);
        std::fs::copy(path, self.directory.path().join(format!("{number}.parquet"))).unwrap();
    }

    fn source(&self) -> ParquetFiles {
        let files = std::fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
        ParquetFiles::open(&files).unwrap()
    }

    fn rejected(&self) -> PathBuf {
        self.directory.path().join("rejected")
    }

    fn target(&self, table: &str, mode: Mode) -> Postgres {
        let rejects = RejectOptions { path: self.rejected(), most: None };
        self.database.target(table).mode(mode).rejects(Some(rejects))
    }

    fn append(&self, options: &LoadOptions) -> Result<LoadReport> {
        run(&self.source(), &self.target("t", Mode::Append), options)
    }

    /// The table and the file of rejected rows together have the source's rows.
    fn is_whole(&self) -> bool {
        let (source, target) = (self.source(), self.target("t", Mode::Append));
        with_control(|control| verify(&source, &target, &small(), control)).unwrap().matches()
    }
}

fn rows(path: &Path) -> usize {
    read_rejects(path).len()
}

#[test]
fn a_growing_directory_keeps_the_rejected_rows_of_its_earlier_files() {
    for verified in [false, true] {
        let growing = Growing::new();
        let options = LoadOptions { verify: verified, ..small() };
        growing.file(0);
        assert_eq!(growing.append(&options).unwrap().rows_rejected, 10);
        growing.file(1);
        let second = growing.append(&options).unwrap();
        assert_eq!((second.files_loaded, second.files_already, second.rows_loaded), (1, 1, 990));
        assert_eq!(rows(&growing.rejected()), 20);
        assert!(growing.is_whole());
        growing.file(2);
        growing.append(&options).unwrap();
        assert_eq!((rows(&growing.rejected()), growing.database.count("t")), (30, 2970));
        assert!(growing.is_whole());
    }
}

#[test]
fn files_that_cannot_be_compared_are_named_and_not_called_verified() {
    let growing = Growing::new();
    growing.file(0);
    growing.append(&small()).unwrap();
    growing.file(1);
    let second = growing.append(&small()).unwrap();
    assert!(second.verified.is_none(), "{second:?}");
    let of_first = second.notes.iter().find(|note| note.contains("0.parquet")).unwrap();
    assert!(of_first.contains("not compared with what was loaded"), "{of_first}");
    assert!(second.notes.iter().any(|note| note.starts_with("verified what this run loaded")));
}

#[test]
fn a_complete_load_writes_a_missing_file_of_rejected_rows_again() {
    let growing = Growing::new();
    growing.file(0);
    let first = growing.append(&small()).unwrap();
    assert!(
        first.notes.iter().any(|note| note.contains("could not be loaded and went to")),
        "{:?}",
        first.notes
    );
    let was = read_rejects(&growing.rejected());
    std::fs::remove_file(growing.rejected()).unwrap();
    let unnamed = run(&growing.source(), &growing.database.target("t").mode(Mode::Append), &small()).unwrap();
    assert!(unnamed.notes.iter().any(|note| note.contains("--rejects FILE")), "{:?}", unnamed.notes);
    let again = growing.append(&small()).unwrap();
    assert_eq!((again.rows_loaded, again.rows_rejected), (0, 10));
    assert_eq!(read_rejects(&growing.rejected()), was);
    assert!(growing.is_whole());
}

#[test]
fn a_load_into_another_table_starts_a_new_file() {
    let growing = Growing::new();
    growing.file(0);
    growing.append(&small()).unwrap();
    growing.database.client().batch_execute("CREATE TABLE other (id bigint CHECK (id <> 1500))").unwrap();
    std::fs::remove_file(growing.directory.path().join("0.parquet")).unwrap();
    growing.file(1);
    run(&growing.source(), &growing.target("other", Mode::Append), &small()).unwrap();
    assert_eq!(rows(&growing.rejected()), 1);
}

#[test]
fn rejected_rows_with_other_columns_are_not_overwritten() {
    let growing = Growing::new();
    growing.file(0);
    growing.append(&small()).unwrap();
    growing.database.client().batch_execute("ALTER TABLE t ADD COLUMN word text").unwrap();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new(Int64Array::from(vec![77]))), ("word", Arc::new(StringArray::from(vec!["a"])))];
    let (_made, path) = file_of(columns, 10);
    let source = ParquetFiles::open(&[path]).unwrap();
    let error = run(&source, &growing.target("t", Mode::Append), &small()).unwrap_err();
    assert!(error.what().contains("with other columns"), "{error}");
    assert_eq!(rows(&growing.rejected()), 10);
}

#[test]
fn a_table_that_is_emptied_first_starts_a_new_file() {
    let growing = Growing::new();
    growing.file(0);
    growing.append(&small()).unwrap();
    std::fs::remove_file(growing.directory.path().join("0.parquet")).unwrap();
    growing.file(1);
    run(&growing.source(), &growing.target("t", Mode::Truncate), &small()).unwrap();
    assert_eq!((rows(&growing.rejected()), growing.database.count("t")), (10, 990));
    assert!(growing.is_whole());
}

#[test]
fn an_append_writes_a_missing_file_with_the_rejected_rows_of_all_its_files() {
    let growing = Growing::new();
    for number in [0, 1] {
        growing.file(number);
        growing.append(&small()).unwrap();
    }
    let mut was = read_rejects(&growing.rejected());
    std::fs::remove_file(growing.rejected()).unwrap();
    let again = growing.append(&small()).unwrap();
    assert_eq!((again.rows_loaded, again.rows_rejected), (0, 20));
    assert!(again.notes.iter().any(|note| note.contains("20 rows of earlier loads")), "{:?}", again.notes);
    let mut now = read_rejects(&growing.rejected());
    was.sort();
    now.sort();
    assert_eq!(now, was);
    assert!(growing.is_whole());
    // A new file beside them.
    std::fs::remove_file(growing.rejected()).unwrap();
    growing.file(2);
    growing.append(&small()).unwrap();
    assert_eq!((rows(&growing.rejected()), growing.database.count("t")), (30, 2970));
    assert!(growing.is_whole());
}
