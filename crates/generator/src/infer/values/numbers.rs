//! The `values` of numbers, dates and times.
//!
//! The rules, in this order: one value is a constant; a value that depends on the row alone is a sequence or a cycle; at
//! most [`FEW`] distinct values are weights; values that grow with the rows are a walk; values near a known
//! distribution ([`crate::infer::values::known`]) are drawn from it, if they repeat or are uniform; at most
//! [`MAX_LISTED`] distinct values, each sampled several times, are weights; all others are drawn by their quantiles.

use arrow_schema::DataType;

use crate::infer::notation::{
    difference, digits, is_temporal, key, list, literal, number, one, per_second, quantity, quoted, rounded,
    single, table,
};
use crate::infer::sample::leaf_sample::{LeafSample, real_runs, whole_runs};
use crate::infer::sample::numbered::{Values, Word};
use crate::infer::values::known::{Counted, Known};
use crate::infer::values::quantiles::{Beyond, Described, described, is_atom};

/// The most distinct values to list before known distributions are tried.
const FEW: usize = 50;

/// The most distinct values to list.
const MAX_LISTED: usize = 10_000;

/// Values are listed if each was sampled as often on average.
const TIMES_EACH: u64 = 4;

/// The most values of a cycle, and the fewest rows that show one.
const MAX_CYCLE: usize = 1000;
const MIN_CYCLED: usize = 50;

/// The share of multiples of a step that counts as all of them.
const NEARLY_ALL: f64 = 0.999;

/// The least share of multiples of a step among values that are rounded to it.
const STEPPED: f64 = 0.8;

/// The findings about a column besides the values of its sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    /// The number of the row of each sampled value, if it is a field of the record.
    pub rows: Option<Vec<u64>>,
    /// Whether the sample holds the values of all rows, in their order.
    pub is_whole: bool,
    /// The least and greatest of all values, from the footers.
    pub whole_bounds: Option<(i128, i128)>,
    pub real_bounds: Option<(f64, f64)>,
    /// The number of all values; of the sample's values if unknown.
    pub n: u64,
    /// Whether other columns depend on the distribution, or it on theirs: then it is one by its quantiles.
    pub by_quantiles: bool,
}

