//! Lines of JSON as a source: nested values, keys that vary, and errors with their places.

use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use sawmill_source::{
    ColumnType, Control, DelimitedFiles, DelimitedOptions, Dialect, RecordForm, Result, Source, TextColumns,
};

fn options(types: &[(&str, ColumnType)]) -> DelimitedOptions {
    DelimitedOptions {
        dialect: Dialect { records: RecordForm::Json, ..Dialect::default() },
        types: types.iter().map(|(path, of)| ((*path).to_owned(), *of)).collect(),
        ..DelimitedOptions::default()
    }
}

fn opened(text: &str, options: &DelimitedOptions, chunk: u64) -> Result<DelimitedFiles> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ndjson");
    std::fs::write(&path, text).unwrap();
    let (cancel, profile) = (AtomicBool::new(false), sawmill_profile::Profile::new());
    let phase = profile.phase("open");
    let files = DelimitedFiles::open_in_chunks(&[&path], options, chunk, &Control::new(&cancel, &phase));
    // The files are read later, by their path.
    std::mem::forget(directory);
    files
}

fn batches(files: &DelimitedFiles) -> Result<Vec<RecordBatch>> {
    let mut reader = files.reader(1000);
    let mut batches = Vec::new();
    for unit in files.plan(2).concat() {
        reader.start(&unit)?;
        while let Some(batch) = reader.next_batch()? {
            batches.push(batch);
        }
    }
    Ok(batches)
}

fn refused(text: &str, options: &DelimitedOptions) -> String {
    let read = opened(text, options, 1 << 20).and_then(|files| batches(&files));
    read.expect_err("an error").to_string()
}

fn types(files: &DelimitedFiles) -> Vec<(String, String)> {
    files.inferred().into_iter().map(|column| (column.name, column.data_type)).collect()
}

const LOGS: &str = r#"{"at":"2024-03-01T10:00:00Z","level":"info","n":1,"user":{"id":7,"tags":["a","b\n"]}}
{"level":"warn","at":"2024-03-01T10:00:01.5Z","n":2.5,"user":null,"extra":[{"k":"x","v":[1,2]},{"k":"y"}]}

{"at":null,"n":3,"user":{"tags":[],"id":8,"name":"Zo\u00eb"},"mixed":1}
{"at":"2024-03-01T10:00:02+02:00","user":{},"mixed":"one","extra":[],"big":123456789012345678901}
"#;

#[test]
fn objects_become_structs_lists_become_lists_and_keys_may_be_missing_or_in_another_order() {
    for chunk in [1, 7, 100, 1 << 20] {
        let files = opened(LOGS, &options(&[]), chunk).unwrap();
        let expected = [
            ("at", "timestamptz"),
            ("level", "text"),
            ("n", "float64"),
            ("user", "struct(id int64, tags list(text), name text)"),
            ("extra", "list(struct(k text, v list(int64)))"),
            ("mixed", "json"),
            ("big", "decimal(38,0)"),
        ];
        let expected = expected.map(|(name, of)| (name.to_owned(), of.to_owned()));
        assert_eq!(types(&files), expected);
        assert_eq!(files.rows(), 4);
        let read = batches(&files).unwrap();
        let all = arrow_rows(&read);
        assert_eq!(all.len(), 4);
        let first = &read[0];
        assert_eq!(first.column(2).as_primitive::<Float64Type>().values(), &[1.0, 2.5]);
        let user = first.column(3).as_struct();
        assert!(user.is_valid(0) && user.is_null(1), "null is not an object");
        assert_eq!(user.column(0).as_primitive::<Int64Type>().value(0), 7);
        let tags = user.column(1).as_list::<i32>().value(0);
        assert_eq!(tags.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "b\n"]);
        let extra = first.column(4).as_list::<i32>();
        assert!(extra.is_null(0) && extra.value_length(1) == 2);
        let second = &read[1];
        let user = second.column(3).as_struct();
        assert!(user.is_valid(1), "an empty object is not null");
        assert_eq!(user.column(2).as_string::<i32>().value(0), "Zo\u{eb}");
        let mixed = second.column(5).as_string_view();
        assert_eq!((mixed.value(0), mixed.value(1)), ("1", "\"one\""), "as they are written");
    }
}

/// The first column of all rows as debug text, to count rows.
fn arrow_rows(batches: &[RecordBatch]) -> Vec<bool> {
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| batch.column(0).is_valid(row))).collect()
}

