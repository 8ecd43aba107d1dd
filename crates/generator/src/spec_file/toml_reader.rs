//! Reads a TOML file and keeps the position of every value.
//!
//! A [`SpecNode`] is a value with its position in the text; a [`SpecTable`] is a table whose keys have been
//! checked. All errors of specs are made here, so that each names line, column and the path of the field.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml::value::Datetime;

use crate::error::{Complaint, Error, Result};

#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    text: &'a str,
    /// The byte offset.
    start: usize,
    /// The path of the field that it is about.
    path: &'a str,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecNode<'a> {
    value: &'a DeValue<'a>,
    place: Place<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecTable<'a> {
    table: &'a DeTable<'a>,
    place: Place<'a>,
}

/// A byte offset as "line 3, column 7".
pub(crate) fn position(text: &str, offset: usize) -> String {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    format!("line {line}, column {column}")
}

/// The path of a field, for error messages.
pub(crate) fn shown(path: &str) -> String {
    if path.is_empty() { "the record".to_owned() } else { format!("field {path}") }
}

impl<'a> Place<'a> {
    fn error(self, what: impl Into<String>, advice: impl Into<String>) -> Error {
        Error::spec(what, format!("{}, {}", position(self.text, self.start), shown(self.path)), advice)
    }

    fn node(self, value: &'a Spanned<DeValue<'a>>) -> SpecNode<'a> {
        SpecNode { value: value.get_ref(), place: Place { start: value.span().start, ..self } }
    }
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

impl<'a> SpecNode<'a> {
    /// The same value, of the field at `path`.
    pub(crate) fn at(self, path: &'a str) -> Self {
        SpecNode { place: Place { path, ..self.place }, ..self }
    }

    /// An error about this value.
    pub(crate) fn error(self, what: impl Into<String>, advice: impl Into<String>) -> Error {
        self.place.error(what, advice)
    }

    /// The error that a complaint becomes at this value.
    pub(crate) fn complain(self, (what, advice): Complaint) -> Error {
        self.error(what, advice)
    }

    /// The least and the greatest value of a range; an error if they are in the wrong order.
    pub(crate) fn in_order<T: PartialOrd + Display>(self, min: T, max: T) -> Result<(T, T)> {
        match min <= max {
            true => Ok((min, max)),
            false => Err(self.error(format!("min {min} is greater than max {max}"), "swap them")),
        }
    }

    /// An error about this value; `what` has it in place of `{}`.
    pub(crate) fn unfit(self, what: &str, advice: impl Into<String>) -> Error {
        self.error(what.replace("{}", &self.described()), advice)
    }

    /// An error about this value of `key`.
    pub(crate) fn wrong(self, key: &str, advice: impl Into<String>) -> Error {
        self.unfit(&format!("`{key} = {{}}`"), advice)
    }

    /// This value as a table whose keys are all in `allowed`. `of` names the owner of the keys.
    pub(crate) fn table(self, of: &str, allowed: &[&str]) -> Result<SpecTable<'a>> {
        let table = self.any_table(of)?;
        table.check(of, allowed)?;
        Ok(table)
    }

    /// This value as a table with any keys.
    pub(crate) fn any_table(self, of: &str) -> Result<SpecTable<'a>> {
        match self.value {
            DeValue::Table(table) => Ok(SpecTable { table, place: self.place }),
            _ => Err(self.unfit(&format!("{{}} where {of} is expected"), "write a table")),
        }
    }

    pub(crate) fn is_table(self) -> bool {
        self.value.is_table()
    }

    pub(crate) fn string(self) -> Option<&'a str> {
        self.value.as_str()
    }

    pub(crate) fn boolean(self) -> Option<bool> {
        self.value.as_bool()
    }

    pub(crate) fn datetime(self) -> Option<Datetime> {
        self.value.as_datetime().copied()
    }

    /// A whole number.
    pub(crate) fn integer(self) -> Option<i128> {
        let integer = self.value.as_integer()?;
        i128::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// A whole number within `range`.
    pub(crate) fn integer_in<T>(self, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd,
    {
        T::try_from(self.integer()?).ok().filter(|n| range.contains(n))
    }

    pub(crate) fn number_in(self, range: RangeInclusive<f64>) -> Option<f64> {
        self.number().filter(|n| range.contains(n))
    }

    /// What `read` makes of each value of a list.
    pub(crate) fn list<T>(self, read: impl FnMut(SpecNode<'a>) -> Option<T>) -> Option<Vec<T>> {
        self.array()?.map(read).collect()
    }

    /// The text of a number with a point, as written in the file.
    pub(crate) fn float_text(self) -> Option<&'a str> {
        self.value.as_float().map(|float| float.as_str())
    }

    /// Any number.
    pub(crate) fn number(self) -> Option<f64> {
        match self.float_text() {
            Some(text) => text.parse().ok(),
            None => self.integer().map(|integer| integer as f64),
        }
    }

    pub(crate) fn array(self) -> Option<impl ExactSizeIterator<Item = SpecNode<'a>>> {
        Some(self.value.as_array()?.iter().map(move |v| self.place.node(v)))
    }

    /// The value for messages: its text if that is short, otherwise its type.
    pub(crate) fn described(self) -> String {
        match self.value {
            DeValue::String(s) if s.len() <= 60 => format!("{s:?}"),
            DeValue::Integer(i) => i.to_string(),
            DeValue::Float(f) => f.to_string(),
            DeValue::Boolean(b) => b.to_string(),
            DeValue::Datetime(d) => d.to_string(),
            other => format!("a value of type {}", other.type_str()),
        }
    }
}

