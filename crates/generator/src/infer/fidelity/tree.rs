//! How well a decision tree tells rows of the source from generated ones, in rows that it has not seen.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;

use crate::infer::fidelity::rows::{Leaf, numbered};

/// The most rows of each sample.
const MAX_ROWS: usize = 8192;

/// The fewest.
const MIN_ROWS: usize = 100;

const MAX_DEPTH: usize = 7;

/// The fewest rows on either side of a split, as a share of all.
const MIN_SHARE: usize = 200;

/// The most values of a feature that a split can lie between.
const MAX_CUTS: usize = 32;

/// A split that tells less is one of those that chance makes.
const MIN_GAIN: f64 = 8.0;

/// The most features that are tried in two steps: the second finds what columns say together.
const MAX_TWO_STEPS: usize = 64;

/// A value that a sample has less often is rare.
const MIN_EACH: u64 = 5;

/// How well a decision tree tells the rows apart.
#[derive(Clone, Debug, Serialize)]
pub struct TreeFidelity {
    /// How often it ranks a generated row before one of the source (area under the curve): 0.5 is by chance.
    pub auc: f64,
    /// The columns that it splits by, the one that tells most first.
    pub by: Vec<String>,
}

/// A column's values as numbers of bins; 0 is null.
struct Feature {
    column: usize,
    bins: Vec<u8>,
}

/// Rows of both samples.
struct Rows {
    features: Vec<Feature>,
    /// Whether each row is generated.
    generated: Vec<bool>,
    least: usize,
}

/// Where a node splits: rows up to a bin of a feature go left.
#[derive(Clone, Copy)]
struct Split {
    feature: usize,
    bin: u8,
    gain: f64,
}

/// A node: a leaf has the share of generated rows.
enum Node {
    Leaf(f64),
    Split(Split, Box<[Node; 2]>),
}

