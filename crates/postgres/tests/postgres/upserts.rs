//! Rows merged by their key: replaced, inserted, refused.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray};
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_postgres::{OnConflict, forget};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, people};
#[test]
fn an_upsert_replaces_rows_by_their_key_and_adds_the_others_in_one_step() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let table = "CREATE TABLE people (id bigint PRIMARY KEY, name text, amount double precision, kept text DEFAULT 'new');
                 INSERT INTO people VALUES (5, 'old', 1, 'old'), (99999, 'older', 2, 'old')";
    database.client().batch_execute(table).unwrap();
    let target = database.target("people").mode(Mode::Upsert).key(vec!["id".into()]);
    let first = run(&source, &target, &small()).unwrap();
    assert_eq!((first.state, first.rows_loaded), (LoadState::New, 1200));
    assert!(first.verified.unwrap().matches());
    assert_eq!(database.count("people"), 1201);
    // The column that the file lacks keeps its values, the others get the file's.
    assert_eq!(
        database.count("people WHERE id = 5 AND name = 'name 5 ü' AND amount = 0.625 AND kept = 'old'"),
        1
    );
    assert_eq!(database.count("people WHERE kept = 'new'"), 1199);
    assert!(!database.has("people__sawmill_loading"));
    assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::Complete);
    assert_eq!(database.count("people"), 1201);
}

#[test]
fn a_trigger_or_a_rule_that_changes_merged_rows_fails_a_verified_upsert_and_nothing_is_merged() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let mut client = database.client();
    let meddlers = [
        ("changes", "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.amount := 0; RETURN NEW; END $$;
           CREATE TRIGGER t BEFORE INSERT OR UPDATE ON changes FOR EACH ROW WHEN (NEW.id = 700) EXECUTE FUNCTION change()"),
        ("drops", "CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
           CREATE TRIGGER t BEFORE INSERT ON drops FOR EACH ROW WHEN (NEW.id = 700) EXECUTE FUNCTION drop_it()"),
        ("skips", "CREATE RULE r AS ON INSERT TO skips WHERE NEW.id = 700 DO INSTEAD NOTHING"),
        ("later", "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN DELETE FROM later WHERE id = 700; RETURN NULL; END $$;
           CREATE CONSTRAINT TRIGGER t AFTER INSERT ON later DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
             WHEN (NEW.id = 1) EXECUTE FUNCTION take()"),
    ];
    for (table, meddler) in meddlers {
        let sql = format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, name text, amount double precision);
             INSERT INTO {table} VALUES (5, 'old', 1); {meddler}"
        );
        client.batch_execute(&sql).unwrap();
        let target = database.target(table).mode(Mode::Upsert).key(vec!["id".into()]);
        let error = run(&source, &target, &small()).unwrap_err();
        assert!(
            error.to_string().contains("the merge left the table without 1 row of the source"),
            "{error}"
        );
        assert!(error.to_string().contains("(700)"), "{error}");
        assert_eq!(database.count(table), 1, "nothing was merged");
        let unchecked = LoadOptions { verify: false, ..small() };
        let report = run(&source, &target, &unchecked).unwrap();
        assert!(report.verified.is_none());
        let merged = report.notes.iter().any(|note| note.contains("1199 of 1200 rows were merged"));
        assert_eq!(merged, ["drops", "skips"].contains(&table), "{table}: {:?}", report.notes);
        assert!(database.count(table) >= 1199);
        // Where known keys are left alone, a row that was skipped is not one of them.
        client.batch_execute(&format!("DELETE FROM {table} WHERE id <> 5")).unwrap();
        let inserting = target.on_conflict(OnConflict::Keep);
        let report = run(&source, &inserting, &LoadOptions { again: true, ..unchecked }).unwrap();
        let touched = report.notes.iter().any(|note| note.contains("skipped or changed 1 row"));
        assert_eq!(touched, table != "changes", "{table}: {:?}", report.notes);
        assert_eq!(report.rows_loaded, if merged { 1198 } else { 1199 }, "{table}");
    }
}

#[test]
fn a_verified_upsert_takes_keys_with_nulls_and_keys_that_are_equal_in_other_bytes() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    // Every third name of the file is null. 5.00 and 5 are the same key, which keeps its older bytes.
    let table = "CREATE TABLE people (id numeric, name text, amount double precision, UNIQUE (id, name));
                 INSERT INTO people VALUES (5.00, 'name 5 ü', 1)";
    database.client().batch_execute(table).unwrap();
    let target = database.target("people").mode(Mode::Upsert).key(vec!["id".into(), "name".into()]);
    let report = run(&source, &target, &small()).unwrap();
    assert!(report.verified.unwrap().matches());
    assert!(
        report.notes.iter().any(|note| note.contains("400 rows with a null in the key")),
        "{:?}",
        report.notes
    );
    assert_eq!(database.count("people"), 1200);
    assert_eq!(database.count("people WHERE id::text = '5.00' AND amount = 0.625"), 1);
}

