//! Formulas over earlier fields of the record: `"start + lognormal(3h, 0.5)"`.
//!
//! ```text
//! value      = both ("or" both)*
//! both       = comparison ("and" comparison)*
//! comparison = "not" comparison | sum (("==" | "!=" | "<" | "<=" | ">" | ">=") sum | "in" "(" sum ("," sum)* ")")?
//! sum        = product (("+" | "-") product)*
//! product    = factor (("*" | "/" | "%") factor)*
//! factor     = number | duration | 'text' | field | function "(" value ("," value)* ")" | "(" value ")" | "-" factor
//! ```
//!
//! A value is a number, a text or a condition, known before a row is made; the type of the field says which of
//! them its formula must be. Whole numbers stay whole under `+`, `-` and `*`. Times keep their ticks, and a real
//! number added to a time is rounded. Draws by quantiles have names, too. `if` and `case` evaluate only the
//! branch that they take. A value is null if a field that the formula names is null. Nothing saturates: a value
//! that is too large or undefined is a [`Misfit`].

mod columns;
mod condition;
mod evaluate;
mod number_text;
mod numbers;
mod operand_values;
mod parser;
mod reach;
mod text;

use crate::draw::misfit::Misfit;
use crate::draw::quantiles::Quantiles;
use crate::error::Complaint;
use crate::random::rng::Sequence;
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, scaled};
pub(crate) use columns::Column;
use condition::Condition;
pub(crate) use numbers::Numbers;
pub(crate) use operand_values::{Row, Values};
use parser::{Parser, Value};
pub(crate) use reach::Reach;
use text::Text;

/// The most bytes of an expression.
const MAX_LENGTH: usize = 1000;

/// The deepest nesting of parentheses.
const MAX_DEPTH: usize = 32;

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
    /// The bytes of its longest value, if it is a string.
    pub longest: u64,
    pub row: OperandRow,
}

/// The row that a formula takes an operand from, or a property of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandRow {
    Own,
    /// The row before of the same parent.
    Before,
    /// Whether the row is the first one of its parent.
    IsFirst,
    /// The row of another table that the operand refers to.
    Referred,
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
    Sin,
    Cos,
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
    ("sin", 1, Function::Sin),
    ("cos", 1, Function::Cos),
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
        let (reach, one) = (self.quantiles.reach(), self.kind.one_real());
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
    /// The number of characters of a text.
    Length(Box<Text>),
    /// The first term where the condition holds, else the second.
    If(Box<Condition>, Box<Term>, Box<Term>),
}

/// What a formula computes.
#[derive(Clone, Debug)]
enum Root {
    Number(Term),
    Text(Text),
    Condition(Condition),
}

