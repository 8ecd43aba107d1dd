//! The distributions of specs match `rand_distr`, whose own distributions can take their place.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float64Type, Int64Type};
use rand::distr::Distribution;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::{Exp, Geometric, LogNormal, Normal, Poisson, StandardUniform, Triangular, Uniform, Zipf};
use sawmill_generator::{Dataset, DatasetName};

const DRAWS: usize = 100_000;

fn dataset(kind: &str, values: &str) -> Dataset {
    let spec =
        format!("name = \"d\"\n[[fields]]\nname = \"v\"\ntype = \"{kind}\"\nvalues = {{ {values} }}\n");
    Dataset::from_toml(&spec).unwrap()
}

fn reals(dataset: &Dataset, seed: u64) -> Vec<f64> {
    let batch = dataset.batches(0..DRAWS as u64, seed, DRAWS).next().unwrap().unwrap();
    batch.column(0).as_primitive::<Float64Type>().values().to_vec()
}

fn theirs(distribution: impl Distribution<f64>) -> Vec<f64> {
    Xoshiro256PlusPlus::seed_from_u64(5).sample_iter(distribution).take(DRAWS).collect()
}

/// The largest distance between two empirical distribution functions.
fn distance(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let share = |sorted: &[f64], x: f64| sorted.partition_point(|y| *y <= x) as f64 / sorted.len() as f64;
    a.iter().chain(&b).map(|x| (share(&a, *x) - share(&b, *x)).abs()).fold(0.0, f64::max)
}

/// Fair samples exceed it once in a thousand times (Kolmogorov-Smirnov); these samples are fixed.
fn limit() -> f64 {
    1.95 * (2.0 / DRAWS as f64).sqrt()
}

#[test]
fn continuous_distributions_are_those_of_rand_distr() {
    for (values, theirs) in [
        ("normal = { mean = 3, stddev = 2.5 }", theirs(Normal::new(3.0, 2.5).unwrap())),
        ("lognormal = { mu = 1.5, sigma = 0.8 }", theirs(LogNormal::new(1.5, 0.8).unwrap())),
        ("exponential = { mean = 4 }", theirs(Exp::new(0.25).unwrap())),
        ("uniform = { min = -1, max = 6 }", theirs(Uniform::new(-1.0, 6.0).unwrap())),
    ] {
        let found = distance(reals(&dataset("double", values), 1), theirs);
        assert!(found < limit(), "{values}: {found}");
    }
}

#[test]
fn counts_and_ranks_are_those_of_rand_distr() {
    let geometric = Geometric::new(0.3).unwrap().map(|failures| failures as f64);
    for (values, theirs) in [
        ("poisson = { mean = 6.5 }", theirs(Poisson::new(6.5).unwrap())),
        ("geometric = { p = 0.3 }", theirs(geometric)),
        ("zipf = { n = 40, s = 1.2 }", theirs(Zipf::new(40.0, 1.2).unwrap())),
        // Without a table of ranks.
        ("zipf = { n = 10_000_000, s = 1.1 }", theirs(Zipf::new(1e7, 1.1).unwrap())),
    ] {
        let batch = dataset("int64", values).batches(0..DRAWS as u64, 1, DRAWS).next().unwrap().unwrap();
        let ours = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let (mut counts, last) = ([[0.0; 2]; 20], 19);
        ours.iter().for_each(|value| counts[(*value as usize).min(last)][0] += 1.0);
        theirs.iter().for_each(|value| counts[(*value as usize).min(last)][1] += 1.0);
        // Two samples of one size.
        let both = counts.iter().filter(|[a, b]| a + b > 0.0);
        let statistic: f64 = both.map(|[a, b]: &[f64; 2]| (a - b) * (a - b) / (a + b)).sum();
        // 19 degrees of freedom: fair samples exceed it once in a thousand times.
        assert!(statistic < 43.8, "{values}: {statistic} {counts:?}");
    }
}

