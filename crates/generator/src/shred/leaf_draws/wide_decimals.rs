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

/// What decimals of a type can be.
struct Decimals {
    /// The whole number that stores 1, as a power of ten and as a real number.
    scale: u32,
    one: f64,
    /// The least whole number that is too large.
    above: Int256,
}

impl Decimals {
    fn inside(&self, n: Int256) -> Option<Int256> {
        (-self.above < n && n < self.above).then_some(n)
    }

    fn stored(&self, value: Number) -> Result<Int256, Misfit> {
        let whole = match value {
            Number::Whole(n) => Int256::from(n).shifted(self.scale),
            Number::Real(v) => Int256::nearest(v * self.one),
        };
        whole.and_then(|n| self.inside(n)).ok_or(Misfit::Outside(value))
    }

    fn count(&self, n: u64) -> Result<Int256, Misfit> {
        self.stored(Number::Whole(n.into()))
    }

    /// A value within bounds. A double may only approximate a bound, and then exceed the type's range.
    fn clamped(&self, value: f64, (low, high): (f64, f64)) -> Result<Int256, Misfit> {
        let (value, most) = (value.clamp(low, high), self.above - Int256::from(1));
        match self.stored(Number::Real(value)) {
            Err(_) if value < 0.0 && low.is_finite() => Ok(-most),
            Err(_) if value > 0.0 && high.is_finite() => Ok(most),
            stored => stored,
        }
    }
}

/// Appends the values of a leaf whose decimals take more than 128 bits. For other leaves, appends nothing and returns
/// `false`.
pub(super) fn draw(leaf: &Leaf, draws: &Draws<'_>, out: &mut ValueBuffer, misfits: &mut FirstMisfit) -> bool {
    let (LogicalType::Decimal { precision, scale, .. }, ValueBuffer::Fixed { width, data }) =
        (&leaf.kind, out)
    else {
        return false;
    };
    let (one, above) = (leaf.kind.one_real(), Int256::power_of_ten(*precision));
    let decimals = Decimals { scale: (*scale).into(), one, above };
    let raw = |i: usize| draws.stream.draw(i as u64);
    let mut each = |value: &dyn Fn(usize, &mut Sequence) -> Result<Int256, Misfit>| {
        for i in 0..draws.n {
            let value = value(i, &mut Sequence::new(raw(i)));
            let bytes = misfits.or_stand_in(i, value).bytes();
            data.extend_from_slice(&bytes[bytes.len().saturating_sub(*width)..]);
        }
    };
    match &leaf.values {
        ValueSpec::Wider { min, span } => {
            each(&|_, random| Ok(*min + Int256::scaled([(); 4].map(|()| random.next()), *span)));
        }
        ValueSpec::DistinctNumbers(distinct) => {
            let offset = distinct.offsets(draws.seed);
            each(&|i, _| {
                let offset = offset(draws.numbers.get(i).copied().unwrap_or(0));
                let number = distinct.least + Int256::from(offset);
                decimals.inside(number).ok_or(Misfit::Outside(Number::Real(number.real() / one)))
            });
        }
        ValueSpec::Zipf(ranks) => each(&|i, _| decimals.count(ranks.rank(raw(i)))),
        ValueSpec::Counts(counts) => {
            let number = |draw| u64::from(counts.first) + u64::from(counts.table.pick_fine(draw));
            each(&|i, _| decimals.count(number(raw(i))));
        }
        ValueSpec::Curve { curve, low, high } => {
            each(&|_, random| decimals.clamped(curve.sample(random), (*low, *high)));
        }
        ValueSpec::Own(distribution) => {
            each(&|_, random| decimals.stored(Number::Real(distribution.sample(random))));
        }
        ValueSpec::Expression(expression) => each(&|at, random| {
            let value = expression.value(Row { fields: draws.operands, at }, random);
            value.and_then(|value| decimals.stored(value))
        }),
        ValueSpec::ChildNumber(fan_out) => {
            let children = fan_out.children(draws.seed, draws.numbers);
            each(&|i, _| {
                let child = children.get(i).copied().flatten().ok_or(Misfit::NoRow);
                child.and_then(|child| decimals.count(child.number + 1))
            });
        }
        _ => return false,
    }
    true
}
