//! Nested values as jsonb: the layout of contacts, every type below a struct, and random schemas.

use std::sync::Arc;

use arrow_array::builder::{
    Int32Builder, ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder, StructBuilder,
};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small};
use crate::fixture::{file_of, write};

#[test]
fn contacts_become_a_name_and_a_jsonb_array_of_phones() {
    let kind = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let fields =
        Fields::from(vec![Field::new("number", DataType::Utf8, true), Field::new("phone_type", kind, true)]);
    let phone = StructBuilder::new(
        fields,
        vec![Box::new(StringBuilder::new()), Box::new(StringDictionaryBuilder::<Int8Type>::new())],
    );
    let mut phones = ListBuilder::new(phone);
    let mut add = |entries: Option<&[(Option<&str>, Option<&str>)]>| {
        for (number, kind) in entries.unwrap_or_default() {
            let phone = phones.values();
            phone.field_builder::<StringBuilder>(0).unwrap().append_option(*number);
            let kinds = phone.field_builder::<StringDictionaryBuilder<Int8Type>>(1).unwrap();
            kinds.append_option(*kind);
            phone.append(true);
        }
        phones.append(entries.is_some());
    };
    add(Some(&[(Some("+91-0000000001"), Some("Mobile"))]));
    add(None);
    add(Some(&[]));
    add(Some(&[(None, Some("Work")), (Some("+91-0000000002"), None), (None, None)]));
    let phones: ArrayRef = Arc::new(phones.finish());
    let names: ArrayRef =
        Arc::new(StringArray::from(vec![Some("Ann Lee"), Some("Bo Ra"), None, Some("Cy Ng")]));
    let (_directory, path) = file_of(vec![("name", names), ("phones", phones)], 100);

    let database = Database::new();
    run(&ParquetFiles::open(&[path]).unwrap(), &database.target("contacts"), &small()).unwrap();
    let rows = database.client().query("SELECT name, phones::text FROM contacts", &[]).unwrap();
    let texts: Vec<(Option<String>, Option<String>)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected = [
        (Some("Ann Lee"), Some(r#"[{"number": "+91-0000000001", "phone_type": "Mobile"}]"#)),
        (Some("Bo Ra"), None),
        (None, Some("[]")),
        (
            Some("Cy Ng"),
            Some(
                r#"[{"number": null, "phone_type": "Work"}, {"number": "+91-0000000002", "phone_type": null}, {"number": null, "phone_type": null}]"#,
            ),
        ),
    ];
    let expected = expected.map(|(name, phones)| (name.map(str::to_owned), phones.map(str::to_owned)));
    assert_eq!(texts, expected);
    // The form that was sent is the form that the server prints: members can be asked for.
    let mobile = "SELECT count(*) FROM contacts WHERE phones @> '[{\"phone_type\": \"Mobile\"}]'";
    assert_eq!(database.client().query_one(mobile, &[]).unwrap().get::<_, i64>(0), 1);
}

#[test]
fn maps_become_objects_or_pairs_and_a_doubled_key_is_refused() {
    let map = |keys: &[&str]| {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        for (i, key) in keys.iter().enumerate() {
            builder.keys().append_value(key);
            builder.values().append_value(i as i32);
        }
        builder.append(true).unwrap();
        Arc::new(builder.finish()) as ArrayRef
    };
    let mut pairs = MapBuilder::new(None, Int32Builder::new(), StringBuilder::new());
    pairs.keys().append_value(7);
    pairs.values().append_null();
    pairs.append(true).unwrap();
    let database = Database::new();
    let columns =
        vec![("object", map(&["bb", "a", "é", "ab"])), ("pairs", Arc::new(pairs.finish()) as ArrayRef)];
    let (_directory, path) = file_of(columns, 100);
    run(&ParquetFiles::open(&[path]).unwrap(), &database.target("t"), &small()).unwrap();
    let row = database.client().query_one("SELECT object::text, pairs::text FROM t", &[]).unwrap();
    assert_eq!(row.get::<_, String>(0), r#"{"a": 1, "ab": 3, "bb": 0, "é": 2}"#);
    assert_eq!(row.get::<_, String>(1), r#"[{"key": 7, "value": null}]"#);

    let (_directory, path) = file_of(vec![("m", map(&["x", "x"]))], 100);
    let error =
        run(&ParquetFiles::open(&[path]).unwrap(), &database.target("doubled"), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.what().contains("twice") && error.place().contains("column \"m\""), "{error}");
}

/// An array of `rows` rows of a random type with random values, no deeper than `depth`.
fn array(depth: u32, rows: usize) -> BoxedStrategy<ArrayRef> {
    array_with(depth, rows, any::<f32>().boxed())
}

/// The same with single-precision numbers that have only one shortest form. Halfway between two numbers the
/// server prints one digit more than Sawmill.
pub fn plain_array(depth: u32, rows: usize) -> BoxedStrategy<ArrayRef> {
    array_with(depth, rows, any::<i16>().prop_map(|n| f32::from(n) / 8.0).boxed())
}

fn array_with(depth: u32, rows: usize, single: BoxedStrategy<f32>) -> BoxedStrategy<ArrayRef> {
    fn some<T: std::fmt::Debug + Clone + 'static>(
        value: impl Strategy<Value = T> + 'static,
        rows: usize,
    ) -> BoxedStrategy<Vec<Option<T>>> {
        proptest::collection::vec(proptest::option::weighted(0.8, value), rows).boxed()
    }
    let text = "[a-c\"\\\\/\u{1}-\u{1f}\u{7f}é€😀 ]{0,20}";
    let stamp = -60_000_000_000_000_000..200_000_000_000_000_000i64;
    let leaf = prop_oneof![
        some(any::<i8>(), rows).prop_map(|v| Arc::new(Int8Array::from(v)) as ArrayRef),
        some(any::<i64>(), rows).prop_map(|v| Arc::new(Int64Array::from(v)) as ArrayRef),
        some(any::<u64>(), rows).prop_map(|v| Arc::new(UInt64Array::from(v)) as ArrayRef),
        some(single.clone(), rows).prop_map(|v| Arc::new(Float32Array::from(v)) as ArrayRef),
        some(prop_oneof![any::<f64>(), Just(f64::NAN), Just(-0.0), Just(1e22)], rows)
            .prop_map(|v| Arc::new(Float64Array::from(v)) as ArrayRef),
        some(any::<bool>(), rows).prop_map(|v| Arc::new(BooleanArray::from(v)) as ArrayRef),
        some(text, rows).prop_map(|v| Arc::new(StringArray::from(v)) as ArrayRef),
        some(text, rows)
            .prop_map(|v| Arc::new(DictionaryArray::<Int32Type>::from_iter(v.iter().map(Option::as_deref)))
                as ArrayRef),
        some(proptest::collection::vec(any::<u8>(), 0..20), rows)
            .prop_map(|v| Arc::new(BinaryArray::from_iter(v)) as ArrayRef),
        some(-99_999_999_999_999_999_999i128..99_999_999_999_999_999_999, rows).prop_map(|v| {
            Arc::new(Decimal128Array::from(v).with_precision_and_scale(20, 7).unwrap()) as ArrayRef
        }),
        some(-700_000..3_000_000i32, rows).prop_map(|v| Arc::new(Date32Array::from(v)) as ArrayRef),
        some(0..86_400_000_000i64, rows).prop_map(|v| Arc::new(Time64MicrosecondArray::from(v)) as ArrayRef),
        some(stamp.clone(), rows).prop_map(|v| Arc::new(TimestampMicrosecondArray::from(v)) as ArrayRef),
        some(stamp, rows)
            .prop_map(|v| Arc::new(TimestampMicrosecondArray::from(v).with_timezone("UTC")) as ArrayRef),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let nulls = move || proptest::collection::vec(proptest::bool::weighted(0.8), rows);
    let below = single.clone();
    let list = proptest::collection::vec(0..4usize, rows).prop_flat_map(move |lengths| {
        let items = lengths.iter().sum();
        (array_with(depth - 1, items, below.clone()), nulls()).prop_map(move |(items, valid)| {
            let field = Arc::new(Field::new("item", items.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
            Arc::new(ListArray::new(field, offsets, items, Some(NullBuffer::from(valid)))) as ArrayRef
        })
    });
    let members = proptest::collection::btree_map("[a-z\"é]{1,8}", array_with(depth - 1, rows, single), 1..4);
    let object = (members, nulls()).prop_map(|(members, valid)| {
        // In an order that is not jsonb's.
        let members: Vec<(String, ArrayRef)> = members.into_iter().rev().collect();
        let fields: Fields =
            members.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true)).collect();
        let arrays = members.into_iter().map(|(_, array)| array).collect();
        Arc::new(StructArray::new(fields, arrays, Some(NullBuffer::from(valid)))) as ArrayRef
    });
    prop_oneof![2 => leaf, 2 => list, 2 => object].boxed()
}

#[test]
fn random_nested_batches_arrive_and_are_what_the_server_prints_of_them() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("random.parquet");
    let number = std::cell::Cell::new(0);
    // Four times as many at night: by default PROPTEST_CASES is 256.
    let cases = Config::default().cases / 8;
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let columns = proptest::collection::vec(array(3, 23), 1..5);
    runner
        .run(&columns, |columns| {
            number.set(number.get() + 1);
            let table = format!("random_{}", number.get());
            let named = columns.into_iter().enumerate().map(|(i, array)| (format!("c{i}"), array, true));
            write(&path, &RecordBatch::try_from_iter_with_nullable(named).unwrap(), 10);
            // The verification inside compares every byte with the server's output. A jsonb text that differs
            // from the server's own would fail it.
            let report = run(&ParquetFiles::open(&[&path]).unwrap(), &database.target(&table), &small());
            let report = report.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(report.rows, 23);
            Ok(())
        })
        .unwrap();
}

#[test]
fn jsonb_values_are_equal_to_what_the_server_parses_from_the_same_text() {
    let database = Database::new();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["\u{8}\u{c}\n\r\t\u{1}\"\\/é"; 3]));
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1e300, -0.0, 1e-7]));
    let fields: Fields =
        vec![Field::new("text", DataType::Utf8, true), Field::new("n", DataType::Float64, true)].into();
    let array: ArrayRef = Arc::new(StructArray::new(fields, vec![texts, numbers], None));
    let (_directory, path) = file_of(vec![("c", array)], 100);
    run(&ParquetFiles::open(&[path]).unwrap(), &database.target("t"), &small()).unwrap();
    let equal =
        "SELECT bool_and(c::text = (c::text)::jsonb::text AND c = (c::text)::jsonb), min(c->>'text') FROM t";
    let row = database.client().query_one(equal, &[]).unwrap();
    assert!(row.get::<_, bool>(0));
    assert_eq!(row.get::<_, String>(1), "\u{8}\u{c}\n\r\t\u{1}\"\\/é");
}
