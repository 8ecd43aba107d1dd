//! Parquet files of other makings: by the `parquet` crate's writer, and footers made by hand.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, Time32MillisecondArray, TimestampMicrosecondArray, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::thrift_writer::ThriftWriter;

fn write(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, array)| {
        let nullable = array.null_count() > 0;
        (name, array, nullable)
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// A column of every kind of bound, three rows in the first row group and one in the second.
pub fn many_types(path: &Path) {
    let long = "x".repeat(200);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int", Arc::new(Int32Array::from(vec![Some(-5), None, Some(7), Some(1)]))),
        ("unsigned", Arc::new(UInt64Array::from(vec![0, 1, u64::MAX, 1]))),
        ("double", Arc::new(Float64Array::from(vec![-0.25, 0.1, 1e300, 0.0]))),
        ("bool", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
        ("text", Arc::new(StringArray::from(vec!["", "zoë", "m", "n"]))),
        ("long_text", Arc::new(StringArray::from(vec![long.as_str(); 4]))),
        ("date", Arc::new(Date32Array::from(vec![-1, 19_782, 0, 0]))),
        (
            "instant",
            Arc::new(
                TimestampMicrosecondArray::from(vec![-1, 1_709_210_096_000_000, 0, 0]).with_timezone("UTC"),
            ),
        ),
        ("time", Arc::new(Time32MillisecondArray::from(vec![0, 45_296_789, 5, 5]))),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from(vec![-5, 123_456_789_012_345_678_901_234_567, 0, 0])
                    .with_precision_and_scale(38, 2)
                    .unwrap(),
            ),
        ),
        ("binary", Arc::new(BinaryArray::from(vec![&[0, 0xff][..], &[0xde, 0xad, 0xbe, 0xef], &[1], &[1]]))),
        ("nothing", Arc::new(Int64Array::new_null(4))),
    ];
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(3))
        .set_compression(Compression::SNAPPY)
        .set_bloom_filter_enabled(true)
        .set_key_value_metadata(Some(vec![KeyValue { key: "empty".to_owned(), value: None }]))
        .build();
    write(path, &batch(columns), properties);
}

/// Twenty rows of `id` and `name` in row groups of ten, without statistics.
pub fn of_other_schema(path: &Path) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..20))),
        ("name", Arc::new(StringArray::from_iter_values((0..20).map(|i| i.to_string())))),
    ];
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(10))
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    write(path, &batch(columns), properties);
}

/// Columns of these names, with one more text as value, key-value metadata and writer.
pub fn with_names(path: &Path, names: &[&str], text: &str) {
    let columns =
        names.iter().map(|name| (*name, Arc::new(StringArray::from(vec![text])) as ArrayRef)).collect();
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(vec![KeyValue::new(text.to_owned(), text.to_owned())]))
        .set_created_by(text.to_owned())
        .build();
    write(path, &batch(columns), properties);
}

/// Many columns of one row.
pub fn many_columns(path: &Path, columns: usize) {
    let names: Vec<String> = (0..columns).map(|i| format!("column_{i}")).collect();
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let columns = names.iter().map(|name| (name.as_str(), Arc::clone(&array))).collect();
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    write(path, &batch(columns), properties);
}

fn file_of(path: &Path, data: &[u8], writer: ThriftWriter) {
    let footer = writer.into_bytes();
    let mut file = [b"PAR1", data].concat();
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    std::fs::write(path, file).unwrap();
}

/// Writes a footer whose second column has an `oddity`: it is `encrypted` or `elsewhere`, or its `codec` or `type`
/// is unknown.
pub fn raw_footer(path: &Path, row_groups: usize, columns: usize, oddity: &str) {
    let odd = |column: usize, what: &str| column == 1 && oddity == what;
    let mut w = ThriftWriter::new();
    w.i32(1, 1);
    w.list(2, 12, columns as u64 + 1);
    w.begin_element();
    w.binary(4, b"root");
    w.i32(5, columns as i32);
    w.stop();
    for column in 0..columns {
        w.begin_element();
        w.i32(1, if odd(column, "type") { 99 } else { 1 });
        w.i32(3, 0);
        w.binary(4, format!("c{column}").as_bytes());
        w.stop();
    }
    w.i64(3, row_groups as i64);
    w.list(4, 12, row_groups as u64);
    for _ in 0..row_groups {
        w.begin_element();
        w.list(1, 12, columns as u64);
        for column in 0..columns {
            w.begin_element();
            if odd(column, "elsewhere") {
                w.binary(1, b"part.0.parquet");
            }
            w.i64(2, 0);
            if odd(column, "encrypted") {
                w.begin(8);
                w.begin(2);
                w.list(1, 8, 1);
                w.bytes_value(b"c1");
                w.stop();
                w.stop();
                w.binary(9, b"secret");
                w.stop();
                continue;
            }
            w.begin(3);
            w.i32(1, if odd(column, "type") { 99 } else { 1 });
            w.list(2, 5, 1);
            w.integer(0);
            w.list(3, 8, 1);
            w.bytes_value(format!("c{column}").as_bytes());
            w.i32(4, if odd(column, "codec") { 99 } else { 0 });
            w.i64(5, 1);
            w.i64(6, 10);
            w.i64(7, 10);
            w.i64(9, 4);
            w.stop();
            w.stop();
        }
        w.i64(2, 10);
        w.i64(3, 1);
        w.stop();
    }
    w.stop();
    file_of(path, &[], w);
}

