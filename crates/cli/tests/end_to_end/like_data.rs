//! Data generated from an inferred spec is like the data of its sample: each test is a property of real
//! files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, IntervalUnit, Schema};
use sawmill_generator::{Dataset, InferredSpec, Verbatim};

const ROWS: u64 = 50_000;

/// Random numbers from 0 to below 1.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A draw of the standard normal distribution.
fn normal(random: &mut impl FnMut() -> f64) -> f64 {
    (0..12).map(|_| random()).sum::<f64>() - 6.0
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn inferred(batch: &RecordBatch, verbatim: Verbatim) -> InferredSpec {
    let mut inferred = InferredSpec::new("like", &batch.schema(), &[]).unwrap().with_verbatim(verbatim);
    inferred.set_rows(batch.num_rows() as u64);
    inferred.add(batch).unwrap();
    inferred
}

/// The spec of `batch` and as many rows from it.
fn like(batch: &RecordBatch) -> (String, RecordBatch) {
    let spec = inferred(batch, Verbatim::Categories).to_toml().unwrap();
    let dataset = Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    assert_eq!(dataset.rows(), Some(batch.num_rows() as u64));
    let rows = dataset.batches(0..ROWS, 42, ROWS as usize).next().unwrap().unwrap();
    (spec, rows)
}

/// The spec of one column, and its values in the sample and in generated data.
fn column(array: ArrayRef) -> (String, ArrayRef, ArrayRef) {
    let (spec, rows) = like(&batch(vec![("c", array.clone())]));
    (spec, array, rows.column(0).clone())
}

fn reals(array: &ArrayRef) -> Vec<f64> {
    let indices = || (0..array.len()).filter(|i| array.is_valid(*i));
    macro_rules! of {
        ($type:ty) => {{
            let array = array.as_primitive::<$type>();
            indices().map(|i| array.value(i) as f64).collect()
        }};
    }
    match array.data_type() {
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::Float64 => of!(Float64Type),
        DataType::Date32 => of!(Date32Type),
        DataType::Decimal128(..) => of!(Decimal128Type),
        _ => of!(TimestampMicrosecondType),
    }
}

/// The Kolmogorov-Smirnov distance.
fn ks(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_by(f64::total_cmp);
        v
    };
    let (a, b) = (sorted(a), sorted(b));
    let below = |v: &[f64], x: f64| v.partition_point(|y| *y <= x) as f64 / v.len() as f64;
    a.iter().chain(&b).map(|x| (below(&a, *x) - below(&b, *x)).abs()).fold(0.0, f64::max)
}

/// The total variation distance.
fn tv(a: &[f64], b: &[f64]) -> f64 {
    let mut shares: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    a.iter().for_each(|v| shares.entry(v.to_bits()).or_default().0 += 1.0 / a.len() as f64);
    b.iter().for_each(|v| shares.entry(v.to_bits()).or_default().1 += 1.0 / b.len() as f64);
    shares.values().map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

fn share(values: &[f64], test: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|v| test(**v)).count() as f64 / values.len() as f64
}

#[test]
fn location_ids_come_back_with_their_weights() {
    let mut random = random(1);
    let id = |r: f64| 3 + ((r * r * r * 226.0) as i32) * 7 % 226 * 5;
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS).map(|_| id(random()))));
    let (spec, a, b) = column(array);
    let (a, b) = (reals(&a), reals(&b));
    assert!(spec.contains("weights") && tv(&a, &b) < 0.04, "{} {spec}", tv(&a, &b));
    let ids = |v: &[f64]| v.iter().map(|v| *v as i32).collect::<std::collections::BTreeSet<_>>();
    assert!(ids(&b).is_subset(&ids(&a)));
}

#[test]
fn a_tax_of_three_values_and_tolls_of_two_keep_exactly_these() {
    let mut random = random(2);
    for values in [[0.5, 0.0, -0.5], [6.94, 0.0, 0.0]] {
        let pick = |r: f64| if r < 0.93 { values[0] } else { values[if r < 0.99 { 1 } else { 2 }] };
        let array: ArrayRef = Arc::new(Float64Array::from_iter_values((0..ROWS).map(|_| pick(random()))));
        let (_, a, b) = column(array);
        assert!(tv(&reals(&a), &reals(&b)) < 0.01);
    }
}

