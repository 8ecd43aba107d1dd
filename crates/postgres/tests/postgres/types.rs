//! Every type that a column can have, there and back through a real server.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, StringDictionaryBuilder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use half::f16;
use postgres::types::Type;
use sawmill_loader::LoadOptions;
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small};
use crate::fixture::file_of;

/// Loads one nullable column `c` and returns its type and its values as text, in the order of `n`.
fn as_text(array: ArrayRef) -> (String, Vec<Option<String>>) {
    let database = Database::new();
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..array.len() as i32));
    let (_directory, path) = file_of(vec![("n", n), ("c", array)], 1000);
    run(&ParquetFiles::open(&[path]).unwrap(), &database.target("t"), &small()).unwrap();
    let mut client = database.client();
    // The server prints enough digits to distinguish all doubles by default from version 12 on.
    let rows = client.query("SELECT c::text, pg_typeof(c)::text FROM t ORDER BY n", &[]).unwrap();
    let kind = client.query_one(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'c'",
        &[],
    );
    (kind.unwrap().get(0), rows.iter().map(|row| row.get(0)).collect())
}

#[track_caller]
fn check(array: impl Array + 'static, kind: &str, values: &[Option<&str>]) {
    let (found, texts) = as_text(Arc::new(array));
    assert_eq!(found, kind);
    assert_eq!(texts.iter().map(Option::as_deref).collect::<Vec<_>>(), values);
}

#[test]
fn integers_keep_their_ends() {
    check(Int8Array::from(vec![Some(-128), None, Some(127)]), "smallint", &[Some("-128"), None, Some("127")]);
    check(UInt8Array::from(vec![Some(0), None, Some(255)]), "smallint", &[Some("0"), None, Some("255")]);
    check(Int16Array::from(vec![Some(i16::MIN), None]), "smallint", &[Some("-32768"), None]);
    check(UInt16Array::from(vec![Some(u16::MAX), None]), "integer", &[Some("65535"), None]);
    check(Int32Array::from(vec![Some(i32::MIN), None]), "integer", &[Some("-2147483648"), None]);
    check(UInt32Array::from(vec![Some(u32::MAX), None]), "bigint", &[Some("4294967295"), None]);
    check(
        Int64Array::from(vec![Some(i64::MIN), Some(i64::MAX)]),
        "bigint",
        &[Some("-9223372036854775808"), Some("9223372036854775807")],
    );
    check(
        UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]),
        "numeric(20,0)",
        &[Some("18446744073709551615"), None, Some("0")],
    );
}

#[test]
fn floats_keep_infinities_nan_and_the_sign_of_zero() {
    let halves = [f16::from_f32(1.5), f16::INFINITY, f16::NAN, f16::NEG_ZERO].map(Some);
    let texts = [Some("1.5"), Some("Infinity"), Some("NaN"), Some("-0")];
    check(Float16Array::from(halves.to_vec()), "real", &texts);
    check(Float32Array::from(vec![1.5, f32::INFINITY, f32::NAN, -0.0]), "real", &texts);
    check(Float64Array::from(vec![1.5, f64::INFINITY, f64::NAN, -0.0]), "double precision", &texts);
    check(
        Float64Array::from(vec![Some(f64::MIN_POSITIVE), None, Some(f64::MAX)]),
        "double precision",
        &[Some("2.2250738585072014e-308"), None, Some("1.7976931348623157e+308")],
    );
}

