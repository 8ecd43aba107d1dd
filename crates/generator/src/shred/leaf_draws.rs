//! Draws the values of a leaf into its buffer, from its distribution and a random stream.

pub(crate) mod children;
mod other_rows;
mod row_before;
mod row_numbers;
mod wide_decimals;

use std::borrow::Cow;
use std::ops::Range;

use crate::draw::copula::Ranked;
use crate::draw::expression::{Column, Expression, Row, Values};
use crate::draw::misfit::{Misfit, nearest_whole};
use crate::draw::text::person_name::{self, Addresses};
use crate::draw::text::words::Words;
use crate::draw::text::{PADDING, email, uuid};
use crate::draw::value_spec::{ChosenBy, ReferencedKey, ValueSpec};
use crate::random::instruction_sets::widest;
use crate::random::rng::{Sequence, Stream, scale64, scale128, unit_interval};
use crate::random::weights::Weights;
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::row_numbers::{distinct_numbers, monotone, sequence};
use crate::shred::value_buffer::{ByteStrings, ValueBuffer};
use crate::spec::dataset::Leaf;
use crate::types::literal::big_endian;
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, scaled};

/// The input for drawing the values of one block.
pub(crate) struct Draws<'a> {
    pub stream: Stream,
    /// The number of values.
    pub n: usize,
    /// The id of the first unique value.
    pub first_id: u64,
    /// For sequences and monotone values: the number of each value's row, or of its position in its list.
    pub numbers: &'a [u64],
    /// For expressions: the values of each operand.
    pub operands: &'a [Values],
    /// The requested values; a block is drawn as a whole.
    pub wanted: Range<usize>,
    /// The seed of the job; other tables also draw from it.
    pub seed: u64,
    /// For members of a copula: the rank of each value, from 0 to below 1.
    pub ranks: &'a [f64],
}

/// Appends `n` values; value `i` is made from draw `i`.
#[inline(always)]
fn each<T: Clone + Default>(out: &mut Vec<T>, draws: &Draws<'_>, mut value: impl FnMut(usize, u64) -> T) {
    let at = out.len();
    out.resize(at + draws.n, T::default());
    for (i, out) in out[at..].iter_mut().enumerate() {
        *out = value(i, draws.stream.draw(i as u64));
    }
}

/// Appends whole numbers, within the range of their type, to a buffer of whole numbers.
#[inline(always)]
fn wholes(out: &mut ValueBuffer, draws: &Draws<'_>, mut value: impl FnMut(usize, u64) -> i128) {
    match out {
        ValueBuffer::Int32(out) => each(out, draws, |i, draw| value(i, draw) as i32),
        ValueBuffer::Int64(out) => each(out, draws, |i, draw| value(i, draw) as i64),
        ValueBuffer::Fixed { width, data } => {
            push_big_endian(*width, draws.n, data, |i| value(i, draws.stream.draw(i as u64)));
        }
        // The reader allows whole numbers only for types that store them.
        _ => debug_assert!(false, "whole numbers in another buffer"),
    }
}

/// Appends `n` whole numbers of `width` bytes each.
#[inline(always)]
fn push_big_endian(width: usize, n: usize, data: &mut Vec<u8>, mut value: impl FnMut(usize) -> i128) {
    const MAX: usize = size_of::<i128>();
    let (from, end) = (data.len(), data.len() + n * width);
    if (1..=MAX).contains(&width) {
        // The first bytes of a number of full size; the next number overwrites the others.
        data.resize(end + MAX, 0);
        for i in 0..n {
            let at = from + i * width;
            data[at..at + MAX].copy_from_slice(&(value(i) << (8 * (MAX - width))).to_be_bytes());
        }
        data.truncate(end);
        return;
    }
    data.resize(end, 0);
    for (i, out) in data[from..].chunks_exact_mut(width).enumerate() {
        big_endian(value(i), out);
    }
}

/// Appends real numbers, within the range of their type, to a buffer of real numbers.
#[inline(always)]
fn reals(out: &mut ValueBuffer, draws: &Draws<'_>, mut value: impl FnMut(usize, u64) -> f64) {
    match out {
        ValueBuffer::Float(out) => each(out, draws, |i, draw| value(i, draw) as f32),
        ValueBuffer::Double(out) => each(out, draws, value),
        ValueBuffer::Fixed { data, .. } => {
            for i in 0..draws.n {
                let half = half::f16::from_f64(value(i, draws.stream.draw(i as u64)));
                data.extend_from_slice(&half.to_le_bytes());
            }
        }
        _ => debug_assert!(false, "real numbers in another buffer"),
    }
}

