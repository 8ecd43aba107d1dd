//! Values that follow from the numbers of their rows: sequences, walks, numbers that do not repeat.

use crate::draw::misfit::Misfit;
use crate::draw::monotone::Monotone;
use crate::draw::value_spec::distinct_numbers::DistinctNumbers;
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::{Draws, stored_in, wholes};
use crate::shred::value_buffer::ValueBuffer;
use crate::types::logical_type::LogicalType;

/// Appends `start + step * n` for the number `n` of each value; wraps around at the end of the type's range.
pub(super) fn sequence(
    (start, step): (i128, i128),
    (low, high): (i128, i128),
    draws: &Draws<'_>,
    out: &mut ValueBuffer,
    misfits: &mut FirstMisfit,
) {
    let around = |value: i128| {
        let places = high.checked_sub(low)?.checked_add(1)?;
        low.checked_add(value.checked_sub(low)?.rem_euclid(places))
    };
    wholes(out, draws, |i, _| {
        let value = step.checked_mul(draws.numbers[i].into()).and_then(|n| n.checked_add(start));
        let value = match value {
            Some(value) if (low..=high).contains(&value) => Some(value),
            value => value.and_then(around),
        };
        misfits.or_stand_in(i, value.ok_or(Misfit::TooLarge))
    });
}

/// Appends increasing values, one for the number of each value.
pub(super) fn monotone(
    walk: &Monotone,
    kind: &LogicalType,
    draws: &Draws<'_>,
    out: &mut ValueBuffer,
    misfits: &mut FirstMisfit,
) {
    let range = kind.range();
    wholes(out, draws, |i, draw| {
        let value = walk.value(draws.numbers[i], draw);
        misfits.or_stand_in(i, value.ok_or(Misfit::TooLarge).and_then(|n| stored_in(kind, range, n)))
    });
}

/// Appends a number of the range for each row, another one than for all rows before.
pub(super) fn distinct_numbers(
    distinct: &DistinctNumbers,
    kind: &LogicalType,
    draws: &Draws<'_>,
    out: &mut ValueBuffer,
    misfits: &mut FirstMisfit,
) {
    // Wider numbers are of wide decimals alone.
    let least = distinct.least.narrow().unwrap_or(0);
    let (offset, range) = (distinct.offsets(draws.seed), kind.range());
    wholes(out, draws, |i, _| {
        let n = least.saturating_add(offset(draws.numbers.get(i).copied().unwrap_or(0)));
        misfits.or_stand_in(i, stored_in(kind, range, n))
    });
}