#[test]
fn a_field_draws_from_any_distribution_of_rand_distr_or_of_the_caller() {
    let plain = || dataset("double", "uniform = { min = 0, max = 1 }");
    let triangular = Triangular::new(1.0, 9.0, 2.0).unwrap();
    let own = plain().with_distribution("v", triangular).unwrap();
    assert!(distance(reals(&own, 1), theirs(triangular)) < limit());
    // The same rows whatever the batches.
    let whole = reals(&own, 7);
    let part = own.batches(70_000..70_010, 7, 10).next().unwrap().unwrap();
    assert_eq!(part.column(0).as_primitive::<Float64Type>().values()[..], whole[70_000..70_010]);
    assert_ne!(whole, reals(&own, 8));

    let dice = Uniform::new_inclusive(1u8, 6).unwrap();
    let rolls = dataset("int64", "zipf = { n = 3, s = 1 }").with_distribution("v", dice).unwrap();
    let batch = rolls.batches(0..60_000, 1, 60_000).next().unwrap().unwrap();
    let mut counts = [0; 6];
    batch
        .column(0)
        .as_primitive::<Int64Type>()
        .values()
        .iter()
        .for_each(|pips| counts[*pips as usize - 1] += 1);
    assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
}

#[test]
fn a_field_that_holds_no_numbers_takes_no_distribution() {
    let refused = |kind: &str, values: &str, path: &str| {
        let field = dataset(kind, values).with_distribution::<f64>(path, StandardUniform);
        field.map(drop).unwrap_err().to_string()
    };
    let what = refused("string", "choice = { values = [\"a\", \"b\"] }", "v");
    assert!(what.contains("does not hold numbers") && what.contains('v'), "{what}");
    assert!(refused("double", "exponential = { mean = 1 }", "w").contains("no such field"));
    let lines = DatasetName::new("tpch/lineitem").dataset(Some(0.01)).unwrap();
    let what = lines.with_distribution::<f64>("l_tax", StandardUniform).map(drop).unwrap_err().to_string();
    assert!(what.contains("computed"), "{what}");
    let narrow =
        dataset("int8", "zipf = { n = 3, s = 1 }").with_distribution("v", Uniform::new(900, 1000).unwrap());
    let error = narrow.unwrap().batches(0..10, 1, 10).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("let the distribution draw"), "{error}");
}

/// The values of a decimal field in 2,000 rows, as texts.
fn decimals(precision: u8, scale: u8, values: &str) -> Vec<String> {
    let keys = format!("precision = {precision}\nscale = {scale}\nvalues = {{ {values} }}");
    let spec = format!("name = \"d\"\n[[fields]]\nname = \"v\"\ntype = \"decimal\"\n{keys}\n");
    let dataset = Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    let batch = dataset.batches(0..2000, 1, 2000).next().unwrap().unwrap();
    let text = |row: usize| match precision {
        39.. => batch.column(0).as_primitive::<Decimal256Type>().value_as_string(row),
        _ => batch.column(0).as_primitive::<Decimal128Type>().value_as_string(row),
    };
    (0..batch.num_rows()).map(text).collect()
}

#[test]
fn uniform_decimals_of_76_digits_lie_within_their_bounds_and_reach_both() {
    let zeros = "0".repeat(75);
    for sign in ["", "-"] {
        let ends = [format!("{sign}1{zeros}"), format!("{sign}1{}3", &zeros[1..])];
        let [least, most] = if sign.is_empty() { [&ends[0], &ends[1]] } else { [&ends[1], &ends[0]] };
        let drawn = decimals(76, 0, &format!("uniform = {{ min = \"{least}\", max = \"{most}\" }}"));
        let all: BTreeSet<String> = (0..4).map(|n| format!("{sign}1{}{n}", &zeros[1..])).collect();
        assert_eq!(drawn.into_iter().collect::<BTreeSet<_>>(), all);
    }
    let nines = format!("{}.{}", "9".repeat(71), "9".repeat(5));
    let drawn = decimals(76, 5, &format!("uniform = {{ min = \"-{nines}\", max = \"{nines}\" }}"));
    let below = drawn.iter().filter(|text| text.starts_with('-')).count();
    assert!((900..1100).contains(&below), "{below}");
    let longest = drawn.iter().filter(|text| text.trim_start_matches('-').len() == nines.len()).count();
    assert!((1700..1900).contains(&longest), "{longest}");
}