/// Appends unscaled numbers, as whole or real numbers depending on the leaf's type.
#[inline(always)]
fn counts(out: &mut ValueBuffer, draws: &Draws<'_>, kind: &LogicalType, value: impl Fn(u64) -> u64) {
    let one = kind.one();
    if kind.is_real() {
        reals(out, draws, |_, draw| value(draw) as f64);
    } else if one == 1 {
        wholes(out, draws, |_, draw| i128::from(value(draw)));
    } else {
        wholes(out, draws, |_, draw| i128::from(value(draw)) * one);
    }
}

/// Appends strings. `write` writes each one from its draw into a slice of `longest` bytes and the padding, and
/// returns its length.
#[inline(always)]
fn strings(
    out: &mut ValueBuffer,
    draws: &Draws<'_>,
    longest: usize,
    mut write: impl FnMut(u64, &mut [u8]) -> usize,
) {
    let ValueBuffer::Bytes(out) = out else { return };
    let room = longest + PADDING;
    let mut at = out.data.len();
    out.ends.reserve(draws.n);
    for i in 0..draws.n {
        if out.data.len() - at < room {
            // Room for several values, so that the vector grows once for all of them.
            let values = (draws.n - i).min((ROOM / room).max(1));
            out.data.resize(at + values * room, 0);
        }
        at += write(draws.stream.draw(i as u64), &mut out.data[at..at + room]);
        out.ends.push(at as u32);
    }
    out.data.truncate(at);
}

/// How many bytes of strings to make room for at once.
const ROOM: usize = 1 << 16;

/// An unscaled number as the whole number that `kind` stores.
#[inline(always)]
fn whole_in(kind: &LogicalType, one: i128, range: (i128, i128), value: Number) -> Result<i128, Misfit> {
    debug_assert_eq!((one, range), (kind.one(), kind.range()));
    let whole = match value {
        Number::Whole(n) => n.checked_mul(one),
        Number::Real(v) => nearest_whole(v * one as f64),
    };
    whole.filter(|n| (range.0..=range.1).contains(n)).ok_or(Misfit::Outside(value))
}

/// A stored whole number, checked against the range of its type.
#[inline(always)]
fn stored_in(kind: &LogicalType, range: (i128, i128), n: i128) -> Result<i128, Misfit> {
    if (range.0..=range.1).contains(&n) { Ok(n) } else { Err(Misfit::Outside(scaled(kind, n))) }
}

/// A finite real number, checked against the largest one of its type, `most`.
#[inline(always)]
fn real_in(most: f64, value: f64) -> Result<f64, Misfit> {
    if value.abs() <= most { Ok(value) } else { Err(Misfit::Outside(Number::Real(value))) }
}