/// A row group of columns without pages below a group.
pub fn below_a_group(path: &Path, group: &str, columns: usize) {
    let mut w = ThriftWriter::new();
    w.i32(1, 1);
    w.list(2, 12, columns as u64 + 2);
    for (name, children) in [("root", 1), (group, columns as i32)] {
        w.begin_element();
        w.i32(3, 0);
        w.binary(4, name.as_bytes());
        w.i32(5, children);
        w.stop();
    }
    for column in 0..columns {
        w.begin_element();
        w.i32(1, 1);
        w.i32(3, 0);
        w.binary(4, format!("c{column}").as_bytes());
        w.stop();
    }
    w.i64(3, 10);
    w.list(4, 12, 1);
    w.begin_element();
    w.list(1, 12, columns as u64);
    for _ in 0..columns {
        w.begin_element();
        w.i64(2, 0);
        w.begin(3);
        w.i32(1, 1);
        w.list(2, 5, 0);
        w.list(3, 8, 0);
        w.i32(4, 0);
        for (id, number) in [(5, 10), (6, 100), (7, 100), (9, 4)] {
            w.i64(id, number);
        }
        w.stop();
        w.stop();
    }
    w.i64(2, 100);
    w.i64(3, 10);
    w.stop();
    w.stop();
    file_of(path, &[0; 200], w);
}

/// A schema of groups within groups, with one leaf and no rows.
pub fn deep(path: &Path, depth: usize) {
    let mut w = ThriftWriter::new();
    w.i32(1, 1);
    w.list(2, 12, depth as u64 + 1);
    for at in 0..=depth {
        w.begin_element();
        if at == depth {
            w.i32(1, 1);
        }
        w.i32(3, 1);
        w.binary(4, b"g");
        if at < depth {
            w.i32(5, 1);
        }
        w.stop();
    }
    w.i64(3, 0);
    w.list(4, 12, 0);
    w.stop();
    file_of(path, &[], w);
}

/// Writes a file of one row, a text of this length.
pub fn one_text(path: &Path, len: usize) {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(len)]));
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    write(path, &batch(vec![("text", text)]), properties);
}

/// Writes a file whose pages are `len` zeros in Zstandard. The 1,000 rows of a page use 8,000 bytes.
pub fn zeros(path: &Path, columns: usize, len: usize) {
    // A frame with a window of 128 KiB, whose blocks are each a byte and how often it comes.
    let mut body = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    let mut left = len;
    while left > 0 {
        let block = left.min(128 << 10);
        left -= block;
        let header = (block << 3 | 1 << 1 | usize::from(left == 0)) as u32;
        body.extend([&header.to_le_bytes()[..3], &[0]].concat());
    }
    let mut header = ThriftWriter::new();
    header.i32(1, 0);
    header.i32(2, len as i32);
    header.i32(3, body.len() as i32);
    header.begin(5);
    for (field, number) in [(1, 1000), (2, 0), (3, 3), (4, 3)] {
        header.i32(field, number);
    }
    header.stop();
    header.stop();
    let page = [header.into_bytes(), body].concat();
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.list(2, 12, columns as u64 + 1);
    writer.begin_element();
    writer.binary(4, b"root");
    writer.i32(5, columns as i32);
    writer.stop();
    for column in 0..columns {
        writer.begin_element();
        writer.i32(1, 2);
        writer.i32(3, 0);
        writer.binary(4, format!("c{column}").as_bytes());
        writer.stop();
    }
    writer.i64(3, 1000);
    writer.list(4, 12, 1);
    writer.begin_element();
    writer.list(1, 12, columns as u64);
    for column in 0..columns {
        writer.begin_element();
        writer.i64(2, 0);
        writer.begin(3);
        writer.i32(1, 2);
        writer.list(2, 5, 1);
        writer.integer(0);
        writer.list(3, 8, 1);
        writer.bytes_value(format!("c{column}").as_bytes());
        writer.i32(4, 6);
        let place = 4 + column * page.len();
        for (field, number) in [(5, 1000), (6, len), (7, page.len()), (9, place)] {
            writer.i64(field, number as i64);
        }
        writer.stop();
        writer.stop();
    }
    writer.i64(2, (columns * len) as i64);
    writer.i64(3, 1000);
    writer.stop();
    writer.stop();
    let footer = writer.into_bytes();
    let pages = page.repeat(columns);
    let length = (footer.len() as u32).to_le_bytes();
    std::fs::write(path, [b"PAR1", &pages[..], &footer, &length, b"PAR1"].concat()).unwrap();
}