/// The `values` of whole numbers of type `kind`; `alone` without a sample.
pub(crate) fn whole(kind: &DataType, sample: &LeafSample, around: &Around, alone: &str) -> String {
    let runs = whole_runs(sample);
    let n: u64 = runs.iter().map(|run| run.1).sum();
    let (Some(&(low, _)), Some(&(high, _))) = (runs.first(), runs.last()) else { return alone.to_owned() };
    let (low, high) = around.whole_bounds.map_or((low, high), |(a, b)| (low.min(a), high.max(b)));
    if low == high {
        return format!("{{ constant = {} }}", literal(kind, low));
    }
    let at = |i: usize| match sample {
        LeafSample::Whole(values) => values.get(i).map(|v| i128::from(*v)),
        LeafSample::Wide(values) => values.get(i).copied(),
        _ => None,
    };
    if let Some(rows) = &around.rows
        && let Some((start, step)) = sequence(rows, &at)
    {
        let (start, step) = (literal(kind, start), difference(kind, step));
        return format!("{{ sequence = {{ start = {start}, step = {step} }} }}");
    }
    if let LeafSample::Whole(values) = sample
        && let Some(values) = cycle(values, around)
    {
        return cycled(values, &|v| literal(kind, i128::from(v)));
    }
    let listed = with_bounds(&runs, [low, high], n / around.n.max(1));
    let weights = || format!("{{ weights = {} }}", table(listed.iter().map(|(v, n)| (key(kind, *v), n))));
    if listed.len() <= FEW && n >= 2 * runs.len() as u64 {
        return weights();
    }
    if let Some(rows) = &around.rows
        && let Some(walk) = walk(kind, rows, &at, runs.len())
    {
        return walk;
    }
    let step = whole_step(kind, &runs, n);
    let is_key = around.rows.is_some() && !around.by_quantiles && never_repeats(&runs, around.is_whole);
    let unique = is_key.then(|| unique_quantiles(kind, &runs, step, around.n)).flatten();
    if step.is_none() && !around.by_quantiles {
        let reals: Vec<(f64, u64)> = runs.iter().map(|(v, n)| (*v as f64, *n)).collect();
        let counts = !is_temporal(kind) && one(kind) == 1.0;
        let bounds = (low as f64, high as f64);
        let counted = Counted { runs: &reals, n, unit: 1.0, counts, bounds };
        if let Some(known) = counted.nearest().filter(|k| !is_temporal(kind) || *k == Known::Uniform) {
            if known == Known::Uniform && is_key && (counts || unique.is_some()) {
                let (low, high) = (literal(kind, low), literal(kind, high));
                return format!("{{ uniform = {{ min = {low}, max = {high}, unique = true }} }}");
            }
            if let Some(unique) = unique {
                return unique;
            }
            // Bounds of continuous distributions are quantities.
            let continuous =
                matches!(known, Known::Normal { .. } | Known::LogNormal { .. } | Known::Exponential { .. });
            let end = |n: i128| if continuous { quantity(kind, n as f64) } else { literal(kind, n) };
            let ends = (end(low), end(high));
            return known_values(&known, &|v| quantity(kind, v), &ends);
        }
    }
    if let Some(unique) = unique {
        return unique;
    }
    let is_listed = listed.len() <= MAX_LISTED && n >= TIMES_EACH * runs.len() as u64;
    if is_listed && !around.by_quantiles {
        return weights();
    }
    let beyond = Beyond { least: low, greatest: high, n: around.n.max(n) };
    let found = if is_listed { each(&listed) } else { described(&runs, n, 0, Some(beyond)) };
    let step = step.filter(|_| !is_listed).map(|(step, share)| (difference(kind, step), share));
    quantiles(&found, &|v| literal(kind, v), &|v| key(kind, v), step, &[])
}

/// The `values` of real numbers of type `kind`.
pub(crate) fn real(kind: &DataType, values: &Values<f64>, around: &Around) -> String {
    let (runs, others) = real_runs(values);
    let n: u64 = runs.iter().map(|run| run.1).sum();
    let all = values.len() as u64;
    let mut others: Vec<(String, f64)> =
        others.into_iter().map(|(name, n)| (name.to_owned(), n as f64 / all as f64)).collect();
    others.sort_by(|a, b| a.0.cmp(&b.0));
    // Digits enough for the type.
    let literal = |v: f64| match kind {
        DataType::Float32 => single(v),
        _ => number(v),
    };
    let (Some(&(low, _)), Some(&(high, _))) = (runs.first(), runs.last()) else {
        if others.is_empty() {
            return "{ uniform = { min = 0, max = 1 } }".to_owned();
        }
        return format!("{{ quantiles = {{ atoms = {} }} }}", table(others));
    };
    let (low, high) = around.real_bounds.map_or((low, high), |(a, b)| (low.min(a), high.max(b)));
    if low == high && others.is_empty() {
        return format!("{{ constant = {} }}", literal(low));
    }
    if let Some(values) = cycle(values, around).filter(|_| others.is_empty()) {
        return cycled(values, &literal);
    }
    let distinct = runs.len() + others.len();
    let weights = || {
        let listed = with_bounds(&runs, [low, high], n / around.n.max(1));
        let listed = listed.iter().map(|(v, n)| (quoted(&literal(*v)), n.to_string()));
        let others = others.iter().map(|(name, share)| (name.clone(), (share * all as f64).to_string()));
        format!("{{ weights = {} }}", table(listed.chain(others)))
    };
    if distinct <= FEW && all >= 2 * distinct as u64 {
        return weights();
    }
    let step = real_step(kind, &runs, n);
    if step.is_none() && others.is_empty() && !around.by_quantiles {
        let counted = Counted { runs: &runs, n, unit: 0.0, counts: false, bounds: (low, high) };
        if let Some(known) = counted.nearest() {
            return known_values(&known, &number, &(literal(low), literal(high)));
        }
    }
    let is_listed = distinct <= MAX_LISTED && all >= TIMES_EACH * distinct as u64;
    if is_listed && !around.by_quantiles {
        return weights();
    }
    let beyond = Beyond { least: low, greatest: high, n: around.n.max(n) };
    let mut found = if is_listed { each(&runs) } else { described(&runs, n, 0.0, Some(beyond)) };
    found.atoms.iter_mut().for_each(|atom| atom.1 *= n as f64 / all as f64);
    let step = step.filter(|_| !is_listed).map(|(step, share)| (number(step), share));
    quantiles(&found, &literal, &|v| quoted(&literal(v)), step, &others)
}

