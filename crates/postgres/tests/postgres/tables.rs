//! Nested values as tables of their own (`PostgresTables`): their keys, and the way back to the rows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields, Schema};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode, TableName};
use sawmill_postgres::{OfTable, Postgres, PostgresTables, forget, status};
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, Limited, ParquetFiles, Result, Source};

use crate::database::{Database, small, with_control};
use crate::fixture::{file_of, write};
use crate::nested::plain_array;

/// Loads the tables of a source.
pub fn load(
    source: &dyn Source,
    target: Postgres,
    keys: bool,
    options: &LoadOptions,
) -> Result<Vec<OfTable<LoadReport>>> {
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("load");
    PostgresTables::new(source, target, keys)?.load(options, &Control::new(&cancel, &phase), &mut |_| {})
}

fn text(database: &Database, query: &str) -> String {
    database.client().query_one(query, &[]).unwrap().get::<_, Option<String>>(0).unwrap_or_default()
}

/// People with a home, lists of lists, and a map.
fn people() -> (tempfile::TempDir, ParquetFiles) {
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(10..14));
    let city: ArrayRef = Arc::new(StringArray::from(vec![Some("Bern"), None, Some("hidden"), Some("Ulm")]));
    let home = StructArray::new(
        Fields::from(vec![Field::new("city", DataType::Utf8, true)]),
        vec![city],
        Some(vec![true, true, false, true].into()),
    );
    let mut lines = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    lines.values().append_value([Some(1), None]);
    lines.values().append_null();
    lines.values().append_value([]);
    lines.append(true);
    lines.append(false);
    lines.append(true);
    lines.values().append_value([Some(7)]);
    lines.append(true);
    let mut marks = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for (key, value) in [("a", Some(1)), ("b", None)] {
        marks.keys().append_value(key);
        marks.values().append_option(value);
    }
    marks.append(true).unwrap();
    for there in [false, true, true] {
        marks.append(there).unwrap();
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", ids),
        ("home", Arc::new(home)),
        ("lines", Arc::new(lines.finish())),
        ("marks", Arc::new(marks.finish())),
    ];
    let (directory, path) = file_of(columns, 2);
    (directory, ParquetFiles::open(&[path]).unwrap())
}

#[test]
fn each_level_of_lists_is_a_table_whose_key_leads_back_to_the_row() {
    let database = Database::new();
    let (_directory, source) = people();
    let reports = load(&source, database.target("people"), false, &small()).unwrap();
    let rows: Vec<(&str, u64)> =
        reports.iter().map(|report| (report.table.as_str(), report.result.rows)).collect();
    let expected = [
        ("public.people", 4),
        ("public.people_lines", 4),
        ("public.people_lines_item", 3),
        ("public.people_marks", 2),
    ];
    assert_eq!(rows, expected);
    assert!(reports.iter().all(|report| report.result.verified.as_ref().unwrap().matches()));
    let all =
        |table: &str| text(&database, &format!("SELECT string_agg(t::text, ' ' ORDER BY t) FROM {table} t"));
    assert_eq!(all("people"), "(0,10,t,Bern,3,2) (1,11,t,,,) (2,12,f,,0,0) (3,13,t,Ulm,1,0)");
    assert_eq!(all("people_lines"), "(0,1,2) (0,2,) (0,3,0) (3,1,1)");
    assert_eq!(all("people_lines_item"), "(0,1,1,1) (0,1,2,) (3,1,1,7)");
    assert_eq!(all("people_marks"), "(0,1,a,1) (0,2,b,)");
    // The same load again has nothing to do, and both sides still agree.
    let again = load(&source, database.target("people"), false, &small()).unwrap();
    assert!(again.iter().all(|report| report.result.state == LoadState::Complete));
    let tables = PostgresTables::new(&source, database.target("people"), false).unwrap();
    let verified = with_control(|control| tables.verify(&small(), control)).unwrap();
    assert!(verified.iter().all(|verified| verified.result.matches()));
    database.client().batch_execute("UPDATE people_marks SET value = 2 WHERE key = 'b'").unwrap();
    let verified = with_control(|control| tables.verify(&small(), control)).unwrap();
    let differing: Vec<&str> =
        verified.iter().filter(|one| !one.result.matches()).map(|one| one.table.as_str()).collect();
    assert_eq!((differing, &verified[3].result.differing), (vec!["people_marks"], &vec!["value".to_owned()]));
}

