//! Each row of the table of types, there and back.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Fields};
use sawmill_cratedb::{
    Binary, CrateOptions, Dates, LongText, Objects, StoredText, Times, Timestamps, Transport,
};
use sawmill_loader::LoadOptions;
use sawmill_source::{Kind, ParquetFiles};
use serde_json::{Value, json};

use crate::cluster::{Cluster, keyed, run, small, source_of, with_control};

/// Loads one column over both transports, verifies it, and returns its type and values as the server has
/// them.
fn through(array: ArrayRef, options: CrateOptions) -> (String, Vec<Value>) {
    let mut seen = Vec::new();
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..array.len() as i64));
        let (_kept, source) = source_of(vec![("i", ids), ("c", Arc::clone(&array))], 1000);
        let target = cluster.target(&table, CrateOptions { transport, ..options.clone() });
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert!(report.verified.unwrap().matches());
        assert!(report.notes.iter().all(|note| !note.contains("redone")), "{:?}", report.notes);
        let types = format!(
            "SELECT data_type FROM information_schema.columns WHERE table_schema = 'doc' AND table_name = '{table}' AND column_name = 'c'"
        );
        let data_type = cluster.sql(&types)[0][0].as_str().unwrap().to_owned();
        let rows = cluster.sql(&format!("SELECT \"i\", \"c\" FROM \"doc\".\"{table}\" ORDER BY \"i\""));
        seen.push((data_type, rows.into_iter().map(|mut row| row.remove(1)).collect()));
    }
    let http = seen.remove(0);
    assert_eq!(http, seen.remove(0), "both transports bring the same");
    http
}

fn plain(array: impl Array + 'static) -> (String, Vec<Value>) {
    through(Arc::new(array), keyed(Transport::Http))
}

#[test]
fn integers_arrive_exactly_to_the_last_of_64_bits() {
    assert_eq!(
        plain(Int8Array::from(vec![Some(-128), None, Some(127)])),
        ("smallint".into(), vec![json!(-128), json!(null), json!(127)])
    );
    assert_eq!(plain(UInt8Array::from(vec![255])).0, "smallint");
    assert_eq!(plain(Int16Array::from(vec![i16::MIN, i16::MAX])).1, [json!(i16::MIN), json!(i16::MAX)]);
    assert_eq!(plain(UInt16Array::from(vec![u16::MAX])), ("integer".into(), vec![json!(65_535)]));
    assert_eq!(plain(Int32Array::from(vec![i32::MIN, i32::MAX])).1, [json!(i32::MIN), json!(i32::MAX)]);
    assert_eq!(plain(UInt32Array::from(vec![u32::MAX])), ("bigint".into(), vec![json!(u32::MAX)]));
    assert_eq!(
        plain(Int64Array::from(vec![i64::MIN + 1, i64::MAX - 1])).1,
        [json!(i64::MIN + 1), json!(i64::MAX - 1)]
    );
    let (data_type, values) = plain(UInt64Array::from(vec![0, u64::MAX]));
    assert_eq!((data_type.as_str(), values[1].to_string().as_str()), ("numeric", "18446744073709551615"));
}

#[test]
fn both_ends_of_64_bits_are_refused_rows_over_either_transport() {
    let ends = Int64Array::from(vec![Some(i64::MIN), Some(0), Some(i64::MAX), None]);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..4));
    let (kept, source) = source_of(vec![("i", ids), ("c", Arc::new(ends))], 10);
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let rejects = kept.path().join(format!("{transport:?}.ndjson"));
        let options = CrateOptions { rejects: Some(rejects.clone()), ..keyed(transport) };
        let report = run(&source, &cluster.target(&table, options), &small()).unwrap();
        assert_eq!(report.rows, 2);
        let rejects = std::fs::read_to_string(rejects).unwrap();
        let rows: Vec<Value> = rejects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!([&rows[0]["row"], &rows[1]["row"]], [&json!(0), &json!(2)]);
        for (row, end) in rows.iter().zip([i64::MIN, i64::MAX]) {
            let reason = row["reason"].as_str().unwrap();
            assert!(reason.contains(&format!("Value {end} exceeds allowed range")), "{reason}");
        }
    }
}