#[test]
fn an_upsert_without_a_matching_unique_key_is_refused_before_a_row_is_sent() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1200, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let table = "CREATE TABLE people (id bigint, name text, amount double precision, UNIQUE (id, amount));
                 CREATE UNIQUE INDEX ON people (id) WHERE id > 5";
    database.client().batch_execute(table).unwrap();
    let upsert = |key: &[&str]| {
        let key = key.iter().map(|name| (*name).to_owned()).collect();
        run(&source, &database.target("people").mode(Mode::Upsert).key(key), &small())
    };
    for (key, expected) in [(&[][..], "needs a key"), (&["id"], "amount, id"), (&["who"], "\"who\"")] {
        let error = upsert(key).unwrap_err();
        assert_eq!(error.kind(), Kind::Schema);
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(!database.has("people__sawmill_loading"));
    upsert(&["amount", "id"]).unwrap();
    assert_eq!(database.count("people"), 1200);
    // Nor does the server find rows by an index that is checked later, or that could not be built.
    let mut client = database.client();
    client
        .batch_execute(
            "ALTER TABLE people ADD UNIQUE (name) DEFERRABLE; INSERT INTO people (id) VALUES (1), (1)",
        )
        .unwrap();
    client.batch_execute("CREATE UNIQUE INDEX CONCURRENTLY broken ON people (id)").unwrap_err();
    for key in ["name", "id"] {
        let error = upsert(&[key]).unwrap_err();
        assert!(error.what().contains("no unique key"), "{key}: {error}");
    }
    let absent = database.target("nobody").mode(Mode::Upsert).key(vec!["id".into()]);
    assert!(run(&source, &absent, &small()).unwrap_err().what().contains("the table does not exist"));
}

#[test]
fn a_key_without_overlaps_is_refused_before_a_row_is_sent() {
    let database = Database::new();
    let mut client = database.client();
    let version = "SELECT current_setting('server_version_num')::int";
    if client.query_one(version, &[]).unwrap().get::<_, i32>(0) < 180_000 {
        return;
    }
    let table = "CREATE TABLE booked (room int4range, at daterange, PRIMARY KEY (room, at WITHOUT OVERLAPS))";
    client.batch_execute(table).unwrap();
    let column = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let columns = vec![("room", column("[1,2)")), ("at", column("[2024-01-01,2024-02-01)"))];
    let (_directory, path) = file_of(columns, 10);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let upsert = database.target("booked").mode(Mode::Upsert).key(vec!["room".into(), "at".into()]);
    let error = run(&source, &upsert, &small()).unwrap_err();
    assert!(error.what().contains("no unique key"), "{error}");
    assert!(!database.has("booked__sawmill_loading"));
    run(&source, &database.target("booked").mode(Mode::Append), &small()).unwrap();
    assert_eq!(database.count("booked"), 1);
}

#[test]
fn two_rows_with_the_same_key_are_an_error_and_change_nothing() {
    let database = Database::new();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 2]));
    let (_directory, path) = file_of(vec![("id", ids)], 10);
    let source = ParquetFiles::open(&[&path]).unwrap();
    database
        .client()
        .batch_execute("CREATE TABLE t (id bigint PRIMARY KEY, n int DEFAULT 1); INSERT INTO t VALUES (2)")
        .unwrap();
    let target = database.target("t").mode(Mode::Upsert).key(vec!["id".into()]);
    // All columns belong to the key: there is nothing to replace, and the first of two rows counts.
    run(&source, &target, &small()).unwrap();
    assert_eq!(database.count("t"), 2);
    let amounts: ArrayRef = Arc::new(Int32Array::from(vec![7, 8, 9]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 2]));
    let (_directory, path) = file_of(vec![("id", ids), ("n", amounts)], 10);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("same key"), "{error}");
    assert_eq!(database.count("t WHERE n = 1"), 2, "nothing was merged");
    // The staging table stays, so that the load can be resumed, and is dropped when it is forgotten.
    assert!(database.has("t__sawmill_loading"));
    with_control(|control| forget(&target, false, control)).unwrap();
    assert!(!database.has("t__sawmill_loading"));
}

