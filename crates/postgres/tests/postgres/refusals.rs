//! If a server or its tables do not allow a load, the error has advice, if possible before a row is sent.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::Schema;
use sawmill_loader::{LoadOptions, Mode};
use sawmill_pgcopy::{Nul, ValueOptions};
use sawmill_postgres::{Postgres, verify};
use sawmill_source::{Error, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, write};

struct Case {
    database: Database,
    _directory: tempfile::TempDir,
    source: ParquetFiles,
}

/// Rows of `id bigint, word text`, and a database made ready by these statements.
fn case(ids: &[i64], statements: &str) -> Case {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(ids.to_vec()))),
        ("word", Arc::new(StringArray::from_iter_values(ids.iter().map(i64::to_string)))),
    ];
    let (directory, path) = file_of(columns, 100);
    let database = Database::new();
    database.client().batch_execute(statements).unwrap();
    Case { database, _directory: directory, source: ParquetFiles::open(&[path]).unwrap() }
}

impl Case {
    fn target(&self, mode: Mode) -> Postgres {
        self.database.target("t").mode(mode)
    }

    #[track_caller]
    fn refused(&self, target: &Postgres, what: &str, advice: &str) -> Error {
        let error = run(&self.source, target, &small()).unwrap_err();
        assert!(error.what().contains(what) && error.advice().contains(advice), "{error}");
        error
    }
}

#[test]
fn a_temporary_table_and_one_with_policies_are_refused_with_advice() {
    let case = case(
        &[1],
        "CREATE TABLE t (id bigint, word text); ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
                           INSERT INTO t VALUES (1, '1'), (7, 'hidden')",
    );
    let temporary = Postgres::new(case.database.url.parse().unwrap(), "pg_temp.t".parse().unwrap());
    case.refused(&temporary, "a temporary table", "another schema");
    assert!(!case.database.has("_sawmill.loads"));
    let (scheme, rest) = case.database.url.split_once("://").unwrap();
    let (_, host) = rest.rsplit_once('@').unwrap();
    let (_, name) = host.rsplit_once('/').unwrap();
    let role = format!("bound_{name}");
    let sql = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT ALL ON DATABASE {name} TO {role}; GRANT ALL ON t TO {role}; \
         CREATE POLICY p ON t USING (id < 5)"
    );
    case.database.client().batch_execute(&sql).unwrap();
    let bound = case.database.with_url(format!("{scheme}://{role}:x@{host}"));
    for mode in [Mode::Append, Mode::Truncate] {
        case.refused(&bound.target("t").mode(mode), "row-level security", "BYPASSRLS");
        assert_eq!(case.database.count("t"), 2, "nothing was sent or removed");
    }
    // This user sees only the file's row; verification must still notice the other one.
    let target = bound.target("t");
    let error = with_control(|control| verify(&case.source, &target, &small(), control)).unwrap_err();
    assert!(error.what().contains("row-level security") && error.advice().contains("BYPASSRLS"), "{error}");
}

#[test]
fn only_tables_are_filled_and_replaced() {
    for (statements, what) in [
        ("CREATE VIEW t AS SELECT 1::bigint AS id, 'x' AS word", "it is a view, not a table"),
        ("CREATE MATERIALIZED VIEW t AS SELECT 1::bigint AS id, 'x' AS word", "it is a materialized view"),
        ("CREATE SEQUENCE t", "it is a sequence"),
        ("CREATE TABLE other (id int); CREATE INDEX t ON other (id)", "it is an index"),
    ] {
        let case = case(&[1], statements);
        for mode in [Mode::Create, Mode::Append, Mode::Replace, Mode::Truncate] {
            case.refused(&case.target(mode), what, "");
            assert!(!case.database.has("t__sawmill_loading"), "no row was sent");
        }
    }
}

#[test]
fn a_column_that_the_table_computes_is_reported_as_such() {
    let case = case(&[1], "CREATE TABLE t (id bigint, word text GENERATED ALWAYS AS ('x') STORED)");
    case.refused(&case.target(Mode::Append), "the table computes column \"word\"", "--columns");
}

#[test]
fn files_without_columns_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.parquet");
    let rows = RecordBatchOptions::new().with_row_count(Some(3));
    write(&path, &RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &rows).unwrap(), 10);
    let database = Database::new();
    let error = run(&ParquetFiles::open(&[path]).unwrap(), &database.target("t"), &small()).unwrap_err();
    assert!(
        error.what().contains("no columns") && error.advice().contains("load files that have columns"),
        "{error}"
    );
}

