//! `--enums enum`: types of a column's values, created and dropped with their table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type as SchemaType;
use sawmill_loader::{LoadOptions, LoadState, Mode, RejectOptions};
use sawmill_pgcopy::{Enums, ValueOptions};
use sawmill_postgres::{Nested, Postgres, PostgresTables, Strategy, TableKind, forget, verify};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, write};

fn enums() -> ValueOptions {
    ValueOptions { enums: Enums::Enum, ..ValueOptions::default() }
}

fn target(database: &Database, mode: Mode) -> Postgres {
    database.target("t").mode(mode).values(enums())
}

/// A file of one column `kind`, annotated as ENUM; each value is a row.
fn annotated(directory: &Path, name: &str, values: &[&str]) -> PathBuf {
    let column = SchemaType::primitive_type_builder("kind", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::Enum))
        .build()
        .unwrap();
    let schema =
        SchemaType::group_type_builder("schema").with_fields(vec![Arc::new(column)]).build().unwrap();
    let path = directory.join(name);
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut pages = group.next_column().unwrap().unwrap();
    let bytes: Vec<ByteArray> = values.iter().map(|value| ByteArray::from(*value)).collect();
    // The last row is NULL.
    let levels: Vec<i16> = bytes.iter().map(|_| 1).chain([0]).collect();
    pages.typed::<ByteArrayType>().write_batch(&bytes, Some(&levels), None).unwrap();
    pages.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    path
}

/// Each enumeration of the database with its labels in their order.
fn types(database: &Database) -> Vec<(String, String)> {
    let sql = "SELECT t.oid::regtype::text, coalesce(string_agg(enumlabel, ',' ORDER BY enumsortorder), '') \
               FROM pg_type t LEFT JOIN pg_enum e ON enumtypid = t.oid WHERE typtype = 'e' GROUP BY t.oid ORDER BY 1";
    database.client().query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn pair(name: &str, labels: &str) -> (String, String) {
    (name.to_owned(), labels.to_owned())
}

#[test]
fn an_annotated_column_becomes_a_type_of_its_values_that_goes_with_the_table() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::new();
    let one = annotated(directory.path(), "one.parquet", &["work", "it's", "b\\n", "work"]);
    let two = annotated(directory.path(), "two.parquet", &["Zoo", "", "work"]);
    let source = ParquetFiles::open(&[&one, &two]).unwrap();
    let report = run(&source, &target(&database, Mode::Create), &small()).unwrap();
    assert!(report.verified.unwrap().matches());
    assert_eq!(types(&database), [pair("t_kind", ",Zoo,b\\n,it's,work")]);
    assert!(
        with_control(|control| verify(&source, &database.target("t"), &small(), control)).unwrap().matches()
    );
    let counted = "SELECT count(*), count(kind), count(*) FILTER (WHERE kind > 'it''s') FROM t";
    let row = database.client().query_one(counted, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)), (9, 7, 3));
    // Complete: nothing is created again. Text is appended as labels.
    let again = run(&source, &target(&database, Mode::Create), &small()).unwrap();
    assert_eq!(again.state, LoadState::Complete);
    let more = annotated(directory.path(), "more.parquet", &["Zoo"]);
    run(&ParquetFiles::open(&[more]).unwrap(), &database.target("t").mode(Mode::Append), &small()).unwrap();
    assert_eq!(database.count("t"), 11);
    // A table with other labels replaces it, and its type is dropped.
    let other = annotated(directory.path(), "other.parquet", &["other"]);
    run(&ParquetFiles::open(&[other]).unwrap(), &target(&database, Mode::Replace), &small()).unwrap();
    assert_eq!(types(&database), [pair("t_kind", "other")]);
    // A type left behind by DROP TABLE is removed.
    database.client().batch_execute("DROP TABLE t").unwrap();
    run(&source, &target(&database, Mode::Create), &small()).unwrap();
    assert_eq!(types(&database).len(), 1);
    let forgotten = with_control(|control| forget(&database.target("t"), true, control)).unwrap();
    assert!(forgotten.table_dropped);
    assert!(types(&database).is_empty());
}