#[test]
fn arrays_of_scalars_go_over_the_postgresql_wire_as_every_other_value_does() {
    fn list<T: ArrowPrimitiveType>(values: Vec<Option<Vec<Option<T::Native>>>>) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<T, _, _>(values))
    }
    let texts = {
        let mut texts = ListBuilder::new(StringBuilder::new());
        texts.values().append_value("a\"}\\");
        texts.values().append_null();
        texts.values().append_value("");
        texts.append(true);
        texts.append(true);
        texts.append(false);
        Arc::new(texts.finish()) as ArrayRef
    };
    let flags = {
        let mut flags = ListBuilder::new(BooleanBuilder::new());
        flags.values().append_value(true);
        flags.values().append_null();
        flags.append(true);
        flags.append(true);
        flags.append(false);
        Arc::new(flags.finish()) as ArrayRef
    };
    let columns = vec![
        list::<Int16Type>(vec![Some(vec![Some(-1), None]), Some(vec![]), None]),
        list::<Int32Type>(vec![Some(vec![Some(i32::MIN), None]), Some(vec![]), None]),
        list::<Int64Type>(vec![Some(vec![Some(i64::MAX - 1), None]), Some(vec![]), None]),
        list::<UInt64Type>(vec![Some(vec![Some(u64::MAX), None]), Some(vec![]), None]),
        list::<Float32Type>(vec![Some(vec![Some(0.1), Some(f32::NAN), None]), Some(vec![]), None]),
        list::<Float64Type>(vec![Some(vec![Some(1e300), Some(f64::NEG_INFINITY)]), Some(vec![]), None]),
        list::<TimestampMillisecondType>(vec![Some(vec![Some(-1), None]), Some(vec![]), None]),
        texts,
        flags,
    ];
    let mut lines = Vec::new();
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
        let names: Vec<String> = (0..columns.len()).map(|i| format!("c{i}")).collect();
        let mut all = vec![("i", ids)];
        all.extend(names.iter().map(String::as_str).zip(columns.iter().cloned()));
        let (_kept, source) = source_of(all, 10);
        let options = LoadOptions { verify: true, ..small() };
        let report = run(&source, &cluster.target(&table, keyed(transport)), &options).unwrap();
        assert!(report.verified.unwrap().matches());
        let way = match transport {
            Transport::Pg => "transport pg: 3 rows by UNNEST over the PostgreSQL wire",
            _ => "transport http: 3 rows; --transport http",
        };
        assert_eq!(report.notes.iter().map(|note| &**note).collect::<Vec<_>>(), [way]);
        let names = names.join(", ");
        lines.push(cluster.sql(&format!("SELECT {names} FROM \"doc\".\"{table}\" ORDER BY \"i\"")));
    }
    assert_eq!(lines[0], lines[1], "both transports bring the same");
}

#[test]
fn floats_arrive_with_what_is_no_number() {
    let values =
        vec![Some(0.1), Some(-1e300), Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY), None];
    let (data_type, values) = plain(Float64Array::from(values));
    assert_eq!(data_type, "double precision");
    assert_eq!(
        values,
        [json!(0.1), json!(-1e300), json!("NaN"), json!("Infinity"), json!("-Infinity"), json!(null)]
    );
    assert_eq!(plain(Float32Array::from(vec![0.1f32, f32::MAX])).0, "real");
    assert_eq!(plain(Float16Array::from(vec![half::f16::from_f32(1.5)])), ("real".into(), vec![json!(1.5)]));
}

#[test]
fn decimals_arrive_with_every_digit() {
    let digits = 12_345_678_901_234_567_890_123_456_789_012_345_678i128;
    let array = Decimal128Array::from(vec![Some(digits), Some(-digits), Some(0), Some(-5), None]);
    plain(array.with_precision_and_scale(38, 9).unwrap());
    plain(Decimal128Array::from(vec![1, -99_999]).with_precision_and_scale(5, 5).unwrap());
    plain(Decimal256Array::from(vec![i256::from_i128(123)]).with_precision_and_scale(38, 2).unwrap());
    let wide = Decimal256Array::from(vec![i256::from_i128(1)]).with_precision_and_scale(50, 2).unwrap();
    let (_kept, source) = source_of(vec![("c", Arc::new(wide))], 10);
    let cluster = Cluster::any();
    let error =
        run(&source, &cluster.target(&cluster.table(), keyed(Transport::Http)), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Schema);
    assert!(error.to_string().contains("38 digits"), "{error}");
}

