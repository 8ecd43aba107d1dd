//! Nested values as PostgreSQL's own arrays and composite types (`Nested::Native`).

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeListBuilder, Float32Builder, Int32Builder, ListBuilder, MapBuilder, StringBuilder, StructBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sawmill_loader::{LoadState, Mode, RejectOptions};
use sawmill_postgres::{Nested, Postgres, forget, verify};
use sawmill_source::{Kind, ParquetFiles, Source};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, write};
use crate::nested::plain_array;

fn target(database: &Database, table: &str) -> Postgres {
    database.target(table).nested(Nested::Native)
}

#[test]
fn text_that_is_too_long_for_an_element_or_an_attribute_is_refused_and_not_cut() {
    let database = Database::new();
    let types = "CREATE DOMAIN short AS varchar(2); CREATE TYPE named AS (s varchar(2)); \
                 CREATE TYPE entry AS (key text, value short)";
    database.client().batch_execute(types).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["ab", "a ", "ab  "]));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([1, 1, 1]);
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let list: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::clone(&texts), None));
    let field = |name: &str| Field::new(name, DataType::Utf8, true);
    let object: ArrayRef =
        Arc::new(StructArray::new(Fields::from(vec![field("s")]), vec![Arc::clone(&texts)], None));
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for value in ["ab", "a ", "ab  "] {
        maps.keys().append_value("k");
        maps.values().append_value(value);
        maps.append(true).unwrap();
    }
    let written: ArrayRef = Arc::new(StringArray::from(vec!["{ab}", "{a}", "{\"ab  \"}"]));
    let columns = [
        ("varchar(2)[]", Arc::clone(&list)),
        ("short[]", list),
        ("named", object),
        ("entry[]", Arc::new(maps.finish()) as ArrayRef),
        ("varchar(2)[]", written),
    ];
    for (number, (column_type, column)) in columns.into_iter().enumerate() {
        let table = format!("t{number}");
        database.client().batch_execute(&format!("CREATE TABLE {table} (v {column_type})")).unwrap();
        let (directory, path) = file_of(vec![("v", column)], 10);
        let source = ParquetFiles::open(&[&path]).unwrap();
        let append = database.target(&table).mode(Mode::Append);
        let error = run(&source, &append, &small()).unwrap_err();
        assert!(error.what().contains("has 4 characters"), "{column_type}: {error}");
        assert!(error.place().contains("row 2"), "{column_type}: {error}");
        let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
        let report = run(&source, &append.rejects(Some(rejects)), &small()).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (2, 1), "{column_type}");
    }
}

/// A number and a kind.
type Phone = (Option<&'static str>, Option<i32>);

/// Lists of phones with a number and a kind: one, NULL, none, and three with NULLs among them.
fn phones() -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("number", DataType::Utf8, true),
        Field::new("kind", DataType::Int32, true),
    ]);
    let phone =
        StructBuilder::new(fields, vec![Box::new(StringBuilder::new()), Box::new(Int32Builder::new())]);
    let mut phones = ListBuilder::new(phone);
    let mut add = |entries: Option<&[Option<Phone>]>| {
        for entry in entries.unwrap_or_default() {
            let (number, kind) = entry.unwrap_or_default();
            let phone = phones.values();
            phone.field_builder::<StringBuilder>(0).unwrap().append_option(number);
            phone.field_builder::<Int32Builder>(1).unwrap().append_option(kind);
            phone.append(entry.is_some());
        }
        phones.append(entries.is_some());
    };
    add(Some(&[Some((Some("+91 1"), Some(1)))]));
    add(None);
    add(Some(&[]));
    add(Some(&[Some((None, Some(2))), None, Some((Some("a \"b\", (c)"), None)), Some((None, None))]));
    Arc::new(phones.finish())
}