#[test]
fn given_types_reach_into_structs_and_lists_and_name_keys_that_the_sample_has_not() {
    let text = "{\"a\":{\"b\":[{\"c\":1}]},\"id\":\"x\"}\n";
    let given = [("a.b[].c", ColumnType::Text), ("later", ColumnType::Json)];
    let files = opened(text, &options(&given), 64).unwrap();
    assert_eq!(types(&files)[0].1, "struct(b list(struct(c text)))");
    assert_eq!(types(&files)[2], ("later".to_owned(), "json".to_owned()));
    let whole = opened(text, &options(&[("a", ColumnType::Json)]), 64).unwrap();
    let read = batches(&whole).unwrap();
    assert_eq!(read[0].column(0).as_string_view().value(0), "{\"b\":[{\"c\":1}]}");
    let error = opened(text, &options(&[("id.x", ColumnType::Text)]), 64).err().unwrap().to_string();
    assert!(error.contains("no value \"id.x\""), "{error}");
}

#[test]
fn what_does_not_fit_is_named_by_line_offset_and_path() {
    let mut text = String::new();
    (0..120_000).for_each(|id| text += &format!("{{\"id\":{id},\"u\":{{\"t\":[{}]}}}}\n", id % 7));
    let after = "{\"id\":1,\"u\":{\"t\":[1]}}\n".repeat(40_000);
    let with = |line: &str| refused(&format!("{text}{line}\n{after}"), &options(&[]));
    let offset = |of: usize| format!("line 120001, byte offset {}", text.len() + of);
    let error = with(r#"{"id":1,"u":{"t":[1,"x"]}}"#);
    assert!(error.contains("\"\\\"x\\\"\" is not of type int64"), "{error}");
    assert!(error.contains(&format!("{}, column \"u.t[]\"", offset(20))), "{error}");
    let error = with(r#"{"id":1,"u":{"w":2}}"#);
    assert!(error.contains("the sample did not have this key") && error.contains("--sample all"), "{error}");
    assert!(error.contains(&format!("{}, column \"u.w\"", offset(17))), "{error}");
    let error = with(r#"{"id":1,"id":2}"#);
    assert!(error.contains("has this key twice") && error.contains("column \"id\""), "{error}");
    let error = with(r#"{"id":1,"#);
    assert!(error.contains("the line is not a JSON object") && error.contains("line 120001"), "{error}");
    let error = with("[1]");
    assert!(error.contains("the line is not a JSON object"), "{error}");
    let error = with(r#"{"id":1.5}"#);
    assert!(error.contains("\"1.5\" is not of type int64"), "{error}");
    // A sample of all lines has every key and every kind.
    let all = DelimitedOptions { sample: Some(u64::MAX), ..options(&[]) };
    let files = opened(&format!("{text}{}\n{after}", r#"{"id":1.5,"u":{"w":2}}"#), &all, 1 << 20).unwrap();
    assert_eq!(types(&files)[1].1, "struct(t list(int64), w int64)");
    assert_eq!(types(&files)[0].1, "float64");
}

#[test]
fn maps_with_many_keys_and_objects_without_keys_stay_json() {
    let mut text = String::new();
    for id in 0..400 {
        text += &format!("{{\"id\":{id},\"by_user\":{{\"u{id}\":1}},\"none\":{{}},\"nothing\":null}}\n");
    }
    let files = opened(&text, &options(&[]), 1 << 20).unwrap();
    let of: Vec<String> = types(&files).into_iter().map(|(_, of)| of).collect();
    assert_eq!(of, ["int64", "json", "json", "text"]);
    assert_eq!(batches(&files).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 400);
    assert!(refused("", &options(&[])).contains("no line has a key"));
    assert_eq!(opened("\u{feff}{\"a\":1}", &options(&[]), 9).unwrap().rows(), 1);
}

#[test]
fn a_value_that_the_sample_has_not_is_of_the_kind_of_the_others_and_keeps_its_digits_or_is_an_error() {
    let small = |types: &[(&str, ColumnType)]| DelimitedOptions { sample: Some(1), ..options(types) };
    let number = ColumnType::Float64;
    for (of, sampled, late) in [
        (number, "1.5", "99999999999999.999"),
        (number, "1.5", "\"01067\""),
        (ColumnType::Int64, "7", "-0"),
        (ColumnType::Bool, "true", "\"t\""),
        (ColumnType::Text, "\"x\"", "1.50"),
        (ColumnType::Text, "null", "5"),
    ] {
        let line = |row| format!("{{\"v\":{}}}\n", if row == 100 { late } else { sampled });
        let text: String = (0..2000).map(line).collect();
        let error = refused(&text, &small(&[]));
        for part in [
            &format!("{late:?} is not of type {of} - "),
            "line 101, byte",
            "--types 'v=json'",
            "--sample all",
        ] {
            assert!(error.contains(part), "{late}: {error}");
        }
        let typed = opened(&text, &small(&[("v", of)]), 1 << 20).unwrap();
        assert!(batches(&typed).is_ok(), "{late}: who names the type wants the conversion");
        let names = vec!["v".to_owned()];
        let text_columns = TextColumns { names, ..TextColumns::default() };
        let of_table = opened(&text, &DelimitedOptions { text_columns, ..small(&[]) }, 1 << 20).unwrap();
        assert!(batches(&of_table).is_ok(), "{late}: a table with a text column takes every value");
    }
}
