//! Keys without a duplicate stay such, and so does the order of rows: in specs, and in specs learned from data.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use sawmill_generator::{Dataset, InferredSpec};

fn made(dataset: &Dataset, rows: u64) -> RecordBatch {
    dataset.batches(0..rows, 7, rows as usize).next().unwrap().unwrap()
}

fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    batch[column].as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect()
}

fn wholes(batch: &RecordBatch, column: &str) -> Vec<i64> {
    batch[column].as_primitive::<Int64Type>().values().to_vec()
}

fn reals(batch: &RecordBatch, column: &str) -> Vec<f64> {
    batch[column].as_primitive::<Float64Type>().values().to_vec()
}

/// A number below `n`.
fn scattered(row: usize, column: usize, n: usize) -> usize {
    let mixed = ((row * 64 + column + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize % n
}

/// The spec learned from all rows, and as many generated ones.
fn like(columns: Vec<(&str, ArrayRef)>) -> (String, RecordBatch) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut inferred = InferredSpec::new("like", &batch.schema(), &[]).unwrap();
    inferred.set_rows(batch.num_rows() as u64);
    inferred.add(&batch).unwrap();
    let spec = inferred.to_toml().unwrap();
    let dataset = Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    let made = made(&dataset, batch.num_rows() as u64);
    (spec, made)
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (x, y) = (mean(a), mean(b));
    let product = |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| f(a - x, b - y)).sum::<f64>();
    product(&|a, b| a * b) / (product(&|a, _| a * a) * product(&|_, b| b * b)).sqrt()
}

fn with_the_row_before(values: &[f64]) -> f64 {
    with_a_row_before(values, 1)
}

fn with_a_row_before(values: &[f64], lag: usize) -> f64 {
    correlation(&values[lag..], &values[..values.len() - lag])
}

#[test]
fn codes_without_a_duplicate_stay_such_and_keep_their_shapes() {
    let code = |i: usize| match i % 3 {
        0 => format!("N{:03}{}{}", i, (b'A' + (i % 26) as u8) as char, (b'A' + (i / 26 % 26) as u8) as char),
        _ => format!("D{:04}", i * 7 % 10_000),
    };
    let codes: Vec<String> = (0..999).map(code).collect();
    let (spec, made) = like(vec![("code", Arc::new(StringArray::from_iter_values(&codes)))]);
    let found = texts(&made, "code");
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), 999, "{spec}");
    let shape = |code: &String| (code.len(), code.starts_with('N'));
    let shapes = |codes: &[String]| {
        let mut shapes: Vec<_> = codes.iter().map(shape).collect();
        shapes.sort_unstable();
        shapes
    };
    assert_eq!(shapes(&found), shapes(&codes));
}

#[test]
fn a_reference_has_the_strings_of_a_unique_pattern() {
    let spec = "name = \"air\"\n\
        [[tables]]\nname = \"planes\"\nrows = 300\nfields = [{ name = \"tail\", type = \"string\", values.pattern.unique = { \"N[0-9]{3}[A-Z]\" = 300 } }]\n\
        [[tables]]\nname = \"flights\"\nrows = 5000\nfields = [{ name = \"tail\", type = \"string\", values.ref = { to = \"planes.tail\", s = 0.5 } }]\n";
    let table = |name: &str, rows| made(&Dataset::table_from_toml(spec, name, None).unwrap(), rows);
    let keys: HashSet<String> = texts(&table("planes", 300), "tail").into_iter().collect();
    let referred: HashSet<String> = texts(&table("flights", 5000), "tail").into_iter().collect();
    assert_eq!(keys.len(), 300);
    assert!(referred.is_subset(&keys) && referred.len() > 250, "{}", referred.len());
}

#[test]
fn a_scale_leaves_fixed_tables_alone_and_takes_the_root_for_others() {
    let table = |name: &str, scale: &str| {
        format!(
            "[[tables]]\nname = \"{name}\"\nrows = 400\n{scale}fields = [{{ name = \"id\", type = \"int64\", values.sequence = {{}} }}]\n"
        )
    };
    let spec = |last: &str| {
        let kinds = [("a", ""), ("b", "scale = \"linear\"\n"), ("c", "scale = \"sqrt\"\n"), ("d", last)];
        "name = \"s\"\n".to_owned() + &kinds.map(|(name, scale)| table(name, scale)).concat()
    };
    let rows = |name: &str| {
        let dataset = Dataset::table_from_toml(&spec("scale = \"fixed\"\n"), name, Some(100.0)).unwrap();
        dataset.rows().unwrap()
    };
    assert_eq!(["a", "b", "c", "d"].map(rows), [40_000, 40_000, 4000, 400]);
    let error = Dataset::table_from_toml(&spec("scale = 2\n"), "d", None).unwrap_err().to_string();
    assert!(error.contains("`scale = 2`") && error.contains("linear, sqrt, fixed"), "{error}");
}

#[test]
fn a_cycle_has_its_values_in_order_and_others_depend_on_it() {
    let spec = "name = \"c\"\nrows = 6000\nfields = [\n\
        { name = \"month\", type = \"int64\", values.cycle = { values = [3, 1, 2, 1], each = 5 } },\n\
        { name = \"sold\", type = \"double\", values.quantiles = { values = [0, 1] } },\n]\n\
        copula = [{ field = \"month\" }, { field = \"sold\", with = [0.9] }]\n";
    let made = made(&Dataset::from_toml(spec).unwrap(), 6000);
    let month = wholes(&made, "month");
    assert!(month.iter().enumerate().all(|(row, month)| *month == [3, 1, 2, 1][row / 5 % 4]));
    let month: Vec<f64> = month.into_iter().map(|v| v as f64).collect();
    assert!(correlation(&month, &reals(&made, "sold")) > 0.75);
    let wrong =
        spec.replace("{ field = \"month\" }", "{ field = \"sold\" }, { field = \"month\", with = [0.5] }");
    let wrong = wrong.replace(", { field = \"sold\", with = [0.9] }", "");
    let error = Dataset::from_toml(&wrong).unwrap_err().to_string();
    assert!(error.contains("a field with a cycle"), "{error}");
}

