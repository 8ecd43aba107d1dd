//! A comparison calls nothing kept that it did not compare.

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
fn what_has_no_values_is_not_kept_and_the_farthest_from_some() {
    let none = || -> Vec<(&str, ArrayRef)> {
        vec![
            ("n", Arc::new(Int64Array::from_iter_values([]))),
            ("s", Arc::new(StringArray::from_iter_values([""; 0]))),
        ]
    };
    let nothing = compared(none(), none());
    assert_eq!(nothing.kept.columns, [0, 2]);
    for column in ["n: no values", "s: no values"] {
        assert!(nothing.not_compared.iter().any(|found| found == column), "{:?}", nothing.not_compared);
    }
    let some = || vec![("n", numbers(|row| Some(row % 7))), ("s", texts(|row| format!("k{}", row % 7)))];
    for found in [compared(some(), none()), compared(none(), some())] {
        assert!(found.columns.iter().all(|column| column.distance == 1.0), "{:?}", found.columns);
    }
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
    for (rows, vague) in [(10, "1 pair"), (33, "2 pairs")] {
        let fidelity = compared(
            vec![("a", a()), ("copy", copy(ROWS)), ("other", other(ROWS))],
            vec![("a", a()), ("copy", copy(rows)), ("other", other(rows))],
        );
        assert_eq!(fidelity.kept.pairs[0], 0, "{rows}: {:?}", fidelity.pairs);
        assert_eq!(fidelity.kept.order, [1, 1], "{rows}: {:?}", fidelity.order);
        let pairs = fidelity.pairs.iter().all(|pair| pair.columns != ["a".to_owned(), "other".to_owned()]);
        assert!(pairs, "{rows}: {:?}", fidelity.pairs);
        let said = format!("{vague} of columns: too few rows with both");
        assert!(fidelity.not_compared.contains(&said), "{rows}: {:?}", fidelity.not_compared);
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

fn texts(value: impl Fn(usize) -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..ROWS).map(value)))
}

#[test]
fn a_tree_does_not_tell_codes_of_two_samples_but_categories_that_only_one_has() {
    let codes = |column| vec![("code", texts(move |row| format!("{:05}", scattered(row, column, 100_000))))];
    let auc = |generated| compared(codes(1), generated).tree.unwrap().auc;
    assert!((auc(codes(2)) - 0.5).abs() < 0.03, "{}", auc(codes(2)));
    // The same code in every third row.
    let frequent =
        texts(|row| format!("{:05}", if row.is_multiple_of(3) { 7 } else { scattered(row, 2, 100_000) }));
    assert!(auc(vec![("code", frequent)]) > 0.6);
}

#[test]
fn relations_between_other_values_are_lost_however_strong() {
    let group = |row: usize| scattered(row, 1, 3);
    let columns = |moved: usize| -> Vec<(&'static str, ArrayRef)> {
        let kind = texts(move |row| ["A", "B", "C"][(group(row) + moved) % 3].to_owned());
        vec![
            ("kind", kind),
            ("size", numbers(|row| Some(group(row) * 1000 + scattered(row, 2, 500)))),
            ("colour", texts(|row| ["x", "y", "z"][group(row)].to_owned())),
        ]
    };
    let fidelity = compared(columns(0), columns(0));
    assert_eq!((fidelity.kept.pairs, fidelity.relations[0].generated), ([3, 3], 1.0), "{fidelity:?}");
    let fidelity = compared(columns(0), columns(1));
    assert_eq!((fidelity.kept.columns, fidelity.kept.pairs), ([3, 3], [1, 3]), "{:?}", fidelity.pairs);
    assert_eq!(fidelity.relations[0].generated, 0.0, "{:?}", fidelity.relations);
    // Made-up names may replace any names of the source.
    let made_up = |row: usize| ["q", "r", "s"][group(row)].to_owned();
    let [kind, size, _]: [(&str, ArrayRef); 3] = columns(0).try_into().unwrap();
    let fidelity = compared(columns(0), vec![kind, size, ("colour", texts(made_up))]);
    assert_eq!((fidelity.kept.pairs, fidelity.relations[0].generated), ([3, 3], 1.0), "{fidelity:?}");
}