#[test]
fn negative_fares_keep_their_share_and_cents_stay_whole() {
    let mut random = random(3);
    let array: ArrayRef = Arc::new(Float64Array::from_iter_values((0..ROWS).map(|_| {
        let fare = (2000.0 * (0.9 * normal(&mut random)).exp()).round() / 100.0 + 2.5;
        if random() < 0.013 { -fare } else { fare }
    })));
    let (_, a, b) = column(array);
    let (a, b) = (reals(&a), reals(&b));
    assert!((share(&a, |v| v < 0.0) - share(&b, |v| v < 0.0)).abs() < 0.002);
    assert!(ks(&a, &b) < 0.02, "{}", ks(&a, &b));
    assert_eq!(share(&b, |v| (v * 100.0).round() / 100.0 == v), 1.0);
}

#[test]
fn counts_and_normal_integers_are_recognised() {
    let counts = "name = \"d\"\n[[fields]]\nname = \"c\"\ntype = \"int32\"\nvalues = { poisson = { mean = 200 } }\n\
                  [[fields]]\nname = \"n\"\ntype = \"int64\"\nvalues = { normal = { mean = 100000, stddev = 15000 } }\n";
    let source = Dataset::from_toml(counts).unwrap();
    let rows = source.batches(0..ROWS, 7, ROWS as usize).next().unwrap().unwrap();
    let (spec, again) = like(&rows);
    assert!(spec.contains("poisson = { mean = 200.") || spec.contains("poisson = { mean = 199."), "{spec}");
    assert!(spec.contains("normal = { mean = 100") || spec.contains("normal = { mean = 99"), "{spec}");
    for i in 0..2 {
        assert!(ks(&reals(rows.column(i)), &reals(again.column(i))) < 0.02);
    }
}

#[test]
fn lognormal_decimals_are_lognormal_with_two_digits() {
    let mut random = random(5);
    let array = Decimal128Array::from_iter_values(
        (0..ROWS).map(|_| (5000.0 * normal(&mut random).exp()).round() as i128),
    );
    let array: ArrayRef = Arc::new(array.with_precision_and_scale(18, 2).unwrap());
    let (_, a, b) = column(array);
    assert!(ks(&reals(&a), &reals(&b)) < 0.02);
}

#[test]
fn a_distribution_without_a_name_is_drawn_by_its_quantiles_with_its_atoms() {
    let mut random = random(6);
    let at = |random: &mut dyn FnMut() -> f64| match random() {
        r if r < 0.2 => 0.0,
        r if r < 0.6 => 1e6 * random(),
        _ => 5e6 + 1e5 * random(),
    };
    let whole = Int64Array::from_iter_values((0..ROWS).map(|_| at(&mut random) as i64));
    let real = Float64Array::from_iter_values((0..ROWS).map(|_| at(&mut random)));
    let seconds = TimestampMicrosecondArray::from_iter_values(
        (0..ROWS).map(|_| 1_700_000_000_000_000 + (at(&mut random) as i64) * 1_000_000),
    );
    for array in [Arc::new(whole) as ArrayRef, Arc::new(real), Arc::new(seconds)] {
        let (spec, a, b) = column(array);
        let (a, b) = (reals(&a), reals(&b));
        assert!(spec.contains("quantiles") && ks(&a, &b) < 0.015, "{} {spec}", ks(&a, &b));
        let low = a.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((share(&b, |v| v == low) - 0.2).abs() < 0.01);
        if matches!(b.first(), Some(v) if *v > 1e15) {
            assert_eq!(share(&b, |v| v % 1e6 == 0.0), 1.0);
        }
    }
}

#[test]
fn dates_of_few_years_keep_their_days() {
    let mut random = random(7);
    let array: ArrayRef = Arc::new(Date32Array::from_iter_values(
        (0..ROWS).map(|_| 19_000 + (700.0 * random() * random()) as i32),
    ));
    let (_, a, b) = column(array);
    assert!(ks(&reals(&a), &reals(&b)) < 0.015);
}

#[test]
fn comments_keep_their_lengths_but_not_their_words() {
    let mut random = random(8);
    let comment = |random: &mut dyn FnMut() -> f64| {
        let length = (60.0 + 12.0 * ((0..12).map(|_| random()).sum::<f64>() - 6.0)).max(5.0) as usize;
        let text: String = (0..20).map(|_| format!("private{} ", (random() * 1e5) as u32)).collect();
        text[..length].replace(|c: char| c.is_ascii_digit(), "x")
    };
    let array: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| comment(&mut random))));
    let (spec, a, b) = column(array);
    let lengths = |array: &ArrayRef| -> Vec<f64> {
        array.as_string::<i32>().iter().flatten().map(|text| text.chars().count() as f64).collect()
    };
    assert!(ks(&lengths(&a), &lengths(&b)) < 0.02, "{spec}");
    assert!(!b.as_string::<i32>().iter().flatten().any(|text| text.contains("private")));
    assert!(!spec.contains("private"));
}

