//! What `gen fidelity` says of relations between columns, of order and of keys that generated data lost.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int8Array, Int64Array, RecordBatch, StringArray, new_null_array,
};
use arrow_schema::DataType;
use sawmill_generator::{Fidelity, InferredSpec, MeasureFidelity};

use crate::harness::sawmill;

const ROWS: usize = 20_000;

/// A number below `n` for each row and column.
fn scattered(row: usize, column: usize, n: usize) -> usize {
    let mixed = ((row * 64 + column + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize % n
}

fn sample(columns: Vec<(&str, ArrayRef)>) -> InferredSpec {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    );
    let batch = batch.unwrap();
    let mut sample = InferredSpec::new("sample", &batch.schema(), &[]).unwrap();
    sample.add(&batch).unwrap();
    sample
}

/// Columns that say something about one another; in broken ones each column takes other rows.
fn related(broken: usize) -> Vec<(&'static str, ArrayRef)> {
    let whole = |value: &dyn Fn(usize) -> Option<usize>| -> ArrayRef {
        Arc::new((0..ROWS).map(|row| value(row).map(|v| v as i64)).collect::<Int64Array>())
    };
    let planned = |row: usize| 300 + scattered(row, 0, 2100);
    let left = |row: usize| (scattered(row, 1, 100) > 3).then(|| planned(row) + scattered(row, 2, 60));
    let kind = |row: usize| scattered(row, 3, 3);
    let bill = |row: usize| kind(row) * 20 + scattered(row, 4, 3);
    let kinds = |row: usize| ["Adelie", "Gentoo", "Chinstrap"][kind(row)];
    vec![
        ("left", whole(&left)),
        ("planned", whole(&|row| Some(planned(row + broken)))),
        ("kind", Arc::new(StringArray::from_iter_values((0..ROWS).map(kinds)))),
        ("bill", whole(&|row| Some(bill(row + 2 * broken)))),
        ("copy", whole(&|row| Some(planned(row)))),
    ]
}

fn measure<'a>(fidelity: &'a Fidelity, columns: [&str; 2], measure: &str) -> &'a MeasureFidelity {
    let pair = fidelity.pairs.iter().find(|pair| pair.columns == columns).unwrap();
    pair.measures.iter().find(|of| of.measure == measure).unwrap_or_else(|| panic!("{pair:?}"))
}

#[test]
fn pairs_of_the_same_rows_are_kept_and_a_tree_does_not_tell_them() {
    let (source, same) = (sample(related(0)), sample(related(0)));
    let kept = source.compare(&same).kept;
    assert_eq!((kept.columns, kept.pairs, kept.order), ([5, 5], [10, 10], [5, 5]));
}

#[test]
fn lost_relations_are_named_the_worst_first_with_both_figures() {
    let fidelity = sample(related(0)).compare(&sample(related(7)));
    assert_eq!(fidelity.kept.columns, [5, 5], "{:?}", fidelity.columns);
    for (columns, name) in [
        (["left", "planned"], "rank correlation"),
        (["kind", "bill"], "correlation ratio of bill by kind"),
        (["planned", "copy"], "same value"),
    ] {
        let lost = measure(&fidelity, columns, name);
        assert!(lost.source > 0.9 && lost.generated < 0.1 && !lost.is_kept, "{lost:?}");
    }
    let lost: Vec<bool> = fidelity.pairs.iter().map(|pair| pair.is_kept).collect();
    assert!(lost.is_sorted() && fidelity.kept.pairs == [7, 10], "{:?}", fidelity.kept);
    let tree = fidelity.tree.unwrap();
    assert!(tree.auc > 0.8, "{tree:?}");
}

