//! Nested values as tables of their own: records with a bad value are rejected as a whole.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::*;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sawmill_loader::{LoadOptions, LoadState, RejectOptions};
use sawmill_localpg::LocalPg;
use sawmill_pgcopy::{Nul, ValueOptions};
use sawmill_postgres::{Postgres, PostgresTables, TableKind};
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, ParquetFiles};

use crate::database::{Database, small, with_control};
use crate::fixture::{file_of, write};
use crate::rejects::read_rejects;
use crate::tables::load;

/// Rows of `id, notes`, of which notes are lists of structs with a text: those of some rows have a 0x00
/// there, and one has it beside the list.
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

/// The number of records noted as rejected, for each table.
fn noted(database: &Database) -> Vec<i64> {
    let counts = "SELECT count(*) FROM _sawmill.rejects GROUP BY load_id ORDER BY load_id";
    database.client().query(counts, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

fn rows_of(path: &Path) -> Vec<RecordBatch> {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    reader.map(|batch| batch.unwrap()).collect()
}

/// A file of rejected rows whose last row claims to be row 200 of its row group.
fn changed_place(rows: &RecordBatch) -> RecordBatch {
    let at = rows.schema().index_of("_sawmill_row").unwrap();
    let mut columns = rows.columns().to_vec();
    let numbers = columns[at].as_primitive::<Int64Type>().values();
    let last = numbers.len() - 1;
    columns[at] = Arc::new(Int64Array::from_iter_values(numbers[..last].iter().copied().chain([200])));
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

/// Runs a statement for a table of this name, or its staging table, when it is created; `%s` in it is the
/// table.
fn when_made(database: &Database, table: &str, statement: &str) {
    let sql = format!(
        "CREATE FUNCTION made_{table}() RETURNS event_trigger LANGUAGE plpgsql AS $$
         DECLARE made record;
         BEGIN
           FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
             IF made.object_identity ~ '^public[.]\"?{table}(__sawmill|\"?$)' THEN
               EXECUTE format('{statement}', made.object_identity);
             END IF;
           END LOOP;
         END $$;
         CREATE EVENT TRIGGER of_{table} ON ddl_command_end WHEN TAG IN ('CREATE TABLE')
           EXECUTE FUNCTION made_{table}()"
    );
    database.client().batch_execute(&sql).unwrap();
}

/// Makes a table refuse rows that do not satisfy a condition.
fn refuse(database: &Database, table: &str, condition: &str) {
    when_made(database, table, &format!("ALTER TABLE %s ADD CONSTRAINT of_{table} CHECK ({condition})"));
}

#[test]
fn a_record_with_a_bad_value_anywhere_is_rejected_as_a_whole() {
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
    let rejected = read_rejects(&path);
    let places: Vec<i64> = rejected.iter().map(|(group, row, _)| i64::from(*group) * 400 + row).collect();
    assert_eq!(places, [3, 4, 399, 500, 801]);
    assert!(rejected[0].2.starts_with("notes_item, column \"value\": the text"), "{}", rejected[0].2);
    assert!(rejected[3].2.starts_with("column \"name\": the text"), "{}", rejected[3].2);
    // None of their rows is in any table, and all of the others are.
    for table in ["t", "t_notes", "t_notes_item"] {
        assert_eq!(database.count(&format!("{table} WHERE _row IN (3, 4, 399, 500, 801)")), 0, "{table}");
    }
    let lists: i64 = (0..1000).filter(|id| !places.contains(id)).map(|id| id % 4 + 1).sum();
    assert_eq!((database.count("t_notes"), database.count("t_notes_item")), (lists, 2 * lists));
    assert_eq!(noted(&database), [5, 5, 5]);
    let again = load(&source, target(Some(5)), true, &small()).unwrap();
    assert!(again.iter().all(|report| report.result.state == LoadState::Complete));
    assert_eq!((again[0].result.rows_rejected, noted(&database)), (5, vec![5, 5, 5]));
    // Tables and file together are the source.
    let tables = PostgresTables::new(&source, target(None), false).unwrap();
    let compare = || with_control(|control| tables.verify(&small(), control)).unwrap();
    let verified = compare();
    assert!(verified.iter().all(|verified| verified.result.matches()));
    assert_eq!(verified[0].result.rejected, 5);
    database.client().batch_execute("DELETE FROM t_notes_item WHERE _row = 7 AND _ordinal = 1").unwrap();
    assert!(!compare()[2].result.matches());
    // A file that names other rows.
    std::fs::copy(directory.path().join("data.parquet"), &path).unwrap();
    let error = with_control(|control| tables.verify(&small(), control)).unwrap_err();
    assert!(error.what().contains("_sawmill_reason"), "{error}");
}

#[test]
fn selected_records_have_their_numbers_in_the_file() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    let path = directory.path().join("rejects.parquet");
    let some =
        with_control(|control| source.filtered("id > 3 and id <> 401".parse().unwrap(), control)).unwrap();
    let target = database.target("t").rejects(Some(RejectOptions { path: path.clone(), most: None }));
    let reports = load(&some, target.clone(), false, &small()).unwrap();
    assert_eq!((reports[0].result.rows, reports[0].result.rows_rejected), (991, 4));
    let places: Vec<(i32, i64)> =
        read_rejects(&path).into_iter().map(|(group, row, _)| (group, row)).collect();
    assert_eq!(places, [(0, 4), (0, 399), (1, 100), (2, 1)]);
    let tables = PostgresTables::new(&some, target, false).unwrap();
    let verified = with_control(|control| tables.verify(&small(), control)).unwrap();
    assert!(verified.iter().all(|verified| verified.result.matches()));
}

#[test]
fn all_tables_of_an_interrupted_load_lack_the_same_records() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
    let target = || database.target("t").rejects(Some(rejects.clone()));
    // It ends when it reaches the last table.
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("load");
    let tables = PostgresTables::new(&source, target(), false).unwrap();
    let stopped = tables.load(&small(), &Control::new(&cancel, &phase), &mut |table| {
        cancel.store(table.to_string().ends_with("item"), Relaxed);
    });
    assert_eq!(stopped.unwrap_err().kind(), Kind::Cancelled);
    assert!(!database.has("t"));
    let reports = load(&source, target(), false, &small()).unwrap();
    assert_eq!(reports[0].result.state, LoadState::Complete);
    assert_eq!((reports[0].result.rows, reports[0].result.rows_rejected), (995, 5));
    assert_eq!((database.count("t"), noted(&database)), (995, vec![5, 5, 5]));
    assert_eq!(read_rejects(&rejects.path).len(), 5);
}

/// What the tables of [`with_bad_records`] hold without some records, by their rows: `t`, `t_notes`,
/// `t_notes_item`.
fn holds_all_but(database: &Database, rows: i64, rejected: &[i64]) {
    let left: Vec<i64> = (0..rows).filter(|id| !rejected.contains(id)).collect();
    let found = |query: &str| -> Vec<i64> {
        database.client().query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(found("SELECT _row FROM t ORDER BY _row"), left);
    let lists: Vec<i64> = left.iter().flat_map(|id| (0..id % 4 + 1).map(|_| *id)).collect();
    assert_eq!(found("SELECT _row FROM t_notes ORDER BY _row"), lists);
    let items: Vec<i64> = lists.iter().flat_map(|id| [*id; 2]).collect();
    assert_eq!(found("SELECT _row FROM t_notes_item ORDER BY _row"), items);
    assert_eq!(
        database.count("_sawmill.units u JOIN _sawmill.loads l USING (load_id) WHERE l.rows IS NULL"),
        0
    );
    let recorded = "SELECT sum(u.rows)::bigint FROM _sawmill.units u GROUP BY load_id ORDER BY load_id";
    assert_eq!(found(recorded), [left.len() as i64, lists.len() as i64, items.len() as i64]);
}

#[test]
fn a_record_is_rejected_as_a_whole_if_the_server_refuses_a_row_in_any_table() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    refuse(&database, "t_notes_item", "_row NOT IN (7, 8, 450) OR _ordinal2 = 1");
    refuse(&database, "t", "id NOT IN (8, 999)");
    let path = directory.path().join("rejects.parquet");
    let target = |most| database.target("t").rejects(Some(RejectOptions { path: path.clone(), most }));
    let error = load(&source, target(Some(8)), true, &small()).unwrap_err();
    assert!(error.kind() == Kind::Value && error.what().contains("9 rows cannot be loaded"), "{error}");
    assert!(!database.has("t") && !path.exists());
    // The rows loaded until then are not loaded again.
    let reports = load(&source, target(Some(9)), true, &small()).unwrap();
    assert_eq!(reports[0].result.state, LoadState::Complete);
    assert_eq!((reports[0].result.rows, reports[0].result.rows_rejected), (991, 9));
    assert!(reports.iter().all(|report| report.result.verified.as_ref().unwrap().matches()));
    assert!(reports[1].result.notes.is_empty() && reports[0].result.notes[0].contains("9 rows"));
    let rejected = read_rejects(&path);
    let places: Vec<i64> = rejected.iter().map(|(group, row, _)| i64::from(*group) * 400 + row).collect();
    assert_eq!(places, [3, 4, 7, 8, 399, 450, 500, 801, 999]);
    holds_all_but(&database, 1000, &places);
    for (at, why) in
        [(2, "notes_item, the server says: "), (2, "of_t_notes_item"), (3, "of_t\""), (8, "of_t\"")]
    {
        assert!(rejected[at].2.contains(why), "{}", rejected[at].2);
    }
    assert_eq!(noted(&database), [9, 9, 9]);
    let again = load(&source, target(None), true, &small()).unwrap();
    assert!(again.iter().all(|report| report.result.state == LoadState::Complete));
    assert!(again.iter().all(|report| report.result.verified.as_ref().unwrap().matches()));
    assert_eq!((again[0].result.rows, again[0].result.rows_rejected), (991, 9));
    holds_all_but(&database, 1000, &places);
    let tables = PostgresTables::new(&source, target(None), false).unwrap();
    let compare = || with_control(|control| tables.verify(&LoadOptions { locate: true, ..small() }, control));
    let verified = compare().unwrap();
    assert!(verified.iter().all(|verified| verified.result.matches()));
    // The file holds the records as they were: another value in it is missed where it should have been
    // loaded.
    let batches: Vec<RecordBatch> = rows_of(&path);
    let mut columns = batches[0].columns().to_vec();
    columns[0] = Arc::new(Int32Array::from_iter_values(
        (0..9).map(|row| if row == 7 { 7 } else { places[row] as i32 }),
    ));
    let changed = RecordBatch::try_new(batches[0].schema(), columns).unwrap();
    write(&path, &changed, 100);
    let verified = compare().unwrap();
    assert!(verified.iter().map(|verified| verified.result.matches()).eq([false, true, true]));
    assert_eq!(verified[0].result.differing, ["id"]);
    let located = verified[0].result.located.as_ref().unwrap();
    assert_eq!((located.rows_of_none, located.units.len()), (1, 1));
    assert_eq!((located.units[0].row_group, &located.units[0].first_missing[..]), (2, &[1][..]));
    // Two missing rows of one record are located once.
    write(&path, &batches[0], 100);
    database.client().batch_execute("DELETE FROM t_notes_item WHERE _row = 903 AND _ordinal2 = 1").unwrap();
    let verified = compare().unwrap();
    let located = verified[2].result.located.as_ref().unwrap();
    let [unit] = &located.units[..] else { panic!("{located:?}") };
    assert_eq!((unit.row_group, unit.missing, &unit.first_missing[..]), (2, 4, &[103][..]));
    // A record that the source lacks.
    write(&path, &changed_place(&batches[0]), 100);
    assert!(compare().unwrap_err().what().contains("rows that are not in the compared files"));
}

#[test]
fn a_connection_lost_while_records_are_removed_is_retried() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    database
        .client()
        .batch_execute(
            "CREATE SEQUENCE times;
             CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
               IF nextval('times') IN (1, 2) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
               RETURN NULL;
             END $$",
        )
        .unwrap();
    when_made(&database, "t_notes_item", "CREATE TRIGGER lose AFTER DELETE ON %s EXECUTE FUNCTION lose()");
    let path = directory.path().join("rejects.parquet");
    let target = || database.target("t").rejects(Some(RejectOptions { path: path.clone(), most: None }));
    let error = load(&source, target(), true, &LoadOptions { retries: 0, ..small() }).unwrap_err();
    assert!(error.kind() == Kind::Connection && !database.has("t"), "{error}");
    assert_eq!(noted(&database), [1, 4]);
    let reports = load(&source, target(), true, &LoadOptions { retries: 2, ..small() }).unwrap();
    assert!(reports.iter().all(|report| report.result.verified.as_ref().unwrap().matches()));
    assert_eq!((reports[0].result.rows, reports[0].result.rows_rejected), (995, 5));
    assert_eq!(database.client().query_one("SELECT last_value FROM times", &[]).unwrap().get::<_, i64>(0), 3);
    holds_all_but(&database, 1000, &[3, 4, 399, 500, 801]);
}