#[test]
fn decimals_of_76_digits_are_exact_in_lists_and_near_in_other_distributions() {
    let exact = format!("-{}.{}", "7".repeat(16), "3".repeat(60));
    assert_eq!(decimals(76, 60, &format!("constant = \"{exact}\""))[7], exact);
    let one = format!("1.{}", "0".repeat(60));
    for list in ["weights = { \"EXACT\" = 1, 1 = 1 }", "choice = [\"EXACT\", 1]", "cycle = [1, \"EXACT\"]"] {
        let drawn: BTreeSet<String> = decimals(76, 60, &list.replace("EXACT", &exact)).into_iter().collect();
        assert_eq!(drawn, BTreeSet::from([exact.clone(), one.clone()]));
    }
    for (scale, values, least, most) in [
        (0, "normal = { mean = 1e60, stddev = 1e59, min = 9e59, max = 1.1e60 }", 9e59, 1.1e60),
        (50, "exponential = { mean = 3, max = 20 }", 0.0, 20.0),
        (50, "zipf = { n = 9, s = 1 }", 1.0, 9.0),
        (60, "poisson = { mean = 2, max = 7 }", 0.0, 7.0),
        (20, "expression = \"-2 * exp(115.1292546) + uniform(0, 1)\"", -2.1e50, -1.9e50),
        (50, "uniform = { min = \"1e24\", max = \"2e24\", unique = true }", 1e24, 2e24),
    ] {
        for text in decimals(76, scale, values) {
            let value: f64 = text.parse().unwrap();
            assert!((least..=most).contains(&value), "{values}: {text}");
        }
    }
}

#[test]
fn more_digits_of_a_decimal_do_not_change_values_of_fewer() {
    for values in [
        "uniform = { min = \"-1000000000000000000000000000000\", max = \"2000000000000000000000000000001\" }",
        "uniform = { min = -5, max = 99.5 }",
        "uniform = { min = 0, max = 99999, unique = true }",
        "normal = { mean = 3e20, stddev = 1e19 }",
        "zipf = { n = 1000, s = 1.1 }",
        "expression = \"exponential(70)\"",
    ] {
        assert_eq!(decimals(38, 3, values), decimals(76, 3, values), "{values}");
    }
}

#[test]
fn distributions_of_128_bits_refuse_decimals_of_more() {
    for (values, what) in [
        ("sequence = { start = \"1e30\", step = 1 }", "more than 38 digits"),
        ("sequence = {}", "more than 38 digits after the point"),
        ("uniform = { min = 0, max = \"1e76\" }", "is not a decimal"),
        ("quantiles = { values = [0, \"1e30\"] }", "38 digits"),
    ] {
        let keys = format!("precision = 76\nscale = 39\nvalues = {{ {values} }}");
        let spec = format!("name = \"d\"\n[[fields]]\nname = \"v\"\ntype = \"decimal\"\n{keys}\n");
        let error = Dataset::from_toml(&spec).unwrap_err().to_string();
        assert!(error.contains(what), "{values}: {error}");
    }
}

/// Batches take up to 128 MiB. Rows are drawn 1,024 at a time: smaller batches draw the other columns again.
#[test]
fn batches_are_small_where_texts_are_long_but_not_where_one_in_10_000_is() {
    let batch_rows = |lengths: &str| {
        let dataset = dataset("string", &format!("text.length.weights = {{ {lengths} }}"));
        dataset.batches(0..4_096, 7, 4_096).next().unwrap().unwrap().num_rows()
    };
    assert_eq!(batch_rows("40 = 7, 1048576 = 1"), 128);
    assert_eq!(batch_rows("40 = 9999, 1048576 = 1"), 4_096);
}
