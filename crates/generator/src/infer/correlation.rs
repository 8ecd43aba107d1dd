//! Numbers whose ranks are correlated: a fare and a distance, a weight and a price.
//!
//! Of the earlier columns, a column follows the one whose ranks are correlated most with its own.

use crate::infer::dependence::{is_sorted, usable};
use crate::infer::leaf_sample::LeafSample;
use crate::infer::notation::{digits, quoted};
use crate::infer::relations::Column;

/// Columns of fewer distinct values are categories.
const LEAST_DISTINCT: usize = 50;

/// The least rank correlation to keep.
const LEAST: f64 = 0.1;

/// The most rows that are looked at.
const LOOKED_AT: usize = 20_000;

/// A column whose ranks are correlated with those of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Correlation {
    pub of: usize,
    pub by: usize,
    /// Spearman's rank correlation.
    pub rank_correlation: f64,
}

/// Finds the columns that follow an earlier one; `is_free` says which columns may do either.
pub(crate) fn correlations(columns: &[Column<'_>], is_free: &dyn Fn(usize) -> bool) -> Vec<Correlation> {
    let by_row: Vec<Option<Vec<f64>>> = (columns.iter().enumerate())
        .map(|(i, column)| (is_free(i) && !is_sorted(column)).then(|| numbers_by_row(column)).flatten())
        .collect();
    let found = (0..columns.len()).filter_map(|of| {
        let own = by_row.get(of)?.as_ref()?;
        let candidates = (0..of).filter(|by| usable(columns, of, *by)).filter_map(|by| {
            let rank_correlation = spearman(own, by_row.get(by)?.as_ref()?)?;
            Some(Correlation { of, by, rank_correlation })
        });
        candidates.max_by(|a, b| a.rank_correlation.abs().total_cmp(&b.rank_correlation.abs()))
    });
    found.collect()
}

impl Correlation {
    /// `values`, which are quantiles, with the column that they follow.
    pub(crate) fn follows(&self, values: &str, by: &str) -> Option<String> {
        let quantiles = values.strip_suffix(" } }").filter(|values| values.starts_with("{ quantiles = {"))?;
        let correlation = digits(self.rank_correlation, 4);
        Some(format!(
            "{quantiles}, follows = {{ field = {}, correlation = {correlation} }} }} }}",
            quoted(by)
        ))
    }

    /// The correlation of the same columns in another sample.
    pub(crate) fn in_sample(&self, columns: &[Column<'_>]) -> Option<f64> {
        let own = numbers_of(columns.get(self.of)?)?;
        rank_correlation(&own, &numbers_of(columns.get(self.by)?)?)
    }
}

/// The numbers of a column with many distinct ones.
fn numbers_by_row(column: &Column<'_>) -> Option<Vec<f64>> {
    let by_row = numbers_of(column)?;
    let mut some: Vec<u64> =
        by_row.iter().filter(|v| v.is_finite()).take(LOOKED_AT).map(|v| v.to_bits()).collect();
    some.sort_unstable();
    some.dedup();
    (some.len() > LEAST_DISTINCT).then_some(by_row)
}

/// The number of each row; NaN for nulls.
fn numbers_of(column: &Column<'_>) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = match column.leaf?.1 {
        LeafSample::Whole(values) => values.iter().map(|v| *v as f64).collect(),
        LeafSample::Real(values) => values.clone(),
        _ => return None,
    };
    let mut numbers = numbers.into_iter();
    Some(
        column
            .there
            .iter()
            .map(|there| there.then(|| numbers.next()).flatten().unwrap_or(f64::NAN))
            .collect(),
    )
}

/// The rank correlation, if it is not what random samples have, too.
fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let rows = a.iter().zip(b).filter(|(a, b)| a.is_finite() && b.is_finite()).count().min(LOOKED_AT);
    let noise = 4.0 / (rows.max(1) as f64).sqrt();
    rank_correlation(a, b).filter(|correlation| correlation.abs() > LEAST.max(noise))
}

fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let both: Vec<(f64, f64)> =
        a.iter().copied().zip(b.iter().copied()).filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
    if both.len() < 100 {
        return None;
    }
    let every = both.len().div_ceil(LOOKED_AT);
    let some: Vec<(f64, f64)> = both.into_iter().step_by(every).collect();
    let (a, b) = (ranks(some.iter().map(|pair| pair.0)), ranks(some.iter().map(|pair| pair.1)));
    let mean = (some.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    (spread > 0.0).then(|| product(&a, &b) / spread)
}

/// The rank of each value; equal ones share the mean of theirs.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|i| ranks[*i] = mean);
        first += equal.len();
    }
    ranks
}
