//! Evaluates an expression for a block of values at once, one term after the other.
//!
//! The values are those that [`evaluate`](super::evaluate) computes one by one. Whatever is not the same plain
//! operation for all values (numbers of more than 64 bits, an overflow, a misfit, whole and real numbers in one
//! column) is left to it: the result is then `None`. That depends on the block alone.

use std::borrow::Cow;

use super::condition::Condition;
use super::evaluate::{LARGE, binary, call};
use super::numbers::Numbers;
use super::operand_values::{Row, Values};
use super::{Function, NamedDraw, Term};
use crate::draw::distribution::Curve;
use crate::draw::misfit::nearest_whole;
use crate::random::elementary::ln;
use crate::random::rng::{Sequence, unit_interval};
use crate::types::number::Number;

/// The largest whole number that is treated as a real one if the other argument of min or max is.
const EXACT: u128 = 1 << 53;

/// The value of a term, for each value of the block.
#[derive(Clone, Debug)]
pub(crate) enum Column<'a> {
    /// The same for all.
    One(Number),
    Whole(Cow<'a, [i64]>),
    Real(Cow<'a, [f64]>),
}

impl Column<'_> {
    /// How many values there are, unless all are the same.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Column::One(_) => None,
            Column::Whole(values) => Some(values.len()),
            Column::Real(values) => Some(values.len()),
        }
    }

    pub(super) fn get(&self, i: usize) -> Number {
        match self {
            Column::One(number) => *number,
            Column::Whole(values) => Number::Whole(values[i].into()),
            Column::Real(values) => Number::Real(values[i]),
        }
    }
}

/// The `n` values of `node` for the operands `fields`; `random` has the generator of each value, if there are
/// draws.
pub(super) fn column<'a>(
    node: &Term,
    fields: &'a [Values],
    random: &mut [Sequence],
    n: usize,
) -> Option<Column<'a>> {
    match node {
        Term::Number(number) => Some(Column::One(*number)),
        Term::Field(i) => match fields.get(*i)? {
            Values::Numbers(Numbers::Whole(values)) => Some(Column::Whole(Cow::Borrowed(values))),
            Values::Numbers(Numbers::Real(values)) => Some(Column::Real(Cow::Borrowed(values))),
            Values::Numbers(Numbers::Any(_)) | Values::Texts(_) => None,
        },
        Term::Drawn(drawn) => drawn_column(drawn, random),
        Term::Negated(of) => match column(of, fields, random, n)? {
            Column::One(Number::Whole(n)) => n.checked_neg().map(|n| Column::One(Number::Whole(n))),
            Column::One(Number::Real(v)) => Some(Column::One(Number::Real(-v))),
            Column::Whole(values) => whole(values, Whole::One(0), |n, _| n.checked_neg()),
            Column::Real(values) => each(values, |v| -v),
        },
        Term::Binary(operator, left, right) => {
            let left = column(left, fields, random, n)?;
            binary_column(*operator, left, column(right, fields, random, n)?)
        }
        Term::Length(text) => {
            let lengths = one_by_one(fields, random, n, |row, random| text.length(row, random).ok());
            of_one_kind(lengths?.into_iter())
        }
        Term::If(condition, yes, no) => chosen_column(condition, (yes, no), fields, random, n),
        Term::Call(function, arguments) => {
            let mut values = [Column::One(Number::Whole(0)), Column::One(Number::Whole(0))];
            for (value, node) in values.iter_mut().zip(arguments) {
                *value = column(node, fields, random, n)?;
            }
            let [first, second] = values;
            call_column(*function, first, second, random)
        }
    }
}

