//! A column that is another one plus a difference, or the sum of others.
//!
//! The columns have the same type and are null in the same rows. A formula can only use earlier fields.

use std::borrow::Cow;

use crate::infer::by_column::by_column;
use crate::infer::notation::{is_temporal, quoted};
use crate::infer::relations::column::{Column, Numbers, REST};
use crate::infer::sample::leaf_sample::LeafSample;
use crate::infer::sample::numbered::{Values, runs, steps};
use crate::infer::values::numbers;

/// The most rows that are looked at to find a relation.
const LOOKED_AT: usize = 4096;

/// The most rows of the test whether a sum has the distribution of its column.
const TESTED: usize = 20_000;

/// The largest Kolmogorov-Smirnov distance of a column computed by its relation.
const FARTHEST: f64 = 0.02;

/// A difference that is never negative is a relation if its spread is smaller than this share of the column's.
/// Unrelated columns differ more than each of them varies.
const NARROWER: f64 = 0.7;

/// A difference with a smaller spread than this share of a part's is small.
const SMALL: f64 = 0.5;

/// The least share of rows in which a sum adds up to the same remainder.
const ADDS_UP: f64 = 0.5;

/// A relation of a column to earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sum {
    /// The column.
    pub of: usize,
    /// The columns that are added, or subtracted if the sign is -1.
    pub parts: Vec<(usize, f64)>,
}

