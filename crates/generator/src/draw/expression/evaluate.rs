//! Evaluates an expression for one record.

use super::operand_values::Row;
use super::{Function, Term};
use crate::draw::distribution::Curve;
use crate::draw::misfit::{Misfit, nearest_whole};
use crate::random::elementary::{cos, fast_exp, ln, sin};
use crate::random::rng::{Sequence, unit_interval};
use crate::types::number::Number;

use Number::{Real, Whole};

/// Larger whole numbers, such as times, keep all their digits when a real number is added.
pub(super) const LARGE: u128 = 1 << 40;

/// The value of `node` for the operands `row`.
pub(super) fn evaluate(node: &Term, row: Row<'_>, random: &mut Sequence) -> Result<Number, Misfit> {
    match node {
        Term::Number(number) => Ok(*number),
        Term::Drawn(drawn) => Ok(drawn.value(random.next())),
        Term::Field(i) => Ok(row.number(*i)),
        Term::Length(text) => text.length(row, random),
        Term::If(condition, yes, no) => {
            let chosen = if condition.holds(row, random)? { yes } else { no };
            evaluate(chosen, row, random)
        }
        Term::Negated(of) => match evaluate(of, row, random)? {
            Whole(n) => n.checked_neg().map(Whole).ok_or(Misfit::TooLarge),
            Real(v) => Ok(Real(-v)),
        },
        Term::Binary(operator, left, right) => {
            let (left, right) = (evaluate(left, row, random)?, evaluate(right, row, random)?);
            binary(*operator, left, right)
        }
        Term::Call(function, arguments) => {
            let mut values = [Whole(0); 2];
            for (value, node) in values.iter_mut().zip(arguments) {
                *value = evaluate(node, row, random)?;
            }
            call(*function, values, random)
        }
    }
}

pub(super) fn binary(operator: u8, left: Number, right: Number) -> Result<Number, Misfit> {
    let is_large = |n: i128| n.unsigned_abs() > LARGE;
    let whole = |n: Option<i128>| n.map(Whole).ok_or(Misfit::TooLarge);
    let (a, b) = (left.real(), right.real());
    let value = match (operator, left, right) {
        (b'/' | b'%', ..) if b == 0.0 => return Err(Misfit::DividedByZero),
        (b'+', Whole(a), Whole(b)) => return whole(a.checked_add(b)),
        (b'-', Whole(a), Whole(b)) => return whole(a.checked_sub(b)),
        (b'*', Whole(a), Whole(b)) => return whole(a.checked_mul(b)),
        (b'%', Whole(a), Whole(b)) => return whole(a.checked_rem_euclid(b)),
        (b'+', Whole(n), Real(v)) | (b'+', Real(v), Whole(n)) if is_large(n) && v.is_finite() => {
            return whole(nearest_whole(v).and_then(|v| n.checked_add(v)));
        }
        (b'-', Whole(n), Real(v)) if is_large(n) && v.is_finite() => {
            return whole(nearest_whole(v).and_then(|v| n.checked_sub(v)));
        }
        (b'+', ..) => a + b,
        (b'-', ..) => a - b,
        (b'*', ..) => a * b,
        (b'/', ..) => a / b,
        _ => a.rem_euclid(b),
    };
    // A non-finite operand may stay non-finite, but finite operands must have a finite result.
    match value.is_finite() || !a.is_finite() || !b.is_finite() {
        true => Ok(Real(value)),
        false => Err(Misfit::Outside(Real(value))),
    }
}

pub(super) fn call(
    function: Function,
    [first, second]: [Number; 2],
    random: &mut Sequence,
) -> Result<Number, Misfit> {
    let (a, b) = (first.real(), second.real());
    let value = match function {
        Function::Uniform => a + (b - a) * unit_interval(random.next()),
        Function::Normal => Curve::Normal { mean: a, stddev: b }.sample(random),
        Function::LogNormal => Curve::LogNormal { mu: ln(a), sigma: b }.sample(random),
        Function::Exponential => Curve::Exponential { mean: a }.sample(random),
        Function::Least => return Ok(if at_most(first, second) { first } else { second }),
        Function::Greatest => return Ok(if at_most(second, first) { first } else { second }),
        Function::Abs => match first {
            Whole(n) => return n.checked_abs().map(Whole).ok_or(Misfit::TooLarge),
            Real(v) => v.abs(),
        },
        Function::Floor | Function::Round if matches!(first, Whole(_)) => return Ok(first),
        Function::Floor => a.floor(),
        Function::Round => a.round(),
        Function::Sqrt => a.sqrt(),
        Function::Exp => fast_exp(a),
        Function::Ln => ln(a),
        Function::Sin => sin(a),
        Function::Cos => cos(a),
    };
    match value.is_finite() || !a.is_finite() || !b.is_finite() {
        true => Ok(Real(value)),
        false if value.is_nan() || function == Function::Ln => Err(Misfit::Undefined(function.name(), a)),
        false => Err(Misfit::Outside(Real(value))),
    }
}

/// Whether `a <= b`, exact to the last digit.
pub(super) fn at_most(a: Number, b: Number) -> bool {
    match (a, b) {
        (Whole(a), Whole(b)) => a <= b,
        (a, b) => a.real() <= b.real(),
    }
}
