//! The values of a column as ranks.

use std::collections::HashMap;

use crate::draw::copula::{bin, even};
use crate::infer::copula::scores::mean_score;
use crate::infer::sample::cells::Cells;
use crate::random::rng::{Stream, unit_interval};

/// The most bins of a column whose values are too many for bins of their own.
const MAX_BINS: usize = 20;

/// What an axis ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The row's place among this number of rows.
    Rows(u64),
    /// The values of a field.
    Field(usize),
    /// Whether a field is null.
    Nulls(usize),
    /// Which fields are present together.
    Present,
}

/// A column, with the ranks of its rows from 0 to 1.
#[derive(Debug)]
pub(crate) struct Axis {
    pub of: Of,
    /// The ranks below the value of each row and up to it; NaN without a value.
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    /// A rank between the two.
    pub ranks: Vec<f64>,
    /// Where the bins of ranks begin and end.
    pub bins: Vec<f64>,
    /// Where frequent values begin and end, if there are some.
    pub runs: Vec<f64>,
    /// The values as TOML in the order of the ranks, if it is not the order of the values.
    pub order: Vec<String>,
    /// 1 if values never fall from row to row, -1 if they never rise.
    pub sorted: Option<f64>,
    /// After how many rows the values repeat, if the number of the row says them; else 0.
    pub period: u64,
}

/// A list of values with their counts, in the order of their ranks.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub words: Vec<u64>,
    pub counts: Vec<u64>,
    /// The values as TOML.
    pub names: Vec<String>,
}

impl Listed {
    /// Orders the values as a dictionary of strings has them; numbers without names are in order.
    pub(crate) fn sort_by_name(&mut self) {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by_key(|i| self.names[*i].trim_matches('"'));
        if !order.is_empty() {
            *self = self.in_order(&order);
        }
    }

    fn in_order(&self, order: &[usize]) -> Self {
        let words = order.iter().map(|i| self.words[*i]).collect();
        let counts = order.iter().map(|i| self.counts[*i]).collect();
        Listed { words, counts, names: order.iter().map(|i| self.names[*i].clone()).collect() }
    }

    /// The values in the order of the mean ranks of the numbers with which they vary most, or as they first occur.
    pub(crate) fn ordered(&self, axes: &[Axis], cells: &Cells) -> Self {
        let places: HashMap<u64, usize> = self.words.iter().copied().zip(0..).collect();
        let place = |row: usize| places.get(&cells.words[row]).filter(|_| cells.there[row]).copied();
        let rows: Vec<Option<usize>> = (0..cells.words.len()).map(place).collect();
        // The sum of the squares of means, as far as it is not chance.
        let spread = |axis: &Axis| {
            let mut sums = vec![(0.0, 0.0); self.words.len()];
            for (row, place) in rows.iter().enumerate().filter(|(row, _)| !axis.low[*row].is_nan()) {
                if let Some(of) = place.and_then(|place| sums.get_mut(place)) {
                    *of = (of.0 + 1.0, of.1 + axis.middle(row) - 0.5);
                }
            }
            let n: f64 = sums.iter().map(|of| of.0).sum();
            let between: f64 = sums.iter().filter(|of| of.0 > 0.0).map(|of| of.1 * of.1 / of.0).sum();
            let means: Vec<f64> = sums.iter().map(|of| if of.0 > 0.0 { of.1 / of.0 } else { 0.0 }).collect();
            (between / n.max(1.0) * 12.0 - sums.len() as f64 / n.max(1.0), means)
        };
        let numbers = axes.iter().filter(|axis| axis.order.is_empty());
        let best = numbers.map(spread).max_by(|a, b| a.0.total_cmp(&b.0));
        let mut first: Vec<f64> = vec![f64::MAX; self.words.len()];
        for (row, place) in rows.iter().enumerate().rev() {
            place.iter().for_each(|place| first[*place] = row as f64);
        }
        let by = best.filter(|(spread, _)| *spread > 0.01).map_or(first, |(_, means)| means);
        let mut order: Vec<usize> = (0..self.words.len()).collect();
        order.sort_by(|a, b| by[*a].total_cmp(&by[*b]));
        self.in_order(&order)
    }
}

impl Axis {
    /// The places of `rows` among `n`.
    pub(crate) fn of_rows(rows: &[u64], n: u64) -> Self {
        let at = |row: &u64, part: f64| (*row as f64 + part) / n.max(1) as f64;
        let bounds = |part: f64| rows.iter().map(|row| at(row, part).min(1.0)).collect::<Vec<f64>>();
        let (low, high) = (bounds(0.0), bounds(1.0));
        Axis {
            bins: even(bins_of(rows.len())),
            sorted: Some(1.0),
            ..Axis::new(Of::Rows(n), low, high, Vec::new())
        }
    }

