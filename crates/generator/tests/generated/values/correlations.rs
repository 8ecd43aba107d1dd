//! Members of a copula keep their own distributions and depend on one another.

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

const DISTANCE: &str = "[[fields]]\nname = \"distance\"\ntype = \"int64\"\nnulls = 0.1\nvalues.quantiles = { values = [0, 800, 3000, 40000], shares = [0, 0.3, 0.8, 1], atoms = { 0 = 0.05, 1000 = 0.1 } }\n";
const FARE: &str = "[[fields]]\nname = \"fare\"\ntype = \"double\"\nvalues.quantiles = { values = [2.5, 9, 14, 200], shares = [0, 0.4, 0.8, 1], atoms = { 52 = 0.08 }, step = 0.5 }\n";
const PAID: &str =
    "[[fields]]\nname = \"paid\"\ntype = \"string\"\nvalues.weights = { card = 5, cash = 3, voucher = 2 }\n";

#[test]
fn members_of_a_copula_are_correlated_and_keep_their_own_distributions() {
    let alone = rows(&format!("name = \"d\"\n{FARE}"));
    for wanted in [0.9, 0.35, -0.6, 1.0] {
        // Normal scores with this correlation have ranks with the wanted one.
        let score = 2.0 * libm::sin(std::f64::consts::FRAC_PI_6 * wanted);
        let spec = format!(
            "name = \"d\"\n{FARE}{DISTANCE}[[copula]]\nfield = \"distance\"\n[[copula]]\nfield = \"fare\"\nwith = [{score}]\n"
        );
        let batch = rows(&spec);
        let (distance, fares) = (reals(&batch, "distance"), reals(&batch, "fare"));
        let found = correlation(&distance, &fares);
        assert!((found - wanted).abs() < 0.03, "{found} instead of {wanted}");
        assert!(apart(&fares, &reals(&alone, "fare")) < 0.012);
        let nulls = distance.iter().filter(|v| v.is_nan()).count() as f64 / ROWS as f64;
        assert!((nulls - 0.1).abs() < 0.01, "{nulls}");
    }
}