/// The quantiles of whole numbers of type `kind`, as a draw of a formula.
pub(crate) fn whole_quantiles(kind: &DataType, values: Vec<i64>) -> String {
    let n = values.len() as u64;
    let runs = whole_runs(&LeafSample::Whole(values.into()));
    // Differences of dates and times are whole numbers.
    let kind = if is_temporal(kind) { &DataType::Int64 } else { kind };
    let step = whole_step(kind, &runs, n).map(|(step, share)| (literal(kind, step), share));
    quantiles(&described(&runs, n, 0, None), &|v| literal(kind, v), &|v| key(kind, v), step, &[])
}

/// The quantiles of finite real numbers, as a draw of a formula.
pub(crate) fn real_quantiles(kind: &DataType, values: Vec<f64>) -> String {
    let n = values.len() as u64;
    let (runs, _) = real_runs(&values.into());
    let step = real_step(kind, &runs, n).map(|(step, share)| (number(step), share));
    quantiles(&described(&runs, n, 0.0, None), &number, &|v| quoted(&number(v)), step, &[])
}

/// How many of their steps make one, if real numbers are multiples of a step such as a cent.
pub(crate) fn multiples_a_unit(kind: &DataType, values: &Values<f64>) -> Option<f64> {
    let (runs, _) = real_runs(values);
    let (step, share) = real_step(kind, &runs, values.len() as u64)?;
    let a_unit = (1.0 / step).round();
    (share >= 1.0 && a_unit >= 1.0 && (a_unit * step - 1.0).abs() < 1e-9).then_some(a_unit)
}

/// `start` and `step` if every value is `start + step * row`.
fn sequence(rows: &[u64], at: &dyn Fn(usize) -> Option<i128>) -> Option<(i128, i128)> {
    if rows.len() < 3 {
        return None;
    }
    let rows_between = i128::from(rows[1]) - i128::from(rows[0]);
    let rise = at(1)?.checked_sub(at(0)?)?;
    let step = (rows_between != 0 && rise % rows_between == 0).then(|| rise / rows_between)?;
    let start = at(0)?.checked_sub(step.checked_mul(rows[0].into())?)?;
    let expected = |row: u64| step.checked_mul(row.into()).and_then(|n| n.checked_add(start));
    let all = rows.iter().enumerate().all(|(i, row)| at(i) == expected(*row));
    (all && step != 0).then_some((start, step))
}

/// Fewer distinct numbers in all rows may be so by chance: ages of ten people.
const MIN_KEYS: f64 = 100.0;

/// Whether no value occurs twice: in all rows, if they are not few, or where ten pairs would be the same by chance.
fn never_repeats(runs: &[(i128, u64)], is_whole: bool) -> bool {
    let (Some((low, _)), Some((high, _))) = (runs.first(), runs.last()) else { return false };
    let (n, span) = (runs.len() as f64, *high as f64 - *low as f64 + 1.0);
    runs.iter().all(|(_, n)| *n == 1) && (is_whole && n >= MIN_KEYS || n * n / (2.0 * span) >= 10.0)
}

