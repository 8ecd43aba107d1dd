//! Formulas over earlier fields of the record: `"start + lognormal(3h, 0.5)"`.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = factor (("*" | "/" | "%") factor)*
//! factor  = number | duration | field | function "(" sum ("," sum)* ")" | "(" sum ")" | "-" factor
//! ```
//!
//! Whole numbers stay whole under `+`, `-` and `*`. Times keep their ticks, and a real number added to a time
//! is rounded. Draws by quantiles have names, too. A value is null if a field that it uses is null. Nothing
//! saturates: a value that is too large or undefined is a [`Misfit`].

mod columns;
mod evaluate;
mod numbers;
mod reach;

use crate::draw::distribution::duration_ticks;
use crate::draw::misfit::Misfit;
use crate::draw::quantiles::Quantiles;
use crate::error::Complaint;
use crate::random::rng::Sequence;
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, scaled};
pub(crate) use columns::Column;
pub(crate) use numbers::Numbers;
pub(crate) use reach::Reach;

/// The most bytes of an expression.
const LONGEST: usize = 1000;

/// The deepest nesting of parentheses.
const DEEPEST: usize = 32;

/// A field that an expression uses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operand {
    /// Its position among the columns.
    pub leaf: usize,
    /// Its type.
    pub kind: LogicalType,
    /// The number of enclosing lists: the greatest repetition level of its entries.
    pub repetition: u8,
    /// Whether it can be null in records where the expression's field is present.
    pub nullable: bool,
    /// The range of its values, with decimals scaled.
    pub reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    Uniform,
    Normal,
    LogNormal,
    Exponential,
    Least,
    Greatest,
    Abs,
    Floor,
    Round,
    Sqrt,
    Exp,
    Ln,
}

/// The functions by name, with their number of arguments.
const FUNCTIONS: &[(&str, usize, Function)] = &[
    ("uniform", 2, Function::Uniform),
    ("normal", 2, Function::Normal),
    ("lognormal", 2, Function::LogNormal),
    ("exponential", 1, Function::Exponential),
    ("min", 2, Function::Least),
    ("max", 2, Function::Greatest),
    ("abs", 1, Function::Abs),
    ("floor", 1, Function::Floor),
    ("round", 1, Function::Round),
    ("sqrt", 1, Function::Sqrt),
    ("exp", 1, Function::Exp),
    ("ln", 1, Function::Ln),
];

impl Function {
    fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(.., function)| *function == self).map_or("", |(name, ..)| name)
    }

    /// Whether its value is drawn.
    fn draws(self) -> bool {
        matches!(self, Function::Uniform | Function::Normal | Function::LogNormal | Function::Exponential)
    }
}

/// A draw by quantiles that a formula names.
#[derive(Clone, Debug)]
pub(crate) struct NamedDraw {
    pub name: String,
    pub quantiles: Quantiles,
    /// The type of its values.
    pub kind: LogicalType,
}

impl NamedDraw {
    fn value(&self, draw: u64) -> Number {
        match self.kind.is_real() {
            true => Number::Real(self.quantiles.real(draw)),
            false => scaled(&self.kind, self.quantiles.whole(draw)),
        }
    }

    fn reach(&self) -> Reach {
        let (reach, one) = (self.quantiles.reach(), self.kind.one() as f64);
        Reach::new(reach.low / one, reach.high / one)
    }
}

#[derive(Clone, Debug)]
enum Term {
    Drawn(Box<NamedDraw>),
    Number(Number),
    /// Index into the operands.
    Field(usize),
    Negated(Box<Term>),
    Binary(u8, Box<Term>, Box<Term>),
    Call(Function, Vec<Term>),
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    node: Term,
    pub operands: Vec<Operand>,
    pub text: String,
}

impl Expression {
    /// Parses `text` for a field of type `kind`; `resolve` finds the fields that it names, unless `draws` has
    /// the name.
    pub(crate) fn parse(
        text: &str,
        kind: &LogicalType,
        draws: &[NamedDraw],
        resolve: &mut dyn FnMut(&str) -> Result<Operand, Complaint>,
    ) -> Result<Self, Complaint> {
        if text.len() > LONGEST {
            return Err(("the expression is too long".into(), format!("use at most {LONGEST} bytes")));
        }
        let mut parser = Parser { text, at: 0, kind, draws, resolve, operands: Vec::new(), depth: 0 };
        let node = parser.sum()?;
        parser.space();
        if parser.at < text.len() {
            return Err(parser.unexpected());
        }
        Ok(Expression { node, operands: parser.operands, text: text.to_owned() })
    }

    /// Its value for these operands. Random functions draw from `random`.
    pub(crate) fn value(&self, fields: &[Number], random: &mut Sequence) -> Result<Number, Misfit> {
        evaluate::evaluate(&self.node, fields, random)
    }

    /// Whether its values are drawn, at least in part.
    pub(crate) fn draws(&self) -> bool {
        fn any(node: &Term) -> bool {
            match node {
                Term::Drawn(_) => true,
                Term::Number(_) | Term::Field(_) => false,
                Term::Negated(of) => any(of),
                Term::Binary(_, left, right) => any(left) || any(right),
                Term::Call(function, arguments) => function.draws() || arguments.iter().any(any),
            }
        }
        any(&self.node)
    }

