//! The functions of formulas: their names, arguments and types.

use super::{Parser, Value};
use crate::draw::expression::number_text::NumberForm;
use crate::draw::expression::text::{Change, Text};
use crate::draw::expression::{FUNCTIONS, Function, Operand, Term};
use crate::error::Complaint;
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// The functions other than numeric ones, and their arguments.
const OTHERS: &[(&str, &str)] = &[
    ("if", "(condition, value, otherwise)"),
    ("case", "(condition, value, condition, value, ..., otherwise)"),
    ("concat", "(text, ...)"),
    ("format", "('text with {} for each value', value, ...)"),
    ("lower", "(text)"),
    ("upper", "(text)"),
    ("trim", "(text)"),
    ("slug", "(text)"),
    ("substring", "(text, first, count)"),
    ("replace", "(text, 'from', 'to')"),
    ("word", "(text, number)"),
    ("length", "(text)"),
    ("previous", "(field, first)"),
];

/// Whole numbers up to this keep their value as real ones.
const SMALL: u128 = 1 << 40;

/// The arguments of a call, each with its position.
struct Arguments {
    name: String,
    values: std::vec::IntoIter<(Value, usize)>,
}

impl Arguments {
    fn wrong(name: &str, what: String) -> Complaint {
        let form = OTHERS.iter().find(|(known, _)| *known == name).map_or("", |(_, form)| form);
        (what, format!("write {name}{form}"))
    }

    fn next(&mut self) -> Result<(Value, usize), Complaint> {
        self.values
            .next()
            .ok_or_else(|| Self::wrong(&self.name, format!("too few arguments for {}", self.name)))
    }

    fn end(mut self) -> Result<(), Complaint> {
        match self.values.next() {
            Some(_) => Err(Self::wrong(&self.name, format!("too many arguments for {}", self.name))),
            None => Ok(()),
        }
    }
}

