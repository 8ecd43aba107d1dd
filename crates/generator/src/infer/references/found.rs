//! The keys and references that were found, numbers within a parent, and what they become in a spec.

use std::collections::BTreeMap;

use crate::infer::references::Evidence;
use crate::infer::references::skew::Frequencies;

/// A column and the key it refers to, as places of a table and a column of it.
#[derive(Debug)]
pub(super) struct Reference {
    pub from: (usize, usize),
    pub to: (usize, usize),
    pub evidence: Evidence,
    pub form: Form,
}

/// How a reference is generated.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// Each row draws a key.
    Drawn { frequencies: Frequencies, shuffled: bool, orphans: f64 },
    /// The few keys are drawn by their weights, as other columns of few values are.
    Weighted,
    /// The rows of each key follow one another: how many keys have how many rows.
    Following(BTreeMap<u32, u64>),
}

/// A key of two columns: the key of a parent, and what differs among the rows of each parent.
#[derive(Debug)]
pub(super) struct PairKey {
    pub table: usize,
    pub column: usize,
    /// The column with the parent's key, and that key.
    pub by: usize,
    pub parent: (usize, usize),
    /// The key to which `column` refers; none if it counts the rows from 1.
    pub other: Option<(usize, usize)>,
}

/// Two columns that refer to the key of two columns of another table.
#[derive(Debug)]
pub(super) struct PairReference {
    pub from: (usize, [usize; 2]),
    pub to: (usize, [usize; 2]),
    pub evidence: Evidence,
}

/// What columns of a table have to do with keys.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    /// The line that says how many rows each key of the parent has.
    pub per: Option<String>,
    /// Whether `--scale` leaves its rows alone.
    pub is_fixed: bool,
    /// The hidden fields on which others depend.
    pub hidden: String,
    pub columns: BTreeMap<usize, Role>,
}

/// The `values` of a column that is a key or refers to one.
#[derive(Debug)]
pub(crate) struct Role {
    pub values: String,
    /// Whether it is a key, which has no nulls.
    pub is_key: bool,
    /// What speaks for it.
    pub said: Option<String>,
}