#[test]
fn keys_are_created_when_all_tables_are_complete_and_survive_a_replacement() {
    let database = Database::new();
    let (_directory, source) = people();
    let tables = PostgresTables::new(&source, database.target("p"), true).unwrap();
    let ddl = with_control(|control| tables.ddl(control)).unwrap();
    assert!(ddl.contains("ALTER TABLE \"p_lines_item\" ADD CONSTRAINT \"p_lines_item_fkey\" FOREIGN KEY (\"_row\", \"_ordinal\") REFERENCES \"p_lines\" (\"_row\", \"_ordinal\")"), "{ddl}");
    database.client().batch_execute(&ddl).unwrap();
    database.client().batch_execute("INSERT INTO p VALUES (77, 1, true)").unwrap();
    let error = load(&source, database.target("p"), true, &small()).unwrap_err();
    assert!(error.kind() == Kind::Exists && error.what().contains("public.p_lines_item"), "{error}");
    for _ in 0..2 {
        load(&source, database.target("p").mode(Mode::Replace), true, &small()).unwrap();
        let keys = "SELECT string_agg(conrelid::regclass || ':' || conname, ' ' ORDER BY conname) \
                    FROM pg_constraint WHERE contype IN ('p', 'f') AND connamespace = 'public'::regnamespace";
        assert_eq!(
            text(&database, keys),
            "p_lines:p_lines_fkey p_lines_item:p_lines_item_fkey p_lines_item:p_lines_item_pkey \
             p_lines:p_lines_pkey p_marks:p_marks_fkey p_marks:p_marks_pkey p:p_pkey"
        );
        assert_eq!(database.count("p") + database.count("p_lines"), 8);
    }
    // Other content: everything has to be loaded again.
    let replacing = database.target("p").mode(Mode::Replace);
    load(&Limited::new(&source, 1), replacing.clone(), true, &small()).unwrap();
    assert_eq!((database.count("p"), database.count("p_lines")), (1, 3));
    // Loads into the dropped tables are not remembered.
    let gone = "_sawmill.loads WHERE table_oid::oid NOT IN (SELECT oid FROM pg_class)";
    assert_eq!(database.count(gone), 0);
    with_control(|control| forget(&replacing, true, control)).unwrap();
    assert!(!database.has("p") && !database.has("p_lines_item") && !database.has("_sawmill.loads"));
}

#[test]
fn other_modes_and_clashing_names_are_refused() {
    let database = Database::new();
    let (_directory, source) = people();
    let error = load(&source, database.target("p").mode(Mode::Append), false, &small()).unwrap_err();
    assert!(error.kind() == Kind::Config && error.what().contains("mode append"), "{error}");
    let count: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
    let (_other, path) = file_of(vec![("a_count", count), ("a", Arc::new(list))], 10);
    let error =
        load(&ParquetFiles::open(&[path]).unwrap(), database.target("p"), false, &small()).unwrap_err();
    assert!(error.kind() == Kind::Schema && error.what().contains("column \"a_count\""), "{error}");
    assert!(!database.has("p"));
}