/// What `of` finds for each of `n` rows; `None` if it finds nothing for one.
pub(super) fn one_by_one<T>(
    fields: &[Values],
    random: &mut [Sequence],
    n: usize,
    mut of: impl FnMut(Row<'_>, &mut Sequence) -> Option<T>,
) -> Option<Vec<T>> {
    let mut none = Sequence::new(0);
    (0..n).map(|at| of(Row { fields, at }, random.get_mut(at).unwrap_or(&mut none))).collect()
}

/// Runs `part` on the operands and generators at `places` alone.
pub(super) fn at_places<T>(
    fields: &[Values],
    random: &mut [Sequence],
    places: &[u32],
    part: impl FnOnce(&[Values], &mut [Sequence]) -> Option<T>,
) -> Option<T> {
    let fields: Vec<Values> = fields.iter().map(|values| values.at(places)).collect();
    let mut picked: Vec<Sequence> =
        places.iter().filter_map(|place| random.get(*place as usize).cloned()).collect();
    let result = part(&fields, &mut picked);
    // Later terms go on with what these have drawn.
    for (place, picked) in places.iter().zip(picked) {
        if let Some(random) = random.get_mut(*place as usize) {
            *random = picked;
        }
    }
    result
}

/// The values of one term where the condition holds, of the other elsewhere.
fn chosen_column<'a>(
    condition: &Condition,
    (yes, no): (&Term, &Term),
    fields: &'a [Values],
    random: &mut [Sequence],
    n: usize,
) -> Option<Column<'a>> {
    let held = condition.column(fields, random, n)?;
    let mut places = [Vec::new(), Vec::new()];
    for (place, held) in (0u32..).zip(&held) {
        places[usize::from(!held)].push(place);
    }
    let [holds, fails] = &places;
    match (holds.as_slice(), fails.as_slice()) {
        (_, []) => return column(yes, fields, random, n),
        ([], _) => return column(no, fields, random, n),
        _ => {}
    }
    let mut of = |node: &Term, places: &[u32]| match node {
        Term::Number(number) => Some(Column::One(*number)),
        node => at_places(fields, random, places, |fields, random| {
            column(node, fields, random, places.len()).map(Column::owned)
        }),
    };
    let yes = of(yes, holds)?;
    let no = of(no, fails)?;
    if yes.is_whole() && no.is_whole() {
        let mut out = vec![0; n];
        scatter(yes.whole()?, holds, &mut out);
        scatter(no.whole()?, fails, &mut out);
        return Some(Column::Whole(out.into()));
    }
    let (Some(yes), Some(no)) = (yes.only_real(), no.only_real()) else { return None };
    let mut out = vec![0.0; n];
    scatter(yes, holds, &mut out);
    scatter(no, fails, &mut out);
    Some(Column::Real(out.into()))
}

/// Writes values to their places in `out`.
fn scatter<T: Copy>(values: Side<'_, T>, places: &[u32], out: &mut [T])
where
    [T]: ToOwned<Owned = Vec<T>>,
{
    match values {
        Side::One(value) => places.iter().for_each(|place| out[*place as usize] = value),
        Side::Each(values) => {
            places.iter().zip(values.iter()).for_each(|(place, value)| out[*place as usize] = *value);
        }
    }
}

fn drawn_column(drawn: &NamedDraw, random: &mut [Sequence]) -> Option<Column<'static>> {
    let values: Vec<Number> = random.iter_mut().map(|random| drawn.value(random.next())).collect();
    of_one_kind(values.into_iter())
}

/// A column of numbers that are all whole or all real.
fn of_one_kind(values: impl Iterator<Item = Number>) -> Option<Column<'static>> {
    let mut values = values.peekable();
    if let Some(Number::Real(_)) = values.peek() {
        let real = values.map(|value| if let Number::Real(v) = value { Some(v) } else { None });
        return real.collect::<Option<Vec<_>>>().map(|values| Column::Real(values.into()));
    }
    let whole = values.map(|value| if let Number::Whole(n) = value { i64::try_from(n).ok() } else { None });
    whole.collect::<Option<Vec<_>>>().map(|values| Column::Whole(values.into()))
}