#[test]
fn unlogged_tables_emptied_by_a_crash_are_filled_again_before_they_are_visible() {
    let mut server = LocalPg::start().unwrap();
    let (directory, source) = with_bad_records(1000, &[3, 4, 399, 801], 500);
    let path = directory.path().join("rejects.parquet");
    let url = server.url();
    let target = |rejects: bool| {
        let kind = TableKind { unlogged: true, ..TableKind::default() };
        let rejects = rejects.then(|| RejectOptions { path: path.clone(), most: None });
        let (server, table) = (url.parse().unwrap(), "t".parse().unwrap());
        let values = ValueOptions { nul: Nul::Strip, ..ValueOptions::default() };
        let values = if rejects.is_some() { ValueOptions::default() } else { values };
        Postgres::new(server, table).kind(kind).rejects(rejects).values(values)
    };
    let connect = || postgres::Client::connect(&url, postgres::NoTls).unwrap();
    for (rejects, rows) in [(false, 1000i64), (true, 995)] {
        let tables = PostgresTables::new(&source, target(rejects), true).unwrap();
        let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
        let crashed = tables.load(&small(), &Control::new(&cancel, &phase), &mut |table| {
            if table.name() == "t_notes_item" {
                server.restart_immediate().unwrap();
            }
        });
        // The tables before are filled again in the same run.
        let reports = crashed.unwrap();
        assert!(reports[..2].iter().all(|report| report.result.units_lost > 0));
        assert!(reports.iter().all(|report| report.result.verified.as_ref().unwrap().matches()));
        let counts = "SELECT (SELECT count(*) FROM t), (SELECT count(DISTINCT _row) FROM t_notes_item), \
                      (SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' AND relname ~ '^t')";
        let row = connect().query_one(counts, &[]).unwrap();
        assert_eq!([row.get::<_, i64>(0), row.get(1), row.get(2)], [rows, rows, 3]);
        // Tables in their final place are not filled again behind their owner's back.
        drop(row);
        server.restart_immediate().unwrap();
        let error = load(&source, target(rejects), true, &small()).unwrap_err();
        assert!(error.kind() == Kind::Changed && error.what().contains("emptied"), "{error}");
        connect()
            .batch_execute("DROP TABLE t, t_notes, t_notes_item CASCADE; DROP SCHEMA _sawmill CASCADE")
            .unwrap();
    }
}