#[test]
fn not_a_number_and_infinity_are_kept_and_what_no_spec_has_is_left_out_with_a_reason() {
    let mut random = random(9);
    let array = Float64Array::from_iter_values((0..ROWS).map(|i| match i % 50 {
        0 => f64::NAN,
        1 => f64::INFINITY,
        _ => random() * random() * 3.0,
    }));
    let (spec, _, b) = column(Arc::new(array));
    let b = reals(&b);
    assert!((share(&b, f64::is_nan) - 0.02).abs() < 0.003, "{spec}");
    assert!((share(&b, |v| v == f64::INFINITY) - 0.02).abs() < 0.003, "{spec}");

    let long = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1); 5000]), Some(vec![])]);
    let interval = arrow_array::new_null_array(&DataType::Interval(IntervalUnit::MonthDayNano), 2);
    let two: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let rows = batch(vec![
        ("long", Arc::new(long)),
        ("span", interval),
        ("a.b", two.clone()),
        ("kept", two.clone()),
        ("secret", two),
    ]);
    let mut inferred = InferredSpec::new("x", &rows.schema(), &["secret".to_owned()]).unwrap();
    inferred.add(&rows).unwrap();
    let left_out = inferred.left_out();
    let reasons: Vec<(&str, &str)> =
        left_out.iter().map(|out| (out.column.as_str(), out.reason.as_str())).collect();
    let expected = [("long", "4096"), ("span", "Interval"), ("a.b", "dot"), ("secret", "excluded")];
    assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
    for ((column, reason), (name, part)) in reasons.iter().zip(expected) {
        assert!(*column == name && reason.contains(part), "{reasons:?}");
    }
    let spec = inferred.to_toml().unwrap();
    assert!(spec.contains("# Left out: \"long\"") && spec.contains("name = \"kept\""), "{spec}");
    Dataset::from_toml(&spec).unwrap();
    let unknown = InferredSpec::new("x", &rows.schema(), &["no".to_owned()]).unwrap_err();
    assert!(unknown.to_string().contains("\"no\""), "{unknown}");
    let empty = Schema::new(vec![arrow_schema::Field::new("a.b", DataType::Int32, true)]);
    assert!(InferredSpec::new("x", &empty, &[]).unwrap_err().to_string().contains("a.b"));
}

#[test]
fn strings_are_copied_only_as_far_as_asked() {
    let values = |i: u64| {
        if i % 5000 == 9 { format!("Jane Doe {i}") } else { ["card", "cash"][i as usize % 2].into() }
    };
    let array: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(values)));
    let rows = batch(vec![("c", array)]);
    let spec = |verbatim| inferred(&rows, verbatim).to_toml().unwrap();
    let usual = spec(Verbatim::Categories);
    assert!(usual.contains("\"card\"") && !usual.contains("Jane"), "{usual}");
    let never = spec(Verbatim::Never);
    assert!(!never.contains("card") && never.contains("weights"), "{never}");
    assert!(spec(Verbatim::Always).contains("Jane"));
}

#[test]
fn footers_give_the_bounds_and_nulls_that_a_sample_misses() {
    let mut random = random(10);
    let array: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..ROWS).map(|_| random() * random() * 100.0)));
    let rows = batch(vec![("c", array)]);
    let mut inferred = InferredSpec::new("x", &rows.schema(), &[]).unwrap();
    inferred.set_rows(100 * ROWS);
    let bound = |v: f64| Arc::new(Float64Array::from(vec![Some(v), None])) as ArrayRef;
    inferred.set_footer(0, Some((ROWS, 100 * ROWS)), &[bound(-3.0), bound(1e9)]).unwrap();
    inferred.add(&rows).unwrap();
    let spec = inferred.to_toml().unwrap();
    assert!(
        spec.contains("nulls = 0.01") && spec.contains("[-3.0,") && spec.contains("1000000000.0]"),
        "{spec}"
    );
    let dataset = Dataset::from_toml(&spec).unwrap();
    let rows = dataset.batches(0..ROWS, 1, ROWS as usize).next().unwrap().unwrap();
    // As rare as one value in all.
    assert!(share(&reals(rows.column(0)), |v| !(0.0..=100.0).contains(&v)) < 1e-4);
}

