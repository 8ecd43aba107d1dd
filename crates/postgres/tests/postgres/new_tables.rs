//! New tables: keys before and after the rows, indexes, storage, settings of the server, rehearsals.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, Strategy, TableKind};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{people, write};

struct People {
    _directory: tempfile::TempDir,
    source: ParquetFiles,
}

fn some(rows: usize) -> People {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, rows, 700);
    People { source: ParquetFiles::open(&[&path]).unwrap(), _directory: directory }
}

fn keyed(key_after: bool) -> TableKind {
    TableKind {
        primary_key: vec!["id".into()],
        key_after,
        indexes: vec![vec!["name".into(), "amount".into()]],
        ..TableKind::default()
    }
}

/// The definitions of a table's indexes.
fn indexes(database: &Database, table: &str) -> Vec<String> {
    let sql = "SELECT indexdef FROM pg_indexes WHERE tablename = $1 ORDER BY indexdef";
    database.client().query(sql, &[&table]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_key_is_the_same_whether_created_before_or_after_the_rows_and_a_replacement_has_it_too() {
    let database = Database::new();
    let people = some(1500);
    for (table, key_after) in [("before", false), ("after", true)] {
        let target = database.target(table).kind(keyed(key_after));
        for mode in [Mode::Create, Mode::Replace] {
            let report = run(&people.source, &target.clone().mode(mode), &small()).unwrap();
            assert!(report.verified.unwrap().matches());
            assert_eq!(
                indexes(&database, table),
                [
                    format!(
                        "CREATE INDEX {table}_name_amount_idx ON public.{table} USING btree (name, amount)"
                    ),
                    format!("CREATE UNIQUE INDEX {table}_pkey ON public.{table} USING btree (id)"),
                ]
            );
        }
    }
}

#[test]
fn constraints_are_named_after_the_table_and_not_after_the_one_where_rows_gathered() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ids.parquet");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let columns = [("id", Arc::clone(&ids), false), ("n", ids, true)];
    write(&path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap(), 500);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let kind = TableKind { primary_key: vec!["n".into()], ..TableKind::default() };
    let by_n = |target: Postgres| {
        with_control(|control| target.partitioned(&"hash(n, 2)".parse().unwrap(), &source, control)).unwrap()
    };
    let (staged, key_after) = (Strategy::Staged, TableKind { key_after: true, ..kind.clone() });
    let targets = [
        ("plain", database.target("plain").kind(kind.clone())),
        ("direct", by_n(database.target("direct").kind(kind).strategy(Strategy::Direct))),
        ("late", database.target("late").kind(key_after)),
        ("staged", by_n(database.target("staged").strategy(staged))),
    ];
    for (table, target) in targets {
        for mode in [Mode::Create, Mode::Replace] {
            run(&source, &target.clone().mode(mode), &small()).unwrap();
            assert_eq!(database.count("pg_constraint WHERE conname LIKE '%sawmill%'"), 0, "{table} {mode:?}");
            // Before version 18 they are not constraints.
            let named = format!("pg_constraint WHERE conname = '{table}_id_not_null'");
            let not_null = "pg_constraint WHERE contype = 'n' AND conrelid = 'plain'::regclass";
            assert_eq!(database.count(&named) > 0, database.count(not_null) > 0, "{table} {mode:?}");
        }
    }
}

#[test]
fn a_duplicate_key_is_reported_and_the_load_can_be_finished_when_the_rows_are_corrected() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "b.parquet"].map(|name| directory.path().join(name));
    people(&paths[0], 0, 600, 700);
    people(&paths[1], 599, 600, 700);
    let source = ParquetFiles::open(&paths).unwrap();
    let target = database.target("t").kind(keyed(true));
    let error = run(&source, &target, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Server);
    for part in ["(id)=(599)", "ADD PRIMARY KEY", "forget"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(!database.has("t"));
    let correct = "UPDATE t__sawmill_loading SET id = -1 WHERE ctid = \
                   (SELECT min(ctid) FROM t__sawmill_loading WHERE id = 599)";
    database.client().batch_execute(correct).unwrap();
    let report = run(&source, &target, &LoadOptions { verify: false, ..small() }).unwrap();
    assert_eq!((report.state, report.rows_loaded), (LoadState::Resumed, 0));
    assert_eq!(database.count("t"), 1200);
    // With the key in the table, the unit that brings the second row of a key is refused.
    let target = database.target("u").kind(keyed(false));
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("(id)=(599)"), "{error}");
    assert!(!database.has("u"));
}

