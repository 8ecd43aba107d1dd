//! Columns of few distinct values that depend on one another: a city and its country, a rate and its code.
//!
//! Such a column is drawn by weights for each value of an earlier one, so that the pairs of values occur as often as
//! in the sample. Of several earlier columns the one counts that says most about it.

use std::collections::HashMap;

use arrow_schema::DataType;

use crate::infer::leaf_sample::LeafSample;
use crate::infer::notation::{key, number, quoted, single};
use crate::infer::relations::Column;
use crate::infer::texts::Verbatim;

/// The most distinct values of either column.
const MOST_DISTINCT: usize = 256;

/// The most pairs of values to list.
const MOST_PAIRS: usize = 4096;

/// How much the weights must differ from those of all rows, as a total variation distance.
const LEAST: f64 = 0.05;

/// A column whose weights depend on an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependence {
    pub of: usize,
    pub by: usize,
}

/// The values of a column as numbers of a list of few.
struct Categories {
    /// For each row; `None` for null.
    codes: Vec<Option<u32>>,
    /// The values as keys of a table.
    keys: Vec<String>,
}

/// Finds the columns that depend on an earlier one.
pub(crate) fn dependences(columns: &[Column<'_>]) -> Vec<Dependence> {
    let categories: Vec<Option<Categories>> =
        columns.iter().map(|column| categories(column, Verbatim::Never)).collect();
    let found = (0..columns.len()).filter(|of| !is_sorted(&columns[*of])).filter_map(|of| {
        let own = categories.get(of)?.as_ref()?;
        let strengths = (0..of).filter(|by| usable(columns, of, *by)).filter_map(|by| {
            let table = Table::new(own, categories.get(by)?.as_ref()?);
            let strength = table.strength();
            // Of independent columns, too, the weights of a sample differ.
            let noise = 0.5 * ((own.keys.len() * table.given.len()) as f64 / table.rows.max(1.0)).sqrt();
            (strength > LEAST + noise && table.pairs() <= MOST_PAIRS).then_some((strength, by))
        });
        let (_, by) = strengths.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        Some(Dependence { of, by })
    });
    found.collect()
}

/// Whether the values grow from row to row, which weights would not keep.
pub(crate) fn is_sorted(column: &Column<'_>) -> bool {
    match column.leaf {
        Some((_, LeafSample::Whole(values))) => values.is_sorted(),
        Some((_, LeafSample::Real(values))) => values.is_sorted(),
        _ => false,
    }
}

/// Whether a spec can draw column `of` by column `by`.
pub(crate) fn usable(columns: &[Column<'_>], of: usize, by: usize) -> bool {
    let (of, by) = (&columns[of], &columns[by]);
    (of.nullable || !by.nullable) && (of.there == by.there || keeps_nulls(by))
}

/// Whether the nulls of columns that depend on `by` are drawn as those of others.
pub(crate) fn keeps_nulls(by: &Column<'_>) -> bool {
    !by.there.contains(&false)
}

/// The `values` of a column that depends on another.
pub(crate) fn values(columns: &[Column<'_>], dependence: Dependence, verbatim: Verbatim) -> Option<String> {
    let (of, by) = (&columns[dependence.of], &columns[dependence.by]);
    let (own, others) = (categories(of, verbatim)?, categories(by, verbatim)?);
    let table = Table::new(&own, &others);
    let weights = |counts: &[u64]| {
        let weights = own.keys.iter().zip(counts).filter(|(_, n)| **n > 0);
        let weights: Vec<String> = weights.map(|(key, n)| format!("{key} = {n}")).collect();
        format!("{{ {} }}", weights.join(", "))
    };
    let given = others.keys.iter().zip(&table.given).filter(|(_, counts)| counts.iter().any(|n| *n > 0));
    let given: Vec<String> = given.map(|(key, counts)| format!("{key} = {}", weights(counts))).collect();
    Some(format!(
        "{{ weights_by = {{ field = {}, given = {{ {} }}, otherwise = {} }} }}",
        quoted(by.name),
        given.join(", "),
        weights(&table.all)
    ))
}

/// How far the weights of a column are from those of all rows, given the value of the other one, on average.
pub(crate) fn strength(columns: &[Column<'_>], found: Dependence) -> Option<f64> {
    let of = categories(columns.get(found.of)?, Verbatim::Never)?;
    let by = categories(columns.get(found.by)?, Verbatim::Never)?;
    Some(Table::new(&of, &by).strength())
}

/// How often the values of a column occur with those of another.
struct Table {
    /// For each value of the other column, the count of each of the column's values.
    given: Vec<Vec<u64>>,
    all: Vec<u64>,
    rows: f64,
}

impl Table {
    fn new(own: &Categories, others: &Categories) -> Self {
        let mut given = vec![vec![0; own.keys.len()]; others.keys.len()];
        let mut all = vec![0; own.keys.len()];
        for (code, other) in own.codes.iter().zip(&others.codes) {
            if let (Some(code), Some(other)) = (code, other) {
                given[*other as usize][*code as usize] += 1;
                all[*code as usize] += 1;
            }
        }
        let rows = all.iter().sum::<u64>() as f64;
        Table { given, all, rows }
    }

    fn pairs(&self) -> usize {
        self.given.iter().flatten().filter(|n| **n > 0).count()
    }

    /// The mean total variation distance between the weights given a value, and those of all rows.
    fn strength(&self) -> f64 {
        let mut apart = 0.0;
        for counts in &self.given {
            let sum = counts.iter().sum::<u64>() as f64;
            let expected = self.all.iter().map(|n| *n as f64 / self.rows.max(1.0) * sum);
            apart +=
                counts.iter().zip(expected).map(|(n, expected)| (*n as f64 - expected).abs()).sum::<f64>();
        }
        apart / 2.0 / self.rows.max(1.0)
    }
}

/// The values of a column as categories; `None` if they are too many, or all the same.
fn categories(column: &Column<'_>, verbatim: Verbatim) -> Option<Categories> {
    let (kind, sample) = column.leaf?;
    let (codes, keys) = match sample {
        LeafSample::Whole(values) => coded(values.iter().copied(), |v| key(kind, v.into()))?,
        LeafSample::Real(values) => {
            let name = |bits: u64| match kind {
                DataType::Float64 => quoted(&number(f64::from_bits(bits))),
                _ => quoted(&single(f64::from_bits(bits))),
            };
            values.iter().all(|v| v.is_finite()).then_some(())?;
            coded(values.iter().map(|v| v.to_bits()), name)?
        }
        LeafSample::Text(texts) => texts.categories(verbatim)?,
        _ => return None,
    };
    if !(2..=MOST_DISTINCT).contains(&keys.len()) {
        return None;
    }
    let mut codes = codes.into_iter();
    let codes = column.there.iter().map(|there| there.then(|| codes.next()).flatten()).collect();
    Some(Categories { codes, keys })
}

/// The number of each value in the order of their first occurrences, and their names.
fn coded<V: Copy + Eq + std::hash::Hash>(
    values: impl Iterator<Item = V>,
    name: impl Fn(V) -> String,
) -> Option<(Vec<u32>, Vec<String>)> {
    let mut known: HashMap<V, u32> = HashMap::new();
    let mut codes = Vec::new();
    let mut keys = Vec::new();
    for value in values {
        let next = keys.len() as u32;
        let code = *known.entry(value).or_insert(next);
        if code == next {
            keys.push(name(value));
            if keys.len() > MOST_DISTINCT {
                return None;
            }
        }
        codes.push(code);
    }
    Some((codes, keys))
}
