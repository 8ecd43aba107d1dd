//! Parquet files written by the `parquet` crate: flat and nested, with many types and settings.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    Time64NanosecondArray, TimestampMicrosecondArray, UInt16Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

/// The bytes of a file with `batches` in row groups of at most `rows`.
pub fn write(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Columns of many types, flat.
pub fn flat(rows: usize) -> RecordBatch {
    let n = rows as i64;
    let some = |i: i64| (i % 7 != 3).then_some(i);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("bool", Arc::new(BooleanArray::from_iter((0..n).map(|i| some(i).map(|i| i % 2 == 0))))),
        ("i8", Arc::new(Int8Array::from_iter((0..n).map(|i| some(i).map(|i| i as i8))))),
        ("u16", Arc::new(UInt16Array::from_iter((0..n).map(|i| some(i).map(|i| i as u16))))),
        ("i32", Arc::new(Int32Array::from_iter((0..n).map(|i| some(i).map(|i| i as i32))))),
        ("i64", Arc::new(Int64Array::from_iter_values(0..n))),
        ("u64", Arc::new(UInt64Array::from_iter_values((0..n).map(|i| i as u64)))),
        ("f32", Arc::new(Float32Array::from_iter_values((0..n).map(|i| i as f32)))),
        ("f64", Arc::new(Float64Array::from_iter((0..n).map(|i| some(i).map(|i| i as f64 / 3.0))))),
        ("text", Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("value {i}"))))),
        ("long text", Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("{i}").repeat(80))))),
        ("bytes", Arc::new(BinaryArray::from_iter_values((0..n).map(|i| i.to_be_bytes())))),
        ("date", Arc::new(Date32Array::from_iter_values((0..n).map(|i| i as i32)))),
        ("time", Arc::new(Time64NanosecondArray::from_iter_values(0..n))),
        ("instant", Arc::new(TimestampMicrosecondArray::from_iter_values(0..n).with_timezone("UTC"))),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from_iter_values((0..n).map(i128::from))
                    .with_precision_and_scale(30, 4)
                    .unwrap(),
            ),
        ),
        (
            "uuid",
            Arc::new(
                FixedSizeBinaryArray::try_from_iter((0..n).map(|i| u128::from(i as u64).to_be_bytes()))
                    .unwrap(),
            ),
        ),
        ("nothing", Arc::new(Int32Array::new_null(rows))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| {
        let nullable = array.null_count() > 0;
        (name, array, nullable)
    }))
    .unwrap()
}

/// A struct with a list, a list of lists and a map.
pub fn nested(rows: usize) -> RecordBatch {
    let mut tags = ListBuilder::new(StringBuilder::new());
    let mut grid = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    let mut counts = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for i in 0..rows as i32 {
        for tag in 0..i % 4 {
            tags.values().append_value(format!("tag {tag}"));
        }
        tags.append(i % 5 != 0);
        for row in 0..i % 3 {
            grid.values().values().append_slice(&[i, row]);
            grid.values().append(true);
        }
        grid.append(true);
        counts.keys().append_value(format!("key {i}"));
        counts.values().append_option((i % 2 == 0).then_some(i));
        counts.append(true).unwrap();
    }
    let city: ArrayRef =
        Arc::new(StringArray::from_iter((0..rows).map(|i| (i % 3 != 0).then(|| format!("c{i}")))));
    let tags: ArrayRef = Arc::new(tags.finish());
    let fields = vec![
        Field::new("city", DataType::Utf8, true),
        Field::new("dotted.name", tags.data_type().clone(), true),
    ];
    let person: ArrayRef = Arc::new(StructArray::new(fields.into(), vec![city, tags], None));
    let columns = [
        ("person", person),
        ("grid", Arc::new(grid.finish()) as ArrayRef),
        ("counts", Arc::new(counts.finish())),
    ];
    let schema: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(schema)), arrays).unwrap()
}

/// Writer settings that change the contents of a footer.
pub fn settings() -> Vec<(&'static str, WriterProperties)> {
    let base = || WriterProperties::builder().set_max_row_group_row_count(Some(300));
    vec![
        ("writer defaults", base().build()),
        ("no statistics", base().set_statistics_enabled(EnabledStatistics::None).build()),
        (
            "chunk statistics, compressed",
            base()
                .set_statistics_enabled(EnabledStatistics::Chunk)
                .set_compression(Compression::SNAPPY)
                .set_statistics_truncate_length(Some(16))
                .build(),
        ),
        (
            "pages of version 2 without dictionaries",
            base()
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .set_dictionary_enabled(false)
                .set_data_page_row_count_limit(50)
                .set_write_batch_size(50)
                .build(),
        ),
        (
            "everything enabled",
            base()
                .set_bloom_filter_enabled(true)
                .set_write_page_header_statistics(true)
                .set_offset_index_disabled(false)
                .set_column_encoding("i64".into(), Encoding::DELTA_BINARY_PACKED)
                .set_column_dictionary_enabled("i64".into(), false)
                .set_sorting_columns(Some(vec![SortingColumn {
                    column_idx: 2,
                    descending: true,
                    nulls_first: false,
                }]))
                .set_key_value_metadata(Some(vec![
                    KeyValue::new("key".to_string(), "value".to_string()),
                    KeyValue { key: "empty".to_string(), value: None },
                ]))
                .set_created_by("someone".to_string())
                .build(),
        ),
    ]
}

/// All files: every batch with all settings.
pub fn all() -> Vec<(String, Vec<u8>)> {
    let batches = [("flat", flat(1000)), ("nested", nested(1000)), ("empty", flat(1).slice(0, 0))];
    let mut files = Vec::new();
    for (batch_name, batch) in &batches {
        for (name, properties) in settings() {
            files.push((format!("{batch_name}, {name}"), write(batch, properties)));
        }
    }
    files
}

/// The metadata bytes of a file.
pub fn metadata(file: &[u8]) -> &[u8] {
    let end = file.len() - 8;
    let len = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    &file[end - len..end]
}