#[test]
fn a_table_of_counts_says_how_ranks_depend_on_values_and_nulls() {
    let batch = rows(&format!(
        "name = \"d\"\nrows = {ROWS}\n{PAID}{FARE}{DISTANCE}
[[copula]]
rows = true
[[copula]]
field = \"paid\"
order = [\"cash\", \"card\", \"voucher\"]
[[copula]]
nulls = \"distance\"
by = {{ field = \"paid\", counts = [[3, 27], [0, 50], [7, 13]] }}
[[copula]]
field = \"fare\"
by = {{ rows = true, counts = [[1, 0], [0, 1]] }}
"
    ));
    let paid = batch.column_by_name("paid").unwrap().as_string::<i32>();
    let distance = batch.column_by_name("distance").unwrap();
    let share = |of: &str, test: &dyn Fn(usize) -> bool| {
        let rows: Vec<usize> = (0..ROWS).filter(|row| paid.value(*row) == of).collect();
        rows.iter().filter(|row| test(**row)).count() as f64 / rows.len() as f64
    };
    for (of, nulls) in [("cash", 0.1), ("card", 0.0), ("voucher", 0.35)] {
        let found = share(of, &|row| distance.is_null(row));
        assert!((found - nulls).abs() < 0.02, "{of}: {found}");
    }
    // Below 65,536 rows, each value occurs as often as its share says.
    assert_eq!(paid.iter().filter(|of| *of == Some("cash")).count(), ROWS * 3 / 10);
    let (early, late) = (&reals(&batch, "fare")[..ROWS / 2], &reals(&batch, "fare")[ROWS / 2..]);
    let most = early.iter().copied().fold(0.0, f64::max);
    assert!(late.iter().all(|fare| *fare >= most), "{most}");
}

#[test]
fn ranks_depend_on_the_seed_and_the_row_alone() {
    let spec = format!(
        "name = \"d\"\nrows = 10\n{PAID}{FARE}[[copula]]\nfield = \"paid\"\n[[copula]]\nfield = \"fare\"\nwith = [0.7]\n"
    );
    let dataset = Dataset::from_toml(&spec).unwrap();
    let whole = dataset.batches(0..5000, 7, 5000).next().unwrap().unwrap();
    for start in [0u64, 5, 1023, 3000] {
        let part = dataset.batches(start..start + 100, 7, 100).next().unwrap().unwrap();
        assert_eq!(whole.slice(start as usize, 100), part);
    }
    let other = dataset.batches(0..5000, 8, 5000).next().unwrap().unwrap();
    assert_ne!(whole, other);
}

#[test]
fn mistakes_name_what_is_wrong_and_what_to_write() {
    let refused = |copula: &str| {
        let spec = format!("name = \"d\"\n{PAID}{FARE}[[copula]]\nfield = \"paid\"\n{copula}");
        Dataset::from_toml(&spec).expect_err(copula).to_string()
    };
    let fare = "[[copula]]\nfield = \"fare\"\n";
    for (copula, message) in [
        ("[[copula]]\nfield = \"tip\"\n".to_owned(), "\"tip\" is not a field outside of lists"),
        ("[[copula]]\nfield = \"paid\"\n".to_owned(), "a second member"),
        ("[[copula]]\nnulls = \"fare\"\n".to_owned(), "name a field that has `nulls`"),
        ("[[copula]]\nrows = true\n".to_owned(), "as the first member"),
        ("[[copula]]\nwith = [1]\n".to_owned(), "write one of `field`"),
        (format!("{fare}with = [0.5, 0.5]\n"), "write a list of 1 correlations"),
        (format!("{fare}with = [1.5]\n"), "write a list of 1 correlations"),
        (format!("{fare}by = {{ field = \"paid\", counts = [[1, 2]] }}\n"), "not 3 lists of 2 numbers"),
        (format!("{fare}by = {{ field = \"fare\", counts = [[1]] }}\n"), "no member before this one"),
        ("order = [\"card\", \"cash\"]\n".to_owned(), "list each of the 3 values"),
    ] {
        let error = refused(&copula);
        assert!(error.contains(message), "{error}");
    }
    let many = "[[fields]]\nname = \"b\"\ntype = \"double\"\nvalues.quantiles = { values = [0, 1] }\n";
    let spec = format!(
        "name = \"d\"\n{FARE}{many}{DISTANCE}{fare}[[copula]]\nfield = \"b\"\nwith = [0.9]\n[[copula]]\nfield = \"distance\"\nwith = [0.9, -0.9]\n"
    );
    let error = Dataset::from_toml(&spec).expect_err("impossible").to_string();
    assert!(error.contains("correlations that no data have together"), "{error}");
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

/// Visits: the day never falls, the temperature has seasons, the length depends on the kind in no order, and only
/// some kinds have a mass.
fn visits() -> RecordBatch {
    const N: usize = 6000;
    let random = |row: usize, salt: u64| {
        let mixed =
            (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
    };
    let bell = |row: usize, salt: u64| (0..12).map(|i| random(row, salt * 12 + i)).sum::<f64>() - 6.0;
    let kind = |row: usize| (random(row, 1) * 3.0) as usize;
    let season = |row: usize| libm::sin(row as f64 / N as f64 * 2.0 * std::f64::consts::TAU);
    let length = |row: usize| [30.0, 50.0, 40.0][kind(row)] + 2.0 * bell(row, 2);
    let real = |value: &dyn Fn(usize) -> Option<f64>| {
        Arc::new((0..N).map(value).collect::<Float64Array>()) as ArrayRef
    };
    let kinds = (0..N).map(|row| ["oak", "elm", "ash"][kind(row)]);
    RecordBatch::try_from_iter([
        ("day", Arc::new(Int64Array::from_iter_values((0..N).map(|row| row as i64 / 7))) as ArrayRef),
        ("temperature", real(&|row| Some(12.0 + 9.0 * season(row) + bell(row, 3)))),
        ("kind", Arc::new(arrow_array::StringArray::from_iter_values(kinds)) as ArrayRef),
        ("length", real(&|row| Some(length(row)))),
        ("width", real(&|row| Some(60.0 - length(row) + 0.5 * bell(row, 4)))),
        (
            "mass",
            real(&|row| (kind(row) != 1 || random(row, 5) < 0.1).then(|| 3.0 * length(row) + bell(row, 6))),
        ),
    ])
    .unwrap()
}

#[test]
fn order_seasons_categories_and_nulls_of_a_sample_are_kept() {
    let source = visits();
    let mut inferred = InferredSpec::new("visits", &source.schema(), &[]).unwrap();
    inferred.set_rows(source.num_rows() as u64);
    inferred.add(&source).unwrap();
    let spec = inferred.to_toml().unwrap();
    let dataset = Dataset::from_toml(&spec).unwrap();
    let made = dataset.batches(0..source.num_rows() as u64, 7, 8192).next().unwrap().unwrap();
    let mut generated = InferredSpec::new("visits", &made.schema(), &[]).unwrap();
    generated.add(&made).unwrap();
    let fidelity = inferred.compare(&generated);
    let kept = &fidelity.kept;
    assert_eq!([kept.columns, kept.order], [[6, 6], [6, 6]], "{fidelity:#?}");
    // Of kind and mass, both the values and the nulls depend on the kind: a little of that is lost.
    assert!(kept.pairs[1] == 15 && kept.pairs[0] >= 14, "{fidelity:#?}");
    let pair = fidelity.pairs.iter().find(|pair| pair.columns == ["kind", "mass"]).unwrap();
    let nulls = pair.measures.iter().find(|of| of.measure == "kind by the nulls of mass").unwrap();
    assert!(nulls.source > 0.9 && nulls.generated > 0.7, "{nulls:?}");
    let days = made.column_by_name("day").unwrap().as_primitive::<Int64Type>();
    assert!(days.values().is_sorted());
}