/// Finds the sums and differences among the columns.
pub(crate) fn sums(columns: &[Column<'_>]) -> Vec<Sum> {
    let numbers = by_column(columns.len(), |i| columns[i].numbers());
    by_column(columns.len(), |of| sum(columns, &numbers, of)).into_iter().flatten().collect()
}

fn sum(columns: &[Column<'_>], numbers: &[Numbers<'_>], of: usize) -> Option<Sum> {
    let values = numbers[of].as_ref().filter(|values| values.len() >= 100)?;
    if spread(values) == 0.0 {
        return None;
    }
    let usable: Vec<usize> = (0..of)
        .filter(|i| columns[of].can_use(&columns[*i]))
        .filter(|i| numbers[*i].as_ref().is_some_and(|other| other.iter().any(|v| *v != other[0])))
        .collect();
    let temporal = columns[of].leaf.is_some_and(|(kind, _)| is_temporal(kind));
    let sum = if temporal { None } else { added(numbers, of, &usable) };
    sum.or_else(|| difference(numbers, of, &usable))
}

/// Column `of` as a sum of at least two of `usable`, by least squares: all factors are 1 or -1, and most rows
/// have the same remainder.
fn added(numbers: &[Numbers<'_>], of: usize, usable: &[usize]) -> Option<Sum> {
    let values = numbers[of].as_ref()?;
    let every = values.len().div_ceil(LOOKED_AT);
    let mut rows: Vec<usize> = (0..values.len()).step_by(every).collect();
    // A column without different values has no factor.
    let varies = |column: &Cow<'_, [f64]>| rows.iter().any(|row| column[*row] != column[rows[0]]);
    let usable: Vec<usize> =
        usable.iter().copied().filter(|i| numbers[*i].as_ref().is_some_and(varies)).collect();
    let usable = independent(numbers, usable, &rows);
    let columns: Vec<&[f64]> = usable.iter().filter_map(|i| numbers[*i].as_deref()).collect();
    if columns.len() < 2 || columns.len() > 64 {
        return None;
    }
    // What a sum may be off by rounding.
    let exact = 1e-7 * rows.iter().map(|row| values[*row].abs()).fold(1.0, f64::max);
    let mut factors = Vec::new();
    for _ in 0..4 {
        factors = least_squares(&columns, values, &rows)?;
        let off = |row: &usize| {
            let sum: f64 = columns.iter().zip(&factors).map(|(column, factor)| column[*row] * factor).sum();
            (values[*row] - sum - factors[columns.len()]).abs()
        };
        let mut by_error: Vec<(f64, usize)> = rows.iter().map(|row| (off(row), *row)).collect();
        by_error.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Rows that do not add up must not bend the factors. Those that do stay: among them may be the only ones
        // in which a column has a rare value.
        let kept = (by_error.len() * 9 / 10).max(columns.len() + 1).min(by_error.len());
        let limit = kept.checked_sub(1).map_or(0.0, |last| by_error[last].0).max(exact);
        rows = by_error.into_iter().filter(|(off, _)| *off <= limit).map(|(_, row)| row).collect();
    }
    let mut parts = Vec::new();
    for (i, factor) in usable.iter().zip(&factors) {
        match factor.round() {
            rounded if (factor - rounded).abs() > 0.05 || rounded.abs() > 1.0 => return None,
            0.0 => {}
            sign => parts.push((*i, sign)),
        }
    }
    // Small differences of large numbers are far off where these are not exactly as in the data.
    let is_wide = |(i, _): &(usize, f64)| {
        numbers[*i].as_ref().is_some_and(|part| spread(part) * SMALL > spread(values))
    };
    if parts.iter().any(|(_, sign)| *sign < 0.0) && parts.iter().any(is_wide) {
        return None;
    }
    let sum = Sum { of, parts };
    let rest = rest(numbers, &sum)?;
    let own = most_frequent(values).1;
    let (_, share) = most_frequent(&rest);
    (sum.parts.len() > 1 && share >= ADDS_UP && share > own + 0.2).then_some(sum)
}

/// Returns the columns that are linearly independent of the ones before them; copies, for example, are left out.
/// Least squares has no unique solution for dependent columns.
fn independent(numbers: &[Numbers<'_>], columns: Vec<usize>, rows: &[usize]) -> Vec<usize> {
    /// The rest of a column that is a combination of others, relative to its spread.
    const NOTHING: f64 = 1e-9;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let mut kept = Vec::new();
    for i in columns {
        let Some(values) = numbers.get(i).and_then(Option::as_ref) else { continue };
        let mean = rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len().max(1) as f64;
        let mut rest: Vec<f64> = rows.iter().map(|row| values[*row] - mean).collect();
        let size = product(&rest, &rest).sqrt();
        // Twice, because rounding errors of the first time are as large as what may be left.
        for _ in 0..2 {
            for one in &basis {
                let part = product(&rest, one);
                rest.iter_mut().zip(one).for_each(|(rest, one)| *rest -= part * one);
            }
        }
        let left = product(&rest, &rest).sqrt();
        if left > NOTHING * size {
            rest.iter_mut().for_each(|v| *v /= left);
            basis.push(rest);
            kept.push(i);
        }
    }
    kept
}

/// Column `of` as another one plus a difference that is narrow, or never negative.
fn difference(numbers: &[Numbers<'_>], of: usize, usable: &[usize]) -> Option<Sum> {
    let values = numbers[of].as_deref()?;
    let own = spread(values);
    let near = usable.iter().filter_map(|i| {
        let other = numbers[*i].as_deref()?;
        let rest = |row: usize| values[row] - other[row];
        let ratio = spread_of(values.len(), rest) / own;
        // Most differences are too wide: only of others do all rows count.
        let is_negative = |row: &usize| rest(*row) < 0.0;
        let rising = || (0..values.len()).filter(is_negative).count() as f64 / (values.len() as f64) < 0.001;
        (ratio < 0.25 || (ratio < NARROWER && rising())).then_some((ratio, *i))
    });
    let (_, by) = near.min_by(|a, b| a.0.total_cmp(&b.0))?;
    // The difference is drawn independently: the sum must still have the distribution of the column.
    let other = numbers[by].as_deref()?;
    let n = values.len();
    let rest = |row: usize| values[row] - other[row];
    let rows = || (0..n).step_by(n.div_ceil(TESTED));
    let apart = (n / 2) | 1;
    let counted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        runs(&values)
    };
    let drawn = counted(rows().map(|row| other[row] + rest((row + apart) % n)).collect());
    let real = counted(rows().map(|row| values[row]).collect());
    (steps(&drawn, &real) <= FARTHEST).then(|| Sum { of, parts: vec![(by, 1.0)] })
}

/// What a sum says, and the shares of rows for which it holds in two samples: the parts add up to the most
/// frequent remainder or, for a single part, the column is at least as great. In a sample without
/// numeric columns it never holds.
pub(crate) fn holds(a: &[Column<'_>], b: &[Column<'_>], sum: &Sum) -> Option<(String, f64, f64)> {
    let (ours, theirs) = (rest_by_row(a, sum)?, rest_by_row(b, sum).unwrap_or_default());
    let share = |values: &[f64], test: &dyn Fn(f64) -> bool| {
        values.iter().filter(|v| test(**v)).count() as f64 / values.len().max(1) as f64
    };
    let of = a[sum.of].name;
    if let [(part, _)] = sum.parts[..] {
        let at_least = |v: f64| v >= 0.0;
        let text = format!("{of} >= {}", a[part].name);
        return Some((text, share(&ours, &at_least), share(&theirs, &at_least)));
    }
    let (usual, _) = most_frequent(&ours);
    let adds_up = |v: f64| (v - usual).abs() < 1e-5 + 1e-9 * usual.abs();
    let parts: Vec<String> = sum
        .parts
        .iter()
        .map(|(i, sign)| format!("{} {}", if *sign < 0.0 { "-" } else { "+" }, a[*i].name))
        .collect();
    // Not "-0".
    let usual = usual + 0.0;
    let text = format!("{of} = {} + {usual}", parts.join(" ").trim_start_matches("+ "));
    Some((text, share(&ours, &adds_up), share(&theirs, &adds_up)))
}

/// Whether the remainder is the same in all rows, as in a copy.
pub(crate) fn is_exact(columns: &[Column<'_>], sum: &Sum) -> bool {
    /// The share of rows that counts as all of them.
    const NEARLY_ALL: f64 = 0.999;
    rest_by_row(columns, sum).is_some_and(|rest| most_frequent(&rest).1 >= NEARLY_ALL)
}

/// The rest of a column without the parts of its sum, for the rows in which it has a value; NaN where a part
/// has none.
fn rest_by_row(columns: &[Column<'_>], sum: &Sum) -> Option<Vec<f64>> {
    let of = columns.get(sum.of)?;
    let mut rest = of.numbers_by_row()?.into_owned();
    for (i, sign) in &sum.parts {
        let part = columns.get(*i)?.numbers_by_row()?;
        rest.iter_mut().zip(&*part).for_each(|(rest, part)| *rest -= sign * part);
    }
    Some(rest.into_iter().zip(of.there).filter(|(_, there)| **there).map(|(rest, _)| rest).collect())
}

/// The rest of a column without the parts of its sum.
fn rest(numbers: &[Numbers<'_>], sum: &Sum) -> Option<Vec<f64>> {
    let mut rest = numbers[sum.of].as_deref()?.to_vec();
    for (i, sign) in &sum.parts {
        for (rest, part) in rest.iter_mut().zip(numbers[*i].as_deref()?) {
            *rest -= sign * part;
        }
    }
    Some(rest)
}

/// The distance between the 5 % and 95 % quantiles.
fn spread(values: &[f64]) -> f64 {
    spread_of(values.len(), |row| values[row])
}

/// The same of the values of `n` rows.
fn spread_of(n: usize, value: impl Fn(usize) -> f64) -> f64 {
    let mut some: Vec<f64> = (0..n).step_by(n.div_ceil(LOOKED_AT).max(1)).map(value).collect();
    some.sort_by(f64::total_cmp);
    match some.len() {
        0 => 0.0,
        n => some[n * 19 / 20] - some[n / 20],
    }
}

/// The most frequent value, apart from rounding errors, and its share.
fn most_frequent(values: &[f64]) -> (f64, f64) {
    let rounded: Vec<i64> = values.iter().map(|value| (value * 1e5).round() as i64).collect();
    let counts = Values::from(rounded).runs(|_| true);
    let most = counts.into_iter().max_by_key(|(value, n)| (*n, *value)).unwrap_or((0, 0));
    (most.0 as f64 / 1e5, most.1 as f64 / values.len().max(1) as f64)
}

/// The factors of `columns`, and a constant, whose sum is nearest to `values` in `rows`.
fn least_squares(columns: &[&[f64]], values: &[f64], rows: &[usize]) -> Option<Vec<f64>> {
    let n = columns.len() + 1;
    let at = |column: usize, row: usize| columns.get(column).map_or(1.0, |values| values[row]);
    let line = |i: usize| -> Vec<f64> {
        let with = |j: usize, row: usize| if j == n { values[row] } else { at(j, row) };
        (0..=n).map(|j| rows.iter().map(|row| at(i, *row) * with(j, *row)).sum()).collect()
    };
    let mut matrix: Vec<Vec<f64>> = (0..n).map(line).collect();
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        let size = matrix[i][i];
        if size.abs() < 1e-9 {
            return None;
        }
        let own = matrix[i].clone();
        for (k, line) in matrix.iter_mut().enumerate() {
            if k != i {
                let factor = line[i] / size;
                line.iter_mut().zip(&own).for_each(|(v, own)| *v -= factor * own);
            }
        }
    }
    Some((0..n).map(|i| matrix[i][n] / matrix[i][i]).collect())
}

/// The `values` of the column of a sum: a formula with the remainder as a draw.
pub(crate) fn values(columns: &[Column<'_>], sum: &Sum) -> Option<String> {
    let (kind, sample) = columns[sum.of].leaf?;
    let mut formula = String::new();
    for (i, sign) in &sum.parts {
        match (formula.is_empty(), *sign < 0.0) {
            (true, false) => {}
            (true, true) => formula.push('-'),
            (false, false) => formula.push_str(" + "),
            (false, true) => formula.push_str(" - "),
        }
        formula.push_str(&columns[*i].formula_name()?);
    }
    let draw = match sample {
        LeafSample::Whole(values) => {
            let mut rest = values.to_vec();
            for (i, sign) in &sum.parts {
                let LeafSample::Whole(part) = columns[*i].leaf?.1 else { return None };
                for (rest, part) in rest.iter_mut().zip(part.iter()) {
                    *rest = rest.checked_sub(if *sign < 0.0 { part.checked_neg()? } else { *part })?;
                }
            }
            numbers::whole_quantiles(kind, rest)
        }
        LeafSample::Real(values) => {
            let mut rest = rest_by_row(columns, sum)?;
            // Differences of cents are cents, apart from rounding errors.
            if let Some(a_unit) = numbers::multiples_a_unit(kind, values) {
                rest.iter_mut().for_each(|v| *v = (*v * a_unit).round() / a_unit + 0.0);
                formula = format!("round(({formula} + {REST}) * {a_unit}) / {a_unit}");
                return Some(expression(&formula, &numbers::real_quantiles(kind, rest)));
            }
            numbers::real_quantiles(kind, rest)
        }
        _ => return None,
    };
    Some(expression(&format!("{formula} + {REST}"), &draw))
}

fn expression(formula: &str, draw: &str) -> String {
    format!("{{ expression = {{ formula = {}, draws = {{ {REST} = {draw} }} }} }}", quoted(formula))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_found_although_some_rows_do_not_add_up() {
        let (a, b, c): (Vec<f64>, Vec<f64>, Vec<f64>) = (
            (0..5000).map(|i| f64::from(i * 7919 % 1013)).collect(),
            (0..5000).map(|i| f64::from(i * 104_729 % 17)).collect(),
            (0..5000).map(|i| f64::from(i * 31 % 29)).collect(),
        );
        let total: Vec<f64> =
            (0..5000).map(|i| a[i] - b[i] + 1.0 + if i % 25 == 0 { (i % 7) as f64 } else { 0.0 }).collect();
        let numbers = [a, b, c, total].map(|v| Some(v.into()));
        let sum = added(&numbers, 3, &[0, 1, 2]).unwrap();
        assert_eq!(sum.parts, [(0, 1.0), (1, -1.0)]);
        assert_eq!(added(&numbers, 2, &[0, 1]), None);
    }

    #[test]
    fn a_sum_is_found_although_a_column_is_a_copy_of_a_part() {
        let net: Vec<f64> = (0..4000).map(|i| f64::from(i * 7919 % 10_007) / 100.0).collect();
        let vat: Vec<f64> = net.iter().map(|v| (v * 20.0).round() / 100.0).collect();
        let gross = (0..4000).map(|i| net[i] + vat[i]).collect();
        let numbers = [net.clone(), net, vat, gross].map(|v: Vec<f64>| Some(v.into()));
        assert_eq!(added(&numbers, 3, &[0, 1, 2]).unwrap().parts, [(0, 1.0), (2, 1.0)]);
    }

    /// As in taxi trips: nearly every tax is half a dollar, and one of 25 totals has something added.
    #[test]
    fn a_sum_is_found_although_a_part_hardly_ever_varies() {
        let parts: Vec<Vec<f64>> = vec![
            (0..4000).map(|i| f64::from(i * 7919 % 1013) / 10.0).collect(),
            (0..4000).map(|i| if i % 50 == 0 { [0.0, -0.5][i / 50 % 2] } else { 0.5 }).collect(),
            (0..4000).map(|i| if i % 13 == 0 { 6.94 } else { 0.0 }).collect(),
            (0..4000).map(|i| f64::from(i * 31 % 577) / 100.0).collect(),
        ];
        let sum = |i: usize| parts.iter().map(|part| part[i]).sum::<f64>();
        let total = (0..4000).map(|i| sum(i) + if i % 25 == 7 { 1.25 } else { 0.0 }).collect();
        let numbers: Vec<Numbers<'_>> =
            parts.clone().into_iter().chain([total]).map(|v| Some(v.into())).collect();
        let found = added(&numbers, 4, &[0, 1, 2, 3]).unwrap();
        assert_eq!(found.parts, [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)]);
    }
}