/// The numbers of one side of an operation.
enum Side<'a, T: Copy>
where
    [T]: ToOwned<Owned = Vec<T>>,
{
    One(T),
    Each(Cow<'a, [T]>),
}

type Real<'a> = Side<'a, f64>;
type Whole<'a> = Side<'a, i64>;

impl<'a> Column<'a> {
    fn real(self) -> Real<'a> {
        match self {
            Column::One(number) => Real::One(number.real()),
            Column::Whole(values) => Real::Each(values.iter().map(|n| *n as f64).collect()),
            Column::Real(values) => Real::Each(values),
        }
    }

    /// The whole numbers of the column, if it has them, and each in 64 bits.
    fn whole(self) -> Option<Whole<'a>> {
        match self {
            Column::One(Number::Whole(n)) => i64::try_from(n).ok().map(Whole::One),
            Column::Whole(values) => Some(Whole::Each(values)),
            _ => None,
        }
    }

    /// The real numbers of the column, if it has only such.
    fn only_real(self) -> Option<Real<'a>> {
        match self {
            Column::One(Number::Real(v)) => Some(Real::One(v)),
            Column::Real(values) => Some(Real::Each(values)),
            _ => None,
        }
    }

    fn owned(self) -> Column<'static> {
        match self {
            Column::One(number) => Column::One(number),
            Column::Whole(values) => Column::Whole(values.into_owned().into()),
            Column::Real(values) => Column::Real(values.into_owned().into()),
        }
    }

    fn is_whole(&self) -> bool {
        matches!(self, Column::Whole(_) | Column::One(Number::Whole(_)))
    }

    /// Whether whole numbers keep all their digits when a real number is added; `None` if only some do.
    fn is_large(&self) -> Option<bool> {
        match self {
            Column::One(Number::Whole(n)) => Some(n.unsigned_abs() > LARGE),
            Column::Whole(values) => {
                let count = values.iter().filter(|n| u128::from(n.unsigned_abs()) > LARGE).count();
                (count == 0 || count == values.len()).then_some(count > 0)
            }
            _ => Some(false),
        }
    }
}

fn each<'a>(values: Cow<'_, [f64]>, function: impl Fn(f64) -> f64) -> Option<Column<'a>> {
    let mut values = values.into_owned();
    let mut bad = false;
    for value in &mut values {
        let argument = *value;
        *value = function(argument);
        bad |= !value.is_finite() & argument.is_finite();
    }
    (!bad).then_some(Column::Real(values.into()))
}

fn real<'a>(left: Real<'_>, right: Real<'_>, function: impl Fn(f64, f64) -> f64) -> Option<Column<'a>> {
    // A non-finite operand may stay non-finite, but finite operands must have a finite result.
    let lost = |value: f64, a: f64, b: f64| !value.is_finite() & a.is_finite() & b.is_finite();
    let mut bad = false;
    let values = match (left, right) {
        (Real::Each(left), right) => {
            let mut left = left.into_owned();
            match right {
                Real::One(b) => left.iter_mut().for_each(|a| {
                    let value = function(*a, b);
                    bad |= lost(value, *a, b);
                    *a = value;
                }),
                Real::Each(right) => left.iter_mut().zip(right.iter()).for_each(|(a, b)| {
                    let value = function(*a, *b);
                    bad |= lost(value, *a, *b);
                    *a = value;
                }),
            }
            left
        }
        (Real::One(a), Real::Each(right)) => {
            let mut right = right.into_owned();
            right.iter_mut().for_each(|b| {
                let value = function(a, *b);
                bad |= lost(value, a, *b);
                *b = value;
            });
            right
        }
        (Real::One(a), Real::One(b)) => {
            let value = function(a, b);
            return (!lost(value, a, b)).then_some(Column::One(Number::Real(value)));
        }
    };
    (!bad).then_some(Column::Real(values.into()))
}

