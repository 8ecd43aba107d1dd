//! The `values` of bytes: those that occur if they are few, else random ones.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::infer::notation::{quoted, table};
use crate::infer::sample::leaf_sample::BytesSample;
use crate::infer::values::made_up::Verbatim;
use crate::random::rng::Sequence;

/// The most distinct values to copy as categories.
const MAX_CATEGORIES: usize = 256;

/// How often categories occur on average, and how often each that is copied.
const TIMES_EACH: u64 = 20;
const RARE: u64 = 5;

/// Weights of the values, if they may be copied as strings may; a single value of all rows, too.
pub(crate) fn values(sample: &BytesSample, verbatim: Verbatim) -> Option<String> {
    let distinct = sample.values.len() as u64;
    let few = distinct <= MAX_CATEGORIES as u64 && sample.n >= TIMES_EACH * distinct;
    let copies = match verbatim {
        Verbatim::Never => few,
        Verbatim::Categories => few && sample.values.values().all(|n| *n >= RARE),
        Verbatim::Always => sample.n >= 4 * distinct,
    };
    if sample.too_many || distinct == 0 || !copies {
        return None;
    }
    let shown = |(i, value): (usize, &Vec<u8>)| match verbatim {
        Verbatim::Never => hex(&made_up(i, value.len())),
        _ => hex(value),
    };
    let names: BTreeSet<String> = sample.values.keys().enumerate().map(shown).collect();
    // Short bytes that are made up may be equal.
    if names.len() < sample.values.len() {
        return None;
    }
    let names = sample.values.keys().enumerate().map(|value| quoted(&shown(value)));
    Some(format!("{{ weights = {} }}", table(names.zip(sample.values.values()))))
}

/// Other bytes of the same length.
fn made_up(i: usize, length: usize) -> Vec<u8> {
    let mut random = Sequence::new(i as u64);
    (0..length).map(|_| (random.next() >> 56) as u8).collect()
}

/// Random bytes of the lengths that occur.
pub(crate) fn random(sample: &BytesSample) -> String {
    let low = sample.lengths.keys().next().unwrap_or(&0);
    let high = sample.lengths.keys().next_back().unwrap_or(&16);
    format!("{{ bytes = {{ min = {low}, max = {high} }} }}")
}

fn hex(bytes: &[u8]) -> String {
    let mut out = "0x".to_owned();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}
