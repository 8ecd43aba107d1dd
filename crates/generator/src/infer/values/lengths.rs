//! The `length` of lists and texts.

use std::collections::BTreeMap;

use crate::infer::notation::table;

/// The most distinct lengths to list.
const MAX_LISTED: usize = 500;

/// The representative lengths: one of each half percent.
const REPRESENTATIVES: u64 = 200;

/// The `length` of lists and texts with these lengths: each with its weight or, if there are very many,
/// representative lengths of equal shares.
pub(crate) fn lengths(counts: &BTreeMap<u32, u64>) -> String {
    match (counts.first_key_value(), counts.last_key_value()) {
        (Some((least, _)), Some((most, _))) if least == most => format!("{{ constant = {least} }}"),
        (Some(_), Some(_)) => {
            let counts = if counts.len() > MAX_LISTED { &representatives(counts) } else { counts };
            format!("{{ weights = {} }}", table(counts))
        }
        _ => "{ uniform = { min = 0, max = 3 } }".to_owned(),
    }
}

/// The lengths in the middle of equal shares, and both ends.
fn representatives(counts: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    let total: u64 = counts.values().sum();
    let mut out = BTreeMap::new();
    let (mut below, mut next) = (0, 0);
    for (length, count) in counts {
        below += count;
        let mut weight = 0;
        while next < REPRESENTATIVES && below * 2 * REPRESENTATIVES > total * (2 * next + 1) {
            weight += total / REPRESENTATIVES;
            next += 1;
        }
        if weight > 0 {
            *out.entry(*length).or_default() += weight;
        }
    }
    for end in [counts.first_key_value(), counts.last_key_value()].into_iter().flatten() {
        *out.entry(*end.0).or_default() += end.1;
    }
    out
}