#[test]
fn texts_arrive_whatever_is_in_them() {
    let texts = ["", "é\u{1f600}", "\"quoted\\\" \n\t\r", "\u{1}\u{1f}", "null", "[1]", "{\"a\":1}", "NaN"];
    let (data_type, values) = plain(StringArray::from(texts.to_vec()));
    assert_eq!(data_type, "text");
    assert_eq!(values, texts.map(Value::from));
    let dictionary: DictionaryArray<Int32Type> =
        vec![Some("a"), None, Some("b"), Some("a")].into_iter().collect();
    assert_eq!(plain(dictionary).1, [json!("a"), json!(null), json!("b"), json!("a")]);
    assert_eq!(
        plain(BooleanArray::from(vec![Some(true), None, Some(false)])),
        ("boolean".into(), vec![json!(true), json!(null), json!(false)])
    );
}

#[test]
fn long_text_is_an_error_or_goes_without_index() {
    let long = "x".repeat(32_767);
    let (_kept, source) = source_of(vec![("c", Arc::new(StringArray::from(vec!["a", &long])))], 10);
    let cluster = Cluster::any();
    let table = cluster.table();
    let error = run(&source, &cluster.target(&table, keyed(Transport::Http)), &small()).unwrap_err();
    assert!(error.to_string().contains("32767 bytes") && error.place().contains("row 1"), "{error}");
    let options = CrateOptions { long_text: LongText::Noindex, ..keyed(Transport::Http) };
    let (_, values) = through(Arc::new(StringArray::from(vec!["a", &long])), options);
    assert_eq!(values, [json!("a"), json!(long)]);
}

#[test]
fn bytes_are_base64_or_hexadecimal_text() {
    let bytes = BinaryArray::from(vec![Some(b"\x00\xff\x10".as_slice()), Some(b""), None]);
    assert_eq!(plain(bytes.clone()).1, [json!("AP8Q"), json!(""), json!(null)]);
    let options = CrateOptions { binary: Binary::Hex, ..keyed(Transport::Http) };
    assert_eq!(through(Arc::new(bytes), options).1, [json!("00ff10"), json!(""), json!(null)]);
}

#[test]
fn timestamps_are_milliseconds_and_finer_ones_as_chosen() {
    let whole = TimestampMicrosecondArray::from(vec![Some(1_700_000_000_123_000), Some(-1000), None]);
    let (data_type, values) = plain(whole);
    assert_eq!(
        (data_type.as_str(), &values[..]),
        ("timestamp without time zone", &[json!(1_700_000_000_123i64), json!(-1), json!(null)][..])
    );
    assert_eq!(
        plain(TimestampSecondArray::from(vec![5]).with_timezone("UTC")),
        ("timestamp with time zone".into(), vec![json!(5000)])
    );
    let fine = || TimestampNanosecondArray::from(vec![0, 1_500_000, -1]);
    let (_kept, source) = source_of(vec![("at", Arc::new(fine()))], 10);
    let cluster = Cluster::any();
    let error =
        run(&source, &cluster.target(&cluster.table(), keyed(Transport::Http)), &small()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("\"at\"") && text.contains("1970-01-01T00:00:00.0015") && text.contains("row 1"),
        "{text}"
    );
    let chosen =
        |timestamps| through(Arc::new(fine()), CrateOptions { timestamps, ..keyed(Transport::Http) });
    assert_eq!(chosen(Timestamps::Truncate).1, [json!(0), json!(1), json!(-1)]);
    assert_eq!(chosen(Timestamps::Bigint), ("bigint".into(), vec![json!(0), json!(1_500_000), json!(-1)]));
    assert_eq!(
        chosen(Timestamps::Text).1,
        [
            json!("1970-01-01T00:00:00"),
            json!("1970-01-01T00:00:00.0015"),
            json!("1969-12-31T23:59:59.999999999")
        ]
    );
}