impl Leaf {
    /// Appends `draws.n` values to `out`. A value that the column cannot hold is replaced; the first one
    /// among the requested values is returned.
    #[must_use]
    pub(crate) fn draw(&self, draws: &Draws<'_>, out: &mut ValueBuffer) -> Option<(usize, Misfit)> {
        let kind = &self.kind;
        if let Some(ranked) = &self.ranked {
            of_ranks(self, ranked, draws, out);
            return None;
        }
        let mut misfits = FirstMisfit::among(draws.wanted.clone());
        if kind.is_wide() && wide_decimals::draw(self, draws, out, &mut misfits) {
            return misfits.found;
        }
        match (&self.values, &mut *out) {
            (ValueSpec::PersonName, ValueBuffer::Names(out)) => {
                let at = out.len();
                out.resize(at + draws.n, 0);
                person_name::draw(draws.stream, &mut out[at..]);
            }
            (ValueSpec::Unique(_), ValueBuffer::Ids(out)) => {
                out.extend(draws.first_id..draws.first_id + draws.n as u64);
            }
            (ValueSpec::Reference(reference), out) => {
                let rows = match &reference.distinct {
                    Some(distinct) => distinct.rows(draws.seed, draws.numbers),
                    None => (0..draws.n).map(|i| reference.row(draws.stream.draw(i as u64))).collect(),
                };
                keys(&reference.key, draws, &rows, out);
            }
            (ValueSpec::Choice { by: Some(by), .. }, ValueBuffer::Indices(out)) => match &**by {
                ChosenBy::Field(by) => by.draw(draws, out),
                ChosenBy::Row(cycle) => out.extend(draws.numbers.iter().map(|row| cycle.number(*row))),
            },
            (ValueSpec::Choice { table, .. }, ValueBuffer::Indices(out)) => pick(table, draws, out),
            (ValueSpec::Boolean(table), ValueBuffer::Booleans(out)) => {
                each(out, draws, |_, draw| table.pick(draw as u32) as u8);
            }
            (ValueSpec::Zipf(ranks), out) => counts(out, draws, kind, |draw| ranks.rank(draw)),
            (ValueSpec::Counts(table), out) => {
                let first = u64::from(table.first);
                counts(out, draws, kind, |draw| first + u64::from(table.table.pick_fine(draw)));
            }
            (ValueSpec::Integers { min, span: 0 }, out) => {
                wholes(out, draws, |_, draw| i128::from(min.wrapping_add(draw as i64)));
            }
            (ValueSpec::Integers { min, span }, out) => {
                // Only unsigned numbers exceed i64::MAX; they keep their bits.
                wholes(out, draws, |_, draw| i128::from(min.wrapping_add(scale64(draw, *span) as i64)));
            }
            (ValueSpec::DistinctNumbers(distinct), out) => {
                distinct_numbers(distinct, kind, draws, out, &mut misfits)
            }
            (ValueSpec::Wide { min, span }, out) => wide(*min, *span, draws, out),
            (ValueSpec::Reals { min, width }, out) => {
                reals(out, draws, |_, draw| min + width * unit_interval(draw));
            }
            (ValueSpec::Curve { curve, low, high }, out) => {
                let sample = |random: &mut Sequence| curve.sample(random);
                continuous(sample, (*low, *high), kind, draws, out, &mut misfits);
            }
            (ValueSpec::Own(distribution), out) => {
                let sample = |random: &mut Sequence| distribution.sample(random);
                continuous(sample, (f64::NEG_INFINITY, f64::INFINITY), kind, draws, out, &mut misfits);
            }
            (ValueSpec::Quantiles(quantiles), out) => match kind.is_real() {
                true => reals(out, draws, |_, draw| quantiles.real(draw)),
                false => wholes(out, draws, |_, draw| quantiles.whole(draw)),
            },
            (ValueSpec::Seasonal(seasonal), out) => wholes(out, draws, |_, draw| seasonal.value(draw)),
            (ValueSpec::Sequence { start, step }, out) => {
                sequence((*start, *step), kind.range(), draws, out, &mut misfits);
            }
            (ValueSpec::Monotone(walk), out) => monotone(walk, kind, draws, out, &mut misfits),
            (ValueSpec::Expression(expression), ValueBuffer::Bytes(out)) => {
                texts(expression, draws, out, &mut misfits);
            }
            (ValueSpec::Expression(expression), ValueBuffer::Booleans(out)) => {
                let random = |i: usize| Sequence::new(draws.stream.draw(i as u64));
                let held = held(expression, draws.operands, draws.n, random, &mut misfits);
                out.extend(held.into_iter().map(u8::from));
            }
            (ValueSpec::Expression(expression), out) => formula(expression, kind, draws, out, &mut misfits),
            (ValueSpec::OtherColumn(column), out) => return column.draw(draws, out).0,
            (ValueSpec::OfChildren(children), out) => return children.draw(kind, draws, out).0,
            (ValueSpec::ChildNumber(fan_out), out) => {
                let children = fan_out.children(draws.seed, draws.numbers);
                let range = kind.range();
                wholes(out, draws, |i, _| {
                    let child = children.get(i).copied().flatten().ok_or(Misfit::NoRow);
                    let number = child.map(|child| Number::Whole(i128::from(child.number) + 1));
                    misfits.or_stand_in(i, number.and_then(|n| whole_in(kind, kind.one(), range, n)))
                });
            }
            (ValueSpec::Operation(changes), ValueBuffer::Bytes(out)) => {
                for (i, change) in changes.changes(draws.seed, draws.numbers).into_iter().enumerate() {
                    let operation = change.map(|change| change.operation.name()).ok_or(Misfit::NoRow);
                    out.data.extend_from_slice(misfits.or_stand_in(i, operation).as_bytes());
                    out.push_end();
                }
            }
            (ValueSpec::Words { least, most }, ValueBuffer::Bytes(out)) => {
                Words::get().texts(draws.stream, draws.n, (*least, *most), out);
            }
            (ValueSpec::Email, out) => {
                let names = Addresses::get();
                strings(out, draws, email::MAX_LENGTH, |draw, out| email::email(names, draw, out));
            }
            (ValueSpec::Intervals(intervals), ValueBuffer::Fixed { data, .. }) => {
                (0..draws.n).for_each(|i| intervals.write(draws.stream.draw(i as u64), data));
            }
            (ValueSpec::Localized(values), ValueBuffer::Bytes(out)) => {
                for i in 0..draws.n {
                    values.write(draws.stream.draw(i as u64), &mut out.data);
                    out.push_end();
                }
            }
            (ValueSpec::Shapes(shapes), ValueBuffer::Bytes(out)) => {
                for i in 0..draws.n {
                    shapes.write(draws.stream.draw(i as u64), &mut out.data);
                    out.push_end();
                }
            }
            (ValueSpec::Uuid, ValueBuffer::Fixed { data, .. }) => {
                for i in 0..draws.n {
                    data.extend_from_slice(&uuid::uuid(draws.stream.draw(i as u64)));
                }
            }
            (ValueSpec::Uuid, out) => {
                strings(out, draws, uuid::TEXT, |draw, out| uuid::uuid_text(uuid::uuid(draw), out));
            }
            (ValueSpec::Pattern(pattern), out) => {
                strings(out, draws, pattern.longest() as usize, |draw, out| pattern.write(draw, out));
            }
            (ValueSpec::Distinct(distinct), out) => {
                let (of_seed, mut rows) = (distinct.of_seed(draws.seed), draws.numbers.iter());
                strings(out, draws, distinct.longest() as usize, |_, out| {
                    of_seed.write(rows.next().copied().unwrap_or(0), out)
                });
            }
            (ValueSpec::Text(text), out) => {
                let words = Words::get();
                strings(out, draws, text.longest() as usize, |draw, out| text.write(words, draw, out));
            }
            (ValueSpec::Bytes { least, most }, out) => random_bytes(*least, *most, draws, out),
            // `ValueBuffer::new` makes the right buffer for each kind of values.
            (values, out) => debug_assert!(false, "{values:?} drawn into {out:?}"),
        }
        misfits.found
    }
}