#[test]
fn time_limits_and_read_only_servers_are_not_reported_as_errors_of_rows() {
    let slow = "CREATE TABLE t (id bigint CHECK (pg_sleep(60)::text = ''), word text)";
    let case = case(&[1, 2], slow);
    let append = case.target(Mode::Append);
    let late = case.refused(
        &append.clone().setting("statement_timeout", "2000"),
        "statement timeout",
        "--set statement_timeout=0",
    );
    assert!(!late.place().contains("row group"), "{late}");
    let version = "SELECT current_setting('server_version_num')::int";
    if case.database.client().query_one(version, &[]).unwrap().get::<_, i32>(0) >= 170_000 {
        let late = append.clone().setting("transaction_timeout", "2000");
        case.refused(&late, "transaction timeout", "--set transaction_timeout=0");
    }
    let read_only = append.setting("default_transaction_read_only", "on");
    case.refused(&read_only, "read-only transaction", "standby");
}

#[test]
fn constraints_checked_after_all_rows_of_a_unit_are_reported_with_these_rows() {
    let others = "CREATE TABLE others (id bigint PRIMARY KEY); INSERT INTO others VALUES (1), (2); \
                  CREATE TABLE t (id bigint REFERENCES others, word text)";
    let case = case(&[1, 2, 3], others);
    let error = case.refused(&case.target(Mode::Append), "Key (id)=(3) is not present", "--rejects");
    assert!(error.place().ends_with("data.parquet, row group 0, row 0 or one up to row 2"), "{error}");
}

#[test]
fn a_table_with_dependents_is_not_replaced_and_they_are_named_before_a_row_is_sent() {
    for (statements, what) in [
        ("CREATE VIEW \"the view\" AS SELECT id FROM t", "view \"the view\""),
        ("CREATE MATERIALIZED VIEW m AS SELECT id FROM t", "materialized view m"),
        ("CREATE TABLE other (id bigint REFERENCES t)", "constraint other_id_fkey on table other"),
    ] {
        let case = case(&[1, 2], &format!("CREATE TABLE t (id bigint PRIMARY KEY, word text); {statements}"));
        case.refused(&case.target(Mode::Replace), what, "mode truncate");
        assert!(!case.database.has("t__sawmill_loading"), "no row was sent");
    }
    // Objects that belong to the table itself are dropped with it.
    let own = "CREATE TABLE t (id bigserial PRIMARY KEY CHECK (id > 0), up bigint REFERENCES t DEFAULT 1, \
               word text GENERATED ALWAYS AS ('x') STORED); CREATE INDEX ON t (lower(word))";
    let case = case(&[1, 2], own);
    run(&case.source, &case.target(Mode::Replace), &small()).unwrap();
    assert_eq!(case.database.count("t"), 2);
}

#[test]
fn an_upsert_names_the_duplicate_key() {
    let case = case(&[4, 7, 5, 7, 7], "CREATE TABLE t (id bigint PRIMARY KEY, word text)");
    let upsert = case.target(Mode::Upsert).key(vec!["id".into()]);
    case.refused(&upsert, "the same key (\"id\"): (7) occurs 3 times", "sawmill load forget");
    assert_eq!(case.database.count("t"), 0);
}

#[test]
fn a_load_that_a_value_has_ended_blocks_none_that_can_take_it() {
    let case = case(&[1], "SELECT 1");
    let words = |words: Vec<&str>| {
        let columns: Vec<(&str, ArrayRef)> = vec![("word", Arc::new(StringArray::from(words)))];
        let (directory, path) = file_of(columns, 1);
        (directory, ParquetFiles::open(&[path]).unwrap())
    };
    let options = LoadOptions { degree: 1, ..small() };
    let strip = ValueOptions { nul: Nul::Strip, ..ValueOptions::default() };
    let create = case.target(Mode::Create);
    // The first value cannot be loaded: nothing is committed.
    let (_one, first) = words(vec!["nul\0", "b"]);
    run(&first, &create, &options).unwrap_err();
    assert!(case.database.has("t__sawmill_loading"));
    run(&first, &create.clone().values(strip), &options).unwrap();
    assert_eq!(case.database.count("t"), 2);
    // Rows to merge into an existing table do not bind the load either.
    case.database.client().batch_execute("CREATE TABLE merged (word text PRIMARY KEY)").unwrap();
    let merging = case.database.target("merged").mode(Mode::Upsert).key(vec!["word".to_owned()]);
    run(&first, &merging, &options).unwrap_err();
    assert!(case.database.has("merged__sawmill_loading"));
    run(&first, &merging.values(strip), &options).unwrap();
    assert_eq!(case.database.count("merged"), 2);
    // The last value cannot, after more units than are committed together: they wait in the staging table, and go.
    let target = case.database.target("u");
    let (_two, second) = words([vec!["a"; 600], vec!["nul\0"]].concat());
    run(&second, &target, &options).unwrap_err();
    assert!((1..600).contains(&case.database.count("u__sawmill_loading")));
    run(&second, &target.clone().values(strip), &options).unwrap();
    assert_eq!(case.database.count("u"), 601);
}