fn whole<'a>(
    left: Cow<'_, [i64]>,
    right: Whole<'_>,
    function: impl Fn(i64, i64) -> Option<i64>,
) -> Option<Column<'a>> {
    let mut values = left.into_owned();
    let mut bad = false;
    let mut apply = |a: &mut i64, b: i64| {
        let value = function(*a, b);
        bad |= value.is_none();
        *a = value.unwrap_or(0);
    };
    match right {
        Whole::One(b) => values.iter_mut().for_each(|a| apply(a, b)),
        Whole::Each(right) => values.iter_mut().zip(right.iter()).for_each(|(a, b)| apply(a, *b)),
    }
    (!bad).then_some(Column::Whole(values.into()))
}

fn wholes<'a>(
    left: Whole<'_>,
    right: Whole<'_>,
    function: impl Fn(i64, i64) -> Option<i64>,
) -> Option<Column<'a>> {
    match (left, right) {
        (Whole::Each(left), right) => whole(left, right, function),
        (Whole::One(a), Whole::Each(right)) => whole(right, Whole::One(a), |b, a| function(a, b)),
        (Whole::One(a), Whole::One(b)) => function(a, b).map(|n| Column::One(Number::Whole(n.into()))),
    }
}

fn binary_column<'a>(operator: u8, left: Column<'a>, right: Column<'a>) -> Option<Column<'a>> {
    if let (Column::One(left), Column::One(right)) = (&left, &right) {
        return binary(operator, *left, *right).ok().map(Column::One);
    }
    if operator != b'/' && left.is_whole() && right.is_whole() {
        let (left, right) = (left.whole()?, right.whole()?);
        return match operator {
            b'+' => wholes(left, right, i64::checked_add),
            b'-' => wholes(left, right, i64::checked_sub),
            b'*' => wholes(left, right, i64::checked_mul),
            _ => wholes(left, right, i64::checked_rem_euclid),
        };
    }
    // Times keep all their digits: a real number is rounded before it is added.
    match operator {
        b'+' if left.is_large()? => return moved(left.whole()?, right.real(), i64::checked_add),
        b'+' if right.is_large()? => return moved(right.whole()?, left.real(), i64::checked_add),
        b'-' if left.is_large()? => return moved(left.whole()?, right.real(), i64::checked_sub),
        _ => {}
    }
    let (left, right) = (left.real(), right.real());
    match operator {
        b'+' => real(left, right, |a, b| a + b),
        b'-' => real(left, right, |a, b| a - b),
        b'*' => real(left, right, |a, b| a * b),
        _ if has_zero(&right) => None,
        b'/' => real(left, right, |a, b| a / b),
        _ => real(left, right, f64::rem_euclid),
    }
}

fn has_zero(values: &Real<'_>) -> bool {
    match values {
        Real::One(value) => *value == 0.0,
        Real::Each(values) => values.contains(&0.0),
    }
}

/// Whole numbers and rounded real ones, added or subtracted.
fn moved<'a>(times: Whole<'_>, by: Real<'_>, function: fn(i64, i64) -> Option<i64>) -> Option<Column<'a>> {
    let round = |value: f64| nearest_whole(value).and_then(|n| i64::try_from(n).ok());
    let by = match by {
        Real::One(value) => Whole::One(round(value)?),
        Real::Each(values) => {
            Whole::Each(values.iter().map(|value| round(*value)).collect::<Option<Vec<_>>>()?.into())
        }
    };
    wholes(times, by, function)
}

