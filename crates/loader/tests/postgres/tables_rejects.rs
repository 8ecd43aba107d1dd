//! Nested values as tables of their own, of which records with a bad value are put aside whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::*;
use sawmill_loader::{Control, Kind, ParquetFiles, PostgresTables, RejectOptions, Standing};
use sawmill_profile::Profile;

use crate::database::{Database, small, with_control};
use crate::fixture::file_of;
use crate::rejects::put_aside;
use crate::tables::load;

/// Rows of `id, notes`, of which notes are lists of structs with a text: those of some rows have a 0x00 there, and
/// one has it beside the list.
fn with_bad_records(rows: i32, bad: &[i32], bad_name: i32) -> (tempfile::TempDir, ParquetFiles) {
    let mut notes = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    let mut names = StringBuilder::new();
    for id in 0..rows {
        names.append_value(if id == bad_name { "nul\0".to_owned() } else { format!("name {id}") });
        for note in 0..id % 4 + 1 {
            let text = if bad.contains(&id) && note == 0 { "nul\0" } else { "fine" };
            notes.values().append_value([Some("first"), Some(text)]);
        }
        notes.append(true);
    }
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", ids), ("name", Arc::new(names.finish())), ("notes", Arc::new(notes.finish()))];
    let (directory, path) = file_of(columns, 400);
    (directory, ParquetFiles::open(&[path]).unwrap())
}

#[test]
fn a_record_with_a_bad_value_anywhere_is_put_aside_whole() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    let path = directory.path().join("rejects.parquet");
    let target = |most| database.target("t").rejects(Some(RejectOptions { path: path.clone(), most }));
    let error = load(&source, target(Some(4)), false, &small()).unwrap_err();
    assert!(error.kind() == Kind::Value && error.what().contains("5 rows cannot be loaded"), "{error}");
    assert!(error.what().contains("notes_item, column \"value\": the text"), "{error}");
    assert!(error.advice().contains("--max-rejects") && !database.has("t"));
    let reports = load(&source, target(Some(5)), true, &small()).unwrap();
    assert_eq!((reports[0].result.rows, reports[0].result.rows_rejected), (995, 5));
    assert!(reports.iter().all(|report| report.result.verified.as_ref().unwrap().matches()));
    let aside = put_aside(&path);
    let places: Vec<i64> = aside.iter().map(|(group, row, _)| i64::from(*group) * 400 + row).collect();
    assert_eq!(places, [3, 4, 399, 500, 801]);
    assert!(aside[0].2.starts_with("notes_item, column \"value\": the text"), "{}", aside[0].2);
    assert!(aside[3].2.starts_with("column \"name\": the text"), "{}", aside[3].2);
    // None of their rows is in any table, and all of the others are.
    for table in ["t", "t_notes", "t_notes_item"] {
        assert_eq!(database.count(&format!("{table} WHERE _row IN (3, 4, 399, 500, 801)")), 0, "{table}");
    }
    let lists: i64 = (0..1000).filter(|id| !places.contains(id)).map(|id| id % 4 + 1).sum();
    assert_eq!((database.count("t_notes"), database.count("t_notes_item")), (lists, 2 * lists));
    assert_eq!(database.count("_sawmill.rejects"), 5);
    let again = load(&source, target(Some(5)), true, &small()).unwrap();
    assert!(again.iter().all(|report| report.result.standing == Standing::Complete));
    assert_eq!((again[0].result.rows_rejected, database.count("_sawmill.rejects")), (5, 5));
    // Tables and file together are the source.
    let tables = PostgresTables::new(&source, target(None), false).unwrap();
    let compare = || with_control(|control| tables.verify(&small(), control)).unwrap();
    let verified = compare();
    assert!(verified.iter().all(|verified| verified.result.matches()));
    assert_eq!(verified[0].result.put_aside, 5);
    database.client().batch_execute("DELETE FROM t_notes_item WHERE _row = 7 AND _ordinal = 1").unwrap();
    assert!(!compare()[2].result.matches());
    // A file that names other rows.
    std::fs::copy(directory.path().join("data.parquet"), &path).unwrap();
    let error = with_control(|control| tables.verify(&small(), control)).unwrap_err();
    assert!(error.what().contains("_sawmill_file"), "{error}");
}

#[test]
fn records_among_those_that_are_wanted_have_the_numbers_of_the_file() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    let path = directory.path().join("rejects.parquet");
    let some =
        with_control(|control| source.filtered("id > 3 and id <> 401".parse().unwrap(), control)).unwrap();
    let target = database.target("t").rejects(Some(RejectOptions { path: path.clone(), most: None }));
    let reports = load(&some, target.clone(), false, &small()).unwrap();
    assert_eq!((reports[0].result.rows, reports[0].result.rows_rejected), (991, 4));
    let places: Vec<(i32, i64)> = put_aside(&path).into_iter().map(|(group, row, _)| (group, row)).collect();
    assert_eq!(places, [(0, 4), (0, 399), (1, 100), (2, 1)]);
    let tables = PostgresTables::new(&some, target, false).unwrap();
    let verified = with_control(|control| tables.verify(&small(), control)).unwrap();
    assert!(verified.iter().all(|verified| verified.result.matches()));
}

#[test]
fn tables_of_a_load_that_was_broken_off_are_without_the_same_records() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
    let target = || database.target("t").rejects(Some(rejects.clone()));
    // It ends when it comes to the last table.
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("load");
    let tables = PostgresTables::new(&source, target(), false).unwrap();
    let stopped = tables.load(&small(), &Control::new(&cancel, &phase), &mut |table| {
        cancel.store(table.to_string().ends_with("item"), Relaxed);
    });
    assert_eq!(stopped.unwrap_err().kind(), Kind::Cancelled);
    assert!(!database.has("t"));
    let reports = load(&source, target(), false, &small()).unwrap();
    assert_eq!(reports[0].result.standing, Standing::Complete);
    assert_eq!((reports[0].result.rows, reports[0].result.rows_rejected), (995, 5));
    assert_eq!((database.count("t"), database.count("_sawmill.rejects")), (995, 5));
    assert_eq!(put_aside(&rejects.path).len(), 5);
}
