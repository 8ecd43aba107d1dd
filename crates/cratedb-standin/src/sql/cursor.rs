//! A position in the tokens of a statement, and the pieces that all statements share.

use super::Name;
use super::tokens::{Token, tokens};

/// The tokens of a statement, and the position of the next one.
pub(super) struct Cursor {
    tokens: Vec<Token>,
    at: usize,
    schema: String,
}

impl Cursor {
    pub(super) fn new(sql: &str, schema: &str) -> Result<Self, String> {
        Ok(Self { tokens: tokens(sql)?, at: 0, schema: schema.to_owned() })
    }

    /// Rejects tokens that are left over.
    pub(super) fn end(&self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(token) => Err(format!("line 1: mismatched input {token:?}")),
        }
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(next)) if next == word)
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(next)) if next == sign)
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// Consumes these words if all of them come next.
    pub(super) fn words(&mut self, words: &str) -> bool {
        let wanted: Vec<&str> = words.split(' ').collect();
        let found = wanted
            .iter()
            .enumerate()
            .all(|(i, word)| matches!(self.tokens.get(self.at + i), Some(Token::Word(w)) if w == word));
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    pub(super) fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(s)) if s == sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, what: &str) -> Result<(), String> {
        let found = if what.chars().all(|c| c.is_alphabetic() || c == ' ') {
            self.words(what)
        } else {
            self.sign(what)
        };
        if found { Ok(()) } else { Err(format!("line 1: expected {what}, not {:?}", self.peek())) }
    }

    /// A name, in quotation marks or not.
    pub(super) fn ident(&mut self) -> Result<String, String> {
        let name = match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name)) => name.clone(),
            other => return Err(format!("line 1: expected a name, not {other:?}")),
        };
        self.at += 1;
        Ok(name)
    }

    /// A table's name, with or without a schema.
    pub(super) fn name(&mut self) -> Result<Name, String> {
        let first = self.ident()?;
        if self.sign(".") { Ok((first, self.ident()?)) } else { Ok((self.schema.clone(), first)) }
    }

    /// Items in parentheses.
    pub(super) fn list<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.expect("(")?;
        let items = self.items(item)?;
        self.expect(")")?;
        Ok(items)
    }

    pub(super) fn number(&mut self) -> Result<usize, String> {
        let Some(Token::Number(text)) = self.peek() else { return Err("line 1: expected a number".into()) };
        let number = text.parse().map_err(|_| "line 1: expected a whole number")?;
        self.at += 1;
        Ok(number)
    }

    /// Items separated by commas.
    pub(super) fn items<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut items = vec![item(self)?];
        while self.sign(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Consumes the next token if it is a text in quotation marks.
    pub(super) fn any_text(&mut self, what: &str) -> Result<String, String> {
        let Some(Token::Text(text)) = self.peek() else { return Err(format!("line 1: expected {what}")) };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    /// Consumes exactly this text in quotation marks.
    pub(super) fn text(&mut self, text: &str) -> Result<(), String> {
        let found = matches!(self.peek(), Some(Token::Text(next)) if next == text);
        self.at += usize::from(found);
        if found { Ok(()) } else { Err(format!("line 1: expected '{text}', not {:?}", self.peek())) }
    }

    /// `name = value`, with the value as text.
    pub(super) fn parameter(&mut self) -> Result<(String, String), String> {
        let name = self.ident()?;
        self.expect("=")?;
        let value = match self.peek() {
            Some(Token::Text(text) | Token::Number(text) | Token::Word(text)) => text.clone(),
            other => return Err(format!("line 1: expected a value, not {other:?}")),
        };
        self.at += 1;
        Ok((name, value))
    }
}