#[test]
fn dates_times_durations_and_intervals_arrive_as_chosen() {
    assert_eq!(
        plain(Date32Array::from(vec![0, 19_782])),
        ("timestamp without time zone".into(), vec![json!(0), json!(1_709_164_800_000i64)])
    );
    let text = CrateOptions { dates: Dates::Text, ..keyed(Transport::Http) };
    assert_eq!(through(Arc::new(Date32Array::from(vec![19_782])), text).1, [json!("2024-02-29")]);
    let noon = || Arc::new(Time64MicrosecondArray::from(vec![43_200_000_001]));
    assert_eq!(through(noon(), keyed(Transport::Http)), ("text".into(), vec![json!("12:00:00.000001")]));
    let units = CrateOptions { times: Times::Bigint, ..keyed(Transport::Http) };
    assert_eq!(through(noon(), units), ("bigint".into(), vec![json!(43_200_000_001i64)]));
    assert_eq!(plain(DurationMillisecondArray::from(vec![1500])), ("bigint".into(), vec![json!(1500)]));
    assert_eq!(plain(IntervalYearMonthArray::from(vec![14])), ("text".into(), vec![json!("P14M0DT0S")]));
}

fn phones() -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("number", DataType::Utf8, true),
        Field::new("n", DataType::UInt64, true),
    ]);
    let numbers: ArrayRef = Arc::new(StringArray::from(vec![Some("1"), None, Some("3")]));
    let wide: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(1), None]));
    let items = StructArray::new(fields.clone(), vec![numbers, wide], None);
    let offsets = arrow_buffer::OffsetBuffer::new(vec![0, 2, 2, 3].into());
    Arc::new(ListArray::new(
        Arc::new(Field::new("item", DataType::Struct(fields), true)),
        offsets,
        Arc::new(items),
        None,
    ))
}

#[test]
fn nested_values_arrive_under_every_policy() {
    for objects in [Objects::Strict, Objects::Dynamic, Objects::Ignored] {
        let (data_type, values) = through(phones(), CrateOptions { objects, ..keyed(Transport::Http) });
        assert_eq!(data_type, "object_array");
        assert_eq!(values[0][0]["number"], "1");
        assert_eq!(values[1], json!([]));
        assert!(values[2][0].get("n").is_none_or(Value::is_null));
    }
    let mut lists = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    lists.values().values().append_slice(&[1, 2]);
    lists.values().append(true);
    lists.values().values().append_value(3);
    lists.values().append(true);
    lists.append(true);
    lists.append(false);
    let (data_type, values) = through(Arc::new(lists.finish()), keyed(Transport::Http));
    assert_eq!(
        (data_type.as_str(), &values[..]),
        ("integer_array_array", &[json!([[1, 2], [3]]), json!(null)][..])
    );
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("a.b");
    map.values().append_value(1);
    map.append(true).unwrap();
    let (_, values) = through(Arc::new(map.finish()), keyed(Transport::Http));
    assert_eq!(values, [json!([{"key": "a.b", "value": 1}])]);
}

#[test]
fn intervals_of_duckdb_arrive_as_iso_8601() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/foreign/duckdb_intervals.parquet");
    let source = ParquetFiles::open(&[path]).unwrap();
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let options = LoadOptions { verify: true, ..small() };
        let report = run(&source, &cluster.target(&table, keyed(transport)), &options).unwrap();
        assert!(report.rows == 300 && report.verified.unwrap().matches());
        let query = format!(
            "SELECT \"pause\", \"waits\" FROM \"doc\".\"{table}\" WHERE \"id\" IN (0, 503, 913) ORDER BY \"id\""
        );
        let expected = [
            vec![json!("P0M0DT0S"), json!(["P0M0DT0S", null])],
            vec![json!("P23M23DT30683.503000000S"), json!(["P23M23DT30683.503000000S", null])],
            vec![json!(null), json!(["P13M33DT55693.913000000S", null])],
        ];
        assert_eq!(cluster.sql(&query), expected);
    }
}

#[test]
fn times_have_the_form_of_loads_only_in_a_table_that_a_load_has_made() {
    let cluster = Cluster::any();
    let (made, other) = (cluster.table(), cluster.table());
    let options = keyed(Transport::Http);
    let (_kept, source) = source_of(vec![("at", Arc::new(Time32SecondArray::from(vec![36_000])))], 1000);
    run(&source, &cluster.target(&made, options.clone()), &small()).unwrap();
    cluster.sql(&format!("CREATE TABLE \"doc\".\"{other}\" (\"at\" TEXT)"));
    for (table, of_loads) in [(made, true), (other, false)] {
        let target = cluster.target(&table, options.clone());
        let found = with_control(|control| target.columns_of_text(&small(), control)).unwrap();
        let columns = vec![("at".to_owned(), true)];
        assert_eq!(found, StoredText { columns, times: of_loads, timestamps: false });
    }
}
