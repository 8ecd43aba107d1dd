//! Tables: created, found complete, appended to, refused, forgotten.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray};
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_postgres::forget;
use sawmill_source::{Kind, Limited, ParquetFiles, Source};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, people};

#[test]
fn a_complete_load_is_not_repeated_unless_its_table_was_dropped() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let target = database.target("people");
    let first = run(&source, &target, &small()).unwrap();
    assert_eq!((first.state, first.rows, first.units, first.units_resumed), (LoadState::New, 1200, 3, 0));
    let second = run(&source, &target, &small()).unwrap();
    assert_eq!((second.state, second.rows, second.rows_loaded), (LoadState::Complete, 1200, 0));
    assert_eq!(second.content, first.content);
    assert_eq!(database.count("people"), 1200);
    database.client().batch_execute("DROP TABLE people").unwrap();
    assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::New);
    assert_eq!(database.count("people"), 1200);
    assert!(!database.has("people__sawmill_loading"));
}

#[test]
fn files_of_one_schema_load_together_in_any_order_of_columns() {
    let database = Database::new();
    let (_one, a) = file_of(
        vec![
            ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
            ("name", Arc::new(StringArray::from(vec!["x", "y"]))),
        ],
        10,
    );
    let (_two, b) = file_of(
        vec![
            ("name", Arc::new(StringArray::from(vec!["z"])) as ArrayRef),
            ("id", Arc::new(Int64Array::from(vec![3]))),
        ],
        10,
    );
    run(&ParquetFiles::open(&[&a, &b]).unwrap(), &database.target("t"), &small()).unwrap();
    let text = "SELECT string_agg(id || name, ',' ORDER BY id) FROM t";
    assert_eq!(database.client().query_one(text, &[]).unwrap().get::<_, String>(0), "1x,2y,3z");
}

#[test]
fn a_unix_socket_works_too() {
    let server = sawmill_localpg::LocalPg::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let target =
        sawmill_postgres::Postgres::new(server.socket_url().parse().unwrap(), "people".parse().unwrap());
    let report = run(&ParquetFiles::open(&[&path]).unwrap(), &target, &small()).unwrap();
    assert!(report.verified.unwrap().matches());
}

#[test]
fn an_existing_table_is_refused_with_its_differences_and_advice() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 10, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    database.client().batch_execute("CREATE TABLE people (id bigint, name integer, extra text)").unwrap();
    let error = run(&source, &database.target("people"), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    let what = error.what();
    for part in ["already exists", "\"name\" is integer and not text", "no column \"amount\"", "\"extra\""] {
        assert!(what.contains(part), "{what}");
    }
    assert!(error.advice().contains("append"), "{error}");
    assert_eq!(database.count("people"), 0);
}

#[test]
fn appending_matches_columns_by_name_and_widens_integers() {
    let database = Database::new();
    database
        .client()
        .batch_execute(
            "CREATE TABLE t (amount numeric(12,2), note varchar(20), id bigint, n serial, day date DEFAULT now());
             INSERT INTO t (amount, id) VALUES (0.5, 0)",
        )
        .unwrap();
    let columns = vec![
        ("id", Arc::new(Int32Array::from(vec![7, -8])) as ArrayRef),
        ("amount", Arc::new(Int32Array::from(vec![Some(i32::MIN), None]))),
        ("note", Arc::new(StringArray::from(vec!["a", "b"]))),
    ];
    let (_directory, path) = file_of(columns, 10);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let target = database.target("t").mode(Mode::Append);
    let report = run(&source, &target, &small()).unwrap();
    assert!(report.verified.unwrap().matches(), "the row that was there before is not part of the proof");
    let text = "SELECT string_agg(concat_ws('|', id, amount, note), ',' ORDER BY id) FROM t";
    let rows = |database: &Database| database.client().query_one(text, &[]).unwrap().get::<_, String>(0);
    assert_eq!(rows(&database), "-8|b,0|0.50,7|-2147483648.00|a");
    assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::Complete);
    assert_eq!(rows(&database), "-8|b,0|0.50,7|-2147483648.00|a");
}

#[test]
fn columns_that_do_not_fit_are_all_named_before_anything_is_sent() {
    let database = Database::new();
    database
        .client()
        .batch_execute(
            "CREATE TABLE t (id point, name text, needed text NOT NULL, due timestamp(3) NOT NULL)",
        )
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 10, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let error = run(&source, &database.target("t").mode(Mode::Append), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Schema);
    for part in ["\"id\" is point", "\"amount\" is not in the table", "\"needed\"", "\"due\""] {
        assert!(error.what().contains(part), "{error}");
    }
    assert_eq!(database.count("t"), 0);
    let error = run(&source, &database.target("nowhere").mode(Mode::Append), &small()).unwrap_err();
    assert!(error.what().contains("the table does not exist"), "{error}");
}