/// The most pieces of unique quantiles.
const MAX_PIECES: usize = 200;

/// Draws that repeat no more often than this on average need not be unique.
const HARDLY: f64 = 0.001;

/// Quantiles of numbers that do not repeat, if as many draws would, and all rows have one.
fn unique_quantiles(
    kind: &DataType,
    runs: &[(i128, u64)],
    step: Option<(i128, f64)>,
    rows: u64,
) -> Option<String> {
    let n = runs.len();
    let step = step.map(|(step, _)| step).filter(|step| runs.iter().all(|(value, _)| value % step == 0));
    let pieces = MAX_PIECES.min(n.checked_sub(1)?);
    let place = |i: usize| (i as f64 / pieces as f64 * n as f64).round() as usize;
    let values: Vec<i128> = (0..=pieces).map(|i| runs[place(i).min(n - 1)].0).collect();
    let mut repeats = 0.0;
    for (i, ends) in values.windows(2).enumerate() {
        let count = (place(i + 1) - place(i)) as f64 * rows.max(n as u64) as f64 / n as f64;
        let last = if i + 2 == values.len() { 1.0 } else { 0.0 };
        let width = (ends[1] - ends[0]) as f64 / step.unwrap_or(1) as f64 + last;
        if count > width {
            return None;
        }
        repeats += count * count / (2.0 * width);
    }
    let values = list(values.iter().map(|value| literal(kind, *value)));
    let step = step.map_or_else(String::new, |step| format!(", step = {}", difference(kind, step)));
    (repeats > HARDLY).then(|| format!("{{ quantiles = {{ values = {values}{step}, unique = true }} }}"))
}

/// The values that come again and again in this order, if all rows are sampled.
fn cycle<'a, V: Word>(values: &'a Values<V>, around: &Around) -> Option<&'a [V]> {
    values.get(..period(&values.numbered().filter(|_| around.is_whole)?.codes)?)
}

/// After how many rows the values with these numbers come again in the same order.
pub(crate) fn period(codes: &[u16]) -> Option<usize> {
    // How many of the first codes are also the last ones of those so far.
    let mut same = vec![0usize; codes.len()];
    for i in 1..codes.len() {
        let mut n = same[i - 1];
        while n > 0 && codes[n] != codes[i] {
            n = same[n - 1];
        }
        same[i] = n + usize::from(codes[n] == codes[i]);
    }
    let period = codes.len() - same.last().copied()?;
    let is_cycle = (2..=MAX_CYCLE).contains(&period) && codes.len() >= (2 * period).max(MIN_CYCLED);
    is_cycle.then_some(period)
}

fn cycled<V: Copy>(values: &[V], literal: &dyn Fn(V) -> String) -> String {
    format!("{{ cycle = {} }}", list(values.iter().map(|v| literal(*v))))
}

/// A walk, if values grow evenly with the rows, except for a few late ones.
fn walk(
    kind: &DataType,
    rows: &[u64],
    at: &dyn Fn(usize) -> Option<i128>,
    distinct: usize,
) -> Option<String> {
    let n = rows.len();
    if n <= 10 || distinct * 2 <= n {
        return None;
    }
    let (first, last) = (at(0)?, at(n - 1)?);
    let rows_between = (rows[n - 1] - rows[0]) as f64;
    let step = last.checked_sub(first)? as f64 / rows_between;
    if step < 1.0 {
        return None;
    }
    let (mut drops, mut largest_drop, mut away) = (0, 0, 0);
    let mut before = first;
    for (i, row) in rows.iter().enumerate() {
        let value = at(i)?;
        if value < before {
            drops += 1;
            largest_drop = largest_drop.max(before - value);
        }
        before = before.max(value);
        let expected = (row - rows[0]) as f64 * step;
        let off = ((value - first) as f64 - expected).abs();
        away += usize::from(off > 0.01 * rows_between * step + 2.0 * step);
    }
    if drops * 5 >= n || away * 50 >= n {
        return None;
    }
    let start = literal(kind, first - (step * rows[0] as f64).round() as i128);
    let late = match drops {
        0 => String::new(),
        drops => {
            let by = difference(kind, largest_drop);
            format!(", late = {{ share = {}, by = {by} }}", rounded(drops as f64 / n as f64))
        }
    };
    let step = match is_temporal(kind) {
        true => (step.round() as i128).to_string(),
        false => digits(step / one(kind), 9),
    };
    Some(format!("{{ walk = {{ start = {start}, step = {step}, jitter = 1{late} }} }}"))
}