#[derive(Clone, Debug)]
pub(crate) struct Expression {
    root: Root,
    pub is_drawn: bool,
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
        if text.len() > MAX_LENGTH {
            return Err(("the expression is too long".into(), format!("use at most {MAX_LENGTH} bytes")));
        }
        let parser = Parser::new(text, kind, draws, resolve);
        let (value, operands, is_drawn) = parser.formula()?;
        let wrong = |made: &str, advice: &str| {
            (format!("the formula is {made}, and the field is {}", kind.a_name()), advice.to_owned())
        };
        let root = match value {
            Value::Number(term) if kind.is_whole() || kind.is_real() => Root::Number(term),
            Value::Text(text) if kind.is_text() => Root::Text(text),
            Value::Condition(condition) if *kind == LogicalType::Boolean => Root::Condition(condition),
            Value::Number(_) if kind.is_text() => {
                return Err(wrong("a number", "write it as text: format('{}', ...)"));
            }
            Value::Number(_) => return Err(wrong("a number", "compare it, like amount > 100")),
            Value::Text(_) => return Err(wrong("a text", "use a field of type string")),
            Value::Condition(_) => {
                return Err(wrong("a condition", "choose by it: if(condition, 1, 0)"));
            }
        };
        Ok(Expression { root, is_drawn, operands, text: text.to_owned() })
    }

    /// Its value for these operands, if it is a number; a condition is 1 where it holds. Random functions draw
    /// from `random`.
    pub(crate) fn value(&self, row: Row<'_>, random: &mut Sequence) -> Result<Number, Misfit> {
        match &self.root {
            Root::Number(node) => evaluate::evaluate(node, row, random),
            Root::Condition(condition) => condition.holds(row, random).map(|held| Number::Whole(held.into())),
            Root::Text(_) => Ok(Number::Whole(0)),
        }
    }

    /// Appends its value for these operands to `out`, if it is a text.
    pub(crate) fn write(&self, row: Row<'_>, random: &mut Sequence, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match &self.root {
            Root::Text(text) => text.write(row, random, out),
            Root::Number(_) | Root::Condition(_) => Ok(()),
        }
    }

    /// The bytes of its longest value, if it is a text.
    pub(crate) fn longest(&self) -> Option<u64> {
        match &self.root {
            Root::Text(text) => Some(text.longest(&self.operands)),
            Root::Number(_) | Root::Condition(_) => None,
        }
    }

    /// Its `n` values for a block, if it is a number, as [`value`](Self::value) computes them one by one;
    /// `None` if that must be done. `random` has the generator of each value, if there are draws.
    pub(crate) fn column<'a>(
        &self,
        fields: &'a [Values],
        random: &mut [Sequence],
        n: usize,
    ) -> Option<Column<'a>> {
        match &self.root {
            Root::Number(node) => columns::column(node, fields, random, n),
            Root::Text(_) | Root::Condition(_) => None,
        }
    }

    /// Whether it holds, for each of `n` values, if it is a condition; `None` as for
    /// [`column`](Self::column).
    pub(crate) fn held(&self, fields: &[Values], random: &mut [Sequence], n: usize) -> Option<Vec<bool>> {
        match &self.root {
            Root::Condition(condition) => condition.column(fields, random, n),
            Root::Number(_) | Root::Text(_) => None,
        }
    }

    /// The range of its values; `None` if it always divides by zero.
    pub(crate) fn reach(&self) -> Option<Reach> {
        let fields: Vec<Reach> = self.operands.iter().map(|operand| operand.reach).collect();
        match &self.root {
            Root::Number(node) => reach::reach(node, &fields),
            Root::Text(_) | Root::Condition(_) => Some(Reach::ANY),
        }
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
                    longest: 0,
                    row: OperandRow::Own,
                })
            }
            _ => Err((format!("no field {name}"), String::new())),
        })
    }

    /// The operands of one value.
    fn values(fields: &[Number]) -> Vec<Values> {
        fields.iter().map(|number| Values::Numbers(Numbers::Any(vec![*number]))).collect()
    }

    fn value(text: &str, fields: &[Number]) -> Number {
        let row = Row { fields: &values(fields), at: 0 };
        parsed(text, &LogicalType::Double).unwrap().value(row, &mut Sequence::new(1)).unwrap()
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
                    longest: 0,
                    row: OperandRow::Own,
                })
            },
        );
        let at = Number::Whole(1_700_000_000_000_000_001);
        let row = Row { fields: &values(&[at]), at: 0 };
        let end = expression.unwrap().value(row, &mut Sequence::new(3)).unwrap();
        assert_eq!(end, Number::Whole(1_700_003_600_000_000_001));
    }

    #[test]
    fn undefined_and_too_large_values_are_misfits_and_do_not_saturate() {
        let misfit = |text: &str, fields: &[Number]| {
            let row = Row { fields: &values(fields), at: 0 };
            parsed(text, &LogicalType::Double).unwrap().value(row, &mut Sequence::new(1)).unwrap_err()
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
        assert!(wrong("tan(1)").contains("no function is named tan"));
        assert!(wrong("normal(1)").contains("1 arguments"));
        assert!(wrong("3h").contains("duration"));
        assert!(wrong(&"(".repeat(50)).contains("deep"));
        assert!(wrong(&format!("1{}", "-".repeat(60))).contains("signs"));
        assert!(wrong("1 2").contains("unexpected"));
        assert!(wrong("é(").contains("no function is named"));
    }

    /// The text that `formula` makes of the operands `name` = "Éva  Kovács", `n` = 7 and `born` = 2000-02-29.
    fn text(formula: &str) -> String {
        let mut names = crate::shred::value_buffer::ByteStrings::default();
        names.data.extend_from_slice("Éva  Kovács".as_bytes());
        names.push_end();
        let all = [
            Values::Texts(names),
            values(&[Number::Whole(7)]).remove(0),
            values(&[Number::Whole(11_016)]).remove(0),
        ];
        let expression = Expression::parse(formula, &LogicalType::String, &[], &mut |name| {
            let leaf = ["name", "n", "born"].iter().position(|known| *known == name).unwrap();
            let kind = [LogicalType::String, LogicalType::Double, LogicalType::Date][leaf].clone();
            Ok(Operand {
                leaf,
                kind,
                repetition: 0,
                nullable: false,
                reach: Reach::ANY,
                longest: 13,
                row: OperandRow::Own,
            })
        })
        .unwrap();
        let fields: Vec<Values> = expression.operands.iter().map(|o| all[o.leaf].clone()).collect();
        let mut out = b"before ".to_vec();
        expression.write(Row { fields: &fields, at: 0 }, &mut Sequence::new(1), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_owned();
        assert!(text.len() as u64 <= expression.longest().unwrap(), "{formula}");
        text
    }

    #[test]
    fn texts_are_joined_cut_and_formatted() {
        assert_eq!(text("concat(name, ', ', n, ' ', born)"), "Éva  Kovács, 7 2000-02-29");
        assert_eq!(
            text("concat(lower(word(name, 1)), '.', lower(word(name, 2)), '@x.at')"),
            "éva.kovács@x.at"
        );
        assert_eq!(text("upper(substring(name, 1, 2))"), "ÉV");
        assert_eq!(text("substring('abcdef', n - 3, 2)"), "de");
        assert_eq!(text("substring('abc', 9, 2)"), "");
        assert_eq!(text("concat('[', word(name, 3), trim('  a b '), ']')"), "[a b]");
        assert_eq!(text("replace(name, '  ', '_')"), "Éva_Kovács");
        assert_eq!(text("replace('a-b-c', '-', '')"), "abc");
        assert_eq!(text("format('A-{:05}/{:.2}/{}', n, n / 4, born)"), "A-00007/1.75/2000-02-29");
        assert_eq!(text("if(n > 5 and name != '', 'many', 'few')"), "many");
        assert_eq!(text("case(n < 5, 'few', born >= '2000-03-01', 'late', 'it''s')"), "it's");
        assert_eq!(text("format('{}', length(name))"), "11");
    }

    #[test]
    fn branches_that_are_not_taken_do_not_fail() {
        assert_eq!(value("if(a == 0, 0, 1 / a)", &[Number::Whole(0)]), Number::Real(0.0));
        assert_eq!(value("if(a != 0 and 1 / a > 2, 1, 2)", &[Number::Whole(0)]), Number::Whole(2));
        assert_eq!(value("if(a = 0 or 1 / a > 2, 1, 2)", &[Number::Whole(0)]), Number::Whole(1));
        assert_eq!(value("if(a in (1, 2, 3), 1, 2)", &[Number::Whole(3)]), Number::Whole(1));
    }

    #[test]
    fn parts_of_the_wrong_type_are_reported_with_their_position() {
        let wrong = |text: &str| parsed(text, &LogicalType::Double).unwrap_err().0;
        assert!(wrong("1 + 'x'").contains("a text at character 5 of the expression, where a number"));
        assert!(
            wrong("if(a, 1, 2)").contains("a number at character 4 of the expression, where a condition")
        );
        assert!(wrong("if(a > 1, 'x', 2)").contains("a text at character 11"));
        assert!(wrong("if(a > 1, 2)").contains("2 arguments for if"));
        assert!(wrong("length(a)").contains("where a text"));
        assert!(wrong("a > 1").contains("the formula is a condition, and the field is a double"));
        assert!(wrong("a < 'x'").contains("a text at character 5"));
        assert!(wrong("'x").contains("has no end"));
        assert!(wrong("case(a > 1, 1, a < 0, 3)").contains("4 arguments for case"));
        let wrong = |text: &str| parsed(text, &LogicalType::String).unwrap_err();
        assert!(wrong("a + 1").1.contains("format('{}'"));
        assert!(wrong("format('{} {}', a)").0.contains("too few arguments"));
        assert!(wrong("format('{:x}', a)").0.contains("{:x}"));
        assert!(wrong("replace('a', '', 'b')").0.contains("empty text"));
    }
}