/// 20,000 rows of `n` and a list of 0 to 6 numbers, which begin with `n`.
fn numbers() -> (tempfile::TempDir, ParquetFiles) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.parquet");
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..20_000));
    let lists = (0..20_000).map(|n| Some((0..n % 7).map(move |i| Some(n + i))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    write(&path, &RecordBatch::try_from_iter([("n", n), ("list", lists)]).unwrap(), 5000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    (directory, source)
}

const NUMBERS_ARE_RIGHT: &str = "t FULL JOIN (SELECT _row, count(*) AS items, min(_ordinal) AS least, \
    max(_ordinal) AS most, bool_and(value = _row + _ordinal - 1) AS right_values FROM t_list GROUP BY 1) l \
    USING (_row) WHERE n = _row AND list_count = n % 7 AND coalesce(items, 0) = n % 7 \
    AND (n % 7 = 0 OR least = 1 AND most = items AND right_values)";

#[test]
fn a_load_interrupted_in_one_table_resumes_and_shows_none_before_all_are_complete() {
    let database = Database::new();
    let (_directory, source) = numbers();
    let broken = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&source, database.target("t"), true, &small()));
        let mut client = database.client();
        while !loading.is_finished() {
            let check = "ALTER TABLE t_list__sawmill_loading ADD CONSTRAINT stop CHECK (_row <> 19000)";
            if client.batch_execute(check).is_ok() {
                break;
            }
        }
        loading.join().unwrap()
    });
    let error = broken.unwrap_err();
    assert!(error.what().contains("stop"), "{error}");
    // The rows themselves are all loaded, but not visible.
    assert!(!database.has("t") && database.count("t__sawmill_loading") == 20_000);
    let server = database.url.parse().unwrap();
    let loads = with_control(|control| status(&server, Postgres::CHECKPOINT_SCHEMA, None, control)).unwrap();
    let complete: Vec<(&str, bool)> =
        loads.iter().rev().map(|load| (load.table.as_str(), load.completed.is_some())).collect();
    assert_eq!(complete, [("public.t", true), ("public.t_list", false)]);
    database.client().batch_execute("ALTER TABLE t_list__sawmill_loading DROP CONSTRAINT stop").unwrap();
    let reports = load(&source, database.target("t"), true, &small()).unwrap();
    let standings: Vec<LoadState> = reports.iter().map(|report| report.result.state).collect();
    assert_eq!(standings, [LoadState::Complete, LoadState::Resumed]);
    assert!(reports[1].result.units_resumed > 0);
    assert_eq!(database.count(NUMBERS_ARE_RIGHT), 20_000);
}

#[test]
fn an_interrupted_load_is_forgotten_with_all_its_tables() {
    let database = Database::new();
    let (_directory, source) = numbers();
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("load");
    let tables = PostgresTables::new(&source, database.target("t"), false).unwrap();
    let mut before_lists = |table: &TableName| {
        cancel.store(table.name() == "t_list", std::sync::atomic::Ordering::Relaxed);
    };
    let error = tables.load(&small(), &Control::new(&cancel, &phase), &mut before_lists).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled);
    assert!(database.has("t__sawmill_loading"));
    with_control(|control| forget(&database.target("t"), false, control)).unwrap();
    let left = "SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(text(&database, left), "");
    assert!(!database.has("_sawmill.loads"));
    load(&source, database.target("t"), false, &small()).unwrap();
    assert_eq!(database.count(NUMBERS_ARE_RIGHT), 20_000);
}

#[test]
fn a_value_below_a_list_that_cannot_be_stored_is_refused_with_its_row() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..30 {
        lists.append_value((0..row % 4).map(|_| Some(if row == 27 { "a\0b" } else { "ab" })));
    }
    let (_directory, path) = file_of(vec![("list", Arc::new(lists.finish()) as ArrayRef)], 20);
    let source = ParquetFiles::open(&[path]).unwrap();
    let error = load(&source, Database::new().target("t"), false, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.place().contains("row group 1, row 7, column \"value\""), "{error}");
}

/// The value of a field as jsonb, put together from the tables. `names` are the tables that follow, `prefix`
/// the beginning of the field's columns in the table `alias`, which is `level` lists deep.
fn together(
    field: &Field,
    prefix: &[String],
    alias: &str,
    level: usize,
    names: &mut dyn Iterator<Item = TableName>,
) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let column = |suffix: &str| format!("{alias}.{}", quoted(&(prefix.join("_") + suffix)));
    let ordinal = |level: usize| if level == 1 { "_ordinal".to_owned() } else { format!("_ordinal{level}") };
    match field.data_type() {
        DataType::List(item) => {
            let table = quoted(names.next().unwrap().name());
            let inner = format!("i{}", level + 1);
            let value = together(item, &[], &inner, level + 1, names);
            let keys: Vec<String> = (1..=level)
                .map(ordinal)
                .chain(["_row".to_owned()])
                .map(|key| format!("{inner}.{key} = {alias}.{key}"))
                .collect();
            format!(
                "CASE WHEN {} IS NOT NULL THEN coalesce((SELECT jsonb_agg({value} ORDER BY {inner}.{}) \
                 FROM {table} {inner} WHERE {}), '[]') END",
                column("_count"),
                ordinal(level + 1),
                keys.join(" AND ")
            )
        }
        DataType::Struct(fields) => {
            let members: Vec<String> = fields
                .iter()
                .map(|field| {
                    let prefix = [prefix, &[field.name().clone()]].concat();
                    let value = together(field, &prefix, alias, level, names);
                    format!("'{}', {value}", field.name())
                })
                .collect();
            format!("CASE WHEN {} THEN jsonb_build_object({}) END", column("_present"), members.join(", "))
        }
        _ if prefix.is_empty() => format!("to_jsonb({alias}.value)"),
        _ => format!("to_jsonb({})", column("")),
    }
}

