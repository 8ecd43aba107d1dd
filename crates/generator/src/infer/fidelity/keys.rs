//! Columns, and pairs of columns, without equal values in the source.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::infer::by_column::by_column;
use crate::infer::fidelity::columns::ColumnFidelity;
use crate::infer::fidelity::rows::Leaf;

/// A pair of columns is a key if chance would make at least as many equal pairs, and there are none.
const MIN_BY_CHANCE: f64 = 20.0;

/// Columns without equal values in the source.
#[derive(Clone, Debug, Serialize)]
pub struct KeyFidelity {
    /// The path of the column, or the paths of two.
    pub column: String,
    /// How many generated values are equal to another one before them.
    pub repeated: u64,
}

/// The columns without equal values in the source, and those that may or may not have some. Columns of real numbers
/// never count as keys.
pub(super) fn keys(leaves: &[[&Leaf<'_>; 2]], columns: &[ColumnFidelity]) -> (Vec<KeyFidelity>, Vec<String>) {
    let (mut keys, mut unknown, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for pair in leaves.iter().filter(|[leaf, _]| leaf.cells.there.len() > 1 && !leaf.kind.is_floating()) {
        let path = &pair[0].path;
        let column = columns.iter().find(|column| column.column == *path);
        match column.and_then(|column| column.repeated) {
            Some([0, repeated]) => keys.push(KeyFidelity { column: path.clone(), repeated }),
            None if pair[0].all_differ() => {
                unknown.push(format!("equal values of {path}: not all values are counted"));
            }
            _ => others.push(pair),
        }
    }
    let chances: Vec<f64> = others.iter().map(|pair| equal_by_chance(pair[0])).collect();
    let pairs = by_column(others.len(), |i| {
        let may_be = |j: &usize| chances[i] * chances[*j] * rows(others[i][0]).powi(2) / 2.0 >= MIN_BY_CHANCE;
        let key = |j: usize| {
            repeated([others[i][0], others[j][0]], true).is_none().then(|| KeyFidelity {
                column: format!("{}, {}", others[i][0].path, others[j][0].path),
                repeated: repeated([others[i][1], others[j][1]], false).unwrap_or(0),
            })
        };
        (i + 1..others.len()).filter(may_be).filter_map(key).collect::<Vec<_>>()
    });
    keys.extend(pairs.into_iter().flatten());
    keys.sort_by_key(|key| std::cmp::Reverse(key.repeated));
    (keys, unknown)
}

fn rows(leaf: &Leaf<'_>) -> f64 {
    leaf.cells.there.len() as f64
}

/// How likely two rows are equal; 0 if some row has no value.
fn equal_by_chance(leaf: &Leaf<'_>) -> f64 {
    if leaf.cells.there.contains(&false) {
        return 0.0;
    }
    let mut counts: HashMap<u64, f64> = HashMap::new();
    leaf.cells.words.iter().for_each(|word| *counts.entry(*word).or_default() += 1.0);
    counts.values().map(|n| (n / rows(leaf)).powi(2)).sum()
}

/// How many rows have a pair of values that one before them has, if there are some; only whether, if one is `enough`.
fn repeated([a, b]: [&Leaf<'_>; 2], enough: bool) -> Option<u64> {
    let mut known = HashSet::new();
    let pairs = a.cells.words.iter().zip(&b.cells.words);
    let there = a.cells.there.iter().zip(&b.cells.there).map(|(a, b)| *a && *b);
    let mut again = pairs.zip(there).filter(|(pair, there)| *there && !known.insert(*pair));
    let n = if enough { again.next().map_or(0, |_| 1) } else { again.count() as u64 };
    (n > 0).then_some(n)
}
