//! The Arrow schema in a Parquet file's metadata (`ARROW:schema`) is a hint: it never prevents reading.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::types::{ArrowPrimitiveType, Decimal256Type};
use arrow_array::{
    ArrayRef, Decimal128Array, Decimal256Array, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray,
    StructArray,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::harness::sawmill;
use crate::load::Bench;

use arrow_schema::{DataType, Field, Fields, Schema};

/// The number of 256 bits.
type I256 = <Decimal256Type as ArrowPrimitiveType>::Native;

/// Writes a column `c`, whose field the file's Arrow schema gives another type.
fn hinted(path: &Path, array: &ArrayRef, hint: DataType) {
    let batch = RecordBatch::try_from_iter([("c", Arc::clone(array))]).unwrap();
    let hint = encode_arrow_schema(&Schema::new(vec![Field::new("c", hint, true)]));
    let metadata = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), hint)];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(metadata)).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn dictionary(keys: DataType, values: DataType) -> DataType {
    DataType::Dictionary(Box::new(keys), Box::new(values))
}

/// Structs within structs, `levels` deep.
fn nested(levels: usize) -> ArrayRef {
    let mut array: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    for _ in 0..levels {
        let field = Arc::new(Field::new("a", array.data_type().clone(), false));
        array = Arc::new(StructArray::new(Fields::from(vec![field]), vec![array], None));
    }
    array
}

#[test]
fn a_file_is_read_whatever_its_arrow_schema_says() {
    let bench = Bench::new();
    let mut flags = BooleanBuilder::new();
    [Some(true), None, Some(false)].into_iter().for_each(|flag| flags.append_option(flag));
    let decimals = || vec![Some(150), None, Some(-225)];
    let short = Decimal128Array::from(decimals()).with_precision_and_scale(10, 2).unwrap();
    let long: Decimal256Array =
        decimals().into_iter().map(|value: Option<i128>| value.map(I256::from_i128)).collect();
    let long = long.with_precision_and_scale(50, 2).unwrap();
    let bytes = [Some(&b"12345678"[..]), None, Some(&b"abcdefgh"[..])];
    let bytes = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 8).unwrap();
    let many = |n: i64| (0..n).map(|value| format!("value {value}"));
    let columns: Vec<(&str, ArrayRef, DataType)> = vec![
        ("flags", Arc::new(flags.finish()), DataType::Boolean),
        ("short", Arc::new(short), DataType::Decimal128(10, 2)),
        ("long", Arc::new(long), DataType::Decimal256(50, 2)),
        ("bytes", Arc::new(bytes), DataType::FixedSizeBinary(8)),
        // pyarrow stores the type of one dictionary's keys; a row group may have several dictionaries.
        ("texts", Arc::new(StringArray::from_iter_values(many(1000))), DataType::Utf8),
        ("numbers", Arc::new(Int64Array::from_iter_values(0..1000)), DataType::Int64),
    ];
    let mut files: Vec<(String, u64)> = Vec::new();
    for (name, array, values) in columns {
        let path = bench.dir.path().join(format!("{name}.parquet"));
        hinted(&path, &array, dictionary(DataType::Int8, values));
        files.push((name.to_owned(), array.len() as u64));
    }
    // The writer recurses: the stack of a test suffices only if it is optimised.
    let deep = bench.dir.path().join("deep.parquet");
    let write = move || hinted(&deep, &nested(300), nested(300).data_type().clone());
    std::thread::Builder::new().stack_size(64 << 20).spawn(write).unwrap().join().unwrap();
    hinted(&bench.dir.path().join("other.parquet"), &nested(1), DataType::Int64);
    files.extend([("deep".to_owned(), 3), ("other".to_owned(), 3)]);
    for (name, rows) in files {
        let path = bench.dir.path().join(format!("{name}.parquet"));
        let shown = path.to_str().unwrap();
        let loaded = bench.load(&path, &name, &["--verify", "--json"]).ok().json();
        assert_eq!(loaded["report"]["rows"], rows, "{name}");
        sawmill(bench.args("verify", &path, &name, &[])).ok();
        let head = sawmill(["footer", "head", shown]).ok().out;
        assert!(head.starts_with("{\"c\":"), "{name}: {head}");
        let out = bench.dir.path().join(format!("{name}.ndjson"));
        sawmill(["convert", shown, "--out", out.to_str().unwrap()]).ok();
        assert_eq!(std::fs::read_to_string(&out).unwrap().lines().count() as u64, rows, "{name}");
        let like = bench.dir.path().join(format!("like_{name}.parquet"));
        if name != "deep" {
            sawmill(["gen", "--like", shown, "--rows", "10", "--out", like.to_str().unwrap()]).ok();
        }
    }
    assert_eq!(bench.count("select count(*) from flags where c"), 1);
    assert_eq!(bench.count("select (sum(c) * 100)::bigint from short"), -75);
    assert_eq!(bench.count("select count(distinct c) from texts"), 1000);
}