#[test]
fn random_nested_batches_are_put_together_again() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("random.parquet");
    let number = std::cell::Cell::new(0);
    // Four times as many at night: by default PROPTEST_CASES is 256.
    let cases = Config::default().cases / 16;
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&proptest::collection::vec(plain_array(3, 23), 1..4), |columns| {
            number.set(number.get() + 1);
            let (flat, jsonb) = (format!("flat_{}", number.get()), format!("jsonb_{}", number.get()));
            let named = columns.into_iter().enumerate().map(|(i, array)| (format!("c{i}"), array));
            let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..23));
            let named = named.chain([("n".to_owned(), n)]).map(|(name, array)| (name, array, true));
            let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
            write(&path, &batch, 10);
            let source = ParquetFiles::open(&[&path]).unwrap();
            let options = LoadOptions { batch_rows: 4, ..small() };
            let loaded = load(&source, database.target(&flat), true, &options);
            loaded.map_err(|error| TestCaseError::fail(error.to_string()))?;
            crate::database::run(&source, &database.target(&jsonb), &small()).unwrap();
            let tables = PostgresTables::new(&source, database.target(&flat), false).unwrap();
            let mut names = tables.names().into_iter().skip(1);
            let schema: &Schema = &batch.schema();
            for field in schema.fields() {
                let value = together(field, &[field.name().clone()], "a", 0, &mut names);
                let name = field.name();
                let sql = format!(
                    "{flat} a FULL JOIN {jsonb} b ON b.n = a.n \
                     WHERE a._row IS DISTINCT FROM b.n OR to_jsonb(b.{name}) IS DISTINCT FROM {value}"
                );
                prop_assert_eq!(database.count(&sql), 0, "{}", sql);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_replacement_drops_tables_of_lists_that_the_files_no_longer_have() {
    for foreign_keys in [false, true] {
        let database = Database::new();
        let (_directory, source) = people();
        let target = || database.target("people").mode(Mode::Replace);
        load(&source, target(), foreign_keys, &small()).unwrap();
        database.client().batch_execute("CREATE TABLE people_of_others (id integer)").unwrap();
        assert!(database.has("people_lines") && database.has("people_lines_item"));
        let (_less, source) = people();
        let source = source.select(&["id".into(), "marks".into()], &[]).unwrap();
        let reports = load(&source, target(), foreign_keys, &small()).unwrap();
        assert!(!database.has("people_lines") && !database.has("people_lines_item"));
        assert!(database.has("people_marks") && database.has("people_of_others"));
        let note = reports[0].result.notes.iter().find(|note| note.contains("no longer have")).unwrap();
        assert!(note.contains("public.people_lines") && note.contains("public.people_lines_item"), "{note}");
        assert_eq!(database.count("_sawmill.loads WHERE target LIKE '%people\\_lines%'"), 0);
        // The next replacement keeps what exists.
        let options = LoadOptions { again: true, ..small() };
        let reports = load(&source, target(), foreign_keys, &options).unwrap();
        assert!(reports[0].result.notes.iter().all(|note| !note.contains("no longer have")));
        assert_eq!(database.count("people_marks"), 2);
    }
}

#[test]
fn tables_that_views_depend_on_are_not_replaced_and_the_views_are_named_before_a_row_is_sent() {
    let database = Database::new();
    let (_directory, source) = people();
    let target = || database.target("people").mode(Mode::Replace);
    load(&source, target(), true, &small()).unwrap();
    database.client().batch_execute("CREATE VIEW marked AS SELECT count(*) FROM people_marks").unwrap();
    let options = LoadOptions { again: true, ..small() };
    let error = load(&source, target(), true, &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists, "{error}");
    assert!(error.what().contains("view marked"), "{error}");
    assert!(!database.has("people__sawmill_loading"));
    database.client().batch_execute("DROP VIEW marked").unwrap();
    load(&source, target(), true, &options).unwrap();
}