#[test]
fn without_rejects_the_first_refused_row_of_a_list_ends_the_load_and_names_its_unit() {
    let database = Database::new();
    let (_directory, source) = with_bad_records(1000, &[], -1);
    refuse(&database, "t_notes", "_row <> 450");
    let options = LoadOptions { degree: 1, ..small() };
    let error = load(&source, database.target("t"), false, &options).unwrap_err();
    assert!(error.what().contains("of_t_notes"), "{error}");
    // A row of this table is not a row of the file: its unit is named.
    assert!(error.place().contains("row group 1, row 0 or one up to row 399"), "{error}");
}

#[test]
fn rejected_records_are_the_same_however_often_the_load_is_interrupted_and_however_it_is_cut() {
    // Four times as many at night: by default PROPTEST_CASES is 256.
    let cases = Config::default().cases / 64;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let bad = || proptest::collection::btree_set(0..600i32, 0..12);
    let cut = || (1..4usize, prop_oneof![Just(70u64), Just(150), Just(5000)], 0..4usize);
    let runs = proptest::collection::vec(cut(), 0..4);
    TestRunner::new(config)
        .run(&(bad(), bad(), bad(), bad(), runs), |(encoder, records, lists, items, runs)| {
            let database = Database::new();
            let encoder: Vec<i32> = encoder.into_iter().collect();
            let (directory, source) = with_bad_records(600, &encoder, -1);
            for (table, refused) in [("t", &records), ("t_notes", &lists), ("t_notes_item", &items)] {
                let refused: String = refused.iter().map(|row| format!(", {row}")).collect();
                refuse(&database, table, &format!("_row NOT IN (-1{refused})"));
            }
            let path = directory.path().join("rejects.parquet");
            let rejects = || Some(RejectOptions { path: path.clone(), most: None });
            let target = || database.target("t").rejects(rejects());
            let tables = PostgresTables::new(&source, target(), true).unwrap();
            for (degree, unit_rows, ends) in runs {
                // It ends when it reaches one of the tables, or the file, whose name is taken.
                let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
                let options = LoadOptions { degree, unit_rows, ..small() };
                let mut at = 0;
                let done = tables.load(&options, &Control::new(&cancel, &phase), &mut |_| {
                    cancel.store(at == ends, Relaxed);
                    if at == 2 && ends == 3 {
                        std::fs::create_dir(&path).unwrap();
                    }
                    at += 1;
                });
                let _ = std::fs::remove_dir(&path);
                prop_assert!(done.is_err() && !database.has("t"));
            }
            let reports = load(&source, target(), true, &small()).unwrap();
            let all = encoder.iter().chain(&records).chain(&lists).chain(&items);
            let all: BTreeSet<i64> = all.map(|row| i64::from(*row)).collect();
            let all: Vec<i64> = all.into_iter().collect();
            let rejected = read_rejects(&path);
            let places: Vec<i64> =
                rejected.iter().map(|(group, row, _)| i64::from(*group) * 400 + row).collect();
            prop_assert_eq!(&places, &all);
            holds_all_but(&database, 600, &all);
            prop_assert_eq!(reports[0].result.rows_rejected, all.len() as u64);
            let verified = with_control(|control| tables.verify(&small(), control)).unwrap();
            prop_assert!(verified.iter().all(|verified| verified.result.matches()));
            Ok(())
        })
        .unwrap();
}