#[test]
fn decimals_are_exact_at_any_width() {
    let decimal = Decimal32Array::from(vec![Some(-12_345), None, Some(0), Some(100)]);
    check(
        decimal.with_precision_and_scale(7, 2).unwrap(),
        "numeric(7,2)",
        &[Some("-123.45"), None, Some("0.00"), Some("1.00")],
    );
    let decimal = Decimal64Array::from(vec![Some(999_999_999_999_999_999), Some(1)]);
    check(
        decimal.with_precision_and_scale(18, 18).unwrap(),
        "numeric(18,18)",
        &[Some("0.999999999999999999"), Some("0.000000000000000001")],
    );
    let largest = 99_999_999_999_999_999_999_999_999_999_999_999_999i128;
    let decimal = Decimal128Array::from(vec![Some(largest), Some(-largest), Some(50_000), None]);
    check(
        decimal.with_precision_and_scale(38, 5).unwrap(),
        "numeric(38,5)",
        &[
            Some("999999999999999999999999999999999.99999"),
            Some("-999999999999999999999999999999999.99999"),
            Some("0.50000"),
            None,
        ],
    );
    let nines = "9".repeat(76);
    let huge = i256::from_string(&nines).unwrap();
    let decimal = Decimal256Array::from(vec![Some(huge), Some(-huge), Some(i256::from_i128(7)), None]);
    let text = format!("{}.{}", &nines[..73], &nines[..3]);
    check(
        decimal.with_precision_and_scale(76, 3).unwrap(),
        "numeric(76,3)",
        &[Some(&text), Some(&format!("-{text}")), Some("0.007"), None],
    );
}

#[test]
fn text_and_bytes_of_every_layout_arrive() {
    let long = "a string of more than twelve bytes";
    let texts = vec![Some("short"), None, Some(""), Some(long), Some("ü€😀\u{7f}\n\\")];
    check(StringArray::from(texts.clone()), "text", &texts);
    check(LargeStringArray::from(texts.clone()), "text", &texts);
    check(StringViewArray::from(texts.clone()), "text", &texts);
    let bytes: Vec<Option<&[u8]>> = vec![Some(b"\0\x01\xff"), None, Some(b"")];
    let hex = [Some("\\x0001ff"), None, Some("\\x")];
    check(BinaryArray::from(bytes.clone()), "bytea", &hex);
    check(LargeBinaryArray::from(bytes.clone()), "bytea", &hex);
    check(BinaryViewArray::from(bytes), "bytea", &hex);
    let fixed =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(b"ab"), None].into_iter(), 2).unwrap();
    check(fixed, "bytea", &[Some("\\x6162"), None]);
    check(
        BooleanArray::from(vec![Some(true), None, Some(false)]),
        "boolean",
        &[Some("true"), None, Some("false")],
    );
    check(NullArray::new(2), "text", &[None, None]);
}

#[test]
fn dictionaries_of_any_value_become_their_values() {
    let mut words = StringDictionaryBuilder::<Int8Type>::new();
    for word in ["Mobile", "Work", "Mobile"] {
        words.append_value(word);
    }
    words.append_null();
    check(words.finish(), "text", &[Some("Mobile"), Some("Work"), Some("Mobile"), None]);
}

#[test]
fn dates_and_times_arrive_to_the_microsecond() {
    check(
        Date32Array::from(vec![Some(0), None, Some(-2_440_588), Some(2_145_042_905)]),
        "date",
        &[Some("1970-01-01"), None, Some("4714-11-24 BC"), Some("5874897-12-31")],
    );
    check(Date64Array::from(vec![Some(86_400_000), None]), "date", &[Some("1970-01-02"), None]);
    let time = "time without time zone";
    check(Time32SecondArray::from(vec![Some(86_399), None]), time, &[Some("23:59:59"), None]);
    check(
        Time32MillisecondArray::from(vec![Some(1), Some(86_400_000)]),
        time,
        &[Some("00:00:00.001"), Some("24:00:00")],
    );
    check(Time64MicrosecondArray::from(vec![Some(1), None]), time, &[Some("00:00:00.000001"), None]);
    check(Time64NanosecondArray::from(vec![Some(1000), None]), time, &[Some("00:00:00.000001"), None]);
    let plain = "timestamp without time zone";
    check(TimestampSecondArray::from(vec![Some(-1), None]), plain, &[Some("1969-12-31 23:59:59"), None]);
    check(
        TimestampMillisecondArray::from(vec![Some(1), None]),
        plain,
        &[Some("1970-01-01 00:00:00.001"), None],
    );
    check(
        TimestampMicrosecondArray::from(vec![Some(-210_866_803_200_000_000), None]),
        plain,
        &[Some("4714-11-24 00:00:00 BC"), None],
    );
    check(
        TimestampNanosecondArray::from(vec![Some(-1000), None]),
        plain,
        &[Some("1969-12-31 23:59:59.999999"), None],
    );
    let zoned = TimestampMicrosecondArray::from(vec![Some(0), None]).with_timezone("+02:00");
    check(zoned, "timestamp with time zone", &[Some("1970-01-01 00:00:00+00"), None]);
}