#[test]
fn dictionaries_of_strings_become_enumerations_and_other_columns_do_not() {
    let kinds: DictionaryArray<Int8Type> = ["b", "a", "b", "c"].into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..4))),
        ("kind", Arc::new(kinds)),
        ("note", Arc::new(StringArray::from(vec!["x", "y", "z", "x"]))),
    ];
    let (_directory, path) = file_of(columns, 10);
    let database = Database::new();
    let source = ParquetFiles::open(&[&path]).unwrap();
    let ddl = with_control(|control| target(&database, Mode::Create).ddl(&source, control)).unwrap();
    assert_eq!(
        ddl,
        "CREATE TYPE \"t_kind\" AS ENUM ('a', 'b', 'c');\n\
         CREATE TABLE \"t\" (\n  \"id\" bigint,\n  \"kind\" \"t_kind\",\n  \"note\" text\n)"
    );
    assert!(run(&source, &target(&database, Mode::Create), &small()).unwrap().verified.unwrap().matches());
    // Labels come from the loaded rows and columns only, in any reading order.
    let condition = "id between 1 and 2".parse().unwrap();
    let picked = ParquetFiles::open(&[&path]).unwrap();
    let picked = picked.select(&["kind".into(), "id".into()], &[("kind".into(), "sort".into())]).unwrap();
    let picked = with_control(|control| picked.filtered(condition, control)).unwrap();
    run(&picked, &database.target("few").values(enums()), &small()).unwrap();
    assert_eq!(types(&database), [pair("few_sort", "a,b"), pair("t_kind", "a,b,c")]);
    // Without the option it is text.
    run(&source, &database.target("plain"), &small()).unwrap();
    assert_eq!(types(&database).len(), 2);
}

/// 3,000 rows of `id` and a categorical column; the last id comes twice.
fn categories(directory: &Path) -> ParquetFiles {
    let kinds: DictionaryArray<Int8Type> = (0..3000).map(|row| ["low", "mid", "high"][row % 3]).collect();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..2999).chain([2998])));
    let columns = [("id", ids, true), ("kind", Arc::new(kinds) as ArrayRef, true)];
    let path = directory.join("categories.parquet");
    write(&path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap(), 1000);
    ParquetFiles::open(&[path]).unwrap()
}

#[test]
fn enumerations_go_with_partitions_composite_types_keys_and_rehearsals() {
    let directory = tempfile::tempdir().unwrap();
    let source = categories(directory.path());
    let database = Database::new();
    let kind = TableKind { primary_key: vec!["kind".into(), "id".into()], ..TableKind::default() };
    let keyed = target(&database, Mode::Create).kind(kind);
    with_control(|control| keyed.rehearse(&source, &small(), control)).unwrap();
    assert!(types(&database).is_empty());
    run(&source, &keyed, &small()).unwrap();
    let staged = target(&database, Mode::Replace).strategy(Strategy::Staged);
    let by = "hash(id, 5)".parse().unwrap();
    let staged = with_control(|control| staged.partitioned(&by, &source, control)).unwrap();
    assert!(run(&source, &staged, &small()).unwrap().verified.unwrap().matches());
    assert_eq!(types(&database), [pair("t_kind", "high,low,mid")]);
    let native = target(&database, Mode::Replace).nested(Nested::Native);
    assert!(run(&source, &native, &small()).unwrap().verified.unwrap().matches());
    assert_eq!(types(&database), [pair("t_kind", "high,low,mid")]);
    assert_eq!(database.count("t WHERE kind = 'mid'"), 1000);
    let Err(error) = PostgresTables::new(&source, target(&database, Mode::Replace), false) else {
        panic!("types of several tables are not placed together")
    };
    assert!(error.advice().contains("--enums text"), "{error}");
}