#[test]
fn the_rows_of_generated_data_do_not_depend_on_how_they_are_asked_for() {
    let mut random = random(11);
    let array: ArrayRef = Arc::new(Float64Array::from_iter_values((0..ROWS).map(|_| random().powi(7))));
    let (spec, rows) = like(&batch(vec![("c", array)]));
    let dataset = Dataset::from_toml(&spec).unwrap();
    let part = dataset.batches(1500..2600, 42, 700).map(Result::unwrap).collect::<Vec<_>>();
    let part: Vec<f64> = part.iter().flat_map(|batch| reals(batch.column(0))).collect();
    assert_eq!(part, reals(rows.column(0))[1500..2600]);
}

/// Trips with a duration, nulls that come together and totals that add up for 95.6 % of them.
fn trips() -> RecordBatch {
    let mut random = random(12);
    let (mut start, mut end, mut people, mut flag) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut fare, mut tip, mut toll, mut total) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let at = 1_704_067_200_000_000 + (2_592_000.0 * random()) as i64 * 1_000_000;
        start.push(at);
        end.push(at + (700.0 * (0.7 * normal(&mut random)).exp()) as i64 * 1_000_000);
        let unknown = random() < 0.047;
        people.push((!unknown).then_some((1.0 + 6.0 * random()).floor()));
        flag.push((!unknown).then_some(if random() < 0.99 { "N" } else { "Y" }));
        let cents = |v: f64| (v * 100.0).round() / 100.0;
        let parts = [cents(20.0 * (0.6 * normal(&mut random)).exp()), cents(8.0 * random()), 6.94];
        let toll_paid = if random() < 0.07 { parts[2] } else { 0.0 };
        let off = if random() < 0.044 { cents(5.0 * random()) } else { 0.0 };
        fare.push(parts[0]);
        tip.push(parts[1]);
        toll.push(toll_paid);
        total.push(cents(parts[0] + parts[1] + toll_paid + 1.0 + off));
    }
    batch(vec![
        ("start", Arc::new(TimestampMicrosecondArray::from(start))),
        ("end", Arc::new(TimestampMicrosecondArray::from(end))),
        ("people", Arc::new(Float64Array::from(people))),
        ("flag", Arc::new(StringArray::from(flag))),
        ("fare", Arc::new(Float64Array::from(fare))),
        ("tip", Arc::new(Float64Array::from(tip))),
        ("toll", Arc::new(Float64Array::from(toll))),
        ("total", Arc::new(Float64Array::from(total))),
    ])
}

#[test]
fn trips_end_after_they_start_and_last_as_long() {
    let trips = trips();
    let (_, rows) = like(&trips);
    let lasting = |rows: &RecordBatch| -> Vec<f64> {
        let (start, end) = (reals(rows.column(0)), reals(rows.column(1)));
        start.iter().zip(&end).map(|(start, end)| end - start).collect()
    };
    assert_eq!(share(&lasting(&rows), |v| v < 0.0), 0.0);
    assert!(ks(&lasting(&trips), &lasting(&rows)) < 0.02);
    assert!(ks(&reals(trips.column(1)), &reals(rows.column(1))) < 0.02);
}

#[test]
fn columns_are_null_together() {
    let trips = trips();
    let (spec, rows) = like(&trips);
    let together = |rows: &RecordBatch| {
        let null = |i: usize| rows.column(2).is_null(i) && rows.column(3).is_null(i);
        (0..rows.num_rows()).filter(|i| null(*i)).count() as f64 / rows.num_rows() as f64
    };
    assert!((together(&trips) - together(&rows)).abs() < 0.005, "{spec}");
    assert!((rows.column(2).null_count() as f64 / ROWS as f64 - 0.047).abs() < 0.005);
}

#[test]
fn totals_add_up_as_often_and_are_whole_cents() {
    let trips = trips();
    let (spec, rows) = like(&trips);
    let adds_up = |rows: &RecordBatch| {
        let column = |i: usize| reals(rows.column(i));
        let (fare, tip, toll, total) = (column(4), column(5), column(6), column(7));
        let sum = |i: usize| fare[i] + tip[i] + toll[i] + 1.0;
        (0..total.len()).filter(|i| (total[*i] - sum(*i)).abs() < 0.005).count() as f64 / total.len() as f64
    };
    assert!((adds_up(&trips) - adds_up(&rows)).abs() < 0.01, "{} {} {spec}", adds_up(&trips), adds_up(&rows));
    assert_eq!(share(&reals(rows.column(7)), |v| (v * 100.0).round() / 100.0 == v), 1.0);
}