/// Appends the values of a member's ranks.
fn of_ranks(leaf: &Leaf, ranked: &Ranked, draws: &Draws<'_>, out: &mut ValueBuffer) {
    let draw = |i: usize| {
        let rank = draws.ranks.get(i).copied().unwrap_or(0.0);
        ((rank * (1u64 << 53) as f64) as u64) << 11
    };
    match (&leaf.values, out) {
        (ValueSpec::Quantiles(quantiles), out) if leaf.kind.is_real() => {
            reals(out, draws, |i, _| quantiles.real(draw(i)));
        }
        (ValueSpec::Quantiles(quantiles), out) => wholes(out, draws, |i, _| quantiles.whole(draw(i))),
        (_, ValueBuffer::Booleans(out)) => {
            out.extend(draws.ranks.iter().map(|rank| ranked.number(*rank) as u8));
        }
        (_, ValueBuffer::Indices(out)) => out.extend(draws.ranks.iter().map(|rank| ranked.number(*rank))),
        // The spec's reader rejects other values.
        (values, out) => debug_assert!(false, "{values:?} of ranks into {out:?}"),
    }
}

/// The strings that are the keys of `rows`.
pub(crate) fn texts_of(key: &ReferencedKey, seed: u64, rows: &[u64]) -> ValueBuffer {
    let (stream, n) = (Stream::new(seed, 0, 0), rows.len());
    let all = Draws { stream, n, first_id: 0, numbers: rows, operands: &[], wanted: 0..n, seed, ranks: &[] };
    let mut out = ValueBuffer::Bytes(ByteStrings::default());
    keys(key, &all, rows, &mut out);
    out
}

fn keys(key: &ReferencedKey, draws: &Draws<'_>, rows: &[u64], out: &mut ValueBuffer) {
    let mut next = rows.iter().copied();
    let mut next = || next.next().unwrap_or(0);
    match (key, out) {
        (_, ValueBuffer::Ids(out)) => out.extend_from_slice(rows),
        (_, ValueBuffer::Rows { seed, rows: out }) => {
            *seed = draws.seed;
            out.extend_from_slice(rows);
        }
        (ReferencedKey::Sequence { start, step }, out) => {
            wholes(out, draws, |_, _| start + step * i128::from(next()));
        }
        (ReferencedKey::Distinct(texts), out) => {
            let of_seed = texts.of_seed(draws.seed);
            strings(out, draws, texts.longest() as usize, |_, out| of_seed.write(next(), out));
        }
        (ReferencedKey::Uuid(key), out) => {
            strings(out, draws, uuid::TEXT, |_, out| uuid::uuid_text(key.uuid(draws.seed, next()), out));
        }
        // Its buffer has the rows, see above.
        (ReferencedKey::Unique(_), _) => {}
    }
}