fn call_column<'a>(
    function: Function,
    first: Column<'a>,
    second: Column<'a>,
    random: &mut [Sequence],
) -> Option<Column<'a>> {
    match (function, first, second) {
        (Function::Least | Function::Greatest, first, second) => extreme(function, first, second),
        (Function::Abs, Column::Whole(values), _) => whole(values, Whole::One(0), |n, _| n.checked_abs()),
        (Function::Abs, Column::Real(values), _) => each(values, f64::abs),
        (Function::Floor | Function::Round, Column::Whole(values), _) => Some(Column::Whole(values)),
        (Function::Floor, Column::Real(values), _) => each(values, f64::floor),
        (Function::Round, Column::Real(values), _) => each(values, f64::round),
        (Function::Sqrt, Column::Real(values), _) => each(values, f64::sqrt),
        (_, Column::One(first), Column::One(second)) if function.draws() => {
            let (a, b) = (first.real(), second.real());
            let curve = match function {
                Function::Normal => Curve::Normal { mean: a, stddev: b },
                Function::LogNormal => Curve::LogNormal { mu: ln(a), sigma: b },
                Function::Exponential => Curve::Exponential { mean: a },
                _ => {
                    let values = random.iter_mut().map(|random| a + (b - a) * unit_interval(random.next()));
                    return finite(values.collect());
                }
            };
            finite(random.iter_mut().map(|random| curve.sample(random)).collect())
        }
        (_, first, second) if function.draws() => {
            let values = random.iter_mut().enumerate();
            let values = values.map(|(i, random)| call(function, [first.get(i), second.get(i)], random).ok());
            of_one_kind(values.collect::<Option<Vec<_>>>()?.into_iter())
        }
        (_, first, second) => computed(function, &first, &second),
    }
}

fn finite<'a>(values: Vec<f64>) -> Option<Column<'a>> {
    values.iter().all(|v| v.is_finite()).then_some(Column::Real(values.into()))
}

/// A function without draws of each value.
fn computed<'a>(function: Function, first: &Column<'_>, second: &Column<'_>) -> Option<Column<'a>> {
    let random = &mut Sequence::new(0);
    let n = match first {
        Column::One(first) => {
            // The only argument of this function.
            return call(function, [*first, Number::Whole(0)], random).ok().map(Column::One);
        }
        Column::Whole(values) => values.len(),
        Column::Real(values) => values.len(),
    };
    let values = (0..n).map(|i| call(function, [first.get(i), second.get(i)], random).ok());
    of_one_kind(values.collect::<Option<Vec<_>>>()?.into_iter())
}

