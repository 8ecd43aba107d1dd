//! Nested values as tables of their own: what cannot be loaded ends the load, and a crash does not.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::*;
use sawmill_loader::{LoadOptions, RejectOptions};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, PostgresTables, TableKind};
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, ParquetFiles};

use crate::database::{Database, small};
use crate::fixture::file_of;
use crate::tables::load;

/// Rows of `id, name, notes`, with lists of lists of text as notes. Notes of the `bad` rows contain a 0x00.
fn with_bad_records(rows: i32, bad: &[i32]) -> (tempfile::TempDir, ParquetFiles) {
    let mut notes = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    let mut names = StringBuilder::new();
    for id in 0..rows {
        names.append_value(format!("name {id}"));
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
fn a_file_of_rejected_rows_is_refused_and_not_advised() {
    let database = Database::new();
    let (directory, source) = with_bad_records(1000, &[3]);
    let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
    let target = database.target("t").rejects(Some(rejects));
    let error = PostgresTables::new(&source, target, false).err().unwrap();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.what().contains("--rejects") && error.advice().contains("as jsonb"), "{error}");
    let error = load(&source, database.target("t"), false, &small()).unwrap_err();
    assert!(error.kind() == Kind::Value && error.place().contains("column \"value\""), "{error}");
    assert!(error.advice().starts_with("correct the value in the source, or load nested values as jsonb"));
    assert!(!database.has("t"));
}

#[test]
fn unlogged_tables_emptied_by_a_crash_are_filled_again_before_they_are_visible() {
    let mut server = LocalPg::start().unwrap();
    let (_directory, source) = with_bad_records(1000, &[]);
    let url = server.url();
    let kind = TableKind { unlogged: true, ..TableKind::default() };
    let target = Postgres::new(url.parse().unwrap(), "t".parse().unwrap()).kind(kind);
    let tables = PostgresTables::new(&source, target.clone(), true).unwrap();
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
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let row = client.query_one(counts, &[]).unwrap();
    assert_eq!([row.get::<_, i64>(0), row.get(1), row.get(2)], [1000, 1000, 3]);
    // Tables in their final place are not filled again behind their owner's back.
    drop(client);
    server.restart_immediate().unwrap();
    let error = load(&source, target, true, &small()).unwrap_err();
    assert!(error.kind() == Kind::Changed && error.what().contains("emptied"), "{error}");
}

#[test]
fn the_first_refused_row_of_a_list_ends_the_load_and_names_its_unit() {
    let database = Database::new();
    let (_directory, source) = with_bad_records(1000, &[]);
    refuse(&database, "t_notes", "_row <> 450");
    let options = LoadOptions { degree: 1, ..small() };
    let error = load(&source, database.target("t"), false, &options).unwrap_err();
    assert!(error.what().contains("of_t_notes"), "{error}");
    // A row of this table is not a row of the file: its unit is named.
    assert!(error.place().contains("row group 1, row 0 or one up to row 399"), "{error}");
    assert!(error.advice().contains("as jsonb"), "{error}");
}
