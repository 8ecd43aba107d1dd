//! The numbers of a sampled column, and each as one of few distinct ones.

use std::ops::Deref;
use std::sync::OnceLock;

/// The most distinct values that are numbered.
pub(crate) const MAX_NUMBERED: usize = 10_000;

/// The places of a table of numbered values: three for each, so that few meet in one.
const SLOTS: usize = 1 << 15;

/// A place without a value.
const FREE: u16 = u16::MAX;

/// Whole or real numbers in their order, without nulls.
#[derive(Debug)]
pub(crate) struct Values<V> {
    all: Vec<V>,
    /// What all relations and counts work on; found when the first of them asks.
    numbered: OnceLock<Option<Numbered<V>>>,
}

/// Values as numbers of the distinct ones.
#[derive(Debug)]
pub(crate) struct Numbered<V> {
    /// The number of each value.
    pub codes: Vec<u16>,
    /// The distinct values in the order of their first occurrences.
    pub distinct: Vec<V>,
}

/// A number that is known by its bits.
pub(crate) trait Word: Copy + PartialOrd {
    fn bits(self) -> u64;
}

impl Word for i64 {
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Word for f64 {
    fn bits(self) -> u64 {
        // Negative zero is zero.
        (self + 0.0).to_bits()
    }
}

impl<V> Default for Values<V> {
    fn default() -> Self {
        Values::from(Vec::new())
    }
}

impl<V> From<Vec<V>> for Values<V> {
    fn from(all: Vec<V>) -> Self {
        Values { all, numbered: OnceLock::new() }
    }
}

impl<V> Extend<V> for Values<V> {
    fn extend<I: IntoIterator<Item = V>>(&mut self, more: I) {
        self.numbered = OnceLock::new();
        self.all.extend(more);
    }
}

impl<V> Deref for Values<V> {
    type Target = [V];

    fn deref(&self) -> &[V] {
        &self.all
    }
}

impl<V: Word> Values<V> {
    /// The values as numbers of the distinct ones; `None` if these are too many.
    pub(crate) fn numbered(&self) -> Option<&Numbered<V>> {
        self.numbered.get_or_init(|| Numbered::new(&self.all)).as_ref()
    }

    /// How often each value occurs, from the least to the greatest, without those that are not `wanted`.
    pub(crate) fn runs(&self, wanted: impl Fn(V) -> bool) -> Vec<(V, u64)> {
        // NaN is not wanted, so all others have an order.
        let order = |a: &V, b: &V| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
        if let Some(numbered) = self.numbered() {
            let mut runs = numbered.counts();
            runs.retain(|run| wanted(run.0));
            runs.sort_unstable_by(|a, b| order(&a.0, &b.0));
            return runs;
        }
        let mut sorted: Vec<V> = self.all.iter().copied().filter(|v| wanted(*v)).collect();
        sorted.sort_unstable_by(order);
        runs(&sorted)
    }
}

/// How often each value occurs, from the least to the greatest.
pub(crate) fn runs<V: Copy + PartialEq>(sorted: &[V]) -> Vec<(V, u64)> {
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
}

/// The Kolmogorov-Smirnov distance of counted values.
pub(crate) fn steps(a: &[(f64, u64)], b: &[(f64, u64)]) -> f64 {
    let total = |runs: &[(f64, u64)]| runs.iter().map(|run| run.1).sum::<u64>() as f64;
    let (of_a, of_b) = (total(a), total(b));
    if of_a == 0.0 || of_b == 0.0 {
        return if of_a == of_b { 0.0 } else { 1.0 };
    }
    let (mut i, mut j, mut below_a, mut below_b, mut most) = (0, 0, 0, 0, 0.0f64);
    while i < a.len() || j < b.len() {
        let value =
            a.get(i).map_or(f64::INFINITY, |run| run.0).min(b.get(j).map_or(f64::INFINITY, |run| run.0));
        if let Some(run) = a.get(i).filter(|run| run.0 <= value) {
            below_a += run.1;
            i += 1;
        }
        if let Some(run) = b.get(j).filter(|run| run.0 <= value) {
            below_b += run.1;
            j += 1;
        }
        most = most.max((below_a as f64 / of_a - below_b as f64 / of_b).abs());
    }
    most
}

impl<V: Word> Numbered<V> {
    fn new(values: &[V]) -> Option<Self> {
        let mut slots = vec![FREE; SLOTS];
        let mut distinct: Vec<V> = Vec::new();
        let mut codes = Vec::with_capacity(values.len());
        for value in values {
            let mut at = slot(value.bits());
            codes.push(loop {
                match slots[at] {
                    FREE if distinct.len() == MAX_NUMBERED => return None,
                    FREE => {
                        slots[at] = distinct.len() as u16;
                        distinct.push(*value);
                        break slots[at];
                    }
                    code if distinct[usize::from(code)].bits() == value.bits() => break code,
                    _ => at = (at + 1) % SLOTS,
                }
            });
        }
        Some(Numbered { codes, distinct })
    }

    /// How often each distinct value occurs.
    fn counts(&self) -> Vec<(V, u64)> {
        let mut counts = vec![0u64; self.distinct.len()];
        self.codes.iter().for_each(|code| counts[usize::from(*code)] += 1);
        self.distinct.iter().copied().zip(counts).collect()
    }
}

/// The place of a value: the upper half of real numbers says most.
fn slot(bits: u64) -> usize {
    ((bits ^ bits >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_in_the_order_of_their_first_occurrences() {
        let mut values = Values::from(vec![7.5, -1.0, 7.5]);
        assert_eq!(values.numbered().unwrap().codes, [0, 1, 0]);
        values.extend([2.0, -1.0]);
        assert_eq!(values.numbered().unwrap().codes, [0, 1, 0, 2, 1]);
        assert_eq!(values.runs(f64::is_finite), [(-1.0, 2), (2.0, 1), (7.5, 2)]);
    }

    #[test]
    fn runs_of_many_values_are_those_of_few() {
        let most = MAX_NUMBERED as i64;
        let few = Values::from((0..3 * most).map(|i| i * 7 % most).collect::<Vec<_>>());
        assert!(few.numbered().is_some());
        assert_eq!(few.runs(|_| true), (0..most).map(|v| (v, 3)).collect::<Vec<_>>());
        let many = Values::from((0..=most).rev().collect::<Vec<_>>());
        assert!(many.numbered().is_none());
        assert_eq!(many.runs(|v| v > 1), (2..=most).map(|v| (v, 1)).collect::<Vec<_>>());
    }
}
