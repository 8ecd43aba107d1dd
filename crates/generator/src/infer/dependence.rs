//! Columns of few distinct values that depend on one another: a city and its country, a rate and its code.
//!
//! Such a column is drawn by weights for each value of an earlier one, so that the pairs of values occur as often as
//! in the sample. Of several earlier columns the one counts that says most about it.

use std::collections::{BTreeMap, HashMap};

use arrow_schema::DataType;

use crate::infer::leaf_sample::LeafSample;
use crate::infer::notation::{key, number, quoted, single};
use crate::infer::relations::Column;
use crate::infer::texts::Verbatim;

/// The most distinct values of either column.
const MOST_DISTINCT: usize = 256;

/// The same if a column is a function of the other one: the price of an article.
const MOST_KEYS: usize = 10_000;

/// How often each value of the other column occurs on average, if a column is a function of that.
const TIMES_EACH: usize = 4;

/// The most pairs of values to list.
const MOST_PAIRS: usize = 4096;

/// How much the weights must differ from those of all rows, as a total variation distance.
const LEAST: f64 = 0.05;

/// A column whose weights depend on an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependence {
    pub of: usize,
    pub by: usize,
    /// Whether each value of the other column has a single one of this: looked for where there are more values than
    /// can have weights.
    pub is_function: bool,
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
            let others = categories.get(by)?.as_ref()?;
            if own.keys.len().max(others.keys.len()) > MOST_DISTINCT {
                let strength = own.is_function_of(others).then(|| own.spread()).filter(|s| *s > LEAST)?;
                return Some((strength, by, true));
            }
            let table = Table::new(own, others);
            let strength = table.strength();
            // Of independent columns, too, the weights of a sample differ.
            let noise = 0.5 * ((own.keys.len() * table.given.len()) as f64 / table.rows.max(1.0)).sqrt();
            (strength > LEAST + noise && table.pairs() <= MOST_PAIRS).then_some((strength, by, false))
        });
        let (_, by, is_function) = strengths.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        Some(Dependence { of, by, is_function })
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
    if dependence.is_function {
        return Some(function(&own, &others, by.name));
    }
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

/// The weights of a column that is a function of another one.
fn function(own: &Categories, others: &Categories, by: &str) -> String {
    let values = own.by_key(others).unwrap_or_default();
    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
    own.codes.iter().flatten().for_each(|code| *all.entry(*code).or_default() += 1);
    let name = |code: u32| own.keys.get(code as usize).map_or("", String::as_str);
    let given = others.keys.iter().zip(values);
    let given: Vec<String> =
        given.filter_map(|(key, value)| Some(format!("{key} = {{ {} = 1 }}", name(value?)))).collect();
    let all: Vec<String> = all.into_iter().map(|(code, n)| format!("{} = {n}", name(code))).collect();
    format!(
        "{{ weights_by = {{ field = {}, given = {{ {} }}, otherwise = {{ {} }} }} }}",
        quoted(by),
        given.join(", "),
        all.join(", ")
    )
}

