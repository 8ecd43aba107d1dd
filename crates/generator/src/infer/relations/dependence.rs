//! Columns that an earlier one determines: the country of a city, the price of an article.
//!
//! The spec lists the value for each value of the earlier column. Among several earlier columns the one with the fewest
//! values counts.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_schema::DataType;

use crate::infer::by_column::by_column;
use crate::infer::notation::{key, number, quoted, single, table};
use crate::infer::relations::Column;
use crate::infer::sample::leaf_sample::LeafSample;
use crate::infer::sample::numbered::MAX_NUMBERED;
use crate::infer::values::made_up::Verbatim;

/// The most distinct values of either column.
const MAX_KEYS: usize = MAX_NUMBERED;

/// How often each value of the other column occurs on average, if a column is a function of that.
const TIMES_EACH: usize = 4;

/// How far the values must be from the average over all rows: a column with hardly any other value than one is
/// a function of most.
const MIN: f64 = 0.05;

/// A column that an earlier one determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependence {
    pub of: usize,
    pub by: usize,
}

/// The values of a column as numbers of a list of few.
struct Categories<'a> {
    /// How many different values there are.
    len: usize,
    /// The number of the value of each row; `len` for null.
    codes: Cow<'a, [u16]>,
}

/// Finds the columns that an earlier one determines.
pub(crate) fn dependences(columns: &[Column<'_>]) -> Vec<Dependence> {
    let categories = by_column(columns.len(), |i| Categories::new(&columns[i]));
    let found = by_column(columns.len(), |of| {
        let own = categories[of].as_ref().filter(|own| own.spread() > MIN && !is_sorted(&columns[of]))?;
        let others = (0..of).filter(|by| usable(columns, of, *by)).filter_map(|by| {
            let others = categories[by].as_ref()?;
            own.is_function_of(others).then_some((others.len, by))
        });
        others.min().map(|(_, by)| Dependence { of, by })
    });
    found.into_iter().flatten().collect()
}

/// Whether the values never fall, or never rise, from row to row, which weights would not keep.
pub(crate) fn is_sorted(column: &Column<'_>) -> bool {
    match column.leaf {
        Some((_, LeafSample::Whole(values))) => values.is_sorted() || values.is_sorted_by(|a, b| a >= b),
        Some((_, LeafSample::Real(values))) => values.is_sorted() || values.is_sorted_by(|a, b| a >= b),
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
    let single =
        |value: u16| format!("{{ {} = 1 }}", names.get(usize::from(value)).map_or("", String::as_str));
    let given = own.by_key(&others).unwrap_or_default().into_iter().map(|value| value.map(single));
    let given = table(keys.iter().zip(given).filter_map(|(key, weights)| Some((key, weights?))));
    let all = table(names.iter().zip(own.counts()).filter(|(_, n)| *n > 0));
    let field = quoted(by.name);
    Some(format!("{{ weights_by = {{ field = {field}, given = {given}, otherwise = {all} }} }}"))
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

/// The share of generated rows whose value is the one that the source has for the other column's value; `None` if most
/// of their values are made up.
pub(crate) fn as_in(source: &[Column<'_>], generated: &[Column<'_>], found: Dependence) -> Option<f64> {
    let [own, others] = [found.of, found.by].map(|at| source.get(at).and_then(Categories::new));
    let wanted = own?.by_key(&others?)?;
    // The number that each generated value has in the source.
    let known = |at: usize| {
        let ours: HashMap<String, u16> =
            names(source.get(at)?, Verbatim::Always)?.into_iter().zip(0..).collect();
        let theirs = names(generated.get(at)?, Verbatim::Always)?;
        Some(theirs.iter().map(|name| ours.get(name).copied()).collect::<Vec<_>>())
    };
    let (keys, values) = (known(found.by)?, known(found.of)?);
    let [own, others] = [found.of, found.by].map(|at| generated.get(at).and_then(Categories::new));
    let (mut rows, mut alike, mut all) = (0u64, 0u64, 0u64);
    for (key, value) in own?.pairs(&others?) {
        all += 1;
        if let (Some(key), Some(value)) = (keys[usize::from(key)], values[usize::from(value)]) {
            rows += 1;
            alike += u64::from(wanted[usize::from(key)] == Some(value));
        }
    }
    (rows > 0 && 2 * rows >= all).then(|| alike as f64 / rows as f64)
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

    /// How far single values are from the weights of all rows on average.
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
