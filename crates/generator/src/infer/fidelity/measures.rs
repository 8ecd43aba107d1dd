//! How much one column says about another: each measure is 0 for columns that are independent, and at most 1.

use std::collections::HashMap;

use crate::infer::fidelity::rows::{Codes, NULL};

/// A pair is kept if each of its measures differs by at most this, or by no more than chance does in small samples.
pub(super) const DISTANCE: f64 = 0.1;

/// The fewest rows with both values.
pub(super) const MIN_ROWS: usize = 30;

/// A difference of more standard deviations is not taken for chance.
pub(super) const DEVIATIONS: f64 = 3.0;

/// The most places of a table of two columns' categories for each row; more are counted by a map.
pub(super) const PLACES_A_ROW: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measure {
    pub value: f64,
    /// How far the value is by chance, for independent columns.
    pub chance: f64,
    /// The same of its square, for a measure that is a root.
    pub square: f64,
}

impl Measure {
    pub(super) fn linear(value: f64, rows: usize) -> Option<Self> {
        let chance = DEVIATIONS / (rows as f64).sqrt();
        (rows >= MIN_ROWS).then_some(Measure { value, chance, square: 0.0 })
    }

    /// Of a square, which is `noise` of independent columns.
    fn root(square: f64, noise: f64, rows: usize) -> Option<Self> {
        let value = square.clamp(0.0, 1.0).sqrt();
        let linear = Self::linear(value, rows)?;
        Some(Measure { square: DEVIATIONS * noise, ..linear })
    }

    /// Whether a sample of so few rows tells nothing.
    pub(super) fn is_vague(&self) -> bool {
        self.chance.max(self.square.sqrt()) > 0.5
    }

    /// Whether too few generated rows have both values to tell if this measure of the source is kept, or none has and
    /// the source has hardly any relation to lose.
    pub(super) fn is_unanswered(&self, generated: Option<Measure>) -> bool {
        generated.map_or(self.value.abs() <= DISTANCE, |generated| generated.is_vague())
    }
}

/// The correlation of two columns of numbers in the rows in which both are there.
pub(super) fn correlation(a: &[f64], b: &[f64], there: [&[bool]; 2]) -> Option<Measure> {
    let (mut n, mut sums) = (0.0f64, [0.0f64; 5]);
    for ((a, b), is_there) in a.iter().zip(b).zip(there[0].iter().zip(there[1])) {
        let weight = f64::from(u8::from(*is_there.0 && *is_there.1));
        let (x, y) = (a * weight, b * weight);
        n += weight;
        [x, y, x * x, y * y, x * y].iter().zip(&mut sums).for_each(|(v, sum)| *sum += v);
    }
    let [x, y, xx, yy, xy] = sums.map(|sum| sum / n.max(1.0));
    let spread = ((xx - x * x) * (yy - y * y)).max(0.0).sqrt();
    let value = if spread > 1e-9 { (xy - x * y) / spread } else { 0.0 };
    Measure::linear(value.clamp(-1.0, 1.0), n as usize)
}

/// The correlation ratio: the root of the share of a number's variance that lies between categories.
pub(super) fn ratio(numbers: &[f64], there: &[bool], codes: &Codes) -> Option<Measure> {
    let mut of_codes = vec![(0.0f64, 0.0f64); codes.n];
    let mut squares = 0.0;
    for ((number, there), code) in numbers.iter().zip(there).zip(&codes.of_rows) {
        if let Some(of) = of_codes.get_mut(*code as usize).filter(|_| *there) {
            of.0 += 1.0;
            of.1 += number;
            squares += number * number;
        }
    }
    let rows: f64 = of_codes.iter().map(|of| of.0).sum();
    let mean = of_codes.iter().map(|of| of.1).sum::<f64>() / rows.max(1.0);
    let all = squares - rows * mean * mean;
    let groups = of_codes.iter().filter(|of| of.0 > 0.0);
    let between: f64 = groups.clone().map(|of| of.1 * of.1 / of.0).sum::<f64>() - rows * mean * mean;
    let k = groups.count() as f64;
    let varies = all > 1e-9 * rows && rows > k + 1.0;
    // Of independent columns it would be 0 on average.
    let square = if varies { 1.0 - (1.0 - between / all) * (rows - 1.0) / (rows - k) } else { 0.0 };
    Measure::root(square, (2.0 * (k - 1.0).max(0.0)).sqrt() / rows.max(1.0), rows as usize)
}

