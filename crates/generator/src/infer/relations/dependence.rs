//! Columns of few distinct values that depend on one another: a city and its country, a rate and its code.
//!
//! The spec draws the dependent column by weights for each value of an earlier one, so that pairs of values occur
//! as often as in the sample. Among several earlier columns the one counts that says most about it.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_schema::DataType;

use crate::infer::by_column::by_column;
use crate::infer::notation::{key, number, quoted, single};
use crate::infer::relations::Column;
use crate::infer::sample::leaf_sample::LeafSample;
use crate::infer::sample::numbered::MAX_NUMBERED;
use crate::infer::values::texts::Verbatim;

/// The most distinct values of either column.
const MAX_DISTINCT: usize = 256;

/// The same if a column is a function of the other one: the price of an article.
const MAX_KEYS: usize = MAX_NUMBERED;

/// How often each value of the other column occurs on average, if a column is a function of that.
const TIMES_EACH: usize = 4;

/// The most pairs of values to list.
const MAX_PAIRS: usize = 4096;

/// How much the weights must differ from the weights of all rows, as a total variation distance.
const MIN: f64 = 0.05;

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
struct Categories<'a> {
    /// How many different values there are.
    len: usize,
    /// The number of the value of each row; `len` for null.
    codes: Cow<'a, [u16]>,
}

