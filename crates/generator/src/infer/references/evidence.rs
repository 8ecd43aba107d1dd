//! How the values of one column lie among the keys of another.

use crate::infer::fidelity::RelationFidelity;
use crate::infer::references::skew::{Frequencies, NEARLY_ALL};
use crate::infer::references::{Hashes, Key};

/// What a sample says about a column that may refer to a key.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    /// The number of sampled values without nulls.
    pub values: u64,
    /// How many of them are not keys.
    pub orphans: u64,
    /// The number of different keys.
    pub distinct: u64,
    /// The number of keys.
    pub keys: u64,
    /// The share of the most frequent key.
    pub top: f64,
    /// How far the different keys are from being spread over all of them: a Kolmogorov-Smirnov distance.
    pub spread: f64,
    /// The row of the key of each value that has one, in the order of the sample.
    pub rows: Vec<u32>,
    /// How often each row occurs, in the order of the rows.
    pub counts: Vec<(u32, u64)>,
}

/// After this many values a share of orphans above [`HOPELESS`] ends the comparison.
const FIRST: usize = 1000;
const HOPELESS: f64 = 0.5;

impl Evidence {
    /// Compares values with keys; `None` if their types differ, or if fewer than half of the
    /// first thousand values are keys.
    pub(crate) fn new(values: &Hashes, key: &Key) -> Option<Self> {
        if values.class != key.class || values.values.is_empty() {
            return None;
        }
        let mut rows: Vec<u32> = Vec::new();
        for (i, hash) in values.values.iter().enumerate() {
            rows.extend(key.rows_of.get(hash));
            if i == FIRST && (rows.len() as f64) < HOPELESS * FIRST as f64 {
                return None;
            }
        }
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        let counts: Vec<(u32, u64)> =
            sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        let n = counts.len().max(1) as f64;
        let spread = counts.iter().enumerate().map(|(i, (row, _))| {
            let expected = (f64::from(*row) + 0.5) / key.rows() as f64;
            ((i as f64 + 0.5) / n - expected).abs()
        });
        let values = values.values.len() as u64;
        let most = counts.iter().map(|(_, n)| *n).max().unwrap_or(0);
        Some(Evidence {
            values,
            orphans: values - rows.len() as u64,
            distinct: counts.len() as u64,
            keys: key.rows(),
            top: most as f64 / values as f64,
            spread: spread.fold(0.0, f64::max),
            rows,
            counts,
        })
    }

    pub(crate) fn orphan_share(&self) -> f64 {
        self.orphans as f64 / self.values.max(1) as f64
    }

    /// The orphans among the values of `from`, and the keys of `to` that occur, here and in generated data.
    pub(crate) fn compared(&self, generated: Option<&Self>, from: &str, to: &str) -> [RelationFidelity; 2] {
        let relation = |relation: String, of: &dyn Fn(&Self) -> f64, without: f64| {
            let generated = generated.map_or(without, of);
            RelationFidelity { relation, source: of(self), generated }
        };
        [
            relation(format!("orphans of {from}, no keys of {to}"), &Self::orphan_share, 1.0),
            relation(format!("keys of {to} in {from}"), &|of| of.distinct as f64 / of.keys as f64, 0.0),
        ]
    }

    /// How often the keys occur, and whether the frequent ones are anywhere rather than first.
    pub(crate) fn frequencies(&self) -> (Frequencies, bool) {
        let counts: Vec<u64> = self.counts.iter().map(|(_, n)| *n).collect();
        let frequencies = Frequencies::new(&counts, self.keys);
        let tenth = self.counts.iter().filter(|(row, _)| u64::from(*row) * 10 < self.keys);
        let tenth = tenth.map(|(_, n)| *n).sum::<u64>() as f64 / self.rows.len().max(1) as f64;
        let uneven = !frequencies.is_even() || frequencies.used() < NEARLY_ALL * self.keys as f64;
        let shuffled = uneven && (tenth - 0.1).abs() < (tenth - frequencies.first_tenth(self.keys)).abs();
        (frequencies, shuffled)
    }

    /// Whether the values follow the order of the keys.
    pub(crate) fn is_sorted(&self) -> bool {
        self.orphans == 0 && self.rows.is_sorted()
    }

    /// How many rows there are for each key, as far as the sample shows all of them: not those at the ends of
    /// its `ranges` within all `rows`.
    pub(crate) fn rows_a_key(&self, ranges: &[(u64, u64)], rows: Option<u64>) -> Vec<u32> {
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, n) in ranges {
            match joined.last_mut() {
                Some((start, length)) if *start + *length == *first => *length += n,
                _ => joined.push((*first, *n)),
            }
        }
        let mut out = Vec::new();
        let mut at = 0;
        for (first, n) in joined {
            let end = (at + n as usize).min(self.rows.len());
            let runs: Vec<&[u32]> = self.rows[at.min(end)..end].chunk_by(|a, b| a == b).collect();
            let (starts_whole, ends_whole) = (first == 0, rows == Some(first + n));
            for (k, run) in runs.iter().enumerate() {
                let is_whole = (k > 0 || starts_whole) && (k + 1 < runs.len() || ends_whole);
                out.extend(is_whole.then_some(run.len() as u32));
            }
            at = end;
        }
        out
    }
}