/// The largest step that most values are multiples of, and their share; `None` for a step of one unit.
fn whole_step(kind: &DataType, runs: &[(i128, u64)], n: u64) -> Option<(i128, f64)> {
    let steps: Vec<i128> = match kind {
        DataType::Date32 => Vec::new(),
        kind if is_temporal(kind) => {
            let second = per_second(kind);
            let long = [86_400, 3600, 900, 60, 1].map(|seconds| seconds * second);
            let short = [1_000, 1_000_000].into_iter().filter(|part| second % part == 0);
            long.into_iter().chain(short.map(|part| second / part).filter(|s| *s > 1)).collect()
        }
        _ => (1..18).rev().flat_map(|power| [10i128.pow(power), 10i128.pow(power) / 2]).collect(),
    };
    coarsest(&steps, runs, n, &|v, step| v % step == 0)
}

/// The coarsest step of (nearly) all values or, without one, of most. Frequent values do not count, because
/// they are atoms.
fn coarsest<V: Copy>(
    steps: &[V],
    runs: &[(V, u64)],
    n: u64,
    is_multiple: &dyn Fn(V, V) -> bool,
) -> Option<(V, f64)> {
    let rare: Vec<(V, u64)> = runs.iter().copied().filter(|run| !is_atom(run.1, n)).collect();
    let total: u64 = rare.iter().map(|run| run.1).sum();
    let share = |step: V| {
        let multiples: u64 = rare.iter().filter(|(v, _)| is_multiple(*v, step)).map(|(_, n)| n).sum();
        multiples as f64 / total as f64
    };
    let shares: Vec<(V, f64)> = steps.iter().map(|step| (*step, share(*step))).collect();
    let at_least = |least: f64| shares.iter().copied().find(|(_, share)| *share >= least);
    at_least(NEARLY_ALL).map(|(step, _)| (step, 1.0)).or_else(|| at_least(STEPPED))
}

/// The largest step with most real numbers nearest to its multiples, and their share.
fn real_step(kind: &DataType, runs: &[(f64, u64)], n: u64) -> Option<(f64, f64)> {
    let (near, noise) =
        if *kind == DataType::Float64 { (1e-12, f64::EPSILON) } else { (1e-6, f64::from(f32::EPSILON)) };
    let steps = [
        1000.0, 500.0, 100.0, 50.0, 10.0, 5.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0001,
        0.00001, 0.000001, 0.0000001, 0.00000001,
    ];
    // What sums of such values leave instead of 0.
    let zero = 4.0 * noise * usual_size(runs);
    coarsest(&steps, runs, n, &|v, step| {
        let tolerance = near * v.abs();
        // Every number is near to a multiple of a step that the type hardly resolves.
        let resolved = tolerance * 20.0 < step;
        v.abs() <= zero || (resolved && ((v / step).round() * step - v).abs() <= tolerance)
    })
}

/// The absolute value that 95 % of the values do not exceed.
fn usual_size(runs: &[(f64, u64)]) -> f64 {
    let mut sizes: Vec<f64> = runs.iter().map(|run| run.0.abs()).collect();
    let place = sizes.len().saturating_sub(1) * 19 / 20;
    if place < sizes.len() { *sizes.select_nth_unstable_by(place, f64::total_cmp).1 } else { 0.0 }
}