impl Parser<'_> {
    /// The call of the function `name`, which began at `at`.
    pub(super) fn call(&mut self, name: &str, at: usize) -> Result<Value, Complaint> {
        let number = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        if number.is_none() && !OTHERS.iter().any(|(known, _)| *known == name) {
            let names = FUNCTIONS.iter().map(|(name, ..)| *name);
            let names: Vec<&str> = names.chain(OTHERS.iter().map(|(name, _)| *name)).collect();
            let what = format!("no function is named {name}, at character {}", self.character(at));
            return Err((what, format!("use {}", names.join(", "))));
        }
        self.at += 1;
        let mut values = Vec::new();
        loop {
            let at = self.start();
            values.push((self.value()?, at));
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.close()?;
        let Some((_, count, function)) = number else {
            let arguments = Arguments { name: name.to_owned(), values: values.into_iter() };
            return self.other(arguments);
        };
        if values.len() != *count {
            return Err((format!("{} arguments for {name}", values.len()), format!("{name} takes {count}")));
        }
        self.is_drawn |= function.draws();
        let numbers = values.into_iter().map(|(value, at)| self.number_of(value, at));
        Ok(Value::Number(Term::Call(*function, numbers.collect::<Result<_, _>>()?)))
    }

    fn other(&self, mut arguments: Arguments) -> Result<Value, Complaint> {
        let name = arguments.name.clone();
        let value = match name.as_str() {
            "if" | "case" => return self.choice(arguments),
            "slug" if cfg!(not(feature = "locales")) => {
                let advice = "build with the feature `locales`, or use lower and replace";
                return Err((
                    "this build cannot write other scripts in ASCII, for slug".into(),
                    advice.into(),
                ));
            }
            "concat" => {
                let parts = arguments.values.map(|(value, at)| self.as_text(value, at));
                return Ok(Value::Text(Text::Joined(parts.collect::<Result<_, _>>()?)));
            }
            "format" => return self.format(arguments),
            "substring" => {
                let text = Box::new(self.next_text(&mut arguments)?);
                let first = Box::new(self.next_number(&mut arguments)?);
                Value::Text(Text::Part(text, first, Box::new(self.next_number(&mut arguments)?)))
            }
            "word" => {
                let text = Box::new(self.next_text(&mut arguments)?);
                Value::Text(Text::Word(text, Box::new(self.next_number(&mut arguments)?)))
            }
            "replace" => {
                let text = Box::new(self.next_text(&mut arguments)?);
                let from = self.next_literal(&mut arguments)?;
                if from.is_empty() {
                    return Err(("an empty text to replace".into(), "name at least one character".into()));
                }
                Value::Text(Text::Replaced(text, from, self.next_literal(&mut arguments)?))
            }
            "length" => Value::Number(Term::Length(Box::new(self.next_text(&mut arguments)?))),
            name => {
                let change = match name {
                    "lower" => Change::Lower,
                    "upper" => Change::Upper,
                    "slug" => Change::Slug,
                    _ => Change::Trim,
                };
                Value::Text(Text::Changed(change, Box::new(self.next_text(&mut arguments)?)))
            }
        };
        arguments.end().map(|()| value)
    }

    fn next_text(&self, arguments: &mut Arguments) -> Result<Text, Complaint> {
        let (value, at) = arguments.next()?;
        self.text_of(value, at)
    }

    fn next_number(&self, arguments: &mut Arguments) -> Result<Term, Complaint> {
        let (value, at) = arguments.next()?;
        self.number_of(value, at)
    }

    /// A text in quotes.
    fn next_literal(&self, arguments: &mut Arguments) -> Result<Vec<u8>, Complaint> {
        let (value, at) = arguments.next()?;
        match value {
            Value::Text(Text::Literal(text)) => Ok(text),
            _ => {
                let at = self.character(at);
                let what = format!("{} takes a text in quotes at character {at}", arguments.name);
                Err(Arguments::wrong(&arguments.name, what))
            }
        }
    }

    /// `if` and `case`: conditions and their values, then the value otherwise.
    fn choice(&self, arguments: Arguments) -> Result<Value, Complaint> {
        let Arguments { name, values } = arguments;
        let count = values.len();
        if count < 3 || count % 2 == 0 || (name == "if" && count != 3) {
            return Err(Arguments::wrong(&name, format!("{count} arguments for {name}")));
        }
        let mut values = values.rev();
        let Some((mut chosen, _)) = values.next() else {
            return Err(Arguments::wrong(&name, format!("no arguments for {name}")));
        };
        while let (Some((value, value_at)), Some((condition, at))) = (values.next(), values.next()) {
            let condition = Box::new(self.condition_of(condition, at)?);
            chosen = match (value, chosen) {
                (Value::Number(yes), Value::Number(no)) => {
                    let (yes, no) = of_one_kind(yes, no, &self.operands);
                    Value::Number(Term::If(condition, Box::new(yes), Box::new(no)))
                }
                (Value::Text(yes), Value::Text(no)) => {
                    Value::Text(Text::If(condition, Box::new(yes), Box::new(no)))
                }
                (value @ Value::Condition(_), _) => {
                    let (what, _) = self.mismatch(&value, "a number or a text", value_at);
                    return Err((what, "join conditions with and, or, not".to_owned()));
                }
                (value, otherwise) => return Err(self.mismatch(&value, otherwise.made(), value_at)),
            };
        }
        Ok(chosen)
    }

    /// `format('...{}...{:08}...{:.2}', value, ...)`.
    fn format(&self, mut arguments: Arguments) -> Result<Value, Complaint> {
        let pattern = self.next_literal(&mut arguments)?;
        let pattern = String::from_utf8_lossy(&pattern).into_owned();
        let wrong = |what: String| (what, "placeholders are {}, {:08}, {:.2} and {:08.2}".to_owned());
        let mut parts = Vec::new();
        let mut rest = pattern.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((form, after)) = after.split_once('}') else {
                return Err(wrong(format!("{{ without }} in {pattern:?}")));
            };
            parts.push(Text::Literal(before.as_bytes().to_vec()));
            let (value, at) = arguments.next()?;
            parts.push(match (form.strip_prefix(':'), value) {
                (None, value) if form.is_empty() => self.as_text(value, at)?,
                (Some(form), value) => {
                    let Some(form) = NumberForm::read(form) else {
                        return Err(wrong(format!("{{:{form}}} in {pattern:?}")));
                    };
                    Text::Number(Box::new(self.number_of(value, at)?), form)
                }
                (None, _) => return Err(wrong(format!("{{{form}}} in {pattern:?}"))),
            });
            rest = after;
        }
        parts.push(Text::Literal(rest.as_bytes().to_vec()));
        arguments.end().map(|()| Value::Text(Text::Joined(parts)))
    }
}

/// Two branches with a whole literal in one as a real number if the other branch has real numbers, so that a
/// column has numbers of one kind.
fn of_one_kind(yes: Term, no: Term, operands: &[Operand]) -> (Term, Term) {
    let as_real = |term: Term| match term {
        Term::Number(Number::Whole(n)) if n.unsigned_abs() <= SMALL => Term::Number(Number::Real(n as f64)),
        other => other,
    };
    match (is_real(&yes, operands), is_real(&no, operands)) {
        (true, false) => (yes, as_real(no)),
        (false, true) => (as_real(yes), no),
        _ => (yes, no),
    }
}

/// Whether all values of `term` are real numbers.
fn is_real(term: &Term, operands: &[Operand]) -> bool {
    match term {
        Term::Number(number) => matches!(number, Number::Real(_)),
        Term::Field(i) => operands.get(*i).is_some_and(|operand| {
            operand.kind.is_real() || matches!(operand.kind, LogicalType::Decimal { scale: 1.., .. })
        }),
        Term::Drawn(drawn) => drawn.kind.is_real(),
        Term::Negated(of) => is_real(of, operands),
        Term::Binary(b'/', ..) => true,
        Term::Binary(_, a, b) => is_real(a, operands) || is_real(b, operands),
        Term::Call(Function::Least | Function::Greatest, both) => both.iter().all(|of| is_real(of, operands)),
        Term::Call(Function::Abs | Function::Floor | Function::Round, of) => {
            of.iter().all(|of| is_real(of, operands))
        }
        Term::Call(..) => true,
        Term::Length(_) => false,
        Term::If(_, yes, no) => is_real(yes, operands) && is_real(no, operands),
    }
}