/// Appends indices drawn from a table.
fn pick(table: &Weights, draws: &Draws<'_>, out: &mut Vec<u32>) {
    let at = out.len();
    out.resize(at + draws.n, 0);
    table.fill(draws.stream, &mut out[at..]);
}

/// Appends whole numbers of up to 128 bits, uniformly. A span of 0 means all of them.
fn wide(min: i128, span: u128, draws: &Draws<'_>, out: &mut ValueBuffer) {
    wholes(out, draws, |_, draw| {
        let mut random = Sequence::new(draw);
        let bits = u128::from(random.next()) << 64 | u128::from(random.next());
        let offset = if span == 0 { bits } else { scale128(bits, span) };
        min.wrapping_add(offset as i128)
    });
}

/// Appends draws of `sample`, clamped to `low` and `high`.
fn continuous(
    sample: impl Fn(&mut Sequence) -> f64,
    (low, high): (f64, f64),
    kind: &LogicalType,
    draws: &Draws<'_>,
    out: &mut ValueBuffer,
    misfits: &mut FirstMisfit,
) {
    let value = |draw| sample(&mut Sequence::new(draw)).clamp(low, high);
    if kind.is_real() {
        let most = kind.most_real();
        return reals(out, draws, |i, draw| misfits.or_stand_in(i, real_in(most, value(draw))));
    }
    // Converted once: a conversion from 128 bits takes as long as a draw.
    let (one, range) = (kind.one() as f64, kind.range());
    // A double may only approximate a bound, and then exceed the type's range.
    let ends = (low.is_finite().then_some(range.0), high.is_finite().then_some(range.1));
    wholes(out, draws, |i, draw| {
        let value = value(draw);
        let whole = nearest_whole(value * one).filter(|n| (range.0..=range.1).contains(n));
        let end = if value < 0.0 { ends.0 } else { ends.1 };
        misfits.or_stand_in(i, whole.or(end).ok_or(Misfit::Outside(Number::Real(value))))
    });
}

/// Appends the results of a formula over the operands of each value.
fn formula(
    expression: &Expression,
    kind: &LogicalType,
    draws: &Draws<'_>,
    out: &mut ValueBuffer,
    misfits: &mut FirstMisfit,
) {
    let generator = |i| Sequence::new(draws.stream.draw(i as u64));
    let mut random: Vec<Sequence> =
        if expression.is_drawn { (0..draws.n).map(generator).collect() } else { Vec::new() };
    if let Some(column) = expression.column(draws.operands, &mut random, draws.n)
        && column.len().is_none_or(|n| n == draws.n)
        && append(&column, kind, draws.n, out).is_some()
    {
        return;
    }
    let value =
        |at: usize, draw| expression.value(Row { fields: draws.operands, at }, &mut Sequence::new(draw));
    if kind.is_real() {
        let most = kind.most_real();
        // Only non-finite operands have a non-finite result.
        let fits = |v: f64| if v.is_finite() { real_in(most, v) } else { Ok(v) };
        return reals(out, draws, |i, draw| {
            misfits.or_stand_in(i, value(i, draw).map(Number::real).and_then(fits))
        });
    }
    let (one, range) = (kind.one(), kind.range());
    wholes(out, draws, |i, draw| {
        let whole = value(i, draw).and_then(|value| whole_in(kind, one, range, value));
        misfits.or_stand_in(i, whole)
    });
}

/// Appends the texts of a formula.
fn texts(expression: &Expression, draws: &Draws<'_>, out: &mut ByteStrings, misfits: &mut FirstMisfit) {
    out.ends.reserve(draws.n);
    for at in 0..draws.n {
        let start = out.data.len();
        let random = &mut Sequence::new(draws.stream.draw(at as u64));
        let written = expression.write(Row { fields: draws.operands, at }, random, &mut out.data);
        if written.is_err() {
            out.data.truncate(start);
        }
        misfits.or_stand_in(at, written);
        out.push_end();
    }
}

