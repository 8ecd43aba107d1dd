//! Conditions of `if` and `case`, and formulas of boolean fields.
//!
//! As in programs, `and` and `or` evaluate their right side only where the left one leaves the result open, so
//! that `a != 0 and b / a > 2` never divides by zero.

use super::evaluate::{at_most, evaluate};
use super::operand_values::{Row, Values};
use super::text::Text;
use super::{Column, Term, columns};
use crate::draw::misfit::Misfit;
use crate::random::rng::Sequence;
use crate::types::number::Number;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// The comparisons as they are written. An operator comes before those that it starts with.
pub(super) const COMPARISONS: &[(&str, Comparison)] = &[
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<>", Comparison::Unequal),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

impl Comparison {
    fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Comparison::Equal => a == b,
            Comparison::Unequal => a != b,
            Comparison::Less => a < b,
            Comparison::AtMost => a <= b,
            Comparison::More => a > b,
            Comparison::AtLeast => a >= b,
        }
    }

    fn of_numbers(self, a: Number, b: Number) -> bool {
        match (self, a, b) {
            (_, Number::Whole(a), Number::Whole(b)) => self.holds(&a, &b),
            (Comparison::AtMost, a, b) => at_most(a, b),
            (_, a, b) => self.holds(&a.real(), &b.real()),
        }
    }
}

/// A statement about a record, true or false.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    Constant(bool),
    /// A boolean operand.
    Field(usize),
    Numbers(Comparison, Box<Term>, Box<Term>),
    Texts(Comparison, Box<Text>, Box<Text>),
    Not(Box<Condition>),
    Both(Box<Condition>, Box<Condition>),
    Either(Box<Condition>, Box<Condition>),
}

impl Condition {
    /// Whether it holds for the operands `row`.
    pub(super) fn holds(&self, row: Row<'_>, random: &mut Sequence) -> Result<bool, Misfit> {
        Ok(match self {
            Condition::Constant(value) => *value,
            Condition::Field(i) => row.number(*i) == Number::Whole(1),
            Condition::Numbers(comparison, a, b) => {
                let a = evaluate(a, row, random)?;
                comparison.of_numbers(a, evaluate(b, row, random)?)
            }
            Condition::Texts(comparison, a, b) => match (a.plain(row), b.plain(row)) {
                (Some(a), Some(b)) => comparison.holds(&a, &b),
                _ => {
                    let (mut left, mut right) = (Vec::new(), Vec::new());
                    a.write(row, random, &mut left)?;
                    b.write(row, random, &mut right)?;
                    comparison.holds(&left, &right)
                }
            },
            Condition::Not(of) => !of.holds(row, random)?,
            Condition::Both(a, b) => a.holds(row, random)? && b.holds(row, random)?,
            Condition::Either(a, b) => a.holds(row, random)? || b.holds(row, random)?,
        })
    }

    /// Whether it holds, for each of `n` values, as [`holds`](Self::holds) says one by one; `None` if that must
    /// be done.
    pub(super) fn column(&self, fields: &[Values], random: &mut [Sequence], n: usize) -> Option<Vec<bool>> {
        match self {
            Condition::Constant(value) => Some(vec![*value; n]),
            Condition::Numbers(comparison, a, b) => {
                let a = columns::column(a, fields, random, n)?;
                let b = columns::column(b, fields, random, n)?;
                Some(compared(*comparison, &a, &b, n))
            }
            Condition::Field(_) | Condition::Texts(..) => {
                columns::one_by_one(fields, random, n, |row, random| self.holds(row, random).ok())
            }
            Condition::Not(of) => {
                let mut held = of.column(fields, random, n)?;
                held.iter_mut().for_each(|held| *held = !*held);
                Some(held)
            }
            Condition::Both(a, b) => joined(a, b, true, fields, random, n),
            Condition::Either(a, b) => joined(a, b, false, fields, random, n),
        }
    }
}

fn compared(comparison: Comparison, a: &Column<'_>, b: &Column<'_>, n: usize) -> Vec<bool> {
    match (a, b) {
        (Column::Whole(a), Column::Whole(b)) => {
            a.iter().zip(b.iter()).map(|(a, b)| comparison.holds(a, b)).collect()
        }
        (Column::Whole(a), Column::One(Number::Whole(b))) => {
            a.iter().map(|a| comparison.holds(&i128::from(*a), b)).collect()
        }
        (Column::Real(a), Column::One(b)) => {
            let b = b.real();
            a.iter().map(|a| comparison.holds(a, &b)).collect()
        }
        (a, b) => (0..n).map(|i| comparison.of_numbers(a.get(i), b.get(i))).collect(),
    }
}

/// `a and b` if the right side matters where the left one is true (`open`), else `a or b`.
fn joined(
    a: &Condition,
    b: &Condition,
    open: bool,
    fields: &[Values],
    random: &mut [Sequence],
    n: usize,
) -> Option<Vec<bool>> {
    let mut held = a.column(fields, random, n)?;
    let places: Vec<u32> = (0..).zip(&held).filter(|(_, held)| **held == open).map(|(i, _)| i).collect();
    let right =
        columns::at_places(fields, random, &places, |fields, random| b.column(fields, random, places.len()))?;
    for (place, right) in places.iter().zip(right) {
        if let Some(held) = held.get_mut(*place as usize) {
            *held = right;
        }
    }
    Some(held)
}
