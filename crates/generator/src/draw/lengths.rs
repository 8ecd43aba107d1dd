//! The number of elements in a list, and whether it is null: one draw from one table.

use crate::draw::choice::bad_weights;
use crate::draw::distribution::{Counts, Curve, exponent};
use crate::draw::nulls::Nulls;
use crate::error::Result;
use crate::random::elementary::pow;
use crate::random::weights::Weights;
use crate::spec_file::toml_reader::{SpecNode, listed};
use crate::types::logical_type::LogicalType;

/// The most elements that nested lists on one path may have in one record. It bounds the memory of a block
/// of rows.
pub(crate) const MAX_ELEMENTS: u32 = 4096;

#[derive(Debug)]
pub(crate) struct Lengths {
    pub table: Weights,
    /// The length for each index of the table; `None` for a null list.
    pub lengths: Vec<Option<u32>>,
    pub longest: u32,
}

/// The names of length distributions.
pub(crate) const LENGTHS: [&str; 9] =
    ["constant", "uniform", "zipf", "weights", "poisson", "geometric", "normal", "lognormal", "exponential"];

impl Lengths {
    /// Reads a distribution of lengths. `empty` is the optional share of empty lists among those that are not
    /// null.
    pub(crate) fn read(node: SpecNode<'_>, empty: Option<SpecNode<'_>>, nulls: Nulls) -> Result<Self> {
        Self::read_up_to(MAX_ELEMENTS, node, empty, nulls)
    }

    /// Reads a distribution of lengths up to `most`.
    pub(crate) fn read_up_to(
        most: u32,
        node: SpecNode<'_>,
        empty: Option<SpecNode<'_>>,
        nulls: Nulls,
    ) -> Result<Self> {
        let mut weighted = outcomes(most, node)?;
        if weighted.is_empty() || weighted.iter().any(|(n, _)| *n > most) {
            return Err(node.error("a length that is too long", format!("use lengths of at most {most}")));
        }
        if let Some(empty) = empty {
            let wrong = || empty.unfit("`empty = {}` is not a probability", "use 0.0 to 1.0");
            let share = empty.number_in(0.0..=1.0).ok_or_else(wrong)?;
            let total: f64 = weighted.iter().map(|(_, w)| w).sum();
            for (_, weight) in &mut weighted {
                *weight *= (1.0 - share) / total;
            }
            weighted.push((0, share));
        }
        Self::of_weights(&weighted, nulls, node)
    }

    /// Lists of `size` elements, unless they are null.
    pub(crate) fn of_size(size: u32, nulls: Nulls, node: SpecNode<'_>) -> Result<Self> {
        Self::of_weights(&[(size, 1.0)], nulls, node)
    }

    fn of_weights(weighted: &[(u32, f64)], nulls: Nulls, node: SpecNode<'_>) -> Result<Self> {
        let longest = weighted.iter().map(|(n, _)| *n).max().unwrap_or(0);
        let build = |weights: &[f64]| Weights::new(weights).map_err(|bad| bad_weights(&bad, node));
        let table = build(&weighted.iter().map(|(_, w)| *w).collect::<Vec<_>>())?;
        let mut lengths: Vec<Option<u32>> = weighted.iter().map(|(n, _)| Some(*n)).collect();
        let Nulls::Share(null) = nulls else { return Ok(Lengths { table, lengths, longest }) };
        // The lengths share the probability that null leaves.
        let mut weights: Vec<f64> = table.probabilities().iter().map(|p| p * (1.0 - null)).collect();
        weights.push(null);
        lengths.push(None);
        Ok(Lengths { table: build(&weights)?, lengths, longest })
    }

    /// The average number of elements; null lists count as empty.
    pub(crate) fn mean(&self) -> f64 {
        let lengths = self.lengths.iter().zip(self.table.probabilities());
        lengths.map(|(n, p)| f64::from(n.unwrap_or(0)) * p).sum()
    }

    /// The average number of entries: the elements, or one entry for a null or empty list.
    pub(crate) fn mean_entries(&self) -> f64 {
        let lengths = self.lengths.iter().zip(self.table.probabilities());
        lengths.map(|(n, p)| f64::from(n.unwrap_or(0).max(1)) * p).sum()
    }
}

/// Reads the lengths with their relative probabilities.
fn outcomes(longest: u32, node: SpecNode<'_>) -> Result<Vec<(u32, f64)>> {
    let table = node.any_table("`length`")?;
    let mut entries = table.entries();
    let (Some((name, parameters)), None) = (entries.next(), entries.next()) else {
        let what = "`length` must be a table with one key, the name of a distribution";
        return Err(node.error(what, "for example { uniform = { min = 0, max = 3 } }"));
    };
    let length = |node: SpecNode<'_>| {
        let wrong = || node.unfit("{} is not a length", format!("use a whole number from 0 to {longest}"));
        node.integer_in(0..=longest).ok_or_else(wrong)
    };
    match name {
        "constant" => Ok(vec![(length(parameters)?, 1.0)]),
        "uniform" => {
            let table = parameters.table(name, &["min", "max"])?;
            let (min, max) = (table.need("min", name)?, table.need("max", name)?);
            let (low, high) = min.in_order(length(min)?, length(max)?)?;
            Ok((low..=high).map(|n| (n, 1.0)).collect())
        }
        "zipf" => {
            let table = parameters.table(name, &["n", "s"])?;
            let n = length(table.need("n", name)?)?;
            let s = exponent(table.need("s", name)?)?;
            Ok((1..=n).map(|k| (k, pow(f64::from(k), -s))).collect())
        }
        "weights" => {
            let mut out = Vec::new();
            for (key, weight) in parameters.any_table(name)?.entries() {
                let (Ok(n), Some(weight)) = (key.parse::<u32>(), weight.number()) else {
                    let what = format!("{key:?} = {} is not a length with its weight", weight.described());
                    return Err(weight.error(what, "use whole numbers as keys: { 1 = 45, 2 = 10 }"));
                };
                out.push((n, weight));
            }
            Ok(out)
        }
        "poisson" | "geometric" => {
            let counts = Counts::read(name, parameters)?;
            Ok(trimmed(counts.outcomes().collect()))
        }
        "normal" | "lognormal" | "exponential" => {
            let curve = Curve::read(name, parameters, &LogicalType::Double)?;
            let table = parameters.any_table(name)?;
            let bound = |key: &str, default: u32| table.get(key).map_or(Ok(default), length);
            let (min, max) = parameters.in_order(bound("min", 0)?, bound("max", MAX_ELEMENTS)?)?;
            let outcomes = curve.rounded(min, max);
            Ok(if table.get("max").is_some() { outcomes } else { trimmed(outcomes) })
        }
        _ => {
            let what = format!("unknown distribution of lengths {name:?}");
            Err(table.key_error(name, what, format!("allowed: {}", listed(&LENGTHS))))
        }
    }
}

/// The outcomes without an improbable tail of less than one in a billion.
fn trimmed(mut outcomes: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    let mut left_out = 0.0;
    while let Some((_, p)) = outcomes.last() {
        left_out += p;
        if left_out > 1e-9 || outcomes.len() == 1 {
            break;
        }
        outcomes.pop();
    }
    outcomes
}