/// The share of rows in which the column has the value that is most frequent for that of the other one.
pub(crate) fn functional(columns: &[Column<'_>], found: Dependence) -> Option<f64> {
    let of = categories(columns.get(found.of)?, Verbatim::Never)?;
    let by = categories(columns.get(found.by)?, Verbatim::Never)?;
    let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
    let mut rows = 0u64;
    for pair in by.codes.iter().zip(&of.codes) {
        if let (Some(key), Some(value)) = pair {
            *pairs.entry((*key, *value)).or_default() += 1;
            rows += 1;
        }
    }
    let mut most: HashMap<u32, u64> = HashMap::new();
    for ((key, _), n) in pairs {
        let most = most.entry(key).or_default();
        *most = n.max(*most);
    }
    Some(most.values().sum::<u64>() as f64 / rows.max(1) as f64)
}

/// The columns whose weights differ where another column is null, each with the one of which that says most. A spec
/// has no such weights, unless both are null in the same rows.
pub(crate) fn by_nulls(columns: &[Column<'_>]) -> Vec<(usize, usize)> {
    let has_both = |by: &usize| columns[*by].there.contains(&false) && columns[*by].there.contains(&true);
    let mut nullable: Vec<usize> = (0..columns.len()).filter(has_both).collect();
    // Of columns that are null together one is enough.
    let mut first: Vec<usize> = Vec::new();
    nullable.retain(|by| {
        let is_first = first.iter().all(|known| columns[*known].there != columns[*by].there);
        first.extend(is_first.then_some(*by));
        is_first
    });
    let found = (0..columns.len()).filter(|_| !nullable.is_empty()).filter_map(|of| {
        let own = few(&columns[of])?;
        let others = nullable.iter().filter(|by| **by != of && columns[of].there != columns[**by].there);
        let strengths = others.filter_map(|by| {
            let (strength, noise) = strength_by_nulls(&own, columns[*by].there);
            (strength > LEAST + noise).then_some((strength, *by))
        });
        let (_, by) = strengths.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        Some((of, by))
    });
    found.collect()
}

/// How far the weights of a column, given whether another one is null, are from those of all rows on average, and
/// how far they are by chance.
pub(crate) fn null_strength(columns: &[Column<'_>], of: usize, by: usize) -> Option<(f64, f64)> {
    Some(strength_by_nulls(&few(columns.get(of)?)?, columns.get(by)?.there))
}

/// The values of a column with few enough for weights.
fn few(column: &Column<'_>) -> Option<Categories> {
    categories(column, Verbatim::Never).filter(|own| own.keys.len() <= MOST_DISTINCT)
}

fn strength_by_nulls(own: &Categories, there: &[bool]) -> (f64, f64) {
    let codes = there.iter().map(|there| Some(u32::from(*there))).collect();
    let others = Categories { codes, keys: ["null", "there"].map(str::to_owned).into() };
    let table = Table::new(own, &others);
    (table.strength(), 0.5 * ((own.keys.len() * 2) as f64 / table.rows.max(1.0)).sqrt())
}

/// How far the weights of a column are from those of all rows, given the value of the other one, on average.
pub(crate) fn strength(columns: &[Column<'_>], found: Dependence) -> Option<f64> {
    let of = categories(columns.get(found.of)?, Verbatim::Never)?;
    let by = categories(columns.get(found.by)?, Verbatim::Never)?;
    (of.keys.len().max(by.keys.len()) <= MOST_KEYS / 10).then(|| Table::new(&of, &by).strength())
}

impl Categories {
    /// The value for each value of the other column, as far as it occurs; `None` if one has several.
    fn by_key(&self, others: &Categories) -> Option<Vec<Option<u32>>> {
        let mut values = vec![None; others.keys.len()];
        for pair in others.codes.iter().zip(&self.codes) {
            if let (Some(key), Some(value)) = pair {
                let known = values.get_mut(*key as usize)?;
                if *known.get_or_insert(*value) != *value {
                    return None;
                }
            }
        }
        Some(values)
    }

    fn is_function_of(&self, others: &Categories) -> bool {
        // Most columns are not, which their first rows say.
        self.by_key(others).is_some()
            && others.codes.iter().flatten().count() >= TIMES_EACH * others.keys.len()
    }

    /// How far its single values are from the weights of all rows on average, as [`Table::strength`].
    fn spread(&self) -> f64 {
        let mut all = vec![0u64; self.keys.len()];
        self.codes.iter().flatten().for_each(|code| all[*code as usize] += 1);
        let rows = all.iter().sum::<u64>().max(1) as f64;
        1.0 - all.iter().map(|n| (*n as f64 / rows).powi(2)).sum::<f64>()
    }
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
    if !(2..=MOST_KEYS).contains(&keys.len()) {
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
            if keys.len() > MOST_KEYS {
                return None;
            }
        }
        codes.push(code);
    }
    Some((codes, keys))
}