    /// Its values for a block, as [`value`](Self::value) computes them one by one; `None` if that must be done.
    /// `random` has the generator of each value, if there are draws.
    pub(crate) fn column<'a>(&self, fields: &'a [Numbers], random: &mut [Sequence]) -> Option<Column<'a>> {
        columns::column(&self.node, fields, random)
    }

    /// The range of its values; `None` if it always divides by zero.
    pub(crate) fn reach(&self) -> Option<Reach> {
        let fields: Vec<Reach> = self.operands.iter().map(|operand| operand.reach).collect();
        reach::reach(&self.node, &fields)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    kind: &'a LogicalType,
    draws: &'a [NamedDraw],
    resolve: &'a mut dyn FnMut(&str) -> Result<Operand, Complaint>,
    operands: Vec<Operand>,
    depth: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        while self.text[self.at..].starts_with([' ', '\t', '\n']) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.as_bytes().get(self.at).copied()
    }

    fn unexpected(&mut self) -> Complaint {
        let what = match self.text[self.at..].chars().next() {
            Some(c) => format!("unexpected {c:?} at character {} of the expression", self.at + 1),
            None => "the expression ends too early".to_owned(),
        };
        (what, "write a formula like \"start + lognormal(3h, 0.5)\"".to_owned())
    }

    /// Consumes characters as long as `belongs` accepts them.
    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &str {
        let start = self.at;
        let rest = &self.text[start..];
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    fn sum(&mut self) -> Result<Term, Complaint> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err((format!("parentheses more than {DEEPEST} deep"), "flatten the formula".into()));
        }
        let mut left = self.product()?;
        while let Some(operator @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            left = Term::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Term, Complaint> {
        let mut left = self.factor()?;
        while let Some(operator @ (b'*' | b'/' | b'%')) = self.peek() {
            self.at += 1;
            left = Term::Binary(operator, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Term, Complaint> {
        match self.peek() {
            Some(b'-') => {
                self.at += 1;
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(("too many signs".into(), "flatten the formula".into()));
                }
                let negated = Term::Negated(Box::new(self.factor()?));
                self.depth -= 1;
                Ok(negated)
            }
            Some(b'(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.close()?;
                Ok(inner)
            }
            Some(b'0'..=b'9' | b'.') => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == b'_' || c >= 0x80 => self.name(),
            _ => Err(self.unexpected()),
        }
    }

    fn close(&mut self) -> Result<(), Complaint> {
        match self.peek() {
            Some(b')') => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Result<Term, Complaint> {
        let digits = self.take(|c| c.is_ascii_digit() || c == '.' || c == '_').replace('_', "");
        let unit = self.take(|c| c.is_ascii_alphabetic()).to_owned();
        if !unit.is_empty() {
            let Some(per_day) = self.kind.ticks_per_day() else {
                let what = format!("the duration {digits}{unit} in a field of type {}", self.kind.name());
                return Err((what, "use durations with dates, times and timestamps only".into()));
            };
            let ticks = duration_ticks(&format!("{digits}{unit}"), per_day).ok_or_else(|| {
                (format!("{digits}{unit} is not a duration"), "use ns, us, ms, s, min, h, d or w".to_owned())
            })?;
            let whole = ticks.fract() == 0.0 && ticks.abs() < 1e18;
            return Ok(Term::Number(if whole { Number::Whole(ticks as i128) } else { Number::Real(ticks) }));
        }
        if let Ok(whole) = digits.parse::<i128>() {
            return Ok(Term::Number(Number::Whole(whole)));
        }
        match digits.parse::<f64>() {
            Ok(real) => Ok(Term::Number(Number::Real(real))),
            Err(_) => Err((format!("{digits:?} is not a number"), "write numbers like 3 or 0.5".into())),
        }
    }

    fn name(&mut self) -> Result<Term, Complaint> {
        let name = self.take(|c| c.is_alphanumeric() || c == '_' || c == '.').to_owned();
        if self.peek() != Some(b'(') {
            if let Some(draw) = self.draws.iter().find(|draw| draw.name == name) {
                return Ok(Term::Drawn(Box::new(draw.clone())));
            }
            let operand = (self.resolve)(&name)?;
            let known = self.operands.iter().position(|o| o.leaf == operand.leaf);
            let index = known.unwrap_or_else(|| {
                self.operands.push(operand);
                self.operands.len() - 1
            });
            return Ok(Term::Field(index));
        }
        let Some((_, count, function)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            return Err((format!("no function is named {name}"), format!("use {}", names.join(", "))));
        };
        self.at += 1;
        let mut arguments = vec![self.sum()?];
        while self.peek() == Some(b',') {
            self.at += 1;
            arguments.push(self.sum()?);
        }
        self.close()?;
        if arguments.len() != *count {
            let what = format!("{} arguments for {name}", arguments.len());
            return Err((what, format!("{name} takes {count}")));
        }
        Ok(Term::Call(*function, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, kind: &LogicalType) -> Result<Expression, Complaint> {
        Expression::parse(text, kind, &[], &mut |name| match name {
            "a" | "b.c" => {
                let leaf = usize::from(name != "a");
                Ok(Operand {
                    leaf,
                    kind: LogicalType::Double,
                    repetition: 0,
                    nullable: false,
                    reach: Reach::ANY,
                })
            }
            _ => Err((format!("no field {name}"), String::new())),
        })
    }

    fn value(text: &str, fields: &[Number]) -> Number {
        parsed(text, &LogicalType::Double).unwrap().value(fields, &mut Sequence::new(1)).unwrap()
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        let fields = [Number::Whole(7), Number::Real(0.5)];
        assert_eq!(value("1 + 2 * 3", &[]), Number::Whole(7));
        assert_eq!(value("(1 + 2) * -3", &[]), Number::Whole(-9));
        assert_eq!(value("7 / 2 - 1", &[]), Number::Real(2.5));
        assert_eq!(value("a % 4 + b.c", &fields), Number::Real(3.5));
        assert_eq!(value("max(a, 9) - min(1, 2)", &fields), Number::Whole(8));
        assert_eq!(value("round(2.6) + abs(-1)", &[]), Number::Real(4.0));
    }

    #[test]
    fn times_keep_their_ticks() {
        let expression = Expression::parse(
            "a + 1h + uniform(0, 0)",
            &LogicalType::Timestamp { unit: crate::types::logical_type::Unit::Nanoseconds, zone: None },
            &[],
            &mut |_| {
                Ok(Operand {
                    leaf: 0,
                    kind: LogicalType::Date,
                    repetition: 0,
                    nullable: false,
                    reach: Reach::ANY,
                })
            },
        );
        let at = Number::Whole(1_700_000_000_000_000_001);
        let end = expression.unwrap().value(&[at], &mut Sequence::new(3)).unwrap();
        assert_eq!(end, Number::Whole(1_700_003_600_000_000_001));
    }

    #[test]
    fn undefined_and_too_large_values_are_misfits_and_do_not_saturate() {
        let misfit = |text: &str, fields: &[Number]| {
            parsed(text, &LogicalType::Double).unwrap().value(fields, &mut Sequence::new(1)).unwrap_err()
        };
        assert_eq!(misfit("1 / a", &[Number::Whole(0)]), Misfit::DividedByZero);
        assert_eq!(misfit("1 % a", &[Number::Real(0.0)]), Misfit::DividedByZero);
        assert_eq!(misfit("a * a", &[Number::Whole(1 << 64)]), Misfit::TooLarge);
        assert_eq!(misfit("-a - 2", &[Number::Whole(i128::MAX)]), Misfit::TooLarge);
        assert_eq!(misfit("a + 1.5", &[Number::Whole(i128::MAX)]), Misfit::TooLarge);
        assert_eq!(misfit("sqrt(a)", &[Number::Real(-4.0)]), Misfit::Undefined("sqrt", -4.0));
        assert_eq!(misfit("ln(a)", &[Number::Whole(0)]), Misfit::Undefined("ln", 0.0));
        assert_eq!(misfit("lognormal(a, 1)", &[Number::Real(-1.0)]), Misfit::Undefined("lognormal", -1.0));
        assert_eq!(misfit("a * a", &[Number::Real(1e200)]), Misfit::Outside(Number::Real(f64::INFINITY)));
        assert_eq!(misfit("exp(a)", &[Number::Whole(1000)]), Misfit::Outside(Number::Real(f64::INFINITY)));
        // Infinity in the data stays infinity.
        assert_eq!(value("a * 2", &[Number::Real(f64::INFINITY)]), Number::Real(f64::INFINITY));
    }

    #[test]
    fn large_whole_numbers_keep_their_last_digit() {
        let fields = [Number::Whole((1 << 60) + 1), Number::Whole(1 << 60)];
        assert_eq!(value("min(a, b.c)", &fields), fields[1]);
        assert_eq!(value("max(b.c, a)", &[fields[1], fields[0]]), fields[0]);
        assert_eq!(value("round(a) + floor(b.c)", &fields), Number::Whole((1 << 61) + 1));
        assert_eq!(value("18446744073709551615 - 1", &[]), Number::Whole((1 << 64) - 2));
    }

    #[test]
    fn an_invalid_expression_is_reported_with_its_position() {
        let wrong = |text: &str| parsed(text, &LogicalType::Double).unwrap_err().0;
        assert!(wrong("1 +").contains("ends too early"));
        assert!(wrong("1 + * 2").contains("character 5"));
        assert!(wrong("x + 1").contains("no field x"));
        assert!(wrong("sin(1)").contains("no function is named sin"));
        assert!(wrong("normal(1)").contains("1 arguments"));
        assert!(wrong("3h").contains("duration"));
        assert!(wrong(&"(".repeat(50)).contains("deep"));
        assert!(wrong(&format!("1{}", "-".repeat(60))).contains("signs"));
        assert!(wrong("1 2").contains("unexpected"));
        assert!(wrong("é(").contains("no function is named"));
    }
}
