//! Conditions, and the values in them.

use super::cursor::Cursor;
use super::tokens::Token;
use super::{Condition, Expression};
use crate::json;

impl Cursor {
    pub(super) fn condition_if_any(&mut self) -> Result<Option<Condition>, String> {
        if self.words("where") { self.condition().map(Some) } else { Ok(None) }
    }

    fn condition(&mut self) -> Result<Condition, String> {
        let mut terms = vec![self.conjunction()?];
        while self.words("or") {
            terms.push(self.conjunction()?);
        }
        Ok(Condition::Or(terms))
    }

    fn conjunction(&mut self) -> Result<Condition, String> {
        let mut terms = vec![self.comparison()?];
        while self.words("and") {
            terms.push(self.comparison()?);
        }
        Ok(Condition::And(terms))
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        if self.sign("(") {
            let inner = self.condition()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let left = self.expression()?;
        if self.words("is null") {
            return Ok(Condition::IsNull(left));
        }
        if self.words("in") {
            return Ok(Condition::In(left, self.list(Self::expression)?));
        }
        for sign in ["=", "<", ">"] {
            if self.sign(sign) {
                return Ok(Condition::Compare(left, sign.chars().next().unwrap_or('='), self.expression()?));
            }
        }
        Err(format!("line 1: expected a comparison at {:?}", self.peek()))
    }

    /// A value: a column, a parameter or a literal. `concat(column, _)` reads as the column.
    pub(super) fn expression(&mut self) -> Result<Expression, String> {
        if self.words("concat") {
            self.expect("(")?;
            let column = self.ident()?;
            self.expect(",")?;
            self.skip();
            self.expect(")")?;
            return Ok(Expression::Column(column));
        }
        for word in ["null", "true", "false"] {
            if self.words(word) {
                return Ok(Expression::Literal(word.into()));
            }
        }
        if self.sign("[") {
            return self.array();
        }
        let negative = self.sign("-");
        let expression = match self.peek().cloned() {
            Some(Token::Parameter(number)) => Expression::Parameter(number),
            Some(Token::Text(text)) => Expression::Literal(json::quoted(&text)),
            Some(Token::Number(text)) => {
                Expression::Literal(format!("{}{text}", if negative { "-" } else { "" }))
            }
            Some(Token::Word(name) | Token::Quoted(name)) => Expression::Column(name),
            other => return Err(format!("line 1: expected a value at {other:?}")),
        };
        self.skip();
        Ok(expression)
    }

    /// The rest of `[literal, ...]`, as JSON text.
    fn array(&mut self) -> Result<Expression, String> {
        let mut items = Vec::new();
        while !self.sign("]") {
            match self.expression()? {
                Expression::Literal(text) => items.push(text),
                other => return Err(format!("line 1: {other:?} is not a literal")),
            }
            self.sign(",");
        }
        Ok(Expression::Literal(format!("[{}]", items.join(","))))
    }
}