#[test]
fn schemas_that_differ_between_files_are_refused_with_file_column_and_both_types() {
    let (_one, a) = file_of(vec![("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef)], 10);
    let (_two, b) = file_of(
        vec![
            ("id", Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
            ("more", Arc::new(StringArray::from(vec!["x"]))),
        ],
        10,
    );
    let Err(error) = ParquetFiles::open(&[&a, &b]) else { panic!("different schemas were accepted") };
    assert_eq!(error.kind(), Kind::Schema);
    let what = error.what();
    assert!(what.contains("\"id\"") && what.contains("Utf8") && what.contains("Int64"), "{what}");
    assert!(what.contains("\"more\""), "{what}");
    let Err(error) = ParquetFiles::open(&[&a, &a]) else { panic!("one file was accepted twice") };
    assert!(error.what().contains("twice"), "{error}");
}

#[test]
fn names_that_the_server_would_change_are_refused() {
    let database = Database::new();
    let long = "x".repeat(64);
    let array = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let (_directory, path) = file_of(vec![(&long, array()), ("ctid", array())], 10);
    let error = run(&ParquetFiles::open(&[&path]).unwrap(), &database.target("t"), &small()).unwrap_err();
    assert!(error.what().contains("64 bytes") && error.what().contains("system column"), "{error}");
}

#[test]
fn odd_names_are_quoted_everywhere() {
    let database = Database::new();
    let array = || Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    let (_directory, path) = file_of(vec![("Select \"x\"", array()), ("ü; --", array())], 10);
    database.client().batch_execute("CREATE SCHEMA \"My \"\"S\"").unwrap();
    let target = database.target("\"My \"\"S\".\"a.b\"");
    run(&ParquetFiles::open(&[&path]).unwrap(), &target, &small()).unwrap();
    assert_eq!(database.count("\"My \"\"S\".\"a.b\""), 3);
}

#[test]
fn forgetting_a_load_leaves_no_trace_of_it() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1000, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let (kept, gone) = (database.target("kept"), database.target("gone"));
    run(&source, &kept, &small()).unwrap();
    run(&source, &gone, &small()).unwrap();
    let forgotten = with_control(|control| forget(&gone, true, control)).unwrap();
    assert_eq!((forgotten.loads, forgotten.table_dropped), (1, true));
    assert!(!database.has("gone") && database.has("kept") && database.has("_sawmill.loads"));
    let forgotten = with_control(|control| forget(&kept, false, control)).unwrap();
    assert_eq!((forgotten.loads, forgotten.table_dropped), (1, false));
    assert!(database.has("kept"));
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = '_sawmill'";
    assert_eq!(database.client().query_one(schemas, &[]).unwrap().get::<_, i64>(0), 0);
    assert_eq!(with_control(|control| forget(&kept, true, control)).unwrap().loads, 0);
}

#[test]
fn an_empty_file_makes_an_empty_table() {
    let database = Database::new();
    let (_directory, path) =
        file_of(vec![("id", Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef)], 10);
    let report = run(&ParquetFiles::open(&[&path]).unwrap(), &database.target("t"), &small()).unwrap();
    assert_eq!((report.rows, report.units), (0, 0));
    assert_eq!(database.count("t"), 0);
    let target = database.target("t2");
    let ddl = with_control(|control| target.ddl(&ParquetFiles::open(&[&path]).unwrap(), control)).unwrap();
    assert_eq!(ddl, "CREATE TABLE \"t2\" (\n  \"id\" bigint\n)");
    let options = LoadOptions { degree: 8, ..small() };
    assert_eq!(run(&ParquetFiles::open(&[&path]).unwrap(), &target, &options).unwrap().rows, 0);
}

#[test]
fn a_table_is_replaced_in_one_step_and_matched_by_position_on_request() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    people(&path("old.parquet"), 0, 500, 500);
    people(&path("new.parquet"), 1000, 300, 300);
    let open = |name: &str| ParquetFiles::open(&[path(name)]).unwrap();
    let target = database.target("people");
    run(&open("old.parquet"), &target, &small()).unwrap();
    let replace = target.clone().mode(Mode::Replace);
    let options = LoadOptions { verify: true, ..small() };
    let report = run(&open("new.parquet"), &replace, &options).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::New, 300));
    assert_eq!(database.count("people WHERE id >= 1000"), 300);
    assert_eq!(database.count("people"), 300);
    assert!(!database.has("people__sawmill_loading"));
    assert_eq!(run(&open("new.parquet"), &replace, &options).unwrap().state, LoadState::Complete);
    // Without a table to replace, it is created.
    run(&open("new.parquet"), &database.target("fresh").mode(Mode::Replace), &options).unwrap();
    assert_eq!(database.count("fresh"), 300);
    database
        .client()
        .batch_execute("CREATE TABLE other (a bigint, b text, c double precision, d int DEFAULT 1)")
        .unwrap();
    let append = database.target("other").mode(Mode::Append).by_position(true);
    run(&open("old.parquet"), &append, &options).unwrap();
    assert_eq!(database.count("other WHERE a < 500 AND c IS NOT NULL AND d = 1"), 500);
    // A column keeps its place, although it has a default and does not take the text.
    let table = "CREATE TABLE gap (a bigint, seen aclitem DEFAULT makeaclitem(10, 10, 'SELECT', false), b text, \
                 c double precision)";
    database.client().batch_execute(table).unwrap();
    let error =
        run(&open("old.parquet"), &database.target("gap").mode(Mode::Append).by_position(true), &options);
    let error = error.unwrap_err();
    assert!(error.what().contains("cannot be read as aclitem"), "{error}");
    assert!(error.to_string().contains("column \"seen\""), "{error}");
    assert_eq!(database.count("gap"), 0);
    let chosen =
        open("old.parquet").select(&["name".into(), "id".into()], &[("id".into(), "number".into())]).unwrap();
    run(&chosen, &database.target("chosen"), &options).unwrap();
    assert_eq!(database.count("chosen WHERE number >= 0"), 500);
}

