//! Numbers that follow another field keep both their own distribution and the correlation of the ranks.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use sawmill_generator::{Dataset, InferredSpec};

const ROWS: usize = 60_000;

fn rows(spec: &str) -> RecordBatch {
    let dataset = Dataset::from_toml(spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    dataset.batches(0..ROWS as u64, 7, ROWS).next().unwrap().unwrap()
}

fn reals(batch: &RecordBatch, name: &str) -> Vec<f64> {
    let column = batch.column_by_name(name).unwrap();
    match column.as_primitive_opt::<Int64Type>() {
        Some(whole) => whole.iter().map(|v| v.map_or(f64::NAN, |v| v as f64)).collect(),
        None => column.as_primitive::<Float64Type>().iter().map(|v| v.unwrap_or(f64::NAN)).collect(),
    }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        equal.iter().for_each(|i| ranks[*i] = first as f64 + (equal.len() - 1) as f64 / 2.0);
        first += equal.len();
    }
    ranks
}

/// Spearman's rank correlation of the rows in which both are there.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let both = a.iter().zip(b).filter(|(a, b)| a.is_finite() && b.is_finite());
    let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
    let (a, b) = (ranks(&a), ranks(&b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// The Kolmogorov-Smirnov distance.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |values: &[f64]| {
        let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let below = |v: &[f64], x: f64| v.partition_point(|y| *y <= x) as f64 / v.len() as f64;
    a.iter().map(|x| (below(&a, *x) - below(&b, *x)).abs()).fold(0.0, f64::max)
}

#[test]
fn a_field_follows_another_one_and_keeps_its_own_distribution() {
    let distance = "{ name = \"distance\", type = \"int64\", nulls = 0.1, values = { quantiles = { values = [0, 800, 3000, 40000], shares = [0, 0.3, 0.8, 1], atoms = { 0 = 0.05, 1000 = 0.1 } } } }";
    let fare = "values = [2.5, 9, 14, 200], shares = [0, 0.4, 0.8, 1], atoms = { 52 = 0.08 }, step = 0.5";
    let alone = rows(&format!(
        "name = \"d\"\nfields = [{{ name = \"fare\", type = \"double\", values = {{ quantiles = {{ {fare} }} }} }}]"
    ));
    for wanted in [0.9, 0.35, -0.6, 1.0] {
        let spec = format!(
            "name = \"d\"\nfields = [\n{distance},\n{{ name = \"fare\", type = \"double\", nulls = 0, values = {{ quantiles = {{ {fare}, follows = {{ field = \"distance\", correlation = {wanted} }} }} }} }},\n{{ name = \"tip\", type = \"decimal\", precision = 9, scale = 2, nulls = 0, values = {{ quantiles = {{ values = [0, 1, 9], follows = {{ field = \"fare\", correlation = 0.5 }} }} }} }}\n]"
        );
        let batch = rows(&spec);
        assert_eq!(batch.column(0).null_count(), batch.column(1).null_count());
        let (distance, fares) = (reals(&batch, "distance"), reals(&batch, "fare"));
        let found = correlation(&distance, &fares);
        assert!((found - wanted).abs() < 0.03, "{found} instead of {wanted}");
        assert!(apart(&fares, &reals(&alone, "fare")) < 0.012);
        let tips = batch.column(2).as_primitive::<arrow_array::types::Decimal128Type>();
        let tips: Vec<f64> = tips.iter().map(|v| v.map_or(f64::NAN, |v| v as f64)).collect();
        let found = correlation(&fares, &tips);
        assert!((found - 0.5).abs() < 0.03, "{found}");
    }
}

#[test]
fn mistakes_name_the_field() {
    let refused = |first: &str, follows: &str| {
        let spec = format!(
            "name = \"d\"\nfields = [\n{{ name = \"a\", type = \"int64\", values = {first} }},\n{{ name = \"b\", type = \"int64\", values = {{ quantiles = {{ values = [0, 9], follows = {follows} }} }} }}]"
        );
        Dataset::from_toml(&spec).expect_err("the spec is wrong").to_string()
    };
    let error = refused("{ uniform = { min = 0, max = 9 } }", "{ field = \"a\", correlation = 0.5 }");
    assert!(error.contains("a is not drawn by quantiles"), "{error}");
    let error = refused("{ quantiles = { values = [0, 9] } }", "{ field = \"a\", correlation = 1.5 }");
    assert!(error.contains("use a rank correlation from -1 to 1"), "{error}");
    let error = refused("{ quantiles = { values = [0, 9] } }", "{ field = \"c\", correlation = 0.5 }");
    assert!(error.contains("c is not an earlier field"), "{error}");
}

/// Distances, fares and tips as in rides: fares follow distances, tips follow fares, and totals add up.
fn rides() -> RecordBatch {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = move || (0..12).map(|_| random()).sum::<f64>() - 6.0;
    let cents = |v: f64| (v * 100.0).round() / 100.0;
    let (mut distances, mut fares, mut tips, mut totals, mut seconds) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROWS {
        let distance = cents(libm::exp(0.8 * normal() + 0.6));
        let fare = cents(3.0 + 2.5 * distance * libm::exp(0.15 * normal()));
        let tip = if normal() < -0.4 { 0.0 } else { cents(fare * 0.2 * libm::exp(0.3 * normal())) };
        seconds.push((240.0 * distance * libm::exp(0.4 * normal())) as i64 + 30);
        distances.push(distance);
        fares.push(fare);
        tips.push(tip);
        totals.push(cents(fare + tip));
    }
    let real = |values: Vec<f64>| Arc::new(Float64Array::from(values)) as ArrayRef;
    RecordBatch::try_from_iter([
        ("distance", real(distances)),
        ("seconds", Arc::new(Int64Array::from(seconds)) as ArrayRef),
        ("fare", real(fares)),
        ("tip", real(tips)),
        ("total", real(totals)),
    ])
    .unwrap()
}

#[test]
fn correlations_of_a_sample_are_kept_with_its_distributions_and_sums() {
    let source = rides();
    let mut inferred = InferredSpec::new("rides", &source.schema(), &[]).unwrap();
    inferred.set_rows(ROWS as u64);
    inferred.add(&source).unwrap();
    let spec = inferred.to_toml().unwrap();
    let made = rows(&spec);
    let shown = spec.lines().map(|line| &line[..line.len().min(160)]).collect::<Vec<_>>().join("\n");
    for (a, b) in
        [("distance", "seconds"), ("distance", "fare"), ("fare", "tip"), ("fare", "total"), ("tip", "total")]
    {
        let before = correlation(&reals(&source, a), &reals(&source, b));
        let after = correlation(&reals(&made, a), &reals(&made, b));
        // The tip that a third of the rides do not have depends on no fare, which a copula does not know.
        let near = if (a, b) == ("tip", "total") { 0.08 } else { 0.05 };
        assert!((before - after).abs() < near, "{a} and {b}: {before} and {after}\n{shown}");
    }
    for name in ["distance", "seconds", "fare", "tip", "total"] {
        let distance = apart(&reals(&source, name), &reals(&made, name));
        // The total is the sum of two that depend on one another only nearly as in the sample.
        let near = if name == "total" { 0.03 } else { 0.02 };
        assert!(distance < near, "{name}: {distance}\n{shown}");
    }
    let adds_up = |batch: &RecordBatch| {
        let (fare, tip, total) = (reals(batch, "fare"), reals(batch, "tip"), reals(batch, "total"));
        let all = fare.iter().zip(&tip).zip(&total);
        all.filter(|((fare, tip), total)| (*fare + *tip - *total).abs() < 1e-6).count() as f64 / ROWS as f64
    };
    assert!(
        (adds_up(&source) - adds_up(&made)).abs() < 0.01,
        "{} {}\n{shown}",
        adds_up(&source),
        adds_up(&made)
    );
    // The comparison lists them.
    let mut generated = InferredSpec::new("rides", &made.schema(), &[]).unwrap();
    generated.add(&made).unwrap();
    let fidelity = inferred.compare(&generated);
    let listed = fidelity.pairs.iter().find(|pair| pair.columns == ["distance", "fare"]).unwrap();
    let listed = listed.measures.iter().find(|of| of.measure == "rank correlation").unwrap();
    assert!(listed.source > 0.8 && (listed.source - listed.generated).abs() < 0.05, "{listed:?}");
}
