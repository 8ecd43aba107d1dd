//! Files of one table that store the same column in different ways.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, NullBuilder, StringDictionaryBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{ArrayRef, Int64Array, NullArray, RecordBatch, StringArray, StructArray};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use sawmill_loader::{LoadOptions, Mode};
use sawmill_pgcopy::{Enums, ValueOptions};
use sawmill_source::ParquetFiles;

use crate::database::{Database, run, small, with_control};

/// A directory with a file for each of these lists of columns, in this order.
fn files(each: Vec<Vec<(&str, ArrayRef)>>) -> (tempfile::TempDir, ParquetFiles) {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (number, columns) in each.into_iter().enumerate() {
        let path = directory.path().join(format!("{number}.parquet"));
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        paths.push(path);
    }
    let source = ParquetFiles::open(&paths).unwrap();
    (directory, source)
}

fn ids(first: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(first..first + 3))
}

const WORDS: [Option<&str>; 3] = [Some("green"), None, Some("red")];

fn plain() -> ArrayRef {
    Arc::new(StringArray::from(WORDS.to_vec()))
}

fn small_dictionary() -> ArrayRef {
    let mut words = StringDictionaryBuilder::<Int8Type>::new();
    words.extend(WORDS);
    Arc::new(words.finish())
}

fn dictionary() -> ArrayRef {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    words.extend(WORDS);
    Arc::new(words.finish())
}

fn nulls() -> ArrayRef {
    Arc::new(NullArray::new(3))
}

#[test]
fn a_column_may_be_a_dictionary_in_one_file_plain_in_another_and_without_a_type_in_a_third() {
    let kinds = [plain, dictionary, nulls, small_dictionary];
    for first in 0..kinds.len() {
        let columns =
            |file: usize| vec![("word", kinds[(first + file) % kinds.len()]()), ("id", ids(file as i64 * 3))];
        let (_directory, source) = files((0..kinds.len()).map(columns).collect());
        let database = Database::new();
        let report = run(&source, &database.target("t"), &LoadOptions { degree: 2, ..small() }).unwrap();
        assert!(report.verified.unwrap().matches());
        let found = database
            .client()
            .query_one(
                "SELECT string_agg(word, ',' ORDER BY id), count(*), pg_typeof(min(word))::text FROM t",
                &[],
            )
            .unwrap();
        let (words, rows, column_type): (String, i64, String) = (found.get(0), found.get(1), found.get(2));
        assert_eq!(
            (words.as_str(), rows, column_type.as_str()),
            ("green,red,green,red,green,red", 12, "text")
        );
        let appended = run(&source, &database.target("t").mode(Mode::Append), &small()).unwrap();
        assert!(appended.verified.unwrap().matches());
    }
}

#[test]
fn dictionaries_in_all_files_still_become_an_enumeration() {
    let (_directory, source) = files(vec![
        vec![("word", dictionary()), ("id", ids(0))],
        vec![("word", dictionary()), ("id", ids(3))],
    ]);
    let database = Database::new();
    let values = ValueOptions { enums: Enums::Enum, ..ValueOptions::default() };
    run(&source, &database.target("t").values(values), &small()).unwrap();
    let kind = "SELECT typtype::text FROM pg_type JOIN pg_attribute ON atttypid = pg_type.oid \
                WHERE attrelid = 't'::regclass AND attname = 'word'";
    assert_eq!(database.client().query_one(kind, &[]).unwrap().get::<_, String>(0), "e");
}

#[test]
fn lists_and_structs_may_lack_a_type_within_them() {
    let mut empty = ListBuilder::new(NullBuilder::new());
    empty.append(true);
    empty.append(false);
    empty.values().append_null();
    empty.append(true);
    let mut numbers = ListBuilder::new(Int64Builder::new());
    numbers.append_value([Some(1), None]);
    numbers.append(false);
    numbers.append_value([]);
    let of = |inner: ArrayRef| -> ArrayRef {
        let field = Arc::new(Field::new("inner", inner.data_type().clone(), true));
        Arc::new(StructArray::from(vec![(field, inner)]))
    };
    let (empty, numbers): (ArrayRef, ArrayRef) = (Arc::new(empty.finish()), Arc::new(numbers.finish()));
    let untyped = vec![("id", ids(0)), ("list", empty), ("of", of(nulls()))];
    let typed = vec![("id", ids(3)), ("list", numbers), ("of", of(dictionary()))];
    for each in [vec![untyped.clone(), typed.clone()], vec![typed, untyped]] {
        let (_directory, source) = files(each);
        let database = Database::new();
        let report = run(&source, &database.target("t"), &small()).unwrap();
        assert!(report.verified.unwrap().matches());
        let texts =
            "SELECT coalesce(list::text, '-') || ' ' || coalesce(\"of\"::text, '-') FROM t ORDER BY id";
        let rows = database.client().query(texts, &[]).unwrap();
        let mut rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        rows.sort();
        let expected = [
            "- {\"inner\": null}",
            "- {\"inner\": null}",
            "[1, null] {\"inner\": \"green\"}",
            "[] {\"inner\": \"red\"}",
            "[] {\"inner\": null}",
            "[null] {\"inner\": null}",
        ];
        assert_eq!(rows, expected);
    }
}

#[test]
fn a_condition_treats_a_column_without_a_type_as_null() {
    let kinds: [fn() -> ArrayRef; 2] = [plain, nulls];
    for first in 0..2 {
        let columns = |file: usize| vec![("word", kinds[(first + file) % 2]()), ("id", ids(file as i64 * 3))];
        let (_directory, source) = files((0..2).map(columns).collect());
        let database = Database::new();
        for (number, (condition, rows)) in [
            ("word = 'red'", 1),
            ("word <> 'red'", 1),
            ("not word = 'red'", 1),
            ("word in ('green', 'red')", 2),
            ("word like 'g%'", 1),
            ("word is null", 4),
            ("word is not null", 2),
            ("word is null or id >= 0", 6),
            ("word = 'red' and id >= 3", if first == 0 { 0 } else { 1 }),
        ]
        .into_iter()
        .enumerate()
        {
            let picked =
                with_control(|control| source.filtered(condition.parse().unwrap(), control)).unwrap();
            let report = run(&picked, &database.target(&format!("t{number}")), &small()).unwrap();
            assert_eq!(report.rows, rows, "{condition}");
            assert!(report.verified.unwrap().matches(), "{condition}");
        }
    }
}