#[test]
fn tables_are_partitioned_by_the_labels_of_an_enumeration_but_not_by_their_hash() {
    let directory = tempfile::tempdir().unwrap();
    let source = categories(directory.path());
    let database = Database::new();
    let by = |text: &str, strategy| {
        let target = target(&database, Mode::Replace).strategy(strategy);
        with_control(|control| target.partitioned(&text.parse().unwrap(), &source, control))
    };
    for strategy in [Strategy::Direct, Strategy::Staged] {
        assert!(
            run(&source, &by("list(kind)", strategy).unwrap(), &small()).unwrap().verified.unwrap().matches()
        );
        assert_eq!(types(&database), [pair("t_kind", "high,low,mid")]);
        assert_eq!((database.count("t"), database.count("t_mid WHERE kind = 'mid'")), (3000, 1000));
    }
    let error = by("hash(kind, 3)", Strategy::Direct).unwrap_err();
    assert!(error.what().contains("hash") && error.advice().contains("--enums text"), "{error}");
    assert!(
        run(&source, &by("hash(id, 3)", Strategy::Staged).unwrap(), &small())
            .unwrap()
            .verified
            .unwrap()
            .matches()
    );
}

#[test]
fn an_interrupted_load_resumes_with_its_types_and_a_forgotten_one_leaves_none() {
    let directory = tempfile::tempdir().unwrap();
    let source = categories(directory.path());
    let database = Database::new();
    let options = LoadOptions { verify: false, ..small() };
    let kind = TableKind { primary_key: vec!["id".into()], key_after: true, ..TableKind::default() };
    let target = target(&database, Mode::Create).kind(kind);
    let broken_off = || {
        let error = run(&source, &target, &options).unwrap_err();
        assert!(error.place().contains("ADD PRIMARY KEY"), "{error}");
        assert_eq!(types(&database), [pair("t__sawmill_loading_kind", "high,low,mid")]);
    };
    broken_off();
    database
        .client()
        .batch_execute("DELETE FROM t__sawmill_loading WHERE id = 2998 AND kind = 'mid'")
        .unwrap();
    let report = run(&source, &target, &options).unwrap();
    assert_eq!(report.state, LoadState::Resumed);
    let found = "the table has 2,999 rows; according to the records 3,000 were loaded into it";
    assert!(report.notes.iter().any(|note| note.contains(found)), "{:?}", report.notes);
    assert_eq!(types(&database), [pair("t_kind", "high,low,mid")]);
    with_control(|control| forget(&database.target("t"), true, control)).unwrap();
    broken_off();
    with_control(|control| forget(&database.target("t"), false, control)).unwrap();
    assert!(types(&database).is_empty());
    // A staging table that was dropped by hand has left its type behind.
    broken_off();
    database.client().batch_execute("DROP TABLE t__sawmill_loading").unwrap();
    broken_off();
}

#[test]
fn values_that_cannot_be_labels_are_named_with_their_column_and_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::new();
    let refused = |values: &[&str]| {
        let path = annotated(directory.path(), "refused.parquet", values);
        let error = run(&ParquetFiles::open(&[path]).unwrap(), &target(&database, Mode::Create), &small())
            .unwrap_err();
        assert!(error.place().contains("\"kind\"") && error.advice().contains("--enums text"), "{error}");
        assert!(!database.has("t") && !database.has("t__sawmill_loading"));
        error.what().to_owned()
    };
    let many: Vec<String> = (0..1001).map(|label| label.to_string()).collect();
    assert!(
        refused(&many.iter().map(String::as_str).collect::<Vec<_>>()).contains("more than 1000 distinct")
    );
    assert!(refused(&["x", &"y".repeat(64)]).contains("64 bytes"));
    // 0x00 is not about labels: its row is located, or rejected.
    let path = annotated(directory.path(), "nul.parquet", &["a", "b\0", "c"]);
    let source = ParquetFiles::open(&[path]).unwrap();
    let error = run(&source, &target(&database, Mode::Create), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.place().contains("row 1") && error.what().contains("0x00"), "{error}");
    with_control(|control| forget(&database.target("t"), false, control)).unwrap();
    let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
    let report = run(&source, &target(&database, Mode::Create).rejects(Some(rejects)), &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (3, 1));
    assert_eq!(types(&database), [pair("t_kind", "a,c")]);
    // The name of a foreign type is not taken over.
    let clash = annotated(directory.path(), "clash.parquet", &["a"]);
    database.client().batch_execute("CREATE TYPE u_kind AS ENUM ('theirs')").unwrap();
    let error = run(&ParquetFiles::open(&[clash]).unwrap(), &database.target("u").values(enums()), &small())
        .unwrap_err();
    assert!(error.what().contains("u_kind") && error.advice().contains("--enums text"), "{error}");
}
