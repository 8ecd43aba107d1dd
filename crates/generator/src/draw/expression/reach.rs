//! The range of an expression's values, as far as the formula determines it.

use super::{Function, Term};
use crate::random::elementary::{exp, ln};

/// The smallest and largest possible value; infinite if unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach {
    pub low: f64,
    pub high: f64,
}

impl Reach {
    /// The unknown range.
    pub(crate) const ANY: Reach = Reach { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// From `low` to `high`; the unknown range if one of them is NaN.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        if low <= high { Reach { low, high } } else { Self::ANY }
    }

    fn around(values: &[f64]) -> Self {
        if values.iter().any(|v| v.is_nan()) {
            return Self::ANY;
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        Self::new(low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self::around(&[function(self.low), function(self.high)])
    }

    fn is_zero(self) -> bool {
        self.low == 0.0 && self.high == 0.0
    }
}

/// The range of `node` for operands in the ranges `fields`; `None` if it always divides by zero.
pub(super) fn reach(node: &Term, fields: &[Reach]) -> Option<Reach> {
    Some(match node {
        Term::Drawn(drawn) => drawn.reach(),
        Term::Number(number) => Reach::new(number.real(), number.real()),
        Term::Field(i) => fields.get(*i).copied().unwrap_or(Reach::ANY),
        Term::Length(_) => Reach::new(0.0, f64::INFINITY),
        Term::If(_, yes, no) => match (reach(yes, fields), reach(no, fields)) {
            (Some(a), Some(b)) => Reach::new(a.low.min(b.low), a.high.max(b.high)),
            (one, other) => one.or(other)?,
        },
        Term::Negated(of) => reach(of, fields)?.map(|v| -v),
        Term::Binary(operator, left, right) => {
            let (a, b) = (reach(left, fields)?, reach(right, fields)?);
            match operator {
                b'+' => Reach::new(a.low + b.low, a.high + b.high),
                b'-' => Reach::new(a.low - b.high, a.high - b.low),
                b'*' => Reach::around(&[a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]),
                _ if b.is_zero() => return None,
                b'/' if b.low > 0.0 || b.high < 0.0 => {
                    Reach::around(&[a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high])
                }
                b'%' => Reach::new(0.0, b.low.abs().max(b.high.abs())),
                _ => Reach::ANY,
            }
        }
        Term::Call(function, arguments) => {
            let mut of = [Reach::new(0.0, 0.0); 2];
            for (of, node) in of.iter_mut().zip(arguments) {
                *of = reach(node, fields)?;
            }
            let [a, b] = of;
            match function {
                Function::Uniform => Reach::around(&[a.low, a.high, b.low, b.high]),
                Function::Normal => Reach::ANY,
                Function::LogNormal => Reach::new(0.0, f64::INFINITY),
                Function::Exponential if a.low >= 0.0 => Reach::new(0.0, f64::INFINITY),
                Function::Exponential => Reach::ANY,
                Function::Least => Reach::new(a.low.min(b.low), a.high.min(b.high)),
                Function::Greatest => Reach::new(a.low.max(b.low), a.high.max(b.high)),
                Function::Abs if a.low <= 0.0 && a.high >= 0.0 => Reach::new(0.0, a.high.max(-a.low)),
                Function::Abs => a.map(f64::abs),
                Function::Floor => a.map(f64::floor),
                Function::Round => a.map(f64::round),
                Function::Sqrt => Reach::new(a.low.max(0.0).sqrt(), a.high.max(0.0).sqrt()),
                Function::Exp => a.map(exp),
                Function::Sin | Function::Cos => Reach::new(-1.0, 1.0),
                Function::Ln => a.map(|v| if v > 0.0 { ln(v) } else { f64::NEG_INFINITY }),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Expression, Operand, Row, Values};
    use super::*;
    use crate::draw::expression::{Numbers, OperandRow};
    use crate::random::rng::Sequence;
    use crate::types::logical_type::LogicalType;

    fn parsed(text: &str) -> Expression {
        Expression::parse(text, &LogicalType::Double, &[], &mut |name| {
            let leaf = usize::from(name != "a");
            let reach = Reach::ANY;
            Ok(Operand {
                leaf,
                kind: LogicalType::Double,
                repetition: 0,
                nullable: false,
                reach,
                longest: 0,
                row: OperandRow::Own,
            })
        })
        .unwrap()
    }

    /// The range of an expression whose operands are in these ranges.
    fn reach(expression: &Expression, operands: &[Reach]) -> Option<Reach> {
        let mut expression = expression.clone();
        expression.operands.iter_mut().zip(operands).for_each(|(operand, reach)| operand.reach = *reach);
        expression.reach()
    }

    #[test]
    fn an_expression_that_always_divides_by_zero_has_no_range() {
        for text in ["a / 0", "1 % (3 - 3)", "abs(a) + 1 / (0 * 5)"] {
            assert_eq!(reach(&parsed(text), &[Reach::ANY]), None, "{text}");
        }
        assert_eq!(reach(&parsed("a / (a - 1)"), &[Reach::new(1.0, 1.0)]), None);
    }

    const FORMULAS: &[&str] = &[
        "a + b",
        "a - b * 3",
        "a * b",
        "a / b",
        "a % b",
        "-(a + 2) * abs(b)",
        "min(a, b) - max(b, 4)",
        "floor(a) + round(b / 7)",
        "sqrt(abs(a)) + ln(abs(b) + 1)",
        "exp(min(a, 5)) * uniform(a, b)",
        "lognormal(3, 0.5) - exponential(2)",
        "if(a < b, a - b, case(a > 7, 2 * a, b = 3, 1, 0.5))",
    ];

    proptest! {
        #[test]
        fn every_value_is_inside_of_the_range(
            formula in 0..FORMULAS.len(),
            (low_a, width_a) in (-1e3..1e3f64, 0.0..1e3f64),
            (low_b, width_b) in (-1e3..1e3f64, 0.0..1e3f64),
            (at_a, at_b) in (0.0..=1.0f64, 0.0..=1.0f64),
            seed: u64,
        ) {
            let expression = parsed(FORMULAS[formula]);
            // Operands are in the order in which the formula names them.
            let of = |leaf: usize| if leaf == 0 { (low_a, width_a, at_a) } else { (low_b, width_b, at_b) };
            let operands: Vec<_> = expression.operands.iter().map(|o| of(o.leaf)).collect();
            let reaches: Vec<_> = operands.iter().map(|(low, width, _)| Reach::new(*low, low + width)).collect();
            let fields: Vec<_> = operands
                .iter()
                .map(|(low, width, at)| Values::Numbers(Numbers::Real(vec![low + at * width])))
                .collect();
            let row = Row { fields: &fields, at: 0 };
            let reach = self::reach(&expression, &reaches);
            if let (Some(reach), Ok(value)) = (reach, expression.value(row, &mut Sequence::new(seed))) {
                let (value, slack) = (value.real(), 1e-9 * (1.0 + value.real().abs()));
                prop_assert!(value >= reach.low - slack && value <= reach.high + slack, "{} {:?}", value, reach);
            }
        }
    }
}