#[test]
fn fidelity_names_each_column_and_relation_the_worst_first() {
    use crate::harness::sawmill;
    use parquet::arrow::ArrowWriter;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let trips = trips();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path("trips.parquet")).unwrap(), trips.schema(), None)
            .unwrap();
    writer.write(&trips).unwrap();
    writer.close().unwrap();
    let made = sawmill(["gen", "--like", &path("trips.parquet"), "--out", &path("like.parquet")]).ok();
    assert!(made.err.contains("8 of 8 columns, "), "{}", made.err);
    let args = ["gen", "fidelity", &path("trips.parquet"), &path("like.parquet")];
    let json = sawmill(args.iter().chain(&["--json"]).copied()).ok().json();
    let columns = json["columns"].as_array().unwrap();
    let distances: Vec<f64> = columns.iter().map(|column| column["distance"].as_f64().unwrap()).collect();
    assert!(distances.len() == 8 && distances.is_sorted_by(|a, b| a >= b) && distances[0] < 0.02, "{json}");
    let relations = json["relations"].as_array().unwrap();
    let pairs = json["pairs"].as_array().unwrap();
    let people = pairs.iter().find(|pair| pair["columns"] == serde_json::json!(["people", "flag"])).unwrap();
    let nulls = people["measures"].as_array().unwrap();
    let nulls = nulls.iter().find(|of| of["measure"] == "correlation of nulls").unwrap();
    assert!(nulls["source"] == 1.0 && nulls["generated"] == 1.0 && people["is_kept"] == true, "{people}");
    assert_eq!(json["kept"]["pairs"][1], 28);
    for part in ["end >= start", "total = fare + tip + toll + 1"] {
        let relation = relations.iter().find(|relation| relation["relation"] == part);
        let relation = relation.unwrap_or_else(|| panic!("{part}: {json}"));
        let (source, generated) = (&relation["source"], &relation["generated"]);
        let apart = source.as_f64().unwrap() - generated.as_f64().unwrap();
        assert!(apart.abs() < 0.01, "{relation}");
    }
    // Other data is not alike.
    sawmill(["gen", "devices", "--rows", "1000", "--out", &path("other.parquet")]).ok();
    let error = sawmill(["gen", "fidelity", &path("trips.parquet"), &path("other.parquet")]).fails(2);
    assert!(error.contains("no column of the source is in the generated data"), "{error}");
}

#[test]
fn a_column_that_never_rises_stays_so() {
    let mut random = random(11);
    let mut at: Vec<i64> = (0..ROWS).map(|_| (random() * random() * 1e6) as i64).collect();
    at.sort_unstable_by(|a, b| b.cmp(a));
    let kinds = (0..ROWS).map(|row| ["new", "old", "gone"][(row * 3 / ROWS) as usize]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("at", Arc::new(Int64Array::from(at))),
        ("kind", Arc::new(StringArray::from_iter_values(kinds))),
        ("noise", Arc::new(Float64Array::from_iter_values((0..ROWS).map(|_| random())))),
    ];
    let (spec, rows) = like(&batch(columns));
    let at = rows.column(0).as_primitive::<Int64Type>();
    assert!(at.values().windows(2).all(|pair| pair[0] >= pair[1]), "{spec}");
    let kinds = rows.column(1).as_string::<i32>();
    let changes = (1..kinds.len()).filter(|row| kinds.value(*row) != kinds.value(row - 1)).count();
    assert_eq!((kinds.value(0), changes), ("new", 2), "{spec}");
    // Also a day that a label determines.
    let day = |row: u64| 100 - (row * 100 / ROWS) as i64;
    let label = |row: u64| day(row) * 7919 % 1009;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("label", Arc::new(Int64Array::from_iter_values((0..ROWS).map(label)))),
        ("day", Arc::new(Int64Array::from_iter_values((0..ROWS).map(day)))),
    ];
    let (spec, rows) = like(&batch(columns));
    let days = rows.column(1).as_primitive::<Int64Type>();
    assert!(days.values().windows(2).all(|pair| pair[0] >= pair[1]), "{spec}");
}