/// Finds the columns that depend on an earlier one.
pub(crate) fn dependences(columns: &[Column<'_>]) -> Vec<Dependence> {
    let categories = by_column(columns.len(), |i| Categories::new(&columns[i]));
    let found = by_column(columns.len(), |of| {
        let own = categories[of].as_ref().filter(|_| !is_sorted(&columns[of]))?;
        let strengths = (0..of).filter(|by| usable(columns, of, *by)).filter_map(|by| {
            let others = categories[by].as_ref()?;
            if own.len.max(others.len) > MAX_DISTINCT {
                let strength = own.is_function_of(others).then(|| own.spread()).filter(|s| *s > MIN)?;
                return Some((strength, by, true));
            }
            let table = Table::new(own, others);
            let strength = table.strength();
            // Of independent columns, too, the weights of a sample differ.
            let noise = 0.5 * ((own.len * table.given.len()) as f64 / table.rows.max(1.0)).sqrt();
            (strength > MIN + noise && table.pairs() <= MAX_PAIRS).then_some((strength, by, false))
        });
        let (_, by, is_function) = strengths.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        Some(Dependence { of, by, is_function })
    });
    found.into_iter().flatten().collect()
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

/// Whether the nulls of columns that depend on `by` are drawn together with others.
pub(crate) fn keeps_nulls(by: &Column<'_>) -> bool {
    !by.there.contains(&false)
}

/// The `values` of a column that depends on another.
pub(crate) fn values(columns: &[Column<'_>], dependence: Dependence, verbatim: Verbatim) -> Option<String> {
    let (of, by) = (&columns[dependence.of], &columns[dependence.by]);
    let (own, others) = (Categories::new(of)?, Categories::new(by)?);
    let (names, keys) = (names(of, verbatim)?, names(by, verbatim)?);
    let weights = |counts: &[u64]| {
        let weights = names.iter().zip(counts).filter(|(_, n)| **n > 0);
        let weights: Vec<String> = weights.map(|(name, n)| format!("{name} = {n}")).collect();
        format!("{{ {} }}", weights.join(", "))
    };
    let (given, all) = if dependence.is_function {
        let values = own.by_key(&others).unwrap_or_default();
        let single =
            |value: u16| format!("{{ {} = 1 }}", names.get(usize::from(value)).map_or("", String::as_str));
        (values.into_iter().map(|value| value.map(single)).collect::<Vec<_>>(), own.counts())
    } else {
        let table = Table::new(&own, &others);
        let of_key = |counts: &Vec<u64>| counts.iter().any(|n| *n > 0).then(|| weights(counts));
        (table.given.iter().map(of_key).collect(), table.all)
    };
    let given = keys.iter().zip(given);
    let given: Vec<String> =
        given.filter_map(|(key, weights)| Some(format!("{key} = {}", weights?))).collect();
    Some(format!(
        "{{ weights_by = {{ field = {}, given = {{ {} }}, otherwise = {} }} }}",
        quoted(by.name),
        given.join(", "),
        weights(&all)
    ))
}

/// The share of rows in which the column has its most frequent value for the other column's value.
pub(crate) fn functional(columns: &[Column<'_>], found: Dependence) -> Option<f64> {
    let own = Categories::new(columns.get(found.of)?)?;
    let others = Categories::new(columns.get(found.by)?)?;
    let mut pairs: HashMap<(u16, u16), u64> = HashMap::new();
    // Most rows have the first pair of their key.
    let mut first: Vec<Option<(u16, u64)>> = vec![None; others.len];
    for (key, value) in own.pairs(&others) {
        let (known, n) = first[usize::from(key)].get_or_insert((value, 0));
        if *known == value { *n += 1 } else { *pairs.entry((key, value)).or_default() += 1 }
    }
    let rows: u64 = first.iter().flatten().map(|(_, n)| n).chain(pairs.values()).sum();
    let mut most: Vec<u64> = first.iter().map(|first| first.map_or(0, |(_, n)| n)).collect();
    pairs.into_iter().for_each(|((key, _), n)| most[usize::from(key)] = n.max(most[usize::from(key)]));
    Some(most.iter().sum::<u64>() as f64 / rows.max(1) as f64)
}

impl<'a> Categories<'a> {
    /// The values of a column; `None` if they are too many, or all the same.
    fn new(column: &'a Column<'_>) -> Option<Self> {
        let (codes, len) = match column.leaf?.1 {
            LeafSample::Whole(values) => values.numbered().map(|all| (&all.codes[..], all.distinct.len()))?,
            LeafSample::Real(values) => {
                let all = values.numbered().filter(|all| all.distinct.iter().all(|v| v.is_finite()))?;
                (&all.codes[..], all.distinct.len())
            }
            LeafSample::Text(texts) => texts.codes()?,
            _ => return None,
        };
        if !(2..=MAX_KEYS).contains(&len) {
            return None;
        }
        let null = len as u16;
        let mut of_values = codes.iter().copied();
        let mut of_row = |there: &bool| there.then(|| of_values.next()).flatten().unwrap_or(null);
        let codes = match codes.len() == column.there.len() {
            true => Cow::Borrowed(codes),
            false => Cow::Owned(column.there.iter().map(&mut of_row).collect()),
        };
        Some(Categories { len, codes })
    }

    /// The numbers of the other column's and this column's value, in the rows in which both have one.
    fn pairs(&self, others: &Categories<'_>) -> impl Iterator<Item = (u16, u16)> {
        let (null, other_null) = (self.len as u16, others.len as u16);
        let pairs = others.codes.iter().copied().zip(self.codes.iter().copied());
        pairs.filter(move |(other, own)| *other != other_null && *own != null)
    }

    /// The value for each value of the other column, as far as it occurs; `None` if one has several.
    fn by_key(&self, others: &Categories<'_>) -> Option<Vec<Option<u16>>> {
        let mut values = vec![None; others.len];
        for (key, value) in self.pairs(others) {
            if *values[usize::from(key)].get_or_insert(value) != value {
                return None;
            }
        }
        Some(values)
    }

    fn is_function_of(&self, others: &Categories<'_>) -> bool {
        // Most columns are not, which their first rows say.
        self.by_key(others).is_some()
            && others.counts().iter().sum::<u64>() >= (TIMES_EACH * others.len) as u64
    }

    /// How far its single values are from the weights of all rows on average, as [`Table::strength`].
    fn spread(&self) -> f64 {
        let all = self.counts();
        let rows = all.iter().sum::<u64>().max(1) as f64;
        1.0 - all.iter().map(|n| (*n as f64 / rows).powi(2)).sum::<f64>()
    }

    /// How often each value occurs.
    fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.len + 1];
        self.codes.iter().for_each(|code| counts[usize::from(*code)] += 1);
        counts.truncate(self.len);
        counts
    }
}

/// How often the values of a column occur with another column's values.
struct Table {
    /// For each value of the other column, the count of each of the column's values.
    given: Vec<Vec<u64>>,
    all: Vec<u64>,
    rows: f64,
}

impl Table {
    fn new(own: &Categories<'_>, others: &Categories<'_>) -> Self {
        // Nulls count as a value, so that rows need no test.
        let width = own.len + 1;
        let mut counts = vec![0u32; width * (others.len + 1)];
        for (code, other) in own.codes.iter().zip(&*others.codes) {
            counts[usize::from(*other) * width + usize::from(*code)] += 1;
        }
        let line = |line: &[u32]| line[..own.len].iter().map(|n| u64::from(*n)).collect();
        let given: Vec<Vec<u64>> = counts.chunks_exact(width).take(others.len).map(line).collect();
        let mut all = vec![0; own.len];
        given.iter().for_each(|line| all.iter_mut().zip(line).for_each(|(all, n)| *all += n));
        let rows = all.iter().sum::<u64>() as f64;
        Table { given, all, rows }
    }

    fn pairs(&self) -> usize {
        self.given.iter().flatten().filter(|n| **n > 0).count()
    }

    /// The mean total variation distance between the weights given a value, and the weights of all rows.
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

/// The values of a column as keys of a table, in the order of their numbers.
fn names(column: &Column<'_>, verbatim: Verbatim) -> Option<Vec<String>> {
    let (kind, sample) = column.leaf?;
    let real = |value: &f64| match kind {
        DataType::Float64 => quoted(&number(*value)),
        _ => quoted(&single(*value)),
    };
    match sample {
        LeafSample::Whole(values) => {
            Some(values.numbered()?.distinct.iter().map(|v| key(kind, (*v).into())).collect())
        }
        LeafSample::Real(values) => Some(values.numbered()?.distinct.iter().map(real).collect()),
        LeafSample::Text(texts) => texts.names(verbatim),
        _ => None,
    }
}