fn texts(database: &Database, query: &str) -> Vec<Option<String>> {
    database.client().query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

fn types(database: &Database) -> Vec<String> {
    let sql = "SELECT t.typname::text FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c' \
               JOIN pg_namespace n ON n.oid = t.typnamespace AND n.nspname = 'public' ORDER BY 1";
    texts(database, sql).into_iter().flatten().collect()
}

#[test]
fn a_list_of_structs_becomes_an_array_of_a_type_of_its_own() {
    let database = Database::new();
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..4));
    let (_directory, path) = file_of(vec![("n", n), ("phones", phones())], 100);
    let source = ParquetFiles::open(&[path]).unwrap();
    let target = target(&database, "contacts");
    assert_eq!(
        with_control(|control| target.ddl(&source, control)).unwrap(),
        "CREATE TYPE \"contacts_phones\" AS (\n  \"number\" text,\n  \"kind\" integer\n);\n\
         CREATE TABLE \"contacts\" (\n  \"n\" integer,\n  \"phones\" \"contacts_phones\"[]\n)"
    );
    run(&source, &target, &small()).unwrap();
    assert_eq!(
        texts(&database, "SELECT phones::text FROM contacts ORDER BY n"),
        [
            Some("{\"(\\\"+91 1\\\",1)\"}".to_owned()),
            None,
            Some("{}".to_owned()),
            Some("{\"(,2)\",NULL,\"(\\\"a \\\"\\\"b\\\"\\\", (c)\\\",)\",\"(,)\"}".to_owned()),
        ]
    );
    let numbers = "SELECT phone.number FROM contacts, unnest(phones) AS phone WHERE phone.kind = 1";
    assert_eq!(texts(&database, numbers), [Some("+91 1".to_owned())]);
    assert_eq!(types(&database), ["contacts_phones"]);
    // The existing table decides, without the option.
    let again = with_control(|control| verify(&source, &database.target("contacts"), &small(), control));
    assert!(again.unwrap().matches());
}

#[test]
fn the_same_rows_have_the_same_content_sum_in_every_table() {
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..4));
    let (_directory, path) = file_of(vec![("n", n), ("phones", phones())], 100);
    let source = ParquetFiles::open(&[path]).unwrap();
    let database = Database::new();
    // The server gives each table's types other OIDs.
    let sums = ["one", "other"].map(|table| {
        let report = run(&source, &target(&database, table), &small()).unwrap();
        let compared = with_control(|control| verify(&source, &database.target(table), &small(), control));
        assert_eq!(compared.unwrap().target, report.content);
        report.content.content_sum
    });
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn the_remaining_rows_are_verified_when_the_server_refuses_others() {
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..4));
    let (directory, path) = file_of(vec![("n", n), ("phones", phones())], 100);
    let source = ParquetFiles::open(&[path]).unwrap();
    let database = Database::new();
    run(&source, &target(&database, "contacts"), &small()).unwrap();
    let checked = "CREATE TABLE checked (LIKE contacts, CHECK (n <> 3))";
    database.client().batch_execute(checked).unwrap();
    let rejects = RejectOptions { path: directory.path().join("rejected.parquet"), most: None };
    let target = target(&database, "checked").mode(Mode::Append).rejects(Some(rejects));
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (3, 1));
    assert!(report.verified.unwrap().matches());
    let again = run(&source, &target, &small()).unwrap();
    assert!(again.verified.unwrap().matches());
}

#[test]
fn lists_of_lists_become_arrays_of_several_dimensions() {
    let mut matrices = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    for matrix in [vec![vec![Some(1), None, Some(3)], vec![Some(4), Some(5), Some(6)]], vec![]] {
        for line in matrix {
            matrices.values().append_value(line);
        }
        matrices.append(true);
    }
    let mut embeddings = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    embeddings.values().append_slice(&[0.5, -1.0]);
    embeddings.append(true);
    embeddings.values().append_slice(&[9.0, 9.0]);
    embeddings.append(false);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("m", Arc::new(matrices.finish())), ("e", Arc::new(embeddings.finish()))];
    let (_directory, path) = file_of(columns, 100);
    let database = Database::new();
    run(&ParquetFiles::open(&[path]).unwrap(), &target(&database, "t"), &small()).unwrap();
    let shown = "SELECT m::text || ' ' || coalesce(e::text, 'NULL') FROM t ORDER BY cardinality(m)";
    let expected = ["{} NULL", "{{1,NULL,3},{4,5,6}} {0.5,-1}"].map(|text| Some(text.to_owned()));
    assert_eq!(texts(&database, shown), expected);
    let kind = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute \
                WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum";
    assert_eq!(texts(&database, kind), [Some("integer[]".to_owned()), Some("real[]".to_owned())]);
}

