//! Maps whose keys are not text.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, ListArray,
    MapArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sawmill_generator::{Dataset, InferredSpec};

use crate::harness::sawmill;

/// Maps of one entry: a key, and 1.
fn maps(keys: ArrayRef) -> ArrayRef {
    maps_of(1, keys)
}

/// Maps of `each` entries with these keys, and numbers from 1 up.
fn maps_of(each: usize, keys: ArrayRef) -> ArrayRef {
    let values: ArrayRef = Arc::new(Int32Array::from_iter_values((1..=each as i32).cycle().take(keys.len())));
    let offsets = OffsetBuffer::from_lengths(vec![each; keys.len() / each]);
    let fields = Fields::from(vec![
        Field::new("key", keys.data_type().clone(), false),
        Field::new("value", DataType::Int32, true),
    ]);
    let entries = StructArray::new(fields.clone(), vec![keys, values], None);
    let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
    Arc::new(MapArray::new(field, offsets, entries, None, false))
}

/// Structs of a number and a text.
fn structs() -> ArrayRef {
    let fields =
        Fields::from(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x, c: y", "\"z\""]));
    Arc::new(StructArray::new(fields, vec![numbers, texts], None))
}

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
}

#[test]
fn keys_of_any_type_are_text_in_json() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("maps.parquet");
    write(
        &path,
        vec![
            ("whole", maps(Arc::new(Int64Array::from(vec![7, -8])))),
            ("day", maps(Arc::new(Date32Array::from(vec![0, 19_753])))),
            ("flag", maps(Arc::new(BooleanArray::from(vec![true, false])))),
            ("real", maps(Arc::new(Float64Array::from(vec![1.5, -2.0])))),
            ("bytes", maps(Arc::new(BinaryArray::from_vec(vec![b"ab", b"\xff"])))),
            ("text", maps(Arc::new(StringArray::from(vec!["a\"b", ""])))),
            ("both", maps(structs())),
        ],
    );
    let expected = concat!(
        r#"{"whole":{"7":1},"day":{"1970-01-01":1},"flag":{"true":1},"real":{"1.5":1},"bytes":{"6162":1},"#,
        r#""text":{"a\"b":1},"both":{"{\"a\":1,\"b\":\"x, c: y\"}":1}}"#,
        "\n",
        r#"{"whole":{"-8":1},"day":{"2024-01-31":1},"flag":{"false":1},"real":{"-2.0":1},"bytes":{"ff":1},"#,
        r#""text":{"":1},"both":{"{\"a\":null,\"b\":\"\\\"z\\\"\"}":1}}"#,
        "\n",
    );
    let file = path.to_str().unwrap();
    let converted = sawmill(["convert", file, "--as", "ndjson", "--out", "-"]).ok();
    assert_eq!(converted.out, expected);
    for view in ["head", "cat"] {
        assert_eq!(sawmill(["footer", view, file]).ok().out, expected, "{view}");
    }
}

/// The last of equal keys counts, in Parquet and to readers of JSON.
#[test]
fn equal_keys_of_a_map_all_stay_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("maps.parquet");
    write(&path, vec![("m", maps_of(3, Arc::new(StringArray::from(vec!["a", "b", "a"]))))]);
    let json = sawmill(["convert", path.to_str().unwrap(), "--as", "ndjson", "--out", "-"]).ok().out;
    assert_eq!(json, "{\"m\":{\"a\":1,\"b\":2,\"a\":3}}\n");
}

#[test]
fn nested_text_keeps_its_type_in_the_arrow_schema() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("a.parquet"), directory.path().join("b.parquet"));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let item = Arc::new(Field::new("element", DataType::Utf8, true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([1, 1]), texts.clone(), None);
    write(&from, vec![("map", maps(texts.clone())), ("list", Arc::new(lists)), ("both", structs())]);
    sawmill(["convert", from.to_str().unwrap(), "--out", to.to_str().unwrap()]).ok();
    let schema = |path| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        reader.schema().fields().iter().map(|field| field.data_type().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(schema(&to), schema(&from));
}

#[test]
fn a_column_that_a_spec_cannot_have_is_left_out_and_the_others_are_learned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd.parquet");
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let mut deep = numbers.clone();
    for _ in 0..50 {
        let field = Field::new("s", deep.data_type().clone(), true);
        deep = Arc::new(StructArray::new(Fields::from(vec![field]), vec![deep], None));
    }
    let flags = maps(Arc::new(BooleanArray::from(vec![true, false])));
    write(&path, vec![("id", numbers), ("m", maps(structs())), ("deep", deep), ("flags", flags)]);
    let file = path.to_str().unwrap();
    for option in ["--like", "--schema-of"] {
        let spec = sawmill(["gen", "spec", option, file]).ok();
        for (column, reason) in
            [("m", "a map whose keys are nested"), ("deep", "nested more than 32 levels deep")]
        {
            assert!(spec.err.contains(&format!("left out: column {column}: {reason}")), "{}", spec.err);
            assert!(spec.out.contains(&format!("# Left out: \"{column}\": {reason}")), "{}", spec.out);
        }
        let dataset = Dataset::from_toml(&spec.out).unwrap();
        let names: Vec<_> =
            dataset.arrow_schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["id", "flags"], "{option}");
    }
    let out = directory.path().join("out");
    sawmill(["gen", "--like", file, "--rows", "10", "--out", out.to_str().unwrap()]).ok();
}

#[test]
fn a_list_of_strings_that_a_record_has_no_room_for_does_not_fail_the_others() {
    let (long, many) = ("x".repeat(1 << 20), 4000);
    let texts = std::iter::once(long.as_str()).chain((1..many).map(|_| ""));
    let item = Arc::new(Field::new("element", DataType::Utf8, true));
    let offsets = OffsetBuffer::from_lengths([1, many - 1]);
    let lists = ListArray::new(item, offsets, Arc::new(StringArray::from_iter_values(texts)), None);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.parquet");
    write(&path, vec![("id", numbers), ("texts", Arc::new(lists))]);
    let spec = sawmill(["gen", "spec", "--like", path.to_str().unwrap()]).ok();
    assert!(spec.err.contains("left out: column texts"), "{}", spec.err);
    assert!(InferredSpec::new("x", &Dataset::from_toml(&spec.out).unwrap().arrow_schema(), &[]).is_ok());
}
