//! Parses formulas, and checks the type of each part.

mod functions;

use super::condition::{COMPARISONS, Comparison, Condition};
use super::number_text::NumberForm;
use super::text::Text;
use super::{MAX_DEPTH, NamedDraw, Operand, OperandRow, Term};
use crate::draw::distribution::duration_ticks;
use crate::error::Complaint;
use crate::types::literal::{Literal, whole};
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, scaled};

/// A part of a formula, of a known type.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(Term),
    Text(Text),
    Condition(Condition),
}

impl Value {
    fn made(&self) -> &'static str {
        match self {
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::Condition(_) => "a condition",
        }
    }
}

/// Whether a name without quotes may have this character.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    kind: &'a LogicalType,
    draws: &'a [NamedDraw],
    resolve: &'a mut dyn FnMut(&str) -> Result<Operand, Complaint>,
    operands: Vec<Operand>,
    /// Whether a part is drawn.
    is_drawn: bool,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(
        text: &'a str,
        kind: &'a LogicalType,
        draws: &'a [NamedDraw],
        resolve: &'a mut dyn FnMut(&str) -> Result<Operand, Complaint>,
    ) -> Self {
        Parser { text, at: 0, kind, draws, resolve, operands: Vec::new(), is_drawn: false, depth: 0 }
    }

    /// Parses the whole text. Returns its value, the operands that it names, and whether parts are drawn.
    pub(super) fn formula(mut self) -> Result<(Value, Vec<Operand>, bool), Complaint> {
        let value = self.value()?;
        self.space();
        match self.at < self.text.len() {
            true => Err(self.unexpected()),
            false => Ok((value, self.operands, self.is_drawn)),
        }
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.as_bytes().get(self.at).copied()
    }

    /// The number of the character at `at`, counted from 1.
    fn character(&self, at: usize) -> usize {
        self.text.get(..at).map_or(0, |before| before.chars().count()) + 1
    }

    fn unexpected(&mut self) -> Complaint {
        let what = match self.text[self.at..].chars().next() {
            Some(c) => {
                format!("unexpected {c:?} at character {} of the expression", self.character(self.at))
            }
            None => "the expression ends too early".to_owned(),
        };
        (
            what,
            "write a formula like \"start + lognormal(3h, 0.5)\" or \"concat(first, ' ', last)\"".to_owned(),
        )
    }

    /// The complaint that the part from `at` on is of another type than the `wanted` one.
    fn mismatch(&self, value: &Value, wanted: &str, at: usize) -> Complaint {
        let at = self.character(at);
        let what = format!("{} at character {at} of the expression, where {wanted} is needed", value.made());
        let advice = match (value, wanted) {
            (Value::Number(_), "a text") => "write the number as text: format('{}', ...)",
            (Value::Text(_), "a number") => "use length(...) or another number",
            (_, "a condition") => "compare it, like amount > 100 or kind == 'A'",
            _ => "choose by it: if(condition, 1, 0)",
        };
        (what, advice.to_owned())
    }

    fn start(&mut self) -> usize {
        self.space();
        self.at
    }

    fn number_of(&self, value: Value, at: usize) -> Result<Term, Complaint> {
        match value {
            Value::Number(term) => Ok(term),
            other => Err(self.mismatch(&other, "a number", at)),
        }
    }

    fn text_of(&self, value: Value, at: usize) -> Result<Text, Complaint> {
        match value {
            Value::Text(text) => Ok(text),
            other => Err(self.mismatch(&other, "a text", at)),
        }
    }

    fn condition_of(&self, value: Value, at: usize) -> Result<Condition, Complaint> {
        match value {
            Value::Condition(condition) => Ok(condition),
            other => Err(self.mismatch(&other, "a condition", at)),
        }
    }

    /// Consumes characters as long as `belongs` accepts them.
    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Consumes `word` if it comes next as a whole word.
    fn keyword(&mut self, word: &str) -> bool {
        self.space();
        let Some(rest) = self.text[self.at..].strip_prefix(word) else { return false };
        let whole = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        self.at += if whole { word.len() } else { 0 };
        whole
    }

    fn value(&mut self) -> Result<Value, Complaint> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((format!("parentheses more than {MAX_DEPTH} deep"), "flatten the formula".into()));
        }
        let left = self.joined("or", Self::both, Condition::Either)?;
        self.depth -= 1;
        Ok(left)
    }

    fn both(&mut self) -> Result<Value, Complaint> {
        self.joined("and", Self::comparison, Condition::Both)
    }

    /// What `part` parses, joined by `word` to a condition if there are several.
    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Value, Complaint>,
        join: fn(Box<Condition>, Box<Condition>) -> Condition,
    ) -> Result<Value, Complaint> {
        let at = self.start();
        let mut left = part(self)?;
        while self.keyword(word) {
            let first = self.condition_of(left, at)?;
            let at = self.start();
            let second = part(self)?;
            let second = self.condition_of(second, at)?;
            left = Value::Condition(join(Box::new(first), Box::new(second)));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Value, Complaint> {
        if self.keyword("not") {
            self.deeper()?;
            let at = self.start();
            let of = self.comparison()?;
            self.depth -= 1;
            let of = self.condition_of(of, at)?;
            return Ok(Value::Condition(Condition::Not(Box::new(of))));
        }
        let at = self.start();
        let left = self.sum()?;
        if self.keyword("in") {
            return self.one_of(left, at);
        }
        self.space();
        let rest = &self.text[self.at..];
        let Some((operator, comparison)) = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign)) else {
            return Ok(left);
        };
        self.at += operator.len();
        let right_at = self.start();
        let right = self.sum()?;
        self.compared(*comparison, (left, at), (right, right_at)).map(Value::Condition)
    }

    /// `in (a, b, ...)` after `left`.
    fn one_of(&mut self, left: Value, at: usize) -> Result<Value, Complaint> {
        if self.peek() != Some(b'(') {
            return Err(self.unexpected());
        }
        self.at += 1;
        let mut found: Option<Condition> = None;
        loop {
            let right_at = self.start();
            let right = self.sum()?;
            let equal = self.compared(Comparison::Equal, (left.clone(), at), (right, right_at))?;
            found = Some(match found {
                None => equal,
                Some(before) => Condition::Either(Box::new(before), Box::new(equal)),
            });
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.close()?;
        Ok(Value::Condition(found.unwrap_or(Condition::Constant(false))))
    }

    fn compared(
        &mut self,
        comparison: Comparison,
        (left, left_at): (Value, usize),
        (right, right_at): (Value, usize),
    ) -> Result<Condition, Complaint> {
        let (left, right) = match (left, right) {
            // A date or time may be compared with its text.
            (Value::Number(Term::Field(i)), Value::Text(Text::Literal(text))) => {
                let time = self.time(i, &text, right_at)?;
                (Value::Number(Term::Field(i)), time)
            }
            (Value::Text(Text::Literal(text)), Value::Number(Term::Field(i))) => {
                let time = self.time(i, &text, left_at)?;
                (time, Value::Number(Term::Field(i)))
            }
            other => other,
        };
        match (left, right) {
            (Value::Number(a), Value::Number(b)) => {
                Ok(Condition::Numbers(comparison, Box::new(a), Box::new(b)))
            }
            (Value::Text(a), Value::Text(b)) => Ok(Condition::Texts(comparison, Box::new(a), Box::new(b))),
            (Value::Condition(_), right) => {
                Err(self.mismatch(&right, "no comparison of a condition", right_at))
            }
            (left, right) => {
                let wanted = left.made();
                Err(self.mismatch(&right, wanted, right_at))
            }
        }
    }

    /// The number that operand `i` stores for the date or time `text`.
    fn time(&self, i: usize, text: &[u8], at: usize) -> Result<Value, Complaint> {
        let shown = String::from_utf8_lossy(text);
        let Some(operand) = self.operands.get(i).filter(|operand| operand.kind.is_temporal()) else {
            return Err(self.mismatch(&Value::Text(Text::Literal(text.to_vec())), "a number", at));
        };
        let literal = Literal::of_key(&operand.kind, &shown);
        let number = whole(&operand.kind, &literal).map(|n| scaled(&operand.kind, n));
        number.map(|number| Value::Number(Term::Number(number))).ok_or_else(|| {
            let at = self.character(at);
            let what =
                format!("{shown:?} at character {at} of the expression is not {}", operand.kind.a_name());
            (what, operand.kind.takes())
        })
    }

    fn sum(&mut self) -> Result<Value, Complaint> {
        let at = self.start();
        let left = self.product()?;
        self.operations(left, at, b"+-", Self::product)
    }

    fn product(&mut self) -> Result<Value, Complaint> {
        let at = self.start();
        let left = self.factor()?;
        self.operations(left, at, b"*/%", Self::factor)
    }

    /// Operations on `left`, which began at `at`; `next` parses their right sides.
    fn operations(
        &mut self,
        mut left: Value,
        at: usize,
        operators: &[u8],
        next: fn(&mut Self) -> Result<Value, Complaint>,
    ) -> Result<Value, Complaint> {
        while let Some(operator) = self.peek().filter(|c| operators.contains(c)) {
            let first = self.number_of(left, at)?;
            self.at += 1;
            let right_at = self.start();
            let second = next(self)?;
            let second = self.number_of(second, right_at)?;
            left = Value::Number(Term::Binary(operator, Box::new(first), Box::new(second)));
        }
        Ok(left)
    }

    fn deeper(&mut self) -> Result<(), Complaint> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => Err(("too many signs".into(), "flatten the formula".into())),
            false => Ok(()),
        }
    }

    fn factor(&mut self) -> Result<Value, Complaint> {
        match self.peek() {
            Some(b'-') => {
                self.at += 1;
                self.deeper()?;
                let at = self.start();
                let of = self.factor()?;
                let negated = Term::Negated(Box::new(self.number_of(of, at)?));
                self.depth -= 1;
                Ok(Value::Number(negated))
            }
            Some(b'(') => {
                self.at += 1;
                let inner = self.value()?;
                self.close()?;
                Ok(inner)
            }
            Some(quote @ (b'\'' | b'"')) => self.literal(quote),
            Some(b'0'..=b'9' | b'.') => self.number().map(Value::Number),
            Some(b'`') => self.quoted_name(),
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

    /// A text in quotes; a doubled quote is one quote.
    fn literal(&mut self, quote: u8) -> Result<Value, Complaint> {
        let (start, quote) = (self.at, char::from(quote));
        let mut text = String::new();
        loop {
            self.at += 1;
            text.push_str(self.take(|c| c != quote));
            if self.at == self.text.len() {
                let what =
                    format!("the text at character {} of the expression has no end", self.character(start));
                return Err((what, format!("end it with {quote}")));
            }
            self.at += 1;
            if !self.text[self.at..].starts_with(quote) {
                return Ok(Value::Text(Text::Literal(text.into_bytes())));
            }
            text.push(quote);
        }
    }

    fn number(&mut self) -> Result<Term, Complaint> {
        let digits = self.take(|c| c.is_ascii_digit() || c == '.' || c == '_').replace('_', "");
        let unit = self.take(|c| c.is_ascii_alphabetic()).to_owned();
        if !unit.is_empty() {
            // In a field of another type, durations count in the unit of the first date or time of the formula.
            let of_operands = || self.operands.iter().find_map(|operand| operand.kind.ticks_per_day());
            let Some(per_day) = self.kind.ticks_per_day().or_else(of_operands) else {
                let what = format!("the duration {digits}{unit} in a field of type {}", self.kind.name());
                return Err((
                    what,
                    "use durations after a date, time or timestamp, or in a field of such a type".into(),
                ));
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

    fn name(&mut self) -> Result<Value, Complaint> {
        let at = self.at;
        let name = self.take(is_of_name);
        if self.peek() == Some(b'(') {
            return if name == "previous" { self.previous() } else { self.call(name, at) };
        }
        if let Some(draw) = self.draws.iter().find(|draw| draw.name == name) {
            self.is_drawn = true;
            return Ok(Value::Number(Term::Drawn(Box::new(draw.clone()))));
        }
        match ((self.resolve)(name), name) {
            (Err(_), "true" | "false") => Ok(Value::Condition(Condition::Constant(name == "true"))),
            (operand, _) => self.own_field(operand?, name),
        }
    }

    /// A field in the same row.
    fn own_field(&mut self, operand: Operand, name: &str) -> Result<Value, Complaint> {
        if operand.row != OperandRow::Own {
            let what = format!("{name} is the field itself");
            return Err((what, format!("use an earlier field, or previous({name}, FIRST)")));
        }
        Ok(self.field(operand))
    }

    /// `previous(FIELD, FIRST)`: the field in the row before of the same parent; in its first row, the second value.
    fn previous(&mut self) -> Result<Value, Complaint> {
        self.at += 1;
        let name = match self.peek() {
            Some(b'`') => self.quoted()?,
            _ => self.take(is_of_name),
        };
        let operand = (self.resolve)(name)?;
        let is_first = Operand { row: OperandRow::IsFirst, kind: LogicalType::Boolean, ..operand.clone() };
        let Value::Condition(is_first) = self.field(is_first) else { return Err(self.unexpected()) };
        let before = self.field(Operand { row: OperandRow::Before, ..operand });
        if self.peek() != Some(b',') {
            return Err((
                format!("previous({name}) without its first value"),
                format!("write previous({name}, 0)"),
            ));
        }
        self.at += 1;
        let at = self.start();
        let mut first = self.value()?;
        self.close()?;
        if let (Value::Number(Term::Field(i)), Value::Text(Text::Literal(text))) = (&before, &first) {
            first = self.time(*i, text, at)?;
        }
        Ok(match (first, before) {
            (Value::Number(first), Value::Number(before)) => {
                Value::Number(Term::If(Box::new(is_first), Box::new(first), Box::new(before)))
            }
            (Value::Text(first), Value::Text(before)) => {
                Value::Text(Text::If(Box::new(is_first), Box::new(first), Box::new(before)))
            }
            (Value::Condition(first), Value::Condition(before)) => {
                let later = Condition::Not(Box::new(is_first.clone()));
                let first = Condition::Both(Box::new(is_first), Box::new(first));
                let before = Condition::Both(Box::new(later), Box::new(before));
                Value::Condition(Condition::Either(Box::new(first), Box::new(before)))
            }
            (first, before) => return Err(self.mismatch(&first, before.made(), at)),
        })
    }

    fn quoted_name(&mut self) -> Result<Value, Complaint> {
        let name = self.quoted()?;
        let operand = (self.resolve)(name)?;
        self.own_field(operand, name)
    }

    /// A name between backquotes.
    fn quoted(&mut self) -> Result<&'a str, Complaint> {
        let start = self.at;
        self.at += 1;
        let name = self.take(|c| c != '`');
        if self.at == self.text.len() {
            let what =
                format!("the name at character {} of the expression has no end", self.character(start));
            return Err((what, "end it with `".to_owned()));
        }
        self.at += 1;
        Ok(name)
    }

    fn field(&mut self, operand: Operand) -> Value {
        let kind = operand.kind.clone();
        let known = self.operands.iter().position(|o| (o.leaf, o.row) == (operand.leaf, operand.row));
        let index = known.unwrap_or_else(|| {
            self.operands.push(operand);
            self.operands.len() - 1
        });
        match kind {
            LogicalType::Boolean => Value::Condition(Condition::Field(index)),
            kind if kind.is_text() => Value::Text(Text::Field(index)),
            _ => Value::Number(Term::Field(index)),
        }
    }

    /// A value as a text; numbers, dates and times are written as such.
    fn as_text(&self, value: Value, at: usize) -> Result<Text, Complaint> {
        match value {
            Value::Number(term) => {
                let form = match &term {
                    Term::Field(i) => self.operands.get(*i).map(|operand| NumberForm::new(&operand.kind)),
                    _ => None,
                };
                let plain = NumberForm::Digits { width: 0, decimals: None };
                Ok(Text::Number(Box::new(term), form.unwrap_or(plain)))
            }
            other => self.text_of(other, at),
        }
    }
}