    /// Numbers; NaN where there is none.
    pub(crate) fn of_numbers(of: Of, numbers: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..numbers.len()).filter(|row| !numbers[*row].is_nan()).collect();
        let n = order.len().max(1) as f64;
        let sorted = sorted(|up| order.is_sorted_by(|a, b| up(numbers[*a], numbers[*b])));
        order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
        let (mut low, mut high) = (vec![f64::NAN; numbers.len()], vec![f64::NAN; numbers.len()]);
        let mut runs = Vec::new();
        let mut below = 0;
        for equal in order.chunk_by(|a, b| numbers[*a] == numbers[*b]) {
            let ends = (below as f64 / n, (below + equal.len()) as f64 / n);
            equal.iter().for_each(|row| (low[*row], high[*row]) = ends);
            runs.push(ends.0);
            below += equal.len();
        }
        runs.push(1.0);
        let has_frequent = runs.windows(2).any(|pair| pair[1] - pair[0] > 0.005);
        let runs = if has_frequent { runs } else { Vec::new() };
        let bins = even(bins_of(order.len()));
        Axis { bins, sorted, ..Axis::new(of, low, high, runs) }
    }

    /// Listed values, by their words.
    pub(crate) fn of_listed(of: Of, listed: &Listed, words: &[u64], there: &[bool]) -> Self {
        let all = listed.counts.iter().sum::<u64>().max(1) as f64;
        let mut sum = 0;
        let mut ends = vec![0.0];
        ends.extend(listed.counts.iter().map(|n| {
            sum += n;
            sum as f64 / all
        }));
        let places: HashMap<u64, usize> = listed.words.iter().copied().zip(0..).collect();
        let place = |(word, there): (&u64, &bool)| places.get(word).filter(|_| *there).copied();
        let rows: Vec<Option<usize>> = words.iter().zip(there).map(place).collect();
        let at =
            |offset: usize| rows.iter().map(|row| row.map_or(f64::NAN, |row| ends[row + offset])).collect();
        let present: Vec<usize> = rows.iter().flatten().copied().collect();
        let sorted = sorted(|up| present.is_sorted_by(|a, b| up(*a as f64, *b as f64)));
        let (low, high) = (at(0), at(1));
        Axis { bins: ends.clone(), order: listed.names.clone(), sorted, ..Axis::new(of, low, high, ends) }
    }

    fn new(of: Of, low: Vec<f64>, high: Vec<f64>, runs: Vec<f64>) -> Self {
        let stream = Stream::new(
            1,
            match of {
                Of::Rows(_) => 0,
                Of::Field(field) => 2 * field as u64 + 1,
                Of::Nulls(field) => 2 * field as u64 + 2,
                Of::Present => u64::MAX,
            },
            0,
        );
        let rank = |(row, (low, high)): (usize, (&f64, &f64))| {
            low + (high - low) * unit_interval(stream.draw(row as u64))
        };
        let ranks = low.iter().zip(&high).enumerate().map(rank).collect();
        Axis { of, low, high, ranks, bins: Vec::new(), runs, order: Vec::new(), sorted: None, period: 0 }
    }

    /// The mean normal score of each row's ranks; NaN without a value.
    pub(super) fn scores(&self) -> Vec<f64> {
        let score = |(low, high): (&f64, &f64)| if low.is_nan() { f64::NAN } else { mean_score(*low, *high) };
        self.low.iter().zip(&self.high).map(score).collect()
    }

    /// The bin of each row; the greatest number without a value.
    pub(super) fn codes(&self) -> Vec<u16> {
        let code = |rank: &f64| if rank.is_nan() { u16::MAX } else { bin(&self.bins, *rank) as u16 };
        self.ranks.iter().map(code).collect()
    }

    /// The pairs of places whose rows are `lag` rows apart, if it is the axis of the rows.
    fn pairs(&self, lag: u64) -> Vec<[usize; 2]> {
        let Of::Rows(n) = self.of else { return Vec::new() };
        let row = |place: usize| (self.low[place] * n as f64).round() as u64;
        let mut later = 0;
        let pair = |place: usize| {
            let is_before = |later: &usize| *later < self.low.len() && row(*later) < row(place) + lag;
            while is_before(&later) {
                later += 1;
            }
            (later < self.low.len() && row(later) == row(place) + lag).then_some([place, later])
        };
        (0..self.low.len()).filter_map(pair).collect()
    }

    /// The middle of the ranks of a row's value.
    pub(crate) fn middle(&self, row: usize) -> f64 {
        (self.low[row] + self.high[row]) / 2.0
    }

    /// The middle of the ranks of the value that a rank belongs to.
    pub(crate) fn middle_of(&self, rank: f64) -> f64 {
        let at = bin(&self.runs, rank);
        self.runs.get(at..at + 2).map_or(rank, |ends| (ends[0] + ends[1]) / 2.0)
    }
}

/// Distances of rows, each with the pairs of places that lie so far apart: 1, and the period of each column that repeats
/// its values in order, as sensors do that report in turn.
pub(super) fn lags(axes: &[Axis]) -> Vec<(u64, Vec<[usize; 2]>)> {
    let mut lags: Vec<u64> = axes.iter().map(|axis| axis.period).filter(|lag| *lag > 1).collect();
    lags.push(1);
    lags.sort_unstable();
    lags.dedup();
    lags.into_iter().map(|lag| (lag, axes.first().map_or_else(Vec::new, |rows| rows.pairs(lag)))).collect()
}

/// The direction in which rows are sorted, if `is_sorted` by the order of two values.
fn sorted(is_sorted: impl Fn(fn(f64, f64) -> bool) -> bool) -> Option<f64> {
    if is_sorted(|a, b| a <= b) {
        return Some(1.0);
    }
    is_sorted(|a, b| a >= b).then_some(-1.0)
}

/// The number of bins for `n` values: few values, few bins.
fn bins_of(n: usize) -> usize {
    ((n as f64 / 4.0).sqrt() as usize).clamp(2, MAX_BINS)
}