fn known_values(known: &Known, number: &dyn Fn(f64) -> String, (low, high): &(String, String)) -> String {
    let bounds = format!("min = {low}, max = {high}");
    let (name, parameters) = match known {
        Known::Uniform => ("uniform", bounds),
        Known::Normal { mean, stddev } => {
            ("normal", format!("mean = {}, stddev = {}, {bounds}", number(*mean), number(*stddev)))
        }
        Known::LogNormal { median, sigma } => {
            ("lognormal", format!("median = {}, sigma = {}, {bounds}", number(*median), rounded(*sigma)))
        }
        Known::Exponential { mean } => ("exponential", format!("mean = {}, {bounds}", number(*mean))),
        Known::Poisson { mean } => ("poisson", format!("mean = {}, {bounds}", number(*mean))),
        Known::Geometric { p } => ("geometric", format!("p = {}, {bounds}", digits(*p, 9))),
        Known::Zipf { n, s } => ("zipf", format!("n = {n}, s = {}", rounded(*s))),
    };
    format!("{{ {name} = {{ {parameters} }} }}")
}

/// The values with the bounds that the sample missed, which are as `rare` as one value in all.
fn with_bounds<V: Copy + PartialOrd>(runs: &[(V, u64)], bounds: [V; 2], rare: u64) -> Vec<(V, u64)> {
    let mut listed = runs.to_vec();
    for bound in bounds {
        let at = listed.partition_point(|run| run.0 < bound);
        if listed.get(at).is_none_or(|run| run.0 != bound) {
            listed.insert(at, (bound, rare.max(1)));
        }
    }
    listed
}

/// Each value with its share.
fn each<V: Copy>(runs: &[(V, u64)]) -> Described<V> {
    let all: u64 = runs.iter().map(|run| run.1).sum();
    let atoms = runs.iter().map(|(v, n)| (*v, *n as f64 / all.max(1) as f64)).collect();
    Described { atoms, points: Vec::new() }
}

/// `quantiles` in the notation of specs.
fn quantiles<V: Copy>(
    found: &Described<V>,
    literal: &dyn Fn(V) -> String,
    key: &dyn Fn(V) -> String,
    step: Option<(String, f64)>,
    others: &[(String, f64)],
) -> String {
    let mut parts = Vec::new();
    if !found.points.is_empty() {
        parts.push(format!("values = {}", list(found.points.iter().map(|(_, v)| literal(*v)))));
        parts.push(format!("shares = {}", list(found.points.iter().map(|(share, _)| digits(*share, 9)))));
    }
    // Thousands of shares must sum to 1.
    let precision = if found.points.is_empty() { 15 } else { 9 };
    let atoms = found.atoms.iter().map(|(v, alone)| (key(*v), *alone)).chain(others.iter().cloned());
    let mut atoms = atoms.map(|(name, alone)| (name, digits(alone, precision))).peekable();
    if atoms.peek().is_some() {
        parts.push(format!("atoms = {}", table(atoms)));
    }
    if let Some((step, share)) = step {
        parts.push(format!("step = {step}"));
        if share < 1.0 {
            parts.push(format!("stepped = {}", rounded(share)));
        }
    }
    format!("{{ quantiles = {{ {} }} }}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let (runs, _) = real_runs(&values.collect::<Vec<_>>().into());
        real_step(&DataType::Float64, &runs, runs.iter().map(|run| run.1).sum())
    }

    #[test]
    fn tiny_numbers_are_no_multiples_and_six_decimals_are() {
        assert_eq!(step((1..5000).map(|i| f64::from(i * 7919 % 4999) * 1.234_567e-15)), None);
        assert_eq!(step((1..5000).map(|i| (48e6 + f64::from(i * 7919 % 4999)) / 1e6)), Some((1e-6, 1.0)));
        // Sums of cents are cents, although some are not exactly 0.
        let cents = (1..5000).map(|i| if i % 9 == 0 { 5.5e-17 } else { f64::from(i % 777) / 100.0 });
        assert_eq!(step(cents), Some((0.01, 1.0)));
    }
}