#[test]
fn lists_that_are_not_rectangular_are_refused_with_row_value_and_advice() {
    let database = Database::new();
    let list = |lines: Vec<Option<Vec<Option<i32>>>>| {
        let mut lists = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
        lists.values().append_value([Some(7)]);
        lists.append(true);
        for line in lines {
            lists.values().append_option(line);
        }
        lists.append(true);
        Arc::new(lists.finish()) as ArrayRef
    };
    for (lines, what) in [
        (vec![Some(vec![Some(1), Some(2)]), Some(vec![Some(3)])], "have 2 and, at [1], 1 elements"),
        (vec![Some(vec![Some(1)]), None], "the list at [1] within a list is NULL"),
        (vec![Some(vec![]), Some(vec![])], "2 lists within a list are empty"),
    ] {
        let (_directory, path) = file_of(vec![("m", list(lines))], 100);
        let source = ParquetFiles::open(&[path]).unwrap();
        let error = run(&source, &target(&database, "t"), &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Value);
        assert!(error.what().contains(what) && error.what().contains("--nested jsonb"), "{error}");
        assert!(error.place().contains("row group 0, row 1, column \"m\""), "{error}");
        with_control(|control| forget(&database.target("t"), false, control)).unwrap();
        assert!(types(&database).is_empty());
    }
}

#[test]
fn a_map_becomes_an_array_of_pairs() {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), ListBuilder::new(Int32Builder::new()));
    maps.keys().append_value("a");
    maps.values().append_value([Some(1), Some(2)]);
    maps.keys().append_value("a");
    maps.values().append_null();
    maps.append(true).unwrap();
    let (_directory, path) = file_of(vec![("m", Arc::new(maps.finish()) as ArrayRef)], 100);
    let database = Database::new();
    run(&ParquetFiles::open(&[path]).unwrap(), &target(&database, "t"), &small()).unwrap();
    let pairs = "SELECT (pair).key || ' ' || coalesce((pair).value::text, 'NULL') FROM t, unnest(m) AS pair";
    assert_eq!(texts(&database, pairs), [Some("a {1,2}".to_owned()), Some("a NULL".to_owned())]);
}

#[test]
fn columns_of_an_existing_table_take_lists_and_structs_without_the_option() {
    let database = Database::new();
    database
        .client()
        .batch_execute(
            "CREATE TYPE phone AS (kind bigint, number varchar(40)); \
             CREATE TABLE t (phones phone[], n numeric(13,3)[], j jsonb[])",
        )
        .unwrap();
    let lists = |values: [i32; 4]| {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(values.map(|n| Some([Some(n), None]))))
            as ArrayRef
    };
    let columns = vec![("phones", phones()), ("n", lists([5; 4])), ("j", phones())];
    let (_directory, path) = file_of(columns, 100);
    let source = ParquetFiles::open(&[path]).unwrap();
    let report = run(&source, &database.target("t").mode(Mode::Append), &small()).unwrap();
    assert!(report.verified.unwrap().matches());
    let row = "SELECT phones::text || n::text || (j[4]->>'kind' IS NULL)::text || coalesce(j[2]::text, 'NULL') \
               FROM t WHERE cardinality(phones) = 4";
    let expected =
        "{\"(2,)\",NULL,\"(,\\\"a \\\"\\\"b\\\"\\\", (c)\\\")\",\"(,)\"}{5.000,NULL}trueNULL".to_owned();
    assert_eq!(texts(&database, row), [Some(expected)]);

    database.client().batch_execute("ALTER TYPE phone ADD ATTRIBUTE country text").unwrap();
    let error = run(&source, &database.target("t").mode(Mode::Truncate), &small()).unwrap_err();
    assert!(error.what().contains("\"phones\" is phone[] in the table, which cannot take"), "{error}");
}