#[test]
fn durations_become_intervals() {
    check(
        DurationMillisecondArray::from(vec![Some(90_061_001), None]),
        "interval",
        &[Some("25:01:01.001"), None],
    );
}

#[test]
fn arrow_intervals_have_the_parts_of_the_files_schema_and_signs() {
    use arrow_buffer::IntervalDayTime;
    check(
        IntervalYearMonthArray::from(vec![Some(14), Some(-1)]),
        "interval",
        &[Some("1 year 2 mons"), Some("-1 mons")],
    );
    check(
        IntervalDayTimeArray::from(vec![Some(IntervalDayTime::new(3, 1500)), None]),
        "interval",
        &[Some("3 days 00:00:01.5"), None],
    );
}

/// Writes one required column `c` of a Parquet type that Arrow does not write.
fn raw_file<T: parquet::data_type::DataType>(
    column: parquet::schema::types::Type,
    values: &[T::T],
) -> (tempfile::TempDir, std::path::PathBuf) {
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type as SchemaType;
    let schema = SchemaType::group_type_builder("schema").with_fields(vec![Arc::new(column)]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let schema = Arc::new(schema.build().unwrap());
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::new())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut pages = group.next_column().unwrap().unwrap();
    pages.typed::<T>().write_batch(values, None, None).unwrap();
    pages.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    (directory, path)
}

#[test]
fn parquet_types_that_arrow_does_not_write_are_read_whole() {
    use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{
        ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int96, Int96Type,
    };
    use parquet::schema::types::Type as SchemaType;
    let column =
        |physical| SchemaType::primitive_type_builder("c", physical).with_repetition(Repetition::REQUIRED);
    let database = Database::new();
    let load = |path: &std::path::Path, table: &str| {
        run(&ParquetFiles::open(&[path]).unwrap(), &database.target(table), &small()).unwrap();
        let text = format!("SELECT c::text, pg_typeof(c)::text FROM {table}");
        let row = database.client().query_one(&text, &[]).unwrap();
        (row.get::<_, String>(0), row.get::<_, String>(1))
    };
    let pair = |value: &str, kind: &str| (value.to_owned(), kind.to_owned());

    let words = column(Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::Enum)).build().unwrap();
    let (_one, path) = raw_file::<ByteArrayType>(words, &[ByteArray::from("Mobile")]);
    assert_eq!(load(&path, "words"), pair("Mobile", "text"));

    let json = column(Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::Json)).build().unwrap();
    let (_json, path) = raw_file::<ByteArrayType>(json, &[ByteArray::from("{\"b\":1, \"a\":[]}")]);
    assert_eq!(load(&path, "documents"), pair("{\"a\": [], \"b\": 1}", "jsonb"));

    // Day 2,500,000 is in 2132; 9999-12-31 is day 5,373,484, beyond 64 bits of nanoseconds.
    let mut moment = Int96::new();
    moment.set_data(1000, 0, 5_373_484);
    let (_two, path) = raw_file::<Int96Type>(column(Physical::INT96).build().unwrap(), &[moment]);
    assert_eq!(load(&path, "moments"), pair("9999-12-31 00:00:00.000001", "timestamp without time zone"));

    let interval = column(Physical::FIXED_LEN_BYTE_ARRAY)
        .with_length(12)
        .with_converted_type(ConvertedType::INTERVAL)
        .build()
        .unwrap();
    let parts = [14u32, 3, 1500].iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<u8>>();
    let (_three, path) = raw_file::<FixedLenByteArrayType>(interval, &[FixedLenByteArray::from(parts)]);
    assert_eq!(load(&path, "intervals"), pair("1 year 2 mons 3 days 00:00:01.5", "interval"));
}