#[test]
fn columns_that_the_generated_data_lack_count_as_lost() {
    let columns = |names: &[&'static str]| {
        let column =
            |(i, name): (usize, &&'static str)| (*name, numbers(move |row| Some(scattered(row, i, 900))));
        names.iter().enumerate().map(column).collect::<Vec<_>>()
    };
    let fidelity = compared(columns(&["a", "b", "c", "d"]), columns(&["a", "b"]));
    assert_eq!((fidelity.kept.columns, fidelity.kept.pairs), ([2, 4], [1, 6]), "{:?}", fidelity.kept);
}

#[test]
fn the_order_of_more_than_the_row_before_is_compared() {
    // A wave of 20 rows, and codes that grow.
    let of = |wave: bool, column: usize| -> Vec<(&'static str, ArrayRef)> {
        let wave = move |row: usize| if wave { row % 20 } else { scattered(row, column, 20) };
        vec![
            ("wave", numbers(move |row| Some(if wave(row) < 10 { 0 } else { 1000 }))),
            (
                "code",
                texts(move |row| format!("{:06}", if column == 1 { row } else { scattered(row, 3, ROWS) })),
            ),
        ]
    };
    let lost = |fidelity: &Fidelity| -> Vec<String> {
        let lost = fidelity.order.iter().filter(|order| !order.measure.is_kept);
        lost.map(|order| format!("{}: {}", order.column, order.measure.measure)).collect()
    };
    assert_eq!(lost(&compared(of(true, 1), of(true, 1))), Vec::<String>::new());
    let fidelity = compared(of(true, 1), of(false, 2));
    let lost = lost(&fidelity);
    assert!(lost.contains(&"wave: rank correlation with the row 10 before".to_owned()), "{lost:?}");
    assert!(lost.contains(&"code: steps that do not fall".to_owned()), "{lost:?}");
    // Strings that neither repeat nor are sorted have no order to compare.
    let codes = |column| vec![("code", texts(move |row| format!("{:06}", scattered(row, column, 900_000))))];
    let fidelity = compared(codes(1), codes(2));
    assert_eq!(fidelity.kept.order, [0, 0], "{:?}", fidelity.order);
    assert!(fidelity.not_compared.iter().any(|said| said.starts_with("the order of 1 column:")));
}

#[test]
fn a_series_of_each_value_of_another_column_is_compared() {
    // Each of ten sensors, in a drawn order, has a level that only drifts.
    let level = |row: usize, sensor: usize| (100 * sensor * sensor % 1000) + row / 100;
    let sensor = |row: usize| scattered(row, 9, 10);
    let of = |is_kept: bool| {
        let value = move |row: usize| level(row, if is_kept { sensor(row) } else { scattered(row, 5, 10) });
        vec![
            ("sensor", texts(move |row| format!("s{}", sensor(row)))),
            ("level", numbers(move |row| Some(value(row)))),
        ]
    };
    let name = "rank correlation with the row before of the same sensor";
    for is_kept in [true, false] {
        let fidelity = compared(of(true), of(is_kept));
        let order = fidelity.order.iter().find(|order| order.measure.measure == name).unwrap();
        assert_eq!((order.column.as_str(), order.measure.is_kept), ("level", is_kept), "{order:?}");
    }
}

#[test]
fn two_columns_that_are_a_key_together_are_compared() {
    let of = |is_key: bool| {
        let second = move |row: usize| if is_key { row / 120 } else { scattered(row, 4, 100) };
        vec![("a", numbers(|row| Some(row % 120))), ("b", numbers(move |row| Some(second(row))))]
    };
    let kept = compared(of(true), of(true));
    assert_eq!((kept.kept.keys, kept.keys[0].column.as_str()), ([1, 1], "a, b"), "{:?}", kept.keys);
    let lost = compared(of(true), of(false));
    assert!(lost.kept.keys == [0, 1] && lost.keys[0].repeated > 1000, "{:?}", lost.keys);
}

/// Columns of these many rows.
fn rows_of(rows: usize, value: impl Fn(usize) -> usize) -> ArrayRef {
    Arc::new((0..rows).map(|row| value(row) as i64).collect::<Int64Array>())
}

#[test]
fn an_order_that_is_not_compared_is_named() {
    let of = |rows: usize| {
        let sensor = rows_of(rows, |row| scattered(row, 9, 10));
        vec![("sensor", sensor), ("level", rows_of(rows, |row| scattered(row, 9, 10) * 100 + row / 500))]
    };
    let said = "the order of the rows of each category: only some rows are compared";
    for rows in [30_000, 40_000] {
        let fidelity = compared(of(30_000), of(rows));
        let is_said = fidelity.not_compared.iter().any(|of| of == said);
        assert_eq!(is_said, rows == 40_000, "{:?}", fidelity.not_compared);
    }
    let fidelity = compared(of(150), of(150));
    let said = "the order of rows 100 apart: too few of them";
    assert!(fidelity.not_compared.iter().any(|of| of == said), "{:?}", fidelity.not_compared);
}

#[test]
fn independent_columns_lose_no_order() {
    const NAMES: [&str; 24] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t",
        "u", "v", "w", "x",
    ];
    let of = |first: usize| {
        let column = |(i, name): (usize, &&'static str)| {
            (*name, rows_of(1000, |row| scattered(row, first + i, if i < 12 { 2 + i % 5 } else { 900 })))
        };
        NAMES.iter().enumerate().map(column).collect::<Vec<_>>()
    };
    let fidelity = compared(of(0), of(24));
    assert_eq!(fidelity.kept.order, [24, 24], "{:?}", fidelity.order);
}

#[test]
fn a_sorted_column_that_starts_again_after_the_rows_of_its_source_is_kept() {
    let of = |rows: usize| vec![("at", rows_of(rows, |row| row % 300 * 1000 + scattered(row % 300, 1, 900)))];
    let kept = compared(of(300), of(600));
    assert!(kept.order.len() == 5 && kept.kept.order == [1, 1], "{:?}", kept.order);
    let lost = compared(of(200), of(600));
    assert_eq!(lost.kept.order, [0, 1], "{:?}", lost.order);
}

#[test]
fn all_pairs_count_and_each_combination_of_categories_once() {
    let names: Vec<String> = (0..310).map(|i| format!("c{i}")).collect();
    let columns = || names.iter().map(|name| (name.as_str(), rows_of(10, |row| row))).collect();
    let fidelity = compared(columns(), columns());
    assert_eq!((fidelity.kept.columns, fidelity.kept.pairs), ([310, 310], [0, 47_895]));
    let kinds = |column: usize| texts(move |row| ["x", "y", "z"][scattered(row, column, 3)].to_owned());
    let columns = || vec![("a", kinds(1)), ("b", kinds(2))];
    let fidelity = compared(columns(), columns());
    let combinations = fidelity.pairs[0].measures.iter().filter(|of| of.measure.starts_with("same comb"));
    assert_eq!(combinations.count(), 1, "{:?}", fidelity.pairs);
}