#[test]
fn a_panel_keeps_its_pairs_of_keys_and_its_series() {
    let (cities, months) = (40, 120);
    let city = |row: usize| format!("City {:02}", row / months);
    let date = |row: usize| 20_000 + (row % months * 30) as i64;
    // A walk within each city.
    let mut sales = Vec::new();
    for row in 0..cities * months {
        let before = if row % months == 0 { (row / months * 50) as f64 } else { sales[row - 1] };
        sales.push(before * 0.98 + scattered(row, 1, 1000) as f64 / 100.0);
    }
    let source = sales.clone();
    let (spec, made) = like(vec![
        ("city", Arc::new(StringArray::from_iter_values((0..cities * months).map(city)))),
        ("date", Arc::new(Int64Array::from_iter_values((0..cities * months).map(date)))),
        ("sales", Arc::new(Float64Array::from(sales))),
    ]);
    let (city, date) = (texts(&made, "city"), wholes(&made, "date"));
    let pairs: HashSet<(&String, &i64)> = city.iter().zip(&date).collect();
    assert_eq!(pairs.len(), cities * months, "{spec}");
    let (found, wanted) = (with_the_row_before(&reals(&made, "sales")), with_the_row_before(&source));
    assert!((found - wanted).abs() < 0.05, "{found} {wanted}");
}

#[test]
fn rows_that_are_like_the_one_before_stay_so_and_pairs_of_columns_stay_independent() {
    let follow = |column: usize| {
        let mut value = 0.0;
        let step = |row: usize| {
            value = 0.99 * value + scattered(row, column, 2001) as f64 / 1000.0 - 1.0;
            value
        };
        (0..8000).map(step).collect::<Vec<f64>>()
    };
    let (a, b) = (follow(0), follow(1));
    let source = [with_the_row_before(&a), with_the_row_before(&b), correlation(&a, &b)];
    let (spec, made) =
        like(vec![("a", Arc::new(Float64Array::from(a))), ("b", Arc::new(Float64Array::from(b)))]);
    let (a, b) = (reals(&made, "a"), reals(&made, "b"));
    let found = [with_the_row_before(&a), with_the_row_before(&b), correlation(&a, &b)];
    for (found, source) in found.iter().zip(source) {
        assert!((found - source).abs() < 0.06, "{found} {source}\n{spec}");
    }
}

#[test]
fn rows_of_sensors_that_take_turns_are_like_the_one_before_of_the_same_sensor() {
    let mut levels = [0.0; 12];
    let mut level = |row: usize| {
        let level = &mut levels[row % 12];
        *level = 0.95 * *level + scattered(row, 0, 2001) as f64 / 1000.0 - 1.0;
        *level
    };
    let source: Vec<f64> = (0..9600).map(&mut level).collect();
    let sensors: Vec<String> = (0..9600).map(|row| format!("s{}", row * 5 % 12)).collect();
    let (spec, made) = like(vec![
        ("sensor", Arc::new(StringArray::from_iter_values(&sensors))),
        ("level", Arc::new(Float64Array::from(source.clone()))),
    ]);
    assert_eq!(texts(&made, "sensor"), sensors, "{spec}");
    let levels = reals(&made, "level");
    for lag in [1, 11, 12] {
        let (found, wanted) = (with_a_row_before(&levels, lag), with_a_row_before(&source, lag));
        assert!((found - wanted).abs() < 0.06, "{lag}: {found} {wanted}\n{spec}");
    }
}

#[test]
fn columns_that_say_nearly_all_of_one_another_keep_all_pairs() {
    let who = |row: usize| ["man", "woman", "child"][scattered(row, 0, 3)];
    let male = |row: usize| i64::from(who(row) == "man");
    let size = |row: usize| scattered(row, 1, 40) as f64 + 60.0 * male(row) as f64;
    let near = |row: usize, column: usize| size(row) + scattered(row, column, 100) as f64 / 500.0;
    let rows = 0..3000usize;
    let columns = |column: usize| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.clone().map(|row| near(row, column))))
    };
    let (spec, made) = like(vec![
        ("who", Arc::new(StringArray::from_iter_values(rows.clone().map(who)))),
        ("x", columns(2)),
        ("y", columns(3)),
        ("z", columns(4)),
        (
            "male",
            Arc::new(Int64Array::from_iter_values(
                rows.clone().map(|row| male(row) + scattered(row, 5, 50) as i64 / 49),
            )),
        ),
    ]);
    for pair in [["x", "y"], ["x", "z"], ["y", "z"]] {
        let found = correlation(&reals(&made, pair[0]), &reals(&made, pair[1]));
        assert!(found > 0.98, "{pair:?} {found}\n{spec}");
    }
    let men = texts(&made, "who").into_iter().zip(reals(&made, "x")).filter(|(who, _)| who == "man");
    let tall = men.map(|(_, x)| f64::from(u8::from(x > 50.0))).collect::<Vec<f64>>();
    assert!(tall.iter().sum::<f64>() / tall.len() as f64 > 0.9, "{spec}");
}