/// `None` if there are too few rows.
pub(super) fn told_apart(columns: &[[&Leaf<'_>; 2]]) -> Option<TreeFidelity> {
    let rows_of = |side: usize| columns.first().map_or(0, |pair| pair[side].cells.there.len());
    let n = rows_of(0).min(rows_of(1)).min(MAX_ROWS);
    if n < MIN_ROWS {
        return None;
    }
    let places: [Vec<usize>; 2] = [0, 1].map(|side| (0..n).map(|i| i * rows_of(side) / n).collect());
    let features = columns.iter().enumerate().flat_map(|(column, pair)| features(column, pair, &places));
    let generated: Vec<bool> = (0..2 * n).map(|row| row >= n).collect();
    let rows = Rows { features: features.collect(), generated, least: (n / MIN_SHARE).max(10) };
    // Rows that follow one another stay together.
    let (known, held): (Vec<usize>, Vec<usize>) = (0..2 * n).partition(|row| row % n / 2 % 2 == 0);
    let mut gains = vec![0.0; columns.len()];
    let tree = rows.grown(&known, 0, &mut gains);
    let scores = held.iter().map(|row| (tree.score(&rows, *row), rows.generated[*row])).collect();
    let mut by: Vec<usize> = (0..columns.len()).filter(|column| gains[*column] > 0.0).collect();
    by.sort_by(|a, b| gains[*b].total_cmp(&gains[*a]));
    let by = by.into_iter().map(|column| columns[column][0].path.clone()).collect();
    Some(TreeFidelity { auc: area(scores), by })
}

/// A column as features: a number itself, a category by its frequency, and the length of strings and bytes.
fn features(column: usize, pair: &[&Leaf<'_>; 2], places: &[Vec<usize>; 2]) -> Vec<Feature> {
    let values = |of: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        let side = |side: usize| {
            let cells = pair[side].cells;
            let value = move |i: &usize| if cells.there[*i] { of(side, *i) } else { f64::NAN };
            places[side].iter().map(value).collect::<Vec<f64>>()
        };
        [side(0), side(1)].concat()
    };
    let numbers = values(&|side, i| pair[side].cells.numbers[i]);
    let mut out = vec![Feature { column, bins: binned(&numbers) }];
    if !pair[0].is_number() {
        let frequent = frequent(pair);
        let number = |side: usize, i: usize| frequent[side].get(&pair[side].cells.words[i]);
        // Rare values are all alike: another sample has others.
        let codes = values(&|side, i| number(side, i).map_or(f64::MAX, |number| f64::from(*number)));
        out.push(Feature { column, bins: binned(&codes) });
    }
    out
}

/// The frequent values of both samples, each numbered by its frequency. Values that both have get the same numbers. If
/// all were made up, only their frequencies can be alike.
fn frequent(pair: &[&Leaf<'_>; 2]) -> [HashMap<u64, u32>; 2] {
    let counts = pair.map(Leaf::counts);
    let own = counts.each_ref().map(|counts| numbered(counts, MIN_EACH));
    if !own[1].keys().any(|word| own[0].contains_key(word)) {
        return own;
    }
    let [mut all, theirs] = counts;
    theirs.into_iter().for_each(|(word, n)| *all.entry(word).or_default() += n);
    let all = numbered(&all, 2 * MIN_EACH);
    [all.clone(), all]
}

fn binned(values: &[f64]) -> Vec<u8> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut cuts: Vec<f64> =
        (1..MAX_CUTS).filter_map(|i| sorted.get(i * sorted.len() / MAX_CUTS)).copied().collect();
    cuts.dedup();
    let bin = |v: &f64| if v.is_nan() { 0 } else { 1 + cuts.partition_point(|cut| cut < v) as u8 };
    values.iter().map(bin).collect()
}

impl Rows {
    fn grown(&self, rows: &[usize], depth: usize, gains: &mut [f64]) -> Node {
        let share = (self.count(rows) + 1) as f64 / (rows.len() + 2) as f64;
        let split = if depth < MAX_DEPTH { self.best(rows) } else { None };
        let clear = split.filter(|split| split.gain >= MIN_GAIN);
        let split = match clear {
            None if depth + 1 < MAX_DEPTH && self.features.len() <= MAX_TWO_STEPS => self.best_in_two(rows),
            clear => clear,
        };
        let Some(split) = split else { return Node::Leaf(share) };
        gains[self.features[split.feature].column] += split.gain;
        let sides = self.sides(rows, split);
        Node::Split(split, Box::new(sides.map(|side| self.grown(&side, depth + 1, gains))))
    }

    fn count(&self, rows: &[usize]) -> usize {
        rows.iter().filter(|row| self.generated[**row]).count()
    }

    fn sides(&self, rows: &[usize], split: Split) -> [Vec<usize>; 2] {
        let bins = &self.features[split.feature].bins;
        let (left, right) = rows.iter().partition(|row| bins[**row] <= split.bin);
        [left, right]
    }

    /// The split that tells most.
    fn best(&self, rows: &[usize]) -> Option<Split> {
        let splits = (0..self.features.len()).filter_map(|feature| self.best_of(feature, rows));
        splits.max_by(|a, b| a.gain.total_cmp(&b.gain))
    }

    fn best_of(&self, feature: usize, rows: &[usize]) -> Option<Split> {
        let mut counts = [[0usize; 2]; 256];
        let bins = &self.features[feature].bins;
        rows.iter().for_each(|row| counts[usize::from(bins[*row])][usize::from(self.generated[*row])] += 1);
        let purity = |[a, b]: [usize; 2]| (a * a + b * b) as f64 / (a + b).max(1) as f64;
        let all = counts.iter().fold([0, 0], |sum, n| [sum[0] + n[0], sum[1] + n[1]]);
        let mut left = [0, 0];
        let mut best: Option<Split> = None;
        for (bin, n) in (0..=u8::MAX).zip(counts).take(MAX_CUTS + 2) {
            left = [left[0] + n[0], left[1] + n[1]];
            let right = [all[0] - left[0], all[1] - left[1]];
            let gain = purity(left) + purity(right) - purity(all);
            let has_rows = [left, right].iter().all(|side| side[0] + side[1] >= self.least);
            if has_rows && n != [0, 0] && best.is_none_or(|best| gain > best.gain) {
                best = Some(Split { feature, bin, gain });
            }
        }
        best
    }

    /// The split at a feature's middle after which the next splits tell most.
    fn best_in_two(&self, rows: &[usize]) -> Option<Split> {
        let tried = (0..self.features.len()).filter_map(|feature| {
            let bins = &self.features[feature].bins;
            let mut sorted: Vec<u8> = rows.iter().map(|row| bins[*row]).collect();
            let middle = (sorted.len() / 2).min(sorted.len().checked_sub(1)?);
            let bin = *sorted.select_nth_unstable(middle).1;
            let split = Split { feature, bin, gain: 0.0 };
            let sides = self.sides(rows, split);
            if sides.iter().any(|side| side.len() < 2 * self.least) {
                return None;
            }
            let gains = sides.iter().filter_map(|side| self.best(side)).map(|split| split.gain);
            Some(Split { gain: gains.sum(), ..split })
        });
        let best = tried.max_by(|a, b| a.gain.partial_cmp(&b.gain).unwrap_or(Ordering::Equal))?;
        (best.gain >= 2.0 * MIN_GAIN).then_some(best)
    }
}

impl Node {
    fn score(&self, rows: &Rows, row: usize) -> f64 {
        match self {
            Node::Leaf(share) => *share,
            Node::Split(split, sides) => {
                let is_right = rows.features[split.feature].bins[row] > split.bin;
                sides[usize::from(is_right)].score(rows, row)
            }
        }
    }
}

/// The share of pairs of a generated row and one of the source in which the generated one has the higher score; equal
/// scores count half.
fn area(mut scores: Vec<(f64, bool)>) -> f64 {
    scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut sum, mut all) = (0.0, 0.0, 0.0);
    for equal in scores.chunk_by(|a, b| a.0 == b.0) {
        let generated = equal.iter().filter(|(_, generated)| *generated).count() as f64;
        let source = equal.len() as f64 - generated;
        sum += generated * (below + source / 2.0);
        below += source;
        all += generated;
    }
    if below * all > 0.0 { sum / (below * all) } else { 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::sample::cells::Cells;
    use arrow_schema::DataType;

    fn mixed(i: usize) -> f64 {
        let mixed = ((i + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ mixed >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn auc(source: [&dyn Fn(usize) -> f64; 2], generated: [&dyn Fn(usize) -> f64; 2]) -> f64 {
        let cells = |value: &dyn Fn(usize) -> f64| Cells {
            there: vec![true; 5000],
            numbers: (0..5000).map(value).collect(),
            words: vec![0; 5000],
            rises: Vec::new(),
        };
        let cells = [source, generated].map(|columns| columns.map(cells));
        let kind = DataType::Float64;
        let leaf = |side: usize, column: usize| Leaf {
            path: column.to_string(),
            kind: &kind,
            cells: &cells[side][column],
        };
        let leaves = [0, 1].map(|column| [leaf(0, column), leaf(1, column)]);
        let pairs: Vec<_> = leaves.iter().map(|[a, b]| [a, b]).collect();
        told_apart(&pairs).unwrap().auc
    }

    #[test]
    fn rows_are_told_apart_by_a_column_or_by_two_together() {
        let (x, y) = (|i: usize| mixed(i), |i: usize| mixed(i + 100_000));
        let (other, more) = (|i: usize| mixed(i + 200_000), |i: usize| mixed(i + 300_000));
        let alike = auc([&x, &y], [&other, &more]);
        assert!((alike - 0.5).abs() < 0.04, "{alike}");
        let moved = auc([&x, &y], [&|i| other(i) + 0.5, &more]);
        assert!(moved > 0.7, "{moved}");
        let together = auc([&x, &|i| x(i) + 0.1 * y(i)], [&other, &|i| more(i) + 0.1 * y(i)]);
        assert!(together > 0.8, "{together}");
    }
}
