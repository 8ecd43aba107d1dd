//! What a comparison must not call kept: what it did not compare.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Decimal128Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};

use crate::{Fidelity, InferredSpec, InferredTables, KeyColumn};

const ROWS: usize = 12_000;

fn sample(name: &str, columns: Vec<(&str, ArrayRef)>) -> InferredSpec {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    );
    let batch = batch.unwrap();
    let mut sample = InferredSpec::new(name, &batch.schema(), &[]).unwrap().with_keys(&batch.schema());
    sample.add(&batch).unwrap();
    for column in sample.may_be_keys() {
        let mut key = KeyColumn::new(batch.column(column).data_type()).unwrap();
        key.add(batch.column(column)).unwrap();
        sample.set_key(column, &key);
    }
    sample
}

fn compared(source: Vec<(&str, ArrayRef)>, generated: Vec<(&str, ArrayRef)>) -> Fidelity {
    sample("source", source).compare(&sample("generated", generated))
}

/// A number below `n` for each row and column.
fn scattered(row: usize, column: usize, n: usize) -> usize {
    let mixed = ((row * 64 + column + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize % n
}

fn numbers(value: impl Fn(usize) -> Option<usize>) -> ArrayRef {
    Arc::new((0..ROWS).map(|row| value(row).map(|v| v as i64)).collect::<Int64Array>())
}

/// A struct with these fields of numbers, null in one of `nulls` rows.
fn record(names: &[&str], nulls: usize) -> ArrayRef {
    let fields: Fields = names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
    let columns = names.iter().map(|_| numbers(|row| Some(scattered(row, 1, 9)))).collect();
    let there = NullBuffer::from_iter((0..ROWS).map(|row| row % nulls > 0));
    Arc::new(StructArray::new(fields, columns, Some(there)))
}

#[test]
fn a_struct_that_is_never_null_is_not_like_one_that_often_is() {
    let fidelity = compared(vec![("s", record(&["a"], 2))], vec![("s", record(&["a"], ROWS + 1))]);
    let lost: Vec<&str> =
        fidelity.columns.iter().filter(|of| !of.is_kept).map(|of| of.column.as_str()).collect();
    assert_eq!((lost, fidelity.kept.columns), (vec!["s"], [1, 2]), "{:?}", fidelity.columns);
}

#[test]
fn columns_and_nested_fields_of_one_of_the_two_only_are_named() {
    let fidelity = compared(
        vec![("s", record(&["a", "b"], 2)), ("old", numbers(Some))],
        vec![("s", record(&["a", "c"], 2)), ("new", numbers(Some))],
    );
    for said in [
        "old: not in the generated data",
        "new: not in the source",
        "s.b: not in the generated data",
        "s.c: not in the source",
    ] {
        assert!(fidelity.not_compared.iter().any(|of| of == said), "{said}: {:?}", fidelity.not_compared);
    }
}

#[test]
fn equal_digits_of_other_types_are_other_values() {
    let cents = |row: usize| scattered(row, 1, 100) as i128;
    let decimals = Decimal128Array::from_iter_values((0..ROWS).map(cents));
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(9, 2).unwrap());
    let texts = |row: usize| format!("{:03}", scattered(row, 1, 100));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(texts)));
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..ROWS).map(texts)));
    let whole = numbers(|row| Some(scattered(row, 1, 100)));
    let fidelity = compared(vec![("n", decimals), ("t", text)], vec![("n", whole), ("t", bytes)]);
    assert_eq!(fidelity.kept.columns, [0, 2], "{:?}", fidelity.columns);
    assert!(fidelity.columns.iter().all(|column| column.measure == "other types"));
}

#[test]
fn a_key_is_kept_only_if_all_its_values_were_counted() {
    // Bytes of more than 10,000 different values are counted up to there.
    let bytes = |generated: bool| -> ArrayRef {
        let value = |row: usize| if generated && row > 11_000 { 11_000 } else { row };
        Arc::new(BinaryArray::from_iter_values((0..ROWS).map(|row| value(row).to_le_bytes())))
    };
    let fidelity = compared(
        vec![("id", bytes(false)), ("number", numbers(Some)), ("good", numbers(Some))],
        vec![("id", bytes(true)), ("number", numbers(|_| None)), ("good", numbers(Some))],
    );
    assert_eq!(fidelity.kept.keys, [1, 1], "{:?}", fidelity.keys);
    for column in ["id", "number"] {
        let said = format!("equal values of {column}: not all values are counted");
        assert!(fidelity.not_compared.contains(&said), "{said}: {:?}", fidelity.not_compared);
    }
}

#[test]
fn pairs_and_orders_without_generated_values_are_lost_or_not_compared_but_never_kept() {
    let a = || numbers(|row| Some(scattered(row, 1, 5000)));
    let copy = |rows: usize| numbers(move |row| (row < rows).then(|| scattered(row, 1, 5000)));
    let other = |rows: usize| numbers(move |row| (row < rows).then(|| scattered(row, 2, 5000)));
    for rows in [10, 33] {
        let fidelity = compared(
            vec![("a", a()), ("copy", copy(ROWS)), ("other", other(ROWS))],
            vec![("a", a()), ("copy", copy(rows)), ("other", other(rows))],
        );
        assert_eq!(fidelity.kept.pairs[0], 0, "{rows}: {:?}", fidelity.pairs);
        assert_eq!(fidelity.kept.order, [1, 1], "{rows}: {:?}", fidelity.order);
        let pairs = fidelity.pairs.iter().all(|pair| pair.columns != ["a".to_owned(), "other".to_owned()]);
        assert!(pairs, "{rows}: {:?}", fidelity.pairs);
        let said = |of: &String| of.ends_with("pairs of columns: too few rows with both");
        assert!(fidelity.not_compared.iter().any(said), "{:?}", fidelity.not_compared);
    }
}

#[test]
fn a_frequent_string_is_compared_with_all_strings() {
    // Every hundredth string is the same; of more than 100,000 others not all are counted.
    let texts = |rows: usize| -> ArrayRef {
        let text = |row: usize| if row.is_multiple_of(50) { "same".to_owned() } else { format!("{row:07}") };
        Arc::new(StringArray::from_iter_values((0..rows).map(text)))
    };
    let fidelity = compared(vec![("t", texts(400_000))], vec![("t", texts(120_000))]);
    let [top_a, top_b] = fidelity.columns[0].top.unwrap();
    assert!((top_a - 0.02).abs() < 1e-9 && (top_b - 0.02).abs() < 1e-9, "{:?}", fidelity.columns);
    assert!(fidelity.columns[0].is_kept, "{:?}", fidelity.columns);
}

#[test]
fn a_reference_whose_column_is_missing_is_lost() {
    let parents = || vec![("id", numbers(Some))];
    let children = vec![("parent_id", numbers(|row| Some(scattered(row, 1, ROWS)))), ("n", numbers(Some))];
    let tables = vec![sample("parent", parents()), sample("child", children)];
    let tables = InferredTables::new(tables).unwrap();
    let generated = [sample("parent", parents()), sample("child", vec![("n", numbers(Some))])];
    let references = tables.compare(&generated);
    assert!(!references.is_empty() && references[0].source == 0.0, "{references:?}");
    assert_eq!(references[0].generated, 1.0, "{references:?}");
}