#[test]
fn columns_that_only_the_table_has_get_their_default_or_null_and_are_named() {
    let database = Database::new();
    let table = "CREATE TABLE t (made timestamptz DEFAULT now(), name text, remark text, id bigint PRIMARY KEY, \
                 amount double precision, twice double precision GENERATED ALWAYS AS (amount * 2) STORED)";
    database.client().batch_execute(table).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1000, 700);
    let source = ParquetFiles::open(&[path]).unwrap();
    let upsert = database.target("t").mode(Mode::Upsert).key(vec!["id".into()]);
    let targets =
        [database.target("t").mode(Mode::Append), upsert, database.target("t").mode(Mode::Truncate)];
    for target in targets {
        let report = run(&source, &target, &small()).unwrap();
        assert!(report.verified.unwrap().matches());
        let note = "columns of the table that the files lack: \"made\" (its default), \"remark\" (null), \"twice\" (computed)";
        assert!(report.notes.iter().any(|found| **found == *note), "{:?}", report.notes);
        let counts = "SELECT count(*), count(made), count(remark), count(twice) FROM t";
        let counts = database.client().query_one(counts, &[]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|i| counts.get::<_, i64>(i)), [1000, 1000, 0, 1000]);
        database.client().batch_execute("UPDATE t SET remark = 'kept' WHERE id = 7").unwrap();
        let verified = crate::database::with_control(|control| {
            sawmill_postgres::verify(&source, &database.target("t"), &small(), control)
        });
        let verified = verified.unwrap();
        assert!(verified.matches());
        assert_eq!(verified.not_compared, ["made", "remark", "twice"]);
        database.client().batch_execute("UPDATE t SET remark = NULL").unwrap();
    }
}

#[test]
fn an_upsert_of_keys_alone_counts_the_rows_that_it_inserted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1000, 500);
    let source = ParquetFiles::open(&[&path]).unwrap().select(&["id".to_owned()], &[]).unwrap();
    let database = Database::new();
    let table = "CREATE TABLE k (id bigint PRIMARY KEY); INSERT INTO k SELECT generate_series(0, 99)";
    database.client().batch_execute(table).unwrap();
    let target = database.target("k").mode(Mode::Upsert).key(vec!["id".into()]);
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1000, 900, 100));
    assert_eq!(database.count("k"), 1000);
}

#[test]
fn of_two_upserts_at_once_the_second_one_is_told_to_wait_for_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(format!("{name}.parquet")));
    paths.iter().for_each(|path| people(path, 0, 1000, 500));
    let [first, second] = paths.map(|path| ParquetFiles::open(&[path]).unwrap());
    let database = Database::new();
    database
        .client()
        .batch_execute("CREATE TABLE k (id bigint PRIMARY KEY, name text, amount float8)")
        .unwrap();
    let target = database.target("k").mode(Mode::Upsert).key(vec!["id".into()]);
    let tried = std::sync::OnceLock::new();
    let wait = || {
        tried.get_or_init(|| run(&second, &target, &small()).unwrap_err());
    };
    run(&crate::slowed::Slowed::new(&first, &wait), &target, &small()).unwrap();
    let error = tried.get().unwrap();
    assert!(error.kind() == Kind::Busy && error.what().contains("is running"), "{error}");
    assert!(error.advice().contains("wait") && !error.advice().contains("forget"), "{error}");
    run(&second, &target, &small()).unwrap();
}

#[test]
fn of_rows_with_one_key_the_first_stays_over_one_connection_and_the_report_says_where_the_others_are() {
    let (_directory, path) = file_of(
        vec![
            ("id", Arc::new(Int32Array::from(vec![1, 1, 2, 1])) as ArrayRef),
            ("name", Arc::new(StringArray::from(vec!["a", "b", "c", "d"]))),
            ("at", Arc::new(Int32Array::from(vec![5, 5, 5, 5]))),
        ],
        2,
    );
    for on_conflict in [OnConflict::Keep, OnConflict::KeepNewest("at".to_owned())] {
        let database = Database::new();
        let create = "CREATE TABLE t (id integer PRIMARY KEY, name text, at integer)";
        database.client().batch_execute(create).unwrap();
        let target = database.target("t").mode(Mode::Upsert).key(vec!["id".to_owned()]);
        let target = target.on_conflict(on_conflict.clone());
        let options = LoadOptions { degree: 1, ..small() };
        let report = run(&ParquetFiles::open(&[&path]).unwrap(), &target, &options).unwrap();
        assert_eq!((report.rows_loaded, report.rows_there_before), (2, 2));
        let elsewhere = report.notes.iter().any(|note| note.contains("elsewhere in the files"));
        assert_eq!(elsewhere, on_conflict == OnConflict::Keep, "{:?}", report.notes);
        let text = "SELECT string_agg(id || name, ',' ORDER BY id) FROM t";
        assert_eq!(database.client().query_one(text, &[]).unwrap().get::<_, String>(0), "1a,2c");
    }
}