#[test]
fn keys_on_missing_columns_and_options_of_new_tables_for_existing_ones_are_refused() {
    let database = Database::new();
    let people = some(10);
    let kind = TableKind { indexes: vec![vec!["id".into(), "nr".into()]], ..TableKind::default() };
    let error = run(&people.source, &database.target("t").kind(kind.clone()), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.what().contains("\"nr\"") && error.advice().contains("amount"), "{error}");
    database.client().batch_execute("CREATE TABLE t (id bigint, name text, amount float8)").unwrap();
    let target = database.target("t").kind(keyed(false)).mode(Mode::Append);
    let error = run(&people.source, &target, &small()).unwrap_err();
    assert!(error.what().contains("new table"), "{error}");
}

#[test]
fn settings_reach_every_connection_and_unknown_ones_are_named() {
    let database = Database::new();
    let people = some(1500);
    // A trigger cannot be on a table that the load creates: append to one that has it.
    database
        .client()
        .batch_execute(
            "CREATE TABLE t (id bigint, name text, amount float8);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               NEW.name := current_setting('work_mem'); RETURN NEW; END $$;
             CREATE TRIGGER note BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()",
        )
        .unwrap();
    let target = database.target("t").mode(Mode::Append).setting("work_mem", "7MB");
    run(&people.source, &target, &LoadOptions { verify: false, ..small() }).unwrap();
    let kept: Vec<String> = database
        .client()
        .query("SELECT DISTINCT name FROM t", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(kept, ["7MB"]);
    let target = database.target("u").setting("no_such_thing", "1");
    let error = run(&people.source, &target, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.what().contains("no_such_thing"), "{error}");
}

#[test]
fn a_tablespace_is_used_and_a_missing_one_is_named() {
    let database = Database::new();
    let people = some(10);
    let kind = |space: &str| TableKind { tablespace: Some(space.into()), ..keyed(false) };
    run(&people.source, &database.target("t").kind(kind("pg_default")), &small()).unwrap();
    let error = run(&people.source, &database.target("u").kind(kind("nowhere")), &small()).unwrap_err();
    assert!(error.what().contains("nowhere"), "{error}");
    assert!(!database.has("u") && !database.has("u__sawmill_loading"));
}

#[test]
fn a_rehearsal_reports_what_would_be_done_and_changes_nothing() {
    let database = Database::new();
    let people = some(1500);
    let options = LoadOptions { unit_rows: 500, ..small() };
    let target = database.target("t").kind(keyed(false));
    let rehearse =
        |target: &Postgres| with_control(|control| target.rehearse(&people.source, &options, control));
    let plan = rehearse(&target).unwrap();
    assert_eq!((plan.state, plan.rows, plan.units, plan.units_done), (LoadState::New, 1500, 5, 0));
    assert!(!database.has("t__sawmill_loading") && !database.has("_sawmill.loads"));
    run(&people.source, &target, &options).unwrap();
    assert_eq!(rehearse(&target).unwrap().state, LoadState::Complete);
    let error = rehearse(&database.target("t").mode(Mode::Upsert).key(vec!["name".into()])).unwrap_err();
    assert!(error.what().contains("no unique key"), "{error}");
    let truncate = database.target("t").mode(Mode::Truncate);
    assert_eq!(rehearse(&truncate).unwrap().rows, 1500);
    assert_eq!(database.count("t"), 1500, "it was not emptied");
}

#[test]
fn a_crash_that_empties_an_unlogged_table_is_noticed_and_the_same_load_fills_it_again() {
    let mut server = LocalPg::start().unwrap();
    let people = some(1500);
    let address = server.url();
    let target = || {
        let kind = TableKind { unlogged: true, ..TableKind::default() };
        Postgres::new(address.parse().unwrap(), "t".parse().unwrap()).kind(kind)
    };
    // Interrupted by a duplicate key, when all units are committed.
    let broken = target().kind(TableKind {
        unlogged: true,
        primary_key: vec!["name".into()],
        key_after: true,
        ..TableKind::default()
    });
    run(&people.source, &broken, &small()).unwrap_err();
    server.restart_immediate().unwrap();
    let error = run(&people.source, &broken, &small()).unwrap_err();
    assert!(error.to_string().contains("ADD PRIMARY KEY"), "{error}");
    let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
    let count = |client: &mut postgres::Client, table: &str| -> i64 {
        client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().get(0)
    };
    assert_eq!(count(&mut client, "t__sawmill_loading"), 1500, "the units were loaded again, each once");
    with_control(|control| sawmill_postgres::forget(&broken, false, control)).unwrap();

    assert!(run(&people.source, &target(), &small()).unwrap().verified.unwrap().matches());
    drop(client);
    server.restart_immediate().unwrap();
    let error = run(&people.source, &target(), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed);
    assert!(error.what().contains("emptied"), "{error}");
}
