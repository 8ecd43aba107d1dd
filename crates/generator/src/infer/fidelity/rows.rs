//! The columns of some whole rows, prepared once for all pairs.

use std::collections::HashMap;

use arrow_schema::DataType;

use crate::infer::sample::cells::Cells;
use crate::infer::sample::inferred_field::{Inferred, InferredKind};

/// A number falls into one of this many bins of equally many rows.
pub(super) const MAX_BINS: usize = 20;

/// The fewest rows of a bin.
pub(super) const ROWS_A_BIN: usize = 50;

/// How often each string occurs on average, so that a sample tells what goes with it.
const TIMES_EACH: usize = 5;

/// The code of a row without a value.
pub(super) const NULL: u32 = u32::MAX;

/// A leaf outside of lists.
pub(super) struct Leaf<'a> {
    pub path: String,
    pub kind: &'a DataType,
    pub cells: &'a Cells,
}

/// The leaves outside of lists, and why others cannot be compared with each other column.
pub(super) fn leaves<'a>(fields: impl Iterator<Item = &'a Inferred>) -> (Vec<Leaf<'a>>, Vec<String>) {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for field in fields {
        add_leaves(field, field.name.clone(), &mut found, &mut others);
    }
    (found, others)
}

/// The number of leaves outside of lists, also without rows to compare.
pub(super) fn count_leaves<'a>(fields: impl Iterator<Item = &'a Inferred>) -> usize {
    let count = |field: &Inferred| match &field.kind {
        InferredKind::Struct(fields) => count_leaves(fields.iter()),
        InferredKind::Leaf { .. } => 1,
        InferredKind::List { .. } => 0,
    };
    fields.map(count).sum()
}

fn add_leaves<'a>(field: &'a Inferred, path: String, found: &mut Vec<Leaf<'a>>, others: &mut Vec<String>) {
    match (&field.kind, &field.cells) {
        (InferredKind::Struct(fields), _) => {
            fields.iter().for_each(|of| add_leaves(of, format!("{path}.{}", of.name), found, others));
        }
        (InferredKind::Leaf { kind, .. }, Some(cells)) => found.push(Leaf { path, kind, cells }),
        (InferredKind::Leaf { .. }, None) => {
            others.push(format!("{path} with other columns: too many columns"))
        }
        _ => others.push(format!("{path} with other columns: it has lists")),
    }
}

impl Leaf<'_> {
    pub(super) fn is_number(&self) -> bool {
        !matches!(
            self.kind,
            DataType::Boolean | DataType::Utf8 | DataType::Binary | DataType::FixedSizeBinary(_)
        )
    }

    /// Whether equal values of the two are equal words.
    pub(super) fn has_words_of(&self, other: &Leaf<'_>) -> bool {
        let is_plain = |kind: &DataType| kind.is_numeric();
        self.kind == other.kind || is_plain(self.kind) && is_plain(other.kind)
    }

    /// Whether the rows have values, and no two equal ones.
    pub(super) fn all_differ(&self) -> bool {
        let present = self.cells.there.iter().filter(|there| **there).count();
        present > 1 && self.by_frequency().len() == present
    }

    /// How often each value occurs.
    pub(super) fn counts(&self) -> HashMap<u64, u64> {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let words = self.cells.words.iter().zip(&self.cells.there).filter(|(_, there)| **there);
        words.for_each(|(word, _)| *counts.entry(*word).or_default() += 1);
        counts
    }

    /// The number of each value in the order of their frequencies.
    pub(super) fn by_frequency(&self) -> HashMap<u64, u32> {
        numbered(&self.counts(), 1)
    }
}

/// The number of each value that occurs at least so often, in the order of their frequencies.
pub(super) fn numbered(counts: &HashMap<u64, u64>, least: u64) -> HashMap<u64, u32> {
    let mut counts: Vec<(u64, u64)> =
        counts.iter().map(|(word, n)| (*word, *n)).filter(|(_, n)| *n >= least).collect();
    counts.sort_unstable_by_key(|(word, n)| (std::cmp::Reverse(*n), *word));
    counts.into_iter().zip(0..).map(|((word, _), number)| (word, number)).collect()
}

/// A column as the measures of pairs need it.
pub(super) struct Measured {
    /// Of a number: the rank of each row, from -0.5 to 0.5; 0 for null.
    pub ranks: Option<Vec<f64>>,
    /// The category of each row, or the bin of its number.
    pub codes: Codes,
    /// Whether each row has a value; `None` if all rows are alike.
    pub nulls: Option<Codes>,
}

/// Each row as one of some categories.
#[derive(Default)]
pub(super) struct Codes {
    pub of_rows: Vec<u32>,
    /// The number of categories; 0 if the values are too many to be categories.
    pub n: usize,
}

impl Measured {
    pub(super) fn new(leaf: &Leaf<'_>) -> Self {
        let there = &leaf.cells.there;
        let present = there.iter().filter(|there| **there).count();
        let has_nulls = present > 0 && present < there.len();
        let nulls =
            has_nulls.then(|| Codes { of_rows: there.iter().map(|there| u32::from(*there)).collect(), n: 2 });
        if leaf.is_number() {
            let (ranks, codes) = ranked(leaf.cells, present);
            return Measured { ranks: Some(ranks), codes, nulls };
        }
        let numbers = leaf.by_frequency();
        let is_few = numbers.len() <= 2 || numbers.len() * TIMES_EACH <= present;
        let code = |(word, there): (&u64, &bool)| match there {
            true => numbers.get(word).copied().unwrap_or(NULL),
            false => NULL,
        };
        let codes = if is_few {
            Codes { of_rows: leaf.cells.words.iter().zip(there).map(code).collect(), n: numbers.len() }
        } else {
            Codes::default()
        };
        Measured { ranks: None, codes, nulls }
    }

    /// Whether its values can be compared with another column's.
    pub(super) fn has_values(&self) -> bool {
        self.ranks.is_some() || self.codes.n > 0
    }
}

/// The rank of each number, the mean of its equals, and its bin.
fn ranked(cells: &Cells, present: usize) -> (Vec<f64>, Codes) {
    let mut order: Vec<(f64, u32)> = cells
        .numbers
        .iter()
        .copied()
        .zip(0..)
        .zip(&cells.there)
        .filter(|(_, there)| **there)
        .map(|(of, _)| of)
        .collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let bins = (present / ROWS_A_BIN).clamp(1, MAX_BINS);
    let mut ranks = vec![0.0; cells.numbers.len()];
    let mut of_rows = vec![NULL; cells.numbers.len()];
    let (mut first, mut n, mut last) = (0, 0, None);
    for equal in order.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let middle = (first as f64 + equal.len() as f64 / 2.0) / present as f64;
        // Equal numbers share a bin, and bins are numbered without gaps.
        let bin = (middle * bins as f64) as usize;
        if last != Some(bin) {
            (n, last) = (n + 1, Some(bin));
        }
        for (_, row) in equal {
            ranks[*row as usize] = middle - 0.5;
            of_rows[*row as usize] = n as u32 - 1;
        }
        first += equal.len();
    }
    (ranks, Codes { of_rows, n })
}
