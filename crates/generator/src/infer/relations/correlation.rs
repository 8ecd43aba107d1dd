//! Numbers whose ranks are correlated: a fare and a distance, a weight and a price.
//!
//! Of the earlier columns, a column follows the one whose ranks are correlated most with its own.

use std::borrow::Cow;

use crate::infer::by_column::by_column;
use crate::infer::notation::{digits, quoted};
use crate::infer::relations::Column;
use crate::infer::relations::dependence::{is_sorted, usable};

/// Columns of fewer distinct values are categories.
const MIN_DISTINCT: usize = 50;

/// The least rank correlation to keep.
const MIN: f64 = 0.1;

/// The most rows that are looked at.
const LOOKED_AT: usize = 20_000;

/// A column whose ranks are correlated with an earlier column's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Correlation {
    pub of: usize,
    pub by: usize,
    /// Spearman's rank correlation.
    pub rank_correlation: f64,
}

/// Finds the columns that follow an earlier one; `is_free` says which columns may do either.
pub(crate) fn correlations(
    columns: &[Column<'_>],
    is_free: &(dyn Fn(usize) -> bool + Sync),
) -> Vec<Correlation> {
    let ranked = by_column(columns.len(), |i| {
        (is_free(i) && !is_sorted(&columns[i])).then(|| Ranked::new(&columns[i])).flatten()
    });
    let found = by_column(columns.len(), |of| {
        let own = ranked[of].as_ref()?;
        let candidates = (0..of).filter(|by| usable(columns, of, *by)).filter_map(|by| {
            let rank_correlation = own.correlation(ranked[by].as_ref()?)?;
            Some(Correlation { of, by, rank_correlation })
        });
        candidates.max_by(|a, b| a.rank_correlation.abs().total_cmp(&b.rank_correlation.abs()))
    });
    found.into_iter().flatten().collect()
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
}

/// The numbers of a column with many distinct ones.
struct Ranked<'a> {
    by_row: Cow<'a, [f64]>,
    /// The ranks of the rows that are looked at, if each row has a number.
    ranks: Option<Vec<f64>>,
}

impl<'a> Ranked<'a> {
    fn new(column: &'a Column<'_>) -> Option<Self> {
        let by_row = column.numbers_by_row()?;
        let finite = by_row.iter().filter(|v| v.is_finite());
        let mut some: Vec<u64> = finite.take(LOOKED_AT).map(|v| v.to_bits()).collect();
        some.sort_unstable();
        some.dedup();
        if some.len() <= MIN_DISTINCT {
            return None;
        }
        let every = by_row.len().div_ceil(LOOKED_AT);
        let is_whole = by_row.iter().all(|v| v.is_finite());
        let ranks = is_whole.then(|| ranks(by_row.iter().copied().step_by(every)));
        Some(Ranked { by_row, ranks })
    }

    /// The rank correlation, if it is not what random samples have, too.
    fn correlation(&self, other: &Ranked<'_>) -> Option<f64> {
        let (correlation, rows) = match (&self.ranks, &other.ranks) {
            (Some(own), Some(others)) => (product_moment(own, others)?, self.by_row.len()),
            _ => rank_correlation(&self.by_row, &other.by_row)?,
        };
        let noise = 4.0 / (rows.clamp(1, LOOKED_AT) as f64).sqrt();
        Some(correlation).filter(|correlation| correlation.abs() > MIN.max(noise))
    }
}

/// The rank correlation, and the number of rows in which both have a number.
fn rank_correlation(a: &[f64], b: &[f64]) -> Option<(f64, usize)> {
    let both = || a.iter().copied().zip(b.iter().copied()).filter(|(a, b)| a.is_finite() && b.is_finite());
    let rows = both().count();
    let every = rows.div_ceil(LOOKED_AT).max(1);
    let (a, b): (Vec<f64>, Vec<f64>) = both().step_by(every).unzip();
    Some((product_moment(&ranks(a.into_iter()), &ranks(b.into_iter()))?, rows))
}

/// The correlation of ranks, if there are enough.
fn product_moment(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 100 {
        return None;
    }
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let spread = (product(a, a) * product(b, b)).sqrt();
    (spread > 0.0).then(|| product(a, b) / spread)
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
