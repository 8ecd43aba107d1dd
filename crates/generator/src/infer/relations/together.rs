//! Columns that are null together.

use std::collections::{BTreeMap, HashMap};

use crate::infer::relations::column::Column;

/// The most combinations of present fields to list.
const MAX_COMBINATIONS: usize = 1000;

/// The most fields that can be present together.
const MAX_TOGETHER: usize = 32;

/// Two columns depend on one another if the share of rows in which both are null is at least this far from
/// chance.
const DEPENDENT: f64 = 0.002;

/// The fields that are null together and the number of rows with each combination of present ones.
#[derive(Debug)]
pub(crate) struct Together {
    pub fields: Vec<usize>,
    pub combinations: BTreeMap<u32, u64>,
}

/// Finds the columns whose nulls depend on one another.
pub(crate) fn together(columns: &[Column<'_>]) -> Option<Together> {
    let with_nulls = |c: &&Column<'_>| c.nullable && c.there.contains(&false) && c.there.contains(&true);
    let some: Vec<usize> =
        (0..columns.len()).filter(|i| with_nulls(&&columns[*i])).take(MAX_TOGETHER).collect();
    let rows = columns.first()?.there.len();
    let mut masks: HashMap<u32, u64> = HashMap::new();
    for row in 0..rows {
        let bit = |(bit, i): (usize, &usize)| u32::from(columns[*i].there[row]) << bit;
        *masks.entry(some.iter().enumerate().map(bit).sum()).or_default() += 1;
    }
    let null = |bits: u32| {
        let count: u64 = masks.iter().filter(|(mask, _)| *mask & bits == 0).map(|(_, n)| n).sum();
        count as f64 / rows as f64
    };
    let depends = |a: usize| {
        (0..some.len()).any(|b| {
            let (a, b) = (1u32 << a, 1u32 << b);
            let by_chance = null(a) * null(b);
            // Samples of independent columns differ, too: four standard deviations are one in 16,000.
            let noise = 4.0 * (by_chance * (1.0 - by_chance) / rows as f64).sqrt();
            a != b && (null(a | b) - by_chance).abs() > noise.max(DEPENDENT)
        })
    };
    let members: Vec<usize> = (0..some.len()).filter(|a| depends(*a)).collect();
    let mut combinations: BTreeMap<u32, u64> = BTreeMap::new();
    for (mask, n) in &masks {
        let bits = members.iter().enumerate().map(|(bit, member)| (mask >> member & 1) << bit);
        *combinations.entry(bits.sum()).or_default() += n;
    }
    let fields = members.iter().map(|member| some[*member]).collect();
    (members.len() > 1 && combinations.len() <= MAX_COMBINATIONS).then_some(Together { fields, combinations })
}