#[test]
fn nulls_order_keys_and_types_that_are_odd_are_compared() {
    let columns = |moved: usize| -> Vec<(&'static str, ArrayRef)> {
        let is_there = |row: usize| scattered(row, 9, 2) == 0;
        let value = |row: usize| is_there(row).then_some(row as f64);
        let codes = Int8Array::from_iter((0..ROWS).map(|row| (row % 5 > 0).then_some((row % 3) as i8)));
        let reals: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(-0.0), None]));
        let text =
            |row: usize| (scattered(row, 8, 4) > 0).then(|| format!("{}-{moved}", scattered(row, 7, ROWS)));
        let id = |row: usize| format!("N{}", if moved > 0 && row == 9 { 8 } else { row });
        vec![
            ("a", Arc::new(Float64Array::from_iter((0..ROWS).map(value)))),
            ("b", Arc::new(Float64Array::from_iter((0..ROWS).map(|row| value((row + moved) % ROWS))))),
            ("dictionary", Arc::new(DictionaryArray::<Int8Type>::new(codes, reals))),
            ("text", Arc::new(StringArray::from_iter((0..ROWS).map(text)))),
            ("id", Arc::new(StringArray::from_iter_values((0..ROWS).map(id)))),
            (
                "at",
                Arc::new(Int64Array::from_iter_values(
                    (0..ROWS).map(|row| (if moved > 0 { scattered(row, 5, ROWS) } else { row }) as i64),
                )),
            ),
            ("none", new_null_array(&DataType::Float64, ROWS)),
        ]
    };
    let fidelity = sample(columns(0)).compare(&sample(columns(3001)));
    let nulls = measure(&fidelity, ["a", "b"], "correlation of nulls");
    assert!(nulls.source == 1.0 && nulls.generated.abs() < 0.1 && !nulls.is_kept, "{nulls:?}");
    let id = fidelity.keys.iter().find(|key| key.column == "id").unwrap();
    assert_eq!((id.repeated, fidelity.kept.keys[0] < fidelity.kept.keys[1]), (1, true));
    let at = fidelity.order.iter().find(|order| order.column == "at").unwrap();
    assert!(at.measure.source > 0.99 && at.measure.generated < 0.9 && !at.measure.is_kept, "{at:?}");
    let said = "text with other columns: too many different values";
    assert!(fidelity.not_compared.iter().any(|of| of == said), "{:?}", fidelity.not_compared);
    assert!(fidelity.pairs.iter().all(|pair| !pair.columns.contains(&"text".to_owned())));
}

#[test]
fn the_summary_of_like_counts_the_pairs_and_names_the_lost_ones() {
    use parquet::arrow::ArrowWriter;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let columns = related(0).into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = std::fs::File::create(path("source.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let made = sawmill(["gen", "--like", &path("source.parquet"), "--out", &path("like.parquet")]).ok();
    let compared = sawmill(["gen", "fidelity", &path("source.parquet"), &path("like.parquet")]).ok();
    let json = sawmill(["gen", "fidelity", &path("source.parquet"), &path("like.parquet"), "--json"]);
    let json = json.ok().json();
    let [kept, all] = [0, 1].map(|i| json["kept"]["pairs"][i].as_u64().unwrap());
    assert_eq!(all, 10, "{json}");
    for said in [&made.err, &compared.out] {
        assert!(said.contains("5 of 5 columns, "), "{said}");
        assert!(said.contains("how well a tree tells real rows from generated: 0."), "{said}");
    }
    assert!(compared.out.contains(&format!("{kept} of {all} pairs")), "{}", compared.out);
    for pair in json["pairs"].as_array().unwrap().iter().filter(|pair| pair["is_kept"] == false) {
        let name =
            format!("{}, {}", pair["columns"][0].as_str().unwrap(), pair["columns"][1].as_str().unwrap());
        assert!(compared.out.contains(&name), "{name}: {}", compared.out);
    }
    // The summary is of the rows that are written.
    let (source, path) = (path("source.parquet"), path("more.parquet"));
    let options = ["--rows", "9000", "--seed", "7", "--out", &path];
    let made = sawmill([&["gen", "--like", &source][..], &options[..]].concat()).ok();
    let compared = sawmill(["gen", "fidelity", &source, &path]).ok();
    let verdict: Vec<&str> = compared.out.lines().take(5).collect();
    for line in verdict {
        assert!(made.err.contains(line), "{line}\n{}", made.err);
    }
}