/// Whether a condition holds for each of `n` values, with the draws that `random` has for each.
pub(crate) fn held(
    condition: &Expression,
    operands: &[Values],
    n: usize,
    random: impl Fn(usize) -> Sequence,
    misfits: &mut FirstMisfit,
) -> Vec<bool> {
    let mut drawn: Vec<Sequence> =
        if condition.is_drawn { (0..n).map(&random).collect() } else { Vec::new() };
    let one = |at: usize| {
        let value = condition.value(Row { fields: operands, at }, &mut random(at));
        misfits.or_stand_in(at, value.map(|value| value == Number::Whole(1)))
    };
    condition.held(operands, &mut drawn, n).unwrap_or_else(|| (0..n).map(one).collect())
}

/// Appends the `n` values of a column, unless one does not fit its type or 64 bits; then it appends nothing and
/// returns `None`.
fn append(column: &Column<'_>, kind: &LogicalType, n: usize, out: &mut ValueBuffer) -> Option<()> {
    if kind.is_real() {
        let most = kind.most_real();
        let values: Cow<'_, [f64]> = match column {
            Column::One(number) => vec![number.real(); n].into(),
            Column::Whole(values) => values.iter().map(|n| *n as f64).collect(),
            Column::Real(values) => Cow::Borrowed(values),
        };
        // Only non-finite operands have a non-finite result.
        if values.iter().any(|v| v.abs() > most && v.is_finite()) {
            return None;
        }
        match out {
            ValueBuffer::Float(out) => out.extend(values.iter().map(|v| *v as f32)),
            ValueBuffer::Double(out) => out.extend_from_slice(&values),
            ValueBuffer::Fixed { data, .. } => {
                data.extend(values.iter().flat_map(|v| half::f16::from_f64(*v).to_le_bytes()));
            }
            _ => return None,
        }
        return Some(());
    }
    let (one, range) = (kind.one(), kind.range());
    let in_64 = |n: i128| n.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let (least, most) = (in_64(range.0), in_64(range.1));
    let mut values = vec![0i64; n];
    match column {
        Column::One(number) => values.fill(i64::try_from(whole_in(kind, one, range, *number).ok()?).ok()?),
        Column::Whole(given) => times_one(given, i64::try_from(one).ok()?, &mut values).then_some(())?,
        Column::Real(given) => rounded(given, one as f64, &mut values).then_some(())?,
    }
    if values.iter().any(|n| *n < least || *n > most) {
        return None;
    }
    match out {
        ValueBuffer::Int32(out) => out.extend(values.iter().map(|n| *n as i32)),
        ValueBuffer::Int64(out) => out.extend_from_slice(&values),
        ValueBuffer::Fixed { width, data } => {
            push_big_endian(*width, n, data, |i| values[i].into());
        }
        _ => return None,
    }
    Some(())
}

/// Multiplies whole numbers by `one`. Returns whether all results have 64 bits.
fn times_one(values: &[i64], one: i64, out: &mut [i64]) -> bool {
    let mut fits = true;
    for (out, n) in out.iter_mut().zip(values) {
        let (product, overflows) = n.overflowing_mul(one);
        fits &= !overflows;
        *out = product;
    }
    fits
}

widest! {
/// Rounds real numbers times `one` to whole numbers. Returns whether all results have 63 bits.
fn rounded(values: &[f64], one: f64, out: &mut [i64]) -> bool {
    const MAX: f64 = (1u64 << 62) as f64;
    let mut fits = true;
    for (out, v) in out.iter_mut().zip(values) {
        let whole = (v * one).round();
        fits &= whole.abs() < MAX;
        *out = whole as i64;
    }
    fits
}
}

/// Appends values of `least` to `most` random bytes.
fn random_bytes(least: u32, most: u32, draws: &Draws<'_>, out: &mut ValueBuffer) {
    let write = |draw, out: &mut [u8]| {
        let mut random = Sequence::new(draw);
        let length = least + scale64(random.next(), u64::from(most - least) + 1) as u32;
        // Whole draws; the next value overwrites the excess.
        for piece in out[..(length as usize).next_multiple_of(8)].chunks_exact_mut(8) {
            piece.copy_from_slice(&random.next().to_le_bytes());
        }
        length as usize
    };
    match out {
        ValueBuffer::Fixed { width, data } => {
            let mut value = vec![0; most as usize + PADDING];
            for i in 0..draws.n {
                write(draws.stream.draw(i as u64), &mut value);
                data.extend_from_slice(&value[..*width]);
            }
        }
        out => strings(out, draws, most as usize, write),
    }
}