/// The least or greatest of two numbers.
fn extreme<'a>(function: Function, first: Column<'a>, second: Column<'a>) -> Option<Column<'a>> {
    if let (Column::One(first), Column::One(second)) = (&first, &second) {
        return call(function, [*first, *second], &mut Sequence::new(0)).ok().map(Column::One);
    }
    let least = function == Function::Least;
    if first.is_whole() && second.is_whole() {
        return wholes(first.whole()?, second.whole()?, |a, b| Some(if least { a.min(b) } else { a.max(b) }));
    }
    let fits = |side: &Column<'_>| match side {
        Column::One(Number::Whole(n)) => n.unsigned_abs() <= EXACT,
        side => !side.is_whole(),
    };
    // As in the comparison of single numbers, NaN on either side gives the second.
    (fits(&first) && fits(&second)).then_some(())?;
    let pick = |a: f64, b: f64| {
        let first = if least { a <= b } else { b <= a };
        if first { a } else { b }
    };
    real(first.real(), second.real(), pick)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Expression, Operand, Reach};
    use super::*;
    use crate::types::logical_type::LogicalType;

    /// `t` is an operand of whole numbers, any other name one of real numbers.
    fn parsed(text: &str) -> Expression {
        Expression::parse(text, &LogicalType::Double, &[], &mut |name| {
            let leaf = ["a", "b", "t"].iter().position(|known| *known == name).unwrap();
            Ok(Operand {
                leaf,
                kind: LogicalType::Double,
                repetition: 0,
                nullable: false,
                reach: Reach::ANY,
                longest: 0,
                row: crate::draw::expression::OperandRow::Own,
            })
        })
        .unwrap()
    }

    fn operands(expression: &Expression, all: &[Numbers]) -> Vec<Values> {
        expression.operands.iter().map(|o| Values::Numbers(all[o.leaf].clone())).collect()
    }

    const FORMULAS: &[&str] = &[
        "a + b * 2 - t",
        "t + a",
        "a - t",
        "t - 3 * b",
        "-(a + 2) * abs(b)",
        "a / b",
        "a % b + t % 7",
        "t * t",
        "-t + abs(t) * 3",
        "min(a, b) - max(b, 0)",
        "max(t, 5) + min(t, 10)",
        "max(t, 2.5)",
        "floor(a) + round(b / 7) + floor(t)",
        "sqrt(abs(a)) + ln(abs(b) + 1) + exp(a / 100)",
        "uniform(a, b) + normal(10, 2)",
        "t + lognormal(3, 0.5) - exponential(2) * uniform(1, 2)",
        "5 - a",
        "7 / b",
        "3 * 4 + 2",
        "if(a > 0, a * 2, 0)",
        "if(a > b or t % 3 == 0, uniform(0, 1), normal(a, 1)) + uniform(0, 1)",
        "if(a != 0 and b / a > 1, b / a, t)",
        "case(t % 3 == 0, t, t % 3 == 1, t - 1, 7)",
        "if(not (a < 0) and uniform(0, 1) < 0.5, 1, 2) + uniform(0, 1)",
        "if(a in (0, 1, 2), sqrt(a), exponential(3))",
        "length(format('{}', t)) + a",
    ];

    proptest! {
        #[test]
        fn a_column_has_the_values_of_its_rows(
            formula in 0..FORMULAS.len(),
            a in proptest::collection::vec(prop_oneof![-1e3..1e3f64, Just(f64::NAN), Just(0.0)], 1..20),
            b in -1e3..1e3f64,
            t in prop_oneof![-1000i64..1000, (1i64 << 41)..(1 << 50), any::<i64>()],
            seed: u64,
        ) {
            let expression = parsed(FORMULAS[formula]);
            let n = a.len();
            let all = [
                Numbers::Real(a),
                Numbers::Real((0..n).map(|i| b + i as f64).collect()),
                Numbers::Whole((0..n).map(|i| t.saturating_add(i as i64)).collect()),
            ];
            let fields = operands(&expression, &all);
            let generator = |i| Sequence::new(seed.wrapping_add(i as u64));
            let mut random: Vec<Sequence> = (0..n).map(generator).collect();
            if let Some(column) = expression.column(&fields, &mut random, n) {
                for i in 0..n {
                    let row = Row { fields: &fields, at: i };
                    let value = expression.value(row, &mut generator(i)).unwrap();
                    match (column.get(i), value) {
                        (Number::Real(a), Number::Real(b)) => prop_assert!(a == b || a.is_nan() && b.is_nan()),
                        (a, b) => prop_assert_eq!(a.real(), b.real()),
                    }
                }
            }
        }
    }

    #[test]
    fn plain_formulas_are_columns() {
        let all =
            [Numbers::Real(vec![1.5, 2.5]), Numbers::Real(vec![3.0, 4.0]), Numbers::Whole(vec![1 << 50; 2])];
        for text in [
            "a + b * 2",
            "t + a",
            "max(0, a - 2)",
            "t + lognormal(3, 0.5)",
            "min(a, b) / 7",
            "t * 2",
            "if(a > 2, 0, a * b)",
            "case(a > 2, uniform(0, 1), b == 3, t / 2, 0)",
        ] {
            let expression = parsed(text);
            let fields = operands(&expression, &all);
            let mut random = vec![Sequence::new(1), Sequence::new(2)];
            assert!(expression.column(&fields, &mut random, 2).is_some(), "{text}");
        }
        let overflows = parsed("t * t");
        assert!(overflows.column(&operands(&overflows, &all), &mut [], 2).is_none());
    }
}