#[test]
fn a_table_is_emptied_once_and_then_loaded_and_again_only_if_it_was_changed() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let table = "CREATE TABLE people (id bigint PRIMARY KEY, name text, amount double precision, kept text DEFAULT 'k');
                 INSERT INTO people VALUES (5, 'old', 1), (99999, 'older', 2)";
    database.client().batch_execute(table).unwrap();
    let target = database.target("people").mode(Mode::Truncate);
    let first = run(&source, &target, &small()).unwrap();
    assert_eq!((first.state, first.rows_loaded), (LoadState::New, 1200));
    assert!(first.verified.unwrap().matches());
    assert_eq!(database.count("people"), 1200);
    assert_eq!(database.count("people WHERE kept = 'k'"), 1200);
    assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::Complete);
    database.client().batch_execute("DELETE FROM people WHERE id < 10").unwrap();
    assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::New);
    assert_eq!(database.count("people"), 1200);
    // Foreign keys refer to its rows, so the load neither removes nor adds rows.
    let referring =
        "CREATE TABLE visits (person bigint REFERENCES people (id)); INSERT INTO visits VALUES (7)";
    database.client().batch_execute(referring).unwrap();
    let other = directory.path().join("other.parquet");
    people(&other, 5000, 10, 700);
    let error = run(&ParquetFiles::open(&[&other]).unwrap(), &target, &small()).unwrap_err();
    assert!(error.what().contains("foreign key"), "{error}");
    assert_eq!(database.count("people"), 1200);
}

#[test]
fn an_interrupted_truncating_load_keeps_what_it_had_loaded() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let table = "CREATE TABLE people (id bigint CHECK (id <> 900), name text, amount double precision);
                 INSERT INTO people VALUES (5, 'old', 1)";
    database.client().batch_execute(table).unwrap();
    let target = database.target("people").mode(Mode::Truncate);
    let options = LoadOptions { degree: 1, ..small() };
    run(&source, &target, &options).unwrap_err();
    let loaded = database.count("people");
    assert!((1..1200).contains(&loaded), "{loaded}");
    database.client().batch_execute("ALTER TABLE people DROP CONSTRAINT people_id_check").unwrap();
    let rest = run(&source, &target, &options).unwrap();
    assert_eq!((rest.state, rest.rows_loaded), (LoadState::Resumed, 1200 - loaded as u64));
    assert_eq!(database.count("people"), 1200);
}

#[test]
fn a_limit_loads_the_first_rows_and_is_a_load_of_its_own() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "b.parquet"].map(|name| directory.path().join(name));
    people(&paths[0], 0, 1200, 700);
    people(&paths[1], 1200, 300, 700);
    let source = ParquetFiles::open(&paths).unwrap();
    for (limit, expected) in [(0, 0), (1, 1), (701, 701), (1200, 1200), (1350, 1350), (9999, 1500)] {
        let table = format!("first_{limit}");
        let limited = Limited::new(&source, limit);
        assert_eq!(limited.rows(), expected);
        let report = run(&limited, &database.target(&table), &small()).unwrap();
        assert_eq!((report.rows, database.count(&table)), (expected, expected as i64));
        assert!(report.verified.unwrap().matches());
        let beyond = format!("{table} WHERE id >= {expected}");
        assert_eq!(database.count(&beyond), 0, "the first ones");
    }
    let target = database.target("first_1").mode(Mode::Append);
    assert_eq!(run(&source, &target, &small()).unwrap().rows_loaded, 1500);
}