#[test]
fn types_come_and_go_with_their_table_and_foreign_ones_stay() {
    let database = Database::new();
    let (_directory, path) = file_of(vec![("phones", phones())], 100);
    let source = ParquetFiles::open(&[path]).unwrap();
    let target = target(&database, "t");
    database.client().batch_execute("CREATE TYPE t_phones AS (x int)").unwrap();
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.kind() == Kind::Exists && error.what().contains("t_phones"), "{error}");
    database.client().batch_execute("DROP TYPE t_phones").unwrap();

    run(&source, &target, &small()).unwrap();
    assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::Complete);
    let replacing = target.clone().mode(Mode::Replace);
    for _ in 0..2 {
        run(&source, &replacing, &small()).unwrap();
        with_control(|control| forget(&replacing, false, control)).unwrap();
        assert_eq!(types(&database), ["t_phones"]);
    }
    assert_eq!(database.count("t WHERE phones IS NOT NULL"), 3);
    // Types left behind by a dropped table are removed.
    database.client().batch_execute("DROP TABLE t").unwrap();
    run(&source, &target, &small()).unwrap();
    with_control(|control| forget(&target, true, control)).unwrap();
    assert!(types(&database).is_empty() && !database.has("t"));
}

#[test]
fn an_interrupted_load_resumes_with_the_types_that_it_has_created() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.parquet");
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..20_000));
    let lists = (0..20_000).map(|n| Some([Some(n), None]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    let fields = Fields::from(vec![Field::new("list", lists.data_type().clone(), true)]);
    let structs: ArrayRef = Arc::new(StructArray::new(fields, vec![lists], None));
    write(&path, &RecordBatch::try_from_iter([("n", n), ("s", structs)]).unwrap(), 5000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let target = target(&database, "t");
    // A row that the server refuses in the middle of the last row group.
    let broken = std::thread::scope(|scope| {
        let loading = scope.spawn(|| run(&source, &target, &small()));
        let mut client = database.client();
        while !loading.is_finished() {
            let check = "ALTER TABLE t__sawmill_loading ADD CONSTRAINT stop CHECK (n <> 19000)";
            if client.batch_execute(check).is_ok() {
                break;
            }
        }
        loading.join().unwrap()
    });
    assert!(broken.unwrap_err().what().contains("stop"));
    assert_eq!(types(&database), ["t__sawmill_loading_s"]);
    database.client().batch_execute("ALTER TABLE t__sawmill_loading DROP CONSTRAINT stop").unwrap();
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Resumed, 20_000));
    assert_eq!(types(&database), ["t_s"]);
    assert_eq!(database.count("t WHERE (s).list = ARRAY[n, NULL]"), 20_000);
}

#[test]
fn random_nested_batches_are_equal_to_what_they_are_as_jsonb() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("random.parquet");
    let number = std::cell::Cell::new(0);
    let arrived = std::cell::Cell::new(0);
    // Four times as many at night: by default PROPTEST_CASES is 256.
    let cases = Config::default().cases / 8;
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&proptest::collection::vec(plain_array(3, 23), 1..4), |columns| {
            number.set(number.get() + 1);
            let (native, jsonb) = (format!("native_{}", number.get()), format!("jsonb_{}", number.get()));
            let count = columns.len();
            let named = columns.into_iter().enumerate().map(|(i, array)| (format!("c{i}"), array));
            let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..23));
            let named = named.chain([("n".to_owned(), n)]).map(|(name, array)| (name, array, true));
            write(&path, &RecordBatch::try_from_iter_with_nullable(named).unwrap(), 10);
            let source = ParquetFiles::open(&[&path]).unwrap();
            match run(&source, &target(&database, &native), &small()) {
                Ok(report) => prop_assert_eq!(report.rows, source.rows()),
                Err(error) => {
                    let refused = error.kind() == Kind::Value && error.what().contains("rectangular");
                    prop_assert!(refused, "{}", error);
                    return Ok(());
                }
            }
            arrived.set(arrived.get() + 1);
            run(&source, &database.target(&jsonb), &small()).unwrap();
            let differing: Vec<String> =
                (0..count).map(|i| format!("to_jsonb(a.c{i}) IS DISTINCT FROM to_jsonb(b.c{i})")).collect();
            let sql = format!("{native} a FULL JOIN {jsonb} b USING (n) WHERE {}", differing.join(" OR "));
            prop_assert_eq!(database.count(&sql), 0);
            Ok(())
        })
        .unwrap();
    println!("{} of {} had rectangular lists alone", arrived.get(), number.get());
    assert!(arrived.get() * 3 > number.get());
}