#[test]
fn sixteen_bytes_marked_as_uuid_become_uuids() {
    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType};
    use parquet::schema::types::Type as SchemaType;
    let column = SchemaType::primitive_type_builder("c", Physical::FIXED_LEN_BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_length(16)
        .with_logical_type(Some(LogicalType::Uuid));
    let value = FixedLenByteArray::from((0..16).collect::<Vec<u8>>());
    let (_directory, path) = raw_file::<FixedLenByteArrayType>(column.build().unwrap(), &[value]);
    let database = Database::new();
    run(&ParquetFiles::open(&[&path]).unwrap(), &database.target("t"), &small()).unwrap();
    let row = database.client().query_one("SELECT c::text, c FROM t", &[]).unwrap();
    assert_eq!(row.get::<_, String>(0), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    assert_eq!(*row.columns()[1].type_(), Type::UUID);
}

/// Loads one column and returns the refusal.
fn refusal(array: impl Array + 'static) -> sawmill_source::Error {
    let database = Database::new();
    let (_directory, path) = file_of(vec![("c", Arc::new(array))], 400);
    let error = run(&ParquetFiles::open(&[path]).unwrap(), &database.target("t"), &small()).unwrap_err();
    assert!(!database.has("t"), "a refused load must not show a table");
    error
}

#[test]
fn values_that_postgresql_cannot_hold_are_refused_with_file_row_group_row_and_column() {
    let mut texts = vec!["fine".to_owned(); 700];
    texts[650] = "a\0b".to_owned();
    let error = refusal(StringArray::from(texts));
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.what().contains("0x00"), "{error}");
    assert!(error.place().ends_with("data.parquet, row group 1, row 250, column \"c\""), "{error}");

    let error = refusal(TimestampNanosecondArray::from(vec![Some(0), None, Some(1001)]));
    assert!(error.what().contains("1001") && error.what().contains("microseconds"), "{error}");
    assert!(error.place().contains("row 2,"), "{error}");
    refusal(TimestampMicrosecondArray::from(vec![i64::MIN]));
    refusal(TimestampSecondArray::from(vec![9_224_318_016_000]));
    refusal(Date32Array::from(vec![i32::MAX]));
    refusal(Date64Array::from(vec![1]));
    refusal(Time64MicrosecondArray::from(vec![-1]));
    refusal(Time64NanosecondArray::from(vec![1]));
}

#[test]
fn values_hidden_by_null_are_never_refused() {
    let values = arrow_buffer::ScalarBuffer::from(vec![i64::MIN, 0]);
    let nulls = arrow_buffer::NullBuffer::from(vec![false, true]);
    let array = TimestampMicrosecondArray::new(values, Some(nulls));
    check(array, "timestamp without time zone", &[None, Some("1970-01-01 00:00:00")]);
}

#[test]
fn a_row_larger_than_a_block_is_sent_alone() {
    let mut texts = vec!["x".to_owned(); 300];
    texts[7] = "y".repeat(200_000);
    texts[8] = "z".repeat(100_000);
    let database = Database::new();
    let (_directory, path) = file_of(vec![("c", Arc::new(StringArray::from(texts)))], 1000);
    let options = LoadOptions { batch_bytes: 4096, ..small() };
    run(&ParquetFiles::open(&[path]).unwrap(), &database.target("t"), &options).unwrap();
    let lengths = database.client().query_one("SELECT sum(length(c)), max(length(c)) FROM t", &[]).unwrap();
    assert_eq!((lengths.get::<_, i64>(0), lengths.get::<_, i32>(1)), (300_298, 200_000));
}

#[test]
fn nullable_dictionary_entries_that_no_row_uses_do_no_harm() {
    let mut keys = Int32Builder::new();
    keys.append_value(1);
    keys.append_null();
    let words = StringArray::from(vec![Some("bad\0"), Some("good")]);
    let array = DictionaryArray::<Int32Type>::try_new(keys.finish(), Arc::new(words)).unwrap();
    check(array, "text", &[Some("good"), None]);
}