impl<'a> SpecTable<'a> {
    pub(crate) fn root(table: &'a DeTable<'a>, text: &'a str) -> Self {
        SpecTable { table, place: Place { start: 0, text, path: "" } }
    }

    /// The same table, of the field at `path`.
    pub(crate) fn at(self, path: &'a str) -> Self {
        SpecTable { place: Place { path, ..self.place }, ..self }
    }

    /// The path of the field that it is about.
    pub(crate) fn path(self) -> &'a str {
        self.place.path
    }

    /// Refuses keys that are not among `allowed`.
    pub(crate) fn check(self, of: &str, allowed: &[&str]) -> Result<()> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !allowed.contains(&name) {
                let what = format!("unknown key `{name}` of {of}");
                let place = Place { start: key.span().start, ..self.place };
                return Err(place.error(what, format!("allowed there: {}", listed(allowed))));
            }
        }
        Ok(())
    }

    pub(crate) fn error(self, what: impl Into<String>, advice: impl Into<String>) -> Error {
        self.place.error(what, advice)
    }

    pub(crate) fn get(self, key: &str) -> Option<SpecNode<'a>> {
        self.table.get(key).map(|value| self.place.node(value))
    }

    /// The value of `key`, which is required.
    pub(crate) fn need(self, key: &str, of: &str) -> Result<SpecNode<'a>> {
        self.get(key).ok_or_else(|| self.error(format!("{of} without `{key}`"), format!("add `{key}`")))
    }

    /// What `read` makes of the value of `key`; `None` without the key.
    pub(crate) fn read<T>(
        self,
        key: &str,
        advice: impl Into<String>,
        read: impl FnOnce(SpecNode<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        read(node).map(Some).ok_or_else(|| node.wrong(key, advice))
    }

    /// The same of a key that is required.
    pub(crate) fn read_needed<T>(
        self,
        (key, of): (&str, &str),
        advice: impl Into<String>,
        read: impl FnOnce(SpecNode<'a>) -> Option<T>,
    ) -> Result<T> {
        let node = self.need(key, of)?;
        read(node).ok_or_else(|| node.wrong(key, advice))
    }

    pub(crate) fn flag(self, key: &str) -> Result<bool> {
        Ok(self.read(key, "use true or false", SpecNode::boolean)?.unwrap_or(false))
    }

    /// An error about a key, at the key's position.
    pub(crate) fn key_error(self, key: &str, what: impl Into<String>, advice: impl Into<String>) -> Error {
        let named = self.table.keys().find(|known| known.get_ref() == key);
        let start = named.map_or(self.place.start, |key| key.span().start);
        Place { start, ..self.place }.error(what, advice)
    }

    /// Keys and values, sorted by key.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'a str, SpecNode<'a>)> {
        self.table.iter().map(move |(key, value)| (key.get_ref().as_ref(), self.place.node(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_reported_with_its_line_and_the_allowed_keys() {
        let text = "a = 1\n  colour = 2\n";
        let table = DeTable::parse(text).unwrap();
        let root = SpecTable::root(table.get_ref(), text);
        let error = root.at("x.y").check("a field", &["a", "b", "c"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown key `colour` of a field - line 2, column 3, field x.y - allowed there: `a`, `b` and `c`"
        );
    }

    #[test]
    fn numbers_of_any_radix_are_read() {
        let text = "a = 0xFF\nb = 1_000\nc = 2.5";
        let table = DeTable::parse(text).unwrap();
        let root = SpecTable::root(table.get_ref(), text);
        assert_eq!(root.get("a").unwrap().integer(), Some(255));
        assert_eq!(root.get("b").unwrap().number(), Some(1000.0));
        assert_eq!(root.get("c").unwrap().float_text(), Some("2.5"));
    }
}
