//! Decimals of more than 38 digits, computed in 256 bits.

use crate::draw::expression::Row;
use crate::draw::misfit::Misfit;
use crate::draw::value_spec::ValueSpec;
use crate::random::rng::Sequence;
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::Draws;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::Leaf;
use crate::types::int256::Int256;
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// Appends the values of such a leaf. Returns `false` if they have at most 128 bits, and appends none then.
pub(super) fn draw(leaf: &Leaf, draws: &Draws<'_>, out: &mut ValueBuffer, misfits: &mut FirstMisfit) -> bool {
    let (LogicalType::Decimal { precision, scale, .. }, ValueBuffer::Fixed { width, data }) =
        (&leaf.kind, out)
    else {
        return false;
    };
    let (one, above) = (leaf.kind.one_real(), Int256::power_of_ten(*precision));
    let inside = |n: Option<Int256>| n.filter(|n| -above < *n && *n < above);
    let stored = |value: Number| {
        let whole = match value {
            Number::Whole(n) => Int256::from(n).shifted((*scale).into()),
            Number::Real(v) => Int256::nearest(v * one),
        };
        inside(whole).ok_or(Misfit::Outside(value))
    };
    let count = |n: u64| stored(Number::Whole(n.into()));
    let clamped = |value: f64, (low, high): (f64, f64)| {
        let value = value.clamp(low, high);
        let end = Int256::from(1) - above;
        // A double may only approximate a bound, and then exceed the type's range.
        match stored(Number::Real(value)) {
            Err(_) if value < 0.0 && low.is_finite() => Ok(end),
            Err(_) if value > 0.0 && high.is_finite() => Ok(-end),
            stored => stored,
        }
    };
    let mut each = |value: &mut dyn FnMut(usize, &mut Sequence) -> Result<Int256, Misfit>| {
        for i in 0..draws.n {
            let random = &mut Sequence::new(draws.stream.draw(i as u64));
            let bytes = misfits.or_stand_in(i, value(i, random)).bytes();
            data.extend_from_slice(&bytes[bytes.len().saturating_sub(*width)..]);
        }
    };
    let raw = |i: usize| draws.stream.draw(i as u64);
    match &leaf.values {
        ValueSpec::Wider { min, span } => {
            each(&mut |_, random| Ok(*min + Int256::scaled([(); 4].map(|()| random.next()), *span)))
        }
        ValueSpec::DistinctNumbers(distinct) => {
            let offset = distinct.offsets(draws.seed);
            each(&mut |i, _| {
                let number =
                    distinct.least() + Int256::from(offset(draws.numbers.get(i).copied().unwrap_or(0)));
                inside(Some(number)).ok_or(Misfit::Outside(Number::Real(number.real() / one)))
            });
        }
        ValueSpec::Zipf(ranks) => each(&mut |i, _| count(ranks.rank(raw(i)))),
        ValueSpec::Counts(counts) => {
            each(&mut |i, _| count(u64::from(counts.first) + u64::from(counts.table.pick_fine(raw(i)))));
        }
        ValueSpec::Curve { curve, low, high } => {
            each(&mut |_, random| clamped(curve.sample(random), (*low, *high)));
        }
        ValueSpec::Own(distribution) => {
            each(&mut |_, random| stored(Number::Real(distribution.sample(random))))
        }
        ValueSpec::Expression(expression) => each(&mut |at, random| {
            expression.value(Row { fields: draws.operands, at }, random).and_then(stored)
        }),
        ValueSpec::ChildNumber(fan_out) => {
            let children = fan_out.children(draws.seed, draws.numbers);
            each(&mut |i, _| {
                let child = children.get(i).copied().flatten().ok_or(Misfit::NoRow);
                child.and_then(|child| count(child.number + 1))
            });
        }
        _ => return false,
    }
    true
}