/// Cramér's V, without its bias.
pub(super) fn cramer(a: &Codes, b: &Codes) -> Option<Measure> {
    let both = || {
        let pairs = a.of_rows.iter().copied().zip(b.of_rows.iter().copied());
        pairs.filter(|(a, b)| *a != NULL && *b != NULL).map(|(a, b)| (a as usize, b as usize))
    };
    let (mut of_a, mut of_b) = (vec![0u32; a.n], vec![0u32; b.n]);
    let mut rows = 0;
    for (a, b) in both() {
        rows += 1;
        of_a[a] += 1;
        of_b[b] += 1;
    }
    let of = |a: usize, b: usize, n: u32| f64::from(n).powi(2) / (f64::from(of_a[a]) * f64::from(of_b[b]));
    let sum: f64 = if a.n * b.n <= PLACES_A_ROW * rows {
        let mut table = vec![0u32; a.n * b.n];
        both().for_each(|(x, y)| table[x * b.n + y] += 1);
        let found = table.iter().enumerate().filter(|(_, n)| **n > 0);
        found.map(|(place, n)| of(place / b.n, place % b.n, *n)).sum()
    } else {
        let mut table: HashMap<(usize, usize), u32> = HashMap::new();
        both().for_each(|pair| *table.entry(pair).or_default() += 1);
        let mut found: Vec<_> = table.into_iter().collect();
        found.sort_unstable();
        found.iter().map(|((x, y), n)| of(*x, *y, *n)).sum()
    };
    let (n, [r, k]) = (rows as f64, [&of_a, &of_b].map(|of| of.iter().filter(|n| **n > 0).count() as f64));
    let freedom = (r - 1.0).max(0.0) * (k - 1.0).max(0.0);
    let least = |k: f64| k - (k - 1.0).powi(2) / (n - 1.0).max(1.0) - 1.0;
    let most = least(r).min(least(k));
    let square = if most > 0.01 { (sum - 1.0 - freedom / (n - 1.0).max(1.0)) / most } else { 0.0 };
    let noise = if most > 0.01 { (2.0 * freedom).sqrt() / n / most } else { 0.0 };
    Measure::root(square, noise, rows)
}

/// The share of rows in which two columns have the same value, of those in which both have one.
pub(super) fn same(words: [&[u64]; 2], there: [&[bool]; 2]) -> Option<Measure> {
    let both = there[0].iter().zip(there[1]).map(|(a, b)| *a && *b);
    let (mut rows, mut same) = (0usize, 0usize);
    for ((a, b), both) in words[0].iter().zip(words[1]).zip(both) {
        rows += usize::from(both);
        same += usize::from(both && a == b);
    }
    Measure::linear(same as f64 / rows.max(1) as f64, rows)
}

/// The correlation of the nulls of two columns.
pub(super) fn nulls(a: &[bool], b: &[bool]) -> Option<Measure> {
    let count =
        |test: &dyn Fn(bool, bool) -> bool| a.iter().zip(b).filter(|(a, b)| test(**a, **b)).count() as f64;
    let n = a.len().min(b.len());
    let (x, y, both) = (count(&|a, _| a), count(&|_, b| b), count(&|a, b| a && b));
    let rows = n as f64;
    let spread = (x * (rows - x) * y * (rows - y)).max(0.0).sqrt();
    Measure::linear(if spread > 0.0 { (both * rows - x * y) / spread } else { 0.0 }, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(n: usize, code: impl Fn(usize) -> u32) -> Codes {
        let of_rows: Vec<u32> = (0..10_000).map(code).collect();
        Codes { of_rows, n }
    }

    fn mixed(i: usize) -> usize {
        (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
    }

    #[test]
    fn dependent_columns_have_one_and_independent_ones_nothing() {
        let there = vec![true; 10_000];
        let first = codes(7, |i| (mixed(i) % 7) as u32);
        let other = codes(5, |i| (mixed(i) / 7 % 5) as u32);
        let function = codes(7, |i| (mixed(i) % 7 * 3 % 7) as u32);
        let value = |measure: Option<Measure>| measure.unwrap().value;
        assert!(value(cramer(&first, &function)) > 0.999);
        assert!(value(cramer(&first, &other)) < 0.05);
        let numbers: Vec<f64> = first.of_rows.iter().map(|code| f64::from(*code) - 3.0).collect();
        let squares: Vec<f64> = numbers.iter().map(|v| v * v).collect();
        assert!(value(ratio(&squares, &there, &first)) > 0.999);
        assert!(value(ratio(&squares, &there, &other)) < 0.05);
        assert!(value(correlation(&numbers, &squares, [&there, &there])).abs() < 0.05);
        assert!(value(correlation(&numbers, &numbers, [&there, &there])) > 0.999);
    }

    #[test]
    fn what_is_constant_or_never_there_says_nothing() {
        let none = vec![false; 10_000];
        let (one, empty) = (codes(1, |_| 0), codes(0, |_| NULL));
        assert_eq!(cramer(&one, &one).unwrap().value, 0.0);
        assert!(cramer(&empty, &one).is_none());
        assert!(ratio(&[0.0; 10_000], &none, &one).is_none());
        assert_eq!(nulls(&none, &none).unwrap().value, 0.0);
        let half: Vec<bool> = (0..10_000).map(|i| i % 2 == 0).collect();
        assert_eq!(nulls(&half, &half).unwrap().value, 1.0);
    }
}
